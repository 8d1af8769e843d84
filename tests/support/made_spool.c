#include "tests/support/made_spool.h"

#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 65536, SEGMENTS_MAX = 16, HEAD_BYTES = 8 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
    require(pwrite(fd, bytes, size, (off_t)offset) == (ssize_t)size);
}

static void write_header(int fd, uint32_t clock)
{
    static const char text[] = "host=h\0comm=python\0argv=train.py";
    static struct lac_spool_header header;

    header = (struct lac_spool_header){.version = LAC_SPOOL_VERSION,
                                       .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                       .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                       .segment_bytes = SEGMENT_BYTES,
                                       .clock = clock,
                                       .pid = 100,
                                       .first = {1000, 2000, 1700000000000000000},
                                       .named_count = 1,
                                       .text_bytes = sizeof(text)};
    memcpy(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic));
    memcpy(header.text, text, sizeof(text));
    write_at(fd, &header, sizeof(header), 0);
}

int lac_made_spool(const uint8_t *data, size_t size_bytes)
{
    const int fd = memfd_create("spool", MFD_CLOEXEC);
    unsigned count = 0;

    require(fd >= 0);
    write_header(fd, size_bytes % 2 == 0 ? LAC_SPOOL_CLOCK_MONOTONIC : LAC_SPOOL_CLOCK_TSC);
    while (size_bytes > HEAD_BYTES && count < SEGMENTS_MAX) {
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)count * SEGMENT_BYTES;
        const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                                .kind = data[0],
                                                .gpu_clock = data[1],
                                                .tid = 100 + data[2] % 3,
                                                .external_count = data[3],
                                                .seq = count,
                                                .sync = {1000 + count * 100u, 2000, 3000},
                                                .state = LAC_SEGMENT_FULL};
        uint32_t length;

        memcpy(&length, data + 4, sizeof(length));
        data += HEAD_BYTES;
        size_bytes -= HEAD_BYTES;
        length = length > size_bytes ? (uint32_t)size_bytes : length;
        length = length > SEGMENT_BYTES - sizeof(head) ? SEGMENT_BYTES - sizeof(head) : length;
        write_at(fd, &head, sizeof(head), offset);
        write_at(fd, data, length, offset + sizeof(head));
        data += length;
        size_bytes -= length;
        count++;
    }
    require(ftruncate(fd, (off_t)(LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)count * SEGMENT_BYTES)) ==
            0);
    return fd;
}
