/* Resumes off the fast path. The switch itself is inline, in include/aco/arch/.
 *
 * A resume is one of these:
 *   inline         by the root context, frames in place: all of it in the header
 *   evicted        the same, but the coroutine's frames are in its save area and are restored first
 *   chained        by a coroutine on another stack; the context of its own resumer is moved away meanwhile. The common
 *                  case is inline too
 *   general        everything else: instrumented, on the resumer's own share stack, or with an injected call
 *   exported       by an exported function in assembly (entry/), which calls one of the above off its fast path */
#include "coroutine/on_scratch.h"
#include "coroutine/query.h"
#include "tools/shadow_stack.h"

/* ---- Waiting resumers ---- */

/* The running coroutine starts to wait for one that it resumes. Returns the waiting coroutine's own resumer, for
 * end_waiting(). */
static inline aco_t *begin_waiting(aco__thread_t *self, aco_t *waiting)
{
    aco_t *resumer = self->resuming;
    ACO__ASSERT(waiting == self->running && waiting != resumer);
    ACO__ASSERT(aco__is_task(waiting) || aco__status(waiting) == ACO__SUSPENDED);
    waiting->share_stack->aco__resumer_context = aco__saved_context(self, resumer);
    aco__save_resumer(self);
    self->resuming = waiting;
    if (aco_likely(!aco__is_task(waiting))) /* a task: no call can resume it anyway */
        aco__set_status(waiting, ACO__RESUMING);
    return resumer;
}

static inline void end_waiting(aco__thread_t *self, aco_t *waiting, aco_t *resumer)
{
    ACO__ASSERT(self->resuming == waiting);
    ACO__ASSERT(aco__is_task(waiting) || aco__status(waiting) == ACO__RESUMING); /* its frames are back */
    if (aco_likely(!aco__is_task(waiting)))
        aco__set_status(waiting, ACO__SUSPENDED);
    aco__restore_resumer(self, resumer);
    self->running = waiting;
    waiting->share_stack->aco__resumer_context = &aco__no_context;
}

#ifndef ACO_CONFIG_LIBACO_ONLY /* there resume_general() does this too */
/* noipa: gcc knows that this calls nothing, and on i386 it would call this with an unaligned stack. */
#if ACO__HAS_ATTRIBUTE(noipa)
__attribute__((noipa))
#endif
void aco__chain_was_evicted(aco_t *waiting, aco_t *resumer)
{
    end_waiting(aco__self(), waiting, resumer);
}

/* `waiting`, the running coroutine, may resume `co` at once, which is on another stack and not instrumented. */
static inline int is_chain(const aco_t *waiting, const aco_t *co)
{
    return co && (co->aco__state & ACO__FAST_MASK) == 0 && co != waiting;
}

/* The same as the header's aco__resume_chain(), for every chain. */
static inline void *resume_chained(aco__thread_t *self, aco_t *waiting, aco_t *co, void *value)
{
    aco_t *resumer = begin_waiting(self, waiting);
    uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
    end_waiting(aco__self(), waiting, resumer);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

/* A function of its own, because it uses all registers, and a resume of an evicted coroutine should not save them. */
static __attribute__((noinline)) void *resume_common_chain(aco__thread_t *self, aco_t *waiting, aco_t *co, void *value)
{
    return aco__resume_chain(self, waiting, co, value, 1);
}

/* The exceptions of a suspended coroutine on a private stack that is instrumented only because they are its own; else
 * NULL. aco__exceptions_of() says the same, for all coroutines. */
static inline const aco__exceptions_t *exceptions_apart(const aco_t *co)
{
    const unsigned mask = ACO__FAST_MASK | ACO__PRIVATE | ACO__HAS_COLD;
    const aco__cold_t *cold;
    if ((co->aco__state & mask) != (ACO__INSTRUMENTED | ACO__PRIVATE | ACO__HAS_COLD) || aco__upcalls.instruments_all)
        return NULL;
    ACO__ASSERT(co->share_stack->aco__private);
    cold = aco__stack_cold(co->share_stack);
    return cold->own_exceptions && !cold->usage && !aco__has_shadow(cold) ? &cold->exceptions : NULL;
}

/* The common case: the root context resumes `co`, and neither handles an exception. */
static inline int is_common_apart(const aco__thread_t *self, const aco_t *co)
{
    const aco__exceptions_t *own = co ? exceptions_apart(co) : NULL;
    return own && aco__no_exceptions(self->exceptions, own);
}

/* A function of its own, as resume_common_chain(). */
static __attribute__((noinline)) void *resume_common_apart(const aco__exceptions_t *here, aco_t *co, void *value)
{
    uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
    if (aco_unlikely(aco__came_back_otherwise(here, co, tagged))) {
        aco__exceptions_leave(tagged, NULL);
        ACO__CHECK_INTERRUPT(tagged);
    }
    return value;
}

static void *resume_apart(aco__thread_t *self, aco_t *waiting, aco_t *co, const aco__exceptions_t *own, void *value)
{
    aco_t *resumer = waiting ? begin_waiting(self, waiting) : NULL;
    const aco__exceptions_t *here = self->exceptions;
    aco__exceptions_t aside;
    uintptr_t tagged;
    if (aco__no_exceptions(here, own)) {
        tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        if (aco_unlikely(aco__came_back_otherwise(here, co, tagged)))
            aco__exceptions_leave(tagged, NULL);
    } else {
        aco__exceptions_swap(&aside, own);
        tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        aco__exceptions_leave(tagged, &aside);
    }
    if (waiting)
        end_waiting(aco__self(), waiting, resumer);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}
#endif

/* ---- Resuming ---- */

/* aco__stack_restore(). Where every failure is fatal, it always returns 1. */
static inline int restore(aco_t *co, int fatal, const char *call)
{
    return aco__stack_restore(co, fatal, call) || ACO__LIBACO_ONLY;
}

/* `interrupt_flag` is 1 if `co` has to make an injected call when it continues, else 0. */
ACO__NO_SANITIZE static __attribute__((noinline)) void *resume_general(aco_t *co, void *value, uintptr_t interrupt_flag,
                                                                       int fatal, const char *call)
{
    aco__thread_t *self = aco__self();
    aco_t *waiting = self->running, *resumer = NULL;
    int instrumented = (co->aco__state & ACO__INSTRUMENTED) != 0,
        on_this_stack = waiting && waiting->share_stack == co->share_stack;
    aco__resumer_state_t resumer_state;
    aco__scratch_t *scratch = NULL;
    uintptr_t tagged = 0;
    if (interrupt_flag || on_this_stack) {
        scratch = aco__scratch();
        if (!scratch) {
            aco__fail_memory(fatal, call, ACO__SCRATCH_STACK);
            return ACO_ERROR;
        }
    }
    ACO__ASSERT(!interrupt_flag || scratch->injected);
    ACO__ASSERT(!on_this_stack || !aco__stack_is_private(co->share_stack));
    if (waiting)
        resumer = begin_waiting(self, waiting);
    if (on_this_stack || aco__status(co) == ACO__SUSPENDED || restore(co, fatal, call)) {
        if (instrumented) {
            aco__instrument_enter(co, &resumer_state);
            aco__shadow_enter(co, &resumer_state);
        }
        if (scratch)
            aco__prepare_scratch(scratch, co, NULL, interrupt_flag, fatal ? NULL : call);
        /* The runner has no floating-point environment of its own: with it the switch swaps none. */
        tagged = aco__switch_resume(aco__tls_ref(), scratch ? &scratch->runner : co, &value, 1);
        if (instrumented) {
            aco_t *left = (aco_t *)(tagged & ~(uintptr_t)1);
            aco__shadow_empty_if_ended(left);
            aco__shadow_leave(left, &resumer_state);
            aco__instrument_leave(left, &resumer_state);
        }
    } else {
        value = ACO_ERROR;
    }
    if (waiting)
        end_waiting(aco__self(), waiting, resumer);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

/* Resumes `co` off the common paths. 1: its frames are restored now, and the caller has to make the switch. 0: the
 * resume is done or has failed; *value is what it returns. */
static __attribute__((noinline)) int resume_rest(aco_t *co, void **value, int fatal, const char *call)
{
    aco_t *running = aco__running();
#ifndef ACO_CONFIG_LIBACO_ONLY
    if (running && is_chain(running, co)) {
        *value = resume_chained(aco__self(), running, co, *value);
        return 0;
    }
    const aco__exceptions_t *own;
    if (co && co != running && (own = exceptions_apart(co)) != NULL) {
        *value = resume_apart(aco__self(), running, co, own, *value);
        return 0;
    }
#endif
    if (aco__check(fatal, call, co) != 0) {
        *value = ACO_ERROR;
    } else if (running || (co->aco__state & ACO__INSTRUMENTED)) {
        *value = resume_general(co, *value, 0, fatal, call);
    } else {
        if (aco__status(co) == ACO__SUSPENDED || restore(co, fatal, call))
            return 1;
        *value = ACO_ERROR;
    }
    return 0;
}

/* Nothing runs, and `co` is only evicted. */
static inline int is_only_evicted(const aco_t *co)
{
    return aco_likely(co && (co->aco__state & ACO__FAST_MASK) == ACO__SAVED);
}

ACO__NAMED_BY_ASSEMBLY int aco__resume_slow(aco_t *co)
{
    aco__thread_t *self = aco__self();
    aco_t *running = self->running;
    void *value = NULL;
    if (!running) {
        if (is_only_evicted(co))
            return aco__stack_restore(co, 1, "aco_resume");
#ifndef ACO_CONFIG_LIBACO_ONLY
        if (is_common_apart(self, co)) {
            resume_common_apart(self->exceptions, co, NULL);
            return 0;
        }
    } else if (aco_likely(aco__is_common_chain(self, running, co))) {
        resume_common_chain(self, running, co, NULL);
        return 0;
#endif
    }
    return resume_rest(co, &value, 1, "aco_resume");
}

#ifndef ACO_CONFIG_LIBACO_ONLY
int aco__send_slow(aco_t *co, void **value)
{
    aco__thread_t *self = aco__self();
    aco_t *running = self->running;
    if (!running) {
        if (is_only_evicted(co)) {
            if (aco__stack_restore(co, 0, "aco_send"))
                return 1;
            *value = ACO_ERROR;
            return 0;
        }
        if (is_common_apart(self, co)) {
            *value = resume_common_apart(self->exceptions, co, *value);
            return 0;
        }
    } else if (aco_likely(aco__is_common_chain(self, running, co))) {
        *value = resume_common_chain(self, running, co, *value);
        return 0;
    }
    return resume_rest(co, value, 0, "aco_send");
}

#ifndef ACO_CONFIG_UCONTEXT
/* The exported aco_send() and aco_resume() off their fast path. */
ACO__HIDDEN void *aco__send_exported(aco_t *co, void *value);
ACO__HIDDEN void aco__resume_exported(aco_t *co);

ACO__NAMED_BY_ASSEMBLY void *aco__send_exported(aco_t *co, void *value)
{
    if (aco__send_slow(co, &value)) {
        uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        ACO__CHECK_INTERRUPT(tagged);
    }
    return value;
}

ACO__NAMED_BY_ASSEMBLY void aco__resume_exported(aco_t *co)
{
    void *value = NULL;
    if (aco__resume_slow(co)) {
        uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        ACO__CHECK_INTERRUPT(tagged);
    }
}
#endif

/* ---- Injected calls ---- */

void *aco__inject(aco_t *co, void (*fn)(void *), void *arg, const char *call)
{
    aco__scratch_t *scratch;
    void *value;
    if (aco__check(0, call, co) != 0)
        return ACO_ERROR;
    scratch = aco__scratch();
    if (!scratch) {
        aco__fail_memory(0, call, ACO__SCRATCH_STACK);
        return ACO_ERROR;
    }
    ACO__ASSERT(!scratch->injected);
    scratch->injected = fn;
    scratch->injected_arg = arg;
    value = resume_general(co, NULL, 1, 0, call);
    if (value == ACO_ERROR)
        aco__self()->scratch->injected = NULL;
    return value;
}
#endif

ACO__NAMED_BY_ASSEMBLY void aco__interrupted(uintptr_t interrupt_flag)
{
    aco__scratch_t *scratch = aco__self()->scratch;
    void (*fn)(void *) = scratch && !ACO__LIBACO_ONLY ? scratch->injected : NULL;
    if (!fn)
        aco__die("switch", (void *)(interrupt_flag & ~(uintptr_t)1),
                 "the interrupt flag is set without an injected call");
    scratch->injected = NULL;
    fn(scratch->injected_arg);
}
