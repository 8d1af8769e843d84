/*
 * How many workers a loader has and what a batch takes one of them, where nothing but the waits for
 * batches was recorded. Workers that are the limit fetch without a pause, each its next batch as soon
 * as it has handed one over: with n of them the batch n later comes one fetch later. Their batches come
 * in bursts, because they were all asked at once (at the start, or while batches lay ready): the time
 * between two batches differs, and the time over n of them does not.
 */

#include "analysis/diagnose/facts/facts.h"

#include <math.h>
#include <stdint.h>

enum { INFERRED_MAX = 32, PREFETCH_USUAL = 2 };

/** Batches in the order in which the training process got them. */
struct batches {
    const struct lac_mark *at;
    uint64_t count;
};

/** When the training process had it. */
static double taken_ns(const struct batches *batches, uint64_t i)
{
    return (double)batches->at[i].start_ns + (double)batches->at[i].dur_ns;
}

struct spread {
    double mean, deviation;
};

/** Of the times over `lag` batches, each that ends at `first` + lag or later. */
static struct spread spread_over(const struct batches *batches, uint64_t first, uint64_t lag)
{
    double sum = 0.0;
    double squares = 0.0;
    double from_ns = taken_ns(batches, first);
    double count = (double)(batches->count - first - lag);
    double usual = (taken_ns(batches, batches->count - 1) - from_ns) * (double)lag /
                   (double)(batches->count - 1 - first);
    for (uint64_t i = first + lag; i < batches->count; i++) {
        double off = taken_ns(batches, i) - taken_ns(batches, i - lag) - usual;
        sum += off;
        squares += off * off;
    }
    double mean_off = sum / count;
    return (struct spread){usual + mean_off,
                           sqrt(fmax(0.0, squares / count - mean_off * mean_off))};
}

/** Of what the training process does from one batch to asking for the next. */
static struct spread spread_of_own(const struct batches *batches, uint64_t first)
{
    double sum = 0.0;
    double squares = 0.0;
    double count = (double)(batches->count - first - 1);
    for (uint64_t i = first + 1; i < batches->count; i++) {
        double own_ns = (double)batches->at[i].start_ns - taken_ns(batches, i - 1);
        sum += own_ns;
        squares += own_ns * own_ns;
    }
    double mean = sum / count;
    return (struct spread){mean, sqrt(fmax(0.0, squares / count - mean * mean))};
}

/** The first batch that was waited for behind those that lay ready; the first of all when none
 *  did. */
static uint64_t first_limited(const struct batches *batches, uint64_t *ret_ready)
{
    double all_ns = taken_ns(batches, batches->count - 1) - taken_ns(batches, 0);
    double pace_ns = all_ns / (double)(batches->count - 1);
    uint64_t at = 1;
    while (at < batches->count && (double)batches->at[at].dur_ns <= READY_WAIT_MAX * pace_ns) {
        at++;
    }
    *ret_ready = at - 1;
    return at - 1 > 1 ? at : 0;
}

/** Part of the time that the training process waits, from that batch on. */
static double waiting_part(const struct batches *batches, uint64_t first)
{
    double wait_ns = 0.0;
    for (uint64_t i = first + 1; i < batches->count; i++) {
        wait_ns += (double)batches->at[i].dur_ns;
    }
    return wait_ns / (taken_ns(batches, batches->count - 1) - taken_ns(batches, first));
}

/** Whether times over `lag` batches are alike, while neighboring lags are not. */
static bool is_period(const struct batches *batches, uint64_t first, uint64_t lag,
                      const struct spread *one)
{
    struct spread here = spread_over(batches, first, lag);
    double by_chance = one->deviation * sqrt((double)lag);
    double before = spread_over(batches, first, lag - 1).deviation;
    double after = spread_over(batches, first, lag + 1).deviation;
    return here.deviation <= PERIOD_SPREAD_MAX * here.mean &&
           here.deviation <= PERIOD_OF_CHANCE_MAX * by_chance &&
           here.deviation <= PERIOD_OF_NEIGHBOR_MAX * fmin(before, after);
}

/** Whether all is one thread's, one batch after the other. */
static bool is_one_loop(const struct batches *batches)
{
    for (uint64_t i = 1; i < batches->count; i++) {
        if (batches->at[i].track != batches->at[0].track ||
            (double)batches->at[i].start_ns < taken_ns(batches, i - 1)) {
            return false;
        }
    }
    return taken_ns(batches, batches->count - 1) > taken_ns(batches, 0);
}

void lac_loader_infer_workers(struct lac_facts *facts)
{
    struct batches batches = {facts->wait_marks.at, facts->wait_marks.count};
    if (facts->analysis->loader.num_workers != -1 || facts->fetch_count > 0 || batches.count < 8 ||
        facts->asks_in_rows || !is_one_loop(&batches)) {
        return;
    }
    uint64_t ready = 0;
    uint64_t first = first_limited(&batches, &ready);
    uint64_t limited = batches.count > first ? batches.count - 1 - first : 0;
    if (limited < 4 || waiting_part(&batches, first) < STARVING_MIN) {
        return;
    }
    struct spread one = spread_over(&batches, first, 1);
    /* what comes again in the training's own work is no worker's */
    if (one.deviation < BURSTS_MIN * one.mean ||
        spread_of_own(&batches, first).deviation > OWN_OF_BURSTS_MAX * one.deviation) {
        return;
    }
    for (uint64_t lag = 2; lag <= INFERRED_MAX && 2 * lag <= limited; lag++) {
        bool was_full = ready + 1 >= PREFETCH_USUAL * lag; /* the first was ready, too */
        bool is_long_enough = limited >= (was_full ? 2 : 3) * lag;
        if (is_long_enough && is_period(&batches, first, lag, &one)) {
            struct spread fetch = spread_over(&batches, first, lag);
            facts->inferred_loader =
                (struct lac_inferred_loader){.workers = (int32_t)lag,
                                             .fetch_ns = fetch.mean,
                                             .spread = fetch.deviation / fetch.mean,
                                             .limited_from = lac_round(taken_ns(&batches, first))};
            return;
        }
    }
}
