#include "trace.h"
#include "track.h"

#ifdef __APPLE__
#include <dlfcn.h>
#endif
#include <string.h>

ACO__OPTIONAL(void *, __tsan_get_current_fiber, (void));
ACO__OPTIONAL(void *, __tsan_create_fiber, (unsigned flags));
ACO__OPTIONAL(void, __tsan_destroy_fiber, (void *fiber));
ACO__OPTIONAL(void, __tsan_switch_to_fiber, (void *fiber, unsigned flags));
ACO__OPTIONAL(void, __sanitizer_start_switch_fiber, (void **fake_stack_save, const void *bottom, size_t size));
ACO__OPTIONAL(void, __sanitizer_finish_switch_fiber, (void *fake_stack_save, const void **bottom_old, size_t *size_old));
ACO__OPTIONAL(void, __asan_unpoison_memory_region, (void const volatile *p, size_t size));
#ifdef __APPLE__
ACO__OPTIONAL(void, asan_handle_no_return, (void));
#else
__attribute__((weak)) extern void asan_handle_no_return(void) __asm__("__asan_handle_no_return"); /* gcc knows the name, and not so */
ACO__OPTIONAL(void *, __cxa_get_globals, (void));
#endif

/* The C++ run time's record of exceptions that this thread handles; NULL: there is no C++. */
static void **exception_globals(void)
{
#ifdef __APPLE__
    void *(*get)(void);
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
    memcpy(&get, &symbol, sizeof get);
    return get ? get() : NULL;
#else
    return __cxa_get_globals ? __cxa_get_globals() : NULL;
#endif
}

int aco__tools_present(void)
{
    return (__tsan_switch_to_fiber && __tsan_create_fiber) || __sanitizer_start_switch_fiber || aco__traced;
}

int aco__observe_new(aco_t *co, int own_exceptions)
{
    aco__extra_t *extra;
    if (!own_exceptions && !aco__tools_present())
        return 0;
    extra = aco__extra_make(co);
    if (!extra)
        return -1;
    extra->own_exceptions = own_exceptions != 0;
    if (__tsan_create_fiber)
        extra->fiber = __tsan_create_fiber(0);
    aco__set_state_byte(co, co->aco__state | ACO__OBSERVED);
    return 0;
}

void aco__observe_no_more(aco_t *co)
{
    const aco__extra_t *extra = aco__extra(co);
    if (!aco__tools_present() && !(extra && (extra->own_exceptions || extra->usage)))
        aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__OBSERVED);
}

/* ASan: from here to where a coroutine left off, and back. That is on its own stack, or on that of a generator it yielded in. */
ACO__UNOBSERVED static void enter_stack(const aco_share_stack_t *stack, const aco__extra_t *extra, aco__outside_t *outside)
{
    if (extra->left_bottom)
        __sanitizer_start_switch_fiber(&outside->fake_stack, extra->left_bottom, extra->left_size);
    else
        __sanitizer_start_switch_fiber(&outside->fake_stack, stack->ptr, (size_t)((char *)stack->aco__top - (char *)stack->ptr));
    __sanitizer_finish_switch_fiber(extra->fake_stack, &outside->stack_bottom, &outside->stack_size);
}

ACO__UNOBSERVED static void leave_stack(aco__extra_t *extra, int for_good, const aco__outside_t *outside)
{
    __sanitizer_start_switch_fiber(for_good ? NULL : &extra->fake_stack, outside->stack_bottom, outside->stack_size);
    __sanitizer_finish_switch_fiber(outside->fake_stack, &extra->left_bottom, &extra->left_size);
    if (for_good)
        extra->fake_stack = NULL;
}

/* TSan: the same. */
ACO__UNOBSERVED static void enter_fiber(const aco__extra_t *extra)
{
    __tsan_switch_to_fiber(extra->left_fiber ? extra->left_fiber : extra->fiber, 0);
}

ACO__UNOBSERVED void aco__observe_gone(aco_t *co)
{
    aco__extra_t *extra = aco__extra(co);
    if (!extra)
        return;
    if (extra->usage)
        aco__usage_end(co, extra);
    if (extra->fiber)
        __tsan_destroy_fiber(extra->fiber);
    if (extra->fake_stack) { /* freed by leaving it for good */
        aco__outside_t outside;
        enter_stack(co->share_stack, extra, &outside);
        leave_stack(extra, 1, &outside);
    }
}

void aco__observe_unwind(void)
{
    if (asan_handle_no_return)
        asan_handle_no_return();
}

void aco__observe_frames_gone(const void *sp, const void *end)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(sp, (size_t)((const char *)end - (const char *)sp));
}

void aco__observe_stack_gone(const aco_share_stack_t *stack)
{
    aco__observe_frames_gone(stack->ptr, stack->aco__top);
}

/* The C++ run time's record of exceptions being handled on this thread; two words, on some systems three. */
static void exchange_exceptions(void *out[3], void *const in[3])
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

/* What a switch has on the stack besides its caller's frame, about. */
#ifdef ACO_CONFIG_UCONTEXT
#include <ucontext.h>
enum { SWITCH_FRAME = sizeof(ucontext_t) + 256 };
#else
enum { SWITCH_FRAME = 0 };
#endif

static void *const no_exceptions[3];

int aco__has_own_exceptions(const aco_t *co)
{
    const aco__extra_t *extra = aco__extra(co);
    return extra && extra->own_exceptions;
}

void aco__exceptions_aside(const aco_t *co, aco__exceptions_t *kept)
{
    if (!aco__has_own_exceptions(co))
        exchange_exceptions(kept->words, no_exceptions);
}

void aco__exceptions_back(const aco_t *co, const aco__exceptions_t *kept)
{
    void *unused[3];
    if (!aco__has_own_exceptions(co))
        exchange_exceptions(unused, kept->words);
}

ACO__UNOBSERVED void aco__observe_enter(aco_t *co, aco__outside_t *outside)
{
    aco__extra_t *extra = aco__extra(co);
    if (!extra)
        return;
    aco__trace_runs(co);
    if (extra->own_exceptions)
        exchange_exceptions(outside->exceptions, extra->exceptions);
    if (extra->fiber) {
        outside->fiber = __tsan_get_current_fiber();
        enter_fiber(extra);
    }
    if (__sanitizer_start_switch_fiber)
        enter_stack(co->share_stack, extra, outside);
}

ACO__UNOBSERVED void aco__observe_leave(aco_t *co, aco__outside_t *outside)
{
    aco__extra_t *extra = aco__extra(co);
    int ended = aco__phase(co) == ACO__ENDED;
    if (!extra)
        return;
    if (aco_unlikely(extra->usage && !ended))
        aco__usage_left(co, extra, co->aco__self.sp);
    if (__sanitizer_start_switch_fiber)
        leave_stack(extra, ended, outside);
    if (extra->fiber) {
        extra->left_fiber = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(outside->fiber, 0);
    }
    if (aco_unlikely(extra->usage && ended))
        aco__usage_end(co, extra);
    if (ended) { /* where it starts again */
        extra->left_fiber = NULL;
        extra->left_bottom = NULL;
    }
    if (extra->own_exceptions)
        exchange_exceptions(extra->exceptions, outside->exceptions);
    if (ended || aco__phase(co) == ACO__GONE) /* a task that nobody joins any more */
        aco__trace_ended(co);
    aco__trace_stops(co);
}

ACO__UNOBSERVED void aco__observe_transfer(aco_t *from, aco_t *to)
{
    aco__extra_t *extra = aco__extra(from), *next = aco__extra(to);
    aco__outside_t unused;
    aco__trace_stops(from);
    aco__trace_runs(to);
    if (aco_unlikely(extra && extra->usage))
        aco__usage_left(from, extra, (char *)__builtin_frame_address(0) - SWITCH_FRAME);
    if (extra && extra->own_exceptions)
        exchange_exceptions(extra->exceptions, no_exceptions);
    if (__sanitizer_start_switch_fiber && extra) {
        enter_stack(to->share_stack, next, &unused);
        extra->fake_stack = unused.fake_stack;
        extra->left_bottom = unused.stack_bottom;
        extra->left_size = unused.stack_size;
    }
    if (extra && extra->fiber)
        extra->left_fiber = __tsan_get_current_fiber();
    if (!next)
        return;
    if (next->own_exceptions)
        exchange_exceptions(unused.exceptions, next->exceptions);
    if (next->fiber)
        enter_fiber(next);
}
