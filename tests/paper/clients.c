/* The clients that bench/run_paper.py measures do what they say: bodies arrive whole, in whatever pieces they come;
 * errors are reported; responses find their requests in any order; what is no response is rejected. */
#include "../../bench/clients/http.h"
#include "../../bench/clients/rpc.h"
#include "../check.h"

static void add_up(client_sink_t *sink, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sink->sum = (sink->sum ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    sink->size += size;
}

static client_sink_t sum_of(const char *data, size_t size)
{
    client_sink_t sink = {add_up, 0, 0};
    add_up(&sink, data, size);
    return sink;
}

static int same(client_sink_t a, client_sink_t b)
{
    return a.size == b.size && a.sum == b.sum;
}

static const size_t pieces[] = {NETWORK_AT_ONCE, 1000, 7};

static void *http(void *arg)
{
    network_t n = {.serve = http_serve, .at_once = *(const size_t *)arg};
    http_client_t c;
    http_client_init(&c, &n);
    for (size_t object = 0; object < 3; object++) {
        char path[32];
        client_sink_t sink = {add_up, 0, 0}, error = {add_up, 0, 0};
        snprintf(path, sizeof path, "/objects/%zu", object * 333);
        CHECK(http_get(&c, path, &sink) == 200);
        CHECK(same(sink, sum_of(objects_bytes + object * 333, OBJECT_SIZE)));
        CHECK(http_get(&c, "/objects/1000", &error) == 404); /* and the connection goes on */
        CHECK(same(error, sum_of("no such object", 14)));
    }
    return NULL;
}

static const char *bad_response;

static void serve_badly(network_t *n, const char *request, size_t size)
{
    (void)request;
    if (size != 0)
        network_answer(n, bad_response, strlen(bad_response));
}

static void *http_refuses(void *arg)
{
    static const char *const all[] = {"no HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nclosed",
                                      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        network_t n = {.serve = serve_badly, .at_once = NETWORK_AT_ONCE};
        client_sink_t sink = {add_up, 0, 0};
        http_client_t c;
        bad_response = all[i];
        http_client_init(&c, &n);
        CHECK(http_get(&c, "/", &sink) == -1);
    }
    return arg;
}

/* Some calls at once: the server answers 1, 0, 3, 2, 4. */
static void *rpc(void *arg)
{
    static const struct {
        uint32_t function;
        uint64_t object;
        int status;
        const char *message;
    } asked[] = {{RPC_READ_OBJECT, 5, RPC_OK, NULL},
                 {RPC_READ_OBJECT, OBJECTS, RPC_NO_OBJECT, "no such object"},
                 {9, 0, RPC_NO_FUNCTION, "no such function"},
                 {RPC_READ_OBJECT, 999, RPC_OK, NULL},
                 {RPC_READ_OBJECT, 0, RPC_OK, NULL}};
    enum { CALLS = sizeof asked / sizeof *asked };
    rpc_server_t server = {.holds = 0};
    network_t n = {.serve = rpc_serve, .server = &server, .at_once = *(const size_t *)arg};
    rpc_client_t c = {.network = &n};
    rpc_call_t calls[CALLS];
    client_sink_t sinks[CALLS];
    for (int i = 0; i < CALLS; i++) {
        sinks[i] = (client_sink_t){add_up, 0, 0};
        CHECK(rpc_begin(&c, &calls[i], asked[i].function, asked[i].object, &sinks[i]) == 0);
    }
    CHECK(rpc_end(&c, &calls[0]) == asked[0].status);
    CHECK(calls[1].status == asked[1].status); /* its response came before */
    CHECK(calls[2].status == -1 && calls[3].status == -1);
    CHECK(rpc_end(&c, &calls[2]) == asked[2].status && calls[3].status == asked[3].status);
    CHECK(rpc_end(&c, &calls[4]) == asked[4].status);
    for (int i = 0; i < CALLS; i++)
        CHECK(same(sinks[i], asked[i].message ? sum_of(asked[i].message, strlen(asked[i].message))
                                              : sum_of(objects_bytes + asked[i].object, OBJECT_SIZE)));
    return NULL;
}

static void *rpc_refuses(void *arg)
{
    rpc_server_t server = {.holds = 0};
    network_t n = {.serve = rpc_serve, .server = &server, .at_once = NETWORK_AT_ONCE};
    rpc_client_t c = {.network = &n};
    rpc_call_t calls[RPC_IN_FLIGHT + 1];
    client_sink_t sink = {add_up, 0, 0};
    for (int i = 0; i < RPC_IN_FLIGHT; i++)
        CHECK(rpc_begin(&c, &calls[i], 9, 0, &sink) == 0);
    CHECK(rpc_begin(&c, &calls[RPC_IN_FLIGHT], 9, 0, &sink) == -1);
    for (int i = 0; i < RPC_IN_FLIGHT; i++)
        CHECK(rpc_end(&c, &calls[i]) == RPC_NO_FUNCTION);
    CHECK(rpc_begin(&c, &calls[0], 9, 0, &sink) == 0);
    server.held.tag += RPC_IN_FLIGHT;
    CHECK(rpc_end(&c, &calls[0]) == -1); /* a response to nothing that was asked */
    n = (network_t){.serve = serve_badly, .at_once = NETWORK_AT_ONCE};
    c = (rpc_client_t){.network = &n};
    bad_response = "neither a magic number nor a frame";
    CHECK(rpc_begin(&c, &calls[0], 9, 0, &sink) == 0 && rpc_end(&c, &calls[0]) == -1);
    bad_response = "short";
    c = (rpc_client_t){.network = &n};
    n.first = n.end;
    CHECK(rpc_begin(&c, &calls[0], 9, 0, &sink) == 0 && rpc_end(&c, &calls[0]) == -1);
    return arg;
}

static void *all(void *arg)
{
    const size_t number = sizeof pieces / sizeof *pieces;
    size_t own[sizeof pieces / sizeof *pieces];
    memcpy(own, pieces, sizeof pieces);
    tasks_run(http, own, sizeof *own, number); /* at the same time, in turns */
    tasks_run(rpc, own, sizeof *own, number);
    tasks_run(http_refuses, own, 0, 1);
    tasks_run(rpc_refuses, own, 0, 1);
    return arg;
}

int main(void)
{
    objects_make();
    aco_t *task = aco_spawn(all, NULL, NULL);
    CHECK(task != NULL && aco_run() == 0 && aco_join(task, NULL) == 0);
    return check_result("paper_clients");
}
