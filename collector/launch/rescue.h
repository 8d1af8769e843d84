#ifndef LAC_COLLECTOR_LAUNCH_RESCUE_H
#define LAC_COLLECTOR_LAUNCH_RESCUE_H

/*
 * Should the launcher break (a fault in it or in a library that it opened), the job does not
 * notice: what is left of the launcher passes signals on, waits for it and ends with its status.
 */

#include <sys/types.h>

/** From now on, for this job. Faults that somebody sends with kill are passed on to it. */
void lac_rescue_begin(pid_t pid);

/** The job has ended, with this status. */
void lac_rescue_end(int exit_status);

#endif
