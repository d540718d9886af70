/* segment.c: what a TCP socket sends: in order, and again when it is lost. */
#ifndef ACO_SEGMENT_H
#define ACO_SEGMENT_H

#include "sim/wire.h"

typedef void (*aco__sim_arrival_fn_t)(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value);

/* The wire to the socket's peer, or to the one that it calls. */
ACO__HIDDEN aco__sim_wire_t *aco__sim_wire_of(const aco__sim_socket_t *socket);
/* When arrives what the socket sends next: nothing overtakes what it sent before. */
ACO__HIDDEN int64_t aco__sim_segment_time(aco_sim_t *sim, aco__sim_socket_t *socket, size_t n);
/* Whether nothing may be sent now: something that was lost comes first, or the link has no room for `n` bytes. Then the
 * socket is pumped when it has. */
ACO__HIDDEN int aco__sim_segment_waits(aco_sim_t *sim, aco__sim_socket_t *socket, size_t n);
/* Calls fn(sim, the peer, n) when a segment of `n` bytes has arrived. If it gets lost, it is sent again. */
ACO__HIDDEN void aco__sim_segment_send(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, size_t n);
/* A segment that the socket has sent does not arrive: what it says last is sent again. */
ACO__HIDDEN void aco__sim_segment_lose(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, size_t n);

#endif
