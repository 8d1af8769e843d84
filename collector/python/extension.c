/*
 * _lacuna: what the Python hook calls to record. Each function is a few tens of ns; nothing here
 * raises: the job's own code never sees an exception of ours.
 */
#include "collector/inject/api.h"
#include "collector/inject/old_symbols.h"
#include "collector/python/python_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { DEPTH_MAX = 64 };

static const struct lacuna_api *api;
static __thread int depth;
static __thread int64_t cpu_at_start[DEPTH_MAX]; /* < 0: not measured */

static py_object *none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec time;

    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0
               ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec
               : -1;
}

static void open_range(const char *name, size_t length, int64_t batch, int32_t worker,
                       int measure_cpu)
{
    if (depth < DEPTH_MAX) {
        cpu_at_start[depth] = measure_cpu ? thread_cpu_ns() : -1;
    }
    depth++;
    api->push(name, length, batch, worker);
}

static py_object *py_push(py_object *self, py_object *name)
{
    ssize_t length = 0;
    const char *const text = PyUnicode_AsUTF8AndSize(name, &length);

    (void)self;
    if (text == NULL) {
        PyErr_Clear();
        open_range("?", 1, -1, -1, 0);
    } else {
        open_range(text, (size_t)length, -1, -1, 0);
    }
    return none();
}

/* push_loader(name, batch, worker): a range of the loader vocabulary, with its CPU time */
static py_object *py_push_loader(py_object *self, py_object *arguments)
{
    const char *text = "?";
    long long batch = -1;
    int worker = -1;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "sLi", &text, &batch, &worker)) {
        PyErr_Clear();
    }
    open_range(text, strlen(text), batch, worker, 1);
    return none();
}

static py_object *py_pop(py_object *self, py_object *unused)
{
    int64_t cpu_ns = -1;

    (void)self;
    (void)unused;
    if (depth > 0) {
        depth--;
        if (depth < DEPTH_MAX && cpu_at_start[depth] >= 0) {
            cpu_ns = thread_cpu_ns() - cpu_at_start[depth];
        }
        api->pop(cpu_ns);
    }
    return none();
}

static py_object *py_setting(py_object *self, py_object *text_object)
{
    ssize_t length = 0;
    const char *const text = PyUnicode_AsUTF8AndSize(text_object, &length);

    (void)self;
    if (text == NULL) {
        PyErr_Clear();
    } else {
        api->setting(text, (size_t)length);
    }
    return none();
}

static py_object *py_step(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    api->step();
    return none();
}

/* value(number): of the range that was opened last */
static py_object *py_value(py_object *self, py_object *arguments)
{
    unsigned long long number = 0;

    (void)self;
    if (PyArg_ParseTuple(arguments, "K", &number)) {
        api->value(number);
    } else {
        PyErr_Clear();
    }
    return none();
}

/* gpu_yield(yield, to) */
static py_object *py_gpu_yield(py_object *self, py_object *arguments)
{
    int yield = 0;
    const char *to = "";

    (void)self;
    if (PyArg_ParseTuple(arguments, "is", &yield, &to)) {
        api->gpu_yield(yield, to);
    } else {
        PyErr_Clear();
    }
    return none();
}

/* load(): True when this process records */
static py_object *py_load(py_object *self, py_object *unused)
{
    const char *const path = getenv("LACUNA_LIBRARY");

    (void)self;
    (void)unused;
    if (api == NULL && path != NULL && path[0] == '/') {
        void *const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        const struct lacuna_api *(*get_api)(void) = NULL;

        if (library != NULL) {
            *(void **)&get_api = dlsym(library, "lacuna_get_api");
        }
        api = get_api != NULL ? get_api() : NULL;
        if (api != NULL && api->version != LACUNA_API_VERSION) {
            api = NULL;
        }
    }
    return PyBool_FromLong(api != NULL);
}

static struct py_method methods[] = {
    {"load", py_load, PY_METHOD_NOARGS,
     "whether this process records; call it before anything else"},
    {"push", py_push, PY_METHOD_ONE, "open a range"},
    {"push_loader", py_push_loader, PY_METHOD_VARARGS, "open a loader range: name, batch, worker"},
    {"pop", py_pop, PY_METHOD_NOARGS, "close the innermost range"},
    {"setting", py_setting, PY_METHOD_ONE, "record key=value"},
    {"step", py_step, PY_METHOD_NOARGS, "a training step has ended"},
    {"value", py_value, PY_METHOD_VARARGS, "a number of the innermost range"},
    {"gpu_yield", py_gpu_yield, PY_METHOD_VARARGS,
     "leave the GPU to another profiler, or take it back"},
    {NULL, NULL, 0, NULL},
};

static struct py_module_definition definition = {
    .base = {.object = {.reference_count = 1}},
    .name = "_lacuna",
    .doc = "recording of ranges",
    .state_bytes = -1,
    .methods = methods,
};

__attribute__((visibility("default"))) py_object *PyInit__lacuna(void);

py_object *PyInit__lacuna(void)
{
    return PyModule_Create2(&definition, PY_ABI_VERSION);
}
