#include "collector/base/terminal_text.h"

#include "collector/base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 8, BAD_BYTE = 0x7fffffff };

/* The character at `at`; BAD_BYTE for what is none. */
static uint32_t decode(const unsigned char *at, size_t left, size_t *ret_taken)
{
    const uint32_t length = lac_utf8_length(at, at + left);

    *ret_taken = length > 0 ? length : 1;
    return length > 0 ? lac_utf8_code(at, length) : BAD_BYTE;
}

static bool steers(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* How the first character is shown. @return bytes in `out` */
static size_t show(const unsigned char *at, size_t left, char out[SHOWN_MAX], size_t *ret_taken)
{
    const uint32_t code = decode(at, left, ret_taken);

    if (code == BAD_BYTE || (code <= 0x9f && steers(code))) {
        return (size_t)snprintf(out, SHOWN_MAX, "\\x%02x",
                                code == BAD_BYTE ? at[0] : (unsigned)code);
    }
    if (steers(code)) {
        return (size_t)snprintf(out, SHOWN_MAX, "\\u%04x", (unsigned)code);
    }
    memcpy(out, at, *ret_taken);
    return *ret_taken;
}

size_t lac_terminal_text(const char *text, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    size_t taken;

    for (size_t at = 0; at < length && capacity > 0; at += taken) {
        char shown[SHOWN_MAX];
        const size_t size = show((const unsigned char *)text + at, length - at, shown, &taken);

        if (used + size + 1 > capacity) {
            break;
        }
        memcpy(out + used, shown, size);
        used += size;
    }
    if (capacity > 0) {
        out[used] = '\0';
    }
    return used;
}

const char *lac_terminal_string(const char *text, char *out, size_t capacity)
{
    (void)lac_terminal_text(text, strlen(text), out, capacity);
    return out;
}

void lac_terminal_print(FILE *stream, const char *text, size_t length)
{
    size_t taken;

    for (size_t at = 0; at < length; at += taken) {
        char shown[SHOWN_MAX];
        const size_t size = show((const unsigned char *)text + at, length - at, shown, &taken);

        (void)fwrite(shown, 1, size, stream);
    }
}
