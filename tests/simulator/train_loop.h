#ifndef LAC_TESTS_SIMULATOR_TRAIN_LOOP_H
#define LAC_TESTS_SIMULATOR_TRAIN_LOOP_H

/*
 * One rank of a random training loop, simulated.
 *
 * The training process is one line of time: Python, operators, launches, waits follow each other.
 * Whatever it waits for is known when it begins to wait: a batch from the fetches before it, the
 * device from its streams, a collective from the times at which the other ranks joined it.
 */

#include "analysis/model/status.h"
#include "server/demo/network.h"
#include "server/demo/pipeline.h"
#include "tests/simulator/scenario.h"

#include <stdbool.h>
#include <stdint.h>

/** What the training process was in, and so what idle time on the device is down to. */
enum lac_demo_blame {
    LAC_DEMO_BLAME_DATA = 0,
    LAC_DEMO_BLAME_SYNC,
    LAC_DEMO_BLAME_LAUNCH,
    LAC_DEMO_BLAME_COPY,
    LAC_DEMO_BLAME_ALLOCATOR,
    LAC_DEMO_BLAME_MODULE,
    LAC_DEMO_BLAME_COMM,
    LAC_DEMO_BLAME_HOST,
    LAC_DEMO_BLAME_COUNT_
};

/** What the loop was at beside its training. */
struct lac_demo_beside {
    const char *phase; /**< "validation", "checkpoint", "epoch_end", "recompilation" */
    int64_t start_ns, end_ns;
    int32_t step; /**< recorded, from 0 */
};

struct lac_demo_loop_run {
    struct lac_demo_event *events; /**< inside the window */
    uint64_t event_count;
    uint64_t event_capacity;
    int64_t window_start_ns;
    int64_t window_end_ns;
    int64_t *step_start_ns; /**< recorded_steps + 1 */
    struct lac_demo_beside *besides;
    uint32_t beside_count;
    uint32_t beside_capacity;
    int64_t *joined_ns; /**< start of each collective, warm-up included */
    uint32_t joined_count;
    int64_t mean_ns; /**< mean recorded step, without the writing of checkpoints */
    int64_t pace_ns; /**< the same in the long run: while the host gets ahead it is the device's */
    int64_t fetch_mean_ns;
    int64_t span_ns; /**< device, over the window */
    int64_t busy_ns;
    int64_t idle_ns[LAC_DEMO_BLAME_COUNT_]; /**< sums to span - busy */
    struct lac_demo_network network;        /**< owns what events point to */
};

/**
 * Simulate one rank.
 *
 * @param others_ns when the last of the other ranks joined each collective, or NULL
 * @param is_quiet  times only: no events, no idle time
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_MISUSE
 * Cost: about 0.1 us an event.
 */
LAC_MUST_USE enum lac_status lac_demo_loop_run(const struct lac_demo_scenario *scenario,
                                               int32_t rank, const int64_t *others_ns,
                                               bool is_quiet, struct lac_demo_loop_run *ret_run);

/** Free the contents; a zeroed struct is allowed. */
void lac_demo_loop_done(struct lac_demo_loop_run *run);

/** "data_wait", ...: as idle_by_cause_ns names them. */
const char *lac_demo_blame_name(enum lac_demo_blame blame);

#endif
