#ifndef LAC_COLLECTOR_LAUNCH_JOB_H
#define LAC_COLLECTOR_LAUNCH_JOB_H

/* The job: a process group of its own, waited for whole; its exit status as shells tell it. */

#include <stdbool.h>
#include <sys/types.h>

struct lac_job {
    pid_t pid;         /**< of CMD */
    bool ended;        /**< CMD itself */
    bool orphans_left; /**< processes that it left behind still run */
    int exit_status;   /**< 0-255, 126, 127 or 128 + signal, once ended */
    int stopped_by;    /**< signal that stopped it since this was last cleared, 0 none */
};

/**
 * Start `argv` (NULL-terminated) with the present environment.
 *
 * Descendants that lose their parent become our children, so that none is forgotten.
 * @return false when no process could be made (errno says why)
 */
bool lac_job_start(struct lac_job *job, char *const *argv);

/** Take note of whatever ended, without waiting. */
void lac_job_poll(struct lac_job *job);

/** Send `signal` to the whole group. */
void lac_job_signal(const struct lac_job *job, int signal);

#endif
