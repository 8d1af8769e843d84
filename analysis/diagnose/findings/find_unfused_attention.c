/*
 * Attention written as products with a softmax between them. The scores, one number for each pair
 * of positions, go through memory several times; a fused kernel keeps them on the chip. A softmax
 * at the end of a model (the loss, a router) has no product behind it and is not meant.
 */

#include "analysis/diagnose/facts/recorded/code_places.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/names/op_shapes.h"
#include "analysis/diagnose/names/python_frame.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    BETWEEN_MAX =
        4, /**< operations between a softmax and its product: mask, scale, dropout, cast */
    CHECKED_MAX = 32,
};

struct attention {
    double product_ns, other_ns; /**< of all covered steps */
    uint64_t count;              /**< softmaxes of the forward pass */
    struct lac_shorter shorter;
    uint32_t longest; /**< slice */
    uint64_t example; /**< index of the longest product in the work, of an odd length if any */
    double example_ns;
    bool has_misaligned; /**< products on kernels for lengths that are no multiple */
};

static bool is_product(const struct lac_kernel_facts *kernel)
{
    return kernel != NULL && kernel->names.family == LAC_FAMILY_GEMM;
}

/** What stands between: elementwise work of any kind, copies on the device. */
static bool is_between(const struct lac_facts *facts, const struct lac_step_operation *op)
{
    const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, op);
    if (kernel == NULL) {
        return true; /* a copy or a memset */
    }
    enum lac_family family = kernel->names.family;
    return family == LAC_FAMILY_ELEMENTWISE || family == LAC_FAMILY_COPY ||
           family == LAC_FAMILY_RNG || family == LAC_FAMILY_FILL || family == LAC_FAMILY_REDUCE;
}

/** Index of the nearest product before (-1) or behind (+1) `from` on its stream; LAC_NONE when none. */
static uint32_t product_near(const struct lac_facts *facts, uint32_t from, int direction)
{
    const struct lac_step_operation *ops = facts->step_operations->ops;
    uint32_t at = from;
    for (int step = 0; step <= BETWEEN_MAX; step++) {
        at = direction < 0 ? ops[at].before : ops[at].after;
        if (at == LAC_NONE || is_product(lac_step_operation_kernel(facts, &ops[at]))) {
            return at;
        }
        if (!is_between(facts, &ops[at])) {
            return LAC_NONE;
        }
    }
    return LAC_NONE;
}

/** A softmax of attention: not the logarithm of a loss. */
static bool is_softmax(const struct lac_facts *facts, const struct lac_step_operation *op)
{
    const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, op);
    if (kernel == NULL || kernel->names.family != LAC_FAMILY_SOFTMAX) {
        return false;
    }
    const char *name = lac_model_str(facts->model, kernel->name);
    const char *around = lac_step_operation_name(facts, op);
    return strcasestr(name, "softmax") != NULL && strcasestr(name, "logsoftmax") == NULL &&
           strcasestr(name, "log_softmax") == NULL && strcasestr(around, "log_softmax") == NULL &&
           strcasestr(around, "cross_entropy") == NULL;
}

/** Whether the operators, where recorded, are batched products; a layer of a model is none. */
static bool may_be_scores(const struct lac_facts *facts, const struct lac_step_operation *op)
{
    const char *name = lac_step_operation_name(facts, op);
    return strncmp(name, "aten::", 6) != 0 || strstr(name, "bmm") != NULL ||
           strstr(name, "matmul") != NULL || strstr(name, "einsum") != NULL;
}

static void add_operation(const struct lac_facts *facts, struct attention *attention, uint64_t at)
{
    /* what a fused kernel saves: of the products, of those on slow kernels for odd lengths (it takes any),
     * and of what stands between them */
    static const double of_product[LAC_CASE_COUNT_] = {0.4, 0.1, 0.0};
    static const double of_odd_product[LAC_CASE_COUNT_] = {0.95, 0.7, 0.2};
    static const double of_other[LAC_CASE_COUNT_] = {0.98, 0.85, 0.5};
    const struct lac_step_operation *op = &facts->step_operations->ops[at];
    const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, op);
    bool is_a_product = is_product(kernel);
    double ns = op->exposed_ns;
    attention->product_ns += is_a_product ? ns : 0.0;
    attention->other_ns += is_a_product ? 0.0 : ns;
    int64_t alignment =
        is_a_product ? lac_kernel_alignment(lac_model_str(facts->model, kernel->name)) : 0;
    bool is_odd = alignment > 0 && alignment < 4;
    lac_shorter_add(facts, &attention->shorter, op,
                    is_odd         ? of_odd_product
                    : is_a_product ? of_product
                                   : of_other);
    if (is_a_product) {
        bool is_longer = is_odd == attention->has_misaligned && ns > attention->example_ns;
        if (is_longer || (is_odd && !attention->has_misaligned)) {
            attention->example = at;
            attention->example_ns = ns;
        }
        attention->has_misaligned = attention->has_misaligned || is_odd;
    }
}

/** Whether it is a softmax between two products of attention. */
static bool is_attention(const struct lac_facts *facts, uint32_t at)
{
    const struct lac_step_operation *ops = facts->step_operations->ops;
    if (!is_softmax(facts, &ops[at])) {
        return false;
    }
    const uint32_t first = product_near(facts, at, -1);
    const uint32_t last = product_near(facts, at, 1);
    return first != LAC_NONE && last != LAC_NONE && may_be_scores(facts, &ops[first]) &&
           may_be_scores(facts, &ops[last]);
}

/** Whether such a softmax stands before (-1) or behind (+1) it, with no product in between. */
static bool has_attention(const struct lac_facts *facts, uint32_t from, int direction)
{
    const struct lac_step_operation *ops = facts->step_operations->ops;
    uint32_t at = from;
    for (int step = 0; step <= 2 * BETWEEN_MAX; step++) {
        at = direction < 0 ? ops[at].before : ops[at].after;
        if (at == LAC_NONE || is_product(lac_step_operation_kernel(facts, &ops[at]))) {
            return false;
        }
        if (is_attention(facts, at)) {
            return true;
        }
        if (!is_between(facts, &ops[at])) {
            return false;
        }
    }
    return false;
}

static void collect(const struct lac_facts *facts, struct attention *attention)
{
    const struct lac_step_operations *work = facts->step_operations;
    int64_t longest_ns = -1;
    attention->longest = LAC_NONE;
    for (uint32_t i = 0; i < work->count; i++) {
        const bool is_itself = is_attention(facts, i);
        const bool is_part = is_itself ||
                             is_product(lac_step_operation_kernel(facts, &work->ops[i])) ||
                             is_between(facts, &work->ops[i]);
        if (is_part && (is_itself || has_attention(facts, i, -1) || has_attention(facts, i, 1))) {
            add_operation(facts, attention, i);
        }
        if (!is_itself) {
            continue;
        }
        attention->count += (work->ops[i].context & LAC_OPERATION_IN_BACKWARD) == 0;
        int64_t dur_ns = facts->model->slices.dur_ns[work->ops[i].slice];
        if (dur_ns > longest_ns) {
            longest_ns = dur_ns;
            attention->longest = work->ops[i].slice;
        }
    }
}

/** " The length 5185 is not a multiple of 8 ..." where shapes say so; to pad it only where no fused kernel
 *  is advised, which takes any length. */
static const char *length_text(const struct lac_facts *facts, const struct attention *attention,
                               bool is_fused)
{
    enum { MULTIPLE = 8 };
    struct lac_text **texts = &facts->analysis->texts;
    if (!attention->has_misaligned) {
        return "";
    }
    const struct lac_step_operation *op = &facts->step_operations->ops[attention->example];
    struct lac_shape inputs[LAC_SHAPE_INPUTS];
    struct lac_product product;
    if (op->op == LAC_NONE || !lac_op_shapes(facts->model, op->op, inputs) ||
        !lac_op_product(lac_step_operation_name(facts, op), inputs, &product)) {
        return lac_texts_add(texts,
                             " The GEMMs use kernels for lengths that are not a multiple of 8%s.",
                             is_fused ? "; a fused kernel takes any" : ": pad the sequence");
    }
    for (int i = 0; i < 3; i++) {
        int64_t size = product.sizes[i];
        if (size > MULTIPLE && size % MULTIPLE != 0) {
            int64_t padded = (size / MULTIPLE + 1) * MULTIPLE;
            const char *pad = lac_texts_add(texts, ": pad it to %lld", (long long)padded);
            return lac_texts_add(texts,
                                 " The length %lld is not a multiple of 8, so the GEMMs use slower "
                                 "kernels%s.",
                                 (long long)size, is_fused ? "; a fused kernel takes any" : pad);
        }
    }
    return "";
}

/** Whether the framework's own function was called and fell back to separate kernels. */
static bool is_fallback(const struct lac_facts *facts)
{
    static const char name[] = "aten::_scaled_dot_product_attention_math";
    const struct lac_slices *slices = &facts->model->slices;
    const struct lac_step_operations *work = facts->step_operations;
    uint64_t checked = 0;
    for (uint64_t i = 0; i < work->count && checked < CHECKED_MAX; i++) {
        if (work->ops[i].op == LAC_NONE || !is_softmax(facts, &work->ops[i])) {
            continue;
        }
        checked++;
        uint32_t op = work->ops[i].op;
        int64_t start_ns = slices->start_ns[op];
        for (uint32_t back = 1; back <= 32 && op >= back; back++) {
            uint32_t at = op - back;
            if (slices->start_ns[at] + slices->dur_ns[at] > start_ns &&
                strcmp(lac_model_str(facts->model, slices->name[at]), name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool holds(const char *text, size_t length, const char *part)
{
    return memmem(text, length, part, strlen(part)) != NULL;
}

/**
 * The call instead of what is written now. Transformers' argument selects among functions that a class
 * knows; one with the softmax in its own forward() knows no other. Frames tell: of a
 * model's file, and not of the function that the argument selects ("eager_attention_forward").
 */
static const char *change_of_code(const struct lac_facts *facts, const struct attention *attention)
{
    static const char call[] =
        "out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n";
    static const char written[] = "softmax(q @ k.transpose(-2, -1) * scale + mask) @ v";
    static const char argument[] = "AutoModel.from_pretrained(..., attn_implementation=\"sdpa\")";
    struct lac_text **texts = &facts->analysis->texts;
    struct lac_frame frame;
    uint32_t host =
        attention->longest != LAC_NONE ? facts->model->slices.link[attention->longest] : LAC_NONE;
    if (host == LAC_NONE || !lac_code_frame(facts, host, &frame)) {
        return lac_texts_add(texts, "%s# instead of %s; in Transformers:\n%s", call, written,
                             argument);
    }
    if (holds(frame.function, frame.function_length, "attention_forward")) {
        return argument;
    }
    return lac_texts_add(
        texts, "%s# instead of %s\n# in %s%s", call, written, lac_code_place(facts, host),
        holds(frame.path, frame.path_length, "modeling_")
            ? ", which computes it itself: attn_implementation does not change that"
            : "");
}

static void propose(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct attention *attention)
{
    struct lac_analysis *analysis = facts->analysis;
    bool fell_back = is_fallback(facts);
    finding->brief = "fused attention";
    if (fell_back) {
        finding->change =
            "from torch.nn.attention import sdpa_kernel, SDPBackend\n"
            "with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):\n"
            "    out = model(batch)   # raises and says why the fused kernels do not apply";
    } else {
        finding->change = change_of_code(facts, attention);
    }
    finding->expect =
        lac_texts_add(&analysis->texts,
                      "%s. Assumes that a fused kernel saves 50-98 %% of the work "
                      "between the GEMMs, and of the GEMMs up to 40 %%, most of those "
                      "with misaligned dimensions.",
                      lac_finding_expect(facts, finding));
    finding->costs = "Needs PyTorch 2.0, and half precision for the fastest kernels. The scores "
                     "are no longer accessible. Rounding differs: compare results.";
    finding->wrong_if = "the code needs the scores, or the softmax is not part of attention.";
    finding->check =
        "record again: flash or efficient attention kernels replace the softmax kernels";
}

const char *lac_unfused_attention_text(const struct lac_facts *facts)
{
    struct attention attention = {0};
    if (facts->step_operations->steps <= 0.0) {
        return "";
    }
    collect(facts, &attention);
    double ns = attention.product_ns + attention.other_ns;
    double pct = 100.0 * ns / (facts->time->compute_ns * facts->step_operations->steps);
    if (attention.count == 0 || !(pct >= FACT_MIN_PCT)) {
        return "";
    }
    return lac_texts_add(
        &facts->analysis->texts,
        "Unfused attention (a softmax between two GEMMs) takes %s of the kernel time.%s",
        lac_format_pct(fmin(pct, 100.0)).text,
        length_text(facts, &attention,
                    lac_finding_of(facts->analysis, LAC_FINDING_UNFUSED_ATTENTION) != NULL));
}

bool lac_find_unfused_attention(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct attention attention = {0};
    lac_shorter_begin(facts, finding->kind, &attention.shorter);
    collect(facts, &attention);
    double steps = facts->step_operations->steps;
    if (attention.count == 0 || steps <= 0.0 || (double)attention.count < steps) {
        return false;
    }
    struct lac_change changes[LAC_CASE_COUNT_];
    lac_changes_from_shorter(facts, &attention.shorter, changes);
    double cost_ns = (attention.product_ns + attention.other_ns) / steps;
    if (!lac_finding_open_changes(facts, finding, cost_ns, COST_OF_WORK_MIN_PCT, changes)) {
        return false;
    }
    double between_pct = 100.0 * attention.other_ns / (attention.product_ns + attention.other_ns);
    finding->title = lac_texts_add(
        &analysis->texts, "Unfused attention takes %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "A softmax runs between two GEMMs %s times per step; %s of that time goes to it and other "
        "work on the scores, which pass through memory each time.%s%s",
        lac_format_rate((double)attention.count / steps).text, lac_format_pct(between_pct).text,
        is_fallback(facts) ? " scaled_dot_product_attention fell back to unfused kernels." : "",
        length_text(facts, &attention, true));
    propose(facts, finding, &attention);
    if (attention.longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, attention.longest,
                           "the longest softmax between two GEMMs");
    }
    lac_evidence_slice(facts, finding, facts->step_operations->ops[attention.example].slice,
                       "one of these GEMMs");
    return true;
}
