#ifndef LAC_SERVER_HTTP_PLACES_H
#define LAC_SERVER_HTTP_PLACES_H

/*
 * Which connections are accepted when all places are taken. On a shared machine anybody can open
 * connections, and 127.0.0.1 is everybody's address. So a new connection takes the place of the one
 * that has been idle longest among those that never showed the key. Connections that showed it keep
 * their place. Thread-safe: the loops share the places.
 */

#include "analysis/model/status.h"
#include "server/http/peers.h"

#include <stdbool.h>
#include <sys/socket.h>

/** Connections that were ended for others and are not closed yet, at most: they still hold their
 * descriptors. */
enum { LAC_PLACES_SLACK = 256 };

/** One connection's; lives in its owner's structure and is only touched through this module. */
struct lac_place {
    struct lac_place *older; /**< of those without the key: idle for longer */
    struct lac_place *newer;
    struct sockaddr_storage address;
    int fd;
    bool is_listed; /**< never showed the key: may be ended for another */
    bool is_busy;   /**< has a request */
    bool is_displaced;
};

struct lac_places;

LAC_MUST_USE enum lac_status lac_places_create(const struct lac_peers_limits *limits,
                                               struct lac_places **ret_places);
void lac_places_destroy(struct lac_places *places);

/**
 * Count a newcomer in, and if need be end another connection for it.
 *
 * @param ret_displaced how many were ended
 * @return false: there is no place for it
 */
LAC_MUST_USE bool lac_places_enter(struct lac_places *places, const struct sockaddr *address,
                                   unsigned *ret_displaced);
/** A newcomer that entered became no connection. */
void lac_places_leave(struct lac_places *places, const struct sockaddr *address);

/** A newcomer that entered is the connection `fd`. */
void lac_places_begin(struct lac_places *places, struct lac_place *place, int fd,
                      const struct sockaddr_storage *address);
/** Before `fd` is closed. */
void lac_places_end(struct lac_places *places, struct lac_place *place);
/** A request of it began, or ended. */
void lac_places_use(struct lac_places *places, struct lac_place *place, bool is_busy);
/** It showed the key. */
void lac_places_trust(struct lac_places *places, struct lac_place *place);

#endif
