/* Tells AddressSanitizer, ThreadSanitizer, MemorySanitizer, LeakSanitizer and Valgrind about stacks, memory with
 * pointers in it and switches. Does nothing if none of them is present. */
#include "tools/tools.h"

#include <string.h>

/* Requests to Valgrind are instructions without effect elsewhere. They are missing if Valgrind's headers are, and on
 * processors that Valgrind does not support. ACO_USE_VALGRIND requires the headers. */
#if defined(ACO_USE_VALGRIND)
#include <valgrind/memcheck.h>
#elif defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#if !defined(VALGRIND_STACK_REGISTER) || defined(NVALGRIND) /* NVALGRIND: on processors without Valgrind */
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
ACO__OPTIONAL(void, __sanitizer_finish_switch_fiber,
              (void *fake_stack_save, const void **bottom_old, size_t *size_old));
ACO__OPTIONAL(void, __asan_unpoison_memory_region, (void const volatile *p, size_t size));
ACO__OPTIONAL(void, __asan_get_shadow_mapping, (size_t *scale, size_t *offset));
ACO__OPTIONAL(int, __asan_address_is_poisoned, (void const volatile *p));
ACO__OPTIONAL(void, __msan_unpoison, (void const volatile *p, size_t size));
ACO__OPTIONAL(void, __msan_unpoison_param, (size_t n));
ACO__OPTIONAL(void, __lsan_register_root_region, (const void *p, size_t size));
ACO__OPTIONAL(void, __lsan_unregister_root_region, (const void *p, size_t size));
#ifdef __APPLE__
ACO__OPTIONAL(void, asan_handle_no_return, (void));
#else
/* The asm name avoids gcc's own declaration. */
__attribute__((weak)) extern void asan_handle_no_return(void) __asm__("__asan_handle_no_return");
#endif

/* ---- Memory ---- */

static void leak_region_new(const void *p, size_t sz)
{
    if (__lsan_register_root_region)
        __lsan_register_root_region(p, sz);
}

static void leak_region_freed(const void *p, size_t sz)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(p, sz);
}

static unsigned register_stack(const void *lowest, const void *end)
{
    (void)lowest, (void)end;
    return (unsigned)VALGRIND_STACK_REGISTER(lowest, (const char *)end - 1);
}

static void deregister_stack(unsigned number)
{
    if (number)
        VALGRIND_STACK_DEREGISTER(number);
}

static size_t frames_room(const aco_share_stack_t *stack)
{
    return (size_t)((const char *)stack->aco__top - (const char *)stack->ptr);
}

/* The bytes from `sp` up will be frames: makes them accessible for Valgrind. When a switch moves the stack pointer
 * there, Valgrind expects the red zone below to be accessible. Later it makes one word accessible for each word that
 * the stack pointer goes down. */
static void prepare_for_valgrind(const aco_share_stack_t *stack, char *sp)
{
    enum { RED_ZONE = 512 }; /* the largest of any ABI */
    size_t below = (size_t)(sp - (char *)stack->ptr);
    ACO__ASSERT(sp >= (char *)stack->ptr && sp <= (char *)stack->aco__top);
    sp -= below < RED_ZONE ? below : RED_ZONE;
    VALGRIND_MAKE_MEM_UNDEFINED(sp, (char *)stack->aco__top - sp);
}

/* The size of the frames and of the records above them. */
static size_t stack_region(aco_share_stack_t *stack)
{
    return (size_t)((char *)(aco__stack_cold(stack) + 1) - (char *)stack->ptr);
}

static void register_frames(aco_share_stack_t *stack)
{
    leak_region_new(stack->ptr, stack_region(stack));
    stack->aco__registered = register_stack(stack->ptr, stack); /* the record begins where the stack ends */
    if (aco_unlikely(stack->aco__registered))
        prepare_for_valgrind(stack, stack->aco__top);
}

static void unpoison(uintptr_t from, uintptr_t end)
{
    __asan_unpoison_memory_region((const void *)from, end - from);
}

/* Unpoisons what may have been poisoned: shadow pages that are not resident were never written, and unpoisoning would
 * make them resident, 256 KiB for a stack of 2 MiB. It reads the shadow byte behind the part that it unpoisons, which
 * makes that byte's page resident too; so the first part, up to a page of the shadow, ends a byte earlier. */
static void unpoison_frames(uintptr_t from, uintptr_t end)
{
    size_t scale = 0, offset = 0, page = aco__os_page_size();
    uintptr_t first, last; /* whole pages of the shadow */
    if (__asan_get_shadow_mapping && __asan_address_is_poisoned) {
        __asan_get_shadow_mapping(&scale, &offset);
        first = aco__round_up((from >> scale) + offset, page);
        last = ((end >> scale) + offset) & ~(uintptr_t)(page - 1);
        if (first < last) {
            uintptr_t resident = first + aco__os_first_resident((const void *)first, last - first);
            uintptr_t border = (first - offset) << scale, before = border - ((uintptr_t)1 << scale);
            if (from < border)
                unpoison(from, before);
            if (from < border && __asan_address_is_poisoned((const void *)(border - 1)))
                unpoison(before, border);
            from = (resident - offset) << scale;
        }
    }
    unpoison(from, end);
}

void aco__sanitize_frames_freed(const void *sp, const void *end)
{
    size_t sz = (size_t)((const char *)end - (const char *)sp);
    ACO__ASSERT((uintptr_t)sp <= (uintptr_t)end);
    if (__asan_unpoison_memory_region)
        unpoison_frames((uintptr_t)sp, (uintptr_t)end);
    if (__msan_unpoison)
        __msan_unpoison(sp, sz);
}

static void deregister_frames(aco_share_stack_t *stack)
{
    aco__sanitize_frames_freed(stack->ptr, stack->aco__top);
    leak_region_freed(stack->ptr, stack_region(stack));
    if (aco_unlikely(stack->aco__registered)) {
        VALGRIND_MAKE_MEM_NOACCESS(stack->ptr, frames_room(stack)); /* so that a leak checker ignores pointers there */
        deregister_stack(stack->aco__registered);
    }
}

void aco__sanitize_cached(const aco_share_stack_t *stack)
{
    if (aco_unlikely(stack->aco__registered)) /* code that does not tell Valgrind will use the stack again */
        VALGRIND_MAKE_MEM_UNDEFINED(stack->ptr, frames_room(stack));
}

ACO__NO_SANITIZE void aco__sanitize_arguments(void)
{
    enum { WORDS = 8 }; /* more than the parameters of any function that a switch enters */
    if (__msan_unpoison_param)
        __msan_unpoison_param(WORDS);
}

static void frames_restored(const aco_t *co)
{
    if (co->share_stack->aco__registered)
        prepare_for_valgrind(co->share_stack, co->aco__self.sp);
}

static void area_freed(const aco_t *co)
{
    if (__lsan_register_root_region) /* leak checkers still scan the slab */
        memset(co->save_stack.ptr, 0, co->save_stack.sz);
    VALGRIND_MAKE_MEM_UNDEFINED(co->save_stack.ptr, co->save_stack.sz);
}

void aco__sanitize_named(const aco__cold_t *cold)
{
    if (cold->fiber)
        __tsan_set_fiber_name(cold->fiber, cold->name);
}

int aco__sanitize_copies(const aco_t *co)
{
    return !aco__has(co, ACO__PRIVATE) && co->share_stack->aco__registered;
}

void aco__sanitize_unwind(void)
{
    if (asan_handle_no_return)
        asan_handle_no_return();
}

/* ---- Switches ---- */

/* AddressSanitizer: enter_stack() announces the switch to the stack on which the coroutine stopped, leave_stack() the
 * switch back. The coroutine stopped on its own stack, or on that of a generator in which it yielded. */
ACO__NO_SANITIZE static void enter_stack(const aco_share_stack_t *stack, const aco__cold_t *cold,
                                         aco__resumer_state_t *resumer_state)
{
    if (cold->left_bottom)
        __sanitizer_start_switch_fiber(&resumer_state->fake_stack, cold->left_bottom, cold->left_size);
    else
        __sanitizer_start_switch_fiber(&resumer_state->fake_stack, stack->ptr,
                                       (size_t)((char *)stack->aco__top - (char *)stack->ptr));
    __sanitizer_finish_switch_fiber(cold->fake_stack, &resumer_state->stack_bottom, &resumer_state->stack_size);
}

ACO__NO_SANITIZE static void leave_stack(aco__cold_t *cold, int for_good, const aco__resumer_state_t *resumer_state)
{
    __sanitizer_start_switch_fiber(for_good ? NULL : &cold->fake_stack, resumer_state->stack_bottom,
                                   resumer_state->stack_size);
    __sanitizer_finish_switch_fiber(resumer_state->fake_stack, &cold->left_bottom, &cold->left_size);
    if (for_good)
        cold->fake_stack = NULL;
}

/* ThreadSanitizer: the same. */
ACO__NO_SANITIZE static void enter_fiber(const aco__cold_t *cold)
{
    __tsan_switch_to_fiber(cold->left_fiber ? cold->left_fiber : cold->fiber, 0);
}

void aco__sanitize_new(aco__cold_t *cold)
{
    if (__tsan_create_fiber)
        cold->fiber = __tsan_create_fiber(0);
}

ACO__NO_SANITIZE void aco__sanitize_destroyed(aco_t *co, aco__cold_t *cold)
{
    if (cold->fiber)
        __tsan_destroy_fiber(cold->fiber);
    if (cold->fake_stack) { /* a switch away for good frees it */
        aco__resumer_state_t resumer_state;
        enter_stack(co->share_stack, cold, &resumer_state);
        leave_stack(cold, 1, &resumer_state);
    }
    co->arg = NULL; /* so that a leak checker does not find a pointer in a freed block */
}

ACO__NO_SANITIZE void aco__sanitize_enter(const aco_t *co, const aco__cold_t *cold, aco__resumer_state_t *resumer_state)
{
    if (cold->fiber) {
        resumer_state->fiber = __tsan_get_current_fiber();
        enter_fiber(cold);
    }
    if (__sanitizer_start_switch_fiber)
        enter_stack(co->share_stack, cold, resumer_state);
}

ACO__NO_SANITIZE void aco__sanitize_leave(aco__cold_t *cold, int for_good, const aco__resumer_state_t *resumer_state)
{
    if (__sanitizer_start_switch_fiber)
        leave_stack(cold, for_good, resumer_state);
    if (cold->fiber) {
        cold->left_fiber = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(resumer_state->fiber, 0);
    }
}

ACO__NO_SANITIZE void aco__sanitize_transfer_from(const aco_t *to, const aco__cold_t *next, aco__cold_t *cold)
{
    aco__resumer_state_t leaving;
    if (__sanitizer_start_switch_fiber) {
        enter_stack(to->share_stack, next, &leaving);
        cold->fake_stack = leaving.fake_stack;
        cold->left_bottom = leaving.stack_bottom;
        cold->left_size = leaving.stack_size;
    }
    if (cold->fiber)
        cold->left_fiber = __tsan_get_current_fiber();
}

ACO__NO_SANITIZE void aco__sanitize_transfer_to(const aco__cold_t *next)
{
    if (next->fiber)
        enter_fiber(next);
}

ACO__AT_LOAD static void register_sanitizers(void)
{
    aco__upcalls.region_new = leak_region_new;
    aco__upcalls.region_freed = leak_region_freed;
    aco__upcalls.register_stack = register_stack;
    aco__upcalls.deregister_stack = deregister_stack;
    aco__upcalls.stack_new = register_frames;
    aco__upcalls.stack_freed = deregister_frames;
    aco__upcalls.frames_restored = frames_restored;
    aco__upcalls.area_freed = area_freed;
    aco__upcalls.share_stacks_are_private = __sanitizer_start_switch_fiber != NULL;
    if ((__tsan_switch_to_fiber && __tsan_create_fiber) || __sanitizer_start_switch_fiber ||
        __lsan_register_root_region)
        aco__upcalls.instruments_all = 1;
    aco__upcalls.notes_frames = __asan_unpoison_memory_region || __msan_unpoison;
}
