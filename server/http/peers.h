#ifndef LAC_SERVER_HTTP_PEERS_H
#define LAC_SERVER_HTTP_PEERS_H

/*
 * How many connections each address holds, over all loops, so that one peer cannot take all. Fixed
 * memory; thread-safe.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <sys/socket.h>

struct lac_peers;

/** @param loopback_max connections of 127.0.0.0/8 and ::1 together; others: `peer_max` an address
 */
LAC_MUST_USE enum lac_status lac_peers_create(unsigned loopback_max, unsigned peer_max,
                                              struct lac_peers **ret_peers);
void lac_peers_destroy(struct lac_peers *peers);

/** Whether one more is allowed now. Does not count it. */
bool lac_peers_may_enter(struct lac_peers *peers, const struct sockaddr *address);
/** Count one in or out. */
void lac_peers_enter(struct lac_peers *peers, const struct sockaddr *address);
void lac_peers_leave(struct lac_peers *peers, const struct sockaddr *address);

/** Whether the address is this machine's own loopback. */
bool lac_address_is_loopback(const struct sockaddr *address);

#endif
