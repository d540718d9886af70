/* A TCP echo server: one coroutine for each connection, and one that accepts them. Linux (epoll).
 *
 *   echo_server PORT [CONNECTIONS]
 *
 * Listens on 127.0.0.1 (PORT 0: the kernel chooses one; the first line printed tells), and ends after that many
 * connections (0 or none: never).
 *
 * A coroutine whose call would block yields, and the next event on its descriptor resumes it to try again. Events are
 * edge-triggered and cover both directions, so a descriptor is registered once; a resume without cause costs one more
 * try. All coroutines share one stack: a waiting connection costs its buffer and a few hundred bytes. */
#define _GNU_SOURCE
#include "aco.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aco_assert_override.h"

typedef struct connection {
    int fd;
    char buffer[16 * 1024]; /* not a local of the coroutine: the common stack's live bytes are copied at switches */
} connection_t;

static int epoll_fd, listen_fd;
static unsigned long long accepted, limit, open_connections, echoed;

/* After a failed call: whether to try it again, at once or, where it would block, after the yield done here. */
static int again(void)
{
    if (errno != EAGAIN)
        return errno == EINTR;
    aco_yield();
    return 1;
}

static int send_all(connection_t *c, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(c->fd, c->buffer + sent, size - sent, MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (!again())
            return 0;
    }
    echoed += size;
    return 1;
}

static void echo(void)
{
    connection_t *c = aco_get_arg();
    ssize_t n;
    do
        n = recv(c->fd, c->buffer, sizeof c->buffer, 0);
    while (n > 0 ? send_all(c, (size_t)n) : n < 0 && again()); /* else the peer has finished, or is gone */
    close(c->fd); /* the only descriptor of this socket: the epoll set forgets it */
    aco_exit();
}

static void discard(aco_t *co)
{
    free(co->arg);
    aco_destroy(co);
    open_connections--;
}

static int watch(int fd, aco_t *co)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = co}};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The first event, "writable", starts the coroutine. When the system watches no more, the connection is dropped. */
static void connection_new(int fd)
{
    connection_t *c = aco_mem_new(sizeof *c);
    aco_t *self = aco_get_co(), *co = aco_create(self->main_co, self->share_stack, 0, echo, c);
    c->fd = fd;
    accepted++;
    open_connections++;
    if (!watch(fd, co)) {
        close(fd);
        discard(co);
    }
}

static void accept_all(void)
{
    while (limit == 0 || accepted < limit) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            connection_new(fd);
        else if (!again() && errno != ECONNABORTED) /* no descriptor is free: wait for the end of a connection */
            aco_yield();
    }
    close(listen_fd);
    aco_exit();
}

static void start_listening(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listen_fd, (struct sockaddr *)&address, size) != 0 || listen(listen_fd, SOMAXCONN) != 0 ||
        getsockname(listen_fd, (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "echo_server: cannot listen on port %s: %s\n", port, strerror(errno));
        exit(1);
    }
    printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct epoll_event events[64];
    assert(argc == 2 || argc == 3);
    limit = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    start_listening(argv[1]);
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *acceptor = aco_create(main_co, stack, 0, accept_all, NULL);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    assert(epoll_fd >= 0 && watch(listen_fd, acceptor));
    while (!acceptor->is_end || open_connections > 0) {
        int n = epoll_wait(epoll_fd, events, 64, -1);
        assert(n >= 0 || errno == EINTR);
        for (int i = 0; i < n; i++) {
            aco_t *co = events[i].data.ptr;
            if (!co->is_end) /* the acceptor may have ended below */
                aco_resume(co);
            if (co->is_end && co != acceptor) {
                discard(co); /* epoll_wait() tells of a descriptor once: no later event is this one's */
                if (!acceptor->is_end) /* it may wait for the descriptor that is free now */
                    aco_resume(acceptor);
            }
        }
    }
    printf("echoed %llu bytes on %llu connections\n", echoed, accepted);
    aco_destroy(acceptor);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    return close(epoll_fd);
}
