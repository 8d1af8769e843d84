#include "server/base/hmac.h"

#include "collector/base/sha.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void lac_hmac_init(struct lac_hmac *hmac, const void *key, size_t key_bytes)
{
    uint8_t block[LAC_SHA_BLOCK_BYTES] = {0};

    if (key_bytes > sizeof(block)) {
        lac_sha256_init(&hmac->inner);
        lac_sha_add(&hmac->inner, key, key_bytes);
        lac_sha_end(&hmac->inner, block);
    } else {
        memcpy(block, key, key_bytes);
    }
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36;
    }
    lac_sha256_init(&hmac->inner);
    lac_sha_add(&hmac->inner, block, sizeof(block));
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36 ^ 0x5C;
    }
    lac_sha256_init(&hmac->outer);
    lac_sha_add(&hmac->outer, block, sizeof(block));
}

void lac_hmac_add(struct lac_hmac *hmac, const void *bytes, size_t size_bytes)
{
    lac_sha_add(&hmac->inner, bytes, size_bytes);
}

void lac_hmac_end(struct lac_hmac *hmac, uint8_t *out)
{
    uint8_t digest[LAC_SHA256_SIZE];

    lac_sha_end(&hmac->inner, digest);
    lac_sha_add(&hmac->outer, digest, sizeof(digest));
    lac_sha_end(&hmac->outer, out);
}

void lac_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t size_bytes,
                     uint8_t *out)
{
    struct lac_hmac hmac;

    lac_hmac_init(&hmac, key, key_bytes);
    lac_hmac_add(&hmac, bytes, size_bytes);
    lac_hmac_end(&hmac, out);
}
