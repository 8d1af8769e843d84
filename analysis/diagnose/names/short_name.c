/* What a person calls a kernel. */

#include "analysis/diagnose/names/names.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Names are long (templates); nothing that matters here stands beyond this. */
enum { LOOK_BYTES_MAX = 2048, SHORT_BYTES = 96 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool has(const char *name, size_t length, const char *text)
{
    return memmem(name, length, text, strlen(text)) != NULL;
}

/** A word for the data type that the name tells, or "". */
static const char *data_type(const char *name, size_t length)
{
    static const struct {
        const char *text, *type;
    } hints[] = {
        {"nvf4", "fp4"},       {"mxf4", "fp4"},       {"e4m3", "fp8"},       {"e5m2", "fp8"},
        {"bf16", "bf16"},      {"BFloat16", "bf16"},  {"bfloat16", "bf16"},  {"nvjet_tst", "bf16"},
        {"nvjet_tss", "bf16"}, {"nvjet_hsh", "fp16"}, {"nvjet_hss", "fp16"}, {"nvjet_sss", "tf32"},
        {"tf32", "tf32"},      {"_f16", "fp16"},      {"fp16", "fp16"},      {"half", "fp16"},
        {"Half", "fp16"},      {"h884", "fp16"},      {"h1688", "fp16"},     {"h16816", "fp16"},
        {"i8816", "int8"},     {"i16832", "int8"},    {"int8", "int8"},      {"s1688gemm", "tf32"},
        {"dgemm", "fp64"},     {"d884", "fp64"},      {"sgemm", "fp32"},     {"scudnn", "fp32"},
        {"ffma", "fp32"},      {"<float", "fp32"},    {"fp32", "fp32"},      {"_BBS_", "bf16"},
        {"_HHS_", "fp16"},     {"_SB_", "fp32"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(hints); i++) {
        if (has(name, length, hints[i].text)) {
            return hints[i].type;
        }
    }
    return "";
}

/** The first "128x64"-like group of at least two numbers, cut after the second; "" if none. */
static void tile_text(const char *name, size_t length, char *out, size_t capacity_bytes)
{
    out[0] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(name[i]) || (i > 0 && is_digit(name[i - 1]))) {
            continue;
        }
        size_t x = i;
        while (x < length && is_digit(name[x])) {
            x++;
        }
        if (x - i < 2 || x - i > 4 || x + 1 >= length || name[x] != 'x') {
            continue;
        }
        size_t end = x + 1;
        while (end < length && is_digit(name[end])) {
            end++;
        }
        if (end - x - 1 < 1 || end - x - 1 > 4) {
            continue;
        }
        (void)snprintf(out, capacity_bytes, "%.*s", (int)(end - i), name + i);
        return;
    }
}

/** "AddFunctor", "CUDAFunctor_add", "threshold_kernel_impl" ... -> "add", "threshold". */
static void tidy_word(char *word)
{
    static const char *const prefixes[] = {"CUDAFunctor_", "CUDAFunctorOnSelf_", "launch_"};
    static const char *const suffixes[] = {
        "_kernel_cuda", "_kernel_impl", "_cuda_kernel", "_kernel", "_impl", "Functor",
        "_functor",     "_cuda",        "Kernel",       "_scalar", "_gpu"};
    for (size_t i = 0; i < LAC_COUNT_OF(prefixes); i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(word, prefixes[i], length) != 0 || word[length] == '\0') {
            continue;
        }
        memmove(word, word + length, strlen(word + length) + 1);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(suffixes); i++) {
        size_t length = strlen(suffixes[i]);
        size_t have = strlen(word);
        if (have > length && strcmp(word + have - length, suffixes[i]) == 0) {
            word[have - length] = '\0';
        }
    }
    for (char *at = word; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'Z') {
            *at = (char)(*at + ('a' - 'A'));
        }
    }
}

/** Words that wrap what an elementwise kernel does. */
static bool is_wrapper(const char *word, size_t length)
{
    static const char *const wrappers[] = {"void",
                                           "at",
                                           "native",
                                           "std",
                                           "array",
                                           "float",
                                           "double",
                                           "int",
                                           "long",
                                           "bool",
                                           "char",
                                           "unsigned",
                                           "c10",
                                           "BFloat16",
                                           "Half",
                                           "cuda",
                                           "detail",
                                           "memory",
                                           "Array",
                                           "BinaryFunctor",
                                           "AUnaryFunctor",
                                           "BUnaryFunctor",
                                           "anonymous",
                                           "namespace",
                                           "gpu_kernel_impl",
                                           "gpu_kernel_impl_nocast",
                                           "vectorized_elementwise_kernel",
                                           "elementwise_kernel",
                                           "unrolled_elementwise_kernel",
                                           "TensorIteratorBase",
                                           "TensorIterator",
                                           "binary_internal",
                                           "lambda",
                                           "operator",
                                           "const",
                                           "fbgemm_gpu",
                                           "ReduceOp",
                                           "func_wrapper_t",
                                           "reduce_kernel",
                                           "multi_tensor_apply_kernel",
                                           "TensorListMetadata",
                                           "pytorch_flash",
                                           "opmath_symmetric_gpu_kernel_with_scalars"};
    for (size_t i = 0; i < LAC_COUNT_OF(wrappers); i++) {
        if (strlen(wrappers[i]) == length && memcmp(wrappers[i], word, length) == 0) {
            return true;
        }
    }
    return is_digit(word[0]) || length < 3;
}

/** The first word of the template arguments that says what is computed; "" if none. */
static void inner_word(const char *name, size_t length, char *out, size_t capacity_bytes)
{
    out[0] = '\0';
    const char *open = memchr(name, '<', length);
    if (open == NULL) {
        return;
    }
    size_t at = (size_t)(open - name) + 1;
    while (at < length) {
        while (at < length && !is_word(name[at])) {
            at++;
        }
        size_t end = at;
        while (end < length && is_word(name[end])) {
            end++;
        }
        if (end > at && !is_wrapper(name + at, end - at)) {
            (void)snprintf(out, capacity_bytes, "%.*s", (int)(end - at < 40 ? end - at : 40),
                           name + at);
            tidy_word(out);
            return;
        }
        at = end;
    }
}

/** The function's own name without result type, namespaces, template and parameters. */
static void base_name(const char *name, size_t length, char *out, size_t capacity_bytes)
{
    static const char anonymous[] = "(anonymous namespace)";
    size_t begin = length >= 5 && memcmp(name, "void ", 5) == 0 ? 5 : 0;
    size_t end = begin;
    while (end < length && name[end] != '<') {
        if (name[end] == '(') {
            bool skips = length - end >= sizeof(anonymous) - 1 &&
                         memcmp(name + end, anonymous, sizeof(anonymous) - 1) == 0;
            if (!skips) {
                break;
            }
            end += sizeof(anonymous) - 1;
            continue;
        }
        if (name[end] == ':') {
            begin = end + 1;
        }
        end++;
    }
    if (end == begin) {
        end = length;
    }
    (void)snprintf(out, capacity_bytes, "%.*s", (int)(end - begin < 64 ? end - begin : 64),
                   name + begin);
}

static const char *layout_word(const char *name, size_t length)
{
    static const struct {
        const char *text, *word;
    } words[] = {
        {"nchwToFolded", "nchw->folded nhwc"},
        {"nchwToNhwc", "nchw->nhwc"},
        {"nhwcToNchw", "nhwc->nchw"},
        {"nchw2nhwc", "nchw->nhwc"},
        {"nhwc2nchw", "nhwc->nchw"},
        {"nchw_to_nhwc", "nchw->nhwc"},
        {"nhwc_to_nchw", "nhwc->nchw"},
        {"AddPadding", "pad channels"},
        {"nhwc_padding", "pad channels"},
        {"SwapDimension", "swap dimensions"},
        {"tensorTransform", "tensor transform"},
        {"CNHW2NCHW", "cnhw->nchw"},
        {"NCHW2CNHW", "nchw->cnhw"},
        {"convertTensor", "convert type"},
        {"CatArray", "concatenate"},
        {"copy_device", "copy"},
        {"direct_copy", "strided copy"},
        {"ermute", "permute"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (has(name, length, words[i].text)) {
            return words[i].word;
        }
    }
    return "transpose";
}

static const char *collective_word(const char *name, size_t length)
{
    static const struct {
        const char *text, *word;
    } words[] = {
        {"AllReduce", "all-reduce"},           {"AllGather", "all-gather"},
        {"ReduceScatter", "reduce-scatter"},   {"Broadcast", "broadcast"},
        {"SendRecv", "send and receive"},      {"AllToAll", "all-to-all"},
        {"all_reduce", "all-reduce"},          {"allreduce", "all-reduce"},
        {"cross_device_reduce", "all-reduce"}, {"dispatch", "expert dispatch"},
        {"combine", "expert combine"},         {"Reduce", "reduce"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (has(name, length, words[i].text)) {
            return words[i].word;
        }
    }
    return "collective";
}

static const char *attention_word(const char *name, size_t length)
{
    bool is_backward = has(name, length, "bwd") || has(name, length, "Bwd") ||
                       has(name, length, "backward") || has(name, length, "fmha_cutlassB");
    bool is_flash = has(name, length, "flash") || has(name, length, "Flash");
    if (is_flash) {
        return is_backward ? "flash backward" : "flash forward";
    }
    return is_backward ? "attention backward" : "attention forward";
}

static const char *conv_word(const char *name, size_t length)
{
    if (has(name, length, "dgrad") || has(name, length, "_bwd")) {
        return "conv dgrad";
    }
    if (has(name, length, "wgrad") || has(name, length, "_wrw")) {
        return "conv wgrad";
    }
    return has(name, length, "epthwise") ? "conv depthwise" : "conv";
}

static void join(char *out, size_t capacity_bytes, const char *a, const char *b, const char *c)
{
    (void)snprintf(out, capacity_bytes, "%s%s%s%s%s", a, b[0] ? " " : "", b, c[0] ? " " : "", c);
}

/** "elementwise add"; a bare word of the family when nothing more can be read. */
static void family_and_word(const char *family, const char *name, size_t length, char *out,
                            size_t capacity_bytes)
{
    char word[48];
    inner_word(name, length, word, sizeof(word));
    join(out, capacity_bytes, family, word, "");
}

static void describe(const char *name, size_t length, const struct lac_name_class *name_class,
                     char *out, size_t capacity_bytes)
{
    char tile[16];
    switch (name_class->family) {
    case LAC_FAMILY_GEMM:
    case LAC_FAMILY_CONV:
        tile_text(name, length, tile, sizeof(tile));
        join(out, capacity_bytes,
             name_class->family == LAC_FAMILY_CONV ? conv_word(name, length) : "gemm",
             data_type(name, length), tile);
        return;
    case LAC_FAMILY_ATTENTION:
        join(out, capacity_bytes, attention_word(name, length), data_type(name, length), "");
        return;
    case LAC_FAMILY_COMM:
        join(out, capacity_bytes, collective_word(name, length), "", "");
        return;
    case LAC_FAMILY_LAYOUT:
        join(out, capacity_bytes, layout_word(name, length), "", "");
        return;
    case LAC_FAMILY_COPY:
        join(out, capacity_bytes,
             name_class->layout == LAC_LAYOUT_K ? "cast" : layout_word(name, length), "", "");
        return;
    case LAC_FAMILY_ELEMENTWISE:
        if (!has(name, length, "at::native")) {
            break;
        }
        family_and_word("elementwise", name, length, out, capacity_bytes);
        return;
    case LAC_FAMILY_OPTIMIZER:
        if (!has(name, length, "multi_tensor_apply")) {
            break;
        }
        family_and_word("multi-tensor", name, length, out, capacity_bytes);
        return;
    case LAC_FAMILY_REDUCE:
        if (!has(name, length, "reduce_kernel")) {
            break;
        }
        family_and_word("reduce", name, length, out, capacity_bytes);
        return;
    case LAC_FAMILY_FILL:
        join(out, capacity_bytes, "fill", "", "");
        return;
    case LAC_FAMILY_OTHER:
    case LAC_FAMILY_NORM:
    case LAC_FAMILY_SOFTMAX:
    case LAC_FAMILY_INDEX:
    case LAC_FAMILY_RNG:
    case LAC_FAMILY_TRITON:
    case LAC_FAMILY_MOE:
    case LAC_FAMILY_POOL:
    case LAC_FAMILY_COUNT_:
        break;
    }
    base_name(name, length, out, capacity_bytes);
}

size_t lac_kernel_short_name(const char *name, size_t length, char *out, size_t capacity_bytes)
{
    assert(out != NULL || capacity_bytes == 0);
    assert(name != NULL || length == 0);
    if (capacity_bytes == 0) {
        return 0;
    }
    struct lac_name_class name_class;
    if (length > LOOK_BYTES_MAX) {
        length = LOOK_BYTES_MAX;
    }
    lac_names_classify(name, length, &name_class);
    char text[SHORT_BYTES];
    describe(name, length, &name_class, text, sizeof(text));
    const size_t used = lac_utf8_cut(text, strlen(text), capacity_bytes - 1);
    memcpy(out, text, used);
    out[used] = '\0';
    return used;
}
