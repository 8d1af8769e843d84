/* /hangs, and what launchers say of theirs: /uploads/{id}/hang. */

#include "analysis/model/status.h"
#include "collector/base/monotonic.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/hangs/hangs.h"
#include "server/http/request.h"
#include "server/ingest/resumable.h"
#include "server/ingest/upload_metadata.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/people.h"
#include "server/store/catalog.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- what is over ---- */

static bool is_over(void *context, const char *upload)
{
    struct lac_app *app = context;
    struct lac_upload_state state;
    const enum lac_upload_answer answer = lac_resumable_look(app->uploads, upload, &state);
    bool is_complete = false;

    if (answer == LAC_UPLOAD_OK) {
        is_complete = state.trace[0] != '\0';
        lac_upload_state_done(&state);
    }
    return is_complete || answer == LAC_UPLOAD_UNKNOWN || answer == LAC_UPLOAD_GONE;
}

/* ---- what is told ---- */

/* A number that may be missing or null: then `otherwise`. @return false: the response says why */
static bool read_number(const struct json_object *object, const char *key, int64_t least,
                        int64_t otherwise, int64_t *ret, struct lac_response *response)
{
    struct lac_error error = {0};

    *ret = otherwise;
    if (!lac_json_read_has(object, key) || lac_json_read_is_null(object, key)) {
        return true;
    }
    if (lac_json_read_int(object, key, ret, &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
        return false;
    }
    if (*ret < least || *ret > INT64_C(9007199254740991)) {
        lac_response_error(response, 400, "bad_request", "\"%s\" is out of range", key);
        return false;
    }
    return true;
}

/* The page, people's terminals and messages show it in one line. */
static void make_line(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
    }
}

static bool read_line(const struct json_object *object, const char *key, char *out,
                      size_t capacity_bytes, struct lac_response *response)
{
    if (!lac_accounts_text(object, key, out, capacity_bytes, response)) {
        return false;
    }
    make_line(out);
    return true;
}

static bool read_hang(const struct lac_request *request, struct lac_hang *ret,
                      struct lac_response *response)
{
    struct json_object *body = NULL;
    bool is_good;

    if (!lac_accounts_read(request, &body, response)) {
        return false;
    }
    is_good = read_number(body, "after_s", 0, 0, &ret->after_s, response) &&
              read_number(body, "steps", 0, 0, &ret->steps, response) &&
              read_number(body, "rank", -1, -1, &ret->rank, response) &&
              read_line(body, "doing", ret->doing, sizeof(ret->doing), response) &&
              read_line(body, "where", ret->where, sizeof(ret->where), response) &&
              read_line(body, "source", ret->source, sizeof(ret->source), response) &&
              read_line(body, "others", ret->others, sizeof(ret->others), response);
    lac_json_read_done(body);
    if (is_good && ret->doing[0] == '\0') {
        lac_response_error(response, 400, "bad_request", "say what the job is doing: \"doing\"");
        is_good = false;
    }
    return is_good;
}

/* The upload that it belongs to. @return false: the response says why */
static bool find_upload(struct lac_app *app, const struct lac_request *request,
                        struct lac_hang *ret, struct lac_response *response)
{
    struct lac_upload_metadata metadata = {0};
    struct lac_upload_state state;
    struct lac_error error = {0};
    const enum lac_upload_answer answer =
        lac_resumable_look(app->uploads, request->param[0], &state);
    bool is_open;

    if (answer == LAC_UPLOAD_GONE) {
        lac_response_error(response, 410, "upload_gone", "this upload was ended, or has expired");
        return false;
    }
    if (answer == LAC_UPLOAD_NO_MEMORY) {
        lac_response_error(response, 503, "out_of_memory", "no memory for the upload");
        return false;
    }
    if (answer != LAC_UPLOAD_OK) {
        lac_response_error(response, 404, "not_found", "no such upload");
        return false;
    }
    is_open = state.trace[0] == '\0';
    if (lac_upload_metadata_parse(state.metadata, &metadata, &error) == LAC_OK) {
        (void)snprintf(ret->project, sizeof(ret->project), "%s", metadata.project);
        (void)snprintf(ret->name, sizeof(ret->name), "%s", metadata.name);
        (void)snprintf(ret->run, sizeof(ret->run), "%s", metadata.run);
    }
    (void)snprintf(ret->upload, sizeof(ret->upload), "%s", state.id);
    lac_upload_state_done(&state);
    if (!is_open) {
        lac_response_error(response, 409, "upload_complete", "this recording is here already");
    }
    return is_open;
}

static void tell(struct lac_app *app, const char *event, const struct lac_hang *hang)
{
    char object[64];
    char text[1600];

    if (app->tell_news == NULL) {
        return;
    }
    (void)snprintf(object, sizeof(object), "%s/%" PRId64, hang->upload, hang->since_unix_ms);
    if (strcmp(event, "run.hang") == 0) {
        (void)snprintf(text, sizeof(text), "%.200s: no progress for %" PRId64 " s: %s%s%s",
                       hang->name, hang->after_s, hang->doing, hang->others[0] != '\0' ? "; " : "",
                       hang->others);
    } else {
        (void)snprintf(text, sizeof(text), "%.200s goes on", hang->name);
    }
    app->tell_news(
        app->webhooks,
        &(struct lac_news){
            .event = event, .project = hang->project, .object = object, .path = "/", .text = text});
}

void lac_api_hang_put(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_hang hang = {.since_unix_ms = lac_now_unix_ms()};

    hang.heard_unix_ms = hang.since_unix_ms;
    hang.heard_ns = lac_monotonic_ns();
    if (!find_upload(app, request, &hang, response) || !read_hang(request, &hang, response)) {
        return;
    }
    lac_hangs_sweep(app->hangs, hang.heard_ns, is_over, app);
    switch (lac_hangs_put(app->hangs, &hang)) {
    case LAC_HANGS_FULL:
        lac_response_error(response, 429, "too_many_hangs", "%d jobs hang already", LAC_HANGS_MAX);
        lac_response_header(response, "Retry-After", "60");
        return;
    case LAC_HANGS_NEW:
        tell(app, "run.hang", &hang);
        break;
    case LAC_HANGS_KNOWN:
    case LAC_HANGS_MORE:
        break;
    }
    response->http_status = 204;
}

void lac_api_hang_remove(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_hang hang = {0};
    bool is_last = false;

    if (!find_upload(app, request, &hang, response)) {
        return;
    }
    if (lac_hangs_remove(app->hangs, hang.upload, &hang, &is_last) && is_last) {
        tell(app, "run.resumed", &hang);
    }
    response->http_status = 204;
}

/* ---- the list ---- */

static void write_hang(struct lac_json *json, const struct lac_hang *hang)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "upload", hang->upload);
    lac_json_text(json, "project", hang->project[0] != '\0' ? hang->project : NULL);
    lac_json_text(json, "name", hang->name);
    lac_json_text(json, "run", hang->run[0] != '\0' ? hang->run : NULL);
    lac_api_write_time(json, "since", hang->since_unix_ms);
    lac_api_write_time(json, "heard_at", hang->heard_unix_ms);
    lac_json_int(json, "after_s", hang->after_s);
    lac_json_int(json, "steps", hang->steps);
    if (hang->rank >= 0) {
        lac_json_int(json, "rank", hang->rank);
    } else {
        lac_json_null(json, "rank");
    }
    lac_json_text(json, "doing", hang->doing);
    lac_json_text(json, "where", hang->where[0] != '\0' ? hang->where : NULL);
    lac_json_text(json, "source", hang->source[0] != '\0' ? hang->source : NULL);
    lac_json_text(json, "others", hang->others[0] != '\0' ? hang->others : NULL);
    lac_json_close(json, '}');
}

void lac_api_hangs(void *app_context, const struct lac_request *request,
                   struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_hang hang;
    struct lac_json json;

    if (app->uploads != NULL) { /* else another server holds them, and cannot be reached now */
        lac_hangs_sweep(app->hangs, lac_monotonic_ns(), is_over, app);
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "hangs", '[');
    for (uint32_t i = 0; app->uploads != NULL && lac_hangs_at(app->hangs, i, &hang); i++) {
        if ((lac_people_rights(app->people, &request->who, hang.project) & LAC_RIGHT_READ) != 0) {
            write_hang(&json, &hang);
        }
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}
