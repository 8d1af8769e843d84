/* Copies of objects in the data folder: fetched when they are asked for, put before they are
 * listed, removed when there are too many. */

#include "server/store/remote.h"

#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "server/objects/objects.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_database.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/pieces/pieces.h"
#include "server/store/trace/trace_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIES_BYTES_MAX ((uint64_t)16 << 30)
#define WHOLE_BYTES_MAX  ((uint64_t)32 << 20)
#define OWNER_NAME       "lacuna-owner"

enum {
    FETCH_LOCKS = 16,
    /* a file that was asked for just now is about to be opened */
    IN_USE_MS = 10000,
};

struct lac_remote {
    struct lac_objects *objects; /**< NULL: see problem */
    struct lac_error problem;    /**< why the storage cannot be used */
    uint64_t copies_bytes_max;
    uint64_t whole_bytes_max;
    pthread_mutex_t fetching[FETCH_LOCKS]; /**< by id: one of a kind at a time */
    pthread_mutex_t tending;
};

/* of the copies in the data folder; an upload lies in staging/ */
static const char *const folders[] = {"traces", "originals"};
static const char *const endings[] = {".db", ".zst"};
/* of the names of objects */
static const char *const prefixes[LAC_OBJECT_KINDS] = {"traces", "originals", "uploads"};

/* -- rows -------------------------------------------------------------------------------------*/

void lac_object_name(const struct lac_object_row *row, char *out)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * LAC_SHA256_SIZE + 1] = "";

    for (size_t i = 0; i < LAC_SHA256_SIZE; i++) {
        hex[2 * i] = digits[row->sha256[i] >> 4];
        hex[2 * i + 1] = digits[row->sha256[i] & 15];
    }
    (void)snprintf(out, LAC_OBJECT_NAME_SIZE, "%s/%.2s/%s.%s", prefixes[row->kind], hex, hex,
                   row->id);
}

/** kind, id, sha256, bytes of the statement's row. @return false: it is damaged */
static bool take_row(struct lac_statement *get, struct lac_object_row *row)
{
    const char *id = lac_db_text(get, 1);

    const int kind = lac_db_int(get, 0);

    *row = (struct lac_object_row){.kind = (enum lac_object_kind)kind,
                                   .bytes = (uint64_t)lac_db_i64(get, 3)};
    if (kind < 0 || kind >= LAC_OBJECT_KINDS || id == NULL || !lac_store_id_is_valid(id) ||
        lac_db_bytes(get, 2) != LAC_SHA256_SIZE) {
        return false;
    }
    memcpy(row->id, id, LAC_ID_SIZE);
    memcpy(row->sha256, lac_db_blob(get, 2), LAC_SHA256_SIZE);
    return true;
}

enum lac_status lac_catalog_get_object(struct lac_db *db, enum lac_object_kind kind, const char *id,
                                       struct lac_object_row *ret_row, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db, "SELECT kind, id, sha256, bytes FROM objects WHERE kind = ?1 AND id = ?2", &get,
        reterr);

    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, (int64_t)kind);
        lac_db_bind_text(get, 2, id);
        status = lac_db_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK && !take_row(get, ret_row)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "catalog.db is damaged (a row of objects)");
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_catalog_put_object(struct lac_db *db, const struct lac_object_row *row,
                                       struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        "INSERT INTO objects(kind, id, sha256, bytes) VALUES(?1, ?2, ?3, ?4)"
        " ON CONFLICT(kind, id) DO UPDATE SET sha256 = excluded.sha256, bytes = excluded.bytes",
        &put, reterr);

    if (status == LAC_OK) {
        lac_db_bind_i64(put, 1, (int64_t)row->kind);
        lac_db_bind_text(put, 2, row->id);
        lac_db_bind_blob(put, 3, row->sha256, sizeof(row->sha256));
        lac_db_bind_i64(put, 4, (int64_t)row->bytes);
        status = lac_db_step_done(put, "catalog.db", reterr);
    }
    lac_db_finalize(put);
    return status;
}

enum lac_status lac_catalog_list_objects(struct lac_db *db, struct lac_object_row **ret_rows,
                                         uint32_t *ret_count, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    struct lac_object_row *rows = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    enum lac_status status = lac_db_prepare(
        db, "SELECT kind, id, sha256, bytes FROM objects ORDER BY kind, id", &get, reterr);

    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog.db", reterr)) == LAC_OK) {
        if (!LAC_RESERVE(rows, capacity, count, 1)) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        } else if (take_row(get, &rows[count])) {
            count++;
        }
    }
    lac_db_finalize(get);
    if (status != LAC_ERR_NOT_FOUND) {
        free(rows);
        return status;
    }
    *ret_rows = rows;
    *ret_count = count;
    return LAC_OK;
}

bool lac_remote_has(struct lac_store *store, enum lac_object_kind kind, const char *id)
{
    struct lac_object_row row;
    struct lac_error ignored = {0};

    return lac_catalog_get_object(store->catalog, kind, id, &row, &ignored) != LAC_ERR_NOT_FOUND;
}

enum lac_status lac_remote_forget(struct lac_store *store, enum lac_object_kind kind,
                                  const char *id, struct lac_error *reterr)
{
    static const char *const numbers[LAC_OBJECT_KINDS] = {"0", "1", "2"};
    const char *texts[2] = {numbers[kind], id};

    return store->remote == NULL
               ? LAC_OK
               : lac_catalog_change_alone(
                     store->catalog, true,
                     "DELETE FROM objects WHERE kind = CAST(?1 AS INTEGER) AND id = ?2", texts, 2,
                     NULL, reterr);
}

/* -- open ---------------------------------------------------------------------------------------*/

/** What the catalog says: "" when it names no storage. The caller frees the URL. */
static enum lac_status read_storage(struct lac_store *store, char **ret_url, char *ret_owner,
                                    struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(store->catalog, "SELECT url, owner FROM object_store", &get, reterr);

    *ret_url = NULL;
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        const char *owner = lac_db_text(get, 1);

        *ret_url = lac_db_take_text(get, 0, &status);
        (void)snprintf(ret_owner, LAC_ID_SIZE, "%s", owner != NULL ? owner : "");
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** Write our mark into storage that nobody uses; whose it is, else, it says. */
static enum lac_status own(struct lac_store *store, const char *url, struct lac_error *reterr)
{
    struct lac_objects *const objects = store->remote->objects;
    char owner[LAC_ID_SIZE];
    char path[LAC_STORE_PATH_SIZE];
    uint8_t sha256[LAC_SHA256_SIZE];
    uint64_t bytes = 0;
    FILE *file;
    /* not only its size: a refusal has its reason in the body */
    enum lac_status status = lac_objects_hash(objects, OWNER_NAME, sha256, &bytes, reterr);

    if (status == LAC_OK) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%s belongs to another data folder: give a prefix of its own", url);
    }
    if (status != LAC_ERR_NOT_FOUND) {
        return status;
    }
    status = lac_store_new_id(owner, reterr);
    if (status != LAC_OK || !lac_store_path(store, path, "fetch", "owner", NULL)) {
        return status;
    }
    file = fopen(path, "we");
    if (file == NULL || fprintf(file, "%s\n", owner) < 0 || fclose(file) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s",
                        strerror(errno));
    }
    status = lac_objects_hash_file(path, sha256, &bytes, reterr);
    if (status == LAC_OK) {
        status = lac_objects_put(objects, OWNER_NAME, path, sha256, reterr);
    }
    (void)unlink(path);
    if (status == LAC_OK) {
        const char *texts[2] = {url, owner};

        status = lac_catalog_change_alone(
            store->catalog, true, "INSERT INTO object_store(one, url, owner) VALUES(1, ?1, ?2)",
            texts, 2, NULL, reterr);
    }
    return status;
}

/** DIR/fetch/, without what a process that ended left. */
static void clean_fetch(struct lac_store *store)
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;

    (void)lac_store_path(store, path, "fetch", NULL, NULL);
    (void)mkdir(path, 0700);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat info;

        if (entry->d_name[0] != '.' && lac_store_path(store, path, "fetch", entry->d_name, NULL) &&
            stat(path, &info) == 0 && (int64_t)info.st_mtime * 1000 < lac_now_unix_ms() - 3600000) {
            (void)unlink(path);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static enum lac_status begin(struct lac_store *store, const char *url, bool is_needed, bool is_new,
                             const struct lac_store_options *options, struct lac_error *reterr)
{
    const struct lac_objects_options object_options = {.url = url};
    struct lac_remote *remote = calloc(1, sizeof(*remote));
    enum lac_status status;

    if (remote == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (int i = 0; i < FETCH_LOCKS; i++) {
        (void)pthread_mutex_init(&remote->fetching[i], NULL);
    }
    (void)pthread_mutex_init(&remote->tending, NULL);
    remote->copies_bytes_max =
        options->copies_bytes_max != 0 ? options->copies_bytes_max : COPIES_BYTES_MAX;
    remote->whole_bytes_max =
        options->whole_bytes_max != 0 ? options->whole_bytes_max : WHOLE_BYTES_MAX;
    store->remote = remote;
    clean_fetch(store);
    status = lac_objects_open(&object_options, &remote->objects, &remote->problem);
    if (status != LAC_OK) {
        remote->problem.status = status;
        if (is_needed) {
            *reterr = remote->problem;
            return status;
        }
        return LAC_OK; /* said when the storage is needed */
    }
    return is_new ? own(store, url, reterr) : LAC_OK;
}

enum lac_status lac_remote_open(struct lac_store *store, const struct lac_store_options *options,
                                struct lac_error *reterr)
{
    char *url = NULL;
    char owner[LAC_ID_SIZE] = "";
    enum lac_status status = read_storage(store, &url, owner, reterr);

    if (status == LAC_OK && url != NULL && options->objects_url != NULL &&
        strcmp(url, options->objects_url) != 0) {
        status = lac_fail(
            reterr, LAC_ERR_MISUSE, 0,
            "the traces of this data folder are in %s: `lacuna admin move` moves them", url);
    }
    if (status == LAC_OK && url == NULL && options->only_reads) {
        status = lac_fail(reterr, LAC_ERR_BUSY, 0,
                          "the traces of that catalog are not in object storage yet");
    }
    if (status == LAC_OK && (url != NULL || options->objects_url != NULL)) {
        status =
            begin(store, url != NULL ? url : options->objects_url,
                  options->sweep || options->objects_url != NULL, url == NULL, options, reterr);
    }
    free(url);
    return status;
}

void lac_remote_close(struct lac_store *store)
{
    struct lac_remote *remote = store->remote;

    if (remote == NULL) {
        return;
    }
    lac_standby_forget_all(store);
    lac_objects_close(remote->objects);
    for (int i = 0; i < FETCH_LOCKS; i++) {
        (void)pthread_mutex_destroy(&remote->fetching[i]);
    }
    (void)pthread_mutex_destroy(&remote->tending);
    free(remote);
    store->remote = NULL;
}

struct lac_objects *lac_remote_storage(const struct lac_store *store, struct lac_error *reterr)
{
    if (store->remote->objects == NULL) {
        *reterr = store->remote->problem;
    }
    return store->remote->objects;
}

/* -- copies -------------------------------------------------------------------------------------*/

static enum lac_status look_up(struct lac_store *store, enum lac_object_kind kind, const char *id,
                               struct lac_object_row *row, struct lac_error *reterr)
{
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_get_object(store->catalog, kind, id, row, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

static enum lac_status fetch(struct lac_store *store, const struct lac_object_row *row,
                             const char *path, struct lac_error *reterr)
{
    struct lac_objects *const objects = lac_remote_storage(store, reterr);
    char name[LAC_OBJECT_NAME_SIZE];
    char fresh[LAC_STORE_PATH_SIZE];
    char unique[LAC_ID_SIZE];
    enum lac_status status = objects != NULL ? lac_store_new_id(unique, reterr) : LAC_ERR_IO;

    if (status != LAC_OK || !lac_store_path(store, fresh, "fetch", unique, NULL)) {
        return status;
    }
    lac_object_name(row, name);
    status = lac_objects_get(objects, name, fresh, row->sha256, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s is not in %s any more", name,
                          lac_objects_url(objects));
    }
    if (status == LAC_OK && rename(fresh, path) != 0) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot keep a copy of %s: %s", name, strerror(errno));
        (void)unlink(fresh);
    }
    return status;
}

static enum lac_status fetch_either(struct lac_store *store, const struct lac_object_row *row,
                                    const char *path, struct lac_error *reterr)
{
    const bool in_pieces = store->only_reads && row->kind == LAC_OBJECT_TRACE &&
                           row->bytes > store->remote->whole_bytes_max;
    const enum lac_status status =
        in_pieces ? lac_standby_fetch_pieces(store, row, path, reterr) : LAC_ERR_MISUSE;

    return status == LAC_ERR_MISUSE ? fetch(store, row, path, reterr) : status;
}

void lac_remote_drop_copy(struct lac_store *store, const char *id)
{
    char path[LAC_STORE_PATH_SIZE];
    /* whoever fetches it now makes it from what the catalog says */
    pthread_mutex_t *const fetching = &store->remote->fetching[(unsigned char)id[0] % FETCH_LOCKS];

    (void)pthread_mutex_lock(fetching);
    if (lac_store_path(store, path, folders[LAC_OBJECT_TRACE], id, endings[LAC_OBJECT_TRACE])) {
        lac_pieces_forget(path);
        (void)unlink(path);
    }
    (void)pthread_mutex_unlock(fetching);
    lac_store_forget_file(store, id);
}

static void evict(struct lac_store *store);

enum lac_status lac_remote_fetch(struct lac_store *store, enum lac_object_kind kind, const char *id,
                                 struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    struct lac_object_row row;
    pthread_mutex_t *lock;
    enum lac_status status = LAC_OK;
    bool is_fetched = false;

    if (store->remote == NULL || !lac_store_path(store, path, folders[kind], id, endings[kind])) {
        return LAC_OK;
    }
    lock = &store->remote->fetching[(unsigned char)id[0] % FETCH_LOCKS];
    (void)pthread_mutex_lock(lock);
    if (utimensat(AT_FDCWD, path, NULL, 0) != 0 && errno == ENOENT) {
        status = look_up(store, kind, id, &row, reterr);
        if (status == LAC_OK) {
            status = lac_standby_know_copy(store, &row, reterr);
        }
        if (status == LAC_OK) {
            status = fetch_either(store, &row, path, reterr);
            is_fetched = status == LAC_OK;
        }
        status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    }
    (void)pthread_mutex_unlock(lock);
    if (is_fetched) {
        evict(store);
    }
    return status;
}

enum lac_status lac_remote_put(struct lac_store *store, enum lac_object_kind kind, const char *id,
                               const char *path, struct lac_object_row *ret_row,
                               struct lac_error *reterr)
{
    enum lac_status status;

    *ret_row = (struct lac_object_row){.kind = kind};
    if (store->remote == NULL) {
        return LAC_OK;
    }
    (void)snprintf(ret_row->id, sizeof(ret_row->id), "%s", id);
    status = lac_objects_hash_file(path, ret_row->sha256, &ret_row->bytes, reterr);
    return status == LAC_OK ? lac_remote_put_hashed(store, ret_row, path, reterr) : status;
}

enum lac_status lac_remote_put_hashed(struct lac_store *store, const struct lac_object_row *row,
                                      const char *path, struct lac_error *reterr)
{
    struct lac_objects *const objects = lac_remote_storage(store, reterr);
    char name[LAC_OBJECT_NAME_SIZE];

    lac_object_name(row, name);
    return objects != NULL ? lac_objects_put(objects, name, path, row->sha256, reterr) : LAC_ERR_IO;
}

/** Uploads that are imported, or will not be, need no object: what a crash left, and what failed. */
static enum lac_status drop_uploads(struct lac_store *store, struct lac_error *reterr)
{
    struct lac_object_row *rows = NULL;
    uint32_t count = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_list_objects(store->catalog, &rows, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (rows[i].kind != LAC_OBJECT_UPLOAD || lac_store_staging_is_wanted(store, rows[i].id)) {
            rows[i].bytes = 0;
            continue;
        }
        status = lac_remote_forget(store, LAC_OBJECT_UPLOAD, rows[i].id, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        lac_remote_remove(store, &rows[i]);
    }
    free(rows);
    return status;
}

void lac_remote_remove(struct lac_store *store, const struct lac_object_row *row)
{
    struct lac_error ignored = {0};
    char name[LAC_OBJECT_NAME_SIZE];

    if (store->remote == NULL || store->remote->objects == NULL || row->bytes == 0) {
        return;
    }
    lac_object_name(row, name);
    if (lac_objects_remove(store->remote->objects, name, &ignored) != LAC_OK) {
        /* the next sweep removes it */
    }
}

/* -- too many copies ----------------------------------------------------------------------------*/

struct copy {
    enum lac_object_kind kind;
    char id[LAC_ID_SIZE];
    uint64_t bytes;      /**< of the whole */
    uint64_t held_bytes; /**< of what is here */
    int64_t used_ms;
};

struct copies {
    struct copy *rows;
    uint32_t count, capacity;
    uint64_t bytes;
};

static void list_copies(struct lac_store *store, struct copies *copies)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        char path[LAC_STORE_PATH_SIZE];
        DIR *folder;
        const struct dirent *entry;

        (void)lac_store_path(store, path, folders[kind], NULL, NULL);
        folder = opendir(path);
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            struct copy copy = {.kind = (enum lac_object_kind)kind};
            struct stat info;

            if (!lac_store_id_of(entry->d_name, endings[kind], copy.id) ||
                !lac_store_path(store, path, folders[kind], entry->d_name, NULL) ||
                stat(path, &info) != 0 ||
                !LAC_RESERVE(copies->rows, copies->capacity, copies->count, 1)) {
                continue;
            }
            copy.bytes = (uint64_t)info.st_size;
            copy.held_bytes = (uint64_t)info.st_blocks * 512;
            copy.held_bytes = copy.held_bytes < copy.bytes ? copy.held_bytes : copy.bytes;
            copy.used_ms = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
            copies->bytes += copy.held_bytes;
            copies->rows[copies->count++] = copy;
        }
        if (folder != NULL) {
            (void)closedir(folder);
        }
    }
}

static int by_use(const void *a, const void *b)
{
    return LAC_ORDER(((const struct copy *)a)->used_ms, ((const struct copy *)b)->used_ms);
}

/** Whether the trace is open: what has it may give its path to another process. With the store's
 * lock. */
static bool is_in_use(const struct lac_store *store, const struct copy *copy)
{
    for (uint32_t i = 0; i < store->file_count; i++) {
        if (copy->kind == LAC_OBJECT_TRACE && strcmp(store->files[i]->id, copy->id) == 0) {
            return true;
        }
    }
    return false;
}

/** Remove copies, those used longest ago first, until the rest is no more than it may be. */
static void evict(struct lac_store *store)
{
    const bool is_all = store->remote->copies_bytes_max == LAC_STORE_NO_COPIES;
    const uint64_t keep_bytes = is_all ? 0 : store->remote->copies_bytes_max;
    struct copies copies = {0};
    const int64_t now_ms = lac_now_unix_ms();
    uint64_t bytes;

    list_copies(store, &copies);
    bytes = copies.bytes;
    if (bytes > keep_bytes) {
        qsort(copies.rows, copies.count, sizeof(*copies.rows), by_use);
    }
    for (uint32_t i = 0; i < copies.count && bytes > keep_bytes; i++) {
        const struct copy *copy = &copies.rows[i];
        char path[LAC_STORE_PATH_SIZE];
        struct lac_object_row row;
        struct lac_error ignored = {0};

        (void)pthread_mutex_lock(&store->lock);
        if ((is_all || now_ms - copy->used_ms >= IN_USE_MS) && !is_in_use(store, copy) &&
            lac_catalog_get_object(store->catalog, copy->kind, copy->id, &row, &ignored) ==
                LAC_OK &&
            row.bytes == copy->bytes &&
            lac_store_path(store, path, folders[copy->kind], copy->id, endings[copy->kind]) &&
            unlink(path) == 0) {
            bytes -= copy->held_bytes;
            lac_pieces_forget(path);
        }
        (void)pthread_mutex_unlock(&store->lock);
    }
    free(copies.rows);
}

/* -- now and then -------------------------------------------------------------------------------*/

/** Put what is only in the folder: from before the storage, or imported beside it. */
static enum lac_status put_rest(struct lac_store *store, enum lac_object_kind kind,
                                struct lac_error *reterr)
{
    static const char *const sql[] = {
        "SELECT id FROM traces WHERE state = 2 AND id NOT IN (SELECT id FROM objects WHERE"
        " kind = 0) LIMIT 1000",
        "SELECT DISTINCT original FROM traces WHERE state = 2 AND original IS NOT NULL AND"
        " original NOT IN (SELECT id FROM objects WHERE kind = 1) LIMIT 1000"};
    char(*ids)[LAC_ID_SIZE] = calloc(1000, sizeof(*ids));
    struct lac_statement *get = NULL;
    uint32_t count = 0;
    enum lac_status status = ids != NULL ? LAC_OK : LAC_ERR_NOMEM;

    (void)pthread_mutex_lock(&store->lock);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, sql[kind], &get, reterr);
    }
    while (status == LAC_OK && count < 1000 &&
           (status = lac_db_step_row(get, "catalog.db", reterr)) == LAC_OK) {
        const char *id = lac_db_text(get, 0);

        if (id != NULL && lac_store_id_is_valid(id)) {
            memcpy(ids[count++], id, LAC_ID_SIZE);
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE];
        struct lac_object_row row;

        if (!lac_store_path(store, path, folders[kind], ids[i], endings[kind]) ||
            access(path, F_OK) != 0) {
            continue;
        }
        status = lac_remote_put(store, kind, ids[i], path, &row, reterr);
        if (status == LAC_OK) {
            (void)pthread_mutex_lock(&store->lock);
            status = lac_db_begin(store->catalog, true, reterr);
            if (status == LAC_OK) {
                status = lac_db_end(store->catalog,
                                    lac_catalog_put_object(store->catalog, &row, reterr), reterr);
            }
            (void)pthread_mutex_unlock(&store->lock);
        }
    }
    free(ids);
    return status;
}

struct sweep {
    struct lac_store *store;
    char (*names)[LAC_OBJECT_NAME_SIZE]; /**< of rows, in order */
    uint32_t count;
    int64_t before_ms;
    struct lac_error *reterr;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_ours(const char *name)
{
    for (unsigned kind = 0; kind < LAC_OBJECT_KINDS; kind++) {
        const size_t length = strlen(prefixes[kind]);

        if (strncmp(name, prefixes[kind], length) == 0 && name[length] == '/') {
            return true;
        }
    }
    return false;
}

/** An object that no row names: of a publication that was cut off, or of a trace that is deleted. */
static enum lac_status sweep_one(void *context, const struct lac_object *object)
{
    const struct sweep *sweep = context;

    if (object->changed_unix_ms >= sweep->before_ms || strcmp(object->name, OWNER_NAME) == 0 ||
        !is_ours(object->name) ||
        bsearch(object->name, sweep->names, sweep->count, sizeof(*sweep->names), by_name) != NULL) {
        return LAC_OK;
    }
    return lac_objects_remove(sweep->store->remote->objects, object->name, sweep->reterr);
}

/** Rows are read first: an object that becomes one meanwhile is younger than the grace period. */
static enum lac_status sweep_objects(struct lac_store *store, int64_t grace_ms,
                                     struct lac_error *reterr)
{
    struct sweep sweep = {
        .store = store, .before_ms = lac_now_unix_ms() - grace_ms, .reterr = reterr};
    struct lac_object_row *rows = NULL;
    uint32_t count = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_list_objects(store->catalog, &rows, &count, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_OK) {
        sweep.names = calloc((size_t)count + 1, sizeof(*sweep.names));
        status = sweep.names != NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        lac_object_name(&rows[i], sweep.names[sweep.count++]);
    }
    if (status == LAC_OK && sweep.names != NULL) {
        qsort(sweep.names, sweep.count, sizeof(*sweep.names), by_name);
        status = lac_objects_list(store->remote->objects, "", sweep_one, &sweep, reterr);
    }
    free(sweep.names);
    free(rows);
    return status;
}

enum lac_status lac_store_tend_objects(struct lac_store *store, int64_t grace_ms,
                                       struct lac_error *reterr)
{
    enum lac_status status;

    if (store->remote == NULL) {
        return LAC_OK;
    }
    if (lac_remote_storage(store, reterr) == NULL) {
        return LAC_ERR_IO;
    }
    (void)pthread_mutex_lock(&store->remote->tending);
    status = put_rest(store, LAC_OBJECT_TRACE, reterr);
    if (status == LAC_OK) {
        status = put_rest(store, LAC_OBJECT_ORIGINAL, reterr);
    }
    if (status == LAC_OK && store->has_shared_catalog) {
        status = drop_uploads(store, reterr);
    }
    evict(store);
    if (status == LAC_OK && grace_ms != INT64_MAX) {
        status = sweep_objects(store, grace_ms, reterr);
    }
    (void)pthread_mutex_unlock(&store->remote->tending);
    return status;
}

void lac_store_stop_waiting(struct lac_store *store)
{
    if (store->remote != NULL && store->remote->objects != NULL) {
        lac_objects_stop_waiting(store->remote->objects);
    }
    if (lac_db_sqlite(store->catalog) == NULL) {
        lac_db_stop_waiting(store->catalog);
    }
}

enum lac_status lac_store_leave_objects(struct lac_store *store, struct lac_error *reterr)
{
    struct lac_object_row *rows = NULL;
    uint32_t count = 0;
    enum lac_status status;

    if (store->remote == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "all is in the data folder already");
    }
    if (lac_remote_storage(store, reterr) == NULL) {
        return LAC_ERR_IO;
    }
    store->remote->copies_bytes_max = UINT64_MAX - 1; /* all of them */
    status = lac_catalog_list_objects(store->catalog, &rows, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (rows[i].kind != LAC_OBJECT_UPLOAD) { /* that is in staging/, too */
            status = lac_remote_fetch(store, rows[i].kind, rows[i].id, reterr);
        }
    }
    free(rows);
    for (unsigned kind = 0; kind < 2 && status == LAC_OK; kind++) {
        status = lac_store_sync_folder(store, folders[kind], reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_begin(store->catalog, true, reterr);
        if (status == LAC_OK) {
            status =
                lac_db_run(store->catalog, "DELETE FROM objects; DELETE FROM object_store", reterr);
            status = lac_db_end(store->catalog, status, reterr);
        }
    }
    if (status == LAC_OK) {
        status = sweep_objects(store, -86400000, reterr); /* whatever its clock says */
    }
    return status == LAC_OK ? lac_objects_remove(store->remote->objects, OWNER_NAME, reterr)
                            : status;
}

enum lac_status lac_store_count_objects(struct lac_store *store, struct lac_store_objects *ret,
                                        struct lac_error *reterr)
{
    struct lac_objects_counts counts = {0};
    struct copies copies = {0};
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret = (struct lac_store_objects){.is_on = store->remote != NULL};
    if (!ret->is_on) {
        return LAC_OK;
    }
    if (store->remote->objects != NULL) {
        ret->url = lac_objects_url(store->remote->objects);
        lac_objects_count(store->remote->objects, &counts);
    }
    ret->reads = counts.reads;
    ret->writes = counts.writes;
    ret->retries = counts.retries;
    ret->failures = counts.failures;
    ret->read_bytes = counts.read_bytes;
    ret->written_bytes = counts.written_bytes;
    list_copies(store, &copies);
    ret->copies_bytes = copies.bytes;
    free(copies.rows);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(
        store->catalog,
        "SELECT (SELECT count(*) FROM objects), (SELECT coalesce(sum(bytes), 0) FROM objects),"
        " (SELECT count(*) FROM traces WHERE state = 2 AND id NOT IN (SELECT id FROM objects WHERE"
        " kind = 0))",
        &get, reterr);
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        ret->object_count = (uint64_t)lac_db_i64(get, 0);
        ret->object_bytes = (uint64_t)lac_db_i64(get, 1);
        ret->waiting_count = (uint64_t)lac_db_i64(get, 2);
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
