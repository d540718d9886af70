/* The layer of descriptors, in the library acorn_io. It is beside the scheduler's layer and not of the library acorn:
 * it calls only what acorn exports. Its files include the system's headers: waiting for system calls is all they do. */
#ifndef ACO_IO_INTERNAL_H
#define ACO_IO_INTERNAL_H

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/poller.h"
#include "aco/io.h"
#include "aco/offload.h"

/* ACO_CONFIG_URING: liburing is there. MemorySanitizer does not see what the kernel writes through io_uring. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#undef ACO_CONFIG_URING
#endif
#endif

enum { IO_READ, IO_WRITE, IO_PAUSE }; /* what a task waits for; a pause: a time, or the close */
enum { IO_QUEUES = 2 };               /* a pause is in that of readers */
enum { IO_READS = 1, IO_WRITES = 2, IO_ALWAYS_READS = 4 }; /* sets of them; the last: there may be no further event */
enum { IO_UNWATCHED = 3 }; /* shifts IO_READS and IO_WRITES: the direction is not watched any more */

/* A descriptor as its thread knows it. */
typedef struct aco__io_fd {
    int fd;
    uint32_t generation;    /* of this use of the number; events carry it. 0 is the ring's */
    unsigned char owned;    /* only aco_io_close() ends its registration */
    unsigned char is_socket; /* or may be one, if it is not owned */
    unsigned char is_tcp;
    unsigned char armed;    /* the directions that the poller watches */
    unsigned char drained;  /* nothing to read until the next event */
    unsigned char always;   /* IO_ALWAYS_READS was seen: never drained */
    unsigned char closed;   /* not in the table any more; the last user frees it */
    unsigned char wait_is_used;
    unsigned users;         /* tasks that wait for it or use this record */
    unsigned pairs;         /* those of them that use another descriptor, too */
    aco__queue_t queues[IO_QUEUES];
    aco__wait_t wait;       /* of the first task that waits. Not on its stack, which may be a shared one */
} aco__io_fd_t;

/* A read has left the socket empty. */
static inline void aco__io_note_drained(aco__io_fd_t *d)
{
    if (d->is_tcp && !d->always && d->armed & IO_READS)
        d->drained = 1;
}

/* The states of a job. They change under the pool's lock. */
enum { IO_NEW, IO_QUEUED, IO_RUNS, IO_DONE };

/* A function for the pool, and the task that waits for it. The task frees the record; the pool does if the task has
 * abandoned it. */
typedef struct aco__io_job {
    void *(*fn)(void *arg);
    void *arg, *result;
    void (*release)(void *arg, void *result);
    struct aco__io *io;         /* of the task's thread */
    int state;
    int is_abandoned;           /* by its task. Changes under the pool's lock */
    int kind;                   /* ACO__WORK, … */
    int error;                  /* the errno that fn left */
    int is_told;                /* the thread has got the post */
    struct aco__io_job *next;   /* in the pool's queue */
    struct aco__io_job *before, *after; /* other jobs of the thread */
    aco__post_t post;           /* tells the thread that it is done */
    aco__queue_t queue;
    aco__wait_t wait;
    size_t sz;                  /* of this record, as allocated */
} aco__io_job_t;

/* The states of an operation of io_uring. A cancelled one is queued a second time, for its cancelling. */
enum { IO_OP_NEW, IO_OP_QUEUED, IO_OP_SUBMITTED, IO_OP_CANCELLED };

struct io_uring_sqe;

/* An operation of io_uring, and the task that waits for it. */
typedef struct aco__io_op {
    struct aco__io *io;
    void (*prepare)(struct aco__io_op *op, struct io_uring_sqe *entry); /* fills in all but the user data */
    void (*done)(struct aco__io *io, struct aco__io_op *op, int result); /* the result is an errno if it is negative */
    struct aco__io_op *next, *before; /* in a list of the ring's */
    int fd;                     /* the descriptor that it is for; -1: none */
    unsigned char state;        /* IO_OP_… */
    unsigned char is_done;
    unsigned char is_given_up;  /* its scope has ended */
    unsigned char is_abandoned; /* no task waits for it any more: done() frees it */
    aco__queue_t queue;
    aco__wait_t wait;
} aco__io_op_t;

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
    aco__io_job_t *jobs;    /* for which tasks wait */
    unsigned posting;       /* threads of the pool that use this record. Atomic */
    unsigned file_reads;    /* for fairness */
    struct file_call *at_own_position; /* reads and writes that are under way there */
    unsigned char files_by_pool; /* although there may be a ring */
    unsigned char files_by_ring;
    unsigned char watches_by_ring; /* not by epoll. Then a watch keeps the file open */
    unsigned char has_poll_fd;   /* a foreign loop may wait for the thread's events */
    /* As aco__io_events_watch() and aco__io_events_forget(). */
    int (*watch)(const struct aco__io *io, int fd, uint32_t generation, unsigned what, unsigned before);
    void (*forget)(const struct aco__io *io, int fd, uint32_t generation, unsigned what);
    struct aco__io_ring *ring;   /* NULL: none so far. With it these: */
    /* An event of the ring for a watched descriptor. */
    void (*ring_event)(struct aco__io *io, uint64_t key, int result, unsigned flags);
    /* Before a wait for events, and when there are some for the ring: wakes the tasks that have their answer. Sets
     * *deadline to an earlier time if the wait must not be so long. 1: it has waited itself; 0; -1 and errno. */
    int (*ring_turn)(struct aco__io *io, int64_t *deadline);
    void (*ring_close)(struct aco__io *io); /* the thread ends */
    unsigned forks;         /* that lay behind the process at the first job */
    void (*jobs_end)(struct aco__io *io); /* the thread ends: its jobs are nobody's. NULL: there was none */
    aco_io_stats_t stats;
    size_t sz;              /* of this record, as allocated */
} aco__io_t;

/* ---- The system's events: epoll.c. Another system has another file with these four ---- */
/* Fills in base.poll, base.wake, watch, forget, events and wake. `ready` is called for each event of a descriptor, and
 * base.poll counts itself in the statistics. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_events_open(aco__io_t *io);
ACO__HIDDEN void aco__io_events_close(const aco__io_t *io);
/* Watches the directions `what`, edge-triggered; if one of them is ready now, that is an event too. `before`: those
 * watched so far. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_events_watch(const aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before);
/* The end of watching the directions `what`, before the number is closed or given up. */
ACO__HIDDEN void aco__io_events_forget(const aco__io_t *io, int fd, uint32_t generation, unsigned what);

/* ---- descriptor.c ---- */
/* The calling thread's; created if needed. NULL after a failure. */
ACO__HIDDEN aco__io_t *aco__io_get(const char *call);
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

/* ---- transfer.c ---- */
/* Makes the call once(d, args), and again after waits until it does not fail with EAGAIN. `wanted`: the bytes that a
 * call that reads asked for; 0: unknown. Returns what `once` does, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__io_transfer(const char *call, int fd, int direction, size_t wanted,
                                     ssize_t (*once)(aco__io_fd_t *d, void *args), void *args, const char *location);

/* ---- job_threads.c: the pool ---- */
/* To be called before the first job, and before the lock is taken: a fork() of another thread must not leave it locked
 * in the child. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_pool_ready(void);
/* How many forks lie behind this process. */
ACO__HIDDEN unsigned aco__io_pool_forks(void);
/* Queues a new job. 0; or the errno with which the first thread could not be started. */
ACO__HIDDEN int aco__io_pool_add(aco__io_job_t *job);
/* Its task gives the job up: a queued job is new again, a job that runs becomes abandoned if it may. Returns the state
 * that it had; IO_RUNS also for a queued job that must run, which becomes abandoned too. */
ACO__HIDDEN int aco__io_pool_give_up(aco__io_job_t *job, int may_run_on);

/* The pool's lock also protects what threads share besides. */
ACO__HIDDEN void aco__io_pool_lock(void);
ACO__HIDDEN void aco__io_pool_unlock(void);

/* ---- offload.c ---- */
/* aco_offload() for a call with this name. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_offload(const char *call, void *(*fn)(void *arg), void *arg, void **result,
                                void (*release)(void *arg, void *result), const char *location);

/* ---- uring.c ---- */
/* Whether files go by the thread's ring, which is made if needed. 1; 0: use the pool; -1 and errno. */
ACO__HIDDEN int aco__io_ring(aco__io_t *io, const char *call);
/* Makes the thread's ring for the value of an environment variable that wants it. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_ring_need(aco__io_t *io, const char *variable, const char *call);
#ifdef ACO_CONFIG_URING
/* An entry of the kernel's queue, to be filled in. Its user data: 0, then nobody is told of its end; or an odd number
 * above 1, with which io->ring_event() is called. NULL and errno. */
ACO__HIDDEN struct io_uring_sqe *aco__io_ring_entry(const aco__io_t *io);
ACO__HIDDEN void aco__io_ring_submit(const aco__io_t *io);
/* Before the number is closed: what tasks have asked for of it is submitted, for the file that it is now. */
ACO__HIDDEN void aco__io_ring_settle(const aco__io_t *io, int fd);
/* Has the operation submitted when the scheduler polls. */
ACO__HIDDEN void aco__io_ring_add(aco__io_t *io, aco__io_op_t *op);
/* 1: the operation is being cancelled: its end will be told. 0: it never was submitted, or has ended. */
ACO__HIDDEN int aco__io_ring_cancel(aco__io_t *io, aco__io_op_t *op);
/* The end of an operation that is being cancelled will concern no task. */
ACO__HIDDEN void aco__io_ring_abandon(aco__io_t *io, aco__io_op_t *op);
/* The calling task waits in op->queue; if `begins`, for an operation that it adds. Else no scope ends the wait. 0, or
 * -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_ring_wait(aco__io_t *io, aco__io_op_t *op, const char *call, int begins, const char *location);
#endif

/* ---- uring_poller.c: ACO_POLLER ---- */
/* Has the ring watch descriptors, if the environment wants that. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_choose_poller(aco__io_t *io, const char *call);

/* ---- file.c ---- */
/* Fails with errno and a message that has the path. Scopes' errors have no message. */
ACO__HIDDEN int aco__io_fail_path(const char *call, const char *path);

/* ---- address.c ---- */
typedef struct aco__io_address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } is;
    socklen_t length;
    int type;   /* SOCK_… */
    const char *problem; /* what is wrong, after EINVAL */
} aco__io_address_t;
/* Understands an address of aco_io_listen(), aco_io_bind() or aco_io_dial(), other than a name. `choice`: 0, or 1 for
 * the second address that is meant. 0; or -1 with errno: EINVAL, ENOENT (there is no such choice). */
ACO__HIDDEN int aco__io_parse(aco__io_address_t *address, const char *network, const char *host, const char *port,
                              int passive, int choice);
/* Whether the host is a name that must be looked up: the addresses that the network takes, IPv4 (4), IPv6 (6) or all
 * (0). Else -1. */
ACO__HIDDEN int aco__io_families_of_name(const char *network, const char *host);
static inline int aco__io_is_tcp(const aco__io_address_t *address)
{
    return address->type == SOCK_STREAM && address->is.any.sa_family != AF_UNIX;
}
/* The port of an internet address, in the network's order. */
ACO__HIDDEN uint16_t aco__io_port(const aco__io_address_t *address);
/* Writes an address as text. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_format(const struct sockaddr *address, socklen_t length, char *text, size_t size);
/* Fails with errno and a message that has the address, and what is wrong; NULL: errno tells. Scopes' errors have no
 * message. */
ACO__HIDDEN int aco__io_fail_address(const char *call, const char *network, const char *host, const char *port,
                                     const char *problem);

/* ---- names.c ---- */
enum { IO_MOST_TARGETS = 16 };
typedef struct aco__io_targets {
    size_t n, sz;           /* sz: of this record, as allocated */
    aco__io_address_t at[]; /* in the order in which to try them */
} aco__io_targets_t;
/* All addresses that a call of aco_io_dial() means; waits for a name to be looked up. The caller frees the record. NULL
 * after a failure. */
ACO__SWITCHES
ACO__HIDDEN aco__io_targets_t *aco__io_targets(const char *call, const char *network, const char *host,
                                               const char *port, const char *location);

/* ---- socket.c ---- */
ACO__HIDDEN int aco__io_check_options(const char *call, const aco_io_options_t *opts);
/* A socket for this address, with the options of `flags`. -1 and errno. */
ACO__HIDDEN int aco__io_socket_for(const aco__io_address_t *address, unsigned flags, int listens);
/* Closes a socket after a failure: -1, with the failure's errno. */
ACO__HIDDEN int aco__io_give_up(int fd);

#endif
