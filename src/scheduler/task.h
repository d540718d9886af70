/* Between core and scheduler: how core knows a task, and what each calls of the other. Core calls the scheduler through the
 * thread's record of it, so that a program without tasks has no scheduler in it. */
#ifndef ACO_TASK_H
#define ACO_TASK_H

#include "base/internal.h"

static inline __attribute__((always_inline)) int aco__is_task(const aco_t *co)
{
    return (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__TASK_MASK) == ACO__TASK;
}

typedef struct aco__timer {
    int64_t deadline;  /* on the clock of aco_now() */
    uint64_t sequence; /* of two with the same deadline the one that was set first is first */
    struct aco__wait *wait;
} aco__timer_t;

/* A thread's scheduler, but for what stands in the thread's record. */
struct aco__scheduler {
    void (*reap)(struct aco__scheduler *s);
    void (*thread_ends)(aco__thread_t *self);
    __attribute__((noreturn)) void (*end_task)(aco_t *co, void *result); /* the running task */
    aco_t poll_task;          /* stands in the ring for aco_run(): its turn is the timers' and the idle hook's */
    char poll_task_is_queued;
    char is_running;     /* aco_run() is */
    unsigned rounds;     /* turns of the pump */
    unsigned selections;
    int (*idle)(void *ctx, int64_t timeout_ns);
    void *idle_ctx;
    aco__timer_t *timers; /* a heap */
    size_t timers_count, timers_sz; /* timers_sz: bytes */
    uint64_t timers_set;
    int64_t trimmed_at;  /* on the clock of aco_now() */
    size_t trim_from;
    aco_t *zombie;       /* a task that has ended and whose stack was still needed to leave it */
};

/* Whether a task waits for a coroutine that it resumed: it has its turn, and something runs. */
static inline int aco__task_is_resuming(const aco__thread_t *self, const aco_t *co)
{
    return aco__is_task(co) && co == self->task && self->running && self->running != co && self->scheduler->is_running;
}

/* Frees the block and the stack of the task that ended last, if they wait for that. Not while a task ends. */
static inline void aco__reap(const aco__thread_t *self)
{
    if (aco_unlikely(self->scheduler != NULL) && self->scheduler->zombie)
        self->scheduler->reap(self->scheduler);
}

/* ---- core.c ---- */
/* aco_new() under another name. */
ACO__HIDDEN aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp);
/* Brings back the resumer's control words. */
ACO__HIDDEN void aco__load_resumer_environment(void);

#endif
