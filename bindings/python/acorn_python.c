/* What acorn.py needs besides libacorn: each coroutine has a thread state of its own, exchanged at each switch. All
 * calls hold the GIL. For CPython 3.9 and later; it needs no Python.h:
 *   cc -O2 -shared -fPIC acorn_python.c -o libacorn_python.so -lacorn */
#define ACO_CONFIG_NO_INLINE
#include <aco.h>

/* CPython's stable ABI */
typedef struct python_object python_object_t;
typedef struct python_thread python_thread_t;
extern void *PyInterpreterState_Get(void);
extern python_thread_t *PyThreadState_Get(void);
extern python_thread_t *PyThreadState_New(void *interpreter);
extern python_thread_t *PyThreadState_Swap(python_thread_t *thread);
extern void PyThreadState_Clear(python_thread_t *thread);
extern void PyThreadState_Delete(python_thread_t *thread);
extern python_object_t *PyObject_CallFunctionObjArgs(python_object_t *function, ...);
extern void PyErr_Print(void);
extern void Py_DecRef(python_object_t *object);
extern void Py_IncRef(python_object_t *object);

typedef struct acorn_python {
    aco_t *co;
    python_object_t *function;
    python_thread_t *own; /* NULL: the coroutine has ended */
} acorn_python_t;

acorn_python_t *acorn_python_new(python_object_t *function, size_t stack_size);
int acorn_python_resume(acorn_python_t *p);
int acorn_python_suspend(const acorn_python_t *p);
void acorn_python_free(acorn_python_t *p);

static void *run(void *arg)
{
    acorn_python_t *p = arg;
    python_object_t *result = PyObject_CallFunctionObjArgs(p->function, (void *)0);
    if (result)
        Py_DecRef(result);
    else
        PyErr_Print(); /* acorn.py's function catches everything */
    return NULL;
}

acorn_python_t *acorn_python_new(python_object_t *function, size_t stack_size)
{
    aco_options_t options = {0};
    acorn_python_t *p = calloc(1, sizeof *p);
    options.stack_size = stack_size;
    p->co = aco_new(run, p, &options);
    if (!p->co) {
        free(p);
        return NULL;
    }
    p->own = PyThreadState_New(PyInterpreterState_Get());
    p->function = function;
    Py_IncRef(function);
    return p;
}

/* 1: it is suspended; 0: it has ended. */
int acorn_python_resume(acorn_python_t *p)
{
    python_thread_t *resumer = PyThreadState_Swap(p->own);
    aco_send(p->co, NULL);
    if (p->co->is_end)
        PyThreadState_Clear(p->own);
    PyThreadState_Swap(resumer);
    if (p->co->is_end) {
        PyThreadState_Delete(p->own);
        p->own = NULL;
    }
    return !p->co->is_end;
}

/* 0: it was resumed; -1: another coroutine is running, or none, or this is a callback on the thread's own state
 * (by ctypes, or PyGILState_Ensure(), before CPython 3.12). */
int acorn_python_suspend(const acorn_python_t *p)
{
    if (aco_get_co() != p->co || PyThreadState_Get() != p->own)
        return -1;
    aco_yield_value(NULL);
    return 0;
}

/* It has ended or never begun. */
void acorn_python_free(acorn_python_t *p)
{
    if (p->own) {
        PyThreadState_Clear(p->own);
        PyThreadState_Delete(p->own);
    }
    aco_destroy(p->co);
    Py_DecRef(p->function);
    free(p);
}
