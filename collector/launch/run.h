#ifndef LAC_COLLECTOR_LAUNCH_RUN_H
#define LAC_COLLECTOR_LAUNCH_RUN_H

/** `run [-o DIR] -- CMD ...`: runs CMD under the collector; the exit status is CMD's. */
int lac_run_command(int argc, char **argv);

#endif
