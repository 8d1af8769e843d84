#ifndef LAC_SERVER_DEMO_GPU_STREAM_H
#define LAC_SERVER_DEMO_GPU_STREAM_H

/*
 * A CUDA stream as a first-in-first-out server with a bounded queue of launches.
 *
 * An operation starts when its launch has reached the device, its predecessor in the stream has
 * ended and whatever it waits for has ended: all known at launch, so nothing is ever revised.
 */

#include "analysis/model/status.h"

#include <stdint.h>

struct lac_demo_stream {
    int64_t tail_end_ns; /**< end of the latest operation */
    int64_t *start_ns;   /**< ring: starts of the last queue_max operations */
    uint64_t count;      /**< operations so far */
    uint64_t queue_max;
    int64_t not_before_ns; /**< of the next operation: an event it waits for */
};

/** Times of one launch. */
struct lac_demo_launch {
    int64_t api_end_ns; /**< the call returns; later than asked when the queue was full */
    int64_t blocked_ns; /**< how much later */
    int64_t start_ns;
    int64_t end_ns;
};

/** @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_demo_stream_init(struct lac_demo_stream *stream,
                                                  uint64_t queue_max);
void lac_demo_stream_done(struct lac_demo_stream *stream);

/** Launch an operation of `dur_ns` with a call of [at_ns, at_ns + call_ns). */
struct lac_demo_launch lac_demo_stream_launch(struct lac_demo_stream *stream, int64_t at_ns,
                                              int64_t call_ns, int64_t latency_ns, int64_t pause_ns,
                                              int64_t dur_ns);

#endif
