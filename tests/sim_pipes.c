/* Promises: pipes, with and without names, and splice() between them and sockets, in a simulation: a tunnel as acorn_io
 * makes it. */
#define _GNU_SOURCE
#include "system/system.h"
#include "sim_ends.h"

#include "aco/file.h"
#include "aco/offload.h"
#include "aco/scope.h"
#include "aco/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 100, BYTES = 100000, CAPACITY = 65536 };
static char bytes[BYTES];

/* ---- A tunnel ---- */

static void *echo(void *listener)
{
    static char part[5000];
    int fd = aco_io_accept((int)(intptr_t)listener);
    ssize_t n;
    while ((n = aco_io_read(fd, part, sizeof part)) > 0)
        CHECK_EQ(aco_io_write_all(fd, part, (size_t)n), n);
    CHECK(n == 0 && aco_io_close(fd) == 0);
    return NULL;
}

static void *tunnel(void *listener)
{
    int near = aco_io_accept((int)(intptr_t)listener), far = aco_io_dial("tcp", "10.0.0.2", "80", NULL);
    uint64_t copied[2];
    aco_stream_t *ends[2] = {aco_stream_open(near), aco_stream_open(far)};
    CHECK(ends[0] && ends[1]);
    CHECK_EQ(aco_stream_copy_both_ways(ends[0], ends[1], copied), 0);
    CHECK(copied[0] == BYTES && copied[1] == BYTES);
    aco_stream_close(ends[0]);
    aco_stream_close(ends[1]);
    return NULL;
}

static void *sends(void *fd)
{
    CHECK_EQ(aco_io_write_all((int)(intptr_t)fd, bytes, BYTES), BYTES);
    CHECK(aco_io_shutdown((int)(intptr_t)fd, SHUT_WR) == 0);
    return NULL;
}

static void pass_through(aco_sim_t *sim, void *arg)
{
    int listeners[2] = {aco_io_listen("tcp", "10.0.0.1", "80", NULL), aco_io_listen("tcp", "10.0.0.2", "80", NULL)};
    aco_t *tasks[3] = {aco_spawn(tunnel, (void *)(intptr_t)listeners[0], NULL),
                       aco_spawn(echo, (void *)(intptr_t)listeners[1], NULL), NULL};
    static char got[BYTES + 1];
    int fd;
    CHECK(aco_sim_link(sim, "*", "*", arg) == 0);
    fd = aco_io_dial("tcp", "10.0.0.1", "80", NULL);
    tasks[2] = aco_spawn(sends, (void *)(intptr_t)fd, NULL);
    CHECK_EQ(aco_io_read_exactly(fd, got, sizeof got), BYTES);
    CHECK(memcmp(got, bytes, BYTES) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(aco_join(tasks[i], NULL) == 0);
    CHECK(aco_io_close(fd) == 0 && aco_io_close(listeners[0]) == 0 && aco_io_close(listeners[1]) == 0);
}

/* ---- A pipe ---- */

static void use_pipe(aco_sim_t *sim, void *arg)
{
    const aco__system_t *s = &aco__system;
    static char got[BYTES];
    char byte;
    int p[2], q[2];
    (void)sim, (void)arg;
    CHECK(s->pipe2(p, O_NONBLOCK | O_CLOEXEC) == 0 && s->pipe2(q, O_NONBLOCK) == 0);
    FAILS_WITH((int)s->pipe2(q, 1 << 30), EINVAL);
    FAILS_WITH((int)s->read(p[0], &byte, 1), EAGAIN);
    FAILS_WITH((int)s->read(p[1], &byte, 1), EBADF);
    FAILS_WITH((int)s->write(p[0], &byte, 1), EBADF);
    CHECK_EQ(s->write(p[1], bytes, BYTES), CAPACITY);
    FAILS_WITH((int)s->write(p[1], bytes, 1), EAGAIN);
    CHECK_EQ(s->read(p[0], got, 100), 100);
    FAILS_WITH((int)s->write(p[1], bytes, PIPE_BUF), EAGAIN); /* at once or not at all */
    CHECK_EQ(s->write(p[1], bytes, PIPE_BUF + 1), 100);
    CHECK_EQ(s->splice(p[0], NULL, q[1], NULL, 1000, 0), 1000);
    CHECK_EQ(s->splice(p[0], NULL, q[1], NULL, 0, 0), 0);
    FAILS_WITH((int)s->splice(p[1], NULL, q[1], NULL, 1, 0), EBADF);
    FAILS_WITH((int)s->splice(p[0], &(int64_t){0}, q[1], NULL, 1, 0), ESPIPE);
    FAILS_WITH((int)s->splice(p[0], NULL, -1, NULL, 1, 0), EBADF);
    CHECK(s->close(p[1]) == 0);
    CHECK_EQ(s->read(p[0], got, BYTES), CAPACITY - 1000);
    CHECK_EQ(s->read(p[0], got, 1), 0);
    CHECK_EQ(s->splice(p[0], NULL, q[1], NULL, 1000, 0), 0);
    CHECK(s->close(p[0]) == 0 && s->close(q[0]) == 0);
    FAILS_WITH((int)s->write(q[1], bytes, 1), EPIPE);
    CHECK(s->close(q[1]) == 0);
}

static void *writes_later(void *fd)
{
    CHECK(aco_sleep(ACO_SECOND) == 0);
    CHECK_EQ(aco_io_write_all((int)(intptr_t)fd, bytes, BYTES), BYTES);
    CHECK(aco_io_close((int)(intptr_t)fd) == 0);
    return NULL;
}

/* Readers and writers of a pipe wait for each other. */
static void wait_at_pipe(aco_sim_t *sim, void *arg)
{
    static char got[BYTES + 1];
    int p[2];
    aco_t *writer;
    (void)sim, (void)arg;
    CHECK(aco__system.pipe2(p, 0) == 0 && aco_io_adopt(p[0]) == 0 && aco_io_adopt(p[1]) == 0);
    writer = aco_spawn(writes_later, (void *)(intptr_t)p[1], NULL);
    CHECK_EQ(aco_io_read_exactly(p[0], got, sizeof got), BYTES);
    CHECK(memcmp(got, bytes, BYTES) == 0);
    CHECK(aco_join(writer, NULL) == 0 && aco_io_close(p[0]) == 0);
}

/* ---- A named pipe ---- */

static void *opens_to_write(void *unused)
{
    int fd = aco__system.open("pipe", O_WRONLY, 0);
    CHECK(fd >= 0 && aco__system.write(fd, bytes, 100) == 100 && aco__system.close(fd) == 0);
    return unused;
}

static void *opens_to_read(void *unused)
{
    static char got[BYTES];
    int fd = aco__system.open("pipe", O_RDONLY, 0);
    CHECK(fd >= 0 && aco__system.read(fd, got, BYTES) == 100 && memcmp(got, bytes, 100) == 0);
    CHECK(aco__system.read(fd, got, 1) == 0 && aco__system.close(fd) == 0);
    return unused;
}

static void *offloads_read(void *unused)
{
    CHECK(aco_offload(opens_to_read, NULL, NULL, NULL) == 0);
    return unused;
}

/* Each open() waits for the other one, whoever is first. */
static void meet(aco_sim_t *sim, void *arg)
{
    aco_t *reader;
    (void)sim, (void)arg;
    CHECK(aco__system.mkfifo("pipe", 0600) == 0);
    reader = aco_spawn(offloads_read, NULL, NULL);
    CHECK(aco_offload(opens_to_write, NULL, NULL, NULL) == 0);
    CHECK(aco_join(reader, NULL) == 0);
}

static void *opens_as_task(void *turns)
{
    int fd = aco_file_open("pipe", O_RDONLY, 0);
    char got[4] = "";
    CHECK(fd >= 0 && *(int *)turns > 0); /* the task counts meanwhile */
    CHECK(aco_file_read(fd, got, 4) == 4 && memcmp(got, "four", 4) == 0 && aco_file_read(fd, got, 1) == 0);
    CHECK(aco_io_close(fd) == 0);
    return NULL;
}

/* While a task waits in aco_file_open(), or in aco_file_read() of a pipe, the others of its thread go on. */
static void meet_as_tasks(aco_sim_t *sim, void *arg)
{
    int turns = 0, fd;
    aco_t *reader = aco_spawn(opens_as_task, &turns, NULL);
    (void)sim, (void)arg;
    CHECK(aco__system.mkfifo("pipe", 0600) == 0);
    for (; turns < 20; turns++)
        aco_sleep(10 * ACO_MILLISECOND);
    fd = aco_file_open("pipe", O_WRONLY, 0);
    CHECK(fd >= 0 && aco_sleep(ACO_SECOND) == 0 && aco_file_write(fd, "four", 4) == 4);
    CHECK(aco_sleep(ACO_SECOND) == 0 && aco_io_close(fd) == 0 && aco_join(reader, NULL) == 0);
}

/* Its scope ends: the call lasts on, as on a thread of the pool, and opens what nobody gets, or nothing. */
static void give_up(aco_sim_t *sim, void *arg)
{
    aco_scope_t scope;
    CHECK(aco__system.mkfifo("pipe", 0600) == 0);
    CHECK(aco_scope_begin(&scope, aco_after(100 * ACO_MILLISECOND)) == 0);
    FAILS_WITH(aco_file_open("pipe", O_RDONLY, 0), ETIMEDOUT);
    (void)aco_scope_end(&scope);
    if (arg && aco_sim_random(sim, 2)) {
        int fd = aco_file_open("pipe", O_WRONLY, 0);
        CHECK(fd >= 0 && aco_sleep(ACO_SECOND) == 0);
        FAILS_WITH((int)aco_file_write(fd, "four", 4), EPIPE);
        CHECK(aco_io_close(fd) == 0);
    }
}

static void *opens_in_set(void *task)
{
    CHECK(aco_file_open("pipe", O_RDONLY, 0) >= 0);
    return task;
}

static void *runs_opening_task(void *lives)
{
    ++*(int *)lives;
    (void)aco__system.mkfifo("pipe", 0600); /* the disk may have it, or have lost it */
    CHECK(aco_spawn(opens_in_set, lives, NULL) != NULL && aco_run() == 0);
    CHECK(!"nobody has opened it");
    return NULL;
}

static void crash_in_pool(aco_sim_t *sim, void *arg)
{
    int n = 0;
    aco_sim_node_t *node = aco_sim_node_main(sim, "node", "10.0.0.1", runs_opening_task, &n);
    (void)arg;
    for (int i = 1; i <= 3; i++)
        CHECK(aco_sleep(100 * ACO_MILLISECOND) == 0 && n == i && aco_sim_restart(node) == 0);
}

/* It goes on without its name, whose next pipe is another one. */
static void lose_name(aco_sim_t *sim, void *arg)
{
    const aco__system_t *s = &aco__system;
    char got[4];
    int old[2], new;
    (void)sim, (void)arg;
    CHECK(s->mkfifo("pipe", 0600) == 0);
    FAILS_WITH((int)s->open("pipe", O_WRONLY | O_NONBLOCK), ENXIO);
    old[0] = s->open("pipe", O_RDWR);
    old[1] = s->open("pipe", O_WRONLY);
    CHECK(s->unlink("pipe") == 0 && s->mkfifo("pipe", 0600) == 0);
    new = s->open("pipe", O_RDONLY | O_NONBLOCK);
    CHECK(s->write(old[1], "old", 4) == 4 && s->read(new, got, 4) == 0);
    FAILS_WITH((int)s->splice(old[0], NULL, old[1], NULL, 4, SPLICE_F_NONBLOCK), EINVAL);
    CHECK(s->read(old[0], got, 4) == 4 && memcmp(got, "old", 4) == 0);
    CHECK(s->write(old[1], "old", 4) == 4 && s->close(old[0]) == 0);
    FAILS_WITH((int)s->write(old[1], got, 4), EPIPE);
    FAILS_WITH((int)s->splice(new, NULL, old[1], NULL, 4, SPLICE_F_NONBLOCK), EPIPE);
    CHECK(s->close(old[1]) == 0 && s->close(new) == 0);
    new = s->open("pipe", O_RDWR | O_NONBLOCK); /* what was written is gone with the last end */
    FAILS_WITH((int)s->read(new, got, 4), EAGAIN);
    CHECK(s->close(new) == 0);
}

/* Who watches edges hears of the first writer, and not of further ends. */
static void tell_edges(aco_sim_t *sim, void *arg)
{
    const aco__system_t *s = &aco__system;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int ends[4], epoll = s->epoll_create1(0);
    (void)sim, (void)arg;
    CHECK(s->mkfifo("pipe", 0600) == 0);
    ends[0] = s->open("pipe", O_RDONLY | O_NONBLOCK);
    ends[1] = s->open("pipe", O_WRONLY);
    CHECK(s->epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0 && s->write(ends[1], "", 1) == 1);
    CHECK_EQ(s->epoll_wait(epoll, &event, 1, 0), 1);
    ends[2] = s->open("pipe", O_WRONLY);
    ends[3] = s->open("pipe", O_RDONLY);
    CHECK_EQ(s->epoll_wait(epoll, &event, 1, 0), 0);
    CHECK(s->close(ends[1]) == 0 && s->close(ends[2]) == 0);
    CHECK_EQ(s->epoll_wait(epoll, &event, 1, 0), 1);
    ends[1] = s->open("pipe", O_WRONLY);
    CHECK_EQ(s->epoll_wait(epoll, &event, 1, 0), 1);
    CHECK(s->close(ends[0]) == 0 && s->close(ends[1]) == 0 && s->close(ends[3]) == 0 && s->close(epoll) == 0);
}

static int lives;

/* Its second life finds the pipe, and nobody at it. */
static void *waits_for_ever(void *unused)
{
    if (lives++ == 0) {
        CHECK(aco__system.mkfifo("pipe", 0600) == 0);
        (void)aco__system.open("pipe", O_RDONLY);
        CHECK(!"nobody has opened it");
    }
    FAILS_WITH((int)aco__system.open("pipe", O_WRONLY | O_NONBLOCK), ENXIO);
    return unused;
}

static void crash_at_open(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node;
    lives = 0;
    node = aco_sim_node_main(sim, "node", "10.0.0.1", waits_for_ever, arg);
    CHECK(node && aco_sleep(ACO_SECOND) == 0 && aco_sim_crash(node, ACO_SIM_CRASH_RESET) == 0);
    CHECK(aco_sleep(ACO_SECOND) == 0 && aco_sim_restart(node) == 0 && aco_sleep(ACO_SECOND) == 0);
    CHECK_EQ(lives, 2);
}

/* ---- A crash while a task of the node is in a call with which its whole thread waits ---- */

static void wait_in_open(int listener)
{
    (void)listener;
    (void)aco__system.open("pipe", O_WRONLY);
}

static void wait_in_read(int listener)
{
    int p[2];
    char byte;
    (void)listener;
    CHECK(aco__system.pipe2(p, 0) == 0);
    (void)aco__system.read(p[0], &byte, 1);
}

static void wait_in_splice(int listener)
{
    int p[2], q[2];
    (void)listener;
    CHECK(aco__system.pipe2(p, 0) == 0 && aco__system.pipe2(q, 0) == 0);
    (void)aco__system.splice(p[0], NULL, q[1], NULL, 1, 0);
}

static void wait_in_sendfile(int listener)
{
    int p[2], file = aco__system.open("file", O_RDWR | O_CREAT, 0600);
    (void)listener;
    CHECK(aco__system.pipe2(p, 0) == 0 && aco__system.write(file, bytes, BYTES) == BYTES);
    for (int64_t from = 0;; from = 0)
        CHECK(aco__system.sendfile(p[1], file, &from, 1000) > 0);
}

static void wait_in_accept(int listener)
{
    CHECK(aco__system.fcntl(listener, F_SETFL, NULL) == 0);
    (void)aco__system.accept4(listener, NULL, NULL, 0);
}

static void wait_in_epoll(int listener)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = aco__system.epoll_create1(0);
    CHECK(aco__system.epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0);
    (void)aco__system.epoll_wait(epoll, &event, 1, -1);
}

static void wait_in_nanosleep(int listener)
{
    struct timespec hour = {3600, 0};
    (void)listener;
    (void)aco__system.nanosleep(&hour, NULL);
}

/* In a coroutine that the task resumes. */
static void *reads_inside(void *unused)
{
    wait_in_read(-1);
    return unused;
}

static void *reads_in_coroutine(void *unused)
{
    (void)aco_send(aco_new(reads_inside, NULL, NULL), NULL);
    return unused;
}

static void wait_in_inner(int listener)
{
    (void)listener;
    (void)reads_in_coroutine(NULL);
}

/* In one that such a coroutine resumes. */
static void wait_in_innermost(int listener)
{
    (void)listener;
    (void)aco_send(aco_new(reads_in_coroutine, NULL, NULL), NULL);
}

typedef struct waiter {
    void (*waits)(int listener);
    int lives, turns;
} waiter_t;

static void *counts_turns(void *waiter)
{
    for (;; aco_sleep(ACO_MILLISECOND))
        ((waiter_t *)waiter)->turns++;
    return NULL;
}

static void *waits_in_task(void *arg)
{
    int listener = aco_io_listen("tcp", "10.0.0.1", "80", NULL);
    CHECK(aco_spawn(counts_turns, arg, NULL) != NULL && aco_sleep(10 * ACO_MILLISECOND) == 0);
    if (((waiter_t *)arg)->lives == 1) {
        ((waiter_t *)arg)->waits(listener);
        CHECK(!"nothing ends the wait");
    }
    CHECK(aco_sleep(ACO_FOREVER) == 0);
    return arg;
}

static void *runs_waiting_task(void *arg)
{
    waiter_t *waiter = arg;
    if (waiter->lives++ == 0)
        CHECK(aco__system.mkfifo("pipe", 0600) == 0);
    waiter->turns = 0;
    CHECK(aco_spawn(waits_in_task, waiter, NULL) != NULL);
    CHECK(aco_run() == 0);
    CHECK(!"they go on for ever");
    return NULL;
}

static void crash_in_call(aco_sim_t *sim, void *arg)
{
    waiter_t waiter = {(void (*)(int))(uintptr_t)arg, 0, 0};
    aco_sim_node_t *node = aco_sim_node_main(sim, "node", "10.0.0.1", runs_waiting_task, &waiter);
    CHECK(node && aco_sleep(100 * ACO_MILLISECOND) == 0);
    CHECK(waiter.lives == 1 && waiter.turns > 1 && waiter.turns < 20);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_RESET) == 0 && aco_sleep(100 * ACO_MILLISECOND) == 0);
    CHECK(aco_sim_restart(node) == 0 && aco_sleep(100 * ACO_MILLISECOND) == 0);
    CHECK(waiter.lives == 2 && waiter.turns > 20);
}

static size_t allocated(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* What calls hold is given back: a buffer, a descriptor, the pool's record of a job. Some kilobytes come and go with
 * threads. */
static void crash_often(aco_sim_function_t scenario, void *arg, int times, ssize_t most)
{
    size_t before;
    passes(scenario, arg, 5);
    before = allocated();
    passes(scenario, arg, times);
    CHECK((ssize_t)(allocated() - before) < most);
}

static void crash_in_calls(void)
{
    void (*const calls[])(int) = {wait_in_open,  wait_in_read,      wait_in_splice, wait_in_sendfile, wait_in_accept,
                                  wait_in_epoll, wait_in_nanosleep, wait_in_inner,  wait_in_innermost};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        crash_often(crash_in_call, (void *)(uintptr_t)calls[i], 20, CAPACITY);
    crash_often(crash_in_pool, NULL, 100, 16000);
}

static void open_alone(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco__system.mkfifo("pipe", 0600) == 0);
    FAILS_WITH((int)aco__system.open("pipe", O_RDONLY), EDEADLK);
}

static void nobody_comes(void)
{
    aco_sim_stats_t stats;
    capture();
    CHECK(aco_sim_run(open_alone, NULL, 1, &stats, NULL) != 0);
    release();
    CHECK(strstr(stats.reason, "a deadlock: open() waits for ever") != NULL);
}

int main(void)
{
    aco_sim_link_t lossy = {.loss = 0.02};
    sim_alarm(60);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    passes(use_pipe, NULL, 2);
    passes(wait_at_pipe, NULL, RUNS);
    passes(meet, NULL, RUNS);
    passes(meet_as_tasks, NULL, RUNS);
    passes(give_up, NULL, RUNS);
    passes(give_up, "", RUNS);
    passes(lose_name, NULL, 2);
    passes(tell_edges, NULL, 2);
    passes(crash_at_open, NULL, 10);
    crash_in_calls();
    nobody_comes();
    passes(pass_through, NULL, RUNS);
    passes(pass_through, &lossy, RUNS);
    return check_result("sim_pipes");
}
