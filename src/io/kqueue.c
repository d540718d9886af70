/* The contract of events.h by kqueue, for macOS and FreeBSD. Built for them by tools/platforms, and never run by
 * its authors: they had no such system.
 *
 * Each direction is a filter of its own. EV_CLEAR makes events edges. The generation travels as the event's user
 * data. */
#include "io/descriptor.h"
#include "io/events.h"
#include "os/clock.h"
#include "system/system.h"

#include "aco/detail/poller.h"

#include <fcntl.h>
#include <sys/event.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_EVENTS = 256, WAKE_IDENT = 1 };

static int poll_kqueue(aco__poller_t *poller, int64_t deadline)
{
    aco__io_t *io = (aco__io_t *)(void *)poller;
    struct kevent found[MOST_EVENTS];
    const struct timespec limit = aco__os_timespec(deadline > 0 ? deadline - aco_now() : 0);
    int n;
    io->stats.polls++;
    n = aco__system.kevent(io->events, NULL, 0, found, MOST_EVENTS, deadline < 0 ? NULL : &limit);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < n; i++) {
        const struct kevent *event = &found[i];
        unsigned ends = event->flags & (EV_EOF | EV_ERROR), what = event->filter == EVFILT_READ ? IO_READS : IO_WRITES;
        if (event->filter == EVFILT_USER)
            continue;
        if (ends) /* what comes with them brings no further event */
            what |= IO_ALWAYS_READS | IO_READS;
        io->ready(io, (int)event->ident, (uint32_t)(uintptr_t)event->udata, what);
    }
    return 0;
}

static void wake_kqueue(aco__poller_t *poller)
{
    struct kevent event;
    int error = errno;
    EV_SET(&event, WAKE_IDENT, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
    (void)aco__system.kevent(((aco__io_t *)(void *)poller)->events, &event, 1, NULL, 0, NULL);
    errno = error;
}

int aco__io_events_open(aco__io_t *io)
{
    struct kevent event;
    int error;
    io->base.poll = poll_kqueue;
    io->base.wake = wake_kqueue;
    io->watch = aco__io_events_watch;
    io->forget = aco__io_events_forget;
    io->wake = -1;
    io->events = aco__system.kqueue();
    if (io->events < 0)
        return -1;
    EV_SET(&event, WAKE_IDENT, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (aco__system.fcntl(io->events, F_SETFD, FD_CLOEXEC) == 0 &&
        aco__system.kevent(io->events, &event, 1, NULL, 0, NULL) == 0)
        return 0;
    error = errno;
    aco__io_events_close(io);
    errno = error;
    return -1;
}

void aco__io_events_close(const aco__io_t *io)
{
    aco__system.close(io->events);
}

/* Adding a filter that is there changes its user data, and tells again if the descriptor is ready. */
int aco__io_events_watch(aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before)
{
    struct kevent events[2];
    int n = 0;
    (void)before; /* they may have gone with another file of this number */
    if (what & IO_READS) {
        EV_SET(&events[n], (uintptr_t)fd, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, (void *)(uintptr_t)generation);
        n++;
    }
    if (what & IO_WRITES) {
        EV_SET(&events[n], (uintptr_t)fd, EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0, (void *)(uintptr_t)generation);
        n++;
    }
    return aco__system.kevent(io->events, events, n, NULL, 0, NULL);
}

void aco__io_events_forget(aco__io_t *io, aco__io_fd_t *d)
{
    struct kevent event;
    if (d->armed & IO_READS) {
        EV_SET(&event, (uintptr_t)d->fd, EVFILT_READ, EV_DELETE, 0, 0, NULL);
        (void)aco__system.kevent(io->events, &event, 1, NULL, 0, NULL);
    }
    if (d->armed & IO_WRITES) {
        EV_SET(&event, (uintptr_t)d->fd, EVFILT_WRITE, EV_DELETE, 0, 0, NULL);
        (void)aco__system.kevent(io->events, &event, 1, NULL, 0, NULL);
    }
}
