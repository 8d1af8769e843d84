/* Few slow batches among fast ones: the queue is in order, so all behind a slow one wait for it. */

#include "analysis/diagnose/findings/loading/loading_findings.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
/** Batches ahead for the tail to be absorbed. */
struct ahead {
    int32_t batches; /**< of each worker; 0: none that fit */
    double step_ns;
};

/** Enough batches ahead that the tail is absorbed and they fit in memory. */
static struct ahead find_ahead(const struct lac_facts *facts)
{
    static const int32_t choices[] = {4, 8, 16};
    const struct lac_step_time *time = facts->time;
    const struct lac_loading *loading = facts->loading;
    int32_t workers = facts->analysis->loader.num_workers;
    struct ahead ahead = {0, time->step_ns};
    struct lac_shm_budget room;
    lac_shm_budget(facts, &room);
    for (size_t i = 0; i < LAC_COUNT_OF(choices); i++) {
        double needed = (double)workers * choices[i] / (double)loading->prefetch;
        double step_ns = lac_loader_step_prefetch(time, loading->free_ns, workers, choices[i], 1.0);
        bool fits = choices[i] > loading->prefetch && needed <= (double)room.workers_most;
        if (fits && step_ns < AHEAD_GAIN_MAX * ahead.step_ns) {
            ahead = (struct ahead){choices[i], step_ns};
        }
    }
    return ahead;
}

/** Whether slow batches, and not their mean, are why the queue runs dry. */
static bool is_tail(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    const struct lac_tail *tail = &facts->loading->tail;
    double waits_ns = tail->now_ns - facts->loading->free_ns;
    bool is_model_right = fabs(tail->now_ns - time->step_ns) <= TAIL_ERROR_MAX * time->step_ns;
    return is_model_right && tail->slow_pct > 0.0 && tail->slow_pct <= TAIL_PCT_MAX &&
           waits_ns > 0.0 && tail->now_ns - tail->even_ns >= TAIL_SHARE_MIN * waits_ns;
}

/** The fetch that took longest, as evidence. */
static void add_longest(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_fetch *longest = NULL;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker >= 0 && (longest == NULL || fetch->dur_ns > longest->dur_ns)) {
            longest = fetch;
        }
    }
    if (longest != NULL) {
        lac_evidence_slice(facts, finding, longest->slice,
                           lac_texts_add(&facts->analysis->texts, "a slow batch: %s",
                                         lac_format_ns(longest->dur_ns).text));
    }
}

static void say_change(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    const struct lac_tail *tail = &facts->loading->tail;
    const struct ahead ahead = find_ahead(facts);
    int32_t workers = analysis->loader.num_workers;
    /* from the release that has it on, the loader says so */
    bool has_in_order = lac_setting_truth(facts, "settings", "in_order") >= 0;
    const char *unordered =
        has_in_order ? "\n# or, if batch order does not matter: DataLoader(..., in_order=False)"
                     : "";
    bool absorbs = ahead.batches > 0 && ahead.step_ns <= fmax(AHEAD_ABSORBS_MAX * tail->even_ns,
                                                              facts->loading->free_ns);
    if (absorbs) {
        const char *value = lac_texts_add(&analysis->texts, "%d", (int)ahead.batches);
        finding->brief = lac_texts_add(&analysis->texts, "prefetch_factor=%s", value);
        finding->change = lac_texts_add(&analysis->texts, "%s  # now %lld%s",
                                        lac_loader_code(facts, "prefetch_factor", value),
                                        (long long)facts->loading->prefetch, unordered);
        finding->costs = lac_texts_add(
            &analysis->texts, "Memory for %s.",
            lac_format_count((ahead.batches - facts->loading->prefetch) * workers, "batch").text);
        lac_loading_estimate(facts, finding, fmin(ahead.step_ns, tail->even_ns), ahead.step_ns,
                             0.5 * (ahead.step_ns + time->step_ns));
        finding->wrong_if = "a step takes as long with that prefetch factor.";
        finding->check = lac_texts_add(
            &analysis->texts, "record fifty steps with prefetch_factor=%d; expect %s per step",
            (int)ahead.batches, lac_format_ns(finding->step_mid_ns).text);
        return;
    }
    finding->brief = "fix slow samples";
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->effort = LAC_EFFORT_REWRITE;
    finding->change = lac_texts_add(
        &analysis->texts,
        "Find the samples that take %s or more (very large or damaged files, retries). Preprocess "
        "or drop them.%s",
        lac_format_ns(lac_round(LAC_SLOW_FACTOR * facts->loading->median_ns)).text, unordered);
    finding->costs = "Work on the dataset.";
    lac_loading_estimate(facts, finding, tail->even_ns, tail->even_ns,
                         0.5 * (tail->even_ns + time->step_ns));
    finding->wrong_if = "all batches take about the same time.";
    finding->check = "record a hundred steps without those samples";
}

bool lac_find_slow_samples(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    if (loading->workers == 0 || analysis->loader.num_workers < 1 || !is_tail(facts)) {
        return false;
    }
    lac_loading_open(facts, finding);
    finding->why = lac_texts_add(
        &analysis->texts,
        "Most batches take %s, fast enough with %s. %s of them take at least twice as long (1 %% "
        "take "
        "%s or more). Batches are delivered in order: a slow one stalls all behind it.",
        lac_format_ns(lac_round(loading->median_ns)).text,
        lac_format_count(analysis->loader.num_workers, "worker").text,
        lac_format_pct(loading->tail.slow_pct).text,
        lac_format_ns(lac_round(loading->p99_ns)).text);
    finding->where = facts->settings.loader_at;
    say_change(facts, finding);
    finding->expect = lac_texts_add(&analysis->texts, "%s. From replaying the queue.",
                                    lac_finding_expect(facts, finding));
    add_longest(facts, finding);
    lac_loading_evidence(facts, finding);
    return true;
}
