/*
 * Work in a wider type than the rest of the loop: float64 anywhere beside products that are not, and
 * float32 products in a loop whose products are in half precision. A value that nobody chose widens
 * what follows it.
 */

#include "analysis/diagnose/facts/step_operations.h"
#include "analysis/diagnose/findings/device/device_thresholds.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/names/kernel_precision.h"

#include <stdint.h>
#include <stdlib.h>

struct wide {
    struct lac_shorter shorter;
    double ns[2];      /**< exposed, of float32 products and of float64 */
    uint64_t count[2]; /**< kernels */
    uint64_t longest[2];
    uint32_t longest_ns[2];
};

static bool is_half(enum lac_precision precision)
{
    return precision == LAC_PRECISION_FP16 || precision == LAC_PRECISION_BF16 ||
           precision == LAC_PRECISION_FP8;
}

enum lac_precision lac_products_precision(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    double ns[LAC_PRECISION_COUNT_] = {0.0};
    double all = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[row];
        if (kernel->names.is_eligible) {
            const char *name = lac_model_str(facts->model, kernel->name);
            ns[lac_kernel_precision(name)] += (double)kernel->total_ns;
            all += (double)kernel->total_ns;
        }
    }
    for (int p = LAC_PRECISION_UNKNOWN + 1; p < LAC_PRECISION_COUNT_; p++) {
        if (all > 0.0 && ns[p] >= LOOP_PRECISION_MIN * all) {
            return (enum lac_precision)p;
        }
    }
    return LAC_PRECISION_UNKNOWN;
}

/** Which of the two a kernel is: 0 a float32 product, 1 float64; -1 neither. */
static int kind_of(const struct lac_kernel_facts *kernel, enum lac_precision precision,
                   enum lac_precision loop)
{
    if (kernel->names.is_comm) {
        return -1;
    }
    if (precision == LAC_PRECISION_FP64) {
        return 1;
    }
    bool is_single = precision == LAC_PRECISION_FP32 || precision == LAC_PRECISION_TF32;
    return is_single && kernel->names.is_eligible && is_half(loop) ? 0 : -1;
}

static void add(const struct lac_facts *facts, struct wide *wide, uint64_t at, int kind)
{
    static const double of_double[LAC_CASE_COUNT_] = {0.95, 0.75, 0.4};
    const struct lac_step_operation *op = &facts->step_operations->ops[at];
    double parts[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        parts[which] = kind == 1 ? of_double[which]
                                 : 1.0 - 1.0 / lac_tensor_speedup(facts, (enum lac_case)which);
    }
    lac_shorter_add(facts, &wide->shorter, op, parts);
    wide->ns[kind] += (double)op->exposed_ns;
    if (wide->count[kind]++ == 0 || op->exposed_ns > wide->longest_ns[kind]) {
        wide->longest[kind] = at;
        wide->longest_ns[kind] = op->exposed_ns;
    }
}

/** @return false when out of memory: then nothing is said */
static bool collect(const struct lac_facts *facts, enum lac_precision loop, struct wide *wide)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_operations *work = facts->step_operations;
    int8_t *kinds = calloc((size_t)analysis->kernel_name_count + 1, sizeof(*kinds));
    if (kinds == NULL) {
        return false;
    }
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[row];
        const char *name = lac_model_str(facts->model, kernel->name);
        kinds[row] = (int8_t)kind_of(kernel, lac_kernel_precision(name), loop);
    }
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        uint64_t row = kernel != NULL ? (uint64_t)(kernel - analysis->kernels) : UINT64_MAX;
        if (row < analysis->kernel_name_count && kinds[row] >= 0) {
            add(facts, wide, i, kinds[row]);
        }
    }
    free(kinds);
    return true;
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct wide *wide, enum lac_precision loop)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_operations *work = facts->step_operations;
    int kind = wide->ns[1] >= wide->ns[0];
    const struct lac_step_operation *longest = &work->ops[wide->longest[kind]];
    const char *op = lac_step_operation_name(facts, longest);
    const char *what = kind == 1 ? "float64" : "float32";
    finding->title = lac_texts_add(
        &analysis->texts, "%s in a %s loop takes %s of every %s step (%s)",
        kind == 1 ? "Work in float64" : "Matrix work in float32", lac_precision_name(loop),
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s kernels per step compute in %s%s%.60s; most GEMMs are in %s. A value of a wider type "
        "widens all that is computed from it.",
        lac_format_rate((double)wide->count[kind] / work->steps).text, what,
        op[0] != '\0' ? ", the longest in " : "", op, lac_precision_name(loop));
    finding->expect = lac_finding_expect(facts, finding);
    if (kind == 1) {
        finding->brief = "no float64";
        finding->change = "x = torch.as_tensor(array, dtype=torch.float32)  # NumPy's are float64\n"
                          "# and .double(), torch.float64, np.float64 scalars on the way to it";
        finding->costs = "Sums over millions of values may need float64: keep those.";
        finding->wrong_if = "the result needs 53 bits of mantissa.";
    } else {
        finding->brief = "autocast for all GEMMs";
        finding->change = lac_texts_add(&analysis->texts,
                                        "with torch.autocast('cuda', dtype=torch.%s):\n"
                                        "    out = block(x)  # now outside of it, in "
                                        "autocast(enabled=False), or after .float()",
                                        loop == LAC_PRECISION_FP16 ? "float16" : "bfloat16");
        finding->costs = "Fewer bits of mantissa in these GEMMs: compare results.";
        finding->wrong_if = "these GEMMs are kept in float32 on purpose (a loss, a router).";
    }
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_slice(facts, finding, longest->slice,
                       lac_texts_add(&analysis->texts, "in %s", what));
}

bool lac_find_wide_precision(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct wide wide = {.longest = {0, 0}};
    enum lac_precision loop = lac_products_precision(facts);
    bool may_hold = loop != LAC_PRECISION_UNKNOWN && loop != LAC_PRECISION_FP64 &&
                    facts->step_operations->steps > 0.0;
    lac_shorter_begin(facts, finding->kind, &wide.shorter);
    if (!may_hold || !collect(facts, loop, &wide)) {
        return false;
    }
    struct lac_change changes[LAC_CASE_COUNT_];
    lac_changes_from_shorter(facts, &wide.shorter, changes);
    double cost_ns = (wide.ns[0] + wide.ns[1]) / facts->step_operations->steps;
    if (!lac_finding_open_changes(facts, finding, cost_ns, COST_OF_WORK_MIN_PCT, changes)) {
        return false;
    }
    finding->confidence = 0.65;
    explain(facts, finding, &wide, loop);
    return true;
}
