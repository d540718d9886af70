/* Part of <aco.h>: the bodies of its inline calls. */
#ifndef ACO_DETAIL_ACO_INLINE_H
#define ACO_DETAIL_ACO_INLINE_H

#include "fields.h"
#include "switch.h"

ACO__BEGIN_C

/* Where a coroutine of aco_new() begins. */
ACO_API ACO__ARRIVAL_ABI void aco__begin(ACO__ARRIVAL_PARAMETERS);

ACO__FORCE_INLINE int ACO__BODY_OF(aco_is_main_co)(const aco_t *co)
{
    return co->share_stack == NULL;
}

#ifndef ACO__LIBACO_NAMES
/* Sets the fields of a control block, all but the resume address, so that the coroutine begins when it is first
 * resumed. */
ACO__FORCE_INLINE void aco__prepare_fields(const aco__thread_t *self, aco_t *co, aco_function_t fn, void *arg)
{
    co->aco__self.sp = co->share_stack->aco__top;
    co->aco__self.bp = NULL; /* ends the chain of frame pointers */
    co->aco__fp_control = self->new_fp_control;
    co->aco__fp_control2 = self->new_fp_control2;
    aco__set_function(co, fn);
    co->arg = arg;
    co->is_end = 0;
}

/* The same for a coroutine of aco_new(), which begins fn(arg). */
ACO__FORCE_INLINE void aco__prepare(const aco__thread_t *self, aco_t *co, aco_function_t fn, void *arg)
{
    ACO__ARRIVAL_ABI void (*begin)(ACO__ARRIVAL_PARAMETERS) = aco__begin;
    memcpy(&co->aco__self.pc, &begin, sizeof begin);
    aco__prepare_fields(self, co, fn, arg);
}

ACO__FORCE_INLINE void *ACO__BODY_OF(aco_mem_new)(size_t sz)
{
    void *p = malloc(sz ? sz : 1);
    aco_assertalloc_ptr(p);
    return p;
}
#endif

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_create)(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz,
                                                  aco_cofuncp_t fp, void *arg)
{
    return aco__create(main_co, share_stack, save_stack_sz, fp, arg, ACO__OWN_FP);
}

/* Every switch is followed by this. The call to aco__interrupted() also makes the surrounding function a non-leaf: a
 * leaf function may keep data in the red zone, which a copying stack would lose. Therefore the call must not become a
 * tail call (the empty asm stands after it) and must not be inlined. */
#define ACO__CHECK_INTERRUPT(tagged)                                                                                   \
    do {                                                                                                               \
        if (aco_unlikely((tagged) & 1)) {                                                                              \
            aco__interrupted(tagged);                                                                                  \
            __asm__ volatile("");                                                                                      \
        }                                                                                                              \
    } while (0)

/* The fast path needs a suspended coroutine with its frames in place, and no running coroutine. */
#define ACO__NEEDS_SLOW_RESUME(tls, co)                                                                                \
    aco_unlikely((co) == NULL || ((co)->aco__state & ACO__FAST_MASK) != 0 || aco__running_at(tls) != NULL)

#ifndef ACO__LIBACO_NAMES
ACO__FORCE_INLINE void *ACO__BODY_OF(aco_send)(aco_t *co, void *value)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    if (ACO_DEBUG || ACO__NEEDS_SLOW_RESUME(tls, co)) {
        void *sent = value; /* a copy: the address of `value` itself is not taken */
        if (!(ACO_DEBUG ? aco__send_check(co, &sent, ACO__OWN_FP) : aco__send_slow(co, &sent)))
            return sent;
        tls = aco__tls_ref();
    }
    ACO__COMPUTED(value);
    tagged = aco__switch_resume(tls, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}
#endif

ACO__FORCE_INLINE void ACO__BODY_OF(aco_resume)(aco_t *co)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    void *value = NULL;
    if (ACO_DEBUG || ACO__NEEDS_SLOW_RESUME(tls, co)) {
        if (!(ACO_DEBUG ? aco__resume_check(co, ACO__OWN_FP) : aco__resume_slow(co)))
            return;
        tls = aco__tls_ref();
    }
    tagged = aco__switch_resume(tls, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
}

#ifndef ACO__LIBACO_NAMES
ACO__FORCE_INLINE void *ACO__BODY_OF(aco_yield_value)(void *value)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *co = aco__running_at(tls);
    if (aco_unlikely(co == NULL))
        return aco__not_yielded("aco_yield_value");
    if (ACO_DEBUG)
        aco__yield_check(co, ACO__OWN_FP);
    ACO__COMPUTED(value);
    tagged = aco__switch_yield(tls, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}
#endif

ACO__FORCE_INLINE void aco__yield_at(aco__tls_ref_t tls, aco_t *co, const char *call)
{
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(co == NULL))
        aco__nothing_runs(call);
    if (ACO_DEBUG)
        aco__yield_check(co, ACO__OWN_FP);
    tagged = aco__switch_yield(tls, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
}

ACO__FORCE_INLINE void ACO__BODY_OF(aco_yield1)(aco_t *co)
{
    aco__yield_at(aco__tls_ref(), co, "aco_yield1");
}

ACO__FORCE_INLINE void ACO__BODY_OF(aco_yield)(void)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__yield_at(tls, aco__running_at(tls), "aco_yield");
}

#ifndef ACO__LIBACO_NAMES
ACO__FORCE_INLINE int ACO__BODY_OF(aco_yield_to)(aco_t *co)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *from = aco__running_at(tls);
    uintptr_t tagged;
    void *value;
    if (ACO_DEBUG || aco_unlikely(from == NULL || co == NULL ||
                                  ((co->aco__state | from->aco__state) & ACO__FAST_MASK) != 0 ||
                                  ((co->aco__state ^ from->aco__state) & ACO__SHARES_FP) != 0))
        return aco__yield_to_slow(co);
    value = NULL;
    tagged = aco__switch_transfer(tls, from, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
    return 0;
}

/* A thread caches destroyed coroutines of the default kind together with their stacks. Reusing one takes a few stores.
 * The caller has seen that the cache is not empty. */
ACO__FORCE_INLINE aco_t *aco__cache_pop(aco__thread_t *self)
{
    aco_t *co = self->cached;
    self->cached = aco__cached_next(co);
    self->cached_count--;
    return co;
}

ACO__FORCE_INLINE aco_t *aco__cache_reuse(aco__thread_t *self, aco_function_t fn, void *arg, int own_fp)
{
    aco_t *co = aco__cache_pop(self);
    co->aco__state = (unsigned char)(own_fp ? ACO__FROM_NEW | ACO__PRIVATE
                                            : ACO__FROM_NEW | ACO__PRIVATE | ACO__SHARES_FP);
    aco__prepare(self, co, fn, arg);
    return co;
}

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_new)(aco_function_t fn, void *arg, const aco_options_t *opts)
{
    aco__thread_t *self = aco__self();
    if (ACO_DEBUG || aco_unlikely(!self->cached || opts || !fn))
        return aco__new(fn, arg, opts, ACO__OWN_FP);
    return aco__cache_reuse(self, fn, arg, ACO__OWN_FP);
}

/* 1: `co` is cached. 0: it cannot be cached. Only its own slab's heap may cache it, and only default stacks are. */
ACO__FORCE_INLINE int aco__cache_put(aco__thread_t *self, aco_t *co)
{
    if (!co->share_stack->aco__cacheable || self->cached_count >= ACO__MOST_CACHED ||
        *(struct aco__heap **)((uintptr_t)co & ~(uintptr_t)(ACO__SLAB - 1)) != self->heap) /* where its slab begins */
        return 0;
    co->aco__state = ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED;
    aco__set_cached_next(co, self->cached);
    self->cached = co;
    self->cached_count++;
    return 1;
}
#endif

ACO__FORCE_INLINE void ACO__BODY_OF(aco_destroy)(aco_t *co)
{
    if (ACO_DEBUG)
        aco__destroy_checked(co);
#ifdef ACO__LIBACO_NAMES
    else
        aco__destroy(co);
#else
    else if (aco_unlikely(!co || (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ~ACO__SHARES_FP) !=
                                     (ACO__FROM_NEW | ACO__PRIVATE | ACO__ENDED) ||
                          !aco__cache_put(aco__self(), co)))
        aco__destroy(co);
#endif
}

#ifndef ACO__LIBACO_NAMES
ACO__FORCE_INLINE int ACO__BODY_OF(aco_defer)(void (*fn)(void *), void *arg)
{
    return aco__defer(fn, arg, ACO__FRAME);
}

enum { ACO__PREFETCH_LINES = 5, ACO__CACHE_LINE = 64 };

ACO__FORCE_INLINE void ACO__BODY_OF(aco_prefetch)(const aco_t *co)
{
    uintptr_t i;
    for (i = 0; i < ACO__PREFETCH_LINES; i++)
        __builtin_prefetch((const void *)((uintptr_t)co + i * ACO__CACHE_LINE), 1);
}

ACO__FORCE_INLINE void ACO__BODY_OF(aco_prefetch_stack)(const aco_t *co)
{
    uintptr_t p = (uintptr_t)co->aco__self.sp, end;
    size_t sz = 3 * ACO__CACHE_LINE;
    if (!(co->aco__state & ACO__PRIVATE)) {
        size_t most = (ACO__PREFETCH_LINES + 16) * ACO__CACHE_LINE;
        p = (uintptr_t)co->save_stack.ptr;
        sz = co->save_stack.valid_sz < most ? co->save_stack.valid_sz : most;
    }
    for (end = p + sz; p < end; p += ACO__CACHE_LINE)
        __builtin_prefetch((const void *)p, 1);
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_is_in_main_co)(void)
{
    return aco__running() == NULL;
}
#endif

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_get_co)(void)
{
    aco_t *co = aco__running();
    return aco_likely(co != NULL) ? co : aco__self()->main_co;
}

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_co)(void)
{
    return aco_get_co();
}

ACO__FORCE_INLINE void *ACO__BODY_OF(aco_get_arg)(void)
{
    aco_t *co = aco__running();
    if (aco_unlikely(co == NULL))
        aco__nothing_runs("aco_get_arg");
    return co->arg;
}

ACO__END_C

#endif
