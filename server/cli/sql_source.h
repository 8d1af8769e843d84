#ifndef LAC_SERVER_CLI_SQL_SOURCE_H
#define LAC_SERVER_CLI_SQL_SOURCE_H

/*
 * The trace that a command asks questions of: a file of any format that can be read (imported into
 * a temporary file), a trace file of a data folder, or the id of a trace in a data folder.
 */

#include "analysis/model/status.h"
#include "server/cli/options.h"
#include "server/sql/result_text.h"
#include "server/sql/sql_query.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stddef.h>

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

/** Whether `path` is a trace of a data folder: its trace file, or its id (`options` say of which
 *  folder). @param out where its file is, or would be */
bool lac_sql_source_is_stored(const char *path, const struct lac_options *options, char *out,
                              size_t capacity_bytes);

/** A query to answer on stdout. */
struct lac_sql_job {
    const char *command; /**< "lacuna sql": begins lines on stderr */
    char **paths;        /**< one, or several: then every table has a column `trace` */
    int path_count;
    const char *query;
    const struct lac_names *names;
    struct lac_sql_limits limits;
    struct lac_sql_result result; /**< form and limits; file is stdout */
};

/** Answer it. @return the exit status */
LAC_MUST_USE int lac_sql_job_run(struct lac_sql_job *job, const struct lac_options *options);

/** `lacuna analyze --report NAME PATH`, in the form that --json and --csv choose. @return the exit
 *  status */
LAC_MUST_USE int lac_sql_report_run(const char *name, const struct lac_options *options,
                                    const struct lac_names *names);

#endif
