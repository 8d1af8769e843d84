/*
 * One epoll loop. libmicrohttpd's own epoll thread waits again, for up to its full timeout, when
 * exactly 128 connections are ready at once, before it serves them; with external polling
 * MHD_run() asks with timeout 0, so that cannot happen. That is why we drive the daemon.
 */
#include "analysis/model/status.h"
#include "server/base/log.h"
#include "server/http/places.h"
#include "server/http/server.h"
#include "server/http/server_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SWEEP_MS = 250,
    /* libmicrohttpd zeroes all of it after each request, so all of it is resident */
    CONNECTION_MEMORY_BYTES = 32 << 10,
};

void lac_loop_wake(struct loop *loop)
{
    const uint64_t one = 1;

    if (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        LAC_LOG(LAC_LOG_ERROR, "cannot wake a loop", lac_log_int("errno", errno));
    }
}

/* libmicrohttpd's complaints: clients cause most of them. */
__attribute__((format(printf, 2, 0))) static void log_daemon(void *context, const char *fmt,
                                                             va_list args)
{
    char text[300];

    (void)context;
    if (!lac_log_is_on(LAC_LOG_DEBUG)) {
        return;
    }
    (void)vsnprintf(text, sizeof(text), fmt, args);
    text[strcspn(text, "\n")] = '\0';
    LAC_LOG(LAC_LOG_DEBUG, "libmicrohttpd", lac_log_text("text", text));
}

/* We decode the target ourselves (query.c), so that nothing is decoded twice. */
static size_t keep_encoded(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

/* Those that somebody else accepted since. While it stops, it takes none. */
static void take_adopted(struct loop *loop)
{
    struct adopted *next;

    pthread_mutex_lock(&loop->mutex);
    next = loop->adopted;
    loop->adopted = NULL;
    pthread_mutex_unlock(&loop->mutex);
    while (next != NULL) {
        struct adopted *const one = next;

        next = one->next;
        if (loop->is_quiesced) {
            (void)close(one->fd);
        } else { /* closes it where there is no room */
            (void)MHD_add_connection(loop->daemon, one->fd, (struct sockaddr *)&one->address,
                                     one->length);
            lac_connection_release(loop);
        }
        free(one);
    }
}

void lac_loop_drop_adopted(struct loop *loop)
{
    while (loop->adopted != NULL) {
        struct adopted *const one = loop->adopted;

        loop->adopted = one->next;
        (void)close(one->fd);
        free(one);
    }
}

void lac_http_server_adopt(struct lac_http_server *server, int fd, const struct sockaddr *address,
                           socklen_t length)
{
    struct adopted *one = calloc(1, sizeof(*one));
    struct loop *loop;

    assert(server != NULL && length <= sizeof(one->address));
    if (one == NULL || atomic_load(&server->is_stopping)) {
        free(one);
        (void)close(fd);
        return;
    }
    one->fd = fd;
    one->length = length;
    memcpy(&one->address, address, length);
    loop = &server->loop[atomic_fetch_add(&server->adopted_count, 1) % server->loop_count];
    pthread_mutex_lock(&loop->mutex);
    one->next = loop->adopted;
    loop->adopted = one;
    pthread_mutex_unlock(&loop->mutex);
    lac_loop_wake(loop);
}

static struct MHD_Daemon *start_daemon(struct loop *loop, int listen_fd)
{
    const struct lac_http_options *options = &loop->server->options;
    /* places.c keeps the limit; those that it ends for others are still open for a moment */
    const unsigned limit = options->connections_max + LAC_PLACES_SLACK;

    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (listen_fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : 0),
        0, lac_connection_admit, loop, lac_exchange_step, loop, MHD_OPTION_EXTERNAL_LOGGER,
        log_daemon,
        NULL, /* it refuses to hear of a socket it must not have: then the timeout again */
        listen_fd < 0 ? MHD_OPTION_CONNECTION_TIMEOUT : MHD_OPTION_LISTEN_SOCKET,
        listen_fd < 0 ? 0 : listen_fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, lac_connection_notify, loop, MHD_OPTION_NOTIFY_COMPLETED,
        lac_exchange_completed, loop, MHD_OPTION_URI_LOG_CALLBACK, lac_exchange_open, loop,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, NULL, MHD_OPTION_END);
}

static void begin_stop(struct loop *loop, int64_t now_ns)
{
    const MHD_socket fd = MHD_quiesce_daemon(loop->daemon);

    if (fd != MHD_INVALID_SOCKET) {
        (void)close(fd);
    }
    loop->is_quiesced = true;
    loop->stop_deadline_ns = now_ns + (int64_t)loop->server->options.stop_ms_max * 1000000;
    lac_streams_end(loop);
}

/* Whether the loop may end: nobody is being served. Closes those that only wait. */
static bool is_drained(struct loop *loop, int64_t now_ns)
{
    for (struct connection *c = loop->connections; c != NULL; c = c->next) {
        if (!c->is_suspended && (c->exchange == NULL || now_ns > loop->stop_deadline_ns)) {
            (void)shutdown(c->fd, SHUT_RDWR);
        }
    }
    return loop->exchange_count == 0 && loop->connections == NULL;
}

static int wait_ms(const struct loop *loop, int64_t now_ns, int64_t next_sweep_ns)
{
    MHD_UNSIGNED_LONG_LONG daemon_ms = 0;
    int64_t ms = (next_sweep_ns - now_ns) / 1000000 + 1;

    if (MHD_get_timeout(loop->daemon, &daemon_ms) == MHD_YES && daemon_ms < (uint64_t)ms) {
        ms = (int64_t)daemon_ms;
    }
    return ms < 0 ? 0 : (int)ms;
}

static void *run(void *context)
{
    struct loop *loop = context;
    int64_t next_sweep_ns = 0;
    bool goes_on = false;

    lac_receive_enter(loop);
    while (true) {
        int64_t now_ns = lac_http_now_ns();
        struct pollfd wait[2] = {{.fd = loop->epoll_fd, .events = POLLIN},
                                 {.fd = loop->wake_fd, .events = POLLIN}};

        (void)poll(wait, 2, goes_on ? 0 : wait_ms(loop, now_ns, next_sweep_ns));
        if ((wait[1].revents & POLLIN) != 0) {
            uint64_t count;

            (void)!read(loop->wake_fd, &count, sizeof(count));
        }
        lac_exchange_take_done(loop);
        take_adopted(loop);
        now_ns = lac_http_now_ns();
        if (atomic_load(&loop->server->is_stopping) && !loop->is_quiesced) {
            begin_stop(loop, now_ns);
        }
        lac_streams_serve(loop, now_ns, now_ns >= next_sweep_ns);
        if (now_ns >= next_sweep_ns) {
            lac_connections_sweep(loop, now_ns);
            next_sweep_ns = now_ns + (int64_t)SWEEP_MS * 1000000;
        }
        (void)MHD_run(loop->daemon);
        lac_connection_release(loop);
        goes_on = lac_receive_go_on(loop);
        if (loop->is_quiesced && is_drained(loop, now_ns)) {
            break;
        }
    }
    take_adopted(loop);
    MHD_stop_daemon(loop->daemon);
    loop->daemon = NULL;
    return NULL;
}

enum lac_status lac_loop_start(struct loop *loop, struct lac_error *reterr)
{
    const union MHD_DaemonInfo *info;
    const bool is_fed = loop->server->options.is_fed;
    const int listen_fd = is_fed ? -1 : fcntl(loop->server->listen_fd, F_DUPFD_CLOEXEC, 0);
    sigset_t all;
    sigset_t before;

    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if ((listen_fd < 0 && !is_fed) || loop->wake_fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no file descriptors for a loop: %s",
                        strerror(errno));
    }
    loop->daemon = start_daemon(loop, listen_fd);
    if (loop->daemon == NULL) {
        if (listen_fd >= 0) {
            (void)close(listen_fd);
        }
        return lac_fail(reterr, LAC_ERR_IO, 0, "libmicrohttpd did not start");
    }
    info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    loop->epoll_fd = info->epoll_fd;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&loop->thread, NULL, run, loop) == 0) {
        loop->is_started = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!loop->is_started) {
        MHD_stop_daemon(loop->daemon);
        loop->daemon = NULL;
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a loop thread");
    }
    return LAC_OK;
}

void lac_loop_join(struct loop *loop)
{
    pthread_join(loop->thread, NULL);
    loop->is_started = false;
    (void)close(loop->wake_fd);
    loop->wake_fd = -1;
    free(loop->by_fd);
    loop->by_fd = NULL;
    loop->by_fd_count = 0;
}
