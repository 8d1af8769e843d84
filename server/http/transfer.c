/*
 * Streamed bodies. The loop fills one buffer while a worker takes the other; when both are busy the
 * connection is suspended, so a slow disk slows its own client and nobody else.
 */
#include "analysis/model/status.h"
#include "server/http/pool.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct exchange *exchange_of(struct lac_pool_job *job)
{
    return (struct exchange *)(void *)((char *)job - offsetof(struct exchange, job));
}

bool lac_transfer_open(struct exchange *x)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));

    if (transfer == NULL) {
        return false;
    }
    transfer->fill = malloc(TRANSFER_BYTES);
    transfer->work = malloc(TRANSFER_BYTES);
    x->transfer = transfer;
    return transfer->fill != NULL && transfer->work != NULL;
}

/* -- worker ---------------------------------------------------------------------------------- */

static void run_transfer(struct lac_pool_job *job)
{
    struct exchange *x = exchange_of(job);
    struct transfer *transfer = x->transfer;
    const struct lac_body_handler *handler = x->route->stream;

    if (transfer->sink == NULL) {
        transfer->status = handler->begin(x->loop->server->options.app, &x->request,
                                          &transfer->sink, &transfer->error);
    }
    if (transfer->status == LAC_OK && transfer->work_bytes > 0) {
        transfer->status =
            handler->data(transfer->sink, transfer->work, transfer->work_bytes, &transfer->error);
    }
    if (transfer->status == LAC_OK && transfer->job_finishes) {
        handler->finish(transfer->sink, &x->request, &x->response);
        transfer->sink = NULL;
        transfer->is_finished = true;
        lac_reply_finish(x);
    }
    lac_exchange_post(x);
}

static void run_cancel(struct lac_pool_job *job)
{
    struct exchange *x = exchange_of(job);

    x->route->stream->cancel(x->transfer->sink);
    x->transfer->sink = NULL;
    lac_exchange_post(x);
}

/* -- loop -------------------------------------------------------------------------------------- */

static bool start_job(struct exchange *x)
{
    struct transfer *transfer = x->transfer;
    uint8_t *const swap = transfer->work;

    assert(!transfer->is_working);
    transfer->work = transfer->fill;
    transfer->work_bytes = transfer->fill_bytes;
    transfer->fill = swap;
    transfer->fill_bytes = 0;
    transfer->job_finishes = transfer->has_ended;
    x->job.run = run_transfer;
    if (transfer->is_started) {
        lac_pool_submit_always(x->loop->server->pool, &x->job, true);
    } else if (!lac_pool_submit(x->loop->server->pool, &x->job, true)) {
        return false;
    }
    transfer->is_started = true;
    transfer->is_working = true;
    return true;
}

/* The upload cannot go on: say why at once, the client need not send the rest. */
static void fail(struct exchange *x)
{
    const struct lac_error *error = &x->transfer->error;
    const unsigned http_status = lac_http_status_of(x->transfer->status, error->sys_errno);

    if (x->transfer->has_ended) {
        lac_response_fail(&x->response, error);
        x->stage = STAGE_READY;
        lac_connection_resume(x->connection);
        return;
    }
    lac_connection_reject(x->connection, http_status,
                          lac_http_code_of(x->transfer->status, error->sys_errno), error->message);
    lac_connection_resume(x->connection);
}

size_t lac_transfer_take(struct exchange *x, const char *bytes, size_t size_bytes)
{
    struct transfer *transfer = x->transfer;
    size_t taken = 0;

    while (taken < size_bytes) {
        const size_t room = TRANSFER_BYTES - transfer->fill_bytes;
        const size_t size = size_bytes - taken < room ? size_bytes - taken : room;

        memcpy(transfer->fill + transfer->fill_bytes, bytes + taken, size);
        transfer->fill_bytes += size;
        taken += size;
        if (!transfer->is_working) {
            if (!start_job(x)) {
                lac_connection_reject(x->connection, 503, "busy",
                                      "the server is busy: try again in a moment");
                return size_bytes;
            }
        } else if (transfer->fill_bytes == TRANSFER_BYTES) {
            lac_connection_suspend(x->connection);
            break;
        }
    }
    return taken;
}

void lac_transfer_end(struct exchange *x)
{
    struct transfer *transfer = x->transfer;

    transfer->has_ended = true;
    x->stage = STAGE_WORKING;
    x->connection->phase = PHASE_WORK;
    lac_connection_suspend(x->connection);
    if (!transfer->is_working && !start_job(x)) {
        lac_response_error(&x->response, 503, "busy", "the server is busy: try again in a moment");
        x->stage = STAGE_READY;
        lac_connection_resume(x->connection);
    }
}

void lac_transfer_job_done(struct exchange *x)
{
    struct transfer *transfer = x->transfer;

    transfer->is_working = false;
    if (x->connection == NULL) {
        lac_transfer_abandon(x);
    } else if (x->connection->phase != PHASE_CLOSING && transfer->status != LAC_OK) {
        fail(x);
    } else if (x->connection->phase == PHASE_CLOSING || transfer->is_finished) {
        x->stage = transfer->is_finished ? STAGE_READY : x->stage;
        lac_connection_resume(x->connection);
    } else {
        if (transfer->has_ended || transfer->fill_bytes > 0) {
            (void)start_job(x); /* admitted already: cannot be refused */
        }
        if (!transfer->has_ended) {
            lac_connection_resume(x->connection);
        }
    }
}

void lac_transfer_abandon(struct exchange *x)
{
    struct transfer *transfer = x->transfer;

    if (transfer->is_working) {
        return; /* its job comes back here */
    }
    if (transfer->sink != NULL) {
        transfer->is_working = true;
        x->job.run = run_cancel;
        lac_pool_submit_always(x->loop->server->pool, &x->job, true);
        return;
    }
    lac_exchange_destroy(x);
}
