/* The segments of one spool: what is new of them into the output, and back to the process. */

#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "collector/base/monotonic.h"
#include "collector/gather/drain_private.h"
#include "collector/gather/shared_spool.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { NO_INDEX = -1, LOST_INDEX = -2 };

enum { RESERVE_SHARE = 16, RESERVE_BYTES_MAX = 64 << 20, PAGE_BYTES = 4096 };

/* So many segments in a row that nobody began: a process makes them one after the other, so what
 * the header counts behind them is not there. */
enum { GAP_MAX = 1024 };

static struct lac_drain_place *place_of(struct lac_drain_source *source, uint64_t index)
{
    if (index >= source->place_count) {
        const size_t bigger = (size_t)(index + 1) * 2;
        struct lac_drain_place *const grown = realloc(source->places, bigger * sizeof(*grown));

        if (grown == NULL) {
            return NULL;
        }
        for (size_t i = source->place_count; i < bigger; i++) {
            grown[i] = (struct lac_drain_place){.output_index = NO_INDEX};
        }
        source->places = grown;
        source->place_count = bigger;
    }
    return &source->places[index];
}

static uint64_t offset_of(const struct lac_drain_source *source, uint64_t index)
{
    return LAC_SPOOL_SEGMENTS_OFFSET + index * source->segment_bytes;
}

/* By how much one more segment makes the output longer. */
static uint64_t growth_of(const struct lac_drain_source *source)
{
    return source->segment_bytes +
           (source->output_segments == 0 ? LAC_SPOOL_SEGMENTS_OFFSET - LAC_SPOOL_HEADER_BYTES : 0);
}

bool lac_drain_fits(const struct lac_drain *drain, const struct lac_drain_source *source,
                    enum lac_segment_kind kind)
{
    const uint64_t share = drain->limit_bytes / RESERVE_SHARE;
    const uint64_t reserve = share < RESERVE_BYTES_MAX ? share : RESERVE_BYTES_MAX;
    const uint64_t most = drain->limit_bytes - (kind == LAC_SEGMENT_STRINGS ? 0 : reserve);

    return drain->limit_bytes == 0 ||
           drain->counts.bytes + drain->others_bytes + growth_of(source) <= most;
}

/* ---- one segment */

static bool is_same_life(const struct lac_drain_place *place, const struct lac_segment_header *head)
{
    return place->output_index != NO_INDEX && place->opened == head->sync.ticks;
}

static bool read_head(const struct lac_drain_source *source, uint64_t index,
                      struct lac_segment_header *ret)
{
    return lac_shared_read(&source->spool, ret, sizeof(*ret), offset_of(source, index)) &&
           ret->magic == LAC_SEGMENT_MAGIC;
}

/* The segment into the buffer, and whether it is still what its head said. */
static bool read_segment(struct lac_drain *drain, const struct lac_drain_source *source,
                         uint64_t index, const struct lac_segment_header *head)
{
    struct lac_segment_header now;

    if (!lac_shared_read(&source->spool, drain->buffer, source->segment_bytes,
                         offset_of(source, index))) {
        return false;
    }
    memcpy(&now, drain->buffer, sizeof(now));
    return now.magic == head->magic && now.kind == head->kind && now.sync.ticks == head->sync.ticks;
}

/* Zeros at the end stay a hole in the output: a process that wrote little costs little disk. */
static bool write_segment(const struct lac_drain *drain, const struct lac_drain_source *source,
                          uint64_t index)
{
    static const uint8_t zeros[PAGE_BYTES];
    const uint64_t end = offset_of(source, index + 1);
    size_t used = source->segment_bytes; /* a multiple of pages */

    while (used > 0 && memcmp(drain->buffer + used - PAGE_BYTES, zeros, PAGE_BYTES) == 0) {
        used -= PAGE_BYTES;
    }
    return lac_file_write_at(source->output_fd, drain->buffer, used, offset_of(source, index)) &&
           (used == source->segment_bytes || index + 1 < source->output_segments ||
            ftruncate(source->output_fd, (off_t)end) == 0);
}

/* Copies the segment to its place in the output: the same place as before if it is still the same
 * life. */
static bool copy_segment(struct lac_drain *drain, struct lac_drain_source *source, uint64_t index,
                         struct lac_drain_place *place, const struct lac_segment_header *head)
{
    const bool same_life = is_same_life(place, head);
    uint64_t to = same_life ? (uint64_t)place->output_index : source->output_segments;
    const bool was_kept = !same_life && lac_drain_find_kept(source, head, &to);

    if (!read_segment(drain, source, index, head)) {
        return false; /* it is cut off, or changed under our eyes: look again in the next round */
    }
    if (!(was_kept && !lac_drain_is_newer(drain, source, to)) &&
        !write_segment(drain, source, to)) {
        LAC_DEBUG(GATHER, 1, "%s: segment %lu cannot be written: error %d", source->output_name,
                  (unsigned long)index, errno);
        drain->counts.failed_writes++;
        source->is_complete = false;
        return false;
    }
    if (!same_life && !was_kept) {
        drain->counts.bytes += growth_of(source);
        source->output_segments++;
        drain->counts.segments++;
    }
    LAC_DEBUG(GATHER, 2, "%s: segment %lu is drained, as number %lu", source->name,
              (unsigned long)index, (unsigned long)to);
    place->output_index = (int64_t)to;
    place->opened = head->sync.ticks;
    return true;
}

/* The ring has one writer (us) and readers in the process. */
static void hand_back(struct lac_drain_source *source, uint64_t index,
                      struct lac_drain_place *place, uint64_t free_head)
{
    if (source->ring_tail - free_head >= LAC_SPOOL_FREE_RING) {
        return;
    }
    LAC_DEBUG(GATHER, 3, "%s: segment %lu goes back", source->name, (unsigned long)index);
    lac_shared_give(&source->spool, source->ring_tail, (uint32_t)index);
    place->given_at = source->ring_tail++;
    place->handed_back = true;
}

/* A segment that will never be moved: what is in it is lost, and counted. */
static void count_lost(struct lac_drain *drain, const struct lac_drain_source *source,
                       uint64_t index, const struct lac_segment_header *head)
{
    const uint32_t size_bytes = source->segment_bytes;
    uint32_t at = LAC_SEGMENT_HEADER_BYTES;

    if (!read_segment(drain, source, index, head)) {
        return;
    }
    while (head->kind == LAC_SEGMENT_EVENTS && at + sizeof(struct lac_event) <= size_bytes &&
           drain->buffer[at + offsetof(struct lac_event, type)] != 0) {
        drain->lost_events++;
        at += (uint32_t)sizeof(struct lac_event);
    }
    while (head->kind == LAC_SEGMENT_GPU && at + sizeof(struct lac_gpu_record) <= size_bytes &&
           drain->buffer[at + offsetof(struct lac_gpu_record, type)] != 0 &&
           drain->buffer[at + offsetof(struct lac_gpu_record, units)] != 0) {
        drain->lost_events++;
        at += drain->buffer[at + offsetof(struct lac_gpu_record, units)] * 16u;
    }
}

/* @return whether it was copied */
static bool move_segment(struct lac_drain *drain, struct lac_drain_source *source, uint64_t index,
                         bool final)
{
    struct lac_drain_place *const place = &source->places[index];
    struct lac_segment_header head;

    place->is_due = false;
    if (!read_head(source, index, &head)) {
        return false;
    }
    if (!is_same_life(place, &head) &&
        !lac_drain_fits(drain, source, (enum lac_segment_kind)head.kind)) {
        drain->counts.is_full = true;
        if (final) {
            count_lost(drain, source, index, &head);
            LAC_DEBUG(GATHER, 1,
                      "%s: segment %lu is lost, the size limit is reached; %lu events "
                      "in all",
                      source->name, (unsigned long)index, (unsigned long)drain->lost_events);
            place->output_index = LOST_INDEX;
            place->opened = head.sync.ticks;
            place->moved = true;
        }
        return false;
    }
    if (place->output_index == LOST_INDEX && place->opened == head.sync.ticks) {
        return false;
    }
    if (!copy_segment(drain, source, index, place, &head)) {
        return false;
    }
    place->moved = head.state == LAC_SEGMENT_FULL || final;
    place->handed_back = false;
    place->has_names = head.kind == LAC_SEGMENT_STRINGS;
    return true;
}

/* ---- all of them */

struct scan {
    uint64_t end; /* behind the last segment that was looked at */
    bool wants_names;
    bool wants_events;
};

/* What may hold something new. Full names stay as they are; what was handed back is empty until
 * the process takes it. */
static bool may_be_new(const struct lac_drain_place *place, uint64_t free_head)
{
    return !place->moved ||
           (!place->has_names && !(place->handed_back && place->given_at >= free_head));
}

static bool is_known(enum lac_segment_kind kind)
{
    return kind == LAC_SEGMENT_EVENTS || kind == LAC_SEGMENT_GPU || kind == LAC_SEGMENT_STRINGS;
}

/* One look at the head of each segment: which are due. */
static struct scan scan_segments(struct lac_drain_source *source,
                                 const struct lac_shared_look *look, bool final, bool refreshes)
{
    const uint64_t count = lac_spool_segments_in(
        look->segment_count, lac_shared_size(&source->spool), source->segment_bytes);
    struct scan scan = {0};
    unsigned gap = 0;

    for (uint64_t i = 0; i < count && gap < GAP_MAX; i++) {
        struct lac_drain_place *const place = place_of(source, i);
        struct lac_segment_header head;

        if (place == NULL) {
            source->is_complete = false;
            break;
        }
        scan.end = i + 1;
        place->is_due = false;
        if (!may_be_new(place, look->free_head)) {
            gap = 0;
            continue;
        }
        gap = read_head(source, i, &head) ? 0 : gap + 1;
        if (gap > 0 || !is_known((enum lac_segment_kind)head.kind)) {
            continue;
        }
        if (place->moved && is_same_life(place, &head)) { /* the ring was full */
            if (head.kind != LAC_SEGMENT_STRINGS && head.state == LAC_SEGMENT_FULL && !final &&
                !place->handed_back) {
                hand_back(source, i, place, look->free_head);
            }
            continue;
        }
        place->has_names = head.kind == LAC_SEGMENT_STRINGS;
        place->is_due = true;
        if (head.state == LAC_SEGMENT_FULL || final || refreshes) {
            scan.wants_names = true;
            scan.wants_events |= !place->has_names;
        } else if (!place->has_names) {
            place->is_due = false; /* events come when they are full, names when events do */
        }
    }
    return scan;
}

/* CLOCK_MONOTONIC, if it is that of the process: not on another host or in another boot, nor in
 * another time namespace, where the two clocks are apart in another way. 0 then. */
static uint64_t now_as_of(const struct lac_sync_point *first)
{
    static const int64_t SAME_NS = 10000000000; /* the time of day may have been set right */
    const uint64_t now_ns = lac_monotonic_ns();
    struct timespec wall = {0};
    int64_t moved_ns;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    moved_ns = (int64_t)((uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - now_ns -
                         (first->realtime_ns - first->monotonic_ns));
    return moved_ns > -SAME_NS && moved_ns < SAME_NS && now_ns >= first->monotonic_ns ? now_ns : 0;
}

/* What the process says of itself, with the sizes that we know. */
static bool put_header(const struct lac_drain_source *source, struct lac_spool_header *header,
                       bool final)
{
    header->ended_ns = final ? now_as_of(&header->first) : 0;
    memcpy(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic));
    header->version = LAC_SPOOL_VERSION;
    header->endian_mark = LAC_SPOOL_ENDIAN_MARK;
    header->header_bytes = LAC_SPOOL_HEADER_BYTES;
    header->segment_bytes = source->segment_bytes;
    header->segment_count = source->output_segments;
    if (header->text_bytes > LAC_SPOOL_TEXT_BYTES) {
        header->text_bytes = LAC_SPOOL_TEXT_BYTES;
    }
    return lac_file_write_at(source->output_fd, header, sizeof(*header), 0);
}

bool lac_drain_begin(const struct lac_drain_source *source, const struct lac_spool_header *header)
{
    struct lac_spool_header copy = *header;

    return put_header(source, &copy, false);
}

static void write_header(struct lac_drain *drain, struct lac_drain_source *source, bool final)
{
    const uint64_t unknown_ns = 0;
    const size_t ended_offset = offsetof(struct lac_spool_header, ended_ns);
    struct lac_spool_header *const header = (void *)drain->buffer;
    const bool is_there = lac_shared_read(&source->spool, header, sizeof(*header), 0);
    const size_t count_offset = offsetof(struct lac_spool_header, segment_count);

    /* of one that was cut off, what it said before stays */
    if (is_there ? !put_header(source, header, final)
                 : !lac_file_write_at(source->output_fd, &source->output_segments,
                                      sizeof(source->output_segments), count_offset) ||
                       !lac_file_write_at(source->output_fd, &unknown_ns, sizeof(unknown_ns),
                                          ended_offset)) {
        drain->counts.failed_writes++;
        source->is_complete = false;
    }
}

/* Whether a scan would find what the last one did: a thread that has filled a segment takes another
 * one, or loses events. What a thread leaves that ends is found by the next refresh. */
static bool is_unchanged(struct lac_drain_source *source, const struct lac_shared_look *look)
{
    const bool is_same = source->seen_segments == look->segment_count &&
                         source->seen_free_head == look->free_head &&
                         source->seen_dropped == look->dropped_count;

    source->seen_segments = look->segment_count;
    source->seen_free_head = look->free_head;
    source->seen_dropped = look->dropped_count;
    return is_same;
}

bool lac_drain_move(struct lac_drain *drain, struct lac_drain_source *source, bool final,
                    bool refreshes)
{
    const struct lac_shared_look look = lac_shared_look(&source->spool);
    const uint64_t handed_back = source->ring_tail;
    const bool is_same = is_unchanged(source, &look);
    bool has_moved = false;
    struct scan scan;

    source->is_complete = true;
    source->dropped = look.dropped_count;
    source->dropped_else = look.dropped_count > look.dropped_disk_count
                               ? look.dropped_count - look.dropped_disk_count
                               : 0;
    source->gpu_buffers_out = look.gpu_buffers_out;
    lac_drain_look_at_gpu(drain, source, &look);
    if (look.step_count > drain->counts.steps) {
        drain->counts.steps = look.step_count;
    }
    if (look.step_count > 0 && look.step_count == drain->counts.steps) {
        drain->loader_wait_ns = look.loader_wait_ns;
    }
    drain->has_captured = drain->has_captured || look.captures_begun > 0;
    if (is_same && source->is_quiet && !final && !refreshes) {
        return false;
    }
    scan = scan_segments(source, &look, final, refreshes);
    source->is_quiet = is_same && !scan.wants_names && source->is_complete;
    /* names before the events that use them, so that the output never refers to what it lacks */
    for (uint64_t i = 0; i < scan.end && scan.wants_names; i++) {
        if (source->places[i].is_due && source->places[i].has_names) {
            has_moved |= move_segment(drain, source, i, final);
        }
    }
    for (uint64_t i = 0; i < scan.end && scan.wants_events; i++) {
        struct lac_drain_place *const place = &source->places[i];

        if (place->is_due && !place->has_names && move_segment(drain, source, i, final)) {
            has_moved = true;
            /* names stay where they are: there are few, and a process that goes on alone needs its
             * own copy */
            if (place->moved && !place->has_names && !final) {
                hand_back(source, i, place, look.free_head);
            }
        }
    }
    if (has_moved || final || refreshes) {
        write_header(drain, source, final);
    }
    return has_moved || source->ring_tail != handed_back;
}
