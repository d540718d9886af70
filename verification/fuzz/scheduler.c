/* Programs of tasks against what aco/scheduler.h promises. The input's bytes are what tasks do with mutexes,
 * conditions, semaphores, wait groups, channels, selections, timers, scopes, groups, each other, coroutines that are no
 * tasks, and another thread, until all have ended; at a deadlock the root context helps. This program checks the
 * promises: a mutex has one owner, the task that waited first; no unit and no value is lost or comes twice; no task
 * sleeps too short or times out too early; results reach the joiner; a group ends after its members, and has their
 * results; aco_run() sees a deadlock only when all tasks wait. (tests/scheduler_model.c predicts the order of
 * everything, without time.)
 *
 * The input controls time (own_clock.h). */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/group.h"
#define FUZZ_NAME "scheduler"
#include "fuzz.h"
#include "own_clock.h"
#include "../../tests/valid.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

enum { TASKS = 10, MAIN = -1, MUTEXES = 2, CONDITIONS = 2, SEMAPHORES = 2, GROUPS = 2, CHANNELS = 3, CASES = 4,
       VALUES = 4096, DEPTH = 4, MOST_RUNS = 2000, TEAMS = 3,
       MEMBERS = 5, MEMBER = -2 };

/* ---- The clock, and what the library prints ---- */

static int wakes_early; /* the next sleep ends before its time, as by a signal */

uint32_t aco__os_milliseconds(void)
{
    return (uint32_t)(clock_ns / 1000000);
}

void aco__os_sleep_until(int64_t then)
{
    if (then > clock_ns)
        clock_ns += wakes_early && then - clock_ns > 1 ? (then - clock_ns) / 2 : then - clock_ns;
    wakes_early = 0;
}

static void nothing_goes_on(void);

/* Of an open scheduler. */
void aco__os_wait(uint32_t *word, uint32_t value, int64_t then)
{
    if (*word != value)
        return;
    if (then < 0)
        nothing_goes_on();
    else
        aco__os_sleep_until(then);
}

void aco__os_wake(uint32_t *word)
{
    (void)word;
}

/* Linked with --wrap=write: reports of deadlocks, of which there are thousands, are not printed. */
static int is_muted;
ssize_t __real_write(int file, const void *text, size_t sz);
ssize_t __wrap_write(int file, const void *text, size_t sz);
ssize_t __wrap_write(int file, const void *text, size_t sz)
{
    return is_muted && memmem(text, sz, "aco_run: ", 9) ? (ssize_t)sz : __real_write(file, text, sz);
}

/* ---- The model ---- */

typedef enum waits {
    NOT, TIMED, PARKED, JOINING, LOCKING, ON_CONDITION, ACQUIRING, ON_GROUP, ON_CHANNEL, ON_TEAM
} waits_t;

static struct task {
    aco_t *co;
    int is_live, is_detached, is_joined, unparked, permit, depth, helper_runs;
    int from_afar; /* the other thread has unparked it: when that arrives is not known */
    int joins; /* JOINING: whom */
    waits_t waits;
    void *result;
    aco_t *helper; /* a coroutine that is no task */
} tasks[TASKS];

typedef struct order {
    int task[TASKS], n;
} order_t;

static struct channel {
    aco_channel_t *real;
    size_t size;
    int closed, number;
} channels[CHANNELS];

static aco_mutex_t mutexes[MUTEXES];
static aco_cond_t conditions[CONDITIONS];
static aco_semaphore_t semaphores[SEMAPHORES];
static aco_wait_group_t groups[GROUPS];
static int inside[MUTEXES]; /* the task that has it */
static order_t lockers[MUTEXES], acquirers[SEMAPHORES];
static long grants[CONDITIONS], acquired[SEMAPHORES], released[SEMAPHORES], zeros[GROUPS];
static int running = MAIN, hook_calls;
static int channels_made;
static struct {
    int channel; /* its number */
    enum { OFFERED, RECEIVED, WITHDRAWN } state;
} values[VALUES];
static int values_n;

static int fuzz_actor(void)
{
    return running;
}

__attribute__((format(printf, 1, 2))) OUTLINE void trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%6" PRId64 " %2d: ", clock_ns, running);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

static void enters(order_t *order, int me)
{
    order->task[order->n++] = me;
}

static void is_first(order_t *order, int me)
{
    EXPECT(order->n > 0 && order->task[0] == me);
    memmove(order->task, order->task + 1, (size_t)--order->n * sizeof *order->task);
}

/* Around what may let others run. */
static void stops(int me, waits_t waits)
{
    tasks[me].waits = waits;
    running = MAIN;
}

static void goes_on(int me)
{
    const aco_t *co = tasks[me].helper_runs ? tasks[me].helper : tasks[me].co;
    running = me;
    EXPECT(aco_get_co() == co && aco_state(co) == ACO_STATE_RUNNING);
    tasks[me].waits = NOT;
}

/* A call that may wait: `result` gets what it returns, errno is kept. */
#define WAITING(me, how, result, call)                                                                                 \
    do {                                                                                                               \
        stops(me, how);                                                                                                \
        errno = 0;                                                                                                     \
        (result) = (call);                                                                                             \
        int kept = errno;                                                                                              \
        goes_on(me);                                                                                                   \
        errno = kept;                                                                                                  \
    } while (0)

static int64_t a_time(void)
{
    unsigned byte = next();
    return (int64_t)(byte & 63) << (byte >> 6) * 6;
}

/* `limit` less than 0: none. */
static int64_t deadline_in(int64_t limit)
{
    return limit < 0 ? ACO_FOREVER : aco_after(limit);
}

/* ---- Elements of channels ---- */

static const size_t sizes[] = {4, 8, 40, 0};
typedef struct element {
    int value[10];
} element_t;

static element_t offer(const struct channel *c)
{
    element_t e;
    int v = values_n < VALUES ? values_n++ : VALUES - 1;
    values[v].channel = c->number;
    values[v].state = OFFERED;
    for (int i = 0; i < 10; i++)
        e.value[i] = v;
    return e;
}

static void sent(const element_t *e, int was_sent)
{
    if (e->value[0] < VALUES - 1 && !was_sent) {
        EXPECT(values[e->value[0]].state == OFFERED);
        values[e->value[0]].state = WITHDRAWN;
    }
}

static void received(const element_t *e, int channel, size_t size)
{
    int v = e->value[0];
    if (!size) /* nobody can tell which */
        return;
    EXPECT(v >= 0 && v < values_n && values[v].channel == channel);
    for (size_t i = 0; i < size / sizeof(int); i++)
        EXPECT(e->value[i] == v);
    EXPECT(v == VALUES - 1 || values[v].state == OFFERED);
    values[v].state = v == VALUES - 1 ? OFFERED : RECEIVED;
}

/* ---- Tasks ---- */

static void interpret(int me);

static void deferred(void *arg)
{
    int k = (int)((struct task *)arg - tasks);
    EXPECT(aco_get_co() == tasks[k].co);
    errno = 0;
    EXPECT(aco_task_yield() == -1 && errno == EPERM);
    aco_semaphore_release(&semaphores[0]);
    released[0]++;
}

static void ends(int me)
{
    struct task *t = &tasks[me];
    for (int m = 0; m < MUTEXES; m++)
        if (inside[m] == me) {
            inside[m] = MAIN;
            EXPECT_INT(aco_mutex_unlock, (&mutexes[m]), 0);
        }
    if (t->helper) {
        EXPECT_INT(aco_cancel, (t->helper), 0);
        aco_destroy(t->helper);
    }
    t->helper = NULL;
    t->is_live = 0;
    t->waits = NOT;
    running = MAIN;
    TRACE("task %d ends", me);
}

static void *body(void *arg)
{
    int me = (int)((struct task *)arg - tasks);
    goes_on(me);
    tasks[me].depth = 0;
    interpret(me);
    tasks[me].result = next() & 1 ? arg : &tasks[me].result;
    ends(me);
    return tasks[me].result;
}

OUTLINE void op_spawn(int me)
{
    int k = (int)(next() % TASKS);
    unsigned how = next();
    aco_options_t o;
    (void)me;
    if (tasks[k].co && (tasks[k].is_live || !tasks[k].is_detached))
        return;
    memset(&o, 0, sizeof o);
    memset(&tasks[k], 0, sizeof tasks[k]);
    o.flags = (how & 1 ? ACO_DETACHED : 0) | ((how & 14) == 2 ? ACO_OWN_FP : 0) |
              ((how & 112) == 16 ? ACO_NO_GUARD : 0);
    o.stack_size = UNDER_ASAN ? 256 << 10 : how & 128 ? 128 << 10 : 0;
    o.name = how & 64 ? "fuzz" : NULL;
    tasks[k].is_detached = how & 1;
    tasks[k].is_live = 1;
    tasks[k].co = aco_spawn(body, &tasks[k], how == 0 ? NULL : &o);
    TRACE("spawn %d", k);
    EXPECT(tasks[k].co && aco_state(tasks[k].co) == ACO_STATE_READY);
}

/* Nothing could end the wait of tasks that join each other, or that wait for a mutex while its owner waits for them. So
 * tasks lock in one order, and join with none locked. */
static int joins_in_the_end(int k, int me)
{
    while (tasks[k].is_live && tasks[k].waits == JOINING && k != me)
        k = tasks[k].joins;
    return k == me;
}

static int has_from(int me, int m)
{
    while (m < MUTEXES && inside[m] != me)
        m++;
    return m < MUTEXES;
}

OUTLINE void op_join(int me)
{
    int k = (int)(next() % TASKS), got;
    struct task *t = &tasks[k];
    void *result = NULL;
    if (!t->co || (!t->is_live && t->is_detached) || (t->is_live && t->is_joined && k == me))
        return;
    TRACE("join %d", k);
    if (t->is_live && (t->is_detached || t->is_joined || k == me || me == MAIN)) {
        int error = t->is_detached ? EINVAL : t->is_joined ? EBUSY : me == MAIN ? EPERM : EDEADLK;
        errno = 0;
        EXPECT(aco_join(t->co, &result) == -1 && errno == error);
        return;
    }
    if (!t->is_live && t->is_joined) /* its joiner has not had its turn */
        return;
    if (me != MAIN && (joins_in_the_end(k, me) || has_from(me, 0)))
        return;
    t->is_joined = 1;
    if (me != MAIN)
        tasks[me].joins = k;
    if (me == MAIN)
        got = aco_join(t->co, &result);
    else
        WAITING(me, JOINING, got, aco_join(t->co, &result));
    EXPECT(got == 0 && !t->is_live && result == t->result);
    t->co = NULL;
}

OUTLINE void op_detach(void)
{
    int k = (int)(next() % TASKS);
    struct task *t = &tasks[k];
    if (!t->co || (!t->is_live && (t->is_detached || t->is_joined)))
        return;
    EXPECT_INT(aco_detach, (t->co), t->is_detached ? EINVAL : t->is_joined ? EBUSY : 0);
    if (!t->is_joined)
        t->is_detached = 1;
    if (!t->is_live)
        t->co = NULL;
}

static void *plain(void *arg)
{
    return arg;
}

/* A task that has ended is destroyed or restarted: what runs on its block then is no task. */
OUTLINE void op_afterlife(void)
{
    struct task *t = &tasks[next() % TASKS];
    unsigned how = next();
    aco_t *co = t->co;
    if (!co || t->is_live || t->is_detached || t->is_joined)
        return;
    t->co = NULL;
    if (how & 1) {
        EXPECT_INT(aco_restart, (co, plain, t), 0);
    } else {
        aco_destroy(co);
        co = aco_new(plain, t, NULL);
        EXPECT(co);
    }
    EXPECT(aco_send(co, NULL) == t);
    EXPECT_INT(aco_join, (co, NULL), EINVAL);
    EXPECT_INT(aco_detach, (co), EINVAL);
    EXPECT_INT(aco_unpark, (co), EINVAL);
    aco_destroy(co);
}

static void was_unparked(int me)
{
    int *why = tasks[me].permit ? &tasks[me].permit : &tasks[me].unparked;
    EXPECT(*why || tasks[me].from_afar);
    *why = 0;
}

OUTLINE void op_park(int me)
{
    int got;
    WAITING(me, PARKED, got, aco_park("the fuzzer"));
    EXPECT(got == 0);
    was_unparked(me);
}

OUTLINE void unpark(int k)
{
    if (!tasks[k].co || !tasks[k].is_live)
        return;
    EXPECT_INT(aco_unpark, (tasks[k].co), 0);
    *(tasks[k].waits == PARKED && !tasks[k].unparked ? &tasks[k].unparked : &tasks[k].permit) = 1;
}

OUTLINE void op_sleep(int me)
{
    int64_t ns = a_time() - 1, begun = clock_ns;
    int got;
    wakes_early = (int)(next() & 1);
    WAITING(me, TIMED, got, aco_sleep(ns));
    EXPECT(got == 0 && clock_ns >= begun + ns);
}

/* A wait in two scopes with deadlines: it ends by itself, or at the earlier one, and the next wait fails too. Sometimes
 * the inner one is a shield. */
OUTLINE void op_scope(int me, unsigned how)
{
    aco_scope_t outer, inner;
    int64_t begun = clock_ns, limits[2], first, ns = a_time();
    int got, failed, shields = (how & 24) == 24, g = (int)(how >> 2) % GROUPS;
    long was = zeros[g];
    limits[0] = a_time();
    limits[1] = a_time();
    first = shields || limits[1] < limits[0] ? limits[1] : limits[0];
    EXPECT_INT(aco_scope_begin, (&outer, begun + limits[0]), 0);
    EXPECT((shields ? aco_shield_begin(&inner, begun + limits[1]) : aco_scope_begin(&inner, begun + limits[1])) == 0);
    EXPECT(aco_deadline() == begun + first);
    switch (how % 3) {
    case 0:
        WAITING(me, TIMED, got, aco_sleep(ns));
        EXPECT(got != 0 || clock_ns >= begun + ns);
        break;
    case 1:
        WAITING(me, PARKED, got, aco_park("the fuzzer, in a scope"));
        if (got == 0) {
            was_unparked(me);
        } else if (tasks[me].unparked) { /* after it had failed, before it ran */
            tasks[me].unparked = 0;
            tasks[me].permit = 1;
        }
        break;
    default:
        was = groups[g].count == 0 ? -1 : was;
        WAITING(me, ON_GROUP, got, aco_wait_group_wait(&groups[g]));
        EXPECT(got != 0 || was < zeros[g]);
    }
    failed = got != 0;
    EXPECT(!failed || (got == -1 && errno == ETIMEDOUT && clock_ns >= begun + first));
    EXPECT((aco_scope_ended_by(&inner) != NULL) >= failed);
    errno = 0;
    if (failed)
        EXPECT(aco_sleep(1) == -1 && errno == ETIMEDOUT);
    EXPECT_INT(aco_scope_end, (&inner), 0);
    EXPECT_INT(aco_scope_end, (&outer), 0);
    EXPECT(!inner.error || clock_ns >= begun + limits[1]);
    EXPECT(!outer.error || clock_ns >= begun + limits[0]);
    EXPECT(aco_check_cancelled() == 0);
}

/* ---- Groups ---- */

static struct team {
    aco_group_t *group; /* NULL: none now */
    int begun, ended, is_cancelled, first_error;
    int64_t deadline;
    void *first_result;
    struct member {
        struct team *team;
        unsigned how;
        int64_t ns;
        void *result;
    } members[MEMBERS];
} teams[TEAMS];

/* A member of a group waits for something, which may end early with the group, and succeeds or fails. */
static void *member(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    int64_t begun = clock_ns;
    int got = 0, error;
    if (m->how & 3)
        running = MAIN;
    switch (m->how & 3) {
    case 0: break;
    case 1: got = aco_sleep(m->ns); break;
    case 2: got = aco_park("a member"); break;
    default: got = aco_wait_group_wait(&groups[0]); break;
    }
    error = errno;
    running = MEMBER;
    EXPECT(aco_get_co() == aco_current_task());
    if (got != 0) { /* the group has ended, and each later wait says so too */
        const aco_scope_t *by = aco_scope_ended_by(&t->group->scope);
        EXPECT(got == -1 && by && error == by->error && (error == ECANCELED || clock_ns >= t->deadline));
        EXPECT(aco_sleep(1) == -1 && errno == error && aco_check_cancelled() == -1);
    } else {
        EXPECT((m->how & 3) != 2); /* nobody unparks it */
        EXPECT((m->how & 3) != 1 || clock_ns >= begun + m->ns);
    }
    t->ended++;
    m->result = got != 0 || m->how & 4 ? ACO_ERROR : m;
    if (m->result == ACO_ERROR && !t->first_error)
        t->first_error = got != 0 ? error : EIO;
    else if (m->result != ACO_ERROR && !t->first_result)
        t->first_result = m;
    errno = got != 0 ? error : EIO;
    running = MAIN;
    return m->result;
}

static void check_team(const struct team *t, const aco_group_t *group, int got, int error)
{
    size_t failed = 0;
    int ends;
    for (int i = 0; i < t->begun; i++)
        failed += t->members[i].result == ACO_ERROR;
    EXPECT(t->ended == t->begun && group->running == 0);
    EXPECT(group->failed == failed && group->succeeded == (size_t)t->begun - failed);
    EXPECT(group->error == t->first_error && group->result == t->first_result);
    EXPECT(got == (failed && !(group->policy == ACO_FIRST_SUCCESS && group->succeeded) ? -1 : 0));
    EXPECT(got == 0 || error == t->first_error);
    ends = group->policy == ACO_CANCEL_ON_FAILURE ? failed != 0 : group->policy == ACO_FIRST_SUCCESS &&
                                                                     group->succeeded;
    EXPECT(group->scope.error == 0 || (group->scope.error == ECANCELED && (t->is_cancelled || ends)));
    EXPECT(!ends || aco_scope_ended_by(&group->scope));
}

/* A group in a scope with a deadline. Other tasks, the root context and the other thread may cancel it. */
OUTLINE void op_team(int me, unsigned how)
{
    struct team *t = teams;
    aco_group_t group;
    aco_scope_t around;
    int got, n = 1 + (int)(how >> 5) % MEMBERS, error;
    while (t < teams + TEAMS && t->group)
        t++;
    if (t == teams + TEAMS)
        return;
    memset(t, 0, sizeof *t);
    t->deadline = clock_ns + a_time();
    EXPECT_INT(aco_scope_begin, (&around, how & 16 ? t->deadline : ACO_FOREVER), 0);
    EXPECT_INT(aco_group_begin, (&group, (aco_group_policy_t)(how % 3)), 0);
    t->group = &group;
    group.limit = how >> 2 & 3;
    for (int i = 0; i < n; i++) {
        struct member *m = &t->members[t->begun];
        aco_t *co;
        m->team = t;
        m->how = next();
        m->ns = a_time();
        stops(me, ON_TEAM);
        errno = 0;
        co = aco_group_spawn_result(&group, member, m, &m->result, NULL);
        error = errno;
        goes_on(me);
        t->begun += co != NULL;
        EXPECT(co || (aco_scope_ended_by(&group.scope) && error == aco_scope_ended_by(&group.scope)->error));
        EXPECT(!group.limit || group.running <= group.limit);
    }
    if (next() & 1) {
        t->is_cancelled = 1;
        EXPECT_INT(aco_scope_cancel, (&group.scope), 0);
    }
    WAITING(me, ON_TEAM, got, aco_group_end(&group));
    error = errno;
    check_team(t, &group, got, error);
    t->group = NULL;
    EXPECT_INT(aco_scope_end, (&around), 0);
}

static void cancel_team(struct team *t)
{
    if (!t->group)
        return;
    t->is_cancelled = 1;
    EXPECT_INT(aco_scope_cancel, (&t->group->scope), 0);
    EXPECT(aco_scope_ended_by(&t->group->scope));
}

/* ---- Another thread ---- */

static aco_scheduler_t *scheduler; /* NULL: it is not open */
static int posted, calls_made;

static void call(void *task)
{
    EXPECT(running == MAIN && !aco_get_co());
    calls_made++;
    unpark((int)((struct task *)task - tasks));
}

static void call_from_afar(void *task)
{
    EXPECT(aco_post(scheduler, call, task) == 0);
}

static void unpark_from_afar(void *task)
{
    EXPECT(aco_unpark(((struct task *)task)->co) == 0);
}

static void cancel_from_afar(void *team)
{
    EXPECT(aco_scope_cancel(&((struct team *)team)->group->scope) == 0);
}

static struct errand {
    void (*what)(void *arg);
    void *arg;
} errand;

static void *runs_errand(void *unused)
{
    errand.what(errand.arg);
    return unused;
}

/* Has another thread do something; returns when it has. */
static void from_afar(void (*what)(void *arg), void *arg)
{
    pthread_t thread;
    errand.what = what;
    errand.arg = arg;
    EXPECT(pthread_create(&thread, NULL, runs_errand, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

OUTLINE void op_from_afar(unsigned how)
{
    struct task *t = &tasks[how / 4 % TASKS];
    struct team *team = &teams[how / 4 % TEAMS];
    if (!scheduler)
        return;
    if (how % 4 == 0) {
        posted++;
        from_afar(call_from_afar, t);
    } else if (how % 4 == 1 && team->group) {
        team->is_cancelled = 1;
        from_afar(cancel_from_afar, team);
    } else if (how % 4 > 1 && t->co && t->is_live) {
        t->from_afar = 1;
        from_afar(unpark_from_afar, t);
    }
}

/* ---- Mutexes and conditions ---- */

OUTLINE void op_mutex(int me, unsigned how)
{
    int m = (int)(how % MUTEXES), got;
    aco_mutex_t *mutex = &mutexes[m];
    TRACE("mutex %d", m);
    if (how & 4 && inside[m] == me) {
        inside[m] = MAIN;
        EXPECT_INT(aco_mutex_unlock, (mutex), 0);
    } else if (how & 4) {
        EXPECT_INT(aco_mutex_unlock, (mutex), EPERM);
    } else if (how & 8) {
        int is_free = !mutex->owner;
        errno = 0;
        got = aco_mutex_try_lock(mutex);
        EXPECT(is_free ? got == 0 : got == -1 && errno == EBUSY); /* also to the one that has it */
        if (is_free)
            inside[m] = me;
    } else if (inside[m] == me) {
        errno = 0;
        EXPECT(aco_mutex_lock(mutex) == -1 && errno == EDEADLK);
    } else if (!has_from(me, m)) {
        int waits = mutex->owner != NULL;
        if (waits)
            enters(&lockers[m], me);
        WAITING(me, LOCKING, got, aco_mutex_lock(mutex));
        if (waits)
            is_first(&lockers[m], me);
        EXPECT(got == 0 && inside[m] == MAIN && mutex->owner == tasks[me].co);
        inside[m] = me;
    }
}

OUTLINE void op_wait(int me, unsigned how)
{
    int c = (int)(how % CONDITIONS), m = (int)(how / CONDITIONS % MUTEXES), got;
    int64_t limit = how & 8 ? a_time() : -1, begun = clock_ns;
    if (inside[m] != me) {
        errno = 0;
        EXPECT(aco_cond_wait_until(&conditions[c], &mutexes[m], deadline_in(limit)) == -1 && errno == EPERM);
        return;
    }
    /* Not modelled: a task that a signal wakes comes behind these. */
    if (has_from(me, m + 1) || lockers[m].n || mutexes[m].aco__waiters.first)
        return;
    inside[m] = MAIN;
    TRACE("wait for condition %d, %" PRId64 " ns", c, limit);
    WAITING(me, ON_CONDITION, got, aco_cond_wait_until(&conditions[c], &mutexes[m], deadline_in(limit)));
    EXPECT(mutexes[m].owner == tasks[me].co);
    for (int i = 0; i < lockers[m].n; i++) /* it stood among them */
        EXPECT(lockers[m].task[i] != me);
    inside[m] = me;
    if (got == 0) {
        EXPECT(grants[c]-- > 0);
    } else {
        EXPECT(errno == ETIMEDOUT && limit >= 0 && clock_ns >= begun + limit);
    }
}

OUTLINE void op_signal(unsigned how)
{
    int c = (int)(how % CONDITIONS);
    for (const aco__waiter_t *w = conditions[c].aco__waiters.first; w; w = how & 4 ? w->next : NULL)
        grants[c]++;
    if (how & 4)
        aco_cond_broadcast(&conditions[c]);
    else
        aco_cond_signal(&conditions[c]);
}

/* ---- Semaphores and wait groups ---- */

static void release(int s)
{
    aco_semaphore_release(&semaphores[s]);
    released[s]++;
}

OUTLINE void op_semaphore(int me, unsigned how)
{
    int s = (int)(how % SEMAPHORES), got;
    if (how & 4) {
        release(s);
        return;
    }
    if (how & 8) {
        int is_free = semaphores[s].value > 0;
        errno = 0;
        EXPECT((aco_semaphore_try_acquire(&semaphores[s]) == 0) == is_free && (is_free || errno == EAGAIN));
        acquired[s] += is_free;
        return;
    }
    {
        int waits = semaphores[s].value == 0;
        if (waits)
            enters(&acquirers[s], me);
        WAITING(me, ACQUIRING, got, aco_semaphore_acquire(&semaphores[s]));
        if (waits)
            is_first(&acquirers[s], me);
        EXPECT(got == 0 && ++acquired[s] <= released[s]);
    }
}

OUTLINE void op_group(int me, unsigned how)
{
    int g = (int)(how % GROUPS), got;
    ptrdiff_t n = (ptrdiff_t)(how >> 3 & 7) - 3;
    size_t before = groups[g].count;
    if (how & 4) {
        long was = zeros[g];
        WAITING(me, ON_GROUP, got, aco_wait_group_wait(&groups[g]));
        EXPECT(got == 0 && (before == 0 || zeros[g] > was));
    } else if (n < 0 && before < (size_t)-n) {
        errno = 0; /* the message of -1 names aco_wait_group_done() */
        EXPECT(aco_wait_group_add(&groups[g], n) == -1 && errno == ERANGE);
    } else {
        EXPECT_INT(aco_wait_group_add, (&groups[g], n), 0);
        EXPECT(groups[g].count == before + (size_t)n);
        zeros[g] += groups[g].count == 0;
    }
}

/* ---- Channels ---- */

OUTLINE void op_channel(int me, unsigned how)
{
    struct channel *c = &channels[how % CHANNELS];
    int got, number = c->number, tries = how & 64, waits = tries || me == MAIN ? NOT : ON_CHANNEL;
    size_t size = c->size;
    element_t e, *element = how & 128 ? NULL : &e;
    memset(&e, 0, sizeof e);
    if (!c->real) {
        c->size = sizes[how / 4 % 4];
        c->real = aco_channel_new(how / 16 % 4, c->size);
        c->closed = 0;
        c->number = ++channels_made;
        EXPECT(c->real);
    } else if (me == MAIN && !tries) {
        EXPECT_INT(aco_channel_close, (c->real), c->closed ? EPIPE : 0);
        c->closed = 1;
    } else if ((how & 32) && !element && size) {
        if (tries)
            EXPECT_INT(aco_channel_try_send, (c->real, NULL), EINVAL);
        else
            EXPECT_INT(aco_channel_send, (c->real, NULL), EINVAL);
    } else if (how & 32) {
        e = offer(c);
        if (tries) {
            errno = 0;
            got = aco_channel_try_send(c->real, element);
        } else {
            WAITING(me, (waits_t)waits, got, aco_channel_send(c->real, element));
        }
        EXPECT(got == 0 || errno == EPIPE || (tries && errno == EAGAIN));
        sent(&e, got == 0);
    } else {
        if (tries) {
            errno = 0;
            got = aco_channel_try_receive(c->real, element);
        } else {
            WAITING(me, (waits_t)waits, got, aco_channel_receive(c->real, element));
        }
        EXPECT(got == 0 || errno == EPIPE || (tries && errno == EAGAIN));
        if (got == 0 && element)
            received(&e, number, size);
    }
}

OUTLINE void op_channel_end(int me, unsigned how)
{
    struct channel *c = &channels[how % CHANNELS];
    int is_waited_for = 0;
    (void)me;
    if (!c->real)
        return;
    if (how & 4) {
        EXPECT_INT(aco_channel_close, (c->real), c->closed ? EPIPE : 0);
        c->closed = 1;
        return;
    }
    for (int k = 0; k < TASKS; k++)
        is_waited_for |= tasks[k].is_live && (tasks[k].waits == ON_CHANNEL || tasks[k].waits == TIMED);
    errno = 0;
    if (aco_channel_destroy(c->real) == 0)
        c->real = NULL;
    else
        EXPECT(errno == EBUSY && is_waited_for);
}

OUTLINE void op_select(int me)
{
    aco_select_case_t cases[CASES];
    element_t elements[CASES];
    struct channel then[CASES];
    int n = (int)(next() % (CASES + 1)), chosen, sends_nothing = 0;
    unsigned how = next();
    int64_t limit = how & 1 ? a_time() : how & 2 ? 0 : -1, begun = clock_ns;
    memset(cases, 0, sizeof cases);
    for (int i = 0; i < n; i++) {
        unsigned byte = next();
        struct channel *c = &channels[byte % CHANNELS];
        then[i] = *c;
        cases[i].channel = c->real;
        cases[i].element = byte & 128 ? NULL : &elements[i];
        cases[i].operation = byte & 16 ? ACO_SELECT_SEND : ACO_SELECT_RECEIVE;
        if (cases[i].operation == ACO_SELECT_SEND) {
            elements[i] = offer(c);
            sends_nothing |= c->real && c->size && !cases[i].element;
        }
    }
    for (int i = 0; i < n && limit < 0; i++)
        limit = cases[i].channel ? -2 : limit;
    if (limit == -1) /* no limit, and nothing to wait for */
        limit = 0;
    TRACE("select of %d, %" PRId64 " ns", n, limit);
    WAITING(me, limit >= 0 ? TIMED : ON_CHANNEL, chosen,
            limit == 0 ? aco_try_select(cases, n) : aco_select_until(cases, n, deadline_in(limit)));
    EXPECT((chosen == -1 && errno == EINVAL) == sends_nothing);
    EXPECT(chosen < n && (chosen >= 0 || sends_nothing || (limit == 0 && errno == EAGAIN) ||
                          (limit > 0 && errno == ETIMEDOUT && clock_ns >= begun + limit)));
    for (int i = 0; i < n; i++) {
        int done = i == chosen && cases[i].error == 0;
        EXPECT(i != chosen || done || (cases[i].error == EPIPE && then[i].real));
        if (cases[i].operation == ACO_SELECT_SEND)
            sent(&elements[i], done);
        else if (done && cases[i].element)
            received(&elements[i], then[i].number, then[i].size);
    }
}

/* ---- Coroutines of tasks that are no tasks ---- */

/* Its waits are its task's. */
static void *helper(void *arg)
{
    struct task *t = arg;
    int me = (int)(t - tasks);
    for (;;) {
        EXPECT(t->helper_runs && aco_get_co() == t->helper);
        stops(me, NOT);
        EXPECT(aco_task_yield() == 0);
        goes_on(me);
        op_sleep(me);
        EXPECT(aco_yield_value(arg) == &t->result);
    }
    return NULL;
}

OUTLINE void op_helper(int me)
{
    struct task *t = &tasks[me];
    aco_options_t o;
    memset(&o, 0, sizeof o);
    o.stack_size = UNDER_ASAN ? 256 << 10 : 0;
    if (!t->helper) {
        t->helper = aco_new(helper, t, &o);
        EXPECT(t->helper);
    }
    t->helper_runs = 1;
    EXPECT(aco_send(t->helper, aco_state(t->helper) == ACO_STATE_READY ? NULL : (void *)&t->result) == t);
    t->helper_runs = 0;
    if (next() % 4 == 0) {
        EXPECT_INT(aco_cancel, (t->helper), 0);
        aco_destroy(t->helper);
        t->helper = NULL;
    }
}

/* What is not for tasks. */
OUTLINE void op_fails(int me)
{
    int k = (int)(next() % TASKS);
    if (!tasks[k].co || !tasks[k].is_live || k == me)
        return;
    EXPECT_POINTER(aco_send, (tasks[k].co, NULL), EPERM);
    EXPECT_INT(aco_cancel, (tasks[k].co), EPERM);
    EXPECT_INT(aco_restart, (tasks[k].co, body, NULL), EPERM);
    if (me != MAIN) {
        EXPECT_INT(aco_yield_to, (tasks[k].co), EPERM);
        EXPECT_INT(aco_run, (), EPERM);
    }
}

/* ---- The interpreter ---- */

OUTLINE void deeper(int me)
{
    if (tasks[me].depth >= DEPTH)
        return;
    tasks[me].depth++;
    if (next() % 4 == 0)
        EXPECT_INT(aco_defer, (deferred, &tasks[me]), 0);
    interpret(me);
    tasks[me].depth--;
}

/* 0: the interpreter returns. */
static int operate(int me, unsigned op)
{
    unsigned how;
    switch (op % 32) {
    case 0: case 1: case 2: op_spawn(me); return 1;
    case 3: op_join(me); return 1;
    case 4: op_detach(); return 1;
    case 5: case 6: unpark((int)(next() % TASKS)); return 1;
    case 7: clock_ns += a_time(); return 1;
    case 8: op_signal(next()); return 1;
    case 9: release((int)(next() % SEMAPHORES)); return 1;
    case 10: op_fails(me); return 1;
    case 11: case 12: op_channel_end(me, next()); return 1;
    case 31: return 0;
    default: break;
    }
    if (me == MAIN) {
        if (op % 32 == 13)
            op_channel(me, next());
        if (op % 32 == 14)
            op_from_afar(next());
        return op % 32 < 20;
    }
    how = next();
    switch (op % 32) {
    case 13: case 14: case 15: case 16: op_channel(me, how); break;
    case 17: op_select(me); break;
    case 18: op_team(me, how); break;
    case 19: case 20: op_mutex(me, how); break;
    case 21: op_wait(me, how); break;
    case 22: op_semaphore(me, how); break;
    case 23: op_group(me, how); break;
    case 24: op_park(me); break;
    case 25: op_sleep(me); break;
    case 26: op_helper(me); break;
    case 27:
        if (how & 3)
            deeper(me);
        else if (how & 4)
            op_from_afar(next());
        else
            cancel_team(&teams[how / 8 % TEAMS]);
        break;
    case 29: op_afterlife(); break;
    case 30: op_scope(me, how); break;
    case 28:
        stops(me, NOT);
        aco_yield();
        goes_on(me);
        break;
    default:
        stops(me, NOT);
        EXPECT(aco_task_yield() == 0);
        goes_on(me);
    }
    return 1;
}

static void interpret(int me)
{
    while (!is_over() && operate(me, next()))
        scheduler_is_valid();
}

/* An event comes, or time goes by. */
static int on_idle(void *ctx, int64_t timeout_ns)
{
    (void)ctx;
    if (timeout_ns == 0)
        return 1;
    if (++hook_calls % 8 == 0)
        return 0;
    if (next() & 1)
        unpark((int)(next() % TASKS));
    clock_ns += timeout_ns > 0 ? timeout_ns : 0;
    return timeout_ns > 0;
}

/* All tasks wait, and nothing can end a wait by itself. Ends one of the waits. */
static void resolve(void)
{
    for (int k = 0; k < TASKS; k++)
        if (tasks[k].is_live)
            EXPECT(tasks[k].waits != NOT && tasks[k].waits != TIMED);
    for (int k = 0; k < TASKS; k++)
        unpark(k);
    for (int i = 0; i < TEAMS; i++)
        cancel_team(&teams[i]);
    for (int s = 0; s < SEMAPHORES; s++)
        release(s);
    for (int c = 0; c < CONDITIONS; c++)
        op_signal((unsigned)c | 4);
    for (int g = 0; g < GROUPS; g++)
        if (groups[g].count) {
            EXPECT_INT(aco_wait_group_add, (&groups[g], -(ptrdiff_t)groups[g].count), 0);
            zeros[g]++;
        }
    for (int i = 0; i < CHANNELS; i++)
        if (channels[i].real && !channels[i].closed) {
            EXPECT_INT(aco_channel_close, (channels[i].real), 0);
            channels[i].closed = 1;
        }
}

static void resolve_posted(void *unused)
{
    (void)unused;
    EXPECT(running == MAIN);
    resolve();
}

static void nothing_goes_on(void)
{
    EXPECT(aco_post(scheduler, resolve_posted, NULL) == 0);
}

static int visited(aco_t *co, void *arg)
{
    (void)co, (void)arg;
    return 1;
}

static void fuzz_input(void)
{
    int runs = 0, got;
    unsigned how = next();
    memset(tasks, 0, sizeof tasks);
    memset(mutexes, 0, sizeof mutexes);
    memset(conditions, 0, sizeof conditions);
    memset(semaphores, 0, sizeof semaphores);
    memset(groups, 0, sizeof groups);
    memset(lockers, 0, sizeof lockers);
    memset(acquirers, 0, sizeof acquirers);
    memset(grants, 0, sizeof grants);
    memset(acquired, 0, sizeof acquired);
    memset(released, 0, sizeof released);
    memset(zeros, 0, sizeof zeros);
    memset(teams, 0, sizeof teams);
    for (int m = 0; m < MUTEXES; m++)
        inside[m] = MAIN;
    values_n = hook_calls = wakes_early = 0;
    running = MAIN;
    is_muted = !tracing;
    EXPECT(aco_on_idle(how & 1 ? on_idle : NULL, NULL) == 0);
    scheduler = how & 2 ? aco_scheduler_open() : NULL;
    EXPECT(scheduler || !(how & 2));
    posted = calls_made = 0;
    do {
        interpret(MAIN);
        errno = 0;
        got = aco_run();
        EXPECT(running == MAIN && (got == 0 || errno == EDEADLK));
        TRACE("aco_run: %d", got);
        if (got != 0)
            resolve();
    } while ((!is_over() || got != 0) && ++runs < MOST_RUNS);
    EXPECT(runs < MOST_RUNS);
    EXPECT(calls_made == posted);
    if (scheduler)
        EXPECT(aco_scheduler_close() == 0);
    for (int k = 0; k < TASKS; k++)
        if (tasks[k].co && !tasks[k].is_live && !tasks[k].is_detached && !tasks[k].is_joined)
            EXPECT(aco_join(tasks[k].co, NULL) == 0);
    for (int s = 0; s < SEMAPHORES; s++)
        EXPECT(released[s] == acquired[s] + (long)semaphores[s].value);
    for (int c = 0; c < CONDITIONS; c++)
        EXPECT(grants[c] == 0);
    for (int i = 0; i < CHANNELS; i++) {
        if (channels[i].real)
            EXPECT_INT(aco_channel_destroy, (channels[i].real), 0);
        channels[i].real = NULL;
    }
    aco_on_idle(NULL, NULL);
    EXPECT(aco_each(visited, NULL) == 0);
}
