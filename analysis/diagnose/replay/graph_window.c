/* The window of the graph: whole steps, their operations in the order of launches, and the calls
 * of the threads that launched them. */

#include "analysis/diagnose/replay/graph_build.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MIN = 8 }; /* kept steps in a row that stand for all */

/** Whether the steps between the kept ones are not much else: they are played as steps, too. */
static bool is_even(const struct lac_analysis *analysis)
{
    double all_ns = 0.0;
    uint32_t first = LAC_NONE;
    uint32_t last = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            first = first == LAC_NONE ? s : first;
            last = s;
        }
    }
    for (uint32_t s = first; s <= last && first != LAC_NONE; s++) {
        all_ns += (double)analysis->steps[s].host_dur_ns;
    }
    double mean_ns = all_ns / (double)(last - first + 1);
    int64_t kept_ns =
        analysis->is_paced_by_device ? analysis->step_host_ns : analysis->step_mean_ns;
    return mean_ns <= WINDOW_LONGER_MAX * (double)kept_ns;
}

/** Where to begin: at the first kept step; where other work lies between them, at the longest row
 *  of kept steps, when it is long enough to stand for all. */
static uint32_t first_step(const struct lac_analysis *analysis, uint32_t *ret_end)
{
    uint32_t best = 0;
    uint32_t longest = 0;
    uint32_t first_kept = analysis->step_count;
    for (uint32_t s = 0; s < analysis->step_count;) {
        uint32_t end = s;
        while (end < analysis->step_count && analysis->steps[end].left_out == LAC_STEP_KEPT) {
            end++;
        }
        first_kept = end > s && first_kept == analysis->step_count ? s : first_kept;
        if (end - s > longest) {
            longest = end - s;
            best = s;
        }
        s = end + 1;
    }
    bool stands_for_all = longest >= ROW_MIN || (uint64_t)longest * 2 >= analysis->step_kept_count;
    if (stands_for_all && !is_even(analysis)) {
        *ret_end = best + longest;
        return best;
    }
    *ret_end = analysis->step_count;
    return first_kept;
}

/** Whether its marks are apart much longer than the device takes for it: it waits for work from
 *  before the recording, which cannot be played. */
static bool waits_for_before(const struct lac_step *step)
{
    return (double)step->host_dur_ns > WINDOW_LONGER_MAX * (double)step->dur_ns;
}

/** Steps of the window, as many as the bounds allow, in whole cycles of the workers. */
static bool choose_steps(struct lac_graph_builder *builder, uint64_t operations_max)
{
    const struct lac_analysis *analysis = builder->facts->analysis;
    struct lac_graph *graph = builder->graph;
    int32_t workers = analysis->loader.num_workers;
    uint32_t cycle = workers > 1 && workers <= 64 ? (uint32_t)workers : 1;
    uint64_t operations = 0;
    int64_t recorded_ns = 0;
    uint32_t kept = 0;
    uint32_t end = 0;
    uint32_t first = first_step(analysis, &end);
    while (analysis->is_paced_by_device && first + GRAPH_STEPS_MIN < end &&
           waits_for_before(&analysis->steps[first])) {
        first++;
    }
    graph->kept_count = 0;
    graph->start_ns = first < analysis->step_count ? analysis->steps[first].host_start_ns : 0;
    for (uint32_t s = first; s < end; s++) {
        const struct lac_step *step = &analysis->steps[s];
        bool is_kept = step->left_out == LAC_STEP_KEPT;
        operations += step->op_count;
        recorded_ns = lac_sum_ns(recorded_ns, step->dur_ns);
        if (operations > operations_max) {
            break;
        }
        kept += is_kept;
        bool is_whole = kept % cycle == 0 || kept == analysis->step_kept_count;
        if (is_kept && (is_whole || graph->kept_count < cycle)) {
            graph->end_ns = step->host_start_ns + step->host_dur_ns;
            graph->recorded_ns = recorded_ns;
            graph->step_count = s + 1 - first;
            graph->kept_count = kept;
        }
    }
    return graph->kept_count >= GRAPH_STEPS_MIN && graph->end_ns > graph->start_ns;
}

static bool is_ours(const struct lac_graph_builder *builder, uint32_t track)
{
    const struct lac_facts *facts = builder->facts;
    const struct lac_track *at = &facts->model->tracks[track];
    return at->kind == LAC_TRACK_THREAD && at->process == builder->process &&
           (facts->track_flags[track] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) != 0;
}

static enum lac_status add_call(struct lac_graph_builder *builder, struct lac_graph_call call)
{
    if (!LAC_RESERVE(builder->calls, builder->call_capacity, builder->call_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    builder->calls[builder->call_count++] = call;
    return LAC_OK;
}

/** Calls that launch, wait, allocate or load; the others are work between them. */
static bool call_of(struct lac_graph_builder *builder, uint64_t slice, struct lac_graph_call *call)
{
    struct lac_facts *facts = builder->facts;
    const struct lac_slices *slices = &facts->model->slices;
    if (slices->kind[slice] != LAC_SLICE_API) {
        return false;
    }
    enum lac_api_class op_class = lac_api_class_of(facts, slices->name[slice]);
    bool is_short_look_up = op_class == LAC_API_MODULE && slices->dur_ns[slice] < MODULE_MIN_NS;
    if (op_class == LAC_API_OTHER || op_class == LAC_API_QUERY || is_short_look_up) {
        return false;
    }
    call->api_class = (uint8_t)op_class;
    call->start_ns = slices->start_ns[slice] - builder->graph->start_ns;
    call->end_ns = call->start_ns + slices->dur_ns[slice];
    call->slice = (uint32_t)slice;
    call->last_op = LAC_NONE;
    call->batch = LAC_NONE;
    return true;
}

/** A row of queries as the wait that it is, in one call. @return whether it is one; the last of the
 *  row in either case */
static bool spin_of(struct lac_graph_builder *builder, uint64_t slice, struct lac_graph_call *call,
                    uint64_t *ret_last)
{
    const struct lac_slices *slices = &builder->facts->model->slices;
    struct lac_spin spin;
    bool is_query = slices->kind[slice] == LAC_SLICE_API &&
                    lac_api_class_of(builder->facts, slices->name[slice]) == LAC_API_QUERY;
    if (!is_query) {
        return false;
    }
    bool is_spin = lac_spin_at(builder->facts, slice, &spin);
    *ret_last = spin.last;
    call->api_class = LAC_API_SYNC;
    call->start_ns = slices->start_ns[slice] - builder->graph->start_ns;
    call->end_ns = spin.end_ns - builder->graph->start_ns;
    call->slice = (uint32_t)slice;
    call->last_op = LAC_NONE;
    call->batch = LAC_NONE;
    return is_spin;
}

static enum lac_status collect_calls(struct lac_graph_builder *builder)
{
    const struct lac_model *model = builder->facts->model;
    const struct lac_slices *slices = &model->slices;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (!is_ours(builder, t)) {
            continue;
        }
        uint64_t end = model->tracks[t].first + model->tracks[t].count;
        uint64_t i = lac_model_lower_bound(model, t, builder->graph->start_ns);
        for (; i < end && slices->start_ns[i] < builder->graph->end_ns; i++) {
            struct lac_graph_call call = {.track = t};
            if (!call_of(builder, i, &call) && !spin_of(builder, i, &call, &i)) {
                continue;
            }
            if (builder->call_count == LAC_GRAPH_CALLS_MAX) {
                builder->is_too_large = true;
                return LAC_OK;
            }
            enum lac_status status = add_call(builder, call);
            if (status) {
                return status;
            }
        }
    }
    return LAC_OK;
}

/** Waits for batches of the training process, among the calls. */
static enum lac_status collect_waits(struct lac_graph_builder *builder)
{
    const struct lac_marks *marks = &builder->facts->wait_marks;
    struct lac_graph *graph = builder->graph;
    uint32_t count = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        bool is_inside = mark->start_ns >= graph->start_ns && mark->start_ns < graph->end_ns;
        if (!is_inside || !is_ours(builder, mark->track)) {
            continue;
        }
        if (builder->call_count >= LAC_GRAPH_CALLS_MAX) {
            builder->is_too_large = true;
            return LAC_OK;
        }
        struct lac_graph_call call = {.start_ns = mark->start_ns - graph->start_ns,
                                      .end_ns = mark->start_ns - graph->start_ns + mark->dur_ns,
                                      .slice = mark->slice,
                                      .track = mark->track,
                                      .last_op = LAC_NONE,
                                      .batch = count++};
        enum lac_status status = add_call(builder, call);
        if (status) {
            return status;
        }
    }
    graph->batch_count = count;
    return LAC_OK;
}

static uint32_t call_with_slice(const struct lac_graph_builder *builder, uint32_t slice)
{
    uint32_t low = 0;
    LAC_BISECT(low, builder->api_count, middle, builder->calls[middle].slice < slice);
    return low < builder->api_count && builder->calls[low].slice == slice ? low : LAC_NONE;
}

/** The operation of a slice; false when another process launched it. */
static bool operation_of(const struct lac_graph_builder *builder, uint64_t slice, bool is_main,
                         struct lac_graph_op *op)
{
    const struct lac_facts *facts = builder->facts;
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t call = slices->link[slice];
    bool is_known = call != LAC_NONE && slices->kind[call] == LAC_SLICE_API;
    if (is_known) {
        uint32_t track = lac_model_track_of(facts->model, call);
        is_known = track < facts->model->recorded_track_count && is_ours(builder, track);
    }
    if (!is_known && !is_main) {
        return false;
    }
    op->start_ns = slices->start_ns[slice] - builder->graph->start_ns;
    op->end_ns = op->start_ns + slices->dur_ns[slice];
    op->launch_ns = is_known ? slices->start_ns[call] - builder->graph->start_ns : op->start_ns;
    op->call = is_known ? call_with_slice(builder, call) : LAC_NONE;
    op->slice = (uint32_t)slice;
    int64_t bytes = -1;
    op->op_class = (uint8_t)lac_op_class_of(facts, slice, &bytes);
    return true;
}

/** A stream's operations before the first whose launch was recorded were launched before the
 * window.
 */
static void launched_before(struct lac_graph *graph, uint32_t first)
{
    for (uint32_t o = first; o < graph->op_count; o++) {
        graph->ops[o].launch_ns = graph->ops[o].launch_ns < 0 ? graph->ops[o].launch_ns : -1;
    }
}

/** The next operation of a stream whose launch was recorded, looked for once until it is passed. */
struct next_launched {
    uint64_t end;      /**< right behind it; 0 not looked for */
    int64_t launch_ns; /**< INT64_MAX: there is none */
};

static void find_next(const struct lac_graph_builder *builder, uint64_t from, uint64_t end,
                      struct next_launched *next)
{
    if (from < next->end) {
        return;
    }
    *next = (struct next_launched){end, INT64_MAX};
    for (uint64_t i = from; i < end; i++) {
        struct lac_graph_op op = {0};
        if (lac_is_gpu_work(builder->facts->model->slices.kind[i]) &&
            operation_of(builder, i, false, &op)) {
            *next = (struct next_launched){i + 1, op.launch_ns};
            return;
        }
    }
}

static enum lac_status collect_stream(struct lac_graph_builder *builder, uint32_t track,
                                      int64_t from_ns)
{
    const struct lac_facts *facts = builder->facts;
    const struct lac_model *model = facts->model;
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_graph *graph = builder->graph;
    int64_t length_ns = graph->end_ns - graph->start_ns;
    bool is_main = model->tracks[track].device == analysis->devices[analysis->main_device].id;
    uint64_t begin = lac_model_lower_bound(model, track, from_ns);
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    uint32_t first = graph->op_count;
    bool has_launch = false;
    struct next_launched next = {0};
    for (uint64_t i = begin; i < end; i++) {
        struct lac_graph_op op = {
            .stream = graph->stream_count, .depends = LAC_GRAPH_NO_OP, .depends_part = 1.0F};
        if (!lac_is_gpu_work(model->slices.kind[i]) || !operation_of(builder, i, is_main, &op)) {
            continue;
        }
        if (op.call == LAC_NONE && op.launch_ns >= length_ns) {
            find_next(builder, i, end, &next); /* launched before the one behind it */
            op.launch_ns = op.launch_ns < next.launch_ns ? op.launch_ns : next.launch_ns;
        }
        if (op.launch_ns >= length_ns) {
            if (op.start_ns >= length_ns) {
                break; /* what comes behind it was launched later still */
            }
            continue;
        }
        if (op.launch_ns < from_ns - graph->start_ns) {
            continue;
        }
        if (graph->op_count == LAC_GRAPH_KEPT_OPS_MAX) {
            builder->is_too_large = true;
            return LAC_OK;
        }
        if (!has_launch && op.call != LAC_NONE) {
            launched_before(graph, first);
            has_launch = true;
        }
        graph->ops[graph->op_count++] = op;
    }
    graph->stream_count += graph->op_count > first;
    return LAC_OK;
}

static int by_launch(const void *a, const void *b)
{
    const struct lac_graph_op *x = a;
    const struct lac_graph_op *y = b;
    int order = LAC_ORDER(x->launch_ns, y->launch_ns);
    order = order != 0 ? order : LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

/** Operations that were launched in the window and as long before it as two steps are. */
static enum lac_status collect_operations(struct lac_graph_builder *builder)
{
    const struct lac_model *model = builder->facts->model;
    struct lac_graph *graph = builder->graph;
    int64_t length_ns = graph->end_ns - graph->start_ns;
    int64_t before_ns = 2 * (length_ns / graph->step_count);
    int64_t from_ns = graph->start_ns > before_ns ? graph->start_ns - before_ns : 0;
    graph->ops = malloc(LAC_GRAPH_KEPT_OPS_MAX * sizeof(*graph->ops));
    enum lac_status status = graph->ops != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        if (builder->facts->track_flags[t] & LAC_TRACK_HAS_GPU) {
            status = collect_stream(builder, t, from_ns);
        }
    }
    if (status || builder->is_too_large || graph->op_count == 0) {
        return status;
    }
    qsort(graph->ops, graph->op_count, sizeof(*graph->ops), by_launch);
    while (graph->first < graph->op_count && graph->ops[graph->first].launch_ns < 0) {
        graph->first++;
    }
    uint32_t launched = 0;
    for (uint32_t o = graph->first; o < graph->op_count; o++) {
        if (graph->ops[o].call != LAC_NONE) {
            builder->calls[graph->ops[o].call].last_op = o;
            launched++;
        }
    }
    if (launched < (graph->op_count - graph->first) / 2) {
        graph->op_count = graph->first; /* the trace does not show who launched what */
    }
    return LAC_OK;
}

enum lac_status lac_graph_window(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    uint64_t operations_max = LAC_GRAPH_OPS_MAX;
    for (int attempt = 0; attempt < 4; attempt++, operations_max /= 4) {
        builder->is_too_large = false;
        builder->call_count = 0;
        builder->api_count = 0;
        graph->op_count = graph->first = graph->stream_count = 0;
        free(graph->ops);
        graph->ops = NULL;
        if (!choose_steps(builder, operations_max)) {
            return LAC_OK;
        }
        enum lac_status status = collect_calls(builder);
        builder->api_count = builder->call_count;
        if (!status) {
            status = collect_waits(builder);
        }
        if (!status && !builder->is_too_large) {
            status = collect_operations(builder);
        }
        if (status || !builder->is_too_large) {
            builder->is_usable = !status && graph->op_count > graph->first;
            return status;
        }
    }
    return LAC_OK;
}
