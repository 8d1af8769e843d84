#ifndef LAC_SERVER_SQL_EXPORT_SQLITE_H
#define LAC_SERVER_SQL_EXPORT_SQLITE_H

/*
 * A trace as plain tables for people who know SQL: trace, process, track, device, slice, kernel,
 * copy, counter, step, gap, finding. One row an event, names in full, times in ns since the start.
 * (The server's own trace files are columns in chunks: FORMAT.md.)
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

/** What a text is, for who may change it. */
enum lac_export_text { LAC_EXPORT_TEXT_PLAIN = 0, LAC_EXPORT_TEXT_ARGV, LAC_EXPORT_TEXT_GIVEN };

struct lac_export_sqlite {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
    /** The text as it may leave; borrowed until the next call. */
    const char *(*text)(void *context, enum lac_export_text what, const char *text);
    void *context;
};

/**
 * Write the new file `path`.
 *
 * @return LAC_OK, LAC_ERR_IO or LAC_ERR_NOMEM; a file that was begun is then left to the caller
 * Cost: about 2 us a slice.
 */
LAC_MUST_USE enum lac_status lac_export_sqlite(const struct lac_export_sqlite *source,
                                               const char *path, struct lac_error *reterr);

#endif
