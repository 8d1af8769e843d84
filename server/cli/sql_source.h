#ifndef LAC_SERVER_CLI_SQL_SOURCE_H
#define LAC_SERVER_CLI_SQL_SOURCE_H

/*
 * The trace that a command asks questions of: a file of any format that can be read (imported into
 * a temporary file), a trace file of a data folder, or the id of a trace in a data folder.
 */

#include "analysis/model/status.h"
#include "server/cli/options.h"
#include "server/store/trace/trace_file.h"

struct lac_names;

/**
 * Open it. What was imported is gone from the disk when the file is closed, or the process ends.
 *
 * @param command "lacuna sql": begins the line on stderr that says what failed
 * @param options read for "data", where it has that option
 * @param names   rows that come before the table's, or NULL
 * @return LAC_OK, or a failure that stderr was told
 */
LAC_MUST_USE enum lac_status lac_sql_source_open(const char *command, const char *path,
                                                 const struct lac_options *options,
                                                 const struct lac_names *names,
                                                 struct lac_trace_file **ret_file);

#endif
