/*
 * When the launcher ends the recording and the job goes on, nothing of us is left in it that costs
 * anything: no function in NVTX's tables.
 */
#include "collector/inject/nvtx_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/injected.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int count_functions(void)
{
    int count = 0;

    for (int i = 0; i < CORE_SLOTS; i++) {
        count += core[i] != NULL;
        count += core2[i] != NULL;
    }
    return count;
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
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
