/* Hosts that ask in a loop whether the device is done: a wait, though no call of it lasts. */

#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { STEPS = 10, KERNELS = 8 };

/** How a step ends; times in us. */
struct ending {
    const char *call;
    double apart;     /**< between two queries */
    double works;     /**< what the host does behind them, with nothing left for the device */
    int queries;      /**< so many in a row, whatever the device does; 0: until it is done */
    bool has_backlog; /**< and the device still has work when they end */
};

static double host_us, device_us;

static void launch(double length_us)
{
    sheet_corr++;
    double start = device_us > host_us + 6.0 ? device_us : host_us + 6.0;
    device_us = start + length_us;
    sheet_add("main call %.3f 4 #%u cudaLaunchKernel\n", host_us, sheet_corr);
    sheet_add("gpu0.7 kernel %.3f %.3f #%u dgrad_s16816cudnn_kernel\n", start, length_us,
              sheet_corr);
    host_us += 5.0;
}

static void ask(const struct ending *ending)
{
    bool is_done = false;
    for (int i = 0; !is_done && (ending->queries == 0 || i < ending->queries); i++) {
        is_done = ending->queries == 0 && host_us >= device_us;
        sheet_add("main call %.3f 1 %s\n", host_us, ending->call);
        host_us += is_done ? 1.0 : ending->apart;
    }
    host_us += ending->works;
}

static void draw(const struct ending *ending)
{
    sheet_blank();
    host_us = device_us = 0.0;
    for (int step = 0; step < STEPS; step++) {
        double begin_us = host_us;
        for (int k = 0; k < KERNELS; k++) {
            launch(500.0);
        }
        ask(ending);
        if (ending->has_backlog) { /* the host is a step ahead, no more */
            double end_us = device_us - 3000.0 > host_us ? device_us - 3000.0 : host_us;
            sheet_add("main call %.3f %.3f cudaEventSynchronize\n", host_us,
                      end_us + 1.0 - host_us);
            host_us = end_us + 2.0;
        }
        sheet_add("main op %.3f 20 Optimizer.step#SGD.step\n", host_us);
        host_us += 22.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", begin_us, host_us - begin_us, step);
    }
    sheet_diagnose(NULL, 8);
}

/** 4 ms of kernels, then 1 ms of the host with nothing left to do. */
START_TEST(a_loop_of_queries_is_a_synchronization)
{
    static const struct ending endings[] = {
        {"cudaEventQuery", 3.0, 1000.0, 0, false},
        {"cudaEventQuery_v3020", 900.0, 600.0, 0, false}, /* with a sleep of a millisecond */
        {"cudaStreamQuery", 20.0, 1000.0, 0, false},
        {"hipEventQuery", 20.0, 1000.0, 0, false},
        {"cuStreamQuery", 20.0, 1000.0, 0, false},
    };
    const struct ending *ending = &endings[_i];
    draw(ending);
    const struct lac_finding *finding = sheet_finding("sync-stall");
    ck_assert_ptr_nonnull(finding);
    ck_assert_msg(finding->gain_mid_pct > 10.0 && finding->gain_high_pct < 30.0, "%g",
                  finding->gain_mid_pct);
    ck_assert_ptr_nonnull(strstr(finding->why, "The host spins in "));
    ck_assert_ptr_nonnull(strstr(finding->why, ending->call));
    ck_assert_ptr_nonnull(strstr(finding->change, "once per step"));
    ck_assert_str_eq(analysis->verdict.cause, "sync");
    sheet_check_grammar(finding);
}
END_TEST

/** One look a step, or an allocator that asks for many events: nobody waits there. */
START_TEST(queries_that_do_not_wait_are_none)
{
    static const struct ending endings[] = {
        {"cudaEventQuery", 1.0, 0.0, 1, true},
        {"cudaEventQuery", 1.0, 0.0, 200, true},
    };
    draw(&endings[_i]);
    ck_assert_ptr_null(sheet_finding("sync-stall"));
    ck_assert_ptr_null(sheet_finding("sync-per-layer"));
    ck_assert_str_eq(analysis->verdict.cause, "gpu");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_spins");
    TCase *tests = tcase_create("spins");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_loop_test(tests, a_loop_of_queries_is_a_synchronization, 0, 5);
    tcase_add_loop_test(tests, queries_that_do_not_wait_are_none, 0, 2);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
