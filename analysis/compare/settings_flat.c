#include "analysis/compare/settings_flat.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, KEY_BYTES = 96, VALUE_BYTES = 400 };

/** Who is told. */
struct telling {
    lac_setting_sink sink;
    void *context;
};

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static void tell(const struct telling *telling, const char *key, const char *text, size_t length)
{
    char value[VALUE_BYTES];
    (void)snprintf(value, sizeof value, "%.*s", (int)(length < 4096 ? length : 4096), text);
    telling->sink(telling->context, key, value);
}

/** Past a string at `at`; its raw text between the quotes into `out`. NULL when it is none. */
static const char *read_string(const char *at, char *out, size_t capacity_bytes)
{
    if (*at != '"') {
        return NULL;
    }
    const char *first = ++at;
    while (*at != '\0' && *at != '"') {
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    (void)snprintf(out, capacity_bytes, "%.*s", (int)(at - first < 4096 ? at - first : 4096),
                   first);
    return *at == '"' ? at + 1 : NULL;
}

static const char *read_value(const struct telling *telling, const char *key, const char *at,
                              int depth);

static const char *read_object(const struct telling *telling, const char *prefix, const char *at,
                               int depth)
{
    at = skip_space(at + 1);
    while (*at != '}') {
        char name[KEY_BYTES];
        char key[2 * KEY_BYTES];
        at = read_string(at, name, sizeof name);
        if (!at) {
            return NULL;
        }
        at = skip_space(at);
        if (*at != ':') {
            return NULL;
        }
        (void)snprintf(key, sizeof key, "%s%s%s", prefix, *prefix != '\0' ? "." : "", name);
        at = read_value(telling, key, skip_space(at + 1), depth + 1);
        if (!at) {
            return NULL;
        }
        at = skip_space(at);
        if (*at == ',') {
            at = skip_space(at + 1);
        } else if (*at != '}') {
            return NULL;
        }
    }
    return at + 1;
}

/** Past a list, whose text is one value. */
static const char *read_list(const struct telling *telling, const char *key, const char *at)
{
    const char *first = at;
    int depth = 0;
    char text[8];
    do {
        depth += *at == '[' || *at == '{' ? 1 : *at == ']' || *at == '}' ? -1 : 0;
        at = *at == '"' ? read_string(at, text, sizeof text) : at + 1;
    } while (at && *at != '\0' && depth > 0);
    if (at && depth == 0) {
        tell(telling, key, first, (size_t)(at - first));
        return at;
    }
    return NULL;
}

static const char *read_value(const struct telling *telling, const char *key, const char *at,
                              int depth)
{
    if (depth > DEPTH_MAX) {
        return NULL;
    }
    if (*at == '{') {
        return read_object(telling, key, at, depth);
    }
    if (*at == '[') {
        return read_list(telling, key, at);
    }
    if (*at == '"') {
        char value[VALUE_BYTES];
        at = read_string(at, value, sizeof value);
        if (at) {
            telling->sink(telling->context, key, value);
        }
        return at;
    }
    size_t length = strcspn(at, ",}] \t\r\n");
    if (length == 0) {
        return NULL;
    }
    if (length != 4 || memcmp(at, "null", 4) != 0) {
        bool is_true = length == 4 && memcmp(at, "true", 4) == 0;
        bool is_false = length == 5 && memcmp(at, "false", 5) == 0;
        if (is_true || is_false) {
            telling->sink(telling->context, key, is_true ? "on" : "off");
        } else {
            tell(telling, key, at, length);
        }
    }
    return at + length;
}

void lac_settings_each(const char *settings_json, lac_setting_sink sink, void *context)
{
    const struct telling telling = {sink, context};
    const char *text = skip_space(settings_json);
    if (*text == '{') {
        (void)read_object(&telling, "", text, 0);
    }
}
