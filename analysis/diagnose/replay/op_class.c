/* What an operation of the device is to a change. */

#include "analysis/diagnose/replay/what_if_replay.h"

#include <stdint.h>

static enum lac_op_class copy_class(const struct lac_model *model, uint64_t slice,
                                    int64_t *ret_bytes)
{
    uint32_t row = model->slices.detail[slice];
    if (row == LAC_NONE || row >= model->copy_count) {
        return LAC_OP_OTHER;
    }
    const struct lac_copy *copy = &model->copies[row];
    *ret_bytes = copy->bytes;
    if (copy->copy_kind != LAC_COPY_HTOD || copy->bytes <= COPY_SMALL_BYTES) {
        return LAC_OP_OTHER;
    }
    if (copy->src == LAC_MEMORY_PAGEABLE) {
        return LAC_OP_COPY_PAGEABLE;
    }
    return copy->src == LAC_MEMORY_PINNED ? LAC_OP_COPY_PINNED : LAC_OP_OTHER;
}

enum lac_op_class lac_kernel_op_class(const struct lac_facts *facts, uint64_t slice)
{
    if (facts->model->slices.kind[slice] != LAC_SLICE_KERNEL) {
        return LAC_OP_OTHER;
    }
    const struct lac_name_class *names = lac_kernel_class_of(facts, slice);
    if (names->is_comm) {
        return LAC_OP_COMM;
    }
    if (names->layout == LAC_LAYOUT_L) {
        return LAC_OP_LAYOUT;
    }
    bool is_unused = names->is_eligible && names->tensor_core == LAC_TENSOR_CORE_NO;
    return is_unused ? LAC_OP_UNUSED_TENSOR : LAC_OP_COMPUTE;
}

enum lac_op_class lac_op_class_of(const struct lac_facts *facts, uint64_t slice, int64_t *ret_bytes)
{
    *ret_bytes = -1;
    bool is_copy = facts->model->slices.kind[slice] == LAC_SLICE_COPY;
    return is_copy ? copy_class(facts->model, slice, ret_bytes) : lac_kernel_op_class(facts, slice);
}
