/*
 * Everything that libmicrohttpd reads passes through here.
 *
 * Its parser is lenient in ways that cannot be turned off, and changes its buffer while it does, so
 * that nothing can be checked afterwards. It reads with recv(), and a program's own functions come
 * before those of its libraries: the recv() below looks at the bytes first (framing.c), and hands
 * over one request at a time. The rest of what came waits in
 * connection->early: libmicrohttpd takes bytes that come too early for a part of the body when a
 * client asks to continue and has none.
 *
 * All other callers get the C library's recv().
 */
#include "server/http/framing.h"
#include "server/http/server_private.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The loop that this thread runs; NULL in all others. */
static _Thread_local struct loop *own_loop;

void lac_receive_enter(struct loop *loop)
{
    own_loop = loop;
}

bool lac_receive_add(struct loop *loop, struct connection *connection)
{
    const size_t fd = (size_t)connection->fd;

    if (fd >= loop->by_fd_count) {
        const size_t count = fd + fd / 2 + 64;
        struct connection **const grown = realloc(loop->by_fd, count * sizeof(struct connection *));

        if (grown == NULL) {
            return false;
        }
        memset(grown + loop->by_fd_count, 0,
               (count - loop->by_fd_count) * sizeof(struct connection *));
        loop->by_fd = grown;
        loop->by_fd_count = count;
    }
    loop->by_fd[fd] = connection;
    return true;
}

void lac_receive_remove(struct loop *loop, struct connection *connection)
{
    struct connection **place = &loop->waiting;

    if ((size_t)connection->fd < loop->by_fd_count) {
        loop->by_fd[connection->fd] = NULL;
    }
    while (*place != NULL && *place != connection) {
        place = &(*place)->next_waiting;
    }
    if (*place != NULL) {
        *place = connection->next_waiting;
    }
    free(connection->early);
    connection->early = NULL;
}

/* What came after the end of a request waits until that one is answered. */
static bool keep_early(struct connection *connection, const uint8_t *bytes, size_t size_bytes)
{
    if (connection->early != NULL) { /* more than was asked for: these are its last ones taken */
        connection->early_taken -= size_bytes;
        return true;
    }
    connection->early = malloc(size_bytes);
    if (connection->early == NULL) {
        return false;
    }
    memcpy(connection->early, bytes, size_bytes);
    connection->early_bytes = size_bytes;
    connection->early_taken = 0;
    return true;
}

/* Bytes that came early first, then those of the socket. */
static ssize_t fetch(struct connection *connection, uint8_t *out, size_t size_bytes, int flags)
{
    size_t early = 0;
    ssize_t length;

    if (connection->early != NULL) {
        const size_t waiting = connection->early_bytes - connection->early_taken;

        early = waiting < size_bytes ? waiting : size_bytes;
        memcpy(out, connection->early + connection->early_taken, early);
        connection->early_taken += early;
        if (early < waiting) {
            return (ssize_t)early;
        }
        free(connection->early);
        connection->early = NULL;
        if (early == size_bytes) {
            return (ssize_t)early;
        }
    }
    length = recvfrom(connection->fd, out + early, size_bytes - early, flags, NULL, NULL);
    if (early > 0) { /* an end or an error comes again */
        return (ssize_t)early + (length > 0 ? length : 0);
    }
    return length;
}

static ssize_t no_bytes(void)
{
    errno = EAGAIN;
    return -1;
}

/* Have it read again after this MHD_run(), though nothing new may come from the socket. */
static void read_again(struct connection *connection)
{
    if (!connection->is_waiting) {
        connection->is_waiting = true;
        connection->next_waiting = connection->loop->waiting;
        connection->loop->waiting = connection;
    }
}

/* A connection that got its reply and was half closed: what still arrives is discarded. */
static ssize_t discard(struct connection *connection, void *out, size_t size_bytes, int flags)
{
    enum { ROUNDS = 16 }; /* then the others have their turn */

    if (lac_http_now_ns() > connection->deadline_ns) {
        return 0;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        const ssize_t length = recvfrom(connection->fd, out, size_bytes, flags, NULL, NULL);

        if (length <= 0) {
            return length;
        }
    }
    read_again(connection);
    return no_bytes();
}

static ssize_t receive(struct connection *connection, void *out, size_t size_bytes, int flags)
{
    struct lac_framing *const framing = &connection->framing;
    ssize_t length;
    size_t taken;

    if (connection->phase == PHASE_CLOSING) {
        return discard(connection, out, size_bytes, flags);
    }
    length = fetch(connection, out, size_bytes, flags);
    if (length <= 0) {
        return length;
    }
    taken = lac_framing_take(framing, out, (size_t)length);
    if (framing->verdict == LAC_FRAMING_BAD) {
        /* requests come one at a time: all before this one are answered */
        lac_connection_reject(connection, framing->http_status,
                              framing->http_status == 505 ? "http_version" : "bad_request",
                              framing->message);
        return no_bytes();
    }
    if (taken < (size_t)length) {
        if (!keep_early(connection, (const uint8_t *)out + taken, (size_t)length - taken)) {
            lac_connection_reject(connection, 503, "out_of_memory", "no memory for this request");
            return no_bytes();
        }
    }
    return (ssize_t)taken;
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    struct loop *const loop = own_loop;

    if (loop == NULL || (flags & MSG_PEEK) != 0) {
        return recvfrom(fd, buf, n, flags, NULL, NULL);
    }
    if (fd < 0 || (size_t)fd >= loop->by_fd_count || loop->by_fd[fd] == NULL) {
        return 0; /* a connection that we have no memory for: as if it had ended */
    }
    return receive(loop->by_fd[fd], buf, n, flags);
}

void lac_receive_await(struct connection *connection)
{
    if (connection->early != NULL) {
        read_again(connection);
    }
}

bool lac_receive_go_on(struct loop *loop)
{
    const bool any = loop->waiting != NULL;

    while (loop->waiting != NULL) {
        struct connection *const connection = loop->waiting;

        loop->waiting = connection->next_waiting;
        connection->is_waiting = false;
        /* nothing new comes from the socket, so nothing would tell libmicrohttpd to read: a
         * connection that is resumed is read */
        lac_connection_suspend(connection);
        lac_connection_resume(connection);
    }
    return any;
}
