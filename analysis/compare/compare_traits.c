/* Settings that a recording shows without anybody having written them down: in the names of its
 * kernels, in its calls and in its copies. Told only where both sides show them. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/compare_thresholds.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

/** Whether the name holds one of the words. */
static bool holds(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/** What a kernel's name says it multiplies, or NULL. */
static const char *precision_of(const char *name)
{
    static const char *const fp8[] = {"e4m3", "e5m2", "fp8", "MxE"};
    static const char *const bf16[] = {"bf16", "BFloat16", "bfloat16", "_BBS_", "_BSS_"};
    static const char *const tf32[] = {"tf32", "s1688gemm", "_S1688"};
    static const char *const fp16[] = {"fp16", "f16", "h884", "h1688", "half", "hgemm", "_HHS_"};
    static const char *const fp32[] = {"sgemm", "f32f32", "float", "fp32", "scudnn", "_SB_"};
    if (holds(name, fp8, LAC_COUNT_OF(fp8))) {
        return "fp8";
    }
    if (holds(name, bf16, LAC_COUNT_OF(bf16))) {
        return "bf16";
    }
    if (holds(name, tf32, LAC_COUNT_OF(tf32))) {
        return "tf32";
    }
    if (holds(name, fp16, LAC_COUNT_OF(fp16))) {
        return "fp16";
    }
    return holds(name, fp32, LAC_COUNT_OF(fp32)) ? "fp32" : NULL;
}

/** Precision of most of the products, or "". */
static const char *precision(const struct lac_compare_side *side)
{
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
    double ns[LAC_COUNT_OF(names)] = {0};
    double all = 0.0;
    for (uint32_t row = 0; row < side->analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &side->analysis->kernels[row];
        const char *is = kernel->names.is_eligible
                             ? precision_of(lac_model_str(side->model, kernel->name))
                             : NULL;
        all += kernel->names.is_eligible ? (double)kernel->total_ns : 0.0;
        for (size_t i = 0; is != NULL && i < LAC_COUNT_OF(names); i++) {
            ns[i] += strcmp(is, names[i]) == 0 ? (double)kernel->total_ns : 0.0;
        }
    }
    if (100.0 * all < TRAIT_MIN_PCT * (double)side->analysis->kernel_total_ns) {
        return "";
    }
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        if (all > 0.0 && 100.0 * ns[i] >= TRAIT_MAJORITY_PCT * all) {
            return names[i];
        }
    }
    return "";
}

/** Whether convolutions take channels last, without conversions around them; "" unknown. */
static const char *channels_last(const struct lac_compare_side *side)
{
    const struct lac_analysis *analysis = side->analysis;
    double all = 0.0;
    double last = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[row];
        if (kernel->names.family == LAC_FAMILY_CONV) {
            const char *name = lac_model_str(side->model, kernel->name);
            all += (double)kernel->total_ns;
            last += strcasestr(name, "nhwc") != NULL ? (double)kernel->total_ns : 0.0;
        }
    }
    double kernels = (double)analysis->kernel_total_ns;
    if (100.0 * all < TRAIT_MIN_PCT * kernels || !(all > 0.0)) {
        return "";
    }
    double converted = 100.0 * (double)analysis->layout_by_class_ns[LAC_LAYOUT_L] / kernels;
    bool is_last = 100.0 * last >= TRAIT_MAJORITY_PCT * all && converted <= CONVERTED_MAX_PCT;
    return is_last ? "yes" : "no";
}

/** Whether the optimizer takes many tensors at once; "" where nothing is trained. */
static const char *fused_optimizer(const struct lac_compare_side *side)
{
    const struct lac_analysis *analysis = side->analysis;
    if (analysis->workload != LAC_WORKLOAD_TRAINING) {
        return "";
    }
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        if (analysis->kernels[row].names.family == LAC_FAMILY_OPTIMIZER) {
            return "many tensors at once";
        }
    }
    return "tensor by tensor";
}

/** Memory from which most bytes go to the GPU; "" unknown. */
static const char *pinned(const struct lac_compare_side *side)
{
    double bytes[2] = {0.0, 0.0};
    for (uint32_t i = 0; i < side->analysis->copy_count; i++) {
        const struct lac_copy_facts *copy = &side->analysis->copies[i];
        bool is_known = copy->kind == LAC_COPY_HTOD && copy->bytes > 0 &&
                        (copy->src == LAC_MEMORY_PAGEABLE || copy->src == LAC_MEMORY_PINNED);
        if (is_known) {
            bytes[copy->src == LAC_MEMORY_PINNED] += (double)copy->bytes;
        }
    }
    double all = bytes[0] + bytes[1];
    if (!(all > 0.0)) {
        return "";
    }
    return 100.0 * bytes[1] >= TRAIT_MAJORITY_PCT * all   ? "yes"
           : 100.0 * bytes[0] >= TRAIT_MAJORITY_PCT * all ? "no"
                                                          : "";
}

/** Whether a CUDA graph was launched; "" where no call was recorded. */
static const char *cuda_graphs(const struct lac_compare_side *side)
{
    static const char *const launches[] = {"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"};
    static const char *const calls[] = {"cudaLaunchKernel", "cuLaunchKernel", "hipLaunchKernel",
                                        "hipModuleLaunchKernel", "cudaLaunchKernelExC"};
    const struct lac_strings *strings = &side->model->strings;
    bool has_calls = false;
    for (uint32_t id = 0; id < strings->count; id++) {
        const char *text = lac_strings_get(strings, id);
        for (size_t i = 0; i < LAC_COUNT_OF(launches); i++) {
            if (strncmp(text, launches[i], strlen(launches[i])) == 0) {
                return "yes";
            }
        }
        for (size_t i = 0; i < LAC_COUNT_OF(calls) && !has_calls; i++) {
            has_calls = strncmp(text, calls[i], strlen(calls[i])) == 0;
        }
    }
    return has_calls ? "no" : "";
}

void lac_compare_traits(const struct lac_compare_side sides[2],
                        struct lac_compare_trait traits[LAC_COMPARE_TRAITS])
{
    static const struct {
        const char *key;
        const char *(*read)(const struct lac_compare_side *side);
    } all[LAC_COMPARE_TRAITS] = {{"precision of products", precision},
                                 {"channels_last", channels_last},
                                 {"fused optimizer", fused_optimizer},
                                 {"pinned copies", pinned},
                                 {"CUDA graphs", cuda_graphs}};
    for (int i = 0; i < LAC_COMPARE_TRAITS; i++) {
        const char *a = all[i].read(&sides[0]);
        const char *b = all[i].read(&sides[1]);
        bool is_known = a[0] != '\0' && b[0] != '\0';
        traits[i] = (struct lac_compare_trait){all[i].key, {is_known ? a : "", is_known ? b : ""}};
    }
}
