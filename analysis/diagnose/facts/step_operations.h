#ifndef LAC_ANALYSIS_DIAGNOSE_STEP_OPERATIONS_H
#define LAC_ANALYSIS_DIAGNOSE_STEP_OPERATIONS_H

/*
 * Private: the main device's operations of kept steps, in order of start, each with the host
 * operator that launched it. An operation is of the step that launched it: the device may come to it
 * when that step's time is over. Steps repeat: the first WORK_OPS_MAX operations stand for all.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** What the host was in when it launched an operation. */
enum lac_operation_context {
    LAC_OPERATION_IN_OPTIMIZER = 1,
    LAC_OPERATION_IN_BACKWARD = 2,
    LAC_OPERATION_IS_RECOMPUTED = 4, /**< a forward operator inside a backward node */
    LAC_OPERATION_ACCUMULATES = 8,   /**< added to the gradient of a parameter */
};

struct lac_step_operation {
    uint32_t slice;
    uint32_t exposed_ns; /**< its share of the partition (operations.h); 4.2 s at most */
    uint32_t sole_ns;    /**< of it while no other operation of its part ran: what goes with it */
    uint32_t before,
        after;       /**< index of the operation before and behind it on its stream, LAC_NONE */
    uint32_t op;     /**< innermost operator or range around its launch, or LAC_NONE */
    uint8_t context; /**< bits of enum lac_operation_context */
};

struct lac_step_operations {
    struct lac_step_operation *ops;
    uint64_t count;
    double steps; /**< kept steps that they cover */
};

/** The operations, filled before any finding is looked for; empty without steps. */
LAC_MUST_USE enum lac_status lac_step_operations_collect(struct lac_facts *facts);
void lac_step_operations_destroy(struct lac_step_operations *work);

/** Find launched_from_ns; after the steps. */
LAC_MUST_USE enum lac_status lac_launched_from_collect(struct lac_facts *facts);
/** Whether an operation is of a kept step: by when the host did what led to it (its launch, the
 *  operator around that), by its own time where that is LAC_NONE or no mark of the host found steps.
 *  What was launched before the recording is of none. */
bool lac_is_of_kept_step(const struct lac_facts *facts, uint32_t host_slice, uint64_t operation);

/** Whether it is an operator of a forward pass that no formula of a backward pass uses: inside a
 *  backward node it runs again. */
bool lac_is_forward_operator(const char *name);

/** Row of the kernel that the operation is, NULL when it is none. */
const struct lac_kernel_facts *lac_step_operation_kernel(const struct lac_facts *facts,
                                                         const struct lac_step_operation *op);
/** What a person calls that kernel; borrowed from the analysis. */
const char *lac_step_operation_kernel_name(const struct lac_facts *facts, uint64_t slice);
/** Name of the operator that launched it, "" when not recorded. */
const char *lac_step_operation_name(const struct lac_facts *facts,
                                    const struct lac_step_operation *op);

/** Entry of the main device in the model, NULL when nothing is recorded of it. */
const struct lac_device *lac_main_device(const struct lac_facts *facts);

#endif
