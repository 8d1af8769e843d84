#include "collector/base/debug.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

/*
 * CUPTI asks for a buffer, fills it, and returns it from a thread of its own or from the one that
 * flushes. Buffers are recycled. There are at most BUFFERS_MAX: beyond that it gets one that is
 * thrown away unread, since refusing a buffer crashes CUPTI before CUDA 12.9.
 */
enum { BUFFER_BYTES = 4 << 20, BUFFERS_MAX = 64 };

struct free_buffer {
    struct free_buffer *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct free_buffer *free_buffers;
static unsigned buffer_count;
static uint8_t *scratch; /* its content is never read */
static struct cupti_functions cupti;
static uint32_t cupti_version;
static __thread bool in_flush __attribute__((tls_model("initial-exec")));

static void *map_buffer(void)
{
    void *const memory =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void on_requested(uint8_t **buffer, size_t *size_bytes, size_t *record_count_max)
{
    void *memory = NULL;

    (void)pthread_mutex_lock(&mutex);
    if (free_buffers != NULL) {
        memory = free_buffers;
        free_buffers = free_buffers->next;
    } else if (buffer_count < BUFFERS_MAX) {
        memory = map_buffer();
        buffer_count += memory != NULL;
    }
    if (memory == NULL) {
        scratch = scratch == NULL ? map_buffer() : scratch;
        memory = scratch;
    }
    LAC_DEBUG(CUPTI, 2, "%s; there are %u",
              memory == NULL      ? "no memory for a buffer"
              : memory == scratch ? "a buffer is handed out whose content will be discarded"
                                  : "a buffer is handed out",
              buffer_count);
    (void)pthread_mutex_unlock(&mutex);
    *buffer = memory;
    *size_bytes = memory != NULL ? BUFFER_BYTES : 0;
    *record_count_max = 0; /* as many as fit */
}

static void count_dropped(void *context, uint32_t stream)
{
    size_t count = 0;

    if (cupti.get_dropped != NULL && cupti.get_dropped(context, stream, &count) == CUPTI_OK &&
        count > 0) {
        LAC_DEBUG(CUPTI, 1, "CUPTI dropped %zu records", count);
        lac_spool_count_dropped(count, false);
    }
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void decode_all(uint8_t *buffer, size_t valid_bytes)
{
    const uint64_t begin_ns = thread_cpu_ns();
    struct lac_gpu_writer *const writer = lac_gpu_writer_take();
    struct cupti_activity *record = NULL;
    uint64_t count = 0;

    while (cupti.get_next_record(buffer, valid_bytes, &record) == CUPTI_OK) {
        lac_cupti_decode(writer, &cupti, cupti_version, record);
        count++;
    }
    /* inside lac_cupti_flush(), which counts the time together with CUPTI's own */
    lac_graphs_spent(lac_gpu_graphs(writer), count, in_flush ? 0 : thread_cpu_ns() - begin_ns);
    lac_gpu_writer_give(writer);
    LAC_DEBUG(CUPTI, 2, "a buffer came back: %zu bytes, %lu records", valid_bytes,
              (unsigned long)count);
}

void lac_cupti_flush(uint32_t flag)
{
    const uint64_t begin_ns = thread_cpu_ns();
    struct lac_gpu_writer *writer;

    LAC_DEBUG(CUPTI, 3, "asks for its buffers");
    in_flush = true;
    (void)cupti.flush_all(flag);
    in_flush = false;
    writer = lac_gpu_writer_take();
    lac_graphs_spent(lac_gpu_graphs(writer), 0, thread_cpu_ns() - begin_ns);
    lac_gpu_writer_give(writer);
}

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size_bytes,
                         size_t valid_bytes)
{
    (void)size_bytes;
    if (buffer == NULL) {
        return;
    }
    if (buffer == scratch) {
        LAC_DEBUG(CUPTI, 1, "a buffer of %zu bytes is discarded: %d fill faster than they are read",
                  valid_bytes, BUFFERS_MAX);
        lac_spool_count_dropped(1, false); /* nobody knows how many */
        return;
    }
    if (valid_bytes > 0) {
        lac_cupti_dump(&cupti, cupti_version, buffer, valid_bytes);
        decode_all(buffer, valid_bytes);
    }
    count_dropped(context, stream);
    (void)pthread_mutex_lock(&mutex);
    ((struct free_buffer *)(void *)buffer)->next = free_buffers;
    free_buffers = (struct free_buffer *)(void *)buffer;
    (void)pthread_mutex_unlock(&mutex);
}

int lac_cupti_buffers_register(const struct cupti_functions *functions, uint32_t version)
{
    cupti = *functions;
    cupti_version = version;
    return cupti.register_buffers(on_requested, on_completed);
}
