#include "server/tables/groups.h"

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"
#include "server/tables/trace_tables.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLOTS_FIRST = 1024 };

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static uint64_t hash_key(const struct lac_group_key *key)
{
    return mix(mix(mix(mix(1, key->name), key->op), key->track), (uint64_t)key->other);
}

enum lac_status lac_groups_init(struct lac_groups *groups)
{
    *groups = (struct lac_groups){
        .slot_count = SLOTS_FIRST, .value_slots = SLOTS_FIRST, .has_values = true};
    groups->slots = calloc(SLOTS_FIRST, sizeof(*groups->slots));
    groups->values = calloc(SLOTS_FIRST, sizeof(*groups->values));
    return groups->slots != NULL && groups->values != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

void lac_groups_done(struct lac_groups *groups)
{
    free(groups->all);
    free(groups->slots);
    free(groups->values);
    *groups = (struct lac_groups){0};
}

static bool is_same(const struct lac_group_key *a, const struct lac_group_key *b)
{
    return a->name == b->name && a->op == b->op && a->track == b->track && a->other == b->other;
}

/** The slot of a key: its own, or the free one where it belongs. */
static uint32_t slot_of(const struct lac_groups *groups, const struct lac_group_key *key)
{
    uint32_t slot = (uint32_t)hash_key(key) & (groups->slot_count - 1);

    while (groups->slots[slot] != 0 && !is_same(&groups->all[groups->slots[slot] - 1].key, key)) {
        slot = (slot + 1) & (groups->slot_count - 1);
    }
    return slot;
}

static bool grow_slots(struct lac_groups *groups)
{
    uint32_t *slots;

    if (groups->slot_count > UINT32_MAX / 4) {
        return false;
    }
    slots = calloc((size_t)groups->slot_count * 2, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    free(groups->slots);
    groups->slots = slots;
    groups->slot_count *= 2;
    for (uint32_t g = 0; g < groups->count; g++) {
        slots[slot_of(groups, &groups->all[g].key)] = g + 1;
    }
    return true;
}

uint32_t lac_groups_find(struct lac_groups *groups, const struct lac_group_key *key)
{
    uint32_t slot = slot_of(groups, key);

    if (groups->slots[slot] != 0) {
        return groups->slots[slot] - 1;
    }
    if (groups->count >= groups->slot_count / 2) {
        if (!grow_slots(groups)) {
            return LAC_NONE;
        }
        slot = slot_of(groups, key);
    }
    if (!LAC_RESERVE(groups->all, groups->capacity, groups->count, 1)) {
        return LAC_NONE;
    }
    groups->all[groups->count] =
        (struct lac_group){.key = *key, .min_ns = INT64_MAX, .max_ns = -1, .longest = LAC_NONE};
    groups->slots[slot] = groups->count + 1;
    return groups->count++;
}

static uint64_t value_slot(const struct lac_group_value *values, uint64_t slots, uint32_t group,
                           int64_t ns)
{
    uint64_t slot = mix(mix(1, group), (uint64_t)ns) & (slots - 1);

    while (values[slot].group_plus_one != 0 &&
           (values[slot].group_plus_one != group + 1 || values[slot].ns != ns)) {
        slot = (slot + 1) & (slots - 1);
    }
    return slot;
}

static bool grow_values(struct lac_groups *groups)
{
    const uint64_t slots = groups->value_slots * 2;
    struct lac_group_value *values = calloc(slots, sizeof(*values));

    if (values == NULL) {
        return false;
    }
    for (uint64_t v = 0; v < groups->value_slots; v++) {
        const struct lac_group_value *value = &groups->values[v];

        if (value->group_plus_one != 0) {
            values[value_slot(values, slots, value->group_plus_one - 1, value->ns)] = *value;
        }
    }
    free(groups->values);
    groups->values = values;
    groups->value_slots = slots;
    return true;
}

static enum lac_status add_value(struct lac_groups *groups, uint32_t group, int64_t ns)
{
    uint64_t slot = value_slot(groups->values, groups->value_slots, group, ns);

    if (groups->values[slot].group_plus_one == 0) {
        if (groups->value_count >= LAC_TABLE_VALUES_MAX) {
            groups->has_values = false;
            return LAC_OK;
        }
        if (groups->value_count >= groups->value_slots / 4 * 3) {
            if (!grow_values(groups)) {
                return LAC_ERR_NOMEM;
            }
            slot = value_slot(groups->values, groups->value_slots, group, ns);
        }
        groups->values[slot] = (struct lac_group_value){.ns = ns, .group_plus_one = group + 1};
        groups->value_count++;
    }
    groups->values[slot].count++;
    return LAC_OK;
}

static int64_t add_ns(int64_t a, int64_t b)
{
    int64_t sum;

    /* 2^31 slices of 100 days: a hostile file */
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

enum lac_status lac_groups_add(struct lac_groups *groups, uint32_t group, int64_t ns,
                               uint32_t slice)
{
    assert(group < groups->count && ns >= 0);
    struct lac_group *of = &groups->all[group];

    of->count++;
    of->total_ns = add_ns(of->total_ns, ns);
    of->self_ns = add_ns(of->self_ns, ns);
    of->min_ns = ns < of->min_ns ? ns : of->min_ns;
    if (ns > of->max_ns) {
        of->max_ns = ns;
        of->longest = slice;
    }
    return groups->has_values ? add_value(groups, group, ns) : LAC_OK;
}

/* -- spreads --------------------------------------------------------------------------------- */

static int by_group(const void *left, const void *right)
{
    const struct lac_group_value *a = left;
    const struct lac_group_value *b = right;

    if (a->group_plus_one != b->group_plus_one) {
        return a->group_plus_one < b->group_plus_one ? -1 : 1;
    }
    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int by_ns(const void *left, const void *right)
{
    const struct lac_group_value *a = left;
    const struct lac_group_value *b = right;

    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/** Of values in ascending order that are not empty. */
static void spread_of(const struct lac_group_value *values, uint64_t count,
                      struct lac_spread *spread)
{
    const int64_t min_ns = values[0].ns;
    const double width_ns =
        ((double)values[count - 1].ns - (double)min_ns) / (double)LAC_TABLE_BINS;
    uint64_t all = 0;
    uint64_t seen = 0;

    for (uint64_t v = 0; v < count; v++) {
        all += values[v].count;
    }
    const uint64_t rank50 = (all + 1) / 2;
    const uint64_t rank95 = all - all / 20; /* the smallest rank of at least 95 % */

    *spread = (struct lac_spread){0};
    for (uint64_t v = 0; v < count; v++) {
        const uint64_t after = seen + values[v].count;
        unsigned bin = width_ns > 0 ? (unsigned)((double)(values[v].ns - min_ns) / width_ns) : 0;

        if (seen < rank50 && rank50 <= after) {
            spread->p50_ns = values[v].ns;
        }
        if (seen < rank95 && rank95 <= after) {
            spread->p95_ns = values[v].ns;
        }
        bin = bin < LAC_TABLE_BINS ? bin : LAC_TABLE_BINS - 1;
        spread->bins[bin] += values[v].count;
        seen = after;
    }
}

void lac_groups_spread(struct lac_groups *groups, struct lac_spread *spreads)
{
    struct lac_group_value *values = groups->values;
    uint64_t count = 0;

    for (uint64_t v = 0; v < groups->value_slots; v++) {
        if (values[v].group_plus_one != 0 &&
            !groups->all[values[v].group_plus_one - 1].is_left_out) {
            values[count++] = values[v];
        }
    }
    qsort(values, count, sizeof(*values), by_group);
    for (uint64_t first = 0, end = 0; first < count; first = end) {
        while (end < count && values[end].group_plus_one == values[first].group_plus_one) {
            end++;
        }
        spread_of(&values[first], end - first, &spreads[values[first].group_plus_one - 1]);
    }
    if (count > 0) {
        qsort(values, count, sizeof(*values), by_ns);
        spread_of(values, count, &spreads[groups->count]);
    }
    groups->value_count = 0;
}
