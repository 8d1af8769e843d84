#ifndef LAC_COLLECTOR_BASE_CGROUP_H
#define LAC_COLLECTOR_BASE_CGROUP_H

/*
 * What this process's control groups (version 2 or 1) let it have. A limit of any group above it
 * holds as well: all are looked at from its own up to the mount. In a container the path of its own
 * group is often the host's and not visible; the mount then is that group.
 *
 * `root` is put before every path: "" but for tests.
 */

#include <stdbool.h>
#include <stdint.h>

/** The least memory limit in bytes. 0: none is in sight. */
uint64_t lac_cgroup_memory_limit(const char *root);

/** The least quota of processors, in cores. 0: none.
 *  @param ret_version of the hierarchy that has the processors, 1 or 2; 0: none is visible */
double lac_cgroup_cpu_quota(const char *root, int *ret_version);

struct lac_cgroup_throttling {
    uint64_t periods;
    uint64_t throttled_periods;
    uint64_t throttled_ns;
};

/** Of the nearest group that counts it. @return false: none does */
bool lac_cgroup_throttling(const char *root, struct lac_cgroup_throttling *ret);

#endif
