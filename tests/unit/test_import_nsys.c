/* Nsight Systems exports made row by row: what each table becomes, what is refused. */

#include "analysis/model/args.h"
#include "tests/support/check_main.h"
#include "tests/support/nsys_file.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Global ids: machine 1, process and thread. */
#define PID(p)    "(281474976710656+" #p "*16777216)"
#define TID(p, t) "(281474976710656+" #p "*16777216+" #t ")"

static uint32_t find(const struct lac_model *model, const char *name, int occurrence)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0 && occurrence-- == 0) {
            return (uint32_t)i;
        }
    }
    ck_abort_msg("no slice %s", name);
}

static uint64_t reported(const struct lac_model *model, const char *code)
{
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strcmp(model->report[i].code, code) == 0) {
            return model->report[i].count;
        }
    }
    return 0;
}

static const struct lac_track *track_of(const struct lac_model *model, uint32_t slice)
{
    return &model->tracks[lac_model_track_of(model, slice)];
}

START_TEST(kernels_carry_their_launch_and_what_the_row_says)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1000,1500,0,1,7,42," PID(
                          9) ",1,2,10,2,1,128,1,1,32,100,28,NULL),"
                             "(1600,1700,0,1,7,43," PID(9) ",99,2,1,1,1,64,1,1,8,0,0,12884901890)");
    nsys_file_sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(900,950,0," TID(
                          9, 9) ",42,3,0),"
                                "(1550,1580,0," TID(9, 10) ",43,3,2)");
    nsys_file_sql(&m, "CREATE TABLE ThreadNames(nameId INTEGER, globalTid INTEGER);"
                      "INSERT INTO ThreadNames VALUES(6," TID(9, 9) "),(7," TID(
                          5, 5) ");"
                                "CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);"
                                "INSERT INTO PROCESSES VALUES(" PID(9) ",9,'python'),"
                                                                       "(" PID(5) ",5,'other')");
    nsys_file_sql(
        &m, "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, smCount INTEGER, totalMemory "
            "INTEGER, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
            "INSERT INTO TARGET_INFO_GPU VALUES(0,'Big One',132,1000,0,9,0),(1,'x',1,1,1,1,1);"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000);"
            "CREATE TABLE EXPORT_META_DATA(name TEXT, value TEXT);"
            "INSERT INTO EXPORT_META_DATA VALUES('EXPORT_SCHEMA_VERSION','3.1\"7')");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    uint32_t gemm = find(model, "void gemm<float>(int)", 0);
    const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[gemm]];
    ck_assert_int_eq(model->slices.kind[gemm], LAC_SLICE_KERNEL);
    ck_assert_int_eq(model->slices.start_ns[gemm], 100); /* t0 is 900 */
    ck_assert_int_eq(model->slices.dur_ns[gemm], 500);
    ck_assert_uint_eq(config->grid[0], 10);
    ck_assert_uint_eq(config->grid[1], 2);
    ck_assert_uint_eq(config->block[0], 128);
    ck_assert_uint_eq(config->registers_per_thread, 32);
    ck_assert_uint_eq(config->shared_memory_bytes, 128);
    ck_assert(config->occupancy_pct < 0);
    uint32_t launch = model->slices.link[gemm];
    ck_assert_str_eq(lac_model_str(model, model->slices.name[launch]), "cudaLaunchKernel_v7000");
    ck_assert_int_eq(model->slices.kind[launch], LAC_SLICE_API);
    ck_assert_uint_eq(model->slices.detail[launch], 0);
    ck_assert_str_eq(lac_model_str(model, track_of(model, launch)->name), "pt_main_thread");
    ck_assert_str_eq(lac_model_str(model, model->processes[track_of(model, launch)->process].name),
                     "python");
    uint32_t unnamed = find(model, "99", 0); /* no such string: its number */
    ck_assert_uint_eq(reported(model, "string_missing"), 1);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[unnamed]].graph_node,
                      UINT64_C(12884901890));                                /* node 2 of graph 3 */
    ck_assert_uint_eq(model->slices.detail[model->slices.link[unnamed]], 2); /* returned */
    ck_assert_uint_eq(model->device_count, 1);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "Big One");
    ck_assert_int_eq(model->devices[0].sm_count, 132);
    ck_assert_int_eq(model->info.t0_ns, 1700000000000000900);
    ck_assert_uint_eq(model->info.event_count, 4);
    ck_assert_uint_eq(model->info.slice_count, 4);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NSYS);
    ck_assert_str_eq(lac_model_str(model, model->info.metadata),
                     "{\"nsys\":{\"schema_version\":\"3.1_7\"}}");
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(correlation_ids_of_two_processes_stay_apart)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,"
            "globalPid,demangledName) VALUES(5000,6000,0,7,42," PID(9) ",1),"
                                                                       "(5000,6000,1,7,42," PID(
                                                                           10) ",2)");
    /* the call of process 10 is later: by time alone it would win for both */
    nsys_file_sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,150,0," TID(
                          9, 9) ",42,3,0),"
                                "(200,250,0," TID(10, 10) ",42,3,0)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    uint32_t a = find(model, "void gemm<float>(int)", 0);
    uint32_t b = find(model, "gemm", 0);
    ck_assert_int_eq(model->slices.start_ns[model->slices.link[a]], 0);
    ck_assert_int_eq(model->slices.start_ns[model->slices.link[b]], 100);
    char args[256];
    uint32_t other = model->slices.corr[a] == 42 ? b : a;
    ck_assert_uint_gt(lac_args_format(model, other, args, sizeof(args)), 0);
    ck_assert_ptr_nonnull(strstr(args, "\"correlation\":42"));
    ck_assert_uint_eq(model->device_count, 2);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* As torchrun's ranks under CUDA_VISIBLE_DEVICES: each calls its one GPU 0. The launcher, which sees
 * both, runs nothing on them. */
static struct lac_model *two_processes_on(struct nsys_file *m, int gpu_of_second)
{
    char sql[256];
    *m = nsys_file_begin();
    nsys_file_tables(m);
    nsys_file_sql(
        m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1000,1500,0,1,7,42," PID(
               9) ",1,2,1,1,1,128,1,1,32,0,0,NULL),(1200,1700,0,1,7,42," PID(10) ",1,2,1,1,1,128,1,"
                                                                                 "1,32,0,0,NULL)");
    nsys_file_sql(m, "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INTEGER, cudaId INTEGER, pid "
                     "INTEGER, uuid TEXT);"
                     "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(1,0,8,'x'),(2,1,8,'y'),"
                     "(1,0,9,'x')");
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(%d,0,10,'y');"
                   "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT);"
                   "INSERT INTO TARGET_INFO_GPU VALUES(1,'one'),(2,'two')",
                   gpu_of_second);
    nsys_file_sql(m, sql);
    nsys_file_done(m);
    return nsys_file_import(m->path);
}

START_TEST(processes_that_call_different_gpus_by_one_number_have_their_own_devices)
{
    struct nsys_file m;
    struct lac_model *model = two_processes_on(&m, 2);
    ck_assert_uint_eq(model->device_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(model->devices[i].id, i + 1);
        ck_assert_str_eq(lac_model_str(model, model->devices[i].name), i == 0 ? "one" : "two");
    }
    ck_assert_uint_eq(reported(model, "devices_by_machine"), 1);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);

    model = two_processes_on(&m, 1); /* both run on one GPU: its number is the one they gave it */
    ck_assert_uint_eq(model->device_count, 1);
    ck_assert_int_eq(model->devices[0].id, 0);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "one");
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(copies_say_where_and_in_what_memory)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
            "streamId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, "
            "graphNodeId INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(1,2,0,7,4096,1,0,2,38654705665),"
            "(3,4,0,7,8,2,2,1,NULL),(5,6,0,7,-5,77,NULL,'x',NULL)");
    nsys_file_sql(
        &m, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, "
            "streamId INTEGER, bytes INTEGER, memKind INTEGER, value INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(7,9,0,7,512,2,0)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    const struct lac_copy *copy =
        &model->copies[model->slices.detail[find(model, "Memcpy HtoD (Pageable -> Device)", 0)]];
    ck_assert_int_eq(copy->bytes, 4096);
    ck_assert_int_eq(copy->copy_kind, LAC_COPY_HTOD);
    ck_assert_int_eq(copy->src, LAC_MEMORY_PAGEABLE);
    ck_assert_uint_eq(copy->graph_node, UINT64_C(38654705665));
    copy = &model->copies[model->slices.detail[find(model, "Memcpy DtoH (Device -> Pinned)", 0)]];
    ck_assert_int_eq(copy->dst, LAC_MEMORY_PINNED);
    ck_assert_uint_eq(copy->graph_node, 0);
    copy = &model->copies[model->slices.detail[find(model, "Memcpy copy (Unknown -> Unknown)", 0)]];
    ck_assert_int_eq(copy->bytes, -1);
    uint32_t memset_slice = find(model, "Memset (Device)", 0);
    ck_assert_int_eq(model->slices.kind[memset_slice], LAC_SLICE_MEMSET);
    ck_assert_int_eq(model->copies[model->slices.detail[memset_slice]].bytes, 512);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(nvtx_has_text_or_its_number_and_operators_lose_their_ids)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m,
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value "
        "INTEGER)");
    nsys_file_sql(
        &m,
        "INSERT INTO NVTX_EVENTS VALUES(100,200,59,'step 1'," TID(
            9,
            9) ",NULL,NULL,0,NULL),"
               "(110,150,59,NULL," TID(
                   9,
                   9) ",NULL,5,3,77),"
                      "(120,130,59,'aten::conv2d, seq = 12, op_id = 34, sizes = [[1, 3], []], "
                      "input_op_ids = "
                      "[(5,0), (1,)]'," TID(
                          9,
                          9) ",NULL,NULL,0,NULL),"
                             "(131,132,59,'aten::relu, op_id = 35'," TID(
                                 9,
                                 9) ",NULL,NULL,0,NULL),"
                                    "(133,134,59,'odd, op_id = 1, more = 2'," TID(
                                        9,
                                        9) ",NULL,NULL,0,NULL),"
                                           "(140,300,60,'crossing'," TID(9, 9) "," TID(
                                               9,
                                               10) ",NULL,0,NULL),"
                                                   "(160,170,60,'beside'," TID(9, 9) "," TID(
                                                       9,
                                                       9) ",NULL,0,NULL),"
                                                          "(180,NULL,34,'mark'," TID(
                                                              9,
                                                              9) ",NULL,NULL,0,NULL),"
                                                                 "(190,NULL,59,'never ended'," TID(
                                                                     9,
                                                                     9) ",NULL,NULL,0,NULL),"
                                                                        "(0,NULL,39,'my "
                                                                        "thread'," TID(
                                                                            9,
                                                                            9) ",NULL,NULL,0,NULL),"
                                                                               "(0,NULL,75,'NCCL "
                                                                               "\"x\"'," TID(
                                                                                   9,
                                                                                   9) ",NULL,NULL,"
                                                                                      "3,NULL),"
                                                                                      "(0,NULL,33,'"
                                                                                      "category'"
                                                                                      "," TID(
                                                                                          9,
                                                                                          9) ",NULL"
                                                                                             ",NULL"
                                                                                             ",3,"
                                                                                             "NULL"
                                                                                             ")");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    char args[512];
    uint32_t slice = find(model, "step 1", 0);
    ck_assert_int_eq(model->slices.kind[slice], LAC_SLICE_RANGE);
    ck_assert_str_eq(lac_model_str(model, track_of(model, slice)->name), "my thread");
    ck_assert_uint_eq(lac_args_format(model, slice, args, sizeof(args)), 0);
    slice = find(model, "from ids", 0);
    (void)lac_args_format(model, slice, args, sizeof(args));
    ck_assert_str_eq(args, "{\"domain\":\"NCCL _x_\",\"payload\":77}");
    slice = find(model, "aten::conv2d", 0);
    ck_assert_int_eq(model->slices.kind[slice], LAC_SLICE_OP);
    (void)lac_args_format(model, slice, args, sizeof(args));
    ck_assert_str_eq(args, "{\"seq\":12,\"op_id\":34,\"sizes\":[[1,3],[]],"
                           "\"input_op_ids\":[[5,0],[1]]}");
    ck_assert_int_eq(model->slices.kind[find(model, "aten::relu", 0)], LAC_SLICE_OP);
    ck_assert_int_eq(model->slices.kind[find(model, "odd, op_id = 1, more = 2", 0)],
                     LAC_SLICE_RANGE);
    ck_assert_int_eq(track_of(model, find(model, "crossing", 0))->kind, LAC_TRACK_ASYNC);
    ck_assert_int_eq(track_of(model, find(model, "beside", 0))->kind, LAC_TRACK_THREAD);
    slice = find(model, "mark", 0);
    ck_assert_int_eq(model->slices.kind[slice], LAC_SLICE_INSTANT);
    ck_assert_int_eq(track_of(model, slice)->kind, LAC_TRACK_MARKS);
    slice = find(model, "never ended", 0);
    ck_assert_int_eq(model->slices.dur_ns[slice], 110); /* to 300, the last end */
    ck_assert_uint_eq(reported(model, "range_not_ended"), 1);
    ck_assert_uint_eq(reported(model, "nvtx_event_not_shown"), 1);
    ck_assert_uint_eq(model->info.event_count, 12);
    ck_assert_uint_eq(model->info.slice_count, 8);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(what_cannot_be_is_repaired_or_dropped_and_counted)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,"
            "globalPid,demangledName) VALUES(100,200,0,7,1," PID(
                9) ",1),"
                   "(NULL,200,0,7,1,0,1),('x',200,0,7,1,0,1),(1.5,2,0,7,1,0,1),"
                   "(9223372036854775807,-9223372036854775807,0,7,1,0,1),"
                   "(300,250,0,7,1,0,1),(300,350,-1,7,1,0,1),(300,350,0,4294967296,1,0,1),"
                   "(300,350,70000,7,1,0,1),(400,500,NULL,NULL,NULL,NULL,NULL),"
                   "(600,700,0,7,99999999999," PID(9) ",1)");
    nsys_file_sql(
        &m, "INSERT INTO StringIds VALUES(50, CAST(x'61ff62' AS TEXT));"
            "CREATE TABLE OSRT_API(start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);"
            "INSERT INTO OSRT_API VALUES(1,2," TID(9, 9) ",50),(3,4," TID(9, 9) ",7)");
    nsys_file_sql(
        &m, "CREATE TABLE SCHED_EVENTS(start INTEGER); INSERT INTO SCHED_EVENTS VALUES(1),(2);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId "
            "INTEGER, streamId INTEGER, syncType INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(10,20,0,7,3);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, end INTEGER, deviceId "
            "INTEGER, streamId INTEGER, graphId INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(10,20,0,7,5)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    ck_assert_uint_eq(reported(model, "row_without_times"), 4);
    ck_assert_uint_eq(reported(model, "row_without_place"), 3);
    ck_assert_uint_eq(reported(model, "negative_duration"), 1);
    ck_assert_uint_eq(reported(model, "bad_utf8"), 1);
    ck_assert_uint_eq(reported(model, "tables_not_read"), 1);
    ck_assert_uint_eq(reported(model, "graphs_as_a_whole"), 1);
    ck_assert_uint_eq(model->info.dropped_count, 7);
    (void)find(model,
               "a\xef\xbf\xbd"
               "b",
               0);
    (void)find(model, "kernel without a name", 0);
    ck_assert_int_eq(model->slices.kind[find(model, "read", 0)], LAC_SLICE_OTHER);
    uint32_t sync = find(model, "Stream Sync", 0);
    ck_assert_int_eq(model->slices.kind[sync], LAC_SLICE_SYNC);
    ck_assert_int_eq(track_of(model, sync)->kind, LAC_TRACK_GPU_RANGE);
    uint32_t graph = find(model, "CUDA graph", 0);
    ck_assert_int_eq(model->slices.kind[graph], LAC_SLICE_KERNEL);
    ck_assert_int_eq(track_of(model, graph)->kind, LAC_TRACK_STREAM);
    ck_assert_uint_eq(model->info.event_count, 15);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(other_databases_are_refused_with_a_sentence)
{
    static const struct {
        const char *sql;
        const char *message;
    } CASES[] = {
        {"CREATE TABLE x(a)", "no Nsight Systems export"},
        {"CREATE TABLE StringTable(a)", "nvprof"},
        {"CREATE TABLE chunk(a); CREATE TABLE name_stat(a)", "Lacuna"},
        {"CREATE VIEW StringIds AS SELECT 1 AS id, 'x' AS value", "no Nsight Systems export"},
    };
    struct lac_error error = {0};
    struct nsys_file m = nsys_file_begin();
    nsys_file_sql(&m, CASES[_i].sql);
    nsys_file_done(&m);
    ck_assert_int_eq(nsys_file_refused(m.path, &error), LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, CASES[_i].message) != NULL, "%s", error.message);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* What the schema of a file would make SQLite do, it does not do here. */
START_TEST(views_and_generated_columns_are_not_run)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_sql(
        &m, "CREATE TABLE StringIds(id INTEGER, value TEXT);"
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
            "SELECT x+1 FROM n) SELECT x AS start, x AS end FROM n;"
            "CREATE TABLE OSRT_API(start INTEGER, end INTEGER AS (start+length(zeroblob(900000000"
            "))), globalTid INTEGER);"
            "INSERT INTO OSRT_API(start, globalTid) VALUES(1,2)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    ck_assert_uint_eq(model->slices.count, 0);
    ck_assert_uint_eq(reported(model, "row_without_times"), 1); /* its end is no column */
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(limits_and_cancelling_end_the_import)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<200000) INSERT "
            "INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,demangledName) SELECT x, "
            "x+1, 0, 7, 1 FROM n");
    nsys_file_done(&m);
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    options.limits.slice_count_max = 1000;
    ck_assert_int_eq(lac_import_file(m.path, &options, nsys_file_keep, &model, &error),
                     LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "slice_count_max"));
    options = nsys_file_options();
    options.limits.name_bytes_max = 5;
    ck_assert_int_eq(lac_import_file(m.path, &options, nsys_file_keep, &model, &error),
                     LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "name_bytes_max"));
    ck_assert_ptr_null(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

struct telling {
    uint64_t calls;
    uint64_t last_bytes;
    bool go_on;
};

static bool tell(void *context, uint64_t read, uint64_t total, uint64_t events)
{
    struct telling *telling = context;
    ck_assert_uint_le(read, total);
    ck_assert_uint_ge(read, telling->last_bytes);
    ck_assert_uint_gt(events, 0);
    telling->last_bytes = read;
    telling->calls++;
    return telling->go_on;
}

START_TEST(progress_is_told_and_can_stop)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<200000) INSERT "
            "INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,demangledName) SELECT x, "
            "x+1, 0, 7, 1 FROM n");
    nsys_file_done(&m);
    struct lac_import_options options = nsys_file_options();
    struct telling telling = {.go_on = true};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    options.progress = tell;
    options.progress_context = &telling;
    ck_assert_int_eq(lac_import_file(m.path, &options, nsys_file_keep, &model, &error), LAC_OK);
    ck_assert_uint_eq(telling.calls, 3);
    lac_model_destroy(model);
    model = NULL;
    telling = (struct telling){.go_on = false};
    ck_assert_int_eq(lac_import_file(m.path, &options, nsys_file_keep, &model, &error), LAC_ERR_IO);
    ck_assert_str_eq(error.message, "canceled");
    ck_assert_uint_eq(telling.calls, 1);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(a_name_with_odd_characters_opens)
{
    struct nsys_file m = nsys_file_begin();
    char path[160];
    nsys_file_tables(&m);
    nsys_file_done(&m);
    (void)snprintf(path, sizeof(path), "%s a%%20?mode=rwc#.sqlite", m.path);
    ck_assert_int_eq(rename(m.path, path), 0);
    struct lac_model *model = nsys_file_import(path);
    ck_assert_uint_eq(model->slices.count, 0);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A limited process reads through a descriptor; the folder above the file is closed to it. */
START_TEST(a_descriptor_alone_is_enough)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1000,1500,0,1,7,42," PID(
                          9) ",1,2,10,2,1,128,1,1,32,100,28,NULL)");
    nsys_file_done(&m);
    FILE *file = fopen(m.path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(unlink(m.path), 0); /* its name leads nowhere now */
    char path[48];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
    struct lac_model *model = nsys_file_import(path);
    ck_assert_uint_eq(find(model, "void gemm<float>(int)", 0), 0);
    lac_model_destroy(model);
    (void)fclose(file);
}
END_TEST

START_TEST(names_that_are_all_empty_are_names)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(&m, "UPDATE StringIds SET value = ''");
    nsys_file_sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1000,1500,0,1,7,42," PID(
                          9) ",1,2,10,2,1,128,1,1,32,100,28,NULL)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    ck_assert_uint_eq(find(model, "", 0), 0);
    lac_model_destroy(model);
    (void)unlink(m.path);
}
END_TEST

START_TEST(memory_is_refused_with_a_sentence)
{
    uint8_t bytes[512] = "SQLite format 3";
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    ck_assert_int_eq(
        lac_import_bytes(bytes, sizeof(bytes), &options, nsys_file_keep, &model, &error),
        LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "SQLite"));
    ck_assert_ptr_null(model);
}
END_TEST

/* What was sampled of a GPU; metrics without a name, and values that are none, are left out. */
START_TEST(gpu_metrics_are_counters)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(&m,
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,contextId,streamId,"
                  "correlationId,globalPid,demangledName,shortName) "
                  "VALUES(1000,9000,0,1,7,1,16777216,1,2)");
    nsys_file_sql(&m,
                  "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INTEGER, sourceId INTEGER, "
                  "typeName TEXT, metricId INTEGER, metricName TEXT);"
                  "INSERT INTO TARGET_INFO_GPU_METRICS VALUES(257,1,'t',3,'SMs Active [%]');"
                  "CREATE TABLE GPU_METRICS(timestamp INTEGER, typeId INTEGER, metricId INTEGER,"
                  " value);"
                  "INSERT INTO GPU_METRICS VALUES(2000,257,3,40),(3000,257,3,62.5),"
                  "(3500,257,4,1),(4000,257,3,'many'),(NULL,257,3,1),(5000,257,3,9e999);");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    (void)unlink(m.path);
    uint32_t found = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER) {
            found++;
            ck_assert_str_eq(lac_model_str(model, track->name), "GPU 1: SMs Active [%]");
            ck_assert_int_eq(track->device, 1);
            ck_assert_uint_eq(track->count, 2);
            ck_assert_double_eq_tol(model->sample_value[track->first + 1], 62.5, 1e-12);
        }
    }
    ck_assert_uint_eq(found, 1);
    lac_model_destroy(model);
}
END_TEST

/* Frames lie in the order of their depth, not of the rows; those without a symbol are their
 * library's; what has no stack, and what belongs to no sample, is left out. */
START_TEST(sampled_stacks_are_a_profile)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m,
        "INSERT INTO StringIds VALUES(20,'train'),(21,'forward'),(22,'0xdead'),"
        "(23,'/opt/lib/libcuda.so.1'),(24,'backward');"
        "CREATE TABLE COMPOSITE_EVENTS(id INTEGER, start INTEGER, cpu INTEGER, threadState "
        "INTEGER, globalTid INTEGER, cpuCycles INTEGER);"
        "INSERT INTO COMPOSITE_EVENTS VALUES(3,3000000,0,1," TID(9, 9) ",1),(1,1000000,0,1," TID(
            9,
            9) ",1),(2,2000000,0,1," TID(9,
                                         9) ",1),(4,2500000,0,1," TID(9,
                                                                      10) ",1),"
                                                                          "(5,61000000,0,1," TID(
                                                                              9,
                                                                              9) ",1),(6,NULL,0,"
                                                                                 "1," TID(9,
                                                                                          9) ",1);"
                                                                                             "CREAT"
                                                                                             "E "
                                                                                             "TABLE"
                                                                                             " SAMP"
                                                                                             "LING_"
                                                                                             "CALLC"
                                                                                             "HAINS"
                                                                                             "(id "
                                                                                             "INTEG"
                                                                                             "ER, "
                                                                                             "symbo"
                                                                                             "l "
                                                                                             "INTEG"
                                                                                             "ER, "
                                                                                             "modul"
                                                                                             "e "
                                                                                             "INTEG"
                                                                                             "ER, "
                                                                                             "kerne"
                                                                                             "lMode"
                                                                                             " INTE"
                                                                                             "GER, "
                                                                                             "unres"
                                                                                             "olved"
                                                                                             " INTE"
                                                                                             "GER, "
                                                                                             "stack"
                                                                                             "Depth"
                                                                                             " INTE"
                                                                                             "GER);"
                                                                                             "INSER"
                                                                                             "T "
                                                                                             "INTO "
                                                                                             "SAMPL"
                                                                                             "ING_"
                                                                                             "CALLC"
                                                                                             "HAINS"
                                                                                             " VALU"
                                                                                             "ES(1,"
                                                                                             "20,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "1),("
                                                                                             "1,21,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "0),"
                                                                                             "(2,"
                                                                                             "22,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "1,0),"
                                                                                             "(2,"
                                                                                             "20,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "1),("
                                                                                             "3,24,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "0),"
                                                                                             "(3,"
                                                                                             "20,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "1),("
                                                                                             "9,20,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "0),("
                                                                                             "1,'x'"
                                                                                             ",23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "2),"
                                                                                             "(5,"
                                                                                             "24,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "0),("
                                                                                             "5,20,"
                                                                                             "23,"
                                                                                             "NULL,"
                                                                                             "NULL,"
                                                                                             "1)");
    nsys_file_done(&m);
    struct lac_model *model = nsys_file_import(m.path);
    (void)unlink(m.path);
    uint32_t train = find(model, "train", 0);
    uint32_t forward = find(model, "forward", 0);
    uint32_t cuda = find(model, "[libcuda.so.1]", 0);
    ck_assert_uint_eq(model->slices.count, 6);
    ck_assert_int_eq(track_of(model, train)->kind, LAC_TRACK_PROFILE);
    ck_assert_int_eq(model->info.profile_scale, 1000000);
    ck_assert_int_eq(model->slices.dur_ns[train], 3000000);
    ck_assert_int_eq(model->slices.dur_ns[forward], 1000000);
    ck_assert_int_eq(model->slices.start_ns[cuda] - model->slices.start_ns[forward], 1000000);
    ck_assert_int_eq(model->slices.dur_ns[find(model, "train", 1)], 1000000);
    ck_assert_uint_eq(model->info.profile_count, 1);
    ck_assert_uint_eq(model->info.weight_unit, 0);
    ck_assert_str_eq(lac_model_str(model, model->info.profile_unit), "samples");
    ck_assert_uint_eq(reported(model, "row_without_times"), 1);
    /* four samples of 1 ms in the first 20 ms, none, and one */
    ck_assert_uint_eq(model->sample_count, 3);
    ck_assert_double_eq_tol(model->sample_value[0], 0.2, 1e-9);
    ck_assert_double_eq_tol(model->sample_value[1], 0, 1e-9);
    ck_assert_double_eq_tol(model->sample_value[2], 0.05, 1e-9);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_nsys");
    TCase *made = tcase_create("made");
    tcase_set_timeout(made, 60);
    tcase_add_test(made, kernels_carry_their_launch_and_what_the_row_says);
    tcase_add_test(made, correlation_ids_of_two_processes_stay_apart);
    tcase_add_test(made, processes_that_call_different_gpus_by_one_number_have_their_own_devices);
    tcase_add_test(made, copies_say_where_and_in_what_memory);
    tcase_add_test(made, nvtx_has_text_or_its_number_and_operators_lose_their_ids);
    tcase_add_test(made, what_cannot_be_is_repaired_or_dropped_and_counted);
    tcase_add_loop_test(made, other_databases_are_refused_with_a_sentence, 0, 4);
    tcase_add_test(made, views_and_generated_columns_are_not_run);
    tcase_add_test(made, limits_and_cancelling_end_the_import);
    tcase_add_test(made, progress_is_told_and_can_stop);
    tcase_add_test(made, a_name_with_odd_characters_opens);
    tcase_add_test(made, a_descriptor_alone_is_enough);
    tcase_add_test(made, names_that_are_all_empty_are_names);
    tcase_add_test(made, memory_is_refused_with_a_sentence);
    tcase_add_test(made, gpu_metrics_are_counters);
    tcase_add_test(made, sampled_stacks_are_a_profile);
    suite_add_tcase(suite, made);
    return check_main(suite);
}
