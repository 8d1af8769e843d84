#ifndef LAC_ANALYSIS_IMPORT_CHROME_JSON_SCAN_H
#define LAC_ANALYSIS_IMPORT_CHROME_JSON_SCAN_H

/*
 * The inner loops of the tokenizer, once for AVX2 and once for any machine. A file that includes
 * this defines LAC_SCAN_AVX2 or not; both give the same results on the same bytes, which
 * tests/fuzz/fuzz_json.c and tests/unit/test_json_scan.c check.
 *
 * All functions may read up to LAC_JSON_PAD bytes beyond the first byte that stops them; the pad
 * of a window is zeros, and 0 stops each of them.
 */

#include "analysis/import/chrome/json_window.h"

#include <stdint.h>
#include <string.h>

#ifdef LAC_SCAN_AVX2
#include <immintrin.h>
#define LAC_SCAN_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define LAC_SCAN_TARGET
#endif
#define LAC_SCAN_INLINE static inline __attribute__((always_inline)) LAC_SCAN_TARGET

static inline uint64_t lac_load64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint32_t lac_load32(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

#ifdef LAC_SCAN_AVX2

static inline LAC_SCAN_TARGET __m256i lac_load256(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i_u *)(const void *)p);
}

/* Bit i set: byte i of v ends a plain run of a string: quote, backslash, control or not ASCII. */
LAC_SCAN_INLINE uint32_t lac_string_stops(__m256i v)
{
    __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
    __m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
    /* as signed bytes, 0x80.. are negative: one comparison finds them and the controls */
    __m256i below = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), v);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), below));
}

/** First byte from p that is a quote, a backslash, a control character or not ASCII. */
LAC_SCAN_INLINE const uint8_t *lac_scan_string(const uint8_t *p)
{
    for (;;) {
        uint32_t stops = lac_string_stops(lac_load256(p));
        if (stops) {
            return p + __builtin_ctz(stops);
        }
        p += 32;
    }
}

/** The same, copying the bytes before it to *out, which moves on; out has 32 bytes to spare. */
LAC_SCAN_INLINE const uint8_t *lac_scan_copy(const uint8_t *p, uint8_t **out)
{
    uint8_t *to = *out;
    for (;;) {
        __m256i v = lac_load256(p);
        _mm256_storeu_si256((__m256i_u *)(void *)to, v);
        uint32_t stops = lac_string_stops(v);
        if (stops) {
            uint32_t length = (uint32_t)__builtin_ctz(stops);
            *out = to + length;
            return p + length;
        }
        p += 32;
        to += 32;
    }
}

/** First byte from p that is not JSON white space. */
LAC_SCAN_INLINE const uint8_t *lac_scan_space(const uint8_t *p)
{
    /* a table indexed by the low four bits gives the one white space character that has them */
    const __m256i table =
        _mm256_setr_epi8(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0, ' ', 0, 0, 0, 0,
                         0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0);
    for (;;) {
        __m256i v = lac_load256(p);
        uint32_t space =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, v), v));
        if (space != UINT32_MAX) {
            return p + __builtin_ctz(~space);
        }
        p += 32;
    }
}

#else

/* High bit of each byte of the result: whether that byte of word stops a string. Exact up to and
 * including the first one (a borrow can only disturb bytes above it), which is all that is used. */
LAC_SCAN_INLINE uint64_t lac_string_stops(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = word ^ ones * '"';
    uint64_t slash = word ^ ones * '\\';
    uint64_t stops = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                     ((word - ones * 0x20) & ~word) | word;
    return stops & (ones * 0x80);
}

LAC_SCAN_INLINE const uint8_t *lac_scan_string(const uint8_t *p)
{
    for (;;) {
        uint64_t stops = lac_string_stops(lac_load64(p));
        if (stops) {
            return p + (__builtin_ctzll(stops) >> 3);
        }
        p += 8;
    }
}

LAC_SCAN_INLINE const uint8_t *lac_scan_copy(const uint8_t *p, uint8_t **out)
{
    uint8_t *to = *out;
    for (;;) {
        memcpy(to, p, 8);
        uint64_t stops = lac_string_stops(lac_load64(p));
        if (stops) {
            uint32_t length = (uint32_t)__builtin_ctzll(stops) >> 3;
            *out = to + length;
            return p + length;
        }
        p += 8;
        to += 8;
    }
}

LAC_SCAN_INLINE const uint8_t *lac_scan_space(const uint8_t *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}

#endif

/** White space, mostly none or one space. */
LAC_SCAN_INLINE const uint8_t *lac_skip_space(const uint8_t *p)
{
    if (*p > ' ') {
        return p;
    }
    if (*p == ' ' && p[1] > ' ') {
        return p + 1;
    }
    return lac_scan_space(p);
}

#endif
