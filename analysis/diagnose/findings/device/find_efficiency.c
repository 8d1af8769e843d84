/*
 * Products against what the GPU can do at their shapes. A fact, unless most of what is lost has a
 * reason that the shapes show: products too small to fill the GPU, or lengths that its tensor cores
 * do not take whole.
 */

#include "analysis/diagnose/facts/products.h"
#include "analysis/diagnose/findings/device/device_thresholds.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/names/op_shapes.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum reason { REASON_NONE = 0, REASON_SMALL, REASON_ODD, REASON_COUNT_ };

struct losses {
    double ns, bound_ns;           /**< of all products whose bound is known */
    double lost_ns[REASON_COUNT_]; /**< beyond the bound at PRODUCTS_REACH */
    double all_lost_ns;
    uint32_t top[REASON_COUNT_]; /**< group that loses most; LAC_NONE */
    uint32_t top_of_all;
};

static bool is_plain_product(const struct lac_product_group *group)
{
    return group->kind == LAC_FLOP_PRODUCT || group->kind == LAC_FLOP_LINEAR;
}

/** Whether the output has fewer tiles than the GPU has multiprocessors, and a call is short. */
static bool is_small(const struct lac_product_group *group, int32_t multiprocessors)
{
    double rows = ceil((double)group->size[1] / TILE_ROWS);
    double columns = ceil((double)group->size[2] / TILE_ROWS);
    double tiles = (double)group->size[0] * rows * columns;
    return is_plain_product(group) && tiles < (double)multiprocessors &&
           group->ns / (double)group->count < SMALL_CALL_NS;
}

/** Elements that the lengths of a product in this precision should be multiples of; 0 any. */
static int64_t multiple_of(enum lac_precision precision)
{
    if (precision == LAC_PRECISION_FP16 || precision == LAC_PRECISION_BF16) {
        return 8;
    }
    return precision == LAC_PRECISION_FP8 || precision == LAC_PRECISION_INT8 ? 16 : 0;
}

/** The first length that is no multiple, or 0. A name that says its alignment is judged by
 *  tensor-cores-misaligned. */
static int64_t odd_length(const struct lac_facts *facts, const struct lac_product_group *group)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t multiple = multiple_of(group->precision);
    bool is_said =
        group->longest == LAC_NONE ||
        lac_kernel_alignment(lac_model_str(facts->model, slices->name[group->longest])) > 0;
    for (int i = 1; i < 4 && is_plain_product(group) && multiple > 0 && !is_said; i++) {
        bool is_length = group->size[i] > multiple && group->size[i] <= LAC_NUMBER_MAX;
        if (is_length && group->size[i] % multiple != 0) {
            return group->size[i];
        }
    }
    return 0;
}

static double lost_ns(const struct lac_product_group *group, double reach)
{
    return fmax(0.0, group->ns - group->bound_ns / reach);
}

static enum reason reason_of(const struct lac_facts *facts, const struct lac_product_group *group)
{
    if (is_small(group, facts->products->peak->multiprocessors)) {
        return REASON_SMALL;
    }
    return odd_length(facts, group) > 0 ? REASON_ODD : REASON_NONE;
}

static void keep_top(const struct lac_products *products, uint32_t group, uint32_t *top)
{
    if (*top == LAC_NONE || lost_ns(&products->groups[group], PRODUCTS_REACH) >
                                lost_ns(&products->groups[*top], PRODUCTS_REACH)) {
        *top = group;
    }
}

static void collect(const struct lac_facts *facts, struct losses *losses)
{
    const struct lac_products *products = facts->products;
    *losses = (struct losses){.top_of_all = LAC_NONE};
    for (int reason = 0; reason < REASON_COUNT_; reason++) {
        losses->top[reason] = LAC_NONE;
    }
    for (uint32_t g = 0; g < products->group_count; g++) {
        const struct lac_product_group *group = &products->groups[g];
        if (!(group->bound_ns > 0.0)) {
            continue;
        }
        enum reason reason = reason_of(facts, group);
        double lost = lost_ns(group, PRODUCTS_REACH);
        losses->ns += group->ns;
        losses->bound_ns += fmin(group->bound_ns, group->ns);
        losses->lost_ns[reason] += lost;
        losses->all_lost_ns += lost;
        keep_top(products, g, &losses->top[reason]);
        keep_top(products, g, &losses->top_of_all);
    }
}

/** "aten::mm 4096 x 1024 x 1024 (bf16): 12 ms per step at 31 % of what its shape allows". */
static const char *describe(const struct lac_facts *facts, uint32_t index)
{
    const struct lac_product_group *group = &facts->products->groups[index];
    char size[128] = "";
    if (group->size[3] > 0) {
        char batch[32] = "";
        if (group->size[0] > 1) {
            (void)snprintf(batch, sizeof(batch), "%lld x ", (long long)group->size[0]);
        }
        (void)snprintf(size, sizeof(size), " %s%lld x %lld x %lld", batch,
                       (long long)group->size[1], (long long)group->size[2],
                       (long long)group->size[3]);
    }
    return lac_texts_add(
        &facts->analysis->texts, "%.60s%s (%s) takes %s per step at %s of what its shape allows",
        lac_model_str(facts->model, group->name), size, lac_precision_name(group->precision),
        lac_format_ns(lac_round(group->ns / facts->products->steps)).text,
        lac_format_pct(100.0 * fmin(1.0, group->bound_ns / group->ns)).text);
}

/** The step with the products of that reason at three shares of what their shapes allow. */
static bool open_change(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct losses *losses, enum reason reason)
{
    static const double reaches[LAC_CASE_COUNT_] = {PRODUCTS_REACH, PRODUCTS_REACH_MID,
                                                    PRODUCTS_REACH_WORST};
    const struct lac_products *products = facts->products;
    struct lac_change changes[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_saving saving = {0};
        for (uint32_t g = 0; g < products->group_count; g++) {
            const struct lac_product_group *group = &products->groups[g];
            if (!(group->bound_ns > 0.0) || reason_of(facts, group) != reason) {
                continue;
            }
            double ns = lost_ns(group, reaches[which]) / products->steps;
            saving.ns[lac_kernel_op_class(facts, group->longest)] += ns;
        }
        lac_change_from_saving(facts, &saving, 1.0, &changes[which]);
    }
    return lac_finding_open_changes(facts, finding, losses->lost_ns[reason] / products->steps,
                                    COST_OF_WORK_MIN_PCT, changes);
}

static void propose_small(const struct lac_facts *facts, struct lac_finding *finding)
{
    finding->title = lac_texts_add(&facts->analysis->texts,
                                   "GEMMs too small to fill the GPU lose %s of every %s step",
                                   lac_format_ns(finding->cost_ns_per_step).text,
                                   lac_format_ns(facts->analysis->step_mean_ns).text);
    finding->brief = "batch small GEMMs";
    finding->change = "# one GEMM instead of many:\n"
                      "qkv = torch.nn.Linear(d, 3 * d)     # instead of three of d by d\n"
                      "torch.bmm(torch.stack(a), torch.stack(b))   # same shapes in a list\n"
                      "# experts and adapters: a grouped GEMM (torch._grouped_mm); else a larger "
                      "batch";
    finding->costs = "Weights are laid out anew: convert checkpoints once. A larger batch changes "
                     "training.";
    finding->wrong_if = "other streams fill the GPU at the same time.";
    finding->check = "record again with record_shapes=True: fewer GEMMs, each with more rows";
}

static void propose_odd(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct lac_product_group *top)
{
    int64_t multiple = multiple_of(top->precision);
    assert(multiple > 0);
    int64_t size = odd_length(facts, top);
    int64_t padded = (size + multiple - 1) / multiple * multiple;
    finding->title = lac_texts_add(&facts->analysis->texts,
                                   "GEMMs with misaligned dimensions lose %s of every %s step",
                                   lac_format_ns(finding->cost_ns_per_step).text,
                                   lac_format_ns(facts->analysis->step_mean_ns).text);
    finding->brief = "pad to a multiple";
    finding->change = lac_texts_add(&facts->analysis->texts,
                                    "# %lld: pad it to %lld, a multiple of %lld (zero rows or "
                                    "columns; for a vocabulary: unused "
                                    "entries)",
                                    (long long)size, (long long)padded, (long long)multiple);
    finding->costs = "Some memory and compute for padding; results are unchanged where nothing "
                     "reads it.";
    finding->wrong_if = "the library pads inside its kernels: then their time stays.";
    finding->check = "record again with record_shapes=True: the same GEMMs take less time";
}

static bool has_finding(const struct lac_facts *facts, enum lac_finding_kind kind)
{
    return lac_finding_of(facts->analysis, kind) != NULL;
}

/** The reason for most of what is lost. */
static enum reason main_reason(const struct losses *losses)
{
    for (enum reason reason = REASON_SMALL; reason < REASON_COUNT_; reason++) {
        bool is_most = losses->lost_ns[reason] >= LOST_SHARE_MIN * losses->all_lost_ns;
        if (is_most && losses->top[reason] != LAC_NONE) {
            return reason;
        }
    }
    return REASON_NONE;
}

bool lac_find_efficiency(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_efficiency *efficiency = &analysis->efficiency;
    const struct lac_products *products = facts->products;
    struct losses losses;
    if (isnan(efficiency->mfu_pct) || products->steps <= 0.0 || products->peak == NULL) {
        return false;
    }
    collect(facts, &losses);
    double cost_ns = losses.ns / products->steps;
    if (lac_pct_of_step(facts, cost_ns) < PRODUCTS_MIN_PCT ||
        losses.bound_ns >= PRODUCTS_SLOW_MAX * losses.ns) {
        return false;
    }
    enum reason reason = main_reason(&losses);
    bool is_open = reason != REASON_NONE && open_change(facts, finding, &losses, reason);
    uint32_t top = is_open ? losses.top[reason] : losses.top_of_all;
    if (is_open && reason == REASON_SMALL) {
        propose_small(facts, finding);
    } else if (is_open) {
        propose_odd(facts, finding, &products->groups[top]);
    } else {
        if (has_finding(facts, LAC_FINDING_UNFUSED_ATTENTION) ||
            has_finding(facts, LAC_FINDING_TENSOR_CORES_MISALIGNED)) {
            return false; /* says why, and what to do */
        }
        lac_finding_open_fact(finding);
        lac_finding_cost(facts, finding, cost_ns);
        finding->title = lac_texts_add(&analysis->texts,
                                       "GEMMs run at %s of what the GPU can do at their shapes",
                                       lac_format_pct(100.0 * losses.bound_ns / losses.ns).text);
        finding->wrong_if = "kernels of other streams share the GPU with them.";
    }
    finding->why =
        lac_texts_add(&analysis->texts, "%s. %s.", describe(facts, top), efficiency->text);
    if (is_open) {
        finding->expect = lac_texts_add(
            &analysis->texts, "%s. Assumes that they reach 35 to 70 %% of what their shapes allow.",
            lac_finding_expect(facts, finding));
    }
    if (products->groups[top].longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, products->groups[top].longest,
                           "the longest kernel of that GEMM");
    }
    return true;
}
