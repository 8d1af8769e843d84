#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 *   NONE -> (cuInit) -> FULL | WITHOUT_KERNELS | RANGES_ONLY
 *                         |   \
 *                         |    +-> (another profiler asks) YIELDED -> (it is done) back
 *                         +-> (fork) the child: DEAD, it may touch neither CUDA nor CUPTI
 */

enum {
    FLUSH_EVERY_MS = 1000,
    WATCH_EVERY_MS = 50,
    FLUSH_AT_EXIT_MS = 2000,
    CALLS_MAX = 1024,
    GRAPH_DECISIONS_TOLD = 8
};

static struct cupti_functions cupti;
static void *subscriber;
static uint32_t session_epoch; /* process that owns the session; 0 none */
static pthread_t flusher;
static volatile int flusher_stop;
static volatile int flush_done;
/* guards `is_active`; held while calling CUPTI, but never taken in its callbacks */
static pthread_mutex_t session_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_active;
static bool was_active;         /* at the start: there is something to come back to */
static bool measures_graphs;    /* only the thread that flushes, once it runs */
static bool wants_whole_graphs; /* guarded by session_mutex */

/* Calls worth recording: what starts GPU work, waits for it, moves or allocates memory, loads code.
 * Recording all of them would be too much: cudaGetDevice alone comes several times per operator. */
static const char *const call_prefixes[] = {
    "cudaLaunch",
    "cudaGraphLaunch",
    "cudaMemcpy",
    "cudaMemset",
    "cudaMemPrefetch",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventRecord",
    "cudaEventQuery",
    "cudaStreamQuery",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaHostRegister",
    "cudaMemPoolTrim",
    "cudaGraphInstantiate",
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuModuleLoad",
    "cuLibraryLoad",
    "cuModuleGetFunction",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuLinkComplete",
    "cuMemHostAlloc",
    "cuMemHostRegister",
};

static bool is_wanted(const char *name)
{
    for (size_t i = 0; i < LAC_COUNT_OF(call_prefixes); i++) {
        if (strncmp(name, call_prefixes[i], strlen(call_prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Enabled one by one by name, because numbers differ between versions; a CUPTI without that gets
 * the whole kind. */
static bool enable_calls(int domain, int (*enable_call)(uint32_t, uint8_t), int kind)
{
    bool any = false;

    for (uint32_t number = 1; enable_call != NULL && number < CALLS_MAX; number++) {
        const char *name = NULL;

        if (cupti.get_callback_name(domain, number, &name) == CUPTI_OK && name != NULL &&
            is_wanted(name)) {
            any = enable_call(number, 1) == CUPTI_OK || any;
        }
    }
    return any || cupti.enable(kind) == CUPTI_OK;
}

static void note_result(const char *what, int result)
{
    const char *text = NULL;
    char line[300];

    if (cupti.get_result_string == NULL || cupti.get_result_string(result, &text) != CUPTI_OK ||
        text == NULL) {
        text = "unknown";
    }
    (void)snprintf(line, sizeof(line), "%s: %s (%d)%s", what, text, result,
                   result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES
                       ? "; the administrator allows it with: options nvidia "
                         "NVreg_RestrictProfilingToAdminUsers=0"
                       : "");
    lac_setting("gpu_recording_reason", line);
}

static int enable(int kind)
{
    const int result = cupti.enable(kind);

    LAC_DEBUG(CUPTI, 2, "kind %d: result %d", kind, result);
    return result;
}

/* CUPTI wants a callback even from those who enable none. */
static void ignore_callback(void *user, int domain, uint32_t number, const void *data)
{
    (void)user;
    (void)domain;
    (void)number;
    (void)data;
}

static bool subscribe(void)
{
    char holder[128] = "";
    struct cupti_subscriber_parameters parameters = {.size_bytes = sizeof(parameters),
                                                     .name = "lacuna",
                                                     .holder = holder,
                                                     .holder_bytes = sizeof(holder)};
    int result = CUPTI_RESULT_MULTIPLE_SUBSCRIBERS;

    if (cupti.subscribe_named != NULL) {
        result = cupti.subscribe_named(&subscriber, ignore_callback, NULL, &parameters);
    }
    if (cupti.subscribe_named == NULL ||
        (result != CUPTI_OK && result != CUPTI_RESULT_MULTIPLE_SUBSCRIBERS)) {
        result = cupti.subscribe(&subscriber, ignore_callback, NULL);
    }
    if (result == CUPTI_RESULT_MULTIPLE_SUBSCRIBERS) {
        char line[200];

        (void)snprintf(line, sizeof(line), "another profiler holds CUPTI: %.127s",
                       holder[0] != '\0' ? holder : "unnamed");
        lac_setting("gpu_recording_reason", line);
        return false;
    }
    if (result != CUPTI_OK) {
        note_result("CUPTI refused us", result);
        return false;
    }
    return true;
}

static uint64_t monotonic_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static const int device_kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY,
                                   CUPTI_KIND_MEMSET, CUPTI_KIND_MEMCPY2};
static const int host_kinds[] = {CUPTI_KIND_SYNCHRONIZATION,
                                 CUPTI_KIND_CUDA_EVENT,
                                 CUPTI_KIND_OVERHEAD,
                                 CUPTI_KIND_MEMORY2,
                                 CUPTI_KIND_RUNTIME,
                                 CUPTI_KIND_DRIVER,
                                 CUPTI_KIND_EXTERNAL_CORRELATION};
/* of host_kinds, those that are enabled whole: calls are chosen one by one */
enum { WHOLE_HOST_KINDS = 4 };

/* What the ladder reached. */
static const char *enable_all(void)
{
    int result = CUPTI_OK;
    bool any = false;

    for (size_t i = 0; i < LAC_COUNT_OF(device_kinds); i++) {
        const int one = enable(device_kinds[i]);

        any = any || one == CUPTI_OK;
        if (device_kinds[i] == CUPTI_KIND_CONCURRENT_KERNEL) {
            result = one;
        }
    }
    for (size_t i = 0; i < WHOLE_HOST_KINDS; i++) {
        any = enable(host_kinds[i]) == CUPTI_OK || any;
    }
    any = enable_calls(CUPTI_DOMAIN_RUNTIME, cupti.enable_runtime_call, CUPTI_KIND_RUNTIME) || any;
    any = enable_calls(CUPTI_DOMAIN_DRIVER, cupti.enable_driver_call, CUPTI_KIND_DRIVER) || any;
    if (wants_whole_graphs) {
        (void)cupti.enable(CUPTI_KIND_GRAPH_TRACE);
    }
    if (any) { /* useless alone; no record comes unless the program pushes ids */
        (void)cupti.enable(CUPTI_KIND_EXTERNAL_CORRELATION);
    }
    if (result != CUPTI_OK) {
        note_result(any ? "kernels cannot be recorded" : "no GPU activity can be recorded", result);
        return any ? "without-kernels" : "ranges-only";
    }
    return "full";
}

/* LACUNA_GRAPHS=nodes or launches decides it beforehand. */
static bool choose_graphs(void)
{
    const char *const asked = getenv("LACUNA_GRAPHS");

    if (asked != NULL && strcmp(asked, "launches") == 0) {
        wants_whole_graphs = cupti.enable(CUPTI_KIND_GRAPH_TRACE) == CUPTI_OK;
        lac_setting("graph_recording", wants_whole_graphs ? "launches" : "nodes");
    }
    return asked == NULL || (strcmp(asked, "launches") != 0 && strcmp(asked, "nodes") != 0);
}

/* Node records or whole launches, based on measurements since the last decision. */
static void consider_graphs(uint64_t elapsed_ns)
{
    struct lac_gpu_writer *const writer = lac_gpu_writer_take();
    struct lac_graphs *const graphs = lac_gpu_graphs(writer);
    const bool is_news = lac_graphs_decide(graphs, elapsed_ns);
    const bool whole = graphs->mode != LAC_GRAPHS_NODES;
    static unsigned told;
    char reason[300];
    char key[40] = "graph_recording";

    (void)lac_graphs_explain(graphs, reason, sizeof(reason));
    lac_gpu_writer_give(writer); /* from here on CUPTI may call us back */
    if (whole != wants_whole_graphs) {
        const int result =
            whole ? cupti.enable(CUPTI_KIND_GRAPH_TRACE) : cupti.disable(CUPTI_KIND_GRAPH_TRACE);

        if (result != CUPTI_OK) {
            measures_graphs = false; /* as they are from now on */
            note_result("launches of graphs cannot be recorded whole", result);
            return;
        }
        wants_whole_graphs = whole;
    }
    if (is_news && told < GRAPH_DECISIONS_TOLD) {
        if (told++ > 0) {
            (void)snprintf(key, sizeof(key), "graph_recording_%u", told);
        }
        lac_setting(key, whole ? "launches" : "nodes");
        (void)strncat(key, "_reason", sizeof(key) - strlen(key) - 1);
        lac_setting(key, reason);
    }
}

/* CUPTI returns full buffers only; this bounds what a killed process loses to a second. */
static void *flush_now_and_then(void *unused)
{
    uint64_t considered_ns = monotonic_ns();
    sigset_t all;

    (void)unused;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL); /* the job's signals are the job's */
    while (!flusher_stop) {
        const struct timespec pause = {.tv_nsec = WATCH_EVERY_MS * 1000000L};

        for (int ms = 0; ms < FLUSH_EVERY_MS && !flusher_stop; ms += WATCH_EVERY_MS) {
            (void)nanosleep(&pause, NULL);
            lac_gpu_watch_pause();
        }
        (void)pthread_mutex_lock(&session_mutex);
        if (!flusher_stop && is_active) {
            lac_cupti_flush(0);
            if (measures_graphs) {
                const uint64_t now_ns = monotonic_ns();

                consider_graphs(now_ns - considered_ns);
                considered_ns = now_ns;
            }
        }
        (void)pthread_mutex_unlock(&session_mutex);
    }
    return NULL;
}

static void *flush_last(void *unused)
{
    (void)unused;
    (void)cupti.flush_all(1);
    flush_done = 1;
    return NULL;
}

/* Without this only the last second would be lost. A driver that is gone can hang here, hence
 * the limit. */
static void at_exit(void)
{
    pthread_t thread;

    if (session_epoch != *lac_epoch_page || !is_active) {
        return;
    }
    flusher_stop = 1;
    if (pthread_create(&thread, NULL, flush_last, NULL) != 0) {
        (void)flush_last(NULL); /* without the limit: better than without the records */
        return;
    }
    for (int waited_ms = 0; !flush_done && waited_ms < FLUSH_AT_EXIT_MS; waited_ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        (void)nanosleep(&pause, NULL);
    }
    LAC_DEBUG(CUPTI, 1, "at exit: %s",
              flush_done ? "all buffers came back" : "CUPTI did not return its buffers in 2 s");
}

static void leave(void)
{
    lac_cupti_flush(1);
    for (size_t i = 0; i < LAC_COUNT_OF(device_kinds); i++) {
        (void)cupti.disable(device_kinds[i]);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(host_kinds); i++) {
        (void)cupti.disable(host_kinds[i]);
    }
    (void)cupti.disable(CUPTI_KIND_GRAPH_TRACE);
    (void)cupti.unsubscribe(subscriber);
    subscriber = NULL;
    is_active = false;
}

static void come_back(void)
{
    uint32_t version = 0;

    (void)cupti.get_version(&version);
    if (!subscribe() || lac_cupti_buffers_register(&cupti, version) != CUPTI_OK) {
        lac_setting("gpu_recording_after_yield", "ranges-only");
        return;
    }
    /* the other profiler may have brought a clock of its own */
    if (cupti.register_timestamp != NULL) {
        lac_gpu_writer_clock(cupti.register_timestamp(monotonic_ns) == CUPTI_OK
                                 ? LAC_GPU_CLOCK_MONOTONIC
                                 : LAC_GPU_CLOCK_REALTIME);
    }
    lac_setting("gpu_recording_after_yield", enable_all());
    is_active = true;
}

void lac_gpu_yield(bool yield, const char *to)
{
    if (session_epoch == 0 || session_epoch != *lac_epoch_page || cupti.unsubscribe == NULL ||
        cupti.disable == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&session_mutex);
    if (yield && is_active) {
        leave();
        lac_setting("gpu_recording_yielded_to", to);
    } else if (!yield && !is_active && subscriber == NULL && was_active) {
        come_back();
    }
    (void)pthread_mutex_unlock(&session_mutex);
}

bool lac_gpu_stream_number(const void *stream, uint32_t *ret_device, uint32_t *ret_number)
{
    return session_epoch != 0 && session_epoch == *lac_epoch_page && is_active &&
           cupti.get_stream_id != NULL && cupti.get_device_id != NULL &&
           cupti.get_device_id(NULL, ret_device) == CUPTI_OK &&
           cupti.get_stream_id(NULL, stream, 0, ret_number) == CUPTI_OK;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

/** Called by libcuda when the process initializes CUDA. 1: we are there. */
int InitializeInjection(void)
{
    const char *reached;
    const char *path = NULL;
    uint32_t version = 0;

    if (!lac_settings.enabled || session_epoch != 0) {
        return 1;
    }
    session_epoch = *lac_epoch_page;
    if (!lac_cupti_find(&cupti, &path)) {
        lac_setting("gpu_recording", "ranges-only");
        lac_setting("gpu_recording_reason",
                    "libcupti was not found; LACUNA_CUPTI=/path/to/libcupti.so names it");
        return 1;
    }
    lac_setting("cupti_library", path);
    (void)cupti.get_version(&version);
    LAC_DEBUG(CUPTI, 1, "%s, API version %u", path, version);
    if (!subscribe() || lac_cupti_buffers_register(&cupti, version) != CUPTI_OK) {
        lac_setting("gpu_recording", "ranges-only");
        return 1;
    }
    if (cupti.register_timestamp != NULL && cupti.register_timestamp(monotonic_ns) == CUPTI_OK) {
        lac_gpu_writer_clock(LAC_GPU_CLOCK_MONOTONIC);
    }
    if (cupti.set_thread_id_type != NULL) {
        (void)cupti.set_thread_id_type(1);
    }
    reached = enable_all();
    lac_setting("gpu_recording", reached);
    if (strcmp(reached, "ranges-only") == 0 && cupti.unsubscribe != NULL) {
        (void)cupti.unsubscribe(subscriber); /* others may be luckier */
        return 1;
    }
    measures_graphs = choose_graphs() && cupti.disable != NULL;
    is_active = true;
    was_active = true;
    (void)pthread_create(&flusher, NULL, flush_now_and_then, NULL);
    (void)atexit(at_exit);
    return 1;
}
