/* The C++ run time's record of the exceptions that a thread is handling: swapped at switches of coroutines with
 * ACO_OWN_EXCEPTIONS, and put aside while a coroutine is unwound. */
#include "hooks/hooks.h"

#include <string.h>

#ifndef __APPLE__
ACO__OPTIONAL(void *, __cxa_get_globals, (void));
#endif

/* On Windows a weak reference only finds a C++ run time in the same module. This looks for one in a DLL, which takes
 * time: at the first cancellation, and for each coroutine with ACO_OWN_EXCEPTIONS. */
#ifdef _WIN32
static void *(*loaded_globals)(void); /* atomic, like the next */
static int looked_for_globals;

static void look_for_globals(int again)
{
    void *(*get)(void);
    if (!again && __atomic_load_n(&looked_for_globals, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&looked_for_globals, 1, __ATOMIC_RELAXED);
    if (!__cxa_get_globals && !__atomic_load_n(&loaded_globals, __ATOMIC_RELAXED) &&
        aco__os_loaded_cxx("__cxa_get_globals", &get))
        __atomic_store_n(&loaded_globals, get, __ATOMIC_RELAXED);
}
#else
static void look_for_globals(int again)
{
    (void)again;
}
#endif

void aco__exceptions_find(void)
{
    look_for_globals(1);
}

/* NULL if the process has no C++ run time. */
static void **exception_globals(void)
{
#ifdef __APPLE__
    void *(*get)(void);
    return aco__os_loaded_cxx("__cxa_get_globals", &get) ? get() : NULL;
#elif defined(_WIN32)
    void *(*get)(void) = __atomic_load_n(&loaded_globals, __ATOMIC_RELAXED);
    if (__cxa_get_globals)
        return __cxa_get_globals();
    return get ? get() : NULL;
#else
    return __cxa_get_globals ? __cxa_get_globals() : NULL;
#endif
}

/* The record has two words, on Arm three. */
void aco__exceptions_swap(void *out[3], void *const in[3])
{
    void **globals = exception_globals();
#ifdef __arm__
    enum { WORDS = 3 };
#else
    enum { WORDS = 2 };
#endif
    if (!globals)
        return;
    memcpy(out, globals, WORDS * sizeof *globals);
    memcpy(globals, in, WORDS * sizeof *globals);
}

void *const aco__no_exceptions[3];

int aco__has_own_exceptions(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    return cold && cold->own_exceptions;
}

void aco__exceptions_aside(const aco_t *co, aco__exceptions_t *kept)
{
    if (!aco__has_own_exceptions(co)) {
        look_for_globals(0);
        aco__exceptions_swap(kept->words, aco__no_exceptions);
    }
}

void aco__exceptions_back(const aco_t *co, const aco__exceptions_t *kept)
{
    void *unused[3];
    if (!aco__has_own_exceptions(co))
        aco__exceptions_swap(unused, kept->words);
}
