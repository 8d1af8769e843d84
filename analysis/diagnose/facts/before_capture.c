/*
 * Work that a device still had when the recording began, or began again: it was launched before, so
 * that nothing of it was recorded, and the device seems idle while it is not.
 *
 * It shows in the first operation of the stream that computes: it was launched long before it
 * starts, nothing recorded keeps it waiting, and a stream takes its work in order. Until then the
 * device was not seen: that idle time has no cause, and a step with such a hole is no whole one.
 */

#include "analysis/diagnose/facts/operations.h"

#include <stdint.h>

enum {
    UNSEEN_MIN_NS = 1000000, /* nothing that a launch waits for takes this long by itself */
    LOOK_BACK_NS = 200000,   /* a stream is told to wait right before it is given work */
    STREAMS_MAX = 64,
    BEFORE_MAX = 64, /* operations that one may wait for, beside those that ended long ago */
};

/** Whether its stream may have been told to wait for another device. */
static bool may_wait_for_others(const struct lac_facts *facts, int64_t launched_ns)
{
    if (facts->analysis->device_count < 2) {
        return false;
    }
    for (uint32_t h = 0; h < facts->host_count; h++) {
        const struct lac_spans *told = &facts->hosts[h].waits_event;
        uint64_t at = lac_spans_first_after(told, launched_ns - LOOK_BACK_NS);
        if (at < told->count && told->at[at].start_ns <= launched_ns) {
            return true;
        }
    }
    return false;
}

/** The first operation of a stream since the recording began. */
struct first_op {
    uint32_t track;
    uint64_t slice;
    int64_t free_ns; /**< when all that it may wait for had ended */
};

/** The walk over one device. */
struct look {
    struct lac_facts *facts;
    int64_t from_ns;             /**< when the recording began, or began again */
    uint64_t before[BEFORE_MAX]; /**< the last operations, a ring */
    uint64_t before_count;       /**< of all */
    int64_t older_ns;            /**< when those that the ring no longer has had ended */
    uint64_t pause;              /**< next one */
    struct first_op first[STREAMS_MAX];
    uint32_t first_count;
    bool is_done; /**< with this part of the recording */
};

static int64_t end_of(const struct lac_slices *slices, uint64_t slice)
{
    return slices->start_ns[slice] + slices->dur_ns[slice];
}

static void remember(struct look *look, uint64_t slice)
{
    const struct lac_slices *slices = &look->facts->model->slices;
    uint64_t *place = &look->before[look->before_count % BEFORE_MAX];
    if (look->before_count >= BEFORE_MAX) {
        int64_t end_ns = end_of(slices, *place);
        look->older_ns = end_ns > look->older_ns ? end_ns : look->older_ns;
    }
    *place = slice;
    look->before_count++;
}

/** When all had ended that started before this operation, but for what was launched after it. */
static int64_t free_for(const struct look *look, uint64_t slice)
{
    const struct lac_slices *slices = &look->facts->model->slices;
    uint32_t call = slices->link[slice];
    uint64_t count = look->before_count < BEFORE_MAX ? look->before_count : BEFORE_MAX;
    int64_t free_ns = look->older_ns;
    for (uint64_t i = 0; i < count && call != LAC_NONE; i++) {
        uint32_t other = slices->link[look->before[i]];
        bool is_later = other != LAC_NONE && slices->start_ns[other] > slices->start_ns[call];
        int64_t end_ns = end_of(slices, look->before[i]);
        free_ns = !is_later && end_ns > free_ns ? end_ns : free_ns;
    }
    return free_ns;
}

/** Whether it waited for what was not recorded. */
static bool waited_unseen(const struct look *look, const struct first_op *op)
{
    const struct lac_slices *slices = &look->facts->model->slices;
    uint32_t call = slices->link[op->slice];
    if (call == LAC_NONE || slices->start_ns[call] < look->from_ns) {
        return false;
    }
    int64_t launched_ns = end_of(slices, call);
    int64_t since_ns = launched_ns > op->free_ns ? launched_ns : op->free_ns;
    return slices->start_ns[op->slice] - since_ns >= UNSEEN_MIN_NS &&
           !may_wait_for_others(look->facts, slices->start_ns[call]);
}

static enum lac_status look_at(struct look *look, uint64_t slice)
{
    const struct lac_facts *facts = look->facts;
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t track = lac_model_track_of(facts->model, slice);
    uint32_t at = 0;
    while (at < look->first_count && look->first[at].track != track) {
        at++;
    }
    if (at == look->first_count) {
        if (look->first_count == STREAMS_MAX) {
            look->is_done = true;
            return LAC_OK;
        }
        look->first[look->first_count++] = (struct first_op){track, slice, free_for(look, slice)};
    }
    bool is_computing =
        slices->kind[slice] == LAC_SLICE_KERNEL && !lac_kernel_class_of(facts, slice)->is_comm;
    if (!is_computing) {
        return LAC_OK;
    }
    look->is_done = true;
    const struct first_op *first = &look->first[at];
    return waited_unseen(look, first)
               ? lac_spans_add_unsorted(&look->facts->before_capture, look->from_ns,
                                        slices->start_ns[first->slice])
               : LAC_OK;
}

static enum lac_status look_at_device(struct look *look, int64_t device)
{
    const struct lac_slices *slices = &look->facts->model->slices;
    const struct lac_spans *pauses = &look->facts->pauses;
    struct lac_operations operations;
    enum lac_status status = lac_operations_init(&operations, look->facts, device);
    uint64_t slice = 0;
    while (!status && (!look->is_done || look->pause < pauses->count) &&
           lac_operations_next(&operations, &slice)) {
        while (look->pause < pauses->count &&
               slices->start_ns[slice] >= pauses->at[look->pause].end_ns) {
            look->from_ns = pauses->at[look->pause++].end_ns;
            look->first_count = 0;
            look->is_done = false;
        }
        if (!look->is_done) {
            status = look_at(look, slice);
        }
        remember(look, slice);
    }
    lac_operations_done(&operations);
    return status;
}

enum lac_status lac_before_capture_collect(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE) {
        return LAC_OK;
    }
    struct look look = {.facts = facts};
    enum lac_status status = look_at_device(&look, analysis->devices[analysis->main_device].id);
    lac_spans_normalize(&facts->before_capture, 0);
    return status;
}

void lac_exclude_before_capture(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        int64_t end_ns = step->start_ns + step->dur_ns;
        if (lac_spans_length_inside(&facts->before_capture, step->start_ns, end_ns) > 0) {
            step->left_out = LAC_STEP_TRUNCATED;
        }
    }
}
