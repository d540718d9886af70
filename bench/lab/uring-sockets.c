/* Lab: what io_uring can save an echo server, without tasks: the bound of what acorn_io could gain.
 *   cc -O2 uring-sockets.c -luring -o uring-sockets && ./uring-sockets 7000 FORM
 * and bench/io/client.c as the load; the server's time is in /proc/PID/schedstat.
 *
 *   epoll    edge-triggered; recv() and send()
 *   poll     the ring watches (multishot poll); recv() and send(): what ACO_POLLER=uring does
 *   receive  multishot receive into provided buffers, and a copy; send()
 *   both     the same; sends go by the ring, too, submitted together
 * The ring's forms also accept by multishot.
 *
 * AMD EPYC, a virtual machine with 2 processors that was busy with other work, Linux 6.18: processor time of the server
 * for an echo of 64 bytes, microseconds, and the median of its ratio to epoll in 11 alternating runs:
 *   connections   epoll   poll          receive       both
 *   1             26.6    27.2 (1.00)   27.7 (1.02)   27.9 (1.03)
 *   100           6.67    7.08 (1.05)   7.11 (1.09)   6.87 (1.05)
 *   10 000        8.27    8.28 (1.00)   8.26 (1.01)   8.10 (0.98) */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_EVENTS = 256, ROOM = 4096, BUFFERS = 1024, MOST_FDS = 1 << 16, ENTRIES = 1024, COMPLETIONS = 32768 };
enum { ACCEPT = 1, READY, RECEIVED, SENT }; /* in user data, above the descriptor */

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char (*buffer_bytes)[ROOM];
static char out[MOST_FDS][ROOM]; /* what a send by the ring sends; untouched pages cost nothing */

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 65535) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        exit(1);
    fprintf(stderr, "listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    return fd;
}

/* Whether the connection goes on. A client of the bench sends no more than it reads: a send never blocks. */
static int echo(int fd)
{
    char bytes[ROOM];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n > 0)
        return send(fd, bytes, (size_t)n, MSG_NOSIGNAL) == n;
    return n < 0 && errno == EAGAIN;
}

static int by_epoll(int listener)
{
    struct epoll_event event = {EPOLLIN, {.fd = listener}}, found[MOST_EVENTS];
    int events = epoll_create1(0), n, fd;
    epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
    while ((n = epoll_wait(events, found, MOST_EVENTS, -1)) >= 0 || errno == EINTR)
        for (int i = 0; i < n; i++) {
            if (found[i].data.fd != listener) {
                if (!echo(found[i].data.fd))
                    close(found[i].data.fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
                event.data.fd = fd;
                epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
            }
        }
    return 1;
}

/* ---- The ring ---- */

static struct io_uring_sqe *entry_for(int kind, int fd)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (!entry) {
        io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
    }
    entry->user_data = (uint64_t)kind << 32 | (unsigned)fd;
    return entry;
}

static void watch(int fd)
{
    struct io_uring_sqe *entry = entry_for(READY, fd);
    uint64_t data = entry->user_data;
    io_uring_prep_poll_multishot(entry, fd, POLLIN | POLLRDHUP);
    entry->user_data = data;
}

static void receive(int fd)
{
    struct io_uring_sqe *entry = entry_for(RECEIVED, fd);
    uint64_t data = entry->user_data;
    io_uring_prep_recv_multishot(entry, fd, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = 0;
    entry->user_data = data;
}

static void accept_all(int listener)
{
    struct io_uring_sqe *entry = entry_for(ACCEPT, listener);
    uint64_t data = entry->user_data;
    io_uring_prep_multishot_accept(entry, listener, NULL, NULL, SOCK_NONBLOCK);
    entry->user_data = data;
}

static void give_buffer(int id)
{
    io_uring_buf_ring_add(buffers, buffer_bytes[id], ROOM, (unsigned short)id, io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffers, 1);
}

static void send_by_ring(int fd, size_t n)
{
    struct io_uring_sqe *entry = entry_for(SENT, fd);
    uint64_t data = entry->user_data;
    io_uring_prep_send(entry, fd, out[fd], n, MSG_NOSIGNAL);
    entry->user_data = data;
}

static void received(int fd, const struct io_uring_cqe *event, int sends_by_ring)
{
    char bytes[ROOM];
    int n = event->res, id = (int)(event->flags >> IORING_CQE_BUFFER_SHIFT);
    if (n > 0) { /* the copy is the library's: into the memory of who reads */
        memcpy(sends_by_ring ? out[fd] : bytes, buffer_bytes[id], (size_t)n);
        give_buffer(id);
        if (sends_by_ring)
            send_by_ring(fd, (size_t)n);
        else if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
            exit(1);
    }
    if (event->flags & IORING_CQE_F_MORE)
        return;
    if (n > 0 || n == -ENOBUFS)
        receive(fd);
    else
        close(fd);
}

static void provide_buffers(void)
{
    struct io_uring_buf_reg registration = {0};
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, BUFFERS * sizeof(struct io_uring_buf)) != 0 ||
        !(buffer_bytes = malloc(BUFFERS * sizeof *buffer_bytes)))
        exit(1);
    buffers = memory;
    registration.ring_addr = (uintptr_t)memory;
    registration.ring_entries = BUFFERS;
    if (io_uring_register_buf_ring(&ring, &registration, 0) != 0)
        exit(1);
    io_uring_buf_ring_init(buffers);
    for (int i = 0; i < BUFFERS; i++)
        give_buffer(i);
}

static int by_ring(int listener, int receives, int sends_by_ring)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL,
                                     .cq_entries = COMPLETIONS};
    struct io_uring_cqe *event;
    if (io_uring_queue_init_params(ENTRIES, &ring, &params) != 0)
        return 1;
    provide_buffers();
    accept_all(listener);
    for (;;) {
        unsigned head, n = 0;
        int result = io_uring_submit_and_wait(&ring, 1);
        if (result < 0 && result != -EINTR)
            return 1;
        io_uring_for_each_cqe(&ring, head, event) {
            int kind = (int)(event->user_data >> 32), fd = (int)(event->user_data & INT32_MAX);
            n++;
            if (kind == ACCEPT && event->res >= 0)
                receives ? receive(event->res) : watch(event->res);
            else if (kind == RECEIVED)
                received(fd, event, sends_by_ring);
            else if (kind == READY && event->res > 0 && !echo(fd))
                close(fd);
        }
        io_uring_cq_advance(&ring, n);
    }
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    const char *form = argc > 2 ? argv[2] : "epoll";
    if (strcmp(form, "epoll") == 0)
        return by_epoll(listener);
    return by_ring(listener, strcmp(form, "poll") != 0, strcmp(form, "both") == 0);
}
