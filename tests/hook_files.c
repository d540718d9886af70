/* Hooks on libc (hook_tests.h): files, locks on them, names. */
#define _GNU_SOURCE
#include "hook_tests.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- Files and names ---- */

static void *opens_fifo(void *path)
{
    int fd;
    begin();
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "fifo", 4), 4);
    CHECK_EQ(close(fd), 0);
    return NULL;
}

static void *test_files(void *unused)
{
    char folder[] = "/tmp/acorn_hook_XXXXXX", path[64], bytes[16] = "";
    struct iovec parts[2] = {{bytes, 3}, {bytes + 3, 8}};
    struct iovec sent[2] = {{large, 5}, {large + 5, 6}};
    char two[] = "AB";
    struct iovec changed = {two, 2};
    int fd, folder_fd;
    aco_t *other;
    CHECK(IS_SIMULATED || mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    begin();
    CHECK(!IS_SIMULATED || mkdir(folder, 0700) == 0);
    FAILS_WITH(open(path, O_RDONLY), ENOENT);
    errno = 77;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(fcntl(fd, F_GETFD), 0); /* no close-on-exec that the client did not ask for */
    CHECK_EQ(writev(fd, sent, 2), 11);
    CHECK_EQ(pwrite(fd, "AB", 2, 1), 2);
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(fdatasync(fd), 0);
    CHECK_EQ(errno, 77);
    CHECK_EQ(pwritev(fd, sent, 2, 0), 11);
    CHECK_EQ(pwritev64(fd, &changed, 1, 1), 2);
    CHECK_EQ(preadv(fd, parts, 2, 1), 10);
    CHECK(memcmp(bytes, "AB", 2) == 0 && memcmp(bytes + 3, large + 4, 7) == 0);
    FAILS_WITH(preadv(fd, parts, 2, -1), EINVAL);
    FAILS_WITH(pwritev(fd, parts, 2, -1), EINVAL);
    CHECK_EQ(pwritev(fd, parts, 0, 0), 0);
    CHECK_EQ(preadv(fd, parts, 0, 0), 0);
    CHECK_EQ(preadv64(fd, parts, 2, 11), 0);
    CHECK_EQ(pread(fd, bytes, 2, 1), 2);
    CHECK(memcmp(bytes, "AB", 2) == 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(readv(fd, parts, 2), 11);
    CHECK(bytes[0] == large[0] && memcmp(bytes + 1, "AB", 2) == 0 && memcmp(bytes + 3, large + 3, 8) == 0);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 0);
    CHECK_EQ(write(fd, "end", 3), 3);
    FAILS_WITH(pread(fd, bytes, 1, -5), EINVAL);
    CHECK_EQ(IS_SIMULATED ? 0 : flock(fd, LOCK_EX), 0);
    CHECK_EQ(close(fd), 0);
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = IS_SIMULATED ? open(path, O_RDONLY | O_CLOEXEC) : openat(folder_fd, "file", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 14);
    FAILS_WITH(read(folder_fd, bytes, 1), EISDIR);
    FAILS_WITH(write(fd, bytes, 1), EBADF);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(close(folder_fd), 0);
    fd = creat(path, 0600);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    other = beside(opens_fifo, path);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* the two wait for each other */
    CHECK_EQ(read(fd, bytes, sizeof bytes), 4);
    CHECK_EQ(read(fd, bytes, sizeof bytes), 0);
    CHECK_EQ(close(fd), 0);
    join(other);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
    return unused;
}

/* Of what cannot seek: programs ask so whether it can. No byte is moved. */
static void *test_offsets_of_streams(void *unused)
{
    int ends[2], pair[2];
    char bytes[8];
    struct iovec part = {bytes, 3};
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    begin();
    for (int i = 0; i < 2; i++) {
        const int *both = i == 0 ? ends : pair;
        CHECK_EQ(write(both[1], "all", 3), 3);
        FAILS_WITH(pread(both[0], bytes, 3, 0), ESPIPE);
        FAILS_WITH(pread64(both[0], bytes, 3, 1), ESPIPE);
        FAILS_WITH(preadv(both[0], &part, 1, 0), ESPIPE);
        FAILS_WITH(pwrite(both[1], "x", 1, 0), ESPIPE);
        FAILS_WITH(pwritev(both[1], &part, 1, 2), ESPIPE);
        CHECK_EQ(read(both[0], bytes, sizeof bytes), 3);
        CHECK(memcmp(bytes, "all", 3) == 0);
        close_two(both);
    }
    return unused;
}

static void *unlocks_later(void *fd)
{
    let_wait();
    CHECK_EQ(flock((int)(intptr_t)fd, LOCK_UN), 0);
    return NULL;
}

static void *test_flock(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX";
    int first = mkstemp(path), second = open(path, O_RDONLY | O_CLOEXEC);
    aco_t *other;
    begin();
    CHECK_EQ(flock(first, LOCK_EX), 0);
    FAILS_WITH(flock(second, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    other = beside(unlocks_later, (void *)(intptr_t)first);
    CHECK_EQ(flock(second, LOCK_EX), 0);
    join(other);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(first), 0);
    CHECK_EQ(close(second), 0);
    return unused;
}

/* Locks of open descriptions conflict within a process, too. */
static void *unlocks_range_later(void *fd)
{
    struct flock lock = {0};
    let_wait();
    lock.l_type = F_UNLCK;
    CHECK_EQ(fcntl((int)(intptr_t)fd, F_OFD_SETLK, &lock), 0);
    return NULL;
}

static void *test_range_locks(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX";
    int first = mkstemp(path), second = open(path, O_RDWR | O_CLOEXEC);
    struct flock lock = {0};
    aco_scope_t scope;
    aco_t *other;
    begin();
    lock.l_type = F_WRLCK;
    CHECK_EQ(fcntl(first, F_OFD_SETLKW, &lock), 0);
    CHECK_EQ(fcntl(second, F_OFD_SETLK, &lock), -1);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    FAILS_WITH(fcntl(second, F_OFD_SETLKW, &lock), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    other = beside(unlocks_range_later, (void *)(intptr_t)first);
    CHECK_EQ(fcntl(second, F_OFD_SETLKW, &lock), 0);
    join(other);
    FAILS_WITH(fcntl(-1, F_SETLKW, &lock), EBADF);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(first), 0);
    CHECK_EQ(close(second), 0);
    return unused;
}

static void *test_names(void *unused)
{
    struct addrinfo hints = {0}, *found = NULL;
    struct sockaddr_in address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    begin();
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = AF_INET;
    CHECK_EQ(getaddrinfo("localhost", "80", &hints, &found), 0);
    if (found)
        CHECK_EQ(((struct sockaddr_in *)(void *)found->ai_addr)->sin_port, htons(80));
    freeaddrinfo(found);
    CHECK_EQ(getaddrinfo("127.0.0.1", "1", &hints, &found), 0);
    freeaddrinfo(found);
    CHECK_EQ(getaddrinfo("no.such.name.invalid.", NULL, NULL, &found) != 0, 1);
    CHECK_EQ(getaddrinfo("localhost", "no such port", &hints, &found), EAI_SERVICE);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, port, sizeof port, 0), 0);
    CHECK(host[0] != 0);
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, NI_NUMERICHOST), 0);
    CHECK(strcmp(host, "127.0.0.1") == 0);
    return unused;
}

/* Locks of a process, which a child of it holds. */
static void *test_locks_of_child(void *unused)
{
    char path[] = "/tmp/acorn_hook_XXXXXX", byte;
    int file = mkstemp(path), from[2], to[2];
    struct flock lock = {0};
    begin();
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    for (int way = 0; way < 2; way++) {
        aco_t *other;
        pid_t child;
        CHECK_EQ(pipe(from), 0);
        CHECK_EQ(pipe(to), 0);
        child = fork();
        if (child == 0)
            _exit(fcntl(file, F_SETLKW, &lock) == 0 && write(from[1], "l", 1) == 1 && read(to[0], &byte, 1) == 1 ? 0
                                                                                                                 : 1);
        CHECK_EQ(read(from[0], &byte, 1), 1);
        other = beside(writes_a_byte, (void *)(intptr_t)to[1]);
        CHECK_EQ(way ? lockf(file, F_LOCK, 10) : fcntl(file, F_SETLKW, &lock), 0);
        join(other);
        CHECK_EQ(lockf(file, F_ULOCK, 0), 0);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        close_two(from);
        close_two(to);
    }
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(file), 0);
    return unused;
}

int main(int argc, char **argv)
{
    static const aco_function_t watched[] = {test_files,       test_offsets_of_streams, test_flock,
                                             test_range_locks, test_names,              NULL};
    static const aco_function_t others[] = {test_locks_of_child, NULL};
    static const aco_function_t in_both[] = {test_files, test_offsets_of_streams, test_names, NULL};
    return run_hook_tests(argc, argv, "hook_files", watched, others, in_both);
}
