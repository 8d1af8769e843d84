#include "server/demo/gpu_stream.h"

#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>

enum lac_status lac_demo_stream_init(struct lac_demo_stream *stream, uint64_t queue_max)
{
    *stream = (struct lac_demo_stream){.queue_max = queue_max};
    stream->start_ns = calloc(queue_max, sizeof(*stream->start_ns));
    return stream->start_ns == NULL ? LAC_ERR_NOMEM : LAC_OK;
}

void lac_demo_stream_done(struct lac_demo_stream *stream)
{
    free(stream->start_ns);
    *stream = (struct lac_demo_stream){0};
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct lac_demo_launch lac_demo_stream_launch(struct lac_demo_stream *stream, int64_t at_ns,
                                              int64_t call_ns, int64_t latency_ns, int64_t pause_ns,
                                              int64_t dur_ns)
{
    struct lac_demo_launch launch = {.api_end_ns = at_ns + call_ns};
    int64_t *slot = &stream->start_ns[stream->count % stream->queue_max];
    /* the slot still holds the start of the operation queue_max places ahead: room from then on */
    if (stream->count >= stream->queue_max && *slot > at_ns) {
        launch.blocked_ns = *slot - at_ns;
        launch.api_end_ns = *slot + call_ns;
    }
    launch.start_ns = later(launch.api_end_ns + latency_ns, stream->not_before_ns);
    if (stream->count > 0) {
        launch.start_ns = later(launch.start_ns, stream->tail_end_ns + pause_ns);
    }
    launch.end_ns = launch.start_ns + dur_ns;
    *slot = launch.start_ns;
    stream->count++;
    stream->tail_end_ns = launch.end_ns;
    stream->not_before_ns = 0;
    return launch;
}
