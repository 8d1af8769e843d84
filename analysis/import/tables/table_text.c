#include "analysis/import/tables/table_text.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 64 * 1024 };

/* ---- lines ---- */

static enum lac_status read_more(struct lac_table_lines *lines)
{
    size_t got = 0;
    if (lines->buffer != NULL && lines->begin > 0) {
        memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    if (lines->end >= lines->options->limits.event_bytes_max) {
        return lac_fail(lines->reterr, LAC_ERR_LIMIT, lines->next_bytes,
                        "a line of more than %u bytes (limit event_bytes_max)",
                        lines->options->limits.event_bytes_max);
    }
    if (LAC_GROW(lines->buffer, &lines->capacity, lines->end + READ_BYTES) != LAC_OK) {
        return lac_fail(lines->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    enum lac_status status = lac_source_read(lines->source, (uint8_t *)lines->buffer + lines->end,
                                             READ_BYTES, &got, lines->reterr);
    lines->end += status == LAC_OK ? got : 0;
    lines->is_at_end = got == 0;
    const struct lac_source_budget *budget = lac_source_get_budget(lines->source);
    if (status == LAC_OK && lines->options->progress != NULL &&
        !lines->options->progress(lines->options->progress_context, budget->input_bytes,
                                  budget->input_bytes_total, lines->row_count)) {
        return lac_fail(lines->reterr, LAC_ERR_IO, budget->input_bytes, "canceled");
    }
    return status;
}

enum lac_status lac_table_line(struct lac_table_lines *lines, char **ret_line, size_t *ret_size)
{
    size_t searched = 0;
    *ret_line = NULL;
    *ret_size = 0;
    for (;;) {
        char *from = lines->buffer == NULL ? NULL : lines->buffer + lines->begin;
        size_t size = lines->end - lines->begin;
        char *newline =
            from != NULL && size > searched ? memchr(from + searched, '\n', size - searched) : NULL;
        if (newline == NULL && !lines->is_at_end) {
            searched = size;
            enum lac_status status = read_more(lines);
            if (status != LAC_OK) {
                return status;
            }
            continue;
        }
        if (from == NULL || (newline == NULL && size == 0)) {
            return LAC_OK;
        }
        size_t taken = newline != NULL ? (size_t)(newline - from) + 1 : size;
        lines->offset_bytes = lines->next_bytes;
        lines->next_bytes += taken;
        lines->begin += taken;
        size_t length = newline != NULL ? taken - 1 : taken;
        if (lines->offset_bytes == 0 && length >= 3 && memcmp(from, "\xef\xbb\xbf", 3) == 0) {
            from += 3; /* what some editors put before the first line */
            length -= 3;
        }
        while (length > 0 && from[length - 1] == '\r') {
            length--;
        }
        *ret_line = from;
        *ret_size = length;
        return LAC_OK;
    }
}

void lac_table_lines_done(struct lac_table_lines *lines)
{
    free(lines->buffer);
    lines->buffer = NULL;
}

/* ---- fields ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

struct lac_table_field lac_field_trimmed(struct lac_table_field field)
{
    while (field.size > 0 && is_space(field.text[0])) {
        field.text++;
        field.size--;
    }
    while (field.size > 0 && is_space(field.text[field.size - 1])) {
        field.size--;
    }
    return field;
}

/* A field in quotes from `from`, the text of it moved to its beginning; past the closing quote,
 * or NULL when there is none. */
static char *unquote(char *from, const char *end, struct lac_table_field *ret_field)
{
    char *to = from;
    for (char *c = from + 1; c < end; c++) {
        if (*c == '"' && c + 1 < end && c[1] == '"') {
            c++;
        } else if (*c == '"') {
            *ret_field = (struct lac_table_field){from, (size_t)(to - from)};
            return c + 1;
        }
        *to++ = *c;
    }
    return NULL;
}

static size_t split_csv(char *line, size_t size, struct lac_table_field *fields, size_t most)
{
    char *at = line;
    char *const end = line + size;
    size_t count = 0;
    for (;;) {
        while (at < end && is_space(*at)) {
            at++;
        }
        struct lac_table_field field = {at, 0};
        if (at < end && *at == '"') {
            at = unquote(at, end, &field);
            if (at == NULL) {
                return SIZE_MAX;
            }
            while (at < end && *at != ',') {
                at++;
            }
        } else {
            char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
            at = comma == NULL ? end : comma;
            field.size = (size_t)(at - field.text);
        }
        if (count == most) {
            return SIZE_MAX;
        }
        fields[count++] = lac_field_trimmed(field);
        if (at == end) {
            return count;
        }
        at++;
    }
}

static size_t split_spaced(const char *line, size_t size, size_t spaces,
                           struct lac_table_field *fields, size_t most)
{
    struct lac_table_field rest = lac_field_trimmed((struct lac_table_field){line, size});
    size_t count = 0;
    while (rest.size > 0) {
        size_t at = 0;
        size_t run = 0; /* of the spaces at `at` */
        for (; count + 1 < most && at < rest.size; at++) {
            run = 0;
            while (at + run < rest.size && is_space(rest.text[at + run])) {
                run++;
            }
            if (run >= spaces || (run > 0 && rest.text[at] == '\t')) {
                break;
            }
        }
        at = count + 1 < most ? at : rest.size;
        fields[count++] = (struct lac_table_field){rest.text, at};
        rest = lac_field_trimmed((struct lac_table_field){rest.text + at, rest.size - at});
    }
    return count;
}

size_t lac_table_split(char *line, size_t size, enum lac_table_split how,
                       struct lac_table_field *fields, size_t most)
{
    if (lac_field_trimmed((struct lac_table_field){line, size}).size == 0) {
        return 0;
    }
    return how == LAC_TABLE_CSV
               ? split_csv(line, size, fields, most)
               : split_spaced(line, size, how == LAC_TABLE_SPACED ? 2 : 1, fields, most);
}

bool lac_field_is(struct lac_table_field field, const char *text)
{
    return strlen(text) == field.size && memcmp(field.text, text, field.size) == 0;
}

bool lac_field_begins(struct lac_table_field field, const char *text)
{
    size_t size = strlen(text);
    return size <= field.size && memcmp(field.text, text, size) == 0;
}

bool lac_field_has(struct lac_table_field field, const char *text)
{
    return field.size > 0 && memmem(field.text, field.size, text, strlen(text)) != NULL;
}

void lac_field_copy(struct lac_table_field field, char *out, size_t capacity)
{
    size_t size = lac_utf8_cut(field.text, field.size, capacity - 1);
    memcpy(out, field.text, size);
    out[size] = '\0';
}

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool lac_field_number(struct lac_table_field field, struct lac_table_field *ret_number,
                      struct lac_table_field *ret_unit)
{
    field = lac_field_trimmed(field);
    size_t at = field.size > 0 && (field.text[0] == '-' || field.text[0] == '+') ? 1 : 0;
    size_t digits = 0;
    for (; at < field.size && (is_digit(field.text[at]) || field.text[at] == ','); at++) {
        digits += is_digit(field.text[at]) ? 1 : 0;
    }
    if (at < field.size && field.text[at] == '.') {
        for (at++; at < field.size && is_digit(field.text[at]); at++) {
            digits++;
        }
    }
    if (digits == 0 || digits > 64) {
        return false;
    }
    if (at + 1 < field.size && (field.text[at] == 'e' || field.text[at] == 'E')) {
        size_t sign = field.text[at + 1] == '-' || field.text[at + 1] == '+' ? 1 : 0;
        size_t past = at + 1 + sign;
        while (past < field.size && is_digit(field.text[past])) {
            past++;
        }
        at = past > at + 1 + sign ? past : at;
    }
    *ret_number = (struct lac_table_field){field.text, at};
    *ret_unit = lac_field_trimmed((struct lac_table_field){field.text + at, field.size - at});
    return true;
}

/* The digits without commas, a leading plus and a trailing point, as JSON writes numbers. */
static size_t plain_number(struct lac_table_field number, char out[128])
{
    size_t used = 0;
    bool has_digit = false;
    for (size_t i = 0; i < number.size && used < 120; i++) {
        char c = number.text[i];
        bool begins = is_digit(c) && !has_digit;
        has_digit = has_digit || is_digit(c);
        if (c == ',' || (c == '+' && i == 0)) {
            continue;
        }
        if (c == '.' && !has_digit) {
            out[used++] = '0';
            has_digit = true;
        }
        if (c == '.' && (i + 1 == number.size || !is_digit(number.text[i + 1]))) {
            continue;
        }
        if (begins && c == '0') { /* JSON has no leading zeros */
            while (i + 1 < number.size && number.text[i + 1] == '0') {
                i++;
            }
            if (i + 1 < number.size && is_digit(number.text[i + 1])) {
                c = number.text[++i];
            }
        }
        out[used++] = c;
    }
    out[used] = '\0';
    return used;
}

/* Of digits, a point and an exponent, as plain_number() writes them. */
static bool is_whole(const char *text)
{
    const char *point = strchr(text, '.');
    const char *exponent = text + strcspn(text, "eE");
    long fraction_digits = 0;
    for (const char *at = point; at != NULL && at < exponent; at++) {
        fraction_digits = *at != '0' && *at != '.' ? at - point : fraction_digits;
    }
    const long power = *exponent != '\0' ? strtol(exponent + 1, NULL, 10) : 0;
    return power >= 0 && fraction_digits <= power;
}

bool lac_field_integer(struct lac_table_field field, int64_t *ret_value)
{
    struct lac_table_field number;
    struct lac_table_field unit;
    char text[128];
    if (!lac_field_number(field, &number, &unit) || unit.size > 0) {
        return false;
    }
    size_t size = plain_number(number, text);
    return is_whole(text) && lac_decimal_scaled((const uint8_t *)text, size, 0, ret_value);
}

bool lac_field_real(struct lac_table_field field, double *ret_value)
{
    struct lac_table_field number;
    struct lac_table_field unit;
    char text[128];
    if (!lac_field_number(field, &number, &unit)) {
        return false;
    }
    (void)plain_number(number, text);
    *ret_value = strtod(text, NULL);
    return *ret_value > -1e300 && *ret_value < 1e300;
}

bool lac_unit_of_time(struct lac_table_field unit, int *ret_power)
{
    static const struct {
        const char *name;
        int power;
    } UNITS[] = {
        {"ns", 0},   {"nsec", 0},    {"nsecond", 0},     {"nanosecond", 0},  {"us", 3},
        {"usec", 3}, {"usecond", 3}, {"microsecond", 3}, {"\xce\xbcs", 3},   {"\xc2\xb5s", 3},
        {"ms", 6},   {"msec", 6},    {"msecond", 6},     {"millisecond", 6}, {"s", 9},
        {"sec", 9},  {"second", 9},  {"seconds", 9},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(UNITS); i++) {
        if (lac_field_is(unit, UNITS[i].name)) {
            *ret_power = UNITS[i].power;
            return true;
        }
    }
    return false;
}

double lac_unit_of_size(struct lac_table_field unit, enum lac_size_base base)
{
    static const struct {
        const char *name;
        double decimal;
        double binary;
    } UNITS[] = {
        {"B", 1, 1},
        {"byte", 1, 1},
        {"bytes", 1, 1},
        {"KB", 1e3, 0x1p10},
        {"kB", 1e3, 0x1p10},
        {"Kb", 1e3, 0x1p10},
        {"Kbyte", 1e3, 0x1p10},
        {"MB", 1e6, 0x1p20},
        {"Mb", 1e6, 0x1p20},
        {"Mbyte", 1e6, 0x1p20},
        {"GB", 1e9, 0x1p30},
        {"Gb", 1e9, 0x1p30},
        {"Gbyte", 1e9, 0x1p30},
        {"KiB", 0x1p10, 0x1p10},
        {"MiB", 0x1p20, 0x1p20},
        {"GiB", 0x1p30, 0x1p30},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(UNITS); i++) {
        if (lac_field_is(unit, UNITS[i].name)) {
            return base == LAC_SIZE_BINARY ? UNITS[i].binary : UNITS[i].decimal;
        }
    }
    return 0;
}

bool lac_field_ns(struct lac_table_field field, struct lac_table_field unit, int64_t *ret_ns)
{
    const int64_t far_ns = INT64_C(1) << 61;
    struct lac_table_field number;
    struct lac_table_field own;
    char text[128];
    int power = 0;
    if (!lac_field_number(field, &number, &own) ||
        !lac_unit_of_time(own.size > 0 ? own : unit, &power)) {
        return false;
    }
    size_t size = plain_number(number, text);
    return lac_decimal_scaled((const uint8_t *)text, size, power, ret_ns) && *ret_ns > -far_ns &&
           *ret_ns < far_ns;
}

bool lac_field_bytes(struct lac_table_field field, struct lac_table_field unit,
                     enum lac_size_base base, int64_t *ret_bytes)
{
    struct lac_table_field number;
    struct lac_table_field own;
    double value = 0;
    if (!lac_field_number(field, &number, &own) || !lac_field_real(number, &value)) {
        return false;
    }
    double size = lac_unit_of_size(own.size > 0 ? own : unit, base);
    double bytes = value * size;
    if (size == 0 || !(bytes >= 0 && bytes < 9e15)) {
        return false;
    }
    *ret_bytes = (int64_t)(bytes + 0.5);
    return true;
}
