/* Promises about reports of what tasks do: aco_tasks_dump(), the same by a signal, and the report of a deadlock
 * (include/aco/scheduler.h). The last test ends the program from another thread. */
#define _GNU_SOURCE
#ifndef _WIN32
#include "asleep.h"
#endif
#include "tasks.h"
#include "fails.h"

#include <aco/detail/worker.h>
#include <aco/group.h>
#include <aco/sync.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

enum { ROOM = 1 << 18, MANY = UNDER_TSAN ? 60 : UNDER_ASAN ? 500 : sizeof(void *) == 4 ? 2000 : 20000 };

static char text[ROOM];

static int lines(const char *of)
{
    int n = 0;
    for (; *of; of++)
        n += *of == '\n';
    return n;
}

/* Whether some line begins with this and has all of the words, of which the last is NULL. */
static int has_line(const char *begins, const char *const words[])
{
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        int has = strncmp(line, begins, strlen(begins)) == 0;
        for (int i = 0; words[i]; i++) {
            const char *at = strstr(line, words[i]);
            has = has && at && at < end;
        }
        if (has)
            return 1;
    }
    fprintf(stderr, "no line begins with \"%s\" and has \"%s\"…:\n%s", begins, words[0] ? words[0] : "", text);
    return 0;
}

#define HAS(begins, ...) CHECK(has_line(begins, (const char *const[]){__VA_ARGS__, NULL}))

static void dump(void)
{
    FILE *file = tmpfile();
    CHECK_EQ(aco_tasks_dump(fileno(file)), 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
}

static const char *line_of(const aco_t *task)
{
    static char begins[100];
    snprintf(begins, sizeof begins, "acorn: aco_tasks_dump: coroutine %p: ", (const void *)task);
    return begins;
}

/* ---- What a task does ---- */

enum { LONG = 100000 }; /* seconds: longer than the test may take */

static aco_event_t over;
static aco_scope_t sleeps_in;
static aco_group_t members;
static aco_rwlock_t readers;
static aco_t *yielding, *sleeping, *timed, *scoped, *in_group, *grouping, *writing, *dumping, *new_one;

static void *yields(void *arg)
{
    while (!over.is_set)
        aco_task_yield();
    return arg;
}

static void *sleeps(void *arg)
{
    CHECK_EQ(aco_scope_begin(&sleeps_in, ACO_FOREVER), 0);
    CHECK(aco_sleep(LONG * ACO_SECOND) == -1 && errno == ECANCELED);
    CHECK_EQ(aco_scope_end(&sleeps_in), 0);
    return arg;
}

static void *waits_timed(void *arg)
{
    CHECK_EQ(aco_event_wait_until(&over, aco_after(LONG * ACO_SECOND)), 0);
    return arg;
}

static void *waits_in_scope(void *arg)
{
    aco_scope_t scope;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(LONG * ACO_SECOND)), 0);
    CHECK_EQ(aco_event_wait_at(&over, "in a scope:1"), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
    return arg;
}

static void *member(void *arg)
{
    CHECK(aco_event_wait_at(&over, NULL) == -1 && errno == ECANCELED);
    return arg;
}

static void *has_group(void *arg)
{
    CHECK_EQ(aco_group_begin(&members, ACO_KEEP_GOING), 0);
    CHECK((in_group = aco_group_spawn(&members, member, NULL, NULL)) != NULL);
    CHECK_EQ(aco_group_end_at(&members, "in a group:1"), 0);
    return arg;
}

static void *waits_to_write(void *arg)
{
    CHECK_EQ(aco_rwlock_wrlock(&readers), 0);
    CHECK_EQ(aco_rwlock_unlock(&readers), 0);
    return arg;
}

static void *returns(void *arg)
{
    return arg;
}

static void *dumps(void *arg)
{
    char group[60], cancelled[60];
    CHECK_EQ(aco_rwlock_rdlock(&readers), 0);
    aco_task_yield();
    aco_task_yield();
    new_one = spawn_detached(returns, NULL);
    dump();
    snprintf(group, sizeof group, "of group %p", (void *)&members);
    snprintf(cancelled, sizeof cancelled, "; its scope %p was cancelled; entry ", (void *)&members);
    HAS(line_of(yielding), "(Yvonne) can run at ", "; entry ");
    HAS(line_of(dumping), "(Dora) runs; entry ");
    HAS(line_of(sleeping), ": waits at ", "scheduler_report.c:", " for time to pass; has waited up to ", ", ends in 99",
        "; in scope ");
    HAS(line_of(timed), " for event ", ", ends in 99");
    HAS(line_of(scoped), "in a scope:1 for event ", "; its scope ends in 99");
    HAS(line_of(in_group), ": waits at ", " for event ", "; member ", group);
    HAS(line_of(grouping), "in a group:1 for 1 member(s) ", group);
    HAS(line_of(writing), " for reader-writer lock ", ", held by 1 reader(s); ");
    HAS(line_of(new_one), ": has not begun; entry ");
    HAS("acorn: aco_tasks_dump: 9 task(s)", "of this thread");
    CHECK_EQ(lines(text), 10);
    CHECK_EQ(aco_rwlock_unlock(&readers), 0);
    CHECK_EQ(aco_scope_cancel(&members.scope), 0);
    dump();
    HAS(line_of(in_group), ": can run at ", cancelled);
    HAS(line_of(grouping), "for 1 member(s) ", cancelled);
    aco_event_set(&over);
    CHECK_EQ(aco_scope_cancel(&sleeps_in), 0);
    return arg;
}

/* Promise: a line for each task, with what it does and what it belongs to. */
static void each_state(void)
{
    aco_event_reset(&over);
    yielding = spawn_as(yields, NULL, ACO_DETACHED, "Yvonne");
    sleeping = spawn_detached(sleeps, NULL);
    timed = spawn_detached(waits_timed, NULL);
    scoped = spawn_detached(waits_in_scope, NULL);
    grouping = spawn_detached(has_group, NULL);
    dumping = spawn_as(dumps, NULL, ACO_DETACHED, "Dora");
    writing = spawn_detached(waits_to_write, NULL);
    run();
    dump();
    CHECK(strcmp(text, "acorn: aco_tasks_dump: 0 task(s) of this thread\n") == 0);
    FAILS(aco_tasks_dump(-1), -1, EBADF, "aco_tasks_dump", NULL, "descriptor -1");
}

#ifndef _WIN32
/* ---- Who has a lock for reading ---- */

static int readers_may_go;

static void *reads(void *how)
{
    CHECK_EQ(how ? aco_rwlock_try_rdlock(&readers) : aco_rwlock_rdlock(&readers), 0);
    while (!readers_may_go)
        aco_task_yield();
    return (void *)(intptr_t)aco_rwlock_unlock(&readers);
}

static void *ends_as_reader(void *arg)
{
    CHECK_EQ(aco_rwlock_rdlock(&readers), 0);
    return arg;
}

static void *lets_readers_wait(void *arg)
{
    CHECK_EQ(aco_rwlock_wrlock(&readers), 0);
    aco_task_yield();
    CHECK_EQ(aco_rwlock_unlock(&readers), 0);
    return arg;
}

static void *dumps_readers(void *arg)
{
    char ended_one[60];
    aco_t *ended, *late;
    spawn_detached(lets_readers_wait, NULL);
    spawn_as(reads, NULL, ACO_DETACHED, "Rita"); /* it waits for the lock */
    for (int i = 0; i < 3; i++)
        aco_task_yield();
    ended = spawn_as(ends_as_reader, NULL, ACO_DETACHED, "Ralph");
    spawn_as(reads, arg, ACO_DETACHED, "Rosa");
    spawn_detached(reads, NULL);
    aco_task_yield();
    writing = spawn_detached(waits_to_write, NULL);
    aco_task_yield();
    snprintf(ended_one, sizeof ended_one, ", coroutine %p (Ralph, which has ended), ", (void *)ended);
    dump();
    HAS(line_of(writing), ", held by 4 reader(s): coroutine ", " (Rita)", ended_one, " (Rosa) and 1 more; has waited");
    readers_may_go = 1;
    CHECK_EQ(aco_rwlock_unlock(&readers), 0); /* Ralph's */
    while (readers.readers)
        aco_task_yield();
    CHECK_EQ(aco_tasks_dump_on(0, 2), 0);
    readers_may_go = 0;
    while (readers.writer)
        aco_task_yield();
    late = spawn_as(reads, NULL, ACO_DETACHED, "Lena");
    aco_task_yield();
    writing = spawn_detached(waits_to_write, NULL);
    aco_task_yield();
    dump();
    HAS(line_of(writing), ", held by 1 reader(s); has waited");
    readers_may_go = 1;
    return late;
}

/* Promise: readers are named that have locked while somebody might ask. */
static void readers_are_named(void)
{
    CHECK_EQ(aco_tasks_dump_on(SIGUSR2, 2), 0);
    spawn_detached(dumps_readers, &readers);
    run();
}
#endif

/* ---- Many ---- */

static void *waits_at(void *location)
{
    CHECK_EQ(aco_event_wait_at(&over, location), 0);
    return NULL;
}

/* Promise: a report is short, however many tasks wait. */
static void many(void)
{
    static char locations[40][20];
    char more[80];
    aco_event_reset(&over);
    for (int i = 0; i < MANY; i++)
        spawn_detached(waits_at, (void *)(uintptr_t)"the crowd:1");
    check_deadlock(text, sizeof text);
    CHECK_EQ(lines(text), 9);
    snprintf(more, sizeof more, "acorn: aco_run: %d more: each waits at the crowd:1\n", MANY - 8);
    CHECK(strstr(text, more));
    snprintf(more, sizeof more, "deadlock: %d task(s) wait", MANY);
    CHECK(strstr(aco_error_message(), more));
    for (int i = 0; i < 40; i++) {
        snprintf(locations[i], sizeof locations[i], "place:%d", i);
        spawn_detached(waits_at, locations[i]);
    }
    check_deadlock(text, sizeof text);
    CHECK_EQ(lines(text), 9 + 31 + 1);
    CHECK(strstr(text, "acorn: aco_run: 9 more, at other places\n"));
    aco_event_set(&over);
    run();
}

/* ---- Names of tasks that have ended ---- */

static aco_mutex_t mutex;
static aco_rwlock_t rwlock;

static void *locks_and_ends(void *arg)
{
    CHECK_EQ(aco_mutex_lock(&mutex), 0);
    CHECK_EQ(aco_rwlock_wrlock(&rwlock), 0);
    return arg;
}

static void *locks(void *which)
{
    CHECK_EQ(which ? aco_mutex_lock(&mutex) : aco_rwlock_rdlock(&rwlock), 0);
    CHECK_EQ(which ? aco_mutex_unlock(&mutex) : aco_rwlock_unlock(&rwlock), 0);
    return NULL;
}

/* By force: nobody else may unlock them. */
static void *inherits(void *arg)
{
    mutex.owner = rwlock.writer = aco_get_co();
    CHECK_EQ(aco_mutex_unlock(&mutex), 0);
    CHECK_EQ(aco_rwlock_unlock(&rwlock), 0);
    return arg;
}

/* Promise: whoever has ended and still has what others wait for is named. */
static void ended(void)
{
    for (int joined = 0; joined < 2; joined++) {
        aco_t *holder = spawn_as(locks_and_ends, NULL, joined ? 0 : ACO_DETACHED, "Hannah");
        if (joined) {
            run();
            CHECK_EQ(aco_join(holder, NULL), 0);
            spawn_detached(returns, NULL); /* on the holder's block: else one of the two below takes it */
        }
        spawn_detached(locks, &mutex);
        spawn_detached(locks, NULL);
        if (!joined)
            spawn_as(returns, NULL, ACO_DETACHED, "another");
        check_deadlock(text, sizeof text);
        CHECK(strstr(text, " for mutex ") && strstr(text, " for reader-writer lock "));
        CHECK_EQ(lines(text), 2);
        HAS("acorn: aco_run: coroutine ", " for mutex ", " (which has ended; one there was named Hannah); has waited");
        HAS("acorn: aco_run: coroutine ", " for reader-writer lock ", " (which has ended; one there was named Hannah)");
        spawn_detached(inherits, NULL);
        run();
    }
}

static aco_once_t once;
static aco_scope_t waiters_scope;

static int ends_task(void *unused)
{
    (void)unused;
    aco_exit();
}

static void *ends_in_once(void *unused)
{
    CHECK_EQ(aco_once(&once, ends_task, NULL), 0);
    CHECK(!"this runs");
    return unused;
}

static void *waits_for_once(void *unused)
{
    CHECK_EQ(aco_scope_begin(&waiters_scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_once(&once, ends_task, NULL), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(aco_scope_end(&waiters_scope), 0);
    return unused;
}

/* Promise: a task that ends in aco_once() keeps it, as a mutex. */
static void ended_in_once(void)
{
    memset(&once, 0, sizeof once);
    spawn_as(ends_in_once, NULL, ACO_DETACHED, "Hannah");
    spawn_detached(waits_for_once, NULL);
    check_deadlock(text, sizeof text);
    CHECK_EQ(lines(text), 1);
    HAS("acorn: aco_run: coroutine ", " for the function that coroutine ",
        " (which has ended; one there was named Hannah) ");
    CHECK_EQ(aco_scope_cancel(&waiters_scope), 0);
    run();
}

static void *holds(void *task)
{
    CHECK_EQ(aco_mutex_lock(&mutex), 0);
    *(aco_t **)task = aco_get_co();
    aco_park("the other thread");
    CHECK_EQ(aco_mutex_unlock(&mutex), 0);
    return NULL;
}

static void *locks_too(void *failed)
{
    spawn_detached(locks, &mutex);
    check_deadlock(text, sizeof text);
    return failed;
}

/* Promise: of a holder on another thread it is not said that it has ended. */
static void elsewhere(void)
{
    aco_t *holder = NULL;
    pthread_t thread;
    memset(&mutex, 0, sizeof mutex);
    spawn_detached(holds, &holder);
    check_deadlock(text, sizeof text);
    CHECK_EQ(pthread_create(&thread, NULL, locks_too, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    HAS("acorn: aco_run: coroutine ", " (which has ended, or is another thread's); has waited up to ");
    memset(&mutex.aco__waiters, 0, sizeof mutex.aco__waiters);
    CHECK_EQ(aco_unpark(holder), 0);
    run();
}

/* ---- By a signal ---- */

#ifndef _WIN32

static int ends[2]; /* of the pipe to which the dump goes */

/* Reads until a dump is complete. */
static void read_dump(void)
{
    size_t length = 0;
    text[0] = 0;
    while (!strstr(text, "of this thread\n")) {
        ssize_t n = read(ends[0], text + length, sizeof text - 1 - length);
        CHECK(n > 0);
        if (n <= 0)
            return;
        text[length += (size_t)n] = 0;
    }
}

static void *raises(void *arg)
{
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(raise(SIGUSR1), 0); /* counts as one */
    aco_task_yield();
    aco_task_yield();
    return arg;
}

/* Promise: the dump comes in the next round, and tasks need not wait for it. */
static void signal_while_tasks_run(void)
{
    FAILS(aco_tasks_dump_on(100000, 2), -1, EINVAL, "aco_tasks_dump_on", NULL, "signal 100000");
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
    FAILS(aco_tasks_dump_on(100000, 2), -1, EINVAL, "aco_tasks_dump_on", NULL, "signal 100000"); /* changes nothing */
    spawn_as(raises, NULL, ACO_DETACHED, "Rosa");
    run();
    read_dump();
    HAS("acorn: aco_tasks_dump: coroutine ", "(Rosa) can run at ");
    CHECK_EQ(lines(text), 2);
    CHECK_EQ(aco_tasks_dump_on(0, 0), 0);
    spawn_detached(raises, NULL);
    run();
    CHECK_EQ(aco_tasks_dump(ends[1]), 0);
    read_dump();
    CHECK_EQ(lines(text), 1); /* only this one */
    aco_event_reset(&over);
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
    spawn_detached(waits_at, (void *)(uintptr_t)"nowhere:1");
    check_deadlock(text, sizeof text); /* it is still seen */
    aco_event_set(&over);
    run();
}

static aco_t *asleep;
static sleeper_t its_thread;
static int via_hook;

static void *signals(void *thread)
{
    until_asleep(&its_thread);
    if (thread)
        CHECK_EQ(pthread_kill(*(pthread_t *)thread, SIGUSR1), 0);
    else
        CHECK_EQ(raise(SIGUSR1), 0); /* the handler runs on this thread */
    read_dump();
    HAS("acorn: aco_tasks_dump: coroutine ", "waits at ", "to be unparked: the signal");
    CHECK_EQ(aco_unpark(asleep), 0);
    return NULL;
}

static void *parks_for_signal(void *arg)
{
    CHECK_EQ(aco_park("the signal"), 0);
    return arg;
}

static int waits_in_poll(void *ctx, int64_t timeout_ns)
{
    struct pollfd none = {-1, 0, 0};
    (void)ctx;
    if (timeout_ns)
        poll(&none, 1, 1);
    return 1;
}

/* Promise: a scheduler that sleeps is woken, whichever thread the signal comes to. */
static void signal_while_open(void)
{
    pthread_t other, me = pthread_self();
    for (int i = 0; i < 3; i++) {
        if (i == 1 && UNDER_TSAN) /* it delays the handler until the sleep, which it does not see, is over */
            continue;
        CHECK(aco_scheduler_open() != NULL);
        asleep = spawn(parks_for_signal, NULL);
        its_thread = this_sleeper();
        via_hook = i == 2; /* it returns by itself in time */
        CHECK_EQ(aco_on_idle(via_hook ? waits_in_poll : NULL, NULL), 0);
        CHECK_EQ(pthread_create(&other, NULL, signals, i == 1 ? &me : NULL), 0);
        run();
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK_EQ(aco_join(asleep, NULL), 0);
        CHECK_EQ(aco_on_idle(NULL, NULL), 0);
        CHECK_EQ(aco_scheduler_close(), 0);
    }
}

static void *is_interrupted(void *me)
{
    until_asleep(&its_thread);
    CHECK_EQ(pthread_kill(*(pthread_t *)me, SIGUSR1), 0);
    read_dump();
    HAS("acorn: aco_tasks_dump: coroutine ", "to be unparked: the signal");
    return NULL;
}

static int waits_once(void *ctx, int64_t timeout_ns)
{
    struct pollfd none = {-1, 0, 0};
    (void)ctx;
    if (!timeout_ns)
        return 1;
    if (via_hook++)
        return aco_unpark(asleep) == 0;
    poll(&none, 1, LONG * 1000);
    return 1;
}

/* Promise: a hook whose wait the signal ends lets the dump happen. */
static void signal_in_hook(void)
{
    pthread_t other, me = pthread_self();
    via_hook = 0;
    asleep = spawn(parks_for_signal, NULL);
    its_thread = this_sleeper();
    CHECK_EQ(aco_on_idle(waits_once, NULL), 0);
    CHECK_EQ(pthread_create(&other, NULL, is_interrupted, &me), 0);
    run();
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(aco_join(asleep, NULL), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
}

static int64_t parked_at;

static void *parks_again(void *unused)
{
    aco_park("the hook");
    parked_at = aco_now();
    aco_park("the hook again");
    return unused;
}

static double told_seconds(const aco_t *task)
{
    const char *line, *told;
    dump();
    line = strstr(text, line_of(task));
    told = line ? strstr(line, "has waited up to ") : NULL;
    CHECK(told);
    return atof(told + strlen("has waited up to "));
}

static void leaves_soon(void *unused)
{
    (void)unused;
}

static int gives_a_late_turn(void *unused, int64_t timeout_ns)
{
    double told;
    (void)unused;
    if (timeout_ns == 0)
        return 1;
    CHECK_EQ(aco_unpark(asleep), 0);
    if (via_hook++ == 0) {
        for (int64_t begins = aco_now(); aco_now() - begins < 60 * ACO_MILLISECOND;) /* the hook's own wait */
            sched_yield();
        CHECK_EQ(aco__idle_turn(), 0);
        told = told_seconds(asleep);
        CHECK(told <= (double)(aco_now() - parked_at) / ACO_SECOND + 0.03); /* by a coarse clock */
        CHECK_EQ(aco_unpark(asleep), 0);
    }
    return 1;
}

/* Promise: if dumps are wanted, a wait that begins in a turn of the hook is told without the hook's own wait. */
static void turn_in_hook(void)
{
    via_hook = 0;
    asleep = spawn(parks_again, NULL);
    CHECK_EQ(aco_on_idle(gives_a_late_turn, NULL), 0);
    aco__idle_gives_turns(leaves_soon);
    run();
    CHECK_EQ(aco_join(asleep, NULL), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
}

static void *has_tasks(void *unused)
{
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
    spawn_as(parks_for_signal, NULL, ACO_DETACHED, "forgotten");
    return unused;
}

/* Promise: a thread that has ended gets no signal. */
static void signal_after_thread(void)
{
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, has_tasks, NULL), 0);
    CHECK_EQ(pthread_join(other, NULL), 0);
    signal_while_tasks_run();
}

enum { ASKERS = 4 };
static int arrived; /* atomic; relaxed, to order nothing else */

static void meet(int round)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < round * ASKERS)
        sched_yield();
}

static void *asks_and_raises(void *unused)
{
    aco_thread_init(NULL);
    meet(1);
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
    CHECK_EQ(raise(SIGUSR1), 0); /* its handler looks at what the other threads' calls change */
    meet(2);
    CHECK_EQ(aco_tasks_dump_on(0, 0), 0);
    return unused;
}

/* Promise: each thread may ask, while handlers run on others. */
static void signal_on_several_threads(void)
{
    pthread_t threads[ASKERS];
    for (int i = 0; i < ASKERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, asks_and_raises, NULL), 0);
    for (int i = 0; i < ASKERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- A fork while another thread is in the handler ---- */

static int in_handler, has_forked;

static void wakes_slowly(void *unused)
{
    (void)unused;
    __atomic_store_n(&in_handler, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&has_forked, __ATOMIC_SEQ_CST))
        ;
}

static void *stays_in_handler(void *unused)
{
    while (!__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST)) /* until it finds the scheduler asleep */
        CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    return unused;
}

static void *forks_beside_handler(void *unused)
{
    pthread_t other;
    int status = 1;
    pid_t child;
    CHECK_EQ(pthread_create(&other, NULL, stays_in_handler, NULL), 0);
    while (!__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST))
        sched_yield();
    child = fork();
    if (child == 0) {
        alarm(30);
        CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
        CHECK_EQ(aco_tasks_dump_on(0, 0), 0);
        _exit(check_failures != 0);
    }
    __atomic_store_n(&has_forked, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(aco_unpark(asleep), 0);
    return unused;
}

/* Promise: in the child nobody waits for that handler. */
static void fork_in_handler(void)
{
    pthread_t other;
    if (UNDER_TSAN) /* does not follow */
        return;
    CHECK_EQ(aco_on_wake(wakes_slowly, NULL), 0);
    CHECK(aco_scheduler_open() != NULL);
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, open("/dev/null", O_WRONLY)), 0);
    asleep = spawn(parks_for_signal, NULL);
    CHECK_EQ(pthread_create(&other, NULL, forks_beside_handler, NULL), 0);
    run();
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(aco_join(asleep, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(aco_on_wake(NULL, NULL), 0);
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, ends[1]), 0);
}

static void *ends_program(void *unused)
{
    int result;
    (void)unused;
    until_asleep(&its_thread);
    CHECK_EQ(raise(SIGUSR1), 0);
    read_dump();
    HAS("acorn: aco_tasks_dump: coroutine ", " for time to pass; ", ", ends in 99");
    result = check_result("scheduler_report");
    fflush(NULL);
    _exit(result);
}

static void *sleeps_long(void *arg)
{
    CHECK_EQ(aco_sleep(LONG * ACO_SECOND), 0);
    return arg;
}

/* Promise: a scheduler that sleeps until a deadline is woken. Ends the program. */
static void signal_while_asleep(void)
{
    pthread_t other;
    spawn_detached(sleeps_long, NULL);
    its_thread = this_sleeper();
    CHECK_EQ(pthread_create(&other, NULL, ends_program, NULL), 0);
    run();
    CHECK(!"it has slept to the end");
}

#endif

int main(void)
{
    static void (*const tests[])(void) = {each_state, many, ended, ended_in_once, NULL};
    with_all_kinds(tests);
    if (!ACO_DEBUG) /* else the lock itself says it */
        elsewhere();
#ifdef _WIN32
    FAILS(aco_tasks_dump_on(2, 2), -1, ENOSYS, "aco_tasks_dump_on", NULL, "signal 2");
#else
    readers_are_named();
    CHECK_EQ(pipe(ends), 0);
    signal_while_tasks_run();
    signal_while_open();
    signal_in_hook();
    turn_in_hook();
    signal_after_thread();
    signal_on_several_threads();
    fork_in_handler();
    signal_while_asleep();
#endif
    return check_result("scheduler_report");
}
