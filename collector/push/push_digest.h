#ifndef LAC_COLLECTOR_PUSH_PUSH_DIGEST_H
#define LAC_COLLECTOR_PUSH_PUSH_DIGEST_H

/* SHA-256 (FIPS 180-4) and base64: what an upload's checksum needs, without any library. */

#include <stddef.h>
#include <stdint.h>

enum { LAC_DIGEST_BYTES = 32, LAC_DIGEST_HEX = 65, LAC_DIGEST_BASE64 = 45 };

struct lac_digest {
    uint32_t state[8];
    uint64_t size_bytes;
    uint8_t block[64]; /**< the last, incomplete block */
};

void lac_digest_init(struct lac_digest *digest);
void lac_digest_add(struct lac_digest *digest, const void *bytes, size_t size_bytes);
/** @param out LAC_DIGEST_BYTES bytes. The digest is used up. */
void lac_digest_end(struct lac_digest *digest, uint8_t *out);

/** @param out room for LAC_DIGEST_HEX characters */
void lac_digest_hex(const uint8_t *bytes, char *out);

/** With padding and a NUL. @param capacity at least 4 * ((size_bytes + 2) / 3) + 1 */
void lac_base64_encode(const void *bytes, size_t size_bytes, char *out, size_t capacity);

#endif
