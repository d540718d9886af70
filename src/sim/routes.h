/* routes.c: the wires between nodes: how each is by the rules that were set, and which is cut. */
#ifndef ACO_ROUTES_H
#define ACO_ROUTES_H

#include "sim/endpoint.h"
#include "sim/node.h"

/* From one node to another, or to itself. */
typedef struct aco__sim_wire {
    struct aco__sim_wire *next; /* of its sender */
    const aco_sim_node_t *from, *to;
    aco_sim_link_t link;
    int is_cut;
    int64_t free_at;            /* all that was sent has left the sender then */
} aco__sim_wire_t;

/* What was said of the wires from some nodes to others. */
typedef struct aco__sim_rule {
    struct aco__sim_rule *next; /* an older one */
    const aco_sim_node_t *from, *to; /* NULL: all */
    const void *owner;          /* who takes it back; NULL: the next rule for the same wires replaces it */
    int is_of_cuts;             /* `is_cut` counts; else `link` */
    int is_cut;
    aco_sim_link_t link;
} aco__sim_rule_t;

ACO__HIDDEN_EXTERN const aco_sim_link_t aco__sim_usual_link;

ACO__HIDDEN void aco__sim_wires_begin(aco_sim_t *sim);
ACO__HIDDEN void aco__sim_wires_end(aco_sim_t *sim);
/* The wire from one node to the other. Without memory the run fails, and any wire is returned. */
ACO__HIDDEN aco__sim_wire_t *aco__sim_wire(aco_sim_node_t *from, const aco_sim_node_t *to);
/* The one from the socket to this address; and the one back. */
ACO__HIDDEN aco__sim_wire_t *aco__sim_wire_to(const aco__sim_socket_t *socket, const aco__sim_address_t *to);
ACO__HIDDEN aco__sim_wire_t *aco__sim_wire_back(const aco__sim_socket_t *socket, const aco__sim_address_t *to);
/* The newest rule counts: `link` NULL: a rule of cuts. 0, or -1 without memory. */
ACO__HIDDEN int aco__sim_rule_add(aco_sim_t *sim, const aco_sim_node_t *from, const aco_sim_node_t *to,
                                  const aco_sim_link_t *link, int is_cut, const void *owner);
/* Takes the owner's rules back. */
ACO__HIDDEN void aco__sim_rules_remove(aco_sim_t *sim, const void *owner);
/* What aco_sim_link() and aco_sim_disk() take. */
static inline int aco__sim_is_latency(const aco_sim_range_t *latency)
{
    return latency->min >= 0 && latency->max >= latency->min && latency->max <= 3600 * ACO_SECOND;
}

/* The nodes with these names; "*": NULL. 0, or -1 and errno: there is none. */
ACO__HIDDEN int aco__sim_ends_named(aco_sim_t *sim, const char *from, const char *to, const aco_sim_node_t *ends[2],
                                    const char *call);

#endif
