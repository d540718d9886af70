/* Hooks on libc (hook_tests.h): which tasks are hooked, their locks, share stacks, cleanup; children, other threads,
 * the names that _FORTIFY_SOURCE calls. With the argument "seeded" what sanitizers must find. */
#define _GNU_SOURCE
#include <aco/offload.h>
#include "hook_tests.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* ---- Locks ---- */

typedef struct locked {
    pthread_mutex_t mutex;
    int is_recursive, inside, count;
} locked_t;

static void *locks(void *arg)
{
    locked_t *locked = arg;
    begin();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_mutex_lock(&locked->mutex), 0);
        if (locked->is_recursive)
            CHECK_EQ(pthread_mutex_lock(&locked->mutex), 0);
        CHECK_EQ(locked->inside++, 0);
        CHECK_EQ(usleep(300), 0); /* a switch with the lock held */
        CHECK_EQ(--locked->inside, 0);
        locked->count++;
        if (locked->is_recursive)
            CHECK_EQ(pthread_mutex_unlock(&locked->mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&locked->mutex), 0);
    }
    return NULL;
}

static void *test_locks(void *unused)
{
    for (int way = 0; way < 2; way++) {
        locked_t locked = {PTHREAD_MUTEX_INITIALIZER, way, 0, 0};
        pthread_mutexattr_t attributes;
        aco_t *tasks[5];
        pthread_mutexattr_init(&attributes);
        CHECK_EQ(pthread_mutexattr_settype(&attributes, way ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL), 0);
        CHECK_EQ(pthread_mutex_init(&locked.mutex, &attributes), 0);
        for (int i = 0; i < 5; i++)
            tasks[i] = beside(locks, &locked);
        for (int i = 0; i < 5; i++)
            join(tasks[i]);
        CHECK_EQ(locked.count, 15);
        CHECK_EQ(pthread_mutex_destroy(&locked.mutex), 0);
    }
    return unused;
}

typedef struct shared_locks {
    pthread_mutex_t mutex;
    pthread_rwlock_t rw;
    sem_t semaphore;
    int inside;
} shared_locks_t;

static void *holds_for_a_while(void *arg)
{
    shared_locks_t *locks = arg;
    begin();
    CHECK_EQ(pthread_mutex_trylock(&locks->mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&locks->mutex), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&locks->rw), 0);
    locks->inside = 1;
    CHECK_EQ(usleep(20000), 0);
    locks->inside = 0;
    CHECK_EQ(pthread_rwlock_unlock(&locks->rw), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks->mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks->mutex), 0);
    let_wait();
    CHECK_EQ(sem_post(&locks->semaphore), 0);
    return NULL;
}

/* Another task's locks: the thread, which holds them, would be granted the recursive mutex. */
static void *test_other_locks(void *unused)
{
    shared_locks_t locks = {.rw = PTHREAD_RWLOCK_INITIALIZER};
    struct timespec time;
    pthread_mutexattr_t attributes;
    aco_scope_t scope;
    aco_t *other;
    begin();
    pthread_mutexattr_init(&attributes);
    CHECK_EQ(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE), 0);
    CHECK_EQ(pthread_mutex_init(&locks.mutex, &attributes), 0);
    CHECK_EQ(sem_init(&locks.semaphore, 0, 0), 0);
    other = beside(holds_for_a_while, &locks);
    while (!locks.inside)
        aco_task_yield();
    CHECK_EQ(pthread_mutex_trylock(&locks.mutex), EBUSY);
    clock_gettime(CLOCK_REALTIME, &time);
    CHECK_EQ(pthread_mutex_timedlock(&locks.mutex, &time), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_rdlock(&locks.rw), 0);
    CHECK(!locks.inside);
    CHECK_EQ(pthread_rwlock_unlock(&locks.rw), 0);
    time.tv_sec += 100;
    CHECK_EQ(pthread_mutex_timedlock(&locks.mutex, &time), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks.mutex), 0);
    errno = 77;
    CHECK_EQ(sem_wait(&locks.semaphore), 0);
    CHECK_EQ(errno, 77);
    join(other);
    time.tv_sec -= 200;
    FAILS_WITH(sem_timedwait(&locks.semaphore, &time), ETIMEDOUT);
    time.tv_nsec = -1;
    FAILS_WITH(sem_timedwait(&locks.semaphore, &time), EINVAL);
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    FAILS_WITH(sem_wait(&locks.semaphore), ECANCELED);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(sem_destroy(&locks.semaphore), 0);
    CHECK_EQ(pthread_mutex_destroy(&locks.mutex), 0);
    return unused;
}

/* ---- Who is hooked ---- */

static void *is_active(void *arg)
{
    CHECK_EQ(aco_hook_active(), (int)(intptr_t)arg);
    return NULL;
}

static void *reads_inside(void *arg)
{
    char byte = 0;
    CHECK_EQ(aco_hook_active(), 1);
    FAILS_WITH(aco_hook_begin(), EPERM);
    FAILS_WITH(aco_hook_end(), EPERM);
    CHECK_EQ(read((int)(intptr_t)arg, &byte, 1), 1);
    return NULL;
}

static void *test_begin(void *unused)
{
    aco_t *co;
    int pair[2];
    aco_t *other;
    FAILS_WITH(aco_hook_end(), EPERM);
    CHECK_EQ(aco_hook_active(), 0);
    CHECK_EQ(aco_hook_begin(), 0);
    CHECK_EQ(aco_hook_begin(), 0);
    other = beside(is_active, NULL); /* each for itself */
    join(other);
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(aco_hook_active(), 1);
    blocking_pair(pair, SOCK_STREAM);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    co = aco_new(reads_inside, (void *)(intptr_t)pair[0], NULL);
    aco_send(co, NULL);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    aco_destroy(co);
    join(other);
    errno = 77;
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(aco_hook_active(), 0);
    FAILS_WITH(aco_hook_end(), EPERM);
    FAILS_WITH(aco_hook_stats(NULL), EINVAL);
    close_two(pair);
    return unused;
}

/* On a share stack: buffers on it, polls, vectors, files. */
static void *on_share_stack(void *fd)
{
    char bytes[8] = "", host[NI_MAXHOST];
    struct iovec parts[2] = {{bytes, 1}, {bytes + 1, 1}};
    struct pollfd p = {(int)(intptr_t)fd, POLLIN, 0};
    struct sockaddr_in address = {0};
    fd_set set;
    begin();
    CHECK_EQ(read((int)(intptr_t)fd, bytes, 1), 1);
    CHECK_EQ(bytes[0], 'x');
    CHECK_EQ(poll(&p, 1, -1), 1);
    FD_ZERO(&set);
    FD_SET((int)(intptr_t)fd, &set);
    CHECK_EQ(select((int)(intptr_t)fd + 1, &set, NULL, NULL, NULL), 1);
    CHECK_EQ(readv((int)(intptr_t)fd, parts, 2), 1);
    CHECK_EQ(usleep(100), 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0), 0);
    return NULL;
}

static void *test_share_stack(void *unused)
{
    aco_options_t options = {0};
    aco_t *tasks[3];
    int pairs[3][2];
    options.stack = aco_share_stack_new(0);
    begin();
    for (int i = 0; i < 3; i++) {
        blocking_pair(pairs[i], SOCK_STREAM);
        tasks[i] = aco_spawn(on_share_stack, (void *)(intptr_t)pairs[i][0], &options);
        CHECK(tasks[i] != NULL);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            let_wait();
            CHECK_EQ(write(pairs[i][1], "x", 1), 1);
        }
    for (int i = 0; i < 3; i++) {
        join(tasks[i]);
        close_two(pairs[i]);
    }
    aco_share_stack_destroy(options.stack);
    return unused;
}

/* ---- Where the thread blocks ---- */

static void sleeps_in_cleanup(void *unused)
{
    (void)unused;
    CHECK_EQ(usleep(100), 0);
}

static void *ends_hooked(void *unused)
{
    begin();
    aco_defer(sleeps_in_cleanup, NULL);
    return unused;
}

static void *test_cleanup(void *unused)
{
    uint64_t blocked = count_blocked();
    join(beside(ends_hooked, NULL));
    CHECK_EQ(count_blocked(), blocked + 1);
    return unused;
}

/* A child's calls go to libc, and leave its parent's descriptors alone. */
static void *test_fork(void *unused)
{
    char byte;
    int pair[2], status = -1;
    waiter_t waiter;
    aco_t *task;
    pid_t child;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    waiter = (waiter_t){pair[0], 0, 0};
    task = beside(reads_until_closed, &waiter);
    let_wait();
    child = fork();
    if (child == 0) {
        int own[2], is_good = aco_hook_begin() != 0 && errno == EPERM && socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0;
        close(pair[0]);
        is_good = is_good && usleep(1000) == 0 && write(own[1], "c", 1) == 1 && read(own[0], &byte, 1) == 1;
        _exit(is_good ? 0 : 3);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    let_wait();
    CHECK(!waiter.is_over);
    CHECK_EQ(close(pair[0]), 0);
    join(task);
    CHECK_EQ(close(pair[1]), 0);
    return unused;
}

/* vfork(): the child has the parent's memory, and its calls go to libc, too. */
static void *test_vfork(void *unused)
{
    static char *const command[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)"exit 5",
                                    NULL};
    int pair[2], own[2], status = -1;
    waiter_t waiter;
    aco_t *task;
    pid_t child;
    char byte = 0;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(pipe2(own, O_CLOEXEC), 0);
    waiter = (waiter_t){pair[0], 0, 0};
    task = beside(reads_until_closed, &waiter);
    let_wait();
    child = vfork();
    if (child == 0) {
        if (usleep(1000) != 0 || write(own[1], "v", 1) != 1 || read(own[0], &byte, 1) != 1)
            _exit(3);
        if (close(pair[0]) != 0 || dup2(own[0], pair[0]) != pair[0])
            _exit(4);
        execv("/bin/sh", command);
        _exit(6);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 5);
    let_wait();
    CHECK(!waiter.is_over);
    CHECK_EQ(close(pair[0]), 0);
    join(task);
    CHECK_EQ(waiter.error, EBADF);
    CHECK_EQ(close(pair[1]), 0);
    close_two(own);
    return unused;
}

/* A shell command that ends when another task has written a line to it. */
typedef struct ends_later {
    int pipe[2];
    char command[64];
} ends_later_t;

static void *writes_line(void *arg)
{
    ends_later_t *later = arg;
    begin();
    usleep(3000);
    CHECK_EQ(write(later->pipe[1], "line\n", 5), 5);
    return NULL;
}

static pid_t spawned(ends_later_t *later)
{
    char *command[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", later->command, NULL};
    pid_t child = -1;
    CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ), 0);
    return child;
}

static int ended_by(int way, ends_later_t *later)
{
    struct rusage usage;
    pid_t child = way < 4 ? spawned(later) : 0;
    int status = -1;
    switch (way) {
    case 0:
        CHECK_EQ(waitpid(child, &status, 0), child);
        return status;
    case 1:
        CHECK_EQ(wait(&status), child);
        return status;
    case 2:
        CHECK_EQ(wait4(child, &status, 0, &usage), child);
        return status;
    case 3:
        CHECK_EQ(waitpid(-1, &status, WUNTRACED), child);
        return status;
    case 4:
        return system(later->command);
    default:
        return pclose(popen(later->command, "w"));
    }
}

static void make_later(ends_later_t *later)
{
    CHECK_EQ(pipe(later->pipe), 0);
    snprintf(later->command, sizeof later->command, "read x </dev/fd/%d; exit 7", later->pipe[0]);
}

static void *test_children(void *unused)
{
    aco_scope_t scope;
    ends_later_t later;
    pid_t child;
    int status;
    make_later(&later);
    begin();
    for (int way = 0; way < 6; way++) {
        aco_t *other = beside(writes_line, &later);
        errno = 77;
        status = ended_by(way, &later);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 7);
        CHECK_EQ(errno, 77);
        join(other);
    }
    FAILS_WITH(waitpid(-1, &status, 0), ECHILD);
    FAILS_WITH(wait(NULL), ECHILD);
    status = system("kill -TERM $$"); /* nothing is blocked that the caller did not block */
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(system(NULL) != 0);
    child = spawned(&later);
    CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    FAILS_WITH(waitpid(child, &status, 0), ETIMEDOUT);
    FAILS_WITH(wait(&status), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(write(later.pipe[1], "line\n", 5), 5);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close_two(later.pipe);
    return unused;
}

static void *runs_command(void *arg)
{
    ends_later_t *later = arg;
    begin();
    CHECK_EQ(WEXITSTATUS(system(later->command)), 7);
    return NULL;
}

typedef struct canceller {
    aco_scope_t scope;
    size_t queued;
} canceller_t;

/* Cancels the scope when the pool's one thread is busy, and so many functions wait for it. */
static void *cancels(void *arg)
{
    canceller_t *canceller = arg;
    aco_offload_stats_t stats;
    begin();
    do {
        usleep(1000);
        CHECK_EQ(aco_offload_stats(&stats), 0);
    } while (stats.idle || stats.queued != canceller->queued);
    CHECK_EQ(aco_scope_cancel(&canceller->scope), 0);
    return NULL;
}

static void await_reaping(void)
{
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        usleep(1000);
    CHECK_EQ(errno, ECHILD);
}

/* pclose() closes its stream, and no child is left, when the scope ends before the call, or with the call in the pool's
 * queue or on its thread. system() on the thread goes on. */
static void *test_scope_ends(void *unused)
{
    enum { BEFORE, IN_QUEUE, ON_THREAD, SYSTEM_ON_THREAD, WAYS };
    ends_later_t later;
    make_later(&later);
    begin();
    CHECK_EQ(aco_offload_limits(1, 10 * ACO_SECOND), 0);
    for (int way = BEFORE; way < WAYS; way++) {
        canceller_t canceller = {.queued = way == IN_QUEUE};
        FILE *stream = way != SYSTEM_ON_THREAD ? popen(later.command, "w") : NULL;
        int fd = stream ? fileno(stream) : -1;
        aco_t *holder = way == IN_QUEUE ? beside(runs_command, &later) : NULL, *other = NULL;
        let_wait();
        CHECK_EQ(aco_scope_begin(&canceller.scope, ACO_FOREVER), 0);
        if (way == BEFORE) {
            CHECK_EQ(aco_scope_cancel(&canceller.scope), 0);
            FAILS_WITH(system(later.command), ECANCELED); /* it does not begin, or a line would lack */
        } else {
            other = beside(cancels, &canceller);
        }
        FAILS_WITH(stream ? pclose(stream) : system(later.command), ECANCELED);
        CHECK_EQ(aco_scope_end(&canceller.scope), 0);
        if (other)
            join(other);
        CHECK_EQ(write(later.pipe[1], "line\nline\n", holder ? 10 : 5), holder ? 10 : 5);
        if (holder)
            join(holder);
        await_reaping();
        FAILS_WITH(fcntl(fd, F_GETFD), EBADF);
    }
    CHECK_EQ(aco_offload_limits(64, 10 * ACO_SECOND), 0);
    close_two(later.pipe);
    return unused;
}

/* Outside of hooked tasks all goes to libc, in other threads too. */
static void *other_thread(void *fd)
{
    char byte = 0;
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    CHECK_EQ(usleep(10), 0);
    CHECK_EQ(aco_hook_active(), 0);
    return NULL;
}

/* Sanitizers see what goes through the hooks: no race where a mutex is. */
static pthread_mutex_t counter_mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *counts(void *unused)
{
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(pthread_mutex_lock(&counter_mutex), 0);
        counter++;
        CHECK_EQ(pthread_mutex_unlock(&counter_mutex), 0);
    }
    return unused;
}

static void *test_threads(void *unused)
{
    pthread_t thread;
    int pair[2];
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, (void *)(intptr_t)pair[0]), 0);
    CHECK_EQ(usleep(1000), 0);
    CHECK_EQ(write(pair[1], "t", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_two(pair);
    CHECK_EQ(pthread_create(&thread, NULL, counts, NULL), 0);
    counts(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(counter, 200);
    return unused;
}

/* The thread ends, and a task on it waits. */
static void *leaves_task_waiting(void *pair)
{
    static _Alignas(65536) char stack[1 << 18];
    static waiter_t waiter;
    aco_options_t options = {.stack_memory = stack, .stack_size = sizeof stack};
    int64_t next;
    waiter.fd = ((const int *)pair)[0];
    CHECK(aco_io_poll_fd() >= 0);
    CHECK(aco_spawn(reads_until_closed, &waiter, &options) != NULL);
    CHECK(aco_run_ready(&next) >= 0);
    return NULL;
}

static pthread_key_t ends_key;
static int signals_handled;

static void counts_signal(int number)
{
    (void)number;
    signals_handled++;
}

/* The second time all of acorn's is gone. Nobody writes to what has the numbers of its descriptors now. */
static void gets_signal_at_end(void *round)
{
    enum { NEW = 16 };
    int fds[NEW];
    uint64_t written;
    if (round == &ends_key) {
        CHECK_EQ(pthread_setspecific(ends_key, &signals_handled), 0);
        return;
    }
    for (int i = 0; i < NEW; i++)
        fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK_EQ(raise(SIGUSR1), 0);
    for (int i = 0; i < NEW; i++) {
        FAILS_WITH(read(fds[i], &written, sizeof written), EAGAIN);
        CHECK_EQ(close(fds[i]), 0);
    }
}

static void *ends_with_task(void *pair)
{
    CHECK_EQ(pthread_setspecific(ends_key, &ends_key), 0);
    return leaves_task_waiting(pair);
}

static void *test_thread_end(void *unused)
{
    pthread_t thread;
    int pair[2];
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(pthread_key_create(&ends_key, gets_signal_at_end), 0);
    CHECK(signal(SIGUSR1, counts_signal) == SIG_DFL);
    CHECK_EQ(pthread_create(&thread, NULL, ends_with_task, pair), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(signals_handled, 1);
    CHECK(signal(SIGUSR1, SIG_DFL) == counts_signal);
    CHECK_EQ(pthread_key_delete(ends_key), 0);
    close_two(pair);
    return unused;
}

/* What sanitizers must report: a call that waited writes behind its buffer, or what a thread reads without order. */
static char unordered;
static void *reads_unordered(void *fd)
{
    char byte;
    CHECK_EQ(aco_hook_active(), 0);
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    CHECK(unordered != 'z');
    return NULL;
}

static void *seeded(void *unused)
{
    volatile size_t size = 4;
    char *room = malloc(size);
    int pair[2], others[2];
    pthread_t thread;
    aco_t *other;
    begin();
    CHECK(room != NULL);
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(pipe(others), 0);
    CHECK_EQ(pthread_create(&thread, NULL, reads_unordered, (void *)(intptr_t)others[0]), 0);
    CHECK_EQ(write(others[1], "t", 1), 1);
    usleep(100000);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], &unordered, 1), 1);
    join(other);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], room + size, 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    free(room);
    return unused;
}

#ifdef __GLIBC__
extern ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
extern ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
extern int __open_2(const char *path, int flags);
#endif

/* The names that _FORTIFY_SOURCE calls. */
static void *test_fortified(void *unused)
{
    char byte = 0;
    int pair[2], fd;
    struct pollfd p;
    aco_t *other;
    uint64_t waits;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    p = (struct pollfd){pair[0], POLLIN, 0};
    waits = count_waits();
    for (int way = 0; way < 2; way++) {
        other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
        CHECK_EQ(__poll_chk(&p, 1, -1, sizeof p), 1);
        CHECK_EQ(way ? __read_chk(pair[0], &byte, 1, 1) : __recv_chk(pair[0], &byte, 1, 1, 0), 1);
        join(other);
    }
    fd = __open_2("/", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(count_waits() >= waits + 3);
    CHECK_EQ(close(fd), 0);
    close_two(pair);
    return unused;
}

int main(int argc, char **argv)
{
    static const aco_function_t watched[] = {test_begin, test_locks, test_other_locks, test_fortified, NULL};
    /* test_vfork is the last: gcov counts nothing after it */
    static const aco_function_t others[] = {test_share_stack, test_cleanup,  test_fork,       test_threads,
                                            test_thread_end,  test_children, test_scope_ends, test_vfork,
                                            NULL};
    static const aco_function_t in_both[] = {test_locks, test_other_locks, test_fortified, test_share_stack,
                                             test_cleanup, NULL};
    if (argc > 1 && strcmp(argv[1], "seeded") == 0) {
        run_task(seeded, NULL);
        return 0;
    }
    return run_hook_tests(argc, argv, "hook_tasks", watched, others, in_both);
}
