/* GPU tables of an Nsight Systems export: kernels, copies, memsets, synchronization, graphs. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/import/text/number_args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

/* Columns that all tables of GPU work begin with here. */
enum { START, END, DEVICE, STREAM, CORRELATION, PROCESS, CONTEXT, FIRST_OWN };
#define COMMON_COLUMNS                                                                             \
    "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId"

/* The slice with its arguments, in the model. */
static enum lac_status add_with(struct lac_nsys *nsys, struct lac_number_args *args,
                                struct lac_slice_in *slice)
{
    enum lac_status status = lac_nsys_pass(nsys, lac_number_args_store(args, nsys->builder, slice));
    return status == LAC_OK ? lac_nsys_add(nsys, slice) : status;
}

/* What every row has: interval, place, correlation. Rows that have none are dropped, counted. */
static enum lac_status common(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                              enum lac_nsys_row row, struct lac_slice_in *slice,
                              struct lac_number_args *args, bool *ret_is_good)
{
    *slice = (struct lac_slice_in){.detail = LAC_NONE};
    enum lac_status status = lac_nsys_interval(nsys, rows, slice, ret_is_good);
    if (status != LAC_OK || !*ret_is_good) {
        return status;
    }
    int64_t stream = lac_nsys_rows_integer_or(rows, STREAM, 0);
    int64_t process = lac_nsys_rows_integer_or(rows, PROCESS, nsys->own_process);
    int64_t device = lac_nsys_device(nsys, process, lac_nsys_rows_integer_or(rows, DEVICE, 0));
    int64_t context = lac_nsys_rows_integer_or(rows, CONTEXT, 0);
    uint32_t recorded = lac_nsys_rows_u32(rows, CORRELATION, 0);
    if (device < 0 || device >= LAC_NSYS_DEVICES || stream < 0 || stream > UINT32_MAX) {
        *ret_is_good = false;
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_place", 1, 0,
                         "GPU rows with an impossible device or stream number were dropped.");
        return LAC_OK;
    }
    slice->corr = lac_nsys_correlation(nsys, process, recorded);
    if (context != 0) {
        lac_number_args_add(args, "context", context);
    }
    if (slice->corr != recorded) {
        lac_number_args_add(args, "correlation", recorded);
    }
    return lac_nsys_stream(nsys, row, device, process, stream, &slice->track);
}

/* ---- kernels ---- */

enum {
    DEMANGLED = FIRST_OWN,
    SHORT,
    MANGLED,
    GRID,
    BLOCK = GRID + 3,
    REGISTERS = BLOCK + 3,
    STATIC_SHARED,
    DYNAMIC_SHARED,
    LOCAL_MEMORY,
    GRAPH_NODE,
    GRAPH,
    CLUSTER
};

#define KERNEL_COLUMNS_AFTER_NAME                                                                  \
    "shortName", "mangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",           \
        "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread"

static const char *const KERNEL_COLUMNS[] = {COMMON_COLUMNS,
                                             "demangledName",
                                             KERNEL_COLUMNS_AFTER_NAME,
                                             "graphNodeId",
                                             "graphId",
                                             "clusterX",
                                             NULL};

static enum lac_status kernel_config(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                     uint32_t *ret_row)
{
    uint64_t shared = (uint64_t)lac_nsys_rows_u32(rows, STATIC_SHARED, 0) +
                      lac_nsys_rows_u32(rows, DYNAMIC_SHARED, 0);
    struct lac_kernel_config config = {
        .registers_per_thread = lac_nsys_rows_u32(rows, REGISTERS, 0),
        .shared_memory_bytes = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared,
        .occupancy_pct = -1.0F,
        .blocks_per_sm = -1.0F,
        .graph_node = (uint64_t)lac_nsys_rows_integer_or(rows, GRAPH_NODE, 0),
    };
    for (int i = 0; i < 3; i++) {
        config.grid[i] = lac_nsys_rows_u32(rows, GRID + i, 0);
        config.block[i] = lac_nsys_rows_u32(rows, BLOCK + i, 0);
    }
    return lac_nsys_pass(nsys, lac_builder_kernel_config(nsys->builder, &config, ret_row));
}

static enum lac_status kernel_name(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                   uint32_t *ret_id)
{
    static const int NAMES[] = {DEMANGLED, MANGLED, SHORT};
    int64_t number;
    for (size_t i = 0; i < LAC_COUNT_OF(NAMES); i++) {
        if (lac_nsys_rows_integer(rows, NAMES[i], &number)) {
            return lac_nsys_string(nsys, number, ret_id);
        }
    }
    /* the first schemas had the text itself */
    enum lac_status status = lac_nsys_column_name(nsys, rows, DEMANGLED, -1, ret_id);
    if (status == LAC_OK && *ret_id == 0) {
        status = lac_nsys_intern_own(nsys, ret_id, "kernel without a name");
    }
    return status;
}

static enum lac_status on_kernel(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    struct lac_number_args args = {.used = 0};
    bool is_good = false;
    int64_t value;
    enum lac_status status = common(nsys, rows, LAC_NSYS_ROW_STREAM, &slice, &args, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    slice.kind = LAC_SLICE_KERNEL;
    if (lac_nsys_rows_integer(rows, LOCAL_MEMORY, &value) && value != 0) {
        lac_number_args_add(&args, "local memory per thread", value);
    }
    if (lac_nsys_rows_integer(rows, GRAPH_NODE, &value) && value != 0) {
        lac_number_args_add(&args, "graph node", value);
    }
    if (lac_nsys_rows_integer(rows, GRAPH, &value) && value != 0) {
        lac_number_args_add(&args, "graph", value);
    }
    if (lac_nsys_rows_integer(rows, CLUSTER, &value) && value > 1) {
        lac_number_args_add(&args, "cluster", value);
    }
    status = kernel_name(nsys, rows, &slice.name);
    if (status == LAC_OK) {
        status = kernel_config(nsys, rows, &slice.detail);
    }
    return status == LAC_OK ? add_with(nsys, &args, &slice) : status;
}

/* ---- copies and memsets ---- */

enum { BYTES = FIRST_OWN, COPY_KIND, SOURCE, DESTINATION, COPY_NODE };
static const char *const COPY_COLUMNS[] = {COMMON_COLUMNS, "bytes",       "copyKind", "srcKind",
                                           "dstKind",      "graphNodeId", NULL};
enum { MEMORY = BYTES + 1, VALUE, SET_NODE };
static const char *const MEMSET_COLUMNS[] = {COMMON_COLUMNS, "bytes",       "memKind",
                                             "value",        "graphNodeId", NULL};

/* The node of a CUDA graph that it is, which its arguments tell as those of a kernel do. */
static uint64_t node_of(const struct lac_nsys_rows *rows, int column, struct lac_number_args *args)
{
    const int64_t node = lac_nsys_rows_integer_or(rows, column, 0);
    if (node != 0) {
        lac_number_args_add(args, "graph node", node);
    }
    return (uint64_t)node;
}

static uint8_t mapped(const uint8_t *table, const struct lac_nsys_rows *rows, int column)
{
    uint32_t number = lac_nsys_rows_u32(rows, column, UINT32_MAX);
    return number < 32 ? table[number] : 0;
}

/* As the PyTorch profiler names them, so that traces of both compare. */
static enum lac_status copy_name(struct lac_nsys *nsys, const struct lac_copy *copy,
                                 uint32_t *ret_id)
{
    static const char *const MEMORY_NAMES[] = {"Unknown", "Pageable", "Pinned",
                                               "Device",  "Array",    "Managed"};
    const char *kind = copy->copy_kind == LAC_COPY_UNKNOWN
                           ? "copy"
                           : lac_copy_kind_name((enum lac_copy_kind)copy->copy_kind);
    return lac_nsys_intern_own(nsys, ret_id, "Memcpy %s (%s -> %s)", kind, MEMORY_NAMES[copy->src],
                               MEMORY_NAMES[copy->dst]);
}

static enum lac_status on_copy(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    struct lac_number_args args = {.used = 0};
    bool is_good = false;
    enum lac_status status = common(nsys, rows, LAC_NSYS_ROW_STREAM, &slice, &args, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    struct lac_copy copy = {
        .bytes = lac_nsys_rows_integer_or(rows, BYTES, -1),
        .copy_kind = mapped(nsys->copy_kind_of, rows, COPY_KIND),
        .src = mapped(nsys->memory_kind_of, rows, SOURCE),
        .dst = mapped(nsys->memory_kind_of, rows, DESTINATION),
        .is_async = 2,
        .graph_node = node_of(rows, COPY_NODE, &args),
    };
    copy.bytes = copy.bytes < -1 ? -1 : copy.bytes;
    slice.kind = LAC_SLICE_COPY;
    status = copy_name(nsys, &copy, &slice.name);
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_copy(nsys->builder, &copy, &slice.detail));
    }
    return status == LAC_OK ? add_with(nsys, &args, &slice) : status;
}

static enum lac_status on_memset(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    struct lac_number_args args = {.used = 0};
    bool is_good = false;
    int64_t value;
    enum lac_status status = common(nsys, rows, LAC_NSYS_ROW_STREAM, &slice, &args, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    struct lac_copy copy = {
        .bytes = lac_nsys_rows_integer_or(rows, BYTES, -1),
        .dst = mapped(nsys->memory_kind_of, rows, MEMORY),
        .is_async = 2,
        .graph_node = node_of(rows, SET_NODE, &args),
    };
    copy.bytes = copy.bytes < -1 ? -1 : copy.bytes;
    slice.kind = LAC_SLICE_MEMSET;
    if (lac_nsys_rows_integer(rows, VALUE, &value)) {
        lac_number_args_add(&args, "value", value);
    }
    status = lac_nsys_intern_own(nsys, &slice.name, "Memset (%s)",
                                 copy.dst == LAC_MEMORY_PAGEABLE  ? "Pageable"
                                 : copy.dst == LAC_MEMORY_PINNED  ? "Pinned"
                                 : copy.dst == LAC_MEMORY_MANAGED ? "Managed"
                                 : copy.dst == LAC_MEMORY_DEVICE  ? "Device"
                                                                  : "Unknown");
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_copy(nsys->builder, &copy, &slice.detail));
    }
    return status == LAC_OK ? add_with(nsys, &args, &slice) : status;
}

/* ---- not on the streams ---- */

enum { SYNC_TYPE = FIRST_OWN, EVENT };
static const char *const SYNC_COLUMNS[] = {COMMON_COLUMNS, "syncType", "eventId", NULL};
enum { GRAPH_ID = FIRST_OWN };
static const char *const GRAPH_COLUMNS[] = {COMMON_COLUMNS, "graphId", NULL};

static enum lac_status on_sync(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    static const char *const NAMES[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    struct lac_slice_in slice;
    struct lac_number_args args = {.used = 0};
    bool is_good = false;
    int64_t value;
    enum lac_status status = common(nsys, rows, LAC_NSYS_ROW_SYNC, &slice, &args, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    uint32_t type = lac_nsys_rows_u32(rows, SYNC_TYPE, 0);
    slice.kind = LAC_SLICE_SYNC;
    if (lac_nsys_rows_integer(rows, EVENT, &value) && value > 0 && value < UINT32_MAX) {
        lac_number_args_add(&args, "event", value);
    }
    status = lac_nsys_intern_own(nsys, &slice.name, "%s", NAMES[type < 5 ? type : 0]);
    return status == LAC_OK ? add_with(nsys, &args, &slice) : status;
}

/* A graph recorded as a whole says when it ran, not what: an operation of its stream, by whose name
 * everybody knows that it is no kernel. */
static enum lac_status on_graph(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    struct lac_number_args args = {.used = 0};
    bool is_good = false;
    enum lac_status status = common(nsys, rows, LAC_NSYS_ROW_STREAM, &slice, &args, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    slice.kind = LAC_SLICE_KERNEL;
    lac_number_args_add(&args, "graph", lac_nsys_rows_integer_or(rows, GRAPH_ID, 0));
    lac_model_report(nsys->model, LAC_REPORT_INFO, "graphs_as_a_whole", 1, 0,
                     "CUDA graphs were recorded as a whole: their kernels are not in the file "
                     "(nsys --cuda-graph-trace=node records them).");
    status = lac_nsys_intern_own(nsys, &slice.name, "CUDA graph");
    return status == LAC_OK ? add_with(nsys, &args, &slice) : status;
}

/* ---- enums, processes, order ---- */

static uint8_t copy_kind_of_label(const char *label, size_t size)
{
    static const struct {
        const char *label;
        uint8_t kind;
    } KINDS[] = {
        {"Host-to-Device", LAC_COPY_HTOD},
        {"Device-to-Host", LAC_COPY_DTOH},
        {"Host-to-Array", LAC_COPY_HTOD},
        {"Array-to-Host", LAC_COPY_DTOH},
        {"Array-to-Array", LAC_COPY_DTOD},
        {"Array-to-Device", LAC_COPY_DTOD},
        {"Device-to-Array", LAC_COPY_DTOD},
        {"Device-to-Device", LAC_COPY_DTOD},
        {"Host-to-Host", LAC_COPY_HTOH},
        {"Peer-to-Peer", LAC_COPY_PTOP},
        {"Unified Host-to-Device", LAC_COPY_HTOD},
        {"Unified Device-to-Host", LAC_COPY_DTOH},
        {"Unified Device-to-Device", LAC_COPY_DTOD},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(KINDS); i++) {
        if (strlen(KINDS[i].label) == size && memcmp(KINDS[i].label, label, size) == 0) {
            return KINDS[i].kind;
        }
    }
    return LAC_COPY_UNKNOWN;
}

static uint8_t memory_kind_of_label(const char *label, size_t size)
{
    static const struct {
        const char *label;
        uint8_t kind;
    } KINDS[] = {
        {"Pageable", LAC_MEMORY_PAGEABLE},      {"Pinned", LAC_MEMORY_PINNED},
        {"Device", LAC_MEMORY_DEVICE},          {"Array", LAC_MEMORY_ARRAY},
        {"Managed", LAC_MEMORY_MANAGED},        {"Device Static", LAC_MEMORY_DEVICE},
        {"Managed Static", LAC_MEMORY_MANAGED},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(KINDS); i++) {
        if (strlen(KINDS[i].label) == size && memcmp(KINDS[i].label, label, size) == 0) {
            return KINDS[i].kind;
        }
    }
    return LAC_MEMORY_UNKNOWN;
}

/* A row of an enumeration: what its number means, where the table has room for the number. */
static void read_label(const struct lac_nsys_rows *rows, uint8_t *kind_of, size_t kind_count,
                       uint8_t (*kind_of_label)(const char *label, size_t size))
{
    size_t size = 0;
    const char *label = lac_nsys_rows_text(rows, 1, &size);
    uint32_t id = lac_nsys_rows_u32(rows, 0, UINT32_MAX);
    if (label != NULL && id < kind_count) {
        kind_of[id] = kind_of_label(label, size);
    }
}

static enum lac_status on_copy_kind(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    read_label(rows, nsys->copy_kind_of, sizeof(nsys->copy_kind_of), copy_kind_of_label);
    return LAC_OK;
}

static enum lac_status on_memory_kind(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    read_label(rows, nsys->memory_kind_of, sizeof(nsys->memory_kind_of), memory_kind_of_label);
    return LAC_OK;
}

enum lac_status lac_nsys_read_enums(struct lac_nsys *nsys)
{
    /* as numbered since schema 3.0; not as in CUPTI, where pageable is 1 */
    static const uint8_t COPIES[] = {LAC_COPY_UNKNOWN, LAC_COPY_HTOD, LAC_COPY_DTOH, LAC_COPY_HTOD,
                                     LAC_COPY_DTOH,    LAC_COPY_DTOD, LAC_COPY_DTOD, LAC_COPY_DTOD,
                                     LAC_COPY_DTOD,    LAC_COPY_HTOH, LAC_COPY_PTOP, LAC_COPY_HTOD,
                                     LAC_COPY_DTOH,    LAC_COPY_DTOD};
    static const uint8_t MEMORIES[] = {LAC_MEMORY_PAGEABLE, LAC_MEMORY_PINNED,  LAC_MEMORY_DEVICE,
                                       LAC_MEMORY_ARRAY,    LAC_MEMORY_MANAGED, LAC_MEMORY_DEVICE,
                                       LAC_MEMORY_MANAGED,  LAC_MEMORY_UNKNOWN};
    memcpy(nsys->copy_kind_of, COPIES, sizeof(COPIES));
    memcpy(nsys->memory_kind_of, MEMORIES, sizeof(MEMORIES));
    static const char *const COLUMNS[] = {"id", "label", NULL};
    enum lac_status status =
        lac_nsys_each(nsys, "ENUM_CUDA_MEMCPY_OPER", COLUMNS, false, on_copy_kind);
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, "ENUM_CUDA_MEM_KIND", COLUMNS, false, on_memory_kind);
    }
    return status;
}

/* The same columns under nvprof's names; there is no process, and memory kinds are CUPTI's. */
static const char *const NVPROF_KERNEL_COLUMNS[] = {COMMON_COLUMNS, "name",
                                                    KERNEL_COLUMNS_AFTER_NAME, NULL};
static const char *const NVPROF_MEMSET_COLUMNS[] = {COMMON_COLUMNS, "bytes", "memoryKind", "value",
                                                    NULL};
static const char *const NVPROF_SYNC_COLUMNS[] = {COMMON_COLUMNS, "type", "cudaEventId", NULL};

enum lac_status lac_nsys_read_nvprof_gpu(struct lac_nsys *nsys)
{
    static const struct {
        const char *table;
        const char *const *columns;
        enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows);
    } TABLES[] = {
        {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", NVPROF_KERNEL_COLUMNS, on_kernel},
        {"CUPTI_ACTIVITY_KIND_KERNEL", NVPROF_KERNEL_COLUMNS, on_kernel},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", COPY_COLUMNS, on_copy},
        {"CUPTI_ACTIVITY_KIND_MEMCPY2", COPY_COLUMNS, on_copy},
        {"CUPTI_ACTIVITY_KIND_MEMSET", NVPROF_MEMSET_COLUMNS, on_memset},
        {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", NVPROF_SYNC_COLUMNS, on_sync},
    };
    static const uint8_t COPIES[] = {LAC_COPY_UNKNOWN, LAC_COPY_HTOD, LAC_COPY_DTOH, LAC_COPY_HTOD,
                                     LAC_COPY_DTOH,    LAC_COPY_DTOD, LAC_COPY_DTOD, LAC_COPY_DTOD,
                                     LAC_COPY_DTOD,    LAC_COPY_HTOH, LAC_COPY_PTOP};
    static const uint8_t MEMORIES[] = {LAC_MEMORY_UNKNOWN, LAC_MEMORY_PAGEABLE, LAC_MEMORY_PINNED,
                                       LAC_MEMORY_DEVICE,  LAC_MEMORY_ARRAY,    LAC_MEMORY_MANAGED,
                                       LAC_MEMORY_DEVICE,  LAC_MEMORY_MANAGED};
    enum lac_status status = LAC_OK;
    memcpy(nsys->copy_kind_of, COPIES, sizeof(COPIES));
    memcpy(nsys->memory_kind_of, MEMORIES, sizeof(MEMORIES));
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status = lac_nsys_each(nsys, TABLES[i].table, TABLES[i].columns, true, TABLES[i].on_row);
    }
    return status;
}

/* Which processes use a GPU, and the largest correlation id: each process numbers
 * its calls from 0. */
static enum lac_status on_process(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    uint64_t past = (uint64_t)lac_nsys_rows_u32(rows, 1, 0) + 1;
    int64_t process;
    nsys->corr_step = past > nsys->corr_step ? past : nsys->corr_step;
    return lac_nsys_rows_integer(rows, 0, &process) ? lac_nsys_gpu_process(nsys, process) : LAC_OK;
}

static enum lac_status find_processes(struct lac_nsys *nsys, const char *table)
{
    static const char *const COLUMNS[] = {"globalPid", "correlationId", NULL};
    return lac_nsys_each(nsys, table, COLUMNS, false, on_process);
}

/* Whether all rows of GPU work are of one process, which most exports are: then nothing has to be
 * kept apart, and no row be read to know it. */
static bool is_one_process(struct lac_nsys *nsys, const char *table, bool *has_one,
                           int64_t *process)
{
    bool has_rows = false;
    int64_t value = 0;
    if (!lac_nsys_db_is_only(&nsys->db, table, "globalPid", &has_rows, &value) ||
        (has_rows && *has_one && value != *process)) {
        return false;
    }
    if (has_rows) {
        *has_one = true;
        *process = value;
    }
    return true;
}

enum lac_status lac_nsys_read_gpu(struct lac_nsys *nsys)
{
    static const struct {
        const char *table;
        const char *const *columns;
        enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows);
        bool is_work; /* who has a row used a GPU */
    } TABLES[] = {
        {"CUPTI_ACTIVITY_KIND_KERNEL", KERNEL_COLUMNS, on_kernel, true},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", COPY_COLUMNS, on_copy, true},
        {"CUPTI_ACTIVITY_KIND_MEMSET", MEMSET_COLUMNS, on_memset, true},
        {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", SYNC_COLUMNS, on_sync, false},
        {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", GRAPH_COLUMNS, on_graph, true},
    };
    enum lac_status status = LAC_OK;
    bool is_one = true;
    bool has_one = false;
    int64_t process = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && is_one; i++) {
        is_one = !TABLES[i].is_work || is_one_process(nsys, TABLES[i].table, &has_one, &process);
    }
    if (is_one && has_one) {
        status = lac_nsys_gpu_process(nsys, process);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK && !is_one; i++) {
        if (TABLES[i].is_work) {
            status = find_processes(nsys, TABLES[i].table);
        }
    }
    if (status == LAC_OK && nsys->gpu_pid_count > 1) {
        status = find_processes(nsys, "CUPTI_ACTIVITY_KIND_RUNTIME");
    }
    if (status == LAC_OK && nsys->gpu_pid_count > 1) {
        status = lac_nsys_find_own_gpus(nsys);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status = lac_nsys_each(nsys, TABLES[i].table, TABLES[i].columns, true, TABLES[i].on_row);
    }
    return status;
}
