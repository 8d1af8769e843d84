/* Files that are written to be sent. Each is locked by who writes it: one that nobody holds was left by
 * a program that was killed. */

#include "analysis/model/status.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_name[] = "scratch";

_Static_assert((int)LAC_SCRATCH_PATH_BYTES >= (int)LAC_STORE_PATH_SIZE,
               "every path of the folder fits");

static void sweep(int folder)
{
    const int listed = dup(folder);
    DIR *const entries = listed >= 0 ? fdopendir(listed) : NULL;
    const struct dirent *entry;

    if (entries == NULL && listed >= 0) {
        (void)close(listed);
    }
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const int fd = entry->d_name[0] != '.'
                           ? openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                           : -1;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            (void)unlinkat(folder, entry->d_name, 0);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
}

int lac_store_scratch(struct lac_store *store, char *ret_path, struct lac_error *reterr)
{
    assert(store != NULL && ret_path != NULL);
    char path[LAC_STORE_PATH_SIZE];
    int folder;
    int fd = -1;

    (void)lac_store_path(store, path, folder_name, NULL, NULL);
    (void)mkdir(path, 0700);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* between a file's making and its lock no other may sweep */
    if (folder >= 0 && flock(folder, LOCK_EX) == 0) {
        sweep(folder);
        if (lac_store_path(store, path, folder_name, "XXXXXX", NULL)) {
            fd = mkostemp(path, O_CLOEXEC);
        }
    }
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
        memcpy(ret_path, path, sizeof(path));
    } else {
        (void)lac_fail(reterr, LAC_ERR_IO, 0, "cannot make a file in %s/: %s", folder_name,
                       strerror(errno));
        reterr->sys_errno = errno;
    }
    if (folder >= 0) {
        (void)close(folder);
    }
    return fd;
}
