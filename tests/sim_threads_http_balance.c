/* Servers of two threads that balance their connections, in simulations: handlers stall their threads, connections of
 * HTTP/1 and HTTP/2 move, and one server ends meanwhile. No request is lost, and none is handled twice. */
#include "system/system.h"

#include <aco/http.h>
#include <aco/mt.h>
#include <aco/offload.h>
#include <aco/threads.h>
#include "sim_checks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 6, REQUESTS = 8, RUNS = 30 };

typedef struct world {
    aco_http_balance_t balance;
    aco_mt_wait_group_t open, clients;
    char addresses[2][ACO_IO_ADDRESS_SIZE];
    aco_scope_t scopes[2];
    int handled[CLIENTS * REQUESTS];
} world_t;

static uint64_t moved;

static void handles(aco_http_request_t *request, void *world)
{
    const struct timespec stall = {0, 6000000};
    const char *id = aco_http_request_param(request, "id");
    world_t *w = world;
    __atomic_fetch_add(&w->handled[atoi(id)], 1, __ATOMIC_RELAXED);
    if (atoi(id) / REQUESTS % 3 == 0) {
        if (atoi(id) % 2)
            CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
        aco__system.nanosleep(&stall, NULL); /* of the thread */
    }
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", id, strlen(id)), 0);
}

static void *serves(void *world)
{
    world_t *w = world;
    aco_http_route_t routes[] = {{"GET", "/{id}", handles, w}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {.routes = routes, .balance = &w->balance};
    int me = aco_threads_index(), listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, w->addresses[me], ACO_IO_ADDRESS_SIZE), 0);
    CHECK_EQ(aco_scope_begin(&w->scopes[me], ACO_FOREVER), 0);
    CHECK_EQ(aco_mt_wait_group_done(&w->open), 0);
    CHECK(aco_http_serve(listener, &options) == -1 && errno == ECANCELED);
    CHECK_EQ(aco_scope_end(&w->scopes[me]), 0);
    return NULL;
}

/* ---- Clients ---- */

typedef struct client {
    world_t *world;
    int number, fd;
    aco_http_client_t *http2; /* NULL: it speaks HTTP/1, by its descriptor */
} client_t;

/* The server that it asks first; the other one, if that has ended. */
static int first_of(const client_t *c)
{
    return c->number % 3 == 0 ? 0 : c->number % 2;
}

static void connects(client_t *c)
{
    char *port;
    for (int i = first_of(c); c->fd < 0 && i < 2; i++) {
        char address[ACO_IO_ADDRESS_SIZE];
        memcpy(address, c->world->addresses[i], sizeof address);
        port = strchr(address, ':');
        *port++ = 0;
        c->fd = aco_io_dial("tcp", address, port, NULL);
    }
    CHECK(c->fd >= 0);
}

static void calls(client_t *c, int id)
{
    char text[200], reply[400];
    size_t n = 0;
    int length = snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", id);
    if (c->fd < 0)
        connects(c);
    CHECK_EQ(aco_io_write_all(c->fd, text, (size_t)length), length);
    snprintf(text, sizeof text, "\r\n\r\n%d", id);
    do {
        ssize_t more = aco_io_read(c->fd, reply + n, sizeof reply - 1 - n);
        CHECK(more > 0);
        if (more <= 0)
            return;
        n += (size_t)more;
        reply[n] = 0;
    } while (!strstr(reply, "\r\n\r\n") || n < strlen(text) || strcmp(reply + n - strlen(text), text) != 0);
    if (strstr(reply, "Connection: close")) {
        CHECK_EQ(aco_io_close(c->fd), 0);
        c->fd = -1;
    }
}

static void calls_by_http2(const client_t *c, int id)
{
    aco_http_response_t *response = NULL;
    for (int i = first_of(c); !response && i < 2; i++) {
        char url[ACO_IO_ADDRESS_SIZE + 32];
        snprintf(url, sizeof url, "http://%s/%d", c->world->addresses[i], id);
        response = aco_http_get(c->http2, url);
        CHECK_EQ(c->world->handled[id], response != NULL);
    }
    CHECK(response != NULL && response->status == 200);
    aco_http_response_end(response);
}

static void *is_client(void *arg)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1};
    client_t *c = arg;
    if (c->number >= CLIENTS / 2 && aco_http_has_http2())
        CHECK((c->http2 = aco_http_client_new(&options)) != NULL);
    for (int i = 0; i < REQUESTS; i++) {
        int id = c->number * REQUESTS + i;
        if (c->http2)
            calls_by_http2(c, id);
        else
            calls(c, id);
        CHECK_EQ(c->world->handled[id], 1);
        CHECK_EQ(aco_sleep((1 + id % 3) * ACO_MILLISECOND), 0);
    }
    if (c->fd >= 0)
        CHECK_EQ(aco_io_close(c->fd), 0);
    aco_http_client_destroy(c->http2);
    CHECK_EQ(aco_mt_wait_group_done(&c->world->clients), 0);
    return NULL;
}

/* ---- Threads ---- */

static void *works(void *world)
{
    static client_t clients[CLIENTS];
    world_t *w = world;
    int me = aco_threads_index();
    aco_t *server = me < 2 ? aco_spawn(serves, w, NULL) : NULL;
    CHECK_EQ(aco_mt_wait_group_wait(&w->open), 0);
    if (!server) {
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (client_t){w, i, -1, NULL};
            aco_detach(aco_spawn(is_client, &clients[i], NULL));
        }
        return NULL;
    }
    if (me == 0)
        CHECK_EQ(aco_sleep(30 * ACO_MILLISECOND), 0); /* of virtual time: in the midst of it */
    else
        CHECK_EQ(aco_mt_wait_group_wait(&w->clients), 0);
    CHECK_EQ(aco_scope_cancel(&w->scopes[me]), 0);
    CHECK_EQ(aco_join(server, NULL), 0);
    return NULL;
}

static void *runs_set(void *world)
{
    CHECK_EQ(aco_threads_run(3, works, world, NULL), 0);
    return NULL;
}

static void scenario(aco_sim_t *sim, void *arg)
{
    static world_t w;
    (void)sim, (void)arg;
    memset(&w, 0, sizeof w);
    CHECK_EQ(aco_mt_wait_group_add(&w.open, 2), 0);
    CHECK_EQ(aco_mt_wait_group_add(&w.clients, CLIENTS), 0);
    CHECK_EQ(aco_offload(runs_set, &w, NULL, NULL), 0);
    for (int i = 0; i < CLIENTS * REQUESTS; i++)
        CHECK_EQ(w.handled[i], 1);
    CHECK(!w.balance.aco__members);
    moved += w.balance.moved;
}

int main(void)
{
    sim_alarm(100);
    passes(scenario, NULL, RUNS);
    CHECK(moved >= RUNS);
    return check_result("sim_threads_http_balance");
}
