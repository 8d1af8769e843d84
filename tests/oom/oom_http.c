/*
 * The n-th allocation of the HTTP core fails while it serves: it answers with an error or ends that
 * connection, never more; the next request is served, and nothing leaks (the leak check of the
 * sanitizer build sees the rest).
 */
#include "collector/base/count_of.h"
#include "server/base/log.h"
#include "server/http/key.h"
#include "server/http/server.h"
#include "tests/support/oom.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- a server with a route of each kind ---------------------------------------------------------*/

static void say(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    lac_response_etag(response, "x");
    for (unsigned i = 0; i < 400; i++) {
        lac_buffer_puts(&response->body, "some text, ");
    }
    lac_buffer_int(&response->body, (int64_t)request->body_size_bytes);
}

static void open_events(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    (void)request;
    lac_buffer_puts(&response->body, ": ready\n\n");
}

static enum lac_status sink_begin(void *app, const struct lac_request *request, void **ret_sink,
                                  struct lac_error *reterr)
{
    (void)app;
    (void)request;
    *ret_sink = calloc(1, 8);
    return *ret_sink != NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory");
}

static enum lac_status sink_data(void *sink, const uint8_t *bytes, size_t size_bytes,
                                 struct lac_error *reterr)
{
    (void)sink;
    (void)bytes;
    (void)size_bytes;
    (void)reterr;
    return LAC_OK;
}

static void sink_finish(void *sink, const struct lac_request *request,
                        struct lac_response *response)
{
    (void)request;
    free(sink);
    response->http_status = 201;
    lac_buffer_puts(&response->body, "{}");
}

static const struct lac_body_handler sink_handler = {
    .begin = sink_begin, .data = sink_data, .finish = sink_finish, .cancel = free};

static const struct lac_route routes[] = {
    LAC_ROUTE(GET, "/loop", OPEN, LOOP, 0, say, NULL),
    LAC_ROUTE(POST, "/pool/{x}", OPEN, QUICK, 5000, say, NULL),
    LAC_ROUTE(GET, "/events", OPEN, EVENTS, 0, open_events, NULL),
    LAC_ROUTE(POST, "/upload", OPEN, UPLOAD, LAC_BODY_UPLOAD, NULL, &sink_handler),
};

static struct lac_http_server *server;
static char reply[65536];

/* Send a request and so many bytes of body; read until the end or 3 s of silence. @return status, 0
 * none */
static int ask(const char *head, size_t body_bytes, int wait_ms)
{
    static char body[300000];
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)lac_http_server_port(server)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    size_t used = 0;
    ssize_t got = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)fprintf(stderr, "cannot connect\n");
        exit(1);
    }
    (void)!send(fd, head, strlen(head), MSG_NOSIGNAL);
    for (size_t sent = 0; sent < body_bytes && got > 0; sent += (size_t)got) {
        got = send(fd, body + sent, body_bytes - sent, MSG_NOSIGNAL);
    }
    while (used + 1 < sizeof(reply) && poll(&wait, 1, wait_ms) == 1 &&
           (got = recv(fd, reply + used, sizeof(reply) - 1 - used, 0)) > 0) {
        used += (size_t)got;
    }
    reply[used] = '\0';
    (void)close(fd);
    return strncmp(reply, "HTTP/1.1 ", 9) == 0 ? (int)strtol(reply + 9, NULL, 10) : 0;
}

#define TAIL " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: \"y\"\r\n"

/* One request of each kind; the statuses that may come. */
static bool try_all(void)
{
    const int statuses[] = {
        ask("GET /loop" TAIL "Accept-Encoding: gzip\r\n\r\n", 0, 3000),
        ask("POST /pool/a?b=c" TAIL "Content-Length: 4000\r\n\r\n", 4000, 3000),
        ask("POST /upload" TAIL "Content-Length: 300000\r\n\r\n", 300000, 3000),
        ask("GET /none/x" TAIL "\r\n", 0, 3000),
        ask("GET /events" TAIL "\r\n", 0, 40),
    };

    for (size_t i = 0; i < LAC_COUNT_OF(statuses); i++) {
        static const int good[] = {200, 200, 201, 404, 200};

        if (statuses[i] != good[i] && statuses[i] != 0 && statuses[i] != 503) {
            (void)fprintf(stderr, "request %zu: status %d\n", i, statuses[i]);
            return false;
        }
    }
    return true;
}

static const struct lac_key key = {.text = "k", .cookie = "c"};

static bool identify(void *app, enum lac_proof proof, const char *secret,
                     struct lac_principal *ret_who)
{
    (void)app;
    return lac_key_identify(&key, proof, secret, ret_who);
}

int main(void)
{
    const struct lac_http_options options = {.listen = "127.0.0.1:0",
                                             .identify = identify,
                                             .routes = routes,
                                             .route_count = LAC_COUNT_OF(routes),
                                             .loop_count = 1,
                                             .worker_count = 2};
    struct lac_error error = {0};
    long tried = 0;

    lac_log_set_level(LAC_LOG_ERROR);
    /* creating it: every allocation in turn */
    for (uint64_t n = 0;; n++) {
        oom_once_after(n);
        const enum lac_status status = lac_http_server_create(&options, &server, &error);
        const bool failed_one = oom_over();

        tried++;
        if (!failed_one) {
            if (status != LAC_OK) {
                return 1;
            }
            break;
        }
        if (status != LAC_ERR_NOMEM) {
            (void)fprintf(stderr, "creating, allocation %llu: %s\n", (unsigned long long)n,
                          lac_status_name(status));
            return 1;
        }
    }
    if (lac_http_server_start(server, &error) != LAC_OK) {
        return 1;
    }
    /* serving: each allocation in turn, then everything must work again */
    for (uint64_t n = 0; n < 200; n++) {
        oom_once_after(n);
        if (!try_all()) {
            return 1;
        }
        lac_http_server_publish(server, "", "trace", "{}", 2);
        const bool failed_one = oom_over();

        tried++;
        if (ask("GET /loop" TAIL "\r\n", 0, 3000) != 200) {
            (void)fprintf(stderr, "after allocation %llu failed: %.200s\n", (unsigned long long)n,
                          reply);
            return 1;
        }
        if (!failed_one) {
            break;
        }
    }
    lac_http_server_destroy(server);
    (void)printf("%ld allocations failed in turn\n1 passed, 0 failed\n", tried);
    return 0;
}
