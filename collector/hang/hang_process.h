#ifndef LAC_COLLECTOR_HANG_HANG_PROCESS_H
#define LAC_COLLECTOR_HANG_HANG_PROCESS_H

/*
 * What a process of a job that stands still does: what it says itself (its Python stacks, which
 * _lacuna_hang.py writes) and what the kernel says of it.
 */

#include "collector/hang/hang_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_HANG_THREADS = 64,
    LAC_HANG_FRAMES = 48,
    LAC_HANG_TEXT_BYTES = 65536,
    LAC_HANG_PATH_BYTES = 256,
};

/** Text in the process's answer. */
struct lac_hang_frame {
    const char *function;
    const char *path;
    uint32_t line;
};

struct lac_hang_thread {
    const char *name;
    int32_t tid;           /**< -1: not told */
    bool is_training;      /**< that ends steps, or the main thread */
    uint32_t frame_count;  /**< innermost first */
    const char *source;    /**< the line of the innermost frame of the script; "" not known */
    uint32_t source_frame; /**< that frame */
    struct lac_hang_frame frames[LAC_HANG_FRAMES];
};

/** What NCCL says of the rank: how many operations of a collective it has launched. */
enum lac_hang_nccl {
    LAC_HANG_NCCL_UNKNOWN,
    LAC_HANG_NCCL_EVEN,   /**< as many as all others, of each */
    LAC_HANG_NCCL_AHEAD,  /**< more than others: it waits for them, on its GPU */
    LAC_HANG_NCCL_BEHIND, /**< fewer */
};

/** What the kernel says of the thread that trains. */
struct lac_hang_native {
    char state;                     /**< as /proc prints it: R S D T Z; 0: it is gone */
    const char *call;               /**< the system call that it is in, "" none or not known */
    char file[LAC_HANG_PATH_BYTES]; /**< that the call is about; "" not known */
    bool is_syncing;                /**< the call waits for a disk: fsync and the like */
    bool is_sleeping;               /**< the call waits for time to pass */
    bool is_for_child;              /**< the call waits for another process */
};

struct lac_hang_process {
    uint32_t launcher; /**< 0: ours; else another one of the job, perhaps on another host */
    const char *host;  /**< NULL: need not be told */
    int32_t pid;       /**< on that host */
    int32_t parent;
    int32_t rank;   /**< -1: not known */
    int32_t world;  /**< number of ranks; 0: not known */
    int32_t tid;    /**< of the thread that trains */
    bool is_rank;   /**< it trains; else it is a loader's worker, or something beside */
    uint64_t steps; /**< that it has ended */
    uint64_t progress;
    uint64_t cpu_ns; /**< of that thread so far, with its waits for a core */
    bool is_busy;    /**< it has had a core lately */
    bool has_ended;
    bool has_answered;
    struct lac_hang_native native;
    enum lac_hang_nccl nccl;
    char nccl_function[24]; /**< with AHEAD and BEHIND: which collective */
    /* the answer; what points into `text` */
    uint32_t collective_total; /**< calls of collectives so far */
    uint32_t collective_count; /**< of these, of the last one's name */
    bool is_in_collective;
    const char *collective; /**< the last one; "" none */
    uint32_t thread_count;
    uint32_t thread_room;
    struct lac_hang_thread *threads; /**< thread_room of them */
    char *text;                      /**< LAC_HANG_TEXT_BYTES */
};

/** Text that may be printed: blanks in place of control characters. @return `text` */
char *lac_hang_clean(char *text);

/** Take an answer apart; it may say anything. The text in process->text ends in a NUL and is changed.
 * Sets has_answered. */
void lac_hang_process_parse(struct lac_hang_process *process);

/** The thread that trains; NULL without an answer. */
const struct lac_hang_thread *lac_hang_process_training(const struct lac_hang_process *process);

/** Ask the kernel about the process; what it does not tell stays empty. */
void lac_hang_native_read(struct lac_hang_process *process);

/** Bytes that a process has written, by calls, and read from storage; 0 when that is not told. What
 * it reads from memory does not count: who waits for a file to change reads it again and again. */
uint64_t lac_hang_native_io(int32_t pid);

#endif
