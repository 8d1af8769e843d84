#include "server/demo/pipeline.h"

#include "analysis/model/status.h"
#include "server/demo/event_queue.h"
#include "server/demo/gpu_stream.h"
#include "server/demo/network.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Small costs of the host, in ns. They are real ones rounded, and far below what decides a step. */
enum {
    PIPE_NS = 30000,       /* a batch through a queue between processes */
    UNPACK_NS = 90000,     /* rebuilding the tensors of a batch from shared memory */
    PIN_UNPACK_NS = 20000, /* the same behind a pin thread */
    NEXT_ENTER_NS = 6000,  /* from the call of __next__ to waiting on the queue */
    CALL_NS = 5000,        /* a driver call that neither waits nor launches */
    SYNC_RETURN_NS = 6000, /* end of the work to return of the call that waited for it */
    STEP_TAIL_NS = 25000,  /* metrics and profiler bookkeeping */
    PHASE_NS = 15000,      /* between the phases of a step */
    LABEL_COPY_NS = 1600,
    SCALAR_COPY_NS = 1500,
};

enum what { WORKER_FREE, WORKER_DONE, INDEX_FOR, DATA_READY, MAIN_STEP, MAIN_NEXT };

struct worker {
    int64_t asked;     /* batches asked of it so far */
    int64_t taken;     /* batches it has begun */
    int64_t start_ns;  /* of the fetch in progress */
    int64_t cpu_ns[4]; /* of its parts */
    int64_t dur_ns[4];
    bool is_started;
    bool is_busy;
};

struct sim {
    const struct lac_demo_pipeline *p;
    struct lac_demo_run *run;
    struct lac_demo_queue queue;
    struct lac_demo_stream compute;
    struct lac_demo_stream copy;
    struct worker workers[LAC_DEMO_WORKERS_MAX];
    bool *is_ready; /* by batch: in the data queue, pinned where that is asked */
    int64_t batch_count;
    int64_t pin_free_ns;
    uint64_t random;
    uint32_t correlation;
    uint32_t external_id;
    int32_t step;         /* the one main is in */
    int32_t record_from;  /* steps before it can leave nothing in the window */
    int64_t batch;        /* the one main waits for */
    bool is_main_waiting; /* in __next__ */
    int64_t next_start_ns;
    int64_t step_start_ns;
    int64_t copied_ns[2]; /* ends of the copies of the batch to be computed, by prefetch */
    int64_t waited_ns;    /* of the step: in queues, blocking calls and full launch queues */
    int64_t host_ns;      /* recorded steps without that */
    int64_t end_ns;       /* main is through */
    bool is_over;
    enum lac_status status;
};

void lac_demo_pipeline_default(struct lac_demo_pipeline *pipeline)
{
    *pipeline = (struct lac_demo_pipeline){
        .seed = 1,
        .warmup_steps = 60,
        .recorded_steps = 30,
        .batch_size = 256,
        .batch_bytes = 154140672,
        .workers = 2,
        .prefetch_factor = 2,
        .fetch_ns = 1500000000,
        .pin_ns = 12000000,
        .copy_mode = LAC_DEMO_COPY_PAGEABLE,
        .copy_pageable_nchw_ns = 21000000,
        .copy_pageable_nhwc_ns = 39000000,
        .copy_pinned_ns = 15000000,
        .compute_ns = 230000000,
        .layout_ns = 120000000,
        .op_ns = 14000,
        .launch_ns = 6200,
        .latency_ns = 4300,
        .kernel_pause_ns = 900,
        .queue_max = 1024,
    };
}

/* splitmix64: enough for a jitter, and the same everywhere */
static uint64_t draw(struct sim *sim)
{
    uint64_t z = sim->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static struct lac_demo_event *emit(struct sim *sim, int thread, enum lac_demo_event_kind kind,
                                   const char *name, int64_t start_ns, int64_t end_ns)
{
    static struct lac_demo_event nowhere;
    struct lac_demo_run *run = sim->run;
    if (sim->step < sim->record_from) {
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

static void plan(struct sim *sim, int64_t at_ns, enum what what, int64_t which)
{
    if (sim->status == LAC_OK) {
        sim->status = lac_demo_queue_add(&sim->queue, at_ns, (int32_t)what, which);
    }
}

/* ---- workers and pin thread ---- */

/* A worker takes the next index it was given, if it is free. Batch b belongs to worker b mod n. */
static void worker_try(struct sim *sim, int64_t k, int64_t now_ns)
{
    static const int32_t PART_PERMILLE[4] = {80, 550, 320, 50};
    static const int32_t CPU_PERMILLE[4] = {350, 990, 985, 970};
    struct worker *w = &sim->workers[k];
    if (!w->is_started || w->is_busy || w->taken == w->asked) {
        return;
    }
    int64_t fetch_ns = sim->p->fetch_ns;
    if (sim->p->jitter_ppm > 0) {
        int64_t width = fetch_ns / 1000000 * sim->p->jitter_ppm;
        fetch_ns += (int64_t)(draw(sim) % (uint64_t)(2 * width + 1)) - width;
    }
    int64_t left_ns = fetch_ns;
    for (int i = 0; i < 4; i++) {
        w->dur_ns[i] = i == 3 ? left_ns : fetch_ns / 1000 * PART_PERMILLE[i];
        w->cpu_ns[i] = w->dur_ns[i] / 1000 * CPU_PERMILLE[i];
        left_ns -= w->dur_ns[i];
    }
    w->is_busy = true;
    w->start_ns = now_ns;
    plan(sim, now_ns + fetch_ns, WORKER_DONE, k);
}

/* A loader range; worker and CPU time are the caller's to set. */
static struct lac_demo_event *loader_event(struct sim *sim, int thread, const char *name,
                                           int64_t start_ns, int64_t end_ns, int64_t batch)
{
    struct lac_demo_event *e = emit(sim, thread, LAC_DEMO_EVENT_LOADER, name, start_ns, end_ns);
    e->number = (int32_t)batch;
    return e;
}

static void worker_done(struct sim *sim, int64_t k, int64_t now_ns)
{
    static const char *const PART[4] = {"loader.read", "loader.decode", "loader.transform",
                                        "loader.collate"};
    struct worker *w = &sim->workers[k];
    int thread = LAC_DEMO_WORKER + (int)k;
    int64_t batch = w->taken * sim->p->workers + k;
    int64_t cpu_ns = 0;
    int64_t at_ns = w->start_ns;
    for (int i = 0; i < 4; i++) {
        cpu_ns += w->cpu_ns[i];
    }
    struct lac_demo_event *e =
        loader_event(sim, thread, "loader.fetch", w->start_ns, now_ns, batch);
    e->worker = (int32_t)k;
    e->cpu_ns = cpu_ns;
    for (int i = 0; i < 4; i++) {
        e = loader_event(sim, thread, PART[i], at_ns, at_ns + w->dur_ns[i], batch);
        e->worker = (int32_t)k;
        e->cpu_ns = w->cpu_ns[i];
        at_ns += w->dur_ns[i];
    }
    w->taken++;
    w->is_busy = false;
    int64_t arrived_ns = now_ns + PIPE_NS;
    if (sim->p->copy_mode != LAC_DEMO_COPY_PAGEABLE) {
        int64_t start_ns = arrived_ns > sim->pin_free_ns ? arrived_ns : sim->pin_free_ns;
        sim->pin_free_ns = start_ns + sim->p->pin_ns;
        loader_event(sim, LAC_DEMO_PIN, "loader.pin", start_ns, sim->pin_free_ns, batch)->cpu_ns =
            sim->p->pin_ns;
        arrived_ns = sim->pin_free_ns;
    }
    plan(sim, arrived_ns, DATA_READY, batch);
    worker_try(sim, k, now_ns);
}

/* ---- main: device work ---- */

static uint32_t next_correlation(struct sim *sim)
{
    return sim->correlation += 1;
}

static void emit_api(struct sim *sim, int thread, const char *name, int64_t start_ns,
                     int64_t end_ns, uint32_t correlation)
{
    struct lac_demo_event *e = emit(sim, thread, LAC_DEMO_EVENT_API, name, start_ns, end_ns);
    e->correlation = correlation;
    e->external_id = sim->external_id;
}

/* Launch the kernels of one operator at `at_ns`; returns when the operator is done on the host. */
static int64_t run_op(struct sim *sim, const struct lac_demo_op *op, int64_t at_ns)
{
    const struct lac_demo_pipeline *p = sim->p;
    int thread = op->phase == LAC_DEMO_BACKWARD ? LAC_DEMO_AUTOGRAD : LAC_DEMO_MAIN;
    int64_t t = at_ns + p->op_ns / 2;
    int64_t inner_ns = t;
    uint32_t outer_id = ++sim->external_id;
    if (op->inner != NULL) {
        sim->external_id++;
    }
    for (uint32_t i = 0; i < op->kernel_count; i++) {
        const struct lac_demo_kernel *k = &sim->run->network.kernels[op->kernel_first + i];
        t += p->op_ns / 4;
        struct lac_demo_launch l = lac_demo_stream_launch(
            &sim->compute, t, p->launch_ns, p->latency_ns, p->kernel_pause_ns, k->dur_ns);
        uint32_t correlation = next_correlation(sim);
        emit_api(sim, thread, "cudaLaunchKernel", t, l.api_end_ns, correlation);
        struct lac_demo_event *e = emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_KERNEL,
                                        k->name, l.start_ns, l.end_ns);
        e->kernel = k;
        e->correlation = correlation;
        e->external_id = sim->external_id;
        sim->waited_ns += l.blocked_ns;
        t = l.api_end_ns;
    }
    t += p->op_ns / 8;
    if (op->inner != NULL) {
        emit(sim, thread, LAC_DEMO_EVENT_OP, op->inner, inner_ns, t)->external_id =
            sim->external_id;
        t += p->op_ns / 8;
    }
    emit(sim, thread, LAC_DEMO_EVENT_OP, op->name, at_ns, t)->external_id = outer_id;
    return t;
}

/* All operators of one phase, with a range around those of one module. */
static int64_t run_phase(struct sim *sim, enum lac_demo_phase phase, int64_t at_ns)
{
    const struct lac_demo_network *net = &sim->run->network;
    const char *module = NULL;
    int64_t module_ns = 0;
    int64_t t = at_ns + PHASE_NS;
    for (uint32_t i = 0; i < net->op_count; i++) {
        const struct lac_demo_op *op = &net->ops[i];
        if (op->phase != phase) {
            continue;
        }
        if (op->module != module) {
            if (module != NULL) {
                emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, module, module_ns, t);
            }
            t += 3000;
            module = op->module;
            module_ns = t;
        }
        t = run_op(sim, op, t) + 1500;
    }
    if (module != NULL) {
        emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, module, module_ns, t);
        t += 3000;
    }
    return t;
}

/* One copy of a tensor inside aten::to. Returns when the host goes on; *ret_end_ns is the end of
 * the copy on the device. */
static int64_t copy_tensor(struct sim *sim, int64_t at_ns, int64_t bytes, int64_t dur_ns,
                           int64_t *ret_end_ns)
{
    const struct lac_demo_pipeline *p = sim->p;
    bool is_prefetch = p->copy_mode == LAC_DEMO_COPY_PREFETCH;
    bool is_pinned = p->copy_mode != LAC_DEMO_COPY_PAGEABLE;
    struct lac_demo_stream *stream = is_prefetch ? &sim->copy : &sim->compute;
    uint32_t outer_id = ++sim->external_id;
    uint32_t correlation = next_correlation(sim);
    int64_t t = at_ns + 9000;
    sim->external_id++;
    struct lac_demo_launch l =
        lac_demo_stream_launch(stream, t, p->launch_ns, p->latency_ns, p->kernel_pause_ns, dur_ns);
    /* from pageable memory the driver stages the bytes: it waits for the stream, then copies */
    int64_t api_end_ns = is_pinned ? l.api_end_ns : l.end_ns + CALL_NS;
    emit_api(sim, LAC_DEMO_MAIN, "cudaMemcpyAsync", t, api_end_ns, correlation);
    struct lac_demo_event *e =
        emit(sim, is_prefetch ? LAC_DEMO_COPY_STREAM : LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_COPY,
             "", l.start_ns, l.end_ns);
    e->bytes = bytes;
    e->from_pinned = is_pinned;
    e->correlation = correlation;
    e->external_id = sim->external_id;
    sim->waited_ns += api_end_ns - t - p->launch_ns;
    t = api_end_ns;
    if (!is_prefetch) {
        int64_t call_ns = t + 1500;
        int64_t done_ns = l.end_ns + SYNC_RETURN_NS;
        t = done_ns > call_ns + CALL_NS ? done_ns : call_ns + CALL_NS;
        emit_api(sim, LAC_DEMO_MAIN, "cudaStreamSynchronize", call_ns, t, next_correlation(sim));
        sim->waited_ns += t - call_ns - CALL_NS;
    }
    t += 4000;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::copy_", at_ns + 4000, t)->external_id =
        sim->external_id;
    t += 3000;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::to", at_ns, t)->external_id = outer_id;
    *ret_end_ns = l.end_ns;
    return t + 4000;
}

static int64_t copy_batch(struct sim *sim, int64_t at_ns)
{
    const struct lac_demo_pipeline *p = sim->p;
    int64_t dur_ns = p->copy_mode != LAC_DEMO_COPY_PAGEABLE ? p->copy_pinned_ns
                     : p->channels_last                     ? p->copy_pageable_nhwc_ns
                                                            : p->copy_pageable_nchw_ns;
    int64_t t = copy_tensor(sim, at_ns, p->batch_bytes, dur_ns, &sim->copied_ns[0]);
    t = copy_tensor(sim, t, (int64_t)p->batch_size * 8, LABEL_COPY_NS, &sim->copied_ns[1]);
    if (p->copy_mode == LAC_DEMO_COPY_PREFETCH) {
        emit_api(sim, LAC_DEMO_MAIN, "cudaEventRecord", t, t + CALL_NS, next_correlation(sim));
        t += CALL_NS + 2000;
    }
    return t;
}

/* loss.item(): four bytes to the host, which waits for everything before them */
static int64_t read_loss(struct sim *sim, int64_t at_ns)
{
    uint32_t outer_id = ++sim->external_id;
    uint32_t correlation = next_correlation(sim);
    int64_t t = at_ns + 6000;
    sim->external_id++;
    struct lac_demo_launch l =
        lac_demo_stream_launch(&sim->compute, t, sim->p->launch_ns, sim->p->latency_ns,
                               sim->p->kernel_pause_ns, SCALAR_COPY_NS);
    emit_api(sim, LAC_DEMO_MAIN, "cudaMemcpyAsync", t, l.end_ns + CALL_NS, correlation);
    struct lac_demo_event *e =
        emit(sim, LAC_DEMO_COMPUTE_STREAM, LAC_DEMO_EVENT_COPY, "", l.start_ns, l.end_ns);
    e->bytes = 4;
    e->to_host = true;
    e->correlation = correlation;
    e->external_id = sim->external_id;
    sim->waited_ns += l.end_ns - t;
    t = l.end_ns + CALL_NS + 1500;
    emit_api(sim, LAC_DEMO_MAIN, "cudaStreamSynchronize", t, t + CALL_NS, next_correlation(sim));
    t += CALL_NS + 2000;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::_local_scalar_dense", at_ns + 3000, t)
        ->external_id = sim->external_id;
    t += 1000;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_OP, "aten::item", at_ns, t)->external_id = outer_id;
    return t + 1000;
}

static int64_t train(struct sim *sim, int64_t at_ns)
{
    int64_t t = at_ns;
    if (sim->p->copy_mode == LAC_DEMO_COPY_PREFETCH) {
        emit_api(sim, LAC_DEMO_MAIN, "cudaStreamWaitEvent", t, t + CALL_NS, next_correlation(sim));
        sim->compute.not_before_ns = sim->copied_ns[1];
        t += CALL_NS;
    }
    int64_t begin_ns = t;
    t = run_phase(sim, LAC_DEMO_FORWARD, t);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "forward", begin_ns, t);
    t += PHASE_NS;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "Optimizer.zero_grad#SGD.zero_grad", t,
         t + 40000);
    begin_ns = t += 40000 + PHASE_NS;
    t = run_phase(sim, LAC_DEMO_BACKWARD, t) + PHASE_NS;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "backward", begin_ns, t);
    begin_ns = t += PHASE_NS;
    t = run_phase(sim, LAC_DEMO_OPTIMIZER, t);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE, "Optimizer.step#SGD.step", begin_ns, t);
    t += PHASE_NS;
    return sim->p->loss_item ? read_loss(sim, t) : t;
}

/* ---- main: the loop ---- */

static void next_begin(struct sim *sim, int64_t batch, int64_t at_ns)
{
    sim->batch = batch;
    sim->next_start_ns = at_ns;
    plan(sim, at_ns + NEXT_ENTER_NS, MAIN_NEXT, batch);
}

static void step_end(struct sim *sim, int64_t at_ns)
{
    const struct lac_demo_pipeline *p = sim->p;
    int64_t t = at_ns + STEP_TAIL_NS;
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_STEP, "ProfilerStep#", sim->step_start_ns, t)->number =
        sim->step;
    if (sim->step >= p->warmup_steps) {
        sim->host_ns += t - sim->step_start_ns - sim->waited_ns;
        sim->run->step_start_ns[sim->step - p->warmup_steps + 1] = t;
    }
    sim->waited_ns = 0;
    sim->step++;
    if (sim->step < p->warmup_steps + p->recorded_steps) {
        plan(sim, t, MAIN_STEP, sim->step);
        return;
    }
    int64_t tail_ns = sim->compute.tail_end_ns > sim->copy.tail_end_ns ? sim->compute.tail_end_ns
                                                                       : sim->copy.tail_end_ns;
    int64_t call_ns = t + PHASE_NS;
    int64_t end_ns = (tail_ns > call_ns ? tail_ns : call_ns) + SYNC_RETURN_NS;
    sim->external_id++;
    emit_api(sim, LAC_DEMO_MAIN, "cudaDeviceSynchronize", call_ns, end_ns, next_correlation(sim));
    sim->end_ns = end_ns;
    sim->is_over = true;
}

static void step_begin(struct sim *sim, int64_t now_ns)
{
    sim->step_start_ns = now_ns;
    if (sim->step == sim->p->warmup_steps) {
        sim->run->window_start_ns = now_ns;
        sim->run->step_start_ns[0] = now_ns;
    }
    if (sim->p->copy_mode == LAC_DEMO_COPY_PREFETCH) {
        /* the batch is on its way already; the next one is fetched when this one is launched */
        next_begin(sim, sim->step + 1, train(sim, now_ns + PHASE_NS));
    } else {
        next_begin(sim, sim->step, now_ns + PHASE_NS);
    }
}

/* The batch that main waits for is in its queue. */
static void received(struct sim *sim, int64_t now_ns)
{
    const struct lac_demo_pipeline *p = sim->p;
    int64_t waited_from_ns = sim->next_start_ns + NEXT_ENTER_NS;
    int64_t worker = sim->batch % p->workers;
    bool is_pinned = p->copy_mode != LAC_DEMO_COPY_PAGEABLE;
    sim->is_main_waiting = false;
    sim->waited_ns += now_ns - waited_from_ns;
    loader_event(sim, LAC_DEMO_MAIN, "loader.wait", waited_from_ns, now_ns + 2000, sim->batch)
        ->worker = (int32_t)worker;
    plan(sim, now_ns + 10000, INDEX_FOR, worker);
    int64_t t = now_ns + (is_pinned ? PIN_UNPACK_NS : UNPACK_NS);
    emit(sim, LAC_DEMO_MAIN, LAC_DEMO_EVENT_RANGE,
         "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", sim->next_start_ns, t);
    t = copy_batch(sim, t + PHASE_NS);
    if (p->copy_mode != LAC_DEMO_COPY_PREFETCH) {
        step_end(sim, train(sim, t));
    } else if (sim->batch == 0) {
        plan(sim, t, MAIN_STEP, 0); /* the prefetcher's first batch, before the loop */
    } else {
        step_end(sim, t);
    }
}

static void handle(struct sim *sim, const struct lac_demo_entry *entry)
{
    switch ((enum what)entry->what) {
    case WORKER_FREE:
        sim->workers[entry->which].is_started = true;
        worker_try(sim, entry->which, entry->at_ns);
        break;
    case WORKER_DONE:
        worker_done(sim, entry->which, entry->at_ns);
        break;
    case INDEX_FOR:
        sim->workers[entry->which].asked++;
        worker_try(sim, entry->which, entry->at_ns);
        break;
    case DATA_READY:
        if (entry->which < sim->batch_count) {
            sim->is_ready[entry->which] = true;
        }
        if (sim->is_main_waiting && entry->which == sim->batch) {
            received(sim, entry->at_ns);
        }
        break;
    case MAIN_STEP:
        step_begin(sim, entry->at_ns);
        break;
    case MAIN_NEXT:
        if (sim->is_ready[entry->which]) {
            received(sim, entry->at_ns);
        } else {
            sim->is_main_waiting = true;
        }
        break;
    default:
        break;
    }
}

/* Keep what lies in the window; the mean fetch is of what was kept. */
static void keep_window(struct sim *sim)
{
    struct lac_demo_run *run = sim->run;
    uint64_t kept = 0;
    int64_t fetch_ns = 0;
    int64_t fetch_count = 0;
    run->window_end_ns = sim->end_ns;
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->start_ns < run->window_start_ns || e->start_ns + e->dur_ns > run->window_end_ns) {
            continue;
        }
        if (e->kind == LAC_DEMO_EVENT_LOADER && strcmp(e->name, "loader.fetch") == 0) {
            fetch_ns += e->dur_ns;
            fetch_count++;
        }
        run->events[kept++] = *e;
    }
    run->event_count = kept;
    run->fetch_mean_ns = fetch_count > 0 ? fetch_ns / fetch_count : sim->p->fetch_ns;
    run->host_ns_per_step = sim->host_ns / sim->p->recorded_steps;
}

static enum lac_status check(const struct lac_demo_pipeline *p, struct lac_error *reterr)
{
    if (p->workers < 1 || p->workers > LAC_DEMO_WORKERS_MAX || p->prefetch_factor < 1 ||
        p->prefetch_factor > 64) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "a pipeline has 1 to %d workers, prefetch 1 to 64", LAC_DEMO_WORKERS_MAX);
    }
    if (p->recorded_steps < 1 || p->warmup_steps < 0 || p->recorded_steps > LAC_DEMO_STEPS_MAX ||
        p->warmup_steps > LAC_DEMO_STEPS_MAX) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a pipeline has 1 to %d steps",
                        LAC_DEMO_STEPS_MAX);
    }
    if (p->fetch_ns < 1000000 || p->jitter_ppm < 0 || p->jitter_ppm > 900000 || p->queue_max < 1 ||
        p->batch_size < 1 || p->batch_bytes < 1 || p->op_ns < 0 || p->launch_ns < 1) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a parameter of the pipeline is out of range");
    }
    return LAC_OK;
}

static enum lac_status prepare(struct sim *sim)
{
    const struct lac_demo_pipeline *p = sim->p;
    struct lac_demo_run *run = sim->run;
    sim->batch_count = (int64_t)p->warmup_steps + p->recorded_steps + 2;
    sim->is_ready = calloc((size_t)sim->batch_count, sizeof(*sim->is_ready));
    run->step_start_ns = calloc((size_t)p->recorded_steps + 1, sizeof(*run->step_start_ns));
    if (sim->is_ready == NULL || run->step_start_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = lac_demo_stream_init(&sim->compute, (uint64_t)p->queue_max);
    if (status == LAC_OK) {
        status = lac_demo_stream_init(&sim->copy, (uint64_t)p->queue_max);
    }
    if (status == LAC_OK) {
        status = lac_demo_network_build(p->batch_size, p->channels_last, p->compute_ns,
                                        p->layout_ns, p->kernel_pause_ns, &run->network);
    }
    if (status == LAC_OK) {
        /* a full launch queue holds this many steps; the device is one more behind */
        int32_t behind = p->queue_max / (int32_t)run->network.kernel_count + 3;
        sim->record_from = p->warmup_steps - behind;
    }
    return status;
}

static void run_all(struct sim *sim)
{
    const struct lac_demo_pipeline *p = sim->p;
    for (int32_t k = 0; k < p->workers; k++) {
        sim->workers[k].asked = p->prefetch_factor;
        plan(sim, p->in_phase ? 0 : p->fetch_ns / p->workers * k, WORKER_FREE, k);
    }
    if (p->copy_mode == LAC_DEMO_COPY_PREFETCH) {
        next_begin(sim, 0, 0);
    } else {
        plan(sim, 0, MAIN_STEP, 0);
    }
    struct lac_demo_entry entry;
    while (sim->status == LAC_OK && !sim->is_over && lac_demo_queue_take(&sim->queue, &entry)) {
        handle(sim, &entry);
    }
    /* main is ahead of the queue: let the workers reach the end of the window as well */
    while (sim->status == LAC_OK && lac_demo_queue_take(&sim->queue, &entry) &&
           entry.at_ns <= sim->end_ns) {
        handle(sim, &entry);
    }
}

enum lac_status lac_demo_simulate(const struct lac_demo_pipeline *pipeline,
                                  struct lac_demo_run *ret_run, struct lac_error *reterr)
{
    enum lac_status status = check(pipeline, reterr);
    if (status != LAC_OK) {
        return status;
    }
    struct lac_demo_run run = {0};
    struct sim *sim = calloc(1, sizeof(*sim));
    if (sim == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    sim->p = pipeline;
    sim->run = &run;
    sim->random = pipeline->seed;
    sim->status = prepare(sim);
    run_all(sim);
    keep_window(sim);
    status = sim->status;
    lac_demo_stream_done(&sim->compute);
    lac_demo_stream_done(&sim->copy);
    lac_demo_queue_done(&sim->queue);
    free(sim->is_ready);
    free(sim);
    if (status != LAC_OK) {
        lac_demo_run_done(&run);
        return lac_fail(reterr, status, 0,
                        status == LAC_ERR_NOMEM ? "out of memory"
                                                : "the kernels do not fit into the GPU's time");
    }
    *ret_run = run;
    return LAC_OK;
}

void lac_demo_run_done(struct lac_demo_run *run)
{
    free(run->events);
    free(run->step_start_ns);
    lac_demo_network_done(&run->network);
    *run = (struct lac_demo_run){0};
}
