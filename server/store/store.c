#include "server/store/store.h"

#include "analysis/model/status.h"
#include "server/store/cache.h"
#include "server/store/catalog.h"
#include "server/store/publish.h"
#include "server/store/sql.h"
#include "server/store/store_private.h"
#include "server/store/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_CACHE_BYTES       ((uint64_t)256 << 20)
#define DEFAULT_MODEL_CACHE_BYTES ((uint64_t)1 << 30)

bool lac_store_path(const struct lac_store *store, char *out, const char *folder, const char *name,
                    const char *ending)
{
    int length =
        snprintf(out, LAC_STORE_PATH_SIZE, "%s/%s%s%s%s", store->data_dir, folder,
                 name != NULL ? "/" : "", name != NULL ? name : "", ending != NULL ? ending : "");

    return length > 0 && length < LAC_STORE_PATH_SIZE;
}

int lac_folder_lock(const struct lac_store *store, bool exclusive)
{
    char path[LAC_STORE_PATH_SIZE];
    int fd;

    (void)lac_store_path(store, path, "folder.lock", NULL, NULL);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    while (flock(fd, exclusive ? LOCK_EX : LOCK_SH) != 0) {
        if (errno != EINTR) {
            (void)close(fd);
            return -1;
        }
    }
    return fd;
}

void lac_folder_unlock(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* the lock belongs to the open file: it goes with it */
    }
}

/** mkdir -p, private to the user. */
static enum lac_status make_folders(const char *path, struct lac_error *reterr)
{
    char partial[LAC_STORE_PATH_SIZE];
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof partial) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the data folder's path is empty or too long");
    }
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (partial[i] != '/' && partial[i] != '\0') {
            continue;
        }
        partial[i] = '\0';
        if (mkdir(partial, 0700) != 0 && errno != EEXIST && errno != EISDIR) {
            return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make the folder %s: %s", partial,
                            strerror(errno));
        }
        partial[i] = path[i];
    }
    return LAC_OK;
}

static enum lac_status make_layout(const struct lac_store *store, struct lac_error *reterr)
{
    static const char *const folders[] = {"traces", "originals", "staging"};
    enum lac_status status = make_folders(store->data_dir, reterr);

    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE];

        (void)lac_store_path(store, path, folders[i], NULL, NULL);
        status = make_folders(path, reterr);
    }
    return status;
}

static enum lac_status open_catalog(struct lac_store *store, struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    int lock = lac_folder_lock(store, true); /* two processes may create it at the same time */
    enum lac_status status;

    if (lock < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder %s: %s",
                        store->data_dir, strerror(errno));
    }
    (void)lac_store_path(store, path, "catalog.db", NULL, NULL);
    status = lac_catalog_open(path, &store->catalog, reterr);
    lac_folder_unlock(lock);
    return status;
}

enum lac_status lac_store_open(const struct lac_store_options *options,
                               struct lac_store **ret_store, struct lac_error *reterr)
{
    struct lac_store *store = calloc(1, sizeof *store);
    enum lac_status status = lac_sql_init(reterr);

    if (store == NULL || pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (status == LAC_OK && strlen(options->data_dir) >= sizeof store->data_dir) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "the data folder's path is too long");
    }
    if (status == LAC_OK) {
        (void)snprintf(store->data_dir, sizeof store->data_dir, "%s", options->data_dir);
        status = make_layout(store, reterr);
    }
    if (status == LAC_OK) {
        status = open_catalog(store, reterr);
    }
    if (status == LAC_OK) {
        status = lac_cache_create(
            options->cache_bytes > 0 ? options->cache_bytes : DEFAULT_CACHE_BYTES, &store->cache);
    }
    if (status == LAC_OK) {
        status = lac_cache_create(options->model_cache_bytes > 0 ? options->model_cache_bytes
                                                                 : DEFAULT_MODEL_CACHE_BYTES,
                                  &store->model_cache);
    }
    if (status == LAC_OK && options->sweep) {
        status = lac_store_sweep(store, reterr);
    }
    if (status != LAC_OK) {
        lac_store_close(store);
        return status;
    }
    *ret_store = store;
    return LAC_OK;
}

void lac_store_close(struct lac_store *store)
{
    if (store == NULL) {
        return;
    }
    for (uint32_t i = 0; i < store->file_count; i++) {
        lac_trace_file_close(store->files[i]);
    }
    free((void *)store->files);
    (void)sqlite3_close(store->catalog);
    lac_cache_destroy(store->cache);
    lac_cache_destroy(store->model_cache);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

const char *lac_store_data_dir(const struct lac_store *store)
{
    return store->data_dir;
}

const char *lac_trace_state_name(enum lac_trace_state state)
{
    static const char *const names[] = {[LAC_TRACE_RECEIVING] = "receiving",
                                        [LAC_TRACE_IMPORTING] = "importing",
                                        [LAC_TRACE_READY] = "ready",
                                        [LAC_TRACE_FAILED] = "failed"};

    return names[state];
}

bool lac_store_id_is_valid(const char *id)
{
    size_t length = 0;

    for (; id[length] != '\0' && length <= LAC_ID_LENGTH; length++) {
        bool letter = id[length] >= 'a' && id[length] <= 'z';
        bool digit = id[length] >= '2' && id[length] <= '7';

        if (!letter && !digit) {
            return false;
        }
    }
    return length == LAC_ID_LENGTH;
}

enum lac_status lac_store_list_traces(struct lac_store *store, const struct lac_trace_query *query,
                                      struct lac_trace_list *ret_list, struct lac_error *reterr)
{
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_list(store->catalog, query, ret_list, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_get_trace(struct lac_store *store, const char *id,
                                    struct lac_trace_row *ret_row, struct lac_error *reterr)
{
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_get(store->catalog, id, true, ret_row, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_count_states(struct lac_store *store, uint64_t counts[4],
                                       struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    memset(counts, 0, 4 * sizeof *counts);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_sql_prepare(store->catalog, "SELECT state, count(*) FROM traces GROUP BY state",
                             &get, reterr);
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            int64_t state = sqlite3_column_int64(get, 0);

            if (state >= 0 && state < 4) {
                counts[state] = (uint64_t)sqlite3_column_int64(get, 1);
            }
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_store_audit(struct lac_store *store, const char *actor, const char *action,
                                const char *object, struct lac_error *reterr)
{
    char cut[3][512];
    char at_ms[24];
    const char *texts[4] = {at_ms, cut[0], cut[1], cut[2]};
    enum lac_status status;

    (void)snprintf(at_ms, sizeof at_ms, "%lld", (long long)lac_now_unix_ms());
    (void)snprintf(cut[0], sizeof cut[0], "%s", actor);
    (void)snprintf(cut[1], sizeof cut[1], "%s", action);
    (void)snprintf(cut[2], sizeof cut[2], "%s", object);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "INSERT INTO audit(at_ms, actor, action, object) "
                                    "VALUES(CAST(?1 AS INTEGER), ?2, ?3, ?4)",
                                    texts, 4, NULL, reterr);
        status = lac_catalog_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

uint64_t lac_store_cache_used_bytes(struct lac_store *store)
{
    return lac_cache_used_bytes(store->cache) + lac_cache_used_bytes(store->model_cache);
}
