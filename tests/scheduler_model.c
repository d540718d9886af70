/* The promises of order of include/aco/scheduler.h, under random programs: tasks do random operations on mutexes,
 * conditions, semaphores, wait groups, channels and each other, and before each operation a model made of plain queues
 * says who runs next, who is woken, and with what. The root context resolves each deadlock, which must come just when
 * the model has nobody left to run. Some tasks have a floating-point environment of their own, so that the ways of
 * switching alternate. Tasks are in scopes and shields, which any task cancels: then waits fail.
 *
 * scheduler_model [seed [operations [stacks]]]: 1: two thirds of the tasks are on one share stack; 2: all, on two */
#define _GNU_SOURCE
#include <aco/scope.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

/* The library's reports of deadlocks, thousands and all wanted, are dropped; checks print to the original stderr. */
static FILE *messages;
#undef stderr
#define stderr messages
#include "check.h"
#include "random.h"
#include "valid.h"

enum { OPERATIONS = 20, SCOPES = 3, TASKS = 24, MUTEXES = 3, CONDITIONS = 2, SEMAPHORES = 2, GROUPS = 2, CHANNELS = 4,
       MOST_CASES = 4, QUEUE = 512, NOBODY = -1 };

static random_t draws;

static int pick(int limit)
{
    return (int)below(&draws, (unsigned)limit);
}

/* ---- The model ---- */

/* Who waits, in order; `which`: the case of a select, `value`: what a sender has. */
typedef struct entry {
    int task, which; /* which, in a mutex's queue: 1 if the task has waited for a condition until now */
    uint64_t value;
} entry_t;

typedef struct queue {
    entry_t at[QUEUE];
    int n;
} queue_t;

typedef enum state {
    FREE, RUNNABLE, PARKED, JOINING, LOCKING, ON_CONDITION, ACQUIRING, ON_GROUP, ON_CHANNEL, ENDED
} state_t;

static struct task {
    aco_t *co;
    state_t state;
    int object;             /* of that state: which one */
    int mutex;              /* ON_CONDITION: to be locked afterwards */
    int parent, joiner;     /* NOBODY: detached; not being joined */
    int permit, held;       /* held: a bit for each mutex */
    int is_early;           /* runnable, but without the mutex it waits for */
    unsigned selections;
    int relocks;            /* it waits for a mutex after a condition: nothing interrupts that */
    int which, error;       /* what the wait must bring */
    uint64_t value;
    int depth;              /* of scopes, the innermost last */
    struct { aco_scope_t real; int shields, ended; } scopes[SCOPES];
} tasks[TASKS];

static struct channel {
    aco_channel_t *real;
    size_t size, capacity;
    queue_t held, senders, receivers;
    int closed;
} channels[CHANNELS];

static queue_t runnable, mutex_waiters[MUTEXES], condition_waiters[CONDITIONS], semaphore_waiters[SEMAPHORES],
    group_waiters[GROUPS];
static int owner[MUTEXES], current = NOBODY;
static size_t units[SEMAPHORES], counts[GROUPS];
static aco_share_stack_t *stacks[3]; /* of a third of the tasks each; NULL: private ones */
static long left;           /* operations to do */
static long done[OPERATIONS], deadlocks, spawned, interrupted, refused;

static aco_mutex_t mutexes[MUTEXES];
static aco_cond_t conditions[CONDITIONS];
static aco_semaphore_t semaphores[SEMAPHORES];
static aco_wait_group_t groups[GROUPS];

static void push(queue_t *queue, int task, int which, uint64_t value)
{
    entry_t entry = {task, which, value};
    if (queue->n == QUEUE)
        abort();
    queue->at[queue->n++] = entry;
}

static void take_out(queue_t *queue, int i)
{
    memmove(&queue->at[i], &queue->at[i + 1], (size_t)(--queue->n - i) * sizeof *queue->at);
}

static entry_t pop(queue_t *queue)
{
    entry_t first = queue->at[0];
    take_out(queue, 0);
    return first;
}

static void remove_task(queue_t *queue, int task)
{
    for (int i = queue->n - 1; i >= 0; i--)
        if (queue->at[i].task == task)
            take_out(queue, i);
}

static void wake(int task)
{
    tasks[task].state = RUNNABLE;
    push(&runnable, task, 0, 0);
}

static void next_runs(void)
{
    do {
        current = runnable.n ? pop(&runnable).task : NOBODY;
        if (current == NOBODY || !tasks[current].is_early)
            return;
        tasks[current].is_early = 0; /* in vain: it waits again, like any other task */
        tasks[current].state = LOCKING;
        for (int m = 0; m < MUTEXES; m++)
            for (int i = 0; i < mutex_waiters[m].n; i++)
                if (mutex_waiters[m].at[i].task == current)
                    mutex_waiters[m].at[i].which = 0;
    } while (1);
}

static void wait_for(state_t state, int object)
{
    tasks[current].state = state;
    tasks[current].object = object;
    tasks[current].error = 0;
    tasks[current].which = -1;
    next_runs();
}

/* A channel serves one that waits. */
static void serve(entry_t entry, int error, uint64_t value)
{
    struct task *t = &tasks[entry.task];
    for (int i = 0; i < CHANNELS; i++) {
        remove_task(&channels[i].senders, entry.task);
        remove_task(&channels[i].receivers, entry.task);
    }
    t->which = entry.which;
    t->error = error;
    t->value = value;
    wake(entry.task);
}

static int model_send(struct channel *c, uint64_t value)
{
    if (c->closed)
        return EPIPE;
    if (c->receivers.n)
        serve(c->receivers.at[0], 0, value);
    else if ((size_t)c->held.n < c->capacity)
        push(&c->held, 0, 0, value);
    else
        return EAGAIN;
    return 0;
}

static int model_receive(struct channel *c, uint64_t *value)
{
    if (c->held.n) {
        *value = pop(&c->held).value;
        if (c->senders.n)
            push(&c->held, 0, 0, c->senders.at[0].value);
    } else if (c->senders.n) {
        *value = c->senders.at[0].value;
    } else {
        return c->closed ? EPIPE : EAGAIN;
    }
    if (c->senders.n)
        serve(c->senders.at[0], 0, c->senders.at[0].value);
    return 0;
}

/* Those at the head of the mutex's queue that waited for a condition run in this round. */
static void run_early(int m)
{
    for (int i = 0; i < mutex_waiters[m].n; i++) {
        entry_t *entry = &mutex_waiters[m].at[i];
        if (!entry->which || tasks[entry->task].is_early)
            return;
        wake(entry->task);
        tasks[entry->task].is_early = 1;
    }
}

static void model_unlock(int m)
{
    entry_t first;
    owner[m] = NOBODY;
    if (!mutex_waiters[m].n)
        return;
    first = pop(&mutex_waiters[m]);
    owner[m] = first.task;
    if (tasks[first.task].is_early)
        tasks[first.task].is_early = 0;
    else
        wake(first.task);
    if (first.which)
        run_early(m);
}

static void relock(int task);

static void model_signal(int c)
{
    int task = condition_waiters[c].n ? pop(&condition_waiters[c]).task : NOBODY;
    if (task == NOBODY)
        return;
    relock(task);
}

static void relock(int task)
{
    int m = tasks[task].mutex;
    tasks[task].relocks = 1;
    if (owner[m] == NOBODY) {
        owner[m] = task;
        wake(task);
    } else {
        tasks[task].state = LOCKING;
        push(&mutex_waiters[m], task, 1, 0);
    }
}

static void model_release(int s)
{
    if (semaphore_waiters[s].n)
        wake(pop(&semaphore_waiters[s]).task);
    else
        units[s]++;
}

static void model_add(int g, ptrdiff_t n)
{
    counts[g] += (size_t)n;
    while (!counts[g] && group_waiters[g].n)
        wake(pop(&group_waiters[g]).task);
}

static void model_unpark(int task)
{
    if (tasks[task].state == PARKED)
        wake(task);
    else
        tasks[task].permit = 1;
}

/* Whether waits in this scope of the task fail: it or one around it has ended, and there is no shield in between. */
static int scope_has_ended(int task, int which)
{
    for (int i = which; i >= 0; i--) {
        if (tasks[task].scopes[i].ended)
            return 1;
        if (tasks[task].scopes[i].shields)
            return 0;
    }
    return 0;
}

static int has_ended(int task)
{
    return scope_has_ended(task, tasks[task].depth - 1);
}

/* The task's wait fails. */
static void interrupt(int task)
{
    struct task *t = &tasks[task];
    if (t->state == LOCKING && t->relocks)
        return;
    if (t->state == RUNNABLE || t->state == ENDED || t->state == FREE)
        return;
    interrupted++;
    t->error = ECANCELED;
    t->which = -1;
    if (t->state == ON_CONDITION) {
        remove_task(&condition_waiters[t->object], task);
        relock(task);
        return;
    }
    if (t->state == JOINING)
        tasks[t->object].joiner = NOBODY;
    if (t->state == LOCKING)
        remove_task(&mutex_waiters[t->object], task);
    if (t->state == ACQUIRING)
        remove_task(&semaphore_waiters[t->object], task);
    if (t->state == ON_GROUP)
        remove_task(&group_waiters[t->object], task);
    for (int i = 0; i < CHANNELS; i++) {
        remove_task(&channels[i].senders, task);
        remove_task(&channels[i].receivers, task);
    }
    wake(task);
}

static void model_cancel(int task, int which)
{
    if (scope_has_ended(task, which)) /* then nothing changes */
        return;
    tasks[task].scopes[which].ended = 1;
    if (has_ended(task))
        interrupt(task);
}

/* The running task must wait. Returns whether it may; else its error is ECANCELED. */
static int may_wait(int me)
{
    tasks[me].error = 0;
    tasks[me].which = -1;
    if (!has_ended(me))
        return 1;
    refused++;
    tasks[me].error = ECANCELED;
    return 0;
}

/* The outcome of a call that may have waited is what the model says. Returns whether it succeeded. */
static int check_outcome(int me, int result)
{
    int seen = errno;
    CHECK_EQ(result, tasks[me].error ? -1 : 0);
    if (tasks[me].error)
        CHECK_EQ(seen, tasks[me].error);
    return !tasks[me].error;
}

/* ---- Operations of a task: first on the model, then in earnest ---- */

enum { BYTES = 16 };

static void encode(char bytes[BYTES], uint64_t value)
{
    memset(bytes, (int)(value % 251), BYTES);
    memcpy(bytes, &value, sizeof value);
}

/* Only so many bytes went through the channel, which may be another one by now. */
static void check_value(size_t size, const char bytes[BYTES], uint64_t value)
{
    char wanted[BYTES];
    encode(wanted, value);
    CHECK(memcmp(bytes, wanted, size) == 0);
}

static void pass_turn(int me)
{
    push(&runnable, me, 0, 0);
    next_runs();
    switch (pick(3)) {
    case 0:
        aco_task_yield_call();
        break;
#if !defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
    case 1:
        aco_yield();
        break;
#endif
    default:
        CHECK_EQ(aco_task_yield(), 0);
    }
}

/* Mutexes are locked in order, so that no deadlock is for ever. */
static void lock(int me)
{
    int m = 0;
    while (m < MUTEXES && tasks[me].held >> m)
        m++;
    m += m < MUTEXES ? pick(MUTEXES - m) : 0;
    if (m == MUTEXES)
        return;
    if (pick(4) == 0) {
        errno = 0;
        CHECK_EQ(aco_mutex_try_lock(&mutexes[m]), owner[m] == NOBODY ? 0 : -1);
        CHECK_EQ(errno, owner[m] == NOBODY ? 0 : EBUSY);
        if (owner[m] != NOBODY)
            return;
        owner[m] = me;
    } else {
        tasks[me].error = 0;
        if (owner[m] == NOBODY) {
            owner[m] = me;
        } else if (may_wait(me)) {
            push(&mutex_waiters[m], me, 0, 0);
            wait_for(LOCKING, m);
        }
        if (!check_outcome(me, aco_mutex_lock(&mutexes[m])))
            return;
    }
    CHECK_EQ(owner[m], me);
    tasks[me].held |= 1 << m;
}

static int highest_held(int me)
{
    int m = MUTEXES - 1;
    while (m >= 0 && !(tasks[me].held >> m & 1))
        m--;
    return m;
}

static void unlock(int me)
{
    int m = highest_held(me);
    if (m < 0)
        return;
    tasks[me].held &= ~(1 << m);
    model_unlock(m);
    CHECK_EQ(aco_mutex_unlock(&mutexes[m]), 0);
}

static void wait_on_condition(int me)
{
    int m = highest_held(me), c = pick(CONDITIONS);
    if (m < 0)
        return;
    if (may_wait(me)) {
        push(&condition_waiters[c], me, 0, 0);
        tasks[me].mutex = m;
        tasks[me].state = ON_CONDITION;
        tasks[me].object = c;
        model_unlock(m); /* who gets it runs after those that could run before */
        next_runs();
    }
    check_outcome(me, aco_cond_wait(&conditions[c], &mutexes[m]));
    tasks[me].relocks = 0;
    CHECK_EQ(owner[m], me);
}

static void signal_condition(void)
{
    int c = pick(CONDITIONS);
    if (pick(3)) {
        model_signal(c);
        aco_cond_signal(&conditions[c]);
    } else {
        int m = condition_waiters[c].n ? tasks[condition_waiters[c].at[0].task].mutex : 0;
        int was_free = owner[m] == NOBODY;
        while (condition_waiters[c].n)
            model_signal(c);
        if (was_free)
            run_early(m);
        aco_cond_broadcast(&conditions[c]);
    }
}

static void acquire(int me)
{
    int s = pick(SEMAPHORES), free = units[s] != 0;
    if (free)
        units[s]--;
    if (pick(3) == 0) {
        errno = 0;
        CHECK_EQ(aco_semaphore_try_acquire(&semaphores[s]), free ? 0 : -1);
        CHECK_EQ(errno, free ? 0 : EAGAIN);
        return;
    }
    tasks[me].error = 0;
    if (!free && may_wait(me)) {
        push(&semaphore_waiters[s], me, 0, 0);
        wait_for(ACQUIRING, s);
    }
    check_outcome(me, aco_semaphore_acquire(&semaphores[s]));
}

static void release(void)
{
    int s = pick(SEMAPHORES);
    model_release(s);
    aco_semaphore_release(&semaphores[s]);
}

static void use_group(int me)
{
    int g = pick(GROUPS);
    if (pick(3) == 0 && counts[g] < 5) {
        model_add(g, 2);
        CHECK_EQ(aco_wait_group_add(&groups[g], 2), 0);
    } else if (pick(2) && counts[g]) {
        model_add(g, -1);
        CHECK_EQ(aco_wait_group_done(&groups[g]), 0);
    } else {
        tasks[me].error = 0;
        if (counts[g] && may_wait(me)) {
            push(&group_waiters[g], me, 0, 0);
            wait_for(ON_GROUP, g);
        }
        check_outcome(me, aco_wait_group_wait(&groups[g]));
    }
}

static void send(int me)
{
    struct channel *c = &channels[pick(CHANNELS)];
    uint64_t value = draw(&draws);
    int error = model_send(c, value), try = pick(3) == 0, waits = error == EAGAIN && !try, result, seen;
    char bytes[BYTES];
    encode(bytes, value);
    if (waits && may_wait(me)) {
        push(&c->senders, me, 0, value);
        wait_for(ON_CHANNEL, (int)(c - channels));
    }
    result = try ? aco_channel_try_send(c->real, bytes) : aco_channel_send(c->real, bytes);
    seen = errno;
    if (waits)
        error = tasks[me].error;
    CHECK_EQ(result, error ? -1 : 0);
    if (error)
        CHECK_EQ(seen, error);
}

static void receive(int me)
{
    struct channel *c = &channels[pick(CHANNELS)];
    size_t size = c->size;
    uint64_t value = 0;
    int error = model_receive(c, &value), try = pick(3) == 0, waits = error == EAGAIN && !try, result, seen;
    char bytes[BYTES] = {0};
    if (waits && may_wait(me)) {
        push(&c->receivers, me, 0, 0);
        wait_for(ON_CHANNEL, (int)(c - channels));
    }
    result = try ? aco_channel_try_receive(c->real, bytes) : aco_channel_receive(c->real, bytes);
    seen = errno;
    if (waits) {
        error = tasks[me].error;
        value = tasks[me].value;
    }
    CHECK_EQ(result, error ? -1 : 0);
    if (error)
        CHECK_EQ(seen, error);
    else
        check_value(size, bytes, value);
}

/* What the model says of a select: the case, or -1; *error and *value are the case's. */
static int model_select(const int *which, const int *sends, const uint64_t *values, int n, int *error, uint64_t *value)
{
    unsigned start = tasks[current].selections++ % (unsigned)n;
    for (int i = 0; i < n; i++) {
        int at = (int)((start + (unsigned)i) % (unsigned)n);
        *error = which[at] < 0 ? EAGAIN
                 : sends[at]   ? model_send(&channels[which[at]], values[at])
                               : model_receive(&channels[which[at]], value);
        if (*error != EAGAIN)
            return at;
    }
    return -1;
}

static void choose(int me)
{
    aco_select_case_t cases[MOST_CASES] = {{0}};
    char bytes[MOST_CASES][BYTES];
    int which[MOST_CASES], sends[MOST_CASES], n = 1 + pick(MOST_CASES), polls = pick(4) == 0, chosen, wanted,
        error = 0, seen;
    uint64_t values[MOST_CASES], value = 0;
    size_t sizes[MOST_CASES] = {0};
    for (int i = 0; i < n; i++) {
        which[i] = i && pick(5) == 0 ? -1 : pick(CHANNELS); /* the first one is always something */
        sends[i] = pick(2);
        values[i] = draw(&draws);
        encode(bytes[i], values[i]);
        cases[i].channel = which[i] < 0 ? NULL : channels[which[i]].real;
        sizes[i] = which[i] < 0 ? 0 : channels[which[i]].size;
        cases[i].element = bytes[i];
        cases[i].operation = sends[i] ? ACO_SELECT_SEND : ACO_SELECT_RECEIVE;
    }
    wanted = model_select(which, sends, values, n, &error, &value);
    if (wanted < 0 && !polls && may_wait(me)) {
        for (int i = 0; i < n; i++)
            if (which[i] >= 0)
                push(sends[i] ? &channels[which[i]].senders : &channels[which[i]].receivers, me, i, values[i]);
        wait_for(ON_CHANNEL, which[0]);
    }
    chosen = polls ? aco_try_select(cases, n) : aco_select(cases, n);
    seen = errno;
    if (wanted < 0 && !polls) {
        wanted = tasks[me].which;
        error = tasks[me].error;
        value = tasks[me].value;
    }
    CHECK_EQ(chosen, wanted);
    if (wanted < 0 || chosen < 0) {
        CHECK_EQ(seen, polls ? EAGAIN : ECANCELED);
        return;
    }
    CHECK_EQ(cases[chosen].error, error);
    if (!sends[chosen] && !error)
        check_value(sizes[chosen], bytes[chosen], value);
}

/* Closes one, or puts a new one in place of a closed one that is empty. */
static void renew_channel(void)
{
    struct channel *c = &channels[pick(CHANNELS)];
    if (!c->closed) {
        c->closed = 1;
        while (c->senders.n)
            serve(c->senders.at[0], EPIPE, 0);
        while (c->receivers.n)
            serve(c->receivers.at[0], EPIPE, 0);
        CHECK_EQ(aco_channel_close(c->real), 0);
    } else {
        c->held.n = c->closed = 0;
        CHECK_EQ(aco_channel_destroy(c->real), 0);
        c->capacity = (size_t)pick(4);
        c->size = (size_t)(4 << pick(3));
        c->real = aco_channel_new(c->capacity, c->size);
    }
}

static void park(int me)
{
    tasks[me].error = 0;
    if (tasks[me].permit)
        tasks[me].permit = 0;
    else if (may_wait(me))
        wait_for(PARKED, 0);
    check_outcome(me, aco_park("the model"));
}

static void unpark(void)
{
    int task = pick(TASKS);
    if (tasks[task].state == FREE || tasks[task].state == ENDED)
        return;
    model_unpark(task);
    CHECK_EQ(aco_unpark(tasks[task].co), 0);
}

static void *body(void *arg);

static void spawn(int me)
{
    int task = 0, detached = pick(3) == 0;
    aco_options_t o = {0};
    while (task < TASKS && tasks[task].state != FREE)
        task++;
    if (task == TASKS)
        return;
    memset(&tasks[task], 0, sizeof tasks[task]);
    tasks[task].parent = detached || me == NOBODY ? NOBODY : me;
    tasks[task].joiner = NOBODY;
    tasks[task].selections = 0;
    wake(task);
    o.stack = stacks[task % 3];
    o.stack_size = pick(8) || o.stack ? 0 : 20000; /* not all of them from the pool */
    o.flags = (tasks[task].parent == NOBODY ? ACO_DETACHED : 0) | (pick(8) ? 0 : ACO_OWN_FP);
    o.name = pick(4) ? NULL : "model";
    tasks[task].co = aco_spawn(body, (void *)(intptr_t)task, &o);
    CHECK(tasks[task].co != NULL);
    spawned++;
}

static void join(int me)
{
    int task = pick(TASKS);
    void *result = NULL;
    if (tasks[task].state == FREE || tasks[task].parent != me || tasks[me].held)
        return;
    tasks[me].error = 0;
    if (tasks[task].state == ENDED) {
        tasks[task].state = FREE;
    } else if (may_wait(me)) {
        tasks[task].joiner = me;
        wait_for(JOINING, task);
    }
    if (check_outcome(me, aco_join(tasks[task].co, &result)))
        CHECK_EQ((intptr_t)result, task + 1);
}

static void begin_scope(int me)
{
    struct task *t = &tasks[me];
    int shields = pick(4) == 0;
    if (t->depth == SCOPES)
        return;
    t->scopes[t->depth].shields = shields;
    t->scopes[t->depth].ended = 0;
    CHECK_EQ(shields ? aco_shield_begin(&t->scopes[t->depth].real, ACO_FOREVER)
                     : aco_scope_begin(&t->scopes[t->depth].real, ACO_FOREVER), 0);
    t->depth++;
}

static void end_scope(int me)
{
    struct task *t = &tasks[me];
    CHECK_EQ(aco_check_cancelled(), has_ended(me) ? -1 : 0);
    if (!t->depth)
        return;
    t->depth--;
    CHECK_EQ(aco_scope_end(&t->scopes[t->depth].real), 0);
    CHECK_EQ(t->scopes[t->depth].real.error, t->scopes[t->depth].ended ? ECANCELED : 0);
}

/* Of any task's scopes one. Returns whether there was one. */
static int cancel(int task)
{
    int which;
    if (tasks[task].state == FREE || tasks[task].state == ENDED || !tasks[task].depth)
        return 0;
    which = pick(tasks[task].depth);
    model_cancel(task, which);
    CHECK_EQ(aco_scope_cancel(&tasks[task].scopes[which].real), 0);
    return 1;
}

static void end(int me)
{
    for (int i = 0; i < TASKS; i++) /* nobody else will join its children */
        if (tasks[i].state != FREE && tasks[i].parent == me) {
            CHECK_EQ(aco_detach(tasks[i].co), 0);
            tasks[i].parent = NOBODY;
            if (tasks[i].state == ENDED)
                tasks[i].state = FREE;
        }
    while (tasks[me].held)
        unlock(me);
    if (pick(2)) /* else it ends inside */
        while (tasks[me].depth)
            end_scope(me);
    tasks[me].depth = 0;
    tasks[me].state = tasks[me].parent == NOBODY || tasks[me].joiner != NOBODY ? FREE : ENDED;
    if (tasks[me].joiner != NOBODY)
        wake(tasks[me].joiner);
    next_runs();
}

static void operate(int me)
{
    int operation = pick(OPERATIONS);
    done[operation]++;
    switch (operation) {
    case 0: pass_turn(me); break;
    case 1: lock(me); break;
    case 2: case 3: unlock(me); break;
    case 4: wait_on_condition(me); break;
    case 5: signal_condition(); break;
    case 6: acquire(me); break;
    case 7: release(); break;
    case 8: use_group(me); break;
    case 9: send(me); break;
    case 10: receive(me); break;
    case 11: choose(me); break;
    case 12: if (pick(8) == 0) renew_channel(); else choose(me); break;
    case 13: if (pick(2)) park(me); else unpark(); break;
    case 14: spawn(me); break;
    case 15: join(me); break;
    case 16: case 17: begin_scope(me); break;
    case 18: end_scope(me); break;
    case 19: cancel(pick(TASKS)); break;
    }
}

static void *body(void *arg)
{
    int me = (int)(intptr_t)arg;
    int lifetime = 1 + pick(200);
    CHECK_EQ(current, me);
    while (left > 0 && lifetime-- > 0) {
        left--;
        scheduler_is_valid();
        operate(me);
        scheduler_is_valid();
        CHECK_EQ(current, me);
        CHECK(aco_get_co() == tasks[me].co);
        if (check_failures) {
            fprintf(stderr, "%ld operations were left\n", left);
            exit(1);
        }
    }
    end(me);
    return (void *)(intptr_t)(me + 1);
}

/* ---- From outside ---- */

static int resolve(int task)
{
    struct task *t = &tasks[task];
    char bytes[BYTES];
    uint64_t value = draw(&draws);
    struct channel *c;
    if (t->depth && !pick(3)) {
        int before = runnable.n;
        cancel(task);
        if (runnable.n > before)
            return 1;
    }
    switch (t->state) {
    case PARKED:
        model_unpark(task);
        CHECK_EQ(aco_unpark(t->co), 0);
        return 1;
    case ACQUIRING:
        model_release(t->object);
        aco_semaphore_release(&semaphores[t->object]);
        return 1;
    case ON_GROUP: {
        ptrdiff_t n = -(ptrdiff_t)counts[t->object];
        int g = t->object;
        model_add(g, n);
        CHECK_EQ(aco_wait_group_add(&groups[g], n), 0);
        return 1;
    }
    case ON_CONDITION:
        model_signal(t->object);
        aco_cond_signal(&conditions[t->object]);
        return 1;
    case ON_CHANNEL:
        c = &channels[t->object];
        encode(bytes, value);
        if (c->receivers.n)
            CHECK_EQ(aco_channel_try_send(c->real, bytes), model_send(c, value) ? -1 : 0);
        else
            CHECK_EQ(aco_channel_try_receive(c->real, bytes), model_receive(c, &value) ? -1 : 0);
        return 1;
    default:
        return 0;
    }
}

static void resolve_deadlock(void)
{
    int start = pick(TASKS);
    CHECK_EQ(errno, EDEADLK);
    CHECK_EQ(current, NOBODY);
    deadlocks++;
    for (int i = 0; i < TASKS; i++)
        if (resolve((start + i) % TASKS)) {
            next_runs();
            return;
        }
    fprintf(stderr, "a deadlock that cannot be resolved\n");
    exit(1);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long operations = argc > 2 ? atol(argv[2]) : 200000;
    for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 0); i++)
        stacks[i] = stacks[2 - i] = aco_share_stack_new(0);
    messages = fdopen(dup(STDERR_FILENO), "w");
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    printf("seed %" PRIu64 ", %ld operations\n", seed, operations);
    fflush(stdout);
    draws.state = seed;
    left = operations;
    memset(owner, 0xff, sizeof owner);
    for (int i = 0; i < CHANNELS; i++) {
        channels[i].capacity = (size_t)i;
        channels[i].size = i % 2 ? 4 : sizeof(void *);
        channels[i].real = aco_channel_new(channels[i].capacity, channels[i].size);
    }
    while (left > 0 || runnable.n) {
        if (current == NOBODY) { /* all have ended */
            for (int i = 0; i < TASKS / 2; i++)
                spawn(NOBODY);
            next_runs();
        }
        while (aco_run() != 0)
            scheduler_is_valid(), resolve_deadlock(), scheduler_is_valid();
        CHECK_EQ(current, NOBODY);
    }
    printf("%ld tasks, %ld deadlocks\n", spawned, deadlocks);
    for (int i = 0; i < OPERATIONS; i++)
        CHECK(done[i] > operations / (2 * OPERATIONS + 8));
    CHECK(interrupted > operations / 1000 && refused > operations / 1000);
    CHECK(deadlocks > 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(tasks[i].state, FREE);
    return check_result("scheduler_model");
}
