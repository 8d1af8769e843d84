#ifndef LAC_COLLECTOR_SAMPLE_RUN_ORIGIN_H
#define LAC_COLLECTOR_SAMPLE_RUN_ORIGIN_H

/* Where a run comes from: who started it, of which commit. Files are read, no program is run. */

#include <stdbool.h>
#include <stddef.h>

/** Of SHA-256, with its NUL. */
enum { LAC_COMMIT_BYTES = 65 };

/**
 * Who started the job: LACUNA_PERSON, else SLURM_JOB_USER, USER or LOGNAME. root is nobody: in a
 * container everybody is.
 *
 * @return "" not known; borrowed from the environment
 */
const char *lac_run_person(void);

/**
 * The commit that is checked out in the innermost repository around a folder, as git's files tell
 * it: also of a worktree or a submodule, of loose and packed references, and without a branch.
 *
 * @return false: in no repository, or its HEAD names no commit
 */
bool lac_run_commit_of(const char *folder, char out[LAC_COMMIT_BYTES]);

/** The same of the current folder; without a repository what CI says: GITHUB_SHA, CI_COMMIT_SHA or
 *  GIT_COMMIT. LACUNA_COMMIT comes before all. */
bool lac_run_commit(char out[LAC_COMMIT_BYTES]);

#endif
