#include "collector/base/cgroup.h"

#include "collector/base/io_full.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, GROUPS_BYTES = 8192, FILE_BYTES = 4096 };

/* Version 1 prints a huge number for none. */
static const uint64_t no_limit = (uint64_t)1 << 60;

/* A group's folder; its parents are in it, up to the mount. */
struct group {
    char folder[PATH_BYTES];
    size_t mount_length;
};

/* Whether `names`, of a line of /proc/self/cgroup, has that controller. */
static bool has_name(const char *names, size_t length, const char *controller)
{
    const size_t wanted = strlen(controller);

    for (const char *at = names; at <= names + length;) {
        const char *const comma = memchr(at, ',', (size_t)(names + length - at));
        const char *const end = comma != NULL ? comma : names + length;

        if ((size_t)(end - at) == wanted && memcmp(at, controller, wanted) == 0) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

/* The path of this process in a hierarchy: version 2 (lines "0::PATH") when `controller` is "". */
static bool find_path(const char *root, const char *controller, char *out, size_t capacity)
{
    char groups[GROUPS_BYTES];
    char path[PATH_BYTES];

    if ((size_t)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= sizeof(path) ||
        lac_read_text(path, groups, sizeof(groups)) == 0) {
        return false;
    }
    for (const char *line = groups; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *const names = memchr(line, ':', length);
        const char *const group =
            names != NULL ? memchr(names + 1, ':', (size_t)(line + length - names - 1)) : NULL;

        if (group != NULL && has_name(names + 1, (size_t)(group - names - 1), controller)) {
            const size_t size = (size_t)(line + length - group - 1);

            /* "/" is the mount itself; one that climbs out of it is not visible to us */
            if (size <= 1 || size >= capacity || memmem(group, size + 1, "/..", 3) != NULL) {
                out[0] = '\0';
            } else {
                memcpy(out, group + 1, size);
                out[size] = '\0';
            }
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* This process's group in a hierarchy that is mounted at /sys/fs/cgroup`mount`. */
static bool find_group(const char *root, const char *controller, const char *mount,
                       struct group *ret)
{
    char path[PATH_BYTES];
    const int length =
        snprintf(ret->folder, sizeof(ret->folder), "%s/sys/fs/cgroup%s", root, mount);

    if (length < 0 || !find_path(root, controller, path, sizeof(path)) ||
        (size_t)length + strlen(path) >= sizeof(ret->folder)) {
        return false;
    }
    memcpy(ret->folder + length, path, strlen(path) + 1);
    ret->mount_length = (size_t)length;
    return true;
}

/* Up to its parent. @return false: it was the mount */
static bool climb(struct group *group)
{
    char *const slash = strrchr(group->folder, '/');

    if (slash == NULL || slash < group->folder + group->mount_length) {
        return false;
    }
    *slash = '\0';
    return true;
}

static bool read_file(const struct group *group, const char *name, char *out, size_t capacity)
{
    char path[PATH_BYTES + 64];

    (void)snprintf(path, sizeof(path), "%s/%s", group->folder, name);
    return lac_read_text(path, out, capacity) > 0;
}

/* @return false: there is none, or it is "max" or negative */
static bool read_number(const struct group *group, const char *name, uint64_t *ret_value)
{
    char text[64];

    if (!read_file(group, name, text, sizeof(text)) || text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret_value = strtoull(text, NULL, 10);
    return true;
}

/* -- memory -------------------------------------------------------------------------------------*/

static uint64_t least_memory(struct group group, const char *name)
{
    uint64_t least = no_limit;

    do {
        uint64_t value;

        if (read_number(&group, name, &value) && value < least) {
            least = value;
        }
    } while (climb(&group));
    return least;
}

uint64_t lac_cgroup_memory_limit(const char *root)
{
    struct group group;
    uint64_t least = no_limit;

    if (find_group(root, "", "", &group)) {
        least = least_memory(group, "memory.max");
    }
    if (least == no_limit && find_group(root, "memory", "/memory", &group)) {
        least = least_memory(group, "memory.limit_in_bytes");
    }
    return least < no_limit ? least : 0;
}

/* -- processors ---------------------------------------------------------------------------------*/

static double quota_of(const struct group *group, int version)
{
    char text[64];
    char *end = NULL;
    uint64_t quota = 0;
    uint64_t period = 0;

    if (version == 2) {
        if (!read_file(group, "cpu.max", text, sizeof(text)) || text[0] < '0' || text[0] > '9') {
            return 0; /* "max 100000" */
        }
        quota = strtoull(text, &end, 10);
        period = strtoull(end, NULL, 10);
    } else if (!read_number(group, "cpu.cfs_quota_us", &quota) ||
               !read_number(group, "cpu.cfs_period_us", &period)) {
        return 0; /* a quota of -1 is none */
    }
    return period > 0 ? (double)quota / (double)period : 0;
}

/* A host may have both: version 1 decides where its controller is mounted.
 * @return the version, 0: none is visible */
static int find_cpu(const char *root, struct group *ret)
{
    static const char *const mounts[] = {"/cpu", "/cpu,cpuacct"};

    for (size_t i = 0; i < 2; i++) {
        struct group group;
        uint64_t period;

        if (!find_group(root, "cpu", mounts[i], &group)) {
            continue;
        }
        *ret = group;
        do {
            if (read_number(&group, "cpu.cfs_period_us", &period)) {
                return 1;
            }
        } while (climb(&group));
    }
    return find_group(root, "", "", ret) ? 2 : 0;
}

double lac_cgroup_cpu_quota(const char *root, int *ret_version)
{
    struct group group;
    double least = 0;

    *ret_version = find_cpu(root, &group);
    if (*ret_version == 0) {
        return 0;
    }
    do {
        const double quota = quota_of(&group, *ret_version);

        if (quota > 0 && (least <= 0 || quota < least)) {
            least = quota;
        }
    } while (climb(&group));
    return least;
}

bool lac_cgroup_throttling(const char *root, struct lac_cgroup_throttling *ret)
{
    struct group group;
    const int version = find_cpu(root, &group);
    char text[FILE_BYTES];

    *ret = (struct lac_cgroup_throttling){0};
    if (version == 0) {
        return false;
    }
    do {
        if (read_file(&group, "cpu.stat", text, sizeof(text)) &&
            lac_text_number(text, "nr_throttled", UINT64_MAX) != UINT64_MAX) {
            ret->throttled_periods = lac_text_number(text, "nr_throttled", 0);
            ret->periods = lac_text_number(text, "nr_periods", 0);
            ret->throttled_ns = version == 2 ? lac_text_number(text, "throttled_usec", 0) * 1000
                                             : lac_text_number(text, "throttled_time", 0);
            return true;
        }
    } while (climb(&group));
    return false;
}
