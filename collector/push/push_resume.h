#ifndef LAC_COLLECTOR_PUSH_PUSH_RESUME_H
#define LAC_COLLECTOR_PUSH_PUSH_RESUME_H

/*
 * The note of how far something was sent: ".lacuna-push" in the folder of a recording, which is
 * ours; of any other file in the user's state (push_state.h).
 */

#include "collector/base/encode.h"
#include "collector/base/sha.h"

#include <stdbool.h>
#include <stdint.h>

/** In place of a digest: sent by `run --server` while it was made, in another order. */
#define LAC_PUSH_STREAMED "streamed"

struct lac_push_target;

struct lac_push_resume {
    char server[512];
    char project[520];                                /**< "" none */
    char digest[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)]; /**< of all that is sent */
    uint64_t length_bytes; /**< of what is sent; streamed: of the files */
    char upload[64];       /**< id, "" none */
    char trace[64];        /**< "" until it is there */
};

/** Fill in where it goes. */
void lac_push_resume_place(struct lac_push_resume *note, const struct lac_push_target *target);
/** Bytes of all files of a recording; 0: it is none. */
uint64_t lac_push_folder_bytes(const char *path);

/** @return false: there is none that makes sense */
bool lac_push_resume_read(const char *path, const char *server, struct lac_push_resume *note);
/** Without success nothing is lost but the way back. */
void lac_push_resume_write(const char *path, const struct lac_push_resume *note);
/** All of it is there: a recording keeps that, of any other file nothing stays behind. */
void lac_push_resume_done(const char *path, const struct lac_push_resume *note);

#endif
