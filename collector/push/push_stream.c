#include "collector/push/push_stream.h"

#include "collector/push/http_client.h"
#include "collector/push/push.h"
#include "collector/push/push_compress.h"
#include "collector/push/push_parts.h"
#include "collector/push/push_resume.h"
#include "collector/push/push_upload.h"
#include "lacuna/bundle.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ENOUGH_BYTES = 4 << 20, /* of a piece, before it is compressed */
    WISH_MAX = 16 << 20,    /* at a time */
    WISH_MIN = 64 << 10,
    PATIENCE_S = 5, /* less than that is sent after so long */
};

struct lac_push_stream {
    struct lac_push_upload upload;
    struct lac_push_clock clock;
    struct lac_push_resume note;
    struct lac_push_parts *parts;
    struct lac_push_compress *pack; /* NULL: pieces are sent as they are */
    struct lac_push_bytes raw;
    struct lac_push_bytes piece; /* what the server does not have yet */
    uint64_t piece_from;         /* offset of its first byte in the upload */
    size_t wish_bytes;           /* how much of it at a time: less gets through more often */
    bool is_complete;            /* the piece is the last one */
    time_t sent_at_s;
};

struct lac_push_stream *lac_push_stream_create(struct lac_http *http,
                                               const struct lac_push_target *target,
                                               const char *folder)
{
    struct lac_push_stream *const stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    stream->upload.http = http;
    stream->upload.target = target;
    stream->upload.path = folder;
    stream->wish_bytes = WISH_MAX;
    stream->sent_at_s = time(NULL);
    stream->pack = lac_push_compress_open();
    stream->parts = lac_push_parts_create(folder);
    lac_push_probe(http, target, &stream->clock);
    if (stream->parts == NULL) {
        lac_push_stream_destroy(stream);
        return NULL;
    }
    return stream;
}

void lac_push_stream_destroy(struct lac_push_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    lac_push_parts_destroy(stream->parts);
    lac_push_compress_close(stream->pack);
    free(stream->raw.bytes);
    free(stream->piece.bytes);
    free(stream);
}

unsigned lac_push_stream_tries(const struct lac_push_stream *stream)
{
    return stream->upload.tries;
}

void lac_push_stream_forgive(struct lac_push_stream *stream)
{
    stream->upload.tries = 0;
}

bool lac_push_stream_was_reached(const struct lac_push_stream *stream)
{
    return stream->upload.was_reached;
}

void lac_push_stream_give_up(struct lac_push_stream *stream)
{
    (void)lac_push_fail(&stream->upload,
                        stream->upload.was_reached ? "does not take it" : "cannot be reached");
}

const char *lac_push_stream_trace(const struct lac_push_stream *stream)
{
    return stream->upload.trace;
}

/* Everything again, into a new upload. */
static void restart(struct lac_push_stream *stream)
{
    lac_push_parts_restart(stream->parts);
    stream->raw.size_bytes = stream->piece.size_bytes = 0;
    stream->piece_from = 0;
    stream->is_complete = false;
    stream->upload.id[0] = '\0';
    stream->upload.offset_bytes = 0;
}

/* -- pieces -------------------------------------------------------------------------------------*/

static bool compress(struct lac_push_stream *stream)
{
    const uint8_t *input = stream->raw.bytes;
    size_t left = stream->raw.size_bytes;
    bool is_done = false;

    while (!is_done) {
        if (!lac_push_bytes_reserve(&stream->piece, left / 2 + 65536)) {
            return false;
        }
        const int64_t packed = lac_push_compress_step(
            stream->pack, &input, &left, true, stream->piece.bytes + stream->piece.size_bytes,
            stream->piece.capacity_bytes - stream->piece.size_bytes, &is_done);
        if (packed < 0) {
            return false;
        }
        stream->piece.size_bytes += (size_t)packed;
    }
    return true;
}

/* `raw` becomes the piece that waits. */
static bool close_piece(struct lac_push_stream *stream)
{
    stream->piece_from = stream->upload.offset_bytes;
    stream->piece.size_bytes = 0;
    if (stream->raw.size_bytes == 0) {
        return true;
    }
    if (stream->pack != NULL) {
        if (!compress(stream)) {
            return false;
        }
    } else {
        const struct lac_push_bytes swap = stream->piece;

        stream->piece = stream->raw;
        stream->raw = swap;
    }
    stream->raw.size_bytes = 0;
    return true;
}

/* @return whether a piece is there now, be it the empty last one; *ret_failed: it cannot be made */
static bool make_piece(struct lac_push_stream *stream, bool is_final, bool *ret_failed)
{
    const bool is_first = stream->upload.offset_bytes == 0 && stream->raw.size_bytes == 0;
    bool is_all = true;

    *ret_failed = false;
    if (is_first) {
        if (!lac_push_bytes_reserve(&stream->raw, sizeof(LAC_BUNDLE_MAGIC))) {
            *ret_failed = true;
            return false;
        }
        memcpy(stream->raw.bytes, LAC_BUNDLE_MAGIC, sizeof(LAC_BUNDLE_MAGIC) - 1);
        stream->raw.size_bytes = sizeof(LAC_BUNDLE_MAGIC) - 1;
    }
    if (!lac_push_parts_take(stream->parts, ENOUGH_BYTES, is_final, &stream->raw, &is_all)) {
        *ret_failed = true;
        return false;
    }
    if (!is_final && stream->raw.size_bytes < ENOUGH_BYTES &&
        (time(NULL) < stream->sent_at_s + PATIENCE_S ||
         stream->raw.size_bytes <= sizeof(LAC_BUNDLE_MAGIC))) {
        return false;
    }
    stream->is_complete = is_final && is_all;
    *ret_failed = !close_piece(stream);
    return !*ret_failed;
}

/* -- sending ------------------------------------------------------------------------------------*/

static void write_note(struct lac_push_stream *stream)
{
    lac_push_resume_place(&stream->note, stream->upload.target);
    (void)snprintf(stream->note.digest, sizeof(stream->note.digest), "%s", LAC_PUSH_STREAMED);
    (void)snprintf(stream->note.upload, sizeof(stream->note.upload), "%s", stream->upload.id);
    (void)snprintf(stream->note.trace, sizeof(stream->note.trace), "%s", stream->upload.trace);
    lac_push_resume_write(stream->upload.path, &stream->note);
}

static bool create(struct lac_push_stream *stream)
{
    char metadata[LAC_PUSH_METADATA_BYTES];
    char name[512];

    if (!stream->clock.is_known) {
        lac_push_probe(stream->upload.http, stream->upload.target, &stream->clock);
    }
    lac_push_default_name(stream->upload.path, name, sizeof(name));
    lac_push_metadata(stream->upload.target, "", name, &stream->clock, metadata);
    if (!lac_push_create(&stream->upload, metadata)) {
        return false;
    }
    write_note(stream);
    return true;
}

/* The server has so much: what of the piece is left? */
static enum lac_push_stream_answer after(struct lac_push_stream *stream)
{
    const uint64_t end = stream->piece_from + stream->piece.size_bytes;
    const uint64_t offset = stream->upload.offset_bytes;

    if (offset < stream->piece_from || offset > end) { /* it is not what we sent there */
        lac_push_remove(&stream->upload);
        restart(stream);
        return LAC_STREAM_AWAY;
    }
    memmove(stream->piece.bytes, stream->piece.bytes + (offset - stream->piece_from),
            (size_t)(end - offset));
    stream->piece.size_bytes = (size_t)(end - offset);
    stream->piece_from = offset;
    stream->sent_at_s = time(NULL);
    return LAC_STREAM_SENT;
}

/* What a failure means, and where the upload stands now. */
static enum lac_push_stream_answer look(struct lac_push_stream *stream)
{
    const uint64_t before = stream->upload.offset_bytes;

    if (!stream->upload.is_fatal && stream->upload.id[0] != '\0' &&
        lac_push_look(&stream->upload)) {
        return after(stream) == LAC_STREAM_SENT && stream->upload.offset_bytes > before
                   ? LAC_STREAM_SENT
                   : LAC_STREAM_AWAY;
    }
    if (!stream->upload.is_fatal && stream->upload.id[0] == '\0') {
        restart(stream);
    }
    return stream->upload.is_fatal ? LAC_STREAM_REFUSED : LAC_STREAM_AWAY;
}

static enum lac_push_stream_answer send(struct lac_push_stream *stream)
{
    struct lac_push_upload *const upload = &stream->upload;
    const size_t size = stream->piece.size_bytes < stream->wish_bytes ? stream->piece.size_bytes
                                                                      : stream->wish_bytes;
    const bool is_last = stream->is_complete && size == stream->piece.size_bytes;

    if (upload->id[0] == '\0' && !create(stream)) {
        return !upload->is_fatal             ? LAC_STREAM_AWAY
               : upload->reply.status == 400 ? LAC_STREAM_UNSUPPORTED
                                             : LAC_STREAM_REFUSED;
    }
    if (!lac_push_send(upload, stream->piece.bytes, size,
                       is_last ? stream->piece_from + size : 0)) {
        stream->wish_bytes = size / 2 > WISH_MIN ? size / 2 : WISH_MIN;
        return look(stream);
    }
    if (stream->wish_bytes < WISH_MAX) {
        stream->wish_bytes *= 2;
    }
    if (after(stream) != LAC_STREAM_SENT) {
        return LAC_STREAM_AWAY;
    }
    if (!is_last) {
        return LAC_STREAM_SENT;
    }
    if (!lac_push_await_trace(upload)) {
        return LAC_STREAM_REFUSED;
    }
    stream->note.length_bytes = lac_push_folder_bytes(upload->path);
    write_note(stream);
    return LAC_STREAM_DONE;
}

enum lac_push_stream_answer lac_push_stream_step(struct lac_push_stream *stream, bool is_final)
{
    enum lac_push_stream_answer answer;
    bool has_failed = false;

    if (stream->piece.size_bytes == 0 && !stream->is_complete &&
        !make_piece(stream, is_final, &has_failed)) {
        if (has_failed) {
            (void)fprintf(stderr, "lacuna: %s cannot be read while it is sent\n",
                          stream->upload.path);
        }
        return has_failed ? LAC_STREAM_REFUSED : LAC_STREAM_WAIT;
    }
    answer = send(stream);
    stream->upload.tries = answer == LAC_STREAM_AWAY ? stream->upload.tries + 1 : 0;
    return answer;
}

bool lac_push_stream_hang(struct lac_push_stream *stream, const char *json)
{
    static const char *const fields[] = {"Content-Type: application/json", NULL};
    struct lac_push_upload *const upload = &stream->upload;
    char address[128];

    if (upload->id[0] == '\0') {
        return false;
    }
    (void)snprintf(address, sizeof(address), "uploads/%s/hang", upload->id);
    return json != NULL ? lac_push_ask(upload, "PUT", address, fields, json, strlen(json))
                        : lac_push_ask(upload, "DELETE", address, NULL, NULL, 0);
}
