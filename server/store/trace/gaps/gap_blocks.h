#ifndef LAC_SERVER_STORE_TRACE_GAPS_GAP_BLOCKS_H
#define LAC_SERVER_STORE_TRACE_GAPS_GAP_BLOCKS_H

/* Blocks of the table of gaps as they are stored, for those who read them in this folder. */

#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/** Columns of a block of gaps (FORMAT.md). */
enum lac_gap_column {
    LAC_GAP_START = 0,
    LAC_GAP_DUR,
    LAC_GAP_DEVICE,
    LAC_GAP_CAUSE,
    LAC_GAP_SIGNATURE,
    LAC_GAP_ENDED_BY,
    LAC_GAP_SHARES,
    LAC_GAP_TEXT,
    LAC_GAP_ROOT_KIND,
    LAC_GAP_ROOT,
    LAC_GAP_WAIT,
    LAC_GAP_BATCH,
    LAC_GAP_COLUMNS,
    LAC_GAP_COLUMNS_BEFORE_ROOTS = LAC_GAP_ROOT_KIND, /**< in files before LAC_TRACE_FORMAT_ROOTS */
};

/** Grow an array to `count` entries. @return false when out of memory */
bool lac_gap_grow(int64_t **array, uint64_t count);

/** Check every value, and lay out shares and texts. */
LAC_MUST_USE enum lac_status lac_gap_table_index(const struct lac_trace_file *file,
                                                 struct lac_gap_table *table);

/** Decode the block under `get` (all columns of table gap), checked, without the columns that
 *  `left_out` of `block` has. What `block` held is forgotten, its memory kept.
 *  @param first gap that it must begin with */
LAC_MUST_USE enum lac_status lac_gap_block_decode(const struct lac_trace_file *file,
                                                  struct lac_gap_table *block, sqlite3_stmt *get,
                                                  uint64_t first);

/** Takes a block of gaps, checked and laid out. */
typedef enum lac_status lac_take_gaps_fn(void *context, const struct lac_gap_table *block);

/** All gaps, block by block, without the columns of `left_out`. With db_lock held. */
LAC_MUST_USE enum lac_status lac_gap_blocks_visit(struct lac_trace_file *file, uint32_t left_out,
                                                  lac_take_gaps_fn *take, void *context,
                                                  struct lac_error *reterr);

/** All gaps that are long enough to be seen, and shorter ones where they are not stored apart. With
 *  db_lock held. */
LAC_MUST_USE enum lac_status lac_gap_long_visit(struct lac_trace_file *file, lac_take_gaps_fn *take,
                                                void *context, struct lac_error *reterr);

/** The block that begins with gap `first`, without the columns of `left_out`. With db_lock held. */
LAC_MUST_USE enum lac_status lac_gap_block_visit(struct lac_trace_file *file, int64_t first,
                                                 uint32_t left_out, lac_take_gaps_fn *take,
                                                 void *context, struct lac_error *reterr);

/** How often gaps of a signature come in a step, into per_step of `table`. With db_lock held. */
LAC_MUST_USE enum lac_status lac_gap_signatures_read(struct lac_trace_file *file,
                                                     struct lac_gap_table *table,
                                                     struct lac_error *reterr);

/** cause_ns of gap `i`, whose row has cause and duration. */
void lac_gap_fill_shares(const struct lac_gap_table *table, uint64_t i, struct lac_gap_row *row);

/** A stored slice's number; LAC_NONE for none. */
uint32_t lac_gap_slice(int64_t value);

#endif
