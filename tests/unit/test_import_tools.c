/* Files of profilers of which tests/unit/test_import_profilers.c does not speak: what each becomes. */

#include "analysis/flame/flame.h"
#include "analysis/model/args.h"
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

/* -- line_profiler ------------------------------------------------------------------------------ */

/* Both written by line_profiler 4.0.2 from one run. */
START_TEST(line_profiler_opens_as_pickle_and_as_text)
{
    static const char *const seeds[] = {"line_profiler", "line_profiler_text"};
    for (size_t i = 0; i < 2; i++) {
        struct imported got = import_seed(seeds[i]);
        ck_assert_uint_eq(report_count(got.models[0], "line_times_include_calls"), 1);
        expect_profile(&got, LAC_FORMAT_LINE_PROFILER,
                       "load (lp_mod.py:8);lp_mod.py:11 12766924|"
                       "load (lp_mod.py:8);lp_mod.py:10 4743|load (lp_mod.py:8);lp_mod.py:9 1142|"
                       "load (lp_mod.py:8);lp_mod.py:12 102|"
                       "work (lp_mod.py:2);lp_mod.py:6 10204763|"
                       "work (lp_mod.py:2);lp_mod.py:5 762882|"
                       "work (lp_mod.py:2);lp_mod.py:4 500877|"
                       "work (lp_mod.py:2);lp_mod.py:7 2775|"
                       "work (lp_mod.py:2);lp_mod.py:3 896|",
                       "");
    }
}
END_TEST

START_TEST(text_of_line_profiler_that_is_odd_is_read_as_far_as_it_goes)
{
    struct imported got =
        import_text("Wrote profile results to x.lprof\nTimer unit: 1e-06 s\n\nTotal time: 5 s\n"
                    "File: train.py\nFunction: f at line x\n     3         1      5.0\n"
                    "Total time: 5 s\nFile: /a/b.py\nFunction: C.g at line 7\n"
                    "     8         2         5.0      2.5    100.0      return 3\n"
                    "     9                                             1 / 0\n");
    expect_profile(&got, LAC_FORMAT_LINE_PROFILER, "C.g (b.py:7);b.py:8 5000|", "");
}
END_TEST

/* -- what PyTorch pickles ---------------------------------------------------------------------- */

static double counter_at(const struct lac_model *model, const char *name, uint64_t index)
{
    const uint32_t track = find_track(model, LAC_TRACK_COUNTER, name);
    ck_assert_msg(track != LAC_NONE, "%s", name);
    ck_assert_uint_lt(index, model->tracks[track].count);
    return model->sample_value[model->tracks[track].first + index];
}

/* The counters end at what the segments hold: 12 MiB and 1 MiB allocated, 22 MiB reserved. */
START_TEST(a_memory_snapshot_becomes_a_profile_in_bytes_and_counters)
{
    struct imported got = import_seed("torch_memory");
    const struct lac_model *model = got.models[0];
    const double MiB = 1.048576;
    ck_assert_int_eq(model->info.format, LAC_FORMAT_TORCH_MEMORY);
    ck_assert(!model->info.has_no_time);
    ck_assert_str_eq(lac_model_str(model, model->info.profile_unit), "bytes");
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1700000000000000000));
    ck_assert_int_eq(model->info.duration_ns, 60000);
    ck_assert_double_eq_tol(counter_at(model, "GPU 0: allocated by PyTorch (MB)", 0), MiB, 1e-9);
    ck_assert_double_eq_tol(counter_at(model, "GPU 0: allocated by PyTorch (MB)", 2), 12 * MiB,
                            1e-9);
    ck_assert_double_eq_tol(counter_at(model, "GPU 0: allocated by PyTorch (MB)", 4), 13 * MiB,
                            1e-9);
    ck_assert_double_eq_tol(counter_at(model, "GPU 0: reserved by PyTorch (MB)", 0), 22 * MiB,
                            1e-9);
    ck_assert_uint_eq(report_count(model, "out_of_memory"), 1);
    ck_assert_str_eq(fold(model, LAC_FLAME_PROFILE),
                     "cached, not in use (large pool) 6291456|"
                     "allocated, no stack was recorded 1048576|"
                     "cached, not in use (small pool) 1048576|"
                     "main (train.py:40);step (adam.py:77) 4194304|"
                     "main (train.py:40);forward (model.py:12);conv2d (functional.py:9) 10485760|");
    imported_done(&got);
}
END_TEST

START_TEST(a_flight_recorder_dump_says_what_hangs)
{
    struct imported got = import_seed("nccl_trace_rank_3");
    const struct lac_model *model = got.models[0];
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(model->info.format, LAC_FORMAT_FLIGHT_RECORDER);
    ck_assert_uint_eq(model->slices.count, 4);
    ck_assert_uint_eq(report_count(model, "not_completed_0"), 1);
    ck_assert_uint_eq(report_count(model, "not_completed_1"), 0);
    ck_assert_str_eq(model->report[0].text,
                     "process group default_pg: number 61 has not completed: nccl:all_reduce "
                     "[4096, 1024] Float, started. Last called: 62");
    const uint64_t done = find_slice(model, "nccl:all_reduce [4096, 1024] Float");
    ck_assert_int_eq(model->slices.start_ns[done], 0);
    ck_assert_int_eq(model->slices.dur_ns[done], 2000000);
    const uint64_t stuck =
        find_slice(model, "nccl:all_reduce [4096, 1024] Float (started, not completed)");
    ck_assert_uint_ne(stuck, UINT64_MAX);
    imported_done(&got);
}
END_TEST

/** As JSON and as a pickle: a flame graph of nodes by module, each with what else is said of it. */
START_TEST(annotations_of_graphs_name_the_modules_of_nodes)
{
    static const char *const SEEDS[] = {"graph_notes", "graph_notes.json"};
    struct imported got = import_seed(SEEDS[_i]);
    const struct lac_model *model = got.models[0];
    char args[256];
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(model->info.format, LAC_FORMAT_GRAPH_NOTES);
    ck_assert(model->info.has_no_time);
    ck_assert_uint_eq(model->info.slice_count, 7);
    ck_assert_uint_eq(model->info.event_count, 7);
    ck_assert_str_eq(fold(model, LAC_FLAME_CPU),
                     "all_reduce 1|encoder.linear 1|inner \303\274 \"q\" \\ \n 1|"
                     "layers.0.attention.wq 1|layers.0.mlp 1|of another graph 1|residual_add 1|");
    const uint32_t track = find_track(model, LAC_TRACK_THREAD, "CUDA graph 9");
    ck_assert_uint_ne(track, LAC_NONE);
    ck_assert_uint_eq(model->tracks[track].count, 6);
    (void)lac_args_format(model, find_slice(model, "all_reduce"), args, sizeof(args));
    ck_assert_str_eq(args, "{\"graph node id\":38654705666,\"dtype\":\"float32\",\"Group size\":4,"
                           "\"Process Group Ranks\":[0,1,2,3],\"stream\":60}");
    imported_done(&got);
}
END_TEST

/** What is no annotation is left out, counted; members without end are cut, and values that share
 *  each other are not walked without end. */
START_TEST(odd_annotations_of_graphs_are_counted)
{
    static char text[1 << 17];
    struct imported got =
        import_text("{\"1\":[{\"name\":\"a\"}],\"x\":[],\"2\":7,\"-3\":\"b\","
                    "\"99999999999999999999\":\"c\",\"4\":[],\"5\":[7,{\"k\":[[[[1]]]]}]}");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(got.models[0]->info.slice_count, 2);
    ck_assert_uint_eq(report_count(got.models[0], "node_not_understood"), 4);
    ck_assert_uint_eq(report_count(got.models[0], "node_without_annotation"), 1);
    imported_done(&got);
    size_t used = (size_t)snprintf(text, sizeof(text), "{\"1\":{\"name\":\"a\"");
    for (int i = 0; i < 100; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, ",\"k%d\":\"%0600d\"", i, i);
    }
    (void)snprintf(text + used, sizeof(text) - used, "}}");
    got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(report_count(got.models[0], "too_many_members"), 37);
    ck_assert_uint_eq(report_count(got.models[0], "member_too_long"), 56);
    imported_done(&got);
    refuse("{\"1\":[]}", 8, "no annotated node");
}
END_TEST

START_TEST(hostile_pickles_are_refused_within_the_limits)
{
    static const char OTHER[] = "\x80\x02}q\x00X\x01\x00\x00\x00"
                                "aK\x01s.";
    refuse(OTHER, sizeof(OTHER) - 1, "a pickle of Python that is none of those");
    static const char CALLS[] = "\x80\x02"
                                "cos\nsystem\nX\x04\x00\x00\x00trueq\x00\x85R.";
    refuse(CALLS, sizeof(CALLS) - 1, "a pickle of Python that is none of those");
    /* an empty dump names the switch */
    static const char EMPTY[] = "\x80\x02}(X\x07\x00\x00\x00"
                                "entries]X\x07\x00\x00\x00version"
                                "X\x03\x00\x00\x00"
                                "2.4u.";
    refuse(EMPTY, sizeof(EMPTY) - 1, "TORCH_NCCL_TRACE_BUFFER_SIZE");
    static const char *const seeds[] = {"torch_memory", "nccl_trace_rank_3", "line_profiler"};
    for (size_t i = 0; i < 3; i++) {
        char path[256];
        size_t size = 0;
        (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/import/%s", seeds[i]);
        unsigned char *bytes = read_whole(path, &size);
        ck_assert_ptr_nonnull(bytes);
        for (size_t cut = 2; cut < size; cut += 7) {
            struct imported got = import_sized(bytes, cut);
            ck_assert_int_ne(got.status, LAC_OK);
            imported_done(&got);
        }
        free(bytes);
    }
}
END_TEST

/* 1,500 times the same segment with 1,500 times the same block. */
START_TEST(a_pickle_that_holds_one_list_very_often_ends_at_the_limit)
{
    enum { TIMES = 1500 };
    static unsigned char bytes[20000];
    size_t at = 0;
#define PUT(text)                                                                                  \
    do {                                                                                           \
        memcpy(bytes + at, (text), sizeof(text) - 1);                                              \
        at += sizeof(text) - 1;                                                                    \
    } while (0)
    PUT("\x80\x02](}(X\x06\x00\x00\x00"
        "blocks](}X\x04\x00\x00\x00sizeK\x01sq\x01");
    for (size_t i = 0; i < TIMES; i++) {
        PUT("h\x01");
    }
    PUT("euq\x02");
    for (size_t i = 0; i < TIMES; i++) {
        PUT("h\x02");
    }
    PUT("e.");
#undef PUT
    struct imported got = import_sized(bytes, at);
    ck_assert_int_eq(got.status, LAC_ERR_LIMIT);
    imported_done(&got);
}
END_TEST

/* -- sums by line and function, stacks of a moment ---------------------------------------------- */

/* Made after scalene's documented structure. */
START_TEST(scalene_splits_the_time_of_each_line)
{
    struct imported got = import_seed("scalene");
    expect_profile(&got, LAC_FORMAT_SCALENE,
                   "train.py;train.py:1;Python 20000000|"
                   "train.py;load (train.py:3);train.py:5;Python 800000000|"
                   "train.py;load (train.py:3);train.py:5;native code 200000000|"
                   "train.py;load (train.py:3);train.py:5;system, or waiting 100000000|"
                   "train.py;train (train.py:10);train.py:12;native code 480000000|"
                   "train.py;train (train.py:10);train.py:12;Python 400000000|",
                   "");
    static const char EMPTY[] = "{\"alloc_samples\":0,\"files\":{}}";
    refuse(EMPTY, sizeof(EMPTY) - 1, "no elapsed time");
}
END_TEST

/* Written by Python 3.11. */
START_TEST(a_printed_table_of_cprofile_is_read)
{
    struct imported got = import_seed("cprofile_text");
    ck_assert_uint_eq(report_count(got.models[0], "printed_without_callers"), 1);
    ck_assert_int_eq(got.models[0]->info.format, LAC_FORMAT_CPROFILE);
    ck_assert_ptr_nonnull(strstr(fold(got.models[0], LAC_FLAME_CPU), "<genexpr> (cp.py:4) "));
    ck_assert_ptr_nonnull(strstr(folded, "<built-in method builtins.sum> "));
    imported_done(&got);
    got = import_text("   9 function calls in 1 seconds\n\n"
                      "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
                      "     31/1    0.500    0.000    0.243    0.000 /a/b c/m.py:4(f)\n"
                      "        x    0.500\n        1    0.250    0.1    0.1    0.1 {method 'x'}\n");
    expect_profile(&got, LAC_FORMAT_CPROFILE, "f (m.py:4) 500000000|<method 'x'> 250000000|", "");
}
END_TEST

/* Made after py-spy's documented output. */
START_TEST(a_dump_of_py_spy_says_where_each_thread_stands)
{
    struct imported got = import_seed("py_spy_dump");
    ck_assert_uint_eq(got.models[0]->track_count, 3);
    ck_assert_str_eq(lac_model_str(got.models[0], got.models[0]->tracks[0].name),
                     "MainThread (active+gil)");
    expect_profile(&got, LAC_FORMAT_PYSPY_DUMP,
                   "wait (threading.py:320) 1|"
                   "<module> (train.py:99);train (train.py:40);forward (model.py:12) 1|"
                   "run (threading.py:982);wait (multiprocessing/connection.py:936);"
                   "select (selectors.py:415) 1|",
                   "threads");
}
END_TEST

/* -- perf stat --------------------------------------------------------------------------------- */

/* Written by perf 6.1, where the machine had no counters of the processor. */
START_TEST(perf_stat_becomes_counters)
{
    static const char *const totals[] = {"perf_stat_text", "perf_stat_csv"};
    for (size_t i = 0; i < 2; i++) {
        struct imported got = import_seed(totals[i]);
        const struct lac_model *model = got.models[0];
        ck_assert(lac_model_is_valid(model));
        ck_assert_int_eq(model->info.format, LAC_FORMAT_PERF_STAT);
        ck_assert_int_eq(model->info.t0_ns, INT64_C(1795408040000000000));
        ck_assert_uint_eq(report_count(model, "totals_of_the_run"), 1);
        ck_assert_double_eq(counter_at(model, "page-faults", 0), 26.0);
        ck_assert_double_eq(counter_at(model, "page-faults", 1), 26.0);
        ck_assert_double_gt(counter_at(model, "task-clock (msec)", 0), 0.6);
        imported_done(&got);
    }
    struct imported got = import_seed("perf_stat_interval");
    ck_assert_double_eq(counter_at(got.models[0], "page-faults", 0), 76.0);
    ck_assert_double_eq(counter_at(got.models[0], "page-faults", 1), 0.0);
    ck_assert_int_eq(got.models[0]->info.duration_ns, 351975330 - 102096513);
    imported_done(&got);
    got = import_seed("perf_stat_json");
    ck_assert_double_eq(counter_at(got.models[0], "context-switches", 0), 1.0);
    imported_done(&got);
    got = import_text("S0,8,1234567,,cycles,100,100.00,,\nS1,8,7,,cycles,100,100.00,,\n");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_double_eq(counter_at(got.models[0], "S0: cycles", 0), 1234567.0);
    imported_done(&got);
    static const char NONE[] = "\n Performance counter stats for 'x':\n\n   <not counted> cycles\n";
    refuse(NONE, sizeof(NONE) - 1, "no count in this output of perf stat");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_tools");
    TCase *tcase = tcase_create("profilers");
    tcase_add_test(tcase, a_profile_of_callgrind_becomes_stacks_of_its_callers);
    tcase_add_test(tcase, other_writers_of_its_format_are_read);
    tcase_add_test(tcase, hostile_profiles_of_callgrind_are_counted_or_refused);
    tcase_add_test(tcase, line_profiler_opens_as_pickle_and_as_text);
    tcase_add_test(tcase, text_of_line_profiler_that_is_odd_is_read_as_far_as_it_goes);
    tcase_add_test(tcase, a_memory_snapshot_becomes_a_profile_in_bytes_and_counters);
    tcase_add_test(tcase, a_flight_recorder_dump_says_what_hangs);
    tcase_add_loop_test(tcase, annotations_of_graphs_name_the_modules_of_nodes, 0, 2);
    tcase_add_test(tcase, odd_annotations_of_graphs_are_counted);
    tcase_add_test(tcase, hostile_pickles_are_refused_within_the_limits);
    tcase_add_test(tcase, a_pickle_that_holds_one_list_very_often_ends_at_the_limit);
    tcase_add_test(tcase, scalene_splits_the_time_of_each_line);
    tcase_add_test(tcase, a_printed_table_of_cprofile_is_read);
    tcase_add_test(tcase, a_dump_of_py_spy_says_where_each_thread_stands);
    tcase_add_test(tcase, perf_stat_becomes_counters);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
