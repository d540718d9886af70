/* Makes the calls of socket_calls.h through the system's table, and writes for each one line of what it did: result,
 * error, bytes, addresses, and which descriptors are ready afterwards. What differs from world to world on purpose has
 * other names there: descriptors are slots, ports are numbered in the order in which they were seen, an address is
 * "any" or "loopback". */
#ifndef SOCKET_WORLD_H
#define SOCKET_WORLD_H

#include "socket_calls.h"

#include "system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { LINE = 320, MOST_PORTS = 64, NO_FD = 100000 /* a number that no descriptor has */, BUFFER = 16384 };
enum { SOCKET_VARIANTS = 16 };
enum { OPEN_PIPE = SOCKET_KINDS, OPEN_EVENTFD, OPEN_EPOLL, OPEN_NOTHING };

typedef struct address {
    struct sockaddr_storage is;
    socklen_t length;
} address_t;

typedef struct world {
    uint32_t loopback;            /* the IPv4 address to bind to */
    void (*settle)(const struct world *w,
                   int packets); /* what was sent arrives; at most so many packets, each an answer to the one before */
    int fd[SLOTS];
    int kind[SLOTS]; /* of the open descriptor: SOCKET_..., OPEN_... */
    int file[SLOTS], files; /* which file it is, of how many: descriptors may share one */
    char listens[SLOTS], has_begun[SLOTS], has_edges[SLOTS]; /* has_begun: a connection. has_edges: EPOLLET */
    char has_name[SLOTS]; /* TCP: at `loopback`: no earlier sequence has left a connection there */
    int (*leaves_out)(struct world *w, const call_t *call); /* whether the call is not made; or NULL */
    address_t gone[SOCKET_KINDS]; /* of a socket of the kind that was closed; length 0: none */
    unsigned ports[MOST_PORTS];
    int ports_n;
    unsigned char next; /* the next byte to send */
    char has_met_itself; /* a socket is connected to itself, by chance */
    char lines[MOST_CALLS][LINE];
    char *line;
    int line_n;
} world_t;

static inline __attribute__((format(printf, 2, 3))) void say(world_t *w, const char *format, ...)
{
    va_list list;
    int n;
    va_start(list, format);
    n = vsnprintf(w->line + w->line_n, (size_t)(LINE - w->line_n), format, list);
    va_end(list);
    w->line_n = n < LINE - w->line_n ? w->line_n + n : LINE - 1;
}

/* The call's result. */
static inline void answer(world_t *w, int64_t result)
{
    if (result < 0)
        say(w, " = %s", strerror(errno));
    else
        say(w, " = %lld", (long long)result);
}

static inline int is_socket(int kind)
{
    return kind < SOCKET_KINDS;
}

static inline int is_inet(int kind)
{
    return kind <= SOCKET_UDP6;
}

static inline int is_tcp(int kind)
{
    return kind == SOCKET_TCP || kind == SOCKET_TCP6;
}

static inline int is_ipv6(int kind)
{
    return kind == SOCKET_TCP6 || kind == SOCKET_UDP6;
}

static inline int fd_of(const world_t *w, int slot)
{
    return w->fd[slot] < 0 ? NO_FD : w->fd[slot];
}

enum { WANTS_ANY, WANTS_SOCKET, WANTS_EPOLL, WANTS_LISTENER };

static inline int suits(const world_t *w, int slot, int wanted)
{
    int kind = w->kind[slot];
    return w->fd[slot] >= 0 &&
           (wanted == WANTS_ANY || (wanted == WANTS_SOCKET && is_socket(kind)) ||
            (wanted == WANTS_EPOLL && kind == OPEN_EPOLL) || (wanted == WANTS_LISTENER && w->listens[slot]));
}

/* The first slot from this one on that suits. Else this one. */
static inline unsigned char suitable_slot(const world_t *w, int slot, int wanted)
{
    for (int i = 0; i < SLOTS; i++)
        if (suits(w, (slot + i) % SLOTS, wanted))
            return (unsigned char)((slot + i) % SLOTS);
    return (unsigned char)slot;
}

/* A slot for a new descriptor; -1: all are in use. */
static inline int free_slot(const world_t *w, int slot)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->fd[(slot + i) % SLOTS] < 0)
            return (slot + i) % SLOTS;
    return -1;
}

/* For all descriptors of the slot's file. */
static inline void mark(const world_t *w, char *marks, int slot)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->file[i] == w->file[slot])
            marks[i] = 1;
}

static inline void opened(world_t *w, int slot, int kind, int fd)
{
    answer(w, fd < 0 ? fd : slot);
    w->fd[slot] = fd;
    w->kind[slot] = fd < 0 ? OPEN_NOTHING : kind;
    w->file[slot] = ++w->files;
    w->listens[slot] = w->has_begun[slot] = w->has_edges[slot] = w->has_name[slot] = 0;
}

static inline int set_option(const world_t *w, int slot, int level, int option, int value)
{
    return aco__system.setsockopt(fd_of(w, slot), level, option, &value, sizeof value);
}

/* No answer may depend on a clock or on the machine: small writes are sent at once, buffers have one size. */
static inline void prepare_socket(const world_t *w, int slot)
{
    if (is_tcp(w->kind[slot]))
        set_option(w, slot, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(w, slot, SOL_SOCKET, SO_SNDBUF, BUFFER);
    set_option(w, slot, SOL_SOCKET, SO_RCVBUF, BUFFER);
}

/* ---- Addresses ---- */

static inline int number_of_port(world_t *w, int kind, unsigned port)
{
    unsigned key = port << 1 | (unsigned)is_tcp(kind);
    int i = 0;
    while (i < w->ports_n && w->ports[i] != key)
        i++;
    if (i == w->ports_n && i < MOST_PORTS)
        w->ports[w->ports_n++] = key;
    return i;
}

static inline unsigned port_of(const address_t *address) /* IPv4's is at the same place */
{
    return ntohs(((const struct sockaddr_in6 *)(const void *)&address->is)->sin6_port);
}

/* The IPv4 address; of IPv6's, what it stands for; 0: any. */
static inline uint32_t host_of(const address_t *address, uint32_t loopback)
{
    const struct in6_addr *ip = &((const struct sockaddr_in6 *)(const void *)&address->is)->sin6_addr;
    uint32_t host;
    if (address->is.ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)&address->is)->sin_addr.s_addr);
    if (IN6_IS_ADDR_UNSPECIFIED(ip))
        return 0;
    if (!IN6_IS_ADDR_V4MAPPED(ip))
        return loopback;
    memcpy(&host, &ip->s6_addr[12], sizeof host);
    return ntohl(host);
}

static inline int is_mapped(const address_t *address)
{
    return address->is.ss_family == AF_INET6 &&
           IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)(const void *)&address->is)->sin6_addr);
}

static inline void say_address(world_t *w, int kind, const address_t *address)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->is;
    if (address->length == 0)
        say(w, " no address");
    else if (address->is.ss_family == AF_UNIX && address->length == sizeof(sa_family_t))
        say(w, " no name");
    else if (address->is.ss_family == AF_UNIX && address->length == sizeof(sa_family_t) + 6)
        say(w, " a name of the system");
    else if (address->is.ss_family == AF_UNIX)
        say(w, " name %c", un->sun_path[address->length - sizeof(sa_family_t) - 1]);
    else if (address->is.ss_family == AF_INET || address->is.ss_family == AF_INET6)
        say(w, "%s%s %s", address->is.ss_family == AF_INET6 ? " IPv6" : "", is_mapped(address) ? " mapped" : "",
            host_of(address, 1) ? "loopback" : "any");
    else
        say(w, " family %d of %d bytes", (int)address->is.ss_family, (int)address->length);
    if (address->length && address->is.ss_family != AF_UNIX && port_of(address))
        say(w, " port %d", number_of_port(w, kind, port_of(address)));
}

/* An address for this kind of socket. `host` 0: any; IPv6's loopback address, if that is not to be a mapped one. */
static inline void set_inet(address_t *address, int kind, uint32_t host, int maps, unsigned port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->is;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->is;
    memset(address, 0, sizeof *address);
    address->is.ss_family = is_ipv6(kind) ? AF_INET6 : AF_INET;
    address->length = is_ipv6(kind) ? sizeof *in6 : sizeof *in;
    in->sin_port = htons((uint16_t)port);
    if (!is_ipv6(kind)) {
        in->sin_addr.s_addr = htonl(host);
    } else if (maps) {
        host = htonl(host);
        memset(&in6->sin6_addr.s6_addr[10], 0xff, 2);
        memcpy(&in6->sin6_addr.s6_addr[12], &host, sizeof host);
    } else if (host) {
        in6->sin6_addr = in6addr_loopback;
    }
}

static inline void set_unix(address_t *address, int number)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->is;
    memset(address, 0, sizeof *address);
    un->sun_family = AF_UNIX;
    address->length = (socklen_t)(sizeof(sa_family_t) + 1 +
                                  (size_t)snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "acorn sim %d %d",
                                                   (int)getpid(), number % 3));
}

/* Where a socket of this kind reaches the one in the slot. Without an address that has a port of 0, or no name. */
static inline void own_address(const world_t *w, int slot, int kind, address_t *address)
{
    int is_found;
    uint32_t host;
    memset(address, 0, sizeof *address);
    address->length = sizeof address->is;
    is_found = w->fd[slot] >= 0 && is_socket(w->kind[slot]) && is_inet(w->kind[slot]) == is_inet(kind) &&
               is_tcp(w->kind[slot]) == is_tcp(kind) &&
               aco__system.getsockname(w->fd[slot], (struct sockaddr *)&address->is, &address->length) == 0;
    if (!is_inet(kind)) {
        address->is.ss_family = AF_UNIX;
        address->length = is_found ? address->length : sizeof(sa_family_t);
    } else if (!is_found) {
        set_inet(address, kind, w->loopback, 0, 0);
    } else {
        host = host_of(address, w->loopback);
        set_inet(address, kind, host ? host : INADDR_LOOPBACK, address->is.ss_family == AF_INET || is_mapped(address),
                 port_of(address));
    }
}

static inline int has_address(const world_t *w, int slot, int kind, const address_t *address)
{
    address_t own;
    own_address(w, slot, kind, &own);
    return (!is_inet(kind) || port_of(&own)) && own.length == address->length &&
           memcmp(&own.is, &address->is, own.length) == 0;
}

/* Where a call on a socket of this kind goes to, and its words. */
static inline void choose_target(world_t *w, const call_t *call, int kind, address_t *target)
{
    switch (call->how % 16) {
    case 12:
        say(w, "an address that is too short");
        own_address(w, call->other, kind, target);
        target->length = 1;
        return;
    case 13:
        say(w, "another family");
        own_address(w, call->other, is_inet(kind) ? SOCKET_STREAM : SOCKET_TCP, target);
        return;
    case 14:
        if (is_inet(kind) && w->gone[kind].length) {
            say(w, "the address of a socket that was closed");
            *target = w->gone[kind];
            return;
        }
        break;
    default:
        break;
    }
    if (is_inet(kind) || call->how % 16 < 4 || call->how % 16 > 9) {
        say(w, "address of %d", call->other);
        own_address(w, call->other, kind, target);
    } else {
        say(w, "name %d", call->n % 3);
        set_unix(target, call->n);
    }
}

/* What a socket of this kind is bound to, and its words. */
static inline void choose_own(world_t *w, const call_t *call, int kind, address_t *own)
{
    if (call->how % 16 >= 10) {
        choose_target(w, call, kind, own);
    } else if (call->how % 16 == 9) {
        say(w, is_inet(kind) ? "any host" : "a name of the system");
        if (is_inet(kind)) {
            set_inet(own, kind, INADDR_ANY, 0, 0);
        } else {
            set_unix(own, 0);
            own->length = sizeof(sa_family_t);
        }
    } else if (is_inet(kind)) {
        say(w, "a new port");
        set_inet(own, kind, w->loopback, 0, 0);
    } else {
        say(w, "name %d", call->n % 3);
        set_unix(own, call->n);
    }
}

/* ---- Opening and closing ---- */

static inline void make_socket(world_t *w, const call_t *call)
{
    static const struct {
        const char *name;
        int family, type, protocol, kind;
    } kinds[SOCKET_VARIANTS] = {
        {"TCP", AF_INET, SOCK_STREAM, 0, SOCKET_TCP},
        {"UDP", AF_INET, SOCK_DGRAM, 0, SOCKET_UDP},
        {"TCP6", AF_INET6, SOCK_STREAM, 0, SOCKET_TCP6},
        {"UDP6", AF_INET6, SOCK_DGRAM, 0, SOCKET_UDP6},
        {"UNIX, STREAM", AF_UNIX, SOCK_STREAM, 0, SOCKET_STREAM},
        {"UNIX, DGRAM", AF_UNIX, SOCK_DGRAM, 0, SOCKET_DATAGRAMS},
        {"UNIX, SEQPACKET", AF_UNIX, SOCK_SEQPACKET, 0, SOCKET_PACKETS},
        {"INET, TCP", AF_INET, SOCK_STREAM, IPPROTO_TCP, SOCKET_TCP},
        {"INET, UDP", AF_INET, SOCK_DGRAM, IPPROTO_UDP, SOCKET_UDP},
        {"TCP", AF_INET, SOCK_STREAM, 0, SOCKET_TCP},
        {"TCP", AF_INET, SOCK_STREAM, 0, SOCKET_TCP},
        {"INET, SEQPACKET", AF_INET, SOCK_SEQPACKET, 0, SOCKET_TCP},
        {"INET, STREAM, UDP", AF_INET, SOCK_STREAM, IPPROTO_UDP, SOCKET_TCP},
        {"UNIX, STREAM, TCP", AF_UNIX, SOCK_STREAM, IPPROTO_TCP, SOCKET_STREAM},
        {"no family", 100, SOCK_STREAM, 0, SOCKET_TCP},
        {"no type", AF_INET, 9, 0, SOCKET_TCP},
    };
    int i = call->how % SOCKET_VARIANTS, slot = free_slot(w, call->slot);
    if (slot < 0)
        return;
    say(w, "socket(%s)", kinds[i].name);
    opened(w, slot, kinds[i].kind,
           aco__system.socket(kinds[i].family, kinds[i].type | SOCK_NONBLOCK | SOCK_CLOEXEC, kinds[i].protocol));
    if (w->fd[slot] >= 0)
        prepare_socket(w, slot);
}

static inline void make_pipe(world_t *w, const call_t *call)
{
    int fds[2] = {-1, -1}, first = free_slot(w, call->slot), second;
    if (first < 0)
        return;
    w->fd[first] = NO_FD;
    second = free_slot(w, first);
    w->fd[first] = -1;
    if (second < 0)
        return;
    say(w, "pipe2(%d, %d)", first, second);
    answer(w, aco__system.pipe2(fds, O_NONBLOCK | O_CLOEXEC));
    for (int i = 0; i < 2; i++) {
        w->fd[i ? second : first] = fds[i];
        w->kind[i ? second : first] = fds[i] < 0 ? OPEN_NOTHING : OPEN_PIPE;
        w->file[i ? second : first] = ++w->files;
    }
}

static inline void make_eventfd(world_t *w, const call_t *call)
{
    int slot = free_slot(w, call->slot), flags = call->how % 3 ? 0 : EFD_SEMAPHORE;
    if (slot < 0)
        return;
    say(w, "eventfd(%d%s)", call->n % 4, flags ? ", SEMAPHORE" : "");
    opened(w, slot, OPEN_EVENTFD, aco__system.eventfd(call->n % 4, flags | EFD_NONBLOCK | EFD_CLOEXEC));
}

static inline void make_epoll(world_t *w, const call_t *call)
{
    int slot = free_slot(w, call->slot);
    if (slot < 0)
        return;
    say(w, "epoll_create1()");
    opened(w, slot, OPEN_EPOLL, aco__system.epoll_create1(EPOLL_CLOEXEC));
}

static inline void duplicate(world_t *w, const call_t *call)
{
    int slot = free_slot(w, call->other);
    if (slot < 0)
        return;
    say(w, "fcntl(%d, F_DUPFD_CLOEXEC)", call->slot);
    opened(w, slot, w->kind[call->slot], aco__system.fcntl(fd_of(w, call->slot), F_DUPFD_CLOEXEC, 0));
    w->file[slot] = w->file[call->slot];
    w->listens[slot] = w->listens[call->slot];
    w->has_begun[slot] = w->has_begun[call->slot];
    w->has_name[slot] = w->has_name[call->slot];
    w->has_edges[slot] = w->has_edges[call->slot];
}

static inline void close_slot(world_t *w, const call_t *call)
{
    int kind = w->kind[call->slot];
    address_t own;
    if (w->fd[call->slot] >= 0 && is_inet(kind)) {
        own_address(w, call->slot, kind, &own);
        if (own.length && port_of(&own) && (!is_tcp(kind) || w->has_name[call->slot]))
            w->gone[kind] = own;
    }
    say(w, "close(%d)", call->slot);
    answer(w, aco__system.close(fd_of(w, call->slot)));
    w->fd[call->slot] = -1;
    w->kind[call->slot] = OPEN_NOTHING;
}

/* ---- Connections ---- */

static inline void bind_socket(world_t *w, const call_t *call)
{
    int kind = w->kind[call->slot], done;
    address_t own;
    say(w, "bind(%d, ", call->slot);
    choose_own(w, call, kind, &own);
    say(w, ")");
    done = aco__system.bind(fd_of(w, call->slot), (struct sockaddr *)&own.is, own.length);
    answer(w, done);
    w->has_name[call->slot] |= done == 0 && kind == SOCKET_TCP && host_of(&own, 0) == w->loopback;
}

static inline void listen_at(world_t *w, const call_t *call)
{
    static const int backlogs[] = {0, 1, 4, 4, 100, -1};
    int backlog = backlogs[call->how % (int)(sizeof backlogs / sizeof *backlogs)], result;
    say(w, "listen(%d, %d)", call->slot, backlog);
    result = aco__system.listen(fd_of(w, call->slot), backlog);
    answer(w, result);
    w->listens[call->slot] |= result == 0;
}

static inline void connect_to(world_t *w, const call_t *call)
{
    int kind = w->kind[call->slot];
    address_t target;
    say(w, "connect(%d, ", call->slot);
    choose_target(w, call, kind, &target);
    say(w, ")");
    if (is_tcp(kind) && has_address(w, call->slot, kind, &target)) {
        say(w, " is not made: to itself");
        return;
    }
    answer(w, aco__system.connect(fd_of(w, call->slot), (struct sockaddr *)&target.is, target.length));
    mark(w, w->has_begun, call->slot);
    if (is_tcp(kind) && has_address(w, call->slot, kind, &target))
        w->has_met_itself = 1;
}

static inline void accept_one(world_t *w, const call_t *call)
{
    address_t from;
    int slot = free_slot(w, call->other), kind = w->kind[call->slot], wants = call->how % 2;
    if (slot < 0)
        return;
    memset(&from, 0, sizeof from);
    from.length = sizeof from.is;
    say(w, "accept4(%d%s)", call->slot, wants ? "" : ", NULL");
    opened(w, slot, kind,
           aco__system.accept4(fd_of(w, call->slot), wants ? (struct sockaddr *)&from.is : NULL,
                               wants ? &from.length : NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    w->has_begun[slot] = 1;
    w->has_name[slot] = w->has_name[call->slot];
    if (w->fd[slot] >= 0 && wants)
        say_address(w, kind, &from);
    if (w->fd[slot] >= 0)
        prepare_socket(w, slot);
}

static inline void shut_down(world_t *w, const call_t *call)
{
    static const int ways[] = {SHUT_RD, SHUT_WR, SHUT_RDWR, SHUT_RD, SHUT_WR, SHUT_RDWR, 3};
    int how = ways[call->how % (int)(sizeof ways / sizeof *ways)];
    say(w, "shutdown(%d, %d)", call->slot, how);
    answer(w, aco__system.shutdown(fd_of(w, call->slot), how));
}

/* ---- Bytes ---- */

static inline void say_bytes(world_t *w, const unsigned char *p, int64_t n)
{
    uint32_t sum = 1;
    for (int64_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    if (n > 0)
        say(w, " bytes from %02x, sum %08x", p[0], (unsigned)sum);
}

static inline void split(struct iovec parts[2], unsigned char *p, size_t n)
{
    parts[0] = (struct iovec){p, n / 3};
    parts[1] = (struct iovec){p + n / 3, n - n / 3};
}

/* Eventfds take numbers of eight bytes. */
static inline size_t fill_bytes(world_t *w, const call_t *call, unsigned char *p)
{
    uint64_t number = call->how % 16 == 15 ? UINT64_MAX - call->n % 3 : call->n;
    if (w->kind[call->slot] == OPEN_EVENTFD && call->how % 8) {
        memcpy(p, &number, sizeof number);
        return sizeof number;
    }
    for (unsigned i = 0; i < call->n; i++)
        p[i] = w->next++;
    return call->n;
}

static inline void choose_receiver(world_t *w, const call_t *call, address_t *to)
{
    call_t target = {.other = call->other, .how = call->how / 8 % 16, .n = call->how / 8 % 3};
    choose_target(w, &target, w->kind[call->slot], to);
}

static inline void send_to(world_t *w, const call_t *call, const unsigned char *p, size_t n)
{
    address_t to;
    say(w, "sendto(%d, %d, ", call->slot, (int)n);
    choose_receiver(w, call, &to);
    say(w, ")");
    answer(w, aco__system.sendto(fd_of(w, call->slot), p, n, MSG_NOSIGNAL, (struct sockaddr *)&to.is, to.length));
}

typedef union rights { /* a control message with at most two descriptors */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
} rights_t;

/* Half of the messages by unix sockets pass a descriptor, once or twice; none of a unix socket, as the kernel looks
 * only now and then for those that nobody can receive any more. */
static inline void add_rights(world_t *w, const call_t *call, rights_t *rights, struct msghdr *message)
{
    int fds[2] = {fd_of(w, call->other), fd_of(w, call->other)}, n = 1 + call->how / 16 % 2;
    if (!is_socket(w->kind[call->slot]) || is_inet(w->kind[call->slot]) || call->how / 8 % 2 ||
        (is_socket(w->kind[call->other]) && !is_inet(w->kind[call->other])))
        return;
    memset(rights, 0, sizeof *rights);
    rights->head.cmsg_level = SOL_SOCKET;
    rights->head.cmsg_type = SCM_RIGHTS;
    rights->head.cmsg_len = CMSG_LEN((size_t)n * sizeof *fds);
    memcpy(CMSG_DATA(&rights->head), fds, (size_t)n * sizeof *fds);
    message->msg_control = rights;
    message->msg_controllen = CMSG_SPACE((size_t)n * sizeof *fds);
    say(w, "pass %d, %d times: ", call->other, n);
}

/* Closes what came along. */
static inline void take_rights(world_t *w, struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    size_t n = head ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    for (size_t i = 0; i < n; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
        say(w, " descriptor%s", aco__system.fcntl(fd, F_GETFD, 0) == FD_CLOEXEC ? " to close" : "");
        aco__system.close(fd);
    }
}

static inline void send_message(world_t *w, const call_t *call, unsigned char *p, size_t n)
{
    struct iovec parts[2];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    rights_t rights;
    split(parts, p, n);
    add_rights(w, call, &rights, &message);
    say(w, "sendmsg(%d, %d)", call->slot, (int)n);
    answer(w, aco__system.sendmsg(fd_of(w, call->slot), &message, MSG_NOSIGNAL));
}

static inline void send_bytes(world_t *w, const call_t *call)
{
    unsigned char p[256];
    size_t n = fill_bytes(w, call, p);
    int fd = fd_of(w, call->slot);
    struct iovec parts[2];
    switch (call->how % 8) {
    case 0:
        say(w, "send(%d, %d)", call->slot, (int)n);
        answer(w, aco__system.send(fd, p, n, MSG_NOSIGNAL));
        break;
    case 1:
        say(w, "send(%d, %d, MSG_DONTWAIT)", call->slot, (int)n);
        answer(w, aco__system.send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT));
        break;
    case 2:
        send_message(w, call, p, n);
        break;
    case 3:
        split(parts, p, n);
        say(w, "writev(%d, %d)", call->slot, (int)n);
        answer(w, aco__system.writev(fd, parts, 2));
        break;
    case 4:
    case 5:
        send_to(w, call, p, n);
        break;
    default:
        say(w, "write(%d, %d)", call->slot, (int)n);
        answer(w, aco__system.write(fd, p, n));
    }
}

static inline void receive_message(world_t *w, const call_t *call, unsigned char *p, size_t n, int flags)
{
    address_t from;
    struct iovec parts[2];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_name = &from.is, .msg_namelen = sizeof from.is};
    rights_t rights;
    int64_t got;
    split(parts, p, n);
    message.msg_control = call->other % 4 ? &rights : NULL;
    message.msg_controllen = call->other % 4 > 1 ? sizeof rights : call->other % 4 ? CMSG_LEN(sizeof(int)) : 0;
    flags |= call->other == 3 ? MSG_CMSG_CLOEXEC : 0;
    say(w, "recvmsg(%d, %d, %#x)", call->slot, (int)n, (unsigned)flags);
    got = aco__system.recvmsg(fd_of(w, call->slot), &message, flags);
    answer(w, got);
    if (got < 0)
        return;
    say_bytes(w, p, got < (int64_t)n ? got : (int64_t)n);
    from.length = message.msg_namelen;
    say_address(w, w->kind[call->slot], &from);
    say(w, " flags %#x", (unsigned)message.msg_flags & ~(unsigned)MSG_CMSG_CLOEXEC);
    take_rights(w, &message);
}

static inline void receive_from(world_t *w, const call_t *call, unsigned char *p, size_t n, int flags)
{
    address_t from;
    int64_t got;
    from.length = sizeof from.is;
    say(w, "recvfrom(%d, %d, %#x)", call->slot, (int)n, (unsigned)flags);
    got = aco__system.recvfrom(fd_of(w, call->slot), p, n, flags, (struct sockaddr *)&from.is, &from.length);
    answer(w, got);
    if (got < 0)
        return;
    say_bytes(w, p, got < (int64_t)n ? got : (int64_t)n);
    say_address(w, w->kind[call->slot], &from);
}

static inline void receive_bytes(world_t *w, const call_t *call)
{
    static const int ways[] = {0, 0, 0, MSG_PEEK, MSG_DONTWAIT, MSG_TRUNC, MSG_PEEK | MSG_TRUNC, MSG_WAITALL};
    unsigned char p[512] = {0};
    int fd = fd_of(w, call->slot), flags = ways[call->how / 8 % 8], offset;
    size_t n = call->how / 64 ? call->n : sizeof p;
    int64_t got;
    struct iovec parts[2];
    if (w->kind[call->slot] == OPEN_EVENTFD && call->how % 8)
        n = sizeof(uint64_t);
    if (flags == MSG_TRUNC && (is_tcp(w->kind[call->slot]) || w->kind[call->slot] == SOCKET_STREAM))
        flags = 0; /* it throws bytes away */
    switch (call->how % 8) {
    case 0:
    case 1:
        say(w, "recv(%d, %d, %#x)", call->slot, (int)n, (unsigned)flags);
        answer(w, got = aco__system.recv(fd, p, n, flags));
        break;
    case 2:
        receive_message(w, call, p, n, flags);
        return;
    case 3:
        receive_from(w, call, p, n, flags);
        return;
    case 4:
        split(parts, p, n);
        say(w, "readv(%d, %d)", call->slot, (int)n);
        answer(w, got = aco__system.readv(fd, parts, 2));
        break;
    case 5:
        split(parts, p, n);
        flags = call->how / 8 % 2 ? RWF_NOWAIT : 0;
        offset = call->how / 16 % 4 ? -1 : call->how / 64 % 4 - 2;
        say(w, "preadv2(%d, %d, %d, %d)", call->slot, (int)n, offset, flags);
        answer(w, got = aco__system.preadv2(fd, parts, 2, offset, flags));
        break;
    default:
        say(w, "read(%d, %d)", call->slot, (int)n);
        answer(w, got = aco__system.read(fd, p, n));
    }
    say_bytes(w, p, got < (int64_t)n ? got : (int64_t)n);
}

/* ---- More than fits ---- */

/* Whether bytes that are written to the one come to the other, and nobody else has these ends. */
static inline int are_ends(const world_t *w, int from, int to)
{
    address_t own, peer;
    int kind = w->kind[from];
    if (w->fd[from] < 0 || from == to || w->kind[to] != kind || (!is_tcp(kind) && kind != SOCKET_STREAM))
        return 0;
    for (int i = 0; i < 2; i++) {
        peer.length = sizeof peer.is;
        own_address(w, i ? from : to, kind, &own);
        if (own.length == sizeof(sa_family_t) ||
            aco__system.getpeername(w->fd[i ? to : from], (struct sockaddr *)&peer.is, &peer.length) != 0 ||
            peer.length != own.length || memcmp(&own.is, &peer.is, own.length) != 0)
            return 0;
    }
    return 1;
}

static inline int is_whole(const world_t *w, int slot)
{
    struct pollfd ends = {w->fd[slot], POLLRDHUP, 0};
    return aco__system.poll(&ends, 1, 0) == 0;
}

/* Until nothing more comes: how many bytes came. */
static inline int64_t drain(const world_t *w, int slot)
{
    static unsigned char p[BUFFER];
    int64_t all = 0;
    for (int idle = 0; idle < 3;) {
        int64_t got = aco__system.recv(w->fd[slot], p, sizeof p, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
        idle = got < 0 ? idle + 1 : 0;
        all += got < 0 ? 0 : got;
        w->settle(w, 8);
    }
    return all;
}

/* How many bytes fit is the world's business. All that fit must come. */
static inline void flood(world_t *w, const call_t *call)
{
    static const unsigned char zeros[BUFFER];
    enum { MOST = 64 * BUFFER };
    int64_t sent = 0, got = 0;
    if (!are_ends(w, call->slot, call->other) || !is_whole(w, call->slot) || !is_whole(w, call->other))
        return;
    while (sent < MOST && (got = aco__system.send(w->fd[call->slot], zeros, sizeof zeros, MSG_NOSIGNAL)) > 0) {
        sent += got;
        w->settle(w, 8);
    }
    say(w, "flood(%d, %d): %s;", call->slot, call->other, got < 0 ? strerror(errno) : "no end");
    got = drain(w, call->other);
    say(w, "%s, %lld more than were sent", sent ? " some" : " none", (long long)(got - sent));
}

/* ---- Options, names, flags ---- */

static const struct {
    const char *name;
    int level, option;
} options[] = {
    {"SO_ERROR", SOL_SOCKET, SO_ERROR},           {"SO_ERROR", SOL_SOCKET, SO_ERROR},
    {"SO_ERROR", SOL_SOCKET, SO_ERROR},           {"SO_TYPE", SOL_SOCKET, SO_TYPE},
    {"SO_DOMAIN", SOL_SOCKET, SO_DOMAIN},         {"SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL},
    {"SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN}, {"SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR},
    {"SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT},   {"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE},
    {"SO_BROADCAST", SOL_SOCKET, SO_BROADCAST},   {"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY},
    {"an unknown option", SOL_SOCKET, 1000},      {"an unknown level", 1000, 1},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* close() sends RST; or does not. */
static inline void set_linger(world_t *w, const call_t *call)
{
    struct linger linger = {call->n % 2, 0};
    say(w, "setsockopt(%d, SO_LINGER, %d)", call->slot, linger.l_onoff);
    answer(w, aco__system.setsockopt(fd_of(w, call->slot), SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

static inline void set_one(world_t *w, const call_t *call)
{
    int i = call->how % (OPTIONS + 4), value = call->n % 3 != 0;
    if (i >= OPTIONS) {
        set_linger(w, call);
        return;
    }
    if (options[i].level == IPPROTO_TCP && !is_tcp(w->kind[call->slot]))
        return;
    if (options[i].option == TCP_NODELAY) /* or small writes would wait for a clock */
        value = 1;
    if (options[i].option == SO_REUSEADDR || options[i].option == SO_REUSEPORT)
        value &= call->how / OPTIONS % 2; /* seldom */
    say(w, "setsockopt(%d, %s, %d)", call->slot, options[i].name, value);
    answer(w, aco__system.setsockopt(fd_of(w, call->slot), options[i].level, options[i].option, &value,
                                     call->how / 32 == 7 ? 1 : sizeof value));
}

static inline void get_linger(world_t *w, const call_t *call)
{
    struct linger linger = {0, 0};
    socklen_t length = sizeof linger;
    int result = aco__system.getsockopt(fd_of(w, call->slot), SOL_SOCKET, SO_LINGER, &linger, &length);
    say(w, "getsockopt(%d, SO_LINGER)", call->slot);
    answer(w, result);
    if (result == 0)
        say(w, " on %d, %d s", linger.l_onoff, linger.l_linger);
}

static inline void get_one(world_t *w, const call_t *call)
{
    int i = call->how % (OPTIONS + 1), value = -1, result;
    socklen_t length = call->how / 32 == 7 ? 2 : sizeof value;
    if (i == OPTIONS) {
        get_linger(w, call);
        return;
    }
    if (options[i].level == IPPROTO_TCP && !is_tcp(w->kind[call->slot]))
        return;
    result = aco__system.getsockopt(fd_of(w, call->slot), options[i].level, options[i].option, &value, &length);
    say(w, "getsockopt(%d, %s)", call->slot, options[i].name);
    answer(w, result);
    if (result == 0 && options[i].option == SO_ERROR && length == sizeof value)
        say(w, " \"%s\"", strerror(value));
    else if (result == 0)
        say(w, " %d of %d bytes", value, (int)length);
}

static inline void get_address(world_t *w, const call_t *call)
{
    address_t address;
    int result, fd = fd_of(w, call->slot);
    memset(&address, 0, sizeof address);
    address.length = sizeof address.is;
    if (call->kind == CALL_NAME)
        result = aco__system.getsockname(fd, (struct sockaddr *)&address.is, &address.length);
    else
        result = aco__system.getpeername(fd, (struct sockaddr *)&address.is, &address.length);
    say(w, "%s(%d)", call->kind == CALL_NAME ? "getsockname" : "getpeername", call->slot);
    answer(w, result);
    if (result == 0)
        say_address(w, w->kind[call->slot], &address);
}

static inline void control(world_t *w, const call_t *call, unsigned long operation, const char *name)
{
    int value = 0, done = aco__system.ioctl(fd_of(w, call->slot), operation, &value);
    say(w, "ioctl(%d, %s)", call->slot, name);
    answer(w, done);
    say(w, " %d", value);
}

static inline void use_flags(world_t *w, const call_t *call)
{
    static const struct {
        const char *name;
        int operation, value;
    } ways[] = {
        {"F_GETFL", F_GETFL, 0},
        {"F_GETFD", F_GETFD, 0},
        {"F_SETFL, O_NONBLOCK", F_SETFL, O_NONBLOCK},
        {"F_SETFD, 0", F_SETFD, 0},
        {"F_SETFD, FD_CLOEXEC", F_SETFD, FD_CLOEXEC},
    };
    int i = call->how % (int)(sizeof ways / sizeof *ways);
    if (call->how / 8 % 2) {
        control(w, call, i ? FIONREAD : SIOCATMARK, i ? "FIONREAD" : "SIOCATMARK");
        return;
    }
    say(w, "fcntl(%d, %s)", call->slot, ways[i].name);
    answer(w, aco__system.fcntl(fd_of(w, call->slot), ways[i].operation, ways[i].value));
}

/* ---- Readiness ---- */

static inline void say_events(world_t *w, unsigned events)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {
        {" in", EPOLLIN},       {" pri", EPOLLPRI},  {" out", EPOLLOUT}, {" err", EPOLLERR},         {" hup", EPOLLHUP},
        {" rdhup", EPOLLRDHUP}, {" nval", POLLNVAL}, {" et", EPOLLET},   {" oneshot", EPOLLONESHOT},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (events & names[i].bit)
            say(w, "%s", names[i].name);
}

/* What a CALL_WATCH watches. */
static inline uint32_t events_of(const call_t *call)
{
    static const uint32_t sets[] = {
        EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP | EPOLLPRI, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0};
    return sets[call->how / 4 % 6] | (uint32_t)(call->how / 32 % 2 ? EPOLLET : 0) |
           (uint32_t)(call->how / 64 == 3 ? EPOLLONESHOT : 0);
}

static inline void watch(world_t *w, const call_t *call)
{
    static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    static const char *const names[] = {"ADD", "ADD", "MOD", "DEL"};
    struct epoll_event event = {events_of(call), {.u64 = call->other}};
    if (event.events & EPOLLET)
        mark(w, w->has_edges, call->other);
    say(w, "epoll_ctl(%d, %s, %d,", call->slot, names[call->how % 4], call->other);
    say_events(w, event.events);
    say(w, ")");
    answer(w, aco__system.epoll_ctl(fd_of(w, call->slot), operations[call->how % 4], fd_of(w, call->other), &event));
}

static int by_slot(const void *a, const void *b)
{
    uint64_t x = ((const struct epoll_event *)a)->data.u64, y = ((const struct epoll_event *)b)->data.u64;
    return x < y ? -1 : x > y;
}

static inline void wait_for_events(world_t *w, const call_t *call)
{
    struct epoll_event events[2 * SLOTS];
    int n = aco__system.epoll_wait(fd_of(w, call->slot), events, 2 * SLOTS, 0);
    say(w, "epoll_wait(%d)", call->slot);
    answer(w, n);
    qsort(events, n < 0 ? 0 : (size_t)n, sizeof *events, by_slot);
    for (int i = 0; i < n; i++) {
        say(w, " %d:", (int)events[i].data.u64);
        say_events(w, events[i].events);
    }
}

/* What poll() tells of all open descriptors. */
static inline void say_ready(world_t *w)
{
    struct pollfd fds[SLOTS];
    int n;
    for (int i = 0; i < SLOTS; i++)
        fds[i] = (struct pollfd){w->fd[i], POLLIN | POLLOUT | POLLPRI | EPOLLRDHUP, 0};
    n = aco__system.poll(fds, SLOTS, 0);
    say(w, " |");
    for (int i = 0; i < SLOTS; i++)
        if (fds[i].revents) {
            say(w, " %d:", i);
            say_events(w, (unsigned short)fds[i].revents);
        }
    if (n < 0)
        say(w, " poll(): %s", strerror(errno));
}

/* ---- A sequence ---- */

/* Lets most calls find what they need. 0: there is no such thing. */
static inline int aim(const world_t *w, call_t *call)
{
    static const unsigned char wanted[CALL_KINDS] = {
        [CALL_BIND] = WANTS_SOCKET,     [CALL_LISTEN] = WANTS_SOCKET,   [CALL_CONNECT] = WANTS_SOCKET,
        [CALL_ACCEPT] = WANTS_LISTENER, [CALL_SHUTDOWN] = WANTS_SOCKET, [CALL_FLOOD] = WANTS_SOCKET,
        [CALL_SET] = WANTS_SOCKET,      [CALL_GET] = WANTS_SOCKET,      [CALL_NAME] = WANTS_SOCKET,
        [CALL_PEER] = WANTS_SOCKET,     [CALL_WATCH] = WANTS_EPOLL,     [CALL_WAIT] = WANTS_EPOLL,
    };
    int is_connect = call->kind == CALL_CONNECT && call->how % 2;
    if (call->is_exact || call->kind <= CALL_EPOLL)
        return 1;
    call->slot = suitable_slot(w, call->slot, wanted[call->kind]);
    if (call->kind != CALL_DUP && call->kind != CALL_ACCEPT) /* where it is the new one's */
        call->other = suitable_slot(w, call->other, is_connect ? WANTS_LISTENER : WANTS_ANY);
    return suits(w, call->slot, wanted[call->kind]);
}

static inline void make_call(world_t *w, const call_t *drawn)
{
    static void (*const functions[CALL_KINDS])(world_t *, const call_t *) = {
        [CALL_SOCKET] = make_socket,    [CALL_PIPE] = make_pipe,     [CALL_EVENTFD] = make_eventfd,
        [CALL_EPOLL] = make_epoll,      [CALL_DUP] = duplicate,      [CALL_CLOSE] = close_slot,
        [CALL_BIND] = bind_socket,      [CALL_LISTEN] = listen_at,   [CALL_CONNECT] = connect_to,
        [CALL_ACCEPT] = accept_one,     [CALL_SHUTDOWN] = shut_down, [CALL_SEND] = send_bytes,
        [CALL_RECEIVE] = receive_bytes, [CALL_FLOOD] = flood,        [CALL_SET] = set_one,
        [CALL_GET] = get_one,           [CALL_NAME] = get_address,   [CALL_PEER] = get_address,
        [CALL_FLAGS] = use_flags,       [CALL_WATCH] = watch,        [CALL_WAIT] = wait_for_events,
    };
    call_t call = *drawn;
    if (aim(w, &call) && !(w->fd[call.slot] >= 0 && w->leaves_out && w->leaves_out(w, &call)))
        functions[call.kind](w, &call);
}

/* Closes what is open; TCP by RST, so that no port is held back. */
static inline void close_all(world_t *w)
{
    static const struct linger at_once = {1, 0};
    for (int i = 0; i < SLOTS; i++) {
        if (w->fd[i] < 0)
            continue;
        if (is_tcp(w->kind[i]))
            aco__system.setsockopt(w->fd[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        aco__system.close(w->fd[i]);
    }
    w->settle(w, 4);
}

/* Makes all calls. `w` has its address and settle() set; lines[i] is then the line of the call i. */
static inline void make_calls(world_t *w, const calls_t *calls)
{
    for (int i = 0; i < SLOTS; i++) {
        w->fd[i] = -1;
        w->kind[i] = OPEN_NOTHING;
        w->listens[i] = w->has_begun[i] = w->has_edges[i] = w->has_name[i] = 0;
    }
    w->ports_n = w->next = w->has_met_itself = w->files = 0;
    memset(w->file, 0, sizeof w->file);
    memset(w->gone, 0, sizeof w->gone);
    for (int i = 0; i < calls->n; i++) {
        w->line = w->lines[i];
        w->line_n = 0;
        w->line[0] = 0;
        make_call(w, &calls->calls[i]);
        w->settle(w, 4);
        say_ready(w);
    }
    close_all(w);
}

#endif
