#include "server/api/run_cache.h"

#include "server/http/buffer.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 64 };

struct entry {
    char run[LAC_ID_SIZE]; /**< "" when free */
    uint64_t stamp;
    uint64_t used_at;
    uint64_t size_bytes;
    char *text[LAC_RUN_DETAIL_COUNT_];
};

struct lac_run_cache {
    pthread_mutex_t lock; /**< guards all below */
    struct entry entries[ENTRIES];
    uint64_t size_bytes;
    uint64_t max_bytes;
    uint64_t clock;

    pthread_mutex_t work;
};

static void drop(struct lac_run_cache *cache, struct entry *entry)
{
    for (int detail = 0; detail < LAC_RUN_DETAIL_COUNT_; detail++) {
        free(entry->text[detail]);
    }
    cache->size_bytes -= entry->size_bytes;
    *entry = (struct entry){0};
}

struct lac_run_cache *lac_run_cache_create(uint64_t max_bytes)
{
    struct lac_run_cache *cache = calloc(1, sizeof *cache);

    if (cache != NULL) {
        (void)pthread_mutex_init(&cache->lock, NULL);
        (void)pthread_mutex_init(&cache->work, NULL);
        cache->max_bytes = max_bytes;
    }
    return cache;
}

void lac_run_cache_destroy(struct lac_run_cache *cache)
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
static struct entry *find(struct lac_run_cache *cache, const char *run)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        if (strcmp(cache->entries[i].run, run) == 0) {
            return &cache->entries[i];
        }
    }
    return NULL;
}

bool lac_run_cache_get(struct lac_run_cache *cache, const char *run, uint64_t stamp, int detail,
                       struct lac_buffer *out)
{
    struct entry *entry;
    bool is_found;

    (void)pthread_mutex_lock(&cache->lock);
    entry = find(cache, run);
    is_found = entry != NULL && entry->stamp == stamp;
    if (is_found) {
        entry->used_at = ++cache->clock;
        lac_buffer_puts(out, entry->text[detail]);
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return is_found;
}

/** With the lock held: the free entry, or the one that was not used for longest. */
static struct entry *oldest(struct lac_run_cache *cache)
{
    struct entry *oldest = &cache->entries[0];

    for (unsigned i = 1; i < ENTRIES; i++) {
        if (cache->entries[i].used_at < oldest->used_at) {
            oldest = &cache->entries[i];
        }
    }
    return oldest;
}

/** With the lock held: the used entry that was not used for longest. */
static struct entry *oldest_used(struct lac_run_cache *cache)
{
    struct entry *oldest = NULL;

    for (unsigned i = 0; i < ENTRIES; i++) {
        struct entry *entry = &cache->entries[i];

        if (entry->run[0] != '\0' && (oldest == NULL || entry->used_at < oldest->used_at)) {
            oldest = entry;
        }
    }
    return oldest;
}

void lac_run_cache_put(struct lac_run_cache *cache, const char *run, uint64_t stamp,
                       char *text[LAC_RUN_DETAIL_COUNT_])
{
    struct entry entry = {.stamp = stamp};

    (void)snprintf(entry.run, sizeof entry.run, "%s", run);
    for (int detail = 0; detail < LAC_RUN_DETAIL_COUNT_; detail++) {
        entry.text[detail] = text[detail];
        entry.size_bytes += strlen(text[detail]) + 1;
    }
    (void)pthread_mutex_lock(&cache->lock);
    struct entry *place = find(cache, run);

    if (place == NULL) {
        place = oldest(cache);
    }
    if (place->run[0] != '\0') {
        drop(cache, place);
    }
    while (cache->size_bytes + entry.size_bytes > cache->max_bytes && oldest_used(cache) != NULL) {
        drop(cache, oldest_used(cache));
    }
    cache->size_bytes += entry.size_bytes;
    entry.used_at = ++cache->clock;
    *place = entry;
    if (cache->size_bytes > cache->max_bytes) {
        drop(cache, place); /* larger than the cache on its own */
    }
    (void)pthread_mutex_unlock(&cache->lock);
}

void lac_run_cache_begin_work(struct lac_run_cache *cache)
{
    (void)pthread_mutex_lock(&cache->work);
}

void lac_run_cache_end_work(struct lac_run_cache *cache)
{
    (void)pthread_mutex_unlock(&cache->work);
}
