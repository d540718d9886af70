/* HTTP and RPC clients in tasks of tasks.h: ten clients, each with its own connection, ask for objects of 1 MB. They
 * count the bytes that arrive and do not read them. */
#include "http.h"
#include "rpc.h"

enum { CLIENTS = 10,
       PIPELINED = 4 };

typedef struct client {
    network_t network;
    rpc_server_t server;
    http_client_t http;
    rpc_client_t rpc;
    size_t requests; /* in each round */
} client_t;

static client_t clients[CLIENTS];

static __attribute__((noinline)) void count(client_sink_t *sink, const char *data, size_t size)
{
    (void)data;
    sink->size += size;
}

/* `number` requests in all, equally many by each client. */
static void *clients_make(size_t number, void (*serve)(network_t *, const char *, size_t))
{
    native_must(number % (CLIENTS * PIPELINED) == 0, "every client must send equally many requests, in full pipelines");
    for (int i = 0; i < CLIENTS; i++) {
        client_t *c = &clients[i];
        memset(c, 0, sizeof *c);
        c->network.serve = serve;
        c->network.server = &c->server;
        c->network.at_once = NETWORK_AT_ONCE;
        c->requests = number / CLIENTS;
        c->rpc.network = &c->network;
        http_client_init(&c->http, &c->network);
    }
    return clients;
}

static void *http_make(unsigned placement, size_t number)
{
    (void)placement;
    return clients_make(number, http_serve);
}

static void *rpc_make(unsigned placement, size_t number)
{
    (void)placement;
    return clients_make(number, rpc_serve);
}

static void *http_body(void *arg)
{
    client_t *c = (client_t *)arg;
    client_sink_t sink = {count, 0, 0};
    for (size_t n = c->requests; n; n--)
        native_must(http_get(&c->http, "/objects/7", &sink) == 200, "an HTTP request failed");
    native_must(sink.size == c->requests * OBJECT_SIZE, "bodies of another size");
    return NULL;
}

static void *rpc_body(void *arg)
{
    client_t *c = (client_t *)arg;
    client_sink_t sink = {count, 0, 0};
    for (size_t n = c->requests; n; n -= PIPELINED) {
        rpc_call_t calls[PIPELINED];
        for (int i = 0; i < PIPELINED; i++)
            native_must(rpc_begin(&c->rpc, &calls[i], RPC_READ_OBJECT, 7, &sink) == 0, "too many calls in flight");
        for (int i = 0; i < PIPELINED; i++)
            native_must(rpc_end(&c->rpc, &calls[i]) == RPC_OK, "a call failed");
    }
    native_must(sink.size == c->requests * OBJECT_SIZE, "bodies of another size");
    return NULL;
}

/* Half of the clients speak HTTP, half RPC: each half has its own way into the wait. */
static void serve_either(network_t *network, const char *data, size_t size)
{
    client_t *c = (client_t *)network; /* its first member */
    if ((c - clients) % 2)
        rpc_serve(network, data, size);
    else
        http_serve(network, data, size);
}

static void *both_make(unsigned placement, size_t number)
{
    (void)placement;
    return clients_make(number, serve_either);
}

static void *both_body(void *arg)
{
    return ((client_t *)arg - clients) % 2 ? rpc_body(arg) : http_body(arg);
}

BENCH_INLINE void http_run(void *made, size_t rounds)
{
    for (; rounds; rounds--)
        tasks_run(http_body, made, sizeof(client_t), CLIENTS);
}
BENCH_INLINE void rpc_run(void *made, size_t rounds)
{
    for (; rounds; rounds--)
        tasks_run(rpc_body, made, sizeof(client_t), CLIENTS);
}
BENCH_INLINE void both_run(void *made, size_t rounds)
{
    for (; rounds; rounds--)
        tasks_run(both_body, made, sizeof(client_t), CLIENTS);
}
NATIVE_RUN(http_run)
NATIVE_RUN(rpc_run)
NATIVE_RUN(both_run)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"http", http_make, NATIVE_ALL(http_run)},
        {"rpc", rpc_make, NATIVE_ALL(rpc_run)},
        {"both", both_make, NATIVE_ALL(both_run)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    objects_make();
    return tasks_main(argc, argv, cases);
}
