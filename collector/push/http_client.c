#include "collector/push/http_client.h"

#include "collector/base/libcurl.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SLOWEST_BYTES_PER_S = 100, SLOWEST_S = 120 };

struct lac_http {
    const struct lac_curl *curl;
    void *easy;
};

/* A request's body on its way out. */
struct outgoing {
    const char *bytes;
    size_t size_bytes;
    size_t sent_bytes;
};

struct lac_http *lac_http_open(char *problem, size_t capacity)
{
    const struct lac_curl *const curl = lac_curl();
    struct lac_http *const http = calloc(1, sizeof(*http));

    (void)snprintf(problem, capacity, "libcurl (libcurl.so.4) cannot be loaded");
    if (curl == NULL || http == NULL) {
        free(http);
        return NULL;
    }
    http->curl = curl;
    http->easy = curl->easy_init();
    if (http->easy == NULL) {
        free(http);
        return NULL;
    }
    problem[0] = '\0';
    return http;
}

void lac_http_close(struct lac_http *http)
{
    if (http != NULL) {
        http->curl->easy_cleanup(http->easy);
        free(http);
    }
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct lac_http_reply *const reply = context;
    const size_t room = sizeof(reply->body) - 1 - reply->body_bytes;
    const size_t taken = size * count < room ? size * count : room;

    memcpy(reply->body + reply->body_bytes, bytes, taken);
    reply->body_bytes += taken;
    reply->body[reply->body_bytes] = '\0';
    return size * count; /* the rest is of no use */
}

/* "Name: value\r\n" into `out`, cut at its capacity. @return whether it was that header */
static bool take_value(const char *line, size_t length, const char *name, char *out,
                       size_t capacity)
{
    const size_t name_length = strlen(name);
    size_t first = name_length + 1;

    if (length <= first || strncasecmp(line, name, name_length) != 0 || line[name_length] != ':') {
        return false;
    }
    while (first < length && line[first] == ' ') {
        first++;
    }
    while (length > first && (line[length - 1] == '\r' || line[length - 1] == '\n')) {
        length--;
    }
    (void)snprintf(out, capacity, "%.*s", (int)(length - first), line + first);
    return true;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct lac_http_reply *const reply = context;
    const size_t length = size * count;
    char number[32];

    if (length >= 5 && strncmp(bytes, "HTTP/", 5) == 0) { /* after a 100 Continue another follows */
        reply->location[0] = reply->trace[0] = '\0';
        reply->has_offset = false;
    }
    if (!take_value(bytes, length, "Location", reply->location, sizeof(reply->location)) &&
        !take_value(bytes, length, "Lacuna-Trace-Id", reply->trace, sizeof(reply->trace)) &&
        take_value(bytes, length, "Upload-Offset", number, sizeof(number)) && number[0] >= '0' &&
        number[0] <= '9') {
        reply->offset_bytes = strtoull(number, NULL, 10);
        reply->has_offset = true;
    }
    return length;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *context)
{
    struct outgoing *const out = context;
    const size_t left = out->size_bytes - out->sent_bytes;
    const size_t given = size * count < left ? size * count : left;

    memcpy(bytes, out->bytes + out->sent_bytes, given);
    out->sent_bytes += given;
    return given;
}

static int seek_body(void *context, int64_t offset, int origin)
{
    struct outgoing *const out = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > out->size_bytes) {
        return 1;
    }
    out->sent_bytes = (size_t)offset;
    return 0;
}

static void set_method(struct lac_http *http, const struct lac_http_request *request,
                       struct outgoing *out)
{
    if (strcmp(request->method, "HEAD") == 0) {
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_NOBODY, 1L);
    } else if (strcmp(request->method, "DELETE") == 0) {
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_CUSTOMREQUEST, "DELETE");
    } else if (strcmp(request->method, "POST") == 0) {
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_POSTFIELDS, "");
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_POSTFIELDSIZE_LARGE, (int64_t)0);
    } else if (strcmp(request->method, "PATCH") == 0 || strcmp(request->method, "PUT") == 0) {
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_UPLOAD, 1L);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_CUSTOMREQUEST, request->method);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_INFILESIZE_LARGE,
                                      (int64_t)request->body_bytes);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_READFUNCTION, give_body);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_READDATA, out);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_SEEKFUNCTION, seek_body);
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_SEEKDATA, out);
    }
}

static void set_options(struct lac_http *http, const struct lac_http_request *request,
                        struct lac_http_reply *reply, char *error)
{
    const char *const ca_file = lac_curl_ca_file();

    http->curl->easy_reset(http->easy);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_NOSIGNAL, 1L);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_ERRORBUFFER, error);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_URL, request->url);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_USERAGENT, "lacuna-node/" LAC_VERSION);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_HTTP_VERSION, (long)LAC_CURL_HTTP_1_1);
    if (ca_file != NULL) { /* who vouches for the server, where the host's certificates do not */
        (void)http->curl->easy_setopt(http->easy, LAC_CURL_CAINFO, ca_file);
    }
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_PROTOCOLS,
                                  (long)(LAC_CURL_HTTP | LAC_CURL_HTTPS));
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_CONNECTTIMEOUT_MS,
                                  request->connect_ms != 0 ? request->connect_ms : 15000L);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_LOW_SPEED_LIMIT, (long)SLOWEST_BYTES_PER_S);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_LOW_SPEED_TIME, (long)SLOWEST_S);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_WRITEFUNCTION, take_body);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_WRITEDATA, reply);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_HEADERFUNCTION, take_header);
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_HEADERDATA, reply);
}

bool lac_http_ask(struct lac_http *http, const struct lac_http_request *request,
                  struct lac_http_reply *reply)
{
    struct outgoing out = {.bytes = request->body, .size_bytes = request->body_bytes};
    char error[LAC_CURL_ERROR_BYTES] = "";
    void *fields = NULL;
    int code;

    memset(reply, 0, sizeof(*reply));
    set_options(http, request, reply, error);
    set_method(http, request, &out);
    for (size_t i = 0; i < LAC_HTTP_FIELDS_MAX && request->fields[i] != NULL; i++) {
        fields = http->curl->list_append(fields, request->fields[i]);
    }
    (void)http->curl->easy_setopt(http->easy, LAC_CURL_HTTPHEADER, fields);
    code = http->curl->easy_perform(http->easy);
    (void)http->curl->easy_getinfo(http->easy, LAC_CURL_RESPONSE_CODE, &reply->status);
    http->curl->list_free(fields);
    if (code != 0) {
        (void)snprintf(reply->problem, sizeof(reply->problem), "%s",
                       error[0] != '\0' ? error : http->curl->easy_strerror(code));
        /* an answer that came before all was sent is an answer: a refusal */
        if (reply->status < 400) {
            reply->status = 0;
        }
    }
    return reply->status != 0;
}
