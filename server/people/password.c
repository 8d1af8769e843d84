#include "server/people/password.h"

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(LAC_PASSWORD_HASH_BYTES >= crypto_pwhash_STRBYTES, "room for a hash");
_Static_assert(LAC_BASE32_TEXT_BYTES(32) == LAC_SECRET_TEXT_BYTES, "256 bits");

/* Each hash takes 64 MiB: one at a time bounds what strangers can make us use. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

enum lac_status lac_password_hash(const char *password, char *ret_hash, struct lac_error *reterr)
{
    int failed;

    if (sodium_init() < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no source of random numbers");
    }
    memset(ret_hash, 0, LAC_PASSWORD_HASH_BYTES);
    (void)pthread_mutex_lock(&one_at_a_time);
    failed =
        crypto_pwhash_str(ret_hash, password, strlen(password), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                          crypto_pwhash_MEMLIMIT_INTERACTIVE);
    (void)pthread_mutex_unlock(&one_at_a_time);
    return failed == 0 ? LAC_OK
                       : lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory to hash the password");
}

bool lac_password_matches(const char *hash, const char *password)
{
    char padded[LAC_PASSWORD_HASH_BYTES] = {0};
    uint8_t key[32];
    static const uint8_t salt[crypto_pwhash_SALTBYTES] = {0};
    bool matches = false;

    (void)pthread_mutex_lock(&one_at_a_time);
    if (hash[0] != '\0') {
        strncpy(padded, hash, sizeof(padded) - 1);
        matches = crypto_pwhash_str_verify(padded, password, strlen(password)) == 0;
    } else { /* the same work, so that time does not tell which names exist */
        (void)!crypto_pwhash(key, sizeof(key), password, strlen(password), salt,
                             crypto_pwhash_OPSLIMIT_INTERACTIVE, crypto_pwhash_MEMLIMIT_INTERACTIVE,
                             crypto_pwhash_ALG_ARGON2ID13);
    }
    (void)pthread_mutex_unlock(&one_at_a_time);
    return matches;
}

void lac_secret_make(char *out)
{
    uint8_t bytes[32];

    randombytes_buf(bytes, sizeof(bytes));
    lac_base32_encode(bytes, sizeof(bytes), out);
    sodium_memzero(bytes, sizeof(bytes));
}

void lac_secret_hash(const char *secret, uint8_t *out)
{
    struct lac_sha hash;

    lac_sha256_init(&hash);
    lac_sha_add(&hash, secret, strlen(secret));
    lac_sha_end(&hash, out);
}
