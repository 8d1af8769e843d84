#ifndef LAC_ANALYSIS_DIAGNOSE_OP_FLOPS_H
#define LAC_ANALYSIS_DIAGNOSE_OP_FLOPS_H

/*
 * How many floating-point operations an operator is, from the shapes of its inputs where the
 * recorder kept them. op_flops.def says which operators and where their arguments stand. A
 * multiplication and an addition are two. Nothing is guessed: what cannot be read counts nothing.
 *
 * Shapes are untrusted: products saturate at LAC_FLOPS_MAX.
 */

#include "analysis/diagnose/names/device_peaks.h" // IWYU pragma: export
#include "analysis/model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAC_FLOPS_MAX INT64_MAX

enum lac_flop_kind {
    LAC_FLOP_NONE = 0,
    LAC_FLOP_PRODUCT,
    LAC_FLOP_LINEAR,
    LAC_FLOP_GROUPED,
    LAC_FLOP_CONV,
    LAC_FLOP_CONV_BACK,
    LAC_FLOP_CONV_PART,
    LAC_FLOP_HEADS,
    LAC_FLOP_HEADS_BACK,
    LAC_FLOP_SEATS,
    LAC_FLOP_SEATS_BACK,
    LAC_FLOP_KIND_COUNT_
};

/** Row of op_flops.def for the operator of that name, or -1. */
int lac_flop_op_of(const char *name, size_t length);
enum lac_flop_kind lac_flop_kind_of(int op);

enum { LAC_FLOP_INPUTS = 3, LAC_FLOP_DIMS = 6 };

/** A length: itself, or where the event keeps it. */
struct lac_flop_dim {
    int64_t value;
    bool varies; /**< value is an index of the event's own numbers */
};

/** What the arguments of one operator say, read once for each distinct template. */
struct lac_flop_recipe {
    int op;
    int count[LAC_FLOP_INPUTS]; /**< dimensions of each input, 0: none recorded */
    struct lac_flop_dim dims[LAC_FLOP_INPUTS][LAC_FLOP_DIMS];
    uint8_t precision; /**< enum lac_precision, by the first input's type; float32 may be TF32 */
    int8_t element_bytes;
    int8_t is_transposed, is_causal;            /**< -1 not recorded */
    int directions;                             /**< of a backward pass; -1 not recorded */
    bool has_window;                            /**< stride, padding and dilation are known */
    int32_t stride[3], padding[3], dilation[3]; /**< the last one given stands for the rest */
};

/** Read the arguments of the operator `op` from a template (model/args.h). @return false when no
 *  shape is recorded */
bool lac_flop_recipe_read(int op, const char *text, size_t length, struct lac_flop_recipe *recipe);

/** One call of an operator. */
struct lac_flop_call {
    int64_t shape[LAC_FLOP_INPUTS][LAC_FLOP_DIMS];
    int64_t flops;       /**< of the whole operator; of one direction for a CONV_BACK; 0 unknown */
    int64_t model_flops; /**< without what a fused backward pass computes again */
    int64_t bytes;       /**< inputs and output, each once; of one direction */
    int64_t size[4];     /**< batch, m, n, k of a product; of others 0 */
    bool is_causal_unknown;
};

/**
 * What one call is, with its own numbers.
 *
 * @param output_elements of a convolution whose window was not recorded: the elements of its
 *        output, where another operator shows them; 0 unknown
 */
void lac_flop_call_of(const struct lac_flop_recipe *recipe, const struct lac_model *model,
                      uint64_t slice, int64_t output_elements, struct lac_flop_call *ret_call);

/** Product of lengths, saturated. Negative ones are 0. */
int64_t lac_flop_multiply(int64_t a, int64_t b);
int64_t lac_flop_add(int64_t a, int64_t b);

/** A convolution's input and weight as one number, to find the same one again. */
uint64_t lac_flop_window_key(const struct lac_flop_recipe *recipe,
                             const struct lac_flop_call *call);

#endif
