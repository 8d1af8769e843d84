#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/slice_json.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct chrome {
    struct lac_export_out *out;
    struct lac_slice_json row; /**< into the buffer of `out` */
};

/** An id as it was recorded: a number where it is one. */
static void put_id(struct chrome *chrome, const char *key, int64_t number, uint32_t text)
{
    const char *recorded = lac_model_str(chrome->row.source->model, text);
    char plain[32];
    (void)snprintf(plain, sizeof(plain), "%" PRId64, number);
    if (number >= 0 && (strcmp(plain, recorded) == 0 || *recorded == '\0')) {
        lac_json_int(&chrome->row.json, key, number);
    } else {
        lac_json_text(&chrome->row.json, key, lac_redact(chrome->row.source->redactor, recorded));
    }
}

/** Microseconds with three decimals: ns exactly. */
static void put_time(struct chrome *chrome, const char *key, int64_t ns)
{
    lac_slice_json_digits(&chrome->row, key, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

/** Of a counter, and of a row for what overlaps, the name is the id. */
static bool is_named_row(const struct lac_track *track)
{
    return track->kind == LAC_TRACK_COUNTER || track->kind == LAC_TRACK_ASYNC;
}

static const char *row_name(struct chrome *chrome, const struct lac_track *track)
{
    const struct lac_model *model = chrome->row.source->model;
    return lac_redact_track(chrome->row.source->redactor, model, (uint32_t)(track - model->tracks));
}

static void begin_event(struct chrome *chrome, const char *phase, const struct lac_track *track)
{
    const struct lac_model *model = chrome->row.source->model;
    lac_json_line(&chrome->row.json);
    lac_json_open(&chrome->row.json, NULL, '{');
    lac_json_text(&chrome->row.json, "ph", phase);
    if (track->process < model->process_count) {
        const struct lac_process *process = &model->processes[track->process];
        put_id(chrome, "pid", process->pid, process->id_text);
    } else {
        lac_json_int(&chrome->row.json, "pid", 0);
    }
    if (is_named_row(track)) {
        lac_json_text(&chrome->row.json, "tid", row_name(chrome, track));
    } else {
        put_id(chrome, "tid", track->tid, track->id_text);
    }
}

static void end_event(struct chrome *chrome)
{
    lac_json_close(&chrome->row.json, '}');
    lac_export_flow(chrome->out);
}

/* -- head ------------------------------------------------------------------------------------ */

static void put_devices(struct chrome *chrome)
{
    const struct lac_model *model = chrome->row.source->model;
    struct lac_json *json = &chrome->row.json;
    lac_json_line(json);
    lac_json_open(json, "deviceProperties", '[');
    for (uint32_t d = 0; d < model->device_count; d++) {
        const struct lac_device *device = &model->devices[d];
        lac_json_open(json, NULL, '{');
        lac_json_int(json, "id", device->id);
        lac_json_text(json, "name", lac_model_str(model, device->name));
        lac_json_int(json, "totalGlobalMem", device->memory_bytes);
        lac_json_int(json, "computeMajor", device->cc_major);
        lac_json_int(json, "computeMinor", device->cc_minor);
        lac_json_int(json, "numSms", device->sm_count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static struct lac_json_members members_of(const char *object)
{
    return (struct lac_json_members){object, object + strlen(object)};
}

/** Whether a member may hold what a person added: the profiler's own are known. */
static bool is_added(const struct lac_json_member *member)
{
    static const char *const known[] = {
        "distributedInfo",     "lacuna",        "cuda_runtime_version", "cuda_driver_version",
        "hip_runtime_version", "cupti_version", "profile_memory",       "record_shapes",
        "with_stack",          "with_flops",    "with_modules",         "trace_id",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (lac_json_member_is(member, known[i])) {
            return false;
        }
    }
    return true;
}

/** What the recorder wrote beside its events, but for what is ours. */
static void put_metadata(struct chrome *chrome, struct lac_json_members metadata)
{
    static const char *const own[] = {"schemaVersion", "deviceProperties", "baseTimeNanoseconds",
                                      "traceName",     "traceEvents",      "displayTimeUnit",
                                      "host_name",     "hostname"};
    struct lac_json_member member;
    while (lac_json_member_next(&metadata, &member)) {
        bool is_own = false;
        for (size_t i = 0; i < LAC_COUNT_OF(own); i++) {
            is_own = is_own || lac_json_member_is(&member, own[i]);
        }
        bool is_left_out =
            chrome->row.source->redactor->leave_out[LAC_REDACT_NAMES] && is_added(&member);
        if (!is_own && !is_left_out &&
            lac_slice_json_may_leave(&chrome->row, member.key, member.key_length) &&
            lac_slice_json_may_leave(&chrome->row, member.value, member.value_length)) {
            lac_json_line(&chrome->row.json);
            lac_json_member(&chrome->row.json, &member);
        }
    }
}

static void put_head(struct chrome *chrome)
{
    const struct lac_model *model = chrome->row.source->model;
    const struct lac_trace_info *info = &model->info;
    struct lac_redactor *redactor = chrome->row.source->redactor;
    struct lac_json *json = &chrome->row.json;
    const struct lac_json_members metadata = members_of(lac_model_str(model, info->metadata));
    lac_json_open(json, NULL, '{');
    lac_json_int(json, "schemaVersion", 1);
    lac_json_line(json);
    lac_json_int(json, "baseTimeNanoseconds", info->t0_ns);
    lac_json_line(json);
    lac_json_text(json, "displayTimeUnit", "ms");
    lac_json_line(json);
    lac_json_text(json, "traceName",
                  lac_redact_given(redactor, lac_model_str(model, info->name), "trace"));
    if (info->host != 0) {
        lac_json_line(json);
        lac_json_text(json, "host_name", lac_redact(redactor, lac_model_str(model, info->host)));
    }
    if (info->rank >= 0 && !lac_json_has(metadata, "distributedInfo")) {
        lac_json_line(json);
        lac_json_open(json, "distributedInfo", '{');
        lac_json_int(json, "rank", info->rank);
        lac_json_int(json, "world_size", info->world_size);
        lac_json_close(json, '}');
    }
    put_devices(chrome);
    put_metadata(chrome, metadata);
    lac_json_line(json);
    lac_json_open(json, "traceEvents", '[');
}

/* -- rows ------------------------------------------------------------------------------------ */

static void put_meta(struct chrome *chrome, const struct lac_track *track, const char *what,
                     const char *key, const char *text)
{
    if (*text != '\0') {
        begin_event(chrome, "M", track);
        lac_json_text(&chrome->row.json, "name", what);
        lac_json_open(&chrome->row.json, "args", '{');
        lac_json_text(&chrome->row.json, key, text);
        lac_json_close(&chrome->row.json, '}');
        end_event(chrome);
    }
}

static void put_sort_index(struct chrome *chrome, const struct lac_track *track, const char *what,
                           int32_t sort_index)
{
    if (sort_index != 0) {
        begin_event(chrome, "M", track);
        lac_json_text(&chrome->row.json, "name", what);
        lac_json_open(&chrome->row.json, "args", '{');
        lac_json_int(&chrome->row.json, "sort_index", sort_index);
        lac_json_close(&chrome->row.json, '}');
        end_event(chrome);
    }
}

static void put_rows(struct chrome *chrome)
{
    const struct lac_model *model = chrome->row.source->model;
    struct lac_redactor *redactor = chrome->row.source->redactor;
    for (uint32_t p = 0; p < model->process_count; p++) {
        const struct lac_process *process = &model->processes[p];
        const struct lac_track row = {.process = p};
        put_meta(chrome, &row, "process_name", "name",
                 lac_redact_process(redactor, lac_model_str(model, process->name)));
        put_meta(chrome, &row, "process_labels", "labels",
                 *lac_model_str(model, process->labels) != '\0'
                     ? lac_redact_given(redactor, lac_model_str(model, process->labels), "")
                     : "");
        put_sort_index(chrome, &row, "process_sort_index", process->sort_index);
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_THREAD || track->kind == LAC_TRACK_STREAM) {
            put_meta(chrome, track, "thread_name", "name",
                     track->name != 0 ? row_name(chrome, track) : "");
            put_sort_index(chrome, track, "thread_sort_index", track->sort_index);
        }
    }
}

/* -- slices ---------------------------------------------------------------------------------- */

static void put_name(struct chrome *chrome, uint64_t slice)
{
    struct lac_copy_name room;
    lac_json_text(&chrome->row.json, "name", lac_slice_json_name(&chrome->row, slice, &room));
}

/** Of what overlaps, the category is also the row. */
static void put_category(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const uint8_t kind = chrome->row.source->model->slices.kind[slice];
    lac_json_text(&chrome->row.json, "cat",
                  track->kind == LAC_TRACK_ASYNC ? row_name(chrome, track)
                                                 : lac_slice_category(kind));
}

static void put_slice(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const struct lac_slices *slices = &chrome->row.source->model->slices;
    bool is_mark = track->kind == LAC_TRACK_MARKS;
    bool is_async = track->kind == LAC_TRACK_ASYNC;
    bool is_async_mark = is_async && slices->kind[slice] == LAC_SLICE_INSTANT;
    begin_event(chrome, is_mark ? "i" : is_async_mark ? "n" : is_async ? "b" : "X", track);
    put_category(chrome, track, slice);
    put_name(chrome, slice);
    put_time(chrome, "ts", slices->start_ns[slice]);
    if (is_mark) {
        lac_json_text(&chrome->row.json, "s", "t");
    } else if (is_async) {
        lac_json_uint(&chrome->row.json, "id", slice);
    } else {
        put_time(chrome, "dur", slices->dur_ns[slice]);
    }
    lac_slice_json_args(&chrome->row, track, slice);
    end_event(chrome);
    if (is_async && !is_async_mark) {
        begin_event(chrome, "e", track);
        put_category(chrome, track, slice);
        lac_json_uint(&chrome->row.json, "id", slice);
        put_name(chrome, slice);
        put_time(chrome, "ts", slices->start_ns[slice] + slices->dur_ns[slice]);
        end_event(chrome);
    }
}

static void put_samples(struct chrome *chrome, const struct lac_track *track)
{
    const struct lac_model *model = chrome->row.source->model;
    for (uint64_t s = track->first; model->sample_value != NULL && s < track->first + track->count;
         s++) {
        if (!isfinite(model->sample_value[s])) {
            continue;
        }
        begin_event(chrome, "C", track);
        lac_json_text(&chrome->row.json, "name", row_name(chrome, track));
        put_time(chrome, "ts", model->sample_ts_ns[s]);
        lac_json_open(&chrome->row.json, "args", '{');
        lac_slice_json_digits(&chrome->row, "value", "%.17g", model->sample_value[s]);
        lac_json_close(&chrome->row.json, '}');
        end_event(chrome);
    }
}

static void put_flows(struct chrome *chrome)
{
    const struct lac_model *model = chrome->row.source->model;
    for (uint64_t f = 0; f < model->flow_count; f++) {
        const uint32_t ends[] = {model->flows[f].src, model->flows[f].dst};
        for (int i = 0; i < 2; i++) {
            begin_event(chrome, i == 0 ? "s" : "f",
                        &model->tracks[lac_model_track_of(model, ends[i])]);
            lac_json_text(&chrome->row.json, "cat", "flow");
            lac_json_uint(&chrome->row.json, "id", f);
            if (i == 1) {
                lac_json_text(&chrome->row.json, "bp", "e");
            }
            lac_json_text(&chrome->row.json, "name",
                          lac_redact(chrome->row.source->redactor,
                                     lac_model_str(model, model->flows[f].name)));
            put_time(chrome, "ts", model->slices.start_ns[ends[i]]);
            end_event(chrome);
        }
    }
}

void lac_export_chrome(struct lac_export_out *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL);
    const struct lac_model *model = source->model;
    struct chrome chrome = {.out = out, .row = {.source = source}};
    lac_json_init(&chrome.row.json, &out->buffer);
    put_head(&chrome);
    put_rows(&chrome);
    for (uint32_t t = 0; t < model->recorded_track_count && out->buffer.status == LAC_OK; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_STACKS || /* who reads it would take samples for calls */
            track->kind == LAC_TRACK_PROFILE) {
            continue;
        }
        if (track->kind == LAC_TRACK_COUNTER) {
            put_samples(&chrome, track);
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            put_slice(&chrome, track, s);
        }
    }
    put_flows(&chrome);
    lac_json_line(&chrome.row.json);
    lac_json_close(&chrome.row.json, ']');
    lac_json_close(&chrome.row.json, '}');
    lac_buffer_puts(&out->buffer, "\n");
    lac_slice_json_done(&chrome.row);
}
