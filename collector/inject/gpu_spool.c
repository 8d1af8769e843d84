#include "collector/base/debug.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Times may lie before the session, as of a library that was warm, and a little ahead: the GPU's
 * clock is placed on the host's by interpolation. */
static const uint64_t SLACK_BEFORE_NS = 60 * 1000000000ull;
static const uint64_t SLACK_NS = 1000000000u;

/* A name that is too long: its beginning, what tells it from others like it, and its end, which says
 * what a template was made for. */
enum {
    NAME_READ_MAX = 1 << 20,
    CUT_HEAD_BYTES = 2048,
    CUT_MARK_BYTES = 14, /* "...89abcdef..." */
    CUT_TAIL_BYTES = LAC_NAME_BYTES_MAX - CUT_HEAD_BYTES - CUT_MARK_BYTES,
};

struct lac_gpu_writer {
    pthread_mutex_t mutex;
    uint8_t *next;
    uint8_t *end;
    struct lac_segment_header *segment;
    uint32_t segment_index;
    uint32_t seq;
    uint32_t epoch;
    enum lac_gpu_clock clock;
    uint64_t first_ns; /* times before it cannot be */
    uint64_t now_ns;   /* CLOCK_MONOTONIC when it was taken; realtime_ns at the same time */
    uint64_t realtime_ns;
    bool kept_last; /* of the records with times, for those without that belong to them */
    struct lac_graphs graphs;
    struct lac_name_slot names[LAC_NAME_CACHE_SLOTS];
    char cut_name[LAC_NAME_BYTES_MAX + 1];
};

static struct lac_gpu_writer writer = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                       .clock = LAC_GPU_CLOCK_REALTIME};

static uint64_t untimed_count;

static uint64_t read_ns(clockid_t id)
{
    struct timespec time = {0};

    (void)clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct lac_gpu_writer *lac_gpu_writer_take(void)
{
    (void)pthread_mutex_lock(&writer.mutex);
    writer.now_ns = read_ns(CLOCK_MONOTONIC);
    writer.realtime_ns = read_ns(CLOCK_REALTIME);
    if (writer.first_ns == 0) { /* taken first before anything is enabled */
        writer.first_ns = writer.now_ns > SLACK_BEFORE_NS ? writer.now_ns - SLACK_BEFORE_NS : 1;
    }
    (void)lac_gpu_watch_pause();
    return &writer;
}

uint64_t lac_gpu_writer_untimed(void)
{
    return __atomic_load_n(&untimed_count, __ATOMIC_RELAXED);
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
    lac_mutex_renew(&writer.mutex);
    writer.segment = NULL;
    writer.next = NULL;
    writer.end = NULL;
    writer.seq = 0;
}

static const char *cut_name(struct lac_gpu_writer *taken, const char *name)
{
    const size_t length = strnlen(name, NAME_READ_MAX);
    char *const cut = taken->cut_name;

    memcpy(cut, name, CUT_HEAD_BYTES);
    (void)snprintf(cut + CUT_HEAD_BYTES, CUT_MARK_BYTES + 1, "...%08" PRIx32 "...",
                   lac_names_hash(name, length));
    memcpy(cut + CUT_HEAD_BYTES + CUT_MARK_BYTES, name + length - CUT_TAIL_BYTES, CUT_TAIL_BYTES);
    cut[LAC_NAME_BYTES_MAX] = '\0';
    if (lac_spool_header() != NULL) {
        (void)__atomic_fetch_add(&lac_spool_header()->cut_name_count, 1u, __ATOMIC_RELAXED);
    }
    return cut;
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
    length = (uint32_t)strnlen(name, LAC_NAME_BYTES_MAX + 1);
    if (length > LAC_NAME_BYTES_MAX) {
        name = cut_name(taken, name);
        length = LAC_NAME_BYTES_MAX;
    }
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

static bool has_times(uint8_t type)
{
    return type != LAC_GPU_EVENT && type != LAC_GPU_EXTERNAL;
}

static bool is_within(const struct lac_gpu_record *head, uint64_t first_ns, uint64_t last_ns)
{
    return head->start_ns >= first_ns && head->end_ns >= head->start_ns && head->end_ns <= last_ns;
}

/* Times of the record in the clock of the spool: records made before CUPTI took our clock carry
 * its own. False when they can be of neither. */
static bool place_in_time(const struct lac_gpu_writer *taken, struct lac_gpu_record *head)
{
    const uint64_t now_ns = taken->now_ns + SLACK_NS;
    const uint64_t apart_ns = taken->realtime_ns - taken->now_ns;
    const bool is_monotonic = taken->clock == LAC_GPU_CLOCK_MONOTONIC;

    if (head->start_ns == 0 || head->end_ns == 0) {
        return false;
    }
    if (is_within(head, taken->first_ns, now_ns)) {
        head->start_ns += is_monotonic ? 0 : apart_ns;
        head->end_ns += is_monotonic ? 0 : apart_ns;
        return true;
    }
    if (is_within(head, taken->first_ns + apart_ns, now_ns + apart_ns)) {
        head->start_ns -= is_monotonic ? apart_ns : 0;
        head->end_ns -= is_monotonic ? apart_ns : 0;
        return true;
    }
    return false;
}

static bool is_wanted(struct lac_gpu_writer *taken, const struct lac_gpu_record *head)
{
    const uint64_t apart_ns = taken->realtime_ns - taken->now_ns;

    if (has_times(head->type)) {
        taken->kept_last = lac_gpu_was_recording(
            head->start_ns - (taken->clock == LAC_GPU_CLOCK_REALTIME ? apart_ns : 0));
    }
    return taken->kept_last;
}

void lac_gpu_writer_put(struct lac_gpu_writer *taken, const struct lac_gpu_record *from)
{
    const size_t size_bytes = (size_t)from->units * 16;
    struct lac_gpu_record head = *from;
    struct lac_gpu_record *record;

    if (has_times(head.type) && !place_in_time(taken, &head)) {
        (void)__atomic_add_fetch(&untimed_count, 1, __ATOMIC_RELAXED);
        lac_spool_count_dropped(1, false);
        return;
    }
    if (!is_wanted(taken, &head)) {
        return;
    }
    if ((size_t)(taken->end - taken->next) < size_bytes && !open_segment(taken)) {
        lac_spool_count_dropped(1, true);
        return;
    }
    record = (struct lac_gpu_record *)(void *)taken->next;
    taken->segment->external_count += head.type == LAC_GPU_EXTERNAL;
    /* all but the type, which makes it valid: a killed process leaves whole records only */
    memcpy(record, &head, offsetof(struct lac_gpu_record, type));
    memcpy(record + 1, from + 1, size_bytes - sizeof(head));
    __atomic_store_n(&record->type, head.type, __ATOMIC_RELEASE);
    taken->next += size_bytes;
}

void lac_gpu_tell_state(enum lac_gpu_state state)
{
    struct lac_spool_header *const header = lac_spool_header();

    if (header != NULL) {
        __atomic_store_n(&header->gpu_state, (uint32_t)state, __ATOMIC_RELEASE);
    }
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
