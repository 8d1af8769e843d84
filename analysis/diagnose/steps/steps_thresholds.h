#ifndef LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_THRESHOLDS_H

/* Thresholds of the search for steps, each with its unit and why. Ratios are of a step to the usual
 * one. */

/* A leading step is warm-up when its time without waiting is a fifth off the usual (longer: first
 * use; shorter: the host still runs ahead). */
#define WARM_UP_SHORT 0.8
#define WARM_UP_LONG  1.2

/* Validations may take more batches than the training between them: a fifth of all steps trains at least
 * (less is a service that learns now and then), and steps of a kind come this many in a row. */
#define VALIDATED_STEPS_MIN 0.2
#define RUN_OF_STEPS_MIN    4

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

/* A median step shorter than this part of what its work takes of the device says when the queue was
 * full, not how long a step took: no outliers among them. */
#define PACE_MIN 0.8

/* The host's marks time the steps while their mean is off the device's own distances by this part of
 * it at most: where a step begins is then told best by who begins it. */
#define MEANS_OFF_MAX 0.01

/* And while the first lies to the device as the others do, but for this part of a step; where one clock
 * is not known well, both tell the same within it. */
#define MARKS_OFF_MAX 0.02

/* Marks whose lengths deviate twice as much as the device's distances, and by this part of a step,
 * say when the host got on. */
#define MARKS_DEVIATE_MIN  0.05
#define MARKS_DEVIATE_MORE 2.0

/* What lies between two marks is not the step's own: with more than this part of it between them
 * the distance to the next step is not the step. */
#define MARKS_APART_MAX 0.02

/* A step that begins before the device's first operation by more than this part of it is not whole on
 * the device: its idle time is counted from that operation on. */
#define HEAD_MIN 0.05

/* The device's distances are taken for the sake of certainty where the marks leave more than this, in
 * percent of the mean: what is worth a change of the program costs more. */
#define UNCERTAIN_WORTH_PCT 1.0

/* The last mark is late when this part of a step passes after its last launch beyond what does in
 * the others: the loop was left, workers were joined. */
#define LATE_MARK_MIN 0.05

/* An outlier is three deviations above the median (the median absolute deviation times 1.4826, as
 * for a normal distribution), and a fifth above it. */
#define OUTLIER_DEVIATIONS (3.0 * 1.4826)
#define OUTLIER_RATIO      1.2

/* Sums over the steps of one round of the loader's workers are the same within this part, while single
 * steps are off their mean by this part or more; what came before took this part of their time or
 * less: batches lay ready. */
#define PERIODS_ALIKE_MAX 0.05
#define STEPS_UNEVEN_MIN  0.3
#define CREDIT_SHORT_MAX  0.8

/* What repeats by its kernels alone is no step when the times deviate by this part of their mean. */
#define REPEATS_DEVIATE_MAX 0.6

/* Nor when their mean is so many times the median: what comes between them now and then is not theirs. */
#define REPEATS_MEAN_MAX 2.0

/* One range that users named is an iteration when it covers this part of the device's work. */
#define ITERATION_COVERS_MIN 0.8

/* Two steps have a mean when they differ by this part of it at most, in percent: as much as warm-up may. How
 * well it is known is said with it. */
#define ALIKE_MAX_PCT 20.0

/* Repetitions found by kernels alone are steps when their lengths have a deviation of a fifth of
 * the mean at most: the variance by the square of the mean. */
#define PERIOD_VARIANCE_MAX 0.04

/* One launch takes longer: what repeats faster is no step, whatever its marks say. */
#define STEP_LEAST_NS 1000

/* Two marks of one number are one step's, written as an annotation and as an operator, when this part of
 * the longer one is common to both: each writes its times a little apart. */
#define DOUBLE_MARK_MIN 0.9

/* Confidence from which on what repeats is called a step without a sign of training: it was marked,
 * or begins with a wait for data. */
#define STEPS_SURE_MIN 0.8

#endif
