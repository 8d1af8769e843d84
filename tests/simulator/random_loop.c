#include "tests/simulator/random_loop.h"

#include "analysis/model/status.h"
#include "server/demo/files.h"
#include "server/demo/trace_json.h"
#include "tests/simulator/random_what_if.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/train_loop.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 400, WORTH_PERCENT = 3 };

static void done_all(struct lac_demo_loop_run *runs, int32_t ranks)
{
    for (int32_t r = 0; r < ranks; r++) {
        lac_demo_loop_done(&runs[r]);
    }
}

/* When the last of the other ranks joins each collective. @return whether anything is new */
static bool meet(struct lac_demo_loop_run *runs, int32_t ranks, int64_t **others_ns)
{
    bool is_new = false;
    for (int32_t r = 0; r < ranks; r++) {
        for (uint32_t k = 0; k < runs[r].joined_count; k++) {
            int64_t last_ns = 0;
            for (int32_t other = 0; other < ranks; other++) {
                int64_t at_ns = other == r ? 0 : runs[other].joined_ns[k];
                last_ns = at_ns > last_ns ? at_ns : last_ns;
            }
            is_new = is_new || others_ns[r][k] != last_ns;
            others_ns[r][k] = last_ns;
        }
    }
    return is_new;
}

enum lac_status lac_demo_run_ranks(const struct lac_demo_scenario *scenario, bool is_quiet,
                                   struct lac_demo_loop_run *ret_runs)
{
    if (scenario->ranks == 1) {
        return lac_demo_loop_run(scenario, 0, NULL, is_quiet, ret_runs);
    }
    int64_t *others_ns[LAC_DEMO_RANKS_MAX] = {NULL};
    size_t joined = (size_t)(scenario->warmup_steps + scenario->recorded_steps) *
                        (size_t)scenario->bucket_count +
                    1;
    enum lac_status status = LAC_OK;
    bool is_new = true;
    for (int32_t r = 0; r < scenario->ranks; r++) {
        others_ns[r] = calloc(joined, sizeof(**others_ns));
        status = others_ns[r] == NULL ? LAC_ERR_NOMEM : status;
        ret_runs[r] = (struct lac_demo_loop_run){0};
    }
    for (int round = 0; round <= ROUNDS_MAX && is_new && status == LAC_OK; round++) {
        for (int32_t r = 0; r < scenario->ranks && status == LAC_OK; r++) {
            lac_demo_loop_done(&ret_runs[r]);
            status = lac_demo_loop_run(scenario, r, others_ns[r], true, &ret_runs[r]);
        }
        is_new = status == LAC_OK && meet(ret_runs, scenario->ranks, others_ns);
    }
    for (int32_t r = 0; r < scenario->ranks && status == LAC_OK && !is_quiet; r++) {
        lac_demo_loop_done(&ret_runs[r]);
        status = lac_demo_loop_run(scenario, r, others_ns[r], false, &ret_runs[r]);
    }
    for (int32_t r = 0; r < scenario->ranks; r++) {
        free(others_ns[r]);
    }
    if (status != LAC_OK) {
        done_all(ret_runs, scenario->ranks);
    }
    return status;
}

/* The mean step: as recorded, or in the long run. */
static enum lac_status mean_of(const struct lac_demo_scenario *scenario, bool is_recorded,
                               int64_t *ret_mean_ns, int64_t *ret_fetch_ns)
{
    struct lac_demo_loop_run runs[LAC_DEMO_RANKS_MAX];
    enum lac_status status = lac_demo_run_ranks(scenario, true, runs);
    if (status != LAC_OK) {
        return status;
    }
    int64_t sum_ns = 0;
    int64_t fetch_ns = 0;
    for (int32_t r = 0; r < scenario->ranks; r++) {
        sum_ns += is_recorded ? runs[r].mean_ns : runs[r].pace_ns;
        fetch_ns += runs[r].fetch_mean_ns;
    }
    *ret_mean_ns = sum_ns / scenario->ranks;
    if (ret_fetch_ns != NULL) {
        *ret_fetch_ns = fetch_ns / scenario->ranks;
    }
    done_all(runs, scenario->ranks);
    return LAC_OK;
}

/* Loading that never makes anybody wait. */
static struct lac_demo_scenario with_free_data(const struct lac_demo_scenario *scenario)
{
    struct lac_demo_scenario s = *scenario;
    s.workers = s.workers > 0 ? s.workers : 4;
    s.fetch_ns = 1000;
    s.late_fetch_ns = 1000;
    s.tail_permille = 0;
    s.is_locked = false;
    s.cores = LAC_DEMO_LOOP_WORKERS_MAX;
    return s;
}

static enum lac_status try_workers(const struct lac_demo_scenario *s,
                                   struct lac_demo_answer *answer)
{
    enum lac_status status = LAC_OK;
    for (int32_t n = 1; n <= LAC_DEMO_TABLE_WORKERS && status == LAC_OK; n++) {
        struct lac_demo_scenario changed = lac_demo_scenario_without(s, LAC_DEMO_CAUSE_WORKERS, n);
        /* ranks cost many rounds: only those near what is wanted */
        if (s->ranks == 1 || n == answer->workers_wanted) {
            status = mean_of(&changed, false, &answer->by_workers_ns[n], NULL);
        }
    }
    return status;
}

/* ceil(1.15 f / s), within what the table holds */
static int32_t wanted_workers(int64_t fetch_ns, int64_t step_ns)
{
    int64_t step_at_least_ns = step_ns < 1 ? 1 : step_ns;
    int64_t wanted = (fetch_ns / 100 * 115 + step_at_least_ns - 1) / step_at_least_ns;
    return (int32_t)(wanted > LAC_DEMO_TABLE_WORKERS ? LAC_DEMO_TABLE_WORKERS
                     : wanted < 1                    ? 1
                                                     : wanted);
}

static enum lac_status try_causes(const struct lac_demo_scenario *scenario,
                                  struct lac_demo_answer *answer)
{
    enum lac_status status = LAC_OK;
    int64_t best_ns = answer->mean_ns - answer->mean_ns / 100 * WORTH_PERCENT;
    answer->best = LAC_DEMO_CAUSE_COUNT_;
    for (int c = 0; c < LAC_DEMO_CAUSE_COUNT_ && status == LAC_OK; c++) {
        enum lac_demo_cause cause = (enum lac_demo_cause)c;
        bool is_workers = cause == LAC_DEMO_CAUSE_WORKERS;
        answer->is_possible[c] = lac_demo_scenario_has(scenario, cause) &&
                                 (!is_workers || answer->workers_wanted > scenario->workers);
        if (!answer->is_possible[c]) {
            continue;
        }
        struct lac_demo_scenario changed = lac_demo_scenario_without(
            scenario, cause, is_workers ? answer->workers_wanted : answer->workers_with_cores);
        status = mean_of(&changed, false, &answer->without_ns[c], NULL);
        /* from pageable memory, ahead is two changes: not the one to name first */
        bool is_one =
            cause != LAC_DEMO_CAUSE_BLOCKING || scenario->copies != LAC_DEMO_COPIES_PAGEABLE;
        if (status == LAC_OK && is_one && answer->without_ns[c] < best_ns) {
            best_ns = answer->without_ns[c];
            answer->best = cause;
        }
    }
    return status;
}

enum lac_status lac_demo_answer_of(const struct lac_demo_scenario *scenario,
                                   struct lac_demo_answer *ret_answer)
{
    struct lac_demo_answer answer = {0};
    struct lac_demo_scenario changed = with_free_data(scenario);
    enum lac_status status = mean_of(scenario, true, &answer.mean_ns, &answer.fetch_mean_ns);
    if (status == LAC_OK) {
        status = mean_of(&changed, false, &answer.unstarved_ns, NULL);
    }
    if (status == LAC_OK) {
        int64_t alone_ns = scenario->workers > scenario->cores
                               ? answer.fetch_mean_ns / scenario->workers * scenario->cores
                               : answer.fetch_mean_ns;
        answer.workers_wanted = wanted_workers(answer.fetch_mean_ns, answer.unstarved_ns);
        answer.workers_with_cores = wanted_workers(alone_ns, answer.unstarved_ns);
        status = try_causes(scenario, &answer);
    }
    if (status == LAC_OK) {
        status = try_workers(scenario, &answer);
    }
    *ret_answer = answer;
    return status;
}

/* ---- files ---- */

static void write_settings(FILE *out, const struct lac_demo_scenario *s)
{
    static const char *const COPIES[] = {"pageable", "pinned", "non_blocking", "ahead"};
    lac_demo_print(out,
                   "{\"batch_size\":%d,\"num_workers\":%d,\"prefetch_factor\":%d,\"pin_memory\":%s,"
                   "\"non_blocking\":%s,\"copies\":\"%s\",\"allowed_cores\":%d}",
                   s->batch_size, s->workers, s->prefetch_factor,
                   s->copies != LAC_DEMO_COPIES_PAGEABLE ? "true" : "false",
                   s->copies >= LAC_DEMO_COPIES_NON_BLOCKING ? "true" : "false", COPIES[s->copies],
                   s->cores);
}

struct paper {
    const struct lac_demo_scenario *scenario;
    const struct lac_demo_loop_run *runs;
    const struct lac_demo_answer *answer;
    const struct lac_demo_what_ifs *what_ifs;
    int32_t rank;
    char name[64];
};

static enum lac_status write_trace(FILE *out, const void *what, struct lac_error *reterr)
{
    static const struct lac_demo_device A100 = {
        "NVIDIA A100-SXM4-80GB", 85899345920, 8, 0, 108, 166912};
    const struct paper *paper = what;
    const struct lac_demo_scenario *s = paper->scenario;
    char *settings = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&settings, &length);
    if (text == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (s->has_hook) {
        write_settings(text, s);
    } else {
        lac_demo_print(text, "%s", "{}");
    }
    if (fclose(text) != 0) {
        free(settings);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    struct lac_demo_sheet sheet = {
        .name = paper->name,
        .settings = settings,
        .device = &A100,
        .workers = s->has_hook ? s->workers : 0,
        .rank = paper->rank,
        .ranks = s->bucket_count > 0 && s->ranks == 1 ? 8 : s->ranks,
        .has_thread_workers = s->has_thread_workers,
        .has_pin_thread = s->has_hook && s->workers > 0 && s->copies != LAC_DEMO_COPIES_PAGEABLE,
        .has_copy_stream = s->copies == LAC_DEMO_COPIES_AHEAD,
        .has_comm_stream = s->bucket_count > 0,
    };
    const struct lac_demo_loop_run *run = &paper->runs[paper->rank];
    enum lac_status status =
        lac_demo_write_events(out, &sheet, run->events, run->event_count, reterr);
    free(settings);
    return status;
}

static void write_counterfactuals(FILE *out, const struct paper *paper)
{
    const struct lac_demo_answer *a = paper->answer;
    const char *separator = "";
    lac_demo_print(out, "%s", "  \"counterfactuals\": {");
    for (int c = 0; c < LAC_DEMO_CAUSE_COUNT_; c++) {
        if (a->is_possible[c]) {
            double gain = 100.0 * (double)(a->mean_ns - a->without_ns[c]) / (double)a->mean_ns;
            lac_demo_print(
                out, "%s\n    \"%s\": {\"step_mean_ns\": %" PRId64 ", \"gain_pct\": %.2f}",
                separator, lac_demo_cause_name((enum lac_demo_cause)c), a->without_ns[c], gain);
            separator = ",";
        }
    }
    lac_demo_print(out, "%s", "\n  },\n  \"step_mean_ns_by_workers\": {");
    separator = "";
    for (int n = 1; n <= LAC_DEMO_TABLE_WORKERS; n++) {
        if (a->by_workers_ns[n] > 0) {
            lac_demo_print(out, "%s\"%d\": %" PRId64, separator, n, a->by_workers_ns[n]);
            separator = ", ";
        }
    }
    lac_demo_print(out, "%s", "},\n");
}

static void write_what_ifs(FILE *out, const struct lac_demo_what_ifs *what_ifs)
{
    lac_demo_print(out, "%s", "  \"what_if_step_mean_ns\": {");
    for (uint32_t i = 0; i < what_ifs->count; i++) {
        lac_demo_print(out, "%s\"%s\": %" PRId64, i == 0 ? "" : ", ", what_ifs->at[i].change,
                       what_ifs->at[i].mean_ns);
    }
    lac_demo_print(out, "%s", "},\n");
}

static void write_ranks(FILE *out, const struct paper *paper)
{
    lac_demo_print(out, "%s", "  \"ranks\": [");
    for (int32_t r = 0; r < paper->scenario->ranks; r++) {
        const struct lac_demo_loop_run *run = &paper->runs[r];
        lac_demo_print(out,
                       "%s\n    {\"step_mean_ns\": %" PRId64 ", \"span_ns\": %" PRId64
                       ", \"busy_ns\": %" PRId64 ", \"idle_ns\": {",
                       r == 0 ? "" : ",", run->mean_ns, run->span_ns, run->busy_ns);
        for (int b = 0; b < LAC_DEMO_BLAME_COUNT_; b++) {
            lac_demo_print(out, "%s\"%s\": %" PRId64, b == 0 ? "" : ", ",
                           lac_demo_blame_name((enum lac_demo_blame)b), run->idle_ns[b]);
        }
        lac_demo_print(out, "%s", "}}");
    }
    lac_demo_print(out, "%s", "\n  ]\n}\n");
}

static enum lac_status write_truth(FILE *out, const void *what, struct lac_error *reterr)
{
    static const char *const NAMES[] = {"steps", "loader", "optimizer", "none"};
    static const char *const LATE_BY[] = {"host", "data", "compute"};
    static const char *const READS[] = {"none", "last", "forward", "late"};
    const struct paper *paper = what;
    const struct lac_demo_scenario *s = paper->scenario;
    const struct lac_demo_answer *a = paper->answer;
    const char *separator = "";
    (void)reterr;
    lac_demo_print(out,
                   "{\n  \"schema\": \"lacuna.demo-answer/1\",\n  \"simulated\": true,\n"
                   "  \"seed\": %" PRIu64 ",\n  \"rank_count\": %d,\n  \"late_rank\": ",
                   s->seed, s->ranks);
    if (s->late_rank >= 0) {
        lac_demo_print(out, "%d,\n  \"late_by\": \"%s\",\n  \"causes\": [", s->late_rank,
                       LATE_BY[s->late_by]);
    } else {
        lac_demo_print(out, "null,\n  \"late_by\": %s,\n  \"causes\": [",
                       s->turn_ns > 0 ? "\"turns\"" : "null");
    }
    for (int c = 0; c < LAC_DEMO_CAUSE_COUNT_; c++) {
        if ((s->causes >> c & 1u) != 0) {
            lac_demo_print(out, "%s\"%s\"", separator, lac_demo_cause_name((enum lac_demo_cause)c));
            separator = ", ";
        }
    }
    lac_demo_print(out, "%s", "],\n  \"settings\": ");
    write_settings(out, s);
    lac_demo_print(out,
                   ",\n  \"shape\": {\"step_names\": \"%s\", \"hook\": %s, \"graph\": %s, "
                   "\"thread_workers\": %s, \"kernels\": %d, \"compute_ns\": %" PRId64
                   ", \"layout_ns\": %" PRId64 ", \"op_ns\": %" PRId64
                   ", \"reads\": \"%s\", \"read_count\": %d, \"module_every\": %d, "
                   "\"checkpoint_every\": %d, \"comm_ns\": %" PRId64 "},\n",
                   NAMES[s->names], s->has_hook ? "true" : "false", s->has_graph ? "true" : "false",
                   s->has_thread_workers ? "true" : "false", s->kernels, s->compute_ns,
                   s->has_layout ? s->layout_ns : 0, s->op_ns, READS[s->reads], s->read_count,
                   s->module_every, s->checkpoint_every, s->bucket_count > 0 ? s->comm_ns : 0);
    lac_demo_print(out,
                   "  \"steps\": {\"count\": %d, \"mean_ns\": %" PRId64 "},\n"
                   "  \"fetch_mean_ns\": %" PRId64 ",\n  \"unstarved_ns\": %" PRId64
                   ",\n  \"workers_wanted\": %d,\n  \"best\": \"%s\",\n",
                   s->recorded_steps, a->mean_ns, a->fetch_mean_ns, a->unstarved_ns,
                   a->workers_wanted, lac_demo_cause_name(a->best));
    write_counterfactuals(out, paper);
    write_what_ifs(out, paper->what_ifs);
    write_ranks(out, paper);
    return LAC_OK;
}

static enum lac_status write_one(const struct lac_random_loops *loops, uint64_t seed,
                                 struct lac_error *reterr)
{
    struct lac_demo_scenario scenario;
    struct lac_demo_loop_run runs[LAC_DEMO_RANKS_MAX];
    struct lac_demo_answer answer;
    char path[LAC_DEMO_PATH_BYTES];
    lac_demo_scenario_draw(seed, loops->how_many, loops->with_ranks, &scenario);
    enum lac_status status = lac_demo_run_ranks(&scenario, false, runs);
    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "seed %" PRIu64 ": the loop could not be simulated",
                        seed);
    }
    struct lac_demo_what_ifs what_ifs = {.count = 0};
    struct paper paper = {
        .scenario = &scenario, .runs = runs, .answer = &answer, .what_ifs = &what_ifs};
    for (int32_t r = 0; r < scenario.ranks && status == LAC_OK; r++) {
        paper.rank = r;
        if (scenario.ranks == 1) {
            (void)snprintf(paper.name, sizeof(paper.name), "random-%06" PRIu64, seed);
        } else {
            (void)snprintf(paper.name, sizeof(paper.name), "random-%06" PRIu64 "-rank%d", seed, r);
        }
        (void)snprintf(path, sizeof(path), "%s/%s.json", loops->dir, paper.name);
        status = lac_demo_write_file(path, write_trace, &paper, reterr);
    }
    if (status == LAC_OK) {
        status = lac_demo_answer_of(&scenario, &answer);
        if (status == LAC_OK && scenario.ranks == 1) {
            status = lac_demo_try_what_ifs(&scenario, answer.workers_wanted, &what_ifs);
        }
        (void)snprintf(path, sizeof(path), "%s/random-%06" PRIu64 ".truth.json", loops->dir, seed);
        status = status != LAC_OK
                     ? lac_fail(reterr, status, 0, "seed %" PRIu64 ": no counterfactual", seed)
                     : lac_demo_write_file(path, write_truth, &paper, reterr);
    }
    done_all(runs, scenario.ranks);
    return status;
}

/* When the loop was at what, counted from the first event as every reader does. */
static enum lac_status write_phases(FILE *out, const void *what, struct lac_error *reterr)
{
    static const char *const NAMES[] = {"steps", "loader", "optimizer", "none"};
    const struct paper *paper = what;
    const struct lac_demo_scenario *s = paper->scenario;
    const struct lac_demo_loop_run *run = paper->runs;
    (void)reterr;
    int64_t first_ns = run->window_end_ns;
    for (uint64_t i = 0; i < run->event_count; i++) {
        first_ns = run->events[i].start_ns < first_ns ? run->events[i].start_ns : first_ns;
    }
    lac_demo_print(out,
                   "{\n  \"schema\": \"lacuna.demo-phases/1\",\n  \"simulated\": true,\n"
                   "  \"seed\": %" PRIu64 ",\n  \"shape\": {\"step_names\": \"%s\", \"hook\": %s, "
                   "\"workers\": %d, \"named\": %s},\n  \"steps\": {\"count\": %d},\n"
                   "  \"phases\": [",
                   s->seed, NAMES[s->names], s->has_hook ? "true" : "false", s->workers,
                   s->has_no_phase_name ? "false" : "true", s->recorded_steps);
    for (uint32_t i = 0; i < run->beside_count; i++) {
        const struct lac_demo_beside *beside = &run->besides[i];
        lac_demo_print(out,
                       "%s\n    {\"name\": \"%s\", \"step\": %d, \"start_ns\": %" PRId64
                       ", \"dur_ns\": %" PRId64 "}",
                       i == 0 ? "" : ",", beside->phase, beside->step, beside->start_ns - first_ns,
                       beside->end_ns - beside->start_ns);
    }
    lac_demo_print(out, "%s", "\n  ]\n}\n");
    return LAC_OK;
}

static enum lac_status write_one_with_phases(const struct lac_random_loops *loops, uint64_t seed,
                                             struct lac_error *reterr)
{
    struct lac_demo_scenario scenario;
    struct lac_demo_loop_run run;
    char path[LAC_DEMO_PATH_BYTES];
    lac_demo_scenario_draw(seed, 1, false, &scenario);
    lac_demo_scenario_add_phases(&scenario);
    enum lac_status status = lac_demo_run_ranks(&scenario, false, &run);
    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "seed %" PRIu64 ": the loop could not be simulated",
                        seed);
    }
    struct paper paper = {.scenario = &scenario, .runs = &run};
    (void)snprintf(paper.name, sizeof(paper.name), "phases-%06" PRIu64, seed);
    (void)snprintf(path, sizeof(path), "%s/%s.json", loops->dir, paper.name);
    status = lac_demo_write_file(path, write_trace, &paper, reterr);
    (void)snprintf(path, sizeof(path), "%s/%s.truth.json", loops->dir, paper.name);
    if (status == LAC_OK) {
        status = lac_demo_write_file(path, write_phases, &paper, reterr);
    }
    lac_demo_loop_done(&run);
    return status;
}

enum lac_status lac_random_loops_write(const struct lac_random_loops *loops,
                                       struct lac_error *reterr)
{
    enum lac_status status = lac_demo_make_dir(loops->dir, reterr);
    for (uint64_t i = 0; i < loops->count && status == LAC_OK; i++) {
        status = loops->with_phases ? write_one_with_phases(loops, loops->seed + i, reterr)
                                    : write_one(loops, loops->seed + i, reterr);
    }
    return status;
}
