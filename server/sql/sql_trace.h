#ifndef LAC_SERVER_SQL_SQL_TRACE_H
#define LAC_SERVER_SQL_SQL_TRACE_H

/*
 * The trace that a query reads: an open trace file and what is loaded of it when first asked for.
 * For one thread at a time. What it gives is borrowed and lives until lac_sql_trace_done().
 */

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_sql_trace {
    struct lac_trace_file *file;  /**< borrowed */
    const struct lac_model *head; /**< everything small */
    const struct lac_chunk_entry *chunks;
    uint32_t chunk_count;

    int64_t late_ns; /**< CLOCK_MONOTONIC when a query has had its time; 0: it may take any */

    /* loaded when first asked for */
    struct lac_model *details;
    struct lac_analysis *analysis;
    bool has_analysis;                            /**< was looked for */
    uint64_t *kind_chunks[LAC_SLICE_KIND_COUNT_]; /**< a bit a chunk */
    struct lac_name_class *classes;               /**< by string id */
    uint8_t *is_classified;
};

/** Several traces that one query reads. */
struct lac_sql_many {
    struct lac_sql_trace *traces;
    const char *const *names; /**< of each, what the column `trace` says; no two alike */
    unsigned count;
    struct lac_sql_trace *current; /**< that a table is asked of right now */
};

/** A name for the next of `many`: `own`, with a number where others have it. The caller frees.
 *  @return NULL: out of memory */
char *lac_sql_many_name(const struct lac_sql_many *many, const char *own);

/** Begin; `file` stays open until after lac_sql_trace_done(). */
void lac_sql_trace_init(struct lac_sql_trace *trace, struct lac_trace_file *file);

/** A zeroed struct is allowed. */
void lac_sql_trace_done(struct lac_sql_trace *trace);

/** Whether the query has had its time. Cost: reads the clock. */
bool lac_sql_trace_is_late(const struct lac_sql_trace *trace);

/** Tables that slices point into, and samples. */
LAC_MUST_USE enum lac_status lac_sql_trace_details(struct lac_sql_trace *trace,
                                                   const struct lac_model **ret_details,
                                                   struct lac_error *reterr);

/** What was found; NULL when the file does not hold it. */
LAC_MUST_USE enum lac_status lac_sql_trace_analysis(struct lac_sql_trace *trace,
                                                    const struct lac_analysis **ret_analysis,
                                                    struct lac_error *reterr);

/** A bit for each chunk that holds slices of that kind. */
LAC_MUST_USE enum lac_status lac_sql_trace_kind_chunks(struct lac_sql_trace *trace, unsigned kind,
                                                       const uint64_t **ret_bits,
                                                       struct lac_error *reterr);

/** Set the bits of chunks that hold slices of `stat`. */
LAC_MUST_USE enum lac_status lac_sql_trace_add_chunks(struct lac_sql_trace *trace,
                                                      const struct lac_name_stat *stat,
                                                      uint64_t *bits, struct lac_error *reterr);

/** Words for chunk_count bits, zeroed; the caller frees. NULL when out of memory. */
uint64_t *lac_sql_trace_bits(const struct lac_sql_trace *trace);

/** What a kernel's name says. @return NULL when out of memory */
const struct lac_name_class *lac_sql_trace_class(struct lac_sql_trace *trace, uint32_t name);

#endif
