#ifndef LAC_SERVER_DEMO_PIPELINE_H
#define LAC_SERVER_DEMO_PIPELINE_H

/*
 * A training loop as a discrete-event simulation: parameters in, timed events out.
 *
 *   index queues          result queue        data queue
 *   main -> worker k  --------------> pin thread ------> main -> launches -> GPU streams
 *     ^                                                   |
 *     +------------------ one index per batch taken ------+
 *
 * Actors (workers, pin thread, main) wake each other through the queues; between two waits an actor
 * runs on its own clock. Streams are first-in-first-out servers: the times of an operation are
 * known when it is launched. Nothing is random but the fetch jitter, which a seed decides, so the
 * same parameters give the same events, byte for byte.
 *
 * This is the ground truth that the diagnosis is tested against: it shares nothing with it.
 */

#include "analysis/model/status.h"
#include "server/demo/network.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_DEMO_WORKERS_MAX = 64, LAC_DEMO_STEPS_MAX = 10000 };

enum lac_demo_copy_mode {
    LAC_DEMO_COPY_PAGEABLE = 0, /**< staged by the driver; the call returns when it is done */
    LAC_DEMO_COPY_PINNED,       /**< on the compute stream, then cudaStreamSynchronize */
    LAC_DEMO_COPY_PREFETCH,     /**< pinned, on a stream of its own, one batch ahead */
};

/** Everything that decides a run. Times are those of one uncontended operation. */
struct lac_demo_pipeline {
    uint64_t seed;
    int32_t warmup_steps;   /**< simulated, not recorded */
    int32_t recorded_steps; /**< the trace's window */
    int32_t batch_size;     /**< samples */
    int64_t batch_bytes;    /**< bytes copied to the device for one batch */

    int32_t workers;         /**< 1 .. LAC_DEMO_WORKERS_MAX */
    int32_t prefetch_factor; /**< batches asked of each worker in advance */
    int64_t fetch_ns;        /**< a worker's time for one batch */
    int32_t jitter_ppm;      /**< fetch time varies uniformly by this much either way */
    bool in_phase;  /**< all workers start together, else worker k starts k/n of a fetch late */
    int64_t pin_ns; /**< pin thread's time for one batch (not with pageable copies) */

    enum lac_demo_copy_mode copy_mode;
    int64_t copy_pageable_nchw_ns; /**< pageable copy of one batch, contiguous */
    int64_t copy_pageable_nhwc_ns; /**< the same, channels-last */
    int64_t copy_pinned_ns;

    bool channels_last;
    int64_t compute_ns; /**< GPU time of a step without layout kernels, pauses between included */
    int64_t layout_ns;  /**< GPU time of the layout kernels of a step (none in channels-last) */

    int64_t op_ns;           /**< framework's time before an operator's first launch */
    int64_t launch_ns;       /**< one launch call, when the queue has room */
    int64_t latency_ns;      /**< return of a launch to the earliest start on the device */
    int64_t kernel_pause_ns; /**< end of one operation to the earliest start of the next */
    int32_t queue_max;       /**< operations a stream may have waiting; then launching blocks */
    bool loss_item;          /**< print the loss each step: a device-to-host copy that blocks */
};

enum lac_demo_thread {
    LAC_DEMO_MAIN = 0,
    LAC_DEMO_AUTOGRAD,
    LAC_DEMO_PIN,
    LAC_DEMO_COMPUTE_STREAM,
    LAC_DEMO_COPY_STREAM,
    LAC_DEMO_COMM_STREAM,
    LAC_DEMO_WORKER, /**< worker k is LAC_DEMO_WORKER + k */
};

enum lac_demo_event_kind {
    LAC_DEMO_EVENT_STEP = 0, /**< number: the step */
    LAC_DEMO_EVENT_RANGE,
    LAC_DEMO_EVENT_LOADER, /**< number: the batch */
    LAC_DEMO_EVENT_OP,
    LAC_DEMO_EVENT_API,
    LAC_DEMO_EVENT_KERNEL,
    LAC_DEMO_EVENT_COPY,
};

struct lac_demo_event {
    int64_t start_ns;
    int64_t dur_ns;
    const char *name;
    const struct lac_demo_kernel *kernel; /**< of a kernel */
    int64_t bytes;                        /**< of a copy */
    int64_t cpu_ns;                       /**< of a loader range, -1 unknown */
    uint32_t correlation;                 /**< of calls and GPU operations, 0 none */
    uint32_t external_id;                 /**< operator, and those of what it launched */
    int32_t number;                       /**< step or batch, -1 none */
    int32_t worker;                       /**< of a loader range, -1 the training process */
    uint16_t thread;                      /**< enum lac_demo_thread, plus the worker */
    uint8_t kind;                         /**< enum lac_demo_event_kind */
    uint32_t graph_node;                  /**< of a kernel launched by a graph, 0 none */
    bool from_pinned;                     /**< of a copy: host side */
    bool to_host;                         /**< of a copy: direction */
};

/**
 * Append an event of a thread, of which nothing else is known yet.
 *
 * @param events, count, capacity the array, which grows
 * @return the event, to be filled in further; NULL when out of memory
 */
struct lac_demo_event *lac_demo_event_add(struct lac_demo_event **events, uint64_t *count,
                                          uint64_t *capacity, int thread,
                                          enum lac_demo_event_kind kind);

/** What a simulation gives. Events are in the order of their completion, not of their start. */
struct lac_demo_run {
    struct lac_demo_event *events;
    uint64_t event_count;
    uint64_t event_capacity;
    int64_t window_start_ns;  /**< start of the first recorded step */
    int64_t window_end_ns;    /**< end of the closing cudaDeviceSynchronize */
    int64_t *step_start_ns;   /**< recorded_steps + 1 entries, the last is the last step's end */
    int64_t host_ns_per_step; /**< what the host alone needs for a step, mean */
    int64_t fetch_mean_ns;    /**< of the batches fetched inside the window */
    struct lac_demo_network network; /**< owns the names and kernels that events point to */
};

/** A sane pipeline to change: the published story's first stage. */
void lac_demo_pipeline_default(struct lac_demo_pipeline *pipeline);

/**
 * Run the simulation.
 *
 * @param ret_run on LAC_OK filled; free with lac_demo_run_done()
 * @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_MISUSE when a parameter is out of range
 * Cost: about 0.2 us an event.
 */
LAC_MUST_USE enum lac_status lac_demo_simulate(const struct lac_demo_pipeline *pipeline,
                                               struct lac_demo_run *ret_run,
                                               struct lac_error *reterr);

/** Free the contents; a zeroed struct is allowed. */
void lac_demo_run_done(struct lac_demo_run *run);

#endif
