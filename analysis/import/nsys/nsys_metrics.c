/* Counters of an Nsight Systems export: what `--gpu-metrics-devices` sampled. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TYPE, METRIC, NAME };

/* The low byte of a type is the GPU; 16 bits are left for its metrics. */
static uint64_t key_of(int64_t type, uint32_t metric)
{
    return (uint64_t)type << 16 | (metric & 0xffff);
}

static enum lac_status on_name(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    int64_t type;
    uint32_t name = 0;
    uint32_t process = 0;
    uint32_t track = 0;
    if (!lac_nsys_rows_integer(rows, TYPE, &type)) {
        return LAC_OK;
    }
    uint32_t *entry =
        lac_nsys_map_at(&nsys->metric_of, key_of(type, lac_nsys_rows_u32(rows, METRIC, 0)));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    *entry = 0;
    const int64_t gpu = type & 0xff;
    enum lac_status status = lac_nsys_column_name(nsys, rows, NAME, NAME, &name);
    if (status == LAC_OK) { /* interning may move the texts */
        char copy[160];
        (void)snprintf(copy, sizeof(copy), "%s", lac_model_str(nsys->model, name));
        status = lac_nsys_intern_own(nsys, &name, "GPU %" PRId64 ": %s", gpu, copy);
    }
    uint32_t group = 0;
    if (status == LAC_OK) {
        status = lac_nsys_intern_own(nsys, &group, "GPU metrics");
    }
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_process(nsys->builder, group, -1, &process));
    }
    if (status == LAC_OK) {
        status = lac_nsys_pass(
            nsys, lac_builder_track(nsys->builder, LAC_TRACK_COUNTER, process, name, -1, &track));
    }
    if (status == LAC_OK && nsys->model->track_count > nsys->limits->track_count_max) {
        status =
            lac_fail(nsys->reterr, LAC_ERR_LIMIT, 0, "more than %u tracks (limit track_count_max)",
                     nsys->limits->track_count_max);
    }
    if (status == LAC_OK) {
        lac_builder_process_at(nsys->builder, process)->name = group;
        lac_builder_track_at(nsys->builder, track)->name = name;
        lac_builder_track_at(nsys->builder, track)->device = gpu;
        *entry = track + 1;
    }
    return status;
}

static enum lac_status on_sample(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { TIME, SAMPLE_TYPE, SAMPLE_METRIC, VALUE };
    int64_t time_ns;
    int64_t type;
    double value;
    if (!lac_nsys_rows_integer(rows, TIME, &time_ns) || !lac_nsys_is_time(time_ns) ||
        !lac_nsys_rows_integer(rows, SAMPLE_TYPE, &type) ||
        !lac_nsys_rows_real(rows, VALUE, &value)) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return LAC_OK;
    }
    const uint32_t entry =
        lac_nsys_map_get(&nsys->metric_of, key_of(type, lac_nsys_rows_u32(rows, SAMPLE_METRIC, 0)));
    if (entry == LAC_NONE || entry == 0) {
        return LAC_OK; /* a metric that the file does not name */
    }
    return lac_nsys_pass(nsys, lac_builder_sample(nsys->builder, entry - 1, time_ns, value));
}

enum lac_status lac_nsys_read_metrics(struct lac_nsys *nsys)
{
    static const char *const NAMES[] = {"typeId", "metricId", "metricName", NULL};
    static const char *const SAMPLES[] = {"timestamp", "typeId", "metricId", "value", NULL};
    enum lac_status status = lac_nsys_each(nsys, "TARGET_INFO_GPU_METRICS", NAMES, false, on_name);
    return status == LAC_OK ? lac_nsys_each(nsys, "GPU_METRICS", SAMPLES, true, on_sample) : status;
}
