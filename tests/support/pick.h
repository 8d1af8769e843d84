#ifndef LAC_TESTS_SUPPORT_PICK_H
#define LAC_TESTS_SUPPORT_PICK_H

/* Numbers that look random and are the same in every run. */

#include <stdint.h>

static uint64_t pick_state = 88172645463325252U;

/** 0 to below - 1. */
static inline uint32_t pick(uint32_t below)
{
    pick_state ^= pick_state << 13;
    pick_state ^= pick_state >> 7;
    pick_state ^= pick_state << 17;
    return (uint32_t)(pick_state >> 11) % below;
}

#endif
