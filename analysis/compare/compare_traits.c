/* Settings that a recording shows without anybody having written them down: in the names of its
 * kernels, in its calls and in its copies. Told only where both sides show them. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/compare_thresholds.h"
#include "analysis/diagnose/names/kernel_precision.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

/** Precision of most of the products, or "". */
static const char *precision(const struct lac_compare_side *side)
{
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
    double ns[LAC_COUNT_OF(names)] = {0};
    double all = 0.0;
    for (uint32_t row = 0; row < side->analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &side->analysis->kernels[row];
        const char *is =
            lac_precision_name(kernel->names.is_eligible
                                   ? lac_kernel_precision(lac_model_str(side->model, kernel->name))
                                   : LAC_PRECISION_UNKNOWN);
        all += kernel->names.is_eligible ? (double)kernel->total_ns : 0.0;
        for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
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
