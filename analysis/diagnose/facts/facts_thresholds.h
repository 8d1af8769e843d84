#ifndef LAC_ANALYSIS_DIAGNOSE_FACTS_FACTS_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_FACTS_FACTS_THRESHOLDS_H

/* Thresholds of the facts, each with its unit and why it is what it is; higher folders use them,
 * too. */

enum {
    GAP_MIN_NS = 10000, /**< gaps that are counted and listed: shorter ones are between kernels of a
                             queue that is full */
    LAUNCH_BRIDGE_NS = 50000,   /**< host time between two launches that is the launching itself */
    QUEUE_FULL_MIN_NS = 100000, /**< a launch this long waits for room in the queue */
    LAUNCH_USUAL_NS = 20000,    /**< of it, what a launch takes itself */
    LAUNCH_ARRIVES_NS = 100000, /**< the slowest launches reach the device so long after their call
                                     returned: beyond it work was queued and no launch was late */
    KERNEL_SHORT_NS = 10000,    /**< about as long as it takes the host to launch one */
    WORK_MIN_NS = 1000000,      /**< host work worth a name; what is shorter is the program's way
                                     from one call to the next */
    MODULE_MIN_NS = 50000,      /**< shorter look-ups of functions are part of a launch */
    FIRST_LAUNCH_MIN_NS = 1000000, /**< a first launch this long loads its module */
    SYNC_RETURN_NS =
        10000, /**< clock slack: a sync that returned this long before the gap opened it */
    QUERIES_APART_MAX_NS = 2000000, /**< a loop that asks and sleeps a millisecond still waits; a
                                         watchdog that looks ten times a second does not */
    SPIN_QUERIES_MIN = 3,           /**< an allocator asks once or twice on its way */
    SPIN_MIN_NS = 50000,            /**< ... or for a few events in a row, a microsecond each */
    LAUNCH_LEAST_NS =
        2000, /**< no launch takes less until the device starts; clocks are as far apart */
    COPY_SMALL_BYTES =
        65536,     /**< copies up to this size are never a finding: a launch costs as much */
    STEPS_MIN = 3, /**< fewer kept steps say nothing about a step */
    PYTHON_CALL_MIN_NS =
        20000, /**< a function whose calls take less by themselves is the interpreter's pace */
    PYTHON_OP_MIN_NS = 100000, /**< an operator that works on the host takes as long; a shorter one
                                    is on its way to a launch */
};

/* Part of a step that waits for data from which on the loader is the limit: less is noise of it. */
#define STARVING_MIN 0.05

/* A process that loads by itself got no batch when asking took this part of the
 * shortest time before: the data had ended. */
#define ASKED_IN_VAIN_MAX 0.05

/* A batch lay ready when waiting for it took this part of the mean time between batches. */
#define READY_WAIT_MAX 0.05
/* Batches come in bursts when the times between them deviate by this part of their mean; what the
 * training process does between them deviates by this part of that at most, else its own work comes
 * in periods. */
#define BURSTS_MIN        0.2
#define OWN_OF_BURSTS_MAX 0.5
/* Waits that follow one another with nothing launched between them are one step's where more than this
 * part of all waits does: half of them where a step asks two loaders. */
#define ROWS_OF_WAITS_MIN 0.4

/* Times over n batches are one worker's fetches: they deviate by this part of their mean at most, by
 * this part of what independent times would, and by this part of what times over one batch more or
 * less do. */
#define PERIOD_SPREAD_MAX      0.1
#define PERIOD_OF_CHANCE_MAX   0.35
#define PERIOD_OF_NEIGHBOR_MAX 0.6

/* Workers beyond what the mean fetch asks for: fetches differ, and the queue hands
 * over in order. */
#define WORKERS_MARGIN 1.15

/* Kernels that a compiler made: part of the computing from which on it makes the model's kernels. */
#define COMPILED_MIN 0.05

/* The GPU's own counters are means since the sample before. Counted are those of which this part
 * lies in kept steps, none older than 2.5 s (it is told again within two), when together they cover
 * half a second and this part of the kept time. */
#define COUNTER_INSIDE_MIN 0.9
#define COUNTER_MAX_NS     2500000000
#define COUNTERS_LEAST_NS  500000000.0
#define COUNTERS_COVER_MIN 0.5

/* Model FLOP/s are told when shapes cover this part of the time of kernels that multiply: with less
 * the number would say more of the recording than of the job. */
#define COUNTED_MIN_PCT 90.0

/* ... and when no more than this part of the operations is in a precision whose peak is unknown. */
#define UNPRICED_MAX_PCT 5.0

/* A precision in which this part of the time at peak is spent is named as one that the peak is of. */
#define BLENDED_MIN 0.01

/* Executed operations are told apart from the model's from this ratio on: less is rounding. */
#define COMPUTED_TWICE_MIN 1.02

#endif
