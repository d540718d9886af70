/* docs/cookbook.md: its blocks do what it says. pages.py writes them to files with the names of their sections. */
#include "check.h"
#include <aco/generator.h>
#include <aco/group.h>
#include <aco/io.h>
#include <aco/offload.h>
#include <aco/process.h>
#include <aco/mt.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside-another-event-loop.h"

/* Nothing takes as long as this ... */
#undef ACO_SECOND
#define ACO_SECOND INT64_C(100000000000)
#include "clean-up-that-must-wait.h"

/* ... and nobody wants to wait as long as the page has it. */
#undef ACO_SECOND
#undef ACO_MILLISECOND
#define ACO_SECOND INT64_C(20000000)
#define ACO_MILLISECOND INT64_C(20000)
#include "a-deadline-around-a-call.h"

#include "a-limit-for-each-request-and-one-for-all.h"

#include "at-regular-intervals.h"

typedef struct pair {
    int from, to;
} pair_t;

static void *copy(void *arg)
{
    pair_t *pair = arg;
    char byte;
    ssize_t n;
    while ((n = aco_io_read(pair->from, &byte, 1)) > 0)
        if (aco_io_write_all(pair->to, &byte, 1) < 0)
            return ACO_ERROR;
    return n == 0 ? NULL : ACO_ERROR;
}
#include "end-all-when-one-fails.h"

#include "take-the-first-answer.h"

#include "bounded-fan-out.h"

static long sum;
#include "producer-and-consumer-on-two-threads.h"

static void *serve_one(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char byte;
    while (aco_io_read(fd, &byte, 1) == 1)
        aco_io_write_all(fd, &byte, 1);
    aco_io_close(fd);
    return NULL;
}
#include "ctrl-c-ends-a-server-gracefully.h"

typedef struct job {
    const char *sql;
    int rows;
} job_t;

static pthread_t called_by;
static int database_query(const char *sql)
{
    called_by = pthread_self();
    return (int)strlen(sql);
}
#include "call-a-library-that-blocks.h"

typedef struct node {
    int key;
    struct node *left, *right;
} node_t;
#include "a-generator-over-a-tree.h"

#include "leave-a-generator-early.h"

#include "data-of-each-task.h"

#include "what-is-it-waiting-for.h"

#include "find-a-forgotten-coroutine.h"

static void pipe_of_two(int fds[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && aco_io_adopt(fds[0]) == 0 && aco_io_adopt(fds[1]) == 0);
}

/* ---- Time ---- */

static void *deadlines(void *unused)
{
    int silent[2], ready[2][2];
    char answers[3 * 8];
    int fds[3];
    pipe_of_two(silent);
    for (int i = 0; i < 2; i++) {
        pipe_of_two(ready[i]);
        CHECK(aco_io_write_all(ready[i][1], "12", 2) == 2);
    }
    CHECK(ask(ready[0][0], answers, 1) == 0 && answers[0] == '1');
    errno = 0;
    CHECK(ask(silent[0], answers, 8) == -1 && errno == ETIMEDOUT);
    fds[0] = ready[0][0], fds[1] = ready[1][0], fds[2] = silent[0];
    CHECK(ask_all(fds, 3, answers, 8) == 2);
    for (int i = 0; i < 2; i++)
        aco_io_close(silent[i]), aco_io_close(ready[0][i]), aco_io_close(ready[1][i]);
    return unused;
}

static aco_scope_t *around_work;
static int worked;
static void work_thrice(void)
{
    if (++worked == 3)
        aco_scope_cancel(around_work);
}

static void *intervals(void *unused)
{
    aco_scope_t scope;
    around_work = &scope;
    aco_scope_begin(&scope, ACO_FOREVER);
    every_second(work_thrice);
    aco_scope_end(&scope);
    CHECK(worked == 3);
    return unused;
}

/* ---- Several at once ---- */

static void *both_ways(void *unused)
{
    int one[2], other[2];
    pair_t there, back;
    pipe_of_two(one);
    pipe_of_two(other);
    there = (pair_t){one[0], other[0]};
    back = (pair_t){other[0], one[0]};
    aco_io_write_all(one[1], "x", 1);
    aco_io_close(other[1]); /* writing there fails; nothing else would end the copy back ... */
    back.from = one[1];     /* ... which reads what never comes */
    CHECK(copy_both_ways(&there, &back) == -1 && errno == EPIPE);
    aco_io_close(one[0]), aco_io_close(one[1]), aco_io_close(other[0]);
    return unused;
}

static void *answer(void *server)
{
    if (*(char *)server == 'n')
        return ACO_ERROR;
    return *(char *)server == 'y' || aco_sleep(INT64_C(100000000000)) == 0 ? server : ACO_ERROR;
}

static int running, most, fail_at;
static void *count_running(void *arg)
{
    if (++running > most)
        most = running;
    for (int i = 0; i < 3; i++)
        aco_task_yield();
    running--;
    errno = EIO;
    return (intptr_t)arg == fail_at ? ACO_ERROR : NULL;
}

static void *races(void *unused)
{
    void *servers[] = {"no", "slow", "yes"}, *things[20];
    for (int i = 0; i < 20; i++)
        things[i] = (void *)(intptr_t)(i + 1);
    CHECK(first_answer(answer, servers, 3) == servers[2] && first_answer(answer, servers, 1) == NULL);
    CHECK(for_each(things, 20, count_running) == 0 && most == 8 && running == 0);
    fail_at = 5;
    CHECK(for_each(things, 20, count_running) == -1 && errno == EIO);
    return unused;
}

/* ---- Servers ---- */

static void *serve_task(void *listener)
{
    serve_until_signal((int)(intptr_t)listener);
    return listener;
}

static void *interrupted(void *unused)
{
    char byte = 'x', address[ACO_IO_ADDRESS_SIZE];
    int fd, listener = aco_io_listen("unix", "@acorn-cookbook", NULL, NULL);
    aco_t *server;
    if (listener < 0) { /* another run of this test has the name */
        listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
        CHECK(aco_io_local_address(listener, address, sizeof address) == 0);
        fd = -1;
    } else
        fd = 0;
    server = aco_spawn(serve_task, (void *)(intptr_t)listener, NULL);
    fd = fd == 0 ? aco_io_dial("unix", "@acorn-cookbook", NULL, NULL)
                 : aco_io_dial("tcp", "127.0.0.1", strrchr(address, ':') + 1, NULL);
    CHECK(fd >= 0 && aco_io_write_all(fd, "a", 1) == 1 && aco_io_read(fd, &byte, 1) == 1 && byte == 'a');
    kill(getpid(), SIGINT);
    CHECK(aco_io_write_all(fd, "b", 1) == 1 && aco_io_read(fd, &byte, 1) == 1 && byte == 'b'); /* it is served */
    aco_io_close(fd);
    CHECK(aco_join(server, NULL) == 0);
    aco_io_close(listener);
    return unused;
}

static void *drain(void *fd)
{
    char bytes[4096], last[5] = "";
    ssize_t n;
    while (strcmp(last, "bye\n") != 0 && (n = aco_io_read((int)(intptr_t)fd, bytes, sizeof bytes)) > 0)
        if (n >= 4)
            memcpy(last, bytes + n - 4, 4);
    return strcmp(last, "bye\n") == 0 ? NULL : ACO_ERROR;
}

static void *goodbye(void *unused)
{
    int fds[2];
    void *drained;
    aco_scope_t scope;
    aco_t *reader;
    pipe_of_two(fds);
    aco_scope_begin(&scope, ACO_FOREVER);
    aco_scope_cancel(&scope);
    while (aco_io_write(fds[0], "....", 4) > 0) {} /* until it would have to wait */
    CHECK(errno == ECANCELED);
    reader = aco_spawn(drain, (void *)(intptr_t)fds[1], NULL);
    say_goodbye(fds[0]);
    aco_scope_end(&scope);
    CHECK(aco_join(reader, &drained) == 0 && drained == NULL);
    aco_io_close(fds[0]), aco_io_close(fds[1]);
    return unused;
}

static void *blocking(void *unused)
{
    CHECK(count_rows("select") == 6 && !pthread_equal(called_by, pthread_self()));
    return unused;
}

static int looped;
static void *in_loop(void *unused)
{
    int fds[2];
    char byte;
    pipe_of_two(fds);
    aco_sleep(INT64_C(2000000));
    CHECK(aco_io_write_all(fds[0], "x", 1) == 1 && aco_io_read(fds[1], &byte, 1) == 1);
    aco_io_close(fds[0]), aco_io_close(fds[1]);
    looped = 1;
    return unused;
}

/* ---- Programs ---- */

static void *two_numbers(void *number)
{
    begin_request((int)(intptr_t)number);
    aco_task_yield();
    CHECK(*request_number() == (int)(intptr_t)number);
    log_line("done");
    return NULL;
}

static void *asked(void *unused)
{
    int out[2], stderr_was = dup(2);
    char text[8192];
    ssize_t n, length = 0;
    CHECK(pipe(out) == 0 && dup2(out[1], 2) == 2 && aco_io_adopt(out[0]) == 0);
    listen_for_questions(NULL);
    raise(SIGUSR1);
    do {
        n = aco_io_read(out[0], text + length, sizeof text - 1 - (size_t)length);
        length += n > 0 ? n : 0;
        text[length] = 0;
    } while (n > 0 && !strstr(text, "\n"));
    dup2(stderr_was, 2);
    CHECK(strstr(text, "waits at") && strstr(text, "cookbook.c:"));
    aco_tasks_dump_on(0, 2);
    aco_watchdog(0);
    close(stderr_was), close(out[1]), aco_io_close(out[0]);
    return unused;
}

static void *all(void *unused)
{
    aco_function_t const tests[] = {deadlines, intervals, both_ways, races,
                                    interrupted, goodbye, blocking, asked};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        aco_t *task = aco_spawn(tests[i], NULL, NULL);
        CHECK(task && aco_join(task, NULL) == 0);
    }
    return unused;
}

static void trees(void)
{
    node_t one = {1, NULL, NULL}, three = {3, NULL, NULL}, two = {2, &one, &three}, five = {5, &two, NULL};
    CHECK(sum_below(&five, 4) == 6 && sum_below(&five, 9) == 11 && sum_below(NULL, 1) == 0);
}

static void *nothing(void *unused)
{
    return aco_yield_value(unused);
}

static void coroutines(void)
{
    int before = alive();
    aco_t *co = aco_new(nothing, NULL, NULL);
    CHECK(alive() == before + 1);
    aco_send(co, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    CHECK(alive() == before);
}

static void between_threads(void)
{
    aco_options_t detached = {0};
    aco_mt_channel_t *channel = aco_mt_channel_new(4, sizeof(int));
    pthread_t thread;
    detached.flags = ACO_DETACHED;
    CHECK(pthread_create(&thread, NULL, produce, channel) == 0 && aco_spawn(consume, channel, &detached));
    CHECK(aco_run() == 0 && pthread_join(thread, NULL) == 0 && sum == 500500);
    aco_mt_channel_destroy(channel);
}

int main(void)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    trees();
    coroutines();
    CHECK(aco_spawn(two_numbers, (void *)1, &detached) && aco_spawn(two_numbers, (void *)2, &detached));
    CHECK(aco_run() == 0);
    between_threads();
    CHECK(aco_spawn(in_loop, NULL, &detached));
    my_loop();
    CHECK(looped);
    CHECK(aco_spawn(all, NULL, &detached) && aco_run() == 0);
    return check_result("cookbook");
}
