#include "server/doctor/doctor.h"

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of CPUs that this process may run on; 0 when the system does not say. */
static unsigned count_mask(void)
{
    enum { CPUS_MAX = 16384 };
    const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    unsigned count = 0;

    if (set != NULL && sched_getaffinity(0, size, set) == 0) {
        count = (unsigned)CPU_COUNT_S(size, set);
    }
    CPU_FREE(set);
    return count;
}

static long slurm_number(const char *name)
{
    const char *text = getenv(name);

    return text == NULL ? 0 : strtol(text, NULL, 10);
}

static void check_mask(struct lac_doctor *doctor)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned allowed = count_mask();

    doctor->allowed_cores = allowed;
    if (allowed == 0) {
        lac_doctor_add(doctor, "cores", LAC_DOCTOR_UNSEEN, NULL,
                       "the allowed cores are not visible");
    } else if (doctor->gpu_count > 0 && allowed < 2 * doctor->gpu_count) {
        lac_doctor_add(
            doctor, "cores", LAC_DOCTOR_AMBER,
            "request more cores: loading data and launching kernels each need one per GPU",
            "%u of %ld cores allowed, for %u GPUs", allowed, online, doctor->gpu_count);
    } else if (doctor->gpu_count > 1) {
        lac_doctor_add(doctor, "cores", LAC_DOCTOR_OK, NULL,
                       "%u of %ld cores allowed: %u for each of %u GPUs", allowed, online,
                       allowed / doctor->gpu_count, doctor->gpu_count);
    } else {
        lac_doctor_add(doctor, "cores", LAC_DOCTOR_OK, NULL, "%u of %ld cores allowed", allowed,
                       online);
    }
}

/* -- cgroups ------------------------------------------------------------------------------------*/

/*
 * The folder of this process's cgroup below /sys/fs/cgroup: version 2 when `controller` is NULL,
 * else that controller's version 1 hierarchy.
 */
static bool cgroup_path(const struct lac_doctor *doctor, const char *controller, char *out,
                        size_t capacity)
{
    char text[8192];
    char *rest = text;
    char *line;

    if (!lac_doctor_read_all(doctor, "/proc/self/cgroup", text, sizeof(text))) {
        return false;
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *fields = line;
        const char *number = strsep(&fields, ":");
        char *names = strsep(&fields, ":");

        if (number == NULL || names == NULL || fields == NULL) {
            continue;
        }
        if (controller == NULL && strcmp(number, "0") == 0 && names[0] == '\0') {
            return (size_t)snprintf(out, capacity, "/sys/fs/cgroup%s",
                                    strcmp(fields, "/") == 0 ? "" : fields) < capacity;
        }
        for (char *name = strsep(&names, ","); controller != NULL && name != NULL;
             name = strsep(&names, ",")) {
            if (strcmp(name, controller) == 0) {
                return (size_t)snprintf(out, capacity, "/sys/fs/cgroup/%s%s", controller,
                                        strcmp(fields, "/") == 0 ? "" : fields) < capacity;
            }
        }
    }
    return false;
}

/* Quota in cores of one folder; negative: none. */
static double folder_quota(const struct lac_doctor *doctor, const char *folder, bool is_v2)
{
    char path[4200];
    char text[64];
    int64_t quota = -1;
    int64_t period = 0;

    if (is_v2) {
        (void)snprintf(path, sizeof(path), "%s/cpu.max", folder);
        if (!lac_doctor_read(doctor, path, text, sizeof(text)) || strncmp(text, "max", 3) == 0 ||
            !lac_doctor_number_after(text, "", &quota) ||
            !lac_doctor_number_after(text, " ", &period)) {
            return -1;
        }
    } else {
        (void)snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
        if (!lac_doctor_read_number(doctor, path, &quota)) {
            return -1;
        }
        (void)snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
        if (!lac_doctor_read_number(doctor, path, &period)) {
            return -1;
        }
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : -1;
}

/* The tightest quota from this cgroup up to the root, which is what holds. */
static double tightest_quota(const struct lac_doctor *doctor, char *folder, bool is_v2)
{
    double tightest = -1;

    while (true) {
        const double quota = folder_quota(doctor, folder, is_v2);
        char *slash;

        if (quota > 0 && (tightest < 0 || quota < tightest)) {
            tightest = quota;
        }
        slash = strrchr(folder, '/');
        if (slash == NULL || strcmp(folder, "/sys/fs/cgroup") == 0) {
            return tightest;
        }
        *slash = '\0';
        if (strlen(folder) < strlen("/sys/fs/cgroup")) {
            return tightest;
        }
    }
}

static void check_throttling(struct lac_doctor *doctor, const char *folder, bool is_v2)
{
    char path[4200];
    char text[4096];
    int64_t count = 0;
    int64_t time = 0;

    (void)snprintf(path, sizeof(path), "%s/cpu.stat", folder);
    if (!lac_doctor_read_all(doctor, path, text, sizeof(text)) ||
        !lac_doctor_number_after(text, "nr_throttled ", &count)) {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_UNSEEN, NULL,
                       "cannot see whether the CPU quota has throttled this group");
        return;
    }
    (void)lac_doctor_number_after(text, is_v2 ? "throttled_usec " : "throttled_time ", &time);
    if (count > 0) {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_AMBER,
                       "raise the CPU limit (Kubernetes: limits.cpu; docker: --cpus), or run fewer "
                       "loader workers",
                       "throttled %" PRId64 " times so far, %.1f s in all", count,
                       is_v2 ? (double)time * 1e-6 : (double)time * 1e-9);
    } else {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_OK, NULL, "not throttled so far");
    }
}

static void check_quota(struct lac_doctor *doctor)
{
    char folder[4096];
    char probe[4200];
    char first[64];
    bool is_v2 = true;
    double quota;

    /* a hybrid host has both: version 1 decides where its cpu controller is mounted */
    if (cgroup_path(doctor, "cpu", folder, sizeof(folder))) {
        (void)snprintf(probe, sizeof(probe), "%s/cpu.cfs_period_us", folder);
        is_v2 = !lac_doctor_read(doctor, probe, first, sizeof(first));
        if (is_v2) { /* in a container the path is the host's, the mount is our own group */
            (void)snprintf(folder, sizeof(folder), "/sys/fs/cgroup/cpu");
            is_v2 = !lac_doctor_read(doctor, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", first,
                                     sizeof(first));
        }
    }
    if (is_v2 && !cgroup_path(doctor, NULL, folder, sizeof(folder))) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_UNSEEN, NULL, "no cgroup is visible");
        return;
    }
    check_throttling(doctor, folder, is_v2);
    quota = tightest_quota(doctor, folder, is_v2);
    if (quota < 0) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_OK, NULL, "no CPU quota (cgroup v%d)",
                       is_v2 ? 2 : 1);
    } else if (doctor->allowed_cores > 0 && quota < (double)doctor->allowed_cores) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_AMBER,
                       "programs that count cores start too many threads: set OMP_NUM_THREADS and "
                       "num_workers to the quota, or raise it",
                       "CPU quota of %.1f cores, though %u are allowed (cgroup v%d)", quota,
                       doctor->allowed_cores, is_v2 ? 2 : 1);
    } else {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_OK, NULL, "CPU quota of %.1f cores (cgroup v%d)",
                       quota, is_v2 ? 2 : 1);
    }
}

/* -- Slurm --------------------------------------------------------------------------------------*/

static void check_slurm(struct lac_doctor *doctor)
{
    const char *job = getenv("SLURM_JOB_ID");
    const long per_task = slurm_number("SLURM_CPUS_PER_TASK");
    const long on_node = slurm_number("SLURM_CPUS_ON_NODE");
    const unsigned allowed = doctor->allowed_cores;

    if (job == NULL) {
        lac_doctor_add(doctor, "slurm", LAC_DOCTOR_OK, NULL, "not inside a Slurm job");
    } else if (per_task > 0 && allowed > 0 && allowed < (unsigned long)per_task) {
        lac_doctor_add(doctor, "slurm", LAC_DOCTOR_AMBER,
                       "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK   (since Slurm 22.05 srun "
                       "does not inherit --cpus-per-task)",
                       "job %.20s asked for %ld cores per task, this process may use %u", job,
                       per_task, allowed);
    } else if (per_task == 0 && on_node > 0 && allowed > 0 && allowed < (unsigned long)on_node) {
        lac_doctor_add(doctor, "slurm", LAC_DOCTOR_AMBER,
                       "give the task its cores: srun --cpus-per-task=N, or #SBATCH "
                       "--cpus-per-task=N and export SRUN_CPUS_PER_TASK=N",
                       "job %.20s has %ld cores on this node, this process may use %u", job,
                       on_node, allowed);
    } else {
        lac_doctor_add(doctor, "slurm", LAC_DOCTOR_OK, NULL,
                       "job %.20s: %ld cores per task, %ld on this node", job, per_task, on_node);
    }
}

void lac_doctor_cores(struct lac_doctor *doctor)
{
    check_mask(doctor);
    check_quota(doctor);
    check_slurm(doctor);
}
