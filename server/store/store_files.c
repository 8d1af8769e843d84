/* Open trace files, shared by all who ask; and deletion. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace_file.h"
#include "server/store/trace_private.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    status = lac_trace_file_open_with(path, store->cache, store->model_cache, &fresh, reterr);
    if (status != LAC_OK) {
        return status;
    }
    memcpy(fresh->id, id, LAC_ID_SIZE);
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

void lac_store_release_trace(struct lac_store *store, struct lac_trace_file *file)
{
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

enum lac_status lac_store_delete_trace(struct lac_store *store, const char *id,
                                       struct lac_error *reterr)
{
    char original[LAC_ID_SIZE];
    char path[LAC_STORE_PATH_SIZE];
    struct lac_trace_file *file = NULL;
    enum lac_status status;

    if (!lac_store_id_is_valid(id)) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, true, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_delete(store->catalog, id, original, reterr);
        status = lac_catalog_end(store->catalog, status, reterr);
    }
    if (status == LAC_OK) {
        file = find_open(store, id);
        if (file != NULL) {
            file->is_deleted = true;
            for (uint32_t i = 0; i < store->file_count && file->use_count == 0; i++) {
                if (store->files[i] == file) {
                    (void)take_off(store, i);
                    break;
                }
            }
            file = file->use_count == 0 ? file : NULL;
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        return status;
    }
    lac_trace_file_close(file);
    /* the row is gone: what cannot be removed now is swept at the next start */
    if (lac_store_path(store, path, "traces", id, ".db")) {
        (void)unlink(path);
    }
    if (original[0] != '\0' && lac_store_path(store, path, "originals", original, ".zst")) {
        (void)unlink(path);
    }
    return LAC_OK;
}
