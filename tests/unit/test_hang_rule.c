/* When a job hangs: thousands of jobs with a pace of their own, that hang or only look like it. */

#include "collector/base/count_of.h"
#include "collector/hang/hang_rule.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 100, LOOK_MS = 250, ANSWER_MS = 500 };

/* A job that is played: what it does now, and until when. */
struct job {
    struct lac_hang_rule rule;
    struct lac_hang_look look;
    uint64_t random;
    double now_s;
    double alarm_s;  /* when an alarm came; 0: none */
    double answer_s; /* an answer is on its way; 0: none */
    unsigned alarms;
    unsigned asked;
    enum lac_hang_kind kind; /* what the stacks say now */
};

static double next_random(struct job *job)
{
    job->random ^= job->random << 13;
    job->random ^= job->random >> 7;
    job->random ^= job->random << 17;
    return (double)(job->random >> 11) / (double)(UINT64_C(1) << 53);
}

static double between(struct job *job, double low, double high)
{
    return low + (high - low) * next_random(job);
}

static void begin(struct job *job, unsigned seed)
{
    *job = (struct job){.random = UINT64_C(0x9e3779b97f4a7c15) * (seed + 1), .now_s = 1000};
    job->look.io_bytes = 1000;
    lac_hang_rule_begin(&job->rule, 1);
}

/* Nothing but looks. */
static void pass(struct job *job, double seconds)
{
    const double end_s = job->now_s + seconds;

    while (job->now_s < end_s) {
        const uint64_t now_ns = (uint64_t)(job->now_s * 1e9);
        enum lac_hang_wish wish = LAC_HANG_GO_ON;

        if (job->answer_s > 0 && job->now_s >= job->answer_s) {
            job->answer_s = 0;
            lac_hang_rule_answer(&job->rule, now_ns, job->kind);
        }
        if (job->answer_s <= 0) {
            wish = lac_hang_rule_next(&job->rule, now_ns, &job->look);
        }
        if (wish == LAC_HANG_ASK) {
            job->asked++;
            job->answer_s = job->now_s + ANSWER_MS / 1e3;
        } else if (wish == LAC_HANG_ALARM) {
            job->alarms++;
            job->alarm_s = job->now_s;
        }
        job->now_s += LOOK_MS / 1e3;
    }
}

/* Steps of about that length, each of a few ranges; now and then a long one. */
static void train(struct job *job, unsigned steps, double step_s, double spread)
{
    double owed_s = 0;

    for (unsigned i = 0; i < steps; i++) {
        const double this_s = step_s * exp(spread * (between(job, -1, 1) + between(job, -1, 1)));

        for (unsigned part = 0; part < 4; part++) {
            job->look.progress++;
            owed_s += this_s / 4;
            if (owed_s >= LOOK_MS / 1e3) {
                pass(job, owed_s);
                owed_s = 0;
            }
        }
        job->look.steps++;
    }
    pass(job, owed_s);
}

/* A quiet time in which the job reads, writes, computes, or does nothing. */
static void quiet(struct job *job, double seconds, enum lac_hang_kind kind, bool is_working,
                  double io_per_s)
{
    const double end_s = job->now_s + seconds;

    job->kind = kind;
    job->look.is_working = is_working;
    while (job->now_s < end_s) {
        job->look.io_bytes += (uint64_t)(io_per_s * LOOK_MS / 1e3);
        pass(job, LOOK_MS / 1e3);
    }
    job->look.is_working = false;
}

static int by_number(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

/* ---- what hangs */

/* How a kind of hang looks from outside. */
static const struct {
    const char *name;
    enum lac_hang_kind kind;
    bool is_working;
} hangs[] = {
    {"diverged branch, dead rank, uneven data", LAC_HANG_BLOCKED, false},
    {"the same where waiting ranks spin", LAC_HANG_BLOCKED, true},
    {"lock, stuck read", LAC_HANG_BLOCKED, false},
    {"stuck read in a worker", LAC_HANG_LOADING, false},
    {"endless decode", LAC_HANG_LOADING, true},
    {"nobody answers", LAC_HANG_UNKNOWN, false},
};

START_TEST(hangs_are_told_within_fifteen_seconds)
{
    double delays[SEEDS];

    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct job job;
        double stopped_s;

        begin(&job, seed * 7 + (unsigned)_i);
        /* paces from 10 ms to 2 s a step */
        train(&job, 60, 0.01 * pow(200, next_random(&job)), 0.3);
        ck_assert_uint_eq(job.alarms, 0);
        stopped_s = job.now_s;
        quiet(&job, 100, hangs[_i].kind, hangs[_i].is_working, 0);
        ck_assert_msg(job.alarms == 1, "%s, seed %u: %u alarms", hangs[_i].name, seed, job.alarms);
        delays[seed] = job.alarm_s - stopped_s;
    }
    qsort(delays, SEEDS, sizeof(delays[0]), by_number);
    ck_assert_msg(delays[SEEDS * 9 / 10 - 1] <= 15, "%s: %.1f s", hangs[_i].name,
                  delays[SEEDS * 9 / 10 - 1]);
}
END_TEST

START_TEST(a_job_that_goes_on_can_hang_again)
{
    struct job job;

    begin(&job, 1);
    train(&job, 100, 0.1, 0.2);
    quiet(&job, 20, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 1);
    train(&job, 100, 0.1, 0.2);
    /* it has been quiet for 20 s and went on: that may come again */
    quiet(&job, 30, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 1);
    train(&job, 100, 0.1, 0.2);
    quiet(&job, 300, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 2);
}
END_TEST

/* ---- what does not */

enum calm {
    CALM_PLAIN,
    CALM_GC,
    CALM_COMPILE,
    CALM_CHECKPOINT,
    CALM_FSYNC,
    CALM_EVALUATION,
    CALM_METRIC,
    CALM_EPOCH,
    CALM_STOPPED,
    CALM_START,
    CALM_COUNT
};

static void be_calm(struct job *job, enum calm calm)
{
    switch (calm) {
    case CALM_GC: /* one that holds Python's lock: nobody answers, a core is busy */
        quiet(job, between(job, 1, 40), LAC_HANG_UNKNOWN, true, 0);
        break;
    case CALM_COMPILE:
        quiet(job, between(job, 5, 400), LAC_HANG_LONG, true, 0);
        break;
    case CALM_CHECKPOINT: /* bytes come, or a compiler's work; the other ranks wait in a barrier */
        quiet(job, between(job, 5, 300), LAC_HANG_BLOCKED, false, between(job, 1e5, 1e9));
        break;
    case CALM_FSYNC:
        quiet(job, between(job, 5, 300), LAC_HANG_LONG, false, 0);
        break;
    case CALM_EVALUATION: /* of one rank: ranges, but no step */
        for (double end_s = job->now_s + between(job, 10, 300); job->now_s < end_s;) {
            job->look.progress++;
            quiet(job, between(job, 0.05, 2), LAC_HANG_BLOCKED, true, 0);
        }
        break;
    case CALM_METRIC: /* that one rank computes at its end */
        quiet(job, between(job, 1, 60), LAC_HANG_BUSY, true, 0);
        break;
    case CALM_EPOCH: /* new workers, which are processes */
        for (int worker = 0; worker < 8; worker++) {
            job->look.births++;
            quiet(job, between(job, 0.2, 4), LAC_HANG_LOADING, false, 1e5);
        }
        break;
    case CALM_STOPPED: /* as a whole: Ctrl-Z, or a batch system that suspends */
        job->look.is_stopped = true;
        quiet(job, between(job, 5, 500), LAC_HANG_UNKNOWN, false, 0);
        job->look.is_stopped = false;
        break;
    case CALM_START:
    case CALM_PLAIN:
    case CALM_COUNT:
        break;
    }
}

START_TEST(what_looks_like_a_hang_does_not_alarm)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct job job;
        double step_s;

        begin(&job, seed * 31 + (unsigned)_i);
        step_s = 0.01 * pow(300, next_random(&job)); /* up to 3 s */
        if (_i == CALM_START) {                      /* imports, rendezvous, the first batch */
            quiet(&job, between(&job, 5, 110), LAC_HANG_BLOCKED, false, 0);
        }
        for (int round = 0; round < 4; round++) {
            train(&job, 40, step_s, 0.4);
            be_calm(&job, (enum calm)_i);
        }
        train(&job, 40, step_s, 0.4);
        ck_assert_msg(job.alarms == 0, "kind %d, seed %u: alarm at %.0f s", _i, seed, job.alarm_s);
    }
}
END_TEST

/* Steps that are all slow are a pace, too. */
START_TEST(a_slow_pace_is_a_pace)
{
    struct job job;

    begin(&job, 3);
    for (int step = 0; step < 60; step++) {
        job.look.progress++;
        job.look.steps++;
        quiet(&job, between(&job, 18, 22), LAC_HANG_BLOCKED, false, 0);
    }
    ck_assert_uint_eq(job.alarms, 0);
    ck_assert(lac_hang_rule_pace_ns(&job.rule) >= UINT64_C(18000000000));
    quiet(&job, 120, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 1);
}
END_TEST

/* All of its steps between two looks: nobody was quiet, and yet that is a pace. */
START_TEST(a_job_that_hangs_in_its_first_second_hangs)
{
    struct job job;

    begin(&job, 1);
    pass(&job, 1);
    train(&job, 30, 0.004, 0.1);
    quiet(&job, 15, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 1);
}
END_TEST

START_TEST(a_few_quick_steps_are_no_pace)
{
    for (unsigned steps = 1; steps < 10; steps++) {
        struct job job;

        begin(&job, steps);
        pass(&job, 1);
        train(&job, steps, 0.004, 0.1);
        quiet(&job, 60, LAC_HANG_BLOCKED, false, 0);
        ck_assert_uint_eq(job.alarms, 0);
    }
}
END_TEST

/* The ends of its processes are no progress: a job that is killed has not gone on. */
START_TEST(a_killed_job_has_not_gone_on)
{
    struct job job;

    begin(&job, 5);
    train(&job, 100, 0.1, 0.2);
    quiet(&job, 30, LAC_HANG_BLOCKED, false, 0);
    ck_assert_uint_eq(job.alarms, 1);
    job.look.steps /= 2;
    pass(&job, 1);
    ck_assert(job.rule.is_alarmed);
    job.look.progress++;
    pass(&job, 1);
    ck_assert(!job.rule.is_alarmed);
}
END_TEST

/* Bytes alone keep a job alive for a quarter of an hour, no longer: it may only write its log. */
START_TEST(a_job_that_only_writes_hangs_in_the_end)
{
    struct job job;

    begin(&job, 4);
    train(&job, 100, 0.1, 0.2);
    quiet(&job, 800, LAC_HANG_BLOCKED, false, 1e6);
    ck_assert_uint_eq(job.alarms, 0);
    quiet(&job, 200, LAC_HANG_BLOCKED, false, 1e6);
    ck_assert_uint_eq(job.alarms, 1);
}
END_TEST

/* The rest of the job is looked at by other launchers: their progress is that of the job, and no pace. */
START_TEST(progress_elsewhere_counts_and_is_no_pace)
{
    struct lac_hang_rule rule;
    struct lac_hang_look look = {0};
    uint64_t now_ns = 1000000000;
    uint64_t pace_ns;
    enum lac_hang_wish wish = LAC_HANG_GO_ON;

    lac_hang_rule_begin(&rule, 1);
    for (int i = 0; i < 100; i++, now_ns += 100000000) {
        look.progress++;
        look.steps++;
        ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_GO_ON);
    }
    pace_ns = lac_hang_rule_pace_ns(&rule);
    for (int i = 0; i < 240; i++, now_ns += 250000000) { /* a minute of another one's evaluation */
        lac_hang_rule_elsewhere(&rule, now_ns - 1000000000, 0);
        ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_GO_ON);
    }
    ck_assert_uint_eq(lac_hang_rule_pace_ns(&rule), pace_ns);
    for (int i = 0; i < 40 && wish != LAC_HANG_ALARM;
         i++, now_ns += 250000000) { /* it hangs, too */
        wish = lac_hang_rule_next(&rule, now_ns, &look);
        if (wish == LAC_HANG_ASK) {
            lac_hang_rule_answer(&rule, now_ns, LAC_HANG_UNKNOWN);
            lac_hang_rule_learn(&rule, LAC_HANG_BLOCKED);
        }
    }
    ck_assert_int_eq((int)wish, (int)LAC_HANG_ALARM);
    ck_assert_uint_lt(lac_hang_rule_quiet_ns(&rule, now_ns), UINT64_C(9000000000));
    lac_hang_rule_elsewhere(&rule, now_ns, now_ns); /* what was said is not taken back */
    ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_GO_ON);
    ck_assert(rule.is_alarmed);
}
END_TEST

/* Another launcher's rank writes: no progress, and a sign of life for a quarter of an hour. */
START_TEST(life_elsewhere_counts_as_long_as_ours)
{
    struct lac_hang_rule rule;
    struct lac_hang_look look = {0};
    uint64_t now_ns = 1000000000;
    uint64_t last_ns = 0;
    enum lac_hang_wish wish = LAC_HANG_GO_ON;

    lac_hang_rule_begin(&rule, 1);
    for (int i = 0; i < 100; i++, now_ns += 100000000) {
        look.progress++;
        look.steps++;
        last_ns = now_ns;
        ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_GO_ON);
    }
    for (int i = 0; i < 8000 && wish != LAC_HANG_ALARM; i++, now_ns += 250000000) {
        lac_hang_rule_elsewhere(&rule, last_ns, now_ns - 1000000000);
        wish = lac_hang_rule_next(&rule, now_ns, &look);
        if (wish == LAC_HANG_ASK) {
            lac_hang_rule_answer(&rule, now_ns, LAC_HANG_BLOCKED);
        }
    }
    ck_assert_int_eq((int)wish, (int)LAC_HANG_ALARM);
    ck_assert_uint_ge(lac_hang_rule_quiet_ns(&rule, now_ns), UINT64_C(900000000000));
    ck_assert_uint_lt(lac_hang_rule_quiet_ns(&rule, now_ns), UINT64_C(920000000000));
}
END_TEST

START_TEST(what_was_taken_for_a_pause_counts_from_its_beginning)
{
    struct lac_hang_rule rule;
    struct lac_hang_look look = {0};
    uint64_t now_ns = 1000000000;
    uint64_t last_ns;

    lac_hang_rule_begin(&rule, 1);
    for (int i = 0; i < 100; i++, now_ns += 100000000) {
        look.progress++;
        look.steps++;
        (void)lac_hang_rule_next(&rule, now_ns, &look);
    }
    last_ns = now_ns - 100000000;
    look.is_stopped = true;
    for (int i = 0; i < 40; i++, now_ns += 250000000) {
        ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_GO_ON);
    }
    ck_assert_uint_lt(lac_hang_rule_quiet_ns(&rule, now_ns), UINT64_C(1000000000));
    lac_hang_rule_not_stopped(&rule, last_ns);
    look.is_stopped = false;
    ck_assert_uint_eq(lac_hang_rule_quiet_ns(&rule, now_ns), now_ns - last_ns);
    ck_assert_int_eq((int)lac_hang_rule_next(&rule, now_ns, &look), (int)LAC_HANG_ASK);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_rule");
    TCase *const tests = tcase_create("hang_rule");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, hangs_are_told_within_fifteen_seconds, 0, LAC_COUNT_OF(hangs));
    tcase_add_test(tests, a_job_that_goes_on_can_hang_again);
    tcase_add_loop_test(tests, what_looks_like_a_hang_does_not_alarm, 0, CALM_COUNT);
    tcase_add_test(tests, a_job_that_hangs_in_its_first_second_hangs);
    tcase_add_test(tests, a_few_quick_steps_are_no_pace);
    tcase_add_test(tests, a_killed_job_has_not_gone_on);
    tcase_add_test(tests, a_slow_pace_is_a_pace);
    tcase_add_test(tests, a_job_that_only_writes_hangs_in_the_end);
    tcase_add_test(tests, progress_elsewhere_counts_and_is_no_pace);
    tcase_add_test(tests, life_elsewhere_counts_as_long_as_ours);
    tcase_add_test(tests, what_was_taken_for_a_pause_counts_from_its_beginning);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
