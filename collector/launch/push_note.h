#ifndef LAC_COLLECTOR_LAUNCH_PUSH_NOTE_H
#define LAC_COLLECTOR_LAUNCH_PUSH_NOTE_H

/* The note beside a recording (".lacuna-push" in its folder, "FILE.lacuna-push" beside a file). */

#include "collector/launch/push_digest.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_push_note {
    char server[512];
    char project[520];           /**< "" none */
    char digest[LAC_DIGEST_HEX]; /**< of all that is sent */
    uint64_t length_bytes;
    char upload[64]; /**< id, "" none */
    char trace[64];  /**< "" until it is there */
};

/** @return false: there is none that makes sense */
bool lac_push_note_read(const char *path, struct lac_push_note *note);
/** Without success nothing is lost but the way back. */
void lac_push_note_write(const char *path, const struct lac_push_note *note);

#endif
