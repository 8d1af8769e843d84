/* Nsight Systems exports: real ones against their truth, made ones row by row, damaged ones. */

#include "analysis/import/import.h"
#include "analysis/model/args.h"

#include <check.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAL "../shared/traces/"

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct lac_model **kept = context;
    (void)reterr;
    ck_assert_ptr_null(*kept);
    *kept = model;
    return LAC_OK;
}

static struct lac_import_options usual(void)
{
    struct lac_import_options options = {.name = NULL};
    lac_import_limits_default(&options.limits);
    return options;
}

static struct lac_model *imported(const char *path)
{
    struct lac_import_options options = usual();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_import_file(path, &options, keep, &model, &error);
    ck_assert_msg(status == LAC_OK, "%s: %s", path, error.message);
    ck_assert(lac_model_is_valid(model));
    return model;
}

static enum lac_status refused(const char *path, struct lac_error *error)
{
    struct lac_import_options options = usual();
    struct lac_model *model = NULL;
    enum lac_status status = lac_import_file(path, &options, keep, &model, error);
    ck_assert_ptr_null(model);
    return status;
}

/* ---- made files ---- */

struct made {
    char path[128];
    sqlite3 *db;
};

static void sql(struct made *made, const char *text)
{
    char *message = NULL;
    int code = sqlite3_exec(made->db, text, NULL, NULL, &message);
    ck_assert_msg(code == SQLITE_OK, "%s: %s", text, message);
}

static struct made making(void)
{
    struct made made = {.db = NULL};
    (void)snprintf(made.path, sizeof(made.path), "/tmp/lac_nsys_%d_XXXXXX", (int)getpid());
    int fd = mkstemp(made.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(sqlite3_open(made.path, &made.db), SQLITE_OK);
    return made;
}

static void done(struct made *made)
{
    ck_assert_int_eq(sqlite3_close(made->db), SQLITE_OK);
    made->db = NULL;
}

/* Global ids: machine 1, process and thread. */
#define PID(p)    "(281474976710656+" #p "*16777216)"
#define TID(p, t) "(281474976710656+" #p "*16777216+" #t ")"

static void base_tables(struct made *made)
{
    sql(made, "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
              "INSERT INTO StringIds VALUES(1,'void gemm<float>(int)'),(2,'gemm'),"
              "(3,'cudaLaunchKernel_v7000'),(4,'cudaMemcpyAsync_v3020'),(5,'from ids'),"
              "(6,'pt_main_thread'),(7,'read');");
    sql(made,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
        "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
        "demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
        "blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, "
        "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER)");
    sql(made, "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass "
              "INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue "
              "INTEGER)");
}

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
    struct made m = making();
    base_tables(&m);
    sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1000,1500,0,1,7,42," PID(
                9) ",1,2,10,2,1,128,1,1,32,100,28,NULL),"
                   "(1600,1700,0,1,7,43," PID(9) ",99,2,1,1,1,64,1,1,8,0,0,12884901890)");
    sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(900,950,0," TID(
                9, 9) ",42,3,0),"
                      "(1550,1580,0," TID(9, 10) ",43,3,2)");
    sql(&m, "CREATE TABLE ThreadNames(nameId INTEGER, globalTid INTEGER);"
            "INSERT INTO ThreadNames VALUES(6," TID(9, 9) "),(7," TID(
                5, 5) ");"
                      "CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);"
                      "INSERT INTO PROCESSES VALUES(" PID(9) ",9,'python'),"
                                                             "(" PID(5) ",5,'other')");
    sql(&m, "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, smCount INTEGER, totalMemory "
            "INTEGER, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
            "INSERT INTO TARGET_INFO_GPU VALUES(0,'Big One',132,1000,0,9,0),(1,'x',1,1,1,1,1);"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000);"
            "CREATE TABLE EXPORT_META_DATA(name TEXT, value TEXT);"
            "INSERT INTO EXPORT_META_DATA VALUES('EXPORT_SCHEMA_VERSION','3.1\"7')");
    done(&m);
    struct lac_model *model = imported(m.path);
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
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[unnamed]].graph_node, 2);
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
    struct made m = making();
    base_tables(&m);
    sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,"
            "globalPid,demangledName) VALUES(5000,6000,0,7,42," PID(9) ",1),"
                                                                       "(5000,6000,1,7,42," PID(
                                                                           10) ",2)");
    /* the call of process 10 is later: by time alone it would win for both */
    sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,150,0," TID(
                9, 9) ",42,3,0),"
                      "(200,250,0," TID(10, 10) ",42,3,0)");
    done(&m);
    struct lac_model *model = imported(m.path);
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

START_TEST(copies_say_where_and_in_what_memory)
{
    struct made m = making();
    base_tables(&m);
    sql(&m, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
            "streamId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(1,2,0,7,4096,1,0,2),(3,4,0,7,8,2,2,1),"
            "(5,6,0,7,-5,77,NULL,'x')");
    sql(&m, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, "
            "streamId INTEGER, bytes INTEGER, memKind INTEGER, value INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(7,9,0,7,512,2,0)");
    done(&m);
    struct lac_model *model = imported(m.path);
    const struct lac_copy *copy =
        &model->copies[model->slices.detail[find(model, "Memcpy HtoD (Pageable -> Device)", 0)]];
    ck_assert_int_eq(copy->bytes, 4096);
    ck_assert_int_eq(copy->copy_kind, LAC_COPY_HTOD);
    ck_assert_int_eq(copy->src, LAC_MEMORY_PAGEABLE);
    copy = &model->copies[model->slices.detail[find(model, "Memcpy DtoH (Device -> Pinned)", 0)]];
    ck_assert_int_eq(copy->dst, LAC_MEMORY_PINNED);
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
    struct made m = making();
    base_tables(&m);
    sql(&m,
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value "
        "INTEGER)");
    sql(&m,
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
    done(&m);
    struct lac_model *model = imported(m.path);
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
    struct made m = making();
    base_tables(&m);
    sql(&m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,"
            "globalPid,demangledName) VALUES(100,200,0,7,1," PID(
                9) ",1),"
                   "(NULL,200,0,7,1,0,1),('x',200,0,7,1,0,1),(1.5,2,0,7,1,0,1),"
                   "(9223372036854775807,-9223372036854775807,0,7,1,0,1),"
                   "(300,250,0,7,1,0,1),(300,350,-1,7,1,0,1),(300,350,0,4294967296,1,0,1),"
                   "(300,350,70000,7,1,0,1),(400,500,NULL,NULL,NULL,NULL,NULL),"
                   "(600,700,0,7,99999999999," PID(9) ",1)");
    sql(&m, "INSERT INTO StringIds VALUES(50, CAST(x'61ff62' AS TEXT));"
            "CREATE TABLE OSRT_API(start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);"
            "INSERT INTO OSRT_API VALUES(1,2," TID(9, 9) ",50),(3,4," TID(9, 9) ",7)");
    sql(&m, "CREATE TABLE SCHED_EVENTS(start INTEGER); INSERT INTO SCHED_EVENTS VALUES(1),(2);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId "
            "INTEGER, streamId INTEGER, syncType INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(10,20,0,7,3);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, end INTEGER, deviceId "
            "INTEGER, streamId INTEGER, graphId INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(10,20,0,7,5)");
    done(&m);
    struct lac_model *model = imported(m.path);
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
    ck_assert_int_eq(model->slices.kind[find(model, "CUDA graph", 0)], LAC_SLICE_GPU_RANGE);
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
    struct made m = making();
    sql(&m, CASES[_i].sql);
    done(&m);
    ck_assert_int_eq(refused(m.path, &error), LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, CASES[_i].message) != NULL, "%s", error.message);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* What the schema of a file would make SQLite do, it does not do here. */
START_TEST(views_and_generated_columns_are_not_run)
{
    struct made m = making();
    sql(&m, "CREATE TABLE StringIds(id INTEGER, value TEXT);"
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
            "SELECT x+1 FROM n) SELECT x AS start, x AS end FROM n;"
            "CREATE TABLE OSRT_API(start INTEGER, end INTEGER AS (start+length(zeroblob(900000000"
            "))), globalTid INTEGER);"
            "INSERT INTO OSRT_API(start, globalTid) VALUES(1,2)");
    done(&m);
    struct lac_model *model = imported(m.path);
    ck_assert_uint_eq(model->slices.count, 0);
    ck_assert_uint_eq(reported(model, "row_without_times"), 1); /* its end is no column */
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(limits_and_cancelling_end_the_import)
{
    struct made m = making();
    base_tables(&m);
    sql(&m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<200000) INSERT "
            "INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,demangledName) SELECT x, "
            "x+1, 0, 7, 1 FROM n");
    done(&m);
    struct lac_import_options options = usual();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    options.limits.slice_count_max = 1000;
    ck_assert_int_eq(lac_import_file(m.path, &options, keep, &model, &error), LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "slice_count_max"));
    options = usual();
    options.limits.name_bytes_max = 5;
    ck_assert_int_eq(lac_import_file(m.path, &options, keep, &model, &error), LAC_ERR_LIMIT);
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
    struct made m = making();
    base_tables(&m);
    sql(&m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<200000) INSERT "
            "INTO CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,demangledName) SELECT x, "
            "x+1, 0, 7, 1 FROM n");
    done(&m);
    struct lac_import_options options = usual();
    struct telling telling = {.go_on = true};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    options.progress = tell;
    options.progress_context = &telling;
    ck_assert_int_eq(lac_import_file(m.path, &options, keep, &model, &error), LAC_OK);
    ck_assert_uint_eq(telling.calls, 3);
    lac_model_destroy(model);
    model = NULL;
    telling = (struct telling){.go_on = false};
    ck_assert_int_eq(lac_import_file(m.path, &options, keep, &model, &error), LAC_ERR_IO);
    ck_assert_str_eq(error.message, "cancelled");
    ck_assert_uint_eq(telling.calls, 1);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

START_TEST(a_name_with_odd_characters_opens)
{
    struct made m = making();
    char path[160];
    base_tables(&m);
    done(&m);
    (void)snprintf(path, sizeof(path), "%s a%%20?mode=rwc#.sqlite", m.path);
    ck_assert_int_eq(rename(m.path, path), 0);
    struct lac_model *model = imported(path);
    ck_assert_uint_eq(model->slices.count, 0);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(memory_is_refused_with_a_sentence)
{
    uint8_t bytes[512] = "SQLite format 3";
    struct lac_import_options options = usual();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    ck_assert_int_eq(lac_import_bytes(bytes, sizeof(bytes), &options, keep, &model, &error),
                     LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "SQLite"));
    ck_assert_ptr_null(model);
}
END_TEST

/* ---- damaged files ---- */

static uint32_t random_state = 1;

static uint32_t upto(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

static char *bytes_of(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*ret_size);
    ck_assert_uint_eq(fread(bytes, 1, *ret_size, file), *ret_size);
    (void)fclose(file);
    return bytes;
}

/* Whatever is damaged: an error with a sentence, or a model that holds together. */
static void survive(const char *path, const char *bytes, size_t size)
{
    struct lac_import_options options = usual();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    enum lac_status status = lac_import_file(path, &options, keep, &model, &error);
    if (status == LAC_OK) {
        ck_assert(lac_model_is_valid(model));
        lac_model_destroy(model);
    } else {
        ck_assert_ptr_null(model);
        ck_assert_uint_gt(strlen(error.message), 5);
    }
}

static void damage(const char *bytes, size_t size, int rounds)
{
    char path[64];
    char *copy = malloc(size);
    ck_assert_ptr_nonnull(copy);
    (void)snprintf(path, sizeof(path), "/tmp/lac_damaged_%d.sqlite", (int)getpid());
    for (int round = 0; round < rounds; round++) {
        memcpy(copy, bytes, size);
        size_t kept = size;
        uint32_t flips = 1 + upto(30);
        for (uint32_t i = 0; i < flips; i++) {
            /* half of them where it hurts: the first page and the headers of pages */
            size_t at = upto(2) == 0 ? upto((uint32_t)size)
                                     : upto((uint32_t)(size / 4096)) * 4096 + upto(100);
            copy[at < size ? at : size - 1] = (char)upto(256);
        }
        if (upto(5) == 0) {
            kept = 100 + upto((uint32_t)size - 100);
        }
        memcpy(copy, "SQLite format 3", 16);
        survive(path, copy, kept);
    }
    ck_assert_int_eq(unlink(path), 0);
    free(copy);
}

START_TEST(a_damaged_file_harms_nobody)
{
    struct made m = making();
    base_tables(&m);
    sql(&m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<800) INSERT INTO "
            "CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,globalPid,"
            "demangledName,graphNodeId) SELECT x*100, x*100+50, x%2, 7, x, " PID(9) ", 1+x%7, x "
                                                                                    "FROM n");
    sql(&m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<800) INSERT INTO "
            "CUPTI_ACTIVITY_KIND_RUNTIME SELECT x*100-50, x*100-20, 0, " TID(9, 9) ", x, 3, 0 "
                                                                                   "FROM n");
    sql(&m, "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
            "globalTid INTEGER, textId INTEGER);"
            "INSERT INTO NVTX_EVENTS SELECT start, end, 59, 'aten::x, op_id = ' || start, " TID(
                9, 9) ", NULL FROM CUPTI_ACTIVITY_KIND_KERNEL");
    done(&m);
    size_t size = 0;
    char *bytes = bytes_of(m.path, &size);
    random_state = (uint32_t)_i + 1;
    damage(bytes, size, 40);
    free(bytes);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* A B-tree of a handful of pages whose parents name the same child over and over: SQLite walks it
 * and finds millions of rows. */
static size_t repeat_pages(const uint8_t *whole, size_t page_size, uint8_t *out)
{
    size_t pages = 1;
    uint32_t at = 2; /* the only table's root */
    memcpy(out, whole, page_size);
    for (;; pages++) {
        uint8_t *page = out + pages * page_size;
        memcpy(page, whole + (at - 1) * page_size, page_size);
        if (page[0] != 5) {
            break; /* a leaf */
        }
        uint32_t cells = (uint32_t)page[3] << 8 | page[4];
        uint32_t next = (uint32_t)pages + 2;
        for (uint32_t i = 0; i <= cells; i++) {
            uint8_t *child =
                i == cells ? page + 8 : page + ((uint32_t)page[12 + 2 * i] << 8 | page[13 + 2 * i]);
            at = i == 0 ? (uint32_t)child[2] << 8 | child[3] | (uint32_t)child[1] << 16 : at;
            child[0] = 0;
            child[1] = 0;
            child[2] = (uint8_t)(next >> 8);
            child[3] = (uint8_t)next;
        }
    }
    pages++;
    memset(out + 28, 0, 12); /* size in pages, free list */
    out[31] = (uint8_t)pages;
    return pages * page_size;
}

START_TEST(pages_that_name_each_other_do_not_multiply)
{
    struct made m = making();
    sql(&m, "PRAGMA page_size=512; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<60000) INSERT "
            "INTO StringIds SELECT x, 'name' FROM n");
    done(&m);
    size_t size = 0;
    char *whole = bytes_of(m.path, &size);
    uint8_t small[512 * 8];
    size_t small_size = repeat_pages((const uint8_t *)whole, 512, small);
    FILE *file = fopen(m.path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(small, 1, small_size, file), small_size);
    ck_assert_int_eq(fclose(file), 0);
    struct lac_error error = {0};
    ck_assert_int_eq(refused(m.path, &error), LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, "more rows than the file can hold") != NULL, "%s",
                  error.message);
    free(whole);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* ---- real files ---- */

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(object, key, &value), "no %s", key);
    return value;
}

/* Microseconds with three decimals, exactly. */
static int64_t ns_of(struct json_object *value)
{
    return llround(json_object_get_double(value) * 1000.0);
}

struct work {
    int64_t start_ns;
    int64_t end_ns;
};

static int by_start(const void *a, const void *b)
{
    const struct work *left = a;
    const struct work *right = b;
    if (left->start_ns != right->start_ns) {
        return left->start_ns < right->start_ns ? -1 : 1;
    }
    return left->end_ns < right->end_ns ? -1 : left->end_ns > right->end_ns;
}

static bool is_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

static void check_device(const struct lac_model *model, int64_t id, struct json_object *truth)
{
    struct work *work = calloc(model->slices.count + 1, sizeof(*work));
    uint64_t count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t i = track->first; track->device == id && i < track->first + track->count;
             i++) {
            if (is_work(model->slices.kind[i])) {
                work[count++] = (struct work){model->slices.start_ns[i],
                                              model->slices.start_ns[i] + model->slices.dur_ns[i]};
            }
        }
    }
    qsort(work, count, sizeof(*work), by_start);
    int64_t end_ns = work[0].end_ns;
    int64_t busy_ns = work[0].end_ns - work[0].start_ns;
    int64_t gaps_ns = 0;
    int64_t longest_ns = 0;
    int64_t gap_count = 0;
    for (uint64_t i = 1; i < count; i++) {
        int64_t gap_ns = work[i].start_ns - end_ns;
        if (gap_ns >= 10000) {
            gap_count++;
            gaps_ns += gap_ns;
            longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
        }
        int64_t from = gap_ns > 0 ? work[i].start_ns : end_ns;
        busy_ns += work[i].end_ns > from ? work[i].end_ns - from : 0;
        end_ns = work[i].end_ns > end_ns ? work[i].end_ns : end_ns;
    }
    ck_assert_uint_eq(count, (uint64_t)json_object_get_int64(member(truth, "gpu_events")));
    ck_assert_int_eq(end_ns - work[0].start_ns, ns_of(member(truth, "span_us")));
    ck_assert_int_eq(busy_ns, ns_of(member(truth, "busy_us")));
    ck_assert_int_eq(gap_count, json_object_get_int64(member(truth, "idle_gaps_ge_10us")));
    ck_assert_int_eq(gaps_ns, ns_of(member(truth, "idle_gaps_ge_10us_total_us")));
    ck_assert_int_eq(longest_ns, ns_of(member(truth, "longest_gap_us")));
    free(work);
}

static void check_kernels(const struct lac_model *model, struct json_object *truth)
{
    int64_t total_ns = 0;
    int64_t count = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
            total_ns += model->slices.dur_ns[i];
            count++;
        }
    }
    ck_assert_int_eq(count, json_object_get_int64(member(truth, "kernels")));
    ck_assert_int_eq(total_ns, ns_of(member(truth, "kernel_time_us")));
    struct json_object *top = member(truth, "top10_kernels");
    for (size_t k = 0; k < json_object_array_length(top); k++) {
        struct json_object *row = json_object_array_get_idx(top, k);
        const char *name = json_object_get_string(member(row, "name"));
        total_ns = 0;
        count = 0;
        for (uint64_t i = 0; i < model->slices.count; i++) {
            if (model->slices.kind[i] == LAC_SLICE_KERNEL &&
                strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
                total_ns += model->slices.dur_ns[i];
                count++;
            }
        }
        ck_assert_int_eq(count, json_object_get_int64(member(row, "count")));
        ck_assert_int_eq(total_ns, ns_of(member(row, "total_us")));
    }
}

static void check_copies(const struct lac_model *model, struct json_object *truth)
{
    struct json_object *rows = NULL;
    if (!json_object_object_get_ex(truth, "memcpy", &rows)) {
        return;
    }
    static const char *const MEMORY[] = {"Unknown", "Pageable", "Pinned",
                                         "Device",  "Array",    "Managed"};
    for (size_t r = 0; r < json_object_array_length(rows); r++) {
        struct json_object *row = json_object_array_get_idx(rows, r);
        const char *src = json_object_get_string(member(row, "src"));
        const char *dst = json_object_get_string(member(row, "dst"));
        const char *kind = json_object_get_string(member(row, "kind"));
        enum lac_copy_kind wanted = strcmp(kind, "Host-to-Device") == 0     ? LAC_COPY_HTOD
                                    : strcmp(kind, "Device-to-Host") == 0   ? LAC_COPY_DTOH
                                    : strcmp(kind, "Device-to-Device") == 0 ? LAC_COPY_DTOD
                                    : strcmp(kind, "Peer-to-Peer") == 0     ? LAC_COPY_PTOP
                                                                            : LAC_COPY_UNKNOWN;
        int64_t count = 0;
        int64_t bytes = 0;
        int64_t total_ns = 0;
        ck_assert_int_ne(wanted, LAC_COPY_UNKNOWN);
        for (uint64_t i = 0; i < model->slices.count; i++) {
            const struct lac_copy *copy = &model->copies[model->slices.detail[i]];
            if (model->slices.kind[i] == LAC_SLICE_COPY && copy->copy_kind == wanted &&
                strcmp(MEMORY[copy->src], src) == 0 && strcmp(MEMORY[copy->dst], dst) == 0) {
                count++;
                bytes += copy->bytes;
                total_ns += model->slices.dur_ns[i];
            }
        }
        ck_assert_int_eq(count, json_object_get_int64(member(row, "count")));
        ck_assert_int_eq(bytes, json_object_get_int64(member(row, "bytes")));
        ck_assert_int_eq(total_ns, ns_of(member(row, "total_us")));
    }
}

/* Every operation whose call is in the file is linked to it, in its own process. */
static void check_links(const struct lac_model *model)
{
    uint64_t work = 0;
    uint64_t linked = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (!is_work(model->slices.kind[i])) {
            continue;
        }
        work++;
        uint32_t link = model->slices.link[i];
        linked += link != LAC_NONE;
        ck_assert(link == LAC_NONE || model->slices.corr[link] == model->slices.corr[i]);
        ck_assert(link == LAC_NONE || model->slices.start_ns[link] <= model->slices.start_ns[i]);
    }
    ck_assert_uint_ge(linked * 100, work * 90);
}

static const char *const REAL_NAMES[] = {"nevakrien_report1", "nsysai_mfu_2gpu_before",
                                         "nsysai_mock", "pipit_perlmutter-cloverleaf-cuda"};

START_TEST(real_exports_equal_their_truth)
{
    char path[256];
    (void)snprintf(path, sizeof(path), REAL "truth/nsys__%s.nsys.json", REAL_NAMES[_i]);
    struct json_object *truth = json_object_from_file(path);
    ck_assert_ptr_nonnull(truth);
    (void)snprintf(path, sizeof(path), REAL "nsys/%s.sqlite", REAL_NAMES[_i]);
    struct lac_model *model = imported(path);
    check_kernels(model, truth);
    check_copies(model, truth);
    check_links(model);
    struct json_object *devices = member(truth, "devices");
    uint32_t device_count = 0;
    json_object_object_foreach(devices, id, device)
    {
        check_device(model, atoll(id), device);
        device_count++;
    }
    ck_assert_uint_eq(model->device_count, device_count);
    struct json_object *nvtx = NULL;
    if (json_object_object_get_ex(truth, "nvtx_ranges", &nvtx)) {
        int64_t ranges = 0;
        for (uint64_t i = 0; i < model->slices.count; i++) {
            ranges +=
                model->slices.kind[i] == LAC_SLICE_RANGE || model->slices.kind[i] == LAC_SLICE_OP;
        }
        ck_assert_int_eq(ranges, json_object_get_int64(member(nvtx, "count")));
    }
    ck_assert_uint_eq(model->info.dropped_count, 0);
    json_object_put(truth);
    lac_model_destroy(model);
}
END_TEST

START_TEST(damaged_real_exports_harm_nobody)
{
    char path[256];
    (void)snprintf(path, sizeof(path), REAL "nsys/%s.sqlite", REAL_NAMES[2]);
    size_t size = 0;
    char *bytes = bytes_of(path, &size);
    random_state = (uint32_t)_i + 100;
    damage(bytes, size, 25);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_nsys");
    TCase *made = tcase_create("made");
    tcase_set_timeout(made, 60);
    tcase_add_test(made, kernels_carry_their_launch_and_what_the_row_says);
    tcase_add_test(made, correlation_ids_of_two_processes_stay_apart);
    tcase_add_test(made, copies_say_where_and_in_what_memory);
    tcase_add_test(made, nvtx_has_text_or_its_number_and_operators_lose_their_ids);
    tcase_add_test(made, what_cannot_be_is_repaired_or_dropped_and_counted);
    tcase_add_loop_test(made, other_databases_are_refused_with_a_sentence, 0, 4);
    tcase_add_test(made, views_and_generated_columns_are_not_run);
    tcase_add_test(made, limits_and_cancelling_end_the_import);
    tcase_add_test(made, progress_is_told_and_can_stop);
    tcase_add_test(made, a_name_with_odd_characters_opens);
    tcase_add_test(made, memory_is_refused_with_a_sentence);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 120);
    tcase_add_loop_test(damaged, a_damaged_file_harms_nobody, 0, 4);
    tcase_add_test(damaged, pages_that_name_each_other_do_not_multiply);
    suite_add_tcase(suite, made);
    suite_add_tcase(suite, damaged);
    if (access(REAL, R_OK) == 0) {
        TCase *real = tcase_create("real");
        tcase_set_timeout(real, 60);
        tcase_add_loop_test(real, real_exports_equal_their_truth, 0, 4);
        tcase_add_loop_test(real, damaged_real_exports_harm_nobody, 0, 2);
        suite_add_tcase(suite, real);
    } else {
        printf("skip: real Nsight Systems exports, there is no folder " REAL "\n");
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
