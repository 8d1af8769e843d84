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
    MODULE_MIN_NS = 50000,      /**< shorter look-ups of functions are part of a launch */
    FIRST_LAUNCH_MIN_NS = 1000000, /**< a first launch this long loads its module */
    SYNC_RETURN_NS =
        10000, /**< clock slack: a sync that returned this long before the gap opened it */
    COPY_SMALL_BYTES =
        65536,     /**< copies up to this size are never a finding: a launch costs as much */
    STEPS_MIN = 3, /**< fewer kept steps say nothing about a step */
};

/* Part of a step that waits for data from which on the loader is the limit: less is noise of it. */
#define STARVING_MIN 0.05

/* A process that loads by itself got no batch when asking took this part of the
 * shortest time before: the data had ended. */
#define ASKED_IN_VAIN_MAX 0.05

/* Workers beyond what the mean fetch asks for: fetches differ, and the queue hands
 * over in order. */
#define WORKERS_MARGIN 1.15

/* The GPU's own counters are means since the sample before. Counted are those of which this part
 * lies in kept steps, none older than 2.5 s (it is told again within two), when together they cover
 * half a second and this part of the kept time. */
#define COUNTER_INSIDE_MIN 0.9
#define COUNTER_MAX_NS     2500000000
#define COUNTERS_LEAST_NS  500000000.0
#define COUNTERS_COVER_MIN 0.5

#endif
