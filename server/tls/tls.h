#ifndef LAC_SERVER_TLS_TLS_H
#define LAC_SERVER_TLS_TLS_H

/*
 * TLS in front of the HTTP server: accepts, does the handshake, and relays each connection to the
 * server through a pair of sockets. What the server checks of bytes, deadlines and peers is the
 * same with and without TLS.
 *
 *   client --TLS--> relay (threads of ours) --socket pair--> server/http
 *
 * GnuTLS is loaded when it is asked for, so that a machine without it can run everything else.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <sys/socket.h>

struct lac_tls;

struct lac_tls_options {
    const char *certificate_path; /**< PEM: its own first, then those that signed it; borrowed */
    const char *key_path;         /**< PEM, not encrypted; borrowed */
    unsigned thread_count;        /**< 0: one a core, at most 4 */
    unsigned handshake_ms_max;    /**< 0: 10000 */
    unsigned stall_ms_max;        /**< a reader that takes nothing for so long is left; 0: 10000 */
    /** Give a connection to the server: `fd` is the callee's from then on. Any thread. */
    void (*adopt)(void *context, int fd, const struct sockaddr *address, socklen_t length);
    void *context;
};

/**
 * Load the library and the certificate.
 *
 * @return LAC_OK; LAC_ERR_MISUSE (no library, or files that do not fit: the message says which);
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_tls_create(const struct lac_tls_options *options,
                                            struct lac_tls **ret_tls, struct lac_error *reterr);

/** Accept on this socket, which stays the caller's and stays open until lac_tls_destroy().
 *  @return LAC_OK or LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_tls_start(struct lac_tls *tls, int listen_fd,
                                           struct lac_error *reterr);

/** Read the files again: connections from now on get the new certificate, those that are open stay
 *  as they are. On failure the old one stays. */
LAC_MUST_USE enum lac_status lac_tls_reload(struct lac_tls *tls, struct lac_error *reterr);

enum { LAC_TLS_FINGERPRINT_BYTES = 65 };
/** By which others know this server's certificate: the SHA-256 of it, in 64 hexadecimal digits.
 *  @return false: there is none to be had */
LAC_MUST_USE bool lac_tls_fingerprint(struct lac_tls *tls, char out[LAC_TLS_FINGERPRINT_BYTES]);

/** Send what is still on its way (2 s at most), close all, join the threads. The server has to be
 *  stopped first. NULL is allowed. */
void lac_tls_destroy(struct lac_tls *tls);

#endif
