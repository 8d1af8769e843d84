#ifndef LAC_SERVER_SQL_TABLES_H
#define LAC_SERVER_SQL_TABLES_H

/*
 * What can be asked of a trace in SQL: tables, and functions that give tables. Each is a row of
 * data here: name, columns with type and meaning, and how its rows are made. The reference
 * (`lacuna sql --tables`), the export to SQLite and the connection are all made from these rows.
 *
 * Names are stable: a column may be added, none is renamed. A name ends in its unit.
 */

#include "server/sql/sql_trace.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/** Whose words a text is, for who may hand it on. */
enum lac_sql_words {
    LAC_SQL_WORDS_PLAIN = 0,
    LAC_SQL_WORDS_ARGV,     /**< a command line */
    LAC_SQL_WORDS_GIVEN,    /**< chosen by a person */
    LAC_SQL_WORDS_ARGS,     /**< arguments of slices: may hold any of it */
    LAC_SQL_WORDS_SENTENCE, /**< of ours, may quote a name */
    LAC_SQL_WORDS_TRACK,    /**< of a row of the timeline: column `kind`, or a counter's */
};

struct lac_sql_column {
    const char *name;
    const char *type; /**< "INTEGER", "REAL" or "TEXT" */
    const char *doc;  /**< what it means; of an argument also what it is without one */
    uint8_t words;    /**< enum lac_sql_words */
};

/** Arguments of a table function. */
enum { LAC_SQL_ARGUMENTS_MAX = 4 };
struct lac_sql_arguments {
    sqlite3_value *value[LAC_SQL_ARGUMENTS_MAX]; /**< NULL: not given, or given as NULL */
};

/** How rows are made that are counted before the first is read. */
struct lac_sql_rows {
    /** How many there are, of what needs no state and takes no arguments; then open is NULL. */
    enum lac_status (*count)(struct lac_sql_trace *trace, uint64_t *ret_count,
                             struct lac_error *reterr);
    /** Make what the cells are read from. @param ret_state freed by close(); may stay NULL */
    enum lac_status (*open)(struct lac_sql_trace *trace, const struct lac_sql_arguments *arguments,
                            void **ret_state, uint64_t *ret_count, struct lac_error *reterr);
    void (*cell)(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                 sqlite3_context *out);
    void (*close)(void *state); /**< NULL: nothing to free */
};

struct lac_sql_table {
    const char *name;
    const char *doc;
    const struct lac_sql_column *columns; /**< the last `argument_count` are arguments; NULL of
                                               tables of slices: lac_sql_table_column() */
    unsigned column_count;
    unsigned argument_count;
    const sqlite3_module *module;    /**< what reads it; NULL: by the next */
    const struct lac_sql_rows *rows; /**< NULL: slices of `kinds`, by slice_table.c */
    uint32_t kinds;                  /**< bits of enum lac_slice_kind */
    const uint8_t *slice_columns;    /**< enum lac_slice_column of each column */
};

const struct lac_sql_column *lac_sql_table_column(const struct lac_sql_table *table,
                                                  unsigned index);

/** All of them; ends with a NULL. Tables of slices first. */
const struct lac_sql_table *const *lac_sql_tables(void);

/** The one of that name, or NULL. */
const struct lac_sql_table *lac_sql_table_named(const char *name);

/* by file: */
extern const struct lac_sql_table lac_sql_slice_tables[]; /* slice_tables.c */
extern const unsigned lac_sql_slice_table_count;
extern const struct lac_sql_table lac_sql_thing_tables[]; /* tables_things.c */
extern const unsigned lac_sql_thing_table_count;
extern const struct lac_sql_table lac_sql_found_tables[]; /* tables_found.c */
extern const unsigned lac_sql_found_table_count;
extern const struct lac_sql_table lac_sql_gap_table;          /* gap_module.c */
extern const struct lac_sql_table *const lac_sql_functions[]; /* functions.c */
extern const unsigned lac_sql_function_count;
extern const struct lac_sql_table lac_sql_overlap_table;  /* function_overlap.c */
extern const struct lac_sql_table lac_sql_flame_table;    /* function_flame.c */
extern const struct lac_sql_table lac_sql_critical_table; /* function_critical.c */

/* -- values ---------------------------------------------------------------------------------- */

/** LAC_UNKNOWN_NS is NULL. */
void lac_sql_put_ns(sqlite3_context *out, int64_t ns);
/** Negative is NULL. */
void lac_sql_put_optional(sqlite3_context *out, int64_t value);
/** LAC_NONE is NULL. */
void lac_sql_put_id(sqlite3_context *out, uint32_t id);
/** NaN and infinities are NULL. */
void lac_sql_put_real(sqlite3_context *out, double value);
/** Text that lives as long as the trace is open; NULL and "" are NULL. */
void lac_sql_put_text(sqlite3_context *out, const char *text);
/** The same of one that lives until the next row. */
void lac_sql_put_copy(sqlite3_context *out, const char *text);
/** A string of the trace; 0 is NULL. */
void lac_sql_put_string(sqlite3_context *out, const struct lac_sql_trace *trace, uint32_t id);

/** An argument as an integer, or `fallback` when it was not given. */
int64_t lac_sql_argument(const struct lac_sql_arguments *arguments, unsigned index,
                         int64_t fallback);

#endif
