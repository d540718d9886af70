#include "os.h"
#include "shadow.h"
#include "trace.h"

#ifdef __APPLE__
#include <dlfcn.h>
#endif
#include <string.h>

/* Valgrind is told by instructions that do nothing elsewhere. Without its headers, or on processors that it does not know, it is
 * told nothing; ACO_USE_VALGRIND insists on the headers. */
#if defined(ACO_USE_VALGRIND)
#include <valgrind/memcheck.h>
#elif defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#if !defined(VALGRIND_STACK_REGISTER) || defined(NVALGRIND) /* which its headers define on processors that it does not know */
#undef VALGRIND_STACK_REGISTER
#undef VALGRIND_STACK_DEREGISTER
#undef VALGRIND_MAKE_MEM_UNDEFINED
#undef VALGRIND_MAKE_MEM_NOACCESS
#define VALGRIND_STACK_REGISTER(start, end) ((void)(start), (void)(end), 0u)
#define VALGRIND_STACK_DEREGISTER(number) ((void)(number))
#define VALGRIND_MAKE_MEM_UNDEFINED(p, sz) ((void)(p))
#define VALGRIND_MAKE_MEM_NOACCESS(p, sz) ((void)(p), (void)(sz))
#endif

ACO__OPTIONAL(void *, __tsan_get_current_fiber, (void));
ACO__OPTIONAL(void *, __tsan_create_fiber, (unsigned flags));
ACO__OPTIONAL(void, __tsan_destroy_fiber, (void *fiber));
ACO__OPTIONAL(void, __tsan_switch_to_fiber, (void *fiber, unsigned flags));
ACO__OPTIONAL(void, __tsan_set_fiber_name, (void *fiber, const char *name));
ACO__OPTIONAL(void, __sanitizer_start_switch_fiber, (void **fake_stack_save, const void *bottom, size_t size));
ACO__OPTIONAL(void, __sanitizer_finish_switch_fiber, (void *fake_stack_save, const void **bottom_old, size_t *size_old));
ACO__OPTIONAL(void, __asan_unpoison_memory_region, (void const volatile *p, size_t size));
ACO__OPTIONAL(void, __msan_unpoison, (void const volatile *p, size_t size));
ACO__OPTIONAL(void, __msan_unpoison_param, (size_t n));
ACO__OPTIONAL(void, __lsan_register_root_region, (const void *p, size_t size));
ACO__OPTIONAL(void, __lsan_unregister_root_region, (const void *p, size_t size));
#ifdef __APPLE__
ACO__OPTIONAL(void, asan_handle_no_return, (void));
#else
__attribute__((weak)) extern void asan_handle_no_return(void) __asm__("__asan_handle_no_return"); /* gcc has it otherwise */
ACO__OPTIONAL(void *, __cxa_get_globals, (void));
#endif

/* On Windows a weak reference is to the module's own C++ run time. One that is a DLL is looked for, which takes time, by the
 * first cancellation and again for each coroutine that keeps its exceptions apart. */
#ifdef _WIN32
static void *(*loaded_globals)(void); /* atomic, as the next */
static int looked_for_globals;

static void look_for_globals(int again)
{
    void *(*get)(void);
    if (!again && __atomic_load_n(&looked_for_globals, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&looked_for_globals, 1, __ATOMIC_RELAXED);
    if (!__cxa_get_globals && !__atomic_load_n(&loaded_globals, __ATOMIC_RELAXED) && aco__os_loaded_cxx("__cxa_get_globals", &get))
        __atomic_store_n(&loaded_globals, get, __ATOMIC_RELAXED);
}
#else
static void look_for_globals(int again)
{
    (void)again;
}
#endif

/* The C++ run time's record of exceptions that this thread handles; NULL: there is no C++. */
static void **exception_globals(void)
{
#ifdef __APPLE__
    void *(*get)(void);
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
    memcpy(&get, &symbol, sizeof get);
    return get ? get() : NULL;
#elif defined(_WIN32)
    void *(*get)(void) = __atomic_load_n(&loaded_globals, __ATOMIC_RELAXED);
    if (__cxa_get_globals)
        return __cxa_get_globals();
    return get ? get() : NULL;
#else
    return __cxa_get_globals ? __cxa_get_globals() : NULL;
#endif
}

int aco__tools_present(void)
{
    return (__tsan_switch_to_fiber && __tsan_create_fiber) || __sanitizer_start_switch_fiber || __lsan_register_root_region ||
           aco__traced;
}

int aco__share_stacks_are_private(void)
{
    return __sanitizer_start_switch_fiber != NULL;
}

/* ---- Memory ---- */

void aco__observe_region_new(const void *p, size_t sz)
{
    if (__lsan_register_root_region)
        __lsan_register_root_region(p, sz);
}

void aco__observe_region_gone(const void *p, size_t sz)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(p, sz);
}

unsigned aco__register_stack(const void *lowest, const void *end)
{
    (void)lowest, (void)end;
    return (unsigned)VALGRIND_STACK_REGISTER(lowest, (const char *)end - 1);
}

void aco__deregister_stack(unsigned number)
{
    if (number)
        VALGRIND_STACK_DEREGISTER(number);
}

static size_t frames_room(const aco_share_stack_t *stack)
{
    return (size_t)((const char *)stack->aco__top - (const char *)stack->ptr);
}

/* The bytes from `sp` up will be frames. Valgrind takes the red zone below for accessible when the stack pointer comes there by a
 * switch, and makes one word accessible for each by which it goes down later. */
static void prepare_for_valgrind(const aco_share_stack_t *stack, char *sp)
{
    enum { RED_ZONE = 512 }; /* the largest of any ABI */
    size_t below = (size_t)(sp - (char *)stack->ptr);
    sp -= below < RED_ZONE ? below : RED_ZONE;
    VALGRIND_MAKE_MEM_UNDEFINED(sp, (char *)stack->aco__top - sp);
}

/* Frames, and the records above them. */
static size_t stack_region(aco_share_stack_t *stack)
{
    return (size_t)((char *)(aco__stack_extra(stack) + 1) - (char *)stack->ptr);
}

void aco__observe_stack_new(aco_share_stack_t *stack)
{
    aco__observe_region_new(stack->ptr, stack_region(stack));
    stack->aco__registered = aco__register_stack(stack->ptr, stack); /* its record begins where it ends */
    if (aco_unlikely(stack->aco__registered))
        prepare_for_valgrind(stack, stack->aco__top);
}

void aco__observe_frames_gone(const void *sp, const void *end)
{
    size_t sz = (size_t)((const char *)end - (const char *)sp);
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(sp, sz);
    if (__msan_unpoison)
        __msan_unpoison(sp, sz);
}

void aco__observe_stack_gone(aco_share_stack_t *stack)
{
    aco__observe_frames_gone(stack->ptr, stack->aco__top);
    aco__observe_region_gone(stack->ptr, stack_region(stack));
    if (aco_unlikely(stack->aco__registered)) {
        VALGRIND_MAKE_MEM_NOACCESS(stack->ptr, frames_room(stack)); /* a leak checker looks for no pointers there */
        aco__deregister_stack(stack->aco__registered);
    }
}

void aco__observe_spare(const aco_share_stack_t *stack)
{
    if (aco_unlikely(stack->aco__registered)) /* its frames are garbage; it will be used again by code that says nothing */
        VALGRIND_MAKE_MEM_UNDEFINED(stack->ptr, frames_room(stack));
}

ACO__UNOBSERVED void aco__observe_arguments(void)
{
    enum { WORDS = 8 }; /* more than any function has that a switch enters */
    if (__msan_unpoison_param)
        __msan_unpoison_param(WORDS);
}

void aco__observe_frames_come(const aco_t *co)
{
    if (co->share_stack->aco__registered)
        prepare_for_valgrind(co->share_stack, co->aco__self.sp);
}

void aco__observe_area_gone(const aco_t *co)
{
    if (__lsan_register_root_region) /* the slab is still looked at */
        memset(co->save_stack.ptr, 0, co->save_stack.sz);
    VALGRIND_MAKE_MEM_UNDEFINED(co->save_stack.ptr, co->save_stack.sz);
}

void aco__observe_again(aco_t *co)
{
    const aco_share_stack_t *stack = co->share_stack;
    if (aco__has(co, ACO__PRIVATE) || aco__share_stacks_are_private())
        aco__observe_frames_gone(stack->ptr, stack->aco__top);
}

void aco__observe_name(const aco__extra_t *extra)
{
    if (extra->fiber && __tsan_set_fiber_name)
        __tsan_set_fiber_name(extra->fiber, extra->name);
}

/* ---- Coroutines ---- */

/* Valgrind must know of each copy. */
static int must_copy_by_request(const aco_t *co)
{
    return !aco__has(co, ACO__PRIVATE) && co->share_stack->aco__registered;
}

int aco__observe_new(aco_t *co, int own_exceptions)
{
    aco__extra_t *extra;
    if (aco_unlikely(must_copy_by_request(co)))
        aco__set_state_byte(co, co->aco__state | ACO__OBSERVED);
    if (!own_exceptions && !aco__tools_present())
        return 0;
    extra = aco__extra_make(co);
    if (!extra)
        return -1;
    extra->own_exceptions = own_exceptions != 0;
    if (own_exceptions)
        look_for_globals(1);
    if (__tsan_create_fiber)
        extra->fiber = __tsan_create_fiber(0);
    aco__set_state_byte(co, co->aco__state | ACO__OBSERVED);
    return 0;
}

void aco__observe_no_more(aco_t *co)
{
    const aco__extra_t *extra = aco__extra(co);
    if (!aco__tools_present() && !(extra && (extra->own_exceptions || extra->usage || aco__has_shadow(extra))) &&
        !must_copy_by_request(co))
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
    aco__shadow_free(extra);
    if (extra->usage)
        aco__usage_end(co, extra);
    if (extra->fiber)
        __tsan_destroy_fiber(extra->fiber);
    if (extra->fake_stack) { /* freed by leaving it for good */
        aco__outside_t outside;
        enter_stack(co->share_stack, extra, &outside);
        leave_stack(extra, 1, &outside);
    }
    co->arg = NULL; /* what is leaked must not be found in a block that is free */
}

void aco__observe_unwind(void)
{
    if (asan_handle_no_return)
        asan_handle_no_return();
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
    if (!aco__has_own_exceptions(co)) {
        look_for_globals(0);
        exchange_exceptions(kept->words, no_exceptions);
    }
}

void aco__exceptions_back(const aco_t *co, const aco__exceptions_t *kept)
{
    void *unused[3];
    if (!aco__has_own_exceptions(co))
        exchange_exceptions(unused, kept->words);
}

ACO__UNOBSERVED void aco__observe_enter(aco_t *co, aco__outside_t *outside)
{
    aco__extra_t *extra = aco__extra_of(co);
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
    aco__extra_t *extra = aco__extra_of(co);
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
    aco__extra_t *extra = aco__extra_of(from), *next = aco__extra_of(to);
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
