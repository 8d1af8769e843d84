#ifndef LAC_ANALYSIS_DIAGNOSE_LOADING_H
#define LAC_ANALYSIS_DIAGNOSE_LOADING_H

/*
 * Private: why batches come late. What the trace recorded of the workers (their fetches and parts
 * of them, samples of their threads, how long finished batches lay about), measured once.
 *
 * What was not recorded is NaN, -1 or a count of 0: a finding that needs it keeps quiet.
 */

#include "analysis/diagnose/loading/loading_thresholds.h" // IWYU pragma: export
#include "analysis/diagnose/replay/what_if_replay.h"      // IWYU pragma: export

/** Whether workers take turns: from when their pieces of work (items, else batches) ended. */
struct lac_turns {
    uint64_t count;        /**< pieces of work looked at */
    double between_ns;     /**< from one end to the next, of all workers together; mean */
    double close_ns;       /**< the same, tenth percentile: independent workers end anyhow */
    double spread_ns;      /**< how different pieces are: ninth tenth less first of their lengths */
    double cpu_cores;      /**< CPU time of a piece over between_ns; NaN */
    double spaced_pct;     /**< ends that came later by the CPU time of the piece or more; NaN */
    uint64_t alone_count;  /**< pieces during which no other was under way */
    uint64_t beside_count; /**< pieces during which nearly all workers were at theirs */
    double alone_ns;       /**< median of the first */
    double beside_ns;      /**< median of the second */
    double beside_workers; /**< how many were at work during those, mean */
};

/** How it shows that workers take turns: a lock, one open file, one service. */
enum lac_serialization {
    LAC_SERIAL_NOT = 0,
    LAC_SERIAL_ONE_AT_A_TIME, /**< fetches of different workers do not overlap */
    LAC_SERIAL_ONE_BY_ONE,    /**< however long each takes, they end as far apart as ever */
    LAC_SERIAL_GROWTH,        /**< a piece takes as many times longer as others are under way */
    LAC_SERIAL_ONE_CORE,      /**< all together compute on one core, one after the other */
};

/** What the launcher's samples say, over the kept steps. */
struct lac_loading_samples {
    bool has_threads; /**< workers' threads were sampled, long enough to tell */
    bool has_io;      /**< so was what processes read */
    double ready_pct; /**< of the time that workers were at work, the fetching threads: waiting for
                         a core */
    bool wait_for_cores;      /**< the fetching threads, or threads of theirs that they wait for */
    double disk_pct;          /**< blocked on input */
    double other_cores;       /**< cores that other threads of one worker kept busy */
    double other_ready;       /**< of those threads, how many waited for a core, mean */
    uint32_t busy_threads;    /**< of one worker that ran or wanted to, the fetching one included */
    double job_cores;         /**< cores that all threads of the job kept busy */
    double job_ready;         /**< threads of the job that waited for a core, mean */
    double storage_mb_s;      /**< read from storage, all workers */
    double throttled_pct;     /**< time that the cgroup was throttled; 0 never */
    double throttled_periods; /**< periods a second in which it was */
};

/** Where the waits for batches went, per kept step, as far as the device felt them. */
struct lac_late_batches {
    double matched_ns; /**< waits whose batch's fetch is in the trace */
    uint64_t matched_count;
    double done_ns;  /**< of those: after the batch had been fetched (handing over, pinning) */
    double first_ns; /**< for the first batch of an epoch that began inside the trace */
    double first_saved_ns; /**< of that: what a batch by workers that are ready would not take */
    uint32_t epochs;       /**< such epochs */
    bool is_by_signs;      /**< batches have no numbers: one that did not come ended an epoch */
    double begin_ns; /**< for the first batch of the recording, whose workers have just started */
    uint32_t longest_first, longest_done; /**< slices of such waits, or LAC_NONE */
};

/** Reading inside batches: outermost loader.read ranges. */
struct lac_batch_reads {
    uint64_t count;   /**< ranges */
    uint64_t opens;   /**< of them without bytes: opening, or reading by a library */
    double ns;        /**< time in them, all fetches */
    double cpu_ns;    /**< of that computing; NaN */
    double bytes;     /**< NaN: no range carries any */
    uint32_t longest; /**< slice, or LAC_NONE */
};

/** A thread that fetched batches as a worker. */
struct lac_worker_thread {
    int64_t first_ns, last_ns; /**< its fetches */
    uint32_t track, process;
    int32_t worker;
};

/** The queue, played again with slow batches and without. */
struct lac_tail {
    double now_ns;   /**< mean step as it was recorded; NaN: cannot be played */
    double even_ns;  /**< with slow batches taking the usual time */
    double slow_pct; /**< batches that are slow */
};

struct lac_loading {
    struct lac_worker_thread *threads; /**< by worker, then time */
    uint32_t thread_count;
    uint32_t workers;         /**< that fetched; 0: none recorded */
    bool is_threads;          /**< in the process that trains */
    uint32_t respawned;       /**< processes beyond the first of each worker */
    double overlap;           /**< fetches under way on average while any is */
    double alone_pct;         /**< share of the time with any in which it was one alone */
    double covered_pct;       /**< share of the time from first start to last end with any */
    double cpu_cores;         /**< CPU time of fetches over that time; NaN */
    double wall_ns;           /**< of all fetches by workers */
    double median_ns, p99_ns; /**< of fetches that are not the first of their process */
    struct lac_turns turns;
    enum lac_serialization serialization;
    struct lac_loading_samples samples;
    struct lac_late_batches late;
    struct lac_tail tail;
    struct lac_batch_reads reads;
    double free_ns;         /**< mean step if every batch were there when it is asked for */
    double items_per_batch; /**< NaN: items were not recorded */
    double parts_of_ns;     /**< of the fetches whose parts were recorded, all together */

    int32_t online_cores; /**< of the host; -1 */
    double quota_cores;   /**< NaN none recorded */
    int32_t mask_cores;   /**< affinity of the training process, else of the launcher; -1 */
    int32_t
        most_workers; /**< that the program takes, however many it is given; INT32_MAX no limit */
    int64_t prefetch; /**< batches a worker holds; 2 unless recorded */
    int64_t batch_bytes; /**< what is copied to the device a step; -1 unknown */
};

/** Fill facts->loading; NULL when there is no step to speak of or no loader. */
LAC_MUST_USE enum lac_status lac_loading_measure(struct lac_facts *facts);
void lac_loading_destroy(struct lac_loading *loading);
/* its parts, one file each */
LAC_MUST_USE enum lac_status lac_worker_turns_measure(const struct lac_facts *facts,
                                                      struct lac_turns *ret_turns);
/** Whether workers take turns; the last of the parts, judges by all others. */
enum lac_serialization lac_serialization_of(const struct lac_facts *facts);
void lac_loading_sample(const struct lac_facts *facts, const struct lac_loading *loading,
                        struct lac_loading_samples *ret_samples);
void lac_loading_late(const struct lac_facts *facts, double median_ns,
                      struct lac_late_batches *ret_late);
LAC_MUST_USE enum lac_status lac_fetch_breakdown(struct lac_facts *facts,
                                                 struct lac_loading *loading);

/** Whether the device feels a wait for data that is worth telling. */
enum lac_waiting {
    LAC_WAITING_NOT = 0,
    LAC_WAITING_LITTLE, /**< but again and again: told when a change gains a percent */
    LAC_WAITING,
};
enum lac_waiting lac_waiting_for_data(const struct lac_facts *facts);

/** What was counted of padding: not every batch need be. */
struct lac_padding {
    uint64_t batches;
    double positions, padding;
};
/** padding.c: positions of batches that carry nothing, where the hook counted them. */
struct lac_padding lac_padding_count(const struct lac_facts *facts);
/** Their share, and throughput in tokens. Before the findings, which quote the throughput. */
void lac_padding_measure(const struct lac_facts *facts);
/** The share that the job counted itself, where the hook did not. */
void lac_padding_take_setting(const struct lac_facts *facts);
/** Whether a range carries such a count: no part of a batch's time. */
bool lac_is_count_of_padding(const struct lac_model *model, uint32_t slice);

/** fetch_breakdown.c: what a batch spends its time on, as sentences with a space before each; or
 * "". */
const char *lac_fetch_breakdown_text(const struct lac_facts *facts);

/** Where shared memory and memory end: how many workers fit, and sentences about it. */
struct lac_shm_budget {
    int64_t shm_free_bytes; /**< before the job began; -1 not recorded */
    int64_t memory_bytes;   /**< limit, else available; -1 */
    int32_t workers_most;   /**< that both hold; INT32_MAX not known to end */
};
void lac_shm_budget(const struct lac_facts *facts, struct lac_shm_budget *ret_room);
/** " Batches of 12 workers take 912 MB of /dev/shm (64 MB free)." or "". */
const char *lac_shm_budget_text(const struct lac_facts *facts, int32_t workers);

#endif
