#include "server/store/trace/flame/flame_windows.h"

#include "analysis/crew/crew.h"
#include "analysis/flame/flame.h"
#include "analysis/flame/flame_sum.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/flame/flame_wanted.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A window is halved so often when its part is too large, before it may be as large as it likes. */
enum { HALVINGS_MAX = 6 };

/** Parts may be so many times as large as expected. */
enum { PART_ROOM = 4 };

/** Windows of one group of rows, and the pieces of time by which their edges are found. */
enum { WINDOWS_MAX = 4096, BINS_A_WINDOW = 16 };

/** Edges of a window are moved to where no gap is; where gaps overlap, so often. */
enum { MOVES_MAX = 8 };

enum { THREADS_MAX = 4 };

/** Rows of the plan, for a while. */
struct window {
    uint32_t first, end;
    int64_t t0_ns, t1_ns;
};

struct plan {
    struct lac_trace_file *file;
    const struct lac_flame_options *options;
    int64_t t0_ns, t1_ns; /**< the area */
    uint64_t window_slices;
    bool is_sampled;
    uint32_t *rows; /**< whose time is asked for */
    uint32_t row_count;
    uint64_t row_slices; /**< of all of them */
    struct window *windows;
    uint32_t count, capacity;
    atomic_uint next;
    atomic_bool has_failed;
};

/** One thread's share. */
struct worker {
    struct plan *plan;
    struct lac_flame_sum *sum;
    uint8_t *is_chosen;
    struct lac_flame_span *spans;
    struct lac_flame_room room;
    enum lac_status status;
    struct lac_error error;
};

/* ---- the plan ---- */

static enum lac_status find_rows(struct plan *plan, struct lac_error *reterr)
{
    const struct lac_model *head = &plan->file->head;
    const enum lac_flame_metric metric = plan->options->metric;
    const enum lac_track_kind kind = lac_flame_is_of_streams(metric) ? LAC_TRACK_STREAM
                                     : metric == LAC_FLAME_WAITING   ? LAC_TRACK_GAPS
                                     : plan->is_sampled              ? LAC_TRACK_STACKS
                                                                     : LAC_TRACK_THREAD;
    const uint32_t track_count =
        metric == LAC_FLAME_WAITING ? head->track_count : head->recorded_track_count;
    const uint8_t *is_left_out = NULL;
    enum lac_status status = LAC_OK;

    if (metric == LAC_FLAME_CPU) {
        status = lac_flame_left_out(plan->file, &is_left_out, reterr);
    }
    plan->rows = malloc(((size_t)head->track_count + 1) * sizeof(*plan->rows));
    if (status != LAC_OK || plan->rows == NULL) {
        return status != LAC_OK ? status : LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < track_count; t++) {
        if (head->tracks[t].kind == kind && head->tracks[t].count > 0 &&
            (is_left_out == NULL || is_left_out[t] == 0) &&
            lac_flame_counts(plan->options, head, t)) {
            plan->rows[plan->row_count++] = t;
            plan->row_slices += head->tracks[t].count;
        }
    }
    return LAC_OK;
}

/** The latest time up to *t_ns at which no slice of a row is under way; from_ns: there is none. */
static enum lac_status move_to_cut(const struct plan *plan, uint32_t track, int64_t from_ns,
                                   int64_t *t_ns, struct lac_error *reterr)
{
    struct lac_trace_file *file = plan->file;

    for (int move = 0; move<MOVES_MAX && * t_ns> from_ns; move++) {
        int64_t earliest_ns = *t_ns;

        for (uint32_t c = file->track_chunk[track]; c < file->track_chunk[track + 1]; c++) {
            const struct lac_chunk_columns *columns = NULL;
            struct lac_cache_entry *pin = NULL;
            enum lac_status status;

            if (file->chunks[c].start_first >= *t_ns || file->chunks[c].end_last <= *t_ns) {
                continue;
            }
            status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &pin, reterr);
            if (status != LAC_OK) {
                return status;
            }
            for (uint64_t i = 0; i < columns->at.count && columns->at.start_ns[i] < earliest_ns;
                 i++) {
                if (columns->at.start_ns[i] + columns->at.dur_ns[i] > *t_ns) {
                    earliest_ns = columns->at.start_ns[i];
                }
            }
            lac_trace_unpin(file, pin);
        }
        if (earliest_ns == *t_ns) {
            return LAC_OK;
        }
        *t_ns = earliest_ns;
    }
    *t_ns = from_ns;
    return LAC_OK;
}

/** Where a window of a group may end: any time, but idle time is never cut. */
static enum lac_status move_edge(const struct plan *plan, uint32_t first_row, int64_t from_ns,
                                 int64_t *t_ns, struct lac_error *reterr)
{
    return plan->options->metric == LAC_FLAME_WAITING
               ? move_to_cut(plan, plan->rows[first_row], from_ns, t_ns, reterr)
               : LAC_OK;
}

/** From the first start to the last end of a group of rows, inside the area. */
static void span_of(const struct plan *plan, const struct window *group, int64_t *ret_t0_ns,
                    int64_t *ret_t1_ns)
{
    const struct lac_trace_file *file = plan->file;
    int64_t t0_ns = INT64_MAX;
    int64_t t1_ns = 0;

    for (uint32_t r = group->first; r < group->end; r++) {
        for (uint32_t c = file->track_chunk[plan->rows[r]];
             c < file->track_chunk[plan->rows[r] + 1]; c++) {
            const struct lac_chunk_entry *chunk = &file->chunks[c];

            t0_ns = chunk->start_first < t0_ns ? chunk->start_first : t0_ns;
            t1_ns = chunk->end_last > t1_ns ? chunk->end_last : t1_ns;
        }
    }
    *ret_t0_ns = t0_ns > group->t0_ns ? t0_ns : group->t0_ns;
    *ret_t1_ns = t1_ns < group->t1_ns ? t1_ns : group->t1_ns;
}

/** How many slices begin in each bin of [t0, t1), as differences to the bin before. */
static double fill_bins(const struct plan *plan, const struct window *group, int64_t t0_ns,
                        int64_t t1_ns, double *bins, uint32_t bin_count)
{
    const struct lac_trace_file *file = plan->file;
    const double a_ns = (double)bin_count / (double)(t1_ns - t0_ns);
    double sum = 0;

    for (uint32_t r = group->first; r < group->end; r++) {
        for (uint32_t c = file->track_chunk[plan->rows[r]];
             c < file->track_chunk[plan->rows[r] + 1]; c++) {
            const struct lac_chunk_entry *chunk = &file->chunks[c];
            uint32_t from = 0;
            uint32_t to = bin_count - 1;
            double each;

            if (chunk->start_first >= t1_ns || chunk->start_last < t0_ns) {
                continue;
            }
            if (chunk->start_first > t0_ns) {
                from = (uint32_t)((double)(chunk->start_first - t0_ns) * a_ns);
            }
            if (chunk->start_last < t1_ns) {
                to = (uint32_t)((double)(chunk->start_last - t0_ns) * a_ns);
            }
            from = from < bin_count ? from : bin_count - 1;
            to = to < bin_count ? to : bin_count - 1;
            each = (double)chunk->count / (to - from + 1);
            bins[from] += each;
            bins[to + 1] -= each;
            sum += chunk->count;
        }
    }
    return sum;
}

static enum lac_status add_window(struct plan *plan, struct window window)
{
    if (!LAC_RESERVE(plan->windows, plan->capacity, plan->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    plan->windows[plan->count++] = window;
    return LAC_OK;
}

/** Windows of about as many slices each. Where a group begins and ends, its windows take in all of
 *  the area. */
static enum lac_status divide(struct plan *plan, struct window group, uint64_t slices,
                              struct lac_error *reterr)
{
    const struct lac_model *head = &plan->file->head;
    /* what is on other rows is taken along: as much of it as there is of these */
    const double share = (double)slices / (double)plan->row_slices;
    const double parts = share * (double)head->slices.count / (double)plan->window_slices;
    const uint32_t wanted = parts < 1 ? 1 : parts > WINDOWS_MAX ? WINDOWS_MAX : (uint32_t)parts + 1;
    const uint32_t bin_count = wanted * BINS_A_WINDOW;
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    double *bins = NULL;
    double left = 0;
    double in_bin = 0;
    double before = 0;
    enum lac_status status = LAC_OK;

    span_of(plan, &group, &from_ns, &to_ns);
    if (from_ns > to_ns || wanted == 1 || to_ns - from_ns < (int64_t)bin_count) {
        return from_ns > to_ns ? LAC_OK : add_window(plan, group);
    }
    bins = calloc((size_t)bin_count + 1, sizeof(*bins));
    if (bins == NULL) {
        return LAC_ERR_NOMEM;
    }
    left = fill_bins(plan, &group, from_ns, to_ns, bins, bin_count) / wanted;
    for (uint32_t b = 0; b + 1 < bin_count && status == LAC_OK; b++) {
        int64_t edge_ns =
            from_ns + (int64_t)((double)(to_ns - from_ns) * ((double)b + 1) / bin_count);

        in_bin += bins[b];
        before += in_bin;
        if (before < left || edge_ns <= group.t0_ns || edge_ns >= group.t1_ns) {
            continue;
        }
        status = move_edge(plan, group.first, group.t0_ns, &edge_ns, reterr);
        if (status == LAC_OK && edge_ns > group.t0_ns) {
            struct window window = group;

            window.t1_ns = edge_ns;
            group.t0_ns = edge_ns;
            before = 0;
            status = add_window(plan, window);
        }
    }
    free(bins);
    return status == LAC_OK ? add_window(plan, group) : status;
}

/** Rows side by side are a group until they are enough for a window; idle time goes row by row, so
 *  that there are times at which none is under way. */
static enum lac_status make_plan(struct plan *plan, struct lac_error *reterr)
{
    const struct lac_model *head = &plan->file->head;
    enum lac_status status = find_rows(plan, reterr);
    const double one = (double)plan->row_slices / (double)(head->slices.count + 1);
    uint64_t slices = 0;
    uint32_t first = 0;

    for (uint32_t r = 0; r < plan->row_count && status == LAC_OK; r++) {
        slices += head->tracks[plan->rows[r]].count;
        if (r + 1 == plan->row_count || plan->options->metric == LAC_FLAME_WAITING ||
            (double)slices >= one * (double)plan->window_slices) {
            status = divide(plan, (struct window){first, r + 1, plan->t0_ns, plan->t1_ns}, slices,
                            reterr);
            first = r + 1;
            slices = 0;
        }
    }
    return status;
}

/* ---- a window ---- */

/** The options of a window. @return false: none of its time counts */
static bool narrow(struct worker *worker, const struct window *window,
                   struct lac_flame_options *ret_options)
{
    const struct plan *plan = worker->plan;
    const struct lac_flame_options *asked = plan->options;
    uint32_t count = 0;

    *ret_options = *asked;
    ret_options->t0_ns = window->t0_ns;
    ret_options->t1_ns = window->t1_ns;
    ret_options->counted_from_ns = window->t0_ns > plan->t0_ns ? window->t0_ns : 0;
    ret_options->is_chosen = worker->is_chosen;
    memset(worker->is_chosen, 0, plan->file->head.track_count);
    for (uint32_t r = window->first; r < window->end; r++) {
        worker->is_chosen[plan->rows[r]] = 1;
    }
    if (asked->span_count == 0) {
        return true;
    }
    ret_options->counted_from_ns = 0; /* where what counts before the window ends */
    for (uint32_t i = 0; i < asked->span_count; i++) {
        struct lac_flame_span span = asked->spans[i];

        if (span.start_ns < window->t0_ns) {
            ret_options->counted_from_ns =
                span.end_ns < window->t0_ns ? span.end_ns : window->t0_ns;
        }
        span.start_ns = span.start_ns > window->t0_ns ? span.start_ns : window->t0_ns;
        span.end_ns = span.end_ns < window->t1_ns ? span.end_ns : window->t1_ns;
        if (span.start_ns < span.end_ns) {
            worker->spans[count++] = span;
        }
    }
    ret_options->spans = worker->spans;
    ret_options->span_count = count;
    if (count > 0) {
        ret_options->t0_ns = worker->spans[0].start_ns;
        ret_options->t1_ns = worker->spans[count - 1].end_ns;
    }
    return count > 0;
}

/** Add a window as one part. @return LAC_ERR_LIMIT: it is larger than that */
static enum lac_status take_at_once(struct worker *worker, const struct window *window,
                                    uint64_t slices_max)
{
    struct lac_flame_options options;
    struct lac_flame_part part = {0};
    enum lac_status status;

    if (!narrow(worker, window, &options)) {
        return LAC_OK;
    }
    status = lac_flame_part_below(worker->plan->file, &options, slices_max, &worker->room, &part,
                                  &worker->error);
    if (status == LAC_OK) {
        options.whole = &part.whole;
        status = lac_flame_sum_add(worker->sum, part.model, &options);
        lac_trace_flame_part_done(&part);
    }
    return status;
}

static enum lac_status take_window(struct worker *worker, struct window window)
{
    const struct plan *plan = worker->plan;
    const uint64_t allowed = lac_flame_part_slices_max(plan->file);
    const uint64_t most = plan->window_slices * PART_ROOM;
    struct window halves[HALVINGS_MAX + 1];
    uint32_t count = 1;
    enum lac_status status = LAC_OK;

    halves[0] = window;
    while (count > 0 && status == LAC_OK) { /* the earliest of them is on top */
        struct window *top = &halves[count - 1];
        const bool is_last = count == HALVINGS_MAX + 1;
        int64_t from_ns = 0;
        int64_t to_ns = 0;
        int64_t edge_ns;

        status = take_at_once(worker, top, is_last || most > allowed ? allowed : most);
        if (status != LAC_ERR_LIMIT || is_last) {
            count--;
            continue;
        }
        span_of(plan, top, &from_ns, &to_ns);
        edge_ns = from_ns + (to_ns - from_ns) / 2;
        status = move_edge(plan, top->first, top->t0_ns, &edge_ns, &worker->error);
        if (status == LAC_OK && edge_ns > top->t0_ns && edge_ns < top->t1_ns) {
            halves[count] = *top;
            halves[count].t1_ns = edge_ns;
            top->t0_ns = edge_ns;
            count++;
        } else if (status == LAC_OK) {
            status = take_at_once(worker, top, allowed);
            count--;
        }
    }
    return status;
}

static void work(void *context, uint32_t which)
{
    struct worker *worker = (struct worker *)context + which;
    struct plan *plan = worker->plan;
    const struct lac_flame_options *asked = plan->options;

    worker->is_chosen = malloc((size_t)plan->file->head.track_count + 1);
    worker->spans = malloc(((size_t)asked->span_count + 1) * sizeof(*worker->spans));
    worker->status = worker->is_chosen != NULL && worker->spans != NULL
                         ? lac_flame_sum_create(&worker->sum)
                         : LAC_ERR_NOMEM;
    while (worker->status == LAC_OK && !atomic_load(&plan->has_failed)) {
        const uint32_t next = atomic_fetch_add(&plan->next, 1);

        if (next >= plan->count) {
            break;
        }
        worker->status = take_window(worker, plan->windows[next]);
    }
    if (worker->status != LAC_OK) {
        atomic_store(&plan->has_failed, true);
    }
    lac_flame_room_done(&worker->room);
    free(worker->is_chosen);
    free(worker->spans);
}

/* ---- the graph ---- */

/** Of the first worker's sum, which takes those of the others in. Steps are counted by a part that
 *  holds nothing else. */
static enum lac_status finish(const struct plan *plan, struct worker *workers, uint32_t count,
                              struct lac_flame **ret_flame, struct lac_error *reterr)
{
    struct lac_flame_options options = *plan->options;
    struct lac_flame_part part = {0};
    enum lac_status status = LAC_OK;
    uint8_t *nothing = calloc((size_t)plan->file->head.track_count + 1, 1);

    for (uint32_t w = 1; w < count && status == LAC_OK; w++) {
        status = lac_flame_sum_merge(workers[0].sum, workers[w].sum);
    }
    if (status == LAC_OK && nothing != NULL) {
        options.t0_ns = plan->t0_ns;
        options.t1_ns = plan->t0_ns + 1;
        options.is_chosen = nothing;
        status = lac_trace_flame_part(plan->file, &options, &part, reterr);
    }
    if (status == LAC_OK && nothing != NULL) {
        options = *plan->options;
        options.whole = &part.whole;
        status = lac_flame_sum_finish(workers[0].sum, part.model, &options, ret_flame);
    }
    lac_trace_flame_part_done(&part);
    free(nothing);
    return nothing != NULL ? status : LAC_ERR_NOMEM;
}

enum lac_status lac_flame_in_windows(struct lac_trace_file *file,
                                     const struct lac_flame_options *options,
                                     uint64_t window_slices, struct lac_flame **ret_flame,
                                     struct lac_error *reterr)
{
    assert(file != NULL && options != NULL && ret_flame != NULL && window_slices > 0);
    assert(options->metric != LAC_FLAME_PROFILE && options->metric != LAC_FLAME_MEMORY &&
           options->order == LAC_FLAME_ORDER_VALUE);
    const bool is_whole = options->t1_ns <= options->t0_ns;
    const unsigned helpers = lac_crew_size(file->crew);
    const uint32_t threads = helpers < THREADS_MAX ? helpers + 1 : THREADS_MAX;
    struct plan plan = {.file = file,
                        .options = options,
                        .t0_ns = is_whole ? 0 : options->t0_ns,
                        .t1_ns = is_whole ? LAC_TIME_MAX_NS + 1 : options->t1_ns,
                        .window_slices = window_slices,
                        .is_sampled = options->by == LAC_FLAME_BY_PYTHON &&
                                      lac_flame_is_sampled(&file->head)};
    struct worker workers[THREADS_MAX];
    enum lac_status status = make_plan(&plan, reterr);

    memset(workers, 0, sizeof(workers));
    for (uint32_t w = 0; w < threads; w++) {
        workers[w].plan = &plan;
    }
    if (status == LAC_OK) {
        lac_crew_run(file->crew, threads, work, workers);
    }
    for (uint32_t w = 0; w < threads && status == LAC_OK; w++) {
        status = workers[w].status;
        if (status != LAC_OK && reterr != NULL && workers[w].error.status == status) {
            *reterr = workers[w].error;
        }
    }
    if (status == LAC_OK) {
        status = finish(&plan, workers, threads, ret_flame, reterr);
    }
    for (uint32_t w = 0; w < threads; w++) {
        lac_flame_sum_destroy(workers[w].sum);
    }
    free(plan.windows);
    free(plan.rows);
    return status;
}
