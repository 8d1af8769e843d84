/*
 * Any bytes as a chunk: refused, or columns whose promises hold and that come back the same when
 * they are encoded and decoded again.
 *
 * Input: u16 slice count, u16 set of columns, the chunk.
 */

#include "analysis/model/args.h"
#include "analysis/model/chunk.h"
#include "collector/base/count_of.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lac_model model; /* only strings and columns are used */
static struct lac_chunk_codec *codec;
static struct lac_slices once;
static struct lac_slices twice;

static struct lac_slices new_columns(void)
{
    size_t n = LAC_CHUNK_SLICES;
    struct lac_slices columns = {.start_ns = malloc(n * 8),
                                 .dur_ns = malloc(n * 8),
                                 .name = malloc(n * 4),
                                 .corr = malloc(n * 4),
                                 .link = malloc(n * 4),
                                 .detail = malloc(n * 4),
                                 .args = malloc(n * 4),
                                 .arg_num = malloc(n * 4),
                                 .lane = malloc(n * 2),
                                 .kind = malloc(n)};

    return columns;
}

/* The first templates of every run: without numbers, with some, with a key of its own, broken. */
static void set_up(void)
{
    static const char *const templates[] = {
        "{\"External id\":\x01}", "{\"correlation\":\x01,\"External id\":\x01}",
        "{\"shape\":[\x01,\x01,\x02],\"External id\":\x01}", "{\"a", "\x01\"\\\x02"};

    require(lac_strings_init(&model.strings) == LAC_OK);
    for (size_t i = 0; i < LAC_COUNT_OF(templates); i++) {
        uint32_t id;

        require(lac_strings_intern(&model.strings, templates[i], strlen(templates[i]), &id) ==
                LAC_OK);
    }
    require(lac_chunk_codec_create(&codec) == LAC_OK);
    once = new_columns();
    twice = new_columns();
}

static enum lac_status decode(const uint8_t *bytes, size_t size, uint32_t count, unsigned columns,
                              const struct lac_slices *at, int64_t **numbers,
                              uint64_t *number_count)
{
    uint64_t capacity = 0;
    struct lac_chunk_out out = {.at = *at,
                                .strings = &model.strings,
                                .numbers = numbers,
                                .number_count = number_count,
                                .number_capacity = &capacity};
    struct lac_error error = {0};
    enum lac_status status = lac_chunk_decode(codec, bytes, size, count, 0, columns, &out, &error);

    require(status == LAC_OK || (error.status == status && error.message[0] != '\0'));
    return status;
}

static void check_promises(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require(once.start_ns[i] >= 0 && once.dur_ns[i] >= 0);
        require(once.start_ns[i] + once.dur_ns[i] <= LAC_TIME_MAX_NS);
        require(i == 0 || once.start_ns[i] >= once.start_ns[i - 1]);
        require(once.kind[i] < LAC_SLICE_KIND_COUNT_);
        require(once.args[i] < model.strings.count);
    }
}

static void check_again(uint32_t count, int64_t *numbers, uint64_t number_count)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int64_t *numbers_again = NULL;
    uint64_t number_count_again = 0;

    model.slices = once;
    model.slices.count = count;
    model.arg_numbers = numbers;
    model.arg_number_count = number_count;
    require(lac_chunk_encode(codec, &model, 0, count, &bytes, &size) == LAC_OK);
    require(decode(bytes, size, count, LAC_COLUMNS_ALL, &twice, &numbers_again,
                   &number_count_again) == LAC_OK);
    require(memcmp(once.start_ns, twice.start_ns, count * sizeof(*once.start_ns)) == 0);
    require(memcmp(once.dur_ns, twice.dur_ns, count * sizeof(*once.dur_ns)) == 0);
    require(memcmp(once.name, twice.name, count * sizeof(*once.name)) == 0);
    require(memcmp(once.corr, twice.corr, count * sizeof(*once.corr)) == 0);
    require(memcmp(once.link, twice.link, count * sizeof(*once.link)) == 0);
    require(memcmp(once.detail, twice.detail, count * sizeof(*once.detail)) == 0);
    require(memcmp(once.args, twice.args, count * sizeof(*once.args)) == 0);
    require(memcmp(once.arg_num, twice.arg_num, count * sizeof(*once.arg_num)) == 0);
    require(memcmp(once.lane, twice.lane, count * sizeof(*once.lane)) == 0);
    require(memcmp(once.kind, twice.kind, count * sizeof(*once.kind)) == 0);
    require(number_count == number_count_again);
    require(number_count == 0 ||
            memcmp(numbers, numbers_again, number_count * sizeof(*numbers)) == 0);
    free(numbers_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t head[2];
    int64_t *numbers = NULL;
    uint64_t number_count = 0;

    if (codec == NULL) {
        set_up();
    }
    if (size < sizeof(head)) {
        return 0;
    }
    memcpy(head, data, sizeof(head));
    data += sizeof(head);
    size -= sizeof(head);
    if (decode(data, size, head[0], head[1] & LAC_COLUMNS_ALL, &once, &numbers, &number_count) ==
        LAC_OK) {
        enum lac_status all;

        number_count = 0;
        all = decode(data, size, head[0], LAC_COLUMNS_ALL, &once, &numbers, &number_count);
        if (all == LAC_OK) {
            check_promises(head[0]);
            check_again(head[0], numbers, number_count);
        }
    }
    free(numbers);
    return 0;
}
