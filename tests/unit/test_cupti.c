/*
 * GPU recording without a GPU: the conversation with CUPTI against a stand-in (tests/stand_in), the
 * layout of records against the toolkit's headers, and our reading of a buffer against the real
 * libcupti walking it, where a toolkit is installed.
 */
#include "analysis/model/model.h"
#include "collector/inject/api.h"
#include "collector/inject/cupti_abi.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#define SAME(ours, field, theirs, other)                                                           \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, other), "offset of " #field)
SAME(cupti_kernel, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
SAME(cupti_kernel, start_ns, CUpti_ActivityKernel10, start);
SAME(cupti_kernel, device, CUpti_ActivityKernel10, deviceId);
SAME(cupti_kernel, grid, CUpti_ActivityKernel10, gridX);
SAME(cupti_kernel, block, CUpti_ActivityKernel10, blockX);
SAME(cupti_kernel, static_shared_bytes, CUpti_ActivityKernel10, staticSharedMemory);
SAME(cupti_kernel, dynamic_shared_bytes, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(cupti_kernel, correlation, CUpti_ActivityKernel10, correlationId);
SAME(cupti_kernel, name, CUpti_ActivityKernel10, name);
SAME(cupti_kernel, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(cupti_kernel, graph, CUpti_ActivityKernel10, graphId);
SAME(cupti_memcpy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(cupti_memcpy, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(cupti_memcpy, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
SAME(cupti_memset, correlation, CUpti_ActivityMemset4, correlationId);
SAME(cupti_call, number, CUpti_ActivityAPI, cbid);
SAME(cupti_call, thread, CUpti_ActivityAPI, threadId);
SAME(cupti_call, result, CUpti_ActivityAPI, returnValue);
SAME(cupti_synchronization, event, CUpti_ActivitySynchronization2, cudaEventId);
SAME(cupti_overhead, object, CUpti_ActivityOverhead3, objectId);
SAME(cupti_overhead, end_ns, CUpti_ActivityOverhead3, end);
SAME(cupti_memory, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(cupti_memory, device, CUpti_ActivityMemory4, deviceId);
SAME(cupti_memory, timestamp_ns, CUpti_ActivityMemory4, timestamp);
SAME(cupti_graph_trace, stream, CUpti_ActivityGraphTrace2, streamId);
SAME(cupti_graph_trace, start_ns, CUpti_ActivityGraphTrace2, start);
_Static_assert((int)CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ==
                   (int)CUPTI_RESULT_INSUFFICIENT_PRIVILEGES,
               "result");
_Static_assert((int)CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ==
                   (int)CUPTI_RESULT_MULTIPLE_SUBSCRIBERS,
               "result");
_Static_assert((int)CUPTI_ERROR_MAX_LIMIT_REACHED == (int)CUPTI_RESULT_MAX_LIMIT, "result");
_Static_assert((int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == (int)CUPTI_KIND_CONCURRENT_KERNEL,
               "kind");
_Static_assert((int)CUPTI_ACTIVITY_KIND_MEMORY2 == (int)CUPTI_KIND_MEMORY2, "kind");
#endif

static struct lac_model *imported;
static void (*deliver)(int launches, uint32_t thread, int drop);

/* What libcuda does in cuInit: load the library that CUDA_INJECTION64_PATH names, and call it. */
static void initialize_cuda(void)
{
    char stand_in[4096];
    void *library;
    void *cupti;
    int (*initialize)(void);

    (void)snprintf(stand_in, sizeof(stand_in), "%s", lac_job_file("stand_in/libcupti_stand_in.so"));
    (void)setenv("LACUNA_CUPTI", stand_in, 1);
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    cupti = dlopen(stand_in, RTLD_LAZY);
    if (library == NULL || cupti == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        _exit(99);
    }
    *(void **)&initialize = dlsym(library, "InitializeInjection");
    *(void **)&deliver = dlsym(cupti, "stand_in_deliver");
    if (initialize() != 1) {
        _exit(98);
    }
}

static void import_ok(void)
{
    struct lac_error error = {0};

    imported = lac_job_import(&error);
    ck_assert_msg(imported != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(imported));
}

static uint64_t count_kind(enum lac_slice_kind kind)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < imported->slices.count; i++) {
        count += imported->slices.kind[i] == kind;
    }
    return count;
}

static bool metadata_says(const char *text)
{
    return strstr(lac_model_str(imported, imported->info.metadata), text) != NULL;
}

static void job_records(void)
{
    initialize_cuda();
    deliver(3000, (uint32_t)syscall(SYS_gettid), 0);
}

START_TEST(kernels_calls_and_copies_arrive_and_are_bound)
{
    uint64_t bound = 0;

    ck_assert_int_eq(lac_job_run(job_records), 0);
    import_ok();
    ck_assert_uint_eq(count_kind(LAC_SLICE_KERNEL), 3000);
    ck_assert_uint_eq(count_kind(LAC_SLICE_API), 3000);
    ck_assert_uint_eq(count_kind(LAC_SLICE_COPY), 3000);
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        if (imported->slices.kind[i] == LAC_SLICE_KERNEL) {
            const uint32_t call = imported->slices.link[i];

            ck_assert_uint_ne(call, LAC_NONE);
            ck_assert_uint_eq(imported->slices.corr[call], imported->slices.corr[i]);
            ck_assert_str_eq(lac_model_str(imported, imported->slices.name[call]),
                             "cudaLaunchKernel");
            ck_assert_int_eq(imported->slices.dur_ns[i], 4000);
            bound++;
        }
    }
    ck_assert_uint_eq(bound, 3000);
    ck_assert(metadata_says("\"gpu_recording\":\"full\""));
    ck_assert_uint_eq(imported->device_count, 1);
    ck_assert_uint_eq(imported->kernel_config_count, 1);
    ck_assert_uint_eq(imported->kernel_configs[0].grid[0], 8);
    ck_assert_uint_eq(imported->kernel_configs[0].graph_node, 77);
    ck_assert_int_eq(imported->copies[0].src, LAC_MEMORY_PAGEABLE);
    ck_assert_int_eq(imported->copies[0].bytes, 4096);
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
    import_ok();
    ck_assert_uint_eq(imported->kernel_configs[0].graph_node, 0);
}
END_TEST

static void job_busy(void)
{
    (void)setenv("STAND_IN_REFUSE", "busy", 1);
    initialize_cuda();
}

START_TEST(another_profiler_is_named)
{
    ck_assert_int_eq(lac_job_run(job_busy), 0);
    import_ok();
    ck_assert(metadata_says("\"gpu_recording\":\"ranges-only\""));
    ck_assert(metadata_says("another profiler holds CUPTI: nsys"));
}
END_TEST

static void job_refused(void)
{
    (void)setenv("STAND_IN_REFUSE", "privileges", 1);
    initialize_cuda();
}

START_TEST(refused_privileges_give_the_administrators_sentence)
{
    ck_assert_int_eq(lac_job_run(job_refused), 0);
    import_ok();
    ck_assert(metadata_says("\"gpu_recording\":\"without-kernels\""));
    ck_assert(metadata_says("NVreg_RestrictProfilingToAdminUsers=0"));
}
END_TEST

static void job_drops(void)
{
    initialize_cuda();
    deliver(10, 1, 123);
}

START_TEST(records_that_cupti_dropped_are_counted)
{
    ck_assert_int_eq(lac_job_run(job_drops), 0);
    import_ok();
    ck_assert_uint_ge(imported->info.dropped_count, 123);
}
END_TEST

static void job_realtime(void)
{
    (void)setenv("STAND_IN_NO_TIMESTAMP", "1", 1);
    initialize_cuda();
    deliver(10, 1, 0);
}

START_TEST(times_of_a_cupti_that_keeps_its_own_clock_are_placed)
{
    ck_assert_int_eq(lac_job_run(job_realtime), 0);
    import_ok();
    /* the stand-in then stamps 2023-11-14, before anything else of this test */
    ck_assert_uint_eq(count_kind(LAC_SLICE_KERNEL), 10);
    ck_assert_int_eq(imported->info.t0_ns, 1700000000000000000);
}
END_TEST

static void job_forks_after_cuda(void)
{
    pid_t pid;

    initialize_cuda();
    deliver(5, 1, 0);
    pid = fork();
    if (pid == 0) {
        exit(0); /* runs our exit handler: it must not touch CUPTI here */
    }
    (void)waitpid(pid, NULL, 0);
    deliver(5, 1, 0);
}

START_TEST(a_forked_child_leaves_cupti_alone)
{
    ck_assert_int_eq(lac_job_run(job_forks_after_cuda), 0);
    ck_assert_int_eq(lac_job_spool_count(), 1);
    import_ok();
    ck_assert_uint_eq(count_kind(LAC_SLICE_KERNEL), 10);
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

    initialize_cuda();
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    cupti = dlopen(lac_job_file("stand_in/libcupti_stand_in.so"), RTLD_LAZY);
    *(void **)&get_api = dlsym(library, "lacuna_get_api");
    *(void **)&subscribers = dlsym(cupti, "stand_in_subscribers");
    *(void **)&enabled = dlsym(cupti, "stand_in_enabled");
    api = get_api();
    ck_assert_int_eq(subscribers(), 1);
    deliver(5, 1, 0);
    api->gpu_yield(1, "torch.profiler");
    api->gpu_yield(1, "torch.profiler");
    ck_assert_int_eq(subscribers(), 0);
    ck_assert_int_eq(enabled(CUPTI_KIND_CONCURRENT_KERNEL), 0);
    api->gpu_yield(0, "");
    ck_assert_int_eq(subscribers(), 1);
    ck_assert_int_eq(enabled(CUPTI_KIND_CONCURRENT_KERNEL), 1);
    deliver(5, 1, 0);
}

START_TEST(cupti_is_left_to_another_profiler_and_taken_back)
{
    ck_assert_int_eq(lac_job_run(job_yields), 0);
    import_ok();
    ck_assert_uint_eq(count_kind(LAC_SLICE_KERNEL), 10);
    ck_assert(metadata_says("\"gpu_recording_yielded_to\":\"torch.profiler\""));
    ck_assert(metadata_says("\"gpu_recording_after_yield\":\"full\""));
}
END_TEST

START_TEST(the_real_libcupti_walks_records_as_we_lay_them_out)
{
    static uint8_t buffer[1024] __attribute__((aligned(8)));
    void *const library = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW);
    int (*get_next)(uint8_t *, size_t, struct cupti_activity **);
    struct cupti_activity *record = NULL;
    const struct cupti_call call = {.kind = CUPTI_KIND_RUNTIME, .correlation = 5};
    const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL, .correlation = 5};

    if (library == NULL) {
        (void)printf("skip: no libcupti.so.13 on this machine\n");
        return;
    }
    *(void **)&get_next = dlsym(library, "cuptiActivityGetNextRecord");
    memcpy(buffer, &call, sizeof(call));
    memcpy(buffer + 40, &kernel, sizeof(kernel));
    memcpy(buffer + 40 + 216, &call, sizeof(call));
    ck_assert_int_eq(get_next(buffer, 296, &record), CUPTI_OK);
    ck_assert_ptr_eq(record, buffer);
    ck_assert_int_eq(get_next(buffer, 296, &record), CUPTI_OK);
    ck_assert_ptr_eq(record, buffer + 40);
    ck_assert_uint_eq(((const struct cupti_kernel *)(const void *)record)->correlation, 5);
    ck_assert_int_eq(get_next(buffer, 296, &record), CUPTI_OK);
    ck_assert_ptr_eq(record, buffer + 256);
    ck_assert_int_eq(get_next(buffer, 296, &record), CUPTI_RESULT_MAX_LIMIT);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cupti");
    TCase *const tcase = tcase_create("session");
    SRunner *const runner = srunner_create(suite);
    int failed;

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
    tcase_add_test(tcase, the_real_libcupti_walks_records_as_we_lay_them_out);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
