/* GET /projects/{name}/series: throughput against one setting that was varied. */

#include "analysis/diagnose/result/analysis.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "server/http/query.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 64, TRACES_SHOWN = 8 };

/** A run with its value of the setting. */
struct sample {
    const struct lac_timed_run *run;
    const char *value;
    double number; /**< NaN: no number */
};

/** Runs of one value. */
struct bin {
    const char *value;
    double number;
    uint32_t first, count; /**< of the samples */
    double low, median, high;
    double ideal;                         /**< NaN: none */
    double part_pct[LAC_TIME_PART_COUNT]; /**< of the GPU time of all its runs; NaN without */
};

struct series {
    const char *setting;
    const char *unit; /**< of the newest run; runs of another are left out */
    struct sample *samples;
    uint32_t count;
    uint32_t left_out;
    struct bin bins[VALUES_MAX];
    uint32_t bin_count;
    bool scales;         /**< twice the value may do twice the work */
    bool do_others_vary; /**< runs of one value differ in other settings, too */
};

/** Settings of which twice as many may do twice the work. */
static bool has_ideal(const char *setting)
{
    static const char *const names[] = {"gpus",        "world_size", "nodes",
                                        "num_workers", "batch_size", "loader.num_workers"};

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        if (strcmp(setting, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static double number_of(const char *value)
{
    char *end = NULL;
    const double number = strtod(value, &end);

    return end != value && *end == '\0' && isfinite(number) ? number : (double)NAN;
}

static int by_value(const void *a, const void *b)
{
    const struct sample *x = a;
    const struct sample *y = b;

    if (isfinite(x->number) != isfinite(y->number)) {
        return isfinite(x->number) ? -1 : 1;
    }
    const int order = isfinite(x->number) ? LAC_ORDER(x->number, y->number) : 0;
    const int text = order != 0 ? order : strcmp(x->value, y->value);

    return text != 0 ? text
                     : LAC_ORDER(x->run->lead->throughput_per_s, y->run->lead->throughput_per_s);
}

static int by_trace(const void *key, const void *row)
{
    return strcmp(key, ((const struct lac_setting_value *)row)->trace);
}

/** The runs of the job that recorded the setting and a throughput. */
static bool take_samples(const struct lac_timeline *timeline, const char *job,
                         const struct lac_setting_values *values, struct series *series)
{
    series->samples = calloc((size_t)timeline->count + 1, sizeof(*series->samples));
    for (uint32_t i = timeline->count; i-- > 0 && series->samples != NULL;) {
        const struct lac_timed_run *run = &timeline->runs[i];
        const struct lac_point *lead = run->lead;
        const struct lac_setting_value *row =
            values->count > 0 ? bsearch(lead->figures.trace, values->rows, values->count,
                                        sizeof(*values->rows), by_trace)
                              : NULL;

        if (row == NULL || strcmp(lead->figures.job, job) != 0) {
            continue;
        }
        if (!(lead->throughput_per_s > 0.0) ||
            (series->unit != NULL && strcmp(series->unit, lead->throughput_unit) != 0)) {
            series->left_out++;
            continue;
        }
        series->unit = lead->throughput_unit;
        const char *value = row->value;
        series->samples[series->count++] =
            (struct sample){.run = run, .value = value, .number = number_of(value)};
    }
    return series->samples != NULL;
}

static void sum_parts(const struct series *series, struct bin *bin)
{
    int64_t part_ns[LAC_TIME_PART_COUNT] = {0};
    int64_t gpu_ns = 0;

    for (uint32_t i = bin->first; i < bin->first + bin->count; i++) {
        gpu_ns += series->samples[i].run->gpu_ns;
        for (uint32_t p = 0; p < LAC_TIME_PART_COUNT; p++) {
            part_ns[p] += series->samples[i].run->part_ns[p];
        }
    }
    for (uint32_t p = 0; p < LAC_TIME_PART_COUNT; p++) {
        bin->part_pct[p] = gpu_ns > 0 ? 100.0 * (double)part_ns[p] / (double)gpu_ns : (double)NAN;
    }
}

static double rate(const struct series *series, uint32_t at)
{
    return series->samples[at].run->lead->throughput_per_s;
}

static void make_bins(struct series *series)
{
    if (series->count > 1) {
        qsort(series->samples, series->count, sizeof(*series->samples), by_value);
    }
    series->scales = has_ideal(series->setting);
    for (uint32_t i = 0; i < series->count;) {
        uint32_t end = i;

        while (end < series->count &&
               strcmp(series->samples[end].value, series->samples[i].value) == 0) {
            end++;
        }
        if (series->bin_count == VALUES_MAX) {
            series->left_out += series->count - i;
            return;
        }
        struct bin *bin = &series->bins[series->bin_count++];

        *bin = (struct bin){
            .value = series->samples[i].value,
            .number = series->samples[i].number,
            .first = i,
            .count = end - i,
            .low = rate(series, i),
            .median = 0.5 * (rate(series, i + (end - i - 1) / 2) + rate(series, i + (end - i) / 2)),
            .high = rate(series, end - 1)};
        const struct bin *first = &series->bins[0];

        bin->ideal = series->scales && first->number > 0.0 && isfinite(bin->number)
                         ? first->median * bin->number / first->number
                         : (double)NAN;
        sum_parts(series, bin);
        i = end;
    }
}

/** What took more of the GPU's time than at the first value; -1 nothing by half a percent. */
static int grown(const struct bin *first, const struct bin *bin)
{
    double most = 0.5;
    int at = -1;

    for (int p = LAC_PART_COMPUTE + 1; p < LAC_TIME_PART_COUNT; p++) {
        const double more = bin->part_pct[p] - first->part_pct[p];

        if (more > most) {
            most = more;
            at = p;
        }
    }
    return at;
}

static void write_bin(struct lac_json *json, const struct series *series, const struct bin *bin)
{
    const struct bin *first = &series->bins[0];
    const int part = grown(first, bin);

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "value", bin->value);
    lac_json_real(json, "number", bin->number);
    lac_json_uint(json, "run_count", bin->count);
    lac_json_real(json, "throughput_per_s", bin->median);
    lac_json_real(json, "low_per_s", bin->low);
    lac_json_real(json, "high_per_s", bin->high);
    lac_json_real(json, "ideal_per_s", bin->ideal);
    lac_json_decimals(json, "of_ideal_pct", 100.0 * bin->median / bin->ideal);
    if (part >= 0) {
        lac_json_open(json, "grew", '{');
        lac_json_text(json, "part", lac_time_part_name((uint32_t)part));
        lac_json_decimals(json, "from_pct", first->part_pct[part]);
        lac_json_decimals(json, "to_pct", bin->part_pct[part]);
        lac_json_close(json, '}');
    } else {
        lac_json_null(json, "grew");
    }
    lac_json_open(json, "parts_pct", '{');
    for (uint32_t p = 0; p < LAC_TIME_PART_COUNT; p++) {
        lac_json_decimals(json, lac_time_part_name(p), bin->part_pct[p]);
    }
    lac_json_close(json, '}');
    lac_json_open(json, "traces", '[');
    for (uint32_t i = 0; i < bin->count && i < TRACES_SHOWN; i++) {
        lac_json_text(json, NULL, series->samples[bin->first + i].run->lead->figures.trace);
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

/** "8 reach 5.1 times the throughput of 1, 64 % of ideal". */
static void write_text(struct lac_json *json, const struct series *series)
{
    const struct bin *first = &series->bins[0];
    const struct bin *last = series->bin_count > 0 ? &series->bins[series->bin_count - 1] : NULL;
    char text[256] = "";

    if (series->bin_count > 1 && isfinite(last->ideal)) {
        (void)snprintf(text, sizeof(text),
                       "%s %.40s reaches %.3g times the throughput of %.40s: %.0f %% of ideal",
                       series->setting, last->value, last->median / first->median, first->value,
                       100.0 * last->median / last->ideal);
    } else if (series->bin_count > 1) {
        const struct bin *best = first;

        for (uint32_t i = 1; i < series->bin_count; i++) {
            best = series->bins[i].median > best->median ? &series->bins[i] : best;
        }
        (void)snprintf(text, sizeof(text), "the highest throughput is that of %s %.40s",
                       series->setting, best->value);
    }
    lac_json_text(json, "text", text);
}

static void write_series(struct lac_json *json, const struct series *series)
{
    lac_json_text(json, "unit", series->unit);
    lac_json_uint(json, "left_out_count", series->left_out);
    lac_json_bool(json, "has_ideal", series->scales);
    lac_json_bool(json, "others_vary", series->do_others_vary);
    lac_json_open(json, "values", '[');
    for (uint32_t i = 0; i < series->bin_count; i++) {
        write_bin(json, series, &series->bins[i]);
    }
    lac_json_close(json, ']');
    write_text(json, series);
}

static void write_varied(struct lac_json *json, const struct lac_varied *varied, uint32_t count)
{
    lac_json_open(json, "varied", '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "setting", varied[i].key);
        lac_json_uint(json, "value_count", varied[i].value_count);
        lac_json_uint(json, "trace_count", varied[i].trace_count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

/** Whether anything else was changed: runs of one value would all have the same settings. */
static bool do_others_vary(const struct series *series)
{
    for (uint32_t b = 0; b < series->bin_count; b++) {
        const struct bin *bin = &series->bins[b];

        for (uint32_t i = bin->first + 1; i < bin->first + bin->count; i++) {
            if (series->samples[i].run->lead->figures.fingerprint !=
                series->samples[bin->first].run->lead->figures.fingerprint) {
                return true;
            }
        }
    }
    return false;
}

/** Fills `series`; it is empty without a setting. */
static enum lac_status make_series(struct lac_app *app, const char *project, const char *job,
                                   const struct lac_timeline *timeline,
                                   struct lac_setting_values *values, struct series *series,
                                   struct lac_error *reterr)
{
    enum lac_status status =
        lac_store_setting_values(app->store, project, series->setting, values, reterr);

    if (status == LAC_OK && !take_samples(timeline, job, values, series)) {
        status = LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        make_bins(series);
        series->do_others_vary = do_others_vary(series);
    }
    return status;
}

static void answer(struct lac_app *app, const struct lac_request *request,
                   const struct lac_timeline *timeline, struct series *series,
                   struct lac_response *response)
{
    struct lac_setting_values values = {0};
    struct lac_varied varied[LAC_VARIED_MAX];
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t varied_count = 0;
    const char *job = lac_target_get(request->target, "job");
    enum lac_status status =
        lac_store_varied(app->store, request->param[0], varied, &varied_count, &error);

    if (job == NULL) {
        job = timeline->count > 0 ? timeline->runs[timeline->count - 1].lead->figures.job : "";
    }
    if (status == LAC_OK && series->setting != NULL) {
        status = make_series(app, request->param[0], job, timeline, &values, series, &error);
    }
    if (status == LAC_OK) {
        lac_json_init(&json, &response->body);
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "project", request->param[0]);
        lac_json_text(&json, "job", job);
        lac_json_text(&json, "setting", series->setting);
        lac_json_uint(&json, "pending", timeline->points.missing);
        write_series(&json, series);
        write_varied(&json, varied, varied_count);
        lac_json_close(&json, '}');
    } else if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this series");
    } else {
        lac_api_fail(response, &error);
    }
    lac_setting_values_done(&values);
}

void lac_api_series(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_timeline timeline = {0};
    struct series *series = calloc(1, sizeof(*series));

    if (series == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this series");
        return;
    }
    series->setting = lac_target_get(request->target, "setting");
    if (lac_timeline_open(app_context, request->param[0], response, &timeline)) {
        answer(app_context, request, &timeline, series, response);
    }
    free(series->samples);
    free(series);
    lac_timeline_close(&timeline);
}
