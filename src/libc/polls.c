/* Hooks of calls that wait for several descriptors. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/poller.h"

#include <limits.h>
#include <signal.h>
#include <sys/time.h>

const char aco__hooks_of_polls = 1;

enum { LEAST_TABLE = 64 /* of descriptors, in Linux */ };
enum { MASKED_NAP_NS = 10000000, NS_OF_MS = 1000000 };

static const struct timespec no_time = {0, 0};

/* The deadline of a time limit; NULL: none. -1: it is not valid. */
static int64_t deadline_of(const struct timespec *limit)
{
    if (!limit)
        return ACO_FOREVER;
    return aco__hook_is_time(limit) ? aco_after(aco__hook_ns(limit->tv_sec, limit->tv_nsec)) : -1;
}

/* Such a call does not wait. */
static int is_zero(const struct timespec *limit)
{
    return limit && !limit->tv_sec && !limit->tv_nsec;
}

static int64_t deadline_of_ms(int ms)
{
    return ms < 0 ? ACO_FOREVER : aco_after((int64_t)ms * NS_OF_MS);
}

static int ms_until(int64_t deadline)
{
    int64_t ms = (deadline - aco_now() + NS_OF_MS - 1) / NS_OF_MS;
    return deadline == ACO_FOREVER ? -1 : ms < 0 ? 0 : ms < INT_MAX ? (int)ms : INT_MAX;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- poll() ---- */

/* With a mask, which only a system call can apply: a signal that it lets through is noticed at the next look. */
ACO__SWITCHES
static int poll_masked(struct pollfd *fds, nfds_t n, int64_t deadline, const aco__hook_call_t *call,
                       const sigset_t *mask)
{
    for (;;) {
        int is_late = aco_now() >= deadline; /* before the look: the process may be stopped in between */
        int ready = aco__libc()->ppoll(fds, n, &no_time, mask);
        if (ready != 0 || is_late)
            return ready;
        ready = aco__hook_poll(fds, n, earlier(deadline, aco_after(MASKED_NAP_NS)), call, "libc's ppoll()");
        if (ready != 0)
            return ready;
    }
}

ACO__HOOK(int, poll, (struct pollfd * fds, nfds_t n, int ms))
{
    aco__hook_call_t call = aco__hook_call(HOOK_NEVER_RESTARTS);
    int error = errno, ready;
    if (!aco__hooked() || ms == 0)
        return aco__libc()->poll(fds, n, ms);
    ready = aco__hook_poll(fds, n, deadline_of_ms(ms), &call, "libc's poll()");
    return ready == HOOK_CANNOT_WAIT ? aco__libc()->poll(fds, n, ms) : (int)aco__hook_result(ready, error);
}

ACO__HOOK(int, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *limit, const sigset_t *mask))
{
    aco__hook_call_t call = aco__hook_call(HOOK_NEVER_RESTARTS);
    int error = errno, ready;
    int64_t deadline = aco__hooked() ? deadline_of(limit) : -1;
    if (deadline < 0 || is_zero(limit))
        return aco__libc()->ppoll(fds, n, limit, mask);
    ready = mask ? poll_masked(fds, n, deadline, &call, mask)
                 : aco__hook_poll(fds, n, deadline, &call, "libc's ppoll()");
    return ready == HOOK_CANNOT_WAIT ? aco__libc()->ppoll(fds, n, limit, mask) : (int)aco__hook_result(ready, error);
}

ACO__HOOK(int, __poll_chk, (struct pollfd * fds, nfds_t n, int ms, size_t size))
{
    if (size / sizeof *fds < n)
        __chk_fail();
    return aco__as_poll(fds, n, ms);
}

ACO__HOOK(int, __ppoll_chk,
          (struct pollfd * fds, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t size))
{
    if (size / sizeof *fds < n)
        __chk_fail();
    return aco__as_ppoll(fds, n, limit, mask);
}

/* ---- select() ---- */

/* A set of descriptors, which may be larger than FD_SETSIZE. */
enum { WORD_BITS = sizeof(unsigned long) * CHAR_BIT };
static int is_in(const fd_set *set, int fd)
{
    return set && ((const unsigned long *)(const void *)set)[fd / WORD_BITS] >> fd % WORD_BITS & 1;
}

static void put_in(fd_set *set, int fd)
{
    ((unsigned long *)(void *)set)[fd / WORD_BITS] |= 1UL << fd % WORD_BITS;
}

static size_t size_of_set(int n)
{
    return ((size_t)n + WORD_BITS - 1) / WORD_BITS * sizeof(long);
}

static void empty(fd_set *set, int n)
{
    if (set)
        memset(set, 0, size_of_set(n));
}

enum { SETS = 3 };
static const short asked[SETS] = {POLLIN, POLLOUT, POLLPRI};
static const short answers[SETS] = {POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR,
                                    POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR, POLLPRI};

static nfds_t polls_of_sets(struct pollfd *fds, int n, fd_set *const sets[SETS])
{
    nfds_t used = 0;
    for (int fd = 0; fd < n; fd++) {
        short events = 0;
        for (int i = 0; i < SETS; i++)
            if (is_in(sets[i], fd))
                events |= asked[i];
        if (!events)
            continue;
        fds[used].fd = fd;
        fds[used].events = events;
        fds[used++].revents = 0;
    }
    return used;
}

/* Whether any descriptor has what its sets are for; -1 and errno: one is none. */
static int have_answers(const struct pollfd *fds, nfds_t used)
{
    int found = 0;
    for (nfds_t i = 0; i < used; i++) {
        if (fds[i].revents & POLLNVAL) {
            errno = EBADF;
            return -1;
        }
        for (int set = 0; set < SETS; set++)
            found |= fds[i].events & asked[set] && fds[i].revents & answers[set];
    }
    return found;
}

static int answer_sets(const struct pollfd *fds, nfds_t used, int n, fd_set *const sets[SETS])
{
    int found = 0;
    for (int set = 0; set < SETS; set++)
        empty(sets[set], n);
    for (nfds_t i = 0; i < used; i++)
        for (int set = 0; set < SETS; set++)
            if (fds[i].events & asked[set] && fds[i].revents & answers[set]) {
                put_in(sets[set], fds[i].fd);
                found++;
            }
    return found;
}

/* Polls until a descriptor has an answer: as aco__hook_poll(). */
ACO__SWITCHES static int poll_for_sets(struct pollfd *fds, nfds_t used, int64_t deadline, const sigset_t *mask)
{
    aco__hook_wait_t wait = {deadline, 1, aco__hook_call(HOOK_NEVER_RESTARTS), 0, 0};
    for (;;) {
        int ready = mask ? poll_masked(fds, used, deadline, &wait.call, mask)
                         : aco__hook_poll(fds, used, deadline, &wait.call, "libc's select()");
        if (ready > 0)
            ready = have_answers(fds, used);
        else if (ready == 0)
            return 0;
        if (ready)
            return ready;
        switch (aco__hook_nap(&wait, "libc's select()")) { /* only hung up, say, and nobody asked for that */
        case HOOK_BLOCKS:
            return HOOK_CANNOT_WAIT;
        case HOOK_GIVES_UP:
            return errno == EAGAIN ? 0 : -1;
        default:
            break;
        }
    }
}

static int check_sets(int n, fd_set *const sets[SETS])
{
    for (int set = 0; set < SETS; set++)
        if (sets[set] && !aco__hook_can_read(sets[set], size_of_set(n))) {
            errno = EFAULT;
            return -1;
        }
    return 0;
}

/* How many numbers the process's table of descriptors has room for; as far as that is known. */
static int table_size(void)
{
    static const char name[] = "\nFDSize:";
    char text[512];
    const char *at = NULL;
    int fd = aco__libc()->open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd < 0 ? -1 : aco__libc()->read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)aco__libc()->close(fd);
    if (n > 0) {
        text[n] = 0;
        at = strstr(text, name);
    }
    return at ? (int)strtol(at + sizeof name - 1, NULL, 10) : FD_SETSIZE;
}

/* The system looks at no bits beyond the table, whatever n is: there, sets may end. */
static int bits_that_count(int n, fd_set *const sets[SETS])
{
    static int least = LEAST_TABLE; /* atomic; tables grow only */
    int known = __atomic_load_n(&least, __ATOMIC_RELAXED), is_needed = n > FD_SETSIZE, error = errno;
    for (int fd = known; fd < n && fd < FD_SETSIZE; fd++)
        is_needed |= is_in(sets[0], fd) | is_in(sets[1], fd) | is_in(sets[2], fd);
    if (n <= known || !is_needed)
        return n;
    known = table_size();
    __atomic_store_n(&least, known, __ATOMIC_RELAXED);
    errno = error;
    return n < known ? n : known;
}

ACO__SWITCHES static int select_by_poll(int n, fd_set *const sets[SETS], int64_t deadline, const sigset_t *mask)
{
    size_t sz;
    struct pollfd *fds;
    int result = -1, error;
    nfds_t used;
    if (check_sets(n < FD_SETSIZE ? n : FD_SETSIZE, sets) != 0)
        return -1;
    n = bits_that_count(n, sets);
    if (n > FD_SETSIZE && check_sets(n, sets) != 0)
        return -1;
    sz = ((size_t)n + 1) * sizeof(struct pollfd);
    fds = aco__service_allocate(&sz, "acorn_hook");
    if (!fds)
        return -1;
    used = polls_of_sets(fds, n, sets);
    result = poll_for_sets(fds, used, deadline, mask);
    if (result >= 0)
        result = answer_sets(fds, used, n, sets);
    error = errno;
    aco__service_free(fds, sz);
    errno = error;
    return result;
}

/* -1: libc answers, without a wait. */
static int64_t deadline_of_timeval(const struct timeval *limit)
{
    int64_t seconds;
    if (!limit)
        return ACO_FOREVER;
    if (!aco__hook_can_read(limit, sizeof *limit) || limit->tv_sec < 0 || limit->tv_usec < 0)
        return -1;
    if (!limit->tv_sec && !limit->tv_usec)
        return aco__hook_simulates ? aco_now() : -1; /* a simulation has no select() */
    if (__builtin_add_overflow((int64_t)limit->tv_sec, (int64_t)limit->tv_usec / 1000000, &seconds))
        return ACO_FOREVER;
    return aco_after(aco__hook_ns(seconds, (int64_t)limit->tv_usec % 1000000 * 1000));
}

ACO__HOOK(int, select, (int n, fd_set *reads, fd_set *writes, fd_set *exceptions, struct timeval *limit))
{
    fd_set *const sets[SETS] = {reads, writes, exceptions};
    int error = errno, result;
    int64_t deadline = aco__hooked() && n >= 0 ? deadline_of_timeval(limit) : -1;
    if (deadline < 0)
        return aco__libc()->select(n, reads, writes, exceptions, limit);
    result = select_by_poll(n, sets, deadline, NULL);
    if (result == HOOK_CANNOT_WAIT)
        return aco__libc()->select(n, reads, writes, exceptions, limit);
    if (limit && deadline != ACO_FOREVER) { /* as Linux does */
        struct timespec left = aco__hook_time_until(deadline);
        limit->tv_sec = left.tv_sec;
        limit->tv_usec = (suseconds_t)(left.tv_nsec / 1000);
    }
    return (int)aco__hook_result(result, error);
}

ACO__HOOK(int, pselect,
          (int n, fd_set *reads, fd_set *writes, fd_set *exceptions, const struct timespec *limit,
           const sigset_t *mask))
{
    fd_set *const sets[SETS] = {reads, writes, exceptions};
    int error = errno, result;
    int64_t deadline;
    if (!aco__hooked() || n < 0 || (deadline = deadline_of(limit)) < 0 || is_zero(limit))
        return aco__libc()->pselect(n, reads, writes, exceptions, limit, mask);
    result = select_by_poll(n, sets, deadline, mask);
    return result == HOOK_CANNOT_WAIT ? aco__libc()->pselect(n, reads, writes, exceptions, limit, mask)
                                      : (int)aco__hook_result(result, error);
}

/* ---- epoll ---- */

ACO__SWITCHES
static int wait_for_epoll(int epoll, struct epoll_event *events, int room, int64_t deadline, const sigset_t *mask)
{
    aco__hook_wait_t wait = {deadline, 1, aco__hook_call(HOOK_NEVER_RESTARTS), 0, 0};
    aco__hook_spend(-1, "libc's epoll_wait()");
    for (;;) {
        struct pollfd p = {epoll, POLLIN, 0};
        int is_late = aco_now() >= wait.deadline; /* before the look */
        int n = aco__libc()->epoll_wait(epoll, events, room, 0), action;
        if (n != 0 || is_late)
            return n;
        n = mask ? poll_masked(&p, 1, wait.deadline, &wait.call, mask)
                 : aco__hook_poll(&p, 1, wait.deadline, &wait.call, "libc's epoll_wait()");
        if (n == HOOK_CANNOT_WAIT)
            return aco__libc()->epoll_pwait(epoll, events, room, ms_until(wait.deadline), mask);
        if (n < 0)
            return -1;
        if (n > 0 && p.revents & POLLNVAL) {
            errno = EBADF;
            return -1;
        }
        /* Others may take the events, again and again. */
        action = n > 0 && wait.vain++ > 8 ? aco__hook_nap(&wait, "libc's epoll_wait()") : HOOK_TRIES_AGAIN;
        if (action == HOOK_GIVES_UP && errno != EAGAIN)
            return -1;
    }
}

ACO__HOOK(int, epoll_wait, (int epoll, struct epoll_event *events, int room, int ms))
{
    int error = errno;
    return !aco__hooked() || ms == 0
               ? aco__libc()->epoll_wait(epoll, events, room, ms)
               : (int)aco__hook_result(wait_for_epoll(epoll, events, room, deadline_of_ms(ms), NULL), error);
}

ACO__HOOK(int, epoll_pwait, (int epoll, struct epoll_event *events, int room, int ms, const sigset_t *mask))
{
    int error = errno;
    return !aco__hooked() || ms == 0
               ? aco__libc()->epoll_pwait(epoll, events, room, ms, mask)
               : (int)aco__hook_result(wait_for_epoll(epoll, events, room, deadline_of_ms(ms), mask), error);
}

#if __GLIBC_PREREQ(2, 35)
ACO__HOOK(int, epoll_pwait2,
          (int epoll, struct epoll_event *events, int room, const struct timespec *limit, const sigset_t *mask))
{
    int error = errno;
    int64_t deadline = aco__hooked() ? deadline_of(limit) : -1;
    return deadline < 0 || is_zero(limit) ? aco__libc()->epoll_pwait2(epoll, events, room, limit, mask)
                        : (int)aco__hook_result(wait_for_epoll(epoll, events, room, deadline, mask), error);
}
#endif
