#ifndef LAC_COLLECTOR_BASE_WRITE_SIGNALS_H
#define LAC_COLLECTOR_BASE_WRITE_SIGNALS_H

/*
 * SIGPIPE and SIGXFSZ come of writing, and would end a program that did not write: whoever writes
 * inside somebody else's process holds them, and takes what its own writing brought.
 */

#include <signal.h>

struct lac_write_signals {
    sigset_t before;
    sigset_t pending;
};

/** For the calling thread. Safe in a signal handler, as is the next. */
void lac_write_signals_hold(struct lac_write_signals *held);
void lac_write_signals_release(const struct lac_write_signals *held);

#endif
