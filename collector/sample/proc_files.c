#include "collector/sample/proc_files.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One read: the kernel gives these files whole, and asking for the end costs as much again. */
static size_t read_whole(const char *path, char *out, size_t capacity)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, out, capacity - 1) : -1;

    if (file >= 0) {
        (void)close(file);
    }
    out[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
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
    assert(ret_parent != NULL);
    char path[64];
    char text[1024];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (read_whole(path, text, sizeof(text)) == 0) {
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
    if (read_whole(path, text, sizeof(text)) == 0) {
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
    for (size_t i = 0; i < LAC_COUNT_OF(fields) && *at != '\0'; i++) {
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

/* On a core, waiting for one, and how often it got one. False: a kernel without it. */
static bool read_schedstat(int32_t pid, int32_t tid, struct lac_thread_counters *counters)
{
    char path[96];
    char text[128];
    char *end = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (read_whole(path, text, sizeof(text)) == 0) {
        return false;
    }
    counters->run_ns = strtoull(text, &end, 10);
    counters->wait_ns = strtoull(end, &end, 10);
    counters->turns = strtoull(end, NULL, 10);
    return true;
}

bool lac_proc_thread_slept(int32_t pid, int32_t tid, const struct lac_thread_counters *last)
{
    struct lac_thread_counters now = {0};

    return last->state == 'S' && read_schedstat(pid, tid, &now) && now.turns == last->turns &&
           now.run_ns == last->run_ns && now.wait_ns == last->wait_ns;
}

bool lac_proc_thread(int32_t pid, int32_t tid, struct lac_thread_counters *ret)
{
    char path[96];
    char text[4096];
    const char *at;

    *ret = (struct lac_thread_counters){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (read_whole(path, text, sizeof(text)) == 0) {
        return false;
    }
    at = split_stat(text, ret->name, sizeof(ret->name));
    if (at == NULL || strlen(at) < 3) {
        return false;
    }
    read_stat_fields(at, ret);
    if (!read_schedstat(pid, tid, ret)) { /* in ticks, 10 ms usually */
        const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

        ret->run_ns = (ret->user_ticks + ret->system_ticks) * tick_ns;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (read_whole(path, text, sizeof(text)) > 0) {
        ret->voluntary = lac_text_number(text, "voluntary_ctxt_switches", 0);
        ret->involuntary = lac_text_number(text, "nonvoluntary_ctxt_switches", 0);
    }
    return true;
}
