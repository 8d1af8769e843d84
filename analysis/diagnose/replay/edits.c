/* Chosen slices with what a change does to them (edits.h). */

#include "analysis/diagnose/replay/edits.h"

#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_edits_destroy(struct lac_edits *edits)
{
    if (edits != NULL) {
        free(edits->marks);
        free(edits->stretches);
        free(edits);
    }
}

void lac_edits_window(const struct lac_facts *facts, int64_t *ret_start_ns, int64_t *ret_end_ns)
{
    const struct lac_graph *graph = facts->time != NULL ? facts->time->graph : NULL;
    *ret_start_ns = graph != NULL ? graph->start_ns : INT64_MIN;
    *ret_end_ns = graph != NULL ? graph->end_ns : INT64_MAX;
}

struct lac_edits *lac_edits_begin(const struct lac_facts *facts, enum lac_finding_kind kind)
{
    assert(facts != NULL && kind < LAC_FINDING_COUNT_);
    if (facts->time == NULL) {
        return NULL;
    }
    struct lac_edits **slot = &facts->time->edits[kind];
    lac_edits_destroy(*slot);
    *slot = calloc(1, sizeof(**slot));
    if (*slot != NULL) {
        (*slot)->model = facts->model;
        (*slot)->versions = &facts->time->edits_versions;
        lac_edits_window(facts, &(*slot)->start_ns, &(*slot)->end_ns);
    }
    return *slot;
}

struct lac_edits *lac_edits_of(const struct lac_facts *facts, enum lac_finding_kind kind)
{
    assert(facts != NULL && kind < LAC_FINDING_COUNT_);
    return facts->time != NULL ? facts->time->edits[kind] : NULL;
}

/** An edit that cannot be kept makes the others half of a change: none is made. */
static void lose(struct lac_edits *edits)
{
    edits->is_lost = true;
    edits->mark_count = 0;
    edits->stretch_count = 0;
}

static void mark(struct lac_edits *edits, uint64_t slice, enum lac_edit_kind kind, double factor,
                 uint32_t with)
{
    if (edits == NULL || edits->is_lost || slice >= edits->model->slices.count) {
        return;
    }
    int64_t start_ns = edits->model->slices.start_ns[slice];
    /* an operation of the window may begin after it, launched inside */
    bool is_outside =
        kind == LAC_EDIT_NO_WAIT && (start_ns < edits->start_ns || start_ns >= edits->end_ns);
    if (is_outside) {
        return;
    }
    if (!LAC_RESERVE(edits->marks, edits->mark_capacity, edits->mark_count, 1)) {
        lose(edits);
        return;
    }
    edits->marks[edits->mark_count++] =
        (struct lac_edit_mark){(uint32_t)slice, with, (float)factor, (uint8_t)kind};
    edits->is_sealed = false;
}

void lac_edits_host_time(struct lac_edits *edits, uint32_t track, int64_t start_ns, int64_t end_ns,
                         double factor)
{
    if (edits == NULL || edits->is_lost) {
        return;
    }
    start_ns = start_ns > edits->start_ns ? start_ns : edits->start_ns;
    end_ns = end_ns < edits->end_ns ? end_ns : edits->end_ns;
    if (start_ns >= end_ns) {
        return;
    }
    if (!LAC_RESERVE(edits->stretches, edits->stretch_capacity, edits->stretch_count, 1)) {
        lose(edits);
        return;
    }
    edits->stretches[edits->stretch_count++] =
        (struct lac_edit_stretch){start_ns, end_ns, 0.0, track, (float)factor};
    edits->is_sealed = false;
}

void lac_edits_host(struct lac_edits *edits, uint64_t slice, double factor)
{
    if (edits == NULL || slice >= edits->model->slices.count) {
        return;
    }
    const struct lac_slices *slices = &edits->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    lac_edits_host_time(edits, lac_model_track_of(edits->model, slice), start_ns,
                        start_ns + slices->dur_ns[slice], factor);
}

void lac_edits_no_wait(struct lac_edits *edits, uint64_t call)
{
    mark(edits, call, LAC_EDIT_NO_WAIT, 1.0, LAC_NONE);
}

void lac_edits_operation(struct lac_edits *edits, uint64_t operation, double factor)
{
    mark(edits, operation, LAC_EDIT_OPERATION, factor, LAC_NONE);
}

void lac_edits_launched_with(struct lac_edits *edits, uint64_t operation, uint64_t earlier)
{
    mark(edits, operation, LAC_EDIT_LAUNCHED_WITH, 1.0, (uint32_t)earlier);
}

void lac_edits_drop(struct lac_edits *edits, uint64_t call, uint64_t operation)
{
    lac_edits_host(edits, call, 0.0);
    lac_edits_no_wait(edits, call);
    if (operation != LAC_NONE) {
        lac_edits_operation(edits, operation, 0.0);
    }
}

/* -- in order ---------------------------------------------------------------------------------- */

static int by_slice(const void *a, const void *b)
{
    const struct lac_edit_mark *x = a;
    const struct lac_edit_mark *y = b;
    if (x->slice != y->slice) {
        return x->slice < y->slice ? -1 : 1;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->factor < y->factor || x->factor > y->factor) {
        return x->factor < y->factor ? -1 : 1;
    }
    return LAC_ORDER(x->with, y->with);
}

static int by_place(const void *a, const void *b)
{
    const struct lac_edit_stretch *x = a;
    const struct lac_edit_stretch *y = b;
    int order = LAC_ORDER(x->track, y->track);
    order = order != 0 ? order : LAC_ORDER(x->start_ns, y->start_ns);
    order = order != 0 ? order : LAC_ORDER(y->end_ns, x->end_ns);
    return order != 0 ? order : LAC_ORDER(x->factor, y->factor);
}

enum { NESTED_MAX = 64 };

/** Stretches of one thread made disjoint: where one lies in another, the smaller factor. */
struct flat {
    struct lac_edit_stretch *at;
    uint32_t count, capacity;
    bool has_failed;
};

static void put(struct flat *flat, const struct lac_edit_stretch *of, int64_t start_ns,
                int64_t end_ns, float factor)
{
    if (start_ns >= end_ns || flat->has_failed) {
        return;
    }
    flat->has_failed = !LAC_RESERVE(flat->at, flat->capacity, flat->count, 1);
    if (!flat->has_failed) {
        flat->at[flat->count++] =
            (struct lac_edit_stretch){start_ns, end_ns, 0.0, of->track, factor};
    }
}

/** The stretches under way, the innermost last. */
struct nest {
    const struct lac_edit_stretch *in[NESTED_MAX];
    float factor[NESTED_MAX];
    int64_t end_ns[NESTED_MAX];
    uint32_t depth;
    int64_t done_ns; /**< up to here all is put */
};

static void leave_until(struct flat *flat, struct nest *nest, int64_t until_ns)
{
    while (nest->depth > 0) {
        uint32_t top = nest->depth - 1;
        int64_t end_ns = nest->end_ns[top] < until_ns ? nest->end_ns[top] : until_ns;
        put(flat, nest->in[top], nest->done_ns, end_ns, nest->factor[top]);
        nest->done_ns = end_ns > nest->done_ns ? end_ns : nest->done_ns;
        if (nest->end_ns[top] > until_ns) {
            return;
        }
        nest->depth--;
    }
}

static void flatten(struct lac_edits *edits, struct flat *flat)
{
    struct nest nest = {.depth = 0};
    for (uint32_t i = 0; i < edits->stretch_count; i++) {
        const struct lac_edit_stretch *stretch = &edits->stretches[i];
        bool is_new_thread = i > 0 && stretch[-1].track != stretch->track;
        leave_until(flat, &nest, is_new_thread ? INT64_MAX : stretch->start_ns);
        if (nest.depth == NESTED_MAX) {
            continue;
        }
        bool is_inside = nest.depth > 0;
        int64_t end_ns = stretch->end_ns;
        float factor = stretch->factor;
        if (is_inside) { /* what sticks out of the one around it is cut */
            end_ns = end_ns < nest.end_ns[nest.depth - 1] ? end_ns : nest.end_ns[nest.depth - 1];
            factor = fminf(factor, nest.factor[nest.depth - 1]);
        }
        nest.in[nest.depth] = stretch;
        nest.factor[nest.depth] = factor;
        nest.end_ns[nest.depth++] = end_ns;
        nest.done_ns = stretch->start_ns;
    }
    leave_until(flat, &nest, INT64_MAX);
}

/** Of equal marks the first, which has the smallest factor. */
static void drop_repeated(struct lac_edits *edits)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < edits->mark_count; i++) {
        const struct lac_edit_mark *at = &edits->marks[i];
        bool is_repeated = kept > 0 && edits->marks[kept - 1].slice == at->slice &&
                           edits->marks[kept - 1].kind == at->kind;
        if (!is_repeated) {
            edits->marks[kept++] = *at;
        }
    }
    edits->mark_count = kept;
}

void lac_edits_seal(struct lac_edits *edits)
{
    if (edits->is_sealed) {
        return;
    }
    edits->version = ++*edits->versions;
    if (edits->mark_count > 1) {
        qsort(edits->marks, edits->mark_count, sizeof(*edits->marks), by_slice);
        drop_repeated(edits);
    }
    struct flat flat = {0};
    if (edits->stretch_count > 0) {
        qsort(edits->stretches, edits->stretch_count, sizeof(*edits->stretches), by_place);
        flatten(edits, &flat);
    }
    if (flat.has_failed) {
        free(flat.at);
        lose(edits);
        return;
    }
    double gone_ns = 0.0;
    for (uint32_t i = 0; i < flat.count; i++) {
        flat.at[i].gone_before_ns = gone_ns;
        gone_ns +=
            (1.0 - (double)flat.at[i].factor) * (double)(flat.at[i].end_ns - flat.at[i].start_ns);
    }
    free(edits->stretches);
    edits->stretches = flat.at;
    edits->stretch_count = flat.count;
    edits->stretch_capacity = flat.capacity;
    edits->is_sealed = true;
}

/* -- looked up --------------------------------------------------------------------------------- */

static bool is_mark_before(const struct lac_edit_mark *at, uint32_t slice, enum lac_edit_kind kind)
{
    return at->slice < slice || (at->slice == slice && at->kind < (uint8_t)kind);
}

const struct lac_edit_mark *lac_edits_mark(const struct lac_edits *edits, uint32_t slice,
                                           enum lac_edit_kind kind)
{
    uint32_t low = 0;
    LAC_BISECT(low, edits->mark_count, middle, is_mark_before(&edits->marks[middle], slice, kind));
    const struct lac_edit_mark *at = low < edits->mark_count ? &edits->marks[low] : NULL;
    return at != NULL && at->slice == slice && at->kind == (uint8_t)kind ? at : NULL;
}

static bool lies_before(const struct lac_edit_stretch *at, uint32_t track, int64_t at_ns)
{
    return at->track < track || (at->track == track && at->start_ns < at_ns);
}

/** Number of stretches that begin before `at_ns` of that track, those of tracks before it included; a
 *  few are looked at from `near` on. */
static uint32_t stretches_before(const struct lac_edits *edits, uint32_t near, uint32_t track,
                                 int64_t at_ns)
{
    enum { LOOKS = 8 };
    uint32_t low = 0;
    uint32_t high = edits->stretch_count;
    if (near <= high && (near == 0 || lies_before(&edits->stretches[near - 1], track, at_ns))) {
        low = near;
        for (uint32_t i = 0; i < LOOKS; i++) {
            if (low == high || !lies_before(&edits->stretches[low], track, at_ns)) {
                return low;
            }
            low++;
        }
    }
    LAC_BISECT(low, high, middle, lies_before(&edits->stretches[middle], track, at_ns));
    return low;
}

/** What is gone of all time before `at_ns` of that track, those of tracks before it included.
 *  @param near in: where to look first; out: where it was */
static double gone_before(const struct lac_edits *edits, uint32_t *near, uint32_t track,
                          int64_t at_ns)
{
    const uint32_t count = stretches_before(edits, *near, track, at_ns);
    *near = count;
    if (count == 0) {
        return 0.0;
    }
    const struct lac_edit_stretch *last = &edits->stretches[count - 1];
    bool is_cut = last->track == track && at_ns < last->end_ns;
    int64_t end_ns = is_cut ? at_ns : last->end_ns;
    return last->gone_before_ns + (1.0 - (double)last->factor) * (double)(end_ns - last->start_ns);
}

double lac_edits_gone_near(const struct lac_edits *edits, struct lac_edits_cursor *cursor,
                           uint32_t track, int64_t start_ns, int64_t end_ns)
{
    uint32_t *near = &cursor->at[track % (LAC_COUNT_OF(cursor->at))];
    if (edits->stretch_count == 0 || start_ns >= end_ns) {
        return 0.0;
    }
    const double before_start = gone_before(edits, near, track, start_ns);
    return gone_before(edits, near, track, end_ns) - before_start;
}

double lac_edits_gone_ns(const struct lac_edits *edits, uint32_t track, int64_t start_ns,
                         int64_t end_ns)
{
    struct lac_edits_cursor cursor = {{0}};
    return lac_edits_gone_near(edits, &cursor, track, start_ns, end_ns);
}
