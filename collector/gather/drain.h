#ifndef LAC_COLLECTOR_GATHER_DRAIN_H
#define LAC_COLLECTOR_GATHER_DRAIN_H

/*
 * Moves what the recorded processes have written from their spools into the output folder while
 * they run, and hands emptied segments back to them: their disk use stays bounded, and they write
 * into pages that are already there.
 *
 *   seen -> draining (names first, then full segments) -> (process gone) moved whole, removed
 *
 * An output file is a spool itself (collector/FORMAT.md), so whatever was moved is readable at
 * once. The processes may write anything into their spools at any time: what is read there is
 * copied once and checked (shared_spool.h). Descriptors are bounded by the limit of open files:
 * where there are more processes than that they take turns, and one that has ended and is moved
 * costs nothing more.
 */

#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_drain;

struct lac_drain_counts {
    uint64_t processes;     /**< spools seen */
    uint64_t segments;      /**< moved */
    uint64_t bytes;         /**< of the files in the output folder, as `ls` shows them */
    uint64_t dropped;       /**< events that the recorders could not keep */
    uint64_t dropped_else;  /**< of these, other than for want of space */
    uint64_t gpu_buffers;   /**< of CUPTI that processes had when they ended, killed as a rule */
    uint64_t steps;         /**< training steps that the furthest process has ended */
    uint64_t failed_writes; /**< segments left in place because the output could not take them */
    uint64_t unopened;      /**< spools that the last final round could not open */
    uint64_t damaged;       /**< files named so that are no spools, in the last final round */
    bool is_full;           /**< the limit does not allow more events */
};

/** Trouble with recording a GPU. */
struct lac_drain_gpu {
    enum lac_gpu_state state; /**< LAC_GPU_STATE_NONE: none so far */
    char reason[400];         /**< as the process wrote it: not checked; "" none */
};

/** A recorded process that has not ended, in our pid namespace. */
struct lac_drain_process {
    int32_t pid;
    int32_t parent_pid;
    int32_t rank;         /**< as its environment says; -1: it does not */
    int32_t training_tid; /**< the thread that ends steps; 0: none is known. The process may lie */
    uint64_t steps;       /**< that it has ended */
    uint64_t progress;    /**< grows while it goes on */
};

/** @return NULL when out of memory. Both paths are borrowed for the drain's life. */
struct lac_drain *lac_drain_create(const char *spool_folder, const char *output_folder);
/** Removes the spools of which the last final round left nothing behind, unless it gathered. */
void lac_drain_destroy(struct lac_drain *drain);

/**
 * One round over all spools. `final`: also what is not full, as no process writes any more. The
 * first one raises this process's soft limit of open files to the hard one: start the job before.
 */
void lac_drain_round(struct lac_drain *drain, bool final);

/** Only look how many steps have ended: cheap enough for every millisecond. @return that */
uint64_t lac_drain_steps(struct lac_drain *drain);

/** All that are open right now: cheap enough for several times a second. */
void lac_drain_visit(struct lac_drain *drain,
                     void (*visit)(void *context, const struct lac_drain_process *process),
                     void *context);

/** Ask each of them for the stacks of its threads: a Python process whose hook listens leaves them in
 * the spool folder, as "hang-<pid>-<n>.stacks". A store and a system call for each. */
void lac_drain_ask(struct lac_drain *drain);

/** The files never become larger than this, all together; 0: no limit. A sixteenth of it is kept
 * for names. Events that find no room are counted as dropped. */
void lac_drain_limit(struct lac_drain *drain, uint64_t limit_bytes);
/** Bytes of files in the output folder that others write: they count, too. */
void lac_drain_others(struct lac_drain *drain, uint64_t bytes);

/** All that is there now, once, without telling the processes anything. */
void lac_drain_gather(struct lac_drain *drain);

/**
 * Add what the job's own profiler wrote (the hook left notes of it) to the output, as
 * "torch-profiler-<pid>-<n>.json[.gz]". What is gone or does not fit is told on stderr.
 */
void lac_drain_exports(struct lac_drain *drain);

/** Tell every recorded process, also those that come later, what to do. */
void lac_drain_want(struct lac_drain *drain, enum lac_spool_stop wish);

/** Of the first process that cannot record its GPU, as soon as a round has seen that. */
const struct lac_drain_gpu *lac_drain_gpu(const struct lac_drain *drain);

/**
 * Let the processes record that have a range to capture open, and while one has, those that never
 * had one (workers of a loader); to be asked every few milliseconds.
 *
 * @return whether any is open
 */
bool lac_drain_follow_captures(struct lac_drain *drain);

/** Whether a process ever opened one. */
bool lac_drain_has_captured(const struct lac_drain *drain);

/** What the process with the most steps spent waiting for batches. */
uint64_t lac_drain_loader_wait_ns(const struct lac_drain *drain);

struct lac_drain_counts lac_drain_counts(const struct lac_drain *drain);

/** Say on stderr what was lost and what the last final round could not open, if anything:
 * "who: ...". `limit` is what limits the size. */
void lac_drain_say_missing(const struct lac_drain *drain, const char *who, const char *limit);

#endif
