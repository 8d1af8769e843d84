/* GET /projects/{name}/journal: the runs of a job in a row, newest first. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/journal/journal.h"
#include "analysis/journal/pace_watch.h"
#include "analysis/model/status.h"
#include "collector/base/monotonic.h"
#include "server/api/document_cache.h"
#include "server/base/buffer.h"
#include "server/http/query.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"
#include "server/store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 100, GAIN_BYTES = 256 };

/** A run of the job that is shown. */
struct entry {
    const struct lac_timed_run *run;
    const struct lac_neighbors *neighbors; /**< of this run and the one before; NULL not compared */
    struct lac_regression regression;
};

struct journal {
    struct lac_app *app;
    const char *project;
    const char *job; /**< shown */
    struct lac_timeline timeline;
    struct lac_neighbor_list neighbors;
    char baseline[LAC_ID_SIZE];
    struct entry *entries; /**< oldest first */
    uint32_t count;
    uint32_t baseline_at; /**< entry; UINT32_MAX none */
    struct lac_calibration calibration;
    uint32_t from, to; /**< the page: entries [from, to) */
    uint32_t pending;  /**< pairs of the job that are not compared */
};

static const struct lac_figures *figures_of(const struct entry *entry)
{
    assert(entry->run != NULL);
    return &entry->run->lead->figures;
}

/* ---- the runs of the job ---- */

/** Without `?job=`: that of the newest run. */
static void choose_job(struct journal *journal, const char *asked)
{
    const struct lac_timeline *timeline = &journal->timeline;

    journal->job = asked != NULL         ? asked
                   : timeline->count > 0 ? timeline->runs[timeline->count - 1].lead->figures.job
                                         : "";
}

static bool take_entries(struct journal *journal)
{
    const struct lac_timeline *timeline = &journal->timeline;

    journal->entries = calloc((size_t)timeline->count + 1, sizeof(*journal->entries));
    journal->baseline_at = UINT32_MAX;
    for (uint32_t i = 0; i < timeline->count && journal->entries != NULL; i++) {
        const struct lac_point *lead = timeline->runs[i].lead;

        if (strcmp(lead->figures.job, journal->job) == 0) {
            if (strcmp(lead->figures.trace, journal->baseline) == 0) {
                journal->baseline_at = journal->count;
            }
            journal->entries[journal->count++] = (struct entry){.run = &timeline->runs[i]};
        }
    }
    return journal->entries != NULL;
}

static int by_b(const void *key, const void *row)
{
    return strcmp(key, ((const struct lac_neighbors *)row)->b);
}

/** The comparison of an entry with the one before it, as it is kept now. */
static const struct lac_neighbors *find_neighbors(const struct journal *journal, uint32_t at)
{
    const struct lac_neighbors *row =
        at == 0 || journal->neighbors.count == 0
            ? NULL
            : bsearch(figures_of(&journal->entries[at])->trace, journal->neighbors.rows,
                      journal->neighbors.count, sizeof(*journal->neighbors.rows), by_b);

    return row != NULL && strcmp(row->a, figures_of(&journal->entries[at - 1])->trace) == 0 ? row
                                                                                            : NULL;
}

static enum lac_status read_neighbors(struct journal *journal, struct lac_error *reterr)
{
    enum lac_status status;

    lac_neighbor_list_done(&journal->neighbors);
    status =
        lac_store_neighbors(journal->app->store, journal->project, &journal->neighbors, reterr);
    journal->pending = 0;
    for (uint32_t i = 0; i < journal->count && status == LAC_OK; i++) {
        journal->entries[i].neighbors = find_neighbors(journal, i);
        journal->pending += i > 0 && journal->entries[i].neighbors == NULL;
    }
    return status;
}

/** Compare what is not compared: of the page first, then older ones. */
static enum lac_status compare_some(struct journal *journal, struct lac_error *reterr)
{
    const uint64_t end_ns = lac_monotonic_ns() + LAC_JOURNAL_WORK_MS * UINT64_C(1000000);
    uint32_t budget = LAC_JOURNAL_COMPARISONS;
    enum lac_status status = LAC_OK;

    lac_document_cache_begin_work(journal->app->documents);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = journal->to; i-- > 1 && budget > 0 && status == LAC_OK;) {
            const bool is_shown = i >= journal->from;

            if (is_shown == (pass == 0) && journal->entries[i].neighbors == NULL) {
                status =
                    lac_journal_compare(journal->app, figures_of(&journal->entries[i - 1])->trace,
                                        figures_of(&journal->entries[i])->trace, reterr);
                budget = lac_monotonic_ns() < end_ns ? budget - 1 : 0;
            }
        }
    }
    lac_document_cache_end_work(journal->app->documents);
    return status == LAC_OK && budget < LAC_JOURNAL_COMPARISONS ? read_neighbors(journal, reterr)
                                                                : status;
}

/* ---- what follows from them ---- */

static bool is_like_baseline(const struct journal *journal, uint32_t at)
{
    return figures_of(&journal->entries[at])->fingerprint ==
           figures_of(&journal->entries[journal->baseline_at])->fingerprint;
}

/** Every run after the baseline against it and the like of it, before and after. */
static void judge(struct journal *journal)
{
    struct lac_pace_watch watch;
    bool is_level = true;

    if (journal->baseline_at >= journal->count) {
        return; /* none, or of another job */
    }
    lac_pace_watch_begin(&watch, &figures_of(&journal->entries[journal->baseline_at])->pace);
    for (uint32_t i = journal->baseline_at; i-- > 0 && is_level;) {
        is_level = !is_like_baseline(journal, i) ||
                   lac_pace_watch_precede(&watch, &figures_of(&journal->entries[i])->pace);
    }
    for (uint32_t i = journal->baseline_at + 1; i < journal->count; i++) {
        lac_pace_watch_judge(&watch, &figures_of(&journal->entries[i])->pace,
                             is_like_baseline(journal, i), &journal->entries[i].regression);
    }
}

/** The team's tries: of all jobs of the project. */
static bool calibrate(struct journal *journal)
{
    const struct lac_neighbor_list *rows = &journal->neighbors;
    struct lac_try *tries = calloc((size_t)rows->count + 1, sizeof(*tries));
    uint32_t count = 0;

    if (tries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        tries[count++] = (struct lac_try){rows->rows[i].predicted_pct, rows->rows[i].achieved_pct};
    }
    lac_calibrate(tries, count, &journal->calibration);
    free(tries);
    return true;
}

/* ---- writing ---- */

static void write_regression(struct lac_json *json, const struct journal *journal, uint32_t at)
{
    const struct lac_regression *it = &journal->entries[at].regression;

    if (journal->baseline_at == UINT32_MAX || at <= journal->baseline_at) {
        lac_json_null(json, "regression");
        return;
    }
    lac_json_open(json, "regression", '{');
    lac_json_text(json, "verdict", lac_regression_name(it->verdict));
    lac_json_decimals(json, "change_pct", it->change_pct);
    lac_json_decimals(json, "low_pct", it->low_pct);
    lac_json_decimals(json, "high_pct", it->high_pct);
    lac_json_decimals(json, "confidence", it->confidence);
    lac_json_decimals(json, "visible_pct", it->visible_pct);
    lac_json_uint(json, "baseline_count", it->baseline_count);
    lac_json_bool(json, "same_settings", is_like_baseline(journal, at));
    if (it->lasting.run_count == 0) {
        lac_json_null(json, "lasting");
    } else {
        lac_json_open(json, "lasting", '{');
        lac_json_uint(json, "run_count", it->lasting.run_count);
        lac_json_decimals(json, "change_pct", it->lasting.pct);
        lac_json_decimals(json, "confidence", it->lasting.confidence);
        lac_json_close(json, '}');
    }
    lac_json_close(json, '}');
}

static void write_parts(struct lac_json *json, const struct lac_timed_run *run)
{
    if (run->gpu_ns == 0) {
        lac_json_null(json, "parts_pct");
        return;
    }
    lac_json_open(json, "parts_pct", '{');
    for (uint32_t i = 0; i < LAC_TIME_PART_COUNT; i++) {
        lac_json_decimals(json, lac_time_part_name(i),
                          100.0 * (double)run->part_ns[i] / (double)run->gpu_ns);
    }
    lac_json_close(json, '}');
}

static void write_numbers(struct lac_json *json, const struct entry *entry)
{
    const struct lac_timed_run *run = entry->run;
    const struct lac_point *lead = run->lead;
    const bool has_gpu = run->gpu_ns > 0;

    lac_json_text(json, "throughput_unit",
                  lead->throughput_unit[0] != '\0' ? lead->throughput_unit : NULL);
    lac_json_real(json, "throughput_per_s", lead->throughput_per_s);
    lac_json_ns(json, "step_mean_ns", lead->step_mean_ns);
    lac_json_real(json, "step_spread_pct",
                  isfinite(lead->figures.pace.log_step) && lead->figures.pace.count > 2
                      ? 100.0 * sqrt(lead->figures.pace.variance)
                      : (double)NAN);
    lac_json_decimals(json, "not_computing_pct", lead->not_computing_pct);
    lac_json_real(json, "gpu_hours", has_gpu ? (double)run->gpu_ns / 3.6e12 : (double)NAN);
    lac_json_real(json, "gpu_hours_wasted",
                  has_gpu ? (double)lac_timed_run_wasted_ns(run) / 3.6e12 : (double)NAN);
    lac_json_real(json, "energy_j", run->energy_j);
    lac_json_decimals(json, "mfu_pct", lac_mfu_mean_pct(run->mfu));
    write_parts(json, run);
}

static void write_kept(struct lac_json *json, const char *key, const char *text)
{
    if (text != NULL) {
        lac_json_raw(json, key, text, strlen(text));
    } else {
        lac_json_null(json, key);
    }
}

static void write_labels(struct lac_json *json, const struct lac_run_details *details)
{
    lac_json_text(json, "name", details->name);
    lac_json_text(json, "notes", details->notes);
    lac_json_open(json, "tags", '[');
    for (const char *at = details->tags; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "\n");

        lac_json_text_sized(json, NULL, at, length);
        at += length + (at[length] == '\n');
    }
    lac_json_close(json, ']');
    lac_json_text(json, "host", details->host);
    lac_json_text(json, "devices", details->device_names);
    lac_json_bool(json, "is_simulated", details->is_simulated);
    lac_json_text(json, "cause", details->cause);
}

static void write_entry(struct lac_json *json, const struct journal *journal, uint32_t at,
                        const struct lac_run_details *details)
{
    const struct entry *entry = &journal->entries[at];
    const struct lac_figures *figures = figures_of(entry);

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "trace", figures->trace);
    lac_json_text(json, "run", entry->run->lead->run[0] != '\0' ? entry->run->lead->run : NULL);
    lac_json_uint(json, "trace_count", entry->run->trace_count);
    write_labels(json, details);
    lac_api_write_time(json, "recorded_at", figures->recorded_unix_ms);
    lac_json_text(json, "job", figures->job);
    lac_json_text(json, "person", figures->person[0] != '\0' ? figures->person : NULL);
    lac_json_bool(json, "baseline", details->is_baseline);
    lac_json_bool(json, "pinned", details->is_pinned);
    write_numbers(json, entry);
    write_regression(json, journal, at);
    write_kept(json, "facts", details->figures);
    write_kept(json, "from_previous", entry->neighbors != NULL ? details->neighbors : NULL);
    lac_json_bool(json, "is_first", at == 0);
    lac_json_close(json, '}');
}

/** The page, newest first: one statement, however many runs it shows. */
static enum lac_status write_page(struct lac_json *json, const struct journal *journal,
                                  struct lac_error *reterr)
{
    const uint32_t count = journal->to - journal->from;
    const char **traces = calloc((size_t)count + 1, sizeof(*traces));
    struct lac_run_details *details = NULL;
    enum lac_status status = traces != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (uint32_t i = 0; i < count && traces != NULL; i++) {
        traces[i] = figures_of(&journal->entries[journal->from + i])->trace;
    }
    if (status == LAC_OK) {
        status = lac_store_run_details(journal->app->store, traces, count, &details, reterr);
    }
    lac_json_open(json, "runs", '[');
    for (uint32_t i = count; i-- > 0 && status == LAC_OK;) {
        if (details[i].is_there) { /* else deleted meanwhile */
            write_entry(json, journal, journal->from + i, &details[i]);
        }
    }
    lac_json_close(json, ']');
    lac_run_details_done(details, count);
    free(traces);
    return status;
}

static void write_band(struct lac_json *json, const char *key, const struct lac_gain_band *band)
{
    lac_json_open(json, key, '{');
    lac_json_decimals(json, "low", band->low_pct);
    lac_json_decimals(json, "mid", band->mid_pct);
    lac_json_decimals(json, "high", band->high_pct);
    lac_json_close(json, '}');
}

static void write_calibration(struct lac_json *json, const struct lac_calibration *it)
{
    char text[160];

    if (it->count == 0) {
        (void)snprintf(text, sizeof(text), "no change of this team had a prediction yet");
    } else if (isnan(it->ratio)) {
        (void)snprintf(text, sizeof(text),
                       "on this team's %u %s nothing of what was predicted came", it->count,
                       it->count == 1 ? "try" : "tries");
    } else if (it->count == 1) {
        (void)snprintf(text, sizeof(text),
                       "on this team's one try, the prediction was %.2f of what it achieved",
                       it->ratio);
    } else {
        (void)snprintf(text, sizeof(text),
                       "on this team's %u tries, predictions were %.2f of achieved", it->count,
                       it->ratio);
    }
    lac_json_open(json, "calibration", '{');
    lac_json_uint(json, "count", it->count);
    lac_json_decimals(json, "ratio", it->ratio);
    lac_json_decimals(json, "factor", it->factor);
    lac_json_text(json, "text", text);
    lac_json_close(json, '}');
}

static const char *stop_text(enum lac_stop stop)
{
    switch (stop) {
    case LAC_STOP_GO_ON:
        return "";
    case LAC_STOP_NOTHING_LEFT:
        return "Stop here: no finding of the last run promises a gain.";
    case LAC_STOP_TOO_SMALL:
        return "Stop here: what is left gains less than 2 %.";
    case LAC_STOP_BELOW_NOISE:
        return "Stop here: what is left is less than the steps of the last run can show.";
    }
    return "";
}

/** The best change that the last run's findings propose, as this team's tries correct it. */
static enum lac_status write_next(struct lac_json *json, const struct journal *journal,
                                  struct lac_error *reterr)
{
    struct lac_gain_band band = {(double)NAN, (double)NAN, (double)NAN};
    struct lac_trace_row row = {0};
    double noise_pct = (double)NAN;
    enum lac_stop stop;
    enum lac_status status = LAC_OK;

    if (journal->count == 0) {
        lac_json_null(json, "next_change");
        lac_json_null(json, "stop");
        return LAC_OK;
    }
    const struct lac_figures *last = figures_of(&journal->entries[journal->count - 1]);

    status = lac_store_get_trace(journal->app->store, last->trace, &row, reterr);
    if (status == LAC_OK && row.summary.present) {
        band = (struct lac_gain_band){row.summary.gain_low_pct, row.summary.gain_mid_pct,
                                      row.summary.gain_high_pct};
        noise_pct = 100.0 * 2.8 * sqrt(last->pace.variance);
    }
    const struct lac_gain_band corrected = lac_calibrated(&band, &journal->calibration);

    stop = lac_stop_when(&corrected, noise_pct);
    if (isfinite(band.mid_pct) && row.summary.finding_id[0] != '\0') {
        lac_json_open(json, "next_change", '{');
        lac_json_text(json, "trace", last->trace);
        lac_json_text(json, "finding", row.summary.finding_id);
        lac_json_text(json, "text", row.summary.next_change);
        write_band(json, "gain_pct", &band);
        write_band(json, "calibrated_pct", &corrected);
        lac_json_close(json, '}');
    } else {
        lac_json_null(json, "next_change");
    }
    lac_json_open(json, "stop", '{');
    lac_json_text(json, "verdict", lac_stop_name(stop));
    lac_json_text(json, "text", stop_text(stop));
    lac_json_close(json, '}');
    lac_trace_row_done(&row);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** GPU time of one sample, last against first: what an epoch takes less. */
static double saved_pct(const struct journal *journal)
{
    const struct lac_point *first;
    const struct lac_point *last;

    if (journal->count < 2) {
        return (double)NAN;
    }
    first = journal->entries[0].run->lead;
    last = journal->entries[journal->count - 1].run->lead;
    return strcmp(first->throughput_unit, last->throughput_unit) == 0 &&
                   first->throughput_per_s > 0.0 && last->throughput_per_s > 0.0 &&
                   journal->entries[0].run->trace_count ==
                       journal->entries[journal->count - 1].run->trace_count
               ? 100.0 * (1.0 - first->throughput_per_s / last->throughput_per_s)
               : (double)NAN;
}

static void write_jobs(struct lac_json *json, const struct lac_timeline *timeline)
{
    struct {
        const char *name;
        uint32_t count;
    } jobs[JOBS_MAX];
    uint32_t count = 0;

    for (uint32_t i = timeline->count; i-- > 0;) {
        const char *name = timeline->runs[i].lead->figures.job;
        uint32_t at = 0;

        while (at < count && strcmp(jobs[at].name, name) != 0) {
            at++;
        }
        if (at == count && count < JOBS_MAX) {
            jobs[count].name = name;
            jobs[count++].count = 0;
        }
        if (at < count) {
            jobs[at].count++;
        }
    }
    lac_json_open(json, "jobs", '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", jobs[i].name);
        lac_json_uint(json, "run_count", jobs[i].count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static enum lac_status write_journal(const struct journal *journal, struct lac_buffer *out,
                                     struct lac_error *reterr)
{
    struct lac_json json;
    enum lac_status status = LAC_OK;

    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.journal/1");
    lac_json_text(&json, "project", journal->project);
    lac_json_text(&json, "job", journal->job);
    write_jobs(&json, &journal->timeline);
    lac_json_uint(&json, "run_count", journal->count);
    lac_json_uint(&json, "pending", journal->pending + journal->timeline.points.missing);
    lac_json_text(&json, "baseline", journal->baseline[0] != '\0' ? journal->baseline : NULL);
    status = write_page(&json, journal, reterr);
    if (journal->from > 0) {
        lac_json_text(&json, "next", figures_of(&journal->entries[journal->from])->trace);
    } else {
        lac_json_null(&json, "next");
    }
    write_calibration(&json, &journal->calibration);
    if (status == LAC_OK) {
        status = write_next(&json, journal, reterr);
    }
    lac_json_decimals(&json, "saved_pct", saved_pct(journal));
    lac_json_close(&json, '}');
    return status == LAC_OK ? out->status : status;
}

/* ---- the handler ---- */

/** The page that ends before `after`. @return false: no run of the job has that id */
static bool choose_page(struct journal *journal, const char *after, uint32_t limit)
{
    journal->to = journal->count;
    if (after != NULL) {
        while (journal->to > 0 &&
               strcmp(figures_of(&journal->entries[journal->to - 1])->trace, after) != 0) {
            journal->to--;
        }
        if (journal->to == 0) {
            return false;
        }
        journal->to--;
    }
    journal->from = journal->to > limit ? journal->to - limit : 0;
    return true;
}

static void answer(struct journal *journal, const struct lac_request *request, int64_t limit,
                   struct lac_response *response)
{
    struct lac_error error = {0};
    enum lac_status status =
        lac_store_baseline(journal->app->store, journal->project, journal->baseline, &error);

    choose_job(journal, lac_target_get(request->target, "job"));
    if (status == LAC_OK && !take_entries(journal)) {
        status = LAC_ERR_NOMEM;
    }
    if (status == LAC_OK &&
        !choose_page(journal, lac_target_get(request->target, "after"), (uint32_t)limit)) {
        lac_response_error(response, 400, "bad_request",
                           "after is the `next` of the page before, of the same job");
        return;
    }
    if (status == LAC_OK) {
        status = read_neighbors(journal, &error);
    }
    if (status == LAC_OK && !journal->app->stands_by) { /* else it stays pending */
        status = compare_some(journal, &error);
    }
    if (status == LAC_OK) {
        judge(journal);
        status =
            calibrate(journal) ? write_journal(journal, &response->body, &error) : LAC_ERR_NOMEM;
    }
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this journal");
    } else if (status != LAC_OK) {
        lac_api_fail(response, &error);
    }
}

bool lac_journal_judge(struct lac_app *app, const char *project, const char *trace,
                       struct lac_regression *ret_regression)
{
    struct journal journal = {.app = app, .project = project};
    struct lac_response unsent = {.http_status = 200};
    struct lac_error error = {0};
    bool is_known = false;

    *ret_regression = (struct lac_regression){0};
    if (lac_timeline_open(app, project, &unsent, &journal.timeline) &&
        lac_store_baseline(app->store, project, journal.baseline, &error) == LAC_OK) {
        for (uint32_t i = 0; i < journal.timeline.count && journal.job == NULL; i++) {
            const struct lac_figures *figures = &journal.timeline.runs[i].lead->figures;

            journal.job = strcmp(figures->trace, trace) == 0 ? figures->job : NULL;
        }
        is_known = journal.job != NULL || journal.timeline.points.missing == 0;
        if (journal.job != NULL && take_entries(&journal)) {
            judge(&journal);
            for (uint32_t i = 0; i < journal.count; i++) {
                if (strcmp(figures_of(&journal.entries[i])->trace, trace) == 0) {
                    *ret_regression = journal.entries[i].regression;
                }
            }
        }
    }
    free(journal.entries);
    lac_timeline_close(&journal.timeline);
    lac_buffer_done(&unsent.body);
    return is_known;
}

void lac_api_journal(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct journal journal = {.app = app_context, .project = request->param[0]};
    int64_t limit;

    if (!lac_api_int(request, response, "limit", 1, 200, 50, &limit)) {
        return;
    }
    if (lac_timeline_open(journal.app, journal.project, response, &journal.timeline)) {
        answer(&journal, request, limit, response);
    }
    free(journal.entries);
    lac_neighbor_list_done(&journal.neighbors);
    lac_timeline_close(&journal.timeline);
}
