/* For the tests of aco/io.h: tasks, descriptors, and ends of connections. */
#ifndef IO_TESTS_H
#define IO_TESTS_H

#include <aco/file.h>
#include <aco/group.h>
#include <aco/io.h>
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef IN_SIMULATION /* the same test in some runs, in which libc's calls of all tasks are hooked (tests/sim.cmake) */
#include <aco/hook.h>
#include <aco/sim.h>
#include "sim_runs.h"

typedef struct simulated_task {
    aco_function_t fn;
    void *arg;
} simulated_task_t;

static inline void simulate_task(aco_sim_t *sim, void *of)
{
    const simulated_task_t *t = of;
    aco_t *task;
    (void)sim;
    CHECK_EQ(aco_hook_begin_all(), 0);
#ifdef __LP64__ /* else calls with paths are not hooked */
    CHECK_EQ(mkdir("/tmp", 0777), 0);
#endif
    task = aco_spawn(t->fn, t->arg, NULL);
    CHECK(task != NULL);
    CHECK_EQ(aco_join(task, NULL), 0);
}

static inline void run_task(aco_function_t fn, void *arg)
{
    simulated_task_t task = {fn, arg};
    aco_sim_options_t how = {0};
    aco_sim_stats_t result;
    how.events = 20;
    if (aco_sim_run(simulate_task, &task, sim_runs(IN_SIMULATION), &result, &how) != 0)
        CHECK(!"aco_sim_run");
}
#else
static inline void run_task(aco_function_t fn, void *arg)
{
    aco_t *task = aco_spawn(fn, arg, NULL);
    CHECK(task != NULL);
    if (aco_run() != 0) {
        fprintf(stderr, "aco_run: %s\n", aco_error_message());
        CHECK(!"aco_run");
    }
    CHECK_EQ(aco_join(task, NULL), 0);
}
#endif

/* Inside a task: a member of `group`. */
static inline void member(aco_group_t *group, aco_function_t fn, void *arg)
{
    CHECK(aco_group_spawn(group, fn, arg, NULL) != NULL);
}

static inline int count_descriptors(void)
{
    DIR *dir;
    int n = 0;
#ifdef IN_SIMULATION /* a run that leaves some fails */
    if (aco_sim_current())
        return 0;
#endif
    dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static inline void make_pair(int pair[2], int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
}

static inline void make_pipe(int ends[2])
{
    CHECK_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
}

static inline void close_both(const int pair[2])
{
    CHECK_EQ(aco_io_close(pair[0]), 0);
    CHECK_EQ(aco_io_close(pair[1]), 0);
}

/* Two ends of a TCP connection, both owned. */
static inline void make_tcp(int pair[2])
{
    char address[ACO_IO_ADDRESS_SIZE], *port;
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK(listener >= 0);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    port = strchr(address, ':') + 1;
    pair[0] = aco_io_dial("tcp", "127.0.0.1", port, NULL);
    pair[1] = aco_io_accept(listener);
    CHECK(pair[0] >= 0 && pair[1] >= 0);
    CHECK_EQ(aco_io_close(listener), 0);
}

/* What was sent by TCP arrives: on loopback at once. */
static inline void let_arrive(void)
{
    if (IS_SIMULATED)
        CHECK_EQ(aco_sleep(ACO_SECOND), 0);
}

/* ---- Tasks ---- */

static inline void *writes_later(void *fd)
{
    CHECK_EQ(aco_sleep(2 * ACO_MILLISECOND), 0);
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
    return NULL;
}

typedef struct wait_ends {
    int fd, error;
    ssize_t result;
    char byte;
} wait_ends_t;

static inline void *reads_one(void *arg)
{
    wait_ends_t *w = arg;
    w->result = aco_io_read(w->fd, &w->byte, 1);
    w->error = errno;
    return NULL;
}

/* A task counts its turns: how often the others let it run. */
typedef struct turns {
    long n; /* atomic, for other threads */
    int is_over;
    aco_t *task;
} turns_t;

static inline void *counts_own_turns(void *arg)
{
    turns_t *turns = arg;
    while (!turns->is_over) {
        __atomic_fetch_add(&turns->n, 1, __ATOMIC_SEQ_CST);
        aco_task_yield();
    }
    return NULL;
}

static inline void start_counting(turns_t *turns)
{
    turns->is_over = 0;
    turns->task = aco_spawn(counts_own_turns, turns, NULL);
    CHECK(turns->task != NULL);
    aco_task_yield();
    __atomic_store_n(&turns->n, 0, __ATOMIC_SEQ_CST);
}

static inline void stop_counting(turns_t *turns)
{
    turns->is_over = 1;
    CHECK_EQ(aco_join(turns->task, NULL), 0);
}

/* ---- Messages with a descriptor ---- */

typedef union rights {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} rights_t;

static inline struct msghdr message_with(struct iovec *part, rights_t *rights)
{
    struct msghdr message = {0};
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = rights;
    message.msg_controllen = sizeof *rights;
    return message;
}

static inline void set_descriptor(rights_t *rights, int fd)
{
    memset(rights, 0, sizeof *rights);
    rights->header.cmsg_level = SOL_SOCKET;
    rights->header.cmsg_type = SCM_RIGHTS;
    rights->header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&rights->header), &fd, sizeof fd);
}

/* ---- Memory ---- */

#ifdef COUNTS_MEMORY /* tests/CMakeLists.txt: the linker has the library call these */
static int blocks;               /* that the library has now */
static const char *lacks_memory; /* the call that gets none; NULL: all get some */
void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);
void __real_aco__service_free(void *p, size_t sz);
void __wrap_aco__service_free(void *p, size_t sz);

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    void *p = NULL;
    if (lacks_memory && strcmp(call, lacks_memory) == 0)
        errno = ENOMEM;
    else if ((p = __real_aco__service_allocate(sz, call)) != NULL)
        __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
    return p;
}

void __wrap_aco__service_free(void *p, size_t sz)
{
    if (p) {
        __atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
        memset(p, 0xdd, sz); /* who still uses it, sees that */
    }
    __real_aco__service_free(p, sz);
}

static inline int count_blocks(void)
{
    return __atomic_load_n(&blocks, __ATOMIC_RELAXED);
}
#else
static inline int count_blocks(void)
{
    return 0;
}
#endif

/* ---- All tests of a program ---- */

/* Makes what a thread keeps for I/O and files: descriptors and memory. */
static inline void *warms_up(void *unused)
{
    aco_file_status_t status;
    int pair[2];
    char byte;
    make_tcp(pair);
    CHECK_EQ(aco_io_write(pair[1], "x", 1), 1);
    CHECK_EQ(aco_io_read(pair[0], &byte, 1), 1);
    close_both(pair);
    CHECK_EQ(aco_file_stat("/", &status), 0);
    return unused;
}

/* Runs these tests as tasks. Each must leave as many descriptors and blocks of memory as there were. */
static inline void run_tests(const aco_function_t *tests, size_t n, int before)
{
    for (size_t i = 0; i < n; i++) {
        int blocks_before = count_blocks();
        run_task(tests[i], NULL);
        if (count_descriptors() != before)
            fprintf(stderr, "test %zu leaves descriptors\n", i);
        CHECK_EQ(count_descriptors(), before);
        if (count_blocks() != blocks_before)
            fprintf(stderr, "test %zu leaves memory\n", i);
        CHECK_EQ(count_blocks(), blocks_before);
    }
}

#endif
