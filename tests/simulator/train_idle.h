#ifndef LAC_TESTS_SIMULATOR_TRAIN_IDLE_H
#define LAC_TESTS_SIMULATOR_TRAIN_IDLE_H

/* Idle time of a simulated device by what the training process was in: true by construction. */

#include "analysis/model/status.h"
#include "tests/simulator/train_loop.h"

#include <stdint.h>

/** The training process's time, piece by piece, each in something. */
struct lac_demo_line {
    struct lac_demo_piece *pieces; /**< in order, without holes */
    uint64_t count;
    uint64_t capacity;
};

struct lac_demo_piece {
    int64_t start_ns;
    int64_t end_ns;
    enum lac_demo_blame blame;
};

/** @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_demo_line_add(struct lac_demo_line *line, int64_t start_ns,
                                               int64_t end_ns, enum lac_demo_blame blame);
void lac_demo_line_done(struct lac_demo_line *line);

/**
 * Fill span, busy and idle of a run from its events.
 *
 * A gap goes by its contents up to the launch of what ended it: waiting for data, allocator and
 * module calls, copies; what is left of a gap that a blocking read opened is that read's; from
 * the launch on it is the way to the device.
 *
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_demo_measure_idle(struct lac_demo_loop_run *run,
                                                   const struct lac_demo_line *line);

#endif
