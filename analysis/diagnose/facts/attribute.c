/*
 * Why a device was idle: every gap is split by what the host was in at that time, so that the
 * pieces sum to the gap exactly.
 *
 * In the order of what wins:
 *   data_wait, allocator, module_load, comm, copy_wait   wherever the host was in them
 *   profiler                                             the recorder's own cost
 *   unattributed                                         where the device was not seen
 * The rest depends on when the operation that ended the gap was launched:
 *   after its launch    copy_wait before a copy to the device, dependency when its stream waited
 *                       for another (and no graph hides what ran), unattributed while it was queued for longer than a launch takes
 *                       to arrive (or inside a graph): no launch was late; else launch
 *   before its launch   host where one operation, range or frame that calls nothing of the GPU takes it; sync
 *                       when a blocking call opened the gap, as long as that call blocked: so much
 *                       earlier the host would have been here; else launch, host, unattributed
 *
 * The root cause (the call that drained the queue, the batch that was late) is a field of its own.
 */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A growable list of pieces, reused from gap to gap. */
struct piece_list {
    struct painted {
        int64_t start_ns, end_ns;
        enum lac_cause cause;
    } * at;
    uint64_t count, capacity;
};

struct painter {
    struct lac_facts *facts;
    struct piece_list open;    /**< not yet explained, ascending */
    struct piece_list next;    /**< scratch */
    struct piece_list painted; /**< explained, in any order */
    uint64_t profiler_cursor, wait_cursor, unseen_cursor;
    uint64_t piece_capacity, outside_capacity;
    uint32_t track; /**< of the last call looked up: the next one is mostly on it */
};

static enum lac_status list_add(struct piece_list *list, int64_t start_ns, int64_t end_ns,
                                enum lac_cause cause)
{
    if (end_ns <= start_ns) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(list->at, list->capacity, list->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    list->at[list->count++] = (struct painted){start_ns, end_ns, cause};
    return LAC_OK;
}

static void swap_lists(struct piece_list *a, struct piece_list *b)
{
    struct piece_list swapped = *a;
    *a = *b;
    *b = swapped;
}

/** Paint one open interval with a set; what the set does not cover goes to painter->next. */
static enum lac_status paint_one(struct painter *painter, const struct lac_spans *set,
                                 uint64_t first, struct painted open, enum lac_cause cause)
{
    int64_t at_ns = open.start_ns;
    for (uint64_t i = first; i < set->count && set->at[i].start_ns < open.end_ns; i++) {
        int64_t from_ns = set->at[i].start_ns > at_ns ? set->at[i].start_ns : at_ns;
        int64_t to_ns = set->at[i].end_ns < open.end_ns ? set->at[i].end_ns : open.end_ns;
        if (to_ns <= from_ns) {
            continue;
        }
        enum lac_status status = list_add(&painter->next, at_ns, from_ns, LAC_CAUSE_UNATTRIBUTED);
        if (!status) {
            status = list_add(&painter->painted, from_ns, to_ns, cause);
        }
        if (status) {
            return status;
        }
        at_ns = to_ns;
    }
    return list_add(&painter->next, at_ns, open.end_ns, LAC_CAUSE_UNATTRIBUTED);
}

/** Paint all that is open with a set. Gaps ascend, so the cursor only moves on. */
static enum lac_status paint(struct painter *painter, const struct lac_spans *set, uint64_t *cursor,
                             enum lac_cause cause)
{
    if (painter->open.count == 0) {
        return LAC_OK;
    }
    int64_t start_ns = painter->open.at[0].start_ns;
    while (*cursor < set->count && set->at[*cursor].end_ns <= start_ns) {
        (*cursor)++;
    }
    int64_t end_ns = painter->open.at[painter->open.count - 1].end_ns;
    if (*cursor == set->count || set->at[*cursor].start_ns >= end_ns) {
        return LAC_OK;
    }
    painter->next.count = 0;
    uint64_t first = *cursor;
    for (uint64_t i = 0; i < painter->open.count; i++) {
        while (first < set->count && set->at[first].end_ns <= painter->open.at[i].start_ns) {
            first++;
        }
        enum lac_status status = paint_one(painter, set, first, painter->open.at[i], cause);
        if (status) {
            return status;
        }
    }
    swap_lists(&painter->open, &painter->next);
    return LAC_OK;
}

/** Paint what is open from `from_ns` to `to_ns`. */
static enum lac_status paint_between(struct painter *painter, int64_t from_ns, int64_t to_ns,
                                     enum lac_cause cause)
{
    struct lac_span one = {from_ns, to_ns};
    const struct lac_spans set = {.at = &one, .count = to_ns > from_ns ? 1 : 0};
    uint64_t cursor = 0;
    return paint(painter, &set, &cursor, cause);
}

/** Paint what is open at or after `from_ns`. */
static enum lac_status paint_from(struct painter *painter, int64_t from_ns, enum lac_cause cause)
{
    return paint_between(painter, from_ns, INT64_MAX, cause);
}

/** The blocking call that was waiting when the gap began, or NULL. */
static const struct lac_blocking_call *sync_that_opened(const struct lac_host *host,
                                                        const struct lac_gap *gap)
{
    enum { LOOK_BACK = 8 }; /* threads that may be in blocking calls at once */
    uint64_t low = 0;
    LAC_BISECT(low, host->blocking_count, middle, host->blocking[middle].start_ns < gap->start_ns);
    for (uint64_t back = 0; back < LOOK_BACK && back < low; back++) {
        const struct lac_blocking_call *call = &host->blocking[low - 1 - back];
        if (call->end_ns >= gap->start_ns - SYNC_RETURN_NS) {
            return call;
        }
    }
    return NULL;
}

/** The call that launched what ended the gap; LAC_NONE: nothing did, or it was not recorded. */
static uint32_t launch_of(const struct lac_model *model, const struct lac_gap *gap)
{
    return gap->ended_by == LAC_NONE ? LAC_NONE : model->slices.link[gap->ended_by];
}

/** Host whose thread launched the operation that ended the gap; the busiest when not recorded. */
static struct lac_host *host_of_gap(struct painter *painter, const struct lac_gap *gap)
{
    struct lac_facts *facts = painter->facts;
    const struct lac_model *model = facts->model;
    uint32_t index = facts->main_host;
    uint32_t call = launch_of(model, gap);
    if (call != LAC_NONE) {
        const struct lac_track *last = &model->tracks[painter->track];
        if (call < last->first || call >= last->first + last->count) {
            painter->track = lac_model_track_of(model, call);
        }
        uint32_t process = model->tracks[painter->track].process;
        if (process < model->process_count && facts->host_of_process[process] != LAC_NONE) {
            index = facts->host_of_process[process];
        }
    }
    return index == LAC_NONE ? NULL : &facts->hosts[index];
}

static bool is_copy_to_device(const struct lac_model *model, uint32_t slice)
{
    if (model->slices.kind[slice] != LAC_SLICE_COPY) {
        return false;
    }
    uint32_t row = model->slices.detail[slice];
    return row != LAC_NONE && row < model->copy_count &&
           model->copies[row].copy_kind == LAC_COPY_HTOD;
}

/** Whether the stream of what ended the gap was told to wait for another one right before. */
static bool waits_for_stream(const struct lac_model *model, const struct lac_host *host,
                             const struct lac_gap *gap, int64_t launched_ns)
{
    enum { LOOK_BACK_NS = 200000 };
    uint64_t wait = lac_spans_first_after(&host->waits_event, launched_ns - LOOK_BACK_NS);
    return wait < host->waits_event.count && host->waits_event.at[wait].start_ns <= launched_ns &&
           (gap->opened_by == LAC_NONE ||
            lac_model_track_of(model, gap->ended_by) != lac_model_track_of(model, gap->opened_by));
}

/** Paint what is left after the launch of what ended the gap. */
static enum lac_status paint_submitted(struct painter *painter, const struct lac_host *host,
                                       const struct lac_gap *gap, uint32_t call)
{
    const struct lac_model *model = painter->facts->model;
    int64_t end_ns = gap->start_ns + gap->dur_ns;
    int64_t launched_ns = model->slices.start_ns[call];
    if (is_copy_to_device(model, gap->ended_by)) {
        return paint_from(painter, launched_ns, LAC_CAUSE_COPY_WAIT);
    }
    int64_t queued_ns = launched_ns + model->slices.dur_ns[call];
    queued_ns = queued_ns > gap->start_ns ? queued_ns : gap->start_ns;
    bool is_inside = gap->opened_by != LAC_NONE && gap->dur_ns >= GAP_MIN_NS &&
                     model->slices.link[gap->opened_by] == call;
    bool waits = end_ns - launched_ns >= GAP_MIN_NS && !painter->facts->launches_graphs &&
                 waits_for_stream(model, host, gap, launched_ns);
    if (waits) {
        return paint_from(painter, launched_ns, LAC_CAUSE_DEPENDENCY);
    }
    enum lac_status status = LAC_OK;
    if (is_inside || end_ns - queued_ns > LAUNCH_ARRIVES_NS) {
        int64_t from_ns = is_inside ? gap->start_ns : queued_ns;
        bool is_main = gap->device == painter->facts->analysis->main_device;
        if (is_main && gap->opened_by != LAC_NONE) {
            status = lac_spans_add(&painter->facts->queued, from_ns, end_ns);
        }
        if (!status) {
            status = paint_from(painter, from_ns, LAC_CAUSE_UNATTRIBUTED);
        }
    }
    return status ? status : paint_from(painter, launched_ns, LAC_CAUSE_LAUNCH);
}

/** Paint what is left before the launch of what ended the gap, `sync` having opened it or NULL. */
static enum lac_status paint_before_launch(struct painter *painter, struct lac_host *host,
                                           const struct lac_gap *gap,
                                           const struct lac_blocking_call *sync)
{
    enum lac_status status = LAC_OK;
    if (sync != NULL) {
        status =
            paint(painter, &host->sets[LAC_SET_WORK], &host->cursor[LAC_SET_WORK], LAC_CAUSE_HOST);
        int64_t until_ns = lac_sum_ns(gap->start_ns, gap->start_ns - sync->start_ns);
        until_ns = until_ns > sync->end_ns ? until_ns : sync->end_ns;
        status = status ? status : paint_between(painter, gap->start_ns, until_ns, LAC_CAUSE_SYNC);
    }
    if (!status) {
        status = paint(painter, &host->sets[LAC_SET_LAUNCH], &host->cursor[LAC_SET_LAUNCH],
                       LAC_CAUSE_LAUNCH);
    }
    return status ? status
                  : paint(painter, &host->sets[LAC_SET_BUSY], &host->cursor[LAC_SET_BUSY],
                          LAC_CAUSE_HOST);
}

static enum lac_status paint_winners(struct painter *painter, struct lac_host *host)
{
    static const struct {
        enum lac_host_set set;
        enum lac_cause cause;
    } winners[] = {{LAC_SET_WAIT, LAC_CAUSE_DATA_WAIT},
                   {LAC_SET_ALLOC, LAC_CAUSE_ALLOCATOR},
                   {LAC_SET_MODULE, LAC_CAUSE_MODULE_LOAD},
                   {LAC_SET_COMM, LAC_CAUSE_COMM},
                   {LAC_SET_COPY, LAC_CAUSE_COPY_WAIT}};
    enum lac_status status = LAC_OK;
    if (host == NULL) {
        status = paint(painter, &painter->facts->waits, &painter->wait_cursor, LAC_CAUSE_DATA_WAIT);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(winners) && host != NULL && !status; i++) {
        status = paint(painter, &host->sets[winners[i].set], &host->cursor[winners[i].set],
                       winners[i].cause);
    }
    if (status) {
        return status;
    }
    return paint(painter, &painter->facts->profiler, &painter->profiler_cursor, LAC_CAUSE_PROFILER);
}

/** Split one gap: afterwards nothing is open. */
static enum lac_status explain(struct painter *painter, struct lac_gap *gap)
{
    const struct lac_model *model = painter->facts->model;
    struct lac_host *host = host_of_gap(painter, gap);
    int64_t end_ns = gap->start_ns + gap->dur_ns;
    painter->open.count = 0;
    painter->painted.count = 0;
    enum lac_status status =
        list_add(&painter->open, gap->start_ns, end_ns, LAC_CAUSE_UNATTRIBUTED);
    if (!status) {
        status = paint_winners(painter, host);
    }
    if (!status && gap->device == painter->facts->analysis->main_device) {
        status = paint(painter, &painter->facts->before_capture, &painter->unseen_cursor,
                       LAC_CAUSE_UNATTRIBUTED);
    }
    uint32_t call = launch_of(model, gap);
    if (!status && host != NULL && call != LAC_NONE) {
        const struct lac_blocking_call *sync = sync_that_opened(host, gap);
        gap->root_kind = sync != NULL ? LAC_ROOT_SYNC : LAC_ROOT_LAUNCH;
        gap->root = sync != NULL ? sync->slice : call;
        status = painter->open.count > 0 ? paint_submitted(painter, host, gap, call) : LAC_OK;
        status = status ? status : paint_before_launch(painter, host, gap, sync);
    } else if (!status && host != NULL && gap->ended_by == LAC_NONE) {
        /* after the last operation: what the same time has for its cause in the steps before */
        status = paint_before_launch(painter, host, gap, sync_that_opened(host, gap));
    }
    return status ? status : paint_from(painter, gap->start_ns, LAC_CAUSE_UNATTRIBUTED);
}

static int by_start(const void *a, const void *b)
{
    const struct painted *x = a;
    const struct painted *y = b;
    return LAC_ORDER(x->start_ns, y->start_ns);
}

/** Sort what was painted, join neighbors of one cause and append them as the gap's pieces. */
static enum lac_status emit(struct painter *painter, uint64_t gap_index)
{
    struct lac_analysis *analysis = painter->facts->analysis;
    struct lac_gap *gap = &analysis->gaps[gap_index];
    struct piece_list *list = &painter->painted;
    if (list->count > 1) {
        qsort(list->at, list->count, sizeof(*list->at), by_start);
    }
    if (!LAC_RESERVE(analysis->pieces, painter->piece_capacity, analysis->piece_count,
                     list->count)) {
        return LAC_ERR_NOMEM;
    }
    int64_t by_cause_ns[LAC_CAUSE_COUNT_] = {0};
    gap->first_piece = analysis->piece_count;
    int64_t at_ns = gap->start_ns;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct painted *piece = &list->at[i];
        assert(piece->start_ns == at_ns);
        at_ns = piece->end_ns;
        by_cause_ns[piece->cause] += piece->end_ns - piece->start_ns;
        bool joins = gap->piece_count > 0 &&
                     analysis->pieces[analysis->piece_count - 1].cause == piece->cause;
        if (joins) {
            continue;
        }
        analysis->pieces[analysis->piece_count++] =
            (struct lac_gap_piece){piece->start_ns, (uint32_t)gap_index, (uint8_t)piece->cause};
        gap->piece_count++;
    }
    assert(at_ns == gap->start_ns + gap->dur_ns);
    struct lac_device_facts *device_facts = &analysis->devices[gap->device];
    int largest = 0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        device_facts->idle_by_cause_ns[cause] += by_cause_ns[cause];
        if (by_cause_ns[cause] > by_cause_ns[largest]) {
            largest = cause;
        }
    }
    gap->cause = (uint8_t)largest;
    device_facts->gap_piece_count += gap->piece_count;
    return LAC_OK;
}

/** The wait for a batch that covers most of the gap; of equals the one that began last. */
static uint32_t wait_in_gap(const struct lac_facts *facts, const struct lac_gap *gap)
{
    enum { WAITS_BACK = 64 }; /* more threads never wait at once */
    const struct lac_marks *waits = &facts->wait_marks;
    int64_t end_ns = gap->start_ns + gap->dur_ns;
    uint32_t wait = LAC_NONE;
    int64_t most_ns = 0;
    uint64_t low = 0;
    LAC_BISECT(low, waits->count, middle, waits->at[middle].start_ns < end_ns);
    for (uint64_t back = 1; back <= WAITS_BACK && back <= low && most_ns < gap->dur_ns; back++) {
        const struct lac_mark *mark = &waits->at[low - back];
        int64_t from_ns = mark->start_ns > gap->start_ns ? mark->start_ns : gap->start_ns;
        int64_t mark_end_ns = mark->start_ns + mark->dur_ns;
        int64_t ns = (mark_end_ns < end_ns ? mark_end_ns : end_ns) - from_ns;
        if (ns > most_ns) {
            most_ns = ns;
            wait = mark->slice;
        }
    }
    return wait;
}

/** The loader's batch that a slice is about, -1 not recorded. */
static int64_t batch_of(const struct lac_model *model, uint32_t slice)
{
    uint32_t row = model->slices.detail[slice];
    return row < model->loader_info_count ? model->loader_infos[row].batch : -1;
}

/** The fetch that delivered the batch which this wait was for, or the wait itself. */
static uint32_t late_batch(const struct lac_facts *facts, uint32_t wait)
{
    const struct lac_model *model = facts->model;
    int64_t batch = batch_of(model, wait);
    if (batch < 0) {
        return wait;
    }
    int64_t wait_end_ns = model->slices.start_ns[wait] + model->slices.dur_ns[wait];
    uint64_t after = 0;
    LAC_BISECT(after, facts->fetch_count, middle, facts->fetches[middle].start_ns < wait_end_ns);
    enum { FETCHES_BACK = 256 }; /* more batches are never under way at once */
    for (uint64_t back = 0; back < FETCHES_BACK && back < after; back++) {
        const struct lac_fetch *fetch = &facts->fetches[after - 1 - back];
        if (fetch->batch == batch) {
            return fetch->slice;
        }
    }
    return wait;
}

/** What a worker did last for the batch of a wait, and finished during it. */
static uint32_t last_part(const struct lac_facts *facts, uint32_t wait)
{
    enum { PARTS_BACK = 512 }; /* of all workers: a range for each of a batch's samples */
    const struct lac_model *model = facts->model;
    const struct lac_marks *parts = &facts->loader_parts;
    int64_t batch = batch_of(model, wait);
    int64_t last_ns = model->slices.start_ns[wait];
    int64_t wait_end_ns = last_ns + model->slices.dur_ns[wait];
    uint32_t part = LAC_NONE;
    uint64_t after = 0;
    LAC_BISECT(after, parts->count, middle, parts->at[middle].start_ns < wait_end_ns);
    for (uint64_t back = 1; batch >= 0 && back <= PARTS_BACK && back <= after; back++) {
        const struct lac_mark *mark = &parts->at[after - back];
        int64_t end_ns = mark->start_ns + mark->dur_ns;
        if (end_ns > last_ns && end_ns <= wait_end_ns && batch_of(model, mark->slice) == batch) {
            last_ns = end_ns;
            part = mark->slice;
        }
    }
    return part;
}

/** Name the wait that this gap is in, and what it was for. */
static void find_late_batch(const struct lac_facts *facts, struct lac_gap *gap)
{
    const struct lac_slices *slices = &facts->model->slices;
    gap->root_kind = LAC_ROOT_NONE;
    gap->root = LAC_NONE;
    gap->wait = wait_in_gap(facts, gap);
    if (gap->wait == LAC_NONE) {
        return;
    }
    gap->root_kind = LAC_ROOT_LATE_BATCH;
    gap->root = late_batch(facts, gap->wait);
    if (gap->root == gap->wait) {
        gap->batch = last_part(facts, gap->wait);
    } else if (slices->start_ns[gap->root] + slices->dur_ns[gap->root] >
               slices->start_ns[gap->wait]) {
        gap->batch = gap->root;
    }
}

static void rewind_sets(struct painter *painter)
{
    painter->profiler_cursor = 0;
    painter->wait_cursor = 0;
    painter->unseen_cursor = 0;
    for (uint32_t h = 0; h < painter->facts->host_count; h++) {
        memset(painter->facts->hosts[h].cursor, 0, sizeof(painter->facts->hosts[h].cursor));
    }
}

/** Explain a time outside the span: pieces into facts->outside, the last ones. */
static enum lac_status explain_outside(struct painter *painter, int64_t from_ns, int64_t to_ns,
                                       uint32_t ended_by, uint32_t opened_by)
{
    struct lac_facts *facts = painter->facts;
    if (to_ns <= from_ns) {
        return LAC_OK;
    }
    struct lac_gap gap = {.start_ns = from_ns,
                          .dur_ns = to_ns - from_ns,
                          .ended_by = ended_by,
                          .opened_by = opened_by,
                          .device = (uint16_t)facts->analysis->main_device};
    enum lac_status status = explain(painter, &gap);
    const struct piece_list *list = &painter->painted;
    if (status || !LAC_RESERVE(facts->outside, painter->outside_capacity, facts->outside_count,
                               list->count)) {
        return status ? status : LAC_ERR_NOMEM;
    }
    qsort(list->at, list->count, sizeof(*list->at), by_start);
    for (uint64_t i = 0; i < list->count; i++) {
        facts->outside[facts->outside_count++] =
            (struct lac_idle_piece){list->at[i].start_ns, list->at[i].end_ns, list->at[i].cause};
    }
    return LAC_OK;
}

/** What the main device waited for before its first operation, and what passes after its last. */
static enum lac_status attribute_outside(struct painter *painter)
{
    struct lac_facts *facts = painter->facts;
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE) {
        return LAC_OK;
    }
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    const struct lac_device_sets *sets = &facts->device_sets[analysis->main_device];
    rewind_sets(painter);
    enum lac_status status = explain_outside(painter, 0, device->first_ns, sets->first, LAC_NONE);
    return status ? status
                  : explain_outside(painter, device->first_ns + device->span_ns,
                                    analysis->duration_ns, LAC_NONE, sets->last);
}

bool lac_is_graph_launch(const struct lac_facts *facts, uint32_t name)
{
    return facts->api_class[name] == LAC_API_LAUNCH &&
           strstr(lac_model_str(facts->model, name), "GraphLaunch") != NULL;
}

/** Whether a graph is launched anywhere: what it runs may not be in the recording. */
static bool launches_graphs(const struct lac_facts *facts)
{
    for (uint32_t id = 0; id < facts->model->strings.count; id++) {
        if (lac_is_graph_launch(facts, id)) {
            return true;
        }
    }
    return false;
}

enum lac_status lac_gaps_attribute(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    facts->launches_graphs = launches_graphs(facts);
    struct painter painter = {.facts = facts};
    enum lac_status status = LAC_OK;
    uint32_t device = LAC_NONE;
    for (uint64_t g = 0; g < analysis->gap_count && !status; g++) {
        struct lac_gap *gap = &analysis->gaps[g];
        if (gap->device != device) { /* time starts again: so do the cursors */
            device = gap->device;
            rewind_sets(&painter);
        }
        status = explain(&painter, gap);
        if (!status) {
            status = emit(&painter, g);
        }
        if (!status && gap->cause == LAC_CAUSE_DATA_WAIT && gap->dur_ns >= GAP_MIN_NS) {
            find_late_batch(facts, gap);
        }
    }
    if (!status) {
        status = attribute_outside(&painter);
    }
    free(painter.open.at);
    free(painter.next.at);
    free(painter.painted.at);
    return status;
}
