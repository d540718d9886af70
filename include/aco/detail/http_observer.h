/* Between acorn_http and acorn_debug: who counts requests. Not for programs. */
#ifndef ACO_DETAIL_HTTP_OBSERVER_H
#define ACO_DETAIL_HTTP_OBSERVER_H

#include "../http.h"

ACO__BEGIN_C

/* Called after each request, where `log` of the server's options is; it must not wait. NULL: nobody. Atomic. */
typedef void (*aco__http_observer_t)(const aco_http_request_t *request);
ACO_API extern aco__http_observer_t aco__http_observer;
/* Connections of servers in this process: begun, and ended. Atomic. */
ACO_API extern uint64_t aco__http_connections_begun;
ACO_API extern uint64_t aco__http_connections_ended;

ACO__END_C

#endif
