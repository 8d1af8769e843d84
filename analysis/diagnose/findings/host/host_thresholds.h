#ifndef LAC_ANALYSIS_DIAGNOSE_HOST_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_HOST_THRESHOLDS_H

/* Thresholds of the findings about the host's own work, each with its unit and why. */

/* -- zero-grad-fills -- */

/* Fills a step from which on they are those of a model's parameters. */
#define FILLS_MIN 10.0
/* Of the fills, the part to which gradients are added afterwards: the others may be buffers of the
 * program. Parameters that got no gradient in a step are filled without being added to. */
#define FILLS_ADDED_MIN 0.3
/* Of the time in zero_grad() beside the fills, what setting attributes to None still takes. */
#define ZERO_GRAD_LEFT 0.15
/* Of what fills and additions take, the part that is expected to go: the first gradient of a step is
 * allocated now, and the optimizer looks at which parameters have one. */
#define FILLS_SPARED_MID 0.9

/* -- host-slow -- */

/* Operators of each kind that have a median. */
#define OPERATORS_MIN 20
/* Microseconds that operators take which only make a new view of a tensor. Usual: the median over
 * healthy recordings, which lie between 0.2 and 2. The limit is above all of them, old ones with
 * times in whole microseconds and older versions of PyTorch (as_strided to 4, view to 11, detach to 7)
 * included. */
#define AS_STRIDED_USUAL_US 1.0
#define AS_STRIDED_LIMIT_US 10.0
#define VIEW_USUAL_US       1.0
#define VIEW_LIMIT_US       15.0
#define DETACH_USUAL_US     1.5
#define DETACH_LIMIT_US     15.0
/* Of the way to a usual host, the part that is expected: the usual is a median. */
#define HOST_CURED_MID 0.97

/* -- host-work -- */

/* Percent of the step that an operator's own time has to take while the GPU is idle to be named. */
#define HOST_WORK_MIN_PCT 3.0
/* Milliseconds of own time in the mean call: shorter ones are many, and their launches are the subject
 * of other findings. */
#define HOST_CALL_LONG_MS 1.0

/* -- compile-health -- */

/* Copies of graph inputs a step: fewer are the batch itself. */
#define INPUT_COPIES_MIN 8.0
/* Kernels a step inside compiled regions from which on fusing some is to be expected. */
#define UNFUSED_KERNELS_MIN 30.0
/* Of their time, what elementwise work, norms and reductions make at least: matrix products alone
 * have nothing to fuse. */
#define FUSABLE_MIN 0.1
/* With a backend that fuses: what is left of the time of work that is fused, which no longer goes
 * through memory between operators, and of the host's time for operators that are launched together. */
#define FUSED_TIME_LEFT 0.33
#define FUSED_HOST_LEFT 0.25
/* Of the copies and of what is not fused, the part that is expected to go: some inputs are new
 * tensors in every step, and what a backend cannot express stays as it is. */
#define INPUTS_KEPT_MID  0.9
#define UNFUSED_GONE_MID 0.9
/* Compiled regions with numbers of their own from which on the model is in pieces: two are a model and
 * its loss. */
#define REGIONS_MANY_MIN 3.0

#endif
