#ifndef LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_H
#define LAC_ANALYSIS_DIAGNOSE_STEPS_STEPS_H

/* Where the steps are, which are kept, and what each did; what others call of this folder. */

#include "analysis/diagnose/facts/facts.h"            // IWYU pragma: export
#include "analysis/diagnose/steps/steps_thresholds.h" // IWYU pragma: export

/* steps.c: where they are; step_period.c: found without names; step_filter.c: which are kept */
LAC_MUST_USE enum lac_status lac_steps_detect(struct lac_facts *facts);
LAC_MUST_USE enum lac_status lac_steps_by_period(struct lac_facts *facts);
/** step_pass.c: what repeats may be a part of one pass; whether a kernel's name (a row of the table) shows
 *  training: gradients or an optimizer. */
LAC_MUST_USE enum lac_status lac_steps_judge_repetition(struct lac_facts *facts);
bool lac_kernel_name_trains(const struct lac_facts *facts, uint32_t row);
/* step_optimizer.c: by the optimizer's kernels */
LAC_MUST_USE enum lac_status lac_steps_by_optimizer_kernels(struct lac_facts *facts);
/* step_micro.c: accumulated gradients; before it is chosen for whole cycles of them */
LAC_MUST_USE enum lac_status lac_steps_find_micro(struct lac_facts *facts);
LAC_MUST_USE enum lac_status lac_steps_filter(struct lac_facts *facts);
/* step_kinds.c: what the others did, by the names of ranges; step_classify.c: by what they hold */
LAC_MUST_USE enum lac_status lac_steps_name_kinds(struct lac_facts *facts);
LAC_MUST_USE enum lac_status lac_steps_classify(struct lac_facts *facts);
/* phases.c: kinds of steps and phases of the recording, when the subject is known */
LAC_MUST_USE enum lac_status lac_phases_measure(struct lac_facts *facts);
/** The last step that starts at or before `t_ns`, near `hint` mostly; LAC_NONE before the first. */
uint32_t lac_step_at(const struct lac_analysis *analysis, int64_t t_ns, uint32_t hint);
/** The same by the host's marks: the step that something which the host does belongs to. */
uint32_t lac_step_of_host_at(const struct lac_analysis *analysis, int64_t t_ns, uint32_t hint);
/** Append a step; used by the three ways to find them. */
LAC_MUST_USE enum lac_status lac_steps_add(struct lac_facts *facts, int64_t start_ns,
                                           int64_t dur_ns, uint32_t name, uint32_t slice);
/* step_partition.c: the mean kept step as one sum; when the workload is known, the device's span
 * where there is no step to speak of */
LAC_MUST_USE enum lac_status lac_partition_of_step(struct lac_facts *facts);
void lac_partition_settle(struct lac_facts *facts);
/** What is repeated, in a word: "step", "batch" or "iteration". */
const char *lac_step_unit(const struct lac_analysis *analysis);
/* workload_kind.c: what the trace is a recording of; before the phases */
void lac_workload_kind_decide(struct lac_facts *facts);

#endif
