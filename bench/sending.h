/* For the programs of write_fully(): a mocked connection that takes SENT_AT_ONCE bytes of each send_some(), and the
 * check. In each round ten tasks send `number / 10` times each. Nothing reads the bytes: the network's work is not
 * measured. */
#ifndef BENCH_SENDING_H
#define BENCH_SENDING_H
#include "native.h"

enum { SENDERS = 10,
       SENT_AT_ONCE = 800 };

typedef struct connection {
    const char *data;     /* the bytes to send */
    const char *expected; /* where the next bytes must begin */
    size_t size, sends;
} connection_t;

typedef struct sending {
    connection_t connections[SENDERS];
} sending_t;

BENCH_FUNCTION void *sending_make(unsigned placement, size_t number)
{
    static sending_t s;
    static const char data[1] = {0};
    native_must(number % SENDERS == 0, "every task must send equally often");
    for (int i = 0; i < SENDERS; i++) {
        s.connections[i].data = (const char *)bench_hide((uintptr_t)data);
        s.connections[i].size = number / SENDERS * SENT_AT_ONCE;
    }
    (void)placement; /* each round has new tasks */
    return &s;
}

BENCH_FUNCTION void sending_begin(sending_t *s)
{
    for (int i = 0; i < SENDERS; i++) {
        s->connections[i].expected = s->connections[i].data;
        s->connections[i].sends = 0;
    }
}

BENCH_FUNCTION void sending_check(const sending_t *s)
{
    for (int i = 0; i < SENDERS; i++)
        native_must(s->connections[i].sends * SENT_AT_ONCE == s->connections[i].size, "not all was sent");
}

/* Like send() on a ready socket: returns how many bytes it took. */
static __attribute__((noinline, unused)) size_t send_some(connection_t *c, const char *data, size_t size)
{
    const size_t most = SENT_AT_ONCE, sent = size < most ? size : most;
    native_must(data == c->expected, "other bytes were sent");
    c->expected = data + sent;
    c->sends++;
    return sent;
}

#endif
