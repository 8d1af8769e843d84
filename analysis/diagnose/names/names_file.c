/* Rows of names in a text file: read, checked, kept. */

#include "analysis/diagnose/names/names_file.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BYTES_MAX = 200, WORD_BYTES_MAX = 64, TERMS_MAX = 8 };

struct lac_names {
    struct lac_names_row *rows;
    uint32_t count, capacity;
    char *text; /**< owner of patterns and examples, each with a NUL behind it */
};

const struct lac_names_row *lac_names_own_rows(const struct lac_names *names, uint32_t *ret_count)
{
    *ret_count = names != NULL ? names->count : 0;
    return names != NULL ? names->rows : NULL;
}

void lac_names_destroy(struct lac_names *names)
{
    if (names != NULL) {
        free(names->rows);
        free(names->text);
        free(names);
    }
}

struct word {
    const char *name;
    int value;
};

/** What may stand as the value of a table's row. */
static const struct word *words_of(enum lac_names_table table, size_t *ret_count)
{
#define WORD(value)                                                                                \
    {                                                                                              \
#value, (int)(value)                                                                       \
    }
    static const struct word families[] = {
        WORD(LAC_FAMILY_OTHER),       WORD(LAC_FAMILY_GEMM),   WORD(LAC_FAMILY_CONV),
        WORD(LAC_FAMILY_ATTENTION),   WORD(LAC_FAMILY_NORM),   WORD(LAC_FAMILY_SOFTMAX),
        WORD(LAC_FAMILY_OPTIMIZER),   WORD(LAC_FAMILY_REDUCE), WORD(LAC_FAMILY_INDEX),
        WORD(LAC_FAMILY_ELEMENTWISE), WORD(LAC_FAMILY_RNG),    WORD(LAC_FAMILY_TRITON),
        WORD(LAC_FAMILY_FILL),        WORD(LAC_FAMILY_MOE),    WORD(LAC_FAMILY_POOL)};
    static const struct word layouts[] = {WORD(LAC_LAYOUT_NONE), WORD(LAC_LAYOUT_L),
                                          WORD(LAC_LAYOUT_PD), WORD(LAC_LAYOUT_U),
                                          WORD(LAC_LAYOUT_K)};
    static const struct word calls[] = {
        WORD(LAC_API_OTHER),  WORD(LAC_API_LAUNCH),        WORD(LAC_API_SYNC),
        WORD(LAC_API_COPY),   WORD(LAC_API_COPY_BLOCKING), WORD(LAC_API_ALLOC),
        WORD(LAC_API_MODULE), WORD(LAC_API_WAIT_EVENT),    WORD(LAC_API_QUERY)};
    static const struct word hosts[] = {
        WORD(LAC_HOST_OTHER),     WORD(LAC_HOST_LOADER_WAIT), WORD(LAC_HOST_STEP),
        WORD(LAC_HOST_OPTIMIZER), WORD(LAC_HOST_COMM),        WORD(LAC_HOST_COMPILE),
        WORD(LAC_HOST_PROFILER),  WORD(LAC_HOST_STEP_LIKE),   WORD(LAC_HOST_BACKWARD)};
    static const struct word truths[] = {{"1", 1}, {"0", 0}};
#undef WORD
    const struct word *const words[LAC_NAMES_TABLE_COUNT_] = {
        [LAC_NAMES_COMM] = truths,        [LAC_NAMES_LAYOUT] = layouts,
        [LAC_NAMES_TENSOR_VETO] = truths, [LAC_NAMES_TENSOR_YES] = truths,
        [LAC_NAMES_FAMILY] = families,    [LAC_NAMES_API] = calls,
        [LAC_NAMES_HOST] = hosts};
    const size_t counts[LAC_NAMES_TABLE_COUNT_] = {[LAC_NAMES_COMM] = LAC_COUNT_OF(truths),
                                                   [LAC_NAMES_LAYOUT] = LAC_COUNT_OF(layouts),
                                                   [LAC_NAMES_TENSOR_VETO] = LAC_COUNT_OF(truths),
                                                   [LAC_NAMES_TENSOR_YES] = LAC_COUNT_OF(truths),
                                                   [LAC_NAMES_FAMILY] = LAC_COUNT_OF(families),
                                                   [LAC_NAMES_API] = LAC_COUNT_OF(calls),
                                                   [LAC_NAMES_HOST] = LAC_COUNT_OF(hosts)};
    *ret_count = counts[table];
    return words[table];
}

/** A place in the text, and on which line. */
struct place {
    char *at, *end;
    uint64_t line;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/** Behind white space and comments. */
static void skip_blank(struct place *place)
{
    while (place->at < place->end) {
        size_t left = (size_t)(place->end - place->at);
        if (is_blank(*place->at)) {
            place->line += *place->at == '\n';
            place->at++;
        } else if (*place->at == '#' || (left >= 2 && memcmp(place->at, "//", 2) == 0)) {
            while (place->at < place->end && *place->at != '\n') {
                place->at++;
            }
        } else if (left >= 2 && memcmp(place->at, "/*", 2) == 0) {
            place->at += 2;
            while (place->at < place->end && !(place->at[0] == '/' && place->at[-1] == '*')) {
                place->line += *place->at == '\n';
                place->at++;
            }
            place->at += place->at < place->end;
        } else {
            return;
        }
    }
}

static bool take(struct place *place, char c)
{
    skip_blank(place);
    if (place->at >= place->end || *place->at != c) {
        return false;
    }
    place->at++;
    return true;
}

/** A word of letters, digits and '_' in `out`, "" when there is none or it is too long. */
static void read_word(struct place *place, char out[WORD_BYTES_MAX])
{
    size_t length = 0;
    skip_blank(place);
    while (place->at < place->end) {
        char c = *place->at;
        bool is_part =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!is_part) {
            break;
        }
        if (length < WORD_BYTES_MAX) {
            out[length] = c;
        }
        length++;
        place->at++;
    }
    out[length < WORD_BYTES_MAX ? length : 0] = '\0';
}

/** A text in quotes; its end becomes a NUL. NULL when there is none. A backslash keeps what follows. */
static const char *read_text(struct place *place)
{
    if (!take(place, '"')) {
        return NULL;
    }
    char *from = place->at;
    char *to = from;
    while (place->at < place->end && *place->at != '"' && *place->at != '\n') {
        if (*place->at == '\\' && place->at + 1 < place->end && place->at[1] != '\n') {
            place->at++;
        }
        *to++ = *place->at++;
    }
    if (place->at >= place->end || *place->at != '"') {
        return NULL;
    }
    place->at++;
    *to = '\0'; /* at most on the quote */
    return strlen(from) == (size_t)(to - from) ? from : NULL;
}

/** Whether each of its terms has text behind its marks. */
static bool is_pattern(const char *pattern)
{
    size_t length = strlen(pattern);
    int terms = 0;
    if (length == 0 || length > PATTERN_BYTES_MAX || pattern[length - 1] == '&') {
        return false;
    }
    for (const char *at = pattern; *at != '\0'; terms++) {
        at += strspn(at, "!^%~*");
        size_t text = strcspn(at, "&");
        if (text == 0 || (text == 1 && *at == '$')) {
            return false;
        }
        at += text;
        at += *at == '&';
    }
    return terms <= TERMS_MAX;
}

static bool find_table(const char *word, enum lac_names_table *ret_table)
{
    static const char *const names[LAC_NAMES_TABLE_COUNT_] = {[LAC_NAMES_COMM] = "COMM",
                                                              [LAC_NAMES_LAYOUT] = "LAYOUT",
                                                              [LAC_NAMES_TENSOR_VETO] =
                                                                  "TENSOR_VETO",
                                                              [LAC_NAMES_TENSOR_YES] = "TENSOR_YES",
                                                              [LAC_NAMES_FAMILY] = "FAMILY",
                                                              [LAC_NAMES_API] = "API",
                                                              [LAC_NAMES_HOST] = "HOST"};
    for (int i = 0; i < LAC_NAMES_TABLE_COUNT_; i++) {
        if (strcmp(names[i], word) == 0) {
            *ret_table = (enum lac_names_table)i;
            return true;
        }
    }
    return false;
}

static bool find_value(enum lac_names_table table, const char *word, int *ret_value)
{
    size_t count = 0;
    const struct word *words = words_of(table, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i].name, word) == 0) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

static enum lac_status wrong(const struct place *place, const char *what, struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "line %llu: %s", (unsigned long long)place->line,
                    what);
}

/** One row, behind its macro's name. */
static enum lac_status read_row(struct place *place, struct lac_names_row *row,
                                struct lac_error *reterr)
{
    char word[WORD_BYTES_MAX];
    if (!take(place, '(')) {
        return wrong(place, "( expected after LAC_NAME_ROW", reterr);
    }
    read_word(place, word);
    if (!find_table(word, &row->table)) {
        return wrong(place,
                     "the table must be COMM, LAYOUT, TENSOR_VETO, TENSOR_YES, FAMILY, API "
                     "or HOST",
                     reterr);
    }
    if (!take(place, ',')) {
        return wrong(place, "a comma expected after the table", reterr);
    }
    read_word(place, word);
    if (!find_value(row->table, word, &row->value)) {
        return wrong(place,
                     "this value is none of the table's, as LAC_FAMILY_GEMM is of FAMILY, or 1 "
                     "of COMM",
                     reterr);
    }
    row->pattern = take(place, ',') ? read_text(place) : NULL;
    if (row->pattern == NULL || !is_pattern(row->pattern)) {
        return wrong(place, "a pattern in quotes expected, of 200 bytes and 8 terms at most",
                     reterr);
    }
    row->example = take(place, ',') ? read_text(place) : NULL;
    if (row->example == NULL || !take(place, ')')) {
        return wrong(place, "an example in quotes and ) expected", reterr);
    }
    if (!lac_names_pattern_matches(row->pattern, row->example, strlen(row->example))) {
        return wrong(place, "the pattern does not match its example", reterr);
    }
    return LAC_OK;
}

static enum lac_status read_rows(struct lac_names *names, struct place *place,
                                 struct lac_error *reterr)
{
    char word[WORD_BYTES_MAX];
    for (skip_blank(place); place->at < place->end; skip_blank(place)) {
        struct lac_names_row row = {0};
        read_word(place, word);
        if (strcmp(word, "LAC_NAME_ROW") != 0) {
            return wrong(place, "LAC_NAME_ROW(TABLE, VALUE, \"PATTERN\", \"EXAMPLE\") expected",
                         reterr);
        }
        enum lac_status status = read_row(place, &row, reterr);
        if (status) {
            return status;
        }
        if (names->count == LAC_NAMES_FILE_ROWS_MAX) {
            return lac_fail(reterr, LAC_ERR_LIMIT, 0, "more than %d rows", LAC_NAMES_FILE_ROWS_MAX);
        }
        if (!LAC_RESERVE(names->rows, names->capacity, names->count, 1)) {
            return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
        names->rows[names->count++] = row;
    }
    return LAC_OK;
}

enum lac_status lac_names_parse(const char *text, size_t length, struct lac_names **ret_names,
                                struct lac_error *reterr)
{
    assert(ret_names != NULL && (text != NULL || length == 0));
    if (length > LAC_NAMES_FILE_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "more than %d bytes", LAC_NAMES_FILE_BYTES_MAX);
    }
    struct lac_names *names = calloc(1, sizeof(*names));
    char *copy = malloc(length + 1);
    if (names == NULL || copy == NULL) {
        free(names);
        free(copy);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (length > 0) {
        memcpy(copy, text, length);
    }
    copy[length] = '\0';
    names->text = copy;
    struct place place = {copy, copy + length, 1};
    enum lac_status status = read_rows(names, &place, reterr);
    if (status) {
        lac_names_destroy(names);
        return status;
    }
    *ret_names = names;
    return LAC_OK;
}
