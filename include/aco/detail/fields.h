/* Part of <aco.h>. Some fields of a control block have several meanings: here is an accessor for each meaning. At the
 * end, the assertions of the offsets in coroutine.h. */
#ifndef ACO_DETAIL_FIELDS_H
#define ACO_DETAIL_FIELDS_H

#include "thread.h"

ACO__BEGIN_C

/* ---- aco__self.base: a base pointer while a coroutine is suspended ---- */

/* Of a destroyed coroutine in a thread's cache: the next one there. */
ACO__FORCE_INLINE aco_t *aco__cached_next(const aco_t *co)
{
    return (aco_t *)co->aco__self.base;
}

ACO__FORCE_INLINE void aco__set_cached_next(aco_t *co, aco_t *next)
{
    co->aco__self.base = next;
}

/* Of a coroutine on a share stack that another thread destroyed: the next one that the stack's thread has to free. */
ACO__FORCE_INLINE aco_t *aco__remote_next(const aco_t *co)
{
    return (aco_t *)co->aco__self.base;
}

ACO__FORCE_INLINE void aco__set_remote_next(aco_t *co, aco_t *next)
{
    co->aco__self.base = next;
}

/* Of a main coroutine object: the thread that may resume its coroutines. */
ACO__FORCE_INLINE aco__thread_t *aco__main_thread(const aco_t *main_co)
{
    return (aco__thread_t *)main_co->aco__self.base;
}

ACO__FORCE_INLINE void aco__set_main_thread(aco_t *main_co, aco__thread_t *self)
{
    main_co->aco__self.base = self;
}

#ifndef ACO__LIBACO_NAMES
/* Of a task on a private stack: its entry function. Its `fp` holds the link of the ring. */
ACO__FORCE_INLINE aco_function_t aco__task_function(const aco_t *task)
{
    aco_function_t fn;
    memcpy(&fn, &task->share_stack->aco__task_entry, sizeof fn);
    return fn;
}

ACO__FORCE_INLINE void aco__set_task_function(aco_t *task, aco_function_t fn)
{
    memcpy(&task->share_stack->aco__task_entry, &fn, sizeof fn);
}
#endif

/* ---- aco__self.bp: a frame pointer while a coroutine is suspended ---- */

/* Of a coroutine that has ended: its result. */
ACO__FORCE_INLINE void *aco__result(const aco_t *co)
{
    return co->aco__self.bp;
}

ACO__FORCE_INLINE void aco__set_result(aco_t *co, void *result)
{
    co->aco__self.bp = result;
}

/* ---- main_co: the main coroutine object of a coroutine of aco_create() ---- */

/* Of a task on a share stack, running or ended: the scheduler's record, freed with the block. NULL in any other
 * coroutine of aco_new() on a share stack. */
ACO__FORCE_INLINE void *aco__task_annex(const aco_t *task)
{
    return task->main_co;
}

ACO__FORCE_INLINE void aco__set_task_annex(aco_t *task, void *annex)
{
    task->main_co = (aco_t *)annex;
}

/* ---- fp: the entry function of a coroutine of aco_create() ---- */

#ifndef ACO__LIBACO_NAMES
/* Of a coroutine of aco_new() that is no task: its entry function, which has another type. */
ACO__FORCE_INLINE aco_function_t aco__function(const aco_t *co)
{
    aco_function_t fn;
    memcpy(&fn, &co->fp, sizeof fn);
    return fn;
}

ACO__FORCE_INLINE void aco__set_function(aco_t *co, aco_function_t fn)
{
    memcpy(&co->fp, &fn, sizeof fn);
}
#endif

/* Of a runnable task: the next one in the ring of runnable tasks. */
ACO__FORCE_INLINE aco_t *aco__task_next(const aco_t *task)
{
    aco_t *next;
    memcpy(&next, &task->fp, sizeof next); /* NOLINT(clang-analyzer-core.NonNullParamChecker): not NULL */
    return next;
}

ACO__FORCE_INLINE void aco__set_task_next(aco_t *task, const aco_t *next)
{
    memcpy(&task->fp, &next, sizeof next);
}

/* Of a task: its wait, stored with the lowest bit set; NULL: the task is runnable. */
ACO__FORCE_INLINE struct aco__wait *aco__task_wait(const aco_t *task)
{
    uintptr_t tagged;
    memcpy(&tagged, &task->fp, sizeof tagged);
    return tagged & 1 ? (struct aco__wait *)(tagged & ~(uintptr_t)1) : NULL;
}

ACO__FORCE_INLINE void aco__set_task_wait(aco_t *task, const struct aco__wait *wait)
{
    uintptr_t tagged = (uintptr_t)wait | 1;
    memcpy(&task->fp, &tagged, sizeof tagged);
}

ACO__END_C

/* ---- Offsets ---- */

#define ACO__OFFSET_IS(type, field, offset)                                                                            \
    ACO__STATIC_ASSERT(offsetof(type, field) == (offset), "the offset of " #field " for assembly")
ACO__OFFSET_IS(aco__context_t, sp, ACO__SP);
ACO__OFFSET_IS(aco__context_t, pc, ACO__PC);
ACO__OFFSET_IS(aco__context_t, bp, ACO__BP);
ACO__OFFSET_IS(aco__context_t, base, ACO__BASE);
ACO__OFFSET_IS(aco_t, aco__self, 0);
ACO__OFFSET_IS(aco_t, aco__fp_control, ACO__FP_CONTROL);
ACO__OFFSET_IS(aco_t, aco__fp_control2, ACO__FP_CONTROL2);
ACO__OFFSET_IS(aco_t, aco__state, ACO__STATE_BYTE);
ACO__OFFSET_IS(aco_t, fp, ACO__ENTRY);
ACO__OFFSET_IS(aco_t, main_co, ACO__ENTRY + sizeof(void *)); /* where the block of a private coroutine ends */
ACO__OFFSET_IS(aco__thread_t, resumer, 0);
ACO__OFFSET_IS(aco__thread_t, fp_control, ACO__FP_CONTROL);
ACO__OFFSET_IS(aco__thread_t, fp_control2, ACO__FP_CONTROL2);
ACO__OFFSET_IS(aco__thread_t, fp_load_always, ACO__LOAD_ALWAYS);
ACO__OFFSET_IS(aco__thread_t, running, ACO__RUNNING);
ACO__OFFSET_IS(aco__thread_t, unwind_parent, ACO__UNWIND_PARENT);
ACO__OFFSET_IS(aco__thread_t, exceptions, ACO__EXCEPTIONS);
ACO__OFFSET_IS(aco_share_stack_t, owner, ACO__STACK_OWNER);
ACO__OFFSET_IS(aco_share_stack_t, aco__owner_thread, ACO__STACK_OWNER_THREAD);
ACO__OFFSET_IS(aco_share_stack_t, aco__resumer_context, ACO__STACK_RESUMER_CONTEXT);
ACO__STATIC_ASSERT(sizeof(aco_t) == 14 * sizeof(void *) + 8, "a block with 152 saved bytes behind it has 272 bytes");

#endif
