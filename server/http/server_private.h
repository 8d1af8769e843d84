#ifndef LAC_SERVER_HTTP_SERVER_PRIVATE_H
#define LAC_SERVER_HTTP_SERVER_PRIVATE_H

/*
 * What the files of the HTTP core share. Threads:
 *
 *   loop thread    owns its daemon, connections, exchanges and streams; the only one that calls
 *                  libmicrohttpd for them. Everything without another note belongs to it.
 *   worker thread  has an exchange lent to it between lac_exchange_submit() and the moment that it
 *                  stands in loop->done; meanwhile the loop leaves request, response and
 *                  transfer->work alone.
 *   any thread     may append to loop->done and to streams, under loop->mutex, and write to
 *                  loop->wake_fd.
 */

#include "server/http/framing.h"
#include "server/http/metrics.h"
#include "server/http/places.h"
#include "server/http/pool.h"
#include "server/http/server.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

struct loop;
struct exchange;

/** Where a connection is; decides which deadline holds. */
enum phase {
    PHASE_HEADER,  /**< waits for a whole header: deadline_ns */
    PHASE_BODY,    /**< waits for body bytes: rate, and deadline_ns for small bodies */
    PHASE_WORK,    /**< a worker has it, or it is being answered from the loop: none */
    PHASE_REPLY,   /**< the reply is being sent: deadline_ns */
    PHASE_STREAM,  /**< event stream: none, heartbeats find the dead */
    PHASE_CLOSING, /**< replied to and half closed; what arrives is ignored until deadline_ns */
};

/** One TCP connection. */
struct connection {
    struct loop *loop;
    struct connection *prev;
    struct connection *next;
    struct MHD_Connection *mhd;
    int fd;
    enum phase phase;
    int64_t deadline_ns;
    int64_t
        window_start_ns;   /**< PHASE_BODY, PHASE_REPLY: current window of the rate; 0: none yet */
    uint64_t window_bytes; /**< PHASE_BODY: in it; PHASE_REPLY: acknowledged before it */
    bool is_suspended;
    bool had_request;
    bool has_key; /**< a request of it showed a valid key */
    struct lac_place place;
    struct lac_framing framing;
    uint8_t *early; /**< bytes after the request that is being served, or NULL */
    size_t early_bytes;
    size_t early_taken;
    bool is_waiting; /**< in loop->waiting: has bytes to be read */
    struct connection *next_waiting;
    struct exchange *exchange; /**< the request being served, NULL between requests */
};

enum stage {
    STAGE_HEADER,  /**< request line read */
    STAGE_BODY,    /**< header accepted, body awaited */
    STAGE_WORKING, /**< handed to the pool */
    STAGE_READY,   /**< response complete, to be queued */
    STAGE_REPLIED, /**< given to libmicrohttpd */
};

/** A streamed body on its way to a struct lac_body_handler. */
struct transfer {
    uint8_t *fill; /**< the loop's buffer */
    size_t fill_bytes;
    uint8_t *work; /**< the worker's buffer */
    size_t work_bytes;
    bool is_working; /**< a job is in progress */
    bool is_started; /**< the pool admitted the first job */
    bool has_ended;  /**< all of the body is here */
    bool job_finishes;
    bool is_finished;
    void *sink; /**< of the body handler; NULL before begin and after finish or cancel */
    enum lac_status status;
    struct lac_error error;
};

enum { TRANSFER_BYTES = 256 << 10 };

/** Bodies up to this are read to their end before a refusal: closing on unread bytes resets the
 *  connection, and many clients then never see why. */
#define LAC_DRAIN_BYTES_MAX ((uint64_t)64 << 20)

/** An open event stream. `text` is appended by any thread under loop->mutex. */
struct stream {
    struct loop *loop;
    struct exchange *exchange;
    struct stream *next;
    struct lac_buffer text; /**< not yet handed to libmicrohttpd */
    size_t taken_bytes;     /**< of text */
    bool has_ended;
    int64_t last_ns; /**< when something was last sent */
};

/** One request and its response. */
struct exchange {
    struct lac_pool_job job;
    struct loop *loop;
    struct connection *connection; /**< NULL when it went away while a job was in progress */
    struct exchange *next_done;
    enum stage stage;
    int64_t start_ns;
    const struct lac_route *route; /**< NULL: static file, or refused */
    unsigned metrics_row;
    bool is_head;
    bool accepts_gzip;
    bool close_after;
    bool is_state_changing;
    bool drains_body;          /**< a refusal waits until the body is read, and thrown away */
    bool is_refused;           /**< the response stands; what comes is drained */
    bool is_passed_on;         /**< another server answers it */
    enum lac_proof pass_proof; /**< what it showed that is known here, of one that is passed on */
    char *raw_target;          /**< owned, as it came; only where requests may be passed on */
    char *head;                /**< owned, of request.head */
    char *if_none_match;       /**< owned copy */
    char *fields;              /**< owned copies of request.field, one after the other */
    uint64_t received_bytes;
    uint64_t reply_bytes;
    uint64_t budget_bytes; /**< of server->reply_bytes */
    bool sends_file;       /**< of server->files_sent */
    struct lac_buffer body;
    struct transfer *transfer;
    struct stream *stream;
    struct lac_request request;
    struct lac_response response;
    enum lac_status target_status;
    struct lac_error target_error;
    char method[16];
    struct lac_route_match match;
    struct lac_target target;
};

/** A connection that somebody else accepted, on its way to its loop. */
struct adopted {
    struct adopted *next;
    int fd;
    socklen_t length;
    struct sockaddr_storage address;
};

struct loop {
    struct lac_http_server *server;
    struct MHD_Daemon *daemon;
    int epoll_fd;
    int wake_fd;
    bool is_started;
    bool is_quiesced;
    int64_t stop_deadline_ns;
    pthread_t thread;
    struct connection *connections;
    struct connection **by_fd; /**< by file descriptor */
    size_t by_fd_count;
    struct connection *waiting; /**< next_waiting */
    bool has_entered;           /**< `entered` is counted, its connection not yet made */
    struct sockaddr_storage entered;
    enum lac_places_answer entered_as;
    unsigned exchange_count;
    unsigned sweep_count;
    pthread_mutex_t mutex; /**< guards done, adopted, streams and their text */
    struct exchange *done;
    struct adopted *adopted;
    struct stream *streams;
};

struct lac_http_server {
    struct lac_http_options options; /**< defaults filled in */
    size_t base_path_length;
    int listen_fd;
    unsigned port;
    struct lac_asset index;       /**< index.html for the base path; path NULL: as it is */
    struct lac_buffer index_text; /**< its bytes */
    char index_etag[64];
    struct lac_metrics *metrics;
    struct lac_places *places;
    struct lac_pool *pool;
    _Atomic bool is_stopping;
    _Atomic unsigned stream_count;
    _Atomic unsigned adopted_count; /**< ever: each loop in turn */
    _Atomic unsigned files_sent;    /**< replies in progress that are files */
    _Atomic uint64_t reply_bytes;   /**< of all replies in progress but small and borrowed ones */
    bool is_running;
    unsigned loop_count;
    struct loop loop[];
};

/** Monotonic time. */
int64_t lac_http_now_ns(void);

/* server/http/listen.c */
unsigned lac_http_bound_port(int fd);

/* server/http/loop.c */
LAC_MUST_USE enum lac_status lac_loop_start(struct loop *loop, struct lac_error *reterr);
void lac_loop_join(struct loop *loop);
/** Make the loop look at done, streams and is_stopping. Any thread. */
void lac_loop_wake(struct loop *loop);
/** Close those that no loop took; nobody may add any more. */
void lac_loop_drop_adopted(struct loop *loop);

/* server/http/connection.c: daemon callbacks of connections, and their deadlines */
enum MHD_Result lac_connection_admit(void *loop, const struct sockaddr *address, socklen_t length);
/** Undo the count of one that was admitted but did not become a connection. */
void lac_connection_release(struct loop *loop);
/** It showed the key: it is never ended for another. */
void lac_connection_trust(struct connection *connection);
void lac_connection_notify(void *loop, struct MHD_Connection *mhd, void **context,
                           enum MHD_ConnectionNotificationCode code);
void lac_connection_suspend(struct connection *connection);
void lac_connection_resume(struct connection *connection);
/** Send a short error as raw bytes and half close: for when libmicrohttpd cannot reply any more. */
void lac_connection_reject(struct connection *connection, unsigned http_status, const char *code,
                           const char *message);
/** Whether the client closed its side: a suspended connection would notice only by writing. */
bool lac_connection_has_left(const struct connection *connection);
enum { LAC_LAST_REPLY_BYTES = 1200 };
/** The whole reply for a connection that has to go for another (places.h). LAC_OK or
 *  LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_connection_farewell(char text[LAC_LAST_REPLY_BYTES]);
/** Enforce the deadlines of all connections of a loop. */
void lac_connections_sweep(struct loop *loop, int64_t now_ns);

/* server/http/receive.c: what libmicrohttpd reads is checked first. All on the loop's thread */
/** The calling thread reads for this loop from now on. */
void lac_receive_enter(struct loop *loop);
LAC_MUST_USE bool lac_receive_add(struct loop *loop, struct connection *connection);
void lac_receive_remove(struct loop *loop, struct connection *connection);
/** A request was answered: early bytes belong to the next one. */
void lac_receive_await(struct connection *connection);
/** Behind MHD_run(): let it read what came early. @return whether there was any */
LAC_MUST_USE bool lac_receive_go_on(struct loop *loop);

/* server/http/exchange.c: daemon callbacks of requests */
void *lac_exchange_open(void *loop, const char *raw_target, struct MHD_Connection *mhd);
enum MHD_Result lac_exchange_step(void *loop, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size_bytes, void **context);
void lac_exchange_completed(void *loop, struct MHD_Connection *mhd, void **context,
                            enum MHD_RequestTerminationCode code);
/** Worker side: hand a finished job back to its loop. */
void lac_exchange_post(struct exchange *x);
/** Loop side: take what the workers finished. */
void lac_exchange_take_done(struct loop *loop);
void lac_exchange_destroy(struct exchange *x);

/* server/http/pass_on.c */
/** Make request.head. @param keeps_name the field in which a proxy names the user is believed.
 *  On failure fills the response. */
bool lac_pass_on_prepare(struct exchange *x, struct MHD_Connection *mhd, bool keeps_name);

/* server/http/request_check.c: is this request acceptable? On refusal fills the response. */
bool lac_exchange_check(struct exchange *x, struct MHD_Connection *mhd, const char *version);

/* server/http/transfer.c: streamed bodies */
bool lac_transfer_open(struct exchange *x);
/** @return bytes taken; when fewer than given, the connection was suspended */
size_t lac_transfer_take(struct exchange *x, const char *bytes, size_t size_bytes);
void lac_transfer_end(struct exchange *x);
/** Loop side: a job of this transfer came back. */
void lac_transfer_job_done(struct exchange *x);
/** The connection is gone: undo, then free the exchange. */
void lac_transfer_abandon(struct exchange *x);

/* server/http/reply.c */
/** Conditional requests, compression, failures of the body. Any thread that has the exchange. */
void lac_reply_finish(struct exchange *x);
/** The reply is over: its bytes no longer count. */
void lac_reply_release(struct exchange *x);
/** Queue the response. Loop thread. */
enum MHD_Result lac_reply_queue(struct exchange *x);
/** The reply is being sent from now on: its deadline. */
void lac_reply_started(struct exchange *x);
/** Headers that every reply carries. */
void lac_reply_add_headers(struct MHD_Response *mhd_response);

/* server/http/stream.c */
enum MHD_Result lac_stream_open(struct exchange *x);
void lac_stream_close(struct exchange *x);
/** Resume streams that have text, add heartbeats, and notice clients that left (one system call
 *  each). */
void lac_streams_serve(struct loop *loop, int64_t now_ns, bool look_for_left);
void lac_streams_end(struct loop *loop);

/* server/http/static.c */
/** Fill the response with an asset. @return false when there is none for this path */
bool lac_static_find(const struct lac_http_server *server, const struct lac_target *target,
                     bool accepts_gzip, struct lac_response *response);
/** With a base path: make the index page whose addresses start with it. @return false: no memory */
LAC_MUST_USE bool lac_static_prepare(struct lac_http_server *server);

#endif
