/* Between acorn_http and acorn_debug: who counts requests. Not for programs. */
#ifndef ACO_DETAIL_HTTP_OBSERVER_H
#define ACO_DETAIL_HTTP_OBSERVER_H

#include "../http.h"

ACO__BEGIN_C

/* Called after each request, where `log` of the server's options is, with the time on the clock of aco_now(); it must
 * not wait. NULL: nobody. Atomic. */
typedef void (*aco__http_observer_t)(const aco_http_request_t *request, int64_t now);
ACO_API extern aco__http_observer_t aco__http_observer;
/* Who makes spans of requests (aco/spans.h). NULL: nobody. Atomic; what it points to stays. None of these waits. */
typedef struct aco__http_traced {
    void *span;             /* of the call; NULL: none */
    aco_http_header_t headers[2]; /* that it sends; a name of NULL: none */
    char parent[56];        /* the value of the first */
} aco__http_traced_t;
typedef struct aco__http_tracer {
    /* A server's request gets its handler, in the task that runs it: its span; NULL: none. */
    void *(*request_begins)(const aco_http_request_t *request);
    /* The request is over, where `log` is called, in the same task. */
    void (*request_ends)(const aco_http_request_t *request, void *span);
    /* A client's call begins in the running task; if it `streams`, this side is told of no end. */
    void (*call_begins)(aco__http_traced_t *call, const char *method, const char *url, int streams);
    /* It has the response's head, with this status; 0: it has failed. Keeps errno. */
    void (*call_ends)(aco__http_traced_t *call, int status);
    /* A client's call of gRPC begins in the running task: its span is no task's, and any may end it, on any thread.
     * `method` is "package.Service/Method". */
    void (*rpc_begins)(aco__http_traced_t *call, const char *method, const char *target);
    /* It has ended with this status, such as "OK". Keeps errno. */
    void (*rpc_ends)(aco__http_traced_t *call, const char *status, int has_failed);
    /* A server's request, with this span, is a call of this method; NULL: of none that is known. It has ended so. */
    void (*rpc_is_served)(void *span, const char *method, const char *status, int has_failed);
} aco__http_tracer_t;
ACO_API extern const aco__http_tracer_t *aco__http_tracer;

/* Connections of servers in this process: begun, ended, and how often one has moved to another thread, which neither
 * begins nor ends it. Atomic. */
ACO_API extern uint64_t aco__http_connections_begun;
ACO_API extern uint64_t aco__http_connections_ended;
ACO_API extern uint64_t aco__http_connections_moved;
/* How many tables of routes servers have begun with: one that is known may have gone, and another one stand there, when
 * it changes. Atomic. */
ACO_API extern unsigned aco__http_tables_begun;
/* The same of requests that get a handler, while somebody looks. */
ACO_API extern uint64_t aco__http_requests_begun;
ACO_API extern uint64_t aco__http_requests_ended;

ACO__END_C

#endif
