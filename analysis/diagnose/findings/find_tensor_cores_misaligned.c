/*
 * Matrix work that is on tensor cores, but on kernels that are slower than they need to be: lengths
 * that are no multiple of what the cores take at once, or kernels made for an older GPU.
 *
 *   elements that divide M, N and K       always   best, from Ampere on
 *   float16, bfloat16                          8        64
 *   TF32                                       4        32
 *   int8, float8                              16       128
 *   float64                                    2        16
 */

#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/names/op_shapes.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_MAX = 3 };

struct multiples {
    int64_t always, best;
    const char *type;
};

/** Whether the name has "s8" of a type: "s884gemm" accumulates half precision in float32. */
static bool has_signed_8(const char *name)
{
    for (const char *at = strstr(name, "s8"); at != NULL; at = strstr(at + 1, "s8")) {
        if (at[2] < '0' || at[2] > '9') {
            return true;
        }
    }
    return false;
}

/** What the kernel's name says about its type. */
static struct multiples multiples_of(const char *name)
{
    static const char *const half[] = {"f16",    "bf16", "fp16", "h884", "h1688",
                                       "h16816", "half", "s884", "s1688"};
    static const char *const eighth[] = {"i8", "e4m3", "e5m2", "int8"};
    if (strstr(name, "tf32") != NULL || strstr(name, "tensorop_s1688gemm_") != NULL) {
        return (struct multiples){4, 32, "TF32"};
    }
    for (size_t i = 0; i < LAC_COUNT_OF(eighth); i++) {
        if (strstr(name, eighth[i]) != NULL || has_signed_8(name)) {
            return (struct multiples){16, 128, "8-bit"};
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(half); i++) {
        if (strstr(name, half[i]) != NULL) {
            return (struct multiples){8, 64, "half precision"};
        }
    }
    if (strstr(name, "d884") != NULL) {
        return (struct multiples){2, 16, "float64"};
    }
    return (struct multiples){0, 0, ""};
}

/** Whether the kernel's name says that it was made for a GPU before `major`. */
static bool is_of_older_gpu(const char *name, int32_t major)
{
    static const struct {
        const char *text;
        int32_t major;
    } marks[] = {{"volta_", 7},     {"sm70_", 7},      {"turing_", 7}, {"sm75_", 7},
                 {"cutlass_70", 7}, {"cutlass_75", 7}, {"ampere_", 8}, {"sm80_", 8},
                 {"sm86_", 8},      {"cutlass_80", 8}};
    for (size_t i = 0; i < LAC_COUNT_OF(marks); i++) {
        if (strstr(name, marks[i].text) != NULL) {
            return major >= 9 && marks[i].major < major;
        }
    }
    return false;
}

struct matrix_work {
    double misaligned_ns, older_ns; /**< of all covered steps */
    struct lac_shorter misaligned;
    uint64_t top_misaligned, top_older; /**< in the work; UINT64_MAX none */
    double top_misaligned_ns, top_older_ns;
};

static void collect(const struct lac_facts *facts, int32_t major, struct matrix_work *matrix)
{
    const struct lac_step_operations *work = facts->step_operations;
    /* such kernels get 2.5, 1.4, 1.1 times as fast: best, expected, worst */
    static const double parts[LAC_CASE_COUNT_] = {1.0 - 1.0 / 2.5, 1.0 - 1.0 / 1.4,
                                                  1.0 - 1.0 / 1.1};
    matrix->top_misaligned = UINT64_MAX;
    matrix->top_older = UINT64_MAX;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        if (kernel == NULL || !kernel->names.is_eligible ||
            kernel->names.tensor_core != LAC_TENSOR_CORE_YES ||
            kernel->names.family == LAC_FAMILY_ATTENTION) {
            continue;
        }
        const char *name = lac_model_str(facts->model, kernel->name);
        int64_t alignment = lac_kernel_alignment(name);
        double ns = work->ops[i].exposed_ns;
        if (alignment > 0 && alignment < multiples_of(name).always) {
            matrix->misaligned_ns += ns;
            lac_shorter_add(facts, &matrix->misaligned, &work->ops[i], parts);
            if (ns > matrix->top_misaligned_ns) {
                matrix->top_misaligned_ns = ns;
                matrix->top_misaligned = i;
            }
        } else if (is_of_older_gpu(name, major)) {
            matrix->older_ns += ns;
            if (ns > matrix->top_older_ns) {
                matrix->top_older_ns = ns;
                matrix->top_older = i;
            }
        }
    }
}

static int64_t up_to(int64_t size, int64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

/** "K is 50257: pad it to 50304", where the operator's shapes were recorded. */
static const char *dimension_text(const struct lac_facts *facts,
                                  const struct lac_step_operation *op,
                                  const struct multiples *multiples, int32_t major)
{
    struct lac_shape inputs[LAC_SHAPE_INPUTS];
    struct lac_product product;
    if (op->op == LAC_NONE || !lac_op_shapes(facts->model, op->op, inputs) ||
        !lac_op_product(lac_step_operation_name(facts, op), inputs, &product)) {
        return "";
    }
    int64_t multiple = major >= 8 ? multiples->best : multiples->always;
    for (int i = 0; i < 3; i++) {
        int64_t size = product.sizes[i];
        if (size > multiples->always && size % multiples->always != 0) {
            /* a short length is not padded by more than it has */
            int64_t padded = up_to(size, size >= 4 * multiple ? multiple : multiples->always);
            return lac_texts_add(&facts->analysis->texts, "%s is %lld: pad it to %lld",
                                 product.names[i], (long long)size, (long long)padded);
        }
    }
    return "";
}

static bool find_misaligned(const struct lac_facts *facts, struct lac_finding *finding,
                            const struct matrix_work *matrix, int32_t major)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_change changes[LAC_CASE_COUNT_];
    lac_changes_from_shorter(facts, &matrix->misaligned, changes);
    double cost_ns = matrix->misaligned_ns / facts->step_operations->steps;
    if (!lac_finding_open_changes(facts, finding, cost_ns, COST_OF_WORK_MIN_PCT, changes)) {
        return false;
    }
    const struct lac_step_operation *top = &facts->step_operations->ops[matrix->top_misaligned];
    const char *name = lac_model_str(facts->model, facts->model->slices.name[top->slice]);
    struct multiples multiples = multiples_of(name);
    const char *dimension = dimension_text(facts, top, &multiples, major);
    finding->title = lac_texts_add(
        &analysis->texts, "GEMMs with misaligned dimensions take %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "They use tensor-core kernels that load %lld element%s at a time (%s); %s needs dimensions "
        "that are multiples of %lld. %s%s%s",
        (long long)lac_kernel_alignment(name), lac_kernel_alignment(name) == 1 ? "" : "s",
        lac_step_operation_kernel_name(facts, top->slice), multiples.type,
        (long long)multiples.always,
        dimension[0] != '\0' ? "In " : "Record shapes to see which dimension is misaligned.",
        dimension[0] != '\0' ? lac_step_operation_name(facts, top) : "",
        dimension[0] != '\0' ? "." : "");
    finding->brief = "pad to a multiple";
    finding->change =
        dimension[0] != '\0'
            ? lac_texts_add(&analysis->texts,
                            "# %s\n"
                            "# (zero rows or columns; for a vocabulary: unused entries)",
                            dimension)
            : lac_texts_add(&analysis->texts,
                            "# M, N, K, batch and channels: multiples of %lld (%lld is best from "
                            "Ampere on):\n"
                            "size = (size + %lld) // %lld * %lld",
                            (long long)multiples.always, (long long)multiples.best,
                            (long long)multiples.always - 1, (long long)multiples.always,
                            (long long)multiples.always);
    finding->expect = lac_texts_add(&analysis->texts,
                                    "%s. Assumes that these kernels get 1.1 to 2.5 times faster.",
                                    lac_finding_expect(facts, finding));
    finding->costs =
        "Some memory and compute for padding; results are unchanged where nothing reads it.";
    finding->wrong_if = "the operands are misaligned views (with an offset): then copy them once.";
    finding->check = lac_texts_add(&analysis->texts,
                                   "record again: the kernel names say align%lld, or no alignment",
                                   (long long)multiples.always);
    lac_evidence_slice(facts, finding, top->slice, "the longest of these GEMMs");
    return true;
}

static bool find_older(const struct lac_facts *facts, struct lac_finding *finding,
                       const struct matrix_work *matrix)
{
    struct lac_analysis *analysis = facts->analysis;
    double cost_ns = matrix->older_ns / facts->step_operations->steps;
    if (matrix->top_older == UINT64_MAX || lac_pct_of_step(facts, cost_ns) < COST_NOTED_MIN_PCT) {
        return false;
    }
    lac_finding_open_fact(finding);
    const struct lac_step_operation *top = &facts->step_operations->ops[matrix->top_older];
    lac_finding_cost(facts, finding, cost_ns);
    finding->confidence = 0.5;
    finding->title = lac_texts_add(
        &analysis->texts, "Kernels for an older GPU generation take %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(&analysis->texts,
                                 "The library chose them (%s) although newer ones exist for this "
                                 "GPU: an old library, an unusual shape, or an unsupported type.",
                                 lac_step_operation_kernel_name(facts, top->slice));
    finding->change =
        "pip install --upgrade torch   # for the newest CUDA that the driver supports";
    finding->costs = "A new version of the framework: compare the loss curve.";
    finding->wrong_if = "the newest library chooses the same kernels for these shapes.";
    finding->check = "record again with the newer library: kernel names show this GPU's generation";
    lac_evidence_slice(facts, finding, top->slice, "the longest of these kernels");
    return true;
}

bool lac_find_tensor_cores_misaligned(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_device *device = lac_main_device(facts);
    int32_t major = device != NULL ? device->cc_major : 0;
    struct matrix_work matrix = {0};
    if (facts->step_operations->steps <= 0.0) {
        return false;
    }
    lac_shorter_begin(facts, finding->kind, &matrix.misaligned);
    collect(facts, major, &matrix);
    const struct lac_finding *attention =
        lac_finding_of(facts->analysis, LAC_FINDING_UNFUSED_ATTENTION);
    bool is_found =
        matrix.top_misaligned != UINT64_MAX && find_misaligned(facts, finding, &matrix, major);
    /* a fused kernel takes any length: what it replaces is not padded */
    return is_found && (attention == NULL || finding->gain_mid_pct > attention->gain_mid_pct);
}

bool lac_find_tensor_cores_older_kernels(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_device *device = lac_main_device(facts);
    struct matrix_work matrix = {0};
    if (facts->step_operations->steps <= 0.0) {
        return false;
    }
    collect(facts, device != NULL ? device->cc_major : 0, &matrix);
    return find_older(facts, finding, &matrix);
}
