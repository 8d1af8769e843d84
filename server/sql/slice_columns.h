#ifndef LAC_SERVER_SQL_SLICE_COLUMNS_H
#define LAC_SERVER_SQL_SLICE_COLUMNS_H

/* The columns of the tables of slices, and how each is read from a decoded chunk. */

#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"

#include <sqlite3.h>
#include <stdint.h>

enum lac_slice_column {
#define LAC_SLICE_COLUMN(KEY, name, type, words, needs, doc) LAC_SLICE_##KEY##_,
#include "server/sql/slice_columns.def"
    LAC_SLICE_COLUMN_COUNT_
};

/** A chunk, decoded and pinned; all zero: none. */
struct lac_sql_chunk {
    const struct lac_chunk_columns *columns;
    struct lac_cache_entry *pin;
    uint32_t chunk;
};

/** Where a slice's columns are. */
struct lac_sql_slice {
    struct lac_sql_trace *trace;
    const struct lac_sql_chunk *at;
    uint32_t row;
    struct lac_sql_chunk *launch; /**< kept from slice to slice: the chunk of the last launch */
};

/** Columns of a chunk (bits of enum lac_chunk_column) that a column is read from. */
unsigned lac_slice_column_needs(enum lac_slice_column column);

/** The value of one column of one slice, or an error, into `out`. */
void lac_slice_column_put(const struct lac_sql_slice *slice, enum lac_slice_column column,
                          sqlite3_context *out);

/** Give the pin back. */
void lac_sql_chunk_done(struct lac_sql_trace *trace, struct lac_sql_chunk *chunk);

/** Make `chunk` hold those columns of the chunk with that number. */
LAC_MUST_USE enum lac_status lac_sql_chunk_get(struct lac_sql_trace *trace, uint32_t number,
                                               unsigned columns, struct lac_sql_chunk *chunk,
                                               struct lac_error *reterr);

#endif
