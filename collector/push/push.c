#include "collector/push/push.h"

#include "collector/base/debug.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "collector/push/http_client.h"
#include "collector/push/push_resume.h"
#include "collector/push/push_source.h"
#include "collector/push/push_upload.h"

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
};

struct push {
    struct lac_push_upload upload;
    const char *path;
    const char *name;
    struct lac_push_clock clock;
    struct lac_push_resume note;
    struct lac_push_source *source;
    uint64_t source_at;  /* bytes read from it */
    uint64_t piece_from; /* offset of the first byte of `piece` */
    size_t piece_bytes;
    size_t piece_wish;
    uint8_t *piece;
    char file_name[304];
};

static void show_progress(const struct push *push, const char *what)
{
    if (!push->upload.target->is_quiet && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\rlacuna: %s %.0f of %.0f MiB \033[K", what,
                      (double)push->upload.offset_bytes / (1 << 20),
                      (double)push->note.length_bytes / (1 << 20));
    }
}

static void end_progress(const struct push *push)
{
    if (!push->upload.target->is_quiet && isatty(STDERR_FILENO)) {
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
        push->upload.is_fatal = true;
    }
    return push->source != NULL;
}

static void complain(struct push *push)
{
    (void)fprintf(stderr,
                  "lacuna push: %s: a file of it cannot be read, or changes: is the job still "
                  "running?\n",
                  push->path);
    push->upload.is_fatal = true;
}

/* Read on. @return bytes, fewer than asked only at the end; -1 */
static int64_t read_source(struct push *push, size_t size_bytes)
{
    const int64_t got = lac_push_source_read(push->source, push->piece, size_bytes);

    if (got < 0) {
        complain(push);
    } else {
        push->source_at += (uint64_t)got;
    }
    return got;
}

/* The same where there must be more: it was longer when it was measured. */
static bool read_more(struct push *push, size_t size_bytes, int64_t *ret_got)
{
    *ret_got = read_source(push, size_bytes);
    if (*ret_got == 0) {
        complain(push);
    }
    return *ret_got > 0;
}

/* Once through all of it: how long it is, and what. */
static bool measure(struct push *push)
{
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha sum;
    int64_t got;

    if (!open_source(push)) {
        return false;
    }
    (void)snprintf(push->file_name, sizeof(push->file_name), "%s",
                   lac_push_source_name(push->source));
    lac_sha256_init(&sum);
    while ((got = read_source(push, PIECE_BYTES_MAX)) > 0) {
        lac_sha_add(&sum, push->piece, (size_t)got);
    }
    lac_sha_end(&sum, digest);
    lac_hex_encode(digest, sizeof(digest), push->note.digest);
    push->note.length_bytes = push->source_at;
    return got == 0;
}

/* Make `piece` begin at the server's offset. */
static bool load_piece(struct push *push)
{
    const uint64_t end = push->piece_from + push->piece_bytes;
    int64_t got;

    if (push->piece_bytes > 0 && push->upload.offset_bytes >= push->piece_from &&
        push->upload.offset_bytes < end) {
        const size_t gone = (size_t)(push->upload.offset_bytes - push->piece_from);

        memmove(push->piece, push->piece + gone, push->piece_bytes - gone);
        push->piece_bytes -= gone;
        push->piece_from = push->upload.offset_bytes;
        return true;
    }
    push->piece_bytes = 0;
    if (push->source_at > push->upload.offset_bytes && !open_source(push)) {
        return false;
    }
    while (push->source_at < push->upload.offset_bytes) {
        const uint64_t left = push->upload.offset_bytes - push->source_at;

        if (!read_more(push, left < PIECE_BYTES_MAX ? (size_t)left : PIECE_BYTES_MAX, &got)) {
            return false;
        }
    }
    if (!read_more(push, PIECE_BYTES_MAX, &got)) {
        return false;
    }
    push->piece_bytes = (size_t)got;
    push->piece_from = push->upload.offset_bytes;
    return true;
}

/* -- the upload ---------------------------------------------------------------------------------*/

static void fill_note(struct push *push)
{
    (void)snprintf(push->note.upload, sizeof(push->note.upload), "%s", push->upload.id);
    (void)snprintf(push->note.trace, sizeof(push->note.trace), "%s", push->upload.trace);
}

static bool create(struct push *push)
{
    char metadata[LAC_PUSH_METADATA_BYTES];
    char name[512];

    lac_push_default_name(push->path, name, sizeof(name));
    lac_push_metadata(push->upload.target, push->file_name, push->name != NULL ? push->name : name,
                      &push->clock, metadata);
    if (!lac_push_create(&push->upload, metadata)) {
        return false;
    }
    fill_note(push);
    lac_push_resume_write(push->path, &push->note);
    return true;
}

/* One piece. @return whether the server took it; else look again, unless upload.is_fatal */
static bool send_piece(struct push *push)
{
    const size_t wish = push->piece_wish;

    return load_piece(push) &&
           lac_push_send(&push->upload, push->piece,
                         push->piece_bytes < wish ? push->piece_bytes : wish, 0);
}

/* Wait before the next try; false when that was the last. Smaller pieces get through more often. */
static bool pause_and_retry(struct push *push)
{
    struct lac_push_upload *const upload = &push->upload;

    if (upload->is_fatal) {
        return false;
    }
    upload->tries++;
    if (upload->tries >= (upload->was_reached ? TRIES_MAX : FIRST_TRIES_MAX)) {
        return lac_push_fail(upload,
                             upload->was_reached ? "does not take it" : "cannot be reached");
    }
    push->piece_wish =
        push->piece_wish / 2 > PIECE_BYTES_MIN ? push->piece_wish / 2 : PIECE_BYTES_MIN;
    show_progress(push, "waiting for the server at");
    LAC_DEBUG(PUSH, 1, "try %u failed; again in %ld ms", upload->tries,
              lac_push_pause_ms(upload->tries));
    lac_push_sleep_ms(lac_push_pause_ms(upload->tries));
    return true;
}

/* An upload, known from before or new. */
static bool begin(struct push *push)
{
    for (;;) {
        if (push->upload.id[0] != '\0' && lac_push_look(&push->upload)) {
            return true;
        }
        if (!push->upload.is_fatal && push->upload.id[0] == '\0' && create(push)) {
            return true;
        }
        if (!pause_and_retry(push)) {
            return false;
        }
    }
}

static bool transfer(struct push *push)
{
    while (push->upload.offset_bytes < push->note.length_bytes) {
        show_progress(push, "sent");
        if (send_piece(push)) {
            push->upload.tries = 0;
            if (push->piece_wish < PIECE_BYTES_MAX) {
                push->piece_wish *= 2;
            }
            continue;
        }
        const uint64_t before = push->upload.offset_bytes;
        if (!pause_and_retry(push) || !begin(push)) {
            return false;
        }
        push->upload.tries = push->upload.offset_bytes > before ? 0 : push->upload.tries;
    }
    return true;
}

/* Whether the trace that the note names is still there. */
static bool is_there(struct push *push)
{
    char address[96];

    if (push->note.trace[0] == '\0') {
        return false;
    }
    (void)snprintf(address, sizeof(address), "traces/%s", push->note.trace);
    return lac_push_ask(&push->upload, "GET", address, NULL, NULL, 0) &&
           push->upload.reply.status == 200;
}

/* The note of before, when it speaks of the same place. */
static bool read_note(const struct push *push, struct lac_push_resume *before)
{
    return lac_push_resume_read(push->path, push->note.server, before) &&
           strcmp(before->server, push->note.server) == 0 &&
           strcmp(before->project, push->note.project) == 0 &&
           strpbrk(before->upload, "/?# ") == NULL && strpbrk(before->trace, "/?# ") == NULL;
}

/* Whether `run --server` sent all of it while the job ran. What it sent of a recording that did not
 * come whole is taken back: all of it follows now. */
static bool was_streamed(struct push *push)
{
    struct lac_push_resume before;

    if (!read_note(push, &before) || strcmp(before.digest, LAC_PUSH_STREAMED) != 0) {
        return false;
    }
    if (before.trace[0] != '\0') {
        push->note = before;
        if (before.length_bytes == lac_push_folder_bytes(push->path) && is_there(push)) {
            return true;
        }
        push->note.upload[0] = push->note.trace[0] = '\0';
    } else {
        (void)snprintf(push->upload.id, sizeof(push->upload.id), "%s", before.upload);
        lac_push_remove(&push->upload);
    }
    return false;
}

/* The note of before counts when it speaks of the same bytes. */
static void take_note(struct push *push)
{
    struct lac_push_resume before;

    if (read_note(push, &before) && strcmp(before.digest, push->note.digest) == 0 &&
        before.length_bytes == push->note.length_bytes) {
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
    lac_push_resume_place(&push->note, push->upload.target);
    if (was_streamed(push)) {
        return true;
    }
    if (!measure(push)) {
        return false;
    }
    take_note(push);
    if (is_there(push)) {
        lac_push_resume_done(push->path, &push->note);
        return true;
    }
    if (push->note.trace[0] != '\0' && push->upload.reply.status == 404) {
        push->note.upload[0] = '\0'; /* deleted there since: from the beginning */
    }
    push->note.trace[0] = '\0';
    (void)snprintf(push->upload.id, sizeof(push->upload.id), "%s", push->note.upload);
    push->upload.length_bytes = push->note.length_bytes;
    if (clock != NULL) {
        push->clock = *clock;
    } else if (push->upload.id[0] == '\0' && is_of_this_boot(push->source)) {
        lac_push_probe(push->upload.http, push->upload.target, &push->clock);
    }
    if (!begin(push) || !transfer(push) || !lac_push_await_trace(&push->upload)) {
        return false;
    }
    fill_note(push);
    lac_push_resume_done(push->path, &push->note);
    return true;
}

bool lac_push_path(struct lac_http *http, const struct lac_push_target *target, const char *path,
                   const char *name, const struct lac_push_clock *clock, char *url,
                   size_t url_capacity)
{
    struct push *const push = calloc(1, sizeof(*push));
    bool is_sent = false;

    if (push != NULL) {
        push->upload.http = http;
        push->upload.target = target;
        push->upload.path = path;
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
