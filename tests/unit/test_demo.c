/* The simulated training series: its table, its order, and what no pipeline may ever do. */

#include "server/demo/event_queue.h"
#include "server/demo/gpu_stream.h"
#include "server/demo/series.h"
#include "server/demo/trace_json.h"
#include "server/demo/truth.h"
#include "tests/support/check_main.h"
#include "tests/support/demo_rows.h"

#include <check.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double TABLE_MS[LAC_DEMO_STAGE_COUNT] = {750, 371, 300, 269, 245, 230};
static const double TABLE_IMAGES[LAC_DEMO_STAGE_COUNT] = {341, 690, 853, 952, 1045, 1113};
static const enum lac_demo_change TABLE_BEST[LAC_DEMO_STAGE_COUNT] = {
    LAC_DEMO_CHANGE_WORKERS, LAC_DEMO_CHANGE_LAYOUT, LAC_DEMO_CHANGE_WORKERS,
    LAC_DEMO_CHANGE_PINNED,  LAC_DEMO_CHANGE_ASYNC,  LAC_DEMO_CHANGE_COUNT_};

static struct lac_demo_run simulated(const struct lac_demo_pipeline *pipeline)
{
    struct lac_demo_run run;
    struct lac_error error;
    ck_assert_int_eq(lac_demo_simulate(pipeline, &run, &error), LAC_OK);
    return run;
}

static int64_t end_of(const struct lac_demo_event *e)
{
    return e->start_ns + e->dur_ns;
}

static bool is_named(const struct lac_demo_event *e, const char *name)
{
    return strcmp(e->name, name) == 0;
}

/* ---- what must hold of every run ---- */

/* Calls come before what they launch, each launches one thing, and no stream holds more than its
 * queue. */
static void check_launches(const struct lac_demo_run *run, int32_t queue_max)
{
    uint32_t last = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        last = run->events[i].correlation > last ? run->events[i].correlation : last;
    }
    const struct lac_demo_event **call = calloc((size_t)last + 1, sizeof(*call));
    int64_t *compute_start_ns = calloc(run->event_count + 1, sizeof(*compute_start_ns));
    ck_assert_ptr_nonnull(call);
    ck_assert_ptr_nonnull(compute_start_ns);
    uint64_t launched = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->kind == LAC_DEMO_EVENT_API) {
            ck_assert_ptr_null(call[e->correlation]);
            call[e->correlation] = e;
        }
    }
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->kind != LAC_DEMO_EVENT_KERNEL && e->kind != LAC_DEMO_EVENT_COPY) {
            continue;
        }
        const struct lac_demo_event *c = call[e->correlation];
        if (c != NULL) {
            ck_assert_int_gt(e->start_ns, c->start_ns);
            if (e->thread == LAC_DEMO_COMPUTE_STREAM && launched >= (uint64_t)queue_max) {
                ck_assert_int_ge(end_of(c), compute_start_ns[launched - (uint64_t)queue_max]);
            }
        }
        if (e->thread == LAC_DEMO_COMPUTE_STREAM) {
            compute_start_ns[launched++] = e->start_ns;
        }
    }
    free(call);
    free(compute_start_ns);
}

enum { BATCHES_MAX = 4096 };

/* Batches are taken in order, each from its worker, none before it was fetched, and no worker is
 * asked for more than prefetch_factor batches ahead. */
static void check_queues(const struct lac_demo_run *run, const struct lac_demo_pipeline *p)
{
    static int64_t fetch_start[BATCHES_MAX], fetch_end[BATCHES_MAX], pin_start[BATCHES_MAX],
        pin_end[BATCHES_MAX], taken[BATCHES_MAX];
    memset(fetch_start, 0, sizeof(fetch_start));
    memset(fetch_end, 0, sizeof(fetch_end));
    memset(pin_start, 0, sizeof(pin_start));
    memset(pin_end, 0, sizeof(pin_end));
    memset(taken, 0, sizeof(taken));
    int32_t last_taken = -1;
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->kind != LAC_DEMO_EVENT_LOADER) {
            continue;
        }
        ck_assert_int_lt(e->number, BATCHES_MAX);
        if (is_named(e, "loader.fetch")) {
            ck_assert_int_eq(e->worker, e->number % p->workers);
            ck_assert_int_eq(e->thread, LAC_DEMO_WORKER + e->worker);
            ck_assert(e->cpu_ns > 0);
            ck_assert_int_le(e->cpu_ns, e->dur_ns);
            fetch_start[e->number] = e->start_ns;
            fetch_end[e->number] = end_of(e);
        } else if (is_named(e, "loader.pin")) {
            pin_start[e->number] = e->start_ns;
            pin_end[e->number] = end_of(e);
        } else if (is_named(e, "loader.wait")) {
            ck_assert(last_taken < 0 || e->number == last_taken + 1);
            last_taken = e->number;
            taken[e->number] = end_of(e);
        }
    }
    for (int32_t b = 0; b < BATCHES_MAX; b++) {
        int32_t freed_by = b - p->workers * p->prefetch_factor;
        ck_assert(taken[b] == 0 || taken[b] > fetch_end[b]);
        ck_assert(taken[b] == 0 || taken[b] > pin_end[b]);
        ck_assert(pin_start[b] == 0 || pin_start[b] > fetch_end[b]);
        if (fetch_start[b] > 0 && freed_by >= 0 && taken[freed_by] > 0) {
            ck_assert_int_gt(fetch_start[b], taken[freed_by]);
        }
    }
}

static void check_run(const struct lac_demo_run *run, const struct lac_demo_pipeline *p)
{
    for (uint64_t i = 0; i < run->event_count; i++) {
        ck_assert_int_ge(run->events[i].start_ns, run->window_start_ns);
        ck_assert_int_le(end_of(&run->events[i]), run->window_end_ns);
    }
    for (int32_t i = 0; i < p->recorded_steps; i++) {
        ck_assert_int_gt(run->step_start_ns[i + 1], run->step_start_ns[i]);
    }
    check_demo_rows(run->events, run->event_count);
    check_launches(run, p->queue_max);
    check_queues(run, p);
}

/* ---- the series ---- */

START_TEST(each_stage_takes_the_step_time_of_the_table)
{
    for (int in_phase = 0; in_phase < 2; in_phase++) {
        struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, in_phase != 0, 1);
        struct lac_demo_run run = simulated(&p);
        struct lac_demo_truth truth;
        ck_assert_int_eq(lac_demo_truth_of(&p, &run, &truth, NULL), LAC_OK);
        double mean_ms = (double)truth.step_mean_ns / 1e6;
        ck_assert_double_eq_tol(mean_ms, TABLE_MS[_i], TABLE_MS[_i] * 0.01);
        ck_assert_double_eq_tol(256e3 / mean_ms, TABLE_IMAGES[_i], TABLE_IMAGES[_i] * 0.01);
        if (!in_phase) {
            ck_assert_int_eq(truth.step_mean_ns, truth.step_median_ns);
        }
        check_run(&run, &p);
        lac_demo_run_done(&run);
    }
}
END_TEST

START_TEST(the_best_change_of_each_stage_gives_the_next_one)
{
    for (int in_phase = 0; in_phase < 2; in_phase++) {
        struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, in_phase != 0, 7);
        struct lac_demo_run run = simulated(&p);
        struct lac_demo_truth truth;
        ck_assert_int_eq(lac_demo_truth_of(&p, &run, &truth, NULL), LAC_OK);
        ck_assert_int_eq(truth.best, TABLE_BEST[_i]);
        if (truth.best == LAC_DEMO_CHANGE_WORKERS) {
            ck_assert_int_eq(truth.workers_wanted, _i == 0 ? 5 : 7);
        }
        if (truth.best != LAC_DEMO_CHANGE_COUNT_) {
            ck_assert_double_eq_tol((double)truth.changed_ns[truth.best] / 1e6, TABLE_MS[_i + 1],
                                    TABLE_MS[_i + 1] * 0.01);
        }
        lac_demo_run_done(&run);
    }
}
END_TEST

START_TEST(idle_by_construction_sums_to_idle)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, _i % 2 == 1, 3);
    struct lac_demo_run run = simulated(&p);
    struct lac_demo_truth truth;
    ck_assert_int_eq(lac_demo_truth_of(&p, &run, &truth, NULL), LAC_OK);
    ck_assert_int_eq(truth.idle_data_ns + truth.idle_host_ns + truth.idle_latency_ns,
                     truth.span_ns - truth.busy_ns);
    ck_assert_int_ge(truth.busy_ns, truth.computing_ns);
    ck_assert_int_ge(truth.idle_host_ns, 0);
    ck_assert_int_ge(truth.idle_latency_ns, 0);
    /* a starving stage loses per step what its step is longer than the unstarved one */
    double starved_ms = (double)truth.idle_data_ns / 1e6 / p.recorded_steps;
    double longer_ms = (double)(truth.step_mean_ns - truth.unstarved_ns) / 1e6;
    ck_assert_double_eq_tol(starved_ms, longer_ms, 0.02 * (double)truth.step_mean_ns / 1e6);
    lac_demo_run_done(&run);
}
END_TEST

START_TEST(fetches_take_exactly_what_the_story_says)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, false, 1);
    struct lac_demo_run run = simulated(&p);
    uint64_t fetches = 0;
    int64_t part_ns = 0;
    int32_t batch = -1; /* of the latest fetch; parts of one begun before the window stand alone */
    for (uint64_t i = 0; i < run.event_count; i++) {
        const struct lac_demo_event *e = &run.events[i];
        if (is_named(e, "loader.fetch")) {
            ck_assert_int_eq(e->dur_ns, 1500000000);
            fetches++;
            batch = e->number;
        } else if (e->thread >= LAC_DEMO_WORKER && e->number == batch) {
            part_ns += e->dur_ns;
        }
    }
    ck_assert_uint_gt(fetches, 10);
    ck_assert_int_eq(part_ns, (int64_t)fetches * 1500000000);
    lac_demo_run_done(&run);
}
END_TEST

START_TEST(copies_block_as_their_memory_says)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, false, 1);
    struct lac_demo_run run = simulated(&p);
    static const double COPY_MS[LAC_DEMO_STAGE_COUNT] = {21, 21, 39, 39, 15, 15};
    const struct lac_demo_event *copy = NULL;
    int64_t blocked_max_ns = 0;
    uint64_t copies = 0;
    for (uint64_t i = 0; i < run.event_count; i++) {
        const struct lac_demo_event *e = &run.events[i];
        if (e->kind == LAC_DEMO_EVENT_COPY && e->bytes == 154140672) {
            ck_assert_double_eq_tol((double)e->dur_ns / 1e6, COPY_MS[_i], 1e-9);
            ck_assert_int_eq(e->from_pinned, _i >= 4);
            ck_assert_int_eq(e->thread, _i == 5 ? LAC_DEMO_COPY_STREAM : LAC_DEMO_COMPUTE_STREAM);
            copy = e;
            copies++;
        } else if (copy != NULL && is_named(e, "cudaStreamSynchronize")) {
            ck_assert_int_gt(end_of(e), end_of(copy));
        } else if (is_named(e, "cudaMemcpyAsync")) {
            blocked_max_ns = e->dur_ns > blocked_max_ns ? e->dur_ns : blocked_max_ns;
        }
    }
    ck_assert_uint_ge(copies, (uint64_t)p.recorded_steps);
    if (_i < 4) {
        ck_assert_int_gt(blocked_max_ns, 20000000); /* the call returns after the copy */
    } else {
        ck_assert_int_lt(blocked_max_ns, 100000);
    }
    lac_demo_run_done(&run);
}
END_TEST

START_TEST(a_step_waits_for_its_own_batch_on_the_copy_stream)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(5, false, 1);
    struct lac_demo_run run = simulated(&p);
    int64_t copied_ns = 0;
    uint64_t checked = 0;
    bool is_next = false;
    for (uint64_t i = 0; i < run.event_count; i++) {
        const struct lac_demo_event *e = &run.events[i];
        if (e->kind == LAC_DEMO_EVENT_COPY) {
            copied_ns = end_of(e);
        } else if (is_named(e, "cudaStreamWaitEvent")) {
            is_next = true;
        } else if (e->kind == LAC_DEMO_EVENT_KERNEL && is_next) {
            ck_assert_int_ge(e->start_ns, copied_ns);
            is_next = false;
            checked++;
        }
    }
    ck_assert_uint_eq(checked, (uint64_t)p.recorded_steps);
    lac_demo_run_done(&run);
}
END_TEST

START_TEST(layout_kernels_run_only_in_contiguous_stages)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(_i, false, 1);
    struct lac_demo_run run = simulated(&p);
    int64_t layout_ns = 0;
    int64_t kernel_ns = 0;
    for (uint32_t i = 0; i < run.network.kernel_count; i++) {
        const struct lac_demo_kernel *k = &run.network.kernels[i];
        bool is_layout = strstr(k->name, "nchwToNhwcKernel") != NULL ||
                         strstr(k->name, "nhwcToNchwKernel") != NULL;
        ck_assert_int_eq(is_layout, k->is_layout);
        ck_assert_int_gt(k->dur_ns, 0);
        ck_assert_uint_le(k->registers * k->block, 65536);
        layout_ns += is_layout ? k->dur_ns : 0;
        kernel_ns += k->dur_ns;
    }
    int64_t pauses_ns = (int64_t)run.network.kernel_count * p.kernel_pause_ns;
    ck_assert_int_eq(kernel_ns + pauses_ns, _i < 2 ? 350000000 : 230000000);
    ck_assert_int_eq(layout_ns > 0, _i < 2);
    lac_demo_run_done(&run);
}
END_TEST

/* ---- files ---- */

static char *written(int stage, bool in_phase, uint64_t seed, size_t *ret_length)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(stage, in_phase, seed);
    p.warmup_steps = 4;
    p.recorded_steps = 3;
    struct lac_demo_run run = simulated(&p);
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_length);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(lac_demo_write_trace(out, lac_demo_stage(stage)->name, &p, &run, NULL),
                     LAC_OK);
    ck_assert_int_eq(fclose(out), 0);
    lac_demo_run_done(&run);
    return text;
}

static struct json_object *parsed(const char *text, size_t length)
{
    struct json_tokener *tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *root = json_tokener_parse_ex(tokener, text, (int)length);
    ck_assert_msg(json_tokener_get_error(tokener) == json_tokener_success, "not JSON: %s",
                  json_tokener_error_desc(json_tokener_get_error(tokener)));
    json_tokener_free(tokener);
    return root;
}

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(object, key, &value), "no %s", key);
    return value;
}

START_TEST(the_trace_is_json_that_says_it_is_simulated)
{
    size_t length = 0;
    char *text = written(_i, false, 1, &length);
    struct json_object *root = parsed(text, length);
    ck_assert(json_object_get_boolean(member(member(root, "lacuna"), "simulated")));
    ck_assert_ptr_nonnull(strstr(json_object_get_string(member(root, "traceName")), "simulated"));
    struct json_object *device = json_object_array_get_idx(member(root, "deviceProperties"), 0);
    ck_assert_int_eq(json_object_get_int(member(device, "computeMajor")), 7);
    struct json_object *events = member(root, "traceEvents");
    size_t count = json_object_array_length(events);
    size_t steps = 0;
    size_t kernels = 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *e = json_object_array_get_idx(events, i);
        const char *name = json_object_get_string(member(e, "name"));
        steps += strncmp(name, "ProfilerStep#", 13) == 0;
        if (strcmp(json_object_get_string(member(e, "ph")), "M") == 0) {
            continue;
        }
        ck_assert_double_ge(json_object_get_double(member(e, "dur")), 0);
        if (strcmp(json_object_get_string(member(e, "cat")), "kernel") == 0) {
            struct json_object *args = member(e, "args");
            ck_assert_int_gt(json_object_get_int(member(args, "correlation")), 0);
            ck_assert_uint_eq(json_object_array_length(member(args, "grid")), 3);
            ck_assert_int_le(json_object_get_int(member(args, "est. achieved occupancy %")), 100);
            kernels++;
        }
    }
    ck_assert_uint_eq(steps, 3);
    ck_assert_uint_gt(kernels, 1000);
    json_object_put(root);
    free(text);
}
END_TEST

START_TEST(the_same_seed_writes_the_same_bytes)
{
    size_t length[3] = {0};
    char *a = written(_i, true, 5, &length[0]);
    char *b = written(_i, true, 5, &length[1]);
    char *c = written(_i, true, 6, &length[2]);
    ck_assert_uint_eq(length[0], length[1]);
    ck_assert(memcmp(a, b, length[0]) == 0);
    ck_assert(length[0] != length[2] || memcmp(a, c, length[0]) != 0);
    free(a);
    free(b);
    free(c);
}
END_TEST

START_TEST(the_series_is_written_whole_with_its_truth)
{
    char dir[] = "/tmp/lac_demo_XXXXXX";
    char path[128];
    char nested[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(nested, sizeof(nested), "%s/a/b", dir);
    ck_assert_int_eq(lac_demo_write_series(nested, false, 1, NULL, NULL), LAC_OK);
    for (int stage = 0; stage < LAC_DEMO_STAGE_COUNT; stage++) {
        (void)snprintf(path, sizeof(path), "%s/%s.truth.json", nested, lac_demo_stage(stage)->name);
        struct json_object *truth = json_object_from_file(path);
        ck_assert_ptr_nonnull(truth);
        ck_assert(json_object_get_boolean(member(truth, "simulated")));
        ck_assert_double_eq_tol(json_object_get_double(member(truth, "samples_per_s")),
                                TABLE_IMAGES[stage], TABLE_IMAGES[stage] * 0.01);
        json_object_put(truth);
        ck_assert_int_eq(unlink(path), 0);
        (void)snprintf(path, sizeof(path), "%s/%s.json", nested, lac_demo_stage(stage)->name);
        struct stat st;
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_int_gt(st.st_size, 1000000);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(nested), 0); /* nothing else was left there */
    (void)snprintf(path, sizeof(path), "%s/a", dir);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_an_error_that_names_it)
{
    struct lac_error error = {0};
    ck_assert_int_eq(lac_demo_write_series("/proc/lacuna", false, 1, NULL, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "/proc/lacuna"));
    ck_assert_int_eq(lac_demo_write_series("", false, 1, NULL, &error), LAC_ERR_MISUSE);
}
END_TEST

/* ---- parts, and pipelines that nobody chose ---- */

START_TEST(the_event_queue_gives_back_in_order)
{
    struct lac_demo_queue queue = {0};
    struct lac_demo_entry entry;
    unsigned state = 12345;
    for (int i = 0; i < 2000; i++) {
        state = state * 1664525u + 1013904223u;
        ck_assert_int_eq(lac_demo_queue_add(&queue, (int64_t)(state >> 24), i, i), LAC_OK);
    }
    int64_t at_ns = -1;
    int64_t which = -1;
    for (int i = 0; i < 2000; i++) {
        ck_assert(lac_demo_queue_take(&queue, &entry));
        ck_assert(entry.at_ns > at_ns || (entry.at_ns == at_ns && entry.which > which));
        at_ns = entry.at_ns;
        which = entry.which;
    }
    ck_assert(!lac_demo_queue_take(&queue, &entry));
    lac_demo_queue_done(&queue);
}
END_TEST

START_TEST(a_full_launch_queue_blocks_the_call)
{
    struct lac_demo_stream stream;
    ck_assert_int_eq(lac_demo_stream_init(&stream, 2), LAC_OK);
    struct lac_demo_launch l = lac_demo_stream_launch(&stream, 0, 5, 10, 1, 1000);
    ck_assert_int_eq(l.start_ns, 15);
    ck_assert_int_eq(l.end_ns, 1015);
    l = lac_demo_stream_launch(&stream, 5, 5, 10, 1, 1000);
    ck_assert_int_eq(l.start_ns, 1016);
    ck_assert_int_eq(l.blocked_ns, 0); /* room for two */
    l = lac_demo_stream_launch(&stream, 30, 5, 10, 1, 1000);
    ck_assert_int_eq(l.blocked_ns, 0);
    l = lac_demo_stream_launch(&stream, 40, 5, 10, 1, 1000);
    ck_assert_int_eq(l.blocked_ns, 1016 - 40);
    ck_assert_int_eq(l.api_end_ns, 1021);
    stream.not_before_ns = 9000;
    l = lac_demo_stream_launch(&stream, 5000, 5, 10, 1, 1000);
    ck_assert_int_eq(l.start_ns, 9000);
    lac_demo_stream_done(&stream);
}
END_TEST

static uint32_t random_state = 1;

static int64_t between(int64_t low, int64_t high)
{
    random_state = random_state * 1664525u + 1013904223u;
    return low + (int64_t)((uint64_t)(random_state >> 4) % (uint64_t)(high - low + 1));
}

START_TEST(no_random_pipeline_breaks_the_rules)
{
    for (int i = 0; i < 25; i++) {
        struct lac_demo_pipeline p;
        lac_demo_pipeline_default(&p);
        p.seed = (uint64_t)i;
        p.warmup_steps = (int32_t)between(0, 6);
        p.recorded_steps = (int32_t)between(1, 8);
        p.workers = (int32_t)between(1, 9);
        p.prefetch_factor = (int32_t)between(1, 4);
        p.fetch_ns = between(1000000, 2000000000);
        p.jitter_ppm = (int32_t)between(0, 200000);
        p.in_phase = between(0, 1) == 1;
        p.copy_mode = (enum lac_demo_copy_mode)between(0, 2);
        p.channels_last = between(0, 1) == 1;
        p.compute_ns = between(5000000, 400000000);
        p.layout_ns = between(2000000, 200000000);
        p.op_ns = between(1000, 60000);
        p.queue_max = (int32_t)between(1, 1500);
        p.loss_item = between(0, 1) == 1;
        struct lac_demo_run run = simulated(&p);
        check_run(&run, &p);
        struct lac_demo_truth truth;
        ck_assert_int_eq(lac_demo_truth_of(&p, &run, &truth, NULL), LAC_OK);
        ck_assert_int_eq(truth.idle_data_ns + truth.idle_host_ns + truth.idle_latency_ns,
                         truth.span_ns - truth.busy_ns);
        lac_demo_run_done(&run);
    }
}
END_TEST

START_TEST(a_host_that_cannot_keep_up_decides_the_step)
{
    struct lac_demo_pipeline p = lac_demo_stage_pipeline(5, false, 1);
    p.op_ns = 900000; /* far slower than the GPU's half millisecond a kernel */
    struct lac_demo_run run = simulated(&p);
    int64_t mean_ns =
        (run.step_start_ns[p.recorded_steps] - run.step_start_ns[0]) / p.recorded_steps;
    ck_assert_int_gt(mean_ns, 400000000);
    ck_assert_double_eq_tol((double)run.host_ns_per_step, (double)mean_ns, 0.01 * (double)mean_ns);
    lac_demo_run_done(&run);
}
END_TEST

START_TEST(impossible_parameters_are_refused)
{
    struct lac_demo_pipeline good;
    struct lac_demo_run run;
    struct lac_error error = {0};
    lac_demo_pipeline_default(&good);
    struct lac_demo_pipeline p = good;
    p.workers = 0;
    ck_assert_int_eq(lac_demo_simulate(&p, &run, &error), LAC_ERR_MISUSE);
    p = good;
    p.workers = LAC_DEMO_WORKERS_MAX + 1;
    ck_assert_int_eq(lac_demo_simulate(&p, &run, &error), LAC_ERR_MISUSE);
    p = good;
    p.recorded_steps = 0;
    ck_assert_int_eq(lac_demo_simulate(&p, &run, &error), LAC_ERR_MISUSE);
    p = good;
    p.compute_ns = 1000; /* less than the pauses between its kernels */
    ck_assert_int_eq(lac_demo_simulate(&p, &run, &error), LAC_ERR_MISUSE);
    ck_assert_uint_gt(strlen(error.message), 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demo");
    TCase *series = tcase_create("series");
    tcase_set_timeout(series, 120);
    tcase_add_loop_test(series, each_stage_takes_the_step_time_of_the_table, 0, 6);
    tcase_add_loop_test(series, the_best_change_of_each_stage_gives_the_next_one, 0, 6);
    tcase_add_loop_test(series, idle_by_construction_sums_to_idle, 0, 6);
    tcase_add_loop_test(series, fetches_take_exactly_what_the_story_says, 0, 6);
    tcase_add_loop_test(series, copies_block_as_their_memory_says, 0, 6);
    tcase_add_test(series, a_step_waits_for_its_own_batch_on_the_copy_stream);
    tcase_add_loop_test(series, layout_kernels_run_only_in_contiguous_stages, 0, 6);
    TCase *files = tcase_create("files");
    tcase_set_timeout(files, 120);
    tcase_add_loop_test(files, the_trace_is_json_that_says_it_is_simulated, 0, 6);
    tcase_add_loop_test(files, the_same_seed_writes_the_same_bytes, 0, 6);
    tcase_add_test(files, the_series_is_written_whole_with_its_truth);
    tcase_add_test(files, a_folder_that_cannot_be_made_is_an_error_that_names_it);
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 120);
    tcase_add_test(parts, the_event_queue_gives_back_in_order);
    tcase_add_test(parts, a_full_launch_queue_blocks_the_call);
    tcase_add_test(parts, no_random_pipeline_breaks_the_rules);
    tcase_add_test(parts, a_host_that_cannot_keep_up_decides_the_step);
    tcase_add_test(parts, impossible_parameters_are_refused);
    suite_add_tcase(suite, series);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, parts);
    return check_main(suite);
}
