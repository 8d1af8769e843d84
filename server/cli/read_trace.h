#ifndef LAC_SERVER_CLI_READ_TRACE_H
#define LAC_SERVER_CLI_READ_TRACE_H

/*
 * One trace file on the command line: import, diagnose, progress on a terminal. What compare and
 * export share.
 */

#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export
#include "analysis/model/model.h"              // IWYU pragma: export
#include "analysis/model/status.h"             // IWYU pragma: export

/** A trace with what was found in it; both owned. */
struct lac_read_trace {
    struct lac_model *model;
    struct lac_analysis *analysis;
};

/**
 * Read and diagnose the one trace at `path`.
 *
 * @param command  "lacuna compare": begins the line on stderr that says what failed
 * @param names    rows that come before the table's, or NULL
 * @return LAC_OK, or a failure that stderr was told
 */
LAC_MUST_USE enum lac_status lac_read_trace(const char *command, const char *path,
                                            const struct lac_names *names,
                                            struct lac_read_trace *ret_trace);

/** A zeroed struct is allowed. */
void lac_read_trace_done(struct lac_read_trace *trace);

#endif
