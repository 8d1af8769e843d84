#ifndef LAC_COLLECTOR_LAUNCH_WINDOW_H
#define LAC_COLLECTOR_LAUNCH_WINDOW_H

/*
 * Windows on demand: `lacuna window DIR` leaves a request in the folder of a recording that is
 * being made, its launcher takes it and answers there. Two small files, so that it works from any
 * host that sees the folder: no socket, no signal.
 *
 *   .lacuna-window: request -> (the launcher takes it away) .lacuna-answer: recording -> done
 *                                                                           refused
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_WINDOW_ID_BYTES = 33,
    LAC_WINDOW_WORDS_BYTES = 512,
    LAC_WINDOW_MS_MAX = 24 * 3600 * 1000,
    LAC_WINDOW_STEPS_MAX = 1000000,
};

/** What is wanted; both 0: as many steps as the launcher's own windows have, or ten seconds. */
struct lac_window_request {
    char id[LAC_WINDOW_ID_BYTES];
    uint64_t duration_ms;
    uint64_t steps;
};

enum lac_window_state {
    LAC_WINDOW_NONE, /**< no answer to this request yet */
    LAC_WINDOW_RECORDING,
    LAC_WINDOW_DONE,
    LAC_WINDOW_REFUSED,
};

/** Leave a request, in place of one that nobody took. @return false: errno says why */
bool lac_window_ask(const char *folder, const struct lac_window_request *request);

/** Take the request away again, if nobody did. */
void lac_window_withdraw(const char *folder);

/**
 * The launcher's look: a request that is there is taken away. Costs two system calls where there is
 * none. What is not a whole request, or not of the folder's owner, is no request.
 *
 * @param last_id of the one taken before, which is not taken again where it cannot be removed
 */
bool lac_window_take(const char *folder, const char *last_id, struct lac_window_request *ret);

/** @param words one sentence for the one who asked @return false: errno says why */
bool lac_window_answer(const char *folder, const char *id, enum lac_window_state state,
                       const char *words);

/** The answer to the request `id`, if there is one. @param words LAC_WINDOW_WORDS_BYTES */
enum lac_window_state lac_window_read_answer(const char *folder, const char *id, char *words);

/** Remove the answer: the recording is complete. */
void lac_window_clear(const char *folder);

/** `window DIR [--duration S | --steps N]`: opens a window in a job that runs. */
int lac_window_command(int argc, char **argv);

#endif
