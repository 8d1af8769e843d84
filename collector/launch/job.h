#ifndef LAC_COLLECTOR_LAUNCH_JOB_H
#define LAC_COLLECTOR_LAUNCH_JOB_H

/*
 * The job: CMD in a process group of its own, in our session. Processes that it leaves behind get
 * the parent that they would have without us.
 */

#include "collector/launch/signals.h"

#include <stdbool.h>
#include <sys/types.h>

struct lac_job {
    pid_t pid; /**< of CMD */
    bool ended;
    int exit_status; /**< 0-255, 126, 127 or 128 + signal, once ended */
    int ended_by;    /**< signal that ended it, 0 none */
    int stopped_by;  /**< signal that stopped it since this was last cleared, 0 none */
};

/**
 * Start `argv` (NULL-terminated) with the present environment, everything else as
 * lac_entry_take() found it. Should the launcher be killed (SIGKILL), so is CMD: whoever kills what
 * they started means it.
 *
 * @return false when no process could be made (errno says why)
 */
bool lac_job_start(struct lac_job *job, char *const *argv);

/** Whether there is an executable file of that name, where execvp() looks. */
bool lac_job_is_there(const char *command);

/** Become `argv`. @return 126 or 127 when it cannot be run, which was said on stderr */
int lac_job_become(char *const *argv);

/** Take note of what CMD did, without waiting. As process 1 also reaps what others left behind. */
void lac_job_poll(struct lac_job *job);

/** Send a signal to the whole group, as a terminal does. Nothing once CMD has ended. */
void lac_job_signal_group(const struct lac_job *job, int signal);

/** Give CMD a signal that came to us: to CMD alone, or to its group if a terminal sent it. */
void lac_job_pass_on(const struct lac_job *job, const struct lac_signal *signal);

/**
 * The status to exit with. Where CMD died of SIGINT or SIGQUIT this does not return: we die of it
 * as well, so that a shell's loop or script ends as it would without us.
 */
int lac_job_exit_status(const struct lac_job *job);

#endif
