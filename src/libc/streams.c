/* Reads and writes of what is no socket: files go to files.c. Pipes, terminals, eventfds and the like are tried with
 * RWF_NOWAIT. Where the kernel does not know that for them, they are polled first: then only another reader or writer
 * that comes in between can make the call block. */
#include "libc/files.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/look_up.h"
#include "libc/parts.h"
#include "libc/streams.h"

#include <limits.h>
#include <sys/uio.h>

static const char read_location[] = "libc's read()", write_location[] = "libc's write()";

static int is_file(const struct stat *status)
{
    return S_ISREG(status->st_mode) || S_ISBLK(status->st_mode);
}

int aco__hook_unblock(int fd)
{
    int flags = aco__libc()->fcntl(fd, F_GETFL);
    if (flags >= 0)
        (void)aco__libc()->fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    return flags;
}

void aco__hook_block_again(int fd, int flags)
{
    int error = errno;
    (void)aco__libc()->fcntl(fd, F_SETFL, flags);
    errno = error;
}

/* For sanitizers and simulations, which know neither preadv2() nor pwritev2(). */
static int has_no_nowait(void)
{
    return aco__hook_is_sanitized() || aco__hook_simulates;
}

static ssize_t move_nonblocking(int fd, const struct iovec *parts, size_t count, int is_write)
{
    int flags = aco__hook_unblock(fd);
    ssize_t n;
    if (flags < 0)
        return -1;
    n = is_write ? aco__libc()->writev(fd, parts, (int)count) : aco__libc()->readv(fd, parts, (int)count);
    aco__hook_block_again(fd, flags);
    return n;
}

static ssize_t read_nowait(int fd, const struct iovec *parts, size_t count)
{
    return has_no_nowait() ? move_nonblocking(fd, parts, count, 0) : preadv2(fd, parts, (int)count, -1, RWF_NOWAIT);
}

static ssize_t write_nowait(int fd, const struct iovec *parts, size_t count)
{
    return has_no_nowait() ? move_nonblocking(fd, parts, count, 1) : pwritev2(fd, parts, (int)count, -1, RWF_NOWAIT);
}

static int lacks_nowait(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS;
}

/* Waits for the descriptor unless it is non-blocking: 0, or -1 and errno. */
ACO__SWITCHES static int poll_first(int fd, short events, const char *location)
{
    aco__hook_call_t call = aco__hook_call(HOOK_RESTARTS);
    struct pollfd p = {fd, events, 0};
    int flags = aco__libc()->fcntl(fd, F_GETFL);
    if (flags < 0 || flags & O_NONBLOCK)
        return flags < 0 ? -1 : 0;
    if (aco__hook_poll(&p, 1, ACO_FOREVER, &call, location) == -1)
        return -1;
    if (!(p.revents & POLLNVAL))
        return 0;
    errno = EBADF;
    return -1;
}

static ssize_t read_now(int fd, const struct iovec *parts, size_t count)
{
    return count == 1 ? aco__libc()->read(fd, parts->iov_base, parts->iov_len)
                      : aco__libc()->readv(fd, parts, (int)count);
}

ssize_t aco__hook_read_other(int fd, const struct iovec *parts, size_t count)
{
    aco__hook_wait_t wait = {0};
    struct stat status;
    ssize_t n;
    int action;
    if (fstat(fd, &status) != 0)
        return -1;
    if (is_file(&status))
        return aco__hook_move_file(fd, parts, count, 0);
    while ((n = read_nowait(fd, parts, count)) < 0 && errno == EAGAIN) {
        action = aco__hook_again(&wait, fd, POLLIN, 0, read_location);
        if (action == HOOK_GIVES_UP)
            return -1;
        if (action == HOOK_BLOCKS)
            return read_now(fd, parts, count);
    }
    if (n >= 0 || !lacks_nowait(errno))
        return n;
    return poll_first(fd, POLLIN, read_location) == 0 ? read_now(fd, parts, count) : -1;
}

/* A write that does not block if the descriptor can be written to: to a pipe not more than PIPE_BUF. */
ACO__SWITCHES static ssize_t write_piece(int fd, const struct iovec *parts, size_t count)
{
    size_t n = parts->iov_len;
    if (poll_first(fd, POLLOUT, write_location) != 0)
        return -1;
    if (count > 1 && aco__parts_size(parts, count) <= PIPE_BUF)
        return aco__libc()->writev(fd, parts, (int)count);
    return aco__libc()->write(fd, parts->iov_base, n < PIPE_BUF ? n : PIPE_BUF);
}

/* A part of it, at least. */
ACO__SWITCHES static ssize_t write_part(int fd, const struct iovec *parts, size_t count)
{
    aco__hook_wait_t wait = {0};
    ssize_t n;
    while ((n = write_nowait(fd, parts, count)) < 0 && errno == EAGAIN) {
        int action = aco__hook_again(&wait, fd, POLLOUT, 0, write_location);
        if (action == HOOK_GIVES_UP)
            return -1;
        if (action == HOOK_BLOCKS)
            return aco__libc()->writev(fd, parts, (int)count);
    }
    return n < 0 && lacks_nowait(errno) ? write_piece(fd, parts, count) : n;
}

ssize_t aco__hook_write_other(int fd, const struct iovec *parts, size_t count)
{
    aco__parts_t rest = {parts, count, 0, {NULL, 0}};
    size_t size = aco__parts_size(parts, count), written = 0;
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -1;
    if (is_file(&status))
        return aco__hook_move_file(fd, parts, count, 1);
    for (;;) {
        struct iovec *next;
        size_t next_count;
        ssize_t n;
        while (rest.count && !rest.parts->iov_len) /* else a piece could be empty */
            aco__parts_skip(&rest, 0);
        next_count = aco__parts_next(&rest, &next);
        n = write_part(fd, next, next_count);
        if (n > 0)
            written += (size_t)n;
        if (n <= 0 || written >= size)
            return n < 0 && !written ? -1 : (ssize_t)written;
        aco__parts_skip(&rest, (size_t)n);
    }
}
