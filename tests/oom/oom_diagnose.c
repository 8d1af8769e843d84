/*
 * The n-th allocation of a diagnosis fails, for every n: it answers LAC_ERR_NOMEM and leaks nothing
 * (the leak check of the sanitizer build sees the rest).
 */

#include "analysis/diagnose/ranks/ranks.h"
#include "tests/support/oom.h"
#include "tests/support/trace_draw.h"

#include <stdio.h>

enum { RANKS = 3 };

/** Six steps with everything in them: waits, fetches, copies, gaps of every cause, two devices. */
static const char *drawing(void)
{
    static char text[16384];
    size_t used = 0;
    for (int i = 0; i < 6; i++) {
        int t = i * 10000;
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "main range %d 10000 ProfilerStep#%d\n"
                                 "main wait %d 3000 batch=%d\n"
                                 "w%d fetch %d 9000 batch=%d worker=%d\n"
                                 "main call %d 600 #%d cudaMemcpyAsync\n"
                                 "gpu0.7 copy %d 500 #%d HtoD pageable 1000000\n"
                                 "main call %d 10 cudaMalloc\n"
                                 "main call %d 5 #%d cudaLaunchKernel\n"
                                 "gpu0.7 kernel %d 1000 #%d void nchwToNhwcKernel<float>(int)\n"
                                 "main call %d 5 #%d cudaLaunchKernel\n"
                                 "gpu0.7 kernel %d 2000 #%d volta_sgemm_64x64_nn_backward\n"
                                 "gpu1.7 kernel %d 500 ncclDevKernel_AllReduce\n"
                                 "main call %d 2500 cudaStreamSynchronize\n",
                                 t, i, t, i, i % 2, t, i, i % 2, t + 3100, 4 * i + 1, t + 3150,
                                 4 * i + 1, t + 3710, t + 3800, 4 * i + 2, t + 3850, 4 * i + 2,
                                 t + 3900, 4 * i + 3, t + 4900, 4 * i + 3, t + 4950, t + 4500);
    }
    for (int i = 0; i < 24; i++) { /* workers whose items can be compared, their reads, samples */
        int t = i * 2000;
        int w = 4 + i % 3;
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "w%d fetch %d 900 batch=%d worker=%d cpu=800\n"
                                 "w%d part %d 400 loader.item batch=%d worker=%d cpu=5\n"
                                 "w%d part %d 300 loader.read batch=%d worker=%d cpu=5 bytes=1000\n"
                                 "w%d count %d 30 thread: on a core (%%)\n",
                                 w, t, i, w, w, t + 1, i, w, w, t + 2, i, w, w, t);
    }
    return text;
}

/** Until it gets through, be it without something that it can do without. */
static uint64_t refuse_diagnosis(const struct lac_model *model)
{
    struct lac_diagnose_options options = {.has_what_if = true};
    enum lac_status status = LAC_ERR_NOMEM;
    uint64_t tried = 0;
    lac_what_if_clear(&options.what_if);
    options.what_if.workers = 4;
    for (; status != LAC_OK; tried++) {
        struct lac_analysis *analysis = NULL;
        struct lac_error error = {0};
        oom_after(tried);
        status = lac_diagnose(model, &options, &analysis, &error);
        (void)oom_over();
        if (status == LAC_OK) {
            oom_require(lac_analysis_is_valid(analysis) && analysis->finding_count > 0,
                        "an allocation failed unnoticed");
        } else {
            oom_require(status == LAC_ERR_NOMEM && analysis == NULL, "out of memory was not told");
        }
        lac_analysis_destroy(analysis);
    }
    return tried - 1;
}

static enum lac_status compare_ranks(void *ranks)
{
    struct lac_run *run = NULL;
    enum lac_status status = lac_ranks_compare(ranks, RANKS, &run);
    oom_require(status != LAC_OK || (run->has_finding && run->late == 1), "half a comparison");
    lac_run_destroy(run);
    return status;
}

/** The tracks that a diagnosis adds: a model that is valid is left, whatever came of it. */
static uint64_t refuse_tracks(void)
{
    enum lac_status status = LAC_ERR_NOMEM;
    uint64_t tried = 0;
    for (; status != LAC_OK; tried++) {
        struct lac_model *model = trace_draw(drawing());
        struct lac_analysis *analysis = trace_diagnose(model);
        oom_after(tried);
        status = lac_diagnose_add_tracks(analysis, model);
        (void)oom_over();
        oom_require(status == LAC_OK || status == LAC_ERR_NOMEM, "out of memory was not told");
        oom_require(lac_model_is_valid(model), "a model is damaged");
        if (status == LAC_OK) {
            oom_require(model->tracks[model->track_count - 1].kind == LAC_TRACK_GPU_RANGE,
                        "an allocation failed unnoticed");
        }
        lac_analysis_destroy(analysis);
        lac_model_destroy(model);
    }
    return tried - 1;
}

/** The same for the ranks of a run: tables, matching, replay, texts. */
static uint64_t refuse_ranks(void)
{
    char text[4096];
    struct lac_rank_trace ranks[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
        size_t used = 0;
        for (int i = 0; i < 6; i++) {
            int t = i * 10000;
            int late = rank == 1 ? 3000 : 0;
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "main range %d 9900 ProfilerStep#%d\n"
                                     "gpu0.7 kernel %d %d dgrad\n"
                                     "gpu0.7 kernel %d %d ncclDevKernel_AllReduce\n",
                                     t, i, t + 10, 4000 + late, t + 4010 + late, 4000 - late);
        }
        struct lac_model *model = trace_draw_with(text, NULL, 7);
        ranks[rank] = (struct lac_rank_trace){model, trace_diagnose(model)};
    }
    uint64_t tried = oom_each("ranks", compare_ranks, ranks, 1);
    for (int rank = 0; rank < RANKS; rank++) {
        lac_analysis_destroy((struct lac_analysis *)(uintptr_t)ranks[rank].analysis);
        lac_model_destroy((struct lac_model *)(uintptr_t)ranks[rank].model);
    }
    return tried;
}

int main(void)
{
    struct lac_model *model = trace_draw_with(
        drawing(), "{\"lacuna\":{\"settings\":{\"batch_size\":8,\"loader_at\":\"train.py:8\"}}}",
        7);
    uint64_t tried = refuse_diagnosis(model);
    lac_model_destroy(model);
    uint64_t of_tracks = refuse_tracks();
    uint64_t of_ranks = refuse_ranks();
    oom_require(tried >= 40 && of_tracks >= 30 && of_ranks >= 20, "too few allocations to be true");
    printf("%llu, %llu and %llu allocations refused in turn\n3 passed, 0 failed\n",
           (unsigned long long)tried, (unsigned long long)of_tracks, (unsigned long long)of_ranks);
    return 0;
}
