/* Hooked calls do what libc's do: each case runs in a child process without hooks and in another with them, and what it
 * notes must be the same: results, errno, bytes, signals. Where hooks differ on purpose the table says why. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* it ends a process whose arguments are wrong, as some here are */
#include <aco/hook.h>
#include "check.h"
#include "io_tests.h"
#include "sanitizers.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_NOTES = 2000, CHILD_SECONDS = 60 };

/* What a child has noted, in memory that the parent shares. */
typedef struct note {
    char what[100];
    int64_t result;
    int error;
} note_t;
typedef struct notes {
    unsigned count;
    note_t notes[MOST_NOTES];
} notes_t;

static notes_t *noted;
static const char *about = "";
static char *bad; /* memory that nobody may use */

static void note(const char *what, int64_t result)
{
    note_t *n = &noted->notes[noted->count];
    n->error = result < 0 ? errno : 0;
    n->result = result;
    snprintf(n->what, sizeof n->what, "%s%s", about, what);
    noted->count += noted->count < MOST_NOTES - 1;
}

/* The result of a call, and errno if that is negative. */
#define NOTE(call) \
    do { \
        errno = 0; \
        note(#call, (int64_t)(call)); \
    } while (0)

/* A receive on a socket with a time limit. A process that was stopped and continues gets EINTR from the system there
 * (signal(7)), and from the hook not: it is called again. */
#define NOTE_LIMITED(call) \
    do { \
        int64_t result; \
        do { \
            errno = 0; \
            result = (int64_t)(call); \
        } while (result < 0 && errno == EINTR); \
        note(#call, result); \
    } while (0)

static void note_bytes(const char *what, const void *p, size_t n)
{
    uint32_t sum = 1;
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + ((const unsigned char *)p)[i];
    note(what, sum);
}

/* ---- Partners: threads without hooks ---- */

static pid_t caller;

/* Waits until the thread of the calls sleeps; not longer than some time, as it may have nothing to wait for. */
static void until_asleep(void)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)caller);
    for (int found = 0, i = 0; found < 3 && i < 30000; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        const char *end;
        CHECK_EQ(close(fd), 0);
        text[n > 0 ? n : 0] = 0;
        end = strrchr(text, ')');
        found = end && end[2] == 'S' ? found + 1 : 0;
        usleep(300);
    }
}

static pthread_t beside(void *(*partner)(void *arg), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, partner, arg), 0);
    return thread;
}

static void join(pthread_t thread)
{
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- Descriptors of all kinds ---- */

enum { TCP, UNIX_STREAM, UNIX_DATAGRAM, UNIX_PACKET, UDP, PIPE_END, PIPE_START, REGULAR, FOLDER, EVENTS, EPOLL,
       LISTENER, UNCONNECTED, CLOSED, NO_NUMBER, KINDS };
static const char *const kind_names[] = {"TCP",  "unix stream", "unix datagram", "unix packet", "UDP",
                                         "pipe", "pipe to write", "file", "folder", "eventfd", "epoll",
                                         "listener", "unconnected", "closed", "-1"};

static void tcp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(pair[0], (struct sockaddr *)&address, length), 0);
    pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(pair[1] >= 0);
    CHECK_EQ(close(listener), 0);
}

static void udp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, other = address;
    socklen_t length = sizeof address;
    for (int i = 0; i < 2; i++) {
        pair[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(bind(pair[i], (struct sockaddr *)&address, length), 0);
    }
    CHECK_EQ(getsockname(pair[0], (struct sockaddr *)&other, &length), 0);
    CHECK_EQ(connect(pair[1], (struct sockaddr *)&other, length), 0);
    CHECK_EQ(getsockname(pair[1], (struct sockaddr *)&other, &length), 0);
    CHECK_EQ(connect(pair[0], (struct sockaddr *)&other, length), 0);
}

static void unix_pair(int pair[2], int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

/* Descriptors with something to read where that can be; pair[1] is the other end or -1. */
static void open_kind(int kind, int pair[2])
{
    static const int types[] = {0, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    char path[] = "/tmp/hook_differential.XXXXXX";
    pair[0] = pair[1] = -1;
    switch (kind) {
    case TCP:
        tcp_pair(pair);
        break;
    case UDP:
        udp_pair(pair);
        break;
    case UNIX_STREAM:
    case UNIX_DATAGRAM:
    case UNIX_PACKET:
        unix_pair(pair, types[kind]);
        break;
    case PIPE_END:
    case PIPE_START:
        CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
        break;
    case REGULAR:
        pair[0] = mkostemp(path, O_CLOEXEC);
        CHECK_EQ(unlink(path), 0);
        CHECK_EQ(write(pair[0], "hello world", 11), 11);
        CHECK_EQ(lseek(pair[0], 0, SEEK_SET), 0);
        return;
    case FOLDER:
        pair[0] = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return;
    case EVENTS:
        pair[0] = eventfd(1, EFD_CLOEXEC);
        return;
    case EPOLL:
        pair[0] = epoll_create1(EPOLL_CLOEXEC);
        return;
    case LISTENER:
    case UNCONNECTED:
        pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (kind == LISTENER)
            CHECK_EQ(listen(pair[0], 1), 0);
        return;
    case CLOSED:
        pair[0] = open("/", O_RDONLY | O_CLOEXEC);
        CHECK_EQ(close(pair[0]), 0);
        return;
    default:
        return;
    }
    CHECK_EQ(write(pair[1], "hello world", 11), 11);
    if (kind == PIPE_START) {
        int end = pair[0];
        pair[0] = pair[1];
        pair[1] = end;
    }
}

static void close_kind(int kind, const int pair[2])
{
    if (kind != CLOSED && pair[0] >= 0)
        CHECK_EQ(close(pair[0]), 0);
    if (pair[1] >= 0)
        CHECK_EQ(close(pair[1]), 0);
}

/* ---- Arguments, on each kind. Nothing here waits without hooks ---- */

#define BAD ((void *)(uintptr_t)(void *volatile)bad) /* that no compiler sees */
static void *volatile null;
static volatile int below = -1, above = 1025, most = INT_MAX; /* likewise */
static char room[64];

#define ON(call) \
    do { \
        int pair[2], fd; \
        open_kind(kind, pair); \
        fd = pair[0]; \
        NOTE(call); \
        close_kind(kind, pair); \
    } while (0)

/* In 32 bits libc converts times itself, and ends by a signal where it cannot read them. */
enum { SYSTEM_READS_TIMES = sizeof(void *) > 4 };

static struct iovec parts_of(void *p, size_t n)
{
    struct iovec part = {p, n};
    return part;
}

static struct msghdr message_of(struct iovec *parts, size_t n)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = n};
    return message;
}

static void bytes_of(int kind)
{
    struct iovec good[2] = {parts_of(room, 2), parts_of(room + 2, 3)}, none = parts_of(room, 0);
    struct iovec half[2] = {parts_of(room, 2), parts_of(BAD, 3)}, wrong = parts_of(BAD, 3);
    struct iovec large = parts_of(room, SIZE_MAX);
    int is_to_write = kind == PIPE_START;
    if (kind != LISTENER && !is_to_write) {
        ON(read(fd, room, 5));
        ON(read(fd, BAD, 5));
        ON(read(fd, null, 5));
        ON(read(fd, room, 0));
        ON(readv(fd, good, 2));
        ON(readv(fd, &none, 1));
        ON(readv(fd, half, 2));
        ON(readv(fd, &wrong, 1));
        ON(readv(fd, BAD, 1));
        ON(readv(fd, null, 1));
        ON(readv(fd, good, 0));
        ON(readv(fd, good, below));
        ON(readv(fd, good, above));
        ON(readv(fd, &large, 1));
    }
    if (kind != PIPE_END) {
        ON(write(fd, room, 5));
        ON(write(fd, BAD, 5));
        ON(write(fd, room, 0));
        ON(writev(fd, good, 2));
        ON(writev(fd, &none, 1));
        ON(writev(fd, half, 2));
        ON(writev(fd, &wrong, 1));
        ON(writev(fd, BAD, 1));
        ON(writev(fd, null, 1));
        ON(writev(fd, good, 0));
        ON(writev(fd, good, below));
        ON(writev(fd, good, above));
        ON(writev(fd, &large, 1));
    }
}

static void sockets_of(int kind)
{
    struct iovec good = parts_of(room, 5), wrong = parts_of(BAD, 3);
    struct msghdr message = message_of(&good, 1), bad_parts = message_of(BAD, 1), null_parts = message_of(null, 1),
                  bad_bytes = message_of(&wrong, 1), many = message_of(&good, 1025), empty = message_of(NULL, 0),
                  negative = message, bad_name = message, bad_control = message;
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    negative.msg_name = bad_name.msg_name = &address;
    negative.msg_namelen = (socklen_t)-1;
    bad_name.msg_name = BAD;
    bad_name.msg_namelen = sizeof address;
    bad_control.msg_control = BAD;
    bad_control.msg_controllen = 64;
    if (kind == LISTENER)
        return;
    memset(&address, 0, sizeof address);
    ON(recv(fd, room, 5, 0));
    ON(recv(fd, room, 5, MSG_PEEK));
    ON(recv(fd, BAD, 5, 0));
    ON(recv(fd, room, 5, MSG_WAITALL));
    ON(recv(fd, room, 5, MSG_TRUNC));
    ON(recvfrom(fd, room, 5, 0, (struct sockaddr *)&address, &length));
    ON(recvfrom(fd, room, 5, 0, NULL, null));
    ON(recvfrom(fd, room, 5, 0, NULL, BAD));
    ON(recvfrom(fd, room, 5, 0, NULL, &length));
    note("length", length);
    ON(recvmsg(fd, &message, 0));
    ON(recvmsg(fd, null, 0));
    ON(recvmsg(fd, BAD, 0));
    ON(recvmsg(fd, null, MSG_WAITALL));
    ON(recvmsg(fd, &bad_parts, 0));
    ON(recvmsg(fd, &null_parts, 0));
    ON(recvmsg(fd, &bad_bytes, 0));
    ON(recvmsg(fd, &many, 0));
    ON(recvmsg(fd, &negative, 0));
    ON(send(fd, room, 5, MSG_NOSIGNAL));
    ON(send(fd, BAD, 5, MSG_NOSIGNAL));
    ON(sendto(fd, room, 5, MSG_NOSIGNAL, BAD, sizeof address));
    ON(sendto(fd, room, 5, MSG_NOSIGNAL, (struct sockaddr *)&address, (socklen_t)below));
    ON(sendto(fd, room, 5, MSG_NOSIGNAL, (struct sockaddr *)&address, 200));
    ON(sendto(fd, room, 5, MSG_NOSIGNAL, NULL, 200));
    ON(sendmsg(fd, &message, MSG_NOSIGNAL));
    ON(sendmsg(fd, null, MSG_NOSIGNAL));
    ON(sendmsg(fd, BAD, MSG_NOSIGNAL));
    ON(sendmsg(fd, &bad_parts, MSG_NOSIGNAL));
    ON(sendmsg(fd, &null_parts, MSG_NOSIGNAL));
    ON(sendmsg(fd, &bad_bytes, MSG_NOSIGNAL));
    ON(sendmsg(fd, &many, MSG_NOSIGNAL));
    ON(sendmsg(fd, &negative, MSG_NOSIGNAL));
    ON(sendmsg(fd, &bad_name, MSG_NOSIGNAL));
    ON(sendmsg(fd, &bad_control, MSG_NOSIGNAL));
    ON(sendmsg(fd, &empty, MSG_NOSIGNAL));
}

static void batches_of(int kind)
{
    struct iovec good = parts_of(room, 5);
    struct mmsghdr messages[2] = {{.msg_hdr = message_of(&good, 1)}, {.msg_hdr = message_of(BAD, 1)}};
    struct timespec limit = {1, 0}, wrong = {0, 2000000000}, negative = {-1, 0}, zero = {0, 0};
    off_t offset = -1;
    if (kind == LISTENER)
        return;
    ON(recvmmsg(fd, messages, 1, 0, NULL));
    note("length", messages[0].msg_len);
    ON(recvmmsg(fd, null, 1, 0, NULL));
    ON(recvmmsg(fd, BAD, 1, 0, NULL));
    ON(recvmmsg(fd, messages, 0, 0, NULL));
    ON(recvmmsg(fd, messages, 1, 0, &limit));
    ON(recvmmsg(fd, messages, 1, 0, &zero));
    ON(recvmmsg(fd, messages, 1, 0, &wrong));
    ON(recvmmsg(fd, messages, 1, 0, &negative));
    if (SYSTEM_READS_TIMES)
        ON(recvmmsg(fd, messages, 1, 0, BAD));
    ON(sendmmsg(fd, messages, 1, MSG_NOSIGNAL));
    ON(sendmmsg(fd, messages, 2, MSG_NOSIGNAL));
    ON(sendmmsg(fd, messages + 1, 1, MSG_NOSIGNAL));
    ON(sendmmsg(fd, null, 1, MSG_NOSIGNAL));
    ON(sendmmsg(fd, messages, 0, MSG_NOSIGNAL));
    if (kind != PIPE_END) {
        ON(sendfile(fd, -1, NULL, 5));
        ON(sendfile(fd, fd, BAD, 5));
        ON(sendfile(fd, fd, &offset, 5));
    }
}

static void connections_of(int kind)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0xff, sizeof address);
    ON(connect(fd, null, 16));
    ON(connect(fd, BAD, 16));
    ON(connect(fd, (struct sockaddr *)&address, 0));
    ON(connect(fd, (struct sockaddr *)&address, (socklen_t)-1));
    ON(connect(fd, (struct sockaddr *)&address, 2));
    ON(connect(fd, (struct sockaddr *)&address, sizeof address));
    if (kind == LISTENER)
        return;
    ON(accept(fd, NULL, NULL));
    ON(accept(fd, NULL, BAD));
    ON(accept(fd, (struct sockaddr *)&address, null));
    ON(accept(fd, (struct sockaddr *)&address, &length));
    ON(accept4(fd, NULL, NULL, -1));
}

static void files_of(int kind)
{
    struct iovec good[2] = {parts_of(room, 2), parts_of(room + 2, 3)};
    struct iovec half[2] = {parts_of(room, 2), parts_of(BAD, 3)}, wrong = parts_of(BAD, 3);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, odd = {.l_type = 99};
    if (kind == REGULAR || kind == FOLDER || kind >= CLOSED) { /* pipes and sockets are the subject of files' tests */
        ON(pread(fd, room, 5, 0));
        ON(pread(fd, BAD, 5, 0));
        ON(pread(fd, room, 5, -1));
        ON(preadv(fd, good, 2, 0));
        ON(preadv(fd, half, 2, 0));
        ON(preadv(fd, &wrong, 1, 0));
        ON(preadv(fd, BAD, 1, 0));
        ON(preadv(fd, null, 1, 0));
        ON(preadv(fd, good, 2, -5));
        ON(pwrite(fd, room, 5, 0));
        ON(pwrite(fd, BAD, 5, 0));
        ON(pwritev(fd, good, 2, 0));
        ON(pwritev(fd, half, 2, 0));
        ON(pwritev(fd, BAD, 1, 0));
    }
    ON(fsync(fd));
    ON(fdatasync(fd));
    ON(flock(fd, 0));
    ON(flock(fd, LOCK_EX));
    ON(flock(fd, -1));
    ON(lockf(fd, F_LOCK, 0));
    ON(lockf(fd, F_LOCK, LONG_MIN));
    ON(lockf(fd, 99, 0));
    ON(fcntl(fd, F_SETLKW, &lock));
    ON(fcntl(fd, F_SETLKW, &odd));
    ON(fcntl(fd, F_SETLKW, BAD));
    ON(fcntl(fd, F_SETLKW, null));
    ON(fcntl(fd, F_OFD_SETLKW, &lock));
}

static void on_each_kind(void (*calls)(int kind))
{
    static char name[40];
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(name, sizeof name, "%s: ", kind_names[kind]);
        about = name;
        calls(kind);
    }
    about = "";
}

static void case_bytes(void)
{
    on_each_kind(bytes_of);
}

static void case_sockets(void)
{
    on_each_kind(sockets_of);
}

static void case_batches(void)
{
    on_each_kind(batches_of);
}

static void case_connections(void)
{
    on_each_kind(connections_of);
}

static void case_files(void)
{
    on_each_kind(files_of);
}

/* ---- Arguments of other calls ---- */

static void case_receive_lengths(void)
{
    struct sockaddr_storage address;
    socklen_t negative = (socklen_t)-1;
    int kind = UDP;
    ON(recvfrom(fd, room, 5, 0, (struct sockaddr *)&address, null));
    ON(recvfrom(fd, room, 5, 0, (struct sockaddr *)&address, BAD));
    ON(recvfrom(fd, room, 5, 0, (struct sockaddr *)&address, &negative));
}

static void case_polls(void)
{
    struct pollfd p = {-1, POLLIN, 0}, closed = {1000, POLLIN, 0};
    struct timespec ms = {0, 1000000}, wrong = {0, 2000000000}, negative = {-1, 0};
    struct epoll_event event;
    sigset_t none;
    int epoll = epoll_create1(EPOLL_CLOEXEC), kind = EPOLL;
    sigemptyset(&none);
    NOTE(poll(null, 1, 1));
    NOTE(poll(null, 1, -1));
    NOTE(poll(BAD, 1, -1));
    NOTE(poll(null, 0, 1));
    NOTE(poll(&p, 1, 1));
    NOTE(poll(&closed, 1, -1));
    NOTE(poll(&p, (nfds_t)most, -1));
    NOTE(ppoll(null, 1, &ms, NULL));
    NOTE(ppoll(null, 1, NULL, &none));
    NOTE(ppoll(&p, 1, &wrong, NULL));
    NOTE(ppoll(&p, 1, &negative, NULL));
    NOTE(ppoll(&p, 1, &ms, &none));
    NOTE(ppoll(&p, 1, &ms, BAD));
    NOTE(epoll_wait(epoll, &event, 0, -1));
    NOTE(epoll_wait(epoll, &event, below, -1));
    NOTE(epoll_wait(epoll, &event, most, -1));
    NOTE(epoll_wait(epoll, &event, 1, 1));
    NOTE(epoll_wait(-1, &event, 1, -1));
    NOTE(epoll_wait(0, &event, 1, -1));
    NOTE(epoll_pwait(epoll, &event, 0, -1, &none));
    NOTE(epoll_pwait(epoll, &event, 1, 1, &none));
    NOTE(epoll_pwait(epoll, &event, 1, 1, BAD));
#if __GLIBC_PREREQ(2, 35)
    NOTE(epoll_pwait2(epoll, &event, 1, &ms, NULL));
    NOTE(epoll_pwait2(epoll, &event, 1, &wrong, NULL));
    if (SYSTEM_READS_TIMES)
        NOTE(epoll_pwait2(epoll, &event, 1, BAD, NULL));
#endif
    ON(epoll_wait(fd, &event, 1, 1));
    CHECK_EQ(close(epoll), 0);
}

static void case_selects(void)
{
    struct timeval ms = {0, 1000}, many = {0, 1000000 + 1}, negative = {-1, 0}, odd = {0, -1};
    struct timespec ns = {0, 1000000}, wrong = {0, -1};
    fd_set *set = malloc(sizeof *set);
    int pair[2];
    unix_pair(pair, SOCK_STREAM);
    CHECK_EQ(write(pair[1], "x", 1), 1);
#define NOTE_SET(n, call) \
    do { \
        FD_ZERO(set); \
        FD_SET(n, set); \
        NOTE(call); \
        note_bytes("the set", set, sizeof *set); \
    } while (0)
    NOTE_SET(pair[0], select(pair[0] + 1, set, NULL, NULL, &ms));
    NOTE_SET(pair[1], select(pair[1] + 1, set, NULL, NULL, &ms));
    note("seconds", ms.tv_sec);
    NOTE_SET(pair[1], select(pair[1] + 1, NULL, set, NULL, NULL));
    NOTE_SET(pair[0], select(most, set, NULL, NULL, NULL)); /* the table of descriptors is what counts */
    NOTE_SET(pair[0], select(sysconf(_SC_OPEN_MAX) > 100000 ? 100000 : (int)sysconf(_SC_OPEN_MAX), set, NULL, NULL,
                             NULL));
    NOTE_SET(60, select(61, set, NULL, NULL, NULL));
    NOTE_SET(1000, select(1001, set, NULL, NULL, &many));
    NOTE_SET(pair[0], select(-1, set, NULL, NULL, NULL));
    NOTE_SET(pair[0], select(pair[0] + 1, set, NULL, NULL, &negative));
    NOTE_SET(pair[0], select(pair[0] + 1, set, NULL, NULL, &odd));
    NOTE_SET(pair[0], select(pair[0] + 1, BAD, NULL, NULL, NULL));
    NOTE_SET(pair[0], pselect(pair[0] + 1, set, NULL, NULL, &ns, NULL));
    NOTE_SET(pair[0], pselect(pair[0] + 1, set, NULL, NULL, &wrong, NULL));
    NOTE(select(0, NULL, NULL, NULL, &many));
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
    free(set);
}

static void case_times(void)
{
    struct timespec ns = {0, 1000}, wrong = {0, 1000000000}, negative = {-1, 0}, rest = {7, 7}, past = {1, 0};
    NOTE(nanosleep(&ns, &rest));
    note("the rest", rest.tv_sec);
    NOTE(nanosleep(&ns, BAD));
    NOTE(nanosleep(&wrong, NULL));
    NOTE(nanosleep(&negative, NULL));
    if (SYSTEM_READS_TIMES) {
        NOTE(nanosleep(null, NULL));
        NOTE(nanosleep(BAD, NULL));
    }
    NOTE(clock_nanosleep(CLOCK_MONOTONIC, 0, &ns, NULL));
    NOTE(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL));
    NOTE(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL));
    NOTE(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &negative, NULL));
    if (SYSTEM_READS_TIMES)
        NOTE(clock_nanosleep(CLOCK_REALTIME, 0, BAD, NULL));
    NOTE(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ns, NULL));
    NOTE(clock_nanosleep(99, 0, &ns, NULL));
    NOTE(usleep(0));
    NOTE(usleep(1));
    NOTE(sleep(0));
    NOTE(sched_yield());
}

static void case_paths(void)
{
    char *path = malloc(2 * PATH_MAX);
    memset(path, 'x', 2 * PATH_MAX);
    path[2 * PATH_MAX - 1] = 0;
    NOTE(open(null, O_RDONLY));
    NOTE(open(BAD, O_RDONLY));
    NOTE(open(path, O_RDONLY));
    NOTE(open("", O_RDONLY));
    NOTE(open("/tmp/none/none", O_RDONLY));
    NOTE(open("/", O_WRONLY));
    NOTE(openat(-1, "none", O_RDONLY));
    NOTE(openat(-1, BAD, O_RDONLY));
    NOTE(creat(BAD, 0600));
    NOTE(creat("/", 0600));
    NOTE(dup2(-1, 5));
    NOTE(dup2(0, -1));
    NOTE(dup3(0, 0, 0));
    NOTE(dup3(0, 5, -1));
    NOTE(close(-1));
    NOTE(close(1000));
    free(path);
}

static void case_children(void)
{
    int status = -1;
    pid_t child;
    NOTE(wait(&status));
    NOTE(waitpid(-1, &status, 0));
    NOTE(waitpid(1, &status, 0));
    NOTE(waitpid(-1, &status, -1));
    NOTE(waitpid(INT_MIN, &status, 0));
    NOTE(wait4(-1, &status, 0, NULL));
    for (int way = 0; way < 2; way++) {
        child = fork();
        if (child == 0)
            _exit(7 + way);
        errno = 0;
        note("waitpid()", (way ? waitpid(-1, &status, 0) : waitpid(child, &status, 0)) == child);
        note("its status", status);
    }
    child = fork();
    if (child == 0)
        _exit(0);
    NOTE(waitpid(child, BAD, 0));
    NOTE(system(NULL));
    NOTE(system("exit 3"));
}

static void case_locks(void)
{
    struct timespec past = {1, 0}, wrong = {0, -1}, before = {-1, 0};
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    sem_t semaphore;
    CHECK_EQ(sem_init(&semaphore, 0, 1), 0);
    NOTE(sem_timedwait(&semaphore, &wrong));
    NOTE(sem_timedwait(&semaphore, &past));
    NOTE(sem_timedwait(&semaphore, &past));
    NOTE(sem_timedwait(&semaphore, &before));
    if (SYSTEM_READS_TIMES)
        NOTE(pthread_mutex_timedlock(&mutex, null));
    NOTE(pthread_mutex_timedlock(&mutex, &past));
    NOTE(pthread_mutex_timedlock(&mutex, &before));
    NOTE(pthread_mutex_timedlock(&mutex, &wrong));
    NOTE(pthread_mutex_trylock(&mutex));
    NOTE(pthread_mutex_unlock(&mutex));
    NOTE(pthread_mutex_timedlock(&checked, &wrong));
    NOTE(pthread_mutex_timedlock(&checked, &past));
    NOTE(pthread_mutex_lock(&checked));
    NOTE(pthread_mutex_unlock(&checked));
    CHECK_EQ(sem_destroy(&semaphore), 0);
}

/* ---- Transfers in parts ---- */

typedef struct plan {
    int fd;
    int (*last)(int fd); /* how it ends */
} plan_t;

static int shuts(int fd)
{
    return shutdown(fd, SHUT_WR);
}

static int stays(int fd)
{
    return fd >= 0 ? 0 : -1;
}

static int resets(int fd)
{
    struct linger now = {1, 0};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    return close(fd);
}

static void *sends_two(void *arg)
{
    const plan_t *plan = arg;
    until_asleep();
    CHECK_EQ(send(plan->fd, "abc", 3, 0), 3);
    until_asleep();
    CHECK_EQ(send(plan->fd, "defg", 4, 0), 4);
    until_asleep();
    CHECK_EQ(plan->last(plan->fd), 0);
    return NULL;
}

static void receives_all(int kind, size_t n, int flags, int (*last)(int fd))
{
    int pair[2];
    char bytes[20] = "";
    plan_t plan = {-1, last};
    pthread_t partner;
    open_kind(kind, pair);
    CHECK_EQ(recv(pair[0], bytes, 11, 0), 11);
    plan.fd = pair[1];
    partner = beside(sends_two, &plan);
    NOTE(recv(pair[0], bytes, n, flags));
    note_bytes("bytes", bytes, sizeof bytes);
    join(partner);
    if (last != stays || flags & MSG_PEEK) {
        NOTE(recv(pair[0], bytes, n, 0));
        NOTE(recv(pair[0], bytes, n, MSG_DONTWAIT));
    }
    CHECK_EQ(close(pair[0]), 0);
    if (last != resets)
        CHECK_EQ(close(pair[1]), 0);
}

static void case_wait_for_all(void)
{
    receives_all(TCP, 7, MSG_WAITALL, stays);
    receives_all(TCP, 10, MSG_WAITALL, shuts);
    receives_all(TCP, 10, MSG_WAITALL, resets);
    receives_all(TCP, 7, MSG_WAITALL | MSG_PEEK, stays);
    receives_all(TCP, 10, MSG_WAITALL | MSG_PEEK, shuts);
    receives_all(TCP, 10, MSG_WAITALL | MSG_PEEK, resets);
    receives_all(UNIX_STREAM, 7, MSG_WAITALL, stays);
    receives_all(UNIX_STREAM, 10, MSG_WAITALL, shuts);
    receives_all(UNIX_STREAM, 3, MSG_WAITALL | MSG_PEEK, shuts);
    receives_all(UNIX_DATAGRAM, 3, MSG_WAITALL, stays);
    receives_all(UNIX_PACKET, 3, MSG_WAITALL, shuts);
    receives_all(UDP, 10, MSG_WAITALL, stays);
}

static void *sends_and_closes(void *arg)
{
    int fd = *(int *)arg;
    until_asleep();
    CHECK_EQ(send(fd, "abc", 3, 0), 3);
    until_asleep();
    CHECK_EQ(close(fd), 0);
    return NULL;
}

/* What the table of differences is about. */
static void case_differences(void)
{
    struct sockaddr_storage address;
    plan_t plan = {-1, shuts};
    pthread_t partner;
    int pair[2], one = 1;
    udp_pair(pair);
    CHECK_EQ(send(pair[1], "abc", 3, 0), 3);
    NOTE(recvfrom(pair[0], room, 5, 0, (struct sockaddr *)&address, BAD));
    note("the message after a bad length", recv(pair[0], room, 5, MSG_DONTWAIT));
    close_kind(UDP, pair);
    unix_pair(pair, SOCK_STREAM);
    CHECK_EQ(send(pair[0], "x", 1, 0), 1); /* that the other end never reads */
    partner = beside(sends_and_closes, &pair[1]);
    NOTE(recv(pair[0], room, 10, MSG_WAITALL));
    join(partner);
    note("a reset while all is awaited", recv(pair[0], room, 10, 0));
    NOTE(recv(pair[0], room, 10, 0));
    CHECK_EQ(close(pair[0]), 0);
    unix_pair(pair, SOCK_STREAM);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof one), 0);
    plan.fd = pair[1];
    partner = beside(sends_two, &plan);
    note("all of what senders' names come with", recv(pair[0], room, 7, MSG_WAITALL));
    join(partner);
    close_kind(UNIX_STREAM, pair);
}

static void pass(int fd, const char *text, int passed)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = parts_of((void *)(uintptr_t)text, strlen(text));
    struct msghdr message = message_of(&part, 1);
    struct cmsghdr *c;
    if (passed >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof passed);
    }
    CHECK_EQ(sendmsg(fd, &message, 0), (ssize_t)strlen(text));
}

static void *passes(void *arg)
{
    int fd = *(int *)arg;
    pass(fd, "plain", -1);
    until_asleep();
    pass(fd, "first", 1);
    pass(fd, "other", 2);
    CHECK_EQ(shutdown(fd, SHUT_WR), 0);
    return NULL;
}

static void receive_passed(int fd, int has_control)
{
    char control[CMSG_SPACE(4 * sizeof(int))] = {0}, bytes[21] = "";
    struct iovec part = parts_of(bytes, 20);
    struct msghdr message = message_of(&part, 1);
    int fds = 0, other;
    if (has_control) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    NOTE(recvmsg(fd, &message, MSG_WAITALL));
    note_bytes("bytes", bytes, sizeof bytes);
    note("flags", message.msg_flags);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c), fds++) {
        memcpy(&other, CMSG_DATA(c), sizeof other);
        CHECK_EQ(close(other), 0);
    }
    note("descriptors", fds);
}

static void case_descriptors(void)
{
    for (int way = 0; way < 2; way++) {
        int pair[2];
        pthread_t partner;
        unix_pair(pair, SOCK_STREAM);
        partner = beside(passes, &pair[1]);
        for (int i = 0; i < 3; i++)
            receive_passed(pair[0], way);
        join(partner);
        CHECK_EQ(close(pair[0]), 0);
        CHECK_EQ(close(pair[1]), 0);
    }
}

static volatile sig_atomic_t pipe_signals;

static void count_pipe_signal(int number)
{
    (void)number;
    pipe_signals++;
}

static void *resets_after_reads(void *arg)
{
    char bytes[100];
    int fd = *(int *)arg;
    CHECK_EQ(recv(fd, bytes, sizeof bytes, MSG_WAITALL), (ssize_t)sizeof bytes);
    until_asleep();
    CHECK_EQ(resets(fd), 0);
    return NULL;
}

/* More than fits, to a peer that goes away: the calls after that tell why, and raise the signal. */
static void case_resets(void)
{
    enum { MUCH = 32 << 20 };
    char *much = calloc(1, MUCH);
    signal(SIGPIPE, count_pipe_signal);
    for (int way = 0; way < 3; way++) {
        struct iovec parts[2] = {parts_of(much, MUCH / 2), parts_of(much + MUCH / 2, MUCH / 2)};
        struct mmsghdr messages[2] = {{.msg_hdr = message_of(parts, 2)}, {.msg_hdr = message_of(parts, 2)}};
        int pair[2];
        pthread_t partner;
        int64_t n;
        tcp_pair(pair);
        partner = beside(resets_after_reads, &pair[1]);
        errno = 0;
        n = way == 0 ? write(pair[0], much, MUCH) : way == 1 ? writev(pair[0], parts, 2)
                                                             : sendmmsg(pair[0], messages, 2, 0);
        note("a part was sent", way == 2 ? n : n > 0 && n < MUCH);
        join(partner);
        NOTE(send(pair[0], "x", 1, 0));
        note("signals", pipe_signals);
        NOTE(send(pair[0], "x", 1, 0));
        note("signals", pipe_signals);
        NOTE(read(pair[0], much, 1));
        CHECK_EQ(close(pair[0]), 0);
    }
    free(much);
}

/* An error behind messages, and the time limits. */
static void case_limits(void)
{
    struct timeval limit = {0, 30000}, huge = {LONG_MAX / 1000, 0};
    struct timespec large = {LONG_MAX / 4, 0};
    char bytes[2][4];
    struct iovec parts[2] = {parts_of(bytes[0], 4), parts_of(bytes[1], 4)};
    struct mmsghdr messages[2] = {{.msg_hdr = message_of(parts, 1)}, {.msg_hdr = message_of(parts + 1, 1)}};
    plan_t plan = {-1, stays};
    pthread_t partner;
    int pair[2];
    udp_pair(pair);
    plan.fd = pair[1];
    partner = beside(sends_two, &plan);
    NOTE(recvmmsg(pair[0], messages, 2, 0, &large));
    join(partner);
    partner = beside(sends_two, &plan);
    NOTE(recvmmsg(pair[0], messages, 2, MSG_WAITFORONE, NULL));
    NOTE(recv(pair[0], bytes[0], 4, 0));
    join(partner);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &huge, sizeof huge), 0);
    partner = beside(sends_two, &plan);
    NOTE_LIMITED(recv(pair[0], bytes[0], 4, 0));
    NOTE_LIMITED(recv(pair[0], bytes[0], 4, 0));
    join(partner);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    NOTE_LIMITED(recv(pair[0], bytes[0], 4, 0));
    NOTE_LIMITED(recvmmsg(pair[0], messages, 2, 0, NULL));
    CHECK_EQ(send(pair[1], "one", 3, 0), 3);
    NOTE_LIMITED(recvmmsg(pair[0], messages, 2, 0, NULL));
    NOTE(accept(pair[0], NULL, NULL));
    CHECK_EQ(close(pair[1]), 0);
    NOTE(send(pair[0], "x", 1, 0)); /* nobody is there: the next call says so */
    NOTE_LIMITED(recvmmsg(pair[0], messages, 2, 0, NULL));
    CHECK_EQ(close(pair[0]), 0);
    tcp_pair(pair);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    CHECK_EQ(send(pair[1], "one", 3, 0), 3);
    NOTE_LIMITED(recv(pair[0], bytes, 8, MSG_WAITALL));
    NOTE_LIMITED(recv(pair[0], bytes, 8, MSG_WAITALL));
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

/* ---- Signals ---- */

static volatile sig_atomic_t handled;
static volatile int is_over; /* atomic */
static int sent = SIGUSR1;

static void handles(int number)
{
    handled += number == sent;
}

static void informs(int number, siginfo_t *info, void *context)
{
    handled += number == SIGUSR1 && info->si_signo == SIGUSR1 && context != NULL;
}

static void send_signal(void)
{
    CHECK_EQ(syscall(SYS_tgkill, getpid(), caller, sent), 0);
}

/* One would not do: it may come before the call. */
static void *signals_until_over(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        until_asleep();
        send_signal();
    }
    return unused;
}

typedef struct help {
    void (*give)(void *what);
    void *what;
    int is_ignored;
} help_t;

static void *signals_then_helps(void *arg)
{
    const help_t *help = arg;
    int before = handled;
    until_asleep();
    send_signal();
    while (!help->is_ignored && handled == before)
        usleep(300);
    until_asleep();
    help->give(help->what);
    return NULL;
}

static void install(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handles;
    action.sa_flags = flags;
    CHECK_EQ(sigaction(sent, &action, NULL), 0);
}

/* The call ends by the signal. */
#define INTERRUPTED(installs, call) \
    do { \
        pthread_t partner; \
        installs; \
        is_over = 0; \
        partner = beside(signals_until_over, NULL); \
        NOTE(call); \
        __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE); \
        join(partner); \
    } while (0)

/* The call goes on after the signal, until it has what it waits for. */
#define RESTARTED(installs, help, call) \
    do { \
        pthread_t partner; \
        installs; \
        partner = beside(signals_then_helps, &(help)); \
        NOTE(call); \
        join(partner); \
    } while (0)

static void case_waits_for_time(void)
{
    static const int ways[] = {0, SA_RESTART};
    struct timespec long_time = {90, 0}, rest = {0, 0};
    struct timeval limit = {90, 0};
    struct epoll_event event;
    struct pollfd p;
    sigset_t none;
    int pair[2], epoll = epoll_create1(EPOLL_CLOEXEC);
    sigemptyset(&none);
    tcp_pair(pair);
    p.fd = pair[0];
    p.events = POLLIN;
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    for (int i = 0; i < 2; i++) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pair[0], &set);
        INTERRUPTED(install(ways[i]), poll(NULL, 0, -1));
        INTERRUPTED(install(ways[i]), poll(&p, 1, -1));
        INTERRUPTED(install(ways[i]), poll(&p, 1, 90000));
        INTERRUPTED(install(ways[i]), ppoll(&p, 1, NULL, NULL));
        INTERRUPTED(install(ways[i]), ppoll(&p, 1, &long_time, &none));
        INTERRUPTED(install(ways[i]), select(pair[0] + 1, &set, NULL, NULL, NULL));
        INTERRUPTED(install(ways[i]), pselect(pair[0] + 1, &set, NULL, NULL, &long_time, NULL));
        INTERRUPTED(install(ways[i]), epoll_wait(epoll, &event, 1, -1));
        INTERRUPTED(install(ways[i]), epoll_pwait(epoll, &event, 1, 90000, &none));
        INTERRUPTED(install(ways[i]), nanosleep(&long_time, &rest));
        note("the rest", rest.tv_sec > 10);
        INTERRUPTED(install(ways[i]), clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL));
        INTERRUPTED(install(ways[i]), clock_nanosleep(CLOCK_REALTIME, 0, &long_time, NULL));
        INTERRUPTED(install(ways[i]), usleep(90000000));
        INTERRUPTED(install(ways[i]), sleep(90) > 10);
        INTERRUPTED(install(ways[i]), recv(pair[0], room, 5, 0)); /* with a time limit */
    }
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
    CHECK_EQ(close(epoll), 0);
}

static void give_byte(void *fd)
{
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
}

static void give_post(void *semaphore)
{
    CHECK_EQ(sem_post(semaphore), 0);
}

static void give_file(void *fd)
{
    CHECK_EQ(flock((int)(intptr_t)fd, LOCK_UN), 0);
}

static void give_end(void *child)
{
    CHECK_EQ(kill((pid_t)(intptr_t)child, SIGKILL), 0);
}

static void give_connection(void *fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(getsockname((int)(intptr_t)fd, (struct sockaddr *)&address, &length), 0);
    CHECK_EQ(connect(other, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(close(other), 0);
}

static void waits_for_bytes(int kind)
{
    struct iovec part = parts_of(room, 1);
    struct mmsghdr message = {.msg_hdr = message_of(&part, 1)};
    int pair[2];
    help_t help = {give_byte, NULL, 0};
    open_kind(kind, pair);
    CHECK_EQ(read(pair[0], room, 11), 11);
    help.what = (void *)(intptr_t)pair[1];
    INTERRUPTED(install(0), read(pair[0], room, 5));
    RESTARTED(install(SA_RESTART), help, read(pair[0], room, 5));
    RESTARTED(install(SA_RESTART), help, readv(pair[0], &part, 1));
    if (kind == TCP) {
        INTERRUPTED(install(0), recv(pair[0], room, 5, 0));
        RESTARTED(install(SA_RESTART), help, recv(pair[0], room, 5, 0));
        give_byte(help.what);
        INTERRUPTED(install(0), recv(pair[0], room, 5, MSG_WAITALL));
        INTERRUPTED(install(0), recvmmsg(pair[0], &message, 1, 0, NULL));
        RESTARTED(install(SA_RESTART), help, recvmmsg(pair[0], &message, 1, 0, NULL));
    }
    close_kind(kind, pair);
}

static pid_t child_that_stays(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    return child;
}

static void case_waits_for_others(void)
{
    char path[] = "/tmp/hook_differential.XXXXXX";
    int pair[2], first = mkostemp(path, O_CLOEXEC), second = open(path, O_RDWR | O_CLOEXEC), status;
    help_t post = {give_post, NULL, 0}, file = {give_file, (void *)(intptr_t)second, 0}, end = {give_end, NULL, 0},
           connection = {give_connection, NULL, 0};
    pid_t child;
    sem_t semaphore;
    CHECK_EQ(unlink(path), 0);
    waits_for_bytes(PIPE_END);
    waits_for_bytes(TCP);
    waits_for_bytes(UDP);
    CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
    post.what = &semaphore;
    INTERRUPTED(install(0), sem_wait(&semaphore));
    RESTARTED(install(SA_RESTART), post, sem_wait(&semaphore));
    CHECK_EQ(flock(second, LOCK_EX), 0);
    INTERRUPTED(install(0), flock(first, LOCK_EX));
    RESTARTED(install(SA_RESTART), file, flock(first, LOCK_EX));
    child = child_that_stays();
    end.what = (void *)(intptr_t)child;
    INTERRUPTED(install(0), waitpid(child, &status, 0));
    RESTARTED(install(SA_RESTART), end, waitpid(child, &status, 0) == child);
    child = child_that_stays();
    end.what = (void *)(intptr_t)child;
    INTERRUPTED(install(0), waitpid(-1, &status, 0));
    RESTARTED(install(SA_RESTART), end, waitpid(-1, &status, 0) == child);
    open_kind(LISTENER, pair);
    connection.what = (void *)(intptr_t)pair[0];
    INTERRUPTED(install(0), accept(pair[0], NULL, NULL));
    RESTARTED(install(SA_RESTART), connection, close(accept(pair[0], NULL, NULL)));
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(first), 0);
    CHECK_EQ(close(second), 0);
    CHECK_EQ(sem_destroy(&semaphore), 0);
}

/* It ends no call. */
static void case_ignored_signal(void)
{
    int pair[2];
    help_t byte = {give_byte, NULL, 1};
    pthread_t partner;
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    byte.what = (void *)(intptr_t)pair[1];
    signal(SIGUSR1, SIG_IGN);
    partner = beside(signals_then_helps, &byte);
    NOTE(read(pair[0], room, 5));
    join(partner);
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

static void note_action(void)
{
    struct sigaction action;
    NOTE(sigaction(SIGUSR1, NULL, &action));
    note("handles", action.sa_handler == handles);
    note("informs", action.sa_flags & SA_SIGINFO && action.sa_sigaction == informs);
    note("default", action.sa_handler == SIG_DFL);
    note("its flags", action.sa_flags & ~0x04000000 /* SA_RESTORER, libc's */);
    note("its mask", sigismember(&action.sa_mask, SIGUSR1) + 2 * sigismember(&action.sa_mask, SIGUSR2));
}

static void adds_a_hundred(int number)
{
    (void)number;
    handled += 100;
}

extern int __sigaction(int number, const struct sigaction *wanted, struct sigaction *before);

/* What a call without a hook says was there goes back by one with a hook. */
static void case_other_ways(void)
{
    struct sigaction action, before;
    install(0);
    memset(&action, 0, sizeof action);
    action.sa_handler = adds_a_hundred;
    CHECK_EQ(__sigaction(SIGUSR1, &action, &before), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK(signal(SIGUSR1, before.sa_handler) == adds_a_hundred);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(handled, 101);
    note_action();
}

static void case_lowest_number(void)
{
    int pair[2];
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    sent = SIGHUP;
    INTERRUPTED(install(0), read(pair[0], room, 5));
    sent = SIGUSR1;
}

extern void (*bsd_signal(int number, void (*handler)(int)))(int);

/* Calls that POSIX no longer has. Handlers that they install end waits, too. */
static void case_old_names(void)
{
    help_t byte = {give_byte, NULL, 0};
    int pair[2];
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    byte.what = (void *)(intptr_t)pair[1];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    INTERRUPTED(CHECK(sigset(SIGUSR1, handles) == SIG_DFL), read(pair[0], room, 5));
    note_action();
    CHECK(sigset(SIGUSR1, SIG_HOLD) == handles);
    CHECK(sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
    handled = 0;
    CHECK_EQ(raise(SIGUSR1), 0);
    note("held", handled);
    CHECK(sigset(SIGUSR1, adds_a_hundred) == SIG_HOLD);
    note("no longer held", handled);
    NOTE(sighold(SIGUSR1));
    CHECK_EQ(raise(SIGUSR1), 0);
    note("held", handled);
    NOTE(sigrelse(SIGUSR1));
    note("no longer held", handled);
    NOTE(sigignore(SIGUSR1));
    CHECK_EQ(raise(SIGUSR1), 0);
    note("ignored", handled);
    CHECK(sigset(SIGUSR1, handles) == SIG_IGN);
    errno = 0;
    note("no signal", sigset(0, handles) == SIG_ERR);
    note("no signal to hold", sigset(9999, SIG_HOLD) == SIG_ERR);
    CHECK_EQ(errno, EINVAL);
    RESTARTED(CHECK(bsd_signal(SIGUSR1, handles) == handles), byte, read(pair[0], room, 5));
    INTERRUPTED(CHECK_EQ(siginterrupt(SIGUSR1, 1), 0), read(pair[0], room, 5));
#pragma GCC diagnostic pop
    CHECK(sysv_signal(SIGUSR1, adds_a_hundred) == handles);
    handled = 0; /* before, the times decided how many came */
    CHECK_EQ(raise(SIGUSR1), 0);
    note("handled", handled);
    note_action(); /* the handler is no more */
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

/* What the program is told of its handlers. */
static void case_actions(void)
{
    struct sigaction action, before;
    note_action();
    install(0);
    note_action();
    CHECK_EQ(raise(SIGUSR1), 0);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = informs;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR2);
    NOTE(sigaction(SIGUSR1, &action, &before));
    CHECK(before.sa_handler == handles && !(before.sa_flags & SA_SIGINFO)); /* the hook answers in both runs */
    CHECK_EQ(sigaction(SIGUSR1, NULL, &before), 0);
    CHECK(before.sa_sigaction == informs && before.sa_flags & SA_SIGINFO);
    note_action();
    CHECK_EQ(raise(SIGUSR1), 0);
    note("handled", handled);
    note_action(); /* the handler is no more */
    install((int)SA_RESETHAND);
    CHECK_EQ(raise(SIGUSR1), 0);
    note_action();
    CHECK_EQ(sigaction(SIGUSR1, NULL, &before), 0);
    CHECK(before.sa_handler == SIG_DFL && !(before.sa_flags & SA_SIGINFO));
    note("signal()", signal(SIGUSR1, handles) == SIG_DFL);
    note_action();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    NOTE(siginterrupt(SIGUSR1, 1));
#pragma GCC diagnostic pop
    note_action();
    note("signal()", signal(SIGUSR1, SIG_IGN) == handles);
    note("signal()", signal(SIGUSR1, handles) == SIG_IGN);
    note_action();
    note("signal()", signal(SIGUSR1, SIG_DFL) == handles);
    note_action();
    NOTE(sigaction(SIGKILL, &action, NULL));
    NOTE(sigaction(0, &action, NULL));
    NOTE(sigaction(9999, &action, NULL));
    NOTE(sigaction(SIGKILL, NULL, &before));
    note("signal()", signal(SIGKILL, handles) == SIG_ERR);
    note("signal()", signal(9999, handles) == SIG_ERR);
}

/* ---- The table ---- */

typedef struct test_case {
    const char *name;
    void (*run)(void);
    int uses_bad_memory; /* which sanitizers report */
} test_case_t;
static const test_case_t cases[] = {
    {"bytes", case_bytes, 1},
    {"sockets", case_sockets, 1},
    {"batches", case_batches, 1},
    {"connections", case_connections, 1},
    {"files", case_files, 1},
    {"lengths of addresses", case_receive_lengths, 1},
    {"polls", case_polls, 1},
    {"selects", case_selects, 1},
    {"times", case_times, 1},
    {"paths", case_paths, 1},
    {"children", case_children, 1},
    {"locks", case_locks, 1},
    {"MSG_WAITALL", case_wait_for_all, 0},
    {"differences", case_differences, 1},
    {"descriptors", case_descriptors, 0},
    {"resets", case_resets, 0},
    {"limits", case_limits, 0},
    {"waits for time", case_waits_for_time, 0},
    {"waits for others", case_waits_for_others, 0},
    {"an ignored signal", case_ignored_signal, 0},
    {"actions", case_actions, 0},
    {"other ways", case_other_ways, 0},
    {"the lowest signal", case_lowest_number, 0},
    {"old names", case_old_names, 0},
};

/* What hooks do otherwise, and why. docs/hook.md says it, too. */
static const struct {
    const char *what, *why;
} differences[] = {
    {"the message after a bad length", "a length that cannot be read is refused before a message is taken for it"},
    {"a reset while all is awaited", "Linux loses it on local streams; here the next call fails with it"},
    {"all of what senders' names come with", "parts of one sender cannot be told from others' before they are taken"},
};

static int differs_on_purpose(const char *what)
{
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (strcmp(what, differences[i].what) == 0)
            return 1;
    return 0;
}

static const test_case_t *current;
static int is_hooked;

static void *runs_case(void *unused)
{
    CHECK(aco_io_poll_fd() >= 0); /* the numbers of descriptors are to be the same */
    CHECK(!is_hooked || aco_hook_begin() == 0);
    current->run();
    CHECK(!is_hooked || aco_hook_end() == 0);
    return unused;
}

/* Runs the case in a child: its status. */
static int run_case(const test_case_t *test, int hooked, notes_t *notes)
{
    int status;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        check_failures = 0;
        alarm(CHILD_SECONDS);
        current = test;
        is_hooked = hooked;
        noted = notes;
        caller = (pid_t)syscall(SYS_gettid);
        signal(SIGPIPE, SIG_IGN);
        run_task(runs_case, NULL);
        _exit(check_failures != 0);
    }
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void compare(const test_case_t *test, const notes_t *plain, const notes_t *hooked)
{
    for (unsigned i = 0; i < plain->count && i < hooked->count; i++) {
        const note_t *a = &plain->notes[i], *b = &hooked->notes[i];
        if ((a->result == b->result && a->error == b->error) || differs_on_purpose(a->what))
            continue;
        fprintf(stderr, "%s: %s: %lld, errno %d (%s); with hooks %lld, errno %d (%s)\n", test->name, a->what,
                (long long)a->result, a->error, strerror(a->error), (long long)b->result, b->error,
                strerror(b->error));
        CHECK(!"the same");
    }
    CHECK_EQ(hooked->count, plain->count);
}

static void *shared(size_t sz, int protection)
{
    void *p = mmap(NULL, sz, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

/* With a name only that case runs. */
int main(int argc, char **argv)
{
    unsigned compared = 0;
    notes_t *notes[2];
    if (UNDER_TSAN) { /* child.h says why */
        printf("skipped: children of fork()\n");
        return 0;
    }
    bad = shared(1 << 16, PROT_NONE);
    for (int i = 0; i < 2; i++)
        notes[i] = shared(sizeof(notes_t), PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if ((argc > 1 && strcmp(argv[1], cases[i].name) != 0) || (SANITIZED && cases[i].uses_bad_memory))
            continue;
        for (int hooked = 0; hooked < 2; hooked++) {
            int status;
            notes[hooked]->count = 0;
            status = run_case(&cases[i], hooked, notes[hooked]);
            if (status) {
                fprintf(stderr, "%s%s: status %#x after %u notes; the last: %s\n", cases[i].name,
                        hooked ? ", hooked" : "", (unsigned)status, notes[hooked]->count,
                        notes[hooked]->count ? notes[hooked]->notes[notes[hooked]->count - 1].what : "none");
                CHECK(!"it ends");
            }
        }
        compare(&cases[i], notes[0], notes[1]);
        compared += notes[0]->count;
    }
    printf("%u calls compared\n", compared);
    return check_result("hook_differential");
}
