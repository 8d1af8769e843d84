/* Databases of nvprof, as SQLite and as SQL text, made row by row in the tables that nvprof writes. */

#include "analysis/diagnose/result/analysis.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/nsys_file.h"
#include "tests/support/real_traces.h"
#include "tests/support/rounds.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char DATABASE[] =
    "PRAGMA foreign_keys=OFF;\n"
    "BEGIN TRANSACTION;\n"
    "CREATE TABLE StringTable( _id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL );\n"
    "INSERT INTO StringTable VALUES(1,'_Z4gemmPfS_i');\n"
    "INSERT INTO \"StringTable\" VALUES(2,'it''s; a step'),(3,'Tesla V100'),(4,'mark');\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY, start INT, end "
    "INT, deviceId INT, contextId INT, streamId INT, gridX INT, gridY INT, gridZ INT, blockX INT, "
    "blockY INT, blockZ INT, registersPerThread INT, staticSharedMemory INT, dynamicSharedMemory "
    "INT, correlationId INT, name INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL "
    "VALUES(1,1500000000000002000,1500000000000005000,0,1,7,10,2,1,128,1,1,32,100,28,42,1);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(_id_ INTEGER PRIMARY KEY, copyKind INT, srcKind INT, "
    "dstKind INT, flags INT, bytes INT, start INT, end INT, deviceId INT, contextId INT, streamId "
    "INT, correlationId INT, runtimeCorrelationId INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY "
    "VALUES(1,1,1,3,0,4096,1500000000000000500,1500000000000001500,0,1,7,41,0);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(_id_ INTEGER PRIMARY KEY, value INT, bytes INT, start "
    "INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, memoryKind INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET "
    "VALUES(1,0,64,1500000000000005000,1500000000000005100,0,1,7,43,3);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end "
    "INT, processId INT, threadId INT, correlationId INT, returnValue INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "
    "VALUES(1,31,1500000000000000000,1500000000000001600,99,3243177728,41,0),(2,211,"
    "1500000000000001700,1500000000000001900,99,3243177728,42,0),(3,9999,1500000000000006000,"
    "1500000000000006100,99,-5,44,2);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_DRIVER(_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end "
    "INT, processId INT, threadId INT, correlationId INT, returnValue INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_DRIVER "
    "VALUES(1,1,1500000000000000000,1500000000000000010,99,3243177728,50,0);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY, flags INT, timestamp INT, "
    "id "
    "INT, objectKind INT, objectId BLOB, name INT, domain INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES(1,2,1500000000000000000,1,2,"
    "X'6300000000f74ec1',2,0),(2,4,1500000000000006000,1,2,X'6300000000f74ec1',0,0),"
    "(3,1,1500000000000000100,2,2,X'6300000000f74ec1',4,0),"
    "(4,2,1500000000000000200,3,2,X'6300000000f74ec1',4,0);\n"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(_id_ INTEGER PRIMARY KEY, id INT, name INT, "
    "numMultiprocessors INT, globalMemorySize INT, computeCapabilityMajor INT, "
    "computeCapabilityMinor INT);\n"
    "INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES(1,0,3,80,17000000000,7,0);\n"
    "CREATE INDEX i ON StringTable(value);\n"
    "COMMIT;\n";

static void check_model(const struct lac_model *model)
{
    ck_assert(lac_model_is_valid(model));
    uint64_t gemm = find_slice(model, "gemm(float*, float*, int)");
    uint64_t launch = find_slice(model, "cudaLaunchKernel");
    uint64_t copy = find_slice(model, "Memcpy HtoD (Pageable -> Device)");
    uint64_t step = find_slice(model, "it's; a step");
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NVPROF);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1500000000000000000));
    ck_assert_int_eq(model->slices.start_ns[gemm], 2000);
    ck_assert_int_eq(model->slices.dur_ns[gemm], 3000);
    ck_assert_uint_eq(model->slices.link[gemm], launch);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[gemm]].shared_memory_bytes, 128);
    ck_assert_int_eq(model->copies[model->slices.detail[copy]].bytes, 4096);
    ck_assert_str_eq(lac_model_str(model, model->slices.name[model->slices.link[copy]]),
                     "cudaMemcpy");
    ck_assert_uint_ne(find_slice(model, "Memset (Device)"), UINT64_MAX);
    ck_assert_uint_ne(find_slice(model, "cuInit"), UINT64_MAX);
    ck_assert_uint_ne(find_slice(model, "runtime call 9999"), UINT64_MAX);
    ck_assert_int_eq(model->slices.kind[step], LAC_SLICE_RANGE);
    ck_assert_int_eq(model->slices.dur_ns[step], 6000);
    uint32_t thread = lac_model_track_of(model, step);
    ck_assert_uint_eq(thread, lac_model_track_of(model, launch));
    ck_assert_int_eq(model->tracks[thread].tid, INT64_C(3243177728));
    ck_assert_int_eq(model->processes[model->tracks[thread].process].pid, 99);
    ck_assert_uint_eq(report_count(model, "range_unfinished"), 1);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "Tesla V100");
    ck_assert_int_eq(model->devices[0].sm_count, 80);
}

START_TEST(a_database_opens)
{
    struct nsys_file made = nsys_file_begin();
    nsys_file_sql(&made, DATABASE);
    nsys_file_done(&made);
    struct lac_model *model = nsys_file_import(made.path);
    check_model(model);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/** It is shown demangled; what is counted by names goes by what was recorded. */
START_TEST(the_recorded_name_says_what_is_a_layout_conversion)
{
    static const struct {
        const char *recorded, *shown;
        unsigned count;
    } CASES[] = {
        {"_Z9transposePf", "transpose(float*)", 0},
        {"_ZN5cudnn16nchwToNhwcKernelE", "cudnn::nchwToNhwcKernel", 1},
        {"transpose(float*)", "transpose(float*)", 1},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(CASES); i++) {
        char update[128];
        struct nsys_file made = nsys_file_begin();
        nsys_file_sql(&made, DATABASE);
        (void)snprintf(update, sizeof(update), "UPDATE StringTable SET value='%s' WHERE _id_=1;",
                       CASES[i].recorded);
        nsys_file_sql(&made, update);
        nsys_file_done(&made);
        struct lac_model *model = nsys_file_import(made.path);
        struct lac_analysis *analysis = trace_diagnose(model);
        const uint64_t kernel = find_slice(model, CASES[i].shown);
        ck_assert_uint_ne(kernel, UINT64_MAX);
        ck_assert_str_eq(
            lac_model_str(model, lac_model_raw_name(model, model->slices.name[kernel])),
            CASES[i].recorded);
        ck_assert_uint_eq(analysis->layout_count, CASES[i].count);
        lac_analysis_destroy(analysis);
        lac_model_destroy(model);
        ck_assert_int_eq(unlink(made.path), 0);
    }
}
END_TEST

START_TEST(a_dump_opens_the_same)
{
    struct imported imported = import_text(DATABASE);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    check_model(imported.models[0]);
    imported_done(&imported);
    imported = import_tuned(DATABASE, strlen(DATABASE), NULL, 512, 5, true);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    check_model(imported.models[0]);
    imported_done(&imported);
}
END_TEST

START_TEST(a_dump_cut_anywhere_opens_or_says_why)
{
    for (size_t size = 0; size < strlen(DATABASE); size += rounds_step()) {
        struct imported imported = import_sized(DATABASE, size);
        if (imported.status == LAC_OK) {
            ck_assert(lac_model_is_valid(imported.models[0]));
        } else {
            ck_assert_str_ne(imported.error.message, "");
        }
        imported_done(&imported);
    }
}
END_TEST

/* No statement of a dump is run: no view, trigger, generated column, attached file or recursion. */
START_TEST(a_hostile_dump_runs_nothing)
{
    static const char *const HOSTILE[] = {
        "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT * "
        "FROM c;",
        "CREATE TRIGGER t AFTER INSERT ON StringTable BEGIN DELETE FROM StringTable; END;",
        "ATTACH '/tmp/lacuna_must_not_be' AS other;",
        "CREATE TABLE g(a, b AS (zeroblob(1000000000)));INSERT INTO g VALUES(1,2);",
        "INSERT INTO StringTable SELECT 1, zeroblob(1000000000);",
        "INSERT INTO StringTable VALUES(9, randomblob(1000000000));",
        "INSERT INTO sqlite_master VALUES('table','x','x',3,'CREATE TABLE x(a)');",
        "CREATE TABLE \"a\"\"b\"(c);INSERT INTO nothing VALUES(1);",
    };
    char text[sizeof(DATABASE) + 1024];
    for (size_t i = 0; i < LAC_COUNT_OF(HOSTILE); i++) {
        const char *commit = strstr(DATABASE, "COMMIT");
        (void)snprintf(text, sizeof(text), "%.*s%s\nCOMMIT;\n", (int)(commit - DATABASE), DATABASE,
                       HOSTILE[i]);
        struct imported imported = import_text(text);
        ck_assert_msg(imported.status == LAC_OK, "%zu: %s", i, imported.error.message);
        check_model(imported.models[0]);
        imported_done(&imported);
    }
    ck_assert_int_ne(access("/tmp/lacuna_must_not_be", F_OK), 0);
}
END_TEST

START_TEST(an_empty_database_says_so)
{
    struct imported imported = import_path(real_trace("nvprof/patwie_database.sql"));
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "nothing was recorded"));
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import nvprof");
    TCase *read = tcase_create("read");
    tcase_set_timeout(read, 120);
    tcase_add_test(read, a_database_opens);
    tcase_add_test(read, the_recorded_name_says_what_is_a_layout_conversion);
    tcase_add_test(read, a_dump_opens_the_same);
    tcase_add_test(read, a_dump_cut_anywhere_opens_or_says_why);
    tcase_add_test(read, a_hostile_dump_runs_nothing);
    if (access(real_trace("nvprof"), R_OK) == 0) {
        tcase_add_test(read, an_empty_database_says_so);
    } else {
        printf("skip: a real dump of nvprof: no %s (make traces)\n", real_trace("nvprof"));
    }
    suite_add_tcase(suite, read);
    return check_main(suite);
}
