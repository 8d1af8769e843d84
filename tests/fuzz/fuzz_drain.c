/*
 * A spool with any damage whose process goes on changing it between the looks of the launcher
 * (tests/support/patched_spool.h and changing_spool.h): what is written out is a sound spool of
 * whole segments, its size is what is counted, and the work is bounded by the file's size.
 */

#include "collector/gather/drain.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/changing_spool.h"
#include "tests/support/patched_spool.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { ROUNDS = 4, CALLS_A_ROUND_MAX = 200 };

static char folder[64];
static char spools[80];
static char output[80];
static char spool_path[120];
static char output_path[120];

static void remove_folders(void)
{
    (void)unlink(spool_path);
    (void)unlink(output_path);
    (void)rmdir(spools);
    (void)rmdir(output);
    (void)rmdir(folder);
}

static void make_folders(void)
{
    if (folder[0] != '\0') {
        return;
    }
    (void)snprintf(folder, sizeof(folder), "%s/lacuna-fuzz-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    require(mkdtemp(folder) != NULL);
    (void)snprintf(spools, sizeof(spools), "%s/spools", folder);
    (void)snprintf(output, sizeof(output), "%s/output", folder);
    (void)snprintf(spool_path, sizeof(spool_path), "%s/1-1-0.spool", spools);
    (void)snprintf(output_path, sizeof(output_path), "%s/1-1-0.spool", output);
    require(mkdir(spools, 0700) == 0 && mkdir(output, 0700) == 0 && atexit(remove_folders) == 0);
}

/* Its name is enough: the bytes are in memory. */
static void make_file(void)
{
    const int fd = open(spool_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    require(fd >= 0 && close(fd) == 0);
    (void)unlink(output_path);
}

static void load(const uint8_t *data, size_t size)
{
    struct lac_patch patch;

    changing.change_count = 0;
    changing.calls = 0;
    changing.cannot_open = false;
    changing.bytes_read = 0;
    changing.size_bytes = lac_patched_spool(data, size, 0, changing.bytes);
    while (lac_patch_next(&data, &size, &patch) && changing.change_count < CHANGES_MAX) {
        struct change *const change = &changing.changes[changing.change_count];

        if (patch.file == 0 && patch.kind == LAC_PATCH_LATER) {
            *change = (struct change){.after = patch.after, .offset = (uint32_t)patch.offset};
            change->size_bytes = patch.length < 8 ? (uint32_t)patch.length : 8;
            memcpy(&change->value, patch.bytes, change->size_bytes);
            changing.change_count++;
        } else if (patch.file == 0 && patch.kind == LAC_PATCH_CUT_LATER) {
            *change = (struct change){patch.after, CHANGING_CUT, 8, patch.offset};
            changing.change_count++;
        }
    }
}

static void check_output(const struct lac_drain_counts *counts)
{
    static struct lac_spool_header header;
    struct lac_segment_header head;
    const int fd = open(output_path, O_RDONLY | O_CLOEXEC);

    if (counts->processes == 0) {
        require(fd < 0);
        return;
    }
    require(fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header));
    require(lac_spool_header_check(&header) && header.segment_count == counts->segments);
    require((uint64_t)lseek(fd, 0, SEEK_END) == counts->bytes);
    require(counts->segments == 0 ||
            counts->bytes == LAC_SPOOL_SEGMENTS_OFFSET + counts->segments * header.segment_bytes);
    for (uint64_t i = 0; i < counts->segments; i++) {
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + i * header.segment_bytes;

        require(pread(fd, &head, sizeof(head), (off_t)offset) == (ssize_t)sizeof(head) &&
                head.magic == LAC_SEGMENT_MAGIC);
    }
    require(close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_drain *drain;
    struct lac_drain_counts counts;

    make_folders();
    make_file();
    load(data, size);
    drain = lac_drain_create(spools, output);
    require(drain != NULL);
    lac_drain_limit(drain, size % 3 == 0 ? 400000 : 0);
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t calls = changing.calls;

        lac_drain_want(drain, round % 2 == 0 ? LAC_SPOOL_RECORD : LAC_SPOOL_PAUSE);
        (void)lac_drain_steps(drain);
        lac_drain_round(drain, round == ROUNDS - 1);
        require(changing.calls - calls < CALLS_A_ROUND_MAX);
    }
    counts = lac_drain_counts(drain);
    check_output(&counts);
    lac_drain_destroy(drain);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const size_t mutated = lac_patches_mutate(data, size, max_size, seed);

    return mutated > 0 ? mutated : LLVMFuzzerMutate(data, size, max_size);
}
