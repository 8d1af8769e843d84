#include "analysis/diagnose/names/names.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/json/json_members.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct chrome {
    struct lac_export_out *out;
    const struct lac_report_source *source;
    bool needs_comma;
    char *args; /**< room for the arguments of one slice */
    size_t args_capacity;
};

static struct lac_buffer *buffer_of(struct chrome *chrome)
{
    return &chrome->out->buffer;
}

static void put_string(struct chrome *chrome, const char *text)
{
    lac_buffer_json_string(buffer_of(chrome), text, strlen(text));
}

/** An id as it was recorded: a number where it is one. */
static void put_id(struct chrome *chrome, int64_t number, uint32_t text)
{
    const char *recorded = lac_model_str(chrome->source->model, text);
    char plain[32];
    (void)snprintf(plain, sizeof plain, "%" PRId64, number);
    if (number >= 0 && (strcmp(plain, recorded) == 0 || *recorded == '\0')) {
        lac_buffer_puts(buffer_of(chrome), plain);
    } else {
        put_string(chrome, recorded);
    }
}

/** Microseconds with three decimals: ns exactly. */
static void put_time(struct chrome *chrome, const char *key, int64_t ns)
{
    lac_buffer_printf(buffer_of(chrome), ",\"%s\":%" PRId64 ".%03d", key, ns / 1000,
                      (int)(ns % 1000));
}

static void begin_event(struct chrome *chrome, const char *phase, const struct lac_track *track)
{
    const struct lac_model *model = chrome->source->model;
    lac_buffer_puts(buffer_of(chrome), chrome->needs_comma ? ",\n{" : "\n{");
    chrome->needs_comma = true;
    lac_buffer_printf(buffer_of(chrome), "\"ph\":\"%s\",\"pid\":", phase);
    if (track->process < model->process_count) {
        const struct lac_process *process = &model->processes[track->process];
        put_id(chrome, process->pid, process->id_text);
    } else {
        lac_buffer_puts(buffer_of(chrome), "0");
    }
    lac_buffer_puts(buffer_of(chrome), ",\"tid\":");
    put_id(chrome, track->tid, track->id_text);
}

static void end_event(struct chrome *chrome)
{
    lac_buffer_puts(buffer_of(chrome), "}");
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
    if (!copy) {
        buffer_of(chrome)->status = LAC_ERR_NOMEM;
        return false;
    }
    const char *plain = lac_redact(redactor, copy);
    bool is_command = strstr(copy, "argv") || strstr(copy, "cmdline") || strstr(copy, "command");
    bool is_same =
        strcmp(plain, copy) == 0 && !(redactor->leave_out[LAC_REDACT_ARGV] && is_command);
    free(copy);
    return !leaves_out || is_same;
}

static void put_devices(struct chrome *chrome)
{
    const struct lac_model *model = chrome->source->model;
    lac_buffer_puts(buffer_of(chrome), ",\n\"deviceProperties\":[");
    for (uint32_t d = 0; d < model->device_count; d++) {
        const struct lac_device *device = &model->devices[d];
        lac_buffer_printf(buffer_of(chrome), "%s{\"id\":%" PRId64 ",\"name\":", d > 0 ? "," : "",
                          device->id);
        put_string(chrome, lac_model_str(model, device->name));
        lac_buffer_printf(buffer_of(chrome),
                          ",\"totalGlobalMem\":%" PRId64
                          ",\"computeMajor\":%d,\"computeMinor\":%d,\"numSms\":%d}",
                          device->memory_bytes, (int)device->cc_major, (int)device->cc_minor,
                          (int)device->sm_count);
    }
    lac_buffer_puts(buffer_of(chrome), "]");
}

static void put_head(struct chrome *chrome)
{
    static const char *const own[] = {"schemaVersion", "deviceProperties", "baseTimeNanoseconds",
                                      "traceName",     "traceEvents",      "displayTimeUnit",
                                      "host_name",     "hostname"};
    const struct lac_model *model = chrome->source->model;
    const struct lac_trace_info *info = &model->info;
    const char *metadata = lac_model_str(model, info->metadata);
    lac_buffer_printf(buffer_of(chrome), "{\"schemaVersion\":1,\n\"baseTimeNanoseconds\":%" PRId64,
                      info->t0_ns);
    lac_buffer_puts(buffer_of(chrome), ",\n\"displayTimeUnit\":\"ms\",\n\"traceName\":");
    put_string(chrome, lac_redact_given(chrome->source->redactor, lac_model_str(model, info->name),
                                        "trace"));
    if (info->host != 0) {
        lac_buffer_puts(buffer_of(chrome), ",\n\"host_name\":");
        put_string(chrome, lac_redact(chrome->source->redactor, lac_model_str(model, info->host)));
    }
    if (info->rank >= 0 && !lac_json_has(metadata, "distributedInfo")) {
        lac_buffer_printf(buffer_of(chrome),
                          ",\n\"distributedInfo\":{\"rank\":%d,\"world_size\":%d}", (int)info->rank,
                          (int)info->world_size);
    }
    put_devices(chrome);
    struct lac_json_member member;
    while (lac_json_member_next(&metadata, &member)) {
        bool is_own = false;
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
            is_own = is_own || lac_json_member_is(&member, own[i]);
        }
        if (!is_own && is_harmless(chrome, member.key, member.key_length) &&
            is_harmless(chrome, member.value, member.value_length)) {
            lac_buffer_puts(buffer_of(chrome), ",\n\"");
            lac_buffer_add(buffer_of(chrome), member.key, member.key_length);
            lac_buffer_puts(buffer_of(chrome), "\":");
            lac_buffer_add(buffer_of(chrome), member.value, member.value_length);
        }
    }
    lac_buffer_puts(buffer_of(chrome), ",\n\"traceEvents\":[");
}

/* -- rows ------------------------------------------------------------------------------------ */

static void put_meta(struct chrome *chrome, const struct lac_track *track, const char *what,
                     const char *key, const char *text)
{
    if (*text != '\0') {
        begin_event(chrome, "M", track);
        lac_buffer_printf(buffer_of(chrome), ",\"name\":\"%s\",\"args\":{\"%s\":", what, key);
        put_string(chrome, text);
        lac_buffer_puts(buffer_of(chrome), "}");
        end_event(chrome);
    }
}

static void put_sort_index(struct chrome *chrome, const struct lac_track *track, const char *what,
                           int32_t sort_index)
{
    if (sort_index != 0) {
        begin_event(chrome, "M", track);
        lac_buffer_printf(buffer_of(chrome), ",\"name\":\"%s\",\"args\":{\"sort_index\":%d}", what,
                          (int)sort_index);
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
    if (!model->slices.args || model->slices.args[slice] == 0) {
        return "{}";
    }
    size_t length = lac_args_format(model, slice, chrome->args, chrome->args_capacity);
    if (!chrome->args || length + 1 > chrome->args_capacity) {
        char *grown = realloc(chrome->args, 2 * (length + 1));
        if (!grown) {
            buffer_of(chrome)->status = LAC_ERR_NOMEM;
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
static void put_number(struct chrome *chrome, bool *has_any, const char *recorded, const char *key,
                       int64_t value)
{
    if (!lac_json_has(recorded, key)) {
        lac_buffer_printf(buffer_of(chrome), "%s\"%s\":%" PRId64, *has_any ? "," : "", key, value);
        *has_any = true;
    }
}

static void put_kernel(struct chrome *chrome, bool *has_any, const char *recorded, uint32_t detail)
{
    const struct lac_model *model = chrome->source->model;
    if (detail >= model->kernel_config_count || lac_json_has(recorded, "grid")) {
        return;
    }
    const struct lac_kernel_config *config = &model->kernel_configs[detail];
    lac_buffer_printf(buffer_of(chrome), "%s\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]",
                      *has_any ? "," : "", config->grid[0], config->grid[1], config->grid[2],
                      config->block[0], config->block[1], config->block[2]);
    *has_any = true;
    put_number(chrome, has_any, recorded, "registers per thread", config->registers_per_thread);
    put_number(chrome, has_any, recorded, "shared memory", config->shared_memory_bytes);
    if (config->occupancy_pct >= 0.0F && !lac_json_has(recorded, "est. achieved occupancy %")) {
        lac_buffer_printf(buffer_of(chrome), ",\"est. achieved occupancy %%\":%.9g",
                          (double)config->occupancy_pct);
    }
    if (config->blocks_per_sm >= 0.0F && !lac_json_has(recorded, "blocks per SM")) {
        lac_buffer_printf(buffer_of(chrome), ",\"blocks per SM\":%.9g",
                          (double)config->blocks_per_sm);
    }
}

static void put_loader(struct chrome *chrome, bool *has_any, const char *recorded, uint32_t detail)
{
    const struct lac_model *model = chrome->source->model;
    if (detail >= model->loader_info_count) {
        return;
    }
    const struct lac_loader_info *info = &model->loader_infos[detail];
    if (info->batch >= 0) {
        put_number(chrome, has_any, recorded, "batch", info->batch);
    }
    if (info->worker >= 0) {
        put_number(chrome, has_any, recorded, "worker", info->worker);
    }
    if (info->cpu_ns >= 0) {
        put_number(chrome, has_any, recorded, "cpu_ns", info->cpu_ns);
    }
}

static void put_args(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const struct lac_model *model = chrome->source->model;
    const struct lac_slices *slices = &model->slices;
    const char *recorded = recorded_args(chrome, slice);
    uint8_t kind = slices->kind[slice];
    bool is_gpu = kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
    bool has_any = false;
    lac_buffer_puts(buffer_of(chrome), ",\"args\":{");
    if (is_gpu && track->device >= 0) {
        put_number(chrome, &has_any, recorded, "device", track->device);
        if (track->kind == LAC_TRACK_STREAM && track->tid >= 0) {
            put_number(chrome, &has_any, recorded, "stream", track->tid);
        }
    }
    if (slices->corr && slices->corr[slice] != 0) {
        put_number(chrome, &has_any, recorded, "correlation", slices->corr[slice]);
    }
    uint32_t detail = slices->detail ? slices->detail[slice] : LAC_NONE;
    if (kind == LAC_SLICE_KERNEL) {
        put_kernel(chrome, &has_any, recorded, detail);
    } else if (is_gpu && detail < model->copy_count && model->copies[detail].bytes >= 0) {
        put_number(chrome, &has_any, recorded, "bytes", model->copies[detail].bytes);
    } else if (kind == LAC_SLICE_RANGE) {
        put_loader(chrome, &has_any, recorded, detail);
    }
    struct lac_json_member member;
    while (lac_json_member_next(&recorded, &member)) {
        lac_buffer_puts(buffer_of(chrome), has_any ? ",\"" : "\"");
        lac_buffer_add(buffer_of(chrome), member.key, member.key_length);
        lac_buffer_puts(buffer_of(chrome), "\":");
        lac_buffer_add(buffer_of(chrome), member.value, member.value_length);
        has_any = true;
    }
    lac_buffer_puts(buffer_of(chrome), "}");
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
    return kind < LAC_SLICE_KIND_COUNT_ && names[kind] ? names[kind] : "slice";
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
    uint32_t detail = model->slices.detail ? model->slices.detail[slice] : LAC_NONE;
    bool is_given =
        (kind == LAC_SLICE_RANGE || kind == LAC_SLICE_PYTHON || kind == LAC_SLICE_GPU_RANGE) &&
        lac_names_host_class(name, strlen(name)) == LAC_HOST_OTHER;
    char copy[96];
    if (kind == LAC_SLICE_COPY && detail < model->copy_count && !names_its_copy(name)) {
        const struct lac_copy *facts = &model->copies[detail];
        (void)snprintf(copy, sizeof copy, "Memcpy %s (%s -> %s)",
                       lac_copy_kind_name((enum lac_copy_kind)facts->copy_kind),
                       memory[facts->src < 6 ? facts->src : 0],
                       memory[facts->dst < 6 ? facts->dst : 0]);
        name = copy;
    }
    lac_buffer_puts(buffer_of(chrome), ",\"name\":");
    put_string(chrome,
               is_given ? lac_redact_given(redactor, name, "range") : lac_redact(redactor, name));
}

static void put_slice(struct chrome *chrome, const struct lac_track *track, uint64_t slice)
{
    const struct lac_slices *slices = &chrome->source->model->slices;
    bool is_mark = track->kind == LAC_TRACK_MARKS;
    bool is_async = track->kind == LAC_TRACK_ASYNC;
    begin_event(chrome, is_mark ? "i" : is_async ? "b" : "X", track);
    lac_buffer_printf(buffer_of(chrome), ",\"cat\":\"%s\"", category(slices->kind[slice]));
    put_name(chrome, slice);
    put_time(chrome, "ts", slices->start_ns[slice]);
    if (is_mark) {
        lac_buffer_puts(buffer_of(chrome), ",\"s\":\"t\"");
    } else if (is_async) {
        lac_buffer_printf(buffer_of(chrome), ",\"id\":%" PRIu64, slice);
    } else {
        put_time(chrome, "dur", slices->dur_ns[slice]);
    }
    put_args(chrome, track, slice);
    end_event(chrome);
    if (is_async) {
        begin_event(chrome, "e", track);
        lac_buffer_printf(buffer_of(chrome), ",\"cat\":\"%s\",\"id\":%" PRIu64,
                          category(slices->kind[slice]), slice);
        put_name(chrome, slice);
        put_time(chrome, "ts", slices->start_ns[slice] + slices->dur_ns[slice]);
        end_event(chrome);
    }
}

static void put_samples(struct chrome *chrome, const struct lac_track *track)
{
    const struct lac_model *model = chrome->source->model;
    for (uint64_t s = track->first; model->sample_value && s < track->first + track->count; s++) {
        if (!isfinite(model->sample_value[s])) {
            continue;
        }
        begin_event(chrome, "C", track);
        lac_buffer_puts(buffer_of(chrome), ",\"name\":");
        put_string(chrome, lac_redact(chrome->source->redactor, lac_model_str(model, track->name)));
        put_time(chrome, "ts", model->sample_ts_ns[s]);
        lac_buffer_printf(buffer_of(chrome), ",\"args\":{\"value\":%.17g}", model->sample_value[s]);
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
            lac_buffer_printf(buffer_of(chrome),
                              ",\"cat\":\"flow\",\"id\":%" PRIu64 "%s,\"name\":", f,
                              i == 0 ? "" : ",\"bp\":\"e\"");
            put_string(chrome, lac_redact(chrome->source->redactor,
                                          lac_model_str(model, model->flows[f].name)));
            put_time(chrome, "ts", model->slices.start_ns[ends[i]]);
            end_event(chrome);
        }
    }
}

void lac_export_chrome(struct lac_export_out *out, const struct lac_report_source *source)
{
    const struct lac_model *model = source->model;
    struct chrome chrome = {.out = out, .source = source};
    put_head(&chrome);
    put_rows(&chrome);
    for (uint32_t t = 0; t < model->recorded_track_count && out->buffer.status == LAC_OK; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER) {
            put_samples(&chrome, track);
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            put_slice(&chrome, track, s);
        }
    }
    put_flows(&chrome);
    lac_buffer_puts(&out->buffer, "\n]}\n");
    free(chrome.args);
}
