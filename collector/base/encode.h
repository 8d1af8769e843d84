#ifndef LAC_COLLECTOR_BASE_ENCODE_H
#define LAC_COLLECTOR_BASE_ENCODE_H

/* Bytes as text: base16, base32 and base64 (RFC 4648). All write a NUL behind the text. */

#include <stddef.h>
#include <stdint.h>

#define LAC_BASE32_DIGITS "abcdefghijklmnopqrstuvwxyz234567"

/** Bytes of text, with its NUL, for so many bytes. */
#define LAC_HEX_TEXT_BYTES(size_bytes)    ((size_bytes)*2 + 1)
#define LAC_BASE32_TEXT_BYTES(size_bytes) (((size_bytes)*8 + 4) / 5 + 1)
#define LAC_BASE64_TEXT_BYTES(size_bytes) (((size_bytes) + 2) / 3 * 4 + 1)

/** In lower case. @param out room for LAC_HEX_TEXT_BYTES(size_bytes) */
void lac_hex_encode(const void *bytes, size_t size_bytes, char *out);

/** What a digit of either case is worth; -1: it is none. */
static inline int lac_hex_digit(char c)
{
    const char low = (char)(c | 0x20);

    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/** In lower case, without padding: ids and keys. @param out LAC_BASE32_TEXT_BYTES(size_bytes) */
void lac_base32_encode(const void *bytes, size_t size_bytes, char *out);

/** With padding. @param out room for LAC_BASE64_TEXT_BYTES(size_bytes) */
void lac_base64_encode(const void *bytes, size_t size_bytes, char *out);

/**
 * Decode base64 with its padding, nothing else in it. One text for each value: what a last digit
 * has too many bits for must be zero.
 *
 * @param out room for capacity bytes @return bytes, or -1 when malformed or too long
 */
int lac_base64_decode(const char *text, size_t length, uint8_t *out, size_t capacity);

#endif
