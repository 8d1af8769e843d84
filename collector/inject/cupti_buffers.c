#include "collector/base/debug.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

/*
 * CUPTI asks for a buffer, fills it, and returns it from a thread of its own or from the one that
 * flushes. A default flush keeps back every buffer with an operation in progress, and while the
 * host runs ahead of the GPU there is always one, so small buffers are what bounds the loss of a
 * killed process: BUFFER_BYTES are about a thousand launches with their kernels.
 *
 * Buffers are recycled. Beyond BUFFERS_MAX, or without memory, a CUPTI that may be refused is: it
 * drops records then, counts them, and asks again. An older one crashes when it is refused and gets
 * buffers that are thrown away, the last of which is set aside before CUPTI asks for the first.
 */
enum {
    BUFFER_BYTES = 256 << 10,
    BUFFERS_MAX = 512,
    DISCARDED_MAX = 64,
    SHARED = BUFFERS_MAX + DISCARDED_MAX, /* given out as often as it takes: nobody reads it */
    BUFFERS_ALL = SHARED + 1,
    DECODE_BATCH = 128
};

enum buffer_state { IS_FREE, IS_OUT, IS_READ };

struct buffer {
    uint8_t *memory;
    enum buffer_state state;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* the first BUFFERS_MAX are read, the others are not: guarded by mutex */
static struct buffer buffers[BUFFERS_ALL];
static unsigned buffer_count;
static unsigned discarded_count;
static unsigned out_count;
static uint64_t completed_count;
static uint64_t unread_count;   /* requests that got none, or one that is thrown away */
static uint64_t refused_to_ask; /* of them counted as a record each, until CUPTI says how many */
static struct cupti_functions cupti;
static uint32_t cupti_version;
static __thread bool in_flush __attribute__((tls_model("initial-exec")));

/* Inside the mutex: for whoever finds the spool of a process that was killed. */
static void count_out(int change)
{
    struct lac_spool_header *const header = lac_spool_header();

    out_count += (unsigned)change;
    if (header != NULL) {
        __atomic_store_n(&header->gpu_buffers_out, out_count, __ATOMIC_RELAXED);
    }
}

static void *map_buffer(void)
{
    void *const memory =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

/* A free buffer of `pool`, or a new one while there are fewer than `max`. Inside the mutex. */
static struct buffer *take(struct buffer *pool, unsigned *count, unsigned max)
{
    for (unsigned i = 0; i < *count; i++) {
        if (pool[i].state == IS_FREE) {
            return &pool[i];
        }
    }
    if (*count == max) {
        return NULL;
    }
    pool[*count].memory = map_buffer();
    return pool[*count].memory != NULL ? &pool[(*count)++] : NULL;
}

static bool may_refuse(void)
{
    return cupti_version >= CUPTI_VERSION_REFUSE_BUFFER;
}

static void on_requested(uint8_t **buffer, size_t *size_bytes, size_t *record_count_max)
{
    struct buffer *taken;
    bool is_read;

    (void)pthread_mutex_lock(&mutex);
    taken = take(buffers, &buffer_count, BUFFERS_MAX);
    is_read = taken != NULL;
    if (!is_read && !may_refuse()) {
        taken = take(buffers + BUFFERS_MAX, &discarded_count, DISCARDED_MAX);
        taken = taken != NULL ? taken : &buffers[SHARED];
    }
    if (taken != NULL) {
        count_out(taken->state == IS_FREE);
        taken->state = IS_OUT;
    }
    unread_count += !is_read;
    refused_to_ask += taken == NULL;
    LAC_DEBUG(CUPTI, 2, "%s; there are %u",
              is_read         ? "a buffer is handed out"
              : taken != NULL ? "a buffer is handed out that will not be read"
                              : "a buffer is refused",
              buffer_count);
    (void)pthread_mutex_unlock(&mutex);
    *buffer = taken != NULL ? taken->memory : NULL;
    *size_bytes = taken != NULL ? BUFFER_BYTES : 0;
    *record_count_max = 0; /* as many as fit */
    if (!is_read) {
        lac_spool_count_dropped(1, false); /* at least one, and more once it is known */
    }
}

uint64_t lac_cupti_buffers_unread(void)
{
    uint64_t count;

    (void)pthread_mutex_lock(&mutex);
    count = unread_count;
    (void)pthread_mutex_unlock(&mutex);
    return count;
}

/* Those for which CUPTI had no buffer are among them: what was counted for a refusal is not again. */
static void count_dropped(void *context, uint32_t stream)
{
    size_t count = 0;

    if (cupti.get_dropped != NULL && cupti.get_dropped(context, stream, &count) == CUPTI_OK &&
        count > 0) {
        uint64_t counted;

        LAC_DEBUG(CUPTI, 1, "CUPTI dropped %zu records", count);
        (void)pthread_mutex_lock(&mutex);
        counted = refused_to_ask < count ? refused_to_ask : count;
        refused_to_ask -= counted;
        (void)pthread_mutex_unlock(&mutex);
        lac_spool_count_dropped(count - counted, false);
    }
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* CUPTI is asked for records outside the writer's lock, which its callbacks need. */
static void decode_all(uint8_t *buffer, size_t valid_bytes)
{
    const uint64_t begin_ns = thread_cpu_ns();
    struct cupti_activity *records[DECODE_BATCH];
    struct cupti_activity *record = NULL;
    uint64_t count = 0;
    size_t batch;

    do {
        struct lac_gpu_writer *writer;

        for (batch = 0; batch < DECODE_BATCH &&
                        cupti.get_next_record(buffer, valid_bytes, &record) == CUPTI_OK;
             batch++) {
            records[batch] = record;
        }
        writer = lac_gpu_writer_take();
        for (size_t i = 0; i < batch; i++) {
            lac_cupti_decode(writer, cupti_version, records[i]);
        }
        count += batch;
        if (batch < DECODE_BATCH) {
            /* inside lac_cupti_flush(), which counts the time together with CUPTI's own */
            lac_graphs_spent(lac_gpu_graphs(writer), count,
                             in_flush ? 0 : thread_cpu_ns() - begin_ns);
        }
        lac_gpu_writer_give(writer);
    } while (batch == DECODE_BATCH);
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
    count_dropped(NULL, 0); /* where every request is refused, no buffer comes back to ask then */
    writer = lac_gpu_writer_take();
    lac_graphs_spent(lac_gpu_graphs(writer), 0, thread_cpu_ns() - begin_ns);
    lac_gpu_writer_give(writer);
}

unsigned lac_cupti_buffers_out(void)
{
    unsigned out;

    (void)pthread_mutex_lock(&mutex);
    out = out_count;
    (void)pthread_mutex_unlock(&mutex);
    return out;
}

void lac_cupti_flush_patiently(unsigned wait_ms)
{
    for (unsigned waited_ms = 0;; waited_ms += LAC_CUPTI_WAIT_MS) {
        const struct timespec pause = {.tv_nsec = LAC_CUPTI_WAIT_MS * 1000000L};

        lac_cupti_flush(0);
        if (lac_cupti_buffers_out() == 0 || waited_ms >= wait_ms) {
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    lac_cupti_flush(1);
}

void lac_cupti_buffers_give_back(void)
{
    (void)pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < BUFFERS_ALL; i++) {
        if (buffers[i].memory != NULL && buffers[i].state == IS_FREE) {
            (void)madvise(buffers[i].memory, BUFFER_BYTES, MADV_DONTNEED);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

uint64_t lac_cupti_buffers_completed(void)
{
    return __atomic_load_n(&completed_count, __ATOMIC_RELAXED);
}

/* The buffer at that address, to be read, if it is ours and out: others, as those of a profiler that had CUPTI
 * before us, are not ours to read or to hand out again. */
static struct buffer *take_back(const uint8_t *memory)
{
    struct buffer *found = NULL;

    (void)pthread_mutex_lock(&mutex);
    for (unsigned i = 0; memory != NULL && found == NULL && i < BUFFERS_ALL; i++) {
        found = buffers[i].memory == memory ? &buffers[i] : NULL;
    }
    found = found != NULL && found->state == IS_OUT ? found : NULL;
    if (found != NULL) {
        found->state =
            IS_READ; /* and out still, for who finds the spool of a process killed meanwhile */
    }
    (void)pthread_mutex_unlock(&mutex);
    return found;
}

/* What is thrown away with it; its first record was counted when it was handed out. */
static void count_unread(uint8_t *buffer, size_t valid_bytes)
{
    struct cupti_activity *record = NULL;
    uint64_t count = 0;

    while (count < BUFFER_BYTES / sizeof(*record) &&
           cupti.get_next_record(buffer, valid_bytes, &record) == CUPTI_OK) {
        count++;
    }
    lac_spool_count_dropped(count > 1 ? count - 1 : 0, false);
}

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size_bytes,
                         size_t valid_bytes)
{
    struct buffer *const returned = take_back(buffer);

    (void)size_bytes;
    if (returned == NULL) {
        LAC_DEBUG(CUPTI, 1, "a buffer of %zu bytes is not ours, or came back twice", valid_bytes);
        return;
    }
    (void)__atomic_add_fetch(&completed_count, valid_bytes > 0, __ATOMIC_RELAXED);
    if (valid_bytes == 0 || valid_bytes > BUFFER_BYTES || returned == &buffers[SHARED]) {
        LAC_DEBUG(CUPTI, 2, "a buffer came back that is not read: %zu bytes", valid_bytes);
    } else if (returned < buffers + BUFFERS_MAX) {
        lac_cupti_dump(&cupti, cupti_version, buffer, valid_bytes);
        decode_all(buffer, valid_bytes);
    } else {
        count_unread(buffer, valid_bytes);
    }
    count_dropped(context, stream);
    (void)pthread_mutex_lock(&mutex);
    returned->state = IS_FREE;
    count_out(-1);
    (void)pthread_mutex_unlock(&mutex);
}

int lac_cupti_buffers_register(const struct cupti_functions *functions, uint32_t version)
{
    cupti = *functions;
    cupti_version = version;
    if (!may_refuse() && buffers[SHARED].memory == NULL) {
        buffers[SHARED].memory = map_buffer();
        if (buffers[SHARED].memory == NULL) {
            return CUPTI_RESULT_OUT_OF_MEMORY;
        }
    }
    return cupti.register_buffers(on_requested, on_completed);
}

void lac_cupti_buffers_forget(void)
{
    lac_mutex_renew(&mutex);
}
