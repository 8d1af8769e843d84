#include "collector/sample/proc_files.h"

#include "collector/base/count_of.h"

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
    uint64_t fields[17] = {0}; /* from field 4 (parent) on */

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
    counters->thread_count = (uint32_t)fields[16]; /* field 20 */
}

size_t lac_proc_read_kept(int32_t pid, int32_t tid, const char *what, int *file, unsigned *room,
                          char *out, size_t capacity)
{
    char path[96];
    ssize_t length = -1;
    bool is_kept = *file >= 0;

    if (!is_kept) {
        (void)(tid != 0
                   ? snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, what)
                   : snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what));
        *file = open(path, O_RDONLY | O_CLOEXEC);
        is_kept = *file >= 0 && *room > 0;
        *room -= is_kept;
    }
    if (*file >= 0) {
        length = pread(*file, out, capacity - 1, 0);
    }
    if (*file >= 0 && !is_kept) {
        (void)close(*file);
        *file = -1;
    }
    out[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

void lac_proc_close_kept(int *file, unsigned *room)
{
    if (*file >= 0) {
        (void)close(*file);
        *file = -1;
        (*room)++;
    }
}

/* On a core, waiting for one, and how often it got one. False: a kernel without it. */
static bool read_schedstat(int32_t pid, int32_t tid, struct lac_thread_files *files, unsigned *room,
                           struct lac_thread_counters *counters)
{
    char text[128];
    char *end = NULL;

    if (lac_proc_read_kept(pid, tid, "schedstat", &files->schedstat, room, text, sizeof(text)) ==
        0) {
        return false;
    }
    counters->run_ns = strtoull(text, &end, 10);
    counters->wait_ns = strtoull(end, &end, 10);
    counters->turns = strtoull(end, NULL, 10);
    return true;
}

static bool has_slept(const struct lac_thread_counters *now, const struct lac_thread_counters *last)
{
    return last->state == 'S' && now->turns == last->turns && now->run_ns == last->run_ns &&
           now->wait_ns == last->wait_ns;
}

enum lac_thread_reading lac_proc_thread_again(int32_t pid, int32_t tid,
                                              struct lac_thread_files *files, unsigned *room,
                                              struct lac_thread_counters *counters)
{
    char text[1024];
    struct lac_thread_counters now = {0};
    const bool has_schedstat = read_schedstat(pid, tid, files, room, &now);
    const char *at;

    if (has_schedstat && has_slept(&now, counters)) {
        return LAC_THREAD_SLEPT;
    }
    if (lac_proc_read_kept(pid, tid, "stat", &files->stat, room, text, sizeof(text)) == 0) {
        return LAC_THREAD_GONE;
    }
    at = split_stat(text, now.name, sizeof(now.name));
    if (at == NULL || strlen(at) < 3) {
        return LAC_THREAD_GONE;
    }
    read_stat_fields(at, &now);
    if (!has_schedstat) { /* in ticks, 10 ms usually */
        const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

        now.run_ns = (now.user_ticks + now.system_ticks) * tick_ns;
    }
    *counters = now;
    return LAC_THREAD_RAN;
}

void lac_proc_thread_close(struct lac_thread_files *files, unsigned *room)
{
    lac_proc_close_kept(&files->schedstat, room);
    lac_proc_close_kept(&files->stat, room);
}

bool lac_proc_thread(int32_t pid, int32_t tid, struct lac_thread_counters *ret)
{
    struct lac_thread_files files = LAC_THREAD_FILES_CLOSED;
    unsigned room = 0;

    *ret = (struct lac_thread_counters){0};
    return lac_proc_thread_again(pid, tid, &files, &room, ret) == LAC_THREAD_RAN;
}
