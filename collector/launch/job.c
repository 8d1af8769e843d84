#include "collector/launch/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void exec_job(char *const *argv)
{
    sigset_t none;

    (void)setpgid(0, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvp(argv[0], argv);
    (void)fprintf(stderr, "lacuna: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

bool lac_job_start(struct lac_job *job, char *const *argv)
{
    *job = (struct lac_job){0};
#ifdef PR_SET_CHILD_SUBREAPER
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
    job->pid = fork();
    if (job->pid == 0) {
        exec_job(argv);
    }
    if (job->pid > 0) {
        (void)setpgid(job->pid, job->pid); /* whichever of us two is first */
    }
    return job->pid > 0;
}

void lac_job_poll(struct lac_job *job)
{
    int status = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) {
            job->stopped_by = pid == job->pid ? WSTOPSIG(status) : job->stopped_by;
        } else if (pid == job->pid) {
            job->ended = true;
            job->exit_status = WIFEXITED(status)     ? WEXITSTATUS(status)
                               : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                     : 1;
        }
    }
    job->orphans_left = pid == 0;
}

void lac_job_signal(const struct lac_job *job, int signal)
{
    if (job->pid > 0 && !(job->ended && !job->orphans_left)) {
        (void)kill(-job->pid, signal);
    }
}
