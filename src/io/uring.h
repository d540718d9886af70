/* A thread's io_uring: uring.c. */
#ifndef ACO_IO_URING_H
#define ACO_IO_URING_H

#include "io/descriptor.h"

/* ACO_CONFIG_URING: liburing is there. MemorySanitizer does not see what the kernel writes through io_uring. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#undef ACO_CONFIG_URING
#endif
#endif

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

/* Whether files go by the thread's ring, which is made if needed. 1; 0: use the pool; -1 and errno. */
ACO__HIDDEN int aco__io_ring(aco__io_t *io, const char *call);
/* Makes the thread's ring for the value of an environment variable that wants it. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_ring_need(aco__io_t *io, const char *variable, const char *call);
#ifdef ACO_CONFIG_URING
/* An entry of the kernel's queue, to be filled in. The ends of watches come before it. Its user data: 0, then nobody is
 * told of its end; or an odd number above 1, with which io->ring_event() is called. NULL and errno. */
ACO__HIDDEN struct io_uring_sqe *aco__io_ring_entry(aco__io_t *io);
ACO__HIDDEN void aco__io_ring_submit(aco__io_t *io);
/* Before the number is closed: what tasks have asked for of it is submitted, for the file that it is now. */
ACO__HIDDEN void aco__io_ring_settle(aco__io_t *io, int fd);
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

#endif
