/* The load of bench-io: client PORT CONNECTIONS echo|stream. It connects, has each connection served once, and prints a
 * line; then for each number that it reads from its input it prints what the next so many requests, or bytes, took;
 * requests only as many as it could send within two seconds.
 *   echo    each connection sends a line of 64 bytes, waits for them to come back, and again
 *   stream  each connection asks for its part of the bytes, by their number, and reads them */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256, SIZE = 64, ROOM = 256 * 1024, LIMIT_MS = 10000, ECHO_S = 2 };

typedef struct connection {
    int fd;
    double sent_at;
    uint64_t left; /* bytes of its part */
} connection_t;

static connection_t *all;
static int count, events;
static char bytes[ROOM];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int connect_to(int port)
{
    struct sockaddr_in address = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    return fd;
}

static int wait_for_events(struct epoll_event *found)
{
    int n = epoll_wait(events, found, MOST, LIMIT_MS);
    if (n <= 0)
        fail("epoll_wait");
    return n;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void send_request(connection_t *c)
{
    c->sent_at = now();
    if (send(c->fd, bytes, SIZE, MSG_NOSIGNAL) != SIZE)
        fail("send");
}

static void echo(long requests)
{
    float *took = malloc((size_t)requests * sizeof *took);
    struct epoll_event found[MOST];
    long sent = 0, received = 0;
    double began = now(), all_took;
    if (!took)
        fail("malloc");
    for (; sent < count && sent < requests; sent++)
        send_request(&all[sent]);
    while (received < sent) {
        int n = wait_for_events(found);
        for (int i = 0; i < n; i++) {
            connection_t *c = found[i].data.ptr;
            if (recv(c->fd, bytes, SIZE, MSG_WAITALL) != SIZE)
                fail("recv");
            took[received++] = (float)(now() - c->sent_at);
            if (sent < requests && c->sent_at - began < ECHO_S) {
                send_request(c);
                sent++;
            }
        }
    }
    all_took = now() - began;
    qsort(took, (size_t)received, sizeof *took, by_size);
    printf("requests=%ld seconds=%.6f p50=%.9f p99=%.9f\n", received, all_took, (double)took[received / 2],
           (double)took[received * 99 / 100]);
    free(took);
}

static void stream(uint64_t wanted)
{
    struct epoll_event found[MOST];
    int open = count;
    uint64_t part = wanted / (uint64_t)count + 1;
    double began = now();
    for (int i = 0; i < count; i++) {
        all[i].left = part;
        if (send(all[i].fd, &part, sizeof part, MSG_NOSIGNAL) != sizeof part)
            fail("send");
    }
    while (open > 0) {
        int n = wait_for_events(found);
        for (int i = 0; i < n; i++) {
            connection_t *c = found[i].data.ptr;
            ssize_t got = recv(c->fd, bytes, c->left < ROOM ? c->left : ROOM, 0);
            if (got <= 0)
                fail("recv");
            c->left -= (uint64_t)got;
            open -= c->left == 0;
        }
    }
    printf("seconds=%.6f\n", now() - began);
}

int main(int argc, char **argv)
{
    int is_stream = argc > 3 && strcmp(argv[3], "stream") == 0;
    char line[32];
    if (argc != 4 || (count = atoi(argv[2])) < 1 || !(all = calloc((size_t)count, sizeof *all)))
        return fprintf(stderr, "client PORT CONNECTIONS echo|stream\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    bytes[SIZE - 1] = '\n'; /* a line, for servers that echo lines */
    events = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {EPOLLIN, {.ptr = &all[i]}};
        all[i].fd = connect_to(atoi(argv[1]));
        epoll_ctl(events, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    if (is_stream)
        stream((uint64_t)count);
    else
        echo(count);
    while (fgets(line, sizeof line, stdin)) {
        if (is_stream)
            stream(strtoull(line, NULL, 10));
        else
            echo(atol(line));
    }
    return 0;
}
