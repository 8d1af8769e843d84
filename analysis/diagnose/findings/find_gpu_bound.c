/* The GPU is the limit: computing kernels, without communication, fill nine tenths of the step. It
 * proposes nothing itself: what shortens the kernels are findings of their own. */

#include "analysis/diagnose/facts/gpu_counters.h"
#include "analysis/diagnose/findings/findings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>

/** Kinds of computing kernels as people say them. */
static const struct {
    const char *text;
    enum lac_family families[4];
    int count;
} kinds[] = {
    {"GEMMs", {LAC_FAMILY_GEMM}, 1},
    {"convolutions", {LAC_FAMILY_CONV}, 1},
    {"attention", {LAC_FAMILY_ATTENTION}, 1},
    {"elementwise and normalization",
     {LAC_FAMILY_ELEMENTWISE, LAC_FAMILY_NORM, LAC_FAMILY_SOFTMAX, LAC_FAMILY_TRITON},
     4},
    {"optimizer", {LAC_FAMILY_OPTIMIZER}, 1},
    {"reductions and indexing", {LAC_FAMILY_REDUCE, LAC_FAMILY_INDEX}, 2},
    {"copies, casts and fills", {LAC_FAMILY_COPY, LAC_FAMILY_LAYOUT, LAC_FAMILY_FILL}, 3},
};
enum { KIND_COUNT = LAC_COUNT_OF(kinds) };

struct share {
    int kind;
    double pct;
};

static int by_pct(const void *a, const void *b)
{
    const struct share *x = a;
    const struct share *y = b;
    if (x->pct > y->pct || x->pct < y->pct) {
        return x->pct > y->pct ? -1 : 1;
    }
    return x->kind - y->kind;
}

static void share_of_kinds(const struct lac_analysis *analysis, struct share shares[KIND_COUNT])
{
    double total = 0.0;
    double by_family[LAC_FAMILY_COUNT_] = {0.0};
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (kernel_facts->names.is_comm) {
            continue;
        }
        by_family[kernel_facts->names.family] += (double)kernel_facts->total_ns;
        total += (double)kernel_facts->total_ns;
    }
    for (int k = 0; k < KIND_COUNT; k++) {
        shares[k] = (struct share){.kind = k};
        for (int f = 0; f < kinds[k].count && total > 0.0; f++) {
            shares[k].pct += 100.0 * by_family[kinds[k].families[f]] / total;
        }
    }
}

/** "Kernel time: convolutions 53 %, optimizer 2 %." */
static const char *kinds_text(const struct lac_facts *facts, const struct share *shares)
{
    struct lac_text **texts = &facts->analysis->texts;
    const char *text = "";
    for (int k = 0; k < 3 && shares[k].pct >= 1.0; k++) {
        text = lac_texts_add(texts, "%s%s%s %.0f %%", text,
                             k > 0 ? ", " : "Kernel time: ", kinds[shares[k].kind].text,
                             shares[k].pct);
    }
    return text[0] == '\0' ? "The kernels' names do not show their kind."
                           : lac_texts_add(texts, "%s.", text);
}

/** Nine tenths of the time compute, and yet less than half of the GPU on average: said, as busy is
 *  not full. */
enum { FILLED_PCT = 50 };

static const char *counters_text(const struct lac_facts *facts)
{
    struct lac_gpu_counters counters;
    lac_gpu_counters_measure(facts, &counters);
    return lac_texts_add(&facts->analysis->texts, "%s%s", lac_gpu_counters_text(facts, &counters),
                         counters.sms_active < FILLED_PCT
                             ? " It is always busy, but its kernels do not fill it."
                             : "");
}

bool lac_find_gpu_bound(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    double computing_pct = lac_computing_pct(facts);
    if (computing_pct < GPU_BOUND_PCT) {
        return false;
    }
    struct share shares[KIND_COUNT];
    share_of_kinds(analysis, shares);
    qsort(shares, KIND_COUNT, sizeof(shares[0]), by_pct);
    const struct lac_step_time *time = facts->time;
    lac_finding_cost(facts, finding, time->compute_ns);
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.9;
    finding->title =
        lac_texts_add(&analysis->texts, "GPU-bound: compute kernels run for %s of the step",
                      lac_format_pct(finding->cost_pct).text);
    finding->why =
        lac_texts_add(&analysis->texts, "%s%s", kinds_text(facts, shares), counters_text(facts));
    finding->wrong_if = "communication, copies or waiting take more than 10 % of the step.";
    if (analysis->kernel_name_count > 0) {
        const struct lac_kernel_facts *top = &analysis->kernels[0];
        lac_evidence_slice(facts, finding, top->longest_slice,
                           lac_texts_add(&analysis->texts, "the largest kernel: %s, %s in total",
                                         lac_format_count((int64_t)top->count, "time").text,
                                         lac_format_ns(top->total_ns).text));
    }
    return true;
}
