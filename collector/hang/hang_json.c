#include "collector/hang/hang_json.h"

#include "collector/base/utf8.h"
#include "collector/hang/hang_verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The server's limit, with a NUL. */
enum { VALUE_BYTES = 512 };

struct out {
    char *text;
    size_t used;
    bool is_full;
};

static void put(struct out *out, const char *bytes, size_t size)
{
    if (size >= LAC_HANG_JSON_BYTES - out->used) {
        out->is_full = true;
        return;
    }
    memcpy(out->text + out->used, bytes, size);
    out->used += size;
    out->text[out->used] = '\0';
}

/* A text was cut somewhere, and paths hold any bytes: what is no character becomes a question mark. */
static void put_text(struct out *out, const char *key, const char *value, size_t capacity)
{
    const uint8_t *at = (const uint8_t *)value;
    const uint8_t *const end = at + strnlen(value, capacity - 1);
    char begin[32];

    (void)snprintf(begin, sizeof(begin), ",\"%s\":\"", key);
    put(out, begin, strlen(begin));
    while (at < end) {
        const uint32_t length = lac_utf8_length(at, end);

        if (length == 0) {
            put(out, "?", 1);
        } else if (*at < ' ' || *at == 0x7f) {
            put(out, " ", 1);
        } else {
            if (*at == '"' || *at == '\\') {
                put(out, "\\", 1);
            }
            put(out, (const char *)at, length);
        }
        at += length > 0 ? length : 1;
    }
    put(out, "\"", 1);
}

bool lac_hang_json(const struct lac_hang_verdict *verdict, double quiet_s, uint64_t steps,
                   char text[LAC_HANG_JSON_BYTES])
{
    assert(verdict != NULL && text != NULL);
    const char *const doing = verdict->doing[0] != '\0' ? verdict->doing : "no process trains";
    struct out out = {.text = text};
    char numbers[128];

    (void)snprintf(numbers, sizeof(numbers), "{\"after_s\":%.0f,\"steps\":%" PRIu64 ",\"rank\":%d",
                   quiet_s, steps < (UINT64_C(1) << 53) ? steps : 0, (int)verdict->rank);
    text[0] = '\0';
    put(&out, numbers, strlen(numbers));
    put_text(&out, "doing", doing, VALUE_BYTES);
    put_text(&out, "where", verdict->where, VALUE_BYTES);
    put_text(&out, "source", verdict->source, sizeof(verdict->source));
    put_text(&out, "others", verdict->others, VALUE_BYTES);
    put(&out, "}", 1);
    return !out.is_full;
}
