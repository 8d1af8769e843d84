#include "collector/gather/spool_folder.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Numbers of file systems on a network (linux/magic.h and the file systems' own sources). */
static const struct {
    long magic;
    const char *obstacle;
} network[] = {
    {0x6969, "NFS: shared mappings are slow and unsafe there"},
    {0x0bd00bd0, "Lustre: a network file system"},
    {0x47504653, "GPFS: a network file system"},
    {(long)0xff534d42, "CIFS: a network file system"},
    {(long)0xfe534d42, "SMB: a network file system"},
    {0x00c36400, "Ceph: a network file system"},
    {0x19830326, "BeeGFS: a network file system"},
    {0x5346414f, "AFS: a network file system"},
    {0x6a656a62, "a shared folder of a virtual machine"},
    {0x01021997, "9p: a network file system"},
};

enum { FREE_BYTES_MIN = 16 << 20 };

const char *lac_spool_folder_obstacle(const char *path)
{
    struct statfs system;
    struct statvfs space;

    if (statfs(path, &system) != 0 || statvfs(path, &space) != 0) {
        return "it does not exist";
    }
    for (size_t i = 0; i < LAC_COUNT_OF(network); i++) {
        if ((uint32_t)system.f_type == (uint32_t)network[i].magic) {
            return network[i].obstacle;
        }
    }
    if (access(path, W_OK | X_OK) != 0) {
        return "it cannot be written";
    }
    if ((uint64_t)space.f_bavail * space.f_frsize < FREE_BYTES_MIN) {
        return "less than 16 MB are free";
    }
    if (space.f_files > 0 && space.f_favail < 64) {
        return "no inodes are left";
    }
    return NULL;
}

const char *lac_spool_folder_place(unsigned index)
{
    static const char *const variables[LAC_SPOOL_FOLDER_PLACES] = {
        "LACUNA_SPOOL_DIR", "SLURM_TMPDIR", "JOBSCRATCH", "TMPDIR", NULL};
    const char *const place = index < LAC_SPOOL_FOLDER_PLACES && variables[index] != NULL
                                  ? getenv(variables[index])
                                  : "/tmp";

    return place != NULL && place[0] == '/' ? place : NULL;
}

static bool make_in(const char *base, char *out, size_t capacity)
{
    return snprintf(out, capacity, "%s/lacuna-%u-XXXXXX", base, (unsigned)getuid()) <
               (int)capacity &&
           mkdtemp(out) != NULL;
}

bool lac_spool_folder_make(char *out, size_t capacity, char *reason, size_t reason_capacity)
{
    assert(out != NULL && reason != NULL);
    assert(capacity > 0 && reason_capacity > 0);
    size_t used = 0;

    reason[0] = '\0';
    for (unsigned i = 0; i < LAC_SPOOL_FOLDER_PLACES; i++) {
        const char *const base = lac_spool_folder_place(i);
        const char *obstacle;
        int length;

        if (base == NULL) {
            continue;
        }
        obstacle = strncmp(base, "/dev/shm", 8) == 0 ? "the loader's workers need its space"
                                                     : lac_spool_folder_obstacle(base);
        if (obstacle == NULL && make_in(base, out, capacity)) {
            return true;
        }
        length = snprintf(reason + used, reason_capacity - used, "%s%s: %s", used > 0 ? "; " : "",
                          base, obstacle != NULL ? obstacle : "no folder can be created there");
        used += length > 0 && (size_t)length < reason_capacity - used ? (size_t)length : 0;
    }
    return false;
}

/* A spool that still holds something, or whose owner does not let us look. */
static bool holds_a_recording(int folder, const char *name)
{
    struct lac_spool_header header;
    bool holds = true;
    int fd;

    if (!lac_spool_is_name(name)) {
        return false;
    }
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        holds = lac_file_read_at(fd, &header, sizeof(header), 0) &&
                lac_spool_header_check(&header) && header.segment_count > 0;
        (void)close(fd);
    }
    return holds;
}

void lac_spool_folder_drop(const char *path)
{
    assert(path != NULL);
    DIR *const folder = opendir(path);
    const int fd = folder != NULL ? dirfd(folder) : -1;

    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (fd >= 0 && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    (void)closedir(folder);
    (void)rmdir(path);
}

unsigned lac_spool_folder_remove(const char *path)
{
    assert(path != NULL);
    DIR *const folder = opendir(path);
    unsigned kept = 0;

    if (folder == NULL) {
        return 0;
    }
    const int fd = dirfd(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (fd >= 0 && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            if (holds_a_recording(fd, entry->d_name)) {
                kept++;
            } else {
                (void)unlinkat(fd, entry->d_name, 0);
            }
        }
    }
    (void)closedir(folder);
    if (kept == 0) {
        (void)rmdir(path);
    } else {
        (void)fprintf(stderr,
                      "lacuna: %u spools were not moved into the recording and stay in %s: lacuna "
                      "gather %s -o OUT\n",
                      kept, path, path);
    }
    return kept;
}
