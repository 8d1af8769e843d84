/*
 * The batches that the training process took, and what each took the loader: the recorded fetch,
 * or, where fetches were not recorded, how long after the one before it was there (a pace).
 */

#include "analysis/diagnose/replay/graph_build.h"
#include "analysis/model/grow.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { WAITED_MIN_NS = 200000 }; /* a shorter wait only took the batch over */

/** The fetch of a batch, or NULL. */
static const struct lac_fetch *fetch_of(const struct lac_fetch *ordered, uint64_t count,
                                        int64_t batch)
{
    uint64_t low = 0;
    LAC_BISECT(low, count, middle, ordered[middle].batch < batch);
    return low < count && ordered[low].batch == batch && batch >= 0 ? &ordered[low] : NULL;
}

static int64_t batch_of(const struct lac_model *model, uint32_t slice)
{
    uint32_t row = model->slices.detail[slice];
    bool is_range = model->slices.kind[slice] == LAC_SLICE_RANGE;
    return is_range && row < model->loader_info_count ? model->loader_infos[row].batch : -1;
}

static void find_fetches(struct lac_graph_builder *builder, const struct lac_fetch *ordered,
                         uint64_t count)
{
    struct lac_graph *graph = builder->graph;
    const struct lac_loader_facts *loader = &builder->facts->analysis->loader;
    bool is_own = loader->num_workers == 0 && loader->is_fetch_from_wait;
    for (uint32_t c = builder->api_count; c < builder->call_count; c++) {
        const struct lac_graph_call *wait = &builder->calls[c];
        struct lac_graph_batch *batch = &graph->batches[wait->batch];
        int64_t number = batch_of(builder->facts->model, wait->slice);
        const struct lac_fetch *fetch = fetch_of(ordered, count, number);
        batch->begin_node = wait->begin_node;
        batch->taken_node = wait->end_node;
        batch->ready_ns = (double)NAN;
        /* made in the training process it took what was waited for it, a validation's as well */
        batch->fetch_ns = loader->fetch_mean_ns != LAC_UNKNOWN_NS && !is_own
                              ? (double)loader->fetch_mean_ns
                              : (double)(wait->end_ns - wait->start_ns);
        if (fetch != NULL) {
            batch->fetch_ns = (double)fetch->dur_ns;
            batch->ready_ns = (double)(fetch->start_ns + fetch->dur_ns - graph->start_ns);
        }
    }
    graph->has_fetches = count > 0;
}

/** Where one thread pins the batches of all workers, a batch is there when that one has done with it. */
static enum lac_status find_pinned(struct lac_graph_builder *builder)
{
    const struct lac_facts *facts = builder->facts;
    const struct lac_model *model = facts->model;
    const struct lac_marks *parts = &facts->loader_parts;
    struct lac_graph *graph = builder->graph;
    struct lac_fetch *pinned = NULL;
    uint64_t capacity = 0;
    uint64_t count = 0;
    graph->pin_ns = fmax(0.0, (double)facts->analysis->loader.pin_mean_ns);
    for (uint64_t i = 0; i < parts->count && graph->pin_ns > 0.0; i++) {
        const struct lac_mark *part = &parts->at[i];
        if (!lac_part_is_pin(facts, part)) {
            continue;
        }
        if (LAC_GROW(pinned, &capacity, count + 1) != LAC_OK) {
            free(pinned);
            return LAC_ERR_NOMEM;
        }
        pinned[count++] = (struct lac_fetch){.start_ns = part->start_ns,
                                             .dur_ns = part->dur_ns,
                                             .batch = batch_of(model, part->slice),
                                             .slice = part->slice};
    }
    if (count > 1) {
        qsort(pinned, count, sizeof(*pinned), lac_fetch_by_batch);
    }
    for (uint32_t c = builder->api_count; c < builder->call_count && count > 0; c++) {
        const struct lac_graph_call *wait = &builder->calls[c];
        const struct lac_fetch *pin = fetch_of(pinned, count, batch_of(model, wait->slice));
        if (pin != NULL) {
            graph->batches[wait->batch].ready_ns =
                (double)(pin->start_ns + pin->dur_ns - graph->start_ns);
        }
    }
    free(pinned);
    return LAC_OK;
}

static bool has_waited(const struct lac_graph *graph, const struct lac_graph_batch *batch)
{
    int64_t begin_ns = graph->nodes[batch->begin_node].at_ns;
    int64_t taken_ns = graph->nodes[batch->taken_node].at_ns;
    return isnan(batch->ready_ns) ? taken_ns - begin_ns >= WAITED_MIN_NS
                                  : batch->ready_ns > (double)begin_ns;
}

/** From the end of a fetch to the training process, and what taking a batch that is there takes. */
static enum lac_status measure_hand_over(struct lac_graph *graph)
{
    double *values = malloc(2 * (size_t)graph->batch_count * sizeof(*values));
    if (values == NULL) {
        return LAC_ERR_NOMEM;
    }
    double *takes = values + graph->batch_count;
    uint32_t handed = 0;
    uint32_t taken = 0;
    for (uint32_t b = 0; b < graph->batch_count; b++) {
        const struct lac_graph_batch *batch = &graph->batches[b];
        double at_ns = (double)graph->nodes[batch->taken_node].at_ns;
        double begin_ns = (double)graph->nodes[batch->begin_node].at_ns;
        if (!has_waited(graph, batch)) {
            takes[taken++] = at_ns - begin_ns;
        } else if (!isnan(batch->ready_ns)) {
            values[handed++] = fmax(0.0, at_ns - batch->ready_ns);
        }
    }
    graph->take_ns = lac_graph_median(takes, taken, 100000.0);
    graph->hand_over_ns = lac_graph_median(values, handed, 100000.0);
    free(values);
    return LAC_OK;
}

/** When a batch was asked for: when the one so many before it was taken, in a cycle. */
static double asked_ns(const struct lac_graph *graph, uint32_t batch)
{
    int64_t makers = graph->workers > 0 ? graph->workers : 2;
    int64_t at = (int64_t)batch - makers * graph->prefetch_factor;
    double rounds = 0.0;
    if (at < 0) {
        int64_t before = (-at + graph->batch_count - 1) / graph->batch_count;
        at += before * graph->batch_count;
        rounds = (double)before;
    }
    return (double)graph->nodes[graph->batches[at].taken_node].at_ns -
           rounds * (double)(graph->end_ns - graph->start_ns);
}

/** Without fetches: how long after the batch before it, or after it was asked for, each one was
 *  there. The window is a cycle: the first follows the last. */
static void measure_pace(struct lac_graph *graph)
{
    double ready_ns = -1e300;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < graph->batch_count; b++) {
            struct lac_graph_batch *batch = &graph->batches[b];
            double from_ns = fmax(ready_ns, asked_ns(graph, b));
            double taken_ns = (double)graph->nodes[batch->taken_node].at_ns;
            bool was_late = has_waited(graph, batch);
            ready_ns = was_late ? fmax(from_ns, taken_ns - graph->take_ns) : from_ns;
            batch->fetch_ns = ready_ns - from_ns;
        }
        ready_ns -= (double)(graph->end_ns - graph->start_ns);
    }
}

enum lac_status lac_graph_loader(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    const struct lac_facts *facts = builder->facts;
    int64_t ahead =
        lac_setting_count(facts, "settings", "prefetch_factor", LAC_PREFETCH_FACTOR_MAX);
    graph->prefetch_factor = ahead > 0 ? (uint32_t)ahead : LAC_PREFETCH_FACTOR;
    graph->workers = facts->analysis->loader.num_workers;
    graph->batches = calloc((size_t)graph->batch_count + 1, sizeof(*graph->batches));
    struct lac_fetch *ordered = malloc(((size_t)facts->fetch_count + 1) * sizeof(*ordered));
    enum lac_status status = graph->batches != NULL && ordered != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        for (uint64_t i = 0; i < facts->fetch_count; i++) {
            ordered[i] = facts->fetches[i];
        }
        if (facts->fetch_count > 1) {
            qsort(ordered, facts->fetch_count, sizeof(*ordered), lac_fetch_by_batch);
        }
        find_fetches(builder, ordered, facts->fetch_count);
        status = find_pinned(builder);
    }
    if (!status && graph->batch_count > 0) {
        status = measure_hand_over(graph);
    }
    free(ordered);
    /* waits that the device hardly felt are for handing over, not for the loader's pace */
    bool is_limit = facts->time != NULL && facts->time->is_starving;
    if (!status && !graph->has_fetches && graph->workers != 0) {
        const int64_t fetch_ns = facts->analysis->loader.fetch_mean_ns;
        graph->own_fetch_ns = fetch_ns != LAC_UNKNOWN_NS ? (double)fetch_ns : 0.0;
    }
    if (!status && !graph->has_fetches && graph->workers != 0 && is_limit) {
        measure_pace(graph);
    }
    return status;
}
