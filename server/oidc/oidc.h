#ifndef LAC_SERVER_OIDC_OIDC_H
#define LAC_SERVER_OIDC_OIDC_H

/*
 * Signing in at an OpenID Connect provider: authorization code with PKCE.
 *
 * One secret per attempt lives in a cookie of the browser that began it. State, nonce and the PKCE
 * verifier are derived from it, so that the server keeps nothing, and an answer of the provider is
 * worth nothing in another browser.
 *
 * The signature of the ID token is not checked, and need not be: the token comes straight from the
 * token endpoint over TLS, whose certificate says who made it (OpenID Connect Core, 3.1.3.7, 6).
 * Issuer, audience, authorized party, expiry and nonce are.
 */

#include "analysis/model/status.h"

#include <stddef.h>

struct lac_oidc;

enum {
    LAC_OIDC_SECRET_BYTES = 65, /**< 256 bits in hexadecimal, and a NUL */
    LAC_OIDC_ADDRESS_BYTES = 2048,
    LAC_OIDC_NAME_BYTES = 256,
};

struct lac_oidc_options {
    const char *issuer;      /**< https://..., as the provider writes it; borrowed */
    const char *client;      /**< what the provider calls this service; borrowed */
    const char *secret_file; /**< its secret, first line; NULL: a public client; borrowed */
    const char *claim;       /**< what names the user: "email" (verified), "preferred_username" */
    const char *public_url;  /**< where browsers find the service, without '/' at its end */
};

/** @return LAC_OK; LAC_ERR_MISUSE with what is wrong; LAC_ERR_NOMEM. Asks the provider nothing. */
LAC_MUST_USE enum lac_status lac_oidc_create(const struct lac_oidc_options *options,
                                             struct lac_oidc **ret_oidc, struct lac_error *reterr);
/** NULL is allowed. */
void lac_oidc_destroy(struct lac_oidc *oidc);

/** A new attempt: its secret, and the address at the provider. Asks the provider where that is,
 *  once. @return LAC_OK, LAC_ERR_IO, LAC_ERR_MISUSE, LAC_ERR_CORRUPT */
LAC_MUST_USE enum lac_status lac_oidc_begin(struct lac_oidc *oidc, char *ret_secret,
                                            char *ret_address, struct lac_error *reterr);

/**
 * What the provider sent back with the browser that has `secret`.
 *
 * @param ret_name LAC_OIDC_NAME_BYTES: the user, by the claim
 * @return LAC_OK; LAC_ERR_MISUSE: state or token are not of this attempt; LAC_ERR_IO,
 *         LAC_ERR_CORRUPT: the provider
 */
LAC_MUST_USE enum lac_status lac_oidc_finish(struct lac_oidc *oidc, const char *secret,
                                             const char *state, const char *code, char *ret_name,
                                             struct lac_error *reterr);

#endif
