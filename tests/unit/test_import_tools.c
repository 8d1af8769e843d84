/* Files of profilers of which tests/unit/test_import_profilers.c does not speak: what each becomes. */

#include "analysis/flame/flame.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The flame graph of a model: "a;b 3|" for each frame with weight of its own, as it has them. */
static char folded[1 << 14];

static const char *fold(const struct lac_model *model, enum lac_flame_metric metric)
{
    const struct lac_flame_options options = {
        .metric = metric, .by = LAC_FLAME_BY_PYTHON, .node_count_max = 100000};
    struct lac_flame *flame = NULL;
    size_t used = 0;
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    folded[0] = '\0';
    for (uint32_t n = 1; n < flame->node_count; n++) {
        uint32_t path[64];
        uint32_t depth = 0;
        if (flame->nodes[n].self_ns == 0) {
            continue;
        }
        for (uint32_t at = n; at != 0 && depth < 64; at = flame->nodes[at].parent) {
            path[depth++] = at;
        }
        for (; depth > 0; depth--) {
            used += (size_t)snprintf(folded + used, sizeof(folded) - used, "%s%s",
                                     lac_model_str(model, flame->nodes[path[depth - 1]].name),
                                     depth > 1 ? ";" : "");
        }
        used += (size_t)snprintf(folded + used, sizeof(folded) - used, " %lld|",
                                 (long long)flame->nodes[n].self_ns);
        ck_assert_uint_lt(used, sizeof(folded));
    }
    lac_flame_destroy(flame);
    return folded;
}

static struct imported import_seed(const char *name)
{
    char path[256];
    size_t size = 0;
    (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/import/%s", name);
    unsigned char *bytes = read_whole(path, &size);
    ck_assert_msg(bytes != NULL, "%s", path);
    struct imported got = import_sized(bytes, size);
    free(bytes);
    ck_assert_msg(got.status == LAC_OK, "%s: %s", name, got.error.message);
    ck_assert_uint_eq(got.count, 1);
    return got;
}

static void expect_profile(struct imported *got, enum lac_trace_format format, const char *expected,
                           const char *unit)
{
    ck_assert_msg(got->status == LAC_OK, "%s", got->error.message);
    ck_assert_int_eq(got->models[0]->info.format, format);
    ck_assert(got->models[0]->info.has_no_time);
    ck_assert_str_eq(fold(got->models[0], LAC_FLAME_CPU), expected);
    ck_assert_str_eq(lac_model_str(got->models[0], got->models[0]->info.weight_unit), unit);
    imported_done(got);
}

static void refuse(const void *bytes, size_t size, const char *why)
{
    struct imported got = import_sized(bytes, size);
    ck_assert_int_ne(got.status, LAC_OK);
    ck_assert_msg(strstr(got.error.message, why) != NULL, "%s", got.error.message);
    imported_done(&got);
}

/* -- callgrind --------------------------------------------------------------------------------- */

/* Written by valgrind 3.19 of a program that calls leaf() directly and through mid(). */
START_TEST(a_profile_of_callgrind_becomes_stacks_of_its_callers)
{
    struct imported got = import_seed("callgrind");
    expect_profile(
        &got, LAC_FORMAT_CALLGRIND,
        "main (w.c) 106|exit (w.c) 5|main (w.c);mid (w.c) 170|main (w.c);leaf (w.c) 3620|"
        "main (w.c);fib (w.c) 21|exit (w.c);? (w.c) 393|"
        "main (w.c);mid (w.c);leaf (w.c) 21240|main (w.c);fib (w.c);fib'2 (w.c) 1046|",
        "instructions");
}
END_TEST

/* As pyprof2calltree and Xdebug write it: names in full, times, calls of files named after fn=. */
START_TEST(other_writers_of_its_format_are_read)
{
    struct imported got = import_text("version: 1\nevents: ns\nfl=/a/m.py\nfn=main\n1 5\n"
                                      "cfl=/a/n.py\ncfn=work\ncalls=2 7\n2 40\ncfn=main\n"
                                      "calls=1 1\n3 9\n\nfl=/a/n.py\nfn=work\n7 40\n");
    expect_profile(&got, LAC_FORMAT_CALLGRIND, "main (m.py) 5|main (m.py);work (n.py) 40|", "");
    got = import_text("version: 1\nevents: Time_(10ns) Memory_(bytes)\n\nfl=(1) m.php\n"
                      "fn=(1) {main}\n1 3 8\n");
    expect_profile(&got, LAC_FORMAT_CALLGRIND, "{main} (m.php) 30|", "");
    /* cachegrind: no calls */
    got = import_text("desc: I1 cache: 1 B\ncmd: ./w\nevents: Ir I1mr\nfl=w.c\nfn=main\n"
                      "1 2 0\n2 3 1\nfn=leaf\n9 4 0\nsummary: 9 1\n");
    expect_profile(&got, LAC_FORMAT_CALLGRIND, "main (w.c) 5|leaf (w.c) 4|", "instructions");
}
END_TEST

START_TEST(hostile_profiles_of_callgrind_are_counted_or_refused)
{
    struct imported got =
        import_text("# callgrind format\nevents: Ir\nfn=(4294967295) x\n1 5\nfn=(7)\n1 2\nfn=(\n"
                    "1 -3\n+1 1e300\n1 x\nfn=(9) a\ncfn=(9)\ncalls=1 1\n1 99\n1 4\n");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(report_count(got.models[0], "name_not_understood"), 1);
    ck_assert_uint_eq(report_count(got.models[0], "name_not_there"), 1);
    ck_assert_uint_eq(report_count(got.models[0], "cost_not_understood"), 3);
    ck_assert_str_eq(fold(got.models[0], LAC_FLAME_CPU), "? 7|a 4|");
    imported_done(&got);
    static const char EMPTY[] = "# callgrind format\nevents: Ir\n";
    refuse(EMPTY, sizeof(EMPTY) - 1, "no stack with a weight");
    /* more than can be added up */
    static const char MUCH[] = "# callgrind format\nevents: Ir\nfn=a\n1 9900000000000000\n"
                               "1 9900000000000000\n";
    refuse(MUCH, sizeof(MUCH) - 1, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_tools");
    TCase *tcase = tcase_create("profilers");
    tcase_add_test(tcase, a_profile_of_callgrind_becomes_stacks_of_its_callers);
    tcase_add_test(tcase, other_writers_of_its_format_are_read);
    tcase_add_test(tcase, hostile_profiles_of_callgrind_are_counted_or_refused);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
