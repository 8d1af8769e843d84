#include "server/json/json_out.h"

#include "server/base/buffer.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_json_init(struct lac_json *json, struct lac_buffer *out)
{
    *json = (struct lac_json){.out = out};
}

static void begin(struct lac_json *json, const char *key)
{
    if (json->needs_comma) {
        lac_buffer_add(json->out, ",", 1);
    }
    json->needs_comma = true;
    if (key != NULL) {
        lac_buffer_add(json->out, "\"", 1);
        lac_buffer_puts(json->out, key);
        lac_buffer_add(json->out, "\":", 2);
    }
}

void lac_json_open(struct lac_json *json, const char *key, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin(json, key);
    lac_buffer_add(json->out, &bracket, 1);
    json->needs_comma = false;
    json->depth++;
}

void lac_json_close(struct lac_json *json, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    assert(json->depth > 0);
    lac_buffer_add(json->out, &bracket, 1);
    json->needs_comma = true;
    json->depth--;
}

void lac_json_int(struct lac_json *json, const char *key, int64_t value)
{
    begin(json, key);
    lac_buffer_int(json->out, value);
}

void lac_json_uint(struct lac_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    if (value <= (uint64_t)INT64_MAX) {
        lac_buffer_int(json->out, (int64_t)value);
    } else {
        lac_buffer_printf(json->out, "%llu", (unsigned long long)value);
    }
}

void lac_json_real(struct lac_json *json, const char *key, double value)
{
    char text[40];

    begin(json, key);
    if (!isfinite(value)) {
        lac_buffer_add(json->out, "null", 4);
        return;
    }
    /* the shortest form that reads back the same */
    for (int digits = 6; digits <= 17; digits += (digits < 15) ? 9 : 2) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    lac_buffer_puts(json->out, text);
}

void lac_json_bool(struct lac_json *json, const char *key, bool value)
{
    begin(json, key);
    lac_buffer_puts(json->out, value ? "true" : "false");
}

void lac_json_null(struct lac_json *json, const char *key)
{
    begin(json, key);
    lac_buffer_add(json->out, "null", 4);
}

void lac_json_text(struct lac_json *json, const char *key, const char *text)
{
    begin(json, key);
    if (text == NULL) {
        lac_buffer_add(json->out, "null", 4);
    } else {
        lac_buffer_json_string(json->out, text, strlen(text));
    }
}

void lac_json_int_text(struct lac_json *json, const char *key, int64_t value)
{
    begin(json, key);
    lac_buffer_add(json->out, "\"", 1);
    lac_buffer_int(json->out, value);
    lac_buffer_add(json->out, "\"", 1);
}

void lac_json_raw(struct lac_json *json, const char *key, const char *text, size_t size_bytes)
{
    begin(json, key);
    lac_buffer_add(json->out, text, size_bytes);
}
