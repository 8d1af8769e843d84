#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void lac_response_init(struct lac_response *response)
{
    *response = (struct lac_response){
        .http_status = 200,
        .mime = "application/json",
        .cache = "no-store",
        .may_gzip = true,
    };
}

static void drop_file(struct lac_response *response)
{
    if (response->has_file) {
        (void)close(response->file);
        response->has_file = false;
    }
}

void lac_response_file(struct lac_response *response, int file, uint64_t size_bytes)
{
    assert(response != NULL && file >= 0 && !response->has_file);
    response->has_file = true;
    response->file = file;
    response->file_size_bytes = size_bytes;
    response->may_gzip = false;
}

void lac_response_done(struct lac_response *response)
{
    drop_file(response);
    lac_buffer_done(&response->body);
    free(response->long_value);
    response->long_value = NULL;
    free(response->relayed);
    response->relayed = NULL;
}

void lac_response_header(struct lac_response *response, const char *name, const char *fmt, ...)
{
    va_list args;

    assert(response->header_count < LAC_RESPONSE_HEADERS_MAX);
    char *const value = response->header[response->header_count].value;
    va_start(args, fmt);
    (void)vsnprintf(value, sizeof(response->header[0].value), fmt, args);
    va_end(args);
    assert(strpbrk(value, "\r\n") == NULL);
    response->header[response->header_count].name = name;
    response->header_count++;
}

bool lac_response_long_header(struct lac_response *response, const char *name, const char *value)
{
    assert(response != NULL);
    char *const copy = strdup(value);

    assert(strpbrk(value, "\r\n") == NULL);
    if (copy == NULL) {
        return false;
    }
    free(response->long_value);
    response->long_name = name;
    response->long_value = copy;
    return true;
}

void lac_http_write_error(struct lac_buffer *out, const char *code, const char *message)
{
    struct lac_json json;

    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "error", '{');
    lac_json_text(&json, "code", code);
    lac_json_text(&json, "message", message);
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
    lac_buffer_puts(out, "\n");
}

static void set_error(struct lac_response *response, unsigned http_status, const char *code,
                      const char *message)
{
    drop_file(response);
    lac_buffer_done(&response->body);
    response->body.size_bytes_max = 0;
    response->borrowed = NULL;
    response->etag[0] = '\0';
    response->encoding = NULL;
    response->http_status = http_status;
    response->mime = "application/json";
    response->policy = NULL;
    response->cache = "no-store";
    lac_http_write_error(&response->body, code, message);
}

void lac_response_error(struct lac_response *response, unsigned http_status, const char *code,
                        const char *fmt, ...)
{
    char message[400];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    set_error(response, http_status, code, message);
}

unsigned lac_http_status_of(enum lac_status status, int sys_errno)
{
    static const unsigned table[] = {
        [LAC_OK] = 200,          [LAC_ERR_NOMEM] = 503,    [LAC_ERR_IO] = 500,
        [LAC_ERR_CORRUPT] = 422, [LAC_ERR_LIMIT] = 413,    [LAC_ERR_NOT_FOUND] = 404,
        [LAC_ERR_MISUSE] = 400,  [LAC_ERR_NO_SPACE] = 507, [LAC_ERR_BUSY] = 503,
    };
    _Static_assert(LAC_COUNT_OF(table) == LAC_STATUS_COUNT_, "map every status");

    assert(status < LAC_STATUS_COUNT_);
    if (status == LAC_ERR_IO && (sys_errno == ENOSPC || sys_errno == EDQUOT)) {
        return 507;
    }
    if (status == LAC_ERR_IO && sys_errno == ECONNRESET) {
        return 503; /* PostgreSQL is away: it comes back */
    }
    return table[status];
}

const char *lac_http_code_of(enum lac_status status, int sys_errno)
{
    if (lac_http_status_of(status, sys_errno) == 507) {
        return "insufficient_storage";
    }
    if (status == LAC_ERR_IO && sys_errno == ECONNRESET) {
        return "unavailable";
    }
    return status == LAC_ERR_MISUSE ? "bad_request" : lac_status_name(status);
}

void lac_response_fail(struct lac_response *response, const struct lac_error *err)
{
    set_error(response, lac_http_status_of(err->status, err->sys_errno),
              lac_http_code_of(err->status, err->sys_errno), err->message);
    if (response->http_status == 503) {
        lac_response_header(response, "Retry-After", "5");
    }
}

/* 64-bit FNV-1a over the text, twice with different starts. */
static uint64_t hash_text(const char *text, uint64_t hash)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void lac_response_etag(struct lac_response *response, const char *fmt, ...)
{
    assert(response != NULL);
    char text[LAC_TARGET_BYTES_MAX + 256];
    va_list args;
    int length;

    va_start(args, fmt);
    length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof(text)) {
        return; /* too long: no ETag rather than a wrong one */
    }
    (void)snprintf(response->etag, sizeof(response->etag), "\"%016llx%016llx\"",
                   (unsigned long long)hash_text(text, UINT64_C(0xcbf29ce484222325)),
                   (unsigned long long)hash_text(text, UINT64_C(0x9ae16a3b2f90404f)));
}

bool lac_etag_matches(const char *if_none_match, const char *etag)
{
    const size_t length = strlen(etag);
    const char *c = if_none_match;

    if (c == NULL || length == 0) {
        return false;
    }
    while (*c != '\0') {
        c += strspn(c, " \t,");
        if (*c == '*') {
            return true;
        }
        /* a cache may have made it weak (RFC 9110, 13.1.2: If-None-Match compares weakly) */
        if (strncmp(c, "W/", 2) == 0) {
            c += 2;
        }
        if (strncmp(c, etag, length) == 0) {
            return true;
        }
        c += strcspn(c, ",");
    }
    return false;
}

void lac_etag_of_gzip(const char *etag, char *out, size_t capacity_bytes)
{
    const size_t length = strlen(etag);

    out[0] = '\0';
    if (length >= 2 && length + 4 <= capacity_bytes) {
        (void)snprintf(out, capacity_bytes, "%.*s-gz\"", (int)(length - 1), etag);
    }
}

bool lac_response_is_unchanged(const struct lac_request *request, struct lac_response *response)
{
    assert(request != NULL && response != NULL);
    char compressed[sizeof(response->etag)];

    if (response->etag[0] == '\0' || request->if_none_match == NULL) {
        return false;
    }
    lac_etag_of_gzip(response->etag, compressed, sizeof(compressed));
    if (compressed[0] != '\0' && lac_etag_matches(request->if_none_match, compressed)) {
        memcpy(response->etag, compressed, sizeof(compressed));
    } else if (!lac_etag_matches(request->if_none_match, response->etag)) {
        return false;
    }
    response->http_status = 304;
    return true;
}
