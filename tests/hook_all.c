/* aco_hook_begin_all(): the tasks of all threads are hooked, without a call of theirs (aco/hook.h). In a program of its
 * own, as there is no end to it. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64 /* the table's */
#include "system/system.h" /* first */
#include "hook_tests.h"
#include "sanitizers.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void *reads(void *fd)
{
    char byte;
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    return NULL;
}

static void *writes(void *fd)
{
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
    return NULL;
}

static void reads_at_end(void *fd)
{
    reads(fd);
}

static void *ends_with_a_read(void *pair)
{
    CHECK_EQ(write(((int *)pair)[1], "x", 1), 1);
    aco_defer(reads_at_end, (void *)(intptr_t)((int *)pair)[0]);
    return NULL;
}

/* It would hang if a read blocked the thread. */
static void *waits(void *unused)
{
    int pair[2];
    aco_t *reader;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK(aco_hook_active());
    reader = beside(reads, (void *)(intptr_t)pair[0]);
    join(beside(writes, (void *)(intptr_t)pair[1]));
    join(reader);
    join(beside(ends_with_a_read, pair));
    CHECK_EQ(aco_hook_begin(), 0); /* these nest */
    CHECK_EQ(aco_hook_end(), 0);
    CHECK(aco_hook_active());
    close_two(pair);
    return unused;
}

static void looks(int number)
{
    (void)number;
    CHECK(!aco_hook_active());
}

/* A handler does not make the first call of the task that it interrupts. */
static void *is_interrupted(void *unused)
{
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK(aco_hook_active());
    return unused;
}

static void test_first_in_handler(void)
{
    CHECK(signal(SIGUSR1, looks) == SIG_DFL);
    run_task(is_interrupted, NULL);
    CHECK(signal(SIGUSR1, SIG_DFL) == looks);
}

static pthread_mutex_t mutexes[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static int inside;

static void *locks_first(void *mutex)
{
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    CHECK_EQ(inside++, 0);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    inside--;
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    return NULL;
}

/* The thread has no hooked task yet, and a lock is the first call of each. */
static void *test_first_is_a_lock(void *mutex)
{
    aco_t *first = beside(locks_first, mutex);
    join(beside(locks_first, mutex));
    join(first);
    return NULL;
}

static void *runs_tasks(void *unused)
{
    CHECK(aco_io_poll_fd() >= 0);
    for (int i = 0; i < 3; i++)
        run_task(waits, NULL);
    return unused;
}

/* A child of vfork() has its parent's memory: its calls leave that of the thread as it is. */
static void *calls_vfork(void *unused)
{
    int status = -1;
    pid_t child = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork): its memory is what is tested
    if (child == 0)
        _exit(fcntl(0, F_GETFD) < 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(aco_hook_active());
    return unused;
}

static void *stays_hooked(void *unused)
{
    CHECK(aco_hook_active());
    return unused;
}

static void *runs_vfork(void *unused)
{
    run_task(calls_vfork, NULL);
    run_task(stays_hooked, NULL);
    return unused;
}

#define IS_NO_HOOK(name) CHECK((void (*)(void))aco__system.name != (void (*)(void))name)

/* acorn's libraries do not call the hooks. */
static void test_table(void)
{
    IS_NO_HOOK(read);
    IS_NO_HOOK(write);
    IS_NO_HOOK(readv);
    IS_NO_HOOK(writev);
    IS_NO_HOOK(recv);
    IS_NO_HOOK(recvmsg);
    IS_NO_HOOK(send);
    IS_NO_HOOK(sendmsg);
    IS_NO_HOOK(connect);
    IS_NO_HOOK(close);
    IS_NO_HOOK(poll);
    IS_NO_HOOK(accept4);
    IS_NO_HOOK(nanosleep);
    IS_NO_HOOK(sched_yield);
    IS_NO_HOOK(pthread_mutex_lock);
    IS_NO_HOOK(pthread_mutex_unlock);
    IS_NO_HOOK(waitpid);
    IS_NO_HOOK(socket);
#if defined(__LP64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
    IS_NO_HOOK(rename);
    IS_NO_HOOK(link);
    IS_NO_HOOK(unlink);
    IS_NO_HOOK(mkfifo);
    IS_NO_HOOK(mkdir);
    IS_NO_HOOK(rmdir);
    IS_NO_HOOK(opendir);
    IS_NO_HOOK(closedir);
#endif
#endif
}

int main(void)
{
    pthread_t threads[2];
    alarm(60);
    CHECK_EQ(aco_hook_begin_all(), 0);
    CHECK(!aco_hook_active()); /* no task */
    CHECK(aco_io_poll_fd() >= 0);
    if (!SANITIZED) /* whose own functions may stand before the hooks */
        test_table();
    test_first_in_handler();
    for (size_t i = 0; i < sizeof mutexes / sizeof *mutexes; i++)
        run_task(test_first_is_a_lock, &mutexes[i]);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, runs_tasks, NULL), 0);
    runs_tasks(NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(count_waits() > 0);
    CHECK_EQ(pthread_create(&threads[0], NULL, runs_vfork, NULL), 0); /* the last: gcov counts nothing behind vfork() */
    CHECK_EQ(pthread_join(threads[0], NULL), 0);
    return check_result("hook_all");
}
