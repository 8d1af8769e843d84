#ifndef LAC_SERVER_CLI_ENDING_H
#define LAC_SERVER_CLI_ENDING_H

/*
 * What a command made on disk and has not finished goes away when a person or a batch system ends
 * it: SIGINT, SIGTERM and SIGHUP first remove it, then end the program as they always do. A thread
 * waits for them, so removing may do anything. Signals that are ignored stay ignored.
 */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

struct lac_ending {
    void (*remove)(void *context);
    void *context;
    sigset_t before; /**< mask of the thread that began it */
    pthread_t thread;
    bool is_waiting; /**< the thread is there */
};

/** Begin before other threads are started: they must not take the signals. `remove` may be called
 *  on another thread until lac_ending_over(). Without a thread to wait, signals do as before. */
void lac_ending_begin(struct lac_ending *ending, void (*remove)(void *context), void *context);

/** There is nothing to remove any more. */
void lac_ending_over(struct lac_ending *ending);

#endif
