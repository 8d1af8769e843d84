#include "collector/base/sha.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes */
static const uint32_t k_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* 5.3.3: of the square roots of the first 8 primes */
static const uint32_t sha256_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t rotate_right(uint32_t value, unsigned bits)
{
    return value >> bits | value << (32 - bits);
}

static uint32_t rotate_left(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t load_word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* -- SHA-256, in C ------------------------------------------------------------------------------*/

/** One round; the caller renames the eight variables instead of moving them. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
    do {                                                                                           \
        const uint32_t one_ =                                                                      \
            (h) + (rotate_right((e), 6) ^ rotate_right((e), 11) ^ rotate_right((e), 25)) +         \
            (((e) & (f)) ^ (~(e) & (g))) + k_constants[i] + w[i];                                  \
        const uint32_t two_ =                                                                      \
            (rotate_right((a), 2) ^ rotate_right((a), 13) ^ rotate_right((a), 22)) +               \
            (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                                             \
        (d) += one_;                                                                               \
        (h) = one_ + two_;                                                                         \
    } while (0)

static void add_sha256(uint32_t *state, const uint8_t *bytes, size_t block_count)
{
    for (; block_count > 0; block_count--, bytes += LAC_SHA_BLOCK_BYTES) {
        uint32_t w[64];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

        for (size_t i = 0; i < 16; i++) {
            w[i] = load_word(bytes + i * 4);
        }
        for (size_t i = 16; i < 64; i++) {
            const uint32_t x = w[i - 15];
            const uint32_t y = w[i - 2];

            w[i] = w[i - 16] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[i - 7] +
                   (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
        }
        for (size_t i = 0; i < 64; i += 8) {
            ROUND(a, b, c, d, e, f, g, h, i);
            ROUND(h, a, b, c, d, e, f, g, i + 1);
            ROUND(g, h, a, b, c, d, e, f, i + 2);
            ROUND(f, g, h, a, b, c, d, e, i + 3);
            ROUND(e, f, g, h, a, b, c, d, i + 4);
            ROUND(d, e, f, g, h, a, b, c, i + 5);
            ROUND(c, d, e, f, g, h, a, b, i + 6);
            ROUND(b, c, d, e, f, g, h, a, i + 7);
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}

/* -- SHA-256, by the processor's instructions ---------------------------------------------------*/

#if defined(__x86_64__)

/** Four rounds with words `w` of the schedule; the instructions do two at a time. */
#define FOUR_ROUNDS(w, k)                                                                          \
    do {                                                                                           \
        __m128i sum_ = _mm_add_epi32((w), _mm_loadu_si128((const __m128i *)&k_constants[k]));      \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum_);                                            \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum_, 0x0E));                   \
    } while (0)

/** The next four words of the schedule, in place of the oldest four. */
#define NEXT_WORDS(w0, w1, w2, w3)                                                                 \
    do {                                                                                           \
        (w0) = _mm_sha256msg1_epu32((w0), (w1));                                                   \
        (w0) = _mm_add_epi32((w0), _mm_alignr_epi8((w3), (w2), 4));                                \
        (w0) = _mm_sha256msg2_epu32((w0), (w3));                                                   \
    } while (0)

#define SIXTEEN_ROUNDS(k)                                                                          \
    do {                                                                                           \
        NEXT_WORDS(w0, w1, w2, w3);                                                                \
        FOUR_ROUNDS(w0, (k));                                                                      \
        NEXT_WORDS(w1, w2, w3, w0);                                                                \
        FOUR_ROUNDS(w1, (k) + 4);                                                                  \
        NEXT_WORDS(w2, w3, w0, w1);                                                                \
        FOUR_ROUNDS(w2, (k) + 8);                                                                  \
        NEXT_WORDS(w3, w0, w1, w2);                                                                \
        FOUR_ROUNDS(w3, (k) + 12);                                                                 \
    } while (0)

__attribute__((target("sha,sse4.1"))) static void
add_sha256_fast(uint32_t *state, const uint8_t *bytes, size_t block_count)
{
    const __m128i big_endian =
        _mm_set_epi64x(0x0C0D0E0F08090A0BLL, 0x0405060700010203LL); /* bytes to words */
    /* the instructions want the state as (a b e f) and (c d g h), highest lane first */
    __m128i dcba = _mm_loadu_si128((const __m128i *)&state[0]);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)&state[4]);
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);

    for (; block_count > 0; block_count--, bytes += 64) {
        const __m128i *in = (const __m128i *)bytes;
        __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(in), big_endian);
        __m128i w1 = _mm_shuffle_epi8(_mm_loadu_si128(in + 1), big_endian);
        __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(in + 2), big_endian);
        __m128i w3 = _mm_shuffle_epi8(_mm_loadu_si128(in + 3), big_endian);
        __m128i abef_before = abef;
        __m128i cdgh_before = cdgh;

        FOUR_ROUNDS(w0, 0);
        FOUR_ROUNDS(w1, 4);
        FOUR_ROUNDS(w2, 8);
        FOUR_ROUNDS(w3, 12);
        SIXTEEN_ROUNDS(16);
        SIXTEEN_ROUNDS(32);
        SIXTEEN_ROUNDS(48);
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    {
        __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
        __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);

        _mm_storeu_si128((__m128i *)&state[0], _mm_blend_epi16(feba, dchg, 0xF0));
        _mm_storeu_si128((__m128i *)&state[4], _mm_alignr_epi8(dchg, feba, 8));
    }
}

static int have_instructions(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) {
        return 0;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) != 0;
}

#endif

/* -- SHA-1 --------------------------------------------------------------------------------------*/

static void add_sha1(uint32_t *state, const uint8_t *bytes, size_t block_count)
{
    for (; block_count > 0; block_count--, bytes += LAC_SHA_BLOCK_BYTES) {
        uint32_t w[80];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

        for (size_t i = 0; i < 16; i++) {
            w[i] = load_word(bytes + i * 4);
        }
        for (size_t i = 16; i < 80; i++) {
            w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        }
        for (size_t i = 0; i < 80; i++) {
            uint32_t f;

            if (i < 20) {
                f = ((b & c) | (~b & d)) + 0x5A827999U;
            } else if (i < 40) {
                f = (b ^ c ^ d) + 0x6ED9EBA1U;
            } else if (i < 60) {
                f = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCU;
            } else {
                f = (b ^ c ^ d) + 0xCA62C1D6U;
            }
            f += rotate_left(a, 5) + e + w[i];
            e = d;
            d = c;
            c = rotate_left(b, 30);
            b = a;
            a = f;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }
}

/* -- the stream, the same for both --------------------------------------------------------------*/

void lac_sha256_init_portable(struct lac_sha *hash)
{
    *hash = (struct lac_sha){.add_blocks = add_sha256, .digest_bytes = LAC_SHA256_SIZE};
    memcpy(hash->state, sha256_state, sizeof(sha256_state));
}

void lac_sha256_init(struct lac_sha *hash)
{
    lac_sha256_init_portable(hash);
#if defined(__x86_64__)
    if (have_instructions()) {
        hash->add_blocks = add_sha256_fast;
    }
#endif
}

void lac_sha1_init(struct lac_sha *hash)
{
    *hash =
        (struct lac_sha){.add_blocks = add_sha1,
                         .state = {0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U},
                         .digest_bytes = LAC_SHA1_SIZE};
}

void lac_sha_add(struct lac_sha *hash, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    const size_t have = (size_t)(hash->size_bytes % LAC_SHA_BLOCK_BYTES);

    hash->size_bytes += size_bytes;
    if (have > 0) {
        const size_t room = LAC_SHA_BLOCK_BYTES - have;
        const size_t take = room < size_bytes ? room : size_bytes;

        memcpy(hash->block + have, at, take);
        at += take;
        size_bytes -= take;
        if (take < room) {
            return;
        }
        hash->add_blocks(hash->state, hash->block, 1);
    }
    hash->add_blocks(hash->state, at, size_bytes / LAC_SHA_BLOCK_BYTES);
    at += size_bytes / LAC_SHA_BLOCK_BYTES * LAC_SHA_BLOCK_BYTES;
    if (size_bytes % LAC_SHA_BLOCK_BYTES > 0) {
        memcpy(hash->block, at, size_bytes % LAC_SHA_BLOCK_BYTES);
    }
}

void lac_sha_end(struct lac_sha *hash, uint8_t *out)
{
    static const uint8_t padding[LAC_SHA_BLOCK_BYTES] = {0x80};
    const uint64_t bits = hash->size_bytes * 8;
    const size_t have = (size_t)(hash->size_bytes % LAC_SHA_BLOCK_BYTES);
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    lac_sha_add(hash, padding, have < 56 ? 56 - have : 120 - have);
    lac_sha_add(hash, length, sizeof(length));
    for (unsigned i = 0; i < hash->digest_bytes; i++) {
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
