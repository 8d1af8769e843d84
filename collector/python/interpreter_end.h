#ifndef LAC_COLLECTOR_PYTHON_INTERPRETER_END_H
#define LAC_COLLECTOR_PYTHON_INTERPRETER_END_H

/*
 * Our threads stop before the interpreter ends. Python does not wait for them, and once its
 * interpreter is gone, Py_AddPendingCall() and PyEval_RestoreThread() read memory that was freed
 * (to 3.12; later ones have other ways to misbehave). So what Python runs at exit, before it takes
 * anything apart, waits until each of our threads either sleeps without Python's lock or is parked.
 */

#include "collector/python/python_abi.h"

#include <stdbool.h>

/** Without Python's lock, before anything that needs the interpreter. Parks for good at its end. */
void lac_py_enter(void);
/** What follows needs no interpreter, until lac_py_enter(). */
void lac_py_leave(void);
/** Whether the interpreter ends in this process: nothing of ours begins anymore. */
bool lac_py_is_ending(void);

/** thread_begins(): before a thread of ours is started. It is inside until lac_py_leave(). The thread
 *  that starts it blocks all signals until thread_started(), so that it begins with all blocked: a
 *  signal is never delivered to a thread of ours, which would defeat the job's own mask. */
py_object *lac_py_thread_begins(py_object *self, py_object *unused);
/** thread_started(): by the thread that called thread_begins(), also where the start has failed. */
py_object *lac_py_thread_started(py_object *self, py_object *unused);
/** thread_ends(): the last thing that a thread of ours does, or instead of its start. */
py_object *lac_py_thread_ends(py_object *self, py_object *unused);
/** end(): for atexit. Waits for our threads, a second at most. */
py_object *lac_py_end(py_object *self, py_object *unused);

#endif
