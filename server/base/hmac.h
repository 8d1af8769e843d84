#ifndef LAC_SERVER_BASE_HMAC_H
#define LAC_SERVER_BASE_HMAC_H

/* HMAC-SHA-256 (RFC 2104) of a stream. Nothing here allocates or fails. */

#include "collector/base/sha.h"

#include <stddef.h>
#include <stdint.h>

struct lac_hmac {
    struct lac_sha inner, outer;
};

void lac_hmac_init(struct lac_hmac *hmac, const void *key, size_t key_bytes);
void lac_hmac_add(struct lac_hmac *hmac, const void *bytes, size_t size_bytes);
/** @param out LAC_SHA256_SIZE bytes. The state is used up. */
void lac_hmac_end(struct lac_hmac *hmac, uint8_t *out);

/** All at once; `out` may be the key. */
void lac_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t size_bytes,
                     uint8_t *out);

#endif
