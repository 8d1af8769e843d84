/* The two sorts of finish(): by time, adaptive; by a 32-bit key, radix. */

#include "analysis/model/builder_private.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <string.h>

enum { INSERTION_RUN = 16, RADIX_BITS = 11, RADIX_SIZE = 1 << RADIX_BITS };

struct times {
    const int64_t *start_ns;
    const int64_t *dur_ns; /* NULL: all are equal */
};

/* Whether slice b must come before slice a, which came first in the input. */
static inline bool is_before(const struct times *times, uint32_t b, uint32_t a)
{
    if (times->start_ns[b] != times->start_ns[a]) {
        return times->start_ns[b] < times->start_ns[a];
    }
    return times->dur_ns != NULL && times->dur_ns[b] > times->dur_ns[a];
}

static void insertion_sort(const struct times *times, uint32_t *order, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        uint32_t slice = order[i];
        uint64_t to = i;

        while (to > 0 && is_before(times, slice, order[to - 1])) {
            order[to] = order[to - 1];
            to--;
        }
        order[to] = slice;
    }
}

/* First of the `count` entries that must come after `slice`, which is later in the input. */
static uint64_t upper_bound(const struct times *times, const uint32_t *order, uint64_t count,
                            uint32_t slice)
{
    uint64_t low = 0;

    LAC_BISECT(low, count, middle, !is_before(times, slice, order[middle]));
    return low;
}

/* Merge the sorted halves [0, middle) and [middle, count). Only the part of the left half that the
 * right half reaches into is moved: traces are sorted but for short stretches. */
static void merge(const struct times *times, uint32_t *order, uint64_t middle, uint64_t count,
                  uint32_t *scratch)
{
    uint64_t from;
    uint64_t left = 0;
    uint64_t left_count;
    uint64_t right = middle;
    uint64_t out;

    if (!is_before(times, order[middle], order[middle - 1])) {
        return;
    }
    from = upper_bound(times, order, middle, order[middle]);
    left_count = middle - from;
    memcpy(scratch, order + from, left_count * sizeof(*order));
    out = from;
    while (left < left_count && right < count) {
        if (is_before(times, order[right], scratch[left])) {
            order[out++] = order[right++];
        } else {
            order[out++] = scratch[left++];
        }
    }
    memcpy(order + out, scratch + left, (left_count - left) * sizeof(*order));
}

void lac_sort_by_time(uint32_t *order, uint32_t *scratch, uint64_t count, const int64_t *start_ns,
                      const int64_t *dur_ns)
{
    struct times times = {start_ns, dur_ns};
    uint64_t sorted = 1;

    while (sorted < count && !is_before(&times, order[sorted], order[sorted - 1])) {
        sorted++;
    }
    if (sorted >= count) {
        return;
    }
    for (uint64_t i = 0; i < count; i += INSERTION_RUN) {
        insertion_sort(&times, order + i, count - i < INSERTION_RUN ? count - i : INSERTION_RUN);
    }
    for (uint64_t width = INSERTION_RUN; width < count; width *= 2) {
        for (uint64_t i = 0; i + width < count; i += 2 * width) {
            uint64_t end = count - i < 2 * width ? count - i : 2 * width;

            merge(&times, order + i, width, end, scratch);
        }
    }
}

void lac_sort_by_upper(uint64_t *keys, uint64_t *scratch, uint64_t count)
{
    uint64_t *from = keys;
    uint64_t *to = scratch;

    for (unsigned shift = 32; shift < 64; shift += RADIX_BITS) {
        uint64_t place[RADIX_SIZE] = {0};
        uint64_t sum = 0;

        for (uint64_t i = 0; i < count; i++) {
            place[from[i] >> shift & (RADIX_SIZE - 1)]++;
        }
        for (uint32_t i = 0; i < RADIX_SIZE; i++) {
            uint64_t here = place[i];

            place[i] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < count; i++) {
            to[place[from[i] >> shift & (RADIX_SIZE - 1)]++] = from[i];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) { /* 32 bits take three passes of 11 */
        memcpy(keys, from, count * sizeof(*keys));
    }
}
