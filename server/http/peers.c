#include "server/http/peers.h"

#include "analysis/model/status.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SLOT_COUNT = 16384 }; /* more addresses than we hold connections */

struct slot {
    uint8_t address[16];
    unsigned count; /* 0: free, or left behind */
    bool used;
};

struct lac_peers {
    pthread_mutex_t mutex;
    struct lac_peers_limits limits;
    unsigned all_count;
    unsigned loopback_count;
    unsigned used_count;
    struct slot slot[SLOT_COUNT];
};

/* IPv4 as its mapped form; an IPv6 peer is its /64, since one host may use all of it. */
static void address_key(const struct sockaddr *address, uint8_t key[16])
{
    memset(key, 0, 16);
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        key[10] = 0xff;
        key[11] = 0xff;
        memcpy(key + 12, &v4->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

        memcpy(key, &v6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? 16 : 8);
    }
}

bool lac_address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
    }
    return address->sa_family == AF_UNIX;
}

enum lac_status lac_peers_create(const struct lac_peers_limits *limits,
                                 struct lac_peers **ret_peers)
{
    struct lac_peers *peers = calloc(1, sizeof(*peers));

    if (peers == NULL) {
        return LAC_ERR_NOMEM;
    }
    pthread_mutex_init(&peers->mutex, NULL);
    peers->limits = *limits;
    *ret_peers = peers;
    return LAC_OK;
}

void lac_peers_destroy(struct lac_peers *peers)
{
    if (peers != NULL) {
        pthread_mutex_destroy(&peers->mutex);
        free(peers);
    }
}

/* The address's slot, or (for `add`) a fresh one. NULL: not there, or the table is full. */
static struct slot *find(struct lac_peers *peers, const uint8_t key[16], bool add)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (unsigned i = 0; i < 16; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x100000001b3);
    }
    /* FNV leaves the last byte out of the middle bits: mix once more */
    hash = (hash ^ (hash >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned probe = 0; probe < SLOT_COUNT; probe++) {
        struct slot *slot = &peers->slot[((hash >> 40) + probe) % SLOT_COUNT];

        if (!slot->used) {
            if (!add) {
                return NULL;
            }
            slot->used = true;
            peers->used_count++;
            memcpy(slot->address, key, 16);
            return slot;
        }
        if (memcmp(slot->address, key, 16) == 0) {
            return slot;
        }
    }
    return NULL;
}

/* Addresses that left keep their slot until the table is half full; then it is rebuilt. */
static void sweep(struct lac_peers *peers)
{
    struct slot *live;
    unsigned live_count = 0;

    if (peers->used_count < SLOT_COUNT / 2) {
        return;
    }
    live = malloc(sizeof(peers->slot));
    if (live == NULL) {
        return;
    }
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        if (peers->slot[i].used && peers->slot[i].count > 0) {
            live[live_count++] = peers->slot[i];
        }
    }
    memset(peers->slot, 0, sizeof(peers->slot));
    peers->used_count = 0;
    for (unsigned i = 0; i < live_count; i++) {
        find(peers, live[i].address, true)->count = live[i].count;
    }
    free(live);
}

bool lac_peers_are_same(const struct sockaddr *a, const struct sockaddr *b)
{
    uint8_t key_a[16];
    uint8_t key_b[16];

    if (lac_address_is_loopback(a) || lac_address_is_loopback(b)) {
        return lac_address_is_loopback(a) && lac_address_is_loopback(b);
    }
    address_key(a, key_a);
    address_key(b, key_b);
    return memcmp(key_a, key_b, sizeof(key_a)) == 0;
}

/* The count that this address has of its own, and its limit. NULL: the table is full. */
static unsigned *own_count(struct lac_peers *peers, const struct sockaddr *address,
                           unsigned *ret_max)
{
    uint8_t key[16];
    struct slot *slot;

    if (lac_address_is_loopback(address)) {
        *ret_max = peers->limits.loopback;
        return &peers->loopback_count;
    }
    *ret_max = peers->limits.address;
    sweep(peers);
    address_key(address, key);
    slot = find(peers, key, true);
    return slot == NULL ? NULL : &slot->count;
}

enum lac_entry_answer lac_peers_enter(struct lac_peers *peers, const struct sockaddr *address)
{
    enum lac_entry_answer answer = LAC_PEERS_ENTERED;
    unsigned max;

    pthread_mutex_lock(&peers->mutex);
    unsigned *const count = own_count(peers, address, &max);
    if (peers->all_count >= peers->limits.all) {
        answer = LAC_PEERS_FULL;
    } else if (count != NULL && *count >= max) {
        answer = LAC_PEERS_ADDRESS_FULL;
    } else {
        peers->all_count++;
        if (count != NULL) {
            (*count)++;
        }
    }
    pthread_mutex_unlock(&peers->mutex);
    return answer;
}

void lac_peers_leave(struct lac_peers *peers, const struct sockaddr *address)
{
    uint8_t key[16];

    pthread_mutex_lock(&peers->mutex);
    peers->all_count -= peers->all_count > 0 ? 1 : 0;
    if (lac_address_is_loopback(address)) {
        peers->loopback_count -= peers->loopback_count > 0 ? 1 : 0;
    } else {
        address_key(address, key);
        struct slot *slot = find(peers, key, false);
        if (slot != NULL && slot->count > 0) {
            slot->count--;
        }
    }
    pthread_mutex_unlock(&peers->mutex);
}
