#include "analysis/import/spool/spool_metrics.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/text/training_result.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/utf8.h"
#include "lacuna/spool.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lac_spool_metrics {
    struct metric {
        uint32_t name; /**< string id */
        uint32_t track;
        struct lac_result result;
    } at[LAC_SPOOL_METRICS_MAX];
    uint32_t count;
};

static struct lac_strings *strings_of(struct lac_spool_process *process)
{
    return &lac_builder_model(process->builder)->strings;
}

/** Of that name; NULL: there are too many. */
static enum lac_status find(struct lac_spool_process *process, uint32_t name,
                            struct metric **ret_metric)
{
    struct lac_spool_metrics *metrics = process->metrics;
    struct metric *metric;
    enum lac_status status;

    *ret_metric = NULL;
    if (metrics == NULL) {
        metrics = process->metrics = calloc(1, sizeof(*metrics));
        if (metrics == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    for (uint32_t i = 0; i < metrics->count; i++) {
        if (metrics->at[i].name == name) {
            *ret_metric = &metrics->at[i];
            return LAC_OK;
        }
    }
    if (metrics->count == LAC_SPOOL_METRICS_MAX) {
        return LAC_OK;
    }
    metric = &metrics->at[metrics->count];
    *metric = (struct metric){.name = name};
    status = lac_builder_track(process->builder, LAC_TRACK_COUNTER, process->process, name, -1,
                               &metric->track);
    if (status == LAC_OK) {
        lac_builder_track_at(process->builder, metric->track)->name = name;
        metrics->count++;
        *ret_metric = metric;
    }
    return status;
}

enum lac_status lac_spool_metric(struct lac_spool_process *process, const struct lac_event *event,
                                 const struct lac_event *next, int64_t now_ns)
{
    const uint32_t name = lac_spool_name_of(process, event->name);
    struct metric *metric;
    double value;
    enum lac_status status;

    if (next == NULL || next->type != LAC_EVENT_METRIC_VALUE || name == 0) {
        process->unknown_events++;
        return LAC_OK;
    }
    memcpy(&value, &next->ts, sizeof(value));
    if (!isfinite(value)) {
        return LAC_OK; /* of a training that has diverged: the values before say enough */
    }
    status = find(process, name, &metric);
    if (status != LAC_OK || metric == NULL) {
        process->unknown_events += metric == NULL;
        return status;
    }
    lac_result_add(&metric->result, now_ns, value);
    lac_builder_model(process->builder)->info.event_count++;
    return lac_builder_sample(process->builder, metric->track, now_ns, value);
}

enum lac_status lac_spool_metrics_close(struct lac_spool_process *process, enum lac_status status)
{
    struct lac_spool_metrics *const metrics = process->metrics;

    for (uint32_t i = 0; metrics != NULL && i < metrics->count && status == LAC_OK; i++) {
        const struct metric *metric = &metrics->at[i];
        const char *const name = lac_strings_get(strings_of(process), metric->name);
        char told[LAC_RESULT_TEXT_BYTES];
        char text[256];
        uint32_t id = 0;

        (void)lac_result_text(&metric->result, name, told);
        const int length = snprintf(text, sizeof(text), "host.metric.%.*s=%s",
                                    (int)lac_utf8_cut(name, strlen(name), 120), name, told);

        if (metric->result.count == 0 || strchr(name, '=') != NULL) {
            continue;
        }
        status = lac_spool_intern(strings_of(process), text, (size_t)length, &id);
        if (status == LAC_OK) {
            lac_spool_settings_add(process->settings, strings_of(process), id);
        }
    }
    free(metrics);
    process->metrics = NULL;
    return status;
}
