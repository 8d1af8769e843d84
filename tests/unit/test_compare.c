/* Comparisons of drawn traces: the noise test, differences, conditions. */

#include "analysis/compare/compare.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A trace of steps of the given lengths in us; the GPU computes half of each. */
struct drawn {
    struct lac_model *model;
    struct lac_analysis *analysis;
};

static struct drawn draw(const int *lengths_us, int count, const char *settings)
{
    static char text[64 * 1024];
    char metadata[2048];
    size_t used = 0;
    int at_us = 0;
    for (int i = 0; i < count; i++) {
        int length_us = lengths_us[i];
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "main range %d %d ProfilerStep#%d\n"
                                 "main op %d 20 autograd::engine::evaluate_function: MmBackward\n"
                                 "main call %d 5 #%d cudaLaunchKernel\n"
                                 "gpu0.7 kernel %d %d #%d volta_sgemm_128x64_nn\n"
                                 "main op %d 20 Optimizer.step#SGD.step\n",
                                 at_us, length_us, i, at_us + 10, at_us + 12, i + 1, at_us + 40,
                                 length_us / 2, i + 1, at_us + length_us - 30);
        at_us += length_us;
    }
    (void)snprintf(metadata, sizeof(metadata), "{\"lacuna\":{\"settings\":%s}}", settings);
    struct drawn drawn = {.model = trace_draw_with(text, metadata, 7)};
    drawn.analysis = trace_diagnose(drawn.model);
    return drawn;
}

static void erase(struct drawn *drawn)
{
    lac_analysis_destroy(drawn->analysis);
    lac_model_destroy(drawn->model);
}

static struct lac_comparison *compared(const struct drawn *a, const struct drawn *b)
{
    struct lac_comparison *comparison = NULL;
    struct lac_compare_side sides[] = {{a->model, a->analysis, NULL},
                                       {b->model, b->analysis, NULL}};
    ck_assert_int_eq(lac_compare(&sides[0], &sides[1], &comparison), LAC_OK);
    return comparison;
}

static const int steady[] = {1000, 1010, 990, 1000, 1005, 995, 1000, 1002, 998, 1000};
static const int shorter[] = {900, 910, 890, 900, 905, 895, 900, 902, 898, 900};
static const int jumping[] = {600, 1400, 700, 1300, 800, 1200, 500, 1500, 1040, 1000};

START_TEST(shorter_steps_are_faster)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(shorter, 10, "{}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_FASTER);
    ck_assert_double_lt(it->step.low_pct, it->step.pct);
    ck_assert_double_lt(it->step.pct, it->step.high_pct);
    ck_assert_double_lt(fabs(it->step.pct + 10.0), 0.5);
    ck_assert_double_lt(fabs(it->throughput.pct - 11.1), 0.6);
    ck_assert_double_gt(it->throughput.low_pct, 0.0);
    lac_comparison_destroy(it);
    it = compared(&b, &a);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_SLOWER);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(jumping_steps_show_no_small_difference)
{
    struct drawn a = draw(jumping, 10, "{}");
    struct drawn b = draw(steady, 10, "{}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_SAME);
    ck_assert_double_gt(it->noise_floor_pct, 10.0);
    ck_assert_uint_gt(it->steps_needed, 10);
    ck_assert_ptr_nonnull(strstr(it->headline, "would resolve 2 %"));
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(two_steps_are_too_few)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(shorter, 2, "{}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert(it->verdict == LAC_COMPARE_TOO_FEW || it->verdict == LAC_COMPARE_UNKNOWN);
    ck_assert_ptr_null(it->prediction.finding);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(other_batch_sizes_compare_samples)
{
    static const int twice[] = {1900, 1910, 1890, 1900, 1905, 1895, 1900, 1902, 1898, 1900};
    struct drawn a = draw(steady, 10, "{\"batch_size\":32}");
    struct drawn b = draw(twice, 10, "{\"batch_size\":64}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_int_eq(it->basis, LAC_COMPARE_PER_SAMPLE);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_FASTER);
    ck_assert_double_lt(fabs(it->step.pct + 5.0), 0.5);
    ck_assert_str_eq(it->changed, "batch_size 32 -> 64 (one change)");
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(other_numbers_of_batches_are_other_work)
{
    static const int longer[] = {3800, 3810, 3790, 3800, 3805, 3795, 3800, 3802, 3798, 3800};
    struct lac_compare_condition condition;
    uint32_t count = 0;
    struct lac_error error = {0};
    ck_assert_int_eq(lac_compare_conditions_parse("step_time>+3%", &condition, &count, &error),
                     LAC_OK);
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        const char *settings = is_recorded ? "{\"batch_size\":32}" : "{}";
        struct drawn a = draw(steady, 10, settings);
        struct drawn b = draw(longer, 10, settings);
        a.analysis->micro_step_count = 1;
        b.analysis->micro_step_count = 4;
        struct lac_comparison *it = compared(&a, &b);
        const struct lac_compare_side side = {b.model, b.analysis, NULL};
        ck_assert_ptr_nonnull(strstr(it->changed, "gradient accumulation 1 -> 4"));
        if (is_recorded) {
            ck_assert_int_eq(it->basis, LAC_COMPARE_PER_SAMPLE);
            ck_assert_int_eq(it->verdict, LAC_COMPARE_FASTER);
            ck_assert_double_lt(fabs(it->step.pct + 5.0), 0.5);
            ck_assert_double_gt(it->throughput_per_s[1], it->throughput_per_s[0]);
        } else {
            ck_assert_int_eq(it->verdict, LAC_COMPARE_UNKNOWN);
            ck_assert_int_eq(it->refusal, LAC_COMPARE_DIFFERENT_WORK);
            ck_assert_ptr_nonnull(strstr(it->why_not, "a step of A takes 1 batch, of B 4"));
        }
        ck_assert_int_ne(lac_compare_condition_holds(&condition, it, &side), LAC_COMPARE_HOLDS);
        lac_comparison_destroy(it);
        /* where a step is one of four, a step is a batch in both */
        b.analysis->is_step_micro = true;
        it = compared(&a, &b);
        ck_assert_int_eq(it->basis, LAC_COMPARE_PER_STEP);
        ck_assert_int_eq(it->verdict, LAC_COMPARE_SLOWER);
        ck_assert_ptr_nonnull(strstr(it->changed, "gradient accumulation 1 -> 4"));
        lac_comparison_destroy(it);
        erase(&a);
        erase(&b);
    }
}
END_TEST

START_TEST(tokens_are_not_divided_by_samples)
{
    struct drawn a = draw(steady, 10, "{\"batch_size\":32}");
    struct drawn b = draw(shorter, 10, "{\"batch_size\":32}");
    b.analysis->throughput_unit = "tokens";
    b.analysis->throughput_per_s = 4e6;
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_str_eq(it->throughput_unit, "steps");
    ck_assert_double_lt(fabs(it->throughput_per_s[0] - 1000.0), 10.0);
    ck_assert_double_lt(fabs(it->throughput_per_s[1] - 1111.0), 12.0);
    bool is_said = false;
    for (uint32_t i = 0; i < it->difference_count; i++) {
        const struct lac_compare_difference *difference = &it->differences[i];
        is_said = is_said || (strcmp(difference->key, "throughput counts") == 0 &&
                              strcmp(difference->a, "samples") == 0 &&
                              strcmp(difference->b, "tokens") == 0 && !difference->is_setting);
    }
    ck_assert(is_said);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(differences_are_named)
{
    struct drawn a =
        draw(steady, 10,
             "{\"x\":{\"deep\":1,\"list\":[1,\"]\"]},\"on\":true,\"gone\":null,\"s\":\"a\"}");
    struct drawn b =
        draw(steady, 10, "{\"s\":\"a\",\"on\":false,\"x\":{\"deep\":2,\"list\":[1,\"]\"]}}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_uint_eq(it->difference_count, 2);
    ck_assert_str_eq(it->differences[0].key, "x.deep");
    ck_assert_str_eq(it->differences[0].b, "2");
    ck_assert_str_eq(it->differences[1].a, "on");
    ck_assert_str_eq(it->differences[1].b, "off");
    ck_assert(!it->is_one_change);
    ck_assert_ptr_nonnull(strstr(it->changed, "2 changes"));
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(settings_that_are_no_json_end_quietly)
{
    static const char *const odd[] = {"",          "{",
                                      "{\"a\"",    "{\"a\":",
                                      "{\"a\":[",  "{\"a\":\"x",
                                      "{\"a\":1,", "{\"a\":{\"b\":{\"c\":[[[}",
                                      "[1,2]",     "{\"\\u0000\":\"\\",
                                      "{\"a\" 1}"};
    struct drawn a = draw(steady, 10, "{}");
    for (size_t i = 0; i < LAC_COUNT_OF(odd); i++) {
        struct drawn b = draw(steady, 10, odd[i]);
        struct lac_comparison *it = compared(&a, &b);
        ck_assert_int_eq(it->verdict, LAC_COMPARE_SAME);
        ck_assert_uint_eq(it->difference_count, 0);
        lac_comparison_destroy(it);
        erase(&b);
    }
    erase(&a);
}
END_TEST

START_TEST(parts_sum_to_the_step)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(jumping, 10, "{}");
    struct lac_comparison *it = compared(&a, &b);
    const struct lac_analysis *analyses[] = {a.analysis, b.analysis};
    for (int side = 0; side < 2; side++) {
        int64_t sum_ns = 0;
        int64_t causes_ns = 0;
        ck_assert(it->steps[side].is_known);
        for (int i = 0; i < LAC_PART_COUNT_; i++) {
            sum_ns += it->steps[side].part_ns[i];
        }
        for (int i = 0; i < LAC_CAUSE_COUNT_; i++) {
            causes_ns += it->steps[side].cause_ns[i];
        }
        ck_assert_int_eq(sum_ns, analyses[side]->step_mean_ns);
        ck_assert_int_eq(causes_ns, it->steps[side].part_ns[LAC_PART_IDLE]);
        /* each is divided by the steps on its own */
        ck_assert_int_le(llabs(it->steps[side].family_ns[LAC_FAMILY_GEMM] -
                               it->steps[side].part_ns[LAC_PART_COMPUTE]),
                         1);
    }
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(conditions_are_read)
{
    struct lac_compare_condition conditions[LAC_COMPARE_CONDITIONS_MAX];
    uint32_t count = 0;
    ck_assert_int_eq(
        lac_compare_conditions_parse(" step_time > +3 % , idle<=20", conditions, &count, NULL),
        LAC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert(conditions[0].is_greater && !conditions[0].has_equal && conditions[0].is_change);
    ck_assert_double_eq(conditions[0].value, 3.0);
    ck_assert(!conditions[1].is_greater && conditions[1].has_equal && !conditions[1].is_change);
    ck_assert_int_eq(lac_compare_conditions_parse("step_time>=1.5ms", conditions, &count, NULL),
                     LAC_OK);
    ck_assert_double_eq(conditions[0].value, 1.5e6);
    struct lac_error error = {0};
    static const char *const wrong[] = {"",         "x>1",       "step_time>1", "step_time>",
                                        "idle>1%%", "idle>0x10", "idle>1,"};
    for (size_t i = 0; i < LAC_COUNT_OF(wrong); i++) {
        ck_assert_int_eq(lac_compare_conditions_parse(wrong[i], conditions, &count, &error),
                         LAC_ERR_MISUSE);
        ck_assert_uint_gt(strlen(error.message), 10);
    }
}
END_TEST

START_TEST(a_difference_in_the_noise_fails_nothing)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(jumping, 10, "{}");
    struct lac_comparison *it = compared(&b, &a);
    struct lac_compare_side side = {a.model, a.analysis, NULL};
    struct lac_compare_condition condition;
    uint32_t count = 0;
    ck_assert_double_lt(it->step.pct, 0.0);
    ck_assert_int_eq(lac_compare_conditions_parse("step_time<-0.1%", &condition, &count, NULL),
                     LAC_OK);
    ck_assert_int_eq(lac_compare_condition_holds(&condition, it, &side),
                     LAC_COMPARE_HOLDS_IN_NOISE);
    ck_assert_int_eq(lac_compare_conditions_parse("step_time>0.1%", &condition, &count, NULL),
                     LAC_OK);
    ck_assert_int_eq(lac_compare_condition_holds(&condition, it, &side), LAC_COMPARE_HOLDS_NOT);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

/** Ten steps, of which two are longer and hold a range; counters and operators differ. */
static struct drawn draw_kinds(const char *other, int other_us, const char *operator_name,
                               double loss)
{
    static char text[64 * 1024];
    size_t used = 0;
    int at_us = 0;
    for (int i = 0; i < 12; i++) {
        bool is_other = i == 5 || i == 11;
        int length_us = is_other ? other_us : 1000;
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "main range %d %d ProfilerStep#%d\n"
                                 "main op %d 20 %s\n"
                                 "main call %d 5 #%d cudaLaunchKernel\n"
                                 "gpu0.7 kernel %d 500 #%d volta_sgemm_128x64_nn\n"
                                 "main range %d 1 loss: %.3f\n",
                                 at_us, length_us, i, at_us + 10, operator_name, at_us + 12, i + 1,
                                 at_us + 40, i + 1, at_us + 600, loss + 0.01 * (i % 3));
        if (is_other) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "main range %d %d %s\n",
                                     at_us + 650, other_us - 700, other);
        }
        at_us += length_us;
    }
    struct drawn drawn = {.model = trace_draw_with(text, NULL, 7)};
    drawn.analysis = trace_diagnose(drawn.model);
    return drawn;
}

START_TEST(kinds_of_steps_are_compared_with_their_like)
{
    struct drawn a = draw_kinds("run_validation", 5000, "aten::conv2d", 1.8);
    struct drawn b = draw_kinds("run_validation", 3000, "aten::linear", 1.802);
    struct drawn c = draw_kinds("save_checkpoint", 4000, "aten::linear", 2.4);
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_uint_eq(it->kinds[0][LAC_COMPARE_TRAIN].count, 10);
    ck_assert_uint_eq(it->kinds[0][LAC_COMPARE_VALIDATION].count, 2);
    ck_assert_int_eq(it->kinds[0][LAC_COMPARE_VALIDATION].mean_ns, 5000000);
    ck_assert_int_eq(it->kinds[1][LAC_COMPARE_VALIDATION].mean_ns, 3000000);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_SAME); /* training is what it was */
    ck_assert(it->result.is_known && it->result.is_same);
    ck_assert_str_eq(it->result.name, "loss");
    lac_comparison_destroy(it);
    it = compared(&a, &c);
    ck_assert_uint_eq(it->kinds[1][LAC_COMPARE_CHECKPOINT].count, 2);
    ck_assert_uint_eq(it->kinds[1][LAC_COMPARE_VALIDATION].count, 0);
    ck_assert_int_eq(it->kinds[1][LAC_COMPARE_VALIDATION].mean_ns, LAC_UNKNOWN_NS);
    ck_assert(it->result.is_known && !it->result.is_same);
    ck_assert_ptr_nonnull(strstr(it->result.text, "outside its spread"));
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
    erase(&c);
}
END_TEST

START_TEST(operators_say_where_gpu_time_went)
{
    struct drawn a = draw_kinds("run_validation", 5000, "aten::conv2d", 1.8);
    struct drawn b = draw_kinds("run_validation", 5000, "aten::linear", 1.8);
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_uint_eq(it->operator_count, 2);
    ck_assert_str_eq(it->operators[0].name, "aten::conv2d");
    ck_assert_int_eq(it->operators[0].a_ns, 500000);
    ck_assert_int_eq(it->operators[0].b_ns, 0);
    ck_assert_str_eq(it->operators[1].name, "aten::linear");
    ck_assert_int_eq(it->operators[1].b_ns, 500000);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

START_TEST(what_was_not_recorded_is_said_of_results)
{
    struct drawn a = draw(steady, 10, "{}");
    struct lac_comparison *it = compared(&a, &a);
    ck_assert(!it->result.is_known);
    ck_assert_ptr_nonnull(strstr(it->result.text, "no loss or accuracy counter"));
    lac_comparison_destroy(it);
    erase(&a);
}
END_TEST

START_TEST(hostile_conditions_are_refused_in_words)
{
    static const char alphabet[] = "step_timeidle<>=,%+-. 0123456789eEmsun\"'\\\x01\xff";
    struct lac_compare_condition conditions[LAC_COMPARE_CONDITIONS_MAX];
    uint64_t state = 99;
    for (int round = 0; round < 20000; round++) {
        char text[96] = "";
        struct lac_error error = {0};
        uint32_t count = 0;
        state = state * UINT64_C(6364136223846793005) + 1;
        size_t length = (size_t)(state >> 40) % (sizeof(text) - 1);
        size_t begin = 0;
        if (state & UINT64_C(1) << 35) {
            begin = (size_t)snprintf(text, sizeof(text), "step_time>");
        }
        for (size_t i = begin; i < length; i++) {
            state = state * UINT64_C(6364136223846793005) + 1;
            text[i] = alphabet[(state >> 40) % (sizeof(alphabet) - 1)];
        }
        if (lac_compare_conditions_parse(text, conditions, &count, &error) == LAC_OK) {
            ck_assert_uint_le(count, LAC_COMPARE_CONDITIONS_MAX);
            for (uint32_t i = 0; i < count; i++) {
                ck_assert(isfinite(conditions[i].value));
            }
        } else {
            ck_assert_uint_gt(strlen(error.message), 10);
        }
    }
    uint32_t count = 0;
    ck_assert_int_eq(lac_compare_conditions_parse("step_time>1e308s", conditions, &count, NULL),
                     LAC_ERR_MISUSE);
}
END_TEST

START_TEST(other_programs_are_not_compared)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(steady, 10, "{}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_int_eq(it->refusal, LAC_COMPARE_COMPARABLE);
    ck_assert_double_eq_tol(it->kernels_common_pct, 100.0, 1e-6);
    ck_assert_double_eq_tol(it->operators_common_pct, 100.0, 1e-6);
    lac_comparison_destroy(it);
    /* the same loop with other kernels under other operators */
    char other[4096] = "";
    size_t used = 0;
    for (int i = 0; i < 8; i++) {
        int at = i * 1000;
        used += (size_t)snprintf(other + used, sizeof(other) - used,
                                 "main range %d 1000 ProfilerStep#%d\n"
                                 "main op %d 20 aten::conv2d\n"
                                 "main call %d 5 #%d cudaLaunchKernel\n"
                                 "gpu0.7 kernel %d 500 #%d cudnn_infer_volta_scudnn_128x64\n"
                                 "main op %d 20 Optimizer.step#SGD.step\n",
                                 at, i, at + 10, at + 12, i + 1, at + 40, i + 1, at + 970);
    }
    struct drawn c = {.model = trace_draw(other)};
    c.analysis = trace_diagnose(c.model);
    it = compared(&a, &c);
    ck_assert_int_eq(it->refusal, LAC_COMPARE_DIFFERENT_PROGRAMS);
    ck_assert_str_eq(lac_compare_refusal_name(it->refusal), "different_programs");
    ck_assert_int_eq(it->verdict, LAC_COMPARE_UNKNOWN);
    ck_assert(isnan(it->step.pct) && isnan(it->noise_floor_pct));
    ck_assert(!it->is_one_change && it->difference_count == 0 && it->operator_count == 0);
    ck_assert_ptr_null(it->prediction.finding);
    ck_assert_ptr_nonnull(strstr(it->headline, "different programs"));
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
    erase(&c);
}
END_TEST

START_TEST(the_order_of_steps_tells_what_one_long_step_hides)
{
    /* each step is a tenth shorter, but for one that waited for something else */
    static const int disturbed[] = {900, 910, 890, 900, 905, 895, 2200, 902, 898, 900, 901, 899};
    static const int calm[] = {1000, 1010, 990, 1000, 2300, 995, 1001, 1002, 998, 1003, 1004, 1000};
    static const int fewer[] = {1000, 900, 1000, 900};
    struct drawn a = draw(calm, 12, "{}");
    struct drawn b = draw(disturbed, 12, "{}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_double_lt(it->step.low_pct, 0.0);
    ck_assert_double_gt(it->step.high_pct, 0.0);
    ck_assert_double_lt(it->rank_test_p, 0.01);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_FASTER);
    ck_assert_ptr_nonnull(strstr(it->headline, "by the order of their steps"));
    lac_comparison_destroy(it);
    it = compared(&a, &a);
    ck_assert_double_eq_tol(it->rank_test_p, 1.0, 1e-9);
    ck_assert_int_eq(it->verdict, LAC_COMPARE_SAME);
    lac_comparison_destroy(it);
    /* ten against ten without a common value: 2 of 184756 orders */
    struct drawn c = draw(steady, 10, "{}");
    struct drawn d = draw(shorter, 10, "{}");
    it = compared(&c, &d);
    ck_assert_double_eq_tol(it->rank_test_p, 2.0 / 184756.0, 1e-9);
    lac_comparison_destroy(it);
    struct drawn e = draw(fewer, 4, "{}");
    it = compared(&e, &e);
    ck_assert_int_ne(it->verdict, LAC_COMPARE_FASTER);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
    erase(&c);
    erase(&d);
    erase(&e);
}
END_TEST

START_TEST(what_one_side_did_not_record_is_no_one_change)
{
    struct drawn a = draw(steady, 10, "{\"lr\":0.1,\"foreach\":false}");
    struct drawn b = draw(shorter, 10, "{\"lr\":0.1,\"foreach\":true}");
    struct drawn c = draw(shorter, 10, "{\"foreach\":true}");
    struct lac_comparison *it = compared(&a, &b);
    ck_assert(it->is_one_change);
    lac_comparison_destroy(it);
    it = compared(&a, &c);
    ck_assert(!it->is_one_change);
    ck_assert_ptr_nonnull(strstr(it->changed, "not recorded"));
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
    erase(&c);
}
END_TEST

START_TEST(ranks_and_gpus_are_no_change)
{
    struct drawn a = draw(steady, 10, "{}");
    struct drawn b = draw(shorter, 10, "{}");
    a.model->info.rank = 0;
    b.model->info.rank = 1;
    a.model->info.world_size = b.model->info.world_size = 8;
    a.model->info.t0_ns = INT64_C(1700000000000000000);
    b.model->info.t0_ns = a.model->info.t0_ns + 1000;
    struct lac_comparison *it = compared(&a, &b);
    ck_assert_int_eq(it->relation, LAC_COMPARE_RANKS);
    ck_assert(it->is_one_run && !it->is_one_change);
    ck_assert_ptr_nonnull(strstr(it->changed, "two ranks of one run"));
    ck_assert_int_eq(it->verdict, LAC_COMPARE_FASTER);
    lac_comparison_destroy(it);
    b.model->info.t0_ns += INT64_C(3600000000000); /* an hour later: of another run */
    it = compared(&a, &b);
    ck_assert(!it->is_one_run);
    ck_assert_int_eq(it->relation, LAC_COMPARE_RANKS);
    lac_comparison_destroy(it);
    erase(&a);
    erase(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *cases = tcase_create("compare");
    tcase_add_test(cases, shorter_steps_are_faster);
    tcase_add_test(cases, other_programs_are_not_compared);
    tcase_add_test(cases, the_order_of_steps_tells_what_one_long_step_hides);
    tcase_add_test(cases, what_one_side_did_not_record_is_no_one_change);
    tcase_add_test(cases, ranks_and_gpus_are_no_change);
    tcase_add_test(cases, jumping_steps_show_no_small_difference);
    tcase_add_test(cases, two_steps_are_too_few);
    tcase_add_test(cases, other_batch_sizes_compare_samples);
    tcase_add_test(cases, other_numbers_of_batches_are_other_work);
    tcase_add_test(cases, tokens_are_not_divided_by_samples);
    tcase_add_test(cases, differences_are_named);
    tcase_add_test(cases, settings_that_are_no_json_end_quietly);
    tcase_add_test(cases, parts_sum_to_the_step);
    tcase_add_test(cases, conditions_are_read);
    tcase_add_test(cases, kinds_of_steps_are_compared_with_their_like);
    tcase_add_test(cases, operators_say_where_gpu_time_went);
    tcase_add_test(cases, what_was_not_recorded_is_said_of_results);
    tcase_add_test(cases, hostile_conditions_are_refused_in_words);
    tcase_add_test(cases, a_difference_in_the_noise_fails_nothing);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
