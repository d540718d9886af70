/* Descriptors (include/aco/io.h): each call, what ends its waits, closing and numbers used again. Everything is on this
 * machine: pipes, socket pairs, the loopback. io_sockets.c has sockets by text, io_tasks.c what has to do with
 * tasks. */
#define _GNU_SOURCE
#include "io_tests.h"
#include "sanitizers.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

/* The descriptors that the poller watches. */
static int count_registered(void)
{
    char line[128];
    int n = 0;
    FILE *file;
    snprintf(line, sizeof line, "/proc/self/fdinfo/%d", aco_io_poll_fd());
    file = fopen(line, "r");
    CHECK(file != NULL);
    while (file && fgets(line, sizeof line, file))
        n += strncmp(line, "tfd:", 4) == 0;
    if (file)
        fclose(file);
    return n;
}

/* To read no bytes never waits, whatever the descriptor is, and whether or not it has some. */
static void *nothing(void *unused)
{
    int tcp[2], ends[2];
    char small[16];
    make_tcp(tcp);
    make_pipe(ends);
    CHECK_EQ(aco_io_read(tcp[0], small, 0), 0);
    CHECK_EQ(aco_io_read(ends[0], small, 0), 0);
    CHECK_EQ(aco_io_write(tcp[1], "now", 3), 3);
    let_arrive();
    CHECK_EQ(aco_io_read(tcp[0], small, 0), 0);
    CHECK_EQ(aco_io_read(tcp[0], small, sizeof small), 3); /* it was still there */
    CHECK_EQ(aco_io_read(tcp[0], small, 0), 0); /* and now is known to be drained */
    close_both(tcp);
    close_both(ends);
    return unused;
}

/* Those of the library: an eventfd, and with a ring another one. */
static int own_registrations(void)
{
    const char *poller = getenv("ACO_POLLER");
    return poller && strcmp(poller, "uring") == 0 ? 2 : 1;
}

/* ---- Waiting ---- */

/* A file that is not empty. */
static int open_file(void)
{
    int file =
        IS_SIMULATED ? open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600) : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (IS_SIMULATED)
        CHECK_EQ(pwrite(file, "file", 4, 0), 4);
    return file;
}

static void *waits(void *unused)
{
    int ends[2], blocking[2], file = open_file();
    int null = IS_SIMULATED ? dup(file) : open("/dev/null", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    aco_group_t group;
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(aco_io_wait_writable(ends[1]), 0);
    FAILS_WITH(aco_io_wait_readable_until(ends[0], aco_now()), ETIMEDOUT);
    FAILS_WITH(aco_io_wait_readable_until(ends[0], aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    for (int i = 0; i < 3; i++) { /* not owned: each wait registers again */
        char byte = 0;
        member(&group, writes_later, (void *)(intptr_t)ends[1]);
        CHECK_EQ(aco_io_wait_readable(ends[0]), 0);
        CHECK_EQ(aco_io_wait_readable_until(ends[0], aco_now()), 0); /* it still is */
        CHECK_EQ(read(ends[0], &byte, 1), 1);
        CHECK_EQ(byte, 'x');
    }
    CHECK_EQ(aco_io_wait_readable(null), 0); /* epoll does not know these */
    CHECK_EQ(aco_io_wait_readable(file), 0);
    FAILS_WITH(aco_io_wait_readable(-1), EBADF);
    FAILS_WITH(aco_io_wait_readable(999), EBADF);
    CHECK(strstr(aco_error_message(), "aco_io_wait_readable: descriptor 999: ") != NULL);
    CHECK_EQ(pipe(blocking), 0);
    FAILS_WITH(aco_io_wait_readable(blocking[0]), EINVAL);
    CHECK(strstr(aco_error_message(), "is blocking") != NULL);
    CHECK_EQ(aco_io_adopt(blocking[0]), 0);
    FAILS_WITH(aco_io_wait_readable_until(blocking[0], aco_now()), ETIMEDOUT);
    aco_group_end(&group);
    close_both(ends);
    close_both(blocking);
    CHECK_EQ(aco_io_close(null), 0);
    CHECK_EQ(aco_io_close(file), 0);
    FAILS_WITH(aco_io_close(999), EBADF);
    FAILS_WITH(aco_io_release(999), EBADF);
    FAILS_WITH(aco_io_adopt(999), EBADF);
    return unused;
}

/* ---- Bytes ---- */

enum { LARGE = 3000000, PIECE = 70000 };
static char sent[LARGE], received[LARGE];

static void *reads_all(void *fd) /* in pieces, and waiting in between */
{
    size_t at = 0;
    ssize_t n = 1;
    while (n > 0 && at < LARGE) {
        n = aco_io_read((int)(intptr_t)fd, received + at, at + PIECE < LARGE ? PIECE : LARGE - at);
        at += n > 0 ? (size_t)n : 0;
        if (at % 3 == 0)
            aco_task_yield();
    }
    CHECK_EQ(at, LARGE);
    return NULL;
}

static void check_received(void)
{
    CHECK(memcmp(sent, received, LARGE) == 0);
    memset(received, 0, LARGE);
}

static void *writes_all(void *fd)
{
    size_t done = 0;
    CHECK_EQ(aco_io_write_all_done((int)(intptr_t)fd, sent, LARGE, &done), LARGE);
    CHECK_EQ(done, LARGE);
    return NULL;
}

static void *writes_in_vectors(void *fd)
{
    size_t at = 0;
    while (at < LARGE) {
        size_t half = (LARGE - at) / 2;
        struct iovec parts[2];
        ssize_t n;
        parts[0].iov_base = sent + at;
        parts[0].iov_len = half;
        parts[1].iov_base = sent + at + half;
        parts[1].iov_len = LARGE - at - half;
        n = aco_io_writev((int)(intptr_t)fd, parts, 2);
        CHECK(n > 0);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return NULL;
}

static void stream_large(const int pair[2], aco_function_t writes)
{
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_all, (void *)(intptr_t)pair[0]);
    member(&group, writes, (void *)(intptr_t)pair[1]);
    aco_group_end(&group);
    check_received();
}

static void *sends_later(void *fd)
{
    struct iovec part = {sent, 7};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    aco_task_yield();
    CHECK_EQ(aco_io_sendmsg((int)(intptr_t)fd, &message, 0), 7);
    aco_task_yield();
    CHECK_EQ(aco_io_send((int)(intptr_t)fd, sent, 9, 0), 9);
    return NULL;
}

static void *bytes(void *unused)
{
    int pair[2], ends[2];
    char small[16];
    struct iovec parts[2] = {{small, 2}, {small + 2, 14}};
    struct msghdr message = {0};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pair(pair, SOCK_STREAM);
    make_pipe(ends);
    stream_large(pair, writes_all);
    stream_large(ends, writes_all);
    stream_large(pair, writes_in_vectors);
    stream_large(ends, writes_in_vectors);
    close_both(pair);
    make_pair(pair, SOCK_SEQPACKET);
    member(&group, sends_later, (void *)(intptr_t)pair[1]);
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    CHECK_EQ(aco_io_recvmsg(pair[0], &message, 0), 7);
    CHECK(memcmp(small, sent, 7) == 0);
    CHECK_EQ(aco_io_recv(pair[0], small, sizeof small, MSG_PEEK), 9);
    CHECK_EQ(aco_io_readv(pair[0], parts, 2), 9); /* it is still there */
    CHECK(memcmp(small, sent, 9) == 0);
    CHECK_EQ(aco_io_write(pair[1], sent, 3), 3);
    CHECK_EQ(aco_io_recv(pair[0], small, sizeof small, 0), 3);
    FAILS_WITH(aco_io_recv(pair[0], small, sizeof small, MSG_DONTWAIT), EAGAIN);
    FAILS_WITH(aco_io_recvmsg(pair[0], &message, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(aco_io_send(pair[1], sent, 3, MSG_DONTWAIT), 3);
    CHECK_EQ(aco_io_recv(pair[0], small, sizeof small, MSG_DONTWAIT), 3);
    while (aco_io_send(pair[1], sent, 1000, MSG_DONTWAIT) > 0)
        continue;
    while (IS_SIMULATED && aco_io_send(pair[1], sent, 1, MSG_DONTWAIT) > 0) /* it counts bytes, not pages */
        continue;
    CHECK_EQ(errno, EAGAIN);
    FAILS_WITH(aco_io_sendmsg(pair[1], &message, MSG_DONTWAIT), EAGAIN);
    FAILS_WITH(aco_io_writev(pair[1], parts, -1), EINVAL);
    FAILS_WITH(aco_io_readv(pair[0], parts, -1), EINVAL);
    FAILS_WITH(aco_io_writev(ends[1], parts, 100000), EINVAL);
    FAILS_WITH(aco_io_send(ends[1], sent, 3, 0), ENOTSOCK);
    FAILS_WITH(aco_io_read(ends[1], small, 1), EBADF);
    aco_group_end(&group);
    close_both(pair);
    close_both(ends);
    return unused;
}

static void *writes_a_part(void *fd)
{
    CHECK_EQ(aco_io_write((int)(intptr_t)fd, "abc", 3), 3);
    aco_task_yield();
    CHECK_EQ(aco_io_write((int)(intptr_t)fd, "de", 2), 2);
    return NULL;
}

static void *all_of_it(void *unused)
{
    int pair[2];
    char text[8] = "";
    size_t done = 0;
    aco_group_t group;
    aco_scope_t scope;
    make_pair(pair, SOCK_STREAM);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_a_part, (void *)(intptr_t)pair[1]);
    CHECK_EQ(aco_io_read_exactly(pair[0], text, 5), 5);
    CHECK(memcmp(text, "abcde", 5) == 0);
    member(&group, writes_a_part, (void *)(intptr_t)pair[1]);
    aco_scope_begin(&scope, aco_after(ACO_SECOND / 4)); /* time for both parts: what came before the end is told */
    FAILS_WITH(aco_io_read_exactly_done(pair[0], text, 8, &done), ETIMEDOUT);
    CHECK_EQ(done, 5);
    FAILS_WITH(aco_io_write_all_done(pair[1], sent, LARGE, &done), ETIMEDOUT);
    CHECK(done > 0 && done < LARGE);
    aco_scope_end(&scope);
    CHECK_EQ(aco_io_shutdown(pair[1], SHUT_WR), 0);
    CHECK_EQ(aco_io_read_exactly(pair[0], received, LARGE), (ssize_t)done); /* the stream ends earlier */
    CHECK(memcmp(sent, received, done) == 0);
    CHECK_EQ(aco_io_read_exactly(pair[0], text, 1), 0);
    aco_group_end(&group);
    close_both(pair);
    return unused;
}

static void *passes_a_descriptor(void *unused)
{
    int pair[2], ends[2], got = -1;
    char byte = 'd';
    struct iovec part = {&byte, 1};
    rights_t control;
    struct msghdr message = message_with(&part, &control);
    make_pair(pair, SOCK_SEQPACKET);
    make_pipe(ends);
    set_descriptor(&control, ends[1]);
    CHECK_EQ(aco_io_sendmsg(pair[0], &message, 0), 1);
    memset(&control, 0, sizeof control);
    CHECK_EQ(aco_io_recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC), 1);
    memcpy(&got, CMSG_DATA(&control.header), sizeof(int));
    CHECK_EQ(aco_io_write(got, "x", 1), 1);
    CHECK_EQ(aco_io_read(ends[0], &byte, 1), 1);
    CHECK_EQ(aco_io_close(got), 0);
    close_both(pair);
    close_both(ends);
    return unused;
}

static FILE *file_of_sent(void)
{
    FILE *file = tmpfile();
    CHECK(file != NULL && fwrite(sent, 1, LARGE, file) == LARGE && fflush(file) == 0);
    return file;
}

static void *splices_on(void *arg) /* from a pipe to a socket */
{
    const int *fds = arg;
    size_t at = 0;
    while (at < LARGE) {
        ssize_t n = aco_io_splice(fds[0], NULL, fds[1], NULL, LARGE - at, 0);
        CHECK(n > 0);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return NULL;
}

static void *between(void *unused)
{
    int pair[2], ends[2], fds[2];
    int64_t offset = 0;
    FILE *file = file_of_sent();
    aco_group_t group;
    make_pair(pair, SOCK_STREAM);
    make_pipe(ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_all, (void *)(intptr_t)pair[0]);
    while (offset < LARGE)
        if (aco_io_sendfile(pair[1], fileno(file), &offset, LARGE) <= 0)
            break;
    CHECK_EQ(offset, LARGE);
    aco_group_end(&group);
    check_received();
    /* Both sides wait: the pipe for the writer, the socket for the reader. */
    fds[0] = ends[0];
    fds[1] = pair[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, splices_on, fds);
    member(&group, reads_all, (void *)(intptr_t)pair[0]);
    CHECK_EQ(aco_io_write_all(ends[1], sent, LARGE), LARGE);
    aco_group_end(&group);
    check_received();
    offset = 5;
    CHECK_EQ(aco_io_splice(fileno(file), &offset, ends[1], NULL, 10, 0), 10);
    CHECK_EQ(offset, 15);
    CHECK_EQ(aco_io_read(ends[0], received, 16), 10);
    CHECK(memcmp(received, sent + 5, 10) == 0);
    FAILS_WITH(aco_io_splice(pair[0], NULL, pair[1], NULL, 1, 0), EINVAL); /* no pipe */
    FAILS_WITH(aco_io_sendfile(pair[1], 999, NULL, 1), EBADF);
    fclose(file);
    close_both(pair);
    close_both(ends);
    return unused;
}

static void *splices_all(void *arg) /* to the end of the stream */
{
    const int *fds = arg;
    size_t moved = 0;
    ssize_t n;
    while ((n = aco_io_splice(fds[0], NULL, fds[1], NULL, 100, 0)) > 0)
        moved += (size_t)n;
    CHECK_EQ(n, 0);
    return (void *)moved;
}

/* The bytes around urgent data, which a splice leaves out as a read does. */
static void *urgent_data(void *unused)
{
    for (int later = 0; later < 2; later++) {
        int tcp[2], ends[2], fds[2];
        char text[8] = "";
        void *moved = NULL;
        aco_group_t group;
        make_tcp(tcp);
        make_pipe(ends);
        fds[0] = tcp[0];
        fds[1] = ends[1];
        CHECK_EQ(aco_io_write(tcp[1], "ab", 2), 2);
        CHECK_EQ(aco_io_send(tcp[1], "!", 1, MSG_OOB), 1);
        aco_group_begin(&group, ACO_KEEP_GOING);
        CHECK(aco_group_spawn_result(&group, splices_all, fds, &moved, NULL) != NULL);
        if (later) /* it waits at the mark */
            aco_sleep(ACO_MILLISECOND);
        CHECK_EQ(aco_io_write(tcp[1], "cdef", 4), 4);
        if (later) /* what follows passes before the end comes */
            CHECK_EQ(aco_io_read_exactly(ends[0], text, 6), 6);
        CHECK_EQ(aco_io_shutdown(tcp[1], SHUT_WR), 0);
        aco_group_end(&group);
        CHECK_EQ((size_t)moved, 6);
        if (!later)
            CHECK_EQ(aco_io_read(ends[0], text, sizeof text), 6);
        CHECK(memcmp(text, "abcdef", 6) == 0);
        close_both(tcp);
        close_both(ends);
    }
    return unused;
}

static void cut(int fd)
{
    struct linger at_once = {1, 0};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(aco_io_close(fd), 0);
}

/* A reset hides neither what MSG_ERRQUEUE gets, nor bytes that are left. */
static void *left_by_reset(void *unused)
{
    int on = 1, tcp[2], is_told;
    char byte, control[512];
    struct msghdr message = {0};
    make_tcp(tcp);
    is_told = setsockopt(tcp[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0 &&
              aco_io_send(tcp[0], "x", 1, MSG_ZEROCOPY) == 1; /* else the system has not enough locked memory */
    CHECK(!is_told || aco_io_read(tcp[1], &byte, 1) == 1);
    CHECK_EQ(aco_io_write(tcp[1], "x", 1), 1);
    cut(tcp[1]);
    while (aco_io_write(tcp[0], "x", 1) == 1)
        ;
    CHECK_EQ(errno, ECONNRESET);
    CHECK_EQ(aco_io_read(tcp[0], &byte, 0), 0);
    CHECK_EQ(aco_io_read(tcp[0], &byte, 1), 1);
    FAILS_WITH(aco_io_read(tcp[0], &byte, 1), ECONNRESET);
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    CHECK(!is_told || aco_io_recvmsg(tcp[0], &message, MSG_ERRQUEUE) == 0); /* the sent byte's memory is free again */
    FAILS_WITH(aco_io_recvmsg(tcp[0], &message, MSG_ERRQUEUE), EAGAIN);
    CHECK_EQ(aco_io_close(tcp[0]), 0);
    return unused;
}

static void ends_in_order(int fd, int server)
{
    int accepted = aco_io_accept(server);
    char byte;
    CHECK_EQ(aco_io_shutdown(accepted, SHUT_WR), 0);
    CHECK_EQ(aco_io_read(fd, &byte, 1), 0);
    CHECK_EQ(aco_io_close(accepted), 0);
}

/* A socket that is connected again: what has failed before is no failure of the new connection. */
static void *connected_again(void *unused)
{
    int server = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    struct sockaddr_in near, far;
    socklen_t length = sizeof near;
    char byte;
    CHECK_EQ(getsockname(server, (struct sockaddr *)&near, &length), 0);
    far = near;
    far.sin_addr.s_addr = htonl(INADDR_BROADCAST);
    CHECK_EQ(aco_io_adopt(fd), 0);
    CHECK_EQ(aco_io_sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&far, sizeof far), -1);
    CHECK(errno == ENETUNREACH || errno == EOPNOTSUPP); /* the latter: nobody may open fast */
    CHECK(connect(fd, (struct sockaddr *)&near, sizeof near) == 0 || errno == EINPROGRESS);
    CHECK_EQ(aco_io_wait_writable(fd), 0);
    cut(aco_io_accept(server));
    FAILS_WITH(aco_io_read(fd, &byte, 1), ECONNRESET);
    CHECK(connect(fd, &nowhere, sizeof nowhere) == 0);
    CHECK_EQ(aco_io_connect(fd, (struct sockaddr *)&near, sizeof near), 0);
    ends_in_order(fd, server);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_io_close(server), 0);
    return unused;
}

/* Errors of a socket (MSG_ERRQUEUE) are taken, not waited for. */
static void *error_queue(void *unused)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in to = {0};
    char byte, control[512];
    struct iovec part = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(9);
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    FAILS_WITH(aco_io_recvmsg(fd, &message, MSG_ERRQUEUE), EAGAIN);
    FAILS_WITH(aco_io_recv(fd, &byte, 1, MSG_ERRQUEUE), EAGAIN);
    CHECK_EQ(aco_io_connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    CHECK_EQ(aco_io_send(fd, "?", 1, 0), 1); /* nobody listens there */
    CHECK_EQ(aco_io_wait_readable(fd), 0);
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    CHECK_EQ(aco_io_recvmsg(fd, &message, MSG_ERRQUEUE), 1);
    CHECK_EQ(byte, '?');
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

/* ---- What ends waits ---- */

static void *writes_much(void *arg)
{
    wait_ends_t *w = arg;
    w->result = aco_io_write_all(w->fd, sent, LARGE);
    w->error = errno;
    return NULL;
}

static void check_canceled(const wait_ends_t *w, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(w[i].result, -1);
        CHECK_EQ(w[i].error, ECANCELED);
    }
}

static void *closing(void *unused)
{
    int pair[2], other[2], old;
    wait_ends_t w[4];
    char byte = 0;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pair(pair, SOCK_STREAM);
    for (int i = 0; i < 4; i++) {
        w[i].fd = pair[0];
        w[i].result = 1;
        member(&group, i < 3 ? reads_one : writes_much, &w[i]);
    }
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(aco_io_close(pair[0]), 0);
    aco_group_end(&group);
    check_canceled(w, 4);
    CHECK_EQ(aco_io_close(pair[1]), 0);

    /* A task is woken, but before it runs the descriptor is closed and its number is another socket's, with a byte
     * in it. The byte is not the task's. */
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pair(pair, SOCK_STREAM);
    w[0].fd = w[1].fd = old = pair[0];
    member(&group, reads_one, &w[0]);
    member(&group, reads_one, &w[1]);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(write(pair[1], "a", 1), 1);
    CHECK_EQ(aco_io_wait_readable(pair[0]), 0); /* at once, by poll(): the tasks are still asleep */
    CHECK_EQ(aco_io_close(pair[0]), 0);
    make_pair(other, SOCK_STREAM);
    CHECK_EQ(other[0], old);
    CHECK_EQ(write(other[1], "b", 1), 1);
    aco_group_end(&group);
    check_canceled(w, 2);
    CHECK_EQ(aco_io_read(other[0], &byte, 1), 1);
    CHECK_EQ(byte, 'b');
    close_both(other);
    CHECK_EQ(aco_io_close(pair[1]), 0);
    return unused;
}

typedef struct moving {
    int fds[2];
    ssize_t (*move)(const int fds[2]);
    ssize_t result;
    int error;
} moving_t;

static ssize_t by_sendfile(const int fds[2])
{
    int64_t offset = 0;
    ssize_t n;
    do
        n = aco_io_sendfile(fds[1], fds[0], &offset, LARGE);
    while (n > 0);
    return n;
}

static ssize_t by_splice(const int fds[2])
{
    ssize_t n;
    do
        n = aco_io_splice(fds[0], NULL, fds[1], NULL, LARGE, 0);
    while (n > 0);
    return n;
}

static void *moves(void *arg)
{
    moving_t *m = arg;
    m->result = m->move(m->fds);
    m->error = errno;
    return NULL;
}

static void check_moving_ends(moving_t *m, int closed)
{
    aco_group_t group;
    int same = dup(m->fds[closed]);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, moves, m);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(aco_io_close(m->fds[closed]), 0);
    CHECK_EQ(dup(same), m->fds[closed]); /* the number again */
    aco_group_end(&group);
    close(same);
    close(m->fds[closed]);
    CHECK_EQ(m->result, -1);
    CHECK_EQ(m->error, ECANCELED);
}

/* A call that uses two descriptors and waits for one of them notices that the other is closed. It moves no byte of the
 * file that gets the number next. */
static void *closing_the_other(void *unused)
{
    int pair[2], ends[2];
    FILE *file = file_of_sent();
    moving_t m = {{0, 0}, by_sendfile, 0, 0};
    make_pair(pair, SOCK_STREAM);
    make_pipe(ends);
    m.fds[0] = dup(fileno(file));
    m.fds[1] = pair[1];
    check_moving_ends(&m, 0); /* while it waits for the socket, which nobody reads */
    m.move = by_splice;
    m.fds[0] = ends[0];
    check_moving_ends(&m, 1); /* while it waits for the pipe */
    CHECK_EQ(aco_io_close(pair[0]), 0);
    make_pair(pair, SOCK_STREAM);
    while (send(pair[1], sent, LARGE, MSG_DONTWAIT) > 0)
        continue;
    CHECK_EQ(write(ends[1], sent, 10), 10);
    m.fds[1] = pair[1];
    check_moving_ends(&m, 0); /* while it waits for the socket */
    fclose(file);
    close_both(pair);
    CHECK_EQ(aco_io_close(ends[1]), 0);
    return unused;
}

/* Wakes in the round in which the poller has woken the reader, and before it: closes. */
static void *closes_in_between(void *arg)
{
    const int *fds = arg;
    CHECK_EQ(aco_io_wait_readable(fds[1]), 0);
    CHECK_EQ(aco_io_close(fds[0]), 0);
    return NULL;
}

static void *woken_and_closed(void *unused)
{
    int a[2], b[2], fds[2], other[2];
    wait_ends_t w = {0, 0, 0, 0};
    char byte = 0;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pair(a, SOCK_STREAM);
    make_pair(b, SOCK_STREAM);
    fds[0] = w.fd = a[0];
    fds[1] = b[0];
    member(&group, closes_in_between, fds);
    member(&group, reads_one, &w);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(write(b[1], "x", 1), 1); /* one look of the poller finds both, this one first */
    CHECK_EQ(write(a[1], "y", 1), 1);
    aco_group_end(&group);
    CHECK_EQ(w.result, -1);
    CHECK_EQ(w.error, ECANCELED);
    make_pair(other, SOCK_STREAM);
    CHECK_EQ(other[0], a[0]);
    FAILS_WITH(aco_io_wait_readable_until(other[0], aco_now()), ETIMEDOUT);
    CHECK_EQ(write(other[1], "z", 1), 1);
    CHECK_EQ(aco_io_read(other[0], &byte, 1), 1);
    CHECK_EQ(byte, 'z');
    close_both(other);
    close_both(b);
    CHECK_EQ(aco_io_close(a[1]), 0);
    return unused;
}

/* A number whose file its owner, not this library, closed and made again; and one that a duplicate keeps alive. */
static void *numbers_again(void *unused)
{
    int ends[2], other[2], kept;
    char byte;
    wait_ends_t w = {0, 0, 0, 0};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pipe(ends);
    FAILS_WITH(aco_io_wait_readable_until(ends[0], aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    close(ends[0]);
    close(ends[1]);
    make_pipe(other);
    CHECK_EQ(other[0], ends[0]);
    member(&group, writes_later, (void *)(intptr_t)other[1]);
    CHECK_EQ(aco_io_wait_readable(other[0]), 0);
    CHECK_EQ(read(other[0], &byte, 1), 1);
    CHECK_EQ(aco_io_adopt(other[0]), 0);
    kept = dup(other[0]); /* the file lives on */
    FAILS_WITH(aco_io_wait_readable_until(other[0], aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(aco_io_close(other[0]), 0);
    make_pipe(ends);
    CHECK_EQ(ends[0], other[0]);
    w.fd = ends[0];
    member(&group, reads_one, &w);
    CHECK_EQ(write(other[1], "o", 1), 1); /* an event of the old file, if it were still registered */
    member(&group, writes_later, (void *)(intptr_t)ends[1]);
    aco_group_end(&group);
    CHECK_EQ(w.result, 1);
    CHECK_EQ(w.byte, 'x');
    CHECK_EQ(aco_io_adopt(ends[0]), 0);
    CHECK_EQ(aco_io_release(ends[0]), 0);
    FAILS_WITH(aco_io_release(ends[0]), EBADF);
    CHECK(IS_SIMULATED || count_registered() == own_registrations()); /* and no file that lives on in `kept` */
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(kept), 0);
    CHECK_EQ(aco_io_close(ends[1]), 0);
    CHECK_EQ(aco_io_close(other[1]), 0);
    return unused;
}

/* A close closes at once what was waited for. */
static void *closes_at_once(void *unused)
{
    int pair[2];
    char byte;
    make_pair(pair, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(pair[0]), 0);
    FAILS_WITH(aco_io_wait_readable_until(pair[0], aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(aco_io_close(pair[0]), 0);
    CHECK_EQ(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
    close(pair[1]);
    return unused;
}

/* Numbers of descriptors that are not owned: their owner closed them after their last use here. */
static void *numbers_of_another_kind(void *unused)
{
    int ends[2], pair[2], blocking[2];
    char byte;
    make_pipe(ends);
    CHECK_EQ(aco_io_write(ends[1], "p", 1), 1);
    CHECK_EQ(aco_io_read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    make_pair(pair, SOCK_STREAM);
    CHECK_EQ(pair[1], ends[1]);
    close(pair[0]);
    FAILS_WITH(aco_io_write(pair[1], "s", 1), EPIPE); /* and no SIGPIPE, which would end this process */
    close(pair[1]);
    CHECK_EQ(pipe(blocking), 0);
    CHECK(blocking[0] == ends[0] && blocking[1] == ends[1]);
    CHECK_EQ(write(blocking[1], "b", 1), 1);
    FAILS_WITH(aco_io_read(blocking[0], &byte, 1), EINVAL);
    CHECK(strstr(aco_error_message(), "is blocking") != NULL);
    FAILS_WITH(aco_io_write(blocking[1], "b", 1), EINVAL);
    close(blocking[0]);
    close(blocking[1]);
    FAILS_WITH(aco_io_read(blocking[0], &byte, 1), EBADF);
    return unused;
}

static void *cancels(void *scope)
{
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(aco_scope_cancel(scope), 0);
    return NULL;
}

static void *takes_a_turn(void *turns)
{
    ++*(int *)turns;
    return NULL;
}

static void *scopes(void *unused)
{
    int pair[2], tcp[2], turns = 0;
    char text[8];
    struct iovec part = {sent, 1};
    struct msghdr message = {0};
    wait_ends_t w = {0, 0, 0, 0};
    aco_scope_t scope;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_pair(pair, SOCK_STREAM);
    aco_scope_begin(&scope, ACO_FOREVER);
    member(&group, cancels, &scope);
    FAILS_WITH(aco_io_read(pair[0], text, 1), ECANCELED);
    FAILS_WITH(aco_io_read(pair[0], text, 1), ECANCELED); /* again and again */
    CHECK_EQ(aco_io_write(pair[1], "k", 1), 1);           /* what need not wait succeeds */
    CHECK_EQ(aco_io_read(pair[0], text, 1), 1);
    CHECK_EQ(text[0], 'k');
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_io_wait_readable(pair[0]), ETIMEDOUT);
    FAILS_WITH(aco_io_accept(pair[0]), EINVAL); /* no listener */
    aco_scope_end(&scope);
    /* After a short read a TCP socket is known to be drained, and the next read waits without trying. What has come
     * since is returned although the scope has ended. */
    make_tcp(tcp);
    FAILS_WITH(aco_io_wait_readable_until(tcp[0], aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(aco_io_write(tcp[1], "ab", 2), 2);
    let_arrive();
    CHECK_EQ(aco_io_read(tcp[0], text, 8), 2);
    member(&group, takes_a_turn, &turns); /* if a write waited */
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    CHECK_EQ(aco_io_write(tcp[0], sent, 1), 1);
    CHECK_EQ(aco_io_writev(tcp[0], &part, 1), 1);
    CHECK_EQ(aco_io_send(tcp[0], sent, 1, 0), 1);
    CHECK_EQ(aco_io_sendmsg(tcp[0], &message, 0), 1);
    CHECK_EQ(turns, 0);
    CHECK_EQ(aco_io_write(tcp[1], "c", 1), 1);
    let_arrive();
    aco_scope_begin(&scope, aco_now());
    aco_scope_cancel(&scope);
    CHECK_EQ(aco_io_read(tcp[0], text, 8), 1);
    CHECK_EQ(text[0], 'c');
    FAILS_WITH(aco_io_read(tcp[0], text, 8), ECANCELED);
    FAILS_WITH(aco_io_wait_readable(tcp[0]), ECANCELED);
    CHECK_EQ(aco_io_write(tcp[1], "c", 1), 1);
    if (IS_SIMULATED) { /* in a scope that has ended nobody sleeps */
        aco_scope_end(&scope);
        let_arrive();
        aco_scope_begin(&scope, aco_now());
        aco_scope_cancel(&scope);
    }
    CHECK_EQ(aco_io_wait_readable(tcp[0]), 0); /* as a read does */
    CHECK_EQ(aco_io_read(tcp[0], text, 8), 1);
    aco_scope_end(&scope);
    CHECK_EQ(aco_io_write(tcp[1], "c", 1), 1);
    let_arrive();
    CHECK_EQ(aco_io_wait_readable_until(tcp[0], aco_now()), 0);
    CHECK_EQ(aco_io_read(tcp[0], text, 8), 1);
    w.fd = pair[0];
    member(&group, reads_one, &w); /* keeps the poller busy */
    CHECK_EQ(aco_io_write(tcp[1], "d", 1), 1);
    aco_sleep(2 * ACO_MILLISECOND); /* its event comes while nobody waits for it */
    CHECK_EQ(aco_io_read(tcp[0], text, 8), 1);
    CHECK_EQ(aco_io_write(pair[1], "e", 1), 1);
    aco_group_end(&group);
    close_both(pair);
    close_both(tcp);
    return unused;
}

static void *echoes_once(void *fd)
{
    char text[64];
    ssize_t n = IS_SIMULATED ? aco_io_read_exactly((int)(intptr_t)fd, text, 5) /* segments may be shorter */
                             : aco_io_read((int)(intptr_t)fd, text, sizeof text);
    CHECK_EQ(aco_io_write((int)(intptr_t)fd, text, (size_t)n), n);
    n = aco_io_read((int)(intptr_t)fd, text, sizeof text); /* the end, told by an event of its own or by the last one */
    CHECK_EQ(n, 0);
    CHECK_EQ(aco_io_write((int)(intptr_t)fd, "bye", 3), 3);
    CHECK_EQ(aco_io_close((int)(intptr_t)fd), 0);
    return NULL;
}

static void *half_close(void *unused)
{
    for (int together = 0; together < 2; together++) {
        int tcp[2];
        char text[8];
        aco_group_t group;
        aco_group_begin(&group, ACO_KEEP_GOING);
        make_tcp(tcp);
        member(&group, echoes_once, (void *)(intptr_t)tcp[1]);
        aco_task_yield(); /* it waits */
        CHECK_EQ(aco_io_write(tcp[0], "hello", 5), 5);
        if (together) /* one event for the bytes and the end */
            CHECK_EQ(aco_io_shutdown(tcp[0], SHUT_WR), 0);
        CHECK_EQ(aco_io_read_exactly(tcp[0], text, 5), 5);
        if (!together)
            CHECK_EQ(aco_io_shutdown(tcp[0], SHUT_WR), 0);
        CHECK_EQ(aco_io_read_exactly(tcp[0], text, 8), 3);
        aco_group_end(&group);
        CHECK_EQ(aco_io_read(tcp[0], text, 8), 0); /* the end stays */
        CHECK_EQ(aco_io_close(tcp[0]), 0);
    }
    return unused;
}

static void *resets(void *unused)
{
    int tcp[2];
    struct linger reset = {1, 0};
    wait_ends_t w = {0, 0, 0, 0};
    struct iovec part = {sent, 1};
    sigset_t mask, pending;
    int file = open_file();
    int64_t offset = 0;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    make_tcp(tcp);
    w.fd = tcp[0];
    member(&group, reads_one, &w);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(setsockopt(tcp[1], SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    CHECK_EQ(aco_io_close(tcp[1]), 0);
    aco_group_end(&group);
    CHECK_EQ(w.result, -1);
    CHECK_EQ(w.error, ECONNRESET);
    FAILS_WITH(aco_io_write(tcp[0], "x", 1), EPIPE); /* and no SIGPIPE, which would end this process */
    FAILS_WITH(aco_io_writev(tcp[0], &part, 1), EPIPE);
    FAILS_WITH(aco_io_send(tcp[0], "x", 1, 0), EPIPE);
    FAILS_WITH(aco_io_sendfile(tcp[0], file, &offset, 1), EPIPE);
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    CHECK(sigemptyset(&mask) == 0 && sigaddset(&mask, SIGPIPE) == 0);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
    FAILS_WITH(aco_io_sendfile(tcp[0], file, &offset, 1), EPIPE);
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &mask, NULL), 0);
    close(file);
    CHECK_EQ(aco_io_close(tcp[0]), 0);
    return unused;
}

/* A thread of its own with a poller: what it has is closed when it ends. */
static void *thread_with_io(void *unused)
{
    run_task(waits, NULL);
    run_task(closing, NULL);
    return unused;
}

static void threads_end(void)
{
    int before = count_descriptors();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, thread_with_io, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(count_descriptors(), before);
}

int main(void)
{
    int before;
    static const aco_function_t tests[] = {waits,   bytes,         all_of_it,      passes_a_descriptor,
                                           closing, numbers_again, closes_at_once, numbers_of_another_kind,
                                           scopes,  half_close,    resets,         nothing};
    static const aco_function_t in_kernel[] = {between,         closing_the_other, /* splice() of files */
                                               urgent_data,     error_queue,       left_by_reset,
                                               connected_again, woken_and_closed}; /* in this order */
    for (int i = 0; i < LARGE; i++)
        sent[i] = (char)(i * 7 + i / 251);
    CHECK(aco_io_poll_fd() >= 0);
    before = count_descriptors();
    run_tests(tests, sizeof tests / sizeof *tests, before);
    if (!IS_SIMULATED) {
        run_tests(in_kernel, sizeof in_kernel / sizeof *in_kernel, before);
        threads_end();
    }
    return check_result("io");
}
