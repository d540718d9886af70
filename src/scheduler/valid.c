/* The scheduler's books compared with each other, for tests and in builds with invariants only (base/invariants.h): the
 * ring, the queues that tasks wait in, the timers, the scopes, the groups' members, the posts, and the counts of all.
 * What does not fit aborts. It allocates nothing and walks no list further than there can be members. */
#include "scheduler/inbox.h"
#include "scheduler/sync/back_off.h"
#include "scheduler/sync/channel.h"
#include "scheduler/valid.h"
#include "scheduler/wait.h"

#ifdef ACO__INVARIANTS
#include "aco/detail/worker.h"

/* What was counted on the way. */
typedef struct tally {
    const aco__thread_t *self;
    size_t runnable;       /* members of the ring but the poll task, and what a chooser keeps */
    size_t tasks, waiting;
    size_t timers;         /* of waits and of scopes */
    size_t scoped;         /* what self->scoped_tasks counts */
    size_t answers, events; /* waits for other threads, and for descriptors */
} tally_t;

static void check_ring(tally_t *tally)
{
    const aco__thread_t *self = tally->self;
    aco__tasks_t *s = aco__tasks(self);
    const aco_t *task = self->task, *last = NULL;
    int has_poll_task = 0;
    ACO__ASSERT(!self->task == !self->last_task);
    for (; task && !(last && task == self->task); last = task, task = aco__task_next(task)) {
        ACO__ASSERT(!aco__task_wait(task)); /* a member of the ring can run */
        if (task == &s->poll_task)
            has_poll_task++;
        else
            tally->runnable++;
        ACO__ASSERT(tally->runnable <= self->tasks && has_poll_task <= 1); /* else the ring does not close */
        ACO__ASSERT(task == &s->poll_task || (aco__is_task(task) && task->share_stack->aco__thread == self));
    }
    ACO__ASSERT(last == self->last_task); /* the ring closes behind the last one */
    ACO__ASSERT(has_poll_task == s->poll_task_is_queued);
}

/* ---- Timers ---- */

static void check_timers(const tally_t *tally)
{
    const aco__tasks_t *s = aco__tasks(tally->self);
    size_t vacant = 0, lost = 0;
    ACO__ASSERT(s->timers_count * sizeof(aco__timer_t) <= s->timers_sz);
    for (size_t i = 0; i < s->timers_count; i++) {
        const aco__timed_t *timed = s->timers[i].timed;
        const aco__timer_t *above = &s->timers[i ? (i - 1) / 4 : 0];
        ACO__ASSERT(above->deadline < s->timers[i].deadline ||
                    (above->deadline == s->timers[i].deadline && above->sequence <= s->timers[i].sequence));
        if (timed == &s->lost) {
            lost++;
            continue;
        }
        ACO__ASSERT(timed->index == i + 1); /* who has the timer knows where it is */
        if (timed >= s->vacant && timed < s->vacant + s->vacant_count)
            vacant++;
        else
            ACO__ASSERT(timed->due != NULL);
    }
    ACO__ASSERT(vacant == s->vacant_count && lost == s->lost_count && !s->lost.due);
    ACO__ASSERT(s->timers_count == tally->timers + vacant + lost); /* each timer is some task's */
}

static void check_timer(tally_t *tally, const aco__timed_t *timed)
{
    const aco__tasks_t *s = aco__tasks(tally->self);
    if (!timed->index)
        return;
    tally->timers++;
    ACO__ASSERT(timed->index <= s->timers_count && s->timers[timed->index - 1].timed == timed);
}

/* ---- Waits ---- */

/* Whether the wait's task can run already, though it is in a queue: it was woken before it has the lock. */
static int is_early(const aco__wait_t *wait)
{
    return !aco__task_wait(wait->task) && (wait->kind == ACO__WAIT_RELOCK || wait->error == ACO__LEFT_FREE);
}

/* Whether it is right that the wait is in a queue. */
static int may_be_queued(const aco__wait_t *wait)
{
    return wait->kind == ACO__WAIT_RELAY || aco__task_wait(wait->task) == wait || is_early(wait);
}

static void check_place(const aco__waiter_t *waiter)
{
    const aco__queue_t *queue = waiter->queue;
    const aco__waiter_t *next = waiter->next, *previous = waiter->previous;
    if (!queue)
        return;
    ACO__ASSERT((previous ? previous->next : queue->first) == waiter);
    ACO__ASSERT((next ? next->previous : queue->last) == waiter);
    ACO__ASSERT(!next || next->queue == queue);
    ACO__ASSERT((!next || may_be_queued(next->wait)) && (!previous || may_be_queued(previous->wait)));
}

/* The wait is in this queue only. */
static void check_in(const aco__wait_t *wait, const aco__queue_t *queue)
{
    ACO__ASSERT(wait->first == &wait->waiter && !wait->waiter.other && wait->waiter.queue == queue);
}

static void check_mutex(const aco__wait_t *wait, const aco_mutex_t *mutex)
{
    check_in(wait, &mutex->aco__waiters);
    ACO__ASSERT(mutex->owner != wait->task);
    ACO__ASSERT(mutex->owner || is_early(mutex->aco__waiters.first->wait)); /* else nobody hands it over */
}

static void check_rwlock(const aco__wait_t *wait, const aco_rwlock_t *lock)
{
    check_in(wait, &lock->aco__waiters);
    ACO__ASSERT(!lock->writer || !lock->readers);
    ACO__ASSERT(lock->writer || lock->readers || is_early(lock->aco__waiters.first->wait));
}

static void check_barrier(const aco__wait_t *wait, const aco_barrier_t *barrier)
{
    check_in(wait, &barrier->aco__waiters);
    ACO__ASSERT(barrier->arrived && barrier->arrived < barrier->count);
}

/* Each wait is in just the queue that its kind names, and what it waits for is not there. */
static void check_object(tally_t *tally, const aco__wait_t *wait)
{
    const void *object = wait->object;
    switch (wait->kind) {
    case ACO__WAIT_PARK:
    case ACO__WAIT_SLEEP:
        ACO__ASSERT(!wait->first && (wait->kind == ACO__WAIT_PARK || wait->timer.index)); /* else it sleeps for ever */
        break;
    case ACO__WAIT_JOIN:
        ACO__ASSERT(!wait->first && aco__is_task(object) && *aco__task_joiner(object) == wait->task);
        break;
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_RELOCK:
        check_mutex(wait, object);
        break;
    case ACO__WAIT_COND:
        check_in(wait, &((const aco_cond_t *)object)->aco__waiters);
        ACO__ASSERT(wait->value != NULL); /* the mutex */
        break;
    case ACO__WAIT_SEMAPHORE:
        check_in(wait, &((const aco_semaphore_t *)object)->aco__waiters);
        ACO__ASSERT(!((const aco_semaphore_t *)object)->value);
        break;
    case ACO__WAIT_GROUP:
        check_in(wait, &((const aco_wait_group_t *)object)->aco__waiters);
        ACO__ASSERT(((const aco_wait_group_t *)object)->count);
        break;
    case ACO__WAIT_SEND:
    case ACO__WAIT_RECEIVE:
        check_in(wait, aco__channel_check(object, wait->kind == ACO__WAIT_SEND));
        break;
    case ACO__WAIT_SELECT:
        aco__select_check(wait);
        break;
    case ACO__WAIT_PLACE:
        check_in(wait, &((const aco_group_t *)object)->aco__spawners);
        ACO__ASSERT(((const aco_group_t *)object)->running);
        break;
    case ACO__WAIT_MEMBERS:
        ACO__ASSERT(!wait->first && ((const aco_group_t *)object)->aco__ender == wait);
        ACO__ASSERT(((const aco_group_t *)object)->running);
        break;
    case ACO__WAIT_RDLOCK:
    case ACO__WAIT_WRLOCK:
        check_rwlock(wait, object);
        break;
    case ACO__WAIT_ONCE:
        check_in(wait, &((const aco_once_t *)object)->aco__waiters);
        ACO__ASSERT(!((const aco_once_t *)object)->done);
        break;
    case ACO__WAIT_BARRIER:
        check_barrier(wait, object);
        break;
    case ACO__WAIT_EVENT:
        check_in(wait, &((const aco_event_t *)object)->aco__waiters);
        ACO__ASSERT(!((const aco_event_t *)object)->is_set);
        break;
    case ACO__WAIT_READABLE:
    case ACO__WAIT_WRITABLE:
        tally->events++;
        ACO__ASSERT(wait->first == &wait->waiter && wait->waiter.queue);
        break;
    case ACO__WAIT_ANSWER:
    case ACO__WAIT_MT:
        tally->answers++;
        ACO__ASSERT(wait->first == &wait->waiter && wait->waiter.queue);
        break;
    default:
        ACO__ASSERT(!"the wait is of a known kind");
    }
}

/* See aco__interrupt(). */
static int is_interruptible(const aco__wait_t *wait)
{
    return wait->kind != ACO__WAIT_MEMBERS && wait->kind != ACO__WAIT_RELOCK &&
           (wait->kind == ACO__WAIT_COND || !wait->value);
}

/* A wait that the end of its task's scopes ends: they have not ended, and the first of their deadlines has a timer. */
static void check_limit(const aco__tasks_t *s, const aco__wait_t *wait)
{
    const aco_scope_t *scope = aco__innermost(wait->task);
    const aco__timed_t *timer;
    if (!scope || !is_interruptible(wait))
        return;
    ACO__ASSERT(!scope->aco__ended_by);
    if (!scope->aco__limit)
        return;
    timer = &aco__task_record(scope->aco__limit->aco__task)->timer;
    ACO__ASSERT(timer->index && s->timers[timer->index - 1].deadline <=
                                    (scope->aco__limit->aco__deadline > 0 ? scope->aco__limit->aco__deadline : 0));
}

static void check_wait(tally_t *tally, const aco_t *task, const aco__wait_t *wait)
{
    tally->waiting++;
    ACO__ASSERT(wait->task == task);
    ACO__ASSERT(!wait->error || wait->kind == ACO__WAIT_RELOCK || wait->value); /* it has not ended; or one for a
        condition has, which goes on as one for the mutex */
    for (const aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other) {
        ACO__ASSERT(waiter->wait == wait);
        check_place(waiter);
    }
    check_object(tally, wait);
    check_timer(tally, &wait->timer);
    check_limit(aco__tasks(tally->self), wait);
}

/* ---- Scopes and groups ---- */

static void check_members(const aco__thread_t *self, const aco_group_t *group)
{
    size_t n = 0;
    const aco__task_record_t *last = NULL;
    for (const aco__task_record_t *member = group->aco__first; member; last = member, member = member->next) {
        ACO__ASSERT(member->previous == last && member->group == group);
        ACO__ASSERT(++n <= self->tasks); /* else the list does not end */
    }
    ACO__ASSERT(last == group->aco__last);
    ACO__ASSERT(n <= group->running); /* the rest are places of spawners that have yet to run */
}

static void check_scope(const aco_scope_t *scope)
{
    const aco_scope_t *outer = scope->aco__flags & ACO__SCOPE_SHIELD ? NULL : scope->aco__outer;
    ACO__ASSERT(!outer || !outer->aco__ended_by || scope->aco__ended_by); /* its end reaches those inside */
    ACO__ASSERT(!scope->aco__limit || scope->aco__limit == scope || (outer && scope->aco__limit == outer->aco__limit));
    ACO__ASSERT(scope->aco__deadline == ACO_FOREVER || scope->aco__limit);
}

static void check_scopes(tally_t *tally, const aco_t *task)
{
    const aco__task_record_t *record = aco__task_record(task);
    unsigned groups = 0;
    int is_own = 1;
    tally->scoped++;
    ACO__ASSERT(record->task == task);
    check_timer(tally, &record->timer);
    for (const aco_scope_t *scope = record->scope; scope; scope = scope->aco__outer) {
        ACO__ASSERT(scope->aco__task || (scope->aco__flags & ACO__SCOPE_MT)); /* it has not been left */
        if (scope->aco__task != task) /* a group's, and those around it */
            is_own = 0;
        else
            ACO__ASSERT(is_own);
        check_scope(scope);
        if (is_own && scope->aco__flags & ACO__SCOPE_GROUP)
            check_members(tally->self, (const aco_group_t *)scope);
        groups += is_own && scope->aco__flags & (ACO__SCOPE_GROUP | ACO__SCOPE_MT);
    }
    ACO__ASSERT(record->groups == groups);
    if (record->group) {
        ACO__ASSERT((record->previous ? record->previous->next : record->group->aco__first) == record);
        ACO__ASSERT((record->next ? record->next->previous : record->group->aco__last) == record);
        ACO__ASSERT(*aco__task_flags(task) & TASK_DETACHED);
    }
}

/* ---- All ---- */

static int check_task_of(aco_t *task, void *arg)
{
    tally_t *tally = arg;
    if (!aco__is_task(task) || task->share_stack->aco__thread != tally->self)
        return 0;
    tally->tasks++;
    tally->scoped += !aco__is_on_private(task);
    ACO__ASSERT(!*aco__task_joiner(task) || !(*aco__task_flags(task) & TASK_DETACHED));
    if (aco__task_wait(task))
        check_wait(tally, task, aco__task_wait(task));
    if (*aco__task_flags(task) & TASK_SCOPED)
        check_scopes(tally, task);
    return 0;
}

void aco__scheduler_valid(const aco__thread_t *self)
{
    tally_t tally = {self, 0, 0, 0, 0, 0, 0, 0};
    const aco__tasks_t *s = aco__tasks(self);
    ACO__ASSERT(self == aco__self());
    if (!s)
        return;
    check_ring(&tally);
    (void)aco__blocks_each(check_task_of, &tally);
    check_timers(&tally);
    tally.runnable += s->chooser ? s->chooser->aco__kept : 0;
    ACO__ASSERT(tally.tasks == self->tasks && tally.runnable + tally.waiting == tally.tasks);
    ACO__ASSERT(tally.scoped + (s->opened != 0) == self->scoped_tasks);
    ACO__ASSERT(tally.answers <= s->askers && (!s->poller || tally.events <= s->poller->waiters));
    /* Who posts to a thread that runs wakes nobody, or its idle hook. */
    ACO__ASSERT(!aco__in_turn(s) || s->turns_until || !aco__inbox_is_asleep(s));
    aco__inbox_check(s);
}
#endif
