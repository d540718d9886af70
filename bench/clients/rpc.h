/* A binary RPC. A frame is a fixed header, which has the size of the body, and the body. A client may send several
 * requests before it reads a response. Responses come in any order; each has the tag of its request. The server is here
 * too. */
#ifndef CLIENTS_RPC_H
#define CLIENTS_RPC_H
#include "network.h"

enum { RPC_MAGIC = 0x61636f72,
       RPC_READ_OBJECT = 1,
       RPC_IN_FLIGHT = 8 };
enum { RPC_OK = 0,
       RPC_NO_FUNCTION = 1,
       RPC_NO_OBJECT = 2 };

/* Both sides are in one process, so numbers are in its byte order. */
typedef struct rpc_header {
    uint32_t magic, size; /* bytes behind the header */
    uint32_t function, status;
    uint64_t tag;
} rpc_header_t;

typedef struct rpc_request {
    rpc_header_t header;
    uint64_t object;
} rpc_request_t;

typedef struct rpc_call {
    client_sink_t *sink; /* takes the response's bytes, or an error's message */
    uint64_t tag;
    int status; /* -1 until the response has come */
} rpc_call_t;

typedef struct rpc_client {
    network_t *network;
    uint64_t sent;                        /* number of requests; a request's number is its tag */
    rpc_call_t *in_flight[RPC_IN_FLIGHT]; /* by tag modulo RPC_IN_FLIGHT */
} rpc_client_t;

CLIENT_LAYER void rpc_send(rpc_client_t *c, const rpc_request_t *request)
{
    network_send(c->network, (const char *)request, sizeof *request);
}

/* Sends a request. Returns 0, or -1 if too many calls are in flight. */
CLIENT_LAYER int rpc_begin(rpc_client_t *c, rpc_call_t *call, uint32_t function, uint64_t object, client_sink_t *sink)
{
    rpc_request_t request = {{RPC_MAGIC, sizeof request.object, function, 0, c->sent}, object};
    rpc_call_t **slot = &c->in_flight[c->sent % RPC_IN_FLIGHT];
    if (*slot)
        return -1;
    call->sink = sink;
    call->tag = c->sent++;
    call->status = -1;
    *slot = call;
    rpc_send(c, &request);
    return 0;
}

/* Returns 0, or -1 if the connection was closed. */
CLIENT_LAYER int rpc_read_header(rpc_client_t *c, rpc_header_t *header)
{
    for (size_t have = 0; have < sizeof *header;) {
        const char *data;
        size_t size = network_receive(c->network, &data, sizeof *header - have);
        if (size == 0)
            return -1;
        memcpy((char *)header + have, data, size);
        have += size;
    }
    return 0;
}

CLIENT_LAYER int rpc_read_body(rpc_client_t *c, size_t left, client_sink_t *sink)
{
    while (left > 0) {
        const char *data;
        size_t size = network_receive(c->network, &data, left);
        if (size == 0)
            return -1;
        sink->take(sink, data, size);
        left -= size;
    }
    return 0;
}

/* Reads the next response, of any call. Returns -1 if it is no response or belongs to no call. */
CLIENT_LAYER int rpc_read_response(rpc_client_t *c)
{
    rpc_header_t header;
    if (rpc_read_header(c, &header) != 0 || header.magic != RPC_MAGIC)
        return -1;
    rpc_call_t **slot = &c->in_flight[header.tag % RPC_IN_FLIGHT], *call = *slot;
    if (!call || call->tag != header.tag || rpc_read_body(c, header.size, call->sink) != 0)
        return -1;
    call->status = (int)header.status;
    *slot = NULL;
    return 0;
}

/* Waits for the call's response and returns its status; -1 if none will come, and the connection is then useless. */
CLIENT_LAYER int rpc_end(rpc_client_t *c, rpc_call_t *call)
{
    while (call->status < 0)
        if (rpc_read_response(c) != 0)
            return -1;
    return call->status;
}

/* ---- The server: answers requests in pairs, the later one first ---- */

typedef struct rpc_server {
    rpc_header_t held, answers[2 * RPC_IN_FLIGHT];
    uint64_t held_object;
    unsigned answered;
    int holds;
} rpc_server_t;

BENCH_FUNCTION void rpc_answer(network_t *n, const rpc_header_t *request, uint64_t object)
{
    static const char no_function[] = "no such function", no_object[] = "no such object";
    rpc_server_t *s = (rpc_server_t *)n->server;
    rpc_header_t *answer = &s->answers[s->answered++ % (2 * RPC_IN_FLIGHT)];
    const char *body = request->function != RPC_READ_OBJECT ? no_function : object >= OBJECTS ? no_object
                                                                                              : objects_bytes + object;
    *answer = *request;
    answer->status = body == no_function ? RPC_NO_FUNCTION : body == no_object ? RPC_NO_OBJECT
                                                                               : RPC_OK;
    answer->size = (uint32_t)(answer->status == RPC_OK ? (size_t)OBJECT_SIZE : strlen(body));
    network_answer(n, (const char *)answer, sizeof *answer);
    network_answer(n, body, answer->size);
}

BENCH_FUNCTION void rpc_serve(network_t *n, const char *data, size_t size)
{
    rpc_server_t *s = (rpc_server_t *)n->server;
    rpc_request_t request;
    if (size != 0) {
        native_must(size == sizeof request, "a request of another size");
        memcpy(&request, data, sizeof request);
        if (!s->holds) {
            s->held = request.header;
            s->held_object = request.object;
            s->holds = 1;
            return;
        }
        rpc_answer(n, &request.header, request.object);
    }
    if (s->holds)
        rpc_answer(n, &s->held, s->held_object);
    s->holds = 0;
}

#endif
