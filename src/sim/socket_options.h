/* socket_options.c: getsockopt() and setsockopt(). */
#ifndef ACO_SOCKET_OPTIONS_H
#define ACO_SOCKET_OPTIONS_H

#include "sim/endpoint.h"

ACO__HIDDEN int aco__sim_option_get(aco_sim_t *sim, aco__sim_socket_t *socket, int level, int option, void *value,
                                    socklen_t *length);
ACO__HIDDEN int aco__sim_option_set(aco_sim_t *sim, aco__sim_socket_t *socket, int level, int option, const void *value,
                                    socklen_t length);

#endif
