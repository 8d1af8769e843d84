/*
 * Databases of nvprof and the Visual Profiler. CUPTI's records, a table a kind, of one process:
 * calls by number, threads by the number that the system gave them, ranges as two marks.
 */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum call_kind { RUNTIME, DRIVER };
enum { CALLS_A_ROW = 16 };

static const struct {
    enum call_kind kind;
    const char *names; /* of CALLS_A_ROW calls, a space behind each */
} ROWS[] = {
#define LAC_CUDA_CALLS(KIND, text) {(KIND), (text)},
#include "analysis/import/nsys/cuda_calls.def"
#undef LAC_CUDA_CALLS
};

/* ---- names of calls ---- */

/* The names from that call on; NULL: there is none of that number. */
static const char *names_from(enum call_kind kind, uint32_t number)
{
    uint32_t row = number == 0 ? UINT32_MAX : (number - 1) / CALLS_A_ROW;
    for (size_t i = 0; i < LAC_COUNT_OF(ROWS); i++) {
        if (ROWS[i].kind != kind || row-- != 0) {
            continue;
        }
        const char *at = ROWS[i].names;
        for (uint32_t skip = (number - 1) % CALLS_A_ROW; skip > 0; skip--) {
            at = strchr(at, ' ') + 1;
        }
        return at;
    }
    return NULL;
}

static enum lac_status name_of_number(struct lac_nsys *nsys, enum call_kind kind, uint32_t number,
                                      uint32_t *ret_id)
{
    const char *at = names_from(kind, number);
    if (at == NULL || *at == '-') {
        return lac_nsys_intern_own(nsys, ret_id, "%s call %u",
                                   kind == RUNTIME ? "runtime" : "driver", number);
    }
    return lac_nsys_intern_own(nsys, ret_id, "%.*s", (int)(strchr(at, ' ') - at), at);
}

static enum lac_status call_name(struct lac_nsys *nsys, enum call_kind kind, uint32_t number,
                                 uint32_t *ret_id)
{
    uint32_t *entry = lac_nsys_map_at(&nsys->call_of, (uint64_t)number << 1 | (uint64_t)kind);
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        enum lac_status status = name_of_number(nsys, kind, number, entry);
        if (status != LAC_OK) {
            return status;
        }
    }
    *ret_id = *entry;
    return LAC_OK;
}

/* ---- threads ---- */

static enum lac_status thread_of(struct lac_nsys *nsys, enum lac_track_kind kind, uint32_t pid,
                                 uint32_t tid, uint32_t *ret_track)
{
    uint32_t process = 0;
    uint32_t id_text = 0;
    enum lac_status status = lac_nsys_process(nsys, (int64_t)(pid & 0xffffff) << 24, &process);
    if (status != LAC_OK) {
        return status;
    }
    uint64_t key = (uint64_t)process << 40 | (uint64_t)tid << 4 | (uint64_t)kind;
    uint32_t *entry = lac_nsys_map_at(&nsys->track_of, key);
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        status = lac_nsys_intern_own(nsys, &id_text, "%u", tid);
        if (status == LAC_OK) {
            status = lac_nsys_pass(
                nsys, lac_builder_track(nsys->builder, kind, process, id_text, tid, entry));
        }
        if (status != LAC_OK) {
            return status;
        }
        lac_builder_track_at(nsys->builder, *entry)->device = -1;
    }
    *ret_track = *entry;
    return LAC_OK;
}

/* Thread numbers are of 32 bits; some versions wrote them with a sign. */
static uint32_t low_bits(const struct lac_nsys_rows *rows, int column)
{
    return (uint32_t)(uint64_t)lac_nsys_rows_integer_or(rows, column, 0);
}

/* ---- calls ---- */

enum { START, END, PROCESS, THREAD, NUMBER, CORRELATION, RETURNED };
static const char *const CALL_COLUMNS[] = {"start", "end",           "processId",   "threadId",
                                           "cbid",  "correlationId", "returnValue", NULL};

static enum lac_status on_own_process(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    if (nsys->own_process == 0) {
        nsys->own_process = (int64_t)(low_bits(rows, 0) & 0xffffff) << 24;
    }
    return LAC_OK;
}

static enum lac_status on_call(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                               enum call_kind kind)
{
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_API};
    bool is_good = false;
    enum lac_status status = lac_nsys_interval(nsys, rows, &slice, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    status = thread_of(nsys, LAC_TRACK_THREAD, low_bits(rows, PROCESS), low_bits(rows, THREAD),
                       &slice.track);
    if (status == LAC_OK) {
        status = call_name(nsys, kind, lac_nsys_rows_u32(rows, NUMBER, 0), &slice.name);
    }
    slice.corr = lac_nsys_rows_u32(rows, CORRELATION, 0);
    slice.detail = lac_nsys_rows_u32(rows, RETURNED, LAC_NONE);
    return status == LAC_OK ? lac_nsys_add(nsys, &slice) : status;
}

static enum lac_status on_runtime(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    return on_call(nsys, rows, RUNTIME);
}

static enum lac_status on_driver(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    return on_call(nsys, rows, DRIVER);
}

/* ---- ranges ---- */

enum { INSTANT_FLAG = 1, START_FLAG = 2, END_FLAG = 4, OBJECT_THREAD = 2 };
enum { TIME, FLAGS, ID, OBJECT_KIND, OBJECT, NAME };
static const char *const MARKER_COLUMNS[] = {"timestamp", "flags", "id", "objectKind",
                                             "objectId",  "name",  NULL};

static uint32_t u32_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static enum lac_status begin_range(struct lac_nsys *nsys, uint32_t *entry,
                                   const struct lac_slice_in *slice)
{
    if (LAC_GROW(nsys->open, &nsys->open_capacity, nsys->open_count + 1) != LAC_OK) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    *entry = nsys->open_count;
    nsys->open[nsys->open_count++] = (struct lac_nsys_open){.slice = *slice};
    return LAC_OK;
}

static enum lac_status end_range(struct lac_nsys *nsys, const uint32_t *entry, int64_t end_ns)
{
    if (*entry == LAC_NONE || nsys->open[*entry].slice.dur_ns >= 0) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "range_end_alone", 1, 0,
                         "Ends of ranges without a beginning were dropped.");
        return LAC_OK;
    }
    struct lac_slice_in *slice = &nsys->open[*entry].slice;
    slice->dur_ns = end_ns > slice->start_ns ? end_ns - slice->start_ns : 0;
    return lac_nsys_add(nsys, slice);
}

static enum lac_status on_marker(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_RANGE, .dur_ns = -1};
    uint32_t flags = lac_nsys_rows_u32(rows, FLAGS, 0);
    size_t size = 0;
    const unsigned char *object = lac_nsys_rows_blob(rows, OBJECT, &size);
    uint32_t pid = (uint32_t)((uint64_t)nsys->own_process >> 24);
    bool has_thread =
        object != NULL && size >= 8 && lac_nsys_rows_u32(rows, OBJECT_KIND, 0) == OBJECT_THREAD;
    if (!lac_nsys_rows_integer(rows, TIME, &slice.start_ns) || !lac_nsys_is_time(slice.start_ns)) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return LAC_OK;
    }
    if ((flags & (INSTANT_FLAG | START_FLAG | END_FLAG)) == 0) {
        return LAC_OK; /* locks */
    }
    uint32_t *entry =
        lac_nsys_map_at(&nsys->marker_of, (uint64_t)lac_nsys_rows_integer_or(rows, ID, 0));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if ((flags & END_FLAG) != 0) {
        return end_range(nsys, entry, slice.start_ns);
    }
    bool is_instant = (flags & INSTANT_FLAG) != 0;
    enum lac_status status = thread_of(nsys, is_instant ? LAC_TRACK_MARKS : LAC_TRACK_THREAD,
                                       has_thread ? u32_at(object) : pid,
                                       has_thread ? u32_at(object + 4) : 0, &slice.track);
    if (status == LAC_OK) {
        status = lac_nsys_column_name(nsys, rows, -1, NAME, &slice.name);
    }
    if (status == LAC_OK && is_instant) {
        slice.kind = LAC_SLICE_INSTANT;
        slice.dur_ns = 0;
        return lac_nsys_add(nsys, &slice);
    }
    return status == LAC_OK ? begin_range(nsys, entry, &slice) : status;
}

/* Ranges that had not ended when the recording did end with it. */
static enum lac_status end_open_ranges(struct lac_nsys *nsys)
{
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < nsys->open_count && status == LAC_OK; i++) {
        struct lac_slice_in *slice = &nsys->open[i].slice;
        if (slice->dur_ns < 0) {
            slice->dur_ns = nsys->last_ns > slice->start_ns ? nsys->last_ns - slice->start_ns : 0;
            lac_model_report(nsys->model, LAC_REPORT_REPAIRED, "range_unfinished", 1, 0,
                             "Ranges that had not ended were ended with the recording.");
            status = lac_nsys_add(nsys, slice);
        }
    }
    return status;
}

/* ---- devices ---- */

static enum lac_status on_device(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { DEVICE, DEVICE_NAME, SM_COUNT, MEMORY, MAJOR, MINOR };
    uint32_t id = lac_nsys_rows_u32(rows, DEVICE, LAC_NONE);
    uint32_t name = 0;
    enum lac_status status = lac_nsys_column_name(nsys, rows, DEVICE_NAME, DEVICE_NAME, &name);
    for (uint32_t i = 0; i < nsys->model->device_count && status == LAC_OK; i++) {
        struct lac_device *device = &nsys->model->devices[i];
        if (device->id == (int64_t)id) {
            int64_t bytes = lac_nsys_rows_integer_or(rows, MEMORY, 0);
            device->name = name;
            device->sm_count = (int32_t)(lac_nsys_rows_u32(rows, SM_COUNT, 0) & 0xffff);
            device->cc_major = (int32_t)(lac_nsys_rows_u32(rows, MAJOR, 0) & 0xff);
            device->cc_minor = (int32_t)(lac_nsys_rows_u32(rows, MINOR, 0) & 0xff);
            device->memory_bytes = bytes > 0 ? bytes : 0;
        }
    }
    return status;
}

/* ---- all of it ---- */

enum lac_status lac_nsys_read_nvprof(struct lac_nsys *nsys)
{
    static const char *const PROCESS_COLUMNS[] = {"processId", NULL};
    static const char *const DEVICE_COLUMNS[] = {"id",
                                                 "name",
                                                 "numMultiprocessors",
                                                 "globalMemorySize",
                                                 "computeCapabilityMajor",
                                                 "computeCapabilityMinor",
                                                 NULL};
    static const struct {
        const char *table;
        const char *const *columns;
        bool is_event;
        enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows);
    } TABLES[] = {
        {"CUPTI_ACTIVITY_KIND_RUNTIME", CALL_COLUMNS, true, on_runtime},
        {"CUPTI_ACTIVITY_KIND_DRIVER", CALL_COLUMNS, true, on_driver},
        {"CUPTI_ACTIVITY_KIND_MARKER", MARKER_COLUMNS, true, on_marker},
        {"CUPTI_ACTIVITY_KIND_DEVICE", DEVICE_COLUMNS, false, on_device},
    };
    enum lac_status status = lac_nsys_read_strings(nsys);
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, "CUPTI_ACTIVITY_KIND_RUNTIME", PROCESS_COLUMNS, false,
                               on_own_process);
    }
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, "CUPTI_ACTIVITY_KIND_DRIVER", PROCESS_COLUMNS, false,
                               on_own_process);
    }
    if (status == LAC_OK) {
        status = lac_nsys_read_nvprof_gpu(nsys);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status = lac_nsys_each(nsys, TABLES[i].table, TABLES[i].columns, TABLES[i].is_event,
                               TABLES[i].on_row);
    }
    if (status == LAC_OK) {
        status = end_open_ranges(nsys);
    }
    if (status == LAC_OK && nsys->slice_count == 0) {
        status = lac_fail(nsys->reterr, LAC_ERR_CORRUPT, 0,
                          "an nvprof database in which nothing was recorded: profile with "
                          "nvprof -o FILE, and let the program end before it is copied");
    }
    return status;
}
