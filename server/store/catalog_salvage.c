/* What can still be read of a damaged catalog: a page whose checksum is wrong costs the
 * rows in it. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEQ_MAX = 10000000, MISSES_MAX = 100000 };

struct salvage {
    sqlite3 *from, *to;
    enum lac_status
        status; /**< of the new catalog: what cannot be read of the old one is no error */
    struct lac_error *reterr;
};

/** "INSERT OR IGNORE" of the columns that `get` has. */
static sqlite3_stmt *prepare_insert(struct salvage *salvage, const char *table, sqlite3_stmt *get)
{
    sqlite3_str *sql = sqlite3_str_new(salvage->to);
    sqlite3_stmt *insert = NULL;
    int count = sqlite3_column_count(get);
    char *text;

    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\"(", table);
    for (int i = 0; i < count; i++) {
        sqlite3_str_appendf(sql, "%s\"%w\"", i > 0 ? "," : "", sqlite3_column_name(get, i));
    }
    sqlite3_str_appendall(sql, ") VALUES(");
    for (int i = 0; i < count; i++) {
        sqlite3_str_appendall(sql, i > 0 ? ",?" : "?");
    }
    sqlite3_str_appendall(sql, ")");
    text = sqlite3_str_finish(sql);
    if (text == NULL) {
        salvage->status = lac_fail(salvage->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else {
        (void)sqlite3_prepare_v2(salvage->to, text, -1, &insert,
                                 NULL); /* a column we do not have */
    }
    sqlite3_free(text);
    return insert;
}

static void insert_row(struct salvage *salvage, sqlite3_stmt *insert, sqlite3_stmt *get)
{
    int code;

    for (int i = 0; i < sqlite3_column_count(get); i++) {
        (void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(get, i));
    }
    code = sqlite3_step(insert);
    if (code != SQLITE_DONE && (code & 0xFF) != SQLITE_CONSTRAINT) {
        salvage->status = lac_sql_fail(salvage->to, "cannot rebuild catalog.db", salvage->reterr);
    }
    lac_sql_reset(insert);
}

/** All rows of a statement until its end or the first that cannot be read. @return whether the end
 *  was reached */
static bool copy_rows(struct salvage *salvage, const char *table, sqlite3_stmt *get)
{
    sqlite3_stmt *insert = NULL;
    int code;

    while ((code = sqlite3_step(get)) == SQLITE_ROW && salvage->status == LAC_OK) {
        if (insert == NULL) {
            insert = prepare_insert(salvage, table, get);
        }
        if (insert == NULL) {
            break;
        }
        insert_row(salvage, insert, get);
    }
    (void)sqlite3_finalize(insert);
    return code == SQLITE_DONE;
}

static bool copy_ordered(struct salvage *salvage, const char *table, const char *order)
{
    sqlite3_stmt *get = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s", table, order);
    bool done = false;

    if (sql == NULL) {
        salvage->status = lac_fail(salvage->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        return true;
    }
    if (sqlite3_prepare_v2(salvage->from, sql, -1, &get, NULL) == SQLITE_OK) {
        done = copy_rows(salvage, table, get);
    }
    (void)sqlite3_finalize(get);
    sqlite3_free(sql);
    return done;
}

/** Rows between two damaged pages: each by its number. */
static void copy_by_number(struct salvage *salvage, const char *table, const char *key)
{
    sqlite3_stmt *get = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" WHERE %s = ?", table, key);
    int misses = 0;

    if (sql != NULL && sqlite3_prepare_v2(salvage->from, sql, -1, &get, NULL) == SQLITE_OK) {
        for (int64_t number = 1;
             number < SEQ_MAX && misses < MISSES_MAX && salvage->status == LAC_OK; number++) {
            sqlite3_int64 before = sqlite3_total_changes64(salvage->to);

            lac_sql_bind_i64(get, 1, number);
            (void)copy_rows(salvage, table, get);
            (void)sqlite3_reset(get);
            misses = sqlite3_total_changes64(salvage->to) > before ? 0 : misses + 1;
        }
    }
    (void)sqlite3_finalize(get);
    sqlite3_free(sql);
}

static void copy_table(struct salvage *salvage, const char *table, const char *key, bool numbered)
{
    char backwards[80];

    if (copy_ordered(salvage, table, key)) {
        return;
    }
    (void)sqlite3_snprintf(sizeof(backwards), backwards, "%s DESC", key);
    (void)copy_ordered(salvage, table, backwards);
    if (numbered) {
        copy_by_number(salvage, table, key);
    }
}

/* each with its key: tables of names first, which the others refer to */
static const struct {
    const char *table, *key;
    bool numbered;
} tables[] = {
    {"projects", "id", true},
    {"runs", "id", false},
    {"users", "id", true},
    {"traces", "seq", true},
    {"report_lines", "trace", false},
    {"findings", "trace", false},
    {"labels", "trace", false},
    {"trained_models", "trace", false},
    {"baselines", "project", false},
    {"pins", "trace", false},
    {"bookmarks", "id", false},
    {"reports", "id", false},
    {"report_versions", "report, version", false},
    {"report_parts", "report, part", false},
    {"report_comments", "id", false},
    {"report_findings", "report, part", false},
    {"shares", "id", false},
    {"webhooks", "id", false},
    {"webhook_deliveries", "seq", true},
    {"sessions", "hash", false},
    {"tokens", "hash", false},
    {"members", "project", false},
    {"project_settings", "project", false},
    {"objects", "kind, id", false},
    {"object_store", "one", false},
    {"quotas", "kind, name", false},
    {"uploaders", "trace", false},
    {"audit", "id", true},
};

/* What rows refer to may have been in a bad page. */
static const char drop_dangling[] =
    "UPDATE traces SET project = NULL WHERE project NOT IN (SELECT id FROM "
    "projects);"
    "UPDATE traces SET run = NULL WHERE run NOT IN (SELECT id FROM runs);"
    "UPDATE runs SET project = NULL WHERE project NOT IN (SELECT id FROM projects);"
    "UPDATE reports SET project = NULL WHERE project NOT IN"
    " (SELECT id FROM projects);"
    "DELETE FROM sessions WHERE user NOT IN (SELECT id FROM users);"
    "DELETE FROM tokens WHERE user <> 0 AND user NOT IN (SELECT id FROM users);"
    "DELETE FROM members WHERE user NOT IN (SELECT id FROM users);"
    "DELETE FROM report_lines WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM findings WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM labels WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM trained_models WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM baselines WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM pins WHERE trace NOT IN (SELECT id FROM traces);"
    "DELETE FROM bookmarks WHERE trace NOT IN (SELECT id FROM traces)";

enum lac_status lac_catalog_salvage(sqlite3 *file, const char *damaged_path,
                                    struct lac_error *reterr)
{
    struct salvage salvage = {.to = file, .reterr = reterr};

    if (sqlite3_open_v2(damaged_path, &salvage.from, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                        LAC_CHECKED_VFS) == SQLITE_OK) {
        (void)sqlite3_db_config(salvage.from, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(salvage.from, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void)sqlite3_db_config(salvage.from, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        (void)sqlite3_db_config(salvage.from, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        salvage.status = lac_sql_run(file, "PRAGMA foreign_keys = OFF", reterr);
        if (salvage.status == LAC_OK) {
            salvage.status =
                lac_sql_run(file, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", reterr);
        }
        if (salvage.status == LAC_OK) {
            for (size_t i = 0; i < LAC_COUNT_OF(tables); i++) {
                copy_table(&salvage, tables[i].table, tables[i].key, tables[i].numbered);
            }
            if (salvage.status == LAC_OK) {
                salvage.status = lac_sql_run(file, drop_dangling, reterr);
            }
            salvage.status =
                salvage.status == LAC_OK ? lac_sql_run(file, "COMMIT", reterr) : salvage.status;
            if (sqlite3_get_autocommit(file) == 0) {
                (void)sqlite3_exec(file, "ROLLBACK", NULL, NULL, NULL);
            }
        }
        if (salvage.status == LAC_OK) {
            salvage.status = lac_sql_run(file, "PRAGMA foreign_keys = ON", reterr);
        }
    }
    (void)sqlite3_close(salvage.from);
    return salvage.status;
}
