#ifndef LAC_SERVER_SQL_SQL_QUERY_H
#define LAC_SERVER_SQL_SQL_QUERY_H

/*
 * One query over one trace, from its text to its rows. Read only: the connection is in memory, has
 * the tables of the trace, and refuses whatever is not a SELECT.
 *
 * Limits: time is checked by SQLite's progress handler and in our own loops; memory is what SQLite
 * allocates, for the whole process. What a stranger asks therefore runs in a child (sql_child.h).
 */

#include "analysis/model/status.h"
#include "server/sql/sql_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_sql_limits {
    uint64_t memory_bytes; /**< of SQLite; 0: none */
    unsigned seconds;      /**< 0: none */
};

/** Longest query text. */
enum { LAC_SQL_TEXT_BYTES_MAX = 65536 };

enum lac_sql_cell_type {
    LAC_SQL_NULL = 0,
    LAC_SQL_INTEGER,
    LAC_SQL_REAL,
    LAC_SQL_TEXT,
    LAC_SQL_BLOB
};

/** A value of a row. Borrowed for the call that it is given to. */
struct lac_sql_cell {
    enum lac_sql_cell_type type;
    int64_t integer;
    double real;
    const char *bytes; /**< of TEXT and BLOB */
    size_t size_bytes;
};

/** Takes the result. A function that returns false ends the query: it has enough. */
struct lac_sql_sink {
    bool (*columns)(void *context, const char *const *names, unsigned count);
    bool (*row)(void *context, const struct lac_sql_cell *cells, unsigned count);
    void *context;
};

/**
 * Run one SELECT (or VALUES, or EXPLAIN of one).
 *
 * @return LAC_OK; LAC_ERR_MISUSE when the text is no query that is allowed, with SQLite's sentence;
 *         LAC_ERR_LIMIT when time or memory ran out; LAC_ERR_NOMEM; what reading the trace returns
 */
LAC_MUST_USE enum lac_status lac_sql_query(struct lac_sql_trace *trace, const char *text,
                                           const struct lac_sql_limits *limits,
                                           const struct lac_sql_sink *sink,
                                           struct lac_error *reterr);

/** The same over several traces: every table has a column `trace` with the trace's name. */
LAC_MUST_USE enum lac_status lac_sql_query_many(struct lac_sql_many *many, const char *text,
                                                const struct lac_sql_limits *limits,
                                                const struct lac_sql_sink *sink,
                                                struct lac_error *reterr);

#endif
