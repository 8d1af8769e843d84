#ifndef LAC_SERVER_TABLES_LAUNCHES_H
#define LAC_SERVER_TABLES_LAUNCHES_H

/* Which operator launched what: from the call that a device operation links to, the innermost
 * operator around it. */

#include "analysis/model/status.h"
#include "server/sql/sql_trace.h"
#include "server/tables/trace_tables.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_launches {
    uint32_t *calls; /**< slices, ascending, each once */
    uint32_t *ops;   /**< string ids, 0 none */
    uint32_t count, capacity;
    bool is_too_many;
};

/**
 * Look for the operators of all that overlaps the query's time on its tracks.
 *
 * @param kinds a set of enum lac_slice_kind, as bits
 * @param ret_launches the caller gives it to lac_launches_done(), whatever is returned
 * Cost: the chunks of those slices, and those of the threads that hold their calls
 */
LAC_MUST_USE enum lac_status lac_launches_find(struct lac_sql_trace *trace,
                                               const struct lac_table_query *query, unsigned kinds,
                                               struct lac_launches *ret_launches,
                                               struct lac_error *reterr);
void lac_launches_done(struct lac_launches *launches);

/** Name of the operator around a call; 0 none. */
uint32_t lac_launches_op(const struct lac_launches *launches, uint32_t call);

#endif
