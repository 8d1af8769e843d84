#include "server/sql/sql_register.h"

#include "analysis/model/status.h"
#include "server/sql/tables.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

const sqlite3_module *lac_sql_module_of(const struct lac_sql_table *table)
{
    return table->module != NULL ? table->module
           : table->rows == NULL ? &lac_sql_slice_module
                                 : &lac_sql_row_module;
}

int lac_sql_declare(sqlite3 *db, const struct lac_sql_table *table, const char *more)
{
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_str_appendall(text, "CREATE TABLE t(");
    for (unsigned c = 0; c < table->column_count; c++) {
        const struct lac_sql_column *column = lac_sql_table_column(table, c);
        bool is_argument = c >= table->column_count - table->argument_count;
        sqlite3_str_appendf(text, "%s\"%w\" %s%s", c > 0 ? "," : "", column->name, column->type,
                            is_argument ? " HIDDEN" : "");
    }
    sqlite3_str_appendf(text, "%s%s)", more != NULL ? "," : "", more != NULL ? more : "");
    char *sql = sqlite3_str_finish(text);
    int code = sql != NULL ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

int lac_sql_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                    sqlite3_vtab **ret_vtab, char **ret_error)
{
    const struct lac_sql_module *module = context;
    (void)argc;
    (void)argv;
    (void)ret_error;
    struct lac_sql_vtab *vtab = sqlite3_malloc(sizeof(*vtab));
    if (vtab == NULL) {
        return SQLITE_NOMEM;
    }
    *vtab = (struct lac_sql_vtab){.module = module};
    int code = lac_sql_declare(db, module->table, NULL);
    if (code != SQLITE_OK) {
        sqlite3_free(vtab);
        return code;
    }
    *ret_vtab = &vtab->base;
    return SQLITE_OK;
}

int lac_sql_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

int lac_sql_vtab_fail(sqlite3_vtab *vtab, enum lac_status status, const struct lac_error *error)
{
    if (status == LAC_ERR_NOMEM) {
        return SQLITE_NOMEM;
    }
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = sqlite3_mprintf("%s", error->message);
    return SQLITE_ERROR;
}

int lac_sql_register(sqlite3 *db, lac_sql_finder finder, void *context)
{
    int code = lac_sql_register_aggregates(db);
    for (const struct lac_sql_table *const *table = lac_sql_tables();
         *table != NULL && code == SQLITE_OK; table++) {
        struct lac_sql_module *module = malloc(sizeof(*module));
        if (module == NULL) {
            return SQLITE_NOMEM;
        }
        *module = (struct lac_sql_module){*table, finder, context, false};
        /* frees the module also where it fails */
        code =
            sqlite3_create_module_v2(db, (*table)->name, lac_sql_module_of(*table), module, free);
    }
    return code;
}
