/*
 * Any bytes as the segments of a spool (tests/support/made_spool.h): an error or a valid model, the
 * report adds up, and every argument is whole.
 */

#include "analysis/import/import.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "lacuna/spool.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/json_mutator.h"
#include "tests/support/made_spool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

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
    const int fd = lac_made_spool(data, size);
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

/* ---- changes that know segments of 16-byte records */

enum { HEAD_BYTES = 8, RECORD_BYTES = 16 };

/* A segment of the tape: where its records begin and how many there are. */
static uint32_t find_segment(const uint8_t *data, size_t size, uint32_t wanted, size_t *ret_at)
{
    uint32_t count = 0;
    for (size_t at = 0; size - at > HEAD_BYTES; count++) {
        uint32_t length;
        memcpy(&length, data + at + 4, sizeof(length));
        at += HEAD_BYTES;
        length = length > size - at ? (uint32_t)(size - at) : length;
        if (count == wanted) {
            *ret_at = at;
            return length / RECORD_BYTES;
        }
        at += length;
    }
    return 0;
}

static void change_record(uint8_t *record, uint64_t *random)
{
    static const uint64_t numbers[] = {
        0, 1, 100, 1000, 2000, INT64_MAX, UINT64_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63};
    const uint64_t number = numbers[lac_mutator_draw(random, LAC_COUNT_OF(numbers))];
    const uint32_t name = lac_mutator_draw(random, 8);
    const uint16_t domain = (uint16_t)lac_mutator_draw(random, 4);

    switch (lac_mutator_draw(random, 5)) {
    case 0:
        memcpy(record + offsetof(struct lac_event, ts), &number, sizeof(number));
        break;
    case 1:
        memcpy(record + offsetof(struct lac_event, name), &name, sizeof(name));
        break;
    case 2:
        memcpy(record + offsetof(struct lac_event, domain), &domain, sizeof(domain));
        break;
    case 3:
        record[offsetof(struct lac_event, flags)] = (uint8_t)lac_mutator_draw(random, 16);
        break;
    default:
        record[offsetof(struct lac_event, type)] = (uint8_t)lac_mutator_draw(random, 40);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t random = seed;
    size_t at = 0;
    const uint32_t count =
        size > HEAD_BYTES ? find_segment(data, size, lac_mutator_draw(&random, 4), &at) : 0;
    uint8_t *const record =
        count > 0 ? data + at + lac_mutator_draw(&random, count) * RECORD_BYTES : data;
    uint32_t length;

    switch (count > 0 ? lac_mutator_draw(&random, 6) : 5) {
    case 0:
    case 1:
        change_record(record, &random);
        return size;
    case 2: /* one record over another */
        memmove(record, data + at + lac_mutator_draw(&random, count) * RECORD_BYTES, RECORD_BYTES);
        return size;
    case 3: /* once more */
        if (size + RECORD_BYTES > max_size) {
            return size;
        }
        memmove(record + RECORD_BYTES, record, size - (size_t)(record - data));
        memcpy(&length, data + at - 4, sizeof(length));
        length += RECORD_BYTES;
        memcpy(data + at - 4, &length, sizeof(length));
        return size + RECORD_BYTES;
    default:
        return LLVMFuzzerMutate(data, size, max_size);
    }
}
