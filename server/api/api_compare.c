/* Comparisons and reports: of what the import of each trace kept, and of the other ranks of a run
 * their tables. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/document_cache.h"
#include "server/api/kept_facts.h"
#include "server/api/run_ranks.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/compare_json.h"
#include "server/json/json_out.h"
#include "server/reports/part_evidence.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** One side of a comparison: a trace, or a run of which the lowest rank's is compared. */
struct side {
    struct lac_run_ranks *ranks; /**< NULL: a trace */
    struct lac_run *run;         /**< NULL: a trace, or a run of one */
    struct lac_trace_file *file;
    struct lac_kept_facts facts;
};

static void close_side(struct lac_app *app, struct side *side)
{
    if (side->file != NULL) {
        lac_kept_facts_close(side->file, &side->facts);
        lac_store_release_trace(app->store, side->file);
    }
    lac_run_destroy(side->run);
    lac_run_ranks_close(side->ranks);
}

/** Open what the query's `key` names. @return false: the response says why */
static bool open_side(struct lac_app *app, const struct lac_request *request, const char *key,
                      struct lac_response *response, struct side *side)
{
    struct lac_request one = *request;
    struct lac_run_row row = {0};
    struct lac_error error = {0};
    enum lac_status status = LAC_ERR_NOT_FOUND;

    one.param[0] = lac_target_get(request->target, key);
    if (one.param[0] == NULL) {
        lac_response_error(response, 400, "bad_request",
                           "give two traces, or two runs: ?a=ID&b=ID");
        return false;
    }
    if (lac_store_id_is_valid(one.param[0])) {
        status = lac_store_get_run(app->store, one.param[0], &row, &error);
    }
    if (status == LAC_OK) {
        lac_run_row_done(&row);
        side->ranks = lac_run_ranks_open(app, one.param[0], response);
        if (side->ranks == NULL) {
            return false;
        }
        one.param[0] = lac_run_ranks_lowest(side->ranks);
    } else if (status != LAC_ERR_NOT_FOUND) {
        lac_api_fail(response, &error);
        return false;
    }
    side->file = lac_api_open_trace(app, &one, response);
    return side->file != NULL;
}

/** Join the ranks of both sides, one side after the other. */
static bool join_runs(struct side *sides, struct lac_response *response)
{
    bool is_joined = true;

    for (int i = 0; i < 2 && is_joined && sides[i].ranks != NULL; i++) {
        is_joined = lac_run_ranks_join(sides[i].ranks, response, &sides[i].run);
        lac_run_ranks_close(sides[i].ranks);
        sides[i].ranks = NULL;
    }
    return is_joined;
}

static void write_comparison(const struct side *sides, const char *const id[2],
                             struct lac_response *response)
{
    const struct lac_compare_side a = {lac_trace_file_head(sides[0].file), sides[0].facts.analysis,
                                       sides[0].facts.compare};
    const struct lac_compare_side b = {lac_trace_file_head(sides[1].file), sides[1].facts.analysis,
                                       sides[1].facts.compare};
    const struct lac_compare_names names = {.id = {id[0], id[1]},
                                            .run = {sides[0].run, sides[1].run}};
    struct lac_comparison *comparison = NULL;

    if (lac_compare(&a, &b, &comparison) != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this comparison");
        return;
    }
    lac_compare_write_json(&response->body, &a, &b, comparison, &names, NULL, 0);
    lac_comparison_destroy(comparison);
}

/** What stands for the side in a tag. */
static uint64_t stamp_of(const struct side *side)
{
    return side->ranks != NULL ? lac_run_ranks_stamp(side->ranks)
                               : lac_trace_file_generation(side->file);
}

/** Compare what is not kept yet. With the work of the cache held. */
static void answer(struct side *sides, const char *a, const char *b, struct lac_response *response)
{
    char lowest[2][LAC_ID_SIZE];
    const char *id[2] = {a, b};

    for (int i = 0; i < 2 && sides[0].ranks != NULL; i++) {
        (void)snprintf(lowest[i], sizeof(lowest[i]), "%s", lac_run_ranks_lowest(sides[i].ranks));
        id[i] = lowest[i];
    }
    if (join_runs(sides, response) &&
        lac_kept_facts_open(sides[0].file, response, &sides[0].facts) &&
        lac_kept_facts_open(sides[1].file, response, &sides[1].facts)) {
        write_comparison(sides, id, response);
    }
}

static void compare(struct lac_app *app, const struct lac_request *request, struct side *sides,
                    struct lac_response *response)
{
    struct lac_document_cache *kept = app->documents;
    const char *a = lac_target_get(request->target, "a");
    const char *b = lac_target_get(request->target, "b");
    char key[LAC_DOCUMENT_KEY_SIZE];
    char stamp[LAC_DOCUMENT_STAMP_SIZE];

    if ((sides[0].ranks == NULL) != (sides[1].ranks == NULL)) {
        lac_response_error(response, 400, "bad_request",
                           "one of these is a run and the other a trace: give two traces, or two "
                           "runs");
        return;
    }
    (void)snprintf(key, sizeof(key), "compare %s %s", a, b);
    (void)snprintf(stamp, sizeof(stamp), "%016" PRIx64 " %016" PRIx64, stamp_of(&sides[0]),
                   stamp_of(&sides[1]));
    lac_response_etag(response, "%s %s %s", LAC_VERSION, key, stamp);
    response->cache = "private, no-cache";
    if (lac_response_is_unchanged(request, response) ||
        lac_document_cache_get(kept, key, stamp, &response->body)) {
        return;
    }
    lac_document_cache_begin_work(kept);
    /* another request may have done it meanwhile */
    if (!lac_document_cache_get(kept, key, stamp, &response->body)) {
        answer(sides, a, b, response);
        if (response->http_status < 400 && response->body.status == LAC_OK) {
            lac_document_cache_put(kept, key, stamp, response->body.bytes,
                                   response->body.size_bytes);
        }
    }
    lac_document_cache_end_work(kept);
}

void lac_api_compare(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct side sides[2] = {{0}};

    if (open_side(app, request, "a", response, &sides[0]) &&
        open_side(app, request, "b", response, &sides[1])) {
        compare(app, request, sides, response);
    }
    close_side(app, &sides[0]);
    close_side(app, &sides[1]);
}

/* ---- reports ---- */

/** What the report would tell, for the person who shares it. */
void lac_api_write_contents(const struct lac_redactor *redactor, struct lac_response *response)
{
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "contains", '[');
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "kind", lac_redact_words[kind].id);
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

/** What a report is made of. */
struct reporting {
    struct lac_trace_file *file;
    struct lac_kept_facts facts;
    struct lac_model *views[LAC_VIEW_COUNT]; /**< the slices that its pictures show */
    struct lac_flame *flame;
};

static void reporting_done(struct reporting *reporting)
{
    for (int i = 0; i < LAC_VIEW_COUNT; i++) {
        lac_trace_stretch_destroy(reporting->views[i]);
    }
    lac_flame_destroy(reporting->flame);
    lac_kept_facts_close(reporting->file, &reporting->facts);
}

/** What pictures show. @return false: the response says why */
static bool take_pictures(struct reporting *reporting, struct lac_response *response)
{
    const struct lac_analysis *analysis = reporting->facts.analysis;
    struct lac_error error = {0};
    enum lac_status status = lac_evidence_flame_of(reporting->file, &reporting->flame, &error);

    for (int i = 0; i < LAC_VIEW_COUNT && status == LAC_OK; i++) {
        const struct lac_view *view = &analysis->views[i];

        if (view->is_known) {
            status = lac_trace_file_stretch(reporting->file, view->t0_ns, view->t1_ns,
                                            &reporting->views[i], &error);
        }
    }
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this report");
    } else if (status != LAC_OK) {
        lac_api_fail(response, &error);
    }
    return status == LAC_OK;
}

static void write_report(enum lac_report_format format, const struct reporting *reporting,
                         struct lac_redactor *redactor, struct lac_response *response)
{
    struct lac_report_source source = {.model = lac_trace_file_head(reporting->file),
                                       .analysis = reporting->facts.analysis,
                                       .redactor = redactor,
                                       .flame = reporting->flame};

    for (int i = 0; i < LAC_VIEW_COUNT; i++) {
        source.views[i] = reporting->views[i];
    }
    if (format == LAC_REPORT_CONTENTS) {
        struct lac_buffer unsent = {0};

        lac_report_html(&unsent, &source);
        if (unsent.status == LAC_OK) {
            lac_api_write_contents(redactor, response);
        } else {
            lac_response_error(response, 503, "out_of_memory", "no memory for this report");
        }
        lac_buffer_done(&unsent);
        return;
    }
    if (format != LAC_REPORT_LINK) {
        /* what the page calls the file is its affair: the name of a trace is no header */
        lac_response_header(response, "Content-Disposition", "attachment");
    }
    response->mime =
        format != LAC_REPORT_MARKDOWN ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8";
    response->policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";
    if (format != LAC_REPORT_MARKDOWN) {
        lac_report_html(&response->body, &source);
    } else {
        lac_report_markdown(&response->body, &source);
    }
}

void lac_api_report_of(enum lac_report_format format, struct lac_trace_file *file,
                       const char *redact, struct lac_response *response)
{
    struct reporting reporting = {.file = file};
    struct lac_redactor redactor = {0};
    struct lac_error error = {0};

    if (lac_redactor_init(&redactor, redact, lac_trace_file_head(file), &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
    } else if (lac_kept_facts_open(file, response, &reporting.facts) &&
               (format == LAC_REPORT_MARKDOWN || take_pictures(&reporting, response))) {
        write_report(format, &reporting, &redactor, response);
    }
    lac_redactor_done(&redactor);
    reporting_done(&reporting);
}

void lac_api_report(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    static const char *const formats[] = {"html", "markdown", "contents", NULL};
    struct lac_app *app = app_context;
    struct lac_trace_file *file = lac_api_open_trace(app, request, response);
    int format;

    if (file == NULL) {
        return;
    }
    format = lac_api_choice(request, response, "format", formats, LAC_REPORT_HTML);
    if (format >= 0 && !lac_api_is_unchanged(request, file, response)) {
        lac_api_report_of((enum lac_report_format)format, file,
                          lac_target_get(request->target, "redact"), response);
    }
    lac_store_release_trace(app->store, file);
}
