#ifndef LAC_ANALYSIS_DIAGNOSE_RANKS_H
#define LAC_ANALYSIS_DIAGNOSE_RANKS_H

/*
 * The ranks of one run together: who waits for whom in collectives, and why the late one is late.
 *
 * A collective ends on all ranks at once, so the rank that enters last has the shortest: the
 * shortest of the same collective (same name, same ordinal) is transfer, what others have beyond it
 * is waiting. No clocks are compared.
 */

#include "analysis/diagnose/analysis.h" // IWYU pragma: export

/** One rank: borrowed. */
struct lac_rank_trace {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
};

struct lac_rank_facts {
    int32_t rank;        /**< as recorded, else its place */
    int64_t wait_ns;     /**< in matched collectives, for a rank that came later */
    int64_t transfer_ns; /**< the rest of them */
    uint64_t last_count; /**< collectives that this rank entered last */
    int64_t compute_ns;  /**< computing, over the span */
    int64_t idle_ns;
};

struct lac_run {
    struct lac_rank_facts *ranks; /**< as given */
    uint32_t rank_count;
    uint64_t collective_count; /**< matched on all ranks; 0: nothing can be told */
    uint32_t late;             /**< index of the rank that the others wait for, or LAC_NONE */
    bool has_finding;
    struct lac_finding finding; /**< "straggler-rank"; its evidence is of the late rank */
    const char *note;           /**< one sentence where no rank is named */
    struct lac_text *texts;
};

/** Compare ranks. O(slices). @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_ranks_compare(const struct lac_rank_trace *ranks,
                                               uint32_t rank_count, struct lac_run **ret_run);

/** NULL is allowed. */
void lac_run_destroy(struct lac_run *run);

#endif
