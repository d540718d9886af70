/* A server of gRPC: grpc_server.c. */
#ifndef ACO_GRPC_SERVER_H
#define ACO_GRPC_SERVER_H

#include "grpc/call.h"

typedef struct aco__grpc_method {
    const char *path;
    ACO__SWITCHES aco_grpc_handler_t handler;
    void *arg;
} aco__grpc_method_t;

struct aco_grpc_server_s {
    aco_grpc_server_options_t options; /* with the defaults */
    aco__grpc_method_t *methods; /* sorted by their paths */
    size_t count, room; /* of them; bytes */
    struct aco__grpc_health *health; /* health.c's; NULL: there is none */
    struct aco__grpc_reflection *reflection; /* reflection.c's; NULL: there is none */
    void (*free_health)(struct aco__grpc_health *health); /* each is set with what it frees */
    void (*free_reflection)(struct aco__grpc_reflection *reflection);
    struct aco__grpc_gzip *gzip; /* gzip.c's, for all calls; NULL: there is none yet */
    aco_http_route_t routes[2];
    aco_http_middleware_t middleware[2];
    aco_http_group_t groups[2];
    size_t sz;
};

#endif
