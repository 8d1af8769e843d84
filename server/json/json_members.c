#include "server/json/json_members.h"

#include "analysis/import/text/json_text.h"
#include "server/json/json_out.h"
#include "server/json/json_words.h"

#include <stdint.h>
#include <string.h>

/** Past the string at `at`, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
    if (at >= end || *at != '"') {
        return NULL;
    }
    const uint8_t *quote = lac_json_string_end((const uint8_t *)at + 1, (const uint8_t *)end);
    return quote != NULL ? (const char *)quote + 1 : NULL;
}

/** Past the value at `at`, or NULL: up to what ends it on its own level. */
static const char *skip_value(const char *at, const char *end)
{
    const char *first = at;
    size_t depth = 0;
    while (at != NULL && at < end) {
        const char c = *at;
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || lac_json_is_space(c))) {
            break;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at = c == '"' ? skip_string(at, end) : at + 1;
        if (depth == 0 && (c == '}' || c == ']' || c == '"')) {
            break;
        }
    }
    return at != NULL && at > first && depth == 0 ? at : NULL;
}

bool lac_json_member_next(struct lac_json_members *members, struct lac_json_member *ret_member)
{
    const char *const end = members->end;
    const char *at = lac_json_skip_space(members->at, end);
    if (at >= end || (*at != '{' && *at != ',')) {
        return false;
    }
    const char *key = lac_json_skip_space(at + 1, end);
    const char *key_end = skip_string(key, end);
    at = key_end != NULL ? lac_json_skip_space(key_end, end) : end;
    if (at >= end || *at != ':') {
        return false;
    }
    const char *value = lac_json_skip_space(at + 1, end);
    at = skip_value(value, end);
    if (at == NULL) {
        return false;
    }
    *ret_member =
        (struct lac_json_member){key + 1, (size_t)(key_end - key) - 2, value, (size_t)(at - value)};
    members->at = at;
    return true;
}

bool lac_json_member_is(const struct lac_json_member *member, const char *key)
{
    return strlen(key) == member->key_length && memcmp(key, member->key, member->key_length) == 0;
}

void lac_json_member(struct lac_json *json, const struct lac_json_member *member)
{
    const char *quote = member->key - 1;
    lac_json_raw(json, NULL, quote, (size_t)(member->value + member->value_length - quote));
}

bool lac_json_has(struct lac_json_members members, const char *key)
{
    struct lac_json_member member;
    while (lac_json_member_next(&members, &member)) {
        if (lac_json_member_is(&member, key)) {
            return true;
        }
    }
    return false;
}
