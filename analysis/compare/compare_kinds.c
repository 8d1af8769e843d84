/* Steps by kind: training, validation, checkpoint and other work are compared each
 * with its like. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"

#include <stdint.h>

const struct lac_word *lac_compare_kind_word(enum lac_compare_kind kind)
{
    static const enum lac_step_kind kinds[LAC_COMPARE_KIND_COUNT_] = {
        LAC_KIND_TRAIN, LAC_KIND_VALIDATION, LAC_KIND_CHECKPOINT, LAC_KIND_OTHER};
    return lac_word(LAC_WORDS_STEP_KIND, kinds[kind]);
}

/** What a step is compared with. Epoch ends and recompilations are part of the training: their time
 *  is in its mean. */
static enum lac_compare_kind kind_of(const struct lac_step *step)
{
    if (step->left_out != LAC_STEP_OTHER_KIND) {
        return LAC_COMPARE_TRAIN;
    }
    if (step->kind == LAC_KIND_VALIDATION) {
        return LAC_COMPARE_VALIDATION;
    }
    return step->kind == LAC_KIND_CHECKPOINT ? LAC_COMPARE_CHECKPOINT : LAC_COMPARE_OTHER;
}

void lac_compare_kinds(const struct lac_compare_side *side,
                       struct lac_compare_kind_facts *ret_facts)
{
    const struct lac_analysis *analysis = side->analysis;
    int64_t sums_ns[LAC_COMPARE_KIND_COUNT_] = {0};
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT || step->left_out == LAC_STEP_OTHER_KIND) {
            ret_facts[kind_of(step)].count++;
            sums_ns[kind_of(step)] += step->dur_ns;
        }
    }
    for (int kind = 0; kind < LAC_COMPARE_KIND_COUNT_; kind++) {
        ret_facts[kind].mean_ns = ret_facts[kind].count > 0
                                      ? sums_ns[kind] / (int64_t)ret_facts[kind].count
                                      : LAC_UNKNOWN_NS;
    }
}
