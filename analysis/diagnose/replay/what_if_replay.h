#ifndef LAC_ANALYSIS_DIAGNOSE_WHAT_IF_REPLAY_H
#define LAC_ANALYSIS_DIAGNOSE_WHAT_IF_REPLAY_H

/*
 * Private: the mean kept step taken apart, and the step with a change.
 *
 * With a change it comes from the graph (graph.h): all that waits, played again. Where that does
 * not give back the recorded time, or cannot be built:
 *
 *   step = max(s, data)      s: what device and host need without starvation
 *                            data: the time in which the loader delivers a batch
 *
 * s with a change then comes from the device's operations alone: each starts when the stream is
 * free, but not before its launch; time saved is lost again where the device waits for the host,
 * unless the host itself gets there earlier because it waited for the device before.
 */

#include "analysis/diagnose/facts/facts.h"              // IWYU pragma: export
#include "analysis/diagnose/replay/edits.h"             // IWYU pragma: export
#include "analysis/diagnose/replay/replay_thresholds.h" // IWYU pragma: export

/** What an operation is to a change. */
enum lac_op_class {
    LAC_OP_OTHER = 0,
    LAC_OP_COMPUTE,
    LAC_OP_LAYOUT,        /**< class L */
    LAC_OP_UNUSED_TENSOR, /**< eligible, but not on tensor cores */
    LAC_OP_COMM,
    LAC_OP_COPY_PAGEABLE, /**< to the device, larger than COPY_SMALL_BYTES */
    LAC_OP_COPY_PINNED,   /**< the same from pinned memory */
    LAC_OP_CLASS_COUNT_
};

/** One operation of the replayed window. */
struct lac_replay_op {
    int64_t start_ns;
    double alone_ns;    /**< part of it while nothing of another class ran (operations.h) */
    int64_t launch_ns;  /**< when its launch began; LAC_UNKNOWN_NS not recorded */
    int64_t gap_ns;     /**< idle before it */
    uint8_t op_class;   /**< enum lac_op_class */
    bool is_after_data; /**< the gap before it was (in part) a wait for data */
};

struct lac_edits;
enum { LAC_CHANGE_EDITS_MAX = 12 }; /* sets of edits that one change may hold */

/** A change as factors on operations. */
struct lac_change {
    double factor[LAC_OP_CLASS_COUNT_];   /**< 1: as it is */
    double idle_factor[LAC_CAUSE_COUNT_]; /**< 0: idle time of that cause goes away */
    int32_t workers;                      /**< LAC_WHAT_IF_UNSET: as they are */
    double fetch_factor;                  /**< how much longer a fetch takes than its mean */
    double layout_launches;               /**< conversions that are still launched: 1 all */
    double host_factor;      /**< how much longer s takes because workers compete with the host */
    double optimizer_factor; /**< on the host's work inside the optimizer's ranges */
    bool copies_ahead;       /**< batches are copied one ahead, on a stream of their own */
    bool pins_copies;        /**< from memory that is pinned now */
    double ahead_kept;       /**< of a copy's time, what kernels beside it lose */
    bool is_loader_free;     /**< every batch is there when it is asked for */
    bool hides_comm;         /**< no computing waits for communication */
    const struct lac_edits *edits[LAC_CHANGE_EDITS_MAX]; /**< changes of chosen slices */
    float edits_part[LAC_CHANGE_EDITS_MAX]; /**< of what each does to its operations: 1 all */
    uint32_t edits_count;
    double edits_share;  /**< 1: all of their effect; 0.5: half */
    bool saves_launches; /**< operations that get shorter are fewer: their launches go, too */
};

struct lac_graph;
struct lac_step_time {
    double step_ns;    /**< mean kept step */
    double starved_ns; /**< of it: waiting for data with the device idle */
    double s_ns;       /**< step without starvation */
    double busy_ns, compute_ns, exposed_comm_ns, exposed_copy_ns; /**< of the main device */
    double idle_ns[LAC_CAUSE_COUNT_];
    double host_ns; /**< the launching threads' own work; NaN unknown */
    double copies_ns, comm_ns;
    double batches; /**< that a step takes from the loader: 1 or more */
    double pin_ns;  /**< a batch in the one thread that pins those of all workers; 0 none does */
    double data_ns; /**< those of one step every so many ns; NaN unknown */
    bool is_in_process; /**< loading is in series with launching: num_workers 0 */
    bool is_starving;   /**< 5 % of the step or more */

    double class_ns[LAC_OP_CLASS_COUNT_]; /**< the step's busy parts of the partition by class */
    double class_total_ns[LAC_OP_CLASS_COUNT_]; /**< a step's time by class, hidden or not */
    double class_bytes[LAC_OP_CLASS_COUNT_];    /**< a step's bytes, copies only */
    double class_count[LAC_OP_CLASS_COUNT_];
    double pinned_gb_s; /**< best seen in this trace or usual for the device */
    bool is_pinned_seen;

    double *fetch_ns; /**< fetches in the order of their batches, NULL when too few */
    uint64_t fetch_count;
    double
        cores_ns; /**< CPU time of a step's batches shared by the cores that the job may use; 0 unknown */

    struct lac_replay_op *ops;
    uint64_t op_count;
    double op_steps; /**< steps that the replayed window holds */

    struct lac_graph *graph; /**< NULL where the trace does not show enough for one */
    uint64_t edits_versions; /**< given to edits so far */
    struct lac_edits *edits[LAC_FINDING_COUNT_]; /**< changes of chosen slices, or NULL (edits.h) */
    struct lac_change mids[LAC_FINDING_COUNT_];  /**< what was expected of a finding's change ... */
    bool has_mid[LAC_FINDING_COUNT_];            /**< ... where it was played */
};

void lac_change_clear(struct lac_change *change);

/** Add a change of chosen slices (edits.h); NULL, or more than fit: nothing is added. `share` of
 *  the effect of all is what comes true: 1 all. */
void lac_change_edit(struct lac_change *change, struct lac_edits *edits, double share);

/** Add a change of chosen operations, each of which gets shorter by this part of what its mark says. */
void lac_change_shorten(struct lac_change *change, struct lac_edits *edits, double part);

/** What the operation of a slice is to a change; of a copy its bytes, else -1. */
enum lac_op_class lac_op_class_of(const struct lac_facts *facts, uint64_t slice,
                                  int64_t *ret_bytes);

/** The same of kernels alone; LAC_OP_OTHER for copies, too. */
enum lac_op_class lac_kernel_op_class(const struct lac_facts *facts, uint64_t slice);

LAC_MUST_USE enum lac_status lac_step_time_measure(struct lac_facts *facts);
void lac_step_time_destroy(struct lac_step_time *time);

/** Share of the mean kept step in percent. */
double lac_pct_of_step(const struct lac_facts *facts, double ns);

/** Share of the step that computes, layout conversions left out: 90 and more is gpu-bound. */
double lac_computing_pct(const struct lac_facts *facts);

/** What of the graph, played without a change, gives back what was recorded. */
enum lac_trust {
    LAC_TRUST_NONE = 0,
    LAC_TRUST_DEVICE, /**< host and device, but not the loader's queue */
    LAC_TRUST_ALL,
};
enum lac_trust lac_graph_trust(const struct lac_step_time *time);

/** Mean step if every batch were there when it is asked for. Not s, which counts only the waiting
 *  that the device felt: a host that no longer waits may then be ahead of the device. */
double lac_step_without_waiting(const struct lac_facts *facts);

/** The host is `saved` (0 to 1) less long in its optimizer, for which the
 *  device waits `cost_ns`. */
void lac_change_optimizer(const struct lac_facts *facts, double saved, double cost_ns,
                          struct lac_change *change);

/** Mean step with the change; the measured one when nothing changes. */
double lac_what_if_replay(const struct lac_facts *facts, const struct lac_change *change);

/** The same of several changes, side by side where the facts have a crew. */
void lac_what_if_replays(const struct lac_facts *facts, const struct lac_change *changes,
                         uint32_t count, double *ret_step_ns);

/** Mean step of a loop that needs `s_ns` a step, with `workers` that fetch as recorded, in turn and
 *  in order, as many batches ahead as was recorded, else two. */
double lac_loader_step(const struct lac_step_time *time, double s_ns, int32_t workers,
                       double factor);

/** The same, each worker so many batches ahead. */
double lac_loader_step_prefetch(const struct lac_step_time *time, double s_ns, int32_t workers,
                                int32_t ahead, double factor);

/** How sure: best, expected and worst case of a change (ways to be uncertain are per change). */
enum lac_case { LAC_CASE_BEST = 0, LAC_CASE_MID, LAC_CASE_WORST, LAC_CASE_COUNT_ };

/** The factors of --what-if changes in one case. */
void lac_change_from_what_if(const struct lac_facts *facts,
                             const struct lac_what_if_changes *what_if, enum lac_case which,
                             struct lac_change *ret_change);

/** By what part an answer may be off whatever it assumes. */
double lac_replay_error(const struct lac_step_time *time);

/** Fill what_if of the analysis. */
void lac_what_if_answer(struct lac_facts *facts, const struct lac_what_if_changes *what_if);

/** Fill analysis->worker_steps, after the findings. */
void lac_worker_steps_measure(struct lac_facts *facts);

#endif
