#ifndef LAC_SERVER_DEMO_SERIES_H
#define LAC_SERVER_DEMO_SERIES_H

/*
 * The simulated training series: six runs of one training, one change each, after a published
 * optimization story (ResNet-50 on ImageNet). The published figures are captions; the truth is the
 * simulation's own.
 */

#include "server/demo/pipeline.h"

enum { LAC_DEMO_STAGE_COUNT = 6 };

struct lac_demo_stage {
    const char *name;  /**< file name without ending */
    const char *title; /**< what was changed */
    const char *published;
    double published_samples_per_s; /**< 0: none given */
    int32_t workers;
    bool channels_last;
    enum lac_demo_copy_mode copy_mode;
    double step_ms; /**< what the story's numbers make of it */
};

/** Stage 0 .. LAC_DEMO_STAGE_COUNT - 1. Static storage. */
const struct lac_demo_stage *lac_demo_stage(int stage);

/** The pipeline of a stage. In phase: all workers start together and fetch times vary by 2 %. */
struct lac_demo_pipeline lac_demo_stage_pipeline(int stage, bool in_phase, uint64_t seed);

/**
 * Write all six as DIR/NAME.json with DIR/NAME.truth.json beside each; with `in_phase` also the
 * other variant in DIR/in-phase. Folders are made. A file is complete or absent.
 *
 * @param progress told of each trace before it is written; may be NULL
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_MISUSE
 */
LAC_MUST_USE enum lac_status lac_demo_write_series(const char *dir, bool in_phase, uint64_t seed,
                                                   void (*progress)(const char *path),
                                                   struct lac_error *reterr);

#endif
