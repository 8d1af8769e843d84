/*
 * The life of one request:
 *
 *   HEADER --admit--> BODY --end of body--> WORKING --worker--> READY --queue--> REPLIED --> gone
 *        \--refused: reply at once, close                /
 *                         (handlers on the loop) -------/
 *
 * While WORKING the connection is suspended, so libmicrohttpd leaves it alone.
 */
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/base/log.h"
#include "server/http/metrics.h"
#include "server/http/places.h"
#include "server/http/pool.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <arpa/inet.h>
#include <assert.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* How long a refusal waits for the rest of the body: in all, and for the next bytes. */
#define DRAIN_NS       INT64_C(10000000000)
#define DRAIN_PAUSE_NS INT64_C(700000000)

static struct exchange *exchange_of(struct lac_pool_job *job)
{
    return (struct exchange *)(void *)((char *)job - offsetof(struct exchange, job));
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return (info == NULL) ? NULL : info->socket_context;
}

void *lac_exchange_open(void *loop_context, const char *raw_target, struct MHD_Connection *mhd)
{
    struct loop *loop = loop_context;
    struct connection *connection = connection_of(mhd);
    const size_t length = strlen(raw_target);
    struct exchange *x;

    /* the target buffers are large and need no zeroing */
    x = (connection == NULL) ? NULL : malloc(sizeof(*x));
    if (x == NULL) {
        return NULL;
    }
    memset(x, 0, offsetof(struct exchange, target));
    x->target.path[0] = '\0';
    x->loop = loop;
    x->connection = connection;
    x->start_ns = lac_http_now_ns();
    x->metrics_row = LAC_METRICS_NONE;
    x->target_status = lac_target_parse(raw_target, length, &x->target, &x->target_error);
    if (x->target_status != LAC_OK) {
        x->target.path[0] = '\0'; /* never log what was refused */
    }
    if (loop->server->options.is_elsewhere != NULL && x->target_status == LAC_OK) {
        x->raw_target = strdup(raw_target); /* without it: refused as the others, 503 */
    }
    lac_response_init(&x->response);
    x->request.target = &x->target;
    x->request.base_path = loop->server->options.base_path;
    x->request.body = "";
    connection->exchange = x;
    connection->had_request = true;
    loop->exchange_count++;
    return x;
}

void lac_exchange_destroy(struct exchange *x)
{
    if (x->transfer != NULL) {
        free(x->transfer->fill);
        free(x->transfer->work);
        free(x->transfer);
    }
    lac_buffer_done(&x->body);
    lac_reply_release(x);
    lac_response_done(&x->response);
    free(x->if_none_match);
    free(x->fields);
    free(x->raw_target);
    free(x->head);
    x->loop->exchange_count--;
    free(x);
}

static bool is_permitted(struct exchange *x)
{
    const struct lac_http_options *options = &x->loop->server->options;

    return options->permit == NULL ||
           options->permit(options->app, x->route, &x->request, &x->response);
}

/* -- workers ---------------------------------------------------------------------------------- */

void lac_exchange_post(struct exchange *x)
{
    struct loop *loop = x->loop;

    pthread_mutex_lock(&loop->mutex);
    x->next_done = loop->done;
    loop->done = x;
    lac_loop_wake(loop); /* inside: after it the loop may free the exchange, and itself end */
    pthread_mutex_unlock(&loop->mutex);
}

static void run_handler(struct lac_pool_job *job)
{
    struct exchange *x = exchange_of(job);

    const struct lac_http_options *options = &x->loop->server->options;

    if (is_permitted(x)) {
        x->route->handler(options->app, &x->request, &x->response);
        if (options->finish != NULL) {
            options->finish(options->app, x->route, &x->request, &x->response);
        }
    }
    lac_reply_finish(x);
    lac_exchange_post(x);
}

void lac_exchange_take_done(struct loop *loop)
{
    struct exchange *x;

    pthread_mutex_lock(&loop->mutex);
    x = loop->done;
    loop->done = NULL;
    pthread_mutex_unlock(&loop->mutex);
    while (x != NULL) {
        struct exchange *next = x->next_done;

        if (x->transfer != NULL) {
            lac_transfer_job_done(x);
        } else {
            assert(x->connection != NULL); /* suspended connections do not go away */
            x->stage = STAGE_READY;
            lac_connection_resume(x->connection);
        }
        x = next;
    }
}

/* -- the loop ---------------------------------------------------------------------------------- */

/* The request is complete: answer it now, or hand it to a worker. */
static enum MHD_Result dispatch(struct exchange *x)
{
    struct lac_http_server *server = x->loop->server;

    x->connection->phase = PHASE_WORK;
    x->request.body = (x->body.bytes != NULL) ? x->body.bytes : "";
    x->request.body_size_bytes = x->body.size_bytes;
    if (x->route == NULL) {
        if (!lac_static_find(server, &x->target, x->accepts_gzip, &x->response)) {
            lac_response_error(&x->response, 404, "not_found", "no such address");
        }
        lac_reply_finish(x);
        return lac_reply_queue(x);
    }
    if (x->route->run == LAC_RUN_LOOP) {
        x->route->handler(server->options.app, &x->request, &x->response);
        lac_reply_finish(x);
        return lac_reply_queue(x);
    }
    x->job.run = run_handler;
    if (!lac_pool_submit(server->pool, &x->job, x->route->run == LAC_RUN_SLOW)) {
        lac_response_error(&x->response, 503, "busy", "the server is busy: try again in a moment");
        lac_response_header(&x->response, "Retry-After", "1");
        return lac_reply_queue(x);
    }
    x->stage = STAGE_WORKING;
    lac_connection_suspend(x->connection);
    return MHD_YES;
}

static void await_body(struct exchange *x)
{
    x->stage = STAGE_BODY;
    x->connection->phase = PHASE_BODY;
    x->connection->window_start_ns = x->start_ns;
    x->connection->window_bytes = 0;
    x->connection->deadline_ns =
        x->transfer != NULL ? 0
                            : x->start_ns + (int64_t)x->loop->server->options.body_ms_max * 1000000;
}

static enum MHD_Result refuse(struct exchange *x)
{
    lac_reply_finish(x);
    if (x->drains_body) {
        x->is_refused = true;
        await_body(x);
        x->connection->deadline_ns = x->start_ns + DRAIN_PAUSE_NS;
        return MHD_YES;
    }
    return lac_reply_queue(x);
}

static void write_peer(struct exchange *x)
{
    const struct sockaddr_storage *address = &x->connection->place.address;
    char *peer = x->request.peer;

    _Static_assert(LAC_PEER_BYTES >= INET6_ADDRSTRLEN, "room for any address");
    if (address->ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                        peer, LAC_PEER_BYTES);
    } else if (address->ss_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                        peer, LAC_PEER_BYTES);
    }
}

static enum MHD_Result begin(struct exchange *x, struct MHD_Connection *mhd, const char *method,
                             const char *version)
{
    (void)snprintf(x->method, sizeof(x->method), "%s", method);
    x->is_head = strcmp(method, "HEAD") == 0;
    x->request.method = lac_method_of(method);
    x->is_state_changing = x->request.method != LAC_METHOD_GET;
    if (!x->connection->has_key) {
        lac_places_use(x->loop->server->places, &x->connection->place, true);
    }
    write_peer(x);
    if (!lac_exchange_check(x, mhd, version)) {
        return refuse(x);
    }
    if (x->route != NULL && x->route->run != LAC_RUN_QUICK && x->route->run != LAC_RUN_SLOW &&
        !is_permitted(x)) {
        x->close_after = x->request.content_length > 0;
        return refuse(x);
    }
    if (x->route != NULL && x->route->run == LAC_RUN_UPLOAD && !lac_transfer_open(x)) {
        x->close_after = true;
        lac_response_error(&x->response, 503, "out_of_memory", "no memory for this upload");
        return lac_reply_queue(x);
    }
    if (x->transfer != NULL && x->route != NULL && x->route->stream->open != NULL &&
        !x->route->stream->open(x->loop->server->options.app, &x->request, &x->transfer->sink,
                                &x->response)) {
        x->close_after = x->request.content_length > 0;
        return refuse(x);
    }
    await_body(x);
    return MHD_YES;
}

/* The body of a refused request: counted, and thrown away. */
static enum MHD_Result drain_body(struct exchange *x, size_t *size_bytes)
{
    const int64_t now_ns = lac_http_now_ns();

    x->received_bytes += *size_bytes;
    *size_bytes = 0;
    if (now_ns - x->start_ns < DRAIN_NS) {
        x->connection->deadline_ns = now_ns + DRAIN_PAUSE_NS;
    }
    if (x->received_bytes > LAC_DRAIN_BYTES_MAX) { /* only chunked bodies get here */
        lac_connection_reject(x->connection, x->response.http_status, "refused",
                              "the request was refused, and its body does not end");
    }
    return MHD_YES;
}

/* Body bytes: streamed on, or kept for the handler. */
static enum MHD_Result take_body(struct exchange *x, const char *bytes, size_t *size_bytes)
{
    const uint64_t limit = (x->route->body_bytes_max == LAC_BODY_UPLOAD)
                               ? x->loop->server->options.upload_bytes_max
                               : x->route->body_bytes_max;
    size_t taken = *size_bytes;

    if (taken > limit - x->received_bytes) { /* only chunked bodies get here */
        lac_connection_reject(x->connection, 413, "body_too_large",
                              "the body is larger than this address takes");
        *size_bytes = 0;
        return MHD_YES;
    }
    if (x->transfer != NULL) {
        taken = lac_transfer_take(x, bytes, *size_bytes);
    } else {
        lac_buffer_add(&x->body, bytes, taken);
        if (x->body.status != LAC_OK) {
            lac_connection_reject(x->connection, 503, "out_of_memory", "no memory for the body");
        }
    }
    x->received_bytes += taken;
    x->connection->window_bytes += taken;
    *size_bytes -= taken;
    return MHD_YES;
}

/* libmicrohttpd decides how many parameters this has */
/* NOLINTNEXTLINE(readability-function-size) */
enum MHD_Result lac_exchange_step(void *loop_context, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size_bytes, void **context)
{
    struct exchange *x = *context;

    (void)loop_context;
    (void)url;
    if (x == NULL || x->connection == NULL) {
        return MHD_NO;
    }
    if (x->connection->phase == PHASE_CLOSING) {
        if (*size_bytes == 0) {
            return MHD_NO;
        }
        *size_bytes = 0;
        return MHD_YES;
    }
    switch (x->stage) {
    case STAGE_HEADER:
        return begin(x, mhd, method, version);
    case STAGE_BODY:
        if (*size_bytes > 0) {
            return x->is_refused ? drain_body(x, size_bytes) : take_body(x, bytes, size_bytes);
        }
        if (x->is_refused) {
            return lac_reply_queue(x);
        }
        if (x->transfer != NULL) {
            lac_transfer_end(x);
            return MHD_YES;
        }
        return dispatch(x);
    case STAGE_READY:
        return lac_reply_queue(x);
    case STAGE_WORKING:
    case STAGE_REPLIED:
        return MHD_YES;
    default:
        return MHD_NO;
    }
}

/* -- the end ----------------------------------------------------------------------------------- */

static void log_request(const struct exchange *x, int64_t duration_ns, uint64_t sent_bytes,
                        bool is_whole)
{
    if (!lac_log_is_on(LAC_LOG_INFO)) {
        return;
    }
    /* the path only: a query may hold what people typed, a header the key; and of a link that
     * shares something not the token, which is all one needs */
    const char *path = strncmp(x->target.path, "/s/", 3) == 0 ? "/s/..." : x->target.path;

    LAC_LOG(LAC_LOG_INFO, "request", lac_log_text("method", x->method), lac_log_text("path", path),
            lac_log_int("status", x->response.http_status),
            lac_log_real("ms", (double)duration_ns * 1e-6),
            lac_log_int("received_bytes", (int64_t)x->received_bytes),
            lac_log_int("sent_bytes", (int64_t)sent_bytes), lac_log_text("peer", x->request.peer),
            lac_log_text("end", is_whole ? "complete" : "cut"));
}

/* Between requests. */
static unsigned idle_ms_max(const struct connection *connection)
{
    const struct lac_http_options *options = &connection->loop->server->options;

    return !connection->has_key && options->keyless_idle_ms_max < options->idle_ms_max
               ? options->keyless_idle_ms_max
               : options->idle_ms_max;
}

void lac_exchange_completed(void *loop_context, struct MHD_Connection *mhd, void **context,
                            enum MHD_RequestTerminationCode code)
{
    struct loop *loop = loop_context;
    struct exchange *x = *context;
    struct connection *connection;

    (void)mhd;
    *context = NULL;
    if (x == NULL) {
        return;
    }
    connection = x->connection;
    const int64_t duration_ns = lac_http_now_ns() - x->start_ns;
    const bool is_whole = code == MHD_REQUEST_TERMINATED_COMPLETED_OK && x->stage == STAGE_REPLIED;
    const uint64_t sent_bytes = (x->is_head || !is_whole) ? 0 : x->reply_bytes;

    if (x->stage < STAGE_READY && connection->phase != PHASE_CLOSING) {
        x->response.http_status = 499; /* the client went away; nothing was answered */
    }
    lac_metrics_request(loop->server->metrics, x->metrics_row, x->response.http_status, duration_ns,
                        x->received_bytes, sent_bytes);
    log_request(x, duration_ns, sent_bytes, is_whole);
    connection->exchange = NULL;
    if (connection->phase != PHASE_CLOSING) {
        connection->phase = PHASE_HEADER;
        connection->deadline_ns = lac_http_now_ns() + (int64_t)idle_ms_max(connection) * 1000000;
        if (!connection->has_key) {
            lac_places_use(loop->server->places, &connection->place, false);
        }
        lac_receive_await(connection);
    }
    x->connection = NULL;
    if (x->stream != NULL) {
        lac_stream_close(x);
    }
    if (x->transfer != NULL) {
        lac_transfer_abandon(x);
    } else {
        lac_exchange_destroy(x);
    }
}
