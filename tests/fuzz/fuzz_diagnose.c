/*
 * Any bytes as a small model: whatever overlaps, links or repeats, the sums hold, the same model
 * gives the same bytes, and the derived tracks leave a valid model.
 */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/builder.h"
#include "collector/base/count_of.h"
#include "tests/fuzz/fuzz_check.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tape {
    const uint8_t *data;
    size_t size;
    size_t at;
};

static uint32_t next(struct tape *tape)
{
    return tape->at < tape->size ? tape->data[tape->at++] : 0;
}

static const char *const names[] = {
    "ProfilerStep#1",
    "loader.wait",
    "loader.fetch",
    "loader.item",
    "loader.read",
    "loader.put",

    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "cudaMemcpyAsync",
    "cudaMalloc",
    "cudaStreamWaitEvent",
    "cudaEventSynchronize",
    "cudaDeviceSynchronize",
    "cudaFree",
    "cuModuleLoadData",
    "Optimizer.step#SGD.step",
    "train_step 3",
    "c10d::barrier",
    "Buffer Flush",
    "Lazy Function Loading",
    "autograd::engine::evaluate_function: x",
    "void nchwToNhwcKernel<float>(int)",
    "volta_sgemm_64x64_nn",
    "nvjet_tst_128x256",
    "ncclDevKernel_AllReduce",
    "dgrad",
    "cunn_SoftMaxForward<4>",
    "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_tn_align1",
    "vectorized_elementwise_kernel<4, AddFunctor<float> >",
    "aten::bmm",
    "aten::conv2d",
    "gc",
    "validation",
    "",
};
enum { NAME_COUNT = LAC_COUNT_OF(names) };

static const enum lac_slice_kind kinds[] = {
    LAC_SLICE_KERNEL,   LAC_SLICE_KERNEL,    LAC_SLICE_COPY,  LAC_SLICE_MEMSET, LAC_SLICE_API,
    LAC_SLICE_API,      LAC_SLICE_RANGE,     LAC_SLICE_OP,    LAC_SLICE_PYTHON, LAC_SLICE_SYNC,
    LAC_SLICE_OVERHEAD, LAC_SLICE_GPU_RANGE, LAC_SLICE_OTHER,
};
enum { KIND_COUNT = LAC_COUNT_OF(kinds), TRACK_COUNT = 6 };

/** Rows and names that slices choose from. */
struct rows {
    uint32_t track[TRACK_COUNT];
    uint32_t name[NAME_COUNT];
    uint32_t copy[4];
    uint32_t loader[4];
    uint32_t counter[8];
};

static const char *const counters[] = {
    "python 0: on a core (%)",  "python 1: waiting for a core (%)",
    "read from storage (MB/s)", "periods throttled (/s)",
    "GPU 0: energy (J)",        "GPU 0: clocks held down (reasons)",
    "GPU 0: memory used (MB)",  "GPU 0: SM clock (MHz)"};
enum { COUNTER_COUNT = LAC_COUNT_OF(counters) };

static void fill_rows(struct lac_builder *builder, struct tape *tape, struct rows *rows)
{
    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        require(lac_strings_intern(&lac_builder_model(builder)->strings, names[i], strlen(names[i]),
                                   &rows->name[i]) == LAC_OK);
    }
    for (uint32_t i = 0; i < TRACK_COUNT; i++) {
        uint32_t process = 0;
        require(lac_builder_process(builder, rows->name[i / 3], i / 3, &process) == LAC_OK);
        bool is_stream = i >= 3;
        require(lac_builder_track(builder, is_stream ? LAC_TRACK_STREAM : LAC_TRACK_THREAD, process,
                                  rows->name[i], i, &rows->track[i]) == LAC_OK);
        lac_builder_track_at(builder, rows->track[i])->device = is_stream ? (int64_t)(i / 5) : -1;
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct lac_copy copy = {.bytes = (int64_t)next(tape) * 65536 - 1,
                                .copy_kind = (uint8_t)(next(tape) % 8),
                                .src = (uint8_t)(next(tape) % 8),
                                .dst = (uint8_t)(next(tape) % 8)};
        struct lac_loader_info info = {.batch = (int64_t)next(tape) - 1,
                                       .cpu_ns = (int64_t)next(tape) - 1,
                                       .worker = (int32_t)next(tape) - 1};
        require(lac_builder_copy(builder, &copy, &rows->copy[i]) == LAC_OK);
        require(lac_builder_loader_info(builder, &info, &rows->loader[i]) == LAC_OK);
    }
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        uint32_t process = 0;
        uint32_t id = 0;
        require(lac_builder_process(builder, rows->name[i / 2 % 2], i / 2 % 2, &process) == LAC_OK);
        require(lac_strings_intern(&lac_builder_model(builder)->strings, counters[i],
                                   strlen(counters[i]), &id) == LAC_OK);
        require(lac_builder_track(builder, LAC_TRACK_COUNTER, process, id, -1, &rows->counter[i]) ==
                LAC_OK);
        lac_builder_track_at(builder, rows->counter[i])->name = id;
    }
}

enum { LOOP_STEPS = 6, LOOP_CORR = 64 };

/** Steps that launch and wait, so that what comes beside them meets a graph. */
static void add_loop(struct lac_builder *builder, const struct rows *rows, int64_t scale)
{
    for (uint32_t i = 0; i < LOOP_STEPS; i++) {
        int64_t at_ns = (int64_t)i * 40 * scale;
        struct lac_slice_in in = {.detail = LAC_NONE,
                                  .kind = LAC_SLICE_RANGE,
                                  .track = rows->track[0],
                                  .name = rows->name[0],
                                  .start_ns = at_ns,
                                  .dur_ns = 40 * scale};
        require(lac_builder_slice(builder, &in) == LAC_OK);
        in.kind = LAC_SLICE_API;
        in.name = rows->name[8]; /* cudaLaunchKernel */
        in.start_ns = at_ns + scale;
        in.dur_ns = scale;
        in.corr = LOOP_CORR + i;
        require(lac_builder_slice(builder, &in) == LAC_OK);
        in.name = rows->name[9]; /* cudaStreamSynchronize */
        in.start_ns = at_ns + 3 * scale;
        in.dur_ns = 20 * scale;
        in.corr = 0;
        require(lac_builder_slice(builder, &in) == LAC_OK);
        in.kind = LAC_SLICE_KERNEL;
        in.track = rows->track[3];
        in.name = rows->name[27]; /* dgrad */
        in.start_ns = at_ns + 3 * scale;
        in.dur_ns = 20 * scale;
        in.corr = LOOP_CORR + i;
        require(lac_builder_slice(builder, &in) == LAC_OK);
    }
}

static struct lac_model *model_of(struct tape *tape)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    struct rows rows;
    require(lac_builder_create(&builder) == LAC_OK);
    fill_rows(builder, tape, &rows);
    int64_t scale = next(tape) & 1 ? 1000 : (int64_t)1 << (next(tape) % 41);
    if (tape->size & 1) {
        add_loop(builder, &rows, scale);
    }
    while (tape->at < tape->size) {
        struct lac_slice_in in = {.detail = LAC_NONE};
        in.kind = kinds[next(tape) % KIND_COUNT];
        bool is_gpu = in.kind == LAC_SLICE_KERNEL || in.kind == LAC_SLICE_COPY ||
                      in.kind == LAC_SLICE_MEMSET || in.kind == LAC_SLICE_GPU_RANGE;
        in.track = rows.track[next(tape) % 3 + (is_gpu ? 3 : 0)];
        in.name = rows.name[next(tape) % NAME_COUNT];
        in.start_ns = (int64_t)next(tape) * scale + next(tape);
        in.dur_ns = (int64_t)next(tape) * scale / 4;
        in.corr = next(tape) & 31;
        if (in.kind == LAC_SLICE_OTHER && (in.corr & 1)) {
            require(lac_builder_sample(builder, rows.counter[in.corr / 2 % COUNTER_COUNT],
                                       in.start_ns, (double)(in.dur_ns & 255)) == LAC_OK);
            continue;
        }

        if (in.kind == LAC_SLICE_COPY) {
            in.detail = rows.copy[in.corr & 3];
        } else if (in.kind == LAC_SLICE_RANGE) {
            in.detail = rows.loader[in.corr & 3];
        }
        require(lac_builder_slice(builder, &in) == LAC_OK);
    }
    lac_builder_model(builder)->info.format = LAC_FORMAT_KINETO;
    struct lac_device *device = lac_builder_device(builder, 0);
    require(device != NULL);
    device->cc_major = 7;
    require(lac_builder_finish(builder, 0, &model) == LAC_OK);
    return model;
}

static void check(const struct lac_analysis *analysis)
{
    require(lac_analysis_is_valid(analysis));
    require(analysis->step_kept_count <= analysis->step_count);
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        require(finding->title[0] != '\0' && finding->why[0] != '\0');
        require(finding->id == lac_finding_type(finding->kind)->id && finding->workers >= -1);
        if (!isnan(finding->gain_mid_pct)) {
            require(finding->gain_low_pct <= finding->gain_mid_pct);
            require(finding->gain_mid_pct <= finding->gain_high_pct);
            require(finding->gain_low_pct >= -1e-6 && finding->gain_high_pct <= 100.0);
        }
    }
    if (analysis->what_if_step.mean_ns != LAC_UNKNOWN_NS) {
        require(analysis->what_if_step.mean_ns >= 0);
        require(analysis->what_if_step.low_ns <= analysis->what_if_step.mean_ns);
        require(analysis->what_if_step.high_ns >= analysis->what_if_step.mean_ns);
        require(analysis->what_if_assumption[0] != '\0');
    }
}

/** Any set of changes. */
static struct lac_what_if_changes changes_of(size_t size)
{
    struct lac_what_if_changes changes;
    lac_what_if_clear(&changes);
    changes.workers = (size & 1) ? (int32_t)(size & 15) : LAC_WHAT_IF_UNSET;
    changes.layout_nhwc = 1;
    changes.pinned = (size & 2) ? 1 : LAC_WHAT_IF_UNSET;
    changes.async_copies = (size & 4) ? 1 : LAC_WHAT_IF_UNSET;
    changes.no_sync = (size & 8) ? 1 : LAC_WHAT_IF_UNSET;
    changes.no_allocator = (size & 16) ? 1 : LAC_WHAT_IF_UNSET;
    changes.no_launch = (size & 32) ? 1 : LAC_WHAT_IF_UNSET;
    changes.no_module_load = (size & 64) ? 1 : LAC_WHAT_IF_UNSET;
    changes.comm = (size & 128) ? 0.5 : -1.0;
    changes.kernels = (size & 256) ? 1000.0 : -1.0;
    return changes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 20000) {
        return 0;
    }
    struct tape tape = {data, size, 0};
    struct lac_model *model = model_of(&tape);
    struct lac_diagnose_options options = {.has_what_if = true};
    options.what_if = changes_of(size);
    struct lac_analysis *analysis = NULL;
    struct lac_analysis *again = NULL;
    require(lac_diagnose(model, &options, &analysis, NULL) == LAC_OK);
    require(lac_diagnose(model, &options, &again, NULL) == LAC_OK);
    check(analysis);
    require(strcmp(analysis->verdict.text, again->verdict.text) == 0);
    require(analysis->what_if_step.mean_ns == again->what_if_step.mean_ns);
    require(analysis->finding_count == again->finding_count);
    require(lac_diagnose_add_tracks(analysis, model) == LAC_OK);
    require(lac_model_is_valid(model));
    lac_analysis_destroy(analysis);
    lac_analysis_destroy(again);
    lac_model_destroy(model);
    return 0;
}
