#ifndef LAC_SERVER_SQL_EXPORT_SQLITE_H
#define LAC_SERVER_SQL_EXPORT_SQLITE_H

/*
 * A trace as plain rows for people who know SQL: the tables that `lacuna sql --tables` describes, by
 * the same names, without functions and without `strings`. Tables whose columns `slices` has already
 * are views of it. (The server's own trace files are columns in chunks: FORMAT.md.)
 */

#include "analysis/model/status.h"
#include "server/sql/sql_query.h"
#include "server/store/trace/trace_file.h"

/** What a text is, for who may change it. */
enum lac_export_text {
    LAC_EXPORT_TEXT_PLAIN = 0,
    LAC_EXPORT_TEXT_ARGV,     /**< a command line */
    LAC_EXPORT_TEXT_GIVEN,    /**< a name that a person chose */
    LAC_EXPORT_TEXT_ROW,      /**< the same, of a row of the timeline */
    LAC_EXPORT_TEXT_SENTENCE, /**< may quote such names */
    LAC_EXPORT_TEXT_ARGS,     /**< arguments of slices: may hold any of it */
};

struct lac_export_sqlite {
    struct lac_trace_file *file;
    /** The text as it may leave, "" for none; borrowed until the next call. */
    const char *(*text)(void *context, enum lac_export_text what, const char *text);
    void *context;
};

/**
 * Write the new file `path`.
 *
 * @return LAC_OK, LAC_ERR_IO or LAC_ERR_NOMEM, or what reading the trace returns; a file that was
 *         begun is then left to the caller
 * Cost: about 4 us a slice.
 */
LAC_MUST_USE enum lac_status lac_export_sqlite(const struct lac_export_sqlite *source,
                                               const char *path, struct lac_error *reterr);

/**
 * Give the rows of one table, which may be a function without arguments.
 *
 * @return as above; LAC_ERR_NOT_FOUND: there is no table of that name
 */
LAC_MUST_USE enum lac_status lac_export_table(const struct lac_export_sqlite *source,
                                              const char *table, const struct lac_sql_sink *sink,
                                              struct lac_error *reterr);

#endif
