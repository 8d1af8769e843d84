/* What is measured: span, busy, partition, gaps, kernels, layout, tensor cores, copies. */

#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

static int64_t part(uint32_t device, enum lac_partition which)
{
    return analysis->devices[device].partition_ns[which];
}

static bool is_missing(const char *start)
{
    for (uint32_t i = 0; i < analysis->not_recorded_count; i++) {
        if (strncmp(analysis->not_recorded[i], start, strlen(start)) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(busy_is_the_union_over_streams)
{
    sheet_draw("gpu0.1 kernel 10 20 a\n"
               "gpu0.2 kernel 20 30 b\n"
               "gpu0.1 kernel 80 10 a\n");
    ck_assert_uint_eq(analysis->device_count, 1);
    ck_assert_int_eq(analysis->devices[0].first_ns, 0);
    ck_assert_int_eq(analysis->devices[0].span_ns, 80000);
    ck_assert_int_eq(analysis->devices[0].busy_ns, 50000);
    ck_assert_int_eq(analysis->devices[0].idle_ns, 30000);
    ck_assert_uint_eq(analysis->devices[0].gap_count_10us, 1);
    ck_assert_int_eq(analysis->devices[0].gap_longest_ns, 30000);
    ck_assert_int_eq(analysis->devices[0].gap_longest_at_ns, 40000);
}
END_TEST

START_TEST(partition_takes_compute_then_comm_then_copies_then_memsets)
{
    sheet_draw("gpu0.1 kernel  0 10 gemm\n"
               "gpu0.2 kernel  5 15 ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
               "gpu0.3 copy   15 15 #1 HtoD pinned 1000\n"
               "gpu0.4 memset 25 15 Memset\n"
               "gpu0.1 kernel 50 10 gemm\n");
    ck_assert_int_eq(part(0, LAC_PART_COMPUTE), 20000);
    ck_assert_int_eq(part(0, LAC_PART_EXPOSED_COMM), 10000);
    ck_assert_int_eq(part(0, LAC_PART_EXPOSED_COPY), 10000);
    ck_assert_int_eq(part(0, LAC_PART_EXPOSED_MEMSET), 10000);
    ck_assert_int_eq(part(0, LAC_PART_IDLE), 10000);
    ck_assert(fabs(analysis->devices[0].not_computing_pct - 100.0 * 40.0 / 60.0) < 1e-9);
}
END_TEST

START_TEST(an_operation_of_no_length_splits_a_gap)
{
    sheet_draw("gpu0.1 kernel  0 10 a\n"
               "gpu0.1 kernel 25  0 nothing\n"
               "gpu0.1 kernel 40 10 a\n"
               "gpu0.1 kernel 60  0 last\n");
    ck_assert_int_eq(analysis->devices[0].busy_ns, 20000);
    ck_assert_int_eq(analysis->devices[0].span_ns, 60000);
    ck_assert_uint_eq(analysis->devices[0].gap_count_10us, 3);
    ck_assert_int_eq(analysis->devices[0].gap_total_10us_ns, 40000);
    ck_assert_int_eq(analysis->devices[0].gap_longest_ns, 15000);
    ck_assert_int_eq(analysis->devices[0].gap_longest_at_ns, 25000); /* the later one of equals */
}
END_TEST

START_TEST(gaps_below_ten_microseconds_are_idle_but_not_counted)
{
    sheet_draw("gpu0.1 kernel  0     10 a\n"
               "gpu0.1 kernel 19.999 10 a\n"
               "gpu0.1 kernel 39.999 10 a\n");
    ck_assert_int_eq(analysis->devices[0].idle_ns, 19999);
    ck_assert_uint_eq(analysis->devices[0].gap_count_10us, 1);
    ck_assert_int_eq(analysis->devices[0].gap_total_10us_ns, 10000);
}
END_TEST

START_TEST(no_gap_of_ten_microseconds_has_no_longest)
{
    sheet_draw("gpu0.1 kernel 0 10 a\n"
               "gpu0.1 kernel 12 10 a\n");
    ck_assert_uint_eq(analysis->devices[0].gap_count_10us, 0);
    ck_assert_int_eq(analysis->devices[0].gap_longest_ns, 0);
    ck_assert_int_eq(analysis->devices[0].gap_longest_at_ns, 0);
}
END_TEST

START_TEST(devices_stand_apart_in_order)
{
    sheet_draw("gpu3.1 kernel 0 10 a\n"
               "gpu1.1 kernel 100 10 a\n"
               "gpu1.1 kernel 150 10 a\n");
    ck_assert_uint_eq(analysis->device_count, 2);
    ck_assert_int_eq(analysis->devices[0].id, 1);
    ck_assert_int_eq(analysis->devices[0].first_ns, 100000);
    ck_assert_int_eq(analysis->devices[0].span_ns, 60000);
    ck_assert_int_eq(analysis->devices[1].id, 3);
    ck_assert_int_eq(analysis->devices[1].span_ns, 10000);
}
END_TEST

START_TEST(kernels_order_by_time_then_name)
{
    sheet_draw("gpu0.1 kernel  0 10 b\n"
               "gpu0.1 kernel 20 10 a\n"
               "gpu0.1 kernel 40 30 c\n"
               "gpu0.1 kernel 80  5 ncclKernel_AllReduce_RING_LL_Sum_float\n");
    ck_assert_uint_eq(analysis->kernel_name_count, 4);
    ck_assert_str_eq(lac_model_str(model, analysis->kernels[0].name), "c");
    ck_assert_str_eq(lac_model_str(model, analysis->kernels[1].name), "a");
    ck_assert_str_eq(lac_model_str(model, analysis->kernels[2].name), "b");
    ck_assert_uint_eq(analysis->kernel_count, 4); /* communication is a kernel too */
    ck_assert_int_eq(analysis->kernel_total_ns, 55000);
}
END_TEST

START_TEST(a_graph_recorded_as_a_whole_computes_and_is_no_kernel)
{
    /* replays back to back, beside one kernel: the GPU is busy, and what the graph runs is unknown */
    sheet_blank();
    for (int i = 0; i < 20; i++) {
        sheet_add("main call %d 10 #%u cudaGraphLaunch\n", i * 1000, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 990 #%u CUDA graph\n", i * 1000 + 20, sheet_corr);
    }
    sheet_add("gpu0.7 kernel 20010 10 #%u void sgemm(int)\n", ++sheet_corr);
    sheet_diagnose(NULL, 9);
    ck_assert_uint_eq(analysis->kernel_count, 1);
    ck_assert_uint_eq(analysis->kernel_name_count, 1);
    ck_assert_int_eq(analysis->kernel_total_ns, 10000);
    ck_assert_double_eq(analysis->unknown_kernels_pct, 0.0);
    ck_assert_int_eq(analysis->devices[0].busy_ns, 20 * 990000 + 10000);
    ck_assert_int_eq(part(0, LAC_PART_COMPUTE), 20 * 990000 + 10000);
    ck_assert(is_missing("kernels in CUDA graphs"));
    ck_assert_str_ne(analysis->verdict.cause, "launch");

    /* nothing but graphs: no kernel is known */
    sheet_draw("gpu0.7 kernel 0 900 CUDA Graph 3\n"
               "gpu0.7 kernel 905 900 CUDA graph\n");
    ck_assert(!analysis->has_kernels);
    ck_assert_uint_eq(analysis->kernel_name_count, 0);
    ck_assert_int_eq(analysis->devices[0].busy_ns, 1800000);
    sheet_draw("gpu0.7 kernel 0 900 CUDA graphics of a user\n");
    ck_assert_uint_eq(analysis->kernel_count, 1);
}
END_TEST

/** 200 launches; one of so many calls, or of so many kernels, has no row. Whether a caveat holds the words. */
static bool says_thinned(int calls_lack, int kernels_lack, const char *words)
{
    sheet_blank();
    for (int i = 0; i < 200; i++) {
        sheet_corr++;
        if (calls_lack == 0 || i % calls_lack != 1) {
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", 2000 + i * 100, sheet_corr);
        }
        if (kernels_lack == 0 || i % kernels_lack != 1) {
            sheet_add("gpu0.7 kernel %d 80 #%u k%d\n", 2010 + i * 100, sheet_corr, i % 4);
        }
    }
    for (int i = 0; i < 40; i++) { /* launched before the recording, and after its last row */
        sheet_add("gpu0.7 kernel %d 20 #%u early\n", i * 30, ++sheet_corr);
        sheet_add("main call %d 2 #%u cudaLaunchKernel\n", 22100 + i * 5, ++sheet_corr);
    }
    sheet_diagnose(NULL, 8);
    for (uint32_t i = 0; i < analysis->caveat_count; i++) {
        if (strstr(analysis->caveats[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

START_TEST(rows_that_were_left_out_are_told_by_their_other_end)
{
    ck_assert(says_thinned(0, 5, "of the launches have no operation"));
    ck_assert(says_thinned(5, 0, "operations have no call that launched them"));
    ck_assert(!says_thinned(0, 0, "were left out"));
    ck_assert(!says_thinned(0, 100, "were left out")); /* two of 200 */
}
END_TEST

START_TEST(layout_time_that_something_hides_is_not_exposed)
{
    sheet_draw("gpu0.1 kernel  0 10 void nchwToNhwcKernel<float>(int)\n"
               "gpu0.2 kernel  5 20 volta_sgemm_64x64_nn\n"
               "gpu0.1 kernel 30 10 void nchwToNhwcKernel<float>(int)\n");
    ck_assert_uint_eq(analysis->layout_count, 2);
    ck_assert_int_eq(analysis->layout_total_ns, 20000);
    ck_assert(fabs(analysis->layout_pct - 50.0) < 1e-9);
    ck_assert_int_eq(analysis->layout_exposed_ns, 15000);
    ck_assert_int_eq(analysis->layout_by_class_ns[LAC_LAYOUT_L], 20000);
}
END_TEST

START_TEST(tensor_cores_share_only_what_is_eligible)
{
    sheet_draw("gpu0.1 kernel  0 30 volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn\n"
               "gpu0.1 kernel 40 10 volta_sgemm_64x64_nn\n"
               "gpu0.1 kernel 60 20 my_gemm\n"
               "gpu0.1 kernel 90 50 void at::native::vectorized_elementwise_kernel<4>(int)\n");
    ck_assert_int_eq(analysis->tensor_eligible_ns, 60000);
    ck_assert_int_eq(analysis->tensor_used_ns, 30000);
    ck_assert_int_eq(analysis->tensor_unknown_ns, 20000);
    ck_assert(fabs(analysis->tensor_used_pct - 50.0) < 1e-9);
}
END_TEST

START_TEST(copies_group_and_know_what_kernels_hide)
{
    sheet_draw("gpu0.1 kernel  0 10 a\n"
               "gpu0.2 copy    5 10 #1 HtoD pinned 100\n"
               "gpu0.2 copy   20 10 #2 HtoD pinned 200\n"
               "gpu0.2 copy   40 10 #3 HtoD pageable 50\n"
               "gpu0.2 copy   60 10 #4 DtoH pageable 8\n");
    ck_assert_uint_eq(analysis->copy_count, 3);
    const struct lac_copy_facts *pageable = &analysis->copies[0];
    const struct lac_copy_facts *pinned = &analysis->copies[1];
    ck_assert_int_eq((int)pageable->src, (int)LAC_MEMORY_PAGEABLE);
    ck_assert_int_eq(pageable->exposed_ns, 10000);
    ck_assert_int_eq((int)pinned->src, (int)LAC_MEMORY_PINNED);
    ck_assert_uint_eq(pinned->count, 2);
    ck_assert_int_eq(pinned->bytes, 300);
    ck_assert_int_eq(pinned->total_ns, 20000);
    ck_assert_int_eq(pinned->exposed_ns, 15000);
    ck_assert_int_eq((int)analysis->copies[2].kind, (int)LAC_COPY_DTOH);
}
END_TEST

START_TEST(nothing_of_a_kind_is_unknown_not_zero)
{
    sheet_draw("main op 0 10 aten::add\n");
    ck_assert_uint_eq(analysis->device_count, 0);
    ck_assert(!analysis->has_kernels);
    ck_assert(isnan(analysis->layout_pct));
    ck_assert(isnan(analysis->tensor_used_pct));
    ck_assert_int_eq(analysis->step_mean_ns, LAC_UNKNOWN_NS);
    ck_assert_int_eq(analysis->loader.wait_ns, LAC_UNKNOWN_NS);
    ck_assert_int_eq(analysis->loader.num_workers, -1);
    ck_assert_int_eq(analysis->needs.gpu_ns, LAC_UNKNOWN_NS);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_GPU);
    ck_assert_uint_eq(analysis->finding_count, 0);
}
END_TEST

START_TEST(an_empty_trace_is_fine)
{
    sheet_draw("");
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_GPU);
    ck_assert_str_ne(analysis->verdict.text, "");
}
END_TEST

START_TEST(a_device_with_operations_of_no_length_only)
{
    sheet_draw("gpu0.1 kernel 5 0 a\n");
    ck_assert_uint_eq(analysis->device_count, 1);
    ck_assert_int_eq(analysis->devices[0].span_ns, 0);
    ck_assert_uint_eq(analysis->layout_count, 0); /* kernels, and none of layout */
    ck_assert(fabs(analysis->layout_pct) < 1e-9);
    sheet_draw("gpu0.1 kernel 5 0 nchwToNhwcKernel\n");
    ck_assert_uint_eq(analysis->layout_count, 1);
    ck_assert(isnan(analysis->layout_pct)); /* a share of nothing */
    ck_assert(isnan(analysis->devices[0].busy_pct));
}
END_TEST

/* Ranks in one recording: the second has the device that computes most, the first launches more and
 * takes its steps and its batches at other times. */
START_TEST(of_two_processes_the_one_at_the_main_device_has_the_steps)
{
    sheet_blank();
    for (unsigned i = 0; i < 8; i++) {
        const double first_us = i * 10000.0;
        const double second_us = first_us + 3000.0;
        sheet_add("main range %.0f 9900 ProfilerStep#%u\n", first_us, i);
        sheet_add("main wait %.0f 4000 batch=%u\n", first_us, i);
        sheet_add("w1 range %.0f 9900 ProfilerStep#%u\n", second_us, i);
        sheet_add("w1 wait %.0f 4000 batch=%u\n", second_us, i);
        sheet_add("w2 range %.0f 7000 ProfilerStep#%u\n", second_us, i); /* it has no GPU */
        for (unsigned k = 0; k < 3; k++) {
            sheet_corr++;
            sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", first_us + 4100 + k * 10.0,
                      sheet_corr);
            sheet_add("gpu0.7 kernel %.0f 1000 #%u volta_sgemm\n", first_us + 4110 + k * 1000.0,
                      sheet_corr);
        }
        sheet_corr++;
        sheet_add("w1 call %.0f 5 #%u cudaLaunchKernel\n", second_us + 4100, sheet_corr);
        sheet_add("gpu1.7 kernel %.0f 5000 #%u volta_sgemm\n", second_us + 4110, sheet_corr);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->main_device, 1);
    ck_assert_uint_eq(analysis->step_count, 8);
    ck_assert_int_eq(analysis->step_mean_ns, 10000000);
    ck_assert_uint_eq(analysis->loader.batch_count, 8);
    ck_assert_int_eq(analysis->loader.wait_ns, 8 * 4000000);
    /* the first wait comes before the device's first operation */
    ck_assert_int_eq(analysis->loader.starved_ns, 7 * 4000000);
    for (uint32_t d = 0; d < 2; d++) {
        ck_assert_int_eq(analysis->devices[d].idle_by_cause_ns[LAC_CAUSE_DATA_WAIT], 7 * 4000000);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_facts");
    TCase *tcase = tcase_create("facts");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, busy_is_the_union_over_streams);
    tcase_add_test(tcase, partition_takes_compute_then_comm_then_copies_then_memsets);
    tcase_add_test(tcase, an_operation_of_no_length_splits_a_gap);
    tcase_add_test(tcase, gaps_below_ten_microseconds_are_idle_but_not_counted);
    tcase_add_test(tcase, no_gap_of_ten_microseconds_has_no_longest);
    tcase_add_test(tcase, devices_stand_apart_in_order);
    tcase_add_test(tcase, of_two_processes_the_one_at_the_main_device_has_the_steps);
    tcase_add_test(tcase, kernels_order_by_time_then_name);
    tcase_add_test(tcase, a_graph_recorded_as_a_whole_computes_and_is_no_kernel);
    tcase_add_test(tcase, rows_that_were_left_out_are_told_by_their_other_end);
    tcase_add_test(tcase, layout_time_that_something_hides_is_not_exposed);
    tcase_add_test(tcase, tensor_cores_share_only_what_is_eligible);
    tcase_add_test(tcase, copies_group_and_know_what_kernels_hide);
    tcase_add_test(tcase, nothing_of_a_kind_is_unknown_not_zero);
    tcase_add_test(tcase, an_empty_trace_is_fine);
    tcase_add_test(tcase, a_device_with_operations_of_no_length_only);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
