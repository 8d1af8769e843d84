#include "server/people/access.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(enum lac_owned_kind kind)
{
    static const char *const names[] = {"trace", "run", "report", "link"};

    return names[kind];
}

static const char *right_word(unsigned right)
{
    return (right & LAC_RIGHT_ADMIN) != 0     ? "administer"
           : (right & LAC_RIGHT_WRITE) != 0   ? "change"
           : (right & LAC_RIGHT_COMMENT) != 0 ? "comment in"
                                              : "add to";
}

bool lac_access_may(struct lac_people *people, const struct lac_principal *who, const char *project,
                    unsigned right, const char *what, struct lac_response *response)
{
    const unsigned rights = lac_people_rights(people, who, project);

    if ((rights & right) != 0) {
        return true;
    }
    if ((right & LAC_RIGHT_READ) != 0 || rights == 0) {
        lac_response_error(response, 404, "not_found", "no such %s", what);
    } else if (project[0] == '\0' && strcmp(what, "project") != 0) {
        lac_response_error(response, 403, "forbidden", "you may not %s a %s without a project",
                           right_word(right), what);
    } else if (project[0] == '\0') {
        lac_response_error(response, 403, "forbidden",
                           "name a project that you may %s: project=NAME", right_word(right));
    } else {
        lac_response_error(response, 403, "forbidden", "you may not %s project %s",
                           right_word(right), project);
    }
    return false;
}

bool lac_access_may_object(struct lac_people *people, struct lac_store *store,
                           const struct lac_principal *who, enum lac_owned_kind kind,
                           const char *id, unsigned right, struct lac_response *response)
{
    char project[LAC_PROJECT_BYTES];
    struct lac_error error = {0};
    enum lac_status status;

    if (who->is_service_admin && who->project[0] == '\0' && (who->scope & right) != 0) {
        return true; /* the handler says whether it is there */
    }
    status = lac_store_project_of(store, kind, id, project, &error);
    if (status == LAC_OK) {
        return lac_access_may(people, who, project, right, name_of(kind), response);
    }
    if (status == LAC_ERR_NOT_FOUND) {
        lac_response_error(response, 404, "not_found", "no such %s", name_of(kind));
    } else {
        lac_response_fail(response, &error);
    }
    return false;
}

bool lac_access_reads_trace(struct lac_people *people, struct lac_store *store,
                            const struct lac_principal *who, const char *id)
{
    struct lac_response unsent;
    bool may;

    lac_response_init(&unsent);
    may = lac_access_may_object(people, store, who, LAC_OWNED_TRACE, id, LAC_RIGHT_READ, &unsent);
    lac_response_done(&unsent);
    return may;
}

bool lac_access_readable(struct lac_people *people, struct lac_store *store,
                         const struct lac_principal *who, char **ret_names,
                         struct lac_response *response)
{
    struct lac_project_row *rows = NULL;
    struct lac_buffer text = {0};
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t count = 0;

    *ret_names = NULL;
    if (who->is_service_admin && who->project[0] == '\0' && (who->scope & LAC_RIGHT_READ) != 0) {
        return true;
    }
    if (lac_store_list_projects(store, &rows, &count, &error) != LAC_OK) {
        lac_response_fail(response, &error);
        return false;
    }
    lac_json_init(&json, &text);
    lac_json_open(&json, NULL, '[');
    for (uint32_t i = 0; i < count; i++) {
        if ((lac_people_rights(people, who, rows[i].name) & LAC_RIGHT_READ) != 0) {
            lac_json_text(&json, NULL, rows[i].name);
        }
    }
    lac_json_close(&json, ']');
    free(rows);
    if (text.status == LAC_OK) {
        *ret_names = strndup(text.bytes, text.size_bytes);
    }
    lac_buffer_done(&text);
    if (*ret_names == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for the projects");
    }
    return *ret_names != NULL;
}
