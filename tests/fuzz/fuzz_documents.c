/*
 * Any bytes as a small document from outside. What the server's reader takes is JSON by a parser of
 * this file that follows RFC 8259 to the letter, what that parser takes is refused for its depth or
 * length alone, and the members that the cursor finds in it are those that were read. What is
 * refused comes with a sentence. The cursor never leaves the bytes that it was given.
 */
#include "server/json/json_members.h"
#include "server/json/json_read.h"
#include "tests/support/json_mutator.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { DEPTH_MAX = 12 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* -- RFC 8259, plainly ------------------------------------------------------------------------- */

struct text {
    const uint8_t *at, *end;
};

static bool take(struct text *text, char c)
{
    const bool is_there = text->at < text->end && *text->at == (uint8_t)c;
    text->at += is_there;
    return is_there;
}

static void space(struct text *text)
{
    while (take(text, ' ') || take(text, '\t') || take(text, '\r') || take(text, '\n')) {
    }
}

static bool digits(struct text *text)
{
    const uint8_t *first = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9')
        text->at++;
    return text->at > first;
}

static bool number(struct text *text)
{
    (void)take(text, '-');
    if (!take(text, '0') && !digits(text))
        return false;
    if (take(text, '.') && !digits(text))
        return false;
    if (take(text, 'e') || take(text, 'E')) {
        if (!take(text, '+'))
            (void)take(text, '-');
        return digits(text);
    }
    return true;
}

static bool string(struct text *text)
{
    if (!take(text, '"'))
        return false;
    while (text->at < text->end && *text->at != '"') {
        if (*text->at < 0x20)
            return false;
        if (*text->at++ != '\\')
            continue;
        if (text->at == text->end || strchr("\"\\/bfnrtu", *text->at) == NULL || *text->at == 0)
            return false;
        if (*text->at++ == 'u') {
            for (int i = 0; i < 4; i++, text->at++) {
                if (text->at == text->end || *text->at == 0 ||
                    strchr("0123456789abcdefABCDEF", *text->at) == NULL)
                    return false;
            }
        }
    }
    return take(text, '"');
}

static bool word(struct text *text, const char *want)
{
    const size_t length = strlen(want);
    const bool is_it =
        (size_t)(text->end - text->at) >= length && memcmp(text->at, want, length) == 0;
    text->at += is_it ? length : 0;
    return is_it;
}

static bool value(struct text *text)
{
    const bool is_object = text->at < text->end && *text->at == '{';
    if (!take(text, '{') && !take(text, '['))
        return text->at < text->end &&
               (*text->at == '"'  ? string(text)
                : *text->at > '9' ? word(text, "true") || word(text, "false") || word(text, "null")
                                  : number(text));
    space(text);
    if (take(text, is_object ? '}' : ']'))
        return true;
    do {
        space(text);
        if (is_object) {
            if (!string(text))
                return false;
            space(text);
            if (!take(text, ':'))
                return false;
            space(text);
        }
        if (!value(text))
            return false;
        space(text);
    } while (take(text, ','));
    return take(text, is_object ? '}' : ']');
}

static bool is_json(const char *bytes, size_t size)
{
    struct text text = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
    space(&text);
    const bool is_value = value(&text);
    space(&text);
    return is_value && text.at == text.end;
}

/* -- what must hold ---------------------------------------------------------------------------- */

static const struct lac_json_limits limits = {.size_bytes_max = 1 << 16, .depth_max = DEPTH_MAX};

/* An object of ASCII that JSON allows. */
static bool is_plain_object(const char *bytes, size_t size)
{
    struct text text = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
    for (size_t i = 0; i < size; i++) {
        if ((uint8_t)bytes[i] >= 0x80)
            return false;
    }
    space(&text);
    return text.at < text.end && *text.at == '{' && is_json(bytes, size);
}

/* The cursor stays inside, and in an object that is JSON it finds members that are there. */
static void check_members(const char *bytes, size_t size, struct json_object *object)
{
    struct lac_json_members left = {bytes, bytes + size};
    struct lac_json_member member;
    const char *before = bytes;
    while (lac_json_member_next(&left, &member)) {
        struct lac_error error = {0};
        char key[64], text[64], missing[128];
        require(member.key > before && member.key + member.key_length < member.value);
        require(member.value_length > 0 && member.value + member.value_length <= bytes + size);
        before = member.value + member.value_length - 1;
        if (object == NULL)
            continue;
        require(is_json(member.key - 1, member.key_length + 2));
        require(is_json(member.value, member.value_length));
        if (member.key_length < sizeof(key) &&
            memchr(member.key, '\\', member.key_length) == NULL) {
            memcpy(key, member.key, member.key_length);
            key[member.key_length] = '\0';
            enum lac_status status = lac_json_read_text(object, key, text, sizeof(text), &error);
            (void)snprintf(missing, sizeof(missing), "\"%s\" is missing", key);
            require(status == LAC_OK || strcmp(error.message, missing) != 0);
            require(lac_json_has((struct lac_json_members){bytes, bytes + size}, key));
        }
    }
    /* nothing but its end is left of an object */
    require(object == NULL || memchr(left.at, '}', (size_t)(left.end - left.at)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + (size == 0)); /* no NUL at its end */
    struct json_object *object = NULL;
    struct lac_error error = {0};
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const enum lac_status status = lac_json_read(text, size, &limits, &object, &error);
    require((object != NULL) == (status == LAC_OK));
    if (status == LAC_OK) {
        require(is_json(text, size));
    } else {
        require(error.message[0] != '\0');
        require(status == LAC_ERR_LIMIT || !is_plain_object(text, size));
    }
    check_members(text, size, object);
    lac_json_read_done(object);
    free(text);
    return 0;
}

/* Half of the changes know what JSON is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t random = seed;
    size_t changed = 0;
    if (lac_mutator_draw(&random, 2) == 0)
        changed = lac_json_mutate(data, size, max_size, &random);
    return changed > 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
