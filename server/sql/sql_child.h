#ifndef LAC_SERVER_SQL_SQL_CHILD_H
#define LAC_SERVER_SQL_SQL_CHILD_H

/*
 * A stranger's query in a process of its own: SQLite's memory limit is process-wide, and what a
 * query can do to a process is its process's affair alone. The child opens the trace file, gives up
 * every other right, and answers through a pipe; it ends with its parent.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdint.h>

struct lac_sql_request {
    const char *trace_path;
    const char *query;
    uint64_t row_max;   /**< 0: no limit */
    uint64_t bytes_max; /**< of the reply */
    unsigned seconds;
    uint64_t memory_bytes; /**< of SQLite; the process may have some more for the trace */
};

/**
 * Run it and wait.
 *
 * @param ret_json the document of result_text.h, appended
 * @return as lac_sql_query(); LAC_ERR_IO when no child can be started or it died
 */
LAC_MUST_USE enum lac_status lac_sql_child_run(const struct lac_sql_request *request,
                                               struct lac_buffer *ret_json,
                                               struct lac_error *reterr);

/** The command `sql-worker`, which lac_sql_child_run() starts. */
int lac_cmd_sql_worker(int argc, char **argv);

#endif
