#ifndef LAC_COLLECTOR_PUSH_PUSH_H
#define LAC_COLLECTOR_PUSH_PUSH_H

/*
 * Sends recordings and traces to a server by tus 1.0.0 and goes on where it broke off, also in a
 * later call: a note in the recording, or in the user's state for any other file, says how far it
 * is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Where to, and as whom. Made by lac_push_target_make(). */
struct lac_push_target {
    char server[512];        /**< "https://host/base", without '/' at the end */
    char authorization[600]; /**< header line */
    const char *project;     /**< NULL none */
    const char *run;         /**< NULL none */
    const char *token_file;  /**< where the token came from, NULL: a variable */
    bool is_quiet;           /**< progress is not shown */
};

/** How far the server's clock is ahead of ours. */
struct lac_push_clock {
    bool is_known;
    int64_t offset_ns;
    int64_t error_ns; /**< bound: half the shortest round trip */
};

/**
 * @param server     NULL: LACUNA_SERVER
 * @param token_file NULL: LACUNA_TOKEN, else the file that LACUNA_TOKEN_FILE names
 * @param problem    set on failure to one sentence
 */
bool lac_push_target_make(struct lac_push_target *target, const char *server,
                          const char *token_file, char *problem, size_t capacity);

struct lac_http;

/** Eight probes; keeps what is better than what `clock` has. */
void lac_push_probe(struct lac_http *http, const struct lac_push_target *target,
                    struct lac_push_clock *clock);

/**
 * Send one path. Says on stderr what goes on.
 *
 * @param name  of the trace; NULL: from the path
 * @param clock NULL: probes when the recording is of this host and boot
 * @param url   set to the trace's address on success
 * @return whether it is there
 */
bool lac_push_path(struct lac_http *http, const struct lac_push_target *target, const char *path,
                   const char *name, const struct lac_push_clock *clock, char *url,
                   size_t url_capacity);

/** How to send it without libcurl, on stderr. */
void lac_push_explain(const struct lac_push_target *target, const char *path);

/** `push PATH... --server URL`. @return exit status */
int lac_push_command(int argc, char **argv);

/* -- for `run --server` -------------------------------------------------------------------------*/

struct lac_push_run;

/** Begin to send what is recorded to `folder`, in a thread of its own. Both are borrowed.
 * @return NULL: no memory, nothing is sent */
struct lac_push_run *lac_push_run_begin(const struct lac_push_target *target, const char *folder);
/** The job hangs, as `json` says, or goes on (NULL): told to the server soon, and again each minute
 * while it lasts. Does not wait. @param context a struct lac_push_run; NULL is allowed */
void lac_push_run_hang(void *context, const char *json);
/** The recording is complete: send the rest, say where it is. NULL is allowed.
 * @param is_wanted false: nothing was recorded */
void lac_push_run_end(struct lac_push_run *run, bool is_wanted);

#endif
