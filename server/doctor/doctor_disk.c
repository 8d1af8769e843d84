#include "collector/base/count_of.h"
#include "lacuna/spool.h"
#include "server/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum file_system_kind { LOCAL, NETWORK, MEMORY };

static const struct {
    unsigned long magic;
    const char *name;
    enum file_system_kind kind;
} file_systems[] = {
    {0xef53, "ext4", LOCAL},         {0x58465342, "xfs", LOCAL},
    {0x9123683e, "btrfs", LOCAL},    {0x2fc12fc1, "zfs", LOCAL},
    {0x794c7630, "overlay", LOCAL},  {0xf2f52010, "f2fs", LOCAL},
    {0x01021994, "tmpfs", MEMORY},   {0x858458f6, "ramfs", MEMORY},
    {0x6969, "NFS", NETWORK},        {0xff534d42, "CIFS", NETWORK},
    {0xfe534d42, "SMB2", NETWORK},   {0x0bd00bd0, "Lustre", NETWORK},
    {0x47504653, "GPFS", NETWORK},   {0x19830326, "BeeGFS", NETWORK},
    {0x00c36400, "CephFS", NETWORK}, {0x65735546, "FUSE", NETWORK},
    {0x01021997, "9p", NETWORK},     {0x6a656a63, "virtiofs", NETWORK},
};

static void describe(unsigned long magic, const char **ret_name, enum file_system_kind *ret_kind)
{
    *ret_name = "a file system that we do not know";
    *ret_kind = LOCAL;
    for (size_t i = 0; i < LAC_COUNT_OF(file_systems); i++) {
        if (file_systems[i].magic == magic) {
            *ret_name = file_systems[i].name;
            *ret_kind = file_systems[i].kind;
        }
    }
}

/* The folder itself or the nearest one above it that exists. */
static bool existing_parent(const char *path, char *out, size_t capacity)
{
    if ((size_t)snprintf(out, capacity, "%s", path) >= capacity || out[0] == '\0') {
        return false;
    }
    while (access(out, F_OK) != 0) {
        char *slash = strrchr(out, '/');

        if (slash == NULL) {
            (void)snprintf(out, capacity, ".");
            return true;
        }
        slash[slash == out ? 1 : 0] = '\0';
    }
    return true;
}

static void check_space(struct lac_doctor *doctor, const char *folder)
{
    struct statvfs info;

    if (statvfs(folder, &info) != 0) {
        return;
    }
    const uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    const bool no_inodes = info.f_files > 0 && info.f_favail < 1000;

    if (free_bytes < (UINT64_C(5) << 30)) {
        lac_doctor_add(doctor, "space", LAC_DOCTOR_AMBER,
                       "delete traces, or choose another folder with --data",
                       "%s free for the data folder", lac_doctor_bytes(free_bytes));
    } else if (no_inodes) {
        lac_doctor_add(doctor, "space", LAC_DOCTOR_AMBER, "delete files on that file system",
                       "%s free, but no inodes are left", lac_doctor_bytes(free_bytes));
    } else {
        lac_doctor_add(doctor, "space", LAC_DOCTOR_OK, NULL, "%s free for the data folder",
                       lac_doctor_bytes(free_bytes));
    }
}

/* Whether it holds spools and no launcher any more. */
static bool is_left_over(const char *path)
{
    DIR *const folder = opendir(path);
    const int fd = folder != NULL ? dirfd(folder) : -1;
    bool holds = false;

    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder);       /* NOLINT(concurrency-mt-unsafe) */
         entry != NULL && !holds; entry = readdir(folder)) { /* NOLINT(concurrency-mt-unsafe) */
        holds = lac_spool_is_name(entry->d_name);
    }
    const int lock =
        fd >= 0 ? openat(fd, "launcher", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;

    if (lock >= 0) {
        holds = holds && flock(lock, LOCK_SH | LOCK_NB) == 0;
        (void)close(lock);
    } else {
        holds = false; /* of `lacuna env`: its job may go on */
    }
    (void)closedir(folder);
    return holds;
}

/* What launchers that were killed left among temporary files. */
static void check_left_over(struct lac_doctor *doctor)
{
    static const char *const variables[] = {"LACUNA_SPOOL_DIR", "SLURM_TMPDIR", "JOBSCRATCH",
                                            "TMPDIR"};
    const char *base = "/tmp";
    char prefix[32];
    unsigned count = 0;

    for (size_t i = LAC_COUNT_OF(variables); i > 0; i--) {
        const char *const value = getenv(variables[i - 1]);

        base = value != NULL && value[0] == '/' ? value : base;
    }
    (void)snprintf(prefix, sizeof(prefix), "lacuna-%u-", (unsigned)getuid());
    DIR *const folder = opendir(base);

    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder);
         entry != NULL;             /* NOLINT(concurrency-mt-unsafe) */
         entry = readdir(folder)) { /* NOLINT(concurrency-mt-unsafe) */
        char path[4096];

        count +=
            strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) < sizeof(path) &&
            is_left_over(path);
    }
    (void)closedir(folder);
    if (count > 0) {
        lac_doctor_add(doctor, "left-over", LAC_DOCTOR_AMBER,
                       "lacuna gather lists them and says how to keep each",
                       "%u recording%s in %.120s whose launcher was killed", count,
                       count == 1 ? "" : "s", base);
    }
}

void lac_doctor_disk(struct lac_doctor *doctor)
{
    char folder[4096];
    struct statfs info;
    const char *name;
    enum file_system_kind kind;

    if (doctor->data_dir == NULL || !existing_parent(doctor->data_dir, folder, sizeof(folder)) ||
        statfs(folder, &info) != 0) {
        lac_doctor_add(doctor, "data", LAC_DOCTOR_UNSEEN, NULL, "no data folder: give --data DIR");
        return;
    }
    describe((unsigned long)info.f_type & 0xffffffffUL, &name, &kind);
    if (access(folder, W_OK | X_OK) != 0) {
        lac_doctor_add(doctor, "data", LAC_DOCTOR_AMBER, "choose another folder with --data",
                       "%.150s cannot be written: %s", folder, strerror(errno));
    } else if (kind == NETWORK) {
        lac_doctor_add(doctor, "data", LAC_DOCTOR_AMBER,
                       "put the data folder on a local disk with --data: locks and fsync are slow "
                       "or unsafe over a network",
                       "the data folder %.120s is on %s", doctor->data_dir, name);
    } else if (kind == MEMORY) {
        lac_doctor_add(doctor, "data", LAC_DOCTOR_AMBER,
                       "choose a folder on a disk with --data: this one is gone after a restart",
                       "the data folder %.120s is on %s", doctor->data_dir, name);
    } else {
        lac_doctor_add(doctor, "data", LAC_DOCTOR_OK, NULL, "the data folder %.120s is on %s",
                       doctor->data_dir, name);
    }
    check_space(doctor, folder);
    check_left_over(doctor);
}
