/* Streams: bytes in both directions, whatever carries them: a socket, two pipes, TLS (aco/tls.h), memory, or functions
 * of your own. In the library acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_stream_t *stream = aco_stream_open(aco_io_dial("tcp", host, "7000", NULL));
 *   if (stream && aco_stream_write_all(stream, "hello\n", 6) == 6 && aco_stream_shutdown(stream) == 0)
 *       while ((n = aco_stream_read(stream, bytes, sizeof bytes)) > 0)
 *           ...
 *   aco_stream_close(stream);
 *
 * HTTP and WebSocket (aco/http.h) work on any stream.
 *
 * Waits are those of aco/io.h: only the calling task waits; a scope ends the wait with -1 and ETIMEDOUT or ECANCELED;
 * a caller that cannot wait gets EPERM. Deadlines are scopes. So are fairness and the rule that a call which has moved
 * bytes succeeds.
 *
 * Tasks. A stream belongs to one thread. One task may read while another writes. If several tasks read, each gets a
 * part; if several write, each writes a part.
 *
 * Errors are those of what carries the stream: of a descriptor as in aco/io.h, of TLS as in aco/tls.h. ENOTSUP: this
 * kind of stream cannot do that. A write to a pipe that nobody reads raises SIGPIPE, too, as usual. No pointer may be
 * NULL unless its text says so. */
#ifndef ACO_STREAM_H
#define ACO_STREAM_H

#include "io.h"

ACO__BEGIN_C

typedef struct aco_stream_s aco_stream_t;

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

/* Reads at most `n` bytes; waits if there are none. Returns how many, at least 1, or 0 at the end or if `n` is 0; on
 * error -1 with errno. */
ACO_API ssize_t aco_stream_read_at(aco_stream_t *stream, void *p, size_t n, const char *location);
#define aco_stream_read(stream, p, n) aco_stream_read_at(stream, p, n, ACO_PLACE)
/* Reads `n` bytes. If `done` is not NULL, *done becomes the number of bytes read, also on error. Returns n, or fewer at
 * the end; on error -1 with errno, perhaps after it has read a part. */
ACO_API ssize_t aco_stream_read_exactly_at(aco_stream_t *stream, void *p, size_t n, size_t *done, const char *location);
#define aco_stream_read_exactly(stream, p, n) aco_stream_read_exactly_at(stream, p, n, NULL, ACO_PLACE)
#define aco_stream_read_exactly_done(stream, p, n, done) aco_stream_read_exactly_at(stream, p, n, done, ACO_PLACE)

/* Writes at most `n` bytes; waits if it cannot write any. Returns how many it has written, at least 1, or 0 if `n` is
 * 0; on error -1 with errno: EPIPE (the peer reads no more, or aco_stream_shutdown() was called) and others. */
ACO_API ssize_t aco_stream_write_at(aco_stream_t *stream, const void *p, size_t n, const char *location);
#define aco_stream_write(stream, p, n) aco_stream_write_at(stream, p, n, ACO_PLACE)
/* Writes all `n` bytes. If `done` is not NULL, *done becomes the number of bytes written, also on error. Returns n; on
 * error -1 with errno, perhaps after it has written a part. */
ACO_API ssize_t aco_stream_write_all_at(aco_stream_t *stream, const void *p, size_t n, size_t *done,
                                        const char *location);
#define aco_stream_write_all(stream, p, n) aco_stream_write_all_at(stream, p, n, NULL, ACO_PLACE)
#define aco_stream_write_all_done(stream, p, n, done) aco_stream_write_all_at(stream, p, n, done, ACO_PLACE)
/* Writes all bytes of `count` parts, from the first on, in as few system calls as the stream can. `count` is 0 to
 * ACO_STREAM_PARTS. It changes the parts: afterwards they are what was not written, so on error the call can be made
 * again with them. Returns 0; on error -1 with errno, also EINVAL (`count`). */
enum { ACO_STREAM_PARTS = 1024 };
ACO_API int aco_stream_write_parts_at(aco_stream_t *stream, struct iovec *parts, int count, const char *location);
#define aco_stream_write_parts(stream, parts, count) aco_stream_write_parts_at(stream, parts, count, ACO_PLACE)

/* Copies between two streams, both ways at once, until both have ended: the end of one becomes aco_stream_shutdown() of
 * the other. If one direction fails, the other is ended too. Between two sockets the bytes go through the system alone
 * (splice), which raises SIGPIPE if a peer is gone, as aco_io_splice() does: ignore that signal. copied[0] becomes the
 * number of bytes from `one` to `other`, copied[1] that of the other direction, also on error; `copied` may be NULL. No
 * other task reads or writes the two meanwhile. Returns 0; on error -1 with errno of the first failure, also ENOTSUP (a
 * stream has no shutdown), or as aco_group_begin() and aco_spawn(). */
ACO_API int aco_stream_copy_both_ways_at(aco_stream_t *one, aco_stream_t *other, uint64_t copied[2],
                                         const char *location);
#define aco_stream_copy_both_ways(one, other, copied) aco_stream_copy_both_ways_at(one, other, copied, ACO_PLACE)

/* Waits until a read need not wait: for a task that wants no buffer while its stream is idle. Returns 0; on error -1
 * with errno, also ENOTSUP. */
ACO_API int aco_stream_wait_readable_at(aco_stream_t *stream, const char *location);
#define aco_stream_wait_readable(stream) aco_stream_wait_readable_at(stream, ACO_PLACE)
/* Returns 1 if bytes, the end or an error are there that were not read, as far as that is known without a wait; else 0.
 * Over TLS what is there may be a message of TLS's own. */
ACO_API int aco_stream_has_input(aco_stream_t *stream);

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

/* Ends writing: the peer reads what was written, then the end. Later writes fail with EPIPE; reads go on. Returns 0; on
 * error -1 with errno, also ENOTSUP. */
ACO_API int aco_stream_shutdown_at(aco_stream_t *stream, const char *location);
#define aco_stream_shutdown(stream) aco_stream_shutdown_at(stream, ACO_PLACE)

/* Both end the stream and free it, with its descriptor. Neither waits or switches. Calls of tasks that wait in it fail
 * with ECANCELED; nobody may make another call with it. NULL: nothing happens.
 * aco_stream_close(): the peer reads what was written, then the end.
 * aco_stream_abort(): the peer sees a failure, not an end: TCP is reset, TLS ends with an alert, the other end of a
 * pair reads ECONNRESET. Bytes that the peer has not read yet may be lost. Where no failure can be told (Unix sockets,
 * pipes), it does what aco_stream_close() does. */
ACO_API void aco_stream_close(aco_stream_t *stream);
ACO_API void aco_stream_abort(aco_stream_t *stream);

/* ---- What it is -------------------------------------------------------------------------------------------------- */

/* Write the address of this side, or of the peer, as text; as aco_io_local_address() and aco_io_peer_address() do.
 * Return 0; on error -1 with errno of these, or ENOTSUP (the stream has no addresses). */
ACO_API int aco_stream_local_address(const aco_stream_t *stream, char *text, size_t size);
ACO_API int aco_stream_peer_address(const aco_stream_t *stream, char *text, size_t size);

/* Returns the application protocol that the two sides have agreed on (TLS's ALPN): "h2", "http/1.1"; "": none. Valid as
 * long as the stream. aco_tls_of_stream() gives all else that TLS knows. */
ACO_API const char *aco_stream_protocol(const aco_stream_t *stream);

/* Returns the descriptor of the stream; -1: it has none, or two. The stream still owns it. It is to ask for addresses
 * and options: the bytes on it may be those of TLS. */
ACO_API int aco_stream_fd(const aco_stream_t *stream);

/* ---- Making streams ---------------------------------------------------------------------------------------------- */

/* Makes a stream of a connected stream socket, or of any descriptor that aco/io.h can use. Takes over the descriptor,
 * also on error: it is closed then. Below 0 the call fails and leaves errno as it is, so you can pass on what
 * aco_io_dial() and aco_io_accept() return. The descriptor should be owned (aco/io.h). The caller owns the stream.
 * Returns it; on error NULL with errno ENOMEM. */
ACO_API aco_stream_t *aco_stream_open(int fd);
/* Makes one of two descriptors, such as ends of pipes: it reads from one and writes to the other. They are two
 * different ones. In all else as aco_stream_open(). aco_stream_shutdown() closes `to`. */
ACO_API aco_stream_t *aco_stream_open_both(int from, int to);

/* Makes two streams of memory: what is written to one is read from the other. Each direction holds `size` bytes that
 * were not read yet, at least 1; a write waits for room. Both ends are used on the caller's thread, and each is closed
 * by itself. After one is closed, the other reads what was written, then the end; its writes fail with EPIPE. Returns
 * 0; on error -1 with errno EINVAL (`size` is 0 or beyond PTRDIFF_MAX / 4), ENOMEM. */
ACO_API int aco_stream_pair(aco_stream_t *ends[2], size_t size);

/* Streams of your own: a structure that begins with an aco_stream_t, whose `functions` are these. They do what the call
 * of the same name does, and set errno on error. Where all bytes must be written, a `write` or `write_parts` that
 * returns 0 counts as failed, with EIO. If the stream has a descriptor, `fd` is that, else -1; the library
 * uses it only for addresses, to poll for input, and to reset it (SO_LINGER) before `abort`. */
typedef struct aco_stream_functions_s {
    ssize_t (*read)(aco_stream_t *stream, void *p, size_t n, const char *location);
    ssize_t (*write)(aco_stream_t *stream, const void *p, size_t n, const char *location);
    void (*close)(aco_stream_t *stream); /* also frees it. Must not switch */
    /* These may be NULL: */
    void (*abort)(aco_stream_t *stream); /* `fd`, if it is a socket, is going to be reset. NULL: `close` is called */
    /* Writes of these parts what it can at once, at least a byte; `count` is at least 1. NULL: `write` is called for
     * each part */
    ssize_t (*write_parts)(aco_stream_t *stream, const struct iovec *parts, int count, const char *location);
    int (*shutdown)(aco_stream_t *stream, const char *location); /* NULL: ENOTSUP */
    int (*wait_readable)(aco_stream_t *stream, const char *location); /* NULL: ENOTSUP */
    /* Whether the stream has taken bytes that `read` has not returned, or knows of its end. Must not switch. NULL: no.
     * If the answer is no and `fd` is not -1, the library polls it */
    int (*has_input)(aco_stream_t *stream);
    int (*local_address)(const aco_stream_t *stream, char *text, size_t size); /* NULL: that of `fd` */
    int (*peer_address)(const aco_stream_t *stream, char *text, size_t size); /* the same */
    const char *(*protocol)(const aco_stream_t *stream); /* NULL: none */
    /* Whether the stream can go to another thread together with `fd`. If so, tasks of that thread alone use it from now
     * on. It cannot while another task uses it, or while it has bytes that `read` has not returned or that are not sent
     * yet. Must not switch. NULL: no */
    int (*can_move)(aco_stream_t *stream);
    void *aco__reserved[3]; /* reserved fields are 0 */
} aco_stream_functions_t;
struct aco_stream_s {
    const aco_stream_functions_t *functions;
    int fd;
};

ACO__END_C

#endif
