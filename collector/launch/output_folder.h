#ifndef LAC_COLLECTOR_LAUNCH_OUTPUT_FOLDER_H
#define LAC_COLLECTOR_LAUNCH_OUTPUT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Make the folder of a recording, which then holds no other one.
 *
 * `asked` is what -o says, NULL for a name made of `command` and of the job or the time (see
 * output_name.h). Where a batch system or a launcher of ranks starts several of us, each gets a
 * folder of its own within, rank-N or task-N, unless patterns in -o tell them apart already. A recording that is there already moves to FOLDER.old (.old2, ...); one that
 * another launcher is still making stays, and the new one goes to FOLDER-2: a note in it says so
 * (launcher_note.h), also where the file system knows no locks. Without -o, where the
 * current folder cannot be written, the recording goes to $TMPDIR or /tmp. What is not as one would
 * expect is said in one line on stderr.
 *
 * The folder stays locked until this process ends.
 *
 * @param problem set to one sentence when none can be made, else ""
 * @return false: none can be made
 */
bool lac_output_folder_make(const char *asked, const char *command, char *out, size_t capacity,
                            char *problem, size_t problem_capacity);

/** Remove a folder that nothing was recorded into. */
void lac_output_folder_drop(const char *path);

#endif
