#include "server/json/json_out.h"

#include "analysis/diagnose/result/cause.h"
#include "server/base/buffer.h"
#include "server/json/json_string.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_json_init(struct lac_json *json, struct lac_buffer *out)
{
    lac_json_init_form(json, out, LAC_JSON_REPLY);
}

void lac_json_init_form(struct lac_json *json, struct lac_buffer *out, enum lac_json_form form)
{
    *json = (struct lac_json){.out = out, .form = form};
}

void lac_json_line(struct lac_json *json)
{
    json->wants_line = true;
}

static void indent(struct lac_json *json)
{
    for (unsigned i = 0; i < json->depth; i++) {
        lac_buffer_add(json->out, "  ", 2);
    }
}

static void begin(struct lac_json *json, const char *key)
{
    if (json->needs_comma) {
        lac_buffer_add(json->out, ",", 1);
    }
    json->needs_comma = true;
    if (json->form == LAC_JSON_INDENTED && json->depth > 0) {
        lac_buffer_add(json->out, "\n", 1);
        indent(json);
    } else if (json->wants_line) {
        lac_buffer_add(json->out, "\n", 1);
    }
    json->wants_line = false;
    if (key != NULL) {
        lac_json_string(json->out, key, strlen(key), json->form == LAC_JSON_REPLY);
        lac_buffer_puts(json->out, json->form == LAC_JSON_INDENTED ? ": " : ":");
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
    json->depth--;
    if (json->form == LAC_JSON_INDENTED) {
        lac_buffer_add(json->out, "\n", 1);
        indent(json);
    } else if (json->wants_line) {
        lac_buffer_add(json->out, "\n", 1);
    }
    lac_buffer_add(json->out, &bracket, 1);
    json->needs_comma = true;
    json->wants_line = false;
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

void lac_json_optional(struct lac_json *json, const char *key, int64_t value)
{
    lac_json_ns(json, key, value < 0 ? LAC_UNKNOWN_NS : value);
}

void lac_json_ns(struct lac_json *json, const char *key, int64_t ns)
{
    if (ns == LAC_UNKNOWN_NS) {
        lac_json_null(json, key);
    } else {
        lac_json_int(json, key, ns);
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

void lac_json_decimals(struct lac_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        lac_json_null(json, key);
    } else {
        begin(json, key);
        lac_buffer_printf(json->out, "%.4f", value);
    }
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
    if (text == NULL) {
        lac_json_null(json, key);
    } else {
        lac_json_text_sized(json, key, text, strlen(text));
    }
}

void lac_json_text_sized(struct lac_json *json, const char *key, const char *text,
                         size_t size_bytes)
{
    begin(json, key);
    lac_json_string(json->out, text, size_bytes, json->form == LAC_JSON_REPLY);
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
    const char *const end = text + size_bytes;

    begin(json, key);
    while (json->form == LAC_JSON_INDENTED && text < end) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        if (line == NULL) {
            break;
        }
        lac_buffer_add(json->out, text, (size_t)(line + 1 - text));
        indent(json);
        text = line + 1;
    }
    lac_buffer_add(json->out, text, (size_t)(end - text));
}
