#ifndef LAC_COLLECTOR_PYTHON_STACKS_H
#define LAC_COLLECTOR_PYTHON_STACKS_H

/*
 * Python's stacks, 50 times a second. A thread of the hook's keeps the time. The look itself is a
 * pending call, which the main thread makes between two instructions of Python: no thread has to
 * give Python's lock away for it, and what is found is what was running. Where the main thread runs
 * no Python (it waits, or computes in a library that gave the lock away) our thread takes the lock
 * and looks: to wait for it first would show but the places where libraries give it away.
 *
 * A look is C alone and never lets go of the lock: no other code runs meanwhile, so no frame ends
 * while we hold a reference to it, and nothing of the job's is destroyed or collected by us.
 */

#include "collector/inject/api.h"
#include "collector/python/python_abi.h"

/** The recorder to write to; called once, when it is there. */
void lac_stacks_use(const struct lacuna_api *api);

/** stack_begin(sys.hexversion, threads, current_frames, gc_isenabled, gc_disable, gc_enable) */
py_object *lac_py_stack_begin(py_object *self, py_object *arguments);
/**
 * stack_run(ident of the main thread, looks): look so many times. Without looks: rest for a second.
 * -> looks that were taken; 0: recording pauses (it waited for a change of that); -1: it is over
 */
py_object *lac_py_stack_run(py_object *self, py_object *arguments);

#endif
