#include "server/demo/series.h"

#include "analysis/model/status.h"
#include "server/demo/files.h"
#include "server/demo/pipeline.h"
#include "server/demo/trace_json.h"
#include "server/demo/truth.h"

#include <stdint.h>
#include <stdio.h>

static const struct lac_demo_stage STAGES[LAC_DEMO_STAGE_COUNT] = {
    {"1-two-workers", "2 workers, contiguous tensors, pageable memory",
     "The published example of a CPU bottleneck: two workers, the GPU half used.", 0, 2, false,
     LAC_DEMO_COPY_PAGEABLE, 750},
    {"2-five-workers", "5 workers", "Published: 690 images a second, GPU utilization 90 %.", 690, 5,
     false, LAC_DEMO_COPY_PAGEABLE, 371},
    {"3-channels-last", "channels-last tensors: no layout conversions",
     "Published: 850 images a second while GPU utilization falls from 90 to 68 %.", 850, 5, true,
     LAC_DEMO_COPY_PAGEABLE, 300},
    {"4-seven-workers", "7 workers", "Published: 950 images a second, GPU utilization 83 %.", 950,
     7, true, LAC_DEMO_COPY_PAGEABLE, 269},
    {"5-pinned-memory", "batches in pinned memory", "Published without a figure of its own.", 0, 7,
     true, LAC_DEMO_COPY_PINNED, 245},
    {"6-async-copies", "asynchronous copies on a copy stream, one batch ahead",
     "Published without a figure of its own.", 0, 7, true, LAC_DEMO_COPY_PREFETCH, 230},
};

const struct lac_demo_stage *lac_demo_stage(int stage)
{
    return &STAGES[stage];
}

struct lac_demo_pipeline lac_demo_stage_pipeline(int stage, bool in_phase, uint64_t seed)
{
    const struct lac_demo_stage *s = &STAGES[stage];
    struct lac_demo_pipeline p;
    lac_demo_pipeline_default(&p);
    p.seed = seed;
    p.workers = s->workers;
    p.channels_last = s->channels_last;
    p.copy_mode = s->copy_mode;
    p.recorded_steps = 28 / s->workers * s->workers; /* whole cycles: 28, 25 or 28 steps */
    p.in_phase = in_phase;
    p.jitter_ppm = in_phase ? 20000 : 0;
    return p;
}

struct product {
    const struct lac_demo_pipeline *pipeline;
    const struct lac_demo_run *run;
    const struct lac_demo_truth *truth;
    struct lac_demo_caption caption;
    bool is_truth;
};

static enum lac_status write_product(FILE *out, const void *what, struct lac_error *reterr)
{
    const struct product *product = what;
    if (product->is_truth) {
        lac_demo_write_truth(out, &product->caption, product->pipeline, product->truth);
        return LAC_OK;
    }
    return lac_demo_write_trace(out, product->caption.name, product->pipeline, product->run,
                                reterr);
}

static enum lac_status write_stage(const char *dir, int stage,
                                   const struct lac_demo_pipeline *pipeline, int64_t next_step_ns,
                                   const struct lac_demo_run *run, struct lac_demo_truth *truth,
                                   struct lac_error *reterr)
{
    char path[LAC_DEMO_PATH_BYTES];
    const struct lac_demo_stage *s = &STAGES[stage];
    struct product product = {
        .pipeline = pipeline,
        .run = run,
        .truth = truth,
        .caption = {s->name, s->title, s->published, s->published_samples_per_s, next_step_ns},
    };
    (void)snprintf(path, sizeof(path), "%s/%s.json", dir, s->name);
    enum lac_status status = lac_demo_write_file(path, write_product, &product, reterr);
    if (status == LAC_OK) {
        product.is_truth = true;
        (void)snprintf(path, sizeof(path), "%s/%s.truth.json", dir, s->name);
        status = lac_demo_write_file(path, write_product, &product, reterr);
    }
    return status;
}

static enum lac_status write_variant(const char *dir, bool in_phase, uint64_t seed,
                                     void (*progress)(const char *path), struct lac_error *reterr)
{
    enum lac_status status = lac_demo_make_dir(dir, reterr);
    int64_t next_step_ns = 0; /* from the last to the first: a stage names its successor's step */
    for (int stage = LAC_DEMO_STAGE_COUNT - 1; stage >= 0 && status == LAC_OK; stage--) {
        struct lac_demo_pipeline pipeline = lac_demo_stage_pipeline(stage, in_phase, seed);
        struct lac_demo_run run;
        struct lac_demo_truth truth;
        char path[LAC_DEMO_PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s/%s.json", dir, STAGES[stage].name);
        if (progress != NULL) {
            progress(path);
        }
        status = lac_demo_simulate(&pipeline, &run, reterr);
        if (status != LAC_OK) {
            break;
        }
        status = lac_demo_truth_of(&pipeline, &run, &truth, reterr);
        if (status == LAC_OK) {
            status = write_stage(dir, stage, &pipeline, next_step_ns, &run, &truth, reterr);
            next_step_ns = truth.step_mean_ns;
        }
        lac_demo_run_done(&run);
    }
    return status;
}

enum lac_status lac_demo_write_series(const char *dir, bool in_phase, uint64_t seed,
                                      void (*progress)(const char *path), struct lac_error *reterr)
{
    enum lac_status status = write_variant(dir, false, seed, progress, reterr);
    if (status == LAC_OK && in_phase) {
        char sub[LAC_DEMO_PATH_BYTES];
        if (snprintf(sub, sizeof(sub), "%s/in-phase", dir) >= (int)sizeof(sub)) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the folder's name is too long");
        }
        status = write_variant(sub, true, seed, progress, reterr);
    }
    return status;
}
