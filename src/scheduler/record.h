/* record.c: the record of a thread's scheduler. */
#ifndef ACO_RECORD_H
#define ACO_RECORD_H

#include "scheduler/spin.h"
#include "tools/tools.h"

#include "aco/detail/chooser.h"
#include "aco/detail/inspect.h"
#include "aco/detail/poller.h"
#include "aco/detail/worker.h"
#include "aco/group.h"

enum {
    ACO__LATE_NS = 10000000, /* later wakes and longer runs are counted */
    ACO__TRIM_NS = 100000000, /* the least time between two trims of tasks' stacks */
    ACO__VACANT_TIMERS = 64
};

typedef struct aco__timer {
    int64_t deadline;  /* on the clock of aco_now() */
    uint64_t sequence; /* orders timers with the same deadline: the first one set is first */
    aco__timed_t *timed;
} aco__timer_t;

/* What the watchdog knows of a scheduler, under its lock; what a handler reads is atomic. */
typedef struct aco__watch {
    struct aco__tasks *next, **link; /* the list of watched schedulers */
    aco__thread_t *of;
    uintptr_t thread;    /* for signals; 0: it gets none */
    const aco_t *task;   /* as seen last, like `turns`; atomic, like the next three */
    uint32_t turns;
    uint32_t since;      /* when this was seen first, in milliseconds modulo 2^32 */
    uint32_t pending;    /* a handler is wanted to report this */
    unsigned looks;      /* that have found the same since then */
    char is_told;        /* of this, a report was wanted */
} aco__watch_t;

/* What others may ask of a thread's tasks: reports/inspection.c. The process lock protects the first fields; the last
 * four are the thread's. */
typedef struct aco__inspected {
    struct aco__tasks *next, **link; /* the list of schedulers; `link` is NULL: not in it */
    aco__thread_t *of;
    long thread;                     /* its number */
    aco__inspection_t *inspection;   /* that is to be answered, or NULL */
    aco__post_t post, trace_post;
    unsigned looks;                  /* the number of the inspection that it answers. Atomic */
    size_t from;                     /* where it goes on; 0: at the beginning */
    struct aco__known_stacks *known; /* NULL: none */
    const aco_t *owner;              /* a task that is known to live as long as no task runs; NULL: none */
} aco__inspected_t;

/* What the thread record does not hold. */
typedef struct aco__tasks {
    struct aco__scheduler base; /* what lower layers use */
    aco_t poll_task;     /* takes turns in the ring for aco_run(), which serves timers and the idle hook */
    char poll_task_is_queued;
    unsigned rounds;     /* turns of the poll task */
    unsigned selections;
    const aco_t *backs_off; /* sync/back_off.h: it unlocks several locks because it could not get one more; or NULL */
    int (*idle)(void *ctx, int64_t timeout_ns);
    void *idle_ctx;
    void (*idle_leave)(void *ctx); /* aco__idle_gives_turns(); NULL: the idle hook gives none */
    int64_t turns_until; /* the idle hook waits, and may give tasks turns until then; 0: it may not */
    aco__poller_t *poller; /* NULL: none. Posters read it: atomic */
    size_t askers;       /* tasks that wait for an answer of another thread; and 1 if it is open to itself: post.c */
    aco__worker_t *worker; /* NULL: none */
    const struct aco_scope_s *all; /* that aco__scope_end_all() has put around all tasks but those spawned since */
    uint32_t all_spawned; /* `spawned` then */
    int64_t polled_at;   /* on the clock of aco_now() */
    int64_t until;       /* when aco_run_ready() returns, at the latest; 0: aco_run() */
    aco__timer_t *timers; /* a heap */
    size_t timers_count, timers_sz; /* timers_sz: bytes */
    uint64_t timers_set;
    size_t vacant_count, lost_count; /* entries of the heap without a timer; fewer than all, or 0 */
    aco__timed_t vacant[ACO__VACANT_TIMERS]; /* what they are for: `due` is NULL. The last one vacated last */
    aco__timed_t lost;    /* what all lost entries are for, the same */
    int64_t looked_at;   /* when timers were last looked for that are due; on the clock of aco_now() */
    aco_run_stats_t stats;
    aco__exceptions_t exceptions; /* the thread's own, those of the caller of aco_run() */
    char measures_runs;
    char tells_turns; /* somebody traces: inspection.c */
    int8_t is_watched;   /* by the watchdog */
    aco__watch_t watch;
    uint32_t turns;      /* of tasks and of aco_run(), modulo 2^32: odd while tasks run. Written atomically */
    unsigned open;       /* how often aco_scheduler_open() was called; atomic, like the next two */
    char opened;         /* it was open once: its tasks and posts may still be known to other threads */
    char is_lost;        /* its tasks never run again: they use a set of threads that it has left */
    uint32_t is_asleep;  /* the thread waits for events: a poster wakes it */
    aco__post_t *inbox;  /* what other threads have posted, the last one first */
    unsigned posting;    /* threads that use this record to post. Atomic */
    aco__spin_t spin;    /* before the thread sleeps */
    long process;        /* whose threads they are */
    aco__post_t *posts; /* what was taken out of the inbox, the first one first; NULL: none */
    void (*wake)(void *ctx);
    void *wake_ctx;
    char dumps;          /* a signal has it dump its tasks, to dump_fd */
    int dump_fd;
    aco__post_t dump_post;
    char answers;        /* others may ask it what its tasks do. Atomic */
    aco__inspected_t inspected;
    uint64_t blocked;    /* signals that the thread has blocked for listeners: listeners.c. Its own thread writes it */
    aco__post_t unblock_post;
    struct aco__tasks *next_blocker, **blocker_link; /* others with such signals */
    struct aco__ended_task *ended_tasks; /* names: report.c. NULL: none yet */
    size_t ended_tasks_sz;
    struct aco__reader *readers; /* notes: readers.c. NULL: none yet */
    size_t readers_sz;
    int64_t stuck_at;    /* when tasks were looked for that never wake, on the clock of aco_now() */
    uint32_t stuck_turns; /* `turns` then */
    unsigned stuck_reports;
    uintptr_t stuck_mark; /* of those that were found */
    int64_t trimmed_at;  /* trim.c has this and the next four; on the clock of aco_now() */
    size_t trim_from;    /* where the look goes on; 0: a new one begins */
    uint32_t trim_looks; /* how many it has finished */
    char trim_busy;      /* the look that goes on has passed over a task that has run a short time ago, */
    char trim_again;     /* and so it, or another one, is wanted even if nothing happens */
    aco__chooser_t *chooser; /* NULL: the first in the ring is next */
    const char *refused; /* aco__chooser_refused(). Atomic */
} aco__tasks_t;

/* Whether a task runs, or a coroutine inside it. */
static inline int aco__in_turn(const aco__tasks_t *s)
{
    return s->turns & 1;
}

static inline void aco__next_turn(aco__tasks_t *s)
{
    __atomic_store_n(&s->turns, s->turns + 1, __ATOMIC_RELAXED);
}

/* NULL until the thread spawns a task. */
static inline aco__tasks_t *aco__tasks(const aco__thread_t *self)
{
    return (aco__tasks_t *)self->scheduler;
}

/* Whether the scheduler's chooser lets the calling thread, another one, post to it. */
static inline int aco__is_admitted(const aco__tasks_t *s)
{
    return s->chooser && s->chooser->admits && s->chooser->admits(s->chooser);
}

/* Whether the calling thread, another one, may post to this one. */
static inline int aco__is_open(const aco__thread_t *other)
{
    const aco__tasks_t *s = other ? aco__tasks(other) : NULL;
    return s && (__atomic_load_n(&s->open, __ATOMIC_ACQUIRE) || (aco__is_admitted(s) && s->chooser->aco__open));
}

/* Notes what a scheduler with a chooser cannot do, for aco__chooser_refused(): `why` lasts. Without a chooser nothing
 * happens; `s` may be NULL. Any thread. */
static inline void aco__refuse(aco__tasks_t *s, const char *why)
{
    if (s && s->chooser)
        __atomic_store_n(&s->refused, why, __ATOMIC_RELAXED);
}

/* The same for a call by another thread, unless the chooser admits that. */
static inline void aco__refuse_other(aco__tasks_t *s, const char *why)
{
    if (s && !aco__is_admitted(s))
        aco__refuse(s, why);
}

/* The thread's scheduler, created if needed. NULL after a failure. */
ACO__HIDDEN aco__tasks_t *aco__scheduler_of(aco__thread_t *self, const char *call);
/* The thread's scheduler, created if needed, with the memory that the poll task needs. NULL after a failure. */
ACO__HIDDEN aco__tasks_t *aco__polling_scheduler_of(aco__thread_t *self, const char *call);

#endif
