#include "server/tables/launched.h"

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static bool is_gpu_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

/** The slice itself, and the chain outward from it. */
static enum lac_status follow(struct lac_trace_file *file, uint32_t slice,
                              struct lac_launched *launched, struct lac_slice_row *ret_row,
                              struct lac_error *reterr)
{
    uint32_t next = slice;
    enum lac_status status = LAC_OK;

    for (unsigned step = 0; step <= LAC_CHAIN_MAX && next != LAC_NONE && status == LAC_OK; step++) {
        struct lac_slice_full full = {0};

        status = lac_trace_file_slice(file, next, &full, reterr);
        if (status != LAC_OK) {
            break;
        }
        if (step == 0) {
            *ret_row = full.row;
            next = is_gpu_work(full.row.kind) ? full.row.link : full.parent;
        } else {
            launched->chain[launched->chain_count++] = full.row;
            next = full.parent;
        }
        lac_slice_full_done(&full);
    }
    return status;
}

struct links {
    uint32_t *all;
    uint32_t count, capacity;
};

/** What was launched by calls of the chunk that lie inside a slice. */
static enum lac_status add_links(struct links *links, const struct lac_slices *at,
                                 const struct lac_slice_row *row, struct lac_launched *launched)
{
    const int64_t end_ns = row->start_ns + row->dur_ns;

    for (uint64_t i = 0; i < at->count && at->start_ns[i] <= end_ns; i++) {
        if (at->link[i] == LAC_NONE || at->start_ns[i] < row->start_ns ||
            at->start_ns[i] + at->dur_ns[i] > end_ns || is_gpu_work(at->kind[i])) {
            continue;
        }
        if (links->count >= LAC_CALLS_MAX) {
            launched->is_cut = true;
            return LAC_OK;
        }
        if (!LAC_RESERVE(links->all, links->capacity, links->count, 1)) {
            return LAC_ERR_NOMEM;
        }
        links->all[links->count++] = at->link[i];
    }
    return LAC_OK;
}

static enum lac_status find_links(struct lac_trace_file *file, const struct lac_slice_row *row,
                                  struct links *links, struct lac_launched *launched,
                                  struct lac_error *reterr)
{
    const unsigned columns = (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR) |
                             (1U << LAC_COLUMN_KIND) | (1U << LAC_COLUMN_LINK);
    uint32_t count = 0;
    const struct lac_chunk_entry *chunks = lac_trace_file_chunks(file, &count);
    enum lac_status status = LAC_OK;

    for (uint32_t c = lac_trace_chunk_of(file, row->slice);
         status == LAC_OK && !launched->is_cut && c < count && chunks[c].track == row->track &&
         chunks[c].start_first <= row->start_ns + row->dur_ns;
         c++) {
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(file, c, columns, &found, &pin, reterr);
        if (status == LAC_OK) {
            status = add_links(links, &found->at, row, launched);
            lac_trace_unpin(file, pin);
        }
    }
    return status;
}

static int ascending(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static void count_one(struct lac_launched *launched, const struct lac_slice_row *row)
{
    const int64_t end_ns = row->start_ns + row->dur_ns;

    if (launched->count == 0 || row->start_ns < launched->first_ns) {
        launched->first_ns = row->start_ns;
    }
    launched->end_ns = end_ns > launched->end_ns ? end_ns : launched->end_ns;
    launched->count++;
    if (__builtin_add_overflow(launched->total_ns, row->dur_ns, &launched->total_ns)) {
        launched->total_ns = INT64_MAX;
    }
    if (launched->told_count < LAC_LAUNCHED_TOLD) {
        launched->told[launched->told_count++] = *row;
    }
}

/** Count the links that lie in one chunk. @return how many */
static uint32_t count_links(const struct links *links, uint32_t from, const struct lac_slices *at,
                            const struct lac_chunk_entry *chunk, struct lac_launched *launched)
{
    uint32_t i = from;

    for (; i < links->count && links->all[i] < chunk->first + chunk->count; i++) {
        const uint64_t n = links->all[i] - chunk->first;

        if ((i > 0 && links->all[i] == links->all[i - 1]) || !is_gpu_work(at->kind[n])) {
            continue;
        }
        count_one(launched, &(struct lac_slice_row){.slice = links->all[i],
                                                    .track = chunk->track,
                                                    .start_ns = at->start_ns[n],
                                                    .dur_ns = at->dur_ns[n],
                                                    .name = at->name[n],
                                                    .link = LAC_NONE,
                                                    .detail = LAC_NONE,
                                                    .lane = at->lane[n],
                                                    .kind = at->kind[n]});
    }
    return i - from;
}

static int by_start(const void *left, const void *right)
{
    const struct lac_slice_row *a = left;
    const struct lac_slice_row *b = right;

    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return a->slice < b->slice ? -1 : a->slice > b->slice;
}

static enum lac_status count_launched(struct lac_trace_file *file, struct links *links,
                                      struct lac_launched *launched, struct lac_error *reterr)
{
    uint32_t count = 0;
    const struct lac_chunk_entry *chunks = lac_trace_file_chunks(file, &count);
    enum lac_status status = LAC_OK;

    if (links->count == 0) {
        return LAC_OK;
    }
    launched->told = calloc(LAC_LAUNCHED_TOLD, sizeof(*launched->told));
    if (launched->told == NULL) {
        return LAC_ERR_NOMEM;
    }
    qsort(links->all, links->count, sizeof(*links->all), ascending);
    for (uint32_t i = 0; i < links->count && status == LAC_OK;) {
        const uint32_t c = lac_trace_chunk_of(file, links->all[i]);
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &found, &pin, reterr);
        if (status == LAC_OK) {
            i += count_links(links, i, &found->at, &chunks[c], launched);
            lac_trace_unpin(file, pin);
        }
    }
    qsort(launched->told, launched->told_count, sizeof(*launched->told), by_start);
    return status;
}

enum lac_status lac_launched_by(struct lac_trace_file *file, uint32_t slice,
                                struct lac_launched *ret_launched, struct lac_error *reterr)
{
    assert(file != NULL && ret_launched != NULL);
    struct lac_slice_row row = {0};
    struct links links = {0};
    enum lac_status status;

    *ret_launched = (struct lac_launched){0};
    status = follow(file, slice, ret_launched, &row, reterr);
    if (status == LAC_OK && !is_gpu_work(row.kind) &&
        lac_trace_file_head(file)->tracks[row.track].kind == LAC_TRACK_THREAD) {
        status = find_links(file, &row, &links, ret_launched, reterr);
        if (status == LAC_OK) {
            status = count_launched(file, &links, ret_launched, reterr);
        }
    }
    free(links.all);
    if (status != LAC_OK) {
        lac_launched_done(ret_launched);
    }
    return status;
}

void lac_launched_done(struct lac_launched *launched)
{
    free(launched->told);
    *launched = (struct lac_launched){0};
}
