#include "server/store/store.h"

#include "analysis/crew/crew.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store_private.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DEFAULT_CACHE_BYTES       ((uint64_t)160 << 20)
#define DEFAULT_MODEL_CACHE_BYTES ((uint64_t)1 << 30)

/** Given up when the disk is full, so that something can be deleted or said to have failed. */
enum { RESERVE_BYTES = 4 << 20, CATALOG_NAME_BYTES = 64, SWEEP_AGAIN_MS = 60000 };

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

    if (length == 0 || length >= sizeof(partial)) {
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

    for (size_t i = 0; i < LAC_COUNT_OF(folders) && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE];

        (void)lac_store_path(store, path, folders[i], NULL, NULL);
        status = make_folders(path, reterr);
    }
    return status;
}

/** Hold DIR/catalog.lock. @return false when somebody else has the catalog open */
static bool lock_catalog(struct lac_store *store, bool exclusive)
{
    char path[LAC_STORE_PATH_SIZE];

    if (store->catalog_lock < 0) {
        (void)lac_store_path(store, path, "catalog.lock", NULL, NULL);
        store->catalog_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (store->catalog_lock < 0 && (errno == ENOSPC || errno == EDQUOT)) {
        return true; /* the first start of this version, on a full disk: nobody else has it either
                      */
    }
    return store->catalog_lock >= 0 &&
           flock(store->catalog_lock, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
}

/** Whether a server of any version runs on the folder. */
static bool is_served(const struct lac_store *store)
{
    char path[LAC_STORE_PATH_SIZE];
    bool served = false;
    int fd;

    (void)lac_store_path(store, path, "serve.lock", NULL, NULL);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        served = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        (void)close(fd);
    }
    return served;
}

/** Move a damaged catalog to lost/. */
static enum lac_status put_catalog_aside(struct lac_store *store, char *ret_name,
                                         struct lac_error *reterr)
{
    /* not under the name of a journal, which SQLite would apply */
    static const struct {
        const char *was, *is;
    } rest[] = {{"-journal", ".journal"}, {"-wal", ".wal"}, {"-shm", ".shm"}};
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];
    struct stat info;
    int64_t number = lac_now_unix_ms();

    (void)lac_store_path(store, to, "lost", NULL, NULL);
    if (mkdir(to, 0700) != 0 && errno != EEXIST) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make lost/: %s", strerror(errno));
    }
    do {
        (void)snprintf(ret_name, CATALOG_NAME_BYTES, "lost/catalog-%lld.db", (long long)number++);
    } while (lac_store_path(store, to, ret_name, NULL, NULL) && lstat(to, &info) == 0);
    (void)lac_store_path(store, from, "catalog.db", NULL, NULL);
    if (rename(from, to) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot move catalog.db to lost/: %s",
                        strerror(errno));
    }
    for (size_t i = 0; i < LAC_COUNT_OF(rest); i++) {
        (void)lac_store_path(store, from, "catalog.db", NULL, rest[i].was);
        (void)lac_store_path(store, to, ret_name, NULL, rest[i].is);
        (void)rename(from, to);
    }
    return LAC_OK;
}

/** A damaged catalog: kept aside, and a new one in its place with what can be read of it. The
 * traces are listed by lac_store_recover(). */
static enum lac_status replace_catalog(struct lac_store *store, const char *path,
                                       struct lac_error *reterr)
{
    char name[CATALOG_NAME_BYTES] = "";
    char why[sizeof(reterr->message)];
    char damaged[LAC_STORE_PATH_SIZE];
    const char *brief;
    enum lac_status status;

    if (!lock_catalog(store, true) || is_served(store)) {
        return reterr->status; /* its sentence says to stop the others first */
    }
    (void)snprintf(why, sizeof(why), "%s", reterr->message);
    brief = strrchr(why, ':');
    status = put_catalog_aside(store, name, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_open(path, &store->catalog, reterr);
    }
    if (status == LAC_OK && lac_store_path(store, damaged, name, NULL, NULL)) {
        status = lac_catalog_salvage(lac_db_sqlite(store->catalog), damaged, reterr);
    }
    if (status == LAC_OK) {
        lac_store_tell(store, "%.*s: it is kept as %s and made again from the trace files",
                       (int)(brief != NULL ? brief - why : (ptrdiff_t)strlen(why)), why, name);
    }
    return status;
}

/** DIR/catalog.db: converted, checked and replaced where that is needed. */
static enum lac_status open_catalog_file(struct lac_store *store, bool may_replace,
                                         struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    enum lac_status status = LAC_OK;

    (void)lac_store_path(store, path, "catalog.db", NULL, NULL);
    if (lock_catalog(store, true) && !is_served(store)) {
        status = lac_catalog_convert(path, reterr);
    }
    if (status == LAC_OK) {
        status = lac_catalog_open(path, &store->catalog, reterr);
    }
    if (status == LAC_OK && may_replace) {
        status = lac_catalog_check(lac_db_sqlite(store->catalog), reterr);
    }
    if (status == LAC_ERR_CORRUPT && may_replace) {
        lac_db_close(store->catalog);
        store->catalog = NULL;
        status = replace_catalog(store, path, reterr);
    }
    return status;
}

static enum lac_status open_catalog(struct lac_store *store,
                                    const struct lac_store_options *options,
                                    struct lac_error *reterr)
{
    const struct lac_postgres_catalog elsewhere = {.data_dir = store->data_dir,
                                                   .address = options->catalog_address,
                                                   .node =
                                                       options->only_reads ? NULL : options->node,
                                                   .only_reads = options->only_reads,
                                                   .ret_is_arriving = &store->is_arriving};
    int lock = lac_folder_lock(store, true); /* two processes may create it at the same time */
    enum lac_status status;

    if (lock < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder %s: %s",
                        store->data_dir, strerror(errno));
    }
    store->has_shared_catalog = lac_db_is_elsewhere(store->data_dir, options->catalog_address);
    status = store->has_shared_catalog
                 ? lac_catalog_open_elsewhere(&elsewhere, &store->catalog, reterr)
                 : open_catalog_file(store, options->sweep && !options->is_live, reterr);
    if (status == LAC_OK && !lock_catalog(store, false)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "another process repairs the data folder %s",
                          store->data_dir);
    }
    lac_folder_unlock(lock);
    return status;
}

bool lac_store_make_room(struct lac_store *store, const struct lac_error *error, bool *tried)
{
    char path[LAC_STORE_PATH_SIZE];

    if (*tried || !lac_sql_is_full(error)) {
        return false;
    }
    *tried = true;
    (void)lac_store_path(store, path, "reserve", NULL, NULL);
    return unlink(path) == 0;
}

static bool has_room(const struct lac_store *store)
{
    struct statvfs disk;

    return statvfs(store->data_dir, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= (uint64_t)4 * RESERVE_BYTES;
}

void lac_store_keep_reserve(struct lac_store *store)
{
    char path[LAC_STORE_PATH_SIZE];
    struct stat info;
    int fd;

    (void)lac_store_path(store, path, "reserve", NULL, NULL);
    if ((stat(path, &info) == 0 && info.st_size == RESERVE_BYTES) || !has_room(store)) {
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, RESERVE_BYTES) != 0) {
        (void)unlink(path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static enum lac_status start_crew(struct lac_store *store, unsigned helpers)
{
    return helpers == 0 || lac_crew_create(helpers, NULL, NULL, &store->crew) ? LAC_OK
                                                                              : LAC_ERR_NOMEM;
}

enum lac_status lac_store_open(const struct lac_store_options *options,
                               struct lac_store **ret_store, struct lac_error *reterr)
{
    assert(options != NULL && ret_store != NULL);
    struct lac_store *store = calloc(1, sizeof(*store));
    enum lac_status status = lac_sql_init(reterr);

    if (store == NULL || pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    store->catalog_lock = -1;
    if (status == LAC_OK &&
        strlen(options->data_dir) + sizeof("/standby") > sizeof(store->data_dir)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "the data folder's path is too long");
    }
    if (status == LAC_OK) {
        (void)snprintf(store->data_dir, sizeof(store->data_dir), "%s", options->data_dir);
        status = make_layout(store, reterr);
    }
    if (status == LAC_OK) {
        store->is_live = options->is_live;
        store->names = options->names;
        store->notice = options->notice;
        store->notice_context = options->notice_context;
        store->changed = options->changed;
        store->changed_context = options->changed_context;
        store->only_reads = options->only_reads;
        status = open_catalog(store, options, reterr);
    }
    if (status == LAC_OK && options->node != NULL) {
        status = lac_store_clear_standby(store->data_dir, options->only_reads, reterr);
    }
    if (status == LAC_OK && options->only_reads) {
        (void)snprintf(store->data_dir, sizeof(store->data_dir), "%s/standby", options->data_dir);
        status = make_layout(store, reterr);
    }
    if (status == LAC_OK && store->has_shared_catalog && options->node != NULL &&
        !options->only_reads) {
        status = lac_db_hold_elsewhere(store->data_dir, options->overtaken,
                                       options->overtaken_context, &store->hold, reterr);
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
    if (status == LAC_OK) {
        status = start_crew(store, options->helpers);
    }
    if (status == LAC_OK) {
        status = lac_remote_open(store, options, reterr);
    }
    if (status == LAC_OK && store->is_arriving) {
        status = lac_store_arrive(store, reterr);
    }
    if (status == LAC_OK && options->sweep) {
        status = lac_store_sweep(store, reterr);
    }
    if (status == LAC_OK && !options->only_reads) {
        lac_store_keep_reserve(store);
    }
    if (status != LAC_OK) {
        lac_store_close(store);
        return status;
    }
    *ret_store = store;
    return LAC_OK;
}

void lac_store_sweep_if_due(struct lac_store *store)
{
    const struct lac_store_options options = {.data_dir = store->data_dir,
                                              .sweep = true,
                                              .is_live = true,
                                              .notice = store->notice,
                                              .notice_context = store->notice_context,
                                              .changed = store->changed,
                                              .changed_context = store->changed_context};
    struct lac_store *sweeper = NULL;
    struct lac_error error = {0};
    const int64_t now_ms = lac_now_unix_ms();
    bool due;

    (void)pthread_mutex_lock(&store->lock);
    due = store->sweep_is_due && has_room(store) &&
          (now_ms < store->swept_ms || now_ms - store->swept_ms >= SWEEP_AGAIN_MS);
    if (due) { /* one thread is enough */
        store->sweep_is_due = false;
        store->swept_ms = now_ms;
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (!due) {
        return;
    }
    if (lac_store_open(&options, &sweeper, &error) == LAC_OK && sweeper != NULL) {
        due = sweeper->sweep_is_due;
        lac_store_close(sweeper);
    }
    (void)pthread_mutex_lock(&store->lock);
    store->sweep_is_due = store->sweep_is_due || due;
    (void)pthread_mutex_unlock(&store->lock);
}

void lac_store_close(struct lac_store *store)
{
    if (store == NULL) {
        return;
    }
    lac_store_watch_stop(store);
    for (uint32_t i = 0; i < store->file_count; i++) {
        lac_trace_file_close(store->files[i]);
    }
    free((void *)store->files);
    lac_remote_close(store);
    lac_db_close(store->catalog);
    lac_hold_stop(store->hold);
    if (store->catalog_lock >= 0) {
        (void)close(store->catalog_lock);
    }
    lac_crew_destroy(store->crew);
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
    assert(id != NULL);
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

bool lac_store_id_of(const char *name, const char *ending, char *ret_id)
{
    if (strlen(name) != LAC_ID_LENGTH + strlen(ending) ||
        strcmp(name + LAC_ID_LENGTH, ending) != 0) {
        return false;
    }
    memcpy(ret_id, name, LAC_ID_LENGTH);
    ret_id[LAC_ID_LENGTH] = '\0';
    return lac_store_id_is_valid(ret_id);
}

enum lac_status lac_store_list_traces(struct lac_store *store, const struct lac_trace_query *query,
                                      struct lac_trace_list *ret_list, struct lac_error *reterr)
{
    assert(store != NULL && ret_list != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_list(store->catalog, query, ret_list, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_read_labels(store->catalog, ret_list->rows, ret_list->count, reterr);
        if (status != LAC_OK) {
            lac_trace_list_done(ret_list);
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_get_trace(struct lac_store *store, const char *id,
                                    struct lac_trace_row *ret_row, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_row != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_get(store->catalog, id, true, ret_row, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_read_labels(store->catalog, ret_row, 1, reterr);
        if (status != LAC_OK) {
            lac_trace_row_done(ret_row);
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_change_one(struct lac_store *store, const char *what, const char *sql,
                                     const char *const *texts, unsigned text_count,
                                     const char *not_found, struct lac_error *reterr)
{
    int changes = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, false, what, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change_alone(store->catalog, true, sql, texts, text_count, &changes,
                                          reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_OK && changes == 0
               ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "%s", not_found)
               : status;
}

enum lac_status lac_store_set_labels(struct lac_store *store, const char *id,
                                     const struct lac_trace_labels *labels,
                                     struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && labels != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_put_labels(store->catalog, id, labels, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_count_states(struct lac_store *store, uint64_t counts[4],
                                       struct lac_error *reterr)
{
    assert(store != NULL && counts != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    memset(counts, 0, 4 * sizeof(*counts));
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog, "SELECT state, count(*) FROM traces GROUP BY state",
                            &get, reterr);
    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            int64_t state = lac_db_i64(get, 0);

            if (state >= 0 && state < 4) {
                counts[state] = (uint64_t)lac_db_i64(get, 1);
            }
        }
    }
    lac_db_finalize(get);
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

    (void)snprintf(at_ms, sizeof(at_ms), "%lld", (long long)lac_now_unix_ms());
    (void)snprintf(cut[0], sizeof(cut[0]), "%s", actor);
    (void)snprintf(cut[1], sizeof(cut[1]), "%s", action);
    (void)snprintf(cut[2], sizeof(cut[2]), "%s", object);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_change_alone(store->catalog, false,
                                      "INSERT INTO audit(at_ms, actor, action, object) "
                                      "VALUES(CAST(?1 AS INTEGER), ?2, ?3, ?4)",
                                      texts, 4, NULL, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

uint64_t lac_store_cache_used_bytes(struct lac_store *store)
{
    return lac_cache_used_bytes(store->cache) + lac_cache_used_bytes(store->model_cache);
}
