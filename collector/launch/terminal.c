#include "collector/launch/terminal.h"

#include "collector/base/progress_line.h"
#include "collector/launch/job.h"
#include "collector/launch/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

void lac_terminal_open(struct lac_terminal *terminal)
{
    *terminal = (struct lac_terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* From the background this would stop us, were SIGTTOU not held. */
static void set_foreground(const struct lac_terminal *terminal, pid_t group)
{
    (void)tcsetpgrp(terminal->fd, group);
}

static void give(struct lac_terminal *terminal, const struct lac_job *job, bool is_quiet)
{
    if (!terminal->is_given && !is_quiet) {
        lac_progress_line_clear();
        (void)fputs("lacuna: the job reads the terminal; from now on Ctrl-C goes to it\n", stderr);
    }
    terminal->is_given = true;
    set_foreground(terminal, job->pid);
    lac_job_signal_group(job, SIGCONT);
}

/* As the job did, until somebody says `fg` or `bg`; at once where nobody could. */
static void stop_with(struct lac_terminal *terminal, const struct lac_job *job, int signal)
{
    if (terminal->is_given) {
        set_foreground(terminal, getpgrp());
        (void)kill(0,
                   signal); /* the terminal stopped the job alone, not who is in a pipe with us */
    } else {
        (void)kill(getpid(), signal);
    }
    lac_signals_let(signal);
    if (terminal->is_given && tcgetpgrp(terminal->fd) == getpgrp()) {
        set_foreground(terminal, job->pid);
    }
    lac_job_signal_group(job, SIGCONT);
}

void lac_terminal_follow(struct lac_terminal *terminal, struct lac_job *job, bool is_quiet)
{
    const int stopped_by = job->stopped_by;

    job->stopped_by = 0;
    if (stopped_by == 0 || job->ended) {
        return;
    }
    if (terminal->is_to_stop || (stopped_by == SIGTSTP && terminal->is_given)) {
        terminal->is_to_stop = false;
        stop_with(terminal, job, SIGTSTP);
    } else if (terminal->fd >= 0 && (stopped_by == SIGTTIN || stopped_by == SIGTTOU)) {
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
