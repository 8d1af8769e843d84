/* How fast a run was, and whether that is slower than before. */

#include "analysis/journal/journal.h"
#include "analysis/journal/journal_thresholds.h"
#include "analysis/journal/student.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCKS_MIN = 3 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

/** Steps, or means of whole cycles. @return how many */
static uint32_t take_blocks(const int64_t *step_ns, uint32_t count, uint32_t cycle, double *blocks)
{
    uint32_t size = cycle > 1 && count / cycle >= BLOCKS_MIN ? cycle : 1;
    for (uint32_t b = 0; b < count / size; b++) {
        double sum_ns = 0.0;
        for (uint32_t i = 0; i < size; i++) {
            int64_t ns = step_ns[b * size + i];
            sum_ns += ns > 0 ? (double)ns : 1.0;
        }
        blocks[b] = sum_ns / size;
    }
    return count / size;
}

/** By how much the variance of a mean grows because neighbors are alike. */
static double inflation(const double *values, uint32_t count, double mean)
{
    double square = 0.0;
    double product = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        square += (values[i] - mean) * (values[i] - mean);
        product += i > 0 ? (values[i] - mean) * (values[i - 1] - mean) : 0.0;
    }
    double alike = square > 0.0 ? product / square : 0.0;
    alike = alike < 0.0 ? 0.0 : alike > 0.8 ? 0.8 : alike;
    return (1.0 + alike) / (1.0 - alike);
}

/** Winsorized mean and its variance. `blocks` are changed. */
static void measure(double *blocks, const double *sorted, uint32_t count, struct lac_run_pace *pace)
{
    uint32_t cut = (uint32_t)(WINSOR_PART * count);
    double low = sorted[cut];
    double high = sorted[count - 1 - cut];
    double sum = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = blocks[i] < low ? low : blocks[i] > high ? high : blocks[i];
        sum += blocks[i];
    }
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++) {
        squares += (blocks[i] - mean) * (blocks[i] - mean);
    }
    double kept = 1.0 - 2.0 * cut / (double)count;
    double of_one = count > 1 ? squares / (count - 1) : 0.0;
    pace->log_step = log(mean);
    pace->variance =
        of_one / (kept * kept * count) / (mean * mean) * inflation(blocks, count, mean);
}

enum lac_status lac_run_pace_of(const int64_t *step_ns, uint32_t count, uint32_t cycle,
                                struct lac_run_pace *ret_pace)
{
    assert(ret_pace != NULL && (count == 0 || step_ns != NULL));
    *ret_pace = (struct lac_run_pace){.log_step = (double)NAN, .variance = 0.0, .count = count};
    if (count == 0) {
        return LAC_OK;
    }
    double *blocks = malloc((size_t)count * 2 * sizeof(*blocks));
    if (blocks == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint32_t block_count = take_blocks(step_ns, count, cycle, blocks);
    double *sorted = blocks + count;
    for (uint32_t i = 0; i < block_count; i++) {
        sorted[i] = blocks[i];
    }
    qsort(sorted, block_count, sizeof(*sorted), ascending);
    measure(blocks, sorted, block_count, ret_pace);
    free(blocks);
    return LAC_OK;
}

/** Where lac_student() reaches 95 %. Each of ten thousand runs asks: those that come up are kept. */
static double student_95(uint32_t freedom)
{
    static const double known[] = {2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
                                   2.200985, 2.178813, 2.160369, 2.144787, 2.131450,
                                   2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
                                   2.079614, 2.073873, 2.068658, 2.063899, 2.059539};
    double low = 0.0;
    double high = 100.0;

    _Static_assert(LAC_COUNT_OF(known) == LAC_BASELINE_RUNS_MAX, "from 6 degrees to 25");
    if (freedom >= RUN_SPREAD_RUNS && freedom - RUN_SPREAD_RUNS < LAC_COUNT_OF(known)) {
        return known[freedom - RUN_SPREAD_RUNS];
    }
    for (int i = 0; i < 60; i++) {
        double mid = 0.5 * (low + high);
        *(lac_student(mid, freedom) < 0.95 ? &low : &high) = mid;
    }
    return high;
}

static double as_pct(double log_ratio)
{
    return 100.0 * (exp(log_ratio) - 1.0);
}

void lac_regression_judge(const struct lac_run_pace *baseline, uint32_t count,
                          const struct lac_run_pace *run, struct lac_regression *ret_regression)
{
    assert(run != NULL && ret_regression != NULL && (count == 0 || baseline != NULL));
    double sum = 0.0;
    double inside = 0.0;
    double squares = 0.0;
    uint32_t known = 0;
    *ret_regression = (struct lac_regression){.change_pct = (double)NAN,
                                              .low_pct = (double)NAN,
                                              .high_pct = (double)NAN,
                                              .visible_pct = (double)NAN,
                                              .confidence = (double)NAN};
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(baseline[i].log_step)) {
            sum += baseline[i].log_step;
            inside += baseline[i].variance;
            known++;
        }
    }
    ret_regression->baseline_count = known;
    if (known == 0 || !isfinite(run->log_step)) {
        return;
    }
    double mean = sum / known;
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(baseline[i].log_step)) {
            squares += (baseline[i].log_step - mean) * (baseline[i].log_step - mean);
        }
    }
    /* runs of a baseline lie apart by the noise of their steps, too, which is counted by itself */
    double beyond = squares - inside * (known - 1) / known;
    uint32_t freedom = RUN_SPREAD_RUNS + known - 1;
    double between =
        (RUN_SPREAD_RUNS * RUN_SPREAD * RUN_SPREAD + (beyond > 0.0 ? beyond : 0.0)) / freedom;
    double noise = 0.5 * (run->variance + inside / known); /* of one run, by all that there are */
    double deviation = sqrt((between + noise) * (1.0 + 1.0 / known));
    double away = run->log_step - mean;
    double reach = student_95(freedom) * deviation;
    ret_regression->change_pct = as_pct(away);
    ret_regression->low_pct = as_pct(away - reach);
    ret_regression->high_pct = as_pct(away + reach);
    ret_regression->visible_pct = as_pct((student_95(freedom) + FOUND_AT) * deviation);
    if (ret_regression->visible_pct < REGRESSION_PCT_MIN) {
        ret_regression->visible_pct = REGRESSION_PCT_MIN;
    }
    ret_regression->confidence = 0.5 + 0.5 * lac_student(away / deviation, freedom);
    bool is_real = ret_regression->confidence >= REGRESSION_CONFIDENCE &&
                   fabs(ret_regression->change_pct) >= REGRESSION_PCT_MIN;
    ret_regression->verdict = !is_real     ? LAC_REGRESSION_NONE
                              : away > 0.0 ? LAC_REGRESSION_SLOWER
                                           : LAC_REGRESSION_FASTER;
}

const char *lac_regression_name(enum lac_regression_verdict verdict)
{
    static const char *const names[] = {"unknown", "none", "slower", "faster"};
    return names[verdict];
}
