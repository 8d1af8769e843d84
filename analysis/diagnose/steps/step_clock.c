/*
 * Whose steps they are: those between the host's marks, or as the device takes them (step_pace.h).
 * The marks time the steps where they agree with the device, since who begins a step tells best where
 * it begins. The device does where they cannot be its pace, and where it tells more: more steps, a
 * mean that is known twice as well, a first step that is whole.
 */

#include "analysis/diagnose/steps/step_pace.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** What is known of the steps before one clock is chosen. */
struct clocks {
    struct lac_facts *facts;
    const struct lac_paced_step *paced;
    int64_t *wait_sums; /**< of the waits for data */
    int64_t *scratch;
};

/** Mean and deviation of the kept steps whose length the device tells as well. */
struct lengths {
    double mean, deviation;
};

/** Whether its distance to the next one is that of two steps alike, with nothing between them. */
static bool has_distance(const struct lac_analysis *analysis, const struct lac_paced_step *paced,
                         uint32_t s)
{
    uint32_t after = lac_step_next_on_device(analysis, s);
    if (!paced[s].is_alike || after == analysis->step_count) {
        return paced[s].is_alike; /* the last one: to what follows its mark */
    }
    const struct lac_step *step = &analysis->steps[s];
    const struct lac_step *next = &analysis->steps[after];
    const struct lac_step *last = &analysis->steps[after - 1]; /* of the waits in vain between */
    int64_t between_ns = next->host_start_ns - last->host_start_ns - last->host_dur_ns;
    return next->left_out != LAC_STEP_OTHER_KIND &&
           (double)between_ns <= MARKS_APART_MAX * (double)step->host_dur_ns;
}

static int64_t waited_ns(const struct clocks *clocks, int64_t from_ns, int64_t to_ns)
{
    const struct lac_spans *waits = &clocks->facts->waits;
    return lac_spans_length_up_to(waits, clocks->wait_sums, to_ns) -
           lac_spans_length_up_to(waits, clocks->wait_sums, from_ns);
}

/** Whether it waited for data before the device's first operation: nothing tells what of that the
 *  device would have felt. */
static bool waits_before_device(const struct clocks *clocks, const struct lac_step *step)
{
    const struct lac_analysis *analysis = clocks->facts->analysis;
    int64_t first_ns = analysis->devices[analysis->main_device].first_ns;
    return step->start_ns < first_ns && (double)waited_ns(clocks, step->start_ns, first_ns) >
                                            STARVING_MIN * (double)step->dur_ns;
}

static bool is_compared_with_device(const struct clocks *clocks, uint32_t s)
{
    const struct lac_step *step = &clocks->facts->analysis->steps[s];
    return step->left_out == LAC_STEP_KEPT &&
           has_distance(clocks->facts->analysis, clocks->paced, s) &&
           !waits_before_device(clocks, step);
}

static struct lengths lengths_of(const struct clocks *clocks, bool by_device)
{
    const struct lac_analysis *analysis = clocks->facts->analysis;
    double sum = 0.0;
    double squares = 0.0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        const struct lac_paced_step *paced = &clocks->paced[s];
        if (!is_compared_with_device(clocks, s)) {
            continue;
        }
        /* a wait for data may lie in the step before: which one it delays is no question here */
        double ns = by_device ? (double)(paced->dur_ns - paced->starved_ns)
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
static int64_t lag_ns(const struct clocks *clocks, const struct lac_step *step, int64_t device_ns)
{
    int64_t from_ns = step->start_ns;
    int64_t end_ns = from_ns + step->dur_ns;
    int64_t to_ns = device_ns < end_ns ? device_ns : end_ns;
    return device_ns - from_ns - (to_ns > from_ns ? waited_ns(clocks, from_ns, to_ns) : 0);
}

/** By what part the marks are off the device's pace, as the first one lies otherwise to the device
 *  than the others do: it waited for work from before the recording, or the host ran ahead from
 *  there on. Both the first kernels and those that the pace goes by have to show it: what happens
 *  once inside a step moves only one of them. */
static double lag_off(const struct clocks *clocks, bool by_first)
{
    const struct lac_analysis *analysis = clocks->facts->analysis;
    uint32_t count = 0;
    int64_t first_ns = 0;
    int64_t length_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        /* a wait for data that emptied the queue begins the lag anew */
        const struct lac_step *step = &analysis->steps[s];
        const struct lac_paced_step *paced = &clocks->paced[s];
        bool is_starved = (double)step->starved_ns > STARVING_MIN * (double)step->dur_ns;
        if (is_starved || !is_compared_with_device(clocks, s)) {
            continue;
        }
        int64_t ns = lag_ns(clocks, step, by_first ? paced->first_ns : paced->start_ns);
        length_ns = lac_sum_ns(length_ns, paced->dur_ns);
        if (count++ == 0) {
            first_ns = ns;
        } else {
            clocks->scratch[count - 2] = ns;
        }
    }
    if (count < 2 || length_ns <= 0) {
        return 0.0;
    }
    qsort(clocks->scratch, count - 1, sizeof(*clocks->scratch), lac_by_int64);
    int64_t usual_ns = clocks->scratch[(count - 1 + 1) / 2 - 1];
    return fabs((double)usual_ns - (double)first_ns) / (double)length_ns;
}

/** Whether what was launched between the marks takes the device longer than they lie apart. */
static bool are_marks_too_close(const struct clocks *clocks)
{
    const struct lac_analysis *analysis = clocks->facts->analysis;
    double busy_ns = 0.0;
    double marks_ns = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            busy_ns += (double)clocks->paced[s].busy_ns;
            marks_ns += (double)analysis->steps[s].dur_ns;
        }
    }
    return busy_ns > (1.0 + MARKS_OFF_MAX) * marks_ns;
}

/** Whether the host's marks say something else than the device: the first ones lie otherwise to it
 *  than the rest, their lengths are when the queue had room, or it could not do that much between
 *  them. */
static bool do_marks_differ(const struct clocks *clocks)
{
    struct lengths host = lengths_of(clocks, false);
    struct lengths device = lengths_of(clocks, true);
    bool deviates = device.mean > 0.0 && host.deviation > MARKS_DEVIATE_MORE * device.deviation &&
                    host.deviation > MARKS_DEVIATE_MIN * device.mean;
    bool drifts = fabs(device.mean - host.mean) > MEANS_OFF_MAX * host.mean;
    return deviates || drifts ||
           fmin(lag_off(clocks, true), lag_off(clocks, false)) > MARKS_OFF_MAX ||
           are_marks_too_close(clocks);
}

/** Whether a kept step begins so long before the device's first operation that the device's part of
 *  it is not whole: idle time begins with that operation. */
static bool begins_before_device(const struct lac_analysis *analysis)
{
    int64_t first_ns = analysis->devices[analysis->main_device].first_ns;
    for (uint32_t s = 0; s < analysis->step_count && analysis->steps[s].start_ns < first_ns; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT &&
            (double)(first_ns - step->start_ns) > HEAD_MIN * (double)step->dur_ns) {
            return true;
        }
    }
    return false;
}

/** What the marks' times left out is looked at anew; what a pause or the end cut stays cut. */
static bool is_open_again(const struct lac_facts *facts, const struct lac_step *step)
{
    int64_t end_ns = step->host_start_ns + step->host_dur_ns;
    return step->left_out == LAC_STEP_WARM_UP || step->left_out == LAC_STEP_PARTIAL_CYCLE ||
           step->left_out == LAC_STEP_UNTIMED ||
           (step->left_out == LAC_STEP_TRUNCATED &&
            lac_spans_length_inside(&facts->before_capture, step->host_start_ns, end_ns) > 0);
}

/** The device's steps in place of the marks. */
static void take_pace(struct lac_facts *facts, const struct lac_paced_step *paced, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (is_open_again(facts, step)) {
            step->left_out = LAC_STEP_KEPT;
            if (step->kind == LAC_KIND_WARM_UP || step->kind == LAC_KIND_TRUNCATED) {
                step->kind = LAC_KIND_TRAIN;
            }
        }
        if (step->left_out == LAC_STEP_KEPT && !has_distance(analysis, paced, s)) {
            step->left_out = LAC_STEP_UNTIMED;
        }
        step->start_ns = paced[s].start_ns;
        step->dur_ns = paced[s].end_ns - paced[s].start_ns;
        step->starved_ns = paced[s].starved_ns;
        step->wait_ns = paced[s].starved_ns; /* what the device did not feel was no wait */
    }
    lac_steps_leave_out_warm_up(facts, scratch);
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
    lac_steps_cut_to_cycles(facts, scratch);
    analysis->is_paced_by_device = true;
}

/** Whether the device's steps tell more than the marks: there are more of them where there are few or
 *  the mean is not well known, or it is known twice as well. One less of few is a loss. */
static bool tells_more(struct lac_step_mean host, struct lac_step_mean device)
{
    bool is_known_well = host.uncertain_pct <= UNCERTAIN_WORTH_PCT;
    if (device.kept_count > host.kept_count) {
        return !is_known_well || host.kept_count <= STEPS_MIN;
    }
    return !is_known_well && device.kept_count > STEPS_MIN &&
           device.kept_count + 1 >= host.kept_count &&
           device.uncertain_pct * 2.0 <= host.uncertain_pct;
}

/** Whether the device tells the same as marks of which one is not whole on it: then its steps, which
 *  are, say also what they consist of. */
static bool tells_the_same(struct lac_step_mean host, struct lac_step_mean device)
{
    return device.kept_count > 1 &&
           fabs(device.mean_ns - host.mean_ns) <= MARKS_OFF_MAX * host.mean_ns &&
           device.uncertain_pct <= MARKS_DEVIATE_MORE * host.uncertain_pct;
}

static enum lac_status compare_clocks(struct clocks *clocks)
{
    struct lac_facts *facts = clocks->facts;
    struct lac_analysis *analysis = facts->analysis;
    size_t size_bytes = analysis->step_count * sizeof(*analysis->steps);
    struct lac_step *by_marks = malloc(size_bytes);
    if (by_marks == NULL) {
        return LAC_ERR_NOMEM;
    }
    memcpy(by_marks, analysis->steps, size_bytes);
    struct lac_loader_rhythm rhythm = facts->loader_rhythm;
    struct lac_step_mean host = lac_steps_mean(facts, clocks->scratch);
    bool differ = do_marks_differ(clocks);
    bool is_headless = begins_before_device(analysis);
    take_pace(facts, clocks->paced, clocks->scratch);
    struct lac_step_mean device = lac_steps_mean(facts, clocks->scratch);
    bool takes_device = (differ && device.kept_count > 0) ||
                        (is_headless && tells_the_same(host, device)) || tells_more(host, device);
    if (!takes_device) {
        memcpy(analysis->steps, by_marks, size_bytes);
        facts->loader_rhythm = rhythm;
        analysis->is_paced_by_device = false;
    }
    free(by_marks);
    return LAC_OK;
}

/** One step: its mark, up to the last operation that it launched; only what the device did of it where
 *  the mark is too short for that. */
static void choose_for_single(struct lac_analysis *analysis, const struct lac_paced_step *paced)
{
    struct lac_step *step = &analysis->steps[0];
    if ((double)paced->busy_ns > (1.0 + MARKS_OFF_MAX) * (double)step->dur_ns) {
        step->start_ns = paced->start_ns;
        step->dur_ns = paced->dur_ns;
        step->starved_ns = paced->starved_ns;
        step->wait_ns = paced->starved_ns;
        analysis->is_paced_by_device = true;
    } else if (paced->end_ns > step->start_ns + step->dur_ns) {
        step->dur_ns = paced->end_ns - step->start_ns;
        analysis->is_paced_by_device = true;
    }
}

enum lac_status lac_steps_choose_clock(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_pace pace = {0};
    enum lac_status status = lac_pace_measure(facts, &pace);
    if (status) {
        return status;
    }
    struct lac_step *last = &analysis->steps[analysis->step_count - 1];
    if (pace.is_last_late && last->left_out == LAC_STEP_KEPT) {
        last->left_out = LAC_STEP_UNTIMED;
    }
    lac_steps_cut_to_cycles(facts, scratch);
    if (pace.steps != NULL && analysis->step_count == 1) {
        choose_for_single(analysis, pace.steps);
    } else if (pace.steps != NULL) {
        struct clocks clocks = {.facts = facts,
                                .paced = pace.steps,
                                .wait_sums = lac_spans_prefix(&facts->waits),
                                .scratch = scratch};
        status = clocks.wait_sums != NULL ? compare_clocks(&clocks) : LAC_ERR_NOMEM;
        facts->kept_shift_ns = analysis->is_paced_by_device ? pace.place_ns : 0;
        free(clocks.wait_sums);
    }
    free(pace.steps);
    return status;
}
