#include "collector/base/utf8.h"

#include <stdint.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

uint32_t lac_utf8_long_length(const uint8_t *p, const uint8_t *end)
{
    const size_t left = (size_t)(end - p);
    const uint8_t lead = left > 0 ? p[0] : 0;
    uint32_t length;

    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (left < length) {
        return 0;
    }
    for (uint32_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f) ||
        (lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return length;
}

uint32_t lac_utf8_code(const uint8_t *p, uint32_t length)
{
    uint32_t code = length == 1 ? p[0] : p[0] & (0x7fu >> length);

    for (uint32_t i = 1; i < length; i++) {
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code;
}

size_t lac_utf8_put(void *out, uint32_t code)
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    uint8_t *const to = out;

    for (size_t i = length - 1; i > 0; i--) {
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    to[0] = (uint8_t)(first[length] | code);
    return length;
}

bool lac_utf8_is_clean(const char *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text;
    const uint8_t *const end = p + length;

    while (p < end) {
        const uint32_t size = lac_utf8_length(p, end);
        const uint32_t code = size > 0 ? lac_utf8_code(p, size) : 0;

        if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
            return false;
        }
        p += size;
    }
    return true;
}

size_t lac_utf8_repair(const char *text, size_t length, char *out, size_t capacity,
                       size_t *ret_repaired_count)
{
    const uint8_t *p = (const uint8_t *)text;
    const uint8_t *const end = p + length;
    size_t repaired_count = 0;
    size_t used = 0;

    while (p < end) {
        const uint32_t size = *p == 0 ? 0 : lac_utf8_length(p, end);
        const size_t put = size > 0 ? size : sizeof(LAC_UTF8_REPLACEMENT) - 1;

        if (put > capacity - used) {
            break;
        }
        memcpy(out + used, size > 0 ? (const char *)p : LAC_UTF8_REPLACEMENT, put);
        used += put;
        p += size > 0 ? size : 1;
        repaired_count += size == 0;
    }
    if (ret_repaired_count != NULL) {
        *ret_repaired_count = repaired_count;
    }
    return used;
}

size_t lac_utf8_cut(const char *text, size_t length, size_t most)
{
    size_t end = length < most ? length : most;

    while (end > 0 && end < length && ((uint8_t)text[end] & 0xc0) == 0x80) {
        end--;
    }
    return end;
}

static uint32_t load_unit(const uint8_t *at, size_t unit_bytes)
{
    uint32_t unit = 0;

    memcpy(&unit, at, unit_bytes); /* text in a packed struct is not aligned */
    return unit;
}

size_t lac_utf8_from_units(const void *units, size_t unit_bytes, size_t unit_count, char *out,
                           size_t capacity)
{
    const uint8_t *const bytes = units;
    size_t used = 0;

    for (size_t i = 0; i < unit_count && used + LAC_UTF8_BYTES_MAX <= capacity; i++) {
        uint32_t code = load_unit(bytes + i * unit_bytes, unit_bytes);

        if (code == 0) {
            break;
        }
        if (code >= 0xd800 && code < 0xdc00 && i + 1 < unit_count) {
            const uint32_t low = load_unit(bytes + (i + 1) * unit_bytes, unit_bytes);

            if (low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                i++;
            }
        }
        used += lac_utf8_put(
            out + used, code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? REPLACEMENT : code);
    }
    return used;
}
