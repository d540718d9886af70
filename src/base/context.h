/* The contexts of waiting resumers, and of coroutines that have not begun. */
#ifndef ACO_CONTEXT_H
#define ACO_CONTEXT_H

#include "base/scratch.h"

/* The context of `resumer`, a waiting resumer other than that of the running coroutine. It stands in the resumer's
 * block; that of the root context (NULL) stands in the thread record. aco__no_context if the resumer's frames are
 * saved, or if it is the trap of a cleanup. */
static inline const aco__context_t *aco__saved_context(const aco__thread_t *self, const aco_t *resumer)
{
    if (!resumer)
        return &self->root;
    if (aco_unlikely((resumer->aco__state & ACO__STATUS) == ACO__RESUMING_SAVED || !resumer->share_stack))
        return &aco__no_context;
    return &resumer->aco__self;
}

#ifdef ACO__INVARIANTS
/* Whether `co` may be the resumer of the running coroutine: the root context, one that waits for another (a task has
 * its own status), or the trap of a cleanup. */
static inline int aco__may_be_resumer(const aco__thread_t *self, const aco_t *co)
{
    return !co || aco__is_task(co) || (self->scratch && co == &self->scratch->trap) ||
           aco__status(co) == ACO__RESUMING || aco__status(co) == ACO__RESUMING_SAVED;
}
#endif

/* The thread record holds the context of the running coroutine's resumer. Before another resumer's context goes there,
 * this function moves it to the resumer's own block, or to `root` for the root context. It copies field by field: the
 * processor could not forward the switch's recent stores to wider loads. */
static inline void aco__save_resumer(aco__thread_t *self)
{
    aco_t *co = self->resuming;
    volatile aco__context_t *from = &self->resumer, *to = co ? &co->aco__self : &self->root;
    ACO__ASSERT(aco__may_be_resumer(self, co));
    if (aco_likely(!co || (co->aco__state & ACO__STATUS) != ACO__RESUMING_SAVED)) { /* else it is the trampoline's */
        to->sp = from->sp;
        to->pc = from->pc;
        to->bp = from->bp;
        to->base = from->base;
    } else {
        self->unwind_parent = &self->resumer; /* the parent of the coroutine that waits from now on */
    }
    *(co ? &co->aco__fp_control : &self->root_fp_control) = self->fp_control;
    *(co ? &co->aco__fp_control2 : &self->root_fp_control2) = self->fp_control2;
}

/* The reverse. `co` is the resumer, NULL for the root context. Its context is at `from`. */
static inline void aco__load_resumer(aco__thread_t *self, aco_t *co, const volatile aco__context_t *from)
{
    volatile aco__context_t *to = &self->resumer;
    self->resuming = co;
    to->sp = from->sp;
    to->pc = from->pc;
    to->bp = from->bp;
    to->base = from->base;
    self->fp_control = co ? co->aco__fp_control : self->root_fp_control;
    self->fp_control2 = co ? co->aco__fp_control2 : self->root_fp_control2;
}

static inline void aco__restore_resumer(aco__thread_t *self, aco_t *co)
{
    const volatile aco__context_t *from = co ? &co->aco__self : &self->root;
    ACO__ASSERT(aco__may_be_resumer(self, co));
    if (aco_unlikely(co && (co->aco__state & ACO__STATUS) == ACO__RESUMING_SAVED)) {
        from = &self->scratch->restore_trampoline;
        self->unwind_parent = &aco__no_context;
    }
    aco__load_resumer(self, co, from);
}

/* Prepares a context that begins with `fn` at `sp`. `fn` is a function that a switch can enter. */
typedef ACO__ARRIVAL_ABI void aco__arrival_t(ACO__ARRIVAL_PARAMETERS);
#ifdef ACO__ARRIVES_IN_ASSEMBLY
ACO__HIDDEN void aco__arrive(void);
#endif
static inline void aco__begin_in(aco__context_t *context, void *sp, aco__arrival_t *fn)
{
    void **slot = &context->pc;
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    void (*arrive)(void) = aco__arrive;
    memcpy(&context->pc, &arrive, sizeof arrive);
    slot = &context->bp;
#endif
    context->sp = sp;
    memcpy(slot, &fn, sizeof fn);
}

/* Records that a coroutine begins on `stack` in this thread. A heap's first field is its thread's address, and heaps
 * are never freed. */
static inline void aco__begins_here(aco_share_stack_t *stack, const aco__thread_t *self)
{
    ACO__ASSERT(!self->heap || *(aco__thread_t *const *)self->heap == self);
    if (aco_likely(self->heap != NULL))
        stack->aco__owner_thread = (aco__thread_t *const *)self->heap;
}

/* The first function on a stack calls this. A switch entered it with a frame pointer of NULL. The asm makes it set up a
 * frame pointer, so that the chain of frame pointers ends there. */
static inline __attribute__((always_inline)) void aco__end_frame_pointers(void)
{
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
}

/* Whether `p` is on the stack of `co`. Frames of its generators are on other stacks. */
static inline int aco__is_on_its_stack(const aco_t *co, const void *p)
{
    const aco_share_stack_t *stack = co->share_stack;
    return (uintptr_t)p >= (uintptr_t)stack->ptr && (uintptr_t)p <= (uintptr_t)stack->aco__top;
}

#endif
