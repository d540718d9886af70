/* Connections of each address, counted in a hash table: an IPv4 address, or an IPv6 network (/64), of which one client
 * has all addresses. Many clients share two networks: that of a link (fe80::/10), where a whole address counts, and
 * NAT64's (64:ff9b::/96), whose last four bytes are an IPv4 address. */
#include "http/per_address.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"

#include <string.h>

#include <netinet/in.h>
#include <sys/socket.h>

enum { BUCKETS = 1024 }; /* a power of two */

struct aco__http_address {
    uint64_t high, low; /* as IPv6: for IPv4 the mapped address; else the network, or a link's number and an address */
    aco__http_addresses_t *all;
    aco__http_address_t *next; /* in its bucket */
    unsigned count;
};

struct aco__http_addresses {
    unsigned most;
    uint64_t seed; /* clients must not choose who shares a bucket */
    size_t sz;
    aco__http_address_t *buckets[BUCKETS];
};

/* ---- Addresses ---- */

static uint64_t bytes_of(const unsigned char *at)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; i++)
        bytes = bytes << 8 | at[i];
    return bytes;
}

/* For IPv4: ::ffff:0:0/96, which IPv6 sockets know it by. */
static const uint64_t mapped = UINT64_C(0xffff00000000);

static void set_key_of_in6(aco__http_address_t *key, const struct sockaddr_in6 *in6)
{
    static const uint64_t nat64 = UINT64_C(0x64ff9b00000000);
    uint64_t high = bytes_of(in6->sin6_addr.s6_addr), low = bytes_of(in6->sin6_addr.s6_addr + 8);
    int is_of_link = high >> 54 == 0xfe80 >> 6;
    key->high = is_of_link ? high | in6->sin6_scope_id : high;
    key->low = is_of_link ? low : 0;
    if ((high == 0 && low >> 32 == mapped >> 32) || (high == nat64 && low >> 32 == 0)) {
        key->high = 0;
        key->low = mapped | (low & UINT32_MAX);
    }
}

/* Whether the peer has an address, stored in *key. */
static int key_of(int fd, aco__http_address_t *key)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } peer;
    socklen_t n = sizeof peer;
    memset(&peer, 0, sizeof peer);
    if (aco__system.getpeername(fd, &peer.any, &n) != 0)
        return 0;
    key->high = 0;
    key->low = mapped | ntohl(peer.in.sin_addr.s_addr);
    if (peer.any.sa_family == AF_INET)
        return 1;
    if (peer.any.sa_family != AF_INET6)
        return 0;
    set_key_of_in6(key, &peer.in6);
    return 1;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static aco__http_address_t **bucket_of(aco__http_addresses_t *all, const aco__http_address_t *key)
{
    return &all->buckets[mix(mix(key->high ^ all->seed) ^ key->low ^ all->seed) & (BUCKETS - 1)];
}

/* ---- The table ---- */

aco__http_addresses_t *aco__http_addresses_new(unsigned most)
{
    size_t sz = sizeof(aco__http_addresses_t);
    aco__http_addresses_t *all = aco__service_new(&sz, "aco_http_serve");
    if (!all)
        return NULL;
    all->most = most;
    all->seed = mix((uint64_t)aco_now() ^ mix((uintptr_t)all ^ (uintptr_t)&all));
    all->sz = sz;
    return all;
}

void aco__http_addresses_free(aco__http_addresses_t *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        ACO__ASSERT(!all->buckets[i]);
    aco__service_free(all, all->sz);
}

int aco__http_address_enter(aco__http_addresses_t *all, int fd, int is_moved, aco__http_address_t **address)
{
    aco__http_address_t key, *at, **bucket;
    size_t sz = sizeof *at;
    *address = NULL;
    if (!key_of(fd, &key))
        return 0;
    bucket = bucket_of(all, &key);
    for (at = *bucket; at && (at->high != key.high || at->low != key.low);)
        at = at->next;
    if (at && at->count >= all->most && !is_moved)
        return -1;
    if (!at) {
        at = aco__service_allocate(&sz, "aco_http_serve");
        if (!at)
            return 0;
        *at = key;
        at->all = all;
        at->count = 0;
        at->next = *bucket;
        *bucket = at;
    }
    at->count++;
    *address = at;
    return 0;
}

void aco__http_address_leave(void *address)
{
    aco__http_address_t *at = address, **place;
    if (!at || --at->count)
        return;
    for (place = bucket_of(at->all, at); *place != at;)
        place = &(*place)->next;
    *place = at->next;
    aco__service_free(at, sizeof *at);
}
