#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/base/log.h"
#include "server/http/request.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/json/json_out.h"
#include "server/store/store.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

void lac_api_healthz(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    const struct lac_app *const app = app_context;
    struct lac_json json;

    (void)request;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "status", "ok");
    lac_json_text(&json, "node", app->stands_by ? "standby" : "main");
    lac_json_text(&json, "version", LAC_VERSION);
    lac_json_close(&json, '}');
}

/* -- metrics ---------------------------------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
    char text[128];
    FILE *file = fopen("/proc/self/statm", "re"); /* pages: total, resident, ... */
    const char *space = NULL;

    if (file == NULL) {
        return 0;
    }
    if (fgets(text, sizeof(text), file) != NULL) {
        space = strchr(text, ' ');
    }
    (void)fclose(file);
    return space == NULL ? 0 : strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_ingest_metrics(struct lac_app *app, struct lac_buffer *out)
{
    struct lac_ingest_stats stats = {0};

    lac_ingest_stats(app->ingest, &stats);
    lac_buffer_printf(out,
                      "# TYPE lacuna_uploads_total counter\n"
                      "lacuna_uploads_total{result=\"started\"} %" PRIu64 "\n"
                      "lacuna_uploads_total{result=\"committed\"} %" PRIu64 "\n"
                      "lacuna_uploads_total{result=\"aborted\"} %" PRIu64 "\n"
                      "# TYPE lacuna_upload_bytes_total counter\n"
                      "lacuna_upload_bytes_total %" PRIu64 "\n"
                      "# TYPE lacuna_imports_total counter\n"
                      "lacuna_imports_total{result=\"done\"} %" PRIu64 "\n"
                      "lacuna_imports_total{result=\"failed\"} %" PRIu64 "\n"
                      "# TYPE lacuna_imports gauge\n"
                      "lacuna_imports{state=\"running\"} %" PRIu64 "\n"
                      "lacuna_imports{state=\"queued\"} %" PRIu64 "\n"
                      "# TYPE lacuna_import_memory_bytes gauge\n"
                      "lacuna_import_memory_bytes{kind=\"budget\"} %" PRIu64 "\n"
                      "lacuna_import_memory_bytes{kind=\"reserved\"} %" PRIu64 "\n",
                      stats.uploads_started, stats.uploads_committed, stats.uploads_aborted,
                      stats.upload_bytes, stats.imports_done, stats.imports_failed,
                      stats.imports_running, stats.imports_queued, stats.memory_budget_bytes,
                      stats.memory_reserved_bytes);
}

static void write_upload_metrics(struct lac_app *app, struct lac_buffer *out)
{
    struct lac_resumable_stats stats = {0};

    lac_resumable_stats(app->uploads, &stats);
    lac_buffer_printf(out,
                      "# TYPE lacuna_resumable_uploads_total counter\n"
                      "lacuna_resumable_uploads_total{result=\"created\"} %" PRIu64 "\n"
                      "lacuna_resumable_uploads_total{result=\"completed\"} %" PRIu64 "\n"
                      "lacuna_resumable_uploads_total{result=\"expired\"} %" PRIu64 "\n"
                      "lacuna_resumable_uploads_total{result=\"removed\"} %" PRIu64 "\n"
                      "# TYPE lacuna_checksum_mismatches_total counter\n"
                      "lacuna_checksum_mismatches_total %" PRIu64 "\n"
                      "# TYPE lacuna_resumable_uploads_open gauge\n"
                      "lacuna_resumable_uploads_open %" PRIu64 "\n"
                      "# TYPE lacuna_resumable_uploads_open_bytes gauge\n"
                      "lacuna_resumable_uploads_open_bytes %" PRIu64 "\n",
                      stats.created, stats.completed, stats.expired, stats.removed,
                      stats.mismatched, stats.open_count, stats.open_bytes);
}

/** What is left of the disk for those who may write to it: uploads end before it is used up. */
static void write_disk_metrics(struct lac_app *app, struct lac_buffer *out)
{
    struct lac_ingest_stats stats = {0};
    struct statvfs disk;

    if (!app->stands_by) {
        lac_ingest_stats(app->ingest, &stats);
    }
    lac_buffer_printf(out,
                      "# TYPE lacuna_disk_low_water_bytes gauge\n"
                      "lacuna_disk_low_water_bytes %" PRIu64 "\n"
                      "# TYPE lacuna_uploads_refused_total counter\n"
                      "lacuna_uploads_refused_total{reason=\"disk\"} %" PRIu64 "\n"
                      "lacuna_uploads_refused_total{reason=\"quota\"} %" PRIu64 "\n",
                      stats.free_bytes_min, stats.refused_disk, stats.refused_quota);
    if (statvfs(lac_store_data_dir(app->store), &disk) == 0) {
        lac_buffer_printf(out,
                          "# TYPE lacuna_disk_free_bytes gauge\n"
                          "lacuna_disk_free_bytes %" PRIu64 "\n"
                          "# TYPE lacuna_disk_bytes gauge\n"
                          "lacuna_disk_bytes %" PRIu64 "\n",
                          (uint64_t)disk.f_bavail * disk.f_frsize,
                          (uint64_t)disk.f_blocks * disk.f_frsize);
    }
}

static void write_object_metrics(struct lac_app *app, struct lac_buffer *out)
{
    struct lac_store_objects objects;
    struct lac_error ignored = {0};

    if (lac_store_count_objects(app->store, &objects, &ignored) != LAC_OK || !objects.is_on) {
        return;
    }
    lac_buffer_printf(out,
                      "# TYPE lacuna_objects gauge\n"
                      "lacuna_objects %" PRIu64 "\n"
                      "# TYPE lacuna_objects_bytes gauge\n"
                      "lacuna_objects_bytes %" PRIu64 "\n"
                      "# TYPE lacuna_objects_waiting gauge\n"
                      "lacuna_objects_waiting %" PRIu64 "\n"
                      "# TYPE lacuna_object_copies_bytes gauge\n"
                      "lacuna_object_copies_bytes %" PRIu64 "\n"
                      "# TYPE lacuna_object_requests_total counter\n"
                      "lacuna_object_requests_total{kind=\"read\"} %" PRIu64 "\n"
                      "lacuna_object_requests_total{kind=\"write\"} %" PRIu64 "\n"
                      "# TYPE lacuna_object_retries_total counter\n"
                      "lacuna_object_retries_total %" PRIu64 "\n"
                      "# TYPE lacuna_object_failures_total counter\n"
                      "lacuna_object_failures_total %" PRIu64 "\n"
                      "# TYPE lacuna_object_bytes_total counter\n"
                      "lacuna_object_bytes_total{kind=\"read\"} %" PRIu64 "\n"
                      "lacuna_object_bytes_total{kind=\"write\"} %" PRIu64 "\n",
                      objects.object_count, objects.object_bytes, objects.waiting_count,
                      objects.copies_bytes, objects.reads, objects.writes, objects.retries,
                      objects.failures, objects.read_bytes, objects.written_bytes);
}

void lac_api_metrics(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    static const enum lac_trace_state states[] = {LAC_TRACE_RECEIVING, LAC_TRACE_IMPORTING,
                                                  LAC_TRACE_READY, LAC_TRACE_FAILED};
    struct lac_app *app = app_context;
    struct lac_buffer *out = &response->body;
    uint64_t counts[4] = {0};
    struct lac_error error = {0};

    (void)request;
    response->mime = "text/plain; version=0.0.4; charset=utf-8";
    lac_buffer_printf(out,
                      "# TYPE lacuna_build_info gauge\n"
                      "lacuna_build_info{version=\"%s\"} 1\n",
                      LAC_VERSION);
    lac_http_server_metrics(app->http, out);
    if (!app->stands_by) {
        write_ingest_metrics(app, out);
        write_upload_metrics(app, out);
    }
    write_disk_metrics(app, out);
    write_object_metrics(app, out);
    if (lac_store_count_states(app->store, counts, &error) == LAC_OK) {
        lac_buffer_puts(out, "# TYPE lacuna_traces gauge\n");
        for (unsigned i = 0; i < 4; i++) {
            lac_buffer_printf(out, "lacuna_traces{state=\"%s\"} %" PRIu64 "\n",
                              lac_trace_state_name(states[i]), counts[i]);
        }
    }
    lac_buffer_printf(out,
                      "# TYPE lacuna_store_cache_bytes gauge\n"
                      "lacuna_store_cache_bytes %" PRIu64 "\n"
                      "# TYPE lacuna_log_dropped_total counter\n"
                      "lacuna_log_dropped_total %" PRIu64 "\n"
                      "# TYPE process_resident_memory_bytes gauge\n"
                      "process_resident_memory_bytes %" PRIu64 "\n",
                      lac_store_cache_used_bytes(app->store), lac_log_dropped(), resident_bytes());
}

/* -- events ----------------------------------------------------------------------------------- */

void lac_api_events(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    (void)request;
    /* the browser comes back after 2 s; the comment makes proxies send the header at once */
    lac_buffer_puts(&response->body, "retry: 2000\n: ready\n\n");
}

/** A trace that is ready or has failed, for webhooks. */
static void tell_of_trace(struct lac_app *app, const char *id)
{
    struct lac_trace_row row = {0};
    struct lac_error error = {0};
    char object[LAC_ID_SIZE + 16];
    char path[LAC_ID_SIZE + 16];
    char text[800];

    if (app->tell_news == NULL || lac_store_get_trace(app->store, id, &row, &error) != LAC_OK) {
        return;
    }
    const bool is_ready = row.state == LAC_TRACE_READY;

    if (is_ready || row.state == LAC_TRACE_FAILED) {
        (void)snprintf(object, sizeof(object), "%s/%u", id, row.generation);
        (void)snprintf(path, sizeof(path), "/t/%s", id);
        if (is_ready) {
            (void)snprintf(text, sizeof(text), "%.200s is ready%s%s", row.name,
                           row.summary.present ? ": " : "",
                           row.summary.present ? row.summary.text : "");
        } else {
            (void)snprintf(text, sizeof(text), "%.200s could not be read: %.200s", row.name,
                           row.error_message != NULL ? row.error_message : "");
        }
        app->tell_news(app->webhooks,
                       &(struct lac_news){.event = is_ready ? "trace.ready" : "trace.failed",
                                          .project = row.project != NULL ? row.project : "",
                                          .object = object,
                                          .path = path,
                                          .text = text,
                                          .object_unix_ms = row.created_unix_ms});
    }
    lac_trace_row_done(&row);
}

static void tell_standby(struct lac_app *app, const char *id, bool deleted,
                         const struct lac_ingest_progress *progress)
{
    struct lac_store_moving moving;

    if (progress != NULL) {
        moving = (struct lac_store_moving){.state = (uint32_t)progress->state,
                                           .done_bytes = progress->done_bytes,
                                           .total_bytes = progress->total_bytes,
                                           .bytes_per_s = progress->bytes_per_s,
                                           .events = progress->events,
                                           .eta_s = progress->eta_s};
    }
    lac_store_tell_standby(app->store, id, deleted, progress != NULL ? &moving : NULL);
}

void lac_api_trace_changed(void *context, const char *id, bool deleted,
                           const struct lac_ingest_progress *progress)
{
    struct lac_app *app = context;
    struct lac_trace_row row = {0};
    struct lac_error error = {0};
    struct lac_buffer text = {0};
    struct lac_json json;
    char project[LAC_PROJECT_NAME_MAX + 1] = "";
    const bool is_moving = progress != NULL && (progress->state == LAC_TRACE_RECEIVING ||
                                                progress->state == LAC_TRACE_IMPORTING);

    tell_standby(app, id, deleted, is_moving ? progress : NULL);
    if (!deleted && !is_moving) {
        tell_of_trace(app, id);
    }
    if (app->http == NULL || !lac_http_server_has_streams(app->http)) {
        return;
    }
    lac_json_init(&json, &text);
    if (deleted) {
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "id", id);
        lac_json_close(&json, '}');
    } else if (lac_store_get_trace(app->store, id, &row, &error) == LAC_OK) {
        lac_api_write_trace(app->store, &json, NULL, &row, is_moving ? progress : NULL);
        (void)snprintf(project, sizeof(project), "%s", row.project != NULL ? row.project : "");
        lac_trace_row_done(&row);
    }
    if (text.status == LAC_OK && text.size_bytes > 0) {
        lac_http_server_publish(app->http, deleted ? NULL : project, deleted ? "deleted" : "trace",
                                text.bytes, text.size_bytes);
    }
    lac_buffer_done(&text);
}
