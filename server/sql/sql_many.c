/*
 * The tables of several traces as one, with a column `trace` behind their own. Each table is a
 * module around the one that reads a single trace: it asks that one of every trace in turn, or of
 * the one whose name the query gives.
 */

#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of idxNum, which tables of one trace use from below. */
enum { HAS_TRACE = 1 << 30 };

/* A rowid is the trace's number and the row's own: SQLite tells rows apart by it. */
enum { ROW_BITS = 40 };

struct many_module {
    struct lac_sql_module one; /**< of the tables inside */
    struct lac_sql_many *many;
};

struct many_vtab {
    sqlite3_vtab base;
    const struct many_module *module;
    struct lac_sql_vtab inner;
};

struct many_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_vtab_cursor *inner;
    unsigned trace, trace_end; /**< the one that is read, and where to stop */
    int index;
    char *text;
    int argc;
    sqlite3_value **argv; /**< copies */
};

char *lac_sql_many_name(const struct lac_sql_many *many, const char *own)
{
    const size_t room = strlen(own) + 16;
    char *name = malloc(room);
    unsigned number = 1;
    unsigned i = 0;
    if (name == NULL) {
        return NULL;
    }
    (void)snprintf(name, room, "%s", own);
    while (i < many->count) {
        if (strcmp(many->names[i], name) == 0) {
            (void)snprintf(name, room, "%s (%u)", own, ++number);
            i = 0;
        } else {
            i++;
        }
    }
    return name;
}

static struct lac_sql_trace *find_current(void *context)
{
    return ((const struct lac_sql_many *)context)->current;
}

static const sqlite3_module *inner_of(const sqlite3_vtab *vtab)
{
    return lac_sql_module_of(((const struct many_vtab *)vtab)->module->one.table);
}

static int connect_many(sqlite3 *db, void *context, int argc, const char *const *argv,
                        sqlite3_vtab **ret_vtab, char **ret_error)
{
    const struct many_module *module = context;
    (void)argc;
    (void)argv;
    (void)ret_error;
    struct many_vtab *vtab = sqlite3_malloc(sizeof(*vtab));
    if (vtab == NULL) {
        return SQLITE_NOMEM;
    }
    *vtab = (struct many_vtab){.module = module, .inner = {.module = &module->one}};
    int code = lac_sql_declare(db, module->one.table, "trace TEXT");
    if (code != SQLITE_OK) {
        sqlite3_free(vtab);
        return code;
    }
    *ret_vtab = &vtab->base;
    return SQLITE_OK;
}

static int disconnect_many(sqlite3_vtab *vtab)
{
    sqlite3_free(((struct many_vtab *)vtab)->inner.base.zErrMsg);
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/** The condition on `trace` that can be pushed down, or -1. */
static int trace_condition(sqlite3_index_info *info, int column)
{
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *it = &info->aConstraint[i];
        if (it->iColumn == column && it->op == SQLITE_INDEX_CONSTRAINT_EQ && it->usable &&
            strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0) {
            return i;
        }
    }
    return -1;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    struct many_vtab *it = (struct many_vtab *)vtab;
    struct lac_sql_many *many = it->module->many;
    const int column = (int)it->module->one.table->column_count;
    int argc = 0;
    many->current = many->count > 0 ? &many->traces[0] : NULL;
    const int code = inner_of(vtab)->xBestIndex(&it->inner.base, info);
    if (code != SQLITE_OK) {
        return code;
    }
    for (int i = 0; i < info->nConstraint; i++) {
        argc =
            info->aConstraintUsage[i].argvIndex > argc ? info->aConstraintUsage[i].argvIndex : argc;
    }
    const int condition = trace_condition(info, column);
    if (condition >= 0) {
        info->aConstraintUsage[condition].argvIndex = argc + 1;
        info->idxNum |= HAS_TRACE;
    } else {
        info->estimatedRows *= many->count;
        info->estimatedCost *= many->count;
    }
    info->orderByConsumed = 0;
    info->idxFlags = 0;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
    struct many_vtab *it = (struct many_vtab *)vtab;
    struct many_cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct many_cursor){.inner = NULL};
    const int code = inner_of(vtab)->xOpen(&it->inner.base, &cursor->inner);
    if (code != SQLITE_OK) {
        sqlite3_free(cursor);
        return code;
    }
    cursor->inner->pVtab = &it->inner.base; /* as SQLite does itself */
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct many_cursor *cursor)
{
    for (int i = 0; i < cursor->argc; i++) {
        sqlite3_value_free(cursor->argv[i]);
    }
    sqlite3_free((void *)cursor->argv);
    sqlite3_free(cursor->text);
    cursor->argv = NULL;
    cursor->text = NULL;
    cursor->argc = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct many_cursor *cursor = (struct many_cursor *)base;
    forget(cursor);
    (void)inner_of(base->pVtab)->xClose(cursor->inner);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/** What the table of one trace complains of is the complaint. */
static int pass_on(sqlite3_vtab *vtab, int code)
{
    struct many_vtab *it = (struct many_vtab *)vtab;
    if (it->inner.base.zErrMsg != NULL) {
        sqlite3_free(vtab->zErrMsg);
        vtab->zErrMsg = it->inner.base.zErrMsg;
        it->inner.base.zErrMsg = NULL;
    }
    return code;
}

/** Go to the next row, through the traces that have none. @param is_new ask this trace first */
static int settle(struct many_cursor *cursor, bool is_new)
{
    const struct many_vtab *vtab = (const struct many_vtab *)cursor->base.pVtab;
    const sqlite3_module *inner = inner_of(cursor->base.pVtab);
    struct lac_sql_many *many = vtab->module->many;
    while (cursor->trace < cursor->trace_end) {
        if (is_new) {
            many->current = &many->traces[cursor->trace];
            if (lac_sql_trace_is_late(many->current)) {
                return SQLITE_INTERRUPT;
            }
            const int code = inner->xFilter(cursor->inner, cursor->index, cursor->text,
                                            cursor->argc, cursor->argv);
            if (code != SQLITE_OK) {
                return pass_on(cursor->base.pVtab, code);
            }
        }
        if (inner->xEof(cursor->inner) == 0) {
            return SQLITE_OK;
        }
        cursor->trace++;
        is_new = true;
    }
    return SQLITE_OK;
}

/** The traces to read: all, or the one that is named. */
static void choose_traces(struct many_cursor *cursor, const struct lac_sql_many *many,
                          sqlite3_value *name)
{
    cursor->trace = 0;
    cursor->trace_end = many->count;
    if (name == NULL) {
        return;
    }
    const char *text =
        sqlite3_value_type(name) == SQLITE_TEXT ? (const char *)sqlite3_value_text(name) : NULL;
    cursor->trace_end = 0;
    for (unsigned i = 0; i < many->count && text != NULL; i++) {
        if (strcmp(many->names[i], text) == 0) {
            cursor->trace = i;
            cursor->trace_end = i + 1;
        }
    }
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc,
                  sqlite3_value **argv)
{
    struct many_cursor *cursor = (struct many_cursor *)base;
    const struct lac_sql_many *many = ((const struct many_vtab *)base->pVtab)->module->many;
    forget(cursor);
    const bool has_trace = (index & HAS_TRACE) != 0 && argc > 0;
    const int kept = argc - (has_trace ? 1 : 0);
    choose_traces(cursor, many, has_trace ? argv[kept] : NULL);
    cursor->index = index & ~HAS_TRACE;
    cursor->text = text != NULL ? sqlite3_mprintf("%s", text) : NULL;
    cursor->argv = sqlite3_malloc64(((uint64_t)kept + 1) * sizeof(*cursor->argv));
    if (cursor->argv == NULL || (text != NULL && cursor->text == NULL)) {
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < kept; i++) {
        cursor->argv[i] = sqlite3_value_dup(argv[i]);
        if (cursor->argv[i] == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->argc = i + 1;
    }
    return settle(cursor, true);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct many_cursor *cursor = (struct many_cursor *)base;
    const int code = inner_of(base->pVtab)->xNext(cursor->inner);
    return code == SQLITE_OK ? settle(cursor, false) : pass_on(base->pVtab, code);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct many_cursor *cursor = (const struct many_cursor *)base;
    return cursor->trace >= cursor->trace_end;
}

static int put_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct many_cursor *cursor = (const struct many_cursor *)base;
    const struct many_vtab *vtab = (const struct many_vtab *)base->pVtab;
    if (column == (int)vtab->module->one.table->column_count) {
        sqlite3_result_text(out, vtab->module->many->names[cursor->trace], -1, SQLITE_STATIC);
        return SQLITE_OK;
    }
    return inner_of(base->pVtab)->xColumn(cursor->inner, out, column);
}

static int put_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    const struct many_cursor *cursor = (const struct many_cursor *)base;
    sqlite3_int64 row = 0;
    const int code = inner_of(base->pVtab)->xRowid(cursor->inner, &row);
    *ret_rowid = (sqlite3_int64)((uint64_t)cursor->trace << ROW_BITS | (uint64_t)row);
    return code;
}

static const sqlite3_module many_rows = LAC_SQL_MODULE(connect_many, disconnect_many);

int lac_sql_register_many(sqlite3 *db, struct lac_sql_many *many)
{
    int code = lac_sql_register_aggregates(db);
    for (const struct lac_sql_table *const *table = lac_sql_tables();
         *table != NULL && code == SQLITE_OK; table++) {
        struct many_module *module = malloc(sizeof(*module));
        if (module == NULL) {
            return SQLITE_NOMEM;
        }
        *module = (struct many_module){.one = {.table = *table,
                                               .finder = find_current,
                                               .context = many,
                                               .is_one_of_many = true},
                                       .many = many};
        /* frees the module also where it fails */
        code = sqlite3_create_module_v2(db, (*table)->name, &many_rows, module, free);
    }
    return code;
}
