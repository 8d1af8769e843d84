#include "collector/push/push_digest.h"

#include <stdint.h>
#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value >> bits | value << (32 - bits);
}

static void add_block(uint32_t *state, const uint8_t *block)
{
    uint32_t w[64];
    uint32_t s[8];

    for (size_t i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
               (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
    }
    for (size_t i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15];
        const uint32_t b = w[i - 2];

        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof(s));
    for (size_t i = 0; i < 64; i++) {
        const uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i];
        const uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                             ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(&s[1], &s[0], 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

void lac_digest_init(struct lac_digest *digest)
{
    *digest = (struct lac_digest){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void lac_digest_add(struct lac_digest *digest, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;

    while (size_bytes > 0) {
        const size_t used = digest->size_bytes % sizeof(digest->block);
        const size_t room = sizeof(digest->block) - used;
        const size_t part = size_bytes < room ? size_bytes : room;

        memcpy(digest->block + used, at, part);
        digest->size_bytes += part;
        at += part;
        size_bytes -= part;
        if (used + part == sizeof(digest->block)) {
            add_block(digest->state, digest->block);
        }
    }
}

void lac_digest_end(struct lac_digest *digest, uint8_t *out)
{
    static const uint8_t padding[64] = {0x80};
    const uint64_t bits = digest->size_bytes * 8;
    const size_t used = digest->size_bytes % 64;
    uint8_t length[8];

    for (size_t i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - i * 8));
    }
    lac_digest_add(digest, padding, used < 56 ? 56 - used : 120 - used);
    lac_digest_add(digest, length, sizeof(length));
    for (size_t i = 0; i < LAC_DIGEST_BYTES; i++) {
        out[i] = (uint8_t)(digest->state[i / 4] >> (24 - i % 4 * 8));
    }
}

void lac_digest_hex(const uint8_t *bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < LAC_DIGEST_BYTES; i++) {
        out[i * 2] = digits[bytes[i] >> 4];
        out[i * 2 + 1] = digits[bytes[i] & 15];
    }
    out[LAC_DIGEST_HEX - 1] = '\0';
}

void lac_base64_encode(const void *bytes, size_t size_bytes, char *out, size_t capacity)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = bytes;
    size_t used = 0;

    for (size_t i = 0; i < size_bytes && used + 5 <= capacity; i += 3) {
        const size_t left = size_bytes - i;
        const uint32_t bits = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0U) |
                              (left > 2 ? at[i + 2] : 0U);

        out[used++] = digits[bits >> 18];
        out[used++] = digits[bits >> 12 & 63];
        out[used++] = left > 1 ? digits[bits >> 6 & 63] : '=';
        out[used++] = left > 2 ? digits[bits & 63] : '=';
    }
    if (used < capacity) {
        out[used] = '\0';
    }
}
