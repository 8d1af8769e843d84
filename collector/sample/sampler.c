#include "collector/sample/sampler.h"

#include "collector/base/cgroup.h"
#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "collector/sample/host_facts.h"
#include "collector/sample/nvml.h"
#include "collector/sample/proc_files.h"
#include "collector/sample/sample_spool.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUND_MS = 100,
    ROUND_PAUSED_MS = 1000, /* while nothing is recorded */
    LOOK_MS = 1000,
    /* of a core: rounds, and a look at what processes there are; together below 0.5 % */
    ROUND_FRACTION = 700,
    DEBT_NS_MAX = -14000000, /* ten seconds without a round */
    LOOK_FRACTION = 2000,
    CREDIT_NS_MAX = 5000000, /* so much more may rounds cost at once: a job that begins */
    EARLY_LOOK_MS = 200,     /* after the last one, when a new process was recorded */
    EARLY_LOOK_FRACTION = 100,
    PROCESSES_MAX = 4096,
    THREADS_MAX = 4096,
    FILES_MAX = 1024, /* kept open: some 6 KiB each in the kernel */
    GENERATIONS_MAX = 64,
};

/* What is told of a thread; the order is that of `thread_series`. */
enum { THREAD_SERIES = 7, PROCESS_SERIES = 4, HOST_SERIES = 2 };
static const struct {
    const char *what;
    const char *unit;
} thread_series[THREAD_SERIES] =
    {
        {"on a core", "%"},        {"in the kernel", "%"},     {"waiting for a core", "%"},
        {"blocked on input", "%"}, {"context switches", "/s"}, {"minor faults", "/s"},
        {"major faults", "/s"},
},
  process_series[PROCESS_SERIES] =
      {
          {"read from storage", "MB/s"},
          {"written to storage", "MB/s"},
          {"read by calls", "MB/s"},
          {"written by calls", "MB/s"},
},
  host_series[HOST_SERIES] = {{"cgroup throttled", "%"}, {"periods throttled", "/s"}};

struct series {
    uint32_t id; /* 0: not written yet */
    double last;
};

struct thread {
    int32_t tid;
    bool seen; /* in the last look */
    struct lac_thread_files files;
    struct lac_thread_counters last;
    struct series series[THREAD_SERIES];
};

struct process {
    int32_t pid;
    uint64_t start_ticks;
    bool seen;
    bool has_io;
    int io_file;
    char name[17];
    struct thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    uint32_t threads_told; /* by the kernel: another number than at the last look is news */
    uint32_t threads_known;
    uint64_t io[PROCESS_SERIES];
    struct series series[PROCESS_SERIES];
};

struct lac_sampler {
    struct lac_sample_spool *spool;
    struct lac_nvml *nvml;
    int host_socket; /* >= 0: this launcher samples the host, not only what its job uses */
    uint64_t last_round_ns;
    uint64_t next_look_ns;
    uint64_t early_look_ns; /* from when on a new process is looked for */
    uint64_t recorded_processes;
    uint64_t round_ms;
    struct process *processes;
    size_t process_count;
    uint64_t births; /* processes found so far */
    size_t thread_total;
    unsigned file_room; /* more files that may be kept open */
    int64_t credit_ns;  /* what rounds may cost now */
    struct lac_cgroup_throttling throttling;
    bool has_throttling;
    struct series host[HOST_SERIES];
    struct series recording;
};

static const uint32_t NO_COUNT = UINT32_MAX; /* a thread has ended */

static uint64_t now_ns(clockid_t id)
{
    struct timespec time;

    (void)clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t lac_sampler_own_cpu_ns(void)
{
    return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* A name that only one process can bind, and that the kernel forgets with it: no file is left. */
static int claim_host(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                                "lacuna-host-sampler-%u", (unsigned)getuid());

    if (file >= 0 &&
        bind(file, (const struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) != 0) {
        (void)close(file);
        return -1;
    }
    return file;
}

struct lac_sampler *lac_sampler_create(const char *folder)
{
    assert(folder != NULL);
    struct lac_sampler *const sampler = calloc(1, sizeof(*sampler));

    if (sampler == NULL) {
        return NULL;
    }
    sampler->spool = lac_sample_spool_create(folder);
    if (sampler->spool == NULL) {
        free(sampler);
        return NULL;
    }
    sampler->round_ms = ROUND_MS;
    lac_host_facts(sampler->spool);
    sampler->host_socket = claim_host();
    lac_sample_spool_setting(sampler->spool, "host.sampled_here",
                             sampler->host_socket >= 0 ? "True" : "False");
    sampler->nvml = lac_nvml_create(sampler->spool, sampler->host_socket >= 0);
    sampler->has_throttling = lac_cgroup_throttling("", &sampler->throttling);
    lac_sample_spool_flush(sampler->spool);
    return sampler;
}

/* The launcher raises its limit for itself and the spools, so this is asked once that is done. */
static unsigned files_to_keep(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    limit.rlim_cur /= LAC_PROC_FILES_FRACTION;
    return limit.rlim_cur < FILES_MAX ? (unsigned)limit.rlim_cur : FILES_MAX;
}

/* A rate holds until the next one; behind the last there is none. */
static void end_series(struct lac_sampler *sampler, struct series *series, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (series[i].id != 0 && series[i].last != 0) {
            lac_sample_spool_value(sampler->spool, series[i].id, 0);
        }
    }
}

static void end_thread(struct lac_sampler *sampler, struct thread *thread)
{
    end_series(sampler, thread->series, THREAD_SERIES);
    lac_proc_thread_close(&thread->files, &sampler->file_room);
    sampler->thread_total--;
}

static void end_process(struct lac_sampler *sampler, struct process *process)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        end_thread(sampler, &process->threads[i]);
    }
    end_series(sampler, process->series, PROCESS_SERIES);
    lac_proc_close_kept(&process->io_file, &sampler->file_room);
    free(process->threads);
}

void lac_sampler_destroy(struct lac_sampler *sampler)
{
    if (sampler == NULL) {
        return;
    }
    if (sampler->last_round_ns != 0) {
        lac_sample_spool_time(sampler->spool, sampler->last_round_ns);
    }
    for (size_t i = 0; i < sampler->process_count; i++) {
        end_process(sampler, &sampler->processes[i]);
    }
    free(sampler->processes);
    end_series(sampler, sampler->host, HOST_SERIES);
    lac_nvml_destroy(sampler->nvml, sampler->spool);
    if (sampler->host_socket >= 0) {
        (void)close(sampler->host_socket);
    }
    lac_sample_spool_destroy(sampler->spool);
    free(sampler);
}

void lac_sampler_note(struct lac_sampler *sampler, const char *key, const char *value)
{
    if (sampler != NULL) {
        lac_sample_spool_setting(sampler->spool, key, value);
        lac_sample_spool_flush(sampler->spool);
    }
}

/* ---- which processes and threads there are: looked at once a second, and the threads of a process
 * that has another number of them at once */

struct found { /* any process of the host */
    int32_t pid;
    int32_t parent;
    char name[17];
};

static size_t list_numbers(const char *path, int32_t *out, size_t capacity)
{
    DIR *const folder = opendir(path);
    size_t count = 0;

    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && count < capacity;
         entry = readdir(folder)) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            out[count++] = (int32_t)strtol(entry->d_name, NULL, 10);
        }
    }
    (void)closedir(folder);
    return count;
}

static struct process *process_of(struct lac_sampler *sampler, const struct found *found)
{
    struct process *grown;

    for (size_t i = 0; i < sampler->process_count; i++) {
        if (sampler->processes[i].pid == found->pid) {
            /* it may be another program by now */
            (void)snprintf(sampler->processes[i].name, sizeof(found->name), "%s", found->name);
            return &sampler->processes[i];
        }
    }
    grown = realloc(sampler->processes, (sampler->process_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    sampler->processes = grown;
    grown += sampler->process_count++;
    sampler->births++;
    *grown = (struct process){
        .pid = found->pid, .start_ticks = lac_proc_start_ticks(found->pid), .io_file = -1};
    (void)snprintf(grown->name, sizeof(grown->name), "%s", found->name);
    return grown;
}

static void look_at_threads(struct lac_sampler *sampler, struct process *process)
{
    static int32_t tids[THREADS_MAX];
    char path[64];
    size_t count;
    size_t kept = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
    count = list_numbers(path, tids, THREADS_MAX);
    for (size_t i = 0; i < process->thread_count; i++) {
        process->threads[i].seen = false;
    }
    for (size_t i = 0; i < count; i++) {
        struct thread *thread = NULL;

        for (size_t k = 0; k < process->thread_count && thread == NULL; k++) {
            thread = process->threads[k].tid == tids[i] ? &process->threads[k] : NULL;
        }
        if (thread == NULL &&
            !LAC_RESERVE(process->threads, process->thread_capacity, process->thread_count, 1)) {
            continue;
        }
        if (thread == NULL && sampler->thread_total < THREADS_MAX) {
            thread = &process->threads[process->thread_count++];
            *thread = (struct thread){.tid = tids[i], .files = LAC_THREAD_FILES_CLOSED};
            sampler->thread_total++;
            if (!lac_proc_thread(process->pid, thread->tid, &thread->last)) {
                process->thread_count--;
                sampler->thread_total--;
                continue;
            }
        }
        if (thread != NULL) {
            thread->seen = true;
        }
    }
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i].seen) {
            process->threads[kept++] = process->threads[i];
        } else {
            end_thread(sampler, &process->threads[i]);
        }
    }
    process->thread_count = kept;
    process->threads_known = process->threads_told;
}

static int by_pid(const void *left, const void *right)
{
    const struct found *const a = left;
    const struct found *const b = right;

    return LAC_ORDER(a->pid, b->pid);
}

/* Seen below us before; the one that was its parent may have ended since. */
static bool is_known(const struct lac_sampler *sampler, const struct found *of)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        const struct process *const process = &sampler->processes[i];

        if (process->pid == of->pid) {
            return process->start_ticks != 0 &&
                   process->start_ticks == lac_proc_start_ticks(of->pid);
        }
    }
    return false;
}

static const struct found *parent_of(const struct found *found, size_t count,
                                     const struct found *of)
{
    const struct found key = {.pid = of->parent};

    return bsearch(&key, found, count, sizeof(*found), by_pid);
}

/* Whether this process is among its ancestors, or was: who loses its parent gets another one. */
static bool is_below(const struct lac_sampler *sampler, const struct found *found, size_t count,
                     const struct found *of, int32_t self)
{
    const struct found *at = of;

    for (int generation = 0; at != NULL && generation < GENERATIONS_MAX; generation++) {
        if (at->parent == self) {
            return true;
        }
        at = parent_of(found, count, at);
    }
    at = of;
    for (int generation = 0; at != NULL && generation < GENERATIONS_MAX; generation++) {
        if (is_known(sampler, at)) {
            return true;
        }
        at = parent_of(found, count, at);
    }
    return false;
}

/* Descendants of this process: found by their parents, which every kernel tells. */
static void look(struct lac_sampler *sampler)
{
    static int32_t pids[PROCESSES_MAX * 8];
    static struct found found[PROCESSES_MAX * 8];
    const size_t count = list_numbers("/proc", pids, LAC_COUNT_OF(pids));
    const int32_t self = (int32_t)getpid();
    size_t known = 0;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        found[known] = (struct found){.pid = pids[i]};
        known += lac_proc_parent(pids[i], &found[known].parent, found[known].name,
                                 sizeof(found[known].name));
    }
    qsort(found, known, sizeof(found[0]), by_pid);
    for (size_t i = 0; i < sampler->process_count; i++) {
        sampler->processes[i].seen = false;
    }
    for (size_t i = 0; i < known; i++) {
        struct process *const process = sampler->process_count < PROCESSES_MAX &&
                                                is_below(sampler, found, known, &found[i], self)
                                            ? process_of(sampler, &found[i])
                                            : NULL;

        if (process != NULL) {
            process->seen = true;
            look_at_threads(sampler, process);
        }
    }
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (sampler->processes[i].seen) {
            sampler->processes[kept++] = sampler->processes[i];
        } else {
            end_process(sampler, &sampler->processes[i]);
        }
    }
    sampler->process_count = kept;
}

/* ---- values */

/* Written when it changed; the first time only when there is something to tell. */
static void put(struct lac_sampler *sampler, struct series *series, const struct process *process,
                const struct thread *thread, const char *what, const char *unit, double value)
{
    char text[256];
    char pid[16] = "";
    char tid[16] = "";

    value = value < 0.05 ? 0 : value;
    if ((series->id == 0 && value == 0) || (series->id != 0 && series->last == value)) {
        return;
    }
    if (series->id == 0) {
        if (process != NULL) {
            (void)snprintf(pid, sizeof(pid), "%d", (int)process->pid);
        }
        if (thread != NULL) {
            (void)snprintf(tid, sizeof(tid), "%d", (int)thread->tid);
        }
        (void)snprintf(text, sizeof(text), "%s%c%s%c%s%c%s%c%s%c%s", pid, LAC_SERIES_SEPARATOR,
                       process != NULL ? process->name : "", LAC_SERIES_SEPARATOR, tid,
                       LAC_SERIES_SEPARATOR, thread != NULL ? thread->last.name : "",
                       LAC_SERIES_SEPARATOR, what, LAC_SERIES_SEPARATOR, unit);
        series->id = lac_sample_spool_name(sampler->spool, text);
    }
    lac_sample_spool_value(sampler->spool, series->id, value);
    series->last = value;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now > before ? (double)(now - before) / seconds : 0;
}

static void compare(const struct lac_thread_counters *now, const struct lac_thread_counters *last,
                    double seconds, double *values)
{
    const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);

    values[0] = rate(now->run_ns, last->run_ns, seconds) / 1e7;
    values[1] = rate(now->system_ticks, last->system_ticks, seconds) * tick_s * 100;
    values[2] = rate(now->wait_ns, last->wait_ns, seconds) / 1e7;
    values[3] = now->state == 'D' ? 100 : 0;
    values[4] = rate(now->turns, last->turns, seconds);
    values[5] = rate(now->minor_faults, last->minor_faults, seconds);
    values[6] = rate(now->major_faults, last->major_faults, seconds);
}

static void sample_thread(struct lac_sampler *sampler, struct process *process,
                          struct thread *thread, double seconds)
{
    const struct lac_thread_counters last = thread->last;
    double values[THREAD_SERIES] = {0};
    const enum lac_thread_reading reading = lac_proc_thread_again(
        process->pid, thread->tid, &thread->files, &sampler->file_room, &thread->last);

    if (reading == LAC_THREAD_GONE) { /* how busy it was is not known: as before, until now */
        process->threads_told = NO_COUNT;
        return;
    }
    if (reading == LAC_THREAD_RAN) {
        process->threads_told = thread->last.thread_count;
        if (strcmp(thread->last.name, last.name) != 0) { /* it runs another program, say */
            end_series(sampler, thread->series, THREAD_SERIES);
            memset(thread->series, 0, sizeof(thread->series));
        }
        compare(&thread->last, &last, seconds, values);
    }
    for (int i = 0; i < THREAD_SERIES; i++) {
        put(sampler, &thread->series[i], process, thread, thread_series[i].what,
            thread_series[i].unit, values[i]);
    }
}

static void sample_io(struct lac_sampler *sampler, struct process *process, double seconds)
{
    static const char *const keys[PROCESS_SERIES] = {"read_bytes", "write_bytes", "rchar", "wchar"};
    char text[1024];

    if (lac_proc_read_kept(process->pid, 0, "io", &process->io_file, &sampler->file_room, text,
                           sizeof(text)) == 0) {
        return;
    }
    for (int i = 0; i < PROCESS_SERIES; i++) {
        const uint64_t now = lac_text_number(text, keys[i], 0);

        if (process->has_io) {
            put(sampler, &process->series[i], process, NULL, process_series[i].what,
                process_series[i].unit, rate(now, process->io[i], seconds) / 1e6);
        }
        process->io[i] = now;
    }
    process->has_io = true;
}

static void sample_throttling(struct lac_sampler *sampler, double seconds)
{
    struct lac_cgroup_throttling now;

    if (sampler->has_throttling && lac_cgroup_throttling("", &now)) {
        put(sampler, &sampler->host[0], NULL, NULL, host_series[0].what, host_series[0].unit,
            rate(now.throttled_ns, sampler->throttling.throttled_ns, seconds) / 1e7);
        put(sampler, &sampler->host[1], NULL, NULL, host_series[1].what, host_series[1].unit,
            rate(now.throttled_periods, sampler->throttling.throttled_periods, seconds));
        sampler->throttling = now;
    }
}

uint64_t lac_sampler_births(const struct lac_sampler *sampler)
{
    return sampler != NULL ? sampler->births : 0;
}

uint64_t lac_sampler_bytes(const struct lac_sampler *sampler)
{
    return sampler != NULL ? lac_sample_spool_bytes(sampler->spool) : 0;
}

void lac_sampler_recording(struct lac_sampler *sampler, bool is_on)
{
    char text[64];
    const char gap = LAC_SERIES_SEPARATOR;

    if (sampler == NULL || (sampler->recording.id != 0 && (sampler->recording.last > 0) == is_on)) {
        return;
    }
    if (sampler->recording.id == 0) {
        (void)snprintf(text, sizeof(text), "%c%c%c%crecording%con", gap, gap, gap, gap, gap);
        sampler->recording.id = lac_sample_spool_name(sampler->spool, text);
    }
    sampler->recording.last = is_on ? 1 : 0;
    sampler->round_ms = is_on ? ROUND_MS : ROUND_PAUSED_MS;
    lac_sample_spool_time(sampler->spool, now_ns(CLOCK_MONOTONIC));
    lac_sample_spool_value(sampler->spool, sampler->recording.id, sampler->recording.last);
    lac_sample_spool_flush(sampler->spool);
}

unsigned lac_sampler_gpu_busy(struct lac_sampler *sampler, double *out, unsigned capacity)
{
    return sampler != NULL && sampler->nvml != NULL ? lac_nvml_busy(sampler->nvml, out, capacity)
                                                    : 0;
}

unsigned lac_sampler_gpus_now(struct lac_sampler *sampler, struct lac_gpu_now *out,
                              unsigned capacity)
{
    return sampler != NULL && sampler->nvml != NULL ? lac_nvml_now(sampler->nvml, out, capacity)
                                                    : 0;
}

void lac_sampler_processes(struct lac_sampler *sampler, uint64_t count)
{
    if (sampler == NULL || count == sampler->recorded_processes) {
        return;
    }
    sampler->recorded_processes = count;
    if (sampler->next_look_ns > sampler->early_look_ns) {
        sampler->next_look_ns = sampler->early_look_ns;
    }
}

/* Rounds pay from a credit that grows with time: what one costs more than its time gave is waited
 * for behind it. */
static void set_pace(struct lac_sampler *sampler, uint64_t now, uint64_t cost_ns)
{
    const uint64_t least_ms = sampler->recording.last > 0 ? ROUND_MS : ROUND_PAUSED_MS;
    const uint64_t earned_ns =
        sampler->last_round_ns != 0 ? (now - sampler->last_round_ns) / ROUND_FRACTION : 0;
    uint64_t wait_ms;

    sampler->credit_ns += (int64_t)earned_ns;
    sampler->credit_ns = (sampler->credit_ns < CREDIT_NS_MAX ? sampler->credit_ns : CREDIT_NS_MAX) -
                         (int64_t)cost_ns;
    if (sampler->credit_ns < DEBT_NS_MAX) {
        sampler->credit_ns = DEBT_NS_MAX;
    }
    wait_ms = sampler->credit_ns < 0 ? (uint64_t)-sampler->credit_ns * ROUND_FRACTION / 1000000 : 0;
    sampler->round_ms = wait_ms < least_ms ? least_ms : wait_ms;
    LAC_DEBUG(SAMPLE, 3, "a round took %lu us", (unsigned long)(cost_ns / 1000));
}

void lac_sampler_round(struct lac_sampler *sampler)
{
    const uint64_t now = now_ns(CLOCK_MONOTONIC);
    uint64_t cost_before;
    double seconds;

    if (sampler == NULL || now - sampler->last_round_ns < sampler->round_ms * 1000000) {
        return;
    }
    cost_before = lac_sampler_own_cpu_ns();
    seconds = (double)(now - sampler->last_round_ns) / 1e9;
    if (sampler->last_round_ns == 0) {
        sampler->file_room = files_to_keep();
        sampler->credit_ns = CREDIT_NS_MAX;
    } else { /* a mean stands at the time at which it begins */
        lac_sample_spool_time(sampler->spool, sampler->last_round_ns);
        for (size_t i = 0; i < sampler->process_count; i++) {
            struct process *const process = &sampler->processes[i];

            for (size_t k = 0; k < process->thread_count; k++) {
                sample_thread(sampler, process, &process->threads[k], seconds);
            }
            sample_io(sampler, process, seconds);
        }
        sample_throttling(sampler, seconds);
    }
    lac_sample_spool_time(sampler->spool, now);
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (sampler->processes[i].threads_told != sampler->processes[i].threads_known) {
            look_at_threads(sampler, &sampler->processes[i]);
        }
    }
    if (sampler->nvml != NULL) {
        lac_nvml_write(sampler->nvml, sampler->spool);
    }
    if (now >= sampler->next_look_ns) {
        const uint64_t before = lac_sampler_own_cpu_ns();

        look(sampler); /* thousands of processes of others make it rarer */
        sampler->early_look_ns = now + (uint64_t)EARLY_LOOK_MS * 1000000 +
                                 (lac_sampler_own_cpu_ns() - before) * EARLY_LOOK_FRACTION;
        sampler->next_look_ns =
            now + (uint64_t)LOOK_MS * 1000000 + (lac_sampler_own_cpu_ns() - before) * LOOK_FRACTION;
        cost_before += lac_sampler_own_cpu_ns() - before;
        LAC_DEBUG(SAMPLE, 2, "%zu processes, %zu threads", sampler->process_count,
                  sampler->thread_total);
    }
    lac_sample_spool_flush(sampler->spool);
    set_pace(sampler, now, lac_sampler_own_cpu_ns() - cost_before);
    sampler->last_round_ns = now;
}
