/* What people say of a trace: its name, project, notes and tags, whether it is the baseline, and
 * whether it is kept for good. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_read.h"
#include "server/people/access.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256, NOTES_BYTES = 8192, TAGS_BYTES = 1024 };

struct labels_asked {
    char name[NAME_BYTES];
    char project[NAME_BYTES];
    char notes[NOTES_BYTES];
    char tags[TAGS_BYTES];
    int baseline, pinned; /**< -1: stays as it is */
};

/** Of one line: no line breaks, no other control characters. */
static bool is_one_line(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

/** A member that may be missing: then *ret_text stays NULL. */
static enum lac_status read_text(const struct json_object *object, const char *key, char *out,
                                 size_t capacity_bytes, const char **ret_text,
                                 struct lac_error *reterr)
{
    enum lac_status status;

    if (!lac_json_read_has(object, key)) {
        return LAC_OK;
    }
    status = lac_json_read_text(object, key, out, capacity_bytes, reterr);
    if (status == LAC_OK && strcmp(key, "notes") != 0 && !is_one_line(out)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is more than one line", key);
    }
    if (status == LAC_OK) {
        *ret_text = out;
    }
    return status;
}

/** A switch that may be missing: then *ret_mark stays -1. */
static enum lac_status read_mark(const struct json_object *object, const char *key, int *ret_mark,
                                 struct lac_error *reterr)
{
    bool is_on = false;
    enum lac_status status = LAC_OK;

    if (lac_json_read_has(object, key)) {
        status = lac_json_read_bool(object, key, &is_on, reterr);
        *ret_mark = status == LAC_OK ? (int)is_on : -1;
    }
    return status;
}

static enum lac_status read_labels(const struct lac_request *request, struct labels_asked *asked,
                                   struct lac_trace_labels *ret_labels, struct lac_error *reterr)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_API_LABELS_BYTES,
                                                  .depth_max = 4};
    struct json_object *object = NULL;
    enum lac_status status =
        lac_json_read(request->body, request->body_size_bytes, &limits, &object, reterr);

    if (status == LAC_OK) {
        status =
            read_text(object, "name", asked->name, sizeof(asked->name), &ret_labels->name, reterr);
    }
    if (status == LAC_OK) {
        status = read_text(object, "project", asked->project, sizeof(asked->project),
                           &ret_labels->project, reterr);
    }
    if (status == LAC_OK) {
        status = read_text(object, "notes", asked->notes, sizeof(asked->notes), &ret_labels->notes,
                           reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "tags")) {
        status = lac_json_read_lines(object, "tags", asked->tags, sizeof(asked->tags), reterr);
        ret_labels->tags = asked->tags;
    }
    if (status == LAC_OK) {
        status = read_mark(object, "baseline", &asked->baseline, reterr);
    }
    if (status == LAC_OK) {
        status = read_mark(object, "pinned", &asked->pinned, reterr);
    }
    lac_json_read_done(object);
    return status;
}

/** What somebody said of a trace: names in full, of notes only that they are others now. */
static void note(struct lac_app *app, const struct lac_request *request,
                 const struct labels_asked *asked, const struct lac_trace_labels *labels)
{
    static const char *const marks[] = {"", "off", "on"};
    char name[NAME_BYTES + 16] = "";
    char project[NAME_BYTES + 16] = "";

    if (labels->name != NULL) {
        (void)snprintf(name, sizeof(name), ", name \"%s\"", labels->name);
    }
    if (labels->project != NULL) {
        (void)snprintf(project, sizeof(project), ", project \"%s\"", labels->project);
    }
    /* the long ones last: a line has 511 bytes */
    lac_api_note(app, request, "label-trace", "%s%s%s%s%s%s%s%s%s", request->param[0],
                 asked->baseline >= 0 ? ", baseline " : "", marks[asked->baseline + 1],
                 asked->pinned >= 0 ? ", pinned " : "", marks[asked->pinned + 1],
                 labels->notes != NULL ? ", notes" : "", labels->tags != NULL ? ", tags" : "",
                 project, name);
}

void lac_api_label(void *app_context, const struct lac_request *request,
                   struct lac_response *response)
{
    struct lac_app *app = app_context;
    const char *id = request->param[0];
    struct labels_asked asked = {.baseline = -1, .pinned = -1};
    struct lac_trace_labels labels = {0};
    struct lac_error error = {0};
    enum lac_status status = read_labels(request, &asked, &labels, &error);

    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
        return;
    }
    if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request",
                           "send a JSON object with name, project, notes, tags, "
                           "baseline or pinned: %s",
                           error.message);
        return;
    }
    if (!lac_store_id_is_valid(id)) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return;
    }
    if (labels.project != NULL && /* into a project that one may write to, too */
        !lac_access_may(app->people, &request->who, labels.project, LAC_RIGHT_WRITE, "project",
                        response)) {
        return;
    }
    if (lac_store_set_labels(app->store, id, &labels, &error) != LAC_OK ||
        lac_store_set_marks(app->store, id, asked.baseline, asked.pinned, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    note(app, request, &asked, &labels);
    lac_api_get(app, request, response);
    lac_api_trace_changed(app, id, false, NULL);
}
