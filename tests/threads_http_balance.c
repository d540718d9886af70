/* Connections that move between the servers of two threads (aco_http_balance_t). The clients are on a thread of their
 * own, without Acorn, so that a thread that is stalled stalls none of them. */
#include <aco/detail/http_observer.h>
#include <aco/http.h>
#include "threads_tests.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { REQUESTS = 100 }; /* of a connection */

typedef struct served {
    aco_http_balance_t balance;
    int ports[2], are_open;
    int max_connections[2], max_per_address;
    int is_blocked, may_go; /* a handler that stalls its thread */
    int waits; /* that handler, before */
    int stops; /* that handler ends its server */
    aco_scope_t scopes[2];
} served_t;

/* ---- The servers ---- */

static void reply_thread(aco_http_request_t *request)
{
    char body[2] = {(char)('0' + aco_threads_index()), 0};
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", body, 1), 0);
}

static void light(aco_http_request_t *request, void *world)
{
    (void)world;
    reply_thread(request);
}

/* Blocks the thread until the client lets it go on, and for as long as counts as a stall. */
static void heavy(aco_http_request_t *request, void *world)
{
    served_t *w = world;
    int64_t until;
    if (w->waits)
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    until = aco_after(6 * ACO_MILLISECOND);
    __atomic_store_n(&w->is_blocked, 1, __ATOMIC_RELEASE);
    while (!load(&w->may_go) || aco_now() < until)
        sched_yield();
    __atomic_store_n(&w->may_go, 0, __ATOMIC_RELEASE);
    if (w->stops)
        CHECK_EQ(aco_scope_cancel(&w->scopes[aco_threads_index()]), 0);
    reply_thread(request);
}

static void *serves(void *world)
{
    served_t *w = world;
    aco_http_route_t routes[] = {{"GET", "/", light, w}, {"GET", "/heavy", heavy, w}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {.routes = routes, .balance = &w->balance, .max_requests = REQUESTS};
    int me = aco_threads_index(), listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_stop_t stop;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    w->ports[me] = atoi(strchr(address, ':') + 1);
    options.max_connections = w->max_connections[me];
    options.max_per_address = w->max_per_address;
    options.drain_idle_time = 20 * ACO_MILLISECOND;
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_begin(&w->scopes[me], ACO_FOREVER), 0);
    add(&w->are_open, 1);
    FAILS_WITH(aco_http_serve(listener, &options), ECANCELED);
    CHECK_EQ(aco_scope_end(&w->scopes[me]), 0);
    CHECK_EQ(aco_stop_end(&stop), 0);
    return NULL;
}

/* ---- Clients ---- */

static int dial(const served_t *w, int thread)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)w->ports[thread])};
    struct timeval most = {30, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void ask(int fd, const char *path)
{
    char request[80];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    CHECK_EQ(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
}

/* The thread that has answered; -1: none has. Sets *closes if this was the last reply. */
static int answer_of(int fd, int *closes)
{
    char reply[1000];
    size_t n = 0;
    const char *body = NULL;
    while (n + 1 < sizeof reply) {
        ssize_t more = recv(fd, reply + n, sizeof reply - 1 - n, 0);
        if (more < 0 && errno == EINTR) /* the process was stopped and continues: signal(7), sockets with time limits */
            continue;
        if (more <= 0)
            return -1;
        n += (size_t)more;
        reply[n] = 0;
        body = strstr(reply, "\r\n\r\n");
        if (body && body[4])
            break;
    }
    if (closes)
        *closes = strstr(reply, "Connection: close") != NULL;
    return body ? body[4] - '0' : -1;
}

static int call(int fd)
{
    ask(fd, "/");
    return answer_of(fd, NULL);
}

static void await_block(served_t *w)
{
    while (!load(&w->is_blocked))
        sched_yield();
    w->is_blocked = 0;
}

static void let_go(served_t *w)
{
    __atomic_store_n(&w->may_go, 1, __ATOMIC_RELEASE);
}

/* The handler of this connection stalls its thread. Which? */
static int stall(served_t *w, int fd)
{
    ask(fd, "/heavy");
    await_block(w);
    let_go(w);
    return answer_of(fd, NULL);
}

static aco_threads_t *set;

static void *tells_set(void *world)
{
    if (aco_threads_index() == 0)
        set = aco_threads_current();
    return serves(world);
}

static void *runs(void *world)
{
    CHECK_EQ(aco_threads_run(2, tells_set, world, NULL), 0);
    return NULL;
}

/* Runs both servers while check(w) is their client. */
static void with_servers(served_t *w, void (*check)(served_t *w))
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, runs, w), 0);
    while (load(&w->are_open) < 2)
        sched_yield();
    check(w);
    if (!w->stops)
        CHECK_EQ(aco_threads_stop(set), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(!w->balance.aco__members);
}

/* ---- Checks ---- */

/* The thread that gives a connection counts after the one that takes it has answered. */
static void await_moves(const served_t *w, uint64_t n)
{
    while (__atomic_load_n(&w->balance.moved, __ATOMIC_RELAXED) < n)
        sched_yield();
    CHECK_EQ(w->balance.moved, n);
}

static void check_new_ones(served_t *w)
{
    int fds[16], on[2] = {0, 0};
    for (int i = 0; i < 16; i++) { /* all to one listener */
        int thread;
        fds[i] = dial(w, 0);
        thread = call(fds[i]);
        CHECK(thread == 0 || thread == 1);
        on[thread & 1]++;
    }
    CHECK(on[1] <= 8); /* half; a thread that does not answer within 5 ms gets none */
    await_moves(w, (uint64_t)on[1]);
    for (int i = 0; i < 16; i++) {
        CHECK(call(fds[i]) >= 0);
        close(fds[i]);
    }
}

/* Both threads have one connection, the first one more: `moving`. */
typedef struct clients {
    int stalling, other, moving, calls;
} clients_t;

static clients_t open_clients(served_t *w)
{
    clients_t c = {0, 0, 0, 1};
    c.other = dial(w, 1);
    CHECK_EQ(call(c.other), 1);
    c.stalling = dial(w, 0);
    CHECK_EQ(call(c.stalling), 0);
    c.moving = dial(w, 0);
    CHECK_EQ(call(c.moving), 0);
    return c;
}

/* Stalls the first thread until that moves a connection; on a slow machine the stall may be forgotten before. */
static void move(served_t *w, clients_t *c)
{
    for (int i = 0; i < 30; i++, c->calls++) {
        CHECK_EQ(stall(w, c->stalling), 0); /* which stays */
        if (call(c->moving) == 1)
            return;
    }
    CHECK(!"it moves");
}

static void close_clients(clients_t *c)
{
    close(c->moving);
    close(c->stalling);
    close(c->other);
}

static void check_idle_ones(served_t *w)
{
    clients_t c = open_clients(w);
    int further, closes = 0;
    move(w, &c);
    c.calls++;
    await_moves(w, 1);
    CHECK_EQ(aco__http_connections_begun - aco__http_connections_ended, 3);
    ask(c.stalling, "/heavy"); /* its new thread answers while the old one is stalled */
    await_block(w);
    CHECK_EQ(call(c.moving), 1);
    c.calls++;
    let_go(w);
    CHECK_EQ(answer_of(c.stalling, NULL), 0);
    further = dial(w, 1); /* max_per_address is reached there, but not on the thread that it has left */
    CHECK_EQ(answer_of(further, NULL), -1);
    close(further);
    further = dial(w, 0);
    CHECK(call(further) >= 0);
    close(further);
    while (!closes && c.calls <= REQUESTS) { /* requests before the move count */
        ask(c.moving, "/");
        CHECK_EQ(answer_of(c.moving, &closes), 1);
        c.calls++;
    }
    CHECK_EQ(c.calls, REQUESTS);
    close_clients(&c);
}

/* A handler that has waited before it stalls is noticed, too. */
static void check_late_ones(served_t *w)
{
    clients_t c = open_clients(w);
    w->waits = 1;
    move(w, &c);
    await_moves(w, 1);
    close_clients(&c);
}

/* ---- Stalls by HTTP/2 ---- */

static aco_http_client_t *client;

static void *asks_by_http2(void *url)
{
    aco_http_response_t *response = aco_http_get(client, url);
    char body[1] = "?";
    CHECK(response && response->status == 200);
    CHECK_EQ(aco_http_response_read(response, body, 1), 1);
    aco_http_response_end(response);
    return (void *)(intptr_t)(body[0] - '0');
}

/* The thread that has answered. */
static int call_by_http2(const served_t *w, const char *path)
{
    char url[64];
    void *thread = NULL;
    aco_t *task;
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", w->ports[0], path);
    CHECK((task = aco_spawn(asks_by_http2, url, NULL)) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, &thread), 0);
    return (int)(intptr_t)thread;
}

/* The client's connection stays on the first thread, and its requests stall that. */
static void check_http2(served_t *w)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1};
    int other, moving, thread = 0;
    CHECK((client = aco_http_client_new(&options)) != NULL);
    CHECK_EQ(call_by_http2(w, "/"), 0);
    other = dial(w, 1);
    CHECK_EQ(call(other), 1);
    moving = dial(w, 0);
    CHECK_EQ(call(moving), 0);
    for (int i = 0; i < 30 && thread != 1; i++) {
        let_go(w);
        CHECK_EQ(call_by_http2(w, "/heavy"), 0);
        thread = call(moving);
    }
    CHECK_EQ(thread, 1);
    CHECK_EQ(call_by_http2(w, "/"), 0);
    aco_http_client_destroy(client);
    close(moving);
    close(other);
}

/* A connection of HTTP/2 moves between two requests, with its session: the client has one connection, and HPACK's
 * tables go on. */
static void check_moves_of_http2(served_t *w)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1};
    int other, stalling, thread = 0;
    CHECK((client = aco_http_client_new(&options)) != NULL);
    other = dial(w, 1);
    CHECK_EQ(call(other), 1);
    stalling = dial(w, 0);
    CHECK_EQ(call(stalling), 0);
    CHECK_EQ(call_by_http2(w, "/"), 0);
    for (int i = 0; i < 30 && thread != 1; i++) {
        CHECK_EQ(stall(w, stalling), 0);
        thread = call_by_http2(w, "/");
    }
    CHECK_EQ(thread, 1);
    await_moves(w, 1);
    CHECK_EQ(aco__http_connections_begun - aco__http_connections_ended, 3);
    ask(stalling, "/heavy"); /* its new thread answers while the old one is stalled */
    await_block(w);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(call_by_http2(w, "/"), 1);
    let_go(w);
    CHECK_EQ(answer_of(stalling, NULL), 0);
    aco_http_client_destroy(client);
    close(stalling);
    close(other);
}

/* A thread that stalls for the first time does not keep a new connection waiting. */
static void check_unknown_stall(served_t *w)
{
    clients_t c = open_clients(w);
    int further;
    ask(c.other, "/heavy");
    await_block(w);
    further = dial(w, 0); /* the other thread has fewer */
    CHECK_EQ(call(further), 0);
    let_go(w);
    CHECK_EQ(answer_of(c.other, NULL), 1);
    close(further);
    close_clients(&c);
}

/* A thread whose server is full takes none. */
static void check_full(served_t *w)
{
    clients_t c = open_clients(w);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(stall(w, c.stalling), 0);
        CHECK_EQ(call(c.moving), 0);
    }
    CHECK_EQ(w->balance.moved, 0);
    close_clients(&c);
}

/* The server ends that the connection moves to: its request is answered, by either. */
static void check_end(served_t *w)
{
    clients_t c = open_clients(w);
    int thread;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(stall(w, c.stalling), 0);
    w->stops = 1;
    ask(c.other, "/heavy");
    await_block(w);
    CHECK(call(c.moving) == 0);
    ask(c.moving, "/"); /* it moves, or waits for that */
    let_go(w);
    CHECK_EQ(answer_of(c.other, NULL), 1);
    thread = answer_of(c.moving, NULL);
    CHECK(thread == 0 || thread == 1);
    ask(c.stalling, "/heavy");
    await_block(w);
    let_go(w);
    CHECK_EQ(answer_of(c.stalling, NULL), 0);
    close_clients(&c);
}

int main(void)
{
    served_t new_ones = {.ports = {0, 0}}, idle_ones = {.max_per_address = 2}, full = {.max_connections = {0, 1}},
             end = {.ports = {0, 0}}, unknown = {.ports = {0, 0}}, late = {.ports = {0, 0}}, http2 = {.ports = {0, 0}},
             moves = {.ports = {0, 0}};
    with_servers(&new_ones, check_new_ones);
    with_servers(&idle_ones, check_idle_ones);
    with_servers(&late, check_late_ones);
    if (aco_http_has_http2()) {
        with_servers(&http2, check_http2);
        with_servers(&moves, check_moves_of_http2);
    }
    with_servers(&unknown, check_unknown_stall);
    with_servers(&full, check_full);
    with_servers(&end, check_end);
    CHECK_EQ(aco__http_connections_begun, aco__http_connections_ended);
    return check_result("threads_http_balance");
}
