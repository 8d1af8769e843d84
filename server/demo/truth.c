#include "server/demo/truth.h"

#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "server/demo/network.h"
#include "server/demo/pipeline.h"
#include "server/demo/trace_json.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More workers than any pipeline of ours can use: its data never waits. */
enum { PLENTY_WORKERS = LAC_DEMO_WORKERS_MAX };

struct interval {
    int64_t start_ns;
    int64_t end_ns;
    int64_t launch_ns; /* start of the call that launched it, or INT64_MIN */
    bool computes;
};

static int by_interval(const void *a, const void *b)
{
    const struct interval *left = a;
    const struct interval *right = b;
    const int order = LAC_ORDER(left->start_ns, right->start_ns);
    return order != 0 ? order : LAC_ORDER(left->end_ns, right->end_ns);
}

static int by_value(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return LAC_ORDER(*left, *right);
}

static enum lac_status measure_steps(const struct lac_demo_run *run, int32_t count,
                                     struct lac_demo_truth *truth)
{
    int64_t *each = calloc((size_t)count, sizeof(*each));
    if (each == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (int32_t i = 0; i < count; i++) {
        each[i] = run->step_start_ns[i + 1] - run->step_start_ns[i];
    }
    qsort(each, (size_t)count, sizeof(*each), by_value);
    truth->step_mean_ns = (run->step_start_ns[count] - run->step_start_ns[0]) / count;
    truth->step_median_ns = each[(count - 1) / 2];
    truth->step_min_ns = each[0];
    truth->step_max_ns = each[count - 1];
    free(each);
    return LAC_OK;
}

/* Length of [a, b) inside the waits for a batch. Waits are few and do not overlap. */
static int64_t waited_inside(const struct interval *waits, uint64_t wait_count, int64_t a,
                             int64_t b)
{
    int64_t sum_ns = 0;
    for (uint64_t i = 0; i < wait_count; i++) {
        int64_t from = waits[i].start_ns > a ? waits[i].start_ns : a;
        int64_t to = waits[i].end_ns < b ? waits[i].end_ns : b;
        sum_ns += to > from ? to - from : 0;
    }
    return sum_ns;
}

/* A gap: waiting for data where main waited, then host until the launch, then latency. */
static void split_gap(struct lac_demo_truth *truth, const struct interval *waits,
                      uint64_t wait_count, int64_t a, int64_t b, int64_t launch_ns)
{
    int64_t data_ns = waited_inside(waits, wait_count, a, b);
    int64_t launched_ns = launch_ns < a ? a : launch_ns > b ? b : launch_ns;
    int64_t latency_ns = b - launched_ns - waited_inside(waits, wait_count, launched_ns, b);
    truth->idle_data_ns += data_ns;
    truth->idle_latency_ns += latency_ns;
    truth->idle_host_ns += b - a - data_ns - latency_ns;
}

static void measure_device(struct lac_demo_truth *truth, const struct interval *ops,
                           uint64_t op_count, const struct interval *waits, uint64_t wait_count)
{
    if (op_count == 0) {
        return;
    }
    int64_t busy_until = ops[0].start_ns;
    int64_t computing_until = ops[0].start_ns;
    for (uint64_t i = 0; i < op_count; i++) {
        const struct interval *op = &ops[i];
        if (op->start_ns > busy_until) {
            split_gap(truth, waits, wait_count, busy_until, op->start_ns, op->launch_ns);
            busy_until = op->start_ns;
        }
        if (op->end_ns > busy_until) {
            truth->busy_ns += op->end_ns - busy_until;
            busy_until = op->end_ns;
        }
        int64_t from = op->start_ns > computing_until ? op->start_ns : computing_until;
        if (op->computes && op->end_ns > from) {
            truth->computing_ns += op->end_ns - from;
            computing_until = op->end_ns;
        }
    }
    truth->span_ns = busy_until - ops[0].start_ns;
}

static enum lac_status measure_events(const struct lac_demo_run *run, struct lac_demo_truth *truth)
{
    uint32_t last_correlation = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        if (run->events[i].correlation > last_correlation) {
            last_correlation = run->events[i].correlation;
        }
    }
    struct interval *ops = calloc(run->event_count + 1, sizeof(*ops));
    struct interval *waits = calloc(run->event_count + 1, sizeof(*waits));
    int64_t *launch_ns = malloc(((size_t)last_correlation + 1) * sizeof(*launch_ns));
    enum lac_status status = LAC_ERR_NOMEM;
    uint64_t op_count = 0;
    uint64_t wait_count = 0;
    if (ops == NULL || waits == NULL || launch_ns == NULL) {
        goto done;
    }
    for (uint32_t i = 0; i <= last_correlation; i++) {
        launch_ns[i] = INT64_MIN;
    }
    for (uint64_t i = 0; i < run->event_count; i++) {
        if (run->events[i].kind == LAC_DEMO_EVENT_API) {
            launch_ns[run->events[i].correlation] = run->events[i].start_ns;
        }
    }
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        struct interval at = {e->start_ns, e->start_ns + e->dur_ns, launch_ns[e->correlation],
                              e->kind == LAC_DEMO_EVENT_KERNEL};
        if (e->kind == LAC_DEMO_EVENT_KERNEL || e->kind == LAC_DEMO_EVENT_COPY) {
            ops[op_count++] = at;
        } else if (e->kind == LAC_DEMO_EVENT_LOADER && strcmp(e->name, "loader.wait") == 0) {
            waits[wait_count++] = at;
        }
    }
    qsort(ops, op_count, sizeof(*ops), by_interval);
    measure_device(truth, ops, op_count, waits, wait_count);
    status = LAC_OK;
done:
    free(ops);
    free(waits);
    free(launch_ns);
    return status;
}

static void measure_needs(const struct lac_demo_pipeline *p, const struct lac_demo_run *run,
                          struct lac_demo_truth *truth)
{
    for (uint32_t i = 0; i < run->network.kernel_count; i++) {
        const struct lac_demo_kernel *k = &run->network.kernels[i];
        truth->need_gpu_ns += k->dur_ns;
        truth->layout_ns += k->is_layout ? k->dur_ns : 0;
    }
    truth->need_data_ns = run->fetch_mean_ns / p->workers;
    truth->need_host_ns = run->host_ns_per_step;
    truth->need_copies_ns = p->copy_mode != LAC_DEMO_COPY_PAGEABLE ? p->copy_pinned_ns
                            : p->channels_last                     ? p->copy_pageable_nhwc_ns
                                                                   : p->copy_pageable_nchw_ns;
}

struct lac_demo_pipeline lac_demo_changed(const struct lac_demo_pipeline *pipeline,
                                          enum lac_demo_change change, int32_t workers)
{
    struct lac_demo_pipeline p = *pipeline;
    switch (change) {
    case LAC_DEMO_CHANGE_WORKERS:
        p.workers = workers;
        /* whole cycles, so that the mean does not depend on where the window begins */
        p.recorded_steps = (p.recorded_steps + workers - 1) / workers * workers;
        break;
    case LAC_DEMO_CHANGE_LAYOUT:
        p.channels_last = true;
        break;
    case LAC_DEMO_CHANGE_PINNED:
        p.copy_mode = LAC_DEMO_COPY_PINNED;
        break;
    case LAC_DEMO_CHANGE_ASYNC:
        p.copy_mode = LAC_DEMO_COPY_PREFETCH;
        break;
    case LAC_DEMO_CHANGE_COUNT_:
    default:
        break;
    }
    return p;
}

static enum lac_status mean_step(const struct lac_demo_pipeline *pipeline, int64_t *ret_mean_ns,
                                 struct lac_error *reterr)
{
    struct lac_demo_run run;
    enum lac_status status = lac_demo_simulate(pipeline, &run, reterr);
    if (status != LAC_OK) {
        return status;
    }
    *ret_mean_ns = (run.step_start_ns[pipeline->recorded_steps] - run.step_start_ns[0]) /
                   pipeline->recorded_steps;
    lac_demo_run_done(&run);
    return LAC_OK;
}

static int32_t wanted_workers(int64_t fetch_ns, int64_t step_ns)
{
    int64_t wanted = (fetch_ns * 115 + step_ns * 100 - 1) / (step_ns * 100);
    return wanted > LAC_DEMO_WORKERS_MAX ? LAC_DEMO_WORKERS_MAX : (int32_t)wanted;
}

static enum lac_status try_changes(const struct lac_demo_pipeline *p, struct lac_demo_truth *truth,
                                   struct lac_error *reterr)
{
    struct lac_demo_pipeline plenty = *p;
    plenty.workers = PLENTY_WORKERS;
    enum lac_status status = mean_step(&plenty, &truth->unstarved_ns, reterr);
    if (status != LAC_OK) {
        return status;
    }
    truth->workers_wanted = wanted_workers(p->fetch_ns, truth->unstarved_ns);
    truth->is_possible[LAC_DEMO_CHANGE_WORKERS] = truth->workers_wanted > p->workers;
    truth->is_possible[LAC_DEMO_CHANGE_LAYOUT] = !p->channels_last;
    truth->is_possible[LAC_DEMO_CHANGE_PINNED] = p->copy_mode == LAC_DEMO_COPY_PAGEABLE;
    truth->is_possible[LAC_DEMO_CHANGE_ASYNC] = p->copy_mode != LAC_DEMO_COPY_PREFETCH;
    truth->best = LAC_DEMO_CHANGE_COUNT_;
    int64_t best_ns = truth->step_mean_ns - truth->step_mean_ns / 200;
    for (int c = 0; c < LAC_DEMO_CHANGE_COUNT_; c++) {
        if (!truth->is_possible[c]) {
            continue;
        }
        struct lac_demo_pipeline changed =
            lac_demo_changed(p, (enum lac_demo_change)c, truth->workers_wanted);
        status = mean_step(&changed, &truth->changed_ns[c], reterr);
        if (status != LAC_OK) {
            return status;
        }
        /* from pageable memory, asynchronous is two changes: not the one to name first */
        bool is_one = c != LAC_DEMO_CHANGE_ASYNC || p->copy_mode == LAC_DEMO_COPY_PINNED;
        if (is_one && truth->changed_ns[c] < best_ns) {
            best_ns = truth->changed_ns[c];
            truth->best = (enum lac_demo_change)c;
        }
    }
    return LAC_OK;
}

enum lac_status lac_demo_truth_of(const struct lac_demo_pipeline *pipeline,
                                  const struct lac_demo_run *run, struct lac_demo_truth *ret_truth,
                                  struct lac_error *reterr)
{
    struct lac_demo_truth truth = {0};
    enum lac_status status = measure_steps(run, pipeline->recorded_steps, &truth);
    if (status == LAC_OK) {
        status = measure_events(run, &truth);
    }
    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "out of memory");
    }
    measure_needs(pipeline, run, &truth);
    status = try_changes(pipeline, &truth, reterr);
    if (status == LAC_OK) {
        *ret_truth = truth;
    }
    return status;
}

const char *lac_demo_change_finding(enum lac_demo_change change)
{
    static const char *const NAMES[LAC_DEMO_CHANGE_COUNT_ + 1] = {
        "input-starvation", "layout-conversion", "pageable-copy", "blocking-copy", "gpu-bound"};
    return NAMES[change];
}

static void write_changes(FILE *out, const struct lac_demo_truth *truth, bool is_pageable)
{
    const char *separator = "\n";
    lac_demo_print(out, "%s", "  \"counterfactuals\": [");
    for (int c = 0; c < LAC_DEMO_CHANGE_COUNT_; c++) {
        if (!truth->is_possible[c]) {
            continue;
        }
        lac_demo_print(out, "%s    {\"change\": \"", separator);
        switch ((enum lac_demo_change)c) {
        case LAC_DEMO_CHANGE_WORKERS:
            lac_demo_print(out, "workers=%d", truth->workers_wanted);
            break;
        case LAC_DEMO_CHANGE_LAYOUT:
            lac_demo_print(out, "%s", "layout=nhwc");
            break;
        case LAC_DEMO_CHANGE_PINNED:
            lac_demo_print(out, "%s", "pinned=1");
            break;
        case LAC_DEMO_CHANGE_ASYNC:
            lac_demo_print(out, "%s", is_pageable ? "pinned=1,async=1" : "async=1");
            break;
        case LAC_DEMO_CHANGE_COUNT_:
        default:
            break;
        }
        lac_demo_print(out, "\", \"step_mean_ns\": %" PRId64 "}", truth->changed_ns[c]);
        separator = ",\n";
    }
    lac_demo_print(out, "%s", "\n  ],\n");
}

static void write_expected(FILE *out, const struct lac_demo_caption *caption,
                           const struct lac_demo_truth *truth)
{
    bool is_some = truth->best != LAC_DEMO_CHANGE_COUNT_;
    lac_demo_print(out, "  \"expected\": {\"first_finding\": \"%s\"",
                   lac_demo_change_finding(truth->best));
    if (truth->best == LAC_DEMO_CHANGE_WORKERS) {
        lac_demo_print(out, ", \"num_workers\": %d", truth->workers_wanted);
    }
    if (is_some) {
        lac_demo_print(out, ", \"step_mean_ns\": %" PRId64, truth->changed_ns[truth->best]);
    }
    if (caption->next_step_ns > 0) {
        lac_demo_print(out, ", \"next_trace_step_mean_ns\": %" PRId64, caption->next_step_ns);
    }
    lac_demo_print(out, "%s", "}\n");
}

void lac_demo_write_truth(FILE *out, const struct lac_demo_caption *caption,
                          const struct lac_demo_pipeline *pipeline,
                          const struct lac_demo_truth *truth)
{
    double per_s = 1e9 * pipeline->batch_size / (double)truth->step_mean_ns;
    double not_computing =
        truth->span_ns > 0
            ? 100.0 * (double)(truth->span_ns - truth->computing_ns) / (double)truth->span_ns
            : 0.0;
    lac_demo_print(
        out, "%s",
        "{\n  \"schema\": \"lacuna.demo-truth/1\",\n  \"simulated\": true,\n  \"name\": ");
    lac_demo_write_string(out, caption->name);
    lac_demo_print(out, "%s", ",\n  \"title\": ");
    lac_demo_write_string(out, caption->title);
    lac_demo_print(out, "%s", ",\n  \"published\": {\"text\": ");
    lac_demo_write_string(out, caption->published);
    if (caption->published_samples_per_s > 0) {
        lac_demo_print(out, ", \"samples_per_s\": %.0f},\n", caption->published_samples_per_s);
    } else {
        lac_demo_print(out, "%s", ", \"samples_per_s\": null},\n");
    }
    lac_demo_print(out, "%s", "  \"settings\": ");
    lac_demo_write_settings(out, pipeline);
    lac_demo_print(out,
                   ",\n  \"simulation\": {\"fetch_ns\": %" PRId64
                   ", \"fetch_jitter_ppm\": %d, \"in_phase\": %s, \"batch_bytes\": %" PRId64
                   ", \"seed\": %" PRIu64 "}",
                   pipeline->fetch_ns, pipeline->jitter_ppm, pipeline->in_phase ? "true" : "false",
                   pipeline->batch_bytes, pipeline->seed);
    lac_demo_print(out,
                   ",\n  \"steps\": {\"first\": %d, \"count\": %d, \"mean_ns\": %" PRId64
                   ", \"median_ns\": %" PRId64 ", \"min_ns\": %" PRId64 ", \"max_ns\": %" PRId64
                   "},\n"
                   "  \"samples_per_s\": %.2f,\n",
                   pipeline->warmup_steps, pipeline->recorded_steps, truth->step_mean_ns,
                   truth->step_median_ns, truth->step_min_ns, truth->step_max_ns, per_s);
    lac_demo_print(out,
                   "  \"needs_ns\": {\"data\": %" PRId64 ", \"host\": %" PRId64
                   ", \"copies\": %" PRId64 ", \"gpu\": %" PRId64
                   ", \"comm\": 0},\n  \"layout_ns_per_step\": %" PRId64 ",\n",
                   truth->need_data_ns, truth->need_host_ns, truth->need_copies_ns,
                   truth->need_gpu_ns, truth->layout_ns);
    lac_demo_print(
        out,
        "  \"device\": {\"span_ns\": %" PRId64 ", \"busy_ns\": %" PRId64 ", \"idle_ns\": %" PRId64
        ", \"not_computing_pct\": %.4f,\n    \"idle_by_construction_ns\": {\"data_wait\": %" PRId64
        ", \"host\": %" PRId64 ", \"launch_latency\": %" PRId64 "}},\n",
        truth->span_ns, truth->busy_ns, truth->span_ns - truth->busy_ns, not_computing,
        truth->idle_data_ns, truth->idle_host_ns, truth->idle_latency_ns);
    lac_demo_print(out, "  \"unstarved_step_ns\": %" PRId64 ",\n", truth->unstarved_ns);
    write_changes(out, truth, pipeline->copy_mode == LAC_DEMO_COPY_PAGEABLE);
    write_expected(out, caption, truth);
    lac_demo_print(out, "%s", "}\n");
}
