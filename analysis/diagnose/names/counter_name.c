/* Counters by their names: measurements of the recorder and of tools, or what a person counts. */

#include "analysis/diagnose/names/names.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <string.h>

/* Behind "thread 12: ", before " (%)". */
static const char *const measured[] = {
    /* of a thread, a process and a host: collector/sample/sampler.c */
    "on a core",
    "in the kernel",
    "waiting for a core",
    "blocked on input",
    "context switches",
    "minor faults",
    "major faults",
    "read from storage",
    "written to storage",
    "read by calls",
    "written by calls",
    "cgroup throttled",
    "periods throttled",
    /* of PyTorch's allocator */
    "allocated by PyTorch",
    "reserved by PyTorch",
    "tensors allocated",
    "tensors allocated since the recording began",
};

bool lac_names_counter_is_measured(const char *name)
{
    static const char gpu[] = "GPU ";
    size_t digits =
        strncmp(name, gpu, sizeof(gpu) - 1) == 0 ? strspn(name + sizeof(gpu) - 1, "0123456789") : 0;
    if (digits > 0 && name[sizeof(gpu) - 1 + digits] == ':') {
        return true; /* of NVML, or of the hardware by another tool */
    }
    for (const char *next = strstr(name, ": "); next != NULL; next = strstr(name, ": ")) {
        name = next + 2;
    }
    const char *unit = strstr(name, " (");
    size_t length = unit != NULL ? (size_t)(unit - name) : strlen(name);
    for (size_t i = 0; i < LAC_COUNT_OF(measured); i++) {
        if (strlen(measured[i]) == length && memcmp(measured[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}
