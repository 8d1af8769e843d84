#ifndef LAC_SERVER_DEMO_NETWORK_H
#define LAC_SERVER_DEMO_NETWORK_H

/*
 * The kernels of one training step of ResNet-50 in mixed precision, operator by operator.
 *
 * Costs come from shapes: a convolution takes the longer of its arithmetic and its traffic, all
 * else is traffic. They are then scaled so that a step needs exactly what the pipeline asks for.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_demo_phase { LAC_DEMO_FORWARD = 0, LAC_DEMO_BACKWARD, LAC_DEMO_OPTIMIZER };

struct lac_demo_kernel {
    const char *name;
    int64_t dur_ns;
    uint32_t grid[3];
    uint32_t block;
    uint32_t registers;
    uint32_t shared_bytes;
    bool is_layout;
};

/** An operator and what it launches. */
struct lac_demo_op {
    const char *name;
    const char *inner;  /**< operator inside it that launches, NULL: itself */
    const char *module; /**< range around consecutive operators of one module, NULL none */
    enum lac_demo_phase phase;
    uint32_t kernel_first;
    uint32_t kernel_count;
};

struct lac_demo_network {
    struct lac_demo_kernel *kernels;
    uint32_t kernel_count;
    uint32_t kernel_capacity;
    struct lac_demo_op *ops;
    uint32_t op_count;
    uint32_t op_capacity;
};

/**
 * Build one step.
 *
 * @param compute_ns durations of all kernels but layout ones plus `pause_ns` for each come to this
 * @param layout_ns  the same for layout kernels; ignored with channels_last
 * @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_MISUSE when the pauses alone take longer
 */
LAC_MUST_USE enum lac_status lac_demo_network_build(int32_t batch_size, bool channels_last,
                                                    int64_t compute_ns, int64_t layout_ns,
                                                    int64_t pause_ns,
                                                    struct lac_demo_network *ret_network);

/** Free the contents; a zeroed struct is allowed. */
void lac_demo_network_done(struct lac_demo_network *network);

#endif
