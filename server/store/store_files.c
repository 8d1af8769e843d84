/* Open trace files, shared by all who ask; and deletion. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/pieces/pieces.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct lac_trace_file *find_open(struct lac_store *store, const char *id)
{
    for (uint32_t i = 0; i < store->file_count; i++) {
        if (!store->files[i]->is_deleted && strcmp(store->files[i]->id, id) == 0) {
            return store->files[i];
        }
    }
    return NULL;
}

static void use(struct lac_store *store, struct lac_trace_file *file)
{
    file->use_count++;
    file->last_use = ++store->use_clock;
}

/** Take the file at `index` off the list; the caller closes it. */
static struct lac_trace_file *take_off(struct lac_store *store, uint32_t index)
{
    struct lac_trace_file *file = store->files[index];

    store->files[index] = store->files[--store->file_count];
    return file;
}

/** The idle file used longest ago, taken off, when more are open than are kept. */
static struct lac_trace_file *take_idle(struct lac_store *store)
{
    uint32_t oldest = store->file_count;

    if (store->file_count <= LAC_STORE_FILES_KEPT) {
        return NULL;
    }
    for (uint32_t i = 0; i < store->file_count; i++) {
        if (store->files[i]->use_count == 0 &&
            (oldest == store->file_count ||
             store->files[i]->last_use < store->files[oldest]->last_use)) {
            oldest = i;
        }
    }
    return oldest < store->file_count ? take_off(store, oldest) : NULL;
}

static enum lac_status add_open(struct lac_store *store, struct lac_trace_file *file)
{
    if (store->file_count == store->file_capacity) {
        uint32_t capacity = store->file_capacity > 0 ? store->file_capacity * 2 : 32;
        struct lac_trace_file **files = (struct lac_trace_file **)realloc(
            (void *)store->files, capacity * sizeof(struct lac_trace_file *));

        if (files == NULL) {
            return LAC_ERR_NOMEM;
        }
        store->files = files;
        store->file_capacity = capacity;
    }
    store->files[store->file_count++] = file;
    return LAC_OK;
}

/** Whether the catalog says that the trace can be read. With the lock held. */
static enum lac_status check_ready(struct lac_store *store, const char *id,
                                   struct lac_error *reterr)
{
    struct lac_trace_row row;
    enum lac_status status = lac_catalog_get(store->catalog, id, false, &row, reterr);

    if (status == LAC_OK) {
        if (row.state != LAC_TRACE_READY) {
            status = lac_fail(reterr, LAC_ERR_MISUSE, 0, "the trace is %s",
                              row.state == LAC_TRACE_FAILED ? "not there: its import failed"
                                                            : "not ready yet");
        }
        lac_trace_row_done(&row);
    }
    return status;
}

enum lac_status lac_store_open_trace(struct lac_store *store, const char *id,
                                     struct lac_trace_file **ret_file, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_file != NULL);
    char path[LAC_STORE_PATH_SIZE];
    struct lac_trace_file *file = NULL;
    struct lac_trace_file *fresh = NULL;
    struct lac_trace_file *idle = NULL;
    enum lac_status status = LAC_OK;

    if (!lac_store_id_is_valid(id) || !lac_store_path(store, path, "traces", id, ".db")) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    (void)pthread_mutex_lock(&store->lock);
    file = find_open(store, id);
    if (file == NULL) {
        status = check_ready(store, id, reterr);
    } else {
        use(store, file);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (file != NULL || status != LAC_OK) {
        *ret_file = file;
        return status;
    }
    /* opening reads the strings and indexes: not under the lock that everybody needs */
    status = lac_remote_fetch(store, LAC_OBJECT_TRACE, id, reterr);
    if (status != LAC_OK) {
        return status;
    }
    status = lac_trace_file_open_with(path, store->cache, store->model_cache, &fresh, reterr);
    if (status != LAC_OK) {
        return status;
    }
    memcpy(fresh->id, id, LAC_ID_SIZE);
    fresh->names = store->names;
    fresh->crew = store->crew;
    (void)pthread_mutex_lock(&store->lock);
    file = find_open(store, id);
    if (file == NULL) {
        status = check_ready(store, id, reterr); /* it may have been deleted meanwhile */
        if (status == LAC_OK) {
            status = add_open(store, fresh);
        }
        if (status == LAC_OK) {
            file = fresh;
            fresh = NULL;
        }
    }
    if (file != NULL) {
        use(store, file);
    }
    idle = take_idle(store);
    (void)pthread_mutex_unlock(&store->lock);
    lac_trace_file_close(fresh);
    lac_trace_file_close(idle);
    *ret_file = file;
    return status;
}

enum lac_status lac_store_make_whole(const struct lac_trace_file *file, struct lac_error *reterr)
{
    return lac_pieces_complete(lac_trace_file_path(file), reterr);
}

void lac_store_release_trace(struct lac_store *store, struct lac_trace_file *file)
{
    assert(store != NULL);
    struct lac_trace_file *closing = NULL;

    if (file == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&store->lock);
    file->use_count--;
    if (file->is_deleted && file->use_count == 0) {
        for (uint32_t i = 0; i < store->file_count && closing == NULL; i++) {
            closing = store->files[i] == file ? take_off(store, i) : NULL;
        }
    } else {
        closing = take_idle(store);
    }
    (void)pthread_mutex_unlock(&store->lock);
    lac_trace_file_close(closing);
}

/** Whether the trace may be deleted, and its state. With the lock held. */
static enum lac_status state_of(struct lac_store *store, const char *id,
                                enum lac_trace_state *ret_state, struct lac_error *reterr)
{
    struct lac_trace_row row;
    enum lac_status status = lac_catalog_get(store->catalog, id, false, &row, reterr);

    if (status == LAC_OK) {
        *ret_state = row.state;
        lac_trace_row_done(&row);
    }
    return status;
}

/**
 * Into trash/, so that a start with another catalog does not list it again. An upload that is not a
 * trace yet leaves a mark there, and loses what would list it.
 */
static enum lac_status put_into_trash(struct lac_store *store, const char *id, bool is_trace,
                                      struct lac_error *reterr)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];
    int fd;

    (void)lac_store_path(store, to, "trash", NULL, NULL);
    if (mkdir(to, 0700) != 0 && errno != EEXIST) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make trash/: %s", strerror(errno));
    }
    if (is_trace) {
        (void)lac_store_path(store, from, "traces", id, ".db");
        (void)lac_store_path(store, to, "trash", id, ".db");
        if (rename(from, to) != 0) {
            return errno == ENOENT
                       ? LAC_OK
                       : lac_fail(reterr, LAC_ERR_IO, 0, "cannot remove traces/%s.db: %s", id,
                                  strerror(errno));
        }
    } else {
        (void)lac_store_path(store, to, "trash", id, ".upload");
        fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            (void)close(fd);
        }
        (void)lac_store_path(store, to, "staging", id, "/" LAC_STAGED_FACTS);
        (void)unlink(to);
        (void)lac_store_path(store, to, "staging", id, NULL);
        fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            (void)fsync(fd);
            (void)close(fd);
        }
    }
    if (lac_store_sync_folder(store, "trash", reterr) != LAC_OK) {
        return LAC_ERR_IO;
    }
    return is_trace ? lac_store_sync_folder(store, "traces", reterr) : LAC_OK;
}

static void take_from_trash(struct lac_store *store, const char *id)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];

    (void)lac_store_path(store, from, "trash", id, ".db");
    (void)lac_store_path(store, to, "traces", id, ".db");
    (void)rename(from, to);
    (void)lac_store_path(store, from, "trash", id, ".upload");
    (void)unlink(from);
}

/** Delete the rows; when the disk is full, with the reserve, and at last without the file. */
static enum lac_status delete_rows(struct lac_store *store, const char *id, char *ret_original,
                                   struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    bool tried = false;
    bool is_gone = false;
    enum lac_status status;

    for (;;) {
        ret_original[0] = '\0';
        status = lac_db_begin(store->catalog, true, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_delete(store->catalog, id, ret_original, reterr);
            status = lac_db_end(store->catalog, status, reterr);
        }
        if (status == LAC_OK || lac_store_make_room(store, reterr, &tried)) {
            if (status == LAC_OK) {
                return LAC_OK;
            }
            continue;
        }
        if (status == LAC_ERR_NOT_FOUND || !lac_sql_is_full(reterr) || is_gone ||
            !lac_store_path(store, path, "trash", id, ".db") || unlink(path) != 0) {
            return status;
        }
        is_gone = true; /* it is to go anyway, and makes room for saying so */
    }
}

/** Forget an open file. @return what the caller closes, or NULL */
static struct lac_trace_file *drop_open(struct lac_store *store, const char *id)
{
    struct lac_trace_file *file = find_open(store, id);

    if (file == NULL) {
        return NULL;
    }
    file->is_deleted = true;
    if (file->use_count > 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < store->file_count; i++) {
        if (store->files[i] == file) {
            return take_off(store, i);
        }
    }
    return NULL;
}

void lac_store_forget_file(struct lac_store *store, const char *id)
{
    assert(store != NULL && id != NULL);
    struct lac_trace_file *file;

    (void)pthread_mutex_lock(&store->lock);
    file = drop_open(store, id);
    (void)pthread_mutex_unlock(&store->lock);
    lac_trace_file_close(file);
}

/** The bytes of an import that failed. One that runs is its owner's to end. */
static void remove_kept_upload(struct lac_store *store, const char *id)
{
    struct lac_staging staging;
    struct lac_error ignored;

    if (lac_staging_adopt(store, id, &staging, &ignored) == LAC_OK) {
        lac_staging_remove(&staging);
    }
}

/** The objects of a trace by kind, zeroed where there are none. With the store's lock. */
static void find_objects(struct lac_store *store, const char *id, struct lac_object_row *objects)
{
    char original[LAC_ID_SIZE] = "";
    struct lac_error ignored = {0};

    if (store->remote == NULL) {
        return;
    }
    if (lac_catalog_get_object(store->catalog, LAC_OBJECT_TRACE, id, &objects[0], &ignored) !=
        LAC_OK) {
        objects[0].bytes = 0;
    }
    if (lac_catalog_get_object(store->catalog, LAC_OBJECT_UPLOAD, id, &objects[2], &ignored) !=
        LAC_OK) {
        objects[2].bytes = 0;
    }
    if (lac_catalog_original(store->catalog, id, original, &ignored) != LAC_OK ||
        lac_catalog_get_object(store->catalog, LAC_OBJECT_ORIGINAL, original, &objects[1],
                               &ignored) != LAC_OK) {
        objects[1].bytes = 0;
    }
}

enum lac_status lac_store_delete_trace(struct lac_store *store, const char *id,
                                       struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    char original[LAC_ID_SIZE] = "";
    char path[LAC_STORE_PATH_SIZE];
    struct lac_object_row objects[LAC_OBJECT_KINDS] = {{0}};
    struct lac_trace_file *file = NULL;
    enum lac_trace_state state = LAC_TRACE_FAILED;
    enum lac_status status = LAC_OK;
    int folder;

    if (!lac_store_id_is_valid(id)) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    folder = lac_folder_lock(store, false); /* a start must not finish what is under way */
    (void)pthread_mutex_lock(&store->lock);
    status = state_of(store, id, &state, reterr);
    if (status == LAC_OK) {
        find_objects(store, id, objects);
        status = put_into_trash(store, id, state == LAC_TRACE_READY, reterr);
        if (status == LAC_OK) {
            status = delete_rows(store, id, original, reterr);
        }
        if (status == LAC_OK) {
            file = drop_open(store, id);
        } else {
            take_from_trash(store, id);
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_OK) {
        lac_trace_file_close(file);
        /* the row is gone: what cannot be removed now is removed at the next start */
        if (lac_store_path(store, path, "trash", id, ".db")) {
            (void)unlink(path);
        }
        if (original[0] != '\0' && lac_store_path(store, path, "originals", original, ".zst")) {
            (void)unlink(path);
        }
        if (state == LAC_TRACE_FAILED) {
            remove_kept_upload(store, id);
            if (lac_store_path(store, path, "trash", id, ".upload")) {
                (void)unlink(path);
            }
        }
        lac_store_keep_reserve(store);
    }
    lac_folder_unlock(folder);
    if (status == LAC_OK) {
        lac_remote_remove(store, &objects[LAC_OBJECT_TRACE]);
        lac_remote_remove(store, &objects[LAC_OBJECT_UPLOAD]);
        if (original[0] != '\0') {
            lac_remote_remove(store, &objects[LAC_OBJECT_ORIGINAL]);
        }
        lac_store_sweep_if_due(store); /* it made room */
    }
    return status;
}

enum lac_status lac_store_original_path(struct lac_store *store, const char *id, char *out,
                                        size_t capacity_bytes, struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    char original[LAC_ID_SIZE];

    (void)pthread_mutex_lock(&store->lock);
    enum lac_status status = lac_catalog_original(store->catalog, id, original, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_OK && original[0] != '\0') {
        status = lac_remote_fetch(store, LAC_OBJECT_ORIGINAL, original, reterr);
    }
    if (status == LAC_OK &&
        (original[0] == '\0' || !lac_store_path(store, path, "originals", original, ".zst") ||
         access(path, R_OK) != 0 || strlen(path) >= capacity_bytes)) {
        status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0,
                          "the file of this trace was not kept: import both files together");
    }
    if (status == LAC_OK) {
        (void)snprintf(out, capacity_bytes, "%s", path);
    }
    return status;
}
