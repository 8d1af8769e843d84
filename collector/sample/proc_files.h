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
    char state; /**< as /proc prints it: R S D T Z ... */
    int32_t parent_pid;
    uint32_t thread_count; /**< of its process, now */
    char name[17];
};

/** The part of the files that a process may have open that may be kept so here: the others are left
 * to whoever else opens many. */
enum { LAC_PROC_FILES_FRACTION = 4 };

/** Reads a file of a process (tid 0) or thread that may stay open until the next time: opening and
 * closing costs three times what reading does.
 * @param file -1 where it is closed
 * @param room how many more files may stay open; counted down
 * @return bytes, ended with a 0; 0 when it is gone, or not there */
size_t lac_proc_read_kept(int32_t pid, int32_t tid, const char *what, int *file, unsigned *room,
                          char *out, size_t capacity);

/** Gives its room back. */
void lac_proc_close_kept(int *file, unsigned *room);

/** @return false when the thread is gone */
bool lac_proc_thread(int32_t pid, int32_t tid, struct lac_thread_counters *ret);

/** Those that are kept of a thread. */
struct lac_thread_files {
    int schedstat;
    int stat;
};

#define LAC_THREAD_FILES_CLOSED                                                                    \
    {                                                                                              \
        .schedstat = -1, .stat = -1                                                                \
    }

enum lac_thread_reading { LAC_THREAD_GONE, LAC_THREAD_SLEPT, LAC_THREAD_RAN };

/** Reads a thread once more. One that has slept since costs a third of one that ran.
 * @param files LAC_THREAD_FILES_CLOSED at first; closed by lac_proc_thread_close()
 * @param counters those of the last reading; written only where it ran */
enum lac_thread_reading lac_proc_thread_again(int32_t pid, int32_t tid,
                                              struct lac_thread_files *files, unsigned *room,
                                              struct lac_thread_counters *counters);

/** Gives their room back. */
void lac_proc_thread_close(struct lac_thread_files *files, unsigned *room);

/** Parent of a process and its name; false when it is gone. */
bool lac_proc_parent(int32_t pid, int32_t *ret_parent, char *name, size_t capacity);

/** When a process began, in ticks since boot: with its number that names it for good. @return 0
 * when it is gone, or has ended and nobody has asked for its status */
uint64_t lac_proc_start_ticks(int32_t pid);

#endif
