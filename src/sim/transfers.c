/* Calls that move bytes: all become one call to receive a message, or one to send it. */
#define _GNU_SOURCE /* IOV_MAX, SPLICE_F_NONBLOCK, RWF_NOWAIT */
#include "sim/call_lists.h"
#include "sim/byte_queue.h"
#include "sim/fifo.h"
#include "sim/held.h"
#include "sim/node_signals.h"
#include "sim/open_file.h"
#include "sim/waiting.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void note_transfer(aco_sim_t *sim, aco__sim_noted_t kind, aco__sim_file_t *file, const struct msghdr *message,
                          ssize_t n)
{
    const aco__sim_socket_t *socket = aco__sim_socket_of(file);
    aco__sim_address_t address;
    if (!sim->notes.is_wanted || n < 0 || !S_ISSOCK(file->type->mode))
        return;
    if (socket->type == SOCK_DGRAM && message->msg_name &&
        aco__sim_address_read(socket->family, message->msg_name, message->msg_namelen, &address) == 0)
        aco__sim_note_socket(sim, kind, socket, n, &address);
    else
        aco__sim_note_socket(sim, kind, socket, n, &socket->remote);
}

/* A blocking call waits with all tasks. */
static int may_try_again(aco_sim_t *sim, aco__sim_file_t *file, int flags, const char *call)
{
    return errno == EAGAIN && !(file->flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT) &&
           aco__sim_block(sim, file, call) == 0;
}

static aco__sim_file_t *socket_file(aco_sim_t *sim, int fd, const char *call)
{
    return (aco__sim_file_t *)aco__sim_socket_at(sim, fd, call);
}

/* Why a file has no such call. */
static int cannot_by_mode(const aco__sim_file_t *file)
{
    return (file->flags & O_ACCMODE) == O_RDWR ? EINVAL : EBADF;
}

static ssize_t receive_into(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags, const char *call)
{
    const int known = MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_TRUNC | MSG_CMSG_CLOEXEC | MSG_WAITALL;
    ssize_t n = -1;
    if (!file)
        return -1;
    if (!file->type->receive || message->msg_iovlen > IOV_MAX)
        return aco__sim_fail_with(file->type->receive ? EMSGSIZE : cannot_by_mode(file));
    if (flags & ~known) { /* among them MSG_OOB, MSG_ERRQUEUE */
        return aco__sim_fail_with(aco__sim_refuse(sim, call));
    }
    do
        n = file->type->receive(sim, file, message, flags);
    while (n < 0 && may_try_again(sim, file, flags, call));
    if (!(flags & MSG_PEEK))
        note_transfer(sim, ACO__NOTED_RECEIVES, file, message, n);
    return n;
}

/* The first `n` bytes of the message were sent. */
static void note_bytes(aco_sim_t *sim, const aco__sim_file_t *file, const struct msghdr *message, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0, some; n > 0; i++, n -= some) {
        some = message->msg_iov[i].iov_len < n ? message->msg_iov[i].iov_len : n;
        hash = aco__history_hash(hash, message->msg_iov[i].iov_base, some);
    }
    aco__history_note(&sim->history, ACO__SIM_SENT, file->number, hash);
}

static ssize_t send_message(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags,
                            const char *call)
{
    const int known = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE;
    ssize_t n = -1;
    if (!file)
        return -1;
    if (!file->type->send || message->msg_iovlen > IOV_MAX)
        return aco__sim_fail_with(file->type->send ? EMSGSIZE : cannot_by_mode(file));
    if (flags & ~known || (message->msg_controllen && aco__sim_socket_of(file)->family != AF_UNIX))
        return aco__sim_fail_with(aco__sim_refuse(sim, call));
    do
        n = file->type->send(sim, file, message, flags);
    while (n < 0 && may_try_again(sim, file, flags, call));
    if (n > 0)
        note_bytes(sim, file, message, (size_t)n);
    if (n < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL)) {
        (void)aco__sim_raise(sim, SIGPIPE);
        errno = EPIPE;
    }
    note_transfer(sim, ACO__NOTED_SENDS, file, message, n);
    return n;
}

ssize_t aco__sim_read(aco_sim_t *sim, int fd, void *p, size_t n)
{
    struct iovec part = aco__sim_part(p, n);
    return aco__sim_readv(sim, fd, &part, 1);
}

ssize_t aco__sim_write(aco_sim_t *sim, int fd, const void *p, size_t n)
{
    struct iovec part = aco__sim_part(p, n);
    struct msghdr message = aco__sim_message(&part, 1);
    return send_message(sim, aco__sim_file_of(sim, fd, "write"), &message, 0, "write");
}

/* To read no bytes, or to write no bytes in parts, is nothing to do for a socket, whatever its state. */
static int is_nothing(const aco__sim_file_t *file, const struct msghdr *message)
{
    return file && S_ISSOCK(file->type->mode) && !aco__sim_parts_size(message);
}

/* readv() or writev(). */
static ssize_t transfer_parts(aco_sim_t *sim, int fd, const struct iovec *parts, int n, int is_read)
{
    const char *call = is_read ? "read" : "write";
    struct msghdr message = aco__sim_message(parts, (size_t)n);
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, call);
    if (n < 0 || n > IOV_MAX)
        return aco__sim_fail_with(EINVAL);
    if (is_nothing(file, &message))
        return 0;
    return is_read ? receive_into(sim, file, &message, 0, call) : send_message(sim, file, &message, 0, call);
}

ssize_t aco__sim_readv(aco_sim_t *sim, int fd, const struct iovec *parts, int n)
{
    return transfer_parts(sim, fd, parts, n, 1);
}

ssize_t aco__sim_writev(aco_sim_t *sim, int fd, const struct iovec *parts, int n)
{
    return transfer_parts(sim, fd, parts, n, 0);
}

/* Whether it is a file or directory of a disk. */
static int has_position(const aco__sim_file_t *file)
{
    return S_ISREG(file->type->mode) || S_ISDIR(file->type->mode);
}

/* Why preadv2() does not read; 0: it does. */
static int check_preadv2(const aco__sim_file_t *file, int is_on_disk, int n, int64_t offset)
{
    if (offset >= 0 && !is_on_disk)
        return ESPIPE;
    if (!file->type->receive || (file->flags & O_ACCMODE) == O_WRONLY)
        return cannot_by_mode(file);
    return n < 0 || n > IOV_MAX ? EINVAL : 0;
}

ssize_t aco__sim_preadv2(aco_sim_t *sim, int fd, const struct iovec *parts, int n, int64_t offset, int flags)
{
    static const char call[] = "preadv2";
    struct msghdr message = aco__sim_message(parts, (size_t)n);
    aco__sim_file_t *file = offset < -1 ? aco__sim_null_with(EINVAL) : aco__sim_file_of(sim, fd, call);
    int is_on_disk = file && has_position(file), error;
    if (!file)
        return -1;
    error = check_preadv2(file, is_on_disk, n, offset);
    if (error || !aco__sim_parts_size(&message))
        return error ? aco__sim_fail_with(error) : 0;
    if (flags & ~RWF_NOWAIT || (flags && aco__sim_is_named_pipe(file)))
        return aco__sim_fail_with(EOPNOTSUPP);
    return is_on_disk ? aco__sim_file_read(sim, file, &message, offset, flags)
                      : receive_into(sim, file, &message, flags ? MSG_DONTWAIT : 0, call);
}

ssize_t aco__sim_recvfrom(aco_sim_t *sim, int fd, void *p, size_t n, int flags, struct sockaddr *from,
                          socklen_t *length)
{
    struct iovec part = aco__sim_part(p, n);
    struct msghdr message = aco__sim_message(&part, 1);
    ssize_t got;
    message.msg_name = from;
    message.msg_namelen = from && length ? *length : 0;
    got = receive_into(sim, socket_file(sim, fd, "recvfrom"), &message, flags, "recvfrom");
    if (got >= 0 && from && length)
        *length = message.msg_namelen;
    return got;
}

ssize_t aco__sim_recv(aco_sim_t *sim, int fd, void *p, size_t n, int flags)
{
    return aco__sim_recvfrom(sim, fd, p, n, flags, NULL, NULL);
}

ssize_t aco__sim_recvmsg(aco_sim_t *sim, int fd, struct msghdr *message, int flags)
{
    struct msghdr own = *message;
    ssize_t n;
    own.msg_flags = 0;
    if (!own.msg_name)
        own.msg_namelen = 0;
    n = receive_into(sim, socket_file(sim, fd, "recvmsg"), &own, flags, "recvmsg");
    if (n >= 0) {
        message->msg_namelen = own.msg_namelen;
        message->msg_controllen = (size_t)((char *)own.msg_control - (char *)message->msg_control);
        message->msg_flags = own.msg_flags;
    }
    return n;
}

ssize_t aco__sim_sendto(aco_sim_t *sim, int fd, const void *p, size_t n, int flags, const struct sockaddr *to,
                        socklen_t length)
{
    struct iovec part = aco__sim_part(p, n);
    struct msghdr message = aco__sim_message(&part, 1);
    message.msg_name = (void *)(uintptr_t)to;
    message.msg_namelen = to ? length : 0;
    return send_message(sim, socket_file(sim, fd, "sendto"), &message, flags, "sendto");
}

ssize_t aco__sim_send(aco_sim_t *sim, int fd, const void *p, size_t n, int flags)
{
    return aco__sim_sendto(sim, fd, p, n, flags, NULL, 0);
}

ssize_t aco__sim_sendmsg(aco_sim_t *sim, int fd, const struct msghdr *message, int flags)
{
    return send_message(sim, socket_file(sim, fd, "sendmsg"), message, flags, "sendmsg");
}

/* ---- splice() ---- */

enum { MOST_AT_ONCE = 65536 };

/* From anything to a pipe, which has room for all of it. */
static ssize_t fill_fifo(aco_sim_t *sim, aco__sim_file_t *from, aco__sim_file_t *to, struct iovec *part)
{
    struct msghdr message = aco__sim_message(part, 1);
    size_t room = aco__sim_fifo_room(aco__sim_pipe_of(to));
    ssize_t n;
    if (!room) /* EAGAIN; or EPIPE and SIGPIPE: nobody reads it */
        return send_message(sim, to, &message, MSG_DONTWAIT, "splice");
    part->iov_len = part->iov_len < room ? part->iov_len : room;
    n = receive_into(sim, from, &message, MSG_DONTWAIT, "splice");
    part->iov_len = n > 0 ? (size_t)n : 0;
    message = aco__sim_message(part, 1);
    return n > 0 ? send_message(sim, to, &message, MSG_DONTWAIT, "splice") : n;
}

/* From a pipe to something else. */
static ssize_t drain_fifo(aco_sim_t *sim, aco__sim_file_t *from, aco__sim_file_t *to, struct iovec *part)
{
    struct msghdr message = aco__sim_message(part, 1);
    ssize_t n = from->type->receive(sim, from, &message, MSG_PEEK), sent;
    if (n <= 0)
        return n;
    part->iov_len = (size_t)n;
    message = aco__sim_message(part, 1);
    sent = send_message(sim, to, &message, MSG_DONTWAIT, "splice");
    if (sent <= 0)
        return sent;
    part->iov_len = (size_t)sent;
    message = aco__sim_message(part, 1);
    return from->type->receive(sim, from, &message, 0);
}

static ssize_t splice_once(aco_sim_t *sim, aco__sim_file_t *from, aco__sim_file_t *to, char *bytes, size_t n)
{
    struct iovec part = aco__sim_part(bytes, n < MOST_AT_ONCE ? n : MOST_AT_ONCE);
    return (aco__sim_pipe_of(to) ? fill_fifo : drain_fifo)(sim, from, to, &part);
}

/* -1 and errno: these two cannot be spliced. */
static int check_splice(const aco__sim_file_t *from, const aco__sim_file_t *to, const int64_t *from_offset,
                        const int64_t *to_offset)
{
    if (!from || !to)
        return -1;
    if (aco__sim_pipe_of(from) == aco__sim_pipe_of(to) || !from->type->receive || !to->type->send)
        return aco__sim_fail_with(from->type->receive && to->type->send ? EINVAL : EBADF);
    return from_offset || to_offset ? aco__sim_fail_with(ESPIPE) : 0;
}

ssize_t aco__sim_splice(aco_sim_t *sim, int from_fd, int64_t *from_offset, int to_fd, int64_t *to_offset, size_t n,
                        unsigned flags)
{
    aco__sim_file_t *from = aco__sim_file_of(sim, from_fd, "splice"),
                    *to = from ? aco__sim_file_of(sim, to_fd, "splice") : NULL;
    int message_flags = (flags & SPLICE_F_NONBLOCK) ? MSG_DONTWAIT : 0;
    aco__sim_held_t held;
    char *bytes;
    ssize_t moved;
    if (!n || check_splice(from, to, from_offset, to_offset) != 0)
        return from && to && !n ? 0 : -1;
    bytes = malloc(MOST_AT_ONCE);
    if (!bytes)
        return aco__sim_fail_with(ENOMEM);
    aco__sim_hold(sim, &held, to, bytes);
    do
        moved = splice_once(sim, from, to, bytes, n);
    while (moved < 0 &&
           may_try_again(sim, from, message_flags | ((to->flags & O_NONBLOCK) ? MSG_DONTWAIT : 0), "splice"));
    aco__sim_let_go(sim, &held);
    return moved;
}

/* At most so much at once as the buffer has: callers go on. The buffer is the call's own, as another thread may call
 * this while the write waits. */
ssize_t aco__sim_sendfile(aco_sim_t *sim, int to, int from, int64_t *offset, size_t n)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, from, "sendfile");
    int64_t *at = file && has_position(file) && !offset ? aco__sim_file_position(file) : offset;
    aco__sim_held_t held;
    struct iovec part;
    struct msghdr message = aco__sim_message(&part, 1);
    ssize_t sent;
    if (!file)
        return -1;
    if (!has_position(file) || *at < 0)
        return aco__sim_fail_with(EINVAL);
    part = aco__sim_part(malloc(MOST_AT_ONCE), n < MOST_AT_ONCE ? n : MOST_AT_ONCE);
    if (!part.iov_base)
        return aco__sim_fail_with(ENOMEM);
    aco__sim_hold(sim, &held, file, part.iov_base);
    sent = aco__sim_file_read(sim, file, &message, *at, 0);
    if (sent > 0)
        sent = aco__sim_write(sim, to, part.iov_base, (size_t)sent);
    if (sent > 0)
        *at += sent;
    aco__sim_let_go(sim, &held);
    return sent;
}
