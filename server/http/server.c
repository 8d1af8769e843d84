#include "server/http/server.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/metrics.h"
#include "server/http/peers.h"
#include "server/http/places.h"
#include "server/http/pool.h"
#include "server/http/server_private.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t lac_http_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void set_default(unsigned *value, unsigned fallback)
{
    if (*value == 0) {
        *value = fallback;
    }
}

static void fill_defaults(struct lac_http_options *options)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned cores = online < 1 ? 1 : (online > 1024 ? 1024 : (unsigned)online);

    set_default(&options->loop_count, cores < 4 ? cores : 4);
    set_default(&options->worker_count, cores < 4 ? 4 : (cores > 16 ? 16 : cores));
    if (options->worker_count < 2) {
        options->worker_count = 2;
    }
    set_default(&options->connections_max, 8192);
    set_default(&options->loopback_connections_max, 4096);
    set_default(&options->peer_connections_max, 128);
    set_default(&options->streams_max, 256);
    set_default(&options->header_ms_max, 10000);
    set_default(&options->idle_ms_max, 75000);
    set_default(&options->keyless_idle_ms_max, 10000);
    set_default(&options->body_ms_max, 30000);
    set_default(&options->rate_window_ms, 10000);
    set_default(&options->rate_bytes_per_s_min, 1024);
    set_default(&options->stop_ms_max, 10000);
    if (options->upload_bytes_max == 0) {
        options->upload_bytes_max = UINT64_C(16) << 30;
    }
    if (options->reply_bytes_max == 0) {
        options->reply_bytes_max = UINT64_C(256) << 20;
    }
    if (options->base_path == NULL) {
        options->base_path = "";
    }
}

static bool base_path_is_valid(const char *path)
{
    const size_t length = strlen(path);

    return length == 0 ||
           (length < 200 && path[0] == '/' && path[length - 1] != '/' &&
            strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._~@-") ==
                length &&
            strstr(path, "//") == NULL && strstr(path, "..") == NULL);
}

static enum lac_status open_socket(struct lac_http_server *server, struct lac_error *reterr)
{
    const struct lac_http_options *options = &server->options;

    if (!options->has_socket) {
        return lac_http_listen(options->listen, options->allow_remote, &server->listen_fd,
                               &server->port, reterr);
    }
    server->listen_fd = fcntl(options->listen_fd, F_DUPFD_CLOEXEC, 0);
    server->port = lac_http_bound_port(options->listen_fd);
    return server->listen_fd >= 0 ? LAC_OK
                                  : lac_fail(reterr, LAC_ERR_IO, 0, "no descriptor to listen");
}

enum lac_status lac_http_server_create(const struct lac_http_options *options,
                                       struct lac_http_server **ret_server,
                                       struct lac_error *reterr)
{
    assert(options != NULL && ret_server != NULL);
    struct lac_http_options filled = *options;
    struct lac_http_server *server;
    enum lac_status status;

    fill_defaults(&filled);
    if (!base_path_is_valid(filled.base_path)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "--base-path %s: must look like /x/y, without a '/' at the end",
                        filled.base_path);
    }
    server = calloc(1, sizeof(*server) + filled.loop_count * sizeof(server->loop[0]));
    if (server == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the server");
    }
    server->options = filled;
    server->base_path_length = strlen(filled.base_path);
    server->loop_count = filled.loop_count;
    server->listen_fd = -1;
    for (unsigned i = 0; i < server->loop_count; i++) {
        server->loop[i].server = server;
        server->loop[i].wake_fd = -1;
        pthread_mutex_init(&server->loop[i].mutex, NULL);
    }
    status = open_socket(server, reterr);
    if (status == LAC_OK) {
        status = lac_metrics_create(filled.routes, filled.route_count, &server->metrics);
    }
    if (status == LAC_OK) {
        const struct lac_peers_limits limits = {.all = filled.connections_max,
                                                .loopback = filled.loopback_connections_max,
                                                .address = filled.peer_connections_max};

        char farewell[LAC_LAST_REPLY_BYTES];

        status = lac_connection_farewell(farewell);
        if (status == LAC_OK) {
            status = lac_places_create(&limits, farewell, &server->places);
        }
    }
    if (status == LAC_OK) {
        status = lac_pool_create(filled.worker_count, 4096, &server->pool, reterr);
    }
    if (status == LAC_OK && !lac_static_prepare(server)) {
        status = LAC_ERR_NOMEM;
    }
    if (status == LAC_ERR_NOMEM) {
        (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the server");
    }
    if (status != LAC_OK) {
        lac_http_server_destroy(server);
        return status;
    }
    *ret_server = server;
    return LAC_OK;
}

enum lac_status lac_http_server_start(struct lac_http_server *server, struct lac_error *reterr)
{
    assert(server != NULL);
    server->is_running = true;
    for (unsigned i = 0; i < server->loop_count; i++) {
        const enum lac_status status = lac_loop_start(&server->loop[i], reterr);

        if (status != LAC_OK) {
            lac_http_server_stop(server);
            return status;
        }
    }
    return LAC_OK;
}

void lac_http_server_stop(struct lac_http_server *server)
{
    assert(server != NULL);
    if (!server->is_running) {
        return;
    }
    atomic_store(&server->is_stopping, true);
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
        server->listen_fd = -1;
    }
    for (unsigned i = 0; i < server->loop_count; i++) {
        if (server->loop[i].is_started) {
            lac_loop_wake(&server->loop[i]);
        }
    }
    for (unsigned i = 0; i < server->loop_count; i++) {
        if (server->loop[i].is_started) {
            lac_loop_join(&server->loop[i]);
        }
    }
    server->is_running = false;
}

void lac_http_server_destroy(struct lac_http_server *server)
{
    if (server == NULL) {
        return;
    }
    lac_http_server_stop(server);
    for (unsigned i = 0; i < server->loop_count; i++) {
        lac_loop_drop_adopted(&server->loop[i]);
        pthread_mutex_destroy(&server->loop[i].mutex);
        if (server->loop[i].wake_fd >= 0) {
            (void)close(server->loop[i].wake_fd);
        }
    }
    lac_pool_destroy(server->pool);
    lac_places_destroy(server->places);
    lac_metrics_destroy(server->metrics);
    lac_buffer_done(&server->index_text);
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
    }
    free(server);
}

bool lac_http_server_is_remote(const struct lac_http_server *server)
{
    assert(server != NULL);
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);

    return getsockname(server->listen_fd, (struct sockaddr *)&address, &length) != 0 ||
           !lac_address_is_loopback((struct sockaddr *)&address);
}

int lac_http_server_socket(const struct lac_http_server *server)
{
    return server->listen_fd;
}

unsigned lac_http_server_port(const struct lac_http_server *server)
{
    return server->port;
}

bool lac_http_server_has_streams(const struct lac_http_server *server)
{
    return atomic_load(&server->stream_count) > 0;
}

void lac_http_server_metrics(struct lac_http_server *server, struct lac_buffer *out)
{
    assert(server != NULL && out != NULL);
    struct lac_pool_stats pool;

    lac_metrics_write(server->metrics, out);
    lac_pool_stats(server->pool, &pool);
    lac_buffer_printf(out,
                      "# HELP lacuna_http_reply_bytes Of replies under way.\n"
                      "# TYPE lacuna_http_reply_bytes gauge\n"
                      "lacuna_http_reply_bytes %llu\n"
                      "# TYPE lacuna_http_event_streams gauge\n"
                      "lacuna_http_event_streams %u\n"
                      "# TYPE lacuna_workers gauge\n"
                      "lacuna_workers{state=\"running\"} %u\n"
                      "lacuna_workers{state=\"all\"} %u\n"
                      "# TYPE lacuna_jobs_queued gauge\n"
                      "lacuna_jobs_queued{kind=\"quick\"} %u\n"
                      "lacuna_jobs_queued{kind=\"slow\"} %u\n"
                      "# TYPE lacuna_jobs_total counter\n"
                      "lacuna_jobs_total{result=\"done\"} %llu\n"
                      "lacuna_jobs_total{result=\"refused\"} %llu\n",
                      (unsigned long long)atomic_load(&server->reply_bytes),
                      atomic_load(&server->stream_count), pool.running, pool.thread_count,
                      pool.queued_quick, pool.queued_slow, (unsigned long long)pool.done,
                      (unsigned long long)pool.refused);
}
