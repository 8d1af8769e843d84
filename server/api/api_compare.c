/* Comparisons and reports: both diagnose stored traces again, for what the stored document does not
 * say (steps one by one, gaps). */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/analysis.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/compare_json.h"
#include "server/api/json_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/http/buffer.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/store/store.h"
#include "server/store/trace_file.h"

#include <stdio.h>
#include <string.h>

/** A stored trace, diagnosed. */
struct opened {
    struct lac_trace_file *file;
    const struct lac_model *model;
    struct lac_analysis *analysis;
};

static void close_trace(struct lac_app *app, struct opened *opened)
{
    lac_analysis_destroy(opened->analysis);
    if (opened->file != NULL) {
        lac_trace_file_release_model(opened->file, opened->model);
        lac_store_release_trace(app->store, opened->file);
    }
    *opened = (struct opened){0};
}

/** Load and diagnose what was opened. @return false: the response says why */
static bool diagnose(struct opened *opened, struct lac_response *response)
{
    struct lac_error error = {0};
    enum lac_status status = lac_trace_file_whole_model(opened->file, &opened->model, &error);

    if (status == LAC_OK) {
        status = lac_diagnose(opened->model, NULL, &opened->analysis, &error);
    }
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory to diagnose this trace");
    } else if (status != LAC_OK) {
        lac_response_fail(response, &error);
    }
    return status == LAC_OK;
}

/** Open the trace whose id is the query's `key`. */
static bool open_named(struct lac_app *app, const struct lac_request *request, const char *key,
                       struct lac_response *response, struct opened *opened)
{
    struct lac_request one = *request;

    one.param[0] = lac_target_get(request->target, key);
    if (one.param[0] == NULL) {
        lac_response_error(response, 400, "bad_request", "give the traces: ?a=ID&b=ID");
        return false;
    }
    opened->file = lac_api_open_trace(app, &one, response);
    return opened->file != NULL;
}

static void write_comparison(const struct lac_request *request, const struct opened *traces,
                             struct lac_response *response)
{
    const struct lac_compare_side a = {traces[0].model, traces[0].analysis};
    const struct lac_compare_side b = {traces[1].model, traces[1].analysis};
    const struct lac_compare_names names = {
        .id = {lac_target_get(request->target, "a"), lac_target_get(request->target, "b")}};
    struct lac_comparison *comparison = NULL;

    if (lac_compare(&a, &b, &comparison) != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this comparison");
        return;
    }
    lac_compare_write_json(&response->body, &a, &b, comparison, &names, NULL, 0);
    lac_comparison_destroy(comparison);
}

void lac_api_compare(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct opened traces[2] = {{0}};

    if (open_named(app, request, "a", response, &traces[0]) &&
        open_named(app, request, "b", response, &traces[1])) {
        /* ids name what never changes: the tag of the request stands for both */
        lac_response_etag(response, "compare %s %s %u %s %u", LAC_VERSION,
                          lac_target_get(request->target, "a"),
                          (unsigned)lac_trace_file_generation(traces[0].file),
                          lac_target_get(request->target, "b"),
                          (unsigned)lac_trace_file_generation(traces[1].file));
        response->cache = "private, no-cache";
        if (!lac_response_is_unchanged(request, response) && diagnose(&traces[0], response) &&
            diagnose(&traces[1], response)) {
            write_comparison(request, traces, response);
        }
    }
    close_trace(app, &traces[0]);
    close_trace(app, &traces[1]);
}

/* ---- reports ---- */

enum { FORMAT_HTML = 0, FORMAT_MARKDOWN, FORMAT_CONTENTS };

/** What the report would tell, for the person who shares it. */
static void write_contents(const struct lac_redactor *redactor, struct lac_response *response)
{
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "contains", '[');
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "kind", lac_redact_name((enum lac_redact_kind)kind));
        lac_json_uint(&json, "count", redactor->met[kind].count);
        lac_json_open(&json, "items", '[');
        for (unsigned i = 0; i < redactor->met[kind].item_count; i++) {
            lac_json_text(&json, NULL, redactor->met[kind].item[i]);
        }
        lac_json_close(&json, ']');
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
}

static void write_report(int format, struct lac_redactor *redactor, const struct opened *opened,
                         struct lac_response *response)
{
    const struct lac_report_source source = {opened->model, opened->analysis, redactor};

    if (format == FORMAT_CONTENTS) {
        struct lac_buffer unsent = {0};

        lac_report_html(&unsent, &source);
        if (unsent.status == LAC_OK) {
            write_contents(redactor, response);
        } else {
            lac_response_error(response, 503, "out_of_memory", "no memory for this report");
        }
        lac_buffer_done(&unsent);
        return;
    }
    /* what the page calls the file is its affair: the name of a trace is no header */
    lac_response_header(response, "Content-Disposition", "attachment");
    response->mime =
        format == FORMAT_HTML ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8";
    response->policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";
    if (format == FORMAT_HTML) {
        lac_report_html(&response->body, &source);
    } else {
        lac_report_markdown(&response->body, &source);
    }
}

void lac_api_report(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    static const char *const formats[] = {"html", "markdown", "contents", NULL};
    struct lac_app *app = app_context;
    struct opened opened = {.file = lac_api_open_trace(app, request, response)};
    int format;

    if (opened.file == NULL) {
        return;
    }
    format = lac_api_choice(request, response, "format", formats, FORMAT_HTML);
    if (format >= 0 && !lac_api_is_unchanged(request, opened.file, response) &&
        diagnose(&opened, response)) {
        struct lac_redactor redactor = {0};
        struct lac_error error = {0};

        if (lac_redactor_init(&redactor, lac_target_get(request->target, "redact"), opened.model,
                              &error) == LAC_OK) {
            write_report(format, &redactor, &opened, response);
        } else {
            lac_response_error(response, 400, "bad_request", "%s", error.message);
        }
        lac_redactor_done(&redactor);
    }
    close_trace(app, &opened);
}
