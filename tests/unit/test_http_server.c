/*
 * The HTTP core over real sockets, with routes of its own: no store, no page.
 */
#include "collector/base/count_of.h"
#include "server/base/log.h"
#include "server/http/key.h"
#include "server/http/server.h"
#include "tests/support/check_main.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HOST "Host: 127.0.0.1\r\n"

static _Atomic unsigned uploads_begun;
static _Atomic unsigned uploads_canceled;
static _Atomic uint64_t upload_bytes;

/* -- routes of the test ------------------------------------------------------------------------ */

static void say_hello(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    lac_buffer_printf(&response->body, "{\"hello\":\"%s\",\"body_bytes\":%zu}",
                      request->param[0] != NULL ? request->param[0] : "", request->body_size_bytes);
}

static void say_much(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    lac_response_etag(response, "much");
    if (lac_response_is_unchanged(request, response)) {
        return;
    }
    for (unsigned i = 0; i < 20000; i++) {
        lac_buffer_puts(&response->body, "much the same, ");
    }
}

static void sleep_a_little(void *app, const struct lac_request *request,
                           struct lac_response *response)
{
    const struct timespec pause = {.tv_nsec = 300000000};

    (void)app;
    (void)request;
    nanosleep(&pause, NULL);
    lac_buffer_puts(&response->body, "{\"slept\":true}");
}

static void open_events(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    (void)request;
    lac_buffer_puts(&response->body, ": ready\n\n");
}

struct sink {
    uint64_t bytes;
};

static enum lac_status sink_begin(void *app, const struct lac_request *request, void **ret_sink,
                                  struct lac_error *reterr)
{
    (void)app;
    if (lac_target_get(request->target, "full") != NULL) {
        errno = ENOSPC;
        return lac_fail(reterr, LAC_ERR_IO, 0, "the disk is full");
    }
    *ret_sink = calloc(1, sizeof(struct sink));
    atomic_fetch_add(&uploads_begun, 1);
    return *ret_sink == NULL ? LAC_ERR_NOMEM : LAC_OK;
}

static enum lac_status sink_data(void *sink_context, const uint8_t *bytes, size_t size_bytes,
                                 struct lac_error *reterr)
{
    struct sink *sink = sink_context;

    for (size_t i = 0; i < size_bytes; i++) {
        if (bytes[i] != (uint8_t)('a' + sink->bytes % 23)) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, sink->bytes, "a byte is out of place");
        }
        sink->bytes++;
    }
    return LAC_OK;
}

static void sink_finish(void *sink_context, const struct lac_request *request,
                        struct lac_response *response)
{
    struct sink *sink = sink_context;

    (void)request;
    response->http_status = 201;
    lac_buffer_printf(&response->body, "{\"bytes\":%llu}", (unsigned long long)sink->bytes);
    atomic_store(&upload_bytes, sink->bytes);
    free(sink);
}

static void sink_cancel(void *sink)
{
    atomic_fetch_add(&uploads_canceled, 1);
    free(sink);
}

static const struct lac_body_handler sink_handler = {
    .begin = sink_begin, .data = sink_data, .finish = sink_finish, .cancel = sink_cancel};

static const struct lac_route routes[] = {
    LAC_ROUTE(GET, "/open", OPEN, LOOP, 0, say_hello, NULL),
    LAC_ROUTE(POST, "/open", OPEN, LOOP, 100, say_hello, NULL),
    LAC_ROUTE(GET, "/things/{id}", KEY, QUICK, 0, say_hello, NULL),
    LAC_ROUTE(DELETE, "/things/{id}", KEY, QUICK, 0, say_hello, NULL),
    LAC_ROUTE(GET, "/much", OPEN, QUICK, 0, say_much, NULL),
    LAC_ROUTE(GET, "/sleep", OPEN, SLOW, 0, sleep_a_little, NULL),
    LAC_ROUTE(GET, "/events", OPEN, EVENTS, 0, open_events, NULL),
    LAC_ROUTE(POST, "/upload", KEY, UPLOAD, LAC_BODY_UPLOAD, NULL, &sink_handler),
};

static const struct lac_asset assets[] = {
    {"app.js", "text/javascript", "\"js\"", (const unsigned char *)"let a;", 6, NULL, 0},
    {"chunk-RIKJVHUA.js", "text/javascript", "\"chunk\"", (const unsigned char *)"let b;", 6, NULL,
     0},
    {"icon.svg", "image/svg+xml", "\"svg\"", (const unsigned char *)"<svg/>", 6, NULL, 0},
    {"index.html", "text/html", "\"html\"", (const unsigned char *)"<p src=\"/app.js\">", 18, NULL,
     0},
};

/* -- server and clients ------------------------------------------------------------------------ */

static struct lac_key key = {.text = "thekeythekeythekeythekeythekeythekeythekeythekeythek",
                             .cookie = "thecookiethecookiethecookiethecookiethecookiethecook"};
static struct lac_http_server *server;

static bool identify(void *app, enum lac_proof proof, const char *secret,
                     struct lac_principal *ret_who)
{
    (void)app;
    return lac_key_identify(&key, proof, secret, ret_who);
}

static void start_with(const struct lac_http_options *given)
{
    struct lac_http_options options = *given;
    struct lac_error error = {0};

    lac_log_set_level(LAC_LOG_ERROR);
    options.listen = "127.0.0.1:0";
    options.identify = identify;
    options.routes = routes;
    options.route_count = LAC_COUNT_OF(routes);
    options.assets = assets;
    options.asset_count = LAC_COUNT_OF(assets);
    ck_assert_msg(lac_http_server_create(&options, &server, &error) == LAC_OK, "%s", error.message);
    ck_assert_int_eq(lac_http_server_start(server, &error), LAC_OK);
}

static void start(void)
{
    start_with(&(const struct lac_http_options){
        .header_ms_max = 600, .rate_window_ms = 400, .body_ms_max = 600, .loop_count = 2});
}

static void stop(void)
{
    lac_http_server_destroy(server);
    server = NULL;
}

static int dial(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)lac_http_server_port(server)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void tell(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0) {
            return; /* the server ended it: the reply tells why */
        }
        bytes += sent;
        size -= (size_t)sent;
    }
}

/* All that comes within wait_ms of silence, or until the end. */
static size_t hear(int fd, char *out, size_t capacity, int wait_ms)
{
    size_t size = 0;
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    while (size + 1 < capacity && poll(&wait, 1, wait_ms) > 0) {
        const ssize_t got = recv(fd, out + size, capacity - 1 - size, 0);

        if (got <= 0) {
            break;
        }
        size += (size_t)got;
    }
    out[size] = '\0';
    return size;
}

static char reply[1 << 20];

/* One request on a connection of its own; the reply stands in `reply`. @return its
 * status, 0 none */
static int ask_bytes(const char *request, size_t size)
{
    const int fd = dial();
    int status = 0;

    tell(fd, request, size);
    (void)hear(fd, reply, sizeof(reply), 1000);
    close(fd);
    if (strncmp(reply, "HTTP/1.1 ", 9) == 0) {
        status = (int)strtol(reply + 9, NULL, 10);
    }
    return status;
}

static int ask(const char *request)
{
    return ask_bytes(request, strlen(request));
}

#define CLOSE  "Connection: close\r\n\r\n"
#define BEARER "Authorization: Bearer thekeythekeythekeythekeythekeythekeythekeythekeythek\r\n"
#define COOKIE "Cookie: a=b; lacuna_key=thecookiethecookiethecookiethecookiethecookiethecook\r\n"

/* -- tests ------------------------------------------------------------------------------------- */

START_TEST(replies_carry_the_security_headers)
{
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Content-Security-Policy: default-src 'none';"));
    ck_assert_ptr_nonnull(strstr(reply, "X-Content-Type-Options: nosniff"));
    ck_assert_ptr_nonnull(strstr(reply, "Referrer-Policy: no-referrer"));
    ck_assert_ptr_nonnull(strstr(reply, "Cross-Origin-Resource-Policy: same-origin"));
    ck_assert_ptr_null(strstr(reply, "Access-Control"));
}
END_TEST

START_TEST(a_key_route_needs_the_key)
{
    ck_assert_int_eq(ask("GET /things/x HTTP/1.1\r\n" HOST CLOSE), 401);
    ck_assert_ptr_nonnull(strstr(reply, "{\"error\":{\"code\":\"no_key\""));
    ck_assert_int_eq(ask("GET /things/x HTTP/1.1\r\n" HOST "Authorization: Bearer wrong\r\n" CLOSE),
                     401);
    ck_assert_int_eq(ask("GET /things/x HTTP/1.1\r\n" HOST "Cookie: lacuna_key=wrong\r\n" CLOSE),
                     401);
    ck_assert_int_eq(ask("GET /things/x HTTP/1.1\r\n" HOST BEARER CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "\"hello\":\"x\""));
    ck_assert_int_eq(ask("GET /things/x HTTP/1.1\r\n" HOST COOKIE CLOSE), 200);
    /* the bearer's key is no cookie */
    ck_assert_int_eq(
        ask("GET /things/x HTTP/1.1\r\n" HOST
            "Cookie: lacuna_key=thekeythekeythekeythekeythekeythekeythekeythekeythek\r\n" CLOSE),
        401);
}
END_TEST

START_TEST(a_foreign_host_or_origin_is_refused)
{
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: evil.example\r\n" CLOSE), 403);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n" CLOSE), 403);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: localhost:1234\r\n" CLOSE), 200);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: [::1]:7070\r\n" CLOSE), 200);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n" CLOSE),
                     403);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST "Origin: null\r\n" CLOSE), 403);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST "Origin: http://127.0.0.1\r\n" CLOSE), 200);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST "Origin: http://127.0.0.1:81\r\n" CLOSE),
                     403);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: a\r\nHost: 127.0.0.1\r\n" CLOSE), 403);
}
END_TEST

START_TEST(the_cookie_is_for_our_own_page_only)
{
    ck_assert_int_eq(ask("DELETE /things/x HTTP/1.1\r\n" HOST COOKIE CLOSE), 403);
    ck_assert_int_eq(
        ask("DELETE /things/x HTTP/1.1\r\n" HOST COOKIE "Origin: http://127.0.0.1\r\n" CLOSE), 200);
    ck_assert_int_eq(ask("DELETE /things/x HTTP/1.1\r\n" HOST BEARER CLOSE), 200);
    ck_assert_int_eq(
        ask("GET /things/x HTTP/1.1\r\n" HOST COOKIE "Sec-Fetch-Site: same-site\r\n" CLOSE), 403);
    ck_assert_int_eq(
        ask("GET /things/x HTTP/1.1\r\n" HOST COOKIE "Sec-Fetch-Site: same-origin\r\n" CLOSE), 200);
}
END_TEST

START_TEST(ambiguous_framing_is_refused_and_the_connection_closed)
{
    static const char after[] = "\r\nhelloGET /open HTTP/1.1\r\n" HOST "\r\n";
    static const char *const heads[] = {
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: -1\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(heads); i++) {
        char request[600];
        const char *second;
        int status;

        (void)snprintf(request, sizeof(request), "%s%s", heads[i], after);
        status = ask(request);
        ck_assert_msg(status == 400 || status == 413, "%s -> %d", heads[i], status);
        second = strstr(reply + 1, "HTTP/1.1 200");
        ck_assert_msg(second == NULL, "what followed was taken for a request: %s", heads[i]);
    }
}
END_TEST

START_TEST(odd_bytes_in_the_header_are_refused)
{
    static const char nul_in_path[] = "GET /op\0en HTTP/1.1\r\n" HOST CLOSE;
    static const char nul_in_field[] = "GET /open HTTP/1.1\r\n" HOST "X: a\0b\r\n" CLOSE;

    ck_assert_int_eq(ask("GET /open%00 HTTP/1.1\r\n" HOST CLOSE), 400);
    ck_assert_int_eq(ask("GET /open?q=%00 HTTP/1.1\r\n" HOST CLOSE), 400);
    ck_assert_int_eq(ask("GET /open%2e%2e HTTP/1.1\r\n" HOST CLOSE), 404);
    ck_assert_int_eq(ask("GET /%2e%2e/open HTTP/1.1\r\n" HOST CLOSE), 400);
    ck_assert_int_eq(ask("GET /open?q=%ff HTTP/1.1\r\n" HOST CLOSE), 400);
    ck_assert_int_eq(ask("GET /open?q=%zz HTTP/1.1\r\n" HOST CLOSE), 400);
    ck_assert_int_eq(ask_bytes(nul_in_path, sizeof(nul_in_path) - 1), 400);
    ck_assert_int_eq(ask_bytes(nul_in_field, sizeof(nul_in_field) - 1), 400);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\nHost: 127.0.0.1\n\n"), 400);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n" CLOSE), 400);
    ck_assert_int_eq(ask("GET /open HTTP/2.7\r\n" HOST CLOSE), 505);
    ck_assert_int_ne(ask("GARBAGE\r\n\r\n"), 200);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" CLOSE), 400); /* no Host */
}
END_TEST

START_TEST(methods_paths_and_bodies_have_limits)
{
    ck_assert_int_eq(ask("GET /api/none HTTP/1.1\r\n" HOST CLOSE), 404);
    ck_assert_int_eq(ask("PUT /open HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" CLOSE), 405);
    ck_assert_ptr_nonnull(strstr(reply, "Allow: GET, POST"));
    ck_assert_int_eq(ask("BREW /open HTTP/1.1\r\n" HOST CLOSE), 405);
    ck_assert_int_eq(ask("POST /open HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello"),
                     200);
    ck_assert_ptr_nonnull(strstr(reply, "\"body_bytes\":5"));
    ck_assert_int_eq(ask("POST /open HTTP/1.1\r\n" HOST "Content-Length: 101\r\n" CLOSE), 413);
    ck_assert_int_eq(
        ask("POST /open HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" CLOSE "50\r\n"
            "01234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n"
            "50\r\n"
            "01234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n"
            "0\r\n\r\n"),
        413);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST "Content-Length: 3\r\n" CLOSE "abc"), 413);
}
END_TEST

START_TEST(the_page_answers_for_its_own_addresses)
{
    ck_assert_int_eq(ask("GET / HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "text/html"));
    ck_assert_int_eq(ask("GET /t/abc HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "<p src"));
    ck_assert_int_eq(ask("GET /app.js HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "ETag: \"js\""));
    ck_assert_int_eq(ask("GET /app.js HTTP/1.1\r\n" HOST "If-None-Match: \"js\"\r\n" CLOSE), 304);
    ck_assert_int_eq(ask("GET /none.js HTTP/1.1\r\n" HOST CLOSE), 404);
    ck_assert_int_eq(ask("HEAD /app.js HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_null(strstr(reply, "let a;"));
}
END_TEST

START_TEST(a_file_whose_name_has_its_hash_is_never_asked_for_again)
{
    ck_assert_int_eq(ask("GET /chunk-RIKJVHUA.js HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Cache-Control: public, max-age=31536000, immutable\r\n"));
    ck_assert_int_eq(ask("GET /app.js HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Cache-Control: no-cache\r\n"));
    ck_assert_int_eq(ask("GET /t/chunk-RIKJVHUA HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Cache-Control: no-cache\r\n"));
    /* browsers ask for the icon each time the address changes */
    ck_assert_int_eq(ask("GET /icon.svg HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Cache-Control: public, max-age=86400\r\n"));
}
END_TEST

START_TEST(large_replies_are_compressed_and_tagged)
{
    char *tag;

    ck_assert_int_eq(ask("GET /much HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Content-Length: 300000"));
    ck_assert_int_eq(ask("GET /much HTTP/1.1\r\n" HOST "Accept-Encoding: br, gzip\r\n" CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "Content-Encoding: gzip"));
    ck_assert_ptr_nonnull(strstr(reply, "Vary: Accept-Encoding"));
    ck_assert_ptr_null(strstr(reply, "Content-Length: 300000"));
    tag = strstr(reply, "ETag: \"");
    ck_assert_ptr_nonnull(tag);
    ck_assert_ptr_nonnull(strstr(tag, "-gz\""));
    char request[400];
    (void)snprintf(request, sizeof(request),
                   "GET /much HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n"
                   "If-None-Match: %.*s\r\n" CLOSE,
                   (int)(strcspn(tag + 6, "\r")), tag + 6);
    ck_assert_int_eq(ask(request), 304);
}
END_TEST

static void send_pattern(int fd, size_t size)
{
    char *bytes = malloc(size);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)('a' + i % 23);
    }
    tell(fd, bytes, size);
    free(bytes);
}

START_TEST(an_upload_arrives_whole_and_in_order)
{
    const size_t sizes[] = {1, 100, 262144, 262145, 9000001};

    stop();
    start_with(&(const struct lac_http_options){.rate_window_ms = 60000}); /* a busy machine */
    for (size_t i = 0; i < LAC_COUNT_OF(sizes); i++) {
        char head[300];
        const int fd = dial();

        (void)snprintf(head, sizeof(head),
                       "POST /upload HTTP/1.1\r\n" HOST BEARER "Content-Length: %zu\r\n" CLOSE,
                       sizes[i]);
        tell(fd, head, strlen(head));
        send_pattern(fd, sizes[i]);
        (void)hear(fd, reply, sizeof(reply), 3000);
        close(fd);
        ck_assert_msg(strstr(reply, "HTTP/1.1 201") != NULL, "%zu bytes: %s", sizes[i], reply);
        ck_assert_uint_eq(atomic_load(&upload_bytes), sizes[i]);
    }
}
END_TEST

START_TEST(a_body_shorter_than_announced_is_undone)
{
    const int fd = dial();
    const char *head = "POST /upload HTTP/1.1\r\n" HOST BEARER "Content-Length: 600000\r\n\r\n";

    tell(fd, head, strlen(head));
    send_pattern(fd, 400000);
    close(fd);
    for (unsigned i = 0; i < 100 && atomic_load(&uploads_canceled) == 0; i++) {
        const struct timespec pause = {.tv_nsec = 20000000};

        nanosleep(&pause, NULL);
    }
    ck_assert_uint_eq(atomic_load(&uploads_begun), 1);
    ck_assert_uint_eq(atomic_load(&uploads_canceled), 1);
}
END_TEST

START_TEST(a_body_longer_than_announced_is_not_part_of_it)
{
    ck_assert_int_eq(ask("POST /open HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n"
                         "hello and more\r\n\r\n"),
                     200);
    ck_assert_ptr_nonnull(strstr(reply, "\"body_bytes\":5"));
    ck_assert_ptr_null(strstr(reply + 1, "HTTP/1.1 200"));
}
END_TEST

START_TEST(an_upload_that_cannot_begin_is_told_why)
{
    ck_assert_int_eq(ask("POST /upload?full=1 HTTP/1.1\r\n" HOST BEARER
                         "Content-Length: 10\r\n" CLOSE "abcdefghij"),
                     507);
    ck_assert_ptr_nonnull(strstr(reply, "the disk is full"));
    ck_assert_int_eq(
        ask("POST /upload HTTP/1.1\r\n" HOST BEARER "Content-Length: 10\r\n" CLOSE "abXXefghij"),
        422);
}
END_TEST

START_TEST(a_refusal_is_seen_by_clients_that_send_first)
{
    const char *head = "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 5000000\r\n\r\n";
    const int fd = dial();

    tell(fd, head, strlen(head));
    send_pattern(fd, 5000000);
    (void)hear(fd, reply, sizeof(reply), 3000);
    close(fd);
    ck_assert_ptr_nonnull(strstr(reply, "HTTP/1.1 401"));
    ck_assert_ptr_nonnull(strstr(reply, "\"no_key\""));
    ck_assert_uint_eq(atomic_load(&uploads_begun), 0);
    /* one that announces a body and waits gets it too */
    ck_assert_int_eq(ask(head), 401);
    /* and one that asks first is told before it sends */
    ck_assert_int_eq(ask("POST /upload HTTP/1.1\r\n" HOST
                         "Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"),
                     401);
    ck_assert_ptr_null(strstr(reply, "100 Continue"));
}
END_TEST

START_TEST(one_byte_a_while_meets_the_header_deadline)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const char *request = "GET /open HTTP/1.1\r\nHost: 127.0.0.1\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyy";
    const int fd = dial();
    size_t sent = 0;
    size_t size;

    while (sent < strlen(request) && send(fd, request + sent, 1, MSG_NOSIGNAL) == 1) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};

        sent++;
        if (poll(&wait, 1, 0) > 0) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    size = hear(fd, reply, sizeof(reply), 1000);
    close(fd);
    ck_assert_uint_lt(sent, strlen(request)); /* before the whole of it */
    ck_assert_msg(size > 0 && strstr(reply, "408") != NULL, "%s", reply);
    ck_assert_ptr_nonnull(strstr(reply, "\"timeout\""));
}
END_TEST

START_TEST(a_body_that_trickles_is_ended)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    const char *head = "POST /upload HTTP/1.1\r\n" HOST BEARER "Content-Length: 600000\r\n\r\n";
    const int fd = dial();
    unsigned sent = 0;

    tell(fd, head, strlen(head));
    for (; sent < 400; sent++) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const char byte = (char)('a' + sent % 23);

        tell(fd, &byte, 1);
        if (poll(&wait, 1, 0) > 0) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    (void)hear(fd, reply, sizeof(reply), 1000);
    close(fd);
    ck_assert_uint_lt(sent, 400);
    ck_assert_ptr_nonnull(strstr(reply, "HTTP/1.1 408"));
}
END_TEST

START_TEST(events_reach_every_stream)
{
    int fds[3];

    for (unsigned i = 0; i < 3; i++) {
        fds[i] = dial();
        tell(fds[i], "GET /events HTTP/1.1\r\n" HOST "\r\n",
             strlen("GET /events HTTP/1.1\r\n" HOST "\r\n"));
        (void)hear(fds[i], reply, sizeof(reply), 200);
        ck_assert_ptr_nonnull(strstr(reply, "text/event-stream"));
        ck_assert_ptr_nonnull(strstr(reply, ": ready"));
    }
    ck_assert(lac_http_server_has_streams(server));
    for (unsigned n = 0; n < 50; n++) {
        lac_http_server_publish(server, "", "trace", "{\"n\":1}", 7);
    }
    for (unsigned i = 0; i < 3; i++) {
        unsigned seen = 0;

        (void)hear(fds[i], reply, sizeof(reply), 300);
        for (const char *at = reply; (at = strstr(at, "event: trace\ndata: {\"n\":1}\n\n")) != NULL;
             at++) {
            seen++;
        }
        ck_assert_uint_eq(seen, 50);
        close(fds[i]);
    }
    for (unsigned i = 0; i < 100 && lac_http_server_has_streams(server); i++) {
        const struct timespec pause = {.tv_nsec = 20000000};

        nanosleep(&pause, NULL);
    }
    ck_assert(!lac_http_server_has_streams(server));
}
END_TEST

START_TEST(a_stream_that_does_not_read_is_dropped)
{
    static char line[8192];
    const int fd = dial();

    memset(line, 'x', sizeof(line));
    tell(fd, "GET /events HTTP/1.1\r\n" HOST "\r\n",
         strlen("GET /events HTTP/1.1\r\n" HOST "\r\n"));
    (void)hear(fd, reply, sizeof(reply), 200);
    for (unsigned n = 0; n < 5000; n++) {
        lac_http_server_publish(server, "", "trace", line, sizeof(line));
        if (n % 64 == 0) {
            const struct timespec pause = {.tv_nsec = 1000000};

            nanosleep(&pause, NULL);
        }
    }
    while (hear(fd, reply, sizeof(reply), 300) > 0) {
    }
    for (unsigned i = 0; i < 100 && lac_http_server_has_streams(server); i++) {
        const struct timespec pause = {.tv_nsec = 20000000};

        nanosleep(&pause, NULL);
    }
    ck_assert(!lac_http_server_has_streams(server));
    close(fd);
}
END_TEST

START_TEST(many_ready_connections_do_not_stall_a_loop)
{
    enum { COUNT = 200 };
    static const char request[] = "GET /open HTTP/1.1\r\n" HOST "\r\n";
    int fds[COUNT];
    struct timespec before;
    struct timespec after;

    for (unsigned i = 0; i < COUNT; i++) {
        fds[i] = dial();
    }
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            tell(fds[i], request, sizeof(request) - 1);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            struct pollfd wait = {.fd = fds[i], .events = POLLIN};

            ck_assert_int_eq(poll(&wait, 1, 5000), 1);
            ck_assert_int_gt(recv(fds[i], reply, sizeof(reply), 0), 0);
            ck_assert_int_eq(memcmp(reply, "HTTP/1.1 200", 12), 0);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_lt(after.tv_sec - before.tv_sec, 5);
    for (unsigned i = 0; i < COUNT; i++) {
        close(fds[i]);
    }
}
END_TEST

START_TEST(stopping_finishes_what_is_being_answered)
{
    const struct timespec pause = {.tv_nsec = 80000000};
    const int idle = dial();
    const int stream = dial();
    const int fd = dial();

    tell(stream, "GET /events HTTP/1.1\r\n" HOST "\r\n",
         strlen("GET /events HTTP/1.1\r\n" HOST "\r\n"));
    tell(fd, "GET /sleep HTTP/1.1\r\n" HOST "\r\n", strlen("GET /sleep HTTP/1.1\r\n" HOST "\r\n"));
    nanosleep(&pause, NULL);
    lac_http_server_stop(server);
    (void)hear(fd, reply, sizeof(reply), 100);
    ck_assert_ptr_nonnull(strstr(reply, "{\"slept\":true}"));
    ck_assert_ptr_nonnull(strstr(reply, "Connection: close"));
    (void)hear(stream, reply, sizeof(reply), 100);
    ck_assert_ptr_nonnull(strstr(reply, "\r\n0\r\n\r\n")); /* the stream ended, it was not cut */
    close(fd);
    close(idle);
    close(stream);
}
END_TEST

START_TEST(a_base_path_is_removed)
{
    stop();
    start_with(&(const struct lac_http_options){.base_path = "/user/x"});
    ck_assert_int_eq(ask("GET /user/x/open HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_int_eq(ask("GET /user/x HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_ptr_nonnull(strstr(reply, "src=\"/user/x/app.js\""));
    ck_assert_int_eq(ask("GET /user/x/app.js HTTP/1.1\r\n" HOST CLOSE), 200);
    ck_assert_int_eq(ask("GET /user/xyz.js HTTP/1.1\r\n" HOST CLOSE), 404);
}
END_TEST

/* A connection on which nothing is asked, and what came on it so far. */
struct silent {
    int fd;
    bool is_ended;
    size_t length;
    char heard[1024];
};

/* Whether the server ended the connection, without waiting. */
static bool is_ended(struct silent *silent)
{
    ssize_t length = 1;

    while (!silent->is_ended && length > 0) {
        const size_t room = sizeof(silent->heard) - 1 - silent->length;

        ck_assert_uint_gt(room, 0);
        length = recv(silent->fd, silent->heard + silent->length, room, MSG_DONTWAIT);
        silent->length += length > 0 ? (size_t)length : 0;
        silent->is_ended = length == 0 || (length < 0 && errno != EAGAIN);
    }
    return silent->is_ended;
}

static unsigned count_ended(struct silent *silent, unsigned count)
{
    unsigned ended = 0;

    for (unsigned i = 0; i < count; i++) {
        ended += is_ended(&silent[i]) ? 1 : 0;
    }
    return ended;
}

START_TEST(one_address_cannot_take_all_connections_and_the_last_gets_in)
{
    struct silent silent[12] = {0};

    stop();
    start_with(
        &(const struct lac_http_options){.loopback_connections_max = 8, .header_ms_max = 600000});
    for (unsigned i = 0; i < 12; i++) {
        silent[i].fd = dial();
    }
    for (unsigned i = 0; i < 1000 && count_ended(silent, 12) < 4; i++) {
        (void)poll(NULL, 0, 10);
    }
    ck_assert_uint_eq(count_ended(silent, 12), 4);
    ck_assert(!is_ended(&silent[11]));
    for (unsigned i = 0; i < 12; i++) { /* who had to go was told why, who stayed heard nothing */
        const char *heard = silent[i].heard;

        if (is_ended(&silent[i])) {
            ck_assert_ptr_eq(strstr(heard, "HTTP/1.1 503 "), heard);
            ck_assert_ptr_nonnull(strstr(heard, "too_many_connections"));
        } else {
            ck_assert_uint_eq(silent[i].length, 0);
        }
    }
    ck_assert_int_eq(ask("GET /open HTTP/1.1\r\n" HOST CLOSE), 200);
    for (unsigned i = 0; i < 12; i++) {
        close(silent[i].fd);
    }
}
END_TEST

START_TEST(only_loopback_is_listened_on_unless_allowed)
{
    struct lac_http_server *other = NULL;
    struct lac_error error = {0};
    struct lac_http_options options = {
        .listen = "0.0.0.0:0", .identify = identify, .routes = routes};

    ck_assert_int_eq(lac_http_server_create(&options, &other, &error), LAC_ERR_MISUSE);
    ck_assert_ptr_nonnull(strstr(error.message, "--allow-remote"));
    options.listen = "127.0.0.1:x";
    ck_assert_int_eq(lac_http_server_create(&options, &other, &error), LAC_ERR_MISUSE);
    char taken[64];
    (void)snprintf(taken, sizeof(taken), "127.0.0.1:%u", lac_http_server_port(server));
    options.listen = taken;
    ck_assert_int_eq(lac_http_server_create(&options, &other, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot listen"));
}
END_TEST

static Suite *suite(void)
{
    Suite *made = suite_create("http_server");
    TCase *tests = tcase_create("server");

    tcase_add_checked_fixture(tests, start, stop);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, replies_carry_the_security_headers);
    tcase_add_test(tests, a_key_route_needs_the_key);
    tcase_add_test(tests, a_foreign_host_or_origin_is_refused);
    tcase_add_test(tests, the_cookie_is_for_our_own_page_only);
    tcase_add_test(tests, ambiguous_framing_is_refused_and_the_connection_closed);
    tcase_add_test(tests, odd_bytes_in_the_header_are_refused);
    tcase_add_test(tests, methods_paths_and_bodies_have_limits);
    tcase_add_test(tests, the_page_answers_for_its_own_addresses);
    tcase_add_test(tests, a_file_whose_name_has_its_hash_is_never_asked_for_again);
    tcase_add_test(tests, large_replies_are_compressed_and_tagged);
    tcase_add_test(tests, an_upload_arrives_whole_and_in_order);
    tcase_add_test(tests, a_body_shorter_than_announced_is_undone);
    tcase_add_test(tests, a_body_longer_than_announced_is_not_part_of_it);
    tcase_add_test(tests, an_upload_that_cannot_begin_is_told_why);
    tcase_add_test(tests, a_refusal_is_seen_by_clients_that_send_first);
    tcase_add_test(tests, one_byte_a_while_meets_the_header_deadline);
    tcase_add_test(tests, a_body_that_trickles_is_ended);
    tcase_add_test(tests, events_reach_every_stream);
    tcase_add_test(tests, a_stream_that_does_not_read_is_dropped);
    tcase_add_test(tests, many_ready_connections_do_not_stall_a_loop);
    tcase_add_test(tests, stopping_finishes_what_is_being_answered);
    tcase_add_test(tests, a_base_path_is_removed);
    tcase_add_test(tests, one_address_cannot_take_all_connections_and_the_last_gets_in);
    tcase_add_test(tests, only_loopback_is_listened_on_unless_allowed);
    suite_add_tcase(made, tests);
    return made;
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return check_main_apart(suite());
}
