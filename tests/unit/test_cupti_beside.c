/*
 * GPU recording beside what else is in the process: another profiler whose turn it is, another
 * libcupti that does not fit, CUPTI's own lock, pauses. Against the stand-in (tests/stand_in).
 */
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "collector/inject/api.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&pause, NULL);
}

/* ---- the other profiler's turn */

/* What CUPTI keeps of our buffers when the other one begins would be given to the other one. */
static void job_yields_while_it_launches(void)
{
    void (*launch)(uint32_t, uint64_t, uint32_t);
    void (*launch_after_flush)(int);
    uint64_t (*held)(void);

    lac_cupti_initialize();
    *(void **)&launch = lac_cupti_stand_in("stand_in_launch");
    *(void **)&launch_after_flush = lac_cupti_stand_in("stand_in_launch_after_flush");
    *(void **)&held = lac_cupti_stand_in("stand_in_held");
    for (int turn = 0; turn < 3; turn++) {
        launch(20, 1, 1);
        launch_after_flush(1);
        lac_cupti_api()->gpu_yield(1, "torch.profiler");
        launch_after_flush(0);
        ck_assert_uint_eq(held(), 0);
        lac_cupti_api()->gpu_yield(0, "");
    }
}

START_TEST(nothing_of_ours_is_in_cupti_when_another_profiler_begins)
{
    ck_assert_int_eq(lac_job_run(job_yields_while_it_launches), 0);
    lac_cupti_import();
    ck_assert_uint_ge(lac_cupti_count(LAC_SLICE_KERNEL), 3 * 20);
}
END_TEST

static volatile int stops;
static const struct lacuna_api
    *yielding; /* asked for once: the look-up has locks of the test's own */

static void *yield_again_and_again(void *unused)
{
    (void)unused;
    while (!stops) {
        yielding->gpu_yield(1, "torch.profiler");
        yielding->gpu_yield(0, "");
    }
    return NULL;
}

/* A thread that holds our locks is not there in the child, which may have a profiler of its own. */
static void job_forks_while_it_yields(void)
{
    pthread_t thread;

    lac_cupti_initialize();
    yielding = lac_cupti_api();
    ck_assert_int_eq(pthread_create(&thread, NULL, yield_again_and_again, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int status = -1;
        const pid_t child = fork();

        if (child == 0) {
            (void)alarm(20); /* for ever would be too long */
            yielding->gpu_yield(1, "torch.profiler");
            yielding->gpu_yield(0, "");
            _exit(0);
        }
        ck_assert_int_gt(child, 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        sleep_ms(3);
    }
    stops = 1;
    (void)pthread_join(thread, NULL);
}

START_TEST(a_forked_child_does_not_wait_for_a_thread_that_it_lacks)
{
    ck_assert_int_eq(lac_job_run(job_forks_while_it_yields), 0);
}
END_TEST

/* ---- several libraries */

static void copy(const char *from, const char *to)
{
    char command[9000];

    (void)snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
    ck_assert_int_eq(system(command), 0);
}

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* A wheel: its CUDA runtime with a hash in the name, and beside it two libraries of which the newer
 * one does not fit the driver. */
static void begin_with_two_libraries(void)
{
    int (*initialize)(void);

    (void)unsetenv("LACUNA_CUPTI");
    (void)setenv("STAND_IN_REFUSE", "busy", 1);
    (void)setenv("STAND_IN_BUSY", "999", 1);
    ck_assert_ptr_nonnull(dlopen(in_folder("libcudart-d0da41ae.so.11.0"), RTLD_LAZY));
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjection");
    ck_assert_int_eq(initialize(), 1);
}

static void job_has_two_libraries(void)
{
    void (*deliver)(int, uint32_t, int);

    (void)setenv("STAND_IN_REFUSE_IN", "libcupti.so.13", 1);
    begin_with_two_libraries();
    *(void **)&deliver =
        dlsym(dlopen(in_folder("libcupti.so.12"), RTLD_LAZY | RTLD_NOLOAD), "stand_in_deliver");
    ck_assert(deliver != NULL);
    deliver(30, 1, 0);
}

static void run_with_two_libraries(void (*job)(void))
{
    char stand_in[4096];

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(stand_in, sizeof(stand_in), "%s", lac_job_file("stand_in/libcupti_stand_in.so"));
    copy(stand_in, in_folder("libcupti.so.13"));
    copy(stand_in, in_folder("libcupti.so.12"));
    copy(stand_in, in_folder("libcudart-d0da41ae.so.11.0"));
    ck_assert_int_eq(lac_job_run(job), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"libcupti.so.13", "libcupti.so.12",
                                            "libcudart-d0da41ae.so.11.0"};

        (void)unlink(in_folder(names[i]));
    }
    (void)rmdir(folder);
    lac_cupti_import();
}

START_TEST(a_library_that_does_not_fit_gives_way_to_the_next_beside_the_runtime)
{
    run_with_two_libraries(job_has_two_libraries);
    ck_assert(lac_cupti_says("\"gpu_recording\":\"full\""));
    ck_assert(lac_cupti_says("/libcupti.so.12\""));
    ck_assert(!lac_cupti_says("gpu_recording_reason")); /* of the one that is not used */
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 30);
}
END_TEST

START_TEST(of_libraries_that_all_refuse_the_first_one_is_told)
{
    run_with_two_libraries(begin_with_two_libraries);
    ck_assert(lac_cupti_says("\"gpu_recording\":\"ranges-only\""));
    ck_assert(lac_cupti_says("/libcupti.so.13\""));
    ck_assert(lac_cupti_says("CUPTI refused us: CUPTI_ERROR (999)"));
}
END_TEST

/* ---- which of those that are there */

#define WHEELS "nvidia/cublas/lib/libcublas.so.12"
#define CUPTI  "nvidia/cuda_cupti/lib/libcupti"

static const struct choice {
    const char *what;
    const char *driver; /* its CUDA; NULL: not known */
    const char *loaded; /* what the job has loaded before it initializes CUDA */
    const char *files;  /* what is there beside it */
    const char *expected;
} choices[] = {
    {"the driver's", "12040", WHEELS, CUPTI ".so.12 " CUPTI ".so.13", CUPTI ".so.12"},
    {"a newer driver", "13000", WHEELS, CUPTI ".so.12 " CUPTI ".so.13", CUPTI ".so.13"},
    {"a driver of old", "11040", WHEELS, CUPTI ".so.11.8 " CUPTI ".so.12", CUPTI ".so.11.8"},
    {"no driver", NULL, WHEELS, CUPTI ".so.12 " CUPTI ".so.13", CUPTI ".so.13"},
    {"the newest of 11", "12040", WHEELS, CUPTI ".so.11.1 " CUPTI ".so.11.8", CUPTI ".so.11.8"},
    {"a hash", "12040", "torch/lib/libcudart-d0da41ae.so.11.0",
     "torch/lib/libcupti-90a1b2c3.so.11.8 torch/lib/libcupti-hash.so.12 torch/lib/libcupti_x.so "
     "torch/lib/libcupti.so.txt torch/lib/libcupti.somewhere",
     "torch/lib/libcupti-90a1b2c3.so.11.8"},
    {"a hash and no version", "12040", "torch/lib/libcudart-d0da41ae.so.11.0",
     "torch/lib/libcupti-90a1b2c3.so torch/lib/libcupti.so.13", "torch/lib/libcupti-90a1b2c3.so"},
    {"a file with CUPTI's own version", "12040", WHEELS, CUPTI ".so.2023.1.1 " CUPTI ".so.12",
     CUPTI ".so.12"},
    {"the runtime's is too new", "12040", "toolkit/lib64/libcudart.so.13 " WHEELS,
     "toolkit/extras/CUPTI/lib64/libcupti.so.13 " CUPTI ".so.12", CUPTI ".so.12"},
    {"the runtime's comes first", "13000", WHEELS " toolkit/lib64/libcudart.so.13",
     "toolkit/extras/CUPTI/lib64/libcupti.so.12 " CUPTI ".so.13",
     "toolkit/extras/CUPTI/lib64/libcupti.so.12"},
    {"another library of CUDA", "12040", "nvidia/cudnn/lib/libcudnn.so.9", CUPTI ".so.12",
     CUPTI ".so.12"},
    {"the job has one", "12040", WHEELS " bundle/libcupti-90a1b2c3.so.13", CUPTI ".so.12",
     "bundle/libcupti-90a1b2c3.so.13"},
};

static const struct choice *choice;
static char driver[64]; /* a library that says which CUDA it is of, and is called libcuda.so.1 */

/* Makes each of the files, or loads it. */
static void for_each_file(const char *names, void (*act)(const char *path))
{
    char rest[1024];
    char *place = NULL;

    (void)snprintf(rest, sizeof(rest), "%s", names);
    for (const char *name = strtok_r(rest, " ", &place); name != NULL;
         name = strtok_r(NULL, " ", &place)) {
        act(in_folder(name));
    }
}

static void make_file(const char *path)
{
    char command[9000];

    (void)snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\" && cp '%s' '%s'", path,
                   lac_job_file("stand_in/libcupti_stand_in.so"), path);
    ck_assert_int_eq(system(command), 0);
}

static void load(const char *path)
{
    ck_assert_msg(dlopen(path, RTLD_LAZY) != NULL, "%s", dlerror());
}

static void is_expected(const char *path)
{
    const bool is_loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD) != NULL;

    ck_assert_msg(is_loaded == (strcmp(path + strlen(folder) + 1, choice->expected) == 0),
                  "%s: %s is %sloaded", choice->what, path, is_loaded ? "" : "not ");
}

static void job_chooses(void)
{
    int (*initialize)(void);
    int (*subscribers)(void);

    (void)unsetenv("LACUNA_CUPTI");
    if (choice->driver != NULL) {
        (void)setenv("TEST_DRIVER_CUDA", choice->driver, 1);
        load(driver);
    }
    for_each_file(choice->loaded, load);
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjection");
    ck_assert_int_eq(initialize(), 1);
    for_each_file(choice->files, is_expected);
    *(void **)&subscribers =
        dlsym(dlopen(in_folder(choice->expected), RTLD_LAZY | RTLD_NOLOAD), "stand_in_subscribers");
    ck_assert_msg(subscribers != NULL && subscribers() == 1, "%s", choice->what);
}

static void make_driver(void)
{
    char command[1024];
    int file;

    (void)snprintf(driver, sizeof(driver), "/tmp/lacuna-test-XXXXXX");
    file = mkstemp(driver);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    (void)snprintf(
        command, sizeof(command),
        "printf '#include <stdlib.h>\nint cuDriverGetVersion(int *v)"
        "{*v = strtol(getenv(\"TEST_DRIVER_CUDA\"), 0, 10); return 0;}' | cc -shared -fPIC -xc "
        "-Wl,-soname,libcuda.so.1 -o '%s' -",
        driver);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(of_the_libraries_that_are_there_the_one_is_taken_that_fits_driver_and_runtime)
{
    char command[128];

    make_driver();
    for (size_t i = 0; i < LAC_COUNT_OF(choices); i++) {
        choice = &choices[i];
        (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        for_each_file(choice->loaded, make_file);
        for_each_file(choice->files, make_file);
        ck_assert_int_eq(lac_job_run(job_chooses), 0);
        (void)snprintf(command, sizeof(command), "rm -r '%s'", folder);
        ck_assert_int_eq(system(command), 0);
    }
    (void)unlink(driver);
}
END_TEST

/* ---- CUPTI's lock */

static void job_crosses(void)
{
    void (*cross)(void);

    lac_cupti_initialize();
    *(void **)&cross = lac_cupti_stand_in("stand_in_cross");
    (void)alarm(60); /* two threads that wait for each other would do so for ever */
    cross();
    (void)alarm(0);
}

START_TEST(no_lock_of_ours_is_held_while_cupti_is_asked)
{
    ck_assert_int_eq(lac_job_run(job_crosses), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_MEMSET), 2);
}
END_TEST

/* ---- pauses */

static void deliver_as_of(int launches, uint64_t when_ns)
{
    char ago[32];

    (void)snprintf(ago, sizeof(ago), "%llu",
                   (unsigned long long)((lac_monotonic_ns() - when_ns) / 1000000));
    (void)setenv("STAND_IN_AGO_MS", ago, 1);
    lac_cupti_deliver(launches, 1, 0);
    (void)setenv("STAND_IN_AGO_MS", "0", 1);
}

/* The recorder looks at the wish often enough: each state is one that it has seen for a while. */
static uint64_t in_state(uint32_t stop)
{
    const uint64_t begin_ns = lac_monotonic_ns();

    lac_cupti_own_header()->stop = stop;
    for (int i = 0; i < 20; i++) {
        lac_cupti_deliver(1, 1, 0);
        sleep_ms(20);
    }
    return begin_ns + (lac_monotonic_ns() - begin_ns) / 2;
}

/* Buffers that CUPTI kept back come two pauses later. */
static void job_pauses_twice(void)
{
    uint64_t paused_ns;
    uint64_t recorded_ns;

    lac_cupti_initialize();
    paused_ns = in_state(LAC_SPOOL_PAUSE);
    recorded_ns = in_state(LAC_SPOOL_RECORD); /* 20 kernels */
    (void)in_state(LAC_SPOOL_PAUSE);
    (void)in_state(LAC_SPOOL_RECORD); /* 20 kernels */
    deliver_as_of(100, paused_ns);
    deliver_as_of(1000, recorded_ns);
}

START_TEST(late_records_of_an_earlier_pause_are_left_out_and_others_kept)
{
    ck_assert_int_eq(lac_job_run(job_pauses_twice), 0);
    lac_cupti_import();
    /* one more a pause: what comes with the last look at it may be of behind it */
    ck_assert_uint_ge(lac_cupti_count(LAC_SLICE_KERNEL), 20 + 20 + 1000);
    ck_assert_uint_le(lac_cupti_count(LAC_SLICE_KERNEL), 21 + 21 + 1000);
}
END_TEST

int main(void)
{
    TCase *const tcase = tcase_create("beside");
    Suite *const suite = suite_create("cupti_beside");

    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, nothing_of_ours_is_in_cupti_when_another_profiler_begins);
    tcase_add_test(tcase, a_library_that_does_not_fit_gives_way_to_the_next_beside_the_runtime);
    tcase_add_test(tcase, of_libraries_that_all_refuse_the_first_one_is_told);
    tcase_add_test(tcase,
                   of_the_libraries_that_are_there_the_one_is_taken_that_fits_driver_and_runtime);
    tcase_add_test(tcase, no_lock_of_ours_is_held_while_cupti_is_asked);
    tcase_add_test(tcase, a_forked_child_does_not_wait_for_a_thread_that_it_lacks);
    tcase_add_test(tcase, late_records_of_an_earlier_pause_are_left_out_and_others_kept);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
