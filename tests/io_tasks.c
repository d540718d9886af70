/* Descriptors (include/aco/io.h) and tasks: fairness, share stacks, inner coroutines, the root context, other threads,
 * an event loop of the program's own. */
#define _GNU_SOURCE
#include "system/system.h"
#include "asleep.h"
#include "io_tests.h"
#include "sanitizers.h"
#include "stack_depth.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/un.h>

static aco_t *sleeper;

/* ---- Fairness ---- */

typedef struct fair {
    int fds[2], is_over;
    long turns;
} fair_t;

static void *never_waits(void *arg)
{
    fair_t *f = arg;
    char byte;
    for (long i = 0; i < 3200 && !f->is_over; i++) {
        CHECK_EQ(aco_io_write(f->fds[1], "b", 1), 1);
        CHECK_EQ(aco_io_read(f->fds[0], &byte, 1), 1);
    }
    f->is_over = 1;
    return NULL;
}

static void *reads_in_turn(void *arg)
{
    const fair_t *f = arg;
    char byte;
    while (!f->is_over) {
        CHECK_EQ(aco_io_read(f->fds[0], &byte, 1), 1);
        aco_yield();
    }
    return NULL;
}

static void *never_waits_inside(void *arg) /* calls in an inner coroutine, in turn with the task's */
{
    fair_t *f = arg;
    aco_t *co = aco_new(reads_in_turn, arg, NULL);
    for (long i = 0; i <= 3200; i++) {
        CHECK_EQ(aco_io_write(f->fds[1], "b", 1), 1);
        f->is_over = i == 3200;
        (void)aco_send(co, NULL);
    }
    CHECK(co->is_end);
    aco_destroy(co);
    return NULL;
}

static void *counts_turns(void *arg)
{
    fair_t *f = arg;
    for (; !f->is_over; f->turns++)
        aco_task_yield();
    return NULL;
}

static void *hogs_until_over(void *arg)
{
    fair_t *f = arg;
    char byte;
    while (!f->is_over) {
        CHECK_EQ(aco_io_write(f->fds[1], "b", 1), 1);
        CHECK_EQ(aco_io_read(f->fds[0], &byte, 1), 1);
    }
    return NULL;
}

static void *fairness(void *unused)
{
    fair_t f = {{0, 0}, 0, 0};
    int ends[2];
    char byte;
    aco_group_t group;
    make_pair(f.fds, SOCK_STREAM);
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, never_waits, &f);
    member(&group, counts_turns, &f);
    aco_group_end(&group);
    CHECK(f.turns >= 50); /* 6400 calls */
    f.turns = f.is_over = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, never_waits_inside, &f);
    member(&group, counts_turns, &f);
    aco_group_end(&group);
    CHECK(f.turns >= 50);
    /* Neither a timer nor another descriptor starves, beside I/O that never waits and a task that only yields. */
    aco_group_begin(&group, ACO_KEEP_GOING);
    f.is_over = 0;
    member(&group, hogs_until_over, &f);
    member(&group, counts_turns, &f);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    member(&group, writes_later, (void *)(intptr_t)ends[1]);
    CHECK_EQ(aco_io_read(ends[0], &byte, 1), 1);
    f.is_over = 1;
    aco_group_end(&group);
    close_both(f.fds);
    close_both(ends);
    return unused;
}

/* What the calls below use; they never have to wait. The other ends are used by system calls. */
typedef struct ready {
    int pair[2], pipe[2], listener, file;
    struct sockaddr_un address;
    socklen_t length;
    struct iovec part;
    struct msghdr message;
    char byte;
} ready_t;

static void send_one(const ready_t *r)
{
    CHECK_EQ(send(r->pair[1], "b", 1, 0), 1);
}

static void take_one(const ready_t *r)
{
    char byte;
    CHECK_EQ(recv(r->pair[1], &byte, 1, 0), 1);
}

static void reads(ready_t *r)
{
    send_one(r);
    CHECK_EQ(aco_io_read(r->pair[0], &r->byte, 1), 1);
}

static void reads_parts(ready_t *r)
{
    send_one(r);
    CHECK_EQ(aco_io_readv(r->pair[0], &r->part, 1), 1);
}

static void receives(ready_t *r, int flags)
{
    send_one(r);
    CHECK_EQ(aco_io_recv(r->pair[0], &r->byte, 1, flags), 1);
}

static void receives_message(ready_t *r, int flags)
{
    send_one(r);
    CHECK_EQ(aco_io_recvmsg(r->pair[0], &r->message, flags), 1);
}

static void receives_from(ready_t *r, int flags)
{
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    send_one(r);
    CHECK_EQ(aco_io_recvfrom(r->pair[0], &r->byte, 1, flags, (struct sockaddr *)&from, &length), 1);
}

static void writes(ready_t *r)
{
    CHECK_EQ(aco_io_write(r->pair[0], "b", 1), 1);
    take_one(r);
}

static void writes_parts(ready_t *r)
{
    CHECK_EQ(aco_io_writev(r->pair[0], &r->part, 1), 1);
    take_one(r);
}

static void sends(ready_t *r, int flags)
{
    CHECK_EQ(aco_io_send(r->pair[0], "b", 1, flags), 1);
    take_one(r);
}

static void sends_message(ready_t *r, int flags)
{
    CHECK_EQ(aco_io_sendmsg(r->pair[0], &r->message, flags), 1);
    take_one(r);
}

static void sends_to(ready_t *r, int flags)
{
    CHECK_EQ(aco_io_sendto(r->pair[0], "b", 1, flags, NULL, 0), 1);
    take_one(r);
}

static void splices(ready_t *r, int flags)
{
    CHECK_EQ(write(r->pipe[1], "b", 1), 1);
    CHECK_EQ(aco_io_splice(r->pipe[0], NULL, r->pair[0], NULL, 1, flags ? SPLICE_F_NONBLOCK : 0), 1);
    take_one(r);
}

static void sends_file(ready_t *r)
{
    int64_t offset = 0;
    CHECK_EQ(aco_io_sendfile(r->pair[0], r->file, &offset, 1), 1);
    take_one(r);
}

static void waits_to_read(ready_t *r)
{
    send_one(r);
    CHECK_EQ(aco_io_wait_readable(r->pair[0]), 0);
    CHECK_EQ(recv(r->pair[0], &r->byte, 1, 0), 1);
}

static void waits_to_write(ready_t *r)
{
    CHECK_EQ(aco_io_wait_writable(r->pair[0]), 0);
}

static void accepts(ready_t *r)
{
    int fds[2] = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    CHECK_EQ(connect(fds[0], (const struct sockaddr *)&r->address, r->length), 0);
    fds[1] = aco_io_accept(r->listener);
    CHECK(fds[1] >= 0);
    close_both(fds);
}

static void connects(ready_t *r)
{
    int fds[2] = {socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), -1};
    CHECK_EQ(aco_io_connect(fds[0], (const struct sockaddr *)&r->address, r->length), 0);
    fds[1] = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fds[1] >= 0);
    close_both(fds);
}

static void reads_file(ready_t *r)
{
    CHECK_EQ(aco_file_pread(r->file, &r->byte, 1, 0), 1);
}

static void finds_nothing(ready_t *r, int flags)
{
    FAILS_WITH(aco_io_recv(r->pair[0], &r->byte, 1, flags), EAGAIN);
}

static void opens_and_closes(ready_t *r)
{
    int ends[2];
    aco_io_stats_t stats;
    (void)r;
    make_pair(ends, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(ends[0]), 0);
    CHECK_EQ(aco_io_release(ends[0]), 0);
    CHECK_EQ(aco_io_adopt(ends[0]), 0);
    CHECK_EQ(aco_io_shutdown(ends[0], SHUT_RDWR), 0);
    CHECK_EQ(aco_io_stats(&stats), 0);
    close_both(ends);
}

static void open_ready(ready_t *r)
{
    memset(r, 0, sizeof *r);
    make_pair(r->pair, SOCK_STREAM);
    make_pipe(r->pipe);
    r->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    r->address.sun_family = AF_UNIX;
    r->length = sizeof r->address;
    CHECK_EQ(bind(r->listener, (struct sockaddr *)&r->address, sizeof(sa_family_t)), 0);
    CHECK_EQ(getsockname(r->listener, (struct sockaddr *)&r->address, &r->length), 0);
    CHECK_EQ(listen(r->listener, 10), 0);
    r->part.iov_base = &r->byte;
    r->part.iov_len = 1;
    r->message.msg_iov = &r->part;
    r->message.msg_iovlen = 1;
}

static void close_ready(const ready_t *r)
{
    close_both(r->pair);
    close_both(r->pipe);
    CHECK_EQ(aco_io_close(r->listener), 0);
    CHECK_EQ(aco_io_close(r->file), 0);
}

enum { CALLS_IN_A_ROW = 1280 };

static const struct {
    const char *name;
    void (*waiting)(ready_t *r);
    void (*with_flags)(ready_t *r, int flags);
} ready_calls[] = {{"read", reads, NULL},
                   {"readv", reads_parts, NULL},
                   {"recv", NULL, receives},
                   {"recvmsg", NULL, receives_message},
                   {"recvfrom", NULL, receives_from},
                   {"write", writes, NULL},
                   {"writev", writes_parts, NULL},
                   {"send", NULL, sends},
                   {"sendmsg", NULL, sends_message},
                   {"sendto", NULL, sends_to},
                   {"splice", NULL, splices},
                   {"sendfile", sends_file, NULL},
                   {"wait_readable", waits_to_read, NULL},
                   {"wait_writable", waits_to_write, NULL},
                   {"accept", accepts, NULL},
                   {"connect", connects, NULL},
                   {"pread", reads_file, NULL},
                   {"EAGAIN", NULL, finds_nothing},
                   {"open and close", opens_and_closes, NULL}};
enum { CALLS = sizeof ready_calls / sizeof *ready_calls };

/* In a scope that has ended they do what needs no wait. */
static void *calls_after_scope(void *unused)
{
    ready_t r;
    aco_scope_t over;
    open_ready(&r);
    CHECK_EQ(aco_scope_begin(&over, aco_now()), 0);
    for (int i = 0; i < 2 * CALLS; i++) { /* the second time the descriptors are known */
        int call = i % CALLS;
        if (ready_calls[call].waiting)
            ready_calls[call].waiting(&r);
        else if (ready_calls[call].with_flags != finds_nothing)
            ready_calls[call].with_flags(&r, 0);
    }
    aco_scope_end(&over);
    close_ready(&r);
    return unused;
}

/* Each call alone lets others run in 128 calls if it could have waited, and not at all with MSG_DONTWAIT. */
static void *turns_of_calls(void *unused)
{
    ready_t r;
    fair_t f = {{0, 0}, 0, 0};
    aco_group_t group;
    open_ready(&r);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, counts_turns, &f);
    for (int i = 0; i < 2 * CALLS; i++) {
        int call = i / 2, flags = i % 2 ? MSG_DONTWAIT : 0;
        int waits = !flags && ready_calls[call].waiting != opens_and_closes;
        if ((flags && !ready_calls[call].with_flags) || (!flags && ready_calls[call].with_flags == finds_nothing))
            continue;
        aco_task_yield();
        f.turns = 0;
        for (int n = 0; n < CALLS_IN_A_ROW; n++)
            ready_calls[call].waiting ? ready_calls[call].waiting(&r) : ready_calls[call].with_flags(&r, flags);
        if (waits ? f.turns < CALLS_IN_A_ROW / 128 : f.turns > 0)
            fprintf(stderr, "%s%s gives others %ld turns:\n", ready_calls[call].name, flags ? " with MSG_DONTWAIT" : "",
                    f.turns);
        CHECK(waits ? f.turns >= CALLS_IN_A_ROW / 128 : f.turns == 0);
    }
    f.is_over = 1;
    aco_group_end(&group);
    close_ready(&r);
    return unused;
}

/* ---- Tasks on a share stack, and a coroutine inside a task ---- */

enum { SHARING = 3, ROUNDS = 20 };

static void *echoes_on_share_stack(void *fd)
{
    char text[64];
    ssize_t n;
    while ((n = aco_io_read((int)(intptr_t)fd, text, sizeof text)) > 0)
        CHECK_EQ(aco_io_write_all((int)(intptr_t)fd, text, (size_t)n), n);
    CHECK_EQ(n, 0);
    return NULL;
}

static void *share_stack(void *unused)
{
    int pairs[SHARING][2];
    aco_t *tasks[SHARING];
    aco_options_t o = {0};
    char text[64], came[64];
    o.stack = aco_share_stack_new(65536);
    for (int i = 0; i < SHARING; i++) {
        make_tcp(pairs[i]);
        tasks[i] = aco_spawn(echoes_on_share_stack, (void *)(intptr_t)pairs[i][1], &o);
        CHECK(tasks[i] != NULL);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SHARING; i++) {
            int length = snprintf(text, sizeof text, "round %d of connection %d", round, i);
            CHECK_EQ(aco_io_write_all(pairs[i][0], text, (size_t)length), length);
            CHECK_EQ(aco_io_read_exactly(pairs[i][0], came, (size_t)length), length);
            CHECK(memcmp(came, text, (size_t)length) == 0);
        }
    for (int i = 0; i < SHARING; i++) {
        CHECK_EQ(aco_io_shutdown(pairs[i][0], SHUT_WR), 0);
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
        close_both(pairs[i]);
    }
    aco_share_stack_destroy(o.stack);
    return unused;
}

static void *reads_inside(void *fd)
{
    char byte = 0;
    CHECK_EQ(aco_io_read((int)(intptr_t)fd, &byte, 1), 1);
    return byte == 'x' ? fd : NULL;
}

static void *inner_coroutine(void *unused)
{
    int ends[2];
    aco_t *co;
    aco_group_t group;
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_later, (void *)(intptr_t)ends[1]);
    co = aco_new(reads_inside, (void *)(intptr_t)ends[0], NULL);
    CHECK(aco_send(co, NULL) == (void *)(intptr_t)ends[0]); /* the task waits with it */
    CHECK(co->is_end);
    aco_destroy(co);
    aco_group_end(&group);
    close_both(ends);
    return unused;
}

/* ---- Stacks that were deep ---- */

enum { DIVERS = 500, DEPTH = 40000, PER_TRIM = 64 };
static const int64_t BETWEEN_TRIMS = 100 * ACO_MILLISECOND;

static void *dives_and_waits(void *end)
{
    size_t lowest;
    dive(DEPTH, &lowest);
    CHECK_EQ(aco_io_wait_readable((int)(intptr_t)end), 0);
    return NULL;
}

static void *answers(void *fd)
{
    char byte;
    while (aco_io_read((int)(intptr_t)fd, &byte, 1) == 1)
        CHECK_EQ(aco_io_write((int)(intptr_t)fd, &byte, 1), 1);
    return NULL;
}

/* While there is always an event, the thread gives back few stacks' pages at a time. */
static void *busy_thread_trims_few(void *unused)
{
    static aco_t *divers[DIVERS];
    int pair[2], ends[2], trimmed = 0;
    char byte = 'b';
    aco_group_t group;
    int64_t began = aco_now(), took;
    make_pair(pair, SOCK_STREAM);
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < DIVERS; i++) {
        divers[i] = aco_group_spawn(&group, dives_and_waits, (void *)(intptr_t)ends[0], NULL);
        CHECK(divers[i] != NULL);
    }
    member(&group, answers, (void *)(intptr_t)pair[1]);
    do {
        CHECK_EQ(aco_io_write(pair[0], &byte, 1), 1);
        CHECK_EQ(aco_io_read(pair[0], &byte, 1), 1);
        took = aco_now() - began;
    } while (took < 2 * BETWEEN_TRIMS);
    for (int i = 0; i < DIVERS; i++)
        trimmed += aco_stack_high_water(divers[i]) < DEPTH / 2;
    CHECK(trimmed <= PER_TRIM * (took / BETWEEN_TRIMS + 2));
    CHECK_EQ(aco_io_close(ends[1]), 0); /* wakes the divers */
    CHECK_EQ(aco_io_shutdown(pair[0], SHUT_WR), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_io_close(ends[0]), 0);
    close_both(pair);
    return unused;
}

/* ---- Outside of tasks ---- */

static void root_context(void)
{
    int pair[2];
    char byte;
    make_pair(pair, SOCK_STREAM);
    FAILS_WITH(aco_io_read(pair[0], &byte, 1), EPERM);
    CHECK_EQ(aco_io_write(pair[1], "r", 1), 1);
    CHECK_EQ(aco_io_wait_readable(pair[0]), 0);
    CHECK_EQ(aco_io_read(pair[0], &byte, 1), 1);
    for (int i = 0; i < 100; i++) /* a spent budget does not matter here */
        CHECK_EQ(aco_io_write(pair[1], "r", 1), 1);
    close_both(pair);
}

/* ---- Statistics ---- */

static void *statistics(void *unused)
{
    aco_io_stats_t before, now;
    aco_group_t group;
    char bytes[8];
    wait_ends_t w = {0, 0, 0, 0};
    int pair[2];
    FAILS_WITH(aco_io_stats(NULL), EINVAL);
    make_pair(pair, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(pair[0]), 0);
    CHECK_EQ(aco_io_stats(&before), 0);
    CHECK_EQ(aco_io_write(pair[1], "12345", 5), 5);
    CHECK_EQ(aco_io_recv(pair[0], bytes, 3, 0), 3);
    CHECK_EQ(aco_io_recv(pair[0], bytes, 3, MSG_DONTWAIT), 2);
    CHECK_EQ(aco_io_stats(&now), 0);
    CHECK_EQ(now.calls - before.calls, 3);
    CHECK_EQ(now.bytes_read - before.bytes_read, 5);
    CHECK_EQ(now.bytes_written - before.bytes_written, 5);
    CHECK_EQ(now.waits - before.waits, 0);
    CHECK_EQ(now.registrations - before.registrations, 0);
    w.fd = pair[0];
    for (int i = 1; i <= 2; i++) { /* the descriptor is registered once */
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, reads_one, &w);
        member(&group, writes_later, (void *)(intptr_t)pair[1]);
        aco_group_end(&group);
        CHECK_EQ(w.result, 1);
        CHECK_EQ(aco_io_stats(&now), 0);
        CHECK_EQ(now.waits - before.waits, i);
        CHECK_EQ(now.registrations - before.registrations, 1);
        CHECK(now.events - before.events >= (uint64_t)i && now.polls - before.polls >= (uint64_t)i);
        CHECK_EQ(now.bytes_read - before.bytes_read, 5 + i);
    }
    close_both(pair);
    return unused;
}

/* ---- Other threads ---- */

static void *waits_for_both(void *fd)
{
    char byte;
    sleeper = aco_get_co();
    CHECK_EQ(aco_io_read((int)(intptr_t)fd, &byte, 1), 1);
    CHECK_EQ(aco_park("the other thread"), 0);
    return NULL;
}

typedef struct other_thread {
    aco_scheduler_t *scheduler;
    aco_t *task;
    sleeper_t thread;
    int fd;
} other_thread_t;

static void note(void *task)
{
    CHECK_EQ(aco_unpark(task), 0);
}

static void *wakes_from_afar(void *arg)
{
    other_thread_t *other = arg;
    until_asleep(&other->thread);
    CHECK_EQ(write(other->fd, "w", 1), 1);
    until_asleep(&other->thread);
    CHECK_EQ(aco_unpark(sleeper), 0);
    until_asleep(&other->thread);
    CHECK_EQ(aco_post(other->scheduler, note, other->task), 0);
    return NULL;
}

/* Only the poller and its wakes can go on here: there is no timer. */
static void *other_threads(void *unused)
{
    int pair[2], ends[2];
    other_thread_t other;
    pthread_t thread;
    aco_group_t group;
    wait_ends_t w = {0, 0, 0, 0};
    make_pair(pair, SOCK_STREAM);
    make_pipe(ends);
    other.scheduler = aco_scheduler_open();
    other.fd = pair[1];
    other.task = aco_get_co();
    other.thread = this_sleeper();
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, waits_for_both, (void *)(intptr_t)pair[0]);
    w.fd = ends[0];
    member(&group, reads_one, &w); /* somebody waits in the poller all the time */
    aco_task_yield();
    CHECK_EQ(pthread_create(&thread, NULL, wakes_from_afar, &other), 0);
    CHECK_EQ(aco_park("the post"), 0);
    CHECK_EQ(aco_io_write(ends[1], "e", 1), 1);
    aco_group_end(&group);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    close_both(pair);
    close_both(ends);
    return unused;
}

/* ---- Posts that come all the time ---- */

enum { ENOUGH_POSTS = 1000 };
static struct {
    aco_scheduler_t *scheduler;
    int64_t now; /* 1 us later at each look */
    int fd, n, is_over;
} flood;

static int ticks(clockid_t clock, struct timespec *now)
{
    (void)clock;
    flood.now += 1000;
    *now = (struct timespec){(time_t)(flood.now / ACO_SECOND), (long)(flood.now % ACO_SECOND)};
    return 0;
}

static void posts_again(void *unused)
{
    if (flood.n++ == 0)
        CHECK_EQ(write(flood.fd, "x", 1), 1);
    if (!flood.is_over && flood.n < ENOUGH_POSTS)
        CHECK_EQ(aco_post(flood.scheduler, posts_again, unused), 0);
}

/* Events have their turn, too: the poller has one each 50 us. */
static void *flood_of_posts(void *unused)
{
    const aco__system_t real = aco__system;
    int ends[2];
    make_pipe(ends);
    flood.scheduler = aco_scheduler_open();
    flood.now = aco_now();
    flood.fd = ends[1];
    aco__system.clock_gettime = ticks;
    CHECK_EQ(aco_post(flood.scheduler, posts_again, NULL), 0);
    CHECK_EQ(aco_io_wait_readable(ends[0]), 0);
    CHECK(flood.n < ENOUGH_POSTS);
    flood.is_over = 1;
    aco__system = real;
    aco_task_yield(); /* the last post */
    CHECK_EQ(aco_scheduler_close(), 0);
    close_both(ends);
    return unused;
}

/* ---- An event loop of the program's own ---- */

static int hook_calls, hook_fd;
static aco_t *hook_wakes;

static int hook(void *ctx, int64_t timeout_ns)
{
    struct pollfd look = {hook_fd, POLLIN, 0};
    (void)ctx;
    hook_calls += timeout_ns != 0;
    if (hook_wakes && timeout_ns != 0) {
        CHECK_EQ(aco_unpark(hook_wakes), 0);
        hook_wakes = NULL;
        return 1;
    }
    CHECK(poll(&look, 1, timeout_ns < 0 ? 5000 : (int)(timeout_ns / 1000000) + 1) >= 0);
    return 1;
}

static void *writes_and_reads(void *unused)
{
    int ends[2];
    char byte;
    aco_group_t group;
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_later, (void *)(intptr_t)ends[1]);
    CHECK_EQ(aco_io_read(ends[0], &byte, 1), 1);
    aco_group_end(&group);
    close_both(ends);
    return unused;
}

/* The hook wakes this task while another one waits for a descriptor. */
static void *is_woken_by_hook(void *unused)
{
    int ends[2];
    wait_ends_t w = {0, 0, 0, 0};
    aco_group_t group;
    make_pipe(ends);
    w.fd = ends[0];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_one, &w);
    aco_task_yield();
    hook_wakes = aco_get_co();
    CHECK_EQ(aco_park("the hook"), 0);
    CHECK_EQ(aco_io_write(ends[1], "h", 1), 1);
    aco_group_end(&group);
    CHECK_EQ(w.result, 1);
    close_both(ends);
    return unused;
}

static void idle_hook(void)
{
    hook_fd = aco_io_poll_fd();
    CHECK(hook_fd >= 0);
    CHECK_EQ(aco_on_idle(hook, NULL), 0);
    run_task(writes_and_reads, NULL);
    CHECK(hook_calls > 0);
    run_task(is_woken_by_hook, NULL);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
}

/* ---- Inside a loop of the program's own ---- */

static int64_t turns_of_busy;
static int loop_is_over;

static void *is_busy(void *unused)
{
    while (!loop_is_over) {
        aco_task_yield();
        turns_of_busy++;
    }
    return unused;
}

static void *runs_ready(void *fd)
{
    int64_t next;
    FAILS_WITH(aco_run_ready(&next), EPERM);
    return reads_inside(fd);
}

static void *sleeps_once(void *unused)
{
    CHECK_EQ(aco_sleep(2 * ACO_MILLISECOND), 0);
    return unused;
}

static void spawns_sleeper(void *unused)
{
    CHECK(aco_spawn(sleeps_once, unused, &(aco_options_t){.flags = ACO_DETACHED}) != NULL);
}

static sleeper_t loop_thread;

static void *posts(void *scheduler)
{
    until_asleep(&loop_thread);
    CHECK_EQ(aco_post(scheduler, spawns_sleeper, NULL), 0);
    return NULL;
}

/* Until aco_run_ready() says that no tasks are left. Returns how often it was called. */
static int loop(void)
{
    int64_t next;
    int calls = 1, more;
    while ((more = aco_run_ready(&next)) > 0 && calls++ < 1000) {
        struct pollfd look = {aco_io_poll_fd(), POLLIN, 0};
        int64_t left = next == ACO_FOREVER ? 5 * ACO_SECOND : next - aco_now();
        CHECK(poll(&look, 1, left > 0 ? (int)((left + 999999) / 1000000) : 0) >= 0);
        CHECK(next != ACO_FOREVER || look.revents); /* it was worth waiting for */
    }
    CHECK_EQ(more, 0);
    return calls;
}

static void run_ready(void)
{
    int64_t next;
    int ends[2];
    aco_options_t detached = {.flags = ACO_DETACHED};
    pthread_t thread;
    aco_scheduler_t *scheduler;
    struct pollfd look = {aco_io_poll_fd(), POLLIN, 0};
    FAILS_WITH(aco_run_ready(NULL), EINVAL);
    CHECK(aco_run_ready(&next) == 0 && next == ACO_FOREVER);
    make_pipe(ends);
    aco_spawn(runs_ready, (void *)(intptr_t)ends[0], &detached);
    aco_spawn(writes_later, (void *)(intptr_t)ends[1], &detached);
    CHECK(loop() > 1); /* it has waited for the deadline */

    aco_spawn(reads_inside, (void *)(intptr_t)ends[0], &detached); /* a task without end is no end of the call */
    aco_spawn(is_busy, NULL, &detached);
    CHECK_EQ(aco_run_ready(&next), 1);
    CHECK(next <= aco_now() && turns_of_busy > 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(aco_run_ready(&next), 1);
    loop_is_over = 1;
    CHECK_EQ(loop(), 1);

    scheduler = aco_scheduler_open(); /* news come to a loop that waits */
    loop_thread = this_sleeper();
    CHECK(aco_run_ready(&next) == 0 && next == ACO_FOREVER);
    CHECK_EQ(pthread_create(&thread, NULL, posts, scheduler), 0);
    do
        CHECK_EQ(poll(&look, 1, 5000), 1);
    while (aco_run_ready(&next) == 0); /* it may have been readable for what is over */
    CHECK(next != ACO_FOREVER);
    loop();
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    close_both(ends);
}

/* ---- When the thread looks for events ---- */

static int polls, events_come_by;

static int stands_still(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){1000000, 0};
    return 0;
}

/* The thread sleeps: the event comes now. */
static int comes_while_asleep(int epoll, struct epoll_event *events, int room, int milliseconds)
{
    (void)milliseconds;
    if (polls++ == 0)
        CHECK_EQ(write(events_come_by, "x", 1), 1);
    return epoll_wait(epoll, events, room, 0);
}

static int comes_within(int epoll, struct epoll_event *events, int room, const struct timespec *limit)
{
    (void)limit;
    return comes_while_asleep(epoll, events, room, 0);
}

static void *just_ends(void *arg)
{
    return arg;
}

static void *awaits_byte(void *fd)
{
    CHECK_EQ(aco_io_wait_readable((int)(intptr_t)fd), 0);
    return NULL;
}

/* Promise: who has just slept in the poller does not look again at the end of the first round. */
static void *looks_once(void *unused)
{
    int ends[2], others[2];
    aco_group_t group, other;
    aco__system_t real = aco__system;
    make_pipe(ends);
    make_pipe(others);
    aco_group_begin(&other, ACO_KEEP_GOING);
    member(&other, awaits_byte, (void *)(intptr_t)others[0]); /* else there would be nothing to look for */
    events_come_by = ends[1];
    aco__system.clock_gettime = stands_still;
    aco__system.epoll_wait = comes_while_asleep;
    aco__system.epoll_pwait2 = comes_within;
    CHECK_EQ(aco_io_wait_readable(ends[0]), 0);
    CHECK_EQ(polls, 1);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, just_ends, NULL);
    CHECK_EQ(aco_group_end(&group), 0); /* a round with a task that can run */
    CHECK_EQ(polls, 1);
    aco__system = real;
    CHECK_EQ(write(others[1], "x", 1), 1);
    CHECK_EQ(aco_group_end(&other), 0);
    close_both(ends);
    close_both(others);
    return unused;
}

int main(void)
{
    int before;
    const char *poller = getenv("ACO_POLLER");
    static const aco_function_t tests[] = {fairness,   turns_of_calls, calls_after_scope, inner_coroutine,
                                           statistics, other_threads,  writes_and_reads,  busy_thread_trims_few};
    CHECK(aco_io_poll_fd() >= 0);
    before = count_descriptors();
    root_context();
    run_tests(tests, sizeof tests / sizeof *tests, before);
    if (!UNDER_ASAN && !UNDER_TSAN) /* they know no share stacks */
        run_task(share_stack, NULL);
    idle_hook();
    run_ready();
    run_task(flood_of_posts, NULL);
    if (!poller || strcmp(poller, "epoll") == 0)
        run_task(looks_once, NULL);
    CHECK_EQ(count_descriptors(), before);
    return check_result("io_tasks");
}
