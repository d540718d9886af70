/* For the tests of names: what is found, and a net with an address that does not answer. */
#ifndef IO_DIALS_H
#define IO_DIALS_H

#include <aco/names.h>
#include "io_tests.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* The addresses as text, like "127.0.0.1 ::1 ". */
static inline void list(const char *network, const char *host, int wanted, const char *text)
{
    struct sockaddr_storage addresses[16];
    char all[1024] = "", one[INET6_ADDRSTRLEN];
    int n = aco_io_look_up(network, host, "80", addresses, 16);
    CHECK_EQ(n, wanted);
    for (int i = 0; i < n; i++) {
        const struct sockaddr_in *in = (struct sockaddr_in *)&addresses[i];
        const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addresses[i];
        int is_ipv4 = addresses[i].ss_family == AF_INET;
        CHECK(inet_ntop(addresses[i].ss_family, is_ipv4 ? (const void *)&in->sin_addr : &in6->sin6_addr, one,
                        sizeof one) != NULL);
        CHECK_EQ(ntohs(is_ipv4 ? in->sin_port : in6->sin6_port), 80);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", one);
    }
    if (text && strcmp(all, text) != 0) {
        fprintf(stderr, "%s: %s\n", host, all);
        CHECK(!"the addresses");
    }
}

static inline int listen_on(const char *host, const char *port, int backlog)
{
    aco_io_options_t o = {.backlog = backlog};
    return aco_io_listen("tcp", host, port, &o);
}

/* Two listeners on one port: 127.0.0.1 takes connections, the other has a full backlog and does not answer. */
typedef struct net {
    int listener, full, fillers[2];
    char port[8];
} net_t;

static inline void net_open(net_t *net, const char *full)
{
    char address[ACO_IO_ADDRESS_SIZE];
    struct sockaddr_storage to;
    socklen_t length = sizeof to;
    do {
        net->listener = listen_on("127.0.0.1", "0", 16);
        CHECK_EQ(aco_io_local_address(net->listener, address, sizeof address), 0);
        strcpy(net->port, strrchr(address, ':') + 1);
        net->full = listen_on(full, net->port, 1);
        if (net->full < 0)
            aco_io_close(net->listener);
    } while (net->full < 0);
    CHECK_EQ(getsockname(net->full, (struct sockaddr *)&to, &length), 0);
    for (int i = 0; i < 2; i++) {
        net->fillers[i] = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK_EQ(aco_io_connect(net->fillers[i], (struct sockaddr *)&to, length), 0);
    }
}

static inline void net_close(net_t *net)
{
    CHECK_EQ(aco_io_close(net->listener), 0);
    CHECK_EQ(aco_io_close(net->full), 0);
    close_both(net->fillers);
}

/* Dials, and has the connection from 127.0.0.1. */
static inline void connects(net_t *net, const char *network, const char *host)
{
    char peer[ACO_IO_ADDRESS_SIZE] = "", byte = 0;
    int before = count_descriptors(), fd = aco_io_dial(network, host, net->port, NULL), accepted;
    if (fd < 0)
        fprintf(stderr, "%s\n", aco_error_message());
    CHECK(fd >= 0);
    CHECK_EQ(count_descriptors(), before + 1); /* the losers are closed */
    CHECK_EQ(aco_io_peer_address(fd, peer, sizeof peer), 0);
    CHECK(strncmp(peer, "127.0.0.1:", 10) == 0);
    accepted = aco_io_accept(net->listener);
    CHECK_EQ(aco_io_write(fd, "n", 1), 1);
    CHECK_EQ(aco_io_read(accepted, &byte, 1), 1);
    CHECK_EQ(byte, 'n');
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_io_close(accepted), 0);
}

#endif
