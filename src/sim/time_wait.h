/* time_wait.c: addresses that TCP keeps after a connection's end. */
#ifndef ACO_TIME_WAIT_H
#define ACO_TIME_WAIT_H

#include "sim/endpoint.h"

struct aco__sim_kept {
    aco__sim_kept_t *next;
    aco__sim_socket_t *socket; /* NULL: its memory is gone */
    const aco_sim_node_t *node;
    aco__sim_address_t address;
    int only_ipv6, reuses_address, reuses_port;
    aco__sim_sharing_t sharing; /* of the port */
    int64_t until;
};

/* The address of a closed socket stays taken for a minute from `since`, which may have been said before. */
ACO__HIDDEN void aco__sim_port_keep(aco_sim_t *sim, aco__sim_socket_t *socket, int64_t since);
/* It is free: the connection was reset. */
ACO__HIDDEN void aco__sim_port_free(aco__sim_socket_t *socket);
/* The socket's memory goes; the address stays taken. */
ACO__HIDDEN void aco__sim_port_part(aco__sim_socket_t *socket);
/* The machine starts anew; NULL: the run ends, for all of them. */
ACO__HIDDEN void aco__sim_ports_forget(aco_sim_t *sim, const aco_sim_node_t *node);

#endif
