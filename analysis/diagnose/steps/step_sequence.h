#ifndef LAC_ANALYSIS_DIAGNOSE_STEP_SEQUENCE_H
#define LAC_ANALYSIS_DIAGNOSE_STEP_SEQUENCE_H

/*
 * Private: the kernels of the stream that computes most, in order. One stream alone, because its
 * order is the program's; streams beside each other are not in the same order twice. Copies and
 * memsets are left out: checkpoints and logging differ in them, not steps.
 */

#include "analysis/diagnose/steps/steps.h" // IWYU pragma: export

struct lac_sequence {
    const struct lac_slices *slices;
    uint64_t at, end;
    uint64_t count; /**< kernels passed, the last one included */
    int64_t
        before_end_ns; /**< end of the kernel before the last one; its own start for the first */
    int64_t last_end_ns;
};

/** Before the first kernel. @return false without kernels. O(kernels of the device) */
bool lac_sequence_begin(const struct lac_facts *facts, struct lac_sequence *ret_sequence);

/** The next kernel, or false at the end. */
bool lac_sequence_next(struct lac_sequence *sequence, uint64_t *ret_slice);

#endif
