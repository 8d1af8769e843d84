/*
 * A server takes over a catalog that another one held. Its folder may be new, or one that held the
 * catalog before: what other servers did meanwhile is in the catalog and in object storage, and
 * nothing in the folder contradicts that.
 *
 *   trash/                a deletion that was cut short was not acknowledged, and the other server
 *                         went on with the trace: it is none
 *   traces/, originals/   what is in object storage goes: it may be an older file of that name. A
 *                         trace file that no row names belongs to a trace that was deleted: lost/.
 *   staging/              only what the catalog says is to be imported
 *   uploads/              their clients were told by the other server to begin again
 *
 * Then uploads that wait to be imported are fetched, so that a start finds them as its own.
 */

#include "analysis/model/status.h"
#include "server/objects/objects.h"
#include "server/store/catalog.h"
#include "server/store/database/holder.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Call for each entry of a folder of the data folder. */
static void each_entry(struct lac_store *store, const char *folder_name,
                       void (*visit)(struct lac_store *, const char *name))
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;

    (void)lac_store_path(store, path, folder_name, NULL, NULL);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            visit(store, entry->d_name);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/** Whether it is certain that object storage has it. */
static bool is_stored(struct lac_store *store, enum lac_object_kind kind, const char *id)
{
    struct lac_object_row row;
    struct lac_error ignored = {0};

    return lac_catalog_get_object(store->catalog, kind, id, &row, &ignored) == LAC_OK;
}

static void drop_trace(struct lac_store *store, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];
    struct lac_error ignored = {0};
    int64_t state;

    if (!lac_store_id_of(name, ".db", id) || !lac_store_path(store, path, "traces", name, NULL)) {
        return; /* the sweep says what it is */
    }
    if (is_stored(store, LAC_OBJECT_TRACE, id)) {
        (void)unlink(path);
    } else if (lac_catalog_number(store->catalog, "state", id, &state, &ignored) ==
               LAC_ERR_NOT_FOUND) {
        (void)lac_store_set_aside(store, "traces", name,
                                  "is of a trace that another server deleted");
    }
}

static void drop_deletion(struct lac_store *store, const char *name)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];
    struct lac_error ignored = {0};
    const bool is_trace = lac_store_id_of(name, ".db", id);
    int64_t state;

    if ((!is_trace && !lac_store_id_of(name, ".upload", id)) ||
        !lac_store_path(store, from, "trash", name, NULL) ||
        !lac_store_path(store, to, "traces", name, NULL) ||
        lac_catalog_number(store->catalog, "state", id, &state, &ignored) != LAC_OK) {
        return; /* the sweep ends it */
    }
    if (is_trace && !is_stored(store, LAC_OBJECT_TRACE, id)) {
        (void)rename(from, to); /* all that there is of it */
    } else {
        (void)unlink(from);
    }
}

static void drop_original(struct lac_store *store, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];

    if (lac_store_id_of(name, ".zst", id) && is_stored(store, LAC_OBJECT_ORIGINAL, id) &&
        lac_store_path(store, path, "originals", name, NULL)) {
        (void)unlink(path);
    }
}

static void drop_staged(struct lac_store *store, const char *name)
{
    struct lac_staging staging;
    struct lac_error ignored;

    if (!lac_store_id_is_valid(name) ||
        lac_staging_adopt(store, name, &staging, &ignored) != LAC_OK) {
        return;
    }
    if (lac_store_staging_is_wanted(store, name)) {
        lac_staging_close(&staging);
    } else {
        lac_staging_remove(&staging);
    }
}

static void drop_partial(struct lac_store *store, const char *name)
{
    char path[LAC_STORE_PATH_SIZE];

    if (lac_store_path(store, path, "uploads", name, NULL)) {
        (void)unlink(path);
    }
}

/** The bytes of an upload into staging/<id>/upload, where they are not. */
static enum lac_status fetch_upload(struct lac_store *store, const struct lac_object_row *row,
                                    struct lac_error *reterr)
{
    struct lac_objects *const objects = lac_remote_storage(store, reterr);
    char name[LAC_OBJECT_NAME_SIZE];
    char folder[LAC_STORE_PATH_SIZE];
    char path[LAC_STORE_PATH_SIZE];
    char part[LAC_STORE_PATH_SIZE];
    struct stat info;
    enum lac_status status;

    if (objects == NULL) {
        return LAC_ERR_IO;
    }
    if (!lac_store_path(store, folder, "staging", row->id, NULL) ||
        !lac_store_path(store, path, "staging", row->id, "/" LAC_STAGED_UPLOAD) ||
        !lac_store_path(store, part, "fetch", row->id, NULL) ||
        (lstat(path, &info) == 0 && (uint64_t)info.st_size == row->bytes)) {
        return LAC_OK;
    }
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make a staging folder: %s", strerror(errno));
    }
    (void)unlink(part); /* of an arrival that was cut short */
    lac_object_name(row, name);
    status = lac_objects_get(objects, name, part, row->sha256, reterr);
    if (status == LAC_OK && rename(part, path) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot keep an upload: %s", strerror(errno));
    }
    if (status == LAC_ERR_NOT_FOUND || status == LAC_ERR_CORRUPT) {
        lac_store_tell(store, "%s, which waits to be imported, is %s in %s", name,
                       status == LAC_ERR_NOT_FOUND ? "not" : "damaged", lac_objects_url(objects));
        (void)rmdir(folder); /* the sweep says of its trace that it is lost */
        status = LAC_OK;
    }
    return status;
}

static enum lac_status fetch_uploads(struct lac_store *store, uint32_t *ret_count,
                                     struct lac_error *reterr)
{
    struct lac_object_row *rows = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_catalog_list_objects(store->catalog, &rows, &count, reterr);

    *ret_count = 0;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (rows[i].kind == LAC_OBJECT_UPLOAD && lac_store_staging_is_wanted(store, rows[i].id)) {
            status = fetch_upload(store, &rows[i], reterr);
            *ret_count += 1;
        }
    }
    free(rows);
    return status;
}

enum lac_status lac_store_arrive(struct lac_store *store, struct lac_error *reterr)
{
    const int folder = lac_folder_lock(store, true);
    bool is_arriving = false;
    uint32_t count = 0;
    enum lac_status status;

    if (folder < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot lock the data folder %s: %s",
                        store->data_dir, strerror(errno));
    }
    /* another process of this folder may have done it meanwhile */
    status = lac_holder_is_arriving(store->catalog, &is_arriving, reterr);
    if (status == LAC_OK && is_arriving) {
        each_entry(store, "trash", drop_deletion);
        each_entry(store, "traces", drop_trace);
        each_entry(store, "originals", drop_original);
        each_entry(store, "staging", drop_staged);
        each_entry(store, "uploads", drop_partial);
        status = fetch_uploads(store, &count, reterr);
        if (status == LAC_OK) {
            status = lac_holder_has_arrived(store->catalog, reterr);
        }
        if (status == LAC_OK) {
            lac_store_tell(store,
                           "the catalog was held by another server: this one has taken it over, "
                           "with %u uploads that wait to be imported",
                           count);
        }
    }
    store->is_arriving = false;
    lac_folder_unlock(folder);
    return status;
}
