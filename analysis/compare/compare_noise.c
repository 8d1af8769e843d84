/*
 * The noise test. Steps are resampled in blocks of one cycle of the loader's workers (workers in
 * phase make one long and n - 1 short steps: single steps are no independent samples), a fixed
 * number of times from a fixed seed. The bootstrap is too narrow for few samples, so distances from
 * the measured difference are widened by Student's factor for that many.
 */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/compare_thresholds.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { RESAMPLES = 2000, STEPS_MIN = 3 };

/** No difference below this is claimed: clocks and rounding. */
static const double FLOOR_PCT = 0.1;

/** Kept steps of one side, in blocks. */
struct sample {
    double *step_ns;
    uint32_t count;
    uint32_t block;
    uint32_t block_count;
    double mean_ns;
};

static uint64_t next_random(uint64_t *state)
{
    /* xorshift64*: small, and the same on every machine */
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(((next_random(state) >> 32) * bound) >> 32);
}

static enum lac_status sample_init(struct sample *sample, const struct lac_analysis *analysis,
                                   double per)
{
    *sample = (struct sample){.block = 1};
    sample->step_ns = malloc((analysis->step_count ? analysis->step_count : 1) * sizeof(double));
    if (sample->step_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    double sum_ns = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            sample->step_ns[sample->count] = (double)analysis->steps[s].dur_ns / per;
            sum_ns += sample->step_ns[sample->count++];
        }
    }
    int32_t workers = analysis->loader.num_workers;
    if (workers > 1 && sample->count / (uint32_t)workers >= STEPS_MIN) {
        sample->block = (uint32_t)workers;
    }
    sample->block_count = sample->count / sample->block;
    sample->mean_ns = sample->count ? sum_ns / (double)sample->count : 0.0;
    return LAC_OK;
}

/** Mean of as many blocks as there are, drawn with repetition. */
static double resample(const struct sample *sample, uint64_t *state)
{
    double sum_ns = 0.0;
    for (uint32_t i = 0; i < sample->block_count; i++) {
        /* a block may begin anywhere and goes round: every step is drawn equally often */
        uint32_t first = random_below(state, sample->count);
        for (uint32_t j = 0; j < sample->block; j++) {
            sum_ns += sample->step_ns[(first + j) % sample->count];
        }
    }
    return sum_ns / (double)(sample->block_count * sample->block);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

/** Student's 97.5 % point over the normal one, times the bootstrap's bias, for n samples. */
static double widening(uint32_t n)
{
    static const double student[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31,
                                     2.26,  2.23, 2.20, 2.18, 2.16, 2.14, 2.13};
    uint32_t freedom = n - 1;
    double t = freedom <= 15 ? student[freedom - 1] : 1.96 + 2.6 / (double)freedom;
    return t / 1.96 * sqrt((double)n / (double)(n - 1));
}

static enum lac_status interval(const struct sample *a, const struct sample *b,
                                struct lac_compare_change *change)
{
    double *differences = malloc(RESAMPLES * sizeof(*differences));
    if (differences == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < RESAMPLES; i++) {
        double mean_a_ns = resample(a, &state);
        double mean_b_ns = resample(b, &state);
        differences[i] = mean_a_ns > 0.0 ? 100.0 * (mean_b_ns / mean_a_ns - 1.0) : 0.0;
    }
    qsort(differences, RESAMPLES, sizeof(*differences), ascending);
    uint32_t least = a->block_count < b->block_count ? a->block_count : b->block_count;
    double wide = widening(least);
    double below = change->pct - differences[RESAMPLES / 40];
    double above = differences[RESAMPLES - 1 - RESAMPLES / 40] - change->pct;
    change->low_pct = change->pct - wide * (below > 0.0 ? below : 0.0);
    change->high_pct = change->pct + wide * (above > 0.0 ? above : 0.0);
    free(differences);
    return LAC_OK;
}

/** The same difference as throughput: the inverse of the time. */
static struct lac_compare_change as_rate(const struct lac_compare_change *time)
{
    return (struct lac_compare_change){
        .pct = 100.0 * (100.0 / (100.0 + time->pct) - 1.0),
        .low_pct = 100.0 * (100.0 / (100.0 + time->high_pct) - 1.0),
        .high_pct = time->low_pct > -100.0 ? 100.0 * (100.0 / (100.0 + time->low_pct) - 1.0)
                                           : (double)INFINITY,
    };
}

/* -- by ranks -- */

enum { EXACT_MAX = 20 };

/** Means of the blocks: cycles of the workers where steps depend on each other. */
static uint32_t block_means(const struct sample *sample, double *out)
{
    for (uint32_t i = 0; i < sample->block_count; i++) {
        double sum = 0.0;
        for (uint32_t j = 0; j < sample->block; j++) {
            sum += sample->step_ns[i * sample->block + j];
        }
        out[i] = sum / (double)sample->block;
    }
    return sample->block_count;
}

/** Chance of an order at least as uneven, of n and m values of one kind: all orders counted. U is
 *  how often a value of the one side comes before one of the other, its lower half. */
static double exact_p(uint32_t n, uint32_t m, double u)
{
    double ways[EXACT_MAX * EXACT_MAX + 1] = {1.0};
    uint32_t most = n * m;
    for (uint32_t i = 1; i <= n; i++) { /* times (1 - q^(m + i)) / (1 - q^i) */
        for (uint32_t k = most; k >= m + i; k--) {
            ways[k] -= ways[k - m - i];
        }
        for (uint32_t k = i; k <= most; k++) {
            ways[k] += ways[k - i];
        }
    }
    double all = 0.0;
    double out = 0.0;
    for (uint32_t k = 0; k <= most; k++) {
        all += ways[k];
        out += (double)k <= ceil(u) ? ways[k] : 0.0;
    }
    return fmin(1.0, 2.0 * out / all);
}

/** How often a value of `a` comes before one of `b`, equal ones by half; both ascend. */
static double pairs_before(const double *a, uint32_t n, const double *b, uint32_t m)
{
    double pairs = 0.0;
    uint32_t below = 0;
    uint32_t up_to = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (below < m && b[below] < a[i]) {
            below++;
        }
        up_to = up_to < below ? below : up_to;
        while (up_to < m && b[up_to] <= a[i]) {
            up_to++;
        }
        pairs += (double)(m - up_to) + 0.5 * (double)(up_to - below);
    }
    return pairs;
}

/** The test of Mann and Whitney, of two sides: the chance that steps of one kind fall like this. */
static enum lac_status rank_test(const struct sample *a, const struct sample *b, double *ret_p,
                                 bool *ret_is_shorter)
{
    double *of_a = malloc(a->block_count * sizeof(*of_a));
    double *of_b = malloc(b->block_count * sizeof(*of_b));
    if (of_a == NULL || of_b == NULL) {
        free(of_a);
        free(of_b);
        return LAC_ERR_NOMEM;
    }
    uint32_t n = block_means(a, of_a);
    uint32_t m = block_means(b, of_b);
    qsort(of_a, n, sizeof(*of_a), ascending);
    qsort(of_b, m, sizeof(*of_b), ascending);
    double all = (double)n * (double)m;
    double before = pairs_before(of_a, n, of_b, m);
    double u = fmin(before, all - before);
    *ret_is_shorter = before < all / 2.0; /* A's come later: B's are shorter */
    if (n <= EXACT_MAX && m <= EXACT_MAX) {
        *ret_p = exact_p(n, m, u);
    } else {
        double sigma = sqrt(all * ((double)n + (double)m + 1.0) / 12.0);
        *ret_p = erfc(fmax(0.0, all / 2.0 - u - 0.5) / sigma / sqrt(2.0));
    }
    free(of_a);
    free(of_b);
    return LAC_OK;
}

/** Real is what the band of the mean tells, or the order of the steps where both point one way. */
static enum lac_status judge(const struct sample *a, const struct sample *b,
                             struct lac_comparison *result)
{
    bool is_shorter = false;
    enum lac_status status = rank_test(a, b, &result->rank_test_p, &is_shorter);
    struct lac_compare_change *step = &result->step;
    double below = step->pct - step->low_pct;
    double above = step->high_pct - step->pct;
    double half = below > above ? below : above;
    result->noise_floor_pct = half > FLOOR_PCT ? half : FLOOR_PCT;
    if (half > 2.0) {
        uint32_t least = a->count < b->count ? a->count : b->count;
        double needed = (double)least * (half / 2.0) * (half / 2.0);
        result->steps_needed = needed < 1e6 ? (uint32_t)ceil(needed / 10.0) * 10 : 0;
    }
    bool is_by_ranks = result->rank_test_p <= RANK_TEST_P_MAX && is_shorter == (step->pct < 0.0);
    bool is_real =
        fabs(step->pct) > FLOOR_PCT && (step->low_pct > 0.0 || step->high_pct < 0.0 || is_by_ranks);
    result->verdict = !is_real          ? LAC_COMPARE_SAME
                      : step->pct < 0.0 ? LAC_COMPARE_FASTER
                                        : LAC_COMPARE_SLOWER;
    return status;
}

double lac_compare_samples(const struct lac_analysis *analysis, const struct lac_analysis *other)
{
    const bool are_known = lac_step_batches(analysis) > 0 && lac_step_batches(other) > 0;
    return (double)analysis->batch_size * (are_known ? lac_step_batches(analysis) : 1);
}

enum lac_status lac_compare_noise(const struct lac_compare_side *a,
                                  const struct lac_compare_side *b,
                                  struct lac_comparison *comparison)
{
    double batch_a = lac_compare_samples(a->analysis, b->analysis);
    double batch_b = lac_compare_samples(b->analysis, a->analysis);
    bool is_per_sample = batch_a > 0.0 && batch_b > 0.0 && batch_a != batch_b;
    comparison->basis = is_per_sample ? LAC_COMPARE_PER_SAMPLE : LAC_COMPARE_PER_STEP;
    struct sample samples[2] = {0};
    enum lac_status status = sample_init(&samples[0], a->analysis, is_per_sample ? batch_a : 1.0);
    if (!status) {
        status = sample_init(&samples[1], b->analysis, is_per_sample ? batch_b : 1.0);
    }
    const struct lac_compare_change none = {(double)NAN, (double)NAN, (double)NAN};
    comparison->step = comparison->throughput = none;
    comparison->noise_floor_pct = comparison->rank_test_p = (double)NAN;
    bool is_comparable = comparison->refusal == LAC_COMPARE_COMPARABLE;
    if (!status && is_comparable && samples[0].mean_ns > 0.0 && samples[1].mean_ns > 0.0) {
        comparison->step.pct = 100.0 * (samples[1].mean_ns / samples[0].mean_ns - 1.0);
        comparison->throughput.pct = as_rate(&comparison->step).pct;
        comparison->verdict = LAC_COMPARE_TOO_FEW;
        if (samples[0].count >= STEPS_MIN && samples[1].count >= STEPS_MIN) {
            status = interval(&samples[0], &samples[1], &comparison->step);
            comparison->throughput = as_rate(&comparison->step);
            if (!status) {
                status = judge(&samples[0], &samples[1], comparison);
            }
        }
    }
    free(samples[0].step_ns);
    free(samples[1].step_ns);
    return status;
}
