/* Two neighbors of a job: what was changed, what was predicted, what came. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "server/api/kept_facts.h"
#include "server/base/buffer.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"
#include "server/store/trace/trace_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIFFERENCES_MAX = 24 };

struct side {
    struct lac_trace_file *file;
    struct lac_kept_facts facts;
};

static double gain_pct(int64_t before_ns, int64_t after_ns)
{
    return before_ns > 0 && after_ns != LAC_UNKNOWN_NS
               ? 100.0 * (1.0 - (double)after_ns / (double)before_ns)
               : (double)NAN;
}

/** Whether what came says something of what was predicted: one change, and its prediction. */
static bool is_try(const struct lac_comparison *comparison)
{
    return comparison->is_one_change && comparison->prediction.is_matched;
}

static void write_differences(struct lac_json *json, const struct lac_comparison *comparison)
{
    uint32_t written = 0;

    lac_json_open(json, "changes", '[');
    for (uint32_t i = 0; i < comparison->difference_count && written < DIFFERENCES_MAX; i++) {
        const struct lac_compare_difference *it = &comparison->differences[i];

        if (!it->is_known) {
            continue;
        }
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "key", it->key);
        lac_json_text(json, "a", it->a);
        lac_json_text(json, "b", it->b);
        lac_json_bool(json, "is_setting", it->is_setting);
        lac_json_close(json, '}');
        written++;
    }
    lac_json_close(json, ']');
}

static void write_prediction(struct lac_json *json, const struct lac_comparison *comparison,
                             int64_t before_ns, int64_t after_ns)
{
    const struct lac_compare_prediction *it = &comparison->prediction;

    if (it->finding == NULL || it->mid_ns == LAC_UNKNOWN_NS) {
        lac_json_null(json, "prediction");
        return;
    }
    lac_json_open(json, "prediction", '{');
    lac_json_text(json, "finding", it->finding->id);
    lac_json_text(json, "change", it->change);
    lac_json_ns(json, "low_ns", it->low_ns);
    lac_json_ns(json, "mid_ns", it->mid_ns);
    lac_json_ns(json, "high_ns", it->high_ns);
    lac_json_ns(json, "achieved_ns", after_ns);
    lac_json_decimals(json, "predicted_pct", gain_pct(before_ns, it->mid_ns));
    lac_json_decimals(json, "achieved_pct", gain_pct(before_ns, after_ns));
    lac_json_bool(json, "is_within", it->is_within);
    lac_json_text(json, "text", it->text);
    lac_json_close(json, '}');
}

static void write_result(struct lac_json *json, const struct lac_compare_result_metric *it)
{
    lac_json_open(json, "result", '{');
    lac_json_bool(json, "is_known", it->is_known);
    if (it->is_known) {
        lac_json_bool(json, "is_same", it->is_same);
    } else {
        lac_json_null(json, "is_same");
    }
    lac_json_text(json, "name", it->name);
    lac_json_real(json, "a", it->value[0]);
    lac_json_real(json, "b", it->value[1]);
    lac_json_text(json, "text", it->text);
    lac_json_close(json, '}');
}

static void write_change(struct lac_json *json, const char *key,
                         const struct lac_compare_change *change)
{
    lac_json_open(json, key, '{');
    lac_json_decimals(json, "pct", change->pct);
    lac_json_decimals(json, "low_pct", change->low_pct);
    lac_json_decimals(json, "high_pct", change->high_pct);
    lac_json_close(json, '}');
}

static void write_document(const char *a, const struct lac_comparison *comparison,
                           int64_t before_ns, int64_t after_ns, struct lac_buffer *out)
{
    struct lac_json json;

    lac_json_init_form(&json, out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "trace", a);
    lac_json_text(&json, "verdict", lac_compare_verdict_name(comparison->verdict));
    lac_json_text(&json, "headline", comparison->headline);
    lac_json_text(&json, "why_not", comparison->why_not);
    lac_json_text(&json, "changed", comparison->changed);
    lac_json_uint(&json, "change_count", comparison->change_count);
    lac_json_bool(&json, "is_one_change", comparison->is_one_change);
    write_differences(&json, comparison);
    write_change(&json, "step", &comparison->step);
    write_change(&json, "throughput", &comparison->throughput);
    write_prediction(&json, comparison, before_ns, after_ns);
    write_result(&json, &comparison->result);
    lac_json_close(&json, '}');
}

static void write_unreadable(const char *a, const char *why, struct lac_buffer *out)
{
    struct lac_json json;

    lac_json_init_form(&json, out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "trace", a);
    lac_json_text(&json, "verdict", lac_compare_verdict_name(LAC_COMPARE_UNKNOWN));
    lac_json_text(&json, "why_not", why);
    lac_json_close(&json, '}');
}

static enum lac_status compare_sides(const struct side *sides, struct lac_neighbors *neighbors,
                                     struct lac_buffer *document)
{
    struct lac_compare_side of[2];
    struct lac_comparison *comparison = NULL;
    enum lac_status status;

    for (int i = 0; i < 2; i++) {
        of[i] = (struct lac_compare_side){lac_trace_file_head(sides[i].file),
                                          sides[i].facts.analysis, sides[i].facts.compare};
    }
    status = lac_compare(&of[0], &of[1], &comparison);
    if (status == LAC_OK) {
        const int64_t before_ns = of[0].analysis->step_mean_ns;
        const int64_t after_ns = of[1].analysis->step_mean_ns;

        if (is_try(comparison)) {
            neighbors->predicted_pct = gain_pct(before_ns, comparison->prediction.mid_ns);
            neighbors->achieved_pct = gain_pct(before_ns, after_ns);
        }
        write_document(neighbors->a, comparison, before_ns, after_ns, document);
        status = document->status;
    }
    lac_comparison_destroy(comparison);
    return status;
}

enum lac_status lac_journal_compare(struct lac_app *app, const char *a, const char *b,
                                    struct lac_error *reterr)
{
    struct lac_neighbors neighbors = {.predicted_pct = (double)NAN, .achieved_pct = (double)NAN};
    struct lac_response unsent = {.http_status = 200};
    struct lac_buffer document = {0};
    struct lac_error reason = {0};
    struct side sides[2] = {{0}};
    const char *ids[2] = {a, b};
    enum lac_status status = LAC_OK;
    bool is_open = true;

    (void)snprintf(neighbors.a, sizeof(neighbors.a), "%s", a);
    (void)snprintf(neighbors.b, sizeof(neighbors.b), "%s", b);
    for (int i = 0; i < 2 && is_open; i++) {
        status = lac_store_open_trace(app->store, ids[i], &sides[i].file, &reason);
        is_open = status == LAC_OK && lac_kept_facts_open(sides[i].file, &unsent, &sides[i].facts);
    }
    if (is_open) {
        status = compare_sides(sides, &neighbors, &document);
    } else if (status == LAC_ERR_NOMEM || unsent.http_status == 503) {
        status = LAC_ERR_NOMEM;
    } else {
        write_unreadable(a, "one of the two traces cannot be read", &document);
        status = document.status;
    }
    if (status == LAC_OK) {
        status = lac_store_put_neighbors(app->store, &neighbors, document.bytes, reterr);
    }
    for (int i = 0; i < 2; i++) {
        if (sides[i].file != NULL) {
            lac_kept_facts_close(sides[i].file, &sides[i].facts);
            lac_store_release_trace(app->store, sides[i].file);
        }
    }
    lac_buffer_done(&document);
    lac_buffer_done(&unsent.body);
    return status;
}
