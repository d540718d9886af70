/* task.c: what a thread's scheduler keeps of a task, and how a task begins, ends and is freed.
 *
 * A task's stack record is a cache line that spawning and ending access anyway. Some of its fields have a meaning for
 * share stacks only, and for tasks they hold the thread, the joiner and the TASK_… flags. A task on a share stack has
 * the last two in its annex. */
#ifndef ACO_TASK_H
#define ACO_TASK_H

#include "scheduler/record.h"

enum {
    TASK_DETACHED = 1,
    TASK_PERMIT = 2,
    TASK_SCOPED = 4,       /* its aco__task_record_t is valid */
    TASK_EARLY = 8,        /* on a share stack: it is runnable, and still in a mutex's queue */
    TASK_PASSED_OVER = 16, /* it waits for a lock that must be handed to it */
    TASK_SELECTION = 32    /* and the bits above: the number of its selects */
};

/* What tasks with scopes have besides; on a private stack behind the cold data, else in memory of its own. Valid with
 * TASK_SCOPED. */
typedef struct aco__task_record {
    aco__post_t post;    /* another thread's aco_unpark(). On a private stack, and always valid there */
    aco_t *task;
    unsigned groups;     /* that it began and has not ended */
    aco_scope_t *scope;  /* the innermost; NULL: none */
    aco__timed_t timer;  /* due at a deadline of the task's own scopes, or earlier */
    aco_group_t *group;  /* of which it is a member, or NULL; then: */
    struct aco__task_record *next, *previous; /* the other members */
    void **result;       /* where to store what it returns, or NULL */
    aco__at_end_t *at_end; /* told when it ends; NULL: nobody */
} aco__task_record_t;
_Static_assert(sizeof(aco__task_record_t) <= ACO__TASK_RECORD, "the stack has room for a task's record");

/* The record becomes valid, for a task without scopes. */
static inline void aco__task_record_begin(aco__task_record_t *record, const aco_t *task)
{
    record->task = (aco_t *)(uintptr_t)task;
    record->groups = 0;
    record->scope = NULL;
    record->timer.index = 0;
    record->group = NULL;
    record->at_end = NULL;
}

/* What a task on a share stack has instead of fields of its stack's record. */
typedef struct aco__annex {
    aco__context_t context; /* where it goes on, while its frames are saved: its block's context restores them */
    aco__post_t post;       /* another thread's aco_unpark() */
    aco_t *task, *joiner;
    aco_function_t function;
    size_t flags;
    aco__wait_t *wait;      /* its wait, when its frames were moved the last time; or with TASK_EARLY */
    aco__task_record_t *record; /* NULL: none yet */
} aco__annex_t;
_Static_assert(sizeof(aco__annex_t) == ACO__TASK_ANNEX, "the block's memory is freed with this size");

static inline aco__annex_t *aco__annex(const aco_t *task)
{
    return (aco__annex_t *)aco__task_annex(task);
}

/* For the task's own thread. The read is not atomic, so that compilers can make one of several. */
static inline int aco__is_on_private(const aco_t *task)
{
    return aco_likely(task->aco__state & ACO__PRIVATE);
}

/* The task's entry function. */
static inline aco_function_t aco__entry_of_task(const aco_t *task)
{
    return aco__is_on_private(task) ? aco__task_function(task) : aco__annex(task)->function;
}

static inline aco__task_record_t *aco__task_record(const aco_t *task)
{
    return aco__is_on_private(task) ? (aco__task_record_t *)aco__stack_task_record(task->share_stack)
                                    : aco__annex(task)->record;
}

/* Any thread. */
static inline aco__post_t *aco__task_post(const aco_t *task)
{
    return aco__has(task, ACO__PRIVATE) ? &((aco__task_record_t *)aco__stack_task_record(task->share_stack))->post
                                        : &aco__annex(task)->post;
}

static inline __attribute__((always_inline)) size_t *aco__task_flags(const aco_t *task)
{
    return aco__is_on_private(task) ? &task->share_stack->aco__use.task_flags : &aco__annex(task)->flags;
}

static inline __attribute__((always_inline)) aco_t **aco__task_joiner(const aco_t *task)
{
    return aco__is_on_private(task) ? &task->share_stack->aco__link.joiner : &aco__annex(task)->joiner;
}

#define ACO__NO_END "a detached task has no stack_memory: its end is not known"

/* A new task begins here, on its stack. */
ACO__HIDDEN ACO__ARRIVAL_ABI void aco__task_begin(ACO__ARRIVAL_PARAMETERS);
/* The running task ends: `end_task` of the scheduler's record. */
ACO__HIDDEN __attribute__((noreturn)) void aco__task_end_running(aco_t *task, void *result);
/* Frees the task that has ended last and still stood on its stack: `reap` of the record. */
ACO__HIDDEN void aco__task_reap(struct aco__scheduler *s);
/* 0 if `task` is a live task of this thread; else -1 and errno. */
ACO__HIDDEN int aco__task_check(const aco__thread_t *self, const char *call, const aco_t *task);
/* Whether `task` is a task that has ended and was neither destroyed nor restarted. */
ACO__HIDDEN int aco__task_has_ended(const aco_t *task);

/* While such a task lives, its thread's tasks switch through aco_run(). */
static inline int aco__needs_slow_switch(const aco_t *task)
{
    return (task->aco__state & (ACO__INSTRUMENTED | ACO__SHARES_FP)) != ACO__SHARES_FP;
}

#endif
