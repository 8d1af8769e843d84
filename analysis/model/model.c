#include "analysis/model/model.h"

#include "analysis/model/grow.h"
#include "analysis/model/lanes.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_model_free_columns(struct lac_model *model)
{
    free(model->slices.start_ns);
    free(model->slices.dur_ns);
    free(model->slices.name);
    free(model->slices.corr);
    free(model->slices.link);
    free(model->slices.detail);
    free(model->slices.args);
    free(model->slices.arg_num);
    free(model->slices.lane);
    free(model->slices.kind);
    free(model->kernel_configs);
    free(model->copies);
    free(model->loader_infos);
    free(model->allocs);
    free(model->arg_numbers);
    free(model->sample_ts_ns);
    free(model->sample_value);
    free(model->flows);
    free(model->raw_names);
}

void lac_model_destroy(struct lac_model *model)
{
    if (model == NULL) {
        return;
    }
    lac_settings_done(&model->settings);
    lac_strings_done(&model->strings);
    lac_model_free_columns(model);
    free(model->processes);
    free(model->tracks);
    free(model->devices);
    free(model);
}

/* Recorded tracks below this index have slices, the others samples. */
static uint32_t end_of_slice_tracks(const struct lac_model *model)
{
    uint32_t low = 0;

    LAC_BISECT(low, model->recorded_track_count, middle,
               model->tracks[middle].kind != LAC_TRACK_COUNTER);
    return low;
}

uint32_t lac_model_track_of(const struct lac_model *model, uint64_t slice)
{
    uint32_t low = model->recorded_track_count;
    uint32_t high = model->track_count;

    assert(slice < model->slices.count);
    if (low == high || slice < model->tracks[low].first) {
        low = 0;
        high = end_of_slice_tracks(model);
    }
    while (high - low > 1) { /* the last track that starts at or before the slice */
        uint32_t middle = low + (high - low) / 2;

        if (model->tracks[middle].first <= slice) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t lac_model_graph_modules_of(const struct lac_model *model, uint32_t stream)
{
    static const char BEGIN[] = LAC_GRAPH_MODULES " ";
    const struct lac_track *const of = &model->tracks[stream];

    for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];

        if (track->kind == LAC_TRACK_GPU_RANGE && track->id_text == of->id_text &&
            track->tid == of->tid && track->device == of->device &&
            strncmp(lac_model_str(model, track->name), BEGIN, sizeof(BEGIN) - 1) == 0) {
            return t;
        }
    }
    return LAC_NONE;
}

bool lac_is_module_name(const char *name)
{
    static const char BEGIN[] = "nn.Module: ";

    return strncmp(name, BEGIN, sizeof(BEGIN) - 1) == 0;
}

uint32_t lac_model_thread_of(const struct lac_model *model, uint32_t track)
{
    const struct lac_track *const of = &model->tracks[track];

    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *const thread = &model->tracks[t];

        if (thread->kind == LAC_TRACK_THREAD && thread->process == of->process &&
            thread->id_text == of->id_text) {
            return t;
        }
    }
    return LAC_NONE;
}

uint32_t lac_model_backward_of(const struct lac_model *model, uint32_t thread)
{
    const struct lac_track *const of = &model->tracks[thread];

    for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];

        if (track->kind == LAC_TRACK_BACKWARD && track->process == of->process &&
            track->tid == of->tid && track->id_text == of->id_text) {
            return t;
        }
    }
    return LAC_NONE;
}

uint64_t lac_model_lower_bound(const struct lac_model *model, uint32_t track, int64_t t_ns)
{
    uint64_t low = model->tracks[track].first;

    LAC_BISECT(low, low + model->tracks[track].count, middle,
               model->slices.start_ns[middle] < t_ns);
    return low;
}

uint32_t lac_model_device_index(const struct lac_model *model, int64_t device_id)
{
    assert(model != NULL);
    uint32_t low = 0;

    LAC_BISECT(low, model->device_count, middle, model->devices[middle].id < device_id);
    return low < model->device_count && model->devices[low].id == device_id ? low : LAC_NONE;
}

void lac_model_report(struct lac_model *model, enum lac_report_severity severity, const char *code,
                      uint64_t count, uint64_t offset_bytes, const char *text)
{
    struct lac_report_line *line = NULL;

    if (severity == LAC_REPORT_DROPPED) {
        model->info.dropped_count += count;
    } else if (severity == LAC_REPORT_REPAIRED) {
        model->info.repaired_count += count;
    }
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strncmp(model->report[i].code, code, sizeof(line->code) - 1) == 0) {
            model->report[i].count += count;
            if (offset_bytes < model->report[i].first_offset_bytes) {
                model->report[i].first_offset_bytes = offset_bytes;
            }
            return;
        }
    }
    if (model->report_count == LAC_REPORT_LINES_MAX) {
        line = &model->report[LAC_REPORT_LINES_MAX - 1];
        line->count += count;
        line->severity = severity > line->severity ? severity : line->severity;
        return;
    }
    line = &model->report[model->report_count++];
    if (model->report_count == LAC_REPORT_LINES_MAX) {
        code = "other";
        text = "Further kinds of lines, counted together.";
    }
    line->severity = severity;
    line->count = count;
    line->first_offset_bytes = offset_bytes;
    (void)snprintf(line->code, sizeof(line->code), "%s", code);
    (void)snprintf(line->text, sizeof(line->text), "%s", text);
}

int lac_derived_slice_order(const void *a, const void *b)
{
    const struct lac_derived_slice *x = a;
    const struct lac_derived_slice *y = b;
    int order = LAC_ORDER(x->start_ns, y->start_ns);

    order = order != 0 ? order : LAC_ORDER(y->dur_ns, x->dur_ns);
    return order != 0 ? order : LAC_ORDER(x->link, y->link);
}

static bool derived_are_sorted(const struct lac_derived_slice *slices, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (slices[i].start_ns < 0 || slices[i].dur_ns < 0 ||
            slices[i].start_ns > LAC_TIME_MAX_NS ||
            slices[i].dur_ns > LAC_TIME_MAX_NS - slices[i].start_ns) {
            return false;
        }
        if (i != 0 && (slices[i].start_ns < slices[i - 1].start_ns ||
                       (slices[i].start_ns == slices[i - 1].start_ns &&
                        slices[i].dur_ns > slices[i - 1].dur_ns))) {
            return false;
        }
    }
    return true;
}

/* Room for `count` entries in every column. A column that grew before a failure stays correct. */
static enum lac_status resize_columns(struct lac_slices *slices, uint64_t count)
{
    const struct lac_array_ref columns[] = {
        LAC_ARRAY_REF(slices->start_ns), LAC_ARRAY_REF(slices->dur_ns),
        LAC_ARRAY_REF(slices->name),     LAC_ARRAY_REF(slices->corr),
        LAC_ARRAY_REF(slices->link),     LAC_ARRAY_REF(slices->detail),
        LAC_ARRAY_REF(slices->args),     LAC_ARRAY_REF(slices->arg_num),
        LAC_ARRAY_REF(slices->lane),     LAC_ARRAY_REF(slices->kind),
    };

    for (size_t i = 0; i < LAC_COUNT_OF(columns); i++) {
        void *old;
        void *grown;

        memcpy((void *)&old, columns[i].array, sizeof(old));
        grown = realloc(old, (count + 1) * columns[i].element_bytes);
        (void)lac_huge_pages(grown, (count + 1) * columns[i].element_bytes);
        if (grown == NULL) {
            return LAC_ERR_NOMEM;
        }
        memcpy(columns[i].array, (void *)&grown, sizeof(grown));
    }
    return LAC_OK;
}

enum lac_status lac_model_add_track(struct lac_model *model, const struct lac_track *track,
                                    const struct lac_derived_slice *slices, uint64_t slice_count)
{
    assert(model != NULL && track != NULL);
    assert(slices != NULL || slice_count == 0);
    struct lac_slices *columns = &model->slices;
    uint64_t first = columns->count;
    uint64_t overflow_count = 0;
    struct lac_track *tracks;
    struct lac_track *added;
    struct lac_lane_set set;

    if (!derived_are_sorted(slices, slice_count) || track->kind == LAC_TRACK_COUNTER) {
        return LAC_ERR_MISUSE;
    }
    if (slice_count > LAC_SLICE_COUNT_MAX - first || model->track_count >= LAC_TRACK_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    tracks = realloc(model->tracks, ((size_t)model->track_count + 1) * sizeof(*tracks));
    if (tracks == NULL) {
        return LAC_ERR_NOMEM;
    }
    model->tracks = tracks;
    if (resize_columns(columns, first + slice_count) != LAC_OK ||
        lac_lane_set_init(&set, slice_count) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < slice_count; i++) {
        columns->start_ns[first + i] = slices[i].start_ns;
        columns->dur_ns[first + i] = slices[i].dur_ns;
        columns->name[first + i] = slices[i].name;
        columns->corr[first + i] = 0;
        columns->link[first + i] = slices[i].link;
        columns->detail[first + i] = LAC_NONE;
        columns->args[first + i] = 0;
        columns->arg_num[first + i] = 0;
        columns->kind[first + i] = (uint8_t)slices[i].kind;
    }
    columns->count = first + slice_count;
    added = &model->tracks[model->track_count++];
    *added = *track;
    added->process = track->kind == LAC_TRACK_BACKWARD ? track->process : LAC_NONE;
    added->first = first;
    added->count = slice_count;
    added->lane_count =
        lac_lanes_lay(&set, lac_lanes_are_nested(track->kind), columns->start_ns + first,
                      columns->dur_ns + first, columns->lane + first, slice_count, &overflow_count);
    lac_lane_set_done(&set);
    return LAC_OK;
}

enum lac_status lac_model_add_counter(struct lac_model *model, const struct lac_track *track,
                                      const int64_t *ts_ns, const double *values,
                                      uint64_t sample_count)
{
    assert(model != NULL && track != NULL);
    assert((ts_ns != NULL && values != NULL) || sample_count == 0);
    const uint64_t first = model->sample_count;
    uint64_t ts_capacity = model->sample_capacity;
    uint64_t value_capacity = model->sample_capacity;
    struct lac_track *tracks;

    for (uint64_t i = 0; i < sample_count; i++) {
        if (ts_ns[i] < (i > 0 ? ts_ns[i - 1] : 0) || ts_ns[i] > LAC_TIME_MAX_NS) {
            return LAC_ERR_MISUSE;
        }
    }
    if (model->track_count != model->recorded_track_count ||
        track->process >= model->process_count) {
        return LAC_ERR_MISUSE;
    }
    if (model->track_count >= LAC_TRACK_COUNT_MAX || sample_count > LAC_SLICE_COUNT_MAX - first) {
        return LAC_ERR_LIMIT;
    }
    tracks = realloc(model->tracks, ((size_t)model->track_count + 1) * sizeof(*tracks));
    model->tracks = tracks != NULL ? tracks : model->tracks;
    if (tracks == NULL || !LAC_RESERVE(model->sample_ts_ns, ts_capacity, first, sample_count + 1) ||
        !LAC_RESERVE(model->sample_value, value_capacity, first, sample_count + 1)) {
        return LAC_ERR_NOMEM;
    }
    model->sample_capacity = ts_capacity;
    memcpy(model->sample_ts_ns + first, ts_ns, sample_count * sizeof(*ts_ns));
    memcpy(model->sample_value + first, values, sample_count * sizeof(*values));
    model->sample_count = first + sample_count;
    tracks[model->track_count++] = (struct lac_track){.kind = LAC_TRACK_COUNTER,
                                                      .process = track->process,
                                                      .name = track->name,
                                                      .tid = -1,
                                                      .device = -1,
                                                      .sort_index = track->sort_index,
                                                      .first = first,
                                                      .count = sample_count};
    model->recorded_track_count = model->track_count;
    return LAC_OK;
}
