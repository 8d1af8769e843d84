/* The runs of a project in order. */

#include "analysis/diagnose/result/analysis.h"
#include "collector/base/order.h"
#include "server/api/document_cache.h"
#include "server/journal/project_runs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int64_t lac_timed_run_wasted_ns(const struct lac_timed_run *run)
{
    return run->gpu_ns - run->part_ns[LAC_PART_COMPUTE];
}

/** Traces of one run together; of those the lowest rank first. Traces without a run stand alone. */
static int by_run(const void *a, const void *b)
{
    const struct lac_point *x = *(const struct lac_point *const *)a;
    const struct lac_point *y = *(const struct lac_point *const *)b;
    const int order = strcmp(x->run, y->run);

    if (order != 0 || x->run[0] == '\0') {
        return order != 0 ? order : LAC_ORDER(x->seq, y->seq);
    }
    if (x->rank != y->rank) {
        return x->rank < 0 ? 1 : y->rank < 0 ? -1 : LAC_ORDER(x->rank, y->rank);
    }
    return LAC_ORDER(x->seq, y->seq);
}

static int by_time(const void *a, const void *b)
{
    const struct lac_point *x = ((const struct lac_timed_run *)a)->lead;
    const struct lac_point *y = ((const struct lac_timed_run *)b)->lead;
    const int order = LAC_ORDER(x->figures.recorded_unix_ms, y->figures.recorded_unix_ms);

    return order != 0 ? order : LAC_ORDER(x->seq, y->seq);
}

static void add_point(struct lac_timed_run *run, const struct lac_point *point)
{
    run->trace_count++;
    run->gpu_ns += point->figures.gpu_ns;
    for (uint32_t i = 0; i < LAC_TIME_PART_COUNT; i++) {
        run->part_ns[i] += point->figures.part_ns[i];
    }
    if (isfinite(point->figures.energy_j)) {
        run->energy_j = (isfinite(run->energy_j) ? run->energy_j : 0.0) + point->figures.energy_j;
    }
    if (isfinite(point->figures.mfu_pct)) {
        lac_mfu_add(&run->mfu,
                    (struct lac_mfu_sum){point->figures.mfu_pct * (double)point->figures.gpu_ns,
                                         point->figures.gpu_ns});
    }
}

static bool group(struct lac_timeline *timeline)
{
    const struct lac_point_list *points = &timeline->points;
    const struct lac_point **order = malloc(((size_t)points->count + 1) * sizeof(*order));

    timeline->runs = calloc((size_t)points->count + 1, sizeof(*timeline->runs));
    if (order == NULL || timeline->runs == NULL) {
        free(order);
        return false;
    }
    for (uint32_t i = 0; i < points->count; i++) {
        order[i] = &points->points[i];
    }
    if (points->count > 1) {
        qsort(order, points->count, sizeof(*order), by_run);
    }
    for (uint32_t i = 0; i < points->count; i++) {
        if (i == 0 || order[i]->run[0] == '\0' || strcmp(order[i]->run, order[i - 1]->run) != 0) {
            timeline->runs[timeline->count++] =
                (struct lac_timed_run){.lead = order[i], .energy_j = (double)NAN};
        }
        add_point(&timeline->runs[timeline->count - 1], order[i]);
    }
    free(order);
    if (timeline->count > 1) {
        qsort(timeline->runs, timeline->count, sizeof(*timeline->runs), by_time);
    }
    return true;
}

bool lac_timeline_open(struct lac_app *app, const char *project, struct lac_response *response,
                       struct lac_timeline *ret_timeline)
{
    struct lac_error error = {0};
    enum lac_status status;

    *ret_timeline = (struct lac_timeline){0};
    status = lac_store_points(app->store, project, &ret_timeline->points, &error);
    if (status == LAC_OK && ret_timeline->points.missing > 0 && !app->stands_by) {
        lac_document_cache_begin_work(app->documents); /* one at a time: none is measured twice */
        status = lac_journal_make_figures(app, project, LAC_JOURNAL_FIGURES, &error);
        lac_document_cache_end_work(app->documents);
        lac_point_list_done(&ret_timeline->points);
        if (status == LAC_OK) {
            status = lac_store_points(app->store, project, &ret_timeline->points, &error);
        }
    }
    if (status == LAC_ERR_NOMEM || (status == LAC_OK && !group(ret_timeline))) {
        lac_response_error(response, 503, "out_of_memory",
                           "no memory for the runs of this project");
        return false;
    }
    if (status != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    return true;
}

void lac_timeline_close(struct lac_timeline *timeline)
{
    lac_point_list_done(&timeline->points);
    free(timeline->runs);
    *timeline = (struct lac_timeline){0};
}
