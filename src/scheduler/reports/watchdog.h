/* watchdog.c: tasks that run too long. */
#ifndef ACO_WATCHDOG_H
#define ACO_WATCHDOG_H

#include "scheduler/record.h"

/* How often watched threads look for tasks that wait for each other, in nanoseconds. */
ACO__HIDDEN int64_t aco__watch_interval(void);
ACO__HIDDEN_EXTERN int8_t aco__watchdog_is_on; /* 1; or 0; -1: not decided. Atomic */
/* Begins or ends to watch the thread, as aco__watchdog_is_on has it. */
ACO__HIDDEN ACO__COLD void aco__watch_change(aco__thread_t *self, aco__tasks_t *s);
static inline void aco__watch_if_wanted(aco__thread_t *self, aco__tasks_t *s)
{
    if (aco_unlikely(__atomic_load_n(&aco__watchdog_is_on, __ATOMIC_RELAXED) != s->is_watched))
        aco__watch_change(self, s);
}
/* Sets the limit, 0: none, and watches the thread, if it has one. 0, or -1 and errno. */
ACO__HIDDEN int aco__watch_limit(aco__thread_t *self, aco__tasks_t *s, int64_t limit_ns, const char *call);
/* The thread ends. */
ACO__HIDDEN void aco__unwatch(aco__tasks_t *s);

#endif
