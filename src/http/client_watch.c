/* Ends a handler's scope when its client goes away: middleware.
 *
 * A task of its own waits for the peer's end. It reads nothing, so it does not matter whether a body or another request
 * is there. HTTP/2 always reads, and tells of the end itself. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "http/client_watch.h"
#include "http/request.h"

#include "aco/detail/descriptors.h"

#include <poll.h>
#include <string.h>

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* the system tells it by POLLHUP */
#endif

enum { SHORTEST_MS = 10, LONGEST_MS = 1000 }; /* between looks while bytes of the client are unread */

static const char watch_place[] = "aco_http_end_with_client";

/* The task, if there is one, frees it, after the handler: one that ends by aco_exit() leaves its scope only after its
 * deferred calls. It is not on the handler's stack, which may be a shared one. */
typedef struct aco__http_client_watch {
    aco__http_exchange_t *x; /* NULL: the handler has ended */
    struct aco__http_client_watch *outer; /* of the same request; NULL: none */
    aco_scope_t handler;
    aco_t *task; /* NULL: the version tells of the end */
    size_t sz;
    unsigned char is_looking; /* in its scope: */
    aco_scope_t looking; /* while it waits for the client's end. Last: without a task there is no memory for it */
} client_watch_t;

/* The client is gone. */
static void end_handler(client_watch_t *w)
{
    w->x->client_left = 1;
    w->x->version->fail_body(w->x, ECONNRESET);
    (void)aco_scope_cancel(&w->handler);
}

/* Whether the client has closed; 0: that cannot be known any more. Bytes that nobody reads end each wait, too: the
 * looks are then ever further apart, or a client could have the system asked all the time. */
ACO__SWITCHES static int await_end(int fd)
{
    struct pollfd peer = {fd, POLLIN | POLLRDHUP, 0};
    int64_t pause = SHORTEST_MS * ACO_MILLISECOND;
    while (aco__io_poll(&peer, 1, ACO_FOREVER, watch_place, watch_place) > 0) {
        if (peer.revents & ~POLLIN)
            return !(peer.revents & POLLNVAL);
        if (aco_sleep_at(pause, watch_place) != 0)
            break;
        pause *= pause < LONGEST_MS * ACO_MILLISECOND ? 2 : 1;
    }
    return 0;
}

/* Until the client goes away, or nobody wants to know it any more. */
ACO__SWITCHES static void look(client_watch_t *w)
{
    int fd = w->x->is.fd, is_gone;
    if (fd < 0 || aco_scope_begin_at(&w->looking, ACO_FOREVER, watch_place) != 0)
        return;
    w->is_looking = 1;
    is_gone = await_end(fd);
    w->is_looking = 0;
    if (is_gone && w->x && !w->looking.error)
        end_handler(w);
    (void)aco_scope_end(&w->looking);
}

ACO__SWITCHES static void *watch(void *arg)
{
    client_watch_t *w = arg;
    aco_scope_t shield;
    if (w->x && aco_shield_begin_at(&shield, ACO_FOREVER, watch_place) == 0) {
        look(w);
        while (w->x && aco_park_at(watch_place, watch_place) == 0)
            ;
        (void)aco_scope_end(&shield);
    }
    ACO__ASSERT(!w->x);
    aco__service_free(w, w->sz);
    return NULL;
}

static void stop_looking(client_watch_t *w)
{
    if (w->is_looking)
        (void)aco_scope_cancel(&w->looking);
}

void aco__http_client_left(aco__http_exchange_t *x)
{
    for (client_watch_t *w = x->watch; w; w = w->outer)
        end_handler(w);
}

void aco__http_stop_watching(aco__http_exchange_t *x)
{
    for (client_watch_t *w = x->watch; w; w = w->outer)
        stop_looking(w);
}

/* The handler has ended, also by aco_exit(). Does not switch. */
static void end_watch(void *arg)
{
    client_watch_t *w = arg;
    w->x->watch = w->outer;
    w->x = NULL;
    if (!w->task) {
        aco__service_free(w, w->sz);
        return;
    }
    (void)aco_unpark(w->task);
    stop_looking(w);
}

/* NULL and errno. */
static client_watch_t *begin_watch(aco__http_exchange_t *x)
{
    const int needs_task = !x->version->tells_end;
    size_t sz = needs_task ? sizeof(client_watch_t) : offsetof(client_watch_t, looking);
    client_watch_t *w = aco__service_new(&sz, watch_place);
    aco_t *task;
    int deferred;
    if (!w)
        return NULL;
    w->sz = sz;
    if (aco_scope_begin_at(&w->handler, ACO_FOREVER, watch_place) != 0) {
        aco__service_free(w, sz);
        return NULL;
    }
    deferred = aco_defer(end_watch, w) == 0;
    task = deferred && needs_task ? aco_spawn(watch, w, NULL) : NULL;
    if (task || (deferred && !needs_task)) {
        w->x = x;
        w->outer = x->watch;
        x->watch = w;
        w->task = task;
        if (task)
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
        aco__http_refuse(x, 503, watch_place);
        return;
    }
    (void)aco_http_next(request);
    (void)aco_scope_end(&w->handler);
    (void)aco_defer_pop(1);
}
