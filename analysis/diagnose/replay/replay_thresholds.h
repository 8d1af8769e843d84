#ifndef LAC_ANALYSIS_DIAGNOSE_REPLAY_REPLAY_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_REPLAY_REPLAY_THRESHOLDS_H

/* Thresholds of playing steps again, each with its unit and why. */

/* Played without a change, the steps have to give back what was recorded within this part: beyond
 * it a gain of the usual size (a tenth) would be a third error. */
#define REPLAY_ERROR_MAX 0.03

/* The waits for data of the steps played have to be this part of those of the mean step, or the
 * steps without waits are played and the loader is put beside them: a loader with few slow batches
 * has many steps in a row that wait for none. */
#define WAITS_SEEN_MIN 0.5

/* Steps that can be played as a cycle. */
enum { GRAPH_STEPS_MIN = 1 };

/* The window stands for the kept steps while the steps inside its ends, kept or not, are at most
 * this many times as long: longer ones hold other work. */
#define WINDOW_LONGER_MAX 1.15

/* What a replay that gives back the recorded steps may still be off by with a change, and one from
 * the device's operations alone: in simulated jobs nine of ten answers are that close. */
#define REPLAY_ERROR_LEAST 0.02
#define DEVICE_ERROR_USUAL 0.10
/* A band that is wider says nothing. */
#define REPLAY_ERROR_MOST 0.5

/* Of what the host is held up by copies from pageable memory, the part that is expected to go: a tensor
 * that a transform makes anew is pinned only by another copy. */
#define PINNED_FREE_MID 0.9

#endif
