/* The load of bench-io: client PORT CONNECTIONS REQUESTS. Each connection sends 64 bytes, waits for them to come back,
 * and again. It prints the seconds that all requests took. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256, SIZE = 64 };

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

int main(int argc, char **argv)
{
    static char bytes[SIZE];
    int port = argc > 3 ? atoi(argv[1]) : 0, connections = argc > 3 ? atoi(argv[2]) : 0, events = epoll_create1(0);
    long sent = 0, received = 0, requests = argc > 3 ? atol(argv[3]) : 0;
    int *fds = calloc((size_t)connections + 1, sizeof *fds);
    struct epoll_event event = {0}, found[MOST];
    double began;
    for (int i = 0; i < connections; i++) {
        fds[i] = event.data.fd = connect_to(port);
        event.events = EPOLLIN;
        epoll_ctl(events, EPOLL_CTL_ADD, fds[i], &event);
    }
    began = now();
    for (; sent < connections && sent < requests; sent++)
        if (write(fds[sent], bytes, SIZE) != SIZE)
            fail("write");
    while (received < requests) {
        int n = epoll_wait(events, found, MOST, 10000);
        if (n <= 0)
            fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            if (recv(found[i].data.fd, bytes, SIZE, MSG_WAITALL) != SIZE)
                fail("recv");
            received++;
            if (sent < requests && ++sent && write(found[i].data.fd, bytes, SIZE) != SIZE)
                fail("write");
        }
    }
    printf("%.6f\n", now() - began);
    free(fds);
    return 0;
}
