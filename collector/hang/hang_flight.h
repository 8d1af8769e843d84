#ifndef LAC_COLLECTOR_HANG_HANG_FLIGHT_H
#define LAC_COLLECTOR_HANG_HANG_FLIGHT_H

/*
 * The last collectives of each rank, as PyTorch's flight recorder wrote them in a dump (a pickle):
 * operation, number in its process group, sizes, state. Pure; a dump may hold anything.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_FLIGHT_GROUPS = 8 };

/** One entry of a dump. */
struct lac_flight_call {
    int64_t number; /**< of the collectives of its group; -1: there is none */
    char name[48];  /**< "nccl:all_reduce" */
    char state[16]; /**< "scheduled", "started", "completed" */
    char sizes[96]; /**< of the inputs: "[4096, 1024] Float" */
};

struct lac_flight_group {
    char name[48];
    struct lac_flight_call last;    /**< that was called */
    struct lac_flight_call pending; /**< the first that has not completed */
};

struct lac_flight {
    int32_t rank;
    uint32_t group_count;
    struct lac_flight_group groups[LAC_FLIGHT_GROUPS];
};

/** @param bytes a dump @return false: it is none. `rank` is left as it is */
bool lac_flight_read(const void *bytes, size_t size, struct lac_flight *ret);

/** What a rank does: "rank 0 waits in nccl:all_reduce, number 61 of default_pg, [4096] Float, started". */
void lac_flight_say(const struct lac_flight *flight, char *text, size_t capacity);

/** What does not fit together: "rank 1 has not called number 61 of default_pg (nccl:all_reduce), which
 * rank 0 has", or two operations under one number. @return false: nothing, and `text` is "" */
bool lac_flight_compare(const struct lac_flight *flights, uint32_t count, char *text,
                        size_t capacity);

#endif
