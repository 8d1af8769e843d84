/* The loop of one thread: accept, wait, serve, look at deadlines. */
#include "server/base/log.h"
#include "server/tls/tls_private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum { SWEEP_MS = 250, EVENTS_MAX = 64, ACCEPTS_MAX = 32, ACCEPT_PAUSE_MS = 100, STOP_MS = 2000 };

int64_t lac_tls_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void listen_again(struct tls_relay *relay, bool does)
{
    struct epoll_event listening = {.events = EPOLLIN | EPOLLEXCLUSIVE};

    (void)epoll_ctl(relay->epoll_fd, does ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, relay->tls->listen_fd,
                    &listening);
}

/* A handshake costs before anybody has shown who they are: the oldest makes room. */
static void make_room(struct tls_relay *relay)
{
    struct tls_connection *c = relay->first;

    while (c != NULL && c->server.fd >= 0) {
        c = c->next;
    }
    if (c != NULL) {
        c->is_over = true;
    }
}

static void accept_some(struct tls_relay *relay)
{
    struct sockaddr_storage address;

    for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
        socklen_t length = sizeof(address);
        const int fd = accept4(relay->tls->listen_fd, (struct sockaddr *)&address, &length,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
                LAC_LOG(LAC_LOG_WARN, "cannot accept", lac_log_int("errno", errno));
                relay->accept_again_ns = lac_tls_now_ns() + (int64_t)ACCEPT_PAUSE_MS * 1000000;
                listen_again(relay, false);
            }
            return;
        }
        if (relay->handshakes >= TLS_HANDSHAKES_MAX) {
            make_room(relay);
        }
        lac_tls_connection_open(relay, fd, (const struct sockaddr *)&address, length);
    }
}

static void sweep(struct tls_relay *relay, int64_t now_ns, bool look_at_deadlines)
{
    struct tls_connection *next;

    for (struct tls_connection *c = relay->first; c != NULL; c = next) {
        next = c->next;
        if (look_at_deadlines) {
            lac_tls_connection_check(c, now_ns);
        }
        if (c->is_over) {
            lac_tls_connection_close(c);
        }
    }
    if (relay->accept_again_ns != 0 && now_ns > relay->accept_again_ns) {
        relay->accept_again_ns = 0;
        listen_again(relay, true);
    }
}

void *lac_tls_relay(void *context)
{
    struct tls_relay *relay = context;
    struct epoll_event events[EVENTS_MAX];
    int64_t next_sweep_ns = 0;
    int64_t stop_ns = 0;

    while (stop_ns == 0 || (relay->first != NULL && lac_tls_now_ns() < stop_ns)) {
        const int count = epoll_wait(relay->epoll_fd, events, EVENTS_MAX, SWEEP_MS);
        bool any_is_over = false;
        int64_t now_ns;

        for (int i = 0; i < count; i++) {
            struct tls_connection *c = events[i].data.ptr;

            if (c == NULL) {
                accept_some(relay);
                any_is_over = true; /* the one that made room */
            } else if (!c->is_over) {
                lac_tls_connection_serve(c);
                any_is_over |= c->is_over;
            }
        }
        now_ns = lac_tls_now_ns();
        if (stop_ns == 0 && atomic_load(&relay->tls->is_stopping)) {
            stop_ns = now_ns + (int64_t)STOP_MS * 1000000;
            listen_again(relay, false);
        }
        if (any_is_over || now_ns >= next_sweep_ns) {
            const bool is_due = now_ns >= next_sweep_ns;

            sweep(relay, now_ns, is_due);
            next_sweep_ns = is_due ? now_ns + (int64_t)SWEEP_MS * 1000000 : next_sweep_ns;
        }
    }
    while (relay->first != NULL) {
        lac_tls_connection_close(relay->first);
    }
    return NULL;
}
