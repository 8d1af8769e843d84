#ifndef LAC_COLLECTOR_GATHER_SPOOL_FOLDER_H
#define LAC_COLLECTOR_GATHER_SPOOL_FOLDER_H

/* Where the recorded processes write: a local folder of ours, mode 0700, chosen and checked. */

#include <stdbool.h>
#include <stddef.h>

/**
 * Make a fresh folder in the first place that can hold spools: $LACUNA_SPOOL_DIR, $SLURM_TMPDIR,
 * $JOBSCRATCH, $TMPDIR, /tmp. Never the home folder, never /dev/shm, never a network file system.
 *
 * @param out       set to its path on success
 * @param reason    set on failure to one sentence naming every place and what is wrong with it
 */
bool lac_spool_folder_make(char *out, size_t capacity, char *reason, size_t reason_capacity);

/**
 * Remove the folder and the files in it (nothing deeper). Spools that hold something stay, and the
 * folder with them: whatever was moved is gone before (drain.h). Says so on stderr.
 *
 * @return how many stayed
 */
unsigned lac_spool_folder_remove(const char *path);

/** The same whatever they hold: nobody wants it any more. */
void lac_spool_folder_drop(const char *path);

enum { LAC_SPOOL_FOLDER_PLACES = 5 };
/** Place number `index` in which such folders are made, NULL: its variable is not set. */
const char *lac_spool_folder_place(unsigned index);

/** What keeps spools from living in `path`, or NULL. Static text. */
const char *lac_spool_folder_obstacle(const char *path);

#endif
