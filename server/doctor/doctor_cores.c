#include "collector/base/cgroup.h"
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

static void check_throttling(struct lac_doctor *doctor)
{
    struct lac_cgroup_throttling throttling;

    if (!lac_cgroup_throttling(doctor->root, &throttling)) {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_UNSEEN, NULL,
                       "cannot see whether the CPU quota has throttled this group");
    } else if (throttling.throttled_periods > 0) {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_AMBER,
                       "raise the CPU limit (Kubernetes: limits.cpu; docker: --cpus), or run fewer "
                       "loader workers",
                       "throttled %" PRIu64 " times so far, %.1f s in all",
                       throttling.throttled_periods, (double)throttling.throttled_ns * 1e-9);
    } else {
        lac_doctor_add(doctor, "throttling", LAC_DOCTOR_OK, NULL, "not throttled so far");
    }
}

static void check_quota(struct lac_doctor *doctor)
{
    int version;
    const double quota = lac_cgroup_cpu_quota(doctor->root, &version);

    if (version == 0) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_UNSEEN, NULL, "no cgroup is visible");
        return;
    }
    check_throttling(doctor);
    if (quota <= 0) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_OK, NULL, "no CPU quota (cgroup v%d)", version);
    } else if (doctor->allowed_cores > 0 && quota < (double)doctor->allowed_cores) {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_AMBER,
                       "programs that count cores start too many threads: set OMP_NUM_THREADS and "
                       "num_workers to the quota, or raise it",
                       "CPU quota of %.1f cores, though %u are allowed (cgroup v%d)", quota,
                       doctor->allowed_cores, version);
    } else {
        lac_doctor_add(doctor, "quota", LAC_DOCTOR_OK, NULL, "CPU quota of %.1f cores (cgroup v%d)",
                       quota, version);
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
