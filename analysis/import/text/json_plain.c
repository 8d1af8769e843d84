#include "analysis/import/text/json_plain.h"

#include "analysis/import/text/json_text.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const uint8_t *begin, *at, *end;
    struct lac_plain_heap *heap;
    struct lac_error *reterr;
};

static uint64_t offset_of(const struct parser *parser)
{
    return (uint64_t)(parser->at - parser->begin);
}

static enum lac_status broken(const struct parser *parser, const char *what)
{
    return lac_fail(parser->reterr, LAC_ERR_CORRUPT, offset_of(parser), "no JSON: %s", what);
}

static enum lac_status no_room(const struct parser *parser)
{
    return lac_plain_failed(parser->heap, offset_of(parser), parser->reterr);
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\n' ||
                                        *parser->at == '\r' || *parser->at == '\t')) {
        parser->at++;
    }
}

static bool take(struct parser *parser, char c)
{
    skip_space(parser);
    if (parser->at < parser->end && *parser->at == (uint8_t)c) {
        parser->at++;
        return true;
    }
    return false;
}

static enum lac_status read_text(struct parser *parser, struct lac_plain **ret_value)
{
    const uint8_t *const text = parser->at; /* past its quote */
    const uint8_t *const quote = lac_json_string_end(text, parser->end);
    struct lac_json_repairs repairs = {0};
    if (quote == NULL) {
        return broken(parser, "a text does not end");
    }
    const size_t size = (size_t)(quote - text);
    struct lac_plain *const value = lac_plain_new(parser->heap, LAC_PLAIN_TEXT);
    char *const room =
        value != NULL && size <= UINT32_MAX / 4 ? lac_plain_room(parser->heap, 3 * size + 4) : NULL;
    if (room == NULL) {
        return no_room(parser);
    }
    value->count = (uint32_t)lac_json_string_decode(text, size, (uint8_t *)room, &repairs);
    value->text = room;
    parser->at = quote + 1;
    *ret_value = value;
    return LAC_OK;
}

static bool take_word(struct parser *parser, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(parser->end - parser->at) >= length && memcmp(parser->at, word, length) == 0) {
        parser->at += length;
        return true;
    }
    return false;
}

static enum lac_status read_number(struct parser *parser, struct lac_plain **ret_value)
{
    char text[64];
    size_t length = 0;
    bool is_whole = true;
    while (parser->at + length < parser->end && length < sizeof(text) - 1 &&
           memchr("+-.0123456789eE", parser->at[length], 15) != NULL) {
        text[length] = (char)parser->at[length];
        is_whole = is_whole && memchr(".eE", text[length], 3) == NULL;
        length++;
    }
    text[length] = '\0';
    int64_t integer = 0;
    char *end = text;
    is_whole = is_whole && lac_decimal_integer((const uint8_t *)text, length, &integer);
    const double real = is_whole ? 0.0 : strtod(text, &end);
    if (length == 0 || (!is_whole && (end == text || *end != '\0'))) {
        return broken(parser, "a value is none");
    }
    struct lac_plain *const value =
        lac_plain_new(parser->heap, is_whole ? LAC_PLAIN_INT : LAC_PLAIN_REAL);
    if (value == NULL) {
        return no_room(parser);
    }
    if (is_whole) {
        value->integer = integer;
    } else {
        value->real = real;
    }
    parser->at += length;
    *ret_value = value;
    return LAC_OK;
}

static enum lac_status read_word(struct parser *parser, struct lac_plain **ret_value)
{
    static const struct {
        const char *word;
        enum lac_plain_kind kind;
        int integer;
        double real;
    } words[] = {{"null", LAC_PLAIN_NONE, 0, 0.0},
                 {"true", LAC_PLAIN_BOOL, 1, 0.0},
                 {"false", LAC_PLAIN_BOOL, 0, 0.0},
                 {"NaN", LAC_PLAIN_REAL, 0, (double)NAN},
                 {"Infinity", LAC_PLAIN_REAL, 0, (double)INFINITY},
                 {"-Infinity", LAC_PLAIN_REAL, 0, -(double)INFINITY}};
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (take_word(parser, words[i].word)) {
            struct lac_plain *const value = lac_plain_new(parser->heap, words[i].kind);
            if (value == NULL) {
                return no_room(parser);
            }
            if (words[i].kind == LAC_PLAIN_REAL) {
                value->real = words[i].real;
            } else {
                value->integer = words[i].integer;
            }
            *ret_value = value;
            return LAC_OK;
        }
    }
    return read_number(parser, ret_value);
}

static enum lac_status read_value(struct parser *parser, uint32_t depth,
                                  struct lac_plain **ret_value);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_items(struct parser *parser, uint32_t depth, bool is_dict,
                                  struct lac_plain **ret_value)
{
    struct lac_plain *const list =
        lac_plain_new(parser->heap, is_dict ? LAC_PLAIN_DICT : LAC_PLAIN_LIST);
    const char close = is_dict ? '}' : ']';
    enum lac_status status = list != NULL ? LAC_OK : no_room(parser);
    *ret_value = list;
    if (status != LAC_OK || take(parser, close)) {
        return status;
    }
    do {
        struct lac_plain *item = NULL;
        if (is_dict) {
            status = take(parser, '"') ? read_text(parser, &item) : broken(parser, "a key is none");
            if (status == LAC_OK && lac_plain_append(parser->heap, list, item) != LAC_OK) {
                status = no_room(parser);
            }
            if (status == LAC_OK && !take(parser, ':')) {
                status = broken(parser, "a key without a value");
            }
        }
        status = status == LAC_OK ? read_value(parser, depth + 1, &item) : status;
        if (status == LAC_OK && lac_plain_append(parser->heap, list, item) != LAC_OK) {
            status = no_room(parser);
        }
    } while (status == LAC_OK && take(parser, ','));
    return status == LAC_OK && !take(parser, close) ? broken(parser, "a bracket does not close")
                                                    : status;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_value(struct parser *parser, uint32_t depth,
                                  struct lac_plain **ret_value)
{
    if (depth > parser->heap->limits.depth_max) {
        return lac_fail(parser->reterr, LAC_ERR_LIMIT, offset_of(parser),
                        "JSON that nests more than %u deep", parser->heap->limits.depth_max);
    }
    if (take(parser, '{')) {
        return read_items(parser, depth, true, ret_value);
    }
    if (take(parser, '[')) {
        return read_items(parser, depth, false, ret_value);
    }
    return take(parser, '"') ? read_text(parser, ret_value) : read_word(parser, ret_value);
}

enum lac_status lac_json_plain_read(const uint8_t *text, size_t size_bytes,
                                    struct lac_plain_heap *heap, struct lac_plain **ret_value,
                                    struct lac_error *reterr)
{
    struct parser parser = {
        .begin = text, .at = text, .end = text + size_bytes, .heap = heap, .reterr = reterr};
    enum lac_status status = read_value(&parser, 0, ret_value);
    skip_space(&parser);
    return status == LAC_OK && parser.at < parser.end ? broken(&parser, "something follows it")
                                                      : status;
}
