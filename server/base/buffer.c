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
