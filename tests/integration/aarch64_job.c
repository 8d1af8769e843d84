/*
 * What the cross-built collector meets in a job, for test_aarch64.py; runs under qemu-user.
 *
 * usage: aarch64_job extension FILE      plays Python: loads the hook's extension and calls it
 *        aarch64_job cupti STAND_IN N    plays libcuda: the stand-in for libcupti returns N launches
 */
#include "collector/python/python_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- the little of Python that the extension calls; its objects are texts, numbers or arguments */

struct object {
    py_object head;
    const char *text;
    long number;
};

EXPORT py_object _Py_NoneStruct;
static struct py_module_definition *made;

EXPORT py_object *PyModule_Create2(struct py_module_definition *definition, int abi_version)
{
    made = abi_version == PY_ABI_VERSION ? definition : NULL;
    return &_Py_NoneStruct;
}

EXPORT py_object *PyType_FromSpec(struct py_type_spec *spec)
{
    static struct object type;

    type.text = spec->name;
    return &type.head;
}

EXPORT py_object *PyObject_CallObject(py_object *function, py_object *arguments)
{
    (void)arguments;
    return function;
}

EXPORT int PyModule_AddObject(py_object *module, const char *name, py_object *value)
{
    (void)module;
    (void)value;
    return strcmp(name, "here") == 0 ? 0 : -1;
}

EXPORT const char *PyUnicode_AsUTF8AndSize(py_object *text, ssize_t *ret_length)
{
    const char *const bytes = ((const struct object *)text)->text;

    *ret_length = (ssize_t)strlen(bytes);
    return bytes;
}

EXPORT py_object *PyLong_FromLong(long value)
{
    static struct object number;

    number.number = value;
    return &number.head;
}

EXPORT py_object *PyBool_FromLong(long value)
{
    return PyLong_FromLong(value);
}

EXPORT long PyLong_AsLong(py_object *number)
{
    return ((const struct object *)number)->number;
}

EXPORT long long PyLong_AsLongLong(py_object *number)
{
    return ((const struct object *)number)->number;
}

/* what looks at stacks, and what calls the job's functions, which are Python's own: loaded, not
 * called */
EXPORT py_object *PyExc_Exception;

EXPORT int PyArg_ParseTuple(py_object *arguments, const char *format, ...)
{
    (void)arguments;
    (void)format;
    abort();
}

EXPORT py_object *PyErr_Occurred(void)
{
    abort();
}

EXPORT int PyErr_ExceptionMatches(py_object *type)
{
    (void)type;
    abort();
}

EXPORT void PyErr_Fetch(py_object **ret_type, py_object **ret_value, py_object **ret_traceback)
{
    (void)ret_type;
    (void)ret_value;
    (void)ret_traceback;
    abort();
}

EXPORT void PyErr_Restore(py_object *type, py_object *value, py_object *traceback)
{
    (void)type;
    (void)value;
    (void)traceback;
    abort();
}

EXPORT py_object *PyLong_FromLongLong(long long value)
{
    (void)value;
    abort();
}

EXPORT void *PyLong_AsVoidPtr(py_object *number)
{
    (void)number;
    abort();
}

EXPORT unsigned long PyType_GetFlags(void *type)
{
    (void)type;
    abort();
}

EXPORT py_object *PyCFunction_NewEx(struct py_method *method, py_object *self, py_object *module)
{
    (void)method;
    (void)self;
    (void)module;
    abort();
}

EXPORT py_object *PyObject_Call(py_object *function, py_object *arguments, py_object *named)
{
    (void)function;
    (void)arguments;
    (void)named;
    abort();
}

EXPORT py_object *PyObject_CallFunction(py_object *function, const char *format, ...)
{
    (void)function;
    (void)format;
    abort();
}

EXPORT py_object *PyObject_CallFunctionObjArgs(py_object *function, ...)
{
    (void)function;
    abort();
}

EXPORT py_object *PyTuple_New(ssize_t count)
{
    (void)count;
    abort();
}

EXPORT ssize_t PyTuple_Size(py_object *tuple)
{
    (void)tuple;
    abort();
}

EXPORT py_object *PyTuple_GetItem(py_object *tuple, ssize_t at)
{
    (void)tuple;
    (void)at;
    abort();
}

EXPORT int PyTuple_SetItem(py_object *tuple, ssize_t at, py_object *item)
{
    (void)tuple;
    (void)at;
    (void)item;
    abort();
}

EXPORT ssize_t PyDict_Size(py_object *dict)
{
    (void)dict;
    abort();
}

EXPORT py_object *PyUnicode_InternFromString(const char *text)
{
    (void)text;
    abort();
}

EXPORT py_object *PyObject_GetAttr(py_object *object, py_object *name)
{
    (void)object;
    (void)name;
    abort();
}

EXPORT py_object *PyObject_GenericGetAttr(py_object *object, py_object *name)
{
    (void)object;
    (void)name;
    abort();
}

EXPORT int PyObject_IsTrue(py_object *object)
{
    (void)object;
    abort();
}

EXPORT py_object *PyDict_GetItem(py_object *dict, py_object *key)
{
    (void)dict;
    (void)key;
    abort();
}

EXPORT int PyDict_Next(py_object *dict, ssize_t *at, py_object **ret_key, py_object **ret_value)
{
    (void)dict;
    (void)at;
    (void)ret_key;
    (void)ret_value;
    abort();
}

EXPORT int PyFrame_GetLineNumber(py_object *frame)
{
    (void)frame;
    abort();
}

EXPORT int Py_AddPendingCall(int (*function)(void *), void *argument)
{
    (void)function;
    (void)argument;
    abort();
}

EXPORT void Py_DecRef(py_object *object)
{
    object->reference_count--;
}

EXPORT void PyErr_Clear(void)
{
}

/* One thread: there is no lock to give up. */
EXPORT void *PyEval_SaveThread(void)
{
    return NULL;
}

EXPORT void PyEval_RestoreThread(void *thread)
{
    (void)thread;
}

EXPORT void Py_IncRef(py_object *object)
{
    object->reference_count++;
}

static py_function function_of(const char *name)
{
    for (const struct py_method *method = made->methods; method->name != NULL; method++) {
        if (strcmp(method->name, name) == 0) {
            return method->function;
        }
    }
    (void)fprintf(stderr, "the extension has no %s\n", name);
    exit(1);
}

static py_object *call(const char *name, py_object *argument)
{
    return function_of(name)(NULL, argument);
}

static void *symbol(const char *path, const char *name)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    void *const found = library != NULL ? dlsym(library, name) : NULL;

    if (found == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static int play_python(const char *path)
{
    static struct object name = {.text = "read"};
    static struct object range = {.text = "loader.fetch"};
    static struct object batch = {.number = 7};
    static struct object worker = {.number = 3};
    static struct object setting = {.text = "machine=aarch64"};
    py_object *const arguments[] = {&range.head, &batch.head, &worker.head};
    py_object *(*init)(void);
    py_function_fast push_loader;

    *(void **)&init = symbol(path, "PyInit__lacuna");
    if (init() == NULL || made == NULL) {
        (void)fprintf(stderr, "the extension did not make its module\n");
        return 1;
    }
    if (((struct object *)call("load", NULL))->number != 1) {
        (void)fprintf(stderr, "the extension did not load the recorder\n");
        return 1;
    }
    (void)call("setting", &setting.head);
    push_loader = (py_function_fast)(void (*)(void))function_of("push_loader");
    for (int i = 0; i < 100; i++) {
        (void)push_loader(NULL, arguments, 3);
        (void)call("push", &name.head);
        (void)call("pop", NULL);
        (void)call("pop", NULL);
        (void)call("step", NULL);
    }
    return 0;
}

static int play_cuda(const char *stand_in, int launches)
{
    int (*initialize)(void);
    void (*deliver)(int, uint32_t, int);

    (void)setenv("LACUNA_CUPTI", stand_in, 1);
    *(void **)&initialize = symbol(getenv("CUDA_INJECTION64_PATH"), "InitializeInjection");
    *(void **)&deliver = symbol(stand_in, "stand_in_deliver");
    if (initialize() != 1) {
        return 1;
    }
    deliver(launches, (uint32_t)syscall(SYS_gettid), 0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "extension") == 0) {
        return play_python(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "cupti") == 0) {
        return play_cuda(argv[2], (int)strtol(argv[3], NULL, 10));
    }
    (void)fprintf(stderr, "usage: aarch64_job extension FILE | cupti STAND_IN N\n");
    return 2;
}
