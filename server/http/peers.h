#ifndef LAC_SERVER_HTTP_PEERS_H
#define LAC_SERVER_HTTP_PEERS_H

/*
 * How many connections each address holds, and all together, over all loops, so that one peer
 * cannot take all. Fixed memory; thread-safe.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <sys/socket.h>

struct lac_peers;

struct lac_peers_limits {
    unsigned all;
    unsigned loopback; /**< 127.0.0.0/8 and ::1 together */
    unsigned address;  /**< each other address */
};

LAC_MUST_USE enum lac_status lac_peers_create(const struct lac_peers_limits *limits,
                                              struct lac_peers **ret_peers);
void lac_peers_destroy(struct lac_peers *peers);

enum lac_entry_answer {
    LAC_PEERS_ENTERED = 0,
    LAC_PEERS_FULL,         /**< as many as there may be at all */
    LAC_PEERS_ADDRESS_FULL, /**< as many as this address may have */
};

/** Count one in, if there is room. */
LAC_MUST_USE enum lac_entry_answer lac_peers_enter(struct lac_peers *peers,
                                                   const struct sockaddr *address);
/** Count one out that entered. */
void lac_peers_leave(struct lac_peers *peers, const struct sockaddr *address);

/** Whether both are counted as one address. */
bool lac_peers_are_same(const struct sockaddr *a, const struct sockaddr *b);

/** Whether the address is this machine's own loopback. */
bool lac_address_is_loopback(const struct sockaddr *address);

#endif
