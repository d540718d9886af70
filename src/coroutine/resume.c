/* Resumes and transfers off the fast path. The switch itself is inline, in include/aco/arch/.
 *
 * A resume is one of these:
 *   inline         by the root context, frames in place: all of it in the header
 *   evicted        the same, but the coroutine's frames are in its save area and are restored first
 *   chained        by a coroutine on another stack; the context of its own resumer is moved away meanwhile. The common
 *                  case is inline too
 *   general        everything else: instrumented, on the resumer's own share stack, or with an injected call
 *   exported       by an exported function in assembly (entry/), which calls one of the above off its fast path */
#include "tools/shadow_stack.h"
#include "coroutine/exit.h"
#include "coroutine/query.h"
#include "coroutine/resume.h"

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

/* Sets what aco__on_scratch() does after the next switch to it. `call` is NULL if a failure is fatal. */
static void prepare_scratch(aco__scratch_t *scratch, aco_t *target, aco_t *from, uintptr_t interrupt_flag,
                            const char *call)
{
    ACO__ASSERT((uintptr_t)scratch - (uintptr_t)__builtin_frame_address(0) > ACO__SCRATCH_STACK); /* it has no frames */
    ACO__ASSERT(target->share_stack && target != from && !aco__is_task(target));
    scratch->target = target;
    scratch->from = from;
    scratch->interrupt_flag = interrupt_flag;
    scratch->call = call;
}

/* ---- Resuming ---- */

/* aco__stack_restore(). If every failure is fatal, it always returns 1. */
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
            prepare_scratch(scratch, co, NULL, interrupt_flag, fatal ? NULL : call);
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

/* ---- Transfer ---- */

/* Stores the floating-point environment of `from` (NULL: of the resumer) and loads that of `to`. A coroutine without
 * its own environment uses the resumer's. */
static void change_environment(aco__thread_t *self, aco_t *from, aco_t *to)
{
    int own_from = from && aco__owns_fp(from), own_to = aco__owns_fp(to);
    uint32_t control, wanted;
    uint16_t control2, wanted2;
    if (!own_from && !own_to)
        return;
    aco__fp_read(&control, &control2);
    *(own_from ? &from->aco__fp_control : &self->fp_control) = control;
    *(own_from ? &from->aco__fp_control2 : &self->fp_control2) = control2;
    wanted = own_to ? to->aco__fp_control : self->fp_control;
    wanted2 = own_to ? to->aco__fp_control2 : self->fp_control2;
    if (((control ^ wanted) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != wanted2)
        aco__fp_load(&wanted, &wanted2);
}

/* ---- On the scratch stack ---- */

/* Runs on the scratch stack: a resume or a transfer switched to it instead of to `target`. Restores the frames of
 * `target` if needed and continues it. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI void aco__on_scratch(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco__scratch_t *scratch = self->scratch;
    aco_t *co = scratch->target, *from = ACO__LIBACO_ONLY ? NULL : scratch->from; /* no transfers */
    ACO__ASSERT((uintptr_t)scratch - (uintptr_t)__builtin_frame_address(0) <= ACO__SCRATCH_STACK);
    ACO__ASSERT(aco__status(co) <= ACO__SAVED); /* nobody else has resumed or ended it */
    if (aco__status(co) != ACO__SUSPENDED &&
        !restore(co, scratch->call == NULL, scratch->call ? scratch->call : "aco_resume")) {
        if (!from)
            aco__switch_exit(aco__tls_ref(), (uintptr_t)co, ACO_ERROR);
        self->running = from;
        aco__switch_enter(aco__tls_ref(), from, (uintptr_t)from, ACO_ERROR);
    }
    change_environment(self, from, co);
    self->running = co;
    aco__switch_enter(aco__tls_ref(), co, (uintptr_t)co | scratch->interrupt_flag, value);
}

/* A coroutine yielded or ended while its resumer's frames were saved. This runs on the scratch stack, restores them and
 * continues the resumer. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI void aco__restore_trampoline(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco_t *resumer = self->resuming;
    ACO__ASSERT(resumer && aco__status(resumer) == ACO__RESUMING_SAVED);
    aco__stack_restore(resumer, 1, "aco_yield");
    aco__load_resumer(self, resumer, &resumer->aco__self);
    self->unwind_parent = &self->resumer;
    aco__switch_exit(aco__tls_ref(), tagged, value);
}

#ifndef ACO_CONFIG_LIBACO_ONLY
/* A coroutine yielded in its cleanup. This runs on the scratch stack and aborts. */
ACO__FOREIGN_ENTRY ACO__ARRIVAL_ABI void aco__trapped(ACO__ARRIVAL_PARAMETERS)
{
    aco__die("aco_yield", (void *)(tagged & ~(uintptr_t)1),
             "yields in its cleanup, in a deferred call or a destructor that runs because it ends");
}

/* Whether the running coroutine may transfer to `co`, with room on the scratch stack if both are on one stack. */
static int check_transfer(const char *call, aco_t *from, const aco_t *co)
{
    if (!from)
        return aco__fail(0, EPERM, call, co, "no coroutine is running");
    if (aco__is_cancelled())
        return aco__fail(0, EPERM, call, from, "is in its cleanup");
    if (co == from)
        return 0;
    if (aco__is_task(from))
        return aco__fail(0, EPERM, call, from, "%s", ACO__A_TASK);
    if (aco__check(0, call, co) != 0)
        return -1;
    if (aco__has_own_exceptions(co) && !aco__has_own_exceptions(from)) /* the resumer does not swap exceptions */
        return aco__fail(0, EPERM, call, co, "has ACO_OWN_EXCEPTIONS, and the running coroutine does not");
    if (from->share_stack == co->share_stack && !aco__scratch())
        return aco__fail_memory(0, call, ACO__SCRATCH_STACK);
    return 0;
}

/* Restores the frames of `co` unless that has to happen on the scratch stack. 1, or 0 after a failure. */
static int restore_for_transfer(const char *call, const aco_t *from, aco_t *co, int fatal)
{
    return from->share_stack == co->share_stack || aco__status(co) == ACO__SUSPENDED ||
           aco__stack_restore(co, fatal, call);
}

ACO__NO_SANITIZE static void *transfer_slow(const char *call, aco_t *co, void *value)
{
    aco__thread_t *self = aco__self();
    aco_t *from = self->running;
    uintptr_t tagged;
    if (check_transfer(call, from, co) != 0)
        return ACO_ERROR;
    if (co == from)
        return value;
    if (!restore_for_transfer(call, from, co, 0))
        return ACO_ERROR;
    if (from->aco__state & ACO__INSTRUMENTED) {
        aco__instrument_transfer(from, co);
        aco__shadow_transfer(from, co);
    }
    if (from->share_stack == co->share_stack) {
        aco__scratch_t *scratch = self->scratch;
        prepare_scratch(scratch, co, from, 0, call);
        tagged = aco__switch_transfer(aco__tls_ref(), from, &scratch->runner, &value, 0);
        if (value == ACO_ERROR && aco__has(from, ACO__INSTRUMENTED)) { /* failed: `from` never stopped */
            aco__shadow_transfer(co, from);
            aco__instrument_transfer(co, from);
        }
    } else {
        change_environment(self, from, co);
        tagged = aco__switch_transfer(aco__tls_ref(), from, co, &value, 0);
    }
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

int aco__yield_to_slow(aco_t *co)
{
    return transfer_slow("aco_yield_to", co, NULL) == ACO_ERROR ? -1 : 0;
}

void *aco__transfer_slow(aco_t *co, void *value)
{
    return transfer_slow("aco_transfer", co, value);
}

ACO__NO_SANITIZE int aco_exit_to(aco_t *co, void *value)
{
    static const char call[] = "aco_exit_to";
    aco__thread_t *self = aco__self();
    aco_t *from = self->running;
    if (check_transfer(call, from, co) != 0)
        return -1;
    if (co == from)
        return aco__fail(0, EINVAL, call, co, "is the running coroutine");
    if (!restore_for_transfer(call, from, co, 0)) /* the failure that leaves the caller as it was */
        return -1;
    aco__ends(from, NULL);
    aco__check(1, call, co); /* the cleanup may have run it, or another one in its place */
    restore_for_transfer(call, from, co, 1);
    if (from->aco__state & ACO__INSTRUMENTED) {
        aco__instrument_transfer(from, co);
        aco__shadow_empty_if_ended(from);
        aco__shadow_transfer(from, co);
    }
    if (from->share_stack == co->share_stack) {
        aco__scratch_t *scratch = self->scratch;
        prepare_scratch(scratch, co, NULL, 0, NULL);
        aco__switch_enter(aco__tls_ref(), &scratch->runner, (uintptr_t)from, value);
    }
    change_environment(self, NULL, co);
    self->running = co;
    aco__switch_enter(aco__tls_ref(), co, (uintptr_t)co, value);
}
#endif
