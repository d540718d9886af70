/* Addresses of sockets from text, and as text. */
#define _GNU_SOURCE /* struct ucred, for sys/socket.h */
#include "io/address.h"
#include "system/system.h"

#include "aco/detail/poller.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static int invalid(aco__io_address_t *address, const char *problem)
{
    address->problem = problem;
    errno = EINVAL;
    return -1;
}

/* A decimal port, or -1. */
static int port_of(const char *text)
{
    int port = 0;
    if (!text || !*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        port = port * 10 + (*text - '0');
        if (port > 65535)
            return -1;
    }
    return port;
}

static int set_ipv4(aco__io_address_t *address, const char *host, int port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->is.storage;
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)port);
    address->length = sizeof *in;
    return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : invalid(address, "the host is no IPv4 address");
}

/* The number of a zone, which is an interface's name or a number (RFC 4007, 11.2). -1 and errno: neither, or the name
 * could not be looked up, which takes a socket. */
static int64_t zone_of(aco__io_address_t *address, const char *text)
{
    int64_t zone = *text ? aco__system.if_nametoindex(text) : 0;
    int error = errno;
    const char *end = text;
    if (zone)
        return zone;
    for (; *end >= '0' && *end <= '9' && zone <= UINT32_MAX; end++)
        zone = zone * 10 + (*end - '0');
    if (*text && !*end && zone <= UINT32_MAX)
        return zone;
    errno = error;
    return *text && aco__io_lacks_room(error) ? -1 : invalid(address, "the host's interface is unknown");
}

/* With or without brackets, and with %ZONE after it. */
static int set_ipv6(aco__io_address_t *address, const char *host, int port)
{
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)(void *)&address->is.storage;
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1], *zone;
    size_t length = strlen(host), skip = host[0] == '[' && host[length - 1] == ']';
    length -= 2 * skip;
    if (length >= sizeof text)
        return invalid(address, "the host is too long");
    memcpy(text, host + skip, length);
    text[length] = 0;
    zone = strchr(text, '%');
    if (zone) {
        int64_t number;
        *zone++ = 0;
        number = zone_of(address, zone);
        if (number < 0)
            return -1;
        in->sin6_scope_id = (uint32_t)number;
    }
    in->sin6_family = AF_INET6;
    in->sin6_port = htons((uint16_t)port);
    address->length = sizeof *in;
    return inet_pton(AF_INET6, text, &in->sin6_addr) == 1 ? 0 : invalid(address, "the host is no IPv6 address");
}

/* Of the hosts that mean several addresses, the IPv6 one is first: if that fails, the other is tried. Datagrams do not
 * fail; for them "localhost" is the IPv4 one. */
static int set_ip(aco__io_address_t *address, const char *host, int port, int families, int passive, int choice)
{
    int is_local = host && strcmp(host, "localhost") == 0, is_any = passive && !is_local;
    if (host && !is_local) {
        if (choice > 0) {
            errno = ENOENT;
            return -1;
        }
        if (strchr(host, ':'))
            return families == 4 ? invalid(address, "the host is no IPv4 address") : set_ipv6(address, host, port);
        return families == 6 ? invalid(address, "the host is no IPv6 address") : set_ipv4(address, host, port);
    }
    if (families == 4 || (families == 0 && address->type == SOCK_DGRAM && !is_any))
        choice++;
    if (choice > 1 || (choice == 1 && families == 6)) {
        errno = ENOENT;
        return -1;
    }
    return choice == 0 ? set_ipv6(address, is_any ? "::" : "::1", port)
                       : set_ipv4(address, is_any ? "0.0.0.0" : "127.0.0.1", port);
}

#ifdef __linux__
enum { LONGEST_PATH = sizeof(((struct sockaddr_un *)0)->sun_path) }; /* no 0 need follow */
#else
enum { LONGEST_PATH = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };
#endif

static int set_unix(aco__io_address_t *address, const char *path, int passive)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->is.storage;
    size_t length = path ? strlen(path) : 0;
#ifndef __linux__
    if (!path || path[0] == '@')
        return invalid(address, path ? "the system has no abstract names" : "there is no path");
#endif
    if (!path && passive && address->type == SOCK_DGRAM) { /* the system finds an abstract name */
        un->sun_family = AF_UNIX;
        address->length = sizeof un->sun_family;
        return 0;
    }
    if (length == 0 || length > LONGEST_PATH)
        return invalid(address, length ? "the path is too long" : "there is no path");
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length);
    if (path[0] == '@') /* an abstract name ends where the address does */
        un->sun_path[0] = 0;
    length += path[0] != '@' && length < sizeof un->sun_path;
    address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return 0;
}

enum { ANY_IP = 0, IPV4 = 4, IPV6 = 6, UNIX = 1 };
static const struct network {
    const char *name;
    int family, type;
} networks[] = {{"tcp", ANY_IP, SOCK_STREAM}, {"tcp4", IPV4, SOCK_STREAM},     {"tcp6", IPV6, SOCK_STREAM},
                {"udp", ANY_IP, SOCK_DGRAM},  {"udp4", IPV4, SOCK_DGRAM},      {"udp6", IPV6, SOCK_DGRAM},
                {"unix", UNIX, SOCK_STREAM},  {"unixgram", UNIX, SOCK_DGRAM},  {"unixpacket", UNIX, SOCK_SEQPACKET}};

static const struct network *network_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof networks / sizeof *networks; i++)
        if (strcmp(networks[i].name, name) == 0)
            return &networks[i];
    return NULL;
}

int aco__io_parse(aco__io_address_t *address, const char *network, const char *host, const char *port, int passive,
                  int choice)
{
    const struct network *known = network_of(network);
    int number;
    memset(address, 0, sizeof *address);
    if (!known)
        return invalid(address, "the network is unknown");
    address->type = known->type;
    if (known->family == UNIX) {
        if (choice > 0) {
            errno = ENOENT;
            return -1;
        }
        return port ? invalid(address, "a path has no port") : set_unix(address, host, passive);
    }
    number = port_of(port);
    if (number < 0)
        return invalid(address, "the port is no number up to 65535");
    if (host && !*host)
        return invalid(address, "the host is empty");
    return set_ip(address, host, number, known->family, passive, choice);
}

/* The last label of a name is no number (the URL standard): what looks like one is an address that is wrong. */
static int has_numeric_end(const char *host)
{
    size_t n = strlen(host), label;
    if (n && host[n - 1] == '.')
        n--;
    for (label = n; label && host[label - 1] != '.'; label--)
        ;
    return n - label == strspn(host + label, "0123456789") ||
           (strncmp(host + label, "0x", 2) == 0 && n - label == 2 + strspn(host + label + 2, "0123456789abcdefABCDEF"));
}

int aco__io_families_of_name(const char *network, const char *host)
{
    const struct network *known = network_of(network);
    return known && known->family != UNIX && host && host[0] && strcmp(host, "localhost") != 0 &&
                   !strpbrk(host, ":[]/% ") && !has_numeric_end(host)
               ? known->family
               : -1;
}

uint16_t aco__io_port(const aco__io_address_t *address)
{
    return address->is.any.sa_family == AF_INET
               ? ((const struct sockaddr_in *)(const void *)&address->is.storage)->sin_port
               : ((const struct sockaddr_in6 *)(const void *)&address->is.storage)->sin6_port;
}

/* ---- As text ---- */

static int format_unix(const struct sockaddr_un *un, socklen_t length, char *text, size_t size)
{
    size_t n = length > offsetof(struct sockaddr_un, sun_path) ? length - offsetof(struct sockaddr_un, sun_path) : 0;
    if (n > sizeof un->sun_path) /* Linux counts a 0 after the longest path, too */
        n = sizeof un->sun_path;
    if (n && un->sun_path[0])
        n = strnlen(un->sun_path, n);
    if (n + 1 > size) {
        errno = ENOSPC;
        return -1;
    }
    memcpy(text, un->sun_path, n);
    if (n && !text[0])
        text[0] = '@';
    text[n] = 0;
    return 0;
}

static int format_ipv6(const struct sockaddr_in6 *in, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN], zone[IF_NAMESIZE];
    int has_zone = in->sin6_scope_id != 0;
    if (has_zone && !aco__system.if_indextoname(in->sin6_scope_id, zone))
        snprintf(zone, sizeof zone, "%lu", (unsigned long)in->sin6_scope_id);
    inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
    return snprintf(text, size, "[%s%s%s]:%u", host, has_zone ? "%" : "", has_zone ? zone : "",
                    (unsigned)ntohs(in->sin6_port));
}

/* Whether the length, which is not 0, is less than what the family's addresses have. */
static int is_cut(const struct sockaddr *address, socklen_t length)
{
    size_t least = offsetof(struct sockaddr, sa_family) + sizeof address->sa_family;
    if (length >= least && address->sa_family == AF_INET)
        least = sizeof(struct sockaddr_in);
    else if (length >= least && address->sa_family == AF_INET6)
        least = sizeof(struct sockaddr_in6);
    return length < least;
}

int aco__io_format(const struct sockaddr *address, socklen_t length, char *text, size_t size)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    char host[INET_ADDRSTRLEN];
    int n;
    if (length && is_cut(address, length)) {
        errno = EINVAL;
        return -1;
    }
    switch (length ? address->sa_family : AF_UNIX) { /* no address: of a datagram from a unix socket without a name */
    case AF_UNIX:
        return format_unix((const struct sockaddr_un *)(const void *)address, length, text, size);
    case AF_INET:
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        n = snprintf(text, size, "%s:%u", host, (unsigned)ntohs(in->sin_port));
        break;
    case AF_INET6:
        n = format_ipv6((const struct sockaddr_in6 *)(const void *)address, text, size);
        break;
    default:
        errno = EAFNOSUPPORT;
        return -1;
    }
    if ((size_t)n < size)
        return 0;
    errno = ENOSPC;
    return -1;
}

int aco__io_fail_address(const char *call, const char *network, const char *host, const char *port,
                         const char *problem)
{
    char reason[256];
    int error = errno;
    if (error == ETIMEDOUT || error == ECANCELED)
        return -1;
    snprintf(reason, sizeof reason, "%s %s%s%s: %s", network ? network : "(no network)", host ? host : "*",
             port ? ":" : "", port ? port : "", problem ? problem : strerror(error));
    return aco__service_fail(error, call, reason);
}

ACO__AT_LOAD static void register_interfaces(void)
{
    aco__system.if_nametoindex = if_nametoindex;
    aco__system.if_indextoname = if_indextoname;
}
