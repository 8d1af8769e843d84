#include "collector/sample/proc_files.h"

#include "collector/base/io_full.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t lac_proc_number(const char *text, const char *key, uint64_t otherwise)
{
    const size_t length = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 &&
            (line[length] == ' ' || line[length] == ':' || line[length] == '\t')) {
            const char *at = line + length;

            at += strspn(at, ": \t");
            return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : otherwise;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return otherwise;
}

/* The fields of a stat file behind the name, which may hold anything: `at` is at field 3. */
static const char *split_stat(char *text, char *name, size_t capacity)
{
    char *const open = strchr(text, '(');
    char *const close = strrchr(text, ')');

    if (open == NULL || close == NULL || close < open || close[1] != ' ') {
        return NULL;
    }
    *close = '\0';
    (void)snprintf(name, capacity, "%s", open + 1);
    return close + 2;
}

bool lac_proc_parent(int32_t pid, int32_t *ret_parent, char *name, size_t capacity)
{
    char path[64];
    char text[1024];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return false;
    }
    at = split_stat(text, name, capacity);
    if (at == NULL || strlen(at) < 3) {
        return false;
    }
    *ret_parent = (int32_t)strtol(at + 2, NULL, 10);
    return true;
}

uint64_t lac_proc_start_ticks(int32_t pid)
{
    char path[64];
    char text[1024];
    char name[17];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return 0;
    }
    at = split_stat(text, name, sizeof(name));
    if (at == NULL || *at == 'Z' || *at == 'X') {
        return 0;
    }
    for (int field = 3; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static void read_stat_fields(const char *at, struct lac_thread_counters *counters)
{
    uint64_t fields[16] = {0}; /* from field 4 (parent) on */

    counters->state = at[0];
    at += 2;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && *at != '\0'; i++) {
        char *end = NULL;

        fields[i] = (uint64_t)strtoll(at, &end, 10);
        if (end == at) {
            break;
        }
        at = end;
    }
    counters->parent_pid = (int32_t)fields[0];
    counters->minor_faults = fields[6]; /* field 10 */
    counters->major_faults = fields[8]; /* field 12 */
    counters->user_ticks = fields[10];  /* field 14 */
    counters->system_ticks = fields[11];
}

bool lac_proc_thread(int32_t pid, int32_t tid, struct lac_thread_counters *ret)
{
    char path[96];
    char text[4096];
    const char *at;
    char *end = NULL;

    *ret = (struct lac_thread_counters){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return false;
    }
    at = split_stat(text, ret->name, sizeof(ret->name));
    if (at == NULL || strlen(at) < 3) {
        return false;
    }
    read_stat_fields(at, ret);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (lac_read_text(path, text, sizeof(text)) > 0) {
        ret->run_ns = strtoull(text, &end, 10);
        ret->wait_ns = strtoull(end, NULL, 10);
    } else { /* a kernel without it: in ticks, 10 ms usually */
        const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

        ret->run_ns = (ret->user_ticks + ret->system_ticks) * tick_ns;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (lac_read_text(path, text, sizeof(text)) > 0) {
        ret->voluntary = lac_proc_number(text, "voluntary_ctxt_switches", 0);
        ret->involuntary = lac_proc_number(text, "nonvoluntary_ctxt_switches", 0);
    }
    return true;
}

/* ---- cgroups: in a container the group's own path is often not visible, its root is then it */

/* "<mount>/<path of this process in that hierarchy>/<file>", or "<mount>/<file>". */
static bool read_cgroup_file(const char *controller, const char *mount, const char *file, char *out,
                             size_t capacity)
{
    char groups[4096];
    char path[4600];
    const char *line = groups;

    if (lac_read_text("/proc/self/cgroup", groups, sizeof(groups)) == 0) {
        return false;
    }
    while (line != NULL && *line != '\0') {
        const char *const names = strchr(line, ':');
        const char *const group = names != NULL ? strchr(names + 1, ':') : NULL;
        const char *const end = strchrnul(line, '\n');

        if (group == NULL || group > end) {
            break;
        }
        if ((controller[0] == '\0' && group == names + 1) ||
            (controller[0] != '\0' &&
             memmem(names, (size_t)(group - names), controller, strlen(controller)) != NULL)) {
            (void)snprintf(path, sizeof(path), "%s%.*s/%s", mount, (int)(end - group - 1),
                           group + 1, file);
            if (lac_read_text(path, out, capacity) > 0) {
                return true;
            }
        }
        line = *end == '\n' ? end + 1 : NULL;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", mount, file);
    return lac_read_text(path, out, capacity) > 0;
}

bool lac_proc_throttling(struct lac_throttling *ret)
{
    char text[2048];

    if (read_cgroup_file("", "/sys/fs/cgroup", "cpu.stat", text, sizeof(text)) &&
        lac_proc_number(text, "nr_periods", UINT64_MAX) != UINT64_MAX) {
        ret->throttled_ns = lac_proc_number(text, "throttled_usec", 0) * 1000;
    } else if ((read_cgroup_file("cpu", "/sys/fs/cgroup/cpu", "cpu.stat", text, sizeof(text)) ||
                read_cgroup_file("cpu", "/sys/fs/cgroup/cpu,cpuacct", "cpu.stat", text,
                                 sizeof(text))) &&
               lac_proc_number(text, "nr_periods", UINT64_MAX) != UINT64_MAX) {
        ret->throttled_ns = lac_proc_number(text, "throttled_time", 0);
    } else {
        return false;
    }
    ret->periods = lac_proc_number(text, "nr_periods", 0);
    ret->throttled_periods = lac_proc_number(text, "nr_throttled", 0);
    return true;
}

double lac_proc_cpu_quota(void)
{
    char text[256];
    char *end = NULL;
    double quota;
    double period;

    if (read_cgroup_file("", "/sys/fs/cgroup", "cpu.max", text, sizeof(text))) {
        quota = strtod(text, &end); /* "max 100000" reads as 0 */
        period = strtod(end, NULL);
        return end != text && period > 0 ? quota / period : 0;
    }
    if (!read_cgroup_file("cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", text, sizeof(text))) {
        return 0;
    }
    quota = strtod(text, NULL);
    if (quota <= 0 ||
        !read_cgroup_file("cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_period_us", text, sizeof(text))) {
        return 0;
    }
    period = strtod(text, NULL);
    return period > 0 ? quota / period : 0;
}

uint64_t lac_proc_memory_limit(void)
{
    char text[256];
    uint64_t limit = 0;

    if (read_cgroup_file("", "/sys/fs/cgroup", "memory.max", text, sizeof(text)) ||
        read_cgroup_file("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", text,
                         sizeof(text))) {
        limit = text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
    }
    return limit >= (uint64_t)1 << 60 ? 0 : limit; /* version 1 prints a huge number for none */
}
