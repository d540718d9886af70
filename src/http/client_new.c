/* Clients: made and destroyed. One that is shared has a client of its own for each thread that uses it: connections
 * belong to their thread. These are in a list that only grows until the client is destroyed, so it needs no lock. */
#include "base/reserved.h"
#include "http/base64.h"
#include "http/client_peer.h"

#include "aco/detail/for_grpc.h"

#include <stdio.h>
#include <string.h>

static const char client_new[] = "aco_http_client_new";

/* ---- Options ---- */

/* What is wrong with the options, of which those with defaults are set; NULL: nothing. */
static const char *fault_of_options(const aco_http_client_options_t *o)
{
    if (o->max_head < 64 || o->max_head > 1 << 20 || o->max_headers < 1 || o->max_headers > 1000)
        return "a limit";
    if (ACO__RESERVED_IS_SET(o))
        return "a reserved field is not 0";
    if (o->limits_in_all && !o->is_shared)
        return "limits_in_all without is_shared";
    if (o->connect_time < 0 || o->head_time < 0 || o->total_time < 0 || o->ping_time < 0 || o->max_decoded < 0)
        return "a time, or max_decoded";
    if (o->proxy_host &&
        (!o->proxy_port || strlen(o->proxy_host) >= CLIENT_HOST || strlen(o->proxy_port) >= CLIENT_PORT))
        return "the proxy";
    if (o->proxy_user && (!o->proxy_host || strchr(o->proxy_user, ':') || strlen(o->proxy_user) >= CLIENT_USER ||
                          (o->proxy_password && strlen(o->proxy_password) >= CLIENT_USER)))
        return "the proxy's user";
    return NULL;
}

/* Makes the header for the proxy. 0, or -1 and errno. */
static int authorize_proxy(aco_http_client_t *client)
{
    const aco_http_client_options_t *o = &client->options;
    char credentials[2 * CLIENT_USER];
    size_t n, sz;
    if (!o->proxy_user)
        return 0;
    n = (size_t)snprintf(credentials, sizeof credentials, "%s:%s", o->proxy_user,
                         o->proxy_password ? o->proxy_password : "");
    sz = HTTP_BASIC(n);
    client->proxy_authorization = aco__service_allocate(&sz, client_new);
    if (!client->proxy_authorization)
        return -1;
    client->proxy_authorization_sz = sz;
    aco__http_put_basic(client->proxy_authorization, credentials, n);
    return 0;
}

/* `common`: what the threads of the client share has the places. */
static void open_places(aco_http_client_t *client, aco__http_common_t *common)
{
    aco__http_places_open(&client->places, (size_t)client->options.max_connections,
                          (size_t)client->options.max_per_host, common);
}

/* 0, or -1 and errno. */
static int limit_connections(aco_http_client_t *client)
{
    const aco_http_client_options_t *o = &client->options;
    aco__http_common_t *common = NULL;
    if (o->limits_in_all && (o->max_connections || o->max_per_host)) {
        common = aco__http_common_new((size_t)o->max_connections, (size_t)o->max_per_host, client_new);
        if (!common)
            return -1;
    }
    open_places(client, common);
    return 0;
}

/* A client with these options, which nobody has checked yet. NULL and errno. */
static aco_http_client_t *allocate_client(const aco_http_client_options_t *options, const char *call)
{
    size_t sz = sizeof(aco_http_client_t);
    aco_http_client_t *client = aco__service_new(&sz, call);
    if (!client)
        return NULL;
    if (options)
        client->options = *options;
    return client;
}

static void close_kept(aco_http_client_t *client)
{
    while (client->kept) {
        aco__http_peer_t *peer = client->kept;
        client->kept = peer->next;
        client->kept_count--;
        aco__http_close_peer(peer);
    }
}

/* Keeps errno, of a client without connections. */
static void end_client(aco_http_client_t *client)
{
    close_kept(client);
    aco__http2_forget_client(client);
    if (client->proxy_authorization_sz)
        aco__service_free(client->proxy_authorization, client->proxy_authorization_sz);
    aco__service_free(client, sizeof *client);
}

aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options)
{
    aco_http_client_t *client = allocate_client(options, client_new);
    aco_http_client_options_t *o;
    const char *fault;
    if (!client)
        return NULL;
    o = &client->options;
    o->max_idle = o->max_idle ? o->max_idle : 16;
    o->max_redirects = o->max_redirects ? o->max_redirects : 10;
    o->max_head = o->max_head ? o->max_head : 31 << 10;
    o->max_headers = o->max_headers ? o->max_headers : 200;
    o->max_decoded = o->max_decoded ? o->max_decoded : 256 << 20;
    o->max_connections = o->max_connections > 0 ? o->max_connections : 0;
    o->max_per_host = o->max_per_host > 0 ? o->max_per_host : 0;
    fault = fault_of_options(o);
    if (!fault && authorize_proxy(client) == 0 && limit_connections(client) == 0)
        return client;
    end_client(client);
    if (fault)
        aco__service_fail(EINVAL, client_new, fault);
    return NULL;
}

/* ---- Threads ---- */

static __thread uint64_t own_thread; /* a number that no other thread has had; 0: none yet */
static uint64_t threads_seen;

static aco_http_client_t *find_here(aco_http_client_t *client)
{
    aco_http_client_t *at = __atomic_load_n(&client->of_threads, __ATOMIC_ACQUIRE);
    while (at && at->thread != own_thread)
        at = at->next;
    return at;
}

/* NULL and errno. */
static aco_http_client_t *add_here(aco_http_client_t *client)
{
    aco_http_client_t *own = allocate_client(&client->options, CLIENT_CALL);
    if (!own)
        return NULL;
    if (!own_thread)
        own_thread = __atomic_add_fetch(&threads_seen, 1, __ATOMIC_RELAXED);
    own->thread = own_thread;
    own->proxy_authorization = client->proxy_authorization;
    open_places(own, client->places.common);
    own->next = __atomic_load_n(&client->of_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&client->of_threads, &own->next, own, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return own;
}

aco_http_client_t *aco__http_client_here(aco_http_client_t *client)
{
    aco_http_client_t *own;
    if (!client->options.is_shared)
        return client;
    own = find_here(client);
    return own ? own : add_here(client);
}

/* ---- Ends ---- */

void aco_http_client_close_idle(aco_http_client_t *client)
{
    aco_http_client_t *own = client->options.is_shared ? find_here(client) : client;
    if (own)
        close_kept(own);
}

void aco__http_client_dial_unix(aco_http_client_t *client, const char *path)
{
    ACO__ASSERT(!client->options.is_shared && !client->options.proxy_host);
    client->unix_path = path;
}

void aco_http_client_destroy(aco_http_client_t *client)
{
    aco__http_common_t *common;
    if (!client)
        return;
    common = client->places.common;
    while (client->of_threads) {
        aco_http_client_t *own = client->of_threads;
        client->of_threads = own->next;
        end_client(own);
    }
    end_client(client);
    aco__http_common_free(common);
}
