#include "analysis/flame/flame.h"

#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bit(enum lac_slice_kind kind)
{
    return UINT32_C(1) << (unsigned)kind;
}

uint32_t lac_flame_frame_kinds(const struct lac_flame_options *options)
{
    uint32_t ops = bit(LAC_SLICE_OP) | bit(LAC_SLICE_RANGE) | bit(LAC_SLICE_OTHER);
    if (options->metric != LAC_FLAME_GPU) {
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
        return options->metric == LAC_FLAME_CPU ? ops | bit(LAC_SLICE_PYTHON) : 0;
    case LAC_FLAME_BY_OP:
    default:
        return ops;
    }
}

/* Names of steps differ from step to step; as frames they would keep the steps from merging. */
static enum lac_status look_at_names(struct lac_flame_walk *walk, uint32_t *ret_step_count)
{
    static const char STEP[] = "ProfilerStep#";
    static const char MODULE[] = "nn.Module: ";
    const struct lac_model *model = walk->model;
    const struct lac_slices *s = &model->slices;
    *ret_step_count = 0;
    walk->names = calloc((size_t)model->strings.count + 1, 1);
    if (walk->names == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t id = 0; id < model->strings.count; id++) {
        const char *name = lac_model_str(model, id);
        walk->names[id] = strncmp(name, STEP, sizeof(STEP) - 1) == 0       ? LAC_FLAME_NAME_STEP
                          : strncmp(name, MODULE, sizeof(MODULE) - 1) == 0 ? LAC_FLAME_NAME_MODULE
                                                                           : 0;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_STEPS) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            bool inside;
            (void)lac_flame_clip(walk, s->start_ns[i], s->dur_ns[i], &inside);
            *ret_step_count += inside ? 1 : 0;
            walk->names[s->name[i]] = LAC_FLAME_NAME_STEP;
        }
    }
    return LAC_OK;
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

static enum lac_status walk_metric(struct lac_flame_walk *walk, enum lac_flame_metric metric)
{
    switch (metric) {
    case LAC_FLAME_WAITING:
        return lac_flame_walk_waiting(walk);
    case LAC_FLAME_CPU:
    case LAC_FLAME_PROFILE:
        return lac_flame_walk_cpu(walk);
    case LAC_FLAME_GPU:
    default:
        return lac_flame_walk_gpu(walk);
    }
}

enum lac_status lac_flame_create(const struct lac_model *model,
                                 const struct lac_flame_options *options,
                                 struct lac_flame **ret_flame)
{
    assert(model != NULL && options != NULL && ret_flame != NULL);
    bool is_profile = options->metric == LAC_FLAME_PROFILE;
    bool is_whole = options->t1_ns <= options->t0_ns || is_profile;
    struct lac_flame_line line = {0};
    struct lac_flame_walk walk = {
        .model = model,
        .options = options,
        .by = options->by,
        .t0_ns = is_whole ? 0 : options->t0_ns,
        .t1_ns = is_whole ? LAC_TIME_MAX_NS + 1 : options->t1_ns,
        .frame_kinds = lac_flame_frame_kinds(options),
        .is_sampled =
            !is_profile && options->by == LAC_FLAME_BY_PYTHON &&
            (options->whole != NULL ? options->whole->is_sampled : lac_flame_is_sampled(model)),
        .is_profile = is_profile,
        .whole = options->whole,
        .line = options->order == LAC_FLAME_ORDER_TIME ? &line : NULL,
    };
    const struct lac_flame_span area = {walk.t0_ns, walk.t1_ns};
    bool is_one = options->span_count == 0 || is_profile;
    walk.spans = is_one ? &area : options->spans;
    walk.span_count = is_one ? 1 : options->span_count;
    uint32_t step_count = 0;
    enum lac_status status = lac_flame_tree_init(&walk.tree);
    if (status == LAC_OK) {
        status = look_at_names(&walk, &step_count);
    }
    if (status == LAC_OK) {
        status = walk_metric(&walk, options->metric);
    }
    if (status == LAC_OK && walk.line != NULL) {
        status = lac_flame_line_finish(&line, &walk.tree, options, ret_flame);
    } else if (status == LAC_OK) {
        status = lac_flame_tree_finish(&walk.tree, model, options, options->metric == LAC_FLAME_GPU,
                                       ret_flame);
    }
    if (status == LAC_OK) {
        (*ret_flame)->step_count = step_count;
    }
    lac_flame_tree_done(&walk.tree);
    free(walk.names);
    free(line.pieces);
    return status;
}

void lac_flame_destroy(struct lac_flame *flame)
{
    if (flame != NULL) {
        free(flame->nodes);
        free(flame);
    }
}
