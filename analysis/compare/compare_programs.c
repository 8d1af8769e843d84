/* Whether there is something to compare: steps that mean something, of the same work, of one
 * program; and whether it is a change at all, or another rank or another GPU. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/compare_thresholds.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *lac_compare_refusal_name(enum lac_compare_refusal refusal)
{
    static const char *const names[] = {"",
                                        "no_steps",
                                        "cold_start",
                                        "part_of_step",
                                        "unknown_period",
                                        "different_work",
                                        "different_programs"};
    return names[refusal];
}

const char *lac_compare_relation_name(enum lac_compare_relation relation)
{
    static const char *const names[] = {"runs", "ranks", "hardware"};
    return names[relation];
}

/* -- what they have in common -- */

struct named {
    const char *name;
    double ns;
};

struct named_list {
    struct named *at;
    uint32_t count;
    double sum_ns;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/** Computing kernels: how many ranks there are changes communication. */
static enum lac_status list_kernels(const struct lac_compare_side *side, struct named_list *list)
{
    const struct lac_analysis *analysis = side->analysis;
    list->at = malloc(((size_t)analysis->kernel_name_count + 1) * sizeof(*list->at));
    if (list->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[row];
        if (!kernel->names.is_comm && kernel->total_ns > 0) {
            double ns = (double)kernel->total_ns;
            list->at[list->count++] = (struct named){lac_model_str(side->model, kernel->name), ns};
            list->sum_ns += ns;
        }
    }
    if (list->count > 1) {
        qsort(list->at, list->count, sizeof(*list->at), by_name);
    }
    return LAC_OK;
}

/** Outermost operators; what stands under none is none. */
static enum lac_status list_operators(const struct lac_compare_side *side, struct named_list *list)
{
    const struct lac_compare_facts *facts = side->facts;
    list->at = malloc(((size_t)facts->operator_count + 1) * sizeof(*list->at));
    if (list->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < facts->operator_count; i++) {
        if (facts->operators[i].name[0] != '(' && facts->operators[i].ns > 0) {
            double ns = (double)facts->operators[i].ns;
            list->at[list->count++] = (struct named){facts->operators[i].name, ns};
            list->sum_ns += ns;
        }
    }
    return LAC_OK;
}

/** Time that both spend under the same names, each side's time being 100; NaN without any. */
static double common_pct(const struct named_list *a, const struct named_list *b)
{
    double common = 0.0;
    uint32_t i = 0;
    uint32_t j = 0;
    if (!(a->sum_ns > 0.0) || !(b->sum_ns > 0.0)) {
        return (double)NAN;
    }
    while (i < a->count && j < b->count) {
        int order = strcmp(a->at[i].name, b->at[j].name);
        if (order == 0) {
            common += fmin(a->at[i].ns / a->sum_ns, b->at[j].ns / b->sum_ns);
        }
        i += order <= 0;
        j += order >= 0;
    }
    return 100.0 * fmin(common, 1.0);
}

static enum lac_status measure_common(const struct lac_compare_side sides[2],
                                      enum lac_status (*list)(const struct lac_compare_side *,
                                                              struct named_list *),
                                      double *ret_pct)
{
    struct named_list lists[2] = {{0}, {0}};
    enum lac_status status = LAC_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = list(&sides[i], &lists[i]);
    }
    *ret_pct = status ? (double)NAN : common_pct(&lists[0], &lists[1]);
    free(lists[0].at);
    free(lists[1].at);
    return status;
}

static bool is_compiled(const struct lac_compare_side *side)
{
    const struct lac_analysis *analysis = side->analysis;
    double triton_ns = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        bool is_triton = analysis->kernels[row].names.family == LAC_FAMILY_TRITON;
        triton_ns += is_triton ? (double)analysis->kernels[row].total_ns : 0.0;
    }
    for (uint32_t i = 0; i < side->facts->operator_count; i++) {
        const char *name = side->facts->operators[i].name;
        if (strstr(name, "CompiledFunction") != NULL || strstr(name, "Compiled Region") != NULL ||
            strstr(name, "CompiledFxGraph") != NULL) {
            return true;
        }
    }
    return triton_ns * 100.0 >= COMPILED_MIN_PCT * (double)analysis->kernel_total_ns &&
           triton_ns > 0.0;
}

static bool are_different(const struct lac_compare_side sides[2],
                          const struct lac_comparison *comparison)
{
    double kernels = comparison->kernels_common_pct;
    double operators = comparison->operators_common_pct;
    if (isnan(kernels)) {
        return false;
    }
    bool renamed = isnan(operators) || is_compiled(&sides[0]) != is_compiled(&sides[1]);
    return kernels < (renamed ? KERNELS_ALONE_MIN_PCT : KERNELS_COMMON_MIN_PCT) &&
           !(operators >= OPERATORS_COMMON_MIN_PCT);
}

/* -- reasons to refuse -- */

static bool has_steps(const struct lac_analysis *analysis)
{
    return analysis->step_kept_count > 0 && analysis->step_mean_ns != LAC_UNKNOWN_NS;
}

/** Why this side's steps say nothing, or none. */
static enum lac_compare_refusal refusal_of(const struct lac_analysis *analysis)
{
    if (analysis->workload == LAC_WORKLOAD_COLD_START) {
        return LAC_COMPARE_COLD_START;
    }
    if (analysis->is_part_of_step) {
        return LAC_COMPARE_PART_OF_STEP;
    }
    if (!has_steps(analysis)) {
        return LAC_COMPARE_NO_STEPS;
    }
    return analysis->workload == LAC_WORKLOAD_NO_STEPS ? LAC_COMPARE_UNKNOWN_PERIOD
                                                       : LAC_COMPARE_COMPARABLE;
}

static const char *reason(struct lac_text **texts, char side, const struct lac_analysis *analysis,
                          enum lac_compare_refusal refusal)
{
    if (refusal == LAC_COMPARE_COLD_START) {
        return lac_texts_add(texts, "%c is a cold start: it says nothing of a step", side);
    }
    if (refusal == LAC_COMPARE_PART_OF_STEP) {
        return lac_texts_add(texts, "%c shows a part of a step, not a step", side);
    }
    if (refusal == LAC_COMPARE_UNKNOWN_PERIOD) {
        return lac_texts_add(texts, "what repeats in %c is not known (a layer, a step?)", side);
    }
    return lac_texts_add(texts, "%c has no %s to measure", side,
                         analysis->step_count > 0 ? "steady training step" : "step");
}

static bool is_training(const struct lac_analysis *analysis)
{
    return analysis->workload == LAC_WORKLOAD_TRAINING ||
           analysis->workload == LAC_WORKLOAD_HOST_TRAINING;
}

static void refuse(struct lac_comparison *comparison, enum lac_compare_refusal refusal,
                   const char *why_not)
{
    comparison->refusal = refusal;
    comparison->why_not = why_not;
}

bool lac_compare_batches_differ(const struct lac_analysis *a, const struct lac_analysis *b)
{
    uint32_t of_a = lac_step_batches(a);
    uint32_t of_b = lac_step_batches(b);
    return of_a > 0 && of_b > 0 && of_a != of_b;
}

/** Steps of unlike numbers of batches, and nothing says how many samples that are. */
static bool are_unlike_steps(const struct lac_analysis *a, const struct lac_analysis *b)
{
    return lac_compare_batches_differ(a, b) && (a->batch_size <= 0 || b->batch_size <= 0);
}

enum lac_status lac_compare_programs(const struct lac_compare_side sides[2],
                                     struct lac_comparison *comparison)
{
    struct lac_text **texts = &comparison->texts;
    enum lac_status status = measure_common(sides, list_kernels, &comparison->kernels_common_pct);
    if (!status) {
        status = measure_common(sides, list_operators, &comparison->operators_common_pct);
    }
    if (status) {
        return status;
    }
    comparison->why_not = "";
    if (are_different(sides, comparison)) {
        refuse(comparison, LAC_COMPARE_DIFFERENT_PROGRAMS,
               lac_texts_add(texts,
                             "different programs: %s of the kernel time in common. A step of one "
                             "is not a step of the other",
                             lac_format_pct(comparison->kernels_common_pct).text));
        return LAC_OK;
    }
    for (int i = 0; i < 2; i++) {
        enum lac_compare_refusal refusal = refusal_of(sides[i].analysis);
        if (refusal != LAC_COMPARE_COMPARABLE) {
            refuse(comparison, refusal, reason(texts, "AB"[i], sides[i].analysis, refusal));
            return LAC_OK;
        }
    }
    const struct lac_analysis *a = sides[0].analysis;
    const struct lac_analysis *b = sides[1].analysis;
    bool a_infers = a->workload == LAC_WORKLOAD_INFERENCE;
    bool b_infers = b->workload == LAC_WORKLOAD_INFERENCE;
    if ((a_infers && is_training(b)) || (b_infers && is_training(a))) {
        refuse(comparison, LAC_COMPARE_DIFFERENT_WORK,
               lac_texts_add(texts, "%c trains and %c does not: their steps are other work",
                             a_infers ? 'B' : 'A', a_infers ? 'A' : 'B'));
        return LAC_OK;
    }
    if (are_unlike_steps(a, b)) {
        refuse(comparison, LAC_COMPARE_DIFFERENT_WORK,
               lac_texts_add(texts,
                             "a step of A takes %s, of B %u, of unrecorded size: another amount of "
                             "work",
                             lac_format_count(lac_step_batches(a), "batch").text,
                             (unsigned)lac_step_batches(b)));
        return LAC_OK;
    }
    for (int i = 0; i < 2; i++) {
        if (sides[i].analysis->device_count == 0) {
            comparison->why_not = lac_texts_add(
                texts, "%c has no GPU operations: time is not compared by part", "AB"[i]);
            return LAC_OK;
        }
    }
    return LAC_OK;
}

/* -- what the two are to each other -- */

static const char *gpu_of(const struct lac_compare_side *side)
{
    const struct lac_analysis *analysis = side->analysis;
    return analysis->main_device == LAC_NONE
               ? ""
               : lac_model_str(side->model, analysis->devices[analysis->main_device].name);
}

void lac_compare_relate(const struct lac_compare_side sides[2], struct lac_comparison *comparison)
{
    const struct lac_trace_info *a = &sides[0].model->info;
    const struct lac_trace_info *b = &sides[1].model->info;
    const char *gpu_a = gpu_of(&sides[0]);
    const char *gpu_b = gpu_of(&sides[1]);
    comparison->relation = LAC_COMPARE_RUNS;
    comparison->is_one_run = false;
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank && a->world_size == b->world_size) {
        comparison->relation = LAC_COMPARE_RANKS;
        /* recorded at the same time; what begins near 1970 has no absolute time */
        comparison->is_one_run = a->t0_ns > INT64_C(1000000000000000000) &&
                                 a->t0_ns - b->t0_ns < b->duration_ns &&
                                 b->t0_ns - a->t0_ns < a->duration_ns;
    } else if (gpu_a[0] != '\0' && gpu_b[0] != '\0' && strcmp(gpu_a, gpu_b) != 0) {
        comparison->relation = LAC_COMPARE_HARDWARE;
    }
}
