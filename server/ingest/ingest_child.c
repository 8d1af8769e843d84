/* One import: start the child, listen to it, take what it made. The child is not trusted: what it
 * says is parsed with bounds, what it wrote is checked before it is moved. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "server/ingest/host_limits.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/store/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 200, LINE_BYTES = 1024 };

struct child {
    struct lac_ingest *ingest;
    struct lac_import_job *job;
    pid_t pid;
    int report_fd;
    char line[LINE_BYTES];
    size_t line_used;
    bool has_result;
    uint32_t trace_count;
    bool is_late;
    uint64_t memory_bytes, file_bytes; /**< its limits */
    int error_status;                  /**< as reported, 0 none */
    char error_text[256];
};

/** A copy of a descriptor out of the way of those the child gets. */
static int high_copy(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 16);
}

/** The trace's name for the child to read, and behind its end the site's names of kernels: arguments
 *  are for all users to see. @return a descriptor or -1 */
static int name_to_read(const char *name, const char *names_text)
{
    int fd = memfd_create("name", MFD_CLOEXEC);
    size_t length = name != NULL ? strlen(name) : 0;

    if (fd >= 0 &&
        (!lac_write_full(fd, name != NULL ? name : "", length) || !lac_write_full(fd, "", 1) ||
         !lac_write_full(fd, names_text != NULL ? names_text : "",
                         names_text != NULL ? strlen(names_text) : 0) ||
         lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/** `fds`: those of the child from LAC_WORKER_INPUT_FD on, then its standard input. */
static int spawn(const char *program, char *const *argv, const int *fds, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    char *const environment[] = {NULL};
    int error;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, fds[3], 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < 3; i++) {
        (void)posix_spawn_file_actions_adddup2(&actions, fds[i], LAC_WORKER_INPUT_FD + i);
    }
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    error = posix_spawn(ret_pid, program, &actions, &attributes, argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

/** Open what the child gets: the upload to read, an empty folder to write into. When we are root
 *  it will be nobody, who must be able to. @return false with errno set */
static bool open_for_child(const struct lac_import_job *job, int *ret_input, int *ret_folder)
{
    int input = openat(job->staging->fd, LAC_STAGED_UPLOAD, O_RDONLY | O_CLOEXEC);
    int folder = -1;

    if (input >= 0 && mkdirat(job->staging->fd, LAC_STAGED_WORK, 0700) == 0) {
        folder = openat(job->staging->fd, LAC_STAGED_WORK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (folder >= 0 && geteuid() == 0 && (fchmod(folder, 0777) != 0 || fchmod(input, 0644) != 0)) {
        (void)close(folder);
        folder = -1;
    }
    *ret_input = input;
    *ret_folder = folder;
    return input >= 0 && folder >= 0;
}

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

__attribute__((format(printf, 3, 4))) static void tell(struct lac_job_outcome *outcome,
                                                       const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)snprintf(outcome->code, sizeof(outcome->code), "%s", code);
    (void)vsnprintf(outcome->message, sizeof(outcome->message), fmt, args);
    va_end(args);
}

/** Why there is no child. */
static void explain_start(int error, struct lac_job_outcome *outcome)
{
    const bool is_full = error == ENOSPC || error == EDQUOT;

    outcome->status = is_full ? LAC_ERR_NO_SPACE : LAC_ERR_IO;
    outcome->is_short = error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
    tell(outcome,
         is_full             ? "no_space"
         : outcome->is_short ? "resource_limit"
                             : "io",
         "the import could not be started: %s%s", strerror(error),
         error == EMFILE   ? " (ulimit -n): start the server under a larger limit and try again"
         : error == EAGAIN ? " (ulimit -u, or pids.max of its cgroup): start the server under a "
                             "larger limit and try again"
                           : "");
}

/** Start the child. @return false with a message in the outcome */
static bool start(struct child *child, struct lac_job_outcome *outcome)
{
    const struct lac_ingest_options *options = &child->ingest->options;
    const struct lac_import_job *job = child->job;
    const char *program = options->program != NULL ? options->program : "/proc/self/exe";
    char memory[24];
    char file[24];
    char cpu[16];
    char word[] = "import-worker";
    char self[] = "lacuna";
    char yes[] = "1";
    char no[] = "0";
    char *argv[] = {self, word, memory, file, cpu, options->keep_originals ? yes : no, NULL};
    int pipes[2] = {-1, -1};
    int own[2] = {-1, -1};
    int high[4] = {-1, -1, -1, -1};
    int error = 0;

    child->memory_bytes = job->reserve_bytes;
    /* what `lacuna run` records by default (4 GiB) fits, however well it was compressed */
    child->file_bytes = (UINT64_C(5) << 30) + 8 * job->size_bytes;
    (void)snprintf(memory, sizeof(memory), "%llu", (unsigned long long)child->memory_bytes);
    (void)snprintf(file, sizeof(file), "%llu", (unsigned long long)child->file_bytes);
    (void)snprintf(cpu, sizeof(cpu), "%u", options->import_seconds_max);
    if (!open_for_child(job, &own[0], &own[1]) || pipe2(pipes, O_CLOEXEC) != 0) {
        error = errno;
    } else {
        high[0] = high_copy(own[0]);
        high[1] = high_copy(own[1]);
        high[2] = high_copy(pipes[1]);
        high[3] = name_to_read(job->name, options->names_text);
        error = high[0] < 0 || high[1] < 0 || high[2] < 0 || high[3] < 0
                    ? errno
                    : spawn(program, argv, high, &child->pid);
    }
    close_all(own, 2);
    close_all(high, 4);
    close_all(&pipes[1], 1);
    if (error != 0) {
        close_all(pipes, 1);
        explain_start(error, outcome);
        return false;
    }
    child->report_fd = pipes[0];
    return true;
}

static void take_progress(struct child *child, const char *text)
{
    struct lac_ingest *ingest = child->ingest;
    struct lac_import_job *job = child->job;
    struct lac_ingest_progress progress;
    unsigned long long done = 0;
    unsigned long long total = 0;
    unsigned long long events = 0;
    char *end = NULL;
    double now_s = lac_ingest_now_s();
    bool tell = false;

    done = strtoull(text, &end, 10);
    total = strtoull(end, &end, 10);
    events = strtoull(end, &end, 10);
    (void)pthread_mutex_lock(&ingest->lock);
    job->progress.done_bytes = done;
    job->progress.total_bytes = total;
    job->progress.events = events;
    if (now_s > job->started_s + 0.1) {
        job->progress.bytes_per_s = (uint64_t)((double)done / (now_s - job->started_s));
    }
    job->progress.eta_s = done > 0 && total >= done
                              ? (now_s - job->started_s) * (double)(total - done) / (double)done
                              : (double)NAN;
    tell = now_s - job->told_s >= 0.25;
    job->told_s = tell ? now_s : job->told_s;
    progress = job->progress;
    (void)pthread_mutex_unlock(&ingest->lock);
    if (tell) {
        lac_ingest_tell(ingest, job->id, false, &progress);
    }
}

static void take_line(struct child *child, char *line)
{
    if (line[0] == '\0' || line[1] != ' ') {
        return;
    }
    if (line[0] == 'p') {
        take_progress(child, line + 2);
    } else if (line[0] == 'r') {
        unsigned long count = strtoul(line + 2, NULL, 10);

        child->has_result = count >= 1 && count <= LAC_IMPORT_TRACES_MAX;
        child->trace_count = (uint32_t)count;
    } else if (line[0] == 'e') {
        char *end = NULL;
        long status = strtol(line + 2, &end, 10);
        unsigned long long offset = strtoull(end, &end, 10);

        child->error_status = status > 0 && status < LAC_STATUS_COUNT_ ? (int)status : LAC_ERR_IO;
        while (*end == ' ') {
            end++;
        }
        for (char *c = end; *c != '\0'; c++) { /* a line of a log, whatever it holds */
            if ((unsigned char)*c < ' ') {
                *c = ' ';
            }
        }
        if (offset > 0 && status == LAC_ERR_CORRUPT && strstr(end, "byte") == NULL) {
            (void)snprintf(child->error_text, sizeof(child->error_text), "at byte %llu: %s", offset,
                           end);
        } else {
            (void)snprintf(child->error_text, sizeof(child->error_text), "%s", end);
        }
    }
}

/** Read what there is. @return false at the end */
static bool take_input(struct child *child)
{
    char *line_end;
    ssize_t got = read(child->report_fd, child->line + child->line_used,
                       sizeof(child->line) - 1 - child->line_used);

    if (got < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    if (got == 0) {
        return false;
    }
    child->line_used += (size_t)got;
    child->line[child->line_used] = '\0';
    while ((line_end = memchr(child->line, '\n', child->line_used)) != NULL) {
        size_t used = (size_t)(line_end - child->line) + 1;

        *line_end = '\0';
        take_line(child, child->line);
        child->line_used -= used;
        memmove(child->line, child->line + used, child->line_used);
    }
    if (child->line_used == sizeof(child->line) - 1) {
        child->line_used = 0; /* no line is that long: not ours */
    }
    return true;
}

static bool is_wanted(struct child *child)
{
    bool wanted;

    (void)pthread_mutex_lock(&child->ingest->lock);
    wanted = !child->ingest->is_stopping && !child->job->is_canceled;
    (void)pthread_mutex_unlock(&child->ingest->lock);
    return wanted;
}

/** Whether it has ended; its number stays ours until it is waited for. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | WNOHANG) != 0 ||
           info.si_pid == child->pid;
}

/** Until the child has ended, is not wanted any more, or took too long. A closed pipe is not an
 *  end: what stands still may have closed it. @return its wait status */
static int listen_to(struct child *child, struct lac_job_outcome *outcome)
{
    const double late_s =
        lac_ingest_now_s() + lac_ingest_wall_seconds(child->ingest, child->job->size_bytes);
    struct pollfd poller = {.fd = child->report_fd, .events = POLLIN};
    int pause_ms = 1;
    bool open = true;
    int status = 0;

    while (open || !has_ended(child)) {
        const int ready = poll(&poller, 1, open ? POLL_MS : pause_ms);

        if (!is_wanted(child)) {
            outcome->is_interrupted = true;
            break;
        }
        if (lac_ingest_now_s() > late_s) {
            child->is_late = true;
            break;
        }
        if (open && ready > 0) {
            open = take_input(child);
            poller.fd = open ? poller.fd : -1;
        } else if (!open) {
            pause_ms = pause_ms < POLL_MS / 2 ? pause_ms * 2 : POLL_MS;
        }
    }
    (void)kill(-child->pid, SIGKILL); /* it, and whatever it may have started */
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    (void)close(child->report_fd);
    return status;
}

/** Whether somebody ended it with a signal that programs do not send themselves. */
static bool is_killed(int wait_status)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR};

    for (size_t i = 0; i < LAC_COUNT_OF(signals); i++) {
        if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == signals[i]) {
            return true;
        }
    }
    return false;
}

/** Why there is no result, and what to do where a limit of this machine is the reason. */
static void explain(const struct child *child, int wait_status, struct lac_job_outcome *outcome)
{
    const struct lac_ingest_options *options = &child->ingest->options;
    const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    char advice[160] = "";

    outcome->status = LAC_ERR_IO;
    if (child->is_late) {
        tell(outcome, "resource_limit", "the import took longer than %.0f s (--import-time)",
             lac_ingest_wall_seconds(child->ingest, child->job->size_bytes));
    } else if (child->error_status != 0) {
        outcome->status = (enum lac_status)child->error_status;
        if (outcome->status == LAC_ERR_NOMEM) {
            (void)lac_host_limit_advice(LAC_HOST_ADDRESSES, child->memory_bytes, advice,
                                        sizeof(advice));
        }
        tell(outcome, lac_status_name(outcome->status), "%.*s%s",
             (int)(sizeof(outcome->message) - 1 - strlen(advice)), child->error_text, advice);
    } else if (signal == SIGXCPU) {
        (void)lac_host_limit_advice(LAC_HOST_CPU, options->import_seconds_max, advice,
                                    sizeof(advice));
        tell(outcome, "resource_limit", "the import took more CPU time than allowed%s", advice);
    } else if (signal == SIGXFSZ) {
        (void)lac_host_limit_advice(LAC_HOST_FILE, child->file_bytes, advice, sizeof(advice));
        tell(outcome, "resource_limit", "the trace became larger than an import may write%s",
             advice);
    } else if (lac_host_limit_advice(LAC_HOST_ADDRESSES, child->memory_bytes, advice,
                                     sizeof(advice)) > 0) {
        outcome->status = LAC_ERR_NOMEM; /* so little that it could not say so itself */
        tell(outcome, "out_of_memory", "the importing process did not come far%s", advice);
    } else if (is_killed(wait_status)) {
        tell(outcome, "killed", "the importing process was killed (signal %d)%s", signal,
             signal == SIGKILL ? ", perhaps because this machine had no memory left" : "");
    } else if (signal != 0) {
        tell(outcome, "crashed", "the importing process was ended by signal %d%s", signal,
             signal == SIGSYS ? " (it did what an import may not)" : "");
    } else {
        tell(outcome, "crashed", "the importing process ended without a result (status %d)",
             WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1);
    }
}

/** Move one file from the child's folder into ours, if it is what it should be. */
static bool take_file(const struct lac_import_job *job, int work_fd, const char *name)
{
    struct stat info;

    return fstatat(work_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
           info.st_nlink == 1 && renameat(work_fd, name, job->staging->fd, name) == 0 &&
           (geteuid() != 0 ||
            fchownat(job->staging->fd, name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) == 0);
}

static bool take_files(const struct child *child, struct lac_job_outcome *outcome)
{
    const struct lac_import_job *job = child->job;
    int work_fd =
        openat(job->staging->fd, LAC_STAGED_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool good = work_fd >= 0;

    for (uint32_t i = 0; i < child->trace_count && good; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), LAC_STAGED_TRACE_FORMAT, i);
        good = take_file(job, work_fd, name);
    }
    if (good && child->ingest->options.keep_originals) {
        good = take_file(job, work_fd, LAC_STAGED_ORIGINAL);
        outcome->has_original = good;
    }
    if (work_fd >= 0) {
        (void)close(work_fd);
    }
    if (!good) {
        outcome->status = LAC_ERR_IO;
        tell(outcome, "io", "the importing process did not leave the files it said");
    }
    return good;
}

void lac_import_clear(const struct lac_staging *staging)
{
    struct lac_staging work = {.fd = -1};
    const int length = snprintf(work.path, sizeof(work.path), "%s/" LAC_STAGED_WORK, staging->path);

    if (length > 0 && (size_t)length < sizeof(work.path)) {
        work.fd =
            openat(staging->fd, LAC_STAGED_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        lac_staging_remove(&work);
    }
}

void lac_import_run(struct lac_ingest *ingest, struct lac_import_job *job,
                    struct lac_job_outcome *outcome)
{
    struct child child = {.ingest = ingest, .job = job, .report_fd = -1};
    int wait_status;

    *outcome = (struct lac_job_outcome){.status = LAC_OK};
    lac_import_clear(job->staging);
    if (!start(&child, outcome)) {
        return;
    }
    wait_status = listen_to(&child, outcome);
    if (outcome->is_interrupted) {
        outcome->status = LAC_ERR_IO;
        return;
    }
    if (child.is_late || !child.has_result || !WIFEXITED(wait_status) ||
        WEXITSTATUS(wait_status) != 0) {
        explain(&child, wait_status, outcome);
        return;
    }
    outcome->trace_count = child.trace_count;
    (void)take_files(&child, outcome);
}
