#include "server/base/buffer.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_buffer_done(struct lac_buffer *buffer)
{
    const size_t limit = buffer->size_bytes_max;

    free(buffer->bytes);
    *buffer = (struct lac_buffer){.size_bytes_max = limit};
}

/* Room for `more` bytes and a NUL. */
static bool reserve(struct lac_buffer *buffer, size_t more)
{
    const size_t limit =
        (buffer->size_bytes_max != 0) ? buffer->size_bytes_max : LAC_BUFFER_BYTES_MAX;
    size_t capacity;
    char *bytes;

    if (buffer->status != LAC_OK) {
        return false;
    }
    if (more > limit || buffer->size_bytes > limit - more) {
        buffer->status = LAC_ERR_LIMIT;
        return false;
    }
    if (buffer->size_bytes + more + 1 <= buffer->capacity_bytes) {
        return true;
    }
    capacity = (buffer->capacity_bytes < 256) ? 256 : buffer->capacity_bytes;
    while (capacity < buffer->size_bytes + more + 1) {
        capacity *= 2; /* at most twice the limit, far below SIZE_MAX */
    }
    bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        buffer->status = LAC_ERR_NOMEM;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity_bytes = capacity;
    return true;
}

void lac_buffer_add(struct lac_buffer *buffer, const void *bytes, size_t size_bytes)
{
    if (size_bytes == 0 || !reserve(buffer, size_bytes)) {
        return;
    }
    memcpy(buffer->bytes + buffer->size_bytes, bytes, size_bytes);
    buffer->size_bytes += size_bytes;
    buffer->bytes[buffer->size_bytes] = '\0';
}

void lac_buffer_puts(struct lac_buffer *buffer, const char *text)
{
    lac_buffer_add(buffer, text, strlen(text));
}

void lac_buffer_printf(struct lac_buffer *buffer, const char *fmt, ...)
{
    va_list args;
    int length;

    va_start(args, fmt);
    length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(length >= 0);
    if (length < 0 || !reserve(buffer, (size_t)length)) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(buffer->bytes + buffer->size_bytes, (size_t)length + 1, fmt, args);
    va_end(args);
    buffer->size_bytes += (size_t)length;
}

void lac_buffer_int(struct lac_buffer *buffer, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t rest = (value < 0) ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    lac_buffer_add(buffer, digits + at, sizeof(digits) - at);
}

/* Length of the UTF-8 sequence at `text`, 0 when it is not a valid one. */
static size_t utf8_length(const unsigned char *text, size_t rest)
{
    const unsigned char c = text[0];
    size_t length;

    if (c < 0x80) {
        return 1;
    }
    if (c < 0xc2 || c > 0xf4) {
        return 0;
    }
    length = (c < 0xe0) ? 2 : (c < 0xf0) ? 3 : 4;
    if (rest < length) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f)) {
        return 0; /* overlong, surrogate or above U+10FFFF */
    }
    return length;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

static void add_escape(struct lac_buffer *buffer, unsigned char c)
{
    switch (c) {
    case '"':
        lac_buffer_add(buffer, "\\\"", 2);
        break;
    case '\\':
        lac_buffer_add(buffer, "\\\\", 2);
        break;
    case '\n':
        lac_buffer_add(buffer, "\\n", 2);
        break;
    case '\t':
        lac_buffer_add(buffer, "\\t", 2);
        break;
    default: {
        static const char hex[] = "0123456789abcdef";
        const char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        lac_buffer_add(buffer, text, sizeof(text));
        break;
    }
    }
}

void lac_buffer_json_string(struct lac_buffer *buffer, const char *text, size_t size_bytes)
{
    const unsigned char *const bytes = (const unsigned char *)text;
    size_t i = 0;

    lac_buffer_add(buffer, "\"", 1);
    while (i < size_bytes) {
        size_t plain = i;

        while (plain < size_bytes && is_plain(bytes[plain])) {
            plain++;
        }
        lac_buffer_add(buffer, bytes + i, plain - i);
        i = plain;
        if (i == size_bytes) {
            break;
        }
        if (bytes[i] < 0x80) {
            add_escape(buffer, bytes[i]);
            i++;
        } else {
            const size_t length = utf8_length(bytes + i, size_bytes - i);

            if (length == 0) {
                lac_buffer_add(buffer, "\\ufffd", 6);
                i++;
            } else if (length == 3 && bytes[i] == 0xe2 && bytes[i + 1] == 0x80 &&
                       (bytes[i + 2] & 0xfe) == 0xa8) {
                lac_buffer_puts(buffer, bytes[i + 2] == 0xa8 ? "\\u2028" : "\\u2029");
                i += length;
            } else {
                lac_buffer_add(buffer, bytes + i, length);
                i += length;
            }
        }
    }
    lac_buffer_add(buffer, "\"", 1);
}
