#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_RANKS_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_RANKS_H

/* Which processes of a recording are which ranks: of torchrun, of mp.spawn, of a batch system, and
 * of several jobs at once, as a trainer and the engine that samples for it. */

#include "analysis/import/spool/spool_read.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/** Of a process that belongs to no rank, or to each. */
#define LAC_SPOOL_NO_RANK UINT32_MAX

/** A rank: `rank` of `world_size`. Two jobs of the same size differ in `group`, from 1 on. */
struct lac_spool_rank {
    int32_t rank;
    int32_t world_size;
    uint32_t group; /**< 0: there is one job of that size */
};

struct lac_spool_ranks {
    struct lac_spool_rank *at; /**< in order of (world size, largest first, group, rank) */
    size_t count;              /**< 0: the recording is not of several ranks */
    uint32_t *of_file;         /**< index into `at` of each file, or LAC_SPOOL_NO_RANK */
};

/**
 * Tell the ranks of `count` spools apart and write each one's rank and world size into `infos`.
 *
 * What a process told of itself counts first, then what its nearest ancestor told, so that workers
 * belong to the rank that started them; then the environment. Of the environment only the largest
 * world counts: a launcher's task that starts ranks is none.
 *
 * @return LAC_OK or LAC_ERR_NOMEM. `*ret` is the caller's to free with lac_spool_ranks_done().
 * Cost: O(count log count)
 */
LAC_MUST_USE enum lac_status lac_spool_ranks_find(struct lac_spool_info *const *infos, size_t count,
                                                  struct lac_spool_ranks *ret);

void lac_spool_ranks_done(struct lac_spool_ranks *ranks);

#endif
