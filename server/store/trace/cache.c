#include "server/store/trace/cache.h"

#include "analysis/model/chunk.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLOT_COUNT = 4096, CODECS_KEPT = 8 };

struct lac_cache_entry {
    struct lac_cache_key key;
    void *data;
    void (*free_data)(void *);
    uint64_t size_bytes;
    uint32_t pin_count;
    struct lac_cache_entry *chain;         /**< same slot of the hash table */
    struct lac_cache_entry *newer, *older; /**< order of use */
};

struct lac_cache {
    pthread_mutex_t lock;
    uint64_t bytes_max, bytes_used;
    uint64_t owner_count;
    struct lac_cache_entry *newest, *oldest;
    struct lac_cache_entry *slots[SLOT_COUNT];
    struct lac_chunk_codec *codecs[CODECS_KEPT];
    unsigned codec_count;
};

enum lac_status lac_cache_create(uint64_t bytes_max, struct lac_cache **ret_cache)
{
    struct lac_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (pthread_mutex_init(&cache->lock, NULL) != 0) {
        free(cache);
        return LAC_ERR_NOMEM;
    }
    cache->bytes_max = bytes_max;
    *ret_cache = cache;
    return LAC_OK;
}

static unsigned slot_of(const struct lac_cache_key *key)
{
    uint64_t hash = key->owner * 0x9E3779B97F4A7C15U ^ key->index * 0xC2B2AE3D27D4EB4FU ^
                    (uint64_t)key->type * 0x165667B19E3779F9U;

    return (unsigned)(hash >> 40) % SLOT_COUNT;
}

static bool same_key(const struct lac_cache_key *a, const struct lac_cache_key *b)
{
    return a->owner == b->owner && a->index == b->index && a->type == b->type;
}

static void unlink_use(struct lac_cache *cache, struct lac_cache_entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void link_newest(struct lac_cache *cache, struct lac_cache_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static struct lac_cache_entry *find(struct lac_cache *cache, const struct lac_cache_key *key)
{
    struct lac_cache_entry *entry = cache->slots[slot_of(key)];

    while (entry != NULL && !same_key(&entry->key, key)) {
        entry = entry->chain;
    }
    return entry;
}

static void remove_entry(struct lac_cache *cache, struct lac_cache_entry *entry)
{
    struct lac_cache_entry **link = &cache->slots[slot_of(&entry->key)];

    assert(entry->pin_count == 0);
    while (*link != entry) {
        link = &(*link)->chain;
    }
    *link = entry->chain;
    unlink_use(cache, entry);
    cache->bytes_used -= entry->size_bytes;
    entry->free_data(entry->data);
    free(entry);
}

/** Free from the oldest on until the bound holds or all that is left is in use. */
static void shrink(struct lac_cache *cache)
{
    struct lac_cache_entry *entry = cache->oldest;

    while (entry != NULL && cache->bytes_used > cache->bytes_max) {
        struct lac_cache_entry *newer = entry->newer;

        if (entry->pin_count == 0) {
            remove_entry(cache, entry);
        }
        entry = newer;
    }
}

void lac_cache_destroy(struct lac_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    while (cache->oldest != NULL) {
        remove_entry(cache, cache->oldest);
    }
    while (cache->codec_count > 0) {
        lac_chunk_codec_destroy(cache->codecs[--cache->codec_count]);
    }
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache);
}

uint64_t lac_cache_new_owner(struct lac_cache *cache)
{
    uint64_t owner;

    (void)pthread_mutex_lock(&cache->lock);
    owner = ++cache->owner_count;
    (void)pthread_mutex_unlock(&cache->lock);
    return owner;
}

static void pin(struct lac_cache *cache, struct lac_cache_entry *entry)
{
    entry->pin_count++;
    unlink_use(cache, entry);
    link_newest(cache, entry);
}

struct lac_cache_entry *lac_cache_get(struct lac_cache *cache, const struct lac_cache_key *key)
{
    struct lac_cache_entry *entry;

    (void)pthread_mutex_lock(&cache->lock);
    entry = find(cache, key);
    if (entry != NULL) {
        pin(cache, entry);
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return entry;
}

struct lac_cache_entry *lac_cache_put(struct lac_cache *cache, const struct lac_cache_key *key,
                                      void *data, uint64_t size_bytes, void (*free_data)(void *))
{
    struct lac_cache_entry *fresh = calloc(1, sizeof(*fresh));
    struct lac_cache_entry *entry;

    if (fresh == NULL) {
        free_data(data);
        return NULL;
    }
    (void)pthread_mutex_lock(&cache->lock);
    entry = find(cache, key);
    if (entry != NULL) {
        pin(cache, entry);
    } else {
        unsigned slot = slot_of(key);

        *fresh = (struct lac_cache_entry){.key = *key,
                                          .data = data,
                                          .free_data = free_data,
                                          .size_bytes = size_bytes,
                                          .pin_count = 1,
                                          .chain = cache->slots[slot]};
        cache->slots[slot] = fresh;
        link_newest(cache, fresh);
        cache->bytes_used += size_bytes;
        shrink(cache);
        entry = fresh;
        fresh = NULL;
    }
    (void)pthread_mutex_unlock(&cache->lock);
    if (fresh != NULL) {
        free_data(data);
        free(fresh);
    }
    return entry;
}

void *lac_cache_data(const struct lac_cache_entry *entry)
{
    return entry->data;
}

void lac_cache_unpin(struct lac_cache *cache, struct lac_cache_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&cache->lock);
    assert(entry->pin_count > 0);
    entry->pin_count--;
    shrink(cache);
    (void)pthread_mutex_unlock(&cache->lock);
}

void lac_cache_drop_owner(struct lac_cache *cache, uint64_t owner)
{
    (void)pthread_mutex_lock(&cache->lock);
    for (struct lac_cache_entry *entry = cache->oldest; entry != NULL;) {
        struct lac_cache_entry *newer = entry->newer;

        if (entry->key.owner == owner) {
            remove_entry(cache, entry);
        }
        entry = newer;
    }
    (void)pthread_mutex_unlock(&cache->lock);
}

uint64_t lac_cache_used_bytes(struct lac_cache *cache)
{
    uint64_t used;

    (void)pthread_mutex_lock(&cache->lock);
    used = cache->bytes_used;
    (void)pthread_mutex_unlock(&cache->lock);
    return used;
}

uint64_t lac_cache_max_bytes(const struct lac_cache *cache)
{
    return cache->bytes_max;
}

struct lac_chunk_codec *lac_cache_take_codec(struct lac_cache *cache)
{
    struct lac_chunk_codec *codec = NULL;

    (void)pthread_mutex_lock(&cache->lock);
    if (cache->codec_count > 0) {
        codec = cache->codecs[--cache->codec_count];
    }
    (void)pthread_mutex_unlock(&cache->lock);
    if (codec == NULL && lac_chunk_codec_create(&codec) != LAC_OK) {
        return NULL;
    }
    return codec;
}

void lac_cache_give_codec(struct lac_cache *cache, struct lac_chunk_codec *codec)
{
    if (codec == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&cache->lock);
    if (cache->codec_count < CODECS_KEPT) {
        cache->codecs[cache->codec_count++] = codec;
        codec = NULL;
    }
    (void)pthread_mutex_unlock(&cache->lock);
    lac_chunk_codec_destroy(codec);
}
