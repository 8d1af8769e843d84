/*
 * Recordings that travel: the input is a list of what is put into a bundle, a tar of spools, or a
 * tar of bundles. An error or sound models; the same twice; and what is laid out reads as a plain
 * array would.
 */

#include "analysis/import/import.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/model.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 22, SEGMENT_BYTES = 65536, FILES = 4, ARRAY_BYTES = 1 << 18 };

struct tape {
    const uint8_t *at;
    size_t left;
};

static uint8_t out[OUT_MAX];
static size_t used;

static uint8_t next(struct tape *tape)
{
    if (tape->left == 0) {
        return 0;
    }
    tape->left--;
    return *tape->at++;
}

static uint32_t next_wide(struct tape *tape)
{
    const uint32_t high = next(tape);
    const uint32_t middle = next(tape);

    return high << 16 | middle << 8 | next(tape);
}

static size_t take(struct tape *tape, size_t wanted, const uint8_t **ret)
{
    const size_t size = wanted < tape->left ? wanted : tape->left;

    *ret = tape->at;
    tape->at += size;
    tape->left -= size;
    return size;
}

static void put(const void *bytes, size_t size)
{
    size = size < OUT_MAX - used ? size : OUT_MAX - used;
    if (size > 0) {
        memcpy(out + used, bytes, size);
    }
    used += size;
}

/* ---- pieces of recordings */

static void put_part(const char *name, uint64_t offset, uint32_t size_bytes, const void *data,
                     uint32_t data_bytes)
{
    const struct lac_bundle_part part = {.magic = LAC_BUNDLE_PART_MAGIC,
                                         .name_bytes = (uint32_t)strlen(name),
                                         .size_bytes = size_bytes,
                                         .data_bytes = data_bytes,
                                         .offset = offset};

    put(&part, sizeof(part));
    put(name, strlen(name));
    put(data, data_bytes);
}

static size_t make_header(struct tape *tape, struct lac_spool_header *header)
{
    *header =
        (struct lac_spool_header){.version = LAC_SPOOL_VERSION,
                                  .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                  .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                  .segment_bytes = SEGMENT_BYTES,
                                  .clock = LAC_SPOOL_CLOCK_MONOTONIC,
                                  .pid = next(tape),
                                  .fork_depth = next(tape) % 3,
                                  .first = {1000, 2000, 1700000000000000000},
                                  .segment_count = next(tape),
                                  .dropped_count = (uint64_t)next_wide(tape) << next(tape) % 40,
                                  .named_count = next(tape) & 1,
                                  .text_bytes = 64};

    memcpy(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic));
    (void)snprintf(header->text, 64, "env.RANK=%d%cenv.WORLD_SIZE=%d", next(tape) % 4, 0,
                   next(tape) % 4);
    return LAC_SPOOL_TEXT_OFFSET + 64;
}

static size_t make_segment(struct tape *tape, uint8_t segment[SEGMENT_BYTES])
{
    const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                            .kind = next(tape) % 6,
                                            .tid = next(tape) % 4,
                                            .seq = next(tape) % 4,
                                            .sync = {1000, 2000, 3000},
                                            .state = LAC_SEGMENT_FULL};
    const uint8_t *records;
    const size_t size = take(tape, next_wide(tape) % 2048, &records);

    memset(segment, 0, SEGMENT_BYTES);
    memcpy(segment, &head, sizeof(head));
    if (size > 0) {
        memcpy(segment + sizeof(head), records, size);
    }
    return sizeof(head) + size;
}

static void put_bundle(struct tape *tape)
{
    static uint8_t segment[SEGMENT_BYTES];
    struct lac_spool_header header;
    const uint8_t *bytes;
    size_t size;

    put(LAC_BUNDLE_MAGIC, 8);
    for (unsigned count = 0; tape->left > 0 && count < 64; count++) {
        const uint8_t how = next(tape);
        char name[24];

        (void)snprintf(name, sizeof(name), "%s%u.spool", (how & 8) != 0 ? "torch-profiler-" : "",
                       (how >> 4) % FILES);
        switch (how % 5) {
        case 0:
            size = make_header(tape, &header);
            put_part(name, 0, LAC_SPOOL_HEADER_BYTES, &header, (uint32_t)size);
            break;
        case 1:
            size = make_segment(tape, segment);
            put_part(name, LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)(next(tape) % 8) * SEGMENT_BYTES,
                     SEGMENT_BYTES, segment, (uint32_t)size);
            break;
        case 2: /* anywhere */
            size = take(tape, next(tape), &bytes);
            put_part(name, (uint64_t)next_wide(tape) << next(tape) % 12,
                     (uint32_t)(size + next_wide(tape)), bytes, (uint32_t)size);
            break;
        case 3: /* as it comes */
            size = take(tape, next(tape), &bytes);
            put(bytes, size);
            break;
        default:
            return;
        }
    }
}

static void put_tar_header(const char *name, size_t size)
{
    char block[512] = {0};
    unsigned sum = 0;

    (void)snprintf(block, 100, "%s", name);
    (void)snprintf(block + 100, 8, "0000600");
    (void)snprintf(block + 124, 12, "%011zo", size);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar", 6);
    for (size_t i = 0; i < sizeof(block); i++) {
        sum += (unsigned char)block[i];
    }
    (void)snprintf(block + 148, 8, "%06o", sum);
    put(block, sizeof(block));
}

/* Spools, bundles and profiles in a tar. */
static void put_tar(struct tape *tape)
{
    static const char zeros[512];
    static uint8_t segment[SEGMENT_BYTES];
    static const char profile[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,"
        "\"ts\":1700000000000000,"
        "\"dur\":5,\"args\":{\"device\":0,\"stream\":7,\"correlation\":1}}]}";
    struct lac_spool_header header;

    for (unsigned count = 0; tape->left > 0 && count < 8; count++) {
        const size_t at = used;
        const uint8_t how = next(tape);

        put_tar_header("", 0);
        if (how % 3 == 0) {
            (void)make_header(tape, &header);
            put(&header, sizeof(header));
            for (unsigned i = next(tape) % 4; i > 0; i--) {
                (void)make_segment(tape, segment);
                put(segment, sizeof(segment));
            }
        } else if (how % 3 == 1) {
            put_bundle(tape);
        } else {
            put(profile, sizeof(profile) - 1 - (how & 64 ? next(tape) % 100u : 0));
        }
        const size_t end = used;
        char name[64];

        (void)snprintf(name, sizeof(name), "%s%u%s", how % 3 == 2 ? "torch-profiler-" : "", count,
                       how & 128 ? ".json" : ".spool");
        used = at;
        put_tar_header(name, end - at - 512);
        used = end;
        put(zeros, (512 - used % 512) % 512);
    }
}

/* ---- what must hold */

struct result {
    enum lac_status status;
    uint64_t slices, dropped;
    uint32_t models;
};

static enum lac_status look(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct result *const result = context;

    (void)reterr;
    require(lac_model_is_valid(model));
    result->slices += model->slices.count;
    result->dropped += model->info.dropped_count;
    result->models++;
    lac_model_destroy(model);
    return LAC_OK;
}

static struct result import(void)
{
    struct lac_import_options options = {.name = "fuzz", .temporary_dir = "/dev/shm"};
    struct result result = {0};
    struct lac_error error = {0};

    lac_import_limits_default(&options.limits);
    result.status = lac_import_bytes(out, used, &options, look, &result, &error);
    require(result.status == LAC_OK || error.message[0] != '\0');
    return result;
}

/* A space against arrays. */
static void check_space(struct tape *tape)
{
    static uint8_t arrays[FILES][ARRAY_BYTES];
    static uint8_t read[ARRAY_BYTES];
    uint64_t sizes[FILES] = {0};
    struct lac_spool_space *space = NULL;
    uint32_t number = 0;

    memset(arrays, 0, sizeof(arrays));
    require(lac_spool_space_create("/dev/shm", &space, NULL) == LAC_OK);
    for (uint32_t i = 0; i < FILES; i++) {
        require(lac_spool_space_add(space, &number, NULL) == LAC_OK && number == i);
    }
    for (unsigned count = 0; tape->left > 0 && count < 100; count++) {
        const uint8_t how = next(tape);
        const uint64_t offset = next_wide(tape) % ARRAY_BYTES;
        uint64_t end = offset + next_wide(tape) % 70000;

        number = how % FILES;
        end = end < ARRAY_BYTES ? end : ARRAY_BYTES;
        if (how & 16) {
            lac_spool_space_extend(space, number, end);
        } else {
            memset(arrays[number] + offset, how | 1, end - offset);
            require(lac_spool_space_write(space, number, offset, arrays[number] + offset,
                                          end - offset, NULL) == LAC_OK);
        }
        sizes[number] = end > sizes[number] ? end : sizes[number];
        for (uint32_t i = 0; i < FILES; i++) {
            const struct lac_spool_bytes bytes = {.space = space, .number = i};
            const uint64_t from = offset / 3;
            const uint64_t wanted = sizes[i] > from ? sizes[i] - from : 0;

            require(lac_spool_bytes_size(&bytes) == (int64_t)sizes[i]);
            require(lac_spool_bytes_read(&bytes, read, sizeof(read), from) == (int64_t)wanted);
            require(memcmp(read, arrays[i] + from, wanted) == 0);
        }
    }
    lac_spool_space_destroy(space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape tape = {data, size};
    struct result once;
    struct result again;

    if (size > 65536) {
        return 0;
    }
    used = 0;
    switch (next(&tape) % 4) {
    case 0:
        put_bundle(&tape);
        break;
    case 1:
        put_tar(&tape);
        break;
    case 2:
        put(tape.at, tape.left);
        break;
    default:
        check_space(&tape);
        return 0;
    }
    once = import();
    again = import();
    require(once.status == again.status && once.slices == again.slices &&
            once.models == again.models && once.dropped == again.dropped);
    return 0;
}
