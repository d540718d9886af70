/* Descriptors: I/O in which only the calling task waits. In the library acorn_io, beside acorn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   int c, l = aco_io_listen("tcp", NULL, "7000", NULL);
 *   while ((c = aco_io_accept(l)) >= 0)
 *       aco_group_spawn(&connections, echo, (void *)(intptr_t)c, NULL);
 *
 * Calls. A call with the name of a system call does what that call does. It tries first; if the system would block, the
 * calling task waits and the others run. Waits obey scopes (aco/scope.h): -1 with ETIMEDOUT or ECANCELED. What was
 * obtained is returned: a call that has moved bytes, or has a connection, does not fail because its scope ended. So in
 * a scope that has ended a call still does what needs no wait, and fails where it would wait. EINTR does not occur. A
 * caller that cannot wait (aco/scheduler.h) may call everything too; a call that would have to wait fails with EPERM.
 * Each plain form below is a macro for the form with `_at`, which takes a static location string for reports.
 *
 * Descriptors. Any non-blocking descriptor can be used, and files; a blocking one fails with EINVAL. Descriptors that
 * these calls make are non-blocking, close-on-exec and *owned*: aco_io_close() must close them, or aco_io_release()
 * must give them up before something else does. aco_io_adopt() makes any other descriptor owned. A descriptor that is
 * not owned, a library's, may be closed by its owner while no task waits for it; each call and each wait for it costs
 * one more system call.
 *
 * Closing. aco_io_close() wakes the tasks that wait for the descriptor: ECANCELED. They never touch the descriptor that
 * gets the number next.
 *
 * Fairness. Of the calls that may wait, one in 64 that do not have to lets the other tasks run, at its begin. A call
 * that does not wait by its contract never switches tasks: with MSG_DONTWAIT or SPLICE_F_NONBLOCK, closing, and what
 * tells or sets something. A loop of such calls alone must yield by itself. What a buffer has already is no call here
 * (aco/io_buffer.h, bodies of HTTP): the call that fills the buffer counts.
 *
 * Threads. A descriptor belongs to the thread whose calls have waited for it, until aco_io_close() or aco_io_release()
 * there. After fork() the child may not use these calls.
 *
 * Errors are the system's, besides those named here. ETIMEDOUT may be TCP's, too: aco_check_cancelled() tells. A
 * write or sendfile to a socket whose peer is gone fails with EPIPE and raises no SIGPIPE; a write to a pipe and splice
 * do raise it, as usual.
 *
 * Linux; built for macOS and FreeBSD too, and not tested there (docs/platforms.md). The names of structures are the
 * system's. */
#ifndef ACO_IO_H
#define ACO_IO_H

#include "scope.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

ACO__BEGIN_C

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Waits until the descriptor can be read or written, has an error, or was hung up; as poll() tells. 0, or -1 and errno:
 * EBADF, ENOMEM, ECANCELED (closed meanwhile). */
ACO_API int aco_io_wait_readable_at(int fd, const char *location);
ACO_API int aco_io_wait_writable_at(int fd, const char *location);
ACO_API int aco_io_wait_readable_until_at(int fd, int64_t deadline, const char *location);
ACO_API int aco_io_wait_writable_until_at(int fd, int64_t deadline, const char *location);
#define aco_io_wait_readable(fd) aco_io_wait_readable_at(fd, ACO_PLACE)
#define aco_io_wait_writable(fd) aco_io_wait_writable_at(fd, ACO_PLACE)
#define aco_io_wait_readable_until(fd, deadline) aco_io_wait_readable_until_at(fd, deadline, ACO_PLACE)
#define aco_io_wait_writable_until(fd, deadline) aco_io_wait_writable_until_at(fd, deadline, ACO_PLACE)

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

/* As the system calls. Another call for the same descriptor may run in another task; if two read, or two write, each
 * gets or puts a part. With MSG_DONTWAIT, MSG_ERRQUEUE or SPLICE_F_NONBLOCK in the flags a call does not wait: EAGAIN.
 * aco_io_wait_readable() also waits for what MSG_ERRQUEUE gets. MSG_WAITALL has no effect: aco_io_read_exactly(). */
ACO_API ssize_t aco_io_read_at(int fd, void *p, size_t n, const char *location);
ACO_API ssize_t aco_io_write_at(int fd, const void *p, size_t n, const char *location);
ACO_API ssize_t aco_io_readv_at(int fd, const struct iovec *parts, int count, const char *location);
ACO_API ssize_t aco_io_writev_at(int fd, const struct iovec *parts, int count, const char *location);
ACO_API ssize_t aco_io_recv_at(int fd, void *p, size_t n, int flags, const char *location);
ACO_API ssize_t aco_io_send_at(int fd, const void *p, size_t n, int flags, const char *location);
ACO_API ssize_t aco_io_recvfrom_at(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length,
                                   const char *location);
ACO_API ssize_t aco_io_sendto_at(int fd, const void *p, size_t n, int flags, const struct sockaddr *to,
                                 socklen_t length, const char *location);
ACO_API ssize_t aco_io_recvmsg_at(int fd, struct msghdr *message, int flags, const char *location);
ACO_API ssize_t aco_io_sendmsg_at(int fd, const struct msghdr *message, int flags, const char *location);
#define aco_io_read(fd, p, n) aco_io_read_at(fd, p, n, ACO_PLACE)
#define aco_io_write(fd, p, n) aco_io_write_at(fd, p, n, ACO_PLACE)
#define aco_io_readv(fd, parts, count) aco_io_readv_at(fd, parts, count, ACO_PLACE)
#define aco_io_writev(fd, parts, count) aco_io_writev_at(fd, parts, count, ACO_PLACE)
#define aco_io_recv(fd, p, n, flags) aco_io_recv_at(fd, p, n, flags, ACO_PLACE)
#define aco_io_send(fd, p, n, flags) aco_io_send_at(fd, p, n, flags, ACO_PLACE)
#define aco_io_recvfrom(fd, p, n, flags, from, length) aco_io_recvfrom_at(fd, p, n, flags, from, length, ACO_PLACE)
#define aco_io_sendto(fd, p, n, flags, to, length) aco_io_sendto_at(fd, p, n, flags, to, length, ACO_PLACE)
#define aco_io_recvmsg(fd, message, flags) aco_io_recvmsg_at(fd, message, flags, ACO_PLACE)
#define aco_io_sendmsg(fd, message, flags) aco_io_sendmsg_at(fd, message, flags, ACO_PLACE)

/* sendfile() waits for `to`; `from` must be a file. splice() waits for either side; one is a pipe. If one of the two is
 * closed by aco_io_close() meanwhile, they fail with ECANCELED. splice() leaves out urgent data of TCP, as read(). */
ACO_API ssize_t aco_io_sendfile_at(int to, int from, int64_t *offset, size_t n, const char *location);
ACO_API ssize_t aco_io_splice_at(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t n, unsigned flags,
                                 const char *location);
#define aco_io_sendfile(to, from, offset, n) aco_io_sendfile_at(to, from, offset, n, ACO_PLACE)
#define aco_io_splice(from, from_offset, to, to_offset, n, flags)                                                      \
    aco_io_splice_at(from, from_offset, to, to_offset, n, flags, ACO_PLACE)

/* Writes all `n` bytes: n; or -1 and errno, after a part of them. If `done` is not NULL, *done becomes the number of
 * bytes written, in any case. */
ACO_API ssize_t aco_io_write_all_at(int fd, const void *p, size_t n, size_t *done, const char *location);
#define aco_io_write_all(fd, p, n) aco_io_write_all_at(fd, p, n, NULL, ACO_PLACE)
#define aco_io_write_all_done(fd, p, n, done) aco_io_write_all_at(fd, p, n, done, ACO_PLACE)
/* Reads `n` bytes: n, or fewer at the end of the stream; or -1 and errno, after a part of them. `done` likewise. */
ACO_API ssize_t aco_io_read_exactly_at(int fd, void *p, size_t n, size_t *done, const char *location);
#define aco_io_read_exactly(fd, p, n) aco_io_read_exactly_at(fd, p, n, NULL, ACO_PLACE)
#define aco_io_read_exactly_done(fd, p, n, done) aco_io_read_exactly_at(fd, p, n, done, ACO_PLACE)

/* ---- Sockets ----------------------------------------------------------------------------------------------------- */

/* Networks:
 *   "tcp", "tcp4", "tcp6"             host: a numeric address, IPv6 with or without brackets, and with %ZONE behind
 *                                     it, an interface's name or number; "localhost"; NULL: any address (to listen),
 *                                     this machine (to dial); a name (to dial). port: decimal; "0": any free one
 *   "udp", "udp4", "udp6"             the same, for datagrams
 *   "unix", "unixpacket", "unixgram"  stream, seqpacket and datagrams. host: a path, or @NAME for an abstract name;
 *                                     port: NULL
 * TCP sockets send at once (TCP_NODELAY), and listeners have SO_REUSEADDR, unless `flags` says otherwise. */
enum {
    ACO_IO_REUSEPORT = 1, /* several listeners on one port share its connections: one of each thread, for example. On
                             Linux those of this process alone: a second start of the program fails with EADDRINUSE.
                             So does a listener for any host beside one of the process for a certain host: begin with
                             the former. What a child of fork() inherits counts as its own */
    ACO_IO_KEEPALIVE = 2, /* probes of the system find dead peers (SO_KEEPALIVE) */
    ACO_IO_DELAY = 4,     /* no TCP_NODELAY */
    ACO_IO_ONLY_IPV6 = 8, /* a listener on an IPv6 address takes no IPv4 connections */
    ACO_IO_ALL_PROCESSES = 16 /* with ACO_IO_REUSEPORT: the user's other processes may share the port, too */
};
typedef struct aco_io_options_s {
    unsigned flags; /* ACO_IO_… */
    int backlog;    /* connections that wait to be accepted; 0: as many as the system allows */
} aco_io_options_t;

/* A listening socket; options NULL: none. Accepted connections inherit the options. -1 and errno: EINVAL (the network,
 * address or options), those of bind(). */
ACO_API int aco_io_listen(const char *network, const char *host, const char *port, const aco_io_options_t *opts);

/* A socket for datagrams that is bound to this address; of unixgram, host NULL: to an abstract name that the system
 * finds. aco_io_recvfrom() and aco_io_sendto() use it. -1 and errno as above. */
ACO_API int aco_io_bind(const char *network, const char *host, const char *port, const aco_io_options_t *opts);

/* The next connection. Waits on if one failed before it was accepted. Without free descriptors or memory (EMFILE,
 * ENFILE, ENOBUFS, ENOMEM) it tries again after 1 ms, 2 ms, and so on to 100 ms: connections stay in the backlog
 * meanwhile. Scopes end that, too. */
ACO_API int aco_io_accept_at(int fd, const char *location);
#define aco_io_accept(fd) aco_io_accept_at(fd, ACO_PLACE)

/* A connected socket. A name is looked up (aco/names.h) in the process's cache, or by the system on another thread
 * while the task waits. Its addresses, IPv6 and IPv4 in turns, are tried one after the other: the next one when one has
 * failed or after 250 ms, while those before go on. The first connection is returned, the others are closed.
 * "localhost" and NULL are ::1 and 127.0.0.1. A datagram socket has one peer then, from which nothing need come;
 * "localhost" is 127.0.0.1 for it. A TCP socket that the system connects to itself, for want of a listener, is refused
 * (ECONNREFUSED). -1 and errno: EINVAL (as above), those of connect(), for a name of the address whose failure tells
 * most, and those of aco_io_look_up(). */
ACO_API int aco_io_dial_at(const char *network, const char *host, const char *port, const aco_io_options_t *opts,
                           const char *location);
#define aco_io_dial(network, host, port, opts) aco_io_dial_at(network, host, port, opts, ACO_PLACE)

/* connect(), of a non-blocking socket. If it fails in a wait, the socket is still connecting: close it. */
ACO_API int aco_io_connect_at(int fd, const struct sockaddr *address, socklen_t length, const char *location);
#define aco_io_connect(fd, address, length) aco_io_connect_at(fd, address, length, ACO_PLACE)

/* The address of a socket, or of its peer, as text: "127.0.0.1:80", "[::1]:80", a path, "@NAME", "" (a unix socket
 * without a name). Writes at most `size` bytes, the 0 included; ACO_IO_ADDRESS_SIZE is enough for any. 0, or -1 and
 * errno: ENOSPC, EAFNOSUPPORT, those of getsockname() and getpeername(). */
enum { ACO_IO_ADDRESS_SIZE = 112 };
ACO_API int aco_io_local_address(int fd, char *text, size_t size);
ACO_API int aco_io_peer_address(int fd, char *text, size_t size);

/* Between addresses and text, without a look-up of names. The first is for aco_io_sendto() and the like: what
 * aco_io_dial() would understand, of several addresses its first. For the second a length of 0 is a unix socket without
 * a name, as aco_io_recvfrom() tells of one; an interface without a name has its number. 0, or -1 and errno: EINVAL
 * (also a length less than the family's); ENOSPC, EAFNOSUPPORT. */
ACO_API int aco_io_address_of_text(const char *network, const char *host, const char *port,
                                   struct sockaddr_storage *address, socklen_t *length);
ACO_API int aco_io_text_of_address(const struct sockaddr *address, socklen_t length, char *text, size_t size);

/* shutdown(). */
ACO_API int aco_io_shutdown(int fd, int how);

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/* Closes the descriptor; tasks that wait for it fail with ECANCELED. The number is free in any case. 0, or -1 and errno
 * of close(). */
ACO_API int aco_io_close(int fd);

/* Makes the descriptor non-blocking and owned. 0, or -1 and errno: EBADF, ENOMEM. */
ACO_API int aco_io_adopt(int fd);
/* Forgets the descriptor, as aco_io_close() does, without closing it. 0, or -1 and errno EBADF (not known here). */
ACO_API int aco_io_release(int fd);

/* What the calls of this thread have done so far. Many waits for few calls: peers are slow, or the tasks wait for each
 * other. Few events for each poll: the thread is idle. As many registrations as calls: descriptors that aco_io_adopt()
 * should own. */
typedef struct aco_io_stats_s {
    uint64_t calls;         /* for descriptors that found one; aco_io_write_all() and the like: for each part */
    uint64_t waits;         /* of tasks for descriptors; a call that does not wait is done at once */
    uint64_t polls;         /* how often aco_run() has asked the system for events */
    uint64_t events;        /* of descriptors, that it was told */
    uint64_t registrations; /* of descriptors with the system, and changes of them */
    uint64_t bytes_read, bytes_written; /* sendfile and splice count for both */
} aco_io_stats_t;
/* 0, or -1 and errno EINVAL (NULL). */
ACO_API int aco_io_stats(aco_io_stats_t *stats);

/* For another event loop, which calls aco_run_ready() (aco/scheduler.h), or in which an idle hook (aco_on_idle())
 * waits: a descriptor that is readable when a task can be woken here, or another thread has news. The loop must wait
 * for it, too. It belongs to the library. -1 and errno: ENOMEM, EMFILE, ENFILE. */
ACO_API int aco_io_poll_fd(void);

ACO__END_C

#endif
