/* Promises about groups (include/aco/group.h), one function each. */
#include "tasks.h"
#include "child.h"
#include "fails.h"

#include <aco/group.h>

static aco_group_t group; /* of the test that runs */

static aco_options_t *options(void)
{
    static aco_options_t of_kind;
    of_kind.flags = kind;
    return &of_kind;
}

static aco_t *add(aco_function_t fn, void *arg)
{
    aco_t *task = aco_group_spawn(&group, fn, arg, options());
    CHECK(task != NULL);
    return task;
}

/* ---- Members ---- */

/* Says its letter, waits so many turns, and says it again. Returns the letter's address. */
typedef struct turns {
    char letter;
    int n, error; /* error: to fail with, or 0 */
} turns_t;

static void *takes_turns(void *arg)
{
    const turns_t *turns = arg;
    say(turns->letter);
    for (int i = 0; i < turns->n; i++)
        aco_task_yield();
    say(turns->letter);
    errno = turns->error;
    return turns->error ? ACO_ERROR : arg;
}

/* Waits until it is cancelled, says its letter and fails. */
static void *waits_long(void *letter)
{
    CHECK_EQ(aco_park("a test"), -1);
    say(*(char *)letter);
    return ACO_ERROR;
}

static void spoils_errno(void *unused)
{
    (void)unused;
    errno = EDOM;
}

static void *fails_with_cleanup(void *unused)
{
    (void)unused;
    CHECK_EQ(aco_defer(spoils_errno, NULL), 0);
    errno = EIO;
    return ACO_ERROR;
}

/* Runs the test as a task. */
static void in_task(aco_function_t test)
{
    aco_t *task = spawn_as(test, NULL, 0, "test");
    void *result = NULL;
    memset(history, 0, sizeof history);
    run();
    CHECK_EQ(aco_join(task, &result), 0);
    CHECK(result == NULL);
}

/* Promise: the end waits for all; results and counts are those of the members. */
static void *all_succeed(void *unused)
{
    static turns_t a = {'a', 3, 0}, b = {'b', 1, 0};
    void *results[2] = {NULL, NULL};
    CHECK_EQ(aco_group_begin(&group, ACO_CANCEL_ON_FAILURE), 0);
    CHECK_EQ(aco_group_end(&group), 0); /* nobody */
    CHECK_EQ(aco_group_begin(&group, ACO_CANCEL_ON_FAILURE), 0);
    CHECK(aco_group_spawn_result(&group, takes_turns, &a, &results[0], options()) != NULL);
    CHECK(aco_group_spawn_result(&group, takes_turns, &b, &results[1], options()) != NULL);
    CHECK_EQ(group.running, 2);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_HISTORY("abba");
    CHECK(results[0] == &a && results[1] == &b && group.result == &b);
    CHECK_EQ(group.succeeded, 2);
    CHECK_EQ(group.failed + group.running, 0);
    CHECK_EQ(group.error, 0);
    CHECK_EQ(aco_check_cancelled(), 0);
    return unused;
}

/* Promise: the first failure ends the waits of all others, and of the one that began the group; its reason is the
 * group's. */
static void *failure_cancels(void *unused)
{
    static turns_t fails = {'f', 2, EIO}, late = {'l', 5, ENOENT};
    aco_group_begin(&group, ACO_CANCEL_ON_FAILURE);
    add(waits_long, "1");
    add(waits_long, "2");
    add(takes_turns, &fails);
    add(takes_turns, &late);
    add(waits_long, "3");
    CHECK_EQ(aco_sleep(1000 * ACO_SECOND), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(group.error, EIO);
    say('o');
    CHECK(aco_group_spawn(&group, waits_long, "4", NULL) == NULL);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, EIO);
    CHECK_HISTORY("flfo123l"); /* in one round, in their order */
    CHECK_EQ(group.failed, 5);
    CHECK_EQ(group.error, EIO);
    CHECK(group.result == NULL);
    CHECK_EQ(aco_check_cancelled(), 0);
    return unused;
}

/* Promise: the errno of a member is that of its return, whatever its deferred calls do; 0 counts as EINVAL. */
static void *reasons(void *unused)
{
    static turns_t none = {'n', 0, 0};
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(fails_with_cleanup, NULL);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, EIO);
    aco_group_begin(&group, ACO_KEEP_GOING);
    none.error = 0;
    add(takes_turns, &none);
    add(fails_with_cleanup, NULL);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(group.succeeded, 1);
    CHECK_EQ(group.failed, 1);
    return unused;
}

static void *fails_without_reason(void *unused)
{
    (void)unused;
    errno = 0;
    return ACO_ERROR;
}

static void *keeps_going(void *unused)
{
    static turns_t a = {'a', 3, 0}, f = {'f', 1, EIO}, g = {'g', 2, ENOENT};
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(takes_turns, &a);
    add(takes_turns, &f);
    add(takes_turns, &g);
    CHECK_EQ(aco_sleep(1000), 0);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, EIO);
    CHECK_HISTORY("afgfga");
    CHECK_EQ(group.succeeded, 1);
    CHECK_EQ(group.failed, 2);
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(fails_without_reason, NULL);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, EINVAL);
    return unused;
}

static void *first_success(void *unused)
{
    static turns_t a = {'a', 3, 0}, f = {'f', 1, EIO}, g = {'g', 2, ENOENT}, late = {'l', 6, 0};
    aco_group_begin(&group, ACO_FIRST_SUCCESS);
    add(takes_turns, &f);
    add(takes_turns, &a);
    add(waits_long, "1");
    add(takes_turns, &late);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_HISTORY("falfa1l");
    CHECK(group.result == &a);
    CHECK_EQ(group.succeeded, 2);
    CHECK_EQ(group.failed, 2);
    aco_group_begin(&group, ACO_FIRST_SUCCESS);
    add(takes_turns, &g);
    add(takes_turns, &f);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, EIO); /* it failed first */
    aco_group_begin(&group, ACO_FIRST_SUCCESS);
    CHECK_EQ(aco_group_end(&group), 0);
    return unused;
}

/* ---- A bound ---- */

static int inside, most;

static void *works(void *unused)
{
    most = ++inside > most ? inside : most;
    aco_task_yield();
    aco_task_yield();
    inside--;
    return unused;
}

/* The third place is asked for behind the other's first. */
static void *spawns_three(void *letter)
{
    for (int i = 0; i < 3; i++) {
        add(works, NULL);
        say(*(char *)letter);
    }
    return NULL;
}

static void *spawns_in_vain(void *error)
{
    say('v');
    CHECK(aco_group_spawn(&group, works, NULL, NULL) == NULL);
    CHECK_EQ(errno, (int)(intptr_t)error);
    say('v');
    return NULL;
}

/* Promise: never more than `limit` members; who waits for a place gets it in turn; a cancelled one gets none. */
static void *bounded(void *unused)
{
    aco_t *other;
    inside = most = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 3;
    for (int i = 0; i < 20; i++)
        add(works, NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(most, 3);
    CHECK_EQ(group.succeeded, 20);
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 1;
    spawn_detached(spawns_three, "x");
    spawn_detached(spawns_three, "y");
    CHECK_EQ(aco_sleep(1000), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(group.succeeded, 6);
    CHECK_HISTORY("xxyxyy");
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 1;
    add(waits_long, "1");
    other = spawn(spawns_in_vain, (void *)ECANCELED); /* it is not in the group's scope: waits until there is a place */
    aco_task_yield();
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(aco_join(other, NULL), 0);
    CHECK_HISTORY("v1v");
    CHECK_EQ(group.failed, 1);
    CHECK_EQ(group.running, 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 1;
    add(waits_long, "1");
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK(aco_group_spawn(&group, works, NULL, NULL) == NULL);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(aco_group_end(&group), -1);
    return unused;
}

/* ---- Scopes around and inside ---- */

static void *waits_in_shield(void *arg)
{
    aco_scope_t shield;
    CHECK_EQ(aco_shield_begin(&shield, aco_after(300000)), 0);
    CHECK_EQ(aco_park("a test"), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    say('s');
    CHECK_EQ(aco_scope_end(&shield), 0);
    CHECK_EQ(aco_park("a test"), -1);
    CHECK_EQ(errno, ECANCELED);
    return arg;
}

static void *waits_in_scope(void *letter)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(1000 * ACO_SECOND));
    CHECK_EQ(aco_park("a test"), -1);
    CHECK(aco_scope_ended_by(&scope) != &scope && aco_scope_ended_by(&scope) != NULL);
    say(*(char *)letter);
    aco_scope_end(&scope);
    return ACO_ERROR;
}

/* Promise: the deadline of a scope around a group ends its members' waits; the group is joined all the same. Shields
 * hold in members too. */
static void *deadline_around(void *unused)
{
    aco_scope_t scope;
    int64_t deadline = aco_after(200000);
    aco_scope_begin(&scope, deadline);
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(aco_deadline(), deadline);
    for (int i = 0; i < 100; i++)
        add(i % 2 ? waits_in_scope : waits_long, i % 2 ? "s" : "l");
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(aco_now() >= deadline);
    CHECK_EQ(group.failed, 100);
    CHECK_EQ(group.scope.error, 0);
    CHECK(aco_scope_ended_by(&group.scope) == &scope);
    aco_scope_end(&scope);
    CHECK_EQ(scope.error, ETIMEDOUT);
    memset(history, 0, sizeof history);
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(waits_in_shield, NULL);
    add(waits_long, "1");
    aco_task_yield();
    aco_scope_cancel(&group.scope);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_HISTORY("1s");
    return unused;
}

enum { DEEP = 2000 };
static int reached, ended;

/* A member that has a group with one member, and so on. */
static void *goes_deeper(void *depth)
{
    aco_group_t below;
    reached++;
    if ((intptr_t)depth == 0) {
        CHECK_EQ(aco_park("the deepest"), -1);
        CHECK_EQ(errno, ECANCELED);
        ended++;
        return ACO_ERROR;
    }
    CHECK_EQ(aco_group_begin(&below, ACO_CANCEL_ON_FAILURE), 0);
    CHECK(aco_group_spawn(&below, goes_deeper, (void *)((intptr_t)depth - 1), NULL) != NULL);
    CHECK_EQ(aco_group_end(&below), -1);
    ended++;
    return ACO_ERROR;
}

/* Promise: cancelling reaches groups of members of groups, however deep, and all are joined. */
static void *nested_groups(void *unused)
{
    int depth = UNDER_TSAN ? 50 : DEEP;
    reached = ended = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(goes_deeper, (void *)(intptr_t)depth);
    while (reached <= depth)
        aco_task_yield();
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_group_end(&group), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(ended, depth + 1);
    return unused;
}

static void *spawns_and_ends(void *left)
{
    if (left)
        add(spawns_and_ends, (void *)((intptr_t)left - 1));
    say('m');
    return NULL;
}

static void *spawns_late(void *unused)
{
    static turns_t a = {'a', 1, 0};
    while (group.running) /* until the last one has ended: the one that waits was woken and is behind */
        aco_task_yield();
    CHECK(aco_group_spawn(&group, takes_turns, &a, options()) != NULL);
    return unused;
}

/* Promise: members may spawn members; one that is spawned after the last had ended is waited for too. */
static void *members_spawn(void *unused)
{
    aco_group_begin(&group, ACO_CANCEL_ON_FAILURE);
    add(spawns_and_ends, (void *)5);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(group.succeeded, 6);
    CHECK_HISTORY("mmmmmm");
    aco_group_begin(&group, ACO_CANCEL_ON_FAILURE);
    spawn_detached(spawns_late, NULL);
    add(spawns_and_ends, NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(group.succeeded, 2);
    CHECK_HISTORY("maa");
    return unused;
}

/* ---- Failures ---- */

static void *refuses(void *unused)
{
    aco_scope_t outer, inner;
    aco_t *me = aco_get_co(), *member;
    static turns_t a = {'a', 1, 0};
    aco_scope_begin(&outer, ACO_FOREVER);
    FAILS(aco_group_begin(NULL, ACO_KEEP_GOING), -1, EINVAL, "aco_group_begin", NULL, "NULL");
    FAILS(aco_group_begin(&group, (aco_group_policy_t)3), -1, EINVAL, "aco_group_begin", NULL, "policy");
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    FAILS(aco_scope_end(&outer), -1, EPERM, "aco_scope_end", me, "innermost scope is a group's");
    FAILS(aco_scope_end(&group.scope), -1, EBUSY, "aco_scope_end", me, "without aco_group_end()");
    FAILS(aco_group_spawn(NULL, takes_turns, &a, NULL), NULL, EINVAL, "aco_group_spawn", NULL, "NULL");
    FAILS(aco_group_end(NULL), -1, EINVAL, "aco_group_end", NULL, "NULL");
    CHECK(aco_group_spawn(&group, NULL, &a, NULL) == NULL); /* what aco_spawn() refuses */
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(group.running, 0);
    member = add(takes_turns, &a);
    FAILS(aco_join(member, NULL), -1, EINVAL, "aco_join", member, "is detached");
    aco_scope_begin(&inner, ACO_FOREVER);
    FAILS(aco_group_end(&group), -1, EPERM, "aco_group_end", me, "is not inside the scope");
    aco_scope_end(&inner);
    CHECK_EQ(aco_group_end(&group), 0);
    FAILS(aco_group_end(&group), -1, EPERM, "aco_group_end", me, "is not inside the scope");
    FAILS(aco_group_spawn(&group, takes_turns, &a, NULL), NULL, ESRCH, "aco_group_spawn", NULL, "has ended");
    aco_scope_end(&outer);
    return unused;
}

static int leave;

static void *leaves_group(void *unused)
{
    static turns_t a = {'a', 9, 0};
    aco_group_begin(&group, ACO_KEEP_GOING);
    add(takes_turns, &a);
    if (!leave)
        CHECK_EQ(aco_group_end(&group), 0);
    return unused;
}

static void run_leaver(void)
{
    leave = 1;
    aco_run();
}

static void *parks_for_ever(void *unused)
{
    aco_park("nothing");
    return unused;
}

static void *waits_for_parked(void *unused)
{
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 2;
    add(parks_for_ever, NULL);
    add(parks_for_ever, NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    return unused;
}

static void *spawns_into_full(void *unused)
{
    add(works, NULL);
    return unused;
}

static int unpark_parked(aco_t *co, void *unused)
{
    (void)unused;
    return aco_state(co) == ACO_STATE_SUSPENDED ? aco_unpark(co) : 0;
}

/* Promise: a report of a deadlock names groups. */
static void deadlock(void)
{
    char text[4096], wanted[128];
    aco_t *task = spawn(waits_for_parked, NULL), *spawner = spawn(spawns_into_full, NULL);
    check_deadlock(text, sizeof text);
    snprintf(wanted, sizeof wanted, "for 2 member(s) of group %p", (void *)&group);
    CHECK(strstr(text, wanted) != NULL);
    snprintf(wanted, sizeof wanted, "for one of the 2 places of group %p", (void *)&group);
    CHECK(strstr(text, wanted) != NULL);
    aco_each(unpark_parked, NULL);
    run();
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_join(spawner, NULL), 0);
    CHECK_EQ(group.succeeded, 3);
}

static void *adds_later(void *letter)
{
    static turns_t turns[] = {{'1', 0, 0}, {'2', 0, 0}};
    add(takes_turns, &turns[*(char *)letter - '1']);
    return NULL;
}

/* Promise: if the limit is raised, those who wait for a place come first. */
static void *raises_limit(void *unused)
{
    static turns_t member = {'m', 9, 0};
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = 1;
    add(takes_turns, &member);
    spawn_detached(adds_later, "1");
    aco_task_yield();
    group.limit = 2;
    spawn_detached(adds_later, "2");
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_HISTORY("m1122m");
    CHECK_EQ(group.succeeded, 3);
    return unused;
}

static void groups(void)
{
    in_task(all_succeed);
    in_task(failure_cancels);
    in_task(reasons);
    in_task(keeps_going);
    in_task(first_success);
    in_task(bounded);
    in_task(raises_limit);
    in_task(deadline_around);
    in_task(nested_groups);
    in_task(members_spawn);
    in_task(refuses);
}

static void failures(void)
{
    FAILS(aco_group_begin(&group, ACO_KEEP_GOING), -1, EPERM, "aco_group_begin", NULL, "no task is running");
    ABORTS(run_leaver, "aco_exit", spawn_detached(leaves_group, NULL), "ends inside 1 group(s) that it began");
    run();
    memset(history, 0, sizeof history);
}

int main(void)
{
    static void (*const tests[])(void) = {groups, deadlock, failures, NULL};
    with_all_kinds(tests);
    return check_result("scheduler_group");
}
