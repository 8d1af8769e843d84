#ifndef LAC_SERVER_HTTP_KEY_H
#define LAC_SERVER_HTTP_KEY_H

/*
 * The local key: 256 random bits in DIR/local.token (mode 0600), as 52 characters of base32. Who
 * can read that file may use the server. Scripts send the key itself as a bearer; browsers get a
 * cookie whose value is derived from it, so that a stolen cookie does not reveal the key.
 */

#include "analysis/model/status.h"
#include "server/http/principal.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAC_KEY_TEXT_LENGTH = 52 };

struct lac_key {
    char text[LAC_KEY_TEXT_LENGTH + 1];   /**< what scripts send */
    char cookie[LAC_KEY_TEXT_LENGTH + 1]; /**< what browsers send */
};

/**
 * Read DIR/local.token, or make it. Two servers starting at once get the same key.
 *
 * @return LAC_OK; LAC_ERR_IO; LAC_ERR_CORRUPT when the file holds no key, LAC_ERR_MISUSE when
 *         others may read it or it is not ours
 */
LAC_MUST_USE enum lac_status lac_key_load(const char *data_dir, struct lac_key *ret_key,
                                          struct lac_error *reterr);

/**
 * Write DIR/local.header (mode 0600), the header line that shows the key: for `curl -H @FILE`,
 * since everybody on the machine can read a command's arguments.
 *
 * @return LAC_OK or LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_key_write_header(const char *data_dir, const struct lac_key *key,
                                                  struct lac_error *reterr);

/** Whether two secrets are the same; takes the same time for every wrong guess. */
bool lac_key_same_secret(const char *expected, const char *given);

/** Whether `given` is the key (or the cookie's value). Takes the same time for
 *  every wrong guess. */
bool lac_key_matches(const struct lac_key *key, const char *given);
bool lac_key_cookie_matches(const struct lac_key *key, const char *given);

/** Whether `secret` is the key, shown that way; then *ret_who is who holds it. */
bool lac_key_identify(const struct lac_key *key, enum lac_proof proof, const char *secret,
                      struct lac_principal *ret_who);

#endif
