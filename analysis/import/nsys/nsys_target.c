/* What an Nsight Systems export says of machine, processes, devices and itself. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- names of processes and threads; only of those that have rows ---- */

static enum lac_status on_process(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    int64_t global_pid;
    if (!lac_nsys_rows_integer(rows, 0, &global_pid)) {
        return LAC_OK;
    }
    uint32_t process = lac_nsys_map_get(&nsys->process_of, (uint64_t)global_pid >> 24);
    if (process == LAC_NONE) {
        return LAC_OK;
    }
    uint32_t name = 0;
    enum lac_status status = lac_nsys_column_name(nsys, rows, 1, 1, &name);
    if (status == LAC_OK) {
        lac_builder_process_at(nsys->builder, process)->name = name;
    }
    return status;
}

static enum lac_status on_thread(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    static const enum lac_track_kind ROWS[] = {LAC_TRACK_THREAD, LAC_TRACK_MARKS,
                                               LAC_TRACK_PROFILE};
    int64_t global_tid;
    uint32_t name = 0;
    if (!lac_nsys_rows_integer(rows, 0, &global_tid)) {
        return LAC_OK;
    }
    uint32_t process = lac_nsys_map_get(&nsys->process_of, (uint64_t)global_tid >> 24);
    for (size_t i = 0; i < LAC_COUNT_OF(ROWS) && process != LAC_NONE; i++) {
        uint32_t track =
            lac_nsys_map_get(&nsys->track_of, lac_nsys_thread_key(process, global_tid, ROWS[i]));
        if (track == LAC_NONE || lac_builder_track_at(nsys->builder, track)->name != 0) {
            continue; /* NVTX names are the program's own: they stay */
        }
        enum lac_status status = lac_nsys_column_name(nsys, rows, 1, 1, &name);
        if (status != LAC_OK) {
            return status;
        }
        lac_builder_track_at(nsys->builder, track)->name = name;
    }
    return LAC_OK;
}

/* ---- devices ---- */

enum { PID_BITS = 0xffffff, ANY_DEVICE = LAC_NSYS_DEVICES };

static uint64_t own_gpu_key(int64_t pid, int64_t device)
{
    return (uint64_t)(pid & PID_BITS) << 32 | (uint64_t)device;
}

/* Which processes use a GPU, by the number that the table of devices has. */
static enum lac_status mark_processes(struct lac_nsys *nsys)
{
    const struct lac_nsys_map *users = &nsys->gpu_pid_of;
    for (uint64_t i = 0; i < users->slot_count; i++) {
        if (users->values[i] == LAC_NONE) {
            continue;
        }
        uint32_t *entry =
            lac_nsys_map_at(&nsys->own_gpu_of, own_gpu_key((int64_t)users->keys[i], ANY_DEVICE));
        if (entry == NULL) {
            return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
        }
        *entry = 1;
    }
    return LAC_OK;
}

/* What a process calls a GPU of the machine, and whether another one calls another GPU so. */
static enum lac_status on_own_gpu(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    const uint32_t gpu = lac_nsys_rows_u32(rows, 0, LAC_NONE);
    const uint32_t cuda = lac_nsys_rows_u32(rows, 1, LAC_NONE);
    int64_t pid;
    if (gpu >= LAC_NSYS_DEVICES || cuda >= LAC_NSYS_DEVICES ||
        !lac_nsys_rows_integer(rows, 2, &pid)) {
        return LAC_OK;
    }
    if (lac_nsys_map_get(&nsys->own_gpu_of, own_gpu_key(pid, ANY_DEVICE)) == LAC_NONE) {
        return LAC_OK; /* who launched the others may see all of them */
    }
    uint32_t *entry = lac_nsys_map_at(&nsys->own_gpu_of, own_gpu_key(pid, cuda));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    *entry = gpu + 1;
    nsys->has_own_gpus =
        nsys->has_own_gpus || (nsys->gpu_of[cuda] != 0 && nsys->gpu_of[cuda] != gpu + 1);
    nsys->gpu_of[cuda] = (uint16_t)(gpu + 1);
    return LAC_OK;
}

enum lac_status lac_nsys_find_own_gpus(struct lac_nsys *nsys)
{
    static const char *const COLUMNS[] = {"gpuId", "cudaId", "pid", NULL};
    enum lac_status status = mark_processes(nsys);
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, "TARGET_INFO_CUDA_DEVICE", COLUMNS, false, on_own_gpu);
    }
    if (status == LAC_OK && nsys->has_own_gpus) {
        lac_model_report(nsys->model, LAC_REPORT_INFO, "devices_by_machine", 1, 0,
                         "Processes see GPUs of their own under the same numbers: devices have the "
                         "machine's numbers.");
    }
    return status;
}

int64_t lac_nsys_device(const struct lac_nsys *nsys, int64_t global_id, int64_t device)
{
    if (!nsys->has_own_gpus || device < 0 || device >= LAC_NSYS_DEVICES) {
        return device;
    }
    const uint32_t gpu = lac_nsys_map_get(&nsys->own_gpu_of, own_gpu_key(global_id >> 24, device));
    return gpu != LAC_NONE && gpu != 0 ? (int64_t)gpu - 1 : device;
}

/* CUDA device number -> GPU of the machine, where the file says; else the same number. */
static enum lac_status on_cuda_device(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    const uint32_t gpu = lac_nsys_rows_u32(rows, 0, LAC_NONE);
    const uint32_t cuda = nsys->has_own_gpus ? gpu : lac_nsys_rows_u32(rows, 1, LAC_NONE);
    if (gpu < LAC_NSYS_DEVICES && cuda < LAC_NSYS_DEVICES) {
        nsys->gpu_of[cuda] = (uint16_t)(gpu + 1);
    }
    return LAC_OK;
}

static enum lac_status on_gpu(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { ID, CUDA, NAME, SM_COUNT, MEMORY, MAJOR, MINOR };
    uint32_t id = lac_nsys_rows_u32(rows, ID, LAC_NONE);
    uint32_t cuda = lac_nsys_rows_u32(rows, CUDA, id);
    uint32_t name = 0;
    enum lac_status status = lac_nsys_column_name(nsys, rows, NAME, NAME, &name);
    for (uint32_t i = 0; i < nsys->model->device_count && status == LAC_OK; i++) {
        struct lac_device *device = &nsys->model->devices[i];
        uint64_t number = (uint64_t)device->id;
        uint32_t known = number < LAC_NSYS_DEVICES ? nsys->gpu_of[number] : 0;
        if (known != 0 ? known - 1 != id : cuda != number) {
            continue;
        }
        device->name = name;
        device->sm_count = (int32_t)(lac_nsys_rows_u32(rows, SM_COUNT, 0) & 0xffff);
        device->cc_major = (int32_t)(lac_nsys_rows_u32(rows, MAJOR, 0) & 0xff);
        device->cc_minor = (int32_t)(lac_nsys_rows_u32(rows, MINOR, 0) & 0xff);
        int64_t memory_bytes = lac_nsys_rows_integer_or(rows, MEMORY, 0);
        device->memory_bytes = memory_bytes > 0 ? memory_bytes : 0;
    }
    return status;
}

/* ---- the file itself ---- */

static enum lac_status on_start(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    int64_t utc_ns;
    if (lac_nsys_rows_integer(rows, 0, &utc_ns) && utc_ns > 0 && utc_ns < INT64_MAX / 2) {
        nsys->base_ns = utc_ns;
    }
    return LAC_OK;
}

static bool is_text(const struct lac_nsys_rows *rows, int column, const char *text)
{
    size_t size = 0;
    const char *value = lac_nsys_rows_text(rows, column, &size);
    return value != NULL && strlen(text) == size && memcmp(value, text, size) == 0;
}

static enum lac_status on_environment(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    if (nsys->model->info.host != 0 || !is_text(rows, 0, "Hostname")) {
        return LAC_OK;
    }
    return lac_nsys_column_name(nsys, rows, 1, -1, &nsys->model->info.host);
}

/* A member of the metadata, text made harmless: whatever is not a plain character becomes "_". */
static void member(struct lac_nsys *nsys, const char *key, const char *value, size_t size)
{
    char *to = nsys->metadata;
    size_t room = sizeof(nsys->metadata) - nsys->metadata_used;
    if (size > 200 || room < size + strlen(key) + 16) {
        return;
    }
    nsys->metadata_used += (size_t)snprintf(to + nsys->metadata_used, room, "%s\"%s\":\"",
                                            nsys->metadata_used == 0 ? "{\"nsys\":{" : ",", key);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)value[i];
        bool is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        to[nsys->metadata_used] = '_';
        if (is_plain) {
            to[nsys->metadata_used] = value[i];
        }
        nsys->metadata_used++;
    }
    to[nsys->metadata_used++] = '"';
}

static enum lac_status on_export(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    static const struct {
        const char *name;
        const char *key;
    } KEPT[] = {
        {"EXPORT_PRODUCT_NAME", "product"},
        {"EXPORT_PRODUCT_VERSION", "product_version"},
        {"EXPORT_SCHEMA_VERSION", "schema_version"},
        {"EXPORT_PLATFORM", "platform"},
        {"EXPORT_ARCH", "arch"},
    };
    size_t size = 0;
    const char *value = lac_nsys_rows_text(rows, 1, &size);
    for (size_t i = 0; i < LAC_COUNT_OF(KEPT) && value != NULL; i++) {
        if (is_text(rows, 0, KEPT[i].name)) {
            member(nsys, KEPT[i].key, value, size);
        }
    }
    return LAC_OK;
}

/* ---- tables that are there and not read ---- */

static bool is_read(const char *table)
{
    static const char *const TABLES[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                         "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET",
                                         "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                         "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME",
                                         "CUPTI_ACTIVITY_KIND_OVERHEAD",
                                         "PROFILER_OVERHEAD",
                                         "OSRT_API",
                                         "CUDNN_EVENTS",
                                         "CUBLAS_EVENTS",
                                         "NVTX_EVENTS",
                                         "GPU_METRICS",
                                         "COMPOSITE_EVENTS",
                                         "SAMPLING_CALLCHAINS",
                                         "StringIds",
                                         "PROCESSES",
                                         "ThreadNames",
                                         "META_DATA_CAPTURE",
                                         "META_DATA_EXPORT",
                                         "EXPORT_META_DATA",
                                         "CAPTURE_META_DATA",
                                         "ProcessStreams",
                                         "ANALYSIS_FILE",
                                         "ANALYSIS_DETAILS",
                                         "NVTX_PAYLOAD_SCHEMAS",
                                         "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                                         "DIAGNOSTIC_EVENT"};
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES); i++) {
        if (strcmp(TABLES[i], table) == 0) {
            return true;
        }
    }
    return strncmp(table, "ENUM_", 5) == 0 || strncmp(table, "TARGET_INFO_", 12) == 0 ||
           strncmp(table, "sqlite_", 7) == 0;
}

static enum lac_status on_table(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    size_t size = 0;
    char name[64];
    size_t sql_size = 0;
    const char *sql = is_text(rows, 1, "table") ? lac_nsys_rows_text(rows, 2, &sql_size) : NULL;
    const char *text = lac_nsys_rows_text(rows, 0, &size);
    if (sql == NULL || !lac_nsys_db_is_plain(sql, sql_size) || text == NULL || size == 0 ||
        size >= sizeof(name)) {
        return LAC_OK;
    }
    for (size_t i = 0; i < size; i++) {
        bool is_plain = (text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z') ||
                        (text[i] >= '0' && text[i] <= '9') || text[i] == '_';
        if (!is_plain) {
            return LAC_OK; /* no name that the tool gives */
        }
        name[i] = text[i];
    }
    name[size] = '\0';
    uint64_t row_count = is_read(name) ? 0 : lac_nsys_db_row_count(&nsys->db, name);
    size_t used = strlen(nsys->unread);
    if (row_count > 0) {
        (void)snprintf(nsys->unread + used, sizeof(nsys->unread) - used, "%s%s (%" PRIu64 ")",
                       used == 0 ? "Tables that are not read (rows): " : ", ", name, row_count);
        nsys->unread_count++;
    }
    return LAC_OK;
}

/* ---- all of it ---- */

enum lac_status lac_nsys_read_target(struct lac_nsys *nsys, int64_t *ret_base_ns)
{
    static const char *const PROCESS[] = {"globalPid", "name", NULL};
    static const char *const THREAD[] = {"globalTid", "nameId", NULL};
    static const char *const CUDA[] = {"gpuId", "cudaId", NULL};
    static const char *const GPU[] = {"id",          "cuDevice",     "name",         "smCount",
                                      "totalMemory", "computeMajor", "computeMinor", NULL};
    static const char *const START[] = {"utcEpochNs", NULL};
    static const char *const PAIR[] = {"name", "value", NULL};
    static const char *const SCHEMA[] = {"name", "type", "sql", NULL};
    static const struct {
        const char *table;
        const char *const *columns;
        enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows);
    } TABLES[] = {
        {"PROCESSES", PROCESS, on_process},
        {"ThreadNames", THREAD, on_thread},
        {"TARGET_INFO_CUDA_DEVICE", CUDA, on_cuda_device},
        {"TARGET_INFO_GPU", GPU, on_gpu},
        {"TARGET_INFO_SESSION_START_TIME", START, on_start},
        {"TARGET_INFO_SYSTEM_ENV", PAIR, on_environment},
        {"META_DATA_EXPORT", PAIR, on_export},
        {"EXPORT_META_DATA", PAIR, on_export},
    };
    enum lac_status status = LAC_OK;
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status = lac_nsys_each(nsys, TABLES[i].table, TABLES[i].columns, false, TABLES[i].on_row);
    }
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, LAC_NSYS_SCHEMA, SCHEMA, false, on_table);
    }
    if (status == LAC_OK && nsys->unread_count > 0) {
        lac_model_report(nsys->model, LAC_REPORT_INFO, "tables_not_read", nsys->unread_count, 0,
                         nsys->unread);
    }
    if (status == LAC_OK && nsys->metadata_used > 0) {
        memcpy(nsys->metadata + nsys->metadata_used, "}}", 2);
        status = lac_nsys_pass(nsys, lac_strings_intern(&nsys->model->strings, nsys->metadata,
                                                        nsys->metadata_used + 2,
                                                        &nsys->model->info.metadata));
    }
    *ret_base_ns = nsys->base_ns;
    return status;
}
