#ifndef LAC_TESTS_SUPPORT_ROUNDS_H
#define LAC_TESTS_SUPPORT_ROUNDS_H

#include <stdbool.h>
#include <stdlib.h>

/*
 * How much of a test over many inputs a run plays. `make soak` plays all of it, twice. `make test`
 * must end within minutes, and its sanitizers make every round three to five times as long.
 */

static inline bool rounds_are_all(void)
{
    return getenv("LACUNA_SOAK") != NULL;
}

static inline bool rounds_are_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/** @return of these rounds, as many as this run plays: all, or an eighth with the sanitizers */
static inline int rounds_of(int all)
{
    return rounds_are_all() || !rounds_are_sanitized() ? all : (all + 7) / 8;
}

/** @return the step through inputs in order, "every byte": 1, or 11 with the sanitizers */
static inline size_t rounds_step(void)
{
    return rounds_are_all() || !rounds_are_sanitized() ? 1 : 11;
}

#endif
