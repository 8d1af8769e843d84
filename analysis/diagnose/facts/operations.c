#include "analysis/diagnose/facts/operations.h"

#include <stdint.h>
#include <stdlib.h>

static int64_t start_of(const struct lac_facts *facts, uint64_t slice)
{
    const struct lac_slices *slices = &facts->model->slices;
    return lac_is_gpu_work(slices->kind[slice]) ? slices->start_ns[slice] : LAC_UNKNOWN_NS;
}

/** Move a cursor to the next slice that has a place. @return false at the track's end */
static bool settle(const struct lac_operations *operations, struct lac_op_cursor *cursor)
{
    int64_t place_ns = LAC_UNKNOWN_NS;
    while (cursor->slice < cursor->end &&
           (place_ns = operations->place_of(operations->facts, cursor->slice)) == LAC_UNKNOWN_NS) {
        cursor->slice++;
    }
    if (cursor->slice == cursor->end) {
        return false;
    }
    cursor->start_ns = place_ns > cursor->start_ns ? place_ns : cursor->start_ns;
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

static enum lac_status init(struct lac_operations *operations, const struct lac_facts *facts,
                            lac_place_of *place_of, const int64_t *device_id, const bool *is_walked)
{
    const struct lac_model *model = facts->model;
    uint32_t track_count = 0;
    *operations = (struct lac_operations){.facts = facts, .place_of = place_of};
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        track_count += (facts->track_flags[t] & LAC_TRACK_HAS_GPU) != 0;
    }
    operations->heap = calloc(track_count ? track_count : 1, sizeof(*operations->heap));
    if (operations->heap == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        struct lac_op_cursor cursor = {.start_ns = INT64_MIN,
                                       .slice = track->first,
                                       .end = track->first + track->count,
                                       .order = t};
        if ((facts->track_flags[t] & LAC_TRACK_HAS_GPU) != 0 &&
            (device_id == NULL || track->device == *device_id) &&
            (is_walked == NULL || is_walked[t]) && settle(operations, &cursor)) {
            operations->heap[operations->count++] = cursor;
        }
    }
    for (uint32_t i = operations->count / 2; i > 0; i--) {
        sift_down(operations, i - 1);
    }
    return LAC_OK;
}

enum lac_status lac_operations_init(struct lac_operations *operations,
                                    const struct lac_facts *facts, int64_t device_id)
{
    return init(operations, facts, start_of, &device_id, NULL);
}

enum lac_status lac_operations_init_by(struct lac_operations *operations,
                                       const struct lac_facts *facts, lac_place_of *place_of,
                                       const bool *is_walked)
{
    return init(operations, facts, place_of, NULL, is_walked);
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
    if (!settle(operations, top)) {
        *top = operations->heap[--operations->count];
    }
    if (operations->count > 1) {
        sift_down(operations, 0);
    }
    return true;
}

/* -- what counts where several run ------------------------------------------------------------- */

enum lac_partition lac_operation_part(const struct lac_facts *facts, uint64_t slice)
{
    const uint8_t kind = facts->model->slices.kind[slice];
    if (kind == LAC_SLICE_KERNEL) {
        return lac_kernel_class_of(facts, slice)->is_comm ? LAC_PART_EXPOSED_COMM
                                                          : LAC_PART_COMPUTE;
    }
    return kind == LAC_SLICE_COPY ? LAC_PART_EXPOSED_COPY : LAC_PART_EXPOSED_MEMSET;
}

/** The time until t_ns, in which nothing begins or ends, goes to what runs. */
static void pass(struct lac_exposure *exposure, int64_t t_ns)
{
    const double passed_ns = (double)(t_ns - exposure->now_ns);
    if (exposure->parts != 0) {
        const int part = __builtin_ctz(exposure->parts);
        exposure->share_ns[part] += passed_ns / exposure->of_part[part];
        exposure->sole_ns[part] += exposure->of_part[part] == 1 ? passed_ns : 0.0;
    }
    if (exposure->classes != 0 && (exposure->classes & (exposure->classes - 1)) == 0) {
        const int op_class = __builtin_ctz(exposure->classes);
        exposure->alone_ns[op_class] += passed_ns / exposure->of_class[op_class];
    }
    exposure->now_ns = t_ns;
}

static struct lac_exposed had(const struct lac_exposure *exposure, uint8_t part, uint8_t op_class)
{
    return (struct lac_exposed){.share_ns = exposure->share_ns[part],
                                .sole_ns = exposure->sole_ns[part],
                                .alone_ns = exposure->alone_ns[op_class]};
}

static void end_first(struct lac_exposure *exposure)
{
    struct lac_running_operation *running = exposure->running;
    const struct lac_running_operation first = running[0];
    const struct lac_running_operation last = running[--exposure->count];
    uint32_t at = 0;
    pass(exposure, first.end_ns);
    for (uint32_t child; (child = 2 * at + 1) < exposure->count; at = child) {
        if (child + 1 < exposure->count && running[child + 1].end_ns < running[child].end_ns) {
            child++;
        }
        if (running[child].end_ns >= last.end_ns) {
            break;
        }
        running[at] = running[child];
    }
    running[at] = last;
    exposure->parts &= ~((unsigned)(--exposure->of_part[first.part] == 0) << first.part);
    exposure->classes &= ~((unsigned)(--exposure->of_class[first.op_class] == 0) << first.op_class);
    const struct lac_exposed now = had(exposure, first.part, first.op_class);
    exposure->ended(exposure->context, &first,
                    (struct lac_exposed){.share_ns = now.share_ns - first.from.share_ns,
                                         .sole_ns = now.sole_ns - first.from.sole_ns,
                                         .alone_ns = now.alone_ns - first.from.alone_ns});
}

enum lac_status lac_exposure_begin(struct lac_exposure *exposure, const struct lac_facts *facts,
                                   uint64_t slice, uint8_t op_class, uint32_t user)
{
    const struct lac_slices *slices = &facts->model->slices;
    const int64_t start_ns = slices->start_ns[slice];
    const uint8_t part = (uint8_t)lac_operation_part(facts, slice);
    while (exposure->count > 0 && exposure->running[0].end_ns <= start_ns) {
        end_first(exposure);
    }
    if (exposure->count > 0) {
        pass(exposure, start_ns);
    }
    exposure->now_ns = start_ns;
    if (exposure->count == exposure->capacity) {
        const uint32_t capacity = exposure->capacity > 0 ? 2 * exposure->capacity : 16;
        struct lac_running_operation *grown =
            realloc(exposure->running, capacity * sizeof(*exposure->running));
        if (grown == NULL) {
            return LAC_ERR_NOMEM;
        }
        exposure->running = grown;
        exposure->capacity = capacity;
    }
    uint32_t at = exposure->count++;
    const int64_t end_ns = start_ns + slices->dur_ns[slice];
    for (; at > 0 && exposure->running[(at - 1) / 2].end_ns > end_ns; at = (at - 1) / 2) {
        exposure->running[at] = exposure->running[(at - 1) / 2];
    }
    exposure->running[at] = (struct lac_running_operation){.end_ns = end_ns,
                                                           .from = had(exposure, part, op_class),
                                                           .user = user,
                                                           .part = part,
                                                           .op_class = op_class};
    exposure->of_part[part]++;
    exposure->of_class[op_class]++;
    exposure->parts |= 1U << part;
    exposure->classes |= 1U << op_class;
    return LAC_OK;
}

void lac_exposure_end(struct lac_exposure *exposure)
{
    while (exposure->count > 0) {
        end_first(exposure);
    }
    free(exposure->running);
    *exposure = (struct lac_exposure){0};
}
