#ifndef LAC_ANALYSIS_JOURNAL_JOURNAL_THRESHOLDS_H
#define LAC_ANALYSIS_JOURNAL_JOURNAL_THRESHOLDS_H

/** Of the steps of a run, on each side, that count as their neighbor: a checkpoint or a hiccup of
 *  the file system is no change of pace. */
#define WINSOR_PART 0.2

/** Two runs of one job on one machine differ by about 1 % (clocks, placement, neighbors): what is
 *  assumed until the runs of a baseline say otherwise, and how many runs that assumption weighs. */
#define RUN_SPREAD      0.01
#define RUN_SPREAD_RUNS 6

/** One-sided: of 100 runs without a change 2 to 3 pass it. */
#define REGRESSION_CONFIDENCE 0.975

/** Deviations beyond the limit of the test at which 95 of 100 runs pass it. */
#define FOUND_AT 1.645

/** One-sided, for a slowdown that people are told of. Each run asks up to eight times, in groups that
 *  share most of their runs: of 100 series of twenty runs without a change 2 or 3 pass it. And how
 *  many runs the assumed spread weighs there: less, as runs that differ more would alarm too often. */
#define LASTING_CONFIDENCE  0.9995
#define LASTING_SPREAD_RUNS 4

/** Below that nobody acts on a difference, however well it is known. */
#define REGRESSION_PCT_MIN 1.0

/** Tries that the engine's own prediction weighs against a team's. */
#define CALIBRATION_TRIES 4.0

/** One failed try must not turn every later prediction to nothing. */
#define CALIBRATION_FACTOR_MIN 0.25
#define CALIBRATION_FACTOR_MAX 2.0

/** A change below that is not worth somebody's afternoon. */
#define STOP_PCT 2.0

#endif
