#include "analysis/flame/flame.h"
#include "analysis/flame/flame_stack.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Three passes: mark the launches of the operations in the area; walk the threads that have any and
 * turn each mark into the frame the launch was in; add each operation under its launch's frame. What
 * an annotated CUDA graph ran has one launch for all of it: its module is one more frame.
 */

/* Contents of frame_of[launch] before it is a frame. */
enum { NOT_ASKED = 0, ASKED = 1, FRAME_BASE = 2 };

static bool is_operation(const struct lac_flame_walk *walk, uint8_t kind)
{
    return kind == LAC_SLICE_COPY || (walk->options->metric == LAC_FLAME_GPU &&
                                      (kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_MEMSET));
}

/* Mark the launches; report the last slice of each thread that has one. */
static void ask(const struct lac_flame_walk *walk, uint32_t *frame_of, uint64_t *asked_end)
{
    const struct lac_model *model = walk->model;
    const struct lac_slices *s = &model->slices;
    uint64_t first = 0;
    uint64_t end = 0; /* of the track that the latest launch was on: most are on the same */
    uint32_t on = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_STREAM || !lac_flame_counts(walk->options, model, t)) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            if (s->start_ns[i] >= walk->t1_ns) {
                break;
            }
            bool inside;
            (void)lac_flame_clip(walk, s->start_ns[i], s->dur_ns[i], &inside);
            uint32_t link = s->link[i];
            if (!inside || link >= s->count || !is_operation(walk, s->kind[i])) {
                continue;
            }
            frame_of[link] = ASKED;
            if (link < first || link >= end) {
                on = lac_model_track_of(model, link);
                first = model->tracks[on].first;
                end = first + model->tracks[on].count;
            }
            if (link >= asked_end[on]) {
                asked_end[on] = (uint64_t)link + 1;
            }
        }
    }
}

/* The modules whose backward pass begins by the next slice of the thread. */
static enum lac_status push_backward(const struct lac_flame_walk *walk,
                                     struct lac_flame_slices *slices, struct lac_flame_stack *stack)
{
    const struct lac_slices *s = &walk->model->slices;
    enum lac_status status = LAC_OK;
    while (slices->backward_ns <= s->start_ns[slices->next] && status == LAC_OK) {
        bool is_backward;
        uint64_t i = lac_flame_next_slice(walk, slices, &is_backward);
        lac_flame_stack_pop(stack, s->start_ns[i]);
        status = lac_flame_stack_push(stack, s->start_ns[i], s->start_ns[i] + s->dur_ns[i],
                                      s->name[i], lac_flame_kind(walk, i, true));
    }
    return status;
}

static enum lac_status answer(struct lac_flame_walk *walk, uint32_t track, uint64_t end,
                              struct lac_flame_stack *stack, uint32_t *frame_of)
{
    const struct lac_slices *s = &walk->model->slices;
    struct lac_flame_slices slices = lac_flame_slices_of(walk, track);
    stack->count = 0;
    for (uint64_t i = slices.next; i < end; i++) {
        bool is_frame = lac_flame_is_frame(walk, i);
        if (!is_frame && frame_of[i] != ASKED) {
            continue;
        }
        int64_t end_ns = s->start_ns[i] + s->dur_ns[i];
        enum lac_status status = LAC_OK;
        if (slices.backward_ns != INT64_MAX) {
            slices.next = i;
            status = push_backward(walk, &slices, stack);
        }
        lac_flame_stack_pop(stack, s->start_ns[i]);
        if (frame_of[i] == ASKED && status == LAC_OK) {
            uint32_t frame = 0;
            status =
                lac_flame_stack_frame(stack, lac_flame_stack_enclosing(stack, end_ns), 0, &frame);
            frame_of[i] = frame + FRAME_BASE;
        }
        if (status == LAC_OK && is_frame) {
            status = lac_flame_stack_push(stack, s->start_ns[i], end_ns, s->name[i], s->kind[i]);
        }
        if (status != LAC_OK) {
            return status;
        }
    }
    return LAC_OK;
}

/* The modules of a stream in the order of their starts, and those of the passed that may still hold
 * an operation, the latest last. */
struct module_row {
    uint64_t next, end;
    uint64_t *open;
    uint64_t open_count;
};

enum { OPEN_MODULES_LOOKED_AT = 64 };

static enum lac_status open_modules(const struct lac_flame_walk *walk, uint32_t stream,
                                    struct module_row *ret_row)
{
    const uint32_t t = walk->by != LAC_FLAME_BY_KERNEL
                           ? lac_model_graph_modules_of(walk->model, stream)
                           : LAC_NONE;
    *ret_row = (struct module_row){0};
    if (t == LAC_NONE || walk->model->tracks[t].count == 0) {
        return LAC_OK;
    }
    ret_row->next = walk->model->tracks[t].first;
    ret_row->end = ret_row->next + walk->model->tracks[t].count;
    ret_row->open = malloc(walk->model->tracks[t].count * sizeof(*ret_row->open));
    return ret_row->open != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

/* Below the module that holds all of an operation, if any: of several the one that began last, which
 * is the same in a model that has only what overlaps an area. Operations come in order of start. */
static enum lac_status enter_module(struct lac_flame_walk *walk, struct module_row *row,
                                    uint64_t operation, uint32_t *frame)
{
    const struct lac_slices *const s = &walk->model->slices;
    const int64_t start_ns = s->start_ns[operation];
    const int64_t end_ns = start_ns + s->dur_ns[operation];
    while (row->next < row->end && s->start_ns[row->next] <= start_ns) {
        row->open[row->open_count++] = row->next++;
    }
    while (row->open_count > 0) {
        const uint64_t last = row->open[row->open_count - 1];
        if (s->start_ns[last] + s->dur_ns[last] > start_ns || s->start_ns[last] == start_ns) {
            break;
        }
        row->open_count--;
    }
    for (uint64_t i = 0; i < row->open_count && i < OPEN_MODULES_LOOKED_AT; i++) {
        const uint64_t module = row->open[row->open_count - 1 - i];
        const int64_t module_end_ns = s->start_ns[module] + s->dur_ns[module];
        if (module_end_ns >= end_ns &&
            (module_end_ns > start_ns || s->start_ns[module] == start_ns)) {
            return lac_flame_tree_child(walk->tree, *frame, s->name[module], LAC_SLICE_RANGE,
                                        frame);
        }
    }
    return LAC_OK;
}

/** @param frame_of NULL: operations have no frames around them */
static enum lac_status add_stream(struct lac_flame_walk *walk, const struct lac_track *track,
                                  const uint32_t *frame_of, struct module_row *modules)
{
    const struct lac_slices *s = &walk->model->slices;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        if (s->start_ns[i] >= walk->t1_ns) {
            break;
        }
        bool inside;
        int64_t weight_ns = lac_flame_clip(walk, s->start_ns[i], s->dur_ns[i], &inside);
        if (!inside || !is_operation(walk, s->kind[i])) {
            continue;
        }
        uint32_t link = s->link[i];
        uint32_t parent = 0;
        if (frame_of != NULL && link < s->count && frame_of[link] >= FRAME_BASE) {
            parent = frame_of[link] - FRAME_BASE;
        }
        uint32_t frame = 0;
        enum lac_status status = enter_module(walk, modules, i, &parent);
        if (status == LAC_OK) {
            status = lac_flame_tree_child(walk->tree, parent, s->name[i], s->kind[i], &frame);
        }
        if (status == LAC_OK) {
            status = lac_flame_give(walk, frame, s->start_ns[i], weight_ns);
        }
        if (status != LAC_OK) {
            return status;
        }
        walk->tree->frames[frame].count += s->start_ns[i] >= walk->options->counted_from_ns ? 1 : 0;
    }
    return LAC_OK;
}

static enum lac_status add(struct lac_flame_walk *walk, const uint32_t *frame_of)
{
    const struct lac_model *model = walk->model;
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0; t < model->recorded_track_count && status == LAC_OK; t++) {
        struct module_row modules;
        if (model->tracks[t].kind != LAC_TRACK_STREAM ||
            !lac_flame_counts(walk->options, model, t)) {
            continue;
        }
        status = open_modules(walk, t, &modules);
        if (status == LAC_OK) {
            status = add_stream(walk, &model->tracks[t], frame_of, &modules);
        }
        free(modules.open);
    }
    return status;
}

/* A frame for each launch. */
static enum lac_status find_frames(struct lac_flame_walk *walk, uint32_t *frame_of)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_stack stack;
    enum lac_status status = LAC_OK;
    uint64_t *asked_end = calloc((size_t)model->track_count + 1, sizeof(*asked_end));
    if (asked_end == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_flame_stack_init(&stack, walk->tree);
    memset(frame_of, 0, model->slices.count * sizeof(*frame_of));
    ask(walk, frame_of, asked_end);
    for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
        if (asked_end[t] > 0 && model->tracks[t].kind == LAC_TRACK_THREAD) {
            status = answer(walk, t, asked_end[t], &stack, frame_of);
        }
    }
    lac_flame_stack_done(&stack);
    free(asked_end);
    return status;
}

enum lac_status lac_flame_walk_gpu(struct lac_flame_walk *walk)
{
    struct lac_flame_frames_of *frames = walk->frames;
    if (walk->by == LAC_FLAME_BY_KERNEL) {
        return add(walk, NULL);
    }
    if (!LAC_RESERVE(frames->of, frames->capacity, 0, walk->model->slices.count + 1)) {
        return LAC_ERR_NOMEM;
    }
    const enum lac_status status = find_frames(walk, frames->of);
    return status == LAC_OK ? add(walk, frames->of) : status;
}
