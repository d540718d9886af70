/* Descriptors as their thread knows them: a table by number. A record is for one use of a number: its generation goes
 * into the registration with the poller, so that an event of an earlier use finds nobody. A task that uses a record
 * keeps it alive across its waits and asks afterwards whether the descriptor was closed meanwhile.
 *
 * Events are edges, and nothing is remembered of an edge for which no task waits: each call tries first. The exception
 * is `drained`. A read from a TCP socket that got less than it asked for has emptied the socket: what comes later is an
 * edge, so the next read waits for it without trying. */
#define _GNU_SOURCE /* struct ucred, for sys/socket.h */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/io_counts.h"
#include "io/events.h"
#include "io/linux_bsd.h"
#include "io/uring.h"
#include "io/uring_poller.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUDGET = 64, FIRST_ROOM = 64, TRY_AGAIN_NS = 1000000 };

/* Its buffer must not be in the frames of tasks that wait: share stacks copy those. */
ACO__COLD int aco__io_fail(const char *call, int fd)
{
    char reason[160];
    int error = errno;
    if (error == EAGAIN || error == EPIPE || error == ETIMEDOUT || error == ECANCELED)
        return -1;
    snprintf(reason, sizeof reason, "descriptor %d: %s", fd, strerror(error));
    return aco__service_fail(error, call, reason);
}

/* ---- The thread's record ---- */

static void ready(aco__io_t *io, int fd, uint32_t generation, unsigned what)
{
    aco__io_fd_t *d = (size_t)fd < io->room ? io->table[fd] : NULL;
    io->stats.events++;
    if (!d || d->generation != generation)
        return;
    ACO__ASSERT(d->fd == fd && !d->closed);
    d->armed &= (unsigned char)~(what >> IO_UNWATCHED);
    if (what & IO_ALWAYS_READS)
        d->always = 1;
    if (what & IO_READS) {
        d->drained = 0;
        aco__poller_wake(&d->queues[IO_READ], 0);
    }
    if (what & IO_WRITES)
        aco__poller_wake(&d->queues[IO_WRITE], 0);
    ACO__ASSERT(!d->drained || d->armed & IO_READS); /* or nothing wakes who waits for more */
}

/* The thread ends. Its tasks never run again. */
static void close_io(aco__poller_t *poller)
{
    aco__io_t *io = (aco__io_t *)(void *)poller;
    aco__io_fd_t *d;
    aco__io_counts_leave(io);
    if (io->ring)
        io->ring_close(io);
    while ((d = io->unended) != NULL) { /* the ring has gone, and its watches with it */
        io->unended = d->next_unended;
        d->unended = 0;
        aco__io_fd_free(d);
    }
    if (io->jobs_end)
        io->jobs_end(io);
    for (size_t i = 0; i < io->room; i++)
        if (io->table[i]) {
            ACO__ASSERT((size_t)io->table[i]->fd == i);
            aco__service_free(io->table[i], sizeof(aco__io_fd_t));
        }
    if (io->table)
        aco__service_free(io->table, io->table_sz);
    aco__io_events_close(io);
    aco__service_free(io, io->sz);
}

/* In the child of fork(): the thread had a record. Its epoll, ring and eventfd are the parent's too: what the
 * child registered or submitted there, or took out, would be the parent's loss. */
static __thread int is_of_parent;

static int watch_nothing(aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before)
{
    (void)io, (void)fd, (void)generation, (void)what, (void)before;
    errno = EPERM;
    return -1;
}

static void forget_nothing(aco__io_t *io, aco__io_fd_t *d)
{
    (void)io, (void)d;
}

/* Tasks that were in a call go on with the record when their time is over, or their scope. */
static void leave_record(aco__poller_t *poller)
{
    aco__io_t *io = (aco__io_t *)(void *)poller;
    io->watch = watch_nothing;
    io->forget = forget_nothing;
    is_of_parent = 1;
}

static void leave_parent(void)
{
    aco__poller_uninstall(leave_record);
}

ACO__AT_LOAD static void leave_at_fork(void)
{
    (void)pthread_atfork(NULL, NULL, leave_parent);
}

aco__io_t *aco__io_get(const char *call)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    size_t sz = sizeof *io;
    if (aco_likely(io != NULL))
        return io;
    if (is_of_parent) {
        (void)aco__service_fail(EPERM, call, "in a child of fork(), whose parent uses acorn_io in this thread");
        return NULL;
    }
    io = aco__service_new(&sz, call);
    if (!io)
        return NULL;
    io->base.close = close_io;
    io->ready = ready;
    io->sz = sz;
    if (aco__io_events_open(io) != 0) {
        aco__service_fail(errno, call, strerror(errno));
        aco__service_free(io, sz);
        return NULL;
    }
    aco__io_counts_join(io);
    if (aco__io_choose_poller(io, call) != 0 || aco__poller_install(&io->base, call) != 0) {
        int error = errno;
        close_io(&io->base);
        errno = error;
        return NULL;
    }
    return io;
}

/* ---- Records of descriptors ---- */

/* Makes room for this number in the table. 0, or -1 and errno. */
static int make_room(aco__io_t *io, int fd, const char *call)
{
    size_t room = io->room ? io->room : FIRST_ROOM, sz;
    aco__io_fd_t **table;
    if ((size_t)fd < io->room)
        return 0;
    while (room <= (size_t)fd)
        room *= 2;
    sz = room * sizeof *table;
    table = aco__service_allocate(&sz, call);
    if (!table)
        return -1;
    memset(table, 0, sz);
    ACO__ASSERT(sz / sizeof *table >= room && room > io->room);
    if (io->table) {
        memcpy(table, io->table, io->room * sizeof *table);
        aco__service_free(io->table, io->table_sz);
    }
    io->table = table;
    io->room = room;
    io->table_sz = sz;
    return 0;
}

/* A record for a number that has none. NULL and errno on failure. */
static aco__io_fd_t *record_new(aco__io_t *io, int fd, const char *call)
{
    size_t sz = sizeof(aco__io_fd_t);
    aco__io_fd_t *d = make_room(io, fd, call) == 0 ? aco__service_new(&sz, call) : NULL;
    if (!d)
        return NULL;
    d->fd = fd;
    d->generation = ++io->generations ? io->generations : ++io->generations;
    ACO__ASSERT(!io->table[fd]); /* tasks could wait for it */
    io->table[fd] = d;
    return d;
}

static aco__io_fd_t *record_of(const aco__io_t *io, int fd)
{
    aco__io_fd_t *d = fd >= 0 && (size_t)fd < io->room ? io->table[fd] : NULL;
    ACO__ASSERT(!d || (d->fd == fd && d->generation && !d->closed && d->pairs <= d->users));
    return d;
}

/* A descriptor of a call that uses two is closed: whoever waits for the other one looks again. */
static void wake_pairs(const aco__io_t *io)
{
    for (size_t i = 0; i < io->room; i++)
        for (int queue = 0; io->table[i] && io->table[i]->pairs && queue < IO_QUEUES; queue++)
            aco__poller_wake(&io->table[i]->queues[queue], 0);
}

/* The number is no longer this descriptor's. */
static void retire(aco__io_t *io, aco__io_fd_t *d)
{
    ACO__ASSERT(io->table[d->fd] == d);
    ACO__NO_SWITCH_BEGIN(); /* who runs in between would use a record that has half gone */
    io->table[d->fd] = NULL;
    d->closed = 1;
    d->users++;
    if (d->armed)
        io->forget(io, d);
    for (int i = 0; i < IO_QUEUES; i++)
        aco__poller_wake(&d->queues[i], ECANCELED);
    if (d->pairs)
        wake_pairs(io);
    d->users--;
    aco__io_fd_free(d);
    ACO__NO_SWITCH_END();
}

/* Fails for a descriptor on which a call would block the thread. Files never do, as far as the system is concerned. */
static int check_nonblocking(int fd, const char *call)
{
    struct stat status;
    char reason[96];
    int flags = aco__system.fcntl(fd, F_GETFL);
    if (fd < 0 || flags < 0)
        return aco__io_fail(call, fd);
    if (flags & O_NONBLOCK)
        return 0;
    if (aco__system.fstat(fd, &status) != 0)
        return aco__io_fail(call, fd);
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))
        return 0;
    snprintf(reason, sizeof reason, "descriptor %d is blocking: aco_io_adopt() makes it non-blocking", fd);
    return aco__service_fail(EINVAL, call, reason);
}

/* A task whose calls could wait but never do lets the others run from time to time. */
ACO__SWITCHES static void spend(aco__io_t *io)
{
    const aco_t *caller = aco_get_co();
    if (aco_unlikely(caller != io->spender) && (caller = aco_current_task()) != io->spender) {
        io->spender = caller;
        io->budget = BUDGET;
    }
    if (aco_likely(--io->budget > 0))
        return;
    io->budget = BUDGET;
    aco__service_yield();
}

ACO__SWITCHES aco__io_t *aco__io_get_and_spend(const char *call, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    (void)location;
    ACO__MAY_SWITCH(call, location);
    if (io)
        spend(io);
    return io;
}

ACO__SWITCHES void aco__io_spend(const char *call, const char *location)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    (void)call, (void)location;
    ACO__MAY_SWITCH(call, location);
    if (io)
        spend(io);
}

aco__io_fd_t *aco__io_enter_to_wait(aco__io_t *io, int fd, const char *call)
{
    aco__io_fd_t *d = record_of(io, fd);
    if (d || (d = record_new(io, fd, call)) != NULL)
        d->users++;
    return d;
}

static inline __attribute__((always_inline)) aco__io_fd_t *enter(aco__io_t *io, int fd, const char *call)
{
    aco__io_fd_t *d = record_of(io, fd);
    if (aco_unlikely(!d || (!d->owned && !d->users))) { /* the number may be another file's than the last time */
        if (check_nonblocking(fd, call) != 0)
            return NULL;
        d = aco__io_enter_to_wait(io, fd, call);
        if (!d)
            return NULL;
        d->is_socket = 1; /* until it says that it is none */
    } else {
        d->users++;
    }
    io->stats.calls++;
    return d;
}

aco__io_fd_t *aco__io_enter_now(aco__io_t *io, int fd, const char *call)
{
    return enter(io, fd, call);
}

aco__io_fd_t *aco__io_enter(aco__io_t *io, int fd, const char *call)
{
    aco__io_fd_t *d = enter(io, fd, call);
    ACO__MAY_SWITCH(call, NULL);
    if (!d)
        return NULL;
    spend(io);
    if (aco_likely(!d->closed))
        return d;
    aco__io_leave(d);
    errno = ECANCELED;
    return NULL;
}

void aco__io_leave(aco__io_fd_t *d)
{
    ACO__ASSERT(d->users > d->pairs); /* aco__io_leave_both() has counted its pair */
    ACO__ASSERT(d->users > 1 || (!d->wait_is_used && !d->queues[IO_READ].first && !d->queues[IO_WRITE].first));
    d->users--;
    if (aco_unlikely(d->closed))
        aco__io_fd_free(d);
}

int aco__io_enter_both(aco__io_t *io, const int fds[2], aco__io_fd_t *d[2], int may_wait, const char *call)
{
    d[0] = may_wait ? aco__io_enter(io, fds[0], call) : aco__io_enter_now(io, fds[0], call);
    if (!d[0])
        return -1;
    d[1] = may_wait ? aco__io_enter(io, fds[1], call) : aco__io_enter_now(io, fds[1], call);
    if (d[1] && !d[0]->closed) {
        d[0]->pairs++;
        d[1]->pairs++;
        return 0;
    }
    if (d[1]) {
        aco__io_leave(d[1]);
        errno = ECANCELED;
    }
    aco__io_leave(d[0]);
    return -1;
}

void aco__io_leave_both(aco__io_fd_t *const d[2])
{
    for (int i = 0; i < 2; i++) {
        ACO__ASSERT(d[i]->pairs > 0);
        d[i]->pairs--;
        aco__io_leave(d[i]);
    }
}

int aco__io_own(aco__io_t *io, int fd, int is_socket, int is_tcp, const char *call)
{
    aco__io_fd_t *d = record_of(io, fd);
    if (d)
        retire(io, d);
    d = record_new(io, fd, call);
    if (!d)
        return -1;
    d->owned = 1;
    d->is_socket = is_socket != 0;
    d->is_tcp = is_tcp != 0;
    return 0;
}

/* ---- Waiting ---- */

/* Makes sure that an event comes when the descriptor is ready. The registration of one that is not owned may have gone
 * with its file, so it is made again; that is an event, too, if the descriptor is ready by now. 0, or -1 and errno. */
static int arm(aco__io_t *io, aco__io_fd_t *d, int direction)
{
    unsigned what = d->armed | 1u << direction;
    ACO__ASSERT(d->users > 0); /* an event finds it */
    if (direction == IO_PAUSE || (d->owned && what == d->armed))
        return 0;
    if (io->watch(io, d->fd, d->generation, what, d->armed) != 0)
        return -1;
    io->stats.registrations++;
    d->armed = (unsigned char)what;
    return 0;
}

/* After a wait. The ring's watch would keep a library's descriptor open. */
static void disarm(aco__io_t *io, aco__io_fd_t *d)
{
    if (!io->watches_by_ring || d->owned || d->closed || d->users > 1 || !d->armed)
        return;
    io->forget(io, d);
    d->armed = 0;
}

/* A record for a wait beside another one for the same descriptor. */
typedef struct own_wait {
    aco__wait_t wait; /* first */
    size_t sz;
} own_wait_t;

static ACO__COLD aco__wait_t *wait_new(const char *call)
{
    size_t sz = sizeof(own_wait_t);
    own_wait_t *own = aco__service_allocate(&sz, call);
    if (!own)
        return NULL;
    own->sz = sz;
    return &own->wait;
}

static ACO__COLD void wait_free(aco__wait_t *wait)
{
    aco__service_free(wait, ((own_wait_t *)(void *)wait)->sz);
}

/* Waits so long, within the deadline. Not inline: a task that waits holds the frame of aco__io_park(). */
ACO__SWITCHES static ACO__COLD int pause_for(aco__io_t *io, aco__io_fd_t *d, int64_t ns, int64_t deadline,
                                             const char *call, const char *location)
{
    int64_t until = aco_after(ns);
    if (aco__io_park(io, d, IO_PAUSE, until < deadline ? until : deadline, call, location) == 0)
        return 0;
    return errno == ETIMEDOUT && aco_now() < deadline && aco_check_cancelled() == 0 ? 0 : -1;
}

/* The ring is full, and the kernel takes no more now: no event would end the wait. So it ends soon, and the caller, who
 * tries again after each wait, begins the next. */
ACO__SWITCHES static int park_unarmed(aco__io_t *io, aco__io_fd_t *d, int64_t deadline, const char *call,
                                      const char *location)
{
    return pause_for(io, d, TRY_AGAIN_NS, deadline, call, location);
}

/* After arm(). 0, and a wait has begun; or -1 and errno. */
ACO__SWITCHES
static inline int begin_wait(aco__io_t *io, aco__io_fd_t *d, aco__wait_t *wait, int direction, int64_t deadline,
                             const char *call, const char *location)
{
    d->wait_is_used |= wait == &d->wait;
    io->spender = NULL;
    io->stats.waits++;
    return aco__poller_wait_begin(call, wait, &d->queues[direction == IO_WRITE], NULL, d->fd, direction == IO_WRITE,
                                  deadline, location);
}

/* The result of a wait that ended with `result`, and errno. */
static inline int result_of_wait(const aco__io_fd_t *d, int result)
{
    if (d->closed) /* also if it was closed after the wait's time was over, before this task ran */
        errno = ECANCELED;
    return result == 0 && !d->closed ? 0 : -1;
}

int aco__io_park(aco__io_t *io, aco__io_fd_t *d, int direction, int64_t deadline, const char *call,
                 const char *location)
{
    aco__wait_t *wait;
    int result;
    ACO__MAY_SWITCH(call, location);
    ACO__ASSERT(!d->closed); /* its number may be another file's */
    if (arm(io, d, direction) != 0)
        return errno == EAGAIN ? park_unarmed(io, d, deadline, call, location) : aco__io_fail(call, d->fd);
    wait = d->wait_is_used ? wait_new(call) : &d->wait;
    if (!wait)
        return -1;
    result = begin_wait(io, d, wait, direction, deadline, call, location);
    if (result == 0)
        result = aco__poller_wait_end(&io->base, wait);
    ACO__ASSERT(d->wait_is_used || wait != &d->wait);
    if (wait == &d->wait)
        d->wait_is_used = 0;
    else
        wait_free(wait);
    disarm(io, d);
    return result_of_wait(d, result);
}

int aco__io_park_any(aco__io_t *io, aco__io_fd_t *const *ds, const unsigned char *directions, aco__waiter_t *places,
                     size_t n, aco__wait_t *wait, int64_t deadline, const char *call, const char *location)
{
    int writes = !directions || directions[0] == IO_WRITE, result;
    for (size_t i = 0; i < n; i++) {
        int direction = directions ? directions[i] : IO_WRITE;
        if (arm(io, ds[i], direction) != 0) {
            result =
                errno == EAGAIN ? park_unarmed(io, ds[i], deadline, call, location) : aco__io_fail(call, ds[i]->fd);
            while (i-- > 0)
                disarm(io, ds[i]);
            return result;
        }
        places[i].queue = &ds[i]->queues[direction];
        places[i].other = i + 1 < n ? &places[i + 1] : NULL;
    }
    io->spender = NULL;
    io->stats.waits++;
    result =
        aco__poller_wait_begin(call, wait, places[0].queue, places[0].other, ds[0]->fd, writes, deadline, location);
    if (result == 0)
        result = aco__poller_wait_end(&io->base, wait);
    for (size_t i = 0; i < n; i++)
        disarm(io, ds[i]);
    return result;
}

int aco__io_pause(aco__io_t *io, aco__io_fd_t *d, int64_t *ns, const char *call, const char *location)
{
    *ns = aco__io_longer_pause(*ns);
    return pause_for(io, d, *ns, ACO_FOREVER, call, location);
}

int aco__io_look(int fd, int events)
{
    struct pollfd look = {fd, (short)events, 0};
    int n;
    do
        n = aco__system.poll(&look, 1, 0);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n > 0 && look.revents & POLLNVAL) {
        errno = EBADF;
        return -1;
    }
    return n;
}

/* A wait without a look before it has failed with errno. Whether what it was for is there all the same. */
static int last_look(const aco__io_fd_t *d, int events)
{
    int error = errno, is_there = !d->closed && aco__io_look(d->fd, events) > 0;
    errno = error;
    return is_there;
}

ACO__SWITCHES static int wait_for(int fd, int direction, int64_t deadline, const char *call, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter(io, fd, call) : NULL;
    int n, will_hear, events = direction == IO_READ ? POLLIN | POLLPRI : POLLOUT;
    if (!d)
        return -1;
    will_hear = direction == IO_READ && d->drained;
    for (;; will_hear = 0) {
        n = will_hear ? 0 : aco__io_look(fd, events);
        if (n != 0)
            break;
        if (aco__io_park(io, d, direction, deadline, call, location) != 0) {
            n = will_hear && last_look(d, events);
            break;
        }
    }
    if (n < 0)
        aco__io_fail(call, fd);
    aco__io_leave(d);
    return n > 0 ? 0 : -1;
}

int aco_io_wait_readable_at(int fd, const char *location)
{
    return wait_for(fd, IO_READ, ACO_FOREVER, "aco_io_wait_readable", location);
}

int aco_io_wait_writable_at(int fd, const char *location)
{
    return wait_for(fd, IO_WRITE, ACO_FOREVER, "aco_io_wait_writable", location);
}

int aco_io_wait_readable_until_at(int fd, int64_t deadline, const char *location)
{
    return wait_for(fd, IO_READ, deadline, "aco_io_wait_readable", location);
}

int aco_io_wait_writable_until_at(int fd, int64_t deadline, const char *location)
{
    return wait_for(fd, IO_WRITE, deadline, "aco_io_wait_writable", location);
}

/* ---- Waiting for input, after a read ----
 *
 * Idle connections wait here. On a share stack each of them keeps a copy of its frames. So the only frame here is that
 * of aco__io_await_input(): what comes before and after the wait is in functions that are not inline. */

/* The wait that has begun. NULL and errno: none has, by a failure; with 0 as errno: because input may be there. */
ACO__SWITCHES static __attribute__((noinline)) aco__wait_t *begin_awaiting(int fd, const char *location)
{
    static const char call[] = "aco_io_wait_readable";
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter(io, fd, call) : NULL;
    int n, result;
    if (!d)
        return NULL;
    /* To watch a descriptor anew gives an event if something has come since the read, and a drained one gets one. */
    n = d->drained || !(d->armed & IO_READS) ? 0 : aco__io_look(fd, POLLIN | POLLPRI);
    if (aco_unlikely(n != 0)) {
        result = n > 0 ? 0 : aco__io_fail(call, fd);
    } else if (aco_likely(!d->wait_is_used && arm(io, d, IO_READ) == 0)) {
        if (aco_likely(begin_wait(io, d, &d->wait, IO_READ, ACO_FOREVER, call, location) == 0))
            return &d->wait;
        d->wait_is_used = 0;
        disarm(io, d);
        result = -1;
    } else { /* with the frames of it: this is rare */
        result = aco__io_park(io, d, IO_READ, ACO_FOREVER, call, location);
    }
    if (result != 0 && n == 0 && last_look(d, POLLIN | POLLPRI))
        result = 0;
    aco__io_leave(d);
    if (result == 0)
        errno = 0;
    return NULL;
}

static __attribute__((noinline)) int end_awaiting(aco__wait_t *wait, int result)
{
    aco__io_fd_t *d = (aco__io_fd_t *)(void *)((char *)wait - offsetof(aco__io_fd_t, wait));
    ACO__ASSERT(d->wait_is_used);
    d->wait_is_used = 0;
    if (aco_unlikely(!d->owned)) {
        aco__io_t *io = (aco__io_t *)(void *)aco__poller(); /* NULL: in a child of fork(), where nothing is watched */
        if (io)
            disarm(io, d);
    }
    result = result_of_wait(d, result);
    if (aco_unlikely(result != 0) && last_look(d, POLLIN | POLLPRI))
        result = 0;
    aco__io_leave(d);
    return result;
}

ACO__SWITCHES int aco__io_await_input(int fd, const char *location)
{
    aco__wait_t *wait = begin_awaiting(fd, location);
    if (aco_unlikely(!wait))
        return errno ? -1 : 0;
    return end_awaiting(wait, aco__poller_wait_end(aco__poller(), wait));
}

int aco__io_relay(aco__relay_t *relay, aco__relay_place_t *place, int fd, int writes, int looks, const char *call)
{
    const int direction = writes ? IO_WRITE : IO_READ;
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter_now(io, fd, call) : NULL;
    int result = 0;
    if (!d)
        return -1;
    if (looks && (writes || !d->drained))
        result = aco__io_look(fd, writes ? POLLOUT : POLLIN | POLLPRI);
    if (result != 0 || arm(io, d, direction) != 0) {
        aco__io_leave(d);
        return result > 0 ? 0 : aco__io_fail(call, fd);
    }
    io->stats.waits++;
    place->waiter.element = d;
    result = aco__poller_relay(&io->base, relay, place, &d->queues[direction], call);
    if (result < 0) {
        disarm(io, d);
        aco__io_leave(d);
    }
    return result;
}

int aco__io_relay_end(aco__relay_place_t *place)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__relay_of(place)->poller;
    aco__io_fd_t *d = place->waiter.element;
    int closed = d->closed;
    aco__poller_relay_end(place);
    disarm(io, d);
    aco__io_leave(d);
    if (!closed)
        return 0;
    errno = ECANCELED;
    return -1;
}

ssize_t aco__io_recv_now(int fd, void *p, size_t n)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    aco__io_fd_t *d = io ? record_of(io, fd) : NULL;
    ssize_t got;
    if (fd < 0) {
        errno = EBADF;
        return -1;
    }
    do
        got = aco__system.recv(fd, p, n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (d && (got < 0 ? errno == EAGAIN : got > 0 && (size_t)got < n))
        aco__io_note_drained(d);
    if (io) {
        io->stats.calls++;
        io->stats.bytes_read += got > 0 ? (uint64_t)got : 0;
    }
    return got;
}

/* ---- Owning, closing ---- */

int aco_io_adopt(int fd)
{
    static const char call[] = "aco_io_adopt";
    aco__io_t *io = aco__io_get(call);
    int flags = aco__system.fcntl(fd, F_GETFL), is_tcp;
    if (!io)
        return -1;
    if (flags < 0 || (!(flags & O_NONBLOCK) && aco__system.fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0))
        return aco__io_fail(call, fd);
    is_tcp = aco__io_ask_tcp(fd);
    return aco__io_own(io, fd, is_tcp >= 0, is_tcp > 0, call);
}

int aco_io_set_shared(int fd, int is_shared)
{
    const aco__io_t *io = (const aco__io_t *)(const void *)aco__poller();
    aco__io_fd_t *d = io ? record_of(io, fd) : NULL;
    if (!d || !d->owned) {
        errno = EBADF;
        return aco__io_fail("aco_io_set_shared", fd);
    }
    d->is_shared = is_shared != 0;
    return 0;
}

int aco_io_is_shared(int fd)
{
    const aco__io_t *io = (const aco__io_t *)(const void *)aco__poller();
    const aco__io_fd_t *d = io ? record_of(io, fd) : NULL;
    return d && d->is_shared;
}

int aco_io_release(int fd)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    aco__io_fd_t *d = io ? record_of(io, fd) : NULL;
    if (!d) {
        errno = EBADF;
        return aco__io_fail("aco_io_release", fd);
    }
    retire(io, d);
    return 0;
}

#ifdef __linux__
void (*aco__io_at_close)(int fd);

static void call_at_close(int fd)
{
    void (*fn)(int fd) = __atomic_load_n(&aco__io_at_close, __ATOMIC_ACQUIRE);
    if (fn)
        fn(fd);
}
#endif

void aco__io_forget(int fd)
{
    aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    aco__io_fd_t *d = io ? record_of(io, fd) : NULL;
    if (d)
        retire(io, d);
#ifdef __linux__
    call_at_close(fd);
#endif
#ifdef ACO_CONFIG_URING
    if (io && io->ring)
        aco__io_ring_settle(io, fd);
#endif
}

int aco_io_close(int fd)
{
    aco__io_forget(fd);
    return aco__system.close(fd) == 0 || errno == EINTR ? 0 : aco__io_fail("aco_io_close", fd);
}

int aco_io_stats(aco_io_stats_t *stats)
{
    static const aco_io_stats_t none = {0};
    const aco__io_t *io = (aco__io_t *)(void *)aco__poller();
    if (!stats)
        return aco__service_fail(EINVAL, "aco_io_stats", "the pointer to the statistics is NULL");
    *stats = io ? io->stats : none;
    return 0;
}

int aco_io_poll_fd(void)
{
    aco__io_t *io = aco__io_get("aco_io_poll_fd");
    int64_t looks_only = 0;
    if (!io)
        return -1;
    io->has_poll_fd = 1;
    if (io->ring && io->ring_turn(io, &looks_only) < 0)
        return aco__io_fail("aco_io_poll_fd", io->events);
    return io->events;
}
