/*
 * Event streams: the reply never ends; libmicrohttpd asks for more with read_more(), and while
 * there is none the connection is suspended. Text is appended by any thread under loop->mutex.
 */
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define HEARTBEAT_NS INT64_C(15000000000)
enum { STREAM_BYTES_MAX = 256 << 10 };

static ssize_t read_more(void *context, uint64_t position, char *out, size_t capacity_bytes)
{
    struct stream *stream = context;
    struct lac_buffer *text = &stream->text;
    ssize_t result;

    (void)position;
    pthread_mutex_lock(&stream->loop->mutex);
    if (stream->taken_bytes < text->size_bytes) {
        const size_t waiting = text->size_bytes - stream->taken_bytes;
        const size_t taken = waiting < capacity_bytes ? waiting : capacity_bytes;

        memcpy(out, text->bytes + stream->taken_bytes, taken);
        stream->taken_bytes += taken;
        if (stream->taken_bytes == text->size_bytes) {
            text->size_bytes = 0;
            stream->taken_bytes = 0;
        }
        stream->last_ns = lac_http_now_ns();
        result = (ssize_t)taken;
    } else if (stream->has_ended || text->status != LAC_OK) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        lac_connection_suspend(stream->exchange->connection);
        result = 0;
    }
    pthread_mutex_unlock(&stream->loop->mutex);
    return result;
}

static struct stream *create(struct exchange *x)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    stream->loop = x->loop;
    stream->exchange = x;
    stream->text = x->response.body;
    stream->text.size_bytes_max = STREAM_BYTES_MAX;
    x->response.body = (struct lac_buffer){0};
    stream->last_ns = lac_http_now_ns();
    stream->has_ended = atomic_load(&x->loop->server->is_stopping);
    pthread_mutex_lock(&x->loop->mutex);
    stream->next = x->loop->streams;
    x->loop->streams = stream;
    pthread_mutex_unlock(&x->loop->mutex);
    x->stream = stream;
    atomic_fetch_add(&x->loop->server->stream_count, 1);
    return stream;
}

static enum MHD_Result refuse(struct exchange *x)
{
    lac_response_error(&x->response, 503, "too_many_streams",
                       "too many event streams are open: close a window, or try again later");
    lac_response_header(&x->response, "Retry-After", "15");
    return lac_reply_queue(x);
}

static void add_headers(struct MHD_Response *made)
{
    lac_reply_add_headers(made);
    (void)MHD_add_response_header(made, "Content-Type", "text/event-stream");
    (void)MHD_add_response_header(made, "Cache-Control", "no-store");
    (void)MHD_add_response_header(made, "X-Accel-Buffering", "no"); /* proxies must not buffer it */
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libmicrohttpd says so */
static ssize_t read_nothing(void *context, uint64_t position, char *out, size_t capacity_bytes)
{
    (void)context;
    (void)position;
    (void)out;
    (void)capacity_bytes;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/*
 * HEAD opens no stream. libmicrohttpd ends a chunked reply to it with the bytes of the last chunk,
 * where the next reply should begin, and a length would be a lie: so this reply closes.
 */
static enum MHD_Result answer_head(struct exchange *x)
{
    struct MHD_Response *made =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL);
    enum MHD_Result result;

    if (made == NULL) {
        return MHD_NO;
    }
    (void)MHD_set_response_options(made, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    add_headers(made);
    x->stage = STAGE_REPLIED;
    lac_reply_started(x);
    result = MHD_queue_response(x->connection->mhd, 200, made);
    MHD_destroy_response(made);
    return result;
}

enum MHD_Result lac_stream_open(struct exchange *x)
{
    struct lac_http_server *server = x->loop->server;
    struct MHD_Response *made;
    struct stream *stream;
    enum MHD_Result result;

    if (x->is_head) {
        return answer_head(x);
    }
    if (atomic_load(&server->stream_count) >= server->options.streams_max) {
        return refuse(x);
    }
    stream = create(x);
    if (stream == NULL) {
        return MHD_NO;
    }
    /* the stream is freed with its exchange, which outlives the response's last use of it */
    made = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_more, stream, NULL);
    if (made == NULL) {
        return MHD_NO;
    }
    add_headers(made);
    x->stage = STAGE_REPLIED;
    x->connection->phase = PHASE_STREAM;
    result = MHD_queue_response(x->connection->mhd, 200, made);
    MHD_destroy_response(made);
    return result;
}

void lac_stream_close(struct exchange *x)
{
    struct stream *stream = x->stream;
    struct loop *loop = x->loop;

    pthread_mutex_lock(&loop->mutex);
    for (struct stream **place = &loop->streams; *place != NULL; place = &(*place)->next) {
        if (*place == stream) {
            *place = stream->next;
            break;
        }
    }
    pthread_mutex_unlock(&loop->mutex);
    lac_buffer_done(&stream->text);
    free(stream);
    x->stream = NULL;
    atomic_fetch_sub(&loop->server->stream_count, 1);
}

void lac_streams_serve(struct loop *loop, int64_t now_ns, bool look_for_left)
{
    static const char heartbeat[] = ": ping\n\n";

    pthread_mutex_lock(&loop->mutex);
    for (struct stream *stream = loop->streams; stream != NULL; stream = stream->next) {
        struct connection *connection = stream->exchange->connection;

        if (now_ns - stream->last_ns >= HEARTBEAT_NS && stream->text.size_bytes == 0) {
            stream->last_ns = now_ns;
            lac_buffer_add(&stream->text, heartbeat, sizeof(heartbeat) - 1);
        }
        if (look_for_left && connection->is_suspended && lac_connection_has_left(connection)) {
            stream->has_ended = true;
        }
        if (connection->is_suspended &&
            (stream->text.size_bytes > 0 || stream->has_ended || stream->text.status != LAC_OK)) {
            lac_connection_resume(connection);
        }
    }
    pthread_mutex_unlock(&loop->mutex);
}

void lac_streams_end(struct loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    for (struct stream *stream = loop->streams; stream != NULL; stream = stream->next) {
        stream->has_ended = true;
    }
    pthread_mutex_unlock(&loop->mutex);
}

void lac_http_server_publish(struct lac_http_server *server, const char *project, const char *event,
                             const char *data, size_t data_bytes)
{
    assert(server != NULL && event != NULL);
    const struct lac_http_options *options = &server->options;
    assert(data != NULL || data_bytes == 0);
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct loop *loop = &server->loop[i];

        pthread_mutex_lock(&loop->mutex);
        for (struct stream *stream = loop->streams; stream != NULL; stream = stream->next) {
            if (project != NULL && options->may_hear != NULL &&
                !options->may_hear(options->app, &stream->exchange->request.who, project)) {
                continue;
            }
            lac_buffer_puts(&stream->text, "event: ");
            lac_buffer_puts(&stream->text, event);
            lac_buffer_puts(&stream->text, "\ndata: ");
            lac_buffer_add(&stream->text, data, data_bytes);
            lac_buffer_puts(&stream->text, "\n\n");
        }
        if (loop->streams != NULL) {
            lac_loop_wake(loop);
        }
        pthread_mutex_unlock(&loop->mutex);
    }
}
