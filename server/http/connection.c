#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/metrics.h"
#include "server/http/places.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <errno.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <netinet/in.h> /* IWYU pragma: keep: IPPROTO_TCP */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { CLOSE_LINGER_MS = 2000 };

enum MHD_Result lac_connection_admit(void *loop_context, const struct sockaddr *address,
                                     socklen_t length)
{
    struct loop *loop = loop_context;
    struct lac_http_server *server = loop->server;
    unsigned displaced = 0;

    lac_connection_release(loop);
    loop->entered_as = atomic_load(&server->is_stopping) || length > sizeof(loop->entered)
                           ? LAC_PLACES_NONE
                           : lac_places_enter(server->places, address, loop, &displaced);
    lac_metrics_displaced(server->metrics, displaced);
    if (loop->entered_as != LAC_PLACES_ENTERED) {
        lac_metrics_refused(server->metrics);
    }
    if (loop->entered_as == LAC_PLACES_NONE) {
        return MHD_NO;
    }
    memset(&loop->entered, 0, sizeof(loop->entered));
    memcpy(&loop->entered, address, length);
    loop->has_entered = true;
    return MHD_YES;
}

void lac_connection_release(struct loop *loop)
{
    if (loop->has_entered) { /* libmicrohttpd had no memory for it */
        loop->has_entered = false;
        lac_places_leave(loop->server->places, loop->entered_as, (struct sockaddr *)&loop->entered);
    }
}

void lac_connection_trust(struct connection *connection)
{
    if (!connection->has_key) {
        connection->has_key = true;
        lac_places_trust(connection->loop->server->places, &connection->place);
    }
}

static void *opened(struct loop *loop, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info;
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL) {
        return NULL; /* reading finds no connection, and ends it */
    }
    connection->loop = loop;
    connection->mhd = mhd;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    connection->fd = info->connect_fd;
    if (!lac_receive_add(loop, connection)) {
        free(connection);
        return NULL;
    }
    connection->phase = PHASE_HEADER;
    connection->deadline_ns =
        lac_http_now_ns() + (int64_t)loop->server->options.header_ms_max * 1000000;
    connection->next = loop->connections;
    if (loop->connections != NULL) {
        loop->connections->prev = connection;
    }
    loop->connections = connection;
    lac_places_begin(loop->server->places, &connection->place, loop->entered_as, loop,
                     connection->fd, &loop->entered);
    loop->has_entered = false; /* the place is the connection's now */
    lac_metrics_connection(loop->server->metrics, 1);
    if (loop->entered_as == LAC_PLACES_TURNED_AWAY) {
        lac_connection_reject(
            connection, 503, "too_many_connections",
            "all connections are taken, by others or by this address: close some, "
            "or try again");
    }
    return connection;
}

static void closed(struct loop *loop, struct connection *connection)
{
    if (connection->prev != NULL) {
        connection->prev->next = connection->next;
    } else {
        loop->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->prev = connection->prev;
    }
    lac_places_end(loop->server->places, &connection->place);
    lac_metrics_connection(loop->server->metrics, -1);
    lac_receive_remove(loop, connection);
    free(connection);
}

void lac_connection_notify(void *loop_context, struct MHD_Connection *mhd, void **context,
                           enum MHD_ConnectionNotificationCode code)
{
    struct loop *loop = loop_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = opened(loop, mhd);
    } else if (*context != NULL) {
        closed(loop, *context);
        *context = NULL;
    }
}

void lac_connection_suspend(struct connection *connection)
{
    if (!connection->is_suspended) {
        connection->is_suspended = true;
        MHD_suspend_connection(connection->mhd);
    }
}

void lac_connection_resume(struct connection *connection)
{
    if (connection->is_suspended) {
        connection->is_suspended = false;
        connection->window_start_ns = lac_http_now_ns(); /* we made it wait, not the client */
        connection->window_bytes = 0;
        MHD_resume_connection(connection->mhd);
    }
}

static int write_last_reply(char text[LAC_LAST_REPLY_BYTES], unsigned http_status, const char *body,
                            size_t body_bytes)
{
    return snprintf(text, LAC_LAST_REPLY_BYTES,
                    "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                    "%sConnection: close\r\n\r\n%.*s",
                    http_status, MHD_get_reason_phrase_for(http_status), body_bytes,
                    http_status == 503 ? "Retry-After: 5\r\n" : "", (int)body_bytes, body);
}

enum lac_status lac_connection_farewell(char text[LAC_LAST_REPLY_BYTES])
{
    struct lac_buffer body = {.size_bytes_max = 700};
    enum lac_status status;

    lac_http_write_error(&body, "too_many_connections",
                         "there are too many connections, and this one, on which nobody showed who "
                         "asks, made room for another: try again");
    status = body.status;
    if (status == LAC_OK) {
        (void)write_last_reply(text, 503, body.bytes, body.size_bytes);
    }
    lac_buffer_done(&body);
    return status;
}

/* Send a whole error reply as raw bytes, half close, and read the rest for a while: closing with
 * unread bytes would reset the connection and destroy the reply on its way. */
static void reject_with(struct connection *connection, unsigned http_status, const char *body,
                        size_t body_bytes)
{
    char text[LAC_LAST_REPLY_BYTES];
    const int length = write_last_reply(text, http_status, body, body_bytes);

    if (length > 0 && (size_t)length < sizeof(text)) {
        (void)!send(connection->fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)shutdown(connection->fd, SHUT_WR);
    connection->phase = PHASE_CLOSING;
    connection->deadline_ns = lac_http_now_ns() + (int64_t)CLOSE_LINGER_MS * 1000000;
}

void lac_connection_reject(struct connection *connection, unsigned http_status, const char *code,
                           const char *message)
{
    struct lac_buffer body = {.size_bytes_max = 700};

    if (connection->phase == PHASE_CLOSING) {
        return;
    }
    lac_http_write_error(&body, code, message);
    if (body.status == LAC_OK) {
        reject_with(connection, http_status, body.bytes, body.size_bytes);
    } else {
        reject_with(connection, http_status, "", 0);
    }
    lac_buffer_done(&body);
    if (connection->exchange != NULL) {
        connection->exchange->response.http_status = http_status;
    }
}

/* The refusal that waited for the end of the body, which does not come. */
static void reject_refused(struct connection *connection)
{
    const struct lac_response *response = &connection->exchange->response;

    reject_with(connection, response->http_status,
                response->body.bytes != NULL ? response->body.bytes : "",
                response->body.size_bytes);
}

/* Whether bytes lie in the socket that we did not read yet: then the wait was ours. */
static bool has_unread_bytes(const struct connection *connection)
{
    char byte;

    return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* A body may be slow but not that slow. */
static bool body_is_late(struct connection *connection, int64_t now_ns)
{
    const struct lac_http_options *options = &connection->loop->server->options;
    const int64_t window_ns = (int64_t)options->rate_window_ms * 1000000;
    const uint64_t least_bytes =
        (uint64_t)options->rate_bytes_per_s_min * options->rate_window_ms / 1000;

    if (connection->deadline_ns != 0 && now_ns > connection->deadline_ns) {
        return true;
    }
    if (now_ns - connection->window_start_ns < window_ns) {
        return false;
    }
    if (connection->window_bytes < least_bytes && !has_unread_bytes(connection)) {
        return true;
    }
    connection->window_start_ns = now_ns;
    connection->window_bytes = 0;
    return false;
}

/* How much of what was ever sent on it the client's side has taken; UINT64_MAX: unknown. */
static uint64_t acknowledged_bytes(const struct connection *connection)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);

    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked)) {
        return UINT64_MAX;
    }
    return info.tcpi_bytes_acked;
}

/* A reader may be slow, but not that slow: what it does not read occupies memory. libmicrohttpd
 * does not report the progress of a reply; the kernel does. */
static bool reader_is_late(struct connection *connection, int64_t now_ns)
{
    const struct lac_http_options *options = &connection->loop->server->options;
    const uint64_t least_bytes =
        (uint64_t)options->rate_bytes_per_s_min * options->rate_window_ms / 1000;
    const bool is_first = connection->window_start_ns == 0;
    uint64_t acknowledged;

    if (now_ns > connection->deadline_ns) {
        return true;
    }
    if (!is_first &&
        now_ns - connection->window_start_ns < (int64_t)options->rate_window_ms * 1000000) {
        return false;
    }
    acknowledged = acknowledged_bytes(connection);
    if (!is_first && acknowledged != UINT64_MAX &&
        acknowledged - connection->window_bytes < least_bytes) {
        return true;
    }
    connection->window_start_ns = now_ns;
    connection->window_bytes = acknowledged;
    return false;
}

static void check_deadlines(struct connection *connection, int64_t now_ns)
{
    struct lac_metrics *metrics = connection->loop->server->metrics;

    switch (connection->phase) {
    case PHASE_HEADER:
        if (now_ns > connection->deadline_ns) {
            lac_metrics_timed_out(metrics);
            if (connection->had_request && connection->exchange == NULL) {
                (void)shutdown(connection->fd, SHUT_RDWR); /* an idle one expects no words */
            } else {
                lac_connection_reject(connection, 408, "timeout",
                                      "the request's header did not arrive in time");
            }
        }
        break;
    case PHASE_BODY:
        if (connection->exchange->is_refused) {
            if (now_ns > connection->deadline_ns) {
                reject_refused(connection);
            }
        } else if (body_is_late(connection, now_ns)) {
            lac_metrics_timed_out(metrics);
            lac_connection_reject(connection, 408, "timeout",
                                  "the request's body arrives too slowly");
        }
        break;
    case PHASE_REPLY:
        if (reader_is_late(connection, now_ns)) {
            lac_metrics_timed_out(metrics);
            (void)shutdown(connection->fd, SHUT_RDWR);
        }
        break;
    case PHASE_CLOSING:
        if (now_ns > connection->deadline_ns) {
            lac_metrics_timed_out(metrics);
            (void)shutdown(connection->fd, SHUT_RDWR);
        }
        break;
    case PHASE_WORK:
    case PHASE_STREAM:
    default:
        break;
    }
}

bool lac_connection_has_left(const struct connection *connection)
{
    char byte;
    const ssize_t length = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

/*
 * libmicrohttpd is edge-triggered: when the end of a connection arrives together with its last
 * bytes, it reads the bytes, expects another edge, and never notices the end. So we look.
 */
static void end_if_left(struct connection *connection)
{
    if (lac_connection_has_left(connection)) {
        (void)shutdown(connection->fd, SHUT_RDWR); /* this makes an edge */
    }
}

void lac_connections_sweep(struct loop *loop, int64_t now_ns)
{
    const bool look_at_idle = loop->sweep_count++ % 4 == 0; /* thousands of them: once a second */

    for (struct connection *c = loop->connections; c != NULL; c = c->next) {
        if (c->is_suspended) {
            continue;
        }
        check_deadlines(c, now_ns);
        if (c->phase == PHASE_BODY || c->phase == PHASE_CLOSING ||
            (look_at_idle && c->phase == PHASE_HEADER && c->early == NULL)) {
            end_if_left(c);
        }
    }
}
