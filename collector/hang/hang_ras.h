#ifndef LAC_COLLECTOR_HANG_HANG_RAS_H
#define LAC_COLLECTOR_HANG_HANG_RAS_H

/*
 * What NCCL's RAS service (NCCL 2.24 and later) says of a job: how many operations of each collective
 * every rank has launched, on all nodes, and which ranks do not answer. Needs no hook: a thread of
 * NCCL in each process answers on a socket. JSON since 2.28, before that a text for people.
 *
 * The answer may hold anything. Pure: hang_ras_client.h fetches it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_RAS_COMMUNICATORS = 64,
    LAC_RAS_FUNCTIONS = 16, /**< of a communicator */
    LAC_RAS_NAMED = 8,      /**< ranks of a group that are kept by name */
    LAC_RAS_PIDS = 1024,
};

struct lac_ras_rank {
    int32_t rank; /**< of the communicator */
    int32_t pid;  /**< on its node; -1: not told */
    char host[48];
};

/** Ranks with the same number of operations. */
struct lac_ras_group {
    uint64_t operations;
    uint32_t count;       /**< ranks in it */
    uint32_t named_count; /**< of these, in `named` */
    struct lac_ras_rank named[LAC_RAS_NAMED];
};

/** A collective of a communicator. Where all ranks have launched as many operations, `least` and
 * `most` are the same group. */
struct lac_ras_function {
    char name[24]; /**< "AllReduce"; "" where NCCL does not tell (2.24) */
    bool is_told;
    struct lac_ras_group least;
    struct lac_ras_group most;
};

struct lac_ras_communicator {
    char hash[24];
    uint32_t size;           /**< ranks; 0: not told */
    uint32_t function_count; /**< those that are told */
    struct lac_ras_function functions[LAC_RAS_FUNCTIONS];
    struct lac_ras_group missing; /**< that sent nothing; `operations` is not used */
    bool is_dead;                 /**< some of these count as dead */
};

struct lac_ras {
    char version[24]; /**< of NCCL */
    uint32_t communicator_count;
    struct lac_ras_communicator communicators[LAC_RAS_COMMUNICATORS];
    uint32_t error_count;       /**< ranks that report an error of NCCL */
    struct lac_ras_rank failed; /**< the first of them */
    uint32_t pid_count;
    int32_t pids[LAC_RAS_PIDS]; /**< of ranks that answered */
};

/** The answer to VERBOSE STATUS after SET FORMAT json. @return false: it is none */
bool lac_ras_parse_json(const char *text, size_t size, struct lac_ras *ret);
/** The same in NCCL before 2.28; communicators without a difference are not in it. */
bool lac_ras_parse_text(const char *text, size_t size, struct lac_ras *ret);

/** Whether ranks of this function have launched different numbers of operations. */
bool lac_ras_differs(const struct lac_ras_function *function);

/** One collective as text: "AllReduce: rank 3 has launched 60, 7 ranks 61". @return false: all ranks
 * have launched as many, and nothing was written */
bool lac_ras_say_difference(const struct lac_ras_function *function, char *text, size_t capacity);

/** Ranks that sent nothing: "rank 5 (process 812 on 10.0.0.5) does not answer NCCL". @return false: none */
bool lac_ras_say_missing(const struct lac_ras_communicator *communicator, char *text,
                         size_t capacity);

/** All of a communicator in one line: "0x1f2e, 8 ranks: AllReduce: rank 3 has launched 60, 7 ranks 61; Broadcast 2". */
void lac_ras_say_communicator(const struct lac_ras_communicator *communicator, char *text,
                              size_t capacity);

#endif
