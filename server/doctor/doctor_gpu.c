#include "collector/base/count_of.h"
#include "collector/base/nvml_abi.h"
#include "collector/base/nvml_functions.h"
#include "server/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NVML_WAIT_MS = 1300, GPUS_MAX = 32 };

/* -- NVML, in a child ---------------------------------------------------------------------------*/

/*
 * The driver may take seconds, or hang, when a GPU has fallen off: so a child asks it and writes
 * lines "id|state|text|fix" to a pipe, and we wait no longer than we promised. The functions are
 * looked up by name, so that nothing is needed where there is no driver.
 */
static bool nvml_load(struct lac_nvml_functions *nvml)
{
    void *const library = dlopen(LAC_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    return library != NULL && lac_nvml_find(library, nvml) && nvml->name != NULL;
}

static void tell_throttle(const struct lac_nvml_functions *nvml, void *device, unsigned index)
{
    /* bits of nvml.h: power cap, thermal (software, hardware), hardware slowdown, power brake */
    static const struct {
        unsigned long long bit;
        const char *word;
    } reasons[] = {{0x4, "power cap"},
                   {0x8, "hardware slowdown"},
                   {0x20, "temperature (software)"},
                   {0x40, "temperature (hardware)"},
                   {0x80, "power brake"}};
    unsigned long long bits = 0;
    char words[120] = "";

    if (nvml->throttling == NULL || nvml->throttling(device, &bits) != 0) {
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(reasons); i++) {
        if ((bits & reasons[i].bit) != 0) {
            const size_t used = strlen(words);

            (void)snprintf(words + used, sizeof(words) - used, "%s%s", used > 0 ? ", " : "",
                           reasons[i].word);
        }
    }
    if (words[0] != '\0') {
        (void)printf("gpu clocks|1|GPU %u is throttled now: %s|nvidia-smi -q -d "
                     "PERFORMANCE,TEMPERATURE,POWER for details; ask the administrator\n",
                     index, words);
    }
}

/* What `lacuna run` can sample of the GPU's own counters, beside any recording (GPM). */
static void tell_counters(const struct lac_nvml_functions *nvml, void *device, unsigned index,
                          bool is_divided)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    const bool is_there = !is_divided && nvml->gpm_support != NULL &&
                          nvml->gpm_support(device, &support) == 0 && support.is_supported != 0;

    if (is_there) {
        (void)printf("gpu counters|0|GPU %u reports SM and tensor core activity (GPM)|\n", index);
    } else {
        (void)printf("gpu counters|0|GPU %u does not report SM activity (GPM: %s); everything else "
                     "is sampled|\n",
                     index,
                     is_divided                  ? "not with MIG"
                     : nvml->gpm_support == NULL ? "the driver is too old"
                                                 : "Hopper and later, not in virtual machines");
    }
}

static void tell_device(const struct lac_nvml_functions *nvml, unsigned index)
{
    void *device = NULL;
    char name[96] = "";
    char link[64] = "";
    unsigned width = 0;
    unsigned width_max = 0;
    unsigned generation = 0;
    unsigned mig = 0;
    unsigned mig_pending = 0;

    if (nvml->handle(index, &device) != 0 || nvml->name(device, name, sizeof(name)) != 0) {
        (void)printf("gpu|2|GPU %u does not answer|\n", index);
        return;
    }
    if (nvml->link_width != NULL && nvml->link_width_max != NULL &&
        nvml->link_generation_max != NULL && nvml->link_width(device, &width) == 0 &&
        nvml->link_width_max(device, &width_max) == 0 &&
        nvml->link_generation_max(device, &generation) == 0) {
        (void)snprintf(link, sizeof(link), ", PCIe %u x%u", generation, width);
    }
    if (nvml->mig != NULL && nvml->mig(device, &mig, &mig_pending) != 0) {
        mig = 0;
    }
    (void)printf("gpu|0|GPU %u: %s%s%s|\n", index, name, link, mig == 1 ? ", MIG enabled" : "");
    if (width > 0 && width < width_max) {
        (void)printf("gpu link|1|GPU %u uses %u of its %u PCIe lanes|copies are slower: check the "
                     "slot and riser (some boards narrow an idle link: check again under load)\n",
                     index, width, width_max);
    }
    tell_throttle(nvml, device, index);
    tell_counters(nvml, device, index, mig == 1);
    if (nvml->processes != NULL) {
        unsigned others = 0;

        (void)nvml->processes(device, &others, NULL); /* only counts, and says "too small" */
        if (others > 0) {
            (void)printf("gpu sharing|1|%u process(es) compute on GPU %u now|measurements on a "
                         "shared GPU are unreliable: use another GPU, or wait\n",
                         others, index);
        }
    }
}

static _Noreturn void ask_driver(int fd)
{
    struct lac_nvml_functions nvml = {0};
    char driver[96] = "?";
    unsigned count = 0;
    int cuda = 0;

    (void)dup2(fd, STDOUT_FILENO);
    if (!nvml_load(&nvml)) {
        _exit(1);
    }
    if (nvml.init() != 0 || nvml.count(&count) != 0) {
        (void)printf("gpu|2|the NVIDIA driver is loaded but does not answer|\n");
        (void)fflush(stdout);
        _exit(0);
    }
    if (nvml.driver != NULL) {
        (void)nvml.driver(driver, sizeof(driver));
    }
    if (nvml.cuda != NULL) {
        (void)nvml.cuda(&cuda);
    }
    (void)printf("gpu driver|0|NVIDIA driver %s, CUDA %d.%d, %u GPU(s)|\n", driver, cuda / 1000,
                 cuda % 1000 / 10, count);
    (void)printf("#count|0|%u|\n", count);
    for (unsigned i = 0; i < count && i < GPUS_MAX; i++) {
        tell_device(&nvml, i);
    }
    (void)fflush(stdout);
    _exit(0);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* All that the child writes before its end or the deadline. @return false: the deadline */
static bool collect(int fd, char *out, size_t capacity)
{
    const int64_t deadline = now_ms() + NVML_WAIT_MS;
    size_t used = 0;
    bool ended = false;

    while (!ended && used + 1 < capacity) {
        const int64_t left = deadline - now_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (left <= 0 || poll(&wait, 1, (int)left) <= 0) {
            break;
        }
        got = read(fd, out + used, capacity - 1 - used);
        ended = got <= 0;
        used += got > 0 ? (size_t)got : 0;
    }
    out[used] = '\0';
    return ended;
}

static void add_lines(struct lac_doctor *doctor, char *text)
{
    /* ids must outlive the text */
    static const char *const ids[] = {"gpu driver", "gpu",          "gpu link",
                                      "gpu clocks", "gpu counters", "gpu sharing"};
    char *line;

    while ((line = strsep(&text, "\n")) != NULL) {
        const char *id = strsep(&line, "|");
        const char *state = strsep(&line, "|");
        const char *words = strsep(&line, "|");
        const char *fix = line;

        if (id == NULL || state == NULL || words == NULL || fix == NULL) {
            continue;
        }
        if (strcmp(id, "#count") == 0) {
            doctor->gpu_count = (unsigned)strtoul(words, NULL, 10);
            continue;
        }
        for (size_t i = 0; i < LAC_COUNT_OF(ids); i++) {
            if (strcmp(ids[i], id) == 0) {
                lac_doctor_add(doctor, ids[i],
                               state[0] == '1'   ? LAC_DOCTOR_AMBER
                               : state[0] == '2' ? LAC_DOCTOR_UNSEEN
                                                 : LAC_DOCTOR_OK,
                               fix, "%s", words);
            }
        }
    }
}

void lac_doctor_ask_driver(struct lac_doctor *doctor)
{
    char text[16384];
    int ends[2];
    pid_t child;

    if (pipe2(ends, 0) != 0) {
        return;
    }
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        ask_driver(ends[1]);
    }
    (void)close(ends[1]);
    if (child > 0) {
        const bool answered = collect(ends[0], text, sizeof(text));

        if (!answered) {
            (void)kill(child, SIGKILL);
            lac_doctor_add(doctor, "gpu driver", LAC_DOCTOR_UNSEEN, NULL,
                           "the NVIDIA driver did not answer within %.1f s",
                           (double)NVML_WAIT_MS / 1000);
        }
        (void)waitpid(child, NULL, 0);
        add_lines(doctor, text);
    }
    (void)close(ends[0]);
}

/* -- files --------------------------------------------------------------------------------------*/

static bool is_admin(void)
{
    return geteuid() == 0;
}

static void check_permission(struct lac_doctor *doctor)
{
    char text[8192];
    const char *line = NULL;

    if (lac_doctor_read_all(doctor, "/proc/driver/nvidia/params", text, sizeof(text))) {
        line = strstr(text, "RmProfilingAdminOnly:");
    }
    if (line == NULL) {
        lac_doctor_add(doctor, "profiling", LAC_DOCTOR_UNSEEN, NULL,
                       "cannot see whether the driver lets users profile "
                       "(/proc/driver/nvidia/params)");
        return;
    }
    if (strtol(line + strlen("RmProfilingAdminOnly:"), NULL, 10) != 0 && !is_admin()) {
        lac_doctor_add(
            doctor, "profiling", LAC_DOCTOR_AMBER,
            "as administrator: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > "
            "/etc/modprobe.d/nvidia-profiling.conf, then reload the driver",
            "the driver keeps hardware counters for administrators "
            "(RmProfilingAdminOnly: 1)");
    } else {
        lac_doctor_add(doctor, "profiling", LAC_DOCTOR_OK, NULL,
                       "the driver's file permits profiling (read, not tried)");
    }
}

/* How many of the cores in a list such as "0-15,32-47" this process may use; -1: cannot tell. */
static int allowed_of(const char *list)
{
    enum { CPUS_MAX = 16384 };
    const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    int count = 0;

    if (set == NULL || sched_getaffinity(0, size, set) != 0) {
        CPU_FREE(set);
        return -1;
    }
    while (*list != '\0') {
        char *end;
        const unsigned long first = strtoul(list, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

        for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
            count += CPU_ISSET_S(cpu, size, set) ? 1 : 0;
        }
        if (*end != ',') {
            break;
        }
        list = end + 1;
    }
    CPU_FREE(set);
    return count;
}

static void tell_nearness(struct lac_doctor *doctor, const char *bus_id, const char *node,
                          const char *list)
{
    const int near = allowed_of(list);

    if (near == 0) {
        lac_doctor_add(doctor, "gpu socket", LAC_DOCTOR_AMBER,
                       "bind the process to the GPU's socket: numactl --cpunodebind=N, or srun "
                       "--gpu-bind=closest",
                       "GPU %.32s is on NUMA node %.8s (cores %.60s), of which none is allowed",
                       bus_id, node, list);
    } else {
        lac_doctor_add(doctor, "gpu socket", LAC_DOCTOR_OK, NULL,
                       "GPU %.32s is on NUMA node %.8s: %d of its cores are allowed", bus_id, node,
                       near);
    }
}

/* CPUs near each NVIDIA GPU against the cores we may use. */
static void check_nearness(struct lac_doctor *doctor)
{
    char folder[4096];
    char path[4200];
    char node[32];
    char list[256];
    DIR *gpus;
    struct dirent *entry;

    (void)snprintf(folder, sizeof(folder), "%s/proc/driver/nvidia/gpus", doctor->root);
    gpus = opendir(folder);
    while (gpus != NULL && (entry = readdir(gpus)) != NULL) {
        if (!isxdigit((unsigned char)entry->d_name[0]) || strlen(entry->d_name) > 32) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.32s/numa_node", entry->d_name);
        if (!lac_doctor_read(doctor, path, node, sizeof(node)) || node[0] == '-') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.32s/local_cpulist",
                       entry->d_name);
        if (lac_doctor_read(doctor, path, list, sizeof(list))) {
            tell_nearness(doctor, entry->d_name, node, list);
        }
    }
    if (gpus != NULL) {
        (void)closedir(gpus);
    }
}

void lac_doctor_gpus(struct lac_doctor *doctor)
{
    char version[256];
    char node[64];
    char device[4200];

    /* some sandboxes pass the device on, but not the driver's /proc */
    (void)snprintf(device, sizeof(device), "%s/dev/nvidiactl", doctor->root);
    if (!lac_doctor_read(doctor, "/proc/driver/nvidia/version", version, sizeof(version)) &&
        access(device, F_OK) != 0) {
        if (lac_doctor_read(doctor, "/sys/class/kfd/kfd/topology/nodes/0/name", node,
                            sizeof(node))) {
            lac_doctor_add(doctor, "gpu", LAC_DOCTOR_OK, NULL,
                           "an AMD GPU driver; traces of it can be imported, not recorded");
        } else {
            lac_doctor_add(doctor, "gpu", LAC_DOCTOR_UNSEEN, NULL,
                           "no NVIDIA driver: traces can be imported and viewed, not recorded");
        }
        return;
    }
    if (doctor->root[0] == '\0') {
        lac_doctor_ask_driver(doctor);
    }
    check_permission(doctor);
    check_nearness(doctor);
}
