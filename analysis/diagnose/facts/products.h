#ifndef LAC_ANALYSIS_DIAGNOSE_PRODUCTS_H
#define LAC_ANALYSIS_DIAGNOSE_PRODUCTS_H

/*
 * Private: the matrix products, convolutions and attention of a trace with recorded shapes: how
 * many operations they are, which kernels did them, and how fast.
 */

#include "analysis/diagnose/facts/facts.h"    // IWYU pragma: export
#include "analysis/diagnose/names/op_flops.h" // IWYU pragma: export

/** Calls of one operator with the same shapes, in kept steps of the main device (without steps: in
 *  the whole recording). */
struct lac_product_group {
    uint64_t key;
    uint32_t name;    /**< string id of the operator */
    uint32_t longest; /**< slice of its longest kernel */
    uint64_t count;
    int64_t size[4]; /**< batch, m, n, k; 0 of what is no plain product */
    enum lac_flop_kind kind;
    enum lac_precision precision;
    int64_t flops;      /**< of all calls */
    double ns;          /**< of their kernels */
    double ideal_ns;    /**< at the peak; 0 unknown */
    double bound_ns;    /**< at the peak or at the memory's pace, whichever takes longer */
    int64_t longest_ns; /**< that kernel */
};

struct lac_products {
    struct lac_product_group *groups; /**< in order of appearance */
    uint32_t group_count, group_capacity;
    const struct lac_device_peak *peak; /**< of the main device, or NULL */
    double steps;                       /**< that the groups cover; 0 without steps */
    uint32_t precisions; /**< bits: those that the peak is a blend of; one where it is of one */
};

/** Count them: efficiency of the analysis, operations of its kernels, facts->products. After the
 *  steps are known. */
LAC_MUST_USE enum lac_status lac_products_measure(struct lac_facts *facts);
void lac_products_destroy(struct lac_products *products);

#endif
