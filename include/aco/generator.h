/* Generators: functions that make one value after another for the loop that consumes them, at the cost of a function call.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   ACO_GENERATOR(squares, y, arg)
 *   {
 *       for (intptr_t i = 1; i <= (intptr_t)arg; i++)
 *           aco_generate(y, (void *)(i * i));
 *   }
 *   ...
 *   aco_generator_t g;
 *   if (aco_generator_open(&g, squares, (void *)10, NULL) != 0)
 *       error(aco_error_message());
 *   while (aco_generator_next(&g))
 *       printf("%ld\n", (long)(intptr_t)g.value);
 *   aco_generator_close(&g);
 *
 * Two kinds. One of aco_generator_open() has a stack of its own. One of aco_in_stack_open() runs on its consumer's, right below
 * the consumer's frame, and needs no memory at all; what it may not do stands there.
 *
 * How it is fast. Each side keeps the other's stack pointer, frame pointer and place in local variables, so in registers as the
 * loop is tight: no control block is touched. Hence: keep aco_generator_t a local variable, let its address go nowhere but to
 * the calls below, and use aco_generate() in the generator's own function where speed matters most. Functions that it
 * calls get `y` and may yield from any depth; each value then costs the same, whatever the depth.
 *
 * A generator is not a coroutine: aco_get_co() and all that goes by the running coroutine is its consumer's, as in a function
 * that the consumer calls. So a generator may aco_yield() for the coroutine that consumes it, if that one has a private
 * stack; on a share stack the process aborts as the coroutine's frames are saved, in debug builds at the yield. aco_defer() is
 * refused in a generator with a stack of its own. It runs in its consumer's floating-point environment.
 *
 * Exceptions. In C++ one that leaves the generator's function comes out of the call that was running it. The generator must
 * not be suspended inside a catch block while its consumer enters or leaves one.
 *
 * Threads: a generator may be consumed by any thread, by one at a time. */
#ifndef ACO_GENERATOR_H
#define ACO_GENERATOR_H

#ifndef ACO_H /* of the amalgamation it is a part */
#include "../aco.h"
#endif

#if defined(ACO_CONFIG_NO_INLINE) && !defined(ACO__ONE_FILE)
#error "acorn: <aco/generator.h> is inline assembly: there are no generators under ACO_CONFIG_NO_INLINE"
#elif !defined(ACO_CONFIG_NO_INLINE)

/* Sanitizers that must know of switches; and those that must not see two functions' frames take turns on one stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(ACO_USE_ASAN)
#define ACO__SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define ACO__SANITIZED 1
#define ACO__NO_IN_STACK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ACO__SANITIZED 1
#elif __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ACO__SANITIZED 1
#define ACO__NO_IN_STACK 1
#endif
#endif
/* Nor does Windows let them: a function that is called may write above its return address. The fallback has no such switch. */
#if defined(_WIN32) || defined(ACO_CONFIG_UCONTEXT)
#define ACO__NO_IN_STACK 1
#endif
#ifdef ACO__NO_IN_STACK
#define ACO__ON_ONE_STACK 0
#else
#define ACO__ON_ONE_STACK 1
#endif

#ifdef __cplusplus
#if defined(__cpp_exceptions)
#include <exception>
#endif
extern "C" {
#endif

/* ---- On a stack of its own --------------------------------------------------------------------------------------------- */

/* The consumer's side. `value`: the present one, after aco_generator_next() returned 1. */
typedef struct aco_generator_s {
    void *value;
    aco__context_t aco__peer; /* where the generator left off; pc is NULL when it has ended */
    aco_t *aco__block;        /* holds its stack; NULL: none any more */
} aco_generator_t;

/* The generator's side. */
typedef struct aco_yielder_s {
    aco__context_t aco__peer; /* where the consumer waits */
} aco_yielder_t;

typedef void aco_generator_function_t(ACO__GENERATOR_PARAMETERS, void *arg);

/* ACO_GENERATOR(name, y, arg) { … } defines the static function `name` for aco_generator_open(). Its body has `aco_yielder_t *y`
 * and `void *arg`, what aco_generator_open() was given; returning ends the generator. */

/* A new generator, suspended before its beginning. Of `opts`, which may be NULL, stack_size, pool, name and ACO_NO_GUARD are
 * heeded, the others must be 0; with NULL it takes a stack of 256 KiB from the thread's pool. 0, or -1 and errno as aco_new().
 * The caller closes it. */
ACO__FORCE_INLINE int aco_generator_open(aco_generator_t *g, aco_generator_function_t *function, void *arg,
                                         const aco_options_t *opts);

/* Runs the generator until its next aco_generate(). 1: g->value is the new value. 0: it has ended, and its stack is given
 * back; so it stays. */
ACO__FORCE_INLINE int aco_generator_next(aco_generator_t *g);

/* Ends the generator, wherever it is: its frames are unwound, so that cleanup attributes and C++ destructors run (as by
 * aco_cancel(), whose rules hold: they must not yield), and its stack is given back. One that is ended, closed
 * or all zeros stays as it is. Aborts when memory runs out. */
ACO__FORCE_INLINE void aco_generator_close(aco_generator_t *g);

/* The same for a generator with nothing to unwind: its frames are forgotten, which costs nothing. */
ACO__FORCE_INLINE void aco_generator_drop(aco_generator_t *g);

/* In a generator: suspends it, and its consumer has `value`. Returns when the consumer asks for the next. */
ACO__FORCE_INLINE void aco_generate(aco_yielder_t *y, void *value);

/* ---- On its consumer's stack ------------------------------------------------------------------------------------------- */

/* The consumer's side. As aco_generator_t. */
typedef struct aco_in_stack_s {
    void *value;
    aco__context_t aco__peer;
    void *aco__consumer_sp;         /* the consumer's stack pointer before; NULL: no generator below it */
} aco_in_stack_t;

/* The generator's side. */
typedef struct aco_in_stack_yielder_s {
    aco__context_t aco__peer;
} aco_in_stack_yielder_t;

struct aco__in_stack_argument; /* a type that keeps the two kinds of functions apart */
typedef void aco_in_stack_function_t(ACO__GENERATOR_PARAMETERS, struct aco__in_stack_argument *arg);

/* ACO_IN_STACK_GENERATOR(name, y, arg) { … } defines the static function `name` for aco_in_stack_open(). Its body has
 * `aco_in_stack_yielder_t *y` and `void *arg`; it makes its values by aco_generate_in_stack(). */

/* aco_in_stack_open(g, function, arg): begins a generator right below the frame of the calling function, which must be the one
 * that consumes and closes it: hence a macro, which must not stand in a function that is inlined to open a generator
 * for its caller (the compiler takes the stack pointer back as such a function ends, and the next call is refused).
 * It makes the compiler address the frame by the frame pointer, since the stack pointer will be the generator's.
 *
 * The generators of a thread, and what else is put on the stack while one lives there (alloca(), arrays of variable
 * length), must end in the reverse order. One that is not the innermost is refused, not resumed. The stack is as deep as
 * that of the consumer. aco_yield() for the consumer's coroutine works on every kind of stack. gcc keeps a place for
 * arguments at the stack pointer (on x86 with -maccumulate-outgoing-args, which some processors' -march brings): in a function
 * that passes arguments there (on other processors than x86: more than 64 bytes of them), aco_in_stack_open() aborts; so it does
 * on a thread with a shadow stack, in a unit compiled for them (docs/platforms.md). Under
 * ThreadSanitizer, on Windows and with ACO_CONFIG_UCONTEXT the generator gets a stack of its own, and is never refused. */
#ifdef ACO__NO_IN_STACK
#define aco_in_stack_open(g, function, arg) aco__in_stack_open_own(g, function, arg)
#else
#define aco_in_stack_open(g, function, arg)                                                                            \
    do {                                                                                                               \
        size_t aco__nothing;                                                                                           \
        void *aco__sp_before, *aco__lowest;                                                                            \
        ACO__SETTLE_STACK;                                                                                             \
        ACO__STACK_POINTER(aco__sp_before, aco__nothing);                                                              \
        aco__lowest = __builtin_alloca_with_align(aco__nothing, 128);                                                  \
        __asm__ volatile("" : : "r"(aco__lowest)); /* else the unused block, and with it the frame pointer, may go */  \
        aco__in_stack_open(g, aco__sp_before, aco__lowest, function, arg);                                             \
    } while (0)
#endif

/* As aco_generator_next(). -1: refused, errno EBUSY; what was put on the stack since is still there. */
ACO__FORCE_INLINE int aco_in_stack_next(aco_in_stack_t *g);

/* As aco_generator_close(), aco_generator_drop(): the generator's frames leave the stack. 0, or -1 and errno EBUSY. */
ACO__FORCE_INLINE int aco_in_stack_close(aco_in_stack_t *g);
ACO__FORCE_INLINE int aco_in_stack_drop(aco_in_stack_t *g);

/* As aco_generate(). */
ACO__FORCE_INLINE void aco_generate_in_stack(aco_in_stack_yielder_t *y, void *value);

/* ---- Internal from here on -------------------------------------------------------------------------------------------- */

ACO_API void aco__generator_begin(void); /* assembly: the first arrival */
extern ACO_API const void *const aco__generator_return; /* the return address of one on a stack of its own */
/* A block with a stack for a generator; `flags`: those that `opts` may have. NULL and errno. */
ACO_API __attribute__((nothrow)) aco_t *aco__generator_new(const aco_options_t *opts, const void *function, unsigned flags);
ACO_API ACO__COLD void aco__generator_free(aco_t *block);
/* Refuses, with ESRCH. */
ACO_API ACO__COLD void aco__generator_has_ended(void);
/* Unwinds the generator that is suspended in `peer`. */
ACO_API ACO__COLD void aco__generator_unwind(const aco__context_t *peer, aco_t *block);
/* Called as the frame of a generator's function is unwound; `peer`: its consumer. Does not come back if that is due to
 * aco_cancel() or aco_generator_close(). */
ACO_API ACO__COLD void aco__generator_unwound(const aco__context_t *peer, int in_stack);

/* What a generator may be resumed with: to be called there. What its consumer may find instead of a last value: to be
 * called when the stack is given back. */
typedef struct aco__injected {
    void (*call)(struct aco__injected *injected, const aco__context_t *consumer);
} aco__injected_t;

/* In-stack generators off the fast path. */
ACO_API ACO__COLD int aco__in_stack_failed(const char *call); /* -1 */
/* What makes a generator unwind itself up to `outer`. */
ACO_API ACO__COLD aco__injected_t *aco__in_stack_closing(const void *outer);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__yields_in_cleanup(const char *call);
ACO_API ACO__COLD void aco__in_stack_gone(void *sp, void *outer);
ACO_API ACO__COLD __attribute__((nothrow)) void aco__in_stack_impossible(void);

#ifndef ACO_CONFIG_UCONTEXT /* which has these as functions */
/* Goes on in `peer`, which is left with `*passed`; comes back when it comes back. Afterwards peer->pc is NULL if it has ended. */
ACO__FORCE_INLINE void aco__switch_swap(aco__context_t *peer, void **value_ref)
{
    void *value = *value_ref, *sp = peer->sp, *pc = peer->pc, *bp = peer->bp;
    ACO__BOUNDS_KEEP;
    register void *base ACO__PEER_BASE = peer->base;
    (void)pc;
    ACO__PEER_SWAP;
    peer->sp = sp;
    peer->pc = pc;
    peer->bp = bp;
    peer->base = ACO__HELD(base);
    ACO__BOUNDS_BACK;
    *value_ref = value;
}

/* Leaves for `peer`, for which this side has ended. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_swap_last(const aco__context_t *peer, void *value)
{
    void *sp = peer->sp, *pc = peer->pc, *bp = peer->bp;
    register void *base ACO__PEER_BASE = peer->base;
    (void)pc;
    ACO__PEER_SWAP_LAST;
    __builtin_unreachable();
}
#endif

/* Under a sanitizer that must know of it the library does it. */
ACO_API void aco__generator_step(aco__context_t *peer, aco_t *block, void **value_ref);
#ifdef ACO__SANITIZED
#define ACO__STEP(peer, block, value_ref) aco__generator_step(peer, block, value_ref)
#else
#define ACO__STEP(peer, block, value_ref) aco__switch_swap(peer, value_ref)
#endif

/* What stands around a generator's body. */
#if defined(__cpp_exceptions)
/* The exception being handled, boxed, for the consumer to throw again. */
}
struct aco__thrown : aco__injected_t {
    std::exception_ptr exception;
};
ACO__COLD inline void aco__rethrow(aco__injected_t *injected, const aco__context_t *)
{
    std::exception_ptr exception = static_cast<aco__thrown *>(injected)->exception;
    delete static_cast<aco__thrown *>(injected);
    std::rethrow_exception(exception);
}
ACO__COLD inline void *aco__generator_caught(const aco__context_t *consumer, int in_stack)
{
    std::exception_ptr exception = std::current_exception();
    if (!exception) { /* nobody's exception: the unwinding of a cancellation, most likely */
        aco__generator_unwound(consumer, in_stack);
        throw;
    }
    aco__thrown *thrown = new aco__thrown;
    thrown->call = aco__rethrow;
    thrown->exception = exception;
    return static_cast<aco__injected_t *>(thrown);
}
extern "C" {
#define ACO__UNWOUND
#define ACO__UNWOUND_IN_STACK
#define ACO__TRY try
#define ACO__CATCH(y, outcome, in_stack)                                                                               \
    catch (...)                                                                                                        \
    {                                                                                                                  \
        aco__context_t aco__consumer = (y).aco__peer;                                                                  \
        outcome = aco__generator_caught(&aco__consumer, in_stack);                                                     \
    }
#else
ACO__FORCE_INLINE void aco__yielder_unwound(aco_yielder_t *y)
{
    aco__context_t consumer = y->aco__peer;
    aco__generator_unwound(&consumer, 0);
}
ACO__FORCE_INLINE void aco__in_stack_yielder_unwound(aco_in_stack_yielder_t *y)
{
    aco__context_t consumer = y->aco__peer;
    aco__generator_unwound(&consumer, ACO__ON_ONE_STACK);
}
#define ACO__UNWOUND __attribute__((cleanup(aco__yielder_unwound)))
#define ACO__UNWOUND_IN_STACK __attribute__((cleanup(aco__in_stack_yielder_unwound)))
#define ACO__TRY
#define ACO__CATCH(y, outcome, in_stack)
#endif

#define ACO_GENERATOR(name, y, arg)                                                                                    \
    ACO__FORCE_INLINE void aco__body_of_##name(aco_yielder_t *, void *);                                               \
    static void name(ACO__GENERATOR_PARAMETERS, void *aco__argument)                                                   \
    {                                                                                                                  \
        void *aco__outcome = NULL;                                                                                     \
        aco_yielder_t aco__yielder ACO__UNWOUND = {{aco__sp, aco__pc, aco__bp, aco__base}};                            \
        ACO__TRY                                                                                                       \
        {                                                                                                              \
            aco__body_of_##name(&aco__yielder, aco__argument);                                                         \
        }                                                                                                              \
        ACO__CATCH(aco__yielder, aco__outcome, 0)                                                                      \
        aco__switch_swap_last(&aco__yielder.aco__peer, aco__outcome);                                              \
    }                                                                                                                  \
    ACO__FORCE_INLINE void aco__body_of_##name(__attribute__((unused)) aco_yielder_t *y, __attribute__((unused)) void *arg)

/* Lays out what aco__generator_begin finds at `sp`. */
ACO__FORCE_INLINE void aco__generator_start(void *sp, const void *function, const void *return_address, const void *arg)
{
    const void **start = (const void **)sp;
    start[ACO__START_FUNCTION] = function;
    start[ACO__START_RETURN] = return_address;
    start[ACO__START_ARGUMENT] = arg;
}

/* Where a generator on the block's stack begins. */
ACO__FORCE_INLINE aco__context_t aco__generator_context(aco_t *block, const void *function, const void *arg)
{
    void (*begin)(void) = aco__generator_begin;
    aco__context_t context = {NULL, NULL, NULL, NULL}; /* a frame pointer of NULL ends the chain */
    void **sp = (void **)(void *)((char *)block->share_stack->aco__top + ACO__ENTRY_BELOW_TOP - ACO__START_WORDS * sizeof(void *));
    aco__generator_start(sp, function, aco__generator_return, arg);
    memcpy(&context.pc, &begin, sizeof begin);
#ifdef ACO__START_POPS /* the place to go on stands at the stack pointer */
    *--sp = context.pc;
#endif
    context.sp = sp;
    return context;
}

ACO__FORCE_INLINE int aco_generator_open(aco_generator_t *g, aco_generator_function_t *function, void *arg,
                                         const aco_options_t *opts)
{
    aco__thread_t *self = aco__self();
    const void *entry;
    memcpy(&entry, &function, sizeof entry);
    g->value = NULL;
    g->aco__peer.pc = NULL;
    if (aco_unlikely(!self->cached || opts || !function))
        g->aco__block = aco__generator_new(opts, entry, ACO_NO_GUARD);
    else
        g->aco__block = aco__cache_pop(self); /* its state says GONE: a generator's block is nobody's coroutine */
    if (aco_unlikely(!g->aco__block))
        return -1;
    g->aco__peer = aco__generator_context(g->aco__block, entry, arg);
    return 0;
}

/* Gives the stack of a generator back. The call is what keeps the consumer from being a leaf, as in ACO__CHECK_INTERRUPT. */
ACO__FORCE_INLINE void aco__generator_release(aco_generator_t *g)
{
    aco_t *block = g->aco__block;
    g->aco__block = NULL;
    g->aco__peer.pc = NULL;
    if (aco_unlikely(block->aco__state != (ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED) || !aco__cache_put(aco__self(), block))) {
        aco__generator_free(block);
        __asm__ volatile("");
    }
}

ACO__FORCE_INLINE int aco_generator_next(aco_generator_t *g)
{
    void *value = NULL;
    if (aco_unlikely(!g->aco__peer.pc))
        return 0;
    ACO__STEP(&g->aco__peer, g->aco__block, &value);
    if (aco_unlikely(!g->aco__peer.pc)) {
        aco__generator_release(g);
        if (aco_unlikely(value != NULL))
            ((aco__injected_t *)value)->call((aco__injected_t *)value, NULL);
        return 0;
    }
    g->value = value;
    return 1;
}

ACO__FORCE_INLINE void aco_generator_close(aco_generator_t *g)
{
    if (!g->aco__block)
        return;
    if (g->aco__peer.pc) {
        aco__context_t peer = g->aco__peer;
        aco__generator_unwind(&peer, g->aco__block);
    }
    aco__generator_release(g);
}

ACO__FORCE_INLINE void aco_generator_drop(aco_generator_t *g)
{
    if (g->aco__block)
        aco__generator_release(g);
}

ACO__FORCE_INLINE void aco_generate(aco_yielder_t *y, void *value)
{
    ACO__COMPUTED(value);
    aco__switch_swap(&y->aco__peer, &value);
    if (aco_unlikely(value != NULL)) {
        aco__context_t consumer = y->aco__peer;
        ((aco__injected_t *)value)->call((aco__injected_t *)value, &consumer);
        __asm__ volatile("");
    }
}

/* ---- On one stack ---- */

#ifdef ACO__NO_IN_STACK
#define aco__switch_in_stack_yield(peer, value_ref) aco__switch_swap(peer, value_ref)
#define aco__switch_in_stack_last(peer, value) aco__switch_swap_last(peer, value)
#endif

/* A block boundary: gcc's adjustments of the stack pointer around calls, which it puts off, are made before it, and clang does
 * not read the stack pointer, for an array of variable length, before it instead of behind. */
#if defined(__clang__) && __clang_major__ < 17 /* whose asm goto cannot stand beside an array of variable length */
#define ACO__SETTLE_STACK                                                                                              \
    __extension__({                                                                                                    \
        int aco__zero = 0;                                                                                             \
        __asm__ volatile("" : "+r"(aco__zero));                                                                        \
        if (aco_unlikely(aco__zero))                                                                                   \
            __asm__ volatile("nop");                                                                                   \
    })
#else
#define ACO__SETTLE_STACK                                                                                              \
    __extension__({                                                                                                    \
        __label__ settled;                                                                                             \
        __asm__ goto("" : : : : settled);                                                                              \
    settled:;                                                                                                          \
    })
#endif

#define ACO_IN_STACK_GENERATOR(name, y, arg)                                                                           \
    ACO__FORCE_INLINE void aco__body_of_##name(aco_in_stack_yielder_t *, void *);                                      \
    static void name(ACO__GENERATOR_PARAMETERS, struct aco__in_stack_argument *aco__argument)                          \
    {                                                                                                                  \
        void *aco__outcome = NULL;                                                                                     \
        aco_in_stack_yielder_t aco__yielder ACO__UNWOUND_IN_STACK = {{aco__sp, aco__pc, aco__bp, aco__base}};          \
        ACO__TRY                                                                                                       \
        {                                                                                                              \
            aco__body_of_##name(&aco__yielder, (void *)aco__argument);                                                 \
        }                                                                                                              \
        ACO__CATCH(aco__yielder, aco__outcome, ACO__ON_ONE_STACK)                                                      \
        aco__switch_in_stack_last(&aco__yielder.aco__peer, aco__outcome);                                                \
    }                                                                                                                  \
    ACO__FORCE_INLINE void aco__body_of_##name(__attribute__((unused)) aco_in_stack_yielder_t *y,                      \
                                               __attribute__((unused)) void *arg)

#ifdef ACO__NO_IN_STACK

/* The same on own stacks; aco__consumer_sp is the block. */
ACO__FORCE_INLINE void aco__in_stack_open_own(aco_in_stack_t *g, aco_in_stack_function_t *function, void *arg)
{
    const void *entry;
    aco_t *block;
    memcpy(&entry, &function, sizeof entry);
    block = aco__generator_new(NULL, entry, 0);
    aco_assertalloc_ptr(block);
    g->value = NULL;
    g->aco__consumer_sp = block;
    g->aco__peer = aco__generator_context(block, entry, arg);
}

ACO__FORCE_INLINE int aco_in_stack_next(aco_in_stack_t *g)
{
    aco_generator_t own = {NULL, g->aco__peer, (aco_t *)g->aco__consumer_sp};
    int is_value = aco_generator_next(&own);
    g->value = own.value;
    g->aco__peer = own.aco__peer;
    g->aco__consumer_sp = own.aco__block;
    return is_value;
}

ACO__FORCE_INLINE int aco_in_stack_close(aco_in_stack_t *g)
{
    aco_generator_t own = {NULL, g->aco__peer, (aco_t *)g->aco__consumer_sp};
    g->aco__consumer_sp = NULL;
    g->aco__peer.pc = NULL;
    aco_generator_close(&own);
    return 0;
}

ACO__FORCE_INLINE int aco_in_stack_drop(aco_in_stack_t *g)
{
    aco_generator_t own = {NULL, g->aco__peer, (aco_t *)g->aco__consumer_sp};
    g->aco__consumer_sp = NULL;
    g->aco__peer.pc = NULL;
    aco_generator_drop(&own);
    return 0;
}

#else

/* Bytes that an architecture keeps at the stack pointer of a consumer whose compiler puts arguments of calls there. */
#ifndef ACO__ARGUMENTS_ROOM
#define ACO__ARGUMENTS_ROOM 0
#endif

/* The consumer's side of the switch. Afterwards pc is NULL if the generator has ended, 1 if it is not the innermost. */
ACO__FORCE_INLINE void aco__switch_in_stack_resume(aco__context_t *peer, void **value_ref)
{
    void *value = *value_ref, *sp = peer->sp, *pc = peer->pc, *bp = peer->bp;
    register void *base ACO__PEER_BASE = peer->base;
    ACO__SETTLE_STACK;
    ACO__IN_STACK_RESUME;
    ACO__SETTLE_STACK;
    peer->sp = sp;
    peer->pc = pc;
    peer->bp = bp;
    peer->base = ACO__HELD(base);
    *value_ref = value;
}

ACO__FORCE_INLINE void aco__switch_in_stack_yield(aco__context_t *peer, void **value_ref)
{
    void *value = *value_ref, *pc = peer->pc, *bp = peer->bp;
    register void *base ACO__PEER_BASE = peer->base;
    ACO__SETTLE_STACK; /* else the consumer's stack pointer may be misaligned */
    ACO__IN_STACK_YIELD;
    peer->pc = pc;
    peer->bp = bp;
    peer->base = ACO__HELD(base);
    *value_ref = value;
}

ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_in_stack_last(const aco__context_t *peer, void *value)
{
    void *pc = peer->pc, *bp = peer->bp;
    register void *base ACO__PEER_BASE = peer->base;
    ACO__SETTLE_STACK;
    ACO__IN_STACK_LAST;
    __builtin_unreachable();
}

ACO__FORCE_INLINE void aco__in_stack_open(aco_in_stack_t *g, void *outer, void *lowest, aco_in_stack_function_t *function,
                                          void *arg)
{
    void (*begin)(void) = aco__generator_begin;
    void *sp, *bp, *here;
    size_t zero;
    const void *entry;
#ifdef ACO__SHADOW_POINTER
    uintptr_t shadow = 0;
    ACO__SHADOW_POINTER(shadow);
    if (aco_unlikely(shadow != 0)) {
        aco__in_stack_impossible();
        __asm__ volatile("");
    }
#endif
    ACO__SETTLE_STACK;
    ACO__STACK_POINTER(sp, zero);
    (void)zero;
    (void)lowest;
#if (!defined(__clang__) || ACO__ARGUMENTS_ROOM) && !defined(ACO__SANITIZED) /* with ASan alloca() gives more than was asked for */
    /* below what it gave: padding, and arguments of calls */
    if (aco_unlikely((uintptr_t)lowest - (uintptr_t)sp > (ACO__ARGUMENTS_ROOM ? ACO__ARGUMENTS_ROOM : 15))) {
        aco__in_stack_impossible();
        __asm__ volatile("");
    }
#endif
    ACO__IN_STACK_BEGIN;
    ACO__SETTLE_STACK;
    memcpy(&entry, &function, sizeof entry);
    aco__generator_start((char *)sp + ACO__ARGUMENTS_ROOM, entry, here, arg);
    g->value = NULL;
    g->aco__consumer_sp = outer;
    memcpy(&g->aco__peer.pc, &begin, sizeof begin);
    g->aco__peer.sp = sp;
    g->aco__peer.bp = bp;
    g->aco__peer.base = NULL;
}


/* Takes the generator's frames off the stack. */
ACO__FORCE_INLINE void aco__in_stack_release(aco_in_stack_t *g)
{
    void *outer = g->aco__consumer_sp;
#ifdef ACO__SANITIZED
    aco__in_stack_gone(g->aco__peer.sp, outer);
#endif
    g->aco__consumer_sp = NULL;
    g->aco__peer.pc = NULL;
    ACO__SETTLE_STACK;
    ACO__IN_STACK_END(outer);
    ACO__SETTLE_STACK;
}

ACO__FORCE_INLINE int aco_in_stack_next(aco_in_stack_t *g)
{
    void *value = NULL, *left = g->aco__peer.pc;
    if (aco_unlikely(!left))
        return 0;
    aco__switch_in_stack_resume(&g->aco__peer, &value);
    if (aco_unlikely((uintptr_t)g->aco__peer.pc <= 1)) {
        if (g->aco__peer.pc) {
            int refused = aco__in_stack_failed("aco_in_stack_next");
            __asm__ volatile("");
            g->aco__peer.pc = left;
            return refused;
        }
        aco__in_stack_release(g);
        if (aco_unlikely(value != NULL))
            ((aco__injected_t *)value)->call((aco__injected_t *)value, NULL);
        return 0;
    }
    g->value = value;
    return 1;
}

ACO__FORCE_INLINE int aco__in_stack_is_innermost(const aco_in_stack_t *g)
{
    void *sp;
    size_t zero;
    ACO__SETTLE_STACK;
    ACO__STACK_POINTER(sp, zero);
    (void)zero;
    return sp == g->aco__peer.sp;
}

ACO__FORCE_INLINE int aco_in_stack_drop(aco_in_stack_t *g)
{
    if (!g->aco__consumer_sp)
        return 0;
    if (!aco__in_stack_is_innermost(g))
        return aco__in_stack_failed("aco_in_stack_drop");
    aco__in_stack_release(g);
    return 0;
}

ACO__FORCE_INLINE int aco_in_stack_close(aco_in_stack_t *g)
{
    void *value, *begin;
    void (*first)(void) = aco__generator_begin;
    memcpy(&begin, &first, sizeof begin);
    if (!g->aco__consumer_sp)
        return 0;
    if (!aco__in_stack_is_innermost(g))
        return aco__in_stack_failed("aco_in_stack_close");
    if (g->aco__peer.pc != begin) {
        value = aco__in_stack_closing(g->aco__consumer_sp);
        aco__switch_in_stack_resume(&g->aco__peer, &value);
        if (g->aco__peer.pc)
            aco__yields_in_cleanup("aco_in_stack_close");
    }
    aco__in_stack_release(g);
    return 0;
}

#endif

ACO__FORCE_INLINE void aco_generate_in_stack(aco_in_stack_yielder_t *y, void *value)
{
    ACO__COMPUTED(value);
    aco__switch_in_stack_yield(&y->aco__peer, &value);
    if (aco_unlikely(value != NULL)) {
        aco__context_t consumer = y->aco__peer;
        ((aco__injected_t *)value)->call((aco__injected_t *)value, &consumer);
        __asm__ volatile("");
    }
}

#ifdef __cplusplus
}
#endif

#endif
#endif
