#include "collector/sample/host_facts.h"

#include "collector/base/cgroup.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/sample/gpu_cores.h"
#include "collector/sample/run_origin.h"
#include "collector/sample/sample_spool.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

static void put_number(struct lac_sample_spool *spool, const char *key, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    lac_sample_spool_setting(spool, key, text);
}

/* The first line of `path` that begins with `key`, behind its colon. */
static void put_line(struct lac_sample_spool *spool, const char *setting, const char *path,
                     const char *key)
{
    static char text[65536];
    char *at;

    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return;
    }
    at = strstr(text, key);
    if (at == NULL) {
        return;
    }
    at += strlen(key);
    at += strspn(at, ": \t");
    at[strcspn(at, "\n")] = '\0';
    lac_sample_spool_setting(spool, setting, at);
}

static uint64_t count_nodes(void)
{
    DIR *const folder = opendir("/sys/devices/system/node");
    uint64_t count = 0;

    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' &&
                 entry->d_name[4] <= '9';
    }
    (void)closedir(folder);
    return count;
}

static void put_memory(struct lac_sample_spool *spool)
{
    char text[4096];
    const uint64_t limit = lac_cgroup_memory_limit("");
    struct statvfs shared;

    if (lac_read_text("/proc/meminfo", text, sizeof(text)) > 0) {
        put_number(spool, "host.memory_bytes", lac_text_number(text, "MemTotal", 0) * 1024);
        put_number(spool, "host.memory_available_bytes",
                   lac_text_number(text, "MemAvailable", 0) * 1024);
    }
    if (limit > 0) {
        put_number(spool, "host.memory_limit_bytes", limit);
    }
    if (statvfs("/dev/shm", &shared) == 0) {
        put_number(spool, "host.dev_shm_bytes", (uint64_t)shared.f_blocks * shared.f_frsize);
        put_number(spool, "host.dev_shm_free_bytes", (uint64_t)shared.f_bavail * shared.f_frsize);
    }
}

static void put_gpu_cores(struct lac_sample_spool *spool)
{
    char cores[512];

    if (lac_gpu_local_cores("/sys/bus/pci/devices", cores, sizeof(cores))) {
        lac_sample_spool_setting(spool, "host.gpu_local_cores", cores);
    }
}

static void put_cpu(struct lac_sample_spool *spool)
{
    int version;
    const double quota = lac_cgroup_cpu_quota("", &version);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    char text[32];

    put_number(spool, "host.cores_online", online > 0 ? (uint64_t)online : 0);
    put_line(spool, "host.cores_allowed", "/proc/self/status", "Cpus_allowed_list");
    put_line(spool, "host.memory_nodes_allowed", "/proc/self/status", "Mems_allowed_list");
    put_line(spool, "host.cpu_model", "/proc/cpuinfo", "model name");
    if (quota > 0) {
        (void)snprintf(text, sizeof(text), "%.2f", quota);
        lac_sample_spool_setting(spool, "host.cpu_quota_cores", text);
    }
    if (count_nodes() > 0) {
        put_number(spool, "host.numa_nodes", count_nodes());
    }
}

static void put_origin(struct lac_sample_spool *spool)
{
    char commit[LAC_COMMIT_BYTES];
    const char *person = lac_run_person();

    if (person[0] != '\0') {
        lac_sample_spool_setting(spool, "host.user", person);
    }
    if (lac_run_commit(commit)) {
        lac_sample_spool_setting(spool, "host.commit", commit);
    }
}

void lac_host_facts(struct lac_sample_spool *spool)
{
    static const char *const slurm[] = {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE",
                                        "SLURM_GPUS_ON_NODE"};
    struct utsname system;

    put_cpu(spool);
    put_gpu_cores(spool);
    put_memory(spool);
    put_origin(spool);
    if (uname(&system) == 0) {
        lac_sample_spool_setting(spool, "host.kernel", system.release);
        lac_sample_spool_setting(spool, "host.machine", system.machine);
    }
    put_line(spool, "host.driver", "/proc/driver/nvidia/version", "NVRM version");
    put_line(spool, "host.profiling_admin_only", "/proc/driver/nvidia/params",
             "RmProfilingAdminOnly");
    for (size_t i = 0; i < LAC_COUNT_OF(slurm); i++) {
        char key[64];

        if (getenv(slurm[i]) != NULL) {
            (void)snprintf(key, sizeof(key), "host.%s", slurm[i]);
            lac_sample_spool_setting(spool, key, getenv(slurm[i]));
        }
    }
}
