#ifndef LAC_TESTS_SUPPORT_CHANGING_SPOOL_H
#define LAC_TESTS_SUPPORT_CHANGING_SPOOL_H

/*
 * A spool whose process changes it between any two looks of whoever drains it: the functions of
 * collector/gather/shared_spool.h over bytes of ours. After each of them the changes that are due
 * are made, so that what happens is the same every time. To be included once in a program: it
 * defines those functions, and the linker then takes no others.
 */

#include "collector/gather/shared_spool.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CHANGING_BYTES = (1 << 16) + 6 * (1 << 16), CHANGES_MAX = 32 };

/* After `after` calls, `size_bytes` (at most 8) of `value` stand at `offset`; offset CHANGING_CUT:
 * the file has `value` bytes. */
struct change {
    uint32_t after;
    uint32_t offset;
    uint32_t size_bytes;
    uint64_t value;
};

#define CHANGING_CUT UINT32_MAX

static struct {
    /* aligned as a page is */
    _Alignas(4096) uint8_t bytes[CHANGING_BYTES];
    uint64_t size_bytes;
    struct change changes[CHANGES_MAX];
    size_t change_count;
    uint32_t calls;
    uint64_t bytes_read;
    bool cannot_open;
} changing;

static inline void changing_step(void)
{
    changing.calls++;
    for (size_t i = 0; i < changing.change_count; i++) {
        const struct change *const change = &changing.changes[i];

        if (change->after != changing.calls) {
            continue;
        }
        if (change->offset == CHANGING_CUT) {
            changing.size_bytes = change->value < CHANGING_BYTES ? change->value : CHANGING_BYTES;
        } else if (change->offset <= CHANGING_BYTES - sizeof(change->value)) {
            memcpy(changing.bytes + change->offset, &change->value,
                   change->size_bytes < 8 ? change->size_bytes : 8);
        }
    }
}

static inline struct lac_spool_header *changing_header(void)
{
    return (struct lac_spool_header *)(void *)changing.bytes;
}

enum lac_shared_opening lac_shared_open(struct lac_shared_spool *spool, const char *path,
                                        bool is_writable, struct lac_spool_header *ret_header)
{
    (void)path;
    *spool = (struct lac_shared_spool){.fd = -1, .is_writable = is_writable};
    if (changing.cannot_open) {
        errno = EMFILE;
        return LAC_SHARED_NO_ACCESS;
    }
    if (changing.size_bytes < sizeof(*ret_header)) {
        return LAC_SHARED_NOT_YET;
    }
    memcpy(ret_header, changing.bytes, sizeof(*ret_header));
    changing_step();
    if (!lac_spool_header_check(ret_header)) {
        return LAC_SHARED_NOT_OURS;
    }
    spool->shared = changing_header();
    return LAC_SHARED_OPENED;
}

void lac_shared_close(struct lac_shared_spool *spool)
{
    spool->shared = NULL;
}

struct lac_shared_look lac_shared_look(const struct lac_shared_spool *spool)
{
    const struct lac_spool_header *const header = spool->shared;
    struct lac_shared_look look = {0};

    if (changing.size_bytes >= LAC_SPOOL_HEADER_BYTES) {
        look.segment_count = header->segment_count;
        look.dropped_count = header->dropped_count;
        look.step_count = header->step_count;
        look.free_head = header->free_head;
        look.progress_count = header->progress_count;
        look.training_tid = header->training_tid;
        look.captures_begun = header->captures_begun;
        look.captures_open = header->captures_open;
        look.stop = header->stop;
    }
    changing_step();
    return look;
}

uint64_t lac_shared_size(const struct lac_shared_spool *spool)
{
    const uint64_t size = changing.size_bytes;

    (void)spool;
    changing_step();
    return size;
}

bool lac_shared_read(const struct lac_shared_spool *spool, void *bytes, size_t size_bytes,
                     uint64_t offset)
{
    const bool is_there =
        offset <= changing.size_bytes && size_bytes <= changing.size_bytes - offset;

    (void)spool;
    if (is_there) {
        memcpy(bytes, changing.bytes + offset, size_bytes);
        changing.bytes_read += size_bytes;
    }
    changing_step();
    return is_there;
}

void lac_shared_tell(const struct lac_shared_spool *spool, enum lac_spool_stop wish)
{
    ((struct lac_spool_header *)spool->shared)->stop = (uint32_t)wish;
    changing_step();
}

bool lac_shared_replace(const struct lac_shared_spool *spool, uint32_t from,
                        enum lac_spool_stop wish)
{
    struct lac_spool_header *const header = spool->shared;
    const bool is_told = header->stop == from;

    header->stop = is_told ? (uint32_t)wish : header->stop;
    changing_step();
    return is_told;
}

void lac_shared_ask(const struct lac_shared_spool *spool)
{
    ((struct lac_spool_header *)spool->shared)->ask_count++;
    changing_step();
}

void lac_shared_give(const struct lac_shared_spool *spool, uint64_t tail, uint32_t index)
{
    struct lac_spool_header *const header = spool->shared;

    header->free_ring[tail % LAC_SPOOL_FREE_RING] = index;
    header->free_tail = tail + 1;
    changing_step();
}

/* A sound spool of `count` (at most 6) segments: one of names, then events, all full. */
static inline void changing_reset(uint32_t count)
{
    struct lac_spool_header *const header = changing_header();

    memset(&changing, 0, sizeof(changing));
    changing.size_bytes = LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)count * 65536;
    memcpy(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic));
    header->version = LAC_SPOOL_VERSION;
    header->endian_mark = LAC_SPOOL_ENDIAN_MARK;
    header->header_bytes = LAC_SPOOL_HEADER_BYTES;
    header->segment_bytes = 65536;
    header->clock = LAC_SPOOL_CLOCK_MONOTONIC;
    header->pid = 100;
    header->segment_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *const at = changing.bytes + LAC_SPOOL_SEGMENTS_OFFSET + (size_t)i * 65536;
        const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                                .kind = i == 0 ? LAC_SEGMENT_STRINGS
                                                               : LAC_SEGMENT_EVENTS,
                                                .state = LAC_SEGMENT_FULL,
                                                .tid = 100,
                                                .seq = i,
                                                .sync = {1000 + i, 1000 + i, 1000 + i}};
        const struct lac_string_record name = {.id = 1, .length = 8};
        const struct lac_event event = {.ts = 2000 + i, .name = 1, .type = LAC_EVENT_MARK};

        memcpy(at, &head, sizeof(head));
        if (i == 0) {
            memcpy(at + sizeof(head), &name, sizeof(name));
            memcpy(at + sizeof(head) + sizeof(name), "training", 8);
        } else {
            memcpy(at + sizeof(head), &event, sizeof(event));
        }
    }
}

#endif
