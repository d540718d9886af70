/* Deadlines of a process that was stopped: what came for a descriptor before the deadline is in time, wherever the stop
 * came. The process is not really stopped: the system call near which that happens writes the byte, and returns only
 * after the deadline. */
#include "replace.h" /* first */

#include "io_tests.h"

#include <aco/detail/descriptors.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

typedef enum place { IN_WAIT, AFTER_EVENT, AFTER_LOOK } place_t;

static int ends[2], others[2]; /* two pipes */
static place_t place;
static int64_t deadline, written_at; /* written_at 0: the stop is to come */

/* Something else writes, while the process is stopped until the deadline is over. */
static void be_stopped(void)
{
    CHECK_EQ(write(ends[1], "x", 1), 1);
    written_at = aco_now();
    while (aco_now() <= deadline)
        continue;
}

static int is_to_stop(place_t here)
{
    return place == here && deadline && !written_at;
}

/* A wait that is interrupted by a stop fails with EINTR, also if there are events when the process continues. */
static int interrupted(void)
{
    be_stopped();
    errno = EINTR;
    return -1;
}

static int found_before(int n)
{
    if (n > 0 && is_to_stop(AFTER_EVENT))
        be_stopped();
    return n;
}

REAL(epoll_wait);
static int failing_epoll_wait(int events, struct epoll_event *found, int room, int ms)
{
    if (ms && is_to_stop(IN_WAIT))
        return interrupted();
    return found_before(real_epoll_wait(events, found, room, ms));
}

REAL(epoll_pwait2);
static int failing_epoll_pwait2(int events, struct epoll_event *found, int room, const struct timespec *limit)
{
    if (is_to_stop(IN_WAIT))
        return interrupted();
    return found_before(real_epoll_pwait2(events, found, room, limit));
}

REAL(poll);
static int failing_poll(struct pollfd *fds, nfds_t n, int ms)
{
    int ready = real_poll(fds, n, ms);
    if (ready == 0 && is_to_stop(AFTER_LOOK))
        be_stopped();
    return ready;
}

/* Begins to wait for `ns`, and then what is to come comes. */
static int64_t await_stop(int64_t ns)
{
    written_at = 0;
    deadline = aco_after(ns);
    return deadline;
}

/* The machine is slow: nothing came before the deadline. */
static int was_late(void)
{
    return !written_at || written_at >= deadline;
}

static void *is_woken(void *unused)
{
    char byte;
    CHECK_EQ(aco_io_read(others[0], &byte, 1), 1);
    return unused;
}

static void *reads(void *unused)
{
    int64_t ns = 2 * ACO_MILLISECOND;
    char byte = 0;
    ssize_t n;
    do {
        aco_scope_t scope;
        aco_scope_begin(&scope, await_stop(ns));
        n = aco_io_read(ends[0], &byte, 1);
        aco_scope_end(&scope);
        ns *= 2;
    } while (n < 0 && was_late());
    CHECK_EQ(n, 1);
    CHECK_EQ(byte, 'x');
    return unused;
}

static void *stopped_in_wait(void *unused)
{
    place = IN_WAIT;
    return reads(unused);
}

static void *stopped_after_event(void *unused)
{
    aco_group_t group;
    place = AFTER_EVENT;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, is_woken, NULL);
    member(&group, reads, NULL);
    aco_task_yield(); /* both wait */
    CHECK_EQ(write(others[1], "y", 1), 1);
    CHECK_EQ(aco_group_end(&group), 0);
    return unused;
}

static void *stopped_after_look(void *unused)
{
    struct pollfd p = {ends[0], POLLIN, 0};
    int64_t ns = 2 * ACO_MILLISECOND;
    int ready;
    char byte;
    place = AFTER_LOOK;
    do {
        ready = aco__io_poll(&p, 1, await_stop(ns), "test", ACO_PLACE);
        ns *= 2;
    } while (ready == 0 && was_late());
    CHECK_EQ(ready, 1);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    return unused;
}

int main(void)
{
    static const aco_function_t tests[] = {stopped_in_wait, stopped_after_event, stopped_after_look};
    REPLACE(epoll_wait);
    REPLACE(epoll_pwait2);
    REPLACE(poll);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        make_pipe(ends);
        make_pipe(others);
        run_task(tests[i], NULL);
        close_both(ends);
        close_both(others);
    }
    return check_result("io_stopped");
}
