/*
 * Before a handler: the route's access rule, for the object that its path names. What else a
 * handler reaches (projects in bodies, traces in queries) it asks for itself (server/people/access.h).
 */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/api/app.h"
#include "server/http/key.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/ingest/resumable.h"
#include "server/ingest/upload_metadata.h"
#include "server/people/access.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

bool lac_api_identify(void *app_context, enum lac_proof proof, const char *secret,
                      struct lac_principal *ret_who)
{
    struct lac_app *app = app_context;

    return lac_key_identify(app->key, proof, secret, ret_who) ||
           lac_people_identify(app->people, proof, secret, ret_who);
}

bool lac_api_identify_named(void *app_context, const char *name, struct lac_principal *ret_who)
{
    struct lac_app *app = app_context;

    return lac_people_named(app->people, name, ret_who);
}

bool lac_api_may_hear(void *app_context, const struct lac_principal *who, const char *project)
{
    struct lac_app *app = app_context;

    return (lac_people_rights(app->people, who, project) & LAC_RIGHT_READ) != 0;
}

/* Rights of which one is enough; 0: the rule asks for none. */
static unsigned rights_for(enum lac_access access)
{
    switch (access) {
    case LAC_ACCESS_READ:
        return LAC_RIGHT_READ;
    case LAC_ACCESS_STATE:
        return LAC_RIGHT_READ | LAC_RIGHT_UPLOAD;
    case LAC_ACCESS_COMMENT:
        return LAC_RIGHT_COMMENT;
    case LAC_ACCESS_UPLOAD:
        return LAC_RIGHT_UPLOAD;
    case LAC_ACCESS_WRITE:
        return LAC_RIGHT_WRITE;
    case LAC_ACCESS_ADMIN:
        return LAC_RIGHT_ADMIN;
    case LAC_ACCESS_OPEN:
    case LAC_ACCESS_KEY:
    case LAC_ACCESS_SIGNED:
    case LAC_ACCESS_COUNT_:
        break;
    }
    return 0;
}

static bool forbid(struct lac_response *response, const char *what)
{
    lac_response_error(response, 403, "forbidden", "%s", what);
    return false;
}

/* What the first parameter of a path is the id of. @return false: of nothing that belongs to a
 * project by its id */
static bool object_of(const char *pattern, enum lac_owned_kind *ret_kind)
{
    static const struct {
        const char *begins;
        enum lac_owned_kind kind;
    } paths[] = {
        {"/api/v1/traces/{", LAC_OWNED_TRACE},
        {"/api/v1/runs/{", LAC_OWNED_RUN},
        {"/api/v1/reports/{", LAC_OWNED_REPORT},
        {"/api/v1/shares/{", LAC_OWNED_SHARE},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(paths); i++) {
        if (strncmp(pattern, paths[i].begins, strlen(paths[i].begins)) == 0) {
            *ret_kind = paths[i].kind;
            return true;
        }
    }
    return false;
}

const char *lac_api_upload_project(const struct lac_principal *who, const char *given)
{
    return given == NULL || *given == '\0' ? who->project : given;
}

/* Whether the upload is of who asks: the same token, or the person, also by a token of theirs. */
static bool is_theirs(const struct lac_upload_owner *owner, const struct lac_principal *who)
{
    return owner->name[0] == '\0' || /* begun before owners were kept */
           (strcmp(owner->name, who->name) == 0 &&
            (who->kind != LAC_PRINCIPAL_TOKEN || strcmp(owner->token, who->token) == 0));
}

/* An upload that was begun goes on, is looked at and ended by who began it, and by those who
 * administer its project. To others it is not there. Memory only: on the loop. */
static bool may_resume(struct lac_app *app, const struct lac_request *request,
                       struct lac_response *response)
{
    struct lac_upload_metadata metadata = {0};
    struct lac_upload_state state;
    struct lac_error error;
    const enum lac_upload_answer answer =
        lac_resumable_look(app->uploads, request->param[0], &state);
    bool may;

    if (answer == LAC_UPLOAD_UNKNOWN || answer == LAC_UPLOAD_GONE) {
        return true; /* the handler says so */
    }
    if (answer != LAC_UPLOAD_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for the upload");
        return false;
    }
    may = is_theirs(&state.owner, &request->who);
    if (!may && lac_upload_metadata_parse(state.metadata, &metadata, &error) == LAC_OK) {
        may = (lac_people_rights(app->people, &request->who, metadata.project) & LAC_RIGHT_ADMIN) !=
              0;
    }
    lac_upload_state_done(&state);
    if (!may) {
        lac_response_error(response, 404, "not_found", "no such upload");
    }
    return may;
}

/* The project that an upload names, or that its token is for. On the loop. */
static bool may_upload(struct lac_app *app, const struct lac_route *route,
                       const struct lac_request *request, struct lac_response *response)
{
    struct lac_upload_metadata metadata = {0};
    struct lac_error error;
    const char *project = lac_target_get(request->target, "project");
    const char *field = request->field[LAC_FIELD_UPLOAD_METADATA];

    if (strstr(route->pattern, "{id}") != NULL) { /* begun already */
        return (lac_people_rights_anywhere(app->people, &request->who) & LAC_RIGHT_UPLOAD) != 0
                   ? may_resume(app, request, response)
                   : forbid(response, "you may not upload");
    }
    if (strcmp(route->pattern, "/api/v1/uploads") == 0 && field != NULL) {
        if (lac_upload_metadata_parse(field, &metadata, &error) != LAC_OK) {
            return true; /* the handler says what is wrong with it */
        }
        project = metadata.project;
    }
    return lac_access_may(app->people, &request->who,
                          lac_api_upload_project(&request->who, project), LAC_RIGHT_UPLOAD,
                          "project", response);
}

static bool may_compare(struct lac_app *app, const struct lac_request *request,
                        struct lac_response *response)
{
    static const char *const sides[] = {"a", "b"};

    for (int i = 0; i < 2; i++) {
        const char *id = lac_target_get(request->target, sides[i]);

        if (id != NULL && !lac_access_may_object(app->people, app->store, &request->who,
                                                 LAC_OWNED_TRACE, id, LAC_RIGHT_READ, response)) {
            return false;
        }
    }
    return true;
}

bool lac_api_permit(void *app_context, const struct lac_route *route,
                    const struct lac_request *request, struct lac_response *response)
{
    struct lac_app *app = app_context;
    const struct lac_principal *who = &request->who;
    const unsigned right = rights_for(route->access);
    enum lac_owned_kind kind;

    if (route->access == LAC_ACCESS_OPEN || route->access == LAC_ACCESS_SIGNED) {
        return true;
    }
    if (route->access == LAC_ACCESS_KEY) {
        return (who->is_service_admin && who->project[0] == '\0' &&
                (who->scope & LAC_RIGHT_ADMIN) != 0) ||
               forbid(response, "this is for administrators of the service");
    }
    if (route->access == LAC_ACCESS_UPLOAD) {
        return may_upload(app, route, request, response);
    }
    if (object_of(route->pattern, &kind)) {
        return lac_access_may_object(app->people, app->store, who, kind, request->param[0], right,
                                     response);
    }
    if (strncmp(route->pattern, "/api/v1/projects/{", 18) == 0) {
        const char *project = strcmp(request->param[0], "-") == 0 ? "" : request->param[0];

        return lac_access_may(app->people, who, project, right, "project", response);
    }
    if (strcmp(route->pattern, "/api/v1/compare") == 0) {
        return may_compare(app, request, response);
    }
    return (lac_people_rights_anywhere(app->people, who) & right) != 0 ||
           forbid(response, "you are not a member of any project that allows this");
}
