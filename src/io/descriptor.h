/* The descriptors of a thread, and what it has for I/O: descriptor.c.
 *
 * This is the lowest part of the layer of descriptors, in the library acorn_io. The layer is beside the scheduler's and
 * not of the library acorn: it calls only what acorn exports. Its files include the system's headers: waiting for
 * system calls is all they do. */
#ifndef ACO_IO_DESCRIPTOR_H
#define ACO_IO_DESCRIPTOR_H

#include "base/invariants.h"

#include "aco/detail/poller.h"
#include "aco/io.h"

struct io_uring;

enum { IO_READ, IO_WRITE, IO_PAUSE }; /* what a task waits for; a pause: a time, or the close */
enum { IO_QUEUES = 2 };               /* a pause is in that of readers */
enum { IO_READS = 1, IO_WRITES = 2, IO_ALWAYS_READS = 4 }; /* sets of them; the last: there may be no further event */
enum { IO_UNWATCHED = 3 }; /* shifts IO_READS and IO_WRITES: the direction is not watched any more */

/* A descriptor as its thread knows it. */
typedef struct aco__io_fd {
    int fd;
    uint32_t generation;    /* of this use of the number; events carry it. 0 is the ring's */
    unsigned char owned : 1; /* only aco_io_close() ends its registration */
    unsigned char is_shared : 1; /* other processes have it too: aco_io_set_shared() */
    unsigned char is_socket : 1; /* or may be one, if it is not owned */
    unsigned char is_tcp : 1;
    unsigned char lost;     /* the errno with which the connection of TCP has failed; 0: it has not */
    unsigned char armed;    /* the directions that the poller watches */
    unsigned char drained;  /* nothing to read until the next event */
    unsigned char always;   /* IO_ALWAYS_READS was seen: never drained */
    unsigned char closed;   /* not in the table any more; aco__io_fd_free() */
    unsigned char unended;  /* directions that the ring watches until it has room for the end: in io->unended */
    unsigned char wait_is_used;
    unsigned users;         /* tasks that wait for it or use this record */
    unsigned pairs;         /* those of them that use another descriptor, too */
    aco__queue_t queues[IO_QUEUES];
    aco__wait_t wait;       /* of the first task that waits. Not on its stack, which may be a shared one */
    struct aco__io_fd *next_unended;
} aco__io_fd_t;

/* Frees the record if it is closed and nobody needs it any more. */
static inline void aco__io_fd_free(aco__io_fd_t *d)
{
    if (d->closed && !d->users && !d->unended)
        aco__service_free(d, sizeof *d);
}

/* A read has left the socket empty. */
static inline void aco__io_note_drained(aco__io_fd_t *d)
{
    if (d->is_tcp && !d->always && d->armed & IO_READS)
        d->drained = 1;
}

/* What a thread has for I/O. */
typedef struct aco__io {
    aco__poller_t base;
    int events, wake;       /* the epoll descriptor; an eventfd in it */
    void (*ready)(struct aco__io *io, int fd, uint32_t generation, unsigned what);
    aco__io_fd_t **table;   /* by number */
    size_t room, table_sz;
    uint32_t generations;
    const aco_t *spender;   /* the task of the last call */
    unsigned budget;        /* calls that it has left before it yields */
    struct aco__io_job *jobs;    /* for which tasks wait */
    unsigned posting;       /* threads of the pool that use this record. Atomic */
    struct file_call *at_own_position; /* reads and writes that are under way there */
    unsigned char files_by_pool; /* although there may be a ring */
    unsigned char files_by_ring;
    unsigned char watches_by_ring; /* not by epoll. Then a watch keeps the file open */
    unsigned char has_poll_fd;   /* a foreign loop may wait for the thread's events */
    /* As aco__io_events_watch() and aco__io_events_forget(). */
    int (*watch)(struct aco__io *io, int fd, uint32_t generation, unsigned what, unsigned before);
    void (*forget)(struct aco__io *io, aco__io_fd_t *d);
    struct aco__io_ring *ring;   /* NULL: none so far. With it these: */
    /* An event of the ring for a watched descriptor. */
    void (*ring_event)(struct aco__io *io, uint64_t key, int result, unsigned flags);
    aco__io_fd_t *unended;       /* records whose watches the ring is to end */
    /* Puts these ends into the ring's queue, as many as fit. */
    void (*end_watches)(struct aco__io *io, struct io_uring *uring);
    /* Before a wait for events, and when there are some for the ring: wakes the tasks that have their answer. Sets
     * *deadline to an earlier time if the wait must not be so long. 1: it has waited itself; 0; -1 and errno. */
    int (*ring_turn)(struct aco__io *io, int64_t *deadline);
    void (*ring_close)(struct aco__io *io); /* the thread ends */
    void (*jobs_end)(struct aco__io *io); /* the thread ends: its jobs are nobody's. NULL: there was none */
    aco_io_stats_t stats;
    struct aco__io *next, **place; /* io_counts.c's: of all threads */
    size_t sz;              /* of this record, as allocated */
} aco__io_t;

/* The calling thread's; created if needed. NULL after a failure. */
ACO__HIDDEN aco__io_t *aco__io_get(const char *call);
/* The same for a call that may wait, but has no record of a descriptor: it spends as aco__io_enter(). */
ACO__SWITCHES ACO__HIDDEN aco__io_t *aco__io_get_and_spend(const char *call, const char *location);
/* The record of a descriptor that the caller is going to use; created if needed. The caller releases it by
 * aco__io_leave(). NULL after a failure. For a call that may wait: from time to time it lets other tasks run, before
 * the call looks at anything. */
ACO__SWITCHES ACO__HIDDEN aco__io_fd_t *aco__io_enter(aco__io_t *io, int fd, const char *call);
/* The same for a call that does not wait. It never switches. */
ACO__HIDDEN aco__io_fd_t *aco__io_enter_now(aco__io_t *io, int fd, const char *call);
ACO__HIDDEN void aco__io_leave(aco__io_fd_t *d);
#ifdef __linux__
/* Called before a descriptor is closed, by any thread: closes what stands behind one of aco_signal_open(). NULL until
 * there is one. Atomic. */
ACO__HIDDEN_EXTERN void (*aco__io_at_close)(int fd);
#endif
/* The same for a call that uses two descriptors: 0; or -1 and errno, then there is nothing to release. If one of them
 * is closed, tasks that wait for the other in such a call are woken, with success. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_enter_both(aco__io_t *io, const int fds[2], aco__io_fd_t *d[2], int may_wait,
                                   const char *call);
ACO__HIDDEN void aco__io_leave_both(aco__io_fd_t *const d[2]);
/* Makes a descriptor owned, with a new record. 0; or -1 and errno: then it can be used like one that is not owned. */
ACO__HIDDEN int aco__io_own(aco__io_t *io, int fd, int is_socket, int is_tcp, const char *call);
/* Waits for an event; 0: the caller tries again. -1 and errno: also ECANCELED, if the descriptor was closed. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_park(aco__io_t *io, aco__io_fd_t *d, int what, int64_t deadline, const char *call,
                             const char *location);
/* Waits 1 ms, longer at each call with the same *ns, 0 at first. `d` may be closed meanwhile. 0, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_pause(aco__io_t *io, aco__io_fd_t *d, int64_t *ns, const char *call, const char *location);
/* poll() for POLL… without waiting: 1: ready or in error, 0: not; -1 and errno. */
ACO__HIDDEN int aco__io_look(int fd, int events);
/* Waits until an event tells that one of the `n` descriptors, at least 1, may be ready in its direction; NULL: all
 * wait to be written to. If one is closed meanwhile, it fails with ECANCELED. `places` and `wait` are for the call's
 * use, and not on the task's stack. 0, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_park_any(aco__io_t *io, aco__io_fd_t *const *ds, const unsigned char *directions,
                                 aco__waiter_t *places, size_t n, aco__wait_t *wait, int64_t deadline,
                                 const char *call, const char *location);
/* As aco__io_enter(), for a wait only: the descriptor may be a blocking one. */
ACO__HIDDEN aco__io_fd_t *aco__io_enter_to_wait(aco__io_t *io, int fd, const char *call);
/* Fails with errno: -1. Without a message if the failure is an expected answer. */
ACO__HIDDEN int aco__io_fail(const char *call, int fd);

#endif
