#include "analysis/import/spool/spool_space.h"

#include "analysis/import/source/temporary.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Small, because a file system gives room by its own blocks within one: the rest stays a hole. */
enum { BLOCK_BYTES = 16384, SLOTS_FIRST = 1024 };

struct slot {
    uint64_t key; /* spool and block of it */
    uint32_t at;  /* block of the file, from 1; 0: a free slot */
};

struct lac_spool_space {
    int fd;
    uint64_t *size_bytes; /* by spool */
    uint32_t count;
    uint64_t capacity;
    struct slot *slots; /* a power of two of them, at most half of them taken */
    uint64_t slot_count;
    uint32_t block_count;
    uint64_t seed;
};

static enum lac_status fail_memory(struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
}

/* ---- the file */

enum lac_status lac_spool_space_create(const char *parent, struct lac_spool_space **ret_space,
                                       struct lac_error *reterr)
{
    struct lac_spool_space *const space = calloc(1, sizeof(*space));
    enum lac_status status = LAC_OK;

    if (space == NULL) {
        return fail_memory(reterr);
    }
    space->slots = calloc(SLOTS_FIRST, sizeof(*space->slots));
    space->slot_count = SLOTS_FIRST;
    space->seed = lac_hash_seed();
    status =
        space->slots != NULL ? lac_temporary_file(parent, &space->fd, reterr) : fail_memory(reterr);
    if (status != LAC_OK) {
        free(space->slots);
        free(space);
        return status;
    }
    *ret_space = space;
    return LAC_OK;
}

void lac_spool_space_destroy(struct lac_spool_space *space)
{
    if (space != NULL) {
        (void)close(space->fd);
        free(space->size_bytes);
        free(space->slots);
        free(space);
    }
}

uint32_t lac_spool_space_count(const struct lac_spool_space *space)
{
    return space->count;
}

enum lac_status lac_spool_space_add(struct lac_spool_space *space, uint32_t *ret_number,
                                    struct lac_error *reterr)
{
    if (space->count == LAC_SPOOL_SPACE_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "more than %d files in the recording",
                        LAC_SPOOL_SPACE_MAX);
    }
    if (LAC_GROW(space->size_bytes, &space->capacity, (uint64_t)space->count + 1) != LAC_OK) {
        return fail_memory(reterr);
    }
    space->size_bytes[space->count] = 0;
    *ret_number = space->count++;
    return LAC_OK;
}

void lac_spool_space_extend(struct lac_spool_space *space, uint32_t number, uint64_t size_bytes)
{
    if (size_bytes > space->size_bytes[number]) {
        space->size_bytes[number] = size_bytes;
    }
}

uint64_t lac_spool_space_size(const struct lac_spool_space *space, uint32_t number)
{
    return space->size_bytes[number];
}

/* ---- blocks: found by a hash with a seed of its own, so that no input can make it slow */

static uint64_t key_of(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << 32 | (offset / BLOCK_BYTES & UINT32_MAX);
}

/* The block's slot, or the free one where it belongs. */
static struct slot *probe(struct slot *slots, uint64_t slot_count, uint64_t seed, uint64_t key)
{
    uint64_t i = lac_hash_bytes(&key, sizeof(key), seed) & (slot_count - 1);

    while (slots[i].at != 0 && slots[i].key != key) {
        i = (i + 1) & (slot_count - 1);
    }
    return &slots[i];
}

static enum lac_status grow_slots(struct lac_spool_space *space)
{
    const uint64_t bigger = space->slot_count * 2;
    struct slot *const slots = calloc(bigger, sizeof(*slots));

    if (slots == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < space->slot_count; i++) {
        if (space->slots[i].at != 0) {
            *probe(slots, bigger, space->seed, space->slots[i].key) = space->slots[i];
        }
    }
    free(space->slots);
    space->slots = slots;
    space->slot_count = bigger;
    return LAC_OK;
}

/* Where the block lies, from 1; it is given room when it has none. 0: out of memory */
static uint32_t take_block(struct lac_spool_space *space, uint32_t number, uint64_t offset)
{
    const uint64_t key = key_of(number, offset);
    struct slot *slot = probe(space->slots, space->slot_count, space->seed, key);

    if (slot->at == 0 && space->block_count >= space->slot_count / 2) {
        if (space->block_count == UINT32_MAX || grow_slots(space) != LAC_OK) {
            return 0;
        }
        slot = probe(space->slots, space->slot_count, space->seed, key);
    }
    if (slot->at == 0) {
        *slot = (struct slot){.key = key, .at = ++space->block_count};
    }
    return slot->at;
}

static uint32_t find_block(const struct lac_spool_space *space, uint32_t number, uint64_t offset)
{
    return probe(space->slots, space->slot_count, space->seed, key_of(number, offset))->at;
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* ---- bytes */

static enum lac_status put(int fd, const uint8_t *bytes, size_t size_bytes, uint64_t offset,
                           struct lac_error *reterr)
{
    return lac_file_write_at(fd, bytes, size_bytes, offset)
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, 0, "cannot lay out the spools: %s", strerror(errno));
}

enum lac_status lac_spool_space_write(struct lac_spool_space *space, uint32_t number,
                                      uint64_t offset, const uint8_t *bytes, size_t size_bytes,
                                      struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    lac_spool_space_extend(space, number, offset + size_bytes);
    while (size_bytes > 0 && status == LAC_OK) {
        const uint64_t inside = offset % BLOCK_BYTES;
        const uint32_t first = take_block(space, number, offset);
        uint32_t next = first;
        size_t run = smaller(BLOCK_BYTES - inside, size_bytes);

        while (next != 0 && run < size_bytes &&
               take_block(space, number, offset + run) == next + 1) {
            next++;
            run += smaller(BLOCK_BYTES, size_bytes - run);
        }
        status = first != 0 ? put(space->fd, bytes, run,
                                  (uint64_t)(first - 1) * BLOCK_BYTES + inside, reterr)
                            : fail_memory(reterr);
        bytes += run;
        offset += run;
        size_bytes -= run;
    }
    return status;
}

/* A run of blocks that lie together, or of one that has no room. */
static int64_t read_run(const struct lac_spool_space *space, uint32_t number, uint8_t *out,
                        size_t size_bytes, uint64_t offset)
{
    const uint64_t inside = offset % BLOCK_BYTES;
    const uint32_t first = find_block(space, number, offset);
    uint32_t next = first;
    size_t run = smaller(BLOCK_BYTES - inside, size_bytes);
    int64_t got;

    if (first == 0) {
        memset(out, 0, run);
        return (int64_t)run;
    }
    while (run < size_bytes && find_block(space, number, offset + run) == next + 1) {
        next++;
        run += smaller(BLOCK_BYTES, size_bytes - run);
    }
    got = lac_read_full_at(space->fd, out, run, (uint64_t)(first - 1) * BLOCK_BYTES + inside);
    if (got >= 0 && (size_t)got < run) { /* the end of the file: nothing was written there */
        memset(out + got, 0, run - (size_t)got);
    }
    return got < 0 ? -1 : (int64_t)run;
}

static int64_t read_space(const struct lac_spool_bytes *bytes, void *out, size_t size_bytes,
                          uint64_t offset)
{
    const uint64_t end = bytes->space->size_bytes[bytes->number];
    const size_t wanted = offset < end ? smaller(end - offset, size_bytes) : 0;
    size_t done = 0;

    while (done < wanted) {
        const int64_t got = read_run(bytes->space, bytes->number, (uint8_t *)out + done,
                                     wanted - done, offset + done);

        if (got < 0) {
            return -1;
        }
        done += (size_t)got;
    }
    return (int64_t)done;
}

int64_t lac_spool_bytes_read(const struct lac_spool_bytes *bytes, void *out, size_t size_bytes,
                             uint64_t offset)
{
    return bytes->space != NULL ? read_space(bytes, out, size_bytes, offset)
                                : lac_read_full_at(bytes->fd, out, size_bytes, offset);
}

int64_t lac_spool_bytes_size(const struct lac_spool_bytes *bytes)
{
    struct stat file;

    if (bytes->space != NULL) {
        return (int64_t)bytes->space->size_bytes[bytes->number];
    }
    return fstat(bytes->fd, &file) == 0 ? (int64_t)file.st_size : -1;
}
