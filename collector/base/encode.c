#include "collector/base/encode.h"

#include <stdint.h>
#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void lac_hex_encode(const void *bytes, size_t size_bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *const at = bytes;

    for (size_t i = 0; i < size_bytes; i++) {
        out[i * 2] = digits[at[i] >> 4];
        out[i * 2 + 1] = digits[at[i] & 15];
    }
    out[size_bytes * 2] = '\0';
}

void lac_base32_encode(const void *bytes, size_t size_bytes, char *out)
{
    const uint8_t *const at = bytes;
    size_t used = 0;
    uint32_t bits = 0;
    unsigned have = 0;

    for (size_t i = 0; i < size_bytes; i++) {
        bits = bits << 8 | at[i];
        for (have += 8; have >= 5; have -= 5) {
            out[used++] = LAC_BASE32_DIGITS[bits >> (have - 5) & 31];
        }
    }
    if (have > 0) { /* the last digit ends in zero bits */
        out[used++] = LAC_BASE32_DIGITS[bits << (5 - have) & 31];
    }
    out[used] = '\0';
}

void lac_base64_encode(const void *bytes, size_t size_bytes, char *out)
{
    const uint8_t *const at = bytes;
    size_t used = 0;

    for (size_t i = 0; i < size_bytes; i += 3) {
        const size_t left = size_bytes - i;
        const uint32_t bits = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0U) |
                              (left > 2 ? at[i + 2] : 0U);

        out[used++] = base64_digits[bits >> 18];
        out[used++] = base64_digits[bits >> 12 & 63];
        out[used++] = '=';
        out[used++] = '=';
        if (left > 1) {
            out[used - 2] = base64_digits[bits >> 6 & 63];
        }
        if (left > 2) {
            out[used - 1] = base64_digits[bits & 63];
        }
    }
    out[used] = '\0';
}

static int digit_of(char c)
{
    const char *const at = c != '\0' ? strchr(base64_digits, c) : NULL;

    return at != NULL ? (int)(at - base64_digits) : -1;
}

int lac_base64_decode(const char *text, size_t length, uint8_t *out, size_t capacity)
{
    size_t padding = 0;
    size_t used = 0;
    uint32_t bits = 0;
    unsigned have = 0;

    if (length % 4 != 0) {
        return -1;
    }
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') {
        padding++;
    }
    for (size_t i = 0; i < length - padding; i++) {
        const int digit = digit_of(text[i]);

        if (digit < 0) {
            return -1;
        }
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            if (used == capacity) {
                return -1;
            }
            out[used++] = (uint8_t)(bits >> have);
        }
    }
    /* what is left over must be zero: else two texts decode to the same bytes */
    return (bits & ((1U << have) - 1)) == 0 ? (int)used : -1;
}
