#ifndef LAC_SERVER_HTTP_PLACES_H
#define LAC_SERVER_HTTP_PLACES_H

/*
 * Which connections are accepted when all places are taken. On a shared machine anybody can open
 * connections, and 127.0.0.1 is everybody's address. So a new connection takes the place of the one
 * that has been idle longest among those that never showed the key. Connections that showed it keep
 * their place. Who has to go before the first request, and who finds no place, is told why, as long
 * as few are. Thread-safe: the loops share the places.
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
    const void *loop; /**< who closes it */
    int fd;
    bool is_listed; /**< never showed the key: may be ended for another */
    bool is_busy;   /**< has a request */
    bool was_used; /**< had a request: words now would be taken for part of its reply or the next */
    bool is_displaced;
    bool is_turned_away; /**< found no place: is told so, and ended */
};

struct lac_places;

/** @param farewell what a connection is sent that has to go before its first request; copied */
LAC_MUST_USE enum lac_status lac_places_create(const struct lac_peers_limits *limits,
                                               const char *farewell,
                                               struct lac_places **ret_places);
void lac_places_destroy(struct lac_places *places);

enum lac_places_answer {
    LAC_PLACES_ENTERED = 0,
    LAC_PLACES_TURNED_AWAY, /**< no place, but room to be told so: answer and end it at once */
    LAC_PLACES_NONE,        /**< not even that */
};

/**
 * Count a newcomer in, and if need be end another connection for it: one of the same loop if one is
 * among the oldest, for it is closed before that loop takes in many more. (Those of a loop that does
 * not come to run would fill up what may be ended and not yet closed, and nobody could enter.)
 *
 * @param ret_displaced how many were ended
 */
LAC_MUST_USE enum lac_places_answer lac_places_enter(struct lac_places *places,
                                                     const struct sockaddr *address,
                                                     const void *loop, unsigned *ret_displaced);
/** A newcomer that was counted, as that answer says, became no connection. */
void lac_places_leave(struct lac_places *places, enum lac_places_answer answer,
                      const struct sockaddr *address);

/** A newcomer that was counted, as that answer says, is the connection `fd`. */
void lac_places_begin(struct lac_places *places, struct lac_place *place,
                      enum lac_places_answer answer, const void *loop, int fd,
                      const struct sockaddr_storage *address);
/** Before `fd` is closed. */
void lac_places_end(struct lac_places *places, struct lac_place *place);
/** A request of it is here with its whole header, or was answered: half a header keeps no place. */
void lac_places_use(struct lac_places *places, struct lac_place *place, bool is_busy);
/** It showed the key. */
void lac_places_trust(struct lac_places *places, struct lac_place *place);

#endif
