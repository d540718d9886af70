/* Ends a handler's scope when its client goes away: middleware.
 *
 * A task of its own waits for the peer's end. It reads nothing, so it does not matter whether a body or another request
 * is there. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "http/request.h"

#include "aco/detail/descriptors.h"

#include <poll.h>
#include <string.h>

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* the system tells it by POLLHUP */
#endif

static const char place[] = "aco_http_end_with_client";

/* The task frees it, after the handler: one that ends by aco_exit() leaves its scope only after its deferred calls. It
 * is not on the handler's stack, which may be a shared one. */
typedef struct client_watch {
    aco__http_exchange_t *x; /* NULL: the handler has ended */
    aco_scope_t handler, own; /* that of the handler; that of the task */
    aco_t *task;
    unsigned char is_waiting; /* in its scope: for the client's end, then for the handler's */
    size_t sz;
} client_watch_t;

/* The client is gone. */
static void end_handler(client_watch_t *w)
{
    w->x->version->fail_body(w->x, ECONNRESET);
    (void)aco_scope_cancel(&w->handler);
}

ACO__SWITCHES static void *watch(void *arg)
{
    client_watch_t *w = arg;
    struct pollfd peer = {-1, POLLRDHUP, 0};
    if (w->x && aco_shield_begin_at(&w->own, ACO_FOREVER, place) == 0) {
        w->is_waiting = 1;
        peer.fd = w->x->is.fd;
        if (aco__io_poll(&peer, 1, ACO_FOREVER, place, place) > 0 && w->x && !(peer.revents & POLLNVAL))
            end_handler(w);
        while (w->x && aco_park_at(place, place) == 0)
            ;
        (void)aco_scope_end(&w->own);
    }
    ACO__ASSERT(!w->x);
    aco__service_free(w, w->sz);
    return NULL;
}

/* The handler has ended, also by aco_exit(). Does not switch. */
static void end_watch(void *arg)
{
    client_watch_t *w = arg;
    w->x = NULL;
    (void)aco_unpark(w->task);
    if (w->is_waiting)
        (void)aco_scope_cancel(&w->own);
}

/* NULL and errno. */
static client_watch_t *begin_watch(aco__http_exchange_t *x)
{
    size_t sz = sizeof(client_watch_t);
    client_watch_t *w = aco__service_allocate(&sz, place);
    aco_t *task;
    int deferred;
    if (!w)
        return NULL;
    memset(w, 0, sizeof *w);
    w->sz = sz;
    if (aco_scope_begin_at(&w->handler, ACO_FOREVER, place) != 0) {
        aco__service_free(w, sz);
        return NULL;
    }
    deferred = aco_defer(end_watch, w) == 0;
    task = deferred ? aco_spawn(watch, w, NULL) : NULL;
    if (task) {
        w->x = x;
        w->task = task;
        (void)aco_detach(task);
        return w;
    }
    (void)aco_scope_end(&w->handler);
    if (deferred)
        (void)aco_defer_pop(0);
    aco__service_free(w, sz);
    return NULL;
}

void aco_http_end_with_client(aco_http_request_t *request, void *arg)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    client_watch_t *w = begin_watch(x);
    (void)arg;
    if (!w) {
        aco__http_refuse(x, 503, place);
        return;
    }
    (void)aco_http_next(request);
    (void)aco_scope_end(&w->handler);
    (void)aco_defer_pop(1);
}
