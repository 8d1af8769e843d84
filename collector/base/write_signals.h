#ifndef LAC_COLLECTOR_BASE_WRITE_SIGNALS_H
#define LAC_COLLECTOR_BASE_WRITE_SIGNALS_H

/*
 * SIGPIPE and SIGXFSZ come of writing, and would end a program that did not write: whoever writes
 * inside somebody else's process holds them, and takes what its own writing brought. All others are
 * the process's own: no thread that we start there takes one.
 */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct lac_write_signals {
    sigset_t before;
    sigset_t pending;
};

/** For the calling thread. Safe in a signal handler, as is the next. */
void lac_write_signals_hold(struct lac_write_signals *held);
void lac_write_signals_release(const struct lac_write_signals *held);

/** Start a thread that begins with all signals blocked. @return false: the system refused */
static inline bool lac_quiet_thread(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    bool has_begun;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    has_begun = pthread_create(ret_thread, NULL, run, argument) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return has_begun;
}

#endif
