/*
 * Flame graphs of a large model: 20 M slices (argument: how many million), as a training loop makes
 * them. Prints one line of JSON: milliseconds, the median of five.
 */

#include "analysis/flame/flame.h"
#include "analysis/model/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPS_PER_STEP = 200, RUNS = 5 };

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bench_flame: %s\n", what);
        exit(1);
    }
}

static uint32_t name_id(struct lac_builder *builder, const char *prefix, int number)
{
    char text[64];
    uint32_t id = 0;
    int length = snprintf(text, sizeof(text), "%s%d", prefix, number);
    require(lac_strings_intern(&lac_builder_model(builder)->strings, text, (size_t)length, &id) ==
                LAC_OK,
            "out of memory");
    return id;
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

/* Five slices an operator: range, operator, inner operator, launch, kernel. */
static struct lac_model *training(uint64_t slice_count)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    uint32_t process, thread, stream;
    uint32_t names[4][OPS_PER_STEP];
    require(lac_builder_create(&builder) == LAC_OK, "out of memory");
    require(lac_builder_process(builder, 0, 1, &process) == LAC_OK, "out of memory");
    require(lac_builder_track(builder, LAC_TRACK_THREAD, process, name_id(builder, "t", 1), 1,
                              &thread) == LAC_OK,
            "out of memory");
    require(lac_builder_track(builder, LAC_TRACK_STREAM, process, name_id(builder, "s", 7), 7,
                              &stream) == LAC_OK,
            "out of memory");
    lac_builder_track_at(builder, stream)->device = 0;
    for (int i = 0; i < OPS_PER_STEP; i++) {
        names[0][i] = name_id(builder, "layer", i / 8);
        names[1][i] = name_id(builder, "aten::op", i % 40);
        names[2][i] = name_id(builder, "aten::inner", i % 40);
        names[3][i] = name_id(builder, "void kernel", i % 70);
    }
    uint32_t launch = name_id(builder, "cudaLaunchKernel", 0);
    int64_t t = 0;
    uint32_t corr = 0;
    for (uint64_t made = 0; made < slice_count; made += 5) {
        uint32_t i = corr % OPS_PER_STEP;
        corr++;
        put(builder, thread, LAC_SLICE_RANGE, names[0][i], t, 90, 0);
        put(builder, thread, LAC_SLICE_OP, names[1][i], t + 5, 80, 0);
        put(builder, thread, LAC_SLICE_OP, names[2][i], t + 10, 70, 0);
        put(builder, thread, LAC_SLICE_API, launch, t + 20, 20, corr);
        put(builder, stream, LAC_SLICE_KERNEL, names[3][i], t + 200, 60 + i % 40, corr);
        t += 100;
    }
    require(lac_builder_finish(builder, 0, &model) == LAC_OK, "out of memory");
    struct lac_derived_slice *gaps = malloc(corr * sizeof(*gaps));
    uint64_t gap_count = 0;
    require(gaps != NULL, "out of memory");
    uint64_t first = model->tracks[stream].first;
    for (uint64_t i = first; i + 1 < first + model->tracks[stream].count; i++) {
        int64_t end_ns = model->slices.start_ns[i] + model->slices.dur_ns[i];
        if (end_ns < model->slices.start_ns[i + 1]) {
            gaps[gap_count++] = (struct lac_derived_slice){
                .start_ns = end_ns,
                .dur_ns = model->slices.start_ns[i + 1] - end_ns,
                .name = launch,
                .link = (uint32_t)(i + 1),
                .kind = LAC_SLICE_GAP,
            };
        }
    }
    struct lac_track track = {.kind = LAC_TRACK_GAPS, .process = LAC_NONE, .device = 0};
    require(lac_model_add_track(model, &track, gaps, gap_count) == LAC_OK, "out of memory");
    free(gaps);
    return model;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median_ms(const struct lac_model *model, const struct lac_flame_options *options)
{
    double each[RUNS];
    for (int run = 0; run < RUNS; run++) {
        struct timespec from, to;
        struct lac_flame *flame = NULL;
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        require(lac_flame_create(model, options, &flame) == LAC_OK, "out of memory");
        (void)clock_gettime(CLOCK_MONOTONIC, &to);
        require(flame->nodes[0].value_ns > 0, "nothing in the graph");
        lac_flame_destroy(flame);
        each[run] =
            (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    }
    qsort(each, RUNS, sizeof(each[0]), by_value);
    return each[RUNS / 2];
}

int main(int argc, char **argv)
{
    uint64_t millions = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    struct lac_model *model = training(millions * 1000000);
    int64_t end_ns = model->info.duration_ns;
    struct lac_flame_options options = {.prune_fraction = 0.0005};
    static const char *const NAMES[3] = {"gpu", "waiting", "cpu"};
    double first_ms = 0;
    double area_ms = 0;
    printf("{\"slices\":%llu", (unsigned long long)model->slices.count);
    for (int metric = 0; metric < 3; metric++) {
        options.metric = (enum lac_flame_metric)metric;
        options.t0_ns = 0;
        options.t1_ns = 0;
        double whole_ms = median_ms(model, &options);
        printf(",\"flame_%s_ms\":%.1f", NAMES[metric], whole_ms);
        options.t0_ns = end_ns / 2;
        options.t1_ns = end_ns / 2 + end_ns / 100;
        double part_ms = median_ms(model, &options);
        printf(",\"flame_%s_area_ms\":%.1f", NAMES[metric], part_ms);
        first_ms = metric == LAC_FLAME_GPU ? whole_ms : first_ms;
        area_ms = metric == LAC_FLAME_GPU ? part_ms : area_ms;
    }
    printf(",\"flame_first_ms\":%.1f,\"area_ms\":%.1f}\n", first_ms, area_ms);
    lac_model_destroy(model);
    return 0;
}
