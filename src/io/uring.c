/* A thread's io_uring: operations that the kernel does while their tasks wait. They are collected and submitted
 * together when the scheduler is about to poll. If all tasks that wait for events wait for the ring, the thread waits
 * in it: one system call submits and waits. Else it waits in epoll, and the kernel tells of ends by an eventfd. (A ring
 * whose work is deferred does not wake who polls its descriptor.)
 *
 * The ring is made at the first operation. If the kernel refuses that once, no thread of the process tries again. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/events.h"
#include "io/job_threads.h"
#include "io/linux_bsd.h"
#include "io/uring.h"
#include "system/system.h"

#include "aco/detail/chooser.h"
#include "aco/detail/poller.h"

#include <stdio.h>
#include <string.h>

#ifdef ACO_CONFIG_URING
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

enum {
    RING_ENTRIES = 128,
    RING_COMPLETIONS = 1024, /* the kernel keeps those above */
    RING_WORKERS = 64,       /* the kernel's threads for calls that block: as many as the pool has */
    RETRY_NS = 1000000,
    SECOND_NS = 1000000000
};

/* What is submitted: a kernel without one of these gets the pool of threads instead. */
static const int operations[] = {IORING_OP_READ,  IORING_OP_WRITE,    IORING_OP_FSYNC,    IORING_OP_OPENAT,
                                 IORING_OP_STATX, IORING_OP_RENAMEAT, IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL};

#ifdef ACO__INVARIANTS
static int is_listed(int operation)
{
    size_t i = 0;
    while (i < sizeof operations / sizeof *operations && operations[i] != operation)
        i++;
    return i < sizeof operations / sizeof *operations;
}
#endif

static const uint64_t NOBODY_KEY = 0, AWAKE_KEY = 1; /* instead of the address of an operation */

typedef struct op_list {
    aco__io_op_t *first, *last;
} op_list_t;

struct aco__io_ring {
    struct io_uring uring;
    op_list_t queued;    /* to be submitted, or to be cancelled */
    op_list_t submitted; /* the kernel has them */
    size_t waiters;      /* tasks that wait for operations */
    int told;            /* an eventfd in epoll, to which the kernel writes when an operation ends */
    char watches_wake;   /* the ring tells of the eventfd of aco__io_t */
    char owes;           /* the kernel has not done what it was to do at once: counts as a waiter */
    size_t sz;           /* of this record, as allocated */
};
typedef struct aco__io_ring ring_t;

/* ---- Lists of operations ---- */

static void append_op(op_list_t *list, aco__io_op_t *op)
{
    op->next = NULL;
    op->before = list->last;
    *(list->last ? &list->last->next : &list->first) = op;
    list->last = op;
}

static void remove_op(op_list_t *list, const aco__io_op_t *op)
{
    ACO__ASSERT((op->before ? op->before->next : list->first) == op);
    ACO__ASSERT((op->next ? op->next->before : list->last) == op);
    *(op->before ? &op->before->next : &list->first) = op->next;
    *(op->next ? &op->next->before : &list->last) = op->before;
}

/* A task, or an abandoned operation, for which the scheduler must poll. */
static void count_waiter(aco__io_t *io, int n)
{
    ACO__ASSERT(n > 0 || io->ring->waiters > 0);
    io->base.waiters += (size_t)n;
    io->ring->waiters += (size_t)n;
    ACO__ASSERT(io->base.waiters >= io->ring->waiters);
}

/* ---- Submitting ---- */

/* Whether all that waits for room in the kernel's queue is there. */
static int is_all_queued(const aco__io_t *io)
{
    return !io->ring->queued.first && !io->unended;
}

/* Moves ends of watches and queued operations to the kernel's queue, as many as fit there. */
static void fill_queue(aco__io_t *io)
{
    ring_t *ring = io->ring;
    struct io_uring_sqe *entry;
    aco__io_op_t *op;
    if (io->unended)
        io->end_watches(io, &ring->uring);
    while ((op = ring->queued.first) != NULL && (entry = io_uring_get_sqe(&ring->uring)) != NULL) {
        ACO__ASSERT(op->state == IO_OP_QUEUED || op->state == IO_OP_CANCELLED);
        remove_op(&ring->queued, op);
        append_op(&ring->submitted, op);
        if (op->state == IO_OP_CANCELLED) {
            io_uring_prep_cancel64(entry, (uintptr_t)op, 0);
            io_uring_sqe_set_data64(entry, NOBODY_KEY);
        } else {
            op->prepare(op, entry);
            io_uring_sqe_set_data(entry, op);
        }
        ACO__ASSERT(is_listed(entry->opcode)); /* else knows_operations() does not ask for it */
        op->state = IO_OP_SUBMITTED;
    }
}

static int needs_kernel(const ring_t *ring)
{
    return io_uring_sq_ready(&ring->uring) ||
           IO_URING_READ_ONCE(*ring->uring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Tells the operations that have ended. Returns how many events there were. */
static unsigned reap_ring(aco__io_t *io)
{
    ring_t *ring = io->ring;
    struct io_uring_cqe *event;
    unsigned head, n = 0;
    ACO__NO_SWITCH_BEGIN(); /* another task would reap the same events */
    io_uring_for_each_cqe(&ring->uring, head, event)
    {
        aco__io_op_t *op = io_uring_cqe_get_data(event);
        n++;
        if (event->user_data == AWAKE_KEY) {
            ring->watches_wake = (event->flags & IORING_CQE_F_MORE) != 0;
        } else if (event->user_data & 1) {
            io->ring_event(io, event->user_data, event->res, event->flags);
        } else if (event->user_data != NOBODY_KEY) {
            ACO__ASSERT(op->state == IO_OP_SUBMITTED || op->state == IO_OP_CANCELLED); /* it ends once */
            remove_op(op->state == IO_OP_CANCELLED ? &ring->queued : &ring->submitted, op);
            op->state = IO_OP_NEW;
            if (op->is_abandoned)
                count_waiter(io, -1);
            op->done(io, op, event->res);
        }
    }
    io_uring_cq_advance(&ring->uring, n);
    if (ring->owes && !needs_kernel(ring) && !io->unended) {
        ring->owes = 0;
        count_waiter(io, -1);
    }
    ACO__NO_SWITCH_END();
    return n;
}

/* Submits, and has the kernel do what it has put off. The kernel flags what it puts off after having listed it. If it
 * does that in between, the flag stays although nothing is put off any more, until a further operation ends: who looks
 * for it then looks for ever. So it is cleared here; the kernel sets it again if it leaves something. A call that
 * submits may end before it comes to that, so it leaves the flag. */
static int enter_kernel(ring_t *ring)
{
    unsigned *flags = ring->uring.sq.kflags, put_off = 0;
    int n;
    if (!io_uring_sq_ready(&ring->uring))
        put_off = __atomic_fetch_and(flags, ~IORING_SQ_TASKRUN, __ATOMIC_SEQ_CST) & IORING_SQ_TASKRUN;
    n = io_uring_submit_and_get_events(&ring->uring);
    if (n < 0)
        __atomic_fetch_or(flags, put_off, __ATOMIC_SEQ_CST);
    return n;
}

/* What a call for the ring has returned: it lacks memory, or the ends that it keeps must be reaped first. */
static int cannot_take_more(int n)
{
    return n == -EAGAIN || n == -EBUSY;
}

/* Submits what is queued, and has the kernel tell what has ended. 1: all is submitted; 0: the kernel cannot take more
 * now; -1 and errno. */
static int submit_ring(aco__io_t *io)
{
    ring_t *ring = io->ring;
    int n = 0;
    fill_queue(io);
    while (n >= 0 && needs_kernel(ring)) {
        n = enter_kernel(ring);
        fill_queue(io);
        if (n == 0)
            break;
    }
    if (n < 0 && n != -EINTR && !cannot_take_more(n)) {
        errno = -n;
        return -1;
    }
    return is_all_queued(io) && !io_uring_sq_ready(&ring->uring);
}

/* Whether the ring tells of wakes by other threads; it is asked to. Not if its queue is full. */
static int tells_of_wakes(const aco__io_t *io)
{
    ring_t *ring = io->ring;
    struct io_uring_sqe *entry = ring->watches_wake ? NULL : io_uring_get_sqe(&ring->uring);
    if (entry) {
        io_uring_prep_poll_multishot(entry, io->wake, POLLIN);
        io_uring_sqe_set_data64(entry, AWAKE_KEY);
        ring->watches_wake = 1;
    }
    return ring->watches_wake;
}

/* As submit_ring(), and waits. 1; 0: the kernel cannot take more now; -1 and errno. */
static int wait_in_ring(const aco__io_t *io, int64_t deadline)
{
    ring_t *ring = io->ring;
    struct io_uring_cqe *event;
    struct __kernel_timespec limit = {0, 0};
    int64_t left = deadline > 0 ? deadline - aco_now() : 0;
    int n;
    io_uring_cq_eventfd_toggle(&ring->uring, 0);
    if (left > 0) {
        limit.tv_sec = left / SECOND_NS;
        limit.tv_nsec = left % SECOND_NS;
    }
    n = io_uring_submit_and_wait_timeout(&ring->uring, &event, 1, deadline < 0 ? NULL : &limit, NULL);
    if (n >= 0 || n == -EINTR || n == -ETIME || cannot_take_more(n))
        return !cannot_take_more(n);
    errno = -n;
    return -1;
}

/* From now on the eventfd tells. Whether to look again: something has ended meanwhile, or the kernel does not refuse
 * now and something is left for it: what it has put off, or an operation that was interrupted and is queued again. */
static int tell_by_eventfd(const aco__io_t *io, int submitted)
{
    const ring_t *ring = io->ring;
    const struct io_uring_cq *ends = &ring->uring.cq;
    __atomic_fetch_and(ends->kflags, ~(unsigned)IORING_CQ_EVENTFD_DISABLED, __ATOMIC_SEQ_CST);
    if (submitted && !is_all_queued(io))
        return 1;
    return __atomic_load_n(ends->ktail, __ATOMIC_SEQ_CST) != *ends->khead ||
           (submitted && __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_SEQ_CST) & IORING_SQ_TASKRUN);
}

static int ring_turn(aco__io_t *io, int64_t *deadline)
{
    ring_t *ring = io->ring;
    int waits_only_here = io->watches_by_ring || (ring->waiters && io->base.waiters == ring->waiters), submitted;
    if (io->has_poll_fd) /* a foreign loop looks at epoll, so its events must be taken out */
        waits_only_here = 0;
    if (reap_ring(io))
        *deadline = 0;
    fill_queue(io);
    if (*deadline != 0 && waits_only_here && is_all_queued(io) && tells_of_wakes(io)) {
        int waited = wait_in_ring(io, *deadline);
        unsigned ended = waited < 0 ? 0 : reap_ring(io);
        if (waited)
            return waited;
        if (ended) /* it has not waited: epoll does, for a moment */
            *deadline = 0;
    }
    do {
        submitted = submit_ring(io);
        if (submitted < 0)
            return -1;
        if (reap_ring(io))
            *deadline = 0;
    } while ((*deadline != 0 || io->has_poll_fd) && tell_by_eventfd(io, submitted));
    if (!submitted && (*deadline < 0 || *deadline > aco_after(RETRY_NS)))
        *deadline = aco_after(RETRY_NS);
    return *deadline == 0 && waits_only_here;
}

/* ---- The ring's life ---- */

/* The thread ends. The kernel lets go of the operations' memory before it is freed. */
static void ring_close(aco__io_t *io)
{
    ring_t *ring = io->ring;
    aco__io_op_t *op;
    int n = 0;
    while ((op = ring->submitted.first) != NULL)
        (void)aco__io_ring_cancel(io, op);
    for (aco__io_op_t *next = ring->queued.first; (op = next) != NULL;) {
        next = op->next;
        op->is_given_up = 1;
        aco__io_ring_abandon(io, op);
        if (op->state == IO_OP_QUEUED) {
            remove_op(&ring->queued, op);
            op->done(io, op, -ECANCELED);
        }
    }
    while ((ring->queued.first || ring->submitted.first) && (n >= 0 || n == -EINTR || cannot_take_more(n))) {
        fill_queue(io);
        n = io_uring_submit_and_wait(&ring->uring, 1);
        reap_ring(io);
    }
    ACO__ASSERT((!ring->queued.first && !ring->submitted.first) || (n < 0 && n != -EINTR && !cannot_take_more(n)));
    io_uring_queue_exit(&ring->uring);
    aco__system.close(ring->told);
    aco__service_free(ring, ring->sz);
    io->ring = NULL;
}

/* Whether the kernel has all operations that are used. */
static int knows_operations(struct io_uring *uring)
{
    struct io_uring_probe *known = io_uring_get_probe_ring(uring);
    int all = known != NULL;
    for (size_t i = 0; all && i < sizeof operations / sizeof *operations; i++)
        all = io_uring_opcode_supported(known, operations[i]);
    if (known)
        io_uring_free_probe(known);
    return all;
}

/* Makes the ring with the flags that this kernel knows. 0, or an errno. */
static int setup_ring(struct io_uring *uring)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL, 0};
    unsigned workers[2] = {RING_WORKERS, 0};
    struct io_uring_params params;
    int error = EINVAL;
    if (RUNNING_ON_VALGRIND) /* it does not see what the kernel writes */
        return ENOSYS;
    for (size_t i = 0; error == EINVAL && i < sizeof flags / sizeof *flags; i++) {
        memset(&params, 0, sizeof params);
        params.flags = flags[i] | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
        params.cq_entries = RING_COMPLETIONS;
        error = -io_uring_queue_init_params(RING_ENTRIES, uring, &params);
    }
    if (error)
        return error;
    if (params.features & IORING_FEAT_RSRC_TAGS && knows_operations(uring)) { /* 5.13: polls that tell of each edge */
        (void)io_uring_register_iowq_max_workers(uring, workers); /* a kernel without this call has other bounds */
        return 0;
    }
    io_uring_queue_exit(uring);
    return ENOSYS;
}

/* Has the kernel tell of ends by an eventfd, and epoll of that. 0, or an errno. */
static int watch_ring(aco__io_t *io, ring_t *ring)
{
    int error;
    ring->told = aco__system.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->told < 0)
        return errno;
    error = -io_uring_register_eventfd(&ring->uring, ring->told);
    if (!error && aco__io_events_watch(io, ring->told, 0, IO_READS, 0) != 0)
        error = errno;
    if (error)
        aco__system.close(ring->told);
    return error;
}

/* 0, or an errno. */
static int open_ring(aco__io_t *io, const char *call)
{
    size_t sz = sizeof(ring_t);
    ring_t *ring = aco__service_new(&sz, call);
    int error;
    if (!ring)
        return ENOMEM;
    error = setup_ring(&ring->uring);
    if (!error && (error = watch_ring(io, ring)) != 0)
        io_uring_queue_exit(&ring->uring);
    if (error) {
        aco__service_free(ring, sz);
        return error;
    }
    ring->sz = sz;
    io->ring_turn = ring_turn;
    io->ring_close = ring_close;
    io->ring = ring;
    return 0;
}

/* ---- Operations ---- */

struct io_uring_sqe *aco__io_ring_entry(aco__io_t *io)
{
    struct io_uring_sqe *entry = io->unended ? NULL : io_uring_get_sqe(&io->ring->uring);
    if (!entry && submit_ring(io) >= 0 && !io->unended)
        entry = io_uring_get_sqe(&io->ring->uring);
    if (!entry)
        errno = EAGAIN;
    return entry;
}

void aco__io_ring_submit(aco__io_t *io)
{
    if (submit_ring(io) != 0 || io->ring->owes) /* 0: a later turn does, and one will come */
        return;
    io->ring->owes = 1;
    count_waiter(io, 1);
}

void aco__io_ring_settle(aco__io_t *io, int fd)
{
    const aco__io_op_t *op = io->ring->queued.first;
    int error = errno;
    while (op && op->fd != fd)
        op = op->next;
    if (op || io_uring_sq_ready(&io->ring->uring))
        (void)submit_ring(io);
    errno = error;
}

void aco__io_ring_add(aco__io_t *io, aco__io_op_t *op)
{
    ACO__ASSERT(op->state == IO_OP_NEW); /* it stands in no list */
    op->state = IO_OP_QUEUED;
    append_op(&io->ring->queued, op);
}

int aco__io_ring_cancel(aco__io_t *io, aco__io_op_t *op)
{
    if (op->state == IO_OP_SUBMITTED) {
        remove_op(&io->ring->submitted, op);
        append_op(&io->ring->queued, op);
        op->state = IO_OP_CANCELLED;
    } else if (op->state == IO_OP_QUEUED) {
        remove_op(&io->ring->queued, op);
        op->state = IO_OP_NEW;
    }
    return op->state == IO_OP_CANCELLED;
}

void aco__io_ring_abandon(aco__io_t *io, aco__io_op_t *op)
{
    ACO__ASSERT(op->state != IO_OP_NEW && op->is_given_up); /* its end is told, to done() alone */
    if (!op->is_abandoned)
        count_waiter(io, 1);
    op->is_abandoned = 1;
}

static void add_op(void *arg)
{
    aco__io_op_t *op = arg;
    aco__io_ring_add(op->io, op);
    if (op->io->has_poll_fd) /* whoever waits for that does not submit */
        (void)submit_ring(op->io); /* after a failure the next turn does */
}

int aco__io_ring_wait(aco__io_t *io, aco__io_op_t *op, const char *call, int begins, const char *location)
{
    int result;
    ACO__ASSERT(op->state == (begins ? IO_OP_NEW : IO_OP_CANCELLED));
    op->io = io;
    count_waiter(io, 1);
    result = aco__poller_ask(call, &op->wait, &op->queue, NULL, begins ? add_op : NULL, op, location);
    count_waiter(io, -1);
    return result;
}
#else
static int open_ring(const aco__io_t *io, const char *call)
{
    (void)io;
    (void)call;
    return ENOTSUP;
}
#endif

/* ---- Ring or pool ---- */

/* Whether the kernel will say so again; it may only lack descriptors or memory now. */
static int is_final(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS || error == EINVAL || error == ENOTSUP;
}

/* Makes the thread's ring. 0, or an errno. */
static int try_ring(aco__io_t *io, const char *call)
{
    static int refusal; /* the kernel's, for the whole process; under the pool's lock */
    int error;
    if (io->ring || aco__chooser_is_there()) /* no ring is simulated */
        return io->ring ? 0 : ENOSYS;
    aco__io_pool_lock();
    error = refusal ? refusal : open_ring(io, call);
    if (is_final(error))
        refusal = error;
    aco__io_pool_unlock();
    return error;
}

int aco__io_ring_need(aco__io_t *io, const char *variable, const char *call)
{
    char reason[160];
    int error = try_ring(io, call);
    if (!error)
        return 0;
    snprintf(reason, sizeof reason, "%s is uring, but io_uring cannot be had: %s", variable, strerror(error));
    return aco__service_fail(error, call, reason);
}

/* The thread's first operation for a file. */
static int choose_way(aco__io_t *io, const char *call)
{
    static const char variable[] = "ACO_FILES";
    const char *wanted = secure_getenv(variable);
    if (wanted && strcmp(wanted, "uring") == 0) {
        if (aco__io_ring_need(io, variable, call) != 0)
            return -1;
        io->files_by_ring = 1;
    } else if (wanted && *wanted && strcmp(wanted, "pool") != 0) {
        return aco__service_fail(EINVAL, call, "the environment variable ACO_FILES is neither uring nor pool");
    } else if ((!wanted || !*wanted) && try_ring(io, call) == 0) {
        io->files_by_ring = 1;
    }
    io->files_by_pool = !io->files_by_ring;
    return io->files_by_ring;
}

int aco__io_ring(aco__io_t *io, const char *call)
{
    return io->files_by_ring ? 1 : io->files_by_pool ? 0 : choose_way(io, call);
}
