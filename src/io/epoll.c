/* The contract of events.h by epoll. */
#include "io/descriptor.h"
#include "io/events.h"
#include "system/system.h"

#include "aco/detail/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_EVENTS = 256, NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

static const uint64_t WAKE_KEY = UINT64_MAX;
static char lacks_pwait2; /* the kernel has no epoll_pwait2(): older than 5.11 */

/* epoll_wait() with a limit in nanoseconds, or at least as long where the kernel counts milliseconds. */
static int wait_within(int events, struct epoll_event *found, int64_t ns)
{
    int64_t ms;
    if (!__atomic_load_n(&lacks_pwait2, __ATOMIC_RELAXED)) {
        int64_t seconds = ns / NS_PER_S;
        struct timespec limit = {.tv_sec = seconds < INT32_MAX ? (time_t)seconds : INT32_MAX,
                                 .tv_nsec = (long)(ns % NS_PER_S)};
        int n = aco__system.epoll_pwait2(events, found, MOST_EVENTS, &limit);
        if (n >= 0 || errno != ENOSYS)
            return n;
        __atomic_store_n(&lacks_pwait2, 1, __ATOMIC_RELAXED);
    }
    ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return aco__system.epoll_wait(events, found, MOST_EVENTS, ms < INT32_MAX ? (int)ms : INT32_MAX);
}

static int wait_until(int events, struct epoll_event *found, int64_t deadline)
{
    int64_t left = deadline > 0 ? deadline - aco_now() : deadline;
    if (deadline > 0 && left > 0)
        return wait_within(events, found, left);
    return aco__system.epoll_wait(events, found, MOST_EVENTS, deadline < 0 ? -1 : 0);
}

static unsigned meaning(uint32_t events)
{
    unsigned what = 0;
    if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        what |= IO_READS;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        what |= IO_WRITES;
    if (events & (EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) /* what comes with them brings no further event */
        what |= IO_ALWAYS_READS;
    return what;
}

static int poll_epoll(aco__poller_t *poller, int64_t deadline)
{
    aco__io_t *io = (aco__io_t *)(void *)poller;
    int64_t looks_only = 0;
    struct epoll_event found[MOST_EVENTS];
    int n, is_for_ring = 0, polled = io->ring ? io->ring_turn(io, &deadline) : 0;
    io->stats.polls++;
    if (polled)
        return polled < 0 ? -1 : 0;
    n = wait_until(io->events, found, deadline);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < n; i++) {
        uint32_t generation = (uint32_t)(found[i].data.u64 >> 32);
        if (!generation)
            is_for_ring = 1;
        else if (found[i].data.u64 != WAKE_KEY)
            io->ready(io, (int)(found[i].data.u64 & INT32_MAX), generation, meaning(found[i].events));
    }
    return is_for_ring && io->ring_turn(io, &looks_only) < 0 ? -1 : 0;
}

/* Each write is an edge, so nobody reads the eventfd. Its counter lasts for 2^64 wakes. */
static void wake_epoll(aco__poller_t *poller)
{
    static const uint64_t one = 1;
    int error = errno;
    if (aco__system.write(((aco__io_t *)(void *)poller)->wake, &one, sizeof one) < 0) {
        /* cannot fail */
    }
    errno = error;
}

int aco__io_events_open(aco__io_t *io)
{
    struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = WAKE_KEY}};
    int error;
    io->base.poll = poll_epoll;
    io->base.wake = wake_epoll;
    io->watch = aco__io_events_watch;
    io->forget = aco__io_events_forget;
    io->events = aco__system.epoll_create1(EPOLL_CLOEXEC);
    if (io->events < 0)
        return -1;
    io->wake = aco__system.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (io->wake >= 0 && aco__system.epoll_ctl(io->events, EPOLL_CTL_ADD, io->wake, &event) == 0)
        return 0;
    error = errno;
    aco__io_events_close(io);
    errno = error;
    return -1;
}

void aco__io_events_close(const aco__io_t *io)
{
    if (io->wake >= 0)
        aco__system.close(io->wake);
    aco__system.close(io->events);
}

int aco__io_events_watch(aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before)
{
    struct epoll_event event = {EPOLLET, {.u64 = (uint64_t)generation << 32 | (unsigned)fd}};
    if (what & IO_READS)
        event.events |= EPOLLIN | EPOLLRDHUP | EPOLLPRI;
    if (what & IO_WRITES)
        event.events |= EPOLLOUT;
    if (aco__system.epoll_ctl(io->events, before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    if (before && errno == ENOENT) /* the number is another file's now: its owner closed the one that was watched */
        return aco__system.epoll_ctl(io->events, EPOLL_CTL_ADD, fd, &event);
    if (!before && errno == EEXIST) /* a number that was given up unknown to us, for the same file */
        return aco__system.epoll_ctl(io->events, EPOLL_CTL_MOD, fd, &event);
    return -1;
}

void aco__io_events_forget(aco__io_t *io, aco__io_fd_t *d)
{
    struct epoll_event unused = {0, {.u64 = 0}};
    (void)aco__system.epoll_ctl(io->events, EPOLL_CTL_DEL, d->fd, &unused);
}
