/* Where system calls differ between Linux and the BSDs, macOS included. */
#ifndef ACO_IO_LINUX_BSD_H
#define ACO_IO_LINUX_BSD_H

#include "system/system.h"

#include "aco/io.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __APPLE__
#define secure_getenv getenv
#endif

/* Whether this is a TCP socket: 1, 0; or -1: it is no socket. */
static inline int aco__io_ask_tcp(int fd)
{
    int type = 0;
    socklen_t length = sizeof type;
#ifdef __linux__
    int domain = 0, protocol = 0;
    if (aco__system.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0)
        return -1;
    if (domain != AF_INET && domain != AF_INET6)
        return 0;
    (void)type;
    length = sizeof protocol;
    return aco__system.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
#else
    struct sockaddr_storage address;
    socklen_t address_length = sizeof address;
    if (aco__system.getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
        return -1;
    return type == SOCK_STREAM && aco__system.getsockname(fd, (struct sockaddr *)&address, &address_length) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6);
#endif
}

#ifdef __linux__
#include <signal.h>
#include <time.h>

static inline int aco__io_new_socket(int family, int type)
{
    return aco__system.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static inline int aco__io_accept(int fd)
{
    return aco__system.accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* sendfile() has no MSG_NOSIGNAL: SIGPIPE is blocked meanwhile, and taken if it came. One that the caller has blocked
 * and that was pending before stays. */
static inline ssize_t aco__io_sendfile(int to, int from, int64_t *offset, size_t n)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe_signal, before, pending;
    ssize_t sent;
    int error, was_pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    aco__system.pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    was_pending = sigismember(&before, SIGPIPE) && aco__system.sigpending(&pending) == 0 &&
                  sigismember(&pending, SIGPIPE);
    sent = aco__system.sendfile(to, from, offset, n);
    error = errno;
    /* It also comes when the peer has gone after the first bytes. */
    if (!was_pending && (sent < 0 ? error == EPIPE : (size_t)sent < n))
        while (aco__system.sigtimedwait(&pipe_signal, NULL, &at_once) < 0 && errno == EINTR)
            ;
    aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return sent;
}

#else
#include <sys/uio.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* the option below does it */
#endif
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0
#endif
enum { MSG_ERRQUEUE = 0, SPLICE_F_NONBLOCK = 2 }; /* there is neither */

/* A descriptor of socket() or accept(), or -1. */
static inline int aco__io_prepare_socket(int fd)
{
    int error;
#ifdef SO_NOSIGPIPE
    int on = 1;
    if (fd >= 0)
        (void)aco__system.setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (fd < 0 || (aco__system.fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && aco__system.fcntl(fd, F_SETFD, FD_CLOEXEC) == 0))
        return fd;
    error = errno;
    aco__system.close(fd);
    errno = error;
    return -1;
}

static inline int aco__io_new_socket(int family, int type)
{
    return aco__io_prepare_socket(aco__system.socket(family, type, 0));
}

static inline int aco__io_accept(int fd)
{
    return aco__io_prepare_socket(aco__system.accept(fd, NULL, NULL));
}

/* With Linux's arguments. `to` must be a socket. */
static inline ssize_t aco__io_sendfile(int to, int from, int64_t *offset, size_t n)
{
    off_t at = offset ? *offset : aco__system.lseek(from, 0, SEEK_CUR), sent = 0;
    int failed;
    if (at < 0 || !n) /* a length of 0 would mean all */
        return at < 0 ? -1 : 0;
#ifdef __APPLE__
    sent = (off_t)n;
    failed = aco__system.sendfile(from, to, at, &sent, NULL, 0);
#else
    failed = aco__system.sendfile(from, to, at, n, NULL, &sent, 0);
#endif
    if (failed && !sent)
        return -1;
    if (offset)
        *offset = at + sent;
    else if (aco__system.lseek(from, at + sent, SEEK_SET) < 0)
        return -1;
    return (ssize_t)sent;
}
#endif

#endif
