#include "analysis/diagnose/facts/gpu_memory.h"

#include "analysis/model/setting_rows.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 2000000 }; /* steps repeat: this many allocations show the peak */

/** Peak and floor of what is allocated on the device, of one row of allocations. */
static void measure_row(const struct lac_facts *facts, uint32_t track, int64_t device,
                        struct lac_gpu_memory_use *memory)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_spans *kept = &facts->kept;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    uint64_t cursor = 0;
    uint64_t seen = 0;
    for (uint64_t i = lac_model_lower_bound(model, track, kept->at[0].start_ns);
         i < end && seen < EVENTS_MAX; i++, seen++) {
        if (slices->kind[i] != LAC_SLICE_ALLOC || slices->detail[i] >= model->alloc_count) {
            continue;
        }
        const struct lac_alloc *alloc = &model->allocs[slices->detail[i]];
        while (cursor < kept->count && kept->at[cursor].end_ns <= slices->start_ns[i]) {
            cursor++;
        }
        if (cursor == kept->count) {
            return;
        }
        if (alloc->device != device || alloc->total_allocated < 0 ||
            kept->at[cursor].start_ns > slices->start_ns[i]) {
            continue;
        }
        if (alloc->total_allocated > memory->peak) {
            memory->peak = alloc->total_allocated;
            memory->peak_slice = (uint32_t)i;
        }
        if (memory->floor < 0 || alloc->total_allocated < memory->floor) {
            memory->floor = alloc->total_allocated;
        }
    }
}

void lac_gpu_memory_measure(const struct lac_facts *facts, struct lac_gpu_memory_use *ret_memory)
{
    enum { MEGABYTE = 1000000 }; /* the sampler's unit */
    *ret_memory = (struct lac_gpu_memory_use){
        .device = -1, .peak = -1, .floor = -1, .used = -1, .peak_slice = LAC_NONE};
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_spans *kept = &facts->kept;
    if (analysis->main_device == LAC_NONE || kept->count == 0) {
        return;
    }
    const struct lac_device *device = lac_main_device(facts);
    int64_t id = analysis->devices[analysis->main_device].id;
    if (device != NULL && device->memory_bytes > 0) {
        ret_memory->device = device->memory_bytes;
    }
    for (uint32_t t = 0; t < facts->model->recorded_track_count; t++) {
        if (facts->model->tracks[t].kind == LAC_TRACK_MARKS) {
            measure_row(facts, t, id, ret_memory);
        }
    }
    int64_t end_ns = kept->at[kept->count - 1].end_ns;
    struct lac_gpu_series used;
    if (lac_gpu_series_find(facts, "memory used (MB)", &used)) {
        double most = lac_gpu_series_max(&used, kept->at[0].start_ns, end_ns);
        ret_memory->used = most >= 0.0 && most < 1e9 ? lac_round(most * MEGABYTE) : -1;
    }
    struct lac_gpu_series total;
    if (ret_memory->device < 0 && lac_gpu_series_find(facts, "memory total (MB)", &total)) {
        double all = lac_gpu_series_max(&total, kept->at[0].start_ns, end_ns);
        ret_memory->device = all > 0.0 && all < 1e9 ? lac_round(all * MEGABYTE) : -1;
    }
}

/* -- samples ----------------------------------------------------------------------------------- */

/** The UUID that this part of the settings has for the device of that number, or NULL. */
static const char *uuid_of(const struct lac_model *model, const char *part, int64_t id)
{
    const struct lac_setting_rows *rows = &model->settings;
    char key[32];
    (void)snprintf(key, sizeof(key), "gpu_uuid.%lld", (long long)id);
    uint32_t root = lac_settings_find(rows, LAC_NONE, part);
    uint32_t row = root == LAC_NONE ? LAC_NONE : lac_settings_find(rows, root, key);
    return row != LAC_NONE && rows->at[row].type == LAC_SETTING_TEXT ? lac_settings_value(rows, row)
                                                                     : NULL;
}

bool lac_gpu_series_find(const struct lac_facts *facts, const char *what,
                         struct lac_gpu_series *ret_series)
{
    const struct lac_model *model = facts->model;
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE) {
        return false;
    }
    int64_t id = analysis->devices[analysis->main_device].id;
    uint32_t found = LAC_NONE;
    uint32_t count = 0;
    bool is_own = false;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const char *name = lac_model_str(model, track->name);
        if (track->kind != LAC_TRACK_COUNTER || strncmp(name, "GPU ", 4) != 0) {
            continue;
        }
        char *end = NULL;
        long long number = strtoll(name + 4, &end, 10);
        if (strncmp(end, ": ", 2) != 0 || strcmp(end + 2, what) != 0 || track->count == 0) {
            continue;
        }
        count++;
        is_own = is_own || number == id;
        found = number == id || found == LAC_NONE ? t : found;
    }
    /* the sampler counts all GPUs of the node, the recording those that the job may use: by UUID they
     * are the same ones, or are not, as a part of a GPU is not the GPU */
    const char *own = uuid_of(model, "settings", id);
    const char *seen = uuid_of(model, "host", id);
    if (own != NULL && uuid_of(model, "host", 0) != NULL) {
        is_own = is_own && seen != NULL && strcmp(own, seen) == 0;
    } else {
        is_own = count == 1 || count == analysis->device_count;
    }
    if (found == LAC_NONE || !is_own) {
        return false;
    }
    *ret_series = (struct lac_gpu_series){.ts_ns = model->sample_ts_ns + model->tracks[found].first,
                                          .value = model->sample_value + model->tracks[found].first,
                                          .count = model->tracks[found].count};
    return true;
}

/** The part of [start, end) in which sample `i` holds. */
static double held_ns(const struct lac_gpu_series *series, uint64_t i, int64_t start_ns,
                      int64_t end_ns)
{
    int64_t from_ns = series->ts_ns[i] > start_ns ? series->ts_ns[i] : start_ns;
    int64_t to_ns =
        i + 1 < series->count && series->ts_ns[i + 1] < end_ns ? series->ts_ns[i + 1] : end_ns;
    return to_ns > from_ns ? (double)(to_ns - from_ns) : 0.0;
}

double lac_gpu_series_mean(const struct lac_gpu_series *series, int64_t start_ns, int64_t end_ns)
{
    double sum = 0.0;
    double length_ns = 0.0;
    for (uint64_t i = 0; i < series->count; i++) {
        double ns = held_ns(series, i, start_ns, end_ns);
        sum += ns * series->value[i];
        length_ns += ns;
    }
    return length_ns > 0.0 ? sum / length_ns : (double)NAN;
}

double lac_gpu_series_max(const struct lac_gpu_series *series, int64_t start_ns, int64_t end_ns)
{
    double most = (double)NAN;
    for (uint64_t i = 0; i < series->count; i++) {
        if (held_ns(series, i, start_ns, end_ns) > 0.0) {
            most = isnan(most) ? series->value[i] : fmax(most, series->value[i]);
        }
    }
    return most;
}

double lac_gpu_series_bits_pct(const struct lac_gpu_series *series, uint64_t bits, int64_t start_ns,
                               int64_t end_ns)
{
    double with_ns = 0.0;
    double length_ns = 0.0;
    for (uint64_t i = 0; i < series->count; i++) {
        double ns = held_ns(series, i, start_ns, end_ns);
        double value = series->value[i];
        bool is_set = value >= 0.0 && value < 9e18 && ((uint64_t)value & bits) != 0;
        with_ns += is_set ? ns : 0.0;
        length_ns += ns;
    }
    return length_ns > 0.0 ? 100.0 * with_ns / length_ns : (double)NAN;
}
