/* The watching of descriptors by the thread's io_uring: a poll for each direction that tells of each edge. The
 * scheduler then waits in the ring, where files are too, and a registration costs no system call of its own.
 * ACO_POLLER=uring chooses it; epoll is the default.
 *
 * A watch keeps the file open, so it ends before the descriptor is closed, and after each wait for a descriptor that is
 * not owned. An end cannot fail: its record stands in io->unended until the kernel's queue has room. A new watch comes
 * after all of these, since it may have the same key. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/linux_bsd.h"
#include "io/uring.h"
#include "io/uring_poller.h"

#include "aco/detail/chooser.h"
#include "aco/detail/poller.h"

#include <string.h>

#ifdef ACO_CONFIG_URING
#include <liburing.h>
#include <poll.h>

enum { READING = POLLIN | POLLPRI | POLLRDHUP, WRITING = POLLOUT, KEY_FD_SHIFT = 2 };

/* The user data of a watch: odd, and not 1, since no generation is 0. */
static uint64_t key_of(int fd, uint32_t generation, int direction)
{
    ACO__ASSERT(generation && (unsigned)fd <= UINT32_MAX >> KEY_FD_SHIFT);
    return (uint64_t)generation << 32 | (unsigned)fd << KEY_FD_SHIFT | (unsigned)direction << 1 | 1;
}

static void watch_event(aco__io_t *io, uint64_t key, int result, unsigned flags)
{
    unsigned direction = key >> 1 & 1, what = 1u << direction, mask = result < 0 ? POLLERR : (unsigned)result;
    if (result == -ECANCELED) /* by forget_watch() */
        return;
    if (mask & (POLLPRI | POLLRDHUP | POLLHUP | POLLERR) && direction == IO_READ)
        what |= IO_ALWAYS_READS;
    if (mask & (POLLHUP | POLLERR))
        what |= IO_READS | IO_WRITES;
    if (!(flags & IORING_CQE_F_MORE))
        what |= 1u << direction << IO_UNWATCHED;
    io->ready(io, (int)((uint32_t)key >> KEY_FD_SHIFT), (uint32_t)(key >> 32), what);
}

/* As many as the kernel's queue has room for. (IORING_OP_POLL_REMOVE does not end a watch of which an event is under
 * way.) */
static void end_watches(aco__io_fd_t *d, struct io_uring *uring)
{
    struct io_uring_sqe *entry;
    while (d->unended && (entry = io_uring_get_sqe(uring)) != NULL) {
        int direction = d->unended & IO_READS ? IO_READ : IO_WRITE;
        io_uring_prep_cancel64(entry, key_of(d->fd, d->generation, direction), 0);
        entry->user_data = 0;
        d->unended &= (unsigned char)~(1u << direction);
    }
}

static void end_by_ring(aco__io_t *io, struct io_uring *uring)
{
    aco__io_fd_t *d;
    while ((d = io->unended) != NULL) {
        end_watches(d, uring);
        if (d->unended)
            return;
        io->unended = d->next_unended;
        aco__io_fd_free(d);
    }
}

static int begin_watch(aco__io_t *io, int fd, uint64_t key, int direction)
{
    struct io_uring_sqe *entry = aco__io_ring_entry(io);
    if (!entry)
        return -1;
    io_uring_prep_poll_multishot(entry, fd, direction == IO_READ ? READING : WRITING);
    entry->user_data = key;
    return 0;
}

static int watch_by_ring(aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before)
{
    for (int direction = IO_READ; direction <= IO_WRITE; direction++) {
        uint64_t key = key_of(fd, generation, direction);
        if (what & ~before & 1u << direction && begin_watch(io, fd, key, direction) != 0)
            return -1;
    }
    return 0;
}

/* Without room in the kernel's queue, and without memory: the record waits for its turn. */
static void forget_by_ring(aco__io_t *io, aco__io_fd_t *d)
{
    int error = errno;
    if (!d->unended) {
        d->next_unended = io->unended;
        io->unended = d;
    }
    d->unended |= d->armed;
    aco__io_ring_submit(io); /* so that close() closes */
    errno = error;
}
#endif

int aco__io_choose_poller(aco__io_t *io, const char *call)
{
    static const char variable[] = "ACO_POLLER";
    const char *wanted = secure_getenv(variable);
    if (!wanted || !*wanted || strcmp(wanted, "epoll") == 0 || aco__chooser_is_there()) /* no ring is simulated */
        return 0;
    if (strcmp(wanted, "uring") != 0)
        return aco__service_fail(EINVAL, call, "the environment variable ACO_POLLER is neither epoll nor uring");
    if (aco__io_ring_need(io, variable, call) != 0)
        return -1;
#ifdef ACO_CONFIG_URING
    io->watch = watch_by_ring;
    io->forget = forget_by_ring;
    io->ring_event = watch_event;
    io->end_watches = end_by_ring;
    io->watches_by_ring = 1;
#endif
    return 0;
}
