#ifndef LAC_SERVER_STORE_TRACE_TRACE_COLUMNS_H
#define LAC_SERVER_STORE_TRACE_TRACE_COLUMNS_H

/*
 * A trace file column by column, for queries that read many slices: its chunks, their decoded
 * columns, which chunks hold a name, and the tables that slices point into. As in trace_file.h,
 * every function may be called from any thread and returns LAC_ERR_CORRUPT for a damaged file.
 */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"

#include <stdint.h>

/** A row of table chunk. */
struct lac_chunk_entry {
    uint64_t first;
    uint32_t track;
    uint32_t count;
    int64_t start_first, start_last, end_last;
    int64_t blob;
};

/** A row of table name_stat, but for its postings. */
struct lac_name_stat {
    uint32_t name;
    uint8_t kind;
    uint32_t longest;
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    uint64_t posting_first; /**< offset of its postings */
};

/** All chunks, ascending by first slice: a track is one run of them. Borrowed. */
const struct lac_chunk_entry *lac_trace_file_chunks(const struct lac_trace_file *file,
                                                    uint32_t *ret_count);

/** Decoded columns of a chunk, checked: names, links, details exist; starts ascend. */
struct lac_chunk_columns {
    struct lac_slices at; /**< count = slices of the chunk; columns not asked for are NULL */
    int64_t *numbers;
    uint64_t number_count;
};

/**
 * Columns of a chunk, from the cache or decoded.
 *
 * @param columns   a set of enum lac_chunk_column
 * @param ret_entry the pin: lac_cache_unpin(file->cache, entry)
 */
LAC_MUST_USE enum lac_status lac_trace_chunk(struct lac_trace_file *file, uint32_t chunk,
                                             unsigned columns,
                                             const struct lac_chunk_columns **ret_columns,
                                             struct lac_cache_entry **ret_entry,
                                             struct lac_error *reterr);

/** Give back what lac_trace_chunk() pinned. NULL is allowed. */
void lac_trace_unpin(struct lac_trace_file *file, struct lac_cache_entry *entry);

/** Chunk that holds a slice, by bisection. */
uint32_t lac_trace_chunk_of(const struct lac_trace_file *file, uint64_t slice);

/** Name statistics, loaded on the first call. Borrowed. */
LAC_MUST_USE enum lac_status lac_trace_stats(struct lac_trace_file *file,
                                             const struct lac_name_stat **ret_stats,
                                             uint32_t *ret_count, struct lac_error *reterr);

/** Chunk ordinals that hold the name of `stat`, ascending; the caller frees. */
LAC_MUST_USE enum lac_status lac_trace_postings(struct lac_trace_file *file,
                                                const struct lac_name_stat *stat,
                                                uint32_t **ret_chunks, uint32_t *ret_count,
                                                struct lac_error *reterr);

/**
 * The tables that slices point into, with counter samples and recorded arrows: a model without
 * slices, whose tracks and strings are the head's.
 *
 * @param ret_details the caller gives it to lac_trace_details_destroy(), before the file is closed
 */
LAC_MUST_USE enum lac_status lac_trace_file_details(struct lac_trace_file *file,
                                                    struct lac_model **ret_details,
                                                    struct lac_error *reterr);
/** NULL is allowed. */
void lac_trace_details_destroy(struct lac_model *details);

/** Where the file is. Borrowed. */
const char *lac_trace_file_path(const struct lac_trace_file *file);

#endif
