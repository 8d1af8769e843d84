#include "collector/sample/sample_spool.h"

#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "lacuna/spool.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 65536, PENDING_MAX = 4096, SERIES_BYTES_MAX = 1152 };

/* A segment that is being filled with pwrite: the file holds zeros behind what was written. */
struct open_segment {
    uint64_t offset; /* in the file; 0 none */
    uint32_t used;
    uint32_t seq;
};

struct lac_sample_spool {
    int fd;
    uint64_t segment_count;
    struct open_segment names;
    struct open_segment samples;
    uint32_t next_id;
    uint32_t pending_count;
    uint64_t lost;
    struct lac_sample pending[PENDING_MAX];
};

static uint64_t read_clock(clockid_t id)
{
    struct timespec time;

    (void)clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void read_boot_id(uint8_t *boot_id)
{
    char text[64] = {0};
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    int digits = 0;

    if (fd < 0) {
        return;
    }
    if (read(fd, text, sizeof(text) - 1) > 0) {
        for (const char *c = text; *c != '\0' && digits < 32; c++) {
            const int value = *c >= '0' && *c <= '9'   ? *c - '0'
                              : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10
                                                       : -1;

            if (value >= 0) {
                boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | value);
                digits++;
            }
        }
    }
    (void)close(fd);
}

static bool write_header(const struct lac_sample_spool *spool, const char *host)
{
    static struct lac_spool_header header;
    const uint64_t monotonic_ns = read_clock(CLOCK_MONOTONIC);
    int used;

    memset(&header, 0, sizeof(header));
    memcpy(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic));
    header.version = LAC_SPOOL_VERSION;
    header.endian_mark = LAC_SPOOL_ENDIAN_MARK;
    header.header_bytes = LAC_SPOOL_HEADER_BYTES;
    header.segment_bytes = SEGMENT_BYTES;
    header.clock = LAC_SPOOL_CLOCK_MONOTONIC;
    header.pid = (int32_t)getpid();
    header.parent_pid = (int32_t)getppid();
    header.fork_depth = LAC_SAMPLE_SPOOL_DEPTH;
    read_boot_id(header.boot_id);
    header.first = (struct lac_sync_point){.ticks = monotonic_ns,
                                           .monotonic_ns = monotonic_ns,
                                           .realtime_ns = read_clock(CLOCK_REALTIME)};
    used = snprintf(header.text, sizeof(header.text), "host=%s%ccomm=" LAC_SPOOL_LAUNCHER, host, 0);
    header.text_bytes = used > 0 ? (uint32_t)used + 1 : 0;
    return lac_file_write_at(spool->fd, &header, sizeof(header), 0);
}

struct lac_sample_spool *lac_sample_spool_create(const char *folder)
{
    struct lac_sample_spool *const spool = calloc(1, sizeof(*spool));
    char host[256] = "host";
    char path[4096];

    if (spool == NULL) {
        return NULL;
    }
    (void)gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c != '\0'; c++) {
        *c = *c == '/' ? '_' : *c;
    }
    spool->next_id = 1;
    (void)snprintf(path, sizeof(path), "%s/node-%s-%d.spool", folder, host, (int)getpid());
    spool->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->fd < 0 || !write_header(spool, host)) {
        lac_sample_spool_destroy(spool);
        return NULL;
    }
    return spool;
}

void lac_sample_spool_destroy(struct lac_sample_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    if (spool->fd >= 0) {
        lac_sample_spool_flush(spool);
        (void)close(spool->fd);
    }
    free(spool);
}

/* In the header, whose page is there since the start: a full disk still takes it. */
static void count_lost(struct lac_sample_spool *spool, uint32_t count)
{
    spool->lost += count;
    (void)lac_file_write_at(spool->fd, &spool->lost, sizeof(spool->lost),
                            offsetof(struct lac_spool_header, dropped_count));
}

/* Room for `size_bytes` more records of that kind, in a new segment if need be. */
static bool make_room(struct lac_sample_spool *spool, struct open_segment *segment,
                      enum lac_segment_kind kind, uint32_t size_bytes)
{
    struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                      .kind = (uint16_t)kind,
                                      .state = LAC_SEGMENT_OPEN,
                                      .tid = (int32_t)getpid(),
                                      .seq = segment->seq};
    uint64_t offset;

    if (segment->offset != 0 && segment->used + size_bytes <= SEGMENT_BYTES) {
        return true;
    }
    offset = LAC_SPOOL_SEGMENTS_OFFSET + spool->segment_count * SEGMENT_BYTES;
    head.sync.monotonic_ns = read_clock(CLOCK_MONOTONIC);
    head.sync.ticks = head.sync.monotonic_ns;
    if (ftruncate(spool->fd, (off_t)(offset + SEGMENT_BYTES)) != 0 ||
        !lac_file_write_at(spool->fd, &head, sizeof(head), offset)) {
        return false;
    }
    spool->segment_count++;
    (void)lac_file_write_at(spool->fd, &spool->segment_count, sizeof(spool->segment_count),
                            offsetof(struct lac_spool_header, segment_count));
    *segment =
        (struct open_segment){.offset = offset, .used = sizeof(head), .seq = segment->seq + 1};
    return true;
}

uint32_t lac_sample_spool_name(struct lac_sample_spool *spool, const char *text)
{
    uint8_t record[sizeof(struct lac_string_record) + SERIES_BYTES_MAX + 8] = {0};
    const uint32_t length = (uint32_t)strnlen(text, SERIES_BYTES_MAX);
    const uint32_t size_bytes = (uint32_t)sizeof(struct lac_string_record) + ((length + 7u) & ~7u);
    const struct lac_string_record head = {.id = spool->next_id, .length = length};

    if (length == 0 || !make_room(spool, &spool->names, LAC_SEGMENT_STRINGS, size_bytes)) {
        return 0;
    }
    memcpy(record, &head, sizeof(head));
    memcpy(record + sizeof(head), text, length);
    if (!lac_file_write_at(spool->fd, record, size_bytes,
                           spool->names.offset + spool->names.used)) {
        return 0;
    }
    spool->names.used += size_bytes;
    return spool->next_id++;
}

static void add(struct lac_sample_spool *spool, struct lac_sample sample)
{
    if (spool->pending_count == PENDING_MAX) {
        lac_sample_spool_flush(spool);
    }
    spool->pending[spool->pending_count++] = sample;
}

void lac_sample_spool_time(struct lac_sample_spool *spool, uint64_t monotonic_ns)
{
    add(spool, (struct lac_sample){.bits = monotonic_ns, .type = LAC_SAMPLE_TIME});
}

void lac_sample_spool_value(struct lac_sample_spool *spool, uint32_t series, double value)
{
    struct lac_sample sample = {.series = series, .type = LAC_SAMPLE_VALUE};

    if (series == 0) {
        count_lost(spool, 1);
        return;
    }
    memcpy(&sample.bits, &value, sizeof(value));
    add(spool, sample);
}

void lac_sample_spool_setting(struct lac_sample_spool *spool, const char *key, const char *value)
{
    char text[SERIES_BYTES_MAX];
    uint32_t id;

    LAC_DEBUG(SAMPLE, 1, "%s=%s", key, value);
    (void)snprintf(text, sizeof(text), "%s=%s", key, value);
    id = lac_sample_spool_name(spool, text);
    if (id != 0) {
        add(spool, (struct lac_sample){.series = id, .type = LAC_SAMPLE_SETTING});
    }
}

void lac_sample_spool_flush(struct lac_sample_spool *spool)
{
    uint32_t at = 0;

    while (at < spool->pending_count) {
        uint32_t count = spool->pending_count - at;
        uint32_t fits;

        if (!make_room(spool, &spool->samples, LAC_SEGMENT_SAMPLES, sizeof(spool->pending[0]))) {
            count_lost(spool, count);
            break;
        }
        fits = (SEGMENT_BYTES - spool->samples.used) / (uint32_t)sizeof(spool->pending[0]);
        count = count < fits ? count : fits;
        if (!lac_file_write_at(spool->fd, &spool->pending[at], count * sizeof(spool->pending[0]),
                               spool->samples.offset + spool->samples.used)) {
            count_lost(spool, count);
            break;
        }
        spool->samples.used += count * (uint32_t)sizeof(spool->pending[0]);
        at += count;
    }
    spool->pending_count = 0;
}

uint64_t lac_sample_spool_bytes(const struct lac_sample_spool *spool)
{
    return spool->segment_count == 0
               ? LAC_SPOOL_HEADER_BYTES
               : LAC_SPOOL_SEGMENTS_OFFSET + spool->segment_count * SEGMENT_BYTES;
}
