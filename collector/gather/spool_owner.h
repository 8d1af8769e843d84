#ifndef LAC_COLLECTOR_GATHER_SPOOL_OWNER_H
#define LAC_COLLECTOR_GATHER_SPOOL_OWNER_H

/*
 * Whose a folder of spools is: its launcher's, as long as that holds a lock in it, and the
 * processes' that record there. What a launcher left that was killed is found by the next one.
 *
 * Folders without the file "launcher" are not a launcher's: `lacuna env` makes such.
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

/** Whether the process that records into a spool of that name still runs: a look into /proc, by the
 * number and the start that the recorder names the file with. */
bool lac_spool_owner_is_written(const char *name);

/** Whether a process that records there still runs: costs a look into /proc for each spool. */
bool lac_spool_owner_is_recorded(const char *folder);

/** Remove the folder of spools that a dead launcher of this user left, all of which are in a
 * recording. @return false: it is none, or a process may still record there */
bool lac_spool_owner_drop_left(const char *folder);

/** Print those that hold spools, in all places where they may be, and how to gather each. @return
 * how many */
unsigned lac_spool_owner_list(void);

/**
 * Look beside `own` for those of launchers of this user that were killed. Where nothing was
 * recorded, the folder is removed; where something was, it stays and one line says how to keep or
 * remove the first. What nobody gathered in LACUNA_KEEP_DAYS (default 10) days goes, also of jobs
 * without a launcher, and a line says so. A look at all processes if there is any. A folder that a
 * process of such a job may still use is left alone.
 */
void lac_spool_owner_sweep(const char *own, bool is_quiet);

#endif
