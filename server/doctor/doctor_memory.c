#include "collector/base/cgroup.h"
#include "collector/base/io_full.h"
#include "server/doctor/doctor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

static void check_shm(struct lac_doctor *doctor)
{
    const uint64_t least = UINT64_C(1) << 30;
    struct statvfs info;
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/dev/shm", doctor->root);
    if (statvfs(path, &info) != 0) {
        lac_doctor_add(doctor, "shm", LAC_DOCTOR_UNSEEN, NULL, "no /dev/shm");
        return;
    }
    const uint64_t size = (uint64_t)info.f_blocks * info.f_frsize;
    const uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (size < least) {
        lac_doctor_add(doctor, "shm", LAC_DOCTOR_AMBER,
                       "loader workers pass batches through it: docker --shm-size=16g or "
                       "--ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm",
                       "/dev/shm has only %s (%s free)", lac_doctor_bytes(size),
                       lac_doctor_bytes(free_bytes));
    } else if (free_bytes < size / 10) {
        lac_doctor_add(doctor, "shm", LAC_DOCTOR_AMBER,
                       "remove what dead jobs left there (ls -l /dev/shm)",
                       "/dev/shm has %s, but only %s free", lac_doctor_bytes(size),
                       lac_doctor_bytes(free_bytes));
    } else {
        lac_doctor_add(doctor, "shm", LAC_DOCTOR_OK, NULL, "/dev/shm has %s, %s free",
                       lac_doctor_bytes(size), lac_doctor_bytes(free_bytes));
    }
}

static void check_limit(struct lac_doctor *doctor)
{
    char text[4096];
    uint64_t total_kib;
    uint64_t available_kib;
    uint64_t limit;

    text[0] = '\0';
    (void)lac_doctor_read_all(doctor, "/proc/meminfo", text, sizeof(text));
    total_kib = lac_text_number(text, "MemTotal", 0);
    available_kib = lac_text_number(text, "MemAvailable", UINT64_MAX);
    if (total_kib == 0 || available_kib == UINT64_MAX) {
        lac_doctor_add(doctor, "memory", LAC_DOCTOR_UNSEEN, NULL, "no /proc/meminfo");
        return;
    }
    limit = lac_cgroup_memory_limit(doctor->root);
    if (limit > 0 && limit < total_kib * 1024) {
        const bool is_small = limit < (UINT64_C(4) << 30);

        lac_doctor_add(doctor, "memory", is_small ? LAC_DOCTOR_AMBER : LAC_DOCTOR_OK,
                       is_small ? "a loader worker takes 0.5 to 2 GiB: ask for more memory" : NULL,
                       "limited to %s of the machine's %s", lac_doctor_bytes(limit),
                       lac_doctor_bytes(total_kib * 1024));
    } else {
        lac_doctor_add(doctor, "memory", LAC_DOCTOR_OK, NULL, "%s, %s available, no limit",
                       lac_doctor_bytes(total_kib * 1024), lac_doctor_bytes(available_kib * 1024));
    }
}

static void check_locked(struct lac_doctor *doctor)
{
    struct rlimit limit;
    char first[8];
    /* only RDMA counts against it; the CUDA driver pins by other means */
    const bool has_rdma =
        lac_doctor_read(doctor, "/sys/class/infiniband_verbs/abi_version", first, sizeof(first));

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        lac_doctor_add(doctor, "locked", LAC_DOCTOR_UNSEEN, NULL, "no limit on locked memory");
    } else if (limit.rlim_cur == RLIM_INFINITY) {
        lac_doctor_add(doctor, "locked", LAC_DOCTOR_OK, NULL, "locked memory is not limited");
    } else if (has_rdma && limit.rlim_cur < (UINT64_C(1) << 30)) {
        lac_doctor_add(doctor, "locked", LAC_DOCTOR_AMBER,
                       "NCCL over InfiniBand needs it: ulimit -l unlimited; docker --ulimit "
                       "memlock=-1",
                       "locked memory is limited to %s", lac_doctor_bytes(limit.rlim_cur));
    } else {
        lac_doctor_add(doctor, "locked", LAC_DOCTOR_OK, NULL, "locked memory is limited to %s%s",
                       lac_doctor_bytes(limit.rlim_cur),
                       has_rdma ? "" : " (no InfiniBand here, so nothing needs more)");
    }
}

void lac_doctor_memory(struct lac_doctor *doctor)
{
    check_shm(doctor);
    check_limit(doctor);
    check_locked(doctor);
}
