/* Part of <aco/in_stack_generator.h>: the bodies of its calls. */
#ifndef ACO_DETAIL_IN_STACK_GENERATOR_INLINE_H
#define ACO_DETAIL_IN_STACK_GENERATOR_INLINE_H

ACO__BEGIN_C

/* ---- Functions of the library, off the fast path ---- */

ACO_API ACO__COLD int aco__in_stack_failed(const char *call); /* -1 */
/* The injected call that makes a generator unwind itself up to `outer`. */
ACO_API ACO__COLD aco__injected_t *aco__in_stack_closing(const void *outer);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__yields_in_cleanup(const char *call);
ACO_API ACO__COLD void aco__in_stack_gone(void *sp, void *outer); /* for ASan: frees the frames */
ACO_API ACO__COLD __attribute__((nothrow)) void aco__in_stack_impossible(void);

/* ---- A stack of its own, where the frames of two functions cannot take turns on one stack: Windows functions write
 * above their return address, the fallback has no such switch, and some sanitizers would report an error ---- */

#if defined(_WIN32) || defined(ACO_CONFIG_UCONTEXT) || defined(ACO__ONE_FRAME_ONLY)

#define ACO__ON_ONE_STACK 0
#define aco_in_stack_open(g, function, arg) aco__in_stack_open_own(g, function, arg)
#define aco__switch_in_stack_yield(peer, value_ref) aco__switch_swap(peer, value_ref)
#define aco__switch_in_stack_last(peer, value) aco__switch_swap_last(peer, value)

/* aco__consumer_sp is the block. */
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

/* Gives back the stack. Afterwards there is no generator: what runs next may throw. */
ACO__FORCE_INLINE void aco__in_stack_release(aco_in_stack_t *g)
{
    aco_generator_t own = {NULL, g->aco__peer, (aco_t *)g->aco__consumer_sp};
    g->aco__consumer_sp = NULL;
    g->aco__peer.pc = NULL;
    aco__generator_release(&own);
}

ACO__FORCE_INLINE int aco_in_stack_next(aco_in_stack_t *g)
{
    void *value = NULL;
    if (aco_unlikely(!g->aco__peer.pc))
        return 0;
    ACO__STEP(&g->aco__peer, (aco_t *)g->aco__consumer_sp, &value);
    if (aco_unlikely(!g->aco__peer.pc)) {
        aco__in_stack_release(g);
        if (aco_unlikely(value != NULL))
            ((aco__injected_t *)value)->call((aco__injected_t *)value, NULL);
        return 0;
    }
    g->value = value;
    return 1;
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
    if (g->aco__consumer_sp)
        aco__in_stack_release(g);
    return 0;
}

/* ---- The consumer's stack ---- */

#else

#define ACO__ON_ONE_STACK 1 /* as ACO__IN_STACK */
#define aco_in_stack_open(g, function, arg)                                                                            \
    do {                                                                                                               \
        size_t aco__nothing;                                                                                           \
        void *aco__sp_before, *aco__lowest;                                                                            \
        ACO__SETTLE_STACK;                                                                                             \
        ACO__STACK_POINTER(aco__sp_before, aco__nothing);                                                              \
        aco__lowest = __builtin_alloca_with_align(aco__nothing, 128);                                                  \
        __asm__ volatile("" : : "r"(aco__lowest)); /* keeps the unused block, and with it the frame pointer */         \
        aco__in_stack_open(g, aco__sp_before, aco__lowest, function, arg);                                             \
    } while (0)

/* A basic-block boundary. gcc delays adjustments of the stack pointer around calls, but not beyond it. clang reads the
 * stack pointer for an array of variable length, and moves that read up, but not above it. */
#if defined(__clang__) && __clang_major__ < 17 /* its asm goto cannot stand beside an array of variable length */
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

/* The consumer's side of the switch. Afterwards peer->pc is NULL if the generator has ended, 1 if it was not the
 * innermost one and so did not run. */
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

ACO__FORCE_INLINE void aco__in_stack_open(aco_in_stack_t *g, void *outer, void *lowest,
                                          aco_in_stack_function_t *function, void *arg)
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
#if (!defined(__clang__) || ACO__ARGUMENTS_ROOM) && !defined(ACO__SANITIZED) /* under ASan alloca() gives more */
    /* below the memory from alloca(): padding, and arguments of calls */
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

/* ---- A generator's function ---- */

ACO__FORCE_INLINE void aco__in_stack_yielder_unwound(aco_in_stack_yielder_t *y)
{
    aco__context_t consumer = y->aco__peer;
    aco__generator_unwound(&consumer, ACO__ON_ONE_STACK);
}

#define ACO_IN_STACK_GENERATOR(name, y, arg)                                                                           \
    ACO__FORCE_INLINE void aco__body_of_##name(aco_in_stack_yielder_t *, void *);                                      \
    static void name(ACO__GENERATOR_PARAMETERS, struct aco__in_stack_argument *aco__argument)                          \
    {                                                                                                                  \
        aco_in_stack_yielder_t aco__yielder ACO__UNWOUND(aco__in_stack_yielder_unwound) =                              \
            {{aco__sp, aco__pc, aco__bp, aco__base}};                                                                  \
        ACO__TRY                                                                                                       \
        {                                                                                                              \
            aco__body_of_##name(&aco__yielder, ACO__POINTER(void, aco__argument));                                     \
        }                                                                                                              \
        ACO__CATCH(aco__yielder, ACO__ON_ONE_STACK, aco__switch_in_stack_last)                                         \
        aco__switch_in_stack_last(&aco__yielder.aco__peer, NULL);                                                      \
    }                                                                                                                  \
    ACO__FORCE_INLINE void aco__body_of_##name(__attribute__((unused)) aco_in_stack_yielder_t *y,                      \
                                               __attribute__((unused)) void *arg)

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

ACO__END_C

#endif
