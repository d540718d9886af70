/* Descriptors: I/O in which only the calling task waits. In the library acorn_io, beside acorn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   int c, l = aco_io_listen("tcp", NULL, "7000", NULL);
 *   while ((c = aco_io_accept(l)) >= 0)
 *       aco_group_spawn(&connections, echo, (void *)(intptr_t)c, NULL);
 *
 * Calls. A call named after a system call does what that system call does. It tries first; if the system would block,
 * the calling task waits and the other tasks run. A scope (aco/scope.h) ends the wait: -1 with ETIMEDOUT or ECANCELED.
 * A call that has moved bytes or has got a connection succeeds, even if its scope has ended meanwhile. So in an ended
 * scope a call that need not wait still succeeds; one that would wait fails. No call fails with EINTR. A caller that
 * cannot wait (aco/scheduler.h) may make every call; one that would have to wait fails with EPERM. Each plain form
 * below is a macro for the form with `_at`, which takes a static location string for reports.
 *
 * Descriptors. Use any non-blocking descriptor, or a file; any other descriptor fails with EINVAL. With a file the
 * whole thread waits for the disk: with aco_file_read() and its like (aco/file.h) only the task does. A descriptor that
 * these calls make is non-blocking, close-on-exec and *owned*: close it by aco_io_close(), or give it up by
 * aco_io_release() before something else closes it. aco_io_adopt() makes any other descriptor owned. If a descriptor is
 * not owned, such as a library's, its owner may close it while no task waits for it; each call and each wait for it
 * costs one more system call.
 *
 * Closing. aco_io_close() wakes the tasks that wait for the descriptor; their calls fail with ECANCELED. These tasks
 * never touch the descriptor that gets the number next.
 *
 * Fairness. Of the calls that could wait but need not, every 64th first lets the other tasks run. A call that never
 * waits by its contract never switches tasks: one with MSG_DONTWAIT, MSG_ERRQUEUE or SPLICE_F_NONBLOCK, a close, or a
 * call that only queries or sets something. A loop of such calls alone must yield by itself. Taking bytes that a buffer
 * already has (aco/io_buffer.h, bodies of HTTP) does not count; the call that fills the buffer does.
 *
 * Threads. A descriptor belongs to the thread whose calls have waited for it, until that thread calls aco_io_close() or
 * aco_io_release(). After fork() these calls fail with EPERM in the child, in the thread that forked, if it had used
 * them before; only aco_io_close() closes there, and aco_io_release() fails with EBADF. New threads of the child may
 * use them.
 *
 * Errors are the system's, besides those named here. A thread's first call opens its poller, and may fail with ENOMEM,
 * EMFILE or ENFILE for that. ETIMEDOUT can also come from TCP: aco_check_cancelled() tells whether a scope has ended. A
 * write or sendfile to a socket whose peer is gone fails with EPIPE and raises no SIGPIPE; a write to a pipe and a
 * splice do raise it, as usual.
 *
 * For Linux. It also builds for macOS and FreeBSD, but is not tested there (docs/platforms.md). Structures have the
 * system's names. */
#ifndef ACO_IO_H
#define ACO_IO_H

#include "scope.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

ACO__BEGIN_C

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Waits until poll() would report that the descriptor can be read or written, has an error, or was hung up; at most
 * until `deadline` on the clock of aco_now(). Returns 0; on error -1 with errno EBADF, EINVAL (a blocking descriptor),
 * ENOMEM, ETIMEDOUT, ECANCELED (also: closed meanwhile), EPERM (the caller cannot wait). */
ACO_API int aco_io_wait_readable_at(int fd, const char *location);
ACO_API int aco_io_wait_writable_at(int fd, const char *location);
ACO_API int aco_io_wait_readable_until_at(int fd, int64_t deadline, const char *location);
ACO_API int aco_io_wait_writable_until_at(int fd, int64_t deadline, const char *location);
#define aco_io_wait_readable(fd) aco_io_wait_readable_at(fd, ACO_PLACE)
#define aco_io_wait_writable(fd) aco_io_wait_writable_at(fd, ACO_PLACE)
#define aco_io_wait_readable_until(fd, deadline) aco_io_wait_readable_until_at(fd, deadline, ACO_PLACE)
#define aco_io_wait_writable_until(fd, deadline) aco_io_wait_writable_until_at(fd, deadline, ACO_PLACE)

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

/* These do what the system calls do. Other tasks may use the same descriptor meanwhile; if two read, each gets a part
 * of the bytes, and if two write, each writes a part. With MSG_DONTWAIT, MSG_ERRQUEUE or SPLICE_F_NONBLOCK in the flags
 * a call never waits: it fails with EAGAIN instead. aco_io_wait_readable() also waits for what MSG_ERRQUEUE gets.
 * MSG_WAITALL has no effect: use aco_io_read_exactly().
 *
 * When a connection of TCP fails (ECONNRESET, ETIMEDOUT), the system tells only one call, perhaps another task's write;
 * a later read() finds an ordinary end. With an owned descriptor each read fails once no bytes are left. */
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

/* These move at most `n` bytes from `from` to `to`. With an offset they begin there, and store where they ended; with
 * NULL they use and move the file's own position. aco_io_sendfile() waits for `to`; `from` must be a file, and the
 * thread blocks while the system reads it. aco_io_splice() waits for either side; one must be a pipe. It skips urgent
 * data of TCP, as read() does. Both return the number of bytes, perhaps fewer; 0 at the end; on error -1 with errno of
 * the system call, or ECANCELED if aco_io_close() closes `from` or `to` meanwhile. Systems other than Linux have no
 * splice (ENOSYS). */
ACO_API ssize_t aco_io_sendfile_at(int to, int from, int64_t *offset, size_t n, const char *location);
ACO_API ssize_t aco_io_splice_at(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t n, unsigned flags,
                                 const char *location);
#define aco_io_sendfile(to, from, offset, n) aco_io_sendfile_at(to, from, offset, n, ACO_PLACE)
#define aco_io_splice(from, from_offset, to, to_offset, n, flags)                                                      \
    aco_io_splice_at(from, from_offset, to, to_offset, n, flags, ACO_PLACE)

/* Writes all `n` bytes; 0: does nothing. If `done` is not NULL, *done becomes the number of bytes written, also on
 * error. Returns n; on error -1 with errno, perhaps after it has written a part; also EIO (the system has written
 * nothing, and told no error). */
ACO_API ssize_t aco_io_write_all_at(int fd, const void *p, size_t n, size_t *done, const char *location);
#define aco_io_write_all(fd, p, n) aco_io_write_all_at(fd, p, n, NULL, ACO_PLACE)
#define aco_io_write_all_done(fd, p, n, done) aco_io_write_all_at(fd, p, n, done, ACO_PLACE)
/* Reads `n` bytes; 0: does nothing. If `done` is not NULL, *done becomes the number of bytes read, also on error.
 * Returns n, or fewer at the end of the stream; on error -1 with errno, perhaps after it has read a part. */
ACO_API ssize_t aco_io_read_exactly_at(int fd, void *p, size_t n, size_t *done, const char *location);
#define aco_io_read_exactly(fd, p, n) aco_io_read_exactly_at(fd, p, n, NULL, ACO_PLACE)
#define aco_io_read_exactly_done(fd, p, n, done) aco_io_read_exactly_at(fd, p, n, done, ACO_PLACE)

/* ---- Sockets ----------------------------------------------------------------------------------------------------- */

/* Networks:
 *   "tcp", "tcp4", "tcp6"             host: a numeric address; "localhost"; a name (to dial); NULL: any address (to
 *                                     listen), this machine (to dial). An IPv6 address may be in brackets, and may
 *                                     end with %ZONE: an interface's name or number. port: decimal; "0": any free one
 *   "udp", "udp4", "udp6"             as for TCP, but for datagrams
 *   "unix", "unixpacket", "unixgram"  stream, seqpacket and datagrams. host: a path, or @NAME for an abstract name;
 *                                     port: NULL
 * Unless `flags` says otherwise, TCP sockets send at once (TCP_NODELAY) and listeners have SO_REUSEADDR. */
enum {
    ACO_IO_REUSEPORT = 1, /* several listeners share the connections of one port: one for each thread, for example. On
                             Linux they must all be this process's: a second start of the program fails with
                             EADDRINUSE. So does a listener for any host if the process has one for a certain host:
                             open the one for any host first. A child of fork() counts inherited ones as its own */
    ACO_IO_KEEPALIVE = 2, /* the system sends probes to find dead peers (SO_KEEPALIVE) */
    ACO_IO_DELAY = 4,     /* no TCP_NODELAY */
    ACO_IO_ONLY_IPV6 = 8, /* a listener on an IPv6 address takes no IPv4 connections */
    ACO_IO_ALL_PROCESSES = 16 /* with ACO_IO_REUSEPORT: the user's other processes may share the port, too */
};
/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_io_options_s {
    unsigned flags;         /* ACO_IO_… */
    int backlog;            /* most connections that wait to be accepted; 0: as many as the system allows */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_io_options_t;

/* Opens a listening socket. `options` may be NULL: no options. Accepted connections inherit the options. Does not
 * wait. Returns the descriptor; on error -1 with errno EINVAL (the network is unknown or for datagrams; the address; an
 * unknown flag, a negative backlog, or a reserved field), or one of socket(), bind() or listen(). */
ACO_API int aco_io_listen(const char *network, const char *host, const char *port, const aco_io_options_t *options);

/* Opens a socket for datagrams and binds it to this address. For "unixgram" `host` may be NULL: the system chooses an
 * abstract name. Use it with aco_io_recvfrom() and aco_io_sendto(). Returns the descriptor; on error -1 with errno as
 * for aco_io_listen(), but EINVAL if the network is for connections. */
ACO_API int aco_io_bind(const char *network, const char *host, const char *port, const aco_io_options_t *options);

/* Accepts the next connection. If a connection fails before it is accepted, the call waits for another. Without free
 * descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM) it tries again after 1 ms, then after twice as long each
 * time, at most 100 ms; connections stay in the backlog meanwhile. Scopes end these waits, too. Returns the
 * connection's descriptor; on error -1 with errno EBADF, EINVAL (it does not listen), ENOTSOCK and others of accept(),
 * ETIMEDOUT, ECANCELED (also: the listener was closed meanwhile), EPERM (the caller cannot wait). */
ACO_API int aco_io_accept_at(int fd, const char *location);
#define aco_io_accept(fd) aco_io_accept_at(fd, ACO_PLACE)

/* Opens a socket and connects it. A name is looked up (aco/names.h) in the process's cache, or by the system on another
 * thread while the task waits. The call tries the name's addresses in turn, IPv6 and IPv4 alternating: the next one as
 * soon as an attempt has failed, or after 250 ms while earlier attempts go on. It returns the first connection and
 * closes the others. "localhost" and NULL mean ::1 and 127.0.0.1. A datagram socket gets one peer, and the call waits
 * for no answer from it; for datagrams "localhost" is 127.0.0.1. If nobody listens and the system connects a TCP socket
 * to itself, the call fails with ECONNREFUSED. Returns the descriptor; on error -1 with errno EINVAL (the network,
 * address or options), ETIMEDOUT, ECANCELED, EPERM (the caller cannot wait), or one of socket(), connect() or
 * aco_io_look_up(). If all addresses of a name fail, errno is that of the first that failed for another reason than a
 * missing network. Nothing is left open then. */
ACO_API int aco_io_dial_at(const char *network, const char *host, const char *port, const aco_io_options_t *options,
                           const char *location);
#define aco_io_dial(network, host, port, options) aco_io_dial_at(network, host, port, options, ACO_PLACE)

/* Connects a non-blocking socket to an address of `length` bytes. Returns 0; on error -1 with errno of connect(),
 * ETIMEDOUT, ECANCELED (also: closed meanwhile), EPERM (the caller cannot wait). If a wait fails, the socket is still
 * connecting: close it. */
ACO_API int aco_io_connect_at(int fd, const struct sockaddr *address, socklen_t length, const char *location);
#define aco_io_connect(fd, address, length) aco_io_connect_at(fd, address, length, ACO_PLACE)

/* Writes the address of a socket, or of its peer, as text: "127.0.0.1:80", "[::1]:80", a path, "@NAME", or "" (a unix
 * socket without a name). Writes at most `size` bytes, the 0 included; ACO_IO_ADDRESS_SIZE is enough for any. Returns
 * 0; on error -1 with errno ENOSPC (`size` is too small), EAFNOSUPPORT, or one of getsockname() or getpeername(), such
 * as ENOTCONN (there is no peer). */
enum { ACO_IO_ADDRESS_SIZE = 112 };
ACO_API int aco_io_local_address(int fd, char *text, size_t size);
ACO_API int aco_io_peer_address(int fd, char *text, size_t size);

/* Convert text to an address and an address to text, without looking up names.
 * aco_io_address_of_text(), for aco_io_sendto() and the like, takes what aco_io_dial() takes, except names (EINVAL); if
 * that means several addresses, it stores the first. It stores the address's length in *length, whatever that was.
 * aco_io_text_of_address() takes length 0 for a unix socket without a name, as aco_io_recvfrom() reports it; it writes
 * an interface without a name as a number. Both return 0; on error -1 with errno EINVAL (the network or the text; a
 * length less than the family's), ENOSPC (`size` is too small), EAFNOSUPPORT. */
ACO_API int aco_io_address_of_text(const char *network, const char *host, const char *port,
                                   struct sockaddr_storage *address, socklen_t *length);
ACO_API int aco_io_text_of_address(const struct sockaddr *address, socklen_t length, char *text, size_t size);

/* Ends one direction of a connection or both. `how`: SHUT_RD, SHUT_WR or SHUT_RDWR. Tasks that wait for it go on as
 * after an end that the peer has sent. Returns 0; on error -1 with errno of shutdown(): EBADF, ENOTSOCK, ENOTCONN,
 * EINVAL. */
ACO_API int aco_io_shutdown(int fd, int how);

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/* Closes the descriptor; calls of tasks that wait for it fail with ECANCELED. Does not wait. Returns 0; on error -1
 * with errno of close(), but not EINTR. The number is free also on error. */
ACO_API int aco_io_close(int fd);

/* Makes the descriptor non-blocking and owned. Calls of tasks that wait for it by then fail with ECANCELED. Returns 0;
 * on error -1 with errno EBADF, ENOMEM (it is not owned, but may be non-blocking by then). */
ACO_API int aco_io_adopt(int fd);
/* Notes whether other processes have the socket of this owned listener, too: by socket activation, fork(), SCM_RIGHTS.
 * A server that is stopped then leaves to them what waits to be accepted, and only closes the descriptor. A listener
 * that nobody else has it empties, for which the socket takes no more connections: also for a process that nobody told
 * of. Counts until aco_io_close() or aco_io_release(). Does not wait. Returns 0; on error -1 with errno EBADF (not
 * owned on this thread). */
ACO_API int aco_io_set_shared(int fd, int is_shared);
/* Returns 1 if aco_io_set_shared() has said so, else 0. */
ACO_API int aco_io_is_shared(int fd);
/* Does what aco_io_close() does, but leaves the descriptor open, no longer owned. Returns 0; on error -1 with errno
 * EBADF (not known on this thread). */
ACO_API int aco_io_release(int fd);

/* What the calls of this thread have done so far. Many waits for few calls: peers are slow, or the tasks wait for each
 * other. Few events for each poll: the thread is idle. As many registrations as calls: make these descriptors owned by
 * aco_io_adopt(). */
typedef struct aco_io_stats_s {
    uint64_t calls;         /* calls that found their descriptor; aco_io_write_all() and the like count each part */
    uint64_t waits;         /* how often a task waited for a descriptor; other calls were done at once */
    uint64_t polls;         /* how often aco_run() has asked the system for events */
    uint64_t events;        /* events of descriptors that the system reported */
    uint64_t registrations; /* how often descriptors were registered with the system, or registrations changed */
    uint64_t bytes_read, bytes_written; /* aco_io_sendfile() and aco_io_splice() count in both */
} aco_io_stats_t;
/* Fills in *stats. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_io_stats(aco_io_stats_t *stats);

/* Gives a descriptor that is readable when a task of this thread can be woken, or when another thread has news for this
 * one. It is for another event loop, which calls aco_run_ready() (aco/scheduler.h) or in which an idle hook
 * (aco_on_idle()) waits: that loop must wait for this descriptor, too. The descriptor belongs to the library. Returns
 * it; on error -1 with errno ENOMEM, EMFILE, ENFILE. */
ACO_API int aco_io_poll_fd(void);

ACO__END_C

#endif
