/* Objects in a bucket. What the requests look like is learnt from OpenStack Swift too, which is
 * stricter than others: queries are sorted and have no name without '='. */

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/libcurl.h"
#include "collector/base/sha.h"
#include "server/base/buffer.h"
#include "server/objects/objects.h"
#include "server/objects/objects_private.h"
#include "server/objects/s3_request.h"
#include "server/objects/sigv4.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 18, UPLOAD_ID_SIZE = 512, PARTS_MAX = 10000, LIST_TIMES_MAX = 100000 };

/* -- put ----------------------------------------------------------------------------------------*/

static enum lac_status put_whole(struct lac_objects *objects, const char *name, int fd,
                                 uint64_t bytes, const uint8_t *sha256, struct lac_error *reterr)
{
    char hex[LAC_SHA256_HEX_SIZE];
    struct lac_s3_call call = {.method = "PUT",
                               .name = name,
                               .what = "write",
                               .patience_ms = objects->write_patience_ms,
                               .fd = fd,
                               .size_bytes = bytes,
                               .payload_sha256 = hex};

    lac_hex_encode(sha256, LAC_SHA256_SIZE, hex);
    enum lac_status status = lac_s3_do(objects, &call, reterr);
    lac_buffer_done(&call.reply);
    return status;
}

/** Something in several parts that is under way. */
struct multipart {
    struct lac_objects *objects;
    const char *name;
    int fd;
    char id[UPLOAD_ID_SIZE * 3]; /**< encoded */
    struct lac_sha whole;
    struct lac_buffer list; /**< XML for the end */
};

static enum lac_status begin_parts(struct multipart *parts, struct lac_error *reterr)
{
    struct lac_s3_call call = {.method = "POST",
                               .name = parts->name,
                               .query = "uploads=",
                               .what = "write",
                               .patience_ms = parts->objects->write_patience_ms,
                               .fd = -1};
    char id[UPLOAD_ID_SIZE];
    enum lac_status status = lac_s3_do(parts->objects, &call, reterr);
    const char *at = call.reply.bytes != NULL ? call.reply.bytes : "";

    if (status == LAC_OK && (!lac_s3_element(&at, "UploadId", id, sizeof(id)) ||
                             !lac_uri_encode(id, false, parts->id, sizeof(parts->id)))) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s does not say how to write in parts",
                          parts->objects->url);
    }
    lac_buffer_done(&call.reply);
    return status;
}

/** The hash of a part, which is added to that of the whole. */
static bool hash_part(struct multipart *parts, uint64_t offset, uint64_t bytes, char *ret_hex)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;

    lac_sha256_init(&hash);
    while (block != NULL && bytes > 0) {
        const ssize_t got =
            pread(parts->fd, block, bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES, (off_t)offset);

        if (got <= 0) {
            break;
        }
        lac_sha_add(&hash, block, (size_t)got);
        lac_sha_add(&parts->whole, block, (size_t)got);
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    lac_sha_end(&hash, digest);
    lac_hex_encode(digest, sizeof(digest), ret_hex);
    free(block);
    return bytes == 0;
}

static enum lac_status put_part(struct multipart *parts, unsigned number, uint64_t offset,
                                uint64_t bytes, struct lac_error *reterr)
{
    char hex[LAC_SHA256_HEX_SIZE];
    char query[sizeof(parts->id) + 64];
    struct lac_s3_call call = {.method = "PUT",
                               .name = parts->name,
                               .query = query,
                               .what = "write",
                               .patience_ms = parts->objects->write_patience_ms,
                               .fd = parts->fd,
                               .offset = offset,
                               .size_bytes = bytes,
                               .payload_sha256 = hex};
    enum lac_status status;

    (void)snprintf(query, sizeof(query), "partNumber=%u&uploadId=%s", number, parts->id);
    if (!hash_part(parts, offset, bytes, hex)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot read what goes to %s: %s",
                        parts->objects->url, strerror(errno));
    }
    status = lac_s3_do(parts->objects, &call, reterr);
    lac_buffer_done(&call.reply);
    if (status == LAC_OK) {
        lac_buffer_printf(&parts->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                          number, call.etag);
    }
    return status;
}

static enum lac_status stat_object(struct lac_objects *objects, const char *name,
                                   uint64_t *ret_bytes, struct lac_error *reterr)
{
    struct lac_s3_call call = {.method = "HEAD",
                               .name = name,
                               .what = "look at",
                               .patience_ms = objects->read_patience_ms,
                               .fd = -1};
    enum lac_status status = lac_s3_do(objects, &call, reterr);

    *ret_bytes = call.content_bytes;
    lac_buffer_done(&call.reply);
    return status;
}

static enum lac_status end_parts(struct multipart *parts, uint64_t bytes, struct lac_error *reterr)
{
    char query[sizeof(parts->id) + 64];
    char hex[LAC_SHA256_HEX_SIZE];
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;
    uint64_t found_bytes = 0;
    enum lac_status status;

    lac_buffer_puts(&parts->list, "</CompleteMultipartUpload>");
    if (parts->list.status != LAC_OK) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    lac_sha256_init(&hash);
    lac_sha_add(&hash, parts->list.bytes, parts->list.size_bytes);
    lac_sha_end(&hash, digest);
    lac_hex_encode(digest, sizeof(digest), hex);
    (void)snprintf(query, sizeof(query), "uploadId=%s", parts->id);
    struct lac_s3_call call = {.method = "POST",
                               .name = parts->name,
                               .query = query,
                               .what = "write",
                               .patience_ms = parts->objects->write_patience_ms,
                               .fd = -1,
                               .body = parts->list.bytes,
                               .size_bytes = parts->list.size_bytes,
                               .payload_sha256 = hex};
    status = lac_s3_do(parts->objects, &call, reterr);
    if (status == LAC_OK && call.reply.bytes != NULL &&
        strstr(call.reply.bytes, "<Error>") != NULL) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s could not put the parts of %s together",
                          parts->objects->url, parts->name);
    }
    lac_buffer_done(&call.reply);
    /* an end whose answer was lost: the upload is gone and the object is there */
    if (status == LAC_ERR_NOT_FOUND) {
        status = stat_object(parts->objects, parts->name, &found_bytes, reterr);
        if (status == LAC_OK && found_bytes == bytes) {
            return LAC_OK;
        }
        status = LAC_ERR_IO;
    }
    return status;
}

static void give_up_parts(struct multipart *parts)
{
    char query[sizeof(parts->id) + 64];
    struct lac_error ignored = {0};
    struct lac_s3_call call = {.method = "DELETE",
                               .name = parts->name,
                               .query = query,
                               .what = "give up",
                               .patience_ms = parts->objects->read_patience_ms,
                               .fd = -1};

    (void)snprintf(query, sizeof(query), "uploadId=%s", parts->id);
    if (lac_s3_do(parts->objects, &call, &ignored) != LAC_OK) {
        /* the bucket's own rule for unfinished uploads removes it */
    }
    lac_buffer_done(&call.reply);
}

static enum lac_status put(struct lac_objects *objects, const char *name, int fd, uint64_t bytes,
                           const uint8_t *sha256, struct lac_error *reterr)
{
    struct multipart *parts;
    uint8_t digest[LAC_SHA256_SIZE];
    uint64_t part_bytes = objects->part_bytes;
    enum lac_status status;

    if (bytes <= part_bytes) {
        return put_whole(objects, name, fd, bytes, sha256, reterr);
    }
    while (bytes / part_bytes >= PARTS_MAX) {
        part_bytes *= 2;
    }
    parts = calloc(1, sizeof(*parts));
    if (parts == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    parts->objects = objects;
    parts->name = name;
    parts->fd = fd;
    lac_sha256_init(&parts->whole);
    lac_buffer_puts(&parts->list, "<CompleteMultipartUpload>");
    status = begin_parts(parts, reterr);
    for (uint64_t offset = 0; offset < bytes && status == LAC_OK; offset += part_bytes) {
        status = put_part(parts, (unsigned)(offset / part_bytes) + 1, offset,
                          bytes - offset < part_bytes ? bytes - offset : part_bytes, reterr);
    }
    lac_sha_end(&parts->whole, digest);
    if (status == LAC_OK && memcmp(digest, sha256, sizeof(digest)) != 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s changed while it was written to %s", name,
                          objects->url);
    }
    if (status == LAC_OK) {
        status = end_parts(parts, bytes, reterr);
    }
    if (status != LAC_OK && parts->id[0] != '\0') {
        give_up_parts(parts);
    }
    lac_buffer_done(&parts->list);
    free(parts);
    return status;
}

/* -- read, stat, remove -------------------------------------------------------------------------*/

static enum lac_status read_object(struct lac_objects *objects, const char *name, uint64_t offset,
                                   uint64_t size_bytes, const struct lac_object_sink *sink,
                                   struct lac_error *reterr)
{
    const bool is_whole = offset == 0 && size_bytes == UINT64_MAX;
    struct lac_s3_call call = {.method = "GET",
                               .name = name,
                               .what = "read",
                               .patience_ms = objects->read_patience_ms,
                               .fd = -1,
                               .range_offset = offset,
                               .range_bytes = is_whole ? 0 : size_bytes,
                               .sink = sink};
    enum lac_status status = lac_s3_do(objects, &call, reterr);

    if (call.http_status == 416) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, offset, "%s of %s is shorter than it was", name,
                          objects->url);
    }
    lac_buffer_done(&call.reply);
    return status;
}

static enum lac_status remove_object(struct lac_objects *objects, const char *name,
                                     struct lac_error *reterr)
{
    struct lac_s3_call call = {.method = "DELETE",
                               .name = name,
                               .what = "remove",
                               .patience_ms = objects->read_patience_ms,
                               .fd = -1};
    enum lac_status status = lac_s3_do(objects, &call, reterr);

    lac_buffer_done(&call.reply);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/* -- list ---------------------------------------------------------------------------------------*/

static int64_t time_of(const char *text)
{
    struct tm utc = {0};
    const char *const rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);

    return rest != NULL ? (int64_t)timegm(&utc) * 1000 : INT64_MAX; /* not known: not old */
}

/** Visit what a reply lists. */
static enum lac_status visit_reply(const struct lac_s3 *s3, const char *reply,
                                   enum lac_status (*visit)(void *, const struct lac_object *),
                                   void *context)
{
    const size_t prefix_length = strlen(s3->prefix);
    enum lac_status status = LAC_OK;
    const char *at = reply;

    while (status == LAC_OK && (at = strstr(at, "<Contents>")) != NULL) {
        char name[LAC_S3_TEXT_SIZE + LAC_OBJECT_NAME_SIZE];
        char number[24] = "0";
        char changed[40] = "";
        const char *in[3] = {at, at, at};

        at += strlen("<Contents>");
        if (lac_s3_element(&in[0], "Key", name, sizeof(name)) &&
            lac_s3_element(&in[1], "Size", number, sizeof(number)) &&
            strncmp(name, s3->prefix, prefix_length) == 0) {
            (void)lac_s3_element(&in[2], "LastModified", changed, sizeof(changed));
            const struct lac_object object = {.name = name + prefix_length,
                                              .bytes = strtoull(number, NULL, 10),
                                              .changed_unix_ms = time_of(changed)};
            status = visit(context, &object);
        }
    }
    return status;
}

static enum lac_status list(struct lac_objects *objects, const char *prefix,
                            enum lac_status (*visit)(void *, const struct lac_object *),
                            void *context, struct lac_error *reterr)
{
    const struct lac_s3 *const s3 = objects->own;
    char whole[LAC_S3_TEXT_SIZE + LAC_OBJECT_NAME_SIZE];
    char encoded[sizeof(whole) * 3];
    char token[1024] = "";
    char query[sizeof(encoded) + sizeof(token) * 3 + 128];
    enum lac_status status = LAC_OK;
    bool has_more = true;

    (void)snprintf(whole, sizeof(whole), "%s%.200s", s3->prefix, prefix);
    if (!lac_uri_encode(whole, false, encoded, sizeof(encoded))) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the name of an object is too long");
    }
    for (int i = 0; has_more && status == LAC_OK && i < LIST_TIMES_MAX; i++) {
        char encoded_token[sizeof(token) * 3] = "";
        char is_cut[8] = "";
        struct lac_s3_call call = {.method = "GET",
                                   .query = query,
                                   .what = "list",
                                   .patience_ms = objects->read_patience_ms,
                                   .fd = -1};

        (void)lac_uri_encode(token, false, encoded_token, sizeof(encoded_token));
        (void)snprintf(query, sizeof(query), "%s%s%slist-type=2&max-keys=1000&prefix=%s",
                       token[0] != '\0' ? "continuation-token=" : "", encoded_token,
                       token[0] != '\0' ? "&" : "", encoded);
        status = lac_s3_do(objects, &call, reterr);
        const char *const reply = call.reply.bytes != NULL ? call.reply.bytes : "";
        const char *at[2] = {reply, reply};
        if (status == LAC_ERR_NOT_FOUND) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "%s is not there", objects->url);
        }
        if (status == LAC_OK) {
            status = visit_reply(s3, reply, visit, context);
        }
        has_more = lac_s3_element(&at[0], "IsTruncated", is_cut, sizeof(is_cut)) &&
                   strcmp(is_cut, "true") == 0 &&
                   lac_s3_element(&at[1], "NextContinuationToken", token, sizeof(token));
        lac_buffer_done(&call.reply);
    }
    return status;
}

/* -- open ---------------------------------------------------------------------------------------*/

static void close_s3(struct lac_objects *objects)
{
    struct lac_s3 *const s3 = objects->own;

    for (unsigned i = 0; i < s3->handle_count; i++) {
        s3->curl->easy_cleanup(s3->handles[i]);
    }
    (void)pthread_mutex_destroy(&s3->lock);
    free(s3);
}

const struct lac_objects_kind lac_objects_s3 = {
    .put = put, .read = read_object, .list = list, .remove = remove_object, .close = close_s3};

/** s3://BUCKET/PREFIX */
static enum lac_status split_url(struct lac_s3 *s3, const char *url, struct lac_error *reterr)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
    const char *const bucket = url + strlen("s3://");
    const size_t length = strcspn(bucket, "/");
    const char *prefix = bucket + length;

    prefix += strspn(prefix, "/");
    size_t prefix_length = strlen(prefix);
    while (prefix_length > 0 && prefix[prefix_length - 1] == '/') {
        prefix_length--;
    }
    if (length < 3 || length >= sizeof(s3->bucket) || strspn(bucket, letters) != length) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%s: give s3://BUCKET/PREFIX (a bucket has 3 to 63 of a-z 0-9 . -)", url);
    }
    if (prefix_length >= 256 ||
        strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-") <
            prefix_length) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%s: the prefix may have 255 of A-Z a-z 0-9 / _ . -", url);
    }
    (void)snprintf(s3->bucket, sizeof(s3->bucket), "%.*s", (int)length, bucket);
    (void)snprintf(s3->prefix, sizeof(s3->prefix), "%.*s%s", (int)prefix_length, prefix,
                   prefix_length > 0 ? "/" : "");
    return LAC_OK;
}

static enum lac_status set_endpoint(struct lac_s3 *s3, const char *endpoint,
                                    struct lac_error *reterr)
{
    const char *authority = strstr(endpoint, "://");
    size_t length = strlen(endpoint);

    if (endpoint[0] == '\0') {
        (void)snprintf(s3->endpoint, sizeof(s3->endpoint), "https://s3.%s.amazonaws.com",
                       s3->region);
        return LAC_OK;
    }
    while (length > 0 && endpoint[length - 1] == '/') {
        length--;
    }
    if ((strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0) ||
        length >= 256 ||
        strcspn(authority + 3, "/?#@ \r\n") != length - (size_t)(authority + 3 - endpoint)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "AWS_ENDPOINT_URL must be http://HOST:PORT or https://HOST:PORT");
    }
    (void)snprintf(s3->endpoint, sizeof(s3->endpoint), "%.*s", (int)length, endpoint);
    return LAC_OK;
}

/** An option or its variable. @return "" when neither is there */
static const char *setting(const char *given, const char *variable)
{
    const char *const text = given != NULL ? given : getenv(variable);

    return text != NULL ? text : "";
}

static bool fits(char *out, size_t capacity, const char *text)
{
    if (strlen(text) >= capacity || strpbrk(text, "\r\n") != NULL) {
        return false;
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

enum lac_status lac_objects_s3_open(struct lac_objects *objects,
                                    const struct lac_objects_options *options,
                                    struct lac_error *reterr)
{
    const char *region = setting(options->region, "AWS_REGION");
    struct lac_s3 *s3 = calloc(1, sizeof(*s3));
    enum lac_status status;

    if (s3 == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    region = region[0] != '\0' ? region : setting(NULL, "AWS_DEFAULT_REGION");
    status = split_url(s3, options->url, reterr);
    if (status == LAC_OK &&
        (!fits(s3->region, sizeof(s3->region), region[0] != '\0' ? region : "us-east-1") ||
         !fits(s3->access_key, sizeof(s3->access_key),
               setting(options->access_key, "AWS_ACCESS_KEY_ID")) ||
         !fits(s3->secret_key, sizeof(s3->secret_key),
               setting(options->secret_key, "AWS_SECRET_ACCESS_KEY")) ||
         !fits(s3->session_token, sizeof(s3->session_token),
               setting(options->session_token, "AWS_SESSION_TOKEN")))) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0, "an AWS_... variable is too long");
    }
    if (status == LAC_OK && (s3->access_key[0] == '\0' || s3->secret_key[0] == '\0')) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "%s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", options->url);
    }
    if (status == LAC_OK) {
        status = set_endpoint(s3, setting(options->endpoint, "AWS_ENDPOINT_URL"), reterr);
    }
    if (status == LAC_OK) {
        s3->curl = lac_curl();
    }
    if (status == LAC_OK && s3->curl == NULL) {
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "object storage needs libcurl, which cannot be loaded: install it "
                          "(libcurl4 on Debian and Ubuntu, libcurl on Fedora)");
    }
    if (status == LAC_OK && pthread_mutex_init(&s3->lock, NULL) != 0) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (status != LAC_OK) {
        free(s3);
        return status;
    }
    objects->own = s3;
    return LAC_OK;
}
