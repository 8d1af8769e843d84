/* Flame graphs of what allocated memory of the GPU, and of copies alone. */
#include "analysis/flame/flame.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/** "parent>frame self count", a line for each frame that has something of its own. */
static const char *shown(const char *drawing, const struct lac_flame_options *options)
{
    static char text[2048];
    struct lac_model *model = trace_draw(drawing);
    struct lac_flame *flame = NULL;
    size_t used = 0;
    ck_assert_int_eq(lac_flame_create(model, options, &flame), LAC_OK);
    text[0] = '\0';
    for (uint32_t i = 0; i < flame->node_count; i++) {
        const struct lac_flame_node *node = &flame->nodes[i];
        if (node->self_ns > 0) {
            const bool is_deep = i > 0 && node->parent > 0;
            used += (size_t)snprintf(
                text + used, sizeof(text) - used, "%s%s%s %lld %llu\n",
                is_deep ? lac_model_str(model, flame->nodes[node->parent].name) : "",
                is_deep ? ">" : "", i > 0 ? lac_model_str(model, node->name) : "all",
                (long long)node->self_ns, (unsigned long long)node->count);
        }
    }
    lac_flame_destroy(flame);
    lac_model_destroy(model);
    return text;
}

static const char allocations[] = "main op 0 100 forward\n"
                                  "main python 10 50 net.py(7): conv\n"
                                  "main op 15 20 aten::empty\n"
                                  "main alloc 5 0 100 100\n"
                                  "main alloc 20 0 4096 4196\n"
                                  "main alloc 34 0 10 4206\n"
                                  "main alloc 35 0 1 4207\n"
                                  "main alloc 60 0 2 4209\n"
                                  "main alloc 70 0 -4096 113\n"
                                  "main alloc 100 0 8 121\n"
                                  "other op 0 100 backward\n"
                                  "other alloc 50 0 1000 1121\n";

START_TEST(allocated_bytes_stand_under_what_allocated_them)
{
    struct lac_flame_options options = {.metric = LAC_FLAME_MEMORY};
    /* what ends at an allocation did not make it; releases take nothing off */
    ck_assert_str_eq(shown(allocations, &options), "all 8 7\n"
                                                   "forward 103 5\n"
                                                   "backward 1000 1\n"
                                                   "forward>aten::empty 4106 2\n");
    options.by = LAC_FLAME_BY_KERNEL;
    ck_assert_str_eq(shown(allocations, &options), "all 8 7\n"
                                                   "aten::empty 4106 2\n"
                                                   "backward 1000 1\n"
                                                   "forward 102 2\n"
                                                   "net.py(7): conv 1 1\n");
}
END_TEST

START_TEST(allocations_of_an_area_alone_count)
{
    struct lac_flame_options options = {
        .metric = LAC_FLAME_MEMORY, .by = LAC_FLAME_BY_PYTHON, .t0_ns = 19000, .t1_ns = 60000};
    ck_assert_str_eq(shown(allocations, &options), "backward 1000 1\n"
                                                   "forward>net.py(7): conv 1 3\n"
                                                   "net.py(7): conv>aten::empty 4106 2\n");
}
END_TEST

START_TEST(more_bytes_than_a_number_holds_are_the_largest_number)
{
    static char drawing[1100 * 48];
    size_t used = 0;
    const struct lac_flame_options options = {.metric = LAC_FLAME_MEMORY};
    for (int i = 0; i < 1100; i++) {
        used += (size_t)snprintf(drawing + used, sizeof(drawing) - used,
                                 "main alloc %d 0 9007199254740991 1\n", i);
    }
    ck_assert_str_eq(shown(drawing, &options), "all 9223372036854775807 1100\n");
}
END_TEST

START_TEST(copies_alone_stand_under_what_launched_them)
{
    const struct lac_flame_options options = {.metric = LAC_FLAME_COPIES};
    ck_assert_str_eq(shown("main op 0 100 to\n"
                           "main call 10 5 #1 cudaMemcpyAsync\n"
                           "main call 20 5 #2 cudaLaunchKernel\n"
                           "main call 30 5 #3 cudaMemsetAsync\n"
                           "gpu0.7 copy 40 7 #1 HtoD pageable 1000000\n"
                           "gpu0.7 kernel 50 9 #2 gemm\n"
                           "gpu0.7 memset 60 2 #3 Memset\n",
                           &options),
                     "to>Memcpy 7000 1\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flame_memory");
    TCase *tests = tcase_create("memory and copies");
    tcase_add_test(tests, allocated_bytes_stand_under_what_allocated_them);
    tcase_add_test(tests, allocations_of_an_area_alone_count);
    tcase_add_test(tests, more_bytes_than_a_number_holds_are_the_largest_number);
    tcase_add_test(tests, copies_alone_stand_under_what_launched_them);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
