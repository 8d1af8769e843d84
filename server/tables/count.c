#include "server/tables/count.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/flame/flame.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_columns.h"
#include "server/tables/groups.h"
#include "server/tables/launches.h"
#include "server/tables/trace_tables.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static int64_t inside_ns(int64_t t0_ns, int64_t t1_ns, int64_t start_ns, int64_t dur_ns)
{
    const int64_t end_ns = start_ns + dur_ns;
    const int64_t from_ns = start_ns > t0_ns ? start_ns : t0_ns;
    const int64_t to_ns = end_ns < t1_ns ? end_ns : t1_ns;

    if (dur_ns == 0) {
        return start_ns >= t0_ns && start_ns < t1_ns ? 0 : -1;
    }
    return to_ns > from_ns ? to_ns - from_ns : -1;
}

int64_t lac_inside_ns(const struct lac_table_query *query, int64_t start_ns, int64_t dur_ns)
{
    int64_t sum_ns = -1;
    uint32_t low = 0;

    if (query->spans == NULL) {
        return inside_ns(query->t0_ns, query->t1_ns, start_ns, dur_ns);
    }
    /* the first that ends behind the start */
    LAC_BISECT(low, query->span_count, middle, query->spans[middle].end_ns <= start_ns);
    for (; low < query->span_count && query->spans[low].start_ns <= start_ns + dur_ns; low++) {
        const int64_t part_ns =
            inside_ns(query->spans[low].start_ns, query->spans[low].end_ns, start_ns, dur_ns);

        if (part_ns >= 0) {
            sum_ns = (sum_ns < 0 ? 0 : sum_ns) + part_ns;
        }
    }
    return sum_ns;
}

unsigned lac_table_kinds(enum lac_table_name table)
{
    static const unsigned kinds[LAC_TABLE_COUNT_] = {
        [LAC_TABLE_KERNELS] = 1U << LAC_SLICE_KERNEL,
        [LAC_TABLE_COPIES] = (1U << LAC_SLICE_COPY) | (1U << LAC_SLICE_MEMSET),
        [LAC_TABLE_OPERATORS] = 1U << LAC_SLICE_OP,
        [LAC_TABLE_RANGES] = (1U << LAC_SLICE_RANGE) | (1U << LAC_SLICE_GPU_RANGE),
        [LAC_TABLE_CALLS] = 1U << LAC_SLICE_API,
        [LAC_TABLE_PYTHON] = 1U << LAC_SLICE_PYTHON,
        [LAC_TABLE_ALLOCATIONS] = 1U << LAC_SLICE_ALLOC,
    };

    assert(table < LAC_TABLE_COUNT_);
    return kinds[table];
}

/* -- chunks ---------------------------------------------------------------------------------- */

enum lac_status lac_chunk_choice_begin(struct lac_chunk_choice *choice, struct lac_error *reterr)
{
    const struct lac_table_query *query = choice->query;
    const uint32_t track_count = choice->trace->head->track_count;
    const uint32_t words = choice->trace->chunk_count / 64 + 1;
    enum lac_status status = LAC_OK;

    choice->bits = lac_sql_trace_bits(choice->trace);
    choice->is_asked = calloc((size_t)track_count + 1, 1);
    if (choice->bits == NULL || choice->is_asked == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; query->tracks != NULL && i < query->track_count; i++) {
        choice->is_asked[query->tracks[i]] = 1;
    }
    for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_ && status == LAC_OK; kind++) {
        const uint64_t *bits = NULL;

        if ((choice->kinds >> kind & 1U) == 0) {
            continue;
        }
        status = lac_sql_trace_kind_chunks(choice->trace, kind, &bits, reterr);
        for (uint32_t w = 0; status == LAC_OK && w < words; w++) {
            choice->bits[w] |= bits[w];
        }
    }
    return status;
}

bool lac_chunk_choice_next(struct lac_chunk_choice *choice, uint32_t *ret_chunk)
{
    const struct lac_sql_trace *trace = choice->trace;
    const struct lac_table_query *query = choice->query;

    for (uint32_t c = choice->next; c < trace->chunk_count; c++) {
        const struct lac_chunk_entry *chunk = &trace->chunks[c];
        const bool has_kind = (choice->bits[c / 64] >> c % 64 & 1U) != 0;
        const bool is_nested =
            choice->is_with_nesting && trace->head->tracks[chunk->track].kind == LAC_TRACK_THREAD;

        if ((has_kind || is_nested) && chunk->start_first < query->t1_ns &&
            chunk->end_last >= query->t0_ns &&
            (query->tracks == NULL || choice->is_asked[chunk->track] != 0)) {
            choice->next = c + 1;
            *ret_chunk = c;
            return true;
        }
    }
    choice->next = trace->chunk_count;
    return false;
}

void lac_chunk_choice_done(struct lac_chunk_choice *choice)
{
    free(choice->bits);
    free(choice->is_asked);
}

/* -- slices ---------------------------------------------------------------------------------- */

/** The last slice of a lane. */
struct open {
    int64_t end_ns;
    uint32_t group; /**< LAC_NONE: it is not counted */
};

struct counting {
    struct lac_sql_trace *trace;
    const struct lac_table_query *query;
    const struct lac_launches *launches;
    const struct lac_model *details;
    struct lac_groups *groups;
    unsigned kinds;
    unsigned by;
    bool is_with_self;
    uint32_t track;     /**< whose lanes are open */
    struct open *lanes; /**< of a thread */
    uint32_t lane_capacity;
};

static int64_t bytes_of(const struct counting *counting, uint8_t kind, uint32_t detail,
                        const struct lac_copy **ret_copy)
{
    const struct lac_model *details = counting->details;

    *ret_copy = NULL;
    if (details == NULL || detail == LAC_NONE) {
        return -1;
    }
    if ((kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) && detail < details->copy_count) {
        *ret_copy = &details->copies[detail];
        return details->copies[detail].bytes;
    }
    return -1;
}

/** What of copies and allocations is in no other column. */
static int64_t other_of(const struct counting *counting, uint8_t kind, uint32_t name,
                        const struct lac_copy *copy, const struct lac_alloc *alloc)
{
    if ((counting->by & LAC_TABLE_BY_FAMILY) != 0) {
        const struct lac_name_class *name_class = lac_sql_trace_class(counting->trace, name);

        return name_class != NULL ? (int64_t)name_class->family : -1;
    }
    if ((counting->by & LAC_TABLE_BY_DIRECTION) != 0) {
        return copy == NULL ? (int64_t)kind << 24
                            : ((int64_t)kind << 24) | ((int64_t)copy->copy_kind << 16) |
                                  ((int64_t)copy->src << 8) | (int64_t)copy->dst;
    }
    if ((counting->by & LAC_TABLE_BY_SIZE) != 0 && alloc != NULL) {
        return alloc->bytes < 0 ? -alloc->bytes : alloc->bytes;
    }
    return -1;
}

static uint32_t group_of(const struct counting *counting, const struct lac_slices *at, uint64_t i,
                         uint32_t op, int64_t other)
{
    const unsigned by = counting->by;
    const struct lac_group_key key = {
        .name = (by & LAC_TABLE_BY_NAME) != 0 ? at->name[i] : LAC_NONE,
        .op = (by & LAC_TABLE_BY_OPERATOR) != 0 ? op : LAC_NONE,
        .track = (by & LAC_TABLE_BY_TRACK) != 0 ? counting->track : LAC_NONE,
        .other = other,
    };
    const uint32_t group = lac_groups_find(counting->groups, &key);

    if (group != LAC_NONE) {
        struct lac_group *of = &counting->groups->all[group];

        if (of->count == 0) {
            of->name = at->name[i];
            of->op = op;
            of->track = counting->track;
        }
        of->has_names = of->has_names || of->name != at->name[i];
        of->has_ops = of->has_ops || of->op != op;
        of->has_tracks = of->has_tracks || of->track != counting->track;
    }
    return group;
}

static void take_from_parent(struct counting *counting, uint32_t lane, int64_t end_ns,
                             int64_t inside_ns)
{
    for (uint32_t l = lane; l > 0; l--) {
        const struct open *around = &counting->lanes[l - 1];

        if (around->end_ns >= end_ns) {
            if (around->group != LAC_NONE) {
                struct lac_group *group = &counting->groups->all[around->group];

                if (__builtin_sub_overflow(group->self_ns, inside_ns, &group->self_ns)) {
                    group->self_ns = 0; /* a hostile file */
                }
            }
            return;
        }
    }
}

static void add_bytes(struct lac_group *group, int64_t bytes, int64_t inside_ns)
{
    if (bytes >= 0 && !__builtin_add_overflow(group->bytes, bytes, &group->bytes)) {
        group->sized++;
        group->timed_ns += inside_ns;
    }
}

/** @return the group, or LAC_NONE when out of memory */
static uint32_t count_slice(struct counting *counting, const struct lac_slices *at, uint64_t i,
                            int64_t inside_ns, uint64_t first)
{
    const struct lac_model *details = counting->details;
    const uint32_t detail = at->detail != NULL ? at->detail[i] : LAC_NONE;
    const struct lac_alloc *alloc = at->kind[i] == LAC_SLICE_ALLOC && details != NULL &&
                                            detail != LAC_NONE && detail < details->alloc_count
                                        ? &details->allocs[detail]
                                        : NULL;
    const struct lac_copy *copy = NULL;
    const int64_t bytes = bytes_of(counting, at->kind[i], detail, &copy);
    const uint32_t op = at->link != NULL ? lac_launches_op(counting->launches, at->link[i]) : 0;
    const uint32_t group =
        group_of(counting, at, i, op, other_of(counting, at->kind[i], at->name[i], copy, alloc));

    if (group == LAC_NONE ||
        lac_groups_add(counting->groups, group, inside_ns, (uint32_t)(first + i)) != LAC_OK) {
        return LAC_NONE;
    }
    struct lac_group *of = &counting->groups->all[group];

    add_bytes(of, bytes, inside_ns);
    if (alloc != NULL) {
        of->released += alloc->bytes < 0;
        add_bytes(of, alloc->bytes < 0 ? 0 : alloc->bytes, 0);
    }
    return group;
}

static enum lac_status count_chunk(struct counting *counting, const struct lac_slices *at,
                                   uint64_t first)
{
    for (uint64_t i = 0; i < at->count && at->start_ns[i] < counting->query->t1_ns; i++) {
        const int64_t inside_ns = lac_inside_ns(counting->query, at->start_ns[i], at->dur_ns[i]);
        const bool is_counted = inside_ns >= 0 && (counting->kinds >> at->kind[i] & 1U) != 0;
        const int64_t end_ns = at->start_ns[i] + at->dur_ns[i];
        uint32_t group = LAC_NONE;

        if (is_counted) {
            group = count_slice(counting, at, i, inside_ns, first);
            if (group == LAC_NONE) {
                return LAC_ERR_NOMEM;
            }
        }
        if (counting->lanes != NULL) {
            counting->lanes[at->lane[i]] = (struct open){end_ns, group};
            if (inside_ns > 0) {
                take_from_parent(counting, at->lane[i], end_ns, inside_ns);
            }
        }
    }
    return LAC_OK;
}

/** Lanes for the track of a chunk, if it is a new one and nests. */
static enum lac_status open_lanes(struct counting *counting, uint32_t track)
{
    const struct lac_track *of = &counting->trace->head->tracks[track];

    if (track == counting->track) {
        return LAC_OK;
    }
    counting->track = track;
    free(counting->lanes);
    counting->lanes = NULL;
    if (!counting->is_with_self || of->kind != LAC_TRACK_THREAD) {
        return LAC_OK;
    }
    counting->lanes = malloc(((size_t)of->lane_count + 1) * sizeof(*counting->lanes));
    if (counting->lanes == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t l = 0; l <= of->lane_count; l++) {
        counting->lanes[l] = (struct open){-1, LAC_NONE};
    }
    return LAC_OK;
}

static enum lac_status count_chunks(struct counting *counting, struct lac_error *reterr)
{
    const enum lac_table_name table = counting->query->table;
    const unsigned columns =
        LAC_COLUMNS_TILE |
        (table == LAC_TABLE_KERNELS || table == LAC_TABLE_COPIES ? 1U << LAC_COLUMN_LINK : 0) |
        (counting->details != NULL ? 1U << LAC_COLUMN_DETAIL : 0);
    struct lac_chunk_choice choice = {.trace = counting->trace,
                                      .query = counting->query,
                                      .kinds = counting->kinds,
                                      .is_with_nesting = counting->is_with_self};
    enum lac_status status = lac_chunk_choice_begin(&choice, reterr);
    uint32_t chunk;

    while (status == LAC_OK && lac_chunk_choice_next(&choice, &chunk)) {
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;

        status = open_lanes(counting, counting->trace->chunks[chunk].track);
        if (status == LAC_OK) {
            status = lac_trace_chunk(counting->trace->file, chunk, columns, &found, &pin, reterr);
        }
        if (status == LAC_OK) {
            status = count_chunk(counting, &found->at, counting->trace->chunks[chunk].first);
            lac_trace_unpin(counting->trace->file, pin);
        }
    }
    lac_chunk_choice_done(&choice);
    return status;
}

enum lac_status lac_count_slices(struct lac_sql_trace *trace, const struct lac_table_query *query,
                                 const struct lac_launches *launches, struct lac_groups *groups,
                                 struct lac_error *reterr)
{
    const enum lac_table_name table = query->table;
    struct counting counting = {
        .trace = trace,
        .query = query,
        .launches = launches,
        .groups = groups,
        .kinds = lac_table_kinds(table),
        .by = query->by != 0 ? query->by : lac_table_by_usual(table),
        .is_with_self = table == LAC_TABLE_OPERATORS || table == LAC_TABLE_RANGES ||
                        table == LAC_TABLE_CALLS || table == LAC_TABLE_PYTHON,
        .track = LAC_NONE,
    };
    enum lac_status status = LAC_OK;

    if (table == LAC_TABLE_COPIES || table == LAC_TABLE_ALLOCATIONS) {
        status = lac_sql_trace_details(trace, &counting.details, reterr);
    }
    if (status == LAC_OK) {
        status = count_chunks(&counting, reterr);
    }
    free(counting.lanes);
    return status;
}
