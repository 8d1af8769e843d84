/*
 * When the launcher ends the recording and the job goes on, nothing of us is left in it that costs
 * anything: no function in NVTX's tables, no thread, no timer, nothing that CUPTI records.
 */
#include "collector/inject/nvtx_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/injected.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 60000, LOOK_MS = 5, KINDS = 60 };

static int count_functions(void)
{
    int count = 0;

    for (int i = 0; i < CORE_SLOTS; i++) {
        count += core[i] != NULL;
        count += core2[i] != NULL;
    }
    return count;
}

static int count_entries(const char *path)
{
    DIR *const folder = opendir(path);
    int count = 0;

    for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

static void rest(void)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};

    (void)nanosleep(&look, NULL);
}

static void end_recording(void)
{
    __atomic_store_n(&lac_cupti_own_header()->stop, LAC_SPOOL_STOP, __ATOMIC_RELEASE);
}

static void check(int is_true, int number)
{
    if (!is_true) {
        _exit(number);
    }
}

/* ---- NVTX */

static void job_let_go(void)
{
    check(inject(), 10);
    check(count_functions() > 20, 11);
    for (int i = 0; i < 10; i++) {
        (void)push("before");
        (void)pop();
    }
    (void)push("open");
    end_recording();
    (void)push("the first behind it");
    check(count_functions() == 0, 12);
}

START_TEST(the_first_call_after_the_end_takes_all_functions_out)
{
    ck_assert_int_eq(lac_job_run(job_let_go), 0);
    import_ok();
    ck_assert_uint_eq(count_named("before"), 10);
    ck_assert_uint_eq(count_named("open"), 1);
    ck_assert_uint_eq(count_named("the first behind it"), 0);
    ck_assert_uint_eq(report_count("not_recorded"), 0);
}
END_TEST

static void job_attaches_later(void)
{
    int (*initialize)(nvtx_get_export_table);

    job_let_go();
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjectionNvtx2");
    check(initialize(get_export_table) == 0, 20); /* 0: NVTX empties the table itself */
    check(count_functions() == 0, 21);
}

START_TEST(a_library_that_comes_later_is_left_alone)
{
    ck_assert_int_eq(lac_job_run(job_attaches_later), 0);
}
END_TEST

static nvtx_function *table_that_goes;

static int get_module_table_that_goes(int module, nvtx_function ***ret_table, unsigned *ret_count)
{
    static nvtx_function *slots[CORE_SLOTS];

    if (module != NVTX_MODULE_CORE) {
        return 0;
    }
    for (int i = 0; i < CORE_SLOTS; i++) {
        slots[i] = &table_that_goes[i];
    }
    *ret_table = slots;
    *ret_count = CORE_SLOTS;
    return 1;
}

static const void *get_export_table_that_goes(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_module_table_that_goes};

    return id == NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

/* The second library with NVTX is gone, and so is the memory of its tables. */
static void job_unloads(void)
{
    int (*initialize)(nvtx_get_export_table);

    check(inject(), 30);
    table_that_goes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjectionNvtx2");
    check(initialize(get_export_table_that_goes) == 1, 31);
    check(table_that_goes[NVTX_CORE_PUSH_A] != NULL, 32);
    (void)munmap(table_that_goes, 4096);
    (void)push("before");
    (void)pop();
    end_recording();
    (void)push("behind");
    check(count_functions() == 0, 33);
}

START_TEST(tables_of_a_library_that_was_unloaded_are_not_touched)
{
    ck_assert_int_eq(lac_job_run(job_unloads), 0);
}
END_TEST

static void job_replaced(void)
{
    check(inject(), 40);
    core[NVTX_CORE_MARK_A] = (nvtx_function)(void (*)(void))abort; /* somebody else's */
    (void)push("before");
    (void)pop();
    end_recording();
    (void)push("behind");
    check(count_functions() == 1 && core[NVTX_CORE_MARK_A] != NULL, 41);
}

START_TEST(a_function_that_another_tool_put_there_stays)
{
    ck_assert_int_eq(lac_job_run(job_replaced), 0);
}
END_TEST

static void job_pauses(void)
{
    check(inject(), 50);
    for (uint32_t wish = LAC_SPOOL_PAUSE; wish <= LAC_SPOOL_OFF; wish++) {
        (void)push("recorded");
        (void)pop();
        lac_cupti_own_header()->stop = wish;
        (void)push("paused");
        (void)pop();
        lac_cupti_own_header()->stop = LAC_SPOOL_RECORD;
        check(count_functions() > 20, 51);
    }
}

START_TEST(a_pause_takes_nothing_out)
{
    ck_assert_int_eq(lac_job_run(job_pauses), 0);
    import_ok();
    ck_assert_uint_eq(count_named("recorded"), 2);
    ck_assert_uint_eq(count_named("paused"), 0);
}
END_TEST

/* ---- all of it, with a GPU */

static void job_with_a_gpu(void)
{
    int (*is_enabled)(int kind);
    int (*count_subscribers)(void);
    int waited_ms = 0;
    int kinds = 0;

    check(inject(), 60);
    lac_cupti_initialize();
    *(void **)&is_enabled = lac_cupti_stand_in("stand_in_enabled");
    *(void **)&count_subscribers = lac_cupti_stand_in("stand_in_subscribers");
    for (int kind = 0; kind < KINDS; kind++) {
        kinds += is_enabled(kind) != 0;
    }
    check(kinds > 5, 61);
    check(count_subscribers() == 1, 62);
    check(count_entries("/proc/self/task") == 2, 63); /* ours flushes */
    (void)push("before");
    (void)pop();
    lac_cupti_deliver(1000, (uint32_t)syscall(SYS_gettid), 0);
    end_recording();
    while (count_entries("/proc/self/task") > 1 && waited_ms < WAIT_MS) {
        rest();
        waited_ms += LOOK_MS;
    }
    check(count_entries("/proc/self/task") == 1, 64);
    for (int kind = 0; kind < KINDS; kind++) {
        check(is_enabled(kind) == 0, 65);
    }
    check(count_subscribers() == 0, 66);
    /* the job's own profiler ends: that brings nothing back */
    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    lac_cupti_api()->gpu_yield(0, "torch.profiler");
    (void)push("behind");
    check(count_functions() == 0, 68);
    check(count_subscribers() == 0 && is_enabled(10) == 0, 69);
    check(count_entries("/proc/self/task") == 1, 70);
}

START_TEST(no_thread_no_subscription_and_no_kind_is_left)
{
    ck_assert_int_eq(lac_job_run(job_with_a_gpu), 0);
    lac_cupti_import();
    ck_assert_uint_eq(lac_cupti_count(LAC_SLICE_KERNEL), 1000);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("let_go");
    TCase *const tcase = tcase_create("let_go");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, the_first_call_after_the_end_takes_all_functions_out);
    tcase_add_test(tcase, a_library_that_comes_later_is_left_alone);
    tcase_add_test(tcase, tables_of_a_library_that_was_unloaded_are_not_touched);
    tcase_add_test(tcase, a_function_that_another_tool_put_there_stays);
    tcase_add_test(tcase, a_pause_takes_nothing_out);
    tcase_add_test(tcase, no_thread_no_subscription_and_no_kind_is_left);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
