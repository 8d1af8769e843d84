#include "server/store/catalog.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/publish.h"
#include "server/store/schema_reports.h"
#include "server/store/store.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_MS = 15000, PAGE_BYTES = 4096 };

#define LABELS_TABLE(kind)                                                                         \
    "CREATE " kind " labels(trace TEXT PRIMARY KEY, name TEXT, project TEXT, notes TEXT,"          \
    " tags TEXT) WITHOUT ROWID;"

#define JOURNAL_TABLES(kind)                                                                       \
    "CREATE " kind " figures(trace TEXT PRIMARY KEY, version INTEGER, generation INTEGER,"         \
    " recorded_ms INTEGER, person TEXT, job TEXT, log_step REAL, variance REAL, steps INTEGER,"    \
    " fingerprint INTEGER, gpu_ns INTEGER, parts TEXT, energy_j REAL, document TEXT)"              \
    " WITHOUT ROWID;"                                                                              \
    "CREATE " kind " figure_settings(trace TEXT, key TEXT, value TEXT, PRIMARY KEY(trace, key))"   \
    " WITHOUT ROWID;"                                                                              \
    "CREATE " kind " neighbors(b TEXT PRIMARY KEY, a TEXT NOT NULL, version INTEGER,"              \
    " predicted_pct REAL, achieved_pct REAL, document TEXT) WITHOUT ROWID;"                        \
    "CREATE " kind " baselines(project TEXT PRIMARY KEY, trace TEXT NOT NULL) WITHOUT ROWID;"      \
    "CREATE " kind " pins(trace TEXT PRIMARY KEY, at_ms INTEGER) WITHOUT ROWID;"

#define MFU_COLUMN "ALTER TABLE figures ADD COLUMN mfu_pct REAL;"

#define PEOPLE_TABLES(kind)                                                                        \
    "CREATE " kind " users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"       \
    " password TEXT, is_admin INTEGER, created_ms INTEGER);"                                       \
    "CREATE " kind " sessions(hash BLOB PRIMARY KEY, user INTEGER NOT NULL, expires_ms INTEGER)"   \
    " WITHOUT ROWID;"                                                                              \
    "CREATE " kind " tokens(hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT,"           \
    " user INTEGER, scope TEXT, project TEXT, created_ms INTEGER, expires_ms INTEGER,"             \
    " last_used_ms INTEGER) WITHOUT ROWID;"                                                        \
    "CREATE " kind " members(project TEXT, user INTEGER, role TEXT, PRIMARY KEY(project, user))"   \
    " WITHOUT ROWID;"                                                                              \
    "CREATE " kind " project_settings(project TEXT PRIMARY KEY, everybody TEXT,"                   \
    " description TEXT) WITHOUT ROWID;"

#define WEBHOOK_TABLES(kind)                                                                       \
    "CREATE " kind " webhooks(id TEXT PRIMARY KEY, project TEXT NOT NULL, url TEXT NOT NULL,"      \
    " form TEXT NOT NULL, secret TEXT NOT NULL, events TEXT NOT NULL, author TEXT NOT NULL,"       \
    " created_ms INTEGER NOT NULL) WITHOUT ROWID;"                                                 \
    "CREATE " kind " webhook_deliveries(seq INTEGER PRIMARY KEY AUTOINCREMENT, webhook TEXT NOT"   \
    " NULL, event TEXT NOT NULL, object TEXT NOT NULL, body TEXT, text TEXT, at_ms INTEGER NOT"    \
    " NULL, attempts INTEGER NOT NULL DEFAULT 0, next_ms INTEGER, status INTEGER, problem TEXT,"   \
    " UNIQUE(webhook, event, object));"

#define OBJECT_TABLES(kind)                                                                        \
    "CREATE " kind " objects(kind INTEGER, id TEXT, sha256 BLOB NOT NULL, bytes INTEGER,"          \
    " PRIMARY KEY(kind, id)) WITHOUT ROWID;"                                                       \
    "CREATE " kind " object_store(one INTEGER PRIMARY KEY CHECK(one = 1), url TEXT NOT NULL,"      \
    " owner TEXT NOT NULL);"

#define QUOTA_TABLES(kind)                                                                         \
    "CREATE " kind " quotas(kind TEXT, name TEXT, bytes INTEGER NOT NULL,"                         \
    " PRIMARY KEY(kind, name)) WITHOUT ROWID;"                                                     \
    "CREATE " kind " uploaders(trace TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID;"

#define BOOKMARK_TABLES(kind)                                                                      \
    "CREATE " kind                                                                                 \
    " bookmarks(id TEXT PRIMARY KEY, trace TEXT NOT NULL, start_ns INTEGER NOT NULL,"              \
    " dur_ns INTEGER NOT NULL, note TEXT NOT NULL, author TEXT NOT NULL, at_ms INTEGER NOT NULL,"  \
    " edited_ms INTEGER) WITHOUT ROWID;"

#define RUN_LABEL "ALTER TABLE labels ADD COLUMN run TEXT;"

#define MODEL_TABLE(kind)                                                                          \
    "CREATE " kind " trained_models(trace TEXT PRIMARY KEY, model TEXT NOT NULL) WITHOUT ROWID;"

/** What takes a catalog from version N to N + 1. Never change one that was released: add one. */
static const char *const migrations[] = {
    "CREATE TABLE projects(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms INTEGER"
    " NOT NULL);"
    "CREATE TABLE runs(id TEXT PRIMARY KEY, project INTEGER REFERENCES projects(id), name TEXT,"
    " created_ms INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE traces(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " project INTEGER REFERENCES projects(id), run TEXT REFERENCES runs(id), name TEXT NOT NULL,"
    " state INTEGER NOT NULL, created_ms INTEGER NOT NULL, sha256 BLOB, size_bytes INTEGER,"
    " generation INTEGER, error_code TEXT, error_message TEXT, original TEXT, format TEXT,"
    " event_count INTEGER, slice_count INTEGER, dropped_count INTEGER, repaired_count INTEGER,"
    " duration_ns INTEGER, t0_ns INTEGER, rank INTEGER, host TEXT, is_simulated INTEGER,"
    " device_count INTEGER, device_names TEXT, file_bytes INTEGER, cause TEXT, letter TEXT,"
    " verdict TEXT, step_mean_ns INTEGER, throughput_per_s REAL, throughput_unit TEXT,"
    " not_computing_pct REAL, next_change TEXT, gain_low_pct REAL, gain_mid_pct REAL,"
    " gain_high_pct REAL, finding_id TEXT);"
    "CREATE INDEX traces_by_content ON traces(sha256);"
    "CREATE INDEX traces_by_run ON traces(run);"
    "CREATE INDEX traces_by_original ON traces(original);"
    "CREATE INDEX traces_by_state ON traces(state);"
    "CREATE TABLE report_lines(trace TEXT NOT NULL, line INTEGER NOT NULL, code TEXT, severity"
    " INTEGER, count INTEGER, first_offset_bytes INTEGER, text TEXT, PRIMARY KEY(trace, line))"
    " WITHOUT ROWID;"
    "CREATE TABLE findings(trace TEXT NOT NULL, rank INTEGER NOT NULL, finding_id TEXT, severity"
    " TEXT, cost_ns_per_step INTEGER, cost_pct REAL, gain_low_pct REAL, gain_mid_pct REAL,"
    " gain_high_pct REAL, confidence REAL, title TEXT, PRIMARY KEY(trace, rank)) WITHOUT ROWID;"
    "CREATE TABLE reports(id TEXT PRIMARY KEY, project INTEGER REFERENCES projects(id), title TEXT,"
    " body TEXT, created_ms INTEGER, updated_ms INTEGER) WITHOUT ROWID;"
    "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms INTEGER);"
    "CREATE TABLE tokens(hash BLOB PRIMARY KEY, tail TEXT, user INTEGER REFERENCES users(id),"
    " project INTEGER REFERENCES projects(id), scopes TEXT, created_ms INTEGER, expires_ms INTEGER,"
    " last_used_ms INTEGER) WITHOUT ROWID;"
    "CREATE TABLE audit(id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT, action TEXT,"
    " object TEXT);",
    ("ALTER TABLE traces ADD COLUMN clock_offset_ns INTEGER;"
     "ALTER TABLE traces ADD COLUMN clock_error_ns INTEGER;"),
    /* the same tables in a file with checksums, which lac_catalog_convert() makes */
    "",
    LABELS_TABLE("TABLE"),
    JOURNAL_TABLES("TABLE") "CREATE INDEX neighbors_by_a ON neighbors(a);",
    LAC_SCHEMA_REPORTS,
    /* the first two were never filled */
    "DROP TABLE tokens; DROP TABLE users;" PEOPLE_TABLES("TABLE"),
    WEBHOOK_TABLES("TABLE") "CREATE INDEX webhook_deliveries_due ON webhook_deliveries(next_ms)"
                            " WHERE next_ms IS NOT NULL;",
    OBJECT_TABLES("TABLE"),
    QUOTA_TABLES("TABLE") "CREATE INDEX uploaders_by_token ON uploaders(token);",
    BOOKMARK_TABLES("TABLE") "CREATE INDEX bookmarks_by_trace ON bookmarks(trace, start_ns);",
    MFU_COLUMN,
    MODEL_TABLE("TABLE") RUN_LABEL "CREATE INDEX labels_by_run ON labels(run)"
                                   " WHERE run IS NOT NULL;",
};

_Static_assert(LAC_COUNT_OF(migrations) == LAC_CATALOG_VERSION, "one migration a version");

enum lac_status lac_catalog_open_elsewhere(const struct lac_postgres_catalog *place,
                                           struct lac_db **ret_db, struct lac_error *reterr)
{
    char owner[LAC_ID_SIZE] = "";
    struct lac_postgres_catalog catalog = *place;
    const enum lac_status status = lac_store_new_id(owner, reterr);

    catalog.fresh_owner = owner;
    catalog.migrations = migrations;
    catalog.version = LAC_CATALOG_VERSION;
    return status == LAC_OK ? lac_db_open_elsewhere(&catalog, ret_db, reterr) : status;
}

int64_t lac_now_unix_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum lac_status read_version(sqlite3 *db, int *ret_version, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(db, "PRAGMA user_version", &get, reterr);

    if (status == LAC_OK) {
        status = lac_sql_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        *ret_version = sqlite3_column_int(get, 0);
    }
    (void)sqlite3_finalize(get);
    return status;
}

static enum lac_status migrate(sqlite3 *db, int newest, struct lac_error *reterr)
{
    int version = 0;
    enum lac_status status = lac_sql_run(db, "BEGIN IMMEDIATE", reterr);

    if (status != LAC_OK) {
        return status;
    }
    /* read inside the transaction: another process may have migrated just now */
    status = read_version(db, &version, reterr);
    if (status == LAC_OK && (version < 0 || version > LAC_CATALOG_VERSION)) {
        status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                          "the catalog has version %d, this program knows up to %d: use a newer "
                          "lacuna",
                          version, LAC_CATALOG_VERSION);
    }
    while (status == LAC_OK && version < newest) {
        status = lac_sql_run(db, migrations[version], reterr);
        version++;
    }
    if (status == LAC_OK) {
        char pragma[40];

        (void)sqlite3_snprintf(sizeof(pragma), pragma, "PRAGMA user_version = %d", version);
        status = lac_sql_run(db, pragma, reterr);
    }
    if (status == LAC_OK) {
        status = lac_sql_run(db, "COMMIT", reterr);
    }
    if (status != LAC_OK && sqlite3_get_autocommit(db) == 0) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

enum lac_status lac_catalog_open(const char *path, struct lac_db **ret_db, struct lac_error *reterr)
{
    sqlite3 *db = NULL;
    struct stat info;
    int version = 0;
    int newest = LAC_CATALOG_VERSION;
    bool is_new = stat(path, &info) != 0 || info.st_size == 0;
    enum lac_status status = LAC_OK;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        LAC_CHECKED_VFS) != SQLITE_OK) {
        status = lac_sql_fail(db, "cannot open catalog.db", reterr);
        (void)sqlite3_close(db);
        return status;
    }
    (void)chmod(path, 0600);
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (is_new) {
        status = lac_checked_begin(db, PAGE_BYTES, reterr);
    }
    if (status == LAC_OK) {
        /* a journal that stays: its room is there when the disk is full, and a start needs none;
         * 16 MiB of pages: ten thousand runs are read again and again */
        status = lac_sql_run(db,
                             "PRAGMA page_size = 4096; PRAGMA journal_mode = PERSIST;"
                             "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
                             "PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384",
                             reterr);
    }
    if (status == LAC_OK) {
        status = read_version(db, &version, reterr);
    }
    if (status == LAC_OK && !is_new && !lac_checked_is_on(db)) {
        newest = LAC_CATALOG_CHECKED - 1; /* there was no room to convert it */
        if (version > newest && version <= LAC_CATALOG_VERSION) {
            status =
                lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                         "catalog.db is damaged (its checksums are off): " LAC_SQL_DAMAGE_ADVICE);
        }
    }
    if (status == LAC_OK && version != newest) {
        status = migrate(db, newest, reterr);
    }
    if (status == LAC_OK && newest < LAC_CATALOG_VERSION) {
        status = lac_sql_run(db,
                             LABELS_TABLE("TEMP TABLE") RUN_LABEL JOURNAL_TABLES("TEMP TABLE")
                                 MFU_COLUMN PEOPLE_TABLES("TEMP TABLE") WEBHOOK_TABLES("TEMP TABLE")
                                     OBJECT_TABLES("TEMP TABLE") QUOTA_TABLES("TEMP TABLE")
                                         BOOKMARK_TABLES("TEMP TABLE") MODEL_TABLE("TEMP TABLE"),
                             reterr); /* empty, to be read */
    }
    if (status != LAC_OK) {
        (void)sqlite3_close(db);
        return status;
    }
    return lac_db_of_sqlite(db, ret_db, reterr);
}

/** Whether a catalog of version 1 or 2: with a write-ahead log, or without checksums. */
static bool is_old(const char *path)
{
    uint8_t header[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool old = false;

    if (fd >= 0) {
        old = read(fd, header, sizeof(header)) == (ssize_t)sizeof(header) &&
              memcmp(header, "SQLite format 3", 16) == 0 &&
              (header[18] == 2 || (header[20] == 0 && header[63] < LAC_CATALOG_CHECKED));
        (void)close(fd);
    }
    return old;
}

/** On a full disk SQLite cannot leave the write-ahead log, as that takes a journal. With the log
 * empty its two bytes in the header can be set in their place. Nobody has the file open. */
static enum lac_status leave_log(const char *path, struct lac_error *reterr)
{
    static const uint8_t rollback_journal[2] = {1, 1};
    char log_path[4096];
    struct stat info;
    sqlite3 *db = NULL;
    int fd = -1;
    enum lac_status status = LAC_OK;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
        SQLITE_OK) {
        status = lac_sql_run(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA wal_checkpoint(TRUNCATE)",
                             reterr);
    }
    (void)sqlite3_close(db);
    (void)snprintf(log_path, sizeof(log_path), "%.4000s-wal", path);
    if (status == LAC_OK && (stat(log_path, &info) != 0 || info.st_size == 0)) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (status == LAC_OK &&
        (fd < 0 || pwrite(fd, rollback_journal, 2, 18) != 2 || fsync(fd) != 0)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "catalog.db: the disk is full: make room for it");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

enum lac_status lac_catalog_convert(const char *path, struct lac_error *reterr)
{
    char fresh[4096];
    char *sql = NULL;
    sqlite3 *db = NULL;
    int reserved = LAC_CHECKSUM_BYTES;
    enum lac_status status = LAC_OK;

    if (!is_old(path)) {
        return LAC_OK;
    }
    (void)snprintf(fresh, sizeof(fresh), "%.4000s.new", path);
    sql = sqlite3_mprintf("VACUUM INTO %Q", fresh);
    if (sql == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        status = lac_sql_fail(db, "cannot open catalog.db", reterr);
    }
    if (status == LAC_OK) {
        (void)sqlite3_busy_timeout(db, BUSY_MS);
        /* exclusive: without a file for shared memory, which a full disk has no room for */
        status = lac_sql_run(db,
                             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;"
                             "PRAGMA temp_store = MEMORY",
                             reterr);
    }
    if (status == LAC_OK) {
        status = lac_catalog_check(db, reterr);
    }
    if (status == LAC_OK) {
        (void)unlink(fresh);
        (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
        status = lac_sql_run(db, sql, reterr);
        if (status == LAC_OK) {
            status = lac_checked_stamp(fresh, reterr);
        }
        if (status == LAC_OK && rename(fresh, path) != 0) {
            status =
                lac_fail(reterr, LAC_ERR_IO, 0, "cannot replace catalog.db: %s", strerror(errno));
        }
        if (status != LAC_OK) {
            (void)unlink(fresh);
            status = status == LAC_ERR_NOMEM ? status : LAC_OK; /* as it is, until there is room */
        }
    }
    (void)sqlite3_close(db);
    sqlite3_free(sql);
    return status != LAC_OK && lac_sql_is_full(reterr) ? leave_log(path, reterr) : status;
}

enum lac_status lac_catalog_check(sqlite3 *file, struct lac_error *reterr)
{
    static const char *const tables[] = {"projects", "runs",  "traces", "report_lines", "findings",
                                         "reports",  "users", "tokens", "audit"};
    sqlite3_stmt *get = NULL;
    uint64_t bad_count = 0;
    uint64_t bad_offset = 0;
    enum lac_status status = lac_sql_run(file, "BEGIN; SELECT count(*) FROM sqlite_master", reterr);

    if (status == LAC_OK && lac_checked_is_on(file)) {
        status = lac_checked_scan(file, &bad_count, &bad_offset, reterr);
        if (status == LAC_OK && bad_count > 0) {
            status = lac_fail(
                reterr, LAC_ERR_CORRUPT, bad_offset,
                "catalog.db is damaged (wrong checksum at byte %llu): " LAC_SQL_DAMAGE_ADVICE,
                (unsigned long long)bad_offset);
        }
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(file, "PRAGMA integrity_check(1)", &get, reterr);
    }
    if (status == LAC_OK) {
        status = lac_sql_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        const char *said = (const char *)sqlite3_column_text(get, 0);

        if (said == NULL || strcmp(said, "ok") != 0) {
            status =
                lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                         "catalog.db is damaged (it contradicts itself): " LAC_SQL_DAMAGE_ADVICE);
        }
    }
    (void)sqlite3_finalize(get);
    for (size_t i = 0; i < LAC_COUNT_OF(tables) && status == LAC_OK; i++) {
        if (sqlite3_table_column_metadata(file, "main", tables[i], NULL, NULL, NULL, NULL, NULL,
                                          NULL) != SQLITE_OK) {
            status =
                lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                         "catalog.db is damaged (no table %s): " LAC_SQL_DAMAGE_ADVICE, tables[i]);
        }
    }
    if (sqlite3_get_autocommit(file) == 0) {
        (void)sqlite3_exec(file, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

enum lac_status lac_catalog_change(struct lac_db *db, const char *sql, const char *const *texts,
                                   unsigned text_count, int *ret_changes, struct lac_error *reterr)
{
    struct lac_statement *change = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &change, reterr);

    if (status == LAC_OK) {
        for (unsigned i = 0; i < text_count; i++) {
            lac_db_bind_text(change, (int)i + 1, texts[i]);
        }
        status = lac_db_step_done(change, "catalog", reterr);
    }
    if (ret_changes != NULL) {
        *ret_changes = lac_db_changes(db);
    }
    lac_db_finalize(change);
    return status;
}

enum lac_status lac_catalog_change_alone(struct lac_db *db, bool durable, const char *sql,
                                         const char *const *texts, unsigned text_count,
                                         int *ret_changes, struct lac_error *reterr)
{
    enum lac_status status = lac_db_begin(db, durable, reterr);

    if (status == LAC_OK) {
        status = lac_catalog_change(db, sql, texts, text_count, ret_changes, reterr);
        status = lac_db_end(db, status, reterr);
    }
    return status;
}

enum lac_status lac_catalog_number(struct lac_db *db, const char *column, const char *id,
                                   int64_t *ret_number, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    char sql[64];
    enum lac_status status;

    (void)snprintf(sql, sizeof(sql), "SELECT %s FROM traces WHERE id = ?", column);
    status = lac_db_prepare(db, sql, &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        *ret_number = lac_db_i64(get, 0);
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_catalog_project(struct lac_db *db, const char *name, int64_t *ret_id,
                                    struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = LAC_OK;

    *ret_id = 0;
    if (name == NULL || *name == '\0') {
        return LAC_OK;
    }
    status = lac_db_prepare(db,
                            "INSERT INTO projects(name, created_ms) VALUES(?, ?)"
                            " ON CONFLICT DO NOTHING",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, name);
        lac_db_bind_i64(get, 2, lac_now_unix_ms());
        status = lac_db_step_done(get, "catalog", reterr);
    }
    lac_db_finalize(get);
    get = NULL;
    if (status == LAC_OK) {
        status = lac_db_prepare(db, "SELECT id FROM projects WHERE name = ?", &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, name);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        *ret_id = lac_db_i64(get, 0);
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_catalog_put_run(struct lac_db *db, const char *id, int64_t project,
                                    const char *name, int64_t created_ms, struct lac_error *reterr)
{
    struct lac_statement *insert = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        "INSERT INTO runs VALUES(?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET"
        " project=excluded.project, name=excluded.name, created_ms=excluded.created_ms",
        &insert, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(insert, 1, id);
        if (project != 0) {
            lac_db_bind_i64(insert, 2, project);
        }
        lac_db_bind_text(insert, 3, name);
        lac_db_bind_i64(insert, 4, created_ms);
        status = lac_db_step_done(insert, "catalog", reterr);
    }
    lac_db_finalize(insert);
    return status;
}

enum lac_status lac_catalog_begin(struct lac_db *db, bool writes, const char *what,
                                  struct lac_error *reterr)
{
    if (!lac_db_is_current(db)) {
        return lac_fail(reterr, LAC_ERR_IO, 0,
                        "the disk has no room for %s: make room, then start the server again",
                        what);
    }
    return writes ? lac_db_begin(db, true, reterr) : LAC_OK;
}

const char *lac_catalog_number_text(char *out, int64_t number)
{
    (void)snprintf(out, LAC_NUMBER_SIZE, "%" PRId64, number);
    return out;
}
