/*
 * Steps that get longer, or shorter, from the start of the run to its end. Noise makes trends too,
 * so three things have to agree: the medians of the four quarters go one way, the difference is
 * large, and a rank test over all pairs of steps (Mann, Kendall) calls it no accident.
 */

#include "analysis/diagnose/findings/findings.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { QUARTERS = 4, DRIFT_STEPS_MIN = 24, PAIRS_STEPS_MAX = 512 };

/** Kept steps, in order. */
struct series {
    int64_t *dur_ns, *wait_ns, *sorted;
    uint32_t count;
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

static double median_of(const struct series *series, const int64_t *values, uint32_t first,
                        uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        series->sorted[i - first] = values[i];
    }
    qsort(series->sorted, end - first, sizeof(*series->sorted), by_value);
    uint32_t middle = (end - first) / 2;
    return (double)series->sorted[middle];
}

static void quarters_of(const struct series *series, const int64_t *values, double ret[QUARTERS])
{
    for (uint32_t q = 0; q < QUARTERS; q++) {
        ret[q] = median_of(series, values, series->count * q / QUARTERS,
                           series->count * (q + 1) / QUARTERS);
    }
}

/** Pairs of steps of which the later is longer, less those of which it is shorter, in standard
 *  deviations of what chance makes. Long runs are thinned out. */
static double rank_test(const struct series *series)
{
    uint32_t stride = (series->count + PAIRS_STEPS_MAX - 1) / PAIRS_STEPS_MAX;
    double n = 0.0;
    double sum = 0.0;
    for (uint32_t i = 0; i < series->count; i += stride) {
        n += 1.0;
        for (uint32_t k = 0; k < i; k += stride) {
            sum +=
                (series->dur_ns[i] > series->dur_ns[k]) - (series->dur_ns[i] < series->dur_ns[k]);
        }
    }
    double deviation = sqrt(n * (n - 1.0) * (2.0 * n + 5.0) / 18.0);
    return deviation > 0.0 ? sum / deviation : 0.0;
}

/** Whether each quarter goes on in the direction of all: a jump at one place is no drift. */
static bool goes_one_way(const double quarters[QUARTERS])
{
    double all = quarters[QUARTERS - 1] - quarters[0];
    for (uint32_t q = 1; q < QUARTERS; q++) {
        double part = quarters[q] - quarters[q - 1];
        if (all == 0.0 || part / all < DRIFT_QUARTER_MIN) {
            return false;
        }
    }
    return true;
}

static void say_drift(const struct lac_facts *facts, struct lac_finding *finding,
                      const double quarters[QUARTERS], double wait_part)
{
    struct lac_analysis *analysis = facts->analysis;
    bool grows = quarters[QUARTERS - 1] > quarters[0];
    double pct = 100.0 * fabs(quarters[QUARTERS - 1] - quarters[0]) / quarters[0];
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.6;
    finding->title = lac_texts_add(
        &analysis->texts, "Steps get %s during the run: %s at first, %s at the end (%s)",
        grows ? "longer" : "shorter", lac_format_ns(lac_round(quarters[0])).text,
        lac_format_ns(lac_round(quarters[QUARTERS - 1])).text, lac_format_pct(pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "The medians of the four quarters of %s move in one direction: %s, %s, %s, %s. %s",
        lac_format_count(analysis->step_kept_count, "step").text,
        lac_format_ns(lac_round(quarters[0])).text, lac_format_ns(lac_round(quarters[1])).text,
        lac_format_ns(lac_round(quarters[2])).text, lac_format_ns(lac_round(quarters[3])).text,
        wait_part >= DRIFT_WAIT_MIN   ? "Most of it is waiting for data."
        : analysis->loader.is_present ? "Most of it is not waiting for data."
                                      : "Data loading was not recorded.");
    finding->change = wait_part >= DRIFT_WAIT_MIN && grows
                          ? "Check what the loader reads later in the run: larger samples, a full "
                            "cache, slower storage."
                          : "Compare the first and last steps: clocks, temperature, sample "
                            "lengths, memory growth.";
    finding->wrong_if = "the samples are sorted by length.";
    finding->check = "record the start and the end of a longer run, then compare them";
}

bool lac_find_drift(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t kept = analysis->step_kept_count;
    if (kept < DRIFT_STEPS_MIN) {
        return false;
    }
    int64_t *memory = malloc((size_t)kept * 3 * sizeof(*memory));
    if (memory == NULL) {
        return false; /* one remark less */
    }
    struct series series = {memory, memory + kept, memory + (size_t)2 * kept, 0};
    for (uint32_t s = 0; s < analysis->step_count && series.count < kept; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            series.wait_ns[series.count] = step->wait_ns;
            series.dur_ns[series.count++] = step->dur_ns;
        }
    }
    double quarters[QUARTERS];
    double waits[QUARTERS];
    quarters_of(&series, series.dur_ns, quarters);
    quarters_of(&series, series.wait_ns, waits);
    double difference = quarters[QUARTERS - 1] - quarters[0];
    bool is_drift = quarters[0] > 0.0 && fabs(difference) >= DRIFT_MIN_PCT / 100.0 * quarters[0] &&
                    goes_one_way(quarters) && fabs(rank_test(&series)) >= DRIFT_DEVIATIONS;
    if (is_drift) {
        say_drift(facts, finding, quarters, (waits[QUARTERS - 1] - waits[0]) / difference);
    }
    free(memory);
    return is_drift;
}
