#include "analysis/flame/flame.h"
#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_stack.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each thread's slices are visited up to each of its allocations, whose bytes the innermost then has. */

/** What was allocated on a GPU at a mark; 0 of what is none. */
static int64_t allocated_bytes(const struct lac_model *model, uint64_t mark)
{
    const uint32_t row = model->slices.detail[mark];
    if (model->slices.kind[mark] != LAC_SLICE_ALLOC || row >= model->alloc_count) {
        return 0;
    }
    const struct lac_alloc *alloc = &model->allocs[row];
    const bool counts = alloc->device >= 0 && alloc->bytes > 0;
    return !counts ? 0 : alloc->bytes < LAC_TIME_MAX_NS ? alloc->bytes : LAC_TIME_MAX_NS;
}

/** The row whose slices are the frames around the marks of a row: the thread's, or its samples. */
static uint32_t frames_of(const struct lac_flame_walk *walk, uint32_t marks)
{
    const struct lac_model *model = walk->model;
    const uint32_t thread = lac_model_thread_of(model, marks);
    const bool is_sampled = walk->is_sampled && thread != LAC_NONE;
    const uint32_t stacks = is_sampled ? lac_flame_stacks_of(model, thread) : LAC_NONE;
    return stacks != LAC_NONE ? stacks : thread;
}

/** Open what has begun by then, and close what has ended. */
static enum lac_status visit_until(const struct lac_flame_walk *walk,
                                   struct lac_flame_slices *slices, struct lac_flame_stack *stack,
                                   int64_t t_ns)
{
    const struct lac_slices *s = &walk->model->slices;
    enum lac_status status = LAC_OK;
    while (lac_flame_has_slice(slices) && status == LAC_OK) {
        struct lac_flame_slices after = *slices;
        bool is_backward;
        const uint64_t i = lac_flame_next_slice(walk, &after, &is_backward);
        if (s->start_ns[i] > t_ns) {
            break;
        }
        *slices = after;
        if (!is_backward && !lac_flame_is_frame(walk, i)) {
            continue;
        }
        lac_flame_stack_pop(stack, s->start_ns[i]);
        status = lac_flame_stack_push(stack, s->start_ns[i], s->start_ns[i] + s->dur_ns[i],
                                      s->name[i], lac_flame_kind(walk, i, is_backward));
    }
    lac_flame_stack_pop(stack, t_ns);
    return status;
}

static enum lac_status add_marks(struct lac_flame_walk *walk, uint32_t marks)
{
    const struct lac_model *model = walk->model;
    const struct lac_track *track = &model->tracks[marks];
    struct lac_flame_slices slices = {.backward_ns = INT64_MAX};
    struct lac_flame_stack stack;
    bool is_begun = false; /* rows without an allocation need no frames */
    enum lac_status status = LAC_OK;
    lac_flame_stack_init(&stack, walk->tree);
    stack.is_flat = walk->by == LAC_FLAME_BY_KERNEL;
    for (uint64_t i = track->first; i < track->first + track->count && status == LAC_OK; i++) {
        const int64_t at_ns = model->slices.start_ns[i];
        const int64_t bytes = allocated_bytes(model, i);
        uint32_t frame = 0;
        bool inside;
        (void)lac_flame_clip(walk, at_ns, 0, &inside);
        if (!inside || bytes == 0) {
            continue;
        }
        if (!is_begun) {
            const uint32_t around = frames_of(walk, marks);
            if (around != LAC_NONE && !lac_flame_counts(walk->options, model, around)) {
                break;
            }
            slices = lac_flame_slices_of(walk, around);
            lac_flame_line_next_group(walk->line);
            is_begun = true;
        }
        status = visit_until(walk, &slices, &stack, at_ns);
        if (status == LAC_OK) {
            const uint32_t top = stack.count > 0 ? stack.count - 1 : LAC_NONE;
            status = lac_flame_stack_frame(&stack, top, 0, &frame);
        }
        if (status == LAC_OK) {
            status = lac_flame_give(walk, frame, at_ns, bytes);
            walk->tree->frames[frame].count++;
        }
    }
    lac_flame_stack_done(&stack);
    return status;
}

enum lac_status lac_flame_walk_memory(struct lac_flame_walk *walk)
{
    const struct lac_model *model = walk->model;
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0;
         t < model->recorded_track_count && model->slices.detail != NULL && status == LAC_OK; t++) {
        if (model->tracks[t].kind == LAC_TRACK_MARKS) {
            status = add_marks(walk, t);
        }
    }
    return status;
}
