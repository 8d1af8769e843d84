#ifndef LAC_ANALYSIS_DIAGNOSE_WORDING_WORDING_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_WORDING_WORDING_THRESHOLDS_H

/* Thresholds of what is said of the trace as a whole; percent of the mean kept step. */

/* Below these shares a cause is fine: what is a finding from there on. */
#define FINE_DATA_PCT      5.0
#define FINE_COPIES_PCT    5.0
#define FINE_COMM_PCT      5.0
#define FINE_SYNC_PCT      3.0
#define FINE_LAUNCH_PCT    5.0
#define FINE_ALLOCATOR_PCT 1.0
#define FINE_MODULE_PCT    1.0
#define FINE_PROFILER_PCT  1.0

/* Idle time without a cause from which on no cause counts as checked: it may be any of them. */
#define UNEXPLAINED_MAX_PCT 5.0

/* The device computes nine tenths of the recording: it is the limit of it. */
#define NOT_COMPUTING_MAX_PCT 10.0
/* The host runs ahead, and that is said, where a step takes so many times as long as its marks are
 * apart. */
#define HOST_AHEAD_MIN 1.25
/* A replay that is off by more, in percent of the step, is said: most gains are not much larger. */
#define REPLAY_ERROR_SAID_PCT 5.0
/* Waiting that makes the training process of a trace without a device starve. */
#define HOST_STARVES_PCT 5.0

/* Rows whose other end is not in the recording, from which on some were left out: this many, and this
 * percent of them. In recordings that keep all rows there are none between two that have both. */
#define THINNED_MIN     20
#define THINNED_MIN_PCT 2.0

#endif
