#include "collector/launch/terminal.h"

#include "collector/launch/job.h"
#include "collector/launch/status_line.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

void lac_terminal_open(struct lac_terminal *terminal)
{
    *terminal = (struct lac_terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* From the background this would stop us. */
static void set_foreground(const struct lac_terminal *terminal, pid_t group)
{
    sigset_t output;
    sigset_t before;

    (void)sigemptyset(&output);
    (void)sigaddset(&output, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &output, &before);
    (void)tcsetpgrp(terminal->fd, group);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static void give(struct lac_terminal *terminal, const struct lac_job *job, bool is_quiet)
{
    if (!terminal->is_given && !is_quiet) {
        lac_status_line_clear();
        (void)fputs("lacuna: the job reads the terminal; from now on Ctrl-C goes to it\n", stderr);
    }
    terminal->is_given = true;
    set_foreground(terminal, job->pid);
    (void)kill(-job->pid, SIGCONT);
}

/* Until somebody says `fg` or `bg`. */
static void stop_with(struct lac_terminal *terminal, const struct lac_job *job, int signal)
{
    if (terminal->is_given) {
        set_foreground(terminal, getpgrp());
    }
    (void)kill(-job->pid, signal);
    (void)kill(0, SIGSTOP); /* all of our group, as the terminal would */
    if (terminal->is_given && tcgetpgrp(terminal->fd) == getpgrp()) {
        set_foreground(terminal, job->pid);
    }
    (void)kill(-job->pid, SIGCONT);
}

void lac_terminal_follow(struct lac_terminal *terminal, struct lac_job *job, bool is_suspended,
                         bool is_quiet)
{
    const int stopped_by = job->stopped_by;

    job->stopped_by = 0;
    if (!is_suspended && (terminal->fd < 0 || job->ended)) {
        return;
    }
    if (is_suspended || (stopped_by == SIGTSTP && terminal->is_given)) {
        stop_with(terminal, job, SIGTSTP);
    } else if (stopped_by == SIGTTIN || stopped_by == SIGTTOU) {
        if (tcgetpgrp(terminal->fd) == getpgrp()) {
            give(terminal, job, is_quiet);
        } else { /* in the background ourselves */
            stop_with(terminal, job, stopped_by);
        }
    }
}

void lac_terminal_close(struct lac_terminal *terminal)
{
    if (terminal->fd >= 0) {
        if (terminal->is_given) {
            set_foreground(terminal, getpgrp());
        }
        (void)close(terminal->fd);
        terminal->fd = -1;
    }
}
