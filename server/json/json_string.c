#include "server/json/json_string.h"

#include "collector/base/utf8.h"
#include "server/base/buffer.h"

#include <stdint.h>
#include <string.h>

static bool is_plain(uint8_t c, bool is_reply)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' &&
           !(is_reply && (c == '<' || c == '>' || c == '&' || c == 0x7f));
}

static void add_escape(struct lac_buffer *out, uint8_t c, bool is_reply)
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\n\t\b\f\r";
    static const char to[] = "\"\\ntbfr";
    /* replies have always had the numbers of the last three */
    const char *known = c != '\0' ? strchr(from, c) : NULL;
    if (known != NULL && !(is_reply && known - from >= 4)) {
        const char text[2] = {'\\', to[known - from]};
        lac_buffer_add(out, text, sizeof(text));
    } else {
        const char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        lac_buffer_add(out, text, sizeof(text));
    }
}

void lac_json_string(struct lac_buffer *out, const char *text, size_t size_bytes, bool is_reply)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *const end = at + size_bytes;

    lac_buffer_add(out, "\"", 1);
    while (at < end) {
        const uint8_t *plain = at;
        while (at < end && is_plain(*at, is_reply)) {
            at++;
        }
        lac_buffer_add(out, plain, (size_t)(at - plain));
        if (at == end) {
            break;
        }
        if (*at < 0x80) {
            add_escape(out, *at++, is_reply);
            continue;
        }
        const uint32_t length = lac_utf8_length(at, end);
        if (length == 0) {
            lac_buffer_add(out, "\\ufffd", 6);
            at++;
        } else if (is_reply && length == 3 && memcmp(at, "\xe2\x80", 2) == 0 &&
                   (at[2] & 0xfe) == 0xa8) {
            lac_buffer_puts(out, at[2] == 0xa8 ? "\\u2028" : "\\u2029");
            at += length;
        } else {
            lac_buffer_add(out, at, length);
            at += length;
        }
    }
    lac_buffer_add(out, "\"", 1);
}
