/* What events of each phase and dialect become in the model. */

#include "analysis/import/chrome/chrome.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/expect_copy.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_model *model_of(const char *text)
{
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.count, 1);
    ck_assert(lac_model_is_valid(imported.models[0]));
    return imported.models[0];
}

static void expect_slice(const struct lac_model *model, const char *name, enum lac_slice_kind kind,
                         int64_t start_ns, int64_t dur_ns)
{
    uint64_t slice = find_slice(model, name);
    ck_assert_msg(slice != UINT64_MAX, "no slice %s", name);
    ck_assert_int_eq(model->slices.kind[slice], kind);
    ck_assert_int_eq(model->slices.start_ns[slice], start_ns);
    ck_assert_int_eq(model->slices.dur_ns[slice], dur_ns);
}

static const struct lac_track *track_of(const struct lac_model *model, const char *name)
{
    return &model->tracks[lac_model_track_of(model, find_slice(model, name))];
}

#define X(cat, name, pid, tid, ts, dur, args)                                                      \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid         \
    ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}}"

START_TEST(keys_are_known_by_their_whole_text)
{
    static const char *const varies[] = {"batch",
                                         "Bytes",
                                         "Ev Idx",
                                         "cpu_ns",
                                         "Python id",
                                         "correlation",
                                         "External id",
                                         "external id",
                                         "Sequence number",
                                         "Total Allocated",
                                         "Python module id",
                                         "Python parent id",
                                         "Record function id",
                                         "wait_on_cuda_event_id"};
    static const char *const repeats[] = {
        "cbid",          "device",        "stream",
        "Device",        "context",       "warps per SM",
        "blocks per SM", "shared memory", "est. achieved occupancy %"};
    static const char unknown[] = "correlatiom Bytez device and more than all";
    for (size_t i = 0; i < LAC_COUNT_OF(varies); i++) {
        ck_assert_int_eq(lac_chrome_key_class((const uint8_t *)varies[i], strlen(varies[i])),
                         LAC_KEY_VARIES);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(repeats); i++) {
        ck_assert_int_eq(lac_chrome_key_class((const uint8_t *)repeats[i], strlen(repeats[i])),
                         LAC_KEY_REPEATS);
    }
    for (size_t length = 0; length < sizeof(unknown); length++) {
        ck_assert_int_eq(lac_chrome_key_class((const uint8_t *)unknown, length), LAC_KEY_BY_LENGTH);
    }
}
END_TEST

START_TEST(kineto_categories_of_2021_and_of_today_are_the_same_kinds)
{
    static const char *const cats[][12] = {
        {"Operator", "Runtime", "Kernel", "Memcpy", "Memset"},
        {"cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"},
        {"CPU_OP", "cuda_driver", "KERNEL", "GPU_MEMCPY", "MEMSET"}};
    static const enum lac_slice_kind kinds[] = {LAC_SLICE_OP, LAC_SLICE_API, LAC_SLICE_KERNEL,
                                                LAC_SLICE_COPY, LAC_SLICE_MEMSET};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 5; j++) {
            char text[300];
            snprintf(text, sizeof(text),
                     "[{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"n\",\"pid\":0,\"tid\":7,\"ts\":1,"
                     "\"dur\":2}]",
                     cats[i][j]);
            struct lac_model *model = model_of(text);
            ck_assert_int_eq(model->slices.kind[0], kinds[j]);
            ck_assert_int_eq(model->info.format, LAC_FORMAT_KINETO);
            lac_model_destroy(model);
        }
}
END_TEST

START_TEST(a_launch_is_bound_to_its_kernel_and_configuration)
{
    struct lac_model *model = model_of(
        "{\"baseTimeNanoseconds\":1700000000000000000,\"deviceProperties\":[{\"id\":0,\"name\":"
        "\"H200\","
        "\"computeMajor\":9,\"computeMinor\":0,\"numSms\":132,\"totalGlobalMem\":150000000000}]"
        ","
        "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,\"world_size\":8},\"host_name\":"
        "\"n1\","
        "\"traceEvents\":[" X(
            "cuda_runtime", "cudaLaunchKernel", "50", "51", "100.001", "4.5",
            "\"cbid\":211,\"correlation\":123456") "," X("kernel", "gemm", "0", "7", "110", "20",
                                                         "\"queued\":0,\"device\":0,"
                                                         "\"context\":1,\"stream\":7,"
                                                         "\"correlation\":123456,"
                                                         "\"registers per "
                                                         "thread\":38,\"shared "
                                                         "memory\":49152,\"blocks per "
                                                         "SM\":0.625,"
                                                         "\"warps per "
                                                         "SM\":5.0,\"grid\":[50,2,1],"
                                                         "\"block\":[256,1,1],"
                                                         "\"est. achieved occupancy "
                                                         "%\":8") "," X("kernel", "gemm", "0", "7",
                                                                        "140", "20",
                                                                        "\"queued\":0,"
                                                                        "\"device\":0,"
                                                                        "\"context\":1,"
                                                                        "\"stream\":7,"
                                                                        "\"correlation\""
                                                                        ":123457,"
                                                                        "\"registers "
                                                                        "per "
                                                                        "thread\":38,"
                                                                        "\"shared "
                                                                        "memory\":49152,"
                                                                        "\"blocks per "
                                                                        "SM\":0.625,"
                                                                        "\"warps per "
                                                                        "SM\":5.0,"
                                                                        "\"grid\":[50,2,"
                                                                        "1],\"block\":["
                                                                        "256,1,1],"
                                                                        "\"est. "
                                                                        "achieved "
                                                                        "occupancy "
                                                                        "%\":8") "]}");
    uint64_t launch = find_slice(model, "cudaLaunchKernel"), kernel = find_slice(model, "gemm");
    ck_assert_uint_eq(model->slices.link[launch], kernel);
    ck_assert_uint_eq(model->slices.link[kernel], launch);
    ck_assert_int_eq(model->info.t0_ns, 1700000000000100001);
    expect_slice(model, "gemm", LAC_SLICE_KERNEL, 9999, 20000);
    ck_assert_uint_eq(model->kernel_config_count, 1);
    const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[kernel]];
    ck_assert_uint_eq(config->grid[0], 50);
    ck_assert_uint_eq(config->grid[1], 2);
    ck_assert_uint_eq(config->block[0], 256);
    ck_assert_uint_eq(config->registers_per_thread, 38);
    ck_assert_uint_eq(config->shared_memory_bytes, 49152);
    ck_assert(config->occupancy_pct > 7.99f && config->occupancy_pct < 8.01f);
    ck_assert(config->blocks_per_sm > 0.624f && config->blocks_per_sm < 0.626f);
    ck_assert_uint_eq(model->slices.args[kernel], model->slices.args[kernel + 1]);
    ck_assert_ptr_nonnull(strstr(args_of(model, kernel + 1), "\"correlation\":123457,"));
    ck_assert_uint_eq(model->device_count, 1);
    ck_assert_int_eq(model->devices[0].sm_count, 132);
    ck_assert_int_eq(model->devices[0].cc_major, 9);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "H200");
    ck_assert_int_eq(model->info.rank, 3);
    ck_assert_int_eq(model->info.world_size, 8);
    ck_assert_str_eq(lac_model_str(model, model->info.backend), "nccl");
    ck_assert_str_eq(lac_model_str(model, model->info.host), "n1");
    ck_assert_ptr_nonnull(strstr(lac_model_str(model, model->info.metadata), "\"world_size\":8"));
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_node_of_a_graph_keeps_all_bits_and_its_module)
{
    static const char *const events[][3] = {
        {"gemm", "38654705670", ",\"name\":\"not it\",\"module_fqn\":\"layers.0.wq\""},
        {"norm", "38654705671", ",\"name\":\"norm\""},
        {"eager", "0", ",\"name\":\"no module\""},
    };
    char text[2048] = "{\"traceEvents\":[";
    size_t used = strlen(text);

    for (int i = 0; i < 3; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
                                 "\"tid\":7,\"ts\":%d,\"dur\":20,\"args\":{\"device\":0,"
                                 "\"stream\":7,\"graph node id\":%s%s}}",
                                 i > 0 ? "," : "", events[i][0], 100 + 30 * i, events[i][1],
                                 events[i][2]);
    }
    (void)snprintf(text + used, sizeof(text) - used, "]}");
    struct lac_model *model = model_of(text);
    const uint64_t gemm = find_slice(model, "gemm"), norm = find_slice(model, "norm");
    const uint64_t eager = find_slice(model, "eager");
    const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[gemm]];

    ck_assert_uint_eq(config->graph_node, UINT64_C(38654705670));
    ck_assert_str_eq(lac_model_str(model, config->module), "layers.0.wq");
    config = &model->kernel_configs[model->slices.detail[norm]];
    ck_assert_uint_eq(config->graph_node, UINT64_C(38654705671));
    ck_assert_str_eq(lac_model_str(model, config->module), "norm");
    config = &model->kernel_configs[model->slices.detail[eager]];
    ck_assert_uint_eq(config->module, 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(operations_lie_on_the_stream_that_their_arguments_name)
{
    struct lac_model *model = model_of(
        "[" X("kernel", "a", "3", "\"stream 9\"", "1", "1", "\"device\":1,\"stream\":20") "," X(
            "kernel", "b", "3", "\"stream 9\"", "1", "1",
            "\"stream\":20") "," X("kernel", "c", "3", "\"stream 9\"", "1", "1",
                                   "") "," X("kernel", "d", "\"GPU 2\"", "\"compute\"", "1", "1",
                                             "") "," X("kernel", "e", "\"GPU 2\"", "\"copies\"",
                                                       "1", "1",
                                                       "") "," X("gpu_user_annotation", "range",
                                                                 "3", "9", "1", "9",
                                                                 "") "," X("cuda_sync",
                                                                           "Stream Sync", "3", "9",
                                                                           "1", "9",
                                                                           "\"device\":3,"
                                                                           "\"stream\":9") "]");
    static const struct {
        const char *name;
        int64_t device;
        const char *id;
    } places[] = {
        {"a", 1, "20"}, {"b", 3, "20"}, {"c", 3, "9"}, {"d", 2, "compute"}, {"e", 2, "copies"}};
    for (size_t i = 0; i < LAC_COUNT_OF(places); i++) {
        const struct lac_track *track = track_of(model, places[i].name);
        ck_assert_int_eq(track->kind, LAC_TRACK_STREAM);
        ck_assert_int_eq(track->device, places[i].device);
        ck_assert_str_eq(lac_model_str(model, track->id_text), places[i].id);
        ck_assert(model->processes[track->process].is_gpu);
    }
    ck_assert_int_eq(track_of(model, "range")->kind, LAC_TRACK_GPU_RANGE);
    expect_slice(model, "range", LAC_SLICE_GPU_RANGE, 0, 9000);
    expect_slice(model, "Stream Sync", LAC_SLICE_SYNC, 0, 9000);
    ck_assert_int_ne(track_of(model, "Stream Sync")->kind, LAC_TRACK_STREAM);
    lac_model_destroy(model);
}
END_TEST

START_TEST(when_a_stream_reached_an_event_is_no_work_of_it)
{
    struct lac_model *model =
        model_of("[" X("kernel", "gemm", "0", "7", "1", "1", "\"device\":0,\"stream\":7") "," X(
            "cuda_event", "cudaEventRecord", "0", "7", "3", "9",
            "\"device\":0,\"stream\":7,\"event_id\":4") "]");
    expect_slice(model, "cudaEventRecord", LAC_SLICE_SYNC, 2000, 9000);
    ck_assert_int_ne(track_of(model, "cudaEventRecord")->kind, LAC_TRACK_STREAM);
    lac_model_destroy(model);
}
END_TEST

START_TEST(copies_of_intel_know_their_direction_and_memory)
{
    static const struct {
        const char *name;
        struct lac_copy copy;
    } rows[] = {
        {"Memcpy M2D (MEMORY(Unknown) -> DEVICE)",
         {-1, LAC_COPY_HTOD, LAC_MEMORY_UNKNOWN, LAC_MEMORY_DEVICE, 0, 0, 0}},
        {"Memcpy D2M (DEVICE -> MEMORY(Unknown))",
         {-1, LAC_COPY_DTOH, LAC_MEMORY_DEVICE, LAC_MEMORY_UNKNOWN, 0, 0, 0}},
        {"Memcpy H2D (HOST -> DEVICE)",
         {-1, LAC_COPY_HTOD, LAC_MEMORY_PINNED, LAC_MEMORY_DEVICE, 0, 0, 0}},
        {"Memcpy D2S (DEVICE -> SHARED)",
         {-1, LAC_COPY_DTOD, LAC_MEMORY_DEVICE, LAC_MEMORY_MANAGED, 0, 0, 0}},
        {"Memcpy M2H (MEMORY(Unknown) -> HOST)",
         {-1, LAC_COPY_HTOH, LAC_MEMORY_UNKNOWN, LAC_MEMORY_PINNED, 0, 0, 0}},
        {"Memcpy D2", {-1, LAC_COPY_UNKNOWN, LAC_MEMORY_UNKNOWN, LAC_MEMORY_UNKNOWN, 0, 0, 0}},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        struct lac_copy copy = {.bytes = -1};
        lac_kineto_copy_name(rows[i].name, &copy);
        expect_copy(&copy, &rows[i].copy);
    }
}
END_TEST

START_TEST(copies_know_their_direction_memory_and_bytes)
{
    struct lac_model *model = model_of(
        "[" X("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "0", "7", "1", "1", "\"bytes\":19267584") "," X(
            "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "0", "7", "3", "1",
            "\"bytes\":4") "," X("gpu_memcpy", "Memcpy HtoD (Host -> Device)", "0", "7", "5", "1",
                                 "\"kind\":\"HtoD\"") "," X("gpu_memcpy", "CopyDeviceToDevice", "0",
                                                            "7", "6", "1",
                                                            "\"kind\":\"DtoD\"") "," X("gpu_memset",
                                                                                       "Memset "
                                                                                       "(Device)",
                                                                                       "0", "7",
                                                                                       "7", "1",
                                                                                       "\"bytes\":"
                                                                                       "512") "]");
    static const struct lac_copy expected[] = {
        {19267584, LAC_COPY_HTOD, LAC_MEMORY_PAGEABLE, LAC_MEMORY_DEVICE, 2, 0, 0},
        {4, LAC_COPY_DTOH, LAC_MEMORY_DEVICE, LAC_MEMORY_PINNED, 2, 0, 0},
        {-1, LAC_COPY_HTOD, LAC_MEMORY_UNKNOWN, LAC_MEMORY_DEVICE, 2, 0, 0},
        {-1, LAC_COPY_DTOD, LAC_MEMORY_UNKNOWN, LAC_MEMORY_UNKNOWN, 2, 0, 0},
        {512, LAC_COPY_UNKNOWN, LAC_MEMORY_UNKNOWN, LAC_MEMORY_DEVICE, 2, 0, 0}};
    for (size_t i = 0; i < 5; i++) {
        const struct lac_copy *copy = &model->copies[model->slices.detail[i]];
        expect_copy(copy, &expected[i]);
        ck_assert_int_eq(copy->is_async, expected[i].is_async);
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(ids_that_are_numbers_and_strings_are_one_thread)
{
    struct lac_model *model = model_of("[" X("cpu_op", "a", "5", "\"25\"", "1", "1", "") "," X(
        "cpu_op", "b", "\"5\"", "25", "3", "1",
        "") "," X("Trace", "span", "\"Spans\"", "\"PyTorch Profiler\"", "1", "1",
                  "") ","
                      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":\"25\",\"args\":{"
                      "\"name\":\"main\"}},"
                      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"args\":{\"name\":"
                      "\"python\"}},"
                      "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":5,\"args\":{\"labels\":"
                      "\"CPU\"}},"
                      "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":5,\"args\":{\"sort_"
                      "index\":100000}},"
                      "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":5,\"tid\":25,\"args\":{"
                      "\"sort_index\":-2}}]");
    const struct lac_track *track = track_of(model, "a");
    ck_assert_ptr_eq(track, track_of(model, "b"));
    ck_assert_str_eq(lac_model_str(model, track->name), "main");
    ck_assert_int_eq(track->tid, 25);
    ck_assert_int_eq(track->sort_index, -2);
    const struct lac_process *process = &model->processes[track->process];
    ck_assert_str_eq(lac_model_str(model, process->name), "python");
    ck_assert_str_eq(lac_model_str(model, process->labels), "CPU");
    ck_assert_int_eq(process->sort_index, 100000);
    ck_assert_int_eq(process->pid, 5);
    ck_assert(!process->is_gpu);
    ck_assert_int_eq(model->processes[track_of(model, "span")->process].pid, -1);
    lac_model_destroy(model);
}
END_TEST

START_TEST(begin_and_end_nest_in_order_of_time)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":9,\"args\":{\"out\":2}},"
        "{\"ph\":\"B\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":1,\"args\":{\"in\":1}},"
        "{\"ph\":\"B\",\"name\":\"inner\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":\"E\",\"pid\":1,"
        "\"tid\":1,\"ts\":4},"
        "{\"ph\":\"B\",\"name\":\"other\",\"pid\":1,\"tid\":2,\"ts\":2},{\"ph\":\"E\",\"name\":"
        "\"wrong\",\"pid\":1,"
        "\"tid\":2,\"ts\":5},{\"ph\":\"E\",\"pid\":1,\"tid\":3,\"ts\":5},"
        "{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":4,\"ts\":6}]");
    expect_slice(model, "outer", LAC_SLICE_OTHER, 0, 8000);
    expect_slice(model, "inner", LAC_SLICE_OTHER, 2000, 1000);
    expect_slice(model, "other", LAC_SLICE_OTHER, 1000, 3000);
    expect_slice(model, "open", LAC_SLICE_OTHER, 5000, 3000);
    ck_assert_str_eq(args_of(model, find_slice(model, "outer")), "{\"in\":1,\"out\":2}");
    ck_assert_uint_eq(model->info.slice_count, 3);
    ck_assert_uint_eq(report_count(model, "begin_without_end"), 1);
    ck_assert_uint_eq(report_count(model, "end_without_begin"), 1);
    ck_assert_uint_eq(report_count(model, "end_name_differs"), 1);
    lac_model_destroy(model);
}
END_TEST

START_TEST(crossing_intervals_of_one_thread_end_by_name)
{
    struct lac_model *model =
        model_of("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1},{\"ph\":\"B\",\"name\":\"b\",\"ts\":2},"
                 "{\"ph\":\"E\",\"name\":\"a\",\"ts\":5},{\"ph\":\"E\",\"name\":\"b\",\"ts\":9}]");
    expect_slice(model, "a", LAC_SLICE_OTHER, 0, 4000);
    expect_slice(model, "b", LAC_SLICE_OTHER, 1000, 7000);
    ck_assert_uint_eq(model->info.repaired_count, 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(async_intervals_are_matched_by_category_id_and_name)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"ts\":1,"
        "\"args\":{\"url\":\"u\"}},"
        "{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"dns\",\"pid\":1,\"ts\":2},"
        "{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":2,\"ts\":9},"
        "{\"ph\":\"n\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"mark\",\"pid\":1,\"ts\":3},"
        "{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"dns\",\"pid\":1,\"ts\":4},"
        "{\"ph\":\"b\",\"cat\":\"net\",\"id2\":{\"local\":\"7\"},\"name\":\"one\",\"pid\":1,\"ts\":"
        "2},"
        "{\"ph\":\"b\",\"cat\":\"net\",\"id2\":{\"local\": "
        "\"7\"},\"name\":\"one\",\"pid\":2,\"ts\":3},"
        "{\"ph\":\"e\",\"cat\":\"net\",\"id2\":{\"local\":\"7\"},\"name\":\"one\",\"pid\":1,\"ts\":"
        "5},"
        "{\"ph\":\"e\",\"cat\":\"disk\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"ts\":5}]");
    expect_slice(model, "get", LAC_SLICE_OTHER, 0, 8000);
    expect_slice(model, "dns", LAC_SLICE_OTHER, 1000, 2000);
    expect_slice(model, "mark", LAC_SLICE_INSTANT, 2000, 0);
    expect_slice(model, "one", LAC_SLICE_OTHER, 1000, 3000);
    ck_assert_int_eq(track_of(model, "get")->kind, LAC_TRACK_ASYNC);
    ck_assert_uint_eq(model->info.slice_count, 3);
    ck_assert_uint_eq(report_count(model, "begin_without_end"), 1);
    ck_assert_uint_eq(report_count(model, "end_without_begin"), 1);
    lac_model_destroy(model);
}
END_TEST

START_TEST(counters_become_one_track_a_series)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"C\",\"name\":\"queue\",\"pid\":1,\"ts\":1,\"args\":{\"value\":4}},"
        "{\"ph\":\"C\",\"name\":\"queue\",\"pid\":1,\"ts\":3,\"args\":{\"value\":123456.5}},"
        "{\"ph\":\"C\",\"name\":\"mem\",\"id\":2,\"pid\":1,\"ts\":2,\"args\":{\"used\":1000000,"
        "\"free\":0.25}},"
        "{\"ph\":\"C\",\"name\":\"bad\",\"pid\":1,\"ts\":2,\"args\":{\"s\":\"x\"}}]");
    uint32_t queue = find_track(model, LAC_TRACK_COUNTER, "queue");
    uint32_t used = find_track(model, LAC_TRACK_COUNTER, "mem [2] used");
    uint32_t left = find_track(model, LAC_TRACK_COUNTER, "mem [2] free");
    ck_assert(queue != LAC_NONE && used != LAC_NONE && left != LAC_NONE);
    ck_assert_uint_eq(model->tracks[queue].count, 2);
    ck_assert(model->sample_value[model->tracks[queue].first + 1] > 123456.4);
    ck_assert_int_eq(model->sample_ts_ns[model->tracks[queue].first + 1], 2000);
    ck_assert(model->sample_value[model->tracks[used].first] > 999999);
    ck_assert(model->sample_value[model->tracks[left].first] < 0.26);
    ck_assert_uint_eq(report_count(model, "counter_without_number"), 1);
    lac_model_destroy(model);
}
END_TEST

START_TEST(memory_instants_ranges_and_stacks_have_their_kinds)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":1,\"s\":\"t\",\"args\":{"
        "\"Device Type\":1,"
        "\"Device Id\":2,\"Bytes\":-4096,\"Total Allocated\":65536,\"Addr\":140380941019136}},"
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":2,\"args\":{\"Device "
        "Type\":0,\"Device Id\":-1,"
        "\"Bytes\":4}},{\"ph\":\"I\",\"name\":\"mark\",\"pid\":1,\"ts\":3},{\"ph\":\"R\",\"name\":"
        "\"nav\",\"ts\":4}," X("user_annotation", "ProfilerStep#1", "1", "1", "1", "9", "") "," X(
            "Operator", "ProfilerStep#2", "1", "1", "11", "9",
            "") "," X("python_function", "f.py(1): f", "1", "1", "21", "9",
                      "\"Python id\":1") "," X("overhead", "Buffer Flush", "-1", "0", "31", "9",
                                               "") "," X("cpu_op", "aten::mm", "1", "1", "2", "1",
                                                         "\"Input "
                                                         "Dims\":[[1,2],[2,3]"
                                                         "]") "," X("anything",
                                                                    "loader."
                                                                    "fetch",
                                                                    "1", "8", "1", "1500000",
                                                                    "\"batch\""
                                                                    ":12,"
                                                                    "\"worker"
                                                                    "\":3,"
                                                                    "\"cpu_"
                                                                    "ns\":"
                                                                    "140000000"
                                                                    "0") "," X("user_annotation",
                                                                               "loader.wait", "1",
                                                                               "1", "5", "2",
                                                                               "") "]");
    uint64_t first = find_slice(model, "[memory]");
    ck_assert_int_eq(model->slices.kind[first], LAC_SLICE_ALLOC);
    const struct lac_alloc *alloc = &model->allocs[model->slices.detail[first]];
    ck_assert_int_eq(alloc->bytes, -4096);
    ck_assert_int_eq(alloc->total_allocated, 65536);
    ck_assert_int_eq(alloc->device, 2);
    alloc = &model->allocs[model->slices.detail[first + 1]];
    ck_assert_int_eq(alloc->device, -1);
    ck_assert_int_eq(alloc->total_allocated, -1);
    ck_assert_int_eq(track_of(model, "[memory]")->kind, LAC_TRACK_MARKS);
    expect_slice(model, "mark", LAC_SLICE_INSTANT, 2000, 0);
    expect_slice(model, "nav", LAC_SLICE_INSTANT, 3000, 0);
    expect_slice(model, "ProfilerStep#1", LAC_SLICE_RANGE, 0, 9000);
    expect_slice(model, "ProfilerStep#2", LAC_SLICE_RANGE, 10000, 9000);
    expect_slice(model, "f.py(1): f", LAC_SLICE_PYTHON, 20000, 9000);
    expect_slice(model, "Buffer Flush", LAC_SLICE_OVERHEAD, 30000, 9000);
    ck_assert(model->info.has_python_stacks && model->info.has_shapes);
    expect_slice(model, "loader.fetch", LAC_SLICE_RANGE, 0, 1500000000);
    const struct lac_loader_info *info =
        &model->loader_infos[model->slices.detail[find_slice(model, "loader.fetch")]];
    ck_assert_int_eq(info->batch, 12);
    ck_assert_int_eq(info->worker, 3);
    ck_assert_int_eq(info->cpu_ns, 1400000000);
    info = &model->loader_infos[model->slices.detail[find_slice(model, "loader.wait")]];
    ck_assert_int_eq(info->batch, -1);
    ck_assert_int_eq(info->worker, -1);
    lac_model_destroy(model);
}
END_TEST

START_TEST(arrows_are_kept_unless_they_repeat_a_correlation)
{
    struct lac_model *model = model_of("[" X("cpu_op", "forward", "1", "1", "1", "9", "") "," X(
        "cpu_op", "backward", "1", "2", "20", "9",
        "") ",{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":4,\"pid\":1,\"tid\":1,"
            "\"ts\":2},"
            "{\"ph\":\"f\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":4,\"pid\":1,\"tid\":2,"
            "\"ts\":21,\"bp\":\"e\"},"
            "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":9,\"pid\":1,\"tid\":1,\"ts\":"
            "2},"
            "{\"ph\":\"f\",\"cat\":\"async\",\"name\":\"launch\",\"id\":9,\"pid\":1,\"tid\":1,"
            "\"ts\":0.5,\"bp\":\"e\"},"
            "{\"ph\":\"s\",\"cat\":\"x\",\"name\":\"x\",\"id\":1,\"pid\":9,\"tid\":9,\"ts\":2}]");
    ck_assert_uint_eq(model->flow_count, 1);
    ck_assert_uint_eq(model->flows[0].src, find_slice(model, "forward"));
    ck_assert_uint_eq(model->flows[0].dst, find_slice(model, "backward"));
    ck_assert_uint_eq(report_count(model, "launch_arrows"), 2);
    ck_assert_uint_eq(report_count(model, "arrow_without_row"), 1);
    ck_assert_int_eq(model->info.t0_ns, 500);
    lac_model_destroy(model);
}
END_TEST

START_TEST(other_phases_are_read_and_counted)
{
    struct lac_model *model = model_of("[{\"ph\":\"P\",\"ts\":1},{\"ph\":\"N\"},{\"ph\":\"O\"},{"
                                       "\"ph\":\"D\"},{\"ph\":\"S\"},{\"ph\":\"T\"},"
                                       "{\"ph\":\"p\"},{\"ph\":\"F\"},{\"ph\":\"v\"},{\"ph\":\"V\"}"
                                       ",{\"ph\":\"a\"},{\"ph\":\"zz\"},{\"ph\":5},"
                                       "{\"noph\":1},{\"ph\":\"X\",\"name\":\"x\",\"ts\":2,\"dur\":"
                                       "1},{\"ph\":\"M\",\"name\":\"num_cpus\",\"ts\":0}]");
    ck_assert_uint_eq(model->info.event_count, 16);
    ck_assert_uint_eq(report_count(model, "phase_not_understood"), 13);
    ck_assert_uint_eq(report_count(model, "phase_missing"), 1);
    ck_assert_uint_eq(report_count(model, "metadata_not_understood"), 1);
    ck_assert_uint_eq(model->info.phase_count['P'], 1);
    ck_assert_int_eq(model->info.t0_ns, 1000);
    lac_model_destroy(model);
}
END_TEST

START_TEST(tensorflow_rows_count_once_wherever_their_names_stand)
{
    static const char row[] = "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":3,\"args\":{"
                              "\"name\":\"/device:GPU:1/stream:12 Compute\"}}";
    static const char rest[] =
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":4,\"args\":{\"name\":\"/gpu:1/stream:all "
        "Compute\"}}," X("Op", "MatMul", "3", "0", "5", "2", "\"op\":\"MatMul\"") "," X(
            "Op", "MatMul", "4", "0", "5", "2", "") "," X("Op", "MEMCPYHtoD", "3", "0", "9", "1",
                                                          "") "," X("Op", "MEMSET", "3", "0", "11",
                                                                    "1", "");
    for (int late = 0; late < 2; late++) {
        char text[2000];
        snprintf(text, sizeof(text), "{\"traceEvents\":[%s,%s]}", late ? rest : row,
                 late ? row : rest);
        struct lac_model *model = model_of(text);
        ck_assert_int_eq(model->info.format, LAC_FORMAT_TENSORFLOW);
        ck_assert_uint_eq(model->info.slice_count, 4);
        uint32_t stream = find_track(model, LAC_TRACK_STREAM, "12");
        ck_assert_uint_ne(stream, LAC_NONE);
        ck_assert_uint_eq(model->tracks[stream].count, 3);
        ck_assert_int_eq(model->tracks[stream].device, 1);
        uint64_t kernels = 0;
        for (uint64_t i = 0; i < model->slices.count; i++)
            kernels += model->slices.kind[i] == LAC_SLICE_KERNEL;
        ck_assert_uint_eq(kernels, 1);
        expect_slice(model, "MEMCPYHtoD", LAC_SLICE_COPY, 4000, 1000);
        expect_slice(model, "MEMSET", LAC_SLICE_MEMSET, 6000, 1000);
        lac_model_destroy(model);
    }
}
END_TEST

/* A model's operator may be called anything: only what begins with MEMCPY or MEMSET is a copy. */
START_TEST(tensorflow_operators_with_memcpy_in_their_name_are_kernels)
{
    struct lac_model *model = model_of(
        "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":3,\"args\":{\"name\":"
        "\"/gpu:0/stream:1 Compute\"}}," X("Op", "my_memcpy_op", "3", "0", "5", "2", "") "," X(
            "Op", "Memset", "3", "0", "9", "1", "") "," X("Op", "MEMSET32", "3", "0", "11", "1",
                                                          "") "]}");
    expect_slice(model, "my_memcpy_op", LAC_SLICE_KERNEL, 0, 2000);
    expect_slice(model, "Memset", LAC_SLICE_KERNEL, 4000, 1000);
    expect_slice(model, "MEMSET32", LAC_SLICE_MEMSET, 6000, 1000);
    lac_model_destroy(model);
}
END_TEST

START_TEST(formats_are_told_apart)
{
    static const struct {
        const char *text;
        enum lac_trace_format format;
    } cases[] = {
        {"{\"lacuna\":{\"simulated\":true,\"version\":1},\"traceEvents\":[],\"schemaVersion\":1}",
         LAC_FORMAT_LACUNA},
        {"{\"schemaVersion\":1,\"traceEvents\":[]}", LAC_FORMAT_KINETO},
        {"[{\"ph\":\"X\",\"cat\":\"toplevel\",\"name\":\"x\",\"ts\":1}]", LAC_FORMAT_CHROME}};
    for (size_t i = 0; i < 3; i++) {
        struct lac_model *model = model_of(cases[i].text);
        ck_assert_int_eq(model->info.format, cases[i].format);
        ck_assert_int_eq(model->info.is_simulated, i == 0);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(arguments_come_back_as_they_were)
{
    static const char *const args[] = {
        "{\"External id\":537,\"grid\":[50,1,1],\"s\":\"a\\\"b\",\"n\":null,\"t\":true,\"r\":-0.5}",
        "{\"deep\":{\"a\":[{\"b\":[[[]]]}],\"ptr\":140380941019136},\"big\":0.01025312399871836}",
        "{\"args\":[1,2,3]}", "{\"Ev Idx\":0,\"Sequence number\":-1,\"x\":12345.678,\"e\":1e10}"};
    for (size_t i = 0; i < LAC_COUNT_OF(args); i++) {
        char text[500];
        snprintf(text, sizeof(text),
                 "[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":%s}]", args[i]);
        struct lac_model *model = model_of(text);
        ck_assert_str_eq(args_of(model, 0), args[i]);
        lac_model_destroy(model);
    }
    struct lac_model *model = model_of("[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"args\":[1, 2]},"
                                       "{\"ph\":\"X\",\"name\":\"m\",\"ts\":1,\"args\":{ }},"
                                       "{\"ph\":\"X\",\"name\":\"o\",\"ts\":1,\"args\":null}]");
    ck_assert_str_eq(args_of(model, find_slice(model, "n")), "{\"args\":[1,2]}");
    ck_assert_str_eq(args_of(model, find_slice(model, "m")), "");
    ck_assert_str_eq(args_of(model, find_slice(model, "o")), "");
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chrome");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, keys_are_known_by_their_whole_text);
    tcase_add_test(tcase, kineto_categories_of_2021_and_of_today_are_the_same_kinds);
    tcase_add_test(tcase, a_launch_is_bound_to_its_kernel_and_configuration);
    tcase_add_test(tcase, a_node_of_a_graph_keeps_all_bits_and_its_module);
    tcase_add_test(tcase, operations_lie_on_the_stream_that_their_arguments_name);
    tcase_add_test(tcase, copies_know_their_direction_memory_and_bytes);
    tcase_add_test(tcase, copies_of_intel_know_their_direction_and_memory);
    tcase_add_test(tcase, when_a_stream_reached_an_event_is_no_work_of_it);
    tcase_add_test(tcase, ids_that_are_numbers_and_strings_are_one_thread);
    tcase_add_test(tcase, begin_and_end_nest_in_order_of_time);
    tcase_add_test(tcase, crossing_intervals_of_one_thread_end_by_name);
    tcase_add_test(tcase, async_intervals_are_matched_by_category_id_and_name);
    tcase_add_test(tcase, counters_become_one_track_a_series);
    tcase_add_test(tcase, memory_instants_ranges_and_stacks_have_their_kinds);
    tcase_add_test(tcase, arrows_are_kept_unless_they_repeat_a_correlation);
    tcase_add_test(tcase, other_phases_are_read_and_counted);
    tcase_add_test(tcase, tensorflow_rows_count_once_wherever_their_names_stand);
    tcase_add_test(tcase, tensorflow_operators_with_memcpy_in_their_name_are_kernels);
    tcase_add_test(tcase, formats_are_told_apart);
    tcase_add_test(tcase, arguments_come_back_as_they_were);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
