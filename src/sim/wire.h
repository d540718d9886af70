/* wire.c: how what is sent travels: for how long, in which queue, and whether it arrives. */
#ifndef ACO_WIRE_H
#define ACO_WIRE_H

#include "sim/endpoint.h"

typedef struct aco__sim_wire {
    aco_sim_link_t link;
    int64_t free_at;            /* all that was sent has left the sender then */
} aco__sim_wire_t;

ACO__HIDDEN void aco__sim_wires_begin(aco_sim_t *sim);
/* The wire from one address to the other. Only this function knows which it is. */
ACO__HIDDEN aco__sim_wire_t *aco__sim_wire(aco_sim_t *sim, const aco__sim_address_t *from,
                                           const aco__sim_address_t *to);
/* When `n` bytes arrive that are sent now: behind those that the wire has. */
ACO__HIDDEN int64_t aco__sim_travel(aco_sim_t *sim, aco__sim_wire_t *wire, size_t n);
/* From when on the wire's queue has room for `n` bytes. An empty one has room for any number. */
ACO__HIDDEN int64_t aco__sim_room_at(const aco_sim_t *sim, const aco__sim_wire_t *wire, size_t n);
/* Whether something with this chance, from 0 to 1, happens. */
ACO__HIDDEN int aco__sim_happens(aco_sim_t *sim, double chance);

#endif
