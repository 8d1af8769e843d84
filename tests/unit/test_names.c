/* The name tables: every row has an example that it, and no row before it, matches. */

#include "analysis/diagnose/names/names.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(counters_of_the_recorder_are_told_from_a_persons)
{
    ck_assert(lac_names_counter_is_measured("cgroup throttled (%)"));
    ck_assert(lac_names_counter_is_measured("pt_data_worker 12: on a core (%)"));
    ck_assert(lac_names_counter_is_measured("GPU 12: SM clock (MHz)"));
    ck_assert(lac_names_counter_is_measured("allocated by PyTorch (MB)"));
    ck_assert(!lac_names_counter_is_measured("loss"));
    ck_assert(!lac_names_counter_is_measured("GPU 0: patients of clinic X"));
    ck_assert(!lac_names_counter_is_measured("clinic X: power (W)"));
    ck_assert(!lac_names_counter_is_measured("power (W) of clinic X"));
    ck_assert(!lac_names_counter_is_measured("power (clinic X)"));
    ck_assert(!lac_names_counter_is_measured("GPU score: 3"));
    ck_assert(!lac_names_counter_is_measured("on a core of Kim's (%)"));
    ck_assert(!lac_names_counter_is_measured(""));
}
END_TEST

START_TEST(every_row_matches_its_example_first)
{
    uint32_t count = 0;
    const struct lac_names_row *rows = lac_names_rows(&count);
    ck_assert_uint_gt(count, 200);
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_names_row *hit =
            lac_names_match(rows[i].table, rows[i].example, strlen(rows[i].example));
        ck_assert_msg(hit == &rows[i], "row %u \"%s\": \"%s\" is matched by \"%s\"", i,
                      rows[i].pattern, rows[i].example, hit != NULL ? hit->pattern : "(none)");
    }
}
END_TEST

static struct lac_name_class class_of(const char *name)
{
    struct lac_name_class name_class;
    lac_names_classify(name, strlen(name), &name_class);
    return name_class;
}

START_TEST(rows_of_a_table_are_contiguous)
{
    uint32_t count = 0;
    const struct lac_names_row *rows = lac_names_rows(&count);
    for (uint32_t i = 1; i < count; i++)
        ck_assert_int_ge((int)rows[i].table, (int)rows[i - 1].table);
}
END_TEST

START_TEST(false_friends_are_no_layout_kernels)
{
    static const char *const names[] = {
        "void "
        "cutlass::Kernel<cutlass::gemm::kernel::DefaultGemmUniversal<cutlass::layout::NoPermute> "
        ">(P)",
        "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS_6layout9NoPermuteEEEEEvNT_6ParamsE",
        "void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)",
        "void permute_pooled_embs_kernel<float>(float const*)",
        "void at::native::conv_transpose2d_backward_kernel<float>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> "
        ">(int)",
        "void kernel_with<Transpose>(int)",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        struct lac_name_class name_class = class_of(names[i]);
        ck_assert_msg(name_class.layout == LAC_LAYOUT_NONE, "%s", names[i]);
        if (i != 4)
            ck_assert_msg(!name_class.is_strict_layout, "%s", names[i]);
    }
    /* the strict rule is a plain one: a function called conv_transpose counts there, never in L */
    ck_assert(class_of(names[4]).is_strict_layout);
}
END_TEST

START_TEST(strict_rule_looks_at_the_own_name_only)
{
    ck_assert(class_of("void batched_transpose_16x32<half>(x)").is_strict_layout);
    ck_assert(class_of("void (anonymous namespace)::Transpose<int>(x)").is_strict_layout);
    ck_assert(class_of("void a<b>::nchwToNhwcKernel<float>()").is_strict_layout);
    ck_assert(class_of("_ZN8nchwToNhwcE").is_strict_layout);
    ck_assert(!class_of("_ZN9transposeE").is_strict_layout);
    ck_assert(!class_of("void gemm(transpose)").is_strict_layout);
    ck_assert(!class_of("void foo<transpose>(x)").is_strict_layout);
}
END_TEST

START_TEST(tensor_cores_by_name)
{
    ck_assert_int_eq((int)class_of("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_"
                                   "warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas")
                         .tensor_core,
                     (int)LAC_TENSOR_CORE_NO);
    ck_assert_int_eq((int)class_of("nvjet_hsh_128x256_64x4_1x2_h_bz_TNN").tensor_core,
                     (int)LAC_TENSOR_CORE_YES);
    ck_assert_int_eq((int)class_of("volta_sgemm_128x64_nn").tensor_core, (int)LAC_TENSOR_CORE_NO);
    ck_assert_int_eq(
        (int)class_of("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nt_align4>(P)")
            .tensor_core,
        (int)LAC_TENSOR_CORE_YES);
    ck_assert_int_eq((int)class_of("my_gemm_kernel").tensor_core, (int)LAC_TENSOR_CORE_UNKNOWN);
    ck_assert_int_eq((int)class_of("triton_mm").tensor_core, (int)LAC_TENSOR_CORE_UNKNOWN);
    ck_assert_int_eq((int)class_of("void at::native::reduce_kernel<512, 1>(x)").tensor_core,
                     (int)LAC_TENSOR_CORE_NO);
    ck_assert(class_of("my_gemm_kernel").is_eligible);
    ck_assert(!class_of("void gemv2T_kernel_val<int>(x)").is_eligible);
    ck_assert(!class_of("void at::native::reduce_kernel<512, 1>(x)").is_eligible);
}
END_TEST

START_TEST(families_in_the_right_order)
{
    ck_assert_int_eq((int)class_of("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32").family,
                     (int)LAC_FAMILY_CONV);
    ck_assert_int_eq((int)class_of("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL").family,
                     (int)LAC_FAMILY_COMM);
    ck_assert_int_eq((int)class_of("void cudnn::ops::nchwToNhwcKernel<float>(x)").family,
                     (int)LAC_FAMILY_LAYOUT);
    ck_assert_int_eq((int)class_of("").family, (int)LAC_FAMILY_OTHER);
    ck_assert_int_eq((int)class_of("void foo<at::native::lambda>(x)").family,
                     (int)LAC_FAMILY_OTHER);
}
END_TEST

static void short_is(const char *name, const char *expected)
{
    char text[64];
    size_t length = lac_kernel_short_name(name, strlen(name), text, sizeof(text));
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(length, strlen(expected));
}

START_TEST(short_names_are_what_people_say)
{
    short_is("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
             "gemm bf16 128x128");
    short_is("volta_sgemm_128x64_nn", "gemm fp32 128x64");
    short_is("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "gemm bf16 128x256");
    short_is("void cudnn::ops::nchwToNhwcKernel<float, float>(x)", "nchw->nhwc");
    short_is("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, "
             "cutlass::bfloat16_t> >(x)",
             "flash forward bf16");
    short_is("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "all-reduce");
    short_is("void at::native::vectorized_elementwise_kernel<4, "
             "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
             "elementwise add");
    short_is("void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(int)",
             "max_pool_backward_nchw");
    short_is("my_kernel", "my_kernel");
    short_is("", "");
}
END_TEST

START_TEST(short_name_fits_any_capacity)
{
    static const char name[] = "k\xC3\xA9rnel_\xE2\x82\xAC";
    for (size_t capacity = 0; capacity < 16; capacity++) {
        char *text = malloc(capacity ? capacity : 1);
        ck_assert_ptr_nonnull(text);
        size_t length = lac_kernel_short_name(name, sizeof(name) - 1, text, capacity);
        if (capacity > 0) {
            ck_assert_uint_lt(length, capacity);
            ck_assert_uint_eq(strlen(text), length);
            ck_assert_int_eq(memcmp(text, name, length), 0);
        }
        free(text);
    }
}
END_TEST

/* -- rows that somebody added -- */

static struct lac_names *parsed(const char *text)
{
    struct lac_names *names = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_names_parse(text, strlen(text), &names, &error);
    ck_assert_msg(status == LAC_OK, "%s", error.message);
    return names;
}

START_TEST(added_rows_come_first)
{
    struct lac_names *names = parsed(
        "/* ours */\nLAC_NAME_ROW(FAMILY, LAC_FAMILY_MOE, \"^acme_route\", \"acme_route_4\")\n"
        "# products\nLAC_NAME_ROW( FAMILY , LAC_FAMILY_GEMM,\n \"^acme_mma&!slow\", \"acme_mma\")\n"
        "LAC_NAME_ROW(TENSOR_YES, 1, \"^acme_mma\", \"acme_mma\") // on tensor cores\n"
        "LAC_NAME_ROW(COMM, 1, \"~acme_ring\", \"Acme_Ring_4\")\n"
        "LAC_NAME_ROW(FAMILY, LAC_FAMILY_NORM, \"my_softmax\", \"my_softmax\")\n"
        "LAC_NAME_ROW(HOST, LAC_HOST_STEP, \"^turn \", \"turn 4\")");
    struct lac_name_class is;
    lac_names_classify_with(names, "acme_route_9", 12, &is);
    ck_assert_int_eq(is.family, LAC_FAMILY_MOE);
    lac_names_classify_with(names, "acme_mma_64", 11, &is);
    ck_assert_int_eq(is.family, LAC_FAMILY_GEMM);
    ck_assert_int_eq(is.tensor_core, LAC_TENSOR_CORE_YES);
    ck_assert(is.is_eligible);
    lac_names_classify_with(names, "acme_mma_slow", 13, &is);
    ck_assert_int_eq(is.family, LAC_FAMILY_OTHER);
    lac_names_classify_with(names, "acme_ring", 9, &is);
    ck_assert(is.is_comm);
    lac_names_classify_with(names, "my_softmax", 10, &is);
    ck_assert_int_eq(is.family, LAC_FAMILY_NORM);
    ck_assert_int_eq(lac_names_host_class_with(names, "turn 12", 7), LAC_HOST_STEP);
    /* without them, all is as it was; with them, so is what they do not name */
    lac_names_classify("my_softmax", 10, &is);
    ck_assert_int_eq(is.family, LAC_FAMILY_SOFTMAX);
    ck_assert_int_eq(lac_names_host_class("turn 12", 7), LAC_HOST_OTHER);
    uint32_t count = 0;
    const struct lac_names_row *rows = lac_names_rows(&count);
    for (uint32_t i = 0; i < count; i++) {
        struct lac_name_class as_it_was;
        size_t length = strlen(rows[i].example);
        lac_names_classify(rows[i].example, length, &as_it_was);
        lac_names_classify_with(names, rows[i].example, length, &is);
        ck_assert_int_eq(is.family, as_it_was.family);
        ck_assert_int_eq(is.tensor_core, as_it_was.tensor_core);
    }
    lac_names_destroy(names);
}
END_TEST

START_TEST(files_that_are_wrong_are_refused_in_words)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"hello", "line 1: LAC_NAME_ROW"},
        {"\n\nLAC_NAME_ROW", "line 3: ("},
        {"LAC_NAME_ROW(KERNELS, 1, \"a\", \"a\")", "the table must be"},
        {"LAC_NAME_ROW(FAMILY, LAC_FAMILY_LAYOUT, \"a\", \"a\")", "none of the table's"},
        {"LAC_NAME_ROW(FAMILY, 3, \"a\", \"a\")", "none of the table's"},
        {"LAC_NAME_ROW(COMM, 1, a, \"a\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"\", \"a\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"!^\", \"a\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"a&\", \"a\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"a&&b\", \"ab\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"a&b&c&d&e&f&g&h&i\", \"abcdefghi\")", "a pattern in quotes"},
        {"LAC_NAME_ROW(COMM, 1, \"a\", \"b\")", "does not match its example"},
        {"LAC_NAME_ROW(COMM, 1, \"a\", \"a\"", "an example in quotes and )"},
        {"LAC_NAME_ROW(COMM, 1, \"a", "a pattern in quotes"},
        {"/* no end", ""},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        struct lac_names *names = NULL;
        struct lac_error error = {0};
        enum lac_status status =
            lac_names_parse(cases[i].text, strlen(cases[i].text), &names, &error);
        bool is_good = cases[i].says[0] == '\0';
        ck_assert_msg((status == LAC_OK) == is_good, "%s", cases[i].text);
        ck_assert_msg(is_good || strstr(error.message, cases[i].says) != NULL, "%s: %s",
                      cases[i].text, error.message);
        lac_names_destroy(names);
    }
}
END_TEST

START_TEST(a_file_of_names_has_limits)
{
    static const char row[] = "LAC_NAME_ROW(COMM, 1, \"a\", \"a\")\n";
    enum { ROWS = LAC_NAMES_FILE_ROWS_MAX + 1 };
    char *text = malloc(ROWS * sizeof(row));
    struct lac_names *names = NULL;
    struct lac_error error = {0};
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < ROWS; i++) {
        memcpy(text + i * (sizeof(row) - 1), row, sizeof(row));
    }
    size_t length = strlen(text);
    ck_assert_int_eq(lac_names_parse(text, length, &names, &error), LAC_ERR_LIMIT);
    ck_assert_int_eq(lac_names_parse(text, length - (sizeof(row) - 1), &names, &error), LAC_OK);
    lac_names_destroy(names);
    /* cut at every byte of a row: refused, or a row less */
    for (size_t cut = 0; cut < 2 * sizeof(row); cut++) {
        names = NULL;
        char *exact = malloc(cut ? cut : 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, text, cut);
        if (lac_names_parse(exact, cut, &names, &error) == LAC_OK) {
            lac_names_destroy(names);
        }
        free(exact);
    }
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *tcase = tcase_create("names");
    tcase_add_test(tcase, counters_of_the_recorder_are_told_from_a_persons);
    tcase_add_test(tcase, every_row_matches_its_example_first);
    tcase_add_test(tcase, rows_of_a_table_are_contiguous);
    tcase_add_test(tcase, false_friends_are_no_layout_kernels);
    tcase_add_test(tcase, strict_rule_looks_at_the_own_name_only);
    tcase_add_test(tcase, tensor_cores_by_name);
    tcase_add_test(tcase, families_in_the_right_order);
    tcase_add_test(tcase, short_names_are_what_people_say);
    tcase_add_test(tcase, short_name_fits_any_capacity);
    tcase_add_test(tcase, added_rows_come_first);
    tcase_add_test(tcase, files_that_are_wrong_are_refused_in_words);
    tcase_add_test(tcase, a_file_of_names_has_limits);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
