#ifndef LAC_ANALYSIS_DIAGNOSE_ANALYSIS_H
#define LAC_ANALYSIS_DIAGNOSE_ANALYSIS_H

/*
 * What lac_diagnose() found: struct lac_analysis, read only, everything in it owned by it.
 *
 * Numbers that cannot be known: LAC_UNKNOWN_NS for int64_t, NaN for double, -1 for counts that say
 * so; all are printed as null. Text is UTF-8, NUL-terminated, never NULL unless it says so ("" =
 * the part could not be filled and is left out). Slice and string ids are those of the model.
 *
 * Invariants, asserted by lac_analysis_is_valid():
 *  (1) per device: busy + idle = span; the partition sums to span; idle_by_cause sums to idle;
 *  (2) gaps of a device ascend, do not overlap and sum to its idle; the pieces of a gap are
 *      consecutive, without holes, and sum to it;
 *  (3) kernels descend by total, equal ones ascend by name;
 *  (4) kinds of steps sum to all steps; phases follow each other without holes from 0 to
 *      duration_ns, and every step is counted in one of them;
 *  (5) the parts of the partition sum to its total, which is the mean kept step or the device's span;
 *      a finding claims no more of a part than there is, and all it claims is its cost;
 *  (6) numbers are possible: lengths within the recording, costs and gains within 0 and 100 percent
 *      of the step, no gain above the cost, sums within what JSON carries exactly, nothing infinite.
 */

#include "analysis/diagnose/names/device_peaks.h"   // IWYU pragma: export
#include "analysis/diagnose/names/names.h"          // IWYU pragma: export
#include "analysis/diagnose/result/cause.h"         // IWYU pragma: export
#include "analysis/diagnose/result/finding_types.h" // IWYU pragma: export
#include "analysis/diagnose/result/what_if.h"       // IWYU pragma: export
#include "analysis/model/model.h"                   // IWYU pragma: export
#include "analysis/model/status.h"                  // IWYU pragma: export
#include "analysis/model/strings.h"                 // IWYU pragma: export

#include <stdbool.h> // IWYU pragma: export
#include <stdint.h>  // IWYU pragma: export

struct lac_analysis;

enum lac_severity { LAC_SEVERITY_INFO = 0, LAC_SEVERITY_WARNING, LAC_SEVERITY_CRITICAL };
const char *lac_severity_name(enum lac_severity severity);

/** What the trace is a recording of. Only LAC_WORKLOAD_TRAINING is given advice about steps. */
enum lac_workload_kind {
    LAC_WORKLOAD_TRAINING = 0,
    LAC_WORKLOAD_NO_GPU,        /**< no GPU operation recorded */
    LAC_WORKLOAD_COLD_START,    /**< mostly first use of the GPU: says nothing about a step */
    LAC_WORKLOAD_INFERENCE,     /**< no backward pass, no optimizer */
    LAC_WORKLOAD_FEW_STEPS,     /**< one step kept, or some that differ too much to have a mean */
    LAC_WORKLOAD_NO_STEPS,      /**< GPU work, but no step found, or what repeats may be a layer */
    LAC_WORKLOAD_HOST_TRAINING, /**< training without a GPU operation in the trace: its loader and
                                  its host can be judged, nothing else */
};
const char *lac_workload_kind_name(enum lac_workload_kind subject);

/* -- facts --------------------------------------------------------------------------------- */

enum lac_partition {
    LAC_PART_COMPUTE = 0,
    LAC_PART_EXPOSED_COMM,
    LAC_PART_EXPOSED_COPY,
    LAC_PART_EXPOSED_MEMSET,
    LAC_PART_IDLE,
    LAC_PART_COUNT_
};
/** "compute", "exposed_comm", "exposed_copy", "exposed_memset", "idle". */
const char *lac_partition_name(enum lac_partition part);

/** Parts of a device's time: what it worked at, the first of which counts where several run at once,
 *  then why it was idle. The order and the names are part of the contract. */
enum { LAC_TIME_PART_COUNT = LAC_PART_IDLE + LAC_CAUSE_COUNT_ };
static inline uint32_t lac_time_part_of(enum lac_cause cause)
{
    return (uint32_t)LAC_PART_IDLE + (uint32_t)cause;
}
/** "compute", "exposed_comm", "exposed_copy", "exposed_memset", "data_wait", ..., "unattributed". */
const char *lac_time_part_name(uint32_t part);

/** What a partition is of. */
enum lac_partition_of {
    LAC_OF_NOTHING = 0, /**< no device */
    LAC_OF_STEP,        /**< the mean kept step, of whatever is repeated */
    LAC_OF_RECORDING,   /**< from the device's first operation to the end of its last: no steps */
};

/**
 * Where the time of the device goes that computes most: the one sum that the verdict, the costs of
 * findings and every chart show. Of a step it is taken from the steps' begin to their end: what the
 * device waited for before its first operation belongs to it.
 */
struct lac_time_partition {
    uint8_t of;      /**< enum lac_partition_of */
    uint32_t device; /**< index into lac_analysis.devices, or LAC_NONE */
    const char *per; /**< "step", "batch", "iteration" or "recording" */
    int64_t total_ns;
    int64_t part_ns[LAC_TIME_PART_COUNT]; /**< sums to total_ns */
};

struct lac_device_facts {
    int64_t id;
    uint32_t name; /**< string id, 0 unknown */
    int64_t first_ns;
    int64_t span_ns;
    int64_t busy_ns;
    int64_t idle_ns;
    double busy_pct;          /**< NaN when the span is 0 */
    double not_computing_pct; /**< NaN when the span is 0 */
    int64_t partition_ns[LAC_PART_COUNT_];
    uint64_t gap_count_10us;
    int64_t gap_total_10us_ns;
    int64_t gap_longest_ns;    /**< 0 when no gap reaches 10 us */
    int64_t gap_longest_at_ns; /**< 0 when no gap reaches 10 us */
    int64_t idle_by_cause_ns[LAC_CAUSE_COUNT_];
    uint64_t op_count;
    uint64_t first_gap, gap_count; /**< range of lac_analysis.gaps, all sizes */
    uint32_t gap_piece_count;      /**< pieces of those */
};

/** What opened a gap, kept apart from what the host did in it. */
enum lac_root_kind {
    LAC_ROOT_NONE = 0,
    LAC_ROOT_SYNC,       /**< `root` is the blocking call that drained the queue */
    LAC_ROOT_LATE_BATCH, /**< `root` is the worker's loader.fetch that delivered late, or the wait
                            itself */
    LAC_ROOT_LAUNCH,     /**< `root` is the call that launched the operation that ended the gap */
    LAC_ROOT_COUNT_
};
/** "none", "sync", "late_batch", "launch". */
const char *lac_root_kind_name(enum lac_root_kind kind);

/** An interval in which a device executes nothing. */
struct lac_gap {
    int64_t start_ns;
    int64_t dur_ns;
    uint64_t first_piece; /**< in lac_analysis.pieces */
    uint32_t piece_count;
    uint32_t ended_by;  /**< slice */
    uint32_t opened_by; /**< slice whose end began it */
    uint32_t root;      /**< slice, or LAC_NONE */
    uint32_t wait;      /**< of LAC_ROOT_LATE_BATCH: slice of the wait for it; else LAC_NONE */
    uint32_t batch;     /**< of LAC_ROOT_LATE_BATCH: what a worker still did for it during the wait,
                             its fetch, else (recording began in that) the last part of it; or
                             LAC_NONE */
    uint32_t signature; /**< index into lac_analysis.signatures */
    uint16_t device;    /**< index into lac_analysis.devices */
    uint8_t cause;      /**< enum lac_cause with the largest share */
    uint8_t root_kind;  /**< enum lac_root_kind */
};

struct lac_gap_piece {
    int64_t start_ns;
    uint32_t gap;  /**< index into lac_analysis.gaps */
    uint8_t cause; /**< enum lac_cause; a piece ends where the next one, or the gap, does */
};

/** An interval in which a device executes something, but no computing kernel. */
struct lac_exposed_span {
    int64_t start_ns, end_ns;
    uint16_t device; /**< index into lac_analysis.devices */
};

/** Gaps that look alike: same cause, same operation before and after. */
struct lac_gap_signature {
    uint32_t before; /**< string id of the operation that ended before it */
    uint32_t after;  /**< string id of the operation that ended it */
    uint8_t cause;
    uint64_t count;
    int64_t total_ns;
    double per_step; /**< occurrences per step; NaN without steps */
};

/** Length of a piece. */
int64_t lac_gap_piece_dur_ns(const struct lac_analysis *analysis, uint64_t piece);

/** One line on the root cause: "aten::item waited 12 ms for the GPU", "worker 3 delivered batch 213
 *  late". Empty when there is none. As snprintf. */
size_t lac_gap_root_text(const struct lac_analysis *analysis, const struct lac_model *model,
                         const struct lac_gap *gap, char *out, size_t capacity_bytes);

/** The finding to begin with: the first, or where that one only says that the GPU is the limit, the
 * change that gains behind it. @return NULL: nothing was found */
const struct lac_finding *lac_analysis_first_to_do(const struct lac_analysis *analysis);

/** Whether it is a change that gains: at least 1 % of the time. */
bool lac_finding_is_to_do(const struct lac_finding *finding);
/** Whether the plan holds its change: under its own name, as a part of a step's, or as what the plan calls
 *  a change whose finding gains nothing yet. */
bool lac_plan_holds(const struct lac_analysis *analysis, const struct lac_finding *finding);

/** What the job did beside training, a line a kind of step: those that take a hundredth of the
 * recording or more. @return lines, at most LAC_KIND_COUNT_ */
uint32_t lac_analysis_other_phases(const struct lac_analysis *analysis, const char **ret_texts);

enum lac_step_left_out {
    LAC_STEP_KEPT = 0,
    LAC_STEP_WARM_UP,
    LAC_STEP_TRUNCATED,
    LAC_STEP_OTHER_KIND,    /**< validation, checkpoint, ...: did other work than the others */
    LAC_STEP_PARTIAL_CYCLE, /**< so that the kept ones are whole cycles of the loader's workers */
    LAC_STEP_UNTIMED, /**< a step like the others whose length nothing tells: the next one is of
                                 another kind or was not recorded, its mark ended with the loop */
    LAC_STEP_LEFT_OUT_COUNT_
};
const char *lac_step_left_out_name(enum lac_step_left_out left_out);

/** What a step did. Only LAC_KIND_TRAIN is compared for outliers; which steps are kept for the mean
 *  is another question (`left_out`): epoch ends and recompilations return, so they stay. */
enum lac_step_kind {
    LAC_KIND_TRAIN = 0,
    LAC_KIND_WARM_UP,
    LAC_KIND_TRUNCATED,
    LAC_KIND_VALIDATION,
    LAC_KIND_CHECKPOINT,
    LAC_KIND_EPOCH_END, /**< the training loader begins anew in it */
    LAC_KIND_RECOMPILE, /**< code is loaded or compiled in it, after the first steps */
    LAC_KIND_OTHER,     /**< does other work; nothing says what */
    LAC_KIND_COUNT_
};
/** "train", "warm_up", "truncated", "validation", "checkpoint",
 *  "epoch_end", "recompile", "other". */
const char *lac_step_kind_name(enum lac_step_kind kind);

/** All steps of one kind. */
struct lac_step_kind_facts {
    uint8_t kind; /**< enum lac_step_kind */
    uint32_t count;
    uint32_t every; /**< steps from one to the next, where that is always the same; 0 where not */
    int64_t mean_ns, total_ns;
    int64_t own_ns;      /**< of that, what the kind itself takes: the phases of its name */
    double pct_of_steps; /**< total_ns of all steps' time; NaN when that is 0 */
    const char *why;     /**< what shows it */
    const char *text;    /**< "every 50th step writes a checkpoint: 2.1 s, 3 % of the run", or "" */
};

/** What the job was at, from the start of the recording to its end. */
enum lac_phase_kind {
    LAC_PHASE_START_UP = 0, /**< before the first step */
    LAC_PHASE_WARM_UP,
    LAC_PHASE_TRAINING,
    LAC_PHASE_STEPS, /**< steps of something that is not known to be training */
    LAC_PHASE_VALIDATION,
    LAC_PHASE_CHECKPOINT,
    LAC_PHASE_EPOCH_END,
    LAC_PHASE_RECOMPILATION,
    LAC_PHASE_OTHER, /**< steps of another kind; between steps, the device works */
    LAC_PHASE_IDLE,  /**< between steps, the device does next to nothing */
    LAC_PHASE_END,   /**< after the last step */
    LAC_PHASE_COUNT_
};
/** "start_up", "warm_up", "training", "steps", "validation", "checkpoint", "epoch_end",
 *  "recompilation", "other", "idle", "end". */
const char *lac_phase_name(enum lac_phase_kind kind);

struct lac_phase {
    int64_t start_ns, dur_ns;
    uint32_t step_count; /**< a step with a phase of its kind is counted there, else where it starts
                          */
    uint8_t kind;        /**< enum lac_phase_kind */
};

struct lac_step {
    int64_t start_ns;
    int64_t dur_ns;
    int64_t host_start_ns, host_dur_ns; /**< between the host's marks; differ from these where the
                                           steps are the device's */
    int64_t wait_ns;                    /**< waiting for data inside it */
    int64_t starved_ns;                 /**< of that, with the device idle */
    uint64_t op_count; /**< device operations launched (or, without launches, started) in it */
    uint32_t name;     /**< string id, 0 when found without a name */
    uint32_t slice;    /**< the range that names it, or LAC_NONE */
    uint8_t left_out;  /**< enum lac_step_left_out */
    uint8_t kind;      /**< enum lac_step_kind */
    bool is_outlier;
};

struct lac_kernel_facts {
    uint32_t name; /**< string id */
    uint32_t longest_slice;
    uint32_t first_slice; /**< by start */
    uint64_t count;
    uint64_t
        short_count; /**< of those, shorter than KERNEL_SHORT_NS; not kept with a stored trace */
    int64_t total_ns, min_ns, max_ns;
    struct lac_name_class names;
    int64_t flops; /**< of all instances; 0 where no shape says, or none */
    double
        pct_of_peak; /**< how fast those run, of the GPU's peak in their precision; NaN unknown */
};

/** How much of what the GPU can compute the job uses. Products and convolutions and attention are
 *  counted, from recorded shapes; a multiplication and an addition are two operations. */
struct lac_efficiency {
    const char *basis;            /**< what the rates are over: "step", "recording" or "none" */
    const char *why_not;          /**< why the model's share is not known, or "" */
    double flops_per_step;        /**< executed, what is computed twice included; NaN unknown */
    double model_flops_per_step;  /**< without what is computed twice; NaN unknown */
    double achieved_flops_per_s;  /**< of the model, over the whole step; NaN unknown */
    double peak_flops_per_s;      /**< of the GPU for this mix of precisions; NaN unknown */
    enum lac_precision precision; /**< of most of the operations */
    double mfu_pct, hfu_pct;      /**< model's and executed operations, of the peak; NaN unknown */
    double products_pct;          /**< of the peak, while products run; NaN unknown */
    double counted_pct;     /**< of the time of kernels that multiply: shapes are known; NaN none */
    int64_t products_ns;    /**< time of counted kernels in a step, or in the recording */
    bool is_causal_unknown; /**< attention counted in full where a mask may halve it */
    const char *device;     /**< the table's row, or "" */
    const char *source;     /**< of the peak, or "" */
    const char *text;       /**< all of it in a sentence; "" without kernels */
};

enum { LAC_PYTHON_LINES_MAX = 8 };

/** Which lines of Python the training thread was found in, 50 times a second. */
struct lac_python_samples {
    uint64_t sample_count;      /**< 0: none were recorded, and nothing here is known */
    uint64_t idle_sample_count; /**< of these, in kept steps while the main device was idle */
    uint32_t line_count;
    struct lac_python_line {
        const char *function;
        const char *place; /**< "photos/data.py:64" */
        uint64_t sample_count, idle_sample_count;
        uint32_t slice;            /**< its longest stretch, or LAC_NONE */
    } lines[LAC_PYTHON_LINES_MAX]; /**< by (-idle, -all) */
    const char *text; /**< the first ones in a sentence; "" where samples are too few */
};

enum { LAC_MEMORY_HOLDERS_MAX = 5 };

/** Memory of the main device over the recording, by its allocations and releases. */
struct lac_memory_facts {
    uint64_t event_count;   /**< 0: none was recorded, and nothing here is known */
    int64_t device;         /**< id */
    bool is_relative;       /**< the recorder told changes alone: bytes since the recording began */
    int64_t start_bytes;    /**< allocated when the recording began; LAC_UNKNOWN_NS unknown */
    int64_t peak_bytes;     /**< allocated at most */
    int64_t peak_ns;        /**< when */
    int64_t reserved_bytes; /**< that the allocator held then; LAC_UNKNOWN_NS unknown */
    int64_t device_bytes;   /**< that the device has; LAC_UNKNOWN_NS unknown */
    uint32_t peak_slice;    /**< the allocation that reached it, or LAC_NONE */
    const char *peak_in;    /**< the outermost operator that it was in, or "" */
    struct lac_memory_holder {
        const char *name; /**< the operator that allocated it; "before the recording" */
        int64_t bytes;
    } holders[LAC_MEMORY_HOLDERS_MAX]; /**< at the peak, by bytes */
    uint32_t holder_count;
};

struct lac_copy_facts {
    enum lac_copy_kind kind;
    enum lac_memory_kind src, dst;
    uint64_t count;
    int64_t bytes; /**< LAC_UNKNOWN_NS when not recorded */
    int64_t total_ns;
    int64_t exposed_ns; /**< while no kernel ran; LAC_UNKNOWN_NS in a file without times */
    uint32_t longest_slice;
};

struct lac_loader_facts {
    bool is_present; /**< any loader range */
    int64_t wait_ns;
    int64_t starved_ns;
    double wait_pct_of_steps; /**< NaN without steps by name */
    uint64_t batch_count;
    int32_t num_workers;             /**< -1 unknown; 0: loads in the training process */
    bool are_workers_inferred;       /**< num_workers and fetch_mean_ns come from the waits alone */
    int32_t recommended_num_workers; /**< -1: none to recommend */
    uint64_t fetch_count;
    int64_t fetch_mean_ns, fetch_p95_ns, fetch_cpu_mean_ns; /**< LAC_UNKNOWN_NS when not recorded */
    int64_t
        pin_mean_ns; /**< a batch in the one thread that pins those of all workers; LAC_UNKNOWN_NS */
    int32_t batches_per_step; /**< that a kept step waits for, rounded; -1 unknown */
    double worker_busy_pct;   /**< share of their time that the workers fetched; NaN unknown */
    bool is_fetch_from_wait;  /**< no fetch recorded: taken from waits in the training process */
    double fetch_spread;      /**< their deviation by their mean where they are inferred; NaN */
};

enum { LAC_LOADING_PARTS_MAX = 16 };

/** What batches spend their time on: one kind of work, without the parts inside it. */
struct lac_loading_part {
    const char *name;       /**< "loader.decode", "loader.transform Resize", ... */
    const char *stage;      /**< "read", "decode", "transform", "collate", "hand_over", "other" */
    uint64_t count;         /**< ranges */
    int64_t own_ns, cpu_ns; /**< all batches; CPU time LAC_UNKNOWN_NS when not recorded */
    int64_t bytes;          /**< read; LAC_UNKNOWN_NS when not recorded */
};

/** Why batches come late, as far as it is sure, and where more workers end. */
struct lac_loading_facts {
    const char *verdict; /**< "in-process", "worker-bound", the id of the finding that explains the
                            wait, or "" */
    struct lac_loading_part parts[LAC_LOADING_PARTS_MAX]; /**< by (-own_ns, name) */
    uint32_t part_count;
    uint64_t batch_count;   /**< fetches that the parts belong to */
    int32_t allowed_cores;  /**< -1 not recorded */
    double cores_busy;      /**< that fetching keeps busy; NaN unknown */
    double ready_pct;       /**< of their time workers waited for a core; NaN unknown */
    double storage_mb_s;    /**< read from storage by the workers; NaN unknown */
    int64_t batch_bytes;    /**< LAC_UNKNOWN_NS unknown */
    int64_t shm_free_bytes; /**< of /dev/shm before the job began; LAC_UNKNOWN_NS unknown */
    int64_t memory_bytes;   /**< limit, else available; LAC_UNKNOWN_NS unknown */
    int32_t workers_by_cores, workers_by_memory; /**< most that these carry; -1 unknown */
};

/** What all gains stand on: the kept steps played again, each thing waiting for what
 *  it waited for. */
struct lac_replay_facts {
    const char *method;  /**< "graph": threads, streams and the loader; "graph_and_queue": threads
                            and streams, the loader apart; "device": its operations only; "none" */
    uint32_t step_count; /**< steps played */
    double error_pct;    /**< played without a change against recorded; NaN where none were */
};

/** Predicted mean step with a number of loader workers; LAC_UNKNOWN_NS where it cannot be told. */
struct lac_worker_step {
    int64_t low_ns, mid_ns, high_ns;
};
enum { LAC_WORKER_STEPS_MAX = 64 };

/** What each part needs for one step, on its own (mean over kept steps). LAC_UNKNOWN_NS when not
 * known. */
struct lac_needs {
    int64_t data_ns, host_ns, copies_ns, gpu_ns, comm_ns;
    int64_t alone_ns; /**< of all of them together, with no other rank to wait for: the step played
                           again with collectives that take no time. Unknown without collectives
                           or where the steps cannot be played */
};

/* -- findings -------------------------------------------------------------------------------- */

struct lac_evidence {
    uint32_t track; /**< index of a track, or LAC_NONE */
    uint32_t slice; /**< LAC_NONE when it is an interval only */
    const char *track_name;
    int64_t t0_ns, t1_ns;
    const char *text;
};

/** The part of the timeline that shows what a finding speaks of. */
struct lac_view {
    bool is_known; /**< false: nothing to show */
    bool has_mark; /**< the evidence is in it, from mark_ns to mark_end_ns */
    int64_t t0_ns, t1_ns;
    int64_t mark_ns, mark_end_ns;
    uint32_t thread; /**< track of the host thread to show, or LAC_NONE */
};
/** Of the first findings; the last one is for a trace without a finding to show. */
enum { LAC_VIEW_COUNT = 4 };

/** One change of a plan, made after those before it. */
struct lac_plan_step {
    const char *brief;
    enum lac_finding_kind kind; /**< whose change it is */
    int32_t workers;            /**< of the loader behind it; 0: as many as there are */
    int64_t step_ns;            /**< predicted mean step with this change and those before it */
    double gain_pct;            /**< of the step before it */
};

enum { LAC_PLAN_MAX = 5 };

enum { LAC_EVIDENCE_MAX = 8 };

struct lac_finding {
    enum lac_finding_kind kind;
    const char *id; /**< "input-starvation", ...: of the kind, part of the contract */
    enum lac_severity severity;
    enum lac_effort effort;               /**< what the change takes */
    enum lac_change_kind change_kind;     /**< what the text of the change is */
    int64_t cost_ns_per_step;             /**< LAC_UNKNOWN_NS without steps */
    double cost_pct;                      /**< of the mean kept step */
    int64_t part_ns[LAC_TIME_PART_COUNT]; /**< what of the cost it claims of each part of the
                                               partition; all 0 where it is of no part */
    double gain_low_pct, gain_mid_pct,
        gain_high_pct; /**< of the mean kept step time; NaN unknown */
    int64_t step_low_ns, step_mid_ns,
        step_high_ns;      /**< predicted mean step: best, expected, worst; or LAC_UNKNOWN_NS */
    double confidence;     /**< 0..1 */
    bool ends_at_loader;   /**< what it leads to is as fast as batches come: the next limit */
    bool is_one_time_cost; /**< paid once, not by every step: said, but not put first */
    bool distorts;         /**< times say little where it holds: nothing else is judged */
    int32_t workers;       /**< of the loader, that the change asks for; -1: none */
    bool excludes_workers; /**< more workers than there are would not help */
    const char *title;
    const char *why;
    const char *change;
    const char *where; /**< "train.py:83", or "" */
    const char *brief; /**< the change in a few words: "num_workers=7" */
    const char *expect;
    const char *costs;
    const char *wrong_if;
    const char *check;
    struct lac_evidence evidence[LAC_EVIDENCE_MAX];
    uint32_t evidence_count;
};

/** Empty: no text, nothing known, effort and kind of change as usual for the kind. */
void lac_finding_init(struct lac_finding *finding, enum lac_finding_kind kind);

/* Notes, each said once at most: room for all of them. */
enum lac_checked {
    LAC_CHECKED_DATA = 0,
    LAC_CHECKED_LAYOUT,
    LAC_CHECKED_COPIES,
    LAC_CHECKED_SYNC,
    LAC_CHECKED_LAUNCH,
    LAC_CHECKED_ALLOCATOR,
    LAC_CHECKED_MODULE_LOAD,
    LAC_CHECKED_PROFILER,
    LAC_CHECKED_COMM,
    LAC_CHECKED_COUNT_
};
enum lac_missing {
    LAC_MISSING_DEVICE = 0,
    LAC_MISSING_CALLS,
    LAC_MISSING_LOADER,
    LAC_MISSING_WORKERS,
    LAC_MISSING_RANKS,
    LAC_MISSING_STORAGE,
    LAC_MISSING_THREADS,
    LAC_MISSING_IN_GRAPHS,
    LAC_MISSING_SAMPLES,
    LAC_MISSING_KERNELS,
    LAC_MISSING_GPU_END,
    LAC_MISSING_UNTIMED,
    LAC_MISSING_GPU_BUFFERS,
    LAC_MISSING_JOB_END,
    LAC_MISSING_TIMES,
    LAC_MISSING_COUNT_
};
enum lac_caveat {
    LAC_CAVEAT_SIMULATED = 0,
    LAC_CAVEAT_STACKS,
    LAC_CAVEAT_NO_NAMES,
    LAC_CAVEAT_MICRO_STEPS,
    LAC_CAVEAT_FEW_STEPS,
    LAC_CAVEAT_REPLAY,
    LAC_CAVEAT_DROPPED,
    LAC_CAVEAT_THINNED,
    LAC_CAVEAT_COUNT_
};

struct lac_verdict {
    const char *cause;  /**< a cause's name, "gpu" or "unknown" */
    char letter;        /**< of the cause; G gpu, ~ too little, i inference, ? unknown */
    const char *text;   /**< the one sentence */
    const char *detail; /**< a second one, or "" */
    uint32_t parts;     /**< of the partition, that its number is the sum of: bits; 0 none */
};
/** What of the partition no compute kernel ran in, in percent; NaN without a device. */
double lac_not_computing_pct(const struct lac_analysis *analysis);
/** What repeats, "step", "batch" or "iteration", and what its rate counts: "samples", "tokens", else that
 *  in the plural. */
const char *lac_loop_unit(const struct lac_analysis *analysis);

/** Batches that a step takes: several where it is an update with accumulated gradients; 0 unknown. */
uint32_t lac_step_batches(const struct lac_analysis *analysis);

/** Samples that a step takes: of all its batches, where their number is known. NaN unknown. */
double lac_step_samples(const struct lac_analysis *analysis);
const char *lac_rate_unit(const struct lac_analysis *analysis);
/** The number of the verdict: the sum of its parts; LAC_UNKNOWN_NS without one. */
int64_t lac_verdict_ns(const struct lac_analysis *analysis);

/** Everything found. One a trace, so grouped by meaning rather than packed. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct lac_analysis {
    enum lac_workload_kind workload;
    bool is_part_of_step; /**< of LAC_WORKLOAD_NO_STEPS: an autograd graph is being built, but no
                             backward pass was recorded */
    struct lac_verdict verdict;

    const char *throughput_unit; /**< "samples", "tokens" or "steps" */
    double throughput_per_s;     /**< NaN without steps */
    int64_t batch_size;          /**< LAC_UNKNOWN_NS unknown */
    double padding_pct;          /**< NaN unknown */

    struct lac_needs needs;

    struct lac_device_facts *devices; /**< ascending id; only those with an operation */
    uint32_t device_count;
    uint32_t main_device; /**< index of the one that computes most; LAC_NONE without */

    struct lac_gap *gaps; /**< by device, then time */
    uint64_t gap_count;
    struct lac_gap_piece *pieces;
    uint64_t piece_count;
    struct lac_exposed_span
        *exposed; /**< by device, then time; with the gaps, all of a device's span
                                           in which it does not compute */
    uint64_t exposed_count;
    struct lac_gap_signature *signatures; /**< by (-total, before, after, cause) */
    uint32_t signature_count;

    struct lac_step *steps; /**< by start */
    uint32_t step_count;
    uint32_t step_kept_count;
    const char *step_method;   /**< "profiler_step", "nvtx", "dataloader", "optimizer",
                                  "optimizer_kernels", "period" or "none" */
    uint32_t micro_step_count; /**< batches whose gradients make one update; 0 unknown, 1 each */
    bool is_step_micro;        /**< a step is one of them; false: a step is the update */
    double step_confidence;    /**< 0..1 */
    int64_t step_mean_ns, step_median_ns, step_p95_ns; /**< of kept ones; LAC_UNKNOWN_NS without */
    double step_spread_pct;    /**< standard error of the mean in percent; NaN below 3 kept. What is
                                    said is step_uncertain_pct */
    double step_uncertain_pct; /**< the mean is known to this part, in 95 of 100 cases, in percent:
                                    what costs less cannot be seen; NaN below 2 kept */
    bool is_paced_by_device;   /**< steps are distances on the device: the host's marks, which found
                                them, say something else */
    int64_t step_host_ns;      /**< mean of the kept ones between the host's marks; LAC_UNKNOWN_NS
                                where no mark found them */
    int64_t step_without_starvation_ns; /**< s: mean kept step minus starved; LAC_UNKNOWN_NS */
    struct lac_time_partition partition;

    struct lac_step_kind_facts step_kinds[LAC_KIND_COUNT_]; /**< those there are, in enum order */
    uint32_t step_kind_count; /**< 0 where steps are not known to be training */
    struct lac_phase *phases; /**< by start */
    uint32_t phase_count;
    int64_t duration_ns;    /**< of the recording */
    char trained_model[64]; /**< "ResNet"; "" not known */

    bool has_kernels;
    uint64_t kernel_count;
    int64_t kernel_total_ns;
    struct lac_kernel_facts *kernels; /**< every distinct name, by (-total, name) */
    uint32_t kernel_name_count;

    uint64_t layout_count;     /**< strict rule */
    int64_t layout_total_ns;   /**< strict rule */
    double layout_pct;         /**< of kernel time */
    int64_t layout_exposed_ns; /**< while nothing else ran on the device */
    int64_t layout_by_class_ns[LAC_LAYOUT_CLASS_COUNT_];
    uint64_t layout_by_class_count[LAC_LAYOUT_CLASS_COUNT_];

    double unknown_kernels_pct; /**< of the kernel time: names that the table does not know; NaN
                                    without kernels */
    struct lac_efficiency efficiency;

    int64_t tensor_eligible_ns, tensor_used_ns, tensor_unknown_ns;
    double tensor_used_pct; /**< NaN when nothing is eligible */

    struct lac_copy_facts *copies; /**< by (kind, src, dst) */
    uint32_t copy_count;

    struct lac_memory_facts memory;

    struct lac_python_samples python_samples;

    struct lac_loader_facts loader;
    struct lac_loading_facts loading;

    struct lac_replay_facts replay;
    /** The step with 1, 2, ... workers, where a change of their number is advised and who diagnosed
     *  wanted to know (lac_diagnose_options) */
    struct lac_worker_step worker_steps[LAC_WORKER_STEPS_MAX];
    uint32_t worker_step_count; /**< 0 or LAC_WORKER_STEPS_MAX */
    bool has_what_if;
    struct lac_what_if_changes what_if;
    struct lac_what_if_step what_if_step; /**< mean step with the changes */
    /** The same where collectives take 0, 1, 2, ... of LAC_COMM_PARTS of their time: what several
     *  ranks together are computed from */
    struct lac_what_if_step what_if_by_comm[LAC_COMM_PARTS];
    int64_t what_if_now_by_comm_ns[LAC_COMM_PARTS]; /**< and without the changes */
    int64_t what_if_median_ns;
    const char *what_if_assumption; /**< what the band stands on; "" not known */
    const char *what_if_why_not;    /**< why it is not known, or "" */

    struct lac_finding findings[LAC_FINDINGS_MAX]; /**< by what to do first */
    uint32_t finding_count;
    struct lac_plan_step plan[LAC_PLAN_MAX]; /**< what to change, in order, re-timed together */
    uint32_t plan_count;
    const char *checked_fine[LAC_CHECKED_COUNT_];
    uint32_t checked_fine_count;
    const char *not_recorded[LAC_MISSING_COUNT_];
    uint32_t not_recorded_count;
    const char *caveats[LAC_CAVEAT_COUNT_]; /**< what this trace is not good for */
    uint32_t caveat_count;
    struct lac_view views[LAC_VIEW_COUNT];

    struct lac_text *texts; /**< owner of the strings above */
    uint8_t *packed;        /**< owner too, of one that was read back (analysis_pack.h) */
};

/** The first finding of that kind, or NULL. */
const struct lac_finding *lac_finding_of(const struct lac_analysis *analysis,
                                         enum lac_finding_kind kind);

/** NULL is allowed. */
void lac_analysis_destroy(struct lac_analysis *analysis);

/** Whether the invariants (1) to (5) hold. O(gaps): for asserts. */
bool lac_analysis_adds_up(const struct lac_analysis *analysis);

/** Whether (6) holds. O(steps, kernels): for tests, a wrong number is no reason to stop. */
bool lac_analysis_is_sane(const struct lac_analysis *analysis);

/** All of them. */
bool lac_analysis_is_valid(const struct lac_analysis *analysis);

#endif
