#ifndef LAC_TESTS_SIMULATOR_SCENARIO_H
#define LAC_TESTS_SIMULATOR_SCENARIO_H

/*
 * A random training loop: its parameters, drawn from a seed, and the same loop without one of its
 * causes. Every draw is a function of (seed, what it is for, which one), so that taking a cause
 * away changes nothing else.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_DEMO_RANKS_MAX = 8,
    LAC_DEMO_LOOP_WORKERS_MAX = 64,
    LAC_DEMO_KERNELS_MAX = 1200, /**< of one step */
};

/** What can be wrong with a training loop, each with the change that removes it. */
enum lac_demo_cause {
    LAC_DEMO_CAUSE_WORKERS = 0, /**< too few workers, or none: ceil(1.15 f / s) of them */
    LAC_DEMO_CAUSE_TAIL,        /**< slow samples: all take the usual time */
    LAC_DEMO_CAUSE_CONTENTION,  /**< workers share too few cores: cores and workers enough */
    LAC_DEMO_CAUSE_PAGEABLE,    /**< pageable copies: pinned, still waited for */
    LAC_DEMO_CAUSE_BLOCKING,    /**< copies in the way: a stream of their own, one batch ahead */
    LAC_DEMO_CAUSE_LAYOUT,      /**< layout conversions: channels-last, which leaves few */
    LAC_DEMO_CAUSE_SYNC,        /**< the host reads values in the step: one step later */
    LAC_DEMO_CAUSE_LAUNCH,      /**< operators and launches cost the host time: next to none */
    LAC_DEMO_CAUSE_ALLOCATOR,   /**< cudaMalloc and cudaFree in the step: none */
    LAC_DEMO_CAUSE_MODULE,      /**< modules loaded after the warm-up: none */
    LAC_DEMO_CAUSE_COMM,        /**< collectives that the step waits for: hidden */
    LAC_DEMO_CAUSE_LATE_RANK,   /**< one rank later than the others: as they are */
    LAC_DEMO_CAUSE_LOCK,        /**< workers take turns: side by side */
    LAC_DEMO_CAUSE_COUNT_
};

enum lac_demo_copies {
    LAC_DEMO_COPIES_PAGEABLE = 0,
    LAC_DEMO_COPIES_PINNED,       /**< on the compute stream, waited for */
    LAC_DEMO_COPIES_NON_BLOCKING, /**< on the compute stream, not waited for */
    LAC_DEMO_COPIES_AHEAD,        /**< on a stream of their own, one batch ahead */
};

enum lac_demo_reads {
    LAC_DEMO_READS_NONE = 0,
    LAC_DEMO_READS_LAST,    /**< loss.item() behind the optimizer: the device runs dry */
    LAC_DEMO_READS_FORWARD, /**< several values within the forward pass */
    LAC_DEMO_READS_LATE,    /**< the loss of the step before, when this one is queued: harmless */
};

/** Why a rank is late: what of its own takes longer. */
enum lac_demo_late {
    LAC_DEMO_LATE_BY_HOST = 0,
    LAC_DEMO_LATE_BY_DATA,    /**< its loader delivers too slowly */
    LAC_DEMO_LATE_BY_COMPUTE, /**< all its kernels take longer */
};

/** What names steps in the trace. */
enum lac_demo_names {
    LAC_DEMO_NAMES_STEPS = 0,
    LAC_DEMO_NAMES_LOADER,
    LAC_DEMO_NAMES_OPTIMIZER,
    LAC_DEMO_NAMES_NONE,
};

struct lac_demo_scenario {
    uint64_t seed;
    uint32_t causes; /**< bits of enum lac_demo_cause that were put in on purpose */
    int32_t warmup_steps;
    int32_t recorded_steps;
    enum lac_demo_names names;
    bool has_hook; /**< loader ranges and settings are in the trace */
    int32_t batch_size;

    /* loading */
    int32_t workers; /**< 0: in the training process */
    bool has_thread_workers;
    int32_t prefetch_factor;
    int64_t fetch_ns; /**< of one batch by one worker that has a core */
    int32_t fetch_jitter_ppm;
    int32_t tail_permille; /**< of batches that have a slow sample */
    int32_t tail_factor;   /**< how much longer they take */
    int32_t cores;         /**< that workers may use */
    bool is_locked;        /**< one worker at a time makes a batch, the others wait for the lock */
    int64_t pin_ns;

    /* copies */
    enum lac_demo_copies copies;
    int64_t batch_bytes;
    int64_t pageable_ns;
    int64_t pinned_ns;

    /* the device's work */
    bool is_convolutional;
    int32_t kernels; /**< of a step, without conversions */
    int64_t compute_ns;
    int64_t layout_ns;
    bool has_layout;
    int32_t layout_kept_permille; /**< of the convolutions with conversions; 0: all of them */
    int32_t layout_left_permille; /**< of it stays in channels-last: ends of the graph */
    bool has_graph;               /**< the step is one graph */
    int64_t kernel_pause_ns;
    int32_t kernel_permille; /**< of its time each kernel takes; 0: all of it */

    /* the host's work */
    int64_t op_ns; /**< framework's time for an operator of one kernel */
    int64_t launch_ns;
    int64_t latency_ns;
    int64_t tail_ns; /**< between steps */
    int32_t host_jitter_ppm;
    int32_t queue_max;
    enum lac_demo_reads reads;
    int32_t read_count;
    int64_t read_host_ns; /**< Python between a value read and the next operator */
    int32_t alloc_count;  /**< pairs of cudaMalloc and cudaFree a step */
    int64_t alloc_ns;     /**< of each call, without what it waits for */
    int32_t module_every; /**< steps, 0 never */
    int64_t module_ns;
    int32_t checkpoint_every; /**< steps, 0 never: steps of another kind */
    int64_t checkpoint_ns;

    /* what the job does beside its steps; 0 never */
    int32_t epoch_batches; /**< then the loader begins anew */
    int64_t respawn_ns;    /**< until its new workers begin */
    int32_t validate_every, validate_batches;
    int32_t recompile_every;
    int64_t recompile_ns;
    int64_t state_bytes;    /**< of a checkpoint, copied to the host where nothing names it */
    bool has_no_phase_name; /**< neither validations nor checkpoints have a range of theirs */

    /* communication */
    int32_t ranks;
    int32_t bucket_count; /**< 0: no communication */
    int64_t comm_ns;      /**< of all buckets of a step, once every rank is there */
    bool is_comm_hidden;
    int32_t late_rank;
    int64_t late_ns; /**< that rank needs longer for a step */
    enum lac_demo_late late_by;
    int64_t late_fetch_ns; /**< of a batch, where that is by its data */
    int64_t turn_ns; /**< each rank's host needs longer for every n-th step, in turn; 0 none does */
};

/** How many causes to put in: 1 one, 2 several, 0 drawn. */
void lac_demo_scenario_draw(uint64_t seed, int how_many, bool with_ranks,
                            struct lac_demo_scenario *ret_scenario);

/** Put in what a job does beside its steps, at even distances, and nothing else that goes wrong. */
void lac_demo_scenario_add_phases(struct lac_demo_scenario *scenario);

/** A change makes sense here: there is something to remove. */
bool lac_demo_scenario_has(const struct lac_demo_scenario *scenario, enum lac_demo_cause cause);

/** The same loop with the change that removes a cause; `workers` is what WORKERS sets. */
struct lac_demo_scenario lac_demo_scenario_without(const struct lac_demo_scenario *scenario,
                                                   enum lac_demo_cause cause, int32_t workers);

/** "workers", "tail", ... */
const char *lac_demo_cause_name(enum lac_demo_cause cause);

/** A number in [low, high] for one purpose, the same whenever it is asked. */
int64_t lac_demo_draw(uint64_t seed, uint32_t what, uint64_t which, int64_t low, int64_t high);

#endif
