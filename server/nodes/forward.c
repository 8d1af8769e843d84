#include "server/nodes/forward.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/store/database/holder.h"
#include "server/store/store.h"
#include "server/tls/link.h"
#include "server/tls/tls.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    CONNECT_MS = 3000,
    ANSWER_S = 300, /* an import's upload is hashed and put into object storage before it is said */
    HEAD_BYTES_MAX = 64 << 10,
    READ_BYTES = 64 << 10,
    UNREACHED_MS = 5000, /* so long a server that could not be connected to is not counted on */
};

/** A request on its way. */
struct passing {
    struct passing *next;
    struct lac_main_node *node;
    int fd;
    struct lac_tls_link *link; /**< NULL: in clear */
    struct lac_app *app;
    bool is_chunked;
    bool is_cut; /**< nobody reads the body any more; the answer may be there all the same */
};

struct lac_main_node {
    pthread_mutex_t lock;
    char address[LAC_NODE_ADDRESS_BYTES];
    char secret[32];
    bool is_there;
    bool is_stopping;
    uint64_t unreached_ns; /**< when it last could not be connected to; 0: it could */
    struct passing *under_way;
};

enum lac_status lac_main_node_create(struct lac_main_node **ret_node, struct lac_error *reterr)
{
    assert(ret_node != NULL);
    struct lac_main_node *const node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    (void)pthread_mutex_init(&node->lock, NULL);
    *ret_node = node;
    return LAC_OK;
}

void lac_main_node_destroy(struct lac_main_node *node)
{
    if (node == NULL) {
        return;
    }
    assert(node->under_way == NULL);
    (void)pthread_mutex_destroy(&node->lock);
    free(node);
}

/** With the lock. */
static void cut_all(struct lac_main_node *node)
{
    for (struct passing *p = node->under_way; p != NULL; p = p->next) {
        (void)shutdown(p->fd, SHUT_RDWR);
    }
}

void lac_main_node_set(struct lac_main_node *node, const struct lac_store_holder *holder)
{
    (void)pthread_mutex_lock(&node->lock);
    (void)snprintf(node->address, sizeof(node->address), "%s", holder->address);
    (void)snprintf(node->secret, sizeof(node->secret), "%s", holder->secret);
    node->is_there = holder->is_there;
    if (!node->is_there) {
        cut_all(node);
    }
    (void)pthread_mutex_unlock(&node->lock);
}

void lac_main_node_stop(struct lac_main_node *node)
{
    (void)pthread_mutex_lock(&node->lock);
    node->is_stopping = true;
    cut_all(node);
    (void)pthread_mutex_unlock(&node->lock);
}

/* -- the connection ------------------------------------------------------------------------------ */

static bool await(int fd, short events, int ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int ready;

    do {
        ready = poll(&wait, 1, ms);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static int connect_one(const struct addrinfo *info)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    const int one = 1;
    int problem = 0;
    socklen_t length = sizeof(problem);
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -1;
    }
    if (connect(fd, info->ai_addr, info->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || !await(fd, POLLOUT, CONNECT_MS) ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length) != 0 || problem != 0)) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return fd;
}

/** What of an address is in front of HOST:PORT: "tls:FINGERPRINT@", or nothing. @return its length */
static size_t find_fingerprint(const char *address, char out[LAC_TLS_FINGERPRINT_BYTES])
{
    enum { MARK = sizeof("tls:") - 1, DIGITS = LAC_TLS_FINGERPRINT_BYTES - 1 };

    out[0] = '\0';
    if (strncmp(address, "tls:", MARK) != 0 ||
        strspn(address + MARK, "0123456789abcdef") != DIGITS || address[MARK + DIGITS] != '@') {
        return 0;
    }
    (void)snprintf(out, LAC_TLS_FINGERPRINT_BYTES, "%.*s", (int)DIGITS, address + MARK);
    return MARK + DIGITS + 1;
}

/** HOST:PORT or [ADDRESS]:PORT. @return a descriptor that blocks by await(), or -1 */
static int connect_to(const char *address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[LAC_NODE_ADDRESS_BYTES];
    const char *const colon = strrchr(address, ':');
    const char *const begin = address[0] == '[' ? address + 1 : address;
    const size_t length = colon != NULL ? (size_t)(colon - begin) - (begin != address) : 0;
    int fd = -1;

    if (colon == NULL || colon < begin + 1 || length >= sizeof(host)) {
        return -1;
    }
    memcpy(host, begin, length);
    host[length] = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return -1;
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = connect_one(at);
    }
    freeaddrinfo(found);
    return fd;
}

static bool send_all(const struct passing *to, const void *bytes, size_t size_bytes)
{
    const char *at = bytes;
    const int fd = to->fd;

    if (to->link != NULL) {
        return lac_tls_link_send(to->link, bytes, size_bytes);
    }
    while (size_bytes > 0) {
        const ssize_t sent = send(fd, at, size_bytes, MSG_NOSIGNAL);

        if (sent > 0) {
            at += sent;
            size_bytes -= (size_t)sent;
        } else if (errno == EAGAIN ? !await(fd, POLLOUT, ANSWER_S * 1000) : errno != EINTR) {
            return false;
        }
    }
    return true;
}

/** @return bytes, 0 at the end, -1 */
static ssize_t receive_some(const struct passing *from, void *bytes, size_t size_bytes)
{
    const int fd = from->fd;

    if (from->link != NULL) {
        return lac_tls_link_receive(from->link, bytes, size_bytes);
    }
    for (;;) {
        const ssize_t got = recv(fd, bytes, size_bytes, 0);

        if (got >= 0) {
            return got;
        }
        if (errno == EAGAIN ? !await(fd, POLLIN, ANSWER_S * 1000) : errno != EINTR) {
            return -1;
        }
    }
}

/* -- the request --------------------------------------------------------------------------------- */

static void end_passing(struct passing *passing)
{
    struct lac_main_node *const node = passing->node;
    struct passing **place = &node->under_way;

    (void)pthread_mutex_lock(&node->lock);
    while (*place != passing) {
        place = &(*place)->next;
    }
    *place = passing->next;
    (void)pthread_mutex_unlock(&node->lock);
    lac_tls_link_close(passing->link);
    (void)close(passing->fd);
    free(passing);
}

static bool send_head(const struct passing *to, const char *secret,
                      const struct lac_request *request)
{
    struct lac_buffer text = {0};
    const bool has_length = request->content_length != LAC_SIZE_UNKNOWN;
    bool is_sent;

    lac_buffer_puts(&text, request->head);
    if (secret[0] != '\0') {
        lac_buffer_printf(&text, "Lacuna-Node: %s\r\n", secret);
    }
    if (!has_length) {
        lac_buffer_puts(&text, "Transfer-Encoding: chunked\r\n");
    } else if (request->content_length > 0 || request->method == LAC_METHOD_POST ||
               request->method == LAC_METHOD_PUT || request->method == LAC_METHOD_PATCH) {
        lac_buffer_printf(&text, "Content-Length: %llu\r\n",
                          (unsigned long long)request->content_length);
    }
    lac_buffer_puts(&text, "Connection: close\r\n\r\n");
    is_sent = text.status == LAC_OK && send_all(to, text.bytes, text.size_bytes);
    lac_buffer_done(&text);
    return is_sent;
}

static enum lac_status begin(void *app_context, const struct lac_request *request, void **ret_sink,
                             struct lac_error *reterr)
{
    struct lac_app *const app = app_context;
    struct lac_main_node *const node = app->main_node;
    struct passing *const passing = calloc(1, sizeof(*passing));
    struct lac_error error = {0};
    char address[LAC_NODE_ADDRESS_BYTES];
    char secret[sizeof(node->secret)];
    char fingerprint[LAC_TLS_FINGERPRINT_BYTES];
    size_t place;
    bool is_there;

    if (passing == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for this request");
    }
    (void)pthread_mutex_lock(&node->lock);
    memcpy(address, node->address, sizeof(address));
    memcpy(secret, node->secret, sizeof(secret));
    is_there = node->is_there && !node->is_stopping;
    (void)pthread_mutex_unlock(&node->lock);
    place = find_fingerprint(address, fingerprint);
    passing->fd = is_there && address[0] != '\0' ? connect_to(address + place) : -1;
    passing->node = node;
    passing->app = app;
    passing->is_chunked = request->content_length == LAC_SIZE_UNKNOWN;
    if (passing->fd >= 0) {
        (void)pthread_mutex_lock(&node->lock);
        node->unreached_ns = 0;
        passing->next = node->under_way;
        node->under_way = passing;
        is_there = !node->is_stopping;
        (void)pthread_mutex_unlock(&node->lock);
        if (is_there && place > 0) {
            is_there = lac_tls_link_open(passing->fd, fingerprint, ANSWER_S * 1000, &passing->link,
                                         &error) == LAC_OK;
        }
        if (is_there && send_head(passing, secret, request)) {
            *ret_sink = passing;
            return LAC_OK;
        }
        end_passing(passing);
        if (error.status != LAC_OK) {
            return lac_fail(reterr, LAC_ERR_BUSY, 0,
                            "this server stands by and only reads, and the one that holds the "
                            "catalog cannot be asked: %s",
                            error.message);
        }
    } else {
        (void)pthread_mutex_lock(&node->lock);
        node->unreached_ns = lac_monotonic_ns();
        (void)pthread_mutex_unlock(&node->lock);
        free(passing);
    }
    if (is_there && address[0] == '\0') {
        return lac_fail(reterr, LAC_ERR_BUSY, 0,
                        "this server stands by and only reads, and the one that holds the catalog "
                        "does not say where it answers: start it with --node-address");
    }
    return lac_fail(reterr, LAC_ERR_BUSY, 0,
                    "this server stands by and only reads, and the one that holds the catalog does "
                    "not answer: try again in a moment");
}

static enum lac_status take(void *sink, const uint8_t *bytes, size_t size_bytes,
                            struct lac_error *reterr)
{
    struct passing *const passing = sink;
    char size[24];
    int length = 0;

    (void)reterr;
    if (passing->is_chunked) {
        length = snprintf(size, sizeof(size), "%zx\r\n", size_bytes);
    }
    /* refused in the middle: what came is thrown away, and the answer says why */
    passing->is_cut = passing->is_cut || !send_all(passing, size, (size_t)length) ||
                      !send_all(passing, bytes, size_bytes) ||
                      !send_all(passing, "\r\n", passing->is_chunked ? 2 : 0);
    return LAC_OK;
}

static void cancel(void *sink)
{
    end_passing(sink);
}

/* -- the answer ---------------------------------------------------------------------------------- */

/** An answer, as far as it has come. */
struct answer {
    char *head; /**< HEAD_BYTES_MAX bytes and a NUL */
    size_t head_bytes;
    char *body; /**< what of `head` belongs to the body */
    unsigned http_status;
    bool has_length;
    uint64_t length;
};

/** "HTTP/1.1 200 OK" */
static bool read_status(const char *line, unsigned *ret_status)
{
    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        strspn(line + 9, "0123456789") != 3) {
        return false;
    }
    *ret_status = (unsigned)strtoul(line + 9, NULL, 10);
    return *ret_status >= 100 && *ret_status <= 599;
}

/** Read until the empty line; answers that only say to go on are passed over. */
static bool read_head(const struct passing *from, struct answer *answer)
{
    for (;;) {
        char *const end = strstr(answer->head, "\r\n\r\n");
        ssize_t got;

        if (end != NULL) {
            answer->body = end + 4;
            if (!read_status(answer->head, &answer->http_status)) {
                return false;
            }
            if (answer->http_status >= 200) {
                end[2] = '\0'; /* the last field keeps its line break */
                return true;
            }
            answer->head_bytes -= (size_t)(answer->body - answer->head);
            memmove(answer->head, answer->body, answer->head_bytes + 1);
            continue;
        }
        if (answer->head_bytes == HEAD_BYTES_MAX) {
            return false;
        }
        got = receive_some(from, answer->head + answer->head_bytes,
                           HEAD_BYTES_MAX - answer->head_bytes);
        if (got <= 0) {
            return false;
        }
        answer->head_bytes += (size_t)got;
        answer->head[answer->head_bytes] = '\0';
        if (memchr(answer->head, '\0', answer->head_bytes) != NULL &&
            strstr(answer->head, "\r\n\r\n") == NULL) {
            return false;
        }
    }
}

/** Take the header fields; libmicrohttpd says length, date and connection itself. */
static bool take_fields(struct answer *answer, struct lac_response *response)
{
    struct lac_buffer fields = {0};
    char *line = strstr(answer->head, "\r\n");

    for (line = line != NULL ? line + 2 : NULL; line != NULL && *line != '\0';) {
        char *const end = strstr(line, "\r\n");
        const size_t name = strcspn(line, ":");

        if (end == NULL || line + name >= end) {
            lac_buffer_done(&fields);
            return false;
        }
        *end = '\0';
        if (strncasecmp(line, "Content-Length:", 15) == 0) {
            answer->has_length =
                lac_parse_uint(line + 15 + strspn(line + 15, " "), &answer->length);
        } else if (strncasecmp(line, "Transfer-Encoding:", 18) == 0) {
            lac_buffer_done(&fields);
            return false; /* only streams have it, and they are not passed on */
        } else if (strncasecmp(line, "Connection:", 11) != 0 &&
                   strncasecmp(line, "Date:", 5) != 0 &&
                   strncasecmp(line, "Keep-Alive:", 11) != 0) {
            lac_buffer_printf(&fields, "%s\n", line);
        }
        line = end + 2;
    }
    if (fields.status != LAC_OK || fields.bytes == NULL) {
        lac_buffer_done(&fields);
        return false;
    }
    free(response->relayed);
    response->relayed = fields.bytes;
    return true;
}

static bool read_body(const struct passing *from, const struct answer *answer, bool is_head,
                      struct lac_response *response)
{
    const size_t early = answer->head_bytes - (size_t)(answer->body - answer->head);
    char *bytes;
    ssize_t got = 1;

    if (is_head || answer->http_status == 204 || answer->http_status == 304) {
        return true;
    }
    bytes = malloc(READ_BYTES);
    if (bytes == NULL) {
        return false;
    }
    lac_buffer_add(&response->body, answer->body, early);
    while (response->body.status == LAC_OK &&
           !(answer->has_length && response->body.size_bytes >= answer->length) &&
           (got = receive_some(from, bytes, READ_BYTES)) > 0) {
        lac_buffer_add(&response->body, bytes, (size_t)got);
    }
    free(bytes);
    return got >= 0 && response->body.status == LAC_OK &&
           (!answer->has_length || response->body.size_bytes == answer->length);
}

/** What was changed through this server is seen here at once. */
static void see_change(const struct passing *passing, const struct lac_request *request,
                       unsigned http_status)
{
    static const char traces[] = "/api/v1/traces/";
    const char *const path = request->target->path;
    char id[LAC_ID_SIZE];

    if (http_status / 100 == 2 && strncmp(path, traces, sizeof(traces) - 1) == 0) {
        (void)snprintf(id, sizeof(id), "%s", path + sizeof(traces) - 1);
        lac_store_recheck(passing->app->store, id);
    }
}

static void finish(void *sink, const struct lac_request *request, struct lac_response *response)
{
    struct passing *const passing = sink;
    struct answer answer = {.head = calloc(1, HEAD_BYTES_MAX + 1)};
    bool is_whole = answer.head != NULL;

    if (passing->is_chunked && !passing->is_cut) {
        (void)!send_all(passing, "0\r\n\r\n", 5);
    }
    is_whole = is_whole && read_head(passing, &answer) && take_fields(&answer, response) &&
               read_body(passing, &answer, strncmp(request->head, "HEAD ", 5) == 0, response);
    free(answer.head);
    if (is_whole) {
        see_change(passing, request, answer.http_status);
    }
    end_passing(passing);
    if (is_whole) {
        response->http_status = answer.http_status;
        response->may_gzip = false; /* as it came */
        return;
    }
    free(response->relayed);
    response->relayed = NULL;
    lac_response_error(
        response, 503, "node_lost",
        "the server that holds the catalog went away while it answered: look whether "
        "the change was made, and try again in a moment");
    lac_response_header(response, "Retry-After", "5");
}

static const struct lac_body_handler pass_on = {
    .begin = begin, .data = take, .finish = finish, .cancel = cancel};

const struct lac_route lac_nodes_elsewhere =
    LAC_ROUTE(OTHER, "", OPEN, UPLOAD, LAC_BODY_UPLOAD, NULL, &pass_on);

/** Whether it is there, as far as is known. */
static bool may_answer(struct lac_main_node *node)
{
    bool may;

    (void)pthread_mutex_lock(&node->lock);
    may = node->is_there && node->address[0] != '\0' &&
          (node->unreached_ns == 0 ||
           lac_monotonic_ns() - node->unreached_ns >= UNREACHED_MS * UINT64_C(1000000));
    (void)pthread_mutex_unlock(&node->lock);
    return may;
}

static bool is_one_of(const char *pattern, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pattern, patterns[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool lac_nodes_is_elsewhere(void *app_context, const struct lac_route *route)
{
    /* in the holder's memory: uploads, which count against quotas, and people on their way to a
     * provider and back */
    static const char *const only_there[] = {
        "/api/v1/hangs",
        "/api/v1/uploads/{id}",
        "/api/v1/session/oidc",
        "/api/v1/session/oidc/callback",
        "/api/v1/projects/{name}/quota",
        "/api/v1/tokens/{id}/quota",
        "/api/v1/quotas",
    };
    /* figures of runs are kept in the catalog by whoever first asks for them: the holder, and while it
     * is lost what is there is answered here, the rest as pending */
    static const char *const better_there[] = {
        "/api/v1/projects/{name}/journal",
        "/api/v1/projects/{name}/trends",
        "/api/v1/projects/{name}/series",
    };
    const struct lac_app *const app = app_context;

    if (route->method != LAC_METHOD_GET) { /* questions in SQL change nothing */
        return strcmp(route->pattern, "/api/v1/sql") != 0 &&
               strcmp(route->pattern, "/api/v1/traces/{id}/sql") != 0;
    }
    return is_one_of(route->pattern, only_there, LAC_COUNT_OF(only_there)) ||
           (is_one_of(route->pattern, better_there, LAC_COUNT_OF(better_there)) &&
            may_answer(app->main_node));
}
