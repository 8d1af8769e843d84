#ifndef LAC_SERVER_TLS_TLS_PRIVATE_H
#define LAC_SERVER_TLS_TLS_PRIVATE_H

#include "analysis/model/status.h"
#include "server/tls/tls.h"

#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/** What we use of GnuTLS, by the names after "gnutls_". */
#define LAC_TLS_FUNCTIONS(X)                                                                       \
    X(init)                                                                                        \
    X(deinit)                                                                                      \
    X(bye)                                                                                         \
    X(handshake)                                                                                   \
    X(error_is_fatal)                                                                              \
    X(strerror)                                                                                    \
    X(record_send)                                                                                 \
    X(record_recv)                                                                                 \
    X(record_check_pending)                                                                        \
    X(record_get_direction)                                                                        \
    X(transport_set_int2)                                                                          \
    X(priority_init)                                                                               \
    X(priority_deinit)                                                                             \
    X(priority_set)                                                                                \
    X(credentials_set)                                                                             \
    X(alpn_set_protocols)                                                                          \
    X(certificate_allocate_credentials)                                                            \
    X(certificate_free_credentials)                                                                \
    X(certificate_set_x509_key_file2)                                                              \
    X(certificate_get_crt_raw)                                                                     \
    X(certificate_get_peers)

struct tls_library {
#define LAC_TLS_MEMBER(name) __typeof__(gnutls_##name) *(name);
    LAC_TLS_FUNCTIONS(LAC_TLS_MEMBER)
#undef LAC_TLS_MEMBER
};

/** A certificate with its key; open connections keep the one that they began with. */
struct tls_identity {
    gnutls_certificate_credentials_t credentials;
    unsigned holders; /**< under lac_tls.lock */
};

enum { TLS_RECORD_BYTES = 16384, TLS_HANDSHAKES_MAX = 1024 };

/** Bytes that the other side did not take yet. */
struct tls_pending {
    uint8_t *bytes; /**< NULL: none */
    size_t at, end;
};

/** A descriptor, and what epoll was told to wait for. */
struct tls_end {
    int fd;
    uint32_t watched;
};

struct tls_connection {
    struct tls_relay *relay;
    struct tls_connection *prev, *next; /**< the oldest first */
    struct tls_end client, server;      /**< server.fd is -1 until the handshake is done */
    struct tls_identity *identity;
    gnutls_session_t session;
    struct tls_pending to_server, to_client;
    struct sockaddr_storage address;
    socklen_t address_length;
    int64_t deadline_ns; /**< of the handshake, or of what is left after the end; 0: none */
    int64_t stalled_ns;  /**< since when the client takes nothing; 0: it does */
    bool is_half_sent;   /**< a record is partly in the socket */
    bool client_ended;   /**< nothing more comes from it */
    bool server_ended;
    bool server_is_deaf; /**< takes nothing more */
    bool was_told_bye;
    bool is_over;
};

/** One thread with its connections. */
struct tls_relay {
    struct lac_tls *tls;
    pthread_t thread;
    bool is_started;
    int epoll_fd;
    int64_t accept_again_ns; /**< 0: it accepts */
    unsigned handshakes;
    struct tls_connection *first, *last;
    uint8_t scratch[TLS_RECORD_BYTES];
};

struct lac_tls {
    struct lac_tls_options options;
    struct tls_library library;
    gnutls_priority_t priority;
    pthread_mutex_t lock; /**< guards identity and all holders */
    struct tls_identity *identity;
    int listen_fd;
    _Atomic bool is_stopping;
    unsigned relay_count;
    struct tls_relay *relays;
};

/* tls.c */
/** @return LAC_OK or LAC_ERR_MISUSE: the library is not here */
LAC_MUST_USE enum lac_status lac_tls_load(struct tls_library *library, struct lac_error *reterr);
void lac_tls_write_fingerprint(const void *certificate, size_t size_bytes,
                               char out[LAC_TLS_FINGERPRINT_BYTES]);

/* relay.c */
void *lac_tls_relay(void *context);
int64_t lac_tls_now_ns(void);

/* tls.c */
struct tls_identity *lac_tls_hold(struct lac_tls *tls);
void lac_tls_release(struct lac_tls *tls, struct tls_identity *identity);

/* relay_bytes.c: all on the relay's thread */
void lac_tls_connection_open(struct tls_relay *relay, int fd, const struct sockaddr *address,
                             socklen_t length);
/** Move bytes for as long as both sides go along, then say what to wait for. It may be over then. */
void lac_tls_connection_serve(struct tls_connection *connection);
void lac_tls_connection_check(struct tls_connection *connection, int64_t now_ns);
void lac_tls_connection_close(struct tls_connection *connection);

#endif
