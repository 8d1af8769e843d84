/* GPU time of a step by the operator that launched it: the flame graphs of both, side by side. Of
 * nested operators the outermost counts, so that the rows add up. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct lac_compare_part_of *)a)->name,
                  ((const struct lac_compare_part_of *)b)->name);
}

/** Put parts of one name together; sorts. */
static void merge(struct lac_compare_facts *facts)
{
    uint32_t kept = 0;
    if (facts->operator_count > 1) {
        qsort(facts->operators, facts->operator_count, sizeof(*facts->operators), by_name);
    }
    for (uint32_t i = 0; i < facts->operator_count; i++) {
        if (kept > 0 && strcmp(facts->operators[kept - 1].name, facts->operators[i].name) == 0) {
            facts->operators[kept - 1].ns += facts->operators[i].ns;
        } else {
            facts->operators[kept++] = facts->operators[i];
        }
    }
    facts->operator_count = kept;
}

/** Outermost operators of the graph, and what stands under none. */
static enum lac_status collect(const struct lac_model *model, const struct lac_flame *flame,
                               struct lac_compare_facts *facts)
{
    bool *is_inside = calloc(flame->node_count ? flame->node_count : 1, sizeof(*is_inside));
    int64_t other_ns = flame->node_count > 0 ? flame->nodes[0].value_ns : 0;
    facts->operators = calloc((size_t)flame->node_count + 1, sizeof(*facts->operators));
    if (is_inside == NULL || facts->operators == NULL) {
        free(is_inside);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t n = 1; n < flame->node_count; n++) { /* parents come before their children */
        const struct lac_flame_node *node = &flame->nodes[n];
        bool is_operator = node->kind == LAC_SLICE_OP && node->name != LAC_NONE;
        is_inside[n] = is_operator || is_inside[node->parent];
        if (is_operator && !is_inside[node->parent]) {
            facts->operators[facts->operator_count++] =
                (struct lac_compare_part_of){lac_model_str(model, node->name), node->value_ns};
            other_ns -= node->value_ns;
        }
    }
    if (other_ns > 0) {
        facts->operators[facts->operator_count++] =
            (struct lac_compare_part_of){"(no operator)", other_ns};
    }
    free(is_inside);
    merge(facts);
    return LAC_OK;
}

/** GPU time a step from the first kept step to the last, by operator. */
enum lac_status lac_compare_operators_measure(const struct lac_model *model,
                                              const struct lac_analysis *analysis,
                                              struct lac_compare_facts *facts)
{
    struct lac_flame_options options = {.metric = LAC_FLAME_GPU,
                                        .by = LAC_FLAME_BY_OP,
                                        .t0_ns = INT64_MAX,
                                        .t1_ns = INT64_MIN,
                                        .node_count_max = 200000};
    uint32_t kept = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            int64_t end_ns = step->start_ns + step->dur_ns;
            options.t0_ns = step->start_ns < options.t0_ns ? step->start_ns : options.t0_ns;
            options.t1_ns = end_ns > options.t1_ns ? end_ns : options.t1_ns;
        }
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        kept += analysis->steps[s].dur_ns > 0 && analysis->steps[s].start_ns >= options.t0_ns &&
                analysis->steps[s].start_ns < options.t1_ns;
    }
    struct lac_flame *flame = NULL;
    if (kept == 0 || analysis->device_count == 0) {
        return LAC_OK;
    }
    enum lac_status status = lac_flame_create(model, &options, &flame);
    if (!status) {
        status = collect(model, flame, facts);
    }
    for (uint32_t i = 0; i < facts->operator_count && !status; i++) {
        facts->operators[i].ns /= kept;
    }
    lac_flame_destroy(flame);
    return status;
}

static int by_change(const void *x, const void *y)
{
    const struct lac_compare_operator *a = x;
    const struct lac_compare_operator *b = y;
    int64_t da = llabs(a->b_ns - a->a_ns);
    int64_t db = llabs(b->b_ns - b->a_ns);
    return da != db ? (da > db ? -1 : 1) : strcmp(a->name, b->name);
}

/** Both lists as one. */
static enum lac_status join(const struct lac_compare_facts *a, const struct lac_compare_facts *b,
                            struct lac_comparison *comparison)
{
    struct lac_compare_operator *rows =
        calloc((size_t)a->operator_count + b->operator_count + 1, sizeof(*rows));
    uint32_t count = 0;
    uint32_t i = 0;
    uint32_t j = 0;
    if (rows == NULL) {
        return LAC_ERR_NOMEM;
    }
    while (i < a->operator_count || j < b->operator_count) {
        int order = i == a->operator_count   ? 1
                    : j == b->operator_count ? -1
                                             : strcmp(a->operators[i].name, b->operators[j].name);
        struct lac_compare_operator *row = &rows[count++];
        row->name = order <= 0 ? a->operators[i].name : b->operators[j].name;
        row->a_ns = order <= 0 ? a->operators[i++].ns : 0;
        row->b_ns = order >= 0 ? b->operators[j++].ns : 0;
    }
    qsort(rows, count, sizeof(*rows), by_change);
    comparison->operator_count =
        count < LAC_COMPARE_OPERATORS_MAX ? count : LAC_COMPARE_OPERATORS_MAX;
    for (i = 0; i < comparison->operator_count; i++) {
        comparison->operators[i] = rows[i];
        comparison->operators[i].name = lac_texts_add(&comparison->texts, "%.200s", rows[i].name);
    }
    free(rows);
    return LAC_OK;
}

enum lac_status lac_compare_operators(const struct lac_compare_facts *a,
                                      const struct lac_compare_facts *b,
                                      struct lac_comparison *comparison)
{
    return a->operator_count > 0 && b->operator_count > 0 ? join(a, b, comparison) : LAC_OK;
}
