/* Tests echo_server: starts it, opens all connections, drives them at once from one thread, and compares every byte.
 *
 *   echo_client_test SERVER
 *
 * The kinds of connections:
 *   PLAIN      sends 0 to 400 KB in pieces of random size, reads as it comes, half-closes, reads to the end
 *   STUBBORN   sends without reading until the server, whose own send() then blocks, stops taking; only then as PLAIN
 *   RESET      sends and reads a little, and resets the connection instead of closing it
 *   VANISHING  half-closes at once
 *   BROKEN     sends, half-closes and resets before the server looks: the server's send() meets EPIPE, and no SIGPIPE
 * In between the server is stopped and continued: its epoll_wait() is interrupted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: failed: %s (errno: %s)\n", __FILE__, __LINE__, #what, strerror(errno));            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { CONNECTIONS = 120 };
enum { STUBBORN_ONES = 3, RESET_ONES = 4, VANISHING_ONES = 4, BROKEN_ONES = 4 };
enum { LIMIT_S = 50, QUIET_MS = 300 };
enum { PIECE = 16 * 1024, LONGEST = 400 * 1024, STUBBORN_REST = 100 * 1024, STUBBORN_MOST = 256 << 20 };

typedef enum kind { PLAIN, STUBBORN, RESET, VANISHING, BROKEN } kind_t;

typedef struct connection {
    int fd; /* -1: done */
    uint32_t id;
    kind_t kind;
    int half_closed;
    size_t total, sent, received;
} connection_t;

static connection_t connections[CONNECTIONS];
static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % limit;
}

/* The byte at `position` of a connection's stream: any loss, repetition or swap shows. */
static unsigned char byte_at(const connection_t *c, size_t position)
{
    uint32_t x = ((uint32_t)position + 1) * UINT32_C(2654435761) ^ (c->id + 1) * UINT32_C(2246822519);
    return (unsigned char)(x >> 13 ^ x >> 24);
}

/* ---- The server process ---- */

/* `command` ends in three NULLs, for two more arguments. */
static pid_t server_start(char **command, FILE **output)
{
    static char limit[16], any_port[] = "0";
    char **last = command;
    int ends[2];
    while (*last)
        last++;
    last[0] = any_port;
    last[1] = limit;
    snprintf(limit, sizeof limit, "%d", CONNECTIONS);
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it shall not outlive a failing test */
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        _exit(127);
    }
    close(ends[1]);
    *output = fdopen(ends[0], "r");
    CHECK(*output != NULL);
    return pid;
}

static void server_stop(pid_t pid)
{
    int status;
    CHECK(kill(pid, SIGSTOP) == 0);
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

static void server_continue(pid_t pid)
{
    CHECK(kill(pid, SIGCONT) == 0);
}

static void server_interrupt(pid_t pid)
{
    server_stop(pid);
    server_continue(pid);
}

/* ---- One connection ---- */

static void connection_open(connection_t *c, unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int small = 4096;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(c->fd >= 0);
    if (c->kind == STUBBORN)
        CHECK(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    CHECK(connect(c->fd, (struct sockaddr *)&address, sizeof address) == 0);
}

/* One piece, or what the socket takes of it. Whether it took any. */
static int send_piece(connection_t *c, size_t piece)
{
    unsigned char bytes[PIECE];
    size_t left = c->total - c->sent;
    if (piece > left)
        piece = left;
    for (size_t i = 0; i < piece; i++)
        bytes[i] = byte_at(c, c->sent + i);
    ssize_t n = send(c->fd, bytes, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
    CHECK(n >= 0 || errno == EAGAIN);
    if (n <= 0)
        return 0;
    c->sent += (size_t)n;
    return 1;
}

static void half_close(connection_t *c)
{
    CHECK(shutdown(c->fd, SHUT_WR) == 0);
    c->half_closed = 1;
}

static void finish(connection_t *c)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (c->kind == RESET || c->kind == BROKEN)
        CHECK(setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    CHECK(close(c->fd) == 0);
    c->fd = -1;
}

/* At the end of what the server sends, all must have come back, and not before the half-close. */
static void receive_piece(connection_t *c, size_t piece)
{
    unsigned char bytes[PIECE];
    ssize_t n = recv(c->fd, bytes, piece, MSG_DONTWAIT);
    CHECK(n >= 0 || errno == EAGAIN);
    for (ssize_t i = 0; i < n; i++)
        CHECK(bytes[i] == byte_at(c, c->received + (size_t)i));
    if (n > 0)
        c->received += (size_t)n;
    CHECK(c->received <= c->sent);
    if (n == 0) {
        CHECK(c->half_closed && c->received == c->total);
        finish(c);
    } else if (c->kind == RESET && c->received == c->total) {
        finish(c);
    }
}

/* Sends until nothing has been taken for a while: every buffer on the way is full, and the server waits in send(). */
static void fill(connection_t *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    c->total = STUBBORN_MOST;
    for (;;) {
        while (c->sent < c->total && send_piece(c, PIECE))
            ;
        CHECK(c->sent < c->total); /* else the server takes without giving back */
        int ready = poll(&p, 1, QUIET_MS);
        CHECK(ready >= 0);
        if (ready == 0)
            break;
    }
    c->total = c->sent + STUBBORN_REST;
}

/* ---- All connections ---- */

static kind_t kind_of(int i)
{
    static const struct { kind_t kind; int many; } kinds[] = {
        {STUBBORN, STUBBORN_ONES}, {RESET, RESET_ONES}, {VANISHING, VANISHING_ONES}, {BROKEN, BROKEN_ONES}
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; i -= kinds[k++].many)
        if (i < kinds[k].many)
            return kinds[k].kind;
    return PLAIN;
}

static size_t total_of(kind_t kind)
{
    return kind == PLAIN ? random_below(LONGEST + 1) : kind == RESET || kind == BROKEN ? 1 + random_below(PIECE) : 0;
}

/* To be called while the server is stopped. What is sent here is never echoed, and not counted. */
static void break_off(connection_t *c)
{
    CHECK(send_piece(c, c->total) && c->sent == c->total);
    half_close(c);
    finish(c);
    c->sent = 0;
}

static void step(connection_t *c, short ready)
{
    if (ready & (POLLIN | POLLHUP | POLLERR))
        receive_piece(c, 1 + random_below(PIECE));
    if (c->fd >= 0 && c->sent < c->total && (ready & POLLOUT))
        send_piece(c, 1 + random_below(PIECE));
}

static void drive_all(pid_t server)
{
    struct pollfd p[CONNECTIONS];
    for (int round = 0;; round++) {
        int alive = 0;
        for (int i = 0; i < CONNECTIONS; i++) {
            connection_t *c = &connections[i];
            if (c->fd >= 0 && c->sent == c->total && !c->half_closed && c->kind != RESET)
                half_close(c);
            p[i] = (struct pollfd){.fd = c->fd, .events = c->sent == c->total ? POLLIN : POLLIN | POLLOUT};
            alive += c->fd >= 0;
        }
        if (!alive)
            return;
        CHECK(poll(p, CONNECTIONS, -1) > 0);
        if (round < 100 && round % 10 == 0)
            server_interrupt(server);
        for (int i = 0; i < CONNECTIONS; i++)
            if (p[i].revents)
                step(&connections[i], p[i].revents);
    }
}

int main(int argc, char **argv)
{
    unsigned long long sent = 0, echoed = 0;
    unsigned port = 0, served = 0;
    int status;
    FILE *output;

    enum { MOST = 8 };
    char *command[MOST + 3] = {NULL}; /* the server, perhaps behind an emulator and its options */
    CHECK(argc >= 2 && argc - 1 <= MOST);
    memcpy(command, argv + 1, (size_t)(argc - 1) * sizeof *command);
    alarm(LIMIT_S);
    pid_t server = server_start(command, &output);
    CHECK(fscanf(output, "listening on 127.0.0.1:%u", &port) == 1 && port != 0);

    for (int i = 0; i < CONNECTIONS; i++) {
        connection_t *c = &connections[i];
        c->id = (uint32_t)i;
        c->kind = kind_of(i);
        c->total = total_of(c->kind);
        connection_open(c, port);
    }
    server_stop(server);
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].kind == BROKEN)
            break_off(&connections[i]);
    server_continue(server);
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].kind == STUBBORN)
            fill(&connections[i]);
    drive_all(server);

    CHECK(fscanf(output, " echoed %llu bytes on %u connections", &echoed, &served) == 2);
    CHECK(waitpid(server, &status, 0) == server);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fclose(output);
    for (int i = 0; i < CONNECTIONS; i++)
        sent += connections[i].sent;
    printf("%d connections, %llu bytes sent, %llu echoed\n", CONNECTIONS, sent, echoed);
    CHECK(served == CONNECTIONS && echoed == sent && sent > 0);
    return 0;
}
