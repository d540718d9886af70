/* For the tests of hooks on libc (aco/hook.h). In a hooked task each blocking call lets other tasks run, gives what
 * libc would, and leaves the descriptors as the client made them. Each test would hang if a call blocked the thread:
 * the one who ends its wait is a task of the same thread. */
#ifndef HOOK_TESTS_H
#define HOOK_TESTS_H

#include <aco/hook.h>
#include "io_tests.h"

enum { LARGE = 1 << 20, MANY = 1000 };

static int is_hooked = 1;
static char *large; /* bytes to send */

static inline void begin(void)
{
    if (is_hooked && aco_hook_begin() != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        CHECK(!"aco_hook_begin()");
    }
}

static inline uint64_t count_waits(void)
{
    aco_hook_stats_t stats;
    CHECK_EQ(aco_hook_stats(&stats), 0);
    return stats.waits;
}

static inline uint64_t count_blocked(void)
{
    aco_hook_stats_t stats;
    CHECK_EQ(aco_hook_stats(&stats), 0);
    return stats.blocked;
}

static inline void is_blocking(int fd)
{
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
}

static inline void blocking_pair(int pair[2], int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static inline void close_two(const int pair[2])
{
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

/* Runs `other` as a task beside the caller, which joins it. */
static inline aco_t *beside(aco_function_t other, void *arg)
{
    aco_t *task = aco_spawn(other, arg, NULL);
    CHECK(task != NULL);
    return task;
}

static inline void join(aco_t *task)
{
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* Lets the caller's partner begin its wait, whatever that needs: tasks run in turns. */
static inline void let_wait(void)
{
    if (IS_SIMULATED) /* tasks run in any order: until all wait */
        aco_sleep(1);
    for (int i = 0; i < 5 && !IS_SIMULATED; i++)
        aco_task_yield();
}

static inline void *writes_a_byte(void *fd)
{
    let_wait();
    begin();
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
    return NULL;
}

typedef struct waiter {
    int fd, error, is_over;
} waiter_t;

static inline void *reads_until_closed(void *arg)
{
    waiter_t *waiter = arg;
    char byte;
    begin();
    waiter->error = read(waiter->fd, &byte, 1) < 0 ? errno : 0;
    waiter->is_over = 1;
    return NULL;
}

static inline size_t count_tests(const aco_function_t *tests)
{
    size_t n = 0;
    while (tests[n])
        n++;
    return n;
}

/* Runs the tests of a program, each array until NULL. With the argument "watched" only those run that never block, for
 * tests/hook/blocking.py; with "unhooked" the first of these without hooks, so that it blocks. In a simulation those of
 * `in_both` run. */
static inline int run_hook_tests(int argc, char **argv, const char *name, const aco_function_t *watched,
                                 const aco_function_t *others, const aco_function_t *in_both)
{
    int before;
    alarm(150);
    large = malloc(LARGE);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 1000);
    FAILS_WITH(aco_hook_begin(), EPERM);
    CHECK(aco_io_poll_fd() >= 0);
    if (argc == 1 || strcmp(argv[1], "unhooked") != 0)
        run_task(warms_up, NULL);
    before = count_descriptors();
    if (argc > 1 && strcmp(argv[1], "unhooked") == 0) {
        is_hooked = 0;
        alarm(2);
        run_tests(watched, 1, before);
        return 0;
    }
    if (IS_SIMULATED) {
        run_tests(in_both, count_tests(in_both), before);
        free(large);
        return check_result(name);
    }
    run_tests(watched, count_tests(watched), before);
    if (argc == 1)
        run_tests(others, count_tests(others), before);
    free(large);
    return check_result(name);
}

#endif
