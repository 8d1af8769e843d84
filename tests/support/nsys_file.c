#include "tests/support/nsys_file.h"

#include "tests/support/check_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum lac_status nsys_file_keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct lac_model **kept = context;
    (void)reterr;
    ck_assert_ptr_null(*kept);
    *kept = model;
    return LAC_OK;
}

struct lac_import_options nsys_file_options(void)
{
    struct lac_import_options options = {.name = NULL};
    lac_import_limits_default(&options.limits);
    return options;
}

struct lac_model *nsys_file_import(const char *path)
{
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_import_file(path, &options, nsys_file_keep, &model, &error);
    ck_assert_msg(status == LAC_OK, "%s: %s", path, error.message);
    ck_assert(lac_model_is_valid(model));
    return model;
}

enum lac_status nsys_file_refused(const char *path, struct lac_error *error)
{
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    enum lac_status status = lac_import_file(path, &options, nsys_file_keep, &model, error);
    ck_assert_ptr_null(model);
    return status;
}

void nsys_file_sql(struct nsys_file *made, const char *text)
{
    char *message = NULL;
    int code = sqlite3_exec(made->db, text, NULL, NULL, &message);
    ck_assert_msg(code == SQLITE_OK, "%s: %s", text, message);
}

struct nsys_file nsys_file_begin(void)
{
    struct nsys_file made = {.db = NULL};
    (void)snprintf(made.path, sizeof(made.path), "/tmp/lac_nsys_%d_XXXXXX", (int)getpid());
    int fd = mkstemp(made.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(sqlite3_open(made.path, &made.db), SQLITE_OK);
    nsys_file_sql(&made, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;");
    return made;
}

void nsys_file_done(struct nsys_file *made)
{
    ck_assert_int_eq(sqlite3_close(made->db), SQLITE_OK);
    made->db = NULL;
}

void nsys_file_tables(struct nsys_file *made)
{
    nsys_file_sql(made, "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
                        "INSERT INTO StringIds VALUES(1,'void gemm<float>(int)'),(2,'gemm'),"
                        "(3,'cudaLaunchKernel_v7000'),(4,'cudaMemcpyAsync_v3020'),(5,'from ids'),"
                        "(6,'pt_main_thread'),(7,'read');");
    nsys_file_sql(
        made,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
        "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
        "demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
        "blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, "
        "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER)");
    nsys_file_sql(made,
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass "
                  "INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue "
                  "INTEGER)");
}

char *nsys_file_bytes(const char *path, size_t *ret_size)
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
