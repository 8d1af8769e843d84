#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct lac_gpu_record head_of(enum lac_gpu_type type, size_t size_bytes, uint64_t start_ns,
                                     uint64_t end_ns, uint32_t correlation)
{
    return (struct lac_gpu_record){.start_ns = start_ns,
                                   .end_ns = end_ns,
                                   .correlation = correlation,
                                   .units = (uint8_t)(size_bytes / 16),
                                   .type = (uint8_t)type};
}

static void place(struct lac_gpu_record *head, uint32_t device, uint32_t context, uint32_t stream)
{
    head->device = device < UINT16_MAX ? (uint16_t)device : UINT16_MAX;
    head->context = context;
    head->stream = stream;
}

static void put_kernel(struct lac_gpu_writer *writer, uint32_t version,
                       const struct cupti_kernel *from)
{
    struct lac_gpu_kernel kernel = {
        .head = head_of(LAC_GPU_KERNEL, sizeof(kernel), from->start_ns, from->end_ns,
                        from->correlation),
        .name = lac_gpu_writer_name(writer, from->name),
        .registers_per_thread = from->registers_per_thread,
        .static_shared_bytes = (uint32_t)from->static_shared_bytes,
        .dynamic_shared_bytes = (uint32_t)from->dynamic_shared_bytes,
    };

    place(&kernel.head, from->device, from->context, from->stream);
    for (int i = 0; i < 3; i++) {
        kernel.grid[i] = (uint32_t)from->grid[i];
        kernel.block[i] = (uint16_t)from->block[i];
    }
    if (version >= CUPTI_VERSION_GRAPH_NODES && from->graph_node != 0) {
        kernel.graph_node = from->graph_node;
        kernel.graph = from->graph;
        lac_graphs_node(lac_gpu_graphs(writer), from->graph, from->correlation, from->start_ns,
                        from->end_ns);
    }
    lac_gpu_writer_put(writer, &kernel.head);
}

/* A graph whose first node runs on the host names no device for its start. */
static void put_graph(struct lac_gpu_writer *writer, uint32_t version,
                      const struct cupti_graph_trace *from)
{
    const bool is_on_host = from->device == CUPTI_NO_DEVICE;
    const bool has_end = version >= CUPTI_VERSION_GRAPH_END;
    struct lac_gpu_kernel graph = {
        .head =
            head_of(LAC_GPU_GRAPH, sizeof(graph), from->start_ns, from->end_ns, from->correlation),
        .name = lac_gpu_writer_name(writer, "CUDA graph"),
        .graph = from->graph,
    };

    lac_graphs_whole(lac_gpu_graphs(writer), from->graph, from->start_ns, from->end_ns);
    place(&graph.head, is_on_host ? has_end ? from->end_device : 0 : from->device,
          is_on_host && has_end ? from->end_context : from->context, from->stream);
    lac_gpu_writer_put(writer, &graph.head);
}

static void put_copy(struct lac_gpu_writer *writer, const struct cupti_memcpy *from,
                     uint32_t correlation)
{
    struct lac_gpu_copy copy = {
        .head = head_of(LAC_GPU_COPY, sizeof(copy), from->start_ns, from->end_ns, correlation),
        .bytes = from->bytes,
        .kind = from->copy_kind,
        .src = from->src_kind,
        .dst = from->dst_kind,
        .is_async = from->flags & 1u,
    };

    place(&copy.head, from->device, from->context, from->stream);
    lac_gpu_writer_put(writer, &copy.head);
}

static void put_memset(struct lac_gpu_writer *writer, const struct cupti_memset *from)
{
    struct lac_gpu_copy set = {
        .head =
            head_of(LAC_GPU_MEMSET, sizeof(set), from->start_ns, from->end_ns, from->correlation),
        .bytes = from->bytes,
        .value = from->value,
    };

    place(&set.head, from->device, from->context, from->stream);
    lac_gpu_writer_put(writer, &set.head);
}

static void put_call(struct lac_gpu_writer *writer, const struct cupti_call *from)
{
    const bool runtime = from->kind == CUPTI_KIND_RUNTIME;
    struct lac_gpu_call call = {
        .head = head_of(runtime ? LAC_GPU_RUNTIME_CALL : LAC_GPU_DRIVER_CALL, sizeof(call),
                        from->start_ns, from->end_ns, from->correlation),
        .tid = from->thread,
        .result = from->result,
        .number = from->number,
        .name = lac_gpu_writer_name(
            writer, lac_cupti_call_name(runtime ? CUPTI_DOMAIN_RUNTIME : CUPTI_DOMAIN_DRIVER,
                                        from->number)),
    };

    lac_gpu_writer_put(writer, &call.head);
}

static void put_sync(struct lac_gpu_writer *writer, const struct cupti_synchronization *from)
{
    struct lac_gpu_call sync = {
        .head =
            head_of(LAC_GPU_SYNC, sizeof(sync), from->start_ns, from->end_ns, from->correlation),
        .result = from->type,
        .number = from->event,
    };

    place(&sync.head, UINT16_MAX, from->context, from->stream);
    lac_gpu_writer_put(writer, &sync.head);
}

static void put_event(struct lac_gpu_writer *writer, const struct cupti_cuda_event *from)
{
    struct lac_gpu_call event = {
        .head = head_of(LAC_GPU_EVENT, sizeof(event), 0, 0, from->correlation),
        .number = from->event,
    };

    place(&event.head, UINT16_MAX, from->context, from->stream);
    lac_gpu_writer_put(writer, &event.head);
}

static void put_external(struct lac_gpu_writer *writer,
                         const struct cupti_external_correlation *from)
{
    const struct lac_gpu_external external = {
        .head = head_of(LAC_GPU_EXTERNAL, sizeof(external), 0, 0, from->correlation),
        .id = from->external_id,
        .kind = from->external_kind,
    };

    lac_gpu_writer_put(writer, &external.head);
}

static void put_overhead(struct lac_gpu_writer *writer, const struct cupti_overhead *from)
{
    struct lac_gpu_call overhead = {
        .head = head_of(LAC_GPU_OVERHEAD, sizeof(overhead), from->start_ns, from->end_ns, 0),
        .tid = from->object_kind == CUPTI_OBJECT_THREAD ? from->object[1] : 0,
        .result = from->overhead_kind,
    };

    lac_gpu_writer_put(writer, &overhead.head);
}

static void put_memory(struct lac_gpu_writer *writer, const struct cupti_memory *from)
{
    struct lac_gpu_memory memory = {
        .head = head_of(LAC_GPU_MEMORY, sizeof(memory), from->timestamp_ns, from->timestamp_ns,
                        from->correlation),
        .address = from->address,
        .bytes = from->bytes,
        .operation = from->operation,
        .memory_kind = from->memory_kind,
    };

    place(&memory.head, from->device, from->context, from->stream);
    lac_gpu_writer_put(writer, &memory.head);
}

/* As NVML writes it, so that the two can be compared. */
static void write_uuid(const char *prefix, const uint8_t *uuid, char *out)
{
    static const char digits[] = "0123456789abcdef";
    char *at = out;

    memcpy(at, prefix, 4);
    at += 4;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[uuid[i] >> 4];
        *at++ = digits[uuid[i] & 15];
    }
    *at = '\0';
}

/* Two processes may each see a part of one device: parts are devices of their own. What CUDA does not
 * show to this process has no number here. */
static void put_device(uint32_t version, const struct cupti_device *from)
{
    static const uint8_t none[16];
    const bool has_parts = version >= CUPTI_VERSION_MIG;
    char key[32];
    char text[300];
    char uuid[48];

    if (has_parts && from->is_visible == 0) {
        return;
    }
    if (has_parts && from->is_divided != 0 && memcmp(from->mig_uuid, none, sizeof(none)) != 0) {
        write_uuid("MIG-", from->mig_uuid, uuid);
    } else {
        write_uuid("GPU-", from->uuid, uuid);
    }
    (void)snprintf(key, sizeof(key), "gpu_device.%u", from->id);
    (void)snprintf(text, sizeof(text), "%s|%.127s|%llu|%u|%u.%u", uuid,
                   from->name != NULL ? from->name : "", (unsigned long long)from->memory_bytes,
                   from->sm_count, from->capability_major, from->capability_minor);
    lac_setting(key, text);
}

void lac_cupti_decode(struct lac_gpu_writer *writer, uint32_t version,
                      const struct cupti_activity *record)
{
    const void *const body = record;

    switch (record->kind) {
    case CUPTI_KIND_KERNEL:
    case CUPTI_KIND_CONCURRENT_KERNEL:
        put_kernel(writer, version, body);
        break;
    case CUPTI_KIND_MEMCPY:
        put_copy(writer, body, ((const struct cupti_memcpy *)body)->correlation);
        break;
    case CUPTI_KIND_MEMCPY2: /* the same up to the stream */
        put_copy(writer, body, ((const struct cupti_memcpy_peer *)body)->correlation);
        break;
    case CUPTI_KIND_MEMSET:
        put_memset(writer, body);
        break;
    case CUPTI_KIND_RUNTIME:
    case CUPTI_KIND_DRIVER:
        put_call(writer, body);
        break;
    case CUPTI_KIND_SYNCHRONIZATION:
        put_sync(writer, body);
        break;
    case CUPTI_KIND_CUDA_EVENT:
        put_event(writer, body);
        break;
    case CUPTI_KIND_EXTERNAL_CORRELATION:
        put_external(writer, body);
        break;
    case CUPTI_KIND_OVERHEAD:
        put_overhead(writer, body);
        break;
    case CUPTI_KIND_MEMORY2:
        put_memory(writer, body);
        break;
    case CUPTI_KIND_DEVICE:
        put_device(version, body);
        break;
    case CUPTI_KIND_GRAPH_TRACE:
        put_graph(writer, version, body);
        break;
    default:
        break;
    }
}
