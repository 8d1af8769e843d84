/* One connection: handshake, then bytes in both directions. Nothing is read from one side that the
 * other does not take. */
#include "server/tls/tls_private.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    LINGER_MS = 2000,
    ROUNDS_MAX = 64, /* then the others have their turn */
};

static void watch(struct tls_connection *c, struct tls_end *end, uint32_t wanted)
{
    struct epoll_event event = {.events = wanted, .data.ptr = c};

    if (end->fd < 0 || end->watched == wanted) {
        return;
    }
    /* nothing wanted: taken out, since an end that was closed would be told again and again */
    (void)epoll_ctl(c->relay->epoll_fd,
                    wanted == 0         ? EPOLL_CTL_DEL
                    : end->watched == 0 ? EPOLL_CTL_ADD
                                        : EPOLL_CTL_MOD,
                    end->fd, &event);
    end->watched = wanted;
}

/* -- open and close ---------------------------------------------------------------------------- */

static bool begin_session(struct tls_connection *c)
{
    static unsigned char http[] = "http/1.1";
    const gnutls_datum_t protocol = {.data = http, .size = sizeof(http) - 1};
    struct lac_tls *tls = c->relay->tls;
    const struct tls_library *library = &tls->library;

    if (library->init(&c->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0) {
        c->session = NULL;
        return false;
    }
    c->identity = lac_tls_hold(tls);
    library->transport_set_int2(c->session, c->client.fd, c->client.fd);
    return library->priority_set(c->session, tls->priority) >= 0 &&
           library->credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->identity->credentials) >=
               0 &&
           library->alpn_set_protocols(c->session, &protocol, 1, 0) >= 0;
}

void lac_tls_connection_open(struct tls_relay *relay, int fd, const struct sockaddr *address,
                             socklen_t length)
{
    struct tls_connection *c = calloc(1, sizeof(*c));

    if (c == NULL || length > sizeof(c->address)) {
        free(c);
        (void)close(fd);
        return;
    }
    c->relay = relay;
    c->client.fd = fd;
    c->server.fd = -1;
    memcpy(&c->address, address, length);
    c->address_length = length;
    c->deadline_ns = lac_tls_now_ns() + (int64_t)relay->tls->options.handshake_ms_max * 1000000;
    c->prev = relay->last;
    if (relay->last != NULL) {
        relay->last->next = c;
    } else {
        relay->first = c;
    }
    relay->last = c;
    relay->handshakes++;
    if (begin_session(c)) {
        watch(c, &c->client, EPOLLIN);
    } else {
        c->is_over = true;
    }
}

void lac_tls_connection_close(struct tls_connection *c)
{
    struct tls_relay *relay = c->relay;

    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        relay->first = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    } else {
        relay->last = c->prev;
    }
    /* closing does not take them out while a forked importer still has copies, until its exec() */
    watch(c, &c->client, 0);
    watch(c, &c->server, 0);
    if (c->session != NULL) {
        relay->tls->library.deinit(c->session);
        lac_tls_release(relay->tls, c->identity);
    }
    (void)close(c->client.fd);
    if (c->server.fd >= 0) {
        (void)close(c->server.fd);
    } else {
        relay->handshakes--;
    }
    free(c->to_server.bytes);
    free(c->to_client.bytes);
    free(c);
}

/* -- handshake --------------------------------------------------------------------------------- */

/* The server gets its end of a pair, and takes it for a connection from the client's address. */
static bool hand_over(struct tls_connection *c)
{
    const struct lac_tls_options *options = &c->relay->tls->options;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    c->server.fd = pair[0];
    c->relay->handshakes--;
    c->deadline_ns = 0;
    options->adopt(options->context, pair[1], (const struct sockaddr *)&c->address,
                   c->address_length);
    return true;
}

static void shake_hands(struct tls_connection *c)
{
    const struct tls_library *library = &c->relay->tls->library;
    int result;

    do {
        result = library->handshake(c->session);
    } while (result < 0 && result != GNUTLS_E_AGAIN && library->error_is_fatal(result) == 0);
    if (result == GNUTLS_E_AGAIN) {
        watch(c, &c->client, library->record_get_direction(c->session) == 1 ? EPOLLOUT : EPOLLIN);
    } else if (result < 0 || !hand_over(c)) {
        c->is_over = true;
    }
}

/* -- bytes ------------------------------------------------------------------------------------- */

static bool keep(struct tls_pending *pending, const uint8_t *bytes, size_t size_bytes)
{
    pending->bytes = malloc(size_bytes);
    if (pending->bytes == NULL) {
        return false;
    }
    memcpy(pending->bytes, bytes, size_bytes);
    pending->at = 0;
    pending->end = size_bytes;
    return true;
}

static void take(struct tls_pending *pending, size_t size_bytes)
{
    pending->at += size_bytes;
    if (pending->at == pending->end) {
        free(pending->bytes);
        pending->bytes = NULL;
    }
}

/* @return bytes that the server took; one that is gone takes all */
static size_t give_server(struct tls_connection *c, const uint8_t *bytes, size_t size_bytes)
{
    const ssize_t sent =
        c->server_is_deaf ? -1 : send(c->server.fd, bytes, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent >= 0) {
        return (size_t)sent;
    }
    if (!c->server_is_deaf && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    c->server_is_deaf = true;
    return size_bytes;
}

static void from_client(struct tls_connection *c)
{
    const struct tls_library *library = &c->relay->tls->library;
    uint8_t *const scratch = c->relay->scratch;

    if (c->to_server.bytes != NULL) {
        take(&c->to_server, give_server(c, c->to_server.bytes + c->to_server.at,
                                        c->to_server.end - c->to_server.at));
    }
    for (unsigned i = 0; c->to_server.bytes == NULL && !c->client_ended; i++) {
        ssize_t got;
        size_t given;

        if (i >= ROUNDS_MAX && library->record_check_pending(c->session) == 0) {
            return;
        }
        got = library->record_recv(c->session, scratch, sizeof(c->relay->scratch));
        if (got == GNUTLS_E_AGAIN) {
            return;
        }
        if (got <= 0) {
            if (got < 0 && library->error_is_fatal((int)got) == 0) {
                continue; /* a warning, or a signal */
            }
            c->client_ended = true;
            (void)shutdown(c->server.fd, SHUT_WR);
            return;
        }
        given = give_server(c, scratch, (size_t)got);
        if (given < (size_t)got && !keep(&c->to_server, scratch + given, (size_t)got - given)) {
            c->is_over = true;
            return;
        }
    }
}

/* @return whether all of it is on its way */
static bool give_client(struct tls_connection *c, const uint8_t *bytes, size_t size_bytes,
                        size_t *ret_given)
{
    const struct tls_library *library = &c->relay->tls->library;

    *ret_given = 0;
    while (*ret_given < size_bytes) {
        /* what a half-sent record has is in the library: nothing is to be given again */
        const ssize_t sent = c->is_half_sent ? library->record_send(c->session, NULL, 0)
                                             : library->record_send(c->session, bytes + *ret_given,
                                                                    size_bytes - *ret_given);

        if (sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED) {
            c->is_half_sent = true;
            return false;
        }
        if (sent < 0) {
            c->is_over = true;
            return false;
        }
        c->is_half_sent = false;
        c->stalled_ns = 0;
        *ret_given += (size_t)sent;
    }
    return true;
}

static void from_server(struct tls_connection *c)
{
    uint8_t *const scratch = c->relay->scratch;
    size_t given;

    if (c->to_client.bytes != NULL) {
        (void)give_client(c, c->to_client.bytes + c->to_client.at,
                          c->to_client.end - c->to_client.at, &given);
        take(&c->to_client, given);
    }
    for (unsigned i = 0; i < ROUNDS_MAX && c->to_client.bytes == NULL && !c->server_ended; i++) {
        const ssize_t got =
            recvfrom(c->server.fd, scratch, sizeof(c->relay->scratch), MSG_DONTWAIT, NULL, NULL);

        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            c->server_ended = true;
            return;
        }
        if (!give_client(c, scratch, (size_t)got, &given) &&
            !keep(&c->to_client, scratch + given, (size_t)got - given)) {
            c->is_over = true;
            return;
        }
    }
}

/* The server has said all: tell the client so, and read for a while what it still sends, since a
 * close would reset the connection and destroy what is on its way. */
static void say_bye(struct tls_connection *c)
{
    c->was_told_bye = true;
    (void)c->relay->tls->library.bye(c->session, GNUTLS_SHUT_WR);
    (void)shutdown(c->client.fd, SHUT_WR);
    c->deadline_ns = lac_tls_now_ns() + (int64_t)LINGER_MS * 1000000;
}

void lac_tls_connection_serve(struct tls_connection *c)
{
    if (c->server.fd < 0) {
        shake_hands(c);
        if (c->is_over || c->server.fd < 0) {
            return;
        }
    }
    from_client(c);
    if (!c->is_over) {
        from_server(c);
    }
    if (c->is_over) {
        return;
    }
    if (c->server_ended && c->to_client.bytes == NULL && !c->was_told_bye) {
        say_bye(c);
    }
    if (c->was_told_bye && c->client_ended) {
        c->is_over = true;
        return;
    }
    if (c->to_client.bytes != NULL && c->stalled_ns == 0) {
        c->stalled_ns = lac_tls_now_ns();
    }
    watch(c, &c->client,
          (!c->client_ended && c->to_server.bytes == NULL ? EPOLLIN : 0u) |
              (c->to_client.bytes != NULL ? EPOLLOUT : 0u));
    watch(c, &c->server,
          (!c->server_ended && c->to_client.bytes == NULL ? EPOLLIN : 0u) |
              (c->to_server.bytes != NULL ? EPOLLOUT : 0u));
}

void lac_tls_connection_check(struct tls_connection *c, int64_t now_ns)
{
    const int64_t stall_ns = (int64_t)c->relay->tls->options.stall_ms_max * 1000000;

    if ((c->deadline_ns != 0 && now_ns > c->deadline_ns) ||
        (c->stalled_ns != 0 && now_ns - c->stalled_ns > stall_ns)) {
        c->is_over = true;
    }
}
