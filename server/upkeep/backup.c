#include "server/upkeep/backup.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "server/store/catalog.h"
#include "server/store/database/copy.h"
#include "server/store/database/database.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096 + 512,
    BLOCK_BYTES = 1 << 20,
    FOLDERS_OPEN_MAX = 8,
    DEPTH_MAX = 3,
    DEPTH_ABOVE_MAX = 64
};

struct backup {
    struct lac_store *store;
    char moment[PATH_BYTES]; /**< DIR/backup */
    char part[PATH_BYTES];   /**< TO.part */
    struct lac_backup_counts counts;
    uint8_t *block;
    struct lac_error *reterr;
};

static enum lac_status fail(struct lac_error *reterr, const char *what, const char *path)
{
    const int error = errno;
    const bool is_full = error == ENOSPC || error == EDQUOT;

    (void)lac_fail(reterr, is_full ? LAC_ERR_NO_SPACE : LAC_ERR_IO, 0, "cannot %s %.300s: %s", what,
                   path, strerror(error));
    if (reterr != NULL) {
        reterr->sys_errno = error;
    }
    return is_full ? LAC_ERR_NO_SPACE : LAC_ERR_IO;
}

/** Both are short enough: the data folder and TO are, and so are names of ours. @param out
 *  PATH_BYTES */
static void path_in(char *out, const char *folder, const char *name)
{
    (void)snprintf(out, PATH_BYTES, "%.4200s/%.380s", folder, name);
}

/* -- trees ------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/** Nothing where there is nothing; links are removed, not followed. */
static enum lac_status remove_tree(const char *path, struct lac_error *reterr)
{
    struct stat info;

    if (lstat(path, &info) != 0 && errno == ENOENT) {
        return LAC_OK;
    }
    return nftw(path, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS) == 0
               ? LAC_OK
               : fail(reterr, "remove", path);
}

static enum lac_status make_folder(const char *path, struct lac_error *reterr)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? LAC_OK : fail(reterr, "make", path);
}

static enum lac_status sync_folder(const char *path, struct lac_error *reterr)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum lac_status status = LAC_OK;

    if (fd < 0 || fsync(fd) != 0) {
        status = fail(reterr, "sync", path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

/** Bytes of one file; sync_all() puts them on disk. @param ret_fd NULL: `from` is closed again */
static enum lac_status copy_file(struct backup *backup, const char *from, const char *to,
                                 int *ret_fd)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    enum lac_status status = LAC_OK;
    int64_t got = 1;

    if (in < 0 || out < 0) {
        status = in < 0 ? fail(backup->reterr, "read", from) : fail(backup->reterr, "write", to);
    }
    while (status == LAC_OK && got > 0) {
        got = lac_read_full(in, backup->block, BLOCK_BYTES);
        if (got < 0) {
            status = fail(backup->reterr, "read", from);
        } else if (!lac_write_full(out, backup->block, (size_t)got)) {
            status = fail(backup->reterr, "write", to);
        }
    }
    if (out >= 0) {
        (void)close(out);
    }
    if (ret_fd != NULL) {
        *ret_fd = in;
    } else if (in >= 0) {
        (void)close(in);
    }
    return status;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum lac_status copy_entry(struct backup *backup, const char *from, const char *to,
                                  unsigned depth);

/** What is in a folder, and the folder itself. */
static enum lac_status copy_folder(struct backup *backup, const char *from, const char *to,
                                   unsigned depth)
{
    enum lac_status status = make_folder(to, backup->reterr);
    DIR *const folder = status == LAC_OK ? opendir(from) : NULL;
    const struct dirent *entry;

    if (status == LAC_OK && folder == NULL) {
        status = fail(backup->reterr, "read", from);
    }
    while (folder != NULL && status == LAC_OK && (entry = readdir(folder)) != NULL) {
        char inner_from[PATH_BYTES];
        char inner_to[PATH_BYTES];

        if (is_dots(entry->d_name)) {
            continue;
        }
        path_in(inner_from, from, entry->d_name);
        path_in(inner_to, to, entry->d_name);
        status = copy_entry(backup, inner_from, inner_to, depth);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return status;
}

static enum lac_status copy_entry(struct backup *backup, const char *from, const char *to,
                                  unsigned depth)
{
    struct stat info;
    enum lac_status status;

    if (lstat(from, &info) != 0) {
        return fail(backup->reterr, "read", from);
    }
    if (S_ISDIR(info.st_mode) && depth > 0) {
        return copy_folder(backup, from, to, depth - 1);
    }
    if (!S_ISREG(info.st_mode)) {
        return LAC_OK; /* nothing of ours */
    }
    status = copy_file(backup, from, to, NULL);
    backup->counts.files += status == LAC_OK;
    backup->counts.bytes += status == LAC_OK ? (uint64_t)info.st_size : 0;
    return status;
}

/* -- the moment -------------------------------------------------------------------------------- */

/** Link DIR/folder/name into DIR/backup/folder/. What has vanished is not there. */
static enum lac_status link_one(struct backup *backup, const char *folder, const char *name)
{
    char inner[PATH_BYTES];
    char from[PATH_BYTES];
    char to[PATH_BYTES];

    path_in(inner, folder, name);
    path_in(from, lac_store_data_dir(backup->store), inner);
    path_in(to, backup->moment, inner);
    return link(from, to) == 0 || errno == ENOENT || errno == EEXIST
               ? LAC_OK
               : fail(backup->reterr, "link", from);
}

static bool ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name);

    return length >= strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0;
}

/** Call for each name in DIR/folder; nothing where there is no such folder. */
static enum lac_status each_name(struct backup *backup, const char *folder, const char *ending,
                                 enum lac_status (*visit)(struct backup *backup, const char *folder,
                                                          const char *name))
{
    char path[PATH_BYTES];
    enum lac_status status = LAC_OK;
    const struct dirent *entry;
    DIR *names;

    path_in(path, backup->moment, folder);
    status = make_folder(path, backup->reterr);
    path_in(path, lac_store_data_dir(backup->store), folder);
    names = status == LAC_OK ? opendir(path) : NULL;
    while (names != NULL && status == LAC_OK && (entry = readdir(names)) != NULL) {
        if (!is_dots(entry->d_name) && ends_in(entry->d_name, ending)) {
            status = visit(backup, folder, entry->d_name);
        }
    }
    if (names != NULL) {
        (void)closedir(names);
    }
    return status;
}

/** Of an upload or import under way: what an import begins with, not what it has made so far. */
static enum lac_status link_staged(struct backup *backup, const char *folder, const char *name)
{
    static const char *const files[] = {"facts", "upload", "attempts", "retried"};
    char inner[PATH_BYTES];
    char path[PATH_BYTES];
    enum lac_status status;

    path_in(inner, folder, name);
    path_in(path, backup->moment, inner);
    status = make_folder(path, backup->reterr);
    for (size_t i = 0; i < LAC_COUNT_OF(files) && status == LAC_OK; i++) {
        status = link_one(backup, inner, files[i]);
    }
    (void)rmdir(path); /* one without any of them */
    return status;
}

/** The catalog's bytes while nobody changes it. */
static enum lac_status copy_catalog_file(struct backup *backup, const char *to)
{
    struct lac_db *const db = backup->store->catalog;
    char from[PATH_BYTES];
    enum lac_status status;
    int fd = -1;

    path_in(from, lac_store_data_dir(backup->store), "catalog.db");
    status = lac_db_begin(db, false, backup->reterr);
    if (status == LAC_OK) {
        status = lac_db_end(db, copy_file(backup, from, to, &fd), backup->reterr);
    }
    if (fd >= 0) { /* only now: closing a file ends all locks that this process has on it */
        (void)close(fd);
    }
    return status;
}

/** One that is in PostgreSQL, as a file. */
static enum lac_status copy_catalog_rows(struct backup *backup, const char *to)
{
    struct lac_db *file = NULL;
    struct lac_db_copied copied;
    char journal[PATH_BYTES + 16];
    enum lac_status status = lac_catalog_open(to, &file, backup->reterr);

    if (status == LAC_OK) {
        status = lac_db_copy(backup->store->catalog, file, &copied, backup->reterr);
    }
    lac_db_close(file);
    (void)snprintf(journal, sizeof(journal), "%s-journal", to);
    (void)unlink(journal); /* an empty one, which stays beside an open catalog */
    return status;
}

static enum lac_status copy_catalog(struct backup *backup)
{
    char to[PATH_BYTES];
    enum lac_status status;

    path_in(to, backup->moment, "catalog.db");
    (void)pthread_mutex_lock(&backup->store->lock);
    status = lac_db_sqlite(backup->store->catalog) != NULL ? copy_catalog_file(backup, to)
                                                           : copy_catalog_rows(backup, to);
    (void)pthread_mutex_unlock(&backup->store->lock);
    return status;
}

/** README.md says why in this order. */
static enum lac_status take_moment(struct backup *backup)
{
    struct lac_store_objects objects = {0};
    int folder;
    enum lac_status status = make_folder(backup->moment, backup->reterr);

    if (status != LAC_OK) {
        return status;
    }
    folder = lac_folder_lock(backup->store, true);
    if (folder < 0) {
        return fail(backup->reterr, "lock", lac_store_data_dir(backup->store));
    }
    status = each_name(backup, "uploads", ".part", link_one);
    if (status == LAC_OK) {
        status = copy_catalog(backup);
    }
    if (status == LAC_OK) {
        status = each_name(backup, "uploads", ".info", link_one);
    }
    if (status == LAC_OK) {
        status = each_name(backup, "staging", "", link_staged);
    }
    if (status == LAC_OK) {
        status = each_name(backup, "traces", ".db", link_one);
    }
    if (status == LAC_OK) {
        status = each_name(backup, "originals", "", link_one);
    }
    if (status == LAC_OK) {
        status = lac_store_count_objects(backup->store, &objects, backup->reterr);
        backup->counts.objects = objects.is_on ? objects.object_count : 0;
    }
    lac_folder_unlock(folder);
    return status;
}

/* -- all of it --------------------------------------------------------------------------------- */

/** The key that scripts have is of the service, too. */
static enum lac_status copy_key(struct backup *backup)
{
    char from[PATH_BYTES];
    char to[PATH_BYTES];

    path_in(from, lac_store_data_dir(backup->store), "local.token");
    path_in(to, backup->part, "local.token");
    return access(from, F_OK) == 0 ? copy_file(backup, from, to, NULL) : LAC_OK;
}

static void count_traces(struct backup *backup)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *names;

    path_in(path, backup->moment, "traces");
    names = opendir(path);
    while (names != NULL && (entry = readdir(names)) != NULL) {
        backup->counts.traces += !is_dots(entry->d_name);
    }
    if (names != NULL) {
        (void)closedir(names);
    }
}

/** The folder that a path is in. @param out PATH_BYTES */
static void parent_of(const char *path, char *out)
{
    char *slash;

    (void)snprintf(out, PATH_BYTES, "%.4200s", path);
    slash = strrchr(out, '/');
    if (slash == NULL) {
        (void)snprintf(out, PATH_BYTES, ".");
    } else {
        slash[slash == out ? 1 : 0] = '\0';
    }
}

/** All of the copy at once: a sync for each of 10,000 files takes most of a backup's time. */
static enum lac_status sync_all(struct backup *backup)
{
    const int fd = open(backup->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum lac_status status = LAC_OK;

    if (fd < 0 || syncfs(fd) != 0) {
        status = fail(backup->reterr, "sync", backup->part);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

/** TO takes its name once it is whole. */
static enum lac_status give_name(struct backup *backup, const char *to)
{
    char parent[PATH_BYTES];

    if (rename(backup->part, to) != 0) { /* over an empty folder, too */
        return fail(backup->reterr, "rename to", to);
    }
    parent_of(to, parent);
    return sync_folder(parent, backup->reterr);
}

/** Whether `to` lies in the folder that it is to be a copy of. */
static enum lac_status check_outside(const struct backup *backup, const char *to)
{
    char above[PATH_BYTES];
    struct stat inner = {0};
    struct stat outer = {0};

    if (stat(lac_store_data_dir(backup->store), &outer) != 0) {
        return fail(backup->reterr, "read", lac_store_data_dir(backup->store));
    }
    parent_of(to, above);
    if (stat(above, &inner) != 0) {
        return fail(backup->reterr, "make", to);
    }
    for (unsigned depth = 0; depth < DEPTH_ABOVE_MAX && stat(above, &inner) == 0; depth++) {
        const size_t length = strlen(above);

        if (inner.st_ino == outer.st_ino && inner.st_dev == outer.st_dev) {
            return lac_fail(backup->reterr, LAC_ERR_MISUSE, 0,
                            "%.300s is inside of the data folder", to);
        }
        if (length + sizeof("/..") > sizeof(above)) {
            break;
        }
        memcpy(above + length, "/..", sizeof("/.."));
    }
    return LAC_OK;
}

/** Whether `to` may be made: not there or empty, and elsewhere. */
static enum lac_status check_target(const struct backup *backup, const char *to)
{
    const struct dirent *entry;
    DIR *folder = opendir(to);
    bool is_empty = true;

    if (folder == NULL && errno != ENOENT) {
        return fail(backup->reterr, "make", to);
    }
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        is_empty = is_empty && is_dots(entry->d_name);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return is_empty ? check_outside(backup, to)
                    : lac_fail(backup->reterr, LAC_ERR_MISUSE, 0,
                               "%.300s is not empty: give a folder that is not there yet", to);
}

static enum lac_status make(struct backup *backup, const char *to)
{
    struct lac_error ignored;
    enum lac_status status = check_target(backup, to);

    if (status == LAC_OK) {
        status = remove_tree(backup->moment, backup->reterr);
    }
    if (status == LAC_OK) {
        status = remove_tree(backup->part, backup->reterr);
    }
    if (status == LAC_OK) {
        status = take_moment(backup);
        count_traces(backup);
        if (status == LAC_OK) {
            status = copy_folder(backup, backup->moment, backup->part, DEPTH_MAX);
        }
        if (status == LAC_OK) {
            status = copy_key(backup);
        }
        if (status == LAC_OK) {
            status = sync_all(backup);
        }
        if (status == LAC_OK) {
            status = give_name(backup, to);
        }
        (void)!remove_tree(backup->moment, &ignored);
        if (status != LAC_OK) {
            (void)!remove_tree(backup->part, &ignored);
        }
    }
    return status;
}

enum lac_status lac_backup(struct lac_store *store, const char *to,
                           struct lac_backup_counts *ret_counts, struct lac_error *reterr)
{
    assert(store != NULL && to != NULL && ret_counts != NULL);
    struct backup backup = {.store = store, .reterr = reterr};
    char target[4000];
    char path[PATH_BYTES];
    enum lac_status status;
    int lock;

    if (*to == '\0' || strlen(to) >= sizeof(target)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "give a folder for the copy");
    }
    (void)snprintf(target, sizeof(target), "%s", to);
    for (size_t length = strlen(target); length > 1 && target[length - 1] == '/'; length--) {
        target[length - 1] = '\0';
    }
    path_in(backup.moment, lac_store_data_dir(store), "backup");
    (void)snprintf(backup.part, sizeof(backup.part), "%s.part", target);
    path_in(path, lac_store_data_dir(store), "backup.lock");
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        return fail(reterr, "open", path);
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        (void)close(lock);
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "another backup of this folder is under way");
    }
    backup.block = malloc(BLOCK_BYTES);
    status = backup.block == NULL ? lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for a backup")
                                  : make(&backup, target);
    free(backup.block);
    (void)close(lock);
    *ret_counts = backup.counts;
    return status;
}
