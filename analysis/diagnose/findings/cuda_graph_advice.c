#include "analysis/diagnose/findings/cuda_graph_advice.h"

#include <stddef.h>
#include <stdint.h>

static void count_kernels(const struct lac_facts *facts, struct lac_cuda_graph_advice *capture)
{
    const struct lac_model *model = facts->model;
    const struct lac_step_operations *work = facts->step_operations;
    uint64_t kernels = 0;
    uint64_t captured = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        if (kernel == NULL) {
            continue;
        }
        const uint32_t slice = work->ops[i].slice;
        const uint32_t row = model->slices.detail[slice];
        const uint32_t call = model->slices.link[slice];
        kernels++;
        captured +=
            (row < model->kernel_config_count && model->kernel_configs[row].graph_node != 0) ||
            /* older profilers tell of no nodes, only of the call */
            (call != LAC_NONE && lac_is_graph_launch(facts, model->slices.name[call]));
    }
    capture->captured_pct = kernels > 0 ? 100.0 * (double)captured / (double)kernels : 0.0;
}

/** Whether kept steps differ in their operations by more than one in a hundred. */
static bool steps_vary(const struct lac_analysis *analysis)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            uint64_t count = analysis->steps[s].op_count;
            least = count < least ? count : least;
            most = count > most ? count : most;
        }
    }
    return most > least + least / 100 + 1;
}

void lac_cuda_graph_advice_measure(const struct lac_facts *facts,
                                   struct lac_cuda_graph_advice *ret_capture)
{
    const struct lac_analysis *analysis = facts->analysis;
    *ret_capture = (struct lac_cuda_graph_advice){0};
    count_kernels(facts, ret_capture);
    if (facts->main_host != LAC_NONE) {
        const struct lac_host *host = &facts->hosts[facts->main_host];
        uint64_t waits = 0;
        for (uint64_t i = 0; i < host->blocking_count; i++) {
            waits += lac_spans_length_inside(&facts->host_kept, host->blocking[i].start_ns,
                                             host->blocking[i].start_ns + 1) > 0;
        }
        ret_capture->waits_per_step = (double)waits / (double)analysis->step_kept_count;
    }
    ret_capture->allocates = facts->time->idle_ns[LAC_CAUSE_ALLOCATOR] > 0.0;
    ret_capture->varies = steps_vary(analysis);
}

const char *lac_cuda_graph_advice_text(const struct lac_facts *facts,
                                       const struct lac_cuda_graph_advice *capture)
{
    struct lac_text **texts = &facts->analysis->texts;
    if (capture->captured_pct >= CAPTURED_MIN_PCT) {
        return lac_texts_add(
            texts,
            " CUDA graphs already launch %s of the kernels; the rest are launched one by one.",
            lac_format_pct(capture->captured_pct).text);
    }
    if (capture->waits_per_step >=
        WAITS_IN_GRAPH_MIN) { /* one at the end of a step does not hurt */
        return lac_texts_add(
            texts,
            " Remove the %s synchronizations per step first: CUDA graphs cannot capture them.",
            lac_format_rate(capture->waits_per_step).text);
    }
    if (capture->allocates) {
        return " Remove the allocations in the step first: CUDA graphs cannot capture them.";
    }
    if (capture->varies) {
        return " The launches differ from step to step. CUDA graphs need fixed shapes and control "
               "flow.";
    }
    return " No obstacle to CUDA graphs was seen: every step launches the same amount of work and "
           "synchronizes at most once.";
}

const char *lac_cuda_graph_advice_change(const struct lac_facts *facts,
                                         const struct lac_cuda_graph_advice *capture)
{
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_TENSORFLOW) {
        return "@tf.function(jit_compile=True)";
    }
    bool can_capture = capture->captured_pct < CAPTURED_MIN_PCT &&
                       capture->waits_per_step < WAITS_IN_GRAPH_MIN && !capture->allocates &&
                       !capture->varies;
    struct lac_text **texts = &facts->analysis->texts;
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_UNKNOWN) {
        return can_capture
                   ? "// record the iteration's launches once, then launch the graph:\n"
                     "cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); ...\n"
                     "cudaGraphLaunch(graph, stream);"
                   : "// fuse small kernels that follow each other: each launch costs the host";
    }
    const char *mode = can_capture ? ", mode=\"reduce-overhead\"" : "";
    switch (lac_compiled_of(facts)) {
    case LAC_COMPILED_UNFUSED:
        return lac_texts_add(texts,
                             "torch.compile(..., backend=\"inductor\"%s)\n"
                             "# in the call that compiles it now, whose backend makes no kernels",
                             mode);
    case LAC_COMPILED:
        return can_capture ? "torch.compile(..., mode=\"reduce-overhead\")  # in the call that "
                             "compiles it now"
                           : "torch._logging.set_logs(graph_breaks=True, recompiles=True)\n"
                             "# the model is compiled: what is launched one by one stands between "
                             "its parts";
    case LAC_COMPILED_NOT:
        break;
    }
    return lac_texts_add(texts, "%smodel = torch.compile(model%s)%s",
                         lac_grouped_optimizer_line(facts), mode,
                         lac_torch_from(facts, LAC_TORCH_2_0));
}
