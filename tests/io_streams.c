/* Streams (include/aco/stream.h): one conversation over everything that can carry one, whole and in short parts; ends,
 * cuts, scopes, closing under tasks that wait, addresses, no memory. TLS is in tls_streams.c. */
#include "replace.h" /* first */

#include "failing_service.h"
#include "io_tests.h"

#include <aco/stream.h>
#include <signal.h>
#include <stdlib.h>

/* ---- The system ---- */

static int is_short; /* few bytes at once, and each other call is interrupted */

static int is_dry; /* nothing is written, and no error told */

static int is_interrupted(void)
{
    static unsigned calls;
    if (!is_short || ++calls % 2)
        return 0;
    errno = EINTR;
    return 1;
}

static size_t part_of(size_t n)
{
    return is_dry ? 0 : is_short && n > 3 ? 3 : n;
}

FAILING(ssize_t, read, (int fd, void *p, size_t n), (fd, p, part_of(n)), is_interrupted(), -1)
FAILING(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, part_of(n)), is_interrupted(), -1)
FAILING(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, part_of(n), flags), is_interrupted(), -1)
FAILING(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, is_short ? 1 : n), is_interrupted(),
        -1)

static int no_splice, no_pipe; /* the errno of that */

static int fails_with(int error)
{
    errno = error;
    return error != 0;
}

FAILING(ssize_t, splice, (int from, int64_t *from_at, int to, int64_t *to_at, size_t n, unsigned flags),
        (from, from_at, to, to_at, n, flags), fails_with(no_splice), -1)
FAILING(int, pipe2, (int fds[2], int flags), (fds, flags), fails_with(no_pipe), -1)

/* ---- What carries them ---- */

/* A stream of the program's: another one's bytes, one at a time. */
typedef struct own {
    aco_stream_t is; /* first */
    aco_stream_t *inner;
} own_t;

static aco_stream_t *inner_of(const aco_stream_t *stream)
{
    return ((const own_t *)(const void *)stream)->inner;
}

static ssize_t own_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_stream_read_at(inner_of(stream), p, n < 1 ? n : 1, location);
}

static ssize_t own_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_stream_write_at(inner_of(stream), p, n < 1 ? n : 1, location);
}

static int own_shutdown(aco_stream_t *stream, const char *location)
{
    return aco_stream_shutdown_at(inner_of(stream), location);
}

static int own_wait_readable(aco_stream_t *stream, const char *location)
{
    return aco_stream_wait_readable_at(inner_of(stream), location);
}

static int own_has_input(aco_stream_t *stream)
{
    return aco_stream_has_input(inner_of(stream));
}

static void own_close(aco_stream_t *stream)
{
    aco_stream_close(inner_of(stream));
    free(stream);
}

static const char *own_protocol(const aco_stream_t *stream)
{
    (void)stream;
    return "own";
}

static aco_stream_t *own_new(aco_stream_t *inner)
{
    static const aco_stream_functions_t functions = {.read = own_read,
                                                     .write = own_write,
                                                     .close = own_close,
                                                     .shutdown = own_shutdown,
                                                     .wait_readable = own_wait_readable,
                                                     .has_input = own_has_input,
                                                     .protocol = own_protocol};
    own_t *own = malloc(sizeof *own);
    CHECK(own != NULL);
    own->is.functions = &functions;
    own->is.fd = -1;
    own->inner = inner;
    return &own->is;
}

enum { TCP, UNIX, PIPES, MEMORY, OWN, KINDS };
static int kind;

static void make_ends(aco_stream_t *ends[2])
{
    int fds[2], back[2];
    if (kind == MEMORY || kind == OWN) {
        CHECK_EQ(aco_stream_pair(ends, 7), 0);
        if (kind == OWN)
            ends[1] = own_new(ends[1]);
        return;
    }
    if (kind == PIPES) {
        make_pipe(fds);
        make_pipe(back);
        ends[0] = aco_stream_open_both(fds[0], back[1]);
        ends[1] = aco_stream_open_both(back[0], fds[1]);
    } else {
        if (kind == TCP)
            make_tcp(fds);
        else
            make_pair(fds, SOCK_STREAM);
        ends[0] = aco_stream_open(fds[0]);
        ends[1] = aco_stream_open(fds[1]);
    }
    CHECK(ends[0] != NULL && ends[1] != NULL);
}

/* ---- A conversation ---- */

enum { MUCH = 100000, ROUND = 1000 };
static char much[MUCH], got[MUCH];

static void *answers(void *arg)
{
    aco_stream_t *stream = arg;
    char text[16];
    size_t done = 99, all = is_short || kind >= MEMORY ? ROUND : MUCH;
    CHECK_EQ(aco_stream_read_exactly_done(stream, text, 9, &done), 9);
    CHECK(done == 9 && memcmp(text, "one two 3", 9) == 0);
    CHECK_EQ(aco_stream_read_exactly(stream, text, sizeof text), 0); /* the end of that direction */
    CHECK_EQ(aco_stream_read(stream, text, sizeof text), 0);
    CHECK(aco_stream_has_input(stream) || kind == PIPES);
    CHECK_EQ(aco_stream_write_all_done(stream, much, all, &done), (ssize_t)all);
    CHECK_EQ(done, all);
    aco_stream_close(stream);
    return NULL;
}

static void *converses(void *arg)
{
    aco_stream_t *ends[2];
    aco_group_t group;
    char one[] = "one ", three[] = "3";
    struct iovec parts[] = {{NULL, 0}, {one, 4}, {one, 0}, {(char[]){"two "}, 4}, {three, 1}, {NULL, 0}};
    size_t done = 99, all = is_short || kind >= MEMORY ? ROUND : MUCH;
    make_ends(ends);
    CHECK_EQ(aco_stream_has_input(ends[0]), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, answers, ends[1]);
    CHECK_EQ(aco_stream_write_parts(ends[0], parts, 6), 0);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(parts[i].iov_len, 0);
    CHECK_EQ(aco_stream_write_parts(ends[0], parts, 0), 0);
    FAILS_WITH(aco_stream_write_parts(ends[0], parts, -1), EINVAL);
    FAILS_WITH(aco_stream_write_parts(ends[0], parts, ACO_STREAM_PARTS + 1), EINVAL);
    CHECK_EQ(aco_stream_shutdown(ends[0]), 0);
    FAILS_WITH(aco_stream_write_all_done(ends[0], "x", 1, &done), EPIPE);
    CHECK_EQ(done, 0);
    CHECK_EQ(aco_stream_wait_readable(ends[0]), 0);
    CHECK_EQ(aco_stream_has_input(ends[0]), 1);
    CHECK_EQ(aco_stream_read(ends[0], got, 0), 0);
    memset(got, 0, all);
    CHECK_EQ(aco_stream_read_exactly(ends[0], got, all), (ssize_t)all);
    CHECK(memcmp(got, much, all) == 0);
    CHECK_EQ(aco_stream_read_exactly_done(ends[0], got, 5, &done), 0);
    CHECK_EQ(done, 0);
    aco_group_end(&group);
    aco_stream_close(ends[0]);
    return arg;
}

/* ---- Scopes, closing ---- */

static void *obeys_scopes(void *arg)
{
    aco_stream_t *ends[2];
    aco_scope_t scope;
    char byte;
    size_t done = 0;
    make_ends(ends);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_stream_read(ends[0], &byte, 1), ETIMEDOUT);
    FAILS_WITH(aco_stream_wait_readable(ends[0]), ETIMEDOUT);
    while (aco_stream_write_all_done(ends[0], much, MUCH, &done) == MUCH) /* until nothing more fits */
        ;
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(done < MUCH);
    if (IS_SIMULATED) { /* in a scope that has ended nobody sleeps */
        aco_scope_end(&scope);
        let_arrive();
        aco_scope_begin(&scope, aco_now());
    }
    CHECK_EQ(aco_stream_read(ends[1], &byte, 1), 1); /* need not wait */
    aco_scope_end(&scope);
    CHECK(byte == much[0]);
    aco_stream_close(ends[0]);
    aco_stream_close(ends[1]);
    return arg;
}

static void *waits_to_read(void *stream)
{
    char byte;
    FAILS_WITH(aco_stream_read(stream, &byte, 1), ECANCELED);
    return NULL;
}

static void *waits_to_write(void *stream)
{
    size_t done;
    int error;
    while (aco_stream_write_all_done(stream, much, MUCH, &done) == MUCH)
        ;
    error = errno;
    CHECK(error == ECANCELED);
    return NULL;
}

/* Of a stream that tasks wait for. */
static void *closes_under_others(void *arg)
{
    aco_stream_t *ends[2];
    aco_group_t group;
    make_ends(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, waits_to_read, ends[0]);
    member(&group, waits_to_write, ends[0]);
    for (int i = 0; i < 100; i++) /* both wait then */
        aco_task_yield();
    aco_stream_close(ends[0]);
    aco_group_end(&group);
    aco_stream_close(ends[1]);
    return arg;
}

/* The peer is gone: it was closed, or cut. */
static void *notices_ends(void *arg)
{
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        aco_stream_t *ends[2];
        char byte;
        make_ends(ends);
        CHECK_EQ(aco_stream_write_all(ends[1], "x", 1), 1);
        (is_cut ? aco_stream_abort : aco_stream_close)(ends[1]);
        if (is_cut && (kind == TCP || kind == MEMORY)) {
            while (aco_stream_read(ends[0], &byte, 1) == 1) /* it may be lost */
                ;
            CHECK_EQ(errno, ECONNRESET);
        } else {
            CHECK_EQ(aco_stream_read(ends[0], &byte, 1), 1);
            CHECK_EQ(aco_stream_read(ends[0], &byte, 1), 0);
        }
        while (aco_stream_write(ends[0], "x", 1) == 1) /* TCP takes a first one */
            ;
        CHECK(errno == EPIPE || errno == ECONNRESET);
        aco_stream_close(ends[0]);
    }
    aco_stream_close(NULL);
    aco_stream_abort(NULL);
    return arg;
}

static void reads_no_end(aco_stream_t *stream)
{
    char bytes[64];
    for (int i = 0; i < 2; i++) { /* the system tells of the reset once; then it tells of an end */
        while (aco_stream_read(stream, bytes, sizeof bytes) > 0)
            ;
        FAILS_WITH(aco_stream_read(stream, bytes, sizeof bytes), ECONNRESET);
    }
    if (aco_stream_fd(stream) >= 0) {
        int ends[2], fd = aco_stream_fd(stream);
        struct iovec part = {bytes, sizeof bytes};
        make_pipe(ends);
        FAILS_WITH(aco_io_splice(fd, NULL, ends[1], NULL, sizeof bytes, 0), ECONNRESET);
        FAILS_WITH(aco_io_readv(fd, &part, 1), ECONNRESET);
        FAILS_WITH(aco_io_recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), ECONNRESET);
        close_both(ends);
    }
}

/* A connection that was cut has no end for who reads, whoever is told of the cut first. */
static void *notices_cuts(void *arg)
{
    for (int writes_first = 0; writes_first < 2 && (kind == TCP || kind == MEMORY); writes_first++) {
        aco_stream_t *ends[2];
        make_ends(ends);
        CHECK_EQ(aco_stream_write_all(ends[1], "x", 1), 1);
        aco_stream_abort(ends[1]);
        while (writes_first && aco_stream_write(ends[0], "x", 1) == 1)
            ;
        reads_no_end(ends[0]);
        aco_stream_close(ends[0]);
    }
    return arg;
}

/* ---- Copying ---- */

typedef struct tunnel {
    aco_stream_t *ends[2];
    uint64_t copied[2];
    int result, error;
} tunnel_t;

static void *tunnels(void *arg)
{
    tunnel_t *t = arg;
    t->result = aco_stream_copy_both_ways(t->ends[0], t->ends[1], t->copied);
    t->error = errno;
    aco_stream_close(t->ends[0]);
    aco_stream_close(t->ends[1]);
    return NULL;
}

/* The conversation, through a tunnel to another pair, which may be of another kind. */
static void converses_through(aco_stream_t *near[2], aco_stream_t *far[2])
{
    size_t all = is_short || kind >= MEMORY ? ROUND : MUCH;
    tunnel_t t = {.ends = {near[1], far[0]}};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, tunnels, &t);
    member(&group, answers, far[1]);
    CHECK_EQ(aco_stream_write_all(near[0], "one two 3", 9), 9);
    CHECK_EQ(aco_stream_shutdown(near[0]), 0);
    memset(got, 0, all);
    CHECK_EQ(aco_stream_read_exactly(near[0], got, all), (ssize_t)all);
    CHECK(memcmp(got, much, all) == 0);
    CHECK_EQ(aco_stream_read(near[0], got, 1), 0);
    aco_group_end(&group);
    CHECK_EQ(t.result, 0);
    CHECK(t.copied[0] == 9 && t.copied[1] == all);
    aco_stream_close(near[0]);
}

static void *copies(void *arg)
{
    aco_stream_t *near[2], *far[2];
    int is = kind;
    make_ends(near);
    make_ends(far);
    converses_through(near, far);
    make_ends(near);
    kind = TCP;
    make_ends(far);
    kind = is;
    converses_through(near, far);
    return arg;
}

/* A direction that fails, or a scope, ends both. */
static void *copies_no_more(void *arg)
{
    for (int by_scope = 0; by_scope < 2; by_scope++) {
        aco_stream_t *near[2], *far[2];
        tunnel_t t;
        aco_scope_t scope;
        aco_group_t group;
        make_ends(near);
        make_ends(far);
        t = (tunnel_t){.ends = {near[1], far[0]}};
        aco_scope_begin(&scope, ACO_FOREVER);
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, tunnels, &t);
        aco_task_yield();
        if (by_scope)
            aco_scope_cancel(&scope);
        else
            aco_stream_close(far[1]);
        while (!by_scope && aco_stream_write(near[0], "x", 1) == 1) /* until the tunnel is gone */
            ;
        aco_group_end(&group);
        aco_scope_end(&scope);
        CHECK_EQ(t.result, -1);
        CHECK(by_scope ? t.error == ECANCELED : t.error == EPIPE || t.error == ECONNRESET || t.error == ENOTCONN);
        aco_stream_close(near[0]);
        if (by_scope)
            aco_stream_close(far[1]);
    }
    return arg;
}

/* ---- What they are ---- */

static void *tells_what_it_is(void *arg)
{
    aco_stream_t *ends[2];
    char local[ACO_IO_ADDRESS_SIZE] = "", peer[ACO_IO_ADDRESS_SIZE] = "";
    make_ends(ends);
    if (kind == TCP) {
        CHECK_EQ(aco_stream_local_address(ends[0], local, sizeof local), 0);
        CHECK_EQ(aco_stream_peer_address(ends[1], peer, sizeof peer), 0);
        CHECK(strcmp(local, peer) == 0);
        CHECK(strncmp(local, "127.0.0.1:", 10) == 0);
        CHECK(aco_stream_fd(ends[0]) >= 0);
        FAILS_WITH(aco_stream_peer_address(ends[0], peer, 2), ENOSPC);
    } else if (kind != UNIX) {
        FAILS_WITH(aco_stream_local_address(ends[0], local, sizeof local), ENOTSUP);
        FAILS_WITH(aco_stream_peer_address(ends[0], peer, sizeof peer), ENOTSUP);
        CHECK_EQ(aco_stream_fd(ends[0]), -1);
    }
    CHECK(strcmp(aco_stream_protocol(ends[0]), "") == 0);
    CHECK(strcmp(aco_stream_protocol(ends[1]), kind == OWN ? "own" : "") == 0);
    aco_stream_close(ends[0]);
    aco_stream_close(ends[1]);
    return arg;
}

static ssize_t nothing_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    (void)stream, (void)p, (void)n, (void)location;
    return 0;
}

static ssize_t nothing_written(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    (void)stream, (void)p, (void)n, (void)location;
    return 0;
}

static ssize_t no_parts_written(aco_stream_t *stream, const struct iovec *parts, int count, const char *location)
{
    (void)stream, (void)parts, (void)count, (void)location;
    return 0;
}

static void nothing_closed(aco_stream_t *stream)
{
    stream->fd = -2;
}

/* A program's with the fewest functions. */
static void *can_do_little(void *arg)
{
    static const aco_stream_functions_t functions = {.read = nothing_read, .close = nothing_closed};
    aco_stream_t stream = {&functions, -1};
    int tcp[2];
    char byte;
    FAILS_WITH(aco_stream_shutdown(&stream), ENOTSUP);
    FAILS_WITH(aco_stream_wait_readable(&stream), ENOTSUP);
    CHECK_EQ(aco_stream_has_input(&stream), 0);
    make_tcp(tcp);
    stream.fd = tcp[0];
    aco_stream_abort(&stream);
    CHECK_EQ(stream.fd, -2);
    CHECK_EQ(aco_io_close(tcp[0]), 0); /* a reset, although the functions know none */
    FAILS_WITH(aco_io_read(tcp[1], &byte, 1), ECONNRESET);
    CHECK_EQ(aco_io_close(tcp[1]), 0);
    return arg;
}

/* A program's whose writes are wrong, and a descriptor's. */
static void *writes_nothing(void *arg)
{
    static const aco_stream_functions_t functions[] = {{.write = nothing_written},
                                                       {.write = nothing_written, .write_parts = no_parts_written}};
    int fds[2];
    for (int i = 0; i < 2; i++) {
        aco_stream_t stream = {&functions[i], -1};
        struct iovec part = {(char[]){"text"}, 4};
        size_t done = 9;
        FAILS_WITH(aco_stream_write_all_done(&stream, "text", 4, &done), EIO);
        CHECK_EQ(done, 0);
        FAILS_WITH(aco_stream_write_parts(&stream, &part, 1), EIO);
        CHECK_EQ(part.iov_len, 4);
        CHECK_EQ(aco_stream_write_all(&stream, "text", 0), 0);
    }
    make_pipe(fds);
    is_dry = 1;
    FAILS_WITH(aco_io_write_all(fds[1], "text", 4), EIO);
    is_dry = 0;
    CHECK_EQ(aco_io_close(fds[0]) | aco_io_close(fds[1]), 0);
    return arg;
}

/* ---- Making them ---- */

static void *refuses(void *arg)
{
    aco_stream_t *ends[2];
    int fds[2];
    errno = ENOENT;
    CHECK(aco_stream_open(-1) == NULL && errno == ENOENT);
    make_pipe(fds);
    CHECK(aco_stream_open_both(fds[0], -1) == NULL && errno == ENOENT);
    CHECK(aco_stream_open_both(-1, fds[1]) == NULL && errno == ENOENT);
    FAILS_WITH(aco_stream_pair(ends, 0), EINVAL);
    FAILS_WITH(aco_stream_pair(ends, SIZE_MAX), EINVAL);
    for (int which = 0; which < 3; which++) {
        int descriptors = count_descriptors();
        if (which < 2)
            make_pipe(fds);
        allocations_left = 0;
        if (which == 0)
            CHECK(aco_stream_open(fds[0]) == NULL && aco_io_close(fds[1]) == 0);
        else
            CHECK(which == 1 ? aco_stream_open_both(fds[0], fds[1]) == NULL : aco_stream_pair(ends, 9) != 0);
        CHECK_EQ(errno, ENOMEM);
        CHECK_EQ(allocations_left, -1);
        CHECK_EQ(count_descriptors(), descriptors);
    }
    return arg;
}

int main(void)
{
    static const aco_function_t each[] = {converses,    obeys_scopes,  closes_under_others,
                                          notices_ends, notices_cuts,  tells_what_it_is,
                                          copies,       copies_no_more};
    signal(SIGPIPE, SIG_IGN);
    if (IS_SIMULATED)
        run_task(warms_up, NULL); /* puts the simulation's calls into the table, before those that replace them */
    REPLACE(read);
    REPLACE(write);
    REPLACE(send);
    REPLACE(writev);
    REPLACE(splice);
    REPLACE(pipe2);
    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i * 7 + i / 1000);
    for (kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
            long before = live;
            int descriptors = count_descriptors();
            run_task(each[i], NULL);
            if (kind + i > 0) { /* the first one opens the poller */
                CHECK_EQ(live, before);
                CHECK_EQ(count_descriptors(), descriptors);
            }
        }
    is_short = 1;
    for (kind = 0; kind < KINDS; kind++) {
        run_task(converses, NULL);
        run_task(copies, NULL);
    }
    is_short = 0;
    kind = UNIX;
    for (no_splice = EINVAL; no_splice || no_pipe; no_pipe = no_splice ? EMFILE : 0, no_splice = 0)
        run_task(copies, NULL);
    run_task(can_do_little, NULL);
    run_task(writes_nothing, NULL);
    run_task(refuses, NULL);
    return check_result("io_streams");
}
