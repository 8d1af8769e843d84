/*
 * Resumable uploads: tus 1.0.0 with creation, creation-with-upload, creation-defer-length,
 * checksum, expiration and termination. What is refused is refused before the body is read; the
 * state is server/ingest's.
 */
#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "server/api/app.h"
#include "server/api/tus_request.h"
#include "server/http/request.h"
#include "server/ingest/resumable.h"
#include "server/ingest/upload_metadata.h"
#include "server/json/json_out.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char extensions[] =
    "creation,creation-with-upload,creation-defer-length,checksum,expiration,termination";

/* Every reply of these addresses says which protocol it speaks. */
static void add_version(struct lac_response *response)
{
    lac_response_header(response, "Tus-Resumable", "1.0.0");
}

static void refuse_fields(const struct lac_tus_refusal *refusal, struct lac_response *response)
{
    lac_response_error(response, refusal->http_status, refusal->code, "%s", refusal->message);
    if (refusal->http_status == 412) {
        lac_response_header(response, "Tus-Version", "1.0.0");
    }
}

static bool version_is_ours(const struct lac_request *request, struct lac_response *response,
                            bool is_required)
{
    struct lac_tus_refusal refusal;

    add_version(response);
    if (lac_tus_version_is_ours(request->field[LAC_FIELD_TUS_RESUMABLE], is_required, &refusal)) {
        return true;
    }
    refuse_fields(&refusal, response);
    return false;
}

static void refuse(const struct lac_app *app, enum lac_upload_answer answer,
                   struct lac_response *response)
{
    switch (answer) {
    case LAC_UPLOAD_OK:
        break;
    case LAC_UPLOAD_UNKNOWN:
        lac_response_error(response, 404, "not_found", "no such upload");
        break;
    case LAC_UPLOAD_GONE:
        lac_response_error(response, 410, "upload_gone", "this upload was ended, or has expired");
        break;
    case LAC_UPLOAD_BUSY:
        lac_response_error(response, 423, "upload_busy",
                           "another request is writing to this upload");
        break;
    case LAC_UPLOAD_OFFSET:
        lac_response_error(response, 409, "upload_offset",
                           "the upload is at another offset: ask with HEAD");
        break;
    case LAC_UPLOAD_TOO_LONG:
        lac_response_error(response, 413, "body_too_large",
                           "longer than the upload's length, or than the %" PRIu64
                           " bytes allowed for an upload",
                           lac_resumable_bytes_max(app->uploads));
        break;
    case LAC_UPLOAD_TOO_MANY:
        lac_response_error(response, 429, "too_many_uploads",
                           "too many incomplete uploads, or too large ones: end one, or try later");
        lac_response_header(response, "Retry-After", "60");
        break;
    case LAC_UPLOAD_NO_MEMORY:
        lac_response_error(response, 503, "out_of_memory", "no memory for the upload");
        break;
    }
}

/* -- replies ------------------------------------------------------------------------------------*/

static void add_expires(struct lac_response *response, int64_t expires_unix_s)
{
    const time_t seconds = (time_t)expires_unix_s;
    struct tm parts;
    char text[64];

    if (gmtime_r(&seconds, &parts) != NULL &&
        strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0) {
        lac_response_header(response, "Upload-Expires", "%s", text);
    }
}

static void add_state(struct lac_response *response, const struct lac_upload_state *state)
{
    lac_response_header(response, "Upload-Offset", "%" PRIu64, state->offset_bytes);
    add_expires(response, state->expires_unix_s);
    if (state->trace[0] != '\0') {
        lac_response_header(response, "Lacuna-Trace-Id", "%s", state->trace);
    }
}

static void write_state(struct lac_response *response, const struct lac_upload_state *state)
{
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "id", state->id);
    lac_json_uint(&json, "offset_bytes", state->offset_bytes);
    if (state->length_bytes > 0) {
        lac_json_uint(&json, "length_bytes", state->length_bytes);
    } else {
        lac_json_null(&json, "length_bytes");
    }
    lac_json_text(&json, "trace", state->trace[0] != '\0' ? state->trace : NULL);
    lac_json_close(&json, '}');
}

void lac_api_upload_options(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    const struct lac_app *app = app_context;

    (void)request;
    add_version(response);
    response->http_status = 204;
    lac_response_header(response, "Tus-Version", "1.0.0");
    lac_response_header(response, "Tus-Extension", "%s", extensions);
    lac_response_header(response, "Tus-Checksum-Algorithm", "sha1,sha256");
    lac_response_header(response, "Tus-Max-Size", "%" PRIu64,
                        lac_resumable_bytes_max(app->uploads));
}

void lac_api_upload_status(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_upload_state state;
    enum lac_upload_answer answer;

    if (!version_is_ours(request, response, false)) {
        return;
    }
    answer = lac_resumable_look(app->uploads, request->param[0], &state);
    if (answer != LAC_UPLOAD_OK) {
        refuse(app, answer, response);
        return;
    }
    add_state(response, &state);
    if (state.length_bytes > 0) {
        lac_response_header(response, "Upload-Length", "%" PRIu64, state.length_bytes);
    } else {
        lac_response_header(response, "Upload-Defer-Length", "1");
    }
    if (state.metadata[0] != '\0' &&
        !lac_response_long_header(response, "Upload-Metadata", state.metadata)) {
        refuse(app, LAC_UPLOAD_NO_MEMORY, response);
    } else {
        write_state(response, &state);
    }
    lac_upload_state_done(&state);
}

void lac_api_upload_delete(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct lac_app *app = app_context;
    enum lac_upload_answer answer;

    if (!version_is_ours(request, response, true)) {
        return;
    }
    answer = lac_resumable_remove(app->uploads, request->param[0]);
    if (answer == LAC_UPLOAD_OK) {
        lac_api_note(app, request, "end-upload", "%s", request->param[0]);
        response->http_status = 204;
    } else {
        refuse(app, answer, response);
    }
}

/* -- requests that write ------------------------------------------------------------------------*/

static struct lac_tus_fields fields_of(const struct lac_request *request)
{
    return (struct lac_tus_fields){
        .version = request->field[LAC_FIELD_TUS_RESUMABLE],
        .length = request->field[LAC_FIELD_UPLOAD_LENGTH],
        .defer_length = request->field[LAC_FIELD_UPLOAD_DEFER_LENGTH],
        .offset = request->field[LAC_FIELD_UPLOAD_OFFSET],
        .metadata = request->field[LAC_FIELD_UPLOAD_METADATA],
        .checksum = request->field[LAC_FIELD_UPLOAD_CHECKSUM],
        .concat = request->field[LAC_FIELD_UPLOAD_CONCAT],
        .content_type = request->field[LAC_FIELD_CONTENT_TYPE],
        .content_length = request->content_length,
    };
}

static bool take(struct lac_app *app, const struct lac_upload_request *upload, void **ret_sink,
                 struct lac_response *response)
{
    struct lac_upload_writer *taken = NULL;
    const enum lac_upload_answer answer = lac_resumable_take(app->uploads, upload, &taken);

    refuse(app, answer, response);
    *ret_sink = taken;
    return answer == LAC_UPLOAD_OK;
}

/* A token that is for one project need not name it. @return false: no such room */
static bool add_project(const struct lac_request *request, const char **metadata, char *room,
                        size_t capacity_bytes)
{
    struct lac_upload_metadata given = {0};
    struct lac_error error;
    char project[LAC_BASE64_TEXT_BYTES(LAC_PROJECT_NAME_MAX)];
    int length;

    if (request->who.project[0] == '\0' ||
        (*metadata != NULL && (lac_upload_metadata_parse(*metadata, &given, &error) != LAC_OK ||
                               given.project[0] != '\0'))) {
        return true;
    }
    lac_base64_encode(request->who.project, strlen(request->who.project), project);
    length = snprintf(room, capacity_bytes, "%s%sproject %s", *metadata != NULL ? *metadata : "",
                      *metadata != NULL && **metadata != '\0' ? "," : "", project);
    *metadata = room;
    return length > 0 && (size_t)length < capacity_bytes && length <= LAC_METADATA_BYTES_MAX;
}

static bool create_open(void *app_context, const struct lac_request *request, void **ret_sink,
                        struct lac_response *response)
{
    struct lac_tus_fields fields = fields_of(request);
    struct lac_upload_owner owner = {0};
    struct lac_upload_request upload;
    struct lac_tus_refusal refusal;
    char metadata[LAC_METADATA_BYTES_MAX + LAC_BASE64_TEXT_BYTES(LAC_PROJECT_NAME_MAX) + 16];

    add_version(response);
    if (!add_project(request, &fields.metadata, metadata, sizeof(metadata))) {
        lac_response_error(response, 400, "bad_request", "Upload-Metadata is too long");
        return false;
    }
    if (!lac_tus_read_create(&fields, &upload, &refusal)) {
        refuse_fields(&refusal, response);
        return false;
    }
    (void)snprintf(owner.name, sizeof(owner.name), "%s", request->who.name);
    (void)snprintf(owner.token, sizeof(owner.token), "%s", request->who.token);
    upload.owner = &owner;
    return take(app_context, &upload, ret_sink, response);
}

static bool append_open(void *app_context, const struct lac_request *request, void **ret_sink,
                        struct lac_response *response)
{
    const struct lac_tus_fields fields = fields_of(request);
    struct lac_upload_request upload;
    struct lac_tus_refusal refusal;

    add_version(response);
    if (!lac_tus_read_append(&fields, request->param[0], &upload, &refusal)) {
        refuse_fields(&refusal, response);
        return false;
    }
    return take(app_context, &upload, ret_sink, response);
}

static enum lac_status write_data(void *sink, const uint8_t *bytes, size_t size_bytes,
                                  struct lac_error *reterr)
{
    return lac_upload_writer_write(sink, bytes, size_bytes, reterr);
}

/* @return whether the body was taken; else the response says why not */
static bool finish(void *sink, struct lac_upload_state *state, struct lac_response *response)
{
    struct lac_error error = {0};
    bool matches = true;
    enum lac_status status = lac_upload_writer_finish(sink, &matches, state, &error);

    if (!matches) {
        lac_upload_state_done(state);
        lac_response_error(response, 460, "checksum_mismatch",
                           "the body does not match its checksum: none of it was kept");
        return false;
    }
    if (status != LAC_OK) {
        lac_api_fail(response, &error);
    }
    return status == LAC_OK;
}

static void create_finish(void *sink, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_upload_state state;

    if (!finish(sink, &state, response)) {
        return;
    }
    response->http_status = 201;
    lac_response_header(response, "Location", "%s/api/v1/uploads/%s", request->base_path, state.id);
    add_state(response, &state);
    write_state(response, &state);
    lac_upload_state_done(&state);
}

static void append_finish(void *sink, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_upload_state state;

    (void)request;
    if (!finish(sink, &state, response)) {
        return;
    }
    response->http_status = 204;
    add_state(response, &state);
    lac_upload_state_done(&state);
}

static void cancel(void *sink)
{
    lac_upload_writer_cancel(sink);
}

const struct lac_body_handler lac_api_upload_create = {
    .open = create_open,
    .data = write_data,
    .finish = create_finish,
    .cancel = cancel,
};

const struct lac_body_handler lac_api_upload_append = {
    .open = append_open,
    .data = write_data,
    .finish = append_finish,
    .cancel = cancel,
};

/* -- clock --------------------------------------------------------------------------------------*/

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Two of the four time stamps of a probe; the client has the others. */
void lac_api_clock(void *app, const struct lac_request *request, struct lac_response *response)
{
    const int64_t receive_ns = now_ns();
    struct lac_json json;

    (void)app;
    (void)request;
    response->may_gzip = false;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_int_text(&json, "receive_ns", receive_ns);
    lac_json_int_text(&json, "send_ns", now_ns());
    lac_json_close(&json, '}');
}
