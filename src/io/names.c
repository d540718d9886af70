/* Names of hosts, by libc's getaddrinfo() and getnameinfo() on the pool: they alone follow the system's configuration.
 * What was found is kept in a small cache, the most recently used first. */
#define _GNU_SOURCE /* EAI_NODATA */
#include "base/invariants.h"
#include "io/address.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "io/names_internal.h"
#include "system/system.h"

#include "aco/detail/chooser.h"
#include "aco/detail/counted.h"
#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_SIZE = 256, CACHE_ENTRIES = 64 };

typedef struct ip {
    int family;
    uint32_t scope_id;
    unsigned char bytes[16];
} ip_t;

typedef struct ips {
    size_t n;
    ip_t at[IO_MOST_TARGETS];
} ips_t;

/* A name, and whether IPv4 (4), IPv6 (6) or all addresses (0) are wanted. */
typedef struct name {
    char host[HOST_SIZE];
    int families;
} name_t;

/* ---- The cache; under the pool's lock ---- */

typedef struct cached_name {
    struct cached_name *next;
    name_t name;
    ips_t ips;
    int64_t until;
    size_t sz;
} cached_name_t;

static cached_name_t *cached_names;
static size_t most_cached = CACHE_ENTRIES;
static int64_t cached_for = 30 * ACO_SECOND;

/* Frees what is too old, and what follows after the first `most` entries. */
static void shrink_cache(size_t most, int64_t now)
{
    cached_name_t **link = &cached_names, *entry;
    for (size_t n = 0; (entry = *link) != NULL;) {
        if (n < most && now < entry->until) {
            link = &entry->next;
            n++;
        } else {
            *link = entry->next;
            aco__service_free(entry, entry->sz);
        }
    }
}

static cached_name_t *take_from_cache(const name_t *name)
{
    cached_name_t **link = &cached_names, *entry;
    for (; (entry = *link) != NULL; link = &entry->next)
        if (entry->name.families == name->families && strcasecmp(entry->name.host, name->host) == 0) {
            *link = entry->next;
            return entry;
        }
    return NULL;
}

static void put_first(cached_name_t *entry)
{
    entry->next = cached_names;
    cached_names = entry;
}

/* How look-ups ended, for metrics; atomic. */
enum { NAME_CACHED, NAME_FOUND, NAME_FAILED, NAME_RESULTS };
static uint64_t name_results[NAME_RESULTS];

static void count_name(int result)
{
    __atomic_fetch_add(&name_results[result], 1, __ATOMIC_RELAXED);
}

static uint64_t read_names(int which)
{
    return __atomic_load_n(&name_results[which], __ATOMIC_RELAXED);
}

ACO__AT_LOAD static void register_names(void)
{
    static const char name[] = "acorn_name_lookups", help[] = "Look-ups of hosts' names and addresses by name.";
    static const aco__counted_t counted[] = {{name, "result=\"cached\"", "", help, NAME_CACHED, 0},
                                             {name, "result=\"found\"", "", help, NAME_FOUND, 0},
                                             {name, "result=\"failed\"", "", help, NAME_FAILED, 0}};
    static aco__counted_set_t set = {counted, NAME_RESULTS, read_names, NULL};
    aco__counted_add(&set);
}

/* Whether the name is in the cache. */
static int find_cached(const name_t *name, ips_t *ips)
{
    cached_name_t *entry;
    aco__io_pool_lock();
    shrink_cache(most_cached, aco_now());
    entry = take_from_cache(name);
    if (entry) {
        *ips = entry->ips;
        put_first(entry);
        count_name(NAME_CACHED);
    }
    aco__io_pool_unlock();
    return entry != NULL;
}

/* Without memory it is not kept. */
static void keep_in_cache(const name_t *name, const ips_t *ips)
{
    size_t sz = sizeof(cached_name_t);
    cached_name_t *entry = aco__service_allocate(&sz, "aco_io_dial"), *old;
    if (!entry)
        return;
    entry->sz = sz;
    entry->name = *name;
    entry->ips = *ips;
    aco__io_pool_lock();
    old = take_from_cache(name);
    if (old)
        aco__service_free(old, old->sz);
    entry->until = aco_after(cached_for);
    put_first(entry);
    shrink_cache(most_cached, aco_now());
    aco__io_pool_unlock();
}

/* A simulation keeps nothing for the next one. */
static int uses_cache(void)
{
    return !aco__chooser_is_there();
}

int aco_io_name_cache(size_t entries, int64_t ns)
{
    if (ns < 0)
        return aco__service_fail(EINVAL, "aco_io_name_cache", "the time is negative");
    aco__io_pool_lock();
    most_cached = entries;
    cached_for = ns;
    shrink_cache(0, 0);
    aco__io_pool_unlock();
    return 0;
}

/* ---- Looking up ---- */

typedef struct lookup {
    name_t name;
    ips_t ips;
    int failure; /* 0, or EAI_… */
    int is_kept; /* in the cache */
    size_t sz;
} lookup_t;

static int errno_of(int failure)
{
    switch (failure) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
#endif
        return ENOENT;
    case EAI_AGAIN:
        return EAGAIN;
    case EAI_MEMORY:
        return ENOMEM;
    case EAI_SYSTEM:
        return errno ? errno : EIO;
    case EAI_FAMILY:
        return EAFNOSUPPORT;
    default:
        return EIO;
    }
}

/* Of other families: 0. */
static int ip_of(const struct addrinfo *found, ip_t *ip)
{
    memset(ip, 0, sizeof *ip);
    ip->family = found->ai_family;
    if (found->ai_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)found->ai_addr;
        memcpy(ip->bytes, &in->sin_addr, sizeof in->sin_addr);
        return 1;
    }
    if (found->ai_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)found->ai_addr;
        memcpy(ip->bytes, &in->sin6_addr, sizeof in->sin6_addr);
        ip->scope_id = in->sin6_scope_id;
        return 1;
    }
    return 0;
}

/* On a thread of the pool. Another lookup may have found it meanwhile. */
static void *look_up(void *arg)
{
    lookup_t *lookup = arg;
    struct addrinfo hints, *found = NULL;
    if (lookup->is_kept && find_cached(&lookup->name, &lookup->ips))
        return arg;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = lookup->name.families == 4 ? AF_INET : lookup->name.families == 6 ? AF_INET6 : AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    errno = 0;
    lookup->failure = aco__system.getaddrinfo(lookup->name.host, NULL, &hints, &found);
    count_name(lookup->failure ? NAME_FAILED : NAME_FOUND);
    if (lookup->failure)
        return arg;
    for (const struct addrinfo *one = found; one && lookup->ips.n < IO_MOST_TARGETS; one = one->ai_next)
        lookup->ips.n += (size_t)ip_of(one, &lookup->ips.at[lookup->ips.n]);
    aco__system.freeaddrinfo(found);
    if (!lookup->ips.n)
        lookup->failure = EAI_NONAME;
    else if (lookup->is_kept)
        keep_in_cache(&lookup->name, &lookup->ips);
    return arg;
}

static void release_lookup(void *arg, void *result)
{
    (void)result;
    aco__service_free(arg, ((lookup_t *)arg)->sz);
}

/* 0; or -1, errno, and in *problem what a message says about it, NULL if errno is enough. */
ACO__SWITCHES
static int look_up_waiting(const name_t *name, ips_t *ips, const char **problem, const char *call, const char *location)
{
    size_t sz = sizeof(lookup_t);
    lookup_t *lookup = aco__service_new(&sz, call);
    int failure;
    if (!lookup)
        return -1;
    lookup->name = *name;
    lookup->is_kept = uses_cache();
    lookup->sz = sz;
    if (aco__io_offload_as(ACO__LOOK_UP, call, look_up, lookup, NULL, release_lookup, location) != 0)
        return -1;
    *ips = lookup->ips;
    failure = lookup->failure;
    if (failure) {
        errno = errno_of(failure);
        *problem = failure == EAI_SYSTEM ? NULL : gai_strerror(failure);
    }
    release_lookup(lookup, NULL);
    return failure ? -1 : 0;
}

/* ---- Targets ---- */

static aco__io_targets_t *targets_new(const char *call)
{
    size_t sz = sizeof(aco__io_targets_t) + IO_MOST_TARGETS * sizeof(aco__io_address_t);
    aco__io_targets_t *targets = aco__service_allocate(&sz, call);
    if (targets) {
        targets->n = 0;
        targets->sz = sz;
    }
    return targets;
}

static aco__io_targets_t *no_targets(aco__io_targets_t *targets)
{
    aco__service_free(targets, targets->sz);
    return NULL;
}

static void add_target(aco__io_targets_t *targets, const ip_t *ip, int type, in_port_t port)
{
    aco__io_address_t *address = &targets->at[targets->n++];
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->is.storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->is.storage;
    memset(address, 0, sizeof *address);
    address->type = type;
    address->is.storage.ss_family = (sa_family_t)ip->family;
    address->length = ip->family == AF_INET ? sizeof *in : sizeof *in6;
    if (ip->family == AF_INET) {
        in->sin_port = port;
        memcpy(&in->sin_addr, ip->bytes, sizeof in->sin_addr);
    } else {
        in6->sin6_port = port;
        in6->sin6_scope_id = ip->scope_id;
        memcpy(&in6->sin6_addr, ip->bytes, sizeof in6->sin6_addr);
    }
}

/* The system has ordered the addresses; here the families take turns (RFC 8305, section 4). */
static void add_in_turns(aco__io_targets_t *targets, const ips_t *ips, int type, in_port_t port)
{
    size_t next[2] = {0, 0};
    while (targets->n < ips->n)
        for (int other = 0; other < 2; other++) {
            size_t i = next[other];
            while (i < ips->n && (ips->at[i].family != ips->at[0].family) != other)
                i++;
            if (i < ips->n)
                add_target(targets, &ips->at[i], type, port);
            next[other] = i + 1;
        }
}

ACO__SWITCHES
static int add_of_name(aco__io_targets_t *targets, const char *call, const char *network, const char *host,
                       const char *port, const char *location)
{
    const char *problem = NULL;
    size_t length = strlen(host);
    aco__io_address_t any;
    name_t name;
    ips_t ips;
    if (aco__io_parse(&any, network, NULL, port, 0, 0) != 0) /* the port is the same for all hosts */
        return aco__io_fail_address(call, network, host, port, any.problem);
    if (length >= sizeof name.host) {
        errno = EINVAL;
        return aco__io_fail_address(call, network, "...", port, "the host is too long");
    }
    memset(&name, 0, sizeof name);
    memcpy(name.host, host, length);
    name.families = aco__io_families_of_name(network, host);
    if (!(uses_cache() && find_cached(&name, &ips)) && look_up_waiting(&name, &ips, &problem, call, location) != 0)
        return problem || errno != EPERM ? aco__io_fail_address(call, network, host, port, problem) : -1;
    add_in_turns(targets, &ips, any.type, aco__io_port(&any));
    return 0;
}

aco__io_targets_t *aco__io_targets(const char *call, const char *network, const char *host, const char *port,
                                   const char *location)
{
    aco__io_targets_t *targets = targets_new(call);
    if (!targets)
        return NULL;
    if (aco__io_families_of_name(network, host) >= 0)
        return add_of_name(targets, call, network, host, port, location) == 0 ? targets : no_targets(targets);
    while (aco__io_parse(&targets->at[targets->n], network, host, port, 0, (int)targets->n) == 0)
        targets->n++;
    if (targets->n)
        return targets;
    (void)aco__io_fail_address(call, network, host, port, targets->at[0].problem);
    return no_targets(targets);
}

/* ---- The calls ---- */

int aco_io_look_up_at(const char *network, const char *host, const char *port, struct sockaddr_storage *addresses,
                      int room, const char *location)
{
    aco__io_targets_t *targets = aco__io_targets("aco_io_look_up", network, host, port, location);
    int n;
    if (!targets)
        return -1;
    n = (int)targets->n;
    for (int i = 0; i < n && i < room; i++)
        addresses[i] = targets->at[i].is.storage;
    aco__service_free(targets, targets->sz);
    return n;
}

typedef struct reverse_lookup {
    struct sockaddr_storage address;
    socklen_t length;
    int failure;
    char host[NI_MAXHOST];
    size_t sz;
} reverse_lookup_t;

static void *look_up_reverse(void *arg)
{
    reverse_lookup_t *lookup = arg;
    errno = 0;
    lookup->failure = aco__system.getnameinfo((const struct sockaddr *)&lookup->address, lookup->length, lookup->host,
                                              sizeof lookup->host, NULL, 0, NI_NAMEREQD);
    return arg;
}

static void release_reverse(void *arg, void *result)
{
    (void)result;
    aco__service_free(arg, ((reverse_lookup_t *)arg)->sz);
}

int aco_io_name_of_at(const struct sockaddr *address, socklen_t length, char *name, size_t size, const char *location)
{
    static const char call[] = "aco_io_name_of";
    size_t sz = sizeof(reverse_lookup_t);
    reverse_lookup_t *lookup = aco__service_new(&sz, call);
    char text[ACO_IO_ADDRESS_SIZE] = "?";
    int result = 0;
    if (!lookup)
        return -1;
    lookup->sz = sz;
    lookup->length = length < sizeof lookup->address ? length : sizeof lookup->address;
    memcpy(&lookup->address, address, lookup->length);
    if (aco__io_offload_as(ACO__LOOK_UP, call, look_up_reverse, lookup, NULL, release_reverse, location) != 0)
        return -1;
    if (lookup->failure) {
        int error = errno_of(lookup->failure);
        (void)aco__io_format(address, length, text, sizeof text);
        errno = error;
        result = aco__io_fail_address(call, "address", text, NULL, gai_strerror(lookup->failure));
    } else if (strlen(lookup->host) >= size) {
        errno = ENOSPC;
        result = aco__io_fail_address(call, "name", lookup->host, NULL, NULL);
    } else {
        memcpy(name, lookup->host, strlen(lookup->host) + 1);
    }
    release_reverse(lookup, NULL);
    return result;
}

/* FreeBSD's has other types. */
static int name_of(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *port,
                   socklen_t port_size, int flags)
{
    return getnameinfo(address, length, host, host_size, port, port_size, flags);
}

/* By name these may be hooks. acorn_hook puts libc's into the table, before or after this. */
ACO__AT_LOAD static void register_resolver(void)
{
    if (!aco__system.getaddrinfo)
        aco__system.getaddrinfo = getaddrinfo;
    if (!aco__system.getnameinfo)
        aco__system.getnameinfo = name_of;
    if (!aco__system.freeaddrinfo)
        aco__system.freeaddrinfo = freeaddrinfo;
}
