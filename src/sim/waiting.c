/* eventfd, epoll and poll() in virtual time. A call that waits without a limit while nothing is on its way would wait
 * for ever: the run fails. */
#define _GNU_SOURCE /* EPOLLRDNORM */
#include "sim/waiting.h"
#include "sim/arrivals.h"
#include "sim/byte_queue.h"
#include "sim/held.h"
#include "sim/interest.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lets the time pass until the next arrival, at most until `until`, and something arrive. 0; 1: the wait was
 * interrupted; or -1: nothing ever will, and `until` is INT64_MAX; or the run has failed. */
static int pass(aco_sim_t *sim, int64_t until)
{
    if (sim->threads.others) {
        int error = aco__sim_wait(sim, "a wait for descriptors", &sim->opened, until, 0);
        return sim->has_failed ? -1 : error == EINTR;
    }
    if (sim->arrivals.n && sim->arrivals.heap[0].at < until)
        until = sim->arrivals.heap[0].at;
    if (until == INT64_MAX || sim->has_failed)
        return -1;
    aco__sim_jump(sim, until);
    aco__sim_arrive(sim);
    return 0;
}

int aco__sim_must_not_wait(aco_sim_t *sim)
{
    int *tries = &sim->threads.running->chooser.tries;
    if (!*tries)
        return 0;
    *tries = 2;
    errno = EAGAIN;
    return 1;
}

/* As aco__sim_block(), but at most until `until`: then it says nothing. */
static int block_until(aco_sim_t *sim, aco__sim_file_t *file, int64_t until, const char *call)
{
    aco__sim_held_t held;
    int done, is_closed;
    if (aco__sim_must_not_wait(sim))
        return -1;
    aco__sim_hold(sim, &held, file, NULL);
    done = pass(sim, until);
    is_closed = file && !file->descriptors;
    aco__sim_let_go(sim, &held);
    if (is_closed || done == 1)
        return aco__sim_fail_with(is_closed ? EBADF : EINTR);
    if (done == 0 || until != INT64_MAX)
        return done;
    if (!sim->has_failed) {
        (void)aco_tasks_dump(STDERR_FILENO);
        aco__sim_nodes_print(sim);
        aco__sim_fail(sim, "a deadlock: %s() waits for ever: nothing is on its way to a descriptor", call);
    }
    return aco__sim_fail_with(EDEADLK);
}

int aco__sim_block(aco_sim_t *sim, aco__sim_file_t *file, const char *call)
{
    return block_until(sim, file, INT64_MAX, call);
}

/* Negative: never. */
static int64_t after_ms(const aco_sim_t *sim, int milliseconds)
{
    return milliseconds < 0 ? INT64_MAX : aco__sim_after(sim, milliseconds * ACO_MILLISECOND);
}

/* ---- eventfd ---- */

typedef struct counter {
    aco__sim_file_t file;
    uint64_t value;
    int is_semaphore;
} counter_t;

static unsigned counter_events(aco__sim_file_t *file)
{
    uint64_t value = ((counter_t *)file)->value;
    return (value > 0 ? ACO__SIM_READABLE : 0) | (value < UINT64_MAX - 1 ? ACO__SIM_WRITABLE : 0);
}

static ssize_t read_counter(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    counter_t *counter = (counter_t *)file;
    uint64_t value = counter->is_semaphore ? 1 : counter->value;
    aco__sim_bytes_t bytes = {(char *)&value, 0, sizeof value, sizeof value};
    (void)sim, (void)flags;
    if (aco__sim_parts_size(message) < sizeof value || !counter->value)
        return aco__sim_fail_with(aco__sim_parts_size(message) < sizeof value ? EINVAL : EAGAIN);
    counter->value -= value;
    aco__sim_bytes_copy(&bytes, message, sizeof value);
    aco__sim_notify(file, ACO__SIM_WRITABLE);
    return sizeof value;
}

static ssize_t write_counter(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    counter_t *counter = (counter_t *)file;
    uint64_t added;
    (void)sim, (void)flags;
    if (!message->msg_iovlen || message->msg_iov[0].iov_len < sizeof added)
        return aco__sim_fail_with(EINVAL);
    memcpy(&added, message->msg_iov[0].iov_base, sizeof added);
    if (added == UINT64_MAX || added > UINT64_MAX - 1 - counter->value)
        return aco__sim_fail_with(added == UINT64_MAX ? EINVAL : EAGAIN);
    counter->value += added;
    aco__sim_notify(file, ACO__SIM_READABLE);
    return sizeof added;
}

int aco__sim_eventfd(aco_sim_t *sim, unsigned value, int flags)
{
    static const aco__sim_type_t type = {0600, counter_events, read_counter, write_counter, NULL, NULL, NULL};
    counter_t *counter;
    if (flags & ~(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE))
        return aco__sim_fail_with(EINVAL);
    counter = aco__sim_file_new(sim, &type, sizeof *counter, O_RDWR | ((flags & EFD_NONBLOCK) ? O_NONBLOCK : 0));
    if (!counter)
        return -1;
    counter->value = value;
    counter->is_semaphore = flags & EFD_SEMAPHORE;
    return aco__sim_file_open(sim, &counter->file, (flags & EFD_CLOEXEC) ? FD_CLOEXEC : 0, "eventfd");
}

/* ---- epoll ---- */

static unsigned epoll_events(aco__sim_file_t *file)
{
    return aco__sim_has_ready((aco__sim_epoll_t *)file) ? ACO__SIM_READABLE : 0;
}

static void free_epoll(aco__sim_file_t *file)
{
    aco__sim_unwatch_all((aco__sim_epoll_t *)file);
}

static const aco__sim_type_t epoll_type = {0600, epoll_events, NULL, NULL, NULL, free_epoll, NULL};

int aco__sim_is_epoll(const aco__sim_file_t *file)
{
    return file->type == &epoll_type;
}

int aco__sim_epoll_create1(aco_sim_t *sim, int flags)
{
    aco__sim_epoll_t *epoll;
    if (flags & ~EPOLL_CLOEXEC)
        return aco__sim_fail_with(EINVAL);
    epoll = aco__sim_file_new(sim, &epoll_type, sizeof *epoll, O_RDWR);
    if (!epoll)
        return -1;
    aco__links_empty(&epoll->watches);
    aco__links_empty(&epoll->ready);
    return aco__sim_file_open(sim, &epoll->file, flags ? FD_CLOEXEC : 0, "epoll_create1");
}

static aco__sim_epoll_t *epoll_of(aco_sim_t *sim, int fd, const char *call)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, call);
    if (!file || file->type == &epoll_type)
        return (aco__sim_epoll_t *)file;
    return aco__sim_null_with(EINVAL);
}

static aco__sim_watch_t *watch_of(const aco__sim_epoll_t *epoll, const aco__sim_file_t *file, int fd)
{
    ACO__EACH_LINKED(aco__sim_watch_t, watch, &file->watches, of_file)
    if (watch->epoll == epoll && watch->fd == fd)
        return watch;
    return NULL;
}

/* Whether an epoll watches `file`, perhaps by way of others. */
static int reaches(const aco__sim_epoll_t *epoll, const aco__sim_file_t *file)
{
    ACO__EACH_LINKED(aco__sim_watch_t, watch, &epoll->watches, of_epoll)
    if (watch->file == file ||
        (watch->file->type == &epoll_type && reaches((const aco__sim_epoll_t *)watch->file, file)))
        return 1;
    return 0;
}

static int add_watch(aco__sim_epoll_t *epoll, aco__sim_file_t *file, int fd, const struct epoll_event *event)
{
    aco__sim_watch_t *watch;
    int is_loop = file->type == &epoll_type && reaches((const aco__sim_epoll_t *)file, &epoll->file);
    watch = is_loop ? NULL : calloc(1, sizeof *watch);
    if (!watch)
        return aco__sim_fail_with(is_loop ? ELOOP : ENOMEM);
    watch->file = file;
    watch->epoll = epoll;
    watch->fd = fd;
    aco__links_append(&file->watches, &watch->of_file);
    aco__links_append(&epoll->watches, &watch->of_epoll);
    aco__sim_watch(watch, event);
    return 0;
}

int aco__sim_epoll_ctl(aco_sim_t *sim, int epoll, int operation, int fd, struct epoll_event *event)
{
    static const char call[] = "epoll_ctl";
    aco__sim_file_t *first = aco__sim_file_of(sim, epoll, call), *file = first ? aco__sim_file_of(sim, fd, call) : NULL;
    aco__sim_epoll_t *of = file ? epoll_of(sim, epoll, call) : NULL;
    aco__sim_watch_t *watch;
    if (!of)
        return -1;
    watch = watch_of(of, file, fd);
    if (file == &of->file || operation < EPOLL_CTL_ADD || operation > EPOLL_CTL_MOD)
        return aco__sim_fail_with(EINVAL);
    if (!watch == (operation != EPOLL_CTL_ADD))
        return aco__sim_fail_with(watch ? EEXIST : ENOENT);
    if (S_ISREG(file->type->mode) || S_ISDIR(file->type->mode))
        return aco__sim_fail_with(EPERM);
    if (operation == EPOLL_CTL_ADD)
        return add_watch(of, file, fd, event);
    if (operation == EPOLL_CTL_DEL)
        aco__sim_watch_free(watch);
    else
        aco__sim_watch(watch, event);
    return 0;
}

/* `until`: INT64_MAX: for ever. */
static int epoll_wait_until(aco_sim_t *sim, int fd, struct epoll_event *events, int room, int64_t until,
                            const char *call)
{
    aco__sim_epoll_t *epoll = epoll_of(sim, fd, call);
    int n;
    if (!epoll)
        return -1;
    if (room <= 0)
        return aco__sim_fail_with(EINVAL);
    while ((n = aco__sim_collect(epoll, events, room)) == 0 && sim->now < until)
        if (block_until(sim, &epoll->file, until, call) != 0)
            return until == INT64_MAX || errno == EINTR ? -1 : 0;
    return n;
}

int aco__sim_epoll_wait(aco_sim_t *sim, int epoll, struct epoll_event *events, int room, int milliseconds)
{
    return epoll_wait_until(sim, epoll, events, room, after_ms(sim, milliseconds), "epoll_wait");
}

int aco__sim_epoll_pwait2(aco_sim_t *sim, int epoll, struct epoll_event *events, int room, const struct timespec *limit)
{
    int64_t until = limit ? aco__sim_after(sim, aco__sim_nanoseconds(limit)) : INT64_MAX;
    return epoll_wait_until(sim, epoll, events, room, until, "epoll_pwait2");
}

/* ---- poll() ---- */

static int look(aco_sim_t *sim, struct pollfd *fds, nfds_t n)
{
    int ready = 0;
    for (nfds_t i = 0; i < n; i++) {
        aco__sim_file_t *file = fds[i].fd < 0 ? NULL : aco__sim_file_of(sim, fds[i].fd, "poll");
        unsigned wanted = (unsigned short)fds[i].events | POLLERR | POLLHUP; /* EPOLL… have the numbers of POLL… */
        fds[i].revents = file ? (short)(file->type->events(file) & wanted) : fds[i].fd < 0 ? 0 : POLLNVAL;
        ready += fds[i].revents != 0;
    }
    return ready;
}

int aco__sim_poll(aco_sim_t *sim, struct pollfd *fds, nfds_t n, int milliseconds)
{
    int64_t until = after_ms(sim, milliseconds);
    int ready;
    while ((ready = look(sim, fds, n)) == 0 && sim->now < until)
        if (block_until(sim, NULL, until, "poll") != 0)
            return until == INT64_MAX || errno == EINTR ? -1 : 0;
    return ready;
}
