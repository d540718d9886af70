/* Promises: in a simulation, hooked calls of libc go to the simulated system, and repeat with the seed. What is not
 * simulated fails the run, with its name. */
#define _GNU_SOURCE /* memfd_create() */
#include "sim_checks.h"

#include "aco/hook.h"
#include "aco/io.h"
#include "aco/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { SEEDS = 50, PORT = 7 };

static void begin_hooks(void)
{
    CHECK_EQ(aco_hook_begin(), 0);
    CHECK(aco_hook_active());
}

/* ---- Time ---- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return now.tv_sec * ACO_SECOND + now.tv_nsec;
}

static void time_passes(aco_sim_t *sim, void *unused)
{
    struct timespec hour = {3600, 0};
    struct timeval now;
    int64_t before;
    (void)sim, (void)unused;
    begin_hooks();
    before = clock_ns(CLOCK_MONOTONIC);
    CHECK_EQ(before, aco_now());
    CHECK_EQ(nanosleep(&hour, NULL), 0);
    CHECK_EQ(sleep(3600), 0);
    CHECK_EQ(usleep(500000), 0);
    CHECK_EQ(clock_ns(CLOCK_MONOTONIC), before + 7200 * ACO_SECOND + ACO_SECOND / 2);
    CHECK_EQ(gettimeofday(&now, NULL), 0);
    CHECK_EQ(time(NULL), now.tv_sec);
    CHECK_EQ(clock_ns(CLOCK_REALTIME) / ACO_SECOND, now.tv_sec);
    CHECK_EQ(poll(NULL, 0, 1000), 0);
    CHECK_EQ(clock_ns(CLOCK_MONOTONIC), before + 7201 * ACO_SECOND + ACO_SECOND / 2);
    CHECK_EQ(aco_hook_end(), 0);
}

static void random_numbers(aco_sim_t *sim, void *unused)
{
    static uint64_t numbers[3];
    uint64_t number[2] = {0, 0};
    (void)unused;
    begin_hooks();
    CHECK_EQ(getrandom(number, sizeof *number, 0), sizeof *number);
    CHECK_EQ(getentropy(number + 1, sizeof *number), 0);
    CHECK(number[0] != number[1]);
    CHECK(aco_sim_seed(sim) > 2 || !numbers[aco_sim_seed(sim)] || numbers[aco_sim_seed(sim)] == number[0]);
    if (aco_sim_seed(sim) <= 2)
        numbers[aco_sim_seed(sim)] = number[0];
    CHECK(!numbers[1] || !numbers[2] || numbers[1] != numbers[2]);
}

/* ---- The network ---- */

static int listens(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    CHECK(fd >= 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(fd, 5), 0);
    return fd;
}

/* Sends back what comes. */
static void *echo(void *listener)
{
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    char bytes[100];
    ssize_t n;
    int fd;
    begin_hooks();
    fd = accept((int)(intptr_t)listener, (struct sockaddr *)&from, &length);
    CHECK(fd >= 0 && from.ss_family == AF_INET);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        CHECK_EQ(send(fd, bytes, (size_t)n, MSG_NOSIGNAL), n);
    CHECK_EQ(n, 0);
    CHECK_EQ(close(fd), 0);
    return NULL;
}

static int connects_to(const char *host)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    struct timeval limit = {5, 0}, kept = {0, 0};
    socklen_t length = sizeof kept;
    int fd, datagram, size = 0;
    CHECK_EQ(getaddrinfo("unknown.example", "7", &hints, &found), EAI_NONAME);
    CHECK_EQ(getaddrinfo(host, "7", &hints, &found), 0);
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kept, &length), 0);
    CHECK_EQ(kept.tv_sec, 5);
    datagram = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    length = sizeof size;
    CHECK_EQ(getsockopt(datagram, SOL_SOCKET, SO_RCVBUF, &size, &length), 0);
    CHECK_EQ(size, 212992); /* Linux's default */
    CHECK_EQ(close(datagram), 0);
    CHECK_EQ(connect(fd, found->ai_addr, found->ai_addrlen), 0);
    freeaddrinfo(found);
    return fd;
}

static int is_ready(int fd, short events, int ms)
{
    struct pollfd p = {fd, events, 0};
    return poll(&p, 1, ms);
}

static int selects(int fd, struct timeval limit)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, NULL, NULL, &limit);
}

static void talks(int fd)
{
    char bytes[100];
    int unread = 0, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {0}};
    int64_t before;
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    CHECK_EQ(is_ready(fd, POLLIN, 0), 0);
    CHECK_EQ(selects(fd, (struct timeval){0, 0}), 0);
    CHECK_EQ(write(fd, "hello", 5), 5);
    CHECK_EQ(is_ready(fd, POLLIN, -1), 1);
    CHECK_EQ(epoll_wait(epoll, &event, 1, -1), 1);
    CHECK_EQ(selects(fd, (struct timeval){1, 0}), 1);
    CHECK_EQ(recv(fd, bytes, 5, MSG_WAITALL), 5);
    CHECK(memcmp(bytes, "hello", 5) == 0);
    CHECK_EQ(ioctl(fd, FIONREAD, &unread), 0);
    CHECK_EQ(unread, 0);
    before = aco_now();
    errno = 0;
    CHECK(read(fd, bytes, 1) == -1 && errno == EAGAIN); /* SO_RCVTIMEO */
    CHECK_EQ(aco_now() - before, 5 * ACO_SECOND);
    CHECK_EQ(close(epoll), 0);
}

static void network(aco_sim_t *sim, void *unused)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    aco_t *server;
    int listener, fd;
    (void)unused;
    aco_sim_name(sim, "echo.example", "10.0.0.9");
    begin_hooks();
    listener = listens(PORT);
    server = aco_spawn(echo, (void *)(intptr_t)listener, NULL);
    fd = connects_to("echo.example");
    CHECK_EQ(getpeername(fd, (struct sockaddr *)&peer, &length), 0);
    CHECK_EQ(ntohl(peer.sin_addr.s_addr), 0x0a000009);
    talks(fd);
    CHECK_EQ(close(fd), 0);
    aco_join(server, NULL);
    CHECK_EQ(close(listener), 0);
}

/* A task that is not hooked makes libc's own calls. */
static void unhooked_is_real(aco_sim_t *sim, void *unused)
{
    int fds[2];
    char byte = 0;
    (void)sim, (void)unused;
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK(byte == 'x' && clock_ns(CLOCK_MONOTONIC) != aco_now());
    CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

/* ---- Pairs, pipes, files, threads ---- */

static void *write_later(void *fd)
{
    CHECK(aco_hook_active());
    CHECK_EQ(sleep(1), 0);
    CHECK_EQ(write((int)(intptr_t)fd, "late", 4), 4);
    return fd;
}

static void pairs(aco_sim_t *sim, void *unused)
{
    int pair[2], fds[2], copy;
    char bytes[10];
    pthread_t thread, other;
    void *result = NULL;
    int64_t before;
    (void)sim, (void)unused;
    begin_hooks();
    before = aco_now();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_later, (void *)(intptr_t)pair[0]), 0);
    CHECK_EQ(pthread_create(&other, NULL, write_later, (void *)(intptr_t)pair[1]), 0);
    CHECK_EQ(pthread_detach(other), 0);
    CHECK_EQ(read(pair[1], bytes, sizeof bytes), 4);
    CHECK_EQ(aco_now() - before, ACO_SECOND);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_EQ((intptr_t)result, pair[0]);
    CHECK_EQ(read(pair[0], bytes, sizeof bytes), 4);
    CHECK(close(pair[0]) == 0);
    CHECK_EQ(read(pair[1], bytes, sizeof bytes), 0);
    CHECK(close(pair[1]) == 0 && pipe(fds) == 0);
    copy = dup(fds[1]);
    CHECK(dup2(fds[0], fds[0]) == fds[0] && dup2(-1, fds[0]) == -1 && errno == EBADF);
    CHECK(dup2(fds[0], -1) == -1 && errno == EBADF && dup2(fds[0], INT_MAX) == -1 && errno == EBADF);
    CHECK(dup3(fds[0], fds[0], 0) == -1 && errno == EINVAL && dup3(fds[1], copy, O_NONBLOCK) == -1 && errno == EINVAL);
    CHECK(dup3(fds[0], copy, O_CLOEXEC) == copy && fcntl(copy, F_GETFD) == FD_CLOEXEC);
    CHECK(write(fds[1], "y", 1) == 1 && read(copy, bytes, 2) == 1 && bytes[0] == 'y');
    CHECK(dup2(fds[1], copy) == copy && fcntl(copy, F_GETFD) == 0); /* which was open */
    CHECK(close(copy) == 0 && dup2(fds[1], copy) == copy);          /* which was not */
    CHECK(copy >= 0 && write(copy, "x", 1) == 1 && read(fds[0], bytes, 2) == 1);
    CHECK(close(copy) == 0 && close(fds[0]) == 0 && close(fds[1]) == 0);
}

/* A scope ends while its task joins, as in libcurl, which then frees what the thread uses. */
static void joins_to_the_end(aco_sim_t *sim, void *unused)
{
    aco_scope_t scope;
    pthread_t thread;
    int fds[2];
    int64_t before;
    (void)sim, (void)unused;
    begin_hooks();
    before = aco_now();
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_later, (void *)(intptr_t)fds[1]), 0);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(ACO_MILLISECOND)), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_now() - before, ACO_SECOND);
    (void)aco_scope_end(&scope);
    CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
static void files(aco_sim_t *sim, void *unused)
{
    char line[20] = "";
    struct stat status;
    FILE *stream;
    int fd;
    (void)sim, (void)unused;
    begin_hooks();
    CHECK(stat("/etc/passwd", &status) == -1 && errno == ENOENT); /* the disk is empty */
    CHECK(fopen("/etc/passwd", "r") == NULL && access("/etc/passwd", R_OK) == -1);
    fd = open("/file", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, "one\n", 4) == 4 && fsync(fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK(fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 4);
    CHECK_EQ(read(fd, line, sizeof line), 4);
    CHECK_EQ(close(fd), 0);
    stream = fopen("/file", "a+");
    CHECK(stream && fputs("two\n", stream) >= 0 && fseek(stream, 0, SEEK_SET) == 0);
    CHECK(fgets(line, sizeof line, stream) && fgets(line, sizeof line, stream) && strcmp(line, "two\n") == 0);
    CHECK_EQ(fclose(stream), 0);
    CHECK_EQ(unlink("/file"), 0);
    CHECK(stat("/file", &status) == -1);
}

static void *writes_and_dies(void *unused)
{
    FILE *stream;
    begin_hooks();
    stream = fopen("/file", "w");
    CHECK(stream && fputs("not flushed", stream) >= 0);
    sleep(10);
    return unused;
}

static void leaves_stream(aco_sim_t *sim, void *unused)
{
    aco_sim_node_t *node = aco_sim_node(sim, "node", "10.0.0.1", writes_and_dies, NULL);
    (void)unused;
    CHECK_EQ(aco_sleep(ACO_SECOND), 0);
    CHECK_EQ(aco_sim_crash(node, ACO_SIM_CRASH_ANY), 0);
}

/* What a killed task has not flushed gets into no real file that has the descriptor's number now. */
static void stream_stays_in_run(void)
{
    int fds[8];
    passes(leaves_stream, NULL, 1);
    for (int i = 0; i < 8; i++)
        CHECK((fds[i] = memfd_create("real", MFD_CLOEXEC)) >= 0);
    (void)fflush(NULL);
    for (int i = 0; i < 8; i++)
        CHECK(lseek(fds[i], 0, SEEK_END) == 0 && close(fds[i]) == 0);
}

static void test_files(void)
{
    passes(files, NULL, SEEDS);
    stream_stays_in_run();
}
#else /* their calls are not simulated */
static void test_files(void)
{
}
#endif

/* ---- What is not simulated ---- */

static void asks_for_timer(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    begin_hooks();
    CHECK(timerfd_create(CLOCK_MONOTONIC, 0) == -1 && errno == ENOSYS);
}

static void asks_by_name(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    begin_hooks();
    CHECK(gethostbyname("localhost") == NULL);
}

static void asks_shell(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    begin_hooks();
    CHECK(system("exit 1") == -1);
}

static void asks_raw_socket(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    begin_hooks();
    CHECK(socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == ENOSYS);
}

static void asks_terminal(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    begin_hooks();
    CHECK_EQ(write(STDIN_FILENO, "x", 1), -1);
}

static void fails_by(aco_sim_function_t scenario, const char *text)
{
    aco_sim_stats_t result;
    const char *told;
    int done;
    capture();
    done = aco_sim_run(scenario, NULL, 1, &result, NULL);
    told = release();
    CHECK_EQ(done, -1);
    if (!strstr(result.reason, text))
        check_failed_at(__FILE__, __LINE__, result.reason);
    CHECK(strstr(told, "it is called by:") != NULL);
}

/* ---- Ends ---- */

static void *sleeps_for_ever(void *unused)
{
    char byte;
    int fds[2];
    (void)unused;
    begin_hooks();
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(read(fds[0], &byte, 1), -1); /* nobody writes */
    return NULL;
}

static void crashes(aco_sim_t *sim, void *unused)
{
    aco_sim_node_t *node = aco_sim_node(sim, "node", "10.0.0.1", sleeps_for_ever, NULL);
    (void)unused;
    begin_hooks();
    CHECK_EQ(sleep(1), 0);
    CHECK_EQ(aco_sim_crash(node, ACO_SIM_CRASH_ANY), 0);
    CHECK_EQ(aco_sim_restart(node), 0);
    CHECK_EQ(sleep(1), 0);
    CHECK(aco_hook_active());
}

static void *plain_task(void *unused)
{
    struct timespec moment = {0, 1000};
    aco_hook_stats_t before, after;
    (void)unused;
    begin_hooks();
    CHECK_EQ(aco_hook_stats(&before), 0);
    CHECK_EQ(nanosleep(&moment, NULL), 0);
    CHECK_EQ(aco_hook_stats(&after), 0);
    CHECK(after.waits == before.waits + 1 && clock_ns(CLOCK_MONOTONIC) <= aco_now());
    return NULL;
}

/* Hooks outside of runs work as before. */
static void hooks_go_on(void)
{
    aco_t *task = aco_spawn(plain_task, NULL, NULL);
    CHECK(task && aco_run() == 0);
    aco_destroy(task);
}

static void *looks_at_clock(void *unused)
{
    CHECK_EQ(clock_ns(CLOCK_MONOTONIC), aco_now()); /* its first call */
    CHECK(aco_hook_active());
    return unused;
}

static void *sends_at_once(void *fd)
{
    CHECK_EQ(send((int)(intptr_t)fd, "x", 1, MSG_DONTWAIT), 1); /* its first call */
    return NULL;
}

static void *polls_at_once(void *fd)
{
    struct pollfd one = {(int)(intptr_t)fd, POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 0), 1);
    return NULL;
}

/* For the rest of the process. */
static void all_are_hooked(aco_sim_t *sim, void *unused)
{
    int ends[2];
    aco_t *tasks[3];
    (void)sim, (void)unused;
    CHECK_EQ(aco_hook_begin_all(), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    tasks[0] = aco_spawn(looks_at_clock, NULL, NULL);
    tasks[1] = aco_spawn(sends_at_once, (void *)(intptr_t)ends[0], NULL);
    CHECK_EQ(aco_join(tasks[1], NULL), 0);
    tasks[2] = aco_spawn(polls_at_once, (void *)(intptr_t)ends[1], NULL);
    CHECK_EQ(aco_join(tasks[0], NULL), 0);
    CHECK_EQ(aco_join(tasks[2], NULL), 0);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
}

int main(void)
{
    passes(time_passes, NULL, SEEDS);
    hooks_go_on();
    passes(random_numbers, NULL, SEEDS);
    passes(network, NULL, SEEDS);
    passes(unhooked_is_real, NULL, 1);
    passes(pairs, NULL, SEEDS);
    passes(joins_to_the_end, NULL, SEEDS);
    test_files();
    passes(crashes, NULL, SEEDS);
    fails_by(asks_for_timer, "timerfd_create() is not simulated");
    fails_by(asks_by_name, "gethostbyname() is not simulated");
    fails_by(asks_shell, "system() is not simulated");
    fails_by(asks_raw_socket, "socket() is not simulated");
    fails_by(asks_terminal, "sendmsg() is not simulated"); /* which the hook of write() tries first */
    hooks_go_on();
    passes(network, NULL, 1);
    passes(all_are_hooked, NULL, 1);
    hooks_go_on();
    return check_result("sim_hook");
}
