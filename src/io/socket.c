/* Listening, binding, accepting; options and addresses of sockets. */
#define _GNU_SOURCE /* accept4() */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "base/reserved.h"
#include "io/address.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "io/linux_bsd.h"
#include "io/socket.h"
#include "system/system.h"

#include "aco/detail/chooser.h"
#include "aco/detail/poller.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST_BACKLOG = 65535 };

/* ---- Options ---- */

int aco__io_check_options(const char *call, const aco_io_options_t *options)
{
    const unsigned known =
        ACO_IO_REUSEPORT | ACO_IO_KEEPALIVE | ACO_IO_DELAY | ACO_IO_ONLY_IPV6 | ACO_IO_ALL_PROCESSES;
    if (!options || (!(options->flags & ~known) && options->backlog >= 0 && !ACO__RESERVED_IS_SET(options)))
        return 0;
    return aco__service_fail(EINVAL, call,
                             options->flags & ~known ? "unknown flags"
                             : options->backlog < 0  ? "the backlog is negative"
                                                     : "a reserved option is not 0");
}

static int set(int fd, int level, int option, int value)
{
    return aco__system.setsockopt(fd, level, option, &value, sizeof value);
}

/* 0, or -1 and errno. */
static int set_options(int fd, const aco__io_address_t *address, unsigned flags, int passive)
{
    int is_tcp = aco__io_is_tcp(address), family = address->is.any.sa_family;
    if ((flags & ACO_IO_KEEPALIVE && set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) != 0) ||
        (is_tcp && !(flags & ACO_IO_DELAY) && set(fd, IPPROTO_TCP, TCP_NODELAY, 1) != 0))
        return -1;
    if (family == AF_UNIX || !passive)
        return 0;
    if (family == AF_INET6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY, (flags & ACO_IO_ONLY_IPV6) != 0) != 0)
        return -1;
    return (is_tcp && set(fd, SOL_SOCKET, SO_REUSEADDR, 1) != 0) ||
                   (flags & ACO_IO_REUSEPORT && set(fd, SOL_SOCKET, SO_REUSEPORT, 1) != 0)
               ? -1
               : 0;
}

int aco__io_give_up(int fd)
{
    int error = errno;
    (void)aco_io_close(fd);
    errno = error;
    return -1;
}

int aco__io_socket_for(const aco__io_address_t *address, unsigned flags, int passive)
{
    int fd = aco__io_new_socket(address->is.any.sa_family, address->type);
    return fd >= 0 && set_options(fd, address, flags, passive) != 0 ? aco__io_give_up(fd) : fd;
}

/* The address of this choice (aco__io_parse()). 0; or -1 and errno: if there is no such choice, `before`, the failure
 * of the one before. */
static int address_for(const char *call, aco__io_address_t *address, const char *network, const char *host,
                       const char *port, int passive, int choice, int before)
{
    if (aco__io_parse(address, network, host, port, passive, choice) == 0)
        return 0;
    if (errno == ENOENT)
        errno = before;
    return aco__io_fail_address(call, network, host, port, address->problem);
}

/* ---- Listening ---- */

static int bind_with(const aco__io_address_t *address, unsigned flags)
{
    int fd = aco__io_socket_for(address, flags, 1);
    return fd < 0 || aco__system.bind(fd, &address->is.any, address->length) == 0 ? fd : aco__io_give_up(fd);
}

static int listen_with(const aco__io_address_t *address, unsigned flags, int backlog)
{
    int fd = bind_with(address, flags);
    return fd < 0 || address->type == SOCK_DGRAM || aco__system.listen(fd, backlog ? backlog : LARGEST_BACKLOG) == 0
               ? fd
               : aco__io_give_up(fd);
}

#ifdef __linux__
static int is_any_host(const aco__io_address_t *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->is.storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->is.storage;
    return address->is.any.sa_family == AF_INET ? in->sin_addr.s_addr == htonl(INADDR_ANY)
                                                : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* 0 also on failure. */
static int option_of(int fd, int level, int option)
{
    int value = 0;
    socklen_t length = sizeof value;
    return aco__system.getsockopt(fd, level, option, &value, &length) == 0 ? value : 0;
}

/* Whether nobody else can have the address while a socket of ours holds its own: it is the same, or one of those that
 * "any host" stands for. Another one says nothing: a different process may hold this one beside it. */
static int covers(int fd, const aco__io_address_t *own, const aco__io_address_t *address, unsigned flags)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->is.storage;
    int is_ipv6 = address->is.any.sa_family == AF_INET6;
    if (!is_any_host(own))
        return memcmp(&own->is, &address->is, own->length) == 0;
    if (own->is.any.sa_family == AF_INET)
        return !is_ipv6;
    return !option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) ||
           (is_ipv6 && !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && (!is_any_host(address) || flags & ACO_IO_ONLY_IPV6));
}

/* Whether this is a socket that holds the address, and lets others with SO_REUSEPORT have it. */
static int shares(int fd, const aco__io_address_t *address, unsigned flags)
{
    aco__io_address_t own;
    memset(&own, 0, sizeof own);
    own.length = sizeof own.is.storage;
    return option_of(fd, SOL_SOCKET, SO_REUSEPORT) && option_of(fd, SOL_SOCKET, SO_TYPE) == address->type &&
           (address->type == SOCK_DGRAM || option_of(fd, SOL_SOCKET, SO_ACCEPTCONN)) &&
           aco__system.getsockname(fd, &own.is.any, &own.length) == 0 && aco__io_port(&own) == aco__io_port(address) &&
           covers(fd, &own, address, flags);
}

/* Whether the process has such a socket, of any thread and whoever made it. Without /proc nobody knows: 1. In a
 * simulation nobody else has one: 1. -1 and errno: it could not be read. */
static int process_shares(const aco__io_address_t *address, unsigned flags)
{
    int is_simulated = aco__chooser_is_there(), found = 0, error = 0;
    DIR *dir = is_simulated ? NULL : aco__system.opendir("/proc/self/fd");
    const struct dirent *entry;
    if (is_simulated)
        return 1;
    if (!dir)
        return aco__io_lacks_room(errno) ? -1 : 1;
    while (!found && !error) {
        errno = 0;
        entry = aco__system.readdir(dir);
        error = entry ? 0 : errno;
        if (!entry)
            break;
        found = entry->d_name[0] != '.' && shares((int)strtol(entry->d_name, NULL, 10), address, flags);
    }
    aco__system.closedir(dir);
    errno = error;
    return error ? -1 : found;
}

/* For what process_shares() returned, but 1. */
static int is_in_use(int shared)
{
    if (shared == 0)
        errno = EADDRINUSE;
    return -1;
}

/* Any host of both families, of which the process has IPv4's. IPv6's is taken alone first, and held until it is shared.
 * -1 and errno. */
static int listen_beside_ipv4(const aco__io_address_t *address, unsigned flags, int backlog)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->is.storage;
    aco__io_address_t ipv4 = {.type = address->type, .length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&ipv4.is.storage;
    int fd = -1, ipv6, shared;
    in->sin_family = AF_INET;
    in->sin_port = in6->sin6_port;
    shared = process_shares(&ipv4, 0);
    if (shared <= 0)
        return is_in_use(shared);
    shared = process_shares(address, ACO_IO_ONLY_IPV6);
    if (shared)
        return shared < 0 ? -1 : listen_with(address, flags, backlog);
    ipv6 = bind_with(address, (flags & ~(unsigned)ACO_IO_REUSEPORT) | ACO_IO_ONLY_IPV6);
    if (ipv6 < 0)
        return -1;
    if (set(ipv6, SOL_SOCKET, SO_REUSEPORT, 1) == 0)
        fd = listen_with(address, flags, backlog);
    (void)aco__io_give_up(ipv6);
    return fd;
}

static int listen_beside_own(const aco__io_address_t *address, unsigned flags, int backlog)
{
    int shared = process_shares(address, flags);
    if (shared > 0)
        return listen_with(address, flags, backlog);
    if (!shared && address->is.any.sa_family == AF_INET6 && is_any_host(address) && !(flags & ACO_IO_ONLY_IPV6))
        return listen_beside_ipv4(address, flags, backlog);
    return is_in_use(shared);
}

/* With SO_REUSEPORT the system lets any process of the user share the port. So the first listener of the process takes
 * it alone, and may be shared from then on: a second start of the program fails. */
static int listen_in_process(const aco__io_address_t *address, unsigned flags, int backlog)
{
    int fd;
    aco__io_pool_lock(); /* another thread may be on the way to be the first */
    fd = listen_with(address, flags & ~(unsigned)ACO_IO_REUSEPORT, backlog);
    if (fd < 0 && errno == EADDRINUSE)
        fd = listen_beside_own(address, flags, backlog);
    else if (fd >= 0 && set(fd, SOL_SOCKET, SO_REUSEPORT, 1) != 0)
        fd = aco__io_give_up(fd);
    aco__io_pool_unlock();
    return fd;
}
#else /* SO_REUSEPORT must be there before bind() */
static int listen_in_process(const aco__io_address_t *address, unsigned flags, int backlog)
{
    return listen_with(address, flags, backlog);
}
#endif

static int listen_at(const aco__io_address_t *address, const aco_io_options_t *options)
{
    unsigned flags = options ? options->flags : 0;
    int backlog = options ? options->backlog : 0, family = address->is.any.sa_family;
    return flags & ACO_IO_REUSEPORT && !(flags & ACO_IO_ALL_PROCESSES) && family != AF_UNIX
               ? listen_in_process(address, flags, backlog)
               : listen_with(address, flags, backlog);
}

/* A socket that is bound, and listens if it is for connections. */
static int bound_socket(const char *call, const char *network, const char *host, const char *port,
                        const aco_io_options_t *options, int datagrams)
{
    aco__io_t *io = aco__io_get(call);
    aco__io_address_t address;
    int fd = -1;
    if (!io || aco__io_check_options(call, options) != 0)
        return -1;
    for (int choice = 0; fd < 0; choice++) {
        if (address_for(call, &address, network, host, port, 1, choice, errno) != 0)
            return -1;
        if ((address.type == SOCK_DGRAM) != datagrams) {
            errno = EINVAL;
            return aco__io_fail_address(call, network, host, port,
                                datagrams ? "the network is for connections" : "the network is for datagrams");
        }
        fd = listen_at(&address, options);
        if (fd < 0 && errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL) /* not for want of IPv6 */
            return aco__io_fail_address(call, network, host, port, NULL);
    }
    (void)aco__io_own(io, fd, 1, aco__io_is_tcp(&address), call);
    return fd;
}

int aco_io_listen(const char *network, const char *host, const char *port, const aco_io_options_t *options)
{
    return bound_socket("aco_io_listen", network, host, port, options, 0);
}

int aco_io_bind(const char *network, const char *host, const char *port, const aco_io_options_t *options)
{
    return bound_socket("aco_io_bind", network, host, port, options, 1);
}

/* Whether a connection failed before it was accepted; its errors are reported by accept(). */
static int is_of_connection(int error)
{
#ifdef ENONET /* Linux */
    if (error == ENONET)
        return 1;
#endif
    return error == EINTR || error == ECONNABORTED || error == EPROTO || error == ENETDOWN || error == ENOPROTOOPT ||
           error == EHOSTDOWN || error == EHOSTUNREACH || error == ENETUNREACH;
}

ACO__SWITCHES static int accept_one(aco__io_t *io, aco__io_fd_t *d, const char *call, const char *location)
{
    int64_t ns = 0;
    for (;;) {
        int fd = aco__io_accept(d->fd);
        if (fd >= 0)
            return fd;
        if (is_of_connection(errno))
            continue;
        if (errno != EAGAIN && !aco__io_lacks_room(errno))
            return aco__io_fail(call, d->fd);
        if (errno == EAGAIN ? aco__io_park(io, d, IO_READ, ACO_FOREVER, call, location) != 0
                            : aco__io_pause(io, d, &ns, call, location) != 0)
            return -1;
    }
}

int aco_io_accept_at(int fd, const char *location)
{
    static const char call[] = "aco_io_accept";
    aco__io_t *io = aco__io_get(call);
    aco__io_fd_t *d = io ? aco__io_enter(io, fd, call) : NULL;
    int connection, is_tcp;
    if (!d)
        return -1;
    connection = accept_one(io, d, call, location);
    is_tcp = d->is_tcp;
    aco__io_leave(d);
    if (connection >= 0)
        (void)aco__io_own(io, connection, 1, is_tcp, call);
    return connection;
}

/* ---- Addresses ---- */

static int address_of(int (*get)(int, struct sockaddr *, socklen_t *), int fd, char *text, size_t size,
                      const char *call)
{
    aco__io_address_t address;
    memset(&address, 0, sizeof address);
    address.length = sizeof address.is.storage;
    if (get(fd, &address.is.any, &address.length) != 0 ||
        aco__io_format(&address.is.any, address.length, text, size) != 0)
        return aco__io_fail(call, fd);
    return 0;
}

int aco_io_local_address(int fd, char *text, size_t size)
{
    return address_of(aco__system.getsockname, fd, text, size, "aco_io_local_address");
}

int aco_io_peer_address(int fd, char *text, size_t size)
{
    return address_of(aco__system.getpeername, fd, text, size, "aco_io_peer_address");
}

int aco_io_address_of_text(const char *network, const char *host, const char *port, struct sockaddr_storage *address,
                           socklen_t *length)
{
    aco__io_address_t parsed;
    if (address_for("aco_io_address_of_text", &parsed, network, host, port, 0, 0, 0) != 0)
        return -1;
    *address = parsed.is.storage;
    *length = parsed.length;
    return 0;
}

int aco_io_text_of_address(const struct sockaddr *address, socklen_t length, char *text, size_t size)
{
    return aco__io_format(address, length, text, size) == 0
               ? 0
               : aco__service_fail(errno, "aco_io_text_of_address", strerror(errno));
}

int aco_io_shutdown(int fd, int how)
{
    return aco__system.shutdown(fd, how) == 0 ? 0 : aco__io_fail("aco_io_shutdown", fd);
}
