/* A client's call: grpc_client.c; its status: client_status.c; its tries: client_tries.c. */
#ifndef ACO_GRPC_CLIENT_H
#define ACO_GRPC_CLIENT_H

#include "grpc/grpc_channel.h"

typedef struct aco__grpc_client {
    aco_grpc_call_t call; /* first */
    aco_grpc_channel_t *channel;
    const aco_grpc_policy_t *policy; /* NULL: none */
    aco__grpc_backend_t *backend;
    uint32_t news; /* of the backend, when the call was sent there */
    aco_http_response_t *response; /* NULL: the call has not begun */
    aco_mutex_t beginning;
    int64_t until; /* the deadline, for all tries */
    int status; /* less than 0: the call has not ended */
    const char *text; /* that explains it */
    int retries, refusals;
    int64_t pause; /* at most before the next retry; 0: the policy's first */
    unsigned char waits; /* for a backend */
    unsigned char has_deadline; /* `until` is set */
    unsigned char has_head; /* of the response */
    unsigned char is_alone; /* the head has the trailers, too: there are no messages */
    unsigned char has_ended; /* its messages */
    unsigned char was_refused; /* the server has not looked at it */
    size_t sz;
} aco__grpc_client_t;

/* ---- grpc_client.c ---- */
/* Waits for the response's head. 0: the call goes on, or has ended with OK; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__grpc_await_head(aco__grpc_client_t *c, const char *location);
/* Gives up the response and its backend. */
ACO__HIDDEN void aco__grpc_leave(aco__grpc_client_t *c);

/* ---- client_status.c ---- */
extern ACO__HIDDEN const char aco__grpc_late[];
/* The call has ended with this status, unless it had ended before. Returns 0 if that is OK, else -1 with its errno. */
ACO__HIDDEN int aco__grpc_end_with(aco__grpc_client_t *c, int status, const char *text);
/* Sending or receiving has failed: the call ends, or goes on if it is only a scope of the caller that has ended.
 * Returns -1 with errno. */
ACO__HIDDEN int aco__grpc_http_failed(aco__grpc_client_t *c, int error);
/* The response's head has come; its end. 0: there is more, or the call has ended with OK; -1 and errno. */
ACO__HIDDEN int aco__grpc_take_head(aco__grpc_client_t *c);
ACO__HIDDEN int aco__grpc_take_trailers(aco__grpc_client_t *c);
/* The trailers, as far as they have come. */
ACO__HIDDEN const aco_http_header_t *aco__grpc_trailers_of(const aco__grpc_client_t *c, size_t *count);

#endif
