#include "server/ingest/sha256.h"

#include <stdint.h>
#include <string.h>

void lac_sha256_init_portable(struct lac_sha256 *hash)
{
    *hash = (struct lac_sha256){.is_fast = false};
    (void)crypto_hash_sha256_init(&hash->portable);
}

#if defined(__x86_64__)

#include <immintrin.h>

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
static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

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

__attribute__((target("sha,sse4.1"))) static void add_blocks(uint32_t *state, const uint8_t *bytes,
                                                             size_t block_count)
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

static bool have_instructions(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1") > 0;
}

void lac_sha256_init(struct lac_sha256 *hash)
{
    if (!have_instructions()) {
        lac_sha256_init_portable(hash);
        return;
    }
    *hash = (struct lac_sha256){.is_fast = true};
    memcpy(hash->state, first_state, sizeof first_state);
}

static void add_fast(struct lac_sha256 *hash, const uint8_t *bytes, size_t size_bytes)
{
    size_t have = (size_t)(hash->size_bytes % 64);

    hash->size_bytes += size_bytes;
    if (have > 0) {
        size_t take = 64 - have < size_bytes ? 64 - have : size_bytes;

        memcpy(hash->block + have, bytes, take);
        bytes += take;
        size_bytes -= take;
        if (have + take < 64) {
            return;
        }
        add_blocks(hash->state, hash->block, 1);
    }
    add_blocks(hash->state, bytes, size_bytes / 64);
    if (size_bytes % 64 > 0) {
        memcpy(hash->block, bytes + size_bytes / 64 * 64, size_bytes % 64);
    }
}

static void end_fast(struct lac_sha256 *hash, uint8_t *out)
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->size_bytes * 8;
    size_t have = (size_t)(hash->size_bytes % 64);
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    add_fast(hash, padding, have < 56 ? 56 - have : 120 - have);
    add_fast(hash, length, sizeof length);
    for (unsigned i = 0; i < 32; i++) {
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

#else

void lac_sha256_init(struct lac_sha256 *hash)
{
    lac_sha256_init_portable(hash);
}

static void add_fast(struct lac_sha256 *hash, const uint8_t *bytes, size_t size_bytes)
{
    (void)hash, (void)bytes, (void)size_bytes;
}

static void end_fast(struct lac_sha256 *hash, uint8_t *out)
{
    (void)hash, (void)out;
}

#endif

void lac_sha256_add(struct lac_sha256 *hash, const void *bytes, size_t size_bytes)
{
    if (hash->is_fast) {
        add_fast(hash, bytes, size_bytes);
    } else {
        (void)crypto_hash_sha256_update(&hash->portable, bytes, size_bytes);
    }
}

void lac_sha256_end(struct lac_sha256 *hash, uint8_t *out)
{
    if (hash->is_fast) {
        end_fast(hash, out);
    } else {
        (void)crypto_hash_sha256_final(&hash->portable, out);
    }
}
