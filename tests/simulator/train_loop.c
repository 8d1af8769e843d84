#include "tests/simulator/train_loop.h"

#include "analysis/model/status.h"
#include "server/demo/gpu_stream.h"
#include "server/demo/network.h"
#include "server/demo/pipeline.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/step_plan.h"
#include "tests/simulator/train_idle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What draws are for; ranks draw for themselves. */
enum { FOR_FETCH = 100, FOR_SLOW, FOR_OP, FOR_MODULE, FOR_COMM_TIME, FOR_RANK = 1000 };

/* Small costs of the host, in ns. */
enum {
    PIPE_NS = 30000,
    UNPACK_NS = 60000,
    CALL_NS = 4000,
    SYNC_RETURN_NS = 6000,
    GRAPH_LAUNCH_NS = 18000,
    SCALAR_COPY_NS = 1400,
    ZERO_GRAD_NS = 30000,
    HAND_OVER_NS = 12000, /* from the training thread to the autograd thread and back */
};

struct sim {
    const struct lac_demo_scenario *s;
    struct lac_demo_loop_run *run;
    struct lac_demo_stream compute;
    struct lac_demo_stream copy;
    struct lac_demo_stream comm;
    struct lac_demo_line line; /* what the training process was in */
    int64_t *fetched_ns;       /* by batch: end of its fetch, pinned */
    int64_t *fetch_end_ns;
    int64_t *taken_ns;
    int64_t batch_count;
    int64_t fetched; /* batches whose times are known */
    int64_t pin_free_ns;
    int64_t lock_free_ns; /* when the workers' lock is */
    int64_t fetch_sum_ns; /* inside the window */
    int64_t fetch_count;
    const int64_t *others_ns;
    uint64_t seed; /* of this rank */
    uint64_t ops;
    int64_t epoch_ns; /* when the workers of this epoch begin */
    int64_t t;        /* the training process is here */
    int64_t copied_ns;
    int64_t last_loss_ns;   /* device time at which the previous step's loss is known */
    int64_t device_from_ns; /* launched work ends there when the window begins */
    int64_t last_comm_ns;   /* and at which its gradients are reduced */
    int32_t rank;
    int32_t step;
    uint32_t correlation;
    uint32_t external_id;
    uint32_t joined_capacity;
    bool is_quiet;
    enum lac_status status;
};

/* ---- events and the line of the training process ---- */

static struct lac_demo_event *emit(struct sim *sim, int thread, enum lac_demo_event_kind kind,
                                   const char *name, int64_t start_ns, int64_t end_ns)
{
    static struct lac_demo_event nowhere;
    struct lac_demo_loop_run *run = sim->run;
    if (sim->is_quiet || sim->status != LAC_OK) {
        return &nowhere;
    }
    struct lac_demo_event *event =
        lac_demo_event_add(&run->events, &run->event_count, &run->event_capacity, thread, kind);
    if (event == NULL) {
        sim->status = LAC_ERR_NOMEM;
        return &nowhere;
    }
    event->name = name;
    event->start_ns = start_ns;
    event->dur_ns = end_ns - start_ns;
    return event;
}

/* The training process goes on to `until_ns`, in something. */
static void go_to(struct sim *sim, enum lac_demo_blame blame, int64_t until_ns)
{
    if (until_ns <= sim->t) {
        return;
    }
    if (!sim->is_quiet && sim->status == LAC_OK) {
        sim->status = lac_demo_line_add(&sim->line, sim->t, until_ns, blame);
    }
    sim->t = until_ns;
}

static void go(struct sim *sim, enum lac_demo_blame blame, int64_t ns)
{
    go_to(sim, blame, sim->t + ns);
}

/* Host time of one operator, a little different each time. */
static int64_t jittered(struct sim *sim, int64_t ns)
{
    int64_t width = ns / 1000 * sim->s->host_jitter_ppm / 1000;
    return ns + lac_demo_draw(sim->seed, FOR_OP, sim->ops++, -width, width);
}

/* A call that takes `ns` and has a number of its own. */
static uint32_t call(struct sim *sim, int thread, const char *name, enum lac_demo_blame blame,
                     int64_t end_ns)
{
    struct lac_demo_event *e = emit(sim, thread, LAC_DEMO_EVENT_API, name, sim->t, end_ns);
    e->correlation = ++sim->correlation;
    e->external_id = sim->external_id;
    go_to(sim, blame, end_ns);
    return sim->correlation;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since `begin_ns` the loop was at something beside its training. */
static void was_at(struct sim *sim, const char *phase, int64_t begin_ns)
{
    struct lac_demo_loop_run *run = sim->run;
    int32_t step = sim->step - sim->s->warmup_steps;
    if (step < 0 || sim->is_quiet || sim->status != LAC_OK) {
        return;
    }
    if (run->beside_count == run->beside_capacity) {
        uint32_t capacity = run->beside_capacity > 0 ? run->beside_capacity * 2 : 16;
        struct lac_demo_beside *grown = realloc(run->besides, capacity * sizeof(*grown));
        if (grown == NULL) {
            sim->status = LAC_ERR_NOMEM;
            return;
        }
        run->besides = grown;
        run->beside_capacity = capacity;
    }
    run->besides[run->beside_count++] = (struct lac_demo_beside){phase, begin_ns, sim->t, step};
}

/* Its number within its epoch. */
static int64_t number_of(const struct sim *sim, int64_t batch)
{
    return sim->s->epoch_batches > 0 ? batch % sim->s->epoch_batches : batch;
}

/* ---- loading ---- */

static int64_t fetch_time(struct sim *sim, int64_t batch)
{
    const struct lac_demo_scenario *s = sim->s;
    bool is_late = sim->rank == s->late_rank && s->late_by == LAC_DEMO_LATE_BY_DATA;
    int64_t usual_ns = is_late ? s->late_fetch_ns : s->fetch_ns;
    int64_t width = usual_ns / 1000 * s->fetch_jitter_ppm / 1000;
    int64_t ns = usual_ns + lac_demo_draw(sim->seed, FOR_FETCH, (uint64_t)batch, -width, width);
    if (lac_demo_draw(sim->seed, FOR_SLOW, (uint64_t)batch, 0, 999) < s->tail_permille) {
        ns *= s->tail_factor;
    }
    return s->workers > s->cores ? ns / s->cores * s->workers : ns;
}

/* Up to `begins_ns` the worker waits for its lock. */
static void fetch_events(struct sim *sim, int thread, int64_t batch, int64_t start_ns,
                         int64_t begins_ns, int64_t end_ns)
{
    static const char *const PART[4] = {"loader.read", "loader.decode", "loader.transform",
                                        "loader.collate"};
    static const int32_t PERMILLE[4] = {80, 540, 330, 50};
    const struct lac_demo_scenario *s = sim->s;
    int64_t at_ns = begins_ns;
    if (!s->has_hook) {
        return;
    }
    for (int i = -1; i < 4; i++) { /* the whole, then its parts */
        int64_t part_end_ns =
            i == 3 ? end_ns : at_ns + (end_ns - begins_ns) / 1000 * PERMILLE[i < 0 ? 0 : i];
        struct lac_demo_event *e =
            i < 0 ? emit(sim, thread, LAC_DEMO_EVENT_LOADER, "loader.fetch", start_ns, end_ns)
                  : emit(sim, thread, LAC_DEMO_EVENT_LOADER, PART[i], at_ns, part_end_ns);
        int64_t work_ns = i < 0 ? end_ns - begins_ns : part_end_ns - at_ns;
        int64_t cpu_ns = work_ns / 100 * (i == 0 ? 40 : 95);
        /* without a core of its own a worker waits for one */
        bool is_shared = s->workers > 0 && s->workers > s->cores;
        e->cpu_ns = is_shared ? cpu_ns / s->workers * s->cores : cpu_ns;
        e->number = (int32_t)number_of(sim, batch);
        e->worker = s->workers > 0 ? (int32_t)(number_of(sim, batch) % s->workers) : -1;
        at_ns = i < 0 ? at_ns : part_end_ns;
    }
}

/* The next batch in order: by its worker, when it was asked and is free. */
static void fetch_next(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    int64_t b = sim->fetched++;
    int64_t n = number_of(sim, b);
    int64_t ahead = (int64_t)s->workers * s->prefetch_factor;
    int64_t start_ns = n < ahead ? sim->epoch_ns + s->fetch_ns / s->workers * (n % s->workers)
                                 : sim->taken_ns[b - ahead] + 10000;
    if (n >= s->workers) {
        start_ns = later(start_ns, sim->fetch_end_ns[b - s->workers]);
    }
    int64_t begins_ns = s->is_locked ? later(start_ns, sim->lock_free_ns) : start_ns;
    int64_t end_ns = begins_ns + fetch_time(sim, b);
    sim->lock_free_ns = end_ns;
    sim->fetch_end_ns[b] = end_ns;
    fetch_events(sim, LAC_DEMO_WORKER + (int)(n % s->workers), b, start_ns, begins_ns, end_ns);
    if (b >= s->warmup_steps) {
        sim->fetch_sum_ns += end_ns - start_ns;
        sim->fetch_count++;
    }
    end_ns += s->has_thread_workers ? 5000 : PIPE_NS;
    if (s->copies != LAC_DEMO_COPIES_PAGEABLE) {
        start_ns = later(end_ns, sim->pin_free_ns);
        end_ns = sim->pin_free_ns = start_ns + s->pin_ns;
        if (s->has_hook) {
            struct lac_demo_event *e =
                emit(sim, LAC_DEMO_PIN, LAC_DEMO_EVENT_LOADER, "loader.pin", start_ns, end_ns);
            e->number = (int32_t)n;
            e->cpu_ns = s->pin_ns;
        }
    }
    sim->fetched_ns[b] = end_ns;
}

/* What names a call of __next__ that began at `begin_ns` and took its batch. */
static void name_wait(struct sim *sim, int64_t begin_ns)
{
    const struct lac_demo_scenario *s = sim->s;
    if (s->names == LAC_DEMO_NAMES_STEPS || s->names == LAC_DEMO_NAMES_LOADER) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE,
             s->workers == 0 ? "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
                             : "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
             begin_ns, sim->t);
    }
}

/* A wait for a batch that is there, or that does not come, of a loader with workers or without. */
static void short_wait(struct sim *sim, int64_t number, int64_t wait_ns)
{
    int64_t begin_ns = sim->t;
    go(sim, LAC_DEMO_BLAME_DATA, wait_ns);
    if (sim->s->has_hook && sim->s->workers > 0) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_LOADER, "loader.wait", begin_ns, sim->t)->number =
            (int32_t)number;
    }
    name_wait(sim, begin_ns);
}

/* The loader is asked for a batch after its last, then for an iterator with workers of its own. */
static void begin_epoch(struct sim *sim)
{
    short_wait(sim, sim->s->epoch_batches, 8000);
    go(sim, LAC_DEMO_BLAME_HOST, 30000);
    sim->epoch_ns = sim->t + (sim->s->workers > 0 ? sim->s->respawn_ns : 0);
}

/* __next__ */
static void take_batch(struct sim *sim, int64_t batch)
{
    const struct lac_demo_scenario *s = sim->s;
    bool is_new_epoch = batch > 0 && s->epoch_batches > 0 && batch % s->epoch_batches == 0;
    if (is_new_epoch) {
        begin_epoch(sim);
    }
    int64_t begin_ns = sim->t;
    if (s->workers == 0) {
        go(sim, LAC_DEMO_BLAME_DATA, 20000);
        int64_t start_ns = sim->t;
        go(sim, LAC_DEMO_BLAME_DATA, fetch_time(sim, batch));
        fetch_events(sim, LAC_DEMO_MAIN, batch, start_ns, start_ns, sim->t);
        sim->fetch_sum_ns += batch >= s->warmup_steps ? sim->t - start_ns : 0;
        sim->fetch_count += batch >= s->warmup_steps ? 1 : 0;
        go(sim, LAC_DEMO_BLAME_DATA, 10000);
    } else {
        while (sim->fetched <= batch) {
            fetch_next(sim);
        }
        go(sim, LAC_DEMO_BLAME_DATA, 5000);
        int64_t wait_ns = sim->t;
        go_to(sim, LAC_DEMO_BLAME_DATA, sim->fetched_ns[batch]);
        go(sim, LAC_DEMO_BLAME_DATA, 2000);
        if (s->has_hook) {
            struct lac_demo_event *e =
                emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_LOADER, "loader.wait", wait_ns, sim->t);
            e->number = (int32_t)number_of(sim, batch);
            e->worker = (int32_t)(number_of(sim, batch) % s->workers);
        }
        sim->taken_ns[batch] = sim->t;
        go(sim, LAC_DEMO_BLAME_DATA, UNPACK_NS);
    }
    name_wait(sim, begin_ns);
    if (is_new_epoch) {
        was_at(sim, "epoch_end", begin_ns);
    }
    go(sim, LAC_DEMO_BLAME_HOST, 8000);
}

/* ---- copies ---- */

static void copy_batch(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    bool is_ahead = s->copies == LAC_DEMO_COPIES_AHEAD;
    bool is_pageable = s->copies == LAC_DEMO_COPIES_PAGEABLE;
    struct lac_demo_stream *stream = is_ahead ? &sim->copy : &sim->compute;
    uint32_t outer_id = ++sim->external_id;
    int64_t begin_ns = sim->t;
    sim->external_id++;
    go(sim, LAC_DEMO_BLAME_HOST, jittered(sim, 9000));
    struct lac_demo_launch l =
        lac_demo_stream_launch(stream, sim->t, s->launch_ns, s->latency_ns, s->kernel_pause_ns,
                               is_pageable ? s->pageable_ns : s->pinned_ns);
    struct lac_demo_event *e = emit(sim, is_ahead ? LAC_DEMO_COPY_STREAM : LAC_DEMO_COMPUTE_STREAM,
                                    LAC_DEMO_EVENT_COPY, "", l.start_ns, l.end_ns);
    e->bytes = s->batch_bytes;
    e->from_pinned = !is_pageable;
    e->correlation = sim->correlation + 1;
    e->external_id = sim->external_id;
    call(sim, LAC_DEMO_MAIN, "cudaMemcpyAsync", LAC_DEMO_BLAME_COPY,
         is_pageable ? l.end_ns + CALL_NS : l.api_end_ns);
    if (s->copies <= LAC_DEMO_COPIES_PINNED) {
        go(sim, LAC_DEMO_BLAME_COPY, 1500);
        call(sim, LAC_DEMO_MAIN, "cudaStreamSynchronize", LAC_DEMO_BLAME_COPY,
             later(sim->t + CALL_NS, l.end_ns + SYNC_RETURN_NS));
    }
    go(sim, LAC_DEMO_BLAME_HOST, 3000);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::copy_", begin_ns + 4000, sim->t)
        ->external_id = sim->external_id;
    go(sim, LAC_DEMO_BLAME_HOST, 3000);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::to", begin_ns, sim->t)->external_id =
        outer_id;
    go(sim, LAC_DEMO_BLAME_HOST, 3000);
    sim->copied_ns = l.end_ns;
    if (is_ahead) {
        call(sim, LAC_DEMO_MAIN, "cudaEventRecord", LAC_DEMO_BLAME_HOST, sim->t + CALL_NS);
    }
}

/* ---- the step's work ---- */

/* What a kernel takes on this rank. */
static int64_t kernel_ns(const struct sim *sim, const struct lac_demo_kernel *k)
{
    const struct lac_demo_scenario *s = sim->s;
    bool is_slow = sim->rank == s->late_rank && s->late_by == LAC_DEMO_LATE_BY_COMPUTE;
    int64_t late_ns = is_slow ? s->late_ns / 1000 * k->dur_ns / (s->compute_ns / 1000) : 0;
    return s->kernel_permille > 0 ? k->dur_ns / 1000 * s->kernel_permille : k->dur_ns + late_ns;
}

static void launch(struct sim *sim, const struct lac_demo_kernel *k, int thread)
{
    const struct lac_demo_scenario *s = sim->s;
    int64_t dur_ns = kernel_ns(sim, k);
    struct lac_demo_launch l = lac_demo_stream_launch(&sim->compute, sim->t, s->launch_ns,
                                                      s->latency_ns, s->kernel_pause_ns, dur_ns);
    struct lac_demo_event *e =
        emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_KERNEL, k->name, l.start_ns, l.end_ns);
    e->kernel = k;
    e->correlation = sim->correlation + 1;
    e->external_id = sim->external_id;
    call(sim, thread, "cudaLaunchKernel", LAC_DEMO_BLAME_LAUNCH, l.api_end_ns);
}

static void run_op(struct sim *sim, const struct lac_demo_op *op)
{
    const struct lac_demo_network *net = &sim->run->network;
    int thread = op->phase == LAC_DEMO_BACKWARD ? LAC_DEMO_AUTOGRAD : LAC_DEMO_MAIN;
    int64_t op_ns = jittered(sim, sim->s->op_ns);
    int64_t begin_ns = sim->t;
    uint32_t outer_id = ++sim->external_id;
    go(sim, LAC_DEMO_BLAME_LAUNCH, op_ns / 2);
    int64_t inner_ns = sim->t;
    if (op->inner != NULL) {
        sim->external_id++;
    }
    for (uint32_t i = 0; i < op->kernel_count; i++) {
        go(sim, LAC_DEMO_BLAME_LAUNCH, op_ns / 8);
        launch(sim, &net->kernels[op->kernel_first + i], thread);
    }
    go(sim, LAC_DEMO_BLAME_LAUNCH, op_ns / 8);
    if (op->inner != NULL) {
        emit(sim, thread, LAC_DEMO_EVENT_OP, op->inner, inner_ns, sim->t)->external_id =
            sim->external_id;
    }
    go(sim, LAC_DEMO_BLAME_LAUNCH, op_ns / 8);
    emit(sim, thread, LAC_DEMO_EVENT_OP, op->name, begin_ns, sim->t)->external_id = outer_id;
    go(sim, LAC_DEMO_BLAME_LAUNCH, op_ns / 8);
}

/* value.item(): a few bytes to the host, which waits for everything before them */
static void read_value(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    uint32_t outer_id = ++sim->external_id;
    int64_t begin_ns = sim->t;
    sim->external_id++;
    go(sim, LAC_DEMO_BLAME_LAUNCH, 5000);
    struct lac_demo_launch l = lac_demo_stream_launch(
        &sim->compute, sim->t, s->launch_ns, s->latency_ns, s->kernel_pause_ns, SCALAR_COPY_NS);
    struct lac_demo_event *e =
        emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_COPY, "", l.start_ns, l.end_ns);
    e->bytes = 4;
    e->to_host = true;
    e->correlation = sim->correlation + 1;
    e->external_id = sim->external_id;
    call(sim, LAC_DEMO_MAIN, "cudaMemcpyAsync", LAC_DEMO_BLAME_SYNC, l.end_ns + CALL_NS);
    go(sim, LAC_DEMO_BLAME_SYNC, 1500);
    call(sim, LAC_DEMO_MAIN, "cudaStreamSynchronize", LAC_DEMO_BLAME_SYNC, sim->t + CALL_NS);
    go(sim, LAC_DEMO_BLAME_HOST, 2000);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::_local_scalar_dense", begin_ns + 3000,
         sim->t)
        ->external_id = sim->external_id;
    go(sim, LAC_DEMO_BLAME_HOST, 1000);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::item", begin_ns, sim->t)->external_id =
        outer_id;
    go(sim, LAC_DEMO_BLAME_HOST, s->read_host_ns);
}

/* cudaFree waits for the device, cudaMalloc does not. */
static void allocate(struct sim *sim, int thread)
{
    int64_t device_ns = later(sim->compute.tail_end_ns, sim->copy.tail_end_ns);
    device_ns = later(device_ns, sim->comm.tail_end_ns);
    call(sim, thread, "cudaFree", LAC_DEMO_BLAME_ALLOCATOR,
         later(sim->t, device_ns) + sim->s->alloc_ns);
    go(sim, LAC_DEMO_BLAME_LAUNCH, 3000);
    call(sim, thread, "cudaMalloc", LAC_DEMO_BLAME_ALLOCATOR, sim->t + sim->s->alloc_ns);
    go(sim, LAC_DEMO_BLAME_LAUNCH, 2000);
}

/* A bucket of gradients: on a stream of its own, behind what was launched so far. */
static void reduce_bucket(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    struct lac_demo_loop_run *run = sim->run;
    uint32_t k = run->joined_count;
    if (k == sim->joined_capacity) {
        return;
    }
    go(sim, LAC_DEMO_BLAME_LAUNCH, 8000);
    call(sim, LAC_DEMO_AUTOGRAD, "cudaEventRecord", LAC_DEMO_BLAME_LAUNCH, sim->t + CALL_NS / 2);
    call(sim, LAC_DEMO_AUTOGRAD, "cudaStreamWaitEvent", LAC_DEMO_BLAME_LAUNCH,
         sim->t + CALL_NS / 2);
    sim->comm.not_before_ns = sim->compute.tail_end_ns;
    int64_t transfer_ns =
        s->comm_ns / s->bucket_count / 1000 * lac_demo_draw(s->seed, FOR_COMM_TIME, k, 960, 1040);
    struct lac_demo_launch l = lac_demo_stream_launch(&sim->comm, sim->t, s->launch_ns,
                                                      s->latency_ns, s->kernel_pause_ns, 0);
    run->joined_ns[run->joined_count++] = l.start_ns;
    int64_t all_there_ns =
        sim->others_ns == NULL ? l.start_ns : later(l.start_ns, sim->others_ns[k]);
    l.end_ns = sim->comm.tail_end_ns = all_there_ns + transfer_ns;
    static const struct lac_demo_kernel ALL_REDUCE = {
        .name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        .grid = {16, 1, 1},
        .block = 512,
        .registers = 96};
    struct lac_demo_event *e = emit(sim, LAC_DEMO_COMM_STREAM, LAC_DEMO_EVENT_KERNEL,
                                    ALL_REDUCE.name, l.start_ns, l.end_ns);
    e->kernel = &ALL_REDUCE;
    e->correlation = sim->correlation + 1;
    e->external_id = sim->external_id;
    call(sim, LAC_DEMO_AUTOGRAD, "cudaLaunchKernelExC", LAC_DEMO_BLAME_LAUNCH, l.api_end_ns);
    go(sim, LAC_DEMO_BLAME_LAUNCH, 4000);
}

static void load_module(struct sim *sim, int thread)
{
    int64_t ns = sim->s->module_ns / 1000 *
                 lac_demo_draw(sim->seed, FOR_MODULE, (uint64_t)sim->step, 850, 1150);
    call(sim, thread, "cuModuleLoadData", LAC_DEMO_BLAME_MODULE, sim->t + ns);
    go(sim, LAC_DEMO_BLAME_LAUNCH, 2000);
}

/* Whether the n-th of `count` things, spread evenly over `of` operators, is due at operator i. */
static bool is_due(int64_t i, int64_t count, int64_t of)
{
    return count > 0 && of > 0 && (i + 1) * count / of > i * count / of;
}

static void run_phase(struct sim *sim, enum lac_demo_phase phase)
{
    const struct lac_demo_scenario *s = sim->s;
    const struct lac_demo_network *net = &sim->run->network;
    int thread = phase == LAC_DEMO_BACKWARD ? LAC_DEMO_AUTOGRAD : LAC_DEMO_MAIN;
    int64_t of = 0;
    int64_t n = 0;
    for (uint32_t i = 0; i < net->op_count; i++) {
        of += net->ops[i].phase == phase ? 1 : 0;
    }
    bool loads =
        s->module_every > 0 && sim->step % s->module_every == 0 && phase == LAC_DEMO_FORWARD;
    for (uint32_t i = 0; i < net->op_count; i++) {
        if (net->ops[i].phase != phase) {
            continue;
        }
        run_op(sim, &net->ops[i]);
        if (loads && n == of / 3) {
            load_module(sim, thread);
        }
        if (phase == LAC_DEMO_FORWARD && s->reads == LAC_DEMO_READS_FORWARD &&
            is_due(n, s->read_count, of)) {
            read_value(sim);
        }
        if (phase == LAC_DEMO_FORWARD && is_due(n, s->alloc_count, of)) {
            allocate(sim, thread);
        }
        if (phase == LAC_DEMO_BACKWARD && is_due(n, s->bucket_count, of)) {
            reduce_bucket(sim);
        }
        n++;
    }
}

/* All kernels of the step with one call. */
static void launch_graph(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    const struct lac_demo_network *net = &sim->run->network;
    go(sim, LAC_DEMO_BLAME_LAUNCH, 20000);
    int64_t call_end_ns = sim->t;
    for (uint32_t i = 0; i < net->kernel_count; i++) {
        const struct lac_demo_kernel *k = &net->kernels[i];
        struct lac_demo_launch l = {0};
        if (i == 0) {
            l = lac_demo_stream_launch(&sim->compute, sim->t, GRAPH_LAUNCH_NS, s->latency_ns,
                                       s->kernel_pause_ns, kernel_ns(sim, k));
            call_end_ns = l.api_end_ns;
        } else {
            l.start_ns = sim->compute.tail_end_ns + s->kernel_pause_ns;
            l.end_ns = sim->compute.tail_end_ns = l.start_ns + kernel_ns(sim, k);
        }
        struct lac_demo_event *e = emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_KERNEL,
                                        k->name, l.start_ns, l.end_ns);
        e->kernel = k;
        e->correlation = sim->correlation + 1;
        e->graph_node = i + 1;
    }
    call(sim, LAC_DEMO_MAIN, "cudaGraphLaunch", LAC_DEMO_BLAME_LAUNCH, call_end_ns);
    go(sim, LAC_DEMO_BLAME_LAUNCH, 8000);
}

static void train(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    if (s->copies == LAC_DEMO_COPIES_AHEAD) {
        go(sim, LAC_DEMO_BLAME_HOST, 1000);
    }
    if (s->has_graph) {
        launch_graph(sim);
        return;
    }
    run_phase(sim, LAC_DEMO_FORWARD);
    if (s->names == LAC_DEMO_NAMES_STEPS || s->names == LAC_DEMO_NAMES_OPTIMIZER) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "Optimizer.zero_grad#AdamW.zero_grad",
             sim->t, sim->t + ZERO_GRAD_NS);
    }
    go(sim, LAC_DEMO_BLAME_LAUNCH, ZERO_GRAD_NS + HAND_OVER_NS);
    run_phase(sim, LAC_DEMO_BACKWARD);
    go(sim, LAC_DEMO_BLAME_LAUNCH, HAND_OVER_NS);
    int64_t begin_ns = sim->t;
    if (s->bucket_count > 0) { /* hidden: behind the next step's computing, not for ever */
        call(sim, LAC_DEMO_MAIN, "cudaStreamWaitEvent", LAC_DEMO_BLAME_LAUNCH,
             sim->t + CALL_NS / 2);
        int64_t reduced_ns = s->is_comm_hidden ? sim->last_comm_ns : sim->comm.tail_end_ns;
        sim->compute.not_before_ns = later(sim->compute.not_before_ns, reduced_ns);
        sim->last_comm_ns = sim->comm.tail_end_ns;
    }
    run_phase(sim, LAC_DEMO_OPTIMIZER);
    if (s->names == LAC_DEMO_NAMES_STEPS || s->names == LAC_DEMO_NAMES_OPTIMIZER) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "Optimizer.step#AdamW.step", begin_ns,
             sim->t);
    }
}

static void read_losses(struct sim *sim)
{
    if (sim->s->reads == LAC_DEMO_READS_LAST) {
        read_value(sim);
    } else if (sim->s->reads == LAC_DEMO_READS_LATE) {
        int64_t known_ns = sim->last_loss_ns;
        sim->last_loss_ns = sim->compute.tail_end_ns;
        call(sim, LAC_DEMO_MAIN, "cudaEventSynchronize", LAC_DEMO_BLAME_SYNC,
             later(sim->t + CALL_NS, known_ns + SYNC_RETURN_NS));
        go(sim, LAC_DEMO_BLAME_HOST, sim->s->read_host_ns);
    }
}

static bool is_checkpoint(const struct lac_demo_scenario *s, int32_t step)
{
    return s->checkpoint_every > 0 && step % s->checkpoint_every == s->checkpoint_every - 1;
}

/* The state to the host, where it arrives before the call returns. */
static void copy_state(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    struct lac_demo_launch l =
        lac_demo_stream_launch(&sim->compute, sim->t, s->launch_ns, s->latency_ns,
                               s->kernel_pause_ns, s->state_bytes / 6); /* 6 GB/s */
    struct lac_demo_event *e =
        emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_COPY, "", l.start_ns, l.end_ns);
    e->bytes = s->state_bytes;
    e->to_host = true;
    e->correlation = sim->correlation + 1;
    call(sim, LAC_DEMO_MAIN, "cudaMemcpyAsync", LAC_DEMO_BLAME_SYNC, l.end_ns + CALL_NS);
}

/* A forward pass over batches of another loader, then a value of them all. */
static void validate(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    int64_t begin_ns = sim->t;
    for (int32_t i = 0; i < s->validate_batches; i++) {
        short_wait(sim, i, 40000);
        run_phase(sim, LAC_DEMO_FORWARD);
    }
    short_wait(sim, s->validate_batches, 8000);
    read_value(sim);
    if (!s->has_no_phase_name) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "validation", begin_ns, sim->t);
    }
    was_at(sim, "validation", begin_ns);
}

/* A shape that was not compiled for. */
static void recompile(struct sim *sim)
{
    int64_t begin_ns = sim->t;
    go(sim, LAC_DEMO_BLAME_MODULE, sim->s->recompile_ns);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "_compile.compile_inner (dynamo_timed)",
         begin_ns, sim->t);
    was_at(sim, "recompilation", begin_ns);
}

static bool is_every(int32_t every, int32_t step)
{
    return every > 0 && step % every == every - 1;
}

/* The state to the host, then to a file. */
static void write_checkpoint(struct sim *sim)
{
    int64_t begin_ns = sim->t;
    int64_t device_ns = later(sim->compute.tail_end_ns, sim->comm.tail_end_ns);
    call(sim, LAC_DEMO_MAIN, "cudaDeviceSynchronize", LAC_DEMO_BLAME_SYNC,
         later(sim->t, device_ns) + SYNC_RETURN_NS);
    if (sim->s->state_bytes > 0) {
        copy_state(sim);
    }
    go(sim, LAC_DEMO_BLAME_HOST, sim->s->checkpoint_ns);
    if (!sim->s->has_no_phase_name) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "checkpoint", begin_ns, sim->t);
    }
    was_at(sim, "checkpoint", begin_ns);
}

static void run_step(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    int64_t begin_ns = sim->t;
    if (sim->step == s->warmup_steps) {
        sim->device_from_ns = sim->compute.tail_end_ns;
    }
    if (sim->step >= s->warmup_steps) {
        sim->run->step_start_ns[sim->step - s->warmup_steps] = begin_ns;
    }
    go(sim, LAC_DEMO_BLAME_HOST, jittered(sim, 12000));
    if (sim->rank == s->late_rank && s->late_by == LAC_DEMO_LATE_BY_HOST) {
        go(sim, LAC_DEMO_BLAME_HOST, s->late_ns);
    }
    if (s->turn_ns > 0 && sim->step % s->ranks == sim->rank) {
        go(sim, LAC_DEMO_BLAME_HOST, s->turn_ns);
    }
    if (s->copies == LAC_DEMO_COPIES_AHEAD) {
        call(sim, LAC_DEMO_MAIN, "cudaStreamWaitEvent", LAC_DEMO_BLAME_HOST, sim->t + CALL_NS);
        sim->compute.not_before_ns = sim->copied_ns;
        take_batch(sim, sim->step + 1);
        copy_batch(sim);
    } else {
        take_batch(sim, sim->step);
        copy_batch(sim);
    }
    if (is_every(s->recompile_every, sim->step)) {
        recompile(sim);
    }
    train(sim);
    read_losses(sim);
    if (is_every(s->validate_every, sim->step)) {
        validate(sim);
    }
    if (is_checkpoint(s, sim->step)) {
        write_checkpoint(sim);
    }
    go(sim, LAC_DEMO_BLAME_HOST, jittered(sim, s->tail_ns));
    if (s->names == LAC_DEMO_NAMES_STEPS) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_STEP, "ProfilerStep#", begin_ns, sim->t)->number =
            sim->step;
    }
    sim->step++;
}

/* ---- the whole ---- */

/* A checkpoint empties the queue, so the step behind it is the shorter: not the steps that write
 * one are left out, but the writing. */
static void measure_steps(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    struct lac_demo_loop_run *run = sim->run;
    int64_t sum_ns = run->step_start_ns[s->recorded_steps] - run->step_start_ns[0];
    int64_t device_ns = sim->compute.tail_end_ns - sim->device_from_ns;
    for (int32_t i = 0; i < s->recorded_steps; i++) {
        int64_t written_ns = is_checkpoint(s, i + s->warmup_steps) ? s->checkpoint_ns : 0;
        sum_ns -= written_ns;
        device_ns -= written_ns;
    }
    run->mean_ns = sum_ns / s->recorded_steps;
    run->pace_ns = later(run->mean_ns, device_ns / s->recorded_steps);
    run->fetch_mean_ns = sim->fetch_count > 0 ? sim->fetch_sum_ns / sim->fetch_count : s->fetch_ns;
}

static void keep_window(struct lac_demo_loop_run *run)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->start_ns >= run->window_start_ns && e->start_ns + e->dur_ns <= run->window_end_ns) {
            run->events[kept++] = *e;
        }
    }
    run->event_count = kept;
}

static enum lac_status prepare(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    struct lac_demo_loop_run *run = sim->run;
    int64_t steps = (int64_t)s->warmup_steps + s->recorded_steps;
    sim->batch_count = steps + 2 + (int64_t)s->workers * s->prefetch_factor;
    sim->joined_capacity = (uint32_t)(steps * s->bucket_count);
    sim->fetched_ns = calloc((size_t)sim->batch_count, sizeof(*sim->fetched_ns));
    sim->fetch_end_ns = calloc((size_t)sim->batch_count, sizeof(*sim->fetch_end_ns));
    sim->taken_ns = calloc((size_t)sim->batch_count, sizeof(*sim->taken_ns));
    run->step_start_ns = calloc((size_t)s->recorded_steps + 1, sizeof(*run->step_start_ns));
    run->joined_ns = calloc((size_t)sim->joined_capacity + 1, sizeof(*run->joined_ns));
    if (sim->fetched_ns == NULL || sim->fetch_end_ns == NULL || sim->taken_ns == NULL ||
        run->step_start_ns == NULL || run->joined_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = lac_demo_stream_init(&sim->compute, (uint64_t)s->queue_max);
    if (status == LAC_OK) {
        status = lac_demo_stream_init(&sim->copy, (uint64_t)s->queue_max);
    }
    if (status == LAC_OK) {
        status = lac_demo_stream_init(&sim->comm, (uint64_t)s->queue_max);
    }
    return status == LAC_OK ? lac_demo_plan_build(s, &run->network) : status;
}

static void run_all(struct sim *sim)
{
    const struct lac_demo_scenario *s = sim->s;
    int64_t steps = (int64_t)s->warmup_steps + s->recorded_steps;
    if (s->copies == LAC_DEMO_COPIES_AHEAD) {
        take_batch(sim, 0);
        copy_batch(sim);
    }
    while (sim->step < steps && sim->status == LAC_OK) {
        run_step(sim);
    }
    sim->run->window_start_ns = sim->run->step_start_ns[0];
    sim->run->step_start_ns[s->recorded_steps] = sim->t;
    int64_t device_ns = later(sim->compute.tail_end_ns, sim->copy.tail_end_ns);
    device_ns = later(device_ns, sim->comm.tail_end_ns);
    sim->external_id++;
    call(sim, LAC_DEMO_MAIN, "cudaDeviceSynchronize", LAC_DEMO_BLAME_HOST,
         later(sim->t + CALL_NS, device_ns + SYNC_RETURN_NS));
    sim->run->window_end_ns = sim->t;
    /* workers go on with what they were asked for */
    bool has_epochs = s->epoch_batches > 0; /* nobody asks for the next one */
    while (s->workers > 0 && sim->fetched < sim->batch_count &&
           !(has_epochs && sim->fetched % s->epoch_batches == 0) &&
           sim->fetched - (int64_t)s->workers * s->prefetch_factor < steps) {
        fetch_next(sim);
    }
    measure_steps(sim);
}

enum lac_status lac_demo_loop_run(const struct lac_demo_scenario *scenario, int32_t rank,
                                  const int64_t *others_ns, bool is_quiet,
                                  struct lac_demo_loop_run *ret_run)
{
    if (scenario->recorded_steps < 1 || scenario->warmup_steps < 0 || scenario->workers < 0 ||
        scenario->workers > LAC_DEMO_LOOP_WORKERS_MAX || scenario->prefetch_factor < 1 ||
        scenario->cores < 1 || scenario->kernels < 20 || scenario->kernels > 700 ||
        scenario->queue_max < 1 || scenario->bucket_count < 0 || scenario->read_count < 0) {
        return LAC_ERR_MISUSE;
    }
    struct lac_demo_loop_run run = {0};
    struct sim *sim = calloc(1, sizeof(*sim));
    if (sim == NULL) {
        return LAC_ERR_NOMEM;
    }
    sim->s = scenario;
    sim->run = &run;
    sim->rank = rank;
    sim->others_ns = others_ns;
    sim->is_quiet = is_quiet;
    sim->seed = scenario->seed + (uint64_t)rank * UINT64_C(0x9e3779b97f4a7c15);
    sim->status = prepare(sim);
    if (sim->status == LAC_OK) {
        run_all(sim);
    }
    if (sim->status == LAC_OK && !is_quiet) {
        keep_window(&run);
        sim->status = lac_demo_measure_idle(&run, &sim->line);
    }
    enum lac_status status = sim->status;
    lac_demo_stream_done(&sim->compute);
    lac_demo_stream_done(&sim->copy);
    lac_demo_stream_done(&sim->comm);
    lac_demo_line_done(&sim->line);
    free(sim->fetched_ns);
    free(sim->fetch_end_ns);
    free(sim->taken_ns);
    free(sim);
    if (status != LAC_OK) {
        lac_demo_loop_done(&run);
        return status;
    }
    *ret_run = run;
    return LAC_OK;
}

void lac_demo_loop_done(struct lac_demo_loop_run *run)
{
    free(run->events);
    free(run->step_start_ns);
    free(run->joined_ns);
    free(run->besides);
    lac_demo_network_done(&run->network);
    *run = (struct lac_demo_loop_run){0};
}
