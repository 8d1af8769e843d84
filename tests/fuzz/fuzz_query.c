/*
 * The request target and lists of ids: any bytes. What is accepted is clean: decoded text without
 * control characters, pieces inside the struct, ranges ascending and disjoint.
 */
#include "server/http/query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct lac_target *target, const char *text)
{
    const char *const low = (const char *)target;
    const char *const high = low + sizeof(*target);
    const size_t length = strlen(text);

    assert(text >= low && text + length < high);
    for (size_t i = 0; i < length; i++) {
        assert((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
    }
}

static void check_target(const char *raw, size_t size)
{
    static struct lac_target target;
    static struct lac_target again;
    struct lac_error error = {0};
    int64_t value = 0;

    if (lac_target_parse(raw, size, &target, &error) != LAC_OK) {
        assert(error.message[0] != '\0');
        return;
    }
    check_text(&target, target.path);
    assert(target.path[0] == '/' && strstr(target.path, "/../") == NULL);
    assert(target.pair_count <= LAC_QUERY_PAIRS_MAX);
    for (unsigned i = 0; i < target.pair_count; i++) {
        check_text(&target, target.pair[i].key);
        check_text(&target, target.pair[i].value);
        assert(lac_target_get(&target, target.pair[i].key) == target.pair[i].value);
        if (lac_target_int(&target, target.pair[i].key, -5, 5, 0, &value, &error) == LAC_OK) {
            assert(value >= -5 && value <= 5);
        }
    }
    /* the same bytes, the same answer */
    assert(lac_target_parse(raw, size, &again, &error) == LAC_OK);
    assert(strcmp(again.path, target.path) == 0 && again.pair_count == target.pair_count);
}

static void check_ranges(const char *text)
{
    struct lac_id_range ranges[16];
    struct lac_error error = {0};
    unsigned count = 0;
    uint64_t total = 0;

    if (lac_parse_ranges(text, 1000, ranges, 16, &count, &error) != LAC_OK) {
        assert(error.message[0] != '\0');
        return;
    }
    assert(count > 0 && count <= 16);
    for (unsigned i = 0; i < count; i++) {
        assert(ranges[i].first <= ranges[i].last);
        assert(i == 0 || (uint64_t)ranges[i].first > (uint64_t)ranges[i - 1].last + 1);
        total += (uint64_t)ranges[i].last - ranges[i].first + 1;
    }
    assert(total <= 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    check_ranges(text);
    check_target(text, size);
    free(text);
    return 0;
}
