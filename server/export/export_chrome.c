#include "analysis/diagnose/names/names.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
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
    struct lac_json json; /**< into the buffer of `out` */
    const struct lac_report_source *source;
    char *args; /**< room for the arguments of one slice */
    size_t args_capacity;
};

/** An id as it was recorded: a number where it is one. */
static void put_id(struct chrome *chrome, const char *key, int64_t number, uint32_t text)
{
    const char *recorded = lac_model_str(chrome->source->model, text);
    char plain[32];
    (void)snprintf(plain, sizeof(plain), "%" PRId64, number);
    if (number >= 0 && (strcmp(plain, recorded) == 0 || *recorded == '\0')) {
        lac_json_int(&chrome->json, key, number);
    } else {
        lac_json_text(&chrome->json, key, recorded);
    }
}

/** A number with digits of its own. */
__attribute__((format(printf, 3, 4))) static void put_digits(struct chrome *chrome, const char *key,
                                                             const char *fmt, ...)
{
    char text[48];
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    lac_json_raw(&chrome->json, key, text, (size_t)length);
}

/** Microseconds with three decimals: ns exactly. */
static void put_time(struct chrome *chrome, const char *key, int64_t ns)
{
    put_digits(chrome, key, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

static void begin_event(struct chrome *chrome, const char *phase, const struct lac_track *track)
{
    const struct lac_model *model = chrome->source->model;
    lac_json_line(&chrome->json);
    lac_json_open(&chrome->json, NULL, '{');
    lac_json_text(&chrome->json, "ph", phase);
    if (track->process < model->process_count) {
        const struct lac_process *process = &model->processes[track->process];
        put_id(chrome, "pid", process->pid, process->id_text);
    } else {
        lac_json_int(&chrome->json, "pid", 0);
    }
    put_id(chrome, "tid", track->tid, track->id_text);
}

static void end_event(struct chrome *chrome)
{
    lac_json_close(&chrome->json, '}');
    lac_export_flow(chrome->out);
}

/* -- head ------------------------------------------------------------------------------------ */

/** Whether this text may leave as it is. */
static bool is_harmless(struct chrome *chrome, const char *text, size_t length)
{
    struct lac_redactor *redactor = chrome->source->redactor;
    bool leaves_out = false;
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        leaves_out = leaves_out || redactor->leave_out[kind];
    }
    char *copy = strndup(text, length);
    if (copy == NULL) {
        chrome->out->buffer.status = LAC_ERR_NOMEM;
        return false;
    }
    const char *plain = lac_redact(redactor, copy);
    bool is_command = strstr(copy, "argv") != NULL || strstr(copy, "cmdline") != NULL ||
                      strstr(copy, "command") != NULL;
    bool is_same =
        strcmp(plain, copy) == 0 && !(redactor->leave_out[LAC_REDACT_ARGV] && is_command);
    free(copy);
    return !leaves_out || is_same;
}

static void put_devices(struct chrome *chrome)
{
    const struct lac_model *model = chrome->source->model;
    struct lac_json *json = &chrome->json;
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
        if (!is_own && is_harmless(chrome, member.key, member.key_length) &&
            is_harmless(chrome, member.value, member.value_length)) {
            lac_json_line(&chrome->json);
            lac_json_member(&chrome->json, &member);
        }
    }
}

static void put_head(struct chrome *chrome)
{
    const struct lac_model *model = chrome->source->model;
    const struct lac_trace_info *info = &model->info;
    struct lac_redactor *redactor = chrome->source->redactor;
    struct lac_json *json = &chrome->json;
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
        lac_json_text(&chrome->json, "name", what);
        lac_json_open(&chrome->json, "args", '{');
        lac_json_text(&chrome->json, key, text);
        lac_json_close(&chrome->json, '}');
        end_event(chrome);
    }
}

static void put_sort_index(struct chrome *chrome, const struct lac_track *track, const char *what,
                           int32_t sort_index)
{
    if (sort_index != 0) {
        begin_event(chrome, "M", track);
        lac_json_text(&chrome->json, "name", what);
        lac_json_open(&chrome->json, "args", '{');
        lac_json_int(&chrome->json, "sort_index", sort_index);
        lac_json_close(&chrome->json, '}');
        end_event(chrome);
    }
}

static void put_rows(struct chrome *chrome)
{
    const struct lac_model *model = chrome->source->model;
    struct lac_redactor *redactor = chrome->source->redactor;
    for (uint32_t p = 0; p < model->process_count; p++) {
        const struct lac_process *process = &model->processes[p];
        const struct lac_track row = {.process = p};
        put_meta(chrome, &row, "process_name", "name",
                 lac_redact_argv(redactor, lac_model_str(model, process->name)));
        put_meta(chrome, &row, "process_labels", "labels",
                 lac_redact(redactor, lac_model_str(model, process->labels)));
        put_sort_index(chrome, &row, "process_sort_index", process->sort_index);
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_THREAD || track->kind == LAC_TRACK_STREAM) {
            put_meta(chrome, track, "thread_name", "name",
                     lac_redact(redactor, lac_model_str(model, track->name)));
            put_sort_index(chrome, track, "thread_sort_index", track->sort_index);
        }
    }
}

/* -- arguments ------------------------------------------------------------------------------- */

/** The arguments as recorded, "{}" when there are none. */
static const char *recorded_args(struct chrome *chrome, uint64_t slice)
{
    const struct lac_model *model = chrome->source->model;
    if (model->slices.args == NULL || model->slices.args[slice] == 0) {
        return "{}";
    }
    size_t length = lac_args_format(model, slice, chrome->args, chrome->args_capacity);
    if (chrome->args == NULL || length + 1 > chrome->args_capacity) {
        char *grown = realloc(chrome->args, 2 * (length + 1));
        if (grown == NULL) {
            chrome->out->buffer.status = LAC_ERR_NOMEM;
            return "{}";
        }
        chrome->args = grown;
        chrome->args_capacity = 2 * (length + 1);
        (void)lac_args_format(model, slice, chrome->args, chrome->args_capacity);
    }
    bool may_leave = is_harmless(chrome, chrome->args, strlen(chrome->args));
    return may_leave && chrome->args[0] == '{' ? chrome->args : "{}";
}

/** One number of ours, unless it was recorded under that name. */
static void put_number(struct chrome *chrome, struct lac_json_members recorded, const char *key,
                       int64_t value)
{
    if (!lac_json_has(recorded, key)) {
        lac_json_int(&chrome->json, key, value);
    }
}

/** The same of one that is not known when it is negative. */
static void put_real(struct chrome *chrome, struct lac_json_members recorded, const char *key,
                     float value)
{
    if (value >= 0.0F && !lac_json_has(recorded, key)) {
        put_digits(chrome, key, "%.9g", (double)value);
    }
}

static void put_three(struct chrome *chrome, const char *key, const uint32_t value[3])
{
    lac_json_open(&chrome->json, key, '[');
    for (int i = 0; i < 3; i++) {
        lac_json_uint(&chrome->json, NULL, value[i]);
    }
    lac_json_close(&chrome->json, ']');
}

static void put_kernel(struct chrome *chrome, struct lac_json_members recorded, uint32_t detail)
{
    const struct lac_model *model = chrome->source->model;
    if (detail >= model->kernel_config_count || lac_json_has(recorded, "grid")) {
        return;
    }
    const struct lac_kernel_config *config = &model->kernel_configs[detail];
    put_three(chrome, "grid", config->grid);
    put_three(chrome, "block", config->block);
    put_number(chrome, recorded, "registers per thread", config->registers_per_thread);
    put_number(chrome, recorded, "shared memory", config->shared_memory_bytes);
    put_real(chrome, recorded, "est. achieved occupancy %", config->occupancy_pct);
    put_real(chrome, recorded, "blocks per SM", config->blocks_per_sm);
}

static void put_loader(struct chrome *chrome, struct lac_json_members recorded, uint32_t detail)
{
    const struct lac_model *model = chrome->source->model;
    if (detail >= model->loader_info_count) {
        return;
    }
    const struct lac_loader_info *info = &model->loader_infos[detail];
    if (info->batch >= 0) {
        put_number(chrome, recorded, "batch", info->batch);
    }
    if (info->worker >= 0) {
        put_number(chrome, recorded, "worker", info->worker);
    }
    if (info->cpu_ns >= 0) {
        put_number(chrome, recorded, "cpu_ns", info->cpu_ns);
    }
}

static void put_args(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const struct lac_model *model = chrome->source->model;
    const struct lac_slices *slices = &model->slices;
    struct lac_json_members recorded = members_of(recorded_args(chrome, slice));
    uint8_t kind = slices->kind[slice];
    bool is_gpu = kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
    lac_json_open(&chrome->json, "args", '{');
    if (is_gpu && track->device >= 0) {
        put_number(chrome, recorded, "device", track->device);
        if (track->kind == LAC_TRACK_STREAM && track->tid >= 0) {
            put_number(chrome, recorded, "stream", track->tid);
        }
    }
    if (slices->corr != NULL && slices->corr[slice] != 0) {
        put_number(chrome, recorded, "correlation", slices->corr[slice]);
    }
    uint32_t detail = slices->detail != NULL ? slices->detail[slice] : LAC_NONE;
    if (kind == LAC_SLICE_KERNEL) {
        put_kernel(chrome, recorded, detail);
    } else if (is_gpu && detail < model->copy_count && model->copies[detail].bytes >= 0) {
        put_number(chrome, recorded, "bytes", model->copies[detail].bytes);
    } else if (kind == LAC_SLICE_RANGE) {
        put_loader(chrome, recorded, detail);
    }
    struct lac_json_member member;
    while (lac_json_member_next(&recorded, &member)) {
        lac_json_member(&chrome->json, &member);
    }
    lac_json_close(&chrome->json, '}');
}

/* -- slices ---------------------------------------------------------------------------------- */

static const char *category(uint8_t kind)
{
    static const char *const names[LAC_SLICE_KIND_COUNT_] = {
        [LAC_SLICE_OTHER] = "slice",
        [LAC_SLICE_KERNEL] = "kernel",
        [LAC_SLICE_COPY] = "gpu_memcpy",
        [LAC_SLICE_MEMSET] = "gpu_memset",
        [LAC_SLICE_GPU_RANGE] = "gpu_user_annotation",
        [LAC_SLICE_API] = "cuda_runtime",
        [LAC_SLICE_SYNC] = "cuda_sync",
        [LAC_SLICE_OVERHEAD] = "overhead",
        [LAC_SLICE_OP] = "cpu_op",
        [LAC_SLICE_RANGE] = "user_annotation",
        [LAC_SLICE_PYTHON] = "python_function",
        [LAC_SLICE_ALLOC] = "cpu_instant_event",
        [LAC_SLICE_INSTANT] = "instant",
    };
    return kind < LAC_SLICE_KIND_COUNT_ && names[kind] != NULL ? names[kind] : "slice";
}

/** Whether the name says where a copy goes, in the way that importers read. */
static bool names_its_copy(const char *name)
{
    return strncmp(name, "Memcpy ", 7) == 0 || strncmp(name, "MEMCPY", 6) == 0;
}

static void put_name(struct chrome *chrome, uint64_t slice)
{
    static const char *const memory[] = {"Unknown", "Pageable", "Pinned",
                                         "Device",  "Array",    "Managed"};
    const struct lac_model *model = chrome->source->model;
    struct lac_redactor *redactor = chrome->source->redactor;
    const char *name = lac_model_str(model, model->slices.name[slice]);
    uint8_t kind = model->slices.kind[slice];
    uint32_t detail = model->slices.detail != NULL ? model->slices.detail[slice] : LAC_NONE;
    bool is_given =
        (kind == LAC_SLICE_RANGE || kind == LAC_SLICE_PYTHON || kind == LAC_SLICE_GPU_RANGE) &&
        lac_names_host_class(name, strlen(name)) == LAC_HOST_OTHER;
    char copy[96];
    if (kind == LAC_SLICE_COPY && detail < model->copy_count && !names_its_copy(name)) {
        const struct lac_copy *facts = &model->copies[detail];
        (void)snprintf(copy, sizeof(copy), "Memcpy %s (%s -> %s)",
                       lac_copy_kind_name((enum lac_copy_kind)facts->copy_kind),
                       memory[facts->src < 6 ? facts->src : 0],
                       memory[facts->dst < 6 ? facts->dst : 0]);
        name = copy;
    }
    lac_json_text(&chrome->json, "name",
                  is_given ? lac_redact_given(redactor, name, "range")
                           : lac_redact(redactor, name));
}

static void put_slice(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const struct lac_slices *slices = &chrome->source->model->slices;
    bool is_mark = track->kind == LAC_TRACK_MARKS;
    bool is_async = track->kind == LAC_TRACK_ASYNC;
    begin_event(chrome, is_mark ? "i" : is_async ? "b" : "X", track);
    lac_json_text(&chrome->json, "cat", category(slices->kind[slice]));
    put_name(chrome, slice);
    put_time(chrome, "ts", slices->start_ns[slice]);
    if (is_mark) {
        lac_json_text(&chrome->json, "s", "t");
    } else if (is_async) {
        lac_json_uint(&chrome->json, "id", slice);
    } else {
        put_time(chrome, "dur", slices->dur_ns[slice]);
    }
    put_args(chrome, track, slice);
    end_event(chrome);
    if (is_async) {
        begin_event(chrome, "e", track);
        lac_json_text(&chrome->json, "cat", category(slices->kind[slice]));
        lac_json_uint(&chrome->json, "id", slice);
        put_name(chrome, slice);
        put_time(chrome, "ts", slices->start_ns[slice] + slices->dur_ns[slice]);
        end_event(chrome);
    }
}

static void put_samples(struct chrome *chrome, const struct lac_track *track)
{
    const struct lac_model *model = chrome->source->model;
    for (uint64_t s = track->first; model->sample_value != NULL && s < track->first + track->count;
         s++) {
        if (!isfinite(model->sample_value[s])) {
            continue;
        }
        begin_event(chrome, "C", track);
        lac_json_text(&chrome->json, "name",
                      lac_redact(chrome->source->redactor, lac_model_str(model, track->name)));
        put_time(chrome, "ts", model->sample_ts_ns[s]);
        lac_json_open(&chrome->json, "args", '{');
        put_digits(chrome, "value", "%.17g", model->sample_value[s]);
        lac_json_close(&chrome->json, '}');
        end_event(chrome);
    }
}

static void put_flows(struct chrome *chrome)
{
    const struct lac_model *model = chrome->source->model;
    for (uint64_t f = 0; f < model->flow_count; f++) {
        const uint32_t ends[] = {model->flows[f].src, model->flows[f].dst};
        for (int i = 0; i < 2; i++) {
            begin_event(chrome, i == 0 ? "s" : "f",
                        &model->tracks[lac_model_track_of(model, ends[i])]);
            lac_json_text(&chrome->json, "cat", "flow");
            lac_json_uint(&chrome->json, "id", f);
            if (i == 1) {
                lac_json_text(&chrome->json, "bp", "e");
            }
            lac_json_text(
                &chrome->json, "name",
                lac_redact(chrome->source->redactor, lac_model_str(model, model->flows[f].name)));
            put_time(chrome, "ts", model->slices.start_ns[ends[i]]);
            end_event(chrome);
        }
    }
}

void lac_export_chrome(struct lac_export_out *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL);
    const struct lac_model *model = source->model;
    struct chrome chrome = {.out = out, .source = source};
    lac_json_init(&chrome.json, &out->buffer);
    put_head(&chrome);
    put_rows(&chrome);
    for (uint32_t t = 0; t < model->recorded_track_count && out->buffer.status == LAC_OK; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_STACKS) { /* who reads it would take samples for calls */
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
    lac_json_line(&chrome.json);
    lac_json_close(&chrome.json, ']');
    lac_json_close(&chrome.json, '}');
    lac_buffer_puts(&out->buffer, "\n");
    free(chrome.args);
}
