#ifndef LAC_COLLECTOR_GATHER_GATHER_H
#define LAC_COLLECTOR_GATHER_GATHER_H

#include <stdbool.h>
#include <stdio.h>

/** `gather DIR [-o OUT]`: recordings that were made without a launcher, into one folder.
 * @return exit status */
int lac_gather_command(int argc, char **argv);

/** `env [--docker|--apptainer|--k8s|--mpirun|--slurm]`: the variables that bring the recorder into
 * a job which is started some other way. @return exit status */
int lac_env_command(int argc, char **argv);

/** `show DIR`: everything that a recording holds, and where it goes. @return exit status */
int lac_show_command(int argc, char **argv);

/** All that the spool in `fd` holds, as lines in which nothing steers a terminal. `name` is the
 * file's. @return false: it is no spool that this version reads, or out of memory */
bool lac_show_spool(FILE *out, int fd, const char *name);

#endif
