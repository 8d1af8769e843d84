/* Runs one after the other against their baseline: does a slowdown stay? */

#include "analysis/journal/pace_watch.h"

#include "analysis/journal/journal.h"
#include "analysis/journal/journal_thresholds.h"
#include "analysis/journal/student.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** The runs of one side of a comparison. */
struct side {
    uint32_t count;
    double mean;
    double squares; /**< around the mean */
    double inside;  /**< sum of the variances by the noise of their steps */
};

static struct side add_up(const struct lac_run_pace *const *paces, uint32_t count)
{
    struct side side = {.count = count};

    for (uint32_t i = 0; i < count; i++) {
        side.mean += paces[i]->log_step / count;
        side.inside += paces[i]->variance;
    }
    for (uint32_t i = 0; i < count; i++) {
        const double away = paces[i]->log_step - side.mean;

        side.squares += away * away;
    }
    return side;
}

/** That the second side is above the first. What a run is off by is learned from both of them. */
static double confidence_of(const struct side *before, const struct side *after)
{
    const uint32_t runs = before->count + after->count;
    const double inside = (before->inside + after->inside) / runs; /* of one run */
    const uint32_t freedom = LASTING_SPREAD_RUNS + runs - 2;
    const double beyond = before->squares + after->squares - inside * (runs - 2);
    const double between =
        (LASTING_SPREAD_RUNS * RUN_SPREAD * RUN_SPREAD + (beyond > 0.0 ? beyond : 0.0)) / freedom;
    const double away = after->mean - before->mean;
    const double deviation = sqrt((between + inside) * (1.0 / before->count + 1.0 / after->count));

    return away <= 0.0 ? 0.5 : 0.5 + 0.5 * lac_student(away / deviation, freedom);
}

void lac_pace_watch_begin(struct lac_pace_watch *watch, const struct lac_run_pace *baseline)
{
    assert(watch != NULL && baseline != NULL);
    *watch = (struct lac_pace_watch){0};
    if (isfinite(baseline->log_step)) {
        watch->level[0].pace = *baseline;
        watch->level_count = 1;
    }
}

/** The runs of the level that no doubt fell on. @return how many */
static uint32_t undoubted(const struct lac_pace_watch *watch, struct lac_run_pace *paces)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < watch->level_count; i++) {
        if (!watch->level[i].is_doubtful) {
            paces[count++] = watch->level[i].pace;
        }
    }
    return count;
}

bool lac_pace_watch_precede(struct lac_pace_watch *watch, const struct lac_run_pace *pace)
{
    struct lac_run_pace paces[LAC_BASELINE_RUNS_MAX];
    struct lac_regression it;

    assert(watch != NULL && pace != NULL && watch->latest_count == 0);
    if (!isfinite(pace->log_step)) {
        return true;
    }
    lac_regression_judge(paces, undoubted(watch, paces), pace, &it);
    if (it.verdict != LAC_REGRESSION_NONE || watch->level_count == LAC_BASELINE_RUNS_MAX / 2) {
        return false;
    }
    memmove(&watch->level[1], &watch->level[0], watch->level_count * sizeof(watch->level[0]));
    watch->level[0].pace = *pace;
    watch->level[0].is_doubtful = false;
    watch->level_count++;
    watch->baseline++;
    return true;
}

static void drop_level(struct lac_pace_watch *watch, uint32_t at)
{
    assert(at < watch->level_count && at != watch->baseline);
    watch->level_count--;
    memmove(&watch->level[at], &watch->level[at + 1],
            (watch->level_count - at) * sizeof(watch->level[0]));
    watch->baseline -= at < watch->baseline;
}

/** Of the last `count` runs, those that are the newest of the level. */
static uint32_t of_level(const struct lac_pace_watch *watch, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        found += watch->latest_is_level[watch->latest_count - 1 - i];
    }
    return found;
}

/** This run and `count` - 1 before it, against the level without them. */
static void try_together(const struct lac_pace_watch *watch, const struct lac_run_pace *pace,
                         uint32_t count, struct lac_slowdown *best)
{
    const struct lac_run_pace *before[LAC_BASELINE_RUNS_MAX];
    const struct lac_run_pace *after[LAC_WATCH_RUNS];
    const uint32_t level = watch->level_count - of_level(watch, count - 1);

    for (uint32_t i = 0; i < level; i++) {
        before[i] = &watch->level[i].pace;
    }
    after[0] = pace;
    for (uint32_t i = 1; i < count; i++) {
        after[i] = &watch->latest[watch->latest_count - i];
    }

    const struct side old = add_up(before, level);
    const struct side new = add_up(after, count);
    const double away = new.mean - old.mean;
    const double confidence = confidence_of(&old, &new);

    /* a run that is as fast as before ends the slowdown, whatever those before it were */
    if (confidence >= LASTING_CONFIDENCE && confidence > best->confidence &&
        pace->log_step - old.mean > 0.5 * away && 100.0 * (exp(away) - 1.0) >= REGRESSION_PCT_MIN) {
        *best = (struct lac_slowdown){
            .run_count = count, .pct = 100.0 * (exp(away) - 1.0), .confidence = confidence};
    }
}

/** The runs that turned out to be slower are no level. */
static void forget_slow(struct lac_pace_watch *watch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool *is_level = &watch->latest_is_level[watch->latest_count - 1 - i];

        if (*is_level) {
            drop_level(watch, watch->level_count - 1);
            *is_level = false;
        }
    }
}

static void remember(struct lac_pace_watch *watch, const struct lac_run_pace *pace,
                     const struct lac_regression *it)
{
    const bool is_level = it->lasting.run_count == 0;

    if (watch->latest_count == LAC_WATCH_RUNS - 1) {
        watch->latest_count--;
        memmove(&watch->latest[0], &watch->latest[1],
                watch->latest_count * sizeof(watch->latest[0]));
        memmove(&watch->latest_is_level[0], &watch->latest_is_level[1],
                watch->latest_count * sizeof(watch->latest_is_level[0]));
    }
    watch->latest[watch->latest_count] = *pace;
    watch->latest_is_level[watch->latest_count++] = is_level;
    if (is_level) {
        if (watch->level_count == LAC_BASELINE_RUNS_MAX) {
            drop_level(watch, watch->baseline == 0 ? 1 : 0);
        }
        watch->level[watch->level_count].pace = *pace;
        watch->level[watch->level_count++].is_doubtful = it->verdict == LAC_REGRESSION_SLOWER;
    }
}

void lac_pace_watch_judge(struct lac_pace_watch *watch, const struct lac_run_pace *pace,
                          bool is_alike, struct lac_regression *ret_regression)
{
    struct lac_run_pace paces[LAC_BASELINE_RUNS_MAX];
    const uint32_t longest = is_alike ? watch->latest_count + 1 : 1;

    assert(watch != NULL && pace != NULL && ret_regression != NULL);
    lac_regression_judge(paces, undoubted(watch, paces), pace, ret_regression);
    if (ret_regression->verdict == LAC_REGRESSION_UNKNOWN) {
        return;
    }
    for (uint32_t count = 1; count <= longest; count++) {
        try_together(watch, pace, count, &ret_regression->lasting);
    }
    if (is_alike) {
        if (ret_regression->lasting.run_count > 0) {
            forget_slow(watch, ret_regression->lasting.run_count - 1);
        }
        remember(watch, pace, ret_regression);
    }
}
