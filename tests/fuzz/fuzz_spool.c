/*
 * Any bytes as the segments of a spool, in a file whose header is sound: an error or a valid model,
 * the report adds up, and every argument is whole. The input is a list of segments, each
 *
 *   kind, clock of GPU records, thread, 0, u32 length, then `length` bytes of records
 */

#include "analysis/import/import.h"
#include "analysis/import/spool_import.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "lacuna/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static int make_spool(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("spool", MFD_CLOEXEC);
    unsigned count = 0;

    require(fd >= 0);
    write_header(fd, size % 2 == 0 ? LAC_SPOOL_CLOCK_MONOTONIC : LAC_SPOOL_CLOCK_TSC);
    while (size > HEAD_BYTES && count < SEGMENTS_MAX) {
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)count * SEGMENT_BYTES;
        const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                                .kind = data[0],
                                                .gpu_clock = data[1],
                                                .tid = 100 + data[2] % 3,
                                                .seq = count,
                                                .sync = {1000 + count * 100u, 2000, 3000},
                                                .state = LAC_SEGMENT_FULL};
        uint32_t length;

        memcpy(&length, data + 4, sizeof(length));
        data += HEAD_BYTES;
        size -= HEAD_BYTES;
        length = length > size ? (uint32_t)size : length;
        length = length > SEGMENT_BYTES - sizeof(head) ? SEGMENT_BYTES - sizeof(head) : length;
        write_at(fd, &head, sizeof(head), offset);
        write_at(fd, data, length, offset + sizeof(head));
        data += length;
        size -= length;
        count++;
    }
    require(ftruncate(fd, (off_t)(LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)count * SEGMENT_BYTES)) ==
            0);
    return fd;
}

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = model;
    return LAC_OK;
}

static void check_arguments(const struct lac_model *model)
{
    static char args[65536];

    for (uint64_t i = 0; i < model->slices.count; i++) {
        const size_t length = lac_args_format(model, i, args, sizeof(args));

        require(length < sizeof(args));
        require(length == 0 || (args[0] == '{' && args[length - 1] == '}'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = make_spool(data, size);
    const struct lac_import_options options = {.name = "fuzz"};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (lac_spool_import(path, &options, keep, &model, &error) == LAC_OK) {
        uint64_t dropped = 0;
        uint64_t repaired = 0;

        require(model != NULL && lac_model_is_valid(model));
        for (uint32_t i = 0; i < model->report_count; i++) {
            const struct lac_report_line *const line = &model->report[i];

            dropped += line->severity == LAC_REPORT_DROPPED ? line->count : 0;
            repaired += line->severity == LAC_REPORT_REPAIRED ? line->count : 0;
        }
        require(dropped == model->info.dropped_count && repaired == model->info.repaired_count);
        check_arguments(model);
        lac_model_destroy(model);
    } else {
        require(model == NULL && error.message[0] != '\0');
    }
    (void)close(fd);
    return 0;
}
