#ifndef LAC_ANALYSIS_DIAGNOSE_LOADING_LOADING_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_LOADING_LOADING_THRESHOLDS_H

/* Thresholds of what is measured of the loading, each with its unit and why. */

/* -- whether a wait is told: percent of the step -- */

/* From here on a wait is told of whatever it gains; from there on when it returns and a change
 * gains a percent. */
#define STARVED_PCT       5.0
#define STARVED_LEAST_PCT 1.0

/* -- where workers end -- */

/* Of the allowed cores, what workers may fill: the training process needs the rest. */
#define CORES_FILLED_MAX 0.9
/* Of the memory of the job, what finished batches may take. */
#define MEMORY_FILLED_MAX 0.8

/* -- what a batch is made of -- */

/* Percent of a batch below which a part is not named. */
#define PART_PCT_MIN 3.0
/* Items that are this much of a batch tell nothing: the data set's own code is not taken apart. */
#define ITEM_PCT_MAX 90.0
/* Parts that are longer than all fetches by more than clock noise lie outside of them. */
#define PARTS_OF_FETCH_MAX 1.005

/* Batches a step: how far from a whole number their mean may be. */
#define WHOLE_MAX 0.1

/* A batch that takes this many medians is a slow one. */
#define LAC_SLOW_FACTOR 2.0

/* -- samples of threads -- */

#define ROUND_NS      1e8  /* the launcher samples ten times a second, unless that costs too much */
#define BUSY_CORES    0.05 /* of a core: a thread that is on it less does nothing of weight */
#define WINDOW_ROUNDS 5.0  /* samples that tell a share */
/* Percent of their time that the fetching threads wait for a core: less is the scheduler's own. */
#define READY_PCT_MIN 20.0
/* Threads of each worker that wait for a core beside the fetching one, on average: one that waits
 * at a barrier for its own threads sleeps, and it is they who wait for a core. */
#define OTHER_READY_MIN 1.0

/* -- whether workers take turns -- */

/* One after the other, with less than a thirtieth of the time shared. */
#define ALONE_PCT_MIN   97.0
#define COVERED_PCT_MIN 80.0
/* Ends are apart when even the closest tenth keeps half of the usual distance. */
#define CLOSE_MIN 0.5
/* Percent of the ends that come later than the one before by the piece's CPU time (but for clock
 * noise: this part of it). */
#define SPACED_PCT_MIN 95.0
#define SPACED_CPU_MIN 0.8
/* A piece is alone when a quarter of another is beside it at most; it has company from the first of
 * these on, or from this part of the largest crowd. */
#define ALONE_BESIDE_MAX 1.25
#define COMPANY_MIN      1.6
#define COMPANY_OF_CROWD 0.75
/* A piece takes as many times longer as others are under way, but for what is not
 * under the lock. */
#define GROWTH_MIN 0.7
/* With company a piece takes this many times as long as alone: they do get in each other's way. */
#define COMPANY_SLOWER_MIN 1.5
/* Independent pieces whose lengths differ by this part of the distance end anyhow. */
#define SPREAD_MIN 0.7
/* Fetches under way at once, on average, from which on they overlap at all. */
#define OVERLAP_MIN 1.5
/* All workers together compute on one core. */
#define ONE_CORE_MIN 0.8
#define ONE_CORE_MAX 1.15
/* What else would look the same: waiting for the disk (percent of the workers' time), reading from
 * storage, reads that do not compute (part of a batch, part of the reads). */
#define DISK_PCT          20.0
#define STORAGE_MB_S      20.0
#define READ_SHARE        0.4
#define READ_COMPUTES_MAX 0.5

/* So many workers every host of a GPU has cores for; for more of them, cores that were not recorded are
 * asked for. */
#define FEW_WORKERS 4

#endif
