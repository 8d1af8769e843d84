#include "tests/support/patched_spool.h"

#include "collector/base/count_of.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <string.h>

enum { PATCH_BYTES = 9 };

bool lac_patch_next(const uint8_t **data, size_t *size_bytes, struct lac_patch *ret)
{
    uint32_t offset;
    uint16_t segment;

    if (*size_bytes < PATCH_BYTES) {
        return false;
    }
    memcpy(&segment, *data + 2, sizeof(segment));
    memcpy(&offset, *data + 4, sizeof(offset));
    ret->kind = (*data)[0] % 4;
    ret->file = (*data)[0] / 4;
    ret->after = (*data)[1];
    ret->length = (*data)[8];
    ret->bytes = *data + PATCH_BYTES;
    ret->offset = segment == LAC_PATCH_HEADER
                      ? offset % LAC_SPOOL_HEADER_BYTES
                      : LAC_SPOOL_SEGMENTS_OFFSET +
                            (uint64_t)(segment % LAC_PATCHED_SEGMENTS) * LAC_PATCHED_SEGMENT +
                            offset % LAC_PATCHED_SEGMENT;
    *data += PATCH_BYTES;
    *size_bytes -= PATCH_BYTES;
    if (ret->length > *size_bytes) {
        ret->length = *size_bytes;
    }
    if (ret->length > LAC_PATCHED_BYTES - ret->offset) {
        ret->length = (size_t)(LAC_PATCHED_BYTES - ret->offset);
    }
    *data += ret->length;
    *size_bytes -= ret->length;
    return true;
}

/* ---- a sound one */

static uint8_t *make_segment(uint8_t *bytes, uint32_t index, enum lac_segment_kind kind, int tid)
{
    const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                            .kind = (uint16_t)kind,
                                            .state = LAC_SEGMENT_FULL,
                                            .tid = tid,
                                            .sync = {1000 + index, 1000 + index, 1000 + index},
                                            .gpu_clock = LAC_GPU_CLOCK_MONOTONIC,
                                            .thread_name = "python"};
    uint8_t *const at = bytes + LAC_SPOOL_SEGMENTS_OFFSET + (size_t)index * LAC_PATCHED_SEGMENT;

    memcpy(at, &head, sizeof(head));
    return at + sizeof(head);
}

static uint8_t *add_name(uint8_t *at, uint32_t id, const char *text)
{
    const struct lac_string_record record = {.id = id, .length = (uint32_t)strlen(text)};

    memcpy(at, &record, sizeof(record));
    memcpy(at + sizeof(record), text, record.length);
    return at + sizeof(record) + ((record.length + 7u) & ~7u);
}

static void add_events(uint8_t *at, uint64_t start)
{
    for (uint64_t i = 0; i < 4; i++) {
        const struct lac_event pair[] = {{.ts = start + i * 100, .name = 1, .type = LAC_EVENT_PUSH},
                                         {.ts = start + i * 100 + 50, .type = LAC_EVENT_POP}};

        memcpy(at + i * sizeof(pair), pair, sizeof(pair));
    }
}

void lac_patched_spool_make(uint8_t bytes[LAC_PATCHED_BYTES])
{
    static const char text[] = "host=h\0comm=python\0argv=train.py";
    struct lac_spool_header header = {.magic = {'L', 'A', 'C', 'S', 'P', 'O', 'O', 'L'},
                                      .version = LAC_SPOOL_VERSION,
                                      .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                      .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                      .segment_bytes = LAC_PATCHED_SEGMENT,
                                      .clock = LAC_SPOOL_CLOCK_MONOTONIC,
                                      .pid = 100,
                                      .first = {1000, 2000, 1700000000000000000},
                                      .segment_count = LAC_PATCHED_SEGMENTS,
                                      .text_bytes = sizeof(text)};
    struct lac_gpu_kernel kernel = {
        .head = {.start_ns = 2000, .end_ns = 2500, .units = 5, .type = LAC_GPU_KERNEL}, .name = 2};

    memset(bytes, 0, LAC_PATCHED_BYTES);
    memcpy(header.text, text, sizeof(text));
    memcpy(bytes, &header, sizeof(header));
    (void)add_name(add_name(make_segment(bytes, 0, LAC_SEGMENT_STRINGS, 100), 1, "step"), 2,
                   "gemm");
    add_events(make_segment(bytes, 1, LAC_SEGMENT_EVENTS, 100), 1500);
    add_events(make_segment(bytes, 2, LAC_SEGMENT_EVENTS, 101), 1700);
    memcpy(make_segment(bytes, 3, LAC_SEGMENT_GPU, 100), &kernel, sizeof(kernel));
}

size_t lac_patched_spool(const uint8_t *data, size_t size_bytes, unsigned file,
                         uint8_t bytes[LAC_PATCHED_BYTES])
{
    struct lac_patch patch;
    size_t size = LAC_PATCHED_BYTES;

    lac_patched_spool_make(bytes);
    while (lac_patch_next(&data, &size_bytes, &patch)) {
        if (patch.file == file && patch.kind == LAC_PATCH_WRITE) {
            memcpy(bytes + patch.offset, patch.bytes, patch.length);
        } else if (patch.file == file && patch.kind == LAC_PATCH_CUT) {
            size = (size_t)patch.offset;
        }
    }
    return size;
}

/* ---- mutations */

struct field {
    uint16_t offset;
    uint8_t size_bytes;
};

#define IN_HEADER(name)                                                                            \
    {                                                                                              \
        offsetof(struct lac_spool_header, name), sizeof(((struct lac_spool_header *)0)->name)      \
    }
#define IN_SEGMENT(name)                                                                           \
    {                                                                                              \
        offsetof(struct lac_segment_header, name), sizeof(((struct lac_segment_header *)0)->name)  \
    }

static const struct field header_fields[] = {
    IN_HEADER(magic),        IN_HEADER(version),        IN_HEADER(endian_mark),
    IN_HEADER(header_bytes), IN_HEADER(segment_bytes),  IN_HEADER(clock),
    IN_HEADER(pid),          IN_HEADER(segment_count),  IN_HEADER(dropped_count),
    IN_HEADER(text_bytes),   IN_HEADER(step_count),     IN_HEADER(lost_process_count),
    IN_HEADER(free_head),    IN_HEADER(free_tail),      IN_HEADER(fork_depth),
    IN_HEADER(first),        {LAC_SPOOL_TEXT_OFFSET, 8}};

/* and the first records: of names, events, GPU records */
static const struct field segment_fields[] = {
    IN_SEGMENT(magic), IN_SEGMENT(kind), IN_SEGMENT(state), IN_SEGMENT(tid),
    IN_SEGMENT(seq),   IN_SEGMENT(sync), {64, 4},           {68, 4},
    {72, 8},           {78, 2},          {84, 4},           {94, 2}};

static const uint64_t values[] = {0,          1,
                                  2,          3,
                                  4,          5,
                                  63,         64,
                                  65,         4096,
                                  65535,      65536,
                                  65537,      131072,
                                  16 << 20,   (16 << 20) + 65536,
                                  64 << 20,   LAC_SEGMENT_MAGIC,
                                  INT32_MAX,  UINT32_MAX - 7,
                                  UINT32_MAX, (uint64_t)1 << 48,
                                  INT64_MAX,  UINT64_MAX - 63,
                                  UINT64_MAX};

static uint32_t draw(uint32_t *random, size_t below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % (uint32_t)below;
}

size_t lac_patches_mutate(uint8_t *data, size_t size_bytes, size_t capacity, unsigned seed)
{
    const uint8_t *rest = data;
    size_t left = size_bytes;
    uint32_t random = seed;
    struct lac_patch patch;
    struct field field;
    uint16_t segment = LAC_PATCH_HEADER;
    uint64_t value;
    uint32_t offset;

    if (draw(&random, 4) == 0) {
        return 0;
    }
    if (draw(&random, 8) == 0 && lac_patch_next(&rest, &left, &patch)) { /* without the first */
        memmove(data, rest, left);
        return left;
    }
    if (draw(&random, 2) == 0) {
        field = header_fields[draw(&random, LAC_COUNT_OF(header_fields))];
    } else {
        field = segment_fields[draw(&random, LAC_COUNT_OF(segment_fields))];
        segment = (uint16_t)draw(&random, LAC_PATCHED_SEGMENTS);
    }
    field.size_bytes = field.size_bytes > 8 ? 8 : field.size_bytes;
    value = values[draw(&random, LAC_COUNT_OF(values))];
    offset = field.offset;
    if (size_bytes + PATCH_BYTES + field.size_bytes > capacity) {
        return 0;
    }
    data += size_bytes;
    data[0] = (uint8_t)((draw(&random, 8) == 0 ? 2 : 0) + draw(&random, 2) + 4 * draw(&random, 3));
    data[1] = (uint8_t)draw(&random, 48);
    memcpy(data + 2, &segment, sizeof(segment));
    memcpy(data + 4, &offset, sizeof(offset));
    data[8] = field.size_bytes;
    memcpy(data + PATCH_BYTES, &value, field.size_bytes);
    return size_bytes + PATCH_BYTES + field.size_bytes;
}
