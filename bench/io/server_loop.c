/* The hand-written epoll loop that bench-io compares with: a server without tasks. server_loop PORT echo|stream
 *   echo    sends back what it reads
 *   stream  reads 8 bytes, a number, and sends so many bytes */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 256, ROOM = 4096, BLOCK = 64 * 1024 };

typedef struct connection {
    int fd;
    uint64_t left; /* to send */
} connection_t;

static char block[BLOCK];

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in address = {0};
    char text[INET_ADDRSTRLEN];
    socklen_t length = sizeof address;
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 65535) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        exit(1);
    fprintf(stderr, "listening on %s:%d\n", inet_ntop(AF_INET, &address.sin_addr, text, sizeof text),
            ntohs(address.sin_port));
    return fd;
}

/* These return whether the connection goes on. */

/* A client of the bench sends no more than it reads: a write never blocks. */
static int echo(const connection_t *c)
{
    char bytes[ROOM];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0); /* takes the kernel less than read() */
    if (n > 0)
        return send(c->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n;
    return n < 0 && errno == EAGAIN;
}

static int stream(connection_t *c)
{
    for (;;) {
        ssize_t n;
        while (c->left) {
            n = send(c->fd, block, c->left < BLOCK ? c->left : BLOCK, MSG_NOSIGNAL);
            if (n < 0)
                return errno == EAGAIN;
            c->left -= (uint64_t)n;
        }
        n = read(c->fd, &c->left, sizeof c->left);
        if (n != sizeof c->left)
            return n < 0 && errno == EAGAIN;
    }
}

int main(int argc, char **argv)
{
    int is_stream = argc > 2 && strcmp(argv[2], "stream") == 0, fd, n;
    int events = epoll_create1(0), listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    struct epoll_event event = {EPOLLIN, {.ptr = NULL}}, found[MOST];
    epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
    while ((n = epoll_wait(events, found, MOST, -1)) >= 0 || errno == EINTR)
        for (int i = 0; i < n; i++) {
            connection_t *c = found[i].data.ptr;
            if (c) {
                if (!(is_stream ? stream(c) : echo(c))) {
                    close(c->fd);
                    free(c);
                }
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                c = calloc(1, sizeof *c);
                if (!c)
                    return 1;
                c->fd = fd;
                event.events = EPOLLIN | EPOLLET | (is_stream ? EPOLLOUT : 0);
                event.data.ptr = c;
                epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
            }
        }
    return 1;
}
