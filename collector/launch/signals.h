#ifndef LAC_COLLECTOR_LAUNCH_SIGNALS_H
#define LAC_COLLECTOR_LAUNCH_SIGNALS_H

/*
 * Signals that reach the launcher, one by one and in the kernel's order: lac_entry_take() holds
 * them, so none interrupts anything, none is lost, and none ends the launcher.
 */

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct lac_signal {
    int number;
    bool is_from_terminal; /**< the kernel sent it to the whole foreground group */
    siginfo_t info;
};

/** Sleep for `ms` milliseconds or until a signal comes. What our own work raises, such as SIGPIPE
 * of a standard error that nobody reads or SIGXFSZ of a file that may not grow, is dropped.
 * @return whether one came */
bool lac_signals_wait(struct lac_signal *ret, long ms);

/** Whether this only says that a child of ours has changed. */
bool lac_signal_is_of_child(const struct lac_signal *signal);

/** Send it on, with its value if it has one. `pid` < 0: to a process group. */
void lac_signal_pass_on(const struct lac_signal *signal, pid_t pid);

/** Let a signal that the launcher has sent to itself act now, as it acts by default. If it stops
 * us, this returns when somebody lets us go on; that SIGCONT is taken. */
void lac_signals_let(int signal);

/**
 * From now on SIGINT, SIGQUIT, SIGTERM and SIGHUP end the launcher at once, with `exit_status` and
 * with `words` on standard error; those that were ignored on entry still do nothing.
 *
 * @param words borrowed for good
 */
void lac_signals_end_with(int exit_status, const char *words);

#endif
