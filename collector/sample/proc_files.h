#ifndef LAC_COLLECTOR_SAMPLE_PROC_FILES_H
#define LAC_COLLECTOR_SAMPLE_PROC_FILES_H

/* What /proc says of processes and threads, without ever failing: what is not there reads as 0. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Counters of one thread, since its start. */
struct lac_thread_counters {
    uint64_t run_ns;  /**< on a core */
    uint64_t wait_ns; /**< ready, but no core was free */
    uint64_t turns;   /**< how often it got one */
    uint64_t system_ticks;
    uint64_t user_ticks;
    uint64_t minor_faults;
    uint64_t major_faults;
    uint64_t voluntary;
    uint64_t involuntary;
    char state; /**< as /proc prints it: R S D T Z ... */
    int32_t parent_pid;
    char name[17];
};

/** @return false when the thread is gone */
bool lac_proc_thread(int32_t pid, int32_t tid, struct lac_thread_counters *ret);

/** Whether a thread that slept at `last` has slept ever since: a third of the work of asking all. */
bool lac_proc_thread_slept(int32_t pid, int32_t tid, const struct lac_thread_counters *last);

/** Parent of a process and its name; false when it is gone. */
bool lac_proc_parent(int32_t pid, int32_t *ret_parent, char *name, size_t capacity);

/** When a process began, in ticks since boot: with its number that names it for good. @return 0
 * when it is gone, or has ended and nobody has asked for its status */
uint64_t lac_proc_start_ticks(int32_t pid);

#endif
