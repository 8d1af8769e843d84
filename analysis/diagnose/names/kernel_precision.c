/* What a kernel computes in, by the words in its name. */

#include "analysis/diagnose/names/kernel_precision.h"

#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stddef.h>
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

enum lac_precision lac_kernel_precision(const char *name)
{
    static const char *const fp8[] = {"e4m3", "e5m2", "fp8", "MxE"};
    static const char *const bf16[] = {"bf16", "BFloat16", "bfloat16", "_BBS_", "_BSS_"};
    static const char *const tf32[] = {"tf32", "s1688gemm", "_S1688"};
    static const char *const fp16[] = {"fp16", "f16", "h884", "h1688", "half", "hgemm", "_HHS_"};
    static const char *const products[] = {"dgemm", "d884", "zgemm", "f64f64"};
    static const char *const fp32[] = {"sgemm", "f32f32", "float", "fp32", "scudnn", "_SB_"};
    static const struct {
        enum lac_precision precision;
        const char *const *words;
        size_t count;
    } kinds[] = {
        {LAC_PRECISION_FP8, fp8, LAC_COUNT_OF(fp8)},
        {LAC_PRECISION_BF16, bf16, LAC_COUNT_OF(bf16)},
        {LAC_PRECISION_TF32, tf32, LAC_COUNT_OF(tf32)},
        {LAC_PRECISION_FP16, fp16, LAC_COUNT_OF(fp16)},
        {LAC_PRECISION_FP64, products, LAC_COUNT_OF(products)},
        {LAC_PRECISION_FP32, fp32, LAC_COUNT_OF(fp32)},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(kinds); i++) {
        if (holds(name, kinds[i].words, kinds[i].count)) {
            return kinds[i].precision;
        }
    }
    /* beside float, double is what a scalar or a sum is in */
    bool is_double = strstr(name, "double") != NULL && strstr(name, "Half") == NULL;
    return is_double ? LAC_PRECISION_FP64 : LAC_PRECISION_UNKNOWN;
}
