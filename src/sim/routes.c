/* Wires between nodes. A rule says how the wires from some nodes to others are, also those of nodes that are made
 * later; of the rules for a wire, the newest counts. */
#include "sim/routes.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_QUEUE = 1 << 18 };
const aco_sim_link_t aco__sim_usual_link = {.latency = {50 * ACO_MICROSECOND, 2 * ACO_MILLISECOND},
                                            .queue = USUAL_QUEUE};

/* ---- Rules ---- */

static int is_for(const aco__sim_rule_t *rule, const aco_sim_node_t *from, const aco_sim_node_t *to)
{
    return (!rule->from || rule->from == from) && (!rule->to || rule->to == to);
}

static void set_wire(const aco_sim_t *sim, aco__sim_wire_t *wire)
{
    const aco__sim_rule_t *link = NULL, *cut = NULL;
    for (const aco__sim_rule_t *rule = sim->rules; rule; rule = rule->next) {
        if (!is_for(rule, wire->from, wire->to))
            continue;
        if (rule->is_of_cuts)
            cut = cut ? cut : rule;
        else
            link = link ? link : rule;
    }
    wire->link = link ? link->link : aco__sim_usual_link;
    wire->is_cut = cut && cut->is_cut && wire->from != wire->to;
}

static void set_all_wires(aco_sim_t *sim)
{
    for (const aco_sim_node_t *node = &sim->nodes.scenario; node; node = node->next)
        for (aco__sim_wire_t *wire = node->wires; wire; wire = wire->next)
            set_wire(sim, wire);
}

/* Nobody takes the old rule back, and the new one is for all its wires. */
static int is_replaced(const aco__sim_rule_t *old, const aco__sim_rule_t *rule)
{
    return !old->owner && !rule->owner && old->is_of_cuts == rule->is_of_cuts && is_for(rule, old->from, old->to);
}

static void remove_rules(aco_sim_t *sim, const aco__sim_rule_t *by, const void *owner)
{
    aco__sim_rule_t **link = &sim->rules;
    while (*link) {
        aco__sim_rule_t *rule = *link;
        if (by ? is_replaced(rule, by) : !owner || rule->owner == owner) {
            *link = rule->next;
            free(rule);
        } else {
            link = &rule->next;
        }
    }
}

static const char *name_of_end(const aco_sim_node_t *node)
{
    return node ? node->name : "*";
}

static void note_rule(aco_sim_t *sim, const aco__sim_rule_t *rule, const char *what)
{
    char text[2 * ACO__SIM_NOTE_TEXT];
    snprintf(text, sizeof text, "%s: \"%s\" to \"%s\"", what, name_of_end(rule->from), name_of_end(rule->to));
    aco__sim_note(sim, ACO__NOTED_FAULT, 0, 0, text);
}

int aco__sim_rule_add(aco_sim_t *sim, const aco_sim_node_t *from, const aco_sim_node_t *to, const aco_sim_link_t *link,
                      int is_cut, const void *owner)
{
    aco__sim_rule_t *rule = calloc(1, sizeof *rule);
    if (!rule)
        return -1;
    rule->from = from;
    rule->to = to;
    rule->owner = owner;
    rule->is_of_cuts = !link;
    rule->is_cut = is_cut;
    if (link)
        rule->link = *link;
    remove_rules(sim, rule, NULL);
    rule->next = sim->rules;
    sim->rules = rule;
    set_all_wires(sim);
    note_rule(sim, rule, link ? "another link" : is_cut ? "cut" : "not cut");
    return 0;
}

void aco__sim_rules_remove(aco_sim_t *sim, const void *owner)
{
    ACO__ASSERT(owner != NULL);
    for (const aco__sim_rule_t *rule = sim->rules; rule; rule = rule->next)
        if (rule->owner == owner)
            note_rule(sim, rule, rule->is_of_cuts ? "no longer cut" : "the link as before");
    remove_rules(sim, NULL, owner);
    set_all_wires(sim);
}

/* ---- Wires ---- */

void aco__sim_wires_begin(aco_sim_t *sim)
{
    sim->rules = NULL;
}

void aco__sim_wires_end(aco_sim_t *sim)
{
    for (aco_sim_node_t *node = &sim->nodes.scenario; node; node = node->next)
        while (node->wires) {
            aco__sim_wire_t *wire = node->wires;
            node->wires = wire->next;
            free(wire);
        }
    remove_rules(sim, NULL, NULL);
}

aco__sim_wire_t *aco__sim_wire(aco_sim_node_t *from, const aco_sim_node_t *to)
{
    static __thread aco__sim_wire_t none;
    aco__sim_wire_t *wire = from->wires;
    while (wire && wire->to != to)
        wire = wire->next;
    if (wire)
        return wire;
    wire = calloc(1, sizeof *wire);
    if (!wire) {
        aco__sim_fail(from->sim, "there is no memory for the network");
        none = (aco__sim_wire_t){NULL, from, to, aco__sim_usual_link, 0, 0};
        return &none;
    }
    wire->from = from;
    wire->to = to;
    set_wire(from->sim, wire);
    wire->next = from->wires;
    return from->wires = wire;
}

aco__sim_wire_t *aco__sim_wire_to(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    return aco__sim_wire(socket->file.node, aco__sim_endpoint_node(socket, to));
}

aco__sim_wire_t *aco__sim_wire_back(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    return aco__sim_wire(aco__sim_endpoint_node(socket, to), socket->file.node);
}

/* ---- By name ---- */

int aco__sim_ends_named(aco_sim_t *sim, const char *from, const char *to, const aco_sim_node_t *ends[2],
                        const char *call)
{
    const char *const names[2] = {from, to};
    if (aco__sim_check_run(sim, call) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        const aco_sim_node_t *node = &sim->nodes.scenario;
        if (!names[i])
            return aco__service_fail(EINVAL, call, "a name is NULL: \"*\" is all nodes");
        while (node && strcmp(node->name, names[i]) != 0)
            node = node->next;
        if (!node && strcmp(names[i], "*") != 0)
            return aco__service_fail(EINVAL, call, "a node is unknown: \"*\" is all, \"scenario\" the scenario's");
        ends[i] = node;
    }
    return 0;
}

int aco_sim_partition(aco_sim_t *sim, const char *from, const char *to, int on)
{
    static const char call[] = "aco_sim_partition";
    const aco_sim_node_t *ends[2];
    if (aco__sim_ends_named(sim, from, to, ends, call) != 0)
        return -1;
    if (aco__sim_rule_add(sim, ends[0], ends[1], NULL, on != 0, NULL) != 0)
        return aco__service_fail(ENOMEM, call, "no memory");
    return 0;
}
