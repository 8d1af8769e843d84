/*
 * Every record of CUPTI that we read, in every version of it that the toolkit's headers describe:
 * laid out by those headers, walked by the real libcupti where it knows the version, and read by
 * our decoder. The decoder is compiled in here, with a writer that keeps what it is given.
 */
#include "collector/base/count_of.h"
#include "collector/inject/cupti_decode.c"
#include "collector/inject/cupti_graphs.c"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLKIT_LIBRARY "/usr/local/cuda/lib64/libcupti.so.13"

enum { KEPT_MAX = 4096, KEPT_BYTES = 80 };

struct lac_gpu_writer {
    struct lac_graphs graphs;
    uint32_t count;
    uint8_t kept[KEPT_MAX][KEPT_BYTES] __attribute__((aligned(16)));
};

static struct lac_gpu_writer writer;

void lac_gpu_writer_put(struct lac_gpu_writer *taken, const struct lac_gpu_record *head)
{
    ck_assert_uint_lt(taken->count, KEPT_MAX);
    ck_assert_uint_le(head->units * 16u, KEPT_BYTES);
    memcpy(taken->kept[taken->count++], head, head->units * 16u);
}

/* The length of the name stands for it: enough to see that the right pointer was read. */
uint32_t lac_gpu_writer_name(struct lac_gpu_writer *taken, const char *name)
{
    (void)taken;
    return name != NULL ? (uint32_t)strlen(name) : 0;
}

struct lac_graphs *lac_gpu_graphs(struct lac_gpu_writer *taken)
{
    return &taken->graphs;
}

static char last_setting[512];

void lac_setting(const char *key, const char *value)
{
    (void)snprintf(last_setting, sizeof(last_setting), "%s=%s", key, value);
}

const char *lac_cupti_call_name(enum cupti_domain domain, uint32_t number)
{
    static const char text[] = "a call whose number is how much of this is read";

    return text + sizeof(text) - 1 - (number + (unsigned)domain) % 40;
}

static const void *kept(uint32_t at, enum lac_gpu_type type, size_t size_bytes)
{
    const struct lac_gpu_record *const head = (const void *)writer.kept[at];

    ck_assert_uint_lt(at, writer.count);
    ck_assert_uint_eq(head->type, type);
    ck_assert_uint_eq(head->units * 16u, size_bytes);
    return head;
}

static void forget(void)
{
    memset(&writer, 0, sizeof(writer));
}

/* The real library, or NULL. */
static void *real_walk(void)
{
    void *const library = dlopen(TOOLKIT_LIBRARY, RTLD_NOW);

    return library != NULL ? dlsym(library, "cuptiActivityGetNextRecord") : NULL;
}

#if __has_include(<cupti.h>)
#include <cupti.h>

static uint64_t seed = 0x2545f4914f6cdd1d;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill(void *record, size_t size_bytes, int kind)
{
    const uint32_t number = (uint32_t)kind;

    for (size_t i = 0; i < size_bytes; i++) {
        ((uint8_t *)record)[i] = (uint8_t)any();
    }
    memcpy(record, &number, sizeof(number));
}

static void decode(const void *record, uint32_t version)
{
    forget();
    lac_cupti_decode(&writer, version, record);
    ck_assert_uint_eq(writer.count, 1);
}

#define CHECK_PLACE(head, from)                                                                    \
    do {                                                                                           \
        ck_assert_uint_eq((head).context, (from).contextId);                                       \
        ck_assert_uint_eq((head).stream, (from).streamId);                                         \
        ck_assert_uint_eq((head).device,                                                           \
                          (from).deviceId < UINT16_MAX ? (from).deviceId : UINT16_MAX);            \
    } while (0)
#define CHECK_SPAN(head, from)                                                                     \
    do {                                                                                           \
        ck_assert_uint_eq((head).start_ns, (from).start);                                          \
        ck_assert_uint_eq((head).end_ns, (from).end);                                              \
        ck_assert_uint_eq((head).correlation, (from).correlationId);                               \
    } while (0)

static void check_kernel_head(const struct lac_gpu_kernel *ours, uint64_t node, uint32_t graph,
                              bool has_graph)
{
    ck_assert_uint_eq(ours->graph_node, has_graph ? node : 0);
    ck_assert_uint_eq(ours->graph, has_graph && node != 0 ? graph : 0);
}

#define KERNEL(struct_of, api_version, node, graph_id, has_graph)                                  \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_kernel *ours;                                                         \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);                          \
        from.name = "a_kernel_with_a_name";                                                        \
        from.deviceId %= 16;                                                                       \
        decode(&from, api_version);                                                                \
        ours = kept(0, LAC_GPU_KERNEL, sizeof(*ours));                                             \
        CHECK_PLACE(ours->head, from);                                                             \
        CHECK_SPAN(ours->head, from);                                                              \
        ck_assert_uint_eq(ours->name, strlen(from.name));                                          \
        ck_assert_uint_eq(ours->grid[0], (uint32_t)from.gridX);                                    \
        ck_assert_uint_eq(ours->grid[2], (uint32_t)from.gridZ);                                    \
        ck_assert_uint_eq(ours->block[1], (uint16_t)from.blockY);                                  \
        ck_assert_uint_eq(ours->registers_per_thread, from.registersPerThread);                    \
        ck_assert_uint_eq(ours->static_shared_bytes, (uint32_t)from.staticSharedMemory);           \
        ck_assert_uint_eq(ours->dynamic_shared_bytes, (uint32_t)from.dynamicSharedMemory);         \
        check_kernel_head(ours, node, graph_id, has_graph);                                        \
    } while (0)
#define KERNEL_WITH_GRAPH(struct_of, api_version)                                                  \
    KERNEL(struct_of, api_version, from.graphNodeId, from.graphId, true)

START_TEST(kernels_of_every_version_are_read)
{
    KERNEL(CUpti_ActivityKernel4, 12, 0, 0, false);
    KERNEL(CUpti_ActivityKernel5, 13, 0, 0, false);
    KERNEL_WITH_GRAPH(CUpti_ActivityKernel6, 14);
    KERNEL_WITH_GRAPH(CUpti_ActivityKernel7, 16);
    KERNEL_WITH_GRAPH(CUpti_ActivityKernel8, 17);
    KERNEL_WITH_GRAPH(CUpti_ActivityKernel9, 18);
    KERNEL_WITH_GRAPH(CUpti_ActivityKernel10, CUPTI_API_VERSION);
}
END_TEST

#define COPY(struct_of, kind_number)                                                               \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_copy *ours;                                                           \
        fill(&from, sizeof(from), kind_number);                                                    \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_COPY, sizeof(*ours));                                               \
        CHECK_PLACE(ours->head, from);                                                             \
        CHECK_SPAN(ours->head, from);                                                              \
        ck_assert_uint_eq(ours->bytes, from.bytes);                                                \
        ck_assert_uint_eq(ours->kind, from.copyKind);                                              \
        ck_assert_uint_eq(ours->src, from.srcKind);                                                \
        ck_assert_uint_eq(ours->dst, from.dstKind);                                                \
        ck_assert_uint_eq(ours->is_async, from.flags &CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);           \
    } while (0)

START_TEST(copies_of_every_version_are_read)
{
    COPY(CUpti_ActivityMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
    COPY(CUpti_ActivityMemcpy3, CUPTI_ACTIVITY_KIND_MEMCPY);
    COPY(CUpti_ActivityMemcpy4, CUPTI_ACTIVITY_KIND_MEMCPY);
    COPY(CUpti_ActivityMemcpy5, CUPTI_ACTIVITY_KIND_MEMCPY);
    COPY(CUpti_ActivityMemcpy6, CUPTI_ACTIVITY_KIND_MEMCPY);
    COPY(CUpti_ActivityMemcpyPtoP, CUPTI_ACTIVITY_KIND_MEMCPY2);
    COPY(CUpti_ActivityMemcpyPtoP2, CUPTI_ACTIVITY_KIND_MEMCPY2);
    COPY(CUpti_ActivityMemcpyPtoP3, CUPTI_ACTIVITY_KIND_MEMCPY2);
    COPY(CUpti_ActivityMemcpyPtoP4, CUPTI_ACTIVITY_KIND_MEMCPY2);
}
END_TEST

#define MEMSET(struct_of)                                                                          \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_copy *ours;                                                           \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_MEMSET);                                     \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_MEMSET, sizeof(*ours));                                             \
        CHECK_PLACE(ours->head, from);                                                             \
        CHECK_SPAN(ours->head, from);                                                              \
        ck_assert_uint_eq(ours->bytes, from.bytes);                                                \
        ck_assert_uint_eq(ours->value, from.value);                                                \
    } while (0)

START_TEST(memsets_of_every_version_are_read)
{
    MEMSET(CUpti_ActivityMemset);
    MEMSET(CUpti_ActivityMemset2);
    MEMSET(CUpti_ActivityMemset3);
    MEMSET(CUpti_ActivityMemset4);
}
END_TEST

#define MEMORY(struct_of)                                                                          \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_memory *ours;                                                         \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_MEMORY2);                                    \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_MEMORY, sizeof(*ours));                                             \
        CHECK_PLACE(ours->head, from);                                                             \
        ck_assert_uint_eq(ours->head.start_ns, from.timestamp);                                    \
        ck_assert_uint_eq(ours->head.correlation, from.correlationId);                             \
        ck_assert_uint_eq(ours->address, from.address);                                            \
        ck_assert_uint_eq(ours->bytes, from.bytes);                                                \
        ck_assert_uint_eq(ours->operation, (uint32_t)from.memoryOperationType);                    \
        ck_assert_uint_eq(ours->memory_kind, (uint32_t)from.memoryKind);                           \
    } while (0)

START_TEST(allocations_of_every_version_are_read)
{
    MEMORY(CUpti_ActivityMemory2);
    MEMORY(CUpti_ActivityMemory3);
    MEMORY(CUpti_ActivityMemory4);
}
END_TEST

#define SYNC(struct_of)                                                                            \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_call *ours;                                                           \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);                            \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_SYNC, sizeof(*ours));                                               \
        CHECK_SPAN(ours->head, from);                                                              \
        ck_assert_uint_eq(ours->head.context, from.contextId);                                     \
        ck_assert_uint_eq(ours->head.stream, from.streamId);                                       \
        ck_assert_uint_eq(ours->result, (uint32_t)from.type);                                      \
        ck_assert_uint_eq(ours->number, from.cudaEventId);                                         \
    } while (0)
#define OVERHEAD(struct_of)                                                                        \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_call *ours;                                                           \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_OVERHEAD);                                   \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_OVERHEAD, sizeof(*ours));                                           \
        ck_assert_uint_eq(ours->head.start_ns, from.start);                                        \
        ck_assert_uint_eq(ours->head.end_ns, from.end);                                            \
        ck_assert_uint_eq(ours->result, (uint32_t)from.overheadKind);                              \
        ck_assert_uint_eq(ours->tid, 0); /* the filling makes it no thread's */                    \
        from.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;                                            \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_OVERHEAD, sizeof(*ours));                                           \
        ck_assert_uint_eq(ours->tid, from.objectId.pt.threadId);                                   \
    } while (0)
#define GRAPH(struct_of)                                                                           \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_kernel *ours;                                                         \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_GRAPH_TRACE);                                \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_GRAPH, sizeof(*ours));                                              \
        CHECK_PLACE(ours->head, from);                                                             \
        CHECK_SPAN(ours->head, from);                                                              \
        ck_assert_uint_eq(ours->graph, from.graphId);                                              \
    } while (0)

#define EVENT(struct_of)                                                                           \
    do {                                                                                           \
        struct_of from;                                                                            \
        const struct lac_gpu_call *ours;                                                           \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_CUDA_EVENT);                                 \
        decode(&from, CUPTI_API_VERSION);                                                          \
        ours = kept(0, LAC_GPU_EVENT, sizeof(*ours));                                              \
        ck_assert_uint_eq(ours->head.correlation, from.correlationId);                             \
        ck_assert_uint_eq(ours->head.context, from.contextId);                                     \
        ck_assert_uint_eq(ours->head.stream, from.streamId);                                       \
        ck_assert_uint_eq(ours->number, from.eventId);                                             \
    } while (0)

START_TEST(synchronisations_overhead_calls_and_graphs_of_every_version_are_read)
{
    SYNC(CUpti_ActivitySynchronization);
    SYNC(CUpti_ActivitySynchronization2);
    OVERHEAD(CUpti_ActivityOverhead);
    OVERHEAD(CUpti_ActivityOverhead2);
    OVERHEAD(CUpti_ActivityOverhead3);
    GRAPH(CUpti_ActivityGraphTrace);
    GRAPH(CUpti_ActivityGraphTrace2);
    EVENT(CUpti_ActivityCudaEvent);
    EVENT(CUpti_ActivityCudaEvent2);
    for (int kind = CUPTI_ACTIVITY_KIND_DRIVER; kind <= CUPTI_ACTIVITY_KIND_RUNTIME; kind++) {
        const bool runtime = kind == CUPTI_ACTIVITY_KIND_RUNTIME;
        const struct lac_gpu_call *ours;
        CUpti_ActivityAPI from;

        fill(&from, sizeof(from), kind);
        from.cbid = 7;
        decode(&from, CUPTI_API_VERSION);
        ours = kept(0, runtime ? LAC_GPU_RUNTIME_CALL : LAC_GPU_DRIVER_CALL, sizeof(*ours));
        CHECK_SPAN(ours->head, from);
        ck_assert_uint_eq(ours->tid, from.threadId);
        ck_assert_uint_eq(ours->result, from.returnValue);
        ck_assert_uint_eq(ours->name, runtime ? 9 : 8);
    }
}
END_TEST

/* A graph that begins on the host names no device: it is where it ends. */
START_TEST(a_graph_that_begins_on_the_host_is_placed_where_it_ends)
{
    CUpti_ActivityGraphTrace2 from;

    fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    from.deviceId = INT_MAX;
    from.endDeviceId = 5;
    decode(&from, CUPTI_API_VERSION);
    ck_assert_uint_eq(((const struct lac_gpu_record *)kept(0, LAC_GPU_GRAPH, 80))->device, 5);
    decode(&from, CUPTI_VERSION_GRAPH_END - 1);
    ck_assert_uint_eq(((const struct lac_gpu_record *)kept(0, LAC_GPU_GRAPH, 80))->device, 0);
}
END_TEST

#define DEVICE(struct_of, version)                                                                 \
    do {                                                                                           \
        struct_of from;                                                                            \
        fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_DEVICE);                                     \
        from.id = 3;                                                                               \
        from.globalMemorySize = 85899345920u;                                                      \
        from.numMultiprocessors = 132;                                                             \
        from.computeCapabilityMajor = 9;                                                           \
        from.computeCapabilityMinor = 0;                                                           \
        from.name = "a GPU";                                                                       \
        for (int i = 0; i < 16; i++) {                                                             \
            from.uuid.bytes[i] = (char)(0xf0 + i);                                                 \
        }                                                                                          \
        lac_cupti_decode(&writer, version, (const void *)&from);                                   \
        ck_assert_str_eq(last_setting, "gpu_device.3=GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff|"    \
                                       "a GPU|85899345920|132|9.0");                               \
    } while (0)

START_TEST(devices_of_every_version_are_read)
{
    DEVICE(CUpti_ActivityDevice2, 12);
    DEVICE(CUpti_ActivityDevice3, 16);
    DEVICE(CUpti_ActivityDevice4, 16); /* which does not look at parts */
    DEVICE(CUpti_ActivityDevice5, 16);
}
END_TEST

#define PART_OF_DEVICE(struct_of, version)                                                         \
    do {                                                                                           \
        struct_of from;                                                                            \
        memset(&from, 0, sizeof(from));                                                            \
        from.kind = CUPTI_ACTIVITY_KIND_DEVICE;                                                    \
        from.id = 1;                                                                               \
        from.name = "";                                                                            \
        from.uuid.bytes[15] = 7;                                                                   \
        from.isCudaVisible = 1;                                                                    \
        lac_cupti_decode(&writer, version, (const void *)&from);                                   \
        ck_assert_str_eq(last_setting,                                                             \
                         "gpu_device.1=GPU-00000000-0000-0000-0000-000000000007||0|0|0.0");        \
        from.isMigEnabled = 1; /* of a device of which this process sees no part */                \
        lac_cupti_decode(&writer, version, (const void *)&from);                                   \
        ck_assert_ptr_nonnull(strstr(last_setting, "=GPU-"));                                      \
        from.migUuid.bytes[15] = 9;                                                                \
        lac_cupti_decode(&writer, version, (const void *)&from);                                   \
        ck_assert_str_eq(last_setting,                                                             \
                         "gpu_device.1=MIG-00000000-0000-0000-0000-000000000009||0|0|0.0");        \
        from.id = 2;                                                                               \
        from.isCudaVisible = 0;                                                                    \
        lac_cupti_decode(&writer, version, (const void *)&from);                                   \
        ck_assert_ptr_nonnull(strstr(last_setting, "gpu_device.1="));                              \
    } while (0)

START_TEST(parts_of_a_device_are_devices_and_hidden_ones_are_none)
{
    PART_OF_DEVICE(CUpti_ActivityDevice4, CUPTI_VERSION_MIG);
    PART_OF_DEVICE(CUpti_ActivityDevice5, CUPTI_API_VERSION);
}
END_TEST

START_TEST(ids_of_the_program_are_read)
{
    const struct lac_gpu_external *ours;
    CUpti_ActivityExternalCorrelation from;

    ck_assert_uint_eq(sizeof(from), sizeof(struct cupti_external_correlation));
    fill(&from, sizeof(from), CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    decode(&from, CUPTI_API_VERSION);
    ours = kept(0, LAC_GPU_EXTERNAL, sizeof(*ours));
    ck_assert_uint_eq(ours->head.correlation, from.correlationId);
    ck_assert_uint_eq(ours->id, from.externalId);
    ck_assert_uint_eq(ours->kind, (uint32_t)from.externalKind);
}
END_TEST

/* ---- the real library as the oracle */

static const struct {
    int kind;
    size_t size_bytes;
    enum lac_gpu_type type; /* 0: not read by us */
} laid_out[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10), LAC_GPU_KERNEL},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6), LAC_GPU_COPY},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4), LAC_GPU_COPY},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4), LAC_GPU_MEMSET},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI), LAC_GPU_RUNTIME_CALL},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI), LAC_GPU_DRIVER_CALL},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2), LAC_GPU_SYNC},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3), LAC_GPU_OVERHEAD},
    {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4), LAC_GPU_MEMORY},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2), LAC_GPU_GRAPH},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent2), LAC_GPU_EVENT},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation),
     LAC_GPU_EXTERNAL},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, sizeof(CUpti_ActivityMemoryPool3), 0},
};
enum { LAID_OUT_COUNT = LAC_COUNT_OF(laid_out), LAID_MAX = 600 };

/* Any kinds in any order; returns the bytes used. */
static size_t lay_out(uint8_t *buffer, unsigned *kinds, unsigned count)
{
    size_t used = 0;

    for (unsigned i = 0; i < count; i++) {
        kinds[i] = (unsigned)(any() % LAID_OUT_COUNT);
        fill(buffer + used, laid_out[kinds[i]].size_bytes, laid_out[kinds[i]].kind);
        if (laid_out[kinds[i]].type == LAC_GPU_KERNEL) {
            ((CUpti_ActivityKernel10 *)(void *)(buffer + used))->name = "k";
        }
        used += laid_out[kinds[i]].size_bytes;
    }
    return used;
}

START_TEST(the_real_libcupti_and_our_decoder_see_the_same_records)
{
    static uint8_t buffer[LAID_MAX * 256] __attribute__((aligned(8)));
    int (*get_next)(uint8_t *, size_t, struct cupti_activity **);
    unsigned kinds[LAID_MAX];

    *(void **)&get_next = real_walk();
    if (get_next == NULL) {
        (void)printf("skip: no libcupti.so.13 on this machine\n");
        return;
    }
    for (unsigned round = 0; round < 200; round++) {
        const unsigned count = 1 + (unsigned)(any() % LAID_MAX);
        const size_t used = lay_out(buffer, kinds, count);
        struct cupti_activity *record = NULL;
        size_t at = 0;
        uint32_t read = 0;

        forget();
        for (unsigned i = 0; i < count; i++) {
            ck_assert_int_eq(get_next(buffer, used, &record), CUPTI_OK);
            ck_assert_ptr_eq(record, buffer + at);
            lac_cupti_decode(&writer, CUPTI_API_VERSION, record);
            if (laid_out[kinds[i]].type != 0) {
                const struct lac_gpu_record *const head = (const void *)writer.kept[read++];

                ck_assert_uint_eq(writer.count, read);
                ck_assert_uint_eq(head->type, laid_out[kinds[i]].type);
            }
            at += laid_out[kinds[i]].size_bytes;
        }
        ck_assert_int_eq(get_next(buffer, used, &record), CUPTI_RESULT_MAX_LIMIT);
        ck_assert_uint_eq(writer.count, read);
    }
}
END_TEST
#endif

/* ---- graphs: kernels one by one or launches whole */

static uint64_t clock_ns;
static uint32_t correlation;

/* A round of `per_s` launches a second; 11 s, so that the records span the 10 s of a round. */
enum { ROUND_S = 11 };

static void run_nodes(unsigned per_s, unsigned nodes, uint64_t node_ns)
{
    for (unsigned i = 0; i < per_s * ROUND_S; i++, correlation++, clock_ns += 1000000000 / per_s) {
        for (unsigned node = 0; node < nodes; node++) {
            const uint64_t start_ns = clock_ns + node * node_ns;

            lac_graphs_node(&writer.graphs, 5, correlation, start_ns, start_ns + 900);
        }
    }
    lac_graphs_spent(&writer.graphs, per_s * ROUND_S * nodes, per_s * ROUND_S * nodes * 100);
}

static void run_wholes(unsigned per_s, uint64_t span_ns)
{
    for (unsigned i = 0; i < per_s * ROUND_S; i++, clock_ns += 1000000000 / per_s) {
        lac_graphs_whole(&writer.graphs, 5, clock_ns, clock_ns + span_ns);
    }
}

static bool decide(void)
{
    return lac_graphs_decide(&writer.graphs);
}

static void start_over(void)
{
    forget();
    clock_ns = 1000;
}

START_TEST(a_quiet_graph_stays_node_by_node)
{
    start_over();
    for (int round = 0; round < 10; round++) {
        run_nodes(40, 100, 3000);
        ck_assert(!decide());
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
    }
}
END_TEST

START_TEST(records_that_slow_a_graph_are_given_up_and_taken_up_again)
{
    char why[300];

    start_over();
    run_nodes(200, 100, 2000); /* 20,000 a second, 1 us more each: 2 % + 0.2 % */
    ck_assert(!decide());
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_TRIAL);
    run_wholes(200, 100 * 1000);
    ck_assert(decide());
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_WHOLE);
    ck_assert_int_gt(lac_graphs_explain(&writer.graphs, why, sizeof(why)), 0);
    ck_assert_int_le(labs(strtol(why, NULL, 10) - 20000), 20);
    ck_assert_msg(strstr(why, " kernels per second") != NULL && strstr(why, "whole") != NULL, "%s",
                  why);
    run_wholes(150, 100 * 1000); /* less, but not half of the limit: no to and fro */
    ck_assert(!decide());
    for (int round = 0; round < 3; round++) { /* three agree before a running job is changed */
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_WHOLE);
        run_wholes(40, 100 * 1000);
        ck_assert(decide() == (round == 2));
    }
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
    run_nodes(40, 100, 2000);
    ck_assert(!decide());
    for (int round = 0; round < 3; round++) { /* the cost is known now: no second trial */
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
        run_nodes(300, 100, 2000);
        ck_assert(decide() == (round == 2));
    }
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_WHOLE);
}
END_TEST

START_TEST(records_that_cost_little_stay_after_the_trial)
{
    start_over();
    run_nodes(100, 100, 1100); /* 10,000 a second, 0.1 us each: 0.2 % */
    ck_assert(!decide());
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_TRIAL);
    ck_assert(!decide()); /* late buffers: nothing whole came yet */
    run_wholes(100, 100 * 1000);
    ck_assert(decide());
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
    run_nodes(100, 100, 1100);
    ck_assert(!decide());
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
}
END_TEST

START_TEST(a_trial_that_shows_nothing_ends)
{
    start_over();
    run_nodes(100, 100, 1100);
    ck_assert(!decide());
    for (int round = 0; round < 3; round++) { /* other graphs than before it: nothing to compare */
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_TRIAL);
        lac_graphs_whole(&writer.graphs, 6, clock_ns, clock_ns + 1000);
        clock_ns += 11000000000u;
        lac_graphs_whole(&writer.graphs, 6, clock_ns, clock_ns + 1000);
        clock_ns += 2000;
        ck_assert(decide() == (round == 2));
    }
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
}
END_TEST

START_TEST(records_that_take_too_much_of_the_processor_need_no_trial)
{
    start_over();
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
        run_nodes(2100, 100, 400); /* 210,000 a second at 0.1 us of CPU time */
        ck_assert(decide() == (round == 2));
    }
    ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_WHOLE);
}
END_TEST

/* 19,000 in one buffer, then none for six seconds: 3,000 a second, and no reason for a change. */
START_TEST(records_that_come_in_bursts_are_a_rate_of_their_own_times)
{
    start_over();
    for (int flush = 0; flush < 60; flush++) {
        for (unsigned i = 0; flush % 6 == 0 && i < 180; i++, clock_ns += 33333333) {
            for (unsigned node = 0; node < 100; node++) {
                lac_graphs_node(&writer.graphs, 5, correlation, clock_ns + node * 1000,
                                clock_ns + node * 1000 + 900);
            }
            correlation++;
            lac_graphs_spent(&writer.graphs, 100, 10000);
        }
        ck_assert(!decide());
        ck_assert_int_eq(writer.graphs.mode, LAC_GRAPHS_NODES);
    }
    ck_assert_msg(writer.graphs.nodes_per_s > 2900 && writer.graphs.nodes_per_s < 3100, "%f",
                  writer.graphs.nodes_per_s);
}
END_TEST

/* ---- dumps of buffers, as LACUNA_CUPTI_DUMP leaves them: FORMAT.md */

struct dump {
    uint8_t *bytes;
    uint32_t version;
    uint32_t record_count;
    uint64_t valid_bytes;
    const uint32_t *offsets;
    uint8_t *buffer;
};

/* Read a dump and put the names back where the pointers to them were. */
static void open_dump(const char *path, struct dump *dump)
{
    FILE *const file = fopen(path, "rb");
    uint64_t name_count;
    size_t size_bytes;
    uint8_t *at;

    ck_assert_ptr_nonnull(file);
    dump->bytes = calloc(1, 8 << 20);
    size_bytes = fread(dump->bytes, 1, 8 << 20, file);
    (void)fclose(file);
    ck_assert_uint_ge(size_bytes, 32);
    ck_assert_mem_eq(dump->bytes, "LACCUPTI", 8);
    memcpy(&dump->version, dump->bytes + 8, 4);
    memcpy(&dump->record_count, dump->bytes + 12, 4);
    memcpy(&dump->valid_bytes, dump->bytes + 16, 8);
    memcpy(&name_count, dump->bytes + 24, 8);
    dump->offsets = (const uint32_t *)(const void *)(dump->bytes + 32);
    dump->buffer = dump->bytes + 32 + (dump->record_count + 1u) / 2 * 8;
    at = dump->buffer + dump->valid_bytes;
    for (uint64_t i = 0; i < name_count; i++) {
        const size_t length = *(const uint32_t *)(const void *)(at + 8);
        char *const text = (char *)at + 16;

        memcpy(dump->buffer + *(const uint64_t *)(const void *)at, &(char *){text}, sizeof(text));
        at += 16 + (length + 8) / 8 * 8; /* at least one byte of padding ends the text */
        ck_assert_uint_eq(strlen(text), length);
    }
    ck_assert_ptr_eq(at, dump->bytes + size_bytes);
}

/* Every record of one dump: where our own library found it the real one does, and both are read. */
static uint64_t replay(const char *path,
                       int (*get_next)(uint8_t *, size_t, struct cupti_activity **))
{
    struct dump dump;
    struct cupti_activity *record = NULL;
    uint64_t kernels = 0;

    open_dump(path, &dump);
    for (uint32_t i = 0; i < dump.record_count; i++) {
        struct cupti_activity *const here = (void *)(dump.buffer + dump.offsets[i]);

        /* one of another version knows other sizes */
        if (get_next != NULL && dump.version / 10000 == 13) {
            ck_assert_int_eq(get_next(dump.buffer, dump.valid_bytes, &record), CUPTI_OK);
            ck_assert_ptr_eq(record, here);
        }
        forget();
        lac_cupti_decode(&writer, dump.version, here);
        if (here->kind == CUPTI_KIND_CONCURRENT_KERNEL) {
            const struct lac_gpu_kernel *const kernel =
                kept(0, LAC_GPU_KERNEL, sizeof(struct lac_gpu_kernel));
            const struct cupti_kernel *const raw = (const void *)here;

            kernels++;
            ck_assert_uint_ge(kernel->head.end_ns, kernel->head.start_ns);
            ck_assert_uint_eq(kernel->name, raw->name != NULL ? strlen(raw->name) : 0);
            ck_assert_uint_gt(kernel->grid[0], 0);
            ck_assert_uint_gt(kernel->block[0], 0);
        }
    }
    free(dump.bytes);
    return kernels;
}

static uint64_t replay_folder(const char *folder, uint32_t *ret_files)
{
    int (*get_next)(uint8_t *, size_t, struct cupti_activity **);
    DIR *const directory = opendir(folder);
    uint64_t kernels = 0;

    *ret_files = 0;
    *(void **)&get_next = real_walk();
    for (const struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
         entry = readdir(directory)) {
        char path[PATH_MAX];

        if (strstr(entry->d_name, ".cupti") != NULL) {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            kernels += replay(path, get_next);
            (*ret_files)++;
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return kernels;
}

/* libcuda's part: see test_cupti.c. */
static void job_dumps(void)
{
    char stand_in[PATH_MAX];
    int (*initialize)(void);
    void (*deliver)(int, uint32_t, int);
    void (*deliver_kinds)(uint32_t);

    (void)snprintf(stand_in, sizeof(stand_in), "%s", lac_job_file("stand_in/libcupti_stand_in.so"));
    (void)setenv("LACUNA_CUPTI", stand_in, 1);
    (void)setenv("STAND_IN_VERSION", "130001", 1);
    (void)setenv("LACUNA_CUPTI_DUMP", lac_job_folder(), 1);
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjection");
    (void)initialize();
    *(void **)&deliver = dlsym(dlopen(stand_in, RTLD_LAZY), "stand_in_deliver");
    *(void **)&deliver_kinds = dlsym(dlopen(stand_in, RTLD_LAZY), "stand_in_deliver_kinds");
    deliver(300, 1, 0);
    deliver_kinds(1);
    for (int i = 0; i < 60; i++) {
        deliver(1000, 1, 0); /* beyond the limit: kept no more, recorded all the same */
    }
}

START_TEST(buffers_are_kept_whole_and_no_more_than_the_limit)
{
    struct lac_error error = {0};
    uint32_t files;
    uint64_t kernels;

    ck_assert_int_eq(lac_job_run(job_dumps), 0);
    kernels = replay_folder(lac_job_folder(), &files);
    ck_assert_uint_ge(files, 30);
    ck_assert_uint_lt(files, 122); /* a thousand launches fill one buffer and a part of another */
    ck_assert_uint_ge(kernels, 300 + (files - 2) * 256);
    ck_assert_uint_le(kernels, 300 + (files - 2) * 744);
    ck_assert_ptr_nonnull(lac_job_import(&error));
}
END_TEST

/* What a GPU left: tests/gpu/README.md. */
START_TEST(recorded_buffers_are_read)
{
    const char *const folder = "tests/gpu/golden/cupti";
    uint32_t files;
    const uint64_t kernels = replay_folder(folder, &files);

    if (files == 0) {
        (void)printf("skip: no buffers of a real GPU in %s\n", folder);
        return;
    }
    ck_assert_uint_gt(kernels, 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cupti_records");
    TCase *const tcase = tcase_create("records");
    TCase *const dumps = tcase_create("dumps");

#if __has_include(<cupti.h>)
    tcase_add_test(tcase, kernels_of_every_version_are_read);
    tcase_add_test(tcase, copies_of_every_version_are_read);
    tcase_add_test(tcase, memsets_of_every_version_are_read);
    tcase_add_test(tcase, allocations_of_every_version_are_read);
    tcase_add_test(tcase, synchronisations_overhead_calls_and_graphs_of_every_version_are_read);
    tcase_add_test(tcase, a_graph_that_begins_on_the_host_is_placed_where_it_ends);
    tcase_add_test(tcase, devices_of_every_version_are_read);
    tcase_add_test(tcase, parts_of_a_device_are_devices_and_hidden_ones_are_none);
    tcase_add_test(tcase, ids_of_the_program_are_read);
    tcase_add_test(tcase, the_real_libcupti_and_our_decoder_see_the_same_records);
#else
    (void)printf("skip: no cupti.h on this machine, layouts of records are not compared\n");
#endif
    tcase_add_test(tcase, a_quiet_graph_stays_node_by_node);
    tcase_add_test(tcase, records_that_slow_a_graph_are_given_up_and_taken_up_again);
    tcase_add_test(tcase, records_that_cost_little_stay_after_the_trial);
    tcase_add_test(tcase, a_trial_that_shows_nothing_ends);
    tcase_add_test(tcase, records_that_take_too_much_of_the_processor_need_no_trial);
    tcase_add_test(tcase, records_that_come_in_bursts_are_a_rate_of_their_own_times);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, dumps);
    tcase_set_timeout(dumps, 60);
    tcase_add_checked_fixture(dumps, lac_job_setup, lac_job_teardown);
    tcase_add_test(dumps, buffers_are_kept_whole_and_no_more_than_the_limit);
    tcase_add_test(dumps, recorded_buffers_are_read);
    return check_main(suite);
}
