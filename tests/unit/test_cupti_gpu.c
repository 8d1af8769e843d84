/*
 * GPU recording as the headers of CUPTI allow it to go: operations in progress when buffers are
 * asked for, buffers of other tools, clocks and subscriptions that are not given back. Against a
 * stand-in (tests/stand_in) that does all of this.
 */
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "collector/inject/api.h"
#include "collector/inject/cupti_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void (*launch)(uint32_t count, uint64_t kernel_ns, uint32_t thread);

static void start_gpu(void)
{
    lac_cupti_initialize();
    *(void **)&launch = lac_cupti_stand_in("stand_in_launch");
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&pause, NULL);
}

static bool reports(const char *code, uint64_t count)
{
    for (uint32_t i = 0; i < lac_cupti_model->report_count; i++) {
        if (strcmp(lac_cupti_model->report[i].code, code) == 0) {
            return lac_cupti_model->report[i].count == count;
        }
    }
    return false;
}

static void check_caveat_says(const char *text)
{
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    bool is_said = false;

    ck_assert_int_eq(lac_diagnose(lac_cupti_model, NULL, &analysis, &error), LAC_OK);
    for (uint32_t i = 0; i < analysis->caveat_count; i++) {
        is_said = is_said || strstr(analysis->caveats[i], text) != NULL;
    }
    lac_analysis_destroy(analysis);
    ck_assert_msg(is_said, "%s", text);
}

static void job_ends_with_work_in_flight(void)
{
    start_gpu();
    launch(100, 1000, 1);
    sleep_ms(50);
    launch(3, 20000000, 1); /* 60 ms: waited for */
    launch(5, 3600000000000u, 1);
}

START_TEST(operations_that_still_run_at_the_end_are_counted_and_do_not_stretch_the_trace)
{
    ck_assert_int_eq(lac_job_run(job_ends_with_work_in_flight), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_API), 108);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 103);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 5);
    check_caveat_says(
        "5 events that the recorder could not keep (GPU operations that had not ended");
    ck_assert_int_lt(lac_cupti_model->info.duration_ns, 60 * 1000000000ll);
    ck_assert(lac_cupti_says("\"gpu_recording_untimed\":5"));
}
END_TEST

/* The host runs 50 ms ahead of the GPU for a second: no default flush gets the last buffer. */
static void job_is_killed_while_ahead(void)
{
    start_gpu();
    launch(500, 100000, 1);
    for (int i = 0; i < 110; i++) {
        launch(100, 100000, 1);
        sleep_ms(10);
    }
    (void)kill(getpid(), SIGKILL);
}

START_TEST(a_killed_job_loses_the_last_buffers_only)
{
    const int status = lac_job_run(job_is_killed_while_ahead);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    lac_cupti_import();
    /* of 11,500: what was in two buffers of a thousand is lost, more on a loaded machine */
    ck_assert_uint_ge(lac_cupti_count(LAC_SLICE_KERNEL), 5000);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), lac_cupti_count(LAC_SLICE_API));
    ck_assert_str_eq(lac_cupti_model->report[0].code, "gpu_buffers_lost");
    ck_assert_uint_ge(lac_cupti_model->info.dropped_count, 1);
    check_caveat_says("buffers of CUPTI that did not come back");
}
END_TEST

static void job_is_killed_while_it_reads(void)
{
    void (*kill_at)(int number);

    lac_cupti_initialize();
    *(void **)&kill_at = lac_cupti_stand_in("stand_in_kill_at_record");
    kill_at(5000);
    lac_cupti_deliver(4000, 1, 0); /* a call and a kernel each, in several buffers */
}

START_TEST(a_buffer_that_was_being_read_when_the_process_was_killed_is_counted)
{
    const int status = lac_job_run(job_is_killed_while_it_reads);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    lac_cupti_import();
    ck_assert_uint_lt(lac_cupti_count(LAC_SLICE_KERNEL), 2600);
    ck_assert_uint_ge(lac_cupti_model->info.dropped_count, 1);
    ck_assert(reports("gpu_buffers_lost", lac_cupti_model->info.dropped_count));
}
END_TEST

static void job_gets_buffers_of_others(void)
{
    void (*foreign)(void);
    void (*twice)(void);

    lac_cupti_initialize();
    *(void **)&foreign = lac_cupti_stand_in("stand_in_return_foreign");
    *(void **)&twice = lac_cupti_stand_in("stand_in_return_twice");
    foreign();
    twice();
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(buffers_of_others_and_second_returns_are_left_alone)
{
    ck_assert_int_eq(lac_job_run(job_gets_buffers_of_others), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
}
END_TEST

static void job_changes_clocks(void)
{
    int (*registrations)(void);
    void (*take_clock)(void);

    lac_cupti_initialize();
    *(void **)&registrations = lac_cupti_stand_in("stand_in_clock_registrations");
    *(void **)&take_clock = lac_cupti_stand_in("stand_in_take_clock");
    lac_cupti_deliver(5, 1, 0);
    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    lac_cupti_api()->gpu_yield(0, "");
    lac_cupti_deliver(5, 1, 0);
    ck_assert_int_eq(registrations(), 1); /* again would put records on CUPTI's own clock */
    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    take_clock();
    lac_cupti_api()->gpu_yield(0, "");
    lac_cupti_deliver(5, 1, 0); /* stamped with CLOCK_REALTIME */
    for (int i = 0; registrations() == 1 && i < 600; i++) {
        sleep_ms(50);
    }
    ck_assert_int_eq(registrations(), 2);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_clock_that_another_profiler_replaced_is_noticed)
{
    ck_assert_int_eq(lac_job_run(job_changes_clocks), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 20);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 0);
    ck_assert_int_lt(lac_cupti_model->info.duration_ns, 120 * 1000000000ll);
}
END_TEST

/* The job's first use of CUDA is inside its own profiler's block. */
static void job_profiles_first(void)
{
    int (*subscribers)(void);

    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    lac_cupti_initialize();
    *(void **)&subscribers = lac_cupti_stand_in("stand_in_subscribers");
    ck_assert_int_eq(subscribers(), 0);
    lac_cupti_api()->gpu_yield(0, "");
    ck_assert_int_eq(subscribers(), 1);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_profiler_that_is_there_before_cuda_gets_cupti_first)
{
    ck_assert_int_eq(lac_job_run(job_profiles_first), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
    ck_assert(lac_cupti_says("\"gpu_recording\":\"full\""));
}
END_TEST

static void job_busy_as_of_old(void)
{
    (void)setenv("STAND_IN_BUSY", "12", 1);
    (void)setenv("STAND_IN_REFUSE", "busy", 1);
    lac_cupti_initialize();
}

START_TEST(another_profiler_is_named_by_the_error_of_older_cuptis_too)
{
    ck_assert_int_eq(lac_job_run(job_busy_as_of_old), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("another profiler holds CUPTI: nsys"));
}
END_TEST

static void job_is_switched_off(void)
{
    int (*enabled)(int);
    struct lac_spool_header *header;

    start_gpu();
    *(void **)&enabled = lac_cupti_stand_in("stand_in_enabled");
    header = lac_cupti_own_header();
    launch(10, 1000, 1);
    sleep_ms(20);
    header->stop = LAC_SPOOL_OFF;
    for (int i = 0; enabled(CUPTI_KIND_CONCURRENT_KERNEL) && i < 600; i++) {
        sleep_ms(50);
    }
    launch(20, 1000, 1); /* CUPTI makes no record of them */
    header->stop = LAC_SPOOL_PAUSE;
    for (int i = 0; !enabled(CUPTI_KIND_CONCURRENT_KERNEL) && i < 600; i++) {
        sleep_ms(50);
    }
    launch(40, 1000, 1); /* we drop them */
    sleep_ms(100);
    header->stop = LAC_SPOOL_RECORD;
    sleep_ms(200);
    launch(80, 1000, 1);
    sleep_ms(20);
}

START_TEST(a_long_pause_costs_nothing_in_cupti)
{
    ck_assert_int_eq(lac_job_run(job_is_switched_off), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10 + 80);
}
END_TEST

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *const folder = opendir("/proc/self/task");

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count - 2;
}

static int count_enabled(void)
{
    int (*enabled)(int);
    int count = 0;

    *(void **)&enabled = lac_cupti_stand_in("stand_in_enabled");
    for (int kind = 0; kind < 64; kind++) {
        count += enabled(kind);
    }
    return count;
}

/* What the program pays from then on is that of a job that was never recorded. */
static void job_is_let_go(void)
{
    int (*subscribers)(void);
    uint64_t (*flushes)(void);
    uint64_t before;

    start_gpu();
    *(void **)&subscribers = lac_cupti_stand_in("stand_in_subscribers");
    *(void **)&flushes = lac_cupti_stand_in("stand_in_flushes");
    ck_assert_int_gt(count_enabled(), 0);
    ck_assert_uint_eq(count_threads(), 2);
    launch(10, 1000, 1);
    sleep_ms(20);
    lac_cupti_own_header()->stop = LAC_SPOOL_STOP;
    for (int i = 0; count_threads() > 1 && i < 600; i++) {
        sleep_ms(50);
    }
    ck_assert_uint_eq(count_threads(), 1);
    ck_assert_int_eq(count_enabled(), 0);
    ck_assert_int_eq(subscribers(), 0);
    before = flushes();
    launch(20, 1000, 1);
    lac_cupti_api()->gpu_yield(1, "another profiler"); /* and is not there again afterwards */
    lac_cupti_api()->gpu_yield(0, "another profiler");
    ck_assert_int_eq(subscribers(), 0);
    ck_assert_uint_eq(flushes(), before);
}

START_TEST(a_job_that_is_let_go_has_nothing_of_ours_in_cupti)
{
    ck_assert_int_eq(lac_job_run(job_is_let_go), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10);
}
END_TEST

static int count_timers(void)
{
    FILE *const file = fopen("/proc/self/timers", "re");
    char line[200];
    int count = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        count += strncmp(line, "ID:", 3) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        struct itimerval timer = {{0}, {0}};

        count += getitimer(which, &timer) == 0 &&
                 (timer.it_value.tv_sec > 0 || timer.it_value.tv_usec > 0);
    }
    return count;
}

/* Where calls of CUDA begin and end the recording, we are called back for them: no longer then. */
static void job_with_captures_is_let_go(void)
{
    void (*profiler)(int);
    uint64_t (*calls_back)(void);
    uint64_t before;

    (void)setenv("LACUNA_PROFILER_API", "1", 1);
    start_gpu();
    *(void **)&profiler = lac_cupti_stand_in("stand_in_profiler");
    *(void **)&calls_back = lac_cupti_stand_in("stand_in_calls_back");
    profiler(1);
    profiler(0);
    ck_assert_uint_gt(calls_back(), 0);
    lac_cupti_own_header()->stop = LAC_SPOOL_STOP;
    for (int i = 0; count_threads() > 1 && i < 600; i++) {
        sleep_ms(50);
    }
    before = calls_back();
    profiler(1);
    launch(20, 1000, 1);
    profiler(0);
    ck_assert_uint_eq(calls_back(), before);
    ck_assert_uint_eq(count_threads(), 1);
    ck_assert_int_eq(count_timers(), 0);
}

START_TEST(a_job_that_is_let_go_is_not_called_back_for)
{
    ck_assert_int_eq(lac_job_run(job_with_captures_is_let_go), 0);
}
END_TEST

static void job_limits_memory(void)
{
    size_t (*buffers_max)(void);

    lac_cupti_initialize();
    *(void **)&buffers_max = lac_cupti_stand_in("stand_in_device_buffers_max");
    ck_assert_uint_eq(buffers_max(), 16);
}

START_TEST(cupti_may_take_little_of_the_devices_memory)
{
    ck_assert_int_eq(lac_job_run(job_limits_memory), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording_device_buffers_max\":16"));
}
END_TEST

static void job_that_gives_more_memory(void)
{
    size_t (*buffers_max)(void);

    (void)setenv("LACUNA_DEVICE_BUFFERS", "250", 1);
    lac_cupti_initialize();
    *(void **)&buffers_max = lac_cupti_stand_in("stand_in_device_buffers_max");
    ck_assert_uint_eq(buffers_max(), 250);
}

static void job_with_a_limit_that_is_none(void)
{
    (void)setenv("LACUNA_DEVICE_BUFFERS", "-1", 1);
    job_limits_memory();
}

START_TEST(how_much_of_the_devices_memory_can_be_said)
{
    ck_assert_int_eq(lac_job_run(job_that_gives_more_memory), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording_device_buffers_max\":250"));
    ck_assert_int_eq(lac_job_run(job_with_a_limit_that_is_none), 0);
}
END_TEST

static void job_whose_memory_cannot_be_limited(void)
{
    (void)setenv("STAND_IN_REFUSE", "attributes", 1);
    lac_cupti_initialize();
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_cupti_that_refuses_the_limit_of_memory_is_recorded_with_all_the_same)
{
    ck_assert_int_eq(lac_job_run(job_whose_memory_cannot_be_limited), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
    ck_assert(!lac_cupti_says("gpu_recording_device_buffers_max"));
}
END_TEST

/* Two processes, each with a GPU 1 and 1.5 ms behind its launches. */
static void job_of_two_processes(void)
{
    for (uint32_t child = 0; child < 2; child++) {
        if (fork() == 0) {
            start_gpu();
            launch(200, child == 0 ? 1000000 : 1500000, 11 + child);
            sleep_ms(400);
            exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}

START_TEST(correlation_ids_are_of_one_process)
{
    uint64_t bound[2] = {0, 0};

    ck_assert_int_eq(lac_job_run(job_of_two_processes), 0);
    lac_cupti_import();
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_KERNEL) {
            const uint32_t call = lac_cupti_model->slices.link[i];
            const bool is_second = lac_cupti_model->slices.dur_ns[i] == 1500000;

            ck_assert_uint_ne(call, LAC_NONE);
            ck_assert_int_eq(lac_cupti_model->tracks[lac_model_track_of(lac_cupti_model, call)].tid,
                             is_second ? 12 : 11);
            bound[is_second]++;
        }
    }
    ck_assert_uint_eq(bound[0], 200);
    ck_assert_uint_eq(bound[1], 200);
}
END_TEST

/* Three processes that see one device each, as number 0; two of them the same one. */
static void job_of_visible_devices(void)
{
    void (*deliver_device)(uint32_t, uint8_t);

    for (int child = 0; child < 3; child++) {
        if (fork() == 0) {
            lac_cupti_initialize();
            *(void **)&deliver_device = lac_cupti_stand_in("stand_in_deliver_device");
            deliver_device(0, child < 2 ? 0xa0 : 0xb1);
            lac_cupti_deliver(5, 1, 0);
            exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}

START_TEST(devices_are_told_apart_by_uuid)
{
    ck_assert_int_eq(lac_job_run(job_of_visible_devices), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 15);
    ck_assert_uint_eq(lac_cupti_model->device_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct lac_device *const device = &lac_cupti_model->devices[i];

        ck_assert_str_eq(lac_model_str(lac_cupti_model, device->name), "Stand-in H100");
        ck_assert_int_eq(device->sm_count, 132);
        ck_assert_int_eq(device->cc_major, 9);
        ck_assert_int_eq(device->memory_bytes, 85899345920);
    }
    ck_assert(!lac_cupti_says("gpu_device"));
}
END_TEST

/* The driver's monitor calls the job's only device number 3; as a launcher writes it. */
static void job_of_device_three(void)
{
    void (*deliver_device)(uint32_t, uint8_t);

    lac_cupti_api()->setting("host.gpu_uuid.2=GPU-00000000-0000-0000-0000-0000000000a0",
                             strlen("host.gpu_uuid.2=GPU-00000000-0000-0000-0000-0000000000a0"));
    lac_cupti_api()->setting("host.gpu_uuid.3=GPU-00000000-0000-0000-0000-0000000000b1",
                             strlen("host.gpu_uuid.3=GPU-00000000-0000-0000-0000-0000000000b1"));
    lac_cupti_initialize();
    *(void **)&deliver_device = lac_cupti_stand_in("stand_in_deliver_device");
    deliver_device(0, 0xb1);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_device_has_the_number_that_its_counters_have)
{
    ck_assert_int_eq(lac_job_run(job_of_device_three), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_model->device_count, 1);
    ck_assert_int_eq(lac_cupti_model->devices[0].id, 3);
}
END_TEST

/* Two processes that each see a part of the same GPU, which the monitor knows as a whole, as device 0;
 * the first is also told of a device that it may not use. */
static void job_of_parts(void)
{
    for (uint8_t part = 1; part <= 2; part++) {
        const pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            void (*deliver_part)(uint32_t, uint8_t, uint8_t);

            lac_cupti_api()->setting(
                "host.gpu_uuid.0=GPU-00000000-0000-0000-0000-0000000000a0",
                strlen("host.gpu_uuid.0=GPU-00000000-0000-0000-0000-0000000000a0"));
            lac_cupti_initialize();
            *(void **)&deliver_part = lac_cupti_stand_in("stand_in_deliver_part");
            deliver_part(0, 0xa0, part);
            deliver_part(0, 0xb1, 255);
            lac_cupti_deliver(5, 1, 0);
            exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}

START_TEST(parts_of_a_gpu_stay_apart_and_are_not_the_gpu)
{
    ck_assert_int_eq(lac_job_run(job_of_parts), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10);
    ck_assert_uint_eq(lac_cupti_model->device_count, 2);
    ck_assert(lac_cupti_says("gpu_uuid.0\":\"MIG-00000000-0000-0000-0000-000000000001") ||
              lac_cupti_says("gpu_uuid.0\":\"MIG-00000000-0000-0000-0000-000000000002"));
    ck_assert(!lac_cupti_says("0000000000b1"));
}
END_TEST

static void job_of_a_mangled_name(void)
{
    void (*name_kernels)(const char *);

    start_gpu();
    *(void **)&name_kernels = lac_cupti_stand_in("stand_in_name_kernels");
    name_kernels("_ZN3net9transposeIfEEvPKT_PS1_i");
    launch(1, 1000, 1);
    sleep_ms(20);
}

START_TEST(kernels_have_the_names_that_a_programmer_wrote)
{
    ck_assert_int_eq(lac_job_run(job_of_a_mangled_name), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 1);
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_KERNEL) {
            ck_assert_str_eq(lac_model_str(lac_cupti_model, lac_cupti_model->slices.name[i]),
                             "void net::transpose<float>(float const*, float*, int)");
        }
    }
}
END_TEST

/* Names of C++ templates that only differ in the middle, twice each; and one that just fits. */
enum { LONG_NAME = 9000, KEPT_NAME = 4096 };

static void job_of_long_names(void)
{
    static char names[3][LONG_NAME + 1];
    void (*name_kernels)(const char *);

    start_gpu();
    *(void **)&name_kernels = lac_cupti_stand_in("stand_in_name_kernels");
    for (int i = 0; i < 3; i++) {
        memset(names[i], 'x', sizeof(names[i]) - 1);
        memcpy(names[i], "_ZN7cutlass6KernelI", 19);
        memcpy(names[i] + LONG_NAME - 9, "EEvT_0_NS", 9);
    }
    names[1][LONG_NAME / 2] = 'y';
    names[2][KEPT_NAME] = '\0';
    for (int i = 0; i < 6; i++) {
        name_kernels(names[i % 3]);
        launch(1, 1000, 1);
        sleep_ms(2);
    }
    sleep_ms(20);
}

START_TEST(long_names_of_kernels_stay_apart_and_are_counted)
{
    const char *names[6];
    size_t count = 0;

    ck_assert_int_eq(lac_job_run(job_of_long_names), 0);
    lac_cupti_import();
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_KERNEL) {
            ck_assert_uint_lt(count, 6);
            names[count++] = lac_model_str(lac_cupti_model, lac_cupti_model->slices.name[i]);
        }
    }
    ck_assert_uint_eq(count, 6);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(strcmp(names[i], names[i + 3]), 0);
        ck_assert_int_ne(strcmp(names[i], names[(i + 1) % 3]), 0);
        ck_assert_int_eq(strncmp(names[i], "_ZN7cutlass6KernelI", 19), 0);
        ck_assert_uint_eq(strlen(names[i]), KEPT_NAME);
        ck_assert_int_eq(strcmp(names[i] + KEPT_NAME - 9, "EEvT_0_NS") == 0, i < 2);
    }
    ck_assert(reports("names_cut", 4));
}
END_TEST

/* ---- another tool's library, in CUDA_INJECTION64_PATH before ours */

static int (*injections)(void);

static void start_beside(const char *path, const char *script)
{
    (void)setenv("LACUNA_CUDA_INJECTION", path, 1);
    (void)setenv("STAND_IN_INJECTION", script, 1);
    lac_cupti_initialize();
    *(void **)&injections = lac_cupti_stand_in("stand_in_injections");
}

static void job_beside_another_tool(void)
{
    start_beside(lac_job_file("stand_in/libcupti_stand_in.so"), "");
    ck_assert_int_eq(injections(), 1);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(another_tools_injection_is_loaded_too)
{
    ck_assert_int_eq(lac_job_run(job_beside_another_tool), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
    ck_assert(lac_cupti_says("\"cuda_injection\":\"loaded: "));
}
END_TEST

/* What it would have without us, it has: the subscription. */
static void job_beside_a_tool_that_subscribes(void)
{
    start_beside(lac_job_file("stand_in/libcupti_stand_in.so"), "subscribe");
}

START_TEST(another_tools_injection_comes_first)
{
    ck_assert_int_eq(lac_job_run(job_beside_a_tool_that_subscribes), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording\":\"ranges-only\""));
    ck_assert(lac_cupti_says("another profiler holds CUPTI: nsys"));
}
END_TEST

static void job_beside_a_tool_that_fails(void)
{
    start_beside(lac_job_file("stand_in/libcupti_stand_in.so"), "fail");
    ck_assert_int_eq(injections(), 1);
    lac_cupti_deliver(5, 1, 0);
}

static void job_beside_a_tool_that_is_gone(void)
{
    start_beside("/nowhere/libtool.so", "");
    lac_cupti_deliver(5, 1, 0);
}

static void job_beside_no_tool(void)
{
    start_beside(lac_job_file("stand_in/nvml/libnvidia-ml.so.1"), ""); /* it has no entry point */
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(an_injection_that_fails_or_is_gone_does_not_harm_ours)
{
    static const struct {
        void (*job)(void);
        const char *said;
    } rows[] = {{job_beside_a_tool_that_fails, "\"cuda_injection\":\"refused: "},
                {job_beside_a_tool_that_is_gone, "\"cuda_injection\":\"not loaded: "},
                {job_beside_no_tool, "\"cuda_injection\":\"not loaded: "}};

    ck_assert_int_eq(lac_job_run(rows[_i].job), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
    ck_assert(lac_cupti_says(rows[_i].said));
}
END_TEST

/* A part of the job that is not to be recorded keeps its other tool. */
static void job_that_is_switched_off(void)
{
    (void)setenv("LACUNA_DISABLE", "1", 1);
    start_beside(lac_job_file("stand_in/libcupti_stand_in.so"), "");
    ck_assert_int_eq(injections(), 1);
}

START_TEST(another_tools_injection_is_loaded_where_nothing_is_recorded)
{
    ck_assert_int_eq(lac_job_run(job_that_is_switched_off), 0);
    ck_assert_int_eq(lac_job_spool_count(), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cupti_gpu");
    TCase *const tcase = tcase_create("as the headers allow");

    tcase_set_timeout(tcase, 240);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase,
                   operations_that_still_run_at_the_end_are_counted_and_do_not_stretch_the_trace);
    tcase_add_test(tcase, a_killed_job_loses_the_last_buffers_only);
    tcase_add_test(tcase, a_buffer_that_was_being_read_when_the_process_was_killed_is_counted);
    tcase_add_test(tcase, buffers_of_others_and_second_returns_are_left_alone);
    tcase_add_test(tcase, a_clock_that_another_profiler_replaced_is_noticed);
    tcase_add_test(tcase, a_profiler_that_is_there_before_cuda_gets_cupti_first);
    tcase_add_test(tcase, another_profiler_is_named_by_the_error_of_older_cuptis_too);
    tcase_add_test(tcase, a_long_pause_costs_nothing_in_cupti);
    tcase_add_test(tcase, a_job_that_is_let_go_has_nothing_of_ours_in_cupti);
    tcase_add_test(tcase, a_job_that_is_let_go_is_not_called_back_for);
    tcase_add_test(tcase, cupti_may_take_little_of_the_devices_memory);
    tcase_add_test(tcase, how_much_of_the_devices_memory_can_be_said);
    tcase_add_test(tcase, a_cupti_that_refuses_the_limit_of_memory_is_recorded_with_all_the_same);
    tcase_add_test(tcase, correlation_ids_are_of_one_process);
    tcase_add_test(tcase, devices_are_told_apart_by_uuid);
    tcase_add_test(tcase, parts_of_a_gpu_stay_apart_and_are_not_the_gpu);
    tcase_add_test(tcase, a_device_has_the_number_that_its_counters_have);
    tcase_add_test(tcase, kernels_have_the_names_that_a_programmer_wrote);
    tcase_add_test(tcase, long_names_of_kernels_stay_apart_and_are_counted);
    tcase_add_test(tcase, another_tools_injection_is_loaded_too);
    tcase_add_test(tcase, another_tools_injection_comes_first);
    tcase_add_loop_test(tcase, an_injection_that_fails_or_is_gone_does_not_harm_ours, 0, 3);
    tcase_add_test(tcase, another_tools_injection_is_loaded_where_nothing_is_recorded);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
