/* wire.c: how what is sent travels: for how long, in which queue, and whether it arrives. */
#ifndef ACO_WIRE_H
#define ACO_WIRE_H

#include "sim/routes.h"

/* When `n` bytes arrive that are sent now: behind those that the wire has. */
ACO__HIDDEN int64_t aco__sim_travel(aco_sim_t *sim, aco__sim_wire_t *wire, size_t n);
/* From when on the wire's queue has room for `n` bytes. An empty one has room for any number. */
ACO__HIDDEN int64_t aco__sim_room_at(const aco_sim_t *sim, const aco__sim_wire_t *wire, size_t n);
/* Whether the wire loses what is sent now. It loses all if it is cut, or if the machine at an end has no power. */
ACO__HIDDEN int aco__sim_loses(aco_sim_t *sim, const aco__sim_wire_t *wire);
/* Whether something with this chance, from 0 to 1, happens. */
ACO__HIDDEN int aco__sim_happens(aco_sim_t *sim, double chance);

#endif
