/* The hand-written epoll loop that bench-io compares with: an echo server without tasks. echo_loop PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 256, ROOM = 4096 };

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

/* A client of the bench sends no more than it reads: a write never blocks. */
static void echo(int fd)
{
    char bytes[ROOM];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0 && send(fd, bytes, (size_t)n, MSG_NOSIGNAL) == n)
        return;
    if (n < 0 && errno == EAGAIN)
        return;
    close(fd);
}

int main(int argc, char **argv)
{
    int events = epoll_create1(0), listener = listen_on(argc > 1 ? atoi(argv[1]) : 0), fd, n;
    struct epoll_event event = {EPOLLIN, {.fd = listener}}, found[MOST];
    epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
    while ((n = epoll_wait(events, found, MOST, -1)) >= 0 || errno == EINTR)
        for (int i = 0; i < n; i++) {
            if (found[i].data.fd != listener) {
                echo(found[i].data.fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                event.events = EPOLLIN | EPOLLET;
                event.data.fd = fd;
                epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
            }
        }
    return 1;
}
