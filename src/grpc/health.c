/* grpc.health.v1.Health: which services serve. */
#include "grpc/grpc_server.h"

#include "aco/detail/for_grpc.h"
#include "aco/sync.h"

#include <string.h>

enum { HEALTH_SERVICE_UNKNOWN = 3 };

typedef struct aco__grpc_health_of {
    struct aco__grpc_health_of *next;
    int state;
    size_t sz;
    char service[];
} aco__grpc_health_of_t;

typedef struct aco__grpc_health {
    aco__grpc_health_of_t *first;
    aco_event_t changed;
    size_t sz;
} aco__grpc_health_t;

static aco__grpc_health_of_t *find_service(const aco__grpc_health_t *health, const char *service, size_t n)
{
    aco__grpc_health_of_t *of = health->first;
    while (of && (strlen(of->service) != n || memcmp(of->service, service, n) != 0))
        of = of->next;
    return of;
}

int aco_grpc_server_set_health(aco_grpc_server_t *server, const char *service, int state)
{
    static const char caller[] = "aco_grpc_server_set_health";
    const size_t n = strlen(service);
    size_t sz = sizeof(aco__grpc_health_of_t) + n + 1;
    aco__grpc_health_of_t *of;
    if (!server->health)
        return aco__service_fail(ENOENT, caller, "there is no health service");
    if (state < ACO_GRPC_HEALTH_UNKNOWN || state > ACO_GRPC_NOT_SERVING)
        return aco__service_fail(EINVAL, caller, "the state");
    of = find_service(server->health, service, n);
    if (!of) {
        of = aco__service_allocate(&sz, caller);
        if (!of)
            return -1;
        of->sz = sz;
        memcpy(of->service, service, n + 1);
        of->next = server->health->first;
        server->health->first = of;
    }
    of->state = state;
    aco_event_set(&server->health->changed);
    return 0;
}

/* Reads the request's service. 0, or -1 and errno. */
ACO__SWITCHES static int read_service(aco_grpc_call_t *call, const char **service, size_t *n)
{
    const void *message;
    const char *at, *p;
    size_t message_n, length;
    unsigned field;
    int more;
    *service = "";
    *n = 0;
    if (aco_grpc_read_only_at(call, &message, &message_n, ACO_PLACE) != 0)
        return -1;
    for (at = message; (more = aco__grpc_next_field(&at, (const char *)message + message_n, &field, &p, &length)) > 0;)
        if (field == 1 && p) {
            *service = p;
            *n = length;
        }
    errno = EINVAL;
    return more;
}

static int state_for(aco_grpc_call_t *call, const aco__grpc_health_t *health, const char *service, size_t n)
{
    const aco__grpc_health_of_t *of = find_service(health, service, n);
    if (!of)
        return HEALTH_SERVICE_UNKNOWN;
    return aco_http_is_draining(call->request) ? ACO_GRPC_NOT_SERVING : of->state;
}

ACO__SWITCHES static int write_state(aco_grpc_call_t *call, int state)
{
    char room[2] = {8, (char)state};
    return aco_grpc_write_at(call, room, state ? 2 : 0, ACO_PLACE);
}

ACO__SWITCHES static int check_health(aco_grpc_call_t *call, void *arg)
{
    const char *service;
    size_t n;
    int state;
    if (read_service(call, &service, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    state = state_for(call, arg, service, n);
    if (state == HEALTH_SERVICE_UNKNOWN)
        return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "the service is not known");
    return write_state(call, state) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

/* Waits for a change, or until the server is stopped. 0, or -1 and errno. */
ACO__SWITCHES static int await_change(aco_grpc_call_t *call, aco__grpc_health_t *health)
{
    int failed;
    if (aco__http_drain_begin_early(call->request, ACO_PLACE) != 0)
        return -1;
    aco_event_reset(&health->changed);
    failed = aco_event_wait_at(&health->changed, ACO_PLACE) != 0;
    if (aco_http_drain_end(call->request) > 0 || !failed)
        return aco_check_cancelled();
    return -1;
}

ACO__SWITCHES static int watch_health(aco_grpc_call_t *call, void *arg)
{
    aco__grpc_health_t *health = arg;
    const char *service;
    size_t n;
    int told = -1, state;
    if (read_service(call, &service, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    while (!aco_http_is_draining(call->request)) {
        state = state_for(call, health, service, n);
        if (state != told && write_state(call, state) != 0)
            return ACO_GRPC_FROM_ERRNO;
        told = state;
        if (state_for(call, health, service, n) != told)
            continue;
        if (await_change(call, health) != 0)
            return ACO_GRPC_FROM_ERRNO;
    }
    if (told != ACO_GRPC_NOT_SERVING)
        (void)write_state(call, ACO_GRPC_NOT_SERVING);
    return aco_grpc_fail(call, ACO_GRPC_UNAVAILABLE, "the server ends");
}

static void free_health(aco__grpc_health_t *health)
{
    while (health->first) {
        aco__grpc_health_of_t *of = health->first;
        health->first = of->next;
        aco__service_free(of, of->sz);
    }
    aco__service_free(health, health->sz);
}

int aco_grpc_server_add_health(aco_grpc_server_t *server)
{
    size_t sz = sizeof(aco__grpc_health_t);
    aco__grpc_health_t *health;
    if (server->health)
        return aco__service_fail(EEXIST, "aco_grpc_server_add_health", "the server has it");
    health = aco__service_new(&sz, "aco_grpc_server_add_health");
    if (!health)
        return -1;
    health->sz = sz;
    server->health = health;
    server->free_health = free_health;
    if (aco_grpc_server_set_health(server, "", ACO_GRPC_SERVING) != 0 ||
        aco_grpc_server_add(server, "/grpc.health.v1.Health/Check", check_health, health) != 0)
        return -1;
    return aco_grpc_server_add(server, "/grpc.health.v1.Health/Watch", watch_health, health);
}
