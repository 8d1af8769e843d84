#ifndef LAC_COLLECTOR_BASE_UTF8_H
#define LAC_COLLECTOR_BASE_UTF8_H

/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. Text is given
 * by its length; nothing here reads beyond it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_UTF8_BYTES_MAX = 4 /**< of a character */ };

/** U+FFFD, which stands for what is no character. */
#define LAC_UTF8_REPLACEMENT "\xef\xbf\xbd"

/** Bytes of the character at p, 1 to 4; 0: there is none before `end`. A NUL is a character. */
static inline uint32_t lac_utf8_length(const uint8_t *p, const uint8_t *end);

/** The same of one that is not ASCII. */
uint32_t lac_utf8_long_length(const uint8_t *p, const uint8_t *end);

/** The code point of a character of lac_utf8_length() `length` bytes. */
uint32_t lac_utf8_code(const uint8_t *p, uint32_t length);

/** Write a code point that is one. @return bytes, at most LAC_UTF8_BYTES_MAX */
size_t lac_utf8_put(void *out, uint32_t code);

/** Whether all of a text is UTF-8 without control characters (C0, DEL, C1). */
bool lac_utf8_is_clean(const char *text, size_t length);

/**
 * Copy a text, with U+FFFD for each NUL and each byte that is no part of a character. Cut between
 * characters where it does not fit; `length` * 3 bytes are room for all.
 *
 * @param ret_repaired_count may be NULL @return bytes written, no NUL behind them
 */
size_t lac_utf8_repair(const char *text, size_t length, char *out, size_t capacity,
                       size_t *ret_repaired_count);

/** The longest beginning of a text of at most `most` bytes that ends between characters. */
size_t lac_utf8_cut(const char *text, size_t length, size_t most);

/**
 * Text of `unit_bytes` 2 (UTF-16) or 4 (UTF-32), little endian, to its zero or `unit_count`, as
 * UTF-8; cut between characters where it does not fit. Halves of a pair that stand alone become
 * U+FFFD.
 *
 * @param units need not be aligned @return bytes written, no NUL behind them
 */
size_t lac_utf8_from_units(const void *units, size_t unit_bytes, size_t unit_count, char *out,
                           size_t capacity);

static inline uint32_t lac_utf8_length(const uint8_t *p, const uint8_t *end)
{
    return p < end && *p < 0x80 ? 1 : lac_utf8_long_length(p, end);
}

#endif
