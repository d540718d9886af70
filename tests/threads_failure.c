/* What aco/threads.h does without memory or threads: each allocation of a program fails in turn, and from some on all
 * do; each thread cannot be made in turn. Nothing may hang; what fails says so. aco__answer_tell() is wrapped by the
 * linker's --wrap. */
#include "replace.h" /* first */

#include "threads_tests.h"

#include <aco/sync.h>

#include <sched.h>
#include <sys/wait.h>

static int calls, fail_at, fails_on; /* the nth allocation fails; with fails_on, all later ones too */
static int threads_made, fail_thread;
static __thread int is_refused; /* the thread gets no memory */
static int refusals;

static int fails(void)
{
    int n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED), at = __atomic_load_n(&fail_at, __ATOMIC_RELAXED);
    if (is_refused)
        add(&refusals, 1);
    return is_refused || (at && (n == at || (n > at && fails_on)));
}

#include "failing_allocator.h"

REAL(pthread_create);
static int failing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
    return ++threads_made == fail_thread ? EAGAIN : real_pthread_create(thread, attributes, fn, arg);
}

static int roots, leaves;

static void *leaf(void *arg)
{
    add(&leaves, 1);
    return aco_sleep(1000) == 0 ? arg : ACO_ERROR;
}

/* Submits as much as it can, to all. What was taken is called, or has failed with ENOMEM. */
static void *inner(void *arg)
{
    aco_mt_group_t group;
    int n = 0, ended;
    if (aco_mt_group_begin(&group, ACO_KEEP_GOING) != 0)
        return ACO_ERROR;
    for (int i = 0; i < 100; i++)
        if (i % 10 ? aco_submit(&group, leaf, NULL, NULL) == 0 : aco_submit(&group, leaf, NULL, TO(i / 10 % 2)) == 0)
            n++;
        else
            CHECK_EQ(errno, ENOMEM);
    ended = aco_mt_group_end(&group);
    CHECK_EQ(ended, group.failed ? -1 : 0);
    if (ended != 0)
        CHECK_EQ(errno, ENOMEM);
    CHECK(group.failed <= (size_t)n);
    add(arg, n == 100 && ended == 0);
    return NULL;
}

static void *root(void *arg)
{
    aco_mt_group_t group;
    add(&roots, 1);
    if (aco_mt_group_begin(&group, ACO_KEEP_GOING) != 0)
        return ACO_ERROR;
    for (int i = 0; i < 3; i++)
        (void)aco_submit(&group, inner, arg, NULL);
    (void)aco_mt_group_end(&group);
    return NULL;
}

/* Whether anything failed. */
static int run_once(void)
{
    int whole = 0;
    roots = 0;
    errno = 0;
    if (aco_threads_run(2, root, &whole, NULL) != 0) {
        CHECK(errno == ENOMEM || errno == EAGAIN);
        return 1;
    }
    CHECK_EQ(roots, 2);
    return whole != 6;
}

/* ---- A thread forks while another one is about to tell that a member has ended ---- */

static int is_awaited, is_telling, has_forked;
static __thread int is_slow; /* for once */

void __real_aco__answer_tell(aco__answer_t *answer);
void __wrap_aco__answer_tell(aco__answer_t *answer);
void __wrap_aco__answer_tell(aco__answer_t *answer)
{
    if (is_slow) {
        is_slow = 0;
        add(&is_telling, 1);
        while (!load(&has_forked))
            sched_yield();
    }
    __real_aco__answer_tell(answer);
}

static void *tell_slowly(void *arg)
{
    UNTIL(load(&is_awaited)); /* else there is nobody to tell */
    is_slow = 1;
    return arg;
}

static pid_t forked = -1;

static void *fork_when_it_tells(void *arg)
{
    add(&is_awaited, 1); /* this task runs once the other one waits in aco_mt_group_end() */
    UNTIL(load(&is_telling));
    forked = fork();
    if (forked == 0)
        alarm(30);
    add(&has_forked, 1);
    return arg;
}

static void *end_while_forking(void *arg)
{
    aco_mt_group_t group;
    int status = -1;
    aco_t *task = aco_spawn(fork_when_it_tells, NULL, NULL);
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, tell_slowly, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    if (forked == 0)
        _exit(check_failures != 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK(forked > 0);
    CHECK_EQ(waitpid(forked, &status, 0), forked);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return arg;
}

/* ---- Work for one thread that gets no stacks ---- */

static int is_full, looks, ran_on = -1;

static void *await(void *event)
{
    CHECK_EQ(aco_event_wait(event), 0);
    return NULL;
}

static void *note_thread(void *arg)
{
    __atomic_store_n((int *)arg, aco_threads_index(), __ATOMIC_RELEASE);
    return NULL;
}

/* Until it has been tried in vain to start what was submitted, and the other thread has looked for work. */
static void *use_all_stacks(void *arg)
{
    aco_event_t event = ACO_EVENT_INIT;
    aco_t *task;
    is_refused = 1;
    while ((task = aco_spawn(await, &event, NULL)) != NULL) /* what is cached */
        CHECK_EQ(aco_detach(task), 0);
    CHECK_EQ(errno, ENOMEM);
    refusals = 0;
    add(&is_full, 1);
    while (load(&ran_on) < 0 && (load(&refusals) < 3 || load(&looks) < 20))
        aco_task_yield();
    is_refused = 0;
    aco_event_set(&event);
    return arg;
}

static void *send_without_stacks(void *arg)
{
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, use_all_stacks, NULL);
    UNTIL(load(&is_full));
    submit_to(1, &group, note_thread, &ran_on);
    for (; load(&ran_on) < 0 && looks < 20; add(&looks, 1))
        aco_sleep(ACO_MILLISECOND / 10);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(ran_on, 1);
    return arg;
}

int main(void)
{
    const aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    REPLACE(pthread_create);
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    if (!UNDER_TSAN) /* does not follow a process with fibers through fork() */
        run_on(2, end_while_forking, NULL);
    run_on(2, send_without_stacks, NULL);
    for (fails_on = 0; fails_on < 2; fails_on++)
        for (int at = 1, step = 1; at < 2000; at += step, step += step < 16 && at > 60) {
            calls = 0;
            __atomic_store_n(&fail_at, at, __ATOMIC_RELAXED);
            run_once();
            __atomic_store_n(&fail_at, 0, __ATOMIC_RELAXED);
            if (calls < at)
                break;
        }
    for (fail_thread = 1; fail_thread <= 3; fail_thread++) {
        threads_made = roots = 0;
        FAILS_WITH(aco_threads_run(4, root, &roots, NULL), EAGAIN);
        CHECK_EQ(roots, 0);
    }
    fail_thread = 0;
    CHECK_EQ(run_once(), 0);
    CHECK(leaves > 0);
    return check_result("threads_failure");
}
