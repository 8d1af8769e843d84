/* Bookmarks of a trace's timeline: who may read the trace may comment on it; each changes their own,
 * and who may write to the trace changes all. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/report_evidence.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/store/bookmarks.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* times are numbers of JSON: whole below 2^53 */
#define TIME_MAX_NS (((int64_t)1 << 53) - 1)

/** What the parameters of a path are ids of. */
static const char *const nouns[] = {"trace", "bookmark"};

static void write_bookmark(void *context, const struct lac_bookmark *bookmark)
{
    struct lac_json *json = context;

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", bookmark->id);
    lac_json_int(json, "start_ns", bookmark->start_ns);
    lac_json_int(json, "dur_ns", bookmark->dur_ns);
    lac_json_text(json, "note", bookmark->note);
    lac_json_text(json, "author", bookmark->author);
    lac_api_write_time(json, "created_at", bookmark->at_unix_ms);
    lac_api_write_time_or_null(json, "edited_at", bookmark->edited_unix_ms);
    lac_json_close(json, '}');
}

/** A list, or the one bookmark. */
static void answer(struct lac_app *app, const char *trace, const char *id,
                   struct lac_response *response)
{
    struct lac_error error = {0};
    struct lac_json json;

    lac_json_init(&json, &response->body);
    if (id == NULL) {
        lac_json_open(&json, NULL, '{');
        lac_json_open(&json, "bookmarks", '[');
    }
    if (lac_bookmarks_list(app->store, trace, id, write_bookmark, &json, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    if (id == NULL) {
        lac_json_close(&json, ']');
        lac_json_null(&json, "next");
        lac_json_close(&json, '}');
    }
}

void lac_api_bookmarks(void *app_context, const struct lac_request *request,
                       struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    if (!lac_api_are_ids(request, nouns, 1, response)) {
        return;
    }
    if (lac_store_get_trace(app->store, request->param[0], &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_trace_row_done(&row);
    answer(app, request->param[0], NULL, response);
}

static enum lac_status read_time(const struct json_object *object, const char *key, int64_t *ret_ns,
                                 struct lac_error *reterr)
{
    const enum lac_status status = lac_json_read_int(object, key, ret_ns, reterr);

    return status == LAC_OK && (*ret_ns < 0 || *ret_ns > TIME_MAX_NS)
               ? lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is out of range", key)
               : status;
}

/** What the body says. @param times NULL: only the note @return false: the response says why */
static bool read_body(const struct lac_request *request, struct lac_bookmark *times, char *note,
                      struct lac_response *response)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_API_COMMENT_BYTES,
                                                  .depth_max = 2};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    enum lac_status status =
        lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error);

    if (status == LAC_OK && times != NULL) {
        status = read_time(object, "start_ns", &times->start_ns, &error);
        if (status == LAC_OK && lac_json_read_has(object, "dur_ns")) {
            status = read_time(object, "dur_ns", &times->dur_ns, &error);
        }
    }
    if (status == LAC_OK && (times == NULL || lac_json_read_has(object, "note"))) {
        status = lac_json_read_text(object, "note", note, LAC_BOOKMARK_NOTE_BYTES, &error);
    }
    lac_json_read_done(object);
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
    } else if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "send a JSON object with %s: %s",
                           times != NULL ? "start_ns, dur_ns and note" : "note", error.message);
    }
    return status == LAC_OK;
}

void lac_api_bookmark_add(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_app *app = app_context;
    char note[LAC_BOOKMARK_NOTE_BYTES] = "";
    char id[LAC_ID_SIZE] = "";
    struct lac_bookmark bookmark = {.note = note, .author = lac_api_asker(request)};
    struct lac_error error = {0};

    if (!lac_api_are_ids(request, nouns, 1, response) ||
        !read_body(request, &bookmark, note, response)) {
        return;
    }
    if (lac_bookmarks_add(app->store, request->param[0], &bookmark, id, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    response->http_status = 201;
    answer(app, request->param[0], id, response);
    lac_api_trace_changed(app, request->param[0], false, NULL);
}

/** Whose bookmarks the asker may change: their own, or with the right to write anybody's. */
static const char *whose(struct lac_app *app, const struct lac_request *request)
{
    return lac_api_may_write(app, request, LAC_OWNED_TRACE) ? NULL : lac_api_asker(request);
}

void lac_api_bookmark_change(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    struct lac_app *app = app_context;
    char note[LAC_BOOKMARK_NOTE_BYTES] = "";
    struct lac_error error = {0};

    if (!lac_api_are_ids(request, nouns, 2, response) ||
        !read_body(request, NULL, note, response)) {
        return;
    }
    if (lac_bookmarks_change(app->store, request->param[0], request->param[1], whose(app, request),
                             note, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    answer(app, request->param[0], request->param[1], response);
    lac_api_trace_changed(app, request->param[0], false, NULL);
}

void lac_api_bookmark_delete(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (!lac_api_are_ids(request, nouns, 2, response)) {
        return;
    }
    if (lac_bookmarks_delete(app->store, request->param[0], request->param[1], whose(app, request),
                             &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "delete-bookmark", "%s of trace %s", request->param[1],
                 request->param[0]);
    response->http_status = 204;
    lac_api_trace_changed(app, request->param[0], false, NULL);
}
