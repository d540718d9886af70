/* poll() for a task: it looks, and waits for events of the descriptors until a look finds one ready. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "base/invariants.h"
#include "io/descriptor.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <poll.h>
#include <string.h>

/* After so many waits that ended for events which are not asked for, looks are LOOKS_APART_NS apart. */
enum { VAIN_WAITS = 3, LOOKS_APART_NS = 10000000 };

/* What a wait for several needs. It is not on the task's stack, which may be a shared one. */
typedef struct several {
    size_t n, sz;
    aco__io_fd_t **ds; /* one that is waited for in both directions is there twice */
    unsigned char *directions;
    aco__waiter_t *places;
    aco__wait_t wait;
} several_t;

static int asks_to_write(const struct pollfd *p)
{
    return (p->events & (POLLOUT | POLLWRNORM | POLLWRBAND)) != 0;
}

/* Errors come in this direction, too. */
static int asks_to_read(const struct pollfd *p)
{
    return (p->events & ~(POLLOUT | POLLWRNORM | POLLWRBAND)) != 0 || !asks_to_write(p);
}

static size_t places_for(const struct pollfd *fds, size_t n)
{
    size_t places = 0;
    for (size_t i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            places += (size_t)(asks_to_read(&fds[i]) + asks_to_write(&fds[i]));
    return places;
}

static several_t *several_new(size_t places, const char *call)
{
    size_t sz = sizeof(several_t) + places * (sizeof(aco__waiter_t) + sizeof(aco__io_fd_t *) + 1);
    several_t *s = aco__service_allocate(&sz, call);
    if (!s)
        return NULL;
    memset(s, 0, sz);
    s->sz = sz;
    s->places = (aco__waiter_t *)(void *)(s + 1);
    s->ds = (aco__io_fd_t **)(void *)(s->places + places);
    s->directions = (unsigned char *)(s->ds + places);
    return s;
}

static int add_place(several_t *s, aco__io_t *io, int fd, int direction, const char *call)
{
    aco__io_fd_t *d = aco__io_enter_to_wait(io, fd, call);
    if (!d)
        return -1;
    s->ds[s->n] = d;
    s->directions[s->n++] = (unsigned char)direction;
    return 0;
}

static int enter_all(several_t *s, aco__io_t *io, const struct pollfd *fds, size_t n, const char *call)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i].fd >= 0 && ((asks_to_read(&fds[i]) && add_place(s, io, fds[i].fd, IO_READ, call) != 0) ||
                               (asks_to_write(&fds[i]) && add_place(s, io, fds[i].fd, IO_WRITE, call) != 0)))
            return -1;
    return 0;
}

/* Those that were closed have POLLNVAL: how many. Their numbers may be other files' by now. */
static int note_closed(const several_t *s, struct pollfd *fds, size_t n)
{
    int closed = 0;
    for (size_t i = 0, place = 0; i < n; i++) {
        fds[i].revents = 0;
        if (fds[i].fd < 0)
            continue;
        if (s->ds[place]->closed) {
            fds[i].revents = POLLNVAL;
            closed++;
        }
        place += (size_t)(asks_to_read(&fds[i]) + asks_to_write(&fds[i]));
    }
    return closed;
}

/* Waits for an event. The number of descriptors that were closed meanwhile; -1 and errno. */
ACO__SWITCHES
static int wait_for_events(aco__io_t *io, struct pollfd *fds, size_t n, size_t places, int64_t deadline,
                           const char *call, const char *location)
{
    several_t *s = several_new(places, call);
    int result = -1, closed = 0, error;
    if (!s)
        return -1;
    if (enter_all(s, io, fds, n, call) == 0) {
        result = aco__io_park_any(io, s->ds, s->directions, s->places, s->n, &s->wait, deadline, call, location);
        closed = note_closed(s, fds, n);
    }
    error = errno;
    for (size_t i = 0; i < s->n; i++)
        aco__io_leave(s->ds[i]);
    aco__service_free(s, s->sz);
    errno = error;
    return closed ? closed : result;
}

/* Whether a wait until `deadline` has failed because that has come, and not the end of a scope. */
static int is_time_over(int64_t deadline)
{
    return errno == ETIMEDOUT && aco_now() >= deadline && aco_check_cancelled() == 0;
}

ACO__SWITCHES
int aco__io_poll(struct pollfd *fds, unsigned long n, int64_t deadline, const char *call, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    int waits = 0, ready;
    if (!io)
        return -1;
    for (;; waits++) {
        int64_t until = deadline;
        int is_late = deadline != ACO_FOREVER && aco_now() >= deadline; /* before the look: the thread may be stopped */
        size_t places;
        ready = aco__system.poll(fds, n, 0);
        if (ready < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (ready != 0 || is_late)
            return ready;
        places = places_for(fds, n); /* the system has seen that `fds` can be read */
        if (places && waits < VAIN_WAITS) {
            ready = wait_for_events(io, fds, n, places, until, call, location);
            if (ready > 0)
                return ready;
        } else {
            if (places && until > aco_after(LOOKS_APART_NS))
                until = aco_after(LOOKS_APART_NS);
            ready = aco_sleep_until_at(until, location);
        }
        if (ready < 0 && !is_time_over(deadline))
            return -1;
    }
}
