#include "collector/base/debug.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

struct lac_gpu_writer {
    pthread_mutex_t mutex;
    uint8_t *next;
    uint8_t *end;
    struct lac_segment_header *segment;
    uint32_t segment_index;
    uint32_t seq;
    uint32_t epoch;
    enum lac_gpu_clock clock;
    bool kept_last; /* of the records with times, for those without that belong to them */
    struct lac_graphs graphs;
    struct lac_name_slot names[LAC_NAME_CACHE_SLOTS];
};

static struct lac_gpu_writer writer = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                       .clock = LAC_GPU_CLOCK_REALTIME};

struct lac_gpu_writer *lac_gpu_writer_take(void)
{
    (void)pthread_mutex_lock(&writer.mutex);
    return &writer;
}

void lac_gpu_writer_give(struct lac_gpu_writer *taken)
{
    (void)pthread_mutex_unlock(&taken->mutex);
}

struct lac_graphs *lac_gpu_graphs(struct lac_gpu_writer *taken)
{
    return &taken->graphs;
}

void lac_gpu_writer_clock(enum lac_gpu_clock clock)
{
    (void)pthread_mutex_lock(&writer.mutex);
    if (writer.clock != clock) {
        writer.end = writer.next; /* a segment has one clock: the next record opens another */
    }
    writer.clock = clock;
    (void)pthread_mutex_unlock(&writer.mutex);
}

void lac_gpu_writer_forget(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    writer.mutex = fresh;
    writer.segment = NULL;
    writer.next = NULL;
    writer.end = NULL;
    writer.seq = 0;
}

uint32_t lac_gpu_writer_name(struct lac_gpu_writer *taken, const char *name)
{
    struct lac_name_slot *slot;
    const char *kept;
    uint32_t length;
    uint32_t hash;
    uint32_t id;

    if (name == NULL || name[0] == '\0') {
        return 0;
    }
    length = (uint32_t)strnlen(name, LAC_NAME_BYTES_MAX);
    hash = lac_names_hash(name, length);
    slot = &taken->names[hash & (LAC_NAME_CACHE_SLOTS - 1)];
    if (slot->hash == hash && slot->length == length && slot->epoch == *lac_epoch_page &&
        memcmp(slot->text, name, length) == 0) {
        return slot->id;
    }
    id = lac_names_define(name, length, hash, &kept);
    if (id != 0) {
        *slot = (struct lac_name_slot){
            .text = kept, .length = length, .hash = hash, .id = id, .epoch = *lac_epoch_page};
    }
    return id;
}

static bool open_segment(struct lac_gpu_writer *taken)
{
    if (taken->segment != NULL) {
        lac_spool_release(taken->segment, taken->segment_index);
    }
    taken->segment = lac_spool_segment(LAC_SEGMENT_GPU, 0, taken->seq, &taken->segment_index);
    if (taken->segment == NULL) {
        taken->next = NULL;
        taken->end = NULL;
        return false;
    }
    taken->seq++;
    taken->segment->gpu_clock = (uint32_t)taken->clock;
    taken->segment->external_count = 0;
    taken->next = (uint8_t *)taken->segment + LAC_SEGMENT_HEADER_BYTES;
    taken->end = (uint8_t *)taken->segment + lac_settings.segment_bytes;
    return true;
}

/* ---- pauses: CUPTI returns its records late, so those from before a pause are still wanted */

static uint64_t paused_monotonic_ns; /* when that was seen; 0: recording goes on */

static uint64_t read_ns(clockid_t id)
{
    struct timespec time = {0};

    (void)clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void lac_gpu_watch_pause(void)
{
    const struct lac_spool_header *const header = lac_spool_header();
    const bool pauses = header != NULL && header->stop != LAC_SPOOL_RECORD;
    const uint64_t since_ns = __atomic_load_n(&paused_monotonic_ns, __ATOMIC_RELAXED);

    if (pauses != (since_ns != 0)) {
        __atomic_store_n(&paused_monotonic_ns, pauses ? read_ns(CLOCK_MONOTONIC) : 0,
                         __ATOMIC_RELAXED);
    }
}

static bool is_wanted(struct lac_gpu_writer *taken, const struct lac_gpu_record *head)
{
    uint64_t since_ns;

    lac_gpu_watch_pause();
    since_ns = __atomic_load_n(&paused_monotonic_ns, __ATOMIC_RELAXED);
    if (since_ns == 0) {
        taken->kept_last = true;
    } else if (head->start_ns != 0) {
        if (taken->clock == LAC_GPU_CLOCK_REALTIME) {
            since_ns += read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC);
        }
        taken->kept_last = head->start_ns < since_ns;
    }
    return taken->kept_last;
}

void lac_gpu_writer_put(struct lac_gpu_writer *taken, const struct lac_gpu_record *head)
{
    const size_t size_bytes = (size_t)head->units * 16;
    struct lac_gpu_record *record;
    const uint8_t type = head->type;

    if (!is_wanted(taken, head)) {
        return;
    }
    if ((size_t)(taken->end - taken->next) < size_bytes && !open_segment(taken)) {
        lac_spool_count_dropped(1, true);
        return;
    }
    record = (struct lac_gpu_record *)(void *)taken->next;
    taken->segment->external_count += type == LAC_GPU_EXTERNAL;
    /* all but the type, which makes it valid: a killed process leaves whole records only */
    memcpy(record, head, offsetof(struct lac_gpu_record, type));
    memcpy(record + 1, head + 1, size_bytes - sizeof(*head));
    __atomic_store_n(&record->type, type, __ATOMIC_RELEASE);
    taken->next += size_bytes;
}

void lac_setting(const char *key, const char *value)
{
    struct lac_thread *const self = lac_recorder_enter();
    char text[512];
    size_t length = strnlen(key, 64);

    LAC_DEBUG(CUPTI, 1, "%s=%s", key, value);
    if (self == NULL) {
        return;
    }
    memcpy(text, key, length);
    text[length++] = '=';
    memcpy(text + length, value, strnlen(value, 400));
    length += strnlen(value, 400);
    if (lac_recorder_room_always(self, 1)) {
        lac_recorder_put(self, 0, lac_recorder_name(self, text, length), 0, 0, LAC_EVENT_SETTING);
    }
    lac_recorder_leave(self);
}
