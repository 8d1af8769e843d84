#include "collector/python/here.h"

#include "collector/python/open_ranges.h"
#include "collector/python/python_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTHING                                                                                    \
    {                                                                                              \
        .batch = -1, .waiting = -1, .worker = -1                                                   \
    }

static __thread struct lac_here of_thread = NOTHING;
/* of all threads of a worker's process */
static struct {
    bool is_worker;
    int32_t worker;
    int64_t batch;
} of_process;

struct lac_here *lac_here(void)
{
    return &of_thread;
}

int64_t lac_here_batch(const struct lac_here *here)
{
    return of_process.is_worker ? of_process.batch : here->batch;
}

int32_t lac_here_worker(const struct lac_here *here)
{
    return of_process.is_worker ? of_process.worker : here->worker;
}

void lac_here_set_batch(struct lac_here *here, int64_t batch)
{
    if (of_process.is_worker) {
        of_process.batch = batch;
    } else {
        here->batch = batch;
    }
}

py_object *lac_py_worker_begins(py_object *self, py_object *arguments)
{
    int number = -1;
    int is_thread = 0;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "ii", &number, &is_thread)) {
        return NULL; /* for whoever patches the loop, who says that it is missing */
    }
    of_thread = (struct lac_here)NOTHING; /* a process begins with that of the thread that forked */
    if (is_thread != 0) {
        of_thread.worker = number;
    } else {
        lac_ranges_begin();
        of_process.is_worker = true;
        of_process.worker = number;
        of_process.batch = -1;
    }
    return py_none();
}

/* ---- the attributes of `here`: a flag is known by where it is in this */

static struct lac_here layout;

static bool *flag_at(const void *closure)
{
    return (bool *)((char *)&of_thread + ((const char *)closure - (const char *)&layout));
}

static py_object *get_flag(py_object *self, void *closure)
{
    (void)self;
    return PyBool_FromLong(*flag_at(closure));
}

static int set_flag(py_object *self, py_object *value, void *closure)
{
    const int is_true = value != NULL ? PyObject_IsTrue(value) : 0;

    (void)self;
    *flag_at(closure) = is_true > 0;
    return is_true < 0 ? -1 : 0;
}

static py_object *get_in_fetch(py_object *self, void *closure)
{
    (void)self;
    (void)closure;
    return PyBool_FromLong(of_thread.in_fetch != NULL);
}

static py_object *get_worker(py_object *self, void *closure)
{
    (void)self;
    (void)closure;
    return PyLong_FromLong(lac_here_worker(&of_thread));
}

/* `batch` or, with a closure, `waiting` */
static py_object *get_number(py_object *self, void *closure)
{
    (void)self;
    return PyLong_FromLongLong(closure != NULL ? of_thread.waiting : lac_here_batch(&of_thread));
}

static int set_number(py_object *self, py_object *value, void *closure)
{
    const long long number = value != NULL ? PyLong_AsLongLong(value) : -1;

    (void)self;
    if (number == -1 && PyErr_Occurred() != NULL) {
        return -1;
    }
    if (closure != NULL) {
        of_thread.waiting = number;
    } else {
        lac_here_set_batch(&of_thread, number);
    }
    return 0;
}

#define FLAG(name)                                                                                 \
    {                                                                                              \
#name, get_flag, set_flag, NULL, &layout.name                                              \
    }

static struct py_attribute attributes[] = {
    {"batch", get_number, set_number, "being made by this thread, -1: none", NULL},
    {"waiting", get_number, set_number, "batch that is waited for", attributes},
    {"worker", get_worker, NULL, "that makes the batch, -1: the training process", NULL},
    {"in_fetch", get_in_fetch, NULL, "whether a batch is being made", NULL},
    FLAG(takes),
    FLAG(in_item),
    FLAG(in_module),
    FLAG(in_pin),
    FLAG(in_step),
    FLAG(in_framework),
    FLAG(in_named),
    {NULL, NULL, NULL, NULL, NULL},
};

py_object *lac_here_object(void)
{
    static struct py_type_slot slots[] = {{PY_SLOT_ATTRIBUTES, attributes}, {0, NULL}};
    static struct py_type_spec spec = {.name = "_lacuna.Here",
                                       .bytes = (int)sizeof(py_object),
                                       .flags = PY_TYPE_DEFAULT,
                                       .slots = slots};
    py_object *const type = PyType_FromSpec(&spec);
    py_object *const here = type != NULL ? PyObject_CallObject(type, NULL) : NULL;

    if (type != NULL) {
        Py_DecRef(type);
    }
    return here;
}
