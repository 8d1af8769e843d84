#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "server/api/api_join.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/base/project_name.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/ingest/ingest.h"
#include "server/json/json_out.h"
#include "server/people/access.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -- Trace as JSON ---------------------------------------------------------------------------- */

void lac_api_write_time(struct lac_json *json, const char *key, int64_t unix_ms)
{
    const time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    char text[40];

    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        lac_json_null(json, key);
        return;
    }
    lac_json_text(json, key, text);
}

void lac_api_write_time_or_null(struct lac_json *json, const char *key, int64_t unix_ms)
{
    if (unix_ms != 0) {
        lac_api_write_time(json, key, unix_ms);
    } else {
        lac_json_null(json, key);
    }
}

static void write_sha256(struct lac_json *json, const struct lac_trace_row *row)
{
    char text[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];

    lac_hex_encode(row->sha256, sizeof(row->sha256), text);
    lac_json_text(json, "sha256", row->has_sha256 ? text : NULL);
}

static void write_progress(struct lac_json *json, const struct lac_ingest_progress *progress)
{
    if (progress == NULL) {
        lac_json_null(json, "progress");
        return;
    }
    lac_json_open(json, "progress", '{');
    lac_json_uint(json, "done_bytes", progress->done_bytes);
    lac_json_uint(json, "total_bytes", progress->total_bytes);
    lac_json_uint(json, "bytes_per_s", progress->bytes_per_s);
    lac_json_uint(json, "events", progress->events);
    lac_json_real(json, "eta_s", progress->eta_s);
    lac_json_close(json, '}');
}

/* Whose fault it is, and whether what was uploaded is still there to be tried again. */
static void write_error(const struct lac_store *store, struct lac_json *json,
                        const struct lac_trace_row *row)
{
    const bool is_hosts = lac_store_host_failed(row->error_code);
    bool is_kept;

    if (row->state != LAC_TRACE_FAILED) {
        lac_json_null(json, "error");
        return;
    }
    lac_json_open(json, "error", '{');
    lac_json_text(json, "code", row->error_code != NULL ? row->error_code : "import_failed");
    lac_json_text(json, "message",
                  row->error_message != NULL ? row->error_message : "the import failed");
    is_kept = is_hosts && lac_store_upload_is_kept(store, row->id);
    lac_json_text(json, "fault", is_hosts ? "host" : "file");
    lac_json_bool(json, "kept", is_kept);
    lac_json_bool(json, "can_retry", is_kept);
    lac_json_close(json, '}');
}

static void write_clock(struct lac_json *json, const struct lac_trace_row *row)
{
    if (!row->has_clock) {
        lac_json_null(json, "clock");
        return;
    }
    lac_json_open(json, "clock", '{');
    lac_json_int(json, "offset_ns", row->clock_offset_ns);
    lac_json_int(json, "error_ns", row->clock_error_ns);
    lac_json_close(json, '}');
}

/** Texts with '\n' between them; NULL: none. */
static void write_lines(struct lac_json *json, const char *key, const char *lines)
{
    lac_json_open(json, key, '[');
    while (lines != NULL && *lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        char *line = strndup(lines, length);

        lac_json_text(json, NULL, line);
        free(line);
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
    lac_json_close(json, ']');
}

static void write_ns_or_null(struct lac_json *json, const char *key, int64_t value_ns)
{
    if (value_ns == INT64_MIN) {
        lac_json_null(json, key);
    } else {
        lac_json_int(json, key, value_ns);
    }
}

static void write_summary(struct lac_json *json, const struct lac_trace_summary *summary)
{
    const char letter[2] = {summary->letter, '\0'};

    if (!summary->present) {
        lac_json_null(json, "summary");
        return;
    }
    lac_json_open(json, "summary", '{');
    lac_json_text(json, "cause", summary->cause);
    lac_json_text(json, "letter", letter);
    lac_json_text(json, "text", summary->text);
    write_ns_or_null(json, "step_mean_ns", summary->step_mean_ns);
    lac_json_real(json, "throughput_per_s", summary->throughput_per_s);
    lac_json_text(json, "throughput_unit", summary->throughput_unit);
    lac_json_real(json, "not_computing_pct", summary->not_computing_pct);
    lac_json_text(json, "next_change",
                  summary->next_change[0] != '\0' ? summary->next_change : NULL);
    lac_json_real(json, "gain_mid_pct", summary->gain_mid_pct);
    lac_json_real(json, "gain_low_pct", summary->gain_low_pct);
    lac_json_real(json, "gain_high_pct", summary->gain_high_pct);
    lac_json_text(json, "finding_id", summary->finding_id[0] != '\0' ? summary->finding_id : NULL);
    lac_json_text(json, "model", summary->model[0] != '\0' ? summary->model : NULL);
    lac_json_close(json, '}');
}

static void write_report(struct lac_json *json, const struct lac_trace_row *row)
{
    static const char *const severities[] = {"info", "repaired", "dropped"};

    lac_json_open(json, "import_report", '{');
    lac_json_uint(json, "dropped_count", row->dropped_count);
    lac_json_uint(json, "repaired_count", row->repaired_count);
    lac_json_open(json, "lines", '[');
    for (uint32_t i = 0; i < row->report_count; i++) {
        const struct lac_trace_report_line *line = &row->report[i];

        lac_json_open(json, NULL, '{');
        lac_json_text(json, "code", line->code);
        lac_json_text(json, "severity",
                      line->severity >= 0 && line->severity < 3 ? severities[line->severity]
                                                                : "info");
        lac_json_uint(json, "count", line->count);
        lac_json_uint(json, "first_offset_bytes", line->first_offset_bytes);
        lac_json_text(json, "text", line->text);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

void lac_api_write_trace(const struct lac_store *store, struct lac_json *json, const char *key,
                         const struct lac_trace_row *row,
                         const struct lac_ingest_progress *progress)
{
    lac_json_open(json, key, '{');
    lac_json_text(json, "id", row->id);
    lac_json_text(json, "name", row->name != NULL ? row->name : "");
    lac_json_text(json, "project", row->project != NULL ? row->project : "");
    lac_json_text(json, "file_name", row->file_name);
    lac_json_text(json, "notes", row->notes != NULL ? row->notes : "");
    write_lines(json, "tags", row->tags);
    lac_json_text(json, "state", lac_trace_state_name(row->state));
    lac_api_write_time(json, "created_at", row->created_unix_ms);
    write_sha256(json, row);
    lac_json_uint(json, "size_bytes", row->size_bytes);
    lac_json_text(json, "run", row->run[0] != '\0' ? row->run : NULL);
    if (row->rank >= 0 && row->state == LAC_TRACE_READY) {
        lac_json_int(json, "rank", row->rank);
    } else {
        lac_json_null(json, "rank");
    }
    lac_json_text(json, "host", row->host);
    write_clock(json, row);
    lac_json_bool(json, "simulated", row->is_simulated);
    write_progress(json, progress);
    write_error(store, json, row);
    lac_json_uint(json, "generation", row->generation);
    lac_json_uint(json, "event_count", row->event_count);
    lac_json_uint(json, "slice_count", row->slice_count);
    lac_json_int(json, "duration_ns", row->duration_ns);
    lac_json_int_text(json, "t0_ns", row->t0_ns);
    lac_json_text(json, "format", row->format != NULL ? row->format : "");
    lac_json_uint(json, "device_count", row->device_count);
    write_lines(json, "device_names", row->device_names);
    write_summary(json, &row->summary);
    write_report(json, row);
    lac_json_close(json, '}');
}

static void write_with_progress(struct lac_app *app, struct lac_json *json,
                                const struct lac_trace_row *row)
{
    struct lac_ingest_progress progress = {0};
    const bool is_moving =
        (row->state == LAC_TRACE_RECEIVING || row->state == LAC_TRACE_IMPORTING) &&
        app->ingest != NULL && lac_ingest_progress(app->ingest, row->id, &progress);

    lac_api_write_trace(app->store, json, NULL, row, is_moving ? &progress : NULL);
}

/* -- list, get, delete ------------------------------------------------------------------------ */

void lac_api_list(void *app_context, const struct lac_request *request,
                  struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_trace_list list = {0};
    struct lac_error error = {0};
    struct lac_json json;
    char *among = NULL;
    int64_t limit;

    if (!lac_api_int(request, response, "limit", 1, 1000, 100, &limit)) {
        return;
    }
    if (!lac_access_readable(app->people, app->store, &request->who, &among, response)) {
        return;
    }
    const struct lac_trace_query query = {
        .text = lac_target_get(request->target, "q"),
        .project = lac_target_get(request->target, "project"),
        .run = lac_target_get(request->target, "run"),
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
        .among = among,
    };
    const enum lac_status status = lac_store_list_traces(app->store, &query, &list, &error);

    free(among);
    if (status != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "traces", '[');
    for (uint32_t i = 0; i < list.count; i++) {
        write_with_progress(app, &json, &list.rows[i]);
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", list.has_more ? list.next : NULL);
    lac_json_close(&json, '}');
    lac_trace_list_done(&list);
}

void lac_api_get(void *app_context, const struct lac_request *request,
                 struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_trace_row row = {0};
    struct lac_error error = {0};
    struct lac_json json;

    if (!lac_store_id_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return;
    }
    if (lac_store_get_trace(app->store, request->param[0], &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    write_with_progress(app, &json, &row);
    lac_trace_row_done(&row);
}

void lac_api_delete(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_trace_row row = {0};
    struct lac_error error = {0};
    enum lac_status status;

    if (!lac_store_id_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return;
    }
    if (lac_store_get_trace(app->store, request->param[0], &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    status = lac_ingest_delete(app->ingest, request->param[0], &error);
    if (status == LAC_OK) {
        lac_api_note(app, request, "delete-trace", "%s%s%s: %s", row.id,
                     row.project[0] != '\0' ? " of " : "", row.project, row.name);
    }
    lac_trace_row_done(&row);
    if (status == LAC_ERR_MISUSE) {
        lac_response_error(response, 409, "receiving",
                           "this trace is being received: end its upload instead");
    } else if (status != LAC_OK) {
        lac_api_fail(response, &error);
    } else {
        response->http_status = 204;
    }
}

void lac_api_retry(void *app_context, const struct lac_request *request,
                   struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    struct lac_json json;
    enum lac_status status;

    if (!lac_store_id_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return;
    }
    status = lac_ingest_retry(app->ingest, request->param[0], &error);
    if (status == LAC_ERR_MISUSE) {
        lac_response_error(response, 409, "cannot_retry", "%s", error.message);
        return;
    }
    if (status != LAC_OK) {
        lac_response_fail(response, &error);
        return;
    }
    response->http_status = 202;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "id", request->param[0]);
    lac_json_text(&json, "state", lac_trace_state_name(LAC_TRACE_IMPORTING));
    lac_json_close(&json, '}');
}

static void answer_analysis(struct lac_trace_file *file, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_error error = {0};
    char *text = NULL;
    size_t length = 0;

    if (lac_api_is_unchanged(request, file, response)) {
        return;
    }
    if (lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &length, &error) == LAC_OK) {
        lac_buffer_add(&response->body, text, length);
        free(text);
    } else {
        lac_api_fail(response, &error);
    }
}

void lac_api_analysis(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_analysis);
}

/* -- upload ----------------------------------------------------------------------------------- */

struct upload_sink {
    struct lac_app *app;
    struct lac_upload *upload;
    struct lac_api_join *join; /**< NULL: a trace of its own */
};

static void sink_done(struct upload_sink *sink)
{
    lac_api_join_done(sink->join);
    free(sink);
}

static enum lac_status upload_begin(void *app_context, const struct lac_request *request,
                                    void **ret_sink, struct lac_error *reterr)
{
    struct lac_app *app = app_context;
    const char *reuse = lac_target_get(request->target, "reuse");
    struct lac_upload_options options = {
        .name = lac_target_get(request->target, "name"),
        .project =
            lac_api_upload_project(&request->who, lac_target_get(request->target, "project")),
        .total_bytes = request->content_length == LAC_SIZE_UNKNOWN ? 0 : request->content_length,
        .token = request->who.token,
        .reuse_existing = reuse != NULL && strcmp(reuse, "1") == 0,
    };
    struct upload_sink *sink;
    enum lac_status status;

    if (request->content_length == 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the body is empty: send the trace file as the whole body");
    }
    if (options.project != NULL && options.project[0] != '\0' &&
        !lac_project_name_is_valid(options.project)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, LAC_PROJECT_NAME_RULE);
    }
    sink = calloc(1, sizeof(*sink));
    if (sink == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the upload");
    }
    sink->app = app;
    status = lac_api_join_open(app, request, &sink->join, reterr);
    if (status == LAC_OK) {
        options.total_bytes = sink->join == NULL ? options.total_bytes : 0;
        status = lac_ingest_begin(app->ingest, &options, &sink->upload, reterr);
    }
    if (status == LAC_OK && sink->join != NULL) {
        status = lac_api_join_start(sink->join, sink->upload, reterr);
        if (status != LAC_OK) {
            lac_upload_abort(sink->upload);
        }
    }
    if (status != LAC_OK) {
        sink_done(sink);
        return status;
    }
    *ret_sink = sink;
    return LAC_OK;
}

static enum lac_status upload_data(void *sink_context, const uint8_t *bytes, size_t size_bytes,
                                   struct lac_error *reterr)
{
    struct upload_sink *sink = sink_context;

    return lac_upload_write(sink->upload, bytes, size_bytes, reterr);
}

/* Of a trace that was there already: perhaps it is still imported. */
static enum lac_trace_state state_of(const struct lac_app *app, const char *id)
{
    enum lac_trace_state state = LAC_TRACE_IMPORTING;
    struct lac_trace_row row = {0};
    struct lac_error error;

    if (lac_store_get_trace(app->store, id, &row, &error) == LAC_OK) {
        state = row.state;
        lac_trace_row_done(&row);
    }
    return state;
}

static void upload_finish(void *sink_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct upload_sink *sink = sink_context;
    struct lac_error error = {0};
    struct lac_json json;
    char id[LAC_ID_SIZE] = "";
    bool existed = false;

    if (sink->join != NULL && lac_api_join_end(sink->join, sink->upload, &error) != LAC_OK) {
        lac_upload_abort(sink->upload);
        lac_api_fail(response, &error);
        sink_done(sink);
        return;
    }
    if (lac_upload_commit(sink->upload, id, &existed, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        sink_done(sink);
        return;
    }
    response->http_status = existed ? 200 : 201;
    lac_response_header(response, "Location", "%s/api/v1/traces/%s", request->base_path, id);
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "id", id);
    lac_json_text(&json, "state",
                  lac_trace_state_name(existed ? state_of(sink->app, id) : LAC_TRACE_IMPORTING));
    lac_json_close(&json, '}');
    sink_done(sink);
}

static void upload_cancel(void *sink_context)
{
    struct upload_sink *sink = sink_context;

    lac_upload_abort(sink->upload);
    sink_done(sink);
}

const struct lac_body_handler lac_api_upload = {
    .begin = upload_begin,
    .data = upload_data,
    .finish = upload_finish,
    .cancel = upload_cancel,
};
