#include "os/os.h"
#include "hooks/shadow_stack.h"
#include "hooks/trace.h"

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

void aco__instrument_region_new(const void *p, size_t sz)
{
    if (__lsan_register_root_region)
        __lsan_register_root_region(p, sz);
}

void aco__instrument_region_freed(const void *p, size_t sz)
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
    return (size_t)((char *)(aco__stack_cold(stack) + 1) - (char *)stack->ptr);
}

void aco__instrument_stack_new(aco_share_stack_t *stack)
{
    aco__instrument_region_new(stack->ptr, stack_region(stack));
    stack->aco__registered = aco__register_stack(stack->ptr, stack); /* its record begins where it ends */
    if (aco_unlikely(stack->aco__registered))
        prepare_for_valgrind(stack, stack->aco__top);
}

void aco__instrument_frames_freed(const void *sp, const void *end)
{
    size_t sz = (size_t)((const char *)end - (const char *)sp);
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(sp, sz);
    if (__msan_unpoison)
        __msan_unpoison(sp, sz);
}

void aco__instrument_stack_freed(aco_share_stack_t *stack)
{
    aco__instrument_frames_freed(stack->ptr, stack->aco__top);
    aco__instrument_region_freed(stack->ptr, stack_region(stack));
    if (aco_unlikely(stack->aco__registered)) {
        VALGRIND_MAKE_MEM_NOACCESS(stack->ptr, frames_room(stack)); /* a leak checker looks for no pointers there */
        aco__deregister_stack(stack->aco__registered);
    }
}

void aco__instrument_cached(const aco_share_stack_t *stack)
{
    if (aco_unlikely(stack->aco__registered)) /* its frames are garbage; it will be used again by code that says nothing */
        VALGRIND_MAKE_MEM_UNDEFINED(stack->ptr, frames_room(stack));
}

ACO__NO_SANITIZE void aco__instrument_arguments(void)
{
    enum { WORDS = 8 }; /* more than any function has that a switch enters */
    if (__msan_unpoison_param)
        __msan_unpoison_param(WORDS);
}

void aco__instrument_frames_restored(const aco_t *co)
{
    if (co->share_stack->aco__registered)
        prepare_for_valgrind(co->share_stack, co->aco__self.sp);
}

void aco__instrument_area_freed(const aco_t *co)
{
    if (__lsan_register_root_region) /* the slab is still looked at */
        memset(co->save_stack.ptr, 0, co->save_stack.sz);
    VALGRIND_MAKE_MEM_UNDEFINED(co->save_stack.ptr, co->save_stack.sz);
}

void aco__instrument_restarted(aco_t *co)
{
    const aco_share_stack_t *stack = co->share_stack;
    if (aco__has(co, ACO__PRIVATE) || aco__share_stacks_are_private())
        aco__instrument_frames_freed(stack->ptr, stack->aco__top);
}

void aco__instrument_named(const aco__cold_t *cold)
{
    if (cold->fiber && __tsan_set_fiber_name)
        __tsan_set_fiber_name(cold->fiber, cold->name);
}

/* ---- Coroutines ---- */

/* Valgrind must know of each copy. */
static int must_copy_by_request(const aco_t *co)
{
    return !aco__has(co, ACO__PRIVATE) && co->share_stack->aco__registered;
}

int aco__instrument_new(aco_t *co, int own_exceptions)
{
    aco__cold_t *cold;
    if (aco_unlikely(must_copy_by_request(co)))
        aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
    if (!own_exceptions && !aco__tools_present())
        return 0;
    cold = aco__cold_make(co);
    if (!cold)
        return -1;
    cold->own_exceptions = own_exceptions != 0;
    if (own_exceptions)
        look_for_globals(1);
    if (__tsan_create_fiber)
        cold->fiber = __tsan_create_fiber(0);
    aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
    return 0;
}

void aco__instrument_no_more(aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    if (!aco__tools_present() && !(cold && (cold->own_exceptions || cold->usage || aco__has_shadow(cold))) &&
        !must_copy_by_request(co))
        aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__INSTRUMENTED);
}

/* ASan: from here to where a coroutine left off, and back. That is on its own stack, or on that of a generator it yielded in. */
ACO__NO_SANITIZE static void enter_stack(const aco_share_stack_t *stack, const aco__cold_t *cold, aco__resumer_state_t *resumer_state)
{
    if (cold->left_bottom)
        __sanitizer_start_switch_fiber(&resumer_state->fake_stack, cold->left_bottom, cold->left_size);
    else
        __sanitizer_start_switch_fiber(&resumer_state->fake_stack, stack->ptr, (size_t)((char *)stack->aco__top - (char *)stack->ptr));
    __sanitizer_finish_switch_fiber(cold->fake_stack, &resumer_state->stack_bottom, &resumer_state->stack_size);
}

ACO__NO_SANITIZE static void leave_stack(aco__cold_t *cold, int for_good, const aco__resumer_state_t *resumer_state)
{
    __sanitizer_start_switch_fiber(for_good ? NULL : &cold->fake_stack, resumer_state->stack_bottom, resumer_state->stack_size);
    __sanitizer_finish_switch_fiber(resumer_state->fake_stack, &cold->left_bottom, &cold->left_size);
    if (for_good)
        cold->fake_stack = NULL;
}

/* TSan: the same. */
ACO__NO_SANITIZE static void enter_fiber(const aco__cold_t *cold)
{
    __tsan_switch_to_fiber(cold->left_fiber ? cold->left_fiber : cold->fiber, 0);
}

ACO__NO_SANITIZE void aco__instrument_destroyed(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    aco__shadow_free(cold);
    if (cold->usage)
        aco__usage_end(co, cold);
    if (cold->fiber)
        __tsan_destroy_fiber(cold->fiber);
    if (cold->fake_stack) { /* freed by leaving it for good */
        aco__resumer_state_t resumer_state;
        enter_stack(co->share_stack, cold, &resumer_state);
        leave_stack(cold, 1, &resumer_state);
    }
    co->arg = NULL; /* what is leaked must not be found in a block that is free */
}

void aco__instrument_unwind(void)
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
    const aco__cold_t *cold = aco__cold(co);
    return cold && cold->own_exceptions;
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

ACO__NO_SANITIZE void aco__instrument_enter(aco_t *co, aco__resumer_state_t *resumer_state)
{
    aco__cold_t *cold = aco__cold_of(co);
    if (!cold)
        return;
    aco__trace_runs(co);
    if (cold->own_exceptions)
        exchange_exceptions(resumer_state->exceptions, cold->exceptions);
    if (cold->fiber) {
        resumer_state->fiber = __tsan_get_current_fiber();
        enter_fiber(cold);
    }
    if (__sanitizer_start_switch_fiber)
        enter_stack(co->share_stack, cold, resumer_state);
}

ACO__NO_SANITIZE void aco__instrument_leave(aco_t *co, aco__resumer_state_t *resumer_state)
{
    aco__cold_t *cold = aco__cold_of(co);
    int ended = aco__status(co) == ACO__ENDED;
    if (!cold)
        return;
    if (aco_unlikely(cold->usage && !ended))
        aco__usage_left(co, cold, co->aco__self.sp);
    if (__sanitizer_start_switch_fiber)
        leave_stack(cold, ended, resumer_state);
    if (cold->fiber) {
        cold->left_fiber = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(resumer_state->fiber, 0);
    }
    if (aco_unlikely(cold->usage && ended))
        aco__usage_end(co, cold);
    if (ended) { /* where it starts again */
        cold->left_fiber = NULL;
        cold->left_bottom = NULL;
    }
    if (cold->own_exceptions)
        exchange_exceptions(cold->exceptions, resumer_state->exceptions);
    if (ended || aco__status(co) == ACO__DESTROYED) /* a task that nobody joins any more */
        aco__trace_ended(co);
    aco__trace_stops(co);
}

ACO__NO_SANITIZE void aco__instrument_transfer(aco_t *from, aco_t *to)
{
    aco__cold_t *cold = aco__cold_of(from), *next = aco__cold_of(to);
    aco__resumer_state_t unused;
    aco__trace_stops(from);
    aco__trace_runs(to);
    if (aco_unlikely(cold && cold->usage))
        aco__usage_left(from, cold, (char *)__builtin_frame_address(0) - SWITCH_FRAME);
    if (cold && cold->own_exceptions)
        exchange_exceptions(cold->exceptions, no_exceptions);
    if (__sanitizer_start_switch_fiber && cold) {
        enter_stack(to->share_stack, next, &unused);
        cold->fake_stack = unused.fake_stack;
        cold->left_bottom = unused.stack_bottom;
        cold->left_size = unused.stack_size;
    }
    if (cold && cold->fiber)
        cold->left_fiber = __tsan_get_current_fiber();
    if (!next)
        return;
    if (next->own_exceptions)
        exchange_exceptions(unused.exceptions, next->exceptions);
    if (next->fiber)
        enter_fiber(next);
}
