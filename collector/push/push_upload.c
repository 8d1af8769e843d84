#include "collector/push/push_upload.h"

#include "collector/base/debug.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "collector/base/terminal_text.h"
#include "collector/push/http_client.h"
#include "collector/push/push.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_MS = 250,
    PAUSE_MS_MAX = 8000,
    TRACE_WAITS_MAX = 40,
    REMOVE_TRIES_MAX = 20,
    VALUE_BYTES_MAX = 512
};

void lac_push_sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

long lac_push_pause_ms(unsigned tries)
{
    long ms = PAUSE_MS;

    for (unsigned i = 1; i < tries && ms < PAUSE_MS_MAX; i++) {
        ms *= 2;
    }
    return ms < PAUSE_MS_MAX ? ms : PAUSE_MS_MAX;
}

/* The server's sentence, without anything that a terminal would obey. */
static void server_message(const struct lac_http_reply *reply, char *out, size_t capacity)
{
    static const char key[] = "\"message\":\"";
    const char *at = strstr(reply->body, key);
    char text[400];
    size_t used = 0;

    at = at != NULL ? at + sizeof(key) - 1 : "";
    while (*at != '\0' && *at != '"' && used + 1 < sizeof(text)) {
        if (*at == '\\' && at[1] != '\0') {
            at++;
        }
        text[used++] = *at++;
    }
    (void)lac_terminal_text(text, used, out, capacity);
}

bool lac_push_fail(struct lac_push_upload *upload, const char *what)
{
    char message[400];

    server_message(&upload->reply, message, sizeof(message));
    if (upload->reply.status == 0) {
        (void)fprintf(stderr, "lacuna push: %s: %s %s: %s\n", upload->path, upload->target->server,
                      what, upload->reply.problem);
    } else {
        (void)fprintf(stderr, "lacuna push: %s: %s %s (%ld): %s\n", upload->path,
                      upload->target->server, what, upload->reply.status,
                      message[0] != '\0' ? message : "is there a Lacuna server at this address?");
    }
    upload->is_fatal = true;
    return false;
}

bool lac_push_ask(struct lac_push_upload *upload, const char *method, const char *address,
                  const char *const *fields, const void *body, size_t body_bytes)
{
    char url[1200];
    struct lac_http_request request = {
        .method = method,
        .url = url,
        .fields = {upload->target->authorization, "Tus-Resumable: 1.0.0"},
        .body = body,
        .body_bytes = body_bytes};

    for (size_t i = 0; fields != NULL && fields[i] != NULL && i + 3 < LAC_HTTP_FIELDS_MAX; i++) {
        request.fields[i + 2] = fields[i];
    }
    (void)snprintf(url, sizeof(url), "%s/api/v1/%s", upload->target->server, address);
    const bool came = lac_http_ask(upload->http, &request, &upload->reply);
    upload->was_reached = upload->was_reached || came;
    LAC_DEBUG(PUSH, 2, "%s %s, %zu bytes: %ld %s", method, url, body_bytes, upload->reply.status,
              upload->reply.problem);
    return came;
}

/* -- what is told about the trace ---------------------------------------------------------------*/

static bool is_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

void lac_push_default_name(const char *path, char *out, size_t capacity)
{
    size_t end = strlen(path);
    size_t begin;

    out[0] = '\0';
    if (!is_folder(path)) {
        return;
    }
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    if (end - begin > 7 && strncmp(path + end - 7, ".lacuna", 7) == 0) {
        end -= 7;
    }
    (void)snprintf(out, capacity, "%.*s", (int)(end - begin < 400 ? end - begin : 400),
                   path + begin);
}

static void add_pair(char *out, const char *key, const char *value)
{
    const size_t used = strlen(out);
    char encoded[LAC_BASE64_TEXT_BYTES(VALUE_BYTES_MAX)];

    if (value != NULL && value[0] != '\0' && strlen(value) <= VALUE_BYTES_MAX) {
        lac_base64_encode(value, strlen(value), encoded);
        (void)snprintf(out + used, LAC_PUSH_METADATA_BYTES - used, "%s%s %s", used > 17 ? "," : "",
                       key, encoded);
    }
}

void lac_push_metadata(const struct lac_push_target *target, const char *file_name,
                       const char *name, const struct lac_push_clock *clock,
                       char out[LAC_PUSH_METADATA_BYTES])
{
    char number[32];

    (void)snprintf(out, LAC_PUSH_METADATA_BYTES, "Upload-Metadata: ");
    add_pair(out, "filename", file_name);
    add_pair(out, "name", name);
    add_pair(out, "project", target->project);
    add_pair(out, "run", target->run);
    add_pair(out, "reuse", "1");
    if (clock->is_known) {
        (void)snprintf(number, sizeof(number), "%" PRId64, clock->offset_ns);
        add_pair(out, "clock_offset_ns", number);
        (void)snprintf(number, sizeof(number), "%" PRId64, clock->error_ns);
        add_pair(out, "clock_error_ns", number);
    }
}

/* -- requests -----------------------------------------------------------------------------------*/

bool lac_push_create(struct lac_push_upload *upload, const char *metadata)
{
    char length[64] = "Upload-Defer-Length: 1";
    const char *const fields[] = {length, metadata, NULL};
    const char *slash;

    if (upload->length_bytes > 0) {
        (void)snprintf(length, sizeof(length), "Upload-Length: %" PRIu64, upload->length_bytes);
    }
    if (!lac_push_ask(upload, "POST", "uploads", fields, NULL, 0) || upload->reply.status == 429 ||
        (upload->reply.status >= 500 && upload->reply.status != 507)) {
        return false; /* a full disk (507) is not over in a minute */
    }
    slash = strrchr(upload->reply.location, '/');
    if (upload->reply.status == 400 && upload->length_bytes == 0) {
        upload->is_fatal = true; /* it knows no uploads that grow: for the caller to tell */
        return false;
    }
    if (upload->reply.status != 201 || slash == NULL || slash[1] == '\0' || strlen(slash) > 60 ||
        strpbrk(slash, "?# ") != NULL) {
        return lac_push_fail(upload, "refuses the upload");
    }
    (void)snprintf(upload->id, sizeof(upload->id), "%s", slash + 1);
    upload->trace[0] = '\0';
    upload->offset_bytes = 0;
    return true;
}

static void address_of(const struct lac_push_upload *upload, char *out, size_t capacity)
{
    (void)snprintf(out, capacity, "uploads/%s", upload->id);
}

bool lac_push_look(struct lac_push_upload *upload)
{
    char address[80];

    address_of(upload, address, sizeof(address));
    if (!lac_push_ask(upload, "HEAD", address, NULL, NULL, 0) || upload->reply.status >= 500) {
        return false;
    }
    if (upload->reply.status == 404 || upload->reply.status == 410) {
        upload->id[0] = '\0';
        return false;
    }
    if (upload->reply.status != 200 || !upload->reply.has_offset ||
        (upload->length_bytes > 0 && upload->reply.offset_bytes > upload->length_bytes)) {
        return lac_push_fail(upload, "does not say how far the upload is");
    }
    upload->offset_bytes = upload->reply.offset_bytes;
    (void)snprintf(upload->trace, sizeof(upload->trace), "%s", upload->reply.trace);
    return true;
}

/* The answer to a piece. */
static bool take_answer(struct lac_push_upload *upload, uint64_t end)
{
    switch (upload->reply.status) {
    case 204:
        if (!upload->reply.has_offset || upload->reply.offset_bytes > end ||
            (upload->reply.offset_bytes <= upload->offset_bytes && end > upload->offset_bytes)) {
            return lac_push_fail(upload, "does not say how far the upload is");
        }
        upload->offset_bytes = upload->reply.offset_bytes;
        (void)snprintf(upload->trace, sizeof(upload->trace), "%s", upload->reply.trace);
        return true;
    case 404:
    case 408:
    case 409:
    case 410:
    case 423:
    case 429:
    case 460:
        return false;
    default:
        return upload->reply.status >= 500 && upload->reply.status != 507
                   ? false
                   : lac_push_fail(upload, "refuses it");
    }
}

bool lac_push_send(struct lac_push_upload *upload, const void *bytes, size_t size_bytes,
                   uint64_t length_bytes)
{
    char address[80];
    char at[64];
    char length[64];
    char checksum[96] = "Upload-Checksum: sha256 ";
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha sum;
    const char *const fields[] = {at, checksum, "Content-Type: application/offset+octet-stream",
                                  length_bytes > 0 ? length : NULL, NULL};

    lac_sha256_init(&sum);
    lac_sha_add(&sum, bytes, size_bytes);
    lac_sha_end(&sum, digest);
    lac_base64_encode(digest, sizeof(digest), checksum + strlen(checksum));
    (void)snprintf(at, sizeof(at), "Upload-Offset: %" PRIu64, upload->offset_bytes);
    (void)snprintf(length, sizeof(length), "Upload-Length: %" PRIu64, length_bytes);
    address_of(upload, address, sizeof(address));
    return lac_push_ask(upload, "PATCH", address, fields, bytes, size_bytes) &&
           take_answer(upload, upload->offset_bytes + size_bytes);
}

void lac_push_remove(struct lac_push_upload *upload)
{
    char address[80];

    if (upload->id[0] != '\0') {
        address_of(upload, address, sizeof(address));
        /* for a while the server may still listen to a connection whose other end was killed */
        for (unsigned i = 0;
             i < REMOVE_TRIES_MAX && lac_push_ask(upload, "DELETE", address, NULL, NULL, 0) &&
             upload->reply.status == 423;
             i++) {
            lac_push_sleep_ms(PAUSE_MS);
        }
        upload->id[0] = '\0';
    }
}

bool lac_push_await_trace(struct lac_push_upload *upload)
{
    for (unsigned i = 0; i < TRACE_WAITS_MAX && upload->trace[0] == '\0'; i++) {
        if (i > 0) {
            lac_push_sleep_ms(PAUSE_MS);
        }
        if (!lac_push_look(upload) && (upload->is_fatal || upload->id[0] == '\0')) {
            return lac_push_fail(upload, "lost the upload");
        }
    }
    return upload->trace[0] != '\0' ||
           lac_push_fail(upload, "has all of it, but makes no trace of it");
}
