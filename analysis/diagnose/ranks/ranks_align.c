/* The ranks of a run on one clock, and the collectives in which they meet. */

#include "analysis/diagnose/ranks/ranks_align.h"

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "collector/base/order.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

/** The island that holds most ranks; the first of equals. */
static uint32_t largest_island(const uint32_t *island, uint32_t rank_count)
{
    uint32_t best = 0;
    uint32_t best_count = 0;
    for (uint32_t seed = 0; seed < rank_count; seed++) {
        uint32_t count = 0;
        for (uint32_t r = seed; r < rank_count && island[seed] == seed; r++) {
            count += island[r] == seed;
        }
        if (count > best_count) {
            best_count = count;
            best = seed;
        }
    }
    return best;
}

static void set_clocks(const struct lac_rank_match *match, struct lac_ranks_alignment *alignment)
{
    const uint32_t home = largest_island(match->island, alignment->rank_count);
    uint32_t here = 0;
    for (uint32_t r = 0; r < alignment->rank_count; r++) {
        here += match->island[r] == home;
    }
    for (uint32_t r = 0; r < alignment->rank_count; r++) {
        alignment->is_aligned[r] = here > 1 && match->island[r] == home;
        alignment->offset_ns[r] = alignment->is_aligned[r] ? match->offset_ns[r] : 0;
    }
}

/** The name of the row that holds a collective of a table. */
static const char *name_of(const struct lac_rank_table *table, uint64_t index)
{
    for (uint32_t row = 0; row < table->row_count; row++) {
        if (index - table->rows[row].first < table->rows[row].count) {
            return table->rows[row].name;
        }
    }
    return "";
}

static void fill(const struct lac_rank_table *const *tables, const struct lac_rank_match *match,
                 struct lac_ranks_alignment *alignment)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < match->instance_count; i++) {
        const struct lac_rank_instance *instance = &match->instances[i];
        const struct lac_rank_group *group = &match->groups[instance->group];
        const uint32_t leader = group->members[0];
        if (!alignment->is_aligned[leader]) {
            continue; /* on a clock of its own */
        }
        alignment->collectives[alignment->count++] = (struct lac_aligned_collective){
            .end_ns = instance->key_ns,
            .name = name_of(tables[leader], group->first[0] + instance->index),
            .kind = group->kind,
            .is_transfer = lac_rank_group_is_transfer(group),
            .first = at,
            .count = group->member_count};
        for (uint32_t m = 0; m < group->member_count; m++) {
            const struct lac_collective *it =
                lac_rank_collective(tables, group, m, instance->index);
            alignment->entries[at++] = (struct lac_aligned_entry){
                .rank = group->members[m], .start_ns = it->start_ns, .end_ns = it->end_ns};
        }
    }
}

static enum lac_status make_room(const struct lac_rank_match *match,
                                 struct lac_ranks_alignment *alignment)
{
    uint64_t entries = 0;
    for (uint32_t g = 0; g < match->group_count; g++) {
        entries += match->groups[g].count * match->groups[g].member_count;
    }
    alignment->offset_ns = calloc((size_t)alignment->rank_count + 1, sizeof(*alignment->offset_ns));
    alignment->is_aligned =
        calloc((size_t)alignment->rank_count + 1, sizeof(*alignment->is_aligned));
    alignment->collectives =
        calloc((size_t)match->instance_count + 1, sizeof(*alignment->collectives));
    alignment->entries = calloc((size_t)entries + 1, sizeof(*alignment->entries));
    return alignment->offset_ns != NULL && alignment->is_aligned != NULL &&
                   alignment->collectives != NULL && alignment->entries != NULL
               ? LAC_OK
               : LAC_ERR_NOMEM;
}

enum lac_status lac_ranks_align(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                struct lac_ranks_alignment *ret_alignment)
{
    assert((tables != NULL || rank_count == 0) && ret_alignment != NULL);
    struct lac_ranks_alignment alignment = {.rank_count = rank_count};
    struct lac_rank_match match = {0};
    bool *is_left_out = calloc((size_t)rank_count + 1, sizeof(*is_left_out));
    enum lac_status status = LAC_ERR_NOMEM;
    if (is_left_out != NULL) {
        lac_ranks_leave_out_doubles(tables, rank_count, is_left_out);
        status = lac_ranks_match(tables, rank_count, is_left_out, &match);
    }
    if (!status) {
        status = make_room(&match, &alignment);
    }
    if (!status) {
        set_clocks(&match, &alignment);
        fill(tables, &match, &alignment);
    }
    lac_rank_match_done(&match);
    free(is_left_out);
    if (status) {
        lac_ranks_alignment_done(&alignment);
        return status;
    }
    *ret_alignment = alignment;
    return LAC_OK;
}

void lac_ranks_alignment_done(struct lac_ranks_alignment *alignment)
{
    free(alignment->offset_ns);
    free(alignment->is_aligned);
    free(alignment->collectives);
    free(alignment->entries);
    *alignment = (struct lac_ranks_alignment){0};
}

static int by_size(const void *a, const void *b)
{
    return LAC_ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

struct lac_collective_arrival
lac_collective_arrival_of(const struct lac_ranks_alignment *alignment,
                          const struct lac_aligned_collective *collective)
{
    enum { OTHERS_MAX = 1024 };
    const struct lac_aligned_entry *entries = alignment->entries + collective->first;
    struct lac_collective_arrival arrival = {.last = entries[0].rank};
    int64_t shortest_ns = entries[0].end_ns - entries[0].start_ns;
    int64_t waits_ns[OTHERS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 1; i < collective->count; i++) {
        const int64_t dur_ns = entries[i].end_ns - entries[i].start_ns;
        if (dur_ns < shortest_ns) {
            shortest_ns = dur_ns;
            arrival.last = entries[i].rank;
        }
    }
    for (uint32_t i = 0; i < collective->count && count < OTHERS_MAX; i++) {
        if (entries[i].rank != arrival.last) {
            waits_ns[count++] = entries[i].end_ns - entries[i].start_ns - shortest_ns;
        }
    }
    if (count > 0) {
        qsort(waits_ns, count, sizeof(*waits_ns), by_size);
        arrival.late_ns = waits_ns[(count - 1) / 2];
    }
    return arrival;
}
