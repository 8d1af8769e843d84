#ifndef LAC_ANALYSIS_DIAGNOSE_OPERATIONS_H
#define LAC_ANALYSIS_DIAGNOSE_OPERATIONS_H

/*
 * Private: walk the operations (kernels, copies, memsets) of one device in order of start, over
 * all its streams. Equal starts: in order of tracks.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** A stream's next operation. */
struct lac_op_cursor {
    int64_t start_ns;
    uint64_t slice; /**< next one */
    uint64_t end;
    uint32_t order; /**< of the track */
};

struct lac_operations {
    const struct lac_slices *slices;
    struct lac_op_cursor *heap; /**< smallest (start, order) first */
    uint32_t count;
};

/** Start at the first operation of device `device_id`. */
LAC_MUST_USE enum lac_status lac_operations_init(struct lac_operations *operations,
                                                 const struct lac_facts *facts, int64_t device_id);
void lac_operations_done(struct lac_operations *operations);

/** Next operation, or false at the end. */
bool lac_operations_next(struct lac_operations *operations, uint64_t *ret_slice);

#endif
