#include "server/store/verify.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace_facts.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CACHE_BYTES = 16 << 20, NAME_BYTES = 320 };

struct verify {
    const struct lac_verify_options *options;
    struct lac_verify_counts *counts;
    struct lac_store store; /**< no more than its folder and its catalog */
    bool has_objects;       /**< the catalog has their table: of version 9 and later */
    enum lac_status status;
    struct lac_error *reterr;
};

static void tell(struct verify *verify, const char *folder, const char *name, const char *problem)
{
    char file[NAME_BYTES];

    (void)snprintf(file, sizeof(file), "%s%s%.260s", folder, *folder != '\0' ? "/" : "", name);
    verify->counts->problems++;
    verify->options->told(verify->options->context, file, problem);
}

/** What an error says behind the name of the file: messages of the store begin with it. */
static const char *without_label(const struct lac_error *error, const char *file)
{
    size_t length = strlen(file);

    return strncmp(error->message, file, length) == 0 && error->message[length] == ' '
               ? error->message + length + 1
               : error->message;
}

static void each_entry(struct verify *verify, const char *folder_name,
                       void (*visit)(struct verify *, const char *name))
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;

    (void)lac_store_path(&verify->store, path, folder_name, NULL, NULL);
    folder = opendir(path);
    while (folder != NULL && verify->status == LAC_OK && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            visit(verify, entry->d_name);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* -- trace files --------------------------------------------------------------------------------*/

/** Every page, or for a file of version 1 what SQLite itself can say. */
static enum lac_status read_pages(struct lac_trace_file *file, const char *label,
                                  struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    uint64_t bad_count = 0;
    uint64_t bad_offset = 0;
    enum lac_status status;

    if (lac_checked_is_on(file->db)) {
        status = lac_checked_scan(file->db, &bad_count, &bad_offset, reterr);
        return status == LAC_OK && bad_count > 0
                   ? lac_fail(reterr, LAC_ERR_CORRUPT, bad_offset,
                              "%s is damaged (%llu pages, the first at byte %llu)", label,
                              (unsigned long long)bad_count, (unsigned long long)bad_offset)
                   : status;
    }
    status = lac_sql_prepare(file->db, "PRAGMA integrity_check(1)", &get, reterr);
    if (status == LAC_OK) {
        status = lac_sql_step_row(get, label, reterr);
    }
    if (status == LAC_OK) {
        const char *said = (const char *)sqlite3_column_text(get, 0);

        if (said == NULL || strcmp(said, "ok") != 0) {
            status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s is damaged (it contradicts itself)",
                              label);
        }
    }
    (void)sqlite3_finalize(get);
    return status;
}

/** Open a trace file and read all of it. @param ret_is_checked may be NULL */
static enum lac_status read_trace(const char *path, bool *ret_is_checked, uint64_t *ret_bytes,
                                  struct lac_error *reterr)
{
    char label[LAC_SQL_LABEL_BYTES];
    struct lac_trace_file *file = NULL;
    enum lac_status status;

    lac_sql_label(path, label, sizeof(label));
    status = lac_trace_file_open(path, CACHE_BYTES, &file, reterr);
    if (status == LAC_OK) {
        *ret_is_checked = lac_checked_is_on(file->db);
        *ret_bytes = file->file_bytes;
        status = read_pages(file, label, reterr);
    }
    lac_trace_file_close(file);
    return status;
}

/** Whether the row is what the facts say; tells what is not. */
static void compare_row(struct verify *verify, const char *name, const char *id,
                        struct lac_trace_facts *facts)
{
    struct lac_trace_facts known = {0};
    char *texts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    struct lac_error error;
    enum lac_status status;

    if (verify->store.catalog == NULL) {
        return;
    }
    status = lac_catalog_facts(verify->store.catalog, id, &known, &error);
    if (status == LAC_ERR_NOT_FOUND || (status == LAC_OK && known.row.state != LAC_TRACE_READY)) {
        tell(verify, "traces", name, "is not listed: the next start lists it");
    } else if (status == LAC_OK && facts != NULL) {
        status = lac_trace_facts_encode(facts, false, &texts[0], &sizes[0], &error);
        if (status == LAC_OK) {
            status = lac_trace_facts_encode(&known, false, &texts[1], &sizes[1], &error);
        }
        if (status == LAC_OK &&
            (sizes[0] != sizes[1] || memcmp(texts[0], texts[1], sizes[0]) != 0)) {
            tell(verify, "traces", name,
                 "and its row in catalog.db disagree: the next start corrects the row");
        }
    }
    if (status == LAC_ERR_NOMEM) {
        verify->status = lac_fail(verify->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    lac_trace_facts_done(&known);
    free(texts[0]);
    free(texts[1]);
}

static void verify_trace(struct verify *verify, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];
    char file[NAME_BYTES];
    char id[LAC_ID_SIZE];
    struct lac_trace_facts facts = {0};
    struct lac_error error = {0};
    struct stat info;
    bool is_checked = true;
    uint64_t bytes = 0;
    enum lac_status status;

    if (!lac_store_id_of(name, ".db", id)) {
        tell(verify, "traces", name, "is not a trace file: the next start moves it to lost/");
        return;
    }
    (void)snprintf(file, sizeof(file), "traces/%s", name);
    (void)lac_store_path(&verify->store, path, "traces", name, NULL);
    verify->counts->traces++;
    status = read_trace(path, &is_checked, &bytes, &error);
    if (status != LAC_OK && lstat(path, &info) != 0 && errno == ENOENT) {
        return; /* deleted meanwhile */
    }
    verify->counts->bytes += bytes;
    verify->counts->unchecked += is_checked ? 0 : 1;
    if (status == LAC_ERR_NOMEM) {
        verify->status = lac_fail(verify->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        return;
    }
    if (status != LAC_OK) {
        tell(verify, "traces", name, without_label(&error, file));
        return;
    }
    status = is_checked ? lac_trace_facts_read(path, &facts, &error) : LAC_ERR_NOT_FOUND;
    if (is_checked && status != LAC_OK) {
        tell(verify, "traces", name, without_label(&error, file));
    } else if (status == LAC_OK && strcmp(facts.row.id, id) != 0) {
        tell(verify, "traces", name, "is the file of another trace under a wrong name");
    } else {
        compare_row(verify, name, id, status == LAC_OK ? &facts : NULL);
    }
    lac_trace_facts_done(&facts);
}

/* -- originals ----------------------------------------------------------------------------------*/

/** The hash that the catalog has of an original. @return whether a row names the original */
static bool hash_of(const struct lac_store *store, const char *id, uint8_t *ret_sha256,
                    bool *ret_has_hash)
{
    struct lac_statement *get = NULL;
    struct lac_error error;
    bool found = false;

    *ret_has_hash = false;
    if (lac_db_prepare(store->catalog,
                       "SELECT sha256 FROM traces WHERE original = ?1 OR (id = ?1 AND state = 1)"
                       " ORDER BY sha256 IS NULL LIMIT 1",
                       &get, &error) == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        found = lac_db_step_row(get, "catalog.db", &error) == LAC_OK;
        if (found && lac_db_bytes(get, 0) == LAC_SHA256_SIZE) {
            memcpy(ret_sha256, lac_db_blob(get, 0), LAC_SHA256_SIZE);
            *ret_has_hash = true;
        }
    }
    lac_db_finalize(get);
    return found;
}

/** Unpack an original and compare its hash. The error says what is wrong behind the file's name. */
static enum lac_status read_original(const struct lac_store *store,
                                     const struct lac_verify_options *options, const char *id,
                                     const char *output_path, uint64_t *ret_size_bytes,
                                     struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    uint8_t expected[LAC_SHA256_SIZE] = {0};
    uint8_t sha256[LAC_SHA256_SIZE];
    bool has_hash = false;
    enum lac_status status;

    (void)lac_store_path(store, path, "originals", id, ".zst");
    status = options->unpack(path, output_path, sha256, ret_size_bytes, reterr);
    if (status == LAC_OK && store->catalog != NULL && hash_of(store, id, expected, &has_hash) &&
        has_hash && memcmp(expected, sha256, sizeof(sha256)) != 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "is not what was uploaded (its sha256)");
        if (output_path != NULL) {
            (void)unlink(output_path);
        }
    }
    return status;
}

static void verify_original(struct verify *verify, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];
    uint8_t sha256[LAC_SHA256_SIZE];
    struct lac_error error = {0};
    struct stat info;
    uint64_t size_bytes = 0;
    bool has_hash = false;
    enum lac_status status;

    if (!lac_store_id_of(name, ".zst", id)) {
        tell(verify, "originals", name, "is not an original: the next start moves it to lost/");
        return;
    }
    verify->counts->originals++;
    status = read_original(&verify->store, verify->options, id, NULL, &size_bytes, &error);
    verify->counts->bytes += size_bytes;
    (void)lac_store_path(&verify->store, path, "originals", name, NULL);
    if (lstat(path, &info) != 0) {
        return; /* deleted meanwhile */
    }
    if (status == LAC_ERR_NOMEM) {
        verify->status = lac_fail(verify->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else if (status != LAC_OK) {
        tell(verify, "originals", name, error.message);
    } else if (verify->store.catalog != NULL && !hash_of(&verify->store, id, sha256, &has_hash)) {
        tell(verify, "originals", name, "belongs to no trace: the next start moves it to lost/");
    }
}

/* -- rows ---------------------------------------------------------------------------------------*/

/** A row of an object: whether the storage has what was put there. */
static void verify_object(struct verify *verify, struct lac_objects *objects,
                          const struct lac_object_row *row)
{
    char name[LAC_OBJECT_NAME_SIZE];
    uint8_t sha256[LAC_SHA256_SIZE];
    struct lac_error error = {0};
    uint64_t bytes = 0;
    enum lac_status status;

    lac_object_name(row, name);
    verify->counts->objects++;
    status = lac_objects_hash(objects, name, sha256, &bytes, &error);
    verify->counts->bytes += bytes;
    if (status == LAC_ERR_NOT_FOUND && lac_remote_has(&verify->store, row->kind, row->id)) {
        tell(verify, lac_objects_url(objects), name, "is not there, and catalog.db names it");
    } else if (status != LAC_OK && status != LAC_ERR_NOT_FOUND) {
        tell(verify, lac_objects_url(objects), name, error.message);
    } else if (status == LAC_OK && memcmp(sha256, row->sha256, sizeof(sha256)) != 0) {
        tell(verify, lac_objects_url(objects), name, "is damaged: it is not what was put there");
    }
}

/** All objects that the catalog names, read from their storage. */
static void verify_objects(struct verify *verify)
{
    struct lac_objects_options options = {0};
    struct lac_objects *objects = NULL;
    struct lac_object_row *rows = NULL;
    struct lac_statement *get = NULL;
    struct lac_error error = {0};
    char *url = NULL;
    uint32_t count = 0;
    enum lac_status status;

    if (!verify->has_objects) {
        return;
    }
    status = lac_db_prepare(verify->store.catalog, "SELECT url FROM object_store", &get, &error);
    if (status == LAC_OK && lac_db_step_row(get, "catalog.db", &error) == LAC_OK) {
        url = lac_db_take_text(get, 0, &status);
    }
    lac_db_finalize(get);
    if (url == NULL) {
        return;
    }
    options.url = url;
    status = lac_objects_open(&options, &objects, &error);
    if (status == LAC_OK) {
        status = lac_catalog_list_objects(verify->store.catalog, &rows, &count, &error);
    }
    if (status != LAC_OK) {
        tell(verify, "", url, error.message);
    }
    for (uint32_t i = 0; i < count && verify->status == LAC_OK; i++) {
        verify_object(verify, objects, &rows[i]);
    }
    free(rows);
    lac_objects_close(objects);
    free(url);
}

/** Whether the file is in object storage, so that the folder need not have it. */
static bool is_remote(struct verify *verify, const char *folder, const char *id)
{
    const bool is_trace = strcmp(folder, "traces") == 0;

    return verify->has_objects && (is_trace || strcmp(folder, "originals") == 0) &&
           lac_remote_has(&verify->store, is_trace ? LAC_OBJECT_TRACE : LAC_OBJECT_ORIGINAL, id);
}

/** Rows whose files are not there. */
static void verify_rows(struct verify *verify)
{
    static const struct {
        const char *sql, *folder, *ending, *problem;
    } kinds[] = {
        {"SELECT id FROM traces WHERE state = 2", "traces", ".db",
         "is not there, and catalog.db names it"},
        {"SELECT DISTINCT original FROM traces WHERE original IS NOT NULL AND state = 2",
         "originals", ".zst", "is not there, and catalog.db names it"},
        {"SELECT id FROM traces WHERE state = 1", "staging", "",
         "is not there, and an upload waits to be imported from it"},
    };

    for (size_t k = 0; k < LAC_COUNT_OF(kinds) && verify->store.catalog != NULL; k++) {
        struct lac_statement *get = NULL;
        struct lac_error error = {0};
        enum lac_status status = lac_db_prepare(verify->store.catalog, kinds[k].sql, &get, &error);

        while (status == LAC_OK) {
            status = lac_db_step_row(get, "catalog.db", &error);
            if (status == LAC_OK) {
                char name[64];
                char path[LAC_STORE_PATH_SIZE];
                struct stat info;

                (void)snprintf(name, sizeof(name), "%.40s%s", lac_db_text(get, 0), kinds[k].ending);
                if (lac_store_path(&verify->store, path, kinds[k].folder, name, NULL) &&
                    lstat(path, &info) != 0 && errno == ENOENT &&
                    !is_remote(verify, kinds[k].folder, lac_db_text(get, 0))) {
                    tell(verify, kinds[k].folder, name, kinds[k].problem);
                }
            }
        }
        lac_db_finalize(get);
        if (status != LAC_ERR_NOT_FOUND) {
            tell(verify, "", "catalog.db", without_label(&error, "catalog.db"));
        }
    }
}

static void verify_staging(struct verify *verify, const char *name)
{
    struct lac_trace_row row;
    struct lac_error error;

    if (!lac_store_id_is_valid(name)) {
        tell(verify, "staging", name, "is not ours");
    } else if (verify->store.catalog != NULL) {
        enum lac_status status = lac_catalog_get(verify->store.catalog, name, false, &row, &error);

        if (status == LAC_OK) {
            lac_trace_row_done(&row);
        } else if (status == LAC_ERR_NOT_FOUND) {
            struct lac_staging staging;

            if (lac_staging_adopt(&verify->store, name, &staging, &error) == LAC_OK) {
                lac_staging_close(&staging);
                tell(verify, "staging", name,
                     "was left by an import that was cut off: the next start finishes or removes "
                     "it");
            }
        }
    }
}

/** An upload has its bytes and its description. */
static void verify_upload(struct verify *verify, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];
    struct stat info;

    if (lac_store_id_of(name, ".part", id)) {
        (void)lac_store_path(&verify->store, path, "uploads", id, ".info");
        if (lstat(path, &info) != 0 && errno == ENOENT) {
            tell(verify, "uploads", name, "has no description next to it");
        }
    } else if (!lac_store_id_of(name, ".info", id)) {
        tell(verify, "uploads", name, "is not ours");
    }
}

static void verify_catalog(struct verify *verify)
{
    char path[LAC_STORE_PATH_SIZE];
    struct lac_error error = {0};
    struct stat info;
    sqlite3 *db = NULL;
    enum lac_status status = LAC_OK;

    if (lac_db_is_elsewhere(verify->store.data_dir, NULL)) { /* it checks its own pages */
        verify->has_objects = true;
        if (lac_catalog_open_elsewhere(
                &(struct lac_postgres_catalog){.data_dir = verify->store.data_dir},
                &verify->store.catalog, &error) != LAC_OK) {
            tell(verify, "", "catalog.url", error.message);
        }
        return;
    }
    (void)lac_store_path(&verify->store, path, "catalog.db", NULL, NULL);
    if (stat(path, &info) != 0 || info.st_size == 0) {
        tell(verify, "", "catalog.db", "is not there: the next start makes it again");
        return;
    }
    verify->counts->bytes += (uint64_t)info.st_size;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, LAC_CHECKED_VFS) !=
        SQLITE_OK) {
        status = lac_sql_fail(db, "catalog.db", &error);
    }
    if (status == LAC_OK) {
        (void)sqlite3_busy_timeout(db, 15000);
        status = lac_catalog_check(db, &error);
    }
    if (status == LAC_OK && sqlite3_table_column_metadata(db, "main", "trained_models", NULL, NULL,
                                                          NULL, NULL, NULL, NULL) != SQLITE_OK) {
        /* of an older version, which the next start migrates: empty, to be read */
        status = lac_sql_run(db,
                             "PRAGMA temp_store = MEMORY;"
                             "CREATE TEMP TABLE trained_models(trace, model)",
                             &error);
    }
    if (status != LAC_OK) {
        tell(verify, "", "catalog.db", without_label(&error, "catalog.db"));
        (void)sqlite3_close(db);
        return;
    }
    status = lac_db_of_sqlite(db, &verify->store.catalog, verify->reterr);
    if (status != LAC_OK) {
        verify->status = status;
        return;
    }
    struct lac_statement *get = NULL;
    verify->has_objects =
        lac_db_prepare(verify->store.catalog, "SELECT 1 FROM objects", &get, &error) == LAC_OK;
    lac_db_finalize(get);
}

enum lac_status lac_store_verify(const struct lac_verify_options *options,
                                 struct lac_verify_counts *ret_counts, struct lac_error *reterr)
{
    assert(options != NULL && ret_counts != NULL);
    struct verify *verify = calloc(1, sizeof(*verify));
    struct stat info;
    enum lac_status status = lac_sql_init(reterr);
    int folder = -1;

    *ret_counts = (struct lac_verify_counts){0};
    if (verify == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    verify->options = options;
    verify->counts = ret_counts;
    verify->reterr = reterr;
    if (status == LAC_OK && (stat(options->data_dir, &info) != 0 || !S_ISDIR(info.st_mode) ||
                             strlen(options->data_dir) >= sizeof(verify->store.data_dir))) {
        status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "there is no data folder");
    }
    if (status == LAC_OK) {
        (void)snprintf(verify->store.data_dir, sizeof(verify->store.data_dir), "%s",
                       options->data_dir);
        folder = lac_folder_lock(&verify->store, false); /* no start changes it meanwhile */
        verify_catalog(verify);
        each_entry(verify, "traces", verify_trace);
        each_entry(verify, "originals", verify_original);
        verify_rows(verify);
        verify_objects(verify);
        each_entry(verify, "staging", verify_staging);
        each_entry(verify, "uploads", verify_upload);
        status = verify->status;
        lac_folder_unlock(folder);
    }
    lac_db_close(verify->store.catalog);
    free(verify);
    return status;
}

/* -- repair -------------------------------------------------------------------------------------*/

/**
 * Objects that are damaged or gone while a whole copy is in the folder: their rows go, so that the
 * copy is put again.
 */
static enum lac_status repair_objects(struct lac_store *store, uint32_t *count,
                                      struct lac_error *reterr)
{
    struct lac_objects *const objects = lac_remote_storage(store, reterr);
    struct lac_object_row *rows = NULL;
    uint32_t row_count = 0;
    enum lac_status status =
        objects != NULL ? lac_catalog_list_objects(store->catalog, &rows, &row_count, reterr)
                        : LAC_ERR_IO;

    for (uint32_t i = 0; i < row_count && status == LAC_OK; i++) {
        static const struct {
            const char *folder, *ending;
        } copies[LAC_OBJECT_KINDS] = {
            {"traces", ".db"}, {"originals", ".zst"}, {"staging", "/" LAC_STAGED_UPLOAD}};
        char name[LAC_OBJECT_NAME_SIZE];
        char path[LAC_STORE_PATH_SIZE];
        uint8_t sha256[LAC_SHA256_SIZE];
        struct lac_error error = {0};
        uint64_t bytes = 0;

        lac_object_name(&rows[i], name);
        status = lac_objects_hash(objects, name, sha256, &bytes, &error);
        if (status == LAC_OK && memcmp(sha256, rows[i].sha256, sizeof(sha256)) == 0) {
            continue;
        }
        if (status != LAC_OK && status != LAC_ERR_NOT_FOUND) {
            *reterr = error;
            break;
        }
        *count += 1;
        status = LAC_OK;
        if (lac_store_path(store, path, copies[rows[i].kind].folder, rows[i].id,
                           copies[rows[i].kind].ending) &&
            lac_objects_hash_file(path, sha256, &bytes, &error) == LAC_OK &&
            memcmp(sha256, rows[i].sha256, sizeof(sha256)) == 0) {
            lac_store_tell(store, "%s is damaged or gone: it is put again from the copy", name);
            status = lac_remote_forget(store, rows[i].kind, rows[i].id, reterr);
        } else {
            lac_store_tell(store,
                           "%s is damaged or gone, and no whole copy is in the folder: "
                           "restore it from a backup of the bucket",
                           name);
        }
    }
    free(rows);
    return status;
}

/** How many traces share the original of this one. */
static uint32_t count_shared(const struct lac_store *store, const char *original)
{
    struct lac_statement *get = NULL;
    struct lac_error error;
    uint32_t count = 0;

    if (lac_db_prepare(store->catalog, "SELECT count(*) FROM traces WHERE original = ?", &get,
                       &error) == LAC_OK) {
        lac_db_bind_text(get, 1, original);
        if (lac_db_step_row(get, "catalog.db", &error) == LAC_OK) {
            count = (uint32_t)lac_db_i64(get, 0);
        }
    }
    lac_db_finalize(get);
    return count;
}

/** ready -> importing, from the original. @return LAC_ERR_NOT_FOUND when that is not possible */
static enum lac_status import_again(struct lac_store *store,
                                    const struct lac_verify_options *options,
                                    struct lac_trace_facts *facts, struct lac_error *reterr)
{
    static const char *const sql[] = {"DELETE FROM findings WHERE trace = ?",
                                      "DELETE FROM report_lines WHERE trace = ?",
                                      "UPDATE traces SET state = 1 WHERE id = ? AND state = 2"};
    const char *texts[1] = {facts->row.id};
    struct lac_staging staging = {.fd = -1};
    char path[sizeof(staging.path) + 16];
    struct lac_error why = {0};
    uint64_t size_bytes = 0;
    enum lac_status status;

    if (strcmp(facts->original, facts->row.id) != 0 || count_shared(store, facts->original) != 1) {
        return LAC_ERR_NOT_FOUND;
    }
    status = lac_staging_create(store, facts->row.id, &staging, reterr);
    if (status != LAC_OK) {
        return status;
    }
    (void)snprintf(path, sizeof(path), "%s/upload", staging.path);
    if (read_original(store, options, facts->original, path, &size_bytes, &why) != LAC_OK) {
        lac_staging_remove(&staging);
        return LAC_ERR_NOT_FOUND;
    }
    status = lac_staged_facts_write(&staging, facts, reterr);
    if (status == LAC_OK) {
        status = lac_store_sync_folder(store, "staging", reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_begin(store->catalog, true, reterr);
        for (size_t i = 0; i < LAC_COUNT_OF(sql) && status == LAC_OK; i++) {
            status = lac_catalog_change(store->catalog, sql[i], texts, 1, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    if (status == LAC_OK) {
        lac_staging_close(&staging);
    } else {
        lac_staging_remove(&staging);
    }
    return status;
}

/** A trace file with damaged pages: out of the way, and made again where that is possible. */
static enum lac_status replace_trace(struct lac_store *store,
                                     const struct lac_verify_options *options, const char *id,
                                     struct lac_error *reterr)
{
    struct lac_trace_facts facts = {0};
    char name[LAC_ID_SIZE + 8];
    enum lac_status status = lac_catalog_facts(store->catalog, id, &facts, reterr);

    if (status != LAC_OK) {
        return status;
    }
    memcpy(facts.upload, id, LAC_ID_SIZE);
    facts.upload_count = 1;
    (void)snprintf(name, sizeof(name), "%s.db", id);
    status = import_again(store, options, &facts, reterr);
    if (status == LAC_OK) {
        (void)lac_store_set_aside(
            store, "traces", name,
            options->is_served ? "is damaged; the server imports its original again"
                               : "is damaged; its original is imported again at the next start");
    } else if (status == LAC_ERR_NOT_FOUND) {
        status =
            lac_store_lose(store, id,
                           facts.original[0] != '\0'
                               ? "its file was damaged and is in lost/ now: import the original "
                                 "again (originals/, all ranks of a run are in one)"
                               : "its file was damaged and is in lost/ now: upload it again",
                           reterr);
        if (status == LAC_OK) {
            (void)lac_store_set_aside(store, "traces", name,
                                      facts.original[0] != '\0'
                                          ? "is damaged; its original can be imported again"
                                          : "is damaged, and no original was kept");
        }
    }
    lac_trace_facts_done(&facts);
    return status;
}

/** Facts of a whole file that do not say what its row says: the row is what is left. */
static enum lac_status rewrite_facts(struct lac_store *store, const char *path, const char *id,
                                     struct lac_error *reterr)
{
    struct lac_trace_facts facts = {0};
    enum lac_status status = lac_catalog_facts(store->catalog, id, &facts, reterr);

    if (status == LAC_OK) {
        status = lac_remote_forget(store, LAC_OBJECT_TRACE, id, reterr);
    }
    if (status == LAC_OK) {
        memcpy(facts.upload, facts.original[0] != '\0' ? facts.original : id, LAC_ID_SIZE);
        facts.upload_count = 1;
        status = lac_trace_facts_write(path, &facts, reterr);
    }
    if (status == LAC_OK) {
        lac_store_tell(store, "traces/%s.db: its facts were damaged and are written again", id);
    }
    lac_trace_facts_done(&facts);
    return status;
}

/** A damaged copy of an object goes: it is fetched again when it is asked for. @return false: it is
 *  no copy */
static bool drop_copy(struct lac_store *store, enum lac_object_kind kind, const char *id,
                      const char *path)
{
    if (store->remote == NULL || !lac_remote_has(store, kind, id) || unlink(path) != 0) {
        return false;
    }
    lac_store_tell(store, "%s/%s: the copy is damaged and removed; the object is read again",
                   kind == LAC_OBJECT_TRACE ? "traces" : "originals", id);
    return true;
}

static enum lac_status repair_trace(struct lac_store *store,
                                    const struct lac_verify_options *options, const char *id,
                                    uint32_t *count, struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    struct lac_trace_facts facts = {0};
    struct lac_error error = {0};
    struct lac_error ignored = {0};
    bool is_checked = false;
    uint64_t bytes = 0;
    int64_t state = LAC_TRACE_FAILED;
    enum lac_status status;

    (void)lac_store_path(store, path, "traces", id, ".db");
    if (store->remote != NULL && access(path, F_OK) != 0) {
        return LAC_OK; /* no copy of it is here */
    }
    status = read_trace(path, &is_checked, &bytes, &error);
    if (status == LAC_ERR_CORRUPT && drop_copy(store, LAC_OBJECT_TRACE, id, path)) {
        *count += 1;
        return LAC_OK;
    }
    if (status == LAC_ERR_CORRUPT) {
        *count += 1;
        return replace_trace(store, options, id, reterr);
    }
    if (status == LAC_OK && is_checked) {
        status = lac_trace_facts_read(path, &facts, &error);
        lac_trace_facts_done(&facts);
        if (status == LAC_ERR_CORRUPT || status == LAC_ERR_NOT_FOUND) {
            *count += 1;
            return rewrite_facts(store, path, id, reterr);
        }
    }
    if (status != LAC_OK && options->is_served &&
        (lac_catalog_number(store->catalog, "state", id, &state, &ignored) != LAC_OK ||
         state != LAC_TRACE_READY)) {
        return LAC_OK; /* somebody has deleted it meanwhile */
    }
    if (status != LAC_OK) {
        *reterr = error;
    }
    return status;
}

/** A damaged original goes aside; the traces made of it say that they have none. */
static enum lac_status drop_original(struct lac_store *store, const char *original, const char *why,
                                     struct lac_error *reterr)
{
    const char *texts[1] = {original};
    char name[LAC_ID_SIZE + 8];
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_db_begin(store->catalog, true, reterr);

    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "UPDATE traces SET original = NULL WHERE original = ?", texts,
                                    1, NULL, reterr);
        status = lac_db_end(store->catalog, status, reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(name, sizeof(name), "%s.zst", original);
        (void)lac_store_set_aside(store, "originals", name, why);
        status = lac_store_list_state(store, LAC_TRACE_READY, &ids, &count, reterr);
    }
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE];
        struct lac_trace_facts facts = {0};
        struct lac_error error;

        (void)lac_store_path(store, path, "traces", ids[i], ".db");
        if (lac_trace_facts_read(path, &facts, &error) == LAC_OK &&
            strcmp(facts.original, original) == 0) {
            facts.original[0] = '\0';
            status = lac_trace_facts_write(path, &facts, reterr);
        }
        lac_trace_facts_done(&facts);
    }
    free(ids);
    return status;
}

static enum lac_status repair_originals(struct lac_store *store,
                                        const struct lac_verify_options *options, uint32_t *count,
                                        struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;
    enum lac_status status = LAC_OK;

    (void)lac_store_path(store, path, "originals", NULL, NULL);
    folder = opendir(path);
    while (folder != NULL && status == LAC_OK && (entry = readdir(folder)) != NULL) {
        char id[LAC_ID_SIZE];
        struct lac_error error = {0};
        uint64_t size_bytes = 0;

        if (lac_store_id_of(entry->d_name, ".zst", id) &&
            read_original(store, options, id, NULL, &size_bytes, &error) == LAC_ERR_CORRUPT) {
            *count += 1;
            if (lac_store_path(store, path, "originals", entry->d_name, NULL) &&
                drop_copy(store, LAC_OBJECT_ORIGINAL, id, path)) {
                continue;
            }
            const int lock = lac_folder_lock(store, true); /* no deletion and no publication now */

            status = drop_original(store, id, error.message, reterr);
            lac_folder_unlock(lock);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return status;
}

enum lac_status lac_store_repair(struct lac_store *store, const struct lac_verify_options *options,
                                 uint32_t *ret_count, struct lac_error *reterr)
{
    assert(store != NULL && options != NULL && ret_count != NULL);
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    enum lac_status status;

    *ret_count = 0;
    status = lac_store_list_state(store, LAC_TRACE_READY, &ids, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = repair_trace(store, options, ids[i], ret_count, reterr);
    }
    free(ids);
    if (status == LAC_OK) {
        status = repair_originals(store, options, ret_count, reterr);
    }
    if (status == LAC_OK && store->remote != NULL) {
        status = repair_objects(store, ret_count, reterr);
        if (status == LAC_OK) {
            status = lac_store_tend_objects(store, INT64_MAX, reterr);
        }
    }
    return status;
}
