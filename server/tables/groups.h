#ifndef LAC_SERVER_TABLES_GROUPS_H
#define LAC_SERVER_TABLES_GROUPS_H

/*
 * Slices counted into groups, with every different duration of each: percentiles and histograms
 * are those of a sort of all durations, at the memory of the different ones.
 */

#include "analysis/model/status.h"
#include "server/tables/trace_tables.h"

#include <stdbool.h>
#include <stdint.h>

/** What the slices of a group share; LAC_NONE and -1 where it is not asked for. */
struct lac_group_key {
    uint32_t name;
    uint32_t op;
    uint32_t track;
    int64_t other; /**< family, direction or size */
};

struct lac_group {
    struct lac_group_key key;
    /** Of the first; LAC_NONE in op and track where the slices have several. */
    uint32_t name, op, track;
    bool has_names, has_ops, has_tracks; /**< several */
    uint64_t count;
    int64_t total_ns, self_ns, min_ns, max_ns;
    int64_t bytes, timed_ns; /**< of those with bytes */
    uint64_t sized, released;
    uint32_t longest; /**< slice */
    bool is_left_out; /**< does not match the text */
};

/** A duration of a group and how many have it. */
struct lac_group_value {
    int64_t ns;
    uint32_t group_plus_one; /**< 0: a free slot */
    uint32_t count;
};

struct lac_groups {
    struct lac_group *all;
    uint32_t count, capacity;
    uint32_t *slots;
    uint32_t slot_count;
    struct lac_group_value *values;
    uint64_t value_count, value_slots;
    bool has_values; /**< not too many */
};

LAC_MUST_USE enum lac_status lac_groups_init(struct lac_groups *groups);
void lac_groups_done(struct lac_groups *groups);

/** Index of the group of `key`, made when there is none; LAC_NONE when out of memory. */
uint32_t lac_groups_find(struct lac_groups *groups, const struct lac_group_key *key);

/** Count one more slice of that length into a group. */
LAC_MUST_USE enum lac_status lac_groups_add(struct lac_groups *groups, uint32_t group, int64_t ns,
                                            uint32_t slice);

/** What the durations of one group, or of all together, say. */
struct lac_spread {
    int64_t p50_ns, p95_ns;
    uint32_t bins[LAC_TABLE_BINS];
};

/**
 * Spreads of all groups that are not left out, and of them together behind those. Uses up the
 * values.
 *
 * @param spreads room for count + 1
 */
void lac_groups_spread(struct lac_groups *groups, struct lac_spread *spreads);

#endif
