#ifndef LAC_COLLECTOR_HANG_HANG_VERDICT_H
#define LAC_COLLECTOR_HANG_HANG_VERDICT_H

/*
 * Whom a job waits for, from what its processes do. Pure: no input or output.
 *
 *   each rank: in a collective | in backward | waits for a batch | compiles | ... | does something else
 *   the rank that is not where the others wait is the one that they wait for; where all wait, the one
 *   that waits elsewhere
 */

#include "collector/hang/hang_process.h"
#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_rule.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_hang_verdict {
    enum lac_hang_kind kind;
    int32_t rank;     /**< that the others wait for; -1: not known */
    int32_t pid;      /**< of it, or of its loader's worker; 0: nobody trains */
    char where[512];  /**< "FILE:LINE" of the script; "" not known */
    char source[256]; /**< that line; "" not known */
    char doing[512];  /**< "rank 1 waits in barrier at train.py:31 (main)" */
    char others[512]; /**< "rank 0, 2 wait in all_reduce at train.py:40"; "" none */
    char nccl[512];   /**< "AllReduce: rank 3 has launched 60, 7 ranks 61"; "" nothing to tell */
};

/** Note for each process what NCCL's RAS service says of its rank. @return false: it speaks of another
 * job */
bool lac_hang_note_nccl(struct lac_hang_process *processes, uint32_t count,
                        const struct lac_ras *ras);

/** @param processes of the job, all launchers' together; those with is_rank train.
 * @param ras what was noted of them; NULL: nothing is known */
void lac_hang_judge(const struct lac_hang_process *processes, uint32_t count,
                    const struct lac_ras *ras, struct lac_hang_verdict *ret);

#endif
