/*
 * The tables in any program that loads extensions of SQLite, such as the sqlite3 shell:
 *
 *   .load build/lacuna_sqlite
 *   SELECT lacuna_open('DIR/traces/ID.db');
 *   SELECT name, total_ns FROM by_name ORDER BY 2 DESC LIMIT 10;
 *
 * Each trace file that is opened adds its rows; the column `trace` tells them apart.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/trace_file.h"

/* functions are called as they are, not through the table that the program hands over */
#define SQLITE_CORE 1
#include <sqlite3.h>
#include <sqlite3ext.h> /* NOLINT(misc-include-cleaner): the table is declared there */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TRACES_MAX = 128 };
#define CACHE_BYTES ((uint64_t)256 << 20)

/** Of one connection. Places never move: cursors point into them. */
struct opened {
    struct lac_sql_many many;
    struct lac_trace_file *files[TRACES_MAX];
    struct lac_sql_trace traces[TRACES_MAX];
    char *names[TRACES_MAX];
};

static void forget(void *context)
{
    struct opened *opened = context;
    for (unsigned i = 0; i < opened->many.count; i++) {
        lac_sql_trace_done(&opened->traces[i]);
        lac_trace_file_close(opened->files[i]);
        free(opened->names[i]);
    }
    free(opened);
}

static void complain(sqlite3_context *out, const char *path, const char *why)
{
    char *text = sqlite3_mprintf("%s: %s", path, why);
    if (text == NULL) {
        sqlite3_result_error_nomem(out);
    } else {
        sqlite3_result_error(out, text, -1);
    }
    sqlite3_free(text);
}

/** lacuna_open(path): the name of the trace, as the column `trace` has it. */
static void open_trace(sqlite3_context *out, int argc, sqlite3_value **argv)
{
    struct opened *opened = sqlite3_user_data(out);
    const unsigned at = opened->many.count;
    const char *path = argc == 1 ? (const char *)sqlite3_value_text(argv[0]) : NULL;
    struct lac_error error = {0};
    if (path == NULL) {
        sqlite3_result_error(out, "lacuna_open takes the path of a trace file", -1);
        return;
    }
    if (at == TRACES_MAX) {
        complain(out, path, "128 traces are open already");
        return;
    }
    enum lac_status status =
        lac_trace_file_open(path, (size_t)CACHE_BYTES, &opened->files[at], &error);
    if (status != LAC_OK) {
        complain(out, path, error.message[0] != '\0' ? error.message : lac_status_name(status));
        return;
    }
    const struct lac_model *head = lac_trace_file_head(opened->files[at]);
    opened->names[at] = lac_sql_many_name(&opened->many, lac_model_str(head, head->info.name));
    if (opened->names[at] == NULL) {
        lac_trace_file_close(opened->files[at]);
        sqlite3_result_error_nomem(out);
        return;
    }
    lac_sql_trace_init(&opened->traces[at], opened->files[at]);
    opened->many.count++;
    sqlite3_result_text(out, opened->names[at], -1, SQLITE_STATIC);
}

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *db, char **ret_error,
                                                                  const sqlite3_api_routines *api);

int sqlite3_extension_init(sqlite3 *db, char **ret_error, const sqlite3_api_routines *api)
{
    if (api->open_v2 != sqlite3_open_v2) {
        *ret_error = api->mprintf("this program has an SQLite inside: lacuna_sqlite works where it "
                                  "is the shared library libsqlite3.so, as in Debian's sqlite3");
        return SQLITE_ERROR;
    }
    struct opened *opened = calloc(1, sizeof(*opened));
    if (opened == NULL) {
        return SQLITE_NOMEM;
    }
    opened->many = (struct lac_sql_many){.traces = opened->traces,
                                         .names = (const char *const *)opened->names};
    /* what a schema holds may not open files */
    int code = sqlite3_create_function_v2(db, "lacuna_open", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                          opened, open_trace, NULL, NULL, forget);
    if (code == SQLITE_OK) {
        code = lac_sql_register_many(db, &opened->many);
    }
    return code;
}
