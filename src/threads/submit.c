/* Groups whose members run on several threads, and the tasks that run submitted items.
 *
 * The group's scope is that of its task and belongs to its thread. Each member has a scope of its own, its outermost,
 * with the group's deadline. When the group's scope ends early, its thread notes that in the group and posts to each
 * thread of the set, which then ends the scopes of those of its members whose groups have such a note. A member reads
 * the note when it starts, after it stands in its thread's list: so it sees the note, or the post finds it.
 *
 * Members that have not ended are counted. Until its task comes to aco_mt_group_end(), the group's thread counts
 * what begins and ends there in `aco__own`, without atomics. The other threads use `aco__pending`, which therefore may
 * fall: it begins at COUNT_OPEN, so that nobody takes it for 0. At the end `aco__own` is added and COUNT_OPEN taken
 * away; from then on all use `aco__pending`, and whoever makes it 0 tells the task. */
#include "base/invariants.h"
#include "base/reserved.h"
#include "threads/deque.h"
#include "threads/search.h"
#include "threads/set.h"
#include "threads/submit.h"

static const char call_submit[] = "aco_submit";
static const char what_group[] = "members of a group, perhaps on other threads";

#define COUNT_OPEN (SIZE_MAX / 2)
enum { ALONE = 7 }; /* see run_items() */

static int counts_apart(const aco_mt_group_t *group, const aco__set_worker_t *worker)
{
    return worker == group->aco__owner && group->aco__is_open;
}

/* A member is submitted by this worker; NULL: by another thread. */
static inline void count_member(aco_mt_group_t *group, const aco__set_worker_t *worker)
{
    if (counts_apart(group, worker))
        group->aco__own++;
    else
        __atomic_fetch_add(&group->aco__pending, 1, __ATOMIC_RELAXED);
}

/* ---- The members' ends ---- */

static void cancel(aco_mt_group_t *group)
{
    if (aco__threads_enter(group->aco__owner))
        (void)aco_scope_cancel(&group->scope);
    aco__threads_leave(group->aco__owner);
}

static void succeed(aco_mt_group_t *group, void *result)
{
    int none = 0;
    if (!__atomic_compare_exchange_n(&group->succeeded, &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    group->result = result;
    cancel(group);
}

static void fail_group(aco_mt_group_t *group, int error)
{
    int none = 0;
    int is_first = __atomic_compare_exchange_n(&group->error, &none, error, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_fetch_add(&group->failed, 1, __ATOMIC_RELAXED);
    if (is_first && group->policy == ACO_CANCEL_ON_FAILURE)
        cancel(group);
}

/* So many members are no longer pending. On the thread of this worker; NULL: on another. The group may be gone when
 * this returns. */
static void finish(aco_mt_group_t *group, const aco__set_worker_t *self, size_t count)
{
    aco__set_worker_t *owner = group->aco__owner;
    if (counts_apart(group, self)) {
        group->aco__own -= count;
        return;
    }
    if (__atomic_fetch_sub(&group->aco__pending, count, __ATOMIC_ACQ_REL) != count)
        return;
    if (owner == self) {
        aco__answer_tell(&group->aco__answer);
        return;
    }
    if (aco__threads_enter(owner))
        aco__answer_tell(&group->aco__answer);
    aco__threads_leave(owner);
}

/* A member has returned that, with this errno if it has failed. It is still pending. */
static inline void note_result(const aco__item_t *item, void *result, int error)
{
    if (item->result && item->result != ACO__FREED_UNRUN)
        *item->result = result;
    if (aco_unlikely(result == ACO_ERROR))
        fail_group(item->group, error ? error : EINVAL);
    else if (item->group->policy == ACO_FIRST_SUCCESS)
        succeed(item->group, result);
}

static void complete(const aco__item_t *item, const aco__set_worker_t *self, void *result, int error)
{
    note_result(item, result, error);
    finish(item->group, self, 1);
}

/* The item has not been run, and never will be. */
static void drop(const aco__item_t *item, int error)
{
    if (item->result == ACO__FREED_UNRUN)
        (*(void (**)(void *))item->arg)(item->arg);
    complete(item, aco__threads_self(), ACO_ERROR, error);
}

/* ---- The members' tasks ---- */

static void link_run(aco__run_t *run)
{
    aco__set_worker_t *worker = run->worker;
    run->previous = NULL;
    run->next = worker->runs;
    if (run->next)
        run->next->previous = run;
    worker->runs = run;
}

static void unlink_run(const aco__run_t *run)
{
    ACO__ASSERT((run->previous ? run->previous->next : run->worker->runs) == run);
    ACO__ASSERT(!run->next || run->next->previous == run);
    *(run->previous ? &run->previous->next : &run->worker->runs) = run->next;
    if (run->next)
        run->next->previous = run->previous;
}

static void uncount_sent(aco__set_worker_t *worker)
{
    ACO__ASSERT(__atomic_load_n(&worker->sent, __ATOMIC_RELAXED) > 0);
    __atomic_fetch_sub(&worker->sent, 1, __ATOMIC_RELAXED);
}

/* The run for members of this group ends, with their results noted. */
static inline void finish_run(const aco__run_t *run, aco_mt_group_t *group)
{
    if (run->is_sent)
        uncount_sent(run->worker);
    unlink_run(run);
    finish(group, run->worker, run->ended + 1);
}

/* The member does not return to run_item(). */
static void end_run(aco__run_t *run, void *result, int error)
{
    note_result(&run->item, result, error);
    finish_run(run, run->item.group);
}

/* The task calls aco_exit(). */
static void run_exits(aco__at_end_t *at_end)
{
    end_run((aco__run_t *)(void *)at_end, NULL, 0);
}

/* The frame of the run is left. pthread_exit() in the member has unwound it, if the run is still linked. */
static inline void run_left(aco__run_t *run)
{
    if (aco_unlikely(run->worker != NULL))
        end_run(run, ACO_ERROR, ECANCELED);
}

static void end_with_group(aco__run_t *run)
{
    int ended = __atomic_load_n(&run->item.group->aco__ended, __ATOMIC_SEQ_CST);
    if (aco_unlikely(ended != 0))
        aco__scope_end_early(&run->base.scope, ended);
}

/* An item whose task inherits a value of its submitter's: the argument of one whose function is NULL. */
typedef struct heir {
    void (*free_unrun)(void *itself); /* ACO__FREED_UNRUN */
    aco__item_t item;
    void *value; /* inherited */
    size_t sz;
} heir_t;

/* The calling task inherits the value, and the member is what was submitted. */
static ACO__COLD void begin_heir(aco__item_t *item)
{
    heir_t *heir = item->arg;
    *item = heir->item;
    aco__inherited_give(NULL, heir->value);
    aco__service_free(heir, heir->sz);
}

/* The calling task becomes a member, for run->item. */
static inline void begin_run(aco__run_t *run, aco__set_worker_t *worker, int is_sent)
{
    run->worker = worker;
    run->is_sent = is_sent;
    run->ended = 0;
    run->base.at_end.ends = run_exits;
    aco__member_begin(&run->base, run->item.group->aco__deadline);
    link_run(run);
}

ACO__SWITCHES ACO__FORCE_INLINE void run_item(aco__run_t *run)
{
    unsigned starts = run->worker->starts;
    void *result;
    if (aco_unlikely(!run->item.fn))
        begin_heir(&run->item);
    end_with_group(run);
    errno = 0;
    result = run->item.fn(run->item.arg);
    note_result(&run->item, result, aco_unlikely(result == ACO_ERROR) ? errno : 0);
    run->worker->is_quick = run->worker->starts == starts;
}

static inline void leave_run(aco__run_t *run, aco_mt_group_t *group)
{
    aco__member_end(&run->base);
    finish_run(run, group);
    run->worker = NULL;
}

/* Whether the task of a member that has ended may run one more item in this round. */
static inline int goes_on(aco__set_worker_t *worker, const aco__member_t *member)
{
    if (!worker->more && worker->more_alone && aco__member_is_alone()) {
        worker->more = THREADS_AT_ONCE;
        worker->more_alone--;
    }
    return worker->more && aco__member_is_like_new(member);
}

/* Most of what a short function costs is its task: so one that is like new afterwards runs the next item too, up to
 * THREADS_AT_ONCE in a round, or ALONE times more if the thread has nothing else to do. An item of the same group goes
 * on as the same member. Those before it count as pending until the run is left: the group does not end before this
 * one does. */
ACO__SWITCHES ACO__FORCE_INLINE void run_items(aco__set_worker_t *worker, aco__run_t *run)
{
    aco_mt_group_t *group = run->item.group;
    begin_run(run, worker, 0);
    run_item(run);
    while (goes_on(worker, &run->base) && aco__threads_take(worker, &run->item)) {
        worker->more--;
        if (run->item.group == group) {
            run->ended++;
        } else {
            leave_run(run, group);
            group = run->item.group;
            begin_run(run, worker, 0);
        }
        run_item(run);
    }
    leave_run(run, group);
}

/* The task for an item of the thread's own. Until it runs the item may be stolen: a task before it may run for long. */
ACO__SWITCHES static void *run_own_item(void *arg)
{
    __attribute__((cleanup(run_left))) aco__run_t run;
    aco__set_worker_t *worker = arg;
    run.worker = NULL;
    if (aco__threads_take(worker, &run.item))
        run_items(worker, &run);
    return NULL;
}

/* The item that was put aside for the task. */
static inline aco__item_t next_item(aco__set_worker_t *worker)
{
    ACO__ASSERT(worker->begun != worker->started);
    return worker->starting[worker->begun++ % THREADS_AT_ONCE];
}

ACO__SWITCHES static void *run_found_item(void *arg)
{
    __attribute__((cleanup(run_left))) aco__run_t run;
    aco__set_worker_t *worker = arg;
    run.item = next_item(worker);
    run_items(worker, &run);
    return NULL;
}

ACO__SWITCHES static void *run_sent_item(void *worker)
{
    __attribute__((cleanup(run_left))) aco__run_t run;
    run.item = next_item(worker);
    begin_run(&run, worker, 1);
    run_item(&run);
    leave_run(&run, run.item.group);
    return NULL;
}

/* Spawns a task. 0 without memory. */
static int spawn_task(aco__set_worker_t *worker, ACO__SWITCHES aco_function_t runs)
{
    aco_t *task = aco_spawn(runs, worker, NULL);
    if (!task)
        return 0;
    (void)aco_detach(task);
    return 1;
}

/* The same, for the item. */
static int spawn_for(aco__set_worker_t *worker, const aco__item_t *item, ACO__SWITCHES aco_function_t runs)
{
    if (!spawn_task(worker, runs))
        return 0;
    ACO__ASSERT(worker->started - worker->begun < THREADS_AT_ONCE);
    worker->starting[worker->started++ % THREADS_AT_ONCE] = *item;
    return 1;
}

/* Without memory for its task an item stays: if others run, one of them may end and leave its stack. With `drops`, it
 * counts as failed. */
enum { NONE_LEFT, STARTED, NO_MEMORY };

static int start_sent(aco__set_worker_t *worker, int drops)
{
    aco__node_t *node = aco__threads_sent(worker);
    aco__item_t item;
    int started;
    if (!node)
        return NONE_LEFT;
    item = node->item;
    started = spawn_for(worker, &item, run_sent_item);
    if (started || drops) {
        worker->first = node->next;
        aco__service_free(node, node->sz);
    }
    if (!started && drops) {
        uncount_sent(worker);
        drop(&item, ENOMEM);
    }
    return started ? STARTED : NO_MEMORY;
}

static int start_own(aco__set_worker_t *worker, int drops)
{
    aco__item_t item;
    if (aco_likely(spawn_task(worker, run_own_item)))
        return STARTED;
    if (drops && aco__threads_take(worker, &item))
        drop(&item, ENOMEM);
    return NO_MEMORY;
}

/* The worker has no items of its own. */
static int start_any(aco__set_worker_t *worker, int searches, int drops)
{
    aco__item_t item;
    if (!aco__threads_take(worker, &item) && !(searches && aco__threads_find(worker, &item)))
        return NONE_LEFT;
    if (aco_likely(spawn_for(worker, &item, run_found_item)))
        return STARTED;
    if (drops || aco__deque_push(&worker->deque, &item) != 0)
        drop(&item, ENOMEM);
    return NO_MEMORY;
}

/* All tasks spawned for items have run before the next call: they were the last in the queue. If items end without
 * waiting, there is one such task in a round. */
int aco__threads_start(aco__set_worker_t *worker, int searches, int is_idle)
{
    int any = 0, found = STARTED, tasks = worker->is_quick ? 1 : THREADS_AT_ONCE;
    size_t own = 0;
    worker->starts++;
    worker->more = THREADS_AT_ONCE - tasks;
    worker->more_alone = ALONE;
    while (worker->started - worker->begun < THREADS_AT_ONCE && (found == STARTED || (is_idle && !any))) {
        found = NONE_LEFT;
        if (aco_unlikely(aco__threads_has_sent(worker)))
            found = start_sent(worker, is_idle && !any);
        if (found == NONE_LEFT && tasks-- > 0) {
            if (aco__deque_count(&worker->deque) > own) {
                found = start_own(worker, is_idle && !any);
                own += found == STARTED;
            } else if (!own)
                found = start_any(worker, searches && !any, is_idle && !any);
        }
        if (found == NONE_LEFT)
            break;
        any |= found == STARTED;
    }
    aco__threads_end_search(worker);
    return any;
}

/* ---- The group's end reaches its members ---- */

void aco__threads_pass_ends(const aco__set_worker_t *worker)
{
    ACO__NO_SWITCH_BEGIN(); /* members would leave the list */
    for (aco__run_t *run = worker->runs; run; run = run->next)
        end_with_group(run);
    ACO__NO_SWITCH_END();
}

static void note_end(aco_mt_group_t *group, int error)
{
    __atomic_store_n(&group->aco__ended, error, __ATOMIC_SEQ_CST);
    aco__threads_each(group->aco__owner->threads, aco__threads_post_ends);
}

/* On the thread of the group's task. */
void aco__threads_group_ended(aco__worker_t *worker, aco_scope_t *scope)
{
    aco_mt_group_t *group = (aco_mt_group_t *)(void *)scope;
    (void)worker;
    note_end(group, scope->aco__ended_by->error);
}

/* ---- What is lost ---- */

static void append_nodes(aco__set_worker_t *worker, aco__node_t *list)
{
    aco__node_t **last = &worker->first;
    while (*last)
        last = &(*last)->next;
    *last = list;
}

void aco__threads_abandon(aco__set_worker_t *worker)
{
    aco__node_t *node;
    aco__run_t *run;
    append_nodes(worker, aco__threads_receive(worker)); /* first: once a group has ended, nothing more is taken */
    while (worker->groups) {
        aco_mt_group_t *group = worker->groups;
        worker->groups = group->aco__next;
        note_end(group, ECANCELED);
    }
    while (worker->begun != worker->started)
        drop(&worker->starting[worker->begun++ % THREADS_AT_ONCE], ECANCELED);
    while ((run = worker->runs) != NULL) {
        worker->runs = run->next;
        note_result(&run->item, ACO_ERROR, ECANCELED); /* its frames stay as they are, with what they use */
        finish(run->item.group, aco__threads_self(), run->ended + 1);
    }
    while ((node = worker->first) != NULL) {
        worker->first = node->next;
        drop(&node->item, ECANCELED);
        aco__service_free(node, node->sz);
    }
}

/* How many members of the group only this thread runs, or will start. */
static size_t count_own(const aco__set_worker_t *worker, const aco_mt_group_t *group, const aco__deque_t *deque)
{
    size_t count = 0;
    for (const aco__run_t *run = worker->runs; run; run = run->next)
        count += run->item.group == group ? run->ended + 1 : 0;
    for (unsigned i = worker->begun; i != worker->started; i++)
        count += worker->starting[i % THREADS_AT_ONCE].group == group;
    for (const aco__node_t *node = worker->first; node; node = node->next)
        count += node->item.group == group;
    return count + aco__deque_count_of(deque, group);
}

static void lose_members(aco_mt_group_t *group, size_t lost)
{
    group->failed += lost;
    if (!group->error)
        group->error = ECANCELED;
    if (group->policy == ACO_CANCEL_ON_FAILURE)
        cancel(group);
}

void aco__threads_forget_others(aco__set_worker_t *worker)
{
    append_nodes(worker, aco__threads_receive(worker));
    for (aco_mt_group_t *group = worker->groups, *next; group; group = next) {
        size_t own = count_own(worker, group, &worker->deque), lost = group->aco__pending - own;
        next = group->aco__next;
        group->aco__pending = own;
        if (group->aco__is_open) {
            lost += group->aco__own - COUNT_OPEN;
            group->aco__own = own;
            group->aco__pending = COUNT_OPEN;
        }
        if (lost)
            lose_members(group, lost);
        if (group->aco__is_open || group->aco__pending)
            continue;
        aco__answer_forget(worker->base.scheduler, &group->aco__answer.post); /* the last member was about to tell it */
        aco__answer_tell(&group->aco__answer);
    }
}

/* ---- The calls ---- */

static void link_group(aco__set_worker_t *worker, aco_mt_group_t *group)
{
    group->aco__previous = NULL;
    group->aco__next = worker->groups;
    if (group->aco__next)
        group->aco__next->aco__previous = group;
    worker->groups = group;
}

static void unlink_group(aco__set_worker_t *worker, const aco_mt_group_t *group)
{
    ACO__ASSERT((group->aco__previous ? group->aco__previous->aco__next : worker->groups) == group);
    ACO__ASSERT(!group->aco__next || group->aco__next->aco__previous == group);
    *(group->aco__previous ? &group->aco__previous->aco__next : &worker->groups) = group->aco__next;
    if (group->aco__next)
        group->aco__next->aco__previous = group->aco__previous;
}

int aco_mt_group_begin_at(aco_mt_group_t *group, aco_group_policy_t policy, const char *location)
{
    static const char call[] = "aco_mt_group_begin";
    aco__set_worker_t *worker = aco__threads_self();
    const aco_scope_t *ended_by;
    if (!group || (unsigned)policy > ACO_FIRST_SUCCESS)
        return aco__service_fail(EINVAL, call, group ? "the policy is unknown" : "the group is NULL");
    group->scope.aco__task = NULL; /* if this fails, it takes no members */
    if (!worker)
        return aco__service_fail(EPERM, call, "the thread is in no set of threads");
    if (aco__may_move(group))
        return aco__service_fail(EINVAL, call, "the group is on a share stack");
    if (aco__answer_prepare(&group->aco__answer, call) != 0 || /* else the group could not be ended */
        aco__mt_scope_begin(&group->scope, ACO_FOREVER, 1, call, location) != 0)
        return -1;
    ended_by = aco_scope_ended_by(&group->scope);
    group->policy = policy;
    group->error = group->succeeded = 0;
    group->failed = 0;
    group->result = NULL;
    group->aco__ended = ended_by ? ended_by->error : 0;
    group->aco__pending = COUNT_OPEN;
    group->aco__own = 0;
    group->aco__is_open = 1;
    group->aco__deadline = aco_deadline();
    group->aco__owner = worker;
    link_group(worker, group);
    return 0;
}

int aco_mt_group_end_at(aco_mt_group_t *group, const char *location)
{
    static const char call[] = "aco_mt_group_end";
    size_t others; /* what `aco__pending` is if nobody is left */
    ACO__MAY_SWITCH(call, location);
    if (!group)
        return aco__service_fail(EINVAL, call, "the group is NULL");
    if (aco__mt_scope_check(&group->scope, call) != 0 || aco__answer_prepare(&group->aco__answer, call) != 0)
        return -1;
    group->aco__is_open = 0;
    others = COUNT_OPEN - group->aco__own;
    if (__atomic_fetch_sub(&group->aco__pending, others, __ATOMIC_ACQ_REL) != others &&
        aco__answer_wait(&group->aco__answer, call, what_group, ACO_FOREVER, location, NULL) != 0)
        aco__answer_await(&group->aco__answer, what_group, location); /* the members were told why */
    unlink_group(group->aco__owner, group);
    aco__mt_scope_end(&group->scope);
    if (group->policy == ACO_FIRST_SUCCESS ? group->succeeded || !group->failed : !group->failed)
        return 0;
    errno = group->error;
    return -1;
}

static int check_options(const aco_submit_options_t *options)
{
    if ((unsigned)options->where > ACO_SUBMIT_EVENLY || ACO__RESERVED_IS_SET(options))
        return aco__service_fail(EINVAL, call_submit, "unknown options");
    if (options->result && aco__may_move(options->result))
        return aco__service_fail(EINVAL, call_submit, "the result is on a share stack");
    return 0;
}

/* 0 if the group takes members; else -1. */
static int check_submission(const aco__item_t *item)
{
    const aco_mt_group_t *group = item->group;
    int ended;
    if (!group || !item->fn)
        return aco__service_fail(EINVAL, call_submit, group ? "the function is NULL" : "the group is NULL");
    if (aco_unlikely(!group->scope.aco__task))
        return aco__service_fail(ESRCH, call_submit, "the group has ended");
    ended = __atomic_load_n(&group->aco__ended, __ATOMIC_RELAXED);
    if (aco_unlikely(ended != 0)) {
        errno = ended;
        return -1;
    }
    return 0;
}

/* A submission has failed: -1 and errno. */
static ACO__COLD int withdraw(aco_mt_group_t *group)
{
    int error = errno;
    finish(group, aco__threads_self(), 1);
    errno = error;
    return -1;
}

/* The calling thread is not of the set. */
static ACO__COLD int submit_from_outside(const aco__item_t *item)
{
    return aco__threads_inject(item->group->aco__owner->threads, item) == 0 ? 0 : withdraw(item->group);
}

static inline int submit_anywhere(const aco__item_t *item)
{
    aco_mt_group_t *group = item->group;
    aco__set_worker_t *worker = aco__threads_self();
    count_member(group, worker);
    if (aco_unlikely(!worker || worker->threads != group->aco__owner->threads))
        return submit_from_outside(item);
    if (aco__deque_push(&worker->deque, item) != 0)
        return withdraw(group);
    aco__threads_wake_one(worker->threads, worker);
    return 0;
}

static int submit_to_thread(const aco__item_t *item, int thread)
{
    aco__set_worker_t *worker = aco__threads_worker(item->group->aco__owner->threads, thread);
    if (!worker)
        return aco__service_fail(ESRCH, call_submit, "the set has no thread with this number");
    count_member(item->group, aco__threads_self());
    return aco__threads_send(worker, item) == 0 ? 0 : withdraw(item->group);
}

static int submit_evenly(const aco__item_t *item)
{
    aco__set_worker_t *worker;
    count_member(item->group, aco__threads_self());
    while ((worker = aco__threads_least_sent(item->group->aco__owner->threads)) != NULL) {
        if (aco__threads_send(worker, item) == 0)
            return 0;
        if (errno != ESRCH) /* it has ended just now */
            return withdraw(item->group);
    }
    aco__service_fail(ESRCH, call_submit, "all threads of the set have ended");
    return withdraw(item->group);
}

static inline int submit_where(const aco__item_t *item, const aco_submit_options_t *options)
{
    if (!options || options->where == ACO_SUBMIT_ANYWHERE)
        return submit_anywhere(item);
    return options->where == ACO_SUBMIT_TO ? submit_to_thread(item, options->thread) : submit_evenly(item);
}

static void free_heir(void *itself)
{
    heir_t *heir = itself;
    const aco__item_t item = heir->item;
    aco__inherited_drop(heir->value);
    aco__service_free(heir, heir->sz);
    if (item.result == ACO__FREED_UNRUN)
        (*(void (**)(void *))item.arg)(item.arg);
    else if (item.result)
        *item.result = ACO_ERROR;
}

/* Submits the item with a copy of the caller's value. */
static int submit_heir(const aco__item_t *item, void *value, const aco_submit_options_t *options)
{
    size_t sz = sizeof(heir_t);
    heir_t *heir = aco__service_allocate(&sz, call_submit);
    const aco__item_t inheriting = {NULL, heir, item->group, ACO__FREED_UNRUN};
    int result = -1;
    if (heir) {
        *heir = (heir_t){free_heir, *item, value, sz};
        result = submit_where(&inheriting, options);
    }
    if (result != 0) {
        aco__inherited_drop(value);
        if (heir)
            aco__service_free(heir, sz);
    }
    return result;
}

int aco_submit(aco_mt_group_t *group, aco_function_t fn, void *arg, const aco_submit_options_t *options)
{
    const aco__item_t item = {fn, arg, group, options ? options->result : NULL};
    void *value;
    if (check_submission(&item) != 0 || (options && check_options(options) != 0))
        return -1;
    value = aco_unlikely(__atomic_load_n(&aco__inherits, __ATOMIC_RELAXED)) ? aco__inherited_copy() : NULL;
    return aco_unlikely(value != NULL) ? submit_heir(&item, value, options) : submit_where(&item, options);
}

/* ---- aco_parallel_for() ---- */

typedef struct loop {
    size_t next, end, grain; /* next: atomic */
    ACO__SWITCHES int (*fn)(size_t from, size_t to, void *arg);
    void *arg;
} loop_t;

/* A member: makes calls as long as there are parts. */
ACO__SWITCHES static void *run_parts(void *arg)
{
    loop_t *loop = arg;
    for (;;) {
        size_t from = __atomic_load_n(&loop->next, __ATOMIC_RELAXED), to;
        do {
            if (from == loop->end)
                return NULL;
            to = loop->end - from > loop->grain ? from + loop->grain : loop->end;
        } while (!__atomic_compare_exchange_n(&loop->next, &from, to, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        if (loop->fn(from, to, loop->arg) != 0) {
            __atomic_store_n(&loop->next, loop->end, __ATOMIC_RELAXED);
            return ACO_ERROR;
        }
        if (aco_check_cancelled() != 0 && errno != EPERM)
            return ACO_ERROR;
    }
}

/* Part of the caller's own work; the helpers' failures are the group's. */
ACO__SWITCHES static int run_with_helpers(loop_t *loop, size_t helpers)
{
    aco_mt_group_t group;
    void *own;
    int error, ended;
    if (aco_mt_group_begin(&group, ACO_CANCEL_ON_FAILURE) != 0)
        return -1;
    while (helpers-- && aco_submit(&group, run_parts, loop, NULL) == 0)
        ;
    own = run_parts(loop);
    error = errno;
    ended = aco_mt_group_end(&group);
    if (own == ACO_ERROR && (ended == 0 || error != ECANCELED)) {
        errno = error;
        return -1;
    }
    return ended;
}

int aco_parallel_for(size_t begin, size_t end, size_t grain, int (*fn)(size_t from, size_t to, void *arg), void *arg)
{
    enum { PARTS_PER_THREAD = 8 };
    static const char call[] = "aco_parallel_for";
    const aco__set_worker_t *worker = aco__threads_self();
    size_t threads = worker ? (size_t)worker->threads->n : 1, parts;
    loop_t loop = {begin, end, grain, fn, arg};
    if (!fn || begin > end)
        return aco__service_fail(EINVAL, call, fn ? "the end is before the beginning" : "the function is NULL");
    if (!grain)
        loop.grain = (end - begin) / (threads * PARTS_PER_THREAD) + 1;
    parts = (end - begin) / loop.grain + ((end - begin) % loop.grain != 0);
    if (threads == 1 || parts < 2 || !aco_current_task())
        return run_parts(&loop) == ACO_ERROR ? -1 : 0;
    if (aco__may_move(&loop))
        return aco__service_fail(EINVAL, call, "the caller is on a share stack");
    return run_with_helpers(&loop, (parts < threads ? parts : threads) - 1);
}
