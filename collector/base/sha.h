#ifndef LAC_COLLECTOR_BASE_SHA_H
#define LAC_COLLECTOR_BASE_SHA_H

/*
 * SHA-256 and SHA-1 (FIPS 180-4) of a stream. SHA-256 uses the processor's SHA instructions where
 * it has them (chosen at run time, three times as fast). SHA-1 is for checksums of uploads only,
 * which every tus client can send: nothing trusts it.
 *
 * A state may be copied to go on from the same place twice. Nothing here allocates or fails.
 */

#include <stddef.h>
#include <stdint.h>

enum { LAC_SHA1_SIZE = 20, LAC_SHA256_SIZE = 32, LAC_SHA_BLOCK_BYTES = 64 };

struct lac_sha {
    void (*add_blocks)(uint32_t *state, const uint8_t *blocks, size_t block_count);
    uint32_t state[8];
    uint64_t size_bytes;
    unsigned digest_bytes;
    uint8_t block[LAC_SHA_BLOCK_BYTES]; /**< the last, incomplete block */
};

void lac_sha256_init(struct lac_sha *hash);
/** The same without the instructions: tests compare both. */
void lac_sha256_init_portable(struct lac_sha *hash);
void lac_sha1_init(struct lac_sha *hash);

void lac_sha_add(struct lac_sha *hash, const void *bytes, size_t size_bytes);

/** @param out LAC_SHA256_SIZE or LAC_SHA1_SIZE bytes. The hash is used up. */
void lac_sha_end(struct lac_sha *hash, uint8_t *out);

#endif
