#include "collector/python/interpreter_end.h"

#include "collector/base/count_of.h"
#include "collector/base/old_symbols.h"
#include "collector/python/python_abi.h"

#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { WAITS_MAX = 100, WAIT_NS = 10000000 };

static uint32_t inside_count; /* of our threads: in Python, or about to be */
static uint32_t is_ending;
static __thread sigset_t mask_before; /* of a thread that starts one of ours */
static pid_t owner; /* the process that has these threads: a forked child has none of them */

/* A thread that enters either sees that the end has come, or is seen by it: both orders are total. */

void lac_py_enter(void)
{
    (void)__atomic_fetch_add(&inside_count, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&is_ending, __ATOMIC_SEQ_CST) != 0) {
        lac_py_leave();
        for (;;) {
            (void)pause();
        }
    }
}

void lac_py_leave(void)
{
    (void)__atomic_fetch_sub(&inside_count, 1, __ATOMIC_SEQ_CST);
    (void)syscall(SYS_futex, &inside_count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool lac_py_is_ending(void)
{
    return __atomic_load_n(&is_ending, __ATOMIC_RELAXED) != 0 && owner == getpid();
}

/* All but what a thread does to itself. */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t blocked;

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < LAC_COUNT_OF(own); i++) {
        (void)sigdelset(&blocked, own[i]);
    }
    (void)sigprocmask(SIG_SETMASK, &blocked, before); /* Linux: of this thread */
}

py_object *lac_py_thread_begins(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    if (owner != getpid()) {
        owner = getpid();
        inside_count = is_ending = 0;
    }
    (void)__atomic_fetch_add(&inside_count, 1, __ATOMIC_SEQ_CST);
    block_signals(&mask_before);
    return PyBool_FromLong(1);
}

py_object *lac_py_thread_started(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    (void)sigprocmask(SIG_SETMASK, &mask_before, NULL);
    return PyBool_FromLong(1);
}

py_object *lac_py_thread_ends(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    lac_py_leave();
    return PyBool_FromLong(1);
}

py_object *lac_py_end(py_object *self, py_object *unused)
{
    (void)self;
    (void)unused;
    if (owner == getpid()) {
        const struct timespec limit = {.tv_nsec = WAIT_NS};
        void *const thread = PyEval_SaveThread(); /* which a thread inside may need to leave */

        __atomic_store_n(&is_ending, 1, __ATOMIC_SEQ_CST);
        for (int i = 0; i < WAITS_MAX; i++) {
            const uint32_t count = __atomic_load_n(&inside_count, __ATOMIC_SEQ_CST);

            if (count == 0) {
                break;
            }
            (void)syscall(SYS_futex, &inside_count, FUTEX_WAIT_PRIVATE, count, &limit, NULL, 0);
        }
        PyEval_RestoreThread(thread);
    }
    return PyBool_FromLong(1);
}
