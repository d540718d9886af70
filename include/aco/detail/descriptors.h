/* Between acorn_io and the libraries above it. Not for programs. */
#ifndef ACO_DETAIL_DESCRIPTORS_H
#define ACO_DETAIL_DESCRIPTORS_H

#include "../stream.h"
#include "relay.h"

ACO__BEGIN_C

struct pollfd;

/* poll() that waits only for the task, until `deadline` on the clock of aco_now(). The descriptors may be blocking
 * ones, and `fds` on a share stack. Returns what poll() does. A descriptor that is closed meanwhile by aco_io_close()
 * or aco__io_forget() has POLLNVAL. -1 and errno: also EPERM (the caller cannot wait), ETIMEDOUT and ECANCELED (of a
 * scope). */
ACO_API int aco__io_poll(struct pollfd *fds, unsigned long n, int64_t deadline, const char *call,
                         const char *location);

/* recv() without a wait or a yield. */
ACO_API ssize_t aco__io_recv_now(int fd, void *p, size_t n);
/* As aco_io_wait_readable(), after aco__io_recv_now() got less than it asked for, or EAGAIN: with fewer system calls.
 * An event that comes late may end it although nothing is there. */
ACO_API int aco__io_await_input(int fd, const char *location);

/* read() and write() for a descriptor of acorn_io, without a wait or a yield. -1 and errno: also EAGAIN. */
ACO_API ssize_t aco__io_read_now(int fd, void *p, size_t n, const char *call);
ACO_API ssize_t aco__io_write_now(int fd, const void *p, size_t n, const char *call);
/* A place of a relay waits until an event tells that the descriptor may be ready, or it is closed. With `looks`, first
 * looks whether it is; else a call without a wait has just failed with EAGAIN, in the same turn. Returns 0 (it is
 * ready), ACO__RELAYED; or -1 and errno: EAGAIN if the system can watch no more now. After ACO__RELAYED, when woken()
 * was called or the place shall leave: aco__io_relay_end(). 0, or -1 with ECANCELED: the descriptor was closed. */
ACO_API int aco__io_relay(aco__relay_t *relay, aco__relay_place_t *place, int fd, int writes, int looks,
                          const char *call);
ACO_API int aco__io_relay_end(aco__relay_place_t *place);

enum {
    ACO__WORK,
    ACO__LOOK_UP,  /* of a name: at most half of the pool's threads do that at once */
    ACO__FILE,     /* a system call for a file, which may wait for ever; a simulation's end ends it */
    ACO__MUST_RUN  /* also if the caller's scope ends before: whenever the call fails with ETIMEDOUT or ECANCELED */
};
/* aco_offload() of such a function for a call with this name. `release` is not NULL. */
ACO_API int aco__io_offload_as(int kind, const char *call, void *(*fn)(void *arg), void *arg, void **result,
                               void (*release)(void *arg, void *result), const char *location);

/* A call that could have waited did not: from time to time it lets other tasks run, before it looks at anything. */
ACO_API void aco__io_spend(const char *call, const char *location);

/* How long to pause after a pause of `ns`; 0: before the first. For what cannot be waited for, only tried again. */
ACO__FORCE_INLINE int64_t aco__io_longer_pause(int64_t ns)
{
    return !ns ? ACO_MILLISECOND : ns < 50 * ACO_MILLISECOND ? 2 * ns : 100 * ACO_MILLISECOND;
}

/* Makes a stream of a descriptor in the caller's memory, which must stay where it is; closing it does not free it. */
ACO_API void aco__stream_embed(aco_stream_t *stream, int fd);
/* aco_stream_open(), but on error the descriptor stays open. */
ACO_API aco_stream_t *aco__stream_of_fd(int fd);
/* Whether the stream is one descriptor, and nothing else. */
ACO_API int aco__stream_is_fd(const aco_stream_t *stream);

/* What aco_io_close() does before it closes the number. */
ACO_API void aco__io_forget(int fd);

ACO__END_C

#endif
