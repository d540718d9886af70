/* Channels: the addresses of a service, and what its calls do by its policies. */
#ifndef ACO_GRPC_CHANNEL_H
#define ACO_GRPC_CHANNEL_H

#include "grpc/call.h"

#include "aco/sync.h"

enum { GRPC_TOKEN = 1000 }; /* thousandths of one */

typedef struct aco__grpc_target { /* "host:port", "unix:path" */
    const char *text, *host, *port;
    const char *path; /* of a unix socket, whose host is "localhost"; NULL: it is none */
} aco__grpc_target_t;

/* Where calls go: a target, or in a round robin an address of it. */
typedef struct aco__grpc_backend {
    struct aco__grpc_backend *next;
    aco_grpc_channel_t *channel;
    const aco__grpc_target_t *target;
    aco_http_client_t *client; /* it keeps the connection */
    uint32_t users; /* calls */
    int64_t not_before; /* after a failure to connect */
    int64_t failed; /* when connecting has failed last; -1: it has not since the backend was reached */
    int64_t pause; /* the last one; 0: it has not failed since it was reached */
    uint32_t news; /* how often connecting has succeeded or failed */
    unsigned char is_marked; /* a look-up has not found it yet; it is still in the list */
    unsigned char is_gone; /* its name has it no more, nor has the list: the last user frees it */
    size_t sz;
    char url[]; /* "http://host:port" */
} aco__grpc_backend_t;

struct aco_grpc_channel_s {
    aco_grpc_channel_options_t options; /* with the defaults */
    aco__grpc_backend_t *first;
    aco__grpc_backend_t *last_used;
    aco__grpc_target_t *targets;
    size_t target_count;
    int64_t look_up_after; /* of a round robin */
    unsigned char must_look_up;
    aco_mutex_t looking_up;
    struct aco__grpc_gzip *gzip; /* gzip.c's, for all calls; NULL: there is none yet */
    int tokens; /* thousandths */
    struct aco__grpc_config *config; /* service_config.c's, whose policies' texts are in use; NULL: there is none */
    int error; /* of the last failure to connect */
    char reason[128];
    size_t sz; /* of this, the targets, the policies and the texts behind it */
};

/* ---- grpc_backend.c ---- */
ACO__HIDDEN aco__grpc_backend_t *aco__grpc_backend_new(aco_grpc_channel_t *channel, const aco__grpc_target_t *target,
                                                       const char *url);
ACO__HIDDEN void aco__grpc_backend_destroy(aco__grpc_backend_t *backend);
/* Takes a backend for a call, but none to which connecting has failed at the time `since` or later. If that is
 * ACO_FOREVER, any will do, and the call waits until one can be tried. NULL and errno: there is none, or a scope has
 * ended. */
ACO__SWITCHES ACO__HIDDEN aco__grpc_backend_t *aco__grpc_pick(aco_grpc_channel_t *channel, int64_t since, int64_t until,
                                                              const char *location);
ACO__HIDDEN void aco__grpc_let_go(aco__grpc_backend_t *backend);
/* What came of connecting, errno if it has failed. It has succeeded when something of the server has come. */
ACO__HIDDEN void aco__grpc_reached(aco__grpc_backend_t *backend);
ACO__HIDDEN void aco__grpc_not_reached(aco__grpc_backend_t *backend, int error);

/* ---- grpc_policy.c ---- */
/* The policy of a method; NULL: there is none. */
ACO__HIDDEN const aco_grpc_policy_t *aco__grpc_policy_of(const aco_grpc_channel_t *channel, const char *path);
/* The budget: a call has succeeded; a try has failed, and whether there may be another one. */
ACO__HIDDEN void aco__grpc_call_succeeded(aco_grpc_channel_t *channel);
ACO__HIDDEN int aco__grpc_try_failed(aco_grpc_channel_t *channel);

#endif
