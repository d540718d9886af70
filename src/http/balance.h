/* Connections that move between the servers of several threads: balance.c. */
#ifndef ACO_HTTP_BALANCE_H
#define ACO_HTTP_BALANCE_H

#include "http/server_connection.h"

#include "aco/detail/worker.h"

enum { HTTP_STALL = 5 * 1000 * 1000 }; /* ns. A handler that runs longer without a wait stalls its thread */

/* For how many requests a connection stays whose handler has stalled the thread: if that is sure, for good; if another
 * task may have been it, for some. */
enum { HTTP_HEAVY = 255, HTTP_MAYBE_HEAVY = 16 };

/* A connection that moves. The task that it leaves waits until another thread has taken or refused it, and owns this
 * record, which is not on its stack: that may be a shared one. */
typedef struct aco__http_move {
    struct aco__http_move *next; /* with the lock, like the next two */
    struct aco__http_member *to;
    int is_listed; /* nobody has looked at it yet: it can be withdrawn */
    int fd;
    aco_stream_t *stream; /* on it, made by `open`; NULL: none */
    struct aco__http2 *http2; /* its session; NULL: it speaks HTTP/1 */
    unsigned requests; /* that it has had */
    int is_taken; /* valid when the answer is told */
    aco__answer_t answer;
} aco__http_move_t;

typedef int (*aco__http_connect_t)(aco_http_server_t *server, int fd, struct aco__http_address *address,
                                   const aco__http_move_t *move, const char *location);

/* A server as the others of its aco_http_balance_t see it. */
typedef struct aco__http_member {
    aco_http_server_t *server; /* only its own thread uses it */
    struct aco__http_member *next; /* with the lock, up to `connections` */
    unsigned char is_open; /* it is in the list: it gives and takes connections */
    aco__http_move_t *first, **last; /* connections that come */
    aco__answer_t *sleeper; /* wakes the receiver, by whoever takes it away from here; NULL: the receiver looks again */
    int connections; /* that are here, or come */
    int most; /* it takes connections from others as long as it has fewer; 0: no limit */
    _Alignas(8) int64_t stalled_until; /* a handler has stalled the thread a moment ago. Atomic */
    int64_t measures_until;
    int64_t measured_at; /* when a measured handler has ended last */
    aco_t *receiver; /* takes connections that come */
    ACO__SWITCHES aco__http_connect_t connect; /* gives one its task here */
    aco__answer_t answer;
    size_t sz;
} aco__http_member_t;

/* The server takes part; `connect`: aco__http_connect(). 0, or -1 and errno. */
ACO__HIDDEN int aco__http_join_balance(aco_http_server_t *server, ACO__SWITCHES aco__http_connect_t connect);
/* It does so no longer; connections that have not been taken stay where they were. Does nothing if it has not joined.
 * Keeps errno. */
ACO__SWITCHES ACO__HIDDEN void aco__http_leave_balance(aco_http_server_t *server, const char *location);
/* NULL: nothing happens. */
ACO__HIDDEN void aco__http_free_member(aco__http_member_t *member);
/* A connection begins (1) or ends (-1) here. */
ACO__HIDDEN void aco__http_count_in(aco__http_member_t *member, int n);

/* A request took long: handlers are measured for a while, to find out whether they wait or stall the thread. */
ACO__HIDDEN void aco__http_suspect(aco__http_member_t *member, int64_t now);
/* aco__http_call_route(), measured. If the handler has stalled the thread, *heavy becomes HTTP_HEAVY or
 * HTTP_MAYBE_HEAVY; else the latter goes down by 1. */
ACO__SWITCHES ACO__HIDDEN int aco__http_measure_route(aco__http_exchange_t *x, unsigned char *heavy);
static inline int aco__http_has_stalled(const aco__http_member_t *member, int64_t now)
{
    return now < __atomic_load_n(&member->stalled_until, __ATOMIC_RELAXED);
}
/* Gives a connection to the thread that is best for it. A new one goes where few connections are, another one away from
 * a thread that stalls. Nothing of it is read or unsent, and its stream can move. Whether another thread has it now,
 * with its session of HTTP/2: then it has no stream, and its task ends. */
ACO__SWITCHES ACO__HIDDEN int aco__http_place(aco__http_connection_t *c, const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_move(aco__http_connection_t *c, struct aco__http2 *http2, const char *location);
/* Whether the stream of an idle connection can go to another thread. */
static inline int aco__http_can_move(const aco__http_link_t *link)
{
    const aco_stream_functions_t *functions = link->stream->functions;
    return !link->has_half && (link->is_plain || (functions->can_move && functions->can_move(link->stream)));
}

#endif
