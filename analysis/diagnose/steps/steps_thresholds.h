#ifndef LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_THRESHOLDS_H

/* Thresholds of the search for steps, each with its unit and why. Ratios are of a step to the usual
 * one. */

/* A leading step is warm-up when its time without waiting is a fifth off the usual (longer: first
 * use; shorter: the host still runs ahead). */
#define WARM_UP_SHORT 0.8
#define WARM_UP_LONG  1.2

/* A later step is like it when neither is a quarter longer than the other: then it
 * was no warm-up. */
#define ALIKE_SHORT 0.8
#define ALIKE_LONG  1.25

/* The last step was cut off by the end of the recording when it launched a fifth
 * less than usual. */
#define CUT_OFF_OPS_MAX 0.8

/* Half or double the operations is other work: validation, a checkpoint. */
#define OTHER_OPS_MIN 0.5
#define OTHER_OPS_MAX 2.0

/* Whole cycles are cut at the start unless the end changes the mean less by more than rounding. */
#define CUT_BETTER 0.99

/* Marks that lie in this part of the device's busy time say when its queue was full, not how long
 * a step took: no outliers among them. */
#define PACE_MIN 0.8

/* An outlier is three deviations above the median (the median absolute deviation times 1.4826, as
 * for a normal distribution), and a fifth above it. */
#define OUTLIER_DEVIATIONS (3.0 * 1.4826)
#define OUTLIER_RATIO      1.2

/* Repetitions found by kernels alone are steps when their lengths have a deviation of a fifth of
 * the mean at most: the variance by the square of the mean. */
#define PERIOD_VARIANCE_MAX 0.04

#endif
