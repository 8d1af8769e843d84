#include "server/http/query.h"

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Decode [raw, end) to `out`, NUL-terminated. In a query '+' is a space; in a path an encoded '/'
 * is refused, because it would change which route matches.
 */
static enum lac_status decode(const char *raw, const char *end, bool is_query, char *out,
                              size_t *ret_size, struct lac_error *reterr)
{
    size_t size = 0;

    for (const char *c = raw; c < end; c++) {
        char byte = *c;

        if (byte == '%') {
            const int high = (end - c > 2) ? lac_hex_digit(c[1]) : -1;
            const int low = (end - c > 2) ? lac_hex_digit(c[2]) : -1;

            if (high < 0 || low < 0) {
                return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                                "the address has a %% that two hexadecimal digits do not follow");
            }
            byte = (char)(high * 16 + low);
            if (byte == '\0') {
                return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the address has %%00 in it");
            }
            if (!is_query && byte == '/') {
                return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the path has an encoded '/' in it");
            }
            c += 2;
        } else if (is_query && byte == '+') {
            byte = ' ';
        }
        out[size++] = byte;
    }
    out[size] = '\0';
    if (!lac_utf8_is_clean(out, size)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "the address has control characters or bytes that are not UTF-8");
    }
    *ret_size = size;
    return LAC_OK;
}

static enum lac_status check_segments(const char *path, struct lac_error *reterr)
{
    const char *segment = path + 1;

    while (true) {
        const size_t length = strcspn(segment, "/");

        if ((length == 1 && segment[0] == '.') ||
            (length == 2 && segment[0] == '.' && segment[1] == '.')) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the path has '.' or '..' in it");
        }
        if (segment[length] == '\0') {
            return LAC_OK; /* an empty last segment is a folder: "/" */
        }
        if (length == 0) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the path has '//' in it");
        }
        segment += length + 1;
    }
}

static enum lac_status parse_pairs(const char *raw, const char *end, struct lac_target *target,
                                   struct lac_error *reterr)
{
    size_t used = 0;

    while (raw < end) {
        const char *stop = memchr(raw, '&', (size_t)(end - raw));
        const char *equals;
        size_t size = 0;

        stop = (stop == NULL) ? end : stop;
        if (stop == raw) {
            raw = stop + 1;
            continue; /* "a=1&&b=2" */
        }
        if (target->pair_count == LAC_QUERY_PAIRS_MAX) {
            return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the address has more than %d parameters",
                            LAC_QUERY_PAIRS_MAX);
        }
        equals = memchr(raw, '=', (size_t)(stop - raw));
        equals = (equals == NULL) ? stop : equals;

        char *const key = target->text + used;
        enum lac_status status = decode(raw, equals, true, key, &size, reterr);
        if (status != LAC_OK) {
            return status;
        }
        used += size + 1;
        char *const value = target->text + used;
        status = decode(equals < stop ? equals + 1 : stop, stop, true, value, &size, reterr);
        if (status != LAC_OK) {
            return status;
        }
        used += size + 1;
        if (lac_target_get(target, key) != NULL) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the address gives one parameter twice");
        }
        target->pair[target->pair_count].key = key;
        target->pair[target->pair_count].value = value;
        target->pair_count++;
        raw = stop + 1;
    }
    return LAC_OK;
}

enum lac_status lac_target_parse(const char *raw, size_t size_bytes, struct lac_target *ret_target,
                                 struct lac_error *reterr)
{
    const char *const end = raw + size_bytes;
    const char *mark;
    size_t size;
    enum lac_status status;

    ret_target->pair_count = 0;
    if (size_bytes > LAC_TARGET_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the address is longer than %d bytes",
                        LAC_TARGET_BYTES_MAX);
    }
    if (size_bytes == 0 || raw[0] != '/') {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the address does not start with '/'");
    }
    if (memchr(raw, '\0', size_bytes) != NULL || memchr(raw, '#', size_bytes) != NULL) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the address has a NUL or '#' in it");
    }
    mark = memchr(raw, '?', size_bytes);
    mark = (mark == NULL) ? end : mark;
    status = decode(raw, mark, false, ret_target->path, &size, reterr);
    if (status != LAC_OK) {
        return status;
    }
    status = check_segments(ret_target->path, reterr);
    if (status != LAC_OK) {
        return status;
    }
    return parse_pairs(mark < end ? mark + 1 : end, end, ret_target, reterr);
}

const char *lac_target_get(const struct lac_target *target, const char *key)
{
    assert(target != NULL && key != NULL);
    for (unsigned i = 0; i < target->pair_count; i++) {
        if (strcmp(target->pair[i].key, key) == 0) {
            return target->pair[i].value;
        }
    }
    return NULL;
}

bool lac_parse_uint(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool lac_parse_int(const char *text, int64_t *ret_value)
{
    const bool negative = text[0] == '-';
    uint64_t value = 0;

    if (!lac_parse_uint(text + (negative ? 1 : 0), &value) || value > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret_value = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

enum lac_status lac_target_int(const struct lac_target *target, const char *key, int64_t low,
                               int64_t high, int64_t fallback, int64_t *ret_value,
                               struct lac_error *reterr)
{
    assert(target != NULL && key != NULL && ret_value != NULL);
    const char *text = lac_target_get(target, key);
    int64_t value = fallback;

    if (text != NULL && (!lac_parse_int(text, &value) || value < low || value > high)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%s must be a whole number from %" PRId64 " to %" PRId64, key, low, high);
    }
    *ret_value = value;
    return LAC_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct lac_id_range *x = a;
    const struct lac_id_range *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* One "N" or "N-M" at *text; moves *text after it. */
static bool parse_range(const char **text, struct lac_id_range *ret_range)
{
    uint64_t bound[2] = {0, 0};
    unsigned count = 0;

    while (true) {
        const char *c = *text;

        while (*c >= '0' && *c <= '9' && c - *text < 10) {
            bound[count] = bound[count] * 10 + (uint64_t)(*c - '0');
            c++;
        }
        if (c == *text || bound[count] >= UINT32_MAX) {
            return false;
        }
        *text = c;
        count++;
        if (count == 2 || *c != '-') {
            break;
        }
        *text = c + 1;
    }
    ret_range->first = (uint32_t)bound[0];
    ret_range->last = (uint32_t)bound[count - 1];
    return ret_range->first <= ret_range->last;
}

enum lac_status lac_parse_ranges(const char *text, uint64_t ids_max, struct lac_id_range *ranges,
                                 unsigned capacity, unsigned *ret_count, struct lac_error *reterr)
{
    assert(text != NULL && ranges != NULL && ret_count != NULL);
    assert(capacity > 0);
    unsigned count = 0;
    unsigned merged = 0;
    uint64_t total = 0;

    while (true) {
        if (count == capacity) {
            return lac_fail(reterr, LAC_ERR_LIMIT, 0, "a list has more than %u entries", capacity);
        }
        if (!parse_range(&text, &ranges[count])) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a list must look like 1,4-9");
        }
        count++;
        if (*text == '\0') {
            break;
        }
        if (*text != ',') {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a list must look like 1,4-9");
        }
        text++;
    }
    qsort(ranges, count, sizeof(ranges[0]), compare_ranges);
    for (unsigned i = 1; i < count; i++) {
        if (ranges[i].first <= ranges[merged].last + 1) { /* last < UINT32_MAX */
            if (ranges[i].last > ranges[merged].last) {
                ranges[merged].last = ranges[i].last;
            }
        } else {
            ranges[++merged] = ranges[i];
        }
    }
    for (unsigned i = 0; i <= merged; i++) {
        total += (uint64_t)ranges[i].last - ranges[i].first + 1;
    }
    if (total > ids_max) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "a list names %" PRIu64 " ids, at most %" PRIu64,
                        total, ids_max);
    }
    *ret_count = merged + 1;
    return LAC_OK;
}
