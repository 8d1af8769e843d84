#ifndef LAC_SERVER_TLS_LINK_H
#define LAC_SERVER_TLS_LINK_H

/*
 * TLS from one server of ours to another. It knows the other by the fingerprint of its certificate,
 * which comes from a place that both trust (the catalog): no authority has to have signed it, and
 * its names do not matter.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct lac_tls_link;

/**
 * Shake hands.
 *
 * @param fd connected; stays the caller's @param fingerprint as lac_tls_fingerprint() writes it
 * @param wait_ms for each of the other side's answers, also later
 * @return LAC_OK; LAC_ERR_MISUSE (no GnuTLS here), LAC_ERR_IO (no answer, another certificate),
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_tls_link_open(int fd, const char *fingerprint, int wait_ms,
                                               struct lac_tls_link **ret_link,
                                               struct lac_error *reterr);
LAC_MUST_USE bool lac_tls_link_send(struct lac_tls_link *link, const void *bytes,
                                    size_t size_bytes);
/** @return bytes, 0 at the end, -1 */
ssize_t lac_tls_link_receive(struct lac_tls_link *link, void *bytes, size_t size_bytes);
/** NULL is allowed. */
void lac_tls_link_close(struct lac_tls_link *link);

#endif
