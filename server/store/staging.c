/* Staging folders and their locks, and sweeping what dead processes left. */

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/sql.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum lac_status lac_store_new_id(char *ret_id, struct lac_error *reterr)
{
    assert(ret_id != NULL);
    uint8_t random[16];

    _Static_assert(LAC_BASE32_TEXT_BYTES(sizeof(random)) == LAC_ID_SIZE, "an id is 128 bits");

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no random numbers: %s", strerror(errno));
    }
    lac_base32_encode(random, sizeof(random), ret_id);
    return LAC_OK;
}

static enum lac_status lock_folder(struct lac_staging *staging, struct lac_error *reterr)
{
    staging->fd = open(staging->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (staging->fd < 0) {
        return lac_fail(reterr, errno == ENOENT ? LAC_ERR_NOT_FOUND : LAC_ERR_IO, 0,
                        "cannot open the staging folder: %s", strerror(errno));
    }
    if (flock(staging->fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;

        (void)close(staging->fd);
        staging->fd = -1;
        errno = error;
        return lac_fail(reterr, error == EWOULDBLOCK ? LAC_ERR_MISUSE : LAC_ERR_IO, 0,
                        "cannot lock the staging folder: %s", strerror(error));
    }
    return LAC_OK;
}

static void init(struct lac_store *store, const char *id, struct lac_staging *staging)
{
    *staging = (struct lac_staging){.fd = -1};
    memcpy(staging->id, id, strnlen(id, LAC_ID_LENGTH));
    (void)lac_store_path(store, staging->path, "staging", id, NULL);
}

enum lac_status lac_staging_create(struct lac_store *store, const char *id,
                                   struct lac_staging *ret_staging, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_staging != NULL);
    /* shared with the sweeper: between mkdir and flock the folder looks like a dead one's */
    int folder = lac_folder_lock(store, false);
    enum lac_status status = LAC_OK;

    init(store, id, ret_staging);
    if (folder < 0 || mkdir(ret_staging->path, 0700) != 0) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot make a staging folder: %s", strerror(errno));
    }
    if (status == LAC_OK) {
        status = lock_folder(ret_staging, reterr);
        if (status != LAC_OK) {
            (void)rmdir(ret_staging->path);
        }
    }
    lac_folder_unlock(folder);
    return status;
}

enum lac_status lac_staging_adopt(struct lac_store *store, const char *id,
                                  struct lac_staging *ret_staging, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_staging != NULL);
    init(store, id, ret_staging);
    return lock_folder(ret_staging, reterr);
}

/** Remove a folder and what is in it; one level of folders below it at most. */
static void remove_folder(int parent_fd, const char *name, int depth)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (folder == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) != 0 && errno != ENOENT && depth > 0) {
            remove_folder(fd, entry->d_name, depth - 1);
        }
    }
    (void)closedir(folder);
    (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void lac_staging_remove(struct lac_staging *staging)
{
    assert(staging != NULL);
    if (staging->fd >= 0) {
        remove_folder(AT_FDCWD, staging->path, 2);
    }
    lac_staging_close(staging);
}

void lac_staging_close(struct lac_staging *staging)
{
    assert(staging != NULL);
    if (staging->fd >= 0) {
        (void)close(staging->fd);
    }
    staging->fd = -1;
}

/** Staging folders nobody holds: keep those of acknowledged uploads that are not traces yet. */
static void sweep_staging(struct lac_store *store)
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;

    (void)lac_store_path(store, path, "staging", NULL, NULL);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct lac_staging staging;
        struct lac_error error;

        if (entry->d_name[0] == '.') {
            continue;
        }
        if (!lac_store_id_is_valid(entry->d_name)) {
            continue; /* not ours: leave it */
        }
        if (lac_staging_adopt(store, entry->d_name, &staging, &error) != LAC_OK) {
            continue;
        }
        if (lac_store_staging_is_wanted(store, entry->d_name)) {
            lac_staging_close(&staging);
        } else {
            lac_staging_remove(&staging);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/** Rows under way whose process died: nobody holds their staging folders. */
static enum lac_status sweep_rows(struct lac_store *store, enum lac_trace_state state,
                                  struct lac_error *reterr)
{
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_store_list_state(store, state, &ids, &count, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        struct lac_staging staging;
        struct lac_error error;
        enum lac_status locked = lac_staging_adopt(store, ids[i], &staging, &error);

        lac_staging_close(&staging);
        if (state == LAC_TRACE_RECEIVING && locked != LAC_ERR_MISUSE) {
            status = lac_store_drop(store, ids[i], reterr);
        } else if (state == LAC_TRACE_IMPORTING && locked == LAC_ERR_NOT_FOUND) {
            status = lac_store_fail(
                store, ids[i], "lost",
                "the uploaded file is no longer in the data folder: upload it again", reterr);
        }
    }
    free(ids);
    return status;
}

enum lac_status lac_store_sweep(struct lac_store *store, struct lac_error *reterr)
{
    int folder = lac_folder_lock(store, true);
    enum lac_status status;

    if (folder < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot lock the data folder %s: %s",
                        store->data_dir, strerror(errno));
    }
    status = lac_store_recover(store, reterr);
    if (status == LAC_OK && !store->is_live) {
        status = sweep_rows(store, LAC_TRACE_RECEIVING, reterr);
    }
    if (status == LAC_OK && !store->is_live) {
        status = sweep_rows(store, LAC_TRACE_IMPORTING, reterr);
    }
    if (status == LAC_OK && !store->is_live && !store->sweep_is_due) {
        sweep_staging(store); /* with all rows there: else it could be wanted */
    }
    if (status != LAC_OK && lac_sql_is_full(reterr)) {
        lac_store_tell(store, "the disk is full: delete traces");
        store->sweep_is_due = true;
        status = LAC_OK; /* the rest is done when there is room: reading and deleting work */
    }
    lac_folder_unlock(folder);
    return status;
}
