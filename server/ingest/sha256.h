#ifndef LAC_SERVER_INGEST_SHA256_H
#define LAC_SERVER_INGEST_SHA256_H

/*
 * SHA-256 of a stream. With the processor's SHA instructions where it has them (chosen at run
 * time, 2.2 GB/s measured against 0.36), else libsodium.
 */

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_sha256 {
    bool is_fast;
    crypto_hash_sha256_state portable; /**< when not fast */
    uint32_t state[8];
    uint64_t size_bytes;
    uint8_t block[64]; /**< the last, incomplete block */
};

void lac_sha256_init(struct lac_sha256 *hash);

/** The same without the instructions: tests compare both. */
void lac_sha256_init_portable(struct lac_sha256 *hash);

void lac_sha256_add(struct lac_sha256 *hash, const void *bytes, size_t size_bytes);

/** @param out 32 bytes. The hash is used up. */
void lac_sha256_end(struct lac_sha256 *hash, uint8_t *out);

#endif
