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
ACO_API aco_t *aco__new(aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp);
#endif

/* The slow paths, for a `co` that cannot be resumed at once. 1: now it can be. 0: it was resumed, and *value is what
 * came back, or ACO_ERROR. The first aborts where the others fail. */
ACO_API __attribute__((noinline)) int aco__resume_slow(aco_t *co);
ACO_API __attribute__((noinline)) int aco__send_slow(aco_t *co, void **value);
ACO_API __attribute__((noinline)) int aco__yield_to_slow(aco_t *co);

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

/* ACO_LOCAL's variable: its size; its key and whether that is made, set at first use. */
typedef struct aco__local_s {
    size_t size;
    uint32_t index, generation, made;
} aco__local_t;
ACO_API void *aco__local(aco__local_t *local, const char *name);

ACO__END_C

/* Where nothing is inline, the exported forms know neither the caller's frame nor the unit's options. */
#ifdef ACO_CONFIG_NO_INLINE
#define aco_defer(fn, arg) aco__defer(fn, arg, ACO__FRAME)
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#define aco_new(fn, arg, opts) aco__new(fn, arg, opts, ACO__OWN_FP)
#define aco_create(main_co, share_stack, save_stack_sz, fp, arg) \
    aco__create(main_co, share_stack, save_stack_sz, fp, arg, ACO__OWN_FP)
#endif
#endif

#endif
