/* Who listens for signals: aco/detail/signals.h.
 *
 * A thread that unblocks a signal gets it, and may die of it, although another one listens. So each thread remembers
 * what it has blocked for listeners and keeps that blocked until the last listener of the process has gone. Whoever
 * that was posts to the threads that still block the signal. */
#include "scheduler/inbox.h"
#include "scheduler/listeners.h"
#include "scheduler/wait.h"

#include "aco/detail/signals.h"

#ifndef _WIN32
/* Under the process lock. */
static aco__listener_t *all_listeners;
static aco__tasks_t *blockers; /* schedulers whose threads have blocked signals for listeners */
static uint64_t blocked_for_good;

/* Where the thread's machine, the real one or a node of a simulation, notes what it has blocked for good. */
static uint64_t *machine_of(const aco__tasks_t *s)
{
    return s && s->chooser && s->chooser->signals ? s->chooser->signals : &blocked_for_good;
}

static uint64_t listened(long process, const uint64_t *machine)
{
    uint64_t signals = *machine;
    for (const aco__listener_t *listener = all_listeners; listener; listener = listener->next)
        if (listener->process == process && listener->machine == machine)
            signals |= listener->signals;
    return signals;
}

/* It hears nothing any more. */
static void unlink_listener(aco__listener_t *listener)
{
    *listener->link = listener->next;
    if (listener->next)
        listener->next->link = listener->link;
}

static void unlink_blocker(aco__tasks_t *s)
{
    *s->blocker_link = s->next_blocker;
    if (s->next_blocker)
        s->next_blocker->blocker_link = s->blocker_link;
}

static void link_blocker(aco__tasks_t *s)
{
    s->next_blocker = blockers;
    s->blocker_link = &blockers;
    if (blockers)
        blockers->blocker_link = &s->next_blocker;
    blockers = s;
}

/* The signals that the scheduler's own thread unblocks next, without the lock: a handler may run then. */
static uint64_t no_longer_blocked(aco__tasks_t *s)
{
    uint64_t signals = s->blocked & ~listened(aco__os_process_number(), machine_of(s));
    if (signals && !(s->blocked &= ~signals))
        unlink_blocker(s);
    return signals;
}

static void unblock_posted(aco__thread_t *self, aco__post_t *post)
{
    uint64_t signals;
    (void)post;
    aco__lock();
    signals = no_longer_blocked(aco__tasks(self));
    aco__unlock();
    aco__os_signals_unblock(signals);
}

void aco__signals_settle(aco__thread_t *self, aco__tasks_t *s)
{
    if (aco_unlikely(s->blocked && aco__is_posted(&s->unblock_post)))
        unblock_posted(self, &s->unblock_post);
}

void aco__listen(aco__listener_t *listener, int for_good)
{
    aco__tasks_t *s = aco__tasks(aco__self());
    uint64_t blocked, *machine = machine_of(s);
    aco__lock();
    listener->process = aco__os_process_number();
    listener->machine = machine;
    listener->link = &all_listeners;
    listener->next = all_listeners;
    if (all_listeners)
        all_listeners->link = &listener->next;
    all_listeners = listener;
    if (for_good)
        *machine |= listener->signals;
    blocked = aco__os_signals_block(listener->signals);
    if (blocked && !s->blocked) {
        s->unblock_post.run = unblock_posted;
        link_blocker(s);
    }
    s->blocked |= blocked;
    aco__unlock();
}

void aco__listen_end(aco__listener_t *listener)
{
    aco__tasks_t *own = aco__tasks(aco__self());
    long process = aco__os_process_number();
    uint64_t signals, others;
    aco__lock();
    unlink_listener(listener);
    signals = no_longer_blocked(own);
    others = listened(process, machine_of(own));
    ACO__ASSERT(!(signals & others)); /* this thread would get them */
    for (aco__tasks_t *s = blockers; s; s = s->next_blocker)
        if (s != own && s->blocked & ~others && s->process == process)
            aco__inbox_post(s, &s->unblock_post);
    aco__unlock();
    aco__os_signals_unblock(signals);
}

int aco__listen_tell(const aco__listener_t *teller, int signal, int32_t sender)
{
    long process = aco__os_process_number();
    int told = 0;
    aco__lock();
    for (aco__listener_t *listener = all_listeners; listener; listener = listener->next)
        if (listener != teller && listener->process == process && listener->machine == teller->machine &&
            listener->signals >> (signal - 1) & 1) {
            listener->told(listener, signal, sender);
            told++;
        }
    aco__unlock();
    return told;
}

/* Takes one out; NULL: the machine has none. */
static aco__listener_t *forget_one(const uint64_t *machine)
{
    aco__listener_t *listener;
    aco__lock();
    listener = all_listeners;
    while (listener && listener->machine != machine)
        listener = listener->next;
    if (listener)
        unlink_listener(listener);
    aco__unlock();
    return listener;
}

void aco__listeners_forget(const uint64_t *machine)
{
    aco__listener_t *listener;
    while ((listener = forget_one(machine)) != NULL)
        if (listener->forgotten)
            listener->forgotten(listener);
}

void aco__listens_no_more(aco__tasks_t *s)
{
    aco__lock();
    if (s->blocked)
        unlink_blocker(s);
    s->blocked = 0;
    aco__unlock();
}
#else
void aco__signals_settle(aco__thread_t *self, aco__tasks_t *s)
{
    (void)self;
    (void)s;
}

void aco__listens_no_more(aco__tasks_t *s)
{
    (void)s;
}
#endif
