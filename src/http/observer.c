/* Who watches servers and clients, and what they count for them. */
#include "os/platform.h"

#include "aco/detail/http_observer.h"

aco__http_observer_t aco__http_observer;
const aco__http_tracer_t *aco__http_tracer;
uint64_t aco__http_connections_begun;
uint64_t aco__http_connections_ended;
uint64_t aco__http_connections_moved;
unsigned aco__http_tables_begun;
uint64_t aco__http_requests_begun;
uint64_t aco__http_requests_ended;
