/* Addresses: address.c. */
#ifndef ACO_IO_ADDRESS_H
#define ACO_IO_ADDRESS_H

#include "os/platform.h"

#include "aco/io.h"

typedef struct aco__io_address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    } is;
    socklen_t length;
    int type;   /* SOCK_… */
    const char *problem; /* what is wrong, after EINVAL */
} aco__io_address_t;

/* Whether a call has failed for want of descriptors or memory: it says nothing about what it was asked. */
static inline int aco__io_lacks_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Understands an address of aco_io_listen(), aco_io_bind() or aco_io_dial(), other than a name. `choice`: 0, or 1 for
 * the second address that is meant. 0; or -1 with errno: EINVAL, ENOENT (there is no such choice), what looking up an
 * interface lacks. */
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

#endif
