#include "server/json/json_members.h"

#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/** Past the string at `at`, or NULL. */
static const char *skip_string(const char *at)
{
    if (*at != '"') {
        return NULL;
    }
    for (at++; *at != '"'; at++) {
        if (*at == '\\') {
            at++;
        }
        if (*at == '\0') {
            return NULL;
        }
    }
    return at + 1;
}

/** Past the value at `at`, or NULL. */
static const char *skip_value(const char *at)
{
    size_t depth = 0;
    do {
        at = skip_space(at);
        if (*at == '"') {
            at = skip_string(at);
            if (!at) {
                return NULL;
            }
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) {
                return NULL;
            }
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            if (depth == 0) {
                return NULL;
            }
            at++;
        } else {
            size_t length = strcspn(at, ",:{}[]\" \t\r\n");
            if (length == 0) {
                return NULL;
            }
            at += length;
        }
    } while (depth > 0);
    return at;
}

bool lac_json_member_next(const char **at, struct lac_json_member *ret_member)
{
    const char *here = skip_space(*at);
    if (*here != '{' && *here != ',') {
        return false;
    }
    const char *key = skip_space(here + 1);
    const char *key_end = skip_string(key);
    const char *value = key_end ? skip_space(key_end) : NULL;
    if (!value || *value != ':') {
        return false;
    }
    value = skip_space(value + 1);
    const char *end = skip_value(value);
    if (!end) {
        return false;
    }
    *ret_member = (struct lac_json_member){key + 1, (size_t)(key_end - key) - 2, value,
                                           (size_t)(end - value)};
    *at = skip_space(end);
    return true;
}

bool lac_json_member_is(const struct lac_json_member *member, const char *key)
{
    return strlen(key) == member->key_length && memcmp(key, member->key, member->key_length) == 0;
}

bool lac_json_has(const char *object, const char *key)
{
    struct lac_json_member member;
    while (lac_json_member_next(&object, &member)) {
        if (lac_json_member_is(&member, key)) {
            return true;
        }
    }
    return false;
}
