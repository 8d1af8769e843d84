#ifndef LAC_COLLECTOR_HANG_HANG_SAID_H
#define LAC_COLLECTOR_HANG_HANG_SAID_H

/*
 * What a launcher tells the other launchers of its job about its own processes, as a text:
 *
 *   lacuna-hang 1
 *   launcher NUMBER QUIET_MS HAS_ASKED
 *   host NAME
 *   alive MS                          since a sign of life; not told by an older launcher
 *   verdict KIND RANK QUIET_MS        of the whole job, by the launcher that judges a large one;
 *   doing|where|source|others TEXT    its words
 *   process PID PARENT RANK WORLD TID IS_RANK STEPS IS_BUSY HAS_ENDED STATE SYNCS SLEEPS FOR_CHILD
 *   call NAME
 *   file PATH
 *   lacuna-stacks 1                   what the process answers, of the thread that trains
 *   ...
 *   end
 *
 * Ranks come first; what does not fit is left out. Whoever reads it takes every byte for hostile. No
 * input or output.
 */

#include "collector/hang/hang_process.h"
#include "collector/hang/hang_verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_HANG_SAID_BYTES = 65536,
    LAC_HANG_SAID_PROCESSES = 64, /**< of one launcher */
    LAC_HANG_HOST_BYTES = 64,
};

/** What holds for all processes of a launcher. */
struct lac_hang_report {
    uint64_t number;   /**< of this text among the launcher's: another one is news */
    uint64_t quiet_ms; /**< since there was progress in its own processes */
    uint64_t alive_ms; /**< since a sign of life in them: progress, or bytes read or written; of the
                            whole job where the launcher judges all of it */
    bool has_asked;    /**< whoever of them can has answered */
    char host[LAC_HANG_HOST_BYTES];
    bool has_verdict;
    uint64_t verdict_quiet_ms; /**< since there was progress anywhere in the job */
    struct lac_hang_verdict verdict;
};

struct lac_hang_said {
    struct lac_hang_report report;
    uint32_t count;
    struct lac_hang_process processes[LAC_HANG_SAID_PROCESSES];
    struct lac_hang_thread threads[LAC_HANG_SAID_PROCESSES]; /**< one each */
    char text[LAC_HANG_SAID_BYTES + 1];                      /**< what the others point into */
};

/** Write it down. @return bytes, without the NUL at the end; 0: there is no room */
size_t lac_hang_said_write(const struct lac_hang_report *report,
                           const struct lac_hang_process *processes, uint32_t count, char *text,
                           size_t capacity);

/** Take said->text apart, which ends in a NUL and is changed.
 *
 * @return false: it is no such text, or not whole */
bool lac_hang_said_parse(struct lac_hang_said *said, size_t length);

#endif
