/*
 * Steps without any name: the longest repeating unit of the kernels of one stream.
 *
 * Runs of k kernels (k = 1, 2, 4, ...) get a number each, equal runs the same one: a run twice as
 * long is a pair of two. A run that comes back after nearly the same number of kernels is an
 * anchor, and that number its period. Layers come back as well, and so do micro-steps, but they
 * leave something over between their repetitions: what is before the first layer, the loss, the
 * update of the parameters. The shortest period that leaves next to nothing over is the step.
 */

#include "analysis/diagnose/steps/step_sequence.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_MAX = 1 << 18, /* kernels that are searched; steps are then found in all */
    RUN_MAX = 1 << 10,    /* kernels of the longest run */
    PERIODS_MAX = 64,     /* different periods that are weighed */
    KERNELS_SURE = 8,     /* a unit this long is no accident; shorter ones have to come in time */
};

#define LEFT_OVER_SLACK                                                                            \
    0.005 /* of the kernels: what a period may leave over more than the best                       \
           */

/** What is searched. */
struct window {
    uint32_t *symbol; /* string id of the kernel */
    int64_t *start_ns, *before_end_ns;
    uint32_t count;
};

/** What is known of one run of kernels; period and votes by majority. */
struct run {
    uint32_t first, last, count;
    uint32_t period, votes;
    uint32_t regular;
    uint64_t regular_kernels, left_kernels;
    double gap_ns;
    double time_sum, time_squares; /* of regular periods */
};

/** The runs of one length. */
struct runs {
    uint32_t *id;    /* by position */
    uint32_t *next;  /* scratch */
    struct run *at;  /* by id */
    uint32_t *table; /* hash of a pair -> id + 1 */
    uint64_t *pair;  /* by id */
    uint32_t count;
    uint32_t table_mask;
};

/* -- numbers for runs -------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint32_t number_of(struct runs *runs, uint64_t pair)
{
    uint32_t slot = (uint32_t)mixed(pair) & runs->table_mask;
    while (runs->table[slot] != 0) {
        if (runs->pair[runs->table[slot] - 1] == pair) {
            return runs->table[slot] - 1;
        }
        slot = (slot + 1) & runs->table_mask;
    }
    runs->pair[runs->count] = pair;
    runs->table[slot] = ++runs->count;
    return runs->count - 1;
}

/** Numbers for runs of `length` kernels from those of half that length (from symbols for 1). */
static uint32_t number_runs(struct runs *runs, const struct window *window, uint32_t length)
{
    runs->count = 0;
    memset(runs->table, 0, ((size_t)runs->table_mask + 1) * sizeof(*runs->table));
    uint32_t positions = window->count - length + 1;
    for (uint32_t i = 0; i < positions; i++) {
        uint64_t pair = length == 1 ? window->symbol[i]
                                    : (uint64_t)runs->id[i] << 32 | runs->id[i + length / 2];
        runs->next[i] = number_of(runs, pair);
    }
    uint32_t *swapped = runs->id;
    runs->id = runs->next;
    runs->next = swapped;
    return positions;
}

/* -- which runs are anchors -------------------------------------------------------------------- */

static bool is_near(uint32_t distance, uint32_t period)
{
    uint32_t off = distance > period ? distance - period : period - distance;
    return off <= period / 20;
}

static void measure_runs(struct runs *runs, const struct window *window, uint32_t positions)
{
    memset(runs->at, 0, runs->count * sizeof(*runs->at));
    for (uint32_t i = 0; i < positions; i++) { /* the usual distance, by majority */
        struct run *run = &runs->at[runs->id[i]];
        if (run->count == 0) {
            run->first = i;
        } else {
            uint32_t distance = i - run->last;
            if (run->votes == 0) {
                run->period = distance;
            }
            run->votes = is_near(distance, run->period) ? run->votes + 1 : run->votes - 1;
        }
        run->last = i;
        run->count++;
    }
    for (uint32_t i = 0; i < positions; i++) { /* how far it holds */
        struct run *run = &runs->at[runs->id[i]];
        run->gap_ns += (double)(window->start_ns[i] - window->before_end_ns[i]);
        uint32_t distance = i - run->last;
        if (i > run->first && !is_near(distance, run->period)) { /* late: less one; early: all */
            run->left_kernels += distance > run->period ? distance - run->period : distance;
        } else if (i > run->first) {
            double time_ns = (double)(window->start_ns[i] - window->start_ns[run->last]);
            run->regular++;
            run->regular_kernels += distance;
            run->time_sum += time_ns;
            run->time_squares += time_ns * time_ns;
        }
        run->last = i;
    }
}

/** An anchor comes back in most cases after its period, and that makes most of the window. */
static bool is_anchor(const struct run *run, const struct window *window)
{
    if (run->count < STEPS_MIN + 1 || run->period < 2 ||
        (uint64_t)run->regular * 5 < (uint64_t)(run->count - 1) * 4 ||
        run->regular_kernels * 2 < window->count) {
        return false;
    }
    double mean = run->time_sum / run->regular;
    double variance = run->time_squares / run->regular - mean * mean;
    return run->period >= KERNELS_SURE || variance < PERIOD_VARIANCE_MAX * mean * mean;
}

/** Share of the kernels between first and last that is in no unit: what a repetition that comes
 * late has more than one, and all of one that comes early. */
static double left_over(const struct run *run)
{
    uint32_t all = run->last - run->first;
    return all == 0 ? 0.0 : (double)run->left_kernels / (double)all;
}

/** Whether a unit has more than one kind of kernel: a loop over one kernel has no steps. */
static bool is_varied(const struct window *window, const struct run *run)
{
    for (uint32_t i = run->first + 1; i < run->first + run->period && i < window->count; i++) {
        if (window->symbol[i] != window->symbol[run->first]) {
            return true;
        }
    }
    return false;
}

/** A unit that repeats. */
struct period {
    uint32_t kernels;               /**< of one unit */
    uint32_t anchor, anchor_length; /**< a run in the window that begins one */
    uint32_t count;                 /**< how often it came back in time */
    double gap_ns;                  /**< mean pause before the anchor */
    double left_over;               /**< share of the kernels that are in no unit */
};

/* -- the step ---------------------------------------------------------------------------------- */

struct candidates {
    struct period at[PERIODS_MAX];
    uint32_t count;
};

static void add_candidate(struct candidates *candidates, const struct period *period)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct period *known = &candidates->at[i];
        if (!is_near(period->kernels, known->kernels)) {
            continue;
        }
        /* least left over, then found most often, then the longest pause before it */
        bool is_better = period->left_over < known->left_over - LEFT_OVER_SLACK / 2.0 ||
                         (period->left_over < known->left_over + LEFT_OVER_SLACK / 2.0 &&
                          (period->count > known->count ||
                           (period->count == known->count && period->gap_ns > known->gap_ns)));
        if (is_better) {
            *known = *period;
        }
        return;
    }
    if (candidates->count < PERIODS_MAX) {
        candidates->at[candidates->count++] = *period;
    }
}

static void weigh_runs(const struct runs *runs, const struct window *window, uint32_t length,
                       struct candidates *candidates)
{
    for (uint32_t r = 0; r < runs->count; r++) {
        const struct run *run = &runs->at[r];
        if (is_anchor(run, window) && is_varied(window, run)) {
            struct period period = {.kernels = run->period,
                                    .anchor = run->first,
                                    .anchor_length = length,
                                    .count = run->regular,
                                    .gap_ns = run->gap_ns / run->count,
                                    .left_over = left_over(run)};
            add_candidate(candidates, &period);
        }
    }
}

/** The shortest of those that leave next to nothing over; *ret_period stays where there is none. */
static void choose(const struct candidates *candidates, struct period *ret_period)
{
    double least = 1.0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        least = fmin(least, candidates->at[i].left_over);
    }
    const struct period *chosen = NULL;
    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct period *at = &candidates->at[i];
        bool fits = at->left_over <= least + LEFT_OVER_SLACK;
        if (fits && (chosen == NULL || at->kernels < chosen->kernels)) {
            chosen = at;
        }
    }
    if (chosen != NULL) {
        *ret_period = *chosen;
    }
}

static enum lac_status search(const struct window *window, struct period *ret_period)
{
    uint32_t slots = 2;
    while (slots < 2 * window->count) {
        slots *= 2;
    }
    struct runs runs = {.id = malloc(window->count * sizeof(*runs.id)),
                        .next = malloc(window->count * sizeof(*runs.next)),
                        .at = malloc(window->count * sizeof(*runs.at)),
                        .pair = malloc(window->count * sizeof(*runs.pair)),
                        .table = malloc(slots * sizeof(*runs.table)),
                        .table_mask = slots - 1};
    enum lac_status status = LAC_ERR_NOMEM;
    if (runs.id != NULL && runs.next != NULL && runs.at != NULL && runs.pair != NULL &&
        runs.table != NULL) {
        status = LAC_OK;
        struct candidates candidates = {0};
        for (uint32_t length = 1; length <= RUN_MAX && length * STEPS_MIN < window->count;
             length *= 2) {
            uint32_t positions = number_runs(&runs, window, length);
            measure_runs(&runs, window, positions);
            weigh_runs(&runs, window, length, &candidates);
        }
        choose(&candidates, ret_period);
    }
    free(runs.id);
    free(runs.next);
    free(runs.at);
    free(runs.pair);
    free(runs.table);
    return status;
}

/* -- every step of the trace ------------------------------------------------------------------- */

/** For each length of a match, the longest shorter one that may go on (Knuth, Morris, Pratt). */
static void prepare_match(const uint32_t *anchor, uint32_t length, uint32_t *fall_back)
{
    fall_back[0] = 0;
    for (uint32_t i = 1; i < length; i++) {
        uint32_t matched = fall_back[i - 1];
        while (matched > 0 && anchor[i] != anchor[matched]) {
            matched = fall_back[matched - 1];
        }
        fall_back[i] = anchor[i] == anchor[matched] ? matched + 1 : 0;
    }
}

/** The anchor, wherever it is in the trace: a step from the end of the kernel before it to that
 *  before the next one. Anchors closer than half a period are of one step. */
static enum lac_status add_steps(struct lac_facts *facts, struct lac_sequence sequence,
                                 const uint32_t *anchor, const struct period *period)
{
    uint32_t fall_back[RUN_MAX] = {0};
    int64_t starts_ns[RUN_MAX] = {0}; /* end of the kernel before, of the last kernels */
    uint32_t length = period->anchor_length;
    prepare_match(anchor, length, fall_back);
    uint32_t matched = 0;
    uint64_t last = 0;
    int64_t last_ns = 0;
    uint64_t slice = 0;
    while (lac_sequence_next(&sequence, &slice)) {
        uint32_t symbol = sequence.slices->name[slice];
        starts_ns[sequence.count % RUN_MAX] = sequence.before_end_ns;
        while (matched > 0 && (matched == length || anchor[matched] != symbol)) {
            matched = fall_back[matched - 1];
        }
        matched = anchor[matched] == symbol ? matched + 1 : 0;
        uint64_t here = sequence.count - length + 1;
        if (matched < length || (last > 0 && (here - last) * 2 < period->kernels)) {
            continue;
        }
        int64_t here_ns = starts_ns[here % RUN_MAX];
        if (last > 0) {
            enum lac_status status = lac_steps_add(facts, last_ns, here_ns - last_ns, 0, LAC_NONE);
            if (status) {
                return status;
            }
        }
        last = here;
        last_ns = here_ns;
    }
    return LAC_OK;
}

static enum lac_status read_window(struct lac_sequence sequence, struct window *window)
{
    uint64_t most = sequence.end - sequence.at;
    most = most < WINDOW_MAX ? most : WINDOW_MAX;
    window->symbol = malloc(most * sizeof(*window->symbol));
    window->start_ns = malloc(most * sizeof(*window->start_ns));
    window->before_end_ns = malloc(most * sizeof(*window->before_end_ns));
    if (window->symbol == NULL || window->start_ns == NULL || !window->before_end_ns) {
        return LAC_ERR_NOMEM;
    }
    uint64_t slice = 0;
    while (window->count < most && lac_sequence_next(&sequence, &slice)) {
        window->symbol[window->count] = sequence.slices->name[slice];
        window->start_ns[window->count] = sequence.slices->start_ns[slice];
        window->before_end_ns[window->count++] = sequence.before_end_ns;
    }
    return LAC_OK;
}

enum lac_status lac_steps_by_period(struct lac_facts *facts)
{
    struct lac_sequence sequence;
    if (!lac_sequence_begin(facts, &sequence)) {
        return LAC_OK;
    }
    struct window window = {0};
    struct period period = {0};
    enum lac_status status = read_window(sequence, &window);
    if (!status && window.count > STEPS_MIN) {
        status = search(&window, &period);
    }
    if (!status && period.kernels > 0) {
        status = add_steps(facts, sequence, window.symbol + period.anchor, &period);
    }
    free(window.symbol);
    free(window.start_ns);
    free(window.before_end_ns);
    return status;
}
