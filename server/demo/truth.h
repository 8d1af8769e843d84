#ifndef LAC_SERVER_DEMO_TRUTH_H
#define LAC_SERVER_DEMO_TRUTH_H

/*
 * What is true of a simulated run: measured on its events in the plainest way, and, for changes, by
 * running the simulation again with that one change.
 */

#include "server/demo/pipeline.h"

#include <stdio.h>

enum lac_demo_change {
    LAC_DEMO_CHANGE_WORKERS = 0, /**< ceil(1.15 f / s) workers */
    LAC_DEMO_CHANGE_LAYOUT,      /**< channels-last */
    LAC_DEMO_CHANGE_PINNED,
    LAC_DEMO_CHANGE_ASYNC, /**< copies on a stream of their own; from pageable memory pinned too */
    LAC_DEMO_CHANGE_COUNT_
};

struct lac_demo_truth {
    int64_t step_mean_ns;
    int64_t step_median_ns;
    int64_t step_min_ns;
    int64_t step_max_ns;
    /* what each part needs for one step, alone */
    int64_t need_data_ns;
    int64_t need_host_ns;
    int64_t need_copies_ns;
    int64_t need_gpu_ns;
    int64_t layout_ns; /**< of need_gpu_ns */
    /* the device over the window's operations */
    int64_t span_ns;
    int64_t busy_ns;
    int64_t computing_ns;
    int64_t idle_data_ns;    /**< main waited for a batch */
    int64_t idle_host_ns;    /**< main had a batch and had not yet launched what ended the gap */
    int64_t idle_latency_ns; /**< it was launched but had not begun */
    int64_t unstarved_ns;    /**< s: the mean step with more workers than could ever be used */
    int32_t workers_wanted;  /**< ceil(1.15 f / s) */
    bool is_possible[LAC_DEMO_CHANGE_COUNT_];
    int64_t changed_ns[LAC_DEMO_CHANGE_COUNT_]; /**< mean step after that change */
    enum lac_demo_change best; /**< LAC_DEMO_CHANGE_COUNT_: none gains half a percent */
};

/** @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_MISUSE. Cost: one simulation per change. */
LAC_MUST_USE enum lac_status lac_demo_truth_of(const struct lac_demo_pipeline *pipeline,
                                               const struct lac_demo_run *run,
                                               struct lac_demo_truth *ret_truth,
                                               struct lac_error *reterr);

/** The pipeline after a change. `workers` is what LAC_DEMO_CHANGE_WORKERS sets. */
struct lac_demo_pipeline lac_demo_changed(const struct lac_demo_pipeline *pipeline,
                                          enum lac_demo_change change, int32_t workers);

/** The finding that proposes a change: "input-starvation", ...; "gpu-bound" for none. */
const char *lac_demo_change_finding(enum lac_demo_change change);

/** What stands beside the trace as NAME.truth.json. */
struct lac_demo_caption {
    const char *name;
    const char *title;
    const char *published;          /**< the story's figures, in a sentence */
    double published_samples_per_s; /**< 0: none given */
    int64_t next_step_ns;           /**< mean step of the next trace of the series, 0 none */
};

/** Write it. Errors show in ferror(out). */
void lac_demo_write_truth(FILE *out, const struct lac_demo_caption *caption,
                          const struct lac_demo_pipeline *pipeline,
                          const struct lac_demo_truth *truth);

#endif
