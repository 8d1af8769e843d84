#include "collector/launch/drain.h"

#include "collector/launch/drain_private.h"
#include "collector/launch/file_at.h"
#include "collector/launch/status_line.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NO_INDEX = -1, LOST_INDEX = -2 };

/* Where a segment of the spool goes in the output, and how much of it has gone there. */
struct place {
    int64_t output_index; /* NO_INDEX: nowhere yet; LOST_INDEX: it did not fit */
    uint64_t opened;  /* ticks when the segment that was moved there was: a reused one differs */
    bool moved;       /* whole; only a new life of the segment changes that */
    bool handed_back; /* for reuse; else the ring was full */
};

struct source {
    char name[128];
    int fd;
    int output_fd;
    struct lac_spool_header *header; /* the process's own page, shared */
    struct place *places;
    size_t place_count;
    uint64_t output_segments;
    struct source *next;
};

/* So old may the output be, should we not live to the end. */
static const uint64_t REFRESH_NS = 5000000000;

enum { SEGMENT_BYTES_MAX = 16 << 20, RESERVE_SHARE = 16, RESERVE_BYTES_MAX = 64 << 20 };

struct lac_drain *lac_drain_create(const char *spool_folder, const char *output_folder)
{
    struct lac_drain *const drain = calloc(1, sizeof(*drain));

    if (drain == NULL) {
        return NULL;
    }
    drain->spool_folder = spool_folder;
    drain->output_folder = output_folder;
    drain->buffer = malloc(SEGMENT_BYTES_MAX);
    if (drain->buffer == NULL) {
        free(drain);
        return NULL;
    }
    return drain;
}

static void source_destroy(struct source *source)
{
    if (source->header != NULL) {
        (void)munmap(source->header, LAC_SPOOL_HEADER_BYTES);
    }
    if (source->fd >= 0) {
        (void)close(source->fd);
    }
    if (source->output_fd >= 0) {
        (void)close(source->output_fd);
    }
    free(source->places);
    free(source);
}

void lac_drain_destroy(struct lac_drain *drain)
{
    if (drain == NULL) {
        return;
    }
    while (drain->sources != NULL) {
        struct source *const next = drain->sources->next;

        source_destroy(drain->sources);
        drain->sources = next;
    }
    free(drain->buffer);
    free(drain);
}

/* NULL: not a spool (yet). */
static struct source *open_source(const struct lac_drain *drain, const char *name)
{
    char path[4096];
    struct source *const source = calloc(1, sizeof(*source));
    void *memory;

    if (source == NULL) {
        return NULL;
    }
    source->output_fd = -1;
    (void)snprintf(source->name, sizeof(source->name), "%s", name);
    (void)snprintf(path, sizeof(path), "%s/%s", drain->spool_folder, name);
    source->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (source->fd < 0 || lseek(source->fd, 0, SEEK_END) < (off_t)LAC_SPOOL_HEADER_BYTES) {
        source_destroy(source);
        return NULL;
    }
    memory = mmap(NULL, LAC_SPOOL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, source->fd, 0);
    if (memory == MAP_FAILED) {
        source_destroy(source);
        return NULL;
    }
    source->header = memory;
    if (memcmp(source->header->magic, LAC_SPOOL_MAGIC, sizeof(source->header->magic)) != 0 ||
        source->header->version != LAC_SPOOL_VERSION || source->header->segment_bytes == 0 ||
        source->header->segment_bytes % 65536 != 0 ||
        source->header->segment_bytes > SEGMENT_BYTES_MAX) {
        source_destroy(source);
        return NULL;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", drain->output_folder, name);
    source->output_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (source->output_fd < 0) {
        source_destroy(source);
        return NULL;
    }
    return source;
}

static void look_for_new(struct lac_drain *drain)
{
    DIR *const folder = opendir(drain->spool_folder);

    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const size_t length = strlen(entry->d_name);
        struct source *source = drain->sources;

        if (length < 7 || length >= sizeof(source->name) ||
            strcmp(entry->d_name + length - 6, ".spool") != 0) {
            continue;
        }
        while (source != NULL && strcmp(source->name, entry->d_name) != 0) {
            source = source->next;
        }
        if (source == NULL) {
            source = open_source(drain, entry->d_name);
            if (source != NULL) {
                source->next = drain->sources;
                drain->sources = source;
                drain->counts.processes++;
                drain->counts.bytes += LAC_SPOOL_HEADER_BYTES;
                if (!drain->only_looks) {
                    __atomic_store_n(&source->header->stop, (uint32_t)drain->wish,
                                     __ATOMIC_RELEASE);
                }
            }
        }
    }
    (void)closedir(folder);
}

static struct place *place_of(struct source *source, uint64_t index)
{
    if (index >= source->place_count) {
        const size_t bigger = (size_t)(index + 1) * 2;
        struct place *const grown = realloc(source->places, bigger * sizeof(*grown));

        if (grown == NULL) {
            return NULL;
        }
        for (size_t i = source->place_count; i < bigger; i++) {
            grown[i] = (struct place){.output_index = NO_INDEX};
        }
        source->places = grown;
        source->place_count = bigger;
    }
    return &source->places[index];
}

static uint64_t offset_of(const struct source *source, uint64_t index)
{
    return LAC_SPOOL_SEGMENTS_OFFSET + index * source->header->segment_bytes;
}

/* By how much one more segment makes the output longer. */
static uint64_t growth_of(const struct source *source)
{
    return source->header->segment_bytes +
           (source->output_segments == 0 ? LAC_SPOOL_SEGMENTS_OFFSET - LAC_SPOOL_HEADER_BYTES : 0);
}

/* Copies the segment to its place in the output: the same place as before if it is still the same
 * life. */
static bool copy_segment(struct lac_drain *drain, struct source *source, uint64_t index,
                         struct place *place, const struct lac_segment_header *head)
{
    const uint32_t size_bytes = source->header->segment_bytes;
    const bool same_life = place->output_index != NO_INDEX && place->opened == head->sync.ticks;
    const uint64_t to = same_life ? (uint64_t)place->output_index : source->output_segments;

    if (!lac_file_read_at(source->fd, drain->buffer, size_bytes, offset_of(source, index)) ||
        !lac_file_write_at(source->output_fd, drain->buffer, size_bytes, offset_of(source, to))) {
        drain->counts.failed_writes++;
        return false;
    }
    if (!same_life) {
        drain->counts.bytes += growth_of(source);
        source->output_segments++;
        drain->counts.segments++;
    }
    place->output_index = (int64_t)to;
    place->opened = head->sync.ticks;
    return true;
}

/* The ring has one writer (us) and readers in the process. */
static bool hand_back(struct source *source, uint64_t index)
{
    const uint64_t tail = source->header->free_tail;

    if (tail - __atomic_load_n(&source->header->free_head, __ATOMIC_ACQUIRE) >=
        LAC_SPOOL_FREE_RING) {
        return false;
    }
    source->header->free_ring[tail % LAC_SPOOL_FREE_RING] = (uint32_t)index;
    __atomic_store_n(&source->header->free_tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}

/* Whether the limit leaves room for one more segment: names may use what events may not. */
static bool fits(const struct lac_drain *drain, const struct source *source,
                 enum lac_segment_kind kind)
{
    const uint64_t share = drain->limit_bytes / RESERVE_SHARE;
    const uint64_t reserve = share < RESERVE_BYTES_MAX ? share : RESERVE_BYTES_MAX;
    const uint64_t most = drain->limit_bytes - (kind == LAC_SEGMENT_STRINGS ? 0 : reserve);

    return drain->limit_bytes == 0 ||
           drain->counts.bytes + drain->others_bytes + growth_of(source) <= most;
}

/* A segment that will never be moved: what is in it is lost, and counted. */
static void count_lost(struct lac_drain *drain, const struct source *source, uint64_t index,
                       enum lac_segment_kind kind)
{
    const uint32_t size_bytes = source->header->segment_bytes;
    uint32_t at = LAC_SEGMENT_HEADER_BYTES;

    if (!lac_file_read_at(source->fd, drain->buffer, size_bytes, offset_of(source, index))) {
        return;
    }
    while (kind == LAC_SEGMENT_EVENTS && at + sizeof(struct lac_event) <= size_bytes &&
           drain->buffer[at + offsetof(struct lac_event, type)] != 0) {
        drain->lost_events++;
        at += (uint32_t)sizeof(struct lac_event);
    }
    while (kind == LAC_SEGMENT_GPU && at + sizeof(struct lac_gpu_record) <= size_bytes &&
           drain->buffer[at + offsetof(struct lac_gpu_record, type)] != 0 &&
           drain->buffer[at + offsetof(struct lac_gpu_record, units)] != 0) {
        drain->lost_events++;
        at += drain->buffer[at + offsetof(struct lac_gpu_record, units)] * 16u;
    }
}

static void drain_segment(struct lac_drain *drain, struct source *source, uint64_t index,
                          enum lac_segment_kind kind, bool final)
{
    struct lac_segment_header head;
    struct place *const place = place_of(source, index);
    bool same_life;

    if (place == NULL ||
        !lac_file_read_at(source->fd, &head, sizeof(head), offset_of(source, index)) ||
        head.magic != LAC_SEGMENT_MAGIC || head.kind != (uint16_t)kind) {
        return;
    }
    same_life = place->output_index != NO_INDEX && place->opened == head.sync.ticks;
    if (!(same_life && place->moved)) {
        /* half-filled names are copied again and again, half-filled events now and then */
        if (kind != LAC_SEGMENT_STRINGS && head.state != LAC_SEGMENT_FULL && !final &&
            !drain->refreshes) {
            return;
        }
        if (!same_life && !fits(drain, source, kind)) {
            drain->counts.is_full = true;
            if (final) {
                count_lost(drain, source, index, kind);
                place->output_index = LOST_INDEX;
                place->opened = head.sync.ticks;
                place->moved = true;
            }
            return;
        }
        if (!copy_segment(drain, source, index, place, &head)) {
            return;
        }
        place->moved = head.state == LAC_SEGMENT_FULL || final;
        place->handed_back = false;
    }
    /* names stay where they are: there are few, and a process that goes on alone needs its own copy
     */
    if (kind != LAC_SEGMENT_STRINGS && !final && place->moved && !place->handed_back) {
        place->handed_back = hand_back(source, index);
    }
}

static void drain_source(struct lac_drain *drain, struct source *source, bool final)
{
    const uint64_t count = __atomic_load_n(&source->header->segment_count, __ATOMIC_ACQUIRE);

    /* names before the events that use them, so that the output never refers to what it lacks */
    for (uint64_t i = 0; i < count; i++) {
        drain_segment(drain, source, i, LAC_SEGMENT_STRINGS, final);
    }
    for (uint64_t i = 0; i < count; i++) {
        drain_segment(drain, source, i, LAC_SEGMENT_EVENTS, final);
        drain_segment(drain, source, i, LAC_SEGMENT_GPU, final);
    }
    memcpy(drain->buffer, source->header, LAC_SPOOL_HEADER_BYTES);
    ((struct lac_spool_header *)(void *)drain->buffer)->segment_count = source->output_segments;
    (void)lac_file_write_at(source->output_fd, drain->buffer, LAC_SPOOL_HEADER_BYTES, 0);
}

void lac_drain_round(struct lac_drain *drain, bool final)
{
    const uint64_t now_ns = lac_status_now_ns();
    uint64_t dropped = 0;
    uint64_t steps = 0;

    drain->refreshes = now_ns >= drain->next_refresh_ns;
    if (drain->refreshes) {
        drain->next_refresh_ns = now_ns + REFRESH_NS;
    }
    look_for_new(drain);
    for (struct source *source = drain->sources; source != NULL; source = source->next) {
        drain_source(drain, source, final);
        dropped += source->header->dropped_count;
        steps = source->header->step_count > steps ? source->header->step_count : steps;
    }
    drain->counts.dropped = dropped + drain->lost_events;
    drain->counts.steps = steps;
}

uint64_t lac_drain_steps(struct lac_drain *drain)
{
    for (const struct source *source = drain->sources; source != NULL; source = source->next) {
        const uint64_t steps = __atomic_load_n(&source->header->step_count, __ATOMIC_RELAXED);

        drain->counts.steps = steps > drain->counts.steps ? steps : drain->counts.steps;
    }
    return drain->counts.steps;
}

void lac_drain_limit(struct lac_drain *drain, uint64_t limit_bytes)
{
    drain->limit_bytes = limit_bytes;
}

void lac_drain_others(struct lac_drain *drain, uint64_t bytes)
{
    drain->others_bytes = bytes;
}

void lac_drain_gather(struct lac_drain *drain)
{
    drain->only_looks = true;
    lac_drain_round(drain, true);
}

void lac_drain_want(struct lac_drain *drain, enum lac_spool_stop wish)
{
    if (drain->wish == wish) {
        return;
    }
    drain->wish = wish;
    for (struct source *source = drain->sources; source != NULL; source = source->next) {
        __atomic_store_n(&source->header->stop, (uint32_t)wish, __ATOMIC_RELEASE);
    }
}

struct lac_drain_counts lac_drain_counts(const struct lac_drain *drain)
{
    return drain->counts;
}
