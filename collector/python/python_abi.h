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

/* With the arguments beside each other: stable from 3.10 on, the same since 3.7. */
typedef py_object *(*py_function_fast)(py_object *self, py_object *const *arguments, ssize_t count);
typedef py_object *(*py_function_named)(py_object *self, py_object *arguments, py_object *named);

/* An attribute of a type's objects (PyGetSetDef). */
struct py_attribute {
    const char *name;
    py_object *(*get)(py_object *self, void *closure);
    int (*set)(py_object *self, py_object *value, void *closure);
    const char *doc;
    void *closure;
};

struct py_type_slot {
    int slot;
    void *value;
};

struct py_type_spec {
    const char *name;
    int bytes;
    int item_bytes;
    unsigned flags;
    struct py_type_slot *slots;
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

enum {
    PY_METHOD_VARARGS = 1,
    PY_METHOD_NAMED = 2, /* with VARARGS: a py_function_named */
    PY_METHOD_NOARGS = 4,
    PY_METHOD_ONE = 8,
    PY_METHOD_FAST = 128, /* a py_function_fast */
    PY_ABI_VERSION = 3,
    PY_SLOT_ATTRIBUTES = 73,
    PY_TYPE_DEFAULT = 1 << 18,
};
/* of PyType_GetFlags(): the type is one of these or a subclass */
#define PY_TYPE_IS_LONG  (1ul << 24)
#define PY_TYPE_IS_TUPLE (1ul << 26)

extern py_object *PyModule_Create2(struct py_module_definition *definition, int abi_version);
extern int PyModule_AddObject(py_object *module, const char *name, py_object *value);
extern py_object *PyType_FromSpec(struct py_type_spec *spec);
extern unsigned long PyType_GetFlags(void *type);
extern py_object *PyCFunction_NewEx(struct py_method *method, py_object *self, py_object *module);
extern int PyArg_ParseTuple(py_object *arguments, const char *format, ...);
extern const char *PyUnicode_AsUTF8AndSize(py_object *text, ssize_t *ret_length);
extern py_object *PyBool_FromLong(long value);
extern py_object *PyLong_FromLong(long value);
extern py_object *PyLong_FromLongLong(long long value);
extern long long PyLong_AsLongLong(py_object *number);
extern void *PyLong_AsVoidPtr(py_object *number);
extern py_object *PyTuple_New(ssize_t count);
extern ssize_t PyTuple_Size(py_object *tuple);
extern py_object *PyTuple_GetItem(py_object *tuple, ssize_t at);           /* not a new reference */
extern int PyTuple_SetItem(py_object *tuple, ssize_t at, py_object *item); /* takes the reference */
extern ssize_t PyDict_Size(py_object *dict);
extern void PyErr_Clear(void);
extern py_object *PyExc_Exception;
extern int PyErr_ExceptionMatches(py_object *type);
extern py_object *PyObject_CallFunction(py_object *function, const char *format, ...);
extern void PyErr_Fetch(py_object **ret_type, py_object **ret_value, py_object **ret_traceback);
extern void PyErr_Restore(py_object *type, py_object *value, py_object *traceback);
extern int Py_AddPendingCall(int (*function)(void *), void *argument); /* without the lock */
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *thread);
extern py_object *PyErr_Occurred(void);
extern long PyLong_AsLong(py_object *number);
extern py_object *PyUnicode_InternFromString(const char *text);
extern py_object *PyObject_GetAttr(py_object *object, py_object *name);
extern py_object *PyObject_GenericGetAttr(py_object *object, py_object *name);
extern py_object *PyObject_CallObject(py_object *function, py_object *arguments);
extern py_object *PyObject_Call(py_object *function, py_object *arguments, py_object *named);
extern py_object *PyObject_CallFunctionObjArgs(py_object *function, ...); /* up to NULL */
extern int PyObject_IsTrue(py_object *object);
extern py_object *PyDict_GetItem(py_object *dict, py_object *key);
extern int PyDict_Next(py_object *dict, ssize_t *at, py_object **ret_key, py_object **ret_value);
extern int PyFrame_GetLineNumber(py_object *frame); /* stable from 3.10 on, there since ever */
extern py_object _Py_NoneStruct;
extern void Py_IncRef(py_object *object);
extern void Py_DecRef(py_object *object);

static inline py_object *py_none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* A function of another type than py_function, for a struct py_method whose flags say so. */
#define PY_FUNCTION(function) ((py_function)(void (*)(void))(function))

#endif
