/* Signals as values, children and standard descriptors (include/aco/process.h). The system calls below fail on
 * demand. */
#include "replace.h" /* first */

#include "io_tests.h"
#include "sanitizers.h"
#include "until.h"

#include <aco/io_buffer.h>
#include <aco/process.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- The system ---- */

static const char *failing; /* this function's call number `position` fails */
static int position;

static int fails(const char *name)
{
    if (!failing || strcmp(failing, name) != 0 || --position != 0)
        return 0;
    errno = ENFILE;
    return 1;
}

#define FAILS(type, name, parameters, arguments) FAILING(type, name, parameters, arguments, fails(#name), -1)
FAILS(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
FAILS(int, eventfd, (unsigned count, int flags), (count, flags))
FAILS(int, epoll_create1, (int flags), (flags))
FAILS(int, pipe2, (int ends[2], int flags), (ends, flags))

REAL(fcntl);
static int failing_fcntl(int fd, int command, ...)
{
    va_list arguments;
    int argument;
    va_start(arguments, command);
    argument = command == F_GETFL || command == F_GETFD ? 0 : va_arg(arguments, int);
    va_end(arguments);
    return fails("fcntl") ? -1 : real_fcntl(fd, command, argument);
}

REAL(posix_spawnp);
static int failing_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                                const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    return fails("posix_spawnp") ? ENFILE : real_posix_spawnp(pid, file, actions, attributes, argv, environment);
}

FAILS(int, pidfd_open, (pid_t process, unsigned flags), (process, flags))

static int signal_errors[2]; /* the errnos of the next calls of pidfd_send_signal(); 0: it works */

static int signal_fails(void)
{
    int failure = signal_errors[0];
    signal_errors[0] = signal_errors[1];
    signal_errors[1] = 0;
    if (failure)
        errno = failure;
    return failure != 0;
}

FAILING(int, pidfd_send_signal, (int process, int signal, void *information, unsigned flags),
        (process, signal, information, flags), signal_fails(), -1)

static void replace_system(void)
{
    REPLACE(pidfd_send_signal);
    REPLACE(signalfd);
    REPLACE(eventfd);
    REPLACE(epoll_create1);
    REPLACE(pipe2);
    REPLACE(fcntl);
    REPLACE(posix_spawnp);
    REPLACE(pidfd_open);
}

/* ---- Signals ---- */

static void *sends_signals(void *unused)
{
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0); /* one of them */
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    return unused;
}

static void *signals(void *unused)
{
    static const int wanted[] = {SIGUSR1, SIGUSR2}, wrong[] = {SIGUSR1, SIGKILL};
    int fd = aco_signal_open(wanted, 2), pair[2];
    pid_t sender = 0;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, sends_signals, NULL);
    CHECK_EQ(aco_signal_wait(fd, &sender), SIGUSR1);
    CHECK_EQ(sender, getpid());
    CHECK_EQ(aco_signal_wait(fd, NULL), SIGUSR2);
    FAILS_WITH(aco_io_wait_readable_until(fd, aco_now()), ETIMEDOUT);
    aco_group_end(&group);
    FAILS_WITH(aco_signal_open(wrong, 2), EINVAL);
    FAILS_WITH(aco_signal_open(wanted, 0), EINVAL);
    FAILS_WITH(aco_signal_open(NULL, 1), EINVAL);
    make_pair(pair, SOCK_STREAM);
    CHECK_EQ(aco_io_write(pair[0], "x", 1), 1);
    FAILS_WITH(aco_signal_wait(pair[1], NULL), EINVAL);
    close_both(pair);
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    handled = signal;
}

static void *interrupts(void *unused)
{
    static const int wanted[] = {SIGINT, SIGTERM};
    aco_interrupt_t interrupt;
    aco_scope_t inner;
    aco_group_t group;
    int pair[2];
    char byte;
    make_pair(pair, SOCK_STREAM);
    signal(SIGTERM, handler);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(aco_interrupt_begin(&interrupt, wanted, 2), 0);
        aco_group_begin(&group, ACO_KEEP_GOING);
        CHECK_EQ(kill(getpid(), wanted[i]), 0);
        CHECK(!handled);
        FAILS_WITH(aco_io_read(pair[0], &byte, 1), ECANCELED);
        CHECK_EQ(interrupt.signal, wanted[i]);
        CHECK_EQ(kill(getpid(), SIGTERM), 0); /* one more: as always */
        CHECK_EQ(handled, SIGTERM);
        handled = 0;
        aco_group_end(&group);
        CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    }
    CHECK_EQ(aco_interrupt_begin(&interrupt, wanted, 2), 0); /* none comes, and its task has not even begun */
    CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    CHECK_EQ(interrupt.signal, 0);
    CHECK_EQ(aco_interrupt_begin(&interrupt, wanted, 2), 0);
    aco_task_yield();
    aco_scope_begin(&inner, ACO_FOREVER);
    FAILS_WITH(aco_interrupt_end(&interrupt), EPERM);
    aco_scope_end(&inner);
    CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    CHECK_EQ(kill(getpid(), SIGTERM), 0);
    CHECK_EQ(handled, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    FAILS_WITH(aco_interrupt_begin(&interrupt, wanted, 0), EINVAL);
    FAILS_WITH(aco_interrupt_begin(NULL, wanted, 1), EINVAL);
    CHECK_EQ(aco_check_cancelled(), 0);
    close_both(pair);
    return unused;
}

/* ---- Several who listen for a signal ---- */

/* A task inside of an interrupt of its own, until a signal comes or `leaves` is set; how many have come. */
typedef struct inside {
    int signal, leaves, is_in, came;
} inside_t;

static void *is_inside(void *arg)
{
    inside_t *in = arg;
    aco_interrupt_t interrupt;
    CHECK_EQ(aco_interrupt_begin(&interrupt, &in->signal, 1), 0);
    in->is_in = 1;
    while (!in->leaves && aco_sleep(ACO_MILLISECOND / 10) == 0)
        ;
    in->came += interrupt.signal == in->signal;
    CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    in->is_in = 0;
    return NULL;
}

static void enter(aco_group_t *group, inside_t *in)
{
    member(group, is_inside, in);
    UNTIL(in->is_in);
}

static void leave(inside_t *in)
{
    in->leaves = 1;
    UNTIL(!in->is_in);
}

static int is_blocked(int number)
{
    sigset_t blocked;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    return sigismember(&blocked, number);
}

/* One signal ends the scopes of all; while one task is inside, the signal does nothing else; afterwards it does. */
static void *several_inside(void *unused)
{
    aco_group_t group;
    signal(SIGTERM, handler);
    signal(SIGINT, handler);
    handled = 0;
    for (int leaves = 0; leaves < 3; leaves++) {
        inside_t in[3] = {{SIGTERM, 0, 0, 0}, {SIGTERM, 0, 0, 0}, {SIGTERM, 0, 0, 0}};
        aco_group_begin(&group, ACO_KEEP_GOING);
        for (int i = 0; i < 3; i++)
            enter(&group, &in[i]);
        for (int i = 0; i < leaves; i++)
            leave(&in[i]);
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
        CHECK_EQ(aco_group_end(&group), 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(in[i].came, i >= leaves);
        CHECK(!handled && !is_blocked(SIGTERM));
    }
    for (int first = 0; first < 2; first++) { /* of different signals: the end of one leaves the other blocked */
        inside_t in[2] = {{SIGTERM, 0, 0, 0}, {SIGINT, 0, 0, 0}};
        aco_group_begin(&group, ACO_KEEP_GOING);
        enter(&group, &in[0]);
        enter(&group, &in[1]);
        leave(&in[first]);
        CHECK(!is_blocked(in[first].signal) && is_blocked(in[!first].signal));
        CHECK_EQ(kill(getpid(), in[!first].signal), 0);
        CHECK_EQ(aco_group_end(&group), 0);
        CHECK_EQ(in[!first].came, 1);
        CHECK(!handled && !is_blocked(in[!first].signal));
    }
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    return unused;
}

/* Another task ends the scope, while other frames are on the share stack. */
static void *cannot_begin(void *unused)
{
    aco_interrupt_t interrupt;
    FAILS_WITH(aco_interrupt_begin(&interrupt, (const int[]){SIGTERM}, 1), EINVAL);
    return unused;
}

static void *cannot_end(void *interrupt)
{
    FAILS_WITH(aco_interrupt_end(interrupt), EINVAL);
    return NULL;
}

/* In a scope that has ended. An inner coroutine on a share stack cannot wait for the interrupt's task: it changes
 * nothing. */
static void *ended_inside(void *unused)
{
    static const int number = SIGTERM;
    aco_options_t shared = {0};
    if (UNDER_ASAN) /* it has a stack of its own, and can wait */
        return unused;
    shared.stack = aco_share_stack_new(0);
    CHECK_EQ(aco_join(aco_spawn(cannot_begin, NULL, &shared), NULL), 0);
    for (int is_late = 0; is_late < 2; is_late++) {
        aco_t *inner;
        aco_scope_t over;
        aco_interrupt_t interrupt;
        aco_run_stats_t before, after;
        CHECK_EQ(aco_run_stats(&before), 0);
        CHECK_EQ(aco_scope_begin(&over, ACO_FOREVER), 0);
        CHECK_EQ(aco_interrupt_begin(&interrupt, &number, 1), 0);
        if (is_late)
            aco_task_yield();
        CHECK_EQ(aco_scope_cancel(&over), 0);
        CHECK((inner = aco_new(cannot_end, &interrupt, &shared)) != NULL);
        aco_send(inner, NULL);
        CHECK(inner->is_end);
        aco_destroy(inner);
        CHECK_EQ(aco_interrupt_end(&interrupt), 0);
        CHECK_EQ(aco_run_stats(&after), 0);
        CHECK_EQ(after.tasks, before.tasks);
        CHECK_EQ(aco_scope_end(&over), 0);
    }
    aco_share_stack_destroy(shared.stack);
    return unused;
}

/* ---- A thread whose tasks never let another one run ---- */

typedef struct turnless {
    sem_t goes_on, waits;
    int is_in_task; /* where the thread waits, while the other one's interrupt ends */
} turnless_t;

static void wait_outside(turnless_t *thread)
{
    CHECK(is_blocked(SIGTERM)); /* the other one listens */
    CHECK_EQ(sem_post(&thread->waits), 0);
    CHECK_EQ(sem_wait(&thread->goes_on), 0);
}

static void *listens_once(void *arg)
{
    static const int number = SIGTERM;
    turnless_t *thread = arg;
    aco_interrupt_t interrupt;
    CHECK_EQ(aco_interrupt_begin(&interrupt, &number, 1), 0);
    CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    if (thread->is_in_task)
        wait_outside(thread);
    return NULL;
}

static void *finds_unblocked(void *unused)
{
    CHECK(!is_blocked(SIGTERM));
    return unused;
}

static void *runs_turnless(void *arg)
{
    turnless_t *thread = arg;
    CHECK_EQ(sem_wait(&thread->goes_on), 0);
    CHECK_EQ(aco_detach(aco_spawn(listens_once, thread, NULL)), 0);
    CHECK_EQ(aco_run(), 0);
    if (thread->is_in_task)
        CHECK(!is_blocked(SIGTERM));
    else
        wait_outside(thread);
    CHECK_EQ(aco_detach(aco_spawn(finds_unblocked, NULL, NULL)), 0);
    CHECK_EQ(aco_run(), 0);
    return NULL;
}

static void *other_thread_unblocks(void *unused)
{
    static const int number = SIGTERM;
    for (int is_in_task = 0; is_in_task < 2; is_in_task++) {
        turnless_t thread = {.is_in_task = is_in_task};
        aco_interrupt_t interrupt;
        pthread_t id;
        CHECK(sem_init(&thread.goes_on, 0, 0) == 0 && sem_init(&thread.waits, 0, 0) == 0);
        CHECK_EQ(pthread_create(&id, NULL, runs_turnless, &thread), 0); /* before: it would inherit what is blocked */
        CHECK_EQ(aco_interrupt_begin(&interrupt, &number, 1), 0);
        CHECK_EQ(sem_post(&thread.goes_on), 0);
        CHECK_EQ(sem_wait(&thread.waits), 0);
        CHECK_EQ(aco_interrupt_end(&interrupt), 0);
        CHECK_EQ(sem_post(&thread.goes_on), 0);
        CHECK_EQ(pthread_join(id, NULL), 0);
        CHECK(sem_destroy(&thread.goes_on) == 0 && sem_destroy(&thread.waits) == 0);
    }
    return unused;
}

/* Each descriptor gets each signal, and an interrupt's end does not unblock what aco_signal_open() blocks. */
static void *several_descriptors(void *unused)
{
    static const int hup = SIGHUP, both[] = {SIGHUP, SIGWINCH};
    inside_t in = {SIGTERM, 0, 0, 0}, before = {SIGHUP, 0, 0, 0};
    int fds[3];
    pid_t sender;
    aco_group_t group;
    signal(SIGHUP, handler);
    handled = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    enter(&group, &in);
    enter(&group, &before);
    for (int i = 0; i < 3; i++)
        fds[i] = aco_signal_open(i < 2 ? both : &hup, i < 2 ? 2 : 1);
    leave(&in);
    CHECK_EQ(kill(getpid(), SIGHUP), 0);
    CHECK_EQ(kill(getpid(), SIGWINCH), 0);
    for (int i = 0; i < 3; i++) {
        sender = 0;
        CHECK_EQ(aco_io_wait_readable_until(fds[i], aco_now()), 0);
        CHECK_EQ(aco_signal_wait(fds[i], &sender), SIGHUP);
        CHECK_EQ(sender, getpid());
        if (i < 2)
            CHECK_EQ(aco_signal_wait(fds[i], NULL), SIGWINCH);
        FAILS_WITH(aco_io_wait_readable_until(fds[i], aco_now()), ETIMEDOUT);
    }
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(before.came, 1);
    CHECK_EQ(aco_io_close(fds[0]), 0);
    CHECK_EQ(kill(getpid(), SIGHUP), 0);
    for (int i = 1; i < 3; i++) {
        CHECK_EQ(aco_signal_wait(fds[i], NULL), SIGHUP);
        CHECK_EQ(aco_io_close(fds[i]), 0);
    }
    FAILS_WITH(aco_signal_wait(fds[1], NULL), EBADF);
    CHECK(!handled && is_blocked(SIGHUP)); /* from now on */
    signal(SIGHUP, SIG_DFL);
    return unused;
}

/* Threads: each has the signal blocked while any of them listens, also if it listens no more itself. */
typedef struct other {
    inside_t in;
    pthread_t thread;
    int is_in, has_ended; /* atomic */
} other_t;

static void *shows_inside(void *arg)
{
    other_t *other = arg;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    enter(&group, &other->in);
    __atomic_store_n(&other->is_in, 1, __ATOMIC_RELEASE);
    CHECK_EQ(aco_group_end(&group), 0);
    return NULL;
}

static void *runs_inside(void *arg)
{
    other_t *other = arg;
    run_task(shows_inside, other);
    __atomic_store_n(&other->has_ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *threads_inside(void *unused)
{
    signal(SIGTERM, handler);
    handled = 0;
    for (int leaves = 0; leaves < 2; leaves++) {
        inside_t in = {SIGTERM, 0, 0, 0};
        other_t other = {{SIGTERM, 0, 0, 0}, 0, 0, 0};
        aco_group_t group;
        aco_group_begin(&group, ACO_KEEP_GOING);
        enter(&group, &in);
        CHECK_EQ(pthread_create(&other.thread, NULL, runs_inside, &other), 0);
        UNTIL(__atomic_load_n(&other.is_in, __ATOMIC_ACQUIRE));
        if (leaves) {
            leave(&in);
            CHECK(is_blocked(SIGTERM));
        }
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
        CHECK_EQ(aco_group_end(&group), 0);
        UNTIL(__atomic_load_n(&other.has_ended, __ATOMIC_ACQUIRE));
        CHECK_EQ(pthread_join(other.thread, NULL), 0);
        CHECK_EQ(in.came, !leaves);
        CHECK_EQ(other.in.came, 1);
        UNTIL(!is_blocked(SIGTERM));
        CHECK(!handled);
    }
    signal(SIGTERM, SIG_DFL);
    return unused;
}

/* ---- Children ---- */

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void *children(void *unused)
{
    aco_process_t child, other;
    char text[64] = "";
    const char *const environment[] = {"ACORN=here", NULL};
    CHECK_EQ(aco_process_start(&child, ARGV("sort"), ACO_PROCESS_IN | ACO_PROCESS_OUT, NULL), 0);
    CHECK(child.err == -1 && child.pid > 0);
    CHECK_EQ(aco_io_write_all(child.in, "b\nc\na\n", 6), 6);
    aco_process_close_input(&child);
    CHECK_EQ(aco_io_read_exactly(child.out, text, sizeof text), 6);
    CHECK(memcmp(text, "a\nb\nc\n", 6) == 0);
    CHECK_EQ(aco_process_wait(&child), 0);
    CHECK_EQ(child.status, 0);
    CHECK_EQ(aco_process_wait(&child), 0);
    FAILS_WITH(aco_process_signal(&child, SIGTERM), ESRCH);
    aco_process_end(&child, 0);
    CHECK(child.in == -1 && child.out == -1 && child.status == 0);
    /* Another child does not keep the pipes of this one open. */
    CHECK_EQ(aco_process_start(&child, ARGV("cat"), ACO_PROCESS_IN | ACO_PROCESS_OUT, NULL), 0);
    CHECK_EQ(aco_process_start(&other, ARGV("cat"), ACO_PROCESS_IN, NULL), 0);
    aco_process_close_input(&child);
    CHECK_EQ(aco_process_wait(&child), 0);
    aco_process_end(&child, 0);
    aco_process_end(&other, ACO_SECOND);
    /* the other pipes, and the environment */
    CHECK_EQ(aco_process_start(&child, ARGV("/bin/sh", "-c", "echo $ACORN; echo bad >&2; exit 7"),
                               ACO_PROCESS_OUT | ACO_PROCESS_ERR, environment), 0);
    CHECK_EQ(aco_io_read_exactly(child.err, text, sizeof text), 4);
    CHECK(memcmp(text, "bad\n", 4) == 0);
    CHECK_EQ(aco_io_read_exactly(child.out, text, sizeof text), 5);
    CHECK(memcmp(text, "here\n", 5) == 0);
    CHECK_EQ(aco_process_wait(&child), 0);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 7);
    aco_process_end(&child, 0);
    CHECK_EQ(aco_process_start(&child, ARGV("sh", "-c", "echo 1; echo 2 >&2"), ACO_PROCESS_OUT | ACO_PROCESS_ERR_TO_OUT,
                               NULL), 0);
    CHECK_EQ(aco_io_read_exactly(child.out, text, sizeof text), 4);
    CHECK(memcmp(text, "1\n2\n", 4) == 0);
    CHECK_EQ(aco_process_wait(&child), 0);
    aco_process_end(&child, 0);
    FAILS_WITH(aco_process_start(&child, ARGV("acorn-no-such-program"), ACO_PROCESS_IN, NULL), ENOENT);
    CHECK(strstr(aco_error_message(), "aco_process_start: acorn-no-such-program: No such file") != NULL);
    FAILS_WITH(aco_process_start(&child, ARGV("true"), 1024, NULL), EINVAL);
    CHECK(child.in == -1 && child.out == -1 && child.err == -1);
    aco_process_end(&child, 0); /* there is none */
    FAILS_WITH(aco_process_start(&child, ARGV(NULL), 0, NULL), EINVAL);
    FAILS_WITH(aco_process_start(&child, NULL, 0, NULL), EINVAL);
    FAILS_WITH(aco_process_start(NULL, ARGV("true"), 0, NULL), EINVAL);
    return unused;
}

/* What ends a child: a signal, the grace of aco_process_end(), a scope. */
static void *ends_of_children(void *unused)
{
    aco_process_t child;
    aco_scope_t scope;
    char text[8];
    int kept;
    const char *polite = "trap 'echo last; exit 3' TERM; echo up; while :; do sleep 0.01; done";
    CHECK_EQ(aco_process_start(&child, ARGV("sleep", "1000"), 0, NULL), 0);
    CHECK_EQ(aco_process_signal(&child, SIGUSR1), 0); /* which this program blocks or not, the child does not */
    CHECK_EQ(aco_process_wait(&child), 0);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGUSR1);
    aco_process_end(&child, 0);
    signal(SIGUSR2, SIG_IGN); /* nor does it ignore what this program ignores */
    CHECK_EQ(aco_process_start(&child, ARGV("sleep", "1000"), 0, NULL), 0);
    CHECK_EQ(aco_process_signal(&child, SIGUSR2), 0);
    aco_scope_begin(&scope, aco_after(20 * ACO_SECOND));
    CHECK_EQ(aco_process_wait(&child), 0);
    aco_scope_end(&scope);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGUSR2);
    aco_process_end(&child, 0);
    signal(SIGUSR2, SIG_DFL);
    CHECK_EQ(aco_process_start(&child, ARGV("sleep", "1000"), 0, NULL), 0);
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_process_wait(&child), ETIMEDOUT);
    aco_process_end(&child, 20 * ACO_SECOND); /* although the scope has ended, it waits */
    aco_scope_end(&scope);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGTERM);
    CHECK_EQ(aco_process_start(&child, ARGV("sh", "-c", polite),
                               ACO_PROCESS_OUT, NULL), 0);
    CHECK_EQ(aco_io_read_exactly(child.out, text, 3), 3);
    aco_process_end(&child, 20 * ACO_SECOND); /* its last words meet no broken pipe */
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 3);
    CHECK_EQ(aco_process_start(&child, ARGV("sh", "-c", "trap '' TERM; echo ready; sleep 1000; sleep 1000"),
                               ACO_PROCESS_OUT | ACO_PROCESS_GROUP, NULL), 0);
    CHECK_EQ(aco_io_read_exactly(child.out, text, 6), 6); /* it ignores SIGTERM */
    kept = dup(child.out);
    aco_process_end(&child, ACO_MILLISECOND);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
    CHECK_EQ(aco_io_read(kept, text, 1), 0); /* its own child is gone, too */
    CHECK_EQ(aco_io_close(kept), 0);
    return unused;
}

static void *waits_for_child(void *child)
{
    CHECK_EQ(aco_process_wait((aco_process_t *)child), 0);
    CHECK(WIFEXITED(((aco_process_t *)child)->status) && WEXITSTATUS(((aco_process_t *)child)->status) == 7);
    return NULL;
}

static void *waits_and_is_cancelled(void *child)
{
    FAILS_WITH(aco_process_wait((aco_process_t *)child), ECANCELED);
    return NULL;
}

/* One of the tasks takes the status, for all. */
static void *several_wait(void *unused)
{
    aco_process_t child;
    aco_group_t waiters, cancelled;
    aco_scope_t over;
    CHECK_EQ(aco_process_start(&child, ARGV("sh", "-c", "read line; exit 7"), ACO_PROCESS_IN, NULL), 0);
    aco_group_begin(&waiters, ACO_KEEP_GOING);
    for (int i = 0; i < 3; i++)
        member(&waiters, waits_for_child, &child);
    aco_group_begin(&cancelled, ACO_KEEP_GOING);
    member(&cancelled, waits_and_is_cancelled, &child);
    aco_task_yield();
    aco_scope_cancel(&cancelled.scope);
    CHECK_EQ(aco_group_end(&cancelled), 0);
    aco_process_close_input(&child);
    CHECK_EQ(aco_group_end(&waiters), 0);
    CHECK_EQ(aco_scope_begin(&over, aco_now()), 0);
    CHECK_EQ(aco_process_wait(&child), 0); /* needs no wait any more */
    aco_scope_end(&over);
    aco_process_end(&child, 0);
    return unused;
}

/* Other code has waited for the child, and its number is another process's. */
static void *number_of_another(void *unused)
{
#ifdef SYS_pidfd_send_signal
    for (unsigned flags = 0; flags <= ACO_PROCESS_GROUP; flags += ACO_PROCESS_GROUP) {
        aco_process_t child, other, lost;
        CHECK_EQ(aco_process_start(&child, ARGV("cat"), ACO_PROCESS_IN | flags, NULL), 0);
        CHECK_EQ(aco_process_start(&other, ARGV("cat"), ACO_PROCESS_IN | flags, NULL), 0);
        lost = child;
        lost.pid = other.pid;
        if (syscall(SYS_pidfd_send_signal, child.aco__fd, 0, NULL, flags ? 4 : 0) == 0) {
            CHECK_EQ(aco_process_signal(&lost, SIGTERM), 0);
            aco_process_close_input(&child);
            CHECK_EQ(aco_process_wait(&child), 0);
            CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGTERM);
        } else {
            printf("skipped: signals to pidfds%s: %s\n", flags ? "' groups" : "", strerror(errno));
        }
        aco_process_close_input(&other);
        CHECK_EQ(aco_process_wait(&other), 0);
        CHECK_EQ(other.status, 0);
        aco_process_end(&child, 0);
        aco_process_end(&other, 0);
    }
#endif
    return unused;
}

/* A kernel that lacks the call, or signals to groups by it, gets kill(). Other failures are told. */
static void *signals_fail(void *unused)
{
    static const struct {
        unsigned flags;
        int errors[2], told;
    } cases[] = {{0, {ENOSYS, 0}, 0},
                 {0, {EPERM, 0}, EPERM},
                 {0, {EINVAL, 0}, EINVAL},
                 {ACO_PROCESS_GROUP, {ENOSYS, 0}, 0},
                 {ACO_PROCESS_GROUP, {EPERM, 0}, EPERM},
                 {ACO_PROCESS_GROUP, {EINVAL, 0}, 0},
                 {ACO_PROCESS_GROUP, {EINVAL, ESRCH}, ESRCH}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aco_process_t child;
        CHECK_EQ(aco_process_start(&child, ARGV("cat"), ACO_PROCESS_IN | cases[i].flags, NULL), 0);
        memcpy(signal_errors, cases[i].errors, sizeof signal_errors);
        if (cases[i].told)
            FAILS_WITH(aco_process_signal(&child, SIGTERM), cases[i].told);
        else
            CHECK_EQ(aco_process_signal(&child, SIGTERM), 0);
        CHECK(!signal_errors[0] && !signal_errors[1]); /* all calls were made */
        aco_process_close_input(&child);
        CHECK_EQ(aco_process_wait(&child), 0);
        CHECK_EQ(WIFSIGNALED(child.status), !cases[i].told);
        aco_process_end(&child, 0);
    }
    return unused;
}

static void root_context(void)
{
    aco_process_t child;
    CHECK_EQ(aco_process_start(&child, ARGV("sleep", "1000"), 0, NULL), 0);
    FAILS_WITH(aco_process_wait(&child), EPERM);
    aco_process_end(&child, ACO_SECOND);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
}

/* Whatever fails, nothing is left: no descriptor, no child, no blocked signal. */
static void *failures(void *unused)
{
    static const char *const functions[] = {"pipe2", "fcntl", "posix_spawnp", "pidfd_open"};
    aco_process_t child;
    aco_interrupt_t interrupt;
    sigset_t before, after;
    int result, total = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int place = 1;; place++) {
            failing = functions[i];
            position = place;
            result = aco_process_start(&child, ARGV("cat"), ACO_PROCESS_IN | ACO_PROCESS_OUT | ACO_PROCESS_ERR, NULL);
            if (result == 0) {
                CHECK(position > 0);
                failing = NULL;
                aco_process_end(&child, 20 * ACO_SECOND);
                break;
            }
            CHECK_EQ(errno, ENFILE);
            CHECK(child.in == -1 && child.out == -1 && child.err == -1);
            total++;
        }
    CHECK(total >= 3 + 8 + 1 + 1);
    FAILS_WITH(waitpid(-1, NULL, WNOHANG), ECHILD);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    failing = "signalfd";
    position = 1;
    FAILS_WITH(aco_interrupt_begin(&interrupt, (const int[]){SIGINT}, 1), ENFILE);
    failing = "eventfd";
    position = 1;
    FAILS_WITH(aco_interrupt_begin(&interrupt, (const int[]){SIGINT}, 1), ENFILE);
    failing = "epoll_create1";
    position = 1;
    FAILS_WITH(aco_interrupt_begin(&interrupt, (const int[]){SIGINT}, 1), ENFILE);
    failing = NULL;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    CHECK_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    CHECK_EQ(aco_check_cancelled(), 0);
    return unused;
}

/* ---- Standard descriptors ---- */

static void use_as_input(int fd)
{
    CHECK_EQ(dup2(fd, 0), 0);
}

static void *standard(void *unused)
{
    int kept = dup(0), ends[2], pair[2], in;
    char text[8];
    FILE *file = tmpfile();
    fputs("from a file", file);
    rewind(file);
    use_as_input(fileno(file)); /* not pollable */
    CHECK_EQ(read(0, text, 5), 5);
    in = aco_io_standard(0);
    CHECK(in > 2);
    CHECK_EQ(aco_io_wait_readable(in), 0);
    CHECK_EQ(aco_io_read(in, text, 8), 6); /* on from where it was */
    CHECK(memcmp(text, "a file", 6) == 0);
    CHECK_EQ(aco_io_read(in, text, 8), 0);
    CHECK_EQ(aco_io_read(0, text, 8), 0); /* as it is, too */
    CHECK_EQ(aco_io_close(in), 0);
    fclose(file);

    CHECK_EQ(pipe(ends), 0);
    use_as_input(ends[0]);
    FAILS_WITH(aco_io_read(0, text, 1), EINVAL); /* would block the thread */
    in = aco_io_standard(0);
    CHECK_EQ(fcntl(0, F_GETFL) & O_NONBLOCK, 0); /* it is not changed for others */
    FAILS_WITH(aco_io_wait_readable_until(in, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(write(ends[1], "p", 1), 1);
    CHECK_EQ(aco_io_read(in, text, 8), 1);
    CHECK_EQ(aco_io_close(in), 0);
    close_both(ends);

    make_pair(pair, SOCK_STREAM);
    use_as_input(pair[0]);
    in = aco_io_standard(0);
    CHECK_EQ(aco_io_write(pair[1], "s", 1), 1);
    CHECK_EQ(aco_io_read(in, text, 8), 1);
    CHECK_EQ(aco_io_close(in), 0);
    close_both(pair);

    close(0);
    FAILS_WITH(aco_io_standard(0), EBADF);
    use_as_input(kept);
    close(kept);
    return unused;
}

static void *lacks_poller(void *unused)
{
    failing = "epoll_create1";
    position = 1;
    FAILS_WITH(aco_io_standard(0), ENFILE);
    failing = NULL;
    return unused;
}

/* The first call of its thread, for a file: there the system would have no reason to fail. */
static void *new_thread(void *unused)
{
    int kept = dup(0), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    use_as_input(file);
    run_task(lacks_poller, NULL);
    use_as_input(kept);
    close(kept);
    close(file);
    return unused;
}

static void *without_poller(void *unused)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, new_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return unused;
}

int main(void)
{
    static const aco_function_t tests[] = {
        signals,        interrupts,    several_inside,   ended_inside, other_thread_unblocks, several_descriptors,
        threads_inside, children,      ends_of_children, several_wait, number_of_another,     failures,
        standard,       without_poller, signals_fail};
    aco_process_t child;
    replace_system();
    CHECK(aco_io_poll_fd() >= 0);
    signal(SIGUSR1, handler);
    if (aco_process_start(&child, ARGV("true"), 0, NULL) != 0 && errno == ENOSYS) {
        printf("skipped: this system has no pidfd_open()\n");
        run_tests(tests, 5, count_descriptors());
        return check_result("io_process");
    }
    aco_process_end(&child, 0);
    root_context();
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    return check_result("io_process");
}
