/* Random tasks, on stacks of their own and on a share stack, with all kinds of waits, scopes, groups and inner
 * coroutines at once, in many orders. Promises: a lock has one holder, what was sent arrives once, nothing waits longer
 * than its deadline, and everything ends. With invariants the scheduler's state is compared before each turn.
 *
 * sim_mix [option of aco_sim_main()]... */
#include <aco/group.h>
#include <aco/sim.h>
#include <aco/sync.h>

#include <errno.h>
#include <string.h>

enum { TASKS = 8, STEPS = 12, DEEP = 3, PERMITS = 2 };

static aco_sim_t *sim; /* the run */
static aco_share_stack_t *stack;

/* What the tasks share; zeros at first, but for some. */
static struct {
    aco_mutex_t mutex, cond_mutex;
    aco_cond_t cond;
    aco_rwlock_t rwlock;
    aco_semaphore_t semaphore;
    aco_event_t event;
    aco_barrier_t barrier;
    aco_channel_t *channels[2];
    aco_t *tasks[TASKS];        /* NULL: it has ended */
    aco_scope_t *scopes[TASKS]; /* of a task on a stack of its own, which others may cancel; or NULL */
    int holders, readers, writers, permits, sent, received;
} all;

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

static int below(int limit)
{
    return (int)aco_sim_random(sim, (uint64_t)limit);
}

static int64_t soon(void)
{
    return below(4) ? aco_after(below(6)) : aco_after(1000);
}

/* Whether the call has succeeded; else it has failed as a wait may. */
static int done(int result)
{
    MUST(result >= 0 || errno == ETIMEDOUT || errno == ECANCELED);
    return result >= 0;
}

static void pause_at_random(void)
{
    int chance = below(4);
    if (chance == 0)
        (void)done(aco_sleep(below(4)));
    else if (chance == 1)
        MUST(aco_task_yield() == 0);
}

static void do_something(int number, int depth);

/* ---- Locks ---- */

static void lock(void)
{
    if (!done(aco_mutex_lock_until(&all.mutex, soon())))
        return;
    MUST(all.holders++ == 0);
    pause_at_random();
    all.holders--;
    MUST(aco_mutex_unlock(&all.mutex) == 0);
}

static void lock_for_reading(void)
{
    if (!done(aco_rwlock_rdlock_until(&all.rwlock, soon())))
        return;
    MUST(all.writers == 0);
    all.readers++;
    pause_at_random();
    all.readers--;
    MUST(aco_rwlock_unlock(&all.rwlock) == 0);
}

static void lock_for_writing(void)
{
    if (!done(aco_rwlock_wrlock_until(&all.rwlock, soon())))
        return;
    MUST(all.writers++ == 0 && all.readers == 0);
    pause_at_random();
    all.writers--;
    MUST(aco_rwlock_unlock(&all.rwlock) == 0);
}

static void take_permit(void)
{
    if (!done(aco_semaphore_acquire_until(&all.semaphore, soon())))
        return;
    MUST(++all.permits <= PERMITS);
    pause_at_random();
    all.permits--;
    aco_semaphore_release(&all.semaphore);
}

static void wait_for_condition(void)
{
    if (!done(aco_mutex_lock_until(&all.cond_mutex, soon())))
        return;
    (void)done(aco_cond_wait_until(&all.cond, &all.cond_mutex, soon()));
    MUST(all.cond_mutex.owner == aco_current_task());
    pause_at_random();
    MUST(aco_mutex_unlock(&all.cond_mutex) == 0);
}

static void signal_condition(void)
{
    if (below(2))
        aco_cond_signal(&all.cond);
    else
        aco_cond_broadcast(&all.cond);
}

/* ---- Channels ---- */

static void send(void)
{
    int value = below(100);
    if (done(aco_channel_send_until(all.channels[below(2)], &value, soon())))
        all.sent += value + 1;
}

static void receive(void)
{
    int value = -1;
    if (done(aco_channel_receive_until(all.channels[below(2)], &value, soon())))
        all.received += value + 1;
    else
        MUST(value == -1);
}

static void select_one(void)
{
    int value = below(100), got = -1, first = below(2), chosen;
    aco_select_case_t cases[2] = {{0}, {0}};
    cases[0].channel = all.channels[first];
    cases[0].element = &value;
    cases[0].operation = ACO_SELECT_SEND;
    cases[1].channel = all.channels[!first];
    cases[1].element = &got;
    cases[1].operation = ACO_SELECT_RECEIVE;
    chosen = aco_select_until(cases, 2, soon());
    if (!done(chosen))
        return;
    MUST((chosen == 1) == (got >= 0));
    all.sent += chosen == 0 ? value + 1 : 0;
    all.received += chosen == 1 ? got + 1 : 0;
}

/* ---- Others ---- */

static void meet(void)
{
    (void)done(aco_barrier_wait_until(&all.barrier, soon()));
}

static void wait_for_event(void)
{
    (void)done(aco_event_wait_until(&all.event, soon()));
}

static void change_event(void)
{
    if (below(2))
        aco_event_set(&all.event);
    else
        aco_event_reset(&all.event);
}

static void park(void)
{
    (void)done(aco_park_until("a random unpark", soon()));
}

static void unpark(void)
{
    aco_t *task = all.tasks[below(TASKS)];
    if (task)
        MUST(aco_unpark(task) == 0);
}

static void name_one(void)
{
    aco_t *task = all.tasks[below(TASKS)];
    if (task)
        MUST(aco_set_name(task, "a name") == 0);
}

static void cancel_one(void)
{
    aco_scope_t *scope = all.scopes[below(TASKS)];
    const aco_scope_t *ended_by = scope ? aco_scope_ended_by(scope) : NULL;
    int error = scope ? scope->error : 0;
    if (!scope)
        return;
    MUST(aco_scope_cancel(scope) == 0);
    MUST(ended_by ? aco_scope_ended_by(scope) == ended_by && scope->error == error : scope->error == ECANCELED);
}

static int is_on_share_stack(int number)
{
    return number < TASKS && number % 2;
}

static void enter_scope(int number, int depth)
{
    aco_scope_t scope, *before = number < TASKS ? all.scopes[number] : NULL;
    int is_shield = below(4) == 0;
    MUST((is_shield ? aco_shield_begin(&scope, soon()) : aco_scope_begin(&scope, soon())) == 0);
    if (number < TASKS && !is_on_share_stack(number))
        all.scopes[number] = &scope;
    do_something(number, depth + 1);
    if (number < TASKS)
        all.scopes[number] = before;
    MUST(aco_scope_end(&scope) == 0);
}

static void *be_member(void *depth)
{
    do_something(TASKS, (int)(intptr_t)depth);
    return below(3) ? NULL : ACO_ERROR;
}

static void begin_group(int number, int depth)
{
    static const aco_group_policy_t policies[] = {ACO_CANCEL_ON_FAILURE, ACO_KEEP_GOING, ACO_FIRST_SUCCESS};
    aco_group_t group;
    MUST(aco_group_begin(&group, policies[below(3)]) == 0);
    group.limit = (size_t)below(3);
    for (int i = 0; i < 3; i++)
        (void)done(aco_group_spawn(&group, be_member, (void *)(intptr_t)(depth + 1), NULL) ? 0 : -1);
    do_something(number, depth + 1);
    (void)aco_group_end(&group);
    MUST(!group.running);
}

static void *be_inner(void *number_and_depth)
{
    int both = (int)(intptr_t)number_and_depth;
    do_something(both / (DEEP + 1), both % (DEEP + 1));
    return NULL;
}

static void run_inner(int number, int depth)
{
    aco_t *co = aco_new(be_inner, (void *)(intptr_t)(number * (DEEP + 1) + depth + 1), NULL);
    MUST(co && aco_send(co, NULL) == NULL && aco_state(co) == ACO_STATE_DONE);
    aco_destroy(co);
}

static void do_something(int number, int depth)
{
    static void (*const simple[])(void) = {
        lock, lock_for_reading, lock_for_writing, take_permit, wait_for_condition, signal_condition, send, receive,
        select_one, meet, wait_for_event, change_event, park, unpark, name_one, cancel_one, pause_at_random};
    enum { SIMPLE = sizeof simple / sizeof *simple };
    int what = below(SIMPLE + 6);
    if (what < SIMPLE || depth >= DEEP)
        simple[what % SIMPLE]();
    else if (what < SIMPLE + 3)
        enter_scope(number, depth);
    else if (what < SIMPLE + 5)
        run_inner(number, depth);
    else if (!is_on_share_stack(number))
        begin_group(number, depth);
}

static void *live(void *arg)
{
    int number = (int)(intptr_t)arg;
    for (int i = 0; i < STEPS; i++)
        do_something(number, 0);
    all.tasks[number] = NULL;
    return NULL;
}

static void scenario(aco_sim_t *run, void *arg)
{
    aco_t *tasks[TASKS];
    int value;
    (void)arg;
    sim = run;
    memset(&all, 0, sizeof all);
    all.semaphore.value = PERMITS;
    all.barrier.count = 2;
    for (int i = 0; i < 2; i++)
        MUST((all.channels[i] = aco_channel_new((size_t)i * 2, sizeof(int))) != NULL);
    for (int i = 0; i < TASKS; i++) {
        aco_options_t opts = {0};
        opts.stack = is_on_share_stack(i) ? stack : NULL;
        tasks[i] = all.tasks[i] = aco_spawn(live, (void *)(intptr_t)i, &opts);
        MUST(tasks[i] != NULL);
    }
    for (int i = 0; i < TASKS; i++)
        while (aco_join_until(tasks[i], NULL, soon()) != 0) {
            MUST(errno == ETIMEDOUT);
            if (errno != ETIMEDOUT)
                return;
        }
    for (int i = 0; i < 2; i++) {
        while (aco_channel_try_receive(all.channels[i], &value) == 0)
            all.received += value + 1;
        MUST(aco_channel_destroy(all.channels[i]) == 0);
    }
    MUST(all.sent == all.received);
    MUST(!all.mutex.owner && !all.cond_mutex.owner && !all.rwlock.writer && !all.rwlock.readers);
    MUST(all.semaphore.value == PERMITS && !all.barrier.arrived);
}

int main(int argc, char **argv)
{
    int status;
    stack = aco_share_stack_new(0);
    status = stack ? aco_sim_main(argc, argv, scenario, NULL, NULL) : 2;
    if (stack && status == 0)
        aco_share_stack_destroy(stack);
    return status;
}
