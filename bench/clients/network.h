/* One connection of a mocked network. A request goes to the server's function at once. The answer waits as pieces of
 * memory, which are never copied. Sending and receiving first wait for the connection, so the other tasks run.
 *
 * The layers of the clients are functions that the compiler must not inline, as if each were in a file of its own. None
 * is marked ACO_SWITCHING: the compiler helper (tools/apn) does that. */
#ifndef CLIENTS_NETWORK_H
#define CLIENTS_NETWORK_H
#include "../tasks.h"

#define CLIENT_LAYER static TASK_RETURNS __attribute__((noinline, unused))

enum { NETWORK_PIECES = 64,
       NETWORK_AT_ONCE = 64 << 10 };

typedef struct network_piece {
    const char *data;
    size_t size;
} network_piece_t;

typedef struct network {
    /* With size 0 the client waits for an answer. */
    void (*serve)(struct network *network, const char *request, size_t size);
    void *server;   /* data of serve() */
    size_t at_once; /* most bytes of one receive */
    network_piece_t pieces[NETWORK_PIECES];
    unsigned first, end; /* of the waiting pieces, modulo NETWORK_PIECES */
} network_t;

/* For the server. `data` must stay until the client has received it. */
BENCH_FUNCTION void network_answer(network_t *n, const char *data, size_t size)
{
    native_must(n->end - n->first < NETWORK_PIECES, "the server answers more than the network holds");
    n->pieces[n->end % NETWORK_PIECES].data = data;
    n->pieces[n->end++ % NETWORK_PIECES].size = size;
}

CLIENT_LAYER void network_wait(network_t *n)
{
    (void)n;
    tasks_yield();
}

CLIENT_LAYER void network_send(network_t *n, const char *data, size_t size)
{
    network_wait(n);
    n->serve(n, data, size);
}

/* Points *data to up to `most` bytes and returns their number; 0 if the server has closed the connection. */
CLIENT_LAYER size_t network_receive(network_t *n, const char **data, size_t most)
{
    network_wait(n);
    if (n->first == n->end)
        n->serve(n, NULL, 0);
    if (n->first == n->end)
        return 0;
    network_piece_t *piece = &n->pieces[n->first % NETWORK_PIECES];
    size_t size = piece->size < n->at_once ? piece->size : n->at_once;
    size = size < most ? size : most;
    *data = piece->data;
    piece->data += size;
    piece->size -= size;
    if (piece->size == 0)
        n->first++;
    return size;
}

/* take() receives the body of a response piece by piece. */
typedef struct client_sink {
    void (*take)(struct client_sink *sink, const char *data, size_t size);
    uint64_t size, sum;
} client_sink_t;

/* ---- The servers' objects: each is 1 MB of the same bytes, from another offset on ---- */

enum { OBJECT_SIZE = 1000000,
       OBJECTS = 1000 };
static char objects_bytes[OBJECT_SIZE + OBJECTS];

BENCH_FUNCTION void objects_make(void)
{
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof objects_bytes; i++)
        objects_bytes[i] = (char)bench_random(&state);
}

#endif
