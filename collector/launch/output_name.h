#ifndef LAC_COLLECTOR_LAUNCH_OUTPUT_NAME_H
#define LAC_COLLECTOR_LAUNCH_OUTPUT_NAME_H

/*
 * What a recording's folder is called: what -o says with its patterns filled in, or a name made of
 * the command, the job or the time, and the host where launchers of several hosts could meet.
 *
 *   %h host   %p process of the launcher   %j job of the batch system   %t rank or task
 *   %q{NAME} the variable NAME   %% a percent sign
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Whether the patterns in `asked` are ones.
 *
 * @param problem set to one sentence when they are not
 */
bool lac_output_name_check(const char *asked, char *problem, size_t capacity);

/**
 * Fill in the patterns of `asked`, which passed lac_output_name_check(). What has no value here
 * (no job, no rank, no such variable) becomes "none", and one line on stderr says so.
 *
 * @param ret_tells_ranks_apart whether launchers of different ranks get different names by %t or %p
 * @return false: the name is too long
 */
bool lac_output_name_fill(const char *asked, char *out, size_t capacity,
                          bool *ret_tells_ranks_apart);

/** The name without -o, "CMD-JOB.lacuna" or "CMD-TIME.lacuna". */
void lac_output_name_default(const char *command, char *out, size_t capacity);

/** A name that the ranks of one job have in common, as "slurm-77.0" or "slurm-77_3-restart1"; false:
 * there is none. */
bool lac_output_name_job(char *out, size_t capacity);

/** "rank-3" or "task-3", "" for the only launcher. A task of the batch system may hold several
 * ranks. */
void lac_output_name_rank(char *out, size_t capacity);

/** Whether no other launcher of this job on this host has a lower rank, as far as variables tell. */
bool lac_output_name_is_first(void);

/** Whether a folder of this name is a rank's, by how it begins. */
bool lac_output_name_is_rank(const char *name);

#endif
