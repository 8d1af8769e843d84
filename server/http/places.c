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
    TRIES = 3,          /* one place of all, one of the address, and then in */
    LOOK_FOR_IDLE = 64, /* so many of the oldest are looked at for an idle one */
};

/* Any loop may end a connection of another, by shutdown(): one that is listed here is not closed
 * before it left the list, which takes the mutex. */
struct lac_places {
    struct lac_peers *peers;
    pthread_mutex_t mutex; /* guards all below, and every place */
    struct lac_place *oldest;
    struct lac_place *newest;
    unsigned displaced_max;
    unsigned displaced_open; /* ended, but not yet closed */
};

enum lac_status lac_places_create(const struct lac_peers_limits *limits,
                                  struct lac_places **ret_places)
{
    struct lac_places *places = calloc(1, sizeof(*places));
    enum lac_status status;

    if (places == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = lac_peers_create(limits, &places->peers);
    if (status != LAC_OK) {
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

void lac_places_begin(struct lac_places *places, struct lac_place *place, int fd,
                      const struct sockaddr_storage *address)
{
    *place = (struct lac_place){.fd = fd, .address = *address};
    pthread_mutex_lock(&places->mutex);
    link_place(places, place);
    pthread_mutex_unlock(&places->mutex);
}

void lac_places_use(struct lac_places *places, struct lac_place *place, bool is_busy)
{
    pthread_mutex_lock(&places->mutex);
    if (place->is_listed) {
        place->is_busy = is_busy;
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
    if (place->is_displaced) {
        places->displaced_open--;
    } else {
        lac_peers_leave(places->peers, (const struct sockaddr *)&place->address);
    }
    pthread_mutex_unlock(&places->mutex);
}

/* The one to end for a newcomer of that address, NULL: of any. */
static struct lac_place *choose(const struct lac_places *places, const struct sockaddr *address)
{
    struct lac_place *busy = NULL;
    unsigned looked = 0;

    for (struct lac_place *place = places->oldest; place != NULL; place = place->newer) {
        if (address != NULL &&
            !lac_peers_are_same((const struct sockaddr *)&place->address, address)) {
            continue;
        }
        if (!place->is_busy) {
            return place;
        }
        busy = busy != NULL ? busy : place;
        if (++looked == LOOK_FOR_IDLE) {
            break;
        }
    }
    return busy;
}

static bool make_place(struct lac_places *places, const struct sockaddr *address)
{
    struct lac_place *const place =
        places->displaced_open < places->displaced_max ? choose(places, address) : NULL;

    if (place == NULL) {
        return false;
    }
    unlink_place(places, place);
    place->is_displaced = true;
    places->displaced_open++;
    lac_peers_leave(places->peers, (const struct sockaddr *)&place->address);
    (void)shutdown(place->fd, SHUT_RDWR); /* its loop reads the end, and closes it */
    return true;
}

bool lac_places_enter(struct lac_places *places, const struct sockaddr *address,
                      unsigned *ret_displaced)
{
    bool entered = false;

    *ret_displaced = 0;
    pthread_mutex_lock(&places->mutex);
    for (unsigned i = 0; i < TRIES && !entered; i++) {
        const enum lac_entry_answer answer = lac_peers_enter(places->peers, address);

        entered = answer == LAC_PEERS_ENTERED;
        if (!entered) {
            if (!make_place(places, answer == LAC_PEERS_ADDRESS_FULL ? address : NULL)) {
                break;
            }
            (*ret_displaced)++;
        }
    }
    pthread_mutex_unlock(&places->mutex);
    return entered;
}

void lac_places_leave(struct lac_places *places, const struct sockaddr *address)
{
    lac_peers_leave(places->peers, address);
}
