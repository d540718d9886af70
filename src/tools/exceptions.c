/* The C++ run time's record of the exceptions that a thread is handling: swapped at switches of coroutines with
 * ACO_OWN_EXCEPTIONS, and put aside while a coroutine is unwound. */
#include "tools/tools.h"

#include <string.h>

#ifndef __APPLE__
ACO__OPTIONAL(void *, __cxa_get_globals, (void));
ACO__OPTIONAL(void, __cxa_end_catch, (void));
#endif

/* On Windows a weak reference only finds a C++ run time in the same module. This looks for one in a DLL, which takes
 * time: at the first cancellation, and for each coroutine with ACO_OWN_EXCEPTIONS. */
#ifdef _WIN32
static void *(*loaded_globals)(void); /* atomic, like the next two */
static void *(*loaded_end_catch)(void);
static int looked_for_globals;

static void look_for_globals(int again)
{
    void *(*get)(void), *(*end)(void);
    if (!again && __atomic_load_n(&looked_for_globals, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&looked_for_globals, 1, __ATOMIC_RELAXED);
    if (__cxa_get_globals || __atomic_load_n(&loaded_globals, __ATOMIC_RELAXED))
        return;
    if (aco__os_loaded_cxx("__cxa_end_catch", &end))
        __atomic_store_n(&loaded_end_catch, end, __ATOMIC_RELAXED);
    if (aco__os_loaded_cxx("__cxa_get_globals", &get))
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

static void *globals(void)
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

static void end_catch(void)
{
#if defined(__APPLE__) || defined(_WIN32)
    void *(*end)(void) = NULL;
#ifdef __APPLE__
    aco__os_loaded_cxx("__cxa_end_catch", &end);
#else
    if (__cxa_end_catch) {
        __cxa_end_catch();
        return;
    }
    end = __atomic_load_n(&loaded_end_catch, __ATOMIC_RELAXED);
#endif
    end();
#else
    __cxa_end_catch();
#endif
}

aco__exceptions_t *aco__exceptions_here(void)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!self->exceptions))
        self->exceptions = globals();
    return self->exceptions;
}

void aco__exceptions_swap(aco__exceptions_t *out, const aco__exceptions_t *in)
{
    static const aco__exceptions_t none = {0};
    aco__exceptions_t *here = aco__exceptions_here();
    if (!here)
        return;
    *out = *here;
    *here = in ? *in : none;
}

int aco__has_own_exceptions(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    return cold && cold->own_exceptions;
}

void aco__exceptions_leave(uintptr_t tagged, const aco__exceptions_t *in)
{
    const aco_t *co = (const aco_t *)(tagged & ~(uintptr_t)1);
    aco__cold_t *cold = co ? aco__cold_of(co) : NULL;
    aco__exceptions_t unused;
    aco__exceptions_swap(cold && cold->own_exceptions ? &cold->exceptions : &unused, in);
}

/* ---- While a stack is unwound ---- */

void aco__exceptions_aside(aco__exceptions_t *kept)
{
    look_for_globals(0);
    aco__exceptions_swap(kept, NULL);
}

int aco__exceptions_handled(void)
{
    const aco__exceptions_t *here = aco__exceptions_here();
    return here && here->caught;
}

void aco__exceptions_end(const aco__exceptions_t *hidden)
{
    aco__exceptions_t *here = aco__exceptions_here(), unused;
    if (!here)
        return;
    while (here->caught)
        end_catch();
    aco__exceptions_swap(&unused, hidden);
    while (here->caught)
        end_catch();
    aco__exceptions_swap(&unused, NULL);
}
