/* Dialling. A name may have several addresses, of which some do not answer. They are tried one after the other, the
 * next one when the one before has failed or after 250 ms, and the first connection is taken (RFC 8305, "happy
 * eyeballs", without its separate lookups for IPv4 and IPv6). */
#include "base/invariants.h"
#include "io/address.h"
#include "io/descriptor.h"
#include "io/names_internal.h"
#include "io/socket.h"
#include "system/system.h"

#include "aco/detail/poller.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

static const int64_t STAGGER_NS = 250 * ACO_MILLISECOND; /* RFC 8305, section 5 */

/* The outcome of connect(): 1: connected, 0: not yet; -1 and errno. */
static int outcome(int fd)
{
    int error = 0, is_ready = aco__io_look(fd, POLLOUT);
    socklen_t length = sizeof error;
    if (is_ready <= 0)
        return is_ready;
    if (aco__system.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return -1;
    errno = error;
    return error ? -1 : 1;
}

/* A wait for it has failed with errno, perhaps because the scope had ended before. 1: it is connected all the same; or
 * -1 and that errno. */
static int last_outcome(const aco__io_fd_t *d)
{
    int error = errno, result = d->closed ? -1 : outcome(d->fd);
    errno = error;
    return result > 0 ? 1 : -1;
}

/* ---- One address ---- */

ACO__SWITCHES
static int connect_to(aco__io_t *io, aco__io_fd_t *d, const struct sockaddr *address, socklen_t length,
                      const char *call, const char *location)
{
    int64_t ns = 0;
    int result = 0;
    while (aco__system.connect(d->fd, address, length) != 0) {
        if (errno == EINPROGRESS || errno == EALREADY || errno == EINTR) {
            while (result == 0)
                result =
                    aco__io_park(io, d, IO_WRITE, ACO_FOREVER, call, location) == 0 ? outcome(d->fd) : last_outcome(d);
            return result > 0 ? 0 : -1;
        }
        if (errno != EAGAIN || address->sa_family != AF_UNIX) /* EAGAIN: a full backlog; no event will tell of room */
            return -1;
        if (aco__io_pause(io, d, &ns, call, location) != 0)
            return -1;
    }
    return 0;
}

int aco_io_connect_at(int fd, const struct sockaddr *address, socklen_t length, const char *location)
{
    static const char call[] = "aco_io_connect";
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter(io, fd, call) : NULL;
    int result;
    if (!d)
        return -1;
    result = connect_to(io, d, address, length, call, location);
    if (result == 0)
        d->lost = 0; /* that was a connection before, or an attempt */
    aco__io_leave(d);
    return result == 0 ? 0 : aco__io_fail(call, fd);
}

/* A new socket for the address, in use. NULL and errno. */
ACO__SWITCHES
static aco__io_fd_t *new_socket(aco__io_t *io, const aco__io_address_t *address, unsigned flags, const char *call)
{
    int fd = aco__io_socket_for(address, flags, 0);
    aco__io_fd_t *d;
    if (fd < 0)
        return NULL;
    (void)aco__io_own(io, fd, 1, aco__io_is_tcp(address), call);
    d = aco__io_enter(io, fd, call);
    if (!d)
        aco__io_give_up(fd);
    return d;
}

/* Ends the use of a socket: its descriptor. */
static int leave(aco__io_fd_t *d)
{
    int fd = d->fd;
    aco__io_leave(d);
    return fd;
}

/* Whether a new connection leads to another socket; else errno is ECONNREFUSED, and the socket is to be closed. The
 * system may give it the very port that it dials, if nobody listens there: its own SYN is then the answer
 * ("simultaneous open", RFC 9293, 3.5). The close is a reset, or the port would not be free for a minute. */
static int has_peer(const aco__io_fd_t *d)
{
    static const struct linger resets = {1, 0};
    struct sockaddr_storage ends[2];
    socklen_t lengths[2] = {sizeof *ends, sizeof *ends};
    memset(ends, 0, sizeof ends);
    if (!d->is_tcp || aco__system.getsockname(d->fd, (struct sockaddr *)&ends[0], &lengths[0]) != 0 ||
        aco__system.getpeername(d->fd, (struct sockaddr *)&ends[1], &lengths[1]) != 0 || lengths[0] != lengths[1] ||
        memcmp(&ends[0], &ends[1], lengths[0]) != 0)
        return 1;
    (void)aco__system.setsockopt(d->fd, SOL_SOCKET, SO_LINGER, &resets, sizeof resets);
    errno = ECONNREFUSED;
    return 0;
}

ACO__SWITCHES
static int dial_one(aco__io_t *io, const aco__io_address_t *address, unsigned flags, const char *call,
                    const char *location)
{
    aco__io_fd_t *d = new_socket(io, address, flags, call);
    if (!d)
        return -1;
    if (connect_to(io, d, &address->is.any, address->length, call, location) == 0 && has_peer(d))
        return leave(d);
    return aco__io_give_up(leave(d));
}

/* ---- Several ---- */

/* Waiting records are here, for the task may be on a share stack. */
typedef struct race {
    aco__io_t *io;
    aco__io_targets_t *targets;
    unsigned flags;
    const char *call, *location;
    size_t next;                /* the target to try next, */
    int64_t next_at;            /* and when */
    size_t n;                   /* attempts under way */
    aco__io_fd_t *attempts[IO_MOST_TARGETS];
    aco__io_address_t *targets_of[IO_MOST_TARGETS];
    aco__waiter_t places[IO_MOST_TARGETS];
    aco__wait_t wait;
    int error;                  /* of the failure that tells most; 0: none yet */
    const aco__io_address_t *failed;
    size_t sz;
} race_t;

/* Whether the machine itself cannot use the address: probably it has no network of that family. */
static int is_for_want_of_network(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

/* An attempt has failed with errno. */
static void note_failure(race_t *race, const aco__io_address_t *address)
{
    if (race->error && !is_for_want_of_network(race->error))
        return;
    race->error = errno;
    race->failed = address;
}

/* The attempt is over: the socket if it has won, else -1. */
static int end_attempt(race_t *race, size_t i, int has_won)
{
    aco__io_address_t *address = race->targets_of[i];
    int fd;
    has_won = has_won && has_peer(race->attempts[i]);
    fd = leave(race->attempts[i]);
    race->n--;
    race->attempts[i] = race->attempts[race->n];
    race->targets_of[i] = race->targets_of[race->n];
    if (has_won)
        return fd;
    note_failure(race, address);
    race->next_at = 0;
    return aco__io_give_up(fd);
}

/* Begins with the next target. A socket that is connected at once, else -1. */
ACO__SWITCHES static int begin_attempt(race_t *race)
{
    aco__io_address_t *address = &race->targets->at[race->next++];
    aco__io_fd_t *d = new_socket(race->io, address, race->flags, race->call);
    if (!d) {
        note_failure(race, address);
        return -1;
    }
    race->next_at = aco_after(STAGGER_NS);
    race->attempts[race->n] = d;
    race->targets_of[race->n++] = address;
    if (aco__system.connect(d->fd, &address->is.any, address->length) == 0)
        return end_attempt(race, race->n - 1, 1);
    return errno == EINPROGRESS || errno == EINTR ? -1 : end_attempt(race, race->n - 1, 0);
}

/* Looks at all attempts: a socket that is connected, or -1. */
static int look_at_attempts(race_t *race)
{
    for (size_t i = race->n; i-- > 0;) {
        int result = outcome(race->attempts[i]->fd);
        if (result != 0) {
            int fd = end_attempt(race, i, result > 0);
            if (fd >= 0)
                return fd;
        }
    }
    return -1;
}

/* Waits for an attempt, or until it is time for the next one. 0, or -1 and errno. */
ACO__SWITCHES static int wait_for_attempts(race_t *race)
{
    int64_t until = race->next < race->targets->n ? race->next_at : ACO_FOREVER;
    if (aco__io_park_any(race->io, race->attempts, NULL, race->places, race->n, &race->wait, until, race->call,
                         race->location) == 0)
        return 0;
    return errno == ETIMEDOUT && until != ACO_FOREVER && aco_check_cancelled() == 0 ? 0 : -1;
}

/* The first connection, or -1 and errno. */
ACO__SWITCHES static int run_race(race_t *race)
{
    int fd = -1;
    while (fd < 0) {
        if (race->next < race->targets->n && (!race->n || aco_now() >= race->next_at)) {
            fd = begin_attempt(race);
        } else if (!race->n) {
            errno = race->error;
            return -1;
        } else {
            int error = wait_for_attempts(race) == 0 ? 0 : errno;
            size_t before = race->n;
            fd = look_at_attempts(race);
            if (error && fd < 0 && race->n == before) {
                race->failed = NULL; /* not for its sake */
                errno = error;
                return -1;
            }
        }
    }
    return fd;
}

static void close_attempts(race_t *race)
{
    int error = errno;
    for (size_t i = 0; i < race->n; i++)
        (void)aco_io_close(leave(race->attempts[i]));
    errno = error;
}

/* *failed: the target whose failure errno is; NULL: no target's. */
ACO__SWITCHES
static int dial_any(aco__io_t *io, aco__io_targets_t *targets, unsigned flags, const aco__io_address_t **failed,
                    const char *call, const char *location)
{
    size_t sz = sizeof(race_t);
    race_t *race = aco__service_new(&sz, call);
    int fd;
    if (!race)
        return -1;
    race->io = io;
    race->targets = targets;
    race->flags = flags;
    race->call = call;
    race->location = location;
    race->sz = sz;
    fd = run_race(race);
    close_attempts(race);
    *failed = race->failed;
    aco__service_free(race, race->sz);
    return fd;
}

/* A name has several addresses: the message says which one it is about. */
static int fail_dial(const char *network, const char *host, const char *port, const aco__io_address_t *failed,
                     const char *call)
{
    char problem[ACO_IO_ADDRESS_SIZE + 64];
    int error = errno;
    size_t n;
    if (!failed)
        return aco__io_fail_address(call, network, host, port, NULL);
    (void)aco__io_format(&failed->is.any, failed->length, problem, ACO_IO_ADDRESS_SIZE);
    n = strlen(problem);
    snprintf(problem + n, sizeof problem - n, ": %s", strerror(error));
    errno = error;
    return aco__io_fail_address(call, network, host, port, problem);
}

int aco_io_dial_at(const char *network, const char *host, const char *port, const aco_io_options_t *options,
                   const char *location)
{
    static const char call[] = "aco_io_dial";
    aco__io_t *io = aco__io_get(call);
    const aco__io_address_t *failed = NULL;
    aco__io_targets_t *targets;
    unsigned flags = options ? options->flags : 0;
    int fd;
    if (!io || aco__io_check_options(call, options) != 0)
        return -1;
    targets = aco__io_targets(call, network, host, port, location);
    if (!targets)
        return -1;
    fd = targets->n == 1 ? dial_one(io, &targets->at[0], flags, call, location)
                         : dial_any(io, targets, flags, &failed, call, location);
    if (fd < 0 && (failed || targets->n == 1)) {
        if (aco__io_families_of_name(network, host) >= 0)
            failed = failed ? failed : &targets->at[0];
        fail_dial(network, host, port, failed, call);
    }
    aco__service_free(targets, targets->sz);
    return fd;
}
