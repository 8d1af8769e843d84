#include "analysis/import/nsys/nsys_vfs.h"

#include "collector/base/io_full.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct plain_file {
    sqlite3_file base; /* first: SQLite hands out pointers to it */
    int fd;
};

static int fd_of(const sqlite3_file *file)
{
    return ((const struct plain_file *)file)->fd;
}

static int plain_close(sqlite3_file *file)
{
    (void)close(fd_of(file));
    return SQLITE_OK;
}

static int plain_read(sqlite3_file *file, void *to, int size, sqlite3_int64 offset)
{
    const size_t want = (size_t)size;
    const int64_t got = lac_read_full_at(fd_of(file), to, want, (uint64_t)offset);

    if (got < 0) {
        return SQLITE_IOERR_READ;
    }
    if ((size_t)got < want) {
        (void)memset((char *)to + got, 0, want - (size_t)got); /* SQLite's contract */
        return SQLITE_IOERR_SHORT_READ;
    }
    return SQLITE_OK;
}

static int plain_size(sqlite3_file *file, sqlite3_int64 *out)
{
    struct stat st;

    if (fstat(fd_of(file), &st) != 0) {
        return SQLITE_IOERR_FSTAT;
    }
    *out = st.st_size;
    return SQLITE_OK;
}

static int no_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 offset)
{
    (void)file;
    (void)from;
    (void)size;
    (void)offset;
    return SQLITE_READONLY;
}

static int no_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)file;
    (void)size;
    return SQLITE_READONLY;
}

/* Syncing, locking, unlocking: nothing is written and nobody else is there. */
static int nothing_to_do(sqlite3_file *file, int what)
{
    (void)file;
    (void)what;
    return SQLITE_OK;
}

static int no_reserved_lock(sqlite3_file *file, int *out)
{
    (void)file;
    *out = 0;
    return SQLITE_OK;
}

static int no_control(sqlite3_file *file, int what, void *arg)
{
    (void)file;
    (void)what;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int immutable(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods PLAIN_METHODS = {
    .iVersion = 1,
    .xClose = plain_close,
    .xRead = plain_read,
    .xWrite = no_write,
    .xTruncate = no_truncate,
    .xSync = nothing_to_do,
    .xFileSize = plain_size,
    .xLock = nothing_to_do,
    .xUnlock = nothing_to_do,
    .xCheckReservedLock = no_reserved_lock,
    .xFileControl = no_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = immutable,
};

/* Only the main file is opened; whatever else SQLite would like (a journal, a temporary file) it
 * does without. */
static int plain_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags,
                      int *retflags)
{
    struct plain_file *plain = (struct plain_file *)file;

    (void)vfs;
    file->pMethods = NULL;
    if (path == NULL || (flags & SQLITE_OPEN_MAIN_DB) == 0) {
        return SQLITE_CANTOPEN;
    }
    plain->fd =
        strncmp(path, LAC_NSYS_VFS_FD, strlen(LAC_NSYS_VFS_FD)) == 0
            ? fcntl((int)strtol(path + strlen(LAC_NSYS_VFS_FD), NULL, 10), F_DUPFD_CLOEXEC, 0)
            : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (plain->fd < 0) {
        return SQLITE_CANTOPEN;
    }
    file->pMethods = &PLAIN_METHODS;
    if (retflags != NULL) {
        *retflags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
    }
    return SQLITE_OK;
}

static int plain_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    (void)vfs;
    (void)path;
    (void)sync_folder;
    return SQLITE_READONLY;
}

/* There is no journal next to it. */
static int plain_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    (void)vfs;
    (void)path;
    (void)flags;
    *out = 0;
    return SQLITE_OK;
}

static int plain_full_path(sqlite3_vfs *vfs, const char *path, int capacity, char *out)
{
    size_t length = strlen(path);

    (void)vfs;
    if (length >= (size_t)capacity) {
        return SQLITE_CANTOPEN;
    }
    (void)memcpy(out, path, length + 1);
    return SQLITE_OK;
}

static sqlite3_vfs plain_vfs;
static const char *plain_name;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Time, randomness and sleep are the usual file system's. */
static void register_plain(void)
{
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

    if (usual == NULL) {
        return;
    }
    plain_vfs = *usual;
    plain_vfs.pNext = NULL;
    plain_vfs.zName = "lacuna-plain";
    plain_vfs.szOsFile = (int)sizeof(struct plain_file);
    plain_vfs.mxPathname = 4096;
    plain_vfs.xOpen = plain_open;
    plain_vfs.xDelete = plain_delete;
    plain_vfs.xAccess = plain_access;
    plain_vfs.xFullPathname = plain_full_path;
    if (sqlite3_vfs_register(&plain_vfs, 0) == SQLITE_OK) {
        plain_name = plain_vfs.zName;
    }
}

const char *lac_nsys_vfs(void)
{
    (void)pthread_once(&once, register_plain);
    return plain_name;
}

int lac_nsys_vfs_fd_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) ==
                       SQLITE_OK &&
                   file != NULL && file->pMethods == &PLAIN_METHODS
               ? fd_of(file)
               : -1;
}
