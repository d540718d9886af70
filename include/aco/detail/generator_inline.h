/* Part of <aco/generator.h>: the bodies of its calls. */
#ifndef ACO_DETAIL_GENERATOR_INLINE_H
#define ACO_DETAIL_GENERATOR_INLINE_H

#ifdef __cpp_exceptions
#include <cxxabi.h>
#include <exception>
#endif

ACO__BEGIN_C

/* ---- Functions of the library ---- */

ACO_API void aco__generator_begin(void); /* assembly: the first arrival in a generator */
extern ACO_API const void *const aco__generator_return; /* the return address of a generator's function */
/* A block with a stack for a generator. `flags`: the ones that `options` may have. NULL and errno. */
ACO_API __attribute__((nothrow))
aco_t *aco__generator_new(const aco_options_t *options, const void *function, unsigned flags);
ACO_API ACO__COLD void aco__generator_free(aco_t *block);
ACO_API ACO__COLD void aco__generator_has_ended(void); /* fails, with ESRCH */
/* What a generator is, and who says that its frame is unwound. */
enum {
    ACO__IN_STACK = 1,     /* it has its consumer's stack */
    ACO__APART = 2,        /* each side keeps its exceptions to itself (aco.hpp) */
    ACO__BY_HANDLER = 4    /* a handler in its function has caught the unwinding */
};
/* Unwinds the generator that is suspended in `peer`. */
ACO_API ACO__COLD void aco__generator_unwind(const aco__context_t *peer, aco_t *block, int kind);
/* Called when the frame of a generator's function is unwound; `peer`: its consumer. Does not return if aco_cancel() or
 * aco_generator_close() unwinds. */
ACO_API ACO__COLD void aco__generator_unwound(const aco__context_t *peer, int kind);
/* The consumer's switch in a unit with a sanitizer. It also informs the sanitizer. */
ACO_API void aco__generator_step(aco__context_t *peer, aco_t *block, void **value_ref);

/* An injected call, passed as the value of a switch. If a consumer passes one, the generator makes the call when it
 * continues. If a generator passes one when it ends, the consumer makes the call after it has released the stack. */
typedef struct aco__injected {
    void (*call)(struct aco__injected *injected, const aco__context_t *consumer);
} aco__injected_t;

#ifdef ACO__SANITIZED
#define ACO__STEP(peer, block, value_ref) aco__generator_step(peer, block, value_ref)
#else
#define ACO__STEP(peer, block, value_ref) aco__switch_swap(peer, value_ref)
#endif

/* ---- A generator's function ---- */

#ifdef __cpp_exceptions

ACO__END_C

/* The consumer throws again what the generator's function has thrown. The generator leaves from inside its handler, so
 * that the exception stays in the thread's record and nothing has to be allocated. The handler's end is here. */
ACO__COLD inline void aco__rethrow(aco__injected_t *, const aco__context_t *)
{
    struct handler {
        ~handler() { abi::__cxa_end_catch(); }
    } of_generator;
    throw;
}
/* Called in the handler of a generator's function. Returns its last value. */
ACO__COLD inline void *aco__generator_caught(const aco__context_t *consumer, int kind)
{
    static aco__injected_t thrown = {aco__rethrow};
    if (!std::current_exception()) { /* no C++ exception: most likely the unwinding of a cancellation */
        aco__generator_unwound(consumer, kind | ACO__BY_HANDLER);
        throw;
    }
    return &thrown;
}

ACO__BEGIN_C

#define ACO__UNWOUND(function)
#define ACO__TRY try
#define ACO__CATCH(y, kind, last)                                                                                      \
    catch (...)                                                                                                        \
    {                                                                                                                  \
        aco__context_t aco__consumer = (y).aco__peer;                                                                  \
        last(&aco__consumer, aco__generator_caught(&aco__consumer, kind));                                             \
    }
#else
#define ACO__UNWOUND(function) __attribute__((cleanup(function)))
#define ACO__TRY
#define ACO__CATCH(y, kind, last)
#endif

ACO__FORCE_INLINE void aco__yielder_unwound(aco_yielder_t *y)
{
    aco__context_t consumer = y->aco__peer;
    aco__generator_unwound(&consumer, 0);
}

#define ACO_GENERATOR(name, y, arg)                                                                                    \
    ACO__FORCE_INLINE void aco__body_of_##name(aco_yielder_t *, void *);                                               \
    static void name(ACO__GENERATOR_PARAMETERS, void *aco__argument)                                                   \
    {                                                                                                                  \
        aco_yielder_t aco__yielder ACO__UNWOUND(aco__yielder_unwound) = {{aco__sp, aco__pc, aco__bp, aco__base}};      \
        ACO__TRY                                                                                                       \
        {                                                                                                              \
            aco__body_of_##name(&aco__yielder, aco__argument);                                                         \
        }                                                                                                              \
        ACO__CATCH(aco__yielder, 0, aco__switch_swap_last)                                                             \
        aco__switch_swap_last(&aco__yielder.aco__peer, NULL);                                                          \
    }                                                                                                                  \
    ACO__FORCE_INLINE void aco__body_of_##name(__attribute__((unused)) aco_yielder_t *y,                               \
                                               __attribute__((unused)) void *arg)

/* ---- The consumer's side ---- */

/* Lays out what aco__generator_begin finds at `sp`. */
ACO__FORCE_INLINE void aco__generator_start(void *sp, const void *function, const void *return_address, const void *arg)
{
    const void **start = (const void **)sp;
    start[ACO__START_FUNCTION] = function;
    start[ACO__START_RETURN] = return_address;
    start[ACO__START_ARGUMENT] = arg;
}

/* The context in which a generator on the stack of `block` begins. */
ACO__FORCE_INLINE aco__context_t aco__generator_context(aco_t *block, const void *function, const void *arg)
{
    void (*begin)(void) = aco__generator_begin;
    aco__context_t context = {NULL, NULL, NULL, NULL}; /* a frame pointer of NULL ends the chain */
    char *top = (char *)block->share_stack->aco__top + ACO__ENTRY_BELOW_TOP;
    void **sp = (void **)(void *)(top - ACO__START_WORDS * sizeof(void *));
    aco__generator_start(sp, function, aco__generator_return, arg);
    memcpy(&context.pc, &begin, sizeof begin);
#ifdef ACO__START_POPS /* the resume address stands at the stack pointer */
    *--sp = context.pc;
#endif
    context.sp = sp;
    return context;
}

ACO__FORCE_INLINE int aco_generator_open(aco_generator_t *g, aco_generator_function_t *function, void *arg,
                                         const aco_options_t *options)
{
    aco__thread_t *self = aco__self();
    const void *entry;
    memcpy(&entry, &function, sizeof entry);
    g->value = NULL;
    g->aco__peer.pc = NULL;
    if (aco_unlikely(!self->cached || options || !function))
        g->aco__block = aco__generator_new(options, entry, ACO_NO_GUARD);
    else
        g->aco__block = aco__cache_pop(self); /* it stays ACO__DESTROYED: the block of a generator is no coroutine */
    if (aco_unlikely(!g->aco__block))
        return -1;
    g->aco__peer = aco__generator_context(g->aco__block, entry, arg);
    return 0;
}

/* Releases the stack of a generator. The call also makes the consumer a non-leaf, as in ACO__CHECK_INTERRUPT. */
ACO__FORCE_INLINE void aco__generator_release(aco_generator_t *g)
{
    aco_t *block = g->aco__block;
    g->aco__block = NULL;
    g->aco__peer.pc = NULL;
    if (aco_unlikely(block->aco__state != (ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED) ||
                     !aco__cache_put(aco__self(), block))) {
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
        aco__generator_unwind(&peer, g->aco__block, 0);
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

ACO__END_C

#endif
