/* Promises: the simulated network at its edges: several tasks at one socket, the program's own descriptors beside those
 * of a run, and a hash that is the same wherever the program runs. */
#define _FILE_OFFSET_BITS 64
#include "system/system.h"

#include "sim_checks.h"

#include "aco/io.h"
#include "aco/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 100 };

static int descriptor(void *arg)
{
    return (int)(intptr_t)arg;
}

static void *dial(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)aco_io_dial("tcp", "127.0.0.1", "80", NULL);
}

typedef struct ends {
    int client, server;
} ends_t;

static ends_t connect_ends(void)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    aco_t *dialler = aco_spawn(dial, NULL, NULL);
    ends_t ends;
    void *client = NULL;
    ends.server = aco_io_accept(listener);
    CHECK(aco_join(dialler, &client) == 0 && aco_io_close(listener) == 0);
    ends.client = descriptor(client);
    CHECK(ends.client >= 0 && ends.server >= 0);
    return ends;
}

/* ---- Two tasks send ---- */

static void *send_much(void *fd)
{
    static char bytes[60000];
    CHECK_EQ(aco_io_write_all(descriptor(fd), bytes, sizeof bytes), (ssize_t)sizeof bytes);
    return NULL;
}

/* In between, without waiting: that there was room for it tells the other one nothing. */
static void *send_little(void *fd)
{
    for (int i = 0; i < 600; i++) {
        (void)aco_io_send(descriptor(fd), "little", 6, MSG_DONTWAIT);
        (void)aco_sleep(20 * ACO_MICROSECOND);
    }
    return NULL;
}

static void *read_slowly(void *fd)
{
    char bytes[1500];
    ssize_t n;
    while ((n = aco_io_read(descriptor(fd), bytes, sizeof bytes)) > 0)
        (void)aco_sleep(100 * ACO_MICROSECOND);
    CHECK_EQ(n, 0);
    CHECK(aco_io_close(descriptor(fd)) == 0);
    return NULL;
}

static void send_together(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    void *client = (void *)(intptr_t)ends.client;
    aco_t *much = aco_spawn(send_much, client, NULL), *little = aco_spawn(send_little, client, NULL),
          *reader = aco_spawn(read_slowly, (void *)(intptr_t)ends.server, NULL);
    (void)sim, (void)arg;
    CHECK(aco_join(much, NULL) == 0 && aco_join(little, NULL) == 0);
    CHECK(aco_io_close(ends.client) == 0 && aco_join(reader, NULL) == 0);
}

/* ---- Numbers of descriptors ---- */

static void connect_and_close(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    (void)sim, (void)arg;
    CHECK(aco_io_close(ends.client) == 0 && aco_io_close(ends.server) == 0);
}

/* What else the process has open changes numbers, and nothing else. */
static void hash_knows_no_numbers(void)
{
    aco_sim_stats_t before, after;
    int real;
    CHECK(run_twice(connect_and_close, NULL, 3, &before) == 0);
    real = open("/dev/null", O_RDONLY);
    CHECK(run_twice(connect_and_close, NULL, 3, &after) == 0);
    CHECK(before.hash == after.hash);
    close(real);
}

/* ---- The program's own calls ---- */

/* They do nothing, and wait for nothing. */
static void use_libc(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    struct pollfd look = {.fd = ends.client, .events = POLLIN | POLLOUT};
    char bytes[8] = {0};
    (void)sim, (void)arg;
    CHECK(read(ends.client, bytes, sizeof bytes) == -1 && errno == EBADF);
    CHECK(write(ends.client, bytes, sizeof bytes) == -1 && errno == EBADF);
    CHECK(send(ends.client, bytes, sizeof bytes, 0) == -1);
    CHECK(poll(&look, 1, 0) == 1 && look.revents == POLLNVAL);
    CHECK(aco_io_close(ends.client) == 0 && aco_io_close(ends.server) == 0);
}

/* The number is then another file's, which the end of the run must leave alone. */
static void close_by_libc(aco_sim_t *sim, void *other)
{
    int fd = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    (void)sim;
    CHECK(close(fd) == 0);
    *(int *)other = open("/dev/null", O_RDONLY);
    CHECK(*(int *)other == fd);
}

static void libc_closes(void)
{
    int other = -1;
    CHECK(aco_sim_run(close_by_libc, &other, 1, NULL, NULL) == 0);
    CHECK(close(other) == 0);
}

/* ---- Parts ---- */

/* More bytes than a size can tell, and more parts than there may be. */
static void send_too_much(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    int from = aco_io_dial("udp", "127.0.0.1", "53", NULL);
    char byte = 0;
    struct iovec parts[] = {{&byte, SIZE_MAX}, {&byte, 1}};
    struct msghdr message = {0};
    (void)sim, (void)arg;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    CHECK(aco_io_sendmsg(from, &message, 0) == -1 && errno == EMSGSIZE);
    message.msg_iovlen = 5000;
    CHECK(aco_io_sendmsg(ends.client, &message, 0) == -1 && errno == EMSGSIZE);
    CHECK(aco_io_close(ends.client) == 0 && aco_io_close(ends.server) == 0 && aco_io_close(from) == 0);
}

/* ---- No descriptor is free ---- */

/* All numbers below the limit are taken. */
static void take_all(struct rlimit *before)
{
    struct rlimit low;
    int highest = open("/dev/null", O_RDONLY);
    CHECK(highest >= 0 && getrlimit(RLIMIT_NOFILE, before) == 0 && close(highest) == 0);
    low = *before;
    low.rlim_cur = (rlim_t)highest;
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
}

static void fails_for_numbers(int result)
{
    CHECK(result == -1 && errno == EMFILE);
}

/* Nothing is made, cut or stored. */
static void make_without_number(aco_sim_t *sim, void *arg)
{
    int fd = aco__system.open("/full", O_WRONLY | O_CREAT, 0600), fds[2] = {77, 78};
    struct rlimit before;
    struct stat status;
    (void)sim, (void)arg;
    CHECK(aco__system.write(fd, "x", 1) == 1);
    take_all(&before);
    fails_for_numbers(aco__system.pipe2(fds, 0));
    fails_for_numbers(aco__system.socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    fails_for_numbers(aco__system.open("/new", O_WRONLY | O_CREAT, 0600));
    fails_for_numbers(aco__system.open("/full", O_WRONLY | O_TRUNC, 0));
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0 && fds[0] == 77 && fds[1] == 78);
    CHECK(aco__system.stat("/new", &status) == -1 && errno == ENOENT);
    CHECK(aco__system.stat("/full", &status) == 0 && status.st_size == 1);
    CHECK(aco__system.close(fd) == 0);
}

static void *ask_for_end(void *arg)
{
    int fd = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    char byte;
    CHECK_EQ(aco_io_read(fd, &byte, 1), 1);
    CHECK(aco_io_close(fd) == 0);
    return arg;
}

static void *give_back_later(void *before)
{
    (void)aco_sleep(ACO_SECOND);
    CHECK(setrlimit(RLIMIT_NOFILE, before) == 0);
    return NULL;
}

/* The connection waits until one is free. */
static void accept_without_number(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL), fd;
    aco_t *client = aco_spawn(ask_for_end, NULL, NULL), *giver;
    struct rlimit before;
    (void)sim, (void)arg;
    CHECK(aco_io_wait_readable(listener) == 0);
    take_all(&before);
    giver = aco_spawn(give_back_later, &before, NULL);
    fd = aco_io_accept(listener);
    CHECK(aco_join(giver, NULL) == 0 && aco_io_write(fd, "", 1) == 1 && aco_join(client, NULL) == 0);
    CHECK(aco_io_close(fd) == 0 && aco_io_close(listener) == 0);
}

/* ---- Calls that wait in two threads, and other ones ---- */

enum { ROOM = 1 << 16 };

typedef struct sending {
    int file, socket;
} sending_t;

static void *send_all_of_file(void *arg)
{
    const sending_t *sending = arg;
    for (int64_t at = 0; at < ROOM;)
        CHECK(aco__system.sendfile(sending->socket, sending->file, &at, ROOM - (size_t)at) > 0);
    return NULL;
}

static void *offload_sending(void *arg)
{
    CHECK(aco_offload(send_all_of_file, arg, NULL, NULL) == 0);
    return NULL;
}

static void *read_letters(void *arg)
{
    static char bytes[2][ROOM];
    char letter = (char)*(int *)arg, *p = bytes[letter - 'a'];
    int fd = ((int *)arg)[1];
    for (size_t got = 0, n; got < ROOM; got += n) {
        aco_yield();
        n = (size_t)aco__system.recv(fd, p, 1000, MSG_DONTWAIT);
        if (n == (size_t)-1)
            n = 0;
        for (size_t i = 0; i < n; i++)
            CHECK_EQ(p[i], letter);
    }
    return NULL;
}

/* Each call of sendfile() that waits has its own bytes. */
static void send_two_files(aco_sim_t *sim, void *arg)
{
    static char bytes[ROOM];
    aco_t *tasks[4];
    sending_t sendings[2];
    int ends[2][2], readers[2][2];
    (void)sim, (void)arg;
    for (int i = 0; i < 2; i++) {
        memset(bytes, 'a' + i, sizeof bytes);
        sendings[i].file = aco__system.open(i ? "/b" : "/a", O_RDWR | O_CREAT, 0600);
        CHECK_EQ(aco__system.write(sendings[i].file, bytes, ROOM), ROOM);
        CHECK(aco__system.socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0);
        sendings[i].socket = ends[i][0];
        readers[i][0] = 'a' + i;
        readers[i][1] = ends[i][1];
        tasks[i] = aco_spawn(offload_sending, &sendings[i], NULL);
        tasks[2 + i] = aco_spawn(read_letters, readers[i], NULL);
    }
    for (int i = 0; i < 4; i++)
        CHECK(aco_join(tasks[i], NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(aco__system.close(ends[i][0]) == 0 && aco__system.close(ends[i][1]) == 0 &&
              aco__system.close(sendings[i].file) == 0);
}

static void *read_until_closed(void *arg)
{
    char byte;
    CHECK(aco__system.read(descriptor(arg), &byte, 1) == -1 && errno == EBADF);
    return NULL;
}

static void *offload_reading(void *arg)
{
    CHECK(aco_offload(read_until_closed, arg, NULL, NULL) == 0);
    return NULL;
}

static void close_what_is_read(aco_sim_t *sim, void *arg)
{
    int fds[2];
    aco_t *reader;
    (void)sim, (void)arg;
    CHECK(aco__system.socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    reader = aco_spawn(offload_reading, (void *)(intptr_t)fds[0], NULL);
    (void)aco_sleep(ACO_SECOND);
    CHECK(aco__system.close(fds[0]) == 0 && aco__system.close(fds[1]) == 0);
    CHECK(aco_join(reader, NULL) == 0);
}

/* Until a time of the node's own clock. */
static void *sleep_by_clock(void *arg)
{
    int64_t began = aco_now();
    struct timespec until;
    CHECK(aco__system.clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += 2;
    CHECK_EQ(aco__system.clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL), 0);
    CHECK_EQ(aco_now() - began, 2 * ACO_SECOND);
    return arg;
}

static void make_other_calls(aco_sim_t *sim, void *arg)
{
    int fd = aco__system.open("/a", O_RDWR | O_CREAT, 0600);
    struct iovec part = {&fd, sizeof fd};
    (void)arg;
    CHECK(aco__system.preadv2(fd, &part, -1, 0, 0) == -1 && errno == EINVAL);
    CHECK(aco__system.close(fd) == 0);
    CHECK(aco_sim_clock(aco_sim_node(sim, "a", "10.0.0.1", sleep_by_clock, NULL), 3600 * ACO_SECOND, 0) == 0);
    CHECK(aco_sleep(3 * ACO_SECOND) == 0);
}

/* ---- Many datagrams ---- */

/* A queue has room for some hundred small ones; what is on its way costs no search. */
static void flood(aco_sim_t *sim, void *arg)
{
    int to = aco_io_bind("udp", "127.0.0.1", "53", NULL), from = aco_io_dial("udp", "127.0.0.1", "53", NULL), got = 0;
    char byte = 0;
    (void)sim, (void)arg;
    for (int i = 0; i < 50000; i++)
        CHECK_EQ(aco_io_send(from, &byte, 1, 0), 1);
    (void)aco_sleep(ACO_SECOND);
    while (aco_io_recv(to, &byte, 1, MSG_DONTWAIT) == 1)
        got++;
    CHECK(got > 100 && got < 1000);
    CHECK(aco_io_close(to) == 0 && aco_io_close(from) == 0);
}

int main(void)
{
    sim_alarm(60);
    passes(send_together, NULL, RUNS);
    hash_knows_no_numbers();
    passes(use_libc, NULL, 3);
    libc_closes();
    passes(accept_without_number, NULL, 3);
    passes(make_without_number, NULL, 3);
    passes(send_two_files, NULL, 10);
    passes(close_what_is_read, NULL, 10);
    passes(make_other_calls, NULL, 1);
    passes(flood, NULL, 1);
    passes(send_too_much, NULL, 1);
    return check_result("sim_edges");
}
