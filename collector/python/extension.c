/*
 * _lacuna: what the Python hook calls to record. Each function is a few tens of ns; nothing here
 * raises: the job's own code never sees an exception of ours.
 */
#include "collector/base/old_symbols.h"
#include "collector/inject/api.h"
#include "collector/python/batches.h"
#include "collector/python/cpu_clock.h"
#include "collector/python/here.h"
#include "collector/python/interpreter_end.h"
#include "collector/python/open_ranges.h"
#include "collector/python/python_abi.h"
#include "collector/python/stacks.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const struct lacuna_api *api;

static int64_t wall_ns(void)
{
    struct timespec time;

    return clock_gettime(CLOCK_MONOTONIC, &time) == 0
               ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec
               : -1;
}

static py_object *py_push(py_object *self, py_object *name)
{
    ssize_t length = 0;
    const char *const text = PyUnicode_AsUTF8AndSize(name, &length);

    (void)self;
    if (text == NULL) {
        PyErr_Clear();
        lac_range_open("?", 1, -1, -1, false);
    } else {
        lac_range_open(text, (size_t)length, -1, -1, false);
    }
    return py_none();
}

/* push_loader(name, batch, worker): a range of the loader vocabulary, with its CPU time */
static py_object *py_push_loader(py_object *self, py_object *const *arguments, ssize_t count)
{
    ssize_t length = 0;
    const char *const text = count > 0 ? PyUnicode_AsUTF8AndSize(arguments[0], &length) : NULL;
    const long long batch = count > 1 ? PyLong_AsLongLong(arguments[1]) : -1;
    const long worker = count > 2 ? PyLong_AsLong(arguments[2]) : -1;

    (void)self;
    PyErr_Clear();
    lac_range_open(text != NULL ? text : "?", text != NULL ? (size_t)length : 1, batch,
                   (int32_t)worker, true);
    return py_none();
}

static py_object *py_pop(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    lac_range_close();
    return py_none();
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
    return py_none();
}

static py_object *py_step(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    api->step();
    return py_none();
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
    return py_none();
}

/* gpu_yield(yield, to) */
static py_object *py_gpu_yield(py_object *self, py_object *arguments)
{
    int yield = 0;
    const char *to = "";

    (void)self;
    if (PyArg_ParseTuple(arguments, "is", &yield, &to)) {
        void *const thread = PyEval_SaveThread(); /* CUPTI may take long to give its buffers back */

        api->gpu_yield(yield, to);
        PyEval_RestoreThread(thread);
    } else {
        PyErr_Clear();
    }
    return py_none();
}

/* identity(rank, world_size, group) */
static py_object *py_identity(py_object *self, py_object *arguments)
{
    int rank = -1;
    int world_size = 0;
    const char *group = "";

    (void)self;
    if (PyArg_ParseTuple(arguments, "iis", &rank, &world_size, &group)) {
        api->identity(rank, world_size, group);
    } else {
        PyErr_Clear();
    }
    return py_none();
}

/* -- watching a generator that gives batches -----------------------------------------------------
 *
 * CPython's profile functions are not in the stable ABI, but every version exports them alike: they
 * are looked up, and where they are not there nothing is watched.
 */

enum { PROFILE_CALL = 0, PROFILE_RETURN = 3, CALLS_MAX = 50000 };

/* The cost of looking at a call, and the largest share of the time that it may take: 1 / N. */
enum { CALL_NS = 30, COST_SHARE = 10, CALLS_FREE = 100 };

typedef int (*profile_function)(py_object *object, py_object *frame, int what, py_object *argument);

static void (*set_profile)(profile_function, py_object *);
static py_object *(*code_of_frame)(py_object *);
static void (*release)(py_object *);
static __thread const py_object *watched; /* the code; its owner is the hook */
static __thread const py_object *running; /* its frame, while it makes a batch */
static __thread long watched_calls;
static __thread int64_t watched_ns; /* until it is made: when it began; then how long it took */

static int on_profile(py_object *object, py_object *frame, int what, py_object *argument)
{
    (void)object;
    (void)argument;
    if (++watched_calls > CALLS_MAX && running == NULL) {
        set_profile(NULL, NULL);
    } else if (what == PROFILE_CALL && running == NULL) {
        py_object *const code = code_of_frame(frame);

        if (code == watched) {
            running = frame;
            watched_ns = wall_ns();
            lac_range_open("loader.wait", 11, -1, -1, true);
        }
        release(code);
    } else if (what == PROFILE_RETURN && frame == running) {
        running = NULL;
        watched_ns = wall_ns() - watched_ns;
        lac_range_close();
        set_profile(NULL, NULL);
    }
    return 0;
}

/* watch(code): a range around its next run in this thread. False: that cannot be done here */
static py_object *py_watch(py_object *self, py_object *code)
{
    (void)self;
    if (set_profile == NULL || code_of_frame == NULL) {
        *(void **)&set_profile = dlsym(RTLD_DEFAULT, "PyEval_SetProfile");
        *(void **)&code_of_frame = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
        *(void **)&release = dlsym(RTLD_DEFAULT, "Py_DecRef");
    }
    if (set_profile == NULL || code_of_frame == NULL || release == NULL) {
        return PyBool_FromLong(0);
    }
    watched = code;
    watched_calls = 0;
    watched_ns = 0;
    running = NULL;
    set_profile(on_profile, NULL);
    return PyBool_FromLong(1);
}

/* unwatch(): number of calls looked at; -1: too many for the time that they took */
static py_object *py_unwatch(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    if (watched != NULL) {
        set_profile(NULL, NULL);
        if (running != NULL) { /* its frame was left in a way that we did not see */
            running = NULL;
            lac_range_close();
        }
        watched = NULL;
    }
    return PyLong_FromLong(
        watched_calls > CALLS_MAX ||
                (watched_calls > CALLS_FREE && watched_calls * CALL_NS > watched_ns / COST_SHARE)
            ? -1
            : watched_calls);
}

/*
 * wait_asked(seen, ms): sleep without Python's lock until a launcher asks for stacks again. The
 * number of times that it asked; `seen` after so many ms (0: no limit), -1 where nobody can ask.
 */
static py_object *py_wait_asked(py_object *self, py_object *arguments)
{
    unsigned seen = 0;
    unsigned ms = 0;
    const uint32_t *const asked = api->asked();
    uint32_t now;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "II", &seen, &ms)) {
        PyErr_Clear();
    }
    if (asked == NULL) {
        return PyLong_FromLong(-1);
    }
    now = __atomic_load_n(asked, __ATOMIC_ACQUIRE);
    if (now == seen) {
        const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
        void *const thread = PyEval_SaveThread();

        lac_py_leave();
        (void)syscall(SYS_futex, asked, FUTEX_WAIT, seen, ms > 0 ? &limit : NULL, NULL, 0);
        lac_py_enter();
        PyEval_RestoreThread(thread);
        now = __atomic_load_n(asked, __ATOMIC_ACQUIRE);
    }
    return PyLong_FromLong((long)(now & INT_MAX));
}

/* rest(ms): sleep, in a thread of ours */
static py_object *py_rest(py_object *self, py_object *ms_object)
{
    const long ms = PyLong_AsLong(ms_object);
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    void *const thread = PyEval_SaveThread();

    (void)self;
    lac_py_leave();
    (void)nanosleep(&time, NULL);
    lac_py_enter();
    PyEval_RestoreThread(thread);
    return py_none();
}

/* metric(name, value): a result of the job */
static py_object *py_metric(py_object *self, py_object *arguments)
{
    const char *name = NULL;
    double value = 0;

    (void)self;
    if (PyArg_ParseTuple(arguments, "sd", &name, &value)) {
        api->metric(name, strlen(name), value);
    } else {
        PyErr_Clear();
    }
    return py_none();
}

/* cpu_clock_ns(): what reading the CPU clock of a thread costs on this machine, in ns */
static py_object *py_cpu_clock_ns(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromLong((long)lac_cpu_clock_cost_ns());
}

/* cpu_ns(): CPU time of this thread, as exact as that of ranges (cpu_clock.h) */
static py_object *py_cpu_ns(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromLong((long)lac_cpu_clock_now().cpu_ns);
}

/*
 * interpreter(): the number of the interpreter that calls, 0 is the main one; -1: this Python does
 * not say. Asking its module instead means to load that: 10 ms and more among PyTorch's libraries.
 */
static py_object *py_interpreter(py_object *self, py_object *unused)
{
    void *(*current)(void) = NULL;
    int64_t (*number_of)(void *) = NULL;

    (void)self;
    (void)unused;
    *(void **)&current = dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"); /* from 3.9 on */
    *(void **)&number_of = dlsym(RTLD_DEFAULT, "PyInterpreterState_GetID");
    return PyLong_FromLong(current != NULL && number_of != NULL ? (long)number_of(current()) : -1);
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
        lac_ranges_use(api);
        lac_stacks_use(api);
        lac_cpu_clock_begin();
    }
    return PyBool_FromLong(api != NULL);
}

static struct py_method methods[] = {
    {"load", py_load, PY_METHOD_NOARGS,
     "whether this process records; call it before anything else"},
    {"interpreter", py_interpreter, PY_METHOD_NOARGS,
     "number of this interpreter, 0: the main one, -1: unknown"},
    {"cpu_clock_ns", py_cpu_clock_ns, PY_METHOD_NOARGS, "what reading a thread's CPU clock costs"},
    {"cpu_ns", py_cpu_ns, PY_METHOD_NOARGS, "CPU time of this thread"},
    {"push", py_push, PY_METHOD_ONE, "open a range"},
    {"push_loader", PY_FUNCTION(py_push_loader), PY_METHOD_FAST,
     "open a loader range: name, batch, worker"},
    {"pop", py_pop, PY_METHOD_NOARGS, "close the innermost range"},
    {"setting", py_setting, PY_METHOD_ONE, "record key=value"},
    {"step", py_step, PY_METHOD_NOARGS, "a training step has ended"},
    {"value", py_value, PY_METHOD_VARARGS, "a number of the innermost range"},
    {"metric", py_metric, PY_METHOD_VARARGS, "a result of the job has a value: name, value"},
    {"gpu_yield", py_gpu_yield, PY_METHOD_VARARGS,
     "leave the GPU to another profiler, or take it back"},
    {"identity", py_identity, PY_METHOD_VARARGS, "which rank of how many, of which group"},
    {"watch", py_watch, PY_METHOD_ONE, "a loader.wait around the next run of a generator's code"},
    {"unwatch", py_unwatch, PY_METHOD_NOARGS, "watch no more: how many calls were looked at"},
    {"worker_begins", lac_py_worker_begins, PY_METHOD_VARARGS,
     "this thread or process is a loader's worker: number, is_thread"},
    {"loader_begin", lac_py_loader_begin, PY_METHOD_ONE, "before the following: getattr"},
    {"loader_calls", lac_py_loader_calls, PY_METHOD_VARARGS, "what, a function of ours or None"},
    {"wait", PY_FUNCTION(lac_py_wait), PY_METHOD_FAST, "original, iterator"},
    {"fetch", PY_FUNCTION(lac_py_fetch), PY_METHOD_FAST, "original, fetcher, arguments, named"},
    {"collating", PY_FUNCTION(lac_py_collating), PY_METHOD_FAST, "collate, id of a fetcher"},
    {"getting", lac_py_getting, PY_METHOD_ONE, "a queue of numbers of batches to make"},
    {"getting_next", lac_py_getting_next, PY_METHOD_ONE, "a queue of batches"},
    {"packing", PY_FUNCTION(lac_py_packing), PY_METHOD_FAST, "pickler, feeds, worker"},
    {"unpacking", lac_py_unpacking, PY_METHOD_ONE, "a pickler"},
    {"thread_begins", lac_py_thread_begins, PY_METHOD_NOARGS, "before a thread of ours is started"},
    {"thread_started", lac_py_thread_started, PY_METHOD_NOARGS,
     "after thread_begins() and the start of the thread"},
    {"thread_ends", lac_py_thread_ends, PY_METHOD_NOARGS, "the last thing that such a thread does"},
    {"end", lac_py_end, PY_METHOD_NOARGS, "for atexit: our threads stop"},
    {"wait_asked", py_wait_asked, PY_METHOD_VARARGS,
     "sleep until a launcher asks for stacks: seen, ms"},
    {"rest", py_rest, PY_METHOD_ONE, "sleep, in a thread of ours: ms"},
    {"stack_begin", lac_py_stack_begin, PY_METHOD_VARARGS,
     "before the first look at stacks: threads, sys._current_frames, gc's functions"},
    {"stack_run", lac_py_stack_run, PY_METHOD_VARARGS,
     "look at stacks: ident of the main thread, how many times"},
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
    py_object *const module = PyModule_Create2(&definition, PY_ABI_VERSION);
    py_object *const here = module != NULL ? lac_here_object() : NULL;

    if (here == NULL || PyModule_AddObject(module, "here", here) != 0) {
        if (here != NULL) {
            Py_DecRef(here);
        }
        if (module != NULL) {
            Py_DecRef(module);
        }
        return NULL;
    }
    return module;
}
