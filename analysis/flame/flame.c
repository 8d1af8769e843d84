#include "analysis/flame/flame.h"

#include "analysis/model/model.h"

#include <stdint.h>
#include <stdlib.h>

static uint32_t bit(enum lac_slice_kind kind)
{
    return UINT32_C(1) << (unsigned)kind;
}

uint32_t lac_flame_frame_kinds(const struct lac_flame_options *options)
{
    uint32_t ops = bit(LAC_SLICE_OP) | bit(LAC_SLICE_RANGE) | bit(LAC_SLICE_OTHER);
    if (!lac_flame_is_of_streams(options->metric)) {
        ops |= bit(LAC_SLICE_API) | bit(LAC_SLICE_OVERHEAD);
    }
    if (options->metric == LAC_FLAME_PROFILE) {
        return UINT32_MAX; /* a profile's frames are all of one kind */
    }
    switch (options->by) {
    case LAC_FLAME_BY_RANGE:
        return bit(LAC_SLICE_RANGE);
    case LAC_FLAME_BY_PYTHON:
        return ops | bit(LAC_SLICE_PYTHON);
    case LAC_FLAME_BY_MODULE:
        return bit(LAC_SLICE_RANGE) | bit(LAC_SLICE_PYTHON);
    case LAC_FLAME_BY_KERNEL:
        return lac_flame_is_of_threads(options->metric) ? ops | bit(LAC_SLICE_PYTHON) : 0;
    case LAC_FLAME_BY_OP:
    default:
        return ops;
    }
}

/* Who samples stacks records no functions: where there are samples, nothing else is of Python. */
bool lac_flame_is_sampled(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_STACKS && model->tracks[t].count > 0) {
            return true;
        }
    }
    return false;
}

uint32_t lac_flame_stacks_of(const struct lac_model *model, uint32_t thread)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_STACKS && track->process == model->tracks[thread].process &&
            track->id_text == model->tracks[thread].id_text) {
            return t;
        }
    }
    return LAC_NONE;
}

bool lac_flame_counts(const struct lac_flame_options *options, const struct lac_model *model,
                      uint32_t track)
{
    const struct lac_track *of = &model->tracks[track];
    if (options->is_chosen == NULL || options->is_chosen[track] != 0) {
        return true;
    }
    for (uint32_t t = 0; t < model->recorded_track_count && of->kind == LAC_TRACK_STACKS; t++) {
        if (options->is_chosen[t] != 0 && model->tracks[t].kind == LAC_TRACK_THREAD &&
            model->tracks[t].process == of->process && model->tracks[t].id_text == of->id_text) {
            return true;
        }
    }
    return false;
}

void lac_flame_destroy(struct lac_flame *flame)
{
    if (flame != NULL) {
        free(flame->nodes);
        free(flame);
    }
}
