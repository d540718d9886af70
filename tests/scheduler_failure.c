/* Every failure of the scheduler without memory (include/aco/scheduler.h: ENOMEM). Many threads do the same things, and
 * each makes one request for memory fail: the first, the second, … until none is left. The call that fails says so and
 * changes nothing; made again it works. */
#define _GNU_SOURCE
#include <aco/group.h>
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long requests, fail_at;
static int failures_seen, failed_sleeps, failed_hooks, failed_waits, failed_selects, failed_parks, failed_acquires;

static int fails(void)
{
    return ++requests == fail_at;
}

#include "failing_allocator.h"

static void check_refused(int line, const char *call)
{
    size_t length = strlen(call);
    const char *message = aco_error_message();
    failures_seen++;
    failed_sleeps += strcmp(call, "aco_sleep") == 0;
    failed_hooks += strcmp(call, "aco_on_idle") == 0;
    failed_waits += strcmp(call, "aco_cond_wait") == 0;
    failed_selects += strcmp(call, "aco_select") == 0;
    failed_parks += strcmp(call, "aco_park") == 0;
    failed_acquires += strcmp(call, "aco_semaphore_acquire") == 0;
    if (errno != ENOMEM || requests < fail_at || strncmp(message, call, length) != 0 || message[length] != ':' ||
        !strstr(message, "no memory")) {
        fprintf(stderr, "%s:%d: errno is %d, the message \"%s\"\n", __FILE__, line, errno, message);
        CHECK(!"the refusal");
    }
}

/* `what` works, or it fails for the injected reason and works when tried again. */
#define WORKS(what, bad, call)                                                                                         \
    do {                                                                                                               \
        if ((what) == (bad)) {                                                                                         \
            check_refused(__LINE__, call);                                                                             \
            CHECK((what) != (bad));                                                                                    \
        }                                                                                                              \
    } while (0)

enum { SLEEPERS = 40 }; /* more than the heap of timers has room for at first */

static int slept;
static aco_channel_t *channel;
static aco_mutex_t mutex;
static aco_cond_t cond;
static aco_semaphore_t semaphore;

/* A wait that fails without memory before it begins, or by its time. */
static int timed_wait(int how)
{
    aco_select_case_t one = {channel, NULL, ACO_SELECT_RECEIVE, 0, {0}};
    int result = how == 0   ? aco_cond_wait_until(&cond, &mutex, aco_after(1000))
                 : how == 1 ? aco_select_until(&one, 1, aco_after(1000))
                 : how == 2 ? aco_park(NULL)
                            : aco_semaphore_acquire_until(&semaphore, aco_after(1000));
    CHECK_EQ(result, -1);
    return errno == ETIMEDOUT ? 0 : result;
}

enum { WAITS = 5 };
static int waits_first; /* the kind of wait that wants memory first */

static void *sleeps(void *arg)
{
    aco_scope_t scope;
    for (int i = 0; i < WAITS; i++)
        switch ((waits_first + i) % WAITS) {
        case 0:
            WORKS(aco_sleep(1000), -1, "aco_sleep");
            break;
        case 1:
            CHECK_EQ(aco_mutex_lock(&mutex), 0);
            WORKS(timed_wait(0), -1, "aco_cond_wait");
            CHECK(mutex.owner == aco_get_co()); /* in either case */
            CHECK_EQ(aco_mutex_unlock(&mutex), 0);
            break;
        case 2:
            WORKS(timed_wait(1), -1, "aco_select");
            break;
        case 3:
            CHECK_EQ(aco_scope_begin(&scope, aco_after(1000)), 0);
            WORKS(timed_wait(2), -1, "aco_park");
            CHECK_EQ(aco_scope_end(&scope), 0);
            break;
        default:
            WORKS(timed_wait(3), -1, "aco_semaphore_acquire");
        }
    slept++;
    return arg;
}

static int member_runs;

static void *member(void *arg)
{
    member_runs++;
    return arg;
}

/* A member that cannot be made leaves no trace in its group. */
static void *spawns_members(void *options)
{
    aco_group_t group;
    CHECK_EQ(aco_group_begin(&group, ACO_CANCEL_ON_FAILURE), 0);
    group.limit = 3;
    for (int i = 0; i < 3; i++)
        WORKS(aco_group_spawn(&group, member, NULL, options), NULL, "aco_spawn");
    CHECK_EQ(group.running, 3);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(group.succeeded, 3);
    return NULL;
}

static int idle(void *ctx, int64_t timeout_ns)
{
    (void)ctx, (void)timeout_ns;
    return 0;
}

/* The thread's first call makes its scheduler, and what waits need. */
enum { BY_SLEEP, BY_HOOK, BY_DUMP, BY_WATCHDOG, BY_OPENING };

static int first_call(intptr_t way)
{
    switch (way) {
    case BY_HOOK:
        return aco_on_idle(idle, NULL);
    case BY_DUMP:
        return aco_tasks_dump_on(SIGUSR1, 2);
    case BY_WATCHDOG:
        return aco_watchdog(60 * ACO_SECOND);
    case BY_OPENING:
        return aco_scheduler_open() ? 0 : -1;
    default:
        return 0;
    }
}

static void begin_by(intptr_t way)
{
    static const char *const names[] = {"", "aco_on_idle", "aco_tasks_dump_on", "aco_watchdog", "aco_scheduler_open"};
    struct sigaction now;
    int result = first_call(way);
    if (result != 0) {
        CHECK_EQ(result, -1);
        check_refused(__LINE__, names[way]);
        CHECK_EQ(first_call(way), 0);
    }
    CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
    CHECK(way != BY_DUMP || now.sa_handler != SIG_DFL);
}

static void *scenario(void *way)
{
    aco_options_t named = {0};
    aco_t *tasks[SLEEPERS], *task, *spawner;
    requests = 0;
    slept = 0;
    named.name = "named";
    begin_by((intptr_t)way);
    WORKS(channel = aco_channel_new(2, 20000), NULL, "aco_channel_new");
    for (int i = 0; i < SLEEPERS; i++) {
        WORKS(task = aco_spawn(sleeps, NULL, i % 2 ? &named : NULL), NULL, "aco_spawn");
        tasks[i] = task;
    }
    WORKS(spawner = aco_spawn(spawns_members, &named, NULL), NULL, "aco_spawn");
    member_runs = 0;
    WORKS(aco_run(), -1, "aco_run");
    CHECK_EQ(member_runs, 3);
    CHECK_EQ(aco_join(spawner, NULL), 0);
    CHECK_EQ(slept, SLEEPERS);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    CHECK_EQ(aco_channel_destroy(channel), 0);
    return NULL;
}

/* Each request for memory fails, one in each thread. */
static void fail_each(intptr_t way)
{
    fail_at = 0;
    do {
        pthread_t thread;
        fail_at++;
        CHECK_EQ(pthread_create(&thread, NULL, scenario, (void *)way), 0);
        pthread_join(thread, NULL);
    } while (requests >= fail_at && !check_failures);
}

/* In a process without memory of the library's. */
static void begin_process_by(intptr_t way)
{
    int status = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fail_each(way);
        _exit(check_failures != 0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

int main(void)
{
    const aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    setenv("ACO_WATCHDOG", "0", 1); /* else a debug build has made the scratch stack before */
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    for (intptr_t way = BY_DUMP; way <= BY_OPENING; way++)
        begin_process_by(way);
    for (int round = 0; round < 2 + WAITS; round++) {
        /* First in a process without memory of the library's; then what a new thread needs besides. */
        waits_first = round > 2 ? round - 2 : 0;
        fail_each(round < 2 ? BY_HOOK : BY_SLEEP);
        CHECK(failures_seen > (round + 1) * SLEEPERS);
    }
    CHECK(failed_sleeps && failed_hooks && failed_waits && failed_selects && failed_parks && failed_acquires);
    printf("%d refusals\n", failures_seen);
    return check_result("scheduler_failure");
}
