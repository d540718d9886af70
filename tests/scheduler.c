/* Promises of the scheduler (include/aco/scheduler.h), one function each: the order of turns, how tasks end and are joined,
 * waiting of every kind, time, the idle hook, deadlock reports, and every refusal. Those that tell of the order run three times:
 * with tasks that switch to each other directly, and with two kinds that go by way of aco_run(). Random programs of all of
 * it are in scheduler_model.c. */
#define _GNU_SOURCE
#include <aco/scheduler.h>
#include "check.h"
#include "child.h"
#include "refuses.h"
#include "sanitizers.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>

enum { MANY = SANITIZED ? 500 : 10000 };

#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define OWN_FP_POSSIBLE 0
#else
#define OWN_FP_POSSIBLE 1
#endif

static unsigned kind; /* of the tasks of this round: 0, ACO_OWN_FP or ACO_OWN_EXCEPTIONS */

static aco_t *spawn_as(aco_function_t fn, void *arg, unsigned flags, const char *name)
{
    aco_options_t o = {0};
    aco_t *task;
    o.flags = flags | kind;
    o.name = name;
    task = aco_spawn(fn, arg, o.flags || name ? &o : NULL);
    CHECK(task != NULL);
    return task;
}

static aco_t *spawn(aco_function_t fn, void *arg)
{
    return spawn_as(fn, arg, 0, NULL);
}

static aco_t *spawn_detached(aco_function_t fn, void *arg)
{
    return spawn_as(fn, arg, ACO_DETACHED, NULL);
}

static void run(void)
{
    if (aco_run() != 0) {
        fprintf(stderr, "aco_run: %s\n", aco_error_message());
        CHECK(!"aco_run");
    }
}

/* What happened, a letter each. */
static char history[1024];

static void say(char c)
{
    size_t length = strlen(history);
    if (length < sizeof history - 1)
        history[length] = c;
}

static void check_history(int line, const char *wanted)
{
    if (strcmp(history, wanted) != 0) {
        fprintf(stderr, "%s:%d: wanted \"%s\", it was \"%s\"\n", __FILE__, line, wanted, history);
        CHECK(!"the order");
    }
    memset(history, 0, sizeof history);
}
#define CHECK_HISTORY(wanted) check_history(__LINE__, wanted)

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

/* Nobody can run. Puts the report into text[sz]. */
static void check_deadlock(char *text, size_t sz)
{
    int kept = dup(STDERR_FILENO), result, error;
    FILE *file = tmpfile();
    dup2(fileno(file), STDERR_FILENO);
    errno = 0;
    result = aco_run();
    error = errno;
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK_EQ(result, -1);
    CHECK_EQ(error, EDEADLK);
    rewind(file);
    text[fread(text, 1, sz - 1, file)] = 0;
    fclose(file);
}

/* ---- Turns ---- */

static void *three_turns(void *name)
{
    for (int i = 0; i < 3; i++) {
        say(*(char *)name);
        CHECK_EQ(aco_task_yield(), 0);
    }
    return NULL;
}

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
    CHECK_EQ(aco_join(task, &result), 0); /* by the thread's own flow of control, after the end */
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
    other = spawn(give_back, &n); /* an ended task is an ordinary coroutine that is done */
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
    REFUSES(aco_join(aco_get_co(), NULL), -1, EDEADLK, "aco_join", aco_get_co(), "joins itself");
    return NULL;
}

/* One that is not among the spares when it has ended: it has a name. */
static void *joins_twice(void *task)
{
    CHECK_EQ(aco_join(task, NULL), 0);
    REFUSES(aco_join(task, NULL), -1, ESRCH, "aco_join", task, "was destroyed");
    REFUSES(aco_detach(task), -1, ESRCH, "aco_detach", task, "was destroyed");
    REFUSES(aco_restart(task, give_back, NULL), -1, ESRCH, "aco_restart", task, "was destroyed");
    return NULL;
}

static void joined_twice(void)
{
    aco_options_t named = {0};
    aco_t *done = aco_new(give_back, NULL, NULL);
    named.name = "named";
    spawn_detached(joins_twice, aco_spawn(give_back, NULL, &named));
    run();
    aco_send(done, NULL); /* an ordinary coroutine that has ended is no task */
    REFUSES(aco_join(done, NULL), -1, EINVAL, "aco_join", done, "is not a task");
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
    REFUSES(aco_join(joined, NULL), -1, EPERM, "aco_join", NULL, "root context");
    run();
    CHECK_EQ(aco_join(myself, NULL), 0);
    task = spawn_as(three_turns, "x", ACO_DETACHED, NULL);
    REFUSES(aco_join(task, NULL), -1, EINVAL, "aco_join", task, "is detached");
    REFUSES(aco_detach(task), -1, EINVAL, "aco_detach", task, "is detached");
    REFUSES(aco_join(NULL, NULL), -1, EINVAL, "aco_join", NULL, "NULL");
    joined_twice();
    REFUSES(aco_detach(NULL), -1, EINVAL, "aco_detach", NULL, "NULL");
    REFUSES(aco_unpark(NULL), -1, EINVAL, "aco_unpark", NULL, "NULL");
    run();
    CHECK_HISTORY("xxx");
    task = aco_new(give_back, NULL, NULL);
    REFUSES(aco_join(task, NULL), -1, EINVAL, "aco_join", task, "is not a task");
    REFUSES(aco_unpark(task), -1, EINVAL, "aco_unpark", task, "is not a task");
    aco_destroy(task);
    task = spawn(give_back, NULL);
    run();
    REFUSES(aco_unpark(task), -1, ESRCH, "aco_unpark", task, "has ended");
    CHECK_EQ(aco_join(task, NULL), 0);
    if (!kind) /* else its memory may be gone */
        REFUSES(aco_join(task, NULL), -1, ESRCH, "aco_join", task, "was destroyed");
}

/* ---- What else is for tasks ---- */

static aco_key_t key;
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
    CHECK_EQ(aco_key_create(&key, destroy_value), 0);
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
    CHECK_EQ(aco_key_delete(key), 0);
}

/* ---- Coroutines in tasks ---- */

static void *counts(void *unused)
{
    (void)unused;
    for (intptr_t i = 1; i < 1000000; i++) {
        errno = 0;
        CHECK_EQ(aco_task_yield(), -1);
        CHECK_EQ(errno, EPERM);
        aco_yield_value((void *)i);
    }
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
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(0);
    aco_t *me = aco_get_co();
    CHECK_EQ(aco_state(task), ACO_STATE_RESUMING);
    REFUSES(aco_sleep(1), -1, EPERM, "aco_sleep", me, "is not a task");
    REFUSES(aco_mutex_trylock(&mutex), -1, EPERM, "aco_mutex_trylock", me, "is not a task");
    REFUSES(aco_run(), -1, EPERM, "aco_run", me, "is a coroutine");
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

/* ---- What is refused ---- */

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
    REFUSES(aco_send(task, NULL), ACO_ERROR, EPERM, "aco_send", task, "is a task");
    REFUSES(aco_cancel(task), -1, EPERM, "aco_cancel", task, "is a task");
    REFUSES(aco_restart(task, give_back, NULL), -1, EPERM, "aco_restart", task, "is a task");
    resuming = task;
    ABORTS(resume_it, "aco_resume", task, "is a task");
    ABORTS(destroy_it, "aco_destroy", task, "is a task");
    ABORTS(reset_it, "aco_reset", task, "is a task");
    ABORTS(create_under_it, "aco_create", task, "not a main coroutine");
}

static void *yields_elsewhere(void *task)
{
    aco_t *me = aco_get_co(), *co = aco_new(give_back, NULL, NULL);
    REFUSES(aco_yield_to(co), -1, EPERM, "aco_yield_to", me, "is a task");
    REFUSES(aco_yield_to(task), -1, EPERM, "aco_yield_to", me, "is a task");
    CHECK_EQ(aco_yield_to(me), 0);
    aco_destroy(co);
    REFUSES(aco_send(me, NULL), ACO_ERROR, EPERM, "aco_send", me, "is a task");
    REFUSES(aco_run(), -1, EPERM, "aco_run", me, "is a coroutine");
    return NULL;
}

static void *yields_to_a_task(void *task)
{
    REFUSES(aco_yield_to(task), -1, EPERM, "aco_yield_to", task, "is a task");
    return NULL;
}

static void waits_in_cleanup(void *unused)
{
    aco_t *me = aco_get_co();
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    (void)unused;
    REFUSES(aco_task_yield(), -1, EPERM, "aco_task_yield", me, "is in its cleanup");
    REFUSES(aco_park("x"), -1, EPERM, "aco_park", me, "is in its cleanup");
    REFUSES(aco_sleep(0), -1, EPERM, "aco_task_yield", me, "is in its cleanup");
    CHECK_EQ(aco_mutex_trylock(&mutex), 0);
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
    REFUSES(aco_spawn(NULL, NULL, NULL), NULL, EINVAL, "aco_spawn", NULL, "the function is NULL");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.flags = wrong[i].flags;
        REFUSES(aco_spawn(give_back, NULL, &o), NULL, EINVAL, "aco_spawn", NULL, wrong[i].reason);
    }
    o.flags = ACO_DETACHED;
    REFUSES(aco_new(give_back, NULL, &o), NULL, EINVAL, "aco_new", NULL, "unknown flags");
    o.flags = 0;
    o.stack = aco_share_stack_new(0);
    REFUSES(aco_spawn(give_back, NULL, &o), NULL, EINVAL, "aco_spawn", NULL, "private stacks");
    aco_share_stack_destroy(o.stack);
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
    REFUSES(aco_task_yield(), -1, EPERM, "aco_task_yield", NULL, reason);
    REFUSES(aco_park(NULL), -1, EPERM, "aco_park", NULL, reason);
    REFUSES(aco_sleep(1), -1, EPERM, "aco_sleep", NULL, reason);
    REFUSES(aco_mutex_lock(&mutex), -1, EPERM, "aco_mutex_lock", NULL, reason);
    REFUSES(aco_mutex_trylock(&mutex), -1, EPERM, "aco_mutex_trylock", NULL, reason);
    REFUSES(aco_mutex_unlock(&mutex), -1, EPERM, "aco_mutex_unlock", NULL, reason);
    REFUSES(aco_cond_wait(&cond, &mutex), -1, EPERM, "aco_cond_wait", NULL, reason);
    REFUSES(aco_semaphore_acquire(&semaphore), -1, EPERM, "aco_semaphore_acquire", NULL, reason);
    REFUSES(aco_wait_group_wait(&group), -1, EPERM, "aco_wait_group_wait", NULL, reason);
    REFUSES(aco_channel_send(channel, &c), -1, EPERM, "aco_channel_send", NULL, reason);
    REFUSES(aco_channel_send(NULL, &c), -1, EINVAL, "aco_channel_send", NULL, "the channel is NULL");
    REFUSES(aco_channel_receive(channel, &c), -1, EPERM, "aco_channel_receive", NULL, reason);
    REFUSES(aco_select(&one, 1, -1), -1, EPERM, "aco_select", NULL, reason);
    CHECK_EQ(aco_channel_try_send(channel, &c), 0); /* what does not wait is for all */
    CHECK_EQ(aco_channel_try_receive(channel, &c), 0);
    CHECK_EQ(aco_select(&one, 1, 0), 0);
    CHECK_EQ(aco_semaphore_try_acquire(&semaphore), 0);
    aco_semaphore_release(&semaphore);
    CHECK_EQ(aco_channel_destroy(channel), 0);
}

/* ---- Parking ---- */

static void *parks(void *name)
{
    say(*(char *)name);
    CHECK_EQ(aco_park("a test"), 0);
    say(*(char *)name);
    return NULL;
}

static void *unparks(void *task)
{
    say('u');
    CHECK_EQ(aco_unpark(task), 0);
    CHECK_EQ(aco_state(task), ACO_STATE_SUSPENDED);
    say('u');
    return NULL;
}

static void *unparks_later(void *task)
{
    aco_task_yield();
    say('l');
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void *parks_thrice(void *unused)
{
    (void)unused;
    CHECK_EQ(aco_unpark(aco_get_co()), 0); /* running: however often, one permit */
    CHECK_EQ(aco_unpark(aco_get_co()), 0);
    CHECK_EQ(aco_park(NULL), 0);
    say('1');
    aco_task_yield(); /* unparked meanwhile */
    CHECK_EQ(aco_park(NULL), 0);
    say('2');
    CHECK_EQ(aco_park(NULL), 0);
    say('3');
    return NULL;
}

static void *waits_for_semaphore(void *semaphore)
{
    CHECK_EQ(aco_semaphore_acquire(semaphore), 0);
    say('s');
    CHECK_EQ(aco_park(NULL), 0); /* the permit came while it waited for something else */
    say('p');
    return NULL;
}

static void *releases(void *semaphore)
{
    aco_semaphore_release(semaphore);
    return NULL;
}

static void parking(void)
{
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(0);
    aco_t *task = spawn_as(parks, "p", ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(three_turns, "x");
    run();
    CHECK_HISTORY("puuxpxx");
    task = spawn_as(parks_thrice, NULL, ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(unparks_later, task);
    run();
    CHECK_HISTORY("1uu2l3");
    task = spawn_as(waits_for_semaphore, &semaphore, ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(releases, &semaphore);
    run();
    CHECK_HISTORY("uusp");
}

/* ---- Time ---- */

typedef struct nap {
    int64_t ns;
    char name;
    int64_t since; /* 0: when it begins */
} nap_t;

static int64_t last_began;

static void *naps(void *arg)
{
    const nap_t *nap = arg;
    int64_t before = last_began = aco_now();
    CHECK_EQ(aco_sleep(nap->since ? nap->since + nap->ns - before : nap->ns), 0);
    CHECK(aco_now() - (nap->since ? nap->since : before) >= nap->ns);
    say(nap->name);
    return NULL;
}

static int napping;

static void *busy_while_napping(void *unused)
{
    long turns = 0;
    for (; napping; turns++)
        aco_task_yield();
    CHECK(turns > 0);
    return unused;
}

static void *naps_and_tells(void *unused)
{
    CHECK_EQ(aco_sleep(1000000), 0); /* while others run all the time */
    napping = 0;
    return unused;
}

static void *sleeps_no_time(void *unused)
{
    say('0');
    CHECK_EQ(aco_sleep(0), 0);
    CHECK_EQ(aco_sleep(-5), 0);
    say('0');
    return unused;
}

static void *naps_at_random(void *seed)
{
    uint32_t x = (uint32_t)(uintptr_t)seed * 2654435761u + 1;
    for (int i = 0; i < 20; i++) {
        int64_t ns = (int64_t)((x = x * 1664525u + 1013904223u) >> 14), before = aco_now();
        CHECK_EQ(aco_sleep(ns), 0);
        CHECK(aco_now() - before >= ns);
    }
    return NULL;
}

static void time_passes(void)
{
    static nap_t order[] = {{0, 'c', 0}, {0, 'b', 0}, {0, 'a', 0}, {0, 'd', 0}};
    static const int64_t unit[] = {6, 3, 1, 12};
    /* On a busy machine one may begin when another is due already: then their order is another, and they nap longer. */
    for (int64_t ns = 5000000, before; ns < 3000000000; ns *= 4) {
        memset(history, 0, sizeof history);
        before = aco_now();
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            order[i].ns = unit[i] * ns;
            order[i].since = before;
            spawn_detached(naps, &order[i]);
        }
        run();
        CHECK(aco_now() - before >= 12 * ns);
        if (last_began - before < ns)
            break;
    }
    CHECK_HISTORY("abcd");
    napping = 1;
    spawn_detached(busy_while_napping, NULL);
    spawn_detached(naps_and_tells, NULL);
    run();
    spawn_detached(sleeps_no_time, NULL);
    spawn_detached(three_turns, "x");
    run();
    CHECK_HISTORY("0xx0x");
    for (uintptr_t i = 0; i < 100; i++)
        spawn_detached(naps_at_random, (void *)i);
    run();
}

/* Waits that end by time or before, in any order. Who is due when is known but for the moments between two calls. */
enum { TIMED = 200 };
static struct timed {
    aco_channel_t *channel;
    int64_t earliest, latest; /* when it is due */
} timed[TIMED];
static int ended_by_time[TIMED], ended;
static uint32_t dice = 1;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % sides;
}

static void *waits_some_time(void *arg)
{
    struct timed *me = arg;
    int64_t timeout = 1000000 + (int64_t)roll(100) * 200000;
    aco_select_case_t one = {me->channel, NULL, ACO_SELECT_RECEIVE, 0, {0}};
    me->earliest = aco_now() + timeout;
    if (me > timed)
        me[-1].latest += aco_now();
    me->latest = timeout; /* after the call, when the next one runs */
    if (aco_select(&one, 1, timeout) == 0)
        return NULL;
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(aco_now() >= me->earliest);
    ended_by_time[ended++] = (int)(me - timed);
    return NULL;
}

static void *ends_some_waits(void *unused)
{
    timed[TIMED - 1].latest += aco_now();
    for (int i = 0; i < TIMED; i++) {
        errno = 0;
        aco_channel_try_send(timed[roll(TIMED)].channel, NULL);
    }
    return unused;
}

static void timers(void)
{
    ended = 0;
    for (int i = 0; i < TIMED; i++) {
        timed[i].channel = aco_channel_new(0, 0);
        spawn_detached(waits_some_time, &timed[i]);
    }
    spawn_detached(ends_some_waits, NULL);
    run();
    CHECK(ended > TIMED / 5 && ended < TIMED);
    for (int i = 0; i < ended; i++)
        for (int j = i + 1; j < ended; j++)
            CHECK(timed[ended_by_time[i]].earliest <= timed[ended_by_time[j]].latest);
    for (int i = 0; i < TIMED; i++)
        CHECK_EQ(aco_channel_destroy(timed[i].channel), 0);
}

/* ---- The idle hook ---- */

typedef struct events {
    aco_t *waiting;
    int calls, polls, answer, left;
    int64_t timeout;
} events_t;

enum { FAILS_WHEN_POLLED = -2 };

static int idle(void *ctx, int64_t timeout_ns)
{
    events_t *events = ctx;
    events->timeout = timeout_ns;
    if (timeout_ns == 0) {
        events->polls++;
        errno = EIO;
        return events->answer == FAILS_WHEN_POLLED ? -1 : 1;
    }
    events->calls++;
    REFUSES(aco_run(), -1, EBUSY, "aco_run", NULL, "the idle hook");
    CHECK(aco_is_in_main_co());
    if (events->left && events->left--) {
        say('i');
        CHECK_EQ(aco_unpark(events->waiting), 0);
        return 1;
    }
    if (events->answer < 0)
        errno = EIO;
    return events->answer;
}

static void *waits_for_events(void *events)
{
    while (((events_t *)events)->left) {
        CHECK_EQ(aco_park("an event"), 0);
        say('e');
    }
    return NULL;
}

static void *yields_long(void *n)
{
    for (int i = 0; i < *(int *)n; i++)
        aco_task_yield();
    return NULL;
}

static int spawns_once(void *left, int64_t timeout_ns)
{
    (void)timeout_ns;
    if (!*(int *)left)
        return 0;
    --*(int *)left;
    spawn_detached(three_turns, "h");
    return 1;
}

static void events(void)
{
    events_t e = {NULL, 0, 0, 0, 3, 0};
    nap_t nap = {3000000, 'n', 0};
    int n = 1000, once = 1;
    aco_t *parked;
    char report[256];
    CHECK_EQ(aco_on_idle(idle, &e), 0);
    run(); /* no task: the hook is not asked */
    CHECK_EQ(e.calls + e.polls, 0);
    e.waiting = spawn_as(waits_for_events, &e, ACO_DETACHED, NULL);
    run();
    CHECK_HISTORY("ieieie");
    CHECK_EQ(e.calls, 3);
    CHECK_EQ(e.timeout, -1);
    spawn_detached(yields_long, &n); /* it is asked while tasks run, too */
    run();
    CHECK(e.polls > 5 && e.polls < 500);
    CHECK_EQ(e.calls, 3);
    /* Asked with the time that is left; nothing can come of it, so the scheduler sleeps itself. Longer, where a busy machine lets the
     * nap pass before. */
    for (e.timeout = 0; e.timeout == 0 && nap.ns < 10000000000; nap.ns *= 2) {
        spawn_detached(naps, &nap);
        run();
        CHECK_HISTORY("n");
        CHECK(e.timeout >= 0 && e.timeout <= nap.ns);
    }
    CHECK(e.calls > 3 && e.timeout > 0);
    e.answer = -1;
    parked = spawn_as(parks, "p", ACO_DETACHED, NULL);
    REFUSES(aco_run(), -1, EIO, "aco_run", NULL, "the idle hook failed");
    CHECK_EQ(aco_unpark(parked), 0);
    run();
    CHECK_HISTORY("pp");
    e.answer = FAILS_WHEN_POLLED;
    spawn_detached(yields_long, &n);
    REFUSES(aco_run(), -1, EIO, "aco_run", NULL, "the idle hook failed");
    e.answer = 0;
    run();
    CHECK_EQ(aco_on_idle(spawns_once, &once), 0);
    parked = spawn_as(parks, "p", ACO_DETACHED, NULL);
    check_deadlock(report, sizeof report);
    CHECK(strstr(report, "to be unparked: a test"));
    CHECK_HISTORY("phhh");
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK_EQ(aco_unpark(parked), 0);
    run();
    CHECK_HISTORY("p");
}

/* ---- Deadlock ---- */

static aco_mutex_t fork_a, fork_b;
static aco_cond_t condition;
static aco_semaphore_t empty_semaphore;
static aco_wait_group_t group;
static aco_channel_t *channel, *other_channel;
static aco_t *first, *second;
static aco_mutex_t left_locked; /* by the first of two that lock it */
static void *left_by;
static int line_of_lock;

static void *takes_both(void *left)
{
    CHECK_EQ(aco_mutex_lock(left), 0);
    aco_task_yield();
    CHECK_EQ(aco_mutex_lock_at(left == &fork_a ? &fork_b : &fork_a, "here:1"), 0);
    return NULL;
}

static void *waits_for(void *what)
{
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    aco_select_case_t two[2] = {{other_channel, NULL, ACO_SELECT_RECEIVE, 0, {0}}, {other_channel, NULL, ACO_SELECT_SEND, 0, {0}}};
    switch ((intptr_t)what) {
    case 0:
        return (void *)(intptr_t)aco_park_at("Godot", "here:2");
    case 1:
        return (void *)(intptr_t)aco_join_at(first, NULL, "here:3");
    case 2:
        aco_mutex_lock(&mutex);
        return (void *)(intptr_t)aco_cond_wait_at(&condition, &mutex, "here:4");
    case 3:
        return (void *)(intptr_t)aco_semaphore_acquire_at(&empty_semaphore, "here:5");
    case 4:
        aco_wait_group_add(&group, 2);
        return (void *)(intptr_t)aco_wait_group_wait_at(&group, "here:6");
    case 5:
        return (void *)(intptr_t)aco_channel_receive_at(channel, NULL, "here:7");
    case 6:
        return (void *)(intptr_t)aco_select_at(two, 2, -1, "here:8");
    }
    line_of_lock = __LINE__ + 1;
    CHECK_EQ(aco_mutex_lock(&left_locked), 0);
    left_by = aco_get_co();
    return NULL;
}

enum { KINDS = 9 };
static aco_t *waiting_for[KINDS];

static void check_report(const char *report, const aco_t *task, const char *name, const char *what)
{
    char line[512];
    snprintf(line, sizeof line, "acorn: aco_run: coroutine %p: %swaits at %s", (const void *)task, name, what);
    if (!strstr(report, line)) {
        fprintf(stderr, "wanted the line \"%s\", the report is:\n%s", line, report);
        CHECK(!"the report");
    }
}

static void deadlock(void)
{
    static char report[4096], what[256];
    int lines = 0;
    channel = aco_channel_new(0, 8);
    other_channel = aco_channel_new(0, 8);
    first = spawn_as(takes_both, &fork_a, 0, "Kant");
    second = spawn(takes_both, &fork_b);
    for (intptr_t i = 0; i < KINDS; i++)
        waiting_for[i] = spawn_as(waits_for, (void *)i, ACO_DETACHED, i == 2 ? "Hume" : NULL);
    check_deadlock(report, sizeof report);
    CHECK(strstr(aco_error_message(), "aco_run: deadlock: 10 task(s) wait"));
    for (const char *at = report; *at; at++)
        lines += *at == '\n';
    CHECK_EQ(lines, 10);
    snprintf(what, sizeof what, "here:1 for mutex %p, held by coroutine %p\n", (void *)&fork_b, (void *)second);
    check_report(report, first, "(Kant) ", what);
    snprintf(what, sizeof what, "here:1 for mutex %p, held by coroutine %p (Kant)\n", (void *)&fork_a, (void *)first);
    check_report(report, second, "", what);
    check_report(report, waiting_for[0], "", "here:2 to be unparked: Godot\n");
    snprintf(what, sizeof what, "here:3 to join coroutine %p (Kant)\n", (void *)first);
    check_report(report, waiting_for[1], "", what);
    snprintf(what, sizeof what, "here:4 for condition %p\n", (void *)&condition);
    check_report(report, waiting_for[2], "(Hume) ", what);
    snprintf(what, sizeof what, "here:5 for semaphore %p\n", (void *)&empty_semaphore);
    check_report(report, waiting_for[3], "", what);
    snprintf(what, sizeof what, "here:6 for wait group %p, whose count is 2\n", (void *)&group);
    check_report(report, waiting_for[4], "", what);
    snprintf(what, sizeof what, "here:7 to receive from channel %p\n", (void *)channel);
    check_report(report, waiting_for[5], "", what);
    snprintf(what, sizeof what, "here:8 to receive from channel %p or to send to channel %p\n", (void *)other_channel, (void *)other_channel);
    check_report(report, waiting_for[6], "", what);
    snprintf(what, sizeof what, "scheduler.c:%d for mutex %p, held by coroutine %p (which has ended)\n", line_of_lock, (void *)&left_locked, left_by);
    CHECK(strstr(report, what)); /* the place that the plain form gives */
}

/* ---- Mutex ---- */

typedef struct shared {
    aco_mutex_t mutex;
    aco_cond_t cond;
    aco_semaphore_t semaphore;
    aco_wait_group_t group;
    aco_channel_t *channel, *other;
    int inside, n;
} shared_t;

static void *locks(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
        CHECK(s->mutex.owner == aco_get_co());
        CHECK_EQ(s->inside++, 0);
        say(name);
        REFUSES(aco_mutex_lock(&s->mutex), -1, EDEADLK, "aco_mutex_lock", aco_get_co(), "before");
        aco_task_yield();
        aco_task_yield();
        s->inside--;
        CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    }
    REFUSES(aco_mutex_unlock(&s->mutex), -1, EPERM, "aco_mutex_unlock", aco_get_co(), "has not locked");
    return NULL;
}

static void *tries(void *arg)
{
    shared_t *s = arg;
    errno = 0;
    CHECK_EQ(aco_mutex_trylock(&s->mutex), -1);
    CHECK_EQ(errno, EBUSY);
    while (s->mutex.owner)
        aco_task_yield();
    CHECK_EQ(aco_mutex_trylock(&s->mutex), 0);
    errno = 0;
    CHECK_EQ(aco_mutex_trylock(&s->mutex), -1);
    CHECK_EQ(errno, EBUSY);
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void mutexes(void)
{
    shared_t s = {0};
    for (int i = 0; i < 3; i++)
        spawn_detached(locks, &s);
    spawn_detached(tries, &s);
    run();
    CHECK_HISTORY("abcabc");
    CHECK(s.mutex.owner == NULL);
}

/* ---- Condition ---- */

static void *waits_on_condition(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    CHECK_EQ(aco_cond_wait(&s->cond, &s->mutex), 0);
    CHECK(s->mutex.owner == aco_get_co());
    say(name);
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void *waits_on_condition_in_vain(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    errno = 0;
    CHECK_EQ(aco_cond_wait_for(&s->cond, &s->mutex, 1000000), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(s->mutex.owner == aco_get_co());
    say('t');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    REFUSES(aco_cond_wait(&s->cond, &s->mutex), -1, EPERM, "aco_cond_wait", aco_get_co(), "has not locked");
    return NULL;
}

static void *signals(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    say('s');
    aco_cond_signal(&s->cond);
    aco_task_yield(); /* woken, but the mutex is not free yet */
    aco_cond_signal(&s->cond);
    say('s');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    aco_cond_broadcast(&s->cond);
    say('b');
    return NULL;
}

static void *holds_for_long(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    CHECK_EQ(aco_sleep(5000000), 0);
    say('h');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void conditions(void)
{
    shared_t s = {0};
    for (int i = 0; i < 4; i++)
        spawn_detached(waits_on_condition, &s);
    spawn_detached(signals, &s);
    run();
    CHECK_HISTORY("ssbabcd");
    spawn_detached(waits_on_condition_in_vain, &s);
    run();
    CHECK_HISTORY("t");
    spawn_detached(waits_on_condition_in_vain, &s);
    spawn_detached(holds_for_long, &s); /* time is over meanwhile: it still gets the mutex before it returns */
    run();
    CHECK_HISTORY("ht");
    aco_cond_signal(&s.cond); /* nobody there */
}

/* ---- Semaphore, wait group ---- */

static void *acquires(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    CHECK_EQ(aco_semaphore_acquire(&s->semaphore), 0);
    say(name);
    CHECK(++s->inside <= 2);
    aco_task_yield();
    s->inside--;
    aco_semaphore_release(&s->semaphore);
    CHECK_EQ(aco_wait_group_done(&s->group), 0);
    return NULL;
}

static void *waits_for_group(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_wait_group_wait(&s->group), 0);
    CHECK_EQ(s->group.count, 0);
    say('w');
    return NULL;
}

static void semaphores_and_groups(void)
{
    shared_t s = {0};
    s.semaphore.value = 2;
    spawn_detached(waits_for_group, &s); /* the count is zero */
    run();
    CHECK_HISTORY("w");
    CHECK_EQ(aco_wait_group_add(&s.group, 5), 0);
    spawn_detached(waits_for_group, &s);
    for (int i = 0; i < 5; i++)
        spawn_detached(acquires, &s);
    spawn_detached(waits_for_group, &s);
    run();
    CHECK_HISTORY("abcdeww");
    CHECK_EQ(s.semaphore.value, 2);
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), 0);
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), 0);
    errno = 0;
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), -1);
    CHECK_EQ(errno, EAGAIN);
    REFUSES(aco_wait_group_done(&s.group), -1, ERANGE, "aco_wait_group_done", NULL, "whose count is 0");
    REFUSES(aco_wait_group_add(&s.group, -1), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is 0");
    CHECK_EQ(aco_wait_group_add(&s.group, 3), 0);
    REFUSES(aco_wait_group_add(&s.group, -4), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is 3");
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_wait_group_add(&s.group, PTRDIFF_MAX - 1), 0);
    REFUSES(aco_wait_group_add(&s.group, PTRDIFF_MAX), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is");
}

/* ---- Channels ---- */

enum { LARGEST = 40 };

typedef struct traffic {
    aco_channel_t *channel;
    size_t size;
    int n, senders, received, receivers;
    int sum;
} traffic_t;

static void *sends(void *arg)
{
    traffic_t *t = arg;
    unsigned char element[LARGEST], name = (unsigned char)t->senders++;
    for (int i = 0; i < t->n; i++) {
        memset(element, i, sizeof element);
        element[0] = name;
        CHECK_EQ(aco_channel_send(t->channel, element), 0);
        memset(element, 0xee, sizeof element); /* a copy was sent */
    }
    if (--t->senders == 0)
        CHECK_EQ(aco_channel_close(t->channel), 0);
    return NULL;
}

static void *receives(void *arg)
{
    traffic_t *t = arg;
    unsigned char element[LARGEST + 1];
    int last[3] = {-1, -1, -1}; /* had of each sender */
    for (;;) {
        memset(element, 0x77, sizeof element);
        errno = 0;
        if (aco_channel_receive(t->channel, element) != 0)
            break;
        t->received++;
        CHECK_EQ(element[t->size], 0x77);
        if (t->size < 2)
            continue;
        for (size_t i = 2; i < t->size; i++)
            CHECK_EQ(element[i], element[1]);
        CHECK(element[0] < 3);
        CHECK(element[1] > last[element[0] % 3]);
        CHECK(t->receivers > 1 || element[1] == last[element[0] % 3] + 1);
        last[element[0] % 3] = element[1];
        t->sum += element[1];
    }
    CHECK_EQ(errno, EPIPE);
    return NULL;
}

static void traffic(size_t capacity, size_t size, int receivers)
{
    traffic_t t = {aco_channel_new(capacity, size), size, 100, 0, 0, receivers, 0};
    for (int i = 0; i < 3; i++)
        spawn_detached(sends, &t);
    for (int i = 0; i < receivers; i++)
        spawn_detached(receives, &t);
    run();
    CHECK_EQ(t.received, 300);
    CHECK_EQ(t.sum, size < 2 ? 0 : 3 * 99 * 100 / 2);
    CHECK_EQ(aco_channel_destroy(t.channel), 0);
}

static void *is_closed_on(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    int sending = s->n > 2;
    long long value = 1;
    errno = 0;
    CHECK_EQ(sending ? aco_channel_send(s->other, &value) : aco_channel_receive(s->channel, &value), -1);
    CHECK_EQ(errno, EPIPE);
    say(name);
    return NULL;
}

static void *closes(void *arg)
{
    shared_t *s = arg;
    REFUSES(aco_channel_destroy(s->channel), -1, EBUSY, "aco_channel_destroy", NULL, "tasks wait");
    CHECK_EQ(aco_channel_close(s->channel), 0);
    CHECK_EQ(aco_channel_close(s->other), 0);
    say('c');
    return NULL;
}

static void channels(void)
{
    static const size_t sizes[] = {0, 1, 3, sizeof(void *), 24, LARGEST};
    shared_t s = {0};
    long long value = 7, got = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t capacity = 0; capacity < 8; capacity += capacity + 1)
            for (int receivers = 1; receivers < 3; receivers++)
                traffic(capacity, sizes[i], receivers);
    s.channel = aco_channel_new(0, sizeof value);
    s.other = aco_channel_new(0, sizeof value);
    for (int i = 0; i < 4; i++)
        spawn_detached(is_closed_on, &s);
    spawn_detached(closes, &s);
    run();
    CHECK_HISTORY("cabcd");
    REFUSES(aco_channel_close(s.channel), -1, EPIPE, "aco_channel_close", NULL, "closed before");
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    CHECK_EQ(aco_channel_destroy(s.other), 0);
    s.channel = aco_channel_new(2, sizeof value);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK_EQ(aco_channel_try_send(s.channel, &value), i < 2 ? 0 : -1);
        CHECK_EQ(errno, i < 2 ? 0 : EAGAIN);
    }
    CHECK_EQ(aco_channel_close(s.channel), 0);
    CHECK_EQ(aco_channel_try_send(s.channel, &value), -1);
    CHECK_EQ(errno, EPIPE);
    for (int i = 0; i < 3; i++) { /* what is in it comes out all the same */
        errno = 0;
        CHECK_EQ(aco_channel_try_receive(s.channel, &got), i < 2 ? 0 : -1);
        CHECK_EQ(errno, i < 2 ? 0 : EPIPE);
    }
    CHECK_EQ(got, 7);
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    REFUSES(aco_channel_new(SIZE_MAX / 4, 8), NULL, EINVAL, "aco_channel_new", NULL, "too large");
    REFUSES(aco_channel_close(NULL), -1, EINVAL, "aco_channel_close", NULL, "NULL");
    REFUSES(aco_channel_destroy(NULL), -1, EINVAL, "aco_channel_destroy", NULL, "NULL");
}

/* ---- Select ---- */

static void *sends_some(void *arg)
{
    shared_t *s = arg;
    int value = s->n++;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(aco_channel_send(value ? s->other : s->channel, &value), 0);
    return NULL;
}

static void *selects(void *arg)
{
    shared_t *s = arg;
    int a = -1, b = -1, seen[2] = {0};
    aco_select_case_t cases[3] = {{s->channel, &a, ACO_SELECT_RECEIVE, 0, {0}}, {NULL, NULL, ACO_SELECT_SEND, 0, {0}}, {s->other, &b, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 100; i++) {
        int chosen = aco_select(cases, 3, -1);
        CHECK(chosen == 0 || chosen == 2);
        CHECK_EQ(cases[chosen == 0 ? 0 : 2].error, 0);
        CHECK_EQ(chosen ? b : a, chosen / 2);
        seen[chosen == 2]++;
    }
    CHECK_EQ(seen[0], 50);
    CHECK_EQ(seen[1], 50);
    errno = 0;
    CHECK_EQ(aco_select(cases, 3, 0), -1);
    CHECK_EQ(errno, EAGAIN);
    errno = 0;
    CHECK_EQ(aco_select(cases, 3, 2000000), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    errno = 0;
    CHECK_EQ(aco_select(NULL, 0, 1), -1); /* a sleep */
    CHECK_EQ(errno, ETIMEDOUT);
    REFUSES(aco_select(NULL, 1, 0), -1, EINVAL, "aco_select", NULL, "NULL");
    REFUSES(aco_select(cases, -1, 0), -1, EINVAL, "aco_select", NULL, "is negative");
    CHECK_EQ(aco_channel_destroy(s->channel), 0); /* nobody waits there any more */
    CHECK_EQ(aco_channel_close(s->other), 0);
    cases[0].channel = NULL;
    CHECK_EQ(aco_select(cases, 3, -1), 2);
    CHECK_EQ(cases[2].error, EPIPE);
    CHECK_EQ(aco_channel_destroy(s->other), 0);
    return NULL;
}

static void null_elements(void)
{
    int value = 1;
    aco_channel_t *one = aco_channel_new(1, sizeof value);
    REFUSES(aco_channel_try_send(one, NULL), -1, EINVAL, "aco_channel_try_send", NULL, "the element is NULL");
    REFUSES(aco_channel_try_send(NULL, &value), -1, EINVAL, "aco_channel_try_send", NULL, "the channel is NULL");
    REFUSES(aco_channel_try_receive(NULL, &value), -1, EINVAL, "aco_channel_try_receive", NULL, "the channel is NULL");
    REFUSES(aco_channel_new(0, SIZE_MAX), NULL, EINVAL, "aco_channel_new", NULL, "too large");
    CHECK_EQ(aco_channel_destroy(one), 0);
}

/* Of two that are ready all the time neither starves. */
static void fair_selection(void)
{
    enum { EACH = 60 };
    int value = 0, seen[2] = {0}, in_a_row = 0, last = -1;
    aco_select_case_t cases[2] = {{NULL, &value, ACO_SELECT_RECEIVE, 0, {0}}, {NULL, &value, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 2; i++) {
        cases[i].channel = aco_channel_new(EACH, sizeof value);
        for (int j = 0; j < EACH; j++)
            CHECK_EQ(aco_channel_try_send(cases[i].channel, &value), 0);
    }
    while (seen[0] < EACH && seen[1] < EACH) {
        int chosen = aco_select(cases, 2, 0);
        seen[chosen == 1]++;
        in_a_row = chosen == last ? in_a_row + 1 : 1;
        last = chosen;
        CHECK(in_a_row <= 2);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_channel_destroy(cases[i].channel), 0);
}

typedef struct fairness {
    aco_channel_t *channels[2];
    int seen[2];
} fairness_t;

static void *selects_in_turn(void *arg)
{
    fairness_t *f = arg;
    int value = 0;
    aco_select_case_t cases[2] = {{f->channels[0], &value, ACO_SELECT_RECEIVE, 0, {0}}, {f->channels[1], &value, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 10; i++) {
        f->seen[aco_select(cases, 2, -1) == 1]++;
        aco_task_yield();
    }
    return NULL;
}

/* ... also in each of several tasks that take turns. */
static void fair_among_tasks(void)
{
    int value = 0;
    fairness_t f[2] = {{{NULL, NULL}, {0, 0}}, {{NULL, NULL}, {0, 0}}};
    for (int i = 0; i < 2; i++) {
        f[0].channels[i] = f[1].channels[i] = aco_channel_new(100, sizeof value);
        for (int j = 0; j < 100; j++)
            CHECK_EQ(aco_channel_try_send(f[0].channels[i], &value), 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_detach(aco_spawn(selects_in_turn, &f[i], NULL)), 0);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(f[i].seen[0], 5);
        CHECK_EQ(f[i].seen[1], 5);
        CHECK_EQ(aco_channel_destroy(f[0].channels[i]), 0);
    }
}

/* Either gives its number to the other, or takes the other's. */
static void *meets(void *arg)
{
    shared_t *s = arg;
    int mine = ++s->n, got = 0, chosen;
    aco_select_case_t both[2] = {{s->channel, &mine, ACO_SELECT_SEND, 0, {0}}, {s->channel, &got, ACO_SELECT_RECEIVE, 0, {0}}};
    chosen = aco_select(both, 2, -1);
    CHECK(chosen == 0 || chosen == 1);
    say(chosen ? 'r' : 's');
    if (chosen == 1)
        CHECK_EQ(got, 3 - mine);
    return NULL;
}

static void *selects_closed(void *arg)
{
    shared_t *s = arg;
    int value = 0;
    aco_select_case_t cases[2] = {{s->other, &value, ACO_SELECT_RECEIVE, 0, {0}}, {s->channel, &value, ACO_SELECT_SEND, 0, {0}}};
    CHECK_EQ(aco_select(cases, 2, 1000000000), 1); /* closed while it waits; its timer is gone, too */
    CHECK_EQ(cases[1].error, EPIPE);
    say('x');
    return NULL;
}

static void *closes_one(void *closed)
{
    CHECK_EQ(aco_channel_close(closed), 0);
    return NULL;
}

static void selections(void)
{
    shared_t s = {0};
    s.channel = aco_channel_new(0, sizeof(int));
    s.other = aco_channel_new(3, sizeof(int));
    spawn_detached(selects, &s);
    spawn_detached(sends_some, &s);
    spawn_detached(sends_some, &s);
    run();
    s.n = 0;
    s.channel = aco_channel_new(0, sizeof(int));
    s.other = aco_channel_new(0, sizeof(int));
    spawn_detached(meets, &s);
    spawn_detached(meets, &s);
    run();
    fair_selection();
    fair_among_tasks();
    null_elements();
    CHECK(strcmp(history, "rs") == 0 || strcmp(history, "sr") == 0);
    memset(history, 0, sizeof history);
    spawn_detached(selects_closed, &s);
    spawn_detached(closes_one, s.channel);
    run();
    CHECK_HISTORY("x");
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    CHECK_EQ(aco_channel_destroy(s.other), 0);
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
    REFUSES(aco_unpark(task), -1, EPERM, "aco_unpark", task, "another thread");
    REFUSES(aco_detach(task), -1, EPERM, "aco_detach", task, "another thread");
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
    REFUSES(aco_unpark(stays), -1, EPERM, "aco_unpark", stays, "another thread");
    run();
    CHECK_HISTORY("mmm");
    CHECK_EQ(aco_join(task, NULL), 0);
}

int main(int argc, char **argv)
{
    static const unsigned kinds[] = {0, ACO_OWN_FP, ACO_OWN_EXCEPTIONS};
    void (*const in_all_kinds[])(void) = {turns,   ends,       joins_refused, belongings,            nested,   refusals, parking, time_passes, timers, events,
                                          mutexes, conditions, semaphores_and_groups, channels, selections, many};
    if (argc > 1 && strcmp(argv[1], "scale") == 0)
        return scale();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kind = kinds[i];
        if (kind == ACO_OWN_FP && !OWN_FP_POSSIBLE) /* this unit's plain aco_yield() cannot switch them */
            continue;
        for (size_t j = 0; j < sizeof in_all_kinds / sizeof *in_all_kinds; j++)
            in_all_kinds[j]();
#ifndef ACO_CONFIG_NO_INLINE
        CHECK_EQ(aco__self()->slow_switch_tasks, 0); /* else all that follows would be slow */
#endif
    }
    kind = 0;
    nobody_waits_outside();
    environments();
    threads();
    deadlock();
    return check_result("scheduler");
}
