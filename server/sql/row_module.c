/* Tables whose rows are counted before the first is read, and functions that give such tables. */

#include "analysis/model/status.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    sqlite3_vtab_cursor base;
    struct lac_sql_trace *trace;
    void *state;
    uint64_t row, count;
    sqlite3_value *arguments[LAC_SQL_ARGUMENTS_MAX]; /**< copies */
};

static const struct lac_sql_table *table_of(const sqlite3_vtab *vtab)
{
    return ((const struct lac_sql_vtab *)vtab)->module->table;
}

/** Arguments that are given become argv, in order; idxNum has a bit for each. */
static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct lac_sql_table *table = table_of(vtab);
    int first = (int)(table->column_count - table->argument_count);
    int chosen[LAC_SQL_ARGUMENTS_MAX];
    int argv_index = 0;
    for (int a = 0; a < LAC_SQL_ARGUMENTS_MAX; a++) {
        chosen[a] = -1;
    }
    for (int i = 0; i < info->nConstraint; i++) {
        int argument = info->aConstraint[i].iColumn - first;
        if (argument < 0 || argument >= (int)table->argument_count ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        if (!info->aConstraint[i].usable) {
            return SQLITE_CONSTRAINT; /* it comes from a table that is not read yet */
        }
        chosen[argument] = i;
    }
    for (unsigned a = 0; a < table->argument_count; a++) {
        if (chosen[a] >= 0) {
            info->aConstraintUsage[chosen[a]].argvIndex = ++argv_index;
            info->aConstraintUsage[chosen[a]].omit = 1;
            info->idxNum |= 1 << a;
        }
    }
    info->estimatedCost = table->argument_count > 0 ? 1e5 : 1e4;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    (void)vtab;
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct cursor){0};
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct cursor *cursor)
{
    const struct lac_sql_rows *rows = table_of(cursor->base.pVtab)->rows;
    if (cursor->state != NULL && rows->close != NULL) {
        rows->close(cursor->state);
    }
    for (int a = 0; a < LAC_SQL_ARGUMENTS_MAX; a++) {
        sqlite3_value_free(cursor->arguments[a]);
        cursor->arguments[a] = NULL;
    }
    cursor->state = NULL;
    cursor->row = 0;
    cursor->count = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    forget(cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc,
                  sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct lac_sql_module *module = ((const struct lac_sql_vtab *)base->pVtab)->module;
    struct lac_sql_arguments arguments = {0};
    struct lac_error error = {0};
    (void)text;
    forget(cursor);
    cursor->trace = module->finder(module->context);
    if (cursor->trace == NULL) {
        return SQLITE_OK;
    }
    for (int a = 0, next = 0; a < LAC_SQL_ARGUMENTS_MAX && next < argc; a++) {
        if ((index & 1 << a) != 0) {
            cursor->arguments[a] = sqlite3_value_dup(argv[next++]);
            arguments.value[a] = cursor->arguments[a];
            if (cursor->arguments[a] == NULL) {
                return SQLITE_NOMEM;
            }
        }
    }
    const struct lac_sql_rows *rows = module->table->rows;
    enum lac_status status =
        rows->count != NULL
            ? rows->count(cursor->trace, &cursor->count, &error)
            : rows->open(cursor->trace, &arguments, &cursor->state, &cursor->count, &error);
    return status == LAC_OK ? SQLITE_OK : lac_sql_vtab_fail(base->pVtab, status, &error);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->row++;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (const struct cursor *)base;
    return cursor->row >= cursor->count;
}

static int put_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct lac_sql_table *table = table_of(base->pVtab);
    unsigned first = table->column_count - table->argument_count;
    if ((unsigned)column < first) {
        table->rows->cell(cursor->trace, cursor->state, cursor->row, (unsigned)column, out);
    } else if (cursor->arguments[(unsigned)column - first] != NULL) {
        sqlite3_result_value(out, cursor->arguments[(unsigned)column - first]);
    }
    return SQLITE_OK;
}

static int put_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = (sqlite3_int64)((const struct cursor *)base)->row;
    return SQLITE_OK;
}

const sqlite3_module lac_sql_row_module = LAC_SQL_MODULE(lac_sql_connect, lac_sql_disconnect);
