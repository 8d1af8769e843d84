#include "server/ingest/sha1.h"

#include <stdint.h>
#include <string.h>

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static void add_block(uint32_t *state, const uint8_t *block)
{
    uint32_t w[80];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (size_t i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
               (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
    }
    for (size_t i = 16; i < 80; i++) {
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
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
        f += rotate(a, 5) + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = f;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void lac_sha1_init(struct lac_sha1 *hash)
{
    *hash = (struct lac_sha1){
        .state = {0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U}};
}

void lac_sha1_add(struct lac_sha1 *hash, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;

    while (size_bytes > 0) {
        const size_t used = hash->size_bytes % sizeof hash->block;
        const size_t room = sizeof hash->block - used;
        const size_t part = size_bytes < room ? size_bytes : room;

        memcpy(hash->block + used, at, part);
        hash->size_bytes += part;
        at += part;
        size_bytes -= part;
        if (used + part == sizeof hash->block) {
            add_block(hash->state, hash->block);
        }
    }
}

void lac_sha1_end(struct lac_sha1 *hash, uint8_t *out)
{
    static const uint8_t padding[64] = {0x80};
    const uint64_t bits = hash->size_bytes * 8;
    const size_t used = hash->size_bytes % 64;
    uint8_t length[8];

    for (size_t i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - i * 8));
    }
    lac_sha1_add(hash, padding, used < 56 ? 56 - used : 120 - used);
    lac_sha1_add(hash, length, sizeof length);
    for (size_t i = 0; i < LAC_SHA1_SIZE; i++) {
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - i % 4 * 8));
    }
}
