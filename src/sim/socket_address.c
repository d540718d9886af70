/* Addresses of sockets: as a program gives them, as the simulation compares them. */
#define _GNU_SOURCE /* strnlen() */
#include "sim/socket_address.h"
#include "sim/opened.h"

#include <errno.h>
#include <string.h>

static const unsigned char MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

int aco__sim_address_is_ipv4(const aco__sim_address_t *address)
{
    return IN6_IS_ADDR_V4MAPPED(&address->ip);
}

static void set_ipv4(aco__sim_address_t *address, struct in_addr ip)
{
    memcpy(&address->ip, MAPPED, sizeof MAPPED);
    memcpy((char *)&address->ip + sizeof MAPPED, &ip, sizeof ip);
}

static struct in_addr ipv4_of(const aco__sim_address_t *address)
{
    struct in_addr ip;
    memcpy(&ip, (const char *)&address->ip + sizeof MAPPED, sizeof ip);
    return ip;
}

int aco__sim_address_is_any(const aco__sim_address_t *address)
{
    return aco__sim_address_is_ipv4(address) ? ipv4_of(address).s_addr == 0 : IN6_IS_ADDR_UNSPECIFIED(&address->ip);
}

int aco__sim_address_equal(const aco__sim_address_t *a, const aco__sim_address_t *b)
{
    if (a->family != b->family || a->family != AF_UNIX)
        return a->family == b->family && a->port == b->port && memcmp(&a->ip, &b->ip, sizeof a->ip) == 0;
    return a->name_length && a->name_length == b->name_length && memcmp(a->name, b->name, a->name_length) == 0;
}

static int read_unix(const struct sockaddr_un *un, socklen_t length, aco__sim_address_t *result)
{
    size_t n = length - offsetof(struct sockaddr_un, sun_path);
    if (length < offsetof(struct sockaddr_un, sun_path) || n > sizeof result->name)
        return aco__sim_fail_with(EINVAL);
    result->family = AF_UNIX;
    result->name_length = n && un->sun_path[0] ? strnlen(un->sun_path, n) : n;
    memcpy(result->name, un->sun_path, result->name_length);
    return 0;
}

int aco__sim_address_read(int family, const struct sockaddr *address, socklen_t length, aco__sim_address_t *result)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
    size_t least = family == AF_INET ? sizeof *in : family == AF_INET6 ? sizeof *in6 : sizeof(short);
    memset(result, 0, sizeof *result);
    if (!address || length < least)
        return aco__sim_fail_with(address ? EINVAL : EFAULT);
    if (address->sa_family != family)
        return aco__sim_fail_with(family == AF_UNIX ? EINVAL : EAFNOSUPPORT);
    if (family == AF_UNIX)
        return read_unix((const struct sockaddr_un *)(const void *)address, length, result);
    result->family = AF_INET6;
    if (family == AF_INET) {
        result->port = ntohs(in->sin_port);
        set_ipv4(result, in->sin_addr);
    } else {
        result->port = ntohs(in6->sin6_port);
        result->ip = in6->sin6_addr;
    }
    return 0;
}

/* `un` is all zeros, and so is what follows it. */
static size_t write_unix(const aco__sim_address_t *address, struct sockaddr_un *un)
{
    size_t n = address->name_length;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, address->name, n);
    return offsetof(struct sockaddr_un, sun_path) + n + (n && un->sun_path[0]);
}

void aco__sim_address_write(int family, const aco__sim_address_t *address, struct sockaddr *result, socklen_t *length)
{
    union {
        char longest[sizeof(struct sockaddr_un) + 1]; /* the first one: C sets no more of a union to zeros */
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } is = {{0}};
    size_t n = sizeof is.in6;
    if (family == AF_UNIX) {
        n = write_unix(address, &is.un);
    } else if (family == AF_INET) {
        is.in.sin_family = AF_INET;
        is.in.sin_port = htons(address->port);
        is.in.sin_addr.s_addr = address->family ? ipv4_of(address).s_addr : 0;
        n = sizeof is.in;
    } else {
        is.in6.sin6_family = AF_INET6;
        is.in6.sin6_port = htons(address->port);
        is.in6.sin6_addr = address->ip;
    }
    memcpy(result, &is, *length < n ? *length : n);
    *length = (socklen_t)n;
}

int aco__sim_address_covers(const aco__sim_address_t *local, int only_ipv6, const aco__sim_address_t *to)
{
    if (local->family == AF_UNIX || to->family == AF_UNIX || !aco__sim_address_is_any(local))
        return aco__sim_address_equal(local, to);
    if (local->port != to->port)
        return 0;
    return aco__sim_address_is_ipv4(local) ? aco__sim_address_is_ipv4(to)
                                           : !(only_ipv6 && aco__sim_address_is_ipv4(to));
}

int aco__sim_address_is_loopback(const aco__sim_address_t *address)
{
    return aco__sim_address_is_ipv4(address) ? address->ip.s6_addr[sizeof MAPPED] == 127
                                             : IN6_IS_ADDR_LOOPBACK(&address->ip);
}
