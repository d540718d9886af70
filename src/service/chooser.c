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

const char *aco__chooser_refused(void)
{
    const aco__tasks_t *s = aco__tasks(aco__self());
    ACO__ASSERT(s->chooser != NULL);
    return __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
}

/* By ACO__WAIT_…. A descriptor comes after "for readable", a text after ": ". */
static const char *const words[] = {"to be unparked", "to join a task", "for time to pass", "for a mutex",
                                    "for a condition", "for a semaphore", "for a wait group", "to send to a channel",
                                    "to receive from a channel", "for one of several channels",
                                    "for a place in a group", "for a group's members", "for a condition's mutex",
                                    "to read under a lock", "to write under a lock", "for a function that runs once",
                                    "at a barrier", "for an event", "for readable", "for writable",
                                    "for an answer", "for another thread"};
ACO__STATIC_ASSERT(sizeof words / sizeof *words == ACO__WAIT_MT + 1, "each kind of wait has its words");

int aco__chooser_wait(const aco_t *task, aco__chooser_wait_t *result)
{
    const aco__wait_t *wait = aco__task_wait(task);
    if (!wait)
        return 0;
    ACO__ASSERT(wait->kind <= ACO__WAIT_MT && wait->task == task);
    result->what = words[wait->kind];
    result->text = wait->kind == ACO__WAIT_PARK || wait->kind == ACO__WAIT_MT ? wait->object
                   : wait->kind == ACO__WAIT_JOIN                             ? aco_name(wait->object)
                                                                              : NULL;
    result->fd = wait->kind == ACO__WAIT_READABLE || wait->kind == ACO__WAIT_WRITABLE ? (int)(uintptr_t)wait->object
                                                                                      : -1;
    result->until = wait->timer.index ? aco__tasks(aco__self())->timers[wait->timer.index - 1].deadline : INT64_MAX;
    return 1;
}
