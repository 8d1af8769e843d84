#ifndef LAC_ANALYSIS_DIAGNOSE_OP_SHAPES_H
#define LAC_ANALYSIS_DIAGNOSE_OP_SHAPES_H

/*
 * Private: shapes of an operator's inputs, where the recorder kept them ("Input Dims": [[8, 64],
 * [64, 512]]). Nothing is guessed: what cannot be read is not recorded.
 */

#include "analysis/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_SHAPE_INPUTS = 3, LAC_SHAPE_DIMS = 6 };

struct lac_shape {
    int count; /**< dimensions; 0: a scalar, or not recorded */
    int64_t dims[LAC_SHAPE_DIMS];
};

/** Shapes of the first inputs of the operator `slice`. @return false when none is recorded */
bool lac_op_shapes(const struct lac_model *model, uint64_t slice,
                   struct lac_shape ret_inputs[LAC_SHAPE_INPUTS]);

/** Rows, columns and inner length of a matrix product, or batch and channels of a convolution. */
struct lac_product {
    const char *names[3]; /**< "M", "N", "K"; "batch", "input channels", "output channels" */
    int64_t sizes[3];     /**< 0 when it does not apply */
};

/** What the operator named `name` multiplies. @return false for any other operator */
bool lac_op_product(const char *name, const struct lac_shape inputs[LAC_SHAPE_INPUTS],
                    struct lac_product *ret_product);

/** Elements that the kernel's name says it takes at once ("..._align2", "aligna4"); 0 says none. */
int64_t lac_kernel_alignment(const char *name);

#endif
