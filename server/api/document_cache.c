#include "server/api/document_cache.h"

#include "server/base/buffer.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 128 };

struct entry {
    char key[LAC_DOCUMENT_KEY_SIZE];
    char stamp[LAC_DOCUMENT_STAMP_SIZE];
    uint64_t used_at; /**< 0 when free */
    size_t size_bytes;
    char *text;
};

struct lac_document_cache {
    pthread_mutex_t lock; /**< guards all below */
    struct entry entries[ENTRIES];
    uint64_t size_bytes;
    uint64_t max_bytes;
    uint64_t clock;

    pthread_mutex_t work;
};

static void drop(struct lac_document_cache *cache, struct entry *entry)
{
    free(entry->text);
    cache->size_bytes -= entry->size_bytes;
    *entry = (struct entry){0};
}

struct lac_document_cache *lac_document_cache_create(uint64_t max_bytes)
{
    struct lac_document_cache *cache = calloc(1, sizeof(*cache));

    if (cache != NULL) {
        (void)pthread_mutex_init(&cache->lock, NULL);
        (void)pthread_mutex_init(&cache->work, NULL);
        cache->max_bytes = max_bytes;
    }
    return cache;
}

void lac_document_cache_destroy(struct lac_document_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        drop(cache, &cache->entries[i]);
    }
    (void)pthread_mutex_destroy(&cache->lock);
    (void)pthread_mutex_destroy(&cache->work);
    free(cache);
}

/** With the lock held. */
static struct entry *find(struct lac_document_cache *cache, const char *key)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct entry *entry = &cache->entries[i];

        if (entry->used_at != 0 && strcmp(entry->key, key) == 0) {
            return entry;
        }
    }
    return NULL;
}

bool lac_document_cache_get(struct lac_document_cache *cache, const char *key, const char *stamp,
                            struct lac_buffer *out)
{
    struct entry *entry;
    bool is_found;

    (void)pthread_mutex_lock(&cache->lock);
    entry = find(cache, key);
    is_found = entry != NULL && strcmp(entry->stamp, stamp) == 0;
    if (is_found) {
        entry->used_at = ++cache->clock;
        lac_buffer_add(out, entry->text, entry->size_bytes);
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return is_found;
}

/** With the lock held: a free entry, or the one that was not used for longest. */
static struct entry *oldest(struct lac_document_cache *cache)
{
    struct entry *oldest = &cache->entries[0];

    for (unsigned i = 1; i < ENTRIES; i++) {
        if (cache->entries[i].used_at < oldest->used_at) {
            oldest = &cache->entries[i];
        }
    }
    return oldest;
}

/** With the lock held: drop what was not used for longest until `size_bytes` more fit. */
static void make_room(struct lac_document_cache *cache, size_t size_bytes)
{
    while (cache->size_bytes + size_bytes > cache->max_bytes) {
        struct entry *victim = NULL;

        for (unsigned i = 0; i < ENTRIES; i++) {
            struct entry *entry = &cache->entries[i];

            if (entry->used_at != 0 && (victim == NULL || entry->used_at < victim->used_at)) {
                victim = entry;
            }
        }
        drop(cache, victim); /* while there are bytes there is an entry */
    }
}

void lac_document_cache_put(struct lac_document_cache *cache, const char *key, const char *stamp,
                            const char *text, size_t length)
{
    char *copy = length <= cache->max_bytes ? malloc(length > 0 ? length : 1) : NULL;
    struct entry *place;

    if (copy == NULL) {
        return;
    }
    memcpy(copy, text, length);
    (void)pthread_mutex_lock(&cache->lock);
    place = find(cache, key);
    if (place != NULL) {
        drop(cache, place);
    }
    make_room(cache, length);
    place = oldest(cache);
    drop(cache, place);
    (void)snprintf(place->key, sizeof(place->key), "%s", key);
    (void)snprintf(place->stamp, sizeof(place->stamp), "%s", stamp);
    place->used_at = ++cache->clock;
    place->size_bytes = length;
    place->text = copy;
    cache->size_bytes += length;
    (void)pthread_mutex_unlock(&cache->lock);
}

void lac_document_cache_begin_work(struct lac_document_cache *cache)
{
    (void)pthread_mutex_lock(&cache->work);
}

void lac_document_cache_end_work(struct lac_document_cache *cache)
{
    (void)pthread_mutex_unlock(&cache->work);
}
