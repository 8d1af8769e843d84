#include "collector/launch/job.h"

#include "collector/base/debug.h"
#include "collector/base/entry.h"
#include "collector/launch/rescue.h"
#include "collector/launch/signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* stat() is too new a symbol: what cannot be opened as a folder is none. */
static bool is_program(const char *path)
{
    const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (folder >= 0) {
        (void)close(folder);
        return false;
    }
    return access(path, X_OK) == 0;
}

bool lac_job_is_there(const char *command)
{
    const char *const variable = getenv("PATH");
    const char *at = variable != NULL ? variable : "/bin:/usr/bin"; /* as execvp() */

    if (strchr(command, '/') != NULL) {
        return is_program(command);
    }
    for (;;) {
        const int length = (int)strcspn(at, ":");
        char path[4096];

        if (snprintf(path, sizeof(path), "%.*s%s%s", length, at, length > 0 ? "/" : "", command) <
                (int)sizeof(path) &&
            is_program(path)) {
            return true;
        }
        if (at[length] == '\0') {
            return false;
        }
        at += length + 1;
    }
}

int lac_job_become(char *const *argv)
{
    int problem;

    lac_entry_give_back();
    (void)execvp(argv[0], argv);
    problem = errno;
    (void)fprintf(stderr, "lacuna: cannot run %s: %s\n", argv[0], strerror(problem));
    return problem == ENOENT ? 127 : 126;
}

/* Whoever reads what the job writes has to hear of it when the job closes it, and so has who writes what
 * it reads, or waits for a lock: what we have beside it is closed. Ours are closed in programs that
 * are executed, and what we came with is not. We need stderr, and no other file in the place of one. */
static void leave_files_to_job(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int stream = STDIN_FILENO; stream <= STDOUT_FILENO && nothing > STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) == 0) {
            (void)dup2(nothing, stream);
        }
    }
    for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        const int number = (int)strtol(entry->d_name, NULL, 10);

        if (number > STDERR_FILENO && fcntl(number, F_GETFD) == 0) {
            (void)close(number);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    if (nothing > STDERR_FILENO) {
        (void)close(nothing);
    }
}

bool lac_job_start(struct lac_job *job, char *const *argv)
{
    const pid_t launcher = getpid();

    *job = (struct lac_job){0};
    job->pid = fork();
    if (job->pid == 0) {
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
        if (getppid() != launcher) { /* it was too late for that */
            _exit(128 + SIGKILL);
        }
        _exit(lac_job_become(argv));
    }
    if (job->pid > 0) {
        LAC_DEBUG(LAUNCH, 1, "%s runs as %d", argv[0], (int)job->pid);
        (void)setpgid(job->pid, job->pid); /* whichever of us two is first */
        lac_rescue_begin(job->pid);
        leave_files_to_job();
    }
    return job->pid > 0;
}

static void note(struct lac_job *job, int status)
{
    if (WIFSTOPPED(status)) {
        LAC_DEBUG(LAUNCH, 2, "the job is stopped by signal %d", WSTOPSIG(status));
        job->stopped_by = WSTOPSIG(status);
        return;
    }
    job->ended = true;
    job->ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    job->exit_status = job->ended_by != 0 ? 128 + job->ended_by : WEXITSTATUS(status);
    LAC_DEBUG(LAUNCH, 1, "the job has ended with status %d", job->exit_status);
    lac_rescue_end(job->exit_status);
}

void lac_job_poll(struct lac_job *job)
{
    const pid_t which = getpid() == 1 ? -1 : job->pid;
    int status = 0;
    pid_t pid = 0;

    while (!job->ended && pid >= 0) {
        pid = waitpid(which, &status, WNOHANG | WUNTRACED);
        if (pid == 0) {
            return;
        }
        if (pid == job->pid) {
            note(job, status);
        } else if (pid < 0 && errno == ECHILD) { /* somebody else took its status */
            (void)fprintf(stderr, "lacuna: how the job ended is unknown\n");
            note(job, 1 << 8);
        }
    }
}

void lac_job_signal_group(const struct lac_job *job, int signal)
{
    if (job->pid > 0 && !job->ended) {
        (void)kill(-job->pid, signal);
    }
}

void lac_job_pass_on(const struct lac_job *job, const struct lac_signal *signal)
{
    if (job->pid > 0 && !job->ended) {
        /* whoever lets us go on again lets all of it go on */
        const bool is_for_all = signal->is_from_terminal || signal->number == SIGCONT;

        lac_signal_pass_on(signal, is_for_all ? -job->pid : job->pid);
    }
}

int lac_job_exit_status(const struct lac_job *job)
{
    const struct rlimit no_core = {0};
    struct sigaction as_usual;

    if (job->ended_by == SIGINT || job->ended_by == SIGQUIT) {
        memset(&as_usual, 0, sizeof(as_usual));
        as_usual.sa_handler = SIG_DFL;
        (void)sigaction(job->ended_by, &as_usual, NULL);
        (void)setrlimit(RLIMIT_CORE, &no_core); /* the job has left its own */
        (void)kill(getpid(), job->ended_by);
        lac_signals_let(job->ended_by);
    }
    return job->exit_status;
}
