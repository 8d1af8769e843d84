#include "analysis/diagnose/facts/operations.h"

#include <stdint.h>
#include <stdlib.h>

/** Move a cursor to its next operation of the device's work. @return false at the track's end */
static bool settle(const struct lac_slices *slices, struct lac_op_cursor *cursor)
{
    while (cursor->slice < cursor->end && !lac_is_gpu_work(slices->kind[cursor->slice])) {
        cursor->slice++;
    }
    if (cursor->slice == cursor->end) {
        return false;
    }
    cursor->start_ns = slices->start_ns[cursor->slice];
    return true;
}

static bool precedes(const struct lac_op_cursor *a, const struct lac_op_cursor *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->order < b->order;
}

static void sift_down(struct lac_operations *operations, uint32_t at)
{
    struct lac_op_cursor *heap = operations->heap;
    for (;;) {
        uint32_t smallest = at;
        uint32_t left = 2 * at + 1;
        if (left < operations->count && precedes(&heap[left], &heap[smallest])) {
            smallest = left;
        }
        if (left + 1 < operations->count && precedes(&heap[left + 1], &heap[smallest])) {
            smallest = left + 1;
        }
        if (smallest == at) {
            return;
        }
        struct lac_op_cursor swapped = heap[at];
        heap[at] = heap[smallest];
        heap[smallest] = swapped;
        at = smallest;
    }
}

enum lac_status lac_operations_init(struct lac_operations *operations,
                                    const struct lac_facts *facts, int64_t device_id)
{
    const struct lac_model *model = facts->model;
    *operations = (struct lac_operations){.slices = &model->slices};
    uint32_t track_count = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        bool is_ours = model->tracks[t].device == device_id;
        track_count += is_ours && (facts->track_flags[t] & LAC_TRACK_HAS_GPU);
    }
    operations->heap = calloc(track_count ? track_count : 1, sizeof(*operations->heap));
    if (operations->heap == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->device != device_id || !(facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        struct lac_op_cursor cursor = {
            .slice = track->first, .end = track->first + track->count, .order = t};
        if (settle(&model->slices, &cursor)) {
            operations->heap[operations->count++] = cursor;
        }
    }
    for (uint32_t i = operations->count / 2; i > 0; i--) {
        sift_down(operations, i - 1);
    }
    return LAC_OK;
}

void lac_operations_done(struct lac_operations *operations)
{
    free(operations->heap);
    *operations = (struct lac_operations){0};
}

bool lac_operations_next(struct lac_operations *operations, uint64_t *ret_slice)
{
    if (operations->count == 0) {
        return false;
    }
    struct lac_op_cursor *top = &operations->heap[0];
    *ret_slice = top->slice++;
    if (!settle(operations->slices, top)) {
        *top = operations->heap[--operations->count];
    }
    if (operations->count > 1) {
        sift_down(operations, 0);
    }
    return true;
}
