#include "analysis/import/spool/spool_members.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_schema.h"
#include "analysis/model/args.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/utf8.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS_MAX = 1024 };

void lac_spool_members_destroy(struct lac_spool_members *members)
{
    if (members != NULL) {
        free(members->text);
        free(members->numbers);
        free(members);
    }
}

void lac_members_begin(struct lac_members_writer *writer, struct lac_strings *strings,
                       const struct lac_spool_members *members)
{
    writer->strings = strings;
    writer->used = 0;
    writer->number_count = 0;
    writer->status = LAC_OK;
    if (members != NULL) {
        memcpy(writer->text, members->text, members->length);
        writer->used = members->length;
        memcpy(writer->numbers, members->numbers, members->number_count * sizeof(int64_t));
        writer->number_count = members->number_count;
    }
}

enum lac_status lac_members_store(const struct lac_members_writer *writer,
                                  struct lac_spool_members **members)
{
    struct lac_spool_members *const fresh = calloc(1, sizeof(*fresh));

    if (fresh == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (*members != NULL) {
        fresh->color = (*members)->color;
        fresh->category = (*members)->category;
        fresh->has_color = (*members)->has_color;
        fresh->has_category = (*members)->has_category;
    }
    fresh->text = malloc(writer->used + 1);
    fresh->numbers = malloc((writer->number_count + 1) * sizeof(int64_t));
    if (fresh->text == NULL || fresh->numbers == NULL) {
        lac_spool_members_destroy(fresh);
        return LAC_ERR_NOMEM;
    }
    memcpy(fresh->text, writer->text, writer->used);
    fresh->length = writer->used;
    memcpy(fresh->numbers, writer->numbers, writer->number_count * sizeof(int64_t));
    fresh->number_count = writer->number_count;
    lac_spool_members_destroy(*members);
    *members = fresh;
    return LAC_OK;
}

bool lac_members_room(const struct lac_members_writer *writer, size_t size_bytes)
{
    return writer->used + size_bytes + 64 < LAC_MEMBERS_TEXT_MAX &&
           writer->number_count < LAC_MEMBERS_NUMBERS_MAX;
}

void lac_members_char(struct lac_members_writer *writer, char c)
{
    if (writer->used + 1 < LAC_MEMBERS_TEXT_MAX) {
        writer->text[writer->used++] = c;
    }
}

/* ---- text */

/* Cut where it would not fit, between characters. */
void lac_members_quoted(struct lac_members_writer *writer, const char *text)
{
    lac_members_char(writer, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if ((*c & 0xc0) != 0x80 && !lac_members_room(writer, 16)) {
            break;
        }
        if (*c == '"' || *c == '\\') {
            lac_members_char(writer, '\\');
            lac_members_char(writer, *c);
        } else if ((unsigned char)*c < 0x20) {
            writer->used += (size_t)snprintf(writer->text + writer->used, 7, "\\u%04x", *c);
        } else {
            lac_members_char(writer, *c);
        }
    }
    lac_members_char(writer, '"');
}

void lac_members_text(struct lac_members_writer *writer, const uint8_t *units, uint32_t unit_bytes,
                      uint64_t count)
{
    char utf8[UNITS_MAX * 4];
    const char *text = (const char *)units;
    size_t length;
    uint32_t id = 0;

    count = count > UNITS_MAX ? UNITS_MAX : count;
    if (unit_bytes > 1) {
        length = lac_utf8_from_units(units, unit_bytes, count, utf8, sizeof(utf8));
        text = utf8;
    } else {
        length = strnlen(text, count);
    }
    if (writer->status == LAC_OK) {
        writer->status = lac_spool_intern(writer->strings, text, length, &id);
    }
    lac_members_quoted(writer, lac_strings_get(writer->strings, id));
}

void lac_members_hex(struct lac_members_writer *writer, const uint8_t *bytes, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";

    lac_members_char(writer, '"');
    lac_members_char(writer, '0');
    lac_members_char(writer, 'x');
    for (uint64_t i = 0; i < count && lac_members_room(writer, 2); i++) {
        lac_members_char(writer, digits[bytes[i] >> 4]);
        lac_members_char(writer, digits[bytes[i] & 0xf]);
    }
    lac_members_char(writer, '"');
}

/* ---- numbers */

static uint64_t load(const uint8_t *bytes, uint32_t size_bytes)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size_bytes > 8 ? 8 : size_bytes);
    return word;
}

void lac_members_integer(struct lac_members_writer *writer, uint64_t value, bool is_signed)
{
    char digits[24];

    if (!is_signed && value > INT64_MAX) {
        (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
        lac_members_quoted(writer, digits);
        return;
    }
    lac_members_char(writer, LAC_ARG_INTEGER);
    writer->numbers[writer->number_count++] = (int64_t)value;
}

/* 128 bits, in four digits of 2^32 divided by ten again and again. */
static void put_wide(struct lac_members_writer *writer, uint64_t low, uint64_t high, bool is_signed)
{
    const bool is_negative = is_signed && high >> 63 != 0;
    uint32_t parts[4];
    char digits[44];
    size_t at = sizeof(digits) - 1;

    if ((high == 0 && low <= INT64_MAX) || (is_negative && high == UINT64_MAX && low > INT64_MAX)) {
        lac_members_integer(writer, low, true);
        return;
    }
    if (is_negative) {
        high = ~high + (low == 0);
        low = ~low + 1;
    }
    parts[0] = (uint32_t)(high >> 32);
    parts[1] = (uint32_t)high;
    parts[2] = (uint32_t)(low >> 32);
    parts[3] = (uint32_t)low;
    digits[at] = '\0';
    while ((parts[0] | parts[1] | parts[2] | parts[3]) != 0) {
        uint64_t rest = 0;

        for (int i = 0; i < 4; i++) {
            rest = rest << 32 | parts[i];
            parts[i] = (uint32_t)(rest / 10);
            rest %= 10;
        }
        digits[--at] = (char)('0' + rest);
    }
    if (is_negative) {
        digits[--at] = '-';
    }
    lac_members_quoted(writer, digits + at);
}

static void put_real(struct lac_members_writer *writer, double value)
{
    if (!isfinite(value)) { /* JSON has no such number */
        lac_members_quoted(writer, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    lac_members_char(writer, LAC_ARG_REAL);
    memcpy(&writer->numbers[writer->number_count++], &value, sizeof(value));
}

/* `fraction` of 2^bits beyond the leading 1, exponents as IEEE 754 has them; rounded
 * to a double. */
static double real_of_parts(bool is_negative, int exponent, int exponent_max, double fraction)
{
    const int bias = exponent_max / 2;
    double value;

    if (exponent == exponent_max) {
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    } else {
        value = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    }
    return is_negative ? -value : value;
}

static double real_of(uint64_t type, const uint8_t *bytes)
{
    const uint64_t low = load(bytes, lac_spool_type_of(type).size_bytes);
    uint64_t high;
    double real;
    float single;
    uint32_t bits = (uint32_t)low;

    switch (type) {
    case LAC_TYPE_FLOAT16:
        return real_of_parts(low >> 15 != 0, (int)(low >> 10 & 0x1f), 0x1f,
                             (double)(low & 0x3ff) / 1024);
    case LAC_TYPE_LONGDOUBLE: /* its leading 1 is written */
        high = load(bytes + 8, 2);
        real = real_of_parts(high >> 15 != 0, (int)(high & 0x7fff), 0x7fff,
                             ldexp((double)(low << 1), -64));
        return (high & 0x7fff) != 0 || low == 0 ? real : 0;
    case LAC_TYPE_FLOAT128:
        high = load(bytes + 8, 8);
        return real_of_parts(high >> 63 != 0, (int)(high >> 48 & 0x7fff), 0x7fff,
                             ldexp((double)(high & 0xffffffffffff), -48) +
                                 ldexp((double)low, -112));
    default:
        if (lac_spool_type_of(type).size_bytes == 8) {
            memcpy(&real, &low, sizeof(real));
            return real;
        }
        bits = type == LAC_TYPE_BF16 ? bits << 16 : bits;
        memcpy(&single, &bits, sizeof(single));
        return (double)single;
    }
}

void lac_members_value(struct lac_members_writer *writer, uint64_t type_number,
                       const uint8_t *bytes)
{
    const struct lac_spool_type type = lac_spool_type_of(type_number);
    const unsigned shift = 64u - 8u * (type.size_bytes > 8 ? 8u : type.size_bytes);
    uint64_t word = load(bytes, type.size_bytes);

    if (type.form == 'f') {
        put_real(writer, real_of(type_number, bytes));
    } else if (type.form == 'c' || type.form == 't') {
        lac_members_text(writer, bytes, type.size_bytes, 1);
    } else if (type.size_bytes == 16) {
        put_wide(writer, word, load(bytes + 8, 8), type.form == 'i');
    } else {
        if (type.form == 'i') {
            word = (uint64_t)((int64_t)(word << shift) >> shift);
        }
        lac_members_integer(writer, word, type.form == 'i');
    }
}
