/* Steps as the device takes them (step_pace.h). */

#include "analysis/diagnose/steps/step_pace.h"

#include "analysis/diagnose/steps/step_sequence.h"

#include <stdint.h>
#include <stdlib.h>

enum { PLACES_MAX = 32 }; /* of a step that are looked at, evenly over its kernels */

/** What the kernels of one step show. */
struct shown {
    uint64_t count;
    int64_t first_ns, last_end_ns; /* on the device */
    int64_t last_launch_ns;        /* by the host */
};

struct search {
    struct lac_facts *facts;
    struct shown *shown; /* by step */
    int64_t *start_ns;   /* by step and place; LAC_UNKNOWN_NS: it has none there */
    int64_t *scratch;    /* a number a step */
    int64_t *wait_sums;  /* of the waits for data */
    uint32_t place_count;
    uint64_t usual_count; /* kernels of a step */
    uint32_t from, to;    /* steps with a kernel at the chosen place: [from, to] */
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t median(int64_t *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[(count - 1) / 2];
}

/** The next computing kernel of the stream that was launched in a step; false at the end. */
static bool next_kernel(const struct lac_facts *facts, struct lac_sequence *sequence,
                        uint32_t *step, uint64_t *ret_slice)
{
    const struct lac_analysis *analysis = facts->analysis;
    while (lac_sequence_next(sequence, ret_slice)) {
        uint32_t call = sequence->slices->link[*ret_slice];
        if (call == LAC_NONE || lac_kernel_class_of(facts, *ret_slice)->is_comm) {
            continue;
        }
        int64_t launched_ns = sequence->slices->start_ns[call];
        uint32_t at = lac_step_at(analysis, launched_ns, *step);
        if (at != LAC_NONE &&
            launched_ns < analysis->steps[at].start_ns + analysis->steps[at].dur_ns) {
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
    while (next_kernel(search->facts, &sequence, &step, &slice)) {
        struct shown *shown = &search->shown[step];
        int64_t launched_ns = slices->start_ns[slices->link[slice]];
        int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
        shown->first_ns = shown->count++ == 0 ? slices->start_ns[slice] : shown->first_ns;
        shown->last_end_ns = end_ns > shown->last_end_ns ? end_ns : shown->last_end_ns;
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
    const struct lac_analysis *analysis = search->facts->analysis;
    uint64_t cells = (uint64_t)analysis->step_count * search->place_count;
    for (uint64_t i = 0; i < cells; i++) {
        search->start_ns[i] = LAC_UNKNOWN_NS;
    }
    uint32_t step = 0;
    uint32_t before = LAC_NONE;
    uint64_t number = 0;
    uint32_t place = 0;
    uint64_t slice = 0;
    while (next_kernel(search->facts, &sequence, &step, &slice)) {
        if (step != before) { /* kernels of a stream start in the order of their launches */
            number = 0;
            place = 0;
            before = step;
        }
        for (; place < search->place_count && kernel_at(search, place) == number; place++) {
            search->start_ns[(uint64_t)step * search->place_count + place] =
                sequence.slices->start_ns[slice];
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
    const int64_t *here = &search->start_ns[(uint64_t)step * search->place_count + place];
    int64_t next_ns = here[search->place_count];
    return *here == LAC_UNKNOWN_NS || next_ns == LAC_UNKNOWN_NS || next_ns < *here
               ? LAC_UNKNOWN_NS
               : next_ns - *here;
}

/** How far a place's distances lie from the median over all, summed; fewer distances come last. */
static void weigh_places(const struct search *search, uint32_t *known, double *off_ns)
{
    uint32_t step_count = search->facts->analysis->step_count;
    for (uint32_t s = 0; s + 1 < step_count; s++) {
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

/** The place that serves all steps; steps without a kernel there may only lie at the ends. */
static bool choose_place(struct search *search, uint32_t *ret_place)
{
    uint32_t known[PLACES_MAX] = {0};
    double off_ns[PLACES_MAX] = {0.0};
    weigh_places(search, known, off_ns);
    uint32_t best = 0;
    for (uint32_t place = 1; place < search->place_count; place++) {
        bool is_closer = known[place] == known[best] && off_ns[place] < off_ns[best];
        best = known[place] > known[best] || is_closer ? place : best;
    }
    uint32_t step_count = search->facts->analysis->step_count;
    const int64_t *at = &search->start_ns[best];
    search->from = 0;
    while (search->from < step_count &&
           at[(uint64_t)search->from * search->place_count] == LAC_UNKNOWN_NS) {
        search->from++;
    }
    search->to = search->from;
    while (search->to + 1 < step_count && distance_ns(search, search->to, best) != LAC_UNKNOWN_NS) {
        search->to++;
    }
    *ret_place = best;
    return known[best] > 0 && known[best] == search->to - search->from;
}

/** Steps from the first kernel of the first one on; before it and from the last one on unknown. */
static void put_steps(const struct search *search, uint32_t place, struct lac_paced_step *steps)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    uint64_t first = (uint64_t)search->from * search->place_count + place;
    int64_t before_ns = search->start_ns[first] - search->shown[search->from].first_ns;
    int64_t end_ns = search->shown[search->from].first_ns;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        bool is_known = s >= search->from && s < search->to;
        if (!is_known) {
            steps[s] = (struct lac_paced_step){.start_ns = end_ns, .dur_ns = LAC_UNKNOWN_NS};
            continue;
        }
        uint64_t here = (uint64_t)s * search->place_count + place;
        steps[s] = (struct lac_paced_step){.start_ns = search->start_ns[here] - before_ns,
                                           .dur_ns = distance_ns(search, s, place),
                                           .first_ns = search->shown[s].first_ns,
                                           .is_alike = has_kernel_at(search, s, place) &&
                                                       has_kernel_at(search, s + 1, place)};
        end_ns = steps[s].start_ns + steps[s].dur_ns;
    }
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
    search->place_count =
        search->usual_count < PLACES_MAX ? (uint32_t)search->usual_count : PLACES_MAX;
    /* half of the steps have that many kernels or more: two numbers a kernel at most */
    search->start_ns =
        calloc((size_t)analysis->step_count * search->place_count, sizeof(*search->start_ns));
    pace->steps = calloc(analysis->step_count, sizeof(*pace->steps));
    if (search->start_ns == NULL || pace->steps == NULL) {
        return LAC_ERR_NOMEM;
    }
    read_places(search, sequence);
    uint32_t place = 0;
    if (!choose_place(search, &place)) {
        free(pace->steps);
        pace->steps = NULL;
        return LAC_OK;
    }
    put_steps(search, place, pace->steps);
    return LAC_OK;
}

/** Waiting for data in which the device was idle. */
static enum lac_status measure_starved(struct lac_facts *facts, struct lac_paced_step *steps)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_spans starved = {0};
    enum lac_status status = lac_spans_intersect(
        &facts->waits, &facts->device_sets[analysis->main_device].idle, &starved);
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        if (steps[s].dur_ns != LAC_UNKNOWN_NS) {
            steps[s].starved_ns = lac_spans_length_inside(&starved, steps[s].start_ns,
                                                          steps[s].start_ns + steps[s].dur_ns);
        }
    }
    lac_spans_done(&starved);
    return status;
}

enum lac_status lac_pace_measure(struct lac_facts *facts, struct lac_pace *ret_pace)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_sequence sequence;
    *ret_pace = (struct lac_pace){0};
    if (facts->has_device_steps || !facts->has_api || analysis->step_count < 2 ||
        !lac_sequence_begin(facts, &sequence)) {
        return LAC_OK;
    }
    struct search search = {.facts = facts,
                            .shown = calloc(analysis->step_count, sizeof(*search.shown)),
                            .scratch = calloc(analysis->step_count, sizeof(*search.scratch)),
                            .wait_sums = lac_spans_prefix(&facts->waits)};
    enum lac_status status = LAC_ERR_NOMEM;
    if (search.shown != NULL && search.scratch != NULL && search.wait_sums != NULL) {
        status = measure(&search, sequence, ret_pace);
    }
    if (!status && ret_pace->steps != NULL) {
        status = measure_starved(facts, ret_pace->steps);
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
