/* Why batches come late: each verdict with a trace of its own, and one in which it would be naive. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/loader_sheet.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void diagnose(const char *metadata)
{
    sheet_diagnose(metadata, 8);
}

/** The finding that takes the wait is this one, first of all, and no other about loading stands
 *  beside it. */
static const struct lac_finding *first_is(const char *id)
{
    ck_assert_uint_gt(analysis->finding_count, 0);
    const struct lac_finding *first = &analysis->findings[0];
    ck_assert_msg(strcmp(first->id, id) == 0, "first is %s: %s", first->id, first->why);
    ck_assert_str_eq(analysis->verdict.cause, "data_wait");
    if (strcmp(id, "input-starvation") != 0) {
        ck_assert_ptr_null(sheet_finding("input-starvation"));
        ck_assert_str_eq(analysis->loading.verdict, id);
    }
    sheet_check_grammar(first);
    return first;
}

static void says(const char *text, const char *what)
{
    ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in \"%s\"", what, text);
}

#define CORES_8 "{\"lacuna\":{\"host\":{\"cores_online\":64,\"cores_allowed\":\"0-7\"}}}"
#define CORES_2 "{\"lacuna\":{\"host\":{\"cores_online\":64,\"cores_allowed\":\"0-1\"}}}"
#define CORES_4 "{\"lacuna\":{\"host\":{\"cores_online\":64,\"cores_allowed\":\"0-3\"}}}"

/* -- taking turns ----------------------------------------------------------------------------- */

START_TEST(a_lock_around_computing_is_seen_by_the_one_core_that_it_leaves)
{
    struct loop loop = {.steps = 80,
                        .workers = 4,
                        .step = 5e3,
                        .fetch = 20e3,
                        .fetch_cpu = 19.5e3,
                        .is_locked = true};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("workers-serialized");
    says(finding->change, "More workers won't help");
    says(finding->why, "of 8 cores");
    says(finding->wrong_if, "num_workers=1");
    /* without the lock, four workers make one each 20 ms: the step's own 5 ms are the limit */
    ck_assert(fabs((double)finding->step_mid_ns - 5.2e6) < 0.5e6);
    ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
}
END_TEST

START_TEST(one_worker_at_a_time_is_seen_by_fetches_that_never_overlap)
{
    struct loop loop = {.steps = 60,
                        .workers = 3,
                        .step = 8e3,
                        .fetch = 15e3,
                        .fetch_cpu = -1.0,
                        .shows_turns = true};
    loop_draw(&loop);
    diagnose(NULL);
    const struct lac_finding *finding = first_is("workers-serialized");
    says(finding->why, "only one makes a batch");
    ck_assert(fabs((double)finding->step_mid_ns - 8.0e6) < 0.3e6);
}
END_TEST

/** Items of 5 ms under one lock, first come first served; workers start one after the other. */
static void draw_locked_items(int batches, int workers, int items)
{
    loop_begin();
    double at[LOOP_WORKERS_MAX];
    double began[LOOP_WORKERS_MAX];
    int left[LOOP_WORKERS_MAX];
    int batch_of[LOOP_WORKERS_MAX];
    int next = 0;
    int made = 0;
    double lock = 0.0;
    for (int w = 0; w < workers; w++) {
        at[w] = w * 60e3;
        left[w] = items;
        batch_of[w] = next++;
        began[w] = at[w];
    }
    while (made < batches) {
        int w = 0;
        for (int k = 1; k < workers; k++) {
            w = at[k] < at[w] ? k : w;
        }
        double start = at[w];
        lock = fmax(lock, start) + loop_jittered(5e3);
        sheet_add("w%d part %.3f %.3f loader.item batch=%d worker=%d cpu=40\n", w, start,
                  lock - start, batch_of[w], w);
        at[w] = lock + 5.0;
        if (--left[w] == 0) {
            sheet_add("w%d fetch %.3f %.3f batch=%d worker=%d cpu=400\n", w, began[w] - 1.0,
                      at[w] - began[w], batch_of[w], w);
            loop_ready(batch_of[w], at[w] + 10.0);
            batch_of[w] = next++;
            began[w] = at[w] + 2.0;
            at[w] += 3.0;
            left[w] = items;
            made++;
        }
    }
}

START_TEST(a_lock_around_waiting_is_seen_by_how_items_grow_with_company)
{
    draw_locked_items(64, 3, 8);
    struct loop loop = {.steps = 60, .workers = 3, .step = 10e3};
    for (int i = 0; i < loop.steps; i++) {
        loop_step(&loop, i, i);
    }
    diagnose(NULL);
    const struct lac_finding *finding = first_is("workers-serialized");
    says(finding->why, "run serialized");
    says(finding->why, "one item takes 5 ms alone");
}
END_TEST

START_TEST(workers_that_wait_side_by_side_do_not_take_turns)
{
    /* as slow, as little computing, as many workers: but they wait for something at once */
    struct loop loop = {.steps = 80, .workers = 4, .step = 5e3, .fetch = 80e3, .fetch_cpu = 8e3};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("input-starvation");
    says(finding->brief, "num_workers=");
    ck_assert_int_gt(analysis->loader.recommended_num_workers, 10);
}
END_TEST

START_TEST(a_slow_disk_is_no_lock)
{
    struct loop loop = {.steps = 80,
                        .workers = 4,
                        .step = 5e3,
                        .fetch = 20e3,
                        .fetch_cpu = 18e3,
                        .is_locked = true};
    loop_draw(&loop);
    loop_sample_workers(&loop, 20.0, 1.0, 60.0); /* 240 MB/s from storage */
    diagnose(CORES_8);
    ck_assert_ptr_null(sheet_finding("workers-serialized"));
}
END_TEST

/* -- cores ------------------------------------------------------------------------------------ */

START_TEST(workers_that_wait_for_cores_want_cores_not_company)
{
    struct loop loop = {.steps = 80, .workers = 8, .step = 10e3, .fetch = 160e3, .fetch_cpu = 75e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 48.0, 48.0, 0.0);
    diagnose(CORES_4);
    const struct lac_finding *finding = first_is("cpu-oversubscription");
    says(finding->why, "8 workers share 4 allowed cores and wait 48 % of their time for one");
    says(finding->change, "More workers won't help");
    says(finding->change, "#SBATCH --cpus-per-task=");
    ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
    ck_assert(fabs(analysis->loading.ready_pct - 48.0) < 2.0);
}
END_TEST

START_TEST(a_training_on_the_processor_takes_its_share_of_the_cores)
{
    /* on two cores 30 + 8 ms of work a step cannot take less than 19 ms, with any workers */
    struct loop loop = {.steps = 80,
                        .workers = 1,
                        .step = 8e3,
                        .fetch = 30e3,
                        .fetch_cpu = 30e3,
                        .has_no_gpu = true};
    loop_draw(&loop);
    diagnose(CORES_2);
    const struct lac_finding *finding = first_is("input-starvation");
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 2);
    ck_assert(fabs((double)finding->step_mid_ns - 19e6) < 1e6);
}
END_TEST

START_TEST(threads_inside_workers_are_told_from_workers)
{
    struct loop loop = {.steps = 80, .workers = 4, .step = 10e3, .fetch = 80e3, .fetch_cpu = 30e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 40.0, 50.0, 0.0);
    for (double at = 100e3; at < loop_now(); at += 100e3) {
        for (int w = 0; w < 4; w++) {
            for (int k = 0; k < 3; k++) { /* three more threads in each worker's process */
                sheet_add("w%d count %.0f %.3f openmp 77%d: on a core (%%)\n", w, at, 20.0, k);
            }
        }
    }
    diagnose(CORES_4);
    const struct lac_finding *finding = first_is("cpu-oversubscription");
    says(finding->why, "up to 4 threads each on 4 cores");
    says(finding->change, "torch.set_num_threads(1)");
    ck_assert(finding->gain_high_pct - finding->gain_low_pct >
              20.0); /* what they do is not known */
}
END_TEST

/* The fetching thread waits for its own threads at a barrier: it is they who wait for a core. */
START_TEST(a_fetch_that_waits_for_threads_that_wait_for_a_core)
{
    struct loop loop = {.steps = 80, .workers = 3, .step = 20e3, .fetch = 160e3, .fetch_cpu = 20e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 12.0, 12.0, 0.0);
    for (double at = 100e3; at < loop_now(); at += 100e3) {
        for (int w = 0; w < 3; w++) {
            for (int k = 0; k < 5; k++) {
                double wobble = (double)((int)(at / 100e3) % 2) * 0.01;
                sheet_add("w%d count %.0f %.3f openmp 77%d: on a core (%%)\n", w, at, 6.0 + wobble,
                          k);
                sheet_add("w%d count %.0f %.3f openmp 77%d: waiting for a core (%%)\n", w, at,
                          28.0 + wobble, k);
            }
        }
    }
    diagnose(CORES_2);
    const struct lac_finding *finding = first_is("cpu-oversubscription");
    says(finding->why, "1.4 wait for one");
    says(finding->change, "torch.set_num_threads(1)");
    ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
}
END_TEST

START_TEST(more_workers_than_cores_is_fine_while_they_wait_for_something_else)
{
    struct loop loop = {.steps = 80, .workers = 8, .step = 10e3, .fetch = 160e3, .fetch_cpu = 8e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 5.0, 1.0, 0.0);
    diagnose(CORES_4);
    first_is("input-starvation");
    ck_assert_int_gt(analysis->loader.recommended_num_workers, 8);
}
END_TEST

START_TEST(a_quota_that_runs_out_is_said_before_all_else)
{
    struct loop loop = {.steps = 80, .workers = 8, .step = 10e3, .fetch = 160e3, .fetch_cpu = 75e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 48.0, 48.0, 0.0);
    for (double at = 100e3; at < loop_now(); at += 100e3) {
        sheet_add("host count %.0f 7 periods throttled (/s)\n", at);
        sheet_add("host count %.0f 55 cgroup throttled (%%)\n", at);
    }
    diagnose("{\"lacuna\":{\"host\":{\"cores_online\":64,\"cores_allowed\":\"0-63\","
             "\"cpu_quota_cores\":\"4.00\"}}}");
    const struct lac_finding *finding = first_is("cpu-throttled");
    says(finding->why, "quota of 4 cores ran out in 7.0 of 10 periods per second");
    says(finding->change, "docker run --cpus=");
}
END_TEST

START_TEST(a_quota_that_is_hardly_touched_is_none)
{
    struct loop loop = {.steps = 80, .workers = 2, .step = 10e3, .fetch = 60e3, .fetch_cpu = 5e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 8.0, 1.0, 0.0);
    sheet_add(
        "host count 200000 1 periods throttled (/s)\nhost count 300000 0 periods throttled (/s)\n");
    diagnose("{\"lacuna\":{\"host\":{\"cores_allowed\":\"0-63\",\"cpu_quota_cores\":\"4.00\"}}}");
    first_is("input-starvation");
}
END_TEST

START_TEST(a_quota_as_the_recorder_writes_it_bounds_the_cores)
{
    struct loop loop = {.steps = 40, .workers = 2, .step = 10e3, .fetch = 60e3, .fetch_cpu = 50e3};
    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"host\":{\"cores_allowed\":\"0-63\",\"cpu_quota_cores\":\"2.50\"}}}");
    ck_assert_int_eq(analysis->loading.allowed_cores, 2);
}
END_TEST

START_TEST(a_step_of_the_job_without_its_cores_gets_the_line_that_gives_them_back)
{
    struct loop loop = {.steps = 80, .workers = 8, .step = 10e3, .fetch = 160e3, .fetch_cpu = 18e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 12.0, 85.0, 0.0);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":8},\"host\":{\"cores_online\":64,"
             "\"cores_allowed\":\"5\",\"SLURM_CPUS_PER_TASK\":8}}}");
    const struct lac_finding *finding = first_is("affinity");
    says(finding->change, "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK");
    says(finding->why, "pinned to 1 core; the task was given 8");
    /* the same mask, but the workers hardly compute: it is not what they wait for */
    loop.fetch_cpu = 1e3;
    loop_draw(&loop);
    loop_sample_workers(&loop, 1.0, 0.5, 0.0);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":8},\"host\":{\"cores_online\":64,"
             "\"cores_allowed\":\"5\",\"SLURM_CPUS_PER_TASK\":8}}}");
    first_is("input-starvation");
}
END_TEST

START_TEST(a_process_that_narrowed_its_own_mask_is_told_so)
{
    struct loop loop = {.steps = 80, .workers = 8, .step = 10e3, .fetch = 160e3, .fetch_cpu = 18e3};
    loop_draw(&loop);
    loop_sample_workers(&loop, 12.0, 85.0, 0.0);
    diagnose("{\"lacuna\":{\"settings\":{\"cpu_affinity\":1},\"host\":{\"cores_online\":64,"
             "\"cores_allowed\":\"0-15\"}}}");
    const struct lac_finding *finding = first_is("affinity");
    says(finding->why, "it was started with 16");
    says(finding->change, "os.sched_setaffinity(0, ");
}
END_TEST

/* -- storage ---------------------------------------------------------------------------------- */

START_TEST(reading_that_waits_is_storage)
{
    struct loop loop = {.steps = 60,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 60e3,
                        .fetch_cpu = 8e3,
                        .read = 50e3,
                        .read_cpu = 3e3,
                        .files = 2,
                        .file_bytes = 4000000};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("storage-latency");
    says(finding->why, "Reading takes 83 % of a batch");
    says(finding->why, "2 files of 4 MB");
    says(finding->change, "num_workers=");
    says(finding->change, "local disk");
    ck_assert_int_gt(analysis->loader.recommended_num_workers, 2);
}
END_TEST

START_TEST(many_small_files_are_named)
{
    struct loop loop = {.steps = 60,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 60e3,
                        .fetch_cpu = 8e3,
                        .read = 50e3,
                        .read_cpu = 3e3,
                        .files = 8,
                        .file_bytes = 30000};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("small-files");
    says(finding->why, "8 files of 30 KB");
    says(finding->change, "shards");
}
END_TEST

START_TEST(files_that_come_from_memory_are_no_slow_disk)
{
    struct loop loop = {.steps = 60,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 60e3,
                        .fetch_cpu = 57e3,
                        .read = 50e3,
                        .read_cpu = 48e3,
                        .files = 8,
                        .file_bytes = 30000};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("input-starvation");
    ck_assert_ptr_null(strstr(finding->why, "storage"));
    ck_assert_str_eq(analysis->loading.verdict, "worker-bound");
}
END_TEST

START_TEST(what_a_batch_spends_its_time_on_is_own_time)
{
    sheet_blank();
    for (int i = 0; i < 20; i++) {
        double t = i * 30000.0;
        sheet_add("main range %.0f 30000 ProfilerStep#%d\nmain wait %.0f 20000 batch=%d\n", t, i, t,
                  i);
        sheet_add("main op %.0f 20 autograd::engine::evaluate_function: AddmmBackward0\n",
                  t + 20005);
        sheet_add("w0 fetch %.0f 29900 batch=%d worker=0 cpu=25000\n", t + 50, i);
        sheet_add("w0 part %.0f 29000 loader.item batch=%d worker=0 cpu=24900\n", t + 60, i);
        sheet_add("w0 part %.0f 20000 loader.decode batch=%d worker=0 cpu=19000\n", t + 100, i);
        sheet_add("w0 part %.0f 5000 loader.read batch=%d worker=0 cpu=500 bytes=1000\n", t + 200,
                  i);
    }
    diagnose(NULL);
    const struct lac_loading_facts *facts = &analysis->loading;
    ck_assert_uint_eq(facts->batch_count, 20);
    ck_assert_uint_eq(facts->part_count, 4);
    ck_assert_str_eq(facts->parts[0].name, "loader.decode");
    ck_assert_str_eq(facts->parts[0].stage, "decode");
    ck_assert_int_eq(facts->parts[0].own_ns, 20 * (int64_t)15000000);
    ck_assert_int_eq(facts->parts[0].cpu_ns, 20 * (int64_t)18500000);
    ck_assert_int_eq(facts->parts[0].bytes, LAC_UNKNOWN_NS);
    const struct lac_loading_part *read = &facts->parts[2];
    ck_assert_str_eq(read->name, "loader.read");
    ck_assert_int_eq(read->own_ns, 20 * (int64_t)5000000);
    ck_assert_int_eq(read->bytes, 20 * 1000);
    int64_t sum_ns = 0;
    for (uint32_t p = 0; p < facts->part_count; p++) {
        sum_ns += facts->parts[p].own_ns;
    }
    ck_assert_int_eq(sum_ns, 20 * (int64_t)29900000); /* the parts are the whole batch */
}
END_TEST

/* A worker stops recording parts that cost too much: what a batch takes is told of those before. */
START_TEST(batches_after_the_last_recorded_part_are_not_averaged_in)
{
    struct loop loop = {.steps = 60,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 60e3,
                        .fetch_cpu = 8e3,
                        .read = 50e3,
                        .read_cpu = 3e3,
                        .files = 8,
                        .file_bytes = 30000,
                        .parts_until = 16};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("small-files");
    says(finding->why, "Reading takes 83 % of a batch: 50 ms for 8 files of 30 KB");
    ck_assert_uint_eq(analysis->loading.batch_count, 16);
    int64_t sum_ns = 0;
    for (uint32_t p = 0; p < analysis->loading.part_count; p++) {
        sum_ns += analysis->loading.parts[p].own_ns;
    }
    ck_assert(llabs(sum_ns - 16 * (int64_t)60000000) < 30000000); /* a batch is 60 ms */
}
END_TEST

START_TEST(reads_in_the_training_process_are_named)
{
    sheet_blank();
    for (int i = 0; i < 20; i++) {
        double t = i * 30000.0;
        sheet_add("main range %.0f 30000 ProfilerStep#%d\nmain wait %.0f 20000 batch=%d\n", t, i, t,
                  i);
        sheet_add("main fetch %.0f 19900 batch=%d cpu=2000\n", t + 50, i);
        sheet_add("main part %.0f 18000 loader.read batch=%d cpu=600 bytes=9000000\n", t + 100, i);
        sheet_add("main op %.0f 20 autograd::engine::evaluate_function: AddmmBackward0\n",
                  t + 20005);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":0}}}");
    const struct lac_finding *finding = first_is("storage-latency");
    says(finding->why, "Reading takes 90 % of a batch");
    says(finding->change, "num_workers=");
}
END_TEST

/* -- the queue -------------------------------------------------------------------------------- */

START_TEST(slow_samples_hold_up_the_queue)
{
    struct loop loop = {.steps = 160,
                        .workers = 4,
                        .step = 10e3,
                        .fetch = 20e3,
                        .fetch_cpu = 19e3,
                        .slow = 400e3,
                        .slow_every = 40};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("slow-samples");
    says(finding->why, "Batches are delivered in order");
    ck_assert(finding->gain_mid_pct > 10.0);
    /* all batches as slow as the mean of those: no tail, but too few workers */
    loop =
        (struct loop){.steps = 160, .workers = 2, .step = 10e3, .fetch = 30e3, .fetch_cpu = 29e3};
    loop_draw(&loop);
    diagnose(CORES_8);
    first_is("input-starvation");
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 4);
}
END_TEST

START_TEST(a_short_tail_is_absorbed_by_more_batches_ahead)
{
    struct loop loop = {.steps = 160,
                        .workers = 4,
                        .step = 10e3,
                        .fetch = 20e3,
                        .fetch_cpu = 19e3,
                        .slow = 160e3,
                        .slow_every = 21};
    loop_draw(&loop);
    diagnose(CORES_8);
    const struct lac_finding *finding = first_is("slow-samples");
    says(finding->change, "prefetch_factor=");
    ck_assert_ptr_null(strstr(finding->change, "in_order")); /* this release has no such argument */
    loop_draw(&loop);
    diagnose(
        "{\"lacuna\":{\"settings\":{\"in_order\":true},\"host\":{\"cores_allowed\":\"0-7\"}}}");
    says(first_is("slow-samples")->change, "in_order=False");
}
END_TEST

START_TEST(workers_started_for_every_epoch_are_named)
{
    struct loop loop = {.steps = 80,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 10e3,
                        .fetch_cpu = 9e3,
                        .epoch = 16,
                        .start = 300e3};
    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":false,"
             "\"loader_at\":\"train.py:7\"},\"host\":{\"cores_allowed\":\"0-7\"}}}");
    const struct lac_finding *finding = first_is("worker-respawn");
    says(finding->change, "persistent_workers=True");
    says(finding->why, "4 epochs began in this trace");
    ck_assert_str_eq(finding->where, "train.py:7");
    ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
}
END_TEST

/* As a real job ends an epoch: one more batch is requested, which does not come. The device's step
 * before it lasts until the first one of the next epoch. */
START_TEST(a_request_in_vain_does_not_hide_the_start_of_workers)
{
    struct loop loop = {.steps = 80,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 10e3,
                        .fetch_cpu = 9e3,
                        .epoch = 16,
                        .start = 300e3,
                        .last_wait = 12e3};
    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":false},"
             "\"host\":{\"cores_allowed\":\"0-7\"}}}");
    ck_assert(analysis->is_paced_by_device);
    says(first_is("worker-respawn")->why, "4 epochs began in this trace");
    ck_assert_int_gt(analysis->step_mean_ns, 33000000); /* 20 ms, and 310 ms every 16 steps */
    ck_assert_int_lt(analysis->step_mean_ns, 43000000);
}
END_TEST

/* forkserver: three seconds until a worker is there, at the beginning and for the one new epoch. More
 * of them are no faster there. */
START_TEST(workers_that_start_slowly_are_not_given_company)
{
    static const char *const settings[] = {
        "{\"lacuna\":{\"settings\":{\"num_workers\":2},\"host\":{\"cores_allowed\":\"0-7\"}}}",
        "{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":false}}}",
        "{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":true}}}"};
    struct loop loop = {.steps = 32,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 30e3,
                        .fetch_cpu = 1e3,
                        .epoch = 16,
                        .start = 3e6,
                        .has_no_gpu = true};

    loop_draw(&loop);
    diagnose(settings[_i]);
    ck_assert_ptr_null(sheet_finding("input-starvation"));
    if (_i < 2) { /* the processes are new ones: once is enough */
        const struct lac_finding *finding = first_is("worker-respawn");
        says(finding->change, "persistent_workers=True");
        says(finding->title, "The first batch of the next epoch is 3");
        says(finding->why, "1 epoch began in this trace");
        ck_assert(finding->gain_mid_pct < 60.0); /* the first start stays */
    }
}
END_TEST

/* Most of the waiting is for the start of workers, but the rest starves each step, too. */
START_TEST(starts_of_workers_do_not_hide_that_they_are_few)
{
    struct loop loop = {.steps = 96,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 60e3,
                        .fetch_cpu = 1e3,
                        .epoch = 48,
                        .start = 400e3,
                        .has_no_gpu = true};

    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":true},"
             "\"host\":{\"cores_allowed\":\"0-7\"}}}");
    const struct lac_finding *finding = first_is("input-starvation");
    ck_assert_int_eq(finding->workers, 5); /* by the mean, and none for the starts */
}
END_TEST

/* Played again, the first batch, which the mean step leaves out, makes every case longer than now. */
START_TEST(a_late_first_batch_leaves_the_cases_in_order)
{
    struct loop loop = {.steps = 96,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 44e3,
                        .fetch_cpu = 1e3,
                        .start = 3e6,
                        .has_no_gpu = true};

    loop_draw(&loop);
    diagnose(CORES_8); /* which checks the analysis */
    const struct lac_finding *finding = first_is("input-starvation");
    ck_assert_int_le(finding->step_low_ns, finding->step_mid_ns);
}
END_TEST

START_TEST(workers_that_stay_are_not_to_be_made_to_stay)
{
    /* as late at every epoch, but the workers are the same: something else is slow there */
    struct loop loop = {.steps = 80,
                        .workers = 2,
                        .step = 20e3,
                        .fetch = 10e3,
                        .fetch_cpu = 9e3,
                        .epoch = 16,
                        .start = 300e3};
    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":true}}}");
    ck_assert_ptr_null(sheet_finding("worker-respawn"));
}
END_TEST

START_TEST(batches_that_lie_about_are_handed_over_slowly)
{
    struct loop loop = {
        .steps = 60, .workers = 4, .step = 10e3, .fetch = 4e3, .fetch_cpu = 3e3, .hand_over = 0.0};
    /* each batch is ready long before, but taking it lasts 12 ms */
    loop_begin();
    for (int i = 0; i < 60; i++) {
        double begin = loop_now();
        sheet_add("w%d fetch %.3f 4000 batch=%d worker=%d cpu=3000\n", i % 4,
                  fmax(0.0, begin - 9e3), i, i % 4);
        sheet_add("w%d part %.3f 1500 loader.put batch=%d worker=%d cpu=1400\n", i % 4,
                  fmax(4e3, begin - 5e3), i, i % 4);
        loop_ready(i, begin + 12e3);
        loop_step(&loop, i, i);
    }
    diagnose(CORES_8);
    ck_assert_str_eq(analysis->loading.verdict, "worker-hand-over"); /* without syncs it hides */
    const struct lac_finding *finding = sheet_finding("worker-hand-over");
    says(finding->why, "is already fetched");
    says(finding->why, "A worker packs a batch in 1.5 ms");
    says(finding->change, "torch.stack");
}
END_TEST

/* -- padding ---------------------------------------------------------------------------------- */

/** Steps of 10 ms, each with a batch of 1000 positions of which `padding` carry nothing. */
static void draw_counted(int padding)
{
    struct loop loop = {.steps = 40, .workers = 2, .step = 10e3, .fetch = 4e3, .fetch_cpu = 3e3};
    loop_begin();
    for (int i = 0; i < loop.steps; i++) {
        double begin = loop_now();
        double fetch = fmax(0.0, begin - 9e3);
        sheet_add("w%d fetch %.3f 4000 batch=%d worker=%d cpu=3000\n", i % 2, fetch, i, i % 2);
        sheet_add("w%d part %.3f 20 loader.tokens batch=%d worker=%d bytes=1000\n", i % 2,
                  fetch + 3e3, i, i % 2);
        sheet_add("w%d part %.3f 1 loader.padding batch=%d worker=%d bytes=%d\n", i % 2,
                  fetch + 3e3 + 10.0, i, i % 2, padding);
        loop_ready(i, begin + 1e3);
        loop_step(&loop, i, i);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"batch_size\":8}}}");
}

START_TEST(padding_that_was_counted_is_said_and_tokens_are_the_rate)
{
    draw_counted(600);
    ck_assert(fabs(analysis->padding_pct - 60.0) < 0.01);
    ck_assert_str_eq(analysis->throughput_unit, "tokens");
    double expected = 400.0 * 1e9 / (double)analysis->step_mean_ns;
    ck_assert(fabs(analysis->throughput_per_s - expected) < 1e-3 * expected);
    ck_assert_int_eq(analysis->batch_size, 8);
    const struct lac_finding *finding = sheet_finding("padding-waste");
    ck_assert_ptr_nonnull(finding);
    says(finding->title, "60 %");
    says(finding->why, "40 batches, 600 of 1000 positions");
    for (uint32_t p = 0; p < analysis->loading.part_count; p++) {
        ck_assert_str_ne(analysis->loading.parts[p].name, "loader.tokens");
        ck_assert_str_ne(analysis->loading.parts[p].name, "loader.padding");
    }
}
END_TEST

START_TEST(little_padding_is_no_finding)
{
    draw_counted(30);
    ck_assert(fabs(analysis->padding_pct - 3.0) < 0.01);
    ck_assert_ptr_null(sheet_finding("padding-waste"));
}
END_TEST

START_TEST(a_count_that_cannot_be_is_not_used)
{
    draw_counted(1001);
    ck_assert(isnan(analysis->padding_pct));
    ck_assert_str_eq(analysis->throughput_unit, "samples");
}
END_TEST

/* -- room ------------------------------------------------------------------------------------- */

START_TEST(batches_that_do_not_fit_are_said_before_workers)
{
    struct loop loop = {.steps = 60,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 60e3,
                        .fetch_cpu = 30e3,
                        .copy_bytes = 38e6};
    loop_draw(&loop);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2},\"host\":{\"cores_allowed\":\"0-15\","
             "\"dev_shm_free_bytes\":67108864}}}");
    const struct lac_finding *finding = first_is("input-starvation");
    says(finding->change, "won't help until shared memory");
    says(finding->change, "--shm-size=");
    says(finding->change, "7 workers x 2 batches x 38 MB");
    loop_draw(&loop); /* room for some of them */
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2},\"host\":{\"cores_allowed\":\"0-15\","
             "\"dev_shm_free_bytes\":400000000}}}");
    finding = first_is("input-starvation");
    says(finding->brief, "num_workers=5");
    says(finding->change, "capped by memory for their batches");
    loop_draw(&loop); /* room enough: the arithmetic is told */
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2},\"host\":{\"cores_allowed\":\"0-15\","
             "\"dev_shm_free_bytes\":32000000000}}}");
    finding = first_is("input-starvation");
    says(finding->brief, "num_workers=7");
    says(finding->costs, "532 MB of the 32 GB free in /dev/shm");
}
END_TEST

START_TEST(a_job_on_the_other_socket_than_its_gpu_is_told_so)
{
    /* a pinned copy of 8 ms before 20 ms of computing, on a stream */
    for (int round = 0; round < 3; round++) {
        sheet_blank();
        for (int i = 0; i < 12; i++) {
            double t = i * 30000.0;
            double copy =
                round == 2 ? 300.0 : 8000.0; /* in the last one, copies hardly take time */
            sheet_add("main range %.0f 30000 ProfilerStep#%d\n", t, i);
            sheet_add("main call %.0f 5 #%d cudaMemcpyAsync\n", t + 10, 2 * i + 1);
            sheet_add("gpu0.7 copy %.0f %.0f #%d HtoD pinned 60000000\n", t + 20, copy, 2 * i + 1);
            sheet_add("main call %.0f 5 #%d cudaLaunchKernel\n", t + 30, 2 * i + 2);
            sheet_add("gpu0.7 kernel %.0f %.0f #%d a_backward\n", t + 21 + copy, 29900 - copy,
                      2 * i + 2);
            sheet_add("main call %.0f 29800 cudaStreamSynchronize\n", t + 100);
        }
        diagnose(round == 1 ? "{\"lacuna\":{\"host\":{\"cores_allowed\":\"16-31,40\","
                              "\"gpu_local_cores\":\"32-47\"}}}"
                            : "{\"lacuna\":{\"host\":{\"cores_allowed\":\"0-15\","
                              "\"gpu_local_cores\":\"32-47,96-111\"}}}");
        const struct lac_finding *finding = sheet_finding("numa-remote");
        if (round == 0) {
            ck_assert_ptr_nonnull(finding);
            says(finding->change, "numactl --physcpubind=32-47,96-111 --localalloc");
            ck_assert(finding->gain_low_pct < 0.1 && finding->cost_pct > 26.0);
        } else { /* one core is enough to be near; and what is not waited for costs nothing */
            ck_assert_ptr_null(finding);
        }
    }
}
END_TEST

START_TEST(the_change_is_written_as_the_framework_wants_it)
{
    struct loop loop = {.steps = 60, .workers = 2, .step = 10e3, .fetch = 60e3, .fetch_cpu = 30e3};
    loop_draw(&loop);
    static const char *const cases[][2] = {
        {"HF Trainer", "TrainingArguments(..., dataloader_num_workers=7)"},
        {"Lightning", "DataLoader(..., num_workers=7)   # in train_dataloader()"},
        {"Megatron", "--num-workers 7"},
        {"Keras", "num_parallel_calls=7"},
        {"Accelerate", "DataLoader(..., num_workers=7)"}, /* which has no switch of its own */
        {"PyTorch", "DataLoader(..., num_workers=7)"}};
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        char metadata[128];
        (void)snprintf(metadata, sizeof(metadata),
                       "{\"lacuna\":{\"settings\":{\"framework\":\"%s\"}}}", cases[i][0]);
        diagnose(metadata);
        says(first_is("input-starvation")->change, cases[i][1]);
    }
}
END_TEST

START_TEST(data_in_memory_is_not_worth_a_worker)
{
    for (int round = 0; round < 2; round++) {
        int fetch = round == 0 ? 400 : 4000; /* us: at once, or worth a worker */
        sheet_blank();
        for (int i = 0; i < 20; i++) {
            double t = i * (fetch + 1600.0);
            sheet_add("main range %.0f %d ProfilerStep#%d\n", t, fetch + 1600, i);
            sheet_add("main wait %.0f %d batch=%d\n", t, fetch + 20, i);
            sheet_add("main fetch %.0f %d batch=%d cpu=%d\n", t + 10, fetch, i, fetch - 10);
            sheet_add("main op %.0f 20 autograd::engine::evaluate_function: AddmmBackward0\n",
                      t + fetch + 100);
        }
        diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":0}}}");
        const struct lac_finding *finding = first_is("input-starvation");
        ck_assert_str_eq(analysis->loading.verdict, "in-process");
        if (round == 0) {
            says(finding->change, "won't help: the data is in memory");
            ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
        } else {
            says(finding->change, "num_workers=");
        }
    }
}
END_TEST

START_TEST(a_wait_behind_a_value_that_is_read_names_it)
{
    sheet_blank();
    for (int i = 0; i < 20; i++) {
        double t = i * 10000.0;
        sheet_add("main range %.0f 10000 ProfilerStep#%d\nmain wait %.0f 4000 batch=%d\n", t, i, t,
                  i);
        sheet_add("main fetch %.0f 3900 batch=%d cpu=3800\n", t + 50, i);
        sheet_add("main call %.0f 5 #%d cudaLaunchKernel\n", t + 4100, i + 1);
        sheet_add("gpu0.7 kernel %.0f 5500 #%d a_backward\n", t + 4110, i + 1);
        sheet_add("main op %.0f 5000 aten::item\n", t + 4900);
        sheet_add("main call %.0f 4700 cudaStreamSynchronize\n", t + 4950);
        sheet_add("main op %.0f 20 Optimizer.step#SGD.step\n", t + 9920);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":0}}}");
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    says(finding->why, "aten::item synchronizes just before it");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_loading");
    TCase *tests = tcase_create("why batches are late");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, a_lock_around_computing_is_seen_by_the_one_core_that_it_leaves);
    tcase_add_test(tests, one_worker_at_a_time_is_seen_by_fetches_that_never_overlap);
    tcase_add_test(tests, a_lock_around_waiting_is_seen_by_how_items_grow_with_company);
    tcase_add_test(tests, workers_that_wait_side_by_side_do_not_take_turns);
    tcase_add_test(tests, a_slow_disk_is_no_lock);
    tcase_add_test(tests, workers_that_wait_for_cores_want_cores_not_company);
    tcase_add_test(tests, a_training_on_the_processor_takes_its_share_of_the_cores);
    tcase_add_test(tests, threads_inside_workers_are_told_from_workers);
    tcase_add_test(tests, a_fetch_that_waits_for_threads_that_wait_for_a_core);
    tcase_add_test(tests, more_workers_than_cores_is_fine_while_they_wait_for_something_else);
    tcase_add_test(tests, a_quota_that_runs_out_is_said_before_all_else);
    tcase_add_test(tests, a_quota_that_is_hardly_touched_is_none);
    tcase_add_test(tests, a_quota_as_the_recorder_writes_it_bounds_the_cores);
    tcase_add_test(tests, a_step_of_the_job_without_its_cores_gets_the_line_that_gives_them_back);
    tcase_add_test(tests, a_process_that_narrowed_its_own_mask_is_told_so);
    tcase_add_test(tests, reading_that_waits_is_storage);
    tcase_add_test(tests, many_small_files_are_named);
    tcase_add_test(tests, files_that_come_from_memory_are_no_slow_disk);
    tcase_add_test(tests, what_a_batch_spends_its_time_on_is_own_time);
    tcase_add_test(tests, batches_after_the_last_recorded_part_are_not_averaged_in);
    tcase_add_test(tests, reads_in_the_training_process_are_named);
    tcase_add_test(tests, slow_samples_hold_up_the_queue);
    tcase_add_test(tests, a_short_tail_is_absorbed_by_more_batches_ahead);
    tcase_add_test(tests, workers_started_for_every_epoch_are_named);
    tcase_add_test(tests, a_request_in_vain_does_not_hide_the_start_of_workers);
    tcase_add_loop_test(tests, workers_that_start_slowly_are_not_given_company, 0, 3);
    tcase_add_test(tests, starts_of_workers_do_not_hide_that_they_are_few);
    tcase_add_test(tests, a_late_first_batch_leaves_the_cases_in_order);
    tcase_add_test(tests, workers_that_stay_are_not_to_be_made_to_stay);
    tcase_add_test(tests, batches_that_lie_about_are_handed_over_slowly);
    tcase_add_test(tests, padding_that_was_counted_is_said_and_tokens_are_the_rate);
    tcase_add_test(tests, little_padding_is_no_finding);
    tcase_add_test(tests, a_count_that_cannot_be_is_not_used);
    tcase_add_test(tests, batches_that_do_not_fit_are_said_before_workers);
    tcase_add_test(tests, the_change_is_written_as_the_framework_wants_it);
    tcase_add_test(tests, a_wait_behind_a_value_that_is_read_names_it);
    tcase_add_test(tests, data_in_memory_is_not_worth_a_worker);
    tcase_add_test(tests, a_job_on_the_other_socket_than_its_gpu_is_told_so);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
