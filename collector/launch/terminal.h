#ifndef LAC_COLLECTOR_LAUNCH_TERMINAL_H
#define LAC_COLLECTOR_LAUNCH_TERMINAL_H

#include "collector/launch/job.h"

#include <stdbool.h>

/**
 * The terminal that job and launcher share. The job is a process group of its own, so that the
 * first Ctrl-C reaches the launcher alone; the terminal is handed to it when it first reads from it
 * (a debugger, input()), and Ctrl-Z stops both.
 */
struct lac_terminal {
    int fd; /* -1: there is none */
    bool is_given;
    bool is_to_stop; /* the job was told to stop, and we stop when it does */
};

void lac_terminal_open(struct lac_terminal *terminal);

/** After lac_job_poll(): hand over, or stop as the job did. */
void lac_terminal_follow(struct lac_terminal *terminal, struct lac_job *job, bool is_quiet);

/** Back to our own group, whoever has it. */
void lac_terminal_close(struct lac_terminal *terminal);

#endif
