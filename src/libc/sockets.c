/* Hooks of calls that move bytes, and of connections. A socket's call is made with MSG_DONTWAIT, which leaves the
 * descriptor as it is, and again after each wait. What is no socket fails so with ENOTSOCK: streams.c. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/parts.h"
#include "libc/streams.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#pragma GCC diagnostic ignored "-Wpedantic" /* addresses are a union in libc's declarations */

const char aco__hooks_of_sockets = 1;

static int has_option(int fd, int option, int value)
{
    int is = -1;
    socklen_t length = sizeof is;
    return aco__libc()->getsockopt(fd, SOL_SOCKET, option, &is, &length) == 0 && is == value;
}

ACO__SWITCHES
static ssize_t receive_once(int fd, struct msghdr *message, int flags, aco__hook_wait_t *wait, const char *location)
{
    ssize_t n;
    wait->vain = 0;
    aco__hook_spend(fd, location);
    while ((n = aco__libc()->recvmsg(fd, message, flags | MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        int next = aco__hook_again(wait, fd, POLLIN, SO_RCVTIMEO, location);
        if (next == HOOK_BLOCKS)
            return aco__libc()->recvmsg(fd, message, flags);
        if (next == HOOK_GIVES_UP)
            return -1;
    }
    return n;
}

/* ---- MSG_WAITALL ---- */

/* Whether the system's call, which has received this, would wait for more. */
static int waits_for_more(int fd, const struct msghdr *message, int flags)
{
    int is_unix = has_option(fd, SO_DOMAIN, AF_UNIX), is_at_mark = 0;
    if (!has_option(fd, SO_TYPE, SOCK_STREAM) || (is_unix && flags & MSG_PEEK))
        return 0;
    if (is_unix && (message->msg_controllen || message->msg_flags & MSG_CTRUNC)) /* descriptors or a sender's name */
        return 0;
    return aco__libc()->ioctl(fd, SIOCATMARK, &is_at_mark) != 0 || !is_at_mark; /* of urgent data */
}

static int is_over(int fd)
{
    return (aco__hook_look(fd, POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLNVAL)) != 0;
}

/* Waits for bytes. What a receive would take away, the error of a stream that was reset, is left to the next call:
 * HOOK_IS_DONE. */
ACO__SWITCHES static int await_bytes(int fd, aco__hook_wait_t *wait, const char *location)
{
    for (;;) {
        int n = 1, ends = is_over(fd), action; /* what came before the end is there by now */
        if (aco__libc()->ioctl(fd, FIONREAD, &n) != 0 || n > 0)
            return HOOK_TRIES_AGAIN;
        if (ends)
            return HOOK_IS_DONE;
        action = aco__hook_again(wait, fd, POLLIN, SO_RCVTIMEO, location);
        if (action != HOOK_TRIES_AGAIN)
            return action;
    }
}

/* After the first n bytes of `size`: how many came in all. `room`: for control data, in each part, as the system tells
 * of the last. */
ACO__SWITCHES
static ssize_t receive_rest(int fd, struct msghdr *message, size_t room, ssize_t n, size_t size, int flags,
                            aco__hook_wait_t *wait, const char *location)
{
    aco__parts_t rest = {message->msg_iov, message->msg_iovlen, 0, {NULL, 0}};
    struct msghdr next = *message;
    ssize_t all = n;
    int action;
    next.msg_name = NULL;
    next.msg_namelen = 0;
    while (n > 0 && (size_t)all < size && waits_for_more(fd, message, flags)) {
        action = await_bytes(fd, wait, location);
        if (action == HOOK_IS_DONE || action == HOOK_GIVES_UP)
            break;
        aco__parts_skip(&rest, (size_t)n);
        next.msg_iovlen = aco__parts_next(&rest, &next.msg_iov);
        next.msg_controllen = room;
        n = receive_once(fd, &next, flags, wait, location);
        if (n <= 0)
            break;
        all += n;
        message->msg_controllen = next.msg_controllen;
        message->msg_flags = next.msg_flags;
    }
    return all;
}

/* No event tells that there are more bytes than the n of the last look. */
ACO__SWITCHES
static ssize_t peek_at_rest(int fd, struct msghdr *message, size_t room, ssize_t n, size_t size, int flags,
                            aco__hook_wait_t *wait, const char *location)
{
    if (!waits_for_more(fd, message, flags) || aco__hook_begins_wait(wait, fd, SO_RCVTIMEO) != 0)
        return n;
    while (n > 0 && (size_t)n < size) {
        int ends = is_over(fd), action = ends ? HOOK_IS_DONE : aco__hook_nap(wait, location);
        message->msg_controllen = room;
        if (action == HOOK_BLOCKS)
            return aco__libc()->recvmsg(fd, message, flags);
        n = aco__libc()->recvmsg(fd, message, flags | MSG_DONTWAIT);
        if (action != HOOK_TRIES_AGAIN)
            break;
    }
    return n;
}

/* recvmsg(). The system reads the message before the hook does. */
ACO__SWITCHES static ssize_t receive(int fd, struct msghdr *message, int flags, const char *location)
{
    aco__hook_wait_t wait = {0}; /* a time limit is for all of it */
    int is_whole = flags & MSG_WAITALL && aco__hook_can_read(message, sizeof *message);
    size_t room = is_whole ? message->msg_controllen : 0, size;
    ssize_t n = receive_once(fd, message, flags, &wait, location);
    if (n <= 0 || !is_whole)
        return n;
    size = aco__parts_size(message->msg_iov, message->msg_iovlen);
    if ((size_t)n >= size)
        return n;
    return ((flags & MSG_PEEK) ? peek_at_rest : receive_rest)(fd, message, room, n, size, flags, &wait, location);
}

/* ---- Sends ---- */

/* sendmsg(). To a blocking stream all is sent, unless it fails in between: that is left to the next call. */
ACO__SWITCHES static ssize_t send_all(int fd, const struct msghdr *message, int flags, const char *location)
{
    aco__parts_t rest = {NULL, 0, 0, {NULL, 0}};
    size_t size = 0, sent = 0;
    struct msghdr next;
    const struct msghdr *now = message; /* the system reads it before the hook does */
    aco__hook_wait_t wait = {0};
    aco__hook_spend(fd, location);
    for (;;) {
        ssize_t n;
        if (sent && aco__hook_is_reset(fd))
            return (ssize_t)sent;
        n = aco__libc()->sendmsg(fd, now, flags | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            int action = aco__hook_again(&wait, fd, POLLOUT, SO_SNDTIMEO, location);
            if (action == HOOK_TRIES_AGAIN)
                continue;
            if (action == HOOK_BLOCKS)
                n = aco__libc()->sendmsg(fd, now, flags);
        }
        if (n <= 0)
            return n < 0 && !sent ? -1 : (ssize_t)sent;
        if (!sent) {
            rest.parts = message->msg_iov;
            rest.count = message->msg_iovlen;
            size = aco__parts_size(rest.parts, rest.count);
        }
        sent += (size_t)n;
        if (sent >= size)
            return (ssize_t)sent;
        aco__parts_skip(&rest, (size_t)n);
        memset(&next, 0, sizeof next); /* the address and the control data go with the first piece */
        next.msg_iovlen = aco__parts_next(&rest, &next.msg_iov);
        now = &next;
        flags = (flags | MSG_NOSIGNAL) & ~MSG_FASTOPEN; /* a call that has sent something raises no SIGPIPE */
        wait.vain = 0;
    }
}

static struct msghdr message_of(const struct iovec *parts, size_t count)
{
    struct msghdr message = {0};
    message.msg_iov = (struct iovec *)(uintptr_t)parts;
    message.msg_iovlen = count;
    return message;
}

/* ---- Any descriptor ---- */

ACO__SWITCHES static ssize_t read_parts(int fd, const struct iovec *parts, size_t count, const char *location)
{
    struct msghdr message = message_of(parts, count);
    int error = errno;
    ssize_t n = receive(fd, &message, 0, location);
    if (n < 0 && errno == ENOTSOCK)
        n = aco__hook_read_other(fd, parts, count);
    return aco__hook_result(n, error);
}

ACO__SWITCHES static ssize_t write_parts(int fd, const struct iovec *parts, size_t count, const char *location)
{
    struct msghdr message = message_of(parts, count);
    int error = errno;
    ssize_t n = send_all(fd, &message, 0, location);
    if (n < 0 && errno == ENOTSOCK)
        n = aco__hook_write_other(fd, parts, count);
    return aco__hook_result(n, error);
}

ACO__HOOK(ssize_t, read, (int fd, void *p, size_t n))
{
    struct iovec part = {p, n};
    return aco__hooked() && n ? read_parts(fd, &part, 1, "libc's read()") : aco__libc()->read(fd, p, n);
}

ACO__HOOK(ssize_t, write, (int fd, const void *p, size_t n))
{
    struct iovec part = {(void *)(uintptr_t)p, n};
    return aco__hooked() && n ? write_parts(fd, &part, 1, "libc's write()") : aco__libc()->write(fd, p, n);
}

ACO__HOOK(ssize_t, readv, (int fd, const struct iovec *parts, int count))
{
    return aco__hooked() && aco__is_vector(parts, count) ? read_parts(fd, parts, (size_t)count, "libc's readv()")
                                                         : aco__libc()->readv(fd, parts, count);
}

ACO__HOOK(ssize_t, writev, (int fd, const struct iovec *parts, int count))
{
    return aco__hooked() && aco__is_vector(parts, count) ? write_parts(fd, parts, (size_t)count, "libc's writev()")
                                                         : aco__libc()->writev(fd, parts, count);
}

/* ---- Sockets ---- */

/* Whether a call of a hooked task would wait with these flags. */
static inline __attribute__((always_inline)) int may_wait(int flags) /* aco__hooked() wants the hook's caller */
{
    return aco__hooked() && !(flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB));
}

ACO__HOOK(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
{
    int error = errno;
    return may_wait(flags) ? aco__hook_result(receive(fd, message, flags, "libc's recvmsg()"), error)
                           : aco__libc()->recvmsg(fd, message, flags);
}

/* A length that the system would not take back costs no message here. */
ACO__SWITCHES
static ssize_t receive_from(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length,
                            const char *location)
{
    struct iovec part = {p, n};
    struct msghdr message = message_of(&part, 1);
    int error = errno;
    ssize_t result;
    if (from && !aco__hook_can_read(length, sizeof *length)) {
        errno = EFAULT;
        return -1;
    }
    message.msg_name = from;
    message.msg_namelen = from ? *length : 0;
    result = receive(fd, &message, flags, location);
    if (from && result >= 0)
        *length = message.msg_namelen;
    return aco__hook_result(result, error);
}

ACO__HOOK(ssize_t, recv, (int fd, void *p, size_t n, int flags))
{
    return may_wait(flags) ? receive_from(fd, p, n, flags, NULL, NULL, "libc's recv()")
                           : aco__libc()->recv(fd, p, n, flags);
}

ACO__HOOK(ssize_t, recvfrom, (int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length))
{
    return may_wait(flags) ? receive_from(fd, p, n, flags, from, length, "libc's recvfrom()")
                           : aco__libc()->recvfrom(fd, p, n, flags, from, length);
}

ACO__HOOK(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))
{
    int error = errno;
    return may_wait(flags) ? aco__hook_result(send_all(fd, message, flags, "libc's sendmsg()"), error)
                           : aco__libc()->sendmsg(fd, message, flags);
}

ACO__SWITCHES
static ssize_t send_to(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length,
                       const char *location)
{
    struct iovec part = {(void *)(uintptr_t)p, n};
    struct msghdr message = message_of(&part, 1);
    int error = errno;
    message.msg_name = (void *)(uintptr_t)to;
    message.msg_namelen = to ? length : 0;
    return aco__hook_result(send_all(fd, &message, flags, location), error);
}

ACO__HOOK(ssize_t, send, (int fd, const void *p, size_t n, int flags))
{
    return may_wait(flags) ? send_to(fd, p, n, flags, NULL, 0, "libc's send()") : aco__libc()->send(fd, p, n, flags);
}

ACO__HOOK(ssize_t, sendto, (int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length))
{
    int is_too_long = to && length > sizeof(struct sockaddr_storage); /* sendmsg() would cut it */
    return !is_too_long && may_wait(flags) ? send_to(fd, p, n, flags, to, length, "libc's sendto()")
                                           : aco__libc()->sendto(fd, p, n, flags, to, length);
}

/* ---- _FORTIFY_SOURCE ---- */

static void check_room(size_t n, size_t room)
{
    if (n > room)
        __chk_fail();
}

ACO__HOOK(ssize_t, __read_chk, (int fd, void *p, size_t n, size_t room))
{
    check_room(n, room);
    return aco__as_read(fd, p, n);
}

ACO__HOOK(ssize_t, __recv_chk, (int fd, void *p, size_t n, size_t room, int flags))
{
    check_room(n, room);
    return aco__as_recv(fd, p, n, flags);
}

ACO__HOOK(ssize_t, __recvfrom_chk,
          (int fd, void *p, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *length))
{
    check_room(n, room);
    return aco__as_recvfrom(fd, p, n, flags, from, length);
}

/* ---- Connections ---- */

/* Whether a call that begins now may wait: it gives a turn first, as the descriptor may be another file after that. */
ACO__SWITCHES static int blocks(int fd, const char *location)
{
    int flags;
    aco__hook_spend(fd, location);
    flags = aco__libc()->fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

static int connect_now(int fd, const struct sockaddr *address, socklen_t length)
{
    int flags = aco__hook_unblock(fd), result;
    if (flags < 0)
        return -1;
    result = aco__libc()->connect(fd, address, length);
    aco__hook_block_again(fd, flags);
    return result;
}

static int accept_now(int fd, struct sockaddr *address, socklen_t *length, int options)
{
    int flags = aco__hook_unblock(fd), connection;
    if (flags < 0)
        return -1;
    connection = aco__libc()->accept4(fd, address, length, options);
    aco__hook_block_again(fd, flags);
    return connection;
}

/* Calls again after each wait: that also tells how the connection ended that was being made, and ends its making. */
ACO__SWITCHES static int connect_and_wait(int fd, const struct sockaddr *address, socklen_t length)
{
    aco__hook_wait_t wait = {0};
    while (connect_now(fd, address, length) != 0) {
        int is_in_progress = errno == EINPROGRESS || errno == EALREADY, action;
        if (!is_in_progress && !(errno == EAGAIN && address->sa_family == AF_UNIX))
            return -1;
        action = aco__hook_again(&wait, fd, POLLOUT, SO_SNDTIMEO, "libc's connect()");
        if (action == HOOK_BLOCKS)
            return aco__libc()->connect(fd, address, length);
        if (action == HOOK_GIVES_UP) {
            if (is_in_progress && errno == EAGAIN)
                errno = EINPROGRESS; /* as the system's after SO_SNDTIMEO */
            return -1;
        }
    }
    return 0;
}

ACO__HOOK(int, connect, (int fd, const struct sockaddr *address, socklen_t length))
{
    int error = errno;
    if (!aco__hooked() || !blocks(fd, "libc's connect()"))
        return aco__libc()->connect(fd, address, length);
    return (int)aco__hook_result(connect_and_wait(fd, address, length), error);
}

ACO__SWITCHES
static int accept_and_wait(int fd, struct sockaddr *address, socklen_t *length, int options, const char *location)
{
    aco__hook_wait_t wait = {0};
    int connection;
    while ((connection = accept_now(fd, address, length, options)) < 0 && errno == EAGAIN) {
        int action = aco__hook_again(&wait, fd, POLLIN, SO_RCVTIMEO, location);
        if (action == HOOK_GIVES_UP)
            return -1;
        if (action == HOOK_BLOCKS)
            return aco__libc()->accept4(fd, address, length, options);
    }
    return connection;
}

ACO__HOOK(int, accept, (int fd, struct sockaddr *address, socklen_t *length))
{
    static const char location[] = "libc's accept()";
    int error = errno;
    if (!aco__hooked() || !blocks(fd, location))
        return aco__libc()->accept(fd, address, length);
    return (int)aco__hook_result(accept_and_wait(fd, address, length, 0, location), error);
}

ACO__HOOK(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int options))
{
    static const char location[] = "libc's accept4()";
    int error = errno;
    if (!aco__hooked() || !blocks(fd, location))
        return aco__libc()->accept4(fd, address, length, options);
    return (int)aco__hook_result(accept_and_wait(fd, address, length, options, location), error);
}
