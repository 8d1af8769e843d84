#include "analysis/flame/flame.h"
#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_stack.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

/* Rows with the frames of threads, in the order of process and thread: there may be as many as rows of
 * marks, so that none is searched for from the first on. */
struct rows {
    const struct lac_model *model;
    uint32_t *at;
    uint32_t count;
};

static int by_thread(const void *a, const void *b, void *context)
{
    const struct lac_model *model = ((const struct rows *)context)->model;
    const struct lac_track *x = &model->tracks[*(const uint32_t *)a];
    const struct lac_track *y = &model->tracks[*(const uint32_t *)b];
    const int process = LAC_ORDER(x->process, y->process);
    return process != 0 ? process : LAC_ORDER(x->id_text, y->id_text);
}

/** Of threads, or of the samples of their stacks. */
static enum lac_status find_rows(const struct lac_model *model, enum lac_track_kind kind,
                                 struct rows *ret_rows)
{
    *ret_rows = (struct rows){
        .model = model,
        .at = malloc(((size_t)model->recorded_track_count + 1) * sizeof(*ret_rows->at))};
    if (ret_rows->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind == kind) {
            ret_rows->at[ret_rows->count++] = t;
        }
    }
    qsort_r(ret_rows->at, ret_rows->count, sizeof(*ret_rows->at), by_thread, ret_rows);
    return LAC_OK;
}

/** The row of the thread whose marks a row has, or LAC_NONE. */
static uint32_t row_of(struct rows *rows, uint32_t marks)
{
    uint32_t low = 0;
    LAC_BISECT(low, rows->count, middle, by_thread(&rows->at[middle], &marks, rows) < 0);
    const bool is_found = low < rows->count && by_thread(&rows->at[low], &marks, rows) == 0;
    return is_found ? rows->at[low] : LAC_NONE;
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

static enum lac_status add_marks(struct lac_flame_walk *walk, struct rows *rows, uint32_t marks)
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
            const uint32_t around = row_of(rows, marks);
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
    struct rows rows;
    enum lac_status status =
        find_rows(model, walk->is_sampled ? LAC_TRACK_STACKS : LAC_TRACK_THREAD, &rows);
    for (uint32_t t = 0;
         t < model->recorded_track_count && model->slices.detail != NULL && status == LAC_OK; t++) {
        if (model->tracks[t].kind == LAC_TRACK_MARKS) {
            status = add_marks(walk, &rows, t);
        }
    }
    free(rows.at);
    return status;
}
