/*
 * A stand-in for libcupti, NOT CUPTI: it obeys a script in the environment and knows nothing of
 * GPUs. It shows that our side of the conversation holds (requests, refusals, late and dropped
 * buffers, other threads); how the real library behaves, only a machine with a GPU shows.
 *
 * cupti_stand_in_gpu.c beside it is a GPU that takes its time.
 *
 *   STAND_IN_REFUSE=busy        another subscriber holds CUPTI, by the name "nsys"
 *   STAND_IN_REFUSE=privileges  kernels may not be recorded
 *   STAND_IN_REFUSE=all         nothing may be recorded, for want of privileges
 *   STAND_IN_REFUSE=callbacks   no callback of a call can be had
 *   STAND_IN_REFUSE=subscribe   nor may anybody subscribe
 *   STAND_IN_REFUSE=external    ids that the program pushed are not told
 *   STAND_IN_REFUSE=graphs      graphs cannot be recorded whole
 *   STAND_IN_REFUSE=attributes  how much memory it takes cannot be set
 *   STAND_IN_REFUSE_IN=NAME     only the copy of this library in a file of that name refuses
 *   STAND_IN_AGO_MS=N           what is delivered happened that long ago
 *   STAND_IN_GRAPHS=L,N,EXTRA   each flush returns L launches of a graph with N kernels of 1 us;
 *                               each kernel takes EXTRA ns more when recorded one by one
 *   STAND_IN_HANG=1             the flush at the end never returns, as with a driver that is gone
 *   STAND_IN_VERSION=N          what cuptiGetVersion says (default 26); from 27 on a buffer may be
 *                               refused: what would be in it is dropped and counted
 *   STAND_IN_NO_TIMESTAMP=1     the timestamp callback is rejected: CLOCK_REALTIME, as CUPTI's own
 *   STAND_IN_BUSY=N             the result that says that another subscriber is there (default 39)
 *
 * It is an injection library of another tool as well, which the CUDA driver would load:
 *
 *   STAND_IN_INJECTION=subscribe  its InitializeInjection() takes CUPTI's one subscription
 *   STAND_IN_INJECTION=fail       it returns 0
 */
#include "tests/stand_in/cupti_stand_in.h"

#include "collector/inject/cupti_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static cupti_buffer_requested requested;
static cupti_buffer_completed completed;
static cupti_timestamp timestamp;
static size_t dropped;
static uint8_t enabled[64];
static int registrations;
static size_t device_buffers_max;
static int subscribers;
static int is_occupied;
static int injections;
static uint64_t flushes;
static cupti_callback subscriber_callback;
static uint8_t called[2][1024]; /* callbacks that are enabled, by domain and number */
static uint64_t calls_back;

/* CUPTI's own lock, which it takes to read a buffer. */
static pthread_mutex_t inside = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static __thread int is_crossing;
static sem_t reads; /* a thread that crosses has come to read */

/* Whether this copy of the library is the one that is to refuse. */
static int is_meant(void)
{
    const char *const name = getenv("STAND_IN_REFUSE_IN");
    Dl_info self;

    return name == NULL ||
           (dladdr((void *)&inside, &self) != 0 && strrchr(self.dli_fname, '/') != NULL &&
            strcmp(strrchr(self.dli_fname, '/') + 1, name) == 0);
}

static int refuses(const char *what)
{
    const char *const refuse = getenv("STAND_IN_REFUSE");

    return refuse != NULL && strcmp(refuse, what) == 0 && is_meant();
}

EXPORT int cuptiGetVersion(uint32_t *ret_version);
EXPORT int cuptiGetResultString(int result, const char **text);
EXPORT int cuptiSubscribe(void **subscriber, cupti_callback callback, void *user);
EXPORT int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *user,
                             struct cupti_subscriber_parameters *parameters);
EXPORT int cuptiActivityEnable(int kind);
EXPORT int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t number);
EXPORT uint64_t stand_in_calls_back(void);
EXPORT void stand_in_profiler(int on);
EXPORT int cuptiGetCallbackName(int domain, uint32_t number, const char **name);
EXPORT int cuptiActivityRegisterCallbacks(cupti_buffer_requested on_requested,
                                          cupti_buffer_completed on_completed);
EXPORT int cuptiActivityRegisterTimestampCallback(cupti_timestamp function);
EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                      struct cupti_activity **record);
EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count);
EXPORT int cuptiActivityFlushAll(uint32_t flag);
EXPORT int cuptiSetThreadIdType(int type);
EXPORT int cuptiGetStreamIdEx(void *context, const void *stream, uint8_t per_thread, uint32_t *id);
EXPORT int cuptiGetDeviceId(void *context, uint32_t *device);
EXPORT void stand_in_deliver(int launches, uint32_t thread, int drop);
EXPORT int stand_in_enabled(int kind);
EXPORT void stand_in_deliver_kinds(uint32_t thread);
EXPORT void stand_in_deliver_external(uint32_t thread);
EXPORT int stand_in_deliver_late(int buffers);
EXPORT void stand_in_deliver_together(int threads, int launches);
EXPORT void stand_in_cross(void);
EXPORT void stand_in_occupy(int on);
EXPORT int stand_in_clock_registrations(void);
EXPORT void stand_in_take_clock(void);
EXPORT int cuptiActivitySetAttribute(int attribute, size_t *size_bytes, void *value);
EXPORT size_t stand_in_device_buffers_max(void);
EXPORT void stand_in_return_foreign(void);
EXPORT void stand_in_return_twice(void);
EXPORT int stand_in_subscribers(void);
EXPORT int stand_in_injections(void);
EXPORT int InitializeInjection(void);
EXPORT uint64_t stand_in_flushes(void);
EXPORT int cuptiUnsubscribe(void *subscriber);
EXPORT int cuptiActivityDisable(int kind);

static uint32_t version(void)
{
    const char *const asked = getenv("STAND_IN_VERSION");

    return asked != NULL ? (uint32_t)strtoul(asked, NULL, 10) : 26;
}

int cuptiGetVersion(uint32_t *ret_version)
{
    *ret_version = version();
    return CUPTI_OK;
}

int cuptiGetResultString(int result, const char **text)
{
    *text = result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                           : "CUPTI_ERROR";
    return CUPTI_OK;
}

int cuptiSubscribe(void **subscriber, cupti_callback callback, void *user)
{
    (void)user;
    if (refuses("subscribe")) {
        return CUPTI_RESULT_INSUFFICIENT_PRIVILEGES;
    }
    if (subscribers > 0 || refuses("busy")) { /* as the real one up to CUDA 13.2 */
        return getenv("STAND_IN_BUSY") != NULL ? (int)strtol(getenv("STAND_IN_BUSY"), NULL, 10)
                                               : CUPTI_RESULT_MULTIPLE_SUBSCRIBERS;
    }
    *subscriber = &requested;
    subscriber_callback = callback;
    subscribers += callback != NULL;
    return callback == NULL ? 1 : CUPTI_OK;
}

int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t number)
{
    if (subscriber != &requested || subscribers == 0 || domain < 1 || domain > 2 ||
        number >= sizeof(called[0])) {
        return 1;
    }
    if (refuses("callbacks")) {
        return CUPTI_RESULT_INSUFFICIENT_PRIVILEGES;
    }
    called[domain - 1][number] = on != 0;
    return CUPTI_OK;
}

/* How often a function of the subscriber was called for one of CUDA. */
uint64_t stand_in_calls_back(void)
{
    return calls_back;
}

static void call_back(int domain, uint32_t number, int site)
{
    const struct {
        int site;
        int unused;
        const char *function;
    } data = {site, 0, "as CUPTI's callback data begin"};

    if (subscribers > 0 && called[domain - 1][number]) {
        (void)__atomic_fetch_add(&calls_back, 1, __ATOMIC_RELAXED);
        subscriber_callback(NULL, domain, number, &data);
    }
}

/* The program calls cudaProfilerStart or cudaProfilerStop: the runtime's call makes the driver's. */
void stand_in_profiler(int on)
{
    const uint32_t runtime = on ? CUPTI_RUNTIME_PROFILER_START : CUPTI_RUNTIME_PROFILER_STOP;
    const uint32_t driver = on ? CUPTI_DRIVER_PROFILER_START : CUPTI_DRIVER_PROFILER_STOP;

    call_back(2, runtime, CUPTI_SITE_ENTER);
    call_back(1, driver, CUPTI_SITE_ENTER);
    call_back(1, driver, CUPTI_SITE_EXIT);
    call_back(2, runtime, CUPTI_SITE_EXIT);
}

int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *user,
                      struct cupti_subscriber_parameters *parameters)
{
    if ((refuses("busy") || is_occupied) && parameters->holder != NULL &&
        parameters->holder_bytes >= 5) {
        memcpy(parameters->holder, "nsys", 5);
    }
    return cuptiSubscribe(subscriber, callback, user);
}

int cuptiActivityEnable(int kind)
{
    if (refuses("all") || (kind == CUPTI_KIND_CONCURRENT_KERNEL && refuses("privileges"))) {
        return CUPTI_RESULT_INSUFFICIENT_PRIVILEGES;
    }
    if ((kind == CUPTI_KIND_GRAPH_TRACE && refuses("graphs")) ||
        (kind == CUPTI_KIND_EXTERNAL_CORRELATION && refuses("external"))) {
        return CUPTI_RESULT_NOT_SUPPORTED;
    }
    if (kind >= 0 && kind < 64) {
        enabled[kind] = 1;
    }
    return CUPTI_OK;
}

int cuptiUnsubscribe(void *subscriber)
{
    subscribers -= subscriber == &requested;
    return subscriber == &requested ? CUPTI_OK : 1;
}

int cuptiActivityDisable(int kind)
{
    if (kind >= 0 && kind < 64) {
        enabled[kind] = 0;
    }
    return CUPTI_OK;
}

/* Another profiler subscribes, and does not leave before it is told to. */
void stand_in_occupy(int on)
{
    subscribers += on - is_occupied;
    is_occupied = on;
}

int InitializeInjection(void)
{
    const char *const script = getenv("STAND_IN_INJECTION");

    injections++;
    if (script != NULL && strcmp(script, "subscribe") == 0) {
        stand_in_occupy(1);
    }
    return script == NULL || strcmp(script, "fail") != 0;
}

int stand_in_injections(void)
{
    return injections;
}

int stand_in_subscribers(void)
{
    return subscribers;
}

/* How often it was asked for its buffers. */
uint64_t stand_in_flushes(void)
{
    return __atomic_load_n(&flushes, __ATOMIC_RELAXED);
}

int stand_in_enabled(int kind)
{
    return enabled[kind];
}

int cuptiGetCallbackName(int domain, uint32_t number, const char **name)
{
    (void)pthread_mutex_lock(&inside);
    (void)pthread_mutex_unlock(&inside);
    if (domain == CUPTI_DOMAIN_RUNTIME && number == 211) {
        *name = "cudaLaunchKernel_v7000";
        return CUPTI_OK;
    }
    return 1;
}

int cuptiActivityRegisterCallbacks(cupti_buffer_requested on_requested,
                                   cupti_buffer_completed on_completed)
{
    requested = on_requested;
    completed = on_completed;
    return CUPTI_OK;
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp function)
{
    if (getenv("STAND_IN_NO_TIMESTAMP") != NULL) {
        return 1;
    }
    registrations++;
    timestamp = function;
    return CUPTI_OK;
}

int stand_in_clock_registrations(void)
{
    return registrations;
}

/* Another tool registers a clock of its own. */
static uint64_t other_clock(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void stand_in_take_clock(void)
{
    timestamp = other_clock;
}

int cuptiActivitySetAttribute(int attribute, size_t *size_bytes, void *value)
{
    if (refuses("attributes") || attribute != CUPTI_ATTRIBUTE_DEVICE_BUFFERS_MAX ||
        *size_bytes != sizeof(size_t)) {
        return 1;
    }
    memcpy(&device_buffers_max, value, sizeof(device_buffers_max));
    return CUPTI_OK;
}

size_t stand_in_device_buffers_max(void)
{
    return device_buffers_max;
}

/* As long as CUDA 13 makes them. */
size_t stand_in_size_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_KIND_DEVICE:
        return 184;
    case CUPTI_KIND_CONCURRENT_KERNEL:
        return 216;
    case CUPTI_KIND_MEMCPY:
    case CUPTI_KIND_MEMCPY2:
        return 96;
    case CUPTI_KIND_MEMSET:
        return 88;
    case CUPTI_KIND_RUNTIME:
    case CUPTI_KIND_DRIVER:
        return 40;
    case CUPTI_KIND_CUDA_EVENT:
    case CUPTI_KIND_SYNCHRONIZATION:
    case CUPTI_KIND_OVERHEAD:
    case CUPTI_KIND_GRAPH_TRACE:
        return 56;
    case CUPTI_KIND_EXTERNAL_CORRELATION:
        return 24;
    case CUPTI_KIND_MEMORY2:
        return 128;
    default:
        return 0;
    }
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
    stand_in_reads_record();
    uint8_t *const next =
        *record == NULL ? buffer : (uint8_t *)*record + stand_in_size_of((*record)->kind);

    if (is_crossing) {
        is_crossing = 0;
        (void)sem_post(&reads);
    }
    (void)pthread_mutex_lock(&inside);
    (void)pthread_mutex_unlock(&inside);
    if (next >= buffer + valid_bytes ||
        (*record != NULL && stand_in_size_of((*record)->kind) == 0)) {
        return CUPTI_RESULT_MAX_LIMIT;
    }
    *record = (struct cupti_activity *)(void *)next;
    return CUPTI_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context;
    (void)stream;
    *count = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
    return CUPTI_OK;
}

static void *deliver_from_another_thread(void *argument)
{
    const struct delivery *const delivery = argument;

    completed(NULL, 0, delivery->buffer, delivery->size_bytes, delivery->valid_bytes);
    return NULL;
}

uint8_t *stand_in_add(uint8_t *at, const void *record, size_t size_bytes, uint32_t kind)
{
    if (at == NULL) { /* the tool declined: "CUPTI may drop activity records", which it counts */
        (void)__atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    memset(at, 0, stand_in_size_of(kind));
    memcpy(at, record, size_bytes);
    return at + stand_in_size_of(kind);
}

uint64_t stand_in_now_ns(void)
{
    const char *const ago_ms = getenv("STAND_IN_AGO_MS");
    const uint64_t ago_ns = ago_ms != NULL ? (uint64_t)strtoul(ago_ms, NULL, 10) * 1000000u : 0;

    return (timestamp != NULL ? timestamp() : other_clock()) - ago_ns;
}

void stand_in_ask(struct delivery *delivery)
{
    size_t record_count_max = 0;

    delivery->buffer = NULL;
    delivery->size_bytes = 0;
    delivery->valid_bytes = 0;
    requested(&delivery->buffer, &delivery->size_bytes, &record_count_max);
    if (delivery->buffer == NULL && version() < CUPTI_VERSION_REFUSE_BUFFER) {
        _exit(93); /* it would write there */
    }
}

void stand_in_give(const struct delivery *delivery)
{
    if (delivery->buffer == NULL) {
        return;
    }
    completed(NULL, 0, delivery->buffer, delivery->size_bytes, delivery->valid_bytes);
}

static void give_from_another_thread(struct delivery *delivery)
{
    pthread_t other;

    if (delivery->buffer != NULL &&
        pthread_create(&other, NULL, deliver_from_another_thread, delivery) == 0) {
        (void)pthread_join(other, NULL);
    }
}

enum { ROOM_BYTES = 512 };
/* Room for a record more in the buffer, or in the next one. */
static uint8_t *with_room(struct delivery *delivery, uint8_t *at)
{
    if (delivery->buffer != NULL &&
        (size_t)(at - delivery->buffer) + ROOM_BYTES <= delivery->size_bytes) {
        return at;
    }
    if (delivery->buffer != NULL) {
        delivery->valid_bytes = (size_t)(at - delivery->buffer);
        give_from_another_thread(delivery);
    }
    stand_in_ask(delivery); /* again, where the tool declined before */
    return delivery->buffer;
}

static const uint64_t GRAPH_SPAN_NS = 11 * 1000000000ull;

/* Launches of graph 5, one after the other, as of GRAPH_SPAN_NS: from one flush to the next so much
 * time passes in the records, the first five end about now. */
static void return_graphs(const char *script)
{
    static uint32_t correlation = 500000;
    static uint64_t clock_ns;
    struct delivery delivery = {0};
    char *rest = NULL;
    const unsigned launches = (unsigned)strtoul(script, &rest, 10);
    const unsigned nodes = (unsigned)strtoul(rest + 1, &rest, 10);
    const unsigned extra_ns = (unsigned)strtoul(rest + 1, &rest, 10);
    uint8_t *at = NULL;

    clock_ns = clock_ns == 0 ? stand_in_now_ns() - 5 * GRAPH_SPAN_NS : clock_ns;
    for (unsigned i = 0; i < launches; i++, correlation++) {
        const uint64_t begin_ns = clock_ns;

        if (enabled[CUPTI_KIND_GRAPH_TRACE]) {
            const struct cupti_graph_trace whole = {.kind = CUPTI_KIND_GRAPH_TRACE,
                                                    .correlation = correlation,
                                                    .start_ns = clock_ns,
                                                    .end_ns = clock_ns + nodes * 1000u,
                                                    .graph = 5,
                                                    .context = 1,
                                                    .stream = 7};

            at = with_room(&delivery, at);
            at = stand_in_add(at, &whole, sizeof(whole), CUPTI_KIND_GRAPH_TRACE);
        }
        for (unsigned node = 0; node < nodes && !enabled[CUPTI_KIND_GRAPH_TRACE]; node++) {
            const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                                .start_ns = clock_ns,
                                                .end_ns = clock_ns + 1000,
                                                .context = 1,
                                                .stream = 7,
                                                .correlation = correlation,
                                                .name = "node_kernel",
                                                .graph_node = 100 + node,
                                                .graph = 5};

            at = with_room(&delivery, at);
            at = stand_in_add(at, &kernel, sizeof(kernel), CUPTI_KIND_CONCURRENT_KERNEL);
            clock_ns += 1000 + extra_ns;
        }
        clock_ns = begin_ns + GRAPH_SPAN_NS / launches;
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    stand_in_give(&delivery);
}

int cuptiActivityFlushAll(uint32_t flag)
{
    (void)__atomic_add_fetch(&flushes, 1, __ATOMIC_RELAXED);
    while (flag != 0 && getenv("STAND_IN_HANG") != NULL) {
        (void)pause();
    }
    if (getenv("STAND_IN_GRAPHS") != NULL) {
        return_graphs(getenv("STAND_IN_GRAPHS"));
    }
    stand_in_gpu_flush(flag != 0);
    return CUPTI_OK;
}

int cuptiSetThreadIdType(int type)
{
    return type == 1 ? CUPTI_OK : 1;
}

/* A handle is the number and twelve zero bits. */
int cuptiGetStreamIdEx(void *context, const void *stream, uint8_t per_thread, uint32_t *id)
{
    *id = (uint32_t)((uintptr_t)stream >> 12);
    return context == NULL && per_thread == 0 ? CUPTI_OK : 1;
}

int cuptiGetDeviceId(void *context, uint32_t *device)
{
    *device = 0;
    return context == NULL ? CUPTI_OK : 1;
}

/* `launches` times a call, its kernel and a copy; every third kernel has no name. */
void stand_in_deliver(int launches, uint32_t thread, int drop)
{
    const uint64_t base_ns = stand_in_now_ns();
    struct delivery delivery = {0};
    uint8_t *at = NULL;

    (void)__atomic_add_fetch(&dropped, (size_t)drop, __ATOMIC_RELAXED);
    for (int i = 0; i < launches; i++) {
        const uint64_t now = base_ns + (uint64_t)i * 10000;
        const struct cupti_call call = {.kind = CUPTI_KIND_RUNTIME,
                                        .number = 211,
                                        .start_ns = now,
                                        .end_ns = now + 4000,
                                        .thread = thread,
                                        .correlation = (uint32_t)i + 1};
        const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                            .start_ns = now + 5000,
                                            .end_ns = now + 9000,
                                            .device = 0,
                                            .context = 1,
                                            .stream = 7,
                                            .grid = {8, 4, 1},
                                            .block = {128, 1, 1},
                                            .registers_per_thread = 64,
                                            .correlation = (uint32_t)i + 1,
                                            .name = i % 3 == 2 ? NULL : "sm80_xmma_gemm_stand_in",
                                            .graph_node = (UINT64_C(5) << 32) + 77};
        const struct cupti_memcpy copy = {.kind = CUPTI_KIND_MEMCPY,
                                          .copy_kind = 1,
                                          .src_kind = 1,
                                          .dst_kind = 3,
                                          .bytes = 4096,
                                          .start_ns = now + 100,
                                          .end_ns = now + 200,
                                          .device = 0,
                                          .context = 1,
                                          .stream = 14,
                                          .correlation = 100000 + (uint32_t)i};

        at = with_room(&delivery, at);
        at = stand_in_add(at, &kernel, sizeof(kernel),
                          CUPTI_KIND_CONCURRENT_KERNEL); /* before its call: out of order */
        at = stand_in_add(at, &call, sizeof(call), CUPTI_KIND_RUNTIME);
        at = stand_in_add(at, &copy, sizeof(copy), CUPTI_KIND_MEMCPY);
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    give_from_another_thread(&delivery);
}

/* One record of each kind that a launch does not bring, in one buffer. */
void stand_in_deliver_kinds(uint32_t thread)
{
    const uint64_t now = stand_in_now_ns();
    const struct cupti_memcpy_peer peer = {.kind = CUPTI_KIND_MEMCPY2,
                                           .copy_kind = 10,
                                           .src_kind = 3,
                                           .dst_kind = 3,
                                           .flags = 1,
                                           .bytes = 8192,
                                           .start_ns = now,
                                           .end_ns = now + 700,
                                           .context = 1,
                                           .stream = 9,
                                           .correlation = 71};
    const struct cupti_memset set = {.kind = CUPTI_KIND_MEMSET,
                                     .value = 7,
                                     .bytes = 512,
                                     .start_ns = now + 1000,
                                     .end_ns = now + 1100,
                                     .context = 1,
                                     .stream = 9,
                                     .correlation = 72};
    const struct cupti_synchronization sync = {.kind = CUPTI_KIND_SYNCHRONIZATION,
                                               .type = 3,
                                               .start_ns = now + 2000,
                                               .end_ns = now + 2500,
                                               .correlation = 73,
                                               .context = 1,
                                               .stream = 9};
    /* stream 9 waits for what stream 14 had recorded: not the first time, not what came later */
    const struct cupti_synchronization wait = {.kind = CUPTI_KIND_SYNCHRONIZATION,
                                               .type = 2,
                                               .start_ns = now + 2600,
                                               .end_ns = now + 2600,
                                               .correlation = 60,
                                               .context = 1,
                                               .stream = 9,
                                               .event = 33};
    const uint32_t recorded_by[] = {50, 65, 40, 55};
    const uint32_t recorded_in[] = {14, 15, 12, 13};
    const struct cupti_overhead overhead = {.kind = CUPTI_KIND_OVERHEAD,
                                            .overhead_kind = 1u << 16,
                                            .object_kind = CUPTI_OBJECT_THREAD,
                                            .object = {0, thread, 0},
                                            .start_ns = now + 3000,
                                            .end_ns = now + 3300};
    const struct cupti_memory memory = {.kind = CUPTI_KIND_MEMORY2,
                                        .operation = 1,
                                        .memory_kind = 3,
                                        .address = 0x7f0000000000u,
                                        .bytes = 1 << 20,
                                        .timestamp_ns = now + 4000,
                                        .context = 1,
                                        .stream = 9};
    const struct cupti_graph_trace graph = {.kind = CUPTI_KIND_GRAPH_TRACE,
                                            .correlation = 74,
                                            .start_ns = now + 5000,
                                            .end_ns = now + 5900,
                                            .graph = 11,
                                            .context = 1,
                                            .stream = 9};
    struct delivery delivery = {0};
    uint8_t *at;

    stand_in_ask(&delivery);
    at = stand_in_add(delivery.buffer, &peer, sizeof(peer), CUPTI_KIND_MEMCPY2);
    at = stand_in_add(at, &set, sizeof(set), CUPTI_KIND_MEMSET);
    at = stand_in_add(at, &sync, sizeof(sync), CUPTI_KIND_SYNCHRONIZATION);
    at = stand_in_add(at, &wait, sizeof(wait), CUPTI_KIND_SYNCHRONIZATION);
    for (int i = 0; i < 4; i++) {
        const struct cupti_cuda_event event = {.kind = CUPTI_KIND_CUDA_EVENT,
                                               .correlation = recorded_by[i],
                                               .context = 1,
                                               .stream = recorded_in[i],
                                               .event = i == 3 ? 34 : 33};

        at = stand_in_add(at, &event, sizeof(event), CUPTI_KIND_CUDA_EVENT);
    }
    at = stand_in_add(at, &overhead, sizeof(overhead), CUPTI_KIND_OVERHEAD);
    at = stand_in_add(at, &memory, sizeof(memory), CUPTI_KIND_MEMORY2);
    if (!refuses("privileges")) {
        at = stand_in_add(at, &graph, sizeof(graph), CUPTI_KIND_GRAPH_TRACE);
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    stand_in_give(&delivery);
}

/* A launch (81) with two kinds of ids, a copy (82) with one, a copy (83) with none. The launch and
 * its kernel come in a buffer before that of its ids. */
void stand_in_deliver_external(uint32_t thread)
{
    static const struct cupti_external_correlation ids[] = {
        {CUPTI_KIND_EXTERNAL_CORRELATION, 4, 17, 81, 0},
        {CUPTI_KIND_EXTERNAL_CORRELATION, 3, 5000000001, 81, 0},
        {CUPTI_KIND_EXTERNAL_CORRELATION, 3, 18, 82, 0}};
    const uint64_t now = stand_in_now_ns();
    const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                        .start_ns = now + 500,
                                        .end_ns = now + 900,
                                        .context = 1,
                                        .stream = 7,
                                        .correlation = 81,
                                        .name = "a_kernel",
                                        .graph_node = 1,
                                        .graph = 6};
    struct delivery delivery = {0};
    uint8_t *at;

    stand_in_ask(&delivery);
    at = stand_in_add(delivery.buffer, &kernel, sizeof(kernel), CUPTI_KIND_CONCURRENT_KERNEL);
    for (uint32_t i = 81; i <= 83; i++) {
        const struct cupti_call call = {.kind = CUPTI_KIND_RUNTIME,
                                        .number = 211,
                                        .start_ns = now + i * 1000,
                                        .end_ns = now + i * 1000 + 100,
                                        .thread = thread,
                                        .correlation = i};
        const struct cupti_memcpy copy = {.kind = CUPTI_KIND_MEMCPY,
                                          .copy_kind = 1,
                                          .bytes = 4096,
                                          .start_ns = now + i * 1000 + 200,
                                          .end_ns = now + i * 1000 + 300,
                                          .context = 1,
                                          .stream = 14,
                                          .correlation = i};

        if (i != 82) {
            at = stand_in_add(at, &call, sizeof(call), CUPTI_KIND_RUNTIME);
        }
        if (i != 81) {
            at = stand_in_add(at, &copy, sizeof(copy), CUPTI_KIND_MEMCPY);
        }
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    stand_in_give(&delivery);
    stand_in_ask(&delivery);
    at = delivery.buffer;
    for (int i = 0; i < 3 && enabled[CUPTI_KIND_EXTERNAL_CORRELATION]; i++) {
        at = stand_in_add(at, &ids[i], sizeof(ids[i]), CUPTI_KIND_EXTERNAL_CORRELATION);
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    stand_in_give(&delivery);
}

/* `buffers` buffers out at a time, with one memset each, returned late: the last one first. Says
 * how many different ones it was given. */
int stand_in_deliver_late(int buffers)
{
    static struct delivery held[1024];
    const uint64_t now = stand_in_now_ns();
    int different = 0;

    for (int i = 0; i < buffers && i < 1024; i++) {
        const struct cupti_memset set = {.kind = CUPTI_KIND_MEMSET,
                                         .bytes = (uint64_t)i + 1,
                                         .start_ns = now + (uint64_t)i * 1000,
                                         .end_ns = now + (uint64_t)i * 1000 + 500,
                                         .context = 1,
                                         .stream = 9};
        int known = 0;

        stand_in_ask(&held[i]);
        for (int other = 0; other < i; other++) {
            known |= held[other].buffer == held[i].buffer;
        }
        different += !known && held[i].buffer != NULL;
        held[i].valid_bytes =
            (size_t)(stand_in_add(held[i].buffer, &set, sizeof(set), CUPTI_KIND_MEMSET) -
                     held[i].buffer);
    }
    for (int i = buffers < 1024 ? buffers : 1024; i > 0; i--) {
        stand_in_give(&held[i - 1]);
    }
    return different;
}

static void *deliver_alone(void *argument)
{
    stand_in_deliver(*(const int *)argument, 1, 0);
    return NULL;
}

static void *give_crossing(void *delivery)
{
    is_crossing = 1;
    stand_in_give(delivery);
    return NULL;
}

/* A thread comes to read a buffer that it returns, while this one has CUPTI's lock and returns
 * another: neither may wait for the other. */
void stand_in_cross(void)
{
    const uint64_t now_ns = stand_in_now_ns();
    const struct cupti_memset set = {.kind = CUPTI_KIND_MEMSET,
                                     .bytes = 1,
                                     .start_ns = now_ns,
                                     .end_ns = now_ns + 500,
                                     .context = 1,
                                     .stream = 9};
    struct delivery both[2] = {{0}, {0}};
    pthread_t other;

    for (int i = 0; i < 2; i++) {
        stand_in_ask(&both[i]);
        both[i].valid_bytes =
            (size_t)(stand_in_add(both[i].buffer, &set, sizeof(set), CUPTI_KIND_MEMSET) -
                     both[i].buffer);
    }
    (void)sem_init(&reads, 0, 0);
    (void)pthread_mutex_lock(&inside);
    if (pthread_create(&other, NULL, give_crossing, &both[0]) == 0) {
        (void)sem_wait(&reads);
        stand_in_give(&both[1]);
        (void)pthread_mutex_unlock(&inside);
        (void)pthread_join(other, NULL);
    }
}

/* Several threads return buffers at the same time. */
void stand_in_deliver_together(int threads, int launches)
{
    pthread_t ids[16];
    int count = 0;

    while (count < threads && count < 16 &&
           pthread_create(&ids[count], NULL, deliver_alone, &launches) == 0) {
        count++;
    }
    while (count > 0) {
        (void)pthread_join(ids[--count], NULL);
    }
}

/* A buffer of a profiler that had CUPTI before comes late, to whoever is registered now. */
void stand_in_return_foreign(void)
{
    static uint8_t foreign[4096];

    memset(foreign, 0xa5, sizeof(foreign));
    completed(NULL, 0, foreign, sizeof(foreign), 0);
    for (size_t i = 0; i < sizeof(foreign); i++) {
        if (foreign[i] != 0xa5) {
            _exit(96); /* it was written into */
        }
    }
    for (int i = 0; i < 2; i++) {
        struct delivery delivery = {0};

        stand_in_ask(&delivery);
        if (delivery.buffer == foreign) {
            _exit(95); /* and handed out */
        }
        stand_in_give(&delivery);
    }
}

/* One buffer comes back twice: two owners would share it then. */
void stand_in_return_twice(void)
{
    struct delivery first = {0};
    struct delivery second = {0};

    stand_in_ask(&first);
    stand_in_give(&first);
    stand_in_give(&first);
    stand_in_ask(&first);
    stand_in_ask(&second);
    if (first.buffer == second.buffer) {
        _exit(94);
    }
    stand_in_give(&first);
    stand_in_give(&second);
}
