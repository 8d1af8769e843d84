/*
 * JSON of rocprofv3 (`--output-format json`): per process the agents, the kernels' symbols, the
 * names of operations by kind, and lists of records in buffers: dispatches, copies, calls, roctx's
 * ranges. A record names its operation by two numbers, its kernel and its agents by their handles; a
 * range's text stands beside the number of its call.
 *
 * Source: https://rocm.docs.amd.com/projects/rocprofiler-sdk, records of buffer tracing
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 512, AGENTS_MAX = 512, GPUS_MAX = 1024, SYMBOLS_NEAR = 4 };

static const char ROOT[] = "rocprofiler-sdk-tool";

bool lac_rocprofv3_is_its_own(const uint8_t *head, size_t size_bytes)
{
    return size_bytes > 0 && (head[0] == '{' || head[0] == ' ' || head[0] == '\n') &&
           lac_document_has(head, size_bytes < HEAD_BYTES ? size_bytes : HEAD_BYTES,
                            "\"rocprofiler-sdk-tool\"");
}

struct agent {
    int64_t handle;
    int64_t number; /**< of a GPU; -1: no GPU */
    const struct lac_plain *name;
};

/** The text of a range. */
struct marker_text {
    int64_t call;
    const struct lac_plain *text;
};

struct reader {
    struct lac_profile_file document;
    struct agent agents[AGENTS_MAX];
    uint32_t agent_count;
    int64_t nodes[GPUS_MAX]; /**< by GPU: its node in the machine plus 1, 0: free, -1: unknown */
    uint32_t corr_base;      /**< added to a call's number: each process counts from 1 */
    uint32_t corr_last;      /**< the largest so far */
    const struct lac_plain *symbols;
    const struct lac_plain *kinds; /**< of records: their names and those of their operations */
    struct marker_text *markers;   /**< of the process, by call; owned */
    uint32_t marker_count;
    int64_t pid;
    uint32_t process;
};

static bool number(const struct lac_plain *record, const char *key, int64_t *ret_value)
{
    return lac_plain_integer(lac_plain_get(record, key), ret_value);
}

static int64_t handle_of(const struct lac_plain *record, const char *key)
{
    int64_t handle = -1;
    return number(lac_plain_get(record, key), "handle", &handle) ? handle : -1;
}

static enum lac_status own_name(struct reader *reader, uint32_t *ret_id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum lac_status own_name(struct reader *reader, uint32_t *ret_id, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const size_t size = length < 0                      ? 0
                        : (size_t)length < sizeof(text) ? (size_t)length
                                                        : sizeof(text) - 1;
    return lac_stacks_name(reader->document.profile.stacks, text, size, ret_id);
}

static enum lac_status text_name(struct reader *reader, const struct lac_plain *text,
                                 uint32_t *ret_id)
{
    return lac_plain_is(text, LAC_PLAIN_TEXT)
               ? lac_stacks_name(reader->document.profile.stacks, text->text, text->count, ret_id)
               : lac_stacks_name(reader->document.profile.stacks, "?", 1, ret_id);
}

/* -- what the records name --------------------------------------------------------------------- */

/** The number of a GPU: that of its kind, where the file says it, else the next one. A node of the
 *  machine is the same GPU in every process, whatever of it each may see; -1: too many. */
static int64_t gpu_of(struct reader *reader, const struct lac_plain *agent)
{
    int64_t node = -1;
    int64_t wanted = 0;
    node = number(agent, "node_id", &node) && node >= 0 && node < UINT32_MAX ? node + 1 : -1;
    for (int64_t i = 0; i < GPUS_MAX && node > 0; i++) {
        if (reader->nodes[i] == node) {
            return i;
        }
    }
    if (!number(agent, "logical_node_type_id", &wanted) || wanted < 0 || wanted >= GPUS_MAX ||
        reader->nodes[wanted] != 0) {
        wanted = 0;
    }
    while (wanted < GPUS_MAX && reader->nodes[wanted] != 0) {
        wanted++;
    }
    if (wanted == GPUS_MAX) {
        return -1;
    }
    reader->nodes[wanted] = node;
    return wanted;
}

static enum lac_status read_agents(struct reader *reader, const struct lac_plain *tool)
{
    const struct lac_plain *agents = lac_plain_get(tool, "agents");
    const uint32_t count = lac_plain_is(agents, LAC_PLAIN_LIST) ? agents->count : 0;
    enum lac_status status = LAC_OK;
    reader->agent_count = 0;
    for (uint32_t i = 0; i < count && reader->agent_count < AGENTS_MAX && status == LAC_OK; i++) {
        const struct lac_plain *from = agents->items[i];
        const struct lac_plain *product = lac_plain_get(from, "product_name");
        struct agent *agent = &reader->agents[reader->agent_count++];
        int64_t type = 0;
        *agent = (struct agent){.handle = handle_of(from, "id"), .number = -1};
        if (!number(from, "type", &type) || type != 2) {
            continue; /* a processor, or what is no agent */
        }
        agent->number = gpu_of(reader, from);
        if (agent->number < 0) {
            continue;
        }
        uint32_t name = 0;
        status = text_name(
            reader, lac_plain_is(product, LAC_PLAIN_TEXT) ? product : lac_plain_get(from, "name"),
            &name);
        struct lac_device *device =
            status == LAC_OK ? lac_builder_device(reader->document.profile.builder, agent->number)
                             : NULL;
        if (device != NULL) {
            device->name = name;
        } else if (status == LAC_OK) {
            status = LAC_ERR_NOMEM;
        }
    }
    return status;
}

static const struct agent *agent_of(const struct reader *reader, int64_t handle)
{
    for (uint32_t i = 0; i < reader->agent_count; i++) {
        if (reader->agents[i].handle == handle) {
            return &reader->agents[i];
        }
    }
    return NULL;
}

/* Symbols lie at the place of their number, or one beside it. */
static const struct lac_plain *symbol_of(const struct reader *reader, int64_t kernel)
{
    const int64_t count =
        lac_plain_is(reader->symbols, LAC_PLAIN_LIST) ? reader->symbols->count : 0;
    for (int64_t i = kernel - SYMBOLS_NEAR; i <= kernel + SYMBOLS_NEAR; i++) {
        int64_t id = -1;
        if (i >= 0 && i < count && number(reader->symbols->items[i], "kernel_id", &id) &&
            id == kernel) {
            return reader->symbols->items[i];
        }
    }
    return NULL;
}

static enum lac_status kernel_name(struct reader *reader, int64_t kernel, uint32_t *ret_name)
{
    static const char *const KEYS[] = {"formatted_kernel_name", "demangled_kernel_name",
                                       "kernel_name"};
    const struct lac_plain *symbol = symbol_of(reader, kernel);
    for (size_t i = 0; i < LAC_COUNT_OF(KEYS); i++) {
        const struct lac_plain *text = lac_plain_get(symbol, KEYS[i]);
        if (lac_plain_is(text, LAC_PLAIN_TEXT) && text->count > 0) {
            return text_name(reader, text, ret_name);
        }
    }
    return own_name(reader, ret_name, "kernel %" PRId64, kernel);
}

static const struct lac_plain *operation_of(const struct reader *reader,
                                            const struct lac_plain *record)
{
    int64_t kind = -1;
    int64_t operation = -1;
    if (!number(record, "kind", &kind) || !number(record, "operation", &operation) || kind < 0 ||
        operation < 0 || kind > UINT32_MAX || operation > UINT32_MAX) {
        return NULL;
    }
    return lac_plain_at(lac_plain_get(lac_plain_at(reader->kinds, (uint32_t)kind), "operations"),
                        (uint32_t)operation);
}

/* -- rows -------------------------------------------------------------------------------------- */

static enum lac_status stream_row(struct reader *reader, int64_t gpu, int64_t stream,
                                  uint32_t *ret_track)
{
    struct lac_builder *builder = reader->document.profile.builder;
    uint32_t process = 0;
    uint32_t id = 0;
    uint32_t name = 0;
    enum lac_status status = own_name(reader, &id, "GPU %" PRId64, gpu);
    if (status == LAC_OK) {
        status = lac_builder_process(builder, id, -1, &process);
    }
    if (status == LAC_OK) {
        lac_builder_process_at(builder, process)->name = id;
        lac_builder_process_at(builder, process)->is_gpu = true;
        status = own_name(reader, &id, "%" PRId64, stream);
    }
    if (status == LAC_OK) {
        status = own_name(reader, &name, "stream %" PRId64, stream);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(builder, LAC_TRACK_STREAM, process, id, stream, ret_track);
    }
    if (status == LAC_OK && lac_builder_device(builder, gpu) == NULL) {
        status = LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        lac_builder_track_at(builder, *ret_track)->device = gpu;
        lac_builder_track_at(builder, *ret_track)->name = name;
    }
    return status;
}

static enum lac_status thread_row(struct reader *reader, const struct lac_plain *record,
                                  uint32_t *ret_track)
{
    int64_t tid = -1;
    uint32_t id = 0;
    if (!number(record, "thread_id", &tid) || tid < 0 || tid > UINT32_MAX) {
        tid = 0;
    }
    enum lac_status status = own_name(reader, &id, "%" PRId64, tid);
    if (status == LAC_OK) {
        status = lac_builder_track(reader->document.profile.builder, LAC_TRACK_THREAD,
                                   reader->process, id, tid, ret_track);
    }
    return status;
}

/* A HIP stream where the file tells it, else the queue. */
static int64_t stream_of(const struct lac_plain *record, const struct lac_plain *dispatch)
{
    int64_t stream = handle_of(record, "stream_id");
    stream = stream >= 0 ? stream : handle_of(dispatch, "queue_id");
    return stream >= 0 && stream <= UINT32_MAX ? stream : 0;
}

static void extent(const struct lac_plain *of, const char *key, uint32_t out[3])
{
    static const char *const AXES[] = {"x", "y", "z"};
    for (size_t i = 0; i < LAC_COUNT_OF(AXES); i++) {
        int64_t value = 0;
        out[i] = number(lac_plain_get(of, key), AXES[i], &value) && value > 0 && value < UINT32_MAX
                     ? (uint32_t)value
                     : 1;
    }
}

/* -- records ----------------------------------------------------------------------------------- */

static enum lac_status dispatch(struct reader *reader, const struct lac_plain *record,
                                struct lac_slice_in *slice, bool *ret_is_good)
{
    const struct lac_plain *info = lac_plain_get(record, "dispatch_info");
    const struct agent *agent = agent_of(reader, handle_of(info, "agent_id"));
    struct lac_kernel_config config = {.occupancy_pct = -1.0f, .blocks_per_sm = -1.0f};
    int64_t kernel = -1;
    int64_t value = 0;
    *ret_is_good = agent != NULL && agent->number >= 0 && number(info, "kernel_id", &kernel);
    if (!*ret_is_good) {
        return LAC_OK;
    }
    extent(info, "workgroup_size", config.block);
    extent(info, "grid_size", config.grid); /* in work items */
    for (size_t i = 0; i < LAC_COUNT_OF(config.grid); i++) {
        config.grid[i] = config.grid[i] / config.block[i] + (config.grid[i] % config.block[i] != 0);
    }
    if (number(symbol_of(reader, kernel), "arch_vgpr_count", &value) && value > 0 &&
        value < UINT16_MAX) {
        config.registers_per_thread = (uint32_t)value;
    }
    if (number(info, "group_segment_size", &value) && value > 0 && value < UINT32_MAX) {
        config.shared_memory_bytes = (uint32_t)value;
    }
    slice->kind = LAC_SLICE_KERNEL;
    enum lac_status status = kernel_name(reader, kernel, &slice->name);
    if (status == LAC_OK) {
        status =
            lac_builder_kernel_config(reader->document.profile.builder, &config, &slice->detail);
    }
    return status == LAC_OK
               ? stream_row(reader, agent->number, stream_of(record, info), &slice->track)
               : status;
}

static enum lac_status copy(struct reader *reader, const struct lac_plain *record,
                            struct lac_slice_in *slice, bool *ret_is_good)
{
    static const struct {
        enum lac_copy_kind kind;
        const char *name;
    } WAYS[2][2] = {{{LAC_COPY_HTOH, "CopyHostToHost"}, {LAC_COPY_HTOD, "CopyHostToDevice"}},
                    {{LAC_COPY_DTOH, "CopyDeviceToHost"}, {LAC_COPY_DTOD, "CopyDeviceToDevice"}}};
    const struct agent *from = agent_of(reader, handle_of(record, "src_agent_id"));
    const struct agent *to = agent_of(reader, handle_of(record, "dst_agent_id"));
    *ret_is_good = from != NULL && to != NULL && (from->number >= 0 || to->number >= 0);
    if (!*ret_is_good) {
        return LAC_OK;
    }
    const bool is_peer = from->number >= 0 && to->number >= 0 && from->number != to->number;
    const size_t left = from->number >= 0;
    const size_t right = to->number >= 0;
    struct lac_copy detail = {.bytes = -1,
                              .copy_kind =
                                  (uint8_t)(is_peer ? LAC_COPY_PTOP : WAYS[left][right].kind),
                              .src = left != 0 ? LAC_MEMORY_DEVICE : LAC_MEMORY_UNKNOWN,
                              .dst = right != 0 ? LAC_MEMORY_DEVICE : LAC_MEMORY_UNKNOWN,
                              .is_async = 2};
    if (!number(record, "bytes", &detail.bytes) || detail.bytes < 0) {
        detail.bytes = -1;
    }
    slice->kind = LAC_SLICE_COPY;
    enum lac_status status =
        own_name(reader, &slice->name, "%s", is_peer ? "CopyPeerToPeer" : WAYS[left][right].name);
    if (status == LAC_OK) {
        status = lac_builder_copy(reader->document.profile.builder, &detail, &slice->detail);
    }
    const int64_t gpu = from->number >= 0 ? from->number : to->number;
    return status == LAC_OK ? stream_row(reader, gpu, stream_of(record, NULL), &slice->track)
                            : status;
}

static enum lac_status call(struct reader *reader, const struct lac_plain *record,
                            struct lac_slice_in *slice, bool *ret_is_good)
{
    *ret_is_good = true;
    slice->kind = LAC_SLICE_API;
    enum lac_status status = text_name(reader, operation_of(reader, record), &slice->name);
    return status == LAC_OK ? thread_row(reader, record, &slice->track) : status;
}

static int by_call(const void *a, const void *b)
{
    return LAC_ORDER(((const struct marker_text *)a)->call, ((const struct marker_text *)b)->call);
}

static enum lac_status read_markers(struct reader *reader, const struct lac_plain *texts)
{
    const uint32_t count = lac_plain_is(texts, LAC_PLAIN_LIST) ? texts->count : 0;
    free(reader->markers);
    reader->marker_count = 0;
    reader->markers = malloc(((size_t)count + 1) * sizeof(*reader->markers));
    if (reader->markers == NULL) {
        return lac_fail(reader->document.reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct marker_text marker = {.text = lac_plain_get(texts->items[i], "value")};
        if (number(texts->items[i], "key", &marker.call)) {
            reader->markers[reader->marker_count++] = marker;
        }
    }
    qsort(reader->markers, reader->marker_count, sizeof(*reader->markers), by_call);
    return LAC_OK;
}

/* A range or mark of roctx; what controls the profiler or names a thread is a call. */
static enum lac_status marker(struct reader *reader, const struct lac_plain *record,
                              struct lac_slice_in *slice, bool *ret_is_good)
{
    struct marker_text key = {0};
    int64_t kind = -1;
    const struct lac_plain *kind_name = NULL;
    if (number(record, "kind", &kind) && kind >= 0 && kind <= UINT32_MAX) {
        kind_name = lac_plain_get(lac_plain_at(reader->kinds, (uint32_t)kind), "kind");
    }
    if (lac_plain_equals(kind_name, "MARKER_CONTROL_API") ||
        lac_plain_equals(kind_name, "MARKER_NAME_API")) {
        return call(reader, record, slice, ret_is_good);
    }
    *ret_is_good = true;
    slice->kind = slice->dur_ns > 0 ? LAC_SLICE_RANGE : LAC_SLICE_INSTANT;
    slice->corr = 0; /* nothing on a device is of this call */
    const struct marker_text *found = NULL;
    if (number(lac_plain_get(record, "correlation_id"), "internal", &key.call)) {
        found = bsearch(&key, reader->markers, reader->marker_count, sizeof(key), by_call);
    }
    enum lac_status status =
        text_name(reader, found != NULL ? found->text : operation_of(reader, record), &slice->name);
    return status == LAC_OK ? thread_row(reader, record, &slice->track) : status;
}

/* The times of a record, and the number that a call and its operations share. */
static bool begin_slice(struct reader *reader, const struct lac_plain *record,
                        struct lac_slice_in *slice)
{
    int64_t end = 0;
    int64_t correlation = 0;
    *slice = (struct lac_slice_in){.detail = LAC_NONE};
    if (!number(record, "start_timestamp", &slice->start_ns) ||
        !number(record, "end_timestamp", &end) || slice->start_ns < 0 || end < slice->start_ns ||
        end >= INT64_C(1) << 62) {
        return false;
    }
    slice->dur_ns = end - slice->start_ns;
    if (number(lac_plain_get(record, "correlation_id"), "internal", &correlation) &&
        correlation > 0 && correlation < UINT32_MAX - reader->corr_base) {
        slice->corr = reader->corr_base + (uint32_t)correlation;
        reader->corr_last = slice->corr > reader->corr_last ? slice->corr : reader->corr_last;
    }
    return true;
}

static enum lac_status
read_list(struct reader *reader, const struct lac_plain *records,
          enum lac_status (*take)(struct reader *reader, const struct lac_plain *record,
                                  struct lac_slice_in *slice, bool *ret_is_good))
{
    struct lac_profile *profile = &reader->document.profile;
    const uint32_t count = lac_plain_is(records, LAC_PLAIN_LIST) ? records->count : 0;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        struct lac_slice_in slice;
        bool is_good = begin_slice(reader, records->items[i], &slice);
        if (!lac_document_visit(&reader->document, 1) ||
            profile->model->info.slice_count >= reader->document.options->limits.slice_count_max ||
            profile->model->track_count > reader->document.options->limits.track_count_max) {
            return LAC_ERR_LIMIT;
        }
        profile->model->info.event_count++;
        if (is_good) {
            status = take(reader, records->items[i], &slice, &is_good);
        }
        if (!is_good) {
            lac_document_drop(&reader->document, "record_not_understood",
                              "Records without times, or of agents that the file does not name.");
        } else if (status == LAC_OK) {
            profile->model->info.slice_count++;
            status = lac_builder_slice(profile->builder, &slice);
        }
    }
    return status;
}

static enum lac_status read_process(struct reader *reader, const struct lac_plain *tool)
{
    static const char *const CALLS[] = {"hip_api", "hsa_api", "rccl_api"};
    const struct lac_plain *records = lac_plain_get(tool, "buffer_records");
    uint32_t id = 0;
    reader->symbols = lac_plain_get(tool, "kernel_symbols");
    reader->kinds = lac_plain_get(lac_plain_get(tool, "strings"), "buffer_records");
    if (!number(lac_plain_get(tool, "metadata"), "pid", &reader->pid) || reader->pid < 0) {
        reader->pid = -1;
    }
    enum lac_status status = own_name(reader, &id, "%" PRId64, reader->pid);
    if (status == LAC_OK) {
        status = lac_builder_process(reader->document.profile.builder, id, reader->pid,
                                     &reader->process);
    }
    if (status == LAC_OK) {
        status = read_agents(reader, tool);
    }
    if (status == LAC_OK) {
        status = read_list(reader, lac_plain_get(records, "kernel_dispatch"), dispatch);
    }
    if (status == LAC_OK) {
        status = read_list(reader, lac_plain_get(records, "memory_copy"), copy);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(CALLS) && status == LAC_OK; i++) {
        status = read_list(reader, lac_plain_get(records, CALLS[i]), call);
    }
    if (status == LAC_OK) {
        status = read_markers(reader, lac_plain_get(lac_plain_get(tool, "strings"), "marker_api"));
    }
    return status == LAC_OK ? read_list(reader, lac_plain_get(records, "marker_api"), marker)
                            : status;
}

static enum lac_status read_root(struct reader *reader)
{
    const struct lac_plain *tools = lac_plain_get(reader->document.root, ROOT);
    enum lac_status status = lac_document_begin(&reader->document, LAC_FORMAT_ROCPROF);
    if (status == LAC_OK && !lac_plain_is(tools, LAC_PLAIN_LIST)) {
        status = read_process(reader, tools); /* one process, without a list around it */
    }
    for (uint32_t i = 0; lac_plain_is(tools, LAC_PLAIN_LIST) && i < tools->count && !status; i++) {
        reader->corr_base = reader->corr_last;
        status = read_process(reader, tools->items[i]);
    }
    if (status == LAC_OK && reader->document.profile.model->info.slice_count == 0) {
        status = lac_fail(reader->document.reterr, LAC_ERR_CORRUPT, 0,
                          "JSON of rocprofv3 in which nothing was traced: record with "
                          "rocprofv3 --sys-trace --output-format json -- PROGRAM");
    }
    return status;
}

enum lac_status lac_rocprofv3_import(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr)
{
    struct reader reader = {.pid = -1};
    *ret_model = NULL;
    enum lac_status status = lac_document_open(&reader.document, source, options, window_bytes,
                                               name, LAC_DOCUMENT_JSON, reterr);
    if (status == LAC_OK) {
        status = read_root(&reader);
        status = lac_document_end_timed(&reader.document, status, ret_model);
    }
    free(reader.markers);
    lac_document_close(&reader.document);
    return status;
}
