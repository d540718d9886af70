/* timer.c: what becomes due. */
#ifndef ACO_TIMER_H
#define ACO_TIMER_H

#include "scheduler/record.h"

/* Allocates what `count` more timers need. 0, or -1 and errno. */
ACO__HIDDEN int aco__timers_reserve(aco__thread_t *self, size_t count, const char *call);
/* Sets a timer, which must be reserved: due(timed) at `deadline`. */
ACO__HIDDEN void aco__timer_set(aco__thread_t *self, aco__timed_t *timed, int64_t deadline,
                                void (*due)(aco__thread_t *self, aco__timed_t *timed));
ACO__HIDDEN void aco__timer_cancel(aco__tasks_t *s, aco__timed_t *timed);
/* Has a timer first in the heap, if there is any. */
ACO__HIDDEN void aco__timers_settle(aco__tasks_t *s);
/* There is a timer. Removes those with a deadline before `now`, a look at the clock, and calls their due(). Events are
 * looked for between the two: what came before a deadline is in time, also if the thread was kept or stopped. */
ACO__HIDDEN void aco__timers_expire_at(aco__thread_t *self, aco__tasks_t *s, int64_t now);
static inline int aco__timers_are_due(const aco__tasks_t *s, int64_t now)
{
    return s->timers_count && s->timers[0].deadline <= now;
}
/* Told of each of at most ACO__MOST_LATE tasks that timers wake at once, over ACO__LATE_NS late, and then how many more
 * there were: `task` is NULL, `late_ns` their sum. NULL: nobody is told. Atomic. */
ACO__HIDDEN extern void (*aco__timers_tell)(aco__thread_t *self, const aco_t *task, size_t n, int64_t late_ns);

#endif
