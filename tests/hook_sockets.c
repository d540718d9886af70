/* Hooks on libc (hook_tests.h): connections, full backlogs and receivers; poll(), select(), epoll; ends of descriptors
 * that are waited for. */
#define _GNU_SOURCE
#include "hook_tests.h"
#include "sanitizers.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

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

/* A receiver gets the sender's address, also with an empty datagram. A call that fails, or does not ask for the
 * address, leaves its length as it was. */
static void *test_addresses(void *unused)
{
    struct sockaddr_un path[2] = {{AF_UNIX, ""}, {AF_UNIX, ""}}, from;
    socklen_t length[2], room;
    char bytes[4];
    int fds[2];
    begin();
    for (int i = 0; i < 2; i++) {
        fds[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(bind(fds[i], (struct sockaddr *)&path[i], sizeof(sa_family_t)), 0);
        length[i] = sizeof path[i];
        CHECK_EQ(getsockname(fds[i], (struct sockaddr *)&path[i], &length[i]), 0);
    }
    for (int n = 3; n >= 0; n -= 3) {
        CHECK_EQ(sendto(fds[0], "abc", (size_t)n, 0, (struct sockaddr *)&path[1], length[1]), n);
        room = sizeof from;
        CHECK_EQ(recvfrom(fds[1], bytes, sizeof bytes, 0, (struct sockaddr *)&from, &room), n);
        CHECK_EQ(room, length[0]);
        CHECK(memcmp(&from, &path[0], room) == 0);
    }
    CHECK_EQ(sendto(fds[0], "a", 1, 0, (struct sockaddr *)&path[1], length[1]), 1);
    room = 77;
    CHECK_EQ(recvfrom(fds[1], bytes, sizeof bytes, 0, NULL, &room), 1);
    CHECK_EQ(room, 77);
    room = sizeof from;
    FAILS_WITH(recvfrom(-1, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &room), EBADF);
    CHECK_EQ(room, sizeof from);
    close_two(fds);
    return unused;
}

static void *receives_rights(void *fd)
{
    rights_t control;
    struct iovec part = {malloc(LARGE), LARGE};
    size_t got = 0;
    int rights = 0;
    begin();
    while (got < LARGE) {
        struct msghdr message = message_with(&part, &control);
        ssize_t n;
        n = recvmsg((int)(intptr_t)fd, &message, 0);
        CHECK(n > 0);
        got += (size_t)n;
        if (message.msg_controllen) {
            int right;
            memcpy(&right, CMSG_DATA(&control.header), sizeof right);
            CHECK_EQ(close(right), 0);
            rights++;
        }
    }
    CHECK_EQ(rights, 1);
    free(part.iov_base);
    return NULL;
}

/* A message that goes out in pieces passes its descriptor once. */
static void *test_rights(void *unused)
{
    rights_t control;
    struct iovec part = {large, LARGE};
    struct msghdr message = message_with(&part, &control);
    int pair[2];
    aco_t *other;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    set_descriptor(&control, pair[0]);
    other = beside(receives_rights, (void *)(intptr_t)pair[1]);
    CHECK_EQ(sendmsg(pair[0], &message, 0), LARGE);
    join(other);
    close_two(pair);
    return unused;
}

/* ---- poll(), select(), epoll ---- */

static void *test_polls(void *unused)
{
    int pair[2];
    struct pollfd p[4];
    struct timespec limit = {0, 3000000}, wrong = {0, -1}, almost_a_second = {0, 999999999};
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
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    CHECK_EQ(ppoll(p, 4, &almost_a_second, NULL), 1);
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

/* ---- A handler that runs while tasks wait ---- */

typedef struct interruptible {
    int fd, result, error, is_over;
} interruptible_t;

static void *polls_for_ever(void *arg)
{
    interruptible_t *call = arg;
    begin();
    call->result = poll(NULL, 0, -1);
    call->error = errno;
    call->is_over = 1;
    return NULL;
}

static void *reads_once(void *arg)
{
    interruptible_t *call = arg;
    char byte;
    begin();
    call->result = (int)read(call->fd, &byte, 1);
    call->error = errno;
    call->is_over = 1;
    return NULL;
}

/* In a child of fork() nothing is written to descriptors of the parent's: their numbers may be other files'. */
static void handle_in_child(void)
{
    int status, file;
    char byte;
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 3; fd < 100; fd++)
            (void)syscall(SYS_close, fd);
        file = memfd_create("file", 0);
        for (int fd = file + 1; fd < 100; fd++)
            (void)dup2(file, fd);
        raise(SIGUSR2);
        _exit(pread(file, &byte, 1, 0) != 0);
    }
    CHECK_EQ(syscall(SYS_wait4, child, &status, 0, NULL), child); /* the thread's other tasks are to wait on */
    CHECK_EQ(status, 0);
}

/* It runs on the caller's turn, not in a wait of the thread: all calls that waited then see it, and none that begins
 * later. */
static void *test_interrupts(void *unused)
{
    struct sigaction action = {0};
    const struct timespec time = {0, 1000000};
    begin();
    action.sa_handler = on_signal;
    for (int way = 0; way < 2; way++) {
        int pair[2];
        interruptible_t poller = {-1, 0, 0, 0}, reader = {-1, 0, 0, 0};
        aco_t *tasks[2];
        action.sa_flags = way ? SA_RESTART : 0;
        CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
        blocking_pair(pair, SOCK_STREAM);
        reader.fd = pair[0];
        tasks[0] = beside(polls_for_ever, &poller);
        tasks[1] = beside(reads_once, &reader);
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
        if (!UNDER_TSAN)
            handle_in_child();
        CHECK_EQ(raise(SIGUSR2), 0);
        CHECK_EQ(nanosleep(&time, NULL), 0);
        join(tasks[0]);
        CHECK(poller.result == -1 && poller.error == EINTR);
        if (way) {
            CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
            CHECK(!reader.is_over);
            CHECK_EQ(write(pair[1], "x", 1), 1);
        }
        join(tasks[1]);
        CHECK(way ? reader.result == 1 : reader.result == -1 && reader.error == EINTR);
        close_two(pair);
    }
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
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    other = beside(writes_a_byte, (void *)(intptr_t)pair[1]);
    limit.tv_sec = 0;
    limit.tv_usec = 1999999;
    CHECK_EQ(select(pair[0] + 1, &reads, NULL, NULL, &limit), 1);
    join(other);
    FD_SET(pair[0], &writes);
    CHECK_EQ(select(pair[0] + 1, &reads, &writes, NULL, NULL), 2);
    CHECK(FD_ISSET(pair[0], &reads) && FD_ISSET(pair[0], &writes));
    CHECK_EQ(read(pair[0], &byte, 1), 1);
    limit = (struct timeval){0, 3000};
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

int main(int argc, char **argv)
{
    static const aco_function_t watched[] = {test_connections,  test_backlog, test_datagrams, test_addresses,
                                             test_rights,       test_polls,   test_poll_both, test_selects,
                                             test_high_numbers, test_epoll,   test_close,     NULL};
    static const aco_function_t others[] = {test_masks, test_interrupts, NULL};
    static const aco_function_t in_both[] = {test_connections, test_backlog, test_datagrams, test_addresses,
                                             test_rights,      test_polls,   test_poll_both, test_high_numbers,
                                             test_epoll,       test_close,   NULL};
    return run_hook_tests(argc, argv, "hook_sockets", watched, others, in_both);
}
