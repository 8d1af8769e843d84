#include "server/upkeep/move_catalog.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/copy.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static void path_in(const char *data_dir, const char *name, char *out)
{
    (void)snprintf(out, PATH_BYTES, "%.4000s/%s", data_dir, name);
}

static bool has_file(const char *data_dir)
{
    char path[PATH_BYTES];
    struct stat info;

    path_in(data_dir, "catalog.db", path);
    return stat(path, &info) == 0 && info.st_size > 0;
}

static void remove_in(const char *data_dir, const char *name)
{
    char path[PATH_BYTES];

    path_in(data_dir, name, path);
    (void)unlink(path);
}

/** Both in the folder, which is synced. */
static enum lac_status rename_in(const char *data_dir, const char *from, const char *to,
                                 struct lac_error *reterr)
{
    char path_from[PATH_BYTES];
    char path_to[PATH_BYTES];
    bool done;
    int folder;

    path_in(data_dir, from, path_from);
    path_in(data_dir, to, path_to);
    done = rename(path_from, path_to) == 0;
    folder = done ? open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    done = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0) {
        (void)close(folder);
    }
    return done ? LAC_OK
                : lac_fail(reterr, LAC_ERR_IO, 0, "cannot rename %s in the data folder: %s", from,
                           strerror(errno));
}

/** The catalog is in PostgreSQL: the file and what belongs to it go. */
static enum lac_status leave_file(const char *data_dir, struct lac_error *reterr)
{
    static const char *const rest[] = {"catalog.db-journal", "catalog.db-wal", "catalog.db-shm"};
    const enum lac_status status = rename_in(data_dir, "catalog.db", "catalog.db.moved", reterr);

    for (size_t i = 0; i < LAC_COUNT_OF(rest) && status == LAC_OK; i++) {
        remove_in(data_dir, rest[i]);
    }
    return status;
}

/** The catalog is in the file. What PostgreSQL has stays there, and is this folder's if it comes back:
 * the id by which it is known is kept. */
static enum lac_status leave_postgres(const char *data_dir, struct lac_error *reterr)
{
    return rename_in(data_dir, "catalog.url", "catalog.url.part", reterr);
}

/** The store, which nobody else has open. */
static enum lac_status open_alone(const char *data_dir, struct lac_store **ret_store,
                                  struct lac_error *reterr)
{
    const struct lac_store_options options = {.data_dir = data_dir};
    enum lac_status status = lac_store_open(&options, ret_store, reterr);

    if (status == LAC_OK && (*ret_store)->catalog_lock >= 0 &&
        flock((*ret_store)->catalog_lock, LOCK_EX | LOCK_NB) != 0) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "another process has the data folder open: wait for it, or stop it");
    }
    return status;
}

static enum lac_status move_there(const struct lac_move_catalog *move,
                                  struct lac_db_copied *ret_copied, struct lac_error *reterr)
{
    struct lac_store *store = NULL;
    struct lac_db *to = NULL;
    enum lac_status status = open_alone(move->data_dir, &store, reterr);

    if (status == LAC_OK && !lac_db_is_current(store->catalog)) {
        status = lac_fail(reterr, LAC_ERR_NO_SPACE, 0,
                          "catalog.db has an older form, and there is no room to convert it");
    }
    if (status == LAC_OK) {
        status = lac_catalog_open_elsewhere(
            &(struct lac_postgres_catalog){
                .data_dir = move->data_dir, .address = move->address, .is_arriving = true},
            &to, reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_copy(store->catalog, to, ret_copied, reterr);
    }
    lac_db_close(to);
    if (status == LAC_OK) {
        status = lac_db_settle_elsewhere(move->data_dir, reterr);
    }
    if (status == LAC_OK) {
        status = leave_file(move->data_dir, reterr);
    }
    lac_store_close(store);
    return status;
}

static enum lac_status move_back(const struct lac_move_catalog *move,
                                 struct lac_db_copied *ret_copied, struct lac_error *reterr)
{
    static const char *const fresh[] = {"catalog.db.new", "catalog.db.new-journal"};
    struct lac_store *store = NULL;
    struct lac_db *to = NULL;
    char path[PATH_BYTES];
    enum lac_status status = open_alone(move->data_dir, &store, reterr);

    for (size_t i = 0; i < LAC_COUNT_OF(fresh); i++) {
        remove_in(move->data_dir, fresh[i]);
    }
    if (status == LAC_OK) {
        path_in(move->data_dir, fresh[0], path);
        status = lac_catalog_open(path, &to, reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_copy(store->catalog, to, ret_copied, reterr);
    }
    lac_db_close(to);
    if (status == LAC_OK) {
        remove_in(move->data_dir, fresh[1]);
        remove_in(move->data_dir, "catalog.db-journal"); /* of a file that is no more */
        status = rename_in(move->data_dir, fresh[0], "catalog.db", reterr);
    }
    if (status == LAC_OK) {
        status = leave_postgres(move->data_dir, reterr);
    } else {
        remove_in(move->data_dir, fresh[0]);
        remove_in(move->data_dir, fresh[1]);
    }
    lac_store_close(store);
    return status;
}

enum lac_status lac_move_catalog(const struct lac_move_catalog *move,
                                 struct lac_db_copied *ret_copied, struct lac_error *reterr)
{
    assert(move != NULL && move->data_dir != NULL && ret_copied != NULL);
    const bool is_back = move->address == NULL;
    const bool is_elsewhere = lac_db_is_elsewhere(move->data_dir, NULL);
    const bool is_here = has_file(move->data_dir);

    *ret_copied = (struct lac_db_copied){0};
    if (is_elsewhere && is_here) { /* equal: the rest of a move */
        return is_back ? leave_postgres(move->data_dir, reterr)
                       : leave_file(move->data_dir, reterr);
    }
    if (is_back ? !is_elsewhere : is_elsewhere) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the catalog is %s already",
                        is_back ? "in the data folder" : "in PostgreSQL");
    }
    return is_back ? move_back(move, ret_copied, reterr) : move_there(move, ret_copied, reterr);
}
