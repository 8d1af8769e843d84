#include "server/people/throttle.h"

#include <stddef.h>
#include <stdint.h>

enum { FORGET_MS = 3600 * 1000 };

/* FNV-1a of both texts, never 0. */
static uint64_t hash_of(const char *kind, const char *word)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (int i = 0; i < 2; i++) {
        for (const char *at = i == 0 ? kind : word; *at != '\0'; at++) {
            hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
        }
        hash = (hash ^ 0xff) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

static int find(const struct lac_throttle *throttle, uint64_t hash)
{
    for (int i = 0; i < LAC_THROTTLE_WORDS; i++) {
        if (throttle->rows[i].word == hash) {
            return i;
        }
    }
    return -1;
}

int64_t lac_throttle_wait_s(const struct lac_throttle *throttle, const char *kind, const char *word,
                            int64_t now_ms)
{
    const int at = find(throttle, hash_of(kind, word));
    int64_t wait_s = 2;
    int64_t left_ms;

    if (at < 0 || throttle->rows[at].failures < LAC_THROTTLE_FREE ||
        now_ms - throttle->rows[at].last_ms > FORGET_MS) {
        return 0;
    }
    for (uint32_t n = LAC_THROTTLE_FREE;
         n < throttle->rows[at].failures && wait_s < LAC_THROTTLE_WAIT_S_MAX; n++) {
        wait_s *= 2;
    }
    wait_s = wait_s < LAC_THROTTLE_WAIT_S_MAX ? wait_s : LAC_THROTTLE_WAIT_S_MAX;
    left_ms = throttle->rows[at].last_ms + wait_s * 1000 - now_ms;
    return left_ms <= 0 ? 0 : (left_ms + 999) / 1000;
}

void lac_throttle_failed(struct lac_throttle *throttle, const char *kind, const char *word,
                         int64_t now_ms)
{
    const uint64_t hash = hash_of(kind, word);
    int at = find(throttle, hash);

    if (at < 0) { /* an empty row, or the one whose failures are oldest */
        at = 0;
        for (int i = 1; i < LAC_THROTTLE_WORDS && throttle->rows[at].word != 0; i++) {
            if (throttle->rows[i].word == 0 ||
                throttle->rows[i].last_ms < throttle->rows[at].last_ms) {
                at = i;
            }
        }
        throttle->rows[at].word = hash;
        throttle->rows[at].failures = 0;
    } else if (now_ms - throttle->rows[at].last_ms > FORGET_MS) {
        throttle->rows[at].failures = 0;
    }
    throttle->rows[at].failures += throttle->rows[at].failures < 1000;
    throttle->rows[at].last_ms = now_ms;
}

void lac_throttle_succeeded(struct lac_throttle *throttle, const char *kind, const char *word)
{
    const int at = find(throttle, hash_of(kind, word));

    if (at >= 0) {
        throttle->rows[at].word = 0;
    }
}
