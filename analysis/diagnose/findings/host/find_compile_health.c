/*
 * A compiled model that gains less than it should: inputs of its graphs that are copied in every step, a
 * backend that fuses nothing, or a model in pieces. What a graph hides is not judged.
 */

#include "analysis/diagnose/findings/host/host_thresholds.h"
#include "analysis/diagnose/findings/host/host_walk.h"

#include <stdint.h>
#include <string.h>

enum { NAMES_MAX = 64 };

struct compiled {
    struct lac_edits *copies;  /**< of a step without copies of inputs, or NULL */
    struct lac_edits *unfused; /**< of a step with a backend that fuses, or NULL */
    double steps;              /**< looked at */
    uint64_t regions;          /**< outermost ones, backward included */
    uint64_t copy_count, kernel_count, fused_count, graph_count;
    double copy_ns, kernel_ns, fusable_ns;
    uint32_t names[NAMES_MAX]; /**< of numbered regions */
    uint32_t name_count;
    int64_t between_ns; /**< in a region: end of what it called last, else its start */
    uint32_t example;   /**< a region, or LAC_NONE */
    uint32_t longest;   /**< copy, or LAC_NONE */
};

static bool is_numbered(const char *name)
{
    return strncmp(name, "Torch-Compiled Region", 21) == 0 ||
           strncmp(name, "torch-compiled region", 21) == 0;
}

/** What runs in one was captured by TorchDynamo. */
static bool is_region(const char *name)
{
    return strncmp(name, "CompiledFunction", 16) == 0 || is_numbered(name);
}

/** A kernel of PyTorch's own that a compiler would merge with its neighbors. */
static bool is_fusable(const struct lac_facts *facts, uint32_t kernel)
{
    static const bool merges[LAC_FAMILY_COUNT_] = {
        [LAC_FAMILY_ELEMENTWISE] = true, [LAC_FAMILY_REDUCE] = true, [LAC_FAMILY_NORM] = true,
        [LAC_FAMILY_SOFTMAX] = true,     [LAC_FAMILY_COPY] = true,   [LAC_FAMILY_FILL] = true,
        [LAC_FAMILY_INDEX] = true};
    return merges[lac_kernel_class_of(facts, kernel)->family] &&
           strstr(lac_host_name(facts, kernel), "at::native") != NULL;
}

static bool is_copy_inside(const struct lac_facts *facts, uint32_t operation)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t row = slices->detail[operation];
    return slices->kind[operation] == LAC_SLICE_COPY && row < facts->model->copy_count &&
           facts->model->copies[row].copy_kind == LAC_COPY_DTOD;
}

static void see_copy(struct compiled *compiled, const struct lac_host_open *open, uint64_t call,
                     uint32_t copy)
{
    const int64_t *dur_ns = open->facts->model->slices.dur_ns;
    uint32_t op = open->slice[open->depth - 1];
    compiled->copy_count++;
    compiled->copy_ns += (double)dur_ns[copy];
    lac_edits_drop(compiled->copies, call, copy);
    if (strcmp(lac_host_name(open->facts, op), "aten::copy_") == 0) {
        lac_edits_host(compiled->copies, op, 0.0);
    }
    if (compiled->longest == LAC_NONE || dur_ns[copy] > dur_ns[compiled->longest]) {
        compiled->longest = copy;
    }
}

static void see_kernel(struct compiled *compiled, const struct lac_facts *facts, uint32_t kernel)
{
    const struct lac_name_class *names = lac_kernel_class_of(facts, kernel);
    double ns = (double)facts->model->slices.dur_ns[kernel];
    if (names->is_comm) {
        return;
    }
    compiled->kernel_count++;
    compiled->fused_count += names->family == LAC_FAMILY_TRITON;
    compiled->kernel_ns += ns;
    if (is_fusable(facts, kernel)) {
        compiled->fusable_ns += ns;
        lac_edits_operation(compiled->unfused, kernel, FUSED_TIME_LEFT);
    }
}

static void see_region(struct compiled *compiled, const struct lac_facts *facts, uint64_t slice)
{
    uint32_t name = facts->model->slices.name[slice];
    uint32_t at = 0;
    compiled->regions++;
    compiled->between_ns = facts->model->slices.start_ns[slice];
    compiled->example = (uint32_t)slice;
    if (!is_numbered(lac_host_name(facts, slice))) {
        return;
    }
    while (at < compiled->name_count && compiled->names[at] != name) {
        at++;
    }
    if (at == compiled->name_count && at < NAMES_MAX) {
        compiled->names[compiled->name_count++] = name;
    }
}

/** A region called something: up to then it was in its own code, operator by operator. */
static void see_between(struct compiled *compiled, const struct lac_host_open *open, uint64_t slice)
{
    const struct lac_slices *slices = &open->facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    if (!is_region(lac_host_name(open->facts, open->slice[open->depth - 1]))) {
        return;
    }
    if (start_ns > compiled->between_ns) {
        lac_edits_host_time(compiled->unfused, open->track, compiled->between_ns, start_ns,
                            FUSED_HOST_LEFT);
    }
    compiled->between_ns = end_ns > compiled->between_ns ? end_ns : compiled->between_ns;
}

static void visit(void *context, const struct lac_host_open *open, uint64_t slice)
{
    struct compiled *compiled = context;
    const struct lac_facts *facts = open->facts;
    uint8_t kind = facts->model->slices.kind[slice];
    bool is_inside = lac_host_around(open, is_region) != LAC_NONE;
    if (!is_inside) {
        if (kind != LAC_SLICE_API && is_region(lac_host_name(facts, slice))) {
            see_region(compiled, facts, slice);
        }
        return;
    }
    const char *name = lac_host_name(facts, slice);
    see_between(compiled, open, slice);
    if (kind == LAC_SLICE_OP && strncmp(name, "aten::", 6) == 0) {
        lac_edits_host(compiled->unfused, slice, FUSED_HOST_LEFT);
    }
    if (kind != LAC_SLICE_API) {
        return;
    }
    compiled->graph_count += strstr(name, "GraphLaunch") != NULL;
    uint32_t operation = lac_host_launched(facts, slice);
    if (operation == LAC_NONE) {
        return;
    }
    if (is_copy_inside(facts, operation)) {
        see_copy(compiled, open, slice, operation);
    } else if (facts->model->slices.kind[operation] == LAC_SLICE_KERNEL) {
        see_kernel(compiled, facts, operation);
    }
}

/** Copies that a compiler put there: what it compiled is seen, as Triton's kernels or as a graph. */
static bool copies_inputs(const struct compiled *compiled)
{
    return compiled->fused_count + compiled->graph_count > 0 &&
           (double)compiled->copy_count >= INPUT_COPIES_MIN * compiled->steps;
}

/** PyTorch's own kernels one by one, and no graph that may hold others. */
static bool fuses_nothing(const struct compiled *compiled)
{
    return compiled->fused_count + compiled->graph_count == 0 &&
           (double)compiled->kernel_count >= UNFUSED_KERNELS_MIN * compiled->steps &&
           compiled->fusable_ns >= FUSABLE_MIN * compiled->kernel_ns;
}

static void explain_copies(const struct lac_facts *facts, struct lac_finding *finding,
                           const struct compiled *compiled)
{
    struct lac_text **texts = &facts->analysis->texts;
    finding->title = lac_texts_add(
        texts, "The compiled model copies its inputs on the GPU: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text,
        lac_format_ns(facts->analysis->step_mean_ns).text, lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        texts,
        "%s device-to-device copies per step, %s together, are launched by compiled functions: a "
        "graph reads and writes fixed addresses, so inputs whose address may change are copied to "
        "it first.",
        lac_format_rate((double)compiled->copy_count / compiled->steps).text,
        lac_format_ns(lac_round(compiled->copy_ns / compiled->steps)).text);
    finding->brief = "static graph inputs";
    finding->change = "torch._dynamo.mark_static_address(tensor)   # inputs that keep their place: "
                      "weights, buffers, "
                      "caches\n"
                      "batch_on_gpu.copy_(batch)                   # one copy into a tensor that "
                      "stays, marked too\n"
                      "# before PyTorch 2.1 every saved activation is copied as well: upgrade";
    finding->costs = "Marked tensors must stay where they are: an address that changes records the "
                     "graph again.";
    finding->wrong_if = "the inputs are new tensors in every step, and no marked buffer can take "
                        "their place.";
    if (compiled->longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, compiled->longest, "the longest copy");
    }
}

static void explain_unfused(const struct lac_facts *facts, struct lac_finding *finding,
                            const struct compiled *compiled)
{
    struct lac_text **texts = &facts->analysis->texts;
    finding->title = lac_texts_add(
        texts, "The compiled model runs unfused kernels: it costs %s of every %s step (%s)%s",
        lac_format_ns(finding->cost_ns_per_step).text,
        lac_format_ns(facts->analysis->step_mean_ns).text, lac_format_pct(finding->cost_pct).text,
        lac_finding_parts(facts, finding));
    finding->why = lac_texts_add(
        texts,
        "Compiled functions launch %s kernels per step, all of them PyTorch's own and none made by "
        "a "
        "compiler: the backend captures the model and then runs it operator by operator "
        "(aot_eager, eager). %s of their time could be fused.",
        lac_format_rate((double)compiled->kernel_count / compiled->steps).text,
        lac_format_pct(100.0 * compiled->fusable_ns / compiled->kernel_ns).text);
    finding->brief = "a backend that fuses";
    finding->change =
        "backend=\"inductor\"   # the default of torch.compile(); now it is aot_eager "
        "or another one for debugging";
    finding->costs = "Compilation takes minutes at the start, and again for new shapes. Results "
                     "change by rounding.";
    finding->wrong_if = "another backend was chosen because inductor fails on this model: then fix "
                        "that first.";
}

/** Copies, or a backend: the steps with the change. */
static bool open_change(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct compiled *seen)
{
    static const double shares[2][LAC_CASE_COUNT_] = {{1.0, INPUTS_KEPT_MID, 0.5},
                                                      {1.0, UNFUSED_GONE_MID, 0.3}};
    bool are_copies = copies_inputs(seen);
    struct lac_edits *edits = lac_edits_begin(facts, finding->kind);
    struct compiled again = {.example = LAC_NONE, .longest = LAC_NONE};
    *(are_copies ? &again.copies : &again.unfused) = edits;
    lac_host_walk(facts, visit, &again);
    if (!lac_host_open_edited(facts, finding, edits, shares[are_copies ? 0 : 1])) {
        return false;
    }
    finding->confidence = are_copies ? 0.75 : 0.6;
    if (are_copies) {
        explain_copies(facts, finding, seen);
    } else { /* products stay what they are: of the GPU's work only what can be fused goes */
        lac_finding_cost_of(facts, finding, (double)finding->cost_ns_per_step,
                            seen->fusable_ns / seen->steps);
        explain_unfused(facts, finding, seen);
    }
    finding->expect = lac_finding_expect(facts, finding);
    finding->check = lac_texts_add(&facts->analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    return true;
}

/** Pieces are said; what they cost is said by who finds it: synchronizations, launches. */
static void open_pieces(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct compiled *compiled)
{
    struct lac_text **texts = &facts->analysis->texts;
    lac_finding_open_fact(finding);
    finding->title = lac_texts_add(texts, "The compiled model is in %s",
                                   lac_format_count(compiled->name_count, "piece").text);
    finding->why = lac_texts_add(
        texts, "Between two pieces the program runs as it is written: a graph break, such as a "
               "value that is "
               "read or a call that cannot be captured, or blocks that are compiled one by one. "
               "TORCH_LOGS=graph_breaks names each place.");
}

/** Whether the recording names a region at all. */
static bool has_regions(const struct lac_facts *facts)
{
    uint32_t id = 0;
    while (id < facts->model->strings.count && !is_region(lac_model_str(facts->model, id))) {
        id++;
    }
    return id < facts->model->strings.count;
}

bool lac_find_compile_health(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct compiled seen = {.example = LAC_NONE, .longest = LAC_NONE};
    if (!has_regions(facts)) {
        return false;
    }
    seen.steps = lac_host_walk(facts, visit, &seen);
    if (seen.steps <= 0.0 || seen.regions == 0) {
        return false;
    }
    bool is_found =
        (copies_inputs(&seen) || fuses_nothing(&seen)) && open_change(facts, finding, &seen);
    if (!is_found && (double)seen.name_count >= REGIONS_MANY_MIN) {
        open_pieces(facts, finding, &seen);
        is_found = true;
    }
    if (is_found && seen.example != LAC_NONE) {
        lac_evidence_slice(facts, finding, seen.example, "a compiled function");
    }
    return is_found;
}
