#ifndef LAC_ANALYSIS_DIAGNOSE_RANKS_RANKS_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_RANKS_RANKS_THRESHOLDS_H

/* Thresholds of several ranks, each with its unit and why. Shares are parts of one. */

/* -- which collectives are the same -- */

/* Ranks with as many collectives agree when this share of their distances does: nothing to look
 * for. */
#define AGREES_AS_IS 0.6
/* Nothing better can be found. */
#define AGREES_FULLY 0.999
/* A shift has to be better by this, or the one before it stands. */
#define SHIFT_BETTER 0.02
/* Less is another communicator. */
#define AGREES_MIN 0.8

/* -- who is late -- */

/* The late rank causes one and a half times what turns would, at least a quarter of all waiting,
 * and of two ranks 65 %. */
#define LATE_TIMES_TURNS 1.5
#define LATE_SHARE_MIN   0.25
#define LATE_SHARE_MAX   0.65

/* Part of a step by which the same collective of another step may come early: steps are counted from
 * the first matched collective to the last. */
#define STEP_JITTER 0.1

/* What others wait for the late rank while they compute costs nothing, and is told apart where that is
 * more than a tenth of it. */
#define HIDES_MAX 0.9

/* At most this part of what the lateness gone would give is promised. */
#define PROMISED_MAX 0.9

/* Part of the transfers hidden on the late rank that a careful promise takes for exposed once it is
 * as fast as the others. */
#define STILL_HIDDEN_LESS 0.25

/* -- why -- */

/* What its device does longer covers four fifths of what the others lose, the reason itself a
 * third. */
#define REASON_COVERS_MIN 0.8
#define REASON_SHARE_MIN  0.33
/* More kernels by this are a larger share of the work; kernels that are slower by that, all alike
 * within this spread, are a lower clock. */
#define MORE_KERNELS_MIN   1.05
#define SLOWER_KERNELS_MIN 1.03
#define ALIKE_SPREAD_MAX   1.15

/* -- late in turns -- */

/* Three quarters of the recording each wait at least this part of a quarter's share. */
#define IMBALANCE_STEADY_MIN 0.5
/* What the last rank's device did longer before it came is this part of what the others waited. */
#define IMBALANCE_COVERS_MIN 0.6
/* Part of the gain that is expected, and at worst: no router and no sampler is even. */
#define IMBALANCE_SHARE_MID   0.85
#define IMBALANCE_SHARE_WORST 0.3

#endif
