#include "server/demo/trace_json.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "server/demo/network.h"
#include "server/demo/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ids of the simulated machine. */
enum {
    MAIN_PID = 4021,
    AUTOGRAD_TID = 4187,
    PIN_TID = 4190,
    WORKER_PID = 4101,
    COMPUTE_STREAM = 7,
    COPY_STREAM = 20,
    COMM_STREAM = 24,
    SM_REGISTERS = 65536,
    SM_THREADS = 2048,
};
#define BASE_TIME_NS "1637366400000000000"

struct place {
    int pid;
    int tid;
};

static struct place place_of(const struct lac_demo_sheet *sheet, uint16_t thread)
{
    switch (thread) {
    case LAC_DEMO_MAIN:
        return (struct place){MAIN_PID, MAIN_PID};
    case LAC_DEMO_AUTOGRAD:
        return (struct place){MAIN_PID, AUTOGRAD_TID};
    case LAC_DEMO_PIN:
        return (struct place){MAIN_PID, PIN_TID};
    case LAC_DEMO_COMPUTE_STREAM:
        return (struct place){0, COMPUTE_STREAM};
    case LAC_DEMO_COPY_STREAM:
        return (struct place){0, COPY_STREAM};
    case LAC_DEMO_COMM_STREAM:
        return (struct place){0, COMM_STREAM};
    default:
        break;
    }
    int id = WORKER_PID + thread - LAC_DEMO_WORKER;
    return (struct place){sheet->has_thread_workers ? MAIN_PID : id, id};
}

void lac_demo_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(out, format, args); /* ferror() tells, once, when all is written */
    va_end(args);
}

void lac_demo_write_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20) {
            lac_demo_print(out, "\\u%04x", (unsigned)(unsigned char)*c);
            continue;
        }
        if (*c == '"' || *c == '\\') {
            (void)fputc('\\', out);
        }
        (void)fputc(*c, out);
    }
    (void)fputc('"', out);
}

/* Microseconds with three decimals, exactly. */
static void write_us(FILE *out, int64_t ns)
{
    lac_demo_print(out, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

void lac_demo_write_settings(FILE *out, const struct lac_demo_pipeline *p)
{
    bool is_pinned = p->copy_mode != LAC_DEMO_COPY_PAGEABLE;
    bool is_async = p->copy_mode == LAC_DEMO_COPY_PREFETCH;
    lac_demo_print(
        out,
        "{\"model\":\"ResNet-50\",\"dataset\":\"ImageNet\",\"precision\":\"float16 mixed\","
        "\"optimizer\":\"SGD\",\"batch_size\":%d,\"num_workers\":%d,\"prefetch_factor\":%d,"
        "\"pin_memory\":%s,\"non_blocking\":%s,\"memory_format\":\"%s\",\"copy_stream\":%s}",
        p->batch_size, p->workers, p->prefetch_factor, is_pinned ? "true" : "false",
        is_async ? "true" : "false", p->channels_last ? "channels_last" : "contiguous",
        is_async ? "true" : "false");
}

static void write_meta(FILE *out, const char *what, int pid, int tid, const char *key,
                       const char *text)
{
    lac_demo_print(
        out,
        "{\"name\":\"%s\",\"ph\":\"M\",\"ts\":0.000,\"pid\":%d,\"tid\":%d,\"args\":{\"%s\":", what,
        pid, tid, key);
    lac_demo_write_string(out, text);
    lac_demo_print(out, "%s", "}},\n");
}

static void write_sort_index(FILE *out, const char *what, int pid, int tid, int index)
{
    lac_demo_print(out,
                   "{\"name\":\"%s\",\"ph\":\"M\",\"ts\":0.000,\"pid\":%d,\"tid\":%d,\"args\":{"
                   "\"sort_index\":%d}},\n",
                   what, pid, tid, index);
}

static void write_stream(FILE *out, int stream)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "stream %d ", stream);
    write_meta(out, "thread_name", 0, stream, "name", text);
    write_sort_index(out, "thread_sort_index", 0, stream, stream);
}

static void write_workers(FILE *out, const struct lac_demo_sheet *sheet)
{
    char text[64];
    for (int k = 0; k < sheet->workers; k++) {
        int id = WORKER_PID + k;
        if (sheet->has_thread_workers) {
            write_meta(out, "thread_name", MAIN_PID, id, "name", "pt_thread_data_worker");
            write_sort_index(out, "thread_sort_index", MAIN_PID, id, 4 + k);
            continue;
        }
        write_meta(out, "process_name", id, 0, "name", "pt_data_worker");
        (void)snprintf(text, sizeof(text), "DataLoader worker %d", k);
        write_meta(out, "process_labels", id, 0, "labels", text);
        write_sort_index(out, "process_sort_index", id, 0, id);
        write_meta(out, "thread_name", id, id, "name", "pt_data_worker");
    }
}

static void write_rows(FILE *out, const struct lac_demo_sheet *sheet)
{
    write_meta(out, "process_name", MAIN_PID, 0, "name", "python train.py");
    write_meta(out, "process_labels", MAIN_PID, 0, "labels", "CPU");
    write_sort_index(out, "process_sort_index", MAIN_PID, 0, MAIN_PID);
    write_meta(out, "thread_name", MAIN_PID, MAIN_PID, "name", "pt_main_thread");
    write_sort_index(out, "thread_sort_index", MAIN_PID, MAIN_PID, 1);
    write_meta(out, "thread_name", MAIN_PID, AUTOGRAD_TID, "name", "pt_autograd_0");
    write_sort_index(out, "thread_sort_index", MAIN_PID, AUTOGRAD_TID, 2);
    if (sheet->has_pin_thread) {
        write_meta(out, "thread_name", MAIN_PID, PIN_TID, "name", "pt_data_pin");
        write_sort_index(out, "thread_sort_index", MAIN_PID, PIN_TID, 3);
    }
    write_workers(out, sheet);
    write_meta(out, "process_name", 0, 0, "name", "python train.py");
    write_meta(out, "process_labels", 0, 0, "labels", "GPU 0");
    write_sort_index(out, "process_sort_index", 0, 0, 5000000);
    write_stream(out, COMPUTE_STREAM);
    if (sheet->has_copy_stream) {
        write_stream(out, COPY_STREAM);
    }
    if (sheet->has_comm_stream) {
        write_stream(out, COMM_STREAM);
    }
}

static int callback_id(const char *api)
{
    static const struct {
        const char *name;
        int id;
    } IDS[] = {
        {"cudaLaunchKernel", 211},
        {"cudaMemcpyAsync", 41},
        {"cudaEventRecord", 135},
        {"cudaStreamSynchronize", 131},
        {"cudaStreamWaitEvent", 147},
        {"cudaDeviceSynchronize", 165},
        {"cudaMalloc", 20},
        {"cudaFree", 22},
        {"cudaEventSynchronize", 137},
        {"cudaGraphLaunch", 311},
        {"cudaLaunchKernelExC", 430},
        {"cuModuleLoadData", 62},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(IDS); i++) {
        if (strcmp(IDS[i].name, api) == 0) {
            return IDS[i].id;
        }
    }
    return 0;
}

static void write_kernel_args(FILE *out, const struct lac_demo_sheet *sheet,
                              const struct lac_demo_event *e)
{
    const struct lac_demo_kernel *k = e->kernel;
    double blocks = (double)k->grid[0] * k->grid[1] * k->grid[2] / sheet->device->sm_count;
    uint32_t fit = SM_REGISTERS / (k->registers * k->block);
    uint32_t by_threads = SM_THREADS / k->block;
    fit = fit == 0 ? 1 : fit < by_threads ? fit : by_threads;
    uint32_t occupancy = 100 * fit * k->block / SM_THREADS;
    lac_demo_print(
        out,
        "{\"External id\":%u,\"queued\":0,\"device\":0,\"context\":1,\"stream\":%d,"
        "\"correlation\":%u,\"registers per thread\":%u,\"shared memory\":%u,"
        "\"blocks per SM\":%.6g,\"warps per SM\":%.6g,\"grid\":[%u,%u,%u],\"block\":[%u,1,1],"
        "\"est. achieved occupancy %%\":%u",
        e->external_id, place_of(sheet, e->thread).tid, e->correlation, k->registers,
        k->shared_bytes, blocks, blocks * k->block / 32.0, k->grid[0], k->grid[1], k->grid[2],
        k->block, occupancy);
    if (e->graph_node != 0) {
        lac_demo_print(out, ",\"graph id\":1,\"graph node id\":%u", e->graph_node);
    }
    if (e->thread == LAC_DEMO_COMM_STREAM) {
        lac_demo_print(out,
                       ",\"Collective name\":\"allreduce\",\"dtype\":\"Half\",\"Group size\":%d,"
                       "\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\"",
                       sheet->ranks);
    }
    lac_demo_print(out, "}");
}

static void write_copy_args(FILE *out, const struct lac_demo_sheet *sheet,
                            const struct lac_demo_event *e)
{
    double rate = e->dur_ns > 0 ? (double)e->bytes / (double)e->dur_ns : 0.0;
    lac_demo_print(
        out,
        "{\"External id\":%u,\"device\":0,\"context\":1,\"stream\":%d,\"correlation\":%u,"
        "\"bytes\":%" PRId64 ",\"memory bandwidth (GB/s)\":%.6g}",
        e->external_id, place_of(sheet, e->thread).tid, e->correlation, e->bytes, rate);
}

static void write_loader_args(FILE *out, const struct lac_demo_event *e)
{
    lac_demo_print(out, "{\"batch\":%d", e->number);
    if (e->worker >= 0) {
        lac_demo_print(out, ",\"worker\":%d", e->worker);
    }
    if (e->cpu_ns >= 0) {
        lac_demo_print(out, ",\"cpu_ns\":%" PRId64, e->cpu_ns);
    }
    lac_demo_print(out, "}");
}

static const char *copy_name(const struct lac_demo_event *e)
{
    if (e->to_host) {
        return e->from_pinned ? "Memcpy DtoH (Device -> Pinned)"
                              : "Memcpy DtoH (Device -> Pageable)";
    }
    return e->from_pinned ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)";
}

static const char *category(const struct lac_demo_event *e)
{
    switch ((enum lac_demo_event_kind)e->kind) {
    case LAC_DEMO_EVENT_OP:
        return "cpu_op";
    case LAC_DEMO_EVENT_API:
        return strncmp(e->name, "cuda", 4) == 0 ? "cuda_runtime" : "cuda_driver";
    case LAC_DEMO_EVENT_KERNEL:
        return "kernel";
    case LAC_DEMO_EVENT_COPY:
        return "gpu_memcpy";
    case LAC_DEMO_EVENT_STEP:
    case LAC_DEMO_EVENT_RANGE:
    case LAC_DEMO_EVENT_LOADER:
    default:
        return "user_annotation";
    }
}

static void write_event(FILE *out, const struct lac_demo_sheet *sheet,
                        const struct lac_demo_event *e)
{
    struct place place = place_of(sheet, e->thread);
    lac_demo_print(out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category(e));
    if (e->kind == LAC_DEMO_EVENT_STEP) {
        lac_demo_print(out, "\"%s%d\"", e->name, e->number);
    } else {
        lac_demo_write_string(out, e->kind == LAC_DEMO_EVENT_COPY ? copy_name(e) : e->name);
    }
    lac_demo_print(out, ",\"pid\":%d,\"tid\":%d,\"ts\":", place.pid, place.tid);
    write_us(out, e->start_ns);
    lac_demo_print(out, "%s", ",\"dur\":");
    write_us(out, e->dur_ns);
    switch ((enum lac_demo_event_kind)e->kind) {
    case LAC_DEMO_EVENT_KERNEL:
        lac_demo_print(out, "%s", ",\"args\":");
        write_kernel_args(out, sheet, e);
        break;
    case LAC_DEMO_EVENT_COPY:
        lac_demo_print(out, "%s", ",\"args\":");
        write_copy_args(out, sheet, e);
        break;
    case LAC_DEMO_EVENT_API:
        lac_demo_print(out, ",\"args\":{\"External id\":%u,\"cbid\":%d,\"correlation\":%u}",
                       e->external_id, callback_id(e->name), e->correlation);
        break;
    case LAC_DEMO_EVENT_OP:
        lac_demo_print(out, ",\"args\":{\"External id\":%u}", e->external_id);
        break;
    case LAC_DEMO_EVENT_LOADER:
        lac_demo_print(out, "%s", ",\"args\":");
        write_loader_args(out, e);
        break;
    case LAC_DEMO_EVENT_STEP:
    case LAC_DEMO_EVENT_RANGE:
    default:
        break;
    }
    lac_demo_print(out, "}");
}

/* By start, the longer first, then in the order of the simulation (their place in memory). */
static int by_start(const void *a, const void *b)
{
    const struct lac_demo_event *const *left = (const struct lac_demo_event *const *)a;
    const struct lac_demo_event *const *right = (const struct lac_demo_event *const *)b;
    int order = LAC_ORDER((*left)->start_ns, (*right)->start_ns);
    order = order != 0 ? order : LAC_ORDER((*right)->dur_ns, (*left)->dur_ns);
    return order != 0 ? order : LAC_ORDER(*left, *right);
}

static void write_head(FILE *out, const struct lac_demo_sheet *sheet)
{
    const struct lac_demo_device *d = sheet->device;
    lac_demo_print(out,
                   "{\"schemaVersion\":1,\n\"deviceProperties\":[{\"id\":0,\"name\":\"%s\","
                   "\"totalGlobalMem\":%" PRId64 ",\"computeMajor\":%d,\"computeMinor\":%d,"
                   "\"maxThreadsPerBlock\":1024,\"maxThreadsPerMultiprocessor\":2048,"
                   "\"regsPerBlock\":65536,\"warpSize\":32,\"sharedMemPerBlock\":49152,"
                   "\"numSms\":%d,\"regsPerMultiprocessor\":65536,\"sharedMemPerBlockOptin\":%d,"
                   "\"sharedMemPerMultiprocessor\":%d}],\n",
                   d->name, d->memory_bytes, d->major, d->minor, d->sm_count, d->shared_bytes,
                   d->shared_bytes);
    if (sheet->ranks > 1) {
        lac_demo_print(
            out, "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,\"world_size\":%d},\n",
            sheet->rank, sheet->ranks);
    }
    lac_demo_print(out, "\"lacuna\":{\"simulated\":true,\"version\":1,\"settings\":%s},\n",
                   sheet->settings);
    lac_demo_print(out, "\"traceName\":\"%s (simulated)\",\n", sheet->name);
    lac_demo_print(out, "%s",
                   "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":" BASE_TIME_NS
                   ",\n\"traceEvents\":[\n");
}

enum lac_status lac_demo_write_events(FILE *out, const struct lac_demo_sheet *sheet,
                                      const struct lac_demo_event *events, uint64_t count,
                                      struct lac_error *reterr)
{
    const struct lac_demo_event **sorted =
        (const struct lac_demo_event **)calloc(count + 1, sizeof(*sorted));
    if (sorted == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (uint64_t i = 0; i < count; i++) {
        sorted[i] = &events[i];
    }
    qsort((void *)sorted, count, sizeof(*sorted), by_start);
    write_head(out, sheet);
    write_rows(out, sheet);
    for (uint64_t i = 0; i < count; i++) {
        write_event(out, sheet, sorted[i]);
        lac_demo_print(out, "%s", i + 1 < count ? ",\n" : "\n");
    }
    lac_demo_print(out, "%s", "]}\n");
    free((void *)sorted);
    if (fflush(out) != 0 || ferror(out)) {
        enum lac_status status = lac_fail(reterr, LAC_ERR_IO, 0, "%s", strerror(errno));
        if (reterr != NULL) {
            reterr->sys_errno = errno;
        }
        return status;
    }
    return LAC_OK;
}

enum lac_status lac_demo_write_trace(FILE *out, const char *name,
                                     const struct lac_demo_pipeline *pipeline,
                                     const struct lac_demo_run *run, struct lac_error *reterr)
{
    static const struct lac_demo_device V100 = {
        "Tesla V100-SXM2-32GB", 34089730048, 7, 0, 80, 98304};
    char *settings = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&settings, &length);
    if (text == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    lac_demo_write_settings(text, pipeline);
    if (fclose(text) != 0) {
        free(settings);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    struct lac_demo_sheet sheet = {
        .name = name,
        .settings = settings,
        .device = &V100,
        .workers = pipeline->workers,
        .ranks = 1,
        .has_pin_thread = pipeline->copy_mode != LAC_DEMO_COPY_PAGEABLE,
        .has_copy_stream = pipeline->copy_mode == LAC_DEMO_COPY_PREFETCH,
    };
    enum lac_status status =
        lac_demo_write_events(out, &sheet, run->events, run->event_count, reterr);
    free(settings);
    return status;
}
