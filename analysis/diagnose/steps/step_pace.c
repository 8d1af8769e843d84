/* Steps as the device takes them (step_pace.h). */

#include "analysis/diagnose/steps/step_pace.h"

#include "analysis/diagnose/steps/step_sequence.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MAX = 32 }; /* of a step that are looked at, evenly over its kernels */

/** What the kernels of one step show. */
struct shown {
    uint64_t count;
    int64_t first_ns, last_end_ns; /* on the device */
    int64_t busy_ns;
    int64_t last_launch_ns; /* by the host */
};

struct search {
    struct lac_facts *facts;
    uint32_t step_count; /* with what follows the last mark, where marks lie between steps */
    struct shown *shown; /* by step */
    int64_t *start_ns;   /* by step and place; LAC_UNKNOWN_NS: it has none there */
    uint32_t names[2][PLACES_MAX]; /* of the kernels there, of the last two */
    int64_t *scratch;              /* a number a step */
    int64_t *wait_sums;            /* of the waits for data */
    uint32_t place_count;
    uint64_t usual_count; /* kernels of a step */
};

static int64_t median(int64_t *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), lac_by_int64);
    return values[(count - 1) / 2];
}

/** The next computing kernel of the stream that was launched in a step; false at the end. */
static bool next_kernel(const struct search *search, struct lac_sequence *sequence, uint32_t *step,
                        uint64_t *ret_slice)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    while (lac_sequence_next(sequence, ret_slice)) {
        uint32_t call = sequence->slices->link[*ret_slice];
        if (call == LAC_NONE || lac_kernel_class_of(search->facts, *ret_slice)->is_comm) {
            continue;
        }
        int64_t launched_ns = sequence->slices->start_ns[call];
        uint32_t at = lac_step_at(analysis, launched_ns, *step);
        bool is_in = at != LAC_NONE &&
                     launched_ns < analysis->steps[at].start_ns + analysis->steps[at].dur_ns;
        if (!is_in && at + 1 == analysis->step_count && at + 1 < search->step_count) {
            at++; /* behind the last mark */
            is_in = true;
        }
        if (is_in) {
            *step = at;
            return true;
        }
    }
    return false;
}

static void count_kernels(struct search *search, struct lac_sequence sequence)
{
    const struct lac_slices *slices = sequence.slices;
    uint32_t step = 0;
    uint64_t slice = 0;
    while (next_kernel(search, &sequence, &step, &slice)) {
        struct shown *shown = &search->shown[step];
        int64_t launched_ns = slices->start_ns[slices->link[slice]];
        int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
        shown->first_ns = shown->count++ == 0 ? slices->start_ns[slice] : shown->first_ns;
        shown->last_end_ns = end_ns > shown->last_end_ns ? end_ns : shown->last_end_ns;
        shown->busy_ns = lac_sum_ns(shown->busy_ns, slices->dur_ns[slice]);
        shown->last_launch_ns =
            launched_ns > shown->last_launch_ns ? launched_ns : shown->last_launch_ns;
    }
}

/** The number of the kernel at a place: places lie in the middle of equal parts of a usual step. */
static uint64_t kernel_at(const struct search *search, uint32_t place)
{
    uint64_t parts = search->place_count > 0 ? search->place_count : 1;
    return (2 * (uint64_t)place + 1) * search->usual_count / parts / 2;
}

static bool has_kernel_at(const struct search *search, uint32_t step, uint32_t place)
{
    return search->shown[step].count > kernel_at(search, place);
}

static void read_places(struct search *search, struct lac_sequence sequence)
{
    uint64_t cells = (uint64_t)search->step_count * search->place_count;
    for (uint64_t i = 0; i < cells; i++) {
        search->start_ns[i] = LAC_UNKNOWN_NS;
    }
    uint32_t step = 0;
    uint32_t before = LAC_NONE;
    uint64_t number = 0;
    uint32_t place = 0;
    uint64_t slice = 0;
    while (next_kernel(search, &sequence, &step, &slice)) {
        if (step != before) { /* kernels of a stream start in the order of their launches */
            number = 0;
            place = 0;
            before = step;
        }
        for (; place < search->place_count && kernel_at(search, place) == number; place++) {
            search->start_ns[(uint64_t)step * search->place_count + place] =
                sequence.slices->start_ns[slice];
            if (step + 2 >= search->step_count) {
                search->names[search->step_count - 1 - step][place] = sequence.slices->name[slice];
            }
        }
        /* a step with fewer kernels: its last one stands for those that it lacks */
        for (uint32_t p = place; p < search->place_count; p++) {
            search->start_ns[(uint64_t)step * search->place_count + p] =
                sequence.slices->start_ns[slice];
        }
        number++;
    }
}

/** Distance at one place from a step to the next; LAC_UNKNOWN_NS where it is not to be told. */
static int64_t distance_ns(const struct search *search, uint32_t step, uint32_t place)
{
    uint32_t next = lac_step_next_on_device(search->facts->analysis, step);
    if (next >= search->step_count) {
        return LAC_UNKNOWN_NS;
    }
    int64_t here_ns = search->start_ns[(uint64_t)step * search->place_count + place];
    int64_t next_ns = search->start_ns[(uint64_t)next * search->place_count + place];
    return here_ns == LAC_UNKNOWN_NS || next_ns == LAC_UNKNOWN_NS || next_ns < here_ns
               ? LAC_UNKNOWN_NS
               : next_ns - here_ns;
}

/** How far a place's distances lie from the median over all, summed; fewer distances come last. */
static void weigh_places(const struct search *search, uint32_t *known, double *off_ns)
{
    for (uint32_t s = 0; s + 1 < search->step_count; s++) {
        int64_t distances[PLACES_MAX];
        uint32_t count = 0;
        for (uint32_t place = 0; place < search->place_count; place++) {
            int64_t ns = distance_ns(search, s, place);
            if (ns != LAC_UNKNOWN_NS) {
                distances[count++] = ns;
            }
        }
        int64_t middle_ns = count > 0 ? median(distances, count) : 0;
        for (uint32_t place = 0; place < search->place_count; place++) {
            int64_t ns = distance_ns(search, s, place);
            if (ns != LAC_UNKNOWN_NS) {
                known[place]++;
                off_ns[place] += (double)llabs(ns - middle_ns);
            }
        }
    }
}

/** The place with most distances; of those the one whose distances lie closest to the others'. */
static bool choose_place(const struct search *search, uint32_t *ret_place)
{
    uint32_t known[PLACES_MAX] = {0};
    double off_ns[PLACES_MAX] = {0.0};
    weigh_places(search, known, off_ns);
    uint32_t best = 0;
    for (uint32_t place = 1; place < search->place_count; place++) {
        bool is_closer = known[place] == known[best] && off_ns[place] < off_ns[best];
        best = known[place] > known[best] || is_closer ? place : best;
    }
    *ret_place = best;
    return known[best] > 0;
}

/** Whether both steps have the kernel at the place; what follows the last mark is a step where it is
 *  the same kernel. */
static bool are_alike(const struct search *search, uint32_t step, uint32_t place)
{
    uint32_t next = lac_step_next_on_device(search->facts->analysis, step);
    bool is_behind = next == search->facts->analysis->step_count;
    return has_kernel_at(search, step, place) && has_kernel_at(search, next, place) &&
           (!is_behind || (next == step + 1 && search->names[0][place] == search->names[1][place]));
}

/** Steps from the first kernel of the first one on. One whose next is not to be told ends with its
 *  last kernel, one without kernels where the step before it did: neither has a length.
 *
 *  @return from a step's begin to the place
 */
static int64_t put_steps(const struct search *search, uint32_t place, struct lac_paced_step *steps)
{
    uint32_t count = search->facts->analysis->step_count;
    int64_t before_ns = LAC_UNKNOWN_NS;
    int64_t end_ns = LAC_UNKNOWN_NS;
    for (uint32_t s = 0; s < count; s++) {
        const struct shown *shown = &search->shown[s];
        int64_t at_ns = search->start_ns[(uint64_t)s * search->place_count + place];
        steps[s] = (struct lac_paced_step){.start_ns = end_ns,
                                           .end_ns = end_ns,
                                           .dur_ns = LAC_UNKNOWN_NS,
                                           .busy_ns = shown->busy_ns};
        if (at_ns == LAC_UNKNOWN_NS) {
            continue;
        }
        before_ns = before_ns == LAC_UNKNOWN_NS ? at_ns - shown->first_ns : before_ns;
        bool is_later = end_ns == LAC_UNKNOWN_NS || at_ns - before_ns >= end_ns;
        steps[s].start_ns = is_later ? at_ns - before_ns : end_ns;
        steps[s].first_ns = shown->first_ns;
        steps[s].dur_ns = distance_ns(search, s, place);
        steps[s].is_alike = steps[s].dur_ns != LAC_UNKNOWN_NS && are_alike(search, s, place);
        int64_t seen_ns = shown->last_end_ns - steps[s].start_ns;
        end_ns = steps[s].start_ns + (steps[s].dur_ns != LAC_UNKNOWN_NS ? steps[s].dur_ns
                                      : seen_ns > 0                     ? seen_ns
                                                                        : 0);
        steps[s].end_ns = end_ns;
    }
    for (uint32_t s = count - 1; s > 0;
         s--) { /* before the first with kernels: where that begins */
        if (steps[s - 1].start_ns == LAC_UNKNOWN_NS) {
            steps[s - 1].start_ns = steps[s - 1].end_ns = steps[s].start_ns;
        }
    }
    return before_ns != LAC_UNKNOWN_NS ? before_ns : 0;
}

/** Time from a step's last launch to its mark's end in which it does not wait for data. */
static int64_t tail_ns(const struct search *search, uint32_t step)
{
    const struct lac_facts *facts = search->facts;
    const struct lac_step *at = &facts->analysis->steps[step];
    int64_t end_ns = at->start_ns + at->dur_ns;
    int64_t from_ns = search->shown[step].last_launch_ns;
    return end_ns - from_ns -
           (lac_spans_length_up_to(&facts->waits, search->wait_sums, end_ns) -
            lac_spans_length_up_to(&facts->waits, search->wait_sums, from_ns));
}

static bool is_last_late(const struct search *search)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    uint32_t last = analysis->step_count - 1;
    uint32_t count = 0;
    int64_t usual_ns = 0;
    for (uint32_t s = 0; s < last; s++) {
        if (search->shown[s].count > 0) {
            search->scratch[count++] = tail_ns(search, s);
        }
    }
    if (count < 2 || search->shown[last].count == 0) { /* one tells nothing of what is usual */
        return false;
    }
    usual_ns = median(search->scratch, count);
    int64_t longest_ns = search->scratch[count - 1];
    for (uint32_t s = 0; s < last; s++) {
        search->scratch[s] = analysis->steps[s].dur_ns;
    }
    double step_ns = (double)median(search->scratch, last);
    double late_ns = (double)(tail_ns(search, last) - usual_ns);
    return late_ns > LATE_MARK_MIN * step_ns && tail_ns(search, last) > longest_ns;
}

/** One step has no next one: it takes as long as what it launched, where its mark ended before. */
static void put_single(const struct search *search, struct lac_paced_step *step)
{
    const struct shown *shown = &search->shown[0];
    *step = (struct lac_paced_step){.start_ns = shown->first_ns,
                                    .end_ns = shown->last_end_ns,
                                    .dur_ns = shown->last_end_ns - shown->first_ns,
                                    .first_ns = shown->first_ns,
                                    .busy_ns = shown->busy_ns,
                                    .is_alike = true};
}

static enum lac_status put_paced(struct search *search, struct lac_sequence sequence,
                                 struct lac_pace *pace)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    pace->steps = calloc(analysis->step_count, sizeof(*pace->steps));
    if (pace->steps == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (search->step_count == 1) {
        put_single(search, pace->steps);
        return LAC_OK;
    }
    search->place_count =
        search->usual_count < PLACES_MAX ? (uint32_t)search->usual_count : PLACES_MAX;
    /* half of the steps have that many kernels or more: two numbers a kernel at most */
    search->start_ns =
        calloc((size_t)search->step_count * search->place_count, sizeof(*search->start_ns));
    if (search->start_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    read_places(search, sequence);
    uint32_t place = 0;
    if (choose_place(search, &place)) {
        pace->place_ns = put_steps(search, place, pace->steps);
    } else if (analysis->step_count == 1) { /* nothing follows its mark */
        put_single(search, pace->steps);
    } else {
        free(pace->steps);
        pace->steps = NULL;
    }
    return LAC_OK;
}

static enum lac_status measure(struct search *search, struct lac_sequence sequence,
                               struct lac_pace *pace)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    count_kernels(search, sequence);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        search->scratch[s] = (int64_t)search->shown[s].count;
    }
    search->usual_count = (uint64_t)median(search->scratch, analysis->step_count);
    if (search->usual_count == 0) {
        return LAC_OK;
    }
    pace->is_last_late = is_last_late(search);
    return put_paced(search, sequence, pace);
}

/** Waiting for data in which the device was idle. */
static enum lac_status measure_starved(struct lac_facts *facts, const struct lac_pace *pace)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_paced_step *steps = pace->steps;
    struct lac_spans starved = {0};
    enum lac_status status = lac_spans_intersect(
        &facts->waits, &facts->device_sets[analysis->main_device].idle, &starved);
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        steps[s].starved_ns = lac_spans_length_inside(&starved, steps[s].start_ns + pace->place_ns,
                                                      steps[s].end_ns + pace->place_ns);
    }
    lac_spans_done(&starved);
    return status;
}

/** Whether steps lie between marks, so that another one may begin with the last mark. */
static bool are_between_marks(const struct lac_analysis *analysis)
{
    return strcmp(analysis->step_method, "dataloader") == 0 ||
           strcmp(analysis->step_method, "optimizer") == 0;
}

enum lac_status lac_pace_measure(struct lac_facts *facts, struct lac_pace *ret_pace)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_sequence sequence;
    *ret_pace = (struct lac_pace){0};
    if (facts->has_device_steps || !facts->has_api || analysis->step_count < 1 ||
        !lac_sequence_begin(facts, &sequence)) {
        return LAC_OK;
    }
    uint32_t count = analysis->step_count + are_between_marks(analysis);
    struct search search = {.facts = facts,
                            .step_count = count,
                            .shown = calloc(count, sizeof(*search.shown)),
                            .scratch = calloc(count, sizeof(*search.scratch)),
                            .wait_sums = lac_spans_prefix(&facts->waits)};
    enum lac_status status = LAC_ERR_NOMEM;
    if (search.shown != NULL && search.scratch != NULL && search.wait_sums != NULL) {
        status = measure(&search, sequence, ret_pace);
    }
    if (!status && ret_pace->steps != NULL) {
        status = measure_starved(facts, ret_pace);
    }
    if (status) {
        free(ret_pace->steps);
        ret_pace->steps = NULL;
    }
    free(search.shown);
    free(search.start_ns);
    free(search.scratch);
    free(search.wait_sums);
    return status;
}
