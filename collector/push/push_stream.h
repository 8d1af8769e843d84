#ifndef LAC_COLLECTOR_PUSH_PUSH_STREAM_H
#define LAC_COLLECTOR_PUSH_PUSH_STREAM_H

/*
 * A recording that is sent while it is made: an upload that grows.
 *
 *   folder -> parts (push_parts.h) -> one zstd frame a piece -> PATCH ... -> the last one has the
 *                                                                           length: a trace
 *
 * A piece is kept until the server has it. A server that lost the upload gets all of it again.
 */

#include "collector/push/http_client.h"
#include "collector/push/push.h"

#include <stdbool.h>

struct lac_push_stream;

enum lac_push_stream_answer {
    LAC_STREAM_SENT,        /**< there may be more */
    LAC_STREAM_WAIT,        /**< nothing new is there */
    LAC_STREAM_AWAY,        /**< the server is not there, or does not take it now */
    LAC_STREAM_DONE,        /**< all of it is a trace */
    LAC_STREAM_REFUSED,     /**< for good; why was told */
    LAC_STREAM_UNSUPPORTED, /**< the server takes whole recordings only */
};

/** @param folder of the recording. All are borrowed. @return NULL: out of memory */
struct lac_push_stream *lac_push_stream_create(struct lac_http *http,
                                               const struct lac_push_target *target,
                                               const char *folder);
/** NULL is allowed. */
void lac_push_stream_destroy(struct lac_push_stream *stream);

/** Send one piece, if there is one. @param is_final nobody writes to the folder any more */
enum lac_push_stream_answer lac_push_stream_step(struct lac_push_stream *stream, bool is_final);

/** Tell the server that the job hangs, or goes on (NULL). @return false: it has heard nothing, as it is not
 * there, or has no upload of ours yet */
bool lac_push_stream_hang(struct lac_push_stream *stream, const char *json);

/** Failed tries in a row. */
unsigned lac_push_stream_tries(const struct lac_push_stream *stream);
/** Count anew. */
void lac_push_stream_forgive(struct lac_push_stream *stream);
/** Whether the server ever answered. */
bool lac_push_stream_was_reached(const struct lac_push_stream *stream);

/** Say on stderr that it does not come through. */
void lac_push_stream_give_up(struct lac_push_stream *stream);

/** Id of the trace, once done. */
const char *lac_push_stream_trace(const struct lac_push_stream *stream);

#endif
