#include "tests/simulator/scenario.h"

#include "collector/base/count_of.h"

#include <stdint.h>

/* What draws are for. */
enum purpose {
    FOR_SHAPE = 1,
    FOR_CAUSES,
    FOR_LOADER,
    FOR_COPIES,
    FOR_HOST,
    FOR_COMM,
    FOR_RANKS,
    FOR_DECOYS,
    FOR_PHASES,
};

static const int64_t MILLISECOND_NS = 1000000;
enum { STEP_EVENTS = 10000, KINDS = 12 };

static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t lac_demo_draw(uint64_t seed, uint32_t what, uint64_t which, int64_t low, int64_t high)
{
    uint64_t z = mixed(seed + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)what + 1));
    z = mixed(z + UINT64_C(0x9e3779b97f4a7c15) * (which + 1));
    return high <= low ? low : low + (int64_t)(z % (uint64_t)(high - low + 1));
}

/* A stream of draws for one purpose. */
struct dice {
    uint64_t seed;
    uint32_t what;
    uint64_t rolled;
};

static int64_t roll(struct dice *dice, int64_t low, int64_t high)
{
    return lac_demo_draw(dice->seed, dice->what, dice->rolled++, low, high);
}

static bool chance(struct dice *dice, int percent)
{
    return roll(dice, 0, 99) < percent;
}

/* `permille` of a time, without overflow for any time of ours */
static int64_t share(int64_t time_ns, int64_t permille)
{
    return time_ns / 1000 * permille;
}

static void draw_shape(struct lac_demo_scenario *s)
{
    struct dice dice = {s->seed, FOR_SHAPE, 0};
    s->kernels = (int32_t)(chance(&dice, 30) ? roll(&dice, 20, 90) : roll(&dice, 90, 600));
    s->is_convolutional = chance(&dice, 50);
    s->batch_size = (int32_t)(8 << roll(&dice, 0, 5));
    s->op_ns = roll(&dice, 5000, 12000);
    s->launch_ns = roll(&dice, 3500, 6500);
    s->latency_ns = roll(&dice, 2500, 6000);
    s->kernel_pause_ns = roll(&dice, 700, 1300);
    s->queue_max = 1024;
    /* the device has well more to do than the host unless launching is the cause */
    int64_t least_ns = (s->op_ns + s->launch_ns + 6000) * s->kernels;
    least_ns += least_ns / 2 + 6 * MILLISECOND_NS;
    s->compute_ns = least_ns / 1000 * roll(&dice, 1000, 5000);
    s->compute_ns = s->compute_ns < 20 * MILLISECOND_NS ? 20 * MILLISECOND_NS : s->compute_ns;
    s->compute_ns = s->compute_ns > 500 * MILLISECOND_NS ? 500 * MILLISECOND_NS : s->compute_ns;
    int64_t steps = STEP_EVENTS / s->kernels;
    s->recorded_steps = (int32_t)(steps < 20 ? 20 : steps > 60 ? 60 : steps);
    s->warmup_steps = 30 + 1100 / s->kernels; /* until a full launch queue is a steady one */
    s->tail_ns = roll(&dice, 20, 250) * 1000;
    s->host_jitter_ppm = (int32_t)roll(&dice, 20000, 250000);
    int64_t named = roll(&dice, 0, 99);
    s->names = named < 55   ? LAC_DEMO_NAMES_STEPS
               : named < 75 ? LAC_DEMO_NAMES_LOADER
               : named < 88 ? LAC_DEMO_NAMES_OPTIMIZER
                            : LAC_DEMO_NAMES_NONE;
    s->has_hook = s->names != LAC_DEMO_NAMES_NONE && chance(&dice, 75);
    s->ranks = 1;
    s->late_rank = -1;
    s->layout_left_permille = (int32_t)roll(&dice, 0, 300);
}

/* Too few workers may be workers that take turns: as many would do side by side. */
static void draw_lock(struct lac_demo_scenario *s)
{
    enum { LOCKED_PERCENT = 35 };
    struct dice dice = {s->seed, FOR_LOADER, 900};
    if (s->workers < 2 || !s->has_hook || !chance(&dice, LOCKED_PERCENT)) {
        return;
    }
    s->causes &= ~(1u << LAC_DEMO_CAUSE_WORKERS);
    s->causes |= 1u << LAC_DEMO_CAUSE_LOCK;
    s->is_locked = true;
    s->has_thread_workers = false;
    s->workers = (int32_t)roll(&dice, 3, 8);
    s->fetch_ns = share(s->compute_ns, roll(&dice, 1100, 2200));
}

/* A loop in order: enough workers, small copies that nobody waits for. */
static void draw_healthy(struct lac_demo_scenario *s)
{
    struct dice dice = {s->seed, FOR_LOADER, 0};
    s->workers = (int32_t)roll(&dice, 2, 12);
    s->has_thread_workers = chance(&dice, 10);
    s->prefetch_factor = (int32_t)roll(&dice, 2, 4);
    s->fetch_ns = share(s->compute_ns, roll(&dice, 150, 600)) * s->workers;
    s->fetch_jitter_ppm = (int32_t)roll(&dice, 5000, 120000);
    s->cores = LAC_DEMO_LOOP_WORKERS_MAX;
    s->pin_ns = roll(&dice, 100, 1500) * 1000;
    s->tail_factor = 1;
    dice.what = FOR_COPIES;
    bool is_ahead = chance(&dice, 50);
    s->copies = is_ahead ? LAC_DEMO_COPIES_AHEAD : LAC_DEMO_COPIES_NON_BLOCKING;
    s->pinned_ns = share(s->compute_ns, is_ahead ? roll(&dice, 10, 150) : roll(&dice, 1, 6));
    s->pageable_ns = s->pinned_ns / 10 * roll(&dice, 16, 32);
    dice.what = FOR_DECOYS;
    if (chance(&dice, 35)) {
        s->reads = LAC_DEMO_READS_LATE;
        s->read_count = 1;
        s->read_host_ns = 20000;
    }
    if (s->is_convolutional && chance(&dice, 20)) {
        s->has_layout = true;
        s->layout_ns = share(s->compute_ns, roll(&dice, 3, 15));
    }
    if (chance(&dice, 20)) {
        s->checkpoint_every = (int32_t)roll(&dice, 9, 25);
        s->checkpoint_ns = share(s->compute_ns, roll(&dice, 800, 4000));
    }
    if (chance(&dice, 20)) {
        s->bucket_count = (int32_t)roll(&dice, 3, 8);
        s->comm_ns = share(s->compute_ns, roll(&dice, 50, 250));
    }
    s->has_graph = chance(&dice, 10);
}

static void draw_loader_cause(struct lac_demo_scenario *s, enum lac_demo_cause cause)
{
    struct dice dice = {s->seed, FOR_LOADER, 100 + (uint64_t)cause * 20};
    if (cause == LAC_DEMO_CAUSE_TAIL) {
        s->workers = (int32_t)roll(&dice, 2, 8);
        s->fetch_ns = share(s->compute_ns, roll(&dice, 500, 750)) * s->workers;
        s->tail_permille = (int32_t)roll(&dice, 30, 90);
        s->tail_factor = (int32_t)roll(&dice, 5, 12);
    } else if (cause == LAC_DEMO_CAUSE_CONTENTION) {
        s->cores = (int32_t)roll(&dice, 2, 6);
        s->workers = s->cores * (int32_t)roll(&dice, 1, 2) + (int32_t)roll(&dice, 0, 2);
        s->fetch_ns = share(s->compute_ns, roll(&dice, 1150, 2500)) * s->cores;
        s->has_hook = true;
    } else if (chance(&dice, 25)) {
        s->workers = 0;
        s->fetch_ns = share(s->compute_ns, roll(&dice, 80, 1500));
        s->copies = s->copies == LAC_DEMO_COPIES_AHEAD ? LAC_DEMO_COPIES_NON_BLOCKING : s->copies;
        s->pinned_ns = share(s->compute_ns, roll(&dice, 1, 6));
    } else {
        s->workers = (int32_t)roll(&dice, 1, 8);
        s->fetch_ns = share(s->compute_ns, roll(&dice, 1060, 3500)) * s->workers;
        draw_lock(s);
    }
}

static void draw_copy_cause(struct lac_demo_scenario *s, bool is_pageable)
{
    struct dice dice = {s->seed, FOR_COPIES, 100};
    s->pinned_ns = share(s->compute_ns, roll(&dice, 25, 250));
    s->pageable_ns = s->pinned_ns / 10 * roll(&dice, 16, 32);
    s->copies = is_pageable         ? LAC_DEMO_COPIES_PAGEABLE
                : chance(&dice, 70) ? LAC_DEMO_COPIES_PINNED
                                    : LAC_DEMO_COPIES_NON_BLOCKING;
}

static void draw_host_cause(struct lac_demo_scenario *s, enum lac_demo_cause cause)
{
    struct dice dice = {s->seed, FOR_HOST, (uint64_t)cause * 20};
    if (cause == LAC_DEMO_CAUSE_SYNC) {
        s->reads = chance(&dice, 50) ? LAC_DEMO_READS_LAST : LAC_DEMO_READS_FORWARD;
        s->read_count = s->reads == LAC_DEMO_READS_LAST ? 1 : (int32_t)roll(&dice, 3, 24);
        s->read_host_ns = share(s->compute_ns, roll(&dice, 20, 300)) / s->read_count;
        s->has_graph = false;
    } else if (cause == LAC_DEMO_CAUSE_LAUNCH) {
        s->kernels = s->kernels < 240 ? s->kernels + 240 : s->kernels;
        s->recorded_steps = 20 + STEP_EVENTS / s->kernels / 2;
        s->op_ns = s->compute_ns / s->kernels / 100 * roll(&dice, 105, 320);
        s->op_ns = s->op_ns > 40000 ? 40000 : s->op_ns; /* more is not dispatching any more */
        s->compute_ns = (s->op_ns + s->launch_ns) * s->kernels / 100 * roll(&dice, 25, 90);
        s->has_graph = false;
    } else if (cause == LAC_DEMO_CAUSE_ALLOCATOR) {
        s->alloc_count = (int32_t)roll(&dice, 1, 12);
        s->alloc_ns = share(s->compute_ns, roll(&dice, 40, 350)) / s->alloc_count / 2;
        s->has_graph = false;
    } else {
        s->module_every = (int32_t)roll(&dice, 2, 6);
        s->module_ns = s->compute_ns / 10 * roll(&dice, 7, 25);
        s->has_graph = false;
    }
}

static void draw_cause(struct lac_demo_scenario *s, enum lac_demo_cause cause)
{
    struct dice dice = {s->seed, FOR_COMM, 0};
    s->causes |= 1u << cause;
    switch (cause) {
    case LAC_DEMO_CAUSE_WORKERS:
    case LAC_DEMO_CAUSE_TAIL:
    case LAC_DEMO_CAUSE_CONTENTION:
        draw_loader_cause(s, cause);
        break;
    case LAC_DEMO_CAUSE_PAGEABLE:
    case LAC_DEMO_CAUSE_BLOCKING:
        draw_copy_cause(s, cause == LAC_DEMO_CAUSE_PAGEABLE);
        break;
    case LAC_DEMO_CAUSE_LAYOUT:
        s->is_convolutional = true;
        s->has_layout = true;
        s->kernels = s->kernels > 420 ? 420 : s->kernels;
        s->layout_ns = share(s->compute_ns, lac_demo_draw(s->seed, FOR_COPIES, 200, 40, 450));
        break;
    case LAC_DEMO_CAUSE_COMM:
        s->bucket_count = (int32_t)roll(&dice, 2, 10);
        s->comm_ns = share(s->compute_ns, roll(&dice, 350, 1300));
        break;
    case LAC_DEMO_CAUSE_LATE_RANK:
        s->bucket_count = s->bucket_count > 0 ? s->bucket_count : 4;
        s->comm_ns = s->comm_ns > 0 ? s->comm_ns : share(s->compute_ns, 150);
        s->late_rank = (int32_t)roll(&dice, 0, s->ranks - 1);
        s->late_ns = share(s->compute_ns, roll(&dice, 150, 700));
        s->late_by =
            (enum lac_demo_late)roll(&dice, LAC_DEMO_LATE_BY_HOST, LAC_DEMO_LATE_BY_COMPUTE);
        break;
    case LAC_DEMO_CAUSE_SYNC:
    case LAC_DEMO_CAUSE_LAUNCH:
    case LAC_DEMO_CAUSE_ALLOCATOR:
    case LAC_DEMO_CAUSE_MODULE:
        draw_host_cause(s, cause);
        break;
    case LAC_DEMO_CAUSE_LOCK: /* comes with workers */
    case LAC_DEMO_CAUSE_COUNT_:
    default:
        break;
    }
}

static void draw_ranks(struct lac_demo_scenario *s)
{
    static const int32_t COUNTS[] = {2, 2, 3, 4, 4, 6, 8};
    struct dice dice = {s->seed, FOR_RANKS, 0};
    s->ranks = COUNTS[roll(&dice, 0, (int64_t)(LAC_COUNT_OF(COUNTS)) - 1)];
    if (s->bucket_count == 0) {
        s->bucket_count = (int32_t)roll(&dice, 2, 6);
        s->comm_ns = share(s->compute_ns, roll(&dice, 100, 300));
    }
    if (chance(&dice, 70)) {
        draw_cause(s, LAC_DEMO_CAUSE_LATE_RANK);
    } else if (chance(&dice, 40)) {
        s->turn_ns = share(s->compute_ns, roll(&dice, 150, 500));
    }
}

/* A rank whose loader is the limit, and by `late_ns` a step. */
static int64_t late_fetch(const struct lac_demo_scenario *s)
{
    if (s->workers == 0) {
        return s->fetch_ns + s->late_ns;
    }
    int64_t limit_ns = (s->compute_ns + s->comm_ns) * s->workers;
    return (s->fetch_ns > limit_ns ? s->fetch_ns : limit_ns) + s->late_ns * s->workers;
}

/* What one draw means for another. */
static void settle(struct lac_demo_scenario *s)
{
    s->has_graph = s->has_graph && s->bucket_count == 0;
    s->late_fetch_ns = late_fetch(s);
    s->batch_bytes = s->pinned_ns / 10 * 240; /* 24 GB/s, as an A100 copies from pinned memory */
    /* Where the host stops now and then for longer than a step, or a step is a single launch, how
     * far it is ahead of the device would drift through the whole trace: what reads a value keeps
     * it within a step. A checkpoint empties the queue; the steps behind it would refill it. */
    bool drifts = s->has_graph || s->module_every > 0 || s->tail_permille > 0 || s->ranks > 1;
    if ((drifts || s->checkpoint_every > 0) && s->reads == LAC_DEMO_READS_NONE) {
        s->reads = LAC_DEMO_READS_LATE;
        s->read_count = 1;
        s->read_host_ns = 20000;
    }
    if (s->reads == LAC_DEMO_READS_FORWARD) {
        s->checkpoint_every = 0; /* the step behind one would lack the backward pass before it */
    }
    /* nobody would notice a host that is late while its device has a step to do */
    bool is_late_host =
        (s->late_rank >= 0 && s->late_by == LAC_DEMO_LATE_BY_HOST) || s->turn_ns > 0;
    if ((s->checkpoint_every > 0 || is_late_host) && s->reads == LAC_DEMO_READS_LATE) {
        s->reads = LAC_DEMO_READS_LAST;
    }
    int32_t launched = s->has_layout ? s->kernels + s->kernels * 2 / 3 : s->kernels;
    int32_t steps_max = STEP_EVENTS / launched < 20 ? 20 : STEP_EVENTS / launched;
    s->recorded_steps = s->recorded_steps > steps_max ? steps_max : s->recorded_steps;
    if (s->workers > 0) { /* whole cycles, so that the mean does not depend on where one begins */
        s->recorded_steps = (s->recorded_steps + s->workers - 1) / s->workers * s->workers;
    }
    /* loading must show in the trace where it matters */
    uint32_t loading = 1u << LAC_DEMO_CAUSE_WORKERS | 1u << LAC_DEMO_CAUSE_TAIL |
                       1u << LAC_DEMO_CAUSE_CONTENTION | 1u << LAC_DEMO_CAUSE_LOCK;
    if ((s->causes & loading) != 0 && s->names >= LAC_DEMO_NAMES_OPTIMIZER && !s->has_hook) {
        s->names = LAC_DEMO_NAMES_LOADER;
    }
}

void lac_demo_scenario_draw(uint64_t seed, int how_many, bool with_ranks,
                            struct lac_demo_scenario *ret_scenario)
{
    /* launching first: it sets the scale of all others; one that is drawn twice is put in once */
    static const enum lac_demo_cause ORDER[] = {
        LAC_DEMO_CAUSE_LAUNCH,     LAC_DEMO_CAUSE_WORKERS,  LAC_DEMO_CAUSE_TAIL,
        LAC_DEMO_CAUSE_CONTENTION, LAC_DEMO_CAUSE_PAGEABLE, LAC_DEMO_CAUSE_BLOCKING,
        LAC_DEMO_CAUSE_LAYOUT,     LAC_DEMO_CAUSE_SYNC,     LAC_DEMO_CAUSE_ALLOCATOR,
        LAC_DEMO_CAUSE_MODULE,     LAC_DEMO_CAUSE_COMM,     LAC_DEMO_CAUSE_COUNT_,
    };
    struct dice dice = {seed, FOR_CAUSES, 0};
    *ret_scenario = (struct lac_demo_scenario){.seed = seed};
    draw_shape(ret_scenario);
    bool is_launch = false;
    uint32_t wanted = 0;
    int64_t count = how_many == 1 ? 1 : how_many == 2 ? roll(&dice, 2, 4) : roll(&dice, 1, 4);
    count = how_many == 0 && chance(&dice, 40) ? 1 : count;
    for (int64_t i = 0; i < count; i++) {
        int64_t kind = roll(&dice, 0, KINDS - 1); /* the last is none at all */
        wanted |= 1u << kind;
        is_launch = is_launch || ORDER[kind] == LAC_DEMO_CAUSE_LAUNCH;
    }
    if (is_launch) {
        draw_cause(ret_scenario, LAC_DEMO_CAUSE_LAUNCH);
    }
    draw_healthy(ret_scenario);
    ret_scenario->has_graph = ret_scenario->has_graph && !is_launch;
    bool has_loader = false;
    for (int kind = 1; kind < KINDS - 1; kind++) {
        bool is_loader = ORDER[kind] <= LAC_DEMO_CAUSE_CONTENTION;
        if ((wanted >> kind & 1u) != 0 && !(is_loader && has_loader)) {
            draw_cause(ret_scenario, ORDER[kind]);
            has_loader = has_loader || is_loader;
        }
    }
    if (with_ranks) {
        draw_ranks(ret_scenario);
    }
    settle(ret_scenario);
}

void lac_demo_scenario_add_phases(struct lac_demo_scenario *s)
{
    enum { STEPS = 60, KERNELS_MAX = 160 };
    struct dice dice = {s->seed, FOR_PHASES, 0};
    s->kernels = s->kernels > KERNELS_MAX ? KERNELS_MAX : s->kernels;
    s->recorded_steps = STEPS;
    s->module_every = 0;
    s->has_graph = false;
    s->has_layout = false;
    s->has_no_phase_name = chance(&dice, 50);
    s->reads =
        LAC_DEMO_READS_LAST; /* the host is where the device is: times on both are the same */
    s->read_count = 1;
    s->checkpoint_every = 0;
    if (chance(&dice, 60)) {
        s->checkpoint_every = (int32_t)roll(&dice, 9, 17);
        s->checkpoint_ns = share(s->compute_ns, roll(&dice, 800, 6000));
        s->state_bytes = roll(&dice, 60, 900) * 1000000;
    }
    if (chance(&dice, 60)) {
        s->epoch_batches = (int32_t)roll(&dice, 11, 19);
        s->respawn_ns = share(s->compute_ns, roll(&dice, 500, 4000));
    }
    if (chance(&dice, 60)) {
        s->validate_every = (int32_t)roll(&dice, 10, 18);
        s->validate_batches = (int32_t)roll(&dice, 3, 8);
    }
    if (chance(&dice, 60)) {
        s->recompile_every = (int32_t)roll(&dice, 12, 20);
        s->recompile_ns = share(s->compute_ns, roll(&dice, 300, 3000));
    }
}

bool lac_demo_scenario_has(const struct lac_demo_scenario *s, enum lac_demo_cause cause)
{
    switch (cause) {
    case LAC_DEMO_CAUSE_WORKERS:
        return true;
    case LAC_DEMO_CAUSE_TAIL:
        return s->tail_permille > 0;
    case LAC_DEMO_CAUSE_CONTENTION:
        return s->cores < LAC_DEMO_LOOP_WORKERS_MAX;
    case LAC_DEMO_CAUSE_PAGEABLE:
        return s->copies == LAC_DEMO_COPIES_PAGEABLE;
    case LAC_DEMO_CAUSE_BLOCKING:
        return s->copies != LAC_DEMO_COPIES_AHEAD;
    case LAC_DEMO_CAUSE_LAYOUT:
        return s->has_layout;
    case LAC_DEMO_CAUSE_SYNC:
        return s->reads == LAC_DEMO_READS_LAST || s->reads == LAC_DEMO_READS_FORWARD;
    case LAC_DEMO_CAUSE_LAUNCH:
        return !s->has_graph;
    case LAC_DEMO_CAUSE_ALLOCATOR:
        return s->alloc_count > 0;
    case LAC_DEMO_CAUSE_MODULE:
        return s->module_every > 0;
    case LAC_DEMO_CAUSE_COMM:
        return s->bucket_count > 0;
    case LAC_DEMO_CAUSE_LATE_RANK:
        return s->late_rank >= 0;
    case LAC_DEMO_CAUSE_LOCK:
        return s->is_locked;
    case LAC_DEMO_CAUSE_COUNT_:
    default:
        return false;
    }
}

struct lac_demo_scenario lac_demo_scenario_without(const struct lac_demo_scenario *scenario,
                                                   enum lac_demo_cause cause, int32_t workers)
{
    struct lac_demo_scenario s = *scenario;
    switch (cause) {
    case LAC_DEMO_CAUSE_WORKERS:
        s.workers = workers;
        s.recorded_steps = (s.recorded_steps + workers - 1) / workers * workers;
        break;
    case LAC_DEMO_CAUSE_TAIL:
        s.tail_permille = 0;
        break;
    case LAC_DEMO_CAUSE_CONTENTION:
        s.cores = LAC_DEMO_LOOP_WORKERS_MAX;
        if (workers > s.workers) {
            s = lac_demo_scenario_without(&s, LAC_DEMO_CAUSE_WORKERS, workers);
        }
        break;
    case LAC_DEMO_CAUSE_PAGEABLE:
        s.copies = LAC_DEMO_COPIES_PINNED;
        break;
    case LAC_DEMO_CAUSE_BLOCKING:
        s.copies = LAC_DEMO_COPIES_AHEAD;
        break;
    case LAC_DEMO_CAUSE_LAYOUT:
        s.layout_ns = share(s.layout_ns, s.layout_left_permille);
        s.has_layout = s.layout_left_permille >= 50;
        s.layout_kept_permille = s.layout_left_permille;
        break;
    case LAC_DEMO_CAUSE_SYNC:
        s.reads = LAC_DEMO_READS_LATE; /* one step later, when it costs nothing */
        s.read_host_ns = 0;
        break;
    case LAC_DEMO_CAUSE_LAUNCH:
        s.op_ns = 0;
        s.launch_ns = 100;
        break;
    case LAC_DEMO_CAUSE_ALLOCATOR:
        s.alloc_count = 0;
        break;
    case LAC_DEMO_CAUSE_MODULE:
        s.module_every = 0;
        break;
    case LAC_DEMO_CAUSE_COMM:
        s.is_comm_hidden = true;
        break;
    case LAC_DEMO_CAUSE_LATE_RANK:
        s.late_rank = -1;
        break;
    case LAC_DEMO_CAUSE_LOCK:
        s.is_locked = false;
        break;
    case LAC_DEMO_CAUSE_COUNT_:
    default:
        break;
    }
    return s;
}

const char *lac_demo_cause_name(enum lac_demo_cause cause)
{
    static const char *const NAMES[LAC_DEMO_CAUSE_COUNT_] = {
        "workers", "tail",      "contention", "pageable", "blocking",  "layout", "sync",
        "launch",  "allocator", "module",     "comm",     "late-rank", "lock"};
    return cause < LAC_DEMO_CAUSE_COUNT_ ? NAMES[cause] : "none";
}
