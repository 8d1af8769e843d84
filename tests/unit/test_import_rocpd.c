/* Databases of ROCm: rocpd of rocprofv3, in both schemas, and rocmProfileData. The tables are made
 * from the published schema of rocprofiler-sdk. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/nsys_file.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INFO(S)                                                                                    \
    "CREATE TABLE rocpd_string" S "(id INTEGER PRIMARY KEY, guid TEXT, string TEXT);"              \
    "INSERT INTO rocpd_string" S " VALUES(1,'g','hipLaunchKernel'),(2,'g','HIP_RUNTIME_API_EXT')," \
    "(3,'g','MEMORY_COPY_HOST_TO_DEVICE'),(4,'g','epoch'),(5,'g','MARKER_CORE_API');"              \
    "CREATE TABLE rocpd_info_process" S "(id INTEGER PRIMARY KEY, nid, pid, name, command TEXT);"  \
    "INSERT INTO rocpd_info_process" S " VALUES(1,1,4711,NULL,'python train.py');"                 \
    "CREATE TABLE rocpd_info_thread" S "(id INTEGER PRIMARY KEY, nid, pid, tid, name);"            \
    "INSERT INTO rocpd_info_thread" S " VALUES(1,1,1,4712,NULL);"                                  \
    "CREATE TABLE rocpd_info_agent" S                                                              \
    "(id INTEGER PRIMARY KEY, type, logical_index, type_index, name, product_name);"               \
    "INSERT INTO rocpd_info_agent" S " VALUES(1,'CPU',0,0,'cpu','EPYC'),"                          \
    "(2,'GPU',1,0,'gfx942','AMD Instinct MI300X');"                                                \
    "CREATE TABLE rocpd_info_kernel_symbol" S                                                      \
    "(id INTEGER PRIMARY KEY, kernel_name, display_name, arch_vgpr_count INTEGER);"                \
    "INSERT INTO rocpd_info_kernel_symbol" S " VALUES(9,'_Z4gemm.kd','gemm(float*)',64);"          \
    "CREATE TABLE rocpd_event" S "(id INTEGER PRIMARY KEY, category_id, stack_id INTEGER);"        \
    "INSERT INTO rocpd_event" S " VALUES(1,2,70),(2,NULL,70),(3,NULL,71),(4,5,0);"

static const char SCHEMA_3[] = INFO("_00ab_01") //
    "CREATE TABLE rocpd_kernel_dispatch_00ab_01(id, nid, pid, tid, agent_id, kernel_id, queue_id,"
    "stream_id, start, end, group_segment_size, workgroup_size_x, workgroup_size_y,"
    "workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id);"
    "INSERT INTO rocpd_kernel_dispatch_00ab_01 VALUES(1,1,1,1,2,9,1,3,2000,5000,1024,256,1,1,"
    "1000,1,1,2);"
    "CREATE TABLE rocpd_memory_copy_00ab_01(id, nid, pid, tid, start, end, name_id, dst_agent_id,"
    "src_agent_id, size, queue_id, stream_id, event_id);"
    "INSERT INTO rocpd_memory_copy_00ab_01 VALUES(1,1,1,1,1000,1500,3,2,1,4096,NULL,3,3);"
    "CREATE TABLE rocpd_region_00ab_01(id, nid, pid, tid, start, end, name_id, event_id);"
    "INSERT INTO rocpd_region_00ab_01 VALUES(1,1,1,1,900,1100,1,1),(2,1,1,1,800,6000,4,4);";

static const char SCHEMA_4[] = INFO("_00ab_01") //
    "CREATE TABLE rocpd_track_00ab_01(id, nid, pid, tid, agent_id, queue_id, stream_id);"
    "INSERT INTO rocpd_track_00ab_01 VALUES(1,1,1,1,2,1,3),(2,1,1,1,NULL,NULL,NULL);"
    "CREATE TABLE rocpd_timestamp_00ab_01(id INTEGER PRIMARY KEY, value INTEGER);"
    "INSERT INTO rocpd_timestamp_00ab_01 VALUES(1,2000),(2,5000),(3,1000),(4,1500),(5,900),"
    "(6,1100),(7,800),(8,6000);"
    "CREATE TABLE rocpd_kernel_dispatch_00ab_01(id, track_id, kernel_id, start_id, end_id,"
    "group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x,"
    "grid_size_y, grid_size_z, event_id);"
    "INSERT INTO rocpd_kernel_dispatch_00ab_01 VALUES(1,1,9,1,2,1024,256,1,1,1000,1,1,2);"
    "CREATE TABLE rocpd_memory_copy_00ab_01(id, track_id, start_id, end_id, name_id, dst_agent_id,"
    "src_agent_id, size, event_id);"
    "INSERT INTO rocpd_memory_copy_00ab_01 VALUES(1,1,3,4,3,2,1,4096,3);"
    "CREATE TABLE rocpd_region_00ab_01(id, track_id, start_id, end_id, name_id, event_id);"
    "INSERT INTO rocpd_region_00ab_01 VALUES(1,2,5,6,1,1),(2,2,7,8,4,4);";

static const char RPD[] =
    "CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT);"
    "INSERT INTO rocpd_string VALUES(1,'hipLaunchKernel'),(2,'gemm'),(3,'KernelExecution'),"
    "(4,'UserMarker'),(5,'epoch'),(6,'CopyHostToDevice'),(7,'');"
    "CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);"
    "INSERT INTO rocpd_api VALUES(50,4711,4712,900,1100,1,7),(51,4711,4712,800,6000,4,5);"
    "CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, start, end,"
    "description_id, opType_id);"
    "INSERT INTO rocpd_op VALUES(8,0,3,1,2000,5000,2,3),(9,0,3,2,1000,1500,7,6);"
    "CREATE TABLE rocpd_api_ops(id INTEGER PRIMARY KEY, api_id, op_id);"
    "INSERT INTO rocpd_api_ops VALUES(1,50,8);";

static struct imported import_sql(const char *sql)
{
    struct nsys_file made = nsys_file_begin();
    nsys_file_sql(&made, sql);
    nsys_file_done(&made);
    struct imported imported = import_path(made.path);
    (void)unlink(made.path);
    return imported;
}

static void check_job(const struct lac_model *model, const char *kernel)
{
    const struct lac_slices *s = &model->slices;
    uint64_t k = find_slice(model, kernel);
    uint64_t call = find_slice(model, "hipLaunchKernel");
    uint64_t range = find_slice(model, "epoch");
    uint64_t copy = find_slice(model, "Memcpy HtoD (Host -> Device)");
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(s->count, 4);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
    ck_assert_int_eq(model->info.t0_ns, 800);
    ck_assert_int_eq(s->start_ns[k], 1200);
    ck_assert_int_eq(s->dur_ns[k], 3000);
    ck_assert_int_eq(s->kind[k], LAC_SLICE_KERNEL);
    ck_assert_int_eq(s->kind[call], LAC_SLICE_API);
    ck_assert_int_eq(s->kind[range], LAC_SLICE_RANGE);
    ck_assert_int_eq(s->kind[copy], LAC_SLICE_COPY);
    ck_assert_uint_eq(s->link[k], call);
    ck_assert_uint_eq(model->device_count, 1);
}

START_TEST(both_schemas_of_rocpd)
{
    static const char *const SCHEMAS[] = {SCHEMA_3, SCHEMA_4};
    for (size_t i = 0; i < LAC_COUNT_OF(SCHEMAS); i++) {
        struct imported imported = import_sql(SCHEMAS[i]);
        ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
        const struct lac_model *model = imported.models[0];
        check_job(model, "gemm(float*)");
        uint64_t k = find_slice(model, "gemm(float*)");
        const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[k]];
        ck_assert_uint_eq(config->grid[0], 4); /* 1000 items in blocks of 256 */
        ck_assert_uint_eq(config->block[0], 256);
        ck_assert_uint_eq(config->registers_per_thread, 64);
        ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "AMD Instinct MI300X");
        uint64_t copy = find_slice(model, "Memcpy HtoD (Host -> Device)");
        ck_assert_int_eq(model->copies[model->slices.detail[copy]].bytes, 4096);
        ck_assert_uint_ne(find_track(model, LAC_TRACK_STREAM, "3"), LAC_NONE);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(profile_data_of_before)
{
    struct imported imported = import_sql(RPD);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    check_job(imported.models[0], "gemm");
    imported_done(&imported);
}
END_TEST

/* Two processes in one file, each with its own numbers. */
START_TEST(sets_do_not_mix)
{
    struct nsys_file made = nsys_file_begin();
    nsys_file_sql(&made, SCHEMA_3);
    nsys_file_sql(
        &made,
        INFO(
            "_00ab_02") "UPDATE rocpd_info_process_00ab_02 SET pid = 5000;"
                        "UPDATE rocpd_string_00ab_02 SET string = 'other' WHERE id = 4;"
                        "CREATE TABLE rocpd_region_00ab_02(id, nid, pid, tid, start, end, name_id, "
                        "event_id);"
                        "INSERT INTO rocpd_region_00ab_02 VALUES(1,1,1,1,900,1100,4,4);");
    nsys_file_done(&made);
    struct imported imported = import_path(made.path);
    (void)unlink(made.path);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_ne(find_slice(imported.models[0], "epoch"), UINT64_MAX);
    ck_assert_uint_ne(find_slice(imported.models[0], "other"), UINT64_MAX);
    imported_done(&imported);
}
END_TEST

/* Schemas that lie, ids that would take all memory, values of other types. */
START_TEST(hostile_databases)
{
    static const char *const CHANGES[] = {
        "INSERT INTO rocpd_timestamp_00ab_01 VALUES(4611686018427387904, 5);",
        "UPDATE rocpd_kernel_dispatch_00ab_01 SET start_id = -1;",
        "UPDATE rocpd_kernel_dispatch_00ab_01 SET end_id = 3;",
        "UPDATE rocpd_timestamp_00ab_01 SET value = 9223372036854775807;",
        "UPDATE rocpd_timestamp_00ab_01 SET value = 'soon' WHERE id = 1;",
        "INSERT INTO rocpd_event_00ab_01 VALUES(9223372036854775807, 2, 70);",
        "UPDATE rocpd_info_agent_00ab_01 SET type_index = -5;",
        "UPDATE rocpd_info_agent_00ab_01 SET type_index = 4000000000;",
        "UPDATE rocpd_info_process_00ab_01 SET pid = 9223372036854775807;",
        "UPDATE rocpd_track_00ab_01 SET stream_id = -9223372036854775808;",
        "UPDATE rocpd_kernel_dispatch_00ab_01 SET workgroup_size_x = 0, grid_size_x = 4294967295;",
        "DROP TABLE rocpd_timestamp_00ab_01;",
        "DROP TABLE rocpd_track_00ab_01;",
        "DROP TABLE rocpd_event_00ab_01;",
        "ALTER TABLE rocpd_region_00ab_01 RENAME TO x; CREATE VIEW rocpd_region_00ab_01 AS WITH "
        "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS start_id FROM n;",
        "CREATE TABLE \"rocpd_string_x\"\"; DROP\"(id, string);",
        "INSERT INTO rocpd_string_00ab_01 VALUES(6,'g',zeroblob(1000000));",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(CHANGES); i++) {
        struct nsys_file made = nsys_file_begin();
        nsys_file_sql(&made, SCHEMA_4);
        nsys_file_sql(&made, CHANGES[i]);
        nsys_file_done(&made);
        struct imported imported = import_path(made.path);
        (void)unlink(made.path);
        ck_assert_msg(imported.status == LAC_OK ? lac_model_is_valid(imported.models[0])
                                                : imported.error.message[0] != '\0',
                      "%s", CHANGES[i]);
        imported_done(&imported);
    }
    struct imported empty = import_sql("CREATE TABLE rocpd_string_0(id, string);");
    ck_assert_int_eq(empty.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(empty.error.message, "rocprofv3 --sys-trace"));
    imported_done(&empty);
}
END_TEST

/* JSON with ' for ", as the tool lays it out. */
static const char TOOL[] =
    "{'rocprofiler-sdk-tool':[{'metadata':{'pid':4711,'init_time':1,'fini_time':9},'agents'"
    ":[{'id':{'handle':70},'type':1,'name':'EPYC','product_name':'EPYC'},{'id':{'handle':71"
    "},'type':2,'name':'gfx942','product_name':'AMD Instinct MI300X'}],'kernel_symbols':[{'"
    "kernel_id':0},{'kernel_id':1,'kernel_name':'_Z4gemmPf.kd','formatted_kernel_name':'gem"
    "m(float*)','arch_vgpr_count':64}],'strings':{'buffer_records':[{'kind':'NONE','operati"
    "ons':[]},{'kind':'HIP_RUNTIME_API','operations':['hipLaunchKernel','hipMemcpyAsync']}]"
    "},'buffer_records':{'kernel_dispatch':[{'size':64,'kind':11,'operation':1,'thread_id':"
    "4712,'correlation_id':{'internal':5,'external':0},'start_timestamp':2000,'end_timestam"
    "p':5000,'dispatch_info':{'agent_id':{'handle':71},'queue_id':{'handle':3},'kernel_id':"
    "1,'dispatch_id':1,'group_segment_size':1024,'workgroup_size':{'x':256,'y':1,'z':1},'gr"
    "id_size':{'x':1000,'y':1,'z':1}}}],'memory_copy':[{'size':64,'kind':12,'operation':2,'"
    "thread_id':4712,'correlation_id':{'internal':6,'external':0},'start_timestamp':1000,'e"
    "nd_timestamp':1500,'src_agent_id':{'handle':70},'dst_agent_id':{'handle':71},'bytes':4"
    "096}],'hip_api':[{'size':64,'kind':1,'operation':0,'thread_id':4712,'correlation_id':{"
    "'internal':5,'external':0},'start_timestamp':900,'end_timestamp':950},{'size':64,'kind"
    "':1,'operation':1,'thread_id':4712,'correlation_id':{'internal':6,'external':0},'start"
    "_timestamp':800,'end_timestamp':850}]}}]}";

static struct imported import_tool(const char *from, const char *to)
{
    char text[sizeof(TOOL) + 64];
    const char *at = from != NULL ? strstr(TOOL, from) : NULL;
    ck_assert(from == NULL || at != NULL);
    if (at != NULL) {
        (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - TOOL), TOOL, to,
                       at + strlen(from));
    } else {
        (void)snprintf(text, sizeof(text), "%s", TOOL);
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return import_text(text);
}

/* Each process numbers its agents and its calls by itself: the second one runs the same on a GPU of
 * its own, or on the same one. */
static struct imported import_two_tools(int second_node)
{
    char text[3 * sizeof(TOOL)];
    const char *const first = strchr(TOOL, '[') + 1;
    const char *const gpu = strstr(first, "'type':2,");
    const int before = (int)(gpu - first);
    const int behind = (int)(strlen(gpu) - strlen("]}"));
    static const char NODE[] = "'node_id':%d,'logical_node_type_id':0,";
    char second[sizeof(NODE) + 16];
    char node[sizeof(NODE) + 16];
    (void)snprintf(node, sizeof(node), NODE, 1);
    (void)snprintf(second, sizeof(second), NODE, second_node);
    (void)snprintf(text, sizeof(text), "{'rocprofiler-sdk-tool':[%.*s%s%.*s,%.*s%s%.*s]}", before,
                   first, node, behind, gpu, before, first, second, behind, gpu);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return import_text(text);
}

START_TEST(processes_in_json_keep_their_calls_and_their_gpus_apart)
{
    for (int node = 1; node <= 2; node++) {
        struct imported imported = import_two_tools(node);
        ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
        const struct lac_model *model = imported.models[0];
        uint32_t kernel_count = 0;
        ck_assert_uint_eq(model->slices.count, 8);
        ck_assert_uint_eq(model->device_count, (uint32_t)node);
        ck_assert_int_eq(model->devices[node - 1].id, node - 1);
        for (uint64_t i = 0; i < model->slices.count; i++) {
            if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
                const uint32_t call = model->slices.link[i];
                kernel_count++;
                ck_assert_uint_ne(call, LAC_NONE);
                ck_assert_uint_eq(model->slices.link[call], i);
            }
        }
        ck_assert_uint_eq(kernel_count, 2);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(json_of_rocprofv3)
{
    struct imported imported = import_tool(NULL, NULL);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
    ck_assert_uint_eq(model->slices.count, 4);
    uint64_t kernel = find_slice(model, "gemm(float*)");
    ck_assert_int_eq(model->slices.kind[kernel], LAC_SLICE_KERNEL);
    ck_assert_int_eq(model->slices.dur_ns[kernel], 3000);
    ck_assert_uint_eq(model->slices.link[kernel], find_slice(model, "hipLaunchKernel"));
    const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[kernel]];
    ck_assert_uint_eq(config->grid[0], 4);
    ck_assert_uint_eq(config->block[0], 256);
    ck_assert_uint_eq(config->registers_per_thread, 64);
    uint64_t copied = find_slice(model, "CopyHostToDevice");
    ck_assert_int_eq(model->slices.kind[copied], LAC_SLICE_COPY);
    ck_assert_int_eq(model->copies[model->slices.detail[copied]].bytes, 4096);
    ck_assert_uint_eq(model->device_count, 1);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "AMD Instinct MI300X");
    imported_done(&imported);
}
END_TEST

/* With roctx's ranges: two nested ones, a mark, a range whose text is missing, and a call that pauses. */
static struct imported import_marked(const char *texts)
{
    static const char RECORDS[] =
        "'buffer_records':{'marker_api':["
        "{'kind':2,'operation':1,'thread_id':4712,'correlation_id':{'internal':21},"
        "'start_timestamp':500,'end_timestamp':6000},"
        "{'kind':2,'operation':1,'thread_id':4712,'correlation_id':{'internal':9},"
        "'start_timestamp':700,'end_timestamp':960},"
        "{'kind':3,'operation':0,'thread_id':4712,'correlation_id':{'internal':5},"
        "'start_timestamp':970,'end_timestamp':970},"
        "{'kind':2,'operation':1,'thread_id':4713,'correlation_id':{'internal':77},"
        "'start_timestamp':700,'end_timestamp':960},"
        "{'kind':4,'operation':0,'thread_id':4713,'correlation_id':{'internal':78},"
        "'start_timestamp':10,'end_timestamp':20}],'kernel_dispatch':[";
    char text[sizeof(TOOL) + 2048];
    const char *const first = strstr(TOOL, "'operations':['hip");
    const char *const second = strstr(TOOL, "'buffer_records':{'kernel_dispatch':[");
    ck_assert(first != NULL && second != NULL);
    (void)snprintf(
        text, sizeof(text),
        "%.*s'operations':['hipLaunchKernel','hipMemcpyAsync']},"
        "{'kind':'MARKER_CORE_RANGE_API','operations':['roctxMarkA','roctxThreadRangeA']},"
        "{'kind':'MARKER_CORE_API','operations':['roctxMarkA']},"
        "{'kind':'MARKER_CONTROL_API','operations':['roctxProfilerPause']}],'marker_api':%s},%s%s",
        (int)(first - TOOL), TOOL, texts, RECORDS,
        second + strlen("'buffer_records':{'kernel_dispatch':["));
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return import_text(text);
}

START_TEST(roctx_ranges_of_rocprofv3)
{
    struct imported imported = import_marked(
        "[{'key':21,'value':'step 1'},{'key':5,'value':'begin'},{'key':9,'value':'forward'}]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(model->slices.count, 9);
    const uint64_t step = find_slice(model, "step 1");
    const uint64_t forward = find_slice(model, "forward");
    ck_assert_int_eq(model->slices.kind[step], LAC_SLICE_RANGE);
    ck_assert_int_eq(model->slices.dur_ns[step], 5500);
    ck_assert_int_eq(model->slices.start_ns[forward] - model->slices.start_ns[step], 200);
    ck_assert_uint_eq(model->slices.link[forward], LAC_NONE);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "begin")], LAC_SLICE_INSTANT);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "roctxThreadRangeA")], LAC_SLICE_RANGE);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "roctxProfilerPause")], LAC_SLICE_API);
    /* the kernel's call has the number of a mark: they are not mixed up */
    ck_assert_uint_eq(model->slices.link[find_slice(model, "gemm(float*)")],
                      find_slice(model, "hipLaunchKernel"));
    imported_done(&imported);
    static const char *const BROKEN[] = {"7", "[]", "[7,{},{'key':'x'},{'key':21}]",
                                         "[{'key':21,'value':{}},{'key':21,'value':'a'}]"};
    for (size_t i = 0; i < LAC_COUNT_OF(BROKEN); i++) {
        imported = import_marked(BROKEN[i]);
        ck_assert_msg(imported.status == LAC_OK, "%zu: %s", i, imported.error.message);
        ck_assert(lac_model_is_valid(imported.models[0]));
        ck_assert_uint_eq(imported.models[0]->slices.count, 9);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(hostile_json_of_rocprofv3)
{
    static const struct {
        const char *from, *to, *report;
    } CASES[] = {
        {"'end_timestamp':5000", "'end_timestamp':1", "record_not_understood"},
        {"'end_timestamp':5000", "'end_timestamp':9e99", "record_not_understood"},
        {"'agent_id':{'handle':71},'queue", "'agent_id':[],'queue", "record_not_understood"},
        {"'kernel_id':1,'dispatch", "'kernel_id':-99,'dispatch", NULL},
        {"'workgroup_size':{'x':256", "'workgroup_size':{'x':-1", NULL},
        {"'operation':1,'thread_id':4712,'correlation_id':{'internal':6,'external':0},"
         "'start_timestamp':800",
         "'operation':4294967295,'correlation_id':7,'start_timestamp':800", NULL},
        {"'strings':{", "'strings':7,'x':{", NULL},
        {"'bytes':4096", "'bytes':'many'", NULL},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(CASES); i++) {
        struct imported imported = import_tool(CASES[i].from, CASES[i].to);
        ck_assert_msg(imported.status == LAC_OK, "%zu: %s", i, imported.error.message);
        ck_assert(lac_model_is_valid(imported.models[0]));
        ck_assert_uint_eq(imported.models[0]->slices.count, CASES[i].report != NULL ? 3 : 4);
        ck_assert(CASES[i].report == NULL ||
                  report_count(imported.models[0], CASES[i].report) == 1);
        imported_done(&imported);
    }
    struct imported imported = import_tool("'buffer_records':{'kernel", "'other':{'kernel");
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "nothing was traced"));
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_rocpd");
    TCase *all = tcase_create("all");
    tcase_add_test(all, both_schemas_of_rocpd);
    tcase_add_test(all, profile_data_of_before);
    tcase_add_test(all, sets_do_not_mix);
    tcase_add_test(all, hostile_databases);
    tcase_add_test(all, json_of_rocprofv3);
    tcase_add_test(all, processes_in_json_keep_their_calls_and_their_gpus_apart);
    tcase_add_test(all, roctx_ranges_of_rocprofv3);
    tcase_add_test(all, hostile_json_of_rocprofv3);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
