#ifndef LAC_SERVER_CLI_TRY_JOB_H
#define LAC_SERVER_CLI_TRY_JOB_H

/* One run of a job that `lacuna try` compares: recorded as `lacuna run` records, and ended early. */

#include <stdbool.h>

struct lac_try_job {
    char *const *command; /**< CMD, ended by NULL */
    const char *folder;   /**< where its recording goes */
    const char *changes;  /**< of try_changes.h; NULL: as it is */
    int steps;            /**< after so many the job ends itself */
    int seconds_max;      /**< and after so long it is ended */
    long threads;         /**< OMP_NUM_THREADS of the job; 0: as it is */
};

struct lac_try_end {
    int status;      /**< of the job, as a shell has it; -1 with errno set: it was not started */
    bool is_late;    /**< its time was over */
    int interrupted; /**< by this signal, which was for us; 0: no */
};

/** Run it to its end. What it prints goes to stderr; it reads nothing. */
struct lac_try_end lac_try_job_run(const struct lac_try_job *job);

#endif
