#ifndef LAC_COLLECTOR_LAUNCH_INSTALL_H
#define LAC_COLLECTOR_LAUNCH_INSTALL_H

/* Where the parts of the collector are, and the environment that brings them into a job. */

#include <stdbool.h>
#include <stddef.h>

struct lac_install {
    char library[4096]; /**< liblacuna.so */
    char python[4096];  /**< folder of the Python hook, "" when it is not there */
    char lacuna[4096];  /**< the program with the engine, "" when it is not there */
};

/** Look beside this program, then in ../lib/lacuna. @return false when liblacuna.so
 *  is in neither */
bool lac_install_find(struct lac_install *install);

/** Tools that the environment named where we are now; "" none. */
struct lac_displaced {
    char nvtx[4096]; /**< is not used in this run */
    char cuda[4096]; /**< our library loads it before it begins */
};

/** What CUDA_INJECTION64_PATH names beside our library; "" nothing. */
const char *lac_install_cuda_tool(const struct lac_install *install);

/** Set the variables of a recorded job in this process's environment. */
void lac_install_environment(const struct lac_install *install, const char *spool_folder,
                             struct lac_displaced *displaced);

#endif
