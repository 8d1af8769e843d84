#include "collector/python/stacks.h"

#include "collector/base/old_symbols.h"
#include "collector/inject/api.h"
#include "collector/python/interpreter_end.h"
#include "collector/python/python_abi.h"
#include "lacuna/spool.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS_MAX = 256,
    SLOTS = 65536,          /* a power of two */
    PLACES_MAX = SLOTS / 2, /* in these; those of our own code included, which get no frame */
    NAME_BYTES = 1024,
    NAME_PART_BYTES = 480, /* of a path, its end; of a function, its beginning */
    COST_SHARE = 100,      /* looks take 1/100 of the time at most: else they are rarer */
    PERIODS_BETWEEN_MAX = 50,
    LOOK_WHETHER_ON_MS = 2000,    /* where nobody wakes us */
    REST_NS = 1000000000,         /* while another tool has the stacks */
    TAKE_LOCK_AFTER_NS = 1000000, /* where the main thread runs no Python meanwhile */
    SHORT_INTERVAL_US = 20,
    NUMBER_LOST = -1,
};

#define VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)

/* A line of code under a caller. Its code is held, so that the address means nothing else. */
struct place {
    const py_object *code; /* NULL: a free slot */
    uint32_t caller;
    uint32_t line;
    uint32_t number; /* of the frame; that of the caller where the code is ours */
};

static const struct lacuna_api *recorder;
static struct place *places; /* SLOTS of them */
static uint32_t place_count;
static uint32_t frame_count;
static pid_t owner; /* the process whose spool has these frames */

static py_object *threads; /* {ident: threading.Thread} */
static py_object *current_frames;
static py_object *gc_isenabled;
static py_object *gc_disable;
static py_object *gc_enable;
static struct {
    py_object *native_id, *code, *back, *file, *function, *first_line;
} word;

static uint32_t python_version; /* as Py_Version has it */
static void (*set_interval)(unsigned long us);
static unsigned long (*get_interval)(void);
static long main_ident;
static void *own_thread; /* of Python, while it does not have the lock */

/* the clock of the looks */
static int64_t last_ns;    /* 0: recording paused */
static int64_t cost_ns;    /* of a look, lately */
static uint32_t due;       /* periods that the look stands for that is to be taken; 0: none is */
static uint32_t is_queued; /* among the pending calls of the main thread */

void lac_stacks_use(const struct lacuna_api *api)
{
    recorder = api;
}

static int64_t now_ns(void)
{
    struct timespec time;

    return clock_gettime(CLOCK_MONOTONIC, &time) == 0
               ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec
               : 0;
}

static void keep(py_object **place, py_object *object)
{
    Py_IncRef(object);
    *place = object; /* for good: who looks never ends before the process does */
}

py_object *lac_py_stack_begin(py_object *self, py_object *arguments)
{
    py_object *given[5];

    (void)self;
    if (!PyArg_ParseTuple(arguments, "IOOOOO", &python_version, &given[0], &given[1], &given[2],
                          &given[3], &given[4])) {
        PyErr_Clear();
        return PyBool_FromLong(0);
    }
    if (owner != getpid()) { /* a forked child has a spool of its own */
        if (places != NULL) {
            memset(places, 0, SLOTS * sizeof(*places));
        }
        place_count = frame_count = 0;
        owner = getpid();
    }
    if (places == NULL) {
        void *const memory = mmap(NULL, SLOTS * sizeof(*places), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED) {
            return PyBool_FromLong(0);
        }
        places = memory;
        word.native_id = PyUnicode_InternFromString("_native_id");
        word.code = PyUnicode_InternFromString("f_code");
        word.back = PyUnicode_InternFromString("f_back");
        word.file = PyUnicode_InternFromString("co_filename");
        word.function = PyUnicode_InternFromString("co_name");
        word.first_line = PyUnicode_InternFromString("co_firstlineno");
    }
    if (PyErr_Occurred() != NULL) {
        PyErr_Clear();
        return PyBool_FromLong(0);
    }
    /* not of the stable interface, but there under these names in every version that needs them */
    *(void **)&set_interval = dlsym(RTLD_DEFAULT, "_PyEval_SetSwitchInterval");
    *(void **)&get_interval = dlsym(RTLD_DEFAULT, "_PyEval_GetSwitchInterval");
    keep(&threads, given[0]);
    keep(&current_frames, given[1]);
    keep(&gc_isenabled, given[2]);
    keep(&gc_disable, given[3]);
    keep(&gc_enable, given[4]);
    last_ns = cost_ns = 0;
    due = is_queued = 0;
    return PyBool_FromLong(1);
}

/* ---- when to look */

static int64_t periods_between(void)
{
    const int64_t allowed_ns = (int64_t)LAC_STACK_PERIOD_NS / COST_SHARE;
    const int64_t periods = 1 + cost_ns / allowed_ns;

    return periods < PERIODS_BETWEEN_MAX ? periods : PERIODS_BETWEEN_MAX;
}

static void sleep_until(int64_t ns)
{
    const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = (long)(ns % 1000000000)};

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* ---- a look is due: the main thread takes it, or we do */

static void look(uint32_t periods);

/* Called by the main thread between two instructions of Python. */
static int on_pending(void *unused)
{
    uint32_t periods;

    (void)unused;
    __atomic_store_n(&is_queued, 0, __ATOMIC_RELAXED);
    periods = __atomic_exchange_n(&due, 0, __ATOMIC_ACQ_REL);
    if (periods != 0 && owner == getpid() && !lac_py_is_ending()) {
        look(periods);
        (void)syscall(SYS_futex, &due, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return 0;
}

/*
 * To 3.8 and from 3.13 on a pending call that another thread asks for is made at once. Between these
 * the main thread sees it when it takes the lock, or is to give it away, which a thread that waits
 * for it asks for after the switch interval, 5 ms: what runs for less than that between two calls
 * of libraries would never be found. So it is short while we begin to wait. In 3.12 it cannot be
 * set without the lock, and a look may be late by 5 ms.
 */
static bool is_prompt(void)
{
    return python_version < VERSION(3, 9) || python_version >= VERSION(3, 13);
}

static void take_lock(void)
{
    const bool is_short = set_interval != NULL && get_interval != NULL && !is_prompt() &&
                          python_version < VERSION(3, 12);
    const unsigned long usual_us = is_short ? get_interval() : 0;

    if (is_short) {
        set_interval(SHORT_INTERVAL_US);
    }
    PyEval_RestoreThread(own_thread);
    if (is_short && get_interval() == SHORT_INTERVAL_US) { /* else the job has set another one */
        set_interval(usual_us);
    }
}

/* Without Python's lock. */
static void have_a_look(uint32_t periods)
{
    const struct timespec limit = {.tv_nsec = TAKE_LOCK_AFTER_NS};

    lac_py_enter();
    __atomic_store_n(&due, periods, __ATOMIC_RELEASE);
    if (!__atomic_exchange_n(&is_queued, 1, __ATOMIC_RELAXED) &&
        Py_AddPendingCall(on_pending, NULL) != 0) {
        __atomic_store_n(&is_queued, 0, __ATOMIC_RELAXED);
    }
    if (is_prompt()) {
        (void)syscall(SYS_futex, &due, FUTEX_WAIT_PRIVATE, periods, &limit, NULL, 0);
    }
    if (__atomic_load_n(&due, __ATOMIC_ACQUIRE) != 0) {
        take_lock();
        periods = __atomic_exchange_n(&due, 0, __ATOMIC_ACQ_REL);
        if (periods != 0) {
            look(periods);
        }
        own_thread = PyEval_SaveThread();
    }
    lac_py_leave();
}

/* The periods that have passed, when one has. */
static uint32_t next_period(void)
{
    int64_t periods;

    last_ns = last_ns == 0 ? now_ns() : last_ns;
    sleep_until(last_ns + periods_between() * (int64_t)LAC_STACK_PERIOD_NS);
    periods = (now_ns() - last_ns) / (int64_t)LAC_STACK_PERIOD_NS;
    last_ns += periods * (int64_t)LAC_STACK_PERIOD_NS;
    return periods < 1 ? 1 : periods < UINT8_MAX ? (uint32_t)periods : UINT8_MAX;
}

/* Waits for the stop word to change. */
static void sleep_paused(const uint32_t *stop, uint32_t wish)
{
    const struct timespec limit = {.tv_sec = LOOK_WHETHER_ON_MS / 1000};

    last_ns = 0;
    (void)syscall(SYS_futex, stop, FUTEX_WAIT, wish, &limit, NULL, 0);
}

py_object *lac_py_stack_run(py_object *self, py_object *arguments)
{
    const uint32_t *const stop = places != NULL ? recorder->stop() : NULL;
    unsigned looks_max = 0;
    unsigned looks = 0;
    uint32_t wish = LAC_SPOOL_STOP;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "lI", &main_ident, &looks_max) || stop == NULL) {
        PyErr_Clear();
        return PyLong_FromLong(-1);
    }
    own_thread = PyEval_SaveThread();
    lac_py_leave();
    wish = __atomic_load_n(stop, __ATOMIC_ACQUIRE);
    if (wish != LAC_SPOOL_RECORD && wish != LAC_SPOOL_STOP) {
        sleep_paused(stop, wish);
    }
    if (wish == LAC_SPOOL_RECORD && looks_max == 0) {
        sleep_until(now_ns() + REST_NS);
        looks = 1;
    }
    while (wish == LAC_SPOOL_RECORD && looks < looks_max) {
        const uint32_t periods = next_period();

        wish = __atomic_load_n(stop, __ATOMIC_ACQUIRE);
        if (wish == LAC_SPOOL_RECORD) {
            have_a_look(periods);
            looks++;
        }
    }
    lac_py_enter();
    PyEval_RestoreThread(own_thread);
    return PyLong_FromLong(wish == LAC_SPOOL_STOP     ? -1L
                           : wish == LAC_SPOOL_RECORD ? (long)looks
                                                      : 0L);
}

/* ---- a look */

static const char *text_of(py_object *object, ssize_t *ret_length)
{
    const char *text = NULL;

    if (object != NULL) {
        text = PyUnicode_AsUTF8AndSize(object, ret_length);
    }
    if (text == NULL) {
        PyErr_Clear();
        *ret_length = 1;
        return "?";
    }
    return text;
}

/* "path(first line): function" into `out`. False: it is code of ours */
static bool name_of(py_object *code, char *out, size_t *ret_length)
{
    static const char own[] = "/_lacuna";
    py_object *const file = PyObject_GetAttr(code, word.file);
    py_object *const function = PyObject_GetAttr(code, word.function);
    py_object *const first = PyObject_GetAttr(code, word.first_line);
    const long line = first != NULL ? PyLong_AsLong(first) : 0;
    ssize_t path_length = 0;
    ssize_t name_length = 0;
    const char *path = text_of(file, &path_length);
    const char *const name = text_of(function, &name_length);
    const char *base = path + path_length;
    bool is_own;
    int length;

    PyErr_Clear();
    while (base > path && base[-1] != '/') {
        base--;
    }
    is_own = base > path && (size_t)(path + path_length - base) >= sizeof(own) - 2 &&
             memcmp(base - 1, own, sizeof(own) - 1) == 0;
    if (path_length > NAME_PART_BYTES) {
        path += path_length - NAME_PART_BYTES;
        path_length = NAME_PART_BYTES;
    }
    length = snprintf(out, NAME_BYTES, "%.*s(%ld): %.*s", (int)path_length, path, line,
                      (int)(name_length < NAME_PART_BYTES ? name_length : NAME_PART_BYTES), name);
    *ret_length = length > 0 ? (size_t)length : 0;
    if (file != NULL) {
        Py_DecRef(file);
    }
    if (function != NULL) {
        Py_DecRef(function);
    }
    if (first != NULL) {
        Py_DecRef(first);
    }
    return !is_own;
}

static struct place *slot_of(const py_object *code, uint32_t caller, uint32_t line)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)code >> 4) * 0x9e3779b97f4a7c15u ^
                           ((uint64_t)caller << 32 | line) * 0xff51afd7ed558ccdu;
    uint32_t at = (uint32_t)(mixed >> 40) & (SLOTS - 1);

    while (places[at].code != NULL &&
           (places[at].code != code || places[at].caller != caller || places[at].line != line)) {
        at = (at + 1) & (SLOTS - 1);
    }
    return &places[at];
}

/* Number of the frame for a line of code under a caller, defined if it is new. */
static int64_t number_of(py_object *code, uint32_t caller, uint32_t line)
{
    struct place *const place = slot_of(code, caller, line);
    uint32_t number = caller;
    char name[NAME_BYTES];
    size_t length = 0;

    if (place->code != NULL) {
        return place->number;
    }
    if (place_count == PLACES_MAX) {
        return NUMBER_LOST;
    }
    if (name_of(code, name, &length)) {
        if (frame_count == LAC_STACK_FRAMES_MAX ||
            !recorder->stack_frame(frame_count + 1, caller, line, name, length)) {
            return NUMBER_LOST;
        }
        number = ++frame_count;
    }
    place_count++;
    Py_IncRef(code);
    *place = (struct place){code, caller, line, number};
    return number;
}

/* Number of the innermost frame of a thread; 0: it runs code of ours alone. */
static int64_t stack_of(py_object *innermost)
{
    struct {
        py_object *code;
        uint32_t line;
    } frames[LAC_STACK_DEPTH_MAX];
    int count = 0;
    int64_t number = 0;
    py_object *frame = innermost;

    Py_IncRef(frame);
    while (frame != NULL && frame != &_Py_NoneStruct && count < LAC_STACK_DEPTH_MAX) {
        const int line = PyFrame_GetLineNumber(frame);
        py_object *const code = PyObject_GetAttr(frame, word.code);
        py_object *const back = PyObject_GetAttr(frame, word.back);

        if (code != NULL) {
            frames[count].code = code;
            frames[count].line = line > 0 ? (uint32_t)line : 0;
            count++;
        }
        Py_DecRef(frame);
        frame = back;
    }
    if (frame != NULL) {
        Py_DecRef(frame);
    }
    PyErr_Clear();
    for (int i = count - 1; i >= 0; i--) {
        if (number != NUMBER_LOST) {
            number = number_of(frames[i].code, (uint32_t)number, frames[i].line);
        }
        Py_DecRef(frames[i].code);
    }
    return number;
}

/* The kernel's number of a thread of threading's; 0 unknown, as before Python 3.8. */
static uint32_t tid_of(py_object *ident)
{
    const long number = PyLong_AsLong(ident);
    py_object *thread;
    py_object *native;
    long tid = 0;

    if (number == main_ident) {
        return (uint32_t)getpid();
    }
    thread = PyDict_GetItem(threads, ident); /* borrowed */
    native = thread != NULL ? PyObject_GenericGetAttr(thread, word.native_id) : NULL;
    if (native != NULL) {
        tid = native != &_Py_NoneStruct ? PyLong_AsLong(native) : 0;
        Py_DecRef(native);
    }
    PyErr_Clear();
    return tid > 0 && tid <= INT32_MAX ? (uint32_t)tid : 0;
}

static bool is_true(py_object *function)
{
    py_object *const result = PyObject_CallObject(function, NULL);
    const bool is = result != NULL && PyObject_IsTrue(result) == 1;

    if (result != NULL) {
        Py_DecRef(result);
    }
    PyErr_Clear();
    return is;
}

static void look_at_all(uint32_t periods)
{
    py_object *const frames = PyObject_CallObject(current_frames, NULL);
    py_object *ident = NULL;
    py_object *frame = NULL;
    ssize_t at = 0;

    for (int i = 0; frames != NULL && i < THREADS_MAX && PyDict_Next(frames, &at, &ident, &frame);
         i++) {
        const int64_t number = stack_of(frame);

        if (number != 0) {
            recorder->stack_sample(number > 0 ? (uint32_t)number : 0, tid_of(ident), periods);
        }
    }
    if (frames != NULL) {
        Py_DecRef(frames);
    }
    PyErr_Clear();
}

/* With Python's lock. The job's garbage is collected where the job would. */
static void look(uint32_t periods)
{
    const int64_t begin_ns = now_ns();
    const bool was_enabled = is_true(gc_isenabled);

    if (was_enabled) {
        (void)is_true(gc_disable);
    }
    look_at_all(periods);
    if (was_enabled) {
        (void)is_true(gc_enable);
    }
    cost_ns = (3 * cost_ns + now_ns() - begin_ns) / 4;
}
