#ifndef LAC_SERVER_HTTP_SERVER_H
#define LAC_SERVER_HTTP_SERVER_H

/*
 * The HTTP server: one listening socket, one epoll loop per thread of ours, each with its own
 * libmicrohttpd daemon in external mode on a dup of that socket, and a pool for what may block.
 *
 *   bytes -> framing, Host, Origin -> route -> access -> body -> handler -> reply
 *
 * README.md has the picture. Handlers, routes and the page come from outside (request.h, assets.h).
 */

#include "analysis/model/status.h"
#include "server/http/assets.h"
#include "server/http/guard.h"
#include "server/http/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct lac_http_options {
    const char *listen;     /**< "ADDR:PORT", "[ADDR]:PORT" or "PORT"; port 0: any free one */
    bool allow_remote;      /**< without it only loopback addresses are accepted */
    const char *base_path;  /**< "" or "/x/y": removed from paths that have it */
    struct lac_guard guard; /**< strings borrowed */
    /**
     * Who shows `secret`; on the loop: must not block.
     * @return false: it is unknown, expired or revoked
     */
    bool (*identify)(void *app, enum lac_proof proof, const char *secret,
                     struct lac_principal *ret_who);
    /** The user whom a proxy of ours names in `trust_header`; on the loop: must not block. */
    bool (*identify_named)(void *app, const char *name, struct lac_principal *ret_who);
    const char *trust_header; /**< NULL: none; only with is_behind_proxy */
    const char *trust_from;   /**< the proxy's address, as inet_ntop() writes it; NULL: loopback */
    /**
     * Whether the request may go on to its handler, by the route's access rule and what its path
     * names. On a worker before the handler; for routes that run on the loop, and for those that
     * stream a body or events, on the loop when the header is complete: there it must not block.
     * NULL: every principal may everything.
     * @return false: the response says why
     */
    bool (*permit)(void *app, const struct lac_route *route, const struct lac_request *request,
                   struct lac_response *response);
    /** What becomes of a reply before it leaves, on the worker that made it; NULL: it stays. */
    void (*finish)(void *app, const struct lac_route *route, const struct lac_request *request,
                   struct lac_response *response);
    /** Whether an open event stream of `who` gets what happens in `project`; NULL: it does. Any
     *  thread; must not block. */
    bool (*may_hear)(void *app, const struct lac_principal *who, const char *project);
    /**
     * Of a server that does not answer all: whether another one has to answer this request. Such a
     * request is not refused for want of a proof, goes to `elsewhere` instead of its route, and has
     * `head`. Also what shows a secret that nobody here knows goes there. On the loop: must not
     * block. NULL: this server answers all.
     */
    bool (*is_elsewhere)(void *app, const struct lac_route *route);
    const struct lac_route *elsewhere; /**< open, streams its body, takes LAC_BODY_UPLOAD */
    /** By which servers that pass requests on are known, and believed whom they name: their header
     *  fields Lacuna-Node, Lacuna-As and X-Forwarded-For. Borrowed; "" or NULL: none. Read at each
     *  request. */
    const char *node_secret;
    int listen_fd; /**< with `has_socket`: listens already; duplicated, stays the caller's */
    bool has_socket;
    bool is_fed;                    /**< connections come from lac_http_server_adopt() alone */
    bool is_behind_proxy;           /**< who connects is a proxy of ours: X-Forwarded-For is true */
    const struct lac_route *routes; /**< borrowed */
    unsigned route_count;
    void *app;                      /**< handed to handlers */
    const struct lac_asset *assets; /**< borrowed, ascending by path; may be NULL */
    unsigned asset_count;
    unsigned loop_count;               /**< 0: one a core, at most 4 */
    unsigned worker_count;             /**< 0: one a core, 4 to 16 */
    unsigned connections_max;          /**< 0: 8192 */
    unsigned loopback_connections_max; /**< 0: 4096 */
    unsigned peer_connections_max;     /**< an address; 0: 128 */
    unsigned streams_max;              /**< open event streams; 0: 256 */
    unsigned header_ms_max;            /**< from connecting to the end of the header; 0: 10000 */
    unsigned idle_ms_max;              /**< between requests of a connection; 0: 75000 */
    unsigned keyless_idle_ms_max;      /**< the same, where no key was shown; 0: 10000 */
    unsigned body_ms_max;              /**< whole body of anything but an upload; 0: 30000 */
    unsigned rate_window_ms;           /**< the rate of a body or a reply is taken over this; 0:
                                          10000 */
    unsigned rate_bytes_per_s_min;     /**< slowest upload, slowest reader; 0: 1024 */
    unsigned stop_ms_max;              /**< how long stopping waits for requests; 0: 10000 */
    uint64_t upload_bytes_max;         /**< 0: 16 GiB */
    uint64_t reply_bytes_max;          /**< of all replies in progress together; 0: 256 MiB */
};

struct lac_http_server;

/** Open a listening socket (nonblocking) on ADDR:PORT. @return LAC_OK, LAC_ERR_MISUSE, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_http_listen(const char *address, bool allow_remote, int *ret_fd,
                                             unsigned *ret_port, struct lac_error *reterr);

/**
 * Open the socket and prepare everything; nothing is answered before lac_http_server_start().
 *
 * @param options copied, but what it points to is borrowed for the server's life
 * @return LAC_OK; LAC_ERR_MISUSE (address, remote without permission), LAC_ERR_IO (address in use),
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_http_server_create(const struct lac_http_options *options,
                                                    struct lac_http_server **ret_server,
                                                    struct lac_error *reterr);

/** Start the loops. @return LAC_OK or LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_http_server_start(struct lac_http_server *server,
                                                   struct lac_error *reterr);

/**
 * Stop accepting, end event streams, finish what is being answered (uploads that are in progress
 * get stop_ms_max), close the rest, join the threads. Call once.
 */
void lac_http_server_stop(struct lac_http_server *server);

/** Free. NULL is allowed; a running server is stopped first. */
void lac_http_server_destroy(struct lac_http_server *server);

/** Whether machines beyond this one can connect. */
bool lac_http_server_is_remote(const struct lac_http_server *server);

/** The socket that is listened on: for who accepts in place of an `is_fed` server. */
int lac_http_server_socket(const struct lac_http_server *server);

/** Take a connection that somebody else accepted, as one from `address`; `fd`, a stream socket, is
 *  the server's from then on, and closed where there is no room. Any thread. */
void lac_http_server_adopt(struct lac_http_server *server, int fd, const struct sockaddr *address,
                           socklen_t length);

/** The port that is listened on. */
unsigned lac_http_server_port(const struct lac_http_server *server);

/**
 * Send `event: EVENT`, `data: DATA` to every open stream. Thread-safe, does not block on clients: a
 * stream that does not read loses its connection once 256 KiB wait for it.
 *
 * @param project what it is about: streams of those who may not read it hear nothing; NULL: it
 *                tells nothing that anybody must not know
 * @param data    one line of text
 */
void lac_http_server_publish(struct lac_http_server *server, const char *project, const char *event,
                             const char *data, size_t data_bytes);

/** Whether anybody listens; if not, there is no need to prepare an event. */
bool lac_http_server_has_streams(const struct lac_http_server *server);

/** Append the server's metrics as Prometheus text. */
void lac_http_server_metrics(struct lac_http_server *server, struct lac_buffer *out);

#endif
