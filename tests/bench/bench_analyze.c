/*
 * Diagnosis of a large model: 20 M slices (argument: how many million) as a training loop makes
 * them: operators, launches, kernels with gaps between, a copy, a synchronization and a wait for
 * data in every step. With a second argument "python", calls of Python functions around each
 * operator, and in the wait, are most of them. Prints one line of JSON; medians of five.
 */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/builder.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPS_PER_STEP = 1500, RUNS = 5, NAMES = 120, FRAMES = 24, LOADING_FRAMES = 400 };

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bench_analyze: %s\n", what);
        exit(1);
    }
}

static uint32_t name_id(struct lac_builder *builder, const char *text)
{
    uint32_t id = 0;
    require(lac_strings_intern(&lac_builder_model(builder)->strings, text, strlen(text), &id) ==
                LAC_OK,
            "out of memory");
    return id;
}

static uint32_t track_id(struct lac_builder *builder, enum lac_track_kind kind, uint32_t process,
                         const char *name, int64_t tid, int64_t device)
{
    uint32_t track = 0;
    require(lac_builder_track(builder, kind, process, name_id(builder, name), tid, &track) ==
                LAC_OK,
            "out of memory");
    lac_builder_track_at(builder, track)->device = device;
    return track;
}

static void put(struct lac_builder *builder, uint32_t track, enum lac_slice_kind kind,
                uint32_t name, int64_t start_ns, int64_t dur_ns, uint32_t corr)
{
    struct lac_slice_in in = {.start_ns = start_ns,
                              .dur_ns = dur_ns,
                              .track = track,
                              .name = name,
                              .corr = corr,
                              .detail = LAC_NONE,
                              .kind = kind};
    require(lac_builder_slice(builder, &in) == LAC_OK, "out of memory");
}

/** Rows and names of the loop. */
struct loop {
    uint32_t main, streams[2];
    uint32_t kernels[NAMES], ops[NAMES];
    uint32_t launch, sync, wait, step;
    uint32_t frames[NAMES]; /**< of Python functions */
    bool has_python;
    uint32_t corr;
    int64_t t_ns;
};

static void loop_init(struct lac_builder *builder, struct loop *loop)
{
    uint32_t host = 0;
    uint32_t device = 0;
    require(lac_builder_process(builder, name_id(builder, "1000"), 1000, &host) == LAC_OK,
            "memory");
    require(lac_builder_process(builder, name_id(builder, "0"), 0, &device) == LAC_OK, "memory");
    loop->main = track_id(builder, LAC_TRACK_THREAD, host, "main", 1000, -1);
    loop->streams[0] = track_id(builder, LAC_TRACK_STREAM, device, "stream 7", 7, 0);
    loop->streams[1] = track_id(builder, LAC_TRACK_STREAM, device, "stream 20", 20, 0);
    static const char *const kinds[] = {
        "void at::native::vectorized_elementwise_kernel<4, functor_%d>(int)",
        "volta_fp16_s884gemm_fp16_%dx128_ldg8_f2f_nn",
        "void cudnn::bn_bw_1C11_kernel_new<%d>(float)",
        "void cudnn::ops::nchwToNhwcKernel<%d>(int)"};
    for (int i = 0; i < NAMES; i++) {
        char text[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), kinds[i % 4], i);
#pragma GCC diagnostic pop
        loop->kernels[i] = name_id(builder, text);
        snprintf(text, sizeof(text), "aten::op_%d", i);
        loop->ops[i] = name_id(builder, text);
        snprintf(text, sizeof(text), "torch/nn/modules/part_%d.py(%d): call_%d", i / 4, 10 + i, i);
        loop->frames[i] = name_id(builder, text);
    }
    loop->launch = name_id(builder, "cudaLaunchKernel");
    loop->sync = name_id(builder, "cudaStreamSynchronize");
    loop->wait = name_id(builder, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
}

/** Calls within each other from `begin_ns` to `end_ns`, each a little shorter than the one around it. */
static uint64_t add_frames(struct lac_builder *builder, const struct loop *loop, int first,
                           int count, int64_t begin_ns, int64_t end_ns)
{
    for (int f = 0; f < count; f++) {
        put(builder, loop->main, LAC_SLICE_PYTHON, loop->frames[(first + f * 5) % NAMES],
            begin_ns + f, end_ns - begin_ns - 2 * f, 0);
    }
    return (uint64_t)count;
}

/** What a batch takes while the loop waits for it: a function called for each sample. */
static uint64_t add_loading(struct lac_builder *builder, const struct loop *loop, int64_t begin_ns)
{
    uint64_t made = 0;
    for (int i = 0; i < LOADING_FRAMES / 4; i++) {
        made += add_frames(builder, loop, i, 4, begin_ns + i * 390, begin_ns + i * 390 + 380);
    }
    return made;
}

/** One step: every third kernel after a gap, every tenth on the second stream. */
static uint64_t add_step(struct lac_builder *builder, struct loop *loop, int number)
{
    int64_t begin_ns = loop->t_ns;
    char text[32];
    snprintf(text, sizeof(text), "ProfilerStep#%d", number);
    uint32_t step = name_id(builder, text);
    put(builder, loop->main, LAC_SLICE_OP, loop->wait, begin_ns + 100, 40000, 0);
    uint64_t made = loop->has_python ? add_loading(builder, loop, begin_ns + 200) : 0;
    loop->t_ns += 41000;
    int64_t device_ns = loop->t_ns + 6000;
    for (int i = 0; i < OPS_PER_STEP; i++) {
        uint32_t name = (uint32_t)(i * 7 % NAMES);
        loop->corr++;
        int64_t t = loop->t_ns;
        if (loop->has_python) {
            made += add_frames(builder, loop, i, FRAMES, t - 100, t + 9100);
        }
        put(builder, loop->main, LAC_SLICE_OP, loop->ops[name], t, 9000, 0);
        put(builder, loop->main, LAC_SLICE_OP, loop->ops[(name + 1) % NAMES], t + 500, 8000, 0);
        put(builder, loop->main, LAC_SLICE_API, loop->launch, t + 2000, 4000, loop->corr);
        device_ns = device_ns > t + 7000 ? device_ns : t + 7000;
        put(builder, loop->streams[i % 10 == 9], LAC_SLICE_KERNEL, loop->kernels[name], device_ns,
            i % 3 ? 12000 : 3000, loop->corr);
        device_ns += i % 3 ? 12000 : 3000;
        loop->t_ns += 10000;
    }
    put(builder, loop->main, LAC_SLICE_API, loop->sync, loop->t_ns, device_ns - loop->t_ns + 1000,
        0);
    loop->t_ns = device_ns + 2000;
    put(builder, loop->main, LAC_SLICE_RANGE, step, begin_ns, loop->t_ns - begin_ns, 0);
    return made + OPS_PER_STEP * 4 + 3;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/** A line of /proc/self/status in bytes: "VmRSS:", "VmHWM:". */
static double memory_bytes(const char *line)
{
    FILE *file = fopen("/proc/self/status", "r");
    char text[256];
    double bytes = 0.0;
    while (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        if (strncmp(text, line, strlen(line)) == 0) {
            bytes = strtod(text + strlen(line), NULL) * 1024.0;
        }
    }
    require(file != NULL && bytes > 0.0, "no /proc/self/status");
    fclose(file);
    return bytes;
}

/** What is in memory now; from here on VmHWM is the peak. */
static double begin_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    (void)malloc_trim(0);
    require(file != NULL && fputs("5", file) >= 0 && fclose(file) == 0, "no /proc/self/clear_refs");
    return memory_bytes("VmRSS:");
}

int main(int argc, char **argv)
{
    double millions = argc > 1 ? strtod(argv[1], NULL) : 20.0;
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    struct loop loop = {0};
    require(lac_builder_create(&builder) == LAC_OK, "out of memory");
    loop_init(builder, &loop);
    loop.has_python = argc > 2 && strcmp(argv[2], "python") == 0;
    uint64_t made = 0;
    for (int step = 0; (double)made < millions * 1e6; step++) {
        made += add_step(builder, &loop, step);
    }
    require(lac_builder_finish(builder, 0, &model) == LAC_OK, "out of memory");
    double seconds[RUNS];
    uint64_t gap_count = 0;
    uint32_t step_count = 0;
    double before_bytes = begin_peak();
    for (int i = 0; i < RUNS; i++) {
        struct lac_analysis *analysis = NULL;
        double begin_s = now_s();
        require(lac_diagnose(model, NULL, &analysis, NULL) == LAC_OK, "diagnosis failed");
        seconds[i] = now_s() - begin_s;
        gap_count = analysis->gap_count;
        step_count = analysis->step_count;
        lac_analysis_destroy(analysis);
    }
    qsort(seconds, RUNS, sizeof(seconds[0]), by_value);
    printf("{\"analyze_mev_s\": %.2f, \"analyze_s\": %.3f, \"analyze_s_min\": %.3f, "
           "\"analyze_s_max\": "
           "%.3f, \"analyze_bytes_per_slice\": %.2f, \"slices\": %llu, \"gaps\": %llu, \"steps\": "
           "%u}\n",
           (double)made / 1e6 / seconds[RUNS / 2], seconds[RUNS / 2], seconds[0], seconds[RUNS - 1],
           (memory_bytes("VmHWM:") - before_bytes) / (double)made, (unsigned long long)made,
           (unsigned long long)gap_count, (unsigned)step_count);
    lac_model_destroy(model);
    return 0;
}
