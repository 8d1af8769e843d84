#ifndef LAC_ANALYSIS_DIAGNOSE_RANKS_H
#define LAC_ANALYSIS_DIAGNOSE_RANKS_H

/*
 * The ranks of one run together: who waits for whom in collectives, and why the late one is late.
 *
 * A collective ends on all ranks at once, so the rank that enters last has the shortest: the
 * shortest of the same collective is transfer, what others have beyond it is waiting. Which
 * collectives are the same is read from names, order and the time between ends; no clocks are
 * compared, and ranks of several groups (tensor, pipeline, data parallel) fall apart by it.
 *
 * Of each rank only its table is kept (collectives and what happened between them), so that a run
 * of many ranks needs the memory of one whole rank.
 */

#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export

/** One rank: borrowed. */
struct lac_rank_trace {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
};

/** What a rank tells the others; owns all that is in it. */
struct lac_rank_table;

/**
 * Take what the ranks' comparison needs: neither model nor analysis is needed afterwards.
 *
 * @param model of it, kernels that communicate on streams are read, and what names them
 * @return LAC_OK or LAC_ERR_NOMEM. O(slices of streams + gaps); about 80 bytes a collective
 */
LAC_MUST_USE enum lac_status lac_rank_table_create(const struct lac_model *model,
                                                   const struct lac_analysis *analysis,
                                                   struct lac_rank_table **ret_table);

/** NULL is allowed. */
void lac_rank_table_destroy(struct lac_rank_table *table);

/** The table as bytes, about 60 for a collective, to be kept beside a trace.
 *  @param ret_bytes the caller frees. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_rank_table_pack(const struct lac_rank_table *table,
                                                 uint8_t **ret_bytes, size_t *ret_size_bytes);

/** The table from bytes, which may be anybody's. @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_CORRUPT
 *  (or of another version of this program: make the table from the model) */
LAC_MUST_USE enum lac_status lac_rank_table_unpack(const uint8_t *bytes, size_t size_bytes,
                                                   struct lac_rank_table **ret_table);

/** Rank as recorded, -1 not recorded. */
int32_t lac_rank_table_rank(const struct lac_rank_table *table);

/** Number it as something else than its trace says: its file's name. -1 forgets that. */
void lac_rank_table_number(struct lac_rank_table *table, int32_t rank);

/** The device that is compared, and when it ran. @return false: the rank has none */
bool lac_rank_table_device(const struct lac_rank_table *table, int64_t *ret_device,
                           int64_t *ret_first_ns, int64_t *ret_span_ns);

/** Memory it holds, about. */
uint64_t lac_rank_table_bytes(const struct lac_rank_table *table);

/** A rank among the others. Texts belong to the run. */
struct lac_rank_facts {
    int32_t rank;        /**< as recorded, else its place */
    bool is_matched;     /**< some of its collectives were found on other ranks */
    int64_t wait_ns;     /**< in matched collectives, for a rank that came later; LAC_UNKNOWN_NS
                              where nothing is matched */
    int64_t transfer_ns; /**< the rest of them; LAC_UNKNOWN_NS where nothing is matched */
    uint64_t last_count; /**< collectives that this rank entered last */
    int64_t compute_ns;  /**< computing, over the span */
    int64_t idle_ns;
    const char *name, *host; /**< of the trace; "" unknown */
    const char *device;      /**< "" unknown */
    const char *cause;       /**< of its own verdict */
    char letter;             /**< of it */
    uint32_t step_count;     /**< of its own analysis, as is the next */
    uint32_t step_kept_count;
    uint32_t matched_step_count; /**< of step_count, those from its first matched collective to its
                                      last: other ranks may be recorded for less */
    int64_t step_mean_ns;        /**< LAC_UNKNOWN_NS without steps */
    double idle_pct;             /**< NaN without a device */
    double exposed_comm_pct;     /**< NaN without a device */
};

struct lac_run {
    struct lac_rank_facts *ranks; /**< as given */
    uint32_t rank_count;
    uint64_t collective_count; /**< matched on two ranks or more; 0: nothing can be told */
    uint32_t late;             /**< index of the rank that the others wait for, or LAC_NONE */
    bool has_finding;
    struct lac_finding finding; /**< "straggler-rank"; its evidence is of the late rank */
    const char *note; /**< why no rank is named, and what is missing (ranks, matches); "" nothing */
    struct lac_text *texts;
};

/** Waiting of a rank for each of its steps; LAC_UNKNOWN_NS below three steps, or unmatched. */
int64_t lac_rank_wait_per_step_ns(const struct lac_rank_facts *rank_facts);

/** Join tables. @return LAC_OK or LAC_ERR_NOMEM. O(collectives of all ranks, with a logarithm) */
LAC_MUST_USE enum lac_status lac_ranks_join(const struct lac_rank_table *const *tables,
                                            uint32_t rank_count, struct lac_run **ret_run);

/** The same from models that are all in memory. */
LAC_MUST_USE enum lac_status lac_ranks_compare(const struct lac_rank_trace *ranks,
                                               uint32_t rank_count, struct lac_run **ret_run);

/** What --what-if says of one rank (lac_analysis.what_if_*). Borrowed. */
struct lac_rank_what_if {
    struct lac_what_if_step step;                    /**< with collectives as long as recorded */
    struct lac_what_if_step by_comm[LAC_COMM_PARTS]; /**< with less of their time (analysis.h) */
    int64_t now_by_comm_ns[LAC_COMM_PARTS];          /**< and without the change */
    const char *why_not;                             /**< why it is not known, or "" */
};

/** And of the run. Texts belong to it. */
struct lac_run_what_if {
    struct lac_what_if_step step;
    int64_t now_ns;         /**< the step as recorded; LAC_UNKNOWN_NS without one */
    const char *assumption; /**< what the band stands on; "" not known */
    const char *why_not;    /**< why it is not known, or "" */
};

/**
 * The step of the run when all ranks change alike: that of the rank which needs longest of its own, the
 * time that collectives need once all have come included. What they wait for each other beside that
 * stays. Not known where collectives are not matched, or where one rank cannot tell.
 *
 * @param ranks in the order of the run's. O(ranks)
 */
void lac_run_what_if(struct lac_run *run, const struct lac_rank_what_if *ranks,
                     struct lac_run_what_if *ret_what_if);

/** NULL is allowed. */
void lac_run_destroy(struct lac_run *run);

#endif
