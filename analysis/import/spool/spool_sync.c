#include "analysis/import/spool/spool_sync.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/text/number_args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Beyond these, waits are put without what they wait for. */
enum { WAITS_MAX = 1 << 18, EVENTS_MAX = 1 << 20 };

struct recorded_event {
    uint32_t context;
    uint32_t event;
    uint32_t correlation;
    uint32_t stream;
};

struct lac_spool_syncs {
    struct lac_spool_sync *waits;
    size_t wait_count;
    size_t wait_capacity;
    struct recorded_event *events;
    size_t event_count;
    size_t event_capacity;
    uint64_t events_lost;
    uint64_t waits_lost;
};

void lac_spool_sync_destroy(struct lac_spool_syncs *syncs)
{
    if (syncs != NULL) {
        free(syncs->waits);
        free(syncs->events);
        free(syncs);
    }
}

static struct lac_spool_syncs *syncs_of(struct lac_spool_process *process)
{
    if (process->syncs == NULL) {
        process->syncs = calloc(1, sizeof(*process->syncs));
    }
    return process->syncs;
}

static enum lac_status put(struct lac_spool_process *process, struct lac_spool_sync *sync,
                           const struct recorded_event *waits_for)
{
    struct lac_number_args arguments = {.used = 0};
    enum lac_status status;

    if (sync->stream != UINT32_MAX) {
        lac_number_args_add(&arguments, "stream", sync->stream);
    }
    if (waits_for != NULL) {
        lac_number_args_add(&arguments, "wait_on_stream", waits_for->stream);
        lac_number_args_add(&arguments, "wait_on_cuda_event_record_corr_id",
                            lac_spool_corr(process, waits_for->correlation));
        lac_number_args_add(&arguments, "wait_on_cuda_event_id", sync->event);
    }
    sync->slice.corr = lac_spool_corr(process, (uint32_t)sync->slice.corr);
    status = lac_number_args_store(&arguments, process->builder, &sync->slice);
    return status == LAC_OK ? lac_builder_slice(process->builder, &sync->slice) : status;
}

enum lac_status lac_spool_sync_add(struct lac_spool_process *process,
                                   const struct lac_spool_sync *sync)
{
    struct lac_spool_syncs *const syncs = syncs_of(process);
    struct lac_spool_sync now = *sync;

    if (syncs == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (!sync->has_event || syncs->wait_count == WAITS_MAX) {
        syncs->waits_lost += sync->has_event;
        return put(process, &now, NULL);
    }
    if (!LAC_RESERVE(syncs->waits, syncs->wait_capacity, syncs->wait_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    syncs->waits[syncs->wait_count++] = *sync;
    return LAC_OK;
}

enum lac_status lac_spool_sync_event(struct lac_spool_process *process,
                                     const struct lac_gpu_call *event)
{
    struct lac_spool_syncs *const syncs = syncs_of(process);

    if (syncs == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (syncs->event_count == EVENTS_MAX) {
        syncs->events_lost++;
        return LAC_OK;
    }
    if (!LAC_RESERVE(syncs->events, syncs->event_capacity, syncs->event_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    syncs->events[syncs->event_count++] =
        (struct recorded_event){.context = event->head.context,
                                .event = event->number,
                                .correlation = event->head.correlation,
                                .stream = event->head.stream};
    return LAC_OK;
}

static int compare(const struct recorded_event *a, const struct recorded_event *b)
{
    int order = LAC_ORDER(a->context, b->context);
    order = order != 0 ? order : LAC_ORDER(a->event, b->event);
    return order != 0 ? order : LAC_ORDER(a->correlation, b->correlation);
}

static int by_event(const void *left, const void *right)
{
    return compare(left, right);
}

/* The last record of the event before the wait was called: correlations count calls. */
static const struct recorded_event *find_record(const struct lac_spool_syncs *syncs,
                                                const struct lac_spool_sync *wait)
{
    const struct recorded_event wanted = {
        .context = wait->context, .event = wait->event, .correlation = (uint32_t)wait->slice.corr};
    size_t low = 0;

    /* the first that is not before the wait */
    LAC_BISECT(low, syncs->event_count, middle, compare(&syncs->events[middle], &wanted) < 0);
    return low > 0 && syncs->events[low - 1].context == wait->context &&
                   syncs->events[low - 1].event == wait->event
               ? &syncs->events[low - 1]
               : NULL;
}

enum lac_status lac_spool_sync_finish(struct lac_spool_process *process)
{
    struct lac_spool_syncs *const syncs = process->syncs;
    struct lac_model *const model = lac_builder_model(process->builder);
    enum lac_status status = LAC_OK;

    if (syncs == NULL) {
        return LAC_OK;
    }
    if (syncs->event_count > 0) {
        qsort(syncs->events, syncs->event_count, sizeof(*syncs->events), by_event);
    }
    if (syncs->events_lost > 0) { /* the last one that is there may not be the right one */
        syncs->waits_lost += syncs->wait_count;
    }
    for (size_t i = 0; i < syncs->wait_count && status == LAC_OK; i++) {
        status = put(process, &syncs->waits[i],
                     syncs->events_lost == 0 ? find_record(syncs, &syncs->waits[i]) : NULL);
    }
    if (syncs->events_lost > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "cuda_events_left_out", syncs->events_lost, 0,
                         "more records of CUDA events than are kept");
    }
    if (syncs->waits_lost > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "waits_not_resolved", syncs->waits_lost, 0,
                         "more waits or CUDA events than are kept: what these waits wait for is "
                         "unknown");
    }
    lac_spool_sync_destroy(syncs);
    process->syncs = NULL;
    return status;
}
