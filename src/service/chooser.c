/* A scheduler whose tasks' turns somebody else chooses (aco/detail/chooser.h), for as long as that lasts. */
#include "coroutine/forgotten.h"
#include "scheduler/wait.h"
#include "tools/trace.h"

#include "aco/detail/chooser.h"

void aco__chooser_prepare(void)
{
    aco__trace_end("a simulation has times of its own");
}

int aco__chooser_begin(aco__chooser_t *chooser, const char *call)
{
    aco__thread_t *self = aco__thread_ready();
    aco__tasks_t *s = aco__tasks(self);
    if (self->running)
        return aco__fail(0, EPERM, call, self->running, "is a coroutine: only the root context may call this");
    if (self->tasks || (s && (s->base.is_running || s->worker)))
        return aco__fail(0, EBUSY, call, NULL, "the thread has tasks");
    aco__reap(self);
    ACO__ASSERT(!self->task && !self->last_task);
    chooser->aco__outer = self->scheduler;
    self->scheduler = NULL;
    s = aco__polling_scheduler_of(self, call);
    if (!s) {
        self->scheduler = chooser->aco__outer;
        return -1;
    }
    chooser->aco__slow_switch_tasks = self->slow_switch_tasks;
    chooser->aco__scoped_tasks = self->scoped_tasks;
    chooser->aco__looked_at = self->looked_at;
    chooser->aco__spawned = self->spawned;
    self->slow_switch_tasks = 1; /* each task returns to aco_run() */
    self->scoped_tasks = self->spawned = 0;
    chooser->poll_task = &s->poll_task;
    chooser->aco__kept = chooser->aco__open = 0;
    s->chooser = chooser;
    aco__forgotten_expect(1);
    return 0;
}

void aco__chooser_end(aco__chooser_t *chooser)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(!self->running && aco__tasks(self)->chooser == chooser);
    self->scheduler->thread_ends(self);
    self->scheduler = chooser->aco__outer;
    self->slow_switch_tasks = chooser->aco__slow_switch_tasks;
    self->scoped_tasks = chooser->aco__scoped_tasks;
    self->looked_at = chooser->aco__looked_at;
    self->spawned = chooser->aco__spawned;
    aco__forgotten_expect(0);
}

int aco__chooser_is_there(void)
{
    const aco__thread_t *self = aco__self();
    return self->scheduler && aco__tasks(self)->chooser;
}

int64_t aco__chooser_disk_time(void)
{
    aco__chooser_t *chooser = aco__chooser_is_there() ? aco__tasks(aco__self())->chooser : NULL;
    return chooser && chooser->disk_time ? chooser->disk_time(chooser) : -1;
}

const char *aco__chooser_refused(void)
{
    const aco__tasks_t *s = aco__tasks(aco__self());
    ACO__ASSERT(s->chooser != NULL);
    return __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
}
