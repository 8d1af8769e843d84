/*
 * A GPU that takes its time, and buffers that obey the text of cuptiActivityFlushAll:
 *
 *   - a kernel's record enters the buffer at its launch, without times, and is complete when the
 *     kernel has ended
 *   - a default flush returns the buffers whose records are all complete, full or not; a buffer with
 *     a kernel that still runs is kept back
 *   - a forced flush returns all; what still runs has the times 0 and 0
 *   - a full buffer comes back by itself when it is complete
 *
 * One lock is held in the callbacks of a flush, as in the real library, and taken by everything that
 * a tool calls from other threads: a tool that calls with a lock of its own held, which its
 * callbacks need, ends here in a deadlock.
 */
#include "collector/inject/cupti_abi.h"
#include "tests/stand_in/cupti_stand_in.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS_MAX = 2048, RUNNING_MAX = 4096 };

struct running {
    uint32_t at; /* offset of the kernel's record */
    uint64_t start_ns;
    uint64_t end_ns;
};

struct held {
    struct delivery delivery;
    struct running *running; /* RUNNING_MAX */
    size_t running_count;
};

EXPORT void stand_in_launch(uint32_t count, uint64_t kernel_ns, uint32_t thread);
EXPORT uint64_t stand_in_launched(void);
EXPORT uint64_t stand_in_held(void);
EXPORT void stand_in_launch_after_flush(int on);
EXPORT void stand_in_name_kernels(const char *name);
EXPORT void stand_in_kill_at_record(int number);
EXPORT void stand_in_deliver_device(uint32_t number, uint8_t uuid);
EXPORT void stand_in_deliver_part(uint32_t number, uint8_t uuid, uint8_t part);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct held held[BUFFERS_MAX]; /* the last one is being filled; guarded by mutex */
static size_t held_count;
static uint64_t device_free_ns;
static uint64_t launched;
static const char *kernel_name = "slow_kernel";
static int launches_after_flush;

/* Records until the process ends as by kill -9, while it reads them; 0: it goes on. */
static int records_to_kill;

void stand_in_kill_at_record(int number)
{
    records_to_kill = number;
}

void stand_in_reads_record(void)
{
    if (records_to_kill > 0 && --records_to_kill == 0) {
        (void)kill(getpid(), SIGKILL);
    }
}

static uint64_t monotonic_ns(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Stamp what has ended. The tool's clock is asked now, as CUPTI does for what ran on the GPU. */
static void complete(struct held *buffer, uint64_t now_ns)
{
    const uint64_t apart_ns = stand_in_now_ns() - now_ns;
    size_t left = 0;

    for (size_t i = 0; i < buffer->running_count; i++) {
        const struct running one = buffer->running[i];

        if (one.end_ns <= now_ns) {
            struct cupti_kernel *const kernel = (void *)(buffer->delivery.buffer + one.at);

            kernel->start_ns = one.start_ns + apart_ns;
            kernel->end_ns = one.end_ns + apart_ns;
        } else {
            buffer->running[left++] = one;
        }
    }
    buffer->running_count = left;
}

/* `keeps_open`: the buffer that is being filled stays. */
static void return_buffers(int is_forced, int keeps_open)
{
    const uint64_t now_ns = monotonic_ns();
    size_t left = 0;

    for (size_t i = 0; i < held_count; i++) {
        struct held *const one = &held[i];

        complete(one, now_ns);
        if ((one->running_count == 0 || is_forced) && !(keeps_open && i + 1 == held_count)) {
            stand_in_give(&one->delivery);
            free(one->running);
        } else {
            held[left++] = *one;
        }
    }
    held_count = left;
}

/* Buffers of the tool's that it has and has not returned. */
uint64_t stand_in_held(void)
{
    uint64_t count;

    (void)pthread_mutex_lock(&mutex);
    count = held_count;
    (void)pthread_mutex_unlock(&mutex);
    return count;
}

/* The program goes on while the tool asks for its buffers: a kernel comes right after that. */
void stand_in_launch_after_flush(int on)
{
    __atomic_store_n(&launches_after_flush, on, __ATOMIC_RELAXED);
}

void stand_in_gpu_flush(int is_forced)
{
    (void)pthread_mutex_lock(&mutex);
    return_buffers(is_forced, 0);
    (void)pthread_mutex_unlock(&mutex);
    if (__atomic_load_n(&launches_after_flush, __ATOMIC_RELAXED)) {
        stand_in_launch(1, 1, 1);
    }
}

static struct held *open_buffer(size_t need_bytes)
{
    struct held *last = held_count > 0 ? &held[held_count - 1] : NULL;

    if (last != NULL && last->delivery.valid_bytes + need_bytes <= last->delivery.size_bytes &&
        last->running_count < RUNNING_MAX) {
        return last;
    }
    if (held_count == BUFFERS_MAX) {
        return NULL;
    }
    last = &held[held_count];
    memset(last, 0, sizeof(*last));
    stand_in_ask(&last->delivery);
    last->running = malloc(RUNNING_MAX * sizeof(*last->running));
    if (last->delivery.buffer == NULL || last->running == NULL) {
        free(last->running);
        return NULL;
    }
    held_count++;
    return last;
}

/* `count` launches of a kernel each, which run one after the other; the host does not wait. */
void stand_in_launch(uint32_t count, uint64_t kernel_ns, uint32_t thread)
{
    (void)pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t now_ns = monotonic_ns();
        const uint64_t call_ns = stand_in_now_ns();
        const uint32_t correlation = (uint32_t)++launched;
        const struct cupti_call call = {.kind = CUPTI_KIND_RUNTIME,
                                        .number = 211,
                                        .start_ns = call_ns,
                                        .end_ns = call_ns + 1000,
                                        .thread = thread,
                                        .correlation = correlation};
        const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
                                            .context = 1,
                                            .stream = 7,
                                            .correlation = correlation,
                                            .name = kernel_name};
        struct held *const buffer =
            stand_in_enabled(CUPTI_KIND_CONCURRENT_KERNEL) ? open_buffer(512) : NULL;
        uint8_t *at;

        device_free_ns = device_free_ns > now_ns ? device_free_ns : now_ns;
        device_free_ns += kernel_ns;
        if (buffer == NULL) {
            if (stand_in_enabled(CUPTI_KIND_CONCURRENT_KERNEL)) {
                (void)stand_in_add(NULL, &kernel, sizeof(kernel), CUPTI_KIND_CONCURRENT_KERNEL);
                (void)stand_in_add(NULL, &call, sizeof(call), CUPTI_KIND_RUNTIME);
            }
            continue;
        }
        at = buffer->delivery.buffer + buffer->delivery.valid_bytes;
        buffer->running[buffer->running_count++] =
            (struct running){.at = (uint32_t)buffer->delivery.valid_bytes,
                             .start_ns = device_free_ns - kernel_ns,
                             .end_ns = device_free_ns};
        at = stand_in_add(at, &kernel, sizeof(kernel), CUPTI_KIND_CONCURRENT_KERNEL);
        at = stand_in_add(at, &call, sizeof(call), CUPTI_KIND_RUNTIME);
        buffer->delivery.valid_bytes = (size_t)(at - buffer->delivery.buffer);
    }
    return_buffers(0, 1);
    (void)pthread_mutex_unlock(&mutex);
}

/* Of the launches from now on; the text stays the caller's. */
void stand_in_name_kernels(const char *name)
{
    (void)pthread_mutex_lock(&mutex);
    kernel_name = name;
    (void)pthread_mutex_unlock(&mutex);
}

uint64_t stand_in_launched(void)
{
    return launched;
}

/* What CUPTI tells of a device that the process sees as `number`. */
void stand_in_deliver_device(uint32_t number, uint8_t uuid)
{
    stand_in_deliver_part(number, uuid, 0);
}

/* part 0: the whole device; 255: one that CUDA_VISIBLE_DEVICES hides */
void stand_in_deliver_part(uint32_t number, uint8_t uuid, uint8_t part)
{
    const struct cupti_device device = {.kind = CUPTI_KIND_DEVICE,
                                        .memory_bytes = 85899345920u,
                                        .sm_count = 132,
                                        .capability_major = 9,
                                        .id = number,
                                        .uuid = {[15] = uuid},
                                        .name = "Stand-in H100",
                                        .is_visible = part != 255,
                                        .is_divided = part != 0,
                                        .mig_uuid = {[15] = part}};
    struct delivery delivery = {0};

    if (!stand_in_enabled(CUPTI_KIND_DEVICE)) { /* nobody asked for it */
        return;
    }
    stand_in_ask(&delivery);
    delivery.valid_bytes =
        (size_t)(stand_in_add(delivery.buffer, &device, sizeof(device), CUPTI_KIND_DEVICE) -
                 delivery.buffer);
    stand_in_give(&delivery);
}
