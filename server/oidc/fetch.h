#ifndef LAC_SERVER_OIDC_FETCH_H
#define LAC_SERVER_OIDC_FETCH_H

/* One request to the provider, with libcurl, which is loaded when it is first needed. */

#include "analysis/model/status.h"

#include <stddef.h>

enum { LAC_FETCH_BYTES_MAX = 65536 };

/** GET, or POST of a form where `form` is not NULL. No redirects; https alone, or http on this
 *  machine's loopback address; the server's certificate is checked, against LACUNA_CA_FILE where
 *  that is set.
 *
 *  @param out LAC_FETCH_BYTES_MAX: the body of a reply of 200, NUL-terminated
 *  @return LAC_OK; LAC_ERR_IO (the message says what); LAC_ERR_MISUSE: no libcurl. Any thread;
 *          takes 10 s at most. */
LAC_MUST_USE enum lac_status lac_fetch(const char *url, const char *form, char *out,
                                       size_t *ret_size_bytes, struct lac_error *reterr);

#endif
