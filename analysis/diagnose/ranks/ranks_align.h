#ifndef LAC_ANALYSIS_DIAGNOSE_RANKS_ALIGN_H
#define LAC_ANALYSIS_DIAGNOSE_RANKS_ALIGN_H

/*
 * The ranks of a run on one clock, as a picture of them needs it. All ranks leave a collective
 * together: the median difference between the ends of matched collectives is how far two clocks
 * are apart. Ranks that no collective connects to the others have no place on that clock.
 */

#include "analysis/diagnose/ranks/ranks.h"

/** One rank in one collective. */
struct lac_aligned_entry {
    uint32_t rank;            /**< index */
    int64_t start_ns, end_ns; /**< on the rank's own clock */
};

/** One collective: entries[first, first + count), by rank. */
struct lac_aligned_collective {
    int64_t end_ns;   /**< on the common clock */
    const char *name; /**< of its kernels; borrowed from the tables */
    uint8_t kind;     /**< enum lac_collective_kind */
    bool is_transfer; /**< from one rank to another: nobody waits for the last to come */
    uint64_t first;
    uint32_t count;
};

struct lac_ranks_alignment {
    uint32_t rank_count;
    int64_t *offset_ns; /**< by rank: what to add to its clock for the common one */
    bool *is_aligned;   /**< by rank: false, its offset is 0 and means nothing */
    struct lac_aligned_collective *collectives; /**< by end */
    uint64_t count;
    struct lac_aligned_entry *entries;
};

/**
 * Match the collectives and bring the ranks to the clock of the first rank of the largest group
 * that collectives connect. Of a rank that is there twice the first counts.
 *
 * @param tables borrowed by the result: names
 * @return LAC_OK or LAC_ERR_NOMEM. O(collectives of all ranks, with a logarithm)
 */
LAC_MUST_USE enum lac_status lac_ranks_align(const struct lac_rank_table *const *tables,
                                             uint32_t rank_count,
                                             struct lac_ranks_alignment *ret_alignment);

/** Free the contents; a zeroed struct is allowed. */
void lac_ranks_alignment_done(struct lac_ranks_alignment *alignment);

/** How long a rank was in a collective before the last one came, at least: what its entry takes
 *  beyond the shortest. */
struct lac_collective_arrival {
    uint32_t last;   /**< rank (index) with the shortest; the first of equals */
    int64_t late_ns; /**< how long the median of the others waited for it */
};
/** @param collective of `alignment`; of two ranks or more */
struct lac_collective_arrival
lac_collective_arrival_of(const struct lac_ranks_alignment *alignment,
                          const struct lac_aligned_collective *collective);

#endif
