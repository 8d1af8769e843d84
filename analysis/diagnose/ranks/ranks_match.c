/*
 * Which collectives of several ranks are the same one. All ranks of a group leave a collective
 * together, so the time from end to end is the same on each, whatever its clock says: rows of one
 * name are laid beside each other so that these times agree. A recording that began earlier is
 * shifted; a rank that never agrees belongs to another group, or cannot be told.
 */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES_MAX = 256,     /**< times from end to end that are compared for a shift */
    SHIFTS_MAX = 512,      /**< shifts that are tried */
    SHIFT_SLACK = 4,       /**< beyond the difference of the counts */
    TOLERANCE_NS = 100000, /**< ranks leave a collective this close to each other */
};

/** A rank's row of the name in question. */
struct aligned {
    const struct lac_collective *at;
    uint64_t count;
};

static const struct lac_collective_row *find_row(const struct lac_rank_table *table,
                                                 const char *name)
{
    uint32_t low = 0;
    uint32_t high = table->row_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(table->rows[middle].name, name);
        if (order == 0) {
            return &table->rows[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

static int64_t distance_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

/** Share of the times from end to end that agree when a[i] is b[i + shift]; -1: too few. */
static double agreement(const struct aligned *a, const struct aligned *b, int64_t shift)
{
    uint64_t first = shift < 0 ? (uint64_t)-shift : 0;
    uint64_t end = a->count;
    if (shift < 0 ? first >= a->count : (uint64_t)shift >= b->count) {
        return -1.0;
    }
    uint64_t b_end = shift < 0 ? b->count + first : b->count - (uint64_t)shift;
    end = b_end < end ? b_end : end;
    uint64_t least = a->count < b->count ? a->count : b->count;
    if (end <= first || (end - first) * 2 < least) {
        return -1.0;
    }
    if (end - first == 1) {
        return a->count == 1 && b->count == 1 ? 1.0 : -1.0;
    }
    int64_t mean_ns = (a->at[end - 1].end_ns - a->at[first].end_ns) / (int64_t)(end - 1 - first);
    int64_t tolerance_ns = mean_ns / 20 > TOLERANCE_NS ? mean_ns / 20 : TOLERANCE_NS;
    uint64_t pairs = end - 1 - first;
    uint64_t stride = pairs / SAMPLES_MAX + 1;
    uint64_t agreed = 0;
    uint64_t seen = 0;
    for (uint64_t i = first; i + 1 < end; i += stride) {
        const struct lac_collective *other = &b->at[(uint64_t)((int64_t)i + shift)];
        int64_t own_ns = a->at[i + 1].end_ns - a->at[i].end_ns;
        int64_t other_ns = other[1].end_ns - other->end_ns;
        agreed += distance_ns(own_ns, other_ns) <= tolerance_ns;
        seen++;
    }
    return (double)agreed / (double)seen;
}

/** Lay b beside a. @return whether they fit */
static bool align(const struct aligned *a, const struct aligned *b, int64_t *ret_shift)
{
    int64_t difference = (int64_t)b->count - (int64_t)a->count;
    int64_t low = (difference < 0 ? difference : 0) - SHIFT_SLACK;
    int64_t high = (difference > 0 ? difference : 0) + SHIFT_SLACK;
    low = low < -SHIFTS_MAX ? -SHIFTS_MAX : low;
    high = high > SHIFTS_MAX ? SHIFTS_MAX : high;
    double best = agreement(a, b, 0);
    *ret_shift = 0;
    if (difference == 0 && best >= AGREES_AS_IS) {
        return true; /* as many, in step: nothing to look for */
    }
    for (int64_t size = 1; size <= SHIFTS_MAX && best < AGREES_FULLY; size++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            int64_t shift = sign * size;
            double share = shift < low || shift > high ? -1.0 : agreement(a, b, shift);
            if (share > best + SHIFT_BETTER) {
                best = share;
                *ret_shift = shift;
            }
        }
    }
    return best >= AGREES_MIN;
}

/* -- groups ----------------------------------------------------------------------------------- */

/** Ranks that have one name, while they are put into groups. */
struct grouping {
    const struct lac_rank_table *const *tables;
    uint32_t rank_count;
    const char *name;
    const struct lac_collective_row **rows; /**< by rank, NULL: does not have it */
    bool *is_done;                          /**< by rank */
    int64_t *shift;                         /**< against the leader */
    struct lac_rank_match *match;
};

static struct aligned row_of(const struct grouping *g, uint32_t rank)
{
    return (struct aligned){g->tables[rank]->at + g->rows[rank]->first, g->rows[rank]->count};
}

static struct lac_rank_group *new_group(struct lac_rank_match *match, uint32_t member_count)
{
    if (!LAC_RESERVE(match->groups, match->group_capacity, match->group_count, 1)) {
        return NULL;
    }
    struct lac_rank_group *group = &match->groups[match->group_count++];
    *group = (struct lac_rank_group){.members = malloc(member_count * sizeof(*group->members)),
                                     .first = malloc(member_count * sizeof(*group->first))};
    return group->members != NULL && group->first != NULL ? group : NULL;
}

/** The group of `leader`: those that agree with it. They are done. */
static enum lac_status make_group(struct grouping *g, uint32_t leader)
{
    struct aligned own = row_of(g, leader);
    int64_t first = 0;
    int64_t end = (int64_t)own.count;
    uint32_t member_count = 0;
    struct lac_rank_group *group = new_group(g->match, g->rank_count);
    if (group == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t r = leader; r < g->rank_count; r++) {
        if (g->is_done[r]) {
            continue;
        }
        struct aligned other = row_of(g, r);
        int64_t shift = 0;
        if (r != leader && !align(&own, &other, &shift)) {
            continue;
        }
        int64_t begins = -shift;
        int64_t ends = (int64_t)other.count - shift;
        int64_t new_first = begins > first ? begins : first;
        int64_t new_end = ends < end ? ends : end;
        if (new_end <= new_first) {
            continue;
        }
        first = new_first;
        end = new_end;
        g->is_done[r] = true;
        g->shift[r] = shift;
        group->members[member_count++] = r;
    }
    group->kind = g->rows[leader]->kind;
    for (uint32_t m = 0; m < member_count; m++) {
        uint32_t r = group->members[m];
        group->first[m] = g->rows[r]->first + (uint64_t)(first + g->shift[r]);
        group->kind = g->rows[r]->kind == group->kind ? group->kind : LAC_COLLECTIVE_BETWEEN;
    }
    group->member_count = member_count;
    group->count = (uint64_t)(end - first);
    if (member_count < 2) {
        free(group->members);
        free(group->first);
        g->match->group_count--;
    }
    return LAC_OK;
}

/** All groups of one name; `from` is the first rank that has it. */
static enum lac_status group_name(struct grouping *g, uint32_t from, const bool *is_left_out)
{
    enum lac_status status = LAC_OK;
    for (uint32_t r = 0; r < g->rank_count; r++) {
        g->rows[r] = find_row(g->tables[r], g->name);
        g->is_done[r] = r < from || is_left_out[r] || g->rows[r] == NULL;
    }
    for (uint32_t r = from; r < g->rank_count && !status; r++) {
        if (!g->is_done[r]) {
            status = make_group(g, r);
        }
    }
    return status;
}

static bool is_known_before(const struct grouping *g, uint32_t rank, const bool *is_left_out)
{
    for (uint32_t r = 0; r < rank; r++) {
        if (!is_left_out[r] && find_row(g->tables[r], g->name) != NULL) {
            return true;
        }
    }
    return false;
}

/* -- one order of all ------------------------------------------------------------------------- */

/** What to add to a member's clock so that the group's ends agree with the known member's. */
static enum lac_status offset_of(const struct lac_rank_table *const *tables,
                                 const struct lac_rank_group *group, uint32_t known,
                                 uint32_t member, int64_t *ret_ns)
{
    enum { ENDS = 65 };
    int64_t values[ENDS];
    uint32_t count = 0;
    uint64_t stride = group->count / ENDS + 1;
    for (uint64_t i = 0; i < group->count && count < ENDS; i += stride) {
        values[count++] = lac_rank_collective(tables, group, known, i)->end_ns -
                          lac_rank_collective(tables, group, member, i)->end_ns;
    }
    *ret_ns = lac_median_ns(values, count);
    return LAC_OK;
}

/** Bring all clocks that groups connect to that of the first rank of each. */
static enum lac_status find_offsets(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                    const struct lac_rank_match *match, int64_t *offset_ns,
                                    bool *is_set)
{
    enum lac_status status = LAC_OK;
    for (uint32_t seed = 0; seed < rank_count; seed++) {
        bool has_grown = !is_set[seed];
        if (has_grown) {
            match->island[seed] = seed;
        }
        is_set[seed] = true;
        while (has_grown && !status) {
            has_grown = false;
            for (uint32_t g = 0; g < match->group_count; g++) {
                const struct lac_rank_group *group = &match->groups[g];
                uint32_t known = 0;
                while (known < group->member_count && !is_set[group->members[known]]) {
                    known++;
                }
                for (uint32_t m = 0; m < group->member_count && known < group->member_count; m++) {
                    uint32_t r = group->members[m];
                    if (!is_set[r]) {
                        int64_t ns = 0;
                        status = offset_of(tables, group, known, m, &ns);
                        offset_ns[r] = lac_sum_ns(offset_ns[group->members[known]], ns);
                        match->island[r] = seed;
                        is_set[r] = has_grown = true;
                    }
                }
            }
        }
    }
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct lac_rank_instance *x = a;
    const struct lac_rank_instance *y = b;
    int order = LAC_ORDER(x->key_ns, y->key_ns);
    order = order != 0 ? order : LAC_ORDER(x->group, y->group);
    return order != 0 ? order : LAC_ORDER(x->index, y->index);
}

static enum lac_status put_in_order(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                    struct lac_rank_match *match)
{
    int64_t *offset_ns = calloc((size_t)rank_count + 1, sizeof(*offset_ns));
    bool *is_set = calloc((size_t)rank_count + 1, sizeof(*is_set));
    match->offset_ns = offset_ns;
    match->island = calloc((size_t)rank_count + 1, sizeof(*match->island));
    enum lac_status status =
        offset_ns != NULL && match->island != NULL && is_set != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        status = find_offsets(tables, rank_count, match, offset_ns, is_set);
    }
    uint64_t count = 0;
    for (uint32_t g = 0; g < match->group_count; g++) {
        count += match->groups[g].count;
    }
    match->instances = malloc((count ? count : 1) * sizeof(*match->instances));
    if (match->instances == NULL) {
        status = LAC_ERR_NOMEM;
    }
    for (uint32_t g = 0; g < match->group_count && !status; g++) {
        const struct lac_rank_group *group = &match->groups[g];
        for (uint64_t i = 0; i < group->count; i++) {
            match->instances[match->instance_count++] = (struct lac_rank_instance){
                .key_ns = lac_sum_ns(lac_rank_collective(tables, group, 0, i)->end_ns,
                                     offset_ns[group->members[0]]),
                .group = g,
                .index = i};
        }
    }
    if (!status && count > 1) {
        qsort(match->instances, count, sizeof(*match->instances), by_key);
    }
    free(is_set);
    return status;
}

enum lac_status lac_ranks_match(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                const bool *is_left_out, struct lac_rank_match *ret_match)
{
    struct lac_rank_match match = {0};
    struct grouping g = {.tables = tables, .rank_count = rank_count, .match = &match};
    g.rows = calloc(rank_count ? rank_count : 1, sizeof(*g.rows));
    g.is_done = calloc(rank_count ? rank_count : 1, sizeof(*g.is_done));
    g.shift = calloc(rank_count ? rank_count : 1, sizeof(*g.shift));
    enum lac_status status =
        g.rows != NULL && g.is_done != NULL && g.shift != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t r = 0; r < rank_count && !status; r++) {
        for (uint32_t row = 0; row < tables[r]->row_count && !is_left_out[r] && !status; row++) {
            g.name = tables[r]->rows[row].name;
            if (!is_known_before(&g, r, is_left_out)) {
                status = group_name(&g, r, is_left_out);
            }
        }
    }
    free(g.rows);
    free(g.is_done);
    free(g.shift);
    if (!status) {
        status = put_in_order(tables, rank_count, &match);
    }
    if (status) {
        lac_rank_match_done(&match);
        return status;
    }
    *ret_match = match;
    return LAC_OK;
}

void lac_rank_match_done(struct lac_rank_match *match)
{
    for (uint32_t g = 0; g < match->group_count; g++) {
        free(match->groups[g].members);
        free(match->groups[g].first);
    }
    free(match->groups);
    free(match->instances);
    free(match->offset_ns);
    free(match->island);
    *match = (struct lac_rank_match){0};
}
