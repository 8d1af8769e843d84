#include "server/tables/launches.h"

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_columns.h"
#include "server/tables/count.h"
#include "server/tables/trace_tables.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** The last slice of a lane that may hold a call. */
struct around {
    int64_t end_ns;
    uint32_t op;    /**< an operator's name, 0 no operator */
    uint32_t range; /**< a range's */
};

static int ascending(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static enum lac_status add_calls(struct lac_launches *launches, const struct lac_slices *at,
                                 const struct lac_table_query *query, unsigned kinds)
{
    for (uint64_t i = 0; i < at->count && at->start_ns[i] < query->t1_ns; i++) {
        if ((kinds >> at->kind[i] & 1U) == 0 || at->link[i] == LAC_NONE ||
            lac_inside_ns(query, at->start_ns[i], at->dur_ns[i]) < 0) {
            continue;
        }
        if (launches->count >= LAC_TABLE_LAUNCHES_MAX) {
            launches->is_too_many = true;
            return LAC_OK;
        }
        if (!LAC_RESERVE(launches->calls, launches->capacity, launches->count, 1)) {
            return LAC_ERR_NOMEM;
        }
        launches->calls[launches->count++] = at->link[i];
    }
    return LAC_OK;
}

static enum lac_status find_calls(struct lac_sql_trace *trace, const struct lac_table_query *query,
                                  unsigned kinds, struct lac_launches *launches,
                                  struct lac_error *reterr)
{
    const unsigned columns = (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR) |
                             (1U << LAC_COLUMN_KIND) | (1U << LAC_COLUMN_LINK);
    struct lac_chunk_choice choice = {.trace = trace, .query = query, .kinds = kinds};
    enum lac_status status = lac_chunk_choice_begin(&choice, reterr);
    uint32_t chunk;

    while (status == LAC_OK && !launches->is_too_many && lac_chunk_choice_next(&choice, &chunk)) {
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(trace->file, chunk, columns, &found, &pin, reterr);
        if (status == LAC_OK) {
            status = add_calls(launches, &found->at, query, kinds);
            lac_trace_unpin(trace->file, pin);
        }
    }
    lac_chunk_choice_done(&choice);
    return status;
}

static void sort_calls(struct lac_launches *launches)
{
    uint32_t count = 0;

    if (launches->count > 0) {
        qsort(launches->calls, launches->count, sizeof(*launches->calls), ascending);
    }
    for (uint32_t i = 0; i < launches->count; i++) {
        if (i == 0 || launches->calls[i] != launches->calls[i - 1]) {
            launches->calls[count++] = launches->calls[i];
        }
    }
    launches->count = count;
}

/** A walk along one thread. */
struct walk {
    struct lac_launches *launches;
    uint32_t next; /**< the first call that was not met yet */
    struct around *lanes;
    bool has_ops; /**< the trace has operators: then ranges are none */
};

static uint32_t innermost(const struct walk *walk, uint32_t lane, int64_t end_ns)
{
    for (uint32_t l = lane; l > 0; l--) {
        const struct around *around = &walk->lanes[l - 1];
        const uint32_t name = walk->has_ops ? around->op : around->range;

        if (around->end_ns >= end_ns && name != 0) {
            return name;
        }
    }
    return 0;
}

static void walk_chunk(struct walk *walk, const struct lac_slices *at, uint64_t first)
{
    struct lac_launches *launches = walk->launches;

    for (uint64_t i = 0; i < at->count; i++) {
        const int64_t end_ns = at->start_ns[i] + at->dur_ns[i];
        struct around *lane = &walk->lanes[at->lane[i]];

        *lane = (struct around){.end_ns = end_ns,
                                .op = at->kind[i] == LAC_SLICE_OP ? at->name[i] : 0,
                                .range = at->kind[i] == LAC_SLICE_RANGE ? at->name[i] : 0};
        if (walk->next < launches->count && launches->calls[walk->next] == first + i) {
            launches->ops[walk->next++] =
                at->kind[i] == LAC_SLICE_OP ? at->name[i] : innermost(walk, at->lane[i], end_ns);
        }
    }
}

/** Meet all calls of the track that holds the next one. */
static enum lac_status walk_track(struct lac_sql_trace *trace, struct walk *walk,
                                  struct lac_error *reterr)
{
    const struct lac_launches *launches = walk->launches;
    const uint32_t of = lac_trace_chunk_of(trace->file, launches->calls[walk->next]);
    const uint32_t track = trace->chunks[of].track;
    const struct lac_track *row = &trace->head->tracks[track];
    enum lac_status status = LAC_OK;
    uint32_t chunk = of;

    while (chunk > 0 && trace->chunks[chunk - 1].track == track) {
        chunk--;
    }
    walk->lanes = calloc((size_t)row->lane_count + 1, sizeof(*walk->lanes));
    if (walk->lanes == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (; status == LAC_OK && walk->next < launches->count &&
           launches->calls[walk->next] < row->first + row->count;
         chunk++) {
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;
        const uint32_t needed = lac_trace_chunk_of(trace->file, launches->calls[walk->next]);

        if (chunk < needed && trace->chunks[chunk].end_last < trace->chunks[needed].start_first) {
            continue; /* nothing in it is open any more */
        }
        status = lac_trace_chunk(trace->file, chunk, LAC_COLUMNS_TILE, &found, &pin, reterr);
        if (status == LAC_OK) {
            walk_chunk(walk, &found->at, trace->chunks[chunk].first);
            lac_trace_unpin(trace->file, pin);
        }
    }
    free(walk->lanes);
    walk->lanes = NULL;
    return status;
}

static enum lac_status has_kind(struct lac_sql_trace *trace, unsigned kind, bool *ret_has,
                                struct lac_error *reterr)
{
    const struct lac_name_stat *stats = NULL;
    uint32_t count = 0;
    const enum lac_status status = lac_trace_stats(trace->file, &stats, &count, reterr);

    *ret_has = false;
    for (uint32_t i = 0; status == LAC_OK && i < count && !*ret_has; i++) {
        *ret_has = stats[i].kind == kind;
    }
    return status;
}

enum lac_status lac_launches_find(struct lac_sql_trace *trace, const struct lac_table_query *query,
                                  unsigned kinds, struct lac_launches *ret_launches,
                                  struct lac_error *reterr)
{
    struct walk walk = {.launches = ret_launches};
    enum lac_status status;

    *ret_launches = (struct lac_launches){0};
    status = find_calls(trace, query, kinds, ret_launches, reterr);
    if (status == LAC_OK) {
        status = has_kind(trace, LAC_SLICE_OP, &walk.has_ops, reterr);
    }
    if (status != LAC_OK || ret_launches->is_too_many) {
        ret_launches->count = 0;
        return status;
    }
    sort_calls(ret_launches);
    ret_launches->ops = calloc((size_t)ret_launches->count + 1, sizeof(*ret_launches->ops));
    if (ret_launches->ops == NULL) {
        return LAC_ERR_NOMEM;
    }
    while (status == LAC_OK && walk.next < ret_launches->count) {
        status = walk_track(trace, &walk, reterr);
    }
    return status;
}

void lac_launches_done(struct lac_launches *launches)
{
    free(launches->calls);
    free(launches->ops);
    *launches = (struct lac_launches){0};
}

uint32_t lac_launches_op(const struct lac_launches *launches, uint32_t call)
{
    const uint32_t *at =
        call != LAC_NONE && launches->count > 0
            ? bsearch(&call, launches->calls, launches->count, sizeof(*launches->calls), ascending)
            : NULL;

    return at != NULL ? launches->ops[at - launches->calls] : 0;
}
