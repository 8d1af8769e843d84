/* Counters by their names: measurements of the recorder, or what a person counts. */

#include "analysis/diagnose/names/names.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <string.h>

static const char digits[] = "0123456789";

/* As collector/sample/sampler.c names them. */
static const char *const of_threads[] = {
    "on a core (%)",         "in the kernel (%)", "waiting for a core (%)", "blocked on input (%)",
    "context switches (/s)", "minor faults (/s)", "major faults (/s)",
};

static const char *const of_processes[] = {
    "read from storage (MB/s)", "written to storage (MB/s)", "read by calls (MB/s)",
    "written by calls (MB/s)",  "cgroup throttled (%)",      "periods throttled (/s)",
};

/* As collector/sample/nvml.c does, and as PyTorch's allocator is told of. */
static const char *const of_gpus[] = {
    "GPU utilization (%)",
    "memory utilization (%)",
    "SM clock (MHz)",
    "memory clock (MHz)",
    "memory used (MB)",
    "power (W)",
    "energy (J)",
    "temperature (C)",
    "clocks held down (reasons)",
    "PCIe sent (MB/s)",
    "PCIe received (MB/s)",
    "memory total (MB)",
    "SMs active (%)",
    "SM occupancy (%)",
    "tensor cores active (%)",
    "memory bandwidth (%)",
    "NVLink sent (MB/s)",
    "NVLink received (MB/s)",
    "allocated by PyTorch (MB)",
    "reserved by PyTorch (MB)",
    "tensors allocated (MB)",
    "tensors allocated since the recording began (MB)",
};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** What stands behind "GPU 0: ", or NULL. */
static const char *behind_gpu(const char *name)
{
    static const char gpu[] = "GPU ";
    if (strncmp(name, gpu, sizeof(gpu) - 1) != 0) {
        return NULL;
    }
    name += sizeof(gpu) - 1;
    size_t length = strspn(name, digits);
    return length > 0 && strncmp(name + length, ": ", 2) == 0 ? name + length + 2 : NULL;
}

/** What stands behind a thread's name and number, "python 12: ", or NULL. */
static const char *behind_thread(const char *name)
{
    const char *last = NULL;
    for (const char *next = strstr(name, ": "); next != NULL; next = strstr(next + 2, ": ")) {
        last = next;
    }
    return last != NULL && last > name && strchr(digits, last[-1]) != NULL ? last + 2 : NULL;
}

bool lac_names_counter_is_measured(const char *name)
{
    const char *gpu = behind_gpu(name);
    const char *thread = gpu == NULL ? behind_thread(name) : NULL;
    if (gpu != NULL) {
        return is_one_of(gpu, of_gpus, LAC_COUNT_OF(of_gpus));
    }
    return thread != NULL ? is_one_of(thread, of_threads, LAC_COUNT_OF(of_threads))
                          : is_one_of(name, of_processes, LAC_COUNT_OF(of_processes)) ||
                                is_one_of(name, of_gpus, LAC_COUNT_OF(of_gpus));
}
