#ifndef LAC_SERVER_TABLES_COUNT_H
#define LAC_SERVER_TABLES_COUNT_H

/* The way through the chunks of a trace, and the slices of a table counted into groups. */

#include "analysis/model/status.h"
#include "server/sql/sql_trace.h"
#include "server/tables/groups.h"
#include "server/tables/launches.h"
#include "server/tables/trace_tables.h"

#include <stdbool.h>
#include <stdint.h>

/** How much of a slice lies in the time asked for; -1: it is outside. */
int64_t lac_inside_ns(const struct lac_table_query *query, int64_t start_ns, int64_t dur_ns);

/** Chunks, in order, that overlap the time on the tracks asked for. Zeroed but for the first
 *  three. */
struct lac_chunk_choice {
    struct lac_sql_trace *trace;
    const struct lac_table_query *query;
    unsigned kinds; /**< hold any of these; of threads, all chunks if is_with_nesting */
    bool is_with_nesting;
    uint64_t *bits;    /**< chunks that hold the kinds */
    uint8_t *is_asked; /**< tracks */
    uint32_t next;
};
LAC_MUST_USE enum lac_status lac_chunk_choice_begin(struct lac_chunk_choice *choice,
                                                    struct lac_error *reterr);
bool lac_chunk_choice_next(struct lac_chunk_choice *choice, uint32_t *ret_chunk);
void lac_chunk_choice_done(struct lac_chunk_choice *choice);

/** Kinds of slices that a grouped table is of, as bits; 0 for a list. */
unsigned lac_table_kinds(enum lac_table_name table);

/**
 * Count all slices of the query's table.
 *
 * @param launches of the query, for tables that tell operators; may be empty
 */
LAC_MUST_USE enum lac_status lac_count_slices(struct lac_sql_trace *trace,
                                              const struct lac_table_query *query,
                                              const struct lac_launches *launches,
                                              struct lac_groups *groups, struct lac_error *reterr);

#endif
