/*
 * Steps by the optimizer's kernels, whose names are known (multi_tensor_apply, fused Adam, ...):
 * a step lasts from the end of one burst of them to the end of the next. Micro-steps that only
 * accumulate gradients have none, so they are inside.
 */

#include "analysis/diagnose/steps/step_sequence.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    BUCKETS = 256,       /* of distances, four an octave */
    JUMP_MIN = 6,        /* a factor of three between kernels of a burst and bursts */
    ALONE_MIN = 4,       /* kernels between single ones that are a burst each */
    INTERLEAVED_MAX = 4, /* optimizers that take turns in one step */
};

/** End of a burst: kernels of the stream up to it, and when. */
struct burst {
    uint64_t kernels;
    int64_t end_ns;
};

static int bucket_of(uint64_t distance)
{
    int bucket = (int)(4.0 * log2((double)distance));
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/** Distance in kernels from which on a burst ends; 0 when they do not come in bursts. */
static uint64_t distance_between_bursts(const uint64_t counts[BUCKETS], uint64_t most_frequent_min)
{
    int before = -1;
    int widest = 0;
    int first_far = -1;
    uint64_t far = 0;
    for (int b = 0; b < BUCKETS; b++) {
        far += counts[b];
    }
    for (int b = 0; b < BUCKETS; b++) {
        if (counts[b] == 0) {
            continue;
        }
        if (before >= 0 && b - before > widest && far >= most_frequent_min) {
            widest = b - before;
            first_far = b;
        }
        before = b;
        far -= counts[b];
    }
    if (widest >= JUMP_MIN) {
        return (uint64_t)floor(exp2((double)first_far / 4.0));
    }
    for (int b = 0; b < bucket_of(ALONE_MIN); b++) {
        if (counts[b] > 0) {
            return 0;
        }
    }
    return 1; /* a single fused kernel a step */
}

/** Distances between the optimizer's kernels, by size. */
static void count_distances(const struct lac_facts *facts, struct lac_sequence sequence,
                            uint64_t counts[BUCKETS])
{
    uint64_t last = 0;
    uint64_t slice = 0;
    while (lac_sequence_next(&sequence, &slice)) {
        if (lac_kernel_class_of(facts, slice)->family != LAC_FAMILY_OPTIMIZER) {
            continue;
        }
        if (last > 0) {
            counts[bucket_of(sequence.count - last)]++;
        }
        last = sequence.count;
    }
}

static enum lac_status find_bursts(const struct lac_facts *facts, struct lac_sequence sequence,
                                   uint64_t far, struct burst **ret_bursts, uint32_t *ret_count)
{
    struct burst *bursts = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    uint64_t slice = 0;
    while (lac_sequence_next(&sequence, &slice)) {
        if (lac_kernel_class_of(facts, slice)->family != LAC_FAMILY_OPTIMIZER) {
            continue;
        }
        struct burst here = {sequence.count, sequence.last_end_ns};
        if (count > 0 && here.kernels - bursts[count - 1].kernels < far) {
            bursts[count - 1] = here;
            continue;
        }
        if (!LAC_RESERVE(bursts, capacity, count, 1)) {
            free(bursts);
            return LAC_ERR_NOMEM;
        }
        bursts[count++] = here;
    }
    *ret_bursts = bursts;
    *ret_count = count;
    return LAC_OK;
}

static bool is_alike(uint64_t a, uint64_t b)
{
    uint64_t less = a < b ? a : b;
    return (a < b ? b : a) - less <= less / 20;
}

/** How many optimizers take turns: 2 where every second burst is alike and neighbors are not. */
static uint32_t bursts_in_a_step(const struct burst *bursts, uint32_t count)
{
    for (uint32_t turns = 2; turns <= INTERLEAVED_MAX; turns++) {
        uint32_t alike = 0;
        uint32_t same_as_next = 0;
        uint32_t compared = 0;
        for (uint32_t i = 1; i + turns < count; i++) {
            uint64_t here = bursts[i].kernels - bursts[i - 1].kernels;
            alike += is_alike(here, bursts[i + turns].kernels - bursts[i + turns - 1].kernels);
            same_as_next += is_alike(here, bursts[i + 1].kernels - bursts[i].kernels);
            compared++;
        }
        bool takes_turns = compared >= 2 * turns && alike * 10 >= compared * 9 &&
                           same_as_next * turns <= compared * (turns - 1);
        if (takes_turns) {
            return turns;
        }
    }
    return 1;
}

enum lac_status lac_steps_by_optimizer_kernels(struct lac_facts *facts)
{
    struct lac_sequence sequence;
    if (!lac_sequence_begin(facts, &sequence)) {
        return LAC_OK;
    }
    uint64_t counts[BUCKETS] = {0};
    count_distances(facts, sequence, counts);
    uint64_t far = distance_between_bursts(counts, STEPS_MIN - 1);
    struct burst *bursts = NULL;
    uint32_t count = 0;
    enum lac_status status = far == 0 ? LAC_OK : find_bursts(facts, sequence, far, &bursts, &count);
    uint32_t turns = count > 0 ? bursts_in_a_step(bursts, count) : 1;
    for (uint32_t i = turns; i < count && !status; i += turns) {
        int64_t start_ns = bursts[i - turns].end_ns;
        status = lac_steps_add(facts, start_ns, bursts[i].end_ns - start_ns, 0, LAC_NONE);
    }
    free(bursts);
    return status;
}
