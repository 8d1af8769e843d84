#ifndef LAC_SERVER_HTTP_METRICS_H
#define LAC_SERVER_HTTP_METRICS_H

/*
 * Counters of the HTTP side, as Prometheus text. Recording is a few relaxed atomic additions.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/request.h"

#include <stdint.h>

struct lac_metrics;

/** Rows in addition to the routes: static files, and requests that matched nothing or
 *  were refused early. */
enum { LAC_METRICS_STATIC = 0, LAC_METRICS_NONE = 1, LAC_METRICS_ROUTES = 2 };

/** @param routes borrowed for the life of the result */
LAC_MUST_USE enum lac_status lac_metrics_create(const struct lac_route *routes,
                                                unsigned route_count,
                                                struct lac_metrics **ret_metrics);
void lac_metrics_destroy(struct lac_metrics *metrics);

/** Count a finished request. @param row LAC_METRICS_STATIC, _NONE or LAC_METRICS_ROUTES + route
 * index */
void lac_metrics_request(struct lac_metrics *metrics, unsigned row, unsigned http_status,
                         int64_t duration_ns, uint64_t received_bytes, uint64_t sent_bytes);

/** Connections opened (+1) and closed (-1); refused ones are only counted. */
void lac_metrics_connection(struct lac_metrics *metrics, int change);
void lac_metrics_refused(struct lac_metrics *metrics);
/** Connections without the key were ended to make room for others. */
void lac_metrics_displaced(struct lac_metrics *metrics, unsigned count);
/** A reply did not fit the memory for replies in progress. */
void lac_metrics_reply_refused(struct lac_metrics *metrics);
/** A connection ended because a deadline or the minimum rate was missed. */
void lac_metrics_timed_out(struct lac_metrics *metrics);

void lac_metrics_write(const struct lac_metrics *metrics, struct lac_buffer *out);

#endif
