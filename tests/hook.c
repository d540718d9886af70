/* Hooks on libc (aco/hook.h): in a hooked task each blocking call lets other tasks run, gives what libc would, and
 * leaves the descriptors as the client made them. Each test would hang if a call blocked the thread: the one who ends
 * its wait is a task of the same thread. With the argument "watched" only those run that never block, for
 * tests/hook/blocking.py; with "unhooked" one of these without hooks, so that it blocks; with "seeded" what sanitizers
 * must find. */
#define _GNU_SOURCE
#include <aco/hook.h>
#include "io_tests.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { LARGE = 1 << 20, MANY = 1000 };

static int is_hooked = 1;
static char *large; /* bytes to send */

static void begin(void)
{
    if (is_hooked && aco_hook_begin() != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        CHECK(!"aco_hook_begin()");
    }
}

static uint64_t count_waits(void)
{
    aco_hook_stats_t stats;
    CHECK_EQ(aco_hook_stats(&stats), 0);
    return stats.waits;
}

static uint64_t count_blocked(void)
{
    aco_hook_stats_t stats;
    CHECK_EQ(aco_hook_stats(&stats), 0);
    return stats.blocked;
}

static void is_blocking(int fd)
{
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
}

static void blocking_pair(int pair[2], int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_two(const int pair[2])
{
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

/* Runs `other` as a task beside the caller, which joins it. */
static aco_t *beside(aco_function_t other, void *arg)
{
    aco_t *task = aco_spawn(other, arg, NULL);
    CHECK(task != NULL);
    return task;
}

static void join(aco_t *task)
{
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* Lets the caller's partner begin its wait, whatever that needs: tasks run in turns. */
static void let_wait(void)
{
    for (int i = 0; i < 5; i++)
        aco_task_yield();
}

static void *writes_a_byte(void *fd)
{
    let_wait();
    begin();
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
    return NULL;
}

/* ---- Reading ---- */

static ssize_t read_by(int way, int fd, char *p, size_t n)
{
    struct iovec parts[2] = {{p, n / 2}, {p + n / 2, n - n / 2}};
    struct msghdr message = {0};
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    switch (way) {
    case 0:
        return read(fd, p, n);
    case 1:
        return readv(fd, parts, 2);
    case 2:
        return recv(fd, p, n, 0);
    case 3:
        return recvfrom(fd, p, n, 0, (struct sockaddr *)&from, &length);
    default:
        return recvmsg(fd, &message, 0);
    }
}

static void reads_wait(int reader, int writer, int ways)
{
    for (int way = 0; way < ways; way++) {
        char bytes[4] = "";
        uint64_t waits = count_waits();
        aco_t *other = beside(writes_a_byte, (void *)(intptr_t)writer);
        errno = 77;
        CHECK_EQ(read_by(way, reader, bytes, sizeof bytes), 1);
        CHECK_EQ(errno, 77);
        CHECK_EQ(bytes[0], 'x');
        CHECK(!is_hooked || count_waits() > waits);
        is_blocking(reader);
        join(other);
    }
}

static void *test_reads(void *unused)
{
    int pair[2];
    begin();
    blocking_pair(pair, SOCK_STREAM);
    reads_wait(pair[0], pair[1], 5);
    close_two(pair);
    blocking_pair(pair, SOCK_DGRAM);
    reads_wait(pair[0], pair[1], 5);
    close_two(pair);
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    reads_wait(pair[0], pair[1], 2);
    close_two(pair);
    return unused;
}

static void *writes_by_eventfd(void *fd)
{
    uint64_t value = 5;
    let_wait();
    begin();
    CHECK_EQ(write((int)(intptr_t)fd, &value, sizeof value), (ssize_t)sizeof value);
    return NULL;
}

static void *test_eventfd(void *unused)
{
    uint64_t value = 0;
    int fd = eventfd(0, EFD_CLOEXEC);
    aco_t *other;
    begin();
    other = beside(writes_by_eventfd, (void *)(intptr_t)fd);
    CHECK_EQ(read(fd, &value, sizeof value), (ssize_t)sizeof value);
    CHECK_EQ(value, 5);
    join(other);
    FAILS_WITH(read(fd, &value, 3), EINVAL);
    CHECK_EQ(close(fd), 0);
    return unused;
}

/* All of MSG_WAITALL comes, in pieces; with a peek, what there is. */
static void *writes_pieces(void *fd)
{
    begin();
    for (int i = 0; i < 10; i++) {
        let_wait();
        CHECK_EQ(send((int)(intptr_t)fd, "abc", 3, 0), 3);
    }
    CHECK_EQ(shutdown((int)(intptr_t)fd, SHUT_WR), 0);
    return NULL;
}

static void *test_waitall(void *unused)
{
    char bytes[40] = "";
    int pair[2];
    aco_t *other;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    other = beside(writes_pieces, (void *)(intptr_t)pair[1]);
    CHECK_EQ(recv(pair[0], bytes, 3, MSG_PEEK), 3);
    CHECK_EQ(recv(pair[0], bytes, 20, MSG_WAITALL), 20);
    CHECK(memcmp(bytes, "abcabcabcabcabcabcab", 20) == 0);
    CHECK_EQ(recv(pair[0], bytes, sizeof bytes, MSG_WAITALL), 10); /* the end */
    CHECK_EQ(recv(pair[0], bytes, sizeof bytes, 0), 0);
    join(other);
    close_two(pair);
    return unused;
}

/* ---- Writing ---- */

typedef struct drain {
    int fd;
    size_t got;
} drain_t;

static void *drains(void *arg)
{
    drain_t *drain = arg;
    char bytes[5000];
    ssize_t n;
    begin();
    while (drain->got < LARGE && (n = read(drain->fd, bytes, sizeof bytes)) > 0) {
        CHECK(memcmp(bytes, large + drain->got, (size_t)n) == 0);
        drain->got += (size_t)n;
    }
    return NULL;
}

static ssize_t write_by(int way, int fd)
{
    struct iovec parts[4] = {{large, 1}, {large + 1, 0}, {large + 1, 70000}, {large + 70001, LARGE - 70001}};
    struct msghdr message = {0};
    message.msg_iov = parts;
    message.msg_iovlen = 4;
    switch (way) {
    case 0:
        return write(fd, large, LARGE);
    case 1:
        return writev(fd, parts, 4);
    case 2:
        return send(fd, large, LARGE, 0);
    case 3:
        return sendto(fd, large, LARGE, 0, NULL, 0);
    default:
        return sendmsg(fd, &message, 0);
    }
}

/* A write to a blocking descriptor ends when all is written. */
static void writes_wait(int writer, int reader, int ways)
{
    for (int way = 0; way < ways; way++) {
        drain_t drain = {reader, 0};
        aco_t *other = beside(drains, &drain);
        CHECK_EQ(write_by(way, writer), LARGE);
        join(other);
        CHECK_EQ(drain.got, LARGE);
        is_blocking(writer);
    }
}

static void *test_writes(void *unused)
{
    int pair[2];
    begin();
    blocking_pair(pair, SOCK_STREAM);
    writes_wait(pair[0], pair[1], 5);
    close_two(pair);
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    writes_wait(pair[1], pair[0], 2);
    close_two(pair);
    return unused;
}

static void *reads_then_closes(void *fd)
{
    char bytes[1000];
    let_wait();
    begin();
    CHECK(read((int)(intptr_t)fd, bytes, sizeof bytes) > 0);
    let_wait();
    CHECK_EQ(close((int)(intptr_t)fd), 0);
    return NULL;
}

/* The peer goes while a write waits: what was sent is told, and only the next call fails. */
static void *test_peer_gone(void *unused)
{
    int pair[2];
    aco_t *other;
    ssize_t n;
    begin();
    signal(SIGPIPE, SIG_IGN);
    blocking_pair(pair, SOCK_STREAM);
    other = beside(reads_then_closes, (void *)(intptr_t)pair[1]);
    n = write(pair[0], large, LARGE);
    CHECK(n > 0 && n < LARGE);
    FAILS_WITH(write(pair[0], large, LARGE), EPIPE);
    join(other);
    CHECK_EQ(close(pair[0]), 0);
    return unused;
}

/* ---- Several messages, files to sockets ---- */

static void *sends_one_by_one(void *fd)
{
    begin();
    for (int i = 0; i < 3; i++) {
        let_wait();
        CHECK_EQ(send((int)(intptr_t)fd, "abc", (size_t)i + 1, 0), i + 1);
    }
    return NULL;
}

static void *test_recvmmsg(void *unused)
{
    char bytes[4][4];
    struct iovec parts[4];
    struct mmsghdr messages[4] = {{{0}, 0}};
    struct timespec limit = {0, 1};
    struct timeval time = {0, 3000};
    int pair[2], n;
    aco_t *other;
    begin();
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){bytes[i], 4};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    blocking_pair(pair, SOCK_DGRAM);
    other = beside(sends_one_by_one, (void *)(intptr_t)pair[1]);
    CHECK_EQ(recvmmsg(pair[0], messages, 3, 0, NULL), 3);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(messages[i].msg_len, i + 1);
    join(other);
    other = beside(sends_one_by_one, (void *)(intptr_t)pair[1]);
    n = recvmmsg(pair[0], messages, 4, MSG_WAITFORONE, NULL);
    CHECK(n > 0 && n <= 3);
    join(other);
    while (n < 3)
        n += recvmmsg(pair[0], messages, 4, MSG_DONTWAIT, NULL);
    CHECK_EQ(send(pair[1], "x", 1, 0), 1);
    CHECK_EQ(recvmmsg(pair[0], messages, 3, 0, &limit), 1); /* the limit ends what has begun */
    FAILS_WITH(recvmmsg(pair[0], messages, 3, MSG_DONTWAIT, NULL), EAGAIN);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time), 0);
    FAILS_WITH(recvmmsg(pair[0], messages, 3, 0, NULL), EAGAIN);
    CHECK_EQ(send(pair[1], "x", 1, 0), 1);
    CHECK_EQ(recvmmsg(pair[0], messages, 3, 0, NULL), 1);
    close_two(pair);
    return unused;
}

static void *test_sendmmsg(void *unused)
{
    struct iovec parts[2] = {{large, LARGE / 2}, {large + LARGE / 2, LARGE / 2}};
    struct mmsghdr messages[2] = {{{0}, 0}};
    int pair[2];
    drain_t drain;
    aco_scope_t scope;
    aco_t *other;
    begin();
    for (int i = 0; i < 2; i++) {
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    blocking_pair(pair, SOCK_STREAM);
    drain = (drain_t){pair[1], 0};
    other = beside(drains, &drain);
    CHECK_EQ(sendmmsg(pair[0], messages, 2, 0), 2);
    CHECK_EQ(messages[0].msg_len, LARGE / 2);
    CHECK_EQ(messages[1].msg_len, LARGE / 2);
    join(other);
    CHECK_EQ(drain.got, LARGE);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    CHECK_EQ(sendmmsg(pair[0], messages, 2, 0), 1); /* a part of the first is the last that was sent */
    CHECK(messages[0].msg_len > 0 && messages[0].msg_len < LARGE / 2);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(close(pair[1]), 0);
    FAILS_WITH(sendmmsg(pair[0], messages, 2, MSG_NOSIGNAL), EPIPE);
    CHECK_EQ(close(pair[0]), 0);
    return unused;
}

static void *test_sendfile(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX";
    int file = mkstemp(path), pair[2];
    struct timeval limit = {0, 3000};
    off_t offset = 0;
    begin();
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(write(file, large, LARGE), LARGE);
    blocking_pair(pair, SOCK_STREAM);
    for (int way = 0; way < 2; way++) {
        drain_t drain = {pair[1], 0};
        aco_t *other = beside(drains, &drain);
        CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
        /* More than there is: it ends with the file. */
        CHECK_EQ(sendfile(pair[0], file, way ? &offset : NULL, LARGE + 5), LARGE);
        CHECK_EQ(way ? offset : lseek(file, 0, SEEK_CUR), LARGE);
        join(other);
        CHECK_EQ(drain.got, LARGE);
        is_blocking(pair[0]);
    }
    offset = 0;
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    CHECK(sendfile(pair[0], file, &offset, LARGE) == offset && offset > 0 && offset < LARGE);
    FAILS_WITH(sendfile(pair[0], file, &offset, LARGE), EAGAIN);
    FAILS_WITH(sendfile(pair[0], -1, NULL, 1), EBADF);
    close_two(pair);
    CHECK_EQ(close(file), 0);
    return unused;
}

/* ---- What must not wait ---- */

static void *test_nonblocking(void *unused)
{
    char byte;
    int pair[2];
    uint64_t waits;
    begin();
    waits = count_waits();
    blocking_pair(pair, SOCK_STREAM);
    FAILS_WITH(recv(pair[0], &byte, 1, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    FAILS_WITH(read(pair[0], &byte, 1), EAGAIN);
    FAILS_WITH(recv(pair[0], &byte, 1, 0), EAGAIN);
    FAILS_WITH(accept(pair[0], NULL, NULL), EINVAL);
    CHECK(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    while (send(pair[0], large, LARGE, 0) > 0)
        ;
    CHECK_EQ(errno, EAGAIN);
    close_two(pair);
    CHECK_EQ(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
    FAILS_WITH(read(pair[0], &byte, 1), EAGAIN);
    close_two(pair);
    FAILS_WITH(read(-1, &byte, 1), EBADF);
    FAILS_WITH(write(-1, &byte, 1), EBADF);
    FAILS_WITH(send(-1, &byte, 1, 0), EBADF);
    FAILS_WITH(connect(-1, NULL, 0), EBADF);
    CHECK_EQ(count_waits(), waits);
    return unused;
}

/* dup() shares the flags: the client changes them while a call waits. */
static void *sets_nonblocking(void *fd)
{
    let_wait();
    CHECK_EQ(fcntl((int)(intptr_t)fd, F_SETFL, O_NONBLOCK), 0);
    let_wait();
    CHECK_EQ(fcntl((int)(intptr_t)fd, F_SETFL, 0), 0);
    return NULL;
}

static void *test_dup(void *unused)
{
    char byte = 0;
    int pair[2], copy;
    aco_t *other, *writer;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    copy = dup(pair[0]);
    other = beside(sets_nonblocking, (void *)(intptr_t)copy);
    writer = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    join(other);
    join(writer);
    is_blocking(pair[0]);
    writer = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(copy, &byte, 1), 1);
    join(writer);
    CHECK_EQ(close(copy), 0);
    writer = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], &byte, 1), 1); /* closing the copy ended nothing of this one */
    join(writer);
    close_two(pair);
    return unused;
}

/* ---- Time limits ---- */

static void *sends_slowly(void *fd)
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(aco_sleep(10 * ACO_MILLISECOND), 0);
        CHECK_EQ(send((int)(intptr_t)fd, "abc", 3, MSG_DONTWAIT), 3);
    }
    return NULL;
}

static void *test_timeouts(void *unused)
{
    struct timeval limit = {0, 20000};
    struct sockaddr_un path = {AF_UNIX, ""};
    char byte, bytes[30];
    int pair[2], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int64_t start;
    aco_t *other;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    start = aco_now();
    FAILS_WITH(read(pair[0], &byte, 1), EAGAIN);
    CHECK(aco_now() - start >= 20 * ACO_MILLISECOND);
    CHECK(send(pair[0], large, LARGE, 0) < LARGE); /* as much as there is room for */
    FAILS_WITH(send(pair[0], large, LARGE, 0), EAGAIN);
    other = beside(sends_slowly, (void *)(intptr_t)pair[1]);
    CHECK(recv(pair[0], bytes, sizeof bytes, MSG_WAITALL) < 30); /* the limit is for all of it */
    join(other);
    close_two(pair);
    CHECK_EQ(bind(listener, (struct sockaddr *)&path, sizeof(sa_family_t)), 0); /* an abstract name */
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    FAILS_WITH(accept(listener, NULL, NULL), EAGAIN);
    is_blocking(listener);
    CHECK_EQ(close(listener), 0);
    return unused;
}

static void *test_scopes(void *unused)
{
    struct timespec time = {100, 0}, rest = {0, 0};
    struct pollfd p;
    aco_scope_t scope;
    char byte;
    int pair[2], status;
    struct addrinfo *found;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    p.fd = pair[0];
    p.events = POLLIN;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(10 * ACO_MILLISECOND)), 0);
    FAILS_WITH(read(pair[0], &byte, 1), ETIMEDOUT);
    FAILS_WITH(poll(&p, 1, -1), ETIMEDOUT);
    CHECK_EQ(poll(&p, 1, 0), 0);
    FAILS_WITH(nanosleep(&time, &rest), ETIMEDOUT);
    CHECK(rest.tv_sec >= 90);
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL), ETIMEDOUT);
    CHECK(sleep(100) >= 90);
    FAILS_WITH(usleep(1000000), ETIMEDOUT);
    CHECK_EQ(getaddrinfo("localhost", "80", NULL, &found), EAI_SYSTEM);
    CHECK_EQ(errno, ETIMEDOUT);
    FAILS_WITH(open("/", O_RDONLY | O_CLOEXEC), ETIMEDOUT);
    CHECK_EQ(write(pair[1], "y", 1), 1);
    CHECK_EQ(read(pair[0], &byte, 1), 1); /* need not wait */
    status = (int)send(pair[0], large, LARGE, 0);
    CHECK(status > 0 && status < LARGE);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    FAILS_WITH(read(pair[0], &byte, 1), ECANCELED);
    CHECK_EQ(aco_scope_end(&scope), 0);
    close_two(pair);
    return unused;
}

static int turns;
static void *takes_turns(void *stop)
{
    while (!*(int *)stop) {
        turns++;
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    }
    return NULL;
}

#define CHECK_LETS_RUN(call)                                                                                           \
    do {                                                                                                               \
        int before = turns;                                                                                            \
        CHECK_EQ(call, 0);                                                                                             \
        CHECK(turns > before);                                                                                         \
    } while (0)

static void *test_sleeps(void *unused)
{
    struct timespec time = {0, 5000000}, now;
    int stop = 0;
    aco_t *other = beside(takes_turns, &stop);
    begin();
    CHECK_LETS_RUN(usleep(5000));
    CHECK_LETS_RUN(nanosleep(&time, NULL));
    CHECK_LETS_RUN(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += now.tv_nsec > 900000000;
    now.tv_nsec = now.tv_nsec > 900000000 ? 0 : now.tv_nsec + 5000000;
    CHECK_LETS_RUN(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &now, NULL));
    CHECK_EQ(sleep(0), 0);
    CHECK_EQ(usleep(0), 0);
    CHECK_EQ(sched_yield(), 0);
    time.tv_nsec = -1;
    FAILS_WITH(nanosleep(&time, NULL), EINVAL);
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL), EINVAL);
    stop = 1;
    join(other);
    return unused;
}

/* ---- Connections ---- */

static int tcp_listener(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(listener, (struct sockaddr *)address, sizeof *address), 0);
    CHECK_EQ(listen(listener, 10), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)address, &length), 0);
    return listener;
}

static void *connects(void *arg)
{
    struct sockaddr_in *address = arg;
    char byte = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    let_wait();
    begin();
    CHECK_EQ(connect(fd, (struct sockaddr *)address, sizeof *address), 0);
    is_blocking(fd);
    CHECK_EQ(read(fd, &byte, 1), 1);
    FAILS_WITH(connect(fd, (struct sockaddr *)address, sizeof *address), EISCONN);
    CHECK_EQ(close(fd), 0);
    return NULL;
}

static void *test_connections(void *unused)
{
    struct sockaddr_in address;
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    int listener = tcp_listener(&address), fd;
    aco_t *other;
    begin();
    for (int way = 0; way < 2; way++) {
        length = sizeof from;
        other = beside(connects, &address);
        fd = way ? accept4(listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC)
                 : accept(listener, (struct sockaddr *)&from, &length);
        CHECK(fd >= 0);
        CHECK_EQ(length, sizeof(struct sockaddr_in));
        CHECK_EQ(from.ss_family, AF_INET);
        is_blocking(fd);
        is_blocking(listener);
        CHECK_EQ(write(fd, "c", 1), 1);
        join(other);
        CHECK_EQ(close(fd), 0);
    }
    CHECK_EQ(close(listener), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FAILS_WITH(connect(fd, (struct sockaddr *)&address, sizeof address), ECONNREFUSED);
    CHECK_EQ(close(fd), 0);
    return unused;
}

static void *accepts_two(void *listener)
{
    int fds[2];
    let_wait();
    begin();
    for (int i = 0; i < 2; i++)
        CHECK((fds[i] = accept4((int)(intptr_t)listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    close_two(fds);
    return NULL;
}

/* A full backlog of a unix socket: of its end no event tells. */
static void *test_backlog(void *unused)
{
    struct sockaddr_un path = {AF_UNIX, ""};
    socklen_t length = sizeof path;
    int fds[2], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    aco_t *other;
    begin();
    CHECK_EQ(bind(listener, (struct sockaddr *)&path, sizeof(sa_family_t)), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&path, &length), 0);
    CHECK_EQ(listen(listener, 0), 0);
    other = beside(accepts_two, (void *)(intptr_t)listener);
    for (int i = 0; i < 2; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(fds[i], (struct sockaddr *)&path, length), 0);
        is_blocking(fds[i]);
    }
    join(other);
    close_two(fds);
    CHECK_EQ(close(listener), 0);
    return unused;
}

static void *receives_all_datagrams(void *fd)
{
    char bytes[10];
    let_wait();
    begin();
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(recv((int)(intptr_t)fd, bytes, sizeof bytes, 0), 10);
    return NULL;
}

/* A full receiver of datagrams, to an address: its room brings no event either. */
static void *test_datagrams(void *unused)
{
    struct sockaddr_un path = {AF_UNIX, ""};
    socklen_t length = sizeof path;
    int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    aco_t *other;
    begin();
    CHECK_EQ(bind(receiver, (struct sockaddr *)&path, sizeof(sa_family_t)), 0);
    CHECK_EQ(getsockname(receiver, (struct sockaddr *)&path, &length), 0);
    other = beside(receives_all_datagrams, (void *)(intptr_t)receiver);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(sendto(sender, "0123456789", 10, 0, (struct sockaddr *)&path, length), 10);
    join(other);
    CHECK_EQ(close(sender), 0);
    CHECK_EQ(close(receiver), 0);
    return unused;
}

/* ---- poll(), select(), epoll ---- */

static void *test_polls(void *unused)
{
    int pair[2];
    struct pollfd p[4];
    struct timespec limit = {0, 3000000}, wrong = {0, -1};
    char byte;
    aco_t *other;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    p[0] = (struct pollfd){-1, POLLIN, 5};
    p[1] = (struct pollfd){pair[0], POLLIN, 5};
    p[2] = (struct pollfd){pair[1], POLLPRI, 5}; /* never comes */
    p[3] = (struct pollfd){-7, POLLIN, 5};
    CHECK_EQ(poll(p, 4, 0), 0);
    CHECK_EQ(poll(p, 4, 5), 0);
    CHECK_EQ(poll(NULL, 0, 5), 0);
    CHECK_EQ(ppoll(p, 4, &limit, NULL), 0);
    FAILS_WITH(ppoll(p, 4, &wrong, NULL), EINVAL);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(poll(p, 4, -1), 1);
    CHECK_EQ(p[1].revents, POLLIN);
    CHECK_EQ(p[0].revents | p[2].revents | p[3].revents, 0);
    join(other);
    p[1].events = POLLIN | POLLOUT;
    CHECK_EQ(poll(p, 4, -1), 1);
    CHECK_EQ(p[1].revents, POLLIN | POLLOUT);
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    p[1].events = POLLIN;
    CHECK_EQ(ppoll(p, 4, NULL, NULL), 1);
    join(other);
    /* Something to read, of which nobody wants to know: no busy loop, and the time limit holds. */
    p[1].events = POLLPRI;
    CHECK_EQ(poll(p, 2, 30), 0);
    close_two(pair);
    p[1].fd = pair[0];
    CHECK_EQ(poll(p, 2, -1), 1);
    CHECK_EQ(p[1].revents, POLLNVAL);
    return unused;
}

static void *closes_later(void *fd)
{
    let_wait();
    CHECK_EQ(close((int)(intptr_t)fd), 0);
    return NULL;
}

static void *fills_then_drains(void *fd)
{
    char bytes[4096];
    let_wait();
    while (recv((int)(intptr_t)fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    return NULL;
}

/* One descriptor waited for in both directions, by one poll: and by several tasks. */
static void *test_poll_both(void *unused)
{
    int pair[2];
    struct pollfd p;
    aco_t *other;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    while (send(pair[0], large, LARGE, MSG_DONTWAIT) > 0)
        ;
    p = (struct pollfd){pair[0], POLLIN | POLLOUT, 0};
    CHECK_EQ(poll(&p, 1, 1), 0);
    other = beside(fills_then_drains, (void *)(intptr_t)pair[1]);
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(p.revents, POLLOUT);
    join(other);
    while (send(pair[0], large, LARGE, MSG_DONTWAIT) > 0)
        ;
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(p.revents, POLLIN);
    join(other);
    close_two(pair);
    return unused;
}

static volatile sig_atomic_t alarms;
static void on_signal(int signal)
{
    alarms = signal;
}

static void *raises(void *unused)
{
    let_wait();
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    return unused;
}

/* ppoll(), pselect() and epoll_pwait() let a signal in that is blocked otherwise. */
static void *test_masks(void *unused)
{
    struct sigaction action = {0};
    sigset_t blocked, open;
    struct pollfd p = {-1, POLLIN, 0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    begin();
    action.sa_handler = on_signal;
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &open), 0);
    sigdelset(&open, SIGUSR2);
    for (int way = 0; way < 3; way++) {
        aco_t *other = beside(raises, NULL);
        alarms = 0;
        if (way == 0)
            FAILS_WITH(ppoll(&p, 1, NULL, &open), EINTR);
        else if (way == 1)
            FAILS_WITH(pselect(0, NULL, NULL, NULL, NULL, &open), EINTR);
        else
            FAILS_WITH(epoll_pwait(epoll, &event, 1, -1, &open), EINTR);
        CHECK_EQ(alarms, SIGUSR2);
        join(other);
    }
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
    CHECK_EQ(close(epoll), 0);
    return unused;
}

static void *test_selects(void *unused)
{
    int pair[2];
    fd_set reads, writes, errors;
    struct timeval limit = {0, 3000}, none = {0, 0};
    struct timespec time = {0, 3000000};
    aco_t *other;
    char byte;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_ZERO(&errors);
    FD_SET(pair[0], &reads);
    FD_SET(pair[0], &errors);
    CHECK_EQ(select(pair[0] + 1, &reads, NULL, &errors, &limit), 0);
    CHECK(!FD_ISSET(pair[0], &reads) && !FD_ISSET(pair[0], &errors));
    CHECK(limit.tv_sec == 0 && limit.tv_usec == 0);
    FD_SET(pair[0], &reads);
    CHECK_EQ(select(pair[0] + 1, &reads, NULL, NULL, &none), 0);
    FD_SET(pair[0], &reads);
    CHECK_EQ(pselect(pair[0] + 1, &reads, NULL, NULL, &time, NULL), 0);
    FD_SET(pair[0], &reads);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    limit.tv_sec = 1000;
    CHECK_EQ(select(pair[0] + 1, &reads, NULL, NULL, &limit), 1);
    CHECK(FD_ISSET(pair[0], &reads));
    CHECK(limit.tv_sec >= 900 && limit.tv_sec < 1000);
    join(other);
    FD_SET(pair[0], &writes);
    CHECK_EQ(select(pair[0] + 1, &reads, &writes, NULL, NULL), 2);
    CHECK(FD_ISSET(pair[0], &reads) && FD_ISSET(pair[0], &writes));
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    limit.tv_sec = 0;
    CHECK_EQ(select(0, NULL, NULL, NULL, &limit), 0);
    limit.tv_usec = -5;
    FAILS_WITH(select(0, NULL, NULL, NULL, &limit), EINVAL);
    FAILS_WITH(select(-1, NULL, NULL, NULL, NULL), EINVAL);
    CHECK_EQ(close(pair[1]), 0);
    CHECK_EQ(select(pair[0] + 1, &reads, NULL, NULL, NULL), 1); /* hung up counts as readable */
    CHECK_EQ(close(pair[0]), 0);
    FAILS_WITH(select(pair[0] + 1, &reads, NULL, NULL, NULL), EBADF);
    return unused;
}

/* Sets and numbers above FD_SETSIZE. */
static void *test_high_numbers(void *unused)
{
    enum { HIGH = 3000, WORD = 8 * sizeof(long) };
    unsigned long reads[HIGH / WORD + 1] = {0};
    struct rlimit limit;
    int pair[2], high;
    char byte;
    aco_t *other;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur <= HIGH)
        return unused;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    high = fcntl(pair[0], F_DUPFD_CLOEXEC, HIGH - 1);
    CHECK_EQ(high, HIGH - 1);
    for (int way = 0; way < 2; way++) {
        other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
        reads[high / WORD] = 1UL << high % WORD;
        if (way)
            CHECK_EQ(select(high + 1, (fd_set *)(void *)reads, NULL, NULL, NULL), 1);
        CHECK_EQ(read(high, &byte, 1), 1);
        join(other);
    }
    CHECK_EQ(close(high), 0);
    close_two(pair);
    return unused;
}

static void *test_epoll(void *unused)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), pair[2];
    struct epoll_event event = {EPOLLIN, {.fd = 3}};
    aco_t *other;
    char byte;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event), 0);
    CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
    CHECK_EQ(epoll_wait(epoll, &event, 1, 3), 0);
    for (int way = 0; way < 3; way++) {
        other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
        event.data.fd = 0;
#if __GLIBC_PREREQ(2, 35)
        if (way == 2)
            CHECK_EQ(epoll_pwait2(epoll, &event, 1, NULL, NULL), 1);
        else
#endif
            CHECK_EQ(way ? epoll_wait(epoll, &event, 1, -1) : epoll_pwait(epoll, &event, 1, 100000, NULL), 1);
        CHECK_EQ(event.data.fd, 3);
        CHECK_EQ(read(pair[0], &byte, 1), 1);
        join(other);
    }
    FAILS_WITH(epoll_wait(epoll, &event, 0, -1), EINVAL);
    CHECK_EQ(close(epoll), 0);
    close_two(pair);
    return unused;
}

/* ---- Ends of descriptors ---- */

typedef struct waiter {
    int fd, error, is_over;
} waiter_t;

static void *reads_until_closed(void *arg)
{
    waiter_t *waiter = arg;
    char byte;
    begin();
    waiter->error = read(waiter->fd, &byte, 1) < 0 ? errno : 0;
    waiter->is_over = 1;
    return NULL;
}

static void *test_close(void *unused)
{
    int pair[2], other[2];
    struct pollfd p;
    waiter_t waiter;
    aco_t *task;
    begin();
    for (int way = 0; way < 3; way++) {
        blocking_pair(pair, SOCK_STREAM);
        blocking_pair(other, SOCK_STREAM);
        waiter = (waiter_t){pair[0], 0, 0};
        task = beside(reads_until_closed, &waiter);
        let_wait();
        CHECK(!waiter.is_over);
        if (way == 0) {
            CHECK_EQ(close(pair[0]), 0);
            CHECK_EQ(dup(other[0]), pair[0]); /* the number is another's before the waiter runs */
        } else if (way == 1) {
            CHECK_EQ(dup2(other[0], pair[0]), pair[0]);
        } else {
            FAILS_WITH(dup2(-1, pair[0]), EBADF); /* closes nothing */
            CHECK_EQ(dup3(other[0], pair[0], O_CLOEXEC), pair[0]);
        }
        CHECK_EQ(write(other[1], "z", 1), 1);
        join(task);
        CHECK_EQ(waiter.error, EBADF);
        CHECK_EQ(recv(pair[0], &waiter.is_over, 1, MSG_DONTWAIT), 1); /* it took nothing of the other's */
        close_two(pair);
        close_two(other);
    }
    blocking_pair(pair, SOCK_STREAM);
    p = (struct pollfd){pair[0], POLLIN, 0};
    task = beside(closes_later, (void *)(intptr_t)pair[0]);
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(p.revents, POLLNVAL);
    join(task);
    CHECK_EQ(close(pair[1]), 0);
    FAILS_WITH(close(pair[1]), EBADF);
    return unused;
}

/* ---- Files and names ---- */

static void *opens_fifo(void *path)
{
    int fd;
    begin();
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "fifo", 4), 4);
    CHECK_EQ(close(fd), 0);
    return NULL;
}

static void *test_files(void *unused)
{
    char folder[] = "/tmp/acorn_hook_XXXXXX", path[64], bytes[16] = "";
    struct iovec parts[2] = {{bytes, 3}, {bytes + 3, 8}};
    struct iovec sent[2] = {{large, 5}, {large + 5, 6}};
    char two[] = "AB";
    struct iovec changed = {two, 2};
    int fd, folder_fd;
    aco_t *other;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    begin();
    FAILS_WITH(open(path, O_RDONLY), ENOENT);
    errno = 77;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(fcntl(fd, F_GETFD), 0); /* no close-on-exec that the client did not ask for */
    CHECK_EQ(writev(fd, sent, 2), 11);
    CHECK_EQ(pwrite(fd, "AB", 2, 1), 2);
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(fdatasync(fd), 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(pwritev(fd, sent, 2, 0), 11);
    CHECK_EQ(pwritev64(fd, &changed, 1, 1), 2);
    CHECK_EQ(preadv(fd, parts, 2, 1), 10);
    CHECK(memcmp(bytes, "AB", 2) == 0 && memcmp(bytes + 3, large + 4, 7) == 0);
    FAILS_WITH(preadv(fd, parts, 2, -1), EINVAL);
    CHECK_EQ(preadv64(fd, parts, 2, 11), 0);
    CHECK_EQ(pread(fd, bytes, 2, 1), 2);
    CHECK(memcmp(bytes, "AB", 2) == 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(readv(fd, parts, 2), 11);
    CHECK(bytes[0] == large[0] && memcmp(bytes + 1, "AB", 2) == 0 && memcmp(bytes + 3, large + 3, 8) == 0);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 0);
    CHECK_EQ(write(fd, "end", 3), 3);
    FAILS_WITH(pread(fd, bytes, 1, -5), EINVAL);
    CHECK_EQ(flock(fd, LOCK_EX), 0);
    CHECK_EQ(close(fd), 0);
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(folder_fd, "file", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 14);
    FAILS_WITH(read(folder_fd, bytes, 1), EISDIR);
    FAILS_WITH(write(fd, bytes, 1), EBADF);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(close(folder_fd), 0);
    fd = creat(path, 0600);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    other = beside(opens_fifo, path);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* the two wait for each other */
    CHECK_EQ(read(fd, bytes, sizeof bytes), 4);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 0);
    CHECK_EQ(close(fd), 0);
    join(other);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
    return unused;
}

static void *unlocks_later(void *fd)
{
    let_wait();
    CHECK_EQ(flock((int)(intptr_t)fd, LOCK_UN), 0);
    return NULL;
}

static void *test_flock(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX";
    int first = mkstemp(path), second = open(path, O_RDONLY | O_CLOEXEC);
    aco_t *other;
    begin();
    CHECK_EQ(flock(first, LOCK_EX), 0);
    FAILS_WITH(flock(second, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    other = beside(unlocks_later, (void *)(intptr_t)first);
    CHECK_EQ(flock(second, LOCK_EX), 0);
    join(other);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(first), 0);
    CHECK_EQ(close(second), 0);
    return unused;
}

/* Locks of open descriptions conflict within a process, too. */
static void *unlocks_range_later(void *fd)
{
    struct flock lock = {0};
    let_wait();
    lock.l_type = F_UNLCK;
    CHECK_EQ(fcntl((int)(intptr_t)fd, F_OFD_SETLK, &lock), 0);
    return NULL;
}

static void *test_range_locks(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX";
    int first = mkstemp(path), second = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {0};
    aco_scope_t scope;
    aco_t *other;
    begin();
    lock.l_type = F_WRLCK;
    CHECK_EQ(fcntl(first, F_OFD_SETLKW, &lock), 0);
    CHECK_EQ(fcntl(second, F_OFD_SETLK, &lock), -1);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    FAILS_WITH(fcntl(second, F_OFD_SETLKW, &lock), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    other = beside(unlocks_range_later, (void *)(intptr_t)first);
    CHECK_EQ(fcntl(second, F_OFD_SETLKW, &lock), 0);
    join(other);
    FAILS_WITH(fcntl(-1, F_SETLKW, &lock), EBADF);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(first), 0);
    CHECK_EQ(close(second), 0);
    return unused;
}

static void *test_names(void *unused)
{
    struct addrinfo hints = {0}, *found = NULL;
    struct sockaddr_in address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    begin();
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = AF_INET;
    CHECK_EQ(getaddrinfo("localhost", "80", &hints, &found), 0);
    if (found)
        CHECK_EQ(((struct sockaddr_in *)(void *)found->ai_addr)->sin_port, htons(80));
    freeaddrinfo(found);
    CHECK_EQ(getaddrinfo("127.0.0.1", "1", &hints, &found), 0);
    freeaddrinfo(found);
    CHECK_EQ(getaddrinfo("no.such.name.invalid.", NULL, NULL, &found) != 0, 1);
    CHECK_EQ(getaddrinfo("localhost", "no such port", &hints, &found), EAI_SERVICE);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, port, sizeof port, 0), 0);
    CHECK(host[0] != 0);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, NI_NUMERICHOST), 0);
    CHECK(strcmp(host, "127.0.0.1") == 0);
    return unused;
}

/* ---- Locks ---- */

typedef struct locked {
    pthread_mutex_t mutex;
    int is_recursive, inside, count;
} locked_t;

static void *locks(void *arg)
{
    locked_t *locked = arg;
    begin();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_mutex_lock(&locked->mutex), 0);
        if (locked->is_recursive)
            CHECK_EQ(pthread_mutex_lock(&locked->mutex), 0);
        CHECK_EQ(locked->inside++, 0);
        CHECK_EQ(usleep(300), 0); /* a switch with the lock held */
        CHECK_EQ(--locked->inside, 0);
        locked->count++;
        if (locked->is_recursive)
            CHECK_EQ(pthread_mutex_unlock(&locked->mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&locked->mutex), 0);
    }
    return NULL;
}

static void *test_locks(void *unused)
{
    for (int way = 0; way < 2; way++) {
        locked_t locked = {PTHREAD_MUTEX_INITIALIZER, way, 0, 0};
        pthread_mutexattr_t attributes;
        aco_t *tasks[5];
        pthread_mutexattr_init(&attributes);
        CHECK_EQ(pthread_mutexattr_settype(&attributes, way ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL), 0);
        CHECK_EQ(pthread_mutex_init(&locked.mutex, &attributes), 0);
        for (int i = 0; i < 5; i++)
            tasks[i] = beside(locks, &locked);
        for (int i = 0; i < 5; i++)
            join(tasks[i]);
        CHECK_EQ(locked.count, 15);
        CHECK_EQ(pthread_mutex_destroy(&locked.mutex), 0);
    }
    return unused;
}

typedef struct shared_locks {
    pthread_mutex_t mutex;
    pthread_rwlock_t rw;
    sem_t semaphore;
    int inside;
} shared_locks_t;

static void *holds_for_a_while(void *arg)
{
    shared_locks_t *locks = arg;
    begin();
    CHECK_EQ(pthread_mutex_trylock(&locks->mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&locks->mutex), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&locks->rw), 0);
    locks->inside = 1;
    CHECK_EQ(usleep(20000), 0);
    locks->inside = 0;
    CHECK_EQ(pthread_rwlock_unlock(&locks->rw), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks->mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks->mutex), 0);
    let_wait();
    CHECK_EQ(sem_post(&locks->semaphore), 0);
    return NULL;
}

/* Another task's locks: the thread, which holds them, would be granted the recursive mutex. */
static void *test_other_locks(void *unused)
{
    shared_locks_t locks = {.rw = PTHREAD_RWLOCK_INITIALIZER};
    struct timespec time;
    pthread_mutexattr_t attributes;
    aco_scope_t scope;
    aco_t *other;
    begin();
    pthread_mutexattr_init(&attributes);
    CHECK_EQ(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE), 0);
    CHECK_EQ(pthread_mutex_init(&locks.mutex, &attributes), 0);
    CHECK_EQ(sem_init(&locks.semaphore, 0, 0), 0);
    other = beside(holds_for_a_while, &locks);
    while (!locks.inside)
        aco_task_yield();
    CHECK_EQ(pthread_mutex_trylock(&locks.mutex), EBUSY);
    clock_gettime(CLOCK_REALTIME, &time);
    CHECK_EQ(pthread_mutex_timedlock(&locks.mutex, &time), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_rdlock(&locks.rw), 0);
    CHECK(!locks.inside);
    CHECK_EQ(pthread_rwlock_unlock(&locks.rw), 0);
    time.tv_sec += 100;
    CHECK_EQ(pthread_mutex_timedlock(&locks.mutex, &time), 0);
    CHECK_EQ(pthread_mutex_unlock(&locks.mutex), 0);
    errno = 77;
    CHECK_EQ(sem_wait(&locks.semaphore), 0);
    CHECK_EQ(errno, 77);
    join(other);
    time.tv_sec -= 200;
    FAILS_WITH(sem_timedwait(&locks.semaphore, &time), ETIMEDOUT);
    time.tv_nsec = -1;
    FAILS_WITH(sem_timedwait(&locks.semaphore, &time), EINVAL);
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    FAILS_WITH(sem_wait(&locks.semaphore), ECANCELED);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(sem_destroy(&locks.semaphore), 0);
    CHECK_EQ(pthread_mutex_destroy(&locks.mutex), 0);
    return unused;
}

/* ---- Crowds ---- */

static void *reads_one_byte(void *fd)
{
    char byte;
    begin();
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    return NULL;
}

/* Many tasks wait at one descriptor: each gets a byte. */
static void *test_crowd(void *unused)
{
    aco_t *tasks[100];
    int pair[2];
    begin();
    blocking_pair(pair, SOCK_STREAM);
    for (int i = 0; i < 100; i++)
        tasks[i] = beside(reads_one_byte, (void *)(intptr_t)pair[0]);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(write(pair[1], "x", 1), 1);
        if (i % 10 == 0)
            let_wait();
    }
    for (int i = 0; i < 100; i++)
        join(tasks[i]);
    close_two(pair);
    return unused;
}

/* ---- Who is hooked ---- */

static void *is_active(void *arg)
{
    CHECK_EQ(aco_hook_active(), (int)(intptr_t)arg);
    return NULL;
}

static void *reads_inside(void *arg)
{
    char byte = 0;
    CHECK_EQ(aco_hook_active(), 1);
    FAILS_WITH(aco_hook_begin(), EPERM);
    FAILS_WITH(aco_hook_end(), EPERM);
    CHECK_EQ(read((int)(intptr_t)arg, &byte, 1), 1);
    return NULL;
}

static void *test_begin(void *unused)
{
    aco_t *co;
    int pair[2];
    aco_t *other;
    FAILS_WITH(aco_hook_end(), EPERM);
    CHECK_EQ(aco_hook_active(), 0);
    CHECK_EQ(aco_hook_begin(), 0);
    CHECK_EQ(aco_hook_begin(), 0);
    other = beside(is_active, NULL); /* each for itself */
    join(other);
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(aco_hook_active(), 1);
    blocking_pair(pair, SOCK_STREAM);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    co = aco_new(reads_inside, (void *)(intptr_t)pair[0], NULL);
    aco_send(co, NULL);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    aco_destroy(co);
    join(other);
    errno = 77;
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(aco_hook_active(), 0);
    FAILS_WITH(aco_hook_end(), EPERM);
    FAILS_WITH(aco_hook_stats(NULL), EINVAL);
    close_two(pair);
    return unused;
}

/* On a share stack: buffers on it, polls, vectors, files. */
static void *on_share_stack(void *fd)
{
    char bytes[8] = "", host[NI_MAXHOST];
    struct iovec parts[2] = {{bytes, 1}, {bytes + 1, 1}};
    struct pollfd p = {(int)(intptr_t)fd, POLLIN, 0};
    struct sockaddr_in address = {0};
    fd_set set;
    begin();
    CHECK_EQ(read((int)(intptr_t)fd, bytes, 1), 1);
    CHECK_EQ(bytes[0], 'x');
    CHECK_EQ(poll(&p, 1, -1), 1);
    FD_ZERO(&set);
    FD_SET((int)(intptr_t)fd, &set);
    CHECK_EQ(select((int)(intptr_t)fd + 1, &set, NULL, NULL, NULL), 1);
    CHECK_EQ(readv((int)(intptr_t)fd, parts, 2), 1);
    CHECK_EQ(usleep(100), 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0), 0);
    return NULL;
}

static void *test_share_stack(void *unused)
{
    aco_options_t opts = {0};
    aco_t *tasks[3];
    int pairs[3][2];
    opts.stack = aco_share_stack_new(0);
    begin();
    for (int i = 0; i < 3; i++) {
        blocking_pair(pairs[i], SOCK_STREAM);
        tasks[i] = aco_spawn(on_share_stack, (void *)(intptr_t)pairs[i][0], &opts);
        CHECK(tasks[i] != NULL);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            let_wait();
            CHECK_EQ(write(pairs[i][1], "x", 1), 1);
        }
    for (int i = 0; i < 3; i++) {
        join(tasks[i]);
        close_two(pairs[i]);
    }
    aco_share_stack_destroy(opts.stack);
    return unused;
}

/* ---- Where the thread blocks ---- */

static void sleeps_in_cleanup(void *unused)
{
    (void)unused;
    CHECK_EQ(usleep(100), 0);
}

static void *ends_hooked(void *unused)
{
    begin();
    aco_defer(sleeps_in_cleanup, NULL);
    return unused;
}

static void *test_cleanup(void *unused)
{
    uint64_t blocked = count_blocked();
    join(beside(ends_hooked, NULL));
    CHECK_EQ(count_blocked(), blocked + 1);
    return unused;
}

/* A child's calls go to libc, and leave its parent's descriptors alone. */
static void *test_fork(void *unused)
{
    char byte;
    int pair[2], status = -1;
    waiter_t waiter;
    aco_t *task;
    pid_t child;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    waiter = (waiter_t){pair[0], 0, 0};
    task = beside(reads_until_closed, &waiter);
    let_wait();
    child = fork();
    if (child == 0) {
        int own[2], is_good = aco_hook_begin() != 0 && errno == EPERM && socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0;
        close(pair[0]);
        is_good = is_good && usleep(1000) == 0 && write(own[1], "c", 1) == 1 && read(own[0], &byte, 1) == 1;
        _exit(is_good ? 0 : 3);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    let_wait();
    CHECK(!waiter.is_over);
    CHECK_EQ(close(pair[0]), 0);
    join(task);
    CHECK_EQ(close(pair[1]), 0);
    return unused;
}

/* vfork(): the child has the parent's memory, and its calls go to libc, too. */
static void *test_vfork(void *unused)
{
    static char *const command[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)"exit 5",
                                    NULL};
    int pair[2], own[2], status = -1;
    waiter_t waiter;
    aco_t *task;
    pid_t child;
    char byte = 0;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(pipe2(own, O_CLOEXEC), 0);
    waiter = (waiter_t){pair[0], 0, 0};
    task = beside(reads_until_closed, &waiter);
    let_wait();
    child = vfork();
    if (child == 0) {
        if (usleep(1000) != 0 || write(own[1], "v", 1) != 1 || read(own[0], &byte, 1) != 1)
            _exit(3);
        if (close(pair[0]) != 0 || dup2(own[0], pair[0]) != pair[0])
            _exit(4);
        execv("/bin/sh", command);
        _exit(6);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 5);
    let_wait();
    CHECK(!waiter.is_over);
    CHECK_EQ(close(pair[0]), 0);
    join(task);
    CHECK_EQ(waiter.error, EBADF);
    CHECK_EQ(close(pair[1]), 0);
    close_two(own);
    return unused;
}

/* A shell command that ends when another task has written a line to it. */
typedef struct ends_later {
    int pipe[2];
    char command[64];
} ends_later_t;

static void *writes_line(void *arg)
{
    ends_later_t *later = arg;
    begin();
    usleep(3000);
    CHECK_EQ(write(later->pipe[1], "line\n", 5), 5);
    return NULL;
}

static pid_t spawned(ends_later_t *later)
{
    char *command[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", later->command, NULL};
    pid_t child = -1;
    CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ), 0);
    return child;
}

static int ended_by(int way, ends_later_t *later)
{
    struct rusage usage;
    pid_t child = way < 4 ? spawned(later) : 0;
    int status = -1;
    switch (way) {
    case 0:
        CHECK_EQ(waitpid(child, &status, 0), child);
        return status;
    case 1:
        CHECK_EQ(wait(&status), child);
        return status;
    case 2:
        CHECK_EQ(wait4(child, &status, 0, &usage), child);
        return status;
    case 3:
        CHECK_EQ(waitpid(-1, &status, WUNTRACED), child);
        return status;
    case 4:
        return system(later->command);
    default:
        return pclose(popen(later->command, "w"));
    }
}

static void *test_children(void *unused)
{
    aco_scope_t scope;
    ends_later_t later;
    pid_t child;
    int status;
    CHECK_EQ(pipe(later.pipe), 0);
    snprintf(later.command, sizeof later.command, "read x </dev/fd/%d; exit 7", later.pipe[0]);
    begin();
    for (int way = 0; way < 6; way++) {
        aco_t *other = beside(writes_line, &later);
        errno = 77;
        status = ended_by(way, &later);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 7);
        CHECK_EQ(errno, 77);
        join(other);
    }
    FAILS_WITH(waitpid(-1, &status, 0), ECHILD);
    FAILS_WITH(wait(NULL), ECHILD);
    status = system("kill -TERM $$"); /* nothing is blocked that the caller did not block */
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(system(NULL) != 0);
    child = spawned(&later);
    CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    FAILS_WITH(waitpid(child, &status, 0), ETIMEDOUT);
    FAILS_WITH(wait(&status), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(write(later.pipe[1], "line\n", 5), 5);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close_two(later.pipe);
    return unused;
}

/* Locks of a process, which a child of it holds. */
static void *test_locks_of_child(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX", byte;
    int file = mkstemp(path), from[2], to[2];
    struct flock lock = {0};
    begin();
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    for (int way = 0; way < 2; way++) {
        aco_t *other;
        pid_t child;
        CHECK_EQ(pipe(from), 0);
        CHECK_EQ(pipe(to), 0);
        child = fork();
        if (child == 0)
            _exit(fcntl(file, F_SETLKW, &lock) == 0 && write(from[1], "l", 1) == 1 && read(to[0], &byte, 1) == 1 ? 0
                                                                                                                 : 1);
        CHECK_EQ(read(from[0], &byte, 1), 1);
        other = beside(writes_a_byte, (void *)(intptr_t)to[1]);
        CHECK_EQ(way ? lockf(file, F_LOCK, 10) : fcntl(file, F_SETLKW, &lock), 0);
        join(other);
        CHECK_EQ(lockf(file, F_ULOCK, 0), 0);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        close_two(from);
        close_two(to);
    }
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(file), 0);
    return unused;
}

/* Outside of hooked tasks all goes to libc, in other threads too. */
static void *other_thread(void *fd)
{
    char byte = 0;
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    CHECK_EQ(usleep(10), 0);
    CHECK_EQ(aco_hook_active(), 0);
    return NULL;
}

/* Sanitizers see what goes through the hooks: no race where a mutex is. */
static pthread_mutex_t counter_mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *counts(void *unused)
{
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(pthread_mutex_lock(&counter_mutex), 0);
        counter++;
        CHECK_EQ(pthread_mutex_unlock(&counter_mutex), 0);
    }
    return unused;
}

static void *test_threads(void *unused)
{
    pthread_t thread;
    int pair[2];
    begin();
    blocking_pair(pair, SOCK_STREAM);
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, (void *)(intptr_t)pair[0]), 0);
    CHECK_EQ(usleep(1000), 0);
    CHECK_EQ(write(pair[1], "t", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_two(pair);
    CHECK_EQ(pthread_create(&thread, NULL, counts, NULL), 0);
    counts(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(counter, 200);
    return unused;
}

/* What sanitizers must report: a call that waited writes behind its buffer, or what a thread reads without order. */
static char unordered;
static void *reads_unordered(void *fd)
{
    char byte;
    CHECK_EQ(aco_hook_active(), 0);
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    CHECK(unordered != 'z');
    return NULL;
}

static void *seeded(void *unused)
{
    volatile size_t size = 4;
    char *room = malloc(size);
    int pair[2], others[2];
    pthread_t thread;
    aco_t *other;
    begin();
    CHECK(room != NULL);
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(pipe(others), 0);
    CHECK_EQ(pthread_create(&thread, NULL, reads_unordered, (void *)(intptr_t)others[0]), 0);
    CHECK_EQ(write(others[1], "t", 1), 1);
    usleep(100000);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], &unordered, 1), 1);
    join(other);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(read(pair[0], room + size, 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    free(room);
    return unused;
}

#ifdef __GLIBC__
extern ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
extern ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
extern int __open_2(const char *path, int flags);
#endif

/* The names that _FORTIFY_SOURCE calls. */
static void *test_fortified(void *unused)
{
    char byte = 0;
    int pair[2], fd;
    struct pollfd p;
    aco_t *other;
    uint64_t waits;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    p = (struct pollfd){pair[0], POLLIN, 0};
    waits = count_waits();
    for (int way = 0; way < 2; way++) {
        other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
        CHECK_EQ(__poll_chk(&p, 1, -1, sizeof p), 1);
        CHECK_EQ(way ? __read_chk(pair[0], &byte, 1, 1) : __recv_chk(pair[0], &byte, 1, 1, 0), 1);
        join(other);
    }
    fd = __open_2("/", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(count_waits() >= waits + 3);
    CHECK_EQ(close(fd), 0);
    close_two(pair);
    return unused;
}

/* ---- ---- */

static const aco_function_t watched[] = {
    test_reads,    test_eventfd,   test_waitall,     test_writes,       test_peer_gone,   test_recvmmsg,
    test_sendmmsg, test_sendfile,  test_range_locks, test_other_locks,  test_nonblocking, test_dup,
    test_timeouts, test_scopes,    test_sleeps,      test_connections,  test_backlog,     test_datagrams,
    test_polls,    test_poll_both, test_selects,     test_high_numbers, test_epoll,       test_close,
    test_files,    test_flock,     test_names,       test_locks,        test_crowd,       test_fortified,
    test_begin};
static const aco_function_t others[] = {test_masks,   test_share_stack, test_cleanup,  test_fork,
                                        test_threads, test_vfork,       test_children, test_locks_of_child};

int main(int argc, char **argv)
{
    int before;
    alarm(150);
    large = malloc(LARGE);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 1000);
    FAILS_WITH(aco_hook_begin(), EPERM);
    CHECK(aco_io_poll_fd() >= 0);
    if (argc == 1 || strcmp(argv[1], "unhooked") != 0)
        run_task(test_files, NULL); /* the thread may get a ring */
    before = count_descriptors();
    if (argc > 1 && strcmp(argv[1], "unhooked") == 0) {
        is_hooked = 0;
        alarm(2);
        run_tests(watched, 1, before);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "seeded") == 0) {
        run_task(seeded, NULL);
        return 0;
    }
    run_tests(watched, sizeof watched / sizeof *watched, before);
    if (argc == 1)
        run_tests(others, sizeof others / sizeof *others, before);
    free(large);
    return check_result("hook");
}
