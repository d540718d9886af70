/* Promises: SO_PEERCRED tells a program in a simulation what the kernel tells it: who has the other end of a unix
 * socket, or of a listener that end will be; nobody, of other sockets. */
#define _GNU_SOURCE
#include "system/system.h"

#include "check.h"

#include "aco/sim.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 40 };

typedef struct answers {
    struct ucred users[MOST];
    int results[MOST];
    socklen_t lengths[MOST];
    const char *names[MOST];
    int n;
} answers_t;

static void ask_for(answers_t *answers, const char *name, int fd, socklen_t room)
{
    int i = answers->n++;
    answers->names[i] = name;
    answers->lengths[i] = room;
    answers->results[i] = aco__system.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &answers->users[i], &answers->lengths[i]);
}

static void ask(answers_t *answers, const char *name, int fd)
{
    ask_for(answers, name, fd, sizeof(struct ucred));
}

static int new_socket(int family, int type)
{
    return aco__system.socket(family, type | SOCK_CLOEXEC, 0);
}

static void ask_of_pair(answers_t *answers, const char *name, int type)
{
    int fds[2];
    CHECK(aco__system.socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) == 0);
    ask(answers, name, fds[0]);
    aco__system.close(fds[1]);
    ask(answers, "the other one of the pair is closed", fds[0]);
    aco__system.close(fds[0]);
}

/* `name`: of an address that nobody has. */
static void ask_of_connection(answers_t *answers, const struct sockaddr *name, socklen_t length)
{
    int listener = new_socket(name->sa_family, SOCK_STREAM), client = new_socket(name->sa_family, SOCK_STREAM), server;
    struct sockaddr_storage own;
    socklen_t own_length = sizeof own;
    ask(answers, "it is new", listener);
    CHECK(aco__system.bind(listener, name, length) == 0);
    ask(answers, "it is bound", listener);
    CHECK(aco__system.listen(listener, 1) == 0);
    ask(answers, "it listens", listener);
    CHECK(aco__system.getsockname(listener, (struct sockaddr *)&own, &own_length) == 0);
    CHECK(aco__system.connect(client, (const struct sockaddr *)&own, own_length) == 0);
    ask(answers, "it is connected", client);
    server = aco__system.accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ask(answers, "it is accepted", server);
    ask_for(answers, "there is little room", server, sizeof(pid_t));
    ask_for(answers, "there is much room", server, 100);
    aco__system.close(listener);
    aco__system.close(client);
    ask(answers, "the client is closed", server);
    aco__system.close(server);
}

static void ask_all(answers_t *answers)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd;
    ask_of_connection(answers, (const struct sockaddr *)&un, sizeof un.sun_family); /* the system chooses a name */
    ask_of_connection(answers, (const struct sockaddr *)&in, sizeof in);
    ask_of_pair(answers, "a pair", SOCK_STREAM);
    ask_of_pair(answers, "a pair of messages", SOCK_SEQPACKET);
    fd = new_socket(AF_UNIX, SOCK_DGRAM);
    ask(answers, "datagrams", fd);
    aco__system.close(fd);
}

static void ask_in_run(aco_sim_t *sim, void *answers)
{
    (void)sim;
    ask_all(answers);
}

int main(void)
{
    static answers_t kernel, simulated;
    ask_all(&kernel);
    CHECK(aco_sim_run(ask_in_run, &simulated, 1, NULL, NULL) == 0);
    CHECK_EQ(simulated.n, kernel.n);
    for (int i = 0; i < kernel.n; i++) {
        const struct ucred *a = &kernel.users[i], *b = &simulated.users[i];
        if (kernel.results[i] == simulated.results[i] && kernel.lengths[i] == simulated.lengths[i] &&
            a->pid == b->pid && a->uid == b->uid && a->gid == b->gid)
            continue;
        check_failed_at(__FILE__, __LINE__, kernel.names[i]);
        fprintf(stderr, "process %d, user %d; not %d, %d\n", (int)a->pid, (int)a->uid, (int)b->pid, (int)b->uid);
    }
    return check_result("sim_peer_user");
}
