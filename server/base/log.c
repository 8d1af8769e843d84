#include "server/base/log.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RING_BYTES = 1 << 20, LINE_BYTES_MAX = 2048 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static _Atomic int current_level = LAC_LOG_INFO;
static _Atomic uint64_t dropped_count;

/* The ring: [head, tail) is written but not yet on stderr. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    bool running;
    bool stopping;
    size_t head;
    size_t tail; /* both only grow; modulo RING_BYTES is the place */
    uint64_t dropped_told;
    char bytes[RING_BYTES];
} ring = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

bool lac_log_level_parse(const char *text, enum lac_log_level *ret_level)
{
    for (unsigned i = 0; i < LAC_COUNT_OF(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum lac_log_level)i;
            return true;
        }
    }
    return false;
}

void lac_log_set_level(enum lac_log_level level)
{
    atomic_store(&current_level, (int)level);
}

bool lac_log_is_on(enum lac_log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

uint64_t lac_log_dropped(void)
{
    return atomic_load(&dropped_count);
}

/* -- formatting ------------------------------------------------------------------------------ */

struct line {
    char text[LINE_BYTES_MAX];
    size_t length; /* one byte is always left for the line feed */
};

static void put(struct line *line, const char *text, size_t length)
{
    const size_t room = sizeof(line->text) - 1 - line->length;
    const size_t taken = length < room ? length : room;

    memcpy(line->text + line->length, text, taken);
    line->length += taken;
}

static bool is_bare(const char *text)
{
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text == '"' || *text == '=' || *text == '\\' || *text == 0x7f) {
            return false; /* signed char: bytes above 127 are negative and so quoted */
        }
    }
    return true;
}

static void put_text(struct line *line, const char *text)
{
    if (is_bare(text)) {
        put(line, text, strlen(text));
        return;
    }
    put(line, "\"", 1);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        char escape[5];

        if (c == '"' || c == '\\') {
            put(line, "\\", 1);
            put(line, text, 1);
        } else if (c < 0x20 || c == 0x7f) {
            (void)snprintf(escape, sizeof(escape), "\\x%02x", c);
            put(line, escape, 4);
        } else {
            put(line, text, 1);
        }
    }
    put(line, "\"", 1);
}

static void put_time(struct line *line)
{
    char text[48];
    struct timespec now;
    struct tm parts;
    size_t length;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    length = strftime(text, sizeof(text), "ts=%Y-%m-%dT%H:%M:%S", &parts);
    put(line, text, length);
    (void)snprintf(text, sizeof(text), ".%03ldZ", now.tv_nsec / 1000000);
    put(line, text, 5);
}

static void put_field(struct line *line, const struct lac_log_field *field)
{
    char number[40];
    int length;

    put(line, " ", 1);
    put(line, field->key, strlen(field->key));
    put(line, "=", 1);
    switch (field->type) {
    case LAC_FIELD_TEXT:
        put_text(line, field->text != NULL ? field->text : "");
        break;
    case LAC_FIELD_INT:
        length = snprintf(number, sizeof(number), "%lld", (long long)field->number);
        put(line, number, (size_t)length);
        break;
    case LAC_FIELD_REAL:
        length = snprintf(number, sizeof(number), "%.3f", field->real);
        put(line, number, (size_t)length < sizeof(number) ? (size_t)length : sizeof(number) - 1);
        break;
    default:
        assert(false);
    }
}

/* -- writing --------------------------------------------------------------------------------- */

static void write_all(const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(STDERR_FILENO, bytes, size);

        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};

            (void)poll(&wait, 1, 1000);
        } else if (errno != EINTR) {
            return; /* nobody to tell */
        }
    }
}

static void *writer(void *context)
{
    (void)context;
    pthread_mutex_lock(&ring.mutex);
    while (true) {
        if (ring.head == ring.tail) {
            if (ring.stopping) {
                break;
            }
            pthread_cond_wait(&ring.wake, &ring.mutex);
            continue;
        }
        const size_t at = ring.head % RING_BYTES;
        const size_t waiting = ring.tail - ring.head;
        const size_t size = waiting < RING_BYTES - at ? waiting : RING_BYTES - at;

        pthread_mutex_unlock(&ring.mutex);
        write_all(ring.bytes + at, size); /* [head, tail) is not touched by those who append */
        pthread_mutex_lock(&ring.mutex);
        ring.head += size;
    }
    ring.running = false;
    pthread_cond_broadcast(&ring.wake);
    pthread_mutex_unlock(&ring.mutex);
    return NULL;
}

/* Called with the mutex held. */
static bool append(const char *bytes, size_t size)
{
    const size_t at = ring.tail % RING_BYTES;
    const size_t first = size < RING_BYTES - at ? size : RING_BYTES - at;

    if (RING_BYTES - (ring.tail - ring.head) < size) {
        return false;
    }
    memcpy(ring.bytes + at, bytes, first);
    memcpy(ring.bytes, bytes + first, size - first);
    ring.tail += size;
    return true;
}

static void emit(const struct line *line)
{
    char note[96];
    bool was_running;

    pthread_mutex_lock(&ring.mutex);
    was_running = ring.running && !ring.stopping;
    if (was_running) {
        const uint64_t dropped = atomic_load(&dropped_count);

        if (dropped > ring.dropped_told) {
            const int length =
                snprintf(note, sizeof(note), "level=warn msg=\"log lines dropped\" count=%llu\n",
                         (unsigned long long)(dropped - ring.dropped_told));
            if (append(note, (size_t)length)) {
                ring.dropped_told = dropped;
            }
        }
        if (!append(line->text, line->length)) {
            atomic_fetch_add(&dropped_count, 1);
        }
        pthread_cond_signal(&ring.wake);
    }
    pthread_mutex_unlock(&ring.mutex);
    if (!was_running) {
        write_all(line->text, line->length);
    }
}

void lac_log_write(enum lac_log_level level, const char *message,
                   const struct lac_log_field *fields)
{
    struct line line = {.length = 0};

    put_time(&line);
    put(&line, " level=", 7);
    put(&line, level_names[level], strlen(level_names[level]));
    put(&line, " msg=", 5);
    put_text(&line, message);
    for (; fields->key != NULL; fields++) {
        put_field(&line, fields);
    }
    line.text[line.length++] = '\n';
    emit(&line);
}

enum lac_status lac_log_start(void)
{
    enum lac_status status = LAC_OK;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&ring.mutex);
    if (!ring.running) {
        ring.stopping = false;
        ring.running = pthread_create(&ring.thread, NULL, writer, NULL) == 0;
        status = ring.running ? LAC_OK : LAC_ERR_IO;
    }
    pthread_mutex_unlock(&ring.mutex);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

void lac_log_stop(void)
{
    struct timespec deadline;
    bool finished;

    pthread_mutex_lock(&ring.mutex);
    if (!ring.running) {
        pthread_mutex_unlock(&ring.mutex);
        return;
    }
    ring.stopping = true;
    pthread_cond_broadcast(&ring.wake);
    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 1;
    while (ring.running && pthread_cond_timedwait(&ring.wake, &ring.mutex, &deadline) == 0) {
    }
    finished = !ring.running;
    pthread_mutex_unlock(&ring.mutex);
    if (finished) {
        pthread_join(ring.thread, NULL);
    } else {
        pthread_detach(ring.thread); /* stuck in write(): the process is about to end */
    }
}
