#include "server/objects/s3_request.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/libcurl.h"
#include "collector/base/monotonic.h"
#include "server/base/buffer.h"
#include "server/objects/objects.h"
#include "server/objects/objects_private.h"
#include "server/objects/sigv4.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    SLOWEST_S = 30,
    WAIT_MS_FIRST = 100,
    WAIT_MS_MOST = 4000,
    REPLY_BYTES_MAX = 4 << 20,
};

#define NOTHING_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct transfer {
    struct lac_s3 *s3;
    struct lac_s3_call *call;
    void *easy;
    uint64_t sent_bytes;
    bool has_begun;  /**< bytes went to the sink */
    bool is_refused; /**< by the sink */
};

static void *take_handle(struct lac_s3 *s3)
{
    void *easy = NULL;

    (void)pthread_mutex_lock(&s3->lock);
    if (s3->handle_count > 0) {
        easy = s3->handles[--s3->handle_count];
    }
    (void)pthread_mutex_unlock(&s3->lock);
    return easy != NULL ? easy : s3->curl->easy_init();
}

static void give_handle(struct lac_s3 *s3, void *easy)
{
    s3->curl->easy_reset(easy); /* its connection stays */
    (void)pthread_mutex_lock(&s3->lock);
    if (s3->handle_count < LAC_S3_HANDLES_KEPT) {
        s3->handles[s3->handle_count++] = easy;
        easy = NULL;
    }
    (void)pthread_mutex_unlock(&s3->lock);
    if (easy != NULL) {
        s3->curl->easy_cleanup(easy);
    }
}

/* -- what comes and goes ------------------------------------------------------------------------*/

static size_t give_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *const transfer = context;
    const struct lac_s3_call *const call = transfer->call;
    const uint64_t left = call->size_bytes - transfer->sent_bytes;
    size_t given = size * count < left ? size * count : (size_t)left;

    if (call->fd < 0) {
        memcpy(bytes, call->body + transfer->sent_bytes, given);
    } else if (given > 0) {
        const ssize_t got =
            pread(call->fd, bytes, given, (off_t)(call->offset + transfer->sent_bytes));

        if (got <= 0) {
            return LAC_CURL_READ_ABORT; /* the file became shorter */
        }
        given = (size_t)got;
    }
    transfer->sent_bytes += given;
    return given;
}

static int seek_body(void *context, int64_t offset, int origin)
{
    struct transfer *const transfer = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->call->size_bytes) {
        return 1;
    }
    transfer->sent_bytes = (uint64_t)offset;
    return 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *const transfer = context;
    struct lac_s3_call *const call = transfer->call;
    long status = 0;

    (void)transfer->s3->curl->easy_getinfo(transfer->easy, LAC_CURL_RESPONSE_CODE, &status);
    if (call->sink != NULL && (status == 200 || status == 206)) {
        if (status == 200 && call->range_offset > 0) {
            transfer->is_refused = true; /* it sends the beginning */
            return 0;
        }
        transfer->has_begun = true;
        if (!call->sink->take(call->sink->context, bytes, size * count)) {
            transfer->is_refused = true;
            return 0;
        }
    } else if (call->reply.size_bytes + size * count <= REPLY_BYTES_MAX) {
        lac_buffer_add(&call->reply, bytes, size * count);
    }
    return size * count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *const transfer = context;
    const size_t length = size * count;
    char line[LAC_S3_ETAG_SIZE + 32];

    if (length >= sizeof(line)) {
        return length;
    }
    memcpy(line, bytes, length);
    line[length] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (strncasecmp(line, "content-length:", 15) == 0) {
        transfer->call->content_bytes = strtoull(line + 15, NULL, 10);
    } else if (strncasecmp(line, "etag:", 5) == 0) {
        const char *value = line + 5 + strspn(line + 5, " ");

        if (strspn(value, "\"0123456789abcdefABCDEF-") == strlen(value)) {
            (void)snprintf(transfer->call->etag, sizeof(transfer->call->etag), "%.90s", value);
        }
    }
    return length;
}

bool lac_s3_element(const char **at, const char *name, char *out, size_t capacity)
{
    static const struct {
        const char *entity;
        char is;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char tag[48];
    const char *from;
    const char *end;
    size_t used = 0;

    (void)snprintf(tag, sizeof(tag), "<%.40s>", name);
    from = strstr(*at, tag);
    if (from == NULL) {
        return false;
    }
    from += strlen(tag);
    (void)snprintf(tag, sizeof(tag), "</%.40s>", name);
    end = strstr(from, tag);
    if (end == NULL) {
        return false;
    }
    *at = end + strlen(tag);
    while (from < end) {
        size_t length = 1;
        char c = *from;

        for (size_t i = 0; *from == '&' && i < LAC_COUNT_OF(entities); i++) {
            if (strncmp(from, entities[i].entity, strlen(entities[i].entity)) == 0) {
                length = strlen(entities[i].entity);
                c = entities[i].is;
                break;
            }
        }
        if (used + 1 >= capacity) {
            return false;
        }
        out[used++] = c;
        from += length;
    }
    out[used] = '\0';
    return true;
}

/* -- one try ------------------------------------------------------------------------------------*/

struct texts {
    char path[LAC_S3_TEXT_SIZE * 4];
    char url[LAC_S3_TEXT_SIZE * 12];
    char time[24];
    char authorization[LAC_SIGV4_AUTHORIZATION_SIZE];
};

static bool sign(const struct lac_s3 *s3, const struct lac_s3_call *call, struct texts *texts)
{
    const struct lac_sigv4_key key = {.access_key = s3->access_key,
                                      .secret_key = s3->secret_key,
                                      .region = s3->region,
                                      .service = "s3"};
    const char *const payload =
        call->payload_sha256 != NULL ? call->payload_sha256 : NOTHING_SHA256;
    const struct lac_sigv4_header headers[] = {{"host", strstr(s3->endpoint, "://") + 3},
                                               {"x-amz-content-sha256", payload},
                                               {"x-amz-date", texts->time},
                                               {"x-amz-security-token", s3->session_token}};
    const char *const query = call->query != NULL ? call->query : "";
    char plain[LAC_S3_TEXT_SIZE + LAC_OBJECT_NAME_SIZE + 80];
    const time_t now = time(NULL);
    struct tm utc;
    int length;

    (void)gmtime_r(&now, &utc);
    (void)strftime(texts->time, sizeof(texts->time), "%Y%m%dT%H%M%SZ", &utc);
    (void)snprintf(plain, sizeof(plain), "/%s%s%s%s", s3->bucket, call->name != NULL ? "/" : "",
                   call->name != NULL ? s3->prefix : "", call->name != NULL ? call->name : "");
    if (!lac_uri_encode(plain, true, texts->path, sizeof(texts->path))) {
        return false;
    }
    length = snprintf(texts->url, sizeof(texts->url), "%s%s%s%s", s3->endpoint, texts->path,
                      query[0] != '\0' ? "?" : "", query);
    const struct lac_sigv4_request request = {.method = call->method,
                                              .path = texts->path,
                                              .query = query,
                                              .time = texts->time,
                                              .payload_sha256 = payload,
                                              .headers = headers,
                                              .header_count = s3->session_token[0] != '\0' ? 4 : 3};
    return length > 0 && (size_t)length < sizeof(texts->url) &&
           lac_sigv4_sign(&key, &request, texts->authorization);
}

__attribute__((format(printf, 3, 4))) static void add_header(const struct lac_s3 *s3, void **list,
                                                             const char *fmt, ...)
{
    char line[8192];
    va_list args;
    void *longer;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    longer = s3->curl->list_append(*list, line);
    *list = longer != NULL ? longer : *list; /* without it the storage refuses the request */
}

static void *make_headers(const struct lac_s3 *s3, const struct lac_s3_call *call,
                          const struct texts *texts)
{
    void *list = NULL;

    add_header(s3, &list, "Host: %s", strstr(s3->endpoint, "://") + 3);
    add_header(s3, &list, "x-amz-content-sha256: %s",
               call->payload_sha256 != NULL ? call->payload_sha256 : NOTHING_SHA256);
    add_header(s3, &list, "x-amz-date: %s", texts->time);
    if (s3->session_token[0] != '\0') {
        add_header(s3, &list, "x-amz-security-token: %s", s3->session_token);
    }
    add_header(s3, &list, "Authorization: %s", texts->authorization);
    add_header(s3, &list, "Expect:");
    add_header(s3, &list, "Content-Type: application/octet-stream");
    if (call->range_bytes == UINT64_MAX) {
        add_header(s3, &list, "Range: bytes=%llu-", (unsigned long long)call->range_offset);
    } else if (call->range_bytes > 0) {
        add_header(s3, &list, "Range: bytes=%llu-%llu", (unsigned long long)call->range_offset,
                   (unsigned long long)(call->range_offset + call->range_bytes - 1));
    }
    return list;
}

/** @return libcurl's code; the status is in the call */
static int try_once(struct transfer *transfer, const struct texts *texts, char *ret_why)
{
    struct lac_s3 *const s3 = transfer->s3;
    struct lac_s3_call *const call = transfer->call;
    const struct lac_curl *const curl = s3->curl;
    void *const list = make_headers(s3, call, texts);
    void *const easy = transfer->easy;
    const bool has_body = strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0;
    int code;

    (void)curl->easy_setopt(easy, LAC_CURL_URL, texts->url);
    (void)curl->easy_setopt(easy, LAC_CURL_HTTPHEADER, list);
    (void)curl->easy_setopt(easy, LAC_CURL_USERAGENT, "lacuna");
    (void)curl->easy_setopt(easy, LAC_CURL_ERRORBUFFER, ret_why);
    (void)curl->easy_setopt(easy, LAC_CURL_NOSIGNAL, 1L);
    (void)curl->easy_setopt(easy, LAC_CURL_HTTP_VERSION, (long)LAC_CURL_HTTP_1_1);
    (void)curl->easy_setopt(easy, LAC_CURL_PROTOCOLS, (long)(LAC_CURL_HTTP | LAC_CURL_HTTPS));
    (void)curl->easy_setopt(easy, LAC_CURL_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl->easy_setopt(easy, LAC_CURL_LOW_SPEED_LIMIT, 1L);
    (void)curl->easy_setopt(easy, LAC_CURL_LOW_SPEED_TIME, (long)SLOWEST_S);
    (void)curl->easy_setopt(easy, LAC_CURL_WRITEFUNCTION, take_body);
    (void)curl->easy_setopt(easy, LAC_CURL_WRITEDATA, transfer);
    (void)curl->easy_setopt(easy, LAC_CURL_HEADERFUNCTION, take_header);
    (void)curl->easy_setopt(easy, LAC_CURL_HEADERDATA, transfer);
    if (has_body) {
        (void)curl->easy_setopt(easy, LAC_CURL_UPLOAD, 1L);
        (void)curl->easy_setopt(easy, LAC_CURL_READFUNCTION, give_body);
        (void)curl->easy_setopt(easy, LAC_CURL_READDATA, transfer);
        (void)curl->easy_setopt(easy, LAC_CURL_SEEKFUNCTION, seek_body);
        (void)curl->easy_setopt(easy, LAC_CURL_SEEKDATA, transfer);
        (void)curl->easy_setopt(easy, LAC_CURL_INFILESIZE_LARGE, (int64_t)call->size_bytes);
    } else if (strcmp(call->method, "HEAD") == 0) {
        (void)curl->easy_setopt(easy, LAC_CURL_NOBODY, 1L);
    }
    (void)curl->easy_setopt(easy, LAC_CURL_CUSTOMREQUEST, call->method);
    code = curl->easy_perform(easy);
    (void)curl->easy_getinfo(easy, LAC_CURL_RESPONSE_CODE, &call->http_status);
    if (code != 0 && ret_why[0] == '\0') {
        (void)snprintf(ret_why, LAC_CURL_ERROR_BYTES, "%s", curl->easy_strerror(code));
    }
    curl->easy_reset(easy);
    curl->list_free(list);
    return code;
}

/* -- until it is done ---------------------------------------------------------------------------*/

static bool says_no_bucket(const struct lac_s3_call *call)
{
    const struct lac_buffer *const reply = &call->reply;

    return call->http_status == 404 && reply->size_bytes > 0 && reply->bytes != NULL &&
           strstr(reply->bytes, "NoSuchBucket") != NULL;
}

/* Swift says that there is no such bucket while its own servers are too slow to tell: of one that
 * has answered, that may pass. */
static bool may_help_to_wait(const struct lac_s3 *s3, const struct lac_s3_call *call, int code)
{
    const long http_status = call->http_status;

    if (code != 0) {
        return code != LAC_CURL_E_UNSUPPORTED_PROTOCOL && code != LAC_CURL_E_URL_MALFORMAT &&
               code != LAC_CURL_E_OUT_OF_MEMORY && code != LAC_CURL_E_ABORTED_BY_CALLBACK &&
               code != LAC_CURL_E_PEER_FAILED_VERIFICATION;
    }
    return http_status >= 500 || http_status == 429 || http_status == 408 ||
           (atomic_load(&s3->is_known) && says_no_bucket(call));
}

static enum lac_status fail(const struct lac_objects *objects, const struct lac_s3_call *call,
                            int code, const char *why, struct lac_error *reterr)
{
    const struct lac_s3 *const s3 = objects->own;
    const char *const name = call->name != NULL ? call->name : "the bucket";
    const char *at = call->reply.bytes != NULL ? call->reply.bytes : "";
    char said[64] = "";
    char text[160] = "";

    if (code != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot %s %s of %s at %s: %.120s", call->what, name,
                        objects->url, s3->endpoint, why);
    }
    if (call->http_status == 404) {
        const bool no_bucket = says_no_bucket(call);

        return lac_fail(reterr, no_bucket ? LAC_ERR_IO : LAC_ERR_NOT_FOUND, 0,
                        no_bucket ? "%s is not there, as its bucket is not: make it (%s)"
                                  : "%s is not in %s",
                        no_bucket ? objects->url : name, no_bucket ? s3->endpoint : objects->url);
    }
    (void)lac_s3_element(&at, "Code", said, sizeof(said));
    (void)lac_s3_element(&at, "Message", text, sizeof(text));
    for (char *c = text; *c != '\0'; c++) {
        *c = (uint8_t)*c < 0x20 || *c == 0x7F ? ' ' : *c;
    }
    return lac_fail(reterr, LAC_ERR_IO, 0,
                    "cannot %s %s of %s at %s: it answers %ld%s%.60s%s%.120s", call->what, name,
                    objects->url, s3->endpoint, call->http_status, said[0] != '\0' ? " " : "", said,
                    text[0] != '\0' ? ": " : "", text);
}

static void wait_ms(const struct lac_objects *objects, unsigned ms)
{
    const struct timespec slice = {.tv_nsec = (long)WAIT_MS_FIRST * 1000000};

    for (unsigned waited = 0; waited < ms && !objects->is_stopping; waited += WAIT_MS_FIRST) {
        (void)nanosleep(&slice, NULL);
    }
}

enum lac_status lac_s3_do(struct lac_objects *objects, struct lac_s3_call *call,
                          struct lac_error *reterr)
{
    struct lac_s3 *const s3 = objects->own;
    const uint64_t until_ns = lac_monotonic_ns() + (uint64_t)call->patience_ms * 1000000;
    struct transfer transfer = {.s3 = s3, .call = call, .easy = take_handle(s3)};
    struct texts *texts = malloc(sizeof(*texts));
    char why[LAC_CURL_ERROR_BYTES];
    unsigned wait = WAIT_MS_FIRST;
    enum lac_status status = LAC_ERR_NOMEM;
    int code;

    if (transfer.easy == NULL || texts == NULL) {
        (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    while (transfer.easy != NULL && texts != NULL) {
        transfer.sent_bytes = 0;
        call->http_status = 0;
        call->etag[0] = why[0] = '\0';
        call->reply.size_bytes = 0;
        if (!sign(s3, call, texts)) {
            status = lac_fail(reterr, LAC_ERR_MISUSE, 0, "the name of an object is too long");
            break;
        }
        code = try_once(&transfer, texts, why);
        status = call->reply.status;
        if (status == LAC_OK && (code != 0 || call->http_status / 100 != 2)) {
            status = fail(objects, call, code, why, reterr);
        }
        if (status == LAC_OK) {
            atomic_store(&s3->is_known, true);
        }
        if (status == LAC_OK || transfer.is_refused || objects->is_stopping ||
            !may_help_to_wait(s3, call, code) ||
            lac_monotonic_ns() + (uint64_t)wait * 1000000 > until_ns) {
            break;
        }
        if (transfer.has_begun && !call->sink->restart(call->sink->context)) {
            break;
        }
        transfer.has_begun = false;
        objects->retries++;
        wait_ms(objects, wait);
        wait = wait * 2 < WAIT_MS_MOST ? wait * 2 : WAIT_MS_MOST;
    }
    if (transfer.easy != NULL) {
        give_handle(s3, transfer.easy);
    }
    free(texts);
    return status;
}
