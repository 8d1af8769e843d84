/* Text of profilers' stacks: folded stacks and perf script, made by hand and real. */

#include "analysis/flame/flame.h"
#include "analysis/import/importers.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The flame graph of a model: "a;b 3|" for each frame with weight of its own, as it has them. */
static char folded[1 << 14];

static const char *fold(const struct lac_model *model)
{
    const struct lac_flame_options options = {
        .metric = LAC_FLAME_CPU, .by = LAC_FLAME_BY_PYTHON, .node_count_max = 100000};
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

static void expect_stacks(const char *text, const char *expected, const char *unit, int64_t scale)
{
    struct imported got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(fold(got.models[0]), expected);
    ck_assert_str_eq(lac_model_str(got.models[0], got.models[0]->info.weight_unit), unit);
    ck_assert_int_eq(got.models[0]->info.weight_scale, scale);
    ck_assert(got.models[0]->info.has_no_time);
    imported_done(&got);
}

START_TEST(folded_stacks_keep_their_weights)
{
    expect_stacks("a;b 1\na;c 4\na;b 2\na 5\n", "a 5|a;c 4|a;b 3|", "samples", 1);
    /* recursion, spaces in names, a line of Windows, comments, no newline at the end */
    expect_stacks("main loop;f;f;f 2\r\n# note\n\nmain loop;g (x, y) 3",
                  "main loop;g (x, y) 3|main loop;f;f;f 2|", "samples", 1);
    /* fractions are exact, to six digits */
    expect_stacks("a;b 0.5\na;c 1.25\na;d 2\na;e 3.000\n", "a;e 300|a;d 200|a;c 125|a;b 50|",
                  "samples", 100);
    expect_stacks("a;b 0.1234567\na;c 1\n", "a;c 1000000|a;b 123457|", "samples", 1000000);
    /* empty frames between semicolons are none; weights of nothing weigh nothing */
    expect_stacks("a;;b 1\n;a 2\na;z 0\n", "a 2|a;b 1|", "samples", 1);
}
END_TEST

START_TEST(folded_lines_that_are_none_are_counted)
{
    struct imported got = import_text("a;b 1\na;b 2\nno weight here\na;b 1.2.3\n");
    ck_assert_int_eq(got.status, LAC_ERR_CORRUPT); /* not recognized: other lines follow at once */
    imported_done(&got);
    static char text[40000];
    size_t used = 0;
    for (int i = 0; i < 2000; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "alpha;beta 1\n");
    }
    (void)snprintf(text + used, sizeof(text) - used, "no weight here\na;b 1.2.3\n");
    got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(report_count(got.models[0], "line_not_understood"), 2);
    ck_assert_str_eq(fold(got.models[0]), "alpha;beta 2000|");
    imported_done(&got);
}
END_TEST

static const char script[] = "# ========\n"
                             "# captured on: today\n"
                             "# ========\n"
                             "#\n"
                             "my prog  100/101 [000] 10.000000:          1 cycles:u: \n"
                             "\t    7f01 inner+0x1a (/usr/lib/libx.so)\n"
                             "\t    7f02 outer(int, char)+0x2 (/usr/bin/prog)\n"
                             "\n"
                             "my prog  100/101 [000] 10.010000:          1 cycles:u: \n"
                             "\t    7f01 other (/usr/lib/libx.so)\n"
                             "\t    7f02 outer(int, char) (/usr/bin/prog)\n"
                             "\n"
                             "   prog2 200 11.000000:          1 cycles:u: \n"
                             "\tffffffff81 sys_read ([kernel.kallsyms])\n"
                             "\t    7f03 Interpreter (/tmp/perf-200.map)\n"
                             "\t    7f04 [unknown] (/opt/a b/libmine.so)\n"
                             "\t    7f05 [unknown] ([unknown])\n"
                             "\t    7f06 std::f<a;b>(x) (inlined)\n"
                             "\t    7f07 (anonymous namespace)::g() (/usr/bin/prog)\n"
                             "\t    7f08 net/http.(*Client).Do (/usr/bin/go)\n"
                             "\n"
                             "   prog2 200 11.010000:          1 cycles:u: \n"
                             "\t    7f09 last (/usr/bin/prog)\n"
                             "\n";

START_TEST(perf_script_becomes_threads_over_time)
{
    struct imported got = import_text(script);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    const struct lac_model *const model = got.models[0];
    ck_assert_str_eq(
        fold(model),
        "prog2;last 10000000|my_prog;outer;inner 10000000|my_prog;outer;other 10000000|"
        "prog2;net/http.(*Client).Do;(anonymous namespace)::g;std::f<a:b>_[i];[unknown];"
        "[libmine.so];Interpreter_[j];sys_read_[k] 10000000|");
    ck_assert(!model->info.has_no_time);
    ck_assert_str_eq(lac_model_str(model, model->info.weight_unit), "samples");
    ck_assert_int_eq(model->info.weight_scale, 10000000);
    ck_assert_int_eq(model->info.t0_ns, 10000000000);
    ck_assert_uint_eq(model->info.event_count, 4);
    const uint32_t track = find_track(model, LAC_TRACK_THREAD, "100/101/-1");
    ck_assert_uint_ne(track, LAC_NONE);
    ck_assert_int_eq(model->tracks[track].tid, 101);
    ck_assert_int_eq(model->processes[model->tracks[track].process].pid, 100);
    /* what two samples in a row have in common is one slice */
    ck_assert_uint_eq(model->tracks[track].count, 4);
    ck_assert_int_eq(model->slices.dur_ns[find_slice(model, "outer")], 20000000);
    imported_done(&got);
}
END_TEST

START_TEST(a_sample_that_is_cut_does_not_count)
{
    const size_t size = strlen(script);
    for (size_t cut = 0; cut <= size; cut++) {
        char *const text = malloc(cut + 1);
        ck_assert_ptr_nonnull(text);
        memcpy(text, script, cut);
        struct imported got = import_sized(text, cut);
        ck_assert(got.status == LAC_OK || got.error.message[0] != '\0');
        if (got.status == LAC_OK) {
            ck_assert(lac_model_is_valid(got.models[0]));
            ck_assert_int_le(got.models[0]->slices.dur_ns[0], 20000000);
        }
        imported_done(&got);
        free(text);
    }
}
END_TEST

START_TEST(perf_script_without_times_has_no_time)
{
    expect_stacks("a  1 cpu-clock: \n\t 7f01 f (/x)\n\t 7f02 main (/x)\n\n"
                  "a  1 cpu-clock: \n\t 7f01 f (/x)\n\t 7f02 main (/x)\n\n",
                  "a;main;f 2|", "samples", 1);
    /* threads with the same number on several CPUs are told apart; other events are counted */
    struct imported got =
        import_text("swapper 0 [000] 1.000000: 1000000 cpu-clock: \n\t 7f01 idle ([kernel])\n\n"
                    "swapper 0 [001] 1.000000: 1000000 cpu-clock: \n\t 7f01 idle ([kernel])\n\n"
                    "swapper 0 [001] 1.000000: 7 faults: \n\t 7f01 idle ([kernel])\n\n"
                    "swapper 0 [001] 1.001000: 1000000 cpu-clock: \n\n");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(got.models[0]->track_count, 2);
    ck_assert_str_eq(fold(got.models[0]), "swapper;idle_[k] 2000000|");
    ck_assert_int_eq(got.models[0]->info.weight_scale, 1000000); /* the clock's period */
    ck_assert_uint_eq(report_count(got.models[0], "other_event"), 1);
    ck_assert_uint_eq(report_count(got.models[0], "sample_without_stack"), 1);
    imported_done(&got);
}
END_TEST

/* What others read stays theirs. */
START_TEST(recognition_steals_nothing)
{
    static const char *const texts[] = {
        "",
        "{\"traceEvents\":[]}",
        "[1, 2]",
        "a,b,c\n1,2,3\n",
        "timestamp, index, name\n2020/01/01, 0, GPU 1\n",
        "# gpu   pwr gtemp\n# Idx     W     C\n    0    43    35\n",
        "==123== Profiling application: x\n==123== Profiling result:\n",
        "one 1\ntwo 2\n",
        "x;y;z\n1;2;3\n",
        "events: callgrind;x 5\nfn=main\n",
        "-;- 5\n",
        "# started on Mon\n\n Performance counter stats for 'x':\n",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(texts); i++) {
        struct imported got = import_text(texts[i]);
        ck_assert_msg(got.count == 0 || (got.models[0]->info.format != LAC_FORMAT_FOLDED &&
                                         got.models[0]->info.format != LAC_FORMAT_PERF),
                      "%zu", i);
        imported_done(&got);
    }
}
END_TEST

START_TEST(limits_are_named)
{
    char *const deep = malloc(20000);
    size_t used = 0;
    ck_assert_ptr_nonnull(deep);
    for (int i = 0; i <= 4096; i++) {
        used += (size_t)snprintf(deep + used, 20000 - used, "f;");
    }
    (void)snprintf(deep + used, 20000 - used, "f 1\n");
    struct imported got = import_text(deep);
    ck_assert_int_eq(got.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(got.error.message, "4096 frames"));
    imported_done(&got);
    got = import_text("a;b 9007199254740000\na;b 9007199254740000\n");
    ck_assert_int_eq(got.status, LAC_ERR_LIMIT);
    imported_done(&got);
    struct lac_import_limits limits;
    lac_import_limits_default(&limits);
    limits.event_bytes_max = 2000;
    got = import_tuned(deep, strlen(deep), &limits, 64, 7, true);
    ck_assert_int_eq(got.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(got.error.message, "event_bytes_max"));
    imported_done(&got);
    limits.event_bytes_max = 1 << 20;
    limits.slice_count_max = 1;
    got = import_tuned("a;b 1\n", 6, &limits, 64, 7, true);
    ck_assert_int_eq(got.status, LAC_ERR_LIMIT);
    imported_done(&got);
    free(deep);
}
END_TEST

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The stacks of a model as stackcollapse-perf writes them, sorted. */
static char *fold_all(const struct lac_model *model)
{
    enum { ROOM = 1 << 20, LINES = 4096 };
    const struct lac_flame_options options = {
        .metric = LAC_FLAME_CPU, .by = LAC_FLAME_BY_PYTHON, .node_count_max = 1000000};
    struct lac_flame *flame = NULL;
    char **const lines = calloc(LINES, sizeof(*lines));
    char *const all = calloc(1, ROOM);
    uint32_t count = 0;
    ck_assert(lines != NULL && all != NULL);
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    for (uint32_t n = 1; n < flame->node_count; n++) {
        uint32_t path[512];
        uint32_t depth = 0;
        size_t used = 0;
        if (flame->nodes[n].self_ns == 0) {
            continue;
        }
        ck_assert_uint_lt(count, LINES);
        char *const line = lines[count++] = calloc(1, 1 << 15);
        ck_assert_ptr_nonnull(line);
        for (uint32_t at = n; at != 0 && depth < 512; at = flame->nodes[at].parent) {
            path[depth++] = at;
        }
        for (; depth > 0; depth--) {
            used += (size_t)snprintf(line + used, (1 << 15) - used, "%s%s",
                                     lac_model_str(model, flame->nodes[path[depth - 1]].name),
                                     depth > 1 ? ";" : "");
        }
        ck_assert_int_eq(flame->nodes[n].self_ns % model->info.weight_scale, 0);
        (void)snprintf(line + used, (1 << 15) - used, " %lld\n",
                       (long long)(flame->nodes[n].self_ns / model->info.weight_scale));
    }
    qsort(lines, count, sizeof(*lines), by_text);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += (size_t)snprintf(all + used, ROOM - used, "%s", lines[i]);
        ck_assert_uint_lt(used, ROOM);
        free(lines[i]);
    }
    free(lines);
    lac_flame_destroy(flame);
    return all;
}

/* Ours of FlameGraph's samples is what its own script gave for them. */
START_TEST(flamegraphs_samples_fold_as_expected)
{
    static const char *const files[][2] = {
        {"flamegraph/perf-vertx-stacks-01.txt",
         "flamegraph/results__perf-vertx-stacks-01-collapsed-all.txt"},
        {"flamegraph/perf-iperf-stacks-pidtid-01.txt",
         "flamegraph/results__perf-iperf-stacks-pidtid-01-collapsed-all.txt"},
    };
    if (access(real_trace(files[_i][0]), R_OK) != 0) {
        (void)printf("skip: no %s\n", real_trace(files[_i][0]));
        return;
    }
    struct imported perf = import_path(real_trace(files[_i][0]));
    struct imported again = import_path(real_trace(files[_i][1]));
    ck_assert_int_eq(perf.status, LAC_OK);
    ck_assert_int_eq(again.status, LAC_OK);
    ck_assert(again.models[0]->info.has_no_time);
    char *const ours = fold_all(perf.models[0]);
    char *const theirs = fold_all(again.models[0]);
    size_t size = 0;
    unsigned char *const file = read_whole(real_trace(files[_i][1]), &size);
    ck_assert_ptr_nonnull(file);
    ck_assert_str_eq(ours, theirs);
    /* their file, each line of which is there */
    size_t lines = 0;
    for (const unsigned char *at = file; at < file + size; lines++) {
        const unsigned char *const end = memchr(at, '\n', size - (size_t)(at - file));
        ck_assert_ptr_nonnull(end);
        ck_assert_msg(memmem(ours, strlen(ours), at, (size_t)(end + 1 - at)) != NULL, "%.*s",
                      (int)(end - at), (const char *)at);
        at = end + 1;
    }
    for (const char *c = ours; *c != '\0'; c++) {
        lines -= *c == '\n';
    }
    ck_assert_uint_eq(lines, 0);
    free(file);
    free(ours);
    free(theirs);
    imported_done(&perf);
    imported_done(&again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_stacks");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, folded_stacks_keep_their_weights);
    tcase_add_test(tcase, folded_lines_that_are_none_are_counted);
    tcase_add_test(tcase, perf_script_becomes_threads_over_time);
    tcase_add_test(tcase, a_sample_that_is_cut_does_not_count);
    tcase_add_test(tcase, perf_script_without_times_has_no_time);
    tcase_add_test(tcase, recognition_steals_nothing);
    tcase_add_test(tcase, limits_are_named);
    tcase_add_loop_test(tcase, flamegraphs_samples_fold_as_expected, 0, 2);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
