#ifndef LAC_ANALYSIS_DIAGNOSE_WORK_H
#define LAC_ANALYSIS_DIAGNOSE_WORK_H

/*
 * Private: the main device's operations inside kept steps, in order of start, each with the host
 * operator that launched it. Steps repeat: the first WORK_OPS_MAX operations stand for all.
 */

#include "analysis/diagnose/facts/diagnosis.h" // IWYU pragma: export

/** What the host was in when it launched an operation. */
enum lac_work_context {
    LAC_WORK_IN_OPTIMIZER = 1,
    LAC_WORK_IN_BACKWARD = 2,
    LAC_WORK_IS_RECOMPUTED = 4, /**< a forward operator inside a backward node */
};

struct lac_work_op {
    uint32_t slice;
    uint32_t exposed_ns; /**< part of it while nothing else ran; 4.2 s at most */
    uint32_t op;         /**< innermost operator or range around its launch, or LAC_NONE */
    uint8_t context;     /**< bits of enum lac_work_context */
};

struct lac_work {
    struct lac_work_op *ops;
    uint64_t count;
    double steps; /**< kept steps that they cover */
};

/** The operations, filled before any finding is looked for; empty without steps. */
LAC_MUST_USE enum lac_status lac_work_collect(struct lac_diagnosis *diagnosis);
void lac_work_destroy(struct lac_work *work);

/** Row of the kernel that the operation is, NULL when it is none. */
const struct lac_kernel_facts *lac_work_kernel(const struct lac_diagnosis *diagnosis,
                                               const struct lac_work_op *op);
/** What a person calls that kernel; borrowed from the analysis. */
const char *lac_work_kernel_name(const struct lac_diagnosis *diagnosis, uint64_t slice);
/** Name of the operator that launched it, "" when not recorded. */
const char *lac_work_op_name(const struct lac_diagnosis *diagnosis, const struct lac_work_op *op);

/** Entry of the main device in the model, NULL when nothing is recorded of it. */
const struct lac_device *lac_main_device(const struct lac_diagnosis *diagnosis);

#endif
