#include "server/export/slice_json.h"

#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_json_members members_of(const char *object)
{
    return (struct lac_json_members){object, object + strlen(object)};
}

bool lac_slice_json_may_leave(struct lac_slice_json *row, const char *text, size_t length)
{
    struct lac_redactor *redactor = row->source->redactor;
    bool leaves_out = false;
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        leaves_out = leaves_out || redactor->leave_out[kind];
    }
    char *copy = strndup(text, length);
    if (copy == NULL) {
        row->json.out->status = LAC_ERR_NOMEM;
        return false;
    }
    const char *plain = lac_redact(redactor, copy);
    bool is_command = strstr(copy, "argv") != NULL || strstr(copy, "cmdline") != NULL ||
                      strstr(copy, "command") != NULL;
    bool is_host = strcasestr(copy, "hostname") != NULL || strcasestr(copy, "host_name") != NULL;
    bool is_same = strcmp(plain, copy) == 0 &&
                   !(redactor->leave_out[LAC_REDACT_ARGV] && is_command) &&
                   !(redactor->leave_out[LAC_REDACT_HOSTS] && is_host);
    free(copy);
    return !leaves_out || is_same;
}

__attribute__((format(printf, 3, 4))) void
lac_slice_json_digits(struct lac_slice_json *row, const char *key, const char *fmt, ...)
{
    char text[48];
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    lac_json_raw(&row->json, key, text, (size_t)length);
}

/** The arguments as recorded, "{}" when there are none. */
static const char *recorded_args(struct lac_slice_json *row, uint64_t slice)
{
    const struct lac_model *model = row->source->model;
    if (model->slices.args == NULL || model->slices.args[slice] == 0) {
        return "{}";
    }
    size_t length = lac_args_format(model, slice, row->recorded, row->recorded_capacity);
    if (row->recorded == NULL || length + 1 > row->recorded_capacity) {
        char *grown = realloc(row->recorded, 2 * (length + 1));
        if (grown == NULL) {
            row->json.out->status = LAC_ERR_NOMEM;
            return "{}";
        }
        row->recorded = grown;
        row->recorded_capacity = 2 * (length + 1);
        (void)lac_args_format(model, slice, row->recorded, row->recorded_capacity);
    }
    bool may_leave = lac_slice_json_may_leave(row, row->recorded, strlen(row->recorded));
    return may_leave && row->recorded[0] == '{' ? row->recorded : "{}";
}

/** One number of ours, unless it was recorded under that name. */
static void put_number(struct lac_slice_json *row, struct lac_json_members recorded,
                       const char *key, int64_t value)
{
    if (!lac_json_has(recorded, key)) {
        lac_json_int(&row->json, key, value);
    }
}

/** The same of one that is not known when it is negative. */
static void put_real(struct lac_slice_json *row, struct lac_json_members recorded, const char *key,
                     float value)
{
    if (value >= 0.0F && !lac_json_has(recorded, key)) {
        lac_slice_json_digits(row, key, "%.9g", (double)value);
    }
}

static void put_three(struct lac_slice_json *row, const char *key, const uint32_t value[3])
{
    lac_json_open(&row->json, key, '[');
    for (int i = 0; i < 3; i++) {
        lac_json_uint(&row->json, NULL, value[i]);
    }
    lac_json_close(&row->json, ']');
}

/** The node of a CUDA graph that launched it, and the module that annotations name. */
static void put_node(struct lac_slice_json *row, struct lac_json_members recorded, uint64_t node,
                     uint32_t module)
{
    if (node != 0 && !lac_json_has(recorded, "graph node id")) {
        lac_json_uint(&row->json, "graph node id", node);
    }
    if (module != 0 && !lac_json_has(recorded, "module")) {
        lac_json_text(&row->json, "module",
                      lac_redact_given(row->source->redactor,
                                       lac_model_str(row->source->model, module), "module"));
    }
}

static void put_kernel(struct lac_slice_json *row, struct lac_json_members recorded,
                       uint32_t detail)
{
    const struct lac_model *model = row->source->model;
    if (detail >= model->kernel_config_count) {
        return;
    }
    const struct lac_kernel_config *config = &model->kernel_configs[detail];
    put_node(row, recorded, config->graph_node, config->module);
    if (lac_json_has(recorded, "grid")) {
        return;
    }
    put_three(row, "grid", config->grid);
    put_three(row, "block", config->block);
    put_number(row, recorded, "registers per thread", config->registers_per_thread);
    put_number(row, recorded, "shared memory", config->shared_memory_bytes);
    put_real(row, recorded, "est. achieved occupancy %", config->occupancy_pct);
    put_real(row, recorded, "blocks per SM", config->blocks_per_sm);
}

static void put_loader(struct lac_slice_json *row, struct lac_json_members recorded,
                       uint32_t detail)
{
    const struct lac_model *model = row->source->model;
    if (detail >= model->loader_info_count) {
        return;
    }
    const struct lac_loader_info *info = &model->loader_infos[detail];
    if (info->batch >= 0) {
        put_number(row, recorded, "batch", info->batch);
    }
    if (info->worker >= 0) {
        put_number(row, recorded, "worker", info->worker);
    }
    if (info->cpu_ns >= 0) {
        put_number(row, recorded, "cpu_ns", info->cpu_ns);
    }
}

/** Where it differs from ours, which is written. */
static void put_recorded_correlation(struct lac_slice_json *row,
                                     const struct lac_json_member *member, uint32_t ours)
{
    char text[16];
    const int length = snprintf(text, sizeof(text), "%" PRIu32, ours);
    if (member->value_length != (size_t)length ||
        memcmp(member->value, text, (size_t)length) != 0) {
        lac_json_raw(&row->json, "correlation in its process", member->value, member->value_length);
    }
}

void lac_slice_json_args(struct lac_slice_json *row, const struct lac_track *track, uint64_t slice)
{
    const struct lac_model *model = row->source->model;
    const struct lac_slices *slices = &model->slices;
    struct lac_json_members recorded = members_of(recorded_args(row, slice));
    uint8_t kind = slices->kind[slice];
    bool is_gpu = kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
    lac_json_open(&row->json, "args", '{');
    if (is_gpu && track->device >= 0) {
        put_number(row, recorded, "device", track->device);
        if (track->kind == LAC_TRACK_STREAM && track->tid >= 0) {
            put_number(row, recorded, "stream", track->tid);
        }
    }
    /* ours, which is of one process alone; the recorded one may be of several */
    const bool has_correlation = slices->corr != NULL && slices->corr[slice] != 0;
    if (has_correlation) {
        lac_json_uint(&row->json, "correlation", slices->corr[slice]);
    }
    uint32_t detail = slices->detail != NULL ? slices->detail[slice] : LAC_NONE;
    if (kind == LAC_SLICE_KERNEL) {
        put_kernel(row, recorded, detail);
    } else if (is_gpu && detail < model->copy_count) {
        put_node(row, recorded, model->copies[detail].graph_node, model->copies[detail].module);
        if (model->copies[detail].bytes >= 0) {
            put_number(row, recorded, "bytes", model->copies[detail].bytes);
        }
    } else if (kind == LAC_SLICE_RANGE) {
        put_loader(row, recorded, detail);
    }
    struct lac_json_member member;
    while (lac_json_member_next(&recorded, &member)) {
        if (has_correlation && lac_json_member_is(&member, "correlation")) {
            put_recorded_correlation(row, &member, slices->corr[slice]);
        } else {
            lac_json_member(&row->json, &member);
        }
    }
    lac_json_close(&row->json, '}');
}

const char *lac_slice_category(uint8_t kind)
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

const char *lac_slice_json_name(struct lac_slice_json *row, uint64_t slice,
                                struct lac_copy_name *room)
{
    static const char *const memory[] = {"Unknown", "Pageable", "Pinned",
                                         "Device",  "Array",    "Managed"};
    const struct lac_model *model = row->source->model;
    struct lac_redactor *redactor = row->source->redactor;
    const char *name = lac_model_str(model, model->slices.name[slice]);
    uint8_t kind = model->slices.kind[slice];
    uint32_t detail = model->slices.detail != NULL ? model->slices.detail[slice] : LAC_NONE;
    bool is_given = lac_redact_is_given(kind, name);
    if (kind == LAC_SLICE_COPY && detail < model->copy_count && !names_its_copy(name)) {
        const struct lac_copy *facts = &model->copies[detail];
        (void)snprintf(room->text, sizeof(room->text), "Memcpy %s (%s -> %s)",
                       lac_copy_kind_name((enum lac_copy_kind)facts->copy_kind),
                       memory[facts->src < 6 ? facts->src : 0],
                       memory[facts->dst < 6 ? facts->dst : 0]);
        name = room->text;
    }
    return is_given ? lac_redact_given(redactor, name, "range") : lac_redact(redactor, name);
}

void lac_slice_json_done(struct lac_slice_json *row)
{
    free(row->recorded);
    row->recorded = NULL;
}
