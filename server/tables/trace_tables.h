#ifndef LAC_SERVER_TABLES_TRACE_TABLES_H
#define LAC_SERVER_TABLES_TRACE_TABLES_H

/*
 * Tables of a trace: what there is of kernels, copies, operators, ranges, calls, Python functions
 * and allocations, grouped and counted slice by slice over the columns of the file, and lists of
 * steps, gaps and batches. A table is of a time, and times of grouped slices are those inside it.
 */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_table_name {
    LAC_TABLE_KERNELS = 0,
    LAC_TABLE_COPIES,
    LAC_TABLE_OPERATORS,
    LAC_TABLE_RANGES,
    LAC_TABLE_CALLS,
    LAC_TABLE_PYTHON,
    LAC_TABLE_ALLOCATIONS,
    LAC_TABLE_STEPS,
    LAC_TABLE_GAPS,
    LAC_TABLE_BATCHES,
    LAC_TABLE_COUNT_
};
/** "kernels", "copies", ...; static storage. */
const char *lac_table_word(enum lac_table_name table);

enum lac_table_column {
#define LAC_TABLE_COLUMN(KEY, id, label, unit, definition) LAC_TABLE_##KEY##_COLUMN,
#include "server/tables/columns.def" // IWYU pragma: keep
    LAC_TABLE_COLUMN_COUNT_
};

enum lac_table_unit {
    LAC_UNIT_TEXT = 0,
    LAC_UNIT_COUNT,
    LAC_UNIT_NS,
    LAC_UNIT_AT,
    LAC_UNIT_BYTES,
    LAC_UNIT_PCT,
    LAC_UNIT_RATE,
    LAC_UNIT_NUMBER,
    LAC_UNIT_CAUSE,
    LAC_UNIT_COUNT_
};
/** "text", "count", "ns", ...; static storage. */
const char *lac_table_unit_word(enum lac_table_unit unit);

/** What a column is. Static storage. */
struct lac_table_head {
    const char *id;
    const char *label;
    enum lac_table_unit unit;
    const char *definition;
};
const struct lac_table_head *lac_table_head(enum lac_table_column column);

/** Columns of a table, in order. Static storage. */
const uint8_t *lac_table_columns(enum lac_table_name table, unsigned *ret_count);

/** What grouped slices have in common, as a set. */
enum lac_table_by {
    LAC_TABLE_BY_NAME = 1,
    LAC_TABLE_BY_OPERATOR = 2,
    LAC_TABLE_BY_TRACK = 4,
    LAC_TABLE_BY_FAMILY = 8,
    LAC_TABLE_BY_DIRECTION = 16,
    LAC_TABLE_BY_SIZE = 32,
};
/** What a table is grouped by if nobody says; 0 for a list, which is never grouped. */
unsigned lac_table_by_usual(enum lac_table_name table);
/** What it can be grouped by. */
unsigned lac_table_by_allowed(enum lac_table_name table);

enum lac_cell_type { LAC_CELL_NONE = 0, LAC_CELL_INT, LAC_CELL_REAL, LAC_CELL_TEXT };
struct lac_cell {
    enum lac_cell_type type;
    union {
        int64_t integer;
        double real;
        const char *text; /**< of the table or of the file */
    };
};

enum { LAC_TABLE_BINS = 16 };
struct lac_table_row {
    struct lac_cell cells[LAC_TABLE_COLUMN_COUNT_]; /**< those of the table's columns are set */
    const char *short_name;                         /**< of a kernel, NULL else */
    uint32_t slice;                                 /**< the longest, or the only one; LAC_NONE */
    int64_t start_ns, dur_ns;                       /**< of what is listed; -1 in grouped tables */
    int64_t device;                                 /**< of a gap, -1 else */
    bool has_bins;
    /** How many durations lie in each equal part of [min, max]. */
    uint32_t bins[LAC_TABLE_BINS];
};

struct lac_table_query {
    enum lac_table_name table;
    int64_t t0_ns, t1_ns; /**< t0 < t1 */
    /** Only time in these, which ascend from t0 to t1; NULL: all of it. Numbers of one step are
     *  of so many steps; 0: of those of the trace, if t0 to t1 is all of it. */
    const struct lac_flame_span *spans;
    uint32_t span_count, step_count;
    const uint32_t *tracks; /**< ascending indexes, for grouped tables; NULL: all */
    uint32_t track_count;
    unsigned by;      /**< set of enum lac_table_by, allowed for the table; 0: as usual */
    const char *text; /**< case-insensitive (ASCII) substring of any text of a row; NULL all */
    enum lac_table_column sort;
    bool is_descending;
};

struct lac_table {
    struct lac_table_row *rows; /**< that match, in order */
    uint32_t count, capacity;
    struct lac_table_row all; /**< of all rows that match: sums, and percentiles of all values */
    bool has_all;
    uint32_t step_count;  /**< that numbers of one step are of; 0: there are none */
    bool is_cut;          /**< more than LAC_TABLE_ROWS_MAX would match: the longest are here */
    bool has_operators;   /**< false: too many launches to look for theirs; ask for less time */
    bool has_percentiles; /**< false: too many different durations; ask for less time */
    char **texts;         /**< what rows point into */
    uint32_t text_count, text_capacity;
};

/** Rows kept of a list; launches whose operator is looked for; different durations counted. */
enum {
    LAC_TABLE_ROWS_MAX = 100000,
    LAC_TABLE_LAUNCHES_MAX = 8000000,
    LAC_TABLE_VALUES_MAX = 5000000
};

/**
 * Make a table.
 *
 * @param ret_table the caller gives it to lac_table_done()
 * @return LAC_OK, LAC_ERR_MISUSE (columns, tracks, times that are not there), LAC_ERR_NOMEM,
 *         LAC_ERR_CORRUPT, LAC_ERR_IO
 * Cost: O(slices of chunks that hold any of the kind, or of the threads, in that time)
 */
LAC_MUST_USE enum lac_status lac_table_make(struct lac_trace_file *file,
                                            const struct lac_table_query *query,
                                            struct lac_table *ret_table, struct lac_error *reterr);
/** A zeroed struct is allowed. */
void lac_table_done(struct lac_table *table);

#endif
