#include "analysis/model/model.h"
#include "collector/base/reserve.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 256 };

void lac_name_totals_done(struct lac_name_totals *totals)
{
    free(totals->rows);
    free(totals->slots);
    *totals = (struct lac_name_totals){0};
}

void lac_name_totals_clear(struct lac_name_totals *totals)
{
    totals->count = 0;
    if (totals->slots != NULL) {
        memset(totals->slots, 0, (size_t)totals->slot_count * sizeof(*totals->slots));
    }
}

/** Ids of names are dense, so the high bits of a product spread them. */
static uint32_t slot_of(const struct lac_name_totals *totals, uint32_t name, uint8_t kind)
{
    const uint64_t product =
        ((uint64_t)name * LAC_SLICE_KIND_COUNT_ + kind) * UINT64_C(0x9E3779B97F4A7C15);

    return (uint32_t)(product >> 32) & (totals->slot_count - 1);
}

static bool grow_slots(struct lac_name_totals *totals)
{
    const uint32_t count = totals->slot_count > 0 ? totals->slot_count * 2 : SLOTS_MIN;
    uint32_t *slots = count > totals->slot_count ? calloc(count, sizeof(*slots)) : NULL;

    if (slots == NULL) {
        return false;
    }
    free(totals->slots);
    totals->slots = slots;
    totals->slot_count = count;
    for (uint32_t r = 0; r < totals->count; r++) {
        uint32_t s = slot_of(totals, totals->rows[r].name, totals->rows[r].kind);

        while (slots[s] != 0) {
            s = (s + 1) & (count - 1);
        }
        slots[s] = r + 1;
    }
    return true;
}

/** The row of a name and kind, made when there is none; NULL when out of memory. */
static struct lac_area_name *row_of(struct lac_name_totals *totals, uint32_t name, uint8_t kind)
{
    uint32_t s;

    if (totals->count >= totals->slot_count / 2 && !grow_slots(totals)) {
        return NULL;
    }
    s = slot_of(totals, name, kind);
    while (totals->slots[s] != 0) {
        struct lac_area_name *row = &totals->rows[totals->slots[s] - 1];

        if (row->name == name && row->kind == kind) {
            return row;
        }
        s = (s + 1) & (totals->slot_count - 1);
    }
    if (!LAC_RESERVE(totals->rows, totals->capacity, totals->count, 1)) {
        return NULL;
    }
    totals->rows[totals->count] =
        (struct lac_area_name){.name = name, .kind = kind, .max_ns = -1, .longest = LAC_NONE};
    totals->slots[s] = totals->count + 1;
    return &totals->rows[totals->count++];
}

static int64_t add_ns(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum)) {
        return a < 0 ? INT64_MIN : INT64_MAX; /* 2^31 slices of 100 days: a hostile file */
    }
    return sum;
}

bool lac_name_totals_add(struct lac_name_totals *totals, const struct lac_area_name *row)
{
    struct lac_area_name *into = row_of(totals, row->name, row->kind);

    if (into == NULL) {
        return false;
    }
    into->count += row->count;
    into->total_ns = add_ns(into->total_ns, row->total_ns);
    into->self_ns = add_ns(into->self_ns, row->self_ns);
    /* of equally long ones the first, in whatever order they come */
    if (row->max_ns > into->max_ns ||
        (row->max_ns == into->max_ns && row->longest < into->longest)) {
        into->max_ns = row->max_ns;
        into->longest = row->longest;
    }
    return true;
}

/** Take a child's time from the innermost slice around it. @return false when out of memory */
static bool take_from_parent(struct lac_name_totals *totals, const struct lac_open_slice *open,
                             uint32_t lane, int64_t end_ns, int64_t inside_ns)
{
    for (uint32_t l = lane; l > 0; l--) {
        const struct lac_open_slice *around = &open[l - 1];
        struct lac_area_name *row;

        if (around->end_ns < end_ns) {
            continue;
        }
        row = row_of(totals, around->name, around->kind);
        if (row != NULL) {
            row->self_ns = add_ns(row->self_ns, -inside_ns);
        }
        return row != NULL;
    }
    return true;
}

bool lac_name_totals_count(struct lac_name_totals *totals, const struct lac_totals_part *part)
{
    const struct lac_slices *at = part->at;

    assert(part->t0_ns <= part->t1_ns);
    for (uint64_t i = 0; i < at->count && at->start_ns[i] < part->t1_ns; i++) {
        const int64_t start_ns = at->start_ns[i];
        const int64_t end_ns = start_ns + at->dur_ns[i];
        const int64_t from_ns = start_ns > part->t0_ns ? start_ns : part->t0_ns;
        const int64_t inside_ns = (end_ns < part->t1_ns ? end_ns : part->t1_ns) - from_ns;

        if (part->open != NULL) {
            part->open[at->lane[i]] = (struct lac_open_slice){end_ns, at->name[i], at->kind[i]};
        }
        if (inside_ns > 0 || (inside_ns == 0 && start_ns == end_ns)) {
            const struct lac_area_name row = {.name = at->name[i],
                                              .kind = at->kind[i],
                                              .count = 1,
                                              .total_ns = inside_ns,
                                              .self_ns = inside_ns,
                                              .max_ns = inside_ns,
                                              .longest = (uint32_t)(part->first + i)};

            if (!lac_name_totals_add(totals, &row) ||
                (part->open != NULL && inside_ns > 0 &&
                 !take_from_parent(totals, part->open, at->lane[i], end_ns, inside_ns))) {
                return false;
            }
        }
    }
    return true;
}
