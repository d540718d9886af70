/* Random sequences of calls on sockets and other descriptors. A call names descriptors by slots, and its variant by a
 * number: socket_world.h makes it, in a world. So one sequence can be made in several worlds, and with calls left out.
 */
#ifndef SOCKET_CALLS_H
#define SOCKET_CALLS_H

#include "random.h"

#include <string.h>

enum { SLOTS = 6, MOST_CALLS = 48, FEWEST_RANDOM = 6, MOST_RANDOM = 24 };

typedef enum call_kind {
    CALL_SOCKET,
    CALL_PIPE,
    CALL_EVENTFD,
    CALL_EPOLL,
    CALL_DUP,
    CALL_CLOSE,
    CALL_BIND,
    CALL_LISTEN,
    CALL_CONNECT,
    CALL_ACCEPT,
    CALL_SHUTDOWN,
    CALL_SEND,
    CALL_RECEIVE,
    CALL_FLOOD,
    CALL_SET,
    CALL_GET,
    CALL_NAME,
    CALL_PEER,
    CALL_FLAGS,
    CALL_WATCH,
    CALL_WAIT,
    CALL_KINDS
} call_kind_t;

/* How often each is drawn. */
static const unsigned char call_weights[CALL_KINDS] = {
    [CALL_SOCKET] = 6,   [CALL_PIPE] = 2,  [CALL_EVENTFD] = 2,  [CALL_EPOLL] = 2,    [CALL_DUP] = 3,
    [CALL_CLOSE] = 6,    [CALL_BIND] = 5,  [CALL_LISTEN] = 3,   [CALL_CONNECT] = 10, [CALL_ACCEPT] = 8,
    [CALL_SHUTDOWN] = 6, [CALL_SEND] = 20, [CALL_RECEIVE] = 20, [CALL_FLOOD] = 1,    [CALL_SET] = 4,
    [CALL_GET] = 8,      [CALL_NAME] = 2,  [CALL_PEER] = 2,     [CALL_FLAGS] = 2,    [CALL_WATCH] = 10,
    [CALL_WAIT] = 8,
};

typedef struct call {
    unsigned char kind, slot, other; /* a call that opens a descriptor takes the slot, or the next one that is free */
    unsigned char how;               /* which variant; its meaning is the kind's */
    unsigned short n;                /* bytes, or another number */
    unsigned char is_exact;          /* else empty slots stand for the next ones that are not */
} call_t;

typedef struct calls {
    call_t calls[MOST_CALLS];
    int n;
} calls_t;

/* Kinds of sockets, as CALL_SOCKET counts them. */
enum {
    SOCKET_TCP,
    SOCKET_UDP,
    SOCKET_TCP6,
    SOCKET_UDP6,
    SOCKET_STREAM,
    SOCKET_DATAGRAMS,
    SOCKET_PACKETS,
    SOCKET_KINDS
};

static inline void add_call(calls_t *calls, int kind, int slot, int other, int how, int n)
{
    calls->calls[calls->n++] = (call_t){.kind = (unsigned char)kind,
                                        .slot = (unsigned char)slot,
                                        .other = (unsigned char)other,
                                        .how = (unsigned char)how,
                                        .n = (unsigned short)n,
                                        .is_exact = 1};
}

/* Most sequences begin with something that works. */
static inline void open_connection(calls_t *calls, random_t *r, int kind)
{
    add_call(calls, CALL_SOCKET, 0, 0, kind, 0);
    add_call(calls, CALL_BIND, 0, 0, 0, 0);
    add_call(calls, CALL_LISTEN, 0, 0, 2, 0);
    add_call(calls, CALL_SOCKET, 1, 0, kind, 0);
    if (below(r, 4) == 0) /* one that has a name, too */
        add_call(calls, CALL_BIND, 1, 0, 0, 1);
    add_call(calls, CALL_CONNECT, 1, 0, 0, 0);
    add_call(calls, CALL_ACCEPT, 0, 0, 0, 0);
}

/* The variants of CALL_SET and CALL_BIND that bind to an address which was another one's. */
enum { SET_REUSEADDR = 25, SET_REUSEPORT = 26, BIND_TO_GONE = 14 };

static inline void let_reuse(calls_t *calls, random_t *r, int slot)
{
    if (below(r, 2) == 0)
        add_call(calls, CALL_SET, slot, 0, below(r, 3) ? SET_REUSEADDR : SET_REUSEPORT, 1);
}

/* The ends of a connection and its listener close in some order, and another socket wants the address. */
static inline void use_again(calls_t *calls, random_t *r, int kind)
{
    int first = (int)below(r, 3), step = 1 + (int)below(r, 2);
    add_call(calls, CALL_SOCKET, 0, 0, kind, 0);
    let_reuse(calls, r, 0);
    add_call(calls, CALL_BIND, 0, 0, 0, 0);
    add_call(calls, CALL_LISTEN, 0, 0, 2, 0);
    add_call(calls, CALL_SOCKET, 1, 0, kind, 0);
    add_call(calls, CALL_BIND, 1, 0, 0, 0);
    add_call(calls, CALL_CONNECT, 1, 0, 0, 0);
    add_call(calls, CALL_ACCEPT, 0, 0, 0, 0);
    if (below(r, 3) == 0)
        add_call(calls, CALL_SHUTDOWN, 1 + (int)below(r, 2), 0, (int)below(r, 256), 0);
    if (below(r, 3) == 0)
        add_call(calls, CALL_SEND, 1 + (int)below(r, 2), 0, 0, 10);
    for (int i = 0; i < 3; i++)
        add_call(calls, CALL_CLOSE, (first + i * step) % 3, 0, 0, 0);
    add_call(calls, CALL_SOCKET, 3, 0, kind, 0);
    let_reuse(calls, r, 3);
    add_call(calls, CALL_BIND, 3, 0, BIND_TO_GONE, 0);
}

static inline void open_two(calls_t *calls, random_t *r, int kind)
{
    for (int i = 0; i < 2; i++) {
        add_call(calls, CALL_SOCKET, i, 0, kind, 0);
        add_call(calls, CALL_BIND, i, 0, 0, i);
    }
    if (below(r, 2) == 0)
        add_call(calls, CALL_CONNECT, 0, 1, 0, 0);
    if (below(r, 2) == 0)
        add_call(calls, CALL_CONNECT, 1, 0, 0, 0);
}

static inline void watch_all(calls_t *calls, random_t *r)
{
    int how = (int)below(r, 256);
    add_call(calls, CALL_EPOLL, SLOTS - 1, 0, 0, 0);
    for (int i = 0; i < 3; i++)
        add_call(calls, CALL_WATCH, SLOTS - 1, i, how & ~3, 0);
    add_call(calls, CALL_WAIT, SLOTS - 1, 0, 0, 0);
}

/* Descriptors go along with some of what the client sends. */
static inline void pass_descriptors(calls_t *calls, random_t *r)
{
    add_call(calls, CALL_EVENTFD, 3, 0, 0, 0);
    for (int i = 0; i < 3; i++)
        add_call(calls, CALL_SEND, 1, 3, below(r, 2) ? 2 + (int)below(r, 2) * 16 : 0, 1 + (int)below(r, 60));
    for (int i = 0; i < 2; i++)
        add_call(calls, CALL_RECEIVE, 2, (int)below(r, SLOTS), (int)below(r, 256), 60);
}

static inline void begin_sequence(calls_t *calls, random_t *r)
{
    switch (below(r, 15)) {
    case 0:
        return;
    case 1:
        add_call(calls, CALL_PIPE, 0, 0, 0, 0);
        break;
    case 2:
        add_call(calls, CALL_EVENTFD, 0, 0, (int)below(r, 256), 0);
        break;
    case 3:
    case 4:
        open_two(calls, r, below(r, 2) ? SOCKET_DATAGRAMS : below(r, 3) ? SOCKET_UDP : SOCKET_UDP6);
        break;
    case 5:
    case 6:
    case 7:
        open_connection(calls, r, below(r, 3) ? SOCKET_STREAM : SOCKET_PACKETS);
        if (below(r, 2) == 0)
            pass_descriptors(calls, r);
        break;
    case 8:
        open_connection(calls, r, SOCKET_TCP6);
        break;
    case 9:
        use_again(calls, r, SOCKET_TCP);
        break;
    default:
        open_connection(calls, r, SOCKET_TCP);
    }
    if (below(r, 2) == 0)
        watch_all(calls, r);
}

static inline int random_kind(random_t *r)
{
    unsigned sum = 0, drawn;
    for (int i = 0; i < CALL_KINDS; i++)
        sum += call_weights[i];
    drawn = below(r, sum);
    for (int i = 0;; i++) {
        if (drawn < call_weights[i])
            return i;
        drawn -= call_weights[i];
    }
}

/* The sequence of this seed. */
static inline void random_calls(calls_t *calls, uint64_t seed)
{
    random_t r = {mix(seed)};
    int more;
    memset(calls, 0, sizeof *calls);
    begin_sequence(calls, &r);
    more = FEWEST_RANDOM + (int)below(&r, MOST_RANDOM - FEWEST_RANDOM);
    for (int i = 0; i < more; i++) {
        int kind = random_kind(&r), slot = (int)below(&r, SLOTS), other = (int)below(&r, SLOTS);
        int how = (int)below(&r, 256), n = below(&r, 8) ? 1 + (int)below(&r, 60) : 0;
        add_call(calls, kind, slot, other, how, n);
        calls->calls[calls->n - 1].is_exact = below(&r, 10) == 0;
    }
}

static inline void drop_call(calls_t *calls, int i)
{
    memmove(&calls->calls[i], &calls->calls[i + 1], (size_t)(calls->n - i - 1) * sizeof *calls->calls);
    calls->n--;
}

#endif
