#include "collector/python/batches.h"

#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "collector/python/here.h"
#include "collector/python/open_ranges.h"
#include "collector/python/python_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Functions of ours that are called on the way; NULL: no longer. */
static struct {
    py_object *known, *taken, *fetched, *collated;
} calls;

/* Python's getattr: of what is not there it makes no exception, unlike any function in C that every
 * version has. */
static py_object *get_attribute;
static struct {
    py_object *received, *yielded, *in_order, *get, *dumps, *loads;
} word;

/* Whether this thread feeds a queue of batches; asked once a thread. */
static __thread struct {
    const py_object *packing;
    bool feeds;
} fed;

static void open_range(const char *name, int64_t batch, int32_t worker)
{
    lac_range_open(name, strlen(name), batch, worker, true);
}

/* An exception of ours ends here. False: it is one of the job's. */
static bool is_ours(void)
{
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) {
        return false;
    }
    PyErr_Clear();
    return true;
}

/* What the job's own function gave, while ours are called. */
struct outcome {
    py_object *result; /* NULL: an exception */
    py_object *type, *value, *traceback;
};

static void set_aside(struct outcome *outcome, py_object *result)
{
    *outcome = (struct outcome){.result = result};
    if (result == NULL) {
        PyErr_Fetch(&outcome->type, &outcome->value, &outcome->traceback);
    }
}

static void drop(py_object *object)
{
    if (object != NULL) {
        Py_DecRef(object);
    }
}

/* `told` is what our function returned: it is not needed. */
static py_object *go_on(const struct outcome *outcome, py_object *told)
{
    if (told == NULL && !is_ours()) {
        drop(outcome->result);
        drop(outcome->type);
        drop(outcome->value);
        drop(outcome->traceback);
        return NULL;
    }
    drop(told);
    if (outcome->result == NULL) {
        PyErr_Restore(outcome->type, outcome->value, outcome->traceback);
    }
    return outcome->result;
}

/* Python: object.name, or None; a new reference. NULL: neither, see is_ours(). */
static py_object *attribute_of(py_object *object, py_object *name)
{
    return PyObject_CallFunctionObjArgs(get_attribute, object, name, &_Py_NoneStruct, NULL);
}

static bool is_long(const py_object *object)
{
    return (PyType_GetFlags(object->type) & PY_TYPE_IS_LONG) != 0;
}

/* The batch that an item of a queue belongs to: queues carry other messages, too. */
static bool number_in(py_object *item, int64_t *ret_number)
{
    py_object *first;
    long long number;

    if ((PyType_GetFlags(item->type) & PY_TYPE_IS_TUPLE) == 0 || PyTuple_Size(item) != 2) {
        return false;
    }
    first = PyTuple_GetItem(item, 0);
    if (first == NULL || !is_long(first)) {
        return false;
    }
    number = PyLong_AsLongLong(first);
    if (number == -1 && PyErr_Occurred() != NULL) {
        PyErr_Clear();
        return false;
    }
    *ret_number = number;
    return true;
}

/* Python: whether object.name is there and false. An exception: see is_ours(). */
static bool is_false(py_object *object, py_object *name)
{
    py_object *const found = attribute_of(object, name);
    int is_true = 1;

    if (found != NULL) {
        is_true = found == &_Py_NoneStruct ? 1 : PyObject_IsTrue(found);
        Py_DecRef(found);
    }
    return is_true == 0;
}

/* Which batch the iterator waits for, as the worker that makes it numbers it; -1: whichever comes
 * first. False: an exception of the job's. */
static bool number_of(py_object *iterator, int64_t *ret_number, bool *ret_has_workers)
{
    py_object *number = attribute_of(iterator, word.received);

    *ret_number = -1;
    *ret_has_workers = number != NULL && is_long(number);
    if (number != NULL && !*ret_has_workers) {
        Py_DecRef(number);
        number = attribute_of(iterator, word.yielded);
    }
    if (number != NULL && is_long(number) && /* `_in_order` is there from 2.6 on */
        !(*ret_has_workers && is_false(iterator, word.in_order)) && PyErr_Occurred() == NULL) {
        *ret_number = PyLong_AsLongLong(number);
    }
    drop(number);
    return PyErr_Occurred() == NULL || is_ours();
}

/* Before a loader is asked. False: an exception of the job's. */
static bool tell_known(bool has_workers)
{
    static bool is_known;
    py_object *const known = calls.known;
    py_object *told;

    if (known == NULL || (is_known && !has_workers)) {
        return true;
    }
    is_known = true;
    Py_IncRef(known); /* it may take itself away */
    told = PyObject_CallFunction(known, "i", (int)has_workers);
    Py_DecRef(known);
    drop(told);
    return told != NULL || is_ours();
}

py_object *lac_py_wait(py_object *self, py_object *const *arguments, ssize_t count)
{
    struct lac_here *const here = lac_here();
    py_object *result;
    int64_t number;
    bool has_workers;

    (void)self;
    (void)count;
    if (here->in_fetch != NULL) {
        return PyObject_CallFunctionObjArgs(arguments[0], arguments[1], NULL);
    }
    if (!number_of(arguments[1], &number, &has_workers) || !tell_known(has_workers)) {
        return NULL;
    }
    here->waiting = number;
    here->takes = true;
    open_range("loader.wait", number, -1);
    result = PyObject_CallFunctionObjArgs(arguments[0], arguments[1], NULL);
    lac_range_close();
    here->waiting = -1;
    here->takes = false;
    if (calls.taken != NULL) {
        py_object *const taken = calls.taken;
        struct outcome outcome;

        set_aside(&outcome, result);
        Py_IncRef(taken);
        result = go_on(&outcome, PyObject_CallFunctionObjArgs(taken, arguments[1], NULL));
        Py_DecRef(taken);
    }
    return result;
}

/* original(fetcher, *arguments, **named) */
static py_object *call_method(py_object *original, py_object *fetcher, py_object *arguments,
                              py_object *named)
{
    const ssize_t count = PyTuple_Size(arguments);
    py_object *all;
    py_object *result;

    if (count == 1 && PyDict_Size(named) == 0) { /* as PyTorch does */
        return PyObject_CallFunctionObjArgs(original, fetcher, PyTuple_GetItem(arguments, 0), NULL);
    }
    all = PyTuple_New(count + 1);
    if (all == NULL) {
        return NULL;
    }
    for (ssize_t i = 0; i <= count; i++) {
        py_object *const item = i == 0 ? fetcher : PyTuple_GetItem(arguments, i - 1);

        Py_IncRef(item);
        (void)PyTuple_SetItem(all, i, item);
    }
    result = PyObject_Call(original, all, named);
    Py_DecRef(all);
    return result;
}

py_object *lac_py_fetch(py_object *self, py_object *const *arguments, ssize_t count)
{
    struct lac_here *const here = lac_here();
    const int32_t worker = lac_here_worker(here);
    py_object *result;
    uint64_t began_ns;

    (void)self;
    (void)count;
    if (here->in_fetch != NULL) {
        return call_method(arguments[0], arguments[1], arguments[2], arguments[3]);
    }
    here->in_fetch = arguments[1];
    if (worker < 0) {
        lac_here_set_batch(here, here->waiting > 0 ? here->waiting : 0);
    }
    began_ns = calls.fetched != NULL ? lac_monotonic_ns() : 0;
    open_range("loader.fetch", lac_here_batch(here), worker);
    result = call_method(arguments[0], arguments[1], arguments[2], arguments[3]);
    lac_range_close();
    here->in_fetch = NULL;
    if (worker < 0) {
        lac_here_set_batch(here, -1);
    }
    if (calls.fetched != NULL && began_ns != 0) {
        py_object *const fetched = calls.fetched;
        struct outcome outcome;

        set_aside(&outcome, result);
        Py_IncRef(fetched);
        result = go_on(&outcome, PyObject_CallFunction(fetched, "L",
                                                       (long long)(lac_monotonic_ns() - began_ns)));
        Py_DecRef(fetched);
    }
    return result;
}

/* self: (collate, id of its fetcher) */
static py_object *collate(py_object *self, py_object *arguments, py_object *named)
{
    const struct lac_here *const here = lac_here();
    py_object *const original = PyTuple_GetItem(self, 0);
    const void *const fetcher = PyLong_AsVoidPtr(PyTuple_GetItem(self, 1));
    py_object *made;

    if (here->in_fetch == NULL || here->in_fetch != fetcher) {
        return PyObject_Call(original, arguments, named);
    }
    open_range("loader.collate", lac_here_batch(here), lac_here_worker(here));
    made = PyObject_Call(original, arguments, named);
    lac_range_close();
    if (made != NULL && calls.collated != NULL) {
        const struct outcome outcome = {.result = made};
        py_object *const collated = calls.collated;

        Py_IncRef(collated);
        made = go_on(&outcome,
                     PyObject_CallFunction(collated, "OLi", made, (long long)lac_here_batch(here),
                                           (int)lac_here_worker(here)));
        Py_DecRef(collated);
    }
    return made;
}

/* ---- queues */

static py_object *get(py_object *queue, py_object *arguments, py_object *named, bool is_next)
{
    py_object *const original = PyObject_GetAttr(queue, word.get);
    py_object *item;
    int64_t number;

    if (original == NULL) {
        return NULL;
    }
    item = PyObject_Call(original, arguments, named);
    Py_DecRef(original);
    if (item != NULL && number_in(item, &number)) {
        if (is_next) {
            lac_here()->waiting = number;
        } else {
            lac_here_set_batch(lac_here(), number);
        }
    }
    return item;
}

static py_object *get_batch(py_object *self, py_object *arguments, py_object *named)
{
    return get(self, arguments, named, false);
}

static py_object *get_next(py_object *self, py_object *arguments, py_object *named)
{
    return get(self, arguments, named, true);
}

/* Whether this thread is the one in which `packing` (pickler, feeds, worker) packs batches. False
 * with an exception: one of the job's. */
static bool feeds(py_object *packing)
{
    py_object *told;

    if (fed.packing == packing) {
        return fed.feeds;
    }
    told = PyObject_CallFunctionObjArgs(PyTuple_GetItem(packing, 1), NULL);
    if (told == NULL) {
        (void)is_ours();
        return false;
    }
    fed.feeds = PyObject_IsTrue(told) > 0;
    fed.packing = packing;
    Py_DecRef(told);
    return fed.feeds;
}

/* self: (pickler, feeds, worker) */
static py_object *dumps(py_object *self, py_object *arguments, py_object *named)
{
    int64_t number;
    const bool is_batch = PyTuple_Size(arguments) > 0 &&
                          number_in(PyTuple_GetItem(arguments, 0), &number) && feeds(self);
    py_object *original;
    py_object *packed;

    if (!is_batch && PyErr_Occurred() != NULL) {
        return NULL;
    }
    original = PyObject_GetAttr(PyTuple_GetItem(self, 0), word.dumps);
    if (original == NULL) {
        return NULL;
    }
    if (is_batch) {
        open_range("loader.put", number, (int32_t)PyLong_AsLong(PyTuple_GetItem(self, 2)));
    }
    packed = PyObject_Call(original, arguments, named);
    if (is_batch) {
        lac_range_close();
    }
    Py_DecRef(original);
    return packed;
}

/* self: the pickler */
static py_object *loads(py_object *self, py_object *arguments, py_object *named)
{
    const struct lac_here *const here = lac_here();
    py_object *const original = PyObject_GetAttr(self, word.loads);
    const bool takes = here->takes;
    py_object *unpacked;

    if (original == NULL) {
        return NULL;
    }
    if (takes) {
        open_range("loader.unpack", here->waiting, -1);
    }
    unpacked = PyObject_Call(original, arguments, named);
    if (takes) {
        lac_range_close();
    }
    Py_DecRef(original);
    return unpacked;
}

/* ---- what Python makes of these: functions that hold what they are for, as closures do */

enum { NAMED = PY_METHOD_VARARGS | PY_METHOD_NAMED };

static py_object *function_of(struct py_method *method, py_object *const *held, ssize_t count)
{
    py_object *const self = PyTuple_New(count);
    py_object *function;

    if (self == NULL) {
        return NULL;
    }
    for (ssize_t i = 0; i < count; i++) {
        Py_IncRef(held[i]);
        (void)PyTuple_SetItem(self, i, held[i]);
    }
    function = PyCFunction_NewEx(method, self, NULL);
    Py_DecRef(self);
    return function;
}

py_object *lac_py_collating(py_object *self, py_object *const *arguments, ssize_t count)
{
    static struct py_method method = {"collate_fn", PY_FUNCTION(collate), NAMED, NULL};

    (void)self;
    return function_of(&method, arguments, count);
}

py_object *lac_py_packing(py_object *self, py_object *const *arguments, ssize_t count)
{
    static struct py_method method = {"dumps", PY_FUNCTION(dumps), NAMED, NULL};

    (void)self;
    return function_of(&method, arguments, count);
}

py_object *lac_py_unpacking(py_object *self, py_object *pickler)
{
    static struct py_method method = {"loads", PY_FUNCTION(loads), NAMED, NULL};

    (void)self;
    return PyCFunction_NewEx(&method, pickler, NULL);
}

py_object *lac_py_getting(py_object *self, py_object *queue)
{
    static struct py_method method = {"get", PY_FUNCTION(get_batch), NAMED, NULL};

    (void)self;
    return PyCFunction_NewEx(&method, queue, NULL);
}

py_object *lac_py_getting_next(py_object *self, py_object *queue)
{
    static struct py_method method = {"get", PY_FUNCTION(get_next), NAMED, NULL};

    (void)self;
    return PyCFunction_NewEx(&method, queue, NULL);
}

py_object *lac_py_loader_calls(py_object *self, py_object *arguments)
{
    const struct {
        const char *name;
        py_object **place;
    } places[] = {{"known", &calls.known},
                  {"taken", &calls.taken},
                  {"fetched", &calls.fetched},
                  {"collated", &calls.collated}};
    const char *what = "";
    py_object *function = NULL;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "sO", &what, &function)) {
        return NULL;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(places); i++) {
        if (strcmp(what, places[i].name) == 0) {
            py_object *const before = *places[i].place;

            *places[i].place = function != &_Py_NoneStruct ? function : NULL;
            if (*places[i].place != NULL) {
                Py_IncRef(function);
            }
            drop(before);
        }
    }
    return py_none();
}

py_object *lac_py_loader_begin(py_object *self, py_object *getattr)
{
    (void)self;
    word.received = PyUnicode_InternFromString("_rcvd_idx");
    word.yielded = PyUnicode_InternFromString("_num_yielded");
    word.in_order = PyUnicode_InternFromString("_in_order");
    word.get = PyUnicode_InternFromString("get");
    word.dumps = PyUnicode_InternFromString("dumps");
    word.loads = PyUnicode_InternFromString("loads");
    if (word.received == NULL || word.yielded == NULL || word.in_order == NULL ||
        word.get == NULL || word.dumps == NULL || word.loads == NULL) {
        return NULL;
    }
    Py_IncRef(getattr);
    get_attribute = getattr;
    return py_none();
}
