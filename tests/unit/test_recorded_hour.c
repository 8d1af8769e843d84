/*
 * An hour of training in seconds: the real recorder in a process that steps when it is told to, the
 * real drain and the real plan, and a clock that the test makes up. What such a recording holds,
 * and how large it gets. LACUNA_SOAK=1: a day.
 */
#include "collector/gather/drain.h"
#include "collector/inject/api.h"
#include "collector/launch/plan.h"
#include "collector/launch/run_options.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP_MS = 100, RANGES = 40, SEGMENT_BYTES = 65536 };
static const uint64_t MS = 1000000;

struct hour {
    char output[4200];
    struct lac_drain *drain;
    struct lac_plan plan;
    struct lac_run_options options;
    int to_job;
    int from_job;
    pid_t pid;
    uint64_t steps;
    uint64_t recorded_steps;
    uint64_t most_bytes;
};

/* A step for each byte that comes. */
static void play_job(int in, int out)
{
    const struct lacuna_api *(*get_api)(void) = NULL;
    void *library;
    char byte;

    (void)setenv("LACUNA_SPOOL", lac_job_folder(), 1);
    (void)setenv("LACUNA_SPOOL_SEGMENT", "65536", 1);
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    *(void **)&get_api = library != NULL ? dlsym(library, "lacuna_get_api") : NULL;
    if (get_api == NULL || get_api() == NULL) {
        _exit(99);
    }
    while (read(in, &byte, 1) == 1) {
        for (int i = 0; i < RANGES; i++) {
            get_api()->push("a layer", 7, -1, -1);
            get_api()->pop(-1);
        }
        get_api()->step();
        if (write(out, &byte, 1) != 1) {
            break;
        }
    }
    _exit(0);
}

static void begin(struct hour *hour)
{
    int to[2];
    int from[2];

    (void)snprintf(hour->output, sizeof(hour->output), "%s/out", lac_job_folder());
    ck_assert_int_eq(mkdir(hour->output, 0700), 0);
    ck_assert_int_eq(pipe(to), 0);
    ck_assert_int_eq(pipe(from), 0);
    hour->pid = fork();
    ck_assert_int_ge(hour->pid, 0);
    if (hour->pid == 0) {
        (void)close(to[1]);
        (void)close(from[0]);
        play_job(to[0], from[1]);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    hour->to_job = to[1];
    hour->from_job = from[0];
    hour->drain = lac_drain_create(lac_job_folder(), hour->output);
    ck_assert_ptr_nonnull(hour->drain);
    lac_plan_begin(&hour->plan, &hour->options);
    lac_drain_limit(hour->drain, hour->options.limit_bytes);
}

/* As `lacuna run` does between two steps. */
static void look(struct hour *hour)
{
    const struct lac_drain_counts counts = lac_drain_counts(hour->drain);

    lac_drain_want(hour->drain, counts.is_full
                                    ? LAC_SPOOL_STOP
                                    : lac_plan_next(&hour->plan, hour->steps * STEP_MS * MS,
                                                    lac_drain_steps(hour->drain)));
    lac_drain_round(hour->drain, false);
    hour->most_bytes = counts.bytes > hour->most_bytes ? counts.bytes : hour->most_bytes;
    hour->recorded_steps += hour->plan.wish == LAC_SPOOL_RECORD && !counts.is_full;
}

static void play(struct hour *hour, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        char byte = 1;

        look(hour);
        ck_assert_int_eq(write(hour->to_job, &byte, 1), 1);
        ck_assert_int_eq(read(hour->from_job, &byte, 1), 1);
        hour->steps++;
    }
}

/* @return bytes of the files that are left */
static uint64_t end(struct hour *hour)
{
    uint64_t bytes = 0;
    DIR *folder;

    (void)close(hour->to_job);
    ck_assert_int_eq(waitpid(hour->pid, NULL, 0), hour->pid);
    lac_drain_round(hour->drain, true);
    (void)close(hour->from_job);
    lac_drain_destroy(hour->drain);
    folder = opendir(hour->output);
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[4500];
        struct stat info;

        (void)snprintf(path, sizeof(path), "%s/%s", hour->output, entry->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            bytes += (uint64_t)info.st_size;
            (void)unlink(path);
        }
    }
    (void)closedir(folder);
    (void)rmdir(hour->output);
    return bytes;
}

static uint64_t hours(void)
{
    return getenv("LACUNA_SOAK") != NULL ? 24 : 1;
}

START_TEST(an_hour_holds_a_minute_the_cost_and_six_windows)
{
    struct hour hour = {.options = {.limit_bytes = UINT64_C(4) << 30}};
    const uint64_t step_bytes = RANGES * 2 * sizeof(struct lac_event);
    uint64_t bytes;
    uint64_t most_steps;

    begin(&hour);
    play(&hour, hours() * 3600 * 1000 / STEP_MS);
    ck_assert_uint_eq(lac_drain_steps(hour.drain), hour.steps);
    ck_assert_uint_eq(lac_drain_counts(hour.drain).dropped, 0);
    bytes = end(&hour);
    /* a minute of steps, half of those that are compared, a window every ten minutes */
    most_steps =
        60000 / STEP_MS + 2 + LAC_COST_PAIRS * (LAC_COST_BLOCK_STEPS + 20) + hours() * 6 * (20 + 2);
    ck_assert_uint_ge(hour.recorded_steps, 60000 / STEP_MS + hours() * 5 * 20);
    ck_assert_uint_le(hour.recorded_steps, most_steps);
    ck_assert_uint_ge(bytes, hour.recorded_steps * step_bytes);
    /* a header, segments of names and of settings, one that is not full */
    ck_assert_uint_le(bytes, most_steps * step_bytes * 11 / 10 + 5 * SEGMENT_BYTES);
    (void)printf("%llu h: %llu of %llu steps recorded, %llu KB\n", (unsigned long long)hours(),
                 (unsigned long long)hour.recorded_steps, (unsigned long long)hour.steps,
                 (unsigned long long)bytes / 1000);
}
END_TEST

START_TEST(an_hour_in_full_stays_below_its_limit)
{
    struct hour hour = {.options = {.limit_bytes = 4 << 20, .all = true}};
    uint64_t bytes;

    begin(&hour);
    play(&hour, hours() * 3600 * 1000 / STEP_MS / 4);
    ck_assert(lac_drain_counts(hour.drain).is_full);
    bytes = end(&hour);
    ck_assert_uint_gt(bytes, hour.options.limit_bytes / 2);
    ck_assert_uint_le(bytes, hour.options.limit_bytes);
    ck_assert_uint_le(hour.most_bytes, hour.options.limit_bytes);
    ck_assert_uint_lt(hour.recorded_steps, hour.steps / 2); /* the rest was not even written */
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("recorded_hour");
    TCase *const tcase = tcase_create("size");

    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, an_hour_holds_a_minute_the_cost_and_six_windows);
    tcase_add_test(tcase, an_hour_in_full_stays_below_its_limit);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
