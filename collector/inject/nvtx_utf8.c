#include "collector/inject/nvtx_private.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd, CHARACTER_BYTES_MAX = 4 };

static uint32_t load_unit(const uint8_t *at, size_t unit_bytes)
{
    uint32_t unit = 0;

    memcpy(&unit, at, unit_bytes); /* little endian; text in a packed struct is not aligned */
    return unit;
}

static size_t put_character(char *out, uint32_t c)
{
    size_t used = 0;

    if (c < 0x80) {
        out[used++] = (char)c;
        return used;
    }
    if (c < 0x800) {
        out[used++] = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            out[used++] = (char)(0xe0 | c >> 12);
        } else {
            out[used++] = (char)(0xf0 | c >> 18);
            out[used++] = (char)(0x80 | (c >> 12 & 0x3f));
        }
        out[used++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    out[used++] = (char)(0x80 | (c & 0x3f));
    return used;
}

size_t lac_utf8_from_units(const void *units, size_t unit_bytes, size_t unit_count, char *out,
                           size_t capacity)
{
    const uint8_t *const bytes = units;
    size_t used = 0;

    if (unit_bytes == 1) { /* in the program's encoding, which a reader checks */
        const size_t length = strnlen(units, unit_count < capacity ? unit_count : capacity);

        memcpy(out, units, length);
        return length;
    }
    for (size_t i = 0; i < unit_count && used + CHARACTER_BYTES_MAX <= capacity; i++) {
        uint32_t c = load_unit(bytes + i * unit_bytes, unit_bytes);

        if (c == 0) {
            break;
        }
        if (c >= 0xd800 && c < 0xdc00 && i + 1 < unit_count) {
            const uint32_t low = load_unit(bytes + (i + 1) * unit_bytes, unit_bytes);

            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                i++;
            }
        }
        c = c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? REPLACEMENT : c;
        used += put_character(out + used, c);
    }
    return used;
}
