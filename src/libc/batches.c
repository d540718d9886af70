/* Hooks of calls that move several messages, or a file to a socket. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/parts.h"
#include "libc/streams.h"

#include <sys/socket.h>

const char aco__hooks_of_batches = 1;

/* As many as there are; with MSG_WAITALL one, by the hook of recvmsg(). -1 and EAGAIN: none. */
ACO__SWITCHES static int receive_now(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    ssize_t n;
    if (!(flags & MSG_WAITALL))
        return aco__libc()->recvmmsg(fd, messages, count, flags | MSG_DONTWAIT, NULL);
    n = recvmsg(fd, &messages->msg_hdr, flags & ~MSG_WAITFORONE);
    if (n < 0)
        return -1;
    messages->msg_len = (unsigned)n;
    return 1;
}

/* The kernel looks at the time limit only when a message has come. The time limit of the socket is for each. An error
 * behind messages is left to the next call. */
ACO__SWITCHES static int receive_several(int fd, struct mmsghdr *messages, unsigned count, int flags, int64_t deadline)
{
    aco__hook_wait_t wait = {0};
    unsigned done = 0;
    aco__hook_spend(fd, "libc's recvmmsg()");
    while (done < count) {
        int n = receive_now(fd, messages + done, count - done, flags), action;
        done += n > 0 ? (unsigned)n : 0;
        if (done == count || (done && flags & MSG_WAITFORONE) || (n > 0 && aco_now() >= deadline))
            break;
        if (n >= 0) {
            if (aco__hook_look(fd, 0) & POLLERR)
                break;
            wait.is_known = 0;
            wait.vain = 0;
            continue;
        }
        action = errno == EAGAIN && !(flags & MSG_WAITALL)
                     ? aco__hook_again(&wait, fd, POLLIN, SO_RCVTIMEO, "libc's recvmmsg()")
                     : HOOK_GIVES_UP;
        if (action == HOOK_BLOCKS && !done)
            return aco__libc()->recvmmsg(fd, messages, count, flags, NULL);
        if (action != HOOK_TRIES_AGAIN || (done && aco__hook_look(fd, 0) & POLLERR))
            return done ? (int)done : -1;
    }
    return (int)done;
}

ACO__HOOK(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit))
{
    int error = errno, done;
    int64_t deadline;
    if (!aco__hooked() || flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB) || !count ||
        (limit && !aco__hook_is_time(limit)))
        return aco__libc()->recvmmsg(fd, messages, count, flags, limit);
    deadline = limit ? aco_after(aco__hook_ns(limit->tv_sec, limit->tv_nsec)) : ACO_FOREVER;
    done = receive_several(fd, messages, count, flags, deadline);
    if (done > 0 && deadline != ACO_FOREVER)
        *limit = aco__hook_time_until(deadline);
    return (int)aco__hook_result(done, error);
}

/* Each by the hook of sendmsg(). One that could not be sent as a whole is the last. */
ACO__HOOK(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags))
{
    int error = errno;
    unsigned done = 0;
    if (!aco__hooked() || flags & (MSG_DONTWAIT | MSG_OOB) || !count)
        return aco__libc()->sendmmsg(fd, messages, count, flags);
    while (done < count && done < IOV_MAX) { /* the system's limit, too */
        const struct msghdr *message = &messages[done].msg_hdr;
        ssize_t n = sendmsg(fd, message, flags);
        if (n < 0)
            return done ? (int)aco__hook_result((ssize_t)done, error) : -1;
        messages[done++].msg_len = (unsigned)n;
        if ((size_t)n < aco__parts_size(message->msg_iov, message->msg_iovlen))
            break;
    }
    return (int)done;
}

/* ---- sendfile() ---- */

static ssize_t send_now(int to, int from, off64_t *offset, size_t n)
{
    int flags = aco__hook_unblock(to);
    ssize_t sent;
    if (flags < 0)
        return -1;
    sent = aco__libc()->sendfile64(to, from, offset, n);
    aco__hook_block_again(to, flags);
    return sent;
}

ACO__SWITCHES static ssize_t send_file(int to, int from, off64_t *offset, size_t n)
{
    aco__hook_wait_t wait = {0};
    int error = errno, flags;
    size_t sent = 0;
    aco__hook_spend(to, "libc's sendfile()");
    flags = aco__libc()->fcntl(to, F_GETFL);
    if (flags < 0 || flags & O_NONBLOCK)
        return aco__libc()->sendfile64(to, from, offset, n);
    while (sent < n && !(sent && aco__hook_is_reset(to))) {
        ssize_t part = send_now(to, from, offset, n - sent);
        if (part < 0 && errno == EAGAIN) {
            int action = aco__hook_again(&wait, to, POLLOUT, SO_SNDTIMEO, "libc's sendfile()");
            if (action == HOOK_TRIES_AGAIN)
                continue;
            if (action == HOOK_BLOCKS)
                part = aco__libc()->sendfile64(to, from, offset, n - sent);
        }
        if (part <= 0) /* a failure, or the end of the file */
            return part < 0 && !sent ? -1 : aco__hook_result((ssize_t)sent, error);
        sent += (size_t)part;
        wait.vain = 0;
    }
    return aco__hook_result((ssize_t)sent, error);
}

ACO__HOOK(ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t n))
{
    return aco__hooked() && n ? send_file(to, from, offset, n) : aco__libc()->sendfile64(to, from, offset, n);
}

ACO__HOOK(ssize_t, sendfile, (int to, int from, off_t *offset, size_t n))
{
    off64_t large;
    ssize_t sent;
    if (!aco__hooked() || !n || (offset && !aco__hook_can_read(offset, sizeof *offset)))
        return aco__libc()->sendfile(to, from, offset, n);
    large = offset ? *offset : 0;
    sent = send_file(to, from, offset ? &large : NULL, n);
    if (offset)
        *offset = (off_t)large;
    return sent;
}
