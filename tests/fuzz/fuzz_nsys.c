/*
 * Any bytes as an SQLite file of Nsight Systems: an error with a sentence or a sound model whose
 * report adds up. Changes know SQL: values, columns, schemas, and pages beside them.
 */

#include "analysis/import/import.h"
#include "analysis/import/nsys/nsys.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/json_mutator.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("export", MFD_CLOEXEC);
    struct lac_import_options options = {.name = "fuzz"};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    char path[64];
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    lac_import_limits_default(&options.limits);
    if (lac_nsys_is_sqlite(path)) {
        enum lac_status status = lac_import_file(path, &options, lac_fuzz_keep, &model, &error);
        require((status == LAC_OK) == (model != NULL));
        require(status == LAC_OK || error.message[0] != '\0');
    }
    if (model != NULL) {
        lac_fuzz_check_model(model);
        lac_model_destroy(model);
    }
    (void)close(fd);
    return 0;
}

/* ---- a small export */

static const char tables[] =
    "PRAGMA page_size=512;"
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES(1,'void "
    "gemm<float>(int)'),(2,'gemm'),(3,'cudaLaunchKernel_v7000'),"
    "(4,'cudaMemcpyAsync_v3020'),(5,'iteration'),(6,'main'),(7,'aten::add, op_id = 5, sizes = [[2, "
    "3]]');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId "
    "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, "
    "shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY "
    "INTEGER, "
    "blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory "
    "INTEGER, graphNodeId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
    "VALUES(3000,4000,0,1,7,1,16777216,1,2,80,1,1,256,1,1,32,"
    "0,0,NULL),(5000,6000,0,1,7,2,16777216,1,2,80,1,1,256,1,1,32,0,0,NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId "
    "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind "
    "INTEGER, srcKind INTEGER, dstKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(1000,2000,0,1,7,3,16777216,4096,1,1,2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "
    "VALUES(900,1100,0,16777217,3,4,0),(2000,2500,0,16777217,"
    "1,3,0),(2600,2900,0,16777217,2,3,0);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId "
    "INTEGER, "
    "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType "
    "INTEGER, "
    "eventId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(6000,6100,0,1,7,4,16777216,3,0);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, "
    "category "
    "INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
    "domainId INTEGER, uint64Value INTEGER, int64Value INTEGER);"
    "INSERT INTO NVTX_EVENTS "
    "VALUES(800,7000,59,1,0,0,'iteration',16777217,NULL,NULL,0,7,NULL),(900,"
    "NULL,60,2,0,0,NULL,16777217,NULL,7,1,NULL,3),(950,NULL,34,0,0,0,'mark',16777217,NULL,NULL,0,"
    "NULL,"
    "NULL),(NULL,NULL,75,0,0,0,'domain',16777217,NULL,NULL,1,NULL,NULL);"
    "CREATE TABLE COMPOSITE_EVENTS(id INTEGER, start INTEGER, cpu INTEGER, threadState INTEGER, "
    "globalTid INTEGER, cpuCycles INTEGER);"
    "INSERT INTO COMPOSITE_EVENTS VALUES(1,1000,0,1,16777217,1),(2,2000,0,1,16777217,1),"
    "(3,3000,0,1,16777218,1);"
    "CREATE TABLE SAMPLING_CALLCHAINS(id INTEGER, symbol INTEGER, module INTEGER, unresolved "
    "INTEGER, stackDepth INTEGER);"
    "INSERT INTO SAMPLING_CALLCHAINS VALUES(1,2,6,NULL,0),(1,6,6,NULL,1),(2,3,6,1,0),(2,6,6,NULL,"
    "1),(3,4,6,NULL,0);"
    "CREATE TABLE ThreadNames(nameId INTEGER, priority INTEGER, globalTid INTEGER);"
    "INSERT INTO ThreadNames VALUES(6,0,16777217);"
    "CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);"
    "INSERT INTO PROCESSES VALUES(16777216,1,'python');"
    "CREATE TABLE TARGET_INFO_GPU(vmId INTEGER, id INTEGER, name TEXT, cuDevice INTEGER, smCount "
    "INTEGER, totalMemory INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
    "INSERT INTO TARGET_INFO_GPU VALUES(0,0,'H100',0,132,80000000000,9,0);"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000);";

/* Of the table that `pick` chooses, the name or the SQL. "": none */
static void choose(sqlite3 *db, const char *sql, uint64_t *random, char *out, size_t capacity)
{
    sqlite3_stmt *rows = NULL;
    uint32_t count = 0;
    out[0] = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK) {
        return;
    }
    while (sqlite3_step(rows) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(rows, 0);
        if (text != NULL && lac_mutator_draw(random, ++count) == 0) {
            (void)snprintf(out, capacity, "%s", text);
        }
    }
    (void)sqlite3_finalize(rows);
}

static void change_sql(sqlite3 *db, uint64_t *random)
{
    static const char *const values[] = {"0",
                                         "-1",
                                         "NULL",
                                         "1",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "'text'",
                                         "x'00ff'",
                                         "1e308",
                                         "9e999",
                                         "zeroblob(3000)",
                                         "4611686018427387904",
                                         "char(27)||'[31m'",
                                         "''",
                                         "start",
                                         "end",
                                         "start - 1",
                                         "end * 2",
                                         "globalTid",
                                         "correlationId",
                                         "65536",
                                         "256"};
    static const char *const schemas[] = {"CREATE TABLE x(",
                                          "",
                                          "CREATE VIEW v AS SELECT 1",
                                          "CREATE TABLE t(a CHECK(load_extension('x')))",
                                          "CREATE VIRTUAL TABLE t USING fts3(a)",
                                          "CREATE TABLE t(start,end) WITHOUT ROWID"};
    char table[128];
    char column[128];
    char sql[1024];
    choose(db, "SELECT name FROM sqlite_schema WHERE type='table'", random, table, sizeof(table));
    (void)snprintf(sql, sizeof(sql), "SELECT name FROM pragma_table_info('%s')", table);
    choose(db, sql, random, column, sizeof(column));
    const char *value = values[lac_mutator_draw(random, LAC_COUNT_OF(values))];
    switch (lac_mutator_draw(random, 12)) {
    case 0:
        (void)snprintf(sql, sizeof(sql), "DROP TABLE \"%s\"", table);
        break;
    case 1:
        (void)snprintf(sql, sizeof(sql),
                       "ALTER TABLE \"%s\" RENAME TO old; CREATE VIEW \"%s\" AS SELECT * FROM old",
                       table, table);
        break;
    case 2:
        (void)snprintf(sql, sizeof(sql),
                       "ALTER TABLE \"%s\" ADD COLUMN made%u AS (\"%s\" * 1000000007)", table,
                       lac_mutator_draw(random, 100), column);
        break;
    case 3:
        (void)snprintf(sql, sizeof(sql), "INSERT INTO \"%s\" SELECT * FROM \"%s\"", table, table);
        break;
    case 4:
        (void)snprintf(sql, sizeof(sql),
                       "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=\"%s\", "
                       "rootpage=%u WHERE name='%s'",
                       schemas[lac_mutator_draw(random, 6)], lac_mutator_draw(random, 40), table);
        break;
    case 5:
        (void)snprintf(sql, sizeof(sql), "ALTER TABLE \"%s\" RENAME COLUMN \"%s\" TO \"%s2\"",
                       table, column, column);
        break;
    case 6:
        (void)snprintf(sql, sizeof(sql), "DELETE FROM \"%s\" WHERE rowid %% 2", table);
        break;
    case 7:
        (void)snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO StringIds VALUES(%s,%s)", value,
                       value);
        break;
    default:
        (void)snprintf(sql, sizeof(sql),
                       "UPDATE OR IGNORE \"%s\" SET \"%s\"=%s WHERE rowid %% %u = 0", table, column,
                       value, 1 + lac_mutator_draw(random, 3));
    }
    (void)sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The file after a few statements. 0: it is no database, or too large now */
static size_t change_database(uint8_t *data, size_t size, size_t max_size, uint64_t *random)
{
    sqlite3 *db = NULL;
    size_t changed = 0;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) {
        (void)sqlite3_close(db);
        return 0;
    }
    uint8_t *copy = size > 0 ? sqlite3_malloc64(size) : NULL;
    if (copy != NULL) {
        memcpy(copy, data, size);
        (void)sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                                  SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    }
    if (sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK ||
        size == 0 || lac_mutator_draw(random, 64) == 0) { /* begin anew */
        (void)sqlite3_close(db);
        require(sqlite3_open(":memory:", &db) == SQLITE_OK);
        require(sqlite3_exec(db, tables, NULL, NULL, NULL) == SQLITE_OK);
    }
    for (uint32_t i = lac_mutator_draw(random, 4); i < 4; i++) {
        change_sql(db, random);
    }
    sqlite3_int64 length = 0;
    uint8_t *file = sqlite3_serialize(db, "main", &length, 0);
    if (file != NULL && length > 0 && (size_t)length <= max_size) {
        memcpy(data, file, (size_t)length);
        changed = (size_t)length;
    }
    sqlite3_free(file);
    (void)sqlite3_close(db);
    return changed;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t random = seed;
    size_t changed =
        lac_mutator_draw(&random, 3) > 0 ? change_database(data, size, max_size, &random) : 0;
    return changed > 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
