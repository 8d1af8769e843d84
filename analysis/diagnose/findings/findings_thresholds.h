#ifndef LAC_ANALYSIS_DIAGNOSE_FINDINGS_FINDINGS_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_FINDINGS_FINDINGS_THRESHOLDS_H

/*
 * Thresholds of the findings, each with its unit and why. "Percent" is of the mean kept step where
 * nothing else is said. Bands (best, expected, worst) stand with the finder that they belong to.
 */

/* -- of all findings -- */

/* What gains less is no change to propose: steps of one run differ by as much. Nor is idle time under other
 * names counted that goes with a finding's own. */
#define GAIN_MIN_PCT 1.0
/* What is expected to be left of waits that a change takes away. */
#define WAITS_LEFT_MID 0.05
/* What costs less is not looked at; and where a change also costs work, three times that. */
#define COST_MIN_PCT         1.0
#define COST_OF_WORK_MIN_PCT 3.0
/* What is a remark at most until it costs as much as a limit does. */
#define COST_NOTED_MIN_PCT 5.0
/* Of the idle time, in percent, what Python functions fill with their own work before that is what
 * the device waits for, whatever call opened it. */
#define PYTHON_FILLS_MIN_PCT 50.0
/* Facts without a gain are said from here on. */
#define FACT_MIN_PCT 10.0
/* Severity by gain. */
#define CRITICAL_GAIN_PCT 20.0
#define WARNING_GAIN_PCT  3.0
/* Part of what a finding costs that one before it claims as well, from which on they are alternatives. */
#define SAME_TIME_MIN 0.8
/* Ranks are percent gained times confidence. "GPU-bound" stands where one percent would, and before all
 * remarks; then what is paid once, what has no gain last. Of two within a third of each other the one that
 * takes less comes first. */
#define NEAR_TIE_MIN  1.5
#define RANK_OF_LIMIT 1.0
#define RANK_OF_ONCE  0.5
#define RANK_OF_FACTS (-1.0)
/* What repeats without a name is spoken of where its mean is known this well (percent); and steps of
 * inference, where there are two. */
#define REPETITION_UNCERTAIN_MAX_PCT 10.0
/* From this many steps on all that is not rare shows. */
#define STEPS_SHOW_ALL 10
/* What too few steps show is trusted no more than this. */
#define FEW_STEPS_CONFIDENCE 0.4
/* A change ends at the loader when the step would be 3 % shorter with every batch in time: as exact
 * as the replay is. */
#define ENDS_AT_LOADER_MIN 1.03
/* From this gain on it is said that the loader, of which nothing was recorded, may be the next
 * limit. */
#define UNKNOWN_LOADER_GAIN_PCT 10.0
/* A change has to gain this part of the step to be in the plan. */
#define PLAN_GAIN_MIN 0.01
/* The same where a wait hides behind another one, and no finding names it before the plan does. */
#define PLAN_HIDDEN_MIN 0.03

/* -- data -- */

/* Workers are the limit when they are busy this much of the time (percent). */
#define WORKERS_BUSY_PCT 80.0
/* Severity of a wait for data, by its cost. */
#define CRITICAL_WAIT_PCT 20.0
#define WARNING_WAIT_PCT  10.0
/* Where the number of workers is unknown, up to so many times as many are proposed: a host seldom has
 * cores for more, and then a batch has to get cheaper. */
#define WORKERS_TIMES_MAX 8.0
/* CPU time of a batch over the step from which on the allowed cores are full: the rest is the
 * training's own. */
#define CORES_FULL_MIN 0.75
/* Cores to ask for beyond what the CPU time of the batches fills, and by how much threads that run
 * or want to have to exceed those allowed. */
#define CORES_MARGIN 1.1
/* Threads of a worker beside the one that fetches, on a core or waiting for one. */
#define OTHER_THREADS_MIN 0.3
/* Periods are a tenth of a second: two of ten a second is a fifth of the time. */
#define PERIODS_MIN   2.0
#define THROTTLED_MIN 10.0
/* A batch that computes less than this waits for the rest (percent), and one that computes this
 * part in the training process is in memory. */
#define COMPUTES_PCT_MAX  50.0
#define IN_MEMORY_CPU_MIN 0.8
/* Workers that wait for a core this much of their time (percent) say so: less is the scheduler's. */
#define READY_PCT_TOLD 5.0
/* The queue played with more workers keeps up within this; shared memory asked for
 * beyond its need. */
#define KEEPS_UP_MAX 1.03
#define ROOM_MARGIN  1.25
/* Reading is this part of a batch, computes this part of that at most, and is not longer than the
 * fetches (but for clock noise). */
#define READ_SHARE_MIN     0.4
#define READ_CPU_MAX       0.5
#define READS_OF_FETCH_MAX 1.01
/* The queue played again gives back the step within this part; slow batches are this many percent
 * at most, and explain this part of the wait. */
#define TAIL_ERROR_MAX 0.15
#define TAIL_PCT_MAX   20.0
#define TAIL_SHARE_MIN 0.6
/* More batches ahead have to shorten the step by 3 %, and absorb the tail within 5 %. */
#define AHEAD_GAIN_MAX    0.97
#define AHEAD_ABSORBS_MAX 1.05
/* Half of the wait has to be what a finding says that it is. */
#define MAIN_PART_MIN 0.5
/* Workers that are busier than this (percent) are not idle while batches wait; packing that takes
 * this part of the wait is what to change. */
#define BUSY_PCT_MAX 85.0
#define PACKING_MIN  0.1
/* Without batch numbers, the first batch of an epoch is late for its workers' start when it takes as long
 * as this many steps: one fetch by one of so many workers that keep up takes less. What it takes is
 * expected to be half of that. */
#define FIRST_OF_STEPS_MIN 16.0
#define FETCH_OF_STEPS     8.0
/* At worst new workers still cost 0.4 of what they save. */
#define RESPAWN_WORST 0.6

/* -- the device's own work -- */

/* Computing from which on the GPU is the limit; chains of elementwise kernels that
 * are worth more than a note. */
#define GPU_BOUND_PCT       90.0
#define ELEMENTWISE_MIN_PCT 25.0
/* Conversions that are named: percent of the kernel time. */
#define NOTED_PCT 2.0
/* Work off the tensor cores that is worth a look: part of the busy time; mostly convolutions. */
#define UNUSED_TENSOR_MIN 0.05
#define MOSTLY_CONV_MIN   0.5
/* Padding that is worth sorting by length: percent of the positions. */
#define PADDING_PCT_MIN 10.0

/* -- the host -- */

/* What launches cost that is left by fewer of them: parts of a program resist, so that half of it is what
 * to count on. */
#define LAUNCH_LEFT_MID 0.5
/* A faster optimizer saves this many times as much where the copies do not wait: then these come first. */
#define EATEN_MIN 2.0

/* One thread does all of the host's work: percent of a core that it fills, and that
 * no other does. */
#define THREAD_FULL_PCT  90.0
#define THREAD_OTHER_PCT 50.0
/* Caching is off when the driver allocates this much for a kernel (each makes a tensor or writes
 * into one), and releases this part of it within the steps; a step of fewer allocations may ask for
 * some large blocks alone. An emptied cache gives back segments, each of which held many tensors. */
#define UNCACHED_PER_KERNEL_MIN 0.25
#define UNCACHED_RELEASED_MIN   0.3
#define UNCACHED_LEAST          20.0
/* Waits a step from which on they are many, and stand in the way of a graph (one at its end does
 * not). */
#define WAITS_MANY_MIN     5.0
#define WAITS_IN_GRAPH_MIN 1.5
#define CAPTURED_MIN_PCT   1.0
/* Where graphs launch this many of a hundred kernels, the host launches next to none one by one. */
#define CAPTURED_MOST_PCT 90.0
/* A wait of every step comes in half of them at least; behind other names it has to gain what a warning does,
 * and no finding that names the idle time may gain this part of it. */
#define EVERY_STEP_MIN   0.5
#define BEHIND_GAIN_PCT  3.0
#define SAID_ALREADY_MIN 0.8

/* Part of the steps from which on the profiler's stalls are what a stop of the host seems to cost. */
#define PROFILER_HOLDS_MIN 0.01
/* Waits for each kernel from which on they stand behind each: some kernels are launched in pairs. */
#define CALLS_PER_KERNEL_MIN 0.5

/* -- beside the steps -- */

/* Percent of the time that a reason holds the clocks: heat and power supply are faults, a power
 * limit is usual until it holds half of the time. */
#define HELD_FAULT_PCT 20.0
#define HELD_LIMIT_PCT 50.0
/* Percent of the recording from which on a phase is said. */
#define PHASE_MIN_PCT 5.0
/* A drift is 5 % from the first quarter to the last, and five deviations of the rank test (once in
 * millions by chance); it is waiting for data when half of it is. */
#define DRIFT_MIN_PCT    5.0
#define DRIFT_DEVIATIONS 5.0
#define DRIFT_WAIT_MIN   0.5
/* Each quarter goes a tenth of the whole way at least: a jump at one place is no drift. */
#define DRIFT_QUARTER_MIN 0.1
/* Copies that stay this much slower than measured once they are pinned are not pinned. */
#define PINNED_FASTER_MIN 1.1

/* A copy's call that stops the host costs more than the copy where this part of what goes is beside it. */
#define STOPPED_SAID_MIN 0.1

#endif
