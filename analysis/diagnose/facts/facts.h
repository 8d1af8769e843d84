#ifndef LAC_ANALYSIS_DIAGNOSE_FACTS_FACTS_H
#define LAC_ANALYSIS_DIAGNOSE_FACTS_FACTS_H

/*
 * Private to analysis/diagnose: the work in progress, and one function per file, in the order in
 * which lac_diagnose() calls them. Each reads what those before it found and fills its own part.
 * Thresholds are in facts_thresholds.h; every folder has such a file.
 */

#include "analysis/crew/crew.h"                       // IWYU pragma: keep
#include "analysis/diagnose/facts/facts_thresholds.h" // IWYU pragma: export
#include "analysis/diagnose/facts/intervals.h"        // IWYU pragma: export
#include "analysis/diagnose/names/names.h"            // IWYU pragma: export
#include "analysis/diagnose/result/analysis.h"        // IWYU pragma: export
#include "analysis/diagnose/result/saturate.h"        // IWYU pragma: export
#include "analysis/diagnose/result/texts.h"           // IWYU pragma: export
#include "analysis/model/model.h"                     // IWYU pragma: export
#include "analysis/model/status.h"                    // IWYU pragma: export
#include "analysis/model/strings.h"                   // IWYU pragma: export

#include <stdbool.h> // IWYU pragma: export
#include <stdint.h>  // IWYU pragma: export

/** A host call that waits for the device. */
struct lac_blocking_call {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t slice;
};

/** Host activity that can explain idle time, per process that launches GPU work. */
enum lac_host_set {
    LAC_SET_WAIT = 0, /**< waiting for a batch */
    LAC_SET_ALLOC,
    LAC_SET_MODULE,
    LAC_SET_COMM,
    LAC_SET_COPY,   /**< inside a call that copies to the device */
    LAC_SET_LAUNCH, /**< launching, bridged over LAUNCH_BRIDGE_NS */
    LAC_SET_BUSY,   /**< inside anything recorded */
    LAC_SET_WORK,   /**< inside one operation, range or frame of WORK_MIN_NS or more that calls
                         nothing of the GPU */
    LAC_SET_COUNT_
};

struct lac_host {
    uint32_t process; /**< index */
    uint64_t launch_count;
    struct lac_spans sets[LAC_SET_COUNT_];
    struct lac_blocking_call *blocking; /**< by start */
    uint64_t blocking_count, blocking_capacity;
    struct lac_blocking_call
        *copy_blocking; /**< copies to the device that outlasted it, by start */
    uint64_t copy_blocking_count, copy_blocking_capacity;
    struct lac_spans
        queue_full;           /**< long launches: the queue was full, or something else held them */
    struct lac_spans blocked; /**< union of blocking calls */
    struct lac_spans waits_event; /**< calls that make a stream wait, as points widened to 1 ns */
    uint64_t cursor[LAC_SET_COUNT_]; /**< used by attribution, ascending inside a device */
    uint64_t event_cursor;
};

/** What one device did, as sets of time. */
struct lac_device_sets {
    struct lac_spans compute; /**< computing kernels */
    struct lac_spans comm;    /**< communication kernels */
    struct lac_spans kernels; /**< both */
    struct lac_spans copies;
    struct lac_spans busy;
    struct lac_spans idle;
    int64_t layout_exposed_ns; /**< class L, whole trace */
    int64_t strict_exposed_ns; /**< strict rule, whole trace */
    uint32_t first, last;      /**< slices: its first operation, and the one that ends last */
};

/** A time with a cause, outside a device's span. */
struct lac_idle_piece {
    int64_t start_ns, end_ns;
    enum lac_cause cause;
};

/** A loader.fetch interval. */
struct lac_fetch {
    int64_t start_ns, dur_ns;
    int64_t batch, cpu_ns; /**< -1 not recorded */
    int32_t worker;        /**< -1 the training process or not recorded */
    uint32_t slice;
};

/** Slice ids with their times, by start. */
struct lac_marks {
    struct lac_mark {
        int64_t start_ns, dur_ns;
        uint32_t slice;
        uint32_t track;
    } * at;
    uint64_t count, capacity;
};

/** A stretch of time that is no training: in a step, or between steps. */
struct lac_stretch {
    int64_t start_ns, end_ns;
    uint8_t kind; /**< enum lac_step_kind */
};

/** What the waits for batches say of the loader's workers, where nothing else does. */
struct lac_inferred_loader {
    int32_t workers;      /**< 0: nothing */
    double fetch_ns;      /**< what a batch takes one of them */
    double spread;        /**< its deviation by its mean */
    int64_t limited_from; /**< from then on the workers are the limit: batches that lay ready were
                               taken */
};

/** How waits for data come again: every `period` batches, after `turn_ns`. */
struct lac_loader_rhythm {
    uint32_t period;      /**< 0: not to be told */
    double turn_ns;       /**< by the waits themselves; NaN: by the steps alone */
    double uncertain_pct; /**< of it: two deviations */
};

/** What the trace says about the job, where the engine needs it. */
struct lac_settings {
    int64_t batch_size;    /**< LAC_UNKNOWN_NS not recorded */
    int32_t num_workers;   /**< -1 not recorded */
    int32_t allowed_cores; /**< -1 not recorded */
    int8_t pin_memory;     /**< -1 not recorded, 0, 1 */
    const char *loader_at; /**< "train.py:83" or "" */
};

struct lac_facts {
    const struct lac_model *model;
    struct lac_analysis *analysis;
    struct lac_error *reterr;

    const struct lac_names *names; /**< rows that somebody added, or NULL */
    struct lac_crew *crew;         /**< helps with replays, or NULL */

    uint8_t *api_class;  /**< by string id; 0xff not looked up */
    uint8_t *host_class; /**< by string id; 0xff not looked up */
    uint32_t
        *kernel_row; /**< by string id: row of analysis->kernels, LAC_NONE not a kernel's name */
    uint32_t kernel_row_count; /**< of these rows: kernels, then CUDA graphs recorded as a whole */
    uint32_t kernel_capacity, step_capacity;
    uint8_t *track_flags; /**< by track */

    struct lac_host *hosts;
    uint32_t host_count;
    uint32_t *host_of_process; /**< by process: index into hosts, or LAC_NONE */
    uint32_t main_host;        /**< the one that launches most on the main device (none of them:
                                    the one that launches most), or LAC_NONE */

    struct lac_spans profiler;       /**< the recorder's own cost, all processes; and its pauses */
    struct lac_spans pauses;         /**< when ranges were not recorded (pauses.c) */
    struct lac_spans before_capture; /**< when the main device was not seen (before_capture.c) */
    struct lac_spans
        queued; /**< when it was idle although work was queued: what it did is not in the
                                  recording */
    struct {    /**< rows with a correlation id, and those whose other end is not there */
        uint64_t launches, launches_alone, operations, operations_alone;
    } pairs;
    bool launches_graphs;   /**< which may hide what the device did then */
    struct lac_spans waits; /**< waiting for a batch: of all processes, but from the detection of
                                 steps on not of those that train beside the main host */
    struct lac_marks wait_marks, step_marks, step_like_marks, optimizer_marks, loader_parts;
    struct lac_marks other_work_marks; /**< ranges named validation, checkpoint, ... */
    uint32_t named_step; /**< string id of the ranges that the user said are the steps; 0: none */
    uint8_t *other_work; /**< by string id: enum lac_step_kind, 0xff not looked up */
    uint8_t *
        step_numbers; /**< by string id of arguments: whether they number a step; 0 not looked up */
    struct lac_stretch *stretches; /**< step_kinds.c; by start, disjoint */
    uint32_t stretch_count, stretch_capacity;
    const char *why_kind[LAC_KIND_COUNT_]; /**< what shows the first step of a kind; or NULL */
    struct lac_marks alloc_marks;          /**< calls that allocate or release */
    struct lac_fetch *fetches;             /**< by start */
    uint64_t fetch_count, fetch_capacity;
    bool has_api, has_backward;
    bool asks_in_rows; /**< a step takes batches of several loaders, one after the other */
    bool has_module_work, has_python, has_operators;
    bool is_optimizer_inferred; /**< optimizer_marks are rows of updates (optimizer_runs.c) */
    uint32_t profiler_count;
    struct lac_python_frames *python_frames; /**< while the device had nothing to do
                                                  (python_frames.h); NULL without rows of them */
    uint32_t python_samples_track; /**< of the thread that trains, or LAC_NONE (python_samples.h) */
    struct lac_step_operations
        *step_operations; /**< the device's operations in kept steps (step_operations.h) */
    struct lac_collectives *collectives; /**< of them, what communicates (collectives.h) */

    struct lac_device_sets *device_sets; /**< one per analysis->devices */
    struct lac_idle_piece *outside; /**< why the main device was idle before its first operation
                                         and after its last, disjoint, by start */
    uint64_t outside_count;
    struct lac_settings settings;
    struct lac_inferred_loader inferred_loader;
    struct lac_loader_rhythm loader_rhythm; /**< of workers that were not recorded */
    struct {
        uint32_t name; /**< string id; 0 none */
        int64_t dur_ns;
    } first_use; /**< of an operator: what a cold start without recorded calls waits for */
    bool repeats_inside_pass;   /**< what repeats is a part of one pass of training */
    bool has_device_steps;      /**< steps are times of the device: found by its kernels */
    struct lac_spans kept;      /**< kept steps, where devices are looked at */
    int64_t kept_shift_ns;      /**< of these behind the steps: to the kernel that the device's pace
                                     goes by, since between two of it each operation lies once */
    struct lac_spans host_kept; /**< the same steps between the host's marks */
    int64_t
        *launched_from_ns;  /**< by track: start of the first operation whose launch was recorded;
                                     those before it were launched before the recording. INT64_MIN: a
                                     track without such */
    struct lac_spans steps; /**< union of all steps, between the host's marks */

    struct lac_products *products; /**< matrix products by shape (products.h) */

    struct lac_step_time *time; /**< the mean kept step, taken apart (what_if_replay.h) */
    double serialized_workers;  /**< workers take turns: a batch takes what it takes with so many of
                                     them (loading.c); 0: they do not */
    struct lac_loading *loading; /**< why batches come late (loading.h); NULL without a loader */
};

/** Bits of track_flags. */
enum {
    LAC_TRACK_HAS_GPU = 1,
    LAC_TRACK_LAUNCHES = 2, /**< any operation of a device */
    LAC_TRACK_TRAINS = 4,   /**< has steps or waits for batches */
    LAC_TRACK_COMPUTES = 8, /**< launches kernels */
};

/* scan_slices.c: one pass over all slices: names, kernels, host activity */
LAC_MUST_USE enum lac_status lac_scan_slices(struct lac_facts *facts);
/* host_activity.c: the sets of lac_host */
LAC_MUST_USE enum lac_status lac_host_activity_collect(struct lac_facts *facts);
void lac_host_activity_done(struct lac_facts *facts);
/** Choose the main host, once the main device is known. */
LAC_MUST_USE enum lac_status lac_main_host_choose(struct lac_facts *facts);
/** Leave marks and waits to the main host where several processes train side by side, each on its
 *  own device: steps are its steps. Once the gaps of all devices have their causes. */
LAC_MUST_USE enum lac_status lac_main_host_follow(struct lac_facts *facts);
/** held_launches.c: add what a full queue holds up launches of the main host by, however short.
 *  O(launches) of one thread and stream, else n log n; 24 bytes each. */
LAC_MUST_USE enum lac_status lac_held_launches_collect(const struct lac_facts *facts,
                                                       struct lac_spans *held);
/* pauses.c: when our own recorder did not record; steps with a hole in them are no steps */
LAC_MUST_USE enum lac_status lac_pauses_collect(struct lac_facts *facts);
void lac_pauses_leave_out(struct lac_facts *facts);
/* devices.c: span, busy, partition, gaps (without causes) */
LAC_MUST_USE enum lac_status lac_devices_measure(struct lac_facts *facts);
/* before_capture.c: work from before the recording, after the devices */
LAC_MUST_USE enum lac_status lac_before_capture_collect(struct lac_facts *facts);
void lac_exclude_before_capture(struct lac_facts *facts);
/* kernels.c: totals and order; layout.c; tensor_core.c */
void lac_kernels_sort(struct lac_facts *facts);
void lac_layout_measure(struct lac_facts *facts);
void lac_layout_expose(struct lac_facts *facts); /* after the devices */
void lac_tensor_core_measure(struct lac_facts *facts);
/* copies.c */
LAC_MUST_USE enum lac_status lac_copies_measure(struct lac_facts *facts);
/* attribute.c: causes of idle time, in gaps and outside the main device's span; gap_signature.c */
LAC_MUST_USE enum lac_status lac_gaps_attribute(struct lac_facts *facts);
/** Whether a call of that name (a string id) launches a graph. */
bool lac_is_graph_launch(const struct lac_facts *facts, uint32_t name);
LAC_MUST_USE enum lac_status lac_gaps_sign(struct lac_facts *facts);
/* range_facts.c */
/** The kind of work that a range's name says, or LAC_KIND_TRAIN. */
enum lac_step_kind lac_step_kind_of(const char *name);
/** The operator's number in the autograd graph that is being built (by Kineto's "Sequence number", by
 *  emit_nvtx "seq"), -1 when it has none. */
int64_t lac_sequence_number(const struct lac_model *model, uint64_t slice);
/** The integer that a slice carries under `key` ("\"Addr\":"), 0 or more; else `absent`. */
int64_t lac_slice_integer(const struct lac_model *model, uint64_t slice, const char *key,
                          int64_t absent);
/** The number that a range carries as "payload" or "bytes"; -1 none. */
int64_t lac_range_number(const struct lac_model *model, uint32_t slice);
/* dataloader.c: how many workers, before steps are chosen; then waits and fetches */
void lac_loader_count_workers(struct lac_facts *facts);
/** Whether the training asks PyTorch's iterator with worker processes, by the name of its waits. */
bool lac_loader_names_workers(const struct lac_facts *facts);
/** Whether nothing was launched between that wait and the one before it. */
bool lac_wait_follows_at_once(const struct lac_facts *facts, uint64_t wait);
/* loader_from_waits.c: how many workers, and their time for a batch, where only waits are known;
 * before steps are chosen */
void lac_loader_infer_workers(struct lac_facts *facts);
/** Whether marks say what a step is, and not the waits, the updates or what repeats. */
bool lac_steps_have_marks(const struct lac_analysis *analysis);
/** Whether that part of a batch (loader_parts) is pinning it. */
bool lac_part_is_pin(const struct lac_facts *facts, const struct lac_mark *part);
/** That a kept step waits for: 1 or more, 1 where it is not known. */
double lac_batches_per_step(const struct lac_facts *facts);
/** Fetching the batches of one step, one after the other; the mean fetch has to be known. */
double lac_fetch_per_step_ns(const struct lac_facts *facts);
/** Order of struct lac_fetch for qsort: by batch, then slice. */
int lac_fetch_by_batch(const void *a, const void *b);
LAC_MUST_USE enum lac_status lac_loader_measure(struct lac_facts *facts);
/* gpu_recording.c: what our own recorder could not record, and why: sentences without their end,
 * owned by the analysis or static; NULL where there is nothing to say, as for other traces */
const char *lac_why_cut_off(const struct lac_facts *facts);    /**< it lacks its end */
const char *lac_why_nothing(const struct lac_facts *facts);    /**< no process was recorded */
const char *lac_why_no_gpu(const struct lac_facts *facts);     /**< where no GPU operation is */
const char *lac_why_no_kernels(const struct lac_facts *facts); /**< others were recorded */
const char *lac_why_gpu_ended(const struct lac_facts *facts);  /**< before the job did */
/** Operations that had not ended when the recording did, and have no times. */
int64_t lac_gpu_untimed(const struct lac_facts *facts);
/** How often CUPTI asked for a buffer and got none that is read: too many were out, or no memory. */
int64_t lac_gpu_unread_buffers(const struct lac_facts *facts);
/* settings.c: what the metadata says, before anything that asks for it */
void lac_settings_read(struct lac_facts *facts);
/** Whether there is any of the job. */
bool lac_settings_are_recorded(const struct lac_facts *facts);
/** One of the job's "settings" or of the facts about its "host": a whole number up to `max`, -1
 *  when it was not recorded; a number, NaN; whether it is that text; 0 or 1, -1. */
int64_t lac_setting_count(const struct lac_facts *facts, const char *part, const char *key,
                          int64_t max);
double lac_setting_real(const struct lac_facts *facts, const char *part, const char *key);
bool lac_setting_is(const struct lac_facts *facts, const char *part, const char *key,
                    const char *text);
int lac_setting_truth(const struct lac_facts *facts, const char *part, const char *key);
/** Text of those characters alone; "" when it was not recorded or has others. */
const char *lac_setting_text(const struct lac_facts *facts, const char *part, const char *key,
                             const char *allowed);
/** A line of text; "" when it was not recorded or is no line. */
const char *lac_setting_line(const struct lac_facts *facts, const char *part, const char *key);
/** Cores of a list about the host, "0-3,8": 5; -1 when it was not recorded. */
int32_t lac_setting_cores(const struct lac_facts *facts, const char *key);
/** Whether two such lists were recorded and have no core in common. */
bool lac_setting_cores_apart(const struct lac_facts *facts, const char *key, const char *other);
/** By start. */
void lac_marks_sort(struct lac_marks *marks);
/** How many begin from `start_ns` on and before `end_ns`; the first of them in *ret_first, NULL: not
 *  asked for. O(log n) */
uint64_t lac_marks_between(const struct lac_marks *marks, int64_t start_ns, int64_t end_ns,
                           uint64_t *ret_first);
/** The track that has most of the marks, when one has more than half; else that of the last. */
uint32_t lac_marks_majority_track(const struct lac_marks *marks);
/** Where no range names the optimizer: mark the rows of its updates (optimizer_runs.c). O(slices) */
LAC_MUST_USE enum lac_status lac_optimizer_infer(struct lac_facts *facts);
/** Whether a host slice begins in such a row. O(log rows) */
bool lac_in_inferred_optimizer(const struct lac_facts *facts, uint64_t slice);
/** Queries of a thread that are one wait. */
struct lac_spin {
    uint64_t last; /**< slice of the last one */
    int64_t end_ns;
};
/** Whether the query in slice `first` begins a wait (spins.c). O(slices of it) */
bool lac_spin_at(const struct lac_facts *facts, uint64_t first, struct lac_spin *ret_spin);
/** Class of the name `id`, looked up once. */
enum lac_api_class lac_api_class_of(const struct lac_facts *facts, uint32_t id);
enum lac_host_class lac_host_class_of(const struct lac_facts *facts, uint32_t id);
/** Class of a kernel slice's name. */
const struct lac_name_class *lac_kernel_class_of(const struct lac_facts *facts, uint64_t slice);

static inline bool lac_is_gpu_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

static inline struct lac_needs lac_needs_unknown(void)
{
    return (struct lac_needs){.data_ns = LAC_UNKNOWN_NS,
                              .host_ns = LAC_UNKNOWN_NS,
                              .copies_ns = LAC_UNKNOWN_NS,
                              .gpu_ns = LAC_UNKNOWN_NS,
                              .comm_ns = LAC_UNKNOWN_NS,
                              .alone_ns = LAC_UNKNOWN_NS};
}

/** 100 * part / whole; NaN when whole is 0. */
double lac_pct(int64_t part, int64_t whole);

#endif
