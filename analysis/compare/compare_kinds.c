/* Steps by kind: training, validation, checkpoint and other work are compared each with its like.
 */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/analysis.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *lac_compare_kind_name(enum lac_compare_kind kind)
{
    static const char *const names[] = {"train", "validation", "checkpoint", "other"};
    return names[kind];
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == word[i]) {
            i++;
        }
        if (i == length) {
            return true;
        }
    }
    return false;
}

/** The kind that a range's name says, or LAC_COMPARE_TRAIN. */
static uint8_t kind_of_name(const char *name)
{
    if (has_word(name, "checkpoint") || has_word(name, "save")) {
        return LAC_COMPARE_CHECKPOINT;
    }
    return has_word(name, "valid") || has_word(name, "eval") ? LAC_COMPARE_VALIDATION
                                                             : LAC_COMPARE_TRAIN;
}

/** Index of the step around a moment, or LAC_NONE. */
static uint32_t step_at(const struct lac_analysis *analysis, int64_t t_ns)
{
    uint32_t low = 0;
    uint32_t high = analysis->step_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (analysis->steps[middle].start_ns <= t_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_inside =
        low > 0 && t_ns < analysis->steps[low - 1].start_ns + analysis->steps[low - 1].dur_ns;
    return is_inside ? low - 1 : LAC_NONE;
}

/** Name the steps that did other work by the ranges in them. */
static enum lac_status name_kinds(const struct lac_compare_side *side, uint8_t *kinds)
{
    const struct lac_model *model = side->model;
    const struct lac_slices *slices = &model->slices;
    uint8_t *of_name = calloc((size_t)model->strings.count + 1, sizeof *of_name);
    if (!of_name) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t id = 1; id < model->strings.count; id++) {
        of_name[id] = kind_of_name(lac_strings_get(&model->strings, id));
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t s = track->first;
             track->kind == LAC_TRACK_THREAD && s < track->first + track->count; s++) {
            uint8_t kind = of_name[slices->name[s]];
            if (kind == LAC_COMPARE_TRAIN || slices->kind[s] != LAC_SLICE_RANGE) {
                continue;
            }
            uint32_t step = step_at(side->analysis, slices->start_ns[s]);
            if (step != LAC_NONE && kinds[step] == LAC_COMPARE_OTHER &&
                slices->dur_ns[s] >= side->analysis->steps[step].dur_ns / 20) {
                kinds[step] = kind;
            }
        }
    }
    free(of_name);
    return LAC_OK;
}

enum lac_status lac_compare_kinds(const struct lac_compare_side *side,
                                  struct lac_compare_kind_facts *ret_facts)
{
    const struct lac_analysis *analysis = side->analysis;
    uint8_t *kinds = calloc(analysis->step_count ? analysis->step_count : 1, sizeof *kinds);
    uint32_t others = 0;
    enum lac_status status = kinds ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        bool is_other = analysis->steps[s].left_out == LAC_STEP_OTHER_KIND;
        kinds[s] = is_other ? LAC_COMPARE_OTHER : LAC_COMPARE_TRAIN;
        others += is_other;
    }
    if (!status && others > 0) {
        status = name_kinds(side, kinds);
    }
    int64_t sums_ns[LAC_COMPARE_KIND_COUNT_] = {0};
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        uint8_t left_out = analysis->steps[s].left_out;
        if (left_out == LAC_STEP_KEPT || left_out == LAC_STEP_OTHER_KIND) {
            ret_facts[kinds[s]].count++;
            sums_ns[kinds[s]] += analysis->steps[s].dur_ns;
        }
    }
    for (int kind = 0; kind < LAC_COMPARE_KIND_COUNT_ && !status; kind++) {
        ret_facts[kind].mean_ns = ret_facts[kind].count > 0
                                      ? sums_ns[kind] / (int64_t)ret_facts[kind].count
                                      : LAC_UNKNOWN_NS;
    }
    free(kinds);
    return status;
}
