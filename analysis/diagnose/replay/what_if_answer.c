/* What --what-if asks, answered: a band, on what it stands, or why it is not known. */

#include "analysis/diagnose/replay/graph.h"
#include "analysis/diagnose/replay/what_if_replay.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

/** What becomes of a step: factor of its own part and of its wait for data, and what is added. */
struct retiming {
    double own, wait, more_ns;
};

/**
 * Faster, the own part loses what the mean loses of it and the wait shrinks with what is left.
 * Slower, the own part grows, and covers the wait. But where the change is to the workers, the wait
 * grows as it is spread over the steps now; evenly where there is none to speak of, or with one
 * worker, for which each step waits.
 */
static struct retiming retiming_of(const struct lac_step_time *time, int32_t workers,
                                   double mean_ns)
{
    const bool is_slower = mean_ns > time->step_ns;
    if (time->s_ns <= 0.0) {
        return (struct retiming){1.0, 1.0, 0.0};
    }
    if (is_slower && workers == LAC_WHAT_IF_UNSET) {
        return (struct retiming){mean_ns / time->s_ns, 0.0, 0.0};
    }
    if (is_slower && (!time->is_starving || workers <= 1)) {
        return (struct retiming){1.0, 0.0, mean_ns - time->s_ns};
    }
    const double own_ns = fmin(mean_ns, time->s_ns);
    return (struct retiming){own_ns / time->s_ns,
                             time->starved_ns > 0.0 ? (mean_ns - own_ns) / time->starved_ns : 1.0,
                             0.0};
}

/** The median of the re-timed steps. */
static int64_t median_after(const struct lac_facts *facts, int32_t workers, double mean_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct retiming after = retiming_of(facts->time, workers, mean_ns);
    double *steps = malloc(analysis->step_count * sizeof(*steps));
    if (steps == NULL) {
        return LAC_UNKNOWN_NS;
    }
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            steps[count++] = after.own * (double)(step->dur_ns - step->starved_ns) +
                             after.wait * (double)step->starved_ns + after.more_ns;
        }
    }
    qsort(steps, count, sizeof(*steps), by_value);
    double median_ns = steps[(count + 1) / 2 - 1];
    free(steps);
    return lac_round(median_ns);
}

/* -- what is not known ------------------------------------------------------------------------- */

/** Why nothing can be said of so many workers, or NULL. */
static const char *why_not_workers(const struct lac_facts *facts, int32_t workers)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    bool is_fetch_known = loader->fetch_mean_ns != LAC_UNKNOWN_NS;
    if (workers == LAC_WHAT_IF_UNSET || workers == loader->num_workers) {
        return NULL;
    }
    if (!loader->is_present) {
        return "loading batches was not recorded";
    }
    if (loader->num_workers < 0 && !is_fetch_known) {
        return "neither the number of workers nor the time that a batch takes one was recorded";
    }
    /* all of them are busy where training waits; more of them change nothing where it does not */
    if (!is_fetch_known && !facts->time->is_starving && workers < loader->num_workers) {
        return "the workers keep up, and the time that a batch takes one was not recorded: fewer "
               "may "
               "keep up, too, or not";
    }
    if (!is_fetch_known && loader->num_workers == 0) {
        return "the time that a batch takes to load was not recorded";
    }
    return NULL;
}

static bool has_batch_copies(const struct lac_step_time *time)
{
    return time->class_count[LAC_OP_COPY_PAGEABLE] + time->class_count[LAC_OP_COPY_PINNED] > 0.0;
}

/** Why the changes cannot be answered, or NULL. */
static const char *why_not(const struct lac_facts *facts, const struct lac_what_if_changes *what_if)
{
    const struct lac_step_time *time = facts->time;
    bool asks_host = what_if->no_sync == 1 || what_if->no_launch == 1 ||
                     what_if->no_allocator == 1 || what_if->no_module_load == 1;
    bool asks_copies = what_if->pinned == 1 || what_if->async_copies == 1;
    bool asks_device = asks_host || asks_copies || what_if->layout_nhwc == 1 ||
                       what_if->comm >= 0.0 || what_if->kernels >= 0.0;
    if (time == NULL) {
        return "no steps were found, which could be replayed";
    }
    if (asks_device && facts->analysis->main_device == LAC_NONE) {
        return "no GPU work was recorded";
    }
    if (asks_host && !facts->has_api) {
        return "the calls that launch GPU work and wait for it were not recorded";
    }
    if (asks_copies && !has_batch_copies(time)) {
        return "no copy of a batch to the GPU was recorded";
    }
    return why_not_workers(facts, what_if->workers);
}

/** Whether the changes touch nothing that the steps hold. */
static bool changes_nothing(const struct lac_facts *facts,
                            const struct lac_what_if_changes *what_if)
{
    const struct lac_step_time *time = facts->time;
    struct lac_change change;
    lac_change_from_what_if(facts, what_if, LAC_CASE_BEST, &change);
    bool touches = change.workers != LAC_WHAT_IF_UNSET || change.copies_ahead;
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        touches = touches ||
                  (fabs(change.factor[op_class] - 1.0) > 0.0 && time->class_count[op_class] > 0.0);
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        touches = touches || change.idle_factor[cause] < 1.0;
    }
    return !touches;
}

/* -- on what an answer stands ------------------------------------------------------------------ */

double lac_replay_error(const struct lac_step_time *time)
{
    if (time->graph == NULL) {
        return DEVICE_ERROR_USUAL;
    }
    double least =
        lac_graph_trust(time) == LAC_TRUST_NONE ? DEVICE_ERROR_USUAL : REPLAY_ERROR_LEAST;
    return fmin(fmax(fabs(time->graph->base_error), least), REPLAY_ERROR_MOST);
}

/** How many steps were played again, or why none was. */
static const char *basis_of(struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    struct lac_text **texts = &facts->analysis->texts;
    struct lac_text32 error = lac_format_pct(100.0 * lac_replay_error(time));
    switch (lac_graph_trust(time)) {
    case LAC_TRUST_ALL:
        return lac_texts_add(
            texts,
            "From replaying %s: threads, streams%s, with the recorded dependencies; the band holds "
            "%s for the replay itself.",
            lac_format_count(time->graph->step_count, "step").text,
            time->graph->batch_count > 0 ? " and the loader" : "", error.text);
    case LAC_TRUST_DEVICE:
        return lac_texts_add(
            texts,
            "From replaying %s: threads and streams. The loader is modeled separately, because its "
            "replayed queue does not reproduce the recorded waits; the band holds %s for the "
            "replay itself.",
            lac_format_count(time->graph->step_count, "step").text, error.text);
    case LAC_TRUST_NONE:
        break;
    }
    return lac_texts_add(texts,
                         "From device operations only: replaying the unchanged steps does not "
                         "reproduce their recorded time, or launches are not linked. The band "
                         "holds %s for that.",
                         error.text);
}

/** What the band stands on. */
static const char *assumption_of(struct lac_facts *facts, const struct lac_what_if_changes *what_if)
{
    struct lac_text **texts = &facts->analysis->texts;
    const char *what = facts->time->comm_ns > 0.0
                           ? "Assumes that everything unchanged takes as long as before, waiting "
                             "for other ranks in collectives included."
                           : "Assumes that everything unchanged takes as long as before.";
    bool is_played = lac_graph_trust(facts->time) == LAC_TRUST_ALL;
    if (what_if->workers > 0 && facts->time->is_in_process && is_played) {
        what = "Assumes that a worker takes as long per batch as the training process did (high: "
               "10 % longer). Workers compete for cores and memory: the training process is "
               "assumed to run 10 % slower with them (low: not slower, high: 40 % longer).";
    } else if (what_if->workers > 0 && facts->time->is_in_process) {
        what =
            "Low: all waiting for data disappears and the training process runs 10 % slower. High: "
            "only exposed waiting for data disappears and it runs 20 % slower. Assumes that a "
            "worker takes as long per batch as the training process did (high: 10 % longer).";
    } else if (what_if->workers > 0) {
        what = lac_texts_add(texts,
                             "Assumes that a batch takes as long with %s as before (high: 10 %% "
                             "longer, and the training process 2 %% slower).",
                             lac_format_count(what_if->workers, "worker").text);
    }
    const char *inferred =
        what_if->workers != LAC_WHAT_IF_UNSET && facts->analysis->loader.are_workers_inferred
            ? " How many workers there are, and how long a batch takes one, is "
              "inferred from the waits."
            : "";
    const char *staged =
        what_if->async_copies == 1 && what_if->pinned != 1 &&
                facts->time->class_count[LAC_OP_COPY_PAGEABLE] > 0.0
            ? " Copies from pageable memory stay as they are, because the driver stages them "
              "before the call returns: pinned=1 lets them overlap."
            : "";
    return lac_texts_add(texts, "%s%s%s %s", what, inferred, staged, basis_of(facts));
}

static void replay_cases(const struct lac_facts *facts, const struct lac_what_if_changes *what_if,
                         double mean_ns[LAC_CASE_COUNT_])
{
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_from_what_if(facts, what_if, (enum lac_case)which, &change);
        mean_ns[which] = lac_what_if_replay(facts, &change);
    }
}

static struct lac_what_if_step band_of(const double mean_ns[LAC_CASE_COUNT_], double error)
{
    double mid_ns = mean_ns[LAC_CASE_MID];
    return (struct lac_what_if_step){
        .low_ns = lac_round(fmin(mean_ns[LAC_CASE_BEST], (1.0 - error) * mid_ns)),
        .mean_ns = lac_round(mid_ns),
        .high_ns = lac_round(fmax(mean_ns[LAC_CASE_WORST], (1.0 + error) * mid_ns)),
    };
}

/** The same with less of the time that collectives took, which is waiting for other ranks, too. */
static void answer_by_comm(const struct lac_facts *facts, const struct lac_what_if_changes *what_if)
{
    struct lac_analysis *analysis = facts->analysis;
    const double comm = what_if->comm >= 0.0 ? what_if->comm : 1.0;
    struct lac_what_if_changes now;
    struct lac_change change;
    double mean_ns[LAC_CASE_COUNT_];
    lac_what_if_clear(&now);
    for (int part = 0; part < LAC_COMM_PARTS; part++) {
        struct lac_what_if_changes then = *what_if;
        then.comm = comm * part / LAC_COMM_PARTS;
        replay_cases(facts, &then, mean_ns);
        analysis->what_if_by_comm[part] = band_of(mean_ns, lac_replay_error(facts->time));
        now.comm = (double)part / LAC_COMM_PARTS;
        lac_change_from_what_if(facts, &now, LAC_CASE_MID, &change);
        analysis->what_if_now_by_comm_ns[part] = lac_round(lac_what_if_replay(facts, &change));
    }
}

void lac_what_if_answer(struct lac_facts *facts, const struct lac_what_if_changes *what_if)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_what_if_step unknown = {LAC_UNKNOWN_NS, LAC_UNKNOWN_NS, LAC_UNKNOWN_NS};
    const char *reason = why_not(facts, what_if);
    analysis->has_what_if = true;
    analysis->what_if = *what_if;
    analysis->what_if_step = unknown;
    for (int part = 0; part < LAC_COMM_PARTS; part++) {
        analysis->what_if_by_comm[part] = unknown;
        analysis->what_if_now_by_comm_ns[part] = LAC_UNKNOWN_NS;
    }
    analysis->what_if_median_ns = LAC_UNKNOWN_NS;
    analysis->what_if_assumption = "";
    analysis->what_if_why_not = reason != NULL ? reason : "";
    if (reason != NULL) {
        return;
    }
    double mean_ns[LAC_CASE_COUNT_];
    replay_cases(facts, what_if, mean_ns);
    bool is_exact = changes_nothing(facts, what_if);
    analysis->what_if_step = band_of(mean_ns, is_exact ? 0.0 : lac_replay_error(facts->time));
    analysis->what_if_assumption = is_exact ? "Exact: the steps hold nothing that this changes."
                                            : assumption_of(facts, what_if);
    analysis->what_if_median_ns = median_after(facts, what_if->workers, mean_ns[LAC_CASE_MID]);
    answer_by_comm(facts, what_if);
}

/* -- workers ----------------------------------------------------------------------------------- */

static struct lac_worker_step worker_step(const struct lac_facts *facts, int32_t workers)
{
    struct lac_what_if_changes change;
    double mean_ns[LAC_CASE_COUNT_];
    if (why_not_workers(facts, workers) != NULL) {
        return (struct lac_worker_step){LAC_UNKNOWN_NS, LAC_UNKNOWN_NS, LAC_UNKNOWN_NS};
    }
    lac_what_if_clear(&change);
    change.workers = workers;
    replay_cases(facts, &change, mean_ns);
    return (struct lac_worker_step){
        .low_ns = lac_round(fmin(mean_ns[LAC_CASE_BEST], mean_ns[LAC_CASE_MID])),
        .mid_ns = lac_round(mean_ns[LAC_CASE_MID]),
        .high_ns = lac_round(fmax(mean_ns[LAC_CASE_WORST], mean_ns[LAC_CASE_MID])),
    };
}

/** Once this many more workers change nothing, the step waits for something else. */
enum { ENOUGH_EQUAL = 2 };

void lac_worker_steps_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    bool is_advised = false;
    for (uint32_t f = 0; f < analysis->finding_count; f++) {
        const struct lac_finding *finding = &analysis->findings[f];
        is_advised = is_advised || (finding->step_mid_ns != LAC_UNKNOWN_NS &&
                                    lac_finding_advises(finding->kind, "num_workers"));
    }
    if (facts->time == NULL || !is_advised) {
        return;
    }
    int equal = 0;
    for (int32_t i = 0; i < LAC_WORKER_STEPS_MAX; i++) {
        struct lac_worker_step *step = &analysis->worker_steps[i];
        if (equal >= ENOUGH_EQUAL) {
            *step = step[-1];
            continue;
        }
        *step = worker_step(facts, i + 1);
        equal = i > 0 && memcmp(step, step - 1, sizeof(*step)) == 0 ? equal + 1 : 0;
    }
    analysis->worker_step_count = LAC_WORKER_STEPS_MAX;
}
