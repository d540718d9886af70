/* socket_notes.c: notes about a socket and the address of its other end. */
#ifndef ACO_SOCKET_NOTES_H
#define ACO_SOCKET_NOTES_H

#include "sim/endpoint.h"
#include "sim/notes.h"

/* `address`: the other end's, or the socket's own. NULL: none. */
ACO__HIDDEN void aco__sim_note_socket(aco_sim_t *sim, aco__sim_noted_t kind, const aco__sim_socket_t *socket,
                                      int64_t value, const aco__sim_address_t *address);

#endif
