/* Decoding chunks on demand, through the cache. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Columns that an importer's row of each kind may point from: table sizes by slice kind. */
static uint32_t detail_rows(const struct lac_model *head, uint8_t kind)
{
    switch (kind) {
    case LAC_SLICE_KERNEL:
        return head->kernel_config_count;
    case LAC_SLICE_COPY:
    case LAC_SLICE_MEMSET:
        return head->copy_count;
    case LAC_SLICE_RANGE:
        return head->loader_info_count;
    case LAC_SLICE_ALLOC:
        return head->alloc_count;
    default:
        return LAC_NONE; /* an API call's detail is its return value; the others have none */
    }
}

static bool times_are_sane(const struct lac_chunk_entry *chunk, const struct lac_slices *at)
{
    int64_t before = chunk->start_first;

    if (at->start_ns[0] != chunk->start_first ||
        at->start_ns[chunk->count - 1] != chunk->start_last) {
        return false;
    }
    for (uint32_t i = 0; i < chunk->count; i++) {
        if (at->start_ns[i] < before) {
            return false;
        }
        before = at->start_ns[i];
        if (at->dur_ns != NULL &&
            (at->dur_ns[i] < 0 || at->dur_ns[i] > chunk->end_last - at->start_ns[i])) {
            return false;
        }
    }
    return true;
}

bool lac_trace_chunk_is_sane(const struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                             const struct lac_slices *at, unsigned columns)
{
    const struct lac_model *head = &file->head;
    uint32_t lane_count = head->tracks[chunk->track].lane_count;
    uint32_t bad = 0;

    if ((columns & 1U << LAC_COLUMN_START) != 0 && !times_are_sane(chunk, at)) {
        return false;
    }
    for (uint32_t i = 0; (columns & 1U << LAC_COLUMN_NAME) != 0 && i < chunk->count; i++) {
        bad |= at->name[i] >= head->strings.count;
    }
    for (uint32_t i = 0; (columns & 1U << LAC_COLUMN_KIND) != 0 && i < chunk->count; i++) {
        bad |= at->kind[i] >= LAC_SLICE_KIND_COUNT_;
    }
    for (uint32_t i = 0; (columns & 1U << LAC_COLUMN_LANE) != 0 && i < chunk->count; i++) {
        bad |= at->lane[i] >= lane_count;
    }
    for (uint32_t i = 0; (columns & 1U << LAC_COLUMN_ARGS) != 0 && i < chunk->count; i++) {
        bad |= at->args[i] >= head->strings.count;
    }
    for (uint32_t i = 0; (columns & 1U << LAC_COLUMN_LINK) != 0 && i < chunk->count; i++) {
        bad |= at->link[i] != LAC_NONE && at->link[i] >= head->slices.count;
    }
    if ((columns & 1U << LAC_COLUMN_DETAIL) != 0 && (columns & 1U << LAC_COLUMN_KIND) != 0) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            bad |= at->detail[i] != LAC_NONE && at->detail[i] >= detail_rows(head, at->kind[i]);
        }
    }
    return bad == 0;
}

static void free_columns(void *data)
{
    struct lac_chunk_columns *columns = data;

    free(columns->numbers);
    free(columns);
}

/** One allocation for all columns that are asked for, widest first. */
static struct lac_chunk_columns *allocate(uint32_t count, unsigned columns, uint64_t *ret_bytes)
{
    const struct {
        unsigned needs;
        size_t width;
    } parts[] = {
        {1U << LAC_COLUMN_START, 8}, {1U << LAC_COLUMN_DUR, 8},     {1U << LAC_COLUMN_NAME, 4},
        {1U << LAC_COLUMN_CORR, 4},  {1U << LAC_COLUMN_LINK, 4},    {1U << LAC_COLUMN_DETAIL, 4},
        {1U << LAC_COLUMN_ARGS, 4},  {1U << LAC_COLUMN_NUMBERS, 4}, {1U << LAC_COLUMN_LANE, 2},
        {1U << LAC_COLUMN_KIND, 1},
    };
    enum { PARTS = LAC_COUNT_OF(parts) };
    uint8_t *at[PARTS] = {NULL};
    struct lac_chunk_columns *made;
    size_t size_bytes = sizeof(*made);
    uint8_t *bytes;

    for (size_t p = 0; p < PARTS; p++) {
        size_bytes += (columns & parts[p].needs) != 0 ? parts[p].width * count : 0;
    }
    made = malloc(size_bytes);
    if (made == NULL) {
        return NULL;
    }
    *made = (struct lac_chunk_columns){.numbers = NULL};
    bytes = (uint8_t *)(made + 1);
    for (size_t p = 0; p < PARTS; p++) {
        if ((columns & parts[p].needs) != 0) {
            at[p] = bytes;
            bytes += parts[p].width * count;
        }
    }
    made->at = (struct lac_slices){.count = count,
                                   .start_ns = (void *)at[0],
                                   .dur_ns = (void *)at[1],
                                   .name = (void *)at[2],
                                   .corr = (void *)at[3],
                                   .link = (void *)at[4],
                                   .detail = (void *)at[5],
                                   .args = (void *)at[6],
                                   .arg_num = (void *)at[7],
                                   .lane = (void *)at[8],
                                   .kind = at[9]};
    *ret_bytes = size_bytes;
    return made;
}

static enum lac_status decode(struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                              unsigned columns, struct lac_chunk_columns *into,
                              struct lac_error *reterr)
{
    struct lac_chunk_codec *codec = lac_cache_take_codec(file->cache);
    uint64_t number_capacity = 0;
    struct lac_chunk_out out = {.at = into->at,
                                .strings = &file->head.strings,
                                .numbers = &into->numbers,
                                .number_count = &into->number_count,
                                .number_capacity = &number_capacity};
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    enum lac_status status = codec != NULL ? LAC_OK : LAC_ERR_NOMEM;

    if (status == LAC_OK) {
        status = lac_trace_read_blob(file, chunk->blob, &bytes, &size_bytes, reterr);
    }
    if (status == LAC_OK) {
        status = lac_chunk_decode(codec, bytes, size_bytes, chunk->count, chunk->first, columns,
                                  &out, reterr);
    }
    if (status == LAC_OK && !lac_trace_chunk_is_sane(file, chunk, &into->at, columns)) {
        status = lac_trace_corrupt(file, reterr, "a chunk");
    }
    free(bytes);
    lac_cache_give_codec(file->cache, codec);
    return status;
}

enum lac_status lac_trace_chunk(struct lac_trace_file *file, uint32_t chunk, unsigned columns,
                                const struct lac_chunk_columns **ret_columns,
                                struct lac_cache_entry **ret_entry, struct lac_error *reterr)
{
    const struct lac_cache_key key = {.owner = file->owner, .index = chunk, .type = columns};
    struct lac_cache_entry *entry = lac_cache_get(file->cache, &key);
    struct lac_chunk_columns *fresh;
    uint64_t size_bytes = 0;
    enum lac_status status;

    if (entry == NULL) {
        fresh = allocate(file->chunks[chunk].count, columns, &size_bytes);
        if (fresh == NULL) {
            return LAC_ERR_NOMEM;
        }
        status = decode(file, &file->chunks[chunk], columns, fresh, reterr);
        if (status != LAC_OK) {
            free_columns(fresh);
            return status;
        }
        size_bytes += fresh->number_count * sizeof(int64_t);
        entry = lac_cache_put(file->cache, &key, fresh, size_bytes, free_columns);
        if (entry == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    *ret_columns = lac_cache_data(entry);
    *ret_entry = entry;
    return LAC_OK;
}

uint32_t lac_trace_chunk_of(const struct lac_trace_file *file, uint64_t slice)
{
    uint32_t low = 0;
    uint32_t high = file->chunk_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (file->chunks[middle].first <= slice) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t lac_lower_bound_ns(const int64_t *start_ns, uint32_t count, int64_t t_ns)
{
    uint32_t low = 0;

    LAC_BISECT(low, count, row, start_ns[row] < t_ns);
    return low;
}

const struct lac_chunk_entry *lac_trace_file_chunks(const struct lac_trace_file *file,
                                                    uint32_t *ret_count)
{
    *ret_count = file->chunk_count;
    return file->chunks;
}

void lac_trace_unpin(struct lac_trace_file *file, struct lac_cache_entry *entry)
{
    lac_cache_unpin(file->cache, entry);
}

const char *lac_trace_file_path(const struct lac_trace_file *file)
{
    return sqlite3_db_filename(file->db, "main");
}
