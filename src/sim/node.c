/* The nodes of a run. The run's tasks that no node has spawned are the scenario's, which counts as a node. */
#define _GNU_SOURCE /* strnlen() */
#include "sim/node.h"
#include "sim/thread_calls.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"
#include "aco/detail/signals.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char node_call[] = "aco_sim_node";
static const char scenario_name[] = "scenario";
enum { SCENARIO_ADDRESSES = 2 };
/* Of networks for examples. */
static const char *const scenario_addresses[SCENARIO_ADDRESSES] = {"192.0.2.1", "2001:db8::1"};

/* ---- Addresses ---- */

static int is_ipv4_address(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_V4MAPPED(ip);
}

int aco__sim_ip_read(const char *text, struct in6_addr *ip)
{
    char mapped[sizeof "::ffff:" + INET_ADDRSTRLEN];
    struct in_addr ipv4;
    if (inet_pton(AF_INET, text, &ipv4) == 1) {
        snprintf(mapped, sizeof mapped, "::ffff:%s", text);
        text = mapped;
    }
    return inet_pton(AF_INET6, text, ip) == 1 ? 0 : -1;
}

/* Each node has it for itself, or it is that of a group. */
static int is_special(const struct in6_addr *ip)
{
    unsigned first = ip->s6_addr[12];
    if (is_ipv4_address(ip))
        return first == 0 || first == 127 || first >= 224;
    return IN6_IS_ADDR_UNSPECIFIED(ip) || IN6_IS_ADDR_LOOPBACK(ip) || IN6_IS_ADDR_MULTICAST(ip);
}

static int is_own(const struct in6_addr *ip)
{
    return is_ipv4_address(ip) ? ip->s6_addr[12] == 0 || ip->s6_addr[12] == 127 : is_special(ip);
}

static int node_has(const aco_sim_node_t *node, const struct in6_addr *ip)
{
    for (int i = 0; i < node->addresses_count; i++)
        if (IN6_ARE_ADDR_EQUAL(&node->addresses[i], ip))
            return 1;
    return 0;
}

aco_sim_node_t *aco__sim_node_at(aco_sim_node_t *from, const struct in6_addr *ip)
{
    if (is_own(ip))
        return from;
    ACO__SIM_EACH_NODE(from->sim, node)
    if (node_has(node, ip))
        return node;
    return &from->sim->nodes.scenario;
}

int aco__sim_node_source(const aco_sim_node_t *node, int is_ipv4, struct in6_addr *ip)
{
    for (int i = 0; i < node->addresses_count; i++)
        if (!is_ipv4_address(&node->addresses[i]) == !is_ipv4) {
            *ip = node->addresses[i];
            return 0;
        }
    return -1;
}

/* ---- Making ---- */

void aco__sim_nodes_begin(aco_sim_t *sim, uint64_t seed)
{
    aco_sim_node_t *scenario = &sim->nodes.scenario;
    memset(&sim->nodes, 0, sizeof sim->nodes);
    sim->nodes.draws = seed;
    sim->nodes.own.sim = scenario->sim = sim;
    memcpy(scenario->name, scenario_name, sizeof scenario_name);
    scenario->addresses_count = SCENARIO_ADDRESSES;
    for (int i = 0; i < SCENARIO_ADDRESSES; i++)
        (void)aco__sim_ip_read(scenario_addresses[i], &scenario->addresses[i]);
    sim->nodes.last = sim->nodes.here = scenario;
    aco__sim_disk_begin(sim, &scenario->disk);
}

void aco__sim_nodes_end(aco_sim_t *sim)
{
    while (sim->nodes.scenario.next) {
        aco_sim_node_t *node = sim->nodes.scenario.next;
        sim->nodes.scenario.next = node->next;
        aco__listeners_forget(&node->blocked_for_good); /* a run that has failed leaves some */
        aco__sim_disk_end(&node->disk);
        free(node);
    }
    aco__listeners_forget(&sim->nodes.scenario.blocked_for_good);
    aco__sim_disk_end(&sim->nodes.scenario.disk);
    memset(&sim->nodes, 0, sizeof sim->nodes);
}

static int fail_making(int error, const char *why)
{
    return aco__service_fail(error, node_call, why);
}

static int set_name(const aco_sim_t *sim, aco_sim_node_t *node, const char *name)
{
    size_t n = name ? strnlen(name, sizeof node->name) : 0;
    if (!n || n == sizeof node->name)
        return fail_making(EINVAL, n ? "the name is too long" : "the node has no name");
    if (strcmp(name, "*") == 0)
        return fail_making(EINVAL, "the name \"*\" stands for all nodes");
    for (const aco_sim_node_t *other = &sim->nodes.scenario; other; other = other->next)
        if (strcmp(name, other->name) == 0)
            return fail_making(EEXIST, "a node has this name already");
    memcpy(node->name, name, n + 1);
    return 0;
}

static int give_address(const aco_sim_t *sim, aco_sim_node_t *node, const char *text)
{
    struct in6_addr ip;
    if (aco__sim_ip_read(text, &ip) != 0)
        return fail_making(EINVAL, "a part of the addresses is neither an IPv4 address nor an IPv6 address");
    if (is_special(&ip))
        return fail_making(EINVAL, "an address is for all machines, for each machine itself, or for a group");
    for (const aco_sim_node_t *other = &sim->nodes.scenario; other; other = other->next)
        if (node_has(other, &ip))
            return fail_making(EEXIST, "a node has one of the addresses already");
    if (node_has(node, &ip))
        return fail_making(EINVAL, "an address is there twice");
    if (node->addresses_count == ACO__SIM_MOST_ADDRESSES)
        return fail_making(EINVAL, "there are more than 8 addresses");
    node->addresses[node->addresses_count++] = ip;
    return 0;
}

static int set_addresses(const aco_sim_t *sim, aco_sim_node_t *node, const char *addresses)
{
    char text[INET6_ADDRSTRLEN];
    if (!addresses)
        return fail_making(EINVAL, "the node has no address");
    for (;;) {
        size_t n = strcspn(addresses += strspn(addresses, " "), ", ");
        if (n >= sizeof text)
            return fail_making(EINVAL, "an address is too long");
        memcpy(text, addresses, n);
        text[n] = 0;
        if (give_address(sim, node, text) != 0)
            return -1;
        addresses += n;
        addresses += strspn(addresses, " ");
        if (!*addresses++)
            return 0;
    }
}

static int check_new(const aco_sim_t *sim, aco_function_t function)
{
    if (aco__sim_check_first(sim, node_call) != 0)
        return -1;
    return function ? 0 : fail_making(EINVAL, "the function is NULL");
}

static aco_sim_node_t *make_node(aco_sim_t *sim, const char *name, const char *addresses, aco_function_t function,
                                 void *arg, int has_threads)
{
    aco_sim_node_t *node;
    if (check_new(sim, function) != 0)
        return NULL;
    node = calloc(1, sizeof *node);
    if (!node) {
        (void)fail_making(ENOMEM, "no memory");
        return NULL;
    }
    node->sim = sim;
    if (set_name(sim, node, name) != 0 || set_addresses(sim, node, addresses) != 0) {
        int error = errno;
        free(node);
        return aco__sim_null_with(error);
    }
    aco__sim_disk_begin(sim, &node->disk);
    node->number = sim->nodes.last->number + 1;
    node->how_to_crash = ACO_SIM_CRASH_RESET;
    node->function = function;
    node->arg = arg;
    node->has_threads = has_threads;
    sim->nodes.last = sim->nodes.last->next = node;
    aco__sim_node_start(node);
    return node;
}

aco_sim_node_t *aco_sim_node(aco_sim_t *sim, const char *name, const char *addresses, aco_function_t function,
                             void *arg)
{
    return make_node(sim, name, addresses, function, arg, 0);
}

aco_sim_node_t *aco_sim_node_main(aco_sim_t *sim, const char *name, const char *addresses, void *(*function)(void *arg),
                                  void *arg)
{
    return make_node(sim, name, addresses, function, arg, 1);
}

/* ---- Running ---- */

int aco__sim_spawn(aco_sim_t *sim, aco_sim_node_t *node, const char *name, aco_function_t fn, void *arg)
{
    aco_options_t options = {0};
    aco_t *task;
    options.flags = ACO_DETACHED;
    options.name = name;
    task = aco_spawn(fn, arg, &options);
    if (!task)
        return -1;
    if (aco__schedule_enroll(&sim->threads.first.schedule, task, node) != 0)
        aco__sim_fail(sim, "there is no memory for a task of node \"%s\"", node->name);
    return 0;
}

void aco__sim_node_start(aco_sim_node_t *node)
{
    pthread_t thread;
    int failed = node->has_threads ? aco__sim_thread_start(node->sim, node, &thread, NULL, node->function, node->arg)
                                   : aco__sim_spawn(node->sim, node, node->name, node->function, node->arg);
    if (failed)
        aco__sim_fail(node->sim, "there is no memory for node \"%s\"", node->name);
    node->is_up = 1;
    node->is_dark = 0;
}

int aco__sim_node_check(const aco_sim_node_t *node, const char *name_of_call)
{
    if (!node || !aco_sim_current() || node->sim != aco_sim_current())
        return aco__service_fail(EINVAL, name_of_call, "it is not a node of the calling thread's run");
    if (aco__sim_check_first(node->sim, name_of_call) != 0)
        return -1;
    return 0;
}

const char *aco_sim_node_name(const aco_sim_node_t *node)
{
    return node->name;
}

int aco_sim_node_is_up(const aco_sim_node_t *node)
{
    return (node->is_up && !node->is_to_crash) || node->is_to_start;
}

void aco__sim_node_note(const aco_sim_node_t *node, aco__sim_fault_t fault)
{
    char text[ACO__SIM_NOTE_TEXT];
    aco__history_note(&node->sim->history, ACO__SIM_FAULT, node->number, fault);
    snprintf(text, sizeof text, "node \"%s\" %s", node->name, aco__sim_fault_names[fault]);
    aco__sim_note(node->sim, ACO__NOTED_FAULT, 0, 0, text);
}

void aco__sim_nodes_print(const aco_sim_t *sim)
{
    ACO__SIM_EACH_NODE(sim, node)
    aco__sim_say(sim, "node \"%s\" %s, with %zu tasks", node->name,
                 !node->is_up         ? "has crashed"
                 : node->is_suspended ? "is suspended"
                                      : "is up",
                 node->tasks);
}

/* ---- Suspending ---- */

int aco_sim_suspend(aco_sim_node_t *node)
{
    static const char suspend_call[] = "aco_sim_suspend";
    if (aco__sim_node_check(node, suspend_call) != 0)
        return -1;
    if (!aco_sim_node_is_up(node))
        return aco__service_fail(ESRCH, suspend_call, "the node has crashed");
    if (node->is_suspended)
        return 0;
    node->is_suspended = 1;
    aco__sim_node_note(node, ACO__SIM_SUSPENDED);
    aco__schedule_suspend(&node->sim->threads.first.schedule, node);
    return 0;
}

int aco_sim_resume(aco_sim_node_t *node)
{
    if (aco__sim_node_check(node, "aco_sim_resume") != 0)
        return -1;
    if (!node->is_suspended)
        return 0;
    node->is_suspended = 0;
    aco__sim_node_note(node, ACO__SIM_RESUMED);
    aco__schedule_resume(&node->sim->threads.first.schedule, node);
    return 0;
}
