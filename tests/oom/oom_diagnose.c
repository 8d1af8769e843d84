/*
 * The n-th allocation of a diagnosis fails, for every n: it answers LAC_ERR_NOMEM and leaks nothing
 * (the leak check of the sanitizer build sees the rest).
 */

#include "analysis/diagnose/ranks.h"
#include "tests/support/trace_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static uint64_t allocations_left = UINT64_MAX;

static bool refuse(void)
{
    if (allocations_left == 0) {
        return true;
    }
    allocations_left--;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : __real_realloc(old, size);
}

/** Six steps with everything in them: waits, fetches, copies, gaps of every cause, two devices. */
static const char *drawing(void)
{
    static char text[16384];
    size_t used = 0;
    for (int i = 0; i < 6; i++) {
        int t = i * 10000;
        used += (size_t)snprintf(text + used, sizeof text - used,
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
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "w%d fetch %d 900 batch=%d worker=%d cpu=800\n"
                                 "w%d part %d 400 loader.item batch=%d worker=%d cpu=5\n"
                                 "w%d part %d 300 loader.read batch=%d worker=%d cpu=5 bytes=1000\n"
                                 "w%d count %d 30 thread: on a core (%%)\n",
                                 w, t, i, w, w, t + 1, i, w, w, t + 2, i, w, w, t);
    }
    return text;
}

/** The same for the ranks of a run: tables, matching, replay, texts. @return false: said why */
static bool refuse_ranks(uint64_t *ret_tried)
{
    char text[4096];
    struct lac_rank_trace ranks[3];
    struct lac_run *run = NULL;
    enum lac_status status = LAC_ERR_NOMEM;
    for (int rank = 0; rank < 3; rank++) {
        size_t used = 0;
        for (int i = 0; i < 6; i++) {
            int t = i * 10000;
            int late = rank == 1 ? 3000 : 0;
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "main range %d 9900 ProfilerStep#%d\n"
                                     "gpu0.7 kernel %d %d dgrad\n"
                                     "gpu0.7 kernel %d %d ncclDevKernel_AllReduce\n",
                                     t, i, t + 10, 4000 + late, t + 4010 + late, 4000 - late);
        }
        struct lac_model *model = trace_draw_with(text, NULL, 7);
        ranks[rank] = (struct lac_rank_trace){model, trace_diagnose(model)};
    }
    for (*ret_tried = 0; status == LAC_ERR_NOMEM && *ret_tried < 10000; ++*ret_tried) {
        allocations_left = *ret_tried;
        status = lac_ranks_compare(ranks, 3, &run);
        allocations_left = UINT64_MAX;
    }
    bool is_whole = status == LAC_OK && run->has_finding && run->late == 1;
    if (!is_whole) {
        fprintf(stderr, "oom_diagnose: ranks, allocation %llu: %s\n",
                (unsigned long long)*ret_tried, lac_status_name(status));
    }
    lac_run_destroy(run);
    for (int rank = 0; rank < 3; rank++) {
        lac_analysis_destroy((struct lac_analysis *)(uintptr_t)ranks[rank].analysis);
        lac_model_destroy((struct lac_model *)(uintptr_t)ranks[rank].model);
    }
    return is_whole;
}

int main(void)
{
    struct lac_model *model = trace_draw_with(
        drawing(), "{\"lacuna\":{\"settings\":{\"batch_size\":8,\"loader_at\":\"train.py:8\"}}}",
        7);
    uint64_t tried = 0;
    struct lac_diagnose_options options = {.has_what_if = true};
    lac_what_if_clear(&options.what_if);
    options.what_if.workers = 4;
    for (;; tried++) {
        struct lac_analysis *analysis = NULL;
        struct lac_error error = {0};
        allocations_left = tried;
        enum lac_status status = lac_diagnose(model, &options, &analysis, &error);
        allocations_left = UINT64_MAX;
        if (status == LAC_OK) {
            bool is_whole = lac_analysis_is_valid(analysis) && analysis->finding_count > 0;
            lac_analysis_destroy(analysis);
            if (!is_whole) {
                fprintf(stderr, "oom_diagnose: allocation %llu failed unnoticed\n",
                        (unsigned long long)tried);
                return 1;
            }
            break;
        }
        if (status != LAC_ERR_NOMEM || analysis != NULL) {
            fprintf(stderr, "oom_diagnose: allocation %llu: %s\n", (unsigned long long)tried,
                    lac_status_name(status));
            return 1;
        }
    }
    lac_model_destroy(model);
    if (tried < 40) {
        fprintf(stderr, "oom_diagnose: only %llu allocations\n", (unsigned long long)tried);
        return 1;
    }
    uint64_t of_ranks = 0;
    if (!refuse_ranks(&of_ranks) || of_ranks < 20) {
        fprintf(stderr, "oom_diagnose: ranks: %llu allocations\n", (unsigned long long)of_ranks);
        return 1;
    }
    printf("%llu and %llu allocations refused in turn\n2 passed, 0 failed\n",
           (unsigned long long)tried, (unsigned long long)of_ranks);
    return 0;
}
