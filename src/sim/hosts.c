/* Names of hosts: a list that the scenario makes, behind a link. The table's calls do not wait: who makes them waits
 * before, as aco__sim_look_up() says. What is a number is left to libc, which then asks nobody. */
#define _GNU_SOURCE /* EAI_NODATA */
#include "sim/hosts.h"
#include "sim/wire.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef EAI_NODATA
#define EAI_NODATA EAI_NONAME
#endif

enum { LONGEST_NAME = 255, ASKED = 2 /* so often, as libc does */ };
static const int64_t ANSWERED_WITHIN = 5 * ACO_SECOND;

typedef struct host {
    aco__links_t all;
    char *addresses;            /* with commas between them */
    char name[LONGEST_NAME + 1];
} host_t;

#define EACH_HOST(sim, host) ACO__EACH_LINKED(host_t, host, &(sim)->hosts, all)

void aco__sim_names_begin(aco_sim_t *sim)
{
    aco__links_empty(&sim->hosts);
}

static void forget_host(host_t *host)
{
    aco__links_remove(&host->all);
    free(host->addresses);
    free(host);
}

void aco__sim_names_end(aco_sim_t *sim)
{
    aco__links_t *links;
    while ((links = aco__links_first(&sim->hosts)) != NULL)
        forget_host(ACO__LINKED(links, host_t, all));
}

/* A name may end with a dot. */
static size_t length_of(const char *name)
{
    size_t n = strlen(name);
    return n > 1 && name[n - 1] == '.' ? n - 1 : n;
}

static host_t *host_of(const aco_sim_t *sim, const char *name)
{
    size_t n = length_of(name);
    EACH_HOST(sim, host)
    if (strncasecmp(host->name, name, n) == 0 && !host->name[n])
        return host;
    return NULL;
}

/* ---- The list ---- */

/* Stores the first of the addresses and returns those behind it; NULL: there is none, or it is too long. */
static const char *next_address(const char *addresses, char text[INET6_ADDRSTRLEN])
{
    size_t n = strcspn(addresses, ",");
    if (!n || n >= INET6_ADDRSTRLEN)
        return NULL;
    memcpy(text, addresses, n);
    text[n] = 0;
    return addresses + n + (addresses[n] == ',');
}

static int is_address(const char *text)
{
    struct in6_addr ip;
    return aco__sim_ip_read(text, &ip) == 0;
}

static int are_addresses(const char *addresses)
{
    char text[INET6_ADDRSTRLEN];
    const char *at = addresses;
    while (at && *at) {
        at = next_address(at, text);
        if (at && !is_address(text))
            return 0;
    }
    return at && at > addresses && at[-1] != ',';
}

int aco_sim_name(aco_sim_t *sim, const char *name, const char *addresses)
{
    static const char call[] = "aco_sim_name";
    size_t n = name ? length_of(name) : 0;
    host_t *host, *old;
    if (aco__sim_check_run(sim, call) != 0)
        return -1;
    if (!n || n > LONGEST_NAME || is_address(name))
        return aco__service_fail(EINVAL, call, "it is not the name of a host");
    if (addresses && !are_addresses(addresses))
        return aco__service_fail(EINVAL, call, "an address is not one, or there is none");
    old = host_of(sim, name);
    if (addresses) {
        host = calloc(1, sizeof *host);
        if (!host || !(host->addresses = strdup(addresses))) {
            free(host);
            return aco__service_fail(ENOMEM, call, "no memory");
        }
        memcpy(host->name, name, n);
        aco__links_append(&sim->hosts, &host->all);
    }
    if (old)
        forget_host(old);
    return 0;
}

/* ---- Asking ---- */

int aco__sim_look_up(aco_sim_t *sim, int64_t *ns)
{
    aco_sim_node_t *here = sim->nodes.here, *server = &sim->nodes.scenario;
    *ns = 0;
    for (int tries = 0; tries < ASKED; tries++) {
        aco__sim_wire_t *there = aco__sim_wire(here, server), *back = aco__sim_wire(server, here);
        if (!aco__sim_loses(sim, there) && !aco__sim_loses(sim, back)) {
            *ns += aco__sim_travel(sim, there, 0) - sim->now;
            *ns += aco__sim_travel(sim, back, 0) - sim->now;
            return 0;
        }
        *ns += ANSWERED_WITHIN;
    }
    return EAGAIN;
}

/* What the address of the name is in libc's form; nothing if it is of another family. */
static int add_address(const char *text, const char *port, struct addrinfo hints, struct addrinfo **last)
{
    int failure;
    hints.ai_flags = (hints.ai_flags & ~AI_ADDRCONFIG) | AI_NUMERICHOST;
    failure = aco__sim_real.getaddrinfo(text, port, &hints, last);
    if (!failure)
        return 0;
    *last = NULL;
    return failure == EAI_NODATA || failure == EAI_FAMILY || failure == EAI_NONAME
#ifdef EAI_ADDRFAMILY
                   || failure == EAI_ADDRFAMILY
#endif
               ? 0
               : failure;
}

static int add_addresses(const char *addresses, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
    static const struct addrinfo any = {0};
    char text[INET6_ADDRSTRLEN];
    struct addrinfo **last = found;
    *found = NULL;
    while (*addresses) {
        int failure;
        addresses = next_address(addresses, text);
        failure = add_address(text, port, hints ? *hints : any, last);
        if (failure) {
            aco__sim_freeaddrinfo(*found);
            return failure;
        }
        while (*last)
            last = &(*last)->ai_next;
    }
    return *found ? 0 : EAI_NODATA;
}

int aco__sim_getaddrinfo(aco_sim_t *sim, const char *host, const char *port, const struct addrinfo *hints,
                         struct addrinfo **found)
{
    const host_t *known;
    if (!host || is_address(host) || (hints && hints->ai_flags & AI_NUMERICHOST))
        return aco__sim_real.getaddrinfo(host, port, hints, found);
    if (strcasecmp(host, "localhost") == 0)
        return add_addresses("127.0.0.1,::1", port, hints, found);
    known = host_of(sim, host);
    return known ? add_addresses(known->addresses, port, hints, found) : EAI_NONAME;
}

/* They come from several calls of libc's. */
void aco__sim_freeaddrinfo(struct addrinfo *found)
{
    for (struct addrinfo *next; found; found = next) {
        next = found->ai_next;
        found->ai_next = NULL;
        aco__sim_real.freeaddrinfo(found);
    }
}

/* The name that has this address; NULL: none. */
static const char *name_with(const aco_sim_t *sim, const char *address)
{
    struct in6_addr ip, other;
    char text[INET6_ADDRSTRLEN];
    if (aco__sim_ip_read(address, &ip) != 0)
        return NULL;
    EACH_HOST(sim, host)
    for (const char *at = host->addresses; *at;) {
        at = next_address(at, text);
        if (aco__sim_ip_read(text, &other) == 0 && IN6_ARE_ADDR_EQUAL(&ip, &other)) /* one has several spellings */
            return host->name;
    }
    return NULL;
}

int aco__sim_getnameinfo(aco_sim_t *sim, const struct sockaddr *address, socklen_t length, char *host,
                         socklen_t host_size, char *port, socklen_t port_size, int flags)
{
    char number[NI_MAXHOST];
    const char *name;
    int failure;
    if (flags & NI_NUMERICHOST || !host || !host_size)
        return aco__sim_real.getnameinfo(address, length, host, host_size, port, port_size, flags | NI_NUMERICHOST);
    failure = aco__sim_real.getnameinfo(address, length, number, sizeof number, port, port_size,
                                        (flags & ~NI_NAMEREQD) | NI_NUMERICHOST);
    if (failure)
        return failure;
    name = name_with(sim, number);
    if (!name && flags & NI_NAMEREQD)
        return EAI_NONAME;
    name = name ? name : number;
    if (strlen(name) >= host_size)
        return EAI_OVERFLOW;
    memcpy(host, name, strlen(name) + 1);
    return 0;
}
