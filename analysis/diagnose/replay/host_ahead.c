/*
 * A host that runs ahead of the device through the steps that are kept: it launches a step in less
 * time than the device takes for it, and the queue never fills, or only in steps that are left out.
 * Then the marks say how fast the host launches, and the device how long a step takes.
 */

#include "analysis/diagnose/replay/what_if_replay.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/** Kept steps in a row, and when the device computed what was launched in them. */
struct row {
    int64_t from_ns, to_ns;
    int64_t first_ns, last_ns;
};

/** The rows; what is left out between them (an evaluation, a checkpoint) may empty the queue. */
static struct row *find_rows(const struct lac_analysis *analysis, uint32_t *ret_count)
{
    struct row *rows = malloc((analysis->step_count ? analysis->step_count : 1) * sizeof *rows);
    uint32_t count = 0;
    bool is_in_row = false;
    for (uint32_t s = 0; s < analysis->step_count && rows; s++) {
        const struct lac_step *step = &analysis->steps[s];
        bool is_kept = step->left_out == LAC_STEP_KEPT;
        if (is_kept && !is_in_row) {
            rows[count++] = (struct row){step->start_ns, 0, INT64_MAX, INT64_MIN};
        }
        if (is_kept) {
            rows[count - 1].to_ns = step->start_ns + step->dur_ns;
        }
        is_in_row = is_kept;
    }
    *ret_count = count;
    return rows;
}

static struct row *row_at(struct row *rows, uint32_t count, int64_t t_ns)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows[middle].from_ns <= t_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && t_ns < rows[low - 1].to_ns ? &rows[low - 1] : NULL;
}

static void add_track(const struct lac_facts *facts, const struct lac_track *track,
                      struct row *rows, uint32_t count)
{
    const struct lac_slices *slices = &facts->model->slices;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        /* copies ahead and collectives keep their own pace */
        if (slices->kind[i] != LAC_SLICE_KERNEL || slices->link[i] == LAC_NONE ||
            lac_kernel_class_of(facts, i)->is_comm) {
            continue;
        }
        struct row *row = row_at(rows, count, slices->start_ns[slices->link[i]]);
        if (row) {
            int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
            row->first_ns =
                slices->start_ns[i] < row->first_ns ? slices->start_ns[i] : row->first_ns;
            row->last_ns = end_ns > row->last_ns ? end_ns : row->last_ns;
        }
    }
}

static int by_first(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

/** How much longer the device computed what was launched between the marks than they are apart.
 *  Rows without a kernel count as they are; what two rows computed at the same time counts once. */
static double lag_ratio(const struct lac_facts *facts, struct row *rows, uint32_t count)
{
    const struct lac_model *model = facts->model;
    int64_t device = facts->analysis->devices[facts->analysis->main_device].id;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        bool is_its =
            facts->track_flags[t] & LAC_TRACK_HAS_GPU && model->tracks[t].device == device;
        if (is_its) {
            add_track(facts, &model->tracks[t], rows, count);
        }
    }
    double apart_ns = 0.0;
    double computed_ns = 0.0;
    bool has_computed = false;
    for (uint32_t r = 0; r < count; r++) {
        double row_ns = (double)(rows[r].to_ns - rows[r].from_ns);
        bool is_empty = rows[r].last_ns <= rows[r].first_ns;
        apart_ns += row_ns;
        computed_ns += is_empty ? row_ns : 0.0;
        has_computed = has_computed || !is_empty;
    }
    if (!has_computed) {
        return 0.0;
    }
    qsort(rows, count, sizeof *rows,
          by_first); /* by the host no more: rows without a kernel last */
    int64_t done_ns = INT64_MIN;
    for (uint32_t r = 0; r < count && rows[r].last_ns > rows[r].first_ns; r++) {
        int64_t from_ns = rows[r].first_ns > done_ns ? rows[r].first_ns : done_ns;
        computed_ns += rows[r].last_ns > from_ns ? (double)(rows[r].last_ns - from_ns) : 0.0;
        done_ns = rows[r].last_ns > done_ns ? rows[r].last_ns : done_ns;
    }
    return apart_ns > 0.0 ? computed_ns / apart_ns : 0.0;
}

static int64_t scaled_ns(int64_t ns, double ratio)
{
    return ns == LAC_UNKNOWN_NS ? ns : lac_round((double)ns * ratio);
}

enum lac_status lac_host_ahead_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    bool can_tell = facts->time && facts->has_api && !facts->has_device_steps &&
                    analysis->main_device != LAC_NONE;
    if (!can_tell) {
        return LAC_OK;
    }
    uint32_t count = 0;
    struct row *rows = find_rows(analysis, &count);
    if (!rows) {
        return LAC_ERR_NOMEM;
    }
    /* no step takes longer than the recording */
    double ratio = fmin(lag_ratio(facts, rows, count),
                        (double)analysis->duration_ns / (double)analysis->step_mean_ns);
    free(rows);
    if (ratio < HOST_AHEAD_MIN) {
        return LAC_OK;
    }
    analysis->step_device_ns = scaled_ns(analysis->step_mean_ns, ratio);
    /* summed between the marks, where only a part of each step's work was done */
    struct lac_needs *needs = &analysis->needs;
    needs->gpu_ns = scaled_ns(needs->gpu_ns, ratio);
    needs->copies_ns = LAC_UNKNOWN_NS; /* ahead of them or in line, that is not known here */
    needs->comm_ns = scaled_ns(needs->comm_ns, ratio);
    analysis->throughput_per_s /= ratio;
    return LAC_OK;
}
