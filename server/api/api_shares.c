/* Links that show one report, trace or view to whoever has them, without any other right. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/report_evidence.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/reports/document.h"
#include "server/reports/part.h"
#include "server/reports/snapshot.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REDACT_BYTES = 64 };

/** Left out unless the person who shares says otherwise. */
static const char redact_usual[] = "argv,hosts,paths,users";

#define SHARED_POLICY                                                                              \
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "              \
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"

/* ---- lists ---- */

static void write_share_members(struct lac_json *json, const struct lac_share *share)
{
    lac_json_text(json, "id", share->id);
    lac_json_text(json, "kind", share->kind);
    lac_json_text(json, "target", share->target);
    lac_json_open(json, "redact", '[');
    for (const char *at = share->redact; *at != '\0';) {
        const size_t length = strcspn(at, ",");

        lac_json_text_sized(json, NULL, at, length);
        at += length + (at[length] == ',');
    }
    lac_json_close(json, ']');
    lac_json_text(json, "author", share->author);
    lac_api_write_time(json, "created_at", share->created_unix_ms);
    lac_api_write_time_or_null(json, "expires_at", share->expires_unix_ms);
    lac_api_write_time_or_null(json, "used_at", share->used_unix_ms);
    lac_json_int(json, "used_count", share->used_count);
}

static void write_share(void *context, const struct lac_share *share)
{
    struct lac_json *json = context;

    lac_json_open(json, NULL, '{');
    write_share_members(json, share);
    lac_json_close(json, '}');
}

static void answer_list(struct lac_app *app, const char *target, struct lac_response *response)
{
    struct lac_error error = {0};
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "shares", '[');
    if (lac_shares_list(app->store, target, write_share, &json, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

void lac_api_shares(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    (void)request;
    answer_list(app_context, NULL, response);
}

static bool report_exists(struct lac_app *app, const char *id, struct lac_response *response)
{
    struct lac_written_report row = {0};
    struct lac_error error = {0};

    if (!lac_store_id_is_valid(id)) {
        lac_response_error(response, 404, "not_found", "no such report");
        return false;
    }
    if (lac_reports_get(app->store, id, &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    lac_written_report_done(&row);
    return true;
}

static bool trace_exists(struct lac_app *app, const char *id, struct lac_response *response)
{
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    if (!lac_store_id_is_valid(id)) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return false;
    }
    if (lac_store_get_trace(app->store, id, &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    const bool is_ready = row.state == LAC_TRACE_READY;

    lac_trace_row_done(&row);
    if (!is_ready) {
        lac_response_error(response, 409, "not_ready", "the trace is not imported");
    }
    return is_ready;
}

void lac_api_report_shares(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    if (report_exists(app_context, request->param[0], response)) {
        answer_list(app_context, request->param[0], response);
    }
}

void lac_api_trace_shares(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    if (trace_exists(app_context, request->param[0], response)) {
        answer_list(app_context, request->param[0], response);
    }
}

/* ---- making one ---- */

struct asked {
    int64_t expires_unix_ms; /**< 0: never */
    char redact[REDACT_BYTES];
    char view[LAC_REPORT_PART_BYTES];
};

/** "2026-12-01T00:00:00Z", in the future. */
static enum lac_status read_expiry(const struct json_object *object, int64_t *ret_unix_ms,
                                   struct lac_error *reterr)
{
    char text[40];
    struct tm at = {0};
    enum lac_status status = lac_json_read_text(object, "expires_at", text, sizeof(text), reterr);

    if (status != LAC_OK) {
        return status;
    }
    if (text[0] == '\0') {
        return LAC_OK;
    }
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &at);

    if (end == NULL || (strcmp(end, "Z") != 0 && strcmp(end, ".000Z") != 0)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "\"expires_at\" is no time such as 2030-01-31T00:00:00Z");
    }
    *ret_unix_ms = (int64_t)timegm(&at) * 1000;
    if (*ret_unix_ms <= (int64_t)time(NULL) * 1000) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"expires_at\" is in the past");
    }
    return LAC_OK;
}

static enum lac_status read_members(const struct json_object *object, struct asked *asked,
                                    struct lac_error *reterr)
{
    struct lac_redactor redactor;
    enum lac_status status = LAC_OK;

    (void)snprintf(asked->redact, sizeof(asked->redact), "%s", redact_usual);
    if (lac_json_read_has(object, "expires_at")) {
        status = read_expiry(object, &asked->expires_unix_ms, reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "redact")) {
        status =
            lac_json_read_lines(object, "redact", asked->redact, sizeof(asked->redact), reterr);
        for (char *at = asked->redact; *at != '\0'; at++) {
            *at = *at == '\n' ? ',' : *at;
        }
    }
    if (status == LAC_OK && lac_json_read_has(object, "view")) {
        status = lac_json_read_text(object, "view", asked->view, sizeof(asked->view), reterr);
    }
    if (status == LAC_OK) {
        status = lac_redactor_init_hosts(&redactor, asked->redact, "", reterr);
    }
    return status;
}

/** @return false: the response says why */
static bool read_body(const struct lac_request *request, struct asked *asked,
                      struct lac_response *response)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_API_SHARE_BYTES,
                                                  .depth_max = 3};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    enum lac_status status =
        lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error);

    *asked = (struct asked){0};
    if (status == LAC_OK) {
        status = read_members(object, asked, &error);
    }
    lac_json_read_done(object);
    if (status != LAC_OK) {
        lac_response_error(response, status == LAC_ERR_NOMEM ? 503 : 400,
                           status == LAC_ERR_NOMEM ? "out_of_memory" : "bad_request",
                           "send a JSON object with expires_at and redact: %s", error.message);
    }
    return status == LAC_OK;
}

static void make(struct lac_app *app, const struct lac_request *request, const struct asked *asked,
                 const char *kind, const char *snapshot, struct lac_response *response)
{
    const char *author = lac_api_asker(request);
    const struct lac_share share = {.kind = kind,
                                    .target = request->param[0],
                                    .redact = asked->redact,
                                    .snapshot = snapshot,
                                    .author = author,
                                    .expires_unix_ms = asked->expires_unix_ms};
    struct lac_error error = {0};
    struct lac_json json;
    char id[LAC_ID_SIZE];
    char token[LAC_SHARE_TOKEN_LENGTH + 1];
    char url[512];

    if (lac_shares_create(app->store, &share, id, token, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "share", "%s %s by link %s", kind, request->param[0], id);
    (void)snprintf(url, sizeof(url), "%.400s/s/%s", request->base_path, token);
    response->http_status = 201;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "id", id);
    lac_json_text(&json, "url", url);
    lac_json_close(&json, '}');
}

void lac_api_report_share(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct asked asked;

    if (report_exists(app_context, request->param[0], response) &&
        read_body(request, &asked, response)) {
        make(app_context, request, &asked, "report", NULL, response);
    }
}

void lac_api_trace_share(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct asked asked;
    struct lac_report_part part;
    struct lac_error error = {0};
    char why[256];

    if (!trace_exists(app_context, request->param[0], response) ||
        !read_body(request, &asked, response)) {
        return;
    }
    if (asked.view[0] == '\0') {
        make(app_context, request, &asked, "trace", NULL, response);
        return;
    }
    if (lac_part_read(asked.view, &part, &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "\"view\": %s", error.message);
        return;
    }
    if (strcmp(part.trace[0], request->param[0]) != 0 || part.trace_count != 1) {
        lac_response_error(response, 400, "bad_request", "\"view\" is of another trace");
        return;
    }
    char *snapshot = lac_report_evidence_take(app_context, &request->who, &part, why, sizeof(why));

    if (snapshot == NULL) {
        lac_response_error(response, 400, "bad_request", "\"view\": %s", why);
        return;
    }
    make(app_context, request, &asked, "view", snapshot, response);
    free(snapshot);
}

void lac_api_share_revoke(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    char target[LAC_ID_SIZE];

    if (!lac_store_id_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such link");
        return;
    }
    if (lac_shares_revoke(app->store, request->param[0], target, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "revoke", "link %s of %s", request->param[0], target);
    response->http_status = 204;
}

/* ---- reading one ---- */

struct shown {
    char kind[16];
    char target[LAC_ID_SIZE];
    char redact[REDACT_BYTES];
    char *snapshot;
};

static void take_share(void *context, const struct lac_share *share)
{
    struct shown *shown = context;

    (void)snprintf(shown->kind, sizeof(shown->kind), "%s", share->kind);
    (void)snprintf(shown->target, sizeof(shown->target), "%s", share->target);
    (void)snprintf(shown->redact, sizeof(shown->redact), "%s", share->redact);
    shown->snapshot = share->snapshot != NULL ? strdup(share->snapshot) : NULL;
}

/** The same for what never was, expired, or was revoked. */
static void say_gone(struct lac_response *response)
{
    response->body.size_bytes = 0;
    response->http_status = 404;
    response->mime = "text/html; charset=utf-8";
    lac_buffer_puts(&response->body,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>No "
                    "such link</title></head><body><h1>This link shows nothing</h1><p>It expired, "
                    "was revoked, or is not complete. Ask whoever sent it for another.</p></body>"
                    "</html>\n");
}

static void show_report(struct lac_app *app, const struct shown *shown,
                        struct lac_response *response)
{
    struct lac_report_evidence evidence = {.app = app, .report = shown->target, .takes = false};
    struct lac_written_report row = {0};
    struct lac_redactor redactor = {0};
    struct lac_buffer hosts = {0};
    struct lac_error error = {0};

    if (lac_reports_get(app->store, shown->target, &row, &error) != LAC_OK) {
        say_gone(response);
        return;
    }
    const struct lac_document document = {.title = row.title,
                                          .markdown = row.markdown,
                                          .version = row.version,
                                          .updated_unix_ms = row.updated_unix_ms,
                                          .evidence = lac_report_evidence_get,
                                          .context = &evidence,
                                          .redactor = &redactor};

    lac_report_evidence_hosts(&evidence, row.markdown, &hosts);
    /* without the hosts' names they could not be left out: then nothing is shown */
    if (hosts.status != LAC_OK ||
        lac_redactor_init_hosts(&redactor, shown->redact, hosts.bytes != NULL ? hosts.bytes : "",
                                &error) != LAC_OK ||
        lac_document_html(&response->body, &document, true, &error) != LAC_OK) {
        response->mime = "application/json";
        lac_response_error(response, 503, "out_of_memory", "no memory for this report");
    }
    lac_redactor_done(&redactor);
    lac_buffer_done(&hosts);
    lac_written_report_done(&row);
}

static void show_view(const struct shown *shown, struct lac_response *response)
{
    struct lac_redactor redactor = {0};
    struct lac_buffer hosts = {0};
    struct lac_error error = {0};

    if (shown->snapshot == NULL) {
        say_gone(response);
        return;
    }
    lac_snapshot_hosts(shown->snapshot, &hosts);
    if (hosts.status != LAC_OK ||
        lac_redactor_init_hosts(&redactor, shown->redact, hosts.bytes != NULL ? hosts.bytes : "",
                                &error) != LAC_OK) {
        response->mime = "application/json";
        lac_response_error(response, 503, "out_of_memory", "no memory for this view");
    } else {
        lac_document_of_view(&response->body, "A view of a trace", shown->snapshot, &redactor);
    }
    lac_redactor_done(&redactor);
    lac_buffer_done(&hosts);
}

static void show_trace(struct lac_app *app, const struct shown *shown,
                       struct lac_response *response)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    if (lac_store_open_trace(app->store, shown->target, &file, &error) != LAC_OK) {
        say_gone(response);
        return;
    }
    lac_api_report_of(LAC_REPORT_LINK, file, shown->redact, response);
    lac_store_release_trace(app->store, file);
}

void lac_api_shared(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct shown shown = {.snapshot = NULL};
    struct lac_error error = {0};
    const enum lac_status status =
        lac_shares_open(app->store, request->param[0], take_share, &shown, &error);

    response->mime = "text/html; charset=utf-8";
    if (status == LAC_ERR_NOT_FOUND) {
        say_gone(response);
    } else if (status != LAC_OK) {
        response->mime = "application/json";
        lac_api_fail(response, &error);
    } else if (strcmp(shown.kind, "report") == 0) {
        show_report(app, &shown, response);
    } else if (strcmp(shown.kind, "view") == 0) {
        show_view(&shown, response);
    } else {
        show_trace(app, &shown, response);
    }
    response->policy = SHARED_POLICY;
    lac_response_header(response, "X-Robots-Tag", "noindex, nofollow, noarchive");
    free(shown.snapshot);
}
