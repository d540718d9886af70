/* hosts.c: names of hosts. */
#ifndef ACO_HOSTS_H
#define ACO_HOSTS_H

#include "base/invariants.h"
#include "sim/links.h"

#include "aco/sim.h"

#include <sys/socket.h>

struct addrinfo;

ACO__HIDDEN void aco__sim_names_begin(aco_sim_t *sim);
ACO__HIDDEN void aco__sim_names_end(aco_sim_t *sim);
/* How long a name server takes: 0, or the errno with which a lookup fails then. */
ACO__HIDDEN int aco__sim_look_up(aco_sim_t *sim, int64_t *ns);
ACO__HIDDEN int aco__sim_getaddrinfo(aco_sim_t *sim, const char *host, const char *port, const struct addrinfo *hints,
                                     struct addrinfo **found);
ACO__HIDDEN int aco__sim_getnameinfo(aco_sim_t *sim, const struct sockaddr *address, socklen_t length, char *host,
                                     socklen_t host_size, char *port, socklen_t port_size, int flags);
ACO__HIDDEN void aco__sim_freeaddrinfo(struct addrinfo *found);

#endif
