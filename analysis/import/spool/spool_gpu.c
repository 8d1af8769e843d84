#include "analysis/import/spool/spool_gpu.h"

#include "analysis/import/spool/spool_devices.h"
#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_external.h"
#include "analysis/import/spool/spool_sync.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* as CUPTI numbers them */
enum { CUPTI_DTOD = 8, CUPTI_HTOH = 9, CUPTI_PTOP = 10 };
enum { SYNC_OF_EVENT = 1, SYNC_STREAM_WAITS = 2 };
/* those above are of a profile that joined the recording (spool_profiler.c) */
static const uint32_t CORRELATIONS_END = 1u << 31;

struct gpu_reader {
    struct lac_spool_process *process;
    int64_t offset_ns; /* from the records' clock to absolute time */
};

static struct lac_strings *strings_of(const struct gpu_reader *reader)
{
    return &lac_builder_model(reader->process->builder)->strings;
}

static enum lac_status intern_number(const struct gpu_reader *reader, const char *format,
                                     int64_t number, uint32_t *ret_id)
{
    char text[40];
    int length = snprintf(text, sizeof(text), "%s%" PRId64, format, number);

    return lac_strings_intern(strings_of(reader), text, (size_t)length, ret_id);
}

/* The row of a stream: a process of its own for each device, as other recorders have it. */
static enum lac_status stream_track(const struct gpu_reader *reader,
                                    const struct lac_gpu_record *head, uint32_t *ret_track)
{
    struct lac_builder *const builder = reader->process->builder;
    const uint32_t device = lac_spool_device_number(reader->process, head->device);
    uint32_t device_text;
    uint32_t stream_text;
    uint32_t process;
    enum lac_status status = intern_number(reader, "GPU ", device, &device_text);

    if (status == LAC_OK) {
        status = intern_number(reader, "", head->stream, &stream_text);
    }
    if (status == LAC_OK) {
        status = lac_builder_process(builder, device_text, -1, &process);
    }
    if (status == LAC_OK) {
        struct lac_process *const entry = lac_builder_process_at(builder, process);

        entry->is_gpu = true;
        entry->name = entry->name == 0 ? device_text : entry->name; /* another one was given */
        status = lac_builder_track(builder, LAC_TRACK_STREAM, process, stream_text, head->stream,
                                   ret_track);
    }
    if (status == LAC_OK) {
        lac_builder_track_at(builder, *ret_track)->device = device;
        status = lac_builder_device(builder, device) != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    return status;
}

static enum lac_status thread_track(const struct gpu_reader *reader, uint32_t tid,
                                    uint32_t *ret_track)
{
    uint32_t text;
    enum lac_status status = intern_number(reader, "", tid, &text);

    return status != LAC_OK ? status
                            : lac_builder_track(reader->process->builder, LAC_TRACK_THREAD,
                                                reader->process->process, text, tid, ret_track);
}

static struct lac_slice_in slice_of(const struct gpu_reader *reader,
                                    const struct lac_gpu_record *head, enum lac_slice_kind kind)
{
    const int64_t start_ns = lac_spool_ns(head->start_ns);
    const int64_t end_ns = lac_spool_ns(head->end_ns);

    return (struct lac_slice_in){.start_ns = start_ns + reader->offset_ns,
                                 .dur_ns = end_ns > start_ns ? end_ns - start_ns : 0,
                                 .corr = head->correlation,
                                 .detail = LAC_NONE,
                                 .kind = kind};
}

uint32_t lac_spool_corr(struct lac_spool_process *process, uint32_t correlation)
{
    uint32_t *const end = &process->settings->corr_end;

    if (correlation == 0 || correlation >= CORRELATIONS_END - process->corr_base) {
        return correlation == 0 ? 0 : correlation % CORRELATIONS_END;
    }
    correlation += process->corr_base;
    *end = correlation >= *end ? correlation + 1 : *end;
    return correlation;
}

/* Arguments and waits were looked up by the process's own correlation id before. */
static enum lac_status put(const struct gpu_reader *reader, const struct lac_slice_in *slice)
{
    struct lac_model *const model = lac_builder_model(reader->process->builder);
    struct lac_slice_in of_trace = *slice;

    model->info.event_count++;
    model->info.slice_count += slice->kind != LAC_SLICE_ALLOC;
    of_trace.corr = lac_spool_corr(reader->process, slice->corr);
    return lac_builder_slice(reader->process->builder, &of_trace);
}

/* A launch of a graph that was recorded as a whole is one kernel to all that count busy time; its
 * name and the report say that it is more. */
static enum lac_status name_graph(const struct gpu_reader *reader, struct lac_slice_in *slice)
{
    reader->process->whole_graphs++;
    return lac_strings_intern(strings_of(reader), "CUDA graph", strlen("CUDA graph"), &slice->name);
}

static enum lac_status on_kernel(const struct gpu_reader *reader,
                                 const struct lac_gpu_kernel *kernel)
{
    struct lac_slice_in slice = slice_of(reader, &kernel->head, LAC_SLICE_KERNEL);
    struct lac_kernel_config config = {
        .registers_per_thread = kernel->registers_per_thread,
        .shared_memory_bytes = kernel->static_shared_bytes + kernel->dynamic_shared_bytes,
        .occupancy_pct = -1.0F,
        .blocks_per_sm = -1.0F,
        .graph_node = kernel->graph_node,
    };
    enum lac_status status = stream_track(reader, &kernel->head, &slice.track);

    for (int i = 0; i < 3; i++) {
        config.grid[i] = kernel->grid[i];
        config.block[i] = kernel->block[i];
    }
    slice.name = lac_spool_name_of(reader->process, kernel->name);
    if (status == LAC_OK && kernel->head.type == LAC_GPU_GRAPH) {
        status = name_graph(reader, &slice);
    }
    if (status == LAC_OK) {
        status = lac_spool_external_store(reader->process, kernel->graph, &slice);
    }
    if (status == LAC_OK) {
        status = lac_builder_kernel_config(reader->process->builder, &config, &slice.detail);
    }
    return status != LAC_OK ? status : put(reader, &slice);
}

/* "Memcpy HtoD (Pageable -> Device)", the words every PyTorch user has seen. */
static enum lac_status copy_name(const struct gpu_reader *reader, const struct lac_copy *copy,
                                 bool is_set, uint32_t *ret_id)
{
    char text[96];
    int length;

    if (is_set) {
        length = snprintf(text, sizeof(text), "Memset (Device)");
    } else {
        length = snprintf(text, sizeof(text), "Memcpy %s (%s -> %s)",
                          lac_copy_kind_name(copy->copy_kind), lac_memory_kind_name(copy->src),
                          lac_memory_kind_name(copy->dst));
        for (int i = 1; i < length; i++) { /* "pageable" -> "Pageable" */
            if ((text[i - 1] == '(' || (text[i - 1] == ' ' && text[i - 2] == '>')) &&
                text[i] >= 'a' && text[i] <= 'z') {
                text[i] = (char)(text[i] - 'a' + 'A');
            }
        }
    }
    return lac_strings_intern(strings_of(reader), text, (size_t)length, ret_id);
}

static uint8_t copy_kind_of(uint8_t cupti)
{
    switch (cupti) {
    case LAC_COPY_HTOD:
    case LAC_COPY_DTOH:
        return cupti;
    case CUPTI_DTOD:
        return LAC_COPY_DTOD;
    case CUPTI_HTOH:
        return LAC_COPY_HTOH;
    case CUPTI_PTOP:
        return LAC_COPY_PTOP;
    default:
        return LAC_COPY_UNKNOWN;
    }
}

static enum lac_status on_copy(const struct gpu_reader *reader, const struct lac_gpu_copy *record)
{
    const bool is_set = record->head.type == LAC_GPU_MEMSET;
    struct lac_slice_in slice =
        slice_of(reader, &record->head, is_set ? LAC_SLICE_MEMSET : LAC_SLICE_COPY);
    const struct lac_copy copy = {
        .bytes = record->bytes <= INT64_MAX ? (int64_t)record->bytes : -1,
        .copy_kind = is_set ? LAC_COPY_UNKNOWN : copy_kind_of(record->kind),
        .src = record->src <= LAC_MEMORY_MANAGED && !is_set ? record->src : LAC_MEMORY_UNKNOWN,
        .dst = is_set                              ? LAC_MEMORY_DEVICE
               : record->dst <= LAC_MEMORY_MANAGED ? record->dst
                                                   : LAC_MEMORY_UNKNOWN,
        .is_async = is_set ? 2 : record->is_async & 1u,
    };
    enum lac_status status = stream_track(reader, &record->head, &slice.track);

    if (status == LAC_OK) {
        status = copy_name(reader, &copy, is_set, &slice.name);
    }
    if (status == LAC_OK) {
        status = lac_builder_copy(reader->process->builder, &copy, &slice.detail);
    }
    if (status == LAC_OK) {
        status = lac_spool_external_store(reader->process, 0, &slice);
    }
    return status != LAC_OK ? status : put(reader, &slice);
}

static enum lac_status on_call(const struct gpu_reader *reader, const struct lac_gpu_call *call)
{
    struct lac_slice_in slice = slice_of(reader, &call->head, LAC_SLICE_API);
    enum lac_status status = thread_track(reader, call->tid, &slice.track);
    const char *text;
    const char *version;

    slice.detail = call->result;
    slice.name = lac_spool_name_of(reader->process, call->name);
    /* callback names carry the version of the entry point: cudaLaunchKernel_v7000 */
    text = lac_model_str(lac_builder_model(reader->process->builder), slice.name);
    version = strstr(text, "_v");
    if (status == LAC_OK && version != NULL && version[2] >= '0' && version[2] <= '9') {
        char cut[96];
        const size_t length =
            (size_t)(version - text) < sizeof(cut) ? (size_t)(version - text) : sizeof(cut) - 1;

        memcpy(cut, text, length);
        if (lac_strings_intern(strings_of(reader), cut, length, &slice.name) != LAC_OK) {
            return LAC_ERR_NOMEM;
        }
    }
    if (status == LAC_OK) {
        status = lac_spool_external_store(reader->process, 0, &slice);
    }
    return status != LAC_OK ? status : put(reader, &slice);
}

static enum lac_status on_sync(const struct gpu_reader *reader, const struct lac_gpu_call *sync)
{
    static const char *const kinds[] = {"Synchronization", "Event Sync", "Stream Wait Event",
                                        "Stream Sync", "Context Sync"};
    struct lac_spool_sync wait = {.slice = slice_of(reader, &sync->head, LAC_SLICE_SYNC),
                                  .context = sync->head.context,
                                  .stream = sync->head.stream,
                                  .event = sync->number,
                                  .has_event = sync->result == SYNC_OF_EVENT ||
                                               sync->result == SYNC_STREAM_WAITS};
    const char *const name = kinds[sync->result < 5 ? sync->result : 0];
    struct lac_model *const model = lac_builder_model(reader->process->builder);
    uint32_t text;
    enum lac_status status =
        lac_strings_intern(strings_of(reader), name, strlen(name), &wait.slice.name);

    if (status == LAC_OK) {
        status = lac_strings_intern(strings_of(reader), "synchronization",
                                    strlen("synchronization"), &text);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(reader->process->builder, LAC_TRACK_ASYNC,
                                   reader->process->process, text, -1, &wait.slice.track);
    }
    if (status == LAC_OK) {
        model->info.event_count++;
        model->info.slice_count++;
        status = lac_spool_sync_add(reader->process, &wait);
    }
    return status;
}

static enum lac_status on_overhead(const struct gpu_reader *reader,
                                   const struct lac_gpu_call *overhead)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {
        {1, "Driver Compiler"},
        {1u << 16, "Buffer Flush"},
        {2u << 16, "Instrumentation"},
        {3u << 16, "Resource"},
        {4u << 16, "Runtime Triggered Module Loading"},
        {5u << 16, "Lazy Function Loading"},
        {6u << 16, "Command Buffer Full"},
        {7u << 16, "Activity Buffer Request"},
        {8u << 16, "UVM Activity Init"},
    };
    struct lac_slice_in slice = slice_of(reader, &overhead->head, LAC_SLICE_OVERHEAD);
    const char *name = "Overhead";
    uint32_t row;
    enum lac_status status;

    for (size_t i = 0; i < LAC_COUNT_OF(kinds); i++) {
        name = kinds[i].kind == overhead->result ? kinds[i].name : name;
    }
    status = lac_strings_intern(strings_of(reader), name, strlen(name), &slice.name);
    if (status == LAC_OK && overhead->tid != 0) {
        status = thread_track(reader, overhead->tid, &slice.track);
    } else if (status == LAC_OK) { /* of a context or device: nobody knows which thread had it */
        status = lac_strings_intern(strings_of(reader), "overhead", strlen("overhead"), &row);
        if (status == LAC_OK) {
            status = lac_builder_track(reader->process->builder, LAC_TRACK_ASYNC,
                                       reader->process->process, row, -1, &slice.track);
        }
    }
    return status != LAC_OK ? status : put(reader, &slice);
}

static enum lac_status on_memory(const struct gpu_reader *reader,
                                 const struct lac_gpu_memory *memory)
{
    struct lac_slice_in slice = slice_of(reader, &memory->head, LAC_SLICE_ALLOC);
    const int64_t bytes = memory->bytes <= INT64_MAX ? (int64_t)memory->bytes : INT64_MAX;
    const struct lac_alloc alloc = {
        .bytes = memory->operation == 2 ? -bytes : bytes,
        .total_allocated = -1,
        .device = lac_spool_device_number(reader->process, memory->head.device)};
    uint32_t text;
    enum lac_status status =
        lac_strings_intern(strings_of(reader), "[memory]", strlen("[memory]"), &slice.name);

    slice.corr = 0; /* the call is recorded itself */
    if (status == LAC_OK) {
        status =
            lac_strings_intern(strings_of(reader), "device memory", strlen("device memory"), &text);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(reader->process->builder, LAC_TRACK_MARKS,
                                   reader->process->process, text, -1, &slice.track);
    }
    if (status == LAC_OK) {
        status = lac_builder_alloc(reader->process->builder, &alloc, &slice.detail);
    }
    return status != LAC_OK ? status : put(reader, &slice);
}

static size_t size_of(uint8_t type)
{
    switch (type) {
    case LAC_GPU_KERNEL:
    case LAC_GPU_GRAPH:
        return sizeof(struct lac_gpu_kernel);
    case LAC_GPU_COPY:
    case LAC_GPU_MEMSET:
        return sizeof(struct lac_gpu_copy);
    case LAC_GPU_RUNTIME_CALL:
    case LAC_GPU_DRIVER_CALL:
    case LAC_GPU_SYNC:
    case LAC_GPU_OVERHEAD:
    case LAC_GPU_EVENT:
        return sizeof(struct lac_gpu_call);
    case LAC_GPU_EXTERNAL:
        return sizeof(struct lac_gpu_external);
    case LAC_GPU_MEMORY:
        return sizeof(struct lac_gpu_memory);
    default:
        return 0;
    }
}

/* CUPTI has no times for what was still in progress when it was asked; recorders of before wrote
 * that down. */
static bool is_untimed(const struct lac_gpu_record *head)
{
    return head->type != LAC_GPU_EVENT && head->type != LAC_GPU_EXTERNAL &&
           (head->start_ns == 0 || head->end_ns < head->start_ns);
}

static bool is_outside(const struct gpu_reader *reader, const struct lac_gpu_record *head)
{
    return head->type != LAC_GPU_EVENT && head->type != LAC_GPU_EXTERNAL &&
           (!lac_spool_is_inside(reader->process,
                                 lac_spool_ns(head->start_ns) + reader->offset_ns) ||
            !lac_spool_is_inside(reader->process, lac_spool_ns(head->end_ns) + reader->offset_ns));
}

static enum lac_status on_record(const struct gpu_reader *reader, const void *record, uint8_t type)
{
    if (is_untimed(record)) {
        reader->process->untimed++;
        return LAC_OK;
    }
    if (is_outside(reader, record)) {
        reader->process->outside++;
        return LAC_OK;
    }
    switch (type) {
    case LAC_GPU_KERNEL:
    case LAC_GPU_GRAPH:
        return on_kernel(reader, record);
    case LAC_GPU_COPY:
    case LAC_GPU_MEMSET:
        return on_copy(reader, record);
    case LAC_GPU_RUNTIME_CALL:
    case LAC_GPU_DRIVER_CALL:
        return on_call(reader, record);
    case LAC_GPU_SYNC:
        return on_sync(reader, record);
    case LAC_GPU_EVENT: /* no interval: it says what a wait waits for */
        return lac_spool_sync_event(reader->process, record);
    case LAC_GPU_OVERHEAD:
        return on_overhead(reader, record);
    case LAC_GPU_MEMORY:
        return on_memory(reader, record);
    default: /* ids were read before: lac_spool_externals_collect() */
        return LAC_OK;
    }
}

enum lac_status lac_spool_gpu_records(struct lac_spool_process *process, const uint8_t *records,
                                      size_t size_bytes, uint32_t gpu_clock, int64_t realtime_ns)
{
    const struct gpu_reader reader = {
        .process = process,
        .offset_ns = process->offset_ns - (gpu_clock == LAC_GPU_CLOCK_REALTIME ? realtime_ns : 0)};
    enum lac_status status = LAC_OK;

    for (size_t at = 0; at + sizeof(struct lac_gpu_record) <= size_bytes && status == LAC_OK;) {
        const struct lac_gpu_record *const head =
            (const struct lac_gpu_record *)(const void *)(records + at);
        const size_t record_bytes = (size_t)head->units * 16;

        if (head->type == 0) {
            break;
        }
        if (record_bytes < sizeof(*head) || record_bytes > size_bytes - at) {
            lac_model_report(lac_builder_model(process->builder), LAC_REPORT_DROPPED,
                             "bad_gpu_record", 1, at,
                             "a GPU record is damaged; the rest of its segment is not read");
            break;
        }
        if (size_of(head->type) == 0 || record_bytes < size_of(head->type)) {
            process->unknown_events++;
        } else {
            status = on_record(&reader, head, head->type);
        }
        at += record_bytes;
    }
    return status;
}
