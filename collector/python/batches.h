#ifndef LAC_COLLECTOR_PYTHON_BATCHES_H
#define LAC_COLLECTOR_PYTHON_BATCHES_H

/*
 * What the patches of PyTorch's loader do for every batch, in one call each: to do it in Python
 * costs several times as much, most of all where the job's own code has filled the caches.
 *
 * Each calls the job's own function exactly once and gives back its result or its exception,
 * whatever fails in here. Functions of ours that are called on the way keep their own failures to
 * themselves; what comes out of them nevertheless is not an Exception (KeyboardInterrupt) and was
 * raised by a handler of the job's for a signal: the job gets it, as it would between any two lines.
 */

#include "collector/python/python_abi.h"

/** loader_begin(getattr): before all others */
py_object *lac_py_loader_begin(py_object *self, py_object *getattr);
/**
 * loader_calls(what, function or None): a function of ours that is called
 *   "known"(has_workers)       before a loader is asked for a batch, until None is set
 *   "taken"(iterator)          when it gave one
 *   "fetched"(ns)              when one was made, which took so long
 *   "collated"(made, batch, worker)
 */
py_object *lac_py_loader_calls(py_object *self, py_object *arguments);

/** wait(original, iterator): its next batch, inside loader.wait */
py_object *lac_py_wait(py_object *self, py_object *const *arguments, ssize_t count);
/** fetch(original, fetcher, arguments, named): a batch is made, inside loader.fetch */
py_object *lac_py_fetch(py_object *self, py_object *const *arguments, ssize_t count);
/** collating(collate, id of a fetcher): a function that does it inside loader.collate where that
 * fetcher makes a batch */
py_object *lac_py_collating(py_object *self, py_object *const *arguments, ssize_t count);
/** getting(queue), getting_next(queue): its `get` that remembers the batch it returned last, as the
 * one being made or as the one waited for */
py_object *lac_py_getting(py_object *self, py_object *queue);
py_object *lac_py_getting_next(py_object *self, py_object *queue);
/** packing(pickler, feeds, worker): its `dumps` that puts a batch inside loader.put, in the thread
 * in which feeds() is true */
py_object *lac_py_packing(py_object *self, py_object *const *arguments, ssize_t count);
/** unpacking(pickler): its `loads` inside loader.unpack, in a thread that takes batches */
py_object *lac_py_unpacking(py_object *self, py_object *pickler);

#endif
