/* A server ends while one of its connections of HTTP/2 waits for another thread, which has no time to take it: the
 * client is told at once all the same. In simulations, whose time stands still until all three threads wait. */
#include "http/balance.h"
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

enum { RUNS = 20, GOAWAY = 7 };

typedef struct world {
    aco_http_balance_t balance;
    aco_mt_wait_group_t open, listed, told; /* servers; the move; the client */
    char addresses[2][ACO_IO_ADDRESS_SIZE];
    aco_scope_t scopes[2];
    int is_stalled; /* the second thread, by a handler */
} world_t;

/* ---- The servers ---- */

/* Stalls the thread for so many milliseconds. */
static void stalls(aco_http_request_t *request, void *world)
{
    const int ms = atoi(aco_http_request_param(request, "ms"));
    const struct timespec stall = {ms / 1000, ms % 1000 * 1000000L};
    world_t *w = world;
    __atomic_fetch_add(&w->is_stalled, aco_threads_index(), __ATOMIC_RELEASE);
    aco__system.nanosleep(&stall, NULL);
    __atomic_fetch_sub(&w->is_stalled, aco_threads_index(), __ATOMIC_RELEASE);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", "x", 1), 0);
}

/* Whether a connection waits for the other server. */
static int is_listed(const world_t *w)
{
    for (const aco__http_member_t *m = w->balance.aco__members; m; m = m->next)
        if (m->first)
            return 1;
    return 0;
}

static void *serves(void *world)
{
    world_t *w = world;
    aco_http_route_t routes[] = {{"GET", "/{ms}", stalls, w}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {.routes = routes, .balance = &w->balance, .drain_idle_time = 100 * ACO_SECOND};
    int me = aco_threads_index(), listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, w->addresses[me], ACO_IO_ADDRESS_SIZE), 0);
    CHECK_EQ(aco_scope_begin(&w->scopes[me], ACO_FOREVER), 0);
    CHECK_EQ(aco_mt_wait_group_done(&w->open), 0);
    CHECK(aco_http_serve(listener, &options) == -1 && errno == ECANCELED);
    CHECK_EQ(aco_scope_end(&w->scopes[me]), 0);
    return NULL;
}

/* ---- The client ---- */

static int dials(const world_t *w, int thread)
{
    char address[ACO_IO_ADDRESS_SIZE], *port;
    memcpy(address, w->addresses[thread], sizeof address);
    port = strchr(address, ':');
    *port++ = 0;
    return aco_io_dial("tcp", address, port, NULL);
}

static void asks(int fd, const char *path)
{
    char text[100];
    int length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    CHECK_EQ(aco_io_write_all(fd, text, (size_t)length), length);
}

static void awaits_reply(int fd)
{
    char reply[1000] = "";
    for (size_t n = 0; n + 1 < sizeof reply && !strstr(reply, "\r\n\r\nx"); n++)
        if (aco_io_read(fd, reply + n, 1) != 1)
            break;
    CHECK(strstr(reply, "\r\n\r\nx") != NULL);
}

/* The type of the next frame, and its flags; the rest is dropped. -1: there is none. */
static int read_frame(int fd, int *flags)
{
    unsigned char head[9];
    char rest[1 << 12];
    size_t n;
    if (aco_io_read_exactly(fd, head, sizeof head) != (ssize_t)sizeof head)
        return -1;
    n = (size_t)(head[0] << 16 | head[1] << 8 | head[2]);
    if (n > sizeof rest || aco_io_read_exactly(fd, rest, n) != (ssize_t)n)
        return -1;
    *flags = head[4];
    return head[3];
}

/* GET /0 on this stream, up to the reply's end. */
static void ask_by_frames(int fd, char stream)
{
    enum { DATA, END_STREAM = 1 };
    const char request[] = {0, 0, 9, 1, 5, 0, 0, 0, stream, '\x82', '\x86', 0x04, 2, '/', '0', 0x41, 1, 'x'};
    int flags = 0, type;
    CHECK_EQ(aco_io_write_all(fd, request, sizeof request), (ssize_t)sizeof request);
    do
        type = read_frame(fd, &flags);
    while (type > DATA || (type == DATA && !(flags & END_STREAM)));
    CHECK_EQ(type, DATA);
}

static void *is_client(void *world)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    world_t *w = world;
    int other = dials(w, 1), stalling = dials(w, 0), moving = dials(w, 0), flags, type;
    asks(other, "/0");
    awaits_reply(other);
    CHECK_EQ(aco_io_write_all(moving, hello, sizeof hello), (ssize_t)sizeof hello);
    ask_by_frames(moving, 1);
    for (int i = 0; i < 2; i++) { /* the first time is only suspicious */
        asks(stalling, "/6");
        awaits_reply(stalling);
    }
    asks(other, "/1000"); /* nobody knows yet that this thread is stalled, too */
    while (!__atomic_load_n(&w->is_stalled, __ATOMIC_ACQUIRE))
        CHECK_EQ(aco_sleep(ACO_MILLISECOND / 10), 0);
    ask_by_frames(moving, 3);
    while (!is_listed(w) && __atomic_load_n(&w->is_stalled, __ATOMIC_ACQUIRE))
        CHECK_EQ(aco_sleep(ACO_MILLISECOND / 10), 0);
    CHECK_EQ(aco_mt_wait_group_done(&w->listed), 0);
    do
        type = read_frame(moving, &flags);
    while (type >= 0 && type != GOAWAY);
    CHECK_EQ(type, GOAWAY);
    CHECK(__atomic_load_n(&w->is_stalled, __ATOMIC_ACQUIRE));
    CHECK_EQ(aco_io_close(moving), 0);
    awaits_reply(other);
    CHECK_EQ(aco_io_close(stalling), 0);
    CHECK_EQ(aco_io_close(other), 0);
    CHECK_EQ(aco_mt_wait_group_done(&w->told), 0);
    return NULL;
}

/* ---- Threads ---- */

static void *works(void *world)
{
    world_t *w = world;
    int me = aco_threads_index();
    aco_t *task;
    if (me == 2) {
        CHECK_EQ(aco_mt_wait_group_wait(&w->open), 0);
        return is_client(w);
    }
    task = aco_spawn(serves, w, NULL);
    CHECK_EQ(aco_mt_wait_group_wait(me ? &w->told : &w->listed), 0);
    if (me == 0)
        CHECK(is_listed(w)); /* or this tests nothing */
    CHECK_EQ(aco_scope_cancel(&w->scopes[me]), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
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
    CHECK_EQ(aco_mt_wait_group_add(&w.listed, 1), 0);
    CHECK_EQ(aco_mt_wait_group_add(&w.told, 1), 0);
    CHECK_EQ(aco_offload(runs_set, &w, NULL, NULL), 0);
    CHECK(!w.balance.aco__members);
}

int main(void)
{
    sim_alarm(100);
    if (aco_http_has_http2())
        passes(scenario, NULL, RUNS);
    return check_result("sim_threads_http_end_in_move");
}
