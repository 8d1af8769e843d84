#ifndef LAC_ANALYSIS_IMPORT_TEXT_JSON_TEXT_H
#define LAC_ANALYSIS_IMPORT_TEXT_JSON_TEXT_H

/* Strings and numbers of JSON, the exact and unhurried part: escapes, UTF-8, decimals. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A piece of the window. Strings without their quotes. */
struct lac_json_span {
    const uint8_t *at;
    uint32_t size_bytes;
    bool plain; /**< a string of printable ASCII without escapes: its bytes are its text */
};

/** What had to be repaired to make valid JSON of the input. */
struct lac_json_repairs {
    uint32_t trailing_comma;
    uint32_t missing_comma;
    uint32_t control_character; /**< raw, inside a string */
    uint32_t bad_utf8;          /**< bytes replaced by U+FFFD, lone surrogates and NUL included */
    uint32_t bad_escape;        /**< a backslash that begins no JSON escape */
    uint32_t odd_literal;       /**< NaN, inf, 007: kept as a string */
};

/** Closing quote of the string whose inside begins (or goes on) at p, or NULL when it is not
 *  before `end`. */
const uint8_t *lac_json_string_end(const uint8_t *p, const uint8_t *end);

/**
 * Copy a JSON string from inside, up to and with its closing quote, as a valid JSON string:
 * escapes stay, raw control characters are escaped, bad UTF-8 is replaced.
 *
 * @param out needs 6 bytes for each byte of the string, and 1
 * @return past the closing quote, or NULL when it is not before `end`
 */
const uint8_t *lac_json_string_copy(const uint8_t *p, const uint8_t *end, uint8_t **out,
                                    struct lac_json_repairs *repairs);

/**
 * The text that a JSON string stands for, as valid UTF-8 without NUL.
 *
 * @param text raw inside of the string @param out needs 3 * size_bytes + 4 bytes
 * @return bytes written
 */
size_t lac_json_string_decode(const uint8_t *text, size_t size_bytes, uint8_t *out,
                              struct lac_json_repairs *repairs);

/** Longest inside of a string that is decoded for what it means, and the room that it needs. */
enum { LAC_UNESCAPED_MAX = 6 * 24, LAC_UNESCAPED_ROOM = 3 * LAC_UNESCAPED_MAX + 8 };

/**
 * A decimal number (JSON syntax, any exponent) times 10^scale, rounded half to even.
 *
 * @return false when it is not a number or does not fit
 */
bool lac_decimal_scaled(const uint8_t *text, size_t size_bytes, int scale, int64_t *ret_value);

/** A whole number in decimal; false when the text is anything else or does not fit. */
bool lac_decimal_integer(const uint8_t *text, size_t size_bytes, int64_t *ret_value);

/**
 * Whether the real number in `text` is written as args.h prints it (the shortest digits that read
 * back the same), and its value.
 */
bool lac_decimal_is_shortest(const uint8_t *text, size_t size_bytes, double *ret_value);

#endif
