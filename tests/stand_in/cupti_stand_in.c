/*
 * A stand-in for libcupti, NOT CUPTI: it obeys a script in the environment and knows nothing of
 * GPUs. It shows that our side of the conversation holds (requests, refusals, late and dropped
 * buffers, other threads); how the real library behaves, only a machine with a GPU shows.
 *
 *   STAND_IN_REFUSE=busy        another subscriber holds CUPTI, by the name "nsys"
 *   STAND_IN_REFUSE=privileges  kernels may not be recorded
 *   STAND_IN_VERSION=N          what cuptiGetVersion says (default 26)
 *   STAND_IN_NO_TIMESTAMP=1     the timestamp callback is rejected
 */
#include "collector/inject/cupti_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static cupti_buffer_requested requested;
static cupti_buffer_completed completed;
static cupti_timestamp timestamp;
static size_t dropped;
static uint8_t enabled[64];
static int subscribers;

static int refuses(const char *what)
{
    const char *const refuse = getenv("STAND_IN_REFUSE");

    return refuse != NULL && strcmp(refuse, what) == 0;
}

EXPORT int cuptiGetVersion(uint32_t *version);
EXPORT int cuptiGetResultString(int result, const char **text);
EXPORT int cuptiSubscribe(void **subscriber, cupti_callback callback, void *user);
EXPORT int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *user,
                             struct cupti_subscriber_parameters *parameters);
EXPORT int cuptiActivityEnable(int kind);
EXPORT int cuptiGetCallbackName(int domain, uint32_t number, const char **name);
EXPORT int cuptiActivityRegisterCallbacks(cupti_buffer_requested on_requested,
                                          cupti_buffer_completed on_completed);
EXPORT int cuptiActivityRegisterTimestampCallback(cupti_timestamp function);
EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                      struct cupti_activity **record);
EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count);
EXPORT int cuptiActivityFlushAll(uint32_t flag);
EXPORT int cuptiSetThreadIdType(int type);
EXPORT void stand_in_deliver(int launches, uint32_t thread, int drop);
EXPORT int stand_in_enabled(int kind);
EXPORT int stand_in_subscribers(void);
EXPORT int cuptiUnsubscribe(void *subscriber);
EXPORT int cuptiActivityDisable(int kind);

int cuptiGetVersion(uint32_t *version)
{
    *version = getenv("STAND_IN_VERSION") != NULL
                   ? (uint32_t)strtoul(getenv("STAND_IN_VERSION"), NULL, 10)
                   : 26;
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
    if (subscribers > 0) { /* as the real one up to CUDA 13.2 */
        return CUPTI_RESULT_MULTIPLE_SUBSCRIBERS;
    }
    *subscriber = &requested;
    subscribers += !refuses("busy") && callback != NULL;
    return refuses("busy") ? CUPTI_RESULT_MULTIPLE_SUBSCRIBERS : callback == NULL ? 1 : CUPTI_OK;
}

int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *user,
                      struct cupti_subscriber_parameters *parameters)
{
    if (refuses("busy") && parameters->holder != NULL && parameters->holder_bytes >= 5) {
        memcpy(parameters->holder, "nsys", 5);
    }
    return cuptiSubscribe(subscriber, callback, user);
}

int cuptiActivityEnable(int kind)
{
    if (kind == CUPTI_KIND_CONCURRENT_KERNEL && refuses("privileges")) {
        return CUPTI_RESULT_INSUFFICIENT_PRIVILEGES;
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

int stand_in_subscribers(void)
{
    return subscribers;
}

int stand_in_enabled(int kind)
{
    return enabled[kind];
}

int cuptiGetCallbackName(int domain, uint32_t number, const char **name)
{
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
    timestamp = function;
    return CUPTI_OK;
}

static size_t size_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_KIND_CONCURRENT_KERNEL:
        return 216; /* as long as CUDA 13 makes it */
    case CUPTI_KIND_MEMCPY:
        return 96;
    case CUPTI_KIND_RUNTIME:
        return sizeof(struct cupti_call);
    default:
        return 0;
    }
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
    uint8_t *const next = *record == NULL ? buffer : (uint8_t *)*record + size_of((*record)->kind);

    if (next >= buffer + valid_bytes) {
        return CUPTI_RESULT_MAX_LIMIT;
    }
    *record = (struct cupti_activity *)(void *)next;
    return CUPTI_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context;
    (void)stream;
    *count = dropped;
    dropped = 0;
    return CUPTI_OK;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    return CUPTI_OK;
}

int cuptiSetThreadIdType(int type)
{
    return type == 1 ? CUPTI_OK : 1;
}

struct delivery {
    uint8_t *buffer;
    size_t size_bytes;
    size_t valid_bytes;
};

static void *deliver_from_another_thread(void *argument)
{
    const struct delivery *const delivery = argument;

    completed(NULL, 0, delivery->buffer, delivery->size_bytes, delivery->valid_bytes);
    return NULL;
}

static uint8_t *add(uint8_t *at, const void *record, size_t size_bytes, uint32_t kind)
{
    memset(at, 0, size_of(kind));
    memcpy(at, record, size_bytes);
    return at + size_of(kind);
}

/* One buffer with `launches` times a call, its kernel and a copy; every third kernel has no name.
 */
void stand_in_deliver(int launches, uint32_t thread, int drop)
{
    const uint64_t base_ns = timestamp != NULL ? timestamp() : 1700000000000000000u;
    struct delivery delivery = {0};
    size_t record_count_max = 0;
    pthread_t other;
    uint8_t *at;

    requested(&delivery.buffer, &delivery.size_bytes, &record_count_max);
    at = delivery.buffer;
    for (int i = 0; i < launches && (size_t)(at - delivery.buffer) + 512 < delivery.size_bytes;
         i++) {
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
                                            .graph_node = 77};
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

        at = add(at, &kernel, sizeof(kernel),
                 CUPTI_KIND_CONCURRENT_KERNEL); /* before its call: out of order */
        at = add(at, &call, sizeof(call), CUPTI_KIND_RUNTIME);
        at = add(at, &copy, sizeof(copy), CUPTI_KIND_MEMCPY);
    }
    delivery.valid_bytes = (size_t)(at - delivery.buffer);
    dropped = (size_t)drop;
    if (pthread_create(&other, NULL, deliver_from_another_thread, &delivery) == 0) {
        (void)pthread_join(other, NULL);
    }
}
