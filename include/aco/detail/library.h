/* Part of <aco.h>: functions of the library that its inline bodies and macros call. */
#ifndef ACO_DETAIL_LIBRARY_H
#define ACO_DETAIL_LIBRARY_H

ACO__BEGIN_C

ACO_API ACO__COLD __attribute__((noreturn))
void aco__assert_failed(const char *what, const char *file, int line, const char *function);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__alloc_failed(const char *file, int line, const char *function);

/* A debug build tells the library that the program has one. Weak: a program may include the header and not link it. */
#if ACO_DEBUG && !defined(_WIN32) && !defined(__APPLE__)
ACO_API __attribute__((weak)) void aco__debug_unit(void);
static __attribute__((constructor)) void aco__debug_unit_loaded(void)
{
    if (aco__debug_unit)
        aco__debug_unit();
}
#elif defined(ACO__LIBRARY)
ACO_API void aco__debug_unit(void);
#endif

/* In the following calls `own_fp` is ACO__OWN_FP of the calling unit. */
ACO_API aco_t *aco__create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp,
                           void *arg, int own_fp);
#ifndef ACO__LIBACO_NAMES
ACO_API aco_t *aco__new(aco_function_t fn, void *arg, const aco_options_t *options, int own_fp);
#endif

#ifndef ACO__LIBACO_NAMES
ACO_API int aco__restart(aco_t *co, aco_function_t fn, void *arg); /* aco_restart() of any coroutine, with all checks */
#endif

/* The slow paths, for a `co` that cannot be resumed at once. The first two return 1 if the caller can now resume it; or
 * 0 if the call is over, with its result, perhaps ACO_ERROR, in *value. aco__resume_slow() aborts where
 * aco__send_slow() fails. aco__yield_to_slow() and aco__transfer_slow() do all that the calls promise. */
ACO_API __attribute__((noinline)) int aco__resume_slow(aco_t *co);
ACO_API __attribute__((noinline)) int aco__send_slow(aco_t *co, void **value);
ACO_API __attribute__((noinline)) int aco__yield_to_slow(aco_t *co);
ACO_API __attribute__((noinline)) void *aco__transfer_slow(aco_t *co, void *value);

extern ACO_API const aco__context_t aco__no_context; /* zeros, where unwinders find the end of the stack */

/* A resume by `waiting` has ended, and the frames of `resumer`, its own resumer, were saved meanwhile. */
ACO_API ACO__COLD void aco__chain_was_evicted(aco_t *waiting, aco_t *resumer);

/* The same for debug builds, with all checks. */
ACO_API ACO__COLD int aco__resume_check(aco_t *co, int own_fp);
ACO_API ACO__COLD int aco__send_check(aco_t *co, void **value, int own_fp);
ACO_API ACO__COLD void aco__yield_check(aco_t *co, int own_fp);
ACO_API ACO__COLD void aco__destroy_checked(aco_t *co);

ACO_API void aco__destroy(aco_t *co);
ACO_API ACO__COLD void aco__interrupted(uintptr_t tagged);  /* makes the injected call: the interrupt flag is set */
ACO_API ACO__COLD void *aco__not_yielded(const char *call); /* fails: no coroutine is running */
ACO_API ACO__COLD __attribute__((noreturn)) void aco__nothing_runs(const char *call); /* the same, aborts */

/* Resumes `co`, suspended, and calls fn(arg) at the point of its suspension; `fn` may throw. Otherwise as aco_send().
 * */
ACO_API void *aco__inject(aco_t *co, void (*fn)(void *), void *arg, const char *call);

/* aco_defer() for the function with this frame: aco_cancel() compares it with the frames that it unwinds. */
ACO_API int aco__defer(void (*fn)(void *), void *arg, void *frame);

/* An entry function that calls run(itself). `run` is a C++ function that catches all exceptions and has nothing else to
 * clean up: a cancellation ends there and does not enter its handler. */
typedef struct aco__guarded_s {
    void (*run)(struct aco__guarded_s *itself);
} aco__guarded_t;
ACO_API void *aco__guarded_entry(void *guarded);

/* Whether the running coroutine is on the share stack of `co`. If so, sets errno and the message: values cannot be
 * passed. */
ACO_API int aco__is_on_stack_of(const aco_t *co);
/* Sets errno and the message of a call that fails in aco.hpp; `co` may be NULL. */
ACO_API ACO__COLD void aco__cxx_failed(int error, const char *call, const aco_t *co, const char *reason);
ACO_API int aco__is_cancelled(void); /* whether the running coroutine is being cancelled */

/* ---- C++: exceptions of one's own (tools/exceptions.c) ---- */
/* The calling thread's record; NULL without a C++ run time. The thread record keeps the address. */
ACO_API ACO__COLD aco__exceptions_t *aco__exceptions_here(void);
/* Where the exceptions of `co` are while it does not run. NULL: a resume of `co` has to do more than swap them. */
ACO_API aco__exceptions_t *aco__exceptions_of(const aco_t *co);
/* Stores the thread's record in `out` and loads `in`; NULL: an empty one. */
ACO_API ACO__COLD void aco__exceptions_swap(aco__exceptions_t *out, const aco__exceptions_t *in);
/* The same after a switch back from the coroutine `tagged`: stores the record for it, if it has its own. */
ACO_API ACO__COLD void aco__exceptions_leave(uintptr_t tagged, const aco__exceptions_t *in);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__yields_in_catch(const aco_t *co); /* debug builds */

/* ACO_LOCAL's variable: its size; its key and whether that is made, set at first use. */
typedef struct aco__local_s {
    size_t size;
    uint32_t index, generation, made;
} aco__local_t;
ACO_API void *aco__local(aco__local_t *local, const char *name);
#ifndef ACO_CONFIG_LIBACO_ONLY
/* aco_get_local() for another coroutine; NULL: the running one. */
ACO_API void *aco__local_of(const struct aco_s *co, struct aco_local_key_s key);
#endif

ACO__END_C

/* Without inline code: the exported aco_defer(), aco_new() and aco_create() know neither the caller's frame nor the
 * unit's options. These macros pass them. */
#ifdef ACO_CONFIG_NO_INLINE
#define aco_defer(fn, arg) aco__defer(fn, arg, ACO__FRAME)
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#define aco_new(fn, arg, options) aco__new(fn, arg, options, ACO__OWN_FP)
#define aco_create(main_co, share_stack, save_stack_sz, fp, arg) \
    aco__create(main_co, share_stack, save_stack_sz, fp, arg, ACO__OWN_FP)
#endif
#endif

#endif
