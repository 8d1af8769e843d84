#ifndef LAC_COLLECTOR_LAUNCH_EMPTY_REPORT_H
#define LAC_COLLECTOR_LAUNCH_EMPTY_REPORT_H

/*
 * Why a recording is empty. While nothing has been recorded the job's processes are looked at from
 * outside, now and then; what was seen decides what is said at the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_EMPTY_REPORT_NAME_BYTES = 65, /* 16 that are all escaped */
    LAC_EMPTY_REPORT_REASON_BYTES = 1024,
    LAC_EMPTY_REPORT_SILENT_MS = 30000, /**< after so long it is told that nothing is recorded */
};

struct lac_run_options;

struct lac_empty_report {
    uint64_t next_look_ms;
    uint32_t looks;
    uint32_t process_count; /**< different ones, as far as they were seen */
    int32_t seen[64];       /**< their ids */
    bool library_loaded;    /**< some process had the recorder in it */
    bool environment_lost;  /**< some process did not have our variables */
    bool is_musl;
    bool isolated_python; /**< -I, -E or -S */
    bool cuda_loaded;
    unsigned old_libc;                           /**< 2.N of a glibc that is too old; 0 none seen */
    char lost_name[LAC_EMPTY_REPORT_NAME_BYTES]; /**< a process without our variables */
    char starter
        [LAC_EMPTY_REPORT_NAME_BYTES]; /**< a program that is known to start things elsewhere */
    char blind_name[LAC_EMPTY_REPORT_NAME_BYTES]; /**< a process whose file system does not have the
                                                     library */
    char static_name[LAC_EMPTY_REPORT_NAME_BYTES]; /**< a program without a loader for libraries */
    char foreign_name
        [LAC_EMPTY_REPORT_NAME_BYTES]; /**< a process of somebody else, or with rights of
                                                     its own */
    char disabled_name[LAC_EMPTY_REPORT_NAME_BYTES]; /**< a process with LACUNA_DISABLE */
    char
        own_path_name[LAC_EMPTY_REPORT_NAME_BYTES]; /**< a Python whose PYTHONPATH does not have the
                                                     hook */
    char library[512];                              /**< where the blind process looked for it */
};

/** Look, if it is time to. */
void lac_empty_report_look(struct lac_empty_report *why, uint64_t elapsed_ms);

/** The likely reason and its remedy: one sentence, without capital and full stop. `exit_status` is
 * the job's. */
void lac_empty_report_reason(const struct lac_empty_report *why, int exit_status, char *out,
                             size_t capacity);

/** That nothing is recorded so far, and why: a line for stderr, while the job runs. */
void lac_empty_report_say_early(const struct lac_empty_report *why);

/** What was seen, and the reason: two lines for stderr. */
void lac_empty_report_say(const struct lac_empty_report *why, int exit_status);

/** That what was asked for by its steps, range or calls of the profiler never came: a line for each.
 * @param has_captured whether a process recorded a range, or between such calls */
void lac_empty_report_say_asked(const struct lac_run_options *options, uint64_t steps,
                                bool has_captured);

#endif
