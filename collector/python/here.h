#ifndef LAC_COLLECTOR_PYTHON_HERE_H
#define LAC_COLLECTOR_PYTHON_HERE_H

/*
 * What each thread is doing, as far as batches go: `_lacuna.here` to Python, whose attributes cost
 * far less than those of a threading.local. In a process of a loader's worker all threads share
 * which batch it makes, so that a data set's work in threads of its own is named, too. Under
 * Python's lock, all of it.
 */

#include "collector/python/python_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_here {
    int64_t batch;   /**< being made; -1: none */
    int64_t waiting; /**< batch that the training process waits for; -1: none */
    const void
        *in_fetch;  /**< who makes it: a loader inside a data set is part of the outer batch */
    int32_t worker; /**< that makes it; -1: the training process itself */
    bool takes;     /**< batches out of the workers' queue */
    bool in_item;   /**< an item of a data set inside another one is part of that */
    bool in_module;
    bool in_pin;
    bool in_step;
    bool in_framework; /**< in a step that a framework says is one */
    bool in_named;     /**< in a loader that is not PyTorch's */
};

/** Of the calling thread; `batch` and `worker` only by the functions below. */
struct lac_here *lac_here(void);

int64_t lac_here_batch(const struct lac_here *here);
int32_t lac_here_worker(const struct lac_here *here);
void lac_here_set_batch(struct lac_here *here, int64_t batch);

/** worker_begins(number, is_thread): this thread, or this process, is a loader's worker. */
py_object *lac_py_worker_begins(py_object *self, py_object *arguments);

/** A new `here`; NULL with an exception of Python's. */
py_object *lac_here_object(void);

#endif
