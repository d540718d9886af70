/* Promises: the simulation gives a port away as the kernel does. A first socket has the port: it is bound, listens, has
 * a connection, has lost it by a reset, or has ended it and keeps the port. A second one binds to the port and listens.
 * What SO_REUSEADDR and SO_REUSEPORT of both say when they bind, and what they say afterwards, is tried in all ways. */
#define _GNU_SOURCE
#include "system/system.h"

#include "check.h"

#include "aco/sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { WITH_ADDRESS = 1, WITH_PORT = 2, WAYS = 4 /* of the two options */ };
enum { BOUND, LISTENS, CONNECTED, RESET, KEPT, DATAGRAMS, STATES };
enum { SAME_HOST, SECOND_HAS_ANY, FIRST_HAS_ANY, HOSTS };
enum { CASES = STATES * HOSTS * WAYS * WAYS * WAYS * WAYS, MOST_TRIES = 5 };
enum { FIRST_PORT = 10000, PORTS = 20000 }; /* the system chooses none of them */

typedef struct ports_case {
    int state, hosts, first[2], second[2]; /* options at bind(), and afterwards */
} ports_case_t;

typedef struct outcome {
    int bind, listen; /* 0 or an errno */
} outcome_t;

static ports_case_t case_of(int i)
{
    ports_case_t is;
    is.first[0] = i % WAYS;
    is.first[1] = i / WAYS % WAYS;
    is.second[0] = i / (WAYS * WAYS) % WAYS;
    is.second[1] = i / (WAYS * WAYS * WAYS) % WAYS;
    is.hosts = i / (WAYS * WAYS * WAYS * WAYS) % HOSTS;
    is.state = i / (WAYS * WAYS * WAYS * WAYS * HOSTS);
    return is;
}

static int is_error(int result)
{
    return result < 0 ? errno : 0;
}

static void set_option(int fd, int option, int value)
{
    CHECK(aco__system.setsockopt(fd, SOL_SOCKET, option, &value, sizeof value) == 0);
}

static void set_options(int fd, int options)
{
    set_option(fd, SO_REUSEADDR, options & WITH_ADDRESS);
    set_option(fd, SO_REUSEPORT, options & WITH_PORT);
}

static int new_socket(const ports_case_t *is)
{
    return aco__system.socket(AF_INET, (is->state == DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
}

static struct sockaddr_in address(uint32_t host, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    in.sin_addr.s_addr = htonl(host);
    return in;
}

static int bind_to(int fd, uint32_t host, int port)
{
    const struct sockaddr_in in = address(host, port);
    return is_error(aco__system.bind(fd, (const struct sockaddr *)&in, sizeof in));
}

/* A connection of the listener's. `*client` is its other end. */
static int connect_to(int listener, int port, int *client)
{
    const struct sockaddr_in in = address(INADDR_LOOPBACK, port);
    *client = aco__system.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(aco__system.connect(*client, (const struct sockaddr *)&in, sizeof in) == 0);
    return aco__system.accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

static void read_end(int fd)
{
    char byte;
    CHECK(aco__system.recv(fd, &byte, 1, 0) == 0);
}

/* The server ends the connection first, so that the port is kept in TIME_WAIT. */
static void end_connection(int server, int client)
{
    CHECK(aco__system.shutdown(server, SHUT_WR) == 0);
    read_end(client);
    aco__system.close(client);
    read_end(server); /* its own end has been acknowledged */
    aco__system.close(server);
}

static void reset_connection(int server, int client)
{
    const struct linger none = {1, 0};
    char byte;
    CHECK(aco__system.setsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none) == 0);
    aco__system.close(client);
    CHECK(aco__system.recv(server, &byte, 1, 0) == -1 && errno == ECONNRESET);
}

/* In *fds what has the port. 0; or an errno: another process has it. */
static int take_port(const ports_case_t *is, int port, int fds[2])
{
    int error, client, server;
    fds[1] = -1;
    fds[0] = new_socket(is);
    set_options(fds[0], is->first[0]);
    error = bind_to(fds[0], is->hosts == FIRST_HAS_ANY ? INADDR_ANY : INADDR_LOOPBACK, port);
    if (error)
        return error;
    if (is->state != BOUND && is->state != DATAGRAMS && aco__system.listen(fds[0], 4) != 0)
        return errno;
    set_options(fds[0], is->first[1]);
    if (is->state != CONNECTED && is->state != RESET && is->state != KEPT)
        return 0;
    server = connect_to(fds[0], port, &client);
    aco__system.close(fds[0]);
    fds[0] = server;
    fds[1] = client;
    if (is->state == RESET) {
        reset_connection(server, client);
        fds[1] = -1;
    } else if (is->state == KEPT) {
        end_connection(server, client);
        fds[0] = fds[1] = -1;
    }
    return 0;
}

static outcome_t ask_for_port(const ports_case_t *is, int port)
{
    outcome_t outcome = {0, 0};
    int fd = new_socket(is);
    set_options(fd, is->second[0]);
    outcome.bind = bind_to(fd, is->hosts == SECOND_HAS_ANY ? INADDR_ANY : INADDR_LOOPBACK, port);
    set_options(fd, is->second[1]);
    if (outcome.bind == 0 && is->state != DATAGRAMS)
        outcome.listen = is_error(aco__system.listen(fd, 4));
    aco__system.close(fd);
    return outcome;
}

/* What comes of it with this port; `bind` is -1 if the first socket did not get it. */
static outcome_t try_with(const ports_case_t *is, int port)
{
    outcome_t outcome = {-1, 0};
    int fds[2];
    if (take_port(is, port, fds) == 0)
        outcome = ask_for_port(is, port);
    if (fds[1] >= 0)
        reset_connection(fds[0], fds[1]); /* keeps no port */
    if (fds[0] >= 0)
        aco__system.close(fds[0]);
    return outcome;
}

/* ---- The two worlds ---- */

/* Whether nobody has the port at any address, at this moment. */
static int is_free(int port)
{
    const struct sockaddr_in in = address(INADDR_ANY, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), done = bind(fd, (const struct sockaddr *)&in, sizeof in);
    close(fd);
    return done == 0;
}

/* Two processes of this test may find the same port free. With SO_REUSEPORT they would share it, and accept each
 * other's connections. Returns a socket that has the port's name, or -1: another process has it. */
static int reserve(int port)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "acorn_sim_ports_%d", port);
    if (bind(fd, (const struct sockaddr *)&un, sizeof un) == 0)
        return fd;
    CHECK_EQ(errno, EADDRINUSE);
    close(fd);
    return -1;
}

static outcome_t try_in_kernel(const ports_case_t *is)
{
    static unsigned last;
    outcome_t outcome;
    int port, reserved = -1;
    last = last ? last : (unsigned)getpid() * 1000;
    do {
        port = FIRST_PORT + (int)(++last % PORTS);
        reserved = is_free(port) ? reserve(port) : -1;
    } while (reserved < 0);
    outcome = try_with(is, port);
    close(reserved);
    return outcome;
}

static void try_in_run(aco_sim_t *sim, void *arg)
{
    outcome_t *outcomes = arg;
    (void)sim;
    for (int i = 0; i < CASES; i++) {
        const ports_case_t is = case_of(i);
        outcomes[i] = try_with(&is, FIRST_PORT + i);
    }
}

/* Whether the kernel does the same. Another process may have got the port: then again, with another one. */
static int kernel_agrees(const ports_case_t *is, outcome_t simulated, outcome_t *kernel)
{
    for (int i = 0; i < MOST_TRIES; i++) {
        *kernel = try_in_kernel(is);
        if (kernel->bind == simulated.bind && kernel->listen == simulated.listen)
            return 1;
    }
    return 0;
}

static void print_case(const ports_case_t *is, outcome_t kernel, outcome_t simulated)
{
    static const char *const options[WAYS] = {"none", "REUSEADDR", "REUSEPORT", "both"};
    static const char *const states[STATES] = {"is bound", "listens", "is connected",
                                               "is reset", "is kept", "has datagrams"};
    static const char *const hosts[HOSTS] = {"one host", "the second has any host", "the first has any host"};
    fprintf(stderr, "the first %s, with %s, then %s; the second with %s, then %s; %s: bind %d, listen %d; not %d, %d\n",
            states[is->state], options[is->first[0]], options[is->first[1]], options[is->second[0]],
            options[is->second[1]], hosts[is->hosts], kernel.bind, kernel.listen, simulated.bind, simulated.listen);
}

int main(void)
{
    static outcome_t simulated[CASES];
    outcome_t kernel;
    int differing = 0;
    CHECK(aco_sim_run(try_in_run, simulated, 1, NULL, NULL) == 0);
    for (int i = 0; i < CASES; i++) {
        const ports_case_t is = case_of(i);
        if (kernel_agrees(&is, simulated[i], &kernel))
            continue;
        differing++;
        print_case(&is, kernel, simulated[i]);
    }
    CHECK_EQ(differing, 0);
    return check_result("sim_ports");
}
