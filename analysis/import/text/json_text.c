#include "analysis/import/text/json_text.h"

#include "collector/base/encode.h"
#include "collector/base/utf8.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t *lac_json_string_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (*p == '"') {
            return p;
        }
        p += *p == '\\' ? 2 : 1;
    }
    return NULL;
}

/* The four digits of a \u escape, or -1. */
static int32_t hex4(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 4) {
        return -1;
    }
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = lac_hex_digit((char)p[i]);
        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

static uint8_t *put_replacement(uint8_t *to)
{
    memcpy(to, LAC_UTF8_REPLACEMENT, sizeof(LAC_UTF8_REPLACEMENT) - 1);
    return to + sizeof(LAC_UTF8_REPLACEMENT) - 1;
}

/* Copy the escape at p (a backslash) if it is one, else a backslash that is escaped. */
static const uint8_t *copy_escape(const uint8_t *p, const uint8_t *end, uint8_t **out,
                                  struct lac_json_repairs *repairs)
{
    uint32_t length = 0;
    if (end - p >= 2 && memchr("\"\\/bfnrt", p[1], 8) != NULL) {
        length = 2;
    } else if (end - p >= 6 && p[1] == 'u' && hex4(p + 2, end) >= 0) {
        length = 6;
    }
    if (length == 0) {
        repairs->bad_escape++;
        memcpy(*out, "\\\\", 2);
        *out += 2;
        return p + 1;
    }
    memcpy(*out, p, length);
    *out += length;
    return p + length;
}

const uint8_t *lac_json_string_copy(const uint8_t *p, const uint8_t *end, uint8_t **out,
                                    struct lac_json_repairs *repairs)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t *to = *out;
    while (p < end) {
        uint8_t c = *p;
        if (c == '"') {
            *to++ = c;
            *out = to;
            return p + 1;
        }
        if (c == '\\') {
            p = copy_escape(p, end, &to, repairs);
        } else if (c < 0x20) {
            memcpy(to, "\\u00", 4);
            to[4] = (uint8_t)hex[c >> 4];
            to[5] = (uint8_t)hex[c & 15];
            to += 6;
            p++;
            repairs->control_character++;
        } else {
            uint32_t length = lac_utf8_length(p, end);
            if (length == 0) {
                to = put_replacement(to);
                p++;
                repairs->bad_utf8++;
                continue;
            }
            memcpy(to, p, length);
            to += length;
            p += length;
        }
    }
    return NULL;
}

/* The character of the \u escape at p, a surrogate pair taken together. */
static const uint8_t *decode_unicode(const uint8_t *p, const uint8_t *end, uint8_t **out,
                                     struct lac_json_repairs *repairs)
{
    int32_t code = hex4(p + 2, end);
    p += 6;
    if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        int32_t low = hex4(p + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            *out += lac_utf8_put(*out, 0x10000u + ((uint32_t)(code - 0xd800) << 10) +
                                           (uint32_t)(low - 0xdc00));
            return p + 6;
        }
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        repairs->bad_utf8++;
        *out = put_replacement(*out);
    } else {
        *out += lac_utf8_put(*out, (uint32_t)code);
    }
    return p;
}

static const uint8_t *decode_escape(const uint8_t *p, const uint8_t *end, uint8_t **out,
                                    struct lac_json_repairs *repairs)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (end - p >= 6 && p[1] == 'u' && hex4(p + 2, end) >= 0) {
        return decode_unicode(p, end, out, repairs);
    }
    const char *found = end - p >= 2 && p[1] ? strchr(from, p[1]) : NULL;
    if (found == NULL) {
        repairs->bad_escape++;
        *(*out)++ = '\\';
        return p + 1;
    }
    *(*out)++ = (uint8_t)to[found - from];
    return p + 2;
}

size_t lac_json_string_decode(const uint8_t *text, size_t size_bytes, uint8_t *out,
                              struct lac_json_repairs *repairs)
{
    const uint8_t *p = text, *end = text + size_bytes;
    uint8_t *to = out;
    while (p < end) {
        if (*p == '\\') {
            p = decode_escape(p, end, &to, repairs);
            continue;
        }
        uint32_t length = *p == 0 ? 0 : lac_utf8_length(p, end);
        if (length == 0) {
            to = put_replacement(to);
            repairs->bad_utf8++;
            p++;
            continue;
        }
        if (*p < 0x20) {
            repairs->control_character++;
        }
        memcpy(to, p, length);
        to += length;
        p += length;
    }
    return (size_t)(to - out);
}

/* Digits of a decimal: value 0.d1d2d3... x 10^point. Only the first 20 are kept apart; of the rest
 * only whether any is not zero matters to rounding, as no result has more than 19. */
struct decimal {
    uint8_t digit[20];
    uint32_t count;
    int64_t point;
    bool negative;
    bool rest; /**< a digit beyond the kept ones is not 0 */
};

static void add_digit(struct decimal *decimal, uint8_t digit)
{
    if (decimal->count < sizeof(decimal->digit)) {
        decimal->digit[decimal->count++] = digit;
    } else if (digit) {
        decimal->rest = true;
    }
}

static bool parse_exponent(const uint8_t *p, const uint8_t *end, int64_t *ret_exponent)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end) {
        return false;
    }
    int64_t value = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        if (value < 1000000000) {
            value = value * 10 + (*p - '0');
        }
    }
    *ret_exponent = negative ? -value : value;
    return true;
}

static bool parse_decimal(const uint8_t *p, const uint8_t *end, struct decimal *decimal)
{
    decimal->negative = p < end && *p == '-';
    if (decimal->negative) {
        p++;
    }
    uint32_t seen = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++, seen = 1) {
        if (decimal->count || *p != '0') {
            add_digit(decimal, *p - '0');
            decimal->point++;
        }
    }
    if (p < end && *p == '.') {
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, seen = 1) {
            if (decimal->count || *p != '0') {
                add_digit(decimal, *p - '0');
            } else {
                decimal->point--;
            }
        }
    }
    if (!seen) {
        return false;
    }
    int64_t exponent = 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        if (!parse_exponent(p + 1, end, &exponent)) {
            return false;
        }
        p = end;
    }
    decimal->point += exponent;
    return p == end;
}

bool lac_decimal_scaled(const uint8_t *text, size_t size_bytes, int scale, int64_t *ret_value)
{
    struct decimal decimal = {0};
    if (!parse_decimal(text, text + size_bytes, &decimal)) {
        return false;
    }
    int64_t whole = decimal.point + scale; /* digits before the point of the result */
    if (decimal.count == 0 || whole < 0) {
        *ret_value = 0; /* below 0.1 */
        return true;
    }
    if (whole > 19) {
        return false;
    }
    uint64_t value = 0;
    for (int64_t i = 0; i < whole; i++) {
        uint8_t digit = i < (int64_t)decimal.count ? decimal.digit[i] : 0;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    if (whole < (int64_t)decimal.count) {
        uint8_t next = decimal.digit[whole];
        bool more = decimal.rest;
        for (uint32_t i = (uint32_t)whole + 1; i < decimal.count; i++) {
            more = more || decimal.digit[i];
        }
        if (next > 5 || (next == 5 && (more || (value & 1)))) {
            value++;
        }
    }
    if (value > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret_value = decimal.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

bool lac_decimal_integer(const uint8_t *text, size_t size_bytes, int64_t *ret_value)
{
    const uint8_t *p = text, *end = text + size_bytes;
    bool negative = p < end && *p == '-';
    if (negative) {
        p++;
    }
    if (p == end || end - p > 19) {
        return false;
    }
    uint64_t value = 0; /* 19 digits cannot overflow it */
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(*p - '0');
    }
    if (value > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret_value = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* 15 digits or fewer, plainly written, are always the shortest form; and with a power of ten up to
 * 10^22 one division gives the correctly rounded double. */
static bool shortest_plain(const uint8_t *text, size_t size_bytes, double *ret_value)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const uint8_t *p = text, *end = text + size_bytes;
    bool negative = *p == '-';
    if (negative) {
        p++;
    }
    if (p == end || end - p > 16 || end[-1] == '0' || end[-1] == '.') {
        return false;
    }
    /* %g changes to an exponent below 0.0001, and a second leading 0 is not JSON */
    if (*p == '0' && (end - p < 3 || p[1] != '.' || (end - p > 5 && !memcmp(p + 2, "000", 3)))) {
        return false;
    }
    uint64_t value = 0;
    int fraction = -1;
    for (; p < end; p++) {
        if (*p == '.' && fraction < 0) {
            fraction = 0;
        } else if (*p >= '0' && *p <= '9') {
            value = value * 10 + (uint64_t)(*p - '0');
            fraction += fraction >= 0;
        } else {
            return false;
        }
    }
    if (fraction < 1 || value >= 1000000000000000u) {
        return false;
    }
    double result = (double)value / power[fraction];
    *ret_value = negative ? -result : result;
    return true;
}

bool lac_decimal_is_shortest(const uint8_t *text, size_t size_bytes, double *ret_value)
{
    if (size_bytes == 0 || size_bytes > 30) {
        return false;
    }
    if (shortest_plain(text, size_bytes, ret_value)) {
        return true;
    }
    char given[32], printed[40];
    memcpy(given, text, size_bytes);
    given[size_bytes] = 0;
    char *end = NULL;
    double value = strtod(given, &end);
    if (end != given + size_bytes || !isfinite(value)) {
        return false;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(printed, sizeof(printed), "%.*g", digits, value);
        if (strtod(printed, NULL) == value) /* NOLINT: exact by intent */
            break;
    }
    *ret_value = value;
    return strcmp(printed, given) == 0;
}
