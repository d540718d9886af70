/* Copies frames on share stacks. Several coroutines share such a stack; its owner is the one that has its frames there.
 * When another coroutine needs the stack, the owner's frames are saved to its save area. They are restored before it
 * runs again. */
#include "stack/stack.h"

#include <string.h>

/* ---- Started coroutines: on a share stack, from the first resume until they end or are freed ---- */

/* Counts one started coroutine less. A stack without started coroutines may serve another thread next. */
static void one_less(aco_share_stack_t *stack)
{
    stack = aco__stack_given(stack);
    ACO__ASSERT(stack->aco__use.started && stack->aco__thread);
    if (--stack->aco__use.started == 0)
        stack->aco__thread = NULL;
}

/* Frees a started coroutine that has not ended. Only the stack's own thread calls it. */
static void drop(aco_t *co)
{
    if (co->share_stack->owner == co)
        co->share_stack->owner = NULL;
    one_less(co->share_stack);
    aco__block_free(co);
}

static inline void free_remote(aco_share_stack_t *stack)
{
    aco_t *co = __atomic_exchange_n(&stack->aco__link.destroyed, NULL, __ATOMIC_ACQUIRE);
    while (co) {
        aco_t *next = aco__remote_next(co);
        ACO__ASSERT(!aco__has(co, ACO__PRIVATE) && aco__stack_given(co->share_stack) == stack);
        drop(co);
        co = next;
    }
}

void aco__stack_release(aco_t *co)
{
    aco__stack_check_overflow("aco_exit", co->share_stack);
    ACO__ASSERT(co->share_stack->owner == co && aco__stack_given(co->share_stack)->aco__thread == aco__self());
    co->share_stack->owner = NULL;
    one_less(co->share_stack);
}

void aco__stack_forget(aco_t *co)
{
    aco_share_stack_t *stack = aco__stack_given(co->share_stack);
    ACO__ASSERT(!aco__has(co, ACO__PRIVATE)); /* the link to the next one is the list's */
    if (stack->aco__thread == aco__self()) {
        drop(co);
        return;
    }
    /* `co` may own the stack, and the stack's thread may be reading its block right now: that thread frees it. */
    aco__set_status(co, ACO__DESTROYED);
    aco_t *next = __atomic_load_n(&stack->aco__link.destroyed, __ATOMIC_RELAXED);
    do
        aco__set_remote_next(co, next);
    while (!__atomic_compare_exchange_n(&stack->aco__link.destroyed, &next, co, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void aco__stack_free_remote(aco_share_stack_t *stack)
{
    free_remote(stack);
}

/* ---- Bytes ---- */

/* Copies a stack's live bytes. They are few in most cases, and a multiple of 4 unless a frame is hand-written.
 *
 * A stack pointer is 16-byte aligned where a compiler switches. So chunks of 16 bytes from there up do not cross a
 * cache line of the stack and do not overlap. If the copied bytes were stored a moment ago, each load is then forwarded
 * from the store buffer, which fails with libc's memcpy (measured: bench/lab/copy.c). The bound: a Zen 5 copies 1064
 * bytes in 0.81 of memcpy()'s time if they are in memory, and in 1.03 of it if they are in the cache. */
enum { CHUNK = 16, SHORT_COPY = 2044 };

static inline int is_short(size_t sz)
{
    return (sz & ~(size_t)SHORT_COPY) == 0; /* at most SHORT_COPY and a multiple of 4 */
}

static inline void copy_short(void *to, const void *from, size_t sz)
{
    char *t = to;
    const char *f = from, *end = f + (sz & ~(size_t)(4 * CHUNK - 1));
    for (; f != end; f += 4 * CHUNK, t += 4 * CHUNK) {
        __builtin_memcpy(t, f, CHUNK);
        __builtin_memcpy(t + CHUNK, f + CHUNK, CHUNK);
        __builtin_memcpy(t + 2 * CHUNK, f + 2 * CHUNK, CHUNK);
        __builtin_memcpy(t + 3 * CHUNK, f + 3 * CHUNK, CHUNK);
    }
    if (sz & 2 * CHUNK) {
        __builtin_memcpy(t, f, CHUNK);
        __builtin_memcpy(t + CHUNK, f + CHUNK, CHUNK);
        t += 2 * CHUNK, f += 2 * CHUNK;
    }
    if (sz & CHUNK)
        __builtin_memcpy(t, f, CHUNK), t += CHUNK, f += CHUNK;
    if (sz & 8)
        __builtin_memcpy(t, f, 8), t += 8, f += 8;
    if (sz & 4)
        __builtin_memcpy(t, f, 4);
}

static __attribute__((noinline)) void copy(void *to, const void *from, size_t sz)
{
    if (is_short(sz))
        copy_short(to, from, sz);
    else
        memcpy(to, from, sz);
}

#ifdef ACO__INVARIANTS
/* Whether the calling function's frame stays where it is when other frames are copied to this stack. */
static inline __attribute__((always_inline)) int is_elsewhere(const aco_share_stack_t *stack)
{
    const char *frame = __builtin_frame_address(0);
    return frame < (const char *)stack->ptr || frame > (const char *)stack->aco__top;
}
#endif

static inline size_t live_bytes(const aco_share_stack_t *stack, const aco_t *owner)
{
    return (size_t)((uintptr_t)stack->aco__top - (uintptr_t)owner->aco__self.sp);
}

/* ---- Saving and restoring ---- */

/* These update the control block after a save, and after a restore. */
static inline void saved(aco_t *co, size_t sz, unsigned status)
{
    co->save_stack.valid_sz = sz;
    co->save_stack.ct_save += sz != 0;
    if (co->save_stack.max_cpsz < sz)
        co->save_stack.max_cpsz = sz;
    aco__set_status(co, status);
}

static inline void restored(aco_t *co, size_t sz, unsigned status)
{
    co->save_stack.valid_sz = 0;
    co->save_stack.ct_restore += sz != 0;
    aco__set_status(co, status);
}

/* The frames of `co` have been saved. One of the waiting coroutines was resumed by `co` and refers to its context for
 * backtraces. This finds that coroutine and ends its backtraces there. */
static void end_backtraces_into(const aco_t *co, const aco__thread_t *self)
{
    const aco_t *waiting = self->resuming;
    while (waiting && waiting->share_stack && aco__status(waiting) != ACO__RESUMING_SAVED) {
        const aco__context_t *resumer = waiting->share_stack->aco__resumer_context;
        if (resumer == &co->aco__self)
            waiting->share_stack->aco__resumer_context = &aco__no_context;
        if (resumer == &co->aco__self || resumer == &aco__no_context || resumer == &self->root)
            return;
        waiting = (const aco_t *)resumer;
    }
}

/* Saves the frames of the stack's owner `co`, which is suspended or waits for a coroutine that it resumed. 0, or -1 and
 * errno. */
static int save(aco_share_stack_t *stack, aco_t *co)
{
    aco__thread_t *self = aco__self();
    int waits = aco__status(co) == ACO__RESUMING;
    const char *sp, *top = stack->aco__top;
    size_t sz;
    ACO__ASSERT(co->share_stack == stack && !stack->aco__private && co != self->running);
    ACO__ASSERT(waits || aco__status(co) == ACO__SUSPENDED || aco__status(co) == ACO__DESTROYED); /* elsewhere */
    ACO__ASSERT(!co->save_stack.valid_sz);
    if (waits && self->resuming == co)
        aco__save_resumer(self); /* moves its context to its block; the trampoline takes its place below */
    sp = co->aco__self.sp;
    sz = live_bytes(stack, co);
    aco__stack_check_overflow("aco_resume", stack);
    if (sz > (size_t)(top - (const char *)stack->ptr))
        aco__die("aco_resume", co,
                 "its stack pointer %p is outside its share stack (%p to %p): "
                 "it yielded or waits in a generator, or has overflowed",
                 (const void *)sp, stack->ptr, (const void *)top);
    if (waits && !aco__scratch())
        return -1;
    if (sz > co->save_stack.sz && aco__area_grow(co, sz) != 0)
        return -1;
    ACO__ASSERT(sz <= co->save_stack.sz);
    copy(co->save_stack.ptr, sp, sz);
    saved(co, sz, ACO__SAVED);
    if (!aco__area_is_inside(co))
        aco__area_look(co);
    if (waits) {
        stack->aco__resumer_context = &aco__no_context; /* it named the resumer of `co`; others will run here */
        aco__set_status(co, ACO__RESUMING_SAVED);
        if (self->resuming == co)
            aco__restore_resumer(self, co);
        else
            end_backtraces_into(co, self);
        if (aco_unlikely(aco__is_shared_task(co)))
            ACO__UPCALL(task_moved, (co, sp, sz, co->save_stack.ptr));
    }
    return 0;
}

int aco__stack_save(aco_share_stack_t *stack)
{
    ACO__ASSERT(stack->owner && stack->owner != aco__self()->resuming);
    if (save(stack, stack->owner) != 0)
        return -1;
    stack->owner = NULL;
    return 0;
}

/* Makes the calling thread the one that uses the stack on which `co` is. 0, or aco__fail(). */
static int take_stack(const aco_t *co, int fatal, const char *call)
{
    aco_share_stack_t *given = aco__stack_given(co->share_stack);
    aco__thread_t *self = aco__self();
    if (given->aco__thread == self)
        return 0;
    if (given->aco__thread)
        return aco__fail(fatal, EPERM, call, co, "its share stack %p belongs to another thread", (void *)given);
    given->aco__thread = self;
    return 0;
}

int aco__stack_start(aco_t *co, const char *call)
{
    if (take_stack(co, 0, call) != 0)
        return -1;
    aco__stack_given(co->share_stack)->aco__use.started++;
    return 0;
}

/* The general case: checks the thread, frees what other threads destroyed, saves the owner, restores `co`. */
static __attribute__((noinline)) int restore_any(aco_t *co, int fatal, const char *call)
{
    aco_share_stack_t *stack = co->share_stack, *given = aco__stack_given(stack);
    aco__thread_t *self = aco__self();
    int waits = aco__status(co) == ACO__RESUMING_SAVED, starts = aco__status(co) == ACO__READY;
    size_t sz;
    ACO__ASSERT(!stack->aco__private && stack->owner != co && is_elsewhere(stack));
    ACO__ASSERT(waits || starts || aco__status(co) == ACO__SAVED);
    if (take_stack(co, fatal, call) != 0)
        return 0;
    if (starts) {
        given->aco__use.started++; /* first: at 0 free_remote() would let other threads have the stack */
        aco__begins_here(stack, self);
    }
    free_remote(given);
    if (stack->owner && save(stack, stack->owner) != 0) {
        if (starts)
            one_less(stack);
        aco__fail_memory(fatal, call, live_bytes(stack, stack->owner));
        return 0;
    }
    stack->owner = co;
    if (aco_unlikely(aco__has(co, ACO__INSTRUMENTED)))
        ACO__UPCALL(frames_restored, (co));
    sz = co->save_stack.valid_sz;
    ACO__ASSERT(sz == live_bytes(stack, co) && sz <= (size_t)((char *)stack->aco__top - (char *)stack->ptr));
    if (sz)
        copy(co->aco__self.sp, co->save_stack.ptr, sz);
    restored(co, sz, waits ? ACO__RESUMING : ACO__SUSPENDED);
    if (waits && aco_unlikely(aco__is_shared_task(co)))
        ACO__UPCALL(task_moved, (co, co->save_stack.ptr, sz, co->aco__self.sp));
    return 1;
}

/* ---- The common case, without calls if both have few live bytes: `co` takes the stack from its owner ---- */

/* Whether the owner's `sz` live bytes can be saved without a closer look. restore_any() reports a stack pointer outside
 * the stack. */
static inline int can_save(const aco_share_stack_t *stack, const aco_t *owner, size_t sz)
{
    return aco_likely(sz <= owner->save_stack.sz && sz <= (size_t)((char *)stack->aco__top - (char *)stack->ptr) &&
                      owner->save_stack.ct_save % ACO__SAVES_PER_LOOK != ACO__SAVES_PER_LOOK - 1 &&
                      stack->aco__thread == aco__self() && stack->guard_page_enabled &&
                      !__atomic_load_n(&stack->aco__link.destroyed, __ATOMIC_RELAXED));
}

static __attribute__((noinline)) void swap_many(aco_t *co, aco_t *owner, size_t in, size_t out)
{
    memcpy(owner->save_stack.ptr, owner->aco__self.sp, out);
    memcpy(co->aco__self.sp, co->save_stack.ptr, in);
    if (!aco__area_is_inside(owner))
        aco__area_look(owner);
}

/* `status` is what the owner has afterwards, and `co` has had. */
static inline __attribute__((always_inline)) void swap(aco_t *co, aco_t *owner, size_t in, size_t out, unsigned status)
{
    ACO__ASSERT(owner != co && owner->share_stack == co->share_stack && is_elsewhere(co->share_stack));
    ACO__ASSERT(in == live_bytes(co->share_stack, co) && out <= owner->save_stack.sz);
    saved(owner, out, status);
    co->share_stack->owner = co;
    if (aco_unlikely(!is_short(out | in))) {
        swap_many(co, owner, in, out);
    } else {
        copy_short(owner->save_stack.ptr, owner->aco__self.sp, out);
        copy_short(co->aco__self.sp, co->save_stack.ptr, in);
    }
    restored(co, in, status == ACO__SAVED ? ACO__SUSPENDED : ACO__RESUMING);
}

int aco__stack_restore(aco_t *co, int fatal, const char *call)
{
    enum { SLOT_LINES = 3 };
    aco_share_stack_t *stack = co->share_stack;
    aco_t *owner = stack->owner;
    size_t in = co->save_stack.valid_sz, out;
    const char *slot = aco__slot(co);
    if (slot) /* fetched at the same time as the block, which has not been read yet */
        for (int i = 0; i < SLOT_LINES; i++)
            __builtin_prefetch(slot + i * ACO__CACHE_LINE);
    if (aco_unlikely(!owner || (co->aco__state & ACO__FAST_MASK) != ACO__SAVED || aco__status(owner) != ACO__SUSPENDED))
        return restore_any(co, fatal, call);
    out = live_bytes(stack, owner);
    if (!can_save(stack, owner, out))
        return restore_any(co, fatal, call);
    swap(co, owner, in, out, ACO__SAVED);
    return 1;
}

aco_t *aco__stack_swap_tasks(aco_t *co)
{
    aco_share_stack_t *stack = co->share_stack;
    aco_t *owner = stack->owner;
    size_t out;
    if (aco_unlikely(!owner || (co->aco__state & ACO__FAST_MASK) != ACO__RESUMING_SAVED ||
                     (owner->aco__state & ACO__FAST_MASK) != ACO__RESUMING || aco__self()->resuming ||
                     !aco__is_shared_task(owner)))
        return NULL;
    out = live_bytes(stack, owner);
    if (!can_save(stack, owner, out))
        return NULL;
    swap(co, owner, co->save_stack.valid_sz, out, ACO__RESUMING_SAVED);
    stack->aco__resumer_context = &aco__no_context; /* it named the resumer of the owner */
    return owner;
}
