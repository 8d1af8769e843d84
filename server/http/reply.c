#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/http/gzip.h"
#include "server/http/metrics.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* How long a reply may take at most: a start, and then at least this rate. */
enum { REPLY_MS_MIN = 30000, REPLY_BYTES_PER_MS = 16 };

/* Replies up to this are as large as what a connection costs anyway: never refused, not counted. */
enum { SMALL_REPLY_BYTES = 16 << 10 };

/* A file costs no memory, but it is on the disk until it is read, whoever removed its name. */
enum { FILES_SENT_MAX = 8 };

static const struct {
    const char *name;
    const char *value;
} fixed_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
     "connect-src 'self'; font-src 'self'; worker-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin-allow-popups"}, /* a window goes to Perfetto */
};

/** @param policy instead of the page's; NULL: that one */
static void add_fixed_headers(struct MHD_Response *mhd_response, const char *policy,
                              bool may_have_opener)
{
    for (size_t i = 0; i < LAC_COUNT_OF(fixed_headers); i++) {
        bool is_policy = policy != NULL && i == 0;

        if (may_have_opener && strcmp(fixed_headers[i].name, "Cross-Origin-Opener-Policy") == 0) {
            continue;
        }

        (void)MHD_add_response_header(mhd_response, fixed_headers[i].name,
                                      is_policy ? policy : fixed_headers[i].value);
    }
}

void lac_reply_add_headers(struct MHD_Response *mhd_response)
{
    add_fixed_headers(mhd_response, NULL, false);
}

/* The client already has it: 304, with its tag. */
static bool answer_unchanged(struct exchange *x)
{
    struct lac_response *response = &x->response;

    if (response->http_status != 200 || !lac_response_is_unchanged(&x->request, response)) {
        return false;
    }
    lac_buffer_done(&response->body);
    response->borrowed = NULL;
    response->encoding = NULL;
    return true;
}

static void compress(struct exchange *x)
{
    struct lac_response *response = &x->response;
    struct lac_buffer compressed = {0};

    if (!x->accepts_gzip || !response->may_gzip || response->encoding != NULL ||
        response->borrowed != NULL || response->has_file ||
        lac_gzip(response->body.bytes, response->body.size_bytes, &compressed) != LAC_OK) {
        return;
    }
    lac_buffer_done(&response->body);
    response->body = compressed;
    response->encoding = "gzip";
    if (response->etag[0] != '\0') {
        char etag[sizeof(response->etag)];

        lac_etag_of_gzip(response->etag, etag, sizeof(etag));
        memcpy(response->etag, etag, sizeof(etag));
    }
}

/* All replies that wait to be read share one budget, because a client cannot be forced to read.
 * Borrowed bytes (the page) exist once for all. */
static bool fits_budget(struct exchange *x)
{
    struct lac_http_server *server = x->loop->server;
    const uint64_t size = x->response.body.size_bytes;

    if (x->response.has_file) {
        x->sends_file = atomic_fetch_add(&server->files_sent, 1) < FILES_SENT_MAX;
        if (!x->sends_file) {
            atomic_fetch_sub(&server->files_sent, 1);
        }
        return x->sends_file;
    }
    if (size <= SMALL_REPLY_BYTES || x->response.borrowed != NULL) {
        return true;
    }
    if (atomic_fetch_add(&server->reply_bytes, size) + size > server->options.reply_bytes_max) {
        atomic_fetch_sub(&server->reply_bytes, size);
        return false;
    }
    x->budget_bytes = size;
    return true;
}

void lac_reply_release(struct exchange *x)
{
    atomic_fetch_sub(&x->loop->server->reply_bytes, x->budget_bytes);
    x->budget_bytes = 0;
    if (x->sends_file) {
        x->sends_file = false;
        atomic_fetch_sub(&x->loop->server->files_sent, 1);
    }
}

void lac_reply_finish(struct exchange *x)
{
    struct lac_response *response = &x->response;

    if (response->body.status == LAC_ERR_LIMIT) {
        lac_response_error(response, 413, "limit", "the answer would be too large: ask for less");
    } else if (response->body.status != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for the answer");
    }
    if (!answer_unchanged(x)) {
        compress(x);
    }
    if (!fits_budget(x)) {
        lac_metrics_reply_refused(x->loop->server->metrics);
        lac_response_error(response, 503, "busy",
                           response->has_file
                               ? "as many files are being sent as may be: try again in a moment"
                               : "the replies in progress use all memory for replies: read them, "
                                 "or try again in a moment");
        lac_response_header(response, "Retry-After", "2");
    }
}

static struct MHD_Response *make_response(struct exchange *x)
{
    struct lac_response *response = &x->response;
    struct MHD_Response *made;

    if (response->borrowed != NULL) {
        x->reply_bytes = response->borrowed_size_bytes;
        /* libmicrohttpd's pointer is not const; with RESPMEM_PERSISTENT it only reads */
        const union {
            const void *given;
            void *taken;
        } bytes = {.given = response->borrowed};

        return MHD_create_response_from_buffer(response->borrowed_size_bytes, bytes.taken,
                                               MHD_RESPMEM_PERSISTENT);
    }
    if (response->has_file) {
        x->reply_bytes = response->file_size_bytes;
        made = MHD_create_response_from_fd64(response->file_size_bytes, response->file);
        response->has_file = made == NULL; /* libmicrohttpd's now */
        return made;
    }
    if (response->body.bytes == NULL) {
        static char nothing[1];

        return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    }
    x->reply_bytes = response->body.size_bytes;
    made = MHD_create_response_from_buffer(response->body.size_bytes, response->body.bytes,
                                           MHD_RESPMEM_MUST_FREE);
    if (made != NULL) {
        response->body = (struct lac_buffer){0}; /* libmicrohttpd's now */
    }
    return made;
}

/** As the server wrote them that answered in our place. */
static void add_relayed(struct MHD_Response *made, char *line)
{
    while (*line != '\0') {
        char *const end = line + strcspn(line, "\n");
        char *const value = line + strcspn(line, ":");
        const bool is_last = *end == '\0';

        *end = '\0';
        if (value < end) {
            *value = '\0';
            (void)MHD_add_response_header(made, line, value + 1 + strspn(value + 1, " \t"));
        }
        line = is_last ? end : end + 1;
    }
}

static void add_headers(const struct exchange *x, struct MHD_Response *made)
{
    const struct lac_response *response = &x->response;

    if (response->relayed != NULL) {
        add_relayed(made, response->relayed);
        if (x->close_after || atomic_load(&x->loop->server->is_stopping)) {
            (void)MHD_add_response_header(made, "Connection", "close");
        }
        return;
    }
    add_fixed_headers(made, response->policy, response->may_have_opener);
    if (response->http_status != 204 && response->http_status != 304) {
        (void)MHD_add_response_header(made, "Content-Type", response->mime);
    }
    (void)MHD_add_response_header(made, "Cache-Control", response->cache);
    if (response->etag[0] != '\0') {
        (void)MHD_add_response_header(made, "ETag", response->etag);
    }
    if (response->encoding != NULL) {
        (void)MHD_add_response_header(made, "Content-Encoding", response->encoding);
    }
    if (response->may_gzip) {
        (void)MHD_add_response_header(made, "Vary", "Accept-Encoding");
    }
    if (response->long_value != NULL) {
        (void)MHD_add_response_header(made, response->long_name, response->long_value);
    }
    for (unsigned i = 0; i < response->header_count; i++) {
        (void)MHD_add_response_header(made, response->header[i].name, response->header[i].value);
    }
    if (x->close_after || atomic_load(&x->loop->server->is_stopping)) {
        (void)MHD_add_response_header(made, "Connection", "close");
    }
}

void lac_reply_started(struct exchange *x)
{
    struct connection *connection = x->connection;

    connection->phase = PHASE_REPLY;
    connection->window_start_ns = 0;
    connection->deadline_ns =
        lac_http_now_ns() +
        ((int64_t)REPLY_MS_MIN + (int64_t)(x->reply_bytes / REPLY_BYTES_PER_MS)) * 1000000;
}

enum MHD_Result lac_reply_queue(struct exchange *x)
{
    struct MHD_Response *made;
    enum MHD_Result result;

    if (x->route != NULL && x->route->run == LAC_RUN_EVENTS && x->response.http_status == 200) {
        return lac_stream_open(x);
    }
    made = make_response(x);
    if (made == NULL) {
        return MHD_NO;
    }
    add_headers(x, made);
    x->stage = STAGE_REPLIED;
    lac_reply_started(x);
    result = MHD_queue_response(x->connection->mhd, x->response.http_status, made);
    MHD_destroy_response(made);
    return result;
}
