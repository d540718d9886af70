/* seen.c: what somebody who looks at the program sees of calls. Without anybody a call costs the two questions. */
#ifndef ACO_GRPC_SEEN_H
#define ACO_GRPC_SEEN_H

#include "grpc/call.h"

#include "aco/detail/http_observer.h"

typedef enum aco__grpc_end { GRPC_SERVES, GRPC_CALLS } aco__grpc_end_t;
enum { GRPC_SENT, GRPC_RECEIVED };

typedef struct aco__grpc_seen {
    struct aco__grpc_counts *counts; /* of its method; NULL: nobody counts */
    aco__grpc_end_t end;
    int is_known; /* its method */
    int64_t began;
    aco__http_traced_t traced; /* a client's */
} aco__grpc_seen_t;

/* A call begins; if somebody looks, it is seen from now on. `method` is its path; NULL: one of the peer's own, which
 * may be as many as it likes. `target`: of a client. Keeps errno. */
ACO__HIDDEN void aco__grpc_see_begin(aco_grpc_call_t *call, aco__grpc_end_t end, const char *method,
                                     const char *target);
/* It has ended with this status. Only the first end counts. Keeps errno. */
ACO__HIDDEN void aco__grpc_see_end(aco_grpc_call_t *call, int status);
ACO__HIDDEN void aco__grpc_count_message(aco_grpc_call_t *call, int direction, size_t n);

/* It has sent or got a message, of so many bytes as they are sent. */
static inline void aco__grpc_see_message(aco_grpc_call_t *call, int direction, size_t n)
{
    if (aco_unlikely(call->seen != NULL))
        aco__grpc_count_message(call, direction, n);
}

#endif
