#include "analysis/flame/flame_sum.h"

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lac_flame_sum {
    struct lac_flame_tree tree;
    uint8_t *names; /* of lac_flame_walk, made for the first area */
    struct lac_flame_frames_of frames;
};

/* Names of steps differ from step to step; as frames they would keep the steps from merging. */
static uint8_t *look_at_names(const struct lac_model *model)
{
    static const char STEP[] = "ProfilerStep#";
    uint8_t *names = calloc((size_t)model->strings.count + 1, 1);
    if (names == NULL) {
        return NULL;
    }
    for (uint32_t id = 0; id < model->strings.count; id++) {
        const char *name = lac_model_str(model, id);
        names[id] = strncmp(name, STEP, sizeof(STEP) - 1) == 0 ? LAC_FLAME_NAME_STEP
                    : lac_is_module_name(name)                 ? LAC_FLAME_NAME_MODULE
                                                               : 0;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t i = track->first;
             track->kind == LAC_TRACK_STEPS && i < track->first + track->count; i++) {
            names[model->slices.name[i]] = LAC_FLAME_NAME_STEP;
        }
    }
    return names;
}

/** A walk over what is asked. @param area room for the area, which it uses for as long as it lasts */
static struct lac_flame_walk walk_of(const struct lac_model *model,
                                     const struct lac_flame_options *options,
                                     struct lac_flame_span *area)
{
    const bool is_profile = options->metric == LAC_FLAME_PROFILE;
    const bool is_whole = options->t1_ns <= options->t0_ns || is_profile;
    const bool is_one = options->span_count == 0 || is_profile;
    area->start_ns = is_whole ? 0 : options->t0_ns;
    area->end_ns = is_whole ? LAC_TIME_MAX_NS + 1 : options->t1_ns;
    return (struct lac_flame_walk){
        .model = model,
        .options = options,
        .by = options->by,
        .t0_ns = area->start_ns,
        .t1_ns = area->end_ns,
        .spans = is_one ? area : options->spans,
        .span_count = is_one ? 1 : options->span_count,
        .frame_kinds = lac_flame_frame_kinds(options),
        .is_sampled =
            !is_profile && options->by == LAC_FLAME_BY_PYTHON &&
            (options->whole != NULL ? options->whole->is_sampled : lac_flame_is_sampled(model)),
        .is_profile = is_profile,
        .whole = options->whole,
    };
}

static uint32_t count_steps(const struct lac_model *model, const struct lac_flame_options *options)
{
    const struct lac_slices *s = &model->slices;
    struct lac_flame_span area;
    const struct lac_flame_walk walk = walk_of(model, options, &area);
    uint32_t count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t i = track->first;
             track->kind == LAC_TRACK_STEPS && i < track->first + track->count; i++) {
            bool inside;
            (void)lac_flame_clip(&walk, s->start_ns[i], s->dur_ns[i], &inside);
            count += inside ? 1 : 0;
        }
    }
    return count;
}

static enum lac_status walk_metric(struct lac_flame_walk *walk)
{
    switch (walk->options->metric) {
    case LAC_FLAME_WAITING:
        return lac_flame_walk_waiting(walk);
    case LAC_FLAME_CPU:
    case LAC_FLAME_PROFILE:
        return lac_flame_walk_cpu(walk);
    case LAC_FLAME_MEMORY:
        return lac_flame_walk_memory(walk);
    case LAC_FLAME_COPIES:
    case LAC_FLAME_GPU:
    default:
        return lac_flame_walk_gpu(walk);
    }
}

static enum lac_status init(struct lac_flame_sum *sum)
{
    *sum = (struct lac_flame_sum){.names = NULL};
    return lac_flame_tree_init(&sum->tree);
}

static void done(struct lac_flame_sum *sum)
{
    lac_flame_tree_done(&sum->tree);
    free(sum->names);
    free(sum->frames.of);
}

/** @param line in the order of time, else NULL */
static enum lac_status add(struct lac_flame_sum *sum, const struct lac_model *model,
                           const struct lac_flame_options *options, struct lac_flame_line *line)
{
    struct lac_flame_span area;
    struct lac_flame_walk walk = walk_of(model, options, &area);
    if (sum->names == NULL) {
        sum->names = look_at_names(model);
    }
    if (sum->names == NULL) {
        return LAC_ERR_NOMEM;
    }
    walk.names = sum->names;
    walk.tree = &sum->tree;
    walk.frames = &sum->frames;
    walk.line = line;
    return walk_metric(&walk);
}

enum lac_status lac_flame_sum_create(struct lac_flame_sum **ret_sum)
{
    assert(ret_sum != NULL);
    struct lac_flame_sum *sum = malloc(sizeof(*sum));
    enum lac_status status = sum != NULL ? init(sum) : LAC_ERR_NOMEM;
    if (status != LAC_OK) {
        free(sum);
        return status;
    }
    *ret_sum = sum;
    return LAC_OK;
}

void lac_flame_sum_destroy(struct lac_flame_sum *sum)
{
    if (sum != NULL) {
        done(sum);
        free(sum);
    }
}

enum lac_status lac_flame_sum_add(struct lac_flame_sum *sum, const struct lac_model *model,
                                  const struct lac_flame_options *options)
{
    assert(sum != NULL && model != NULL && options != NULL);
    assert(options->order == LAC_FLAME_ORDER_VALUE);
    for (uint32_t i = 0; i < sum->tree.count; i++) {
        sum->tree.frames[i].mark = 0; /* pieces are numbered anew */
    }
    return add(sum, model, options, NULL);
}

enum lac_status lac_flame_sum_merge(struct lac_flame_sum *sum, const struct lac_flame_sum *more)
{
    assert(sum != NULL && more != NULL);
    return lac_flame_tree_merge(&sum->tree, &more->tree);
}

/** Whether a frame counts what is under it: operations, allocations; not slices of its own name. */
static bool sums_counts(enum lac_flame_metric metric)
{
    return lac_flame_is_of_streams(metric) || metric == LAC_FLAME_MEMORY;
}

enum lac_status lac_flame_sum_finish(struct lac_flame_sum *sum, const struct lac_model *model,
                                     const struct lac_flame_options *options,
                                     struct lac_flame **ret_flame)
{
    assert(sum != NULL && model != NULL && options != NULL && ret_flame != NULL);
    struct lac_flame_tree *tree = &sum->tree;
    const bool is_cpu = options->metric == LAC_FLAME_CPU || options->metric == LAC_FLAME_PROFILE;
    for (uint32_t i = 1; i < tree->count && is_cpu; i++) {
        tree->frames[0].count += tree->frames[i].count;
    }
    enum lac_status status =
        lac_flame_tree_finish(tree, model, options, sums_counts(options->metric), ret_flame);
    if (status == LAC_OK) {
        (*ret_flame)->step_count = count_steps(model, options);
    }
    return status;
}

enum lac_status lac_flame_create(const struct lac_model *model,
                                 const struct lac_flame_options *options,
                                 struct lac_flame **ret_flame)
{
    assert(model != NULL && options != NULL && ret_flame != NULL);
    const bool is_line = options->order == LAC_FLAME_ORDER_TIME;
    struct lac_flame_line line = {0};
    struct lac_flame_sum sum;
    enum lac_status status = init(&sum);
    if (status == LAC_OK) {
        status = add(&sum, model, options, is_line ? &line : NULL);
    }
    if (status == LAC_OK && is_line) {
        status = lac_flame_line_finish(&line, &sum.tree, options, ret_flame);
        if (status == LAC_OK) {
            (*ret_flame)->step_count = count_steps(model, options);
        }
    } else if (status == LAC_OK) {
        status = lac_flame_sum_finish(&sum, model, options, ret_flame);
    }
    done(&sum);
    free(line.pieces);
    return status;
}
