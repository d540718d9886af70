/* The bytes of a connection, whatever they mean: link.c.
 *
 * This is the lowest part of the layer of HTTP, in the library acorn_http, above that of descriptors. The layer calls
 * what acorn and acorn_io export. Its files include the system's headers where acorn_io has no call: for sendfile,
 * signals and wall-clock time. */
#ifndef ACO_HTTP_LINK_H
#define ACO_HTTP_LINK_H

#include "base/invariants.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/for_libraries.h"
#include "aco/http.h"
#include "aco/stream.h"

enum { HTTP_OUT = 8192 }; /* bytes of output that a link collects */

/* What was read. The sizes of a connection's record, of which there may be a million, are numbers of 32 bits. */
typedef struct aco__http_input {
    char *buffer; /* NULL: none */
    uint32_t size; /* that it has, or will have */
    uint32_t begin, end;
} aco__http_input_t;

typedef struct aco__http_link {
    aco_stream_t own; /* the descriptor, for which nobody else has made a stream. Its fd is that of any stream */
    aco_stream_t *stream; /* NULL: making it has failed */
    /* Input. The buffer is there while there is input in it or a message is being handled: */
    /*   begin: held, for who points into it    keep: free    at: nobody has read it    end */
    aco__http_input_t in;
    uint32_t keep, at;
    unsigned char is_broken; /* nothing can be read or written any more */
    unsigned char is_plain; /* the stream is a socket, and nothing else: used by calls of aco/io.h, which can do more */
    unsigned char has_half; /* the CR of what may become an empty line was read, and is not in the buffer */
    int error; /* that of writing which broke it; 0: none */
    /* Output: bytes that were not sent yet, HTTP_OUT at most. */
    char *out;
    uint32_t out_n;
    int write_rate; /* bytes in a second; 0: any */
    int64_t write_time;
    int64_t late; /* how much later the peer is than write_rate allows: the rest of write_time is left to it */
} aco__http_link_t;

/* The time in which `n` bytes come at that rate; years, if it is more. */
static inline int64_t aco__http_time_of(uint64_t n, int rate)
{
    const uint64_t most = (uint64_t)1 << 30, by = (uint64_t)rate, seconds = n / by;
    return seconds >= most ? (int64_t)most * ACO_SECOND : (int64_t)(seconds * ACO_SECOND + n % by * ACO_SECOND / by);
}

/* `until`, later by the time that `n` bytes take at that rate; 0: the rate is not limited. */
static inline int64_t aco__http_later_by(int64_t until, uint64_t n, int rate)
{
    int64_t more = rate ? aco__http_time_of(n, rate) : 0;
    return more < ACO_FOREVER - until ? until + more : ACO_FOREVER;
}

/* On a socket; or on a stream. */
ACO__HIDDEN void aco__http_link_open(aco__http_link_t *link, int fd, size_t in_size);
ACO__HIDDEN void aco__http_link_open_on(aco__http_link_t *link, aco_stream_t *stream, size_t in_size);
/* From now on the link uses this stream, which was made of its socket; NULL: that has failed, and the socket is
 * closed. */
ACO__HIDDEN void aco__http_link_use(aco__http_link_t *link, aco_stream_t *stream);
/* Closes the descriptor too. If something is cut, the peer sees no end but a failure. Does not switch. */
ACO__HIDDEN void aco__http_link_close(aco__http_link_t *link, int is_cut);
/* Whether a failure, now in errno, is the caller's alone: a scope has ended, it cannot wait, there is no memory. Then
 * the stream is as it was. */
ACO__HIDDEN int aco__http_is_passing(void);

/* Frees the input buffer, with what is in it. */
ACO__HIDDEN void aco__http_drop_input(aco__http_link_t *link);
/* As aco_io_read(), and aco_io_shutdown() with SHUT_WR. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_link_read(aco__http_link_t *link, void *p, size_t n, const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_link_shutdown(aco__http_link_t *link, const char *location);
/* Waits for the first bytes of a message, without a buffer. `is_first`: nothing has been read yet, so something may be
 * there already. How many bytes there are; 0 at the end; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_await(aco__http_link_t *link, int is_first, const char *location);
/* The same in parts, for tasks that hold as few frames as they can while they wait. Both waits: 0, or -1 and errno. The
 * link has no buffer meanwhile. */
ACO__SWITCHES ACO__HIDDEN int aco__http_await_stream(aco__http_link_t *link, const char *location);
ACO__SWITCHES static inline int aco__http_await_first(aco__http_link_t *link, const char *location)
{
    return aco_likely(link->is_plain) ? aco__io_await_input(link->own.fd, location)
                                      : aco__http_await_stream(link, location);
}
/* The result of aco__http_await(), after a wait with the result `waited`, and errno, or before the first one (0); or,
 * unless the wait has failed, HTTP_NOTHING_YET. */
enum { HTTP_NOTHING_YET = -2 };
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__http_take_first(aco__http_link_t *link, int waited, const char *location);
/* Skips what may stand before a request and is none of it: a connection on which only that came is idle (RFC 9112,
 * 2.2). Of a line that has come in halves the next aco__http_await() puts the first one back. Whether more has been
 * read. */
ACO__HIDDEN int aco__http_skip_empty_lines(aco__http_link_t *link);
/* Whether a descriptor has something now: bytes, an end, a connection to accept. */
ACO__HIDDEN int aco__http_is_readable(int fd);
/* Whether bytes are there that were not read, or the peer's end. Does not wait. */
ACO__HIDDEN int aco__http_has_input(const aco__http_link_t *link);
/* Whether bytes are there that nobody will read, or, on a stream, the peer's end. Does not wait. */
ACO__HIDDEN int aco__http_has_unread(const aco__http_link_t *link);
/* Reads behind what is in the buffer. The number of bytes; 0 at the end of the stream; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_append(aco__http_link_t *link, const char *location);
/* The same; what nobody has read yet moves to what is held. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_more_input(aco__http_link_t *link, const char *location);
#ifdef ACO__INVARIANTS
/* The positions in the input are in order, whatever the peer sends. */
ACO__HIDDEN int aco__http_is_in_order(const aco__http_link_t *link);
#endif

/* Sends the output, for room. NULL and errno: also if the link is broken. */
ACO__SWITCHES ACO__HIDDEN char *aco__http_make_room(aco__http_link_t *link, const char *location);
/* Room for `n` bytes in the output, at most HTTP_OUT. NULL and errno. */
ACO__SWITCHES static inline char *aco__http_room(aco__http_link_t *link, size_t n, const char *location)
{
    ACO__ASSERT(n <= HTTP_OUT && link->out_n <= HTTP_OUT);
    if (aco_likely(n <= HTTP_OUT - link->out_n && !link->is_broken))
        return link->out + link->out_n;
    return aco__http_make_room(link, location);
}
/* What was written into that room, up to `end`, is output now. */
static inline void aco__http_filled(aco__http_link_t *link, const char *end)
{
    ACO__ASSERT(end - link->out >= (ptrdiff_t)link->out_n && end - link->out <= HTTP_OUT);
    link->out_n = (size_t)(end - link->out);
}
/* Sends the output that was collected, and these bytes behind it. 0, or -1 and errno: nothing more can be sent, or,
 * without further bytes, aco__http_is_passing() and the rest of the output is kept. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_send(aco__http_link_t *link, const void *p, size_t n, int is_more, const char *location);
/* Sends of the collected output what can be sent without waiting. Does not switch. */
ACO__HIDDEN void aco__http_try_send(aco__http_link_t *link);
/* Reads the next part of a file for a body: at most `room` bytes, *offset and *left go on by as many. The number of
 * bytes, or -1 and errno: EIO if the file ends before. */
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__http_read_part(int fd, void *p, size_t room, int64_t *offset, int64_t *left,
                                        const char *location);
/* Sends a file from *at, which moves, to `end`, by sendfile(); the output must be empty. 0; 1: the file, or what
 * carries the connection, has no sendfile(); -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_send_file(aco__http_link_t *link, int fd, int64_t *at, int64_t end, const char *location);

#endif
