#ifndef LAC_ANALYSIS_DIAGNOSE_FINDINGS_H
#define LAC_ANALYSIS_DIAGNOSE_FINDINGS_H

/*
 * Private: findings, one file each (find_*.c). Each looks at the facts and the step's time, decides
 * whether it has something to say, estimates the change by playing the steps again, and fills a finding by the
 * grammar: what waits for what, why we think so, change, expect, costs, wrong if, check, evidence.
 */

#include "analysis/diagnose/facts/program.h"                // IWYU pragma: export
#include "analysis/diagnose/facts/recorded/torch_version.h" // IWYU pragma: export
#include "analysis/diagnose/facts/step_operations.h"        // IWYU pragma: export
#include "analysis/diagnose/findings/findings_thresholds.h" // IWYU pragma: export
#include "analysis/diagnose/names/device_peaks.h"           // IWYU pragma: export
#include "analysis/diagnose/replay/what_if_replay.h"        // IWYU pragma: export

/** All findings, in order, and the plan. After the subject, the phases and the loading. */
void lac_findings_make(struct lac_facts *facts);
/** Fill `where` of those that no setting has told, from recorded stacks (where.c). */
void lac_findings_place(const struct lac_facts *facts);
/** What a report shows of the timeline; after the findings (views.c). O(gaps). */
void lac_views_choose(struct lac_facts *facts);

/* -- for finders ------------------------------------------------------------------------------ */

/**
 * Cost in ns of a step: what there is of it in the partition, of the parts of its cause first. It is what
 * the title says. Of the step no case of the gain takes more than that and, where the replay shows
 * it, idle time under other names that goes with it (lac_finding_settle() adds and says it).
 */
void lac_finding_cost(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns);
/** The same of a finding about the device's work, of which at most `work_ns` can go; the rest is idle
 *  time that goes with its launches. */
void lac_finding_cost_of(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns,
                         double work_ns);
/** ": launches 11 ms + host 17 ms" of a cost that several parts make up; "" of one. */
const char *lac_finding_parts(const struct lac_facts *facts, const struct lac_finding *finding);

/** Play the steps with the change in its three cases: predicted steps and gains. */
void lac_finding_estimate(const struct lac_facts *facts, struct lac_finding *finding,
                          const struct lac_what_if_changes *what_if);
/** The same from given step times. */
void lac_finding_estimate_steps(const struct lac_facts *facts, struct lac_finding *finding,
                                const double step_ns[LAC_CASE_COUNT_]);

/**
 * Cost and gain of a finding that is complete, in one: it has no gain where it proposes no change, and
 * its cost is at least what the best case gains. What is more than the title says is said behind it.
 */
void lac_finding_settle(const struct lac_facts *facts, struct lac_finding *finding);

/** Whether it makes everything else that the trace shows beside the point. */
bool lac_finding_says_it_all(const struct lac_finding *finding);

/** critical from 20 % of the step, warning from 3 %, else info. */
enum lac_severity lac_severity_of_gain(double gain_pct);

/**
 * Estimate a finding, when both are worth saying: cost from `cost_min_pct` of the step, gain from
 * one percent.
 *
 * @return whether they are; where not, nothing was filled
 */
bool lac_finding_open(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns,
                      double cost_min_pct, const struct lac_what_if_changes *what_if);
/** The same of a cost that may leave no hole, as something else runs on meanwhile: what the replay saves
 *  beyond `cost_ns` is claimed, too, up to `most_ns` in all. */
bool lac_finding_open_hidden(const struct lac_facts *facts, struct lac_finding *finding,
                             double cost_ns, double most_ns, double cost_min_pct,
                             const struct lac_what_if_changes *what_if);
/** Whether the profiler's own stalls take so much of the steps that what a stop of the host costs
 *  beside communication cannot be told. */
bool lac_is_held_by_profiler(const struct lac_facts *facts);
/** Whether the finding claims such time, so that the GPU does not stand still for all of its cost. */
bool lac_finding_hides(const struct lac_finding *finding);
/** A finding that says a fact: no gain is known. */
void lac_finding_open_fact(struct lac_finding *finding);
/** The change as it was played for the expected case: the plan makes the same, also where it gains nothing
 *  alone. */
void lac_finding_note(const struct lac_facts *facts, enum lac_finding_kind kind,
                      const struct lac_change *mid);
/** What the change gains is not known, or nothing is proposed. */
void lac_finding_forget_gain(struct lac_finding *finding);

/* -- of operations of kept steps (step_operations.h) -- */

/** Time that a change saves of operations, by what they are to a change, a step. */
struct lac_saving {
    double ns[LAC_OP_CLASS_COUNT_];
};

/** Add `ns` of that operation, of all covered steps together. */
void lac_saving_add(const struct lac_facts *facts, struct lac_saving *saving, uint64_t slice,
                    double ns);

/** The change that takes `factor` of the saving off the step. */
void lac_change_from_saving(const struct lac_facts *facts, const struct lac_saving *saving,
                            double factor, struct lac_change *ret_change);

/** The same of chosen operations, which are marked (edits.h): beside collectives it matters which of a
 *  class get shorter. Where the steps are not played by a graph, by class as above. */
struct lac_shorter {
    struct lac_edits *edits;
    double ns[LAC_CASE_COUNT_]; /**< all of them together */
    struct lac_saving saving[LAC_CASE_COUNT_];
};

void lac_shorter_begin(const struct lac_facts *facts, enum lac_finding_kind kind,
                       struct lac_shorter *ret_shorter);

/** `parts` of the operation's time go: most in the best case. */
void lac_shorter_add(const struct lac_facts *facts, struct lac_shorter *shorter,
                     const struct lac_step_operation *op, const double parts[LAC_CASE_COUNT_]);

/** The changes; in the others than the best one each gets shorter by the same share of what it does
 *  there. */
void lac_changes_from_shorter(const struct lac_facts *facts, const struct lac_shorter *shorter,
                              struct lac_change ret_changes[LAC_CASE_COUNT_]);

/** As lac_finding_open(), for the three changes of operations. */
bool lac_finding_open_changes(const struct lac_facts *facts, struct lac_finding *finding,
                              double cost_ns, double cost_min_pct,
                              const struct lac_change changes[LAC_CASE_COUNT_]);

/* -- evidence -- */

/** A gap, with what it waited for in words, and the slice of that. */
void lac_evidence_rooted_gap(const struct lac_facts *facts, struct lac_finding *finding,
                             uint64_t index, int64_t idle_ns);

/** The longest gaps of the main device inside kept steps with that cause, `most` of them. */
void lac_evidence_gaps(const struct lac_facts *facts, struct lac_finding *finding,
                       enum lac_cause cause, int most);

/** Idle time of a step in pieces of that cause which are shorter than `limit_ns`. */
double lac_idle_in_short_pieces(const struct lac_facts *facts, enum lac_cause cause,
                                int64_t limit_ns);

/** Name of the innermost operator or range around a host slice, "" when there is none. */
const char *lac_enclosing_name(const struct lac_model *model, uint64_t slice);

/** "269 ms a step, 950 samples/s: 10 % less time a step (9-11 %)" of an estimated finding. */
const char *lac_finding_expect(const struct lac_facts *facts, const struct lac_finding *finding);

/** Evidence: a slice, or an interval of the main device. Ignored when there are enough. */
void lac_evidence_slice(const struct lac_facts *facts, struct lac_finding *finding, uint64_t slice,
                        const char *text);
void lac_evidence_gap(const struct lac_facts *facts, struct lac_finding *finding, uint64_t gap,
                      const char *text);
/** What a person calls the track: its name, else its kind and id. */
const char *lac_track_label(const struct lac_facts *facts, uint32_t track);

/* -- the finders -- */

/*
 * One function a finding: looks at the facts, and at the findings before it in the registry,
 * decides whether there is something to say, and fills `finding`, which is empty but for its kind.
 * Changes nothing else; texts go into the analysis' pool. What it filled is dropped when it returns
 * false.
 */
#define LAC_FINDER(kind, phase, subjects, finder)                                                  \
    bool finder(const struct lac_facts *facts, struct lac_finding *finding);
#include "analysis/diagnose/result/finding_registry.def"

/** Whether the loop makes no gradients: advice about these has no place there. */
static inline bool lac_is_inference(const struct lac_facts *facts)
{
    return facts->analysis->workload == LAC_WORKLOAD_INFERENCE;
}

/** What a framework's own switch can set. */
enum lac_switch {
    LAC_SWITCH_NUM_WORKERS = 0,
    LAC_SWITCH_PREFETCH_FACTOR,
    LAC_SWITCH_PERSISTENT_WORKERS,
    LAC_SWITCH_PIN_MEMORY,
    LAC_SWITCH_BFLOAT16,  /**< mixed precision; takes no value */
    LAC_SWITCH_FLOAT16,   /**< mixed precision; takes no value */
    LAC_SWITCH_TF32,      /**< takes no value */
    LAC_SWITCH_READ_LESS, /**< values of the GPU that are logged; takes no value */
    LAC_SWITCH_COUNT_
};
/** The lines that set it to `value` in the framework which the recording names; NULL where there are none,
 *  so that PyTorch's own are shown. */
const char *lac_framework_advice(const struct lac_facts *facts, enum lac_switch which,
                                 const char *value);

/** The line that groups the updates of an optimizer which makes them one by one; "" where none does. */
const char *lac_grouped_optimizer_line(const struct lac_facts *facts);

/** Attention in separate kernels as a fact, where no advice is given: a sentence or two, or "". */
const char *lac_unfused_attention_text(const struct lac_facts *facts);

/** How much faster matrix work is expected to get on tensor cores. */
double lac_tensor_speedup(const struct lac_facts *facts, enum lac_case which);
/** The change of tensor-cores-unused where that is a fact, because something else is the limit now: what the
 *  plan makes behind that, in a few words, "" where the finding is none or proposes it itself; and what
 *  it then says of it, with the step that the plan promises. */
const char *lac_tensor_cores_behind(const struct lac_facts *facts);
void lac_tensor_cores_propose_behind(const struct lac_facts *facts, int64_t step_ns);
/** A wait of every step that nothing names, because another is the limit now, as a finding without a gain: what
 *  the plan makes behind that, with the step that it promises (find_sync_stall.c). @return whether there is one */
bool lac_sync_stall_behind(const struct lac_facts *facts, struct lac_finding *finding,
                           int64_t step_ns);
/** Add a finding after the search, behind the others. */
void lac_findings_append(const struct lac_facts *facts, const struct lac_finding *finding);
/** What to write for a value that is read inside TorchRec's exchange of inputs; "" of a call elsewhere
 *  (communication/communication.c). */
const char *lac_exchange_read_change(const struct lac_facts *facts, uint64_t call);
/** The type that most of the matrix work is in; LAC_PRECISION_UNKNOWN without one. */
enum lac_precision lac_products_precision(const struct lac_facts *facts);
/** Whether the device has tensor cores that a notable part of its time could use. */
bool lac_has_unused_tensor_cores(const struct lac_facts *facts);

/** host/python_lines.c: say in each finding that blames the host which lines of Python it was in, in the
 *  idle time that the finding is about. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_findings_tell_lines(struct lac_facts *facts);

/** fix_plan.c: what to do after the first change. */
void lac_plan_make(const struct lac_facts *facts);

#endif
