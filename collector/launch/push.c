#include "collector/launch/push.h"

#include "collector/launch/http_client.h"
#include "collector/launch/push_digest.h"
#include "collector/launch/push_note.h"
#include "collector/launch/push_source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 *   pack once for length and digest -> known upload (note) or new one -> PATCH ... -> trace
 *                                            ^                            |
 *                                            +--- HEAD, after a pause <---+ whatever went wrong
 */

enum {
    PIECE_BYTES_MAX = 16 << 20,
    PIECE_BYTES_MIN = 256 << 10,
    TRIES_MAX = 12,      /* in a row without a byte more; waits 0.25 s doubled up to 8 s */
    FIRST_TRIES_MAX = 4, /* when the server was never reached */
    PAUSE_MS = 250,
    PAUSE_MS_MAX = 8000,
    TRACE_WAITS_MAX = 40,
    FIELD_BYTES = 4096,
};

struct push {
    struct lac_http *http;
    const struct lac_push_target *target;
    const char *path;
    const char *name;
    struct lac_push_clock clock;
    struct lac_push_note note;
    struct lac_push_source *source;
    uint64_t source_at;  /* bytes read from it */
    uint64_t piece_from; /* offset of the first byte of `piece` */
    size_t piece_bytes;
    size_t piece_wish;
    uint8_t *piece;
    uint64_t offset; /* the server's */
    unsigned tries;
    bool was_reached;
    bool is_fatal;
    struct lac_http_reply reply;
    char file_name[304];
};

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

/* The server's sentence, without anything that a terminal would obey. */
static void server_message(const struct lac_http_reply *reply, char *out, size_t capacity)
{
    static const char key[] = "\"message\":\"";
    const char *at = strstr(reply->body, key);
    size_t used = 0;

    at = at != NULL ? at + sizeof(key) - 1 : "";
    while (*at != '\0' && *at != '"' && used + 1 < capacity) {
        if (*at == '\\' && at[1] != '\0') {
            at++;
        }
        out[used++] = (*at < ' ' && *at >= 0) || *at == 0x7f ? '?' : *at;
        at++;
    }
    out[used] = '\0';
}

static bool fail(struct push *push, const char *what)
{
    char message[400];

    server_message(&push->reply, message, sizeof(message));
    if (push->reply.status == 0) {
        (void)fprintf(stderr, "lacuna push: %s: %s %s: %s\n", push->path, push->target->server,
                      what, push->reply.problem);
    } else {
        (void)fprintf(stderr, "lacuna push: %s: %s %s (%ld): %s\n", push->path,
                      push->target->server, what, push->reply.status,
                      message[0] != '\0' ? message : "is there a Lacuna server at this address?");
    }
    push->is_fatal = true;
    return false;
}

static void show_progress(const struct push *push, const char *what)
{
    if (!push->target->is_quiet && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\rlacuna: %s %.0f of %.0f MiB \033[K", what,
                      (double)push->offset / (1 << 20),
                      (double)push->note.length_bytes / (1 << 20));
    }
}

static void end_progress(const struct push *push)
{
    if (!push->target->is_quiet && isatty(STDERR_FILENO)) {
        (void)fputs("\r\033[K", stderr);
    }
}

/* -- the bytes ----------------------------------------------------------------------------------*/

static bool open_source(struct push *push)
{
    char problem[4400];

    lac_push_source_close(push->source);
    push->source = lac_push_source_open(push->path, problem, sizeof(problem));
    push->source_at = 0;
    if (push->source == NULL) {
        (void)fprintf(stderr, "lacuna push: %s\n", problem);
        push->is_fatal = true;
    }
    return push->source != NULL;
}

/* Read on. @return bytes, fewer than asked only at the end; -1 */
static int64_t read_source(struct push *push, size_t size_bytes)
{
    const int64_t got = lac_push_source_read(push->source, push->piece, size_bytes);

    if (got < 0) {
        (void)fprintf(stderr,
                      "lacuna push: %s: a file of it cannot be read, or changes: is the "
                      "job still running?\n",
                      push->path);
        push->is_fatal = true;
    } else {
        push->source_at += (uint64_t)got;
    }
    return got;
}

/* Once through all of it: how long it is, and what. */
static bool measure(struct push *push)
{
    uint8_t digest[LAC_DIGEST_BYTES];
    struct lac_digest sum;
    int64_t got;

    if (!open_source(push)) {
        return false;
    }
    (void)snprintf(push->file_name, sizeof(push->file_name), "%s",
                   lac_push_source_name(push->source));
    lac_digest_init(&sum);
    while ((got = read_source(push, PIECE_BYTES_MAX)) > 0) {
        lac_digest_add(&sum, push->piece, (size_t)got);
    }
    lac_digest_end(&sum, digest);
    lac_digest_hex(digest, push->note.digest);
    push->note.length_bytes = push->source_at;
    return got == 0;
}

/* Make `piece` begin at the server's offset. */
static bool load_piece(struct push *push)
{
    const uint64_t end = push->piece_from + push->piece_bytes;
    size_t wanted;
    int64_t got;

    if (push->piece_bytes > 0 && push->offset >= push->piece_from && push->offset < end) {
        const size_t gone = (size_t)(push->offset - push->piece_from);

        memmove(push->piece, push->piece + gone, push->piece_bytes - gone);
        push->piece_bytes -= gone;
        push->piece_from = push->offset;
        return true;
    }
    push->piece_bytes = 0;
    if (push->source_at > push->offset && !open_source(push)) {
        return false;
    }
    while (push->source_at < push->offset) {
        const uint64_t left = push->offset - push->source_at;

        got = read_source(push, left < PIECE_BYTES_MAX ? (size_t)left : PIECE_BYTES_MAX);
        if (got <= 0) {
            push->is_fatal = true;
            return false;
        }
    }
    wanted = PIECE_BYTES_MAX;
    got = read_source(push, wanted);
    if (got <= 0) {
        push->is_fatal = true;
        return false;
    }
    push->piece_bytes = (size_t)got;
    push->piece_from = push->offset;
    return true;
}

/* -- requests -----------------------------------------------------------------------------------*/

static bool ask(struct push *push, const char *method, const char *address,
                const char *const *fields, const void *body, size_t body_bytes)
{
    char url[1200];
    struct lac_http_request request = {
        .method = method,
        .url = url,
        .fields = {push->target->authorization, "Tus-Resumable: 1.0.0"},
        .body = body,
        .body_bytes = body_bytes};

    for (size_t i = 0; fields != NULL && fields[i] != NULL && i + 3 < LAC_HTTP_FIELDS_MAX; i++) {
        request.fields[i + 2] = fields[i];
    }
    (void)snprintf(url, sizeof(url), "%s/api/v1/%s", push->target->server, address);
    const bool came = lac_http_ask(push->http, &request, &push->reply);
    push->was_reached = push->was_reached || came;
    return came;
}

static void add_pair(char *out, const char *key, const char *value)
{
    const size_t used = strlen(out);
    char encoded[720];

    if (value != NULL && value[0] != '\0' && strlen(value) <= 512) {
        lac_base64_encode(value, strlen(value), encoded, sizeof(encoded));
        (void)snprintf(out + used, FIELD_BYTES - used, "%s%s %s", used > 17 ? "," : "", key,
                       encoded);
    }
}

/* "DIR/resnet.lacuna/" -> "resnet" */
static void default_name(const char *path, char *out, size_t capacity)
{
    size_t end = strlen(path);
    size_t begin;

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

static bool is_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/* @return whether there is an upload now; push->is_fatal: never will be */
static bool create(struct push *push)
{
    char metadata[FIELD_BYTES] = "Upload-Metadata: ";
    char length[64];
    char name[512];
    char number[32];
    const char *const fields[] = {length, metadata, NULL};
    const char *slash;

    (void)snprintf(length, sizeof(length), "Upload-Length: %" PRIu64, push->note.length_bytes);
    default_name(push->path, name, sizeof(name));
    add_pair(metadata, "filename", push->file_name);
    add_pair(metadata, "name", push->name != NULL ? push->name : is_folder(push->path) ? name : "");
    add_pair(metadata, "project", push->target->project);
    add_pair(metadata, "run", push->target->run);
    add_pair(metadata, "reuse", "1");
    if (push->clock.is_known) {
        (void)snprintf(number, sizeof(number), "%" PRId64, push->clock.offset_ns);
        add_pair(metadata, "clock_offset_ns", number);
        (void)snprintf(number, sizeof(number), "%" PRId64, push->clock.error_ns);
        add_pair(metadata, "clock_error_ns", number);
    }
    if (!ask(push, "POST", "uploads", fields, NULL, 0) || push->reply.status == 429 ||
        (push->reply.status >= 500 && push->reply.status != 507)) {
        return false; /* a full disk (507) is not over in a minute */
    }
    slash = strrchr(push->reply.location, '/');
    if (push->reply.status != 201 || slash == NULL || slash[1] == '\0' || strlen(slash) > 60 ||
        strpbrk(slash, "?# ") != NULL) {
        return fail(push, "refuses the upload");
    }
    (void)snprintf(push->note.upload, sizeof(push->note.upload), "%s", slash + 1);
    push->note.trace[0] = '\0';
    push->offset = 0;
    lac_push_note_write(push->path, &push->note);
    return true;
}

static void upload_address(const struct push *push, char *out, size_t capacity)
{
    (void)snprintf(out, capacity, "uploads/%s", push->note.upload);
}

/* Ask where it stands. An upload that is not there any more is begun anew. */
static bool look(struct push *push)
{
    char address[80];

    upload_address(push, address, sizeof(address));
    if (!ask(push, "HEAD", address, NULL, NULL, 0) || push->reply.status >= 500) {
        return false;
    }
    if (push->reply.status == 404 || push->reply.status == 410) {
        push->note.upload[0] = '\0';
        return false;
    }
    if (push->reply.status != 200 || !push->reply.has_offset ||
        push->reply.offset_bytes > push->note.length_bytes) {
        return fail(push, "does not say how far the upload is");
    }
    push->offset = push->reply.offset_bytes;
    (void)snprintf(push->note.trace, sizeof(push->note.trace), "%s", push->reply.trace);
    return true;
}

/* One piece. @return whether the server took it; else look again, unless push->is_fatal */
static bool send_piece(struct push *push)
{
    char address[80];
    char at[64];
    char checksum[96] = "Upload-Checksum: sha256 ";
    uint8_t digest[LAC_DIGEST_BYTES];
    struct lac_digest sum;
    const char *const fields[] = {at, checksum, "Content-Type: application/offset+octet-stream",
                                  NULL};
    size_t size;

    if (!load_piece(push)) {
        return false;
    }
    size = push->piece_bytes < push->piece_wish ? push->piece_bytes : push->piece_wish;
    lac_digest_init(&sum);
    lac_digest_add(&sum, push->piece, size);
    lac_digest_end(&sum, digest);
    lac_base64_encode(digest, sizeof(digest), checksum + strlen(checksum), LAC_DIGEST_BASE64);
    (void)snprintf(at, sizeof(at), "Upload-Offset: %" PRIu64, push->offset);
    upload_address(push, address, sizeof(address));
    if (!ask(push, "PATCH", address, fields, push->piece, size)) {
        return false;
    }
    switch (push->reply.status) {
    case 204:
        if (!push->reply.has_offset || push->reply.offset_bytes <= push->offset ||
            push->reply.offset_bytes > push->note.length_bytes) {
            return fail(push, "does not say how far the upload is");
        }
        push->offset = push->reply.offset_bytes;
        (void)snprintf(push->note.trace, sizeof(push->note.trace), "%s", push->reply.trace);
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
        return push->reply.status >= 500 && push->reply.status != 507 ? false
                                                                      : fail(push, "refuses it");
    }
}

/* Wait before the next try; false when that was the last. Smaller pieces get through more often. */
static bool pause_and_retry(struct push *push)
{
    const unsigned most = push->was_reached ? TRIES_MAX : FIRST_TRIES_MAX;
    long ms = PAUSE_MS;

    if (push->is_fatal) {
        return false;
    }
    push->tries++;
    if (push->tries >= most) {
        return fail(push, push->was_reached ? "does not take it" : "cannot be reached");
    }
    for (unsigned i = 1; i < push->tries && ms < PAUSE_MS_MAX; i++) {
        ms *= 2;
    }
    push->piece_wish =
        push->piece_wish / 2 > PIECE_BYTES_MIN ? push->piece_wish / 2 : PIECE_BYTES_MIN;
    show_progress(push, "waiting for the server at");
    sleep_ms(ms < PAUSE_MS_MAX ? ms : PAUSE_MS_MAX);
    return true;
}

/* An upload, known from before or new. */
static bool begin(struct push *push)
{
    for (;;) {
        if (push->note.upload[0] != '\0' && look(push)) {
            return true;
        }
        if (!push->is_fatal && push->note.upload[0] == '\0' && create(push)) {
            return true;
        }
        if (!pause_and_retry(push)) {
            return false;
        }
    }
}

static bool transfer(struct push *push)
{
    while (push->offset < push->note.length_bytes) {
        show_progress(push, "sent");
        if (send_piece(push)) {
            push->tries = 0;
            if (push->piece_wish < PIECE_BYTES_MAX) {
                push->piece_wish *= 2;
            }
            continue;
        }
        const uint64_t before = push->offset;
        if (!pause_and_retry(push) || !begin(push)) {
            return false;
        }
        push->tries = push->offset > before ? 0 : push->tries;
    }
    return true;
}

/* All is sent: a server that was restarted meanwhile makes the trace by itself. */
static bool await_trace(struct push *push)
{
    for (unsigned i = 0; i < TRACE_WAITS_MAX && push->note.trace[0] == '\0'; i++) {
        if (i > 0) {
            sleep_ms(PAUSE_MS);
        }
        if (!look(push) && (push->is_fatal || push->note.upload[0] == '\0')) {
            return fail(push, "lost the upload");
        }
    }
    return push->note.trace[0] != '\0' || fail(push, "has all of it, but makes no trace of it");
}

/* Whether an earlier call sent it already, and it is still there. */
static bool is_there(struct push *push)
{
    char address[96];

    if (push->note.trace[0] == '\0') {
        return false;
    }
    (void)snprintf(address, sizeof(address), "traces/%s", push->note.trace);
    return ask(push, "GET", address, NULL, NULL, 0) && push->reply.status == 200;
}

/* The note of before counts when it speaks of the same bytes and place. */
static void take_note(struct push *push)
{
    struct lac_push_note before;

    (void)snprintf(push->note.server, sizeof(push->note.server), "%s", push->target->server);
    (void)snprintf(push->note.project, sizeof(push->note.project), "%.512s",
                   push->target->project != NULL ? push->target->project : "");
    if (lac_push_note_read(push->path, &before) && strcmp(before.server, push->note.server) == 0 &&
        strcmp(before.project, push->note.project) == 0 &&
        strcmp(before.digest, push->note.digest) == 0 &&
        before.length_bytes == push->note.length_bytes && strpbrk(before.upload, "/?# ") == NULL &&
        strpbrk(before.trace, "/?# ") == NULL) {
        push->note = before;
    }
}

static bool is_of_this_boot(const struct lac_push_source *source)
{
    uint8_t boot_id[16];
    char text[64] = "";
    char hex[3] = "";
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    unsigned used = 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (length <= 0 || !lac_push_source_boot(source, boot_id)) {
        return false;
    }
    for (const char *c = text; c[0] != '\0' && c[1] != '\0' && used < sizeof(boot_id); c++) {
        if (*c != '-') {
            hex[0] = c[0];
            hex[1] = c[1];
            if (strtoul(hex, NULL, 16) != boot_id[used++]) {
                return false;
            }
            c++;
        }
    }
    return used == sizeof(boot_id);
}

static bool run(struct push *push, const struct lac_push_clock *clock)
{
    if (!measure(push)) {
        return false;
    }
    take_note(push);
    if (is_there(push)) {
        return true;
    }
    if (push->note.trace[0] != '\0' && push->reply.status == 404) {
        push->note.upload[0] = '\0'; /* deleted there since: from the beginning */
    }
    push->note.trace[0] = '\0';
    if (clock != NULL) {
        push->clock = *clock;
    } else if (push->note.upload[0] == '\0' && is_of_this_boot(push->source)) {
        lac_push_probe(push->http, push->target, &push->clock);
    }
    if (!begin(push) || !transfer(push) || !await_trace(push)) {
        return false;
    }
    lac_push_note_write(push->path, &push->note);
    return true;
}

bool lac_push_path(struct lac_http *http, const struct lac_push_target *target, const char *path,
                   const char *name, const struct lac_push_clock *clock, char *url,
                   size_t url_capacity)
{
    struct push *const push = calloc(1, sizeof(*push));
    bool is_sent = false;

    if (push != NULL) {
        push->http = http;
        push->target = target;
        push->path = path;
        push->name = name;
        push->piece_wish = PIECE_BYTES_MAX;
        push->piece = malloc(PIECE_BYTES_MAX);
    }
    if (push == NULL || push->piece == NULL) {
        (void)fprintf(stderr, "lacuna push: %s: out of memory\n", path);
    } else {
        is_sent = run(push, clock);
        end_progress(push);
        (void)snprintf(url, url_capacity, "%s/t/%s", target->server, push->note.trace);
        lac_push_source_close(push->source);
    }
    if (push != NULL) {
        free(push->piece);
        free(push);
    }
    return is_sent;
}
