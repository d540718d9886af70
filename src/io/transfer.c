/* Calls that move bytes: each is tried first, and again after each wait. */
#define _GNU_SOURCE /* splice() */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/linux_bsd.h"
#include "io/transfer.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>

typedef ssize_t (*once_t)(aco__io_fd_t *d, void *args);

/* A call has this result. */
static inline ssize_t counted(aco__io_t *io, int direction, ssize_t n)
{
    if (n > 0)
        *(direction == IO_READ ? &io->stats.bytes_read : &io->stats.bytes_written) += (uint64_t)n;
    return n;
}

/* A system call has failed. If a connection of TCP has, the system tells one call, perhaps a writer's, and lets readers
 * find an ordinary end from then on. So the record keeps the errno. */
static void note_loss(aco__io_fd_t *d)
{
    if (d->is_tcp && (errno == ECONNRESET || errno == ECONNABORTED || errno == ETIMEDOUT || errno == EHOSTUNREACH ||
                      errno == ENETUNREACH))
        d->lost = (unsigned char)errno;
}

static ssize_t failed(aco__io_fd_t *d, const char *call)
{
    note_loss(d);
    return aco__io_fail(call, d->fd);
}

/* The same for a call with flags. With MSG_FASTOPEN it connects: another attempt may succeed. */
static ssize_t failed_with(int flags, aco__io_fd_t *d, const char *call)
{
    return (flags & MSG_FASTOPEN) ? aco__io_fail(call, d->fd) : failed(d, call);
}

/* What a read returns that has got nothing: 0, or, if that is the end of a connection that has failed, -1 and errno.
 * Else the caller has no room: bytes are left. */
static ssize_t end_of(const aco__io_fd_t *d, const char *call)
{
    char byte;
    if (!d->lost || aco__system.recv(d->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0)
        return 0;
    errno = d->lost;
    return aco__io_fail(call, d->fd);
}

/* A wait for what a drained descriptor will bring has failed. What has come meanwhile is not lost for that. */
static ssize_t last_attempt(aco__io_fd_t *d, once_t once, void *args)
{
    int error = errno;
    ssize_t n = d->closed ? -1 : once(d, args);
    if (n >= 0)
        return n;
    if (!d->closed)
        note_loss(d);
    errno = error;
    return -1;
}

ACO__SWITCHES
static ssize_t attempts(aco__io_t *io, aco__io_fd_t *d, const char *call, int direction, size_t wanted, once_t once,
                        void *args, const char *location)
{
    int is_drained = wanted && d->drained;
    ACO__ASSERT(!d->drained || (d->is_tcp && d->armed & IO_READS)); /* an event says when there is more */
    for (;; is_drained = 0) {
        ssize_t n;
        ACO__NO_SWITCH_BEGIN(); /* or what comes meanwhile is not seen */
        n = is_drained ? -1 : once(d, args);
        if (n > 0 && (size_t)n < wanted)
            aco__io_note_drained(d);
        ACO__NO_SWITCH_END();
        if (n >= 0)
            return n;
        if (!is_drained && errno == EINTR)
            continue;
        if (!is_drained && errno != EAGAIN)
            return failed(d, call);
        if (aco__io_park(io, d, direction, ACO_FOREVER, call, location) != 0)
            return is_drained ? last_attempt(d, once, args) : -1;
    }
}

ssize_t aco__io_transfer(const char *call, int fd, int direction, size_t wanted, once_t once, void *args,
                         const char *location)
{
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter(io, fd, call) : NULL;
    ssize_t n;
    if (!d)
        return -1;
    n = attempts(io, d, call, direction, wanted, once, args, location);
    if (n == 0 && direction == IO_READ)
        n = end_of(d, call);
    aco__io_leave(d);
    return counted(io, direction, n);
}

/* The same for a call that does not wait, with flags. What MSG_ERRQUEUE gets may be without bytes. */
static ssize_t transfer_now(int flags, const char *call, int fd, int direction, once_t once, void *args)
{
    aco__io_t *io = aco__io_get(call);
    ssize_t n;
    aco__io_fd_t *d = io ? aco__io_enter_now(io, fd, call) : NULL;
    if (!d)
        return -1;
    do
        n = once(d, args);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        n = failed_with(flags, d, call);
    else if (n == 0 && direction == IO_READ && !(flags & MSG_ERRQUEUE))
        n = end_of(d, call);
    aco__io_leave(d);
    return counted(io, direction, n);
}

/* The same for a call with flags. With MSG_DONTWAIT it does not wait, nor for errors (MSG_ERRQUEUE), for which the
 * system never waits. */
ACO__SWITCHES
static ssize_t transfer_with(int flags, const char *call, int fd, int direction, size_t wanted, once_t once,
                             void *args, const char *location)
{
    if (!(flags & (MSG_DONTWAIT | MSG_ERRQUEUE)))
        return aco__io_transfer(call, fd, direction, flags ? 0 : wanted, once, args, location);
    return transfer_now(flags, call, fd, direction, once, args);
}

/* A message to an address, or to a peer. EAGAIN may mean that the receiver has no room, of which no event tells. */
ACO__SWITCHES
static ssize_t send_attempts(int flags, aco__io_t *io, aco__io_fd_t *d, const char *call, once_t once, void *args,
                             const char *location)
{
    int64_t ns = 0;
    ssize_t n;
    while ((n = once(d, args)) < 0) {
        int is_ready = errno == EAGAIN ? aco__io_look(d->fd, POLLOUT) : -1;
        if (is_ready < 0 && errno == EINTR)
            continue;
        if (is_ready < 0)
            return failed_with(flags, d, call);
        if (is_ready ? aco__io_pause(io, d, &ns, call, location) != 0
                     : aco__io_park(io, d, IO_WRITE, ACO_FOREVER, call, location) != 0)
            return -1;
    }
    return n;
}

ACO__SWITCHES static ssize_t send_to(int flags, const char *call, int fd, once_t once, void *args, const char *location)
{
    aco__io_t *io;
    aco__io_fd_t *d;
    ssize_t n;
    if (flags & MSG_DONTWAIT)
        return transfer_with(flags, call, fd, IO_WRITE, 0, once, args, location);
    io = aco__io_get(call);
    d = io ? aco__io_enter(io, fd, call) : NULL;
    if (!d)
        return -1;
    n = send_attempts(flags, io, d, call, once, args, location);
    aco__io_leave(d);
    return counted(io, IO_WRITE, n);
}

/* ---- Bytes ---- */

ssize_t aco__io_read_once(const aco__io_fd_t *d, void *p, size_t n)
{
    if (d->is_tcp && n) /* read() reads nothing at once; recv() would wait for bytes */
        return aco__system.recv(d->fd, p, n, 0);
    return aco__system.read(d->fd, p, n);
}

typedef struct bytes {
    union {
        void *to;
        const void *from;
        struct msghdr *message;
        const struct msghdr *sent;
        const struct iovec *parts;
    } is;
    size_t n;
    int flags;
} bytes_t;

static ssize_t read_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__io_read_once(d, bytes->is.to, bytes->n);
}

/* Sockets are written to by send(), which can do it without SIGPIPE. */
static ssize_t write_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    if (d->is_socket) {
        ssize_t n = aco__system.send(d->fd, bytes->is.from, bytes->n, MSG_NOSIGNAL);
        if (n >= 0 || errno != ENOTSOCK)
            return n;
        d->is_socket = 0;
    }
    return aco__system.write(d->fd, bytes->is.from, bytes->n);
}

static ssize_t readv_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__system.readv(d->fd, bytes->is.parts, (int)bytes->n);
}

static ssize_t writev_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    if (d->is_socket) {
        struct msghdr message = {0};
        ssize_t n;
        message.msg_iov = (struct iovec *)(uintptr_t)bytes->is.parts;
        message.msg_iovlen = bytes->n;
        n = aco__system.sendmsg(d->fd, &message, MSG_NOSIGNAL);
        if (n >= 0 || errno != ENOTSOCK)
            return n;
        d->is_socket = 0;
    }
    return aco__system.writev(d->fd, bytes->is.parts, (int)bytes->n);
}

static ssize_t recv_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__system.recv(d->fd, bytes->is.to, bytes->n, bytes->flags);
}

static ssize_t send_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__system.send(d->fd, bytes->is.from, bytes->n, bytes->flags | MSG_NOSIGNAL);
}

static ssize_t recvmsg_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__system.recvmsg(d->fd, bytes->is.message, bytes->flags);
}

static ssize_t sendmsg_once(aco__io_fd_t *d, void *args)
{
    const bytes_t *bytes = args;
    return aco__system.sendmsg(d->fd, bytes->is.sent, bytes->flags | MSG_NOSIGNAL);
}

ssize_t aco__io_read_now(int fd, void *p, size_t n, const char *call)
{
    bytes_t bytes = {{.to = p}, n, 0};
    return transfer_now(0, call, fd, IO_READ, read_once, &bytes);
}

ssize_t aco__io_write_now(int fd, const void *p, size_t n, const char *call)
{
    bytes_t bytes = {{.from = p}, n, 0};
    return transfer_now(0, call, fd, IO_WRITE, write_once, &bytes);
}

ssize_t aco_io_read_at(int fd, void *p, size_t n, const char *location)
{
    bytes_t bytes = {{.to = p}, n, 0};
    return aco__io_transfer("aco_io_read", fd, IO_READ, n, read_once, &bytes, location);
}

ssize_t aco_io_write_at(int fd, const void *p, size_t n, const char *location)
{
    bytes_t bytes = {{.from = p}, n, 0};
    return aco__io_transfer("aco_io_write", fd, IO_WRITE, 0, write_once, &bytes, location);
}

/* -1 and EINVAL, also where sendmsg(), which writes vectors to sockets, would see another error or none. */
static int check_count(int count, const char *call)
{
    return count >= 0 && count <= IOV_MAX ? 0 : aco__service_fail(EINVAL, call, "the number of parts");
}

ssize_t aco_io_readv_at(int fd, const struct iovec *parts, int count, const char *location)
{
    static const char call[] = "aco_io_readv";
    bytes_t bytes = {{.parts = parts}, (size_t)count, 0};
    return check_count(count, call) != 0 ? -1 : aco__io_transfer(call, fd, IO_READ, 0, readv_once, &bytes, location);
}

ssize_t aco_io_writev_at(int fd, const struct iovec *parts, int count, const char *location)
{
    static const char call[] = "aco_io_writev";
    bytes_t bytes = {{.parts = parts}, (size_t)count, 0};
    return check_count(count, call) != 0 ? -1 : aco__io_transfer(call, fd, IO_WRITE, 0, writev_once, &bytes, location);
}

ssize_t aco_io_recv_at(int fd, void *p, size_t n, int flags, const char *location)
{
    bytes_t bytes = {{.to = p}, n, flags};
    return transfer_with(flags, "aco_io_recv", fd, IO_READ, n, recv_once, &bytes, location);
}

ssize_t aco_io_send_at(int fd, const void *p, size_t n, int flags, const char *location)
{
    bytes_t bytes = {{.from = p}, n, flags};
    return transfer_with(flags, "aco_io_send", fd, IO_WRITE, 0, send_once, &bytes, location);
}

/* recvmsg() changes the message's lengths only if it succeeds. */
ssize_t aco_io_recvmsg_at(int fd, struct msghdr *message, int flags, const char *location)
{
    bytes_t bytes = {{.message = message}, 0, flags};
    return transfer_with(flags, "aco_io_recvmsg", fd, IO_READ, 0, recvmsg_once, &bytes, location);
}

ssize_t aco_io_sendmsg_at(int fd, const struct msghdr *message, int flags, const char *location)
{
    bytes_t bytes = {{.sent = message}, 0, flags};
    return message->msg_name ? send_to(flags, "aco_io_sendmsg", fd, sendmsg_once, &bytes, location)
                             : transfer_with(flags, "aco_io_sendmsg", fd, IO_WRITE, 0, sendmsg_once, &bytes, location);
}

/* ---- Datagrams with addresses ---- */

typedef struct datagram {
    union {
        void *to;
        const void *from;
    } is;
    size_t n;
    int flags;
    struct sockaddr *source;
    socklen_t *source_length;
    const struct sockaddr *target;
    socklen_t target_length;
} datagram_t;

static ssize_t recvfrom_once(aco__io_fd_t *d, void *args)
{
    const datagram_t *datagram = args;
    return aco__system.recvfrom(d->fd, datagram->is.to, datagram->n, datagram->flags, datagram->source,
                                datagram->source_length);
}

static ssize_t sendto_once(aco__io_fd_t *d, void *args)
{
    const datagram_t *datagram = args;
    return aco__system.sendto(d->fd, datagram->is.from, datagram->n, datagram->flags | MSG_NOSIGNAL, datagram->target,
                              datagram->target_length);
}

ssize_t aco_io_recvfrom_at(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length,
                           const char *location)
{
    datagram_t datagram = {{.to = p}, n, flags, from, length, NULL, 0};
    return transfer_with(flags, "aco_io_recvfrom", fd, IO_READ, 0, recvfrom_once, &datagram, location);
}

ssize_t aco_io_sendto_at(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length,
                         const char *location)
{
    datagram_t datagram = {{.from = p}, n, flags, NULL, NULL, to, length};
    return send_to(flags, "aco_io_sendto", fd, sendto_once, &datagram, location);
}

/* ---- All of it ---- */

ssize_t aco_io_write_all_at(int fd, const void *p, size_t n, size_t *done, const char *location)
{
    size_t sent = 0;
    ssize_t part = 0;
    while (sent < n && part >= 0) {
        bytes_t bytes = {{.from = (const char *)p + sent}, n - sent, 0};
        part = aco__io_transfer("aco_io_write_all", fd, IO_WRITE, 0, write_once, &bytes, location);
        if (part == 0) /* some devices: it would be made for ever */
            part = aco__service_fail(EIO, "aco_io_write_all", "the system has written nothing");
        if (part > 0)
            sent += (size_t)part;
    }
    if (done)
        *done = sent;
    return part < 0 ? -1 : (ssize_t)n;
}

ssize_t aco_io_read_exactly_at(int fd, void *p, size_t n, size_t *done, const char *location)
{
    size_t got = 0;
    ssize_t part = 1;
    while (got < n && part > 0) {
        bytes_t bytes = {{.to = (char *)p + got}, n - got, 0};
        part = aco__io_transfer("aco_io_read_exactly", fd, IO_READ, n - got, read_once, &bytes, location);
        if (part > 0)
            got += (size_t)part;
    }
    if (done)
        *done = got;
    return part < 0 ? -1 : (ssize_t)got;
}

/* ---- Between descriptors ---- */

typedef struct move {
    int fds[2]; /* from, to */
    int64_t *from_offset, *to_offset;
    size_t n;
    unsigned flags;
} move_t;

static ssize_t sendfile_once(const move_t *move)
{
    return aco__io_sendfile(move->fds[1], move->fds[0], move->from_offset, move->n);
}

/* Urgent data of TCP stops a splice: the bytes after its mark can only be received. Moves one of them to the pipe,
 * which has room: 1; or 0. */
static ssize_t pass_urgent_mark(const int fds[2])
{
    int is_at_mark = 0;
    char byte;
    if (aco__system.ioctl(fds[0], SIOCATMARK, &is_at_mark) != 0 || !is_at_mark)
        return 0;
    if (aco__system.recv(fds[0], &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || aco__system.write(fds[1], &byte, 1) != 1)
        return 0;
    return aco__system.recv(fds[0], &byte, 1, MSG_DONTWAIT) == 1;
}

#ifdef __linux__
static ssize_t splice_once(const move_t *move)
{
    off_t from_offset = move->from_offset ? *move->from_offset : 0, to_offset = move->to_offset ? *move->to_offset : 0;
    ssize_t n = aco__system.splice(move->fds[0], move->from_offset ? &from_offset : NULL, move->fds[1],
                       move->to_offset ? &to_offset : NULL, move->n, move->flags | SPLICE_F_NONBLOCK);
    if (n == 0 && move->n) /* the end of the stream; or urgent data, if the peer has sent the end */
        n = pass_urgent_mark(move->fds);
    if (n > 0 && move->from_offset)
        *move->from_offset = from_offset;
    if (n > 0 && move->to_offset)
        *move->to_offset = to_offset;
    return n;
}

#else
static ssize_t splice_once(const move_t *move)
{
    (void)move;
    errno = ENOSYS;
    return -1;
}
#endif

/* Waits after an EAGAIN, which does not tell which side is not ready. The number of bytes that were moved instead; -1
 * and errno. */
ACO__SWITCHES
static ssize_t await_either(aco__io_t *io, aco__io_fd_t *const d[2], const move_t *move, int64_t *ns, const char *call,
                            const char *location)
{
    static const int events[2] = {POLLIN, POLLOUT};
    for (int i = 0; i < 2; i++) {
        int is_ready = aco__io_look(move->fds[i], events[i]);
        if (is_ready < 0)
            return aco__io_fail(call, move->fds[i]);
        if (!is_ready)
            return aco__io_park(io, d[i], i == 0 ? IO_READ : IO_WRITE, ACO_FOREVER, call, location);
    }
    /* Both are ready, so no further event need come. */
    return pass_urgent_mark(move->fds) > 0 ? 1 : aco__io_pause(io, d[1], ns, call, location);
}

ACO__SWITCHES
static ssize_t move_attempts(aco__io_t *io, aco__io_fd_t *const d[2], ssize_t (*once)(const move_t *move),
                             const move_t *move, const char *call, const char *location)
{
    int64_t ns = 0;
    ssize_t n, instead = 0;
    while (!instead && (n = once(move)) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || move->flags & SPLICE_F_NONBLOCK) {
            note_loss(d[1]);
            return failed(d[0], call);
        }
        instead = await_either(io, d, move, &ns, call, location);
        if (instead < 0)
            return -1;
        if (d[0]->closed || d[1]->closed) {
            errno = ECANCELED;
            return -1;
        }
    }
    return instead ? instead : n;
}

ACO__SWITCHES
static ssize_t between(const char *call, ssize_t (*once)(const move_t *move), const move_t *move, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d[2];
    ssize_t n;
    if (!io || aco__io_enter_both(io, move->fds, d, !(move->flags & SPLICE_F_NONBLOCK), call) != 0)
        return -1;
    n = move_attempts(io, d, once, move, call, location);
    if (n == 0 && move->n)
        n = end_of(d[0], call);
    aco__io_leave_both(d);
    return counted(io, IO_READ, counted(io, IO_WRITE, n));
}

ssize_t aco_io_sendfile_at(int to, int from, int64_t *offset, size_t n, const char *location)
{
    move_t move = {{from, to}, offset, NULL, n, 0};
    return between("aco_io_sendfile", sendfile_once, &move, location);
}

ssize_t aco_io_splice_at(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t n, unsigned flags,
                         const char *location)
{
    move_t move = {{from, to}, from_offset, to_offset, n, flags};
    return between("aco_io_splice", splice_once, &move, location);
}
