#ifndef LAC_COLLECTOR_GATHER_SPOOL_OWNER_H
#define LAC_COLLECTOR_GATHER_SPOOL_OWNER_H

/*
 * Whose a folder of spools is: its launcher's, as long as that holds a lock in it, and the
 * processes' that record there. What a launcher left that was killed is found by the next one.
 *
 * Folders without the file "launcher" are not a launcher's (`lacuna env` makes such) and are left
 * alone.
 */

#include <stdbool.h>

/**
 * Take a fresh folder. The lock is the kernel's, so it ends with this process however that ends,
 * and another process of the same number is never taken for it.
 *
 * @param output where the recording goes; told to whoever finds the folder later
 * @return false: no lock could be had, errno says why
 */
bool lac_spool_owner_take(const char *folder, const char *output);

/** Whether a process that records there still runs: costs a look into /proc for each spool. */
bool lac_spool_owner_is_recorded(const char *folder);

/**
 * Look beside `own` for those of launchers of this user that were killed. Where nothing was
 * recorded, the folder is removed; where something was, it stays and one line says how to keep or
 * remove the first. A look at all processes if there is any. A folder that a process of such a job
 * may still use is left alone.
 */
void lac_spool_owner_sweep(const char *own, bool is_quiet);

#endif
