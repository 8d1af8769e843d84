/*
 * Databases of ROCm: rocpd of rocprofv3 (tables with a GUID behind their names, one set for each
 * process that was recorded; schema 3, and 4, which keeps times in a table of their own), and the
 * files of rocmProfileData (.rpd), from which the format came.
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
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 256, SUFFIX_BYTES = 56, TABLE_BYTES = 96 };

/** Something of an info table, by its id. */
struct rocm_thing {
    int64_t number; /**< pid, tid, index of a GPU (-1: no GPU) */
    uint32_t name;
    uint32_t other; /**< of a symbol: registers */
};

/** A row of rocpd_track. */
struct rocm_track {
    int64_t process, thread, agent, queue, stream;
};

/** Rows by id: ids count from 1. */
struct rocm_list {
    void *at;
    uint64_t count;
    uint64_t capacity;
};

struct rocm {
    struct lac_nsys *nsys;
    char suffix[SUFFIX_BYTES];
    struct lac_nsys_map processes, threads, agents, symbols; /**< id -> index of things */
    struct lac_nsys_map tracks;                              /**< id -> index of track_rows */
    struct rocm_thing *things;
    uint64_t thing_count, thing_capacity;
    struct rocm_track *track_rows;
    uint64_t track_count, track_capacity;
    int64_t *stamps; /**< schema 4: by id */
    uint64_t stamp_count, stamp_capacity;
    uint32_t *stacks; /**< of events, by id: what ties a call to its operation */
    uint64_t stack_count, stack_capacity;
    uint32_t *categories; /**< of events, by id: a string of the model */
    uint64_t category_count, category_capacity;
};

/* ---- reading rows ---- */

typedef enum lac_status (*on_rocm_row)(struct rocm *rocm, const struct lac_nsys_rows *rows);

static enum lac_status each(struct rocm *rocm, const char *prefix, const char *const *columns,
                            bool is_event, on_rocm_row on_row)
{
    char table[TABLE_BYTES];
    struct lac_nsys_rows rows;
    bool found = false;
    (void)snprintf(table, sizeof(table), "%s%s", prefix, rocm->suffix);
    enum lac_status status =
        lac_nsys_rows_open(&rows, &rocm->nsys->db, table, columns, NULL, is_event);
    while (status == LAC_OK) {
        status = lac_nsys_rows_next(&rows, &found);
        if (status != LAC_OK || !found) {
            break;
        }
        status = on_row(rocm, &rows);
    }
    lac_nsys_rows_close(&rows);
    return status;
}

/* Room for entry `id` of a list by ids, which cannot count more rows than the file has bytes. */
static bool has_room(const struct rocm *rocm, int64_t id)
{
    return id >= 0 && (uint64_t)id <= rocm->nsys->db.file_bytes / 4;
}

static enum lac_status keep_thing(struct rocm *rocm, struct lac_nsys_map *map, int64_t id,
                                  struct rocm_thing thing)
{
    uint32_t *index = lac_nsys_map_at(map, (uint64_t)id);
    if (index == NULL ||
        LAC_GROW(rocm->things, &rocm->thing_capacity, rocm->thing_count + 1) != LAC_OK) {
        return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
    }
    *index = (uint32_t)rocm->thing_count;
    rocm->things[rocm->thing_count++] = thing;
    return LAC_OK;
}

static const struct rocm_thing *thing_of(const struct rocm *rocm, const struct lac_nsys_map *map,
                                         int64_t id)
{
    uint32_t index = lac_nsys_map_get(map, (uint64_t)id);
    return index == LAC_NONE ? NULL : &rocm->things[index];
}

/* ---- what the file says of processes, threads, devices and kernels ---- */

static enum lac_status on_process(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct rocm_thing thing = {.number = lac_nsys_rows_integer_or(rows, 1, 0) & 0xffffff};
    enum lac_status status = lac_nsys_column_name(rocm->nsys, rows, 2, -1, &thing.name);
    if (status == LAC_OK && thing.name == 0) {
        status = lac_nsys_column_name(rocm->nsys, rows, 3, -1, &thing.name);
    }
    return status == LAC_OK
               ? keep_thing(rocm, &rocm->processes, lac_nsys_rows_integer_or(rows, 0, -1), thing)
               : status;
}

static enum lac_status on_thread(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct rocm_thing thing = {.number = lac_nsys_rows_integer_or(rows, 1, 0) & 0xffffff};
    enum lac_status status = lac_nsys_column_name(rocm->nsys, rows, 2, -1, &thing.name);
    return status == LAC_OK
               ? keep_thing(rocm, &rocm->threads, lac_nsys_rows_integer_or(rows, 0, -1), thing)
               : status;
}

static enum lac_status on_agent(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    enum { ID, TYPE, TYPE_INDEX, LOGICAL_INDEX, PRODUCT, NAME };
    struct rocm_thing thing = {.number = -1};
    size_t size = 0;
    const char *type = lac_nsys_rows_text(rows, TYPE, &size);
    if (type != NULL && size == 3 && memcmp(type, "GPU", 3) == 0) {
        uint32_t index = lac_nsys_rows_u32(rows, TYPE_INDEX, LAC_NONE);
        index = index == LAC_NONE ? lac_nsys_rows_u32(rows, LOGICAL_INDEX, 0) : index;
        thing.number = index % LAC_NSYS_DEVICES;
    }
    enum lac_status status = lac_nsys_column_name(rocm->nsys, rows, PRODUCT, -1, &thing.name);
    if (status == LAC_OK && thing.name == 0) {
        status = lac_nsys_column_name(rocm->nsys, rows, NAME, -1, &thing.name);
    }
    return status == LAC_OK
               ? keep_thing(rocm, &rocm->agents, lac_nsys_rows_integer_or(rows, ID, -1), thing)
               : status;
}

static enum lac_status on_symbol(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct rocm_thing thing = {.other = lac_nsys_rows_u32(rows, 3, 0)};
    enum lac_status status = lac_nsys_column_name(rocm->nsys, rows, 1, -1, &thing.name);
    if (status == LAC_OK && thing.name == 0) {
        status = lac_nsys_column_name(rocm->nsys, rows, 2, -1, &thing.name);
    }
    return status == LAC_OK
               ? keep_thing(rocm, &rocm->symbols, lac_nsys_rows_integer_or(rows, 0, -1), thing)
               : status;
}

static enum lac_status on_track(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    uint32_t *index =
        lac_nsys_map_at(&rocm->tracks, (uint64_t)lac_nsys_rows_integer_or(rows, 0, -1));
    if (index == NULL ||
        LAC_GROW(rocm->track_rows, &rocm->track_capacity, rocm->track_count + 1) != LAC_OK) {
        return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
    }
    *index = (uint32_t)rocm->track_count;
    rocm->track_rows[rocm->track_count++] =
        (struct rocm_track){.process = lac_nsys_rows_integer_or(rows, 1, -1),
                            .thread = lac_nsys_rows_integer_or(rows, 2, -1),
                            .agent = lac_nsys_rows_integer_or(rows, 3, -1),
                            .queue = lac_nsys_rows_integer_or(rows, 4, -1),
                            .stream = lac_nsys_rows_integer_or(rows, 5, -1)};
    return LAC_OK;
}

static enum lac_status on_stamp(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    int64_t id = lac_nsys_rows_integer_or(rows, 0, -1);
    if (!has_room(rocm, id)) {
        return LAC_OK;
    }
    const uint64_t count = rocm->stamp_count;
    if (LAC_GROW(rocm->stamps, &rocm->stamp_capacity, (uint64_t)id + 1) != LAC_OK) {
        return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
    }
    for (uint64_t i = count; i < (uint64_t)id; i++) {
        rocm->stamps[i] = INT64_MIN;
    }
    rocm->stamps[id] = lac_nsys_rows_integer_or(rows, 1, INT64_MIN);
    rocm->stamp_count = (uint64_t)id + 1 > count ? (uint64_t)id + 1 : count;
    return LAC_OK;
}

static enum lac_status on_event(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    int64_t id = lac_nsys_rows_integer_or(rows, 0, -1);
    if (!has_room(rocm, id)) {
        return LAC_OK;
    }
    const uint64_t count = rocm->stack_count;
    if (LAC_GROW(rocm->stacks, &rocm->stack_capacity, (uint64_t)id + 1) != LAC_OK ||
        LAC_GROW(rocm->categories, &rocm->category_capacity, (uint64_t)id + 1) != LAC_OK) {
        return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
    }
    for (uint64_t i = count; i < (uint64_t)id; i++) {
        rocm->stacks[i] = 0;
        rocm->categories[i] = 0;
    }
    rocm->stack_count = (uint64_t)id + 1 > count ? (uint64_t)id + 1 : count;
    rocm->stacks[id] = lac_nsys_rows_u32(rows, 1, 0);
    return lac_nsys_column_name(rocm->nsys, rows, -1, 2, &rocm->categories[id]);
}

/* ---- events ---- */

/** Columns that every table of events begins with; of schema 4 the last three. */
enum { START, END, PROCESS, THREAD, EVENT, NAME, TRACK, START_ID, END_ID, FIRST_OWN };
#define EVENT_COLUMNS                                                                              \
    "start", "end", "pid", "tid", "event_id", "name_id", "track_id", "start_id", "end_id"

static bool stamp_of(const struct rocm *rocm, int64_t id, int64_t *ret_ns)
{
    if (id < 0 || (uint64_t)id >= rocm->stamp_count || rocm->stamps[id] == INT64_MIN) {
        return false;
    }
    *ret_ns = rocm->stamps[id];
    return true;
}

static bool interval(struct rocm *rocm, const struct lac_nsys_rows *rows,
                     struct lac_slice_in *slice)
{
    int64_t end_ns = 0;
    bool is_good =
        lac_nsys_rows_has(rows, START)
            ? lac_nsys_rows_integer(rows, START, &slice->start_ns) &&
                  lac_nsys_rows_integer(rows, END, &end_ns)
            : stamp_of(rocm, lac_nsys_rows_integer_or(rows, START_ID, -1), &slice->start_ns) &&
                  stamp_of(rocm, lac_nsys_rows_integer_or(rows, END_ID, -1), &end_ns);
    is_good = is_good && lac_nsys_is_time(slice->start_ns) && lac_nsys_is_time(end_ns) &&
              end_ns >= slice->start_ns;
    if (!is_good) {
        lac_model_report(rocm->nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return false;
    }
    slice->dur_ns = end_ns - slice->start_ns;
    return true;
}

static const struct rocm_track *track_row(const struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    uint32_t index =
        lac_nsys_map_get(&rocm->tracks, (uint64_t)lac_nsys_rows_integer_or(rows, TRACK, -1));
    return index == LAC_NONE ? NULL : &rocm->track_rows[index];
}

/* The thread that a row names, as the global id of the other tables. */
static int64_t global_of(const struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    const struct rocm_track *track = track_row(rocm, rows);
    int64_t process = track != NULL ? track->process : lac_nsys_rows_integer_or(rows, PROCESS, -1);
    int64_t thread = track != NULL ? track->thread : lac_nsys_rows_integer_or(rows, THREAD, -1);
    const struct rocm_thing *p = thing_of(rocm, &rocm->processes, process);
    const struct rocm_thing *t = thing_of(rocm, &rocm->threads, thread);
    int64_t pid = p != NULL ? p->number : process & 0xffffff;
    int64_t tid = t != NULL ? t->number : thread & 0xffffff;
    return pid << 24 | tid;
}

static uint32_t stack_of(const struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    int64_t id = lac_nsys_rows_integer_or(rows, EVENT, -1);
    return id >= 0 && (uint64_t)id < rocm->stack_count ? rocm->stacks[id] : 0;
}

/* The row of a GPU operation; false: of no GPU. */
static enum lac_status stream_of(struct rocm *rocm, const struct lac_nsys_rows *rows, int64_t agent,
                                 int64_t queue, int64_t stream, struct lac_slice_in *slice,
                                 bool *ret_is_gpu)
{
    const struct rocm_track *track = track_row(rocm, rows);
    const int64_t global = global_of(rocm, rows);
    if (track != NULL) {
        agent = agent >= 0 ? agent : track->agent;
        queue = track->queue;
        stream = track->stream;
    }
    const struct rocm_thing *device = thing_of(rocm, &rocm->agents, agent);
    *ret_is_gpu = device != NULL && device->number >= 0;
    if (!*ret_is_gpu) {
        return LAC_OK;
    }
    /* stream 0 stands for none: the queue tells more then */
    int64_t row = stream > 0 || queue < 0 ? stream : queue;
    enum lac_status status = lac_nsys_gpu_process(rocm->nsys, global & ~INT64_C(0xffffff));
    if (status == LAC_OK) {
        status = lac_nsys_stream(rocm->nsys, LAC_NSYS_ROW_STREAM, device->number,
                                 global & ~INT64_C(0xffffff), row & 0x7fffffff, &slice->track);
    }
    if (status == LAC_OK) {
        slice->corr = lac_nsys_correlation(rocm->nsys, global, stack_of(rocm, rows));
        struct lac_device *known = lac_builder_device(rocm->nsys->builder, device->number);
        if (known == NULL) {
            return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
        }
        known->name = device->name;
    }
    return status;
}

static uint32_t blocks(uint32_t items, uint32_t block)
{
    return block == 0 ? items : (uint32_t)(((uint64_t)items + block - 1) / block);
}

static enum lac_status on_dispatch(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    enum {
        AGENT = FIRST_OWN,
        KERNEL,
        QUEUE,
        STREAM,
        GROUP,
        BLOCK_X,
        BLOCK_Y,
        BLOCK_Z,
        GRID_X,
        GRID_Y,
        GRID_Z
    };
    struct lac_slice_in slice = {.kind = LAC_SLICE_KERNEL, .detail = LAC_NONE};
    bool is_gpu = false;
    if (!interval(rocm, rows, &slice)) {
        return LAC_OK;
    }
    enum lac_status status = stream_of(rocm, rows, lac_nsys_rows_integer_or(rows, AGENT, -1),
                                       lac_nsys_rows_integer_or(rows, QUEUE, -1),
                                       lac_nsys_rows_integer_or(rows, STREAM, -1), &slice, &is_gpu);
    if (status != LAC_OK || !is_gpu) {
        return status;
    }
    const struct rocm_thing *symbol =
        thing_of(rocm, &rocm->symbols, lac_nsys_rows_integer_or(rows, KERNEL, -1));
    struct lac_kernel_config config = {.block = {lac_nsys_rows_u32(rows, BLOCK_X, 0),
                                                 lac_nsys_rows_u32(rows, BLOCK_Y, 0),
                                                 lac_nsys_rows_u32(rows, BLOCK_Z, 0)},
                                       .shared_memory_bytes = lac_nsys_rows_u32(rows, GROUP, 0),
                                       .occupancy_pct = -1,
                                       .blocks_per_sm = -1};
    for (unsigned i = 0; i < 3; i++) { /* ROCm counts work items */
        config.grid[i] = blocks(lac_nsys_rows_u32(rows, (int)(GRID_X + i), 0), config.block[i]);
    }
    if (symbol != NULL) {
        slice.name = symbol->name;
        config.registers_per_thread = symbol->other;
    }
    status = lac_nsys_pass(rocm->nsys,
                           lac_builder_kernel_config(rocm->nsys->builder, &config, &slice.detail));
    return status == LAC_OK ? lac_nsys_add(rocm->nsys, &slice) : status;
}

static enum lac_copy_kind copy_kind(int64_t from, int64_t to)
{
    return from < 0 && to < 0 ? LAC_COPY_HTOH
           : from < 0         ? LAC_COPY_HTOD
           : to < 0           ? LAC_COPY_DTOH
           : from == to       ? LAC_COPY_DTOD
                              : LAC_COPY_PTOP;
}

/* As the PyTorch profiler names them on ROCm, so that traces of both compare: "Host" says nothing of
 * pinning. */
static const char *copy_name(enum lac_copy_kind kind)
{
    static const char *const NAMES[] = {[LAC_COPY_UNKNOWN] = "Memcpy",
                                        [LAC_COPY_HTOD] = "Memcpy HtoD (Host -> Device)",
                                        [LAC_COPY_DTOH] = "Memcpy DtoH (Device -> Host)",
                                        [LAC_COPY_DTOD] = "Memcpy DtoD (Device -> Device)",
                                        [LAC_COPY_HTOH] = "Memcpy HtoH (Host -> Host)",
                                        [LAC_COPY_PTOP] = "Memcpy PtoP (Device -> Device)"};
    return NAMES[kind];
}

static enum lac_status add_copy(struct rocm *rocm, enum lac_copy_kind kind, int64_t bytes,
                                struct lac_slice_in *slice)
{
    const bool from_host = kind == LAC_COPY_HTOD;
    const struct lac_copy copy = {
        .bytes = bytes,
        .copy_kind = (uint8_t)kind,
        .src = (uint8_t)(from_host ? LAC_MEMORY_UNKNOWN : LAC_MEMORY_DEVICE),
        .dst = (uint8_t)(kind == LAC_COPY_DTOH ? LAC_MEMORY_UNKNOWN : LAC_MEMORY_DEVICE),
        .is_async = 2};
    enum lac_status status =
        lac_nsys_pass(rocm->nsys, lac_builder_copy(rocm->nsys->builder, &copy, &slice->detail));
    if (status == LAC_OK) {
        status = lac_nsys_intern_own(rocm->nsys, &slice->name, "%s",
                                     slice->kind == LAC_SLICE_MEMSET ? "Memset (Device)"
                                                                     : copy_name(kind));
    }
    return status == LAC_OK ? lac_nsys_add(rocm->nsys, slice) : status;
}

static enum lac_status on_copy(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    enum { TO = FIRST_OWN, FROM, SIZE, QUEUE, STREAM };
    struct lac_slice_in slice = {.kind = LAC_SLICE_COPY, .detail = LAC_NONE};
    bool is_gpu = false;
    if (!interval(rocm, rows, &slice)) {
        return LAC_OK;
    }
    const int64_t to_id = lac_nsys_rows_integer_or(rows, TO, -1);
    const int64_t from_id = lac_nsys_rows_integer_or(rows, FROM, -1);
    const struct rocm_thing *to = thing_of(rocm, &rocm->agents, to_id);
    const struct rocm_thing *from = thing_of(rocm, &rocm->agents, from_id);
    const int64_t to_gpu = to != NULL ? to->number : -1;
    const int64_t from_gpu = from != NULL ? from->number : -1;
    enum lac_status status = stream_of(rocm, rows, to_gpu >= 0 ? to_id : from_id,
                                       lac_nsys_rows_integer_or(rows, QUEUE, -1),
                                       lac_nsys_rows_integer_or(rows, STREAM, -1), &slice, &is_gpu);
    if (status != LAC_OK || !is_gpu) {
        return status;
    }
    return add_copy(rocm, copy_kind(from_gpu, to_gpu), lac_nsys_rows_integer_or(rows, SIZE, -1),
                    &slice);
}

/* A call of HIP or HSA, a range of the program (roctx), or something else of a library. */
static enum lac_slice_kind kind_of(const char *category, const char *name)
{
    return strstr(category, "MARKER") != NULL ? LAC_SLICE_RANGE
           : strncmp(name, "hip", 3) == 0 || strncmp(name, "hsa_", 4) == 0 ||
                   strstr(category, "HIP_") != NULL || strstr(category, "HSA_") != NULL
               ? LAC_SLICE_API
               : LAC_SLICE_OTHER;
}

static enum lac_status on_region(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct lac_nsys *nsys = rocm->nsys;
    struct lac_slice_in slice = {.detail = LAC_NONE};
    const int64_t global = global_of(rocm, rows);
    const int64_t event = lac_nsys_rows_integer_or(rows, EVENT, -1);
    if (!interval(rocm, rows, &slice)) {
        return LAC_OK;
    }
    enum lac_status status = lac_nsys_thread(nsys, LAC_TRACK_THREAD, global, &slice.track);
    if (status == LAC_OK) {
        status = lac_nsys_column_name(nsys, rows, -1, NAME, &slice.name);
    }
    if (status != LAC_OK) {
        return status;
    }
    const uint32_t category =
        event >= 0 && (uint64_t)event < rocm->stack_count ? rocm->categories[event] : 0;
    slice.kind =
        kind_of(lac_model_str(nsys->model, category), lac_model_str(nsys->model, slice.name));
    slice.corr =
        slice.kind == LAC_SLICE_API ? lac_nsys_correlation(nsys, global, stack_of(rocm, rows)) : 0;
    return lac_nsys_add(nsys, &slice);
}

/* ---- one set of tables ---- */

static enum lac_status name_rows(struct rocm *rocm)
{
    struct lac_nsys *nsys = rocm->nsys;
    for (uint64_t i = 0; i < rocm->processes.slot_count; i++) {
        if (rocm->processes.values[i] != LAC_NONE) {
            const struct rocm_thing *thing = &rocm->things[rocm->processes.values[i]];
            uint32_t process = lac_nsys_map_get(&nsys->process_of, (uint64_t)thing->number);
            if (process != LAC_NONE) {
                lac_builder_process_at(nsys->builder, process)->name = thing->name;
            }
        }
    }
    return LAC_OK;
}

static enum lac_status on_string_table(struct rocm *rocm)
{
    static const char *const COLUMNS[] = {"id", "string", NULL};
    char table[TABLE_BYTES];
    lac_nsys_map_done(&rocm->nsys->string_of); /* each set numbers its own */
    (void)snprintf(table, sizeof(table), "rocpd_string%s", rocm->suffix);
    return lac_nsys_read_string_table(rocm->nsys, table, COLUMNS);
}

static enum lac_status read_set(struct rocm *rocm)
{
    static const char *const PROCESS_COLUMNS[] = {"id", "pid", "name", "command", NULL};
    static const char *const THREAD_COLUMNS[] = {"id", "tid", "name", NULL};
    static const char *const AGENT_COLUMNS[] = {
        "id", "type", "type_index", "logical_index", "product_name", "name", NULL};
    static const char *const SYMBOL_COLUMNS[] = {"id", "display_name", "kernel_name",
                                                 "arch_vgpr_count", NULL};
    static const char *const TRACK_COLUMNS[] = {"id",       "pid",       "tid", "agent_id",
                                                "queue_id", "stream_id", NULL};
    static const char *const STAMP_COLUMNS[] = {"id", "value", NULL};
    static const char *const EVENT_ROWS[] = {"id", "stack_id", "category_id", NULL};
    static const char *const DISPATCH[] = {EVENT_COLUMNS,
                                           "agent_id",
                                           "kernel_id",
                                           "queue_id",
                                           "stream_id",
                                           "group_segment_size",
                                           "workgroup_size_x",
                                           "workgroup_size_y",
                                           "workgroup_size_z",
                                           "grid_size_x",
                                           "grid_size_y",
                                           "grid_size_z",
                                           NULL};
    static const char *const COPY[] = {
        EVENT_COLUMNS, "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id", NULL};
    static const char *const REGION[] = {EVENT_COLUMNS, NULL};
    static const struct {
        const char *prefix;
        const char *const *columns;
        bool is_event;
        on_rocm_row on_row;
    } TABLES[] = {
        {"rocpd_info_process", PROCESS_COLUMNS, false, on_process},
        {"rocpd_info_thread", THREAD_COLUMNS, false, on_thread},
        {"rocpd_info_agent", AGENT_COLUMNS, false, on_agent},
        {"rocpd_info_kernel_symbol", SYMBOL_COLUMNS, false, on_symbol},
        {"rocpd_track", TRACK_COLUMNS, false, on_track},
        {"rocpd_timestamp", STAMP_COLUMNS, false, on_stamp},
        {"rocpd_event", EVENT_ROWS, false, on_event},
        {"rocpd_kernel_dispatch", DISPATCH, true, on_dispatch},
        {"rocpd_memory_copy", COPY, true, on_copy},
        {"rocpd_region", REGION, true, on_region},
    };
    enum lac_status status = on_string_table(rocm);
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status =
            each(rocm, TABLES[i].prefix, TABLES[i].columns, TABLES[i].is_event, TABLES[i].on_row);
    }
    return status == LAC_OK ? name_rows(rocm) : status;
}

static void set_done(struct rocm *rocm)
{
    lac_nsys_map_done(&rocm->processes);
    lac_nsys_map_done(&rocm->threads);
    lac_nsys_map_done(&rocm->agents);
    lac_nsys_map_done(&rocm->symbols);
    lac_nsys_map_done(&rocm->tracks);
    free(rocm->things);
    free(rocm->track_rows);
    free(rocm->stamps);
    free(rocm->stacks);
    free(rocm->categories);
}

/* ---- rocmProfileData ---- */

static enum lac_status on_link(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    uint32_t *call =
        lac_nsys_map_at(&rocm->tracks, (uint64_t)lac_nsys_rows_integer_or(rows, 1, -1));
    if (call == NULL) {
        return lac_nsys_pass(rocm->nsys, LAC_ERR_NOMEM);
    }
    *call = lac_nsys_rows_u32(rows, 0, 0);
    return LAC_OK;
}

static enum lac_status on_rpd_call(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct lac_nsys *nsys = rocm->nsys;
    struct lac_slice_in slice = {.detail = LAC_NONE};
    const int64_t global = (lac_nsys_rows_integer_or(rows, 2, 0) & 0xffffff) << 24 |
                           (lac_nsys_rows_integer_or(rows, 3, 0) & 0xffffff);
    bool is_good = false;
    enum lac_status status = lac_nsys_interval(nsys, rows, &slice, &is_good);
    if (status == LAC_OK && is_good) {
        status = lac_nsys_thread(nsys, LAC_TRACK_THREAD, global, &slice.track);
    }
    if (status == LAC_OK && is_good) {
        status = lac_nsys_column_name(nsys, rows, -1, 4, &slice.name);
    }
    if (status != LAC_OK || !is_good) {
        return status;
    }
    slice.kind = kind_of("", lac_model_str(nsys->model, slice.name));
    if (slice.kind == LAC_SLICE_API) {
        slice.corr = lac_nsys_rows_u32(rows, 5, 0);
    } else { /* UserMarker: the text is in the arguments */
        slice.kind = LAC_SLICE_RANGE;
        uint32_t text = 0;
        status = lac_nsys_column_name(nsys, rows, -1, 6, &text);
        slice.name = text != 0 ? text : slice.name;
    }
    return status == LAC_OK ? lac_nsys_add(nsys, &slice) : status;
}

static enum lac_status on_rpd_op(struct rocm *rocm, const struct lac_nsys_rows *rows)
{
    struct lac_nsys *nsys = rocm->nsys;
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_KERNEL};
    uint32_t type = 0;
    bool is_good = false;
    const int64_t gpu = lac_nsys_rows_u32(rows, 2, 0) % LAC_NSYS_DEVICES;
    enum lac_status status = lac_nsys_interval(nsys, rows, &slice, &is_good);
    if (status == LAC_OK && is_good) {
        status = lac_nsys_stream(nsys, LAC_NSYS_ROW_STREAM, gpu, 0,
                                 lac_nsys_rows_integer_or(rows, 3, 0) & 0x7fffffff, &slice.track);
    }
    if (status == LAC_OK && is_good) {
        status = lac_nsys_column_name(nsys, rows, -1, 4, &slice.name);
    }
    if (status == LAC_OK && is_good) {
        status = lac_nsys_column_name(nsys, rows, -1, 5, &type);
    }
    if (status != LAC_OK || !is_good) {
        return status;
    }
    const char *text = lac_model_str(nsys->model, type);
    const uint32_t call =
        lac_nsys_map_get(&rocm->tracks, (uint64_t)lac_nsys_rows_integer_or(rows, 6, -1));
    slice.corr = call == LAC_NONE ? 0 : call;
    if (lac_builder_device(nsys->builder, gpu) == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (strncmp(text, "Copy", 4) == 0 || strncmp(text, "Fill", 4) == 0) {
        slice.kind = text[0] == 'C' ? LAC_SLICE_COPY : LAC_SLICE_MEMSET;
        return add_copy(rocm,
                        strcasestr(text, "HostToDevice") != NULL   ? LAC_COPY_HTOD
                        : strcasestr(text, "DeviceToHost") != NULL ? LAC_COPY_DTOH
                        : text[0] == 'C'                           ? LAC_COPY_DTOD
                                                                   : LAC_COPY_UNKNOWN,
                        -1, &slice);
    }
    slice.name = slice.name != 0 ? slice.name : type;
    return strstr(text, "Barrier") != NULL || strstr(text, "Marker") != NULL
               ? LAC_OK
               : lac_nsys_add(nsys, &slice);
}

static enum lac_status read_rpd(struct rocm *rocm)
{
    static const char *const LINK[] = {"api_id", "op_id", NULL};
    static const char *const CALL[] = {"start",      "end", "pid",     "tid",
                                       "apiName_id", "id",  "args_id", NULL};
    static const char *const OP[] = {"start",          "end",       "gpuId", "queueId",
                                     "description_id", "opType_id", "id",    NULL};
    enum lac_status status = on_string_table(rocm);
    if (status == LAC_OK) {
        status = each(rocm, "rocpd_api_ops", LINK, false, on_link);
    }
    if (status == LAC_OK) {
        status = each(rocm, "rocpd_api", CALL, true, on_rpd_call);
    }
    return status == LAC_OK ? each(rocm, "rocpd_op", OP, true, on_rpd_op) : status;
}

/* ---- all of it ---- */

struct suffixes {
    char (*at)[SUFFIX_BYTES];
    uint32_t count;
};

static enum lac_status find_sets(struct lac_nsys *nsys, struct suffixes *suffixes)
{
    static const char *const SCHEMA[] = {"name", "type", NULL};
    static const char PREFIX[] = "rocpd_string";
    struct lac_nsys_rows rows;
    bool found = false;
    enum lac_status status =
        lac_nsys_rows_open(&rows, &nsys->db, LAC_NSYS_SCHEMA, SCHEMA, NULL, false);
    while (status == LAC_OK) {
        status = lac_nsys_rows_next(&rows, &found);
        if (status != LAC_OK || !found) {
            break;
        }
        size_t size = 0;
        size_t type_size = 0;
        const char *name = lac_nsys_rows_text(&rows, 0, &size);
        const char *type = lac_nsys_rows_text(&rows, 1, &type_size);
        if (name == NULL || type == NULL || type_size != 5 || memcmp(type, "table", 5) != 0 ||
            size < sizeof(PREFIX) - 1 || memcmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 ||
            size - (sizeof(PREFIX) - 1) >= SUFFIX_BYTES || suffixes->count == SETS_MAX) {
            continue;
        }
        char *to = suffixes->at[suffixes->count];
        size_t length = size - (sizeof(PREFIX) - 1);
        memcpy(to, name + sizeof(PREFIX) - 1, length);
        to[length] = '\0';
        bool is_plain = strspn(to, "0123456789abcdefABCDEF_-") == length;
        suffixes->count += is_plain ? 1 : 0;
    }
    lac_nsys_rows_close(&rows);
    return status;
}

bool lac_nsys_is_rocpd(struct lac_nsys *nsys)
{
    static const char *const SCHEMA[] = {"name", NULL};
    struct lac_nsys_rows rows;
    bool found = false;
    bool is_rocpd = false;
    enum lac_status status =
        lac_nsys_rows_open(&rows, &nsys->db, LAC_NSYS_SCHEMA, SCHEMA, NULL, false);
    while (status == LAC_OK && !is_rocpd) {
        status = lac_nsys_rows_next(&rows, &found);
        if (status != LAC_OK || !found) {
            break;
        }
        size_t size = 0;
        const char *name = lac_nsys_rows_text(&rows, 0, &size);
        is_rocpd = name != NULL && size >= 12 && memcmp(name, "rocpd_string", 12) == 0;
    }
    lac_nsys_rows_close(&rows);
    return is_rocpd;
}

enum lac_status lac_nsys_read_rocpd(struct lac_nsys *nsys)
{
    struct suffixes suffixes = {.at = calloc(SETS_MAX, sizeof(*suffixes.at))};
    enum lac_status status =
        suffixes.at != NULL ? find_sets(nsys, &suffixes) : lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    nsys->corr_step = UINT64_C(1) << 24;
    for (uint32_t i = 0; i < suffixes.count && status == LAC_OK; i++) {
        struct rocm rocm = {.nsys = nsys};
        (void)snprintf(rocm.suffix, sizeof(rocm.suffix), "%s", suffixes.at[i]);
        status = lac_nsys_db_has(&nsys->db, "rocpd_op") ? read_rpd(&rocm) : read_set(&rocm);
        set_done(&rocm);
    }
    free(suffixes.at);
    if (status == LAC_OK && nsys->slice_count == 0) {
        status = lac_fail(nsys->reterr, LAC_ERR_CORRUPT, 0,
                          "a ROCm database in which nothing was recorded: rocprofv3 --sys-trace "
                          "--output-format rocpd -- PROGRAM records kernels, copies and calls");
    }
    return status;
}
