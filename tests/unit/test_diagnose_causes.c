/* Why a device was idle: what wins, what is left, and the root cause beside it. */

#include "analysis/diagnose/diagnose.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>

static int64_t idle_us(enum lac_cause cause)
{
    return analysis->devices[0].idle_by_cause_ns[cause] / 1000;
}

START_TEST(waiting_for_data_wins_and_the_rest_is_launching)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "main wait    20 180\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    /* idle 100-215: data 100-200, 200-205 between calls is not launching: nothing was recorded */
    ck_assert_int_eq(idle_us(LAC_CAUSE_DATA_WAIT), 100);
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 10);
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 5);
    ck_assert_int_eq(analysis->gaps[0].root_kind, LAC_ROOT_LATE_BATCH);
}
END_TEST

START_TEST(a_late_batch_names_its_worker)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   fetch    0 150 batch=6 worker=0\n"
               "w1   fetch   10 190 batch=7 worker=1\n"
               "main wait    20 181 batch=7\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    char text[128];
    lac_gap_root_text(analysis, model, &analysis->gaps[0], text, sizeof(text));
    ck_assert_str_eq(text, "worker 1 spent 0.19 ms on batch 7");
    const struct lac_gap *gap = &analysis->gaps[0];
    ck_assert_str_eq(lac_root_kind_name(gap->root_kind), "late_batch");
    ck_assert_int_eq(model->slices.dur_ns[gap->root], 190000);
    ck_assert_int_eq(model->slices.dur_ns[gap->wait], 181000);
    ck_assert_uint_eq(gap->batch, gap->root);
}
END_TEST

START_TEST(of_two_waits_in_a_gap_the_one_that_covers_more_is_its_root)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   fetch    0 190 batch=6 worker=0\n"
               "w1   fetch   10 198 batch=7 worker=1\n"
               "main wait    20 175 batch=6\n"
               "main wait   200 10 batch=7\n"
               "main call   211  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 218 10 #2 a\n");
    const struct lac_gap *gap = &analysis->gaps[0];
    ck_assert_int_eq(gap->cause, LAC_CAUSE_DATA_WAIT);
    ck_assert_int_eq(model->slices.dur_ns[gap->wait], 175000);
    ck_assert_int_eq(model->slices.dur_ns[gap->root], 190000);
}
END_TEST

START_TEST(without_a_batch_number_the_wait_is_the_root)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   fetch    0 150 batch=6 worker=0\n"
               "main wait    20 181\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    ck_assert_int_eq(model->slices.dur_ns[analysis->gaps[0].wait], 181000);
    ck_assert_uint_eq(analysis->gaps[0].root, analysis->gaps[0].wait);
    ck_assert_uint_eq(analysis->gaps[0].batch, LAC_NONE);
}
END_TEST

START_TEST(a_batch_begun_before_the_recording_is_its_last_part)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   part    30 100 loader.transform batch=6 worker=0\n"
               "w0   part   130  60 loader.collate batch=6 worker=0\n"
               "w1   part   150  48 loader.transform batch=7 worker=1\n"
               "main wait    20 181 batch=6\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    ck_assert_uint_eq(analysis->gaps[0].root, analysis->gaps[0].wait);
    ck_assert_uint_ne(analysis->gaps[0].batch, LAC_NONE);
    ck_assert_str_eq(lac_model_str(model, model->slices.name[analysis->gaps[0].batch]),
                     "loader.collate");
}
END_TEST

START_TEST(a_batch_made_before_the_wait_was_not_what_it_lasted_for)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   fetch    0 15 batch=6 worker=0\n"
               "main wait    20 181 batch=6\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    ck_assert_int_eq(model->slices.dur_ns[analysis->gaps[0].root], 15000);
    ck_assert_uint_eq(analysis->gaps[0].batch, LAC_NONE);
}
END_TEST

START_TEST(sync_gets_what_is_left_of_the_gap_it_opened)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "main call    20 82    cudaStreamSynchronize\n"
               "main call   110 20    cudaMalloc\n"
               "main call   150  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 160 10 #2 a\n");
    /* idle 100-160: allocator 110-130, submitted 150-160, the rest 40 is the synchronization's */
    ck_assert_int_eq(idle_us(LAC_CAUSE_ALLOCATOR), 20);
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 10);
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 30);
    ck_assert_int_eq(analysis->gaps[0].root_kind, LAC_ROOT_SYNC);
    ck_assert_str_eq(lac_model_str(model, model->slices.name[analysis->gaps[0].root]),
                     "cudaStreamSynchronize");
}
END_TEST

START_TEST(a_sync_with_the_host_ahead_costs_nothing)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "main call      6  4 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "main call    20 60    cudaEventSynchronize\n"
               "gpu0.1 kernel 100 10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 0);
    ck_assert_int_eq(analysis->devices[0].idle_ns, 0);
}
END_TEST

START_TEST(a_call_that_blocked_briefly_does_not_take_the_gap_after_it)
{
    sheet_draw("main call      0    5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10   90 #1 a\n"
               "main call    74   28    cudaStreamSynchronize\n"
               "main op     102  500    aten::cat\n"
               "main call   610    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 620   10 #2 a\n");
    /* blocked for 26 us before the gap: so much earlier the host would have got here without it */
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 26);
    ck_assert_int_eq(idle_us(LAC_CAUSE_HOST), 476);
}
END_TEST

START_TEST(one_long_operation_of_the_host_after_a_sync_is_the_hosts)
{
    sheet_draw("main call       0    5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel  10 9990 #1 a\n"
               "main call      20 9982    cudaStreamSynchronize\n"
               "main op     10010 6000    aten::sort\n"
               "main call   16020    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 16030   10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_HOST), 6000);
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 20);
}
END_TEST

START_TEST(what_waits_for_another_threads_launches_is_no_work)
{
    sheet_draw("main call       0    5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel  10 9990 #1 a\n"
               "grad call      20 9982    cudaStreamSynchronize\n"
               "main op     10010 6000    run_backward\n"
               "grad call   15000    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 15010   10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 5000);
    ck_assert_int_eq(idle_us(LAC_CAUSE_HOST), 0);
}
END_TEST

START_TEST(work_that_was_queued_did_not_wait_for_its_launch)
{
    sheet_draw("main call       0    5 #1 cudaLaunchKernel\n"
               "main call       6    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel  10   90 #1 a\n"
               "gpu0.1 kernel 900   10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 0);
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 800);
}
END_TEST

START_TEST(a_launch_that_arrives_slowly_is_still_one)
{
    sheet_draw("main call       0    5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel  10   90 #1 a\n"
               "main call     100    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 190   10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 90);
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 0);
}
END_TEST

START_TEST(a_hole_inside_a_graph_is_no_launch_and_no_other_stream)
{
    sheet_draw("main call       0    5    cudaStreamWaitEvent\n"
               "main call       6    5 #1 cudaGraphLaunch\n"
               "gpu0.1 kernel  20   80 #1 a\n"
               "gpu0.2 kernel 150   10 #1 b\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 0);
    ck_assert_int_eq(idle_us(LAC_CAUSE_DEPENDENCY), 0);
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 50);
}
END_TEST

START_TEST(another_process_does_not_take_the_blame)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "w0   call    20 82    cudaDeviceSynchronize\n"
               "main op     100 45    aten::copy_\n"
               "main call   150  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 155 10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 0);
    ck_assert_int_eq(idle_us(LAC_CAUSE_HOST), 45);
}
END_TEST

START_TEST(launches_close_together_are_launching_far_apart_are_host)
{
    sheet_draw("main op       0 700    forward\n"
               "main call     0   5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 5   5 #1 a\n"
               "main call    45   5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 50  5 #2 a\n"
               "main call   600   5 #3 cudaLaunchKernel\n"
               "gpu0.1 kernel 605 5 #3 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 40 + 5);
    ck_assert_int_eq(idle_us(LAC_CAUSE_HOST), 545);
}
END_TEST

START_TEST(a_copy_to_the_device_that_is_staged_is_copy_wait)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 10 #1 a\n"
               "main call    30 90 #2 cudaMemcpyAsync\n"
               "gpu0.1 copy  80 40 #2 HtoD pageable 1000000\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_COPY_WAIT), 50);
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 10);
}
END_TEST

START_TEST(reading_back_a_value_is_a_synchronisation)
{
    sheet_draw("main call      0   5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 100 #1 a\n"
               "main call     6 111 #2 cudaMemcpyAsync\n"
               "gpu0.1 copy 110   2 #2 DtoH pageable 4\n"
               "main op     120  50    python\n"
               "main call   170   5 #3 cudaLaunchKernel\n"
               "gpu0.1 kernel 175 10 #3 a\n");
    /* idle 112-175: launched at 170, so 58 are the synchronization's and 5 the launch */
    ck_assert_int_eq(idle_us(LAC_CAUSE_SYNC), 58);
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 5);
}
END_TEST

START_TEST(a_first_launch_of_milliseconds_loads_its_module)
{
    sheet_draw("main call       0    5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel  10   10 #1 a\n"
               "main call      20 5000 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 5025  10 #2 b\n"
               "main call    5050 5000 #3 cudaLaunchKernel\n"
               "gpu0.1 kernel 10060 10 #3 b\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_MODULE_LOAD), 5000); /* the second one is no first use */
    ck_assert_int_eq(idle_us(LAC_CAUSE_LAUNCH), 5 + 5010 + 15);
}
END_TEST

START_TEST(overhead_records_are_the_profiler_or_the_modules)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 10 #1 a\n"
               "p    overhead 30 20    Buffer Flush\n"
               "p    overhead 60 10    Lazy Function Loading\n"
               "p    overhead 80 10    Command Buffer Full\n"
               "main call   100  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 105 10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_PROFILER), 20);
    ck_assert_int_eq(idle_us(LAC_CAUSE_MODULE_LOAD), 10);
}
END_TEST

START_TEST(a_stream_that_waits_for_another_is_a_dependency)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "main call      6  1    cudaStreamWaitEvent\n"
               "main call      8  4 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "gpu0.2 kernel 150 10 #2 b\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_DEPENDENCY), 50);
}
END_TEST

START_TEST(without_a_launch_nothing_is_invented)
{
    sheet_draw("gpu0.1 kernel  0 10 a\n"
               "gpu0.1 kernel 50 10 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 40);
    ck_assert_int_eq(analysis->gaps[0].root_kind, LAC_ROOT_NONE);
    char text[16];
    ck_assert_uint_eq(lac_gap_root_text(analysis, model, &analysis->gaps[0], text, sizeof(text)),
                      0);
}
END_TEST

/** A recording that begins while the device works on what was launched before. */
static void draw_begun_at_work(const char *device_of_kernels)
{
    sheet_blank();
    sheet_add("main call    0 5 #1 cudaMemcpyAsync\n"
              "gpu0.2 copy 10 5 #1 HtoD pinned 1000000\n"
              "main call   18 1    cudaStreamWaitEvent\n");
    for (unsigned i = 0; i < 8; i++) {
        sheet_add("main range %u 1000 ProfilerStep#%u\n"
                  "main call %u 5 #%u cudaLaunchKernel\n"
                  "%s kernel %u 999 #%u a\n",
                  i * 1000, i, i * 1000 + 20, i + 2, device_of_kernels, 2500 + i * 1000, i + 2);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_device_at_work_on_what_was_launched_before_is_not_seen)
{
    draw_begun_at_work("gpu0.1");
    ck_assert_int_eq(idle_us(LAC_CAUSE_UNATTRIBUTED), 2500 - 15);
    ck_assert_int_eq(idle_us(LAC_CAUSE_DEPENDENCY), 0);
    /* the third step began in it: the fourth is the first that was seen whole */
    ck_assert_int_eq(analysis->steps[2].left_out, LAC_STEP_TRUNCATED);
    ck_assert_int_eq(analysis->steps[3].left_out, LAC_STEP_KEPT);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
}
END_TEST

START_TEST(a_device_told_to_wait_may_wait_for_another_device)
{
    draw_begun_at_work("gpu1.1");
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        ck_assert_int_ne(analysis->steps[s].left_out, LAC_STEP_TRUNCATED);
    }
}
END_TEST

START_TEST(a_first_kernel_that_waits_for_its_copy_was_seen)
{
    sheet_draw("main call      0    5 #1 cudaMemcpyAsync\n"
               "gpu0.2 copy   10 3000 #1 HtoD pinned 30000000\n"
               "main call     18    1    cudaStreamWaitEvent\n"
               "main call     20    5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 3050 10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_DEPENDENCY), 40);
}
END_TEST

START_TEST(host_time_in_collectives_is_comm)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 10 #1 a\n"
               "main op      20 60    c10d::barrier\n"
               "main call    80  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 85 10 #2 a\n");
    ck_assert_int_eq(idle_us(LAC_CAUSE_COMM), 60);
}
END_TEST

START_TEST(like_gaps_share_a_signature)
{
    sheet_draw("main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 10 #1 a\n"
               "gpu0.1 kernel 40 10 #2 b\n"
               "gpu0.1 kernel 60 10 #3 a\n"
               "gpu0.1 kernel 90 10 #4 b\n");
    ck_assert_uint_eq(analysis->signature_count, 2);
    ck_assert_uint_eq(analysis->signatures[0].count, 2);
    ck_assert_int_eq(analysis->signatures[0].total_ns, 40000);
    ck_assert_str_eq(lac_model_str(model, analysis->signatures[0].before), "a");
    ck_assert_str_eq(lac_model_str(model, analysis->signatures[0].after), "b");
    ck_assert_uint_eq(analysis->gaps[0].signature, 0);
    ck_assert_uint_eq(analysis->gaps[1].signature, 1);
}
END_TEST

START_TEST(tracks_hold_every_piece_of_idle_time)
{
    sheet_draw("main range     0 300    ProfilerStep#1\n"
               "main call      0  5 #1 cudaLaunchKernel\n"
               "gpu0.1 kernel 10 90 #1 a\n"
               "main wait    20 180\n"
               "main call   205  5 #2 cudaLaunchKernel\n"
               "gpu0.1 kernel 215 10 #2 a\n");
    uint32_t before = model->track_count;
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(model->track_count, before + 3);
    ck_assert_int_eq(model->tracks[before + 2].kind, LAC_TRACK_GPU_RANGE);
    const struct lac_track *gaps = &model->tracks[before + 1];
    ck_assert_int_eq((int)gaps->kind, (int)LAC_TRACK_GAPS);
    int64_t sum_ns = 0;
    for (uint64_t i = gaps->first; i < gaps->first + gaps->count; i++) {
        ck_assert_int_eq(model->slices.kind[i], LAC_SLICE_GAP);
        ck_assert_str_eq(lac_model_str(model, model->slices.name[model->slices.link[i]]), "a");
        sum_ns += model->slices.dur_ns[i];
    }
    ck_assert_int_eq(sum_ns, analysis->devices[0].idle_ns);
    ck_assert_str_eq(lac_model_str(model, model->slices.name[gaps->first]), "data_wait");
}
END_TEST

/* The last step ends after the device's last operation: its gap is one like those before it. */
START_TEST(the_end_of_the_last_step_has_the_cause_of_the_gaps_before_it)
{
    sheet_blank();
    for (unsigned i = 0; i < 8; i++) {
        const double from_us = i * 14000.0;
        sheet_add("main range %.0f 14000 ProfilerStep#%u\n", from_us, i);
        sheet_corr++;
        sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", from_us, sheet_corr);
        sheet_add("gpu0.7 kernel %.0f 10000 #%u conv\n", from_us + 10, sheet_corr);
        sheet_add("main call %.0f 10000 cudaStreamSynchronize\n", from_us + 20);
    }
    sheet_diagnose(NULL, 0);
    const int64_t *part_ns = analysis->partition.part_ns;
    ck_assert_uint_eq(analysis->step_kept_count, 8);
    ck_assert_int_eq(part_ns[lac_time_part_of(LAC_CAUSE_UNATTRIBUTED)], 0);
    ck_assert_int_ge(part_ns[lac_time_part_of(LAC_CAUSE_SYNC)], 3980000);
    const struct lac_finding *stall = sheet_finding("sync-stall");
    ck_assert_ptr_nonnull(stall);
    ck_assert_double_ge(stall->cost_pct, stall->gain_mid_pct);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_causes");
    TCase *tcase = tcase_create("causes");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, waiting_for_data_wins_and_the_rest_is_launching);
    tcase_add_test(tcase, a_late_batch_names_its_worker);
    tcase_add_test(tcase, of_two_waits_in_a_gap_the_one_that_covers_more_is_its_root);
    tcase_add_test(tcase, without_a_batch_number_the_wait_is_the_root);
    tcase_add_test(tcase, a_batch_begun_before_the_recording_is_its_last_part);
    tcase_add_test(tcase, a_batch_made_before_the_wait_was_not_what_it_lasted_for);
    tcase_add_test(tcase, sync_gets_what_is_left_of_the_gap_it_opened);
    tcase_add_test(tcase, a_sync_with_the_host_ahead_costs_nothing);
    tcase_add_test(tcase, a_call_that_blocked_briefly_does_not_take_the_gap_after_it);
    tcase_add_test(tcase, one_long_operation_of_the_host_after_a_sync_is_the_hosts);
    tcase_add_test(tcase, what_waits_for_another_threads_launches_is_no_work);
    tcase_add_test(tcase, work_that_was_queued_did_not_wait_for_its_launch);
    tcase_add_test(tcase, a_launch_that_arrives_slowly_is_still_one);
    tcase_add_test(tcase, a_hole_inside_a_graph_is_no_launch_and_no_other_stream);
    tcase_add_test(tcase, another_process_does_not_take_the_blame);
    tcase_add_test(tcase, launches_close_together_are_launching_far_apart_are_host);
    tcase_add_test(tcase, a_copy_to_the_device_that_is_staged_is_copy_wait);
    tcase_add_test(tcase, reading_back_a_value_is_a_synchronisation);
    tcase_add_test(tcase, a_first_launch_of_milliseconds_loads_its_module);
    tcase_add_test(tcase, overhead_records_are_the_profiler_or_the_modules);
    tcase_add_test(tcase, a_stream_that_waits_for_another_is_a_dependency);
    tcase_add_test(tcase, without_a_launch_nothing_is_invented);
    tcase_add_test(tcase, a_device_at_work_on_what_was_launched_before_is_not_seen);
    tcase_add_test(tcase, a_device_told_to_wait_may_wait_for_another_device);
    tcase_add_test(tcase, a_first_kernel_that_waits_for_its_copy_was_seen);
    tcase_add_test(tcase, host_time_in_collectives_is_comm);
    tcase_add_test(tcase, like_gaps_share_a_signature);
    tcase_add_test(tcase, tracks_hold_every_piece_of_idle_time);
    tcase_add_test(tcase, the_end_of_the_last_step_has_the_cause_of_the_gaps_before_it);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
