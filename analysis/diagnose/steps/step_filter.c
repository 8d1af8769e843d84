/*
 * Which steps stand for the training: without warm-up, truncated ones and other kinds of work, and
 * as whole cycles of the loader's workers where that number is known. A step is never left out
 * because it waited for data, nor for a cause that returns.
 */

#include "analysis/diagnose/steps/step_pace.h"
#include "collector/base/order.h"

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

/** A wait before the device's first operation counts as well: it is a part of the step's length. */
static enum lac_status measure_waits(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_spans starved = {0};
    enum lac_status status = LAC_OK;
    if (analysis->main_device != LAC_NONE) {
        status = lac_spans_subtract(&facts->waits, &facts->device_sets[analysis->main_device].busy,
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

static int64_t median_of(struct lac_facts *facts, int64_t *scratch, uint32_t first,
                         bool of_operations)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t count = 0;
    for (uint32_t s = first; s < analysis->step_count; s++) {
        if (!lac_step_is_timed(&analysis->steps[s])) {
            continue;
        }
        scratch[count++] = of_operations ? (int64_t)analysis->steps[s].op_count
                                         : lac_step_fed_ns(&analysis->steps[s]);
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    return count == 0 ? 0 : lac_percentile(scratch, count, 50);
}

/** Lengths of the second half of the steps, in order. @return how many */
static uint32_t sort_later(const struct lac_analysis *analysis, int64_t *lengths_ns)
{
    uint32_t count = 0;
    for (uint32_t s = analysis->step_count / 2; s < analysis->step_count; s++) {
        if (lac_step_is_timed(&analysis->steps[s])) {
            lengths_ns[count++] = lac_step_fed_ns(&analysis->steps[s]);
        }
    }
    qsort(lengths_ns, count, sizeof(*lengths_ns), lac_by_int64);
    return count;
}

/** Whether steps as long as this one come again in the second half: then it is no warm-up. */
static bool returns_later(const struct lac_step *step, const int64_t *later_ns, uint32_t count)
{
    double length = (double)lac_step_fed_ns(step);
    uint32_t low = 0;
    /* the first that is long enough */
    LAC_BISECT(low, count, middle, (double)later_ns[middle] <= ALIKE_SHORT * length);
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

void lac_steps_leave_out_warm_up(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->step_count < 2) {
        return;
    }
    int64_t usual_ns = median_of(facts, scratch, analysis->step_count / 2, false);
    uint32_t later_count = sort_later(analysis, scratch);
    for (uint32_t s = 0; s < analysis->step_count / 2; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (!lac_step_is_timed(step)) {
            continue;
        }
        if (s == 0 && step->wait_ns * 5 > usual_ns && waits_for_start(facts)) {
            step->left_out = LAC_STEP_WARM_UP;
            continue;
        }
        /* longer: first use of things; shorter: the host runs ahead until the queue is full */
        double ratio = usual_ns > 0 ? (double)lac_step_fed_ns(step) / (double)usual_ns : 1.0;
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
uint32_t lac_steps_cycle(const struct lac_facts *facts, uint32_t kept)
{
    const struct lac_analysis *analysis = facts->analysis;
    int32_t workers = analysis->loader.num_workers;
    uint32_t cycle = workers > 1 ? (uint32_t)workers : 1;
    cycle = facts->loader_rhythm.period > 1 ? facts->loader_rhythm.period : cycle;
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
    uint32_t cycle = lac_steps_cycle(facts, kept);
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

void lac_steps_cut_to_cycles(struct lac_facts *facts, int64_t *scratch)
{
    lac_steps_find_rhythm(facts, scratch);
    leave_out_partial_cycle(facts, scratch);
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
        lac_steps_leave_out_warm_up(facts, scratch);
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
        status = lac_steps_choose_clock(facts, scratch);
    }
    if (!status) {
        lac_steps_mark_outliers(facts, scratch);
        lac_steps_summarise(facts, scratch);
    }
    free(scratch);
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t start_ns = step->start_ns + facts->kept_shift_ns;
        int64_t host_end_ns = step->host_start_ns + step->host_dur_ns;
        status = lac_spans_add(&facts->steps, step->host_start_ns, host_end_ns);
        if (!status && step->left_out == LAC_STEP_KEPT) {
            status = lac_spans_add(&facts->kept, start_ns, start_ns + step->dur_ns);
        }
        if (!status && step->left_out == LAC_STEP_KEPT) {
            status = lac_spans_add(&facts->host_kept, step->host_start_ns, host_end_ns);
        }
    }
    return status;
}
