/*
 * GPU recording without a GPU: the conversation with CUPTI against a stand-in (tests/stand_in).
 * What records look like is test_cupti_records.c's.
 */
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/inject/api.h"
#include "collector/inject/cupti_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(CUPTI_RESULT_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_RESULT_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_RESULT_MAX_LIMIT, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_RESULT_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(CUPTI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(CUPTI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(CUPTI_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
SAME(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
#endif

static void check_diagnosis_says(const char *text)
{
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    bool is_said = false;

    ck_assert_int_eq(lac_diagnose(lac_cupti_model, NULL, &analysis, &error), LAC_OK);
    for (uint32_t i = 0; i < analysis->not_recorded_count; i++) {
        is_said = is_said || strcmp(analysis->not_recorded[i], text) == 0;
    }
    lac_analysis_destroy(analysis);
    ck_assert_msg(is_said, "%s", text);
}

static void job_records(void)
{
    lac_cupti_initialize();
    lac_cupti_deliver(3000, (uint32_t)syscall(SYS_gettid), 0);
}

START_TEST(kernels_calls_and_copies_arrive_and_are_bound)
{
    uint64_t bound = 0;

    ck_assert_int_eq(lac_job_run(job_records), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 3000);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_API), 3000);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_COPY), 3000);
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_KERNEL) {
            const uint32_t call = lac_cupti_model->slices.link[i];

            ck_assert_uint_ne(call, LAC_NONE);
            ck_assert_uint_eq(lac_cupti_model->slices.corr[call], lac_cupti_model->slices.corr[i]);
            ck_assert_uint_eq(lac_cupti_model->slices.detail[call], 0); /* what it returned */
            ck_assert_str_eq(lac_model_str(lac_cupti_model, lac_cupti_model->slices.name[call]),
                             "cudaLaunchKernel");
            ck_assert_int_eq(lac_cupti_model->slices.dur_ns[i], 4000);
            bound++;
        }
    }
    ck_assert_uint_eq(bound, 3000);
    ck_assert(lac_cupti_says("\"gpu_recording\":\"full\""));
    ck_assert_uint_eq(lac_cupti_model->device_count, 1);
    ck_assert_uint_eq(lac_cupti_model->kernel_config_count, 1);
    ck_assert_uint_eq(lac_cupti_model->kernel_configs[0].grid[0], 8);
    ck_assert_uint_eq(lac_cupti_model->kernel_configs[0].graph_node, (UINT64_C(5) << 32) + 77);
    ck_assert_int_eq(lac_cupti_model->copies[0].src, LAC_MEMORY_PAGEABLE);
    ck_assert_int_eq(lac_cupti_model->copies[0].bytes, 4096);
}
END_TEST

static void job_old_version(void)
{
    (void)setenv("STAND_IN_VERSION", "13", 1);
    job_records();
}

START_TEST(fields_that_a_version_lacks_are_not_read)
{
    ck_assert_int_eq(lac_job_run(job_old_version), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_model->kernel_configs[0].graph_node, 0);
}
END_TEST

static void job_busy(void)
{
    (void)setenv("STAND_IN_REFUSE", "busy", 1);
    lac_cupti_initialize();
}

START_TEST(another_profiler_is_named)
{
    ck_assert_int_eq(lac_job_run(job_busy), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording\":\"ranges-only\""));
    ck_assert(lac_cupti_says("another profiler holds CUPTI: nsys"));
    check_diagnosis_says("GPU operations: another profiler holds CUPTI: nsys");
}
END_TEST

static void job_refused(void)
{
    (void)setenv("STAND_IN_REFUSE", "privileges", 1);
    lac_cupti_initialize();
}

START_TEST(refused_privileges_give_the_administrators_sentence)
{
    ck_assert_int_eq(lac_job_run(job_refused), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording\":\"without-kernels\""));
    ck_assert(lac_cupti_says("NVreg_RestrictProfilingToAdminUsers=0"));
}
END_TEST

static void job_drops(void)
{
    lac_cupti_initialize();
    lac_cupti_deliver(10, 1, 123);
}

START_TEST(records_that_cupti_dropped_are_counted)
{
    ck_assert_int_eq(lac_job_run(job_drops), 0);
    lac_cupti_import();
    ck_assert_uint_ge(lac_cupti_model->info.dropped_count, 123);
}
END_TEST

static void job_realtime(void)
{
    (void)setenv("STAND_IN_NO_TIMESTAMP", "1", 1);
    lac_cupti_initialize();
    lac_cupti_deliver(10, 1, 0);
}

START_TEST(times_of_a_cupti_that_keeps_its_own_clock_are_placed)
{
    const int64_t began_ns = (int64_t)time(NULL) * 1000000000;

    ck_assert_int_eq(lac_job_run(job_realtime), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10);
    ck_assert_int_ge(lac_cupti_model->info.t0_ns, began_ns - 1000000000);
    ck_assert_int_le(lac_cupti_model->info.t0_ns, (int64_t)(time(NULL) + 1) * 1000000000);
}
END_TEST

static void job_forks_after_cuda(void)
{
    pid_t pid;

    lac_cupti_initialize();
    lac_cupti_deliver(5, 1, 0);
    pid = fork();
    if (pid == 0) {
        exit(0); /* runs our exit handler: it must not touch CUPTI here */
    }
    (void)waitpid(pid, NULL, 0);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_forked_child_leaves_cupti_alone)
{
    ck_assert_int_eq(lac_job_run(job_forks_after_cuda), 0);
    ck_assert_int_eq(lac_job_spool_count(), 1);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10);
}
END_TEST

static void job_yields(void)
{
    void *cupti;
    void *library;
    int (*subscribers)(void);
    int (*enabled)(int);
    const struct lacuna_api *(*get_api)(void);
    const struct lacuna_api *api;

    lac_cupti_initialize();
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    cupti = dlopen(lac_job_file("stand_in/libcupti_stand_in.so"), RTLD_LAZY);
    *(void **)&get_api = dlsym(library, "lacuna_get_api");
    *(void **)&subscribers = dlsym(cupti, "stand_in_subscribers");
    *(void **)&enabled = dlsym(cupti, "stand_in_enabled");
    api = get_api();
    ck_assert_int_eq(subscribers(), 1);
    lac_cupti_deliver(5, 1, 0);
    api->gpu_yield(1, "torch.profiler");
    api->gpu_yield(1, "torch.profiler");
    ck_assert_int_eq(subscribers(), 0);
    ck_assert_int_eq(enabled(CUPTI_KIND_CONCURRENT_KERNEL), 0);
    api->gpu_yield(0, "");
    ck_assert_int_eq(subscribers(), 1);
    ck_assert_int_eq(enabled(CUPTI_KIND_CONCURRENT_KERNEL), 1);
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(cupti_is_left_to_another_profiler_and_taken_back)
{
    ck_assert_int_eq(lac_job_run(job_yields), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10);
    ck_assert(lac_cupti_says("\"gpu_recording_yielded_to\":\"torch.profiler\""));
    ck_assert(lac_cupti_says("\"gpu_recording_after_yield\":\"full\""));
}
END_TEST

/* As releases of Kineto do until August 2026: they subscribe and never unsubscribe. */
static void job_is_not_given_back(void)
{
    void (*occupy)(int);

    lac_cupti_initialize();
    *(void **)&occupy = lac_cupti_stand_in("stand_in_occupy");
    lac_cupti_deliver(5, 1, 0);
    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    occupy(1);
    lac_cupti_api()->gpu_yield(0, "");
    lac_cupti_deliver(7, 1, 0);
    lac_cupti_api()->gpu_yield(1, "torch.profiler"); /* and a second time */
    lac_cupti_api()->gpu_yield(0, "");
    lac_cupti_deliver(9, 1, 0);
}

START_TEST(recording_goes_on_beside_a_profiler_that_keeps_its_subscription)
{
    ck_assert_int_eq(lac_job_run(job_is_not_given_back), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5 + 7 + 9);
    ck_assert(lac_cupti_says("\"gpu_recording_yielded_to\":\"torch.profiler\""));
    ck_assert(lac_cupti_says("\"gpu_recording_after_yield\":\"full\""));
    ck_assert(
        lac_cupti_says("\"gpu_recording_subscription\":\"another profiler's, which keeps it"));
}
END_TEST

static void job_refused_all(void)
{
    int (*subscribers)(void);

    (void)setenv("STAND_IN_REFUSE", "all", 1);
    lac_cupti_initialize();
    *(void **)&subscribers = lac_cupti_stand_in("stand_in_subscribers");
    ck_assert_int_eq(subscribers(), 0); /* others may be luckier */
}

static void job_refused_subscription(void)
{
    (void)setenv("STAND_IN_REFUSE", "subscribe", 1);
    lac_cupti_initialize();
}

START_TEST(the_last_rung_is_ranges_only)
{
    void (*const jobs[])(void) = {job_refused_all, job_refused_subscription};

    ck_assert_int_eq(lac_job_run(jobs[_i]), 0);
    lac_cupti_import();
    ck_assert(lac_cupti_says("\"gpu_recording\":\"ranges-only\""));
    check_diagnosis_says(_i == 0 ? "GPU operations: "
                                   "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); the administrator "
                                   "allows it with: options nvidia "
                                   "NVreg_RestrictProfilingToAdminUsers=0"
                                 : "GPU operations: CUPTI refused us: "
                                   "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); the administrator "
                                   "allows it with: options nvidia "
                                   "NVreg_RestrictProfilingToAdminUsers=0");
}
END_TEST

static void job_every_kind(void)
{
    void (*deliver_kinds)(uint32_t);

    lac_cupti_initialize();
    *(void **)&deliver_kinds = lac_cupti_stand_in("stand_in_deliver_kinds");
    deliver_kinds((uint32_t)syscall(SYS_gettid));
}

static uint64_t only_of(enum lac_slice_kind kind)
{
    uint64_t found = UINT64_MAX;

    ck_assert_uint_eq(lac_cupti_count(kind), 1);
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        found = lac_cupti_model->slices.kind[i] == kind ? i : found;
    }
    return found;
}

START_TEST(every_kind_of_record_arrives)
{
    const struct lac_copy *copies;
    uint64_t at;
    char args[200];

    ck_assert_int_eq(lac_job_run(job_every_kind), 0);
    lac_cupti_import();
    copies = lac_cupti_model->copies;
    at = only_of(LAC_SLICE_COPY);
    ck_assert_int_eq(copies[lac_cupti_model->slices.detail[at]].bytes, 8192);
    ck_assert_int_eq(copies[lac_cupti_model->slices.detail[at]].copy_kind, LAC_COPY_PTOP);
    ck_assert_uint_eq(lac_cupti_model->slices.corr[at], 71);
    at = only_of(LAC_SLICE_MEMSET);
    ck_assert_int_eq(copies[lac_cupti_model->slices.detail[at]].bytes, 512);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_SYNC), 2);
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_SYNC) {
            const bool waits = lac_cupti_model->slices.corr[i] == 60;

            (void)lac_args_format(lac_cupti_model, i, args, sizeof(args));
            ck_assert_int_eq(lac_cupti_model->slices.dur_ns[i], waits ? 0 : 500);
            ck_assert_str_eq(args, waits ? "{\"stream\":9,\"wait_on_stream\":14,"
                                           "\"wait_on_cuda_event_record_corr_id\":50,"
                                           "\"wait_on_cuda_event_id\":33}"
                                         : "{\"stream\":9}");
        }
    }
    ck_assert_int_eq(lac_cupti_model->slices.dur_ns[only_of(LAC_SLICE_OVERHEAD)], 300);
    ck_assert_int_eq(
        lac_cupti_model->allocs[lac_cupti_model->slices.detail[only_of(LAC_SLICE_ALLOC)]].bytes,
        1 << 20);
    at = only_of(LAC_SLICE_KERNEL);
    ck_assert_str_eq(lac_model_str(lac_cupti_model, lac_cupti_model->slices.name[at]),
                     "CUDA graph");
    ck_assert_int_eq(lac_cupti_model->slices.dur_ns[at], 900);
    (void)lac_args_format(lac_cupti_model, at, args, sizeof(args));
    ck_assert_str_eq(args, "{\"graph id\":11}");
}
END_TEST

static void job_pauses(void)
{
    struct lac_spool_header *header;

    lac_cupti_initialize();
    header = lac_cupti_own_header();
    lac_cupti_deliver(10, 1, 0);
    header->stop = LAC_SPOOL_PAUSE;
    (void)setenv("STAND_IN_AGO_MS", "10000", 1);
    lac_cupti_deliver(20, 1, 0); /* of before the pause, in a buffer that CUPTI had kept */
    (void)setenv("STAND_IN_AGO_MS", "0", 1);
    lac_cupti_deliver(40, 1, 0);
    header->stop = LAC_SPOOL_RECORD;
    lac_cupti_deliver(80, 1, 0);
}

START_TEST(records_from_before_a_pause_are_kept_when_they_come)
{
    ck_assert_int_eq(lac_job_run(job_pauses), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 10 + 20 + 80);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_API), 10 + 20 + 80);
}
END_TEST

static void job_external(void)
{
    void (*deliver_external)(uint32_t);

    lac_cupti_initialize();
    *(void **)&deliver_external = lac_cupti_stand_in("stand_in_deliver_external");
    deliver_external((uint32_t)syscall(SYS_gettid));
}

static void check_ids(uint64_t at)
{
    char args[200];

    (void)lac_args_format(lac_cupti_model, at, args, sizeof(args));
    if (lac_cupti_model->slices.corr[at] == 81) {
        ck_assert_str_eq(args, lac_cupti_model->slices.kind[at] == LAC_SLICE_KERNEL
                                   ? "{\"External id\":5000000001,\"External id of kind 4\":17,"
                                     "\"graph id\":6}"
                                   : "{\"External id\":5000000001,\"External id of kind 4\":17}");
    } else {
        ck_assert_str_eq(args,
                         lac_cupti_model->slices.corr[at] == 82 ? "{\"External id\":18}" : "");
    }
}

START_TEST(ids_that_the_program_pushed_are_arguments_of_call_and_operation)
{
    ck_assert_int_eq(lac_job_run(job_external), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_API), 2);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 1);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_COPY), 2);
    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        check_ids(i);
    }
    ck_assert(lac_cupti_says("\"gpu_recording\":\"full\""));
}
END_TEST

static void job_external_refused(void)
{
    (void)setenv("STAND_IN_REFUSE", "external", 1);
    job_records();
}

START_TEST(a_cupti_without_ids_is_no_failure)
{
    ck_assert_int_eq(lac_job_run(job_external_refused), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 3000);
    ck_assert(lac_cupti_says("\"gpu_recording\":\"full\""));
}
END_TEST

static void job_late(void)
{
    int (*deliver_late)(int);

    lac_cupti_initialize();
    *(void **)&deliver_late = lac_cupti_stand_in("stand_in_deliver_late");
    ck_assert_int_eq(deliver_late(40), 40);
    ck_assert_int_eq(deliver_late(40), 40); /* the same ones again */
}

START_TEST(buffers_that_come_late_and_out_of_order_lose_nothing)
{
    uint64_t bytes = 0;

    ck_assert_int_eq(lac_job_run(job_late), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_MEMSET), 80);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 0);
    for (uint64_t i = 0; i < 80; i++) {
        bytes += (uint64_t)lac_cupti_model->copies[i].bytes;
    }
    ck_assert_uint_eq(bytes, 2 * 40 * 41 / 2);
}
END_TEST

static int (*late(void))(int)
{
    int (*deliver_late)(int);

    lac_cupti_initialize();
    *(void **)&deliver_late = lac_cupti_stand_in("stand_in_deliver_late");
    return deliver_late;
}

static void job_takes_all_buffers(void)
{
    int (*const deliver_late)(int) = late();

    /* 512 that are read, 64 that are not, and one of these again and again */
    ck_assert_int_eq(deliver_late(600), 512 + 64 + 1);
    ck_assert_int_eq(deliver_late(40), 40);
}

static void check_that_88_were_not_kept(void)
{
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_MEMSET), 512 + 40);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 88);
    check_diagnosis_says("GPU operations without a buffer: CUPTI asked 88 times in vain: too many "
                         "buffers were in use, or the job had no memory for another");
}

START_TEST(buffers_beyond_the_limit_are_thrown_away_and_counted)
{
    ck_assert_int_eq(lac_job_run(job_takes_all_buffers), 0);
    check_that_88_were_not_kept();
}
END_TEST

static void job_takes_all_buffers_of_cuda_12_9(void)
{
    int (*deliver_late)(int);

    (void)setenv("STAND_IN_VERSION", "27", 1);
    deliver_late = late();
    ck_assert_int_eq(deliver_late(600), 512);
    ck_assert_int_eq(deliver_late(40), 40);
}

/* What CUPTI counts as dropped is what we refused: not twice. */
START_TEST(buffers_beyond_the_limit_are_refused_and_counted_once)
{
    ck_assert_int_eq(lac_job_run(job_takes_all_buffers_of_cuda_12_9), 0);
    check_that_88_were_not_kept();
}
END_TEST

/* As much memory as it has, and no more, while 40 buffers are asked for. Then as before. The
 * collector's own thread runs by then: the address sanitizer ends a thread that starts without. */
static void without_memory(int (*deliver_late)(int), int handed_out)
{
    uint64_t (*flushes)(void);
    struct rlimit before;
    struct rlimit little;
    int different;

    *(void **)&flushes = lac_cupti_stand_in("stand_in_flushes");
    while (flushes() == 0) {
        (void)usleep(10000);
    }
    (void)getrlimit(RLIMIT_AS, &before);
    little = before;
    little.rlim_cur = 1; /* less than it has: no mapping more */
    (void)setrlimit(RLIMIT_AS, &little);
    different = deliver_late(40);
    (void)setrlimit(RLIMIT_AS, &before);
    ck_assert_int_eq(different, handed_out);
    ck_assert_int_eq(deliver_late(40), 40);
}

static void job_without_memory(void)
{
    without_memory(late(), 1); /* the one that was set aside */
}

static void job_without_memory_of_cuda_12_9(void)
{
    (void)setenv("STAND_IN_VERSION", "130001", 1);
    without_memory(late(), 0);
}

START_TEST(a_job_without_memory_for_buffers_goes_on_and_its_losses_are_counted)
{
    ck_assert_int_eq(lac_job_run(job_without_memory), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_MEMSET), 40);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 40);
}
END_TEST

START_TEST(a_job_without_memory_for_buffers_refuses_them_and_counts_its_losses)
{
    ck_assert_int_eq(lac_job_run(job_without_memory_of_cuda_12_9), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_MEMSET), 40);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 40);
}
END_TEST

static void job_threads(void)
{
    void (*together)(int, int);

    lac_cupti_initialize();
    *(void **)&together = lac_cupti_stand_in("stand_in_deliver_together");
    together(8, 500);
}

START_TEST(threads_that_return_buffers_at_once_do_not_mix_their_records)
{
    ck_assert_int_eq(lac_job_run(job_threads), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 8 * 500);
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_COPY), 8 * 500);
    ck_assert_uint_eq(lac_cupti_model->info.dropped_count, 0);
}
END_TEST

static void job_hangs(void)
{
    (void)setenv("STAND_IN_HANG", "1", 1);
    lac_cupti_initialize();
    lac_cupti_deliver(5, 1, 0);
}

START_TEST(a_driver_that_is_gone_does_not_hold_up_the_exit)
{
    const time_t begin = time(NULL);

    ck_assert_int_eq(lac_job_run(job_hangs), 0);
    ck_assert_int_le(time(NULL) - begin, 60); /* it would hang for ever */
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 5);
}
END_TEST

/* ---- graphs */

static uint64_t count_named(const char *name)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        count += strcmp(lac_model_str(lac_cupti_model, lac_cupti_model->slices.name[i]), name) == 0;
    }
    return count;
}

/* LACUNA_GRAPHS is as the caller left it. */
static void play_graphs(const char *script)
{
    uint64_t (*flushes)(void);

    (void)setenv("STAND_IN_GRAPHS", script, 1);
    lac_cupti_initialize();
    *(void **)&flushes = lac_cupti_stand_in("stand_in_flushes");
    for (int tries = 0; flushes() < 5 && tries < 500; tries++) {
        (void)usleep(100000);
    }
}

static void job_graphs(const char *script)
{
    (void)setenv("LACUNA_GRAPHS", "measured", 0);
    play_graphs(script);
}

static void job_graphs_by_default(void)
{
    (void)unsetenv("LACUNA_GRAPHS");
    play_graphs("600,20,3000");
}

START_TEST(kernels_of_graphs_are_recorded_where_nothing_else_is_asked_for)
{
    ck_assert_int_eq(lac_job_run(job_graphs_by_default), 0);
    lac_cupti_import();
    ck_assert_uint_ge(count_named("node_kernel"), 600);
    ck_assert_uint_eq(count_named("CUDA graph"), 0);
}
END_TEST

/* 8,200 kernels a second, each 3 us longer when they are recorded one by one. */
static void job_graphs_that_suffer(void)
{
    job_graphs("600,150,3000");
}

static bool report_says(const char *code)
{
    for (uint32_t i = 0; i < lac_cupti_model->report_count; i++) {
        if (strcmp(lac_cupti_model->report[i].code, code) == 0) {
            return true;
        }
    }
    return false;
}

/* The number behind `words` in what the session says of itself; NaN when they are not there. */
static double told_number(const char *words)
{
    const char *at = strstr(lac_model_str(lac_cupti_model, lac_cupti_model->info.metadata), words);

    return at != NULL ? strtod(at + strlen(words), NULL) : (double)NAN;
}

START_TEST(graphs_that_suffer_from_records_are_recorded_whole_and_that_is_said)
{
    ck_assert_int_eq(lac_job_run(job_graphs_that_suffer), 0);
    lac_cupti_import();
    ck_assert_uint_ge(count_named("node_kernel"), 150 * 600);
    ck_assert_uint_ge(count_named("CUDA graph"), 2 * 600);
    ck_assert(lac_cupti_says("\"graph_recording\":\"launches\""));
    /* 3 us on the GPU, and what the CPU needs for a record here */
    ck_assert_double_ge(told_number("one record each, at "), 3.0);
    ck_assert(report_says("graphs_as_a_whole"));
    check_diagnosis_says("kernels in CUDA graphs: each graph was recorded as one operation");
}
END_TEST

static void job_graphs_that_bear_it(void)
{
    job_graphs("600,150,50");
}

START_TEST(graphs_that_bear_it_keep_their_kernels_after_a_trial)
{
    ck_assert_int_eq(lac_job_run(job_graphs_that_bear_it), 0);
    lac_cupti_import();
    ck_assert_uint_ge(count_named("node_kernel"), 2 * 150 * 600);
    ck_assert_uint_ge(count_named("CUDA graph"), 600); /* the trial */
    ck_assert(lac_cupti_says("\"graph_recording\":\"nodes\""));
    ck_assert(lac_cupti_says("kernels in graphs are recorded one by one"));
}
END_TEST

static void job_graphs_refused(void)
{
    (void)setenv("STAND_IN_REFUSE", "graphs", 1);
    job_graphs("600,150,3000");
}

START_TEST(a_cupti_without_records_of_whole_graphs_keeps_the_kernels)
{
    ck_assert_int_eq(lac_job_run(job_graphs_refused), 0);
    lac_cupti_import();
    ck_assert_uint_ge(count_named("node_kernel"), 3 * 150 * 600);
    ck_assert_uint_eq(count_named("CUDA graph"), 0);
    ck_assert(lac_cupti_says("launches of graphs cannot be recorded whole"));
}
END_TEST

static void job_graphs_as_asked(void)
{
    (void)setenv("LACUNA_GRAPHS", "launches", 1);
    job_graphs("1,20,3000");
}

START_TEST(launches_alone_are_recorded_when_asked_for)
{
    ck_assert_int_eq(lac_job_run(job_graphs_as_asked), 0);
    lac_cupti_import();
    ck_assert_uint_eq(count_named("node_kernel"), 0);
    ck_assert_uint_ge(count_named("CUDA graph"), 3);
    ck_assert_uint_eq(lac_cupti_model->device_count, 1);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cupti");
    TCase *const tcase = tcase_create("session");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, kernels_calls_and_copies_arrive_and_are_bound);
    tcase_add_test(tcase, fields_that_a_version_lacks_are_not_read);
    tcase_add_test(tcase, another_profiler_is_named);
    tcase_add_test(tcase, refused_privileges_give_the_administrators_sentence);
    tcase_add_test(tcase, records_that_cupti_dropped_are_counted);
    tcase_add_test(tcase, times_of_a_cupti_that_keeps_its_own_clock_are_placed);
    tcase_add_test(tcase, a_forked_child_leaves_cupti_alone);
    tcase_add_test(tcase, cupti_is_left_to_another_profiler_and_taken_back);
    tcase_add_test(tcase, recording_goes_on_beside_a_profiler_that_keeps_its_subscription);
    tcase_add_loop_test(tcase, the_last_rung_is_ranges_only, 0, 2);
    tcase_add_test(tcase, every_kind_of_record_arrives);
    tcase_add_test(tcase, records_from_before_a_pause_are_kept_when_they_come);
    tcase_add_test(tcase, ids_that_the_program_pushed_are_arguments_of_call_and_operation);
    tcase_add_test(tcase, a_cupti_without_ids_is_no_failure);
    tcase_add_test(tcase, buffers_that_come_late_and_out_of_order_lose_nothing);
    tcase_add_test(tcase, buffers_beyond_the_limit_are_thrown_away_and_counted);
    tcase_add_test(tcase, buffers_beyond_the_limit_are_refused_and_counted_once);
    tcase_add_test(tcase, a_job_without_memory_for_buffers_goes_on_and_its_losses_are_counted);
    tcase_add_test(tcase, a_job_without_memory_for_buffers_refuses_them_and_counts_its_losses);
    tcase_add_test(tcase, threads_that_return_buffers_at_once_do_not_mix_their_records);
    tcase_add_test(tcase, a_driver_that_is_gone_does_not_hold_up_the_exit);
    tcase_add_test(tcase, graphs_that_suffer_from_records_are_recorded_whole_and_that_is_said);
    tcase_add_test(tcase, graphs_that_bear_it_keep_their_kernels_after_a_trial);
    tcase_add_test(tcase, a_cupti_without_records_of_whole_graphs_keeps_the_kernels);
    tcase_add_test(tcase, kernels_of_graphs_are_recorded_where_nothing_else_is_asked_for);
    tcase_add_test(tcase, launches_alone_are_recorded_when_asked_for);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
