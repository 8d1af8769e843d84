#ifndef LAC_TESTS_SUPPORT_NSYS_FILE_H
#define LAC_TESTS_SUPPORT_NSYS_FILE_H

/* Small Nsight Systems exports made by SQL, and their import, for tests. All of it asserts. */

#include "analysis/import/import.h"

#include <sqlite3.h>

struct nsys_file {
    char path[128];
    sqlite3 *db;
};

/** A new empty database in /tmp; the test unlinks its path. */
struct nsys_file nsys_file_begin(void);
void nsys_file_sql(struct nsys_file *made, const char *text);
/** StringIds with seven strings, and empty tables of kernels and calls. */
void nsys_file_tables(struct nsys_file *made);
/** Close it: it can be imported now. */
void nsys_file_done(struct nsys_file *made);

/** A sink that keeps the one model in the `struct lac_model *` that `context` points to. */
enum lac_status nsys_file_keep(void *context, struct lac_model *model, struct lac_error *reterr);
struct lac_import_options nsys_file_options(void);
/** Import what must be readable. */
struct lac_model *nsys_file_import(const char *path);
/** Import what gives no model. */
enum lac_status nsys_file_refused(const char *path, struct lac_error *error);
/** A whole file; the caller frees it. */
char *nsys_file_bytes(const char *path, size_t *ret_size);

#endif
