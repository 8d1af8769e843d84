/* SQLite files that lie: in their values, their schema and their pages. Each ends in a sound model
 * whose report adds up, or in an error with a sentence; none costs more than its bytes allow, and
 * nothing that a schema says is run. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/nsys_file.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CPU time, which other programs do not stretch; what it guards against takes minutes. */
enum { CPU_SECONDS_MAX = 60, PAGE = 512, PADDING = 2000 };

static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check_report(const struct lac_model *model)
{
    uint64_t dropped = 0;
    uint64_t repaired = 0;
    ck_assert(lac_model_is_valid(model));
    for (uint32_t i = 0; i < model->report_count; i++) {
        const struct lac_report_line *line = &model->report[i];
        dropped += line->severity == LAC_REPORT_DROPPED ? line->count : 0;
        repaired += line->severity == LAC_REPORT_REPAIRED ? line->count : 0;
        ck_assert(line->count > 0 && line->text[0] != '\0');
    }
    ck_assert_uint_eq(dropped, model->info.dropped_count);
    ck_assert_uint_eq(repaired, model->info.repaired_count);
}

/* The model, or NULL and an error with a sentence. The caller destroys the model. */
static struct lac_model *import(const char *path, enum lac_status *ret_status,
                                struct lac_error *error)
{
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    *error = (struct lac_error){0};
    *ret_status = lac_import_file(path, &options, nsys_file_keep, &model, error);
    ck_assert_int_eq(*ret_status == LAC_OK, model != NULL);
    if (model != NULL) {
        check_report(model);
    } else {
        ck_assert_uint_gt(strlen(error->message), 10);
        ck_assert(*ret_status == LAC_ERR_CORRUPT || *ret_status == LAC_ERR_LIMIT);
    }
    return model;
}

/* Sound, whichever it is. Returns the number of slices; 0: also an error. */
static uint64_t sound(const char *path)
{
    enum lac_status status;
    struct lac_error error;
    struct lac_model *model = import(path, &status, &error);
    uint64_t count = model != NULL ? model->slices.count : 0;
    lac_model_destroy(model);
    return count;
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

/* ---- a small export with a row or two of each table that is read */

static const char TABLES[] =
    "CREATE TABLE StringIds(id, value);"
    "INSERT INTO StringIds VALUES(1,'gemm'),(2,'cudaLaunchKernel'),(3,'aten::add, op_id = 5, sizes "
    "= [[2]]'),(4,'main'),(5,'libcuda.so'),(6,'SMs Active');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "
    "correlationId, globalPid, demangledName, shortName, mangledName, gridX, gridY, gridZ, blockX, "
    "blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory, "
    "localMemoryPerThread, graphNodeId, graphId, clusterX);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
    "(3000,4000,0,1,7,1,16777216,1,1,1,80,1,1,256,1,1,32,0,0,0,0,0,1),"
    "(5000,6000,0,1,7,2,33554432,1,1,1,80,1,1,256,1,1,32,0,0,0,4294967297,3,2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, contextId, streamId, "
    "correlationId, globalPid, bytes, copyKind, srcKind, dstKind);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(1000,2000,0,1,7,3,16777216,4096,1,1,2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, streamId, bytes, memKind, "
    "value);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(100,200,0,7,512,2,0);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, end, deviceId, streamId, "
    "correlationId, globalPid, syncType, eventId);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(6000,6100,0,7,4,16777216,3,9);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start, end, deviceId, streamId, graphId);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(6200,6300,0,7,5);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId, "
    "returnValue);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(2000,2500,16777217,1,2,0),"
    "(2600,2900,33554433,2,2,700);"
    "CREATE TABLE OSRT_API(start, end, globalTid, nameId);"
    "INSERT INTO OSRT_API VALUES(10,20,16777217,4);"
    "CREATE TABLE NVTX_EVENTS(start, end, eventType, globalTid, endGlobalTid, text, textId, "
    "domainId, uint64Value, int64Value, uint32Value, int32Value);"
    "INSERT INTO NVTX_EVENTS VALUES(800,7000,59,16777217,NULL,'step',NULL,0,7,NULL,NULL,NULL),"
    "(900,NULL,60,16777217,33554433,NULL,3,1,NULL,3,NULL,NULL),"
    "(950,NULL,34,16777217,NULL,'mark',NULL,0,NULL,NULL,4,NULL),"
    "(NULL,NULL,75,16777217,NULL,'domain',NULL,1,NULL,NULL,NULL,5),"
    "(NULL,NULL,39,16777217,NULL,'thread',NULL,0,NULL,NULL,NULL,NULL);"
    "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId, metricId, metricName);"
    "INSERT INTO TARGET_INFO_GPU_METRICS VALUES(257,3,'SMs Active');"
    "CREATE TABLE GPU_METRICS(timestamp, typeId, metricId, value);"
    "INSERT INTO GPU_METRICS VALUES(1000,257,3,40),(2000,257,3,62.5);"
    "CREATE TABLE COMPOSITE_EVENTS(id, start, globalTid);"
    "INSERT INTO COMPOSITE_EVENTS VALUES(1,1000000,16777217),(2,2000000,16777217),"
    "(3,90000000,16777217);"
    "CREATE TABLE SAMPLING_CALLCHAINS(id, symbol, module, unresolved, stackDepth);"
    "INSERT INTO SAMPLING_CALLCHAINS VALUES(1,1,5,NULL,0),(1,4,5,NULL,1),(2,2,5,1,0),(3,4,5,NULL,"
    "0);"
    "CREATE TABLE PROCESSES(globalPid, pid, name);"
    "INSERT INTO PROCESSES VALUES(16777216,1,'python');"
    "CREATE TABLE ThreadNames(nameId, globalTid);"
    "INSERT INTO ThreadNames VALUES(4,16777217);"
    "CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id, label);"
    "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES(1,'Host-to-Device');"
    "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId, cudaId);"
    "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(0,0);"
    "CREATE TABLE TARGET_INFO_GPU(id, cuDevice, name, smCount, totalMemory, computeMajor, "
    "computeMinor);"
    "INSERT INTO TARGET_INFO_GPU VALUES(0,0,'H100',132,80000000000,9,0);"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000);"
    "CREATE TABLE TARGET_INFO_SYSTEM_ENV(name, value);"
    "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES('Hostname','node1');"
    "CREATE TABLE META_DATA_EXPORT(name, value);"
    "INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION','3.6');"
    "CREATE TABLE SCHED_EVENTS(start);"
    "INSERT INTO SCHED_EVENTS VALUES(1);";

static struct nsys_file export_of(const char *pragma)
{
    struct nsys_file made = nsys_file_begin();
    nsys_file_sql(&made, pragma);
    nsys_file_sql(&made, TABLES);
    return made;
}

enum { NAMES_MAX = 400 };

/* "table.column" of all tables, or the tables alone. */
static int list(sqlite3 *db, const char *sql, char (*names)[2][64])
{
    sqlite3_stmt *rows = NULL;
    int count = 0;
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        ck_assert_int_lt(count, NAMES_MAX);
        for (int i = 0; i < 2; i++) {
            (void)snprintf(names[count][i], sizeof(names[count][i]), "%s",
                           (const char *)sqlite3_column_text(rows, i));
        }
        count++;
    }
    ck_assert_int_eq(sqlite3_finalize(rows), SQLITE_OK);
    return count;
}

#define ALL_COLUMNS                                                                                \
    "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type='table'"
#define ALL_TABLES "SELECT name, name FROM sqlite_schema WHERE type='table'"

/* The whole export is read as it was meant: what follows would prove little of one that is not. */
START_TEST(the_export_itself_is_read)
{
    struct nsys_file made = export_of("");
    nsys_file_done(&made);
    struct lac_model *model = nsys_file_import(made.path);
    check_report(model);
    /* 2 kernels, 5 more on the GPU, 2 calls, 1 of the system, 2 ranges, 1 mark, 4 frames */
    ck_assert_uint_eq(model->slices.count, 2 + 4 + 2 + 1 + 3 + 4);
    ck_assert_uint_eq(model->sample_count, 2 + 3);
    ck_assert_uint_eq(model->device_count, 1);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* ---- values */

/* Each column of each table in turn holds what no export has there. */
START_TEST(values_of_another_type_or_size_are_sound)
{
    static const char *const VALUES[] = {"NULL",
                                         "'text'",
                                         "'12345'",
                                         "''",
                                         "-1",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "4611686018427387904",
                                         "-2305843009213693952",
                                         "4294967295",
                                         "4294967296",
                                         "9e999",
                                         "1.5",
                                         "x'00ff'",
                                         "zeroblob(3000)",
                                         "CAST(x'80' AS TEXT)",
                                         "'a' || char(0) || 'b'",
                                         "hex(zeroblob(600))"};
    static char names[NAMES_MAX][2][64];
    struct nsys_file made = export_of("PRAGMA page_size=1024; VACUUM;");
    const int count = list(made.db, ALL_COLUMNS, names);
    char sql[512];
    ck_assert_int_gt(count, 100);
    /* with the sanitizers each value in other columns than the one before */
    for (int i = _i % (int)rounds_step(); i < count; i += (int)rounds_step()) {
        (void)snprintf(sql, sizeof(sql),
                       "CREATE TEMP TABLE kept AS SELECT rowid AS r, \"%s\" AS v FROM \"%s\";"
                       "UPDATE \"%s\" SET \"%s\"=%s",
                       names[i][1], names[i][0], names[i][0], names[i][1], VALUES[_i]);
        nsys_file_sql(&made, sql);
        (void)sound(made.path);
        (void)snprintf(sql, sizeof(sql),
                       "UPDATE \"%s\" SET \"%s\"=(SELECT v FROM kept WHERE r=\"%s\".rowid);"
                       "DROP TABLE kept",
                       names[i][0], names[i][1], names[i][0]);
        nsys_file_sql(&made, sql);
    }
    nsys_file_done(&made);
    ck_assert_uint_eq(sound(made.path), 16); /* all is as it was */
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* Times at the ends of the range: dropped and counted, wherever they stand. */
START_TEST(times_that_are_none_are_dropped_and_counted)
{
    static const struct {
        const char *table;
        const char *column;
        uint64_t rows;
    } TIMES[] = {
        {"CUPTI_ACTIVITY_KIND_KERNEL", "start", 2},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", "end", 1},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "start", 2},
        {"OSRT_API", "end", 1},
        {"GPU_METRICS", "timestamp", 2},
        {"COMPOSITE_EVENTS", "start", 3},
    };
    static const char *const VALUES[] = {"-9223372036854775808", "9223372036854775807", "NULL",
                                         "'1000'", "1000.5"};
    for (size_t i = 0; i < LAC_COUNT_OF(TIMES) * LAC_COUNT_OF(VALUES); i++) {
        char sql[256];
        struct nsys_file made = export_of("");
        (void)snprintf(sql, sizeof(sql), "UPDATE \"%s\" SET \"%s\"=%s",
                       TIMES[i % LAC_COUNT_OF(TIMES)].table, TIMES[i % LAC_COUNT_OF(TIMES)].column,
                       VALUES[i / LAC_COUNT_OF(TIMES)]);
        nsys_file_sql(&made, sql);
        nsys_file_done(&made);
        struct lac_model *model = nsys_file_import(made.path);
        ck_assert_msg(reported(model, "row_without_times") == TIMES[i % LAC_COUNT_OF(TIMES)].rows,
                      "%s", sql);
        lac_model_destroy(model);
        ck_assert_int_eq(unlink(made.path), 0);
    }
    /* marks and ranges that have not ended have one time alone */
    struct nsys_file made = export_of("");
    nsys_file_sql(&made, "UPDATE NVTX_EVENTS SET start=-9223372036854775808");
    nsys_file_done(&made);
    struct lac_model *model = nsys_file_import(made.path);
    ck_assert_uint_eq(reported(model, "row_without_times"), 3);
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* ---- schema */

START_TEST(missing_columns_and_tables_are_normal)
{
    static char names[NAMES_MAX][2][64];
    struct nsys_file made = export_of("");
    const int columns = list(made.db, ALL_COLUMNS, names);
    for (int i = 0; i < columns; i++) {
        char sql[256];
        enum lac_status status;
        struct lac_error error;
        (void)snprintf(sql, sizeof(sql), "ALTER TABLE \"%s\" RENAME COLUMN \"%s\" TO gone",
                       names[i][0], names[i][1]);
        nsys_file_sql(&made, sql);
        struct lac_model *model = import(made.path, &status, &error);
        ck_assert_msg(status == LAC_OK, "without %s.%s: %s", names[i][0], names[i][1],
                      error.message);
        lac_model_destroy(model);
        (void)snprintf(sql, sizeof(sql), "ALTER TABLE \"%s\" RENAME COLUMN gone TO \"%s\"",
                       names[i][0], names[i][1]);
        nsys_file_sql(&made, sql);
    }
    const int tables = list(made.db, ALL_TABLES, names);
    for (int i = 0; i < tables; i++) {
        char sql[256];
        (void)snprintf(sql, sizeof(sql), "ALTER TABLE \"%.63s\" RENAME TO gone", names[i][0]);
        nsys_file_sql(&made, sql);
        ck_assert_msg(sound(made.path) > 0, "without %s", names[i][0]);
        (void)snprintf(sql, sizeof(sql), "ALTER TABLE gone RENAME TO \"%.63s\"", names[i][0]);
        nsys_file_sql(&made, sql);
    }
    nsys_file_done(&made);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* What the schema says runs nowhere: a kernel table made of each of these has no row, and what it
 * would do is not done. */
START_TEST(nothing_of_the_schema_is_run)
{
    static const char *const KERNELS[] = {
        /* a view without an end, one of itself by way of another, and one over many joins */
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
        "SELECT x+1 FROM n) SELECT x AS start, x AS end FROM n",
        "CREATE VIEW a AS SELECT * FROM b; CREATE VIEW b AS SELECT * FROM a; CREATE VIEW "
        "CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM a",
        "CREATE VIEW j AS SELECT a.id AS x FROM StringIds a, StringIds b, StringIds c, StringIds "
        "d, StringIds e, StringIds f, StringIds g, StringIds h, StringIds i, StringIds j; CREATE "
        "VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT j.x AS start, k.x AS end FROM j, j k",
        /* virtual tables: one that SQLite has, one that a program would have to load */
        "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, end)",
        "PRAGMA writable_schema=ON; INSERT INTO sqlite_schema VALUES('table',"
        "'CUPTI_ACTIVITY_KIND_KERNEL','CUPTI_ACTIVITY_KIND_KERNEL',0,"
        "'CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING evil(start, end)')",
        /* columns, checks, indexes and triggers that call functions */
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start AS (2), end AS (1), x); INSERT INTO "
        "CUPTI_ACTIVITY_KIND_KERNEL(x) VALUES('x'); PRAGMA writable_schema=ON; UPDATE "
        "sqlite_schema SET sql=replace(replace(sql, '(1)', '(hex(zeroblob(300000000)))'), "
        "'(2)', '(hex(zeroblob(400000000)))') WHERE name='CUPTI_ACTIVITY_KIND_KERNEL'",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(x, globalPid AS (1)); WITH RECURSIVE n(x) AS "
        "(SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<50000) INSERT INTO "
        "CUPTI_ACTIVITY_KIND_KERNEL(x) SELECT 1 FROM n; PRAGMA writable_schema=ON; UPDATE "
        "sqlite_schema SET sql=replace(sql, '(1)', '(length(hex(zeroblob(7000000))))') WHERE "
        "name='CUPTI_ACTIVITY_KIND_KERNEL'",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, x CHECK(length(x)>0)); CREATE INDEX i "
        "ON CUPTI_ACTIVITY_KIND_KERNEL(abs(x), hex(x)); CREATE TRIGGER t AFTER INSERT ON "
        "CUPTI_ACTIVITY_KIND_KERNEL BEGIN SELECT load_extension('/tmp/evil'); END",
    };
    const double before = cpu_seconds();
    struct nsys_file made = export_of("");
    nsys_file_sql(&made, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
    char *message = NULL;
    int code = sqlite3_exec(made.db, KERNELS[_i], NULL, NULL, &message);
    if (code != SQLITE_OK && strstr(message, "no such module") != NULL) {
        sqlite3_free(message); /* this SQLite is without full text search */
        nsys_file_done(&made);
        ck_assert_int_eq(unlink(made.path), 0);
        return;
    }
    ck_assert_msg(code == SQLITE_OK, "%s", message);
    nsys_file_done(&made);
    struct lac_model *model = nsys_file_import(made.path);
    check_report(model);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        ck_assert(model->slices.kind[i] != LAC_SLICE_KERNEL ||
                  strcmp(lac_model_str(model, model->slices.name[i]), "CUDA graph") == 0);
    }
    ck_assert_uint_eq(model->slices.count, 14);
    lac_model_destroy(model);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* The schema is a table that anybody can write: rows that contradict each other, roots that are
 * other tables', SQL that is none. */
START_TEST(a_forged_schema_is_sound)
{
    static const char *const CHANGES[] = {
        "UPDATE sqlite_schema SET rootpage=1",
        "UPDATE sqlite_schema SET rootpage=0 WHERE name='StringIds'",
        "UPDATE sqlite_schema SET rootpage=2000000000",
        "UPDATE sqlite_schema SET rootpage=-1",
        "UPDATE sqlite_schema SET rootpage='x'",
        "UPDATE sqlite_schema SET rootpage=2",
        "UPDATE sqlite_schema SET rootpage=3 WHERE name LIKE 'CUPTI%'",
        "UPDATE sqlite_schema SET rootpage=rootpage+1",
        "UPDATE sqlite_schema SET sql=NULL",
        "UPDATE sqlite_schema SET sql='' WHERE name='NVTX_EVENTS'",
        "UPDATE sqlite_schema SET sql='SELECT 1'",
        "UPDATE sqlite_schema SET sql='DROP TABLE StringIds'",
        "UPDATE sqlite_schema SET sql='CREATE TABLE StringIds(id, value)'",
        "UPDATE sqlite_schema SET sql=sql||'; ATTACH ''/tmp/evil'' AS evil'",
        "UPDATE sqlite_schema SET sql=replace(sql,'(start','(start PRIMARY KEY')",
        "UPDATE sqlite_schema SET sql=sql||' WITHOUT ROWID'",
        "UPDATE sqlite_schema SET sql=replace(sql,'CREATE TABLE','CREATE TEMP TABLE')",
        "UPDATE sqlite_schema SET sql=replace(sql,'CREATE TABLE','CREATE/**/TABLE')",
        "UPDATE sqlite_schema SET sql=replace(sql,'CREATE TABLE ','CREATE TABLE other.')",
        "UPDATE sqlite_schema SET sql=replace(sql,'CREATE TABLE','CREATE VIEW')",
        "UPDATE sqlite_schema SET type='view'",
        "UPDATE sqlite_schema SET type='index' WHERE name LIKE 'CUPTI%'",
        "UPDATE sqlite_schema SET type=NULL, tbl_name=NULL",
        "UPDATE sqlite_schema SET name='StringIds'",
        "UPDATE sqlite_schema SET name='main.StringIds' WHERE name='StringIds'",
        "UPDATE sqlite_schema SET name='sqlite_schema' WHERE name='OSRT_API'",
        "UPDATE sqlite_schema SET name=CAST(x'ff00fe' AS TEXT), tbl_name=x'00'",
        "UPDATE sqlite_schema SET name=name||char(10)||char(27)||'[31m', sql='x'",
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema",
        "INSERT INTO sqlite_schema VALUES('view','StringIds','StringIds',0,'CREATE VIEW StringIds "
        "AS SELECT * FROM StringIds')",
        "INSERT INTO sqlite_schema VALUES('table','x','x',0,'CREATE VIRTUAL TABLE StringIds USING "
        "fts3(id)')",
        "INSERT INTO sqlite_schema VALUES('trigger','t','StringIds',0,'CREATE TRIGGER t AFTER "
        "INSERT ON StringIds BEGIN SELECT 1; END')",
        "INSERT INTO sqlite_schema VALUES('table','big','big',2,'CREATE TABLE big(a) /* '||"
        "hex(zeroblob(500000))||' */')",
        "INSERT INTO sqlite_schema VALUES('table','deep','deep',2,'CREATE TABLE deep(a CHECK('||"
        "replace(hex(zeroblob(5000)),'0','(')||'1'||replace(hex(zeroblob(5000)),'0',')')||'))')",
        "INSERT INTO sqlite_schema VALUES('table','wide','wide',2,'CREATE TABLE wide(a'||"
        "replace(hex(zeroblob(2000)),'0',',a')||')')",
    };
    const double before = cpu_seconds();
    struct nsys_file made = export_of("");
    nsys_file_sql(&made, "PRAGMA writable_schema=ON");
    nsys_file_sql(&made, CHANGES[_i]);
    nsys_file_done(&made);
    (void)sound(made.path);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* SQLite's work, and ours, grows as the square of their number: a schema without an end is refused
 * before it is read, one of some thousand is read. */
START_TEST(a_hundred_thousand_tables_are_refused)
{
    static const int TABLE_COUNTS[] = {3000, 100000};
    char sql[400];
    enum lac_status status;
    struct lac_error error;
    struct nsys_file made = export_of("");
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA writable_schema=ON; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT "
                   "x+1 FROM n WHERE x<%d) INSERT INTO sqlite_schema SELECT 'table','t'||x,'t'"
                   "||x,2,'CREATE TABLE t'||x||'(a)' FROM n",
                   TABLE_COUNTS[_i]);
    nsys_file_sql(&made, sql);
    nsys_file_done(&made);
    const double before = cpu_seconds();
    struct lac_model *model = import(made.path, &status, &error);
    if (_i == 0) {
        ck_assert_msg(status == LAC_OK, "%s", error.message);
        ck_assert_uint_eq(model->slices.count, 16);
    } else {
        ck_assert_int_eq(status, LAC_ERR_LIMIT);
        ck_assert_msg(strstr(error.message, "more than 5000") != NULL, "%s", error.message);
    }
    lac_model_destroy(model);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* The numbers of rows are what the last one says: here 2^63 - 1, and twice as far apart. */
START_TEST(wild_row_numbers_are_only_numbers)
{
    struct nsys_file made = export_of("");
    nsys_file_sql(&made, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid=9223372036854775807 WHERE "
                         "rowid=2; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "
                         "rowid=-9223372036854775808 WHERE rowid=1; UPDATE NVTX_EVENTS SET "
                         "rowid=rowid+9000000000000000000; UPDATE SCHED_EVENTS SET "
                         "rowid=9223372036854775807");
    nsys_file_done(&made);
    ck_assert_uint_eq(sound(made.path), 16);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* ---- the file */

START_TEST(every_encoding_and_page_size_reads_the_same)
{
    static const char *const PRAGMAS[] = {
        "PRAGMA encoding='UTF-16le'",      "PRAGMA encoding='UTF-16be'",
        "PRAGMA page_size=512; VACUUM",    "PRAGMA page_size=65536; VACUUM",
        "PRAGMA auto_vacuum=FULL; VACUUM", "PRAGMA legacy_file_format=ON; VACUUM"};
    struct nsys_file made = export_of(PRAGMAS[_i]);
    nsys_file_done(&made);
    struct lac_model *model = nsys_file_import(made.path);
    ck_assert_uint_eq(model->slices.count, 16);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "H100");
    lac_model_destroy(model);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* Rows that lie in a log beside the file are not read, and that is said. */
START_TEST(a_log_beside_the_file_is_told)
{
    char log[160];
    struct nsys_file made = export_of("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;");
    nsys_file_sql(&made, "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO OSRT_API "
                         "VALUES(30,40,16777217,4)");
    struct lac_model *model = nsys_file_import(made.path); /* it is open: the log is there */
    ck_assert_uint_eq(model->slices.count, 16);
    ck_assert_uint_eq(reported(model, "log_not_read"), 1);
    lac_model_destroy(model);
    nsys_file_done(&made); /* now it is not */
    model = nsys_file_import(made.path);
    ck_assert_uint_eq(model->slices.count, 17);
    ck_assert_uint_eq(reported(model, "log_not_read"), 0);
    lac_model_destroy(model);
    (void)snprintf(log, sizeof(log), "%s-wal", made.path);
    (void)unlink(log);
    (void)snprintf(log, sizeof(log), "%s-shm", made.path);
    (void)unlink(log);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Cut at every page, in the middle of each, and at each byte of the head. */
START_TEST(a_file_cut_anywhere_is_sound)
{
    size_t size = 0;
    struct nsys_file made = export_of("PRAGMA page_size=512; VACUUM;");
    nsys_file_done(&made);
    char *bytes = nsys_file_bytes(made.path, &size);
    for (size_t cut = 0; cut < size; cut += cut < 128 ? 1 : PAGE / 2) {
        write_bytes(made.path, bytes, cut);
        (void)sound(made.path);
    }
    free(bytes);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* Bytes that are others: each of the head and of the pages' heads as 0, 255 and another, then pages
 * that changed places, and thousands that chance picks. */
START_TEST(a_file_with_wrong_bytes_is_sound)
{
    const int rounds = rounds_of(600);
    static const unsigned char WRONG[] = {0, 0xff, 0x80, 1};
    uint64_t random = 88172645463325252u;
    size_t size = 0;
    struct nsys_file made = export_of("PRAGMA page_size=512; VACUUM;");
    nsys_file_done(&made);
    char *bytes = nsys_file_bytes(made.path, &size);
    char *copy = malloc(size);
    ck_assert_ptr_nonnull(copy);
    for (size_t at = 16; at < size;
         at = at < 112 || at % PAGE < 12 ? at + 1 : (at / PAGE + 1) * PAGE) {
        memcpy(copy, bytes, size);
        copy[at] = (char)(bytes[at] ^ (char)WRONG[at % LAC_COUNT_OF(WRONG)]);
        write_bytes(made.path, copy, size);
        (void)sound(made.path);
    }
    for (int round = 0; round < rounds; round++) {
        memcpy(copy, bytes, size);
        for (int i = 0; i <= round % 8; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if (round % 5 == 0) { /* a page in another's place */
                memcpy(copy + random / 7 % (size / PAGE) * PAGE,
                       bytes + random / 1009 % (size / PAGE) * PAGE, PAGE);
            } else {
                copy[random / 7 % size] = (char)(random >> 56);
            }
        }
        write_bytes(made.path, copy, size);
        (void)sound(made.path);
    }
    free(copy);
    free(bytes);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* ---- pages made by hand: what a few of them can claim */

static void put_u16(char *to, unsigned value)
{
    to[0] = (char)(value >> 8);
    to[1] = (char)value;
}

static void put_u32(char *to, uint32_t value)
{
    put_u16(to, value >> 16);
    put_u16(to + 2, value & 0xffff);
}

static unsigned root_of(sqlite3 *db, const char *table)
{
    char sql[128];
    sqlite3_stmt *row = NULL;
    (void)snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name='%s'", table);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    const unsigned root = (unsigned)sqlite3_column_int(row, 0);
    ck_assert_int_eq(sqlite3_finalize(row), SQLITE_OK);
    return root;
}

/* An export whose `table` is a tree of `levels` pages, each of which points to the next as often as
 * it can, above a leaf with as many cells as it can hold, all of them the same `cell`; a page after
 * the leaf points at itself: the cell may go on there. Before them are `padding` pages: no cell may
 * be larger than the file. */
static void forge_tree(struct nsys_file *made, const char *table, int levels, const char *cell,
                       unsigned cell_size, unsigned padding)
{
    enum { BIG_PAGE = 4096 };
    size_t size = 0;
    *made = export_of("PRAGMA page_size=4096; VACUUM;");
    const unsigned root = root_of(made->db, table);
    nsys_file_done(made);
    char *bytes = nsys_file_bytes(made->path, &size);
    unsigned pages = (unsigned)(size / BIG_PAGE) + padding;
    const size_t more = ((size_t)levels + 2 + padding) * BIG_PAGE;
    bytes = realloc(bytes, size + more);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes + size, 0, more);
    unsigned page = root;
    for (int level = 0; level <= levels; level++) {
        char *at = bytes + (size_t)(page - 1) * BIG_PAGE;
        const unsigned next = pages + 1 + (unsigned)level;
        const bool is_leaf = level == levels;
        const unsigned head = is_leaf ? 8 : 12;
        const unsigned cells = (BIG_PAGE - 8) / 6; /* SQLite believes no more */
        memset(at, 0, BIG_PAGE);
        at[0] = is_leaf ? 0x0d : 0x05;
        put_u16(at + 3, cells);
        put_u16(at + 5, BIG_PAGE - (is_leaf ? cell_size : 5));
        if (is_leaf) {
            memcpy(at + BIG_PAGE - cell_size, cell, cell_size);
            put_u32(at + BIG_PAGE - 4, next); /* of the overflow pages */
            put_u32(bytes + (size_t)(next - 1) * BIG_PAGE, next);
        } else {
            put_u32(at + 8, next);
            put_u32(at + BIG_PAGE - 5, next);
            at[BIG_PAGE - 1] = 1;
        }
        for (unsigned i = 0; i < cells; i++) {
            put_u16(at + head + 2 * i, BIG_PAGE - (is_leaf ? cell_size : 5));
        }
        page = next;
    }
    pages += (unsigned)levels + 1;
    put_u32(bytes + 28, pages);
    write_bytes(made->path, bytes, (size_t)pages * BIG_PAGE);
    free(bytes);
}

/* A row of OSRT_API that is four integers. */
START_TEST(pages_that_are_used_again_and_again_are_found)
{
    static const char CELL[] = {9, 1, 5, 1, 1, 1, 1, 10, 20, 1, 4, 0, 0, 0, 0};
    enum lac_status status;
    struct lac_error error;
    struct nsys_file made;
    const double before = cpu_seconds();
    forge_tree(&made, "OSRT_API", 1 + _i * 3, CELL, sizeof(CELL), 0);
    ck_assert_ptr_null(import(made.path, &status, &error));
    ck_assert_int_eq(status, LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, "OSRT_API") != NULL, "%s", error.message);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* A cell of `payload` bytes: a small integer and text or a blob that has the rest, or such a blob
 * before some integers, in an overflow page that is its own next one. Returns its size. */
enum { INTEGERS = 8 };
static unsigned endless_cell(char *cell, uint32_t payload, bool is_text, bool comes_first)
{
    enum { USABLE = 4096, LOCAL_MIN = (USABLE - 12) * 32 / 255 - 23 };
    const uint32_t rest = comes_first ? 6 + 2 * INTEGERS : 8;
    const uint32_t type = (payload - rest) * 2 + 12 + (is_text ? 1 : 0);
    unsigned local = LOCAL_MIN + (payload - LOCAL_MIN) % (USABLE - 4);
    unsigned at = 0;
    local = local > USABLE - 35 ? LOCAL_MIN : local;
    for (int shift = 28; shift >= 0; shift -= 7) { /* its length, in 5 bytes */
        cell[at++] = (char)((payload >> shift & 0x7f) | (shift > 0 ? 0x80 : 0));
    }
    cell[at++] = 1; /* row number */
    const unsigned start = at;
    cell[at++] = (char)(comes_first ? 6 + INTEGERS : 7); /* of the header: itself and the types */
    if (!comes_first) {
        cell[at++] = 1;
    }
    for (int shift = 28; shift >= 0; shift -= 7) {
        cell[at++] = (char)((type >> shift & 0x7f) | (shift > 0 ? 0x80 : 0));
    }
    for (int i = 0; i < (comes_first ? INTEGERS : 1); i++) {
        cell[at++] = 1; /* before: the type of the number; after: the number, 1 */
    }
    memset(cell + at, 'x', local);
    return start + local + 4;
}

/* A table of strings, or of names, whose rows all share one page without an end: 8 MB a row, or as
 * much as a name may have. */
START_TEST(text_that_the_file_has_no_room_for_is_found)
{
    static char cell[8192];
    enum lac_status status;
    struct lac_error error;
    struct nsys_file made;
    const double before = cpu_seconds();
    /* a length whose share in the cell is the smallest: the rest fills whole pages */
    enum { LOCAL_MIN = (4096 - 12) * 32 / 255 - 23 };
    const uint32_t payload = LOCAL_MIN + 4092u * (_i == 0 ? PADDING : 14u);
    const unsigned size = endless_cell(cell, payload, true, false);
    ck_assert_uint_lt(size, 600);
    forge_tree(&made, _i == 2 ? "PROCESSES" : "StringIds", 2, cell, size, PADDING);
    ck_assert_ptr_null(import(made.path, &status, &error));
    ck_assert_int_eq(status, LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, "claim more bytes") != NULL ||
                      strstr(error.message, "more rows") != NULL,
                  "%s", error.message);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

/* The same before the column that is read: nothing of it is handed out, and yet each row walks it
 * page by page. */
START_TEST(columns_that_are_passed_over_cost_no_more)
{
    static char cell[8192];
    enum lac_status status;
    struct lac_error error;
    struct nsys_file made;
    const double before = cpu_seconds();
    enum { LOCAL_MIN = (4096 - 12) * 32 / 255 - 23 };
    static const char *const NAMES[] = {"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"};
    const unsigned size = endless_cell(cell, LOCAL_MIN + 4092u * PADDING, false, true);
    forge_tree(&made, NAMES[_i], 2, cell, size, PADDING);
    ck_assert_ptr_null(import(made.path, &status, &error));
    ck_assert_int_eq(status, _i == 2 ? LAC_ERR_LIMIT : LAC_ERR_CORRUPT);
    ck_assert_double_lt(cpu_seconds() - before, CPU_SECONDS_MAX);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_nsys_hostile");
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, the_export_itself_is_read);
    tcase_add_loop_test(tcase, values_of_another_type_or_size_are_sound, 0, 18);
    tcase_add_test(tcase, times_that_are_none_are_dropped_and_counted);
    tcase_add_test(tcase, missing_columns_and_tables_are_normal);
    tcase_add_loop_test(tcase, nothing_of_the_schema_is_run, 0, 8);
    tcase_add_loop_test(tcase, a_forged_schema_is_sound, 0, 35);
    tcase_add_loop_test(tcase, a_hundred_thousand_tables_are_refused, 0, 2);
    tcase_add_test(tcase, wild_row_numbers_are_only_numbers);
    tcase_add_loop_test(tcase, every_encoding_and_page_size_reads_the_same, 0, 6);
    tcase_add_test(tcase, a_log_beside_the_file_is_told);
    tcase_add_test(tcase, a_file_cut_anywhere_is_sound);
    tcase_add_test(tcase, a_file_with_wrong_bytes_is_sound);
    tcase_add_loop_test(tcase, pages_that_are_used_again_and_again_are_found, 0, 3);
    tcase_add_loop_test(tcase, text_that_the_file_has_no_room_for_is_found, 0, 3);
    tcase_add_loop_test(tcase, columns_that_are_passed_over_cost_no_more, 0, 3);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
