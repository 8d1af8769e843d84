/*
 * Which steps stand for the training: without warm-up, truncated ones and other kinds of work, and
 * as whole cycles of the loader's workers where that number is known. A step is never left out
 * because it waited for data, nor for a cause that returns.
 */

#include "analysis/diagnose/steps/step_pace.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* -- what each step contains ------------------------------------------------------------------ */

/** Operations launched inside each step; started, where launches were not recorded or steps are
 *  times of the device. */
static void count_operations(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    struct lac_analysis *analysis = facts->analysis;
    bool by_launch = facts->has_api && !facts->has_device_steps;
    uint8_t wanted = by_launch ? LAC_TRACK_LAUNCHES : LAC_TRACK_HAS_GPU;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (!(facts->track_flags[t] & wanted)) {
            continue;
        }
        uint32_t at = 0;
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            bool counts = by_launch
                              ? slices->kind[i] == LAC_SLICE_API && slices->link[i] != LAC_NONE
                              : lac_is_gpu_work(slices->kind[i]);
            if (!counts) {
                continue;
            }
            uint32_t found = lac_step_at(analysis, slices->start_ns[i], at);
            if (found == LAC_NONE) {
                continue;
            }
            at = found;
            struct lac_step *step = &analysis->steps[at];
            step->op_count += slices->start_ns[i] < step->start_ns + step->dur_ns;
        }
    }
}

static enum lac_status measure_waits(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_spans starved = {0};
    enum lac_status status = LAC_OK;
    if (analysis->main_device != LAC_NONE) {
        status = lac_spans_intersect(&facts->waits, &facts->device_sets[analysis->main_device].idle,
                                     &starved);
    }
    /* where no device was recorded it is the training process itself that starves */
    const struct lac_spans *starving = analysis->main_device == LAC_NONE ? &facts->waits : &starved;
    int64_t *wait_sums = lac_spans_prefix(&facts->waits);
    int64_t *starved_sums = lac_spans_prefix(starving);
    if (wait_sums == NULL || starved_sums == NULL) {
        status = LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        struct lac_step *step = &analysis->steps[s];
        int64_t end_ns = step->start_ns + step->dur_ns;
        step->wait_ns = lac_spans_length_up_to(&facts->waits, wait_sums, end_ns) -
                        lac_spans_length_up_to(&facts->waits, wait_sums, step->start_ns);
        step->starved_ns = lac_spans_length_up_to(starving, starved_sums, end_ns) -
                           lac_spans_length_up_to(starving, starved_sums, step->start_ns);
    }
    free(wait_sums);
    free(starved_sums);
    lac_spans_done(&starved);
    return status;
}

/* -- which are kept ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/** Nearest-rank percentile of sorted values. */
static int64_t percentile(const int64_t *sorted, uint32_t count, uint32_t percent)
{
    uint64_t rank = ((uint64_t)count * percent + 99) / 100;
    return sorted[rank == 0 ? 0 : rank - 1];
}

/** Time of a step that is not waiting for data. */
static int64_t own_ns(const struct lac_step *step)
{
    return step->dur_ns - step->wait_ns;
}

static int64_t median_of(struct lac_facts *facts, int64_t *scratch, uint32_t first,
                         bool of_operations)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t count = 0;
    for (uint32_t s = first; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_TRUNCATED) {
            continue;
        }
        scratch[count++] =
            of_operations ? (int64_t)analysis->steps[s].op_count : own_ns(&analysis->steps[s]);
    }
    qsort(scratch, count, sizeof(*scratch), by_value);
    return count == 0 ? 0 : percentile(scratch, count, 50);
}

/** Lengths of the second half of the steps, in order. @return how many */
static uint32_t sort_later(const struct lac_analysis *analysis, int64_t *lengths_ns)
{
    uint32_t first = analysis->step_count / 2;
    for (uint32_t s = first; s < analysis->step_count; s++) {
        lengths_ns[s - first] = own_ns(&analysis->steps[s]);
    }
    qsort(lengths_ns, analysis->step_count - first, sizeof(*lengths_ns), by_value);
    return analysis->step_count - first;
}

/** Whether steps as long as this one come again in the second half: then it is no warm-up. */
static bool returns_later(const struct lac_step *step, const int64_t *later_ns, uint32_t count)
{
    double length = (double)own_ns(step);
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) { /* the first that is long enough */
        uint32_t middle = low + (high - low) / 2;
        if ((double)later_ns[middle] > ALIKE_SHORT * length) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low < count && (double)later_ns[low] < ALIKE_LONG * length;
}

/** Whether the first step waited for workers that were starting: before the device had anything to
 *  do, and longer than any step after it. Nothing says that the device felt it; it does not return.
 */
static bool waits_for_start(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_step *first = &analysis->steps[0];
    int64_t longest_ns = 0;
    for (uint32_t s = 1; s < analysis->step_count; s++) {
        int64_t wait_ns = analysis->steps[s].wait_ns;
        longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
    }
    bool is_idle_before =
        analysis->main_device == LAC_NONE ||
        analysis->devices[analysis->main_device].first_ns >= first->start_ns + first->wait_ns;
    return is_idle_before && first->wait_ns > longest_ns + longest_ns / 5;
}

static void leave_out_warm_up(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->step_count < 2) {
        return;
    }
    int64_t usual_ns = median_of(facts, scratch, analysis->step_count / 2, false);
    uint32_t later_count = sort_later(analysis, scratch);
    for (uint32_t s = 0; s < analysis->step_count / 2; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (s == 0 && step->wait_ns * 5 > usual_ns && waits_for_start(facts)) {
            step->left_out = LAC_STEP_WARM_UP;
            continue;
        }
        /* longer: first use of things; shorter: the host runs ahead until the queue is full */
        double ratio = usual_ns > 0 ? (double)own_ns(step) / (double)usual_ns : 1.0;
        bool waited =
            ratio < WARM_UP_SHORT && step->dur_ns > usual_ns; /* for data: that is no warm-up */
        if ((ratio <= WARM_UP_LONG && ratio >= WARM_UP_SHORT) || waited ||
            returns_later(step, scratch, later_count)) {
            return;
        }
        step->left_out = LAC_STEP_WARM_UP;
    }
}

/** The last one when the recording ended in it, and rare ones that did other work. */
static void leave_out_others(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->step_count < STEPS_MIN) {
        return;
    }
    double usual = (double)median_of(facts, scratch, 0, true);
    struct lac_step *last = &analysis->steps[analysis->step_count - 1];
    if ((double)last->op_count < CUT_OFF_OPS_MAX * usual) {
        last->left_out = LAC_STEP_TRUNCATED;
    }
    uint32_t others = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t s = 0; s < analysis->step_count; s++) {
            struct lac_step *step = &analysis->steps[s];
            double ratio = usual > 0.0 ? (double)step->op_count / usual : 1.0;
            if (step->left_out != LAC_STEP_KEPT ||
                (ratio >= OTHER_OPS_MIN && ratio <= OTHER_OPS_MAX)) {
                continue;
            }
            if (pass == 0) {
                others++;
            } else if (others <= 1 || (uint64_t)others * 10 <= analysis->step_count) {
                step->left_out = LAC_STEP_OTHER_KIND;
            }
        }
    }
}

/** Steps after which the same comes again: workers that take turns, micro-steps up to an update. */
static uint32_t cycle_of(const struct lac_facts *facts, uint32_t kept)
{
    const struct lac_analysis *analysis = facts->analysis;
    int32_t workers = analysis->loader.num_workers;
    uint32_t cycle = workers > 1 ? (uint32_t)workers : 1;
    cycle = facts->loader_period > 1 ? facts->loader_period : cycle;
    uint32_t micro = analysis->is_step_micro ? analysis->micro_step_count : 1;
    uint32_t both = cycle;
    while (both % micro != 0) {
        both += cycle;
    }
    return both <= kept ? both : micro > 1 ? micro : cycle;
}

/** Workers that run in phase make one long and n - 1 short steps: only whole cycles have a mean.
 *  What is too much is cut off at the ends, where that changes the mean least: a long wait that
 *  comes once is not to be lost with it. */
static void leave_out_partial_cycle(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t kept = 0;
    double sum_ns = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            scratch[kept++] = s;
            sum_ns += (double)analysis->steps[s].dur_ns;
        }
    }
    uint32_t cycle = cycle_of(facts, kept);
    if (cycle < 2 || kept < cycle) {
        return;
    }
    uint32_t excess = kept % cycle;
    double usual_ns = sum_ns / kept * excess;
    double cut_ns = 0.0;
    for (uint32_t i = 0; i < excess; i++) {
        cut_ns += (double)analysis->steps[scratch[i]].dur_ns;
    }
    uint32_t at_end = 0; /* how many of the last ones; the others are the first */
    double least_ns = fabs(cut_ns - usual_ns) * CUT_BETTER;
    for (uint32_t i = 1; i <= excess; i++) {
        cut_ns += (double)(analysis->steps[scratch[kept - i]].dur_ns -
                           analysis->steps[scratch[excess - i]].dur_ns);
        if (fabs(cut_ns - usual_ns) < least_ns) {
            least_ns = fabs(cut_ns - usual_ns);
            at_end = i;
        }
    }
    for (uint32_t i = 0; i < excess; i++) {
        uint32_t which = i < at_end ? kept - 1 - i : i - at_end;
        analysis->steps[scratch[which]].left_out = LAC_STEP_PARTIAL_CYCLE;
    }
}

/* -- whose steps they are ----------------------------------------------------------------------- */

/** Mean and deviation of the kept steps whose length the device tells as well. */
struct lengths {
    double mean, deviation;
};

/** Whether its distance to the next one is that of two steps alike, with nothing between them. */
static bool has_distance(const struct lac_analysis *analysis, const struct lac_paced_step *paced,
                         uint32_t s)
{
    if (!paced[s].is_alike || s + 1 == analysis->step_count) {
        return false;
    }
    const struct lac_step *step = &analysis->steps[s];
    const struct lac_step *next = &analysis->steps[s + 1];
    int64_t between_ns = next->host_start_ns - step->host_start_ns - step->host_dur_ns;
    return next->left_out != LAC_STEP_OTHER_KIND &&
           (double)between_ns <= MARKS_APART_MAX * (double)step->host_dur_ns;
}

/** Whether it waited for data before the device's first operation: nothing tells what of that the
 *  device would have felt. */
static bool waits_before_device(const struct lac_facts *facts, const int64_t *wait_sums,
                                const struct lac_step *step)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t first_ns = analysis->devices[analysis->main_device].first_ns;
    return step->start_ns < first_ns &&
           (double)(lac_spans_length_up_to(&facts->waits, wait_sums, first_ns) -
                    lac_spans_length_up_to(&facts->waits, wait_sums, step->start_ns)) >
               STARVING_MIN * (double)step->dur_ns;
}

static bool is_compared_with_device(const struct lac_facts *facts, const int64_t *wait_sums,
                                    const struct lac_paced_step *paced, uint32_t s)
{
    const struct lac_step *step = &facts->analysis->steps[s];
    return step->left_out == LAC_STEP_KEPT && has_distance(facts->analysis, paced, s) &&
           !waits_before_device(facts, wait_sums, step);
}

static struct lengths lengths_of(const struct lac_facts *facts, const int64_t *wait_sums,
                                 const struct lac_paced_step *paced, bool by_device)
{
    const struct lac_analysis *analysis = facts->analysis;
    double sum = 0.0;
    double squares = 0.0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!is_compared_with_device(facts, wait_sums, paced, s)) {
            continue;
        }
        /* a wait for data may lie in the step before: which one it delays is no question here */
        double ns = by_device ? (double)(paced[s].dur_ns - paced[s].starved_ns)
                              : (double)(step->dur_ns - step->starved_ns);
        sum += ns;
        squares += ns * ns;
        count++;
    }
    if (count < 2) {
        return (struct lengths){0.0, 0.0};
    }
    double mean = sum / count;
    return (struct lengths){mean, sqrt(fmax(0.0, squares / count - mean * mean))};
}

/** By how much the device is behind the mark that began the step, without the wait for data in
 *  between: that holds up both. */
static int64_t lag_ns(const struct lac_facts *facts, const int64_t *wait_sums,
                      const struct lac_step *step, int64_t device_ns)
{
    int64_t from_ns = step->start_ns;
    int64_t end_ns = from_ns + step->dur_ns;
    int64_t to_ns = device_ns < end_ns ? device_ns : end_ns;
    int64_t waited_ns = to_ns > from_ns
                            ? lac_spans_length_up_to(&facts->waits, wait_sums, to_ns) -
                                  lac_spans_length_up_to(&facts->waits, wait_sums, from_ns)
                            : 0;
    return device_ns - from_ns - waited_ns;
}

/** By what part the marks are off the device's pace, as the first one lies otherwise to the device
 *  than the others do: it waited for work from before the recording, or the host ran ahead from
 *  there on. Both the first kernels and those that the pace goes by have to show it: what happens
 *  once inside a step moves only one of them. */
static double lag_off(const struct lac_facts *facts, const int64_t *wait_sums,
                      const struct lac_paced_step *paced, bool by_first, int64_t *scratch)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t count = 0;
    int64_t first_ns = 0;
    int64_t length_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        /* a wait for data that emptied the queue begins the lag anew */
        const struct lac_step *step = &analysis->steps[s];
        bool is_starved = (double)step->starved_ns > STARVING_MIN * (double)step->dur_ns;
        if (is_starved || !is_compared_with_device(facts, wait_sums, paced, s)) {
            continue;
        }
        int64_t ns =
            lag_ns(facts, wait_sums, step, by_first ? paced[s].first_ns : paced[s].start_ns);
        length_ns = lac_sum_ns(length_ns, paced[s].dur_ns);
        if (count++ == 0) {
            first_ns = ns;
        } else {
            scratch[count - 2] = ns;
        }
    }
    if (count < 2 || length_ns <= 0) {
        return 0.0;
    }
    qsort(scratch, count - 1, sizeof(*scratch), by_value);
    return fabs((double)percentile(scratch, count - 1, 50) - (double)first_ns) / (double)length_ns;
}

/** Whether the host's marks say something else than the device: the first ones lie otherwise to it
 *  than the rest, or their lengths are when the queue had room. */
static enum lac_status look_at_marks(const struct lac_facts *facts,
                                     const struct lac_paced_step *paced, int64_t *scratch,
                                     bool *ret_differ)
{
    int64_t *wait_sums = lac_spans_prefix(&facts->waits);
    if (wait_sums == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct lengths host = lengths_of(facts, wait_sums, paced, false);
    struct lengths device = lengths_of(facts, wait_sums, paced, true);
    bool deviates = device.mean > 0.0 && host.deviation > MARKS_DEVIATE_MORE * device.deviation &&
                    host.deviation > MARKS_DEVIATE_MIN * device.mean;
    double off = fmin(lag_off(facts, wait_sums, paced, true, scratch),
                      lag_off(facts, wait_sums, paced, false, scratch));
    free(wait_sums);
    *ret_differ = deviates || off > MARKS_OFF_MAX;
    return LAC_OK;
}

static bool is_left_out_by_time(const struct lac_step *step)
{
    return step->left_out == LAC_STEP_WARM_UP || step->left_out == LAC_STEP_TRUNCATED ||
           step->left_out == LAC_STEP_PARTIAL_CYCLE;
}

/** The device's steps in place of the marks; what was left out for its length is looked at anew. */
static void take_pace(struct lac_facts *facts, const struct lac_paced_step *paced, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        bool is_known = paced[s].dur_ns != LAC_UNKNOWN_NS;
        if (is_left_out_by_time(step)) {
            step->left_out = LAC_STEP_KEPT;
            if (step->kind == LAC_KIND_WARM_UP || step->kind == LAC_KIND_TRUNCATED) {
                step->kind = LAC_KIND_TRAIN;
            }
        }
        if (!has_distance(analysis, paced, s) && step->left_out == LAC_STEP_KEPT) {
            step->left_out = LAC_STEP_TRUNCATED;
        }
        step->start_ns = paced[s].start_ns;
        step->dur_ns = is_known ? paced[s].dur_ns : 0;
        step->starved_ns = paced[s].starved_ns;
        step->wait_ns = paced[s].starved_ns; /* what the device did not feel was no wait */
    }
    leave_out_warm_up(facts, scratch);
    lac_pauses_leave_out(facts);
    lac_exclude_before_capture(facts);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_WARM_UP) {
            step->kind = LAC_KIND_WARM_UP;
        } else if (step->left_out == LAC_STEP_TRUNCATED) {
            step->kind = LAC_KIND_TRUNCATED;
        }
    }
    facts->loader_period = lac_steps_loader_period(facts, scratch);
    leave_out_partial_cycle(facts, scratch);
    analysis->is_paced_by_device = true;
}

static enum lac_status choose_clock(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_pace pace = {0};
    enum lac_status status = lac_pace_measure(facts, &pace);
    if (status) {
        return status;
    }
    struct lac_step *last = &analysis->steps[analysis->step_count - 1];
    if (pace.is_last_late && last->left_out == LAC_STEP_KEPT) {
        last->left_out = LAC_STEP_TRUNCATED;
        last->kind = LAC_KIND_TRUNCATED;
    }
    facts->loader_period = lac_steps_loader_period(facts, scratch);
    leave_out_partial_cycle(facts, scratch);
    bool differ = false;
    if (pace.steps != NULL) {
        status = look_at_marks(facts, pace.steps, scratch, &differ);
    }
    if (!status && differ) {
        take_pace(facts, pace.steps, scratch);
    }
    free(pace.steps);
    return status;
}

/* -- figures of the kept ones ------------------------------------------------------------------ */

/** Steps that are compared for their length: epoch ends and the like are a kind of their own. */
static bool is_compared(const struct lac_step *step)
{
    return step->left_out == LAC_STEP_KEPT && step->kind == LAC_KIND_TRAIN;
}

/** Median of the operations of kept training steps. */
static int64_t usual_operations(const struct lac_analysis *analysis, int64_t *scratch)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_compared(&analysis->steps[s])) {
            scratch[count++] = (int64_t)analysis->steps[s].op_count;
        }
    }
    qsort(scratch, count, sizeof(*scratch), by_value);
    return percentile(scratch, count, 50);
}

/** Longer than steps of their kind: those that did other work (a validation, an update after
 *  micro-steps) are not compared. */
static void mark_outliers(struct lac_analysis *analysis, int64_t *scratch)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_compared(&analysis->steps[s])) {
            scratch[count++] = own_ns(&analysis->steps[s]);
        }
    }
    if (count < 2 * STEPS_MIN) {
        return;
    }
    qsort(scratch, count, sizeof(*scratch), by_value);
    int64_t median_ns = percentile(scratch, count, 50);
    /* where the host runs ahead, a step on it says when the queue was full, not how long it took */
    int64_t busy_ns =
        analysis->main_device == LAC_NONE ? 0 : analysis->devices[analysis->main_device].busy_ns;
    if ((double)median_ns * analysis->step_count < PACE_MIN * (double)busy_ns) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = llabs(scratch[i] - median_ns);
    }
    qsort(scratch, count, sizeof(*scratch), by_value);
    double limit = (double)median_ns + OUTLIER_DEVIATIONS * (double)percentile(scratch, count, 50);
    int64_t usual_ops = usual_operations(analysis, scratch);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        double length = (double)own_ns(step);
        bool is_of_its_kind = llabs((int64_t)step->op_count - usual_ops) <= usual_ops / 20 + 2;
        step->is_outlier = is_compared(step) && is_of_its_kind && length > limit &&
                           length > OUTLIER_RATIO * (double)median_ns;
    }
}

/** Student's t: the mean lies within so many standard errors in 95 of 100 cases. */
static double student(uint32_t degrees)
{
    static const double t[] = {0.0,   12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447, 2.365,  2.306, 2.262, 2.228};
    return degrees < LAC_COUNT_OF(t) ? t[degrees] : 1.96 + 2.7 / degrees;
}

static void summarise(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t count = 0;
    int64_t wall_ns = 0;
    int64_t host_ns = 0;
    int64_t starved_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out != LAC_STEP_KEPT) {
            continue;
        }
        scratch[count++] = step->dur_ns;
        host_ns = lac_sum_ns(host_ns, step->host_dur_ns);
        wall_ns = lac_sum_ns(wall_ns, step->dur_ns);
        starved_ns = lac_sum_ns(starved_ns, step->starved_ns);
    }
    analysis->step_kept_count = count;
    if (count == 0) {
        return;
    }
    qsort(scratch, count, sizeof(*scratch), by_value);
    double mean = (double)wall_ns / (double)count;
    analysis->step_mean_ns = lac_round(mean);
    if (!facts->has_device_steps) {
        analysis->step_host_ns = lac_round((double)host_ns / (double)count);
    }
    analysis->step_median_ns = percentile(scratch, count, 50);
    analysis->step_p95_ns = percentile(scratch, count, 95);
    analysis->step_without_starvation_ns =
        lac_round((double)(wall_ns - starved_ns) / (double)count);
    if (count < 2 || mean <= 0.0) {
        return;
    }
    double squares = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        squares += ((double)scratch[i] - mean) * ((double)scratch[i] - mean);
    }
    double deviation = sqrt(squares / (double)(count - 1));
    double spread_pct = 100.0 * deviation / sqrt((double)count) / mean;
    analysis->step_uncertain_pct = fmin(100.0, student(count - 1) * spread_pct);
    if (count >= STEPS_MIN) {
        analysis->step_spread_pct = spread_pct;
    }
}

enum lac_status lac_steps_filter(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->step_count == 0) {
        return LAC_OK;
    }
    int64_t *scratch = malloc(analysis->step_count * sizeof(*scratch));
    enum lac_status status = scratch != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        analysis->steps[s].host_start_ns = analysis->steps[s].start_ns;
        analysis->steps[s].host_dur_ns = analysis->steps[s].dur_ns;
    }
    if (!status) {
        count_operations(facts);
        status = measure_waits(facts);
    }
    if (!status) {
        leave_out_warm_up(facts, scratch);
        lac_pauses_leave_out(facts);
        lac_exclude_before_capture(facts);
        leave_out_others(facts, scratch);
        status = lac_steps_name_kinds(facts);
    }
    if (!status) {
        status = lac_steps_find_micro(facts);
    }
    if (!status) {
        status = lac_steps_classify(facts);
    }
    if (!status) {
        status = choose_clock(facts, scratch);
    }
    if (!status) {
        mark_outliers(analysis, scratch);
        summarise(facts, scratch);
    }
    free(scratch);
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t end_ns = step->start_ns + step->dur_ns;
        int64_t host_end_ns = step->host_start_ns + step->host_dur_ns;
        status = lac_spans_add(&facts->steps, step->host_start_ns, host_end_ns);
        if (!status && step->left_out == LAC_STEP_KEPT) {
            status = lac_spans_add(&facts->kept, step->start_ns, end_ns);
        }
        if (!status && step->left_out == LAC_STEP_KEPT) {
            status = lac_spans_add(&facts->host_kept, step->host_start_ns, host_end_ns);
        }
    }
    return status;
}
