#ifndef LAC_COLLECTOR_BASE_ENTRY_H
#define LAC_COLLECTOR_BASE_ENTRY_H

/*
 * What the launcher found when it began (signals that are blocked or ignored, limits) and what it
 * changes for itself. A program that it starts gets everything back as it was.
 */

#include <stdbool.h>
#include <stdint.h>

/** Signals as the kernel counts them: bit N - 1 is signal N. */
#define LAC_SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))

enum { LAC_SIGNAL_MAX = 64 };

/**
 * Remember what is; then hold every signal that can be held (lac_signals_wait() takes them) and
 * wait for children ourselves. Limits of open files are remembered for whoever raises them later.
 *
 * Call before there is a second thread: threads inherit what is held. Signals that a fault raises
 * are not held; lac_rescue_begin() sees to them.
 */
void lac_entry_take(void);

/** As it was, for a program that is executed next. Safe in a child between fork and exec. */
void lac_entry_give_back(void);

/** Whether the signal was ignored when the launcher began. */
bool lac_entry_ignores(int signal);

/** Hold exactly the signals of this set in the calling thread. Also 32 and 33, which the C library
 * keeps for itself. */
void lac_entry_hold(uint64_t set);

/** What lac_entry_take() holds. */
uint64_t lac_entry_held(void);

#endif
