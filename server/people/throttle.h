#ifndef LAC_SERVER_PEOPLE_THROTTLE_H
#define LAC_SERVER_PEOPLE_THROTTLE_H

/*
 * How often somebody may guess. Failures are counted by a word (a user's name, an address): the
 * first five cost nothing, then one has to wait 2 s, 4 s, 8 s up to 15 minutes. A success forgets
 * the word; so does an hour without failures. A table of fixed size: where it is full, the word
 * whose failures are oldest goes.
 *
 * Not thread-safe.
 */

#include <stdint.h>

enum { LAC_THROTTLE_WORDS = 2048, LAC_THROTTLE_FREE = 5, LAC_THROTTLE_WAIT_S_MAX = 900 };

struct lac_throttle {
    struct {
        uint64_t word; /**< hash; 0 empty */
        uint32_t failures;
        int64_t last_ms;
    } rows[LAC_THROTTLE_WORDS];
};

/** Seconds that the word has to wait before it is looked at again; 0: now. */
int64_t lac_throttle_wait_s(const struct lac_throttle *throttle, const char *kind, const char *word,
                            int64_t now_ms);
void lac_throttle_failed(struct lac_throttle *throttle, const char *kind, const char *word,
                         int64_t now_ms);
void lac_throttle_succeeded(struct lac_throttle *throttle, const char *kind, const char *word);

#endif
