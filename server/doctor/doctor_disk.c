#include "collector/base/count_of.h"
#include "server/doctor/doctor.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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
}
