#ifndef LAC_COLLECTOR_PYTHON_RUN_MARK_H
#define LAC_COLLECTOR_PYTHON_RUN_MARK_H

/*
 * Whether a thread has kept its core since a mark, without a system call. The kernel clears
 * `rseq_cs` (restartable sequences, linux/rseq.h) of a thread that it takes off its core, or gives
 * a signal to, outside of the sequence named there; so we name one that is never run. glibc
 * registers each thread from 2.35 on. Where it did not, no mark holds.
 */

#include <stdbool.h>

/** Look for what glibc registered; before the others, once per process. */
void lac_run_mark_begin(void);
/** Mark this thread now. Another user of rseq in the process may take the mark away, no more. */
void lac_run_mark_set(void);
/** Whether it has run without a break since; false where that is not known. */
bool lac_run_mark_holds(void);
/** In a forked child: the mark was its parent's. */
void lac_run_mark_drop(void);

#endif
