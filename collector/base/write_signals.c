#include "collector/base/write_signals.h"

#include "collector/base/count_of.h"
#include "collector/base/old_symbols.h" /* IWYU pragma: keep */

#include <signal.h>
#include <stddef.h>
#include <time.h>

static const int signals[] = {
    SIGPIPE, /* a pipe that nobody reads */
    SIGXFSZ, /* a limit of file sizes */
};

void lac_write_signals_hold(struct lac_write_signals *held)
{
    sigset_t all;

    (void)sigemptyset(&all);
    for (size_t i = 0; i < LAC_COUNT_OF(signals); i++) {
        (void)sigaddset(&all, signals[i]);
    }
    (void)sigpending(&held->pending);
    (void)pthread_sigmask(SIG_BLOCK, &all, &held->before);
}

void lac_write_signals_release(const struct lac_write_signals *held)
{
    const struct timespec now = {0};
    sigset_t pending;
    sigset_t one;

    (void)sigpending(&pending);
    for (size_t i = 0; i < LAC_COUNT_OF(signals); i++) {
        if (sigismember(&pending, signals[i]) == 1 &&
            sigismember(&held->pending, signals[i]) == 0) {
            (void)sigemptyset(&one);
            (void)sigaddset(&one, signals[i]);
            (void)sigtimedwait(&one, NULL, &now);
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}
