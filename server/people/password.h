#ifndef LAC_SERVER_PEOPLE_PASSWORD_H
#define LAC_SERVER_PEOPLE_PASSWORD_H

/* Passwords (Argon2id, libsodium's interactive parameters: 64 MiB) and random secrets. */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

/** @param ret_hash LAC_PASSWORD_HASH_BYTES of text. One call at a time runs; the others wait. */
LAC_MUST_USE enum lac_status lac_password_hash(const char *password, char *ret_hash,
                                               struct lac_error *reterr);

/** Whether the password is the one; "" as hash never matches, and takes as long. */
bool lac_password_matches(const char *hash, const char *password);

/** 256 random bits as text. @param out LAC_SECRET_TEXT_BYTES */
void lac_secret_make(char *out);

/** SHA-256 of a secret's text. @param out LAC_SHA256_SIZE */
void lac_secret_hash(const char *secret, uint8_t *out);

#endif
