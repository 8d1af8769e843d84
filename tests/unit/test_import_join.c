/* Several files as one trace: clocks, counters, profiles; what cannot be joined; archives cut and
 * damaged anywhere. */

#include "analysis/flame/flame.h"
#include "analysis/import/import_join.h"
#include "analysis/model/args.h"
#include "collector/base/count_of.h"
#include "collector/base/tar.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/nsys_file.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 2025-09-08 09:26:55 UTC and 100 ms of work. */
#define T0_S "1757323615"
static const char TRACE[] =
    "{\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":7,"
    "\"ts\":" T0_S "000000.000,\"dur\":10,\"args\":{\"correlation\":1}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,"
    "\"ts\":" T0_S "000100.000,\"dur\":9999900,\"args\":{\"device\":0,\"stream\":7,"
    "\"correlation\":1}}]}";

static const char LOG[] = "timestamp, index, utilization.gpu [%], power.draw [W]\n"
                          "2025-09-08T09:26:50+00:00, 0, 1 %, 50.0 W\n"
                          "2025-09-08T09:26:54+00:00, 0, 2 %, 60.0 W\n"
                          "2025-09-08T09:26:58+00:00, 0, 3 %, 70.0 W\n"
                          "2025-09-08T09:27:04+00:00, 0, 4 %, 80.0 W\n"
                          "2025-09-08T09:27:14+00:00, 0, 5 %, 90.0 W\n";

/* The same without a zone, two hours east, longer than the trace by less than a quarter. */
static const char LOCAL_LOG[] = "timestamp, index, utilization.gpu [%], power.draw [W]\n"
                                "2025/09/08 11:26:50.000, 0, 1 %, 50.0 W\n"
                                "2025/09/08 11:26:58.000, 0, 3 %, 70.0 W\n"
                                "2025/09/08 11:27:14.000, 0, 5 %, 90.0 W\n";

static const char DMON[] = "# gpu   pwr gtemp\n# Idx     W     C\n    0    70    41\n"
                           "    0    71    42\n    0    72    43\n";

static const char PROFILE[] = "main;train;step 100\nmain;load 30\n";

struct tar {
    uint8_t bytes[1 << 16];
    size_t size;
};

static void add(struct tar *tar, const char *name, const void *bytes, size_t size)
{
    lac_tar_header_make(tar->bytes + tar->size, name, '0', size);
    tar->size += LAC_TAR_BLOCK_BYTES;
    memcpy(tar->bytes + tar->size, bytes, size);
    tar->size += size;
    memset(tar->bytes + tar->size, 0, (size_t)lac_tar_padding(size));
    tar->size += (size_t)lac_tar_padding(size);
}

struct file {
    const char *name;
    const char *text;
    const char *offset; /* NULL: by its clock */
};

static struct tar tar_of(const struct file *files, uint32_t count)
{
    struct tar tar = {.size = 0};
    struct lac_join_entry entries[8] = {{0}};
    char list[LAC_JOIN_TEXT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(entries[i].name, sizeof(entries[i].name), "%s", files[i].name);
        entries[i].has_offset = files[i].offset != NULL;
        entries[i].offset_ns = files[i].offset != NULL ? strtoll(files[i].offset, NULL, 10) : 0;
    }
    size_t size = lac_join_list_write(entries, count, list, sizeof(list));
    ck_assert_uint_gt(size, 0);
    add(&tar, LAC_JOIN_MEMBER_NAME, list, size);
    for (uint32_t i = 0; i < count; i++) {
        add(&tar, files[i].name, files[i].text, strlen(files[i].text));
    }
    memset(tar.bytes + tar.size, 0, 1024);
    tar.size += 1024;
    return tar;
}

static struct imported join(const struct file *files, uint32_t count)
{
    struct tar tar = tar_of(files, count);
    return import_sized(tar.bytes, tar.size);
}

static const struct lac_model *joined(const struct imported *imported)
{
    ck_assert_msg(imported->status == LAC_OK, "%s", imported->error.message);
    ck_assert_uint_eq(imported->count, 1);
    ck_assert(lac_model_is_valid(imported->models[0]));
    return imported->models[0];
}

static void check_samples(const struct lac_model *model, const char *name, const int64_t *at_ms,
                          const double *values, uint64_t count)
{
    uint32_t t = find_track(model, LAC_TRACK_COUNTER, name);
    ck_assert_uint_ne(t, LAC_NONE);
    const struct lac_track *track = &model->tracks[t];
    ck_assert_uint_eq(track->count, count);
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_int_eq(model->sample_ts_ns[track->first + i], at_ms[i] * 1000000);
        ck_assert_double_eq_tol(model->sample_value[track->first + i], values[i], 1e-9);
    }
}

START_TEST(log_lies_beside_the_trace)
{
    const struct file files[] = {{"t.json", TRACE, NULL}, {"smi.csv", LOG, NULL}};
    const int64_t at[] = {0, 3000, 9000};
    const double power[] = {60, 70, 80};
    struct imported imported = join(files, 2);
    const struct lac_model *model = joined(&imported);
    check_samples(model, "GPU 0: power (W)", at, power, 3);
    ck_assert_int_eq(model->info.duration_ns, INT64_C(10000000000));
    ck_assert_uint_eq(model->slices.count, 2);
    ck_assert_uint_eq(model->slices.link[0], 1);
    ck_assert_str_eq(lac_model_str(model, model->info.name), "t");
    imported_done(&imported);
}
END_TEST

/* Whichever comes first: the trace is what holds work of a GPU. */
START_TEST(order_of_files_does_not_matter)
{
    const struct file files[] = {{"smi.csv", LOG, NULL}, {"t.json", TRACE, NULL}};
    const int64_t at[] = {0, 3000, 9000};
    const double use[] = {2, 3, 4};
    struct imported imported = join(files, 2);
    check_samples(joined(&imported), "GPU 0: GPU utilization (%)", at, use, 3);
    imported_done(&imported);
}
END_TEST

START_TEST(zone_is_found_where_one_fits)
{
    const struct file files[] = {{"t.json", TRACE, NULL}, {"smi.csv", LOCAL_LOG, NULL}};
    const int64_t at[] = {0, 3000};
    const double power[] = {50, 70};
    struct imported imported = join(files, 2);
    const struct lac_model *model = joined(&imported);
    check_samples(model, "GPU 0: power (W)", at, power, 2);
    ck_assert_uint_eq(report_count(model, "joined_zone"), 1);
    imported_done(&imported);
}
END_TEST

START_TEST(offset_is_from_the_start_or_added)
{
    const struct file by_start[] = {{"t.json", TRACE, NULL}, {"d.txt", DMON, "2500000000"}};
    const struct file added[] = {{"t.json", TRACE, NULL}, {"smi.csv", LOG, "1000000000"}};
    const int64_t at[] = {2500, 3500, 4500};
    const double power[] = {70, 71, 72};
    const int64_t later[] = {0, 4000, 10000};
    const double moved[] = {60, 70, 80};
    struct imported imported = join(by_start, 2);
    check_samples(joined(&imported), "GPU 0: power (W)", at, power, 3);
    imported_done(&imported);
    imported = join(added, 2);
    check_samples(joined(&imported), "GPU 0: power (W)", later, moved, 3);
    imported_done(&imported);
}
END_TEST

START_TEST(profile_is_a_flame_graph_of_its_own)
{
    const struct file files[] = {{"t.json", TRACE, NULL}, {"p.folded", PROFILE, NULL}};
    struct lac_flame_options options = {.metric = LAC_FLAME_PROFILE, .by = LAC_FLAME_BY_OP};
    struct lac_flame *flame = NULL;
    struct imported imported = join(files, 2);
    const struct lac_model *model = joined(&imported);
    ck_assert_int_eq(model->info.duration_ns, INT64_C(10000000000));
    ck_assert_uint_eq(model->info.profile_count, 1);
    ck_assert(!model->info.has_no_time);
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(flame->nodes[0].value_ns, 130 * model->info.profile_scale);
    ck_assert_uint_eq(flame->nodes[0].child_count, 1);
    ck_assert_str_eq(lac_model_str(model, flame->nodes[flame->nodes[0].first_child].name), "main");
    lac_flame_destroy(flame);
    options.metric = LAC_FLAME_CPU;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        ck_assert_str_ne(lac_model_str(model, flame->nodes[i].name), "main");
    }
    lac_flame_destroy(flame);
    imported_done(&imported);
}
END_TEST

START_TEST(what_cannot_be_joined_is_said)
{
    static const char FAR[] = "timestamp, index, power.draw [W]\n"
                              "2026-09-08T09:26:50+00:00, 0, 50.0 W\n";
    static const struct {
        struct file files[2];
        const char *said;
    } CASES[] = {
        {{{"t.json", TRACE, NULL}, {"d.txt", DMON, NULL}}, "--offset SECONDS when d.txt begins"},
        {{{"t.json", TRACE, NULL}, {"far.csv", FAR, NULL}}, "far.csv begins after t.json by"},
        {{{"t.json", TRACE, NULL}, {"d.txt", DMON, "99000000000"}}, "begins after"},
        {{{"a.json", TRACE, NULL}, {"b.json", TRACE, NULL}}, "both hold work of a GPU"},
        {{{"t.json", TRACE, NULL}, {"x.bin", "none of these", NULL}}, "x.bin: unknown format"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(CASES); i++) {
        struct imported imported = join(CASES[i].files, 2);
        ck_assert_int_ne(imported.status, LAC_OK);
        ck_assert_uint_eq(imported.count, 0);
        ck_assert_msg(strstr(imported.error.message, CASES[i].said) != NULL, "%s",
                      imported.error.message);
        imported_done(&imported);
    }
}
END_TEST

/* Cut at every block, and lists that say what they should not. */
START_TEST(damaged_archives_are_errors)
{
    const struct file files[] = {{"t.json", TRACE, NULL}, {"smi.csv", LOG, NULL}};
    static const char *const LISTS[] = {
        "lacuna-join 1\n",
        "lacuna-join 1\n- only\n",
        "lacuna-join 1\n- a\n- b",
        "lacuna-join 1\n- a\n12x b\n",
        "lacuna-join 1\n- a\n99999999999999999999 b\n",
        "lacuna-join 1\n- a\n- \n",
        "lacuna-join 1\n\n\n",
    };
    struct tar tar = tar_of(files, 2);
    for (size_t size = 512; size + 1024 < tar.size; size += 512) {
        struct imported imported = import_sized(tar.bytes, size);
        ck_assert(imported.status != LAC_OK || lac_model_is_valid(imported.models[0]));
        imported_done(&imported);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(LISTS); i++) {
        struct tar bad = {.size = 0};
        add(&bad, LAC_JOIN_MEMBER_NAME, LISTS[i], strlen(LISTS[i]));
        add(&bad, "a", TRACE, strlen(TRACE));
        add(&bad, "b", LOG, strlen(LOG));
        struct imported imported = import_sized(bad.bytes, bad.size);
        ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
        imported_done(&imported);
    }
}
END_TEST

/* SQLite seeks in its file: in an archive it is laid out in one without a name. */
START_TEST(database_in_the_archive_is_read)
{
    struct nsys_file made = nsys_file_begin();
    nsys_file_tables(&made);
    nsys_file_sql(&made, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,contextId,"
                         "streamId,correlationId,globalPid,demangledName,shortName) "
                         "VALUES(3000,4000000000,0,1,7,1,16777216,1,2)");
    nsys_file_done(&made);
    size_t size = 0;
    unsigned char *bytes = read_whole(made.path, &size);
    ck_assert_ptr_nonnull(bytes);
    static const char LIST[] = "lacuna-join 1\n- report.sqlite\n1000000000 d.txt\n";
    struct tar tar = {.size = 0};
    ck_assert_uint_lt(size, sizeof(tar.bytes) / 2);
    add(&tar, LAC_JOIN_MEMBER_NAME, LIST, strlen(LIST));
    add(&tar, "1", bytes, size);
    add(&tar, "2", DMON, strlen(DMON));
    const int64_t at[] = {1000, 2000, 3000};
    const double power[] = {70, 71, 72};
    struct imported imported = import_sized(tar.bytes, tar.size);
    const struct lac_model *model = joined(&imported);
    check_samples(model, "GPU 0: power (W)", at, power, 3);
    ck_assert_uint_ne(find_slice(model, "void gemm<float>(int)"), UINT64_MAX);
    imported_done(&imported);
    free(bytes);
    (void)unlink(made.path);
}
END_TEST

/* -- what Nsight Compute measured --------------------------------------------------------------- */

#define KERNEL(name, stream, at_us, corr)                                                          \
    ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":" stream            \
    ",\"ts\":" T0_S at_us ",\"dur\":10,\"args\":{\"device\":0,\"stream\":" stream                  \
    ",\"correlation\":" corr ",\"grid\":[4,1,1],\"block\":[32,1,1]}}"

static const char KERNELS[] =
    "{\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":7,"
    "\"ts\":" T0_S "000000.000,\"dur\":10,\"args\":{\"correlation\":1}}" KERNEL(
        "void add<float>(float*)", "7", "000200.000", "2")
        KERNEL("void add<float>(float*)", "9", "000300.000", "3")
            KERNEL("gemm", "7", "000400.000", "4")
                KERNEL("void add<float>(float*)", "7", "000500.000", "5")
                    KERNEL("void (anonymous namespace)::mul<int>(int)", "7", "000600.000", "6")
                        KERNEL("void two<int>(int)", "7", "000700.000", "7")
                            KERNEL("void two<long>(long)", "7", "000800.000", "8") "]}";

#define LAUNCH(id, name, bytes)                                                                    \
    "\"" id "\",\"1\",\"python\",\"h\",\"" name                                                    \
    "\",\"1\",\"7\",\"(32, 1, 1)\",\"(4, 1, 1)\",\"0\",\"7.0\",\"" bytes "\",\"10\"\n"

static const char MEASURES[] =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\","
    "\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"dram__bytes_read.sum\","
    "\"gpu__time_duration.sum\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"usecond\"\n" LAUNCH(
        "0", "void add<float>(float*)", "1000") LAUNCH("1", "gemm", "2000")
        LAUNCH("2", "void add<float>(float*)", "3000") LAUNCH("3", "scale", "4000")
            LAUNCH("4", "(anonymous namespace)::mul", "5000") LAUNCH("5", "two", "6000")
                LAUNCH("6", "gemm", "7000");

/** Arguments of the n-th slice of a name on streams, by time. */
static const char *nth_args(const struct lac_model *model, const char *name, unsigned n)
{
    static char text[512];
    int64_t after_ns = -1;
    uint64_t found = UINT64_MAX;
    for (unsigned i = 0; i <= n; i++) {
        found = UINT64_MAX;
        for (uint32_t t = 0; t < model->track_count; t++) {
            const struct lac_track *track = &model->tracks[t];
            for (uint64_t s = track->first;
                 track->kind == LAC_TRACK_STREAM && s < track->first + track->count; s++) {
                if (strcmp(lac_model_str(model, model->slices.name[s]), name) == 0 &&
                    model->slices.start_ns[s] > after_ns &&
                    (found == UINT64_MAX ||
                     model->slices.start_ns[s] < model->slices.start_ns[found])) {
                    found = s;
                }
            }
        }
        ck_assert_msg(found != UINT64_MAX, "%s %u", name, n);
        after_ns = model->slices.start_ns[found];
    }
    ck_assert_uint_lt(lac_args_format(model, found, text, sizeof(text)), sizeof(text));
    return text;
}

/* By name and order, over all streams; what has no kernel of its name is told. */
START_TEST(measures_stand_at_the_kernels)
{
    static const char bytes[] = "\"memory bytes per second\":";
    for (unsigned turn = 0; turn < 2; turn++) {
        const struct file files[2][2] = {{{"t.json", KERNELS, NULL}, {"n.csv", MEASURES, NULL}},
                                         {{"n.csv", MEASURES, NULL}, {"t.json", KERNELS, NULL}}};
        struct imported imported = join(files[turn], 2);
        const struct lac_model *model = joined(&imported);
        const struct {
            const char *name;
            unsigned n;
            const char *rate; /* NULL: none */
        } expected[] = {
            {"void add<float>(float*)", 0, "100000000"},
            {"void add<float>(float*)", 1, "300000000"},
            {"void add<float>(float*)", 2, NULL},
            {"gemm", 0, "200000000"},
            {"void (anonymous namespace)::mul<int>(int)", 0, "500000000"},
            {"void two<int>(int)", 0, NULL},
            {"void two<long>(long)", 0, NULL},
        };
        for (size_t i = 0; i < LAC_COUNT_OF(expected); i++) {
            const char *args = nth_args(model, expected[i].name, expected[i].n);
            const char *at = strstr(args, bytes);
            ck_assert_msg((at != NULL) == (expected[i].rate != NULL), "%s: %s", expected[i].name,
                          args);
            ck_assert_ptr_nonnull(strstr(args, "\"grid\":[4,1,1]"));
            if (at != NULL) {
                ck_assert_msg(strncmp(at + sizeof(bytes) - 1, expected[i].rate,
                                      strlen(expected[i].rate)) == 0,
                              "%s: %s", expected[i].name, args);
            }
        }
        ck_assert_uint_eq(report_count(model, "joined_measures"), 4);
        ck_assert_uint_eq(report_count(model, "measures_without_kernel"), 3);
        ck_assert_uint_eq(model->info.profile_count, 1);
        imported_done(&imported);
    }
}
END_TEST

#define NODE(name, at_us, node, more)                                                              \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name                                            \
    "\",\"pid\":0,\"tid\":7,\"ts\":" T0_S at_us                                                    \
    ",\"dur\":10,\"args\":{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node id\":" node    \
    ",\"grid\":[4,1,1]" more "}}"

/* Two launches of graph 9; a node 1 of graph 8. */
static const char GRAPHS[] =
    "{\"traceEvents\":[" NODE("gemm", "000100.000", "38654705665", "") "," NODE(
        "add", "000110.000", "38654705666",
        ",\"dtype\":\"bfloat16\"") "," NODE("gemm", "000200.000", "38654705665",
                                            "") "," NODE("other", "000300.000", "34359738369",
                                                         "") "," NODE("eager", "000400.000", "0",
                                                                      "") "]}";
static const char NOTES[] =
    "{\"38654705665\":[{\"module_fqn\":\"layers.0.wq\",\"stream\":61}],\"38654705666\":[{\"name\":"
    "\"add\",\"dtype\":\"float32\",\"Group size\":4,\"says "
    "\\\"x\\\"\":null}],\"38654705699\":\"lost\"}";

/** Each kernel gets the annotation of its node, whichever launch it is of; what was recorded stays. */
START_TEST(annotations_of_graphs_stand_at_the_kernels)
{
    static const struct {
        const char *name;
        unsigned n;
        const char *module, *args;
    } expected[] = {
        {"gemm", 0, "layers.0.wq",
         "{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node "
         "id\":38654705665,\"grid\":[4,1,1]}"},
        {"gemm", 1, "layers.0.wq",
         "{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node "
         "id\":38654705665,\"grid\":[4,1,1]}"},
        {"add", 0, "add",
         "{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node "
         "id\":38654705666,\"grid\":[4,1,1],"
         "\"dtype\":\"bfloat16\",\"Group size\":4,\"says \\\"x\\\"\":null}"},
        {"other", 0, "",
         "{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node "
         "id\":34359738369,\"grid\":[4,1,1]}"},
        {"eager", 0, "",
         "{\"device\":0,\"stream\":7,\"correlation\":1,\"graph node id\":0,\"grid\":[4,1,1]}"},
    };
    for (unsigned turn = 0; turn < 2; turn++) {
        const struct file files[2][2] = {{{"t.json", GRAPHS, NULL}, {"n.json", NOTES, NULL}},
                                         {{"n.json", NOTES, NULL}, {"t.json", GRAPHS, NULL}}};
        struct imported imported = join(files[turn], 2);
        const struct lac_model *model = joined(&imported);
        ck_assert_uint_eq(model->slices.count, 5);
        for (size_t i = 0; i < LAC_COUNT_OF(expected); i++) {
            uint64_t slice = 0;
            ck_assert_str_eq(nth_args(model, expected[i].name, expected[i].n), expected[i].args);
            while (strcmp(lac_model_str(model, model->slices.name[slice]), expected[i].name) != 0) {
                slice++;
            }
            ck_assert_str_eq(
                lac_model_str(model, model->kernel_configs[model->slices.detail[slice]].module),
                expected[i].module);
        }
        ck_assert_uint_eq(report_count(model, "joined_annotations"), 3);
        ck_assert_uint_eq(report_count(model, "annotations_without_kernel"), 1);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(annotations_of_other_graphs_are_refused)
{
    static const char OTHERS[] = "{\"21474836481\":\"of graph 5\"}";
    const struct file files[2][2] = {{{"t.json", GRAPHS, NULL}, {"n.json", OTHERS, NULL}},
                                     {{"t.json", KERNELS, NULL}, {"n.json", NOTES, NULL}}};
    static const char *const sentences[] = {"no kernel of t.json is a node that n.json annotates",
                                            "t.json names no node of a CUDA graph"};
    for (int i = 0; i < 2; i++) {
        struct imported imported = join(files[i], 2);
        ck_assert_int_eq(imported.status, LAC_ERR_MISUSE);
        ck_assert_ptr_nonnull(strstr(imported.error.message, sentences[i]));
        imported_done(&imported);
    }
}
END_TEST

#define GRAPH_CALL(pid, at_us, corr)                                                               \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaGraphLaunch\",\"pid\":" pid             \
    ",\"tid\":" pid ",\"ts\":" T0_S at_us ",\"dur\":2,\"args\":{\"correlation\":" corr "}}"
#define GRAPH_KERNEL(name, stream, at_us, corr, node)                                              \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":" stream             \
    ",\"ts\":" T0_S at_us ",\"dur\":10,\"args\":{\"device\":0,\"stream\":" stream                  \
    ",\"correlation\":" corr ",\"graph node id\":" node ",\"grid\":[4,1,1]}}"
/* Graph 9 of process 11 and graph 9 of process 12; what its second node runs there. */
#define TWO(second)                                                                                                    \
    "{\"traceEvents\":[" GRAPH_CALL("11", "000010.000", "1") "," GRAPH_CALL("12", "000020.000", "2") "," GRAPH_KERNEL( \
        "gemm", "7", "000100.000", "1",                                                                                \
        "38654705665") "," GRAPH_KERNEL("add", "7", "000120.000", "1",                                                 \
                                        "38654705666") "," GRAPH_KERNEL("gemm", "8", "000100.000",                     \
                                                                        "2",                                           \
                                                                        "38654705665") "," GRAPH_KERNEL(second,        \
                                                                                                        "8",           \
                                                                                                        "000120.000",  \
                                                                                                        "2",           \
                                                                                                        "38654705666") "]}"

static const char *module_on(const struct lac_model *model, const char *kernel, int64_t stream)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        const struct lac_track *const track = &model->tracks[lac_model_track_of(model, i)];
        if (track->kind == LAC_TRACK_STREAM && track->tid == stream &&
            strcmp(lac_model_str(model, model->slices.name[i]), kernel) == 0) {
            return lac_model_str(model, model->kernel_configs[model->slices.detail[i]].module);
        }
    }
    ck_abort_msg("no %s on %lld", kernel, (long long)stream);
}

/* Every process counts its graphs from the first: the same id, another node. */
START_TEST(annotations_are_those_of_their_process)
{
    static const char SAME[] = TWO("add");
    static const char OTHER[] = TWO("softmax");
    static const char WHOSE[] =
        "{\"38654705665\":\"q\",\"38654705666\":[{\"name\":\"k\",\"n\":1}]}";
    static const struct {
        const char *trace, *notes_name, *second;
        const char *modules[4]; /* of both kernels in process 11, then in 12; NULL: refused */
        unsigned told;
    } CASES[] = {{SAME, "n.json", "add", {"q", "k", "q", "k"}, 2},
                 {OTHER, "n.json", "softmax", {NULL}, 0},
                 {OTHER, "n112.json", "softmax", {NULL}, 0},
                 {OTHER, "notes_12.json", "softmax", {"", "", "q", "k"}, 0},
                 {OTHER, "rank0.pid11.json", "softmax", {"q", "k", "", ""}, 0},
                 {SAME, "12.json", "add", {"", "", "q", "k"}, 0}};
    for (size_t i = 0; i < LAC_COUNT_OF(CASES); i++) {
        const struct file files[] = {{"t.json", CASES[i].trace, NULL},
                                     {CASES[i].notes_name, WHOSE, NULL}};
        struct imported imported = join(files, 2);
        if (CASES[i].modules[0] == NULL) {
            ck_assert_int_eq(imported.status, LAC_ERR_MISUSE);
            ck_assert_ptr_nonnull(strstr(imported.error.message, "2 processes of t.json ran"));
            ck_assert_ptr_nonnull(strstr(imported.error.message, "notes_PID.json"));
        } else {
            const struct lac_model *model = joined(&imported);
            ck_assert(lac_model_is_valid(model));
            for (int process = 0; process < 2; process++) {
                const char *const second = process == 0 ? "add" : CASES[i].second;
                ck_assert_str_eq(module_on(model, "gemm", 7 + process),
                                 CASES[i].modules[2 * process]);
                ck_assert_str_eq(module_on(model, second, 7 + process),
                                 CASES[i].modules[2 * process + 1]);
            }
            ck_assert_uint_eq(report_count(model, "annotations_of_processes"), CASES[i].told);
            ck_assert_uint_eq(report_count(model, "joined_annotations"),
                              CASES[i].told == 2 ? 4 : 2);
        }
        imported_done(&imported);
    }
}
END_TEST

#define GRAPH_COPY(stream, at_us, corr, node)                                                      \
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoD (Device -> "                      \
    "Device)\",\"pid\":0,\"tid\":" stream ",\"ts\":" T0_S at_us                                    \
    ",\"dur\":10,\"args\":{\"device\":0,\"stream\":" stream ",\"correlation\":" corr               \
    ",\"bytes\":64,\"graph node id\":" node "}}"

static const struct lac_copy *copy_on(const struct lac_model *model, int64_t stream)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        const struct lac_track *const track = &model->tracks[lac_model_track_of(model, i)];
        if (track->tid == stream && model->slices.kind[i] == LAC_SLICE_COPY) {
            return &model->copies[model->slices.detail[i]];
        }
    }
    ck_abort_msg("no copy on %lld", (long long)stream);
}

/* A copy is a node as a kernel is. Both processes' copies are alike, and have one row until the
 * annotations of one of them come. */
START_TEST(annotations_of_graphs_stand_at_the_copies)
{
    static const char COPIES[] =
        "{\"traceEvents\":[" GRAPH_CALL("11", "000010.000", "1") "," GRAPH_CALL(
            "12", "000020.000",
            "2") "," GRAPH_COPY("7", "000100.000", "1",
                                "38654705665") "," GRAPH_COPY("8", "000130.000", "2",
                                                              "38654705665") "]}";
    static const char WHOSE[] = "{\"38654705665\":[{\"name\":\"cache\",\"n\":1}]}";
    static const char *const NAMES[] = {"n.json", "n_12.json"};
    for (int i = 0; i < 2; i++) {
        const struct file files[] = {{"t.json", COPIES, NULL}, {NAMES[i], WHOSE, NULL}};
        struct imported imported = join(files, 2);
        const struct lac_model *model = joined(&imported);
        ck_assert(lac_model_is_valid(model));
        ck_assert_uint_eq(copy_on(model, 7)->graph_node, UINT64_C(38654705665));
        ck_assert_uint_eq(copy_on(model, 8)->graph_node, UINT64_C(38654705665));
        ck_assert_str_eq(lac_model_str(model, copy_on(model, 7)->module), i == 0 ? "cache" : "");
        ck_assert_str_eq(lac_model_str(model, copy_on(model, 8)->module), "cache");
        ck_assert_uint_eq(report_count(model, "joined_annotations"), i == 0 ? 2 : 1);
        ck_assert_str_eq(nth_args(model, "Memcpy DtoD (Device -> Device)", 1),
                         "{\"device\":0,\"stream\":8,\"correlation\":2,\"bytes\":64,\"graph node "
                         "id\":38654705665,\"n\":1}");
        imported_done(&imported);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_join");
    TCase *all = tcase_create("all");
    tcase_add_test(all, log_lies_beside_the_trace);
    tcase_add_test(all, order_of_files_does_not_matter);
    tcase_add_test(all, zone_is_found_where_one_fits);
    tcase_add_test(all, offset_is_from_the_start_or_added);
    tcase_add_test(all, profile_is_a_flame_graph_of_its_own);
    tcase_add_test(all, what_cannot_be_joined_is_said);
    tcase_add_test(all, damaged_archives_are_errors);
    tcase_add_test(all, database_in_the_archive_is_read);
    tcase_add_test(all, measures_stand_at_the_kernels);
    tcase_add_test(all, annotations_of_graphs_stand_at_the_kernels);
    tcase_add_test(all, annotations_of_other_graphs_are_refused);
    tcase_add_test(all, annotations_are_those_of_their_process);
    tcase_add_test(all, annotations_of_graphs_stand_at_the_copies);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
