#ifndef LAC_COLLECTOR_PYTHON_PYTHON_ABI_H
#define LAC_COLLECTOR_PYTHON_PYTHON_ABI_H

/*
 * The few functions of CPython's stable ABI (abi3) that the hook's extension calls, so that it
 * builds without Python's headers and one file serves Python 3.7 and later. Not for free-threaded
 * builds, whose objects are laid out differently: the hook does not load it there.
 */

#include <stdint.h>
#include <sys/types.h>

typedef struct py_object {
    ssize_t reference_count;
    void *type;
} py_object;

typedef py_object *(*py_function)(py_object *self, py_object *argument);

struct py_method {
    const char *name;
    py_function function;
    int flags;
    const char *doc;
};

struct py_module_base {
    py_object object;
    py_object *(*init)(void);
    ssize_t index;
    py_object *copy;
};

struct py_module_definition {
    struct py_module_base base;
    const char *name;
    const char *doc;
    ssize_t state_bytes;
    struct py_method *methods;
    void *slots;
    void *traverse;
    void *clear;
    void *free;
};

enum { PY_METHOD_VARARGS = 1, PY_METHOD_NOARGS = 4, PY_METHOD_ONE = 8, PY_ABI_VERSION = 3 };

extern py_object *PyModule_Create2(struct py_module_definition *definition, int abi_version);
extern int PyArg_ParseTuple(py_object *arguments, const char *format, ...);
extern const char *PyUnicode_AsUTF8AndSize(py_object *text, ssize_t *ret_length);
extern py_object *PyBool_FromLong(long value);
extern py_object *PyLong_FromLong(long value);
extern void PyErr_Clear(void);
extern int Py_AddPendingCall(int (*function)(void *), void *argument); /* without the lock */
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *thread);
extern py_object *PyErr_Occurred(void);
extern long PyLong_AsLong(py_object *number);
extern py_object *PyUnicode_InternFromString(const char *text);
extern py_object *PyObject_GetAttr(py_object *object, py_object *name);
extern py_object *PyObject_GenericGetAttr(py_object *object, py_object *name);
extern py_object *PyObject_CallObject(py_object *function, py_object *arguments);
extern int PyObject_IsTrue(py_object *object);
extern py_object *PyDict_GetItem(py_object *dict, py_object *key);
extern int PyDict_Next(py_object *dict, ssize_t *at, py_object **ret_key, py_object **ret_value);
extern int PyFrame_GetLineNumber(py_object *frame); /* stable from 3.10 on, there since ever */
extern py_object _Py_NoneStruct;
extern void Py_IncRef(py_object *object);
extern void Py_DecRef(py_object *object);

#endif
