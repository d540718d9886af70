/* socket_address.c: addresses of sockets. */
#ifndef ACO_SOCKET_ADDRESS_H
#define ACO_SOCKET_ADDRESS_H

#include "base/invariants.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* An address. IPv4 ones are in the form of IPv6 (::ffff:…). */
typedef struct aco__sim_address {
    int family;                 /* AF_INET6 or AF_UNIX; 0: none */
    uint16_t port;
    struct in6_addr ip;
    size_t name_length;         /* of a unix socket; 0: it has no name */
    char name[sizeof((struct sockaddr_un *)NULL)->sun_path];
} aco__sim_address_t;

/* 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_address_read(int family, const struct sockaddr *address, socklen_t length,
                                      aco__sim_address_t *result);
/* Stores at most *length bytes; *length becomes the address's. */
ACO__HIDDEN void aco__sim_address_write(int family, const aco__sim_address_t *address, struct sockaddr *result,
                                        socklen_t *length);
ACO__HIDDEN int aco__sim_address_is_ipv4(const aco__sim_address_t *address);
ACO__HIDDEN int aco__sim_address_is_loopback(const aco__sim_address_t *address);
ACO__HIDDEN int aco__sim_address_is_any(const aco__sim_address_t *address);
ACO__HIDDEN int aco__sim_address_equal(const aco__sim_address_t *a, const aco__sim_address_t *b);
/* Whether what is sent to `to` may come to a socket that has `local`, and has IPV6_V6ONLY or not. */
ACO__HIDDEN int aco__sim_address_covers(const aco__sim_address_t *local, int only_ipv6, const aco__sim_address_t *to);

#endif
