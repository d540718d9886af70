/* A hot restart in simulations: the process that serves gives its listener to the next one by a unix socket, as
 * src/lifecycle/hand_over.c does. Tasks of a node stand for processes. No client is refused, whatever the network does,
 * and no descriptor is left. */
#define _GNU_SOURCE
#include <aco/io.h>
#include <aco/sim.h>
#include "sim_ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { RUNS = 100, PROCESSES = 5, CLIENTS = 3, CALLS = 40 };

typedef union rights { /* a control message with one descriptor */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} rights_t;

static void give(int to, int fd)
{
    rights_t rights;
    char kind = 'L';
    struct iovec part = {&kind, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    memset(&rights, 0, sizeof rights);
    rights.head.cmsg_level = SOL_SOCKET;
    rights.head.cmsg_type = SCM_RIGHTS;
    rights.head.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&rights.head), &fd, sizeof fd);
    CHECK_EQ(aco_io_sendmsg(to, &message, MSG_NOSIGNAL), 1);
}

static int take(int from)
{
    rights_t rights;
    char kind;
    struct iovec part = {&kind, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    int fd = -1;
    CHECK_EQ(aco_io_recvmsg(from, &message, MSG_CMSG_CLOEXEC), 1);
    CHECK(CMSG_FIRSTHDR(&message) && !(message.msg_flags & MSG_CTRUNC));
    memcpy(&fd, CMSG_DATA(&rights.head), sizeof fd);
    CHECK_EQ(aco_io_adopt(fd), 0);
    return fd;
}

/* ---- Processes ---- */

static int starts_anew; /* the fault: the next process gets no listener, and listens where the last one did */

typedef struct server {
    int listener, stops, waits;
    aco_scope_t waiting; /* while it waits for a client */
} server_t;

static int accept_one(server_t *server)
{
    int fd;
    CHECK_EQ(aco_scope_begin(&server->waiting, ACO_FOREVER), 0);
    server->waits = 1;
    fd = aco_io_accept(server->listener);
    server->waits = 0;
    (void)aco_scope_end(&server->waiting);
    return fd;
}

static void *accepts(void *arg)
{
    server_t *server = arg;
    int fd;
    char byte;
    while (!server->stops && (fd = accept_one(server)) >= 0) {
        if (aco_io_read(fd, &byte, 1) == 1)
            CHECK_EQ(aco_io_write_all(fd, &byte, 1), 1);
        CHECK_EQ(aco_io_close(fd), 0);
    }
    return NULL;
}

static void stop(server_t *server, aco_t *task)
{
    server->stops = 1;
    if (server->waits)
        aco_scope_cancel(&server->waiting);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_io_close(server->listener), 0);
}

/* Serves until the next process is ready, which asks at `name`. */
static void serve(int listener, int name)
{
    server_t server = {.listener = listener};
    aco_t *task = aco_spawn(accepts, &server, NULL);
    int next = aco_io_accept(name);
    char ready;
    CHECK(task && next >= 0);
    if (starts_anew) {
        stop(&server, task);
        give(next, name);
    } else {
        give(next, name);
        give(next, listener);
        CHECK_EQ(aco_io_read(next, &ready, 1), 1); /* until then, both may accept */
        stop(&server, task);
    }
    CHECK_EQ(aco_io_close(next), 0);
    CHECK_EQ(aco_io_close(name), 0);
}

/* Takes over, or begins if nobody serves. */
static void begin(int *listener, int *name)
{
    int old = aco_io_dial("unixpacket", "@restart", NULL, NULL);
    *name = old >= 0 ? take(old) : aco_io_listen("unixpacket", "@restart", NULL, NULL);
    *listener = old >= 0 && !starts_anew ? take(old) : aco_io_listen("tcp", "10.0.0.1", "80", NULL);
    CHECK(*name >= 0 && *listener >= 0);
    if (old >= 0) {
        (void)aco_io_write(old, "R", 1);
        CHECK_EQ(aco_io_close(old), 0);
    }
}

static void *process(void *arg)
{
    int listener, name;
    begin(&listener, &name);
    serve(listener, name);
    return arg;
}

/* ---- Clients ---- */

static void *calls(void *sim)
{
    for (int i = 0; i < CALLS; i++) {
        int fd = aco_io_dial("tcp", "10.0.0.1", "80", NULL);
        char byte = (char)i, answer = 0;
        if (fd < 0 || aco_io_write_all(fd, &byte, 1) != 1 || aco_io_read(fd, &answer, 1) != 1 || answer != byte)
            aco_sim_fail(sim, "a client was refused");
        if (fd >= 0)
            CHECK_EQ(aco_io_close(fd), 0);
        aco_sleep((int64_t)aco_sim_random(sim, 5 * ACO_MILLISECOND));
    }
    return NULL;
}

static void restarts(aco_sim_t *sim, void *unused)
{
    aco_t *processes[PROCESSES], *clients[CLIENTS];
    int listener, name;
    (void)unused;
    for (int i = 0; i < PROCESSES; i++) {
        processes[i] = aco_spawn(process, NULL, NULL);
        if (i == 0) {
            aco_sleep(ACO_SECOND); /* it listens */
            for (int k = 0; k < CLIENTS; k++)
                clients[k] = aco_spawn(calls, sim, NULL);
        }
        aco_sleep((int64_t)aco_sim_random(sim, 40 * ACO_MILLISECOND));
    }
    for (int k = 0; k < CLIENTS; k++)
        CHECK_EQ(aco_join(clients[k], NULL), 0);
    begin(&listener, &name); /* from the last one */
    for (int i = 0; i < PROCESSES; i++)
        CHECK_EQ(aco_join(processes[i], NULL), 0);
    CHECK_EQ(aco_io_close(listener), 0);
    CHECK_EQ(aco_io_close(name), 0);
}

int main(void)
{
    aco_sim_stats_t stats;
    sim_alarm(60);
    passes(restarts, NULL, RUNS);
    starts_anew = 1;
    CHECK_EQ(aco_sim_run(restarts, NULL, RUNS, &stats, NULL), -1);
    CHECK(strcmp(stats.reason, "a client was refused") == 0);
    return check_result("sim_restart");
}
