#ifndef LAC_SERVER_SQL_SQL_CHILD_H
#define LAC_SERVER_SQL_SQL_CHILD_H

/*
 * A stranger's query in a process of its own: SQLite's memory limit is process-wide, and what a
 * query can do to a process is its process's affair alone. The child opens the trace file, gives up
 * every other right, and answers through a pipe; it ends with its parent.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/** Traces of one query. */
enum { LAC_SQL_TRACES_MAX = 128 };

struct lac_sql_request {
    const char *const *trace_paths;
    unsigned trace_count; /**< 1 to LAC_SQL_TRACES_MAX */
    bool is_many;         /**< tables have a column `trace`, also of one trace */
    bool is_csv;
    const char *query;
    uint64_t row_max;   /**< 0: no limit */
    uint64_t bytes_max; /**< of the reply */
    unsigned seconds;
    uint64_t memory_bytes; /**< of SQLite; the process may have some more for the trace */
};

/**
 * Run it and wait.
 *
 * @param ret_text the document of result_text.h, or CSV, appended
 * @return as lac_sql_query(); LAC_ERR_IO when no child can be started or it died
 */
LAC_MUST_USE enum lac_status lac_sql_child_run(const struct lac_sql_request *request,
                                               struct lac_buffer *ret_text,
                                               struct lac_error *reterr);

/** Bits of the worker's last argument. Private. */
enum { LAC_SQL_WORKER_MANY = 1, LAC_SQL_WORKER_CSV = 2 };

/** The command `sql-worker`, which lac_sql_child_run() starts. */
int lac_cmd_sql_worker(int argc, char **argv);

#endif
