#include "server/http/metrics.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/http/request.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const double bucket_seconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                        0.1,   0.25,   0.5,   1.0,  2.5,   10.0};
enum { BUCKET_COUNT = LAC_COUNT_OF(bucket_seconds) };

static const unsigned statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408,
                                    409, 413, 414, 415, 422, 429, 431, 500, 503, 505, 507};
enum { STATUS_COUNT = LAC_COUNT_OF(statuses) + 1 }; /* the last: any other */

struct row {
    _Atomic uint64_t by_status[STATUS_COUNT];
    _Atomic uint64_t bucket[BUCKET_COUNT + 1];
    _Atomic uint64_t duration_us;
    _Atomic uint64_t sent_bytes;
    _Atomic uint64_t received_bytes;
};

struct lac_metrics {
    const struct lac_route *routes;
    unsigned row_count;
    _Atomic int64_t connections_open;
    _Atomic uint64_t connections_total;
    _Atomic uint64_t connections_refused;
    _Atomic uint64_t connections_displaced;
    _Atomic uint64_t replies_refused;
    _Atomic uint64_t timed_out;
    struct row row[];
};

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

enum lac_status lac_metrics_create(const struct lac_route *routes, unsigned route_count,
                                   struct lac_metrics **ret_metrics)
{
    const unsigned row_count = LAC_METRICS_ROUTES + route_count;
    struct lac_metrics *metrics = calloc(1, sizeof(*metrics) + row_count * sizeof(struct row));

    if (metrics == NULL) {
        return LAC_ERR_NOMEM;
    }
    metrics->routes = routes;
    metrics->row_count = row_count;
    *ret_metrics = metrics;
    return LAC_OK;
}

void lac_metrics_destroy(struct lac_metrics *metrics)
{
    free(metrics);
}

void lac_metrics_request(struct lac_metrics *metrics, unsigned row_index, unsigned http_status,
                         int64_t duration_ns, uint64_t received_bytes, uint64_t sent_bytes)
{
    struct row *row = &metrics->row[row_index];
    const double seconds = (double)duration_ns * 1e-9;
    unsigned status = 0;
    unsigned bucket = 0;

    while (status < STATUS_COUNT - 1 && statuses[status] != http_status) {
        status++;
    }
    while (bucket < BUCKET_COUNT && seconds > bucket_seconds[bucket]) {
        bucket++;
    }
    add(&row->by_status[status], 1);
    add(&row->bucket[bucket], 1);
    add(&row->duration_us, (uint64_t)(duration_ns / 1000));
    add(&row->sent_bytes, sent_bytes);
    add(&row->received_bytes, received_bytes);
}

void lac_metrics_connection(struct lac_metrics *metrics, int change)
{
    atomic_fetch_add_explicit(&metrics->connections_open, change, memory_order_relaxed);
    if (change > 0) {
        add(&metrics->connections_total, 1);
    }
}

void lac_metrics_refused(struct lac_metrics *metrics)
{
    add(&metrics->connections_refused, 1);
}

void lac_metrics_displaced(struct lac_metrics *metrics, unsigned count)
{
    add(&metrics->connections_displaced, count);
}

void lac_metrics_reply_refused(struct lac_metrics *metrics)
{
    add(&metrics->replies_refused, 1);
}

void lac_metrics_timed_out(struct lac_metrics *metrics)
{
    add(&metrics->timed_out, 1);
}

/* `method="GET",route="/x"`; patterns hold no character that needs escaping. */
static void row_labels(const struct lac_metrics *metrics, unsigned index, char out[160])
{
    if (index == LAC_METRICS_STATIC) {
        (void)snprintf(out, 160, "method=\"GET\",route=\"static\"");
    } else if (index == LAC_METRICS_NONE) {
        (void)snprintf(out, 160, "method=\"\",route=\"none\"");
    } else {
        const struct lac_route *route = &metrics->routes[index - LAC_METRICS_ROUTES];

        (void)snprintf(out, 160, "method=\"%s\",route=\"%s\"", lac_method_name(route->method),
                       route->pattern);
    }
}

static uint64_t row_total(const struct row *row)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < STATUS_COUNT; i++) {
        total += load(&row->by_status[i]);
    }
    return total;
}

static void write_requests(const struct lac_metrics *metrics, struct lac_buffer *out)
{
    char labels[160];

    lac_buffer_puts(out, "# HELP lacuna_http_requests_total Finished requests.\n"
                         "# TYPE lacuna_http_requests_total counter\n");
    for (unsigned r = 0; r < metrics->row_count; r++) {
        row_labels(metrics, r, labels);
        for (unsigned i = 0; i < STATUS_COUNT; i++) {
            const uint64_t count = load(&metrics->row[r].by_status[i]);

            if (count > 0 && i < STATUS_COUNT - 1) {
                lac_buffer_printf(out, "lacuna_http_requests_total{%s,status=\"%u\"} %" PRIu64 "\n",
                                  labels, statuses[i], count);
            } else if (count > 0) {
                lac_buffer_printf(out,
                                  "lacuna_http_requests_total{%s,status=\"other\"} %" PRIu64 "\n",
                                  labels, count);
            }
        }
    }
}

static void write_durations(const struct lac_metrics *metrics, struct lac_buffer *out)
{
    char labels[160];

    lac_buffer_puts(out, "# HELP lacuna_http_request_seconds From the request line to the last "
                         "byte of the reply.\n"
                         "# TYPE lacuna_http_request_seconds histogram\n");
    for (unsigned r = 0; r < metrics->row_count; r++) {
        const struct row *row = &metrics->row[r];
        uint64_t below = 0;

        if (row_total(row) == 0) {
            continue;
        }
        row_labels(metrics, r, labels);
        for (unsigned i = 0; i < BUCKET_COUNT; i++) {
            below += load(&row->bucket[i]);
            lac_buffer_printf(out, "lacuna_http_request_seconds_bucket{%s,le=\"%g\"} %" PRIu64 "\n",
                              labels, bucket_seconds[i], below);
        }
        below += load(&row->bucket[BUCKET_COUNT]);
        lac_buffer_printf(out, "lacuna_http_request_seconds_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n",
                          labels, below);
        lac_buffer_printf(out, "lacuna_http_request_seconds_sum{%s} %.6f\n", labels,
                          (double)load(&row->duration_us) * 1e-6);
        lac_buffer_printf(out, "lacuna_http_request_seconds_count{%s} %" PRIu64 "\n", labels,
                          below);
    }
}

void lac_metrics_write(const struct lac_metrics *metrics, struct lac_buffer *out)
{
    uint64_t sent = 0;
    uint64_t received = 0;

    for (unsigned r = 0; r < metrics->row_count; r++) {
        sent += load(&metrics->row[r].sent_bytes);
        received += load(&metrics->row[r].received_bytes);
    }
    write_requests(metrics, out);
    write_durations(metrics, out);
    lac_buffer_printf(out,
                      "# TYPE lacuna_http_sent_bytes_total counter\n"
                      "lacuna_http_sent_bytes_total %" PRIu64 "\n"
                      "# TYPE lacuna_http_received_bytes_total counter\n"
                      "lacuna_http_received_bytes_total %" PRIu64 "\n"
                      "# TYPE lacuna_http_connections gauge\n"
                      "lacuna_http_connections %" PRId64 "\n"
                      "# TYPE lacuna_http_connections_total counter\n"
                      "lacuna_http_connections_total %" PRIu64 "\n"
                      "# TYPE lacuna_http_connections_refused_total counter\n"
                      "lacuna_http_connections_refused_total %" PRIu64 "\n"
                      "# HELP lacuna_http_connections_displaced_total Connections without the key "
                      "that were ended to make room.\n"
                      "# TYPE lacuna_http_connections_displaced_total counter\n"
                      "lacuna_http_connections_displaced_total %" PRIu64 "\n"
                      "# HELP lacuna_http_replies_refused_total Replies that did not fit the "
                      "memory for replies under way.\n"
                      "# TYPE lacuna_http_replies_refused_total counter\n"
                      "lacuna_http_replies_refused_total %" PRIu64 "\n"
                      "# TYPE lacuna_http_timed_out_total counter\n"
                      "lacuna_http_timed_out_total %" PRIu64 "\n",
                      sent, received,
                      atomic_load_explicit(&metrics->connections_open, memory_order_relaxed),
                      load(&metrics->connections_total), load(&metrics->connections_refused),
                      load(&metrics->connections_displaced), load(&metrics->replies_refused),
                      load(&metrics->timed_out));
}
