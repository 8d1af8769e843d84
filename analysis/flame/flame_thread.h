#ifndef LAC_ANALYSIS_FLAME_FLAME_THREAD_H
#define LAC_ANALYSIS_FLAME_FLAME_THREAD_H

/*
 * Whether the time of a thread is its own: not that of the recorder's own row, nor of a thread that
 * only waits for others. All slices of the thread tell, whatever the area: they are added in order,
 * in as many parts as one likes.
 */

#include "analysis/model/model.h"

#include <stdbool.h>
#include <stdint.h>

/** What its slices add up to so far. All zero is a thread without any. */
struct lac_flame_thread {
    uint64_t count;
    uint64_t recorder_count; /**< slices that the recorder names after itself */
    int64_t covered_ns;      /**< in slices that lie in no other */
    int64_t waited_ns;
    int64_t waited_until_ns;
};

/** Only slices of Python this long can make a thread one that waits. */
#define LAC_FLAME_LONG_WAIT_NS INT64_C(1000000)

/** Whether a Python function of that name waits for another thread or process. */
bool lac_flame_is_waiting(const char *name);

/** Whether the recorder names slices of its own row so. */
bool lac_flame_is_recorder(const char *name);

/** Whether so much waiting in so much time makes a thread one that only waits. */
bool lac_flame_is_mostly_waiting(int64_t waited_ns, int64_t covered_ns);

/** Add slices [first, end). @param names whose strings they are of */
void lac_flame_thread_add(struct lac_flame_thread *thread, const struct lac_model *names,
                          const struct lac_slices *slices, uint64_t first, uint64_t end);

/** The verdict, once all slices were added. */
bool lac_flame_thread_is_left_out(const struct lac_flame_thread *thread);

#endif
