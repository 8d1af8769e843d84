#ifndef LAC_ANALYSIS_DIAGNOSE_RANK_KEEP_H
#define LAC_ANALYSIS_DIAGNOSE_RANK_KEEP_H

/*
 * What lac_ranks_compare() reads of a rank's model, without the rest: the communication kernels of
 * its streams. So a run of many ranks needs the memory of one whole rank at a time.
 *
 * A kept model has the tracks, devices, strings and info of the whole one (borrowed from it, tracks
 * but for first and count), and of its slices start, length, name and kind of kernels that
 * communicate. Whatever the comparison of ranks comes to need beyond that is kept here too.
 */

#include "analysis/diagnose/analysis.h" // IWYU pragma: export

struct lac_rank_kept;

/**
 * Take from a rank what a comparison needs.
 *
 * @param model     borrowed for the call, but for what it shares with its head: strings, processes
 *                  and devices must outlive the result
 * @param analysis  owned by the result on LAC_OK
 * @return LAC_OK or LAC_ERR_NOMEM. O(slices)
 */
LAC_MUST_USE enum lac_status lac_rank_keep(const struct lac_model *model,
                                           struct lac_analysis *analysis,
                                           struct lac_rank_kept **ret_kept);

/** NULL is allowed. */
void lac_rank_kept_destroy(struct lac_rank_kept *kept);

/** Borrowed, as long as `kept`. */
const struct lac_model *lac_rank_kept_model(const struct lac_rank_kept *kept);
const struct lac_analysis *lac_rank_kept_analysis(const struct lac_rank_kept *kept);

/** Memory it holds, about: for a bound over many ranks. */
uint64_t lac_rank_kept_bytes(const struct lac_rank_kept *kept);

#endif
