#include "server/http/places.h"

#include "analysis/model/status.h"
#include "server/http/peers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    TRIES = 3,           /* one place of all, one of the address, and then in */
    LOOK_FOR_IDLE = 64,  /* so many of the oldest are looked at for an idle one, ... */
    LOOK_FOR_OWN = 8192, /* ... but when another loop is late in closing, for one of this loop */
    TOLD_PART = 4, /* of what may be ended and not yet closed, for those that are turned away */
};

/* Any loop may end a connection of another, by shutdown(): one that is listed here is not closed
 * before it left the list, which takes the mutex. */
struct lac_places {
    struct lac_peers *peers;
    pthread_mutex_t mutex; /* guards all below, and every place */
    struct lac_place *oldest;
    struct lac_place *newest;
    char *farewell;
    unsigned displaced_max;
    unsigned displaced_open;   /* ended, but not yet closed */
    unsigned turned_away_open; /* of them those that never had a place */
};

enum lac_status lac_places_create(const struct lac_peers_limits *limits, const char *farewell,
                                  struct lac_places **ret_places)
{
    struct lac_places *places = calloc(1, sizeof(*places));
    enum lac_status status;

    if (places == NULL) {
        return LAC_ERR_NOMEM;
    }
    places->farewell = strdup(farewell);
    status = places->farewell != NULL ? lac_peers_create(limits, &places->peers) : LAC_ERR_NOMEM;
    if (status != LAC_OK) {
        free(places->farewell);
        free(places);
        return status;
    }
    pthread_mutex_init(&places->mutex, NULL);
    places->displaced_max =
        limits->all / 8 < LAC_PLACES_SLACK ? limits->all / 8 + 1 : LAC_PLACES_SLACK;
    *ret_places = places;
    return LAC_OK;
}

void lac_places_destroy(struct lac_places *places)
{
    if (places != NULL) {
        pthread_mutex_destroy(&places->mutex);
        lac_peers_destroy(places->peers);
        free(places->farewell);
        free(places);
    }
}

static void unlink_place(struct lac_places *places, struct lac_place *place)
{
    if (!place->is_listed) {
        return;
    }
    place->is_listed = false;
    if (place->older != NULL) {
        place->older->newer = place->newer;
    } else {
        places->oldest = place->newer;
    }
    if (place->newer != NULL) {
        place->newer->older = place->older;
    } else {
        places->newest = place->older;
    }
}

static void link_place(struct lac_places *places, struct lac_place *place)
{
    place->is_listed = true;
    place->newer = NULL;
    place->older = places->newest;
    if (places->newest != NULL) {
        places->newest->newer = place;
    } else {
        places->oldest = place;
    }
    places->newest = place;
}

void lac_places_begin(struct lac_places *places, struct lac_place *place,
                      enum lac_places_answer answer, const void *loop, int fd,
                      const struct sockaddr_storage *address)
{
    *place = (struct lac_place){.loop = loop,
                                .fd = fd,
                                .address = *address,
                                .is_turned_away = answer == LAC_PLACES_TURNED_AWAY};
    if (!place->is_turned_away) {
        pthread_mutex_lock(&places->mutex);
        link_place(places, place);
        pthread_mutex_unlock(&places->mutex);
    }
}

void lac_places_use(struct lac_places *places, struct lac_place *place, bool is_busy)
{
    pthread_mutex_lock(&places->mutex);
    if (place->is_listed) {
        place->is_busy = is_busy;
        place->was_used = place->was_used || is_busy;
        if (!is_busy) {
            unlink_place(places, place);
            link_place(places, place);
        }
    }
    pthread_mutex_unlock(&places->mutex);
}

void lac_places_trust(struct lac_places *places, struct lac_place *place)
{
    pthread_mutex_lock(&places->mutex);
    unlink_place(places, place);
    pthread_mutex_unlock(&places->mutex);
}

void lac_places_end(struct lac_places *places, struct lac_place *place)
{
    pthread_mutex_lock(&places->mutex);
    unlink_place(places, place);
    if (place->is_displaced || place->is_turned_away) {
        places->displaced_open--;
        places->turned_away_open -= place->is_turned_away;
    } else {
        lac_peers_leave(places->peers, (const struct sockaddr *)&place->address);
    }
    pthread_mutex_unlock(&places->mutex);
}

/* The one to end for a newcomer of that address, NULL: of any. Idle before busy, then own before
 * another loop's, then old before new. */
static struct lac_place *choose(const struct lac_places *places, const struct sockaddr *address,
                                const void *loop)
{
    struct lac_place *idle = NULL;
    struct lac_place *busy = NULL;
    const unsigned look =
        places->displaced_open > places->displaced_max / 2 ? LOOK_FOR_OWN : LOOK_FOR_IDLE;
    unsigned looked = 0;

    for (struct lac_place *place = places->oldest; place != NULL; place = place->newer) {
        if (address != NULL &&
            !lac_peers_are_same((const struct sockaddr *)&place->address, address)) {
            continue;
        }
        if (!place->is_busy && place->loop == loop) {
            return place;
        }
        idle = idle != NULL || place->is_busy ? idle : place;
        busy = busy != NULL ? busy : place;
        if (++looked == look) {
            break;
        }
    }
    return idle != NULL ? idle : busy;
}

static bool make_place(struct lac_places *places, const struct sockaddr *address, const void *loop)
{
    struct lac_place *const place =
        places->displaced_open < places->displaced_max ? choose(places, address, loop) : NULL;

    if (place == NULL) {
        return false;
    }
    unlink_place(places, place);
    place->is_displaced = true;
    places->displaced_open++;
    lac_peers_leave(places->peers, (const struct sockaddr *)&place->address);
    if (!place->was_used) {
        (void)!send(place->fd, places->farewell, strlen(places->farewell),
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)shutdown(place->fd, SHUT_RDWR); /* its loop reads the end, and closes it */
    return true;
}

enum lac_places_answer lac_places_enter(struct lac_places *places, const struct sockaddr *address,
                                        const void *loop, unsigned *ret_displaced)
{
    enum lac_places_answer answer = LAC_PLACES_NONE;

    *ret_displaced = 0;
    pthread_mutex_lock(&places->mutex);
    for (unsigned i = 0; i < TRIES && answer == LAC_PLACES_NONE; i++) {
        const enum lac_entry_answer entry = lac_peers_enter(places->peers, address);

        if (entry == LAC_PEERS_ENTERED) {
            answer = LAC_PLACES_ENTERED;
        } else if (!make_place(places, entry == LAC_PEERS_ADDRESS_FULL ? address : NULL, loop)) {
            break;
        } else {
            (*ret_displaced)++;
        }
    }
    if (answer == LAC_PLACES_NONE && places->displaced_open < places->displaced_max &&
        places->turned_away_open < places->displaced_max / TOLD_PART) {
        answer = LAC_PLACES_TURNED_AWAY;
        places->displaced_open++;
        places->turned_away_open++;
    }
    pthread_mutex_unlock(&places->mutex);
    return answer;
}

void lac_places_leave(struct lac_places *places, enum lac_places_answer answer,
                      const struct sockaddr *address)
{
    if (answer == LAC_PLACES_ENTERED) {
        lac_peers_leave(places->peers, address);
    } else if (answer == LAC_PLACES_TURNED_AWAY) {
        pthread_mutex_lock(&places->mutex);
        places->displaced_open--;
        places->turned_away_open--;
        pthread_mutex_unlock(&places->mutex);
    }
}
