/* Tells handlers that wait when their server ends: by the end of a scope. */
#include "http/drain.h"

#include "aco/detail/for_grpc.h"

#include <string.h>

/* In memory of its own: the stack of its task may be a shared one. A task that ends by aco_exit() leaves its scopes
 * only after it has ended its request, and in between its other deferred calls may cancel a scope around this one,
 * which walks the task's scopes. So the server frees the record later. */
typedef struct aco__http_drain {
    aco_scope_t scope;
    struct aco__http_drain *outer; /* of the same request; NULL: none */
    struct aco__http_drain *next, **place; /* of the server's */
    size_t sz;
    unsigned char is_early; /* told of the stop, before lame_time */
} aco__http_drain_t;

void aco__http_tell_drains(aco_http_server_t *server)
{
    ACO__NO_SWITCH_BEGIN(); /* handlers would end theirs */
    for (aco__http_drain_t *d = server->drains; d; d = d->next)
        if (server->is_ending || d->is_early)
            (void)aco_scope_cancel(&d->scope);
    ACO__NO_SWITCH_END();
}

void aco__http_free_drains(aco_http_server_t *server)
{
    while (server->left_drains) {
        aco__http_drain_t *d = server->left_drains;
        server->left_drains = d->next;
        aco__service_free(d, d->sz);
    }
}

static void unlist(aco__http_drain_t *d)
{
    ACO__ASSERT(*d->place == d && (!d->next || d->next->place == &d->next));
    *d->place = d->next;
    if (d->next)
        d->next->place = d->place;
}

void aco__http_leave_drains(aco__http_exchange_t *x)
{
    while (x->drain) {
        aco__http_drain_t *d = x->drain;
        x->drain = d->outer;
        unlist(d);
        d->next = x->server->left_drains;
        x->server->left_drains = d;
    }
}

static int begin_drain(aco_http_request_t *request, int is_early, const char *location)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_http_server_t *server = x->server;
    size_t sz = sizeof(aco__http_drain_t);
    aco__http_drain_t *d;
    aco__http_free_drains(server);
    d = aco__service_new(&sz, "aco_http_drain_begin");
    if (!d)
        return -1;
    d->sz = sz;
    d->is_early = is_early != 0;
    if (aco_scope_begin_at(&d->scope, ACO_FOREVER, location) != 0) {
        int error = errno;
        aco__service_free(d, sz);
        errno = error;
        return -1;
    }
    d->outer = x->drain;
    x->drain = d;
    d->next = server->drains;
    d->place = &server->drains;
    if (d->next)
        d->next->place = &d->next;
    server->drains = d;
    if (server->is_ending || (is_early && server->is_draining))
        (void)aco_scope_cancel(&d->scope);
    return 0;
}

int aco_http_drain_begin_at(aco_http_request_t *request, const char *location)
{
    return begin_drain(request, 0, location);
}

int aco__http_drain_begin_early(aco_http_request_t *request, const char *location)
{
    return begin_drain(request, 1, location);
}

/* Whether this scope ended because of the server: by itself, or by one around it. */
static int has_been_told(const aco__http_drain_t *d)
{
    const aco_scope_t *by = aco_scope_ended_by(&d->scope);
    while (d && by != &d->scope)
        d = d->outer;
    return d != NULL;
}

int aco_http_drain_end(aco_http_request_t *request)
{
    static const char call[] = "aco_http_drain_end";
    struct aco__http_drain **place = &aco__http_exchange_of(request)->drain, *d;
    const aco_t *task = aco_current_task();
    int has_ended;
    while (*place && (*place)->scope.aco__task != task) /* other tasks of the handler's may have some */
        place = &(*place)->outer;
    d = *place;
    if (!d)
        return aco__service_fail(EPERM, call, "the task has not begun one");
    has_ended = has_been_told(d);
    if (aco_scope_end(&d->scope) != 0)
        return -1;
    *place = d->outer;
    unlist(d);
    aco__service_free(d, d->sz);
    return has_ended;
}
