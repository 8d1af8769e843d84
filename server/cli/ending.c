#include "server/cli/ending.h"

#include "collector/base/count_of.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = LAC_COUNT_OF(SIGNALS) };

/** Those that would end the program now. */
static void fill(sigset_t *set)
{
    (void)sigemptyset(set);
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action;
        if (sigaction(SIGNALS[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
            (void)sigaddset(set, SIGNALS[i]);
        }
    }
}

static void *wait_for_signal(void *context)
{
    const struct lac_ending *ending = context;
    sigset_t set;
    int number = 0;

    fill(&set);
    if (sigwait(&set, &number) == 0) {
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        ending->remove(ending->context);
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        (void)raise(number);
    }
    return NULL;
}

void lac_ending_begin(struct lac_ending *ending, void (*remove)(void *context), void *context)
{
    sigset_t set;

    *ending = (struct lac_ending){.remove = remove, .context = context};
    fill(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, &ending->before);
    ending->is_waiting = pthread_create(&ending->thread, NULL, wait_for_signal, ending) == 0;
    if (!ending->is_waiting) {
        (void)pthread_sigmask(SIG_SETMASK, &ending->before, NULL);
    }
}

void lac_ending_over(struct lac_ending *ending)
{
    if (ending->is_waiting) {
        (void)pthread_cancel(ending->thread);
        (void)pthread_join(ending->thread, NULL);
        (void)pthread_sigmask(SIG_SETMASK, &ending->before, NULL);
        ending->is_waiting = false;
    }
}
