/* Promises about tasks (include/aco/scheduler.h), one function each: the order of turns, how tasks end and are joined,
 * what belongs to them, coroutines in tasks, what fails, many tasks, and schedulers on several threads.
 *
 * scheduler_tasks scale: a million tasks. */
#define _GNU_SOURCE
#include "tasks.h"
#include "child.h"
#include "fails.h"

#include <aco/group.h>
#include <aco/pool.h>

#include <fenv.h>
#include <pthread.h>

enum { MANY = SANITIZED ? 500 : 10000 };

static int counted(aco_t *co, void *arg)
{
    (void)co;
    ++*(int *)arg;
    return 0;
}

static int living(void)
{
    int n = 0;
    aco_each(counted, &n);
    return n;
}

/* ---- Turns ---- */

static void *three_calls(void *name)
{
    for (int i = 0; i < 3; i++) {
        say(*(char *)name);
        aco_task_yield_call();
    }
    return NULL;
}

static void *three_plain_yields(void *name)
{
    for (int i = 0; i < 3; i++) {
        say(*(char *)name);
        if (i == 1)
            aco_yield_value(name);
        else
            aco_yield();
    }
    return NULL;
}

static void *spawns_more(void *name)
{
    spawn_detached(three_turns, "d");
    say(*(char *)name);
    spawn_detached(three_turns, "e");
    aco_task_yield();
    say(*(char *)name);
    return NULL;
}

static void turns(void)
{
    CHECK_EQ(aco_run(), 0); /* nobody there */
    for (const char *name = "abc"; *name; name++)
        spawn_detached(three_turns, (void *)(uintptr_t)name);
    CHECK_HISTORY("");
    run();
    CHECK_HISTORY("abcabcabc");
    spawn_detached(three_turns, "a");
    run();
    CHECK_HISTORY("aaa");
    spawn_detached(three_calls, "a");
    spawn_detached(three_plain_yields, "b");
    spawn_detached(three_turns, "c");
    run();
    CHECK_HISTORY("abcabcabc");
    spawn_detached(three_turns, "a");
    spawn_detached(spawns_more, "b");
    spawn_detached(three_turns, "c");
    run();
    CHECK_HISTORY("abcadebcadecde");
    CHECK_EQ(living(), 0);
}

/* ---- Ending ---- */

static void *give_back(void *arg)
{
    return arg;
}

static void *yields_and_gives_back(void *arg)
{
    aco_task_yield();
    return arg;
}

static int deferred_calls;

static void count_deferred(void *n)
{
    deferred_calls += *(int *)n;
}

static void *exits(void *n)
{
    aco_defer(count_deferred, n);
    aco_exit();
}

static void *joins(void *unused)
{
    void *result = NULL;
    int n = 1;
    aco_t *a = spawn(give_back, &n), *b = spawn(yields_and_gives_back, &result), *c = spawn(exits, &n);
    (void)unused;
    CHECK_EQ(aco_join(b, &result), 0); /* before it ends */
    CHECK(result == &result);
    CHECK_EQ(aco_state(a), ACO_STATE_DONE);
    CHECK(aco_result(a) == &n);
    CHECK_EQ(aco_join(a, &result), 0); /* after */
    CHECK(result == &n);
    CHECK_EQ(aco_join(c, &result), 0);
    CHECK(result == NULL);
    CHECK_EQ(aco_join(spawn(give_back, &n), NULL), 0);
    return &deferred_calls;
}

static void ends(void)
{
    void *result = NULL;
    aco_t *task = spawn(joins, NULL), *other;
    int n = 2;
    deferred_calls = 0;
    run();
    CHECK_EQ(deferred_calls, 1);
    CHECK_EQ(aco_join(task, &result), 0); /* by the root context, after the end */
    CHECK(result == &deferred_calls);
    task = spawn(give_back, NULL);
    other = spawn(exits, &n);
    CHECK_EQ(aco_detach(task), 0);
    run();
    CHECK_EQ(living(), 1);
    CHECK_EQ(aco_state(other), ACO_STATE_DONE);
    CHECK_EQ(other->is_end, 1);
    CHECK_EQ(aco_detach(other), 0);
    CHECK_EQ(living(), 0);
    other = spawn(give_back, &n); /* an ended task is a plain coroutine that is done */
    run();
    CHECK_EQ(aco_restart(other, give_back, other), 0);
    CHECK(aco_send(other, NULL) == other);
    aco_destroy(other);
    CHECK_EQ(living(), 0);
}

static aco_t *joined;

static void *join_it(void *expected)
{
    void *result;
    errno = 0;
    CHECK_EQ(aco_join(joined, &result), expected ? -1 : 0);
    if (expected)
        CHECK_EQ(errno, *(int *)expected);
    return NULL;
}

static void *join_myself(void *unused)
{
    (void)unused;
    FAILS(aco_join(aco_get_co(), NULL), -1, EDEADLK, "aco_join", aco_get_co(), "joins itself");
    return NULL;
}

/* One that is not cached when it has ended: it has a name. */
static void *joins_twice(void *task)
{
    CHECK_EQ(aco_join(task, NULL), 0);
    FAILS(aco_join(task, NULL), -1, ESRCH, "aco_join", task, "was destroyed");
    FAILS(aco_detach(task), -1, ESRCH, "aco_detach", task, "was destroyed");
    FAILS(aco_restart(task, give_back, NULL), -1, ESRCH, "aco_restart", task, "was destroyed");
    return NULL;
}

static void joined_twice(void)
{
    aco_options_t named = {0};
    aco_t *done = aco_new(give_back, NULL, NULL);
    named.name = "named";
    spawn_detached(joins_twice, aco_spawn(give_back, NULL, &named));
    run();
    aco_send(done, NULL); /* a plain coroutine that has ended is no task */
    FAILS(aco_join(done, NULL), -1, EINVAL, "aco_join", done, "is not a task");
    aco_destroy(done);
}

static void joins_refused(void)
{
    int busy = EBUSY;
    aco_t *task, *myself;
    joined = spawn(yields_and_gives_back, NULL);
    spawn_detached(join_it, NULL);
    spawn_detached(join_it, &busy);
    myself = spawn(join_myself, NULL);
    FAILS(aco_join(joined, NULL), -1, EPERM, "aco_join", NULL, "root context");
    run();
    CHECK_EQ(aco_join(myself, NULL), 0);
    task = spawn_as(three_turns, "x", ACO_DETACHED, NULL);
    FAILS(aco_join(task, NULL), -1, EINVAL, "aco_join", task, "is detached");
    FAILS(aco_detach(task), -1, EINVAL, "aco_detach", task, "is detached");
    FAILS(aco_join(NULL, NULL), -1, EINVAL, "aco_join", NULL, "NULL");
    joined_twice();
    FAILS(aco_detach(NULL), -1, EINVAL, "aco_detach", NULL, "NULL");
    FAILS(aco_unpark(NULL), -1, EINVAL, "aco_unpark", NULL, "NULL");
    run();
    CHECK_HISTORY("xxx");
    task = aco_new(give_back, NULL, NULL);
    FAILS(aco_join(task, NULL), -1, EINVAL, "aco_join", task, "is not a task");
    FAILS(aco_unpark(task), -1, EINVAL, "aco_unpark", task, "is not a task");
    aco_destroy(task);
    task = spawn(give_back, NULL);
    run();
    FAILS(aco_unpark(task), -1, ESRCH, "aco_unpark", task, "has ended");
    CHECK_EQ(aco_join(task, NULL), 0);
    if (!kind) /* else its memory may be gone */
        FAILS(aco_join(task, NULL), -1, ESRCH, "aco_join", task, "was destroyed");
}

/* ---- What else is for tasks ---- */

static aco_local_key_t key;
static int destroyed;
ACO_LOCAL(int, counter);

static void destroy_value(void *value)
{
    destroyed += *(int *)value;
}

static void *asks(void *arg)
{
    aco_t *me = aco_get_co();
    void *low = NULL, *high = NULL;
    static int one = 1; /* its destructor comes after this function */
    CHECK(aco_get_arg() == arg);
    CHECK_EQ(aco_state(me), ACO_STATE_RUNNING);
    CHECK(!aco_is_in_main_co());
    CHECK(!aco_is_main_co(me));
    CHECK_EQ(aco_stack_bounds(me, &low, &high), 0);
    if (SHARE_STACKS) /* else the address sanitizer keeps locals elsewhere */
        CHECK((char *)&me > (char *)low && (char *)&me < (char *)high);
    CHECK_EQ(aco_set_slot(NULL, &one), 0);
    CHECK_EQ(aco_set_local(key, &one), 0);
    CHECK_EQ((*counter())++, 0);
    aco_task_yield();
    CHECK(aco_slot(me) == &one);
    CHECK(aco_get_local(key) == &one);
    CHECK_EQ(*counter(), 1);
    return NULL;
}

static int has_name(aco_t *co, void *name)
{
    return strcmp(aco_name(co), name) == 0;
}

static void belongings(void)
{
    aco_t *a = spawn_as(asks, &key, 0, "a"), *b = spawn(asks, NULL);
    destroyed = 0;
    CHECK_EQ(aco_local_key_create(&key, destroy_value), 0);
    CHECK_EQ(aco_state(a), ACO_STATE_READY);
    CHECK_EQ(aco_set_name(b, "b"), 0);
    CHECK_EQ(aco_each(has_name, "a"), 1);
    CHECK_EQ(aco_each(has_name, "b"), 1);
    CHECK_EQ(aco_each(has_name, "c"), 0);
    CHECK(strcmp(aco_name(a), "a") == 0);
    run();
    CHECK_EQ(destroyed, 2);
    CHECK_EQ(aco_join(a, NULL), 0);
    CHECK_EQ(aco_join(b, NULL), 0);
    CHECK_EQ(aco_local_key_delete(key), 0);
}

/* ---- Memory of the caller's ---- */

enum { MEMORY = 64 << 10 };

static void *yields_once(void *arg)
{
    aco_task_yield();
    return arg;
}

/* Spawned on this memory, and waited for: by a join before its end, by one after its end, by a group. */
static void use_memory(void *memory, int how)
{
    aco_options_t o = {0};
    aco_group_t group;
    aco_t *task;
    void *result = NULL;
    o.flags = kind;
    o.stack_memory = memory;
    o.stack_size = MEMORY;
    if (how == 2) {
        CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
        CHECK(aco_group_spawn_result(&group, yields_once, memory, &result, &o) != NULL);
        CHECK_EQ(aco_group_end(&group), 0);
    } else {
        task = aco_spawn(yields_once, memory, &o);
        CHECK(task != NULL);
        for (int i = 0; i < 2 * how; i++)
            aco_task_yield();
        CHECK_EQ(aco_join(task, &result), 0);
    }
    CHECK(result == memory);
}

static void *uses_memory(void *unused)
{
    void *memory = malloc(MEMORY);
    for (int i = 0; i < 9; i++) {
        use_memory(memory, i % 3);
        memset(memory, 0xdd, MEMORY); /* it is the caller's again */
        aco_task_yield();
    }
    free(memory);
    return unused;
}

static void on_memory(void)
{
    spawn_detached(uses_memory, NULL);
    spawn_detached(uses_memory, NULL);
    run();
    CHECK_EQ(living(), 0);
}

/* On a share stack that is destroyed as soon as the task, alone or a group's member, has ended: before a join that
 * comes later, and while the block of a member that ended last is still to be freed. */
static void *uses_share_stack(void *how)
{
    int in_group = (intptr_t)how & 1, yields = (int)(intptr_t)how >> 1, ends_first = !in_group && yields > 1;
    aco_options_t o = {0};
    aco_group_t group;
    aco_t *task = NULL;
    void *result = NULL;
    o.flags = kind;
    o.stack = aco_share_stack_new(0);
    if (in_group) {
        CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
        CHECK(aco_group_spawn_result(&group, yields_once, &o, &result, &o) != NULL);
    } else {
        task = aco_spawn(yields_once, &o, &o);
        CHECK(task != NULL);
    }
    for (int i = 0; i < yields; i++)
        aco_task_yield();
    if (ends_first)
        aco_share_stack_destroy(o.stack);
    CHECK_EQ(in_group ? aco_group_end(&group) : aco_join(task, &result), 0);
    CHECK(result == &o);
    if (!ends_first)
        aco_share_stack_destroy(o.stack);
    return how;
}

static void *yields_often(void *unused)
{
    for (int i = 0; i < 20; i++)
        aco_task_yield();
    return unused;
}

static void on_share_stack(void)
{
    for (intptr_t how = 0; how < 8; how++) {
        spawn_detached(uses_share_stack, (void *)how);
        spawn_detached(yields_often, NULL); /* another task runs when that one ends */
        run();
    }
    CHECK_EQ(living(), 0);
}

/* ---- Coroutines in tasks ---- */

static void *counts(void *unused)
{
    (void)unused;
    for (intptr_t i = 1; i < 1000000; i++)
        aco_yield_value((void *)i);
    return NULL;
}

static aco_t *common_counter, *resuming;

static void *resumes(void *expected)
{
    aco_t *own = aco_new(counts, NULL, NULL);
    for (intptr_t i = 1; i <= 3; i++) {
        CHECK(aco_send(own, NULL) == (void *)i);
        CHECK((intptr_t)aco_send(common_counter, NULL) == ++*(intptr_t *)expected);
        aco_task_yield();
    }
    CHECK_EQ(aco_cancel(own), 0);
    aco_destroy(own);
    return NULL;
}

static void *says_who_resumes(void *task)
{
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(0);
    aco_t *me = aco_get_co();
    CHECK_EQ(aco_state(task), ACO_STATE_RESUMING);
    FAILS(aco_run(), -1, EPERM, "aco_run", me, "is a coroutine");
    aco_semaphore_release(&semaphore);
    CHECK_EQ(aco_semaphore_try_acquire(&semaphore), 0);
    spawn_detached(three_turns, "n");
    return NULL;
}

static void *is_resuming(void *unused)
{
    aco_t *co = aco_new(says_who_resumes, aco_get_co(), NULL);
    (void)unused;
    aco_send(co, NULL);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    CHECK_EQ(aco_state(aco_get_co()), ACO_STATE_RUNNING);
    CHECK_EQ(aco_unpark(aco_get_co()), 0); /* still a task */
    aco_destroy(co);
    return NULL;
}

static void nested(void)
{
    intptr_t expected = 0;
    common_counter = aco_new(counts, NULL, NULL);
    spawn_detached(resumes, &expected);
    spawn_detached(resumes, &expected);
    run();
    CHECK_EQ(expected, 6);
    CHECK_EQ(aco_cancel(common_counter), 0);
    aco_destroy(common_counter);
    spawn_detached(is_resuming, NULL);
    run();
    CHECK_HISTORY("nnn");
    CHECK_EQ(living(), 0);
}

/* ---- What fails ---- */

static void resume_it(void)
{
    aco_resume(resuming);
}

static void destroy_it(void)
{
    aco_destroy(resuming);
}

static void reset_it(void)
{
    aco_reset(resuming, abort, NULL);
}

static void create_under_it(void)
{
    aco_create(resuming, aco_share_stack_new(0), 0, abort, NULL);
}

static void check_is_guarded(aco_t *task)
{
    FAILS(aco_send(task, NULL), ACO_ERROR, EPERM, "aco_send", task, "is a task");
    FAILS(aco_cancel(task), -1, EPERM, "aco_cancel", task, "is a task");
    FAILS(aco_restart(task, give_back, NULL), -1, EPERM, "aco_restart", task, "is a task");
    resuming = task;
    ABORTS(resume_it, "aco_resume", task, "is a task");
    ABORTS(destroy_it, "aco_destroy", task, "is a task");
    ABORTS(reset_it, "aco_reset", task, "is a task");
    ABORTS(create_under_it, "aco_create", task, "not a main coroutine");
}

static void *yields_elsewhere(void *task)
{
    aco_t *me = aco_get_co(), *co = aco_new(give_back, NULL, NULL);
    FAILS(aco_yield_to(co), -1, EPERM, "aco_yield_to", me, "is a task");
    FAILS(aco_yield_to(task), -1, EPERM, "aco_yield_to", me, "is a task");
    CHECK_EQ(aco_yield_to(me), 0);
    aco_destroy(co);
    FAILS(aco_send(me, NULL), ACO_ERROR, EPERM, "aco_send", me, "is a task");
    FAILS(aco_run(), -1, EPERM, "aco_run", me, "is a coroutine");
    return NULL;
}

static void *yields_to_a_task(void *task)
{
    FAILS(aco_yield_to(task), -1, EPERM, "aco_yield_to", task, "is a task");
    return NULL;
}

static void waits_in_cleanup(void *unused)
{
    aco_t *me = aco_get_co();
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    (void)unused;
    FAILS(aco_task_yield(), -1, EPERM, "aco_task_yield", me, "is in its cleanup");
    FAILS(aco_park("x"), -1, EPERM, "aco_park", me, "is in its cleanup");
    FAILS(aco_sleep(0), -1, EPERM, "aco_task_yield", me, "is in its cleanup");
    CHECK_EQ(aco_mutex_try_lock(&mutex), 0);
    CHECK_EQ(aco_mutex_unlock(&mutex), 0);
    spawn_detached(three_turns, "s");
}

static void *has_cleanup(void *unused)
{
    CHECK_EQ(aco_defer(waits_in_cleanup, NULL), 0);
    return unused;
}

static void refusals(void)
{
    void *memory = malloc(1 << 20);
    static const struct {
        unsigned flags;
        const char *reason;
    } wrong[] = {{1u << 30, "unknown flags"}, {ACO_OWN_FP | ACO_SHARED_FP, "exclude each other"}};
    aco_options_t o = {0};
    aco_t *task = spawn(three_turns, "t"), *co;
    check_is_guarded(task);
    spawn_detached(yields_elsewhere, task);
    run();
    CHECK_HISTORY("ttt");
    CHECK_EQ(aco_join(task, NULL), 0);
    task = spawn_as(three_turns, "t", ACO_DETACHED, NULL);
    co = aco_new(yields_to_a_task, task, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    spawn_detached(has_cleanup, NULL);
    run();
    CHECK_HISTORY("ttstss");
    FAILS(aco_spawn(NULL, NULL, NULL), NULL, EINVAL, "aco_spawn", NULL, "the function is NULL");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.flags = wrong[i].flags;
        FAILS(aco_spawn(give_back, NULL, &o), NULL, EINVAL, "aco_spawn", NULL, wrong[i].reason);
    }
    o.flags = ACO_DETACHED;
    FAILS(aco_new(give_back, NULL, &o), NULL, EINVAL, "aco_new", NULL, "unknown flags");
    o.stack_memory = &o;
    o.stack_size = 1 << 20;
    FAILS(aco_spawn(give_back, NULL, &o), NULL, EINVAL, "aco_spawn", NULL, "stack_memory");
    o.flags = 0;
    o.stack_memory = memory;
    task = aco_spawn(give_back, NULL, &o);
    FAILS(aco_detach(task), -1, EINVAL, "aco_detach", task, "stack_memory");
    run();
    CHECK_EQ(aco_detach(task), 0); /* it has ended */
    free(memory);
    CHECK_EQ(living(), 0);
}

static void nobody_waits_outside(void)
{
    static const char reason[] = "root context";
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    aco_cond_t cond = ACO_COND_INIT;
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(1);
    aco_wait_group_t group = ACO_WAIT_GROUP_INIT;
    aco_channel_t *channel = aco_channel_new(1, 1);
    aco_select_case_t one = {channel, &mutex, ACO_SELECT_SEND, 0, {0}};
    char c = 'x';
    FAILS(aco_task_yield(), -1, EPERM, "aco_task_yield", NULL, reason);
    FAILS(aco_park(NULL), -1, EPERM, "aco_park", NULL, reason);
    FAILS(aco_sleep(1), -1, EPERM, "aco_sleep", NULL, reason);
    FAILS(aco_mutex_lock(&mutex), -1, EPERM, "aco_mutex_lock", NULL, reason);
    FAILS(aco_mutex_try_lock(&mutex), -1, EPERM, "aco_mutex_try_lock", NULL, reason);
    FAILS(aco_mutex_unlock(&mutex), -1, EPERM, "aco_mutex_unlock", NULL, reason);
    FAILS(aco_cond_wait(&cond, &mutex), -1, EPERM, "aco_cond_wait", NULL, reason);
    FAILS(aco_semaphore_acquire(&semaphore), -1, EPERM, "aco_semaphore_acquire", NULL, reason);
    FAILS(aco_wait_group_wait(&group), -1, EPERM, "aco_wait_group_wait", NULL, reason);
    FAILS(aco_channel_send(channel, &c), -1, EPERM, "aco_channel_send", NULL, reason);
    FAILS(aco_channel_send(NULL, &c), -1, EINVAL, "aco_channel_send", NULL, "the channel is NULL");
    FAILS(aco_channel_receive(channel, &c), -1, EPERM, "aco_channel_receive", NULL, reason);
    FAILS(aco_select(&one, 1), -1, EPERM, "aco_select", NULL, reason);
    CHECK_EQ(aco_channel_try_send(channel, &c), 0); /* what does not wait is for all */
    CHECK_EQ(aco_channel_try_receive(channel, &c), 0);
    CHECK_EQ(aco_try_select(&one, 1), 0);
    CHECK_EQ(aco_semaphore_try_acquire(&semaphore), 0);
    aco_semaphore_release(&semaphore);
    CHECK_EQ(aco_channel_destroy(channel), 0);
}

/* ---- Many; options ---- */

static void *passes_on(void *arg)
{
    shared_t *s = arg;
    s->n++;
    aco_task_yield();
    CHECK_EQ(aco_wait_group_wait(&s->group), 0);
    s->inside++;
    return NULL;
}

static void *waits_for_all(void *arg)
{
    shared_t *s = arg;
    while (s->n < MANY)
        aco_task_yield();
    CHECK_EQ(s->inside, 0);
    CHECK_EQ(aco_wait_group_done(&s->group), 0);
    return NULL;
}

static void many(void)
{
    shared_t s = {0};
    aco_options_t o = {0};
    o.flags = ACO_DETACHED | kind;
    o.stack_size = 65536; /* apart enough for valgrind to see that they are different stacks */
    s.group.count = 1;
    spawn_detached(waits_for_all, &s);
    for (int i = 0; i < MANY; i++)
        CHECK(aco_spawn(passes_on, &s, &o) != NULL);
    CHECK_EQ(living(), MANY + 1);
    run();
    CHECK_EQ(s.inside, MANY);
    CHECK_EQ(living(), 0);
    o.flags |= ACO_NO_GUARD;
    s.group.count = 0;
    CHECK(aco_spawn(passes_on, &s, &o) != NULL);
    run();
}

static void *takes_three_turns(void *turns)
{
    for (int i = 0; i < 3; i++) {
        ++*(int *)turns;
        aco_task_yield();
    }
    return NULL;
}

/* Promise: more tasks than a cache has room for, whose next ones are fetched ahead, take their turns like few. */
static int scale(void)
{
    enum { SCALE = 16384 + 500 };
    aco_options_t o = {.stack_size = 8192, .flags = ACO_DETACHED};
    int turns = 0;
    for (int i = 0; i < SCALE; i++)
        CHECK(aco_spawn(takes_three_turns, &turns, &o) != NULL);
    run();
    CHECK_EQ(turns, 3 * SCALE);
    return check_result("scheduler scale");
}

static void *keeps_rounding(void *direction)
{
    for (int i = 0; i < 5; i++) {
        fesetround((int)(intptr_t)direction);
        aco_task_yield();
        CHECK_EQ(fegetround(), (int)(intptr_t)direction);
        CHECK_EQ(aco_sleep(1000), 0);
        CHECK_EQ(fegetround(), (int)(intptr_t)direction);
    }
    return NULL;
}

static void *rounds_as_usual(void *unused)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(fegetround(), FE_TONEAREST);
        aco_task_yield();
    }
    return unused;
}

static void environments(void)
{
    spawn_as(keeps_rounding, (void *)(intptr_t)FE_UPWARD, ACO_DETACHED | ACO_OWN_FP, NULL);
    spawn_detached(rounds_as_usual, NULL);
    spawn_as(keeps_rounding, (void *)(intptr_t)FE_DOWNWARD, ACO_DETACHED | ACO_OWN_FP, NULL);
    spawn_detached(rounds_as_usual, NULL);
    run();
    CHECK_EQ(fegetround(), FE_TONEAREST);
}

/* ---- Threads ---- */

static void *elsewhere(void *task)
{
    aco_t *stays;
    char report[256];
    FAILS(aco_unpark(task), -1, EPERM, "aco_unpark", task, "another thread");
    FAILS(aco_detach(task), -1, EPERM, "aco_detach", task, "another thread");
    spawn_detached(three_turns, "t");
    stays = spawn(parks, "s");
    check_deadlock(report, sizeof report);
    return stays;
}

static void threads(void)
{
    pthread_t thread;
    void *stays;
    aco_t *task = spawn(three_turns, "m");
    CHECK_EQ(pthread_create(&thread, NULL, elsewhere, task), 0);
    pthread_join(thread, &stays);
    CHECK_HISTORY("tstt");
    FAILS(aco_unpark(stays), -1, EPERM, "aco_unpark", stays, "another thread");
    run();
    CHECK_HISTORY("mmm");
    CHECK_EQ(aco_join(task, NULL), 0);
}

static void counts_call(void *calls)
{
    ++*(int *)calls;
}

static void *defers(void *calls)
{
    CHECK_EQ(aco_defer(counts_call, calls), 0);
    CHECK_EQ(aco_defer(counts_call, calls), 0);
    CHECK_EQ(aco_defer_pop(1), 0);
    return NULL;
}

static size_t stacks_in_use(void)
{
    aco_pool_stats_t stats;
    CHECK_EQ(aco_pool_stats(NULL, &stats), 0);
    return stats.in_use;
}

/* Promise: a task whose deferred calls were made is cached like any other: the next one needs no stack of the pool. */
static void deferring_tasks_are_cached(void)
{
    int calls = 0;
    size_t before;
    spawn_detached(give_back, NULL);
    run();
    before = stacks_in_use();
    spawn_detached(defers, &calls);
    run();
    CHECK_EQ(calls, 2);
    CHECK_EQ(stacks_in_use(), before);
}

int main(int argc, char **argv)
{
    void (*const tests[])(void) = {turns, ends, joins_refused, belongings, on_memory, on_share_stack,
                                   nested, refusals, many, NULL};
    if (argc > 1 && strcmp(argv[1], "scale") == 0)
        return scale();
    with_all_kinds(tests);
    deferring_tasks_are_cached();
    nobody_waits_outside();
    environments();
    threads();
    return check_result("scheduler_tasks");
}
