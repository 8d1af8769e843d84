/* Random training loops: what no loop may ever do, and that their truth is one. */

#include "analysis/model/status.h"
#include "server/demo/pipeline.h"
#include "tests/simulator/random_loop.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/train_loop.h"
#include "tests/support/check_main.h"
#include "tests/support/demo_rows.h"

#include <check.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEDS = 30 };

static struct lac_demo_scenario drawn(uint64_t seed, int how_many)
{
    struct lac_demo_scenario scenario;
    lac_demo_scenario_draw(seed, how_many, false, &scenario);
    return scenario;
}

/* A small loop in order: 60 kernels, 30 ms of the device, four workers, copies one batch ahead. */
static struct lac_demo_scenario plain(void)
{
    return (struct lac_demo_scenario){
        .seed = 1,
        .warmup_steps = 40,
        .recorded_steps = 20,
        .has_hook = true,
        .batch_size = 32,
        .workers = 4,
        .prefetch_factor = 2,
        .fetch_ns = 40000000,
        .tail_factor = 1,
        .cores = LAC_DEMO_LOOP_WORKERS_MAX,
        .pin_ns = 200000,
        .copies = LAC_DEMO_COPIES_AHEAD,
        .batch_bytes = 12000000,
        .pageable_ns = 3000000,
        .pinned_ns = 1000000,
        .kernels = 60,
        .compute_ns = 30000000,
        .kernel_pause_ns = 1000,
        .op_ns = 8000,
        .launch_ns = 4000,
        .latency_ns = 4000,
        .tail_ns = 50000,
        .queue_max = 1024,
        .ranks = 1,
        .late_rank = -1,
    };
}

static struct lac_demo_loop_run ran(const struct lac_demo_scenario *scenario)
{
    struct lac_demo_loop_run run;
    ck_assert_int_eq(lac_demo_loop_run(scenario, 0, NULL, false, &run), LAC_OK);
    return run;
}

static int64_t mean_of(const struct lac_demo_scenario *scenario)
{
    struct lac_demo_loop_run run;
    ck_assert_int_eq(lac_demo_loop_run(scenario, 0, NULL, true, &run), LAC_OK);
    int64_t mean_ns = run.mean_ns;
    lac_demo_loop_done(&run);
    return mean_ns;
}

static int64_t end_of(const struct lac_demo_event *e)
{
    return e->start_ns + e->dur_ns;
}

static bool is_named(const struct lac_demo_event *e, const char *name)
{
    return strcmp(e->name, name) == 0;
}

static uint64_t count_of(const struct lac_demo_loop_run *run, const char *name)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        count += is_named(&run->events[i], name) ? 1 : 0;
    }
    return count;
}

/* ---- every loop ---- */

START_TEST(no_random_loop_breaks_the_rules)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lac_demo_scenario s = drawn(seed, 0);
        struct lac_demo_loop_run run = ran(&s);
        int64_t idle_ns = 0;
        for (int b = 0; b < LAC_DEMO_BLAME_COUNT_; b++) {
            ck_assert_int_ge(run.idle_ns[b], 0);
            idle_ns += run.idle_ns[b];
        }
        ck_assert_int_eq(idle_ns, run.span_ns - run.busy_ns);
        ck_assert_int_ge(run.mean_ns, 5000000);
        ck_assert_int_le(run.mean_ns, 4000000000);
        ck_assert_uint_gt(run.event_count, 1000);
        ck_assert_uint_lt(run.event_count, 70000);
        check_demo_rows(run.events, run.event_count);
        lac_demo_loop_done(&run);
    }
}
END_TEST

START_TEST(taking_a_cause_away_never_makes_the_step_longer)
{
    uint64_t worth_it = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lac_demo_scenario s = drawn(seed, 0);
        struct lac_demo_answer answer;
        ck_assert_int_eq(lac_demo_answer_of(&s, &answer), LAC_OK);
        for (int c = 0; c < LAC_DEMO_CAUSE_COUNT_; c++) {
            /* more workers on too few cores are the exception, and meant to be */
            bool is_meant = c == LAC_DEMO_CAUSE_WORKERS && s.cores < LAC_DEMO_LOOP_WORKERS_MAX;
            /* one batch ahead costs one of the batches that hide a slow sample, and two calls;
             * where data decides, where the window begins in the workers' cycle is worth a little
             */
            bool is_starved = answer.unstarved_ns < answer.mean_ns - answer.mean_ns / 20;
            int64_t part = c == LAC_DEMO_CAUSE_BLOCKING ? 15 : is_starved ? 25 : 100;
            int64_t slack_ns = answer.mean_ns / part;
            if (answer.is_possible[c] && !is_meant) {
                ck_assert_msg(answer.without_ns[c] <= answer.mean_ns + slack_ns,
                              "seed %d without %s: %lld, with: %lld", (int)seed,
                              lac_demo_cause_name((enum lac_demo_cause)c),
                              (long long)answer.without_ns[c], (long long)answer.mean_ns);
            }
        }
        worth_it += answer.best != LAC_DEMO_CAUSE_COUNT_ ? 1 : 0;
    }
    ck_assert_uint_gt(worth_it, SEEDS / 2); /* most loops have something to find, */
    ck_assert_uint_lt(worth_it, SEEDS);     /* some have not */
}
END_TEST

START_TEST(every_cause_is_drawn_and_one_is_one)
{
    uint64_t seen[LAC_DEMO_CAUSE_COUNT_] = {0};
    uint64_t names[4] = {0};
    uint64_t several = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct lac_demo_scenario s = drawn(seed, 1);
        ck_assert_int_le(__builtin_popcount(s.causes), 1);
        for (int c = 0; c < LAC_DEMO_CAUSE_COUNT_; c++) {
            seen[c] += s.causes >> c & 1u;
        }
        names[s.names]++;
        s = drawn(seed, 2);
        several += __builtin_popcount(s.causes) > 1 ? 1 : 0;
    }
    for (int c = 0; c < LAC_DEMO_CAUSE_LATE_RANK; c++) {
        ck_assert_uint_gt(seen[c], 8);
    }
    ck_assert_uint_gt(seen[LAC_DEMO_CAUSE_LOCK], 2); /* now and then instead of too few workers */
    for (int n = 0; n < 4; n++) {
        ck_assert_uint_gt(names[n], 8);
    }
    ck_assert_uint_gt(several, 200);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_loop)
{
    struct lac_demo_scenario s = drawn(31, 0);
    struct lac_demo_loop_run a = ran(&s);
    struct lac_demo_loop_run b = ran(&s);
    ck_assert_uint_eq(a.event_count, b.event_count);
    for (uint64_t i = 0; i < a.event_count; i++) {
        ck_assert_int_eq(a.events[i].start_ns, b.events[i].start_ns);
        ck_assert_int_eq(a.events[i].dur_ns, b.events[i].dur_ns);
    }
    s = drawn(32, 0);
    struct lac_demo_loop_run c = ran(&s);
    ck_assert_int_ne(a.mean_ns, c.mean_ns);
    lac_demo_loop_done(&a);
    lac_demo_loop_done(&b);
    lac_demo_loop_done(&c);
}
END_TEST

/* ---- one thing at a time ---- */

START_TEST(a_loop_in_order_is_as_fast_as_its_device)
{
    struct lac_demo_scenario s = plain();
    int64_t mean_ns = mean_of(&s);
    ck_assert_int_ge(mean_ns, 29900000);
    ck_assert_int_le(mean_ns, 30300000);
}
END_TEST

START_TEST(too_few_workers_decide_the_step)
{
    struct lac_demo_scenario s = plain();
    s.workers = 1;
    ck_assert_int_ge(mean_of(&s), 39900000);
    s.workers = 2;
    ck_assert_int_le(mean_of(&s), 30300000);
    s.workers = 0; /* in series with launching, which the device hides */
    ck_assert_int_ge(mean_of(&s), 40000000);
    s.workers = 4;
    s.cores = 1; /* four workers on one core are one */
    ck_assert_int_ge(mean_of(&s), 39900000);
}
END_TEST

START_TEST(a_value_read_last_empties_the_device_and_one_step_later_does_not)
{
    struct lac_demo_scenario s = plain();
    s.reads = LAC_DEMO_READS_LAST;
    s.read_count = 1;
    s.read_host_ns = 3000000;
    struct lac_demo_loop_run run = ran(&s);
    ck_assert_int_ge(run.mean_ns, 33000000);
    ck_assert_int_ge(run.idle_ns[LAC_DEMO_BLAME_SYNC], INT64_C(20) * 2900000);
    ck_assert_uint_eq(count_of(&run, "aten::item"), 20);
    lac_demo_loop_done(&run);
    s.reads = LAC_DEMO_READS_LATE;
    run = ran(&s);
    ck_assert_int_le(run.mean_ns, 30300000);
    ck_assert_uint_eq(count_of(&run, "cudaEventSynchronize"), 20);
    lac_demo_loop_done(&run);
}
END_TEST

START_TEST(freeing_memory_waits_for_the_device)
{
    struct lac_demo_scenario s = plain();
    s.alloc_count = 1;
    s.alloc_ns = 500000;
    struct lac_demo_loop_run run = ran(&s);
    ck_assert_uint_eq(count_of(&run, "cudaFree"), 20);
    ck_assert_uint_eq(count_of(&run, "cudaMalloc"), 20);
    /* both calls are exposed: the device has nothing left when the free begins */
    ck_assert_int_ge(run.idle_ns[LAC_DEMO_BLAME_ALLOCATOR], INT64_C(20) * 990000);
    int64_t computed_ns = 0;
    for (uint64_t i = 0; i < run.event_count; i++) {
        const struct lac_demo_event *e = &run.events[i];
        if (e->thread == LAC_DEMO_COMPUTE_STREAM) {
            computed_ns = end_of(e) > computed_ns ? end_of(e) : computed_ns;
        } else if (is_named(e, "cudaFree")) {
            ck_assert_int_ge(end_of(e), computed_ns);
        }
    }
    lac_demo_loop_done(&run);
}
END_TEST

START_TEST(a_graph_is_one_call)
{
    struct lac_demo_scenario s = plain();
    s.has_graph = true;
    s.reads = LAC_DEMO_READS_LATE;
    s.read_count = 1;
    struct lac_demo_loop_run run = ran(&s);
    ck_assert_uint_eq(count_of(&run, "cudaGraphLaunch"), 20);
    ck_assert_uint_eq(count_of(&run, "cudaLaunchKernel"), 0);
    uint64_t nodes = 0;
    for (uint64_t i = 0; i < run.event_count; i++) {
        nodes += run.events[i].graph_node != 0 ? 1 : 0;
    }
    ck_assert_uint_ge(nodes, UINT64_C(20) * 60);
    lac_demo_loop_done(&run);
}
END_TEST

START_TEST(launching_decides_when_the_host_needs_longer)
{
    struct lac_demo_scenario s = plain();
    s.compute_ns = 300000;
    ck_assert_int_ge(mean_of(&s), INT64_C(60) * 12000);
    struct lac_demo_scenario free = lac_demo_scenario_without(&s, LAC_DEMO_CAUSE_LAUNCH, 0);
    free.workers = 40; /* the data would be next */
    ck_assert_int_lt(mean_of(&free), mean_of(&s));
}
END_TEST

START_TEST(the_optimizer_waits_for_the_gradients_of_all)
{
    struct lac_demo_scenario s = plain();
    s.bucket_count = 3;
    s.comm_ns = 24000000;
    struct lac_demo_loop_run run = ran(&s);
    ck_assert_int_gt(run.mean_ns, 32000000);
    int64_t reduced_ns = 0;
    int64_t computed_ns = 0;
    for (uint64_t i = 0; i < run.event_count; i++) {
        const struct lac_demo_event *e = &run.events[i];
        if (e->thread == LAC_DEMO_COMM_STREAM) {
            ck_assert_int_ge(e->start_ns, computed_ns); /* behind what was launched so far */
            reduced_ns = end_of(e);
        } else if (e->kind == LAC_DEMO_EVENT_KERNEL) {
            computed_ns = end_of(e);
            if (strstr(e->name, "FusedAdam") != NULL) {
                ck_assert_int_ge(e->start_ns, reduced_ns);
            }
        }
    }
    lac_demo_loop_done(&run);
    s = lac_demo_scenario_without(&s, LAC_DEMO_CAUSE_COMM, 0);
    ck_assert_int_le(mean_of(&s), 30400000);
}
END_TEST

START_TEST(ranks_end_a_collective_together_and_the_late_one_waits_least)
{
    struct lac_demo_scenario s = plain();
    struct lac_demo_loop_run runs[LAC_DEMO_RANKS_MAX];
    s.ranks = 4;
    s.bucket_count = 2;
    s.comm_ns = 2000000;
    s.host_jitter_ppm = 200000;
    s.reads = LAC_DEMO_READS_LAST;
    s.read_count = 1;
    s.late_rank = 2;
    s.late_ns = 6000000;
    ck_assert_int_eq(lac_demo_run_ranks(&s, false, runs), LAC_OK);
    int64_t reducing_ns[4] = {0};
    int64_t ends_ns[4][64];
    uint64_t count[4] = {0};
    for (int r = 0; r < 4; r++) {
        for (uint64_t i = 0; i < runs[r].event_count; i++) {
            const struct lac_demo_event *e = &runs[r].events[i];
            if (e->thread == LAC_DEMO_COMM_STREAM && count[r] < 64) {
                ends_ns[r][count[r]++] = end_of(e);
                reducing_ns[r] += e->dur_ns;
            }
        }
        ck_assert_uint_eq(count[r], 40);
        for (uint64_t k = 0; k < 40; k++) {
            ck_assert_int_eq(ends_ns[r][k], ends_ns[0][k]);
        }
        check_demo_rows(runs[r].events, runs[r].event_count);
    }
    for (int r = 0; r < 4; r++) {
        ck_assert(r == 2 || reducing_ns[r] > reducing_ns[2] + INT64_C(40) * 1000000);
    }
    int64_t late_ns = runs[0].mean_ns;
    for (int r = 0; r < 4; r++) {
        lac_demo_loop_done(&runs[r]);
    }
    s = lac_demo_scenario_without(&s, LAC_DEMO_CAUSE_LATE_RANK, 0);
    ck_assert_int_eq(lac_demo_run_ranks(&s, true, runs), LAC_OK);
    ck_assert_int_lt(runs[0].mean_ns, late_ns - 4000000);
    for (int r = 0; r < 4; r++) {
        lac_demo_loop_done(&runs[r]);
    }
}
END_TEST

START_TEST(impossible_loops_are_refused)
{
    struct lac_demo_loop_run run;
    struct lac_demo_scenario s = plain();
    s.prefetch_factor = 0;
    ck_assert_int_eq(lac_demo_loop_run(&s, 0, NULL, true, &run), LAC_ERR_MISUSE);
    s = plain();
    s.workers = LAC_DEMO_LOOP_WORKERS_MAX + 1;
    ck_assert_int_eq(lac_demo_loop_run(&s, 0, NULL, true, &run), LAC_ERR_MISUSE);
    s = plain();
    s.compute_ns = 1000; /* less than its kernels need */
    ck_assert_int_eq(lac_demo_loop_run(&s, 0, NULL, true, &run), LAC_ERR_MISUSE);
}
END_TEST

/* ---- files ---- */

START_TEST(random_loops_are_written_whole)
{
    char dir[] = "/tmp/lac_exam_XXXXXX";
    char path[128];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    struct lac_random_loops loops = {.dir = dir, .seed = 7, .count = 2};
    ck_assert_int_eq(lac_random_loops_write(&loops, NULL), LAC_OK);
    for (int seed = 7; seed < 9; seed++) {
        (void)snprintf(path, sizeof(path), "%s/random-%06d.truth.json", dir, seed);
        struct json_object *truth = json_object_from_file(path);
        struct json_object *value = NULL;
        ck_assert_ptr_nonnull(truth);
        ck_assert(json_object_object_get_ex(truth, "seed", &value));
        ck_assert_int_eq(json_object_get_int(value), seed);
        ck_assert(json_object_object_get_ex(truth, "counterfactuals", &value));
        ck_assert_int_gt(json_object_object_length(value), 0);
        json_object_put(truth);
        ck_assert_int_eq(unlink(path), 0);
        (void)snprintf(path, sizeof(path), "%s/random-%06d.json", dir, seed);
        struct json_object *trace = json_object_from_file(path);
        ck_assert_ptr_nonnull(trace);
        ck_assert(json_object_object_get_ex(trace, "traceEvents", &value));
        ck_assert_uint_gt(json_object_array_length(value), 1000);
        json_object_put(trace);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left there */
    struct lac_error error = {0};
    loops.dir = "/proc/lacuna";
    ck_assert_int_eq(lac_random_loops_write(&loops, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "/proc/lacuna"));
}
END_TEST

START_TEST(what_a_loop_does_beside_its_steps_is_put_down)
{
    uint32_t seen = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct lac_demo_scenario s;
        struct lac_demo_loop_run run;
        lac_demo_scenario_draw(seed, 1, false, &s);
        lac_demo_scenario_add_phases(&s);
        ck_assert_int_eq(lac_demo_run_ranks(&s, false, &run), LAC_OK);
        int64_t last_ns = run.window_start_ns;
        for (uint32_t i = 0; i < run.beside_count; i++) {
            const struct lac_demo_beside *beside = &run.besides[i];
            ck_assert_int_ge(beside->start_ns, last_ns);
            ck_assert_int_gt(beside->end_ns, beside->start_ns);
            ck_assert_int_ge(beside->start_ns, run.step_start_ns[beside->step]);
            ck_assert_int_le(beside->end_ns, run.step_start_ns[beside->step + 1]);
            last_ns = beside->end_ns;
            bool is_checkpoint = strcmp(beside->phase, "checkpoint") == 0;
            seen |= is_checkpoint                                 ? 1U
                    : strcmp(beside->phase, "validation") == 0    ? 2U
                    : strcmp(beside->phase, "epoch_end") == 0     ? 4U
                    : strcmp(beside->phase, "recompilation") == 0 ? 8U
                                                                  : 16U;
            ck_assert(!is_checkpoint || beside->end_ns - beside->start_ns > s.checkpoint_ns);
        }
        lac_demo_loop_done(&run);
    }
    ck_assert_uint_eq(seen, 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demo_random");
    TCase *loops = tcase_create("loops");
    tcase_set_timeout(loops, 120);
    tcase_add_test(loops, no_random_loop_breaks_the_rules);
    tcase_add_test(loops, taking_a_cause_away_never_makes_the_step_longer);
    tcase_add_test(loops, every_cause_is_drawn_and_one_is_one);
    tcase_add_test(loops, the_same_seed_gives_the_same_loop);
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 60);
    tcase_add_test(parts, a_loop_in_order_is_as_fast_as_its_device);
    tcase_add_test(parts, too_few_workers_decide_the_step);
    tcase_add_test(parts, a_value_read_last_empties_the_device_and_one_step_later_does_not);
    tcase_add_test(parts, freeing_memory_waits_for_the_device);
    tcase_add_test(parts, a_graph_is_one_call);
    tcase_add_test(parts, launching_decides_when_the_host_needs_longer);
    tcase_add_test(parts, the_optimizer_waits_for_the_gradients_of_all);
    tcase_add_test(parts, ranks_end_a_collective_together_and_the_late_one_waits_least);
    tcase_add_test(parts, impossible_loops_are_refused);
    TCase *files = tcase_create("files");
    tcase_set_timeout(files, 60);
    tcase_add_test(files, random_loops_are_written_whole);
    tcase_add_test(files, what_a_loop_does_beside_its_steps_is_put_down);
    suite_add_tcase(suite, loops);
    suite_add_tcase(suite, parts);
    suite_add_tcase(suite, files);
    return check_main(suite);
}
