/* Between acorn and acorn_sim: whose turn it is among the tasks that can run. Not for programs. */
#ifndef ACO_DETAIL_CHOOSER_H
#define ACO_DETAIL_CHOOSER_H

#include "../scheduler.h"

ACO__BEGIN_C

/* What chooses for aco_run(), which calls it in the root context. While a thread has a chooser, every switch between
 * its tasks goes through aco_run(). */
typedef struct aco__chooser_s {
    /* Before each turn. `first` and those behind it (aco__task_next(), a ring) can run; without a chooser `first` would
     * be next. One of them may be `poll`, whose turn looks for timers and messages. Returns the one that has its turn;
     * NULL and errno: aco_run() fails. */
    aco_t *(*choose)(struct aco__chooser_s *chooser, aco_t *first, const aco_t *poll);
    /* The task whose turn it was has ended: another one may get its address. */
    void (*ended)(struct aco__chooser_s *chooser, const aco_t *task);
    /* No task can run; time is about to pass. 0, or -1 and errno: aco_run() fails. */
    int (*idle)(struct aco__chooser_s *chooser);
    struct aco__scheduler *aco__outer; /* what the thread had before, and gets back; likewise the next */
    uint32_t aco__slow_switch_tasks, aco__scoped_tasks, aco__looked_at, aco__spawned;
} aco__chooser_t;

/* Puts the calling thread's scheduler aside and gives it a new one with this chooser. 0, or -1 and errno: EPERM (a
 * coroutine calls it), EBUSY (the thread has tasks, or its aco_run() runs), ENOMEM. */
ACO_API int aco__chooser_begin(aco__chooser_t *chooser, const char *call);
/* Ends that scheduler as the thread's end would: its tasks never run again. */
ACO_API void aco__chooser_end(aco__chooser_t *chooser);

ACO__END_C

#endif
