#include "server/hangs/hangs.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lac_hangs {
    pthread_mutex_t lock;
    uint32_t count;
    struct lac_hang *items[LAC_HANGS_MAX]; /* the oldest first */
};

struct lac_hangs *lac_hangs_create(void)
{
    struct lac_hangs *const hangs = calloc(1, sizeof(*hangs));

    if (hangs != NULL) {
        (void)pthread_mutex_init(&hangs->lock, NULL);
    }
    return hangs;
}

void lac_hangs_destroy(struct lac_hangs *hangs)
{
    if (hangs == NULL) {
        return;
    }
    for (uint32_t i = 0; i < hangs->count; i++) {
        free(hangs->items[i]);
    }
    (void)pthread_mutex_destroy(&hangs->lock);
    free(hangs);
}

/* @return `count`: there is none */
static uint32_t find(const struct lac_hangs *hangs, const char *upload)
{
    uint32_t i = 0;

    while (i < hangs->count && strcmp(hangs->items[i]->upload, upload) != 0) {
        i++;
    }
    return i;
}

/* Whether another upload tells a hang of the same run. */
static bool has_sibling(const struct lac_hangs *hangs, const struct lac_hang *hang)
{
    for (uint32_t i = 0; hang->run[0] != '\0' && i < hangs->count; i++) {
        const struct lac_hang *const other = hangs->items[i];

        if (strcmp(other->upload, hang->upload) != 0 && strcmp(other->run, hang->run) == 0 &&
            strcmp(other->project, hang->project) == 0) {
            return true;
        }
    }
    return false;
}

/* With the lock. */
static enum lac_hangs_answer put(struct lac_hangs *hangs, const struct lac_hang *hang)
{
    const uint32_t at = find(hangs, hang->upload);
    struct lac_hang *copy;

    if (at < hangs->count) {
        const int64_t since_unix_ms = hangs->items[at]->since_unix_ms;

        *hangs->items[at] = *hang;
        hangs->items[at]->since_unix_ms = since_unix_ms;
        return LAC_HANGS_KNOWN;
    }
    copy = hangs->count < LAC_HANGS_MAX ? malloc(sizeof(*copy)) : NULL;
    if (copy == NULL) {
        return LAC_HANGS_FULL;
    }
    *copy = *hang;
    hangs->items[hangs->count++] = copy;
    return has_sibling(hangs, hang) ? LAC_HANGS_MORE : LAC_HANGS_NEW;
}

enum lac_hangs_answer lac_hangs_put(struct lac_hangs *hangs, const struct lac_hang *hang)
{
    assert(hangs != NULL && hang != NULL);
    enum lac_hangs_answer answer;

    (void)pthread_mutex_lock(&hangs->lock);
    answer = put(hangs, hang);
    (void)pthread_mutex_unlock(&hangs->lock);
    return answer;
}

/* With the lock. */
static void take_out(struct lac_hangs *hangs, uint32_t at)
{
    free(hangs->items[at]);
    hangs->count--;
    memmove(&hangs->items[at], &hangs->items[at + 1],
            (hangs->count - at) * sizeof(hangs->items[0]));
}

bool lac_hangs_remove(struct lac_hangs *hangs, const char *upload, struct lac_hang *ret,
                      bool *ret_is_last)
{
    assert(hangs != NULL && upload != NULL && ret != NULL && ret_is_last != NULL);
    bool is_there;
    uint32_t at;

    (void)pthread_mutex_lock(&hangs->lock);
    at = find(hangs, upload);
    is_there = at < hangs->count;
    if (is_there) {
        *ret = *hangs->items[at];
        *ret_is_last = !has_sibling(hangs, ret);
        take_out(hangs, at);
    }
    (void)pthread_mutex_unlock(&hangs->lock);
    return is_there;
}

void lac_hangs_sweep(struct lac_hangs *hangs, uint64_t now_ns,
                     bool (*is_over)(void *context, const char *upload), void *context)
{
    assert(hangs != NULL && is_over != NULL);
    (void)pthread_mutex_lock(&hangs->lock);
    for (uint32_t i = hangs->count; i-- > 0;) {
        const struct lac_hang *const hang = hangs->items[i];

        if (now_ns > hang->heard_ns + LAC_HANG_LEASE_S * UINT64_C(1000000000) ||
            is_over(context, hang->upload)) {
            take_out(hangs, i);
        }
    }
    (void)pthread_mutex_unlock(&hangs->lock);
}

bool lac_hangs_at(struct lac_hangs *hangs, uint32_t i, struct lac_hang *ret)
{
    assert(hangs != NULL && ret != NULL);
    bool is_there;

    (void)pthread_mutex_lock(&hangs->lock);
    is_there = i < hangs->count;
    if (is_there) {
        *ret = *hangs->items[i];
    }
    (void)pthread_mutex_unlock(&hangs->lock);
    return is_there;
}
