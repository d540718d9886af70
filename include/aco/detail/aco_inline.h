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
/* Sets what all coroutines have in common so that `co` begins when it is first resumed. */
ACO__FORCE_INLINE void aco__prepare_fields(aco_t *co, aco_function_t fn, void *arg)
{
    co->aco__self.sp = co->share_stack->aco__top;
    co->aco__self.bp = NULL; /* ends the chain of frame pointers */
    aco__set_function(co, fn);
    co->arg = arg;
    co->is_end = 0;
}

/* The same for a coroutine of aco_new() that shares its resumer's floating-point environment: it begins fn(arg). */
ACO__FORCE_INLINE void aco__prepare(aco_t *co, aco_function_t fn, void *arg)
{
    ACO__ARRIVAL_ABI void (*begin)(ACO__ARRIVAL_PARAMETERS) = aco__begin;
    memcpy(&co->aco__self.pc, &begin, sizeof begin);
    aco__prepare_fields(co, fn, arg);
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

/* ---- Exceptions of one's own ---- */

ACO__FORCE_INLINE uintptr_t aco__exceptions_any(const aco__exceptions_t *record)
{
#ifdef __arm__
    return (uintptr_t)record->caught | record->uncaught | (uintptr_t)record->propagating;
#else
    return (uintptr_t)record->caught | record->uncaught;
#endif
}

/* Whether no exception is being handled: neither by the caller, as the thread's record `here` says (NULL: not known),
 * nor by a coroutine with `own`. */
ACO__FORCE_INLINE int aco__no_exceptions(const aco__exceptions_t *here, const aco__exceptions_t *own)
{
    return aco_likely(here != NULL && (aco__exceptions_any(here) | aco__exceptions_any(own)) == 0);
}

/* A yield does nothing for the exceptions: the resumer swaps them, before it leaves and when it is back. After a switch
 * that began with aco__no_exceptions() it needs aco__exceptions_leave() only if this is not 0. Nor is the interrupt
 * flag set then. One test, because gcc takes the second of two for cold and moves away what follows. */
ACO__FORCE_INLINE int aco__came_back_otherwise(const aco__exceptions_t *here, const aco_t *co, uintptr_t tagged)
{
    return (aco__exceptions_any(here) | (tagged ^ (uintptr_t)co)) != 0;
}

/* ---- Switching ---- */

/* The fast path needs a suspended coroutine with its frames in place, and no running coroutine. */
#define ACO__NEEDS_SLOW_RESUME(tls, co)                                                                                \
    aco_unlikely((co) == NULL || ((co)->aco__state & ACO__FAST_MASK) != 0 || !aco__nothing_runs_at(tls))

/* The running coroutine resumes another one, and nothing but the words of its resumer's context must move: both have
 * their frames in place, `waiting` is no task and uses its resumer's floating-point environment, and its resumer is the
 * root context or a coroutine with its frames in place. */
ACO__FORCE_INLINE int aco__is_common_chain(const aco__thread_t *self, const aco_t *waiting, const aco_t *co)
{
    const aco_t *resumer = self->resuming;
    const volatile aco_t *again = co; /* else gcc keeps the state that the fast path read: an instruction more there */
    return waiting != NULL && co != NULL && co != waiting && (again->aco__state & ACO__FAST_MASK) == 0 &&
           (waiting->aco__state & (ACO__STATUS | ACO__SHARES_FP)) == ACO__SHARES_FP &&
           (resumer == NULL || (resumer->aco__state & ACO__STATUS) == ACO__RESUMING);
}

/* Copies word by word: the processor could not forward the switch's recent stores to wider loads. */
ACO__FORCE_INLINE void aco__copy_context(volatile aco__context_t *to, const volatile aco__context_t *from)
{
    to->sp = from->sp;
    to->pc = from->pc;
    to->bp = from->bp;
    to->base = from->base;
}

/* Does that (docs/switch.md, Resuming from a coroutine). */
ACO__FORCE_INLINE void *aco__resume_chain(aco__thread_t *self, aco_t *waiting, aco_t *co, void *value, int fp)
{
    aco_t *resumer = self->resuming;
    aco__context_t *moved = resumer ? &resumer->aco__self : &self->root;
    uintptr_t tagged;
    aco__copy_context(moved, &self->resumer);
    waiting->share_stack->aco__resumer_context = moved;
    self->resuming = waiting;
    waiting->aco__state = (unsigned char)(waiting->aco__state | ACO__RESUMING);
    tagged = aco__switch_resume(aco__tls_ref(), co, &value, fp);
    self = aco__self();
    waiting = self->resuming;
    if (aco_unlikely(resumer != NULL && (resumer->aco__state & ACO__STATUS) != ACO__RESUMING)) {
        aco__chain_was_evicted(waiting, resumer);
    } else {
        waiting->aco__state = (unsigned char)(waiting->aco__state & ~ACO__STATUS);
        self->resuming = resumer;
        aco__copy_context(&self->resumer, moved);
        self->running = waiting;
        waiting->share_stack->aco__resumer_context = &aco__no_context;
    }
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

#ifndef ACO__LIBACO_NAMES
ACO__FORCE_INLINE void *ACO__BODY_OF(aco_send)(aco_t *co, void *value)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    if (ACO_DEBUG || ACO__NEEDS_SLOW_RESUME(tls, co)) {
        void *sent = value; /* a copy: the address of `value` itself is not taken */
        aco__thread_t *self = aco__self();
        if (!ACO_DEBUG && aco__is_common_chain(self, self->running, co))
            return aco__resume_chain(self, self->running, co, value, ACO__OWN_FP);
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
#ifndef ACO_CONFIG_LIBACO_ONLY /* libaco's coroutines hardly resume each other: smaller code */
        aco__thread_t *self = aco__self();
        if (!ACO_DEBUG && aco__is_common_chain(self, self->running, co)) {
            aco__resume_chain(self, self->running, co, NULL, ACO__OWN_FP);
            return;
        }
#endif
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
/* Whether a transfer from the running coroutine `from` (NULL: none) needs no slow path. */
ACO__FORCE_INLINE int aco__may_transfer(const aco_t *from, const aco_t *co)
{
    return !ACO_DEBUG && aco_likely(from != NULL && co != NULL &&
                                    ((co->aco__state | from->aco__state) & ACO__FAST_MASK) == 0 &&
                                    ((co->aco__state ^ from->aco__state) & ACO__SHARES_FP) == 0);
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_yield_to)(aco_t *co)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *from = aco__running_at(tls);
    uintptr_t tagged;
    void *value = NULL;
    if (!aco__may_transfer(from, co))
        return aco__yield_to_slow(co);
    tagged = aco__switch_transfer(tls, from, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
    return 0;
}

ACO__FORCE_INLINE void *ACO__BODY_OF(aco_transfer)(aco_t *co, void *value)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *from = aco__running_at(tls);
    uintptr_t tagged;
    if (!aco__may_transfer(from, co))
        return aco__transfer_slow(co, value);
    tagged = aco__switch_transfer(tls, from, co, &value, ACO__OWN_FP);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

/* A thread caches destroyed coroutines of the default kind together with their stacks. Reusing one takes a few stores.
 * The caller has seen that the cache is not empty. */
ACO__FORCE_INLINE aco_t *aco__cache_pop(aco__thread_t *self)
{
    aco_t *co = self->cached;
    self->cached = aco__cached_next(co);
    self->cached_room++;
    return co;
}

ACO__FORCE_INLINE aco_t *aco__cache_reuse(aco__thread_t *self, aco_function_t fn, void *arg)
{
    aco_t *co = aco__cache_pop(self);
    co->aco__state = ACO__PLAIN;
    aco__prepare(co, fn, arg);
    return co;
}

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_new)(aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco__thread_t *self = aco__self();
    if (ACO_DEBUG || aco_unlikely(!self->cached || options || !fn))
        return aco__new(fn, arg, options, ACO__OWN_FP);
    return aco__cache_reuse(self, fn, arg);
}

/* A unit with a sanitizer lets the library tell it that the old frames are gone. */
#ifdef ACO__SANITIZED
enum { ACO__RESTARTS_INLINE = 0 };
#else
enum { ACO__RESTARTS_INLINE = 1 };
#endif

ACO__FORCE_INLINE int ACO__BODY_OF(aco_restart)(aco_t *co, aco_function_t fn, void *arg)
{
    if (!ACO__RESTARTS_INLINE ||
        aco_unlikely(!co || !fn || co->aco__state != (ACO__PLAIN | ACO__ENDED) || aco__self()->measures))
        return aco__restart(co, fn, arg);
    co->aco__state = ACO__PLAIN;
    aco__prepare(co, fn, arg);
    return 0;
}

/* Whether `co` may be cached: its stack is a default one, and its slab belongs to the thread's heap. */
ACO__FORCE_INLINE int aco__is_cacheable(const aco__thread_t *self, const aco_t *co)
{
    return co->share_stack->aco__home.heap == self->heap;
}

/* 1: `co` is cached now. 0: it cannot be, or the cache is full. */
ACO__FORCE_INLINE int aco__cache_put(aco__thread_t *self, aco_t *co)
{
    if (aco_unlikely(!aco__is_cacheable(self, co)))
        return 0;
    if (aco_unlikely(--self->cached_room < 0)) {
        self->cached_room = 0;
        return 0;
    }
    co->aco__state = ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED;
    aco__set_cached_next(co, self->cached);
    self->cached = co;
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
    else if (aco_unlikely(!co || __atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) != (ACO__PLAIN | ACO__ENDED) ||
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
