#ifndef LAC_SERVER_INGEST_SHA1_H
#define LAC_SERVER_INGEST_SHA1_H

/*
 * SHA-1 (FIPS 180-4) of a stream, for upload checksums only: every tus client knows it. Nothing
 * here trusts it.
 */

#include <stddef.h>
#include <stdint.h>

enum { LAC_SHA1_SIZE = 20 };

struct lac_sha1 {
    uint32_t state[5];
    uint64_t size_bytes;
    uint8_t block[64]; /**< the last, incomplete block */
};

void lac_sha1_init(struct lac_sha1 *hash);
void lac_sha1_add(struct lac_sha1 *hash, const void *bytes, size_t size_bytes);
/** @param out LAC_SHA1_SIZE bytes. The hash is used up. */
void lac_sha1_end(struct lac_sha1 *hash, uint8_t *out);

#endif
