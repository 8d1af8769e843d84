#ifndef LAC_SERVER_NODES_FORWARD_H
#define LAC_SERVER_NODES_FORWARD_H

/*
 * Requests that a server which stands by passes on to the one that holds the catalog: whatever
 * changes something, and what only that one knows. Bodies are streamed; the answer is the other's,
 * header fields and all.
 */

#include "analysis/model/status.h"
#include "server/http/request.h"
#include "server/store/store.h"

#include <stdbool.h>

/** Where the server is that holds the catalog. Any thread. */
struct lac_main_node;

LAC_MUST_USE enum lac_status lac_main_node_create(struct lac_main_node **ret_node,
                                                  struct lac_error *reterr);
/** NULL is allowed. Nobody may still pass anything on. */
void lac_main_node_destroy(struct lac_main_node *node);

/** What is known of it now. When it is not there, requests under way are cut. */
void lac_main_node_set(struct lac_main_node *node, const struct lac_store_holder *holder);

/** Cut all requests under way, and take no more. */
void lac_main_node_stop(struct lac_main_node *node);

/** For struct lac_http_options: whether a route is one that the other server answers. */
bool lac_nodes_is_elsewhere(void *app, const struct lac_route *route);
/** And what passes the request on, to the `main_node` of the app. */
extern const struct lac_route lac_nodes_elsewhere;

#endif
