#ifndef LAC_COLLECTOR_GATHER_LAUNCHER_NOTE_H
#define LAC_COLLECTOR_GATHER_LAUNCHER_NOTE_H

/*
 * Whose the folder of a recording is, as long as it is being made: a note in it that only one
 * launcher can make, also where the file system knows no locks. It says where the launcher runs and
 * where its job writes, so that what a killed launcher left is found from the recording.
 *
 *   made -> (complete) removed
 *        -> (killed)   stays: host and folder of the rest
 */

#include <stdbool.h>
#include <stdint.h>

struct lac_launcher_note {
    char host[256];
    int32_t pid;
    uint64_t start_ticks; /**< of that process */
    char boot[40];
    char pid_space[64];
    char spools[4096]; /**< where the job writes; "": not told yet */
};

enum lac_launcher_state {
    LAC_LAUNCHER_NONE,      /**< no note, or none that can be read */
    LAC_LAUNCHER_RUNS,      /**< on this host */
    LAC_LAUNCHER_DEAD,      /**< it ran on this host */
    LAC_LAUNCHER_ELSEWHERE, /**< on another host, or in a container that we cannot look into */
};

/** Make the note in `folder`. @return 0, EEXIST: there is one, or another errno */
int lac_launcher_note_make(const char *folder);

/** Add where the job writes. Best effort: without it the recording is as good. */
void lac_launcher_note_spools(const char *folder, const char *spools);

/** Add that nothing more is recorded, although the launcher goes on: who reads the recording need
 * not call it cut off. Best effort. */
void lac_launcher_note_ended(const char *folder);

void lac_launcher_note_remove(const char *folder);

/** @param ret all empty with LAC_LAUNCHER_NONE; its texts hold no control characters */
enum lac_launcher_state lac_launcher_note_read(const char *folder, struct lac_launcher_note *ret);

#endif
