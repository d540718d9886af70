/* Coroutines inside tasks: what others may do with one that waits, which waits fail, what is its task's; the same on
 * the share stack of tasks; many chains at once. scheduler_places.c has the waits themselves. */
#define _GNU_SOURCE
#include "tasks.h"
#include "child.h"
#include "fails.h"

#include <aco/group.h>
#include <aco/pool.h>
#include <aco/sync.h>
#ifndef ACO_CONFIG_NO_INLINE
#include <aco/generator.h>
#endif

#include <string.h>

static aco_share_stack_t *stack;
static char mark; /* its address is a value */

/* ---- A coroutine inside a task ---- */

static aco_t *inner;

static void *parks_inside(void *unused)
{
    errno = 0;
    CHECK_EQ(aco_park("inside"), 0);
    return unused;
}

static void *resumes_inner(void *unused)
{
    aco_send(inner, NULL);
    return unused;
}

static void destroy_inner(void)
{
    aco_destroy(inner);
}

static void resume_inner(void)
{
    aco_resume(inner);
}

static void *meddles(void *task)
{
    CHECK_EQ(aco_state(inner), ACO_STATE_RESUMING);
    CHECK_EQ(aco_state(task), ACO_STATE_SUSPENDED);
    FAILS(aco_send(inner, NULL), ACO_ERROR, EBUSY, "aco_send", inner, "waits in a task");
    FAILS(aco_cancel(inner), -1, EBUSY, "aco_cancel", inner, "waits in a task");
    FAILS(aco_restart(inner, parks_inside, NULL), -1, EBUSY, "aco_restart", inner, "not done");
    FAILS(aco_unpark(inner), -1, EINVAL, "aco_unpark", inner, "is not a task");
    FAILS(aco_stack_trim(inner), -1, EBUSY, "aco_stack_trim", inner, "");
    aco_stack_trim(task);
    ABORTS(destroy_inner, "aco_destroy", inner, "waits in a task");
    ABORTS(resume_inner, "aco_resume", inner, "waits in a task");
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void others_cannot(void)
{
    char text[1000];
    aco_t *task;
    inner = aco_new(parks_inside, NULL, NULL);
    task = spawn_as(resumes_inner, NULL, ACO_DETACHED, "outer");
    check_deadlock(text, sizeof text);
    CHECK(strstr(text, "(outer) waits at ") && strstr(text, "to be unparked: inside"));
    CHECK(strstr(aco_error_message(), "deadlock: 1 task(s) wait") != NULL);
    spawn_detached(meddles, task);
    run();
    CHECK_EQ(aco_state(inner), ACO_STATE_DONE);
    aco_destroy(inner);
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(fails_in_generator, y, me)
{
    (void)y;
    FAILS(aco_sleep(1), -1, EPERM, "aco_sleep", me, "in a generator");
}
#endif

static aco_mutex_t kept;

static void in_cleanup(void *unused)
{
    (void)unused;
    FAILS(aco_sleep(1), -1, EPERM, "aco_sleep", inner, "is in its cleanup");
    FAILS(aco_task_yield(), -1, EPERM, "aco_task_yield", inner, "is in its cleanup");
    CHECK_EQ(aco_mutex_unlock(&kept), 0); /* of its task */
    say('c');
}

static void *locks_and_ends(void *yields)
{
    CHECK_EQ(aco_mutex_lock(&kept), 0);
    CHECK_EQ(aco_defer(in_cleanup, NULL), 0);
    if (yields)
        aco_yield();
    return NULL;
}

static void *has_inner_cleanup(void *unused)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        inner = aco_new(locks_and_ends, cancels ? &kept : NULL, NULL);
        aco_send(inner, NULL);
        if (cancels)
            CHECK_EQ(aco_cancel(inner), 0);
        CHECK(!kept.owner);
        aco_destroy(inner);
    }
    return unused;
}

static void *waits_on_shared(void *unused)
{
    FAILS(aco_sleep(1), -1, EPERM, "aco_sleep", aco_get_co(), "share stack");
    CHECK_EQ(aco_mutex_lock(&kept), -1);
    CHECK_EQ(aco_mutex_try_lock(&kept), 0);
    CHECK(kept.owner == aco_current_task());
    CHECK_EQ(aco_mutex_unlock(&kept), 0);
    return unused;
}

static void *resumes_on_shared(void *unused)
{
    aco_options_t o = {0};
    aco_t *co;
    o.stack = stack;
    co = aco_new(waits_on_shared, NULL, &o);
    aco_send(co, NULL);
    aco_destroy(co);
    return unused;
}

static void *refuses_on_shared(void *unused)
{
    static aco_group_t elsewhere;
    aco_group_t group;
    aco_scope_t scope;
    aco_t *me = aco_get_co();
    void *result;
    FAILS(aco_group_begin(&group, ACO_KEEP_GOING), -1, EINVAL, "aco_group_begin", me, "so is its group");
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    FAILS(aco_group_begin(&elsewhere, ACO_KEEP_GOING), -1, EINVAL, "aco_group_begin", me, "so is a scope around");
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(aco_group_begin(&elsewhere, ACO_KEEP_GOING), 0);
    FAILS(aco_group_spawn_result(&elsewhere, parks, NULL, &result, NULL), NULL, EINVAL, "aco_group_spawn", me,
          "so is the result");
    CHECK_EQ(aco_group_end(&elsewhere), 0);
    FAILS(aco_send(me, NULL), ACO_ERROR, EPERM, "aco_send", me, "is a task");
    CHECK_EQ(aco_state(me), ACO_STATE_RUNNING);
#ifndef ACO_CONFIG_NO_INLINE
    if (COPYING) {
        aco_generator_t g;
        CHECK_EQ(aco_generator_open(&g, fails_in_generator, me, NULL), 0);
        CHECK_EQ(aco_generator_next(&g), 0);
        aco_generator_close(&g);
    }
#endif
    aco_exit();
    return unused;
}

/* ---- On the share stack of tasks ---- */

static aco_t *shared_task, *shared_inner;
static aco_mutex_t inner_mutex;

static void *inner_on_same(void *unused)
{
    char room[100];
    memset(room, 1, sizeof room);
    CHECK(aco_current_task() == shared_task); /* although its frames were taken away */
    CHECK_EQ(aco_mutex_try_lock(&inner_mutex), 0);
    CHECK_EQ(aco_mutex_unlock(&inner_mutex), 0);
    CHECK_EQ(aco_state(shared_task), ACO_STATE_RESUMING);
    errno = 0;
    if (COPYING)
        CHECK_EQ(aco_park(NULL), -1);
    aco_yield();
    return unused;
}

static void *has_inner_on_same(void *unused)
{
    aco_options_t o = {0};
    volatile int kept_here = 4711;
    aco_scope_t scope;
    o.stack = stack;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(1000 * ACO_SECOND)), 0);
    shared_inner = aco_new(inner_on_same, NULL, &o);
    for (int i = 0; i < 2; i++) {
        aco_send(shared_inner, NULL);
        CHECK_EQ(kept_here, 4711);
        CHECK(aco_deadline() != ACO_FOREVER);
        CHECK_EQ(aco_sleep(1), 0);
        CHECK_EQ(kept_here, 4711);
    }
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_destroy(shared_inner);
    return unused;
}

/* On a stack of its own, inside a task whose share stack another task uses meanwhile. */
static void *inner_of_evicted(void *task)
{
    CHECK_EQ(aco_mutex_lock(&inner_mutex), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_sleep(1000), 0);
        CHECK(aco_current_task() == task);
    }
    CHECK_EQ(aco_mutex_unlock(&inner_mutex), 0);
    return NULL;
}

static void *evicted(void *unused)
{
    aco_t *co = aco_new(inner_of_evicted, aco_get_co(), NULL);
    (void)unused;
    aco_send(co, NULL);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    aco_destroy(co);
    return &mark;
}

static void *parks_on_shared(void *unused)
{
    CHECK_EQ(aco_park(NULL), 0);
    return unused;
}

static void *returns_its_name(void *unused)
{
    (void)unused;
    return (void *)aco_name(aco_get_co());
}

static void on_shared(void)
{
    aco_options_t o = {0};
    aco_t *tasks[3], *co;
    void *result;
    char text[1000];
    o.stack = stack;
    o.flags = kind;
    CHECK((tasks[0] = aco_spawn(SHARE_STACKS ? refuses_on_shared : returns_its_name, NULL, &o)) != NULL);
    CHECK_EQ(aco_state(tasks[0]), ACO_STATE_READY);
    run();
    CHECK_EQ(aco_state(tasks[0]), ACO_STATE_DONE);
    CHECK_EQ(aco_join(tasks[0], &result), 0);
    if (COPYING || !SHARE_STACKS) {
        CHECK((shared_task = aco_spawn(has_inner_on_same, &mark, &o)) != NULL);
        run();
        CHECK_EQ(aco_join(shared_task, &result), 0);
        CHECK(result == &mark);
    }
    for (int i = 0; i < 2; i++)
        CHECK((tasks[i] = aco_spawn(evicted, NULL, &o)) != NULL);
    run();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(aco_join(tasks[i], &result), 0);
        CHECK(result == &mark);
    }
    o.name = "shared";
    for (int i = 0; i < 3; i++)
        CHECK((tasks[i] = aco_spawn(i == 1 ? returns_its_name : parks_on_shared, &mark, &o)) != NULL);
    check_deadlock(text, sizeof text);
    CHECK(strstr(text, "(shared) waits at ") != NULL);
    CHECK_EQ(aco_state(tasks[0]), ACO_STATE_SUSPENDED);
    FAILS(aco_send(tasks[0], NULL), ACO_ERROR, EPERM, "aco_send", tasks[0], "is a task");
    FAILS(aco_cancel(tasks[2]), -1, EPERM, "aco_cancel", tasks[2], "is a task");
    CHECK_EQ(aco_set_name(tasks[0], "a name that makes the area move"), 0);
    CHECK_EQ(aco_set_slot(tasks[2], &mark), 0);
    o.name = NULL;
    o.flags = 0;
    co = aco_new(uses_stack, NULL, &o); /* the root context uses the stack too */
    aco_send(co, NULL);
    aco_destroy(co);
    CHECK_EQ(aco_unpark(tasks[0]), 0);
    CHECK_EQ(aco_detach(tasks[2]), 0);
    CHECK_EQ(aco_unpark(tasks[2]), 0);
    run();
    CHECK_EQ(aco_join(tasks[0], NULL), 0);
    aco_destroy(tasks[1]); /* as a coroutine that is done */
}

/* ---- Calls that fail outside of tasks; many at once ---- */

static void *asks_outside(void *unused)
{
    CHECK(aco_current_task() == NULL);
    FAILS(aco_sleep(1), -1, EPERM, "aco_sleep", aco_get_co(), "is not a task");
    return unused;
}

static int outside_in_hook(void *unused, int64_t timeout)
{
    aco_t *co = aco_new(asks_outside, unused, NULL);
    (void)timeout;
    aco_send(co, NULL);
    aco_destroy(co);
    return 0;
}

static void refused(void)
{
    spawn_detached(has_inner_cleanup, NULL);
    run();
    CHECK_HISTORY("cc");
    if (SHARE_STACKS) {
        spawn_detached(resumes_on_shared, NULL);
        run();
    }
    CHECK(aco_current_task() == NULL);
    CHECK_EQ(aco_on_idle(outside_in_hook, NULL), 0);
    for (int i = 0; i < 100; i++) /* the hook runs while tasks stand in the queue */
        spawn_detached(three_turns, "");
    spawn_detached(resumes_inner, inner = NULL);
    run();
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    memset(history, 0, sizeof history);
}

/* Many chains wait at once, and each goes on by itself. */
enum { CHAINS = 200 };

static void *adds_up(void *sum)
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(aco_sleep((i * 7919) % 1000), 0);
        ++*(int *)sum;
        aco_yield();
    }
    return NULL;
}

static void *has_two(void *sum)
{
    aco_t *a = aco_new(adds_up, sum, NULL), *b = aco_new(adds_up, sum, NULL);
    while (!a->is_end || !b->is_end) {
        if (!a->is_end)
            aco_send(a, NULL);
        if (!b->is_end)
            aco_send(b, NULL);
    }
    aco_destroy(a);
    aco_destroy(b);
    return NULL;
}

static void many(void)
{
    int sum = 0;
    for (int i = 0; i < CHAINS; i++)
        spawn_detached(has_two, &sum);
    run();
    CHECK_EQ(sum, CHAINS * 20);
}

/* ---- A save area that moves between the end of a wait and the task's turn ---- */

static aco_channel_t *moved_channels[2];

static void *selects_on_shared(void *chosen)
{
    int got[2] = {0};
    aco_select_case_t cases[] = {
        {.channel = moved_channels[0], .element = &got[0], .operation = ACO_SELECT_RECEIVE},
        {.channel = moved_channels[1], .element = &got[1], .operation = ACO_SELECT_RECEIVE},
    };
    *(int *)chosen = aco_select(cases, 2);
    CHECK_EQ(cases[1].error, 0);
    CHECK_EQ(got[1], 4711);
    return NULL;
}

static void *takes_stack(void *unused)
{
    aco_task_yield();
    return unused;
}

static void *sends_and_names(void *task)
{
    int n = 4711;
    aco_task_yield(); /* the frames of the task are saved */
    CHECK_EQ(aco_channel_send(moved_channels[1], &n), 0);
    CHECK_EQ(aco_set_name(task, "with a larger area"), 0);
    return NULL;
}

static void moved_after_wake(void)
{
    const aco_options_t shared = {.stack = stack}, detached = {.flags = ACO_DETACHED},
                        others = {.stack = stack, .flags = ACO_DETACHED};
    int chosen = -1;
    aco_t *task;
    for (int i = 0; i < 2; i++)
        moved_channels[i] = aco_channel_new(0, sizeof(int));
    task = aco_spawn(selects_on_shared, &chosen, &shared);
    CHECK(task && aco_spawn(takes_stack, NULL, &others) && aco_spawn(sends_and_names, task, &detached));
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(aco_join(task, NULL), 0);
    for (int i = 0; i < 2; i++)
        aco_channel_destroy(moved_channels[i]);
}

int main(void)
{
    static void (*const tests[])(void) = {others_cannot, refused, on_shared, many, moved_after_wake, NULL};
    stack = aco_share_stack_new(0);
    with_all_kinds(tests);
    aco_share_stack_destroy(stack);
    return check_result("scheduler_inner");
}
