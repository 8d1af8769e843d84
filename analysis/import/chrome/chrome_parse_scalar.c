/* The event parser for any machine, and what both parsers share. */

#include "analysis/import/chrome/chrome_parse.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>
#define LAC_PARSER_NAME lac_chrome_parser_scalar
#include "analysis/import/chrome/chrome_parse_body.h"
#include "collector/base/reserve.h"

#include <stdlib.h>

const struct lac_chrome_parser *lac_chrome_parser_get(bool force_scalar)
{
#if defined(__x86_64__)
    if (!force_scalar && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
        return &lac_chrome_parser_avx2;
    }
#else
    (void)force_scalar;
#endif
    return &lac_chrome_parser_scalar;
}

void lac_chrome_scratch_done(struct lac_chrome_scratch *scratch)
{
    free(scratch->text);
    free(scratch->numbers);
    *scratch = (struct lac_chrome_scratch){0};
}

bool lac_chrome_scratch_text(struct lac_chrome_scratch *scratch, size_t used, size_t more)
{
    return LAC_RESERVE(scratch->text, scratch->text_capacity, used, more);
}

bool lac_chrome_scratch_number(struct lac_chrome_scratch *scratch, uint32_t count)
{
    return LAC_RESERVE(scratch->numbers, scratch->number_capacity, count, 1);
}

enum lac_key_class lac_chrome_key_class(const uint8_t *key, size_t size_bytes)
{
    /* one entry a key, sorted by length: every kind of event has a few of these */
    static const struct {
        uint8_t length;
        uint8_t key_class;
        char text[27];
    } keys[] = {
        {4, LAC_KEY_REPEATS, "cbid"},
        {5, LAC_KEY_VARIES, "batch"},
        {5, LAC_KEY_VARIES, "Bytes"},
        {6, LAC_KEY_VARIES, "Ev Idx"},
        {6, LAC_KEY_VARIES, "cpu_ns"},
        {6, LAC_KEY_REPEATS, "device"},
        {6, LAC_KEY_REPEATS, "stream"},
        {6, LAC_KEY_REPEATS, "Device"},
        {7, LAC_KEY_REPEATS, "context"},
        {9, LAC_KEY_VARIES, "Python id"},
        {11, LAC_KEY_VARIES, "correlation"},
        {11, LAC_KEY_VARIES, "External id"},
        {11, LAC_KEY_VARIES, "external id"},
        {12, LAC_KEY_REPEATS, "warps per SM"},
        {13, LAC_KEY_REPEATS, "blocks per SM"},
        {13, LAC_KEY_REPEATS, "shared memory"},
        {15, LAC_KEY_VARIES, "Sequence number"},
        {15, LAC_KEY_VARIES, "Total Allocated"},
        {16, LAC_KEY_VARIES, "Python module id"},
        {16, LAC_KEY_VARIES, "Python parent id"},
        {18, LAC_KEY_VARIES, "Record function id"},
        {21, LAC_KEY_VARIES, "wait_on_cuda_event_id"},
        {25, LAC_KEY_REPEATS, "est. achieved occupancy %"},
    };
    enum { LONGEST = 25 };
    /* by length: the place of the first such key, from 1 on */
    static const uint8_t first[LONGEST + 1] = {
        [4] = 1,   [5] = 2,   [6] = 4,   [7] = 9,   [9] = 10,  [11] = 11, [12] = 14,
        [13] = 15, [15] = 17, [16] = 19, [18] = 21, [21] = 22, [25] = 23,
    };
    if (size_bytes > LONGEST || first[size_bytes] == 0) {
        return LAC_KEY_BY_LENGTH;
    }
    for (size_t i = first[size_bytes] - 1U; i < LAC_COUNT_OF(keys) && keys[i].length == size_bytes;
         i++) {
        if ((uint8_t)keys[i].text[0] == key[0] && memcmp(keys[i].text, key, size_bytes) == 0) {
            return (enum lac_key_class)keys[i].key_class;
        }
    }
    return LAC_KEY_BY_LENGTH;
}
