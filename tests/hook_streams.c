/* Hooks on libc (hook_tests.h): reading, writing, messages, sendfile(); what must not wait; time limits, scopes and
 * sleeps; many tasks at one descriptor. */
#define _GNU_SOURCE
#include "hook_tests.h"

#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

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
    CHECK(sleep(1) <= 1); /* what is left, rounded up */
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

static volatile int turns; /* glibc calls sched_yield() a leaf, which changes no variable of its caller */
static void *takes_turns(void *stop)
{
    while (!*(int *)stop) {
        turns++;
        errno = EDOM;
        CHECK_EQ(aco_task_yield(), 0);
    }
    return NULL;
}

#define CHECK_LETS_RUN(call) \
    do { \
        int before = turns; \
        CHECK_EQ(call, 0); \
        CHECK(turns > before); \
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
    errno = ENODATA;
    CHECK_LETS_RUN(sched_yield());
    CHECK_EQ(errno, ENODATA);
    time.tv_nsec = -1;
    FAILS_WITH(nanosleep(&time, NULL), EINVAL);
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL), EINVAL);
    stop = 1;
    join(other);
    return unused;
}

static void sends(int fd)
{
    CHECK_EQ(send(fd, "s", 1, 0), 1);
}

static void writes(int fd)
{
    CHECK_EQ(write(fd, "w", 1), 1);
}

static void reads(int fd)
{
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
}

static void lets_run(void (*call)(int fd), int fd)
{
    int before = turns;
    for (int i = 0; i < 100; i++)
        call(fd);
    CHECK(turns > before);
}

/* Calls that never have to wait let others run from time to time. */
static void *test_never_waits(void *unused)
{
    int pipe_ends[2], pair[2], stop = 0;
    aco_t *other = beside(takes_turns, &stop);
    CHECK_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    begin();
    lets_run(sends, pair[1]);
    lets_run(reads, pair[0]);
    lets_run(writes, pipe_ends[1]);
    lets_run(reads, pipe_ends[0]);
    stop = 1;
    join(other);
    close_two(pair);
    close_two(pipe_ends);
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

int main(int argc, char **argv)
{
    static const aco_function_t watched[] = {test_reads,       test_eventfd,     test_waitall,  test_writes,
                                             test_peer_gone,   test_recvmmsg,    test_sendmmsg, test_sendfile,
                                             test_nonblocking, test_dup,         test_timeouts, test_scopes,
                                             test_sleeps,      test_never_waits, test_crowd,    NULL};
    static const aco_function_t others[] = {NULL};
    static const aco_function_t in_both[] = {test_eventfd,  test_waitall,     test_writes, test_peer_gone,
                                             test_sendmmsg, test_nonblocking, test_dup,    test_timeouts,
                                             test_scopes,   test_crowd,       NULL};
    return run_hook_tests(argc, argv, "hook_streams", watched, others, in_both);
}
